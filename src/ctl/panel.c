/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "panel.h"

#include <stdio.h>
#include <string.h>

#include "bars.h"
#include "big.h"
#include "reply.h"

#define TARGETS_MAX 128
#define BIG_HEIGHT 20	/* below it the rows are worth more than large letters */

struct view {
	struct text *out;
	const struct term *term;
	const json_t *status, *histograms;
	const struct panel *panel;
	size_t used;		/* lines so far */
};

static struct line begin(struct view *v)
{
	v->used++;
	return line_start(v->out, v->term);
}

static void blank(struct view *v)
{
	v->used++;
	text_put(v->out, "\n");
}

static bool room(const struct view *v, size_t lines)
{
	return v->used + lines <= v->term->height;
}

static const char *dot(const struct view *v)
{
	return v->term->utf8 ? " · " : ", ";
}

/* ---- verdict ---- */

struct headline { const char *verdict, *big, *color, *sentence; };

static struct headline headline_of(const struct view *v)
{
	static const struct headline lines[] = {
		{ "ok", "OK", TERM_BOLD_GREEN, "no queueing here, no harm from the network" },
		{ "idle", "OK", TERM_BOLD_GREEN, "idle: too few packets to judge" },
		{ "server", "ALERT", TERM_BOLD_RED, "server: this host queues the packets" },
		{ "network", "ALERT", TERM_BOLD_BLUE, "network: it hurts the packets, this host does not queue them" },
		{ "mixed", "ALERT", TERM_BOLD_RED, "mixed: this host queues packets and the network hurts them" } };
	const char *verdict = reply_string(v->status, "verdict");
	size_t i;

	for (i = 0; v->status && i < sizeof(lines) / sizeof(lines[0]); i++)
		if (strcmp(verdict, lines[i].verdict) == 0)
			return lines[i];
	return (struct headline){ "unknown", "UNKNOWN", TERM_BOLD_YELLOW,
				  v->status ? "unknown: what is needed to judge is not measured" : "no answer from dwelld" };
}

/* "act · last 10s · 15:48:31Z" */
static void mode_line(const struct view *v, char *buf, size_t size)
{
	const char *now = reply_string(v->status, "now");
	char cell[REPLY_CELL];

	snprintf(buf, size, "mode %s%slast %s%s%.8s", reply_string(v->status, "mode"), dot(v),
		 reply_cell_ns(v->status, "window_ns", cell), dot(v), strlen(now) > 19 ? now + 11 : "-");
}

static void host_line(const struct view *v, char *buf, size_t size)
{
	char busy[REPLY_CELL], steal[REPLY_CELL], late[REPLY_CELL];

	snprintf(buf, size, "cpu %s busy%ssteal %s%ssoftirq %s", reply_cell_ratio(v->status, "host.cpu.busy", busy),
		 dot(v), reply_cell_ratio(v->status, "host.steal", steal), dot(v),
		 reply_cell_ns(v->status, "host.softirq.wait.p99_ns", late));
}

/* Rungs, a weak one with a mark; "dwell fifo~ runq wakeup". */
static void probe_line(const struct view *v, char *buf, size_t size)
{
	const json_t *list = reply_at(v->status, "probes"), *p;
	size_t i, used = 0;

	snprintf(buf, size, "no probes");
	json_array_foreach(list, i, p) {
		const bool on = reply_true(p, "attached");

		if (used >= size)
			break;
		used += (size_t)snprintf(buf + used, size - used, "%s%s %s%s", i ? " " : "", reply_string(p, "signal"),
					 on ? reply_string(p, "rung") : "-", on && !reply_true(p, "exact") ? "~" : "");
	}
}

static void self_line(const struct view *v, char *buf, size_t size)
{
	char cell[REPLY_CELL], rss[32] = "-";
	double bytes;

	if (reply_number(v->status, "self.rss_bytes", &bytes))
		snprintf(rss, sizeof(rss), "%.1f MiB", bytes / 1048576);
	snprintf(buf, size, "dwelld %s%s%s of a core%s%s", reply_string(v->status, "version"), dot(v),
		 reply_cell_ratio(v->status, "self.cpu_share", cell), dot(v), rss);
}

