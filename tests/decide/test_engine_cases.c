/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine: cases that users of comparable watchdogs reported, as fed samples. */
#include "feed.h"

/* The default rule of the cases: raise > 20 ms for 10 s, clear < 10 ms for 30 s, 200 samples. */
static struct model_rule *case_rule(void)
{
	struct model_rule *r;

	feed_model();
	r = feed_rule("r", CLASS_SERVER, "dwell.p99[1s] > 20ms", "dwell.p99[1s] < 10ms");
	r->for_ns = 10 * SEC;
	r->clear_for_ns = 30 * SEC;
	return r;
}

static void start_warm(void)
{
	feed_start();
	feed_fine(12);
}

Test(engine_cases, c01_alternating_around_the_threshold_is_no_event)
{
	case_rule();
	start_warm();
	bool pending = false;

	for (int i = 0; i < 300; i++) {
		feed_load(SFU, 1.25, (i % 2 ? 25 : 15) * MS, 10 * US, 2000);
		pending |= feed_state("r", SFU) == STATE_PENDING;
	}
	cr_expect_eq(feed.total, 0, "%s", feed.log);
	cr_expect(pending);
}

Test(engine_cases, c02_between_clear_and_raise_it_stays_one_alert)
{
	case_rule();
	start_warm();
	feed_load(SFU, 14, 25 * MS, 10 * US, 2000);
	feed_load(SFU, 300, 15 * MS, 10 * US, 2000);
	cr_expect_str_eq(feed.log, "fire/r/sfu");
	cr_expect_eq(feed_state("r", SFU), STATE_FIRING);
}

Test(engine_cases, c04_equality_neither_raises_nor_clears)
{
	struct model_rule *r;

	feed_model();
	/* a count is exact: histogram slots are not */
	r = feed_rule("r", CLASS_SERVER, "dwell.count > 5000", "dwell.count < 2500");
	r->for_ns = 2 * SEC;
	r->clear_for_ns = 2 * SEC;
	feed_start();
	feed_load(SFU, 60, 1 * MS, 0, 500);
	cr_expect_eq(feed_view("r", SFU).evidence[0].value, 5000);
	cr_expect_eq(feed.total, 0);
	feed_load(SFU, 30, 1 * MS, 0, 600);
	cr_expect_str_eq(feed.log, "fire/r/sfu");
	for (int i = 0; i < 60; i++) {		/* 2500 in any 10 s: 250 in the first tick of each second */
		feed_dwell(SFU, 1 * MS, 250);
		feed_silence(1);
	}
	cr_expect_eq(feed_view("r", SFU).evidence[0].value, 2500);
	cr_expect_eq(feed.count[EVENT_RESOLVE], 0);
	feed_load(SFU, 20, 1 * MS, 0, 240);
	cr_expect_eq(feed.count[EVENT_RESOLVE], 1);
}

Test(engine_cases, c05_flapping_freezes_hooks_and_settles)
{
	struct model_rule *r = case_rule();

	r->for_ns = r->clear_for_ns = 5 * SEC;
	r->ladder = (int8_t)feed_hook("raise-cpu", HOOK_REMEDY, 5 * SEC, NULL);
	feed.model.mode = MODE_ACT;
	start_warm();
	for (int i = 0; i < 10; i++) {
		feed_load(SFU, 8, 25 * MS, 10 * US, 2000);
		feed_load(SFU, 20, 1 * MS, 10 * US, 2000);	/* quiet, undone, resolved */
	}
	cr_expect_eq(feed.count[EVENT_FLAPPING], 1, "%s", feed.log);
	cr_expect_eq(feed_state("r", SFU), STATE_FLAPPING);
	const unsigned int told = feed.total, runs = feed.runs;

	for (int i = 0; i < 10; i++) {
		feed_load(SFU, 8, 25 * MS, 10 * US, 2000);
		feed_load(SFU, 8, 1 * MS, 10 * US, 2000);
	}
	cr_expect_eq(feed.total, told, "no more events");
	cr_expect_eq(feed.runs, runs, "hooks are frozen");
	feed.step_ns = SEC;
	feed_load(SFU, 3610, 1 * MS, 10 * US, 2000);
	feed.step_ns = 0;
	cr_expect_eq(feed.count[EVENT_SETTLED], 1);
	cr_expect_not_null(strstr(feed.last[EVENT_SETTLED].evidence_text, "more changes"), "%s",
			   feed.last[EVENT_SETTLED].evidence_text);
	cr_expect_eq(feed_state("r", SFU), STATE_OK);
}

