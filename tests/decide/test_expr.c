/* SPDX-License-Identifier: GPL-2.0-or-later */
/* expr: text to program with located errors, program to true, false or unknown. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "decide/expr.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define MS 1e6

/* ---- a world by hand: every signal and statistic has the value that was put there ---- */

struct world {
	struct value value[SIGNAL_ID_COUNT][STAT_ID_COUNT];
	double over_arg;
	uint64_t window_ns;
};

static struct value world_term(const void *context, const struct expr_term *term, double over_arg,
			       const uint32_t need_override[STAT_ID_COUNT])
{
	struct world *w = (struct world *)(uintptr_t)context;

	cr_assert_not_null(need_override);
	w->over_arg = over_arg;
	w->window_ns = term->window_ns;
	return w->value[term->signal][term->stat];
}

static bool world_param(const void *context, const char *name, double *ret_value)
{
	(void)context;
	if (!strcmp(name, "slow"))
		*ret_value = 10 * MS;
	else if (!strcmp(name, "zero"))
		*ret_value = 0;
	else
		return false;
	return true;
}

static struct value ok(double x)
{
	return (struct value){ .number = x };
}

static struct value why(enum value_why reason)
{
	return (struct value){ .why = reason };
}

static struct value few(double x, uint64_t have, uint64_t need)
{
	return (struct value){ VALUE_FEW, x, have, need };
}

static struct world world_new(void)
{
	struct world w = { 0 };

	w.value[SIGNAL_DWELL][STAT_P99] = ok(20 * MS);
	w.value[SIGNAL_DWELL][STAT_P50] = ok(1 * MS);
	w.value[SIGNAL_DWELL][STAT_RATE] = ok(500);
	w.value[SIGNAL_DWELL][STAT_COUNT] = ok(5000);
	w.value[SIGNAL_DWELL][STAT_OVER] = ok(0.25);
	w.value[SIGNAL_RUNQ][STAT_P99] = ok(12 * MS);
	w.value[SIGNAL_RTP_LOSS][STAT_BARE] = ok(0.07);
	w.value[SIGNAL_RTP_STREAMS][STAT_BARE] = ok(8);
	w.value[SIGNAL_QUEUE_RCVBUF][STAT_BARE] = ok(212992);
	w.value[SIGNAL_HOST_STEAL][STAT_BARE] = ok(0);
	return w;
}

static struct expr_result eval_in(const struct world *w, const char *text)
{
	const struct expr_env env = { .context = w, .term = world_term, .param = world_param };
	struct expr_error error = { 0 };
	struct expr e;

	cr_assert_eq(expr_parse(text, &e, &error), 0, "%s:%u: %s", text, error.column, error.text);
	return expr_eval(&e, &env);
}

static enum tri truth_of(const char *text)
{
	const struct world w = world_new();

	return eval_in(&w, text).truth;
}

