/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rule.h - when one alert rule changes state. Layer: decide (no I/O, no clock, no allocation).
 *
 * Two layers: struct rule is the bare hold (quiet or firing), struct rule_alert is the alert of one rule on one target
 * with severity, no-data, mitigation and flapping around it.
 *
 * Units:     times are nanoseconds of CLOCK_MONOTONIC, given by the caller; they never go backwards.
 * Ownership: the caller owns the structs; nothing is kept between calls except in them. {0} is quiet and warming up.
 * Holds:     only time between two ticks that both show the contrary counts. Unknown pauses the count,
 *            and voids it once it has lasted longer than the hold itself.
 * Errors:    none. */
#ifndef DWELLD_RULE_H
#define DWELLD_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "event.h"
#include "expr.h"

enum rule_seen { RULE_SEEN_NOTHING, RULE_SEEN_BAD, RULE_SEEN_BETWEEN, RULE_SEEN_GOOD };
enum rule_edge { RULE_EDGE_NONE, RULE_EDGE_FIRED, RULE_EDGE_CLEARED };
struct rule_spec { uint64_t for_ns, clear_for_ns; };
struct rule { bool firing; enum rule_seen seen; uint64_t last_ns, held_ns, blind_ns; };

enum rule_edge rule_step(struct rule *r, const struct rule_spec *spec, enum rule_seen seen, uint64_t now_ns);

/* A pause between two ticks longer than this is no evidence: it counts as blind time. */
#define RULE_STEP_MAX_NS 2000000000ULL
/* An alert that sees nothing says so after clear_for, but not before this: one gap in the window is no news. */
#define RULE_NODATA_MIN_NS 30000000000ULL
/* Flapping: a transition (fire, relapse, resolve, mitigated) that would be one more than RULE_FLAP_MAX within the last
 * RULE_FLAP_NS; it ends when the rule has not changed for RULE_FLAP_NS. */
#define RULE_FLAP_MAX 6
#define RULE_FLAP_NS 3600000000000ULL

/* What the rule's expressions say now. */
enum rule_sight {
	RULE_SIGHT_TRUTH,	/* look at when and clear */
	RULE_SIGHT_NA,		/* can never apply here */
	RULE_SIGHT_IDLE,	/* nothing to be slow: known, never bad, never "resolved" */
	RULE_SIGHT_UNKNOWN,	/* missing, few samples */
	RULE_SIGHT_GAP		/* warming up, suspend, late tick: as unknown, but nodata = fire does not count it */
};
struct rule_input {
	enum rule_sight sight;
	enum tri when;		/* TRI_UNKNOWN only with a sight other than TRUTH */
	enum tri clear;		/* not when, if the rule has none of its own */
	enum tri critical;	/* of critical.when; TRI_FALSE without */
	bool in_force;		/* a remedy of this rule works on this target */
	double value; bool value_known;	/* of the first comparison, for the range in "settled" */
};
struct rule_config {
	struct rule_spec hold, critical_hold;
	enum nodata nodata;
	enum severity severity, at_most;
	bool has_critical;
};

struct rule_alert {
	struct rule hold, critical;
	bool open;			/* an alert exists: firing, mitigated or flapping */
	bool mitigated, flapping;
	bool told_nodata, idle;
	enum rule_state state;
	enum severity severity;
	uint64_t state_ns;		/* since when this state */
	uint64_t fired_ns;		/* when the alert opened */
	uint64_t blind_since_ns;	/* 0: sees */
	uint64_t flap_ns[RULE_FLAP_MAX];	/* the last transitions, ring */
	uint8_t flap_at;
	uint32_t flap_count;		/* transitions kept silent while flapping */
	uint64_t last_change_ns;	/* of the hold while flapping */
	double low, high;		/* value range while flapping */
	bool range_known;
	bool started;
};

#define RULE_EVENTS 3		/* at most that many in one step */
struct rule_step {
	enum event_kind event[RULE_EVENTS];
	uint8_t event_count;
	enum rule_state prev_state;
};
/* One tick. *ret tells the events to emit, in order (inhibition is the caller's). */
void rule_alert_step(struct rule_alert *a, const struct rule_config *config, const struct rule_input *in,
		     uint64_t now_ns, struct rule_step *ret);
/* The remedy is wanted: firing and not idle. While it sees nothing the last wish stands. */
bool rule_alert_wants(const struct rule_alert *a);
/* The conditions were changed by a reload: the state stays, the holds start anew. */
void rule_alert_restart_holds(struct rule_alert *a, uint64_t now_ns);
#endif
