/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine_rules.c - one tick of the rules: every rule of every target, then inhibition, then verdicts, then events. In
 * this order, so that an inhibited alert never slips out between (PITFALLS: evaluate all, inhibit, emit). */
#include <string.h>
#include <stdio.h>

#include "engine_private.h"

/* ---- who needs what ---- */

static bool reads_target(const struct expr *e)
{
	for (uint16_t i = 0; i < e->op_count; i++)
		if ((e->op[i].kind == EXPR_TERM || e->op[i].kind == EXPR_KNOWN) &&
		    signal_table[e->op[i].term.signal].scope == SIGNAL_OF_TARGET)
			return true;
	return false;
}

/* ---- one rule on one target ---- */

/* From the evaluation of when to what the rule sees. */
static enum rule_sight sight_of_result(const struct engine_slot *slot, struct engine_cell *c,
				       const struct expr_result *r)
{
	c->have = c->need = 0;
	c->missing_signal = r->missing_signal;
	if (r->na) {
		c->why = WHY_NA;
		return RULE_SIGHT_NA;
	}
	if (r->truth != TRI_UNKNOWN)
		return RULE_SIGHT_TRUTH;
	if (r->few) {
		c->have = r->have;
		c->need = r->need;
		c->why = WHY_FEW;
		/* few, and what there is is fine: known not to be slow. None at all and nothing waits: the same. */
		if (r->lenient == TRI_FALSE)
			return RULE_SIGHT_IDLE;
		if (r->have == 0 && r->lenient == TRI_UNKNOWN && !r->missing && !r->gap && slot->queue_empty)
			return RULE_SIGHT_IDLE;
	}
	if (r->missing)
		c->why = WHY_MISSING;
	else if (r->gap)
		c->why = WHY_GAP;
	else if (!r->few)
		c->why = WHY_NA;	/* a sum of things that were never there, or a division by zero */
	return r->gap && !r->missing && !r->few ? RULE_SIGHT_GAP : RULE_SIGHT_UNKNOWN;
}

/* What is known before any expression is looked at; TRUTH: go on. */
static enum rule_sight sight_before(const struct engine *e, int slot, int rule, enum engine_why *ret_why)
{
	const struct sample_target *t = &e->sample->target[slot];
	const bool of_target = reads_target(&e->model->rule[rule].when);

	if (slot >= SAMPLE_FIRST_FREE && of_target && t->configured && !t->ever_seen) {
		*ret_why = WHY_NO_PROCESS;
		return RULE_SIGHT_UNKNOWN;
	}
	if (e->sample->gap) {
		*ret_why = WHY_GAP;
		return RULE_SIGHT_GAP;
	}
	if (slot >= SAMPLE_FIRST_FREE && of_target && t->ever_seen && t->pid_count == 0) {
		*ret_why = WHY_GONE;
		return RULE_SIGHT_IDLE;
	}
	return RULE_SIGHT_TRUTH;
}

static void note_value(const struct engine *e, const struct expr_env *env, int rule, struct engine_cell *c)
{
	const struct expr *when = &e->model->rule[rule].when;
	struct expr_comparison first;
	struct value v;
	double arg;

	c->value_known = c->threshold_known = false;
	if (!expr_comparisons(when, env, &first, 1))
		return;
	arg = first.term.arg;
	if (first.term.arg_param >= 0)
		env->param(env->context, when->param[first.term.arg_param], &arg);
	v = env->term(env->context, &first.term, arg, env->need_override);
	c->threshold = first.threshold;
	c->threshold_known = first.threshold_known;
	c->value_known = v.why == VALUE_OK;
	if (!c->value_known)
		return;
	c->value = v.number;
	/* the peak of a rule that fires below its threshold is its lowest value */
	const bool lower = first.op == EXPR_LT || first.op == EXPR_LE;

	if (c->alert.open && (!c->peak_known || (lower ? c->value < c->peak : c->value > c->peak))) {
		c->peak = c->value;
		c->peak_known = true;
	}
}

/* An alert that is open is blind too when only its end can't be read: another term may make "when" false meanwhile. */
static enum rule_sight sight_of_end(struct engine_cell *c, const struct expr_result *clear)
{
	if (clear->missing) {
		c->why = WHY_MISSING;
		c->missing_signal = clear->missing_signal;
		return RULE_SIGHT_UNKNOWN;
	}
	if (clear->gap) {
		c->why = WHY_GAP;
		return RULE_SIGHT_GAP;
	}
	return RULE_SIGHT_TRUTH;
}

/* The rule's expressions on this target, to what the state machine wants. */
static struct rule_input rule_look(struct engine *e, int slot, int rule)
{
	const struct model_rule *r = &e->model->rule[rule];
	struct engine_cell *c = &e->cell[slot][rule];
	const struct engine_context context = { e, slot, e->slot[slot].profile };
	const struct expr_env env = engine_env(&context, r->samples);
	struct rule_input in = { .when = TRI_UNKNOWN, .clear = TRI_UNKNOWN, .critical = TRI_FALSE };
	struct expr_result result, clear;

