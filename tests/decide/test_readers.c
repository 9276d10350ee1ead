/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <string.h>

#include "decide/readers.h"

#define MS 1000000ULL
#define S(n) ((n) * 1000000000ULL)
#define TICK (250 * MS)
#define THREADS 1200
#define SFU SAMPLE_FIRST_FREE
#define NEED 100

static struct sample sample;
static struct sample_reader reader[THREADS];
static uint32_t slots[THREADS][HIST_COARSE_SLOTS];
static const uint64_t lengths[] = { S(10), S(3) };
static struct readers *r;

static void begin(unsigned int threads)
{
	r = readers_new(lengths, 2, TICK);
	cr_assert_not_null(r);
	for (unsigned int i = 0; i < THREADS; i++)
		reader[i] = (struct sample_reader){
			.id = 1000 + i, .tid = 100 + i, .target = SFU, .slot = slots[i]};
	sample.reader = reader;
	sample.reader_count = threads;
	sample.now_ns = S(1000);
	sample.gap = true;
	readers_tick(r, &sample);
	sample.gap = false;
}

static void tick(void)
{
	sample.now_ns += TICK;
	readers_tick(r, &sample);
}

static void reads(unsigned int thread, uint64_t ns, uint32_t n)
{
	slots[thread][hist_coarse_slot(ns)] += n;
}

Test(readers, one_bad_thread_of_64_is_found)
{
	uint32_t tid = 0;

	begin(64);
	for (unsigned int t = 0; t < 8; t++) {
		for (unsigned int i = 0; i < 64; i++)
			reads(i, i == 17 ? 40 * MS : 30000, 50);
		tick();
	}
	const struct value v = readers_worst(r, SFU, 0, NEED, &tid);

	cr_expect_eq(v.why, VALUE_OK);
	cr_expect_float_eq(v.number, 40e6, 40e6 * 0.125);
	cr_expect_eq(v.have, 400);
	cr_expect_eq(tid, 117);
	cr_expect_eq(readers_worst(r, SAMPLE_HOST, 0, NEED, NULL).number, v.number);
	cr_expect_eq(readers_worst(r, SFU + 1, 0, NEED, &tid).why, VALUE_FEW);
	cr_expect_eq(tid, 0);
	readers_free(r);
}

Test(readers, a_thread_with_few_samples_does_not_count)
{
	uint32_t tid = 0;
	struct value v;

	begin(2);
	reads(0, 30000, 100);
	reads(1, 900 * MS, 3);
	tick();
	v = readers_worst(r, SFU, 0, NEED, &tid);
	cr_expect_eq(v.why, VALUE_OK);
	cr_expect_lt(v.number, 1e6);
	cr_expect_eq(tid, 100);
	v = readers_worst(r, SFU, 0, 200, &tid);
	cr_expect_eq(v.why, VALUE_FEW);
	cr_expect_eq(v.have, 100);
	cr_expect_eq(v.need, 200);
	cr_expect_gt(v.number, 700e6, "what the few say");
	cr_expect_eq(tid, 101);
	v = readers_worst(r, SFU, 0, 3, &tid);
	cr_expect_eq(v.why, VALUE_OK);
	cr_expect_eq(tid, 101);
	readers_free(r);
}

Test(readers, windows_forget)
{
	begin(1);
	reads(0, 40 * MS, 200);
	tick();
	for (unsigned int i = 0; i < 14; i++) {
		reads(0, 30000, 50);
		tick();
	}
	cr_expect_lt(readers_worst(r, SFU, 1, NEED, NULL).number, 1e6, "3 s");
	cr_expect_gt(readers_worst(r, SFU, 0, NEED, NULL).number, 30e6, "10 s");
	for (unsigned int i = 0; i < 45; i++)
		tick();
	cr_expect_eq(readers_worst(r, SFU, 0, NEED, NULL).why, VALUE_FEW);
	cr_expect_eq(readers_worst(r, SFU, 0, NEED, NULL).have, 0);
	readers_free(r);
}

Test(readers, what_was_before_the_first_sight_is_a_baseline)
{
	slots[0][hist_coarse_slot(S(1))] = 4000000000U;
	begin(1);
	tick();
	cr_expect_eq(readers_worst(r, SFU, 0, NEED, NULL).have, 0);
	slots[0][hist_coarse_slot(S(1))] += 400000000U;	/* wraps */
	tick();
	cr_expect_eq(readers_worst(r, SFU, 0, NEED, NULL).have, 400000000U);
	readers_free(r);
}

Test(readers, threads_come_and_go)
{
	begin(1);
	for (unsigned int round = 0; round < 5000; round++) {
		reader[0].id = 50000 + round;
		tick();
		reads(0, 30000, 1);
		tick();
		cr_assert_eq(readers_untracked(r), 0, "round %u", round);
	}
	/* each lives for two ticks with one sample: the best of them has one */
	cr_expect_eq(readers_worst(r, SFU, 0, NEED, NULL).have, 1);
	readers_free(r);
}

Test(readers, more_threads_than_rows_are_counted)
{
	begin(THREADS);
	tick();
	cr_expect_eq(readers_untracked(r), THREADS - READERS_MAX);
	sample.reader_count = 10;
	tick();
	cr_expect_eq(readers_untracked(r), 0);
	sample.reader_count = READERS_MAX;
	tick();
	cr_expect_eq(readers_untracked(r), 0, "rows of those that ended are used again");
	readers_free(r);
}

Test(readers, a_thread_takes_its_past_to_its_new_target)
{
	begin(1);
	reader[0].target = SAMPLE_OTHER;
	reads(0, 40 * MS, 200);
	tick();
	cr_expect_eq(readers_worst(r, SAMPLE_OTHER, 0, NEED, NULL).why, VALUE_OK);
	reader[0].target = SFU;
	tick();
	cr_expect_eq(readers_worst(r, SAMPLE_OTHER, 0, NEED, NULL).have, 0);
	cr_expect_eq(readers_worst(r, SFU, 0, NEED, NULL).have, 200);
	readers_free(r);
}

Test(readers, a_gap_voids_and_a_reload_keeps)
{
	const uint64_t next[] = { S(30), S(3) };

	begin(1);
	reads(0, 40 * MS, 200);
	tick();
	cr_assert_eq(readers_reload(r, next, 2, TICK), 0);
	cr_expect_eq(readers_worst(r, SFU, 1, NEED, NULL).have, 200, "3 s stays");
	cr_expect_eq(readers_worst(r, SFU, 0, NEED, NULL).have, 0, "30 s is new");
	sample.gap = true;
	tick();
	cr_expect_eq(readers_worst(r, SFU, 1, NEED, NULL).have, 0);
	cr_expect_eq(readers_covered_ns(r, 1), 0);
	readers_free(r);
}
