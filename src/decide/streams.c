/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "streams.h"

#include <stdlib.h>
#include <string.h>

#include "id_table.h"
#include "window.h"

#define STREAMS_RING (STREAMS_CELLS + 2)

/* 32 bits suffice: differences over 10 s, modulo 2^32. */
struct stream_cell { uint32_t expected, received; };

struct stream_row {
	uint64_t expected, received;		/* last reading */
	uint64_t last_ns, jitter_ns;
	bool jitter_known;
	struct stream_cell at[STREAMS_RING];	/* readings when the cell opened */
};

struct streams {
	uint64_t window_ns[SIGNAL_WINDOWS_MAX];
	unsigned int windows;
	struct window clock;
	struct id_table table;
	struct id_row id[STREAMS_MAX];
	struct stream_row row[STREAMS_MAX];
	struct stream_counts counts[SAMPLE_TARGETS][SIGNAL_WINDOWS_MAX];
	uint32_t jitter[SAMPLE_TARGETS][HIST_SLOTS];	/* scratch of a tick; [SAMPLE_HOST] is all streams */
	uint32_t untracked;
};

struct streams *streams_new(const uint64_t *window_ns, unsigned int windows, uint64_t tick_ns)
{
	struct streams *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	id_table_init(&s->table, s->id, STREAMS_MAX);
	window_init(&s->clock, STREAMS_CELLS * STREAMS_CELL_NS, tick_ns, STREAMS_CELLS);
	streams_reload(s, window_ns, windows);
	return s;
}

void streams_free(struct streams *s)
{
	free(s);
}

void streams_reload(struct streams *s, const uint64_t *window_ns, unsigned int windows)
{
	memset(s->counts, 0,
	       sizeof(s->counts)); /* until the next tick: by index they would be another window's */
	memcpy(s->window_ns, window_ns, windows * sizeof(*window_ns));
	s->windows = windows;
}

static void stream_begin(struct stream_row *row, const struct sample_stream *from)
{
	unsigned int i;

	for (i = 0; i < STREAMS_RING; i++)
		row->at[i] = (struct stream_cell){ (uint32_t)from->expected, (uint32_t)from->received };
}

static void stream_step(struct streams *s, const struct sample_stream *from)
{
	uint16_t i = id_table_find(&s->table, from->id);
	const bool is_new = i == ID_NONE;
	struct stream_row *row;

	if (is_new)
		i = id_table_add(&s->table, from->id);
	if (i == ID_NONE) {
		s->untracked++;
		return;
	}
	row = &s->row[i];
	if (is_new || from->expected < row->expected || from->received < row->received)
		stream_begin(row, from);
	else if (s->clock.opened)	/* the cell began with the tick before */
		row->at[window_newest(&s->clock)] = (struct stream_cell){ (uint32_t)row->expected,
									   (uint32_t)row->received };
	row->expected = from->expected;
	row->received = from->received;
	row->last_ns = from->last_ns;
	row->jitter_ns = from->jitter_ns;
	row->jitter_known = from->jitter_known;
	s->id[i].target = from->target;
	s->id[i].present = true;
}

/* Ring index of the oldest cell that still reaches into the last length_ns. */
static unsigned int first_cell(const struct window *w, uint64_t length_ns)
{
	unsigned int age;

	for (age = 0; age + 1U < w->live; age++)
		if (w->end_ns[(w->oldest + age) % w->ring] + length_ns >= w->now_ns + w->tick_ns / 2)
			break;
	return (w->oldest + age) % w->ring;
}

/* Share lost since a cell opened, 0..1. */
static double stream_loss(const struct stream_row *row, unsigned int cell)
{
	const int32_t expected = (int32_t)((uint32_t)row->expected - row->at[cell].expected);
	const int32_t received = (int32_t)((uint32_t)row->received - row->at[cell].received);

	if (expected <= 0 || received >= expected)
		return 0;
	return received <= 0 ? 1 : (double)(expected - received) / (double)expected;
}

static void stream_count(struct streams *s, const struct stream_row *row, uint16_t slot,
			 const unsigned int *cell)
{
	unsigned int i;

	if (row->jitter_known)
		s->jitter[slot][hist_slot(row->jitter_ns)]++;
	for (i = 0; i < s->windows; i++) {
		struct stream_counts *c = &s->counts[slot][i];
		const double loss = stream_loss(row, cell[i]);

		c->active++;
		c->bad += loss > STREAMS_BAD_LOSS;
		if (loss > c->worst_loss)
			c->worst_loss = loss;
		c->jitter_known += row->jitter_known;
		c->late += row->jitter_known && row->jitter_ns > STREAMS_LATE_JITTER_NS;
	}
}

static void streams_count(struct streams *s)
{
	unsigned int cell[SIGNAL_WINDOWS_MAX], w;
	uint16_t i, slot;

	memset(s->counts, 0, sizeof(s->counts));
	for (w = 0; w < s->windows; w++)
		cell[w] = first_cell(&s->clock, s->window_ns[w]);
	for (i = 0; i < s->table.high; i++) {
		if (!s->id[i].used || s->row[i].last_ns + STREAMS_ACTIVE_NS < s->clock.now_ns)
			continue;
		stream_count(s, &s->row[i], SAMPLE_HOST, cell);
		if (s->id[i].target != SAMPLE_HOST)
			stream_count(s, &s->row[i], s->id[i].target, cell);
	}
	for (slot = 0; slot < SAMPLE_TARGETS; slot++) {
		if (!s->counts[slot][0].jitter_known)
			continue;
		for (w = 0; w < s->windows; w++)
			s->counts[slot][w].jitter_ns = hist_percentile_ns(s->jitter[slot], HIST_FINE, 500);
		memset(s->jitter[slot], 0, sizeof(s->jitter[slot]));
	}
}

void streams_tick(struct streams *s, const struct sample *sample)
{
	uint32_t i;

	if (sample->gap || !sample->streams_known) {
		window_void(&s->clock);
		id_table_init(&s->table, s->id, STREAMS_MAX);
	}
	memset(s->counts, 0, sizeof(s->counts));
	s->untracked = 0;
	if (!sample->streams_known)
		return;
	window_advance(&s->clock, sample->now_ns);
	/* streams that are not in the sample make room first */
	id_table_absent(&s->table);
	for (i = 0; i < sample->stream_count; i++) {
		const uint16_t row = id_table_find(&s->table, sample->stream[i].id);

		if (row != ID_NONE)
			s->id[row].present = true;
	}
	for (i = 0; i < s->table.high; i++)
		if (s->id[i].used && !s->id[i].present)
			id_table_remove(&s->table, (uint16_t)i);
	for (i = 0; i < sample->stream_count; i++)
		if (sample->stream[i].target < SAMPLE_TARGETS)
			stream_step(s, &sample->stream[i]);
	streams_count(s);
}

const struct stream_counts *streams_counts(const struct streams *s, int slot, unsigned int window)
{
	return &s->counts[slot][window];
}

uint64_t streams_covered_ns(const struct streams *s)
{
	return window_covered_ns(&s->clock, 0);
}

uint32_t streams_untracked(const struct streams *s)
{
	return s->untracked;
}