	c->why = WHY_NONE;
	note_value(e, &env, rule, c);
	in.value_known = c->value_known;
	in.value = c->value;
	in.in_force = engine_remedy_works(e, rule, slot);
	in.sight = sight_before(e, slot, rule, &c->why);
	if (in.sight != RULE_SIGHT_TRUTH)
		return in;
	result = expr_eval(&r->when, &env);
	in.sight = sight_of_result(&e->slot[slot], c, &result);
	if (in.sight != RULE_SIGHT_NA && reads_target(&r->when) && engine_slot_quiet(e, slot)) {
		c->why = WHY_QUIET;
		in.sight = RULE_SIGHT_IDLE;
	}
	/* no transition to firing from the first window: it may hold what happened before we looked */
	if (e->now_ns < e->warm_until_ns[rule] && in.sight != RULE_SIGHT_NA) {
		c->why = WHY_WARMING;
		in.sight = RULE_SIGHT_GAP;
	}
	in.when = result.truth;
	in.clear = in.when == TRI_FALSE ? TRI_TRUE : in.when == TRI_TRUE ? TRI_FALSE : TRI_UNKNOWN;
	if (r->has_clear && in.sight == RULE_SIGHT_TRUTH) {
		clear = expr_eval(&r->clear, &env);
		/* when is known to be false; a short clear window may then make do with few samples */
		in.clear = clear.truth == TRI_UNKNOWN && clear.few ? clear.lenient : clear.truth;
		if (c->alert.open && in.when == TRI_FALSE && in.clear == TRI_UNKNOWN)
			in.sight = sight_of_end(c, &clear);
	}
	if (r->has_critical && in.sight == RULE_SIGHT_TRUTH)
		in.critical = expr_eval(&r->critical_when, &env).truth;
	return in;
}

static struct rule_config rule_config_of(const struct engine *e, int slot, int rule)
{
	const struct model_rule *r = &e->model->rule[rule];

	return (struct rule_config){
		.hold = { r->for_ns, r->clear_for_ns },
		.critical_hold = { r->critical_for_ns, r->clear_for_ns },
		.nodata = r->nodata, .severity = r->severity, .at_most = e->slot[slot].at_most,
		.has_critical = r->has_critical,
	};
}

static void alert_begin(struct engine *e, int slot, int rule)
{
	struct engine_cell *c = &e->cell[slot][rule];

	c->started_us = e->wall_us;
	c->announced = false;
	c->peak_known = c->value_known;
	c->peak = c->value;
	/* the parts are cut so that the start, which makes it unique, always fits */
	snprintf(c->alert_id, sizeof(c->alert_id), "%.63s-%.63s-%.100s-%llu", e->setup.host, e->model->rule[rule].name,
		 e->slot[slot].name, (unsigned long long)c->started_us);
}

/* ---- inhibition ---- */

static bool fires(const struct engine_cell *c)
{
	return c->alert.state == STATE_FIRING || c->alert.state == STATE_FLAPPING;
}

static bool names(const struct model_rule *by, const char *rule)
{
	for (int i = 0; i < by->inhibit_count; i++)
		if (!strcmp(by->inhibits[i], rule))
			return true;
	return false;
}

/* by inhibits rule; of two that name each other the first one wins. */
static bool inhibits(const struct model *m, int by, int rule)
{
	return by != rule && names(&m->rule[by], m->rule[rule].name) &&
	       !(rule < by && names(&m->rule[rule], m->rule[by].name));
}

static void inhibit(struct engine *e, int slot, int rule)
{
	struct engine_cell *c = &e->cell[slot][rule];

	c->inhibited_count = 0;
	for (int by = 0; by < e->model->rule_count; by++) {
		const bool on_host = e->model->rule[by].class == CLASS_HOST;
		const int where = on_host ? SAMPLE_HOST : slot;

		if (!inhibits(e->model, by, rule) || !e->slot[where].used || !engine_applies(e, by, where) ||
		    !fires(&e->cell[where][by]))
			continue;
		if (c->inhibited_count < 4)
			c->inhibited_by[c->inhibited_count++] = (int16_t)by;
	}
	c->inhibited = c->inhibited_count > 0;
}

static bool any_in(const struct verdict_rule *rule, size_t count, enum rule_state state)
{
	for (size_t i = 0; i < count; i++)
		if (rule[i].state == state)
			return true;
	return false;
}

/* Between ok and idle the traffic decides, not which terms happened to have enough samples: too few packets for a
 * percentile are idle, however fine the few are, and a busy target is ok though one of its threads reads little. */
static enum verdict ok_or_idle(const struct engine *e, int slot, const struct verdict_rule *rule, size_t n)
{
	const enum verdict verdict = e->slot[slot].verdict.verdict;
	const struct expr_term count = { .signal = SIGNAL_DWELL, .stat = STAT_COUNT,
					 .window_ns = SIGNAL_WINDOW_DEFAULT_NS, .arg_param = -1 };
	const struct value read = values_read(e->values, slot, &count, 0, NULL);

