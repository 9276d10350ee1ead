/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "decide/remedy.h"

#define S(n) ((uint64_t)(n) * 1000000000ULL)

static const struct model_undo by_cause = { .given = true, .after_ns = S(20), .has_when = true,
					    .when = { .text = "host.cpu.busy[10s] < 80%" } };
static const struct model_undo by_time = { .given = true, .after_ns = S(20) };
static const struct model_undo by_hand_only = { .given = false };

static struct run_result exits(int code)
{
	return (struct run_result){ .exit_code = code };
}

static struct run_result killed(int signal)
{
	return (struct run_result){ .exit_code = -1, .signal = signal };
}

/* Steps once a second from..to (inclusive) and counts the orders that are not NONE. */
static unsigned int orders_between(struct remedy *r, const struct model_undo *undo, bool firing, enum tri when,
				   uint64_t from_s, uint64_t to_s)
{
	unsigned int n = 0;

	for (uint64_t s = from_s; s <= to_s; s++)
		n += remedy_step(r, undo, firing, when, S(s)) != REMEDY_ORDER_NONE;
	return n;
}

/* Fires at now_s, debt and do go well: in force from now_s on. */
static void put_in_force(struct remedy *r, const struct model_undo *undo, uint64_t now_s)
{
	cr_assert_eq(remedy_step(r, undo, true, TRI_FALSE, S(now_s)), REMEDY_ORDER_DEBT);
	cr_assert_eq(remedy_debt_written(r, 0, S(now_s)), REMEDY_ORDER_DO);
	cr_assert_eq(remedy_result(r, undo, exits(0), S(now_s)), REMEDY_ORDER_NONE);
	cr_assert_eq(r->phase, REMEDY_IN_FORCE);
}

/* A do that ends with this result. */
static enum remedy_order do_that_ends(struct remedy *r, struct run_result result)
{
	*r = (struct remedy){ 0 };
	cr_assert_eq(remedy_step(r, &by_time, true, TRI_FALSE, S(1)), REMEDY_ORDER_DEBT);
	cr_assert_eq(remedy_debt_written(r, 0, S(1)), REMEDY_ORDER_DO);
	return remedy_result(r, &by_time, result, S(2));
}

Test(remedy, c32_a_fresh_start_with_everything_ok_runs_nothing)
{
	struct remedy r = { 0 };

	cr_expect_eq(orders_between(&r, &by_cause, false, TRI_TRUE, 1, 3600), 0);
	cr_expect_eq(remedy_state(&r), HOOK_IDLE);
}

Test(remedy, c32_a_rule_that_fires_and_stays_so_gets_exactly_one_do)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_cause, 5);
	cr_expect_eq(orders_between(&r, &by_cause, true, TRI_FALSE, 6, 3600), 0);
	cr_expect(remedy_in_force(&r));
	cr_expect_eq(remedy_state(&r), HOOK_DONE);
}

Test(remedy, nothing_is_done_before_the_debt_is_on_disk)
{
	struct remedy r = { 0 };

	cr_expect_eq(remedy_step(&r, &by_cause, true, TRI_FALSE, S(1)), REMEDY_ORDER_DEBT);
	cr_expect_eq(orders_between(&r, &by_cause, true, TRI_FALSE, 2, 100), 0);
	cr_expect_eq(remedy_state(&r), HOOK_WAITING);
	cr_expect_eq(remedy_debt_written(&r, 0, S(101)), REMEDY_ORDER_DO);
	cr_expect_eq(remedy_state(&r), HOOK_RUNNING);
	cr_expect_eq(remedy_debt_written(&r, 0, S(102)), REMEDY_ORDER_NONE, "a second answer starts nothing");
}