static void put_verdict(struct view *v)
{
	const struct headline h = headline_of(v);
	const size_t big = big_width(h.big) + 4;
	const size_t sentence = text_width(h.sentence);
	const bool beside = v->term->width >= big + (sentence > 44 ? sentence : 44);
	char side[BIG_ROWS][256];
	struct line l;
	size_t i;

	memset(side, 0, sizeof(side));
	snprintf(side[0], sizeof(side[0]), "%s", h.sentence);
	if (v->status) {
		mode_line(v, side[1], sizeof(side[1]));
		host_line(v, side[2], sizeof(side[2]));
		probe_line(v, side[3], sizeof(side[3]));
		self_line(v, side[4], sizeof(side[4]));
	} else {
		snprintf(side[2], sizeof(side[2]), "%.*s", (int)strcspn(v->panel->trouble, "\n"),
			 v->panel->trouble);
	}
	if (v->term->height >= BIG_HEIGHT && v->term->width >= big) {
		blank(v);
		for (i = 0; i < BIG_ROWS; i++) {
			l = begin(v);
			line_gap(&l, 2);
			big_row(&l, h.color, h.big, i);
			line_gap(&l, 2);
			if (beside)
				line_put(&l, i == 0 ? h.color : TERM_PLAIN, side[i]);
			line_end(&l);
		}
		if (beside)
			return;
	} else {
		l = begin(v);
		line_put(&l, h.color, h.big);
		line_end(&l);
	}
	for (i = 0; i < 3; i++) {
		if (!side[i][0])
			continue;
		l = begin(v);
		line_gap(&l, v->term->height >= BIG_HEIGHT ? 2 : 0);
		line_put(&l, i == 0 ? h.color : TERM_PLAIN, side[i]);
		line_end(&l);
	}
}

/* ---- alerts and hooks ---- */

static bool wanted(const struct view *v, const json_t *row, const char *key)
{
	return !v->panel->target || reply_is(row, key, v->panel->target);
}

static void detail(struct view *v, const char *text)
{
	struct line l;

	if (!text[0] || !room(v, 1))
		return;
	l = begin(v);
	line_gap(&l, 12);
	line_put(&l, TERM_PLAIN, text);
	line_end(&l);
}

static void put_alert(struct view *v, const json_t *rule)
{
	const bool firing = reply_is(rule, "state", "firing");
	char text[600], age[REPLY_CELL];
	struct line l = begin(v);

	line_gap(&l, 2);
	line_fit(&l, firing ? TERM_BOLD_RED : TERM_YELLOW, reply_string(rule, "state"), 10, TEXT_LEFT);
	line_put(&l, TERM_BOLD, reply_string(rule, "name"));
	line_put(&l, TERM_PLAIN, " on ");
	line_put(&l, TERM_BOLD, reply_string(rule, "target"));
	snprintf(text, sizeof(text), "%s%s%s%s", dot(v), reply_string(rule, "severity"), dot(v),
		 reply_cell_ns(rule, "state_age_ns", age));
	line_put(&l, TERM_PLAIN, text);
	line_end(&l);
	if (!firing)
		return;
	detail(v, reply_string(rule, "summary"));
	detail(v, reply_evidence(rule, dot(v), text, sizeof(text)));
}

static bool is_alert(const json_t *rule)
{
	return (reply_is(rule, "state", "firing") || reply_is(rule, "state", "mitigated") ||
		reply_is(rule, "state", "pending") || reply_is(rule, "state", "flapping")) &&
	       json_array_size(reply_at(rule, "inhibited_by")) == 0;
}

static void put_hook(struct view *v, const json_t *h)
{
	const char *last = reply_string(h, "last_result"), *why = reply_string(h, "why");
	char text[900];
	struct line l = begin(v);

	line_gap(&l, 2);
	line_fit(&l, TERM_CYAN, "hook", 10, TEXT_LEFT);
	line_put(&l, TERM_BOLD, reply_string(h, "name"));
	snprintf(text, sizeof(text), " for %s%s%s%s%s%s%s", reply_string(h, "target"), dot(v), reply_string(h, "state"),
		 last[0] ? dot(v) : "", last, why[0] ? dot(v) : "", why);
	line_put(&l, TERM_PLAIN, text);
	line_end(&l);
}

