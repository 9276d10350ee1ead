/* SPDX-License-Identifier: GPL-2.0-or-later */
/* event.c - names of event kinds and rule states, as the journal and the JSON spell them. */
#include "event.h"

const char *event_kind_name(enum event_kind kind)
{
	switch (kind) {
	case EVENT_FIRE: return "fire";
	case EVENT_WORSE: return "worse";
	case EVENT_BETTER: return "better";
	case EVENT_MITIGATED: return "mitigated";
	case EVENT_RESOLVE: return "resolve";
	case EVENT_WITHDRAW: return "withdraw";
	case EVENT_FLAPPING: return "flapping";
	case EVENT_SETTLED: return "settled";
	case EVENT_NODATA: return "nodata";
	case EVENT_DATA_BACK: return "data-back";
	case EVENT_REMINDER: return "reminder";
	case EVENT_LATCHED: return "latched";
	case EVENT_TEST: return "test";
	case EVENT_HOOK_ASKED: return "hook-asked";
	case EVENT_HOOK_DONE: return "hook-done";
	case EVENT_HOOK_FAILED: return "hook-failed";
	case EVENT_KIND_COUNT: break;
	}
	return "?";
}

const char *rule_state_name(enum rule_state state)
{
	switch (state) {
	case STATE_NA: return "na";
	case STATE_UNKNOWN: return "unknown";
	case STATE_IDLE: return "idle";
	case STATE_OK: return "ok";
	case STATE_PENDING: return "pending";
	case STATE_FIRING: return "firing";
	case STATE_MITIGATED: return "mitigated";
	case STATE_FLAPPING: return "flapping";
	case STATE_WITHDRAWN: return "withdrawn";
	}
	return "?";
}
