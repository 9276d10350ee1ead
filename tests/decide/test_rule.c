/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rule: holds, states and the events of one alert, with the clock moved by hand. */
#include <criterion/criterion.h>

#include "decide/rule.h"

#define S(x) ((uint64_t)(x) * 1000000000ULL)
#define TICK 250000000ULL

Test(rule, a_gap_pauses_the_hold_and_a_long_one_voids_it)
{
	const struct rule_spec spec = { .for_ns = S(10), .clear_for_ns = S(60) };
	struct rule r = { 0 };

	cr_expect_eq(rule_step(&r, &spec, RULE_SEEN_BAD, S(100)), RULE_EDGE_NONE);
	cr_expect_eq(rule_step(&r, &spec, RULE_SEEN_BAD, S(106)), RULE_EDGE_NONE);	/* 6 s of evidence */
	cr_expect_eq(rule_step(&r, &spec, RULE_SEEN_NOTHING, S(111)), RULE_EDGE_NONE);
	cr_expect_eq(rule_step(&r, &spec, RULE_SEEN_BAD, S(112)), RULE_EDGE_NONE);
	cr_expect_eq(rule_step(&r, &spec, RULE_SEEN_BAD, S(116)), RULE_EDGE_FIRED);	/* 6 + 4 */

	r = (struct rule){ 0 };
	cr_expect_eq(rule_step(&r, &spec, RULE_SEEN_BAD, S(200)), RULE_EDGE_NONE);
	cr_expect_eq(rule_step(&r, &spec, RULE_SEEN_BAD, S(206)), RULE_EDGE_NONE);
	cr_expect_eq(rule_step(&r, &spec, RULE_SEEN_NOTHING, S(217)), RULE_EDGE_NONE);
	cr_expect_eq(rule_step(&r, &spec, RULE_SEEN_BAD, S(218)), RULE_EDGE_NONE);
	cr_expect_eq(rule_step(&r, &spec, RULE_SEEN_BAD, S(222)), RULE_EDGE_NONE);	/* 4 s only */
}

/* ---- the alert around the hold ---- */

struct bench {
	struct rule_alert alert;
	struct rule_config config;
	struct rule_input in;
	uint64_t now_ns;
	unsigned int count[EVENT_KIND_COUNT], total;
	enum event_kind last;
};

static struct bench bench_new(void)
{
	return (struct bench){
		.config = { .hold = { S(10), S(30) }, .critical_hold = { S(15), S(30) }, .severity = SEVERITY_WARNING,
			    .at_most = SEVERITY_CRITICAL },
		.in = { .sight = RULE_SIGHT_TRUTH, .clear = TRI_TRUE },
		.now_ns = S(1000),
	};
}

static void tick(struct bench *b)
{
	struct rule_step s;

	b->now_ns += TICK;
	rule_alert_step(&b->alert, &b->config, &b->in, b->now_ns, &s);
	for (int i = 0; i < s.event_count; i++) {
		b->count[s.event[i]]++;
		b->total++;
		b->last = s.event[i];
	}
}

static void last_for(struct bench *b, double seconds)
{
	for (uint64_t end = b->now_ns + (uint64_t)(seconds * 1e9); b->now_ns < end;)
		tick(b);
}

static void bad(struct bench *b, double seconds)
{
	b->in.sight = RULE_SIGHT_TRUTH;
	b->in.when = TRI_TRUE;
	b->in.clear = TRI_FALSE;
	last_for(b, seconds);
}

static void good(struct bench *b, double seconds)
{
	b->in.sight = RULE_SIGHT_TRUTH;
	b->in.when = TRI_FALSE;
	b->in.clear = TRI_TRUE;
	last_for(b, seconds);
}

static void between(struct bench *b, double seconds)
{
	b->in.sight = RULE_SIGHT_TRUTH;
	b->in.when = b->in.clear = TRI_FALSE;
	last_for(b, seconds);
}

