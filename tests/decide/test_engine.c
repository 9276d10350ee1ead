/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine: the way from samples to verdicts, events and orders. */
#include "feed.h"

static int raise_cpu;

/* reader-starved and reader-slow with the shipped numbers, remedy raise-cpu with short undo, mode act. */
static struct model_rule *ladder_model(void)
{
	struct model_rule *r;

	feed_model();
	feed.model.mode = MODE_ACT;
	raise_cpu = feed_hook("raise-cpu", HOOK_REMEDY, 20 * SEC, "host.cpu.busy < 80%");
	r = feed_starved();
	r->ladder = (int8_t)raise_cpu;
	return r;
}

static void busy(bool is_busy)
{
	/* feed_tick() adds 100 to the total; the busy part is set by the caller, tick by tick */
	feed.sample.host_counter[SAMPLE_HOST_CPU_BUSY] += is_busy ? 95 : 10;
}

static void fine_for(int seconds, bool host_busy)
{
	for (int i = 0; i < seconds * 4; i++) {
		busy(host_busy);
		feed_fine(0.25);
	}
}

static void slow_for(int seconds, bool host_busy)
{
	for (int i = 0; i < seconds * 4; i++) {
		busy(host_busy);
		feed_slow(0.25);
	}
}

/* ---- events ---- */

Test(engine, a_fire_event_is_complete_in_itself)
{
	const struct event *ev = &feed.last[EVENT_FIRE];
	char id[EVENT_ID];

	feed_model();
	feed_starved();
	feed_start();
	feed_probe("runq", true);
	feed.sample.probe[0].exact = false;
	feed_fine(12);
	feed_slow(10);
	cr_assert_eq(feed.count[EVENT_FIRE], 1);
	snprintf(id, sizeof(id), "media1-reader-starved-sfu-%llu", (unsigned long long)ev->started_us);
	cr_expect_str_eq(ev->alert_id, id);
	cr_expect_str_eq(ev->rule, "reader-starved");
	cr_expect_str_eq(ev->unit, "sfu.service");
	cr_expect_str_eq(ev->summary, "reader-starved on sfu");
	cr_expect_eq(ev->state, STATE_FIRING);
	cr_expect_eq(ev->prev_state, STATE_PENDING);
	cr_expect_eq(ev->pid_count, 1);
	cr_expect_eq(ev->pids[0], 4711);
	cr_expect_eq(ev->class, CLASS_SERVER);
	cr_expect_eq(ev->dim, UNIT_TIME);
	cr_expect(ev->value_known && ev->value > 38e6 && ev->value < 42e6, "%f", ev->value);
	cr_expect_eq(ev->threshold, 10e6);
	cr_expect_gt(ev->samples, 100);
	cr_expect_not_null(strstr(ev->evidence_text, "dwell.p99 "), "%s", ev->evidence_text);
	cr_expect_not_null(strstr(ev->evidence_text, "ms > 10ms; "), "%s", ev->evidence_text);
	cr_expect_not_null(strstr(ev->coverage, "dwell fentry inexact; runq fentry"), "%s", ev->coverage);
	feed_fine(30);
	cr_assert_eq(feed.count[EVENT_RESOLVE], 1, "%s", feed.log);
	cr_expect_str_eq(feed.last[EVENT_RESOLVE].alert_id, id, "constant to the end");
	cr_expect_gt(feed.last[EVENT_RESOLVE].duration_ns, 15 * SEC);
	cr_expect_gt(feed.last[EVENT_RESOLVE].peak, 38e6);
	cr_expect_eq(feed.last[EVENT_RESOLVE].seq, ev->seq + feed.total - 1);
	cr_expect_str_empty(feed_view("reader-starved", SFU).alert_id);
}

Test(engine, a_critical_condition_makes_it_worse)
{
	feed_model();
	feed_starved();
	feed_start();
	feed_fine(12);
	feed_slow(30);
	cr_expect_str_eq(feed.log, "fire/reader-starved/sfu worse/reader-starved/sfu");
	cr_expect_eq(feed.last[EVENT_WORSE].severity, SEVERITY_CRITICAL);
	cr_expect_str_eq(feed.last[EVENT_WORSE].alert_id, feed.last[EVENT_FIRE].alert_id);
}