Test(remedy, a_debt_that_cannot_be_written_stops_the_do_and_is_tried_again_a_minute_later)
{
	struct remedy r = { 0 };

	remedy_step(&r, &by_cause, true, TRI_FALSE, S(1));
	cr_expect_eq(remedy_debt_written(&r, -ENOSPC, S(2)), REMEDY_ORDER_NONE);
	cr_expect(strstr(r.why, "could not be written"), "%s", r.why);
	cr_expect_not(remedy_in_force(&r));
	cr_expect_eq(orders_between(&r, &by_cause, true, TRI_FALSE, 3, 61), 0);
	cr_expect_eq(remedy_state(&r), HOOK_WAITING);
	cr_expect_eq(remedy_step(&r, &by_cause, true, TRI_FALSE, S(62)), REMEDY_ORDER_DEBT);
}

Test(remedy, a_rule_that_clears_while_the_debt_is_written_is_not_acted_on)
{
	struct remedy r = { 0 };

	remedy_step(&r, &by_cause, true, TRI_FALSE, S(1));
	remedy_step(&r, &by_cause, false, TRI_TRUE, S(2));
	cr_expect_eq(remedy_debt_written(&r, 0, S(3)), REMEDY_ORDER_DEBT_CANCEL);
	cr_expect_eq(r.phase, REMEDY_REST);
}

Test(remedy, load_goes_on_for_minutes_after_relief_and_nothing_is_undone)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_cause, 1);
	cr_expect_eq(orders_between(&r, &by_cause, false, TRI_FALSE, 2, 1800), 0);
	cr_expect(remedy_in_force(&r));
	cr_expect_eq(orders_between(&r, &by_cause, false, TRI_TRUE, 1801, 1820), 0, "20 s are not over");
	cr_expect_eq(remedy_step(&r, &by_cause, false, TRI_TRUE, S(1821)), REMEDY_ORDER_UNDO);
	cr_expect(strstr(r.why, "host.cpu.busy[10s] < 80% for 20"), "%s", r.why);
	cr_expect(remedy_in_force(&r), "until the undo has ended well");
	cr_expect_eq(remedy_result(&r, &by_cause, exits(0), S(1822)), REMEDY_ORDER_DEBT_SETTLE);
	cr_expect_not(remedy_in_force(&r));
	cr_expect_eq(remedy_state(&r), HOOK_IDLE);
}

Test(remedy, one_tick_of_load_or_of_not_knowing_starts_the_quiet_time_anew)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_cause, 1);
	cr_expect_eq(orders_between(&r, &by_cause, false, TRI_TRUE, 2, 20), 0);
	cr_expect_eq(remedy_step(&r, &by_cause, false, TRI_UNKNOWN, S(21)), REMEDY_ORDER_NONE);
	cr_expect_eq(orders_between(&r, &by_cause, false, TRI_TRUE, 22, 40), 0);
	cr_expect_eq(remedy_step(&r, &by_cause, false, TRI_FALSE, S(41)), REMEDY_ORDER_NONE);
	cr_expect_eq(orders_between(&r, &by_cause, false, TRI_TRUE, 42, 60), 0);
	cr_expect_eq(remedy_step(&r, &by_cause, true, TRI_TRUE, S(61)), REMEDY_ORDER_NONE);
	cr_expect_eq(orders_between(&r, &by_cause, false, TRI_TRUE, 62, 81), 0);
	cr_expect_eq(remedy_step(&r, &by_cause, false, TRI_TRUE, S(82)), REMEDY_ORDER_UNDO);
}

Test(remedy, unknown_for_ever_never_undoes)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_cause, 1);
	cr_expect_eq(orders_between(&r, &by_cause, false, TRI_UNKNOWN, 2, 7200), 0);
}

Test(remedy, without_undo_when_the_time_alone_decides)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_time, 1);
	cr_expect_eq(orders_between(&r, &by_time, false, TRI_UNKNOWN, 2, 21), 0);
	cr_expect_eq(remedy_step(&r, &by_time, false, TRI_UNKNOWN, S(22)), REMEDY_ORDER_UNDO);
}