	if ((verdict != VERDICT_OK && verdict != VERDICT_IDLE) || read.why != VALUE_OK)
		return verdict;
	if (read.number >= signal_stats[STAT_P99].need)
		return any_in(rule, n, STATE_OK) ? VERDICT_OK : verdict;	/* all idle: its processes are gone */
	return any_in(rule, n, STATE_PENDING) || !e->slot[slot].queue_empty ? verdict : VERDICT_IDLE;
}

void engine_verdicts(struct engine *e)
{
	enum verdict all[SAMPLE_TARGETS];
	struct verdict_rule rule[MODEL_RULES];
	size_t targets = 0;
	uint32_t at = 0;

	for (int slot = 0; slot < SAMPLE_TARGETS; slot++) {
		size_t n = 0;

		if (!e->slot[slot].used)
			continue;
		for (; at < e->pair_count && e->pair[at].slot == slot; at++) {
			const int r = e->pair[at].rule;
			const struct engine_cell *c = &e->cell[slot][r];

			rule[n++] = (struct verdict_rule){ r, e->model->rule[r].class, c->alert.severity,
							   c->alert.state, c->inhibited };
		}
		e->slot[slot].verdict = verdict_of_target(rule, n);
		e->slot[slot].verdict.verdict = ok_or_idle(e, slot, rule, n);
		if (slot == SAMPLE_HOST && n == 0 && engine_slot_quiet(e, slot))
			e->slot[slot].verdict.verdict = VERDICT_IDLE;
		if (slot != SAMPLE_SELF && (slot != SAMPLE_OTHER || n > 0))
			all[targets++] = e->slot[slot].verdict.verdict;
	}
	e->verdict = verdict_of_host(all, targets);
}

void engine_rules_step(struct engine *e)
{
	for (uint32_t i = 0; i < e->pair_count; i++) {
		const int slot = e->pair[i].slot, rule = e->pair[i].rule;
		struct engine_cell *c = &e->cell[slot][rule];
		const struct rule_config config = rule_config_of(e, slot, rule);
		const struct rule_input in = rule_look(e, slot, rule);
		const bool was_open = c->alert.open;

		rule_alert_step(&c->alert, &config, &in, e->now_ns, &c->step);
		if (c->alert.open && !was_open)
			alert_begin(e, slot, rule);
	}
	for (uint32_t i = 0; i < e->pair_count; i++)
		inhibit(e, e->pair[i].slot, e->pair[i].rule);
	engine_verdicts(e);
}

static bool silent(const struct engine *e, const struct engine_cell *c, int rule, enum event_kind kind)
{
	if (!engine_alerts(&e->model->rule[rule]))
		return true;
	if (kind == EVENT_FIRE || kind == EVENT_FLAPPING)
		return c->inhibited;
	if (kind == EVENT_RESOLVE || kind == EVENT_SETTLED)
		return !c->announced;
	return c->inhibited || !c->announced;
}

static void emit(struct engine *e, int slot, int rule, enum event_kind kind, struct engine_out *out)
{
	struct engine_cell *c = &e->cell[slot][rule];
	const struct event *ev;

	if (silent(e, c, rule, kind))
		return;
	if (kind == EVENT_FIRE || kind == EVENT_FLAPPING)
		c->announced = true;
	ev = engine_emit(e, kind, slot, rule, out);
	if (ev)
		engine_page_event(e, rule, ev, out);
}

void engine_rules_emit(struct engine *e, struct engine_out *out)
{
	for (uint32_t i = 0; i < e->pair_count; i++) {
		const int slot = e->pair[i].slot, rule = e->pair[i].rule;
		struct engine_cell *c = &e->cell[slot][rule];

		for (int k = 0; k < c->step.event_count; k++)
			emit(e, slot, rule, c->step.event[k], out);
		c->step.event_count = 0;
		/* what inhibited it is over, and it is still bad, not just on its way to clear: now it is told */
		if (fires(c) && !c->announced && !c->inhibited && c->alert.hold.seen == RULE_SEEN_BAD)
			emit(e, slot, rule, c->alert.flapping ? EVENT_FLAPPING : EVENT_FIRE, out);
		if (!c->alert.open && c->alert_id[0]) {
			c->alert_id[0] = '\0';
			c->announced = c->peak_known = false;
		}
	}
}

void engine_withdraw(struct engine *e, int slot, int rule, struct engine_out *out)
{
	struct engine_cell *c = &e->cell[slot][rule];

	c->step.prev_state = c->alert.state;
	c->alert.state = STATE_WITHDRAWN;
	if (c->alert.open && c->announced) {
		c->inhibited = false;	/* what was told is taken back, whatever hides it now */
		emit(e, slot, rule, EVENT_WITHDRAW, out);
	}
	memset(c, 0, sizeof(*c));
}
