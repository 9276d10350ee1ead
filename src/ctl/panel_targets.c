/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "panel_view.h"

#include <stdio.h>
#include <string.h>

#include "bars.h"
#include "reply.h"

#define TARGETS_MAX 128

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

void panel_targets(struct view *v)
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