Test(remedy, quiet_time_before_the_do_ended_does_not_count)
{
	struct remedy r = { 0 };

	remedy_step(&r, &by_time, true, TRI_FALSE, S(1));
	cr_assert_eq(remedy_debt_written(&r, 0, S(1)), REMEDY_ORDER_DO);
	cr_expect_eq(orders_between(&r, &by_time, false, TRI_TRUE, 2, 60), 0, "serial: the undo waits for the do");
	remedy_result(&r, &by_time, exits(0), S(60));
	cr_expect_eq(orders_between(&r, &by_time, false, TRI_TRUE, 61, 79), 0);
	cr_expect_eq(remedy_step(&r, &by_time, false, TRI_TRUE, S(80)), REMEDY_ORDER_UNDO);
}

Test(remedy, without_an_undo_nothing_is_undone_but_by_hand)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_hand_only, 1);
	cr_expect_eq(orders_between(&r, &by_hand_only, false, TRI_TRUE, 2, 86400), 0);
	cr_expect_eq(remedy_undo_by_hand(&r), 0);
	cr_expect_eq(remedy_step(&r, &by_hand_only, false, TRI_TRUE, S(86401)), REMEDY_ORDER_UNDO);
	cr_expect(strstr(r.why, "by hand"), "%s", r.why);
}

Test(remedy, an_undo_by_hand_holds_until_the_rule_has_cleared_once)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_cause, 1);
	cr_expect_eq(remedy_undo_by_hand(&r), 0);
	cr_expect_eq(remedy_step(&r, &by_cause, true, TRI_FALSE, S(2)), REMEDY_ORDER_UNDO);
	cr_expect_eq(remedy_result(&r, &by_cause, exits(0), S(3)), REMEDY_ORDER_DEBT_SETTLE);
	cr_expect_eq(remedy_state(&r), HOOK_HELD);
	cr_expect_eq(orders_between(&r, &by_cause, true, TRI_FALSE, 4, 900), 0, "the operator is not overruled");
	cr_expect_eq(remedy_undo_by_hand(&r), -EALREADY);
	cr_expect_eq(remedy_step(&r, &by_cause, false, TRI_FALSE, S(901)), REMEDY_ORDER_NONE);
	cr_expect_eq(remedy_step(&r, &by_cause, true, TRI_FALSE, S(902)), REMEDY_ORDER_DEBT);
}

Test(remedy, an_undo_by_hand_with_nothing_owed_is_refused)
{
	struct remedy r = { 0 };

	cr_expect_eq(remedy_undo_by_hand(&r), -EALREADY);
}

Test(remedy, an_undo_by_hand_while_do_runs_waits_for_it)
{
	struct remedy r = { 0 };

	remedy_step(&r, &by_cause, true, TRI_FALSE, S(1));
	remedy_debt_written(&r, 0, S(1));
	cr_expect_eq(remedy_undo_by_hand(&r), 0);
	cr_expect_eq(orders_between(&r, &by_cause, true, TRI_FALSE, 2, 9), 0);
	remedy_result(&r, &by_cause, exits(0), S(10));
	cr_expect_eq(remedy_step(&r, &by_cause, true, TRI_FALSE, S(11)), REMEDY_ORDER_UNDO);
}

/* Undo at undo_s, relapse at relapse_s: in force again, from relapse_s on. */
static void undo_and_relapse(struct remedy *r, uint64_t undo_s, uint64_t relapse_s)
{
	cr_assert_eq(r->phase, REMEDY_UNDOING);
	remedy_result(r, &by_cause, exits(0), S(undo_s));
	orders_between(r, &by_cause, false, TRI_TRUE, undo_s + 1, relapse_s - 1);
	put_in_force(r, &by_cause, relapse_s);
}

