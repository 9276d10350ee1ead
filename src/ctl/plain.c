/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plain.h"

#include <stdio.h>
#include <string.h>

#include "reply.h"

#define UNKNOWN_ROWS 12		/* then "and N more" */

static const char *or_dash(const char *text)
{
	return text[0] ? text : "-";
}

/* "VERDICT  mode act, window 10s, dwelld 0.1.0" */
static void put_head(struct text *out, const struct term *term, const json_t *status)
{
	struct line l = line_start(out, term);
	const char *verdict = reply_string(status, "verdict");
	char upper[16], text[160], cell[REPLY_CELL];
	size_t i;

	snprintf(upper, sizeof(upper), "%s", verdict[0] ? verdict : "unknown");
	for (i = 0; upper[i]; i++)
		if (upper[i] >= 'a' && upper[i] <= 'z')
			upper[i] = (char)(upper[i] - 'a' + 'A');
	line_fit(&l, term_verdict_color(verdict), upper, 9, TEXT_LEFT);
	snprintf(text, sizeof(text), "mode %s, last %s, dwelld %s, %s", or_dash(reply_string(status, "mode")),
		 reply_cell_ns(status, "window_ns", cell), or_dash(reply_string(status, "version")),
		 or_dash(reply_string(status, "now")));
	line_put(&l, TERM_PLAIN, text);
	line_end(&l);
}

static void put_host(struct text *out, const struct term *term, const json_t *status)
{
	static const struct { const char *label, *path; char kind; const char *after; } items[] = {
		{ "cpu busy", "host.cpu.busy", '%', "" },
		{ "steal", "host.steal", '%', "" },
		{ "softirq p99", "host.softirq.wait.p99_ns", 't', "" },
		{ "nic drops", "host.nic_drops.rate", 'n', "/s" },
		{ "squeezed", "host.squeezed.rate", 'n', "/s" } };
	struct line l = line_start(out, term);
	char cell[REPLY_CELL];
	size_t i;

	line_fit(&l, TERM_DIM, "host", 9, TEXT_LEFT);
	for (i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
		if (items[i].kind == '%')
			reply_cell_ratio(status, items[i].path, cell);
		else if (items[i].kind == 't')
			reply_cell_ns(status, items[i].path, cell);
		else
			reply_cell_count(status, items[i].path, cell);
		line_put(&l, TERM_DIM, items[i].label);
		line_gap(&l, 1);
		line_put(&l, TERM_PLAIN, cell);
		line_put(&l, TERM_PLAIN, strcmp(cell, "-") == 0 ? "" : items[i].after);
		line_gap(&l, 2);
	}
	line_end(&l);
}

static void put_self(struct text *out, const struct term *term, const json_t *status)
{
	struct line l = line_start(out, term);
	char text[200], cpu[REPLY_CELL], late[REPLY_CELL], rss[REPLY_CELL] = "-", maps[REPLY_CELL] = "-";
	double bytes;

	if (reply_number(status, "self.rss_bytes", &bytes))
		snprintf(rss, sizeof(rss), "%.1f MiB", bytes / 1048576);
	if (reply_number(status, "self.map_bytes", &bytes))
		snprintf(maps, sizeof(maps), "%.1f MiB", bytes / 1048576);
	snprintf(text, sizeof(text), "%s of a core, memory %s, maps %s, latest tick %s late",
		 reply_cell_ratio(status, "self.cpu_share", cpu), rss, maps,
		 reply_cell_ns(status, "self.tick_late_max_ns", late));
	line_fit(&l, TERM_DIM, "self", 9, TEXT_LEFT);
	line_put(&l, TERM_PLAIN, text);
	line_end(&l);
}

/* Width of the columns between name and causes, with the blank before each. */
#define NUMBERS_WIDTH 70

struct columns { size_t name, causes; };

static struct columns measure(const json_t *targets, size_t width)
{
	const size_t spare = width - NUMBERS_WIDTH;	/* width is at least 80 */
	struct columns c = { .name = 6 };
	const json_t *t;
	size_t i, n;

