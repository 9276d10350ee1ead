/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "readers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "id_table.h"
#include "signal.h"
#include "window.h"

struct reader_row {
	uint32_t tid;
	uint32_t last[HIST_COARSE_SLOTS];
};

/* Everything of one window length. */
struct reader_window {
	struct window clock;
	struct window_hist hist[READERS_MAX];
	uint64_t count[READERS_MAX], p99_ns[READERS_MAX];	/* of hist, kept as it changes */
	uint32_t words[];
};

struct readers {
	struct reader_window *window[SIGNAL_WINDOWS_MAX];
	unsigned int windows;
	struct id_table table;
	struct id_row id[READERS_MAX];
	struct reader_row row[READERS_MAX];
	struct window_delta delta;	/* scratch */
	uint32_t untracked;
};

static struct reader_window *reader_window_new(uint64_t length_ns, uint64_t tick_ns)
{
	struct reader_window *w;
	struct window clock;
	unsigned int i;
	size_t words;

	window_init(&clock, length_ns, tick_ns, READERS_CELLS);
	words = window_hist_words(&clock, HIST_COARSE);
	w = calloc(1, sizeof(*w) + READERS_MAX * words * sizeof(w->words[0]));
	if (!w)
		return NULL;
	w->clock = clock;
	for (i = 0; i < READERS_MAX; i++)
		window_hist_init(&w->hist[i], HIST_COARSE, w->words + i * words);
	return w;
}

struct readers *readers_new(const uint64_t *window_ns, unsigned int windows, uint64_t tick_ns)
{
	struct readers *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	id_table_init(&r->table, r->id, READERS_MAX);
	if (readers_reload(r, window_ns, windows, tick_ns) < 0) {
		readers_free(r);
		return NULL;
	}
	return r;
}

void readers_free(struct readers *r)
{
	unsigned int i;

	for (i = 0; r && i < r->windows; i++)
		free(r->window[i]);
	free(r);
}

static struct reader_window *readers_kept(const struct readers *r, uint64_t length_ns, uint64_t tick_ns)
{
	unsigned int i;

	for (i = 0; i < r->windows; i++)
		if (r->window[i]->clock.length_ns == length_ns && r->window[i]->clock.tick_ns == tick_ns)
			return r->window[i];
	return NULL;
}

int readers_reload(struct readers *r, const uint64_t *window_ns, unsigned int windows, uint64_t tick_ns)
{
	struct reader_window *next[SIGNAL_WINDOWS_MAX] = { 0 };
	bool made[SIGNAL_WINDOWS_MAX] = { 0 };
	unsigned int i, k;

	for (i = 0; i < windows; i++) {
		next[i] = readers_kept(r, window_ns[i], tick_ns);
		if (next[i])
			continue;
		next[i] = reader_window_new(window_ns[i], tick_ns);
		made[i] = true;
		if (next[i])
			continue;
		for (k = 0; k < i; k++)
			if (made[k])
				free(next[k]);
		return -ENOMEM;
	}
	for (i = 0; i < r->windows; i++) {
		for (k = 0; k < windows && next[k] != r->window[i]; k++)
			;
		if (k == windows)
			free(r->window[i]);
	}
	memcpy(r->window, next, sizeof(next));
	r->windows = windows;
	return 0;
}

static void reader_clear(struct readers *r, uint16_t row)
{
	unsigned int i;

	for (i = 0; i < r->windows; i++) {
		window_hist_clear(&r->window[i]->hist[row]);
		r->window[i]->count[row] = r->window[i]->p99_ns[row] = 0;
	}
}

static void reader_measure(struct reader_window *w, uint16_t row)
{
	w->count[row] = hist_count(w->hist[row].sum, HIST_COARSE);
	w->p99_ns[row] = hist_percentile_ns(w->hist[row].sum, HIST_COARSE, 990);
}

static bool reader_row_free(struct readers *r)
{
	uint16_t i;

	for (i = 0; i < r->table.high; i++) {
		if (!r->id[i].used || r->id[i].present)
			continue;
		id_table_remove(&r->table, i);
		return true;
	}
	return false;
}

/* A row for a thread that has none; its counts so far are the baseline. */
static void reader_begin(struct readers *r, const struct sample_reader *from)
{
	uint16_t row = id_table_add(&r->table, from->id);

	if (row == ID_NONE && reader_row_free(r))
		row = id_table_add(&r->table, from->id);
	if (row == ID_NONE) {
		r->untracked++;
		return;
	}
	reader_clear(r, row);
	memcpy(r->row[row].last, from->slot, sizeof(r->row[row].last));
	r->row[row].tid = from->tid;
	r->id[row].target = from->target;
	r->id[row].present = true;
}

