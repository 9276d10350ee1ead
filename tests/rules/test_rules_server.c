/* SPDX-License-Identifier: GPL-2.0-or-later */
/* built-in rules: a healthy server is left alone, a starved, slow or stuck one is named. */
#include "world.h"

static const unsigned int rates[] = {50, 500, 5000};

static void begin(uint64_t seed)
{
	if (!feed.model.rule_count)
		world_read(WORLD_SFU);
	world_begin(seed);
}

/* ---- nothing is wrong ---- */

Test(rules_server, healthy_media_is_ok_and_nothing_fires)
{
	static const unsigned int streams[] = {1, 5, 50, 200};

	for (int r = 0; r < 3; r++) {
		for (int n = 0; n < 4; n++) {
			begin(1);
			world.pps = rates[r];
			world.streams = streams[n];
			world.stream_pps = (double)rates[r] / streams[n];
			world_run(11);
			for (int i = 0; i < 289; i++) {
				world_run(1);
				expect_verdict(SFU, VERDICT_OK);
				expect_host(VERDICT_OK);
			}
			cr_expect_eq(feed.total, 0, "%u packets/s, %u streams: %s", rates[r], streams[n],
				     feed.log);
		}
	}
}

Test(rules_server, the_first_window_fires_nothing_even_when_all_is_bad)
{
	begin(2);
	world.bad = 1;
	world.wait_ns = 100 * MS;
	world.duty = 0.6;
	world.runq = true;
	world.lossy = 10;
	world.loss = 0.2;
	world_run(9.5);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
	expect_verdict(SFU, VERDICT_UNKNOWN);
	world_mark();
	cr_expect_gt(world_until("fire/reader-starved", 20), 0, "%s", feed.log);
}

Test(rules_server, one_stall_fires_nothing)
{
	static const uint64_t stall_ms[] = {100, 500};

	for (int r = 0; r < 3; r++) {
		for (int runq = 0; runq < 2; runq++) {
			for (int k = 0; k < 2; k++) {
				begin(3);
				world.pps = rates[r];
				world_run(15);
				world_stall(stall_ms[k] * MS, runq);
				world_run(30);
				cr_expect_eq(feed.total, 0, "%u packets/s, %d ms: %s", rates[r],
					     (int)stall_ms[k], feed.log);
				expect_verdict(SFU, VERDICT_OK);
			}
		}
	}
}

Test(rules_server, a_stall_every_minute_fires_nothing)
{
	for (int r = 0; r < 3; r++) {
		begin(4);
		world.pps = rates[r];
		for (int i = 0; i < 10; i++) {
			world_stall(i % 2 ? 500 * MS : 100 * MS, i % 3);
			world_run(60);
		}
		cr_expect_eq(feed.total, 0, "%u packets/s: %s", rates[r], feed.log);
	}
}

/* ---- starved ---- */

static void starved(unsigned int pps, uint64_t wait_ns, double duty)
{
	begin(5);
	world.pps = pps;
	world_run(20);
	world_mark();
	world.bad = 1;
	world.wait_ns = wait_ns;
	world.duty = duty;
	world.runq = true;
	world.busy = 1;
	printf("%u packets/s, waits of %u ms in %g %% of the time\n", pps, (unsigned int)(wait_ns / MS),
	       duty * 100);
	expect_within("fire/reader-starved", 8);
	world_run(4); /* reader-slow, that comes later, is inhibited */
	expect_told("fire/reader-starved");
	expect_verdict(SFU, VERDICT_SERVER);
	expect_host(VERDICT_SERVER);
	expect_cause(SFU, "reader-starved");
	cr_expect_eq(feed.last[EVENT_FIRE].severity, SEVERITY_WARNING);
	world_run(20);
	if (wait_ns >= 60 * MS)
		expect_told("fire/reader-starved worse/reader-starved");
	world_mark();
	world.wait_ns = 0;
	world_run(10);
	expect_verdict(SFU, VERDICT_SERVER);
	world_run(25);
	cr_expect_not_null(strstr(world.events, "resolve/reader-starved"), "%s", world.events);
	cr_expect_null(strstr(world.events, "fire"), "%s", world.events);
	expect_verdict(SFU, VERDICT_OK);
}