/* Without an alert: why the verdict may be unknown. */
static void put_first_unknown(struct view *v)
{
	const json_t *rows = reply_at(v->status, "rules"), *row;
	char text[600], why[256];
	size_t i;

	json_array_foreach(rows, i, row) {
		if (!reply_is(row, "state", "unknown") || !wanted(v, row, "target"))
			continue;
		snprintf(text, sizeof(text), "no alert; unknown: %s on %s%s%s", reply_string(row, "name"),
			 reply_string(row, "target"), dot(v), reply_why(row, why, sizeof(why)));
		detail(v, text);
		return;
	}
	detail(v, "no alert");
}

/* At most half of the screen; the histograms want the rest. */
static void put_alerts(struct view *v)
{
	const size_t until = v->used + (v->term->height - v->used) / 2;
	const json_t *rows, *row;
	size_t i, hidden = 0, shown = 0;
	char text[64];

	if (room(v, 1) && v->term->height >= BIG_HEIGHT)
		blank(v);
	rows = reply_at(v->status, "rules");
	json_array_foreach(rows, i, row) {
		if (!is_alert(row) || !wanted(v, row, "target"))
			continue;
		if (v->used + 3 > until && shown)
			hidden++;
		else if (room(v, 1)) {
			put_alert(v, row);
			shown++;
		}
	}
	if (hidden) {
		snprintf(text, sizeof(text), "and %zu more alerts", hidden);
		detail(v, text);
	} else if (!shown) {
		put_first_unknown(v);
	}
	rows = reply_at(v->status, "hooks");
	json_array_foreach(rows, i, row)
		if (room(v, 1) && wanted(v, row, "target") && !reply_is(row, "state", "idle"))
			put_hook(v, row);
}

/* ---- targets ---- */

static const json_t *histogram_of(const struct view *v, const json_t *target)
{
	const json_t *rows = reply_at(v->histograms, "targets"), *row;
	size_t i;

	json_array_foreach(rows, i, row)
		if (reply_is(row, "name", reply_string(target, "name")))
			return row;
	return NULL;
}

static double rate_of(const json_t *target)
{
	double rate;

	return reply_number(target, "signals.dwell.rate", &rate) ? rate : 0;
}

/* host is all sockets together: it says more than its parts only when it is alone. */
static bool shown(const struct view *v, const json_t *t, size_t others)
{
	if (v->panel->target)
		return reply_is(t, "name", v->panel->target);
	if (reply_is(t, "name", "host"))
		return others == 0;
	if (reply_is(t, "name", "other") || reply_is(t, "name", "self"))
		return rate_of(t) > 0;
	return true;
}

/* Those in trouble first, then the busy ones. */
static bool comes_before(const json_t *a, const json_t *b)
{
	const size_t ca = json_array_size(reply_at(a, "causes")), cb = json_array_size(reply_at(b, "causes"));

	return (ca > 0) != (cb > 0) ? ca > 0 : rate_of(a) > rate_of(b);
}

static size_t choose(const struct view *v, const json_t *ret[TARGETS_MAX])
{
	const json_t *list = reply_at(v->status, "targets"), *t;
	size_t i, j, n = 0, others = 0;

	json_array_foreach(list, i, t)
		others += !reply_is(t, "name", "host") && !reply_is(t, "name", "other") && !reply_is(t, "name", "self");
	json_array_foreach(list, i, t) {
		if (!shown(v, t, others) || n == TARGETS_MAX)
			continue;
		for (j = n++; j > 0 && comes_before(t, ret[j - 1]); j--)
			ret[j] = ret[j - 1];
		ret[j] = t;
	}
	return n;
}

static void put_title(struct view *v, const json_t *t)
{
	const char *verdict = reply_string(t, "verdict");
	char rate[REPLY_CELL], loss[REPLY_CELL], jitter[REPLY_CELL], text[256], causes[200];
	struct line l = begin(v);
	size_t right;

	reply_cell_count(t, "signals.dwell.rate", rate);
	snprintf(text, sizeof(text), "%s/s%srtp loss %s%sjitter %s", rate, dot(v),
		 reply_cell_ratio(t, "signals.rtp.loss", loss), dot(v), reply_cell_ns(t, "signals.rtp.jitter_ns", jitter));
	right = text_width(text) + 2;
	line_gap(&l, 2);
	line_fit(&l, TERM_BOLD, reply_string(t, "name"),
		 text_width(reply_string(t, "name")) < 26 ? text_width(reply_string(t, "name")) : 26, TEXT_MIDDLE);
	line_gap(&l, 2);
	line_put(&l, term_verdict_color(verdict), verdict);
	reply_list(t, "causes", causes, sizeof(causes));
	if (causes[0] && l.left > right + 14) {
		line_put(&l, TERM_PLAIN, ": ");
		line_fit(&l, TERM_PLAIN, causes, text_width(causes) < l.left - right - 2 ? text_width(causes) :
			 l.left - right - 2, TEXT_LEFT);
	}
	if (l.left > right) {
		line_until(&l, right);
		line_put(&l, TERM_PLAIN, text);
	}
	line_end(&l);
}

