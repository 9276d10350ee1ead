/* SPDX-License-Identifier: GPL-2.0-or-later */
/* remedy.c - one (hook, target): when to do, to try again, to undo. */
#include "remedy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "units.h"

#define SECOND_NS 1000000000ULL
#define PAUSE_FIRST_NS (5 * SECOND_NS)
#define PAUSE_MAX_NS (600 * SECOND_NS)
#define DEBT_PAUSE_NS (60 * SECOND_NS)		/* after a debt line that could not be written */
#define AFTER_MAX_NS (4 * 3600 * SECOND_NS)
#define RELAPSE_DECAY 4				/* quiet for this many times "after": back to the configured one */
#define DO_RETRIES 3

enum { EXIT_DONE = 0, EXIT_REFUSED_LOW = 64, EXIT_LATER = 75, EXIT_REFUSED_HIGH = 78, EXIT_ALREADY_SO = 80 };

static const char *const state_names[] = {
	[HOOK_IDLE] = "idle", [HOOK_RUNNING] = "running", [HOOK_WAITING] = "waiting", [HOOK_DONE] = "done",
	[HOOK_OWED] = "owed", [HOOK_LATCHED] = "latched", [HOOK_HELD] = "held",
};

const char *hook_state_name(enum hook_state state)
{
	return state_names[state];
}

__attribute__((format(printf, 2, 3)))
static void say(struct remedy *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->why, sizeof(r->why), format, args);
	va_end(args);
}

static const char *span(uint64_t ns, char *buf, size_t size)
{
	return units_format_ns(ns, buf, size);
}

static void enter(struct remedy *r, enum remedy_phase phase, uint64_t now_ns)
{
	r->phase = phase;
	r->phase_ns = now_ns;
	r->next_ns = 0;
}

/* Pause before the next try after `tries` bad ones: 5 s, 10 s, ... 10 min. */
static uint64_t pause_ns(unsigned int tries)
{
	uint64_t ns = PAUSE_FIRST_NS;

	for (unsigned int i = 1; i < tries && ns < PAUSE_MAX_NS; i++)
		ns *= 2;
	return ns < PAUSE_MAX_NS ? ns : PAUSE_MAX_NS;
}

static uint64_t after_ns(const struct remedy *r, const struct model_undo *undo)
{
	return r->after_ns > undo->after_ns ? r->after_ns : undo->after_ns;
}

/* The rule fires again after an undo. Soon: the undo was too early, so the next one waits twice as long. */
static void note_relapse(struct remedy *r, const struct model_undo *undo, uint64_t now_ns)
{
	const uint64_t after = after_ns(r, undo);

	if (!r->undone_ns || now_ns - r->undone_ns > after || after >= AFTER_MAX_NS)
		return;
	r->after_ns = 2 * after < AFTER_MAX_NS ? 2 * after : AFTER_MAX_NS;
}

static void forget_relapses(struct remedy *r, const struct model_undo *undo, uint64_t now_ns)
{
	if (r->after_ns && r->undone_ns && now_ns - r->undone_ns >= RELAPSE_DECAY * after_ns(r, undo))
		r->after_ns = 0;
}

static void note_quiet(struct remedy *r, const struct model_undo *undo, enum tri undo_when, uint64_t now_ns)
{
	const bool quiet = !r->wanted && (!undo->has_when || undo_when == TRI_TRUE);

	if (!quiet)
		r->quiet_ns = 0;
	else if (!r->quiet_ns)
		r->quiet_ns = now_ns ? now_ns : 1;	/* 0 means "not now" */
}

static enum remedy_order start_undo(struct remedy *r, uint64_t now_ns)
{
	enter(r, REMEDY_UNDOING, now_ns);
	return REMEDY_ORDER_UNDO;
}

static enum remedy_order start_do(struct remedy *r, uint64_t now_ns)
{
	enter(r, REMEDY_DOING, now_ns);
	r->cleared = false;
	return REMEDY_ORDER_DO;
}

/* In force or half done: the only question is whether the undo may run. The quiet time before the do ended says nothing
 * about how it is with the remedy, so it does not count. */
static enum remedy_order step_owed(struct remedy *r, const struct model_undo *undo, uint64_t now_ns)
{
	const uint64_t after = after_ns(r, undo);
	char held[32], need[32];
	uint64_t since;

	if (r->undo_by_hand) {
		r->tries = 0;
		say(r, "undo: asked for by hand");
		return start_undo(r, now_ns);
	}
	if (!undo->given || !r->quiet_ns)
		return REMEDY_ORDER_NONE;
	since = r->quiet_ns > r->phase_ns ? r->quiet_ns : r->phase_ns;
	if (now_ns - since < after)
		return REMEDY_ORDER_NONE;
	r->tries = 0;
	say(r, "undo: rule not firing%s%.60s for %s (after %s%s)", undo->has_when ? " and " : "",
	    undo->has_when ? undo->when.text : "", span(now_ns - since, held, sizeof(held)),
	    span(after, need, sizeof(need)), after > undo->after_ns ? ", longer since relapses" : "");
	return start_undo(r, now_ns);
}