Test(expr, comparisons_arithmetic_units_and_precedence)
{
	static const struct { const char *text; enum tri truth; } cases[] = {
		{ "dwell.p99 > 10ms", TRI_TRUE },
		{ "dwell.p99 > 0.02s", TRI_FALSE },
		{ "dwell.p99[3s] >= 20000us", TRI_TRUE },
		{ "10ms < dwell.p99", TRI_TRUE },
		{ "dwell.p99 > $slow", TRI_TRUE },
		{ "dwell.p99 < $slow / 2", TRI_FALSE },
		{ "dwell.p99 - runq.p99 == 8ms", TRI_TRUE },
		{ "dwell.p99 > 5ms + 5ms * 2", TRI_TRUE },	/* 15 ms: * before + */
		{ "dwell.p99 > (5ms + 5ms) * 3", TRI_FALSE },
		{ "dwell.p99 > 2 * $slow", TRI_FALSE },
		{ "dwell.p99 / runq.p99 > 1.5", TRI_TRUE },
		{ "dwell.p99 / runq.p99 > 150%", TRI_TRUE },
		{ "30ms - 10ms - 10ms == 10ms", TRI_TRUE },	/* from the left */
		{ "-dwell.p99 < -10ms", TRI_TRUE },
		{ "- -dwell.p99 == 20ms", TRI_TRUE },
		{ "rtp.loss > 5%", TRI_TRUE },
		{ "rtp.streams >= 5", TRI_TRUE },
		{ "rtp.streams != 8", TRI_FALSE },
		{ "queue.rcvbuf <= 208KiB", TRI_TRUE },
		{ "queue.rcvbuf < 1MiB and queue.rcvbuf > 100B", TRI_TRUE },
		{ "dwell.rate > 100/s", TRI_TRUE },
		{ "dwell.count > 4999", TRI_TRUE },
		{ "dwell.over(20ms) > 20%", TRI_TRUE },
		{ "dwell.over($slow)[30s] > 30%", TRI_FALSE },
		{ "not (dwell.p99 > 10ms)", TRI_FALSE },
		{ "not not (dwell.p99 > 10ms)", TRI_TRUE },
		{ "rtp.loss > 5% or dwell.p99 > 1s and dwell.p50 > 1s", TRI_TRUE },	/* and before or */
		{ "(rtp.loss > 5% or dwell.p99 > 1s) and dwell.p50 > 1s", TRI_FALSE },
		{ "known(dwell.p99) and not known(runq.p50)", TRI_FALSE },	/* runq.p50 is 0, and known */
		{ "dwell.p99>10ms and\n\tdwell.p50<2ms", TRI_TRUE },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_eq(truth_of(cases[i].text), cases[i].truth, "%s", cases[i].text);
}

Test(expr, c04_equality_is_exact)
{
	struct world w = world_new();

	w.value[SIGNAL_DWELL][STAT_P99] = ok(20 * MS);
	cr_expect_eq(eval_in(&w, "dwell.p99 > 20ms").truth, TRI_FALSE);
	cr_expect_eq(eval_in(&w, "dwell.p99 >= 20ms").truth, TRI_TRUE);
	cr_expect_eq(eval_in(&w, "dwell.p99 < 20ms").truth, TRI_FALSE);
	cr_expect_eq(eval_in(&w, "dwell.p99 <= 20ms").truth, TRI_TRUE);
	cr_expect_eq(eval_in(&w, "dwell.p99 == 20ms").truth, TRI_TRUE);
	cr_expect_eq(eval_in(&w, "dwell.p99 != 20ms").truth, TRI_FALSE);
	w.value[SIGNAL_DWELL][STAT_P99] = ok(20 * MS + 1);
	cr_expect_eq(eval_in(&w, "dwell.p99 > 20ms").truth, TRI_TRUE);
	cr_expect_eq(eval_in(&w, "dwell.p99 != 20ms").truth, TRI_TRUE);
}

/* A is rtp.streams > 1, B is rtp.reorder.count > 1, each made true, false or unknown. */
static struct world tri_world(enum tri a, enum tri b)
{
	static const double number[] = { [TRI_FALSE] = 0, [TRI_TRUE] = 2 };
	struct world w = world_new();

	w.value[SIGNAL_RTP_STREAMS][STAT_BARE] = a == TRI_UNKNOWN ? why(VALUE_MISSING) : ok(number[a]);
	w.value[SIGNAL_RTP_REORDER][STAT_COUNT] = b == TRI_UNKNOWN ? why(VALUE_GAP) : ok(number[b]);
	return w;
}

Test(expr, c14_kleene_tables)
{
	static const enum tri and[3][3] = {
		[TRI_FALSE] = { TRI_FALSE, TRI_FALSE, TRI_FALSE },
		[TRI_TRUE] = { TRI_FALSE, TRI_TRUE, TRI_UNKNOWN },
		[TRI_UNKNOWN] = { TRI_FALSE, TRI_UNKNOWN, TRI_UNKNOWN },
	};
	static const enum tri or[3][3] = {
		[TRI_FALSE] = { TRI_FALSE, TRI_TRUE, TRI_UNKNOWN },
		[TRI_TRUE] = { TRI_TRUE, TRI_TRUE, TRI_TRUE },
		[TRI_UNKNOWN] = { TRI_UNKNOWN, TRI_TRUE, TRI_UNKNOWN },
	};
	static const enum tri not[3] = { TRI_TRUE, TRI_FALSE, TRI_UNKNOWN };

	for (enum tri a = TRI_FALSE; a <= TRI_UNKNOWN; a++)
		for (enum tri b = TRI_FALSE; b <= TRI_UNKNOWN; b++) {
			const struct world w = tri_world(a, b);

			cr_expect_eq(eval_in(&w, "rtp.streams > 1 and rtp.reorder.count > 1").truth, and[a][b]);
			cr_expect_eq(eval_in(&w, "rtp.streams > 1 or rtp.reorder.count > 1").truth, or[a][b]);
			cr_expect_eq(eval_in(&w, "not (rtp.streams > 1)").truth, not[a]);
		}
}

Test(expr, c45_no_nan_no_infinity_division_by_zero_is_unknown)
{
	static const char *const unknown[] = {
		"dwell.p99 / host.steal > 1ms", "dwell.p99 / $zero > 1ms", "dwell.p99 / 0 < 1ms",
		"not (dwell.p99 / 0 < 1ms)", "(dwell.p99 / 0) / (dwell.p99 / 0) != 1", "dwell.p99 > $nowhere",
	};
	struct world w = world_new();

	for (size_t i = 0; i < COUNT(unknown); i++)
		cr_expect_eq(truth_of(unknown[i]), TRI_UNKNOWN, "%s", unknown[i]);
	w.value[SIGNAL_RTP_STREAMS][STAT_BARE] = ok(1e200);
	cr_expect_eq(eval_in(&w, "rtp.streams * rtp.streams > 1").truth, TRI_UNKNOWN);
	w.value[SIGNAL_RTP_STREAMS][STAT_BARE] = ok(__builtin_nan(""));
	cr_expect_eq(eval_in(&w, "rtp.streams != 1").truth, TRI_UNKNOWN);
	cr_expect_eq(eval_in(&w, "known(rtp.streams)").truth, TRI_FALSE);
	w.value[SIGNAL_RTP_STREAMS][STAT_BARE] = ok(__builtin_inf());
	cr_expect_eq(eval_in(&w, "rtp.streams > 1").truth, TRI_UNKNOWN);
}

Test(expr, c07_few_samples_are_unknown_and_the_lenient_truth_says_what_the_few_say)
{
	struct world w = world_new();
	struct expr_result r;

	w.value[SIGNAL_DWELL][STAT_P99] = few(900 * MS, 3, 200);
	r = eval_in(&w, "dwell.p99 > 20ms");
	cr_expect_eq(r.truth, TRI_UNKNOWN);
	cr_expect_eq(r.lenient, TRI_TRUE);
	cr_expect(r.few);
	cr_expect_eq(r.have, 3);
	cr_expect_eq(r.need, 200);
	w.value[SIGNAL_DWELL][STAT_P99] = few(2 * MS, 3, 200);
	cr_expect_eq(eval_in(&w, "dwell.p99 > 20ms").lenient, TRI_FALSE);
	cr_expect_eq(eval_in(&w, "not (dwell.p99 > 20ms)").lenient, TRI_TRUE);
	w.value[SIGNAL_DWELL][STAT_P99] = few(0, 0, 200);
	cr_expect_eq(eval_in(&w, "dwell.p99 > 20ms").lenient, TRI_UNKNOWN, "none at all say nothing");
	w.value[SIGNAL_DWELL][STAT_P99] = few(2 * MS, 150, 200);
	w.value[SIGNAL_RUNQ][STAT_P99] = few(2 * MS, 10, 100);
	r = eval_in(&w, "dwell.p99 > 20ms and runq.p99 > 1ms");
	cr_expect_eq(r.have, 10, "the one farthest from enough");
	cr_expect_eq(r.need, 100);
}

Test(expr, reasons_are_told_apart)
{
	struct world w = world_new();
	struct expr_result r;

	w.value[SIGNAL_DWELL][STAT_P99] = why(VALUE_MISSING);
	r = eval_in(&w, "dwell.p99 > 20ms and rtp.loss > 5%");
	cr_expect(r.missing && !r.few && !r.gap && !r.never && !r.na);
	cr_expect_eq(r.missing_signal, SIGNAL_DWELL);
	w.value[SIGNAL_RTP_LOSS][STAT_BARE] = why(VALUE_NEVER);
	r = eval_in(&w, "dwell.p99 > 20ms and rtp.loss > 5%");
	cr_expect(r.na, "can never be true without RTP");
	r = eval_in(&w, "dwell.p99 > 20ms or rtp.loss > 5%");
	cr_expect(r.never && !r.na);
	cr_expect(eval_in(&w, "not (rtp.loss > 5%)").na);
	w.value[SIGNAL_DWELL][STAT_P99] = why(VALUE_GAP);
	cr_expect(eval_in(&w, "dwell.p99 > 20ms").gap);
}

Test(expr, errors_name_the_column_and_what_was_expected)
{
	static const struct { const char *text; unsigned int column; const char *part; } cases[] = {
		{ "", 1, "found the end" },
		{ "dwell.p99 >", 12, "found the end" },
		{ "dwell.p99", 1, "expected a comparison, found a duration" },
		{ "dwell.p99 > 5%", 11, "found a duration and a percentage" },
		{ "dwell.p99 > 10", 11, "found a duration and a plain number" },
		{ "rtp.loss > 1", 10, "found a percentage and a plain number" },
		{ "dwell.p99 > 10ms + 5%", 18, "found a duration and a percentage" },
		{ "dwell.p99 * dwell.p99 > 1s", 11, "found a duration and a duration" },
		{ "dwell.p99 > 10ms > 5ms", 18, "parentheses may help" },
		{ "not dwell.p99 > 10ms", 1, "not (a > b)" },
		{ "dwell.p99 and rtp.loss > 5%", 11, "expected true or false on both sides" },
		{ "dwel.p99 > 10ms", 1, "did you mean \"dwell\"" },
		{ "dwell.p98 > 10ms", 1, "one of p50 p90 p99" },
		{ "dwell > 10ms", 1, "expected a statistic after \"dwell\"" },
		{ "rtp.loss.p99 > 10ms", 1, "expected nothing after \"rtp.loss\"" },
		{ "dwell.share.runq > 50%", 1, "dwell.share.runq is not supported yet" },
		{ "rtp.loss > 5% and cpu.throttled > 1%", 19, "cpu.throttled is not supported yet" },
		{ "irq2app.p99 > 1ms", 1, "irq2app.p99 is not supported yet" },
		{ "drops.reason[\"X\"].rate > 1/s", 1, "drops.reason is not supported yet" },
		{ "dwell.p99 > 10ms && rtp.loss > 5%", 18, "did you mean \"and\"" },
		{ "dwell.p99 = 10ms", 11, "did you mean \"==\"" },
		{ "! (dwell.p99 > 10ms)", 1, "did you mean \"not\"" },
		{ "dwell.p99[3s > 10ms", 14, "expected \"]\"" },
		{ "dwell.p99[3] > 10ms", 11, "expected a window" },
		{ "dwell.p99[1ms] > 10ms", 11, "window of 1s to 10m" },
		{ "dwell.p99[11m] > 10ms", 11, "window of 1s to 10m" },
		{ "dwell.over > 5%", 12, "expected \"(\"" },
		{ "dwell.over(5%) > 5%", 12, "expected a duration" },
		{ "(dwell.p99 > 10ms", 18, "expected \")\"" },
		{ "dwell.p99 > 10ms)", 17, "expected an operator or the end" },
		{ "dwell.p99 > 10 ms", 16, "expected an operator or the end" },
		{ "dwell.p99 > 10parsec", 13, "a quantity with a unit" },
		{ "dwell.p99 > 1.2.3ms", 13, "a quantity" },
		{ "known(5) or dwell.p99 > 1s", 7, "expected a signal" },
		{ "dwell.p99 > $", 13, "found \"$\"" },
		{ "dwell.p99 > $slow.x", 13, "a parameter name" },
		{ "dwell.p99 > 10ms or\x01", 20, "found \"?\"" },
		{ "completely.unlike.anything > 1", 1, "expected a signal" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct expr_error error = { 0 };
		struct expr e;

		cr_expect_eq(expr_parse(cases[i].text, &e, &error), -22, "%s", cases[i].text);
		cr_expect_eq(error.column, cases[i].column, "%s: column %u, \"%s\"", cases[i].text, error.column,
			     error.text);
		cr_expect_not_null(strstr(error.text, cases[i].part), "%s: \"%s\"", cases[i].text, error.text);
	}
}

static int parse_quietly(const char *text)
{
	struct expr_error error = { 0 };
	struct expr e;
	const int r = expr_parse(text, &e, &error);

	cr_assert(r == 0 || (r == -22 && error.column > 0 && error.text[0]), "%s", text);
	return r;
}

Test(expr, hostile_text_is_an_error_not_a_crash)
{
	static char text[20001];

	memset(text, '(', 10000);
	memset(text + 10000, ')', 10000);
	cr_expect_lt(parse_quietly(text), 0);
	text[500] = '\0';	/* short enough to be parsed: the depth limit must hold */
	cr_expect_lt(parse_quietly(text), 0);
	for (size_t i = 0; i < 500; i++)
		text[i] = i % 2 ? ' ' : '-';
	cr_expect_lt(parse_quietly(text), 0);
	text[0] = '\0';
	for (size_t i = 0; i < 120; i++)
		memcpy(text + 4 * i, "not ", 5);
	cr_expect_lt(parse_quietly(text), 0);
	strcpy(text, "1");
	for (size_t i = 0; i < 100; i++)
		strcat(text, "+1");
	strcat(text, ">1");
	cr_expect_lt(parse_quietly(text), 0, "more operands than a program holds");
	memset(text, 'a', 400);
	text[400] = '\0';
	cr_expect_lt(parse_quietly(text), 0);
	cr_expect_lt(parse_quietly("1 > $a or 1 > $b or 1 > $c or 1 > $d or 1 > $e or 1 > $f or 1 > $g or 1 > $h or 1 > $i"),
		     0, "nine parameters");
	cr_expect_lt(parse_quietly("dwell.p99 > 99999999999999999999999999999999999d"), 0);
}

Test(expr, nesting_that_people_write_is_accepted)
{
	cr_expect_eq(truth_of("((((((((((dwell.p99 > 10ms))))))))))"), TRI_TRUE);
}

static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*state >> 33);
}

