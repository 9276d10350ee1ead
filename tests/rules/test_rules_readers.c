/* SPDX-License-Identifier: GPL-2.0-or-later */
/* built-in rules: one bad reader in a pool; buffers that overflow; services with hardly any traffic. */
#include "world.h"

static void begin(uint64_t seed)
{
	if (!feed.model.rule_count)
		world_read(WORLD_SFU);
	world_begin(seed);
}

/* ---- a pool of readers ---- */

/* pps of all 64 together: the bad one has 50, 500 or 5000 packets/s. */
Test(rules_readers, one_starved_reader_of_64_is_told_within_8_s)
{
	static const unsigned int pps[] = {64 * 50, 64 * 500, 64 * 5000};
	struct engine_target_view v;

	for (int i = 0; i < 3; i++) {
		begin(11);
		world.pps = pps[i];
		world.readers = 64;
		world_run(15);
		expect_verdict(SFU, VERDICT_OK);
		world_mark();
		world.bad = 1;
		world.wait_ns = 60 * MS;
		world.duty = 0.3;
		world.runq = true;
		expect_within("fire/reader-starved", 8);
		world_run(3);
		expect_told("fire/reader-starved");
		cr_assert(engine_target(feed.engine, SFU, &v));
		cr_expect_eq(v.worst_tid, 5000, "the bad one is named");
		world_run(15);
		expect_told("fire/reader-starved worse/reader-starved");
		world_mark();
		world.wait_ns = 0;
		expect_within("resolve/reader-starved", 30);
		expect_verdict(SFU, VERDICT_OK);
	}
}

/* With too few packets for a percentile of one reader (10/s) the p99 of all decides, later. */
Test(rules_readers, a_bad_reader_with_few_packets_is_told_by_the_p99_of_all)
{
	begin(12);
	world.pps = 64 * 7;
	world.readers = 64;
	world_run(15);
	world_mark();
	world.bad = 2;
	world.wait_ns = 200 * MS;
	world.duty = 0.9;
	world.runq = true;
	expect_within("fire/reader-starved", 20);
}

Test(rules_readers, single_slow_packets_of_many_readers_are_nothing)
{
	begin(13);
	world.pps = 64 * 50;
	world.readers = 64;
	for (int i = 0; i < 60; i++) { /* each second another one is late once by 25 ms: one packet of 3200 */
		world.reader[i % 64].begin_ns = feed.sample.now_ns;
		world.reader[i % 64].end_ns = feed.sample.now_ns + 25 * MS;
		world_run(1);
	}
	cr_expect_eq(feed.total, 0, "%s", feed.log);
	expect_verdict(SFU, VERDICT_OK);
}

/* Each thread reads too little for a percentile of its own, and now and then a packet is late: the target is
 * still busy. */
Test(rules_readers, a_busy_pool_of_readers_is_ok_not_idle)
{
	begin(20);
	world.pps = 64 * 7;
	world.readers = 64;
	world_run(11);
	for (int i = 0; i < 120; i++) {
		if (i % 7 == 0) {
			world.reader[i % 64].begin_ns = feed.sample.now_ns;
			world.reader[i % 64].end_ns = feed.sample.now_ns + 180 * MS;
		}
		world_run(0.5);
		expect_verdict(SFU, VERDICT_OK);
		expect_host(VERDICT_OK);
	}
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}

/* ---- buffers ---- */

Test(rules_readers, c56_drops_with_a_prompt_reader_are_a_small_buffer)
{
	static const unsigned int rates[] = {50, 500, 5000};

	for (int i = 0; i < 3; i++) {
		begin(14);
		world.pps = rates[i];
		world_run(15);
		world_mark();
		world.rcvbuf_drops = 0.03;
		expect_within("fire/buffer-small", 8);
		world_run(20);
		expect_told("fire/buffer-small");
		expect_verdict(SFU, VERDICT_SERVER);
		world.rcvbuf_drops = 0;
		world_run(30);
		expect_told("fire/buffer-small resolve/buffer-small");
	}
}

Test(rules_readers, drops_of_a_starved_reader_are_the_readers_fault)
{
	begin(15);
	world_run(15);
	world_mark();
	world.bad = 1;
	world.wait_ns = 300 * MS;
	world.duty = 0.5;
	world.runq = true;
	world.rcvbuf_drops = 0.2;
	world_run(30);
	expect_told("fire/reader-starved worse/reader-starved");
}

Test(rules_readers, one_burst_of_drops_is_nothing)
{
	begin(16);
	world_run(15);
	feed.sample.target[SFU].counter[SAMPLE_DROPS_RCVBUF] += 300;
	feed.sample.target[SFU].counter[SAMPLE_DROPS_SERVER] += 300;
	world_run(30);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}

Test(rules_readers, memory_exhaustion_is_no_small_buffer)
{
	begin(17);
	world_run(15);
	world_mark();
	world.memory_drops = 0.05;
	world_run(30);
	cr_expect_null(strstr(world.events, "buffer-small"), "%s", world.events);
}

/* ---- hardly any traffic ---- */

static void begin_idle(unsigned int packets, uint64_t dwell_ns, unsigned int every_ticks)
{
	static char text[] = "targets = ( { name = \"sfu\"; process = \"named\"; profile = \"dns\"; } );";

	world_read(text);
	world_begin(18);
	world.streams = 0;
	feed.sample.target[SFU].media = feed.sample.target[SFU].rtp_ever = false;
	world.reader[0].arrived_ns = world.reader[0].unread_ns = NEVER;
	for (unsigned int i = 0; i < 120 * 4; i++) {
		if (packets && i % every_ticks == 0) {
			feed_dwell(SFU, dwell_ns, 1);
			packets--;
		}
		world_tick();
		if (i > 11 * 4 && dwell_ns < MS)
			cr_expect(feed_verdict(SFU) == VERDICT_IDLE &&
					  engine_verdict(feed.engine) == VERDICT_IDLE,
				  "%s at tick"
				  " %u",
				  verdict_name(feed_verdict(SFU)), i);
	}
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}

Test(rules_readers, one_fast_packet_a_second_is_idle_never_unknown)
{
	begin_idle(1000, 80 * US, 4);
}

Test(rules_readers, one_fast_packet_in_7_s_is_idle_never_unknown)
{
	begin_idle(1000, 80 * US, 28);
	begin_idle(0, 0, 1);
	expect_verdict(SFU, VERDICT_IDLE);
	expect_host(VERDICT_IDLE);
}

Test(rules_readers, c07_three_slow_packets_are_unknown_and_no_event)
{
	static char text[] = "targets = ( { name = \"sfu\"; process = \"named\"; profile = \"dns\"; } );";

	world_read(text);
	world_begin(19);
	world.streams = 0;
	feed.sample.target[SFU].media = feed.sample.target[SFU].rtp_ever = false;
	world.reader[0].arrived_ns = world.reader[0].unread_ns = NEVER;
	world_run(12);
	for (int i = 0; i < 3; i++) {
		feed_dwell(SFU, 900 * MS, 1);
		world_run(2);
		expect_verdict(SFU, VERDICT_UNKNOWN);
	}
	world_run(60);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
	expect_verdict(SFU, VERDICT_IDLE);
}
