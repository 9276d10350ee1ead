/* SPDX-License-Identifier: GPL-2.0-or-later */
/* streams.h - RTP streams over the last seconds: how many, how many lose, how many are late. Layer: decide
 * (pure; allocation only in streams_new).
 *
 * Cells of 1 s, ten of them: a window longer than 10 s is clamped to 10 s here (rtp.loss itself comes from
 * counters and has every length). A stream is active while its last packet is at most 5 s old. Loss is
 * expected - received, signed (duplicates are in neither): a late packet gives back what its gap took,
 * also in a later window; as a ratio it is clamped to 0..1. A stream that stops entirely loses nothing
 * here: it stops being active. STREAMS_MAX are followed; further ones are counted in untracked. A stream's
 * first appearance is a baseline; counts that decrease are a reset. */
#ifndef DWELLD_STREAMS_H
#define DWELLD_STREAMS_H

#include <stdint.h>

#include "sample.h"
#include "signal.h"

#define STREAMS_MAX 4096
#define STREAMS_CELLS 10
#define STREAMS_CELL_NS 1000000000ULL
#define STREAMS_ACTIVE_NS 5000000000ULL
#define STREAMS_BAD_LOSS 0.05		/* a stream that loses more is bad */
#define STREAMS_LATE_JITTER_NS 50000000ULL	/* one with more jitter is late */

struct streams;

struct stream_counts {
	uint32_t active, bad;
	uint32_t jitter_known, late;	/* among the active ones whose clock rate is known */
	double worst_loss;		/* 0..1, of one active stream */
	uint64_t jitter_ns;		/* median of jitter_known streams, error <= 3.2 % */
};

struct streams *streams_new(const uint64_t *window_ns, unsigned int windows, uint64_t tick_ns);
void streams_free(struct streams *s);	/* NULL is fine */
/* Never fails: no allocation. Streams keep their cells. */
void streams_reload(struct streams *s, const uint64_t *window_ns, unsigned int windows);
void streams_tick(struct streams *s, const struct sample *sample);
/* window: index into window_ns; slot SAMPLE_HOST: all streams. As of the last tick. */
const struct stream_counts *streams_counts(const struct streams *s, int slot, unsigned int window);
/* How long the cells have been filling, at most 10 s. */
uint64_t streams_covered_ns(const struct streams *s);
uint32_t streams_untracked(const struct streams *s);
#endif