static void reader_step(struct readers *r, uint16_t row, const struct sample_reader *from)
{
	unsigned int i;

	r->row[row].tid = from->tid;
	r->id[row].target = from->target;
	if (!memcmp(r->row[row].last, from->slot, sizeof(r->row[row].last)))
		return;
	if (!window_delta_coarse(&r->delta, r->row[row].last, from->slot)) {
		reader_clear(r, row);
		return;
	}
	for (i = 0; i < r->windows; i++) {
		window_hist_add(&r->window[i]->hist[row], &r->window[i]->clock, &r->delta);
		reader_measure(r->window[i], row);
	}
}

/* Old cells leave; threads that ended and have none left leave too. */
static void readers_roll(struct readers *r)
{
	unsigned int i, kept;
	uint16_t row;

	for (row = 0; row < r->table.high; row++) {
		if (!r->id[row].used)
			continue;
		for (i = kept = 0; i < r->windows; i++) {
			struct reader_window *w = r->window[i];

			if (w->count[row] && w->clock.left_count) {
				window_hist_roll(&w->hist[row], &w->clock);
				reader_measure(w, row);
			}
			kept += w->count[row] != 0;
		}
		if (!r->id[row].present && !kept)
			id_table_remove(&r->table, row);
	}
}

void readers_tick(struct readers *r, const struct sample *s)
{
	unsigned int i;

	if (s->gap)
		id_table_init(&r->table, r->id, READERS_MAX);
	for (i = 0; i < r->windows; i++) {
		if (s->gap)
			window_void(&r->window[i]->clock);
		window_advance(&r->window[i]->clock, s->now_ns);
	}
	readers_roll(r);
	/* mark first, so that a new thread never takes the row of one that is still there */
	id_table_absent(&r->table);
	for (i = 0; i < s->reader_count; i++) {
		const uint16_t row = id_table_find(&r->table, s->reader[i].id);

		if (row != ID_NONE)
			r->id[row].present = true;
	}
	r->untracked = 0;
	for (i = 0; i < s->reader_count; i++) {
		const struct sample_reader *from = &s->reader[i];
		const uint16_t row =
			from->target < SAMPLE_TARGETS ? id_table_find(&r->table, from->id) : ID_NONE;

		if (row != ID_NONE)
			reader_step(r, row, from);
		else if (from->target < SAMPLE_TARGETS)
			reader_begin(r, from);
	}
	id_table_list(&r->table);
}

struct worst { uint64_t p99_ns, count; uint16_t row; };

static void worst_of_slot(const struct readers *r, const struct reader_window *w, int slot,
			  struct worst best[2])
{
	uint16_t i;

	for (i = r->table.first[slot]; i != ID_NONE; i = r->id[i].next) {
		struct worst *b = &best[w->count[i] >= best[1].count];

		if (w->count[i] && (b->row == ID_NONE || w->p99_ns[i] > b->p99_ns)) {
			b->p99_ns = w->p99_ns[i];
			b->row = i;
		}
		if (w->count[i] > best[0].count)
			best[0].count = w->count[i];
	}
}

struct value readers_worst(const struct readers *r, int slot, unsigned int window, uint32_t need,
			   uint32_t *ret_tid)
{
	/* [0]: threads with too few samples, count is the most of any thread; [1]: enough, count is what is
	 * enough */
	struct worst best[2] = { { .row = ID_NONE }, { .row = ID_NONE, .count = need } };
	const struct reader_window *w = r->window[window];
	const struct worst *b;
	int i;

	if (slot != SAMPLE_HOST)
		worst_of_slot(r, w, slot, best);
	for (i = 0; slot == SAMPLE_HOST && i < SAMPLE_TARGETS; i++)
		worst_of_slot(r, w, i, best);
	b = &best[best[1].row != ID_NONE];
	if (ret_tid)
		*ret_tid = b->row != ID_NONE ? r->row[b->row].tid : 0;
	return (struct value){
		.why = b == &best[1] ? VALUE_OK : VALUE_FEW,
		.number = (double)b->p99_ns,
		.have = b == &best[1] ? w->count[b->row] : best[0].count,
		.need = need,
	};
}

uint64_t readers_covered_ns(const struct readers *r, unsigned int window)
{
	return window_covered_ns(&r->window[window]->clock, 0);
}

uint32_t readers_untracked(const struct readers *r)
{
	return r->untracked;
}
