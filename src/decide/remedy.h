/* SPDX-License-Identifier: GPL-2.0-or-later */
/* remedy.h - which hook should run now: one small machine per (hook, target). Layer: decide (pure).
 *
 * Level-triggered: the rule says whether the remedy is wanted; the machine says what to start. At most one run at a time;
 * the newest wish waits. A do is asked for only after its debt is on disk (DEBT_WRITE -> remedy_debt_written()).
 * Undo is not resolve: it needs the rule not firing AND undo.when true AND undo.after passed since both hold; a relapse
 * within after of an undo doubles after (cap 4 h); four times after without one brings the configured value back. Without
 * undo.given nothing is undone by itself.
 *
 * Units:  nanoseconds of CLOCK_MONOTONIC from the caller. Errors: none. Ownership: caller's; {0} is at rest. */
#ifndef DWELLD_REMEDY_H
#define DWELLD_REMEDY_H

#include <stdbool.h>
#include <stdint.h>

#include "expr.h"
#include "model.h"

enum hook_state { HOOK_IDLE, HOOK_RUNNING, HOOK_WAITING, HOOK_DONE, HOOK_OWED, HOOK_LATCHED, HOOK_HELD };
const char *hook_state_name(enum hook_state state);

enum remedy_phase {
	REMEDY_REST,		/* nothing done, nothing owed */
	REMEDY_DEBT,		/* debt line is being written */
	REMEDY_DOING,		/* do runs */
	REMEDY_RETRY,		/* do said 75; waits */
	REMEDY_IN_FORCE,	/* do succeeded; the undo is owed */
	REMEDY_FAILED,		/* do failed, perhaps half done: undo owed, not in force */
	REMEDY_REFUSED,		/* do said nothing was changed (64-74, 76-78) or already so (80): no debt until the rule cleared */
	REMEDY_UNDOING,
	REMEDY_UNDO_RETRY	/* undo failed; waits, for ever with growing pauses */
};

enum remedy_order { REMEDY_ORDER_NONE, REMEDY_ORDER_DEBT, REMEDY_ORDER_DO, REMEDY_ORDER_UNDO, REMEDY_ORDER_DEBT_CANCEL,
		    REMEDY_ORDER_DEBT_SETTLE };

/* How a run ended. exit_code -1 with signal != 0: killed; timeout: by our deadline; lost: outcome unknown. */
struct run_result { int exit_code, signal; bool timeout, lost; };

struct remedy {
	enum remedy_phase phase;
	bool wanted;			/* newest wish */
	bool undo_by_hand;		/* operator asked */
	bool debt_before;		/* this do runs on an older debt that is still owed */
	bool cleared;			/* FAILED: the rule has cleared since */
	uint8_t tries;			/* runs of this wish that ended badly; the next run is attempt tries + 1 */
	uint64_t phase_ns;		/* since when */
	uint64_t next_ns;		/* RETRY phases: not before */
	uint64_t quiet_ns;		/* since when (not firing and undo.when true); 0 not now */
	uint64_t after_ns;		/* current undo.after, doubled by relapses; 0 = the spec's */
	uint64_t undone_ns;		/* last undo, for relapse */
	uint64_t last_seq;
	char why[160];			/* printed reason of the last order: "undo: rule not firing and host.cpu.busy 12% < 80% for 20s" */
};

/* Once a tick. firing: the rule fires (mitigated does not count as firing). undo_when: value of undo.when now. */
enum remedy_order remedy_step(struct remedy *r, const struct model_undo *undo, bool firing, enum tri undo_when,
			      uint64_t now_ns);
/* The debt line is on disk (0) or could not be written (negative errno: a remedy is then not run). */
enum remedy_order remedy_debt_written(struct remedy *r, int error, uint64_t now_ns);
/* A run ended; answers what to write to the debt file. */
enum remedy_order remedy_result(struct remedy *r, const struct model_undo *undo, struct run_result result,
				uint64_t now_ns);
/* An operator asks for the undo now, whatever the rule says; it is not done again until the rule has cleared.
 * -EALREADY when nothing is owed. */
int remedy_undo_by_hand(struct remedy *r);
/* A debt found on disk at start: the effect is taken to be in force. */
void remedy_restore(struct remedy *r, uint64_t now_ns);
/* In force: the alert is mitigated, not resolved, when it goes quiet. */
bool remedy_in_force(const struct remedy *r);
enum hook_state remedy_state(const struct remedy *r);
#endif