Test(engine_cases, c07_too_few_samples_are_unknown_and_say_how_many)
{
	struct model_rule *r;
	struct engine_rule_view v;

	feed_model();
	r = feed_rule("r", CLASS_SERVER, "dwell.p99 > 20ms", "dwell.p99 < 10ms");
	r->samples[STAT_P99] = 200;
	feed_start();
	for (int i = 0; i < 60 * 4; i++) {
		if (i % 13 == 0)
			feed_dwell(SFU, 900 * MS, 1);
		feed_tick();
	}
	v = feed_view("r", SFU);
	cr_expect_eq(feed.total, 0);
	cr_expect_eq(v.state, STATE_UNKNOWN);
	cr_expect_eq(v.need, 200);
	cr_expect(v.have >= 3 && v.have <= 4, "%lu", (unsigned long)v.have);
	cr_expect_not_null(strstr(v.why, "of 200"), "%s", v.why);
	cr_expect_eq(feed_verdict(SFU), VERDICT_UNKNOWN);
}

Test(engine_cases, few_packets_that_are_fine_are_idle)
{
	case_rule();
	feed_start();
	for (int i = 0; i < 20 * 4; i++) {
		feed_dwell(SFU, 1 * MS, 1);
		feed_tick();
	}
	cr_expect_eq(feed_state("r", SFU), STATE_IDLE);
	cr_expect_eq(feed_verdict(SFU), VERDICT_IDLE);
}

Test(engine_cases, c08_no_datagrams_at_all_is_idle_and_not_resolved)
{
	case_rule();
	start_warm();
	feed_load(SFU, 5, 1 * MS, 0, 5000);
	cr_expect_eq(feed_verdict(SFU), VERDICT_OK);
	feed_silence(60);
	cr_expect_eq(feed_state("r", SFU), STATE_IDLE);
	cr_expect_eq(feed_verdict(SFU), VERDICT_IDLE);
	cr_expect_eq(engine_verdict(feed.engine), VERDICT_IDLE);
	feed_load(SFU, 20, 25 * MS, 0, 5000);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
	feed_silence(120);
	cr_expect_eq(feed_state("r", SFU), STATE_FIRING);
	cr_expect_str_eq(feed.log, "fire/r/sfu");
}

Test(engine_cases, c09_a_reader_that_stopped_fires_although_it_has_no_samples)
{
	struct model_rule *r;

	feed_model();
	feed_starved();
	r = feed_rule("reader-stuck", CLASS_SERVER, "dwell.oldest > 2s", "dwell.oldest < 1s");
	r->for_ns = 1 * SEC;
	feed_start();
	feed_fine(12);
	for (int i = 0; i < 8 * 4; i++) {
		feed.sample.target[SFU].counter[SAMPLE_ENQUEUED] += 250;
		feed.sample.target[SFU].queued += 250;
		feed.sample.target[SFU].oldest_ns = (uint64_t)i * TICK;
		feed_tick();
	}
	cr_expect_str_eq(feed.log, "fire/reader-stuck/sfu");
	cr_expect_eq(feed_verdict(SFU), VERDICT_SERVER);
	cr_expect_str_eq(feed.last[EVENT_FIRE].evidence[0].term, "dwell.oldest");
	cr_expect(feed.last[EVENT_FIRE].value > 2e9);
}

