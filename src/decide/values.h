/* SPDX-License-Identifier: GPL-2.0-or-later */
/* values.h - every signal and statistic of signal.h, of every target slot, over every window of the model;
 * fed with one sample per tick. The seam between data and rules. Layer: decide (pure; allocation only in
 * values_new and values_reload).
 *
 * Slots:     sample.target indices. SAMPLE_HOST is the sum of all slots (oldest, worst, fill: the largest;
 *            rcvbuf: the smallest); host signals read the same in every slot. A slot whose name changes
 *            starts anew.
 * Reasons:   in this order. MISSING: the signal's probe is not attached or its known bit is cleared.
 *            NEVER: the slot is unused, or no process of it was ever seen, or (rtp.*) no RTP ever. GAP:
 *            window not warm (window.h says when). FEW: fewer samples than needed; number holds what the
 *            few say if have > 0. A statistic that needs a thing to speak of (max, mean, share, a ratio of
 *            packets or streams, a queue's age without a socket) and has none is FEW with have 0, need 1:
 *            idle, never a zero. rate and count of nothing are 0 and OK.
 * Windows:   term->window_ns, 0 = the model's default; a length that is not in the model is GAP. Gauges
 *            are the latest value.
 * Values:    times in ns, ratios 0..1, rates per second, sizes in bytes, probes.missing a number.
 * Memory:    most of the block is never touched; lock it with MCL_ONFAULT or not at all, and keep
 *            transparent huge pages off. */
#ifndef DWELLD_VALUES_H
#define DWELLD_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "expr.h"
#include "model.h"
#include "sample.h"
#include "streams.h"

struct values;

/* Reads window_ns, window_count and tick_ns of the model and keeps no pointer to it. A model without
 * windows gets the default one. NULL: no memory. */
struct values *values_new(const struct model *m);
void values_free(struct values *v);	/* NULL is fine */
/* Windows that remain (by length, and only if the tick is the same) keep their contents, new ones start
 * empty. 0, or -ENOMEM and nothing has changed. */
int values_reload(struct values *v, const struct model *m);
/* Copies what it keeps of *s. */
void values_tick(struct values *v, const struct sample *s);
/* For probes.missing; before the first call that signal is GAP. */
void values_set_missing(struct values *v, uint32_t probes);

/* need_override: STAT_ID_COUNT entries, 0 = default of signal_stats; NULL = defaults. over_arg in ns, for
 * STAT_OVER. */
struct value values_read(const struct values *v, int slot, const struct expr_term *term, double over_arg,
			 const uint32_t need_override[STAT_ID_COUNT]);
/* HIST_SLOTS counts of dwell, runq, softirq.wait or softirq.run; NULL when unknown (missing, never, gap)
 * or no such signal or window. Valid until the next tick. */
const uint32_t *values_hist(const struct values *v, int slot, enum signal_id signal, uint64_t window_ns);
/* Streams of a slot; window_ns above 10 s is clamped. false: RTP is not measured, or no such window. */
bool values_stream_counts(const struct values *v, int slot, uint64_t window_ns, struct stream_counts *ret);
/* The thread behind dwell.worst.p99, also when it has few samples; 0 unknown. */
uint32_t values_worst_tid(const struct values *v, int slot, uint64_t window_ns);

struct values_window_info { uint64_t covered_ns; bool stretched; };
/* covered_ns: time that the window's content stands for; stretched: a late tick is in it. false: no such
 * window. */
bool values_window_info(const struct values *v, uint64_t window_ns, struct values_window_info *ret);
/* What found no row: reader threads and streams of the last sample. */
uint32_t values_untracked_readers(const struct values *v);
uint32_t values_untracked_streams(const struct values *v);
#endif
