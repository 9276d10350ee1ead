/* SPDX-License-Identifier: GPL-2.0-or-later */
/* built-in rules: what the host does to all targets: stolen CPUs, late softirqs. */
#include "world.h"

static void begin(uint64_t seed)
{
	if (!feed.model.rule_count)
		world_read(WORLD_SFU);
	world_begin(seed);
}

Test(rules_host, steal_with_slow_dwell_is_the_hypervisors_and_no_readers_fault)
{
	static const uint64_t wait_ms[] = {20, 50, 150}; /* media suffers at 10 ms */

	for (int i = 0; i < 3; i++) {
		begin(21);
		/* it is the profile that counts; what the datagrams look like only stands in for one */
		feed.sample.target[SFU].media = i > 0;
		world_run(15);
		world_mark();
		world.steal = 0.15;
		world.bad = 1;
		world.wait_ns = wait_ms[i] * MS;
		world.duty = 0.4;
		expect_within("fire/cpu-stolen", 8);
		world_run(20);
		expect_told("fire/cpu-stolen");
		expect_host(VERDICT_SERVER);
		expect_verdict(SAMPLE_HOST, VERDICT_SERVER);
		expect_cause(SAMPLE_HOST, "cpu-stolen");
		cr_expect_eq(feed_view("reader-slow", SFU).state, STATE_FIRING);
		cr_expect_eq(feed_view("reader-slow", SFU).inhibited_count, 1U);
		expect_cause(SFU, "");
		world.steal = 0;
		world.wait_ns = 0;
		world_run(40);
		expect_told("fire/cpu-stolen resolve/cpu-stolen");
		cr_expect_eq(feed_state("reader-slow", SFU), STATE_OK);
		expect_host(VERDICT_OK);
	}
}

Test(rules_host, steal_without_slow_dwell_is_nothing)
{
	begin(22);
	world_run(15);
	world.steal = 0.3;
	world_run(60);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
	expect_host(VERDICT_OK);
}

/* What is late for the host is what is late for its most sensitive target that has datagrams. */
Test(rules_host, the_host_judges_by_the_most_sensitive_target_with_traffic)
{
	struct engine_target_view v;

	begin(23);
	world_run(1);
	cr_assert(engine_target(feed.engine, SAMPLE_HOST, &v));
	cr_expect_str_eq(v.profile, "media");
	world.reader[0].arrived_ns = world.reader[0].unread_ns = NEVER;
	world_run(11);
	cr_assert(engine_target(feed.engine, SAMPLE_HOST, &v));
	cr_expect_str_eq(v.profile, "generic");
	feed_target(DNS, "dns.service")->media = false;
	feed_dwell(DNS, 50 * US, 1);
	world_run(1);
	cr_assert(engine_target(feed.engine, SAMPLE_HOST, &v));
	cr_expect_str_eq(v.profile, "generic", "found by itself, nobody said it is dns");
}

/* 40 ms of a generic service are not late, whatever the hypervisor does. */
Test(rules_host, steal_and_dwell_that_is_not_late_for_anybody_is_nothing)
{
	world_read("targets = ( { name = \"sfu\"; process = \"x\"; profile = \"generic\"; } );");
	world_begin(24);
	feed.sample.target[SFU].media = false;
	world_run(15);
	world.steal = 0.2;
	world.bad = 1;
	world.wait_ns = 40 * MS;
	world.duty = 0.3;
	world_run(30);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}

Test(rules_host, late_softirqs_are_told_and_nothing_else)
{
	for (unsigned int pps = 50; pps <= 5000; pps *= 10U) {
		begin(25);
		world.pps = pps;
		world_run(15);
		world_mark();
		world.softirq_ns = 8 * MS;
		world.late = world.streams; /* it shows as jitter at arrival, and that is not the network's */
		world.jitter_ms = 70;
		expect_within("fire/softirq-late", 8);
		world_run(30);
		expect_told("fire/softirq-late");
		expect_verdict(SAMPLE_HOST, VERDICT_SERVER);
		expect_verdict(SFU, VERDICT_OK);
		expect_host(VERDICT_SERVER);
		world.softirq_ns = 20 * US;
		world.late = 0;
		world_run(40);
		expect_told("fire/softirq-late resolve/softirq-late");
	}
}

Test(rules_host, one_late_softirq_pass_is_nothing)
{
	begin(26);
	world_run(15);
	world.softirq_ns = 50 * MS;
	world_run(0.25);
	world.softirq_ns = 20 * US;
	world_run(30);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}