Test(engine_cases, c10_a_probe_that_goes_away_resolves_nothing)
{
	case_rule();
	feed_rule("probe-missing", CLASS_COVERAGE, "probes.missing > 0", NULL)->for_ns = 3 * SEC;
	start_warm();
	feed_load(SFU, 14, 25 * MS, 10 * US, 2000);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
	feed_probe("dwell", false);
	feed.sample.target[SFU].dist[SAMPLE_DIST_DWELL].known = false;
	feed.sample.target[SFU].counter_known = 0;
	feed.step_ns = SEC;
	feed_silence(7200);
	feed.step_ns = 0;
	cr_expect_eq(feed_state("r", SFU), STATE_FIRING);
	cr_expect_eq(feed.count[EVENT_NODATA], 1, "%s", feed.log);
	cr_expect_not_null(strstr(feed.last[EVENT_NODATA].evidence_text, "no data since"));
	cr_expect_eq(feed.count[EVENT_FIRE], 2);
	cr_expect_str_eq(feed.last[EVENT_FIRE].rule, "probe-missing");
	cr_expect_not_null(strstr(feed.last[EVENT_FIRE].evidence_text, "dwell"), "%s",
			   feed.last[EVENT_FIRE].evidence_text);
	feed_probe("dwell", true);
	feed.sample.target[SFU].dist[SAMPLE_DIST_DWELL].known = true;
	feed.sample.target[SFU].counter_known = (1U << SAMPLE_COUNTER_COUNT) - 1;
	feed_load(SFU, 29, 5 * MS, 10 * US, 2000);
	cr_expect_eq(feed.count[EVENT_DATA_BACK], 1);
	cr_expect_str_eq(feed.last[EVENT_DATA_BACK].rule, "r");
	cr_expect_eq(feed_state("r", SFU), STATE_FIRING);
	feed_load(SFU, 5, 5 * MS, 10 * US, 2000);
	cr_expect_eq(feed_state("r", SFU), STATE_OK);
}

Test(engine_cases, c12_a_target_that_appears_later_binds_within_a_tick)
{
	struct sample_target *t = &feed.sample.target[SFU];

	case_rule();
	feed_start();
	t->ever_seen = false;
	t->pid_count = 0;
	feed_silence(300);
	cr_expect_eq(feed_state("r", SFU), STATE_UNKNOWN);
	cr_expect_str_eq(feed_view("r", SFU).why, "no process matched yet");
	cr_expect_eq(feed_verdict(SFU), VERDICT_UNKNOWN);
	t->ever_seen = true;
	t->pid_count = 1;
	feed_load(SFU, 1, 25 * MS, 0, 2000);
	cr_expect_eq(feed_state("r", SFU), STATE_PENDING);
	feed_load(SFU, 11, 25 * MS, 0, 2000);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
}

Test(engine_cases, a_target_whose_processes_are_gone_is_idle)
{
	case_rule();
	start_warm();
	feed.sample.target[SFU].pid_count = 0;
	feed_tick();
	cr_expect_eq(feed_state("r", SFU), STATE_IDLE);
	cr_expect_eq(feed_verdict(SFU), VERDICT_IDLE);
}

Test(engine_cases, c13_a_constant_value_is_data)
{
	case_rule();
	start_warm();
	feed.step_ns = SEC;
	for (int i = 0; i < 3600; i++) {
		feed_load(SFU, 1, 2 * MS, 0, 400);
		cr_assert_eq(feed_state("r", SFU), STATE_OK, "after %d s", i);
	}
	cr_expect_eq(feed.total, 0);
}