Test(remedy, a_relapse_soon_after_an_undo_doubles_the_wait)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_cause, 1);
	cr_assert_eq(orders_between(&r, &by_cause, false, TRI_TRUE, 2, 22), 1);
	undo_and_relapse(&r, 23, 30);
	cr_expect_eq(r.after_ns, S(40));
	cr_expect_eq(orders_between(&r, &by_cause, false, TRI_TRUE, 31, 70), 0);
	cr_expect_eq(remedy_step(&r, &by_cause, false, TRI_TRUE, S(71)), REMEDY_ORDER_UNDO);
	cr_expect(strstr(r.why, "relapse"), "%s", r.why);
	undo_and_relapse(&r, 72, 100);
	cr_expect_eq(r.after_ns, S(80));
}

Test(remedy, relapses_never_wait_longer_than_four_hours)
{
	struct remedy r = { 0 };
	uint64_t now = 1;

	for (int i = 0; i < 20; i++) {
		uint64_t after_s;

		put_in_force(&r, &by_cause, now);
		after_s = (r.after_ns ? r.after_ns : S(20)) / S(1);
		cr_assert_eq(remedy_step(&r, &by_cause, false, TRI_TRUE, S(now + 1)), REMEDY_ORDER_NONE);
		cr_assert_eq(remedy_step(&r, &by_cause, false, TRI_TRUE, S(now + 1 + after_s)), REMEDY_ORDER_UNDO);
		now += after_s + 2;
		remedy_result(&r, &by_cause, exits(0), S(now));
		now++;
	}
	cr_expect_eq(r.after_ns, S(4 * 3600));
}

Test(remedy, a_long_quiet_time_brings_the_configured_wait_back)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_cause, 1);
	orders_between(&r, &by_cause, false, TRI_TRUE, 2, 22);
	undo_and_relapse(&r, 23, 30);
	orders_between(&r, &by_cause, false, TRI_TRUE, 31, 71);
	cr_assert_eq(r.phase, REMEDY_UNDOING);
	remedy_result(&r, &by_cause, exits(0), S(72));
	orders_between(&r, &by_cause, false, TRI_TRUE, 73, 72 + 159);
	cr_expect_eq(r.after_ns, S(40), "4 x 40 s are not over");
	remedy_step(&r, &by_cause, false, TRI_TRUE, S(72 + 160));
	cr_expect_eq(r.after_ns, 0);
}

Test(remedy, a_relapse_later_than_after_does_not_double)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_cause, 1);
	orders_between(&r, &by_cause, false, TRI_TRUE, 2, 22);
	undo_and_relapse(&r, 23, 44);
	cr_expect_eq(r.after_ns, 0);
}

Test(remedy, c43_exit_75_is_tried_again_three_times_with_growing_pauses_then_failed)
{
	struct remedy r;
	uint64_t now = 2;
	const uint64_t pause[] = { 5, 10, 20 };

	cr_expect_eq(do_that_ends(&r, exits(75)), REMEDY_ORDER_NONE);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(remedy_state(&r), HOOK_WAITING);
		cr_expect_eq(orders_between(&r, &by_time, true, TRI_FALSE, now, now + pause[i] - 1), 0);
		cr_expect_eq(remedy_step(&r, &by_time, true, TRI_FALSE, S(now + pause[i])), REMEDY_ORDER_DO);
		cr_expect_eq(r.tries, i + 1);
		now += pause[i];
		cr_expect_eq(remedy_result(&r, &by_time, exits(75), S(now)), REMEDY_ORDER_NONE);
	}
	cr_expect_eq(r.phase, REMEDY_FAILED);
	cr_expect_eq(remedy_state(&r), HOOK_OWED);
	cr_expect_eq(orders_between(&r, &by_time, true, TRI_FALSE, now, now + 3600), 0, "no fifth try");
}

