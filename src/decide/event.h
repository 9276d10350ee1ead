/* SPDX-License-Identifier: GPL-2.0-or-later */
/* event.h - what decide/ tells act/: one struct per transition of an alert or a hook, complete in itself, so that
 * a journal entry and a hook's standard input can be written from it alone. Layer: decide (plain data).
 *
 * Ownership: texts are inside; cut at their size with no newline in them (control bytes become '?'). */
#ifndef DWELLD_EVENT_H
#define DWELLD_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

enum event_kind {
	EVENT_FIRE, EVENT_WORSE, EVENT_BETTER, EVENT_MITIGATED, EVENT_RESOLVE, EVENT_WITHDRAW, EVENT_FLAPPING,
	EVENT_SETTLED, EVENT_NODATA, EVENT_DATA_BACK, EVENT_REMINDER, EVENT_LATCHED, EVENT_TEST, EVENT_HOOK_ASKED,
	EVENT_HOOK_DONE, EVENT_HOOK_FAILED, EVENT_KIND_COUNT
};
const char *event_kind_name(enum event_kind kind);	/* "fire", "data-back", "hook-asked" */

enum rule_state {
	STATE_NA, STATE_UNKNOWN, STATE_IDLE, STATE_OK, STATE_PENDING, STATE_FIRING, STATE_MITIGATED, STATE_FLAPPING,
	STATE_WITHDRAWN
};
const char *rule_state_name(enum rule_state state);

#define EVENT_ID 256
#define EVENT_EVIDENCE 8
struct evidence { char term[64]; bool known; double value; enum unit_dim dim; };

struct event {
	enum event_kind kind;
	char alert_id[EVENT_ID];	/* host-rule-target-start, constant to the end; "" for none */
	char rule[MODEL_NAME];
	char target[SAMPLE_NAME_MAX];
	char unit[SAMPLE_NAME_MAX];	/* "" if the target has none */
	char cgroup[MODEL_PATH];	/* "" unknown; set by daemon.c, decide/ does not know it */
	uint32_t pids[16];
	uint32_t pid_count;		/* filled in pids, at most 16 */
	char ports[128];		/* "5000,5002-5004", set by daemon.c */
	enum rule_class class;
	enum severity severity;
	enum rule_state state, prev_state;
	uint64_t seq;			/* grows by one per event of the daemon */
	char summary[MODEL_TEXT];
	char evidence_text[512];	/* "dwell.p99 41ms > 10ms; runq.p99 38ms" */
	struct evidence evidence[EVENT_EVIDENCE];
	uint8_t evidence_count;
	bool value_known;		/* of the first comparison of the rule */
	double value, threshold, peak;
	enum unit_dim dim;
	uint64_t samples;
	uint64_t started_us;		/* wall clock, when the alert began to fire */
	uint64_t duration_ns;		/* monotonic, firing time so far */
	char coverage[128];		/* "dwell fifo inexact; runq wakeup" */
	char hooks[256];		/* what will run or ran: "raise-cpu do" */
	/* hook events */
	char hook[MODEL_NAME];
	char action[8];			/* do undo notify */
	int exit_code;			/* -1: not exited */
	int signal;			/* 0: not killed */
	char result[208];		/* last line of output */
};
#endif
