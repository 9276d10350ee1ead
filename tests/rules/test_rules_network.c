/* SPDX-License-Identifier: GPL-2.0-or-later */
/* built-in rules: the network's faults are told as the network's, and this host's are not. */
#include "world.h"

static void begin(uint64_t seed, unsigned int streams)
{
	if (!feed.model.rule_count)
		world_read(WORLD_SFU);
	world_begin(seed);
	world.streams = streams;
	world.pps = 50 * streams;
	world_run(15);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
	world_mark();
}

static void expect_network(const char *rule)
{
	char fire[64], both[128];

	snprintf(fire, sizeof(fire), "fire/%s", rule);
	expect_within(fire, 15);
	world_run(20);
	expect_told(fire);
	expect_verdict(SFU, VERDICT_NETWORK);
	expect_host(VERDICT_NETWORK);
	expect_cause(SFU, rule);
	world.lossy = world.late = 0;
	world_run(60);
	snprintf(both, sizeof(both), "%s resolve/%s", fire, rule);
	expect_told(both);
	expect_verdict(SFU, VERDICT_OK);
}

Test(rules_network, loss_on_all_streams)
{
	static const unsigned int streams[] = {5, 20, 100, 200};

	for (int i = 0; i < 4; i++) {
		begin(31, streams[i]);
		world.lossy = streams[i];
		world.loss = 0.08;
		expect_network("network-loss");
	}
}

Test(rules_network, jitter_on_all_streams)
{
	static const unsigned int streams[] = {1, 5, 20, 200};

	for (int i = 0; i < 4; i++) {
		begin(32, streams[i]);
		world.late = streams[i];
		world.jitter_ms = 80;
		expect_network("network-jitter");
	}
}

static void expect_nothing(unsigned int streams, unsigned int bad)
{
	begin(33, streams);
	world.lossy = world.late = bad;
	world.loss = 0.3;
	world.jitter_ms = 150;
	world_run(60);
	cr_expect_eq(feed.total, 0, "%u of %u: %s", bad, streams, feed.log);
	expect_verdict(SFU, VERDICT_OK);
}

Test(rules_network, a_few_bad_streams_are_their_senders)
{
	expect_nothing(20, 1);
	expect_nothing(20, 4); /* 20 % is not more than 20 % */
	expect_nothing(4, 2);
	expect_nothing(4, 3);
	expect_nothing(2, 1);
}

Test(rules_network, all_of_few_streams_bad_is_the_network)
{
	for (unsigned int n = 1; n <= 4; n++) {
		begin(34, n);
		world.lossy = n;
		world.loss = 0.1;
		expect_network("network-loss");
	}
}

/* The link was down for a second: over when anybody reads of it. */
Test(rules_network, one_burst_of_loss_is_nothing)
{
	for (int i = 1; i <= 4; i++) {
		begin(35, 20);
		world.lossy = 20;
		world.loss = 1;
		world_run(0.5 * i);
		world.lossy = 0;
		world_run(40);
		cr_expect_eq(feed.total, 0, "%g s: %s", 0.5 * i, feed.log);
	}
}

Test(rules_network, a_little_loss_everywhere_is_nothing)
{
	begin(36, 50);
	world.lossy = 50;
	world.loss = 0.02;
	world_run(120);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}

Test(rules_network, loss_with_local_drops_is_not_the_networks)
{
	begin(37, 20);
	world.lossy = 20;
	world.loss = 0.1;
	world.rcvbuf_drops = 0.05;
	world_run(40);
	expect_told("fire/buffer-small");
	expect_verdict(SFU, VERDICT_SERVER);
	begin(38, 20);
	world.lossy = 20;
	world.loss = 0.1;
	world.nic_drops = 0.05;
	world_run(40);
	cr_expect_null(strstr(feed.log, "network"), "%s", feed.log);
}

Test(rules_network, starved_and_lossy_at_once_is_mixed)
{
	begin(39, 20);
	world.lossy = 20;
	world.loss = 0.1;
	world.bad = 1;
	world.wait_ns = 60 * MS;
	world.duty = 0.3;
	world.runq = true;
	world_run(15);
	expect_told("fire/reader-starved fire/network-loss");
	expect_verdict(SFU, VERDICT_MIXED);
	expect_host(VERDICT_MIXED);
	expect_cause(SFU, "reader-starved");
}

/* A starved reader does not touch what is counted at arrival. */
Test(rules_network, starvation_alone_is_not_the_networks)
{
	begin(40, 20);
	world.bad = 1;
	world.wait_ns = 300 * MS;
	world.duty = 0.8;
	world.runq = true;
	world_run(60);
	expect_told("fire/reader-starved worse/reader-starved");
	expect_verdict(SFU, VERDICT_SERVER);
}
