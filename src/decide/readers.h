/* SPDX-License-Identifier: GPL-2.0-or-later */
/* readers.h - the dwell of each reader thread over the windows, to find the worst one: in a pool of 64
 * workers one bad thread hides in the p99 of all. Layer: decide (pure; allocation only in readers_new and
 * readers_reload).
 *
 * Coarse histograms (error <= 12.5 %), windows of 10 cells. READERS_MAX threads are followed; further ones
 * are counted in untracked. A thread is known by its id for life; its first appearance is a baseline. One
 * that ended keeps its row until its windows are empty or the row is needed. */
#ifndef DWELLD_READERS_H
#define DWELLD_READERS_H

#include <stdint.h>

#include "expr.h"
#include "sample.h"

#define READERS_MAX 1024
#define READERS_CELLS 10

struct readers;

/* window_ns: `windows` lengths, at most SIGNAL_WINDOWS_MAX. NULL: no memory. */
struct readers *readers_new(const uint64_t *window_ns, unsigned int windows, uint64_t tick_ns);
void readers_free(struct readers *r);	/* NULL is fine */
/* Windows that remain keep their contents. -ENOMEM leaves *r as it was. */
int readers_reload(struct readers *r, const uint64_t *window_ns, unsigned int windows, uint64_t tick_ns);
/* Uses now_ns, gap and the readers of the sample. */
void readers_tick(struct readers *r, const struct sample *s);

/* The largest p99 in ns among the slot's threads with at least need samples (SAMPLE_HOST: all threads). If
 * none has enough: VALUE_FEW with have of the thread with most samples and the largest p99 of the few.
 * *ret_tid (may be NULL): that thread, 0 if none. window: index into window_ns. need >= 1. */
struct value readers_worst(const struct readers *r, int slot, unsigned int window, uint32_t need,
			   uint32_t *ret_tid);
uint64_t readers_covered_ns(const struct readers *r, unsigned int window);
/* Threads of the last sample that found no row. */
uint32_t readers_untracked(const struct readers *r);
#endif
