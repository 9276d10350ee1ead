/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook_life.h - what the age of a run asks for: nothing, TERM, KILL, or to give it up as lost. Layer: decide (pure).
 *
 * Units:   nanoseconds; age_ns is the time since the run was started, never negative.
 * Errors:  none. A spec of zeros gives a run no time at all. */
#ifndef DWELLD_HOOK_LIFE_H
#define DWELLD_HOOK_LIFE_H

#include <stdint.h>

#define HOOK_LIFE_GRACE_NS 3000000000ULL	/* between TERM and KILL */
#define HOOK_LIFE_KILL_NS 2000000000ULL		/* between KILL and giving up: a process in an uninterruptible wait */

enum hook_life { HOOK_LIFE_NONE, HOOK_LIFE_TERM, HOOK_LIFE_KILL, HOOK_LIFE_GIVE_UP };
struct hook_life_spec {
	uint64_t limit_ns;	/* TERM from here on */
	uint64_t grace_ns;	/* KILL this much after TERM */
	uint64_t kill_ns;	/* lost this much after KILL */
};

/* What should have happened to a run of this age. ret_wait_ns: until the answer changes, UINT64_MAX after GIVE_UP. */
enum hook_life hook_life_step(const struct hook_life_spec *spec, uint64_t age_ns, uint64_t *ret_wait_ns);
#endif
