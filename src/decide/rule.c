/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rule.c - see rule.h. */
#include "rule.h"

#include <string.h>

enum rule_edge rule_step(struct rule *r, const struct rule_spec *spec, enum rule_seen seen, uint64_t now_ns)
{
	const enum rule_seen contrary = r->firing ? RULE_SEEN_GOOD : RULE_SEEN_BAD;
	const uint64_t hold_ns = r->firing ? spec->clear_for_ns : spec->for_ns;
	const uint64_t step_ns = now_ns - r->last_ns;
	const bool was_contrary = r->seen == contrary;

	r->last_ns = now_ns;
	r->seen = seen;
	if (seen == RULE_SEEN_NOTHING) {
		r->blind_ns += step_ns;
		if (r->blind_ns > hold_ns)
			r->held_ns = 0;
		return RULE_EDGE_NONE;
	}
	r->blind_ns = 0;
	if (seen != contrary) {
		r->held_ns = 0;
		return RULE_EDGE_NONE;
	}
	if (was_contrary)
		r->held_ns += step_ns;
	if (r->held_ns < hold_ns)
		return RULE_EDGE_NONE;
	r->held_ns = 0;
	r->firing = !r->firing;
	return r->firing ? RULE_EDGE_FIRED : RULE_EDGE_CLEARED;
}

/* A hold whose ticks may come late: the pause is blind time, then the tick counts as the first of its kind. */
static enum rule_edge hold_step(struct rule *r, const struct rule_spec *spec, enum rule_seen seen, uint64_t now_ns)
{
	if (now_ns - r->last_ns > RULE_STEP_MAX_NS)
		rule_step(r, spec, RULE_SEEN_NOTHING, now_ns);
	return rule_step(r, spec, seen, now_ns);
}

static bool is_blind(const struct rule_input *in)
{
	return in->sight == RULE_SIGHT_UNKNOWN || in->sight == RULE_SIGHT_GAP;
}

/* What the tick shows to the hold. Idle ends a pending count (it is known not to be slow) but never a firing one. */
static enum rule_seen seen_of(const struct rule *r, const struct rule_config *config, const struct rule_input *in)
{
	if (in->sight == RULE_SIGHT_UNKNOWN && config->nodata == NODATA_FIRE)
		return RULE_SEEN_BAD;
	if (in->sight == RULE_SIGHT_IDLE)
		return r->firing ? RULE_SEEN_NOTHING : RULE_SEEN_BETWEEN;
	if (in->sight != RULE_SIGHT_TRUTH || in->when == TRI_UNKNOWN)
		return RULE_SEEN_NOTHING;
	if (in->when == TRI_TRUE)
		return RULE_SEEN_BAD;
	if (in->clear == TRI_TRUE)
		return RULE_SEEN_GOOD;
	if (in->clear == TRI_UNKNOWN && r->firing)
		return RULE_SEEN_NOTHING;
	return RULE_SEEN_BETWEEN;
}

static enum rule_seen critical_seen_of(const struct rule_input *in)
{
	if (in->sight != RULE_SIGHT_TRUTH || in->critical == TRI_UNKNOWN)
		return RULE_SEEN_NOTHING;
	return in->critical == TRI_TRUE ? RULE_SEEN_BAD : RULE_SEEN_GOOD;
}

static void tell(struct rule_step *s, enum event_kind kind)
{
	if (s->event_count < RULE_EVENTS)
		s->event[s->event_count++] = kind;
}

static enum severity severity_now(const struct rule_alert *a, const struct rule_config *config)
{
	const enum severity s = config->has_critical && a->critical.firing ? SEVERITY_CRITICAL : config->severity;

	return s > config->at_most ? config->at_most : s;
}

/* Counts one transition; true when it is one too many. */
static bool flap_note(struct rule_alert *a, uint64_t now_ns)
{
	const uint64_t oldest_ns = a->flap_ns[a->flap_at];

	a->flap_ns[a->flap_at] = now_ns;
	a->flap_at = (uint8_t)((a->flap_at + 1) % RULE_FLAP_MAX);
	return oldest_ns && now_ns - oldest_ns <= RULE_FLAP_NS;
}

static void flap_begin(struct rule_alert *a, const struct rule_input *in, uint64_t now_ns, struct rule_step *s)
{
	a->flapping = true;
	a->flap_count = 1;
	a->last_change_ns = now_ns;
	a->range_known = in->value_known;
	a->low = a->high = in->value;
	if (!a->open)
		a->fired_ns = now_ns;
	a->open = true;
	tell(s, EVENT_FLAPPING);
}

/* While flapping nothing is told; a quiet hour ends it. Not blind at its end: unknown is never worded as settled. */
static void flap_step(struct rule_alert *a, const struct rule_input *in, enum rule_edge edge, uint64_t now_ns,
		      struct rule_step *s)
{
	if (in->value_known) {
		a->low = !a->range_known || in->value < a->low ? in->value : a->low;
		a->high = !a->range_known || in->value > a->high ? in->value : a->high;
		a->range_known = true;
	}
	if (edge != RULE_EDGE_NONE) {
		a->flap_count++;
		a->last_change_ns = now_ns;
	}
	if (now_ns - a->last_change_ns < RULE_FLAP_NS || is_blind(in))
		return;
	a->flapping = false;
	a->mitigated = !a->hold.firing && in->in_force;
	a->open = a->hold.firing || a->mitigated;
	memset(a->flap_ns, 0, sizeof(a->flap_ns));
	tell(s, EVENT_SETTLED);
}