static enum remedy_order step_rest(struct remedy *r, const struct model_undo *undo, uint64_t now_ns)
{
	r->undo_by_hand = false;
	if (!r->wanted) {
		r->next_ns = 0;
		forget_relapses(r, undo, now_ns);
		return REMEDY_ORDER_NONE;
	}
	if (now_ns < r->next_ns)
		return REMEDY_ORDER_NONE;
	note_relapse(r, undo, now_ns);
	r->undone_ns = 0;
	r->tries = 0;
	r->debt_before = false;
	enter(r, REMEDY_DEBT, now_ns);
	say(r, "do: the rule fires; first the debt");
	return REMEDY_ORDER_DEBT;
}

static enum remedy_order step_retry(struct remedy *r, uint64_t now_ns)
{
	if (r->undo_by_hand || !r->wanted) {
		enter(r, REMEDY_FAILED, now_ns);
		say(r, "no further try: the %s; the undo stays owed",
		    r->undo_by_hand ? "undo was asked for" : "rule stopped firing");
		return REMEDY_ORDER_NONE;
	}
	if (now_ns < r->next_ns)
		return REMEDY_ORDER_NONE;
	say(r, "do: try %u of %u, the hook asked to come later", r->tries + 1U, DO_RETRIES + 1U);
	return start_do(r, now_ns);
}

static enum remedy_order step_failed(struct remedy *r, const struct model_undo *undo, uint64_t now_ns)
{
	if (!r->wanted)
		r->cleared = true;
	if (r->undo_by_hand || !r->wanted || !r->cleared)
		return step_owed(r, undo, now_ns);
	r->tries = 0;
	r->debt_before = true;
	say(r, "do: the rule fires again; the last try failed and its undo is still owed");
	return start_do(r, now_ns);
}

/* The cause came back while the undo fails: half undone is worse than done again. */
static enum remedy_order step_undo_retry(struct remedy *r, uint64_t now_ns)
{
	if (r->wanted && !r->undo_by_hand) {
		say(r, "do: the rule fires again after %u failed undos", r->tries);
		r->tries = 0;
		r->debt_before = true;
		return start_do(r, now_ns);
	}
	if (now_ns < r->next_ns)
		return REMEDY_ORDER_NONE;
	say(r, "undo: try %u", r->tries + 1U);
	return start_undo(r, now_ns);
}

enum remedy_order remedy_step(struct remedy *r, const struct model_undo *undo, bool firing, enum tri undo_when,
			      uint64_t now_ns)
{
	r->wanted = firing;
	note_quiet(r, undo, undo_when, now_ns);
	switch (r->phase) {
	case REMEDY_REST:
		return step_rest(r, undo, now_ns);
	case REMEDY_DEBT:
	case REMEDY_DOING:
	case REMEDY_UNDOING:
		return REMEDY_ORDER_NONE;	/* serial: the newest wish waits in r->wanted */
	case REMEDY_RETRY:
		return step_retry(r, now_ns);
	case REMEDY_IN_FORCE:
		return step_owed(r, undo, now_ns);
	case REMEDY_FAILED:
		return step_failed(r, undo, now_ns);
	case REMEDY_REFUSED:
		if (!firing) {
			enter(r, REMEDY_REST, now_ns);
			r->undo_by_hand = false;
		}
		return REMEDY_ORDER_NONE;
	case REMEDY_UNDO_RETRY:
		return step_undo_retry(r, now_ns);
	}
	return REMEDY_ORDER_NONE;
}

enum remedy_order remedy_debt_written(struct remedy *r, int error, uint64_t now_ns)
{
	if (r->phase != REMEDY_DEBT)
		return REMEDY_ORDER_NONE;
	if (error) {
		enter(r, REMEDY_REST, now_ns);
		r->next_ns = now_ns + DEBT_PAUSE_NS;
		say(r, "not run: its debt could not be written (error %d); next try in 60s", -error);
		return REMEDY_ORDER_NONE;
	}
	if (!r->wanted || r->undo_by_hand) {
		enter(r, r->undo_by_hand ? REMEDY_REFUSED : REMEDY_REST, now_ns);
		say(r, "not run: the %s before it was started",
		    r->undo_by_hand ? "undo was asked for" : "rule stopped firing");
		return REMEDY_ORDER_DEBT_CANCEL;
	}
	say(r, "do: the rule fires");
	return start_do(r, now_ns);
}

/* "exit 1", "killed by signal 11", "time limit". */
static const char *ending(struct run_result result, char *buf, size_t size)
{
	if (result.lost)
		snprintf(buf, size, "the outcome is not known");
	else if (result.timeout)
		snprintf(buf, size, "over its time limit");
	else if (result.signal)
		snprintf(buf, size, "killed by signal %d", result.signal);
	else
		snprintf(buf, size, "exit %d", result.exit_code);
	return buf;
}

static bool ended_by_itself(struct run_result result)
{
	return !result.lost && !result.timeout && !result.signal;
}

