/* SPDX-License-Identifier: GPL-2.0-or-later */
/* load_clock.h - what both loads need. Times are ns. */
#ifndef DWELLD_BENCH_LOAD_CLOCK_H
#define DWELLD_BENCH_LOAD_CLOCK_H

#include <stdint.h>
#include <time.h>

struct load_cost;

uint64_t load_clock(clockid_t clock);
/* The median of LOAD_CHUNKS, of CPU and wall time each. */
void load_median(const struct load_cost *chunk, struct load_cost *ret);
#endif
