/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook_life.c - age of a run to TERM, KILL, give up. */
#include "hook_life.h"

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

enum hook_life hook_life_step(const struct hook_life_spec *spec, uint64_t age_ns, uint64_t *ret_wait_ns)
{
	const uint64_t term = spec->limit_ns;
	const uint64_t kill = add(term, spec->grace_ns);
	const uint64_t lost = add(kill, spec->kill_ns);

	if (age_ns < term) {
		*ret_wait_ns = term - age_ns;
		return HOOK_LIFE_NONE;
	}
	if (age_ns < kill) {
		*ret_wait_ns = kill - age_ns;
		return HOOK_LIFE_TERM;
	}
	if (age_ns < lost) {
		*ret_wait_ns = lost - age_ns;
		return HOOK_LIFE_KILL;
	}
	*ret_wait_ns = UINT64_MAX;
	return HOOK_LIFE_GIVE_UP;
}
