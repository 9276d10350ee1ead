/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "decide/window.h"

#define MS 1000000ULL
#define S(n) ((n) * 1000000000ULL)
#define TICK (250 * MS)
#define T0 S(1000)

static struct window w;
static struct window_source source;
static struct window_counter counter;
static struct window_hist hist;
static struct window_delta delta;

static void begin(uint64_t length_ns, uint64_t tick_ns)
{
	window_init(&w, length_ns, tick_ns, WINDOW_CELLS);
	window_hist_init(&hist, HIST_FINE, calloc(window_hist_words(&w, HIST_FINE), sizeof(uint32_t)));
	cr_assert_not_null(hist.sum);
}

static uint64_t count_at(uint64_t now_ns, uint64_t reading)
{
	window_advance(&w, now_ns);
	window_counter_roll(&counter, &w, &source);
	window_source_step(&source, reading, true, now_ns);
	return window_counter_sum(&counter, &w, &source);
}

/* n samples of ns in the tick that ends at now_ns. */
static void hist_at(uint64_t now_ns, uint64_t ns, uint32_t n)
{
	memset(&delta, 0, sizeof(delta));
	delta.slot[hist_slot(ns)] = n;
	delta.blocks = n ? 1U << (hist_slot(ns) >> HIST_SUB_SHIFT) : 0;
	window_advance(&w, now_ns);
	window_hist_roll(&hist, &w);
	window_hist_add(&hist, &w, &delta);
}

Test(window, the_ring_has_at_most_40_cells_and_none_shorter_than_a_tick)
{
	window_init(&w, S(10), TICK, WINDOW_CELLS);
	cr_expect_eq(w.cell_ns, TICK);
	window_init(&w, S(3), TICK, WINDOW_CELLS);
	cr_expect_eq(w.cell_ns, TICK);
	cr_expect_eq(w.ring, 14);
	window_init(&w, S(60), TICK, WINDOW_CELLS);
	cr_expect_eq(w.cell_ns, 1500 * MS);
	window_init(&w, S(600), MS, WINDOW_CELLS);
	cr_expect_eq(w.cell_ns, S(15));
	cr_expect_eq(w.ring, WINDOW_RING);
}

Test(window, c15_a_counter_that_goes_back_is_a_reset)
{
	begin(S(1), S(1));
	cr_expect_eq(count_at(T0, 1000), 0);
	cr_expect_eq(window_covered_ns(&w, source.since_ns), 0, "baseline: unknown");
	cr_expect_eq(count_at(T0 + S(1), 1010), 10);
	cr_expect(window_warm(&w, source.since_ns));
	cr_expect_eq(count_at(T0 + S(2), 3), 0);
	cr_expect_eq(window_covered_ns(&w, source.since_ns), 0, "reset: unknown");
	cr_expect_eq(count_at(T0 + S(3), 8), 5);
	cr_expect(window_warm(&w, source.since_ns));
}

Test(window, c15_a_reset_leaves_no_spike_in_a_long_window)
{
	begin(S(10), S(1));
	count_at(T0, UINT64_MAX - 5);
	cr_expect_eq(count_at(T0 + S(1), UINT64_MAX), 5);
	cr_expect_eq(count_at(T0 + S(2), 0), 0);
	for (unsigned int i = 3; i < 40; i++)
		cr_expect_leq(count_at(T0 + S(i), i - 2), 10);
	cr_expect_eq(count_at(T0 + S(40), 38), 10);
}

Test(window, c17_since_boot_totals_are_a_baseline)
{
	begin(S(10), TICK);
	cr_expect_eq(count_at(T0, 9000000), 0);
	cr_expect_eq(count_at(T0 + TICK, 9000000), 0);
	cr_expect_not(window_warm(&w, source.since_ns));
	for (unsigned int i = 2; i <= 8; i++)
		cr_expect_eq(count_at(T0 + i * TICK, 9000000 + i), i);
	cr_expect(window_warm(&w, source.since_ns), "2 s are covered");
}

Test(window, c20_a_stall_is_one_stretched_cell_and_no_burst)
{
	begin(S(10), TICK);
	for (unsigned int i = 0; i <= 80; i++)
		count_at(T0 + i * TICK, i);
	cr_expect_eq(window_covered_ns(&w, 0), S(10));
	cr_expect_not(window_stretched(&w));
	const uint64_t late = T0 + 80 * TICK + S(45);

	cr_expect_eq(count_at(late, 80 + 180), 180, "all that happened meanwhile, once");
	cr_expect(window_stretched(&w));
	cr_expect_eq(window_covered_ns(&w, 0), S(45), "4 a second all along");
	count_at(late + MS, 80 + 180);
	cr_expect_eq(count_at(late + 2 * MS, 80 + 180), 180);
	cr_expect_eq(w.live, 2, "ticks at once share a cell");
	for (unsigned int i = 1; i <= 42; i++)
		count_at(late + 2 * MS + i * TICK, 260 + i);
	cr_expect_not(window_stretched(&w));
	cr_expect_eq(window_counter_sum(&counter, &w, &source), 40);
}

Test(window, timer_jitter_does_not_change_the_window)
{
	static const int jitter_ms[] = { 0, 9, -9, 40, -40, 3, 0, 90, -90, 1 };

	begin(S(10), TICK);
	for (unsigned int i = 0; i < 400; i++) {
		count_at(T0 + i * TICK + (uint64_t)(jitter_ms[i % 10] + 100) * MS, i);
		if (i > 45) {
			cr_expect_leq(window_covered_ns(&w, 0), S(10) + TICK + 200 * MS);
			cr_expect_geq(window_covered_ns(&w, 0), S(10) - 300 * MS);
		}
	}
}