Test(engine, an_unconfigured_target_never_exceeds_warning)
{
	feed_model();
	feed_starved();
	feed_start();
	feed_target(DNS, "rtpd")->media = true;
	feed_load(DNS, 12, 1 * MS, 0, 1000);
	feed_load(DNS, 40, 80 * MS, 70 * MS, 1000);
	cr_expect_str_eq(feed.log, "fire/reader-starved/rtpd");
	cr_expect_eq(feed_view("reader-starved", DNS).severity, SEVERITY_WARNING);
}

Test(engine, the_profile_follows_the_configuration_then_what_the_datagrams_look_like)
{
	struct engine_target_view v;

	feed_model();
	feed_starved();
	feed_start();
	feed_target(DNS, "named");
	feed_tick();
	cr_assert(engine_target(feed.engine, SFU, &v));
	cr_expect_str_eq(v.profile, "media");
	cr_assert(engine_target(feed.engine, DNS, &v));
	cr_expect_str_eq(v.profile, "generic");
	feed.sample.target[DNS].media = true;
	feed_tick();
	cr_assert(engine_target(feed.engine, DNS, &v));
	cr_expect_str_eq(v.profile, "media");
}

/* ---- which rules where ---- */

Test(engine, rules_are_evaluated_where_they_belong)
{
	unsigned int server = 0, host = 0, named = 0;
	struct engine_rule_view v;
	struct model_rule *r;

	feed_model();
	feed_rule("server", CLASS_SERVER, "dwell.p99 > 1s", NULL);
	feed_rule("stolen", CLASS_HOST, "host.steal > 10% and dwell.p99 > 1s", NULL);
	r = feed_rule("named", CLASS_NETWORK, "rtp.loss > 5%", NULL);
	r->all_targets = false;
	strcpy(r->target[r->target_count++], "sfu");
	feed_start();
	feed_tick();
	for (uint32_t i = 0; engine_rule(feed.engine, i, &v); i++) {
		server += v.rule == 0 && (v.target == SFU || v.target == SAMPLE_OTHER);
		host += v.rule == 1 && v.target == SAMPLE_HOST;
		named += v.rule == 2 && v.target == SFU;
		cr_expect_neq(v.target, SAMPLE_SELF);
	}
	cr_expect_eq(server, 2);
	cr_expect_eq(host, 1);
	cr_expect_eq(named, 1);
}

Test(engine, a_target_that_never_had_rtp_is_not_asked_about_it)
{
	feed_model();
	feed_rule("loss", CLASS_NETWORK, "rtp.loss > 5% and dwell.p99 < 1s", NULL);
	feed_start();
	feed_fine(15);
	cr_expect_eq(feed_state("loss", SFU), STATE_NA);
	cr_expect_eq(feed_verdict(SFU), VERDICT_OK);
}

Test(engine, the_hosts_dwell_is_the_sum_of_all)
{
	struct model_rule *r;

	feed_model();
	r = feed_rule("cpu-stolen", CLASS_HOST, "host.steal > 10% and dwell.p99 > 10ms", NULL);
	r->for_ns = 3 * SEC;
	feed_start();
	feed_fine(12);
	for (int i = 0; i < 15 * 4; i++) {
		feed.sample.host_counter[SAMPLE_HOST_CPU_STEAL] += 30;
		feed_slow(0.25);
	}
	cr_expect_str_eq(feed.log, "fire/cpu-stolen/host");
	cr_expect_eq(feed_verdict(SAMPLE_HOST), VERDICT_SERVER);
	cr_expect_eq(engine_verdict(feed.engine), VERDICT_SERVER);
}

/* ---- verdicts and inhibition ---- */

static struct sample_stream streams[6];

static void stream_tick(bool lossy)
{
	for (size_t i = 0; i < 6; i++) {
		streams[i].id = i + 1;
		streams[i].ssrc = (uint32_t)i + 1;
		streams[i].target = SFU;
		streams[i].expected += 50;
		streams[i].received += lossy ? 40 : 50;
		streams[i].last_ns = feed.sample.now_ns;
		streams[i].jitter_known = true;
		streams[i].jitter_ns = MS;
	}
	feed.sample.stream = streams;
	feed.sample.stream_count = 6;
	feed.sample.target[SFU].rtp_ever = true;
	feed.sample.target[SFU].counter[SAMPLE_RTP_EXPECTED] += 300;
	feed.sample.target[SFU].counter[SAMPLE_RTP_RECEIVED] += lossy ? 240 : 300;
}