/* The numbers beside row 0.. of the bars. */
static void put_numbers(struct line *l, const json_t *t, size_t row)
{
	static const struct { const char *label, *path; } items[] = {
		{ "p50", "signals.dwell.p50_ns" }, { "p99", "signals.dwell.p99_ns" },
		{ "max", "signals.dwell.max_ns" }, { "old", "signals.dwell.oldest_ns" },
		{ "runq", "signals.runq.p99_ns" } };
	char cell[REPLY_CELL];
	size_t i;

	for (i = row * 2; i < row * 2 + 2; i++) {
		line_gap(l, 2);
		if (i < sizeof(items) / sizeof(items[0])) {
			line_fit(l, TERM_DIM, items[i].label, 4, TEXT_LEFT);
			line_fit(l, i == 1 ? TERM_BOLD : TERM_PLAIN, reply_cell_ns(t, items[i].path, cell), 6, TEXT_RIGHT);
		} else {
			line_fit(l, TERM_DIM, "drop", 4, TEXT_LEFT);
			line_fit(l, TERM_PLAIN, reply_cell_drops(t, cell), 6, TEXT_RIGHT);
		}
	}
}

static size_t octave_columns(const struct view *v)
{
	return v->term->width >= 2 + 2 * BARS_OCTAVES + 24 ? 2 : 1;
}

static void put_target(struct view *v, const json_t *t, size_t rows)
{
	const bool bad = reply_is(t, "verdict", "server") || reply_is(t, "verdict", "mixed");
	const struct bars b = bars_read(reply_at(histogram_of(v, t), "dwell"));
	const struct bars_look look = { rows, octave_columns(v), TERM_CYAN, bad ? TERM_RED : TERM_YELLOW };
	struct line l;
	size_t i;

	put_title(v, t);
	for (i = 0; i < rows; i++) {
		l = begin(v);
		line_gap(&l, 2);
		if (b.known && b.total > 0)
			bars_row(&l, &b, &look, i);
		else
			line_fit(&l, TERM_DIM, i + 1 < rows ? "" : b.known ? "nothing read" : "not known",
				 BARS_OCTAVES * look.columns_each, TEXT_LEFT);
		put_numbers(&l, t, i);
		line_end(&l);
	}
}

static void put_axis(struct view *v, size_t hidden)
{
	struct line l = begin(v);
	char text[64];

	line_gap(&l, 2);
	bars_axis(&l, octave_columns(v));
	line_gap(&l, 2);
	if (hidden)
		snprintf(text, sizeof(text), "%zu more targets", hidden);
	else
		snprintf(text, sizeof(text), v->term->color ? "slowest 1%% coloured" : "dwell, log scale");
	line_put(&l, TERM_DIM, text);
	line_end(&l);
}

static void put_targets(struct view *v)
{
	const json_t *list[TARGETS_MAX];
	const size_t n = choose(v, list);
	size_t rows = 3, gap = 1, i, room_left;

	if (!room(v, 3))
		return;
	room_left = v->term->height - v->used - 1;	/* the axis */
	while (rows > 1 && n * (1 + rows + gap) > room_left) {
		if (gap && n * (1 + rows) <= room_left)
			gap = 0;
		else
			rows--;
	}
	if (n * (1 + rows + gap) > room_left)
		gap = 0;
	for (i = 0; i < n && room(v, gap + 1 + rows + 1); i++) {
		if (gap)
			blank(v);
		put_target(v, list[i], rows);
	}
	if (n == 0)
		detail(v, "no targets: nothing here reads UDP yet");
	else
		put_axis(v, n - i);
}

void panel_draw(struct text *out, const struct term *term, const struct panel *p)
{
	struct view v = { .out = out, .term = term, .panel = p, .status = reply_at(p->answer, "status"),
			  .histograms = reply_at(p->answer, "histograms") };

	put_verdict(&v);
	if (!v.status)
		return;
	put_alerts(&v);
	put_targets(&v);
}
