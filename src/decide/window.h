/* SPDX-License-Identifier: GPL-2.0-or-later */
/* window.h - cumulative readings to sums over the last N seconds. Layer: decide (pure; memory is the
 * caller's).
 *
 * One `struct window` is the clock of one window length; every series of that length (histograms,
 * counters, peaks) follows it. A window is a ring of cells, at most `cells` (values: 40) of max(tick,
 * length / cells) each, and whatever lies in the last `length` belongs to it, to within one cell.
 *
 * Cells:     each tick's deltas belong to the time since the tick before. They go into the open cell until
 *            that is cell_ns long (to half a tick, so that timer jitter does not make cells of two ticks),
 *            then a new one opens. A cell leaves when its end is older than the window. A late tick
 *            therefore stretches one cell: all that happened meanwhile is in it once, covered_ns says over
 *            how long, and ticks that then arrive at once join the next cell. The window is marked
 *            stretched until that cell has left.
 * Gaps:      window_void() (start, suspend) empties the window and starts its coverage at 0.
 * Warm:      (values.c) percentiles, mean, over, share and ratios wait for their samples only, and for
 *            coverage > 0; rate, count, max and peaks for window_warm_ns() = min(length, 2 s). Before that
 *            the value is VALUE_GAP. The count of a window that is warm but not full yet is what was
 *            counted so far.
 * Resets:    a counter that decreased, or a histogram slot that did, is a reset, never a wrap: the series
 *            is emptied and covers again from this tick on (1000, 1010, 3, 8 gives 10, unknown, 5). The
 *            first reading is a baseline.
 * Memory:    a histogram's cells are stored octave by octave and not cleared but marked empty, so octaves
 *            and series that never moved cost no memory when the caller's block came from calloc().
 * Units:     nanoseconds of CLOCK_MONOTONIC; a clock that goes backwards counts as standing still. */
#ifndef DWELLD_WINDOW_H
#define DWELLD_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hist.h"
#include "sample.h"

#define WINDOW_CELLS 40		/* a window's resolution: length / 40 */
#define WINDOW_RING (WINDOW_CELLS + 2)	/* the open cell, and one that leaves late */
#define WINDOW_WARM_NS 2000000000ULL

struct window {
	uint64_t length_ns, cell_ns, tick_ns;
	uint64_t now_ns;			/* of the last advance */
	uint64_t begin_ns[WINDOW_RING], end_ns[WINDOW_RING];
	uint8_t ring;				/* cells in the ring, <= WINDOW_RING */
	uint8_t oldest, live;			/* live 0: nothing yet, not even a baseline */
	bool opened;				/* the last advance opened the newest cell */
	uint8_t left[WINDOW_RING], left_count;	/* cells that left in the last advance */
};

/* cells 1..WINDOW_CELLS. */
void window_init(struct window *w, uint64_t length_ns, uint64_t tick_ns, unsigned int cells);
/* Time passes to now_ns. After a void the first call only sets the baseline. Then roll every series, then
 * add deltas. */
void window_advance(struct window *w, uint64_t now_ns);
void window_void(struct window *w);
unsigned int window_newest(const struct window *w);	/* ring index; call only when live > 0 */
/* Time the window's content stands for, no earlier than since_ns; can exceed length_ns when stretched. */
uint64_t window_covered_ns(const struct window *w, uint64_t since_ns);
uint64_t window_warm_ns(const struct window *w);
bool window_warm(const struct window *w, uint64_t since_ns);	/* covers window_warm_ns(), to half a tick */
bool window_stretched(const struct window *w);

/* ---- histograms ---- */
#define WINDOW_BLOCKS 28		/* octaves and the two ends; a bit each in a mask */

/* What a cumulative histogram gained in one tick; fine or coarse, blocks of 16 or 4 slots. */
struct window_delta {
	uint32_t blocks;		/* bit per block with a slot that is not 0 */
	uint32_t slot[WINDOW_BLOCKS << HIST_SUB_SHIFT];
};
/* delta = now - *last; *last = now. false: a slot went backwards (or by more than 2^32): reset, *delta is
 * empty. */
bool window_delta(struct window_delta *delta, uint64_t last[HIST_SLOTS], const uint64_t now[HIST_SLOTS]);
/* The same for a coarse histogram of 32-bit counts that may wrap; a step of 2^31 or more is a reset. */
bool window_delta_coarse(struct window_delta *delta, uint32_t last[HIST_COARSE_SLOTS],
			 const uint32_t now[HIST_COARSE_SLOTS]);

struct window_hist {
	enum hist_grain grain;
	uint32_t *sum;			/* window_hist_words() of the caller's: the sum, then the cells */
	uint32_t mask[WINDOW_RING];	/* blocks in use by cell */
};
/* 32-bit words that a histogram of this window needs; zeroed by the caller. */
size_t window_hist_words(const struct window *w, enum hist_grain grain);
void window_hist_init(struct window_hist *h, enum hist_grain grain, uint32_t *words);
void window_hist_roll(struct window_hist *h, const struct window *w);
void window_hist_add(struct window_hist *h, const struct window *w, const struct window_delta *delta);
void window_hist_clear(struct window_hist *h);

/* ---- counters: one cumulative source, one ring per window length ---- */
struct window_source {
	bool seen;			/* has a baseline */
	uint64_t last;			/* last reading */
	uint64_t total, floor;		/* our own sum of deltas; its value when coverage began */
	uint64_t since_ns;
};
struct window_counter { uint64_t at[WINDOW_RING]; };	/* source total when the cell opened */

/* Roll first (with the total of the tick before), then take the reading. known false drops the baseline. */
void window_counter_roll(struct window_counter *c, const struct window *w, const struct window_source *s);
void window_source_step(struct window_source *s, uint64_t reading, bool known, uint64_t now_ns);
uint64_t window_counter_sum(const struct window_counter *c, const struct window *w,
			    const struct window_source *s);

/* ---- peaks: the highest of a gauge over the window ---- */
struct window_peak { float at[WINDOW_RING]; };
void window_peak_roll(struct window_peak *p, const struct window *w);
void window_peak_add(struct window_peak *p, const struct window *w, double value);
double window_peak_max(const struct window_peak *p, const struct window *w);
#endif
