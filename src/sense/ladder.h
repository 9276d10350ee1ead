/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ladder.h - the rungs of each signal, best first: which programs make one, and what it needs. Layer: sense. */
#ifndef DWELLD_LADDER_H
#define DWELLD_LADDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide/diag.h"
#include "probes.h"

#define LADDER_PROGRAMS 6
struct rung {
	const char *name;
	const char *program[LADDER_PROGRAMS];	/* NULL-terminated; all must load, attach and measure */
	bool exact;
	int64_t bias_ns;
	const char *note;	/* why it is not exact, "" */
	bool sock_hash, task_hash;	/* dwell: what the shared maps then look like */
	bool needs_task_storage;	/* runq */
	bool needs_proof;	/* may attach where it measures nothing: not taken without a self-test */
};
struct ladder {
	const char *signal;
	const struct rung *rung;
	size_t count;
	const char *lost;	/* what is lost without it, for the operator */
};
extern const struct ladder ladders[PROBE_COUNT];

/* The object of a signal, as compiled in. */
const void *ladder_bytes(enum probe_signal signal, size_t *ret_size);
const void *ladder_core_bytes(size_t *ret_size);
/* Does --rungs allow this rung? rungs NULL allows all; a list that does not name the signal leaves it alone. */
bool ladder_allows(const char *rungs, const char *signal, const char *rung);
/* DWELLD_TEST_MUTE_RUNG, in test builds only: the rung is detached before its self-test. */
bool ladder_muted(const char *signal, const char *rung);
int ladder_check(const char *rungs, struct diag *d);
#endif
