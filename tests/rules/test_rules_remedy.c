/* SPDX-License-Identifier: GPL-2.0-or-later */
/* built-in rules with hooks: the remedy stays while the cause does, and the network's faults drain nobody. */
#include "world.h"

#define HOOKS \
	"mode = \"act\";" WORLD_SFU \
	"hooks = ( { name = \"raise-cpu\"; kind = \"remedy\"; exec = [ \"/bin/true\" ]; timeout = \"10s\";" \
	" undo = { after = \"2m\"; when = \"host.cpu.busy < 80%\"; }; }," \
	"{ name = \"drain\"; kind = \"destructive\"; exec = [ \"/bin/true\" ]; undo = { after = \"5m\"; " \
	"when = \"dwell.p99 < 5ms\"; }; } );"
#define RAISE "rules = ( { name = \"reader-starved\"; targets = [ \"sfu\" ]; ladder = [ \"raise-cpu\" ]; } );"
#define DRAIN \
	"rules = ( { name = \"reader-starved\"; targets = [ \"sfu\" ]; ladder = [ \"drain\" ]; }," \
	"{ name = \"reader-slow\"; targets = [ \"sfu\" ]; ladder = [ \"drain\" ]; }," \
	"{ name = \"reader-stuck\"; targets = [ \"sfu\" ]; ladder = [ \"drain\" ]; } );"

static void starve(void)
{
	world_run(15);
	world_mark();
	world.bad = 1;
	world.wait_ns = 60 * MS;
	world.duty = 0.4;
	world.runq = true;
	world.busy = 1;
}

/* Until the hook has run: then the reader has its CPU although the load goes on. */
static void relieve(void)
{
	while (feed.runs == 0 && world_since() < 10)
		world_tick();
	cr_assert_eq(feed.runs, 1);
	cr_expect_str_eq(feed.last_run.action, "do");
	world.wait_ns = 0;
}

Test(rules_remedy, relief_is_mitigated_and_undone_when_the_load_ends)
{
	world_read(HOOKS RAISE);
	world_begin(51);
	starve();
	relieve();
	expect_within("mitigated/reader-starved", 40);
	world_run(300);
	expect_told("fire/reader-starved mitigated/reader-starved");
	cr_expect_eq(feed.runs, 1, "no undo while the CPUs are busy");
	cr_expect_eq(feed_state("reader-starved", SFU), STATE_MITIGATED);
	expect_verdict(SFU, VERDICT_OK);
	world.busy = 0.2;
	world_mark();
	while (feed.runs == 1 && world_since() < 200)
		world_tick();
	printf("   undo                         after %5.2f s\n", world_since());
	cr_expect(world_since() >= 120 && world_since() < 135, "undo after %g s", world_since());
	cr_expect_str_eq(feed.last_run.action, "undo");
	expect_within("resolve/reader-starved", 140);
	world_run(300);
	expect_told("resolve/reader-starved");
	cr_expect_eq(feed.runs, 2);
	cr_expect_eq(feed.debts, 1);
	cr_expect_eq(feed.settled, 1);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
}

/* The load ended and came back within undo.after: nothing is taken back, and it is not a second alert. */
Test(rules_remedy, a_short_break_of_the_load_undoes_nothing)
{
	world_read(HOOKS RAISE);
	world_begin(52);
	starve();
	relieve();
	world_run(60);
	for (int i = 0; i < 5; i++) {
		world.busy = 0.2;
		world_run(90);
		world.busy = 1;
		world_run(20);
	}
	cr_expect_eq(feed.runs, 1);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
	cr_expect_eq(feed_state("reader-starved", SFU), STATE_MITIGATED);
}

/* A remedy that does not help leaves the alert firing; it is asked for once. */
Test(rules_remedy, without_relief_it_stays_one_alert_and_one_run)
{
	world_read(HOOKS RAISE);
	world_begin(53);
	starve();
	world_run(600);
	expect_told("fire/reader-starved worse/reader-starved");
	cr_expect_eq(feed.runs, 1);
	expect_verdict(SFU, VERDICT_SERVER);
}

Test(rules_remedy, a_stolen_cpu_that_looks_slow_raises_nobody_and_observing_runs_nothing)
{
	world_read(HOOKS DRAIN);
	world_begin(54);
	world_run(15);
	world.steal = 0.2;
	world.bad = 1;
	world.wait_ns = 60 * MS;
	world.duty = 0.4;
	world_run(60);
	cr_expect_eq(feed.runs, 0, "reader-slow is inhibited: %s", feed.log);
	feed.model.mode = MODE_OBSERVE;
	world_begin(54);
	starve();
	world_run(60);
	cr_expect_eq(feed.runs + feed.debts + feed.dry_runs, 0);
	cr_expect_eq(feed.count[EVENT_FIRE], 1);
}

Test(rules_remedy, a_network_fault_never_runs_a_destructive_hook)
{
	const int rules[] = {0, 1};
	int loss, jitter;

	world_read(HOOKS DRAIN);
	loss = model_rule_find(&feed.model, "network-loss");
	jitter = model_rule_find(&feed.model, "network-jitter");
	cr_assert(loss >= 0 && jitter >= 0);
	for (int i = 0; i < 2; i++) {
		/* the configuration refuses this; the engine does not trust it to */
		feed.model.rule[loss].ladder = feed.model.rule[jitter].ladder =
			(int8_t)(rules[i] ? model_hook_find(&feed.model, "drain") : -1);
		world_begin(55);
		world_run(15);
		world.lossy = world.late = 10;
		world.loss = 0.2;
		world.jitter_ms = 120;
		world_run(120);
		expect_verdict(SFU, VERDICT_NETWORK);
		cr_expect_eq(feed.runs, 0, "%s", feed.log);
		cr_expect_eq(feed.debts, 0);
	}
}
