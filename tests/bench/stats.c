/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RESAMPLES 4000

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Between the two nearest values, linearly. */
static double quantile(const double *sorted, size_t n, double q)
{
	const double at = q * (double)(n - 1);
	const size_t i = (size_t)at;

	if (i + 1 >= n || isinf(sorted[i + 1]))
		return sorted[i];
	return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

/* How many of the lowest (and of the highest) values the interval leaves out: as many as a fair coin shows heads in n
 * throws with a chance of at most 2.5 %. */
static size_t left_out(size_t n)
{
	double chance = exp2(-(double)n), sum = chance;
	size_t k = 0;

	while (sum <= 0.025 && k < n / 2) {
		k++;
		chance *= (double)(n - k + 1) / (double)k;
		sum += chance;
	}
	return k ? k - 1 : 0;
}

void stats_of(const double *value, size_t n, struct stats *ret)
{
	double sorted[STATS_ROUNDS];
	const size_t out = left_out(n);

	memcpy(sorted, value, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), ascending);
	ret->median = quantile(sorted, n, 0.5);
	ret->q25 = quantile(sorted, n, 0.25);
	ret->q75 = quantile(sorted, n, 0.75);
	ret->low = sorted[out];
	ret->high = sorted[n - 1 - out];
}

void stats_of_differences(const double *value, const double *base, size_t n, struct stats *ret)
{
	double difference[STATS_ROUNDS] = { 0 };

	for (size_t i = 0; i < n; i++)
		difference[i] = value[i] - base[i];
	stats_of(difference, n, ret);
}

static double median(double *value, size_t n)
{
	qsort(value, n, sizeof(*value), ascending);
	return quantile(value, n, 0.5);
}

/* xorshift64: which rounds a resample holds needs no better. */
static size_t draw(uint64_t *state, size_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (size_t)((*state >> 11) % n);
}

void stats_of_ratio(const double *value, const double *base, const double *other, const double *other_base, size_t n,
		    struct stats *ret)
{
	static double ratio[RESAMPLES];
	double over[STATS_ROUNDS] = { 0 }, under[STATS_ROUNDS] = { 0 };
	uint64_t state = 0x9e3779b97f4a7c15ULL;
	struct stats a, b;

	stats_of_differences(value, base, n, &a);
	stats_of_differences(other, other_base, n, &b);
	for (size_t r = 0; r < RESAMPLES; r++) {
		double bottom;

		for (size_t i = 0; i < n; i++) {
			const size_t pick = draw(&state, n);

			over[i] = value[pick] - base[pick];
			under[i] = other[pick] - other_base[pick];
		}
		bottom = median(under, n);
		ratio[r] = bottom > 0 ? median(over, n) / bottom : INFINITY;
	}
	qsort(ratio, RESAMPLES, sizeof(*ratio), ascending);
	ret->median = b.median > 0 ? a.median / b.median : INFINITY;
	ret->q25 = quantile(ratio, RESAMPLES, 0.25);
	ret->q75 = quantile(ratio, RESAMPLES, 0.75);
	ret->low = quantile(ratio, RESAMPLES, 0.025);
	ret->high = quantile(ratio, RESAMPLES, 0.975);
}

enum stats_verdict stats_at_most(const struct stats *s, double limit)
{
	if (s->high <= limit)
		return STATS_PASSED;
	return s->low > limit ? STATS_FAILED : STATS_UNDECIDED;
}
