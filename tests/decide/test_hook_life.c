/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>

#include "decide/hook_life.h"

#define S(n) ((uint64_t)(n) * 1000000000ULL)

static const struct hook_life_spec spec = { .limit_ns = S(10), .grace_ns = S(3), .kill_ns = S(2) };

Test(hook_life, a_run_within_its_time_is_left_alone)
{
	uint64_t wait;

	cr_expect_eq(hook_life_step(&spec, 0, &wait), HOOK_LIFE_NONE);
	cr_expect_eq(wait, S(10));
	cr_expect_eq(hook_life_step(&spec, S(10) - 1, &wait), HOOK_LIFE_NONE);
	cr_expect_eq(wait, 1);
}

Test(hook_life, c34_term_at_the_limit_kill_after_grace_then_lost)
{
	uint64_t wait;

	cr_expect_eq(hook_life_step(&spec, S(10), &wait), HOOK_LIFE_TERM);
	cr_expect_eq(wait, S(3));
	cr_expect_eq(hook_life_step(&spec, S(13) - 1, &wait), HOOK_LIFE_TERM);
	cr_expect_eq(hook_life_step(&spec, S(13), &wait), HOOK_LIFE_KILL);
	cr_expect_eq(wait, S(2));
	cr_expect_eq(hook_life_step(&spec, S(15), &wait), HOOK_LIFE_GIVE_UP);
	cr_expect_eq(wait, UINT64_MAX);
}

Test(hook_life, a_very_long_limit_does_not_wrap)
{
	const struct hook_life_spec endless = { .limit_ns = UINT64_MAX - 1, .grace_ns = S(3), .kill_ns = S(2) };
	uint64_t wait;

	cr_expect_eq(hook_life_step(&endless, S(3600), &wait), HOOK_LIFE_NONE);
	cr_expect_eq(hook_life_step(&endless, UINT64_MAX - 1, &wait), HOOK_LIFE_TERM);
}

Test(hook_life, an_age_far_past_everything_is_given_up_at_once)
{
	uint64_t wait;

	cr_expect_eq(hook_life_step(&spec, S(86400), &wait), HOOK_LIFE_GIVE_UP);
}
