/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hist.h - arithmetic on the slots of a latency histogram. Layer: decide (pure, no allocation).
 *
 * Two grains: fine (HIST_SLOTS, 16 slots an octave, error <= 3.2 %) and coarse (HIST_COARSE_SLOTS, 4 an
 * octave, <= 12.5 %).
 * Units:     nanoseconds; a slot stands for its midpoint (hist_layout.h). Slots count samples of a window,
 *            32 bits each.
 * Count:     always the sum of the slots, never a number kept beside them.
 * Errors:    none; statistics of an empty histogram are 0, the caller asks hist_count() first. */
#ifndef DWELLD_HIST_H
#define DWELLD_HIST_H

#include <stdint.h>

#include "bpf/hist_layout.h"

enum hist_grain { HIST_FINE, HIST_COARSE };

unsigned int hist_slots(enum hist_grain grain);
uint64_t hist_midpoint_ns(enum hist_grain grain, unsigned int slot);

/* into += from, into -= from; both have hist_slots(grain) entries. */
void hist_add(uint32_t *into, const uint32_t *from, enum hist_grain grain);
void hist_subtract(uint32_t *into, const uint32_t *from, enum hist_grain grain);

uint64_t hist_count(const uint32_t *slot, enum hist_grain grain);
/* Nearest rank: the midpoint of the slot that holds sample number ceil(count * permille / 1000). permille
 * 1..1000. */
uint64_t hist_percentile_ns(const uint32_t *slot, enum hist_grain grain, unsigned int permille);
/* The midpoint of the highest slot that is not empty. */
uint64_t hist_max_ns(const uint32_t *slot, enum hist_grain grain);
double hist_mean_ns(const uint32_t *slot, enum hist_grain grain);
/* Share 0..1 of samples slower than limit_ns. The slot that limit_ns falls into counts as slower if its
 * midpoint is. */
double hist_over(const uint32_t *slot, enum hist_grain grain, double limit_ns);
#endif