static void sees(struct bench *b, enum rule_sight sight, double seconds)
{
	b->in.sight = sight;
	b->in.when = b->in.clear = TRI_UNKNOWN;
	last_for(b, seconds);
}

Test(rule, c01_a_value_that_alternates_around_the_threshold_never_fires)
{
	struct bench b = bench_new();
	bool pending_seen = false;

	for (int i = 0; i < 600 * 4; i++) {
		b.in.when = i % 2 ? TRI_TRUE : TRI_FALSE;
		b.in.clear = TRI_FALSE;
		tick(&b);
		pending_seen |= b.alert.state == STATE_PENDING;
	}
	cr_expect_eq(b.total, 0);
	cr_expect(pending_seen);
}

Test(rule, c02_between_clear_and_raise_it_stays_firing_without_another_event)
{
	struct bench b = bench_new();

	bad(&b, 12);
	cr_expect_eq(b.count[EVENT_FIRE], 1);
	between(&b, 300);
	cr_expect_eq(b.alert.state, STATE_FIRING);
	cr_expect_eq(b.total, 1);
	good(&b, 31);
	cr_expect_eq(b.count[EVENT_RESOLVE], 1);
	cr_expect_eq(b.alert.state, STATE_OK);
}

Test(rule, for_counts_evidence_not_ticks)
{
	struct bench b = bench_new();

	bad(&b, 10);
	cr_expect_eq(b.total, 0);	/* 40 ticks are 39 intervals */
	cr_expect_eq(b.alert.state, STATE_PENDING);
	tick(&b);
	cr_expect_eq(b.count[EVENT_FIRE], 1);
}

Test(rule, while_firing_when_beats_clear)
{
	struct bench b = bench_new();

	bad(&b, 12);
	b.in.clear = TRI_TRUE;	/* when is true as well */
	last_for(&b, 100);
	cr_expect_eq(b.alert.state, STATE_FIRING);
	cr_expect_eq(b.total, 1);
}

Test(rule, c10_keep_stays_firing_says_no_data_and_data_back_and_resolves_only_on_good_data)
{
	struct bench b = bench_new();

	bad(&b, 12);
	sees(&b, RULE_SIGHT_UNKNOWN, 7200);
	cr_expect_eq(b.alert.state, STATE_FIRING);
	cr_expect(rule_alert_wants(&b.alert), "the last wish stands");
	cr_expect_eq(b.count[EVENT_NODATA], 1);
	cr_expect_eq(b.count[EVENT_RESOLVE], 0);
	good(&b, 29);
	cr_expect_eq(b.count[EVENT_DATA_BACK], 1);
	cr_expect_eq(b.count[EVENT_RESOLVE], 0);
	good(&b, 2);
	cr_expect_eq(b.count[EVENT_RESOLVE], 1);
	cr_expect_eq(b.total, 4);
}

Test(rule, nodata_unknown_shows_unknown_and_comes_back_as_the_same_alert)
{
	struct bench b = bench_new();

	b.config.nodata = NODATA_UNKNOWN;
	bad(&b, 12);
	sees(&b, RULE_SIGHT_UNKNOWN, 60);
	cr_expect_eq(b.alert.state, STATE_UNKNOWN);
	cr_expect(b.alert.open);
	bad(&b, 1);
	cr_expect_eq(b.alert.state, STATE_FIRING);
	cr_expect_eq(b.count[EVENT_FIRE], 1);
}

Test(rule, nodata_fire_fires_for_a_missing_signal_but_not_while_warming_up)
{
	struct bench b = bench_new();

	b.config.nodata = NODATA_FIRE;
	sees(&b, RULE_SIGHT_GAP, 60);
	cr_expect_eq(b.total, 0);
	sees(&b, RULE_SIGHT_UNKNOWN, 11);
	cr_expect_eq(b.count[EVENT_FIRE], 1);
}

Test(rule, a_quiet_rule_that_sees_nothing_tells_nobody)
{
	struct bench b = bench_new();

	good(&b, 5);
	sees(&b, RULE_SIGHT_UNKNOWN, 600);
	cr_expect_eq(b.alert.state, STATE_UNKNOWN);
	good(&b, 5);
	cr_expect_eq(b.total, 0);
}