static enum remedy_order do_refused(struct remedy *r, int code, uint64_t now_ns)
{
	if (r->debt_before) {	/* an older debt is not cancelled by "nothing changed now" */
		enter(r, REMEDY_FAILED, now_ns);
		say(r, "%s (exit %d); an older undo stays owed", code == EXIT_ALREADY_SO ? "already so" : "refused",
		    code);
		return REMEDY_ORDER_NONE;
	}
	enter(r, REMEDY_REFUSED, now_ns);
	say(r, "%s (exit %d), nothing changed; not tried again until the rule has cleared",
	    code == EXIT_ALREADY_SO ? "already so, not ours" : "refused", code);
	return REMEDY_ORDER_DEBT_CANCEL;
}

static enum remedy_order do_ended(struct remedy *r, struct run_result result, uint64_t now_ns)
{
	const int code = ended_by_itself(result) ? result.exit_code : -1;
	char text[48], pause[32];

	if (code == EXIT_DONE) {
		enter(r, REMEDY_IN_FORCE, now_ns);
		r->tries = 0;
		say(r, "done, in force");
		return REMEDY_ORDER_NONE;
	}
	if (code == EXIT_LATER && r->tries < DO_RETRIES) {
		r->tries++;
		enter(r, REMEDY_RETRY, now_ns);
		r->next_ns = now_ns + pause_ns(r->tries);
		say(r, "the hook asks to come later (exit 75); retry %u of %u in %s", r->tries, DO_RETRIES,
		    span(pause_ns(r->tries), pause, sizeof(pause)));
		return REMEDY_ORDER_NONE;
	}
	if (code == EXIT_ALREADY_SO || (code >= EXIT_REFUSED_LOW && code <= EXIT_REFUSED_HIGH && code != EXIT_LATER))
		return do_refused(r, code, now_ns);
	enter(r, REMEDY_FAILED, now_ns);
	say(r, "do failed: %s%s; perhaps half done, the undo stays owed", ending(result, text, sizeof(text)),
	    code == EXIT_LATER ? " after three retries" : "");
	return REMEDY_ORDER_NONE;
}

static enum remedy_order undo_ended(struct remedy *r, struct run_result result, uint64_t now_ns)
{
	char text[48], pause[32];

	if (ended_by_itself(result) && (result.exit_code == EXIT_DONE || result.exit_code == EXIT_ALREADY_SO)) {
		/* by hand: the operator's word counts until the rule has cleared once */
		enter(r, r->undo_by_hand ? REMEDY_REFUSED : REMEDY_REST, now_ns);
		r->tries = 0;
		r->undone_ns = now_ns;
		r->quiet_ns = 0;
		say(r, "undone%s", r->undo_by_hand ? " by hand; not done again until the rule has cleared" : "");
		return REMEDY_ORDER_DEBT_SETTLE;
	}
	if (r->tries < UINT8_MAX)
		r->tries++;
	enter(r, REMEDY_UNDO_RETRY, now_ns);
	r->next_ns = now_ns + pause_ns(r->tries);
	say(r, "undo failed %u times: %s; next try in %s", r->tries, ending(result, text, sizeof(text)),
	    span(pause_ns(r->tries), pause, sizeof(pause)));
	return REMEDY_ORDER_NONE;
}

enum remedy_order remedy_result(struct remedy *r, const struct model_undo *undo, struct run_result result,
				uint64_t now_ns)
{
	(void)undo;
	if (r->phase == REMEDY_DOING)
		return do_ended(r, result, now_ns);
	if (r->phase == REMEDY_UNDOING)
		return undo_ended(r, result, now_ns);
	return REMEDY_ORDER_NONE;	/* a late answer to a run that was given up */
}

int remedy_undo_by_hand(struct remedy *r)
{
	if (r->phase == REMEDY_REST || r->phase == REMEDY_REFUSED)
		return -EALREADY;
	r->undo_by_hand = true;
	r->next_ns = 0;
	return 0;
}

void remedy_restore(struct remedy *r, uint64_t now_ns)
{
	enter(r, REMEDY_IN_FORCE, now_ns);
	r->tries = 0;
	r->quiet_ns = 0;
	r->cleared = false;
	say(r, "found owed at start; taken to be in force");
}

bool remedy_in_force(const struct remedy *r)
{
	/* until a started undo has ended well the effect is (at least partly) there */
	return r->phase == REMEDY_IN_FORCE || r->phase == REMEDY_UNDOING || r->phase == REMEDY_UNDO_RETRY;
}

enum hook_state remedy_state(const struct remedy *r)
{
	switch (r->phase) {
	case REMEDY_REST:
		return r->wanted && r->next_ns ? HOOK_WAITING : HOOK_IDLE;
	case REMEDY_DEBT:
	case REMEDY_RETRY:
		return HOOK_WAITING;
	case REMEDY_DOING:
	case REMEDY_UNDOING:
		return HOOK_RUNNING;
	case REMEDY_IN_FORCE:
		return HOOK_DONE;
	case REMEDY_FAILED:
	case REMEDY_UNDO_RETRY:
		return HOOK_OWED;
	case REMEDY_REFUSED:
		return r->undo_by_hand ? HOOK_HELD : HOOK_LATCHED;
	}
	return HOOK_IDLE;
}
