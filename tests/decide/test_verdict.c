/* SPDX-License-Identifier: GPL-2.0-or-later */
/* verdict: states of rules to one word per target and for the host. */
#include <criterion/criterion.h>

#include "decide/verdict.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define W SEVERITY_WARNING
#define C SEVERITY_CRITICAL

static enum verdict of(const struct verdict_rule *r, size_t n)
{
	return verdict_of_target(r, n).verdict;
}

Test(verdict, firing_classes_make_server_network_or_mixed)
{
	struct verdict_rule r[] = {
		{ 0, CLASS_SERVER, W, STATE_FIRING, false },
		{ 1, CLASS_NETWORK, W, STATE_OK, false },
		{ 2, CLASS_HOST, W, STATE_OK, false },
	};

	cr_expect_eq(of(r, 3), VERDICT_SERVER);
	r[1].state = STATE_FIRING;
	cr_expect_eq(of(r, 3), VERDICT_MIXED);
	r[0].state = STATE_PENDING;
	cr_expect_eq(of(r, 3), VERDICT_NETWORK);
	r[2].state = STATE_FIRING;
	cr_expect_eq(of(r, 3), VERDICT_MIXED, "class host counts as server");
}

Test(verdict, mitigated_and_pending_are_not_firing)
{
	const struct verdict_rule r[] = {
		{ 0, CLASS_SERVER, W, STATE_MITIGATED, false }, { 1, CLASS_SERVER, W, STATE_PENDING, false },
	};

	cr_expect_eq(of(r, 2), VERDICT_OK);
}

Test(verdict, an_unknown_server_rule_makes_unknown_but_na_and_network_do_not)
{
	struct verdict_rule r[] = {
		{ 0, CLASS_SERVER, W, STATE_NA, false }, { 1, CLASS_NETWORK, W, STATE_UNKNOWN, false },
		{ 2, CLASS_SERVER, W, STATE_OK, false },
	};

	cr_expect_eq(of(r, 3), VERDICT_OK);
	r[0].state = STATE_UNKNOWN;
	cr_expect_eq(of(r, 3), VERDICT_UNKNOWN);
	r[1].state = STATE_FIRING;
	cr_expect_eq(of(r, 3), VERDICT_NETWORK, "what fires is known");
}

Test(verdict, idle_unless_something_is_unknown)
{
	struct verdict_rule r[] = {
		{ 0, CLASS_SERVER, W, STATE_IDLE, false }, { 1, CLASS_SERVER, W, STATE_OK, false },
	};

	cr_expect_eq(of(r, 2), VERDICT_IDLE);
	r[1].state = STATE_UNKNOWN;
	cr_expect_eq(of(r, 2), VERDICT_UNKNOWN);
	cr_expect_eq(of(NULL, 0), VERDICT_OK);
}

Test(verdict, coverage_makes_no_verdict_but_turns_ok_and_idle_to_unknown_and_is_a_cause)
{
	struct verdict_rule r[] = {
		{ 4, CLASS_COVERAGE, W, STATE_FIRING, false }, { 5, CLASS_SERVER, W, STATE_OK, false },
	};
	struct verdict_result v = verdict_of_target(r, 2);

	cr_expect_eq(v.verdict, VERDICT_UNKNOWN);
	cr_assert_eq(v.cause_count, 1);
	cr_expect_eq(v.cause[0], 4);
	r[1].state = STATE_IDLE;
	cr_expect_eq(of(r, 2), VERDICT_UNKNOWN);
	r[1].state = STATE_FIRING;
	v = verdict_of_target(r, 2);
	cr_expect_eq(v.verdict, VERDICT_SERVER);
	cr_expect_eq(v.cause_count, 2);
}

Test(verdict, causes_are_ordered_by_severity_then_by_the_rules_order)
{
	const struct verdict_rule r[] = {
		{ 0, CLASS_SERVER, W, STATE_FIRING, false }, { 1, CLASS_SERVER, C, STATE_FIRING, false },
		{ 2, CLASS_NETWORK, W, STATE_FIRING, false }, { 3, CLASS_SERVER, C, STATE_FIRING, false },
	};
	const struct verdict_result v = verdict_of_target(r, COUNT(r));

	cr_assert_eq(v.cause_count, 4);
	cr_expect_eq(v.cause[0], 1);
	cr_expect_eq(v.cause[1], 3);
	cr_expect_eq(v.cause[2], 0);
	cr_expect_eq(v.cause[3], 2);
}

Test(verdict, more_causes_than_fit_keep_the_most_severe)
{
	struct verdict_rule r[VERDICT_CAUSES + 3];
	struct verdict_result v;

	for (int i = 0; i < VERDICT_CAUSES + 3; i++)
		r[i] = (struct verdict_rule){ i, CLASS_SERVER, i == VERDICT_CAUSES + 2 ? C : W, STATE_FIRING, false };
	v = verdict_of_target(r, COUNT(r));
	cr_assert_eq(v.cause_count, VERDICT_CAUSES);
	cr_expect_eq(v.cause[0], VERDICT_CAUSES + 2);
	cr_expect_eq(v.cause[1], 0);
	cr_expect_eq(v.cause[VERDICT_CAUSES - 1], VERDICT_CAUSES - 2);
}

Test(verdict, an_inhibited_rule_is_no_cause)
{
	const struct verdict_rule r[] = {
		{ 0, CLASS_SERVER, W, STATE_FIRING, true }, { 1, CLASS_HOST, W, STATE_OK, false },
	};
	const struct verdict_result v = verdict_of_target(r, 2);

	cr_expect_eq(v.verdict, VERDICT_OK);
	cr_expect_eq(v.cause_count, 0);
}

Test(verdict, an_info_rule_stands_in_status_only)
{
	const struct verdict_rule r[] = { { 0, CLASS_NETWORK, SEVERITY_INFO, STATE_FIRING, false } };

	cr_expect_eq(of(r, 1), VERDICT_OK);
}

Test(verdict, top_level_takes_the_worst_present)
{
	const enum verdict mixed[] = { VERDICT_OK, VERDICT_NETWORK, VERDICT_SERVER };
	const enum verdict server[] = { VERDICT_UNKNOWN, VERDICT_SERVER, VERDICT_IDLE };
	const enum verdict unknown[] = { VERDICT_OK, VERDICT_UNKNOWN };
	const enum verdict ok[] = { VERDICT_IDLE, VERDICT_OK };

	cr_expect_eq(verdict_of_host(mixed, 3), VERDICT_MIXED);
	cr_expect_eq(verdict_of_host(server, 3), VERDICT_SERVER);
	cr_expect_eq(verdict_of_host(unknown, 2), VERDICT_UNKNOWN);
	cr_expect_eq(verdict_of_host(ok, 2), VERDICT_OK);
	cr_expect_eq(verdict_of_host(ok, 1), VERDICT_IDLE);
	cr_expect_eq(verdict_of_host(NULL, 0), VERDICT_IDLE);
}