/* 100 000 texts of random tokens, half of them of mostly sensible ones; what parses must also evaluate, and to a truth
 * value. The seed is fixed, so that a failure can be repeated. */
Test(expr, random_token_strings_never_crash)
{
	static const char *const tokens[] = {
		"dwell.p99", "runq.p50", "rtp.loss", "dwell.oldest", "rtp.streams", "10ms", "5%", "3", "100/s", "0", "$slow",
		"$zero", "$x", "and", "or", "not", "(", ")", "(", ")", "<", ">", ">=", "==", "!=", "+", "-", "*", "/",
		"known(dwell.p99)", "[3s]", "dwell.over(", "20ms)", "&&", ".", "[", "]", "known", "\xff", "p99", "%", "=",
		"dwell.share.runq", "9e9", "1.5h", "64KiB", "\"", "host.steal", "dwell.p99 > 1ms", "rtp.loss > 5%",
		"known(rtp.loss)", "runq.p99 < 5ms", "dwell.p99[3s] <= $slow", "dwell.over($slow)[30s] > 2%",
	};
	const struct world w = world_new();
	const struct expr_env env = { .context = &w, .term = world_term, .param = world_param };
	uint64_t seed = 20260101;
	unsigned int parsed = 0;

	for (int round = 0; round < 100000; round++) {
		const uint32_t sensible = random_next(&seed) & 1;
		const uint32_t length = 1 + random_next(&seed) % (sensible ? 6 : 24);
		struct expr_error error = { 0 };
		char text[1024] = "";
		size_t n = 0;
		struct expr e;

		for (uint32_t i = 0; i < length; i++) {
			uint32_t pick = random_next(&seed) % COUNT(tokens);

			if (sensible)
				pick = i % 2 ? 13 + pick % 2 : COUNT(tokens) - 1 - pick % 6;
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", tokens[pick],
					      random_next(&seed) % 4 ? " " : "");
		}
		if (expr_parse(text, &e, &error) < 0) {
			cr_assert(error.column > 0 && error.column <= strlen(text) + 1, "%s", text);
			continue;
		}
		const struct expr_result r = expr_eval(&e, &env);
		struct expr_comparison c[4];

		cr_assert(r.truth <= TRI_UNKNOWN && r.lenient <= TRI_UNKNOWN);
		cr_assert_leq(expr_comparisons(&e, &env, c, COUNT(c)), COUNT(c));
		parsed++;
	}
	cr_expect_gt(parsed, 1000, "the test must reach the evaluator: %u", parsed);
}

