/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "panel_view.h"

#include <stdio.h>
#include <string.h>

#include "big.h"
#include "reply.h"

#define BIG_HEIGHT 20	/* below it the rows are worth more than large letters */

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

void panel_draw(struct text *out, const struct term *term, const struct panel *p)
{
	struct view v = { .out = out, .term = term, .panel = p, .status = reply_at(p->answer, "status"),
			  .histograms = reply_at(p->answer, "histograms") };

	put_verdict(&v);
	if (!v.status)
		return;
	put_alerts(&v);
	panel_targets(&v);
}