Test(engine_cases, c14_unknown_in_and_or_not)
{
	feed_model();
	feed_rule("and", CLASS_SERVER, "dwell.p99 > 1s and runq.p99 > 1s", NULL);
	feed_rule("or", CLASS_SERVER, "dwell.p99 > 1us or runq.p99 > 1s", NULL);
	feed_rule("not", CLASS_SERVER, "not (runq.p99 > 1s)", NULL);
	feed_start();
	feed_probe("runq", false);
	feed.sample.target[SFU].dist[SAMPLE_DIST_RUNQ].known = false;
	feed_load(SFU, 30, 1 * MS, 0, 1000);
	cr_expect_eq(feed_state("and", SFU), STATE_OK, "false and unknown is false");
	cr_expect_eq(feed_state("or", SFU), STATE_FIRING, "true or unknown is true");
	cr_expect_eq(feed_state("not", SFU), STATE_UNKNOWN);
	cr_expect_not_null(strstr(feed_view("not", SFU).why, "runq can not be read"));
}

Test(engine_cases, c15_a_counter_that_goes_back_is_unknown_never_a_spike)
{
	static const uint64_t reading[] = { 1000, 1010, 3, 8 };
	struct model_rule *r;

	feed_model();
	r = feed_rule("drops", CLASS_SERVER, "drops.server.rate[1s] > 1000/s", NULL);
	r->for_ns = 0;
	feed_start();
	feed_fine(12);
	for (size_t i = 0; i < 4; i++) {
		feed.sample.target[SFU].counter[SAMPLE_DROPS_SERVER] = reading[i];
		/* the first jump, 0 to 1000, is real: 1000 in a second is not more than 1000 */
		feed_fine(2);
	}
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}

Test(engine_cases, c17_totals_since_boot_are_a_baseline)
{
	struct model_rule *r;

	feed_model();
	r = feed_rule("nic-drop", CLASS_HOST, "host.nic_drops.rate > 10/s", NULL);
	r->for_ns = 0;
	feed_start();
	feed.sample.host_counter[SAMPLE_HOST_NIC_DROPS] = 9000000;
	feed_tick();
	cr_expect_eq(feed_state("nic-drop", SAMPLE_HOST), STATE_UNKNOWN);
	cr_expect_gt(strlen(feed_view("nic-drop", SAMPLE_HOST).why), 0);
	feed_silence(60);
	cr_expect_eq(feed.total, 0);
	cr_expect_eq(feed_state("nic-drop", SAMPLE_HOST), STATE_OK);
}

Test(engine_cases, c19_wall_clock_jumps_change_no_hold_and_no_duration)
{
	case_rule();
	start_warm();
	feed_load(SFU, 6, 25 * MS, 0, 2000);
	feed.sample.wall_us -= 3600000000ULL;
	feed_load(SFU, 3, 25 * MS, 0, 2000);
	cr_expect_eq(feed.total, 0);
	feed.sample.wall_us += 86400000000ULL;
	feed_load(SFU, 4, 25 * MS, 0, 2000);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
	cr_expect_geq(feed.last[EVENT_FIRE].started_us, feed.sample.wall_us - 10000000);
	feed.sample.wall_us += 86400000000ULL;
	feed_load(SFU, 33, 5 * MS, 0, 2000);
	cr_expect_eq(feed.count[EVENT_RESOLVE], 1);
	cr_expect_lt(feed.last[EVENT_RESOLVE].duration_ns, 40 * SEC);
}

Test(engine_cases, c20_a_stalled_loop_is_one_late_tick)
{
	case_rule();
	start_warm();
	feed_load(SFU, 2, 25 * MS, 0, 2000);
	feed.sample.now_ns += 45 * SEC;
	feed.sample.late_ns = 45 * SEC;
	feed_dwell(SFU, 25 * MS, 90000);
	feed_tick();
	feed.sample.now_ns -= TICK;	/* the ticks that were due come at once */
	feed.sample.late_ns = 0;
	feed_tick();
	feed.sample.now_ns -= TICK;
	feed_tick();
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}

