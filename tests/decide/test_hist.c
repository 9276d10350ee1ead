/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "decide/hist.h"

/* xorshift64*, so that every run sees the same numbers. */
static uint64_t random_state = 0x1234567890abcdefULL;

static uint64_t random_next(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dULL;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double error_of(uint64_t got, uint64_t want)
{
	return got > want ? (double)(got - want) / (double)want : (double)(want - got) / (double)want;
}

static void every_boundary(unsigned int sub_shift, unsigned int slots, double limit)
{
	uint64_t low = 0;

	for (unsigned int s = 0; s + 1 < slots; s++) {
		const uint64_t mid = hist_midpoint_of(s, sub_shift, slots);
		uint64_t high = low;

		while (hist_slot_of(high + (high - low) + 1, sub_shift, slots) ==
		       s) /* find the end by doubling ... */
			high += high - low + 1;
		for (uint64_t step = 1ULL << 40; step; step >>= 1)	/* ... and halving */
			while (hist_slot_of(high + step, sub_shift, slots) == s && high + step > high)
				high += step;
		cr_assert_eq(hist_slot_of(low, sub_shift, slots), s, "first of slot %u", s);
		cr_assert_eq(hist_slot_of(high, sub_shift, slots), s, "last of slot %u", s);
		cr_assert_eq(hist_slot_of(high + 1, sub_shift, slots), s + 1, "after slot %u", s);
		cr_assert_eq(hist_slot_of(mid, sub_shift, slots), s, "midpoint of slot %u", s);
		if (s > 0) {
			cr_assert_leq(error_of(mid, low), limit, "slot %u", s);
			cr_assert_leq(error_of(mid, high), limit, "slot %u", s);
		}
		low = high + 1;
	}
	cr_expect_eq(low, 1ULL << HIST_MAX_SHIFT);
	cr_expect_eq(hist_slot_of(UINT64_MAX, sub_shift, slots), slots - 1);
	cr_expect_eq(hist_midpoint_of(slots - 1, sub_shift, slots), 1ULL << HIST_MAX_SHIFT);
}

Test(hist, every_slot_boundary_and_midpoint)
{
	every_boundary(HIST_SUB_SHIFT, HIST_SLOTS, 1.0 / 32);
}

Test(hist, every_coarse_slot_boundary_and_midpoint)
{
	every_boundary(HIST_COARSE_SUB_SHIFT, HIST_COARSE_SLOTS, 1.0 / 8);
}

#define SAMPLES 20001

static void against_sorted(unsigned int samples, unsigned int spread)
{
	static const unsigned int permille[] = { 1, 100, 500, 900, 990, 999, 1000 };
	static uint64_t value[SAMPLES];
	uint32_t slot[HIST_SLOTS] = { 0 };
	double sum = 0;

	for (unsigned int i = 0; i < samples; i++) {
		value[i] =
			256 + (random_next() >> (30 + random_next() % spread)); /* up to 17 s, log spread */
		sum += (double)value[i];
		slot[hist_slot(value[i])]++;
	}
	qsort(value, samples, sizeof(value[0]), compare);
	cr_expect_eq(hist_count(slot, HIST_FINE), samples);
	for (unsigned int i = 0; i < sizeof(permille) / sizeof(permille[0]); i++) {
		const unsigned int rank = (samples * permille[i] + 999) / 1000;

		cr_expect_leq(error_of(hist_percentile_ns(slot, HIST_FINE, permille[i]), value[rank - 1]),
			      0.032, "p%u of %u", permille[i], samples);
	}
	cr_expect_leq(error_of(hist_max_ns(slot, HIST_FINE), value[samples - 1]), 0.032);
	cr_expect_leq(error_of((uint64_t)hist_mean_ns(slot, HIST_FINE), (uint64_t)(sum / samples)), 0.032);
}

Test(hist, percentiles_are_within_3_2_percent_of_a_sorted_array)
{
	for (unsigned int round = 0; round < 50; round++)
		against_sorted(1 + (unsigned int)(random_next() % SAMPLES), 1 + round % 24);
}

Test(hist, nearest_rank_of_few_samples)
{
	uint32_t slot[HIST_SLOTS] = { 0 };

	slot[hist_slot(1000)] = 1;
	slot[hist_slot(1000000)] = 1;
	cr_expect_eq(hist_percentile_ns(slot, HIST_FINE, 500), hist_midpoint(hist_slot(1000)));
	cr_expect_eq(hist_percentile_ns(slot, HIST_FINE, 501), hist_midpoint(hist_slot(1000000)));
	cr_expect_eq(hist_percentile_ns(slot, HIST_FINE, 1000), hist_midpoint(hist_slot(1000000)));
}

Test(hist, over_counts_the_slot_of_the_limit_by_its_midpoint)
{
	uint32_t slot[HIST_SLOTS] = { 0 };
	const double mid = (double)hist_midpoint(hist_slot(20000000));

	slot[hist_slot(1000000)] = 60;
	slot[hist_slot(20000000)] = 30;
	slot[hist_slot(90000000)] = 10;
	cr_expect_float_eq(hist_over(slot, HIST_FINE, mid - 1), 0.4, 1e-12);
	cr_expect_float_eq(hist_over(slot, HIST_FINE, mid), 0.1, 1e-12);
	cr_expect_float_eq(hist_over(slot, HIST_FINE, 0), 1, 1e-12);
	cr_expect_float_eq(hist_over(slot, HIST_FINE, 1e12), 0, 1e-12);
}

Test(hist, adding_and_taking_away_are_inverse)
{
	uint32_t a[HIST_SLOTS], b[HIST_SLOTS], sum[HIST_SLOTS];

	for (unsigned int i = 0; i < HIST_SLOTS; i++) {
		a[i] = sum[i] = (uint32_t)random_next() >> 1;
		b[i] = (uint32_t)random_next() >> 1;
	}
	hist_add(sum, b, HIST_FINE);
	cr_expect_eq(hist_count(sum, HIST_FINE), hist_count(a, HIST_FINE) + hist_count(b, HIST_FINE));
	hist_subtract(sum, b, HIST_FINE);
	cr_expect_arr_eq(sum, a, sizeof(a));
}

Test(hist, empty_is_zero_and_overflow_is_its_lower_bound)
{
	uint32_t slot[HIST_SLOTS] = { 0 };

	cr_expect_eq(hist_count(slot, HIST_FINE), 0);
	cr_expect_eq(hist_percentile_ns(slot, HIST_FINE, 990), 0);
	cr_expect_eq(hist_max_ns(slot, HIST_FINE), 0);
	cr_expect_eq(hist_mean_ns(slot, HIST_FINE), 0);
	cr_expect_eq(hist_over(slot, HIST_FINE, 0), 0);
	slot[hist_slot(UINT64_MAX)] = 1;
	cr_expect_eq(hist_percentile_ns(slot, HIST_FINE, 500), 1ULL << HIST_MAX_SHIFT);
	cr_expect_eq(hist_max_ns(slot, HIST_FINE), 1ULL << HIST_MAX_SHIFT);
}