Test(expr, comparisons_for_evidence)
{
	const struct world w = world_new();
	const struct expr_env env = { .context = &w, .term = world_term, .param = world_param };
	struct expr_error error;
	struct expr_comparison c[8];
	struct expr e;

	cr_assert_eq(expr_parse("dwell.p99 > $slow / 2 and 5% <= rtp.loss and dwell.p99 - runq.p99 > 1ms and "
				"known(dwell.p50) and not (runq.p99 < -1 * 3ms)", &e, &error), 0);
	cr_assert_eq(expr_comparisons(&e, &env, c, COUNT(c)), 3);
	cr_expect_eq(c[0].term.signal, SIGNAL_DWELL);
	cr_expect_eq(c[0].op, EXPR_GT);
	cr_expect_eq(c[0].threshold, 5 * MS);
	cr_expect_eq(c[1].term.signal, SIGNAL_RTP_LOSS);
	cr_expect_eq(c[1].op, EXPR_GE, "turned round");
	cr_expect_eq(c[2].threshold, -3 * MS);
	cr_expect_eq(expr_comparisons(&e, &env, c, 1), 1);
}

Test(expr, terms_are_written_back_as_they_were_read)
{
	static const char *const terms[] = { "dwell.p99", "dwell.p99[3s]", "dwell.worst.p99", "rtp.loss", "dwell.oldest",
					     "dwell.over(20ms)[1m]" };

	for (size_t i = 0; i < COUNT(terms); i++) {
		char text[64], back[64];
		struct expr_error error;
		struct expr e;

		snprintf(text, sizeof(text), "known(%s)", terms[i]);
		cr_assert_eq(expr_parse(text, &e, &error), 0, "%s", error.text);
		cr_expect_str_eq(expr_term_format(&e.op[0].term, e.op[0].term.arg, back, sizeof(back)), terms[i]);
	}
}