Test(engine, loss_and_a_starved_reader_together_are_mixed)
{
	struct model_rule *r;

	feed_model();
	feed_starved();
	r = feed_rule("network-loss", CLASS_NETWORK,
		      "((rtp.streams >= 5 and rtp.bad_streams > 20%) or (rtp.streams < 5 and rtp.bad_streams >= 100%))"
		      " and drops.server.share < 0.1% and host.nic_drops.share < 0.1%", "rtp.bad_streams < 10%");
	r->for_ns = 10 * SEC;
	feed_start();
	for (int i = 0; i < 15 * 4; i++) {
		stream_tick(false);
		feed_fine(0.25);
	}
	cr_expect_eq(feed_verdict(SFU), VERDICT_OK, "%s", feed_view("network-loss", SFU).why);
	for (int i = 0; i < 15 * 4; i++) {
		stream_tick(true);
		feed_fine(0.25);
	}
	cr_expect_eq(feed_verdict(SFU), VERDICT_NETWORK);
	for (int i = 0; i < 15 * 4; i++) {
		stream_tick(true);
		feed_slow(0.25);
	}
	cr_expect_eq(feed_verdict(SFU), VERDICT_MIXED);
	cr_expect_eq(engine_verdict(feed.engine), VERDICT_MIXED);
}

Test(engine, an_inhibited_rule_keeps_its_state_but_is_no_cause_and_tells_nothing)
{
	struct engine_target_view target;
	struct engine_rule_view v;
	struct model_rule *r;

	feed_model();
	feed.model.mode = MODE_ACT;
	feed_starved();
	r = feed_rule("reader-slow", CLASS_SERVER, "dwell.p99 > $slow and dwell.max[3s] > $slow", "dwell.max[3s] < $clear");
	r->for_ns = 7 * SEC;
	r->ladder = (int8_t)feed_hook("drain", HOOK_DESTRUCTIVE, 0, NULL);
	feed_start();
	feed_fine(12);
	feed_slow(12);
	v = feed_view("reader-slow", SFU);
	cr_expect_eq(v.state, STATE_FIRING);
	cr_assert_eq(v.inhibited_count, 1);
	cr_expect_eq(v.inhibited_by[0], 0);
	cr_expect_str_eq(feed.log, "fire/reader-starved/sfu");
	cr_expect_eq(feed.debts, 0);
	cr_assert(engine_target(feed.engine, SFU, &target));
	cr_assert_eq(target.cause_count, 1);
	cr_expect_eq(target.cause[0], 0);
	/* the run queue is free again, the reader is slow still: now it is reader-slow's alert */
	r = &feed.model.rule[0];
	feed_load(SFU, 4, 40 * MS, 0, 1000);
	cr_expect_eq(feed.count[EVENT_FIRE], 1, "between when and clear: still reader-starved");
	feed_expr(&r->clear, "runq.max[3s] < 1ms");
	feed_reload();
	feed_load(SFU, 20, 40 * MS, 0, 1000);
	cr_expect_eq(feed.count[EVENT_FIRE], 2, "%s", feed.log);
	cr_expect_str_eq(feed.last[EVENT_FIRE].rule, "reader-slow");
	cr_expect_eq(feed.debts, 1);
}

Test(engine, a_host_rule_inhibits_on_all_targets)
{
	struct model_rule *r;

	feed_model();
	r = feed_rule("cpu-stolen", CLASS_HOST, "host.steal > 10%", NULL);
	r->for_ns = 1 * SEC;
	strcpy(r->inhibits[r->inhibit_count++], "reader-slow");
	feed_rule("reader-slow", CLASS_SERVER, "dwell.p99 > $slow", NULL);
	feed_start();
	feed_fine(12);
	for (int i = 0; i < 15 * 4; i++) {
		feed.sample.host_counter[SAMPLE_HOST_CPU_STEAL] += 30;
		feed_slow(0.25);
	}
	cr_expect_eq(feed_state("reader-slow", SFU), STATE_FIRING);
	cr_expect_str_eq(feed.log, "fire/cpu-stolen/host");
	cr_expect_eq(feed_verdict(SFU), VERDICT_OK, "its cause stands at the host");
}

/* ---- remedies ---- */

