/* SPDX-License-Identifier: GPL-2.0-or-later */
/* built-in rules: what can't be seen is never called fine, and never called bad either. */
#include "world.h"

static void begin(uint64_t seed)
{
	if (!feed.model.rule_count)
		world_read(WORLD_SFU);
	world_begin(seed);
}

/* What sense/ hands over when a signal has no rung any more, or has one again. */
static void probe(const char *signal, bool attached)
{
	struct sample *s = &feed.sample;
	struct sample_target *t = &s->target[SFU];
	const uint32_t queue = 1U << SAMPLE_ENQUEUED | 1U << SAMPLE_READ | 1U << SAMPLE_DISCARDED;
	const uint32_t drops =
		1U << SAMPLE_DROPS_SERVER | 1U << SAMPLE_DROPS_NETWORK | 1U << SAMPLE_DROPS_RCVBUF;
	const uint32_t bits = !strcmp(signal, "dwell") ? queue : !strcmp(signal, "drops") ? drops : 0;

	feed_probe(signal, attached);
	t->counter_known = attached ? t->counter_known | bits : t->counter_known & ~bits;
	if (!strcmp(signal, "dwell"))
		t->dist[SAMPLE_DIST_DWELL].known = t->oldest_known = t->queued_known = t->fill_known =
			attached;
	if (!strcmp(signal, "runq"))
		t->dist[SAMPLE_DIST_RUNQ].known = attached;
	if (!strcmp(signal, "softirq"))
		s->host_dist[SAMPLE_HOST_SOFTIRQ_WAIT].known = s->host_dist[SAMPLE_HOST_SOFTIRQ_RUN].known =
			attached;
	if (!strcmp(signal, "rtp"))
		s->streams_known = attached;
}

Test(rules_coverage, c63_a_missing_probe_is_told_and_ok_turns_unknown)
{
	static const char *const signals[] = {"dwell", "runq", "softirq", "drops", "rtp"};

	for (int i = 0; i < 5; i++) {
		begin(41);
		probe(signals[i], false);
		world_run(30);
		cr_expect_str_eq(feed.log, "fire/probe-missing/host", "%s: %s", signals[i], feed.log);
		cr_expect_not_null(strstr(feed.last[EVENT_FIRE].evidence_text, signals[i]), "%s",
				   feed.last[EVENT_FIRE].evidence_text);
		expect_host(VERDICT_UNKNOWN);
		expect_cause(SAMPLE_HOST, "probe-missing");
		probe(signals[i], true);
		world_run(30);
		cr_expect_str_eq(feed.log, "fire/probe-missing/host resolve/probe-missing/host", "%s: %s",
				 signals[i], feed.log);
		expect_host(VERDICT_OK);
	}
}

Test(rules_coverage, idle_turns_unknown_too)
{
	begin(42);
	world.streams = 0;
	world.reader[0].arrived_ns = world.reader[0].unread_ns = NEVER;
	world_run(20);
	expect_host(VERDICT_IDLE);
	probe("softirq", false);
	world_run(10);
	expect_host(VERDICT_UNKNOWN);
}

/* Without the run queue nobody knows why; that the reader is slow is known. */
Test(rules_coverage, a_starved_reader_without_the_run_queue_is_a_slow_one)
{
	begin(43);
	probe("runq", false);
	world_run(15);
	world_mark();
	world.bad = 1;
	world.wait_ns = 60 * MS;
	world.duty = 0.4;
	expect_within("fire/reader-slow", 8);
	expect_verdict(SFU, VERDICT_SERVER);
	cr_expect_eq(feed_state("reader-starved", SFU), STATE_UNKNOWN);
}

Test(rules_coverage, c10_a_probe_that_goes_away_resolves_nothing)
{
	begin(44);
	world_run(15);
	world_mark();
	world.bad = 1;
	world.wait_ns = 25 * MS;
	world.duty = 0.4;
	world.runq = true;
	expect_within("fire/reader-starved", 8);
	world_run(5);
	probe("dwell", false);
	world.wait_ns = 0;
	world_mark();
	feed.step_ns = SEC;
	world_run(1800);
	feed.step_ns = 0;
	expect_told("fire/probe-missing nodata/reader-starved");
	cr_expect_eq(feed_state("reader-starved", SFU), STATE_FIRING);
	expect_verdict(SFU, VERDICT_SERVER);
	cr_expect_not_null(strstr(feed.last[EVENT_NODATA].evidence_text, "no data since"));
	world_mark();
	probe("dwell", true);
	world_run(12);
	cr_expect_null(strstr(world.events, "resolve/reader-starved"), "not before 15 s of good data: %s",
		       world.events);
	world_run(15);
	cr_expect_not_null(strstr(world.events, "data-back/reader-starved"), "%s", world.events);
	cr_expect_not_null(strstr(world.events, "resolve/reader-starved"), "%s", world.events);
	expect_verdict(SFU, VERDICT_OK);
}

Test(rules_coverage, a_configured_target_that_nobody_saw_is_unknown)
{
	struct sample_target *t;

	begin(45);
	t = &feed.sample.target[SFU];
	t->ever_seen = t->rtp_ever = t->media = false;
	t->pid_count = t->sockets = 0;
	t->counter_known = 0;
	t->dist[SAMPLE_DIST_DWELL].known = t->dist[SAMPLE_DIST_RUNQ].known = false;
	t->oldest_known = t->queued_known = t->fill_known = false;
	world.streams = 0;
	world.readers = 0;
	world_run(60);
	expect_verdict(SFU, VERDICT_UNKNOWN);
	expect_host(VERDICT_UNKNOWN);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}

Test(rules_coverage, a_target_whose_processes_are_gone_is_idle)
{
	struct sample_target *t;

	begin(46);
	world_run(15);
	expect_verdict(SFU, VERDICT_OK);
	t = &feed.sample.target[SFU];
	t->pid_count = t->sockets = 0;
	world.readers = world.streams = 0;
	world_run(30);
	expect_verdict(SFU, VERDICT_IDLE);
	expect_host(VERDICT_IDLE);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}

/* 45 s without a tick, then late ones at once: no burst of transitions. */
Test(rules_coverage, c20_a_starved_daemon_tells_nothing_that_it_did_not_see)
{
	begin(47);
	world_run(15);
	feed.sample.now_ns += 45 * SEC;
	feed.sample.late_ns = 45 * SEC;
	world_tick();
	feed.sample.late_ns = 0;
	world_run(30);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
	expect_verdict(SFU, VERDICT_OK);
}

Test(rules_coverage, after_a_suspend_all_begins_anew)
{
	begin(48);
	world_run(15);
	feed.sample.now_ns += 3600 * SEC;
	feed.sample.gap = true;
	world_run(2);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
	world_run(15);
	expect_verdict(SFU, VERDICT_OK);
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}