Test(engine_cases, c25_a_gap_pauses_for_and_a_long_one_restarts_it)
{
	case_rule();
	start_warm();
	feed_load(SFU, 7, 25 * MS, 0, 2000);	/* about 6 s of evidence */
	feed.sample.now_ns += 5 * SEC;
	feed.sample.gap = true;
	feed_load(SFU, 3, 25 * MS, 0, 2000);
	cr_expect_eq(feed.total, 0);
	feed_load(SFU, 2.5, 25 * MS, 0, 2000);
	cr_expect_eq(feed.count[EVENT_FIRE], 1, "(a)");

	feed_load(SFU, 40, 1 * MS, 0, 2000);
	cr_expect_eq(feed.count[EVENT_RESOLVE], 1);
	feed_load(SFU, 7, 25 * MS, 0, 2000);
	feed.sample.now_ns += 3600 * SEC;
	feed.sample.gap = true;
	feed_load(SFU, 9, 25 * MS, 0, 2000);
	cr_expect_eq(feed.count[EVENT_FIRE], 1, "(b)");
	feed_load(SFU, 3, 25 * MS, 0, 2000);
	cr_expect_eq(feed.count[EVENT_FIRE], 2);
}

Test(engine_cases, c27_reload_of_an_unchanged_file_is_nothing)
{
	case_rule();
	start_warm();
	for (int i = 0; i < 10; i++)
		feed_reload();
	feed_load(SFU, 6, 25 * MS, 0, 2000);
	feed_reload();
	feed_load(SFU, 6, 25 * MS, 0, 2000);
	cr_expect_eq(feed.count[EVENT_FIRE], 1, "the hold goes on over the reload");
	char id[EVENT_ID];

	strcpy(id, feed_view("r", SFU).alert_id);
	for (int i = 0; i < 10; i++) {
		feed_reload();
		feed_load(SFU, 1, 25 * MS, 0, 2000);
	}
	cr_expect_str_eq(feed.log, "fire/r/sfu");
	cr_expect_str_eq(feed_view("r", SFU).alert_id, id);
}

Test(engine_cases, c29_a_removed_rule_withdraws_its_alert_and_takes_back_its_remedy)
{
	struct model_rule *r = case_rule();

	r->ladder = (int8_t)feed_hook("raise-cpu", HOOK_REMEDY, 300 * SEC, "host.cpu.busy < 80%");
	feed.model.mode = MODE_ACT;
	start_warm();
	feed_load(SFU, 14, 25 * MS, 0, 2000);
	cr_expect_eq(feed.runs, 1);
	strcpy(r->name, "renamed");
	r->ladder = -1;
	feed_reload();
	cr_expect_eq(feed.count[EVENT_WITHDRAW], 1, "%s", feed.log);
	cr_expect_str_eq(feed.last[EVENT_WITHDRAW].rule, "r");
	cr_expect_eq(feed.last[EVENT_WITHDRAW].state, STATE_WITHDRAWN);
	cr_expect_eq(feed.last[EVENT_WITHDRAW].prev_state, STATE_FIRING);
	feed_load(SFU, 5, 25 * MS, 0, 2000);
	cr_expect_eq(feed.runs, 2);
	cr_expect_str_eq(feed.last_run.action, "undo");
	cr_expect_eq(feed.settled, 1);
	feed_load(SFU, 2, 25 * MS, 0, 2000);
	cr_expect_eq(feed.runs, 2, "once");
}

Test(engine_cases, c30_a_new_rule_that_is_already_true_warms_up_first)
{
	struct model_rule *r;

	case_rule();
	start_warm();
	feed_load(SFU, 20, 25 * MS, 0, 2000);
	r = feed_rule("new", CLASS_SERVER, "dwell.p99 > 20ms", NULL);
	r->for_ns = 5 * SEC;
	feed_reload();
	feed_load(SFU, 1, 25 * MS, 0, 2000);
	cr_expect_eq(feed_state("new", SFU), STATE_UNKNOWN);
	cr_expect_not_null(strstr(feed_view("new", SFU).why, "warming up"));
	feed_load(SFU, 13, 25 * MS, 0, 2000);
	cr_expect_eq(feed.count[EVENT_FIRE], 1, "10 s window, then for");
	feed_load(SFU, 3, 25 * MS, 0, 2000);
	cr_expect_eq(feed.count[EVENT_FIRE], 2);
}