Test(window, a_void_window_starts_anew)
{
	begin(S(3), TICK);
	for (unsigned int i = 0; i < 20; i++)
		count_at(T0 + i * TICK, i * 10);
	window_void(&w);
	source.seen = false;
	cr_expect_eq(count_at(T0 + S(5000), 1000000), 0);
	cr_expect_eq(window_covered_ns(&w, 0), 0);
	cr_expect_eq(count_at(T0 + S(5000) + TICK, 1000007), 7);
	cr_expect_eq(window_covered_ns(&w, source.since_ns), TICK);
}

Test(window, a_clock_that_goes_backwards_stands_still)
{
	begin(S(3), TICK);
	count_at(T0, 0);
	count_at(T0 + TICK, 5);
	cr_expect_eq(count_at(T0 - S(10), 9), 9);
	cr_expect_eq(window_covered_ns(&w, 0), TICK);
}

Test(window, a_histogram_forgets_cell_by_cell)
{
	begin(S(3), TICK);
	hist_at(T0, 1000, 0);
	hist_at(T0 + TICK, 50 * MS, 100);
	for (unsigned int i = 2; i <= 12; i++)
		hist_at(T0 + i * TICK, 1000, 10);
	cr_expect_eq(hist_count(hist.sum, HIST_FINE), 210, "12 cells of 250 ms");
	cr_expect_eq(hist_max_ns(hist.sum, HIST_FINE), hist_midpoint(hist_slot(50 * MS)));
	hist_at(T0 + 13 * TICK, 1000, 10);
	cr_expect_eq(hist_count(hist.sum, HIST_FINE), 120, "the slow ones left");
	cr_expect_eq(hist_max_ns(hist.sum, HIST_FINE), hist_midpoint(hist_slot(1000)));
	for (unsigned int i = 14; i <= 25; i++)
		hist_at(T0 + i * TICK, 1000, 0);
	cr_expect_eq(hist_count(hist.sum, HIST_FINE), 0);
	for (unsigned int i = 0; i < WINDOW_RING; i++)
		cr_expect_eq(hist.mask[i], 0);
}

Test(window, a_slot_that_goes_back_resets_the_histogram)
{
	static uint64_t last[HIST_SLOTS], now[HIST_SLOTS];

	last[433] = 5;
	now[0] = 3;
	now[16] = 1;
	now[433] = 9;
	cr_expect(window_delta(&delta, last, now));
	cr_expect_eq(delta.blocks, 1U | 1U << 1 | 1U << 27);
	cr_expect_eq(delta.slot[433], 4);
	cr_expect_eq(delta.slot[0], 3);
	now[16] = 0;
	cr_expect_not(window_delta(&delta, last, now));
	cr_expect_eq(delta.blocks, 0);
	now[16] = 1ULL << 33;
	cr_expect_not(window_delta(&delta, last, now), "no tick has that many");
	cr_expect(window_delta(&delta, last, now));
	cr_expect_eq(delta.blocks, 0);
}

Test(window, coarse_counts_may_wrap)
{
	static uint32_t last[HIST_COARSE_SLOTS], now[HIST_COARSE_SLOTS];

	last[109] = UINT32_MAX - 1;
	now[109] = 3;
	cr_expect(window_delta_coarse(&delta, last, now));
	cr_expect_eq(delta.slot[109], 5);
	cr_expect_eq(delta.blocks, 1U << 27);
	now[109] = 2;
	cr_expect_not(window_delta_coarse(&delta, last, now));
}

/* Deltas of random size at random times; what left and what is in it must be all that came in, at each of
 * 1000 rolls. */
Test(window, c68_sums_over_windows_are_the_total)
{
	static uint64_t last[HIST_SLOTS], now[HIST_SLOTS];
	uint64_t state = 88172645463325252ULL, time = T0, in = 0, left = 0;
	uint32_t before[HIST_SLOTS];

	begin(S(10), TICK);
	for (unsigned int roll = 0; roll < 1000; roll++) {
		for (unsigned int i = 0; i < 50; i++) {
			state ^= state << 13, state ^= state >> 7, state ^= state << 17;
			now[state % HIST_SLOTS] += state >> 40 & 0xfff;
		}
		time += (state & 3) ? TICK : (state >> 8) % S(12);
		cr_assert(window_delta(&delta, last, now));
		window_advance(&w, time);
		memcpy(before, hist.sum, sizeof(before));
		window_hist_roll(&hist, &w);
		left += hist_count(before, HIST_FINE) - hist_count(hist.sum, HIST_FINE);
		window_hist_add(&hist, &w, &delta);
		for (unsigned int i = 0, n = 0; i < HIST_SLOTS; i++, n = 0)
			in += n = delta.slot[i];
		cr_assert_eq(left + hist_count(hist.sum, HIST_FINE), in, "roll %u", roll);
	}
	uint64_t total = 0;

	for (unsigned int i = 0; i < HIST_SLOTS; i++)
		total += now[i];
	cr_expect_eq(in, total);
	cr_expect_gt(left, total / 2);
}

Test(window, a_peak_is_the_highest_of_the_window)
{
	static struct window_peak peak;

	begin(S(3), TICK);
	for (unsigned int i = 0; i <= 30; i++) {
		window_advance(&w, T0 + i * TICK);
		window_peak_roll(&peak, &w);
		window_peak_add(&peak, &w, i == 5 ? 0.9 : 0.1);
		if (i >= 5 && i < 17)
			cr_expect_float_eq(window_peak_max(&peak, &w), 0.9, 1e-6, "tick %u", i);
		if (i >= 17)
			cr_expect_float_eq(window_peak_max(&peak, &w), 0.1, 1e-6, "tick %u", i);
	}
}