Test(engine, the_debt_is_written_before_the_hook_runs)
{
	ladder_model();
	feed_start();
	feed.answers = false;
	fine_for(12, true);
	slow_for(8, true);
	cr_assert_eq(feed.debts, 1);
	cr_expect_eq(feed.runs, 0);
	cr_expect_eq(feed.last_debt.kind, ORDER_DEBT_WRITE);
	cr_expect_str_eq(feed.last_debt.target, "sfu");
	cr_expect_str_eq(feed.last_debt.event.alert_id, feed.last[EVENT_FIRE].alert_id);
	engine_debt_written(feed.engine, raise_cpu, "sfu", feed.last_debt.seq, 0, feed.sample.now_ns, &feed.out);
	cr_assert_eq(feed.out.order_count, 1);
	cr_expect_eq(feed.out.order[0].kind, ORDER_RUN);
	cr_expect_eq(feed.out.order[0].seq, feed.last_debt.seq);
	cr_expect_str_eq(feed.out.order[0].action, "do");
	cr_expect_str_eq(feed.out.order[0].event.rule, "reader-starved");
	cr_expect_eq(feed.out.order[0].event.kind, EVENT_FIRE);
	engine_hook_result(feed.engine, raise_cpu, "sfu", feed.last_debt.seq + 77, (struct run_result){ 0 }, "", 1,
			   &feed.out);
	cr_expect_eq(feed.out.event_count, 0, "not a run of ours");
	engine_hook_result(feed.engine, raise_cpu, "sfu", feed.last_debt.seq, (struct run_result){ 0 }, "weight=1000",
			   feed.sample.now_ns, &feed.out);
	cr_assert_eq(feed.out.event_count, 1);
	cr_expect_eq(feed.out.event[0].kind, EVENT_HOOK_DONE);
	cr_expect_str_eq(feed.out.event[0].result, "weight=1000");
}

Test(engine, load_that_goes_on_after_the_relief_is_mitigated_and_undone_when_its_cause_ends)
{
	char id[EVENT_ID];

	ladder_model();
	feed_start();
	fine_for(12, true);
	slow_for(8, true);
	cr_expect_eq(feed.runs, 1);
	strcpy(id, feed.last[EVENT_FIRE].alert_id);
	fine_for(90, true);		/* the hogs go on, the reader has its share */
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
	cr_expect_eq(feed.count[EVENT_MITIGATED], 1);
	cr_expect_eq(feed.count[EVENT_RESOLVE], 0);
	cr_expect_eq(feed_state("reader-starved", SFU), STATE_MITIGATED);
	cr_expect_eq(feed_verdict(SFU), VERDICT_OK);
	cr_expect_eq(feed.runs, 1, "no undo while the host is busy");
	fine_for(40, false);		/* the hogs end */
	cr_expect_eq(feed.runs, 2);
	cr_expect_str_eq(feed.last_run.action, "undo");
	cr_expect_not_null(strstr(feed.last_run.why, "host.cpu.busy < 80%"), "%s", feed.last_run.why);
	cr_expect_eq(feed.settled, 1);
	cr_expect_eq(feed.count[EVENT_RESOLVE], 1);
	cr_expect_str_eq(feed.last[EVENT_RESOLVE].alert_id, id);
	cr_expect_str_eq(feed.last[EVENT_HOOK_ASKED].alert_id, id);
	cr_expect_eq(feed_state("reader-starved", SFU), STATE_OK);
}

Test(engine, a_relapse_while_mitigated_is_the_same_alert)
{
	char id[EVENT_ID];

	ladder_model();
	feed_start();
	fine_for(12, true);
	slow_for(8, true);
	strcpy(id, feed.last[EVENT_FIRE].alert_id);
	fine_for(30, true);
	cr_expect_eq(feed_state("reader-starved", SFU), STATE_MITIGATED);
	slow_for(8, true);
	cr_expect_eq(feed_state("reader-starved", SFU), STATE_FIRING);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
	cr_expect_eq(feed.last[EVENT_WORSE].prev_state, STATE_MITIGATED);
	cr_expect_str_eq(feed.last[EVENT_WORSE].alert_id, id);
	cr_expect_eq(feed.runs, 1, "it is in force already");
}

