/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stats.h - medians, quartiles and 95 % intervals of a few dozen rounds. No I/O.
 *
 * Units:  the caller's. n >= 1, at most STATS_ROUNDS; NaN is not allowed.
 * Method: the interval of a median is between order statistics (binomial); of a ratio of two medians by bootstrap over
 *         rounds, with a fixed seed, so that the same figures give the same verdict. */
#ifndef DWELLD_BENCH_STATS_H
#define DWELLD_BENCH_STATS_H

#include <stddef.h>

#define STATS_ROUNDS 1000

struct stats { double median, q25, q75, low, high; };	/* low, high: 95 % interval of the median */

enum stats_verdict { STATS_PASSED, STATS_FAILED, STATS_UNDECIDED };

void stats_of(const double *value, size_t n, struct stats *ret);
/* Paired differences value[i] - base[i]. */
void stats_of_differences(const double *value, const double *base, size_t n, struct stats *ret);
/* median(value - base) / median(other - other_base), all of the same rounds; q25 and q75 are the bootstrap's. A resample
 * whose denominator is not above 0 counts as infinite. */
void stats_of_ratio(const double *value, const double *base, const double *other, const double *other_base, size_t n,
		    struct stats *ret);
/* Is it at most the limit? Decided by the interval: one that holds the limit decides nothing. */
enum stats_verdict stats_at_most(const struct stats *s, double limit);
#endif
