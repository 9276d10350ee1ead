/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine_private.h - what engine*.c share. Nobody else includes it.
 *
 * A cell is one rule on one target slot; a machine is one remedy hook on one target, by the target's name, so that it
 * outlives the slot; a page is one page hook on one target. */
#ifndef DWELLD_ENGINE_PRIVATE_H
#define DWELLD_ENGINE_PRIVATE_H

#include "engine.h"
#include "rule.h"
#include "values.h"
#include "verdict.h"

#define ENGINE_MACHINES 128
#define ENGINE_PAGES 256
#define ENGINE_PAIRS (MODEL_RULES * SAMPLE_TARGETS)
#define ENGINE_RESULT 208
#define ENGINE_ORDER_ROOM 4	/* orders that one machine can give in one step, with room to spare */

/* Why a rule cannot say true or false. */
enum engine_why {
	WHY_NONE, WHY_NA, WHY_WARMING, WHY_GAP, WHY_NO_PROCESS, WHY_FEW, WHY_MISSING, WHY_GONE, WHY_QUIET
};

struct engine_cell {
	struct rule_alert alert;
	struct rule_step step;		/* of this tick, until it is emitted */
	enum engine_why why;
	uint64_t have, need;
	enum signal_id missing_signal;
	bool inhibited, announced;	/* announced: a fire event was told */
	uint8_t inhibited_count;
	int16_t inhibited_by[4];
	bool value_known, peak_known, threshold_known;
	double value, peak, threshold;	/* of the first comparison */
	uint64_t started_us;
	char alert_id[EVENT_ID];
};

struct engine_slot {
	bool used;
	char name[SAMPLE_NAME_MAX];
	int profile;			/* index in the model, -1 none */
	enum severity at_most;
	uint64_t enqueued, read;	/* last readings */
	uint64_t datagram_ns;		/* when one last moved */
	bool arrivals_known, datagram_ever, queue_empty;
	struct verdict_result verdict;
};

struct engine_machine {
	bool used, wanted, frozen, blind, dry_told;
	int hook, rule;			/* rule -1: unknown */
	char target[SAMPLE_NAME_MAX];
	char alert_id[EVENT_ID];
	struct remedy remedy;
	uint64_t debt_seq, run_seq;
	char last_result[ENGINE_RESULT];
};

struct engine_page {
	bool used, running, pending;	/* pending: the newest wish waits in event */
	int hook, rule;
	char target[SAMPLE_NAME_MAX];
	uint64_t run_seq;
	struct event event;
	char last_result[ENGINE_RESULT];
};

struct engine {
	struct model *model;
	struct engine_setup setup;
	struct values *values;
	const struct sample *sample;	/* the latest; sense/ keeps it valid until the next read */
	uint64_t now_ns, wall_us, seq;
	uint64_t warm_until_ns[MODEL_RULES];
	struct engine_slot slot[SAMPLE_TARGETS];
	struct engine_cell (*cell)[MODEL_RULES];	/* [SAMPLE_TARGETS] */
	struct { uint8_t slot, rule; } pair[ENGINE_PAIRS];	/* what applies, in slot then rule order */
	uint32_t pair_count;
	enum verdict verdict;
	struct engine_machine machine[ENGINE_MACHINES];
	struct engine_page page[ENGINE_PAGES];
};

/* What a term or $param is read from. slot -1: a target that is gone; its own signals were never there. */
struct engine_context { const struct engine *e; int slot, profile; };
struct expr_env engine_env(const struct engine_context *c, const uint32_t *need_override);

/* ---- engine.c ---- */
int engine_slot_find(const struct engine *e, const char *target);	/* -1: none */
bool engine_applies(const struct engine *e, int rule, int slot);
bool engine_alerts(const struct model_rule *r);	/* false: info, stands in status only */
void engine_out_begin(struct engine_out *out);
void engine_copy(char *to, size_t size, const char *from);	/* cut, control bytes to '?' */

/* ---- engine_rules.c ---- */
void engine_rules_step(struct engine *e);	/* every rule of every target, then inhibition, then verdicts */
void engine_rules_emit(struct engine *e, struct engine_out *out);
void engine_verdicts(struct engine *e);
void engine_withdraw(struct engine *e, int slot, int rule, struct engine_out *out);	/* the cell is {0} afterwards */

/* ---- engine_slots.c ---- */
void engine_slots_follow(struct engine *e, const struct sample *s, struct engine_out *out);	/* by name; before _update */
void engine_slots_update(struct engine *e, const struct sample *s);
bool engine_slot_quiet(const struct engine *e, int slot);	/* no datagram for a window's length and none waits */
/* How many distinct probes enabled rules need that are not attached; names separated by blanks. */
uint32_t engine_missing_probes(const struct engine *e, char *buf, size_t size);

/* ---- engine_event.c ---- */
struct event *engine_emit(struct engine *e, enum event_kind kind, int slot, int rule, struct engine_out *out);
void engine_event_fill(const struct engine *e, int slot, int rule, struct event *ev);
uint8_t engine_evidence(const struct engine *e, int slot, int rule, struct evidence ret[EVENT_EVIDENCE]);
void engine_why_text(const struct engine *e, const struct engine_cell *c, int rule, char *buf, size_t size);

/* ---- engine_pages.c ---- */
struct engine_answer { int hook; const char *target; uint64_t seq; struct run_result result; const char *text; };
struct order *engine_order(struct engine_out *out, enum order_kind kind, int hook, const char *target);	/* NULL: full */
bool engine_has_room(const struct engine_out *out);
struct event *engine_hook_event(struct engine *e, enum event_kind kind, int hook, int rule, const char *target,
				struct engine_out *out);
void engine_page_event(struct engine *e, int rule, const struct event *ev, struct engine_out *out);
void engine_pages_step(struct engine *e, struct engine_out *out);
bool engine_page_result(struct engine *e, const struct engine_answer *a, struct engine_out *out);	/* false: no page's */

/* ---- engine_hooks.c ---- */
void engine_hooks_step(struct engine *e, struct engine_out *out);
bool engine_remedy_works(const struct engine *e, int rule, int slot);	/* in force, or its do runs */
struct engine_machine *engine_machine_find(const struct engine *e, int hook, const char *target);
struct engine_machine *engine_machine_get(struct engine *e, int hook, const char *target);	/* NULL: too many owe */
void engine_machine_obey(struct engine *e, struct engine_machine *m, enum remedy_order order, struct engine_out *out);
void engine_machine_order(struct engine *e, struct engine_machine *m, struct order *o, const struct event *asked);
void engine_machine_release(struct engine *e, int hook, const char *target);	/* undo by hand */

/* ---- engine_answers.c ---- */
void engine_hooks_reload(struct engine *e, const struct model *next, struct engine_out *out);
#endif