static void fired(struct rule_alert *a, const struct rule_config *config, uint64_t now_ns, struct rule_step *s)
{
	/* a relapse while a remedy is in force is the same alert getting worse, not a second one */
	const bool relapse = a->open;

	a->mitigated = false;
	a->open = true;
	if (!relapse)
		a->fired_ns = now_ns;
	a->severity = severity_now(a, config);
	tell(s, relapse ? EVENT_WORSE : EVENT_FIRE);
}

static void close_alert(struct rule_alert *a, struct rule_step *s)
{
	a->open = a->mitigated = a->told_nodata = false;
	a->critical = (struct rule){ .last_ns = a->critical.last_ns };
	tell(s, EVENT_RESOLVE);
}

static void transitions(struct rule_alert *a, const struct rule_config *config, const struct rule_input *in,
			uint64_t now_ns, enum rule_edge edge, struct rule_step *s)
{
	if (a->flapping) {
		flap_step(a, in, edge, now_ns, s);
		return;
	}
	if (edge != RULE_EDGE_NONE && flap_note(a, now_ns)) {
		flap_begin(a, in, now_ns, s);
		return;
	}
	if (edge == RULE_EDGE_FIRED)
		fired(a, config, now_ns, s);
	if (edge == RULE_EDGE_CLEARED && in->in_force) {
		a->mitigated = true;
		tell(s, EVENT_MITIGATED);
	} else if (edge == RULE_EDGE_CLEARED) {
		close_alert(a, s);
	} else if (a->mitigated && !in->in_force && in->sight == RULE_SIGHT_TRUTH && in->when == TRI_FALSE) {
		close_alert(a, s);	/* taken back, and still fine */
	}
}

static void severity_step(struct rule_alert *a, const struct rule_config *config, struct rule_step *s)
{
	const enum severity now = severity_now(a, config);

	if (!a->open || a->flapping || a->mitigated) {
		a->severity = now;
		return;
	}
	if (now != a->severity)
		tell(s, now > a->severity ? EVENT_WORSE : EVENT_BETTER);
	a->severity = now;
}

/* "No data since" for alerts that are open: for the others the state says it. */
static void nodata_step(struct rule_alert *a, const struct rule_config *config, const struct rule_input *in,
			uint64_t now_ns, struct rule_step *s)
{
	const uint64_t clear_ns = config->hold.clear_for_ns;
	const uint64_t grace_ns = clear_ns > RULE_NODATA_MIN_NS ? clear_ns : RULE_NODATA_MIN_NS;

	if (!is_blind(in)) {
		a->blind_since_ns = 0;
		if (a->told_nodata && a->open)
			tell(s, EVENT_DATA_BACK);
		a->told_nodata = false;
		return;
	}
	if (!a->blind_since_ns)
		a->blind_since_ns = now_ns;
	if (a->open && !a->flapping && !a->told_nodata && now_ns - a->blind_since_ns > grace_ns) {
		a->told_nodata = true;
		tell(s, EVENT_NODATA);
	}
}

static enum rule_state state_of(const struct rule_alert *a, const struct rule_config *config,
				const struct rule_input *in)
{
	if (a->flapping)
		return STATE_FLAPPING;
	if (a->open && is_blind(in) && config->nodata == NODATA_UNKNOWN)
		return STATE_UNKNOWN;
	if (a->open)
		return a->mitigated ? STATE_MITIGATED : STATE_FIRING;
	if (in->sight == RULE_SIGHT_NA)
		return STATE_NA;
	if (in->sight == RULE_SIGHT_IDLE)
		return STATE_IDLE;
	if (is_blind(in))
		return STATE_UNKNOWN;
	return a->hold.seen == RULE_SEEN_BAD || a->hold.held_ns ? STATE_PENDING : STATE_OK;
}

void rule_alert_step(struct rule_alert *a, const struct rule_config *config, const struct rule_input *in,
		     uint64_t now_ns, struct rule_step *ret)
{
	struct rule_step s = { .prev_state = a->state };
	enum rule_state state;
	enum rule_edge edge;

	if (!a->started) {
		a->started = true;
		a->hold.last_ns = a->critical.last_ns = a->state_ns = now_ns;
		a->state = s.prev_state = STATE_UNKNOWN;
		a->severity = config->severity;
	}
	if (config->has_critical)
		hold_step(&a->critical, &config->critical_hold, critical_seen_of(in), now_ns);
	edge = hold_step(&a->hold, &config->hold, seen_of(&a->hold, config, in), now_ns);
	nodata_step(a, config, in, now_ns, &s);
	transitions(a, config, in, now_ns, edge, &s);
	severity_step(a, config, &s);
	a->idle = in->sight == RULE_SIGHT_IDLE;
	state = state_of(a, config, in);
	if (state != a->state)
		a->state_ns = now_ns;
	a->state = state;
	*ret = s;
}

bool rule_alert_wants(const struct rule_alert *a)
{
	return a->open && a->hold.firing && !a->idle;
}

void rule_alert_restart_holds(struct rule_alert *a, uint64_t now_ns)
{
	a->hold.held_ns = a->critical.held_ns = 0;
	a->hold.seen = a->critical.seen = RULE_SEEN_NOTHING;
	a->hold.last_ns = a->critical.last_ns = now_ns;
	a->hold.blind_ns = a->critical.blind_ns = 0;
}