Test(engine_cases, c32_a_fresh_start_does_nothing_or_one_do)
{
	struct model_rule *r = case_rule();

	r->ladder = (int8_t)feed_hook("raise-cpu", HOOK_REMEDY, 300 * SEC, NULL);
	feed.model.mode = MODE_ACT;
	feed_start();
	feed_fine(120);
	cr_expect_eq(feed.total, 0);
	cr_expect_eq(feed.runs + feed.debts, 0);

	engine_free(feed.engine);
	memset(&feed, 0, sizeof(feed));
	r = case_rule();
	r->ladder = (int8_t)feed_hook("raise-cpu", HOOK_REMEDY, 300 * SEC, NULL);
	feed.model.mode = MODE_ACT;
	feed_start();
	feed_load(SFU, 120, 25 * MS, 0, 2000);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
	cr_expect_eq(feed.debts, 1);
	cr_expect_eq(feed.runs, 1);
}

Test(engine_cases, c63_one_hidden_probe_leaves_the_others_working)
{
	struct model_rule *r;

	feed_model();
	feed_starved();
	r = feed_rule("reader-slow", CLASS_SERVER, "dwell.p99 > $slow", "dwell.p99 < $clear");
	r->for_ns = 7 * SEC;
	feed_rule("probe-missing", CLASS_COVERAGE, "probes.missing > 0", NULL)->for_ns = 3 * SEC;
	feed_start();
	feed_probe("runq", false);
	for (int i = 0; i < SAMPLE_TARGETS; i++)
		feed.sample.target[i].dist[SAMPLE_DIST_RUNQ].known = false;
	feed_fine(20);
	cr_expect_str_eq(feed.log, "fire/probe-missing/host");
	cr_expect_not_null(strstr(feed_view("probe-missing", SAMPLE_HOST).why, "runq"));
	cr_expect_eq(feed_state("reader-slow", SFU), STATE_OK);
	cr_expect_eq(feed_verdict(SAMPLE_HOST), VERDICT_UNKNOWN);
	cr_expect_eq(engine_verdict(feed.engine), VERDICT_UNKNOWN);
	feed_slow(20);
	cr_expect_eq(feed_state("reader-starved", SFU), STATE_UNKNOWN);
	cr_expect_eq(feed_state("reader-slow", SFU), STATE_FIRING);
	cr_expect_eq(feed_verdict(SFU), VERDICT_SERVER);
}

/* One stall: packets queue for its length, then all are read at once. */
static void stall(uint64_t length_ns)
{
	const unsigned int packets = (unsigned int)(length_ns / MS);

	for (unsigned int i = 0; i < packets; i++)
		feed_dwell(SFU, length_ns - i * MS + 50 * US, 1);
	feed_runq(SFU, length_ns, 1);
	feed_tick();
}

Test(engine_cases, one_stall_of_100_or_500_ms_fires_nothing)
{
	static const uint64_t lengths[] = { 100 * MS, 500 * MS };

	feed_model();
	feed_starved();
	feed_start();
	feed_fine(30);
	for (int i = 0; i < 2; i++) {
		stall(lengths[i]);
		feed_fine(30);
	}
	cr_expect_eq(feed.total, 0, "%s", feed.log);
}

Test(engine_cases, a_lasting_shortage_fires_within_8_s)
{
	uint64_t begin_ns;

	feed_model();
	feed_starved();
	feed_start();
	feed_fine(30);
	begin_ns = feed.sample.now_ns;
	while (!feed.count[EVENT_FIRE] && feed.sample.now_ns - begin_ns < 20 * SEC)
		feed_load(SFU, 0.25, 25 * MS, 24 * MS, 200);
	cr_expect_leq(feed.sample.now_ns - begin_ns, 8 * SEC);
	cr_expect_eq(feed_verdict(SFU), VERDICT_SERVER);
}
