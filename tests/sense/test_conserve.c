/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>
#include <criterion/criterion.h>

#include "sense/conserve.h"

#define S(n) ((n) * 1000000000ULL)
#define TICK 250000000ULL

static void run(struct conserve *c, struct conserve_totals *t, uint64_t *now_ns, uint64_t seconds, uint64_t lost_per_tick)
{
	for (uint64_t end = *now_ns + S(seconds); *now_ns < end; *now_ns += TICK) {
		t->enqueued += 250;
		t->read += 250 - lost_per_tick;
		conserve_step(c, t, *now_ns);
	}
}

Test(conserve, what_comes_in_and_goes_out_is_quiet)
{
	struct conserve_totals t = { .enqueued = 5, .waiting = 5 };
	struct conserve c = { 0 };
	uint64_t now = S(100);

	run(&c, &t, &now, 60, 0);
	cr_expect_not(c.degraded);
}

Test(conserve, drops_closed_queues_and_the_waiting_ones_are_accounted_for)
{
	struct conserve_totals t = { 0 };
	struct conserve c = { 0 };
	uint64_t now = S(100);

	run(&c, &t, &now, 5, 0);
	t.enqueued += 900;
	t.unqueued += 400;
	t.discarded += 300;
	t.waiting += 200;
	run(&c, &t, &now, 30, 0);
	cr_expect_not(c.degraded);
}

Test(conserve, a_balance_that_stays_open_degrades_within_seconds_and_says_how_many)
{
	struct conserve_totals t = { 0 };
	struct conserve c = { 0 };
	uint64_t now = S(100);

	run(&c, &t, &now, 5, 0);
	run(&c, &t, &now, 6, 100);
	cr_expect(c.degraded);
	cr_expect(strstr(c.why, "unaccounted"), "%s", c.why);
}

Test(conserve, one_odd_reading_is_no_drift)
{
	struct conserve_totals t = { 0 };
	struct conserve c = { 0 };
	uint64_t now = S(100);

	run(&c, &t, &now, 5, 0);
	t.waiting += 5000;	/* a burst between the reading of one counter and of the next */
	conserve_step(&c, &t, now);
	t.waiting -= 5000;
	run(&c, &t, &now, 20, 0);
	cr_expect_not(c.degraded);
}

Test(conserve, more_than_a_hundredth_healed_degrades_until_ten_good_seconds)
{
	struct conserve_totals t = { 0 };
	struct conserve c = { 0 };
	uint64_t now = S(100);

	run(&c, &t, &now, 5, 0);
	t.enqueued += 400;
	t.healed += 400;
	run(&c, &t, &now, 10, 0);
	cr_expect(c.degraded, "400 of about 10 000 left unseen");
	run(&c, &t, &now, 30, 0);
	cr_expect_not(c.degraded);
}
