/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine.h - windows, signals, rules, verdicts and remedies of one host, driven by samples. The whole of decide/ behind
 * one object: the daemon and (later) replay run exactly this. Layer: decide (pure: time is in the sample; the only
 * allocation is in engine_new).
 *
 * Order in a tick: windows <- sample; every rule of every target evaluated; inhibition; verdicts; transitions; remedies.
 * Ownership: the engine copies the model; *out belongs to the caller and is overwritten by each call. */
#ifndef DWELLD_ENGINE_H
#define DWELLD_ENGINE_H

#include "event.h"
#include "model.h"
#include "remedy.h"
#include "sample.h"

struct engine;

#define ENGINE_EVENTS 128
#define ENGINE_ORDERS 64

/* Run a hook, or write a debt line. kind NOTIFY-like runs (page hooks) have action "notify". */
enum order_kind { ORDER_DEBT_WRITE, ORDER_DEBT_CANCEL, ORDER_DEBT_SETTLE, ORDER_RUN };
struct order {
	enum order_kind kind;
	int hook;			/* index in the model */
	int rule;			/* index in the model, -1 by hand or settling an old debt */
	char target[SAMPLE_NAME_MAX];
	char action[8];			/* do undo notify */
	uint64_t seq;
	uint32_t attempt;		/* 1.. */
	bool dry_run;			/* mode = dry-run: run nothing, journal what would run */
	char why[160];
	struct event event;		/* what the hook gets on stdin */
};

struct engine_out {
	struct event event[ENGINE_EVENTS];
	uint32_t event_count, event_dropped;
	struct order order[ENGINE_ORDERS];
	uint32_t order_count, order_dropped;
};

struct engine_setup {
	char host[64];
	char boot_id[40];
	uint64_t first_seq;	/* sequence numbers go on above this; must be higher than any of an earlier life */
};

int engine_new(const struct model *m, const struct engine_setup *setup, struct engine **ret);
void engine_free(struct engine *e);		/* NULL is fine */
/* Same rules keep their state by name; removed ones are withdrawn (events in *out); new ones warm up. */
int engine_reload(struct engine *e, const struct model *m, struct engine_out *out);
void engine_tick(struct engine *e, const struct sample *s, struct engine_out *out);

/* Answers from act/, at any time between ticks. (hook index, target name) names the machine. */
void engine_debt_written(struct engine *e, int hook, const char *target, uint64_t seq, int error, uint64_t now_ns,
			 struct engine_out *out);
void engine_hook_result(struct engine *e, int hook, const char *target, uint64_t seq, struct run_result result,
			const char *last_line, uint64_t now_ns, struct engine_out *out);
/* At start, one call per debt line found. rule and alert_id as stored. */
void engine_debt_restore(struct engine *e, const char *hook, const char *target, const char *rule, uint64_t now_ns);
/* The same with what else the debt line holds; seq comes back in ORDER_DEBT_SETTLE, and sequence numbers of this engine
 * stay above it. */
struct engine_debt { const char *hook, *target, *rule, *alert_id; uint64_t seq; };
void engine_debt_restored(struct engine *e, const struct engine_debt *debt, uint64_t now_ns);
/* dwellctl undo: hook and target NULL = everything owed. Number of undos started. */
int engine_undo(struct engine *e, const char *hook, const char *target, uint64_t now_ns, struct engine_out *out);

/* ---- what status and metrics read; all valid until the next tick ---- */
enum verdict { VERDICT_IDLE, VERDICT_OK, VERDICT_UNKNOWN, VERDICT_NETWORK, VERDICT_SERVER, VERDICT_MIXED };
const char *verdict_name(enum verdict v);

struct engine_target_view {
	const struct sample_target *sample;	/* latest */
	const char *profile;
	enum verdict verdict;
	int cause[8];				/* rule indices, primary first */
	uint8_t cause_count;
	uint64_t worst_tid;			/* 0: unknown */
};
struct engine_rule_view {
	int rule, target;			/* model index, slot */
	enum rule_state state;
	enum severity severity;			/* now */
	uint64_t state_age_ns;
	int inhibited_by[4];			/* rule indices */
	uint8_t inhibited_count;
	uint64_t have, need;			/* "3 of 200" when unknown for too few samples */
	char why[96];				/* why unknown or na, "" else */
	struct evidence evidence[EVENT_EVIDENCE];
	uint8_t evidence_count;
	const char *alert_id;			/* "" when none */
};
struct engine_hook_view {
	int hook; const char *target; enum hook_state state; const char *last_result; uint64_t last_seq; const char *why;
};
enum verdict engine_verdict(const struct engine *e);		/* of the host */
bool engine_target(const struct engine *e, int slot, struct engine_target_view *ret);	/* false: slot unused */
/* i counts from 0; false at the end. Rules that are na for a target are listed as na. */
bool engine_rule(const struct engine *e, uint32_t i, struct engine_rule_view *ret);
bool engine_hook(const struct engine *e, uint32_t i, struct engine_hook_view *ret);
/* A statistic over a window (must be one of the model's; 0 = default). */
struct value engine_value(const struct engine *e, int slot, enum signal_id signal, enum signal_stat stat, double arg,
			  uint64_t window_ns);
/* Window histogram of dwell, runq or softirq.* of a slot (host signals: any slot); NULL when unknown. */
const uint32_t *engine_hist(const struct engine *e, int slot, enum signal_id signal, uint64_t window_ns);
const struct model *engine_model(const struct engine *e);
const struct sample *engine_sample(const struct engine *e);	/* latest, or NULL before the first */
#endif