Test(engine, a_rule_that_went_quiet_while_the_debt_was_written_runs_nothing)
{
	ladder_model();
	feed_start();
	feed.answers = false;
	fine_for(12, true);
	slow_for(8, true);
	cr_assert_eq(feed.debts, 1);
	fine_for(30, true);
	engine_debt_written(feed.engine, raise_cpu, "sfu", feed.last_debt.seq, 0, feed.sample.now_ns, &feed.out);
	cr_assert_eq(feed.out.order_count, 1);
	cr_expect_eq(feed.out.order[0].kind, ORDER_DEBT_CANCEL);
	cr_expect_eq(feed.out.order[0].seq, feed.last_debt.seq);
	cr_expect_eq(feed.out.event[0].kind, EVENT_HOOK_FAILED);
}

Test(engine, a_hook_that_says_nothing_was_changed_cancels_its_debt_and_mitigates_nothing)
{
	ladder_model();
	feed_start();
	feed.exit_code = 69;
	fine_for(12, true);
	slow_for(8, true);
	cr_expect_eq(feed.cancelled, 1);
	cr_expect_eq(feed.count[EVENT_HOOK_FAILED], 1);
	fine_for(30, true);
	cr_expect_eq(feed.count[EVENT_RESOLVE], 1);
	cr_expect_eq(feed.count[EVENT_MITIGATED], 0);
}

Test(engine, observe_asks_for_nothing)
{
	struct model_rule *r = ladder_model();

	r->notify[r->notify_count++] = (int8_t)feed_hook("page", HOOK_PAGE, 0, NULL);
	feed.model.mode = MODE_OBSERVE;
	feed_start();
	fine_for(12, true);
	slow_for(20, true);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
	cr_expect_eq(feed.runs + feed.debts + feed.dry_runs, 0);
	cr_expect_eq(feed.count[EVENT_HOOK_ASKED], 0);
}

Test(engine, dry_run_says_once_what_it_would_do)
{
	struct model_rule *r = ladder_model();

	r->notify[r->notify_count++] = (int8_t)feed_hook("page", HOOK_PAGE, 0, NULL);
	feed.model.mode = MODE_DRY_RUN;
	feed_start();
	fine_for(12, true);
	slow_for(12, true);
	cr_expect_eq(feed.runs + feed.debts, 0);
	cr_expect_eq(feed.dry_runs, 2);
	cr_expect_eq(feed.count[EVENT_HOOK_ASKED], 2);
	cr_expect_not_null(strstr(feed.last[EVENT_HOOK_ASKED].result, "dry run"));
	fine_for(40, false);
	cr_expect_eq(feed.count[EVENT_RESOLVE], 1, "nothing was done, so nothing is mitigated");
}

Test(engine, a_destructive_hook_never_runs_for_the_network_unless_the_rule_says_so)
{
	struct model_rule *r;

	feed_model();
	feed.model.mode = MODE_ACT;
	r = feed_rule("net", CLASS_NETWORK, "dwell.p99 > 10ms", NULL);
	r->ladder = (int8_t)feed_hook("drain", HOOK_DESTRUCTIVE, 0, NULL);
	feed_start();
	feed_fine(12);
	feed_slow(20);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
	cr_expect_eq(feed.debts, 0);
	r->allow_network = true;
	feed_reload();
	feed_slow(1);
	cr_expect_eq(feed.debts, 1);
}

Test(engine, undo_by_hand_runs_at_once_and_is_not_done_again_until_it_cleared)
{
	ladder_model();
	feed_start();
	fine_for(12, true);
	slow_for(8, true);
	cr_expect_eq(engine_undo(feed.engine, "raise-cpu", "nobody", feed.sample.now_ns, &feed.out), 0);
	cr_expect_eq(engine_undo(feed.engine, NULL, NULL, feed.sample.now_ns, &feed.out), 1);
	feed_note(&feed.out);
	cr_expect_eq(feed.runs, 2);
	cr_expect_str_eq(feed.last_run.action, "undo");
	slow_for(30, true);
	cr_expect_eq(feed.runs, 2);
	cr_expect_eq(engine_undo(feed.engine, NULL, NULL, feed.sample.now_ns, &feed.out), 0);
}