	json_array_foreach(targets, i, t) {
		n = text_width(reply_string(t, "name"));
		c.name = n > c.name ? n : c.name;
	}
	if (spare < 10 + 2 + 14) {			/* no room for causes: they stand in the section below */
		c.name = c.name > spare ? spare : c.name;
		return c;
	}
	if (c.name > spare - 2 - 14 - (spare - 26) / 3)
		c.name = spare - 2 - 14 - (spare - 26) / 3;
	c.causes = spare - c.name - 2;
	return c;
}

static void put_target_head(struct text *out, const struct term *term, struct columns c)
{
	static const struct { const char *text; size_t width; } heads[] = {
		{ "n/s", 5 },	{ "p50", 5 },  { "p99", 5 },  { "max", 5 },    { "oldest", 6 },
		{ "worst", 5 }, { "runq", 5 }, { "loss", 5 }, { "jitter", 6 }, { "drops", 5 } };
	struct line l = line_start(out, term);
	size_t i;

	line_gap(&l, c.name + 1 + 7 + 1 + 5 + 1);
	line_fit(&l, TERM_DIM, "---- dwell ----------------", 30, TEXT_LEFT);
	line_gap(&l, 1);
	line_fit(&l, TERM_DIM, "  p99", 5, TEXT_LEFT);
	line_gap(&l, 1);
	line_fit(&l, TERM_DIM, "---- rtp ---", 12, TEXT_LEFT);
	line_gap(&l, 1);
	line_fit(&l, TERM_DIM, "   /s", 5, TEXT_LEFT);
	line_end(&l);
	l = line_start(out, term);
	line_fit(&l, TERM_DIM, "target", c.name, TEXT_LEFT);
	line_gap(&l, 1);
	line_fit(&l, TERM_DIM, "verdict", 7, TEXT_LEFT);
	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		line_gap(&l, 1);
		line_fit(&l, TERM_DIM, heads[i].text, heads[i].width, TEXT_RIGHT);
	}
	if (c.causes) {
		line_gap(&l, 2);
		line_put(&l, TERM_DIM, "causes");
	}
	line_end(&l);
}

static void put_cell(struct line *l, const char *cell, size_t width)
{
	line_gap(l, 1);
	line_fit(l, strcmp(cell, "-") == 0 ? TERM_DIM : TERM_PLAIN, cell, width, TEXT_RIGHT);
}

static void put_target(struct text *out, const struct term *term, const json_t *t, struct columns c)
{
	static const struct { const char *path; size_t width; } latencies[] = {
		{ "signals.dwell.p50_ns", 5 },	  { "signals.dwell.p99_ns", 5 },       { "signals.dwell.max_ns", 5 },
		{ "signals.dwell.oldest_ns", 6 }, { "signals.dwell.worst.p99_ns", 5 }, { "signals.runq.p99_ns", 5 } };
	const char *verdict = reply_string(t, "verdict");
	struct line l = line_start(out, term);
	char cell[REPLY_CELL], causes[256];
	size_t i;

	line_fit(&l, TERM_BOLD, or_dash(reply_string(t, "name")), c.name, TEXT_MIDDLE);
	line_gap(&l, 1);
	line_fit(&l, term_verdict_color(verdict), or_dash(verdict), 7, TEXT_LEFT);
	put_cell(&l, reply_cell_count(t, "signals.dwell.rate", cell), 5);
	for (i = 0; i < sizeof(latencies) / sizeof(latencies[0]); i++)
		put_cell(&l, reply_cell_ns(t, latencies[i].path, cell), latencies[i].width);
	put_cell(&l, reply_cell_ratio(t, "signals.rtp.loss", cell), 5);
	put_cell(&l, reply_cell_ns(t, "signals.rtp.jitter_ns", cell), 6);
	put_cell(&l, reply_cell_drops(t, cell), 5);
	if (c.causes) {
		line_gap(&l, 2);
		line_fit(&l, TERM_PLAIN, reply_list(t, "causes", causes, sizeof(causes)), c.causes, TEXT_LEFT);
	}
	line_end(&l);
}