Test(rule, c08_idle_is_known_keeps_a_firing_rule_and_lets_the_undo_proceed)
{
	struct bench b = bench_new();

	good(&b, 5);
	sees(&b, RULE_SIGHT_IDLE, 60);
	cr_expect_eq(b.alert.state, STATE_IDLE);
	bad(&b, 12);
	cr_expect(rule_alert_wants(&b.alert));
	sees(&b, RULE_SIGHT_IDLE, 600);
	cr_expect_eq(b.alert.state, STATE_FIRING);
	cr_expect_not(rule_alert_wants(&b.alert));
	cr_expect_eq(b.total, 1, "not resolved, and not told as missing data");
}

Test(rule, idle_ends_a_pending_count)
{
	struct bench b = bench_new();

	bad(&b, 9);
	sees(&b, RULE_SIGHT_IDLE, 1);
	bad(&b, 9);
	cr_expect_eq(b.total, 0);
}

Test(rule, na_is_shown_and_never_fires)
{
	struct bench b = bench_new();

	sees(&b, RULE_SIGHT_NA, 100);
	cr_expect_eq(b.alert.state, STATE_NA);
	cr_expect_eq(b.total, 0);
}

Test(rule, c25_downtime_never_counts_towards_for)
{
	struct bench b = bench_new();

	bad(&b, 6.25);		/* 6 s of evidence */
	b.now_ns += S(5);
	bad(&b, 3.75);
	cr_expect_eq(b.total, 0);
	bad(&b, 1);
	cr_expect_eq(b.count[EVENT_FIRE], 1, "(a) 6 s + 4 s");

	b = bench_new();
	bad(&b, 6.25);
	b.now_ns += S(3600);
	bad(&b, 9.75);
	cr_expect_eq(b.total, 0, "(b) starts again");
	bad(&b, 1);
	cr_expect_eq(b.count[EVENT_FIRE], 1);
}

Test(rule, c20_a_late_tick_is_one_tick_and_no_evidence)
{
	struct bench b = bench_new();

	bad(&b, 1);
	b.now_ns += S(45);
	tick(&b);
	tick(&b);
	tick(&b);
	cr_expect_eq(b.total, 0);
}

Test(rule, critical_makes_it_worse_and_then_better_within_the_same_alert)
{
	struct bench b = bench_new();

	b.config.has_critical = true;
	bad(&b, 12);
	cr_expect_eq(b.alert.severity, SEVERITY_WARNING);
	b.in.critical = TRI_TRUE;
	bad(&b, 16);
	cr_expect_eq(b.count[EVENT_WORSE], 1);
	cr_expect_eq(b.alert.severity, SEVERITY_CRITICAL);
	b.in.critical = TRI_FALSE;
	bad(&b, 31);
	cr_expect_eq(b.count[EVENT_BETTER], 1);
	cr_expect_eq(b.alert.severity, SEVERITY_WARNING);
	cr_expect_eq(b.total, 3);
}

Test(rule, a_profile_may_cap_the_severity)
{
	struct bench b = bench_new();

	b.config.has_critical = true;
	b.config.at_most = SEVERITY_WARNING;
	b.in.critical = TRI_TRUE;
	bad(&b, 60);
	cr_expect_eq(b.alert.severity, SEVERITY_WARNING);
	cr_expect_eq(b.total, 1);
}

Test(rule, a_rule_that_fires_late_but_critical_fires_once_as_critical)
{
	struct bench b = bench_new();

	b.config.has_critical = true;
	b.config.hold.for_ns = S(20);
	b.in.critical = TRI_TRUE;
	bad(&b, 21);
	cr_expect_eq(b.total, 1);
	cr_expect_eq(b.last, EVENT_FIRE);
	cr_expect_eq(b.alert.severity, SEVERITY_CRITICAL);
}