Test(engine, a_debt_found_at_start_is_undone_by_its_cause_and_settled_with_its_number)
{
	const struct engine_debt debt = { "raise-cpu", "sfu", "reader-starved", "old-alert", 42 };

	ladder_model();
	feed_start();
	engine_debt_restored(feed.engine, &debt, feed.sample.now_ns);
	fine_for(60, true);
	cr_expect_eq(feed.runs, 0, "still busy");
	fine_for(60, false);
	cr_expect_eq(feed.runs, 1);
	cr_expect_str_eq(feed.last_run.action, "undo");
	cr_expect_eq(feed.settled, 1);
	cr_expect_eq(feed.last_debt.seq, 42);
	cr_expect_str_eq(feed.last[EVENT_HOOK_ASKED].alert_id, "old-alert");
	cr_expect_gt(feed.last_run.seq, 42);
}

/* ---- page hooks ---- */

Test(engine, a_page_hook_runs_one_at_a_time_and_the_newest_wish_waits)
{
	struct model_rule *r;
	int page;

	feed_model();
	feed.model.mode = MODE_ACT;
	r = feed_starved();
	page = feed_hook("page", HOOK_PAGE, 0, NULL);
	feed.model.hook[page].on = 1U << EVENT_FIRE | 1U << EVENT_WORSE | 1U << EVENT_RESOLVE;
	r->notify[r->notify_count++] = (int8_t)page;
	feed_start();
	feed.answers = false;
	feed_fine(12);
	feed_slow(30);
	cr_assert_eq(feed.runs, 1);
	cr_expect_str_eq(feed.last_run.action, "notify");
	cr_expect_eq(feed.last_run.event.kind, EVENT_FIRE);
	feed_fine(30);
	cr_expect_eq(feed.count[EVENT_WORSE], 1);
	cr_expect_eq(feed.count[EVENT_RESOLVE], 1);
	cr_expect_eq(feed.runs, 1, "it runs still");
	engine_hook_result(feed.engine, page, "sfu", feed.last_run.seq, (struct run_result){ 0 }, "sent",
			   feed.sample.now_ns, &feed.out);
	cr_assert_eq(feed.out.order_count, 1);
	cr_expect_eq(feed.out.order[0].event.kind, EVENT_RESOLVE, "worse was overtaken");
	cr_expect_eq(feed.out.event[0].kind, EVENT_HOOK_DONE);
}

Test(engine, a_page_hook_without_on_hears_fire_and_resolve)
{
	struct model_rule *r;

	feed_model();
	feed.model.mode = MODE_ACT;
	r = feed_starved();
	r->notify[r->notify_count++] = (int8_t)feed_hook("page", HOOK_PAGE, 0, NULL);
	feed_start();
	feed_fine(12);
	feed_slow(30);
	feed_fine(30);
	cr_expect_eq(feed.runs, 2);
	cr_expect_eq(feed.last_run.event.kind, EVENT_RESOLVE);
}

/* ---- targets, reload, views ---- */

Test(engine, a_target_keeps_its_state_when_its_slot_changes)
{
	char id[EVENT_ID];

	feed_model();
	feed_starved();
	feed_start();
	feed_fine(12);
	feed_slow(10);
	strcpy(id, feed_view("reader-starved", SFU).alert_id);
	feed_target(DNS, "sfu");
	feed.sample.target[DNS] = feed.sample.target[SFU];
	memset(&feed.sample.target[SFU], 0, sizeof(feed.sample.target[SFU]));
	feed_target(SFU, "new");
	feed_tick();
	cr_expect_str_eq(feed.log, "fire/reader-starved/sfu");
	cr_expect_eq(feed_state("reader-starved", DNS), STATE_FIRING);
	cr_expect_str_eq(feed_view("reader-starved", DNS).alert_id, id);
	cr_expect_neq(feed_state("reader-starved", SFU), STATE_FIRING);
}

Test(engine, a_slot_given_to_another_target_withdraws_the_alert)
{
	feed_model();
	feed_starved();
	feed_start();
	feed_fine(12);
	feed_slow(10);
	memset(&feed.sample.target[SFU], 0, sizeof(feed.sample.target[SFU]));
	feed_target(SFU, "another");
	feed_tick();
	cr_expect_str_eq(feed.log, "fire/reader-starved/sfu withdraw/reader-starved/sfu");
	cr_expect_str_empty(feed.last[EVENT_WITHDRAW].unit);
}