/* The catch-all rows only when something is in them. */
static bool worth_a_row(const json_t *t)
{
	double rate;

	if (!reply_is(t, "name", "other") && !reply_is(t, "name", "self"))
		return true;
	return (reply_number(t, "signals.dwell.rate", &rate) && rate > 0) ||
	       json_array_size(reply_at(t, "causes")) > 0;
}

static bool chosen(const json_t *row, const char *key, const char *target)
{
	return !target || reply_is(row, key, target);
}

static void put_targets(struct text *out, const struct term *term, const json_t *status, const char *target)
{
	const json_t *list = reply_at(status, "targets"), *t;
	const struct columns c = measure(list, term->width);
	size_t i;

	text_put(out, "\n");
	if (json_array_size(list) == 0) {
		text_put(out, "no targets: nothing on this host reads UDP, or the first reading is not done\n");
		return;
	}
	put_target_head(out, term, c);
	json_array_foreach(list, i, t)
		if (chosen(t, "name", target) && (target || worth_a_row(t)))
			put_target(out, term, t, c);
}

/* States that call for a look; unknown ones come in a section of their own. */
static bool noteworthy(const json_t *rule)
{
	static const char *const quiet[] = { "ok", "idle", "na", "unknown" };
	size_t i;

	for (i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++)
		if (reply_is(rule, "state", quiet[i]))
			return false;
	return true;
}

static void put_rule(struct text *out, const struct term *term, const json_t *rule)
{
	const struct text_wrap wrap = { 11, 11, term->width };
	char text[1024], age[REPLY_CELL], by[256];
	struct line l = line_start(out, term);
	const char *summary = reply_string(rule, "summary");

	line_fit(&l, reply_is(rule, "state", "firing") ? TERM_BOLD_RED : TERM_YELLOW, reply_string(rule, "state"), 10,
		 TEXT_LEFT);
	line_gap(&l, 1);
	line_put(&l, TERM_BOLD, reply_string(rule, "name"));
	snprintf(text, sizeof(text), " on %s: %s, %s, for %s", or_dash(reply_string(rule, "target")),
		 or_dash(reply_string(rule, "class")), or_dash(reply_string(rule, "severity")),
		 reply_cell_ns(rule, "state_age_ns", age));
	line_put(&l, TERM_PLAIN, text);
	line_end(&l);
	if (summary[0]) {
		text_repeat(out, " ", wrap.first);
		text_wrap(out, summary, wrap);
	}
	if (json_array_size(reply_at(rule, "evidence")) > 0) {
		text_repeat(out, " ", wrap.first);
		text_wrap(out, reply_evidence(rule, ", ", text, sizeof(text)), wrap);
	}
	if (json_array_size(reply_at(rule, "inhibited_by")) > 0) {
		text_repeat(out, " ", wrap.first);
		snprintf(text, sizeof(text), "inhibited by %s", reply_list(rule, "inhibited_by", by, sizeof(by)));
		text_wrap(out, text, wrap);
	}
}

static void put_rules(struct text *out, const struct term *term, const json_t *status, const char *target)
{
	const json_t *list = reply_at(status, "rules"), *rule;
	bool first = true;
	size_t i;

	json_array_foreach(list, i, rule) {
		if (!chosen(rule, "target", target) || !noteworthy(rule))
			continue;
		text_put(out, first ? "\n" : "");
		first = false;
		put_rule(out, term, rule);
	}
}

static bool same_unknown(const json_t *a, const json_t *b)
{
	char why_a[256], why_b[256];

	return reply_is(b, "state", "unknown") && strcmp(reply_string(a, "name"), reply_string(b, "name")) == 0 &&
	       strcmp(reply_why(a, why_a, sizeof(why_a)), reply_why(b, why_b, sizeof(why_b))) == 0;
}