Test(remedy, exit_75_then_0_is_in_force)
{
	struct remedy r;

	do_that_ends(&r, exits(75));
	cr_expect_eq(remedy_step(&r, &by_time, true, TRI_FALSE, S(7)), REMEDY_ORDER_DO);
	cr_expect_eq(remedy_result(&r, &by_time, exits(0), S(8)), REMEDY_ORDER_NONE);
	cr_expect(remedy_in_force(&r));
}

Test(remedy, a_rule_that_clears_between_retries_ends_them_and_the_undo_stays_owed)
{
	struct remedy r;

	do_that_ends(&r, exits(75));
	cr_expect_eq(orders_between(&r, &by_time, false, TRI_TRUE, 3, 22), 0);
	cr_expect_eq(r.phase, REMEDY_FAILED);
	cr_expect_eq(remedy_step(&r, &by_time, false, TRI_TRUE, S(23)), REMEDY_ORDER_UNDO);
}

Test(remedy, c43_exit_80_and_64_to_78_cancel_the_debt_and_wait_for_the_rule_to_clear)
{
	struct remedy r;

	for (int code = 64; code <= 80; code++) {
		if (code == 75 || code == 79)
			continue;
		cr_expect_eq(do_that_ends(&r, exits(code)), REMEDY_ORDER_DEBT_CANCEL, "exit %d", code);
		cr_expect_eq(r.phase, REMEDY_REFUSED);
		cr_expect_not(remedy_in_force(&r));
		cr_expect_eq(orders_between(&r, &by_time, true, TRI_FALSE, 3, 600), 0, "exit %d", code);
		cr_expect_eq(remedy_step(&r, &by_time, false, TRI_TRUE, S(601)), REMEDY_ORDER_NONE);
		cr_expect_eq(remedy_step(&r, &by_time, true, TRI_FALSE, S(602)), REMEDY_ORDER_DEBT);
	}
}

Test(remedy, c43_any_other_end_is_failed_and_leaves_the_undo_owed)
{
	const struct run_result ends[] = { exits(1), exits(2), exits(63), exits(79), exits(81), exits(126), exits(127),
					   exits(255), killed(11), killed(9), { .exit_code = -1, .timeout = true },
					   { .exit_code = 0, .timeout = true }, { .exit_code = -1, .lost = true } };
	struct remedy r;

	for (unsigned int i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		cr_expect_eq(do_that_ends(&r, ends[i]), REMEDY_ORDER_NONE, "case %u", i);
		cr_expect_eq(r.phase, REMEDY_FAILED, "case %u", i);
		cr_expect_not(remedy_in_force(&r));
		cr_expect_eq(remedy_state(&r), HOOK_OWED);
		cr_expect_eq(orders_between(&r, &by_time, true, TRI_FALSE, 3, 600), 0, "no second do by itself");
		cr_expect_eq(orders_between(&r, &by_time, false, TRI_TRUE, 601, 620), 0);
		cr_expect_eq(remedy_step(&r, &by_time, false, TRI_TRUE, S(621)), REMEDY_ORDER_UNDO, "case %u", i);
	}
}

Test(remedy, a_failed_do_is_tried_again_when_the_rule_fires_anew_and_its_old_debt_is_kept)
{
	struct remedy r;

	do_that_ends(&r, exits(1));
	remedy_step(&r, &by_time, false, TRI_TRUE, S(3));
	cr_expect_eq(remedy_step(&r, &by_time, true, TRI_FALSE, S(4)), REMEDY_ORDER_DO, "the debt is on disk already");
	cr_expect_eq(remedy_result(&r, &by_time, exits(80), S(5)), REMEDY_ORDER_NONE, "80 must not cancel it");
	cr_expect_eq(remedy_state(&r), HOOK_OWED);
}