Test(expr, over_and_windows_reach_the_caller)
{
	struct world w = world_new();

	eval_in(&w, "dwell.over($slow)[30s] > 1%");
	cr_expect_eq(w.over_arg, 10 * MS);
	cr_expect_eq(w.window_ns, 30000000000ULL);
	eval_in(&w, "dwell.p99 > 1ms");
	cr_expect_eq(w.window_ns, SIGNAL_WINDOW_DEFAULT_NS);
}

static bool param_dim(const void *context, const char *name, enum unit_dim *ret_dim)
{
	(void)context;
	*ret_dim = UNIT_RATIO;
	return !strcmp(name, "share");
}

Test(expr, parameters_are_checked_once_their_dimension_is_known)
{
	struct expr_error error;
	struct expr e;

	cr_assert_eq(expr_parse("dwell.p99 > $share", &e, &error), 0);
	cr_expect_lt(expr_check(&e, param_dim, NULL, &error), 0);
	cr_expect_eq(error.column, 11);
	cr_assert_eq(expr_parse("rtp.loss > $share", &e, &error), 0);
	cr_expect_eq(expr_check(&e, param_dim, NULL, &error), 0);
	cr_assert_eq(expr_parse("rtp.loss > $other", &e, &error), 0);
	cr_expect_lt(expr_check(&e, param_dim, NULL, &error), 0);
	cr_expect_not_null(strstr(error.text, "$other"));
}

Test(expr, an_error_leaves_the_output_alone)
{
	struct expr_error error;
	struct expr e;

	memset(&e, 0x5a, sizeof(e));
	cr_expect_lt(expr_parse("dwell.p99 >", &e, &error), 0);
	cr_expect_eq(e.op_count, 0x5a5a);
	cr_expect_eq(expr_parse("dwell.p99[1m] > dwell.p99[3s]", &e, &error), 0);
	cr_expect_eq(expr_longest_window_ns(&e), 60000000000ULL);
}