/* One line per rule and reason, with how many targets share it. */
static void put_unknown(struct text *out, const struct term *term, const json_t *rule, size_t others)
{
	char text[640], why[256], more[40] = "";

	if (others)
		snprintf(more, sizeof(more), " and %zu more", others);
	text_fit(out, "unknown", 11, TEXT_LEFT);
	snprintf(text, sizeof(text), "%s on %s%s: %s", or_dash(reply_string(rule, "name")),
		 or_dash(reply_string(rule, "target")), more, reply_why(rule, why, sizeof(why)));
	text_wrap(out, text, (struct text_wrap){ 11, 11, term->width });
}

static void put_unknowns(struct text *out, const struct term *term, const json_t *status, const char *target)
{
	const json_t *list = reply_at(status, "rules"), *rule, *other;
	size_t i, j, before, after, rows = 0, hidden = 0;

	json_array_foreach(list, i, rule) {
		if (!reply_is(rule, "state", "unknown") || !chosen(rule, "target", target))
			continue;
		before = after = 0;
		json_array_foreach(list, j, other)
			if (j != i && chosen(other, "target", target) && same_unknown(rule, other)) {
				before += j < i;
				after += j > i;
			}
		if (before)
			continue;
		if (rows++ >= UNKNOWN_ROWS) {
			hidden++;
			continue;
		}
		text_put(out, rows == 1 ? "\n" : "");
		put_unknown(out, term, rule, after);
	}
	if (hidden)
		text_printf(out, "           and %zu more unknown, see --json\n", hidden);
}

static void put_hooks(struct text *out, const struct term *term, const json_t *status, const char *target)
{
	const json_t *list = reply_at(status, "hooks"), *h;
	char text[1024];
	bool first = true;
	size_t i;

	json_array_foreach(list, i, h) {
		const char *last = reply_string(h, "last_result"), *why = reply_string(h, "why");

		if (!chosen(h, "target", target))
			continue;
		text_put(out, first ? "\n" : "");
		first = false;
		text_fit(out, "hook", 11, TEXT_LEFT);
		snprintf(text, sizeof(text), "%s for %s: %s%s%s%s%s", or_dash(reply_string(h, "name")),
			 or_dash(reply_string(h, "target")), or_dash(reply_string(h, "state")), last[0] ? "; last: " : "",
			 last, why[0] ? "; " : "", why);
		text_wrap(out, text, (struct text_wrap){ 11, 11, term->width });
	}
}

/* Probes with what is wrong or weaker about them. */
static void put_probes(struct text *out, const struct term *term, const json_t *status)
{
	const json_t *list = reply_at(status, "probes"), *p;
	char text[640];
	double bias;
	size_t i;

	text_put(out, "\n");
	json_array_foreach(list, i, p) {
		const char *reason = reply_string(p, "reason");
		char offset[48] = "";

		if (reply_number(p, "bias_ns", &bias) && bias != 0)
			snprintf(offset, sizeof(offset), " (bias %+.1fus)", bias / 1000);
		text_fit(out, "probe", 11, TEXT_LEFT);
		snprintf(text, sizeof(text), "%s: %s%s%s%s%s", or_dash(reply_string(p, "signal")),
			 reply_true(p, "attached") ? or_dash(reply_string(p, "rung")) : "none attached",
			 reply_true(p, "attached") && !reply_true(p, "exact") ? ", not exact" : "", offset,
			 reason[0] ? "; " : "", reason);
		text_wrap(out, text, (struct text_wrap){ 11, 13, term->width });
	}
	if (json_array_size(list) == 0)
		text_put(out, "probes     none known\n");
}

void plain_status(struct text *out, const struct term *term, const json_t *status, const char *target)
{
	struct term fitted = *term;

	fitted.width = term->width < 80 ? 80 : term->width > 120 ? 120 : term->width;
	put_head(out, &fitted, status);
	put_host(out, &fitted, status);
	put_self(out, &fitted, status);
	put_targets(out, &fitted, status, target);
	put_rules(out, &fitted, status, target);
	put_unknowns(out, &fitted, status, target);
	put_hooks(out, &fitted, status, target);
	put_probes(out, &fitted, status);
}