Test(remedy, an_undo_that_fails_is_tried_for_ever_with_pauses_up_to_ten_minutes)
{
	const uint64_t pause[] = { 5, 10, 20, 40, 80, 160, 320, 600, 600, 600 };
	struct remedy r = { 0 };
	uint64_t now = 22;

	put_in_force(&r, &by_time, 1);
	cr_assert_eq(orders_between(&r, &by_time, false, TRI_TRUE, 2, 22), 1);
	for (unsigned int i = 0; i < 10; i++) {
		cr_expect_eq(remedy_result(&r, &by_time, exits(i % 2 ? 1 : 75), S(now)), REMEDY_ORDER_NONE);
		cr_expect_eq(remedy_state(&r), HOOK_OWED);
		cr_expect_eq(orders_between(&r, &by_time, false, TRI_TRUE, now, now + pause[i] - 1), 0, "try %u", i);
		now += pause[i];
		cr_expect_eq(remedy_step(&r, &by_time, false, TRI_TRUE, S(now)), REMEDY_ORDER_UNDO, "try %u", i);
	}
	cr_expect_eq(remedy_result(&r, &by_time, exits(80), S(now)), REMEDY_ORDER_DEBT_SETTLE, "80 settles an undo");
}

Test(remedy, the_cause_comes_back_while_the_undo_fails_and_it_is_done_again)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_time, 1);
	orders_between(&r, &by_time, false, TRI_TRUE, 2, 22);
	remedy_result(&r, &by_time, exits(1), S(23));
	cr_expect_eq(remedy_step(&r, &by_time, true, TRI_FALSE, S(24)), REMEDY_ORDER_DO);
	cr_expect_eq(remedy_result(&r, &by_time, exits(0), S(25)), REMEDY_ORDER_NONE);
	cr_expect(remedy_in_force(&r));
}

Test(remedy, a_rule_that_fires_while_the_undo_runs_is_done_again_after_it)
{
	struct remedy r = { 0 };

	put_in_force(&r, &by_time, 1);
	orders_between(&r, &by_time, false, TRI_TRUE, 2, 22);
	cr_expect_eq(orders_between(&r, &by_time, true, TRI_FALSE, 23, 30), 0, "serial");
	cr_expect_eq(remedy_result(&r, &by_time, exits(0), S(30)), REMEDY_ORDER_DEBT_SETTLE);
	cr_expect_eq(remedy_step(&r, &by_time, true, TRI_FALSE, S(31)), REMEDY_ORDER_DEBT);
	cr_expect_eq(r.after_ns, S(40), "and that is a relapse");
}

Test(remedy, a_debt_found_at_start_is_in_force_and_waits_for_its_undo_conditions)
{
	struct remedy r = { 0 };

	remedy_restore(&r, S(1));
	cr_expect(remedy_in_force(&r));
	cr_expect_eq(orders_between(&r, &by_cause, true, TRI_FALSE, 2, 600), 0, "C32: no second do after a restart");
	cr_expect_eq(orders_between(&r, &by_cause, false, TRI_TRUE, 601, 620), 0);
	cr_expect_eq(remedy_step(&r, &by_cause, false, TRI_TRUE, S(621)), REMEDY_ORDER_UNDO);
}

Test(remedy, an_answer_to_no_question_changes_nothing)
{
	struct remedy r = { 0 };

	cr_expect_eq(remedy_result(&r, &by_time, exits(0), S(1)), REMEDY_ORDER_NONE);
	cr_expect_eq(remedy_debt_written(&r, 0, S(1)), REMEDY_ORDER_NONE);
	cr_expect_eq(r.phase, REMEDY_REST);
	cr_expect_not(remedy_in_force(&r));
}

Test(remedy, every_order_says_why)
{
	struct remedy r = { 0 };

	remedy_step(&r, &by_cause, true, TRI_FALSE, S(1));
	cr_expect_neq(r.why[0], '\0');
	remedy_debt_written(&r, 0, S(1));
	cr_expect_str_eq(r.why, "do: the rule fires");
	remedy_result(&r, &by_cause, killed(11), S(2));
	cr_expect(strstr(r.why, "signal 11"), "%s", r.why);
}