Test(engine, a_changed_condition_keeps_the_state_and_restarts_the_hold)
{
	feed_model();
	feed_rule("r", CLASS_SERVER, "dwell.p99 > 10ms", NULL);
	feed_start();
	feed_fine(12);
	feed_slow(4);
	feed_expr(&feed.model.rule[0].when, "dwell.p99 > 12ms");
	feed_reload();
	feed_slow(4);
	cr_expect_eq(feed.total, 0);
	feed_slow(2);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
}

Test(engine, a_rule_that_moves_to_another_place_keeps_its_state)
{
	struct model_rule first;

	feed_model();
	feed_rule("a", CLASS_SERVER, "dwell.p99 > 1s", NULL);
	feed_rule("b", CLASS_SERVER, "dwell.p99 > 10ms", NULL);
	feed_start();
	feed_fine(12);
	feed_slow(10);
	first = feed.model.rule[0];
	feed.model.rule[0] = feed.model.rule[1];
	feed.model.rule[1] = first;
	feed_reload();
	feed_slow(5);
	cr_expect_str_eq(feed.log, "fire/b/sfu");
	cr_expect_eq(feed_state("b", SFU), STATE_FIRING);
}

Test(engine, a_hook_taken_out_of_the_file_while_it_is_owed_is_said)
{
	struct model_rule *r = ladder_model();

	feed_start();
	fine_for(12, true);
	slow_for(8, true);
	r->ladder = -1;
	feed.model.hook_count = 0;
	feed_reload();
	cr_expect_eq(feed.count[EVENT_HOOK_FAILED], 1);
	cr_expect_not_null(strstr(feed.last[EVENT_HOOK_FAILED].result, "no longer configured"));
	slow_for(5, true);
	cr_expect_eq(feed.runs, 1);
}

Test(engine, views_before_the_first_sample_say_unknown)
{
	const struct engine_setup setup = { .host = "h", .boot_id = "b" };
	struct engine_target_view t;
	struct engine_rule_view r;
	struct engine_hook_view h;

	feed_model();
	feed_starved();
	cr_assert_eq(engine_new(&feed.model, &setup, &feed.engine), 0);
	cr_expect_eq(engine_verdict(feed.engine), VERDICT_UNKNOWN);
	cr_expect_not(engine_target(feed.engine, SFU, &t));
	cr_expect_not(engine_rule(feed.engine, 0, &r));
	cr_expect_not(engine_hook(feed.engine, 0, &h));
	cr_expect_null(engine_sample(feed.engine));
	cr_expect_null(engine_hist(feed.engine, SFU, SIGNAL_DWELL, 0));
	cr_expect_neq(engine_value(feed.engine, SFU, SIGNAL_DWELL, STAT_P99, 0, 0).why, VALUE_OK);
	cr_expect_eq(engine_reload(feed.engine, &feed.model, &feed.out), 0);
	engine_free(feed.engine);
	engine_free(NULL);
}

Test(engine, values_histograms_and_hooks_can_be_read)
{
	const uint32_t *hist;
	struct engine_hook_view h;
	struct value v;

	ladder_model();
	feed_start();
	fine_for(12, true);
	slow_for(8, true);
	v = engine_value(feed.engine, SFU, SIGNAL_DWELL, STAT_P99, 0, 0);
	cr_expect_eq(v.why, VALUE_OK);
	cr_expect(v.number > 38e6 && v.number < 42e6);
	hist = engine_hist(feed.engine, SFU, SIGNAL_DWELL, 0);
	cr_assert_not_null(hist);
	cr_expect_gt(hist[hist_slot(40 * MS)], 1000);
	cr_assert(engine_hook(feed.engine, 0, &h));
	cr_expect_eq(h.hook, raise_cpu);
	cr_expect_str_eq(h.target, "sfu");
	cr_expect_eq(h.state, HOOK_DONE);
	cr_expect_str_eq(h.last_result, "ok");
	cr_expect_not(engine_hook(feed.engine, 1, &h));
}

Test(engine, an_info_rule_stands_in_status_only)
{
	feed_model();
	feed_rule("downlink", CLASS_NETWORK, "dwell.p99 > 10ms", NULL)->severity = SEVERITY_INFO;
	feed_start();
	feed_fine(12);
	feed_slow(10);
	cr_expect_eq(feed_state("downlink", SFU), STATE_FIRING);
	cr_expect_eq(feed.total, 0);
	cr_expect_eq(feed_verdict(SFU), VERDICT_OK);
}