Test(rule, mitigated_is_not_resolved_and_a_relapse_is_not_a_second_fire)
{
	struct bench b = bench_new();

	bad(&b, 12);
	b.in.in_force = true;
	good(&b, 31);
	cr_expect_eq(b.last, EVENT_MITIGATED);
	cr_expect_eq(b.alert.state, STATE_MITIGATED);
	cr_expect_not(rule_alert_wants(&b.alert));
	bad(&b, 11);
	cr_expect_eq(b.alert.state, STATE_FIRING);
	cr_expect_eq(b.last, EVENT_WORSE);
	cr_expect_eq(b.count[EVENT_FIRE], 1);
	good(&b, 31);
	cr_expect_eq(b.count[EVENT_RESOLVE], 0);
	b.in.in_force = false;	/* undone */
	tick(&b);
	cr_expect_eq(b.last, EVENT_RESOLVE);
	cr_expect_eq(b.alert.state, STATE_OK);
	cr_expect_eq(b.total, 5);
}

Test(rule, an_undo_does_not_resolve_while_it_sees_nothing)
{
	struct bench b = bench_new();

	bad(&b, 12);
	b.in.in_force = true;
	good(&b, 31);
	b.in.in_force = false;
	sees(&b, RULE_SIGHT_UNKNOWN, 5);
	cr_expect_eq(b.count[EVENT_RESOLVE], 0);
	good(&b, 0.25);
	cr_expect_eq(b.count[EVENT_RESOLVE], 1);
}

Test(rule, c05_flapping_is_told_once_and_settles_after_a_quiet_hour)
{
	struct bench b = bench_new();

	b.config.hold = (struct rule_spec){ S(10), S(20) };
	for (int i = 0; i < 30; i++) {
		b.in.value_known = true;
		b.in.value = i;
		bad(&b, 11);
		good(&b, 21);
	}
	cr_expect_eq(b.count[EVENT_FIRE], 3);
	cr_expect_eq(b.count[EVENT_RESOLVE], 3);
	cr_expect_eq(b.count[EVENT_FLAPPING], 1);
	cr_expect_eq(b.total, 7);
	cr_expect_eq(b.alert.state, STATE_FLAPPING);
	cr_expect_eq(b.alert.flap_count, 54);	/* 60 transitions, 6 were told */
	good(&b, 3500);
	cr_expect_eq(b.total, 7);
	good(&b, 101);
	cr_expect_eq(b.last, EVENT_SETTLED);
	cr_expect_eq(b.total, 8);
	cr_expect_eq(b.alert.state, STATE_OK);
	cr_expect_eq(b.alert.low, 3);
	cr_expect_eq(b.alert.high, 29);
	bad(&b, 11);
	cr_expect_eq(b.last, EVENT_FIRE, "and it works again");
}

Test(rule, six_transitions_spread_over_more_than_an_hour_are_no_flapping)
{
	struct bench b = bench_new();

	for (int i = 0; i < 10; i++) {
		bad(&b, 11);
		good(&b, 1300);
	}
	cr_expect_eq(b.count[EVENT_FLAPPING], 0);
	cr_expect_eq(b.count[EVENT_FIRE], 10);
}

Test(rule, changed_conditions_keep_the_state_and_restart_the_hold)
{
	struct bench b = bench_new();

	bad(&b, 9);
	rule_alert_restart_holds(&b.alert, b.now_ns);
	bad(&b, 9);
	cr_expect_eq(b.total, 0);
	bad(&b, 2);
	cr_expect_eq(b.count[EVENT_FIRE], 1);
	rule_alert_restart_holds(&b.alert, b.now_ns);
	cr_expect_eq(b.alert.state, STATE_FIRING);
}

Test(rule, for_zero_fires_at_the_first_tick)
{
	struct bench b = bench_new();

	b.config.hold.for_ns = 0;
	good(&b, 1);
	bad(&b, 0.25);
	cr_expect_eq(b.count[EVENT_FIRE], 1);
}