Test(rules_server, lasting_starvation_is_told_within_8_s_worse_and_resolved)
{
	static const uint64_t wait_ms[] = {18, 40, 100, 200};

	for (int r = 0; r < 3; r++)
		for (int w = 0; w < 4; w++)
			starved(rates[r], wait_ms[w] * MS, wait_ms[w] < 40 ? 0.4 : 0.2);
}

/* The CPU comes in slices: many short waits add up to a long dwell, and no single wait is of its size. */
Test(rules_server, a_reader_whose_cpu_comes_in_slices_is_starved)
{
	begin(6);
	world_run(20);
	world_mark();
	world.reader[0].arrived_ns = world.reader[0].unread_ns = NEVER; /* fed by hand */
	while (world_since() < 8 && !world.events[0]) {
		feed.sample.target[SFU].counter[SAMPLE_ENQUEUED] += 125;
		for (int i = 0; i < 125; i++) {
			const uint64_t dwell_ns = (uint64_t)(100e6 + 100e6 * world_random());

			world_packet(&world.reader[0], dwell_ns, 1);
		}
		feed_runq(SFU, 15 * MS, 14);
		world_tick();
	}
	cr_expect_str_eq(world.events, "fire/reader-starved", "%s", world.events);
}

/* ---- slow, not starved ---- */

Test(rules_server, a_slow_reader_that_waits_for_no_cpu_is_slow_not_starved)
{
	for (int r = 0; r < 3; r++) {
		begin(7);
		world.pps = rates[r];
		world_run(20);
		world_mark();
		world.bad = 1;
		world.wait_ns = 50 * MS;
		world.duty = 0.4;
		expect_within("fire/reader-slow", 8);
		world_run(10);
		expect_told("fire/reader-slow worse/reader-slow");
		expect_verdict(SFU, VERDICT_SERVER);
		expect_cause(SFU, "reader-slow");
		world.wait_ns = 0;
		world_run(30);
		expect_told("fire/reader-slow worse/reader-slow resolve/reader-slow");
	}
}

/* One wait of 6 ms for a CPU now and then does not explain 80 ms of dwell. */
Test(rules_server, short_waits_for_a_cpu_do_not_make_a_slow_reader_starved)
{
	begin(8);
	world_run(20);
	world_mark();
	world.bad = 1;
	world.wait_ns = 100 * MS;
	world.duty = 0.4;
	for (int i = 0; i < 30; i++) {
		feed_runq(SFU, 6 * MS, 2);
		world_run(1);
	}
	cr_expect_null(strstr(world.events, "reader-starved"), "%s", world.events);
	expect_cause(SFU, "reader-slow");
}

Test(rules_server, c09_a_reader_that_stops_is_stuck)
{
	for (int r = 0; r < 3; r++) {
		begin(9);
		world.pps = rates[r];
		world_run(20);
		world_mark();
		world.stuck = true;
		expect_within("fire/reader-stuck", 5);
		world_run(1);
		expect_cause(SFU, "reader-stuck");
		world.rcvbuf_drops = 1; /* its buffer is full by now, which is no news */
		world_run(20);
		expect_told("fire/reader-stuck worse/reader-stuck");
		expect_verdict(SFU, VERDICT_SERVER);
	}
}

/* A small buffer overflows before the age of its oldest packet tells. */
Test(rules_server, a_stuck_reader_whose_buffer_overflows_at_once_is_not_a_small_buffer)
{
	begin(10);
	world.pps = 5000;
	world_run(20);
	world_mark();
	world.stuck = true;
	world_run(0.5);
	world.rcvbuf_drops = 1;
	world_run(12);
	cr_expect_null(strstr(world.events, "buffer-small"), "%s", world.events);
	expect_cause(SFU, "reader-stuck");
}
