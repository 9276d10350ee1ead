/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine_hooks.c - from alerts to remedies: who wants which hook, and the orders that remedy.h's machines give.
 *
 * A debt has the sequence number of the hook-asked event that began it; each further run (retry, undo) gets a number of
 * its own, since a number runs once. What is owed is undone in every mode: taking back is not acting. */
#include <stdio.h>
#include <string.h>

#include "engine_private.h"

struct engine_machine *engine_machine_find(const struct engine *e, int hook, const char *target)
{
	for (int i = 0; i < ENGINE_MACHINES; i++)
		if (e->machine[i].used && e->machine[i].hook == hook && !strcmp(e->machine[i].target, target))
			return (struct engine_machine *)&e->machine[i];
	return NULL;
}

static bool machine_rests(const struct engine_machine *m)
{
	return m->remedy.phase == REMEDY_REST && !m->wanted && !m->remedy.after_ns;
}

struct engine_machine *engine_machine_get(struct engine *e, int hook, const char *target)
{
	struct engine_machine *m = engine_machine_find(e, hook, target);

	for (int i = 0; i < ENGINE_MACHINES && !m; i++)
		if (!e->machine[i].used)
			m = &e->machine[i];
	for (int i = 0; i < ENGINE_MACHINES && !m; i++)
		if (machine_rests(&e->machine[i]))
			m = &e->machine[i];
	if (!m || (m->used && m->hook == hook && !strcmp(m->target, target)))
		return m;
	memset(m, 0, sizeof(*m));
	m->used = true;
	m->hook = hook;
	m->rule = -1;
	engine_copy(m->target, sizeof(m->target), target);
	return m;
}

bool engine_remedy_works(const struct engine *e, int rule, int slot)
{
	const int hook = e->model->rule[rule].ladder;
	const struct engine_machine *m = hook < 0 ? NULL : engine_machine_find(e, hook, e->slot[slot].name);

	/* a do that still runs may well be what made it quiet */
	return m && (remedy_in_force(&m->remedy) || m->remedy.phase == REMEDY_DOING);
}

void engine_machine_release(struct engine *e, int hook, const char *target)
{
	struct engine_machine *m = engine_machine_find(e, hook, target);

	if (m)
		remedy_undo_by_hand(&m->remedy);
}

/* What the hook reads on its standard input: the alert, not the asking. */
void engine_machine_order(struct engine *e, struct engine_machine *m, struct order *o, const struct event *asked)
{
	const int slot = engine_slot_find(e, m->target);

	o->rule = m->rule;
	o->seq = m->run_seq;
	o->attempt = m->remedy.tries + 1U;
	engine_copy(o->why, sizeof(o->why), m->remedy.why);
	if (asked)
		o->event = *asked;
	else if (slot >= 0 && m->rule >= 0 && engine_applies(e, m->rule, slot))
		engine_event_fill(e, slot, m->rule, &o->event);
	o->event.kind = strcmp(o->action, "undo") ? EVENT_FIRE : EVENT_MITIGATED;
	o->event.seq = m->run_seq;
	engine_copy(o->event.target, sizeof(o->event.target), m->target);
	engine_copy(o->event.alert_id, sizeof(o->event.alert_id), m->alert_id);
}

/* The event "asked" and the order: to write the debt in phase DEBT, else to run. */
static void machine_ask(struct engine *e, struct engine_machine *m, const char *action, struct engine_out *out)
{
	struct event *ev = engine_hook_event(e, EVENT_HOOK_ASKED, m->hook, m->rule, m->target, out);
	const bool undo = !strcmp(action, "undo"), debt = m->remedy.phase == REMEDY_DEBT;
	const bool dry = e->model->mode == MODE_DRY_RUN && !undo;
	struct order *o;

	m->run_seq = e->seq;
	if (debt)
		m->debt_seq = e->seq;
	if (dry)
		snprintf(m->remedy.why, sizeof(m->remedy.why), "dry run, not started: the rule fires");
	if (ev) {
		/* what was owed keeps the alert that it was done for, also when the rule has fired anew since */
		if (m->alert_id[0])
			engine_copy(ev->alert_id, sizeof(ev->alert_id), m->alert_id);
		engine_copy(m->alert_id, sizeof(m->alert_id), ev->alert_id);
		engine_copy(ev->action, sizeof(ev->action), action);
		engine_copy(ev->result, sizeof(ev->result), m->remedy.why);
	}
	o = engine_order(out, debt ? ORDER_DEBT_WRITE : ORDER_RUN, m->hook, m->target);
	if (!o)
		return;
	engine_copy(o->action, sizeof(o->action), action);
	o->dry_run = dry;
	engine_machine_order(e, m, o, ev);
}

static void machine_debt(struct engine_machine *m, enum order_kind kind, struct engine_out *out)
{
	struct order *o = engine_order(out, kind, m->hook, m->target);

	if (!o)
		return;
	o->rule = m->rule;
	o->seq = m->debt_seq;
	o->attempt = 1;
	memcpy(o->action, kind == ORDER_DEBT_SETTLE ? "undo" : "do", kind == ORDER_DEBT_SETTLE ? 5 : 3);
	engine_copy(o->why, sizeof(o->why), m->remedy.why);
	engine_copy(o->event.alert_id, sizeof(o->event.alert_id), m->alert_id);
}

void engine_machine_obey(struct engine *e, struct engine_machine *m, enum remedy_order order, struct engine_out *out)
{
	switch (order) {
	case REMEDY_ORDER_NONE:
		break;
	case REMEDY_ORDER_DEBT:
		m->alert_id[0] = '\0';
		machine_ask(e, m, "do", out);
		break;
	case REMEDY_ORDER_DO:
		machine_ask(e, m, "do", out);
		break;
	case REMEDY_ORDER_UNDO:
		machine_ask(e, m, "undo", out);
		break;
	case REMEDY_ORDER_DEBT_CANCEL:
		machine_debt(m, ORDER_DEBT_CANCEL, out);
		break;
	case REMEDY_ORDER_DEBT_SETTLE:
		machine_debt(m, ORDER_DEBT_SETTLE, out);
		break;
	}
}

static enum tri undo_when(const struct engine *e, const struct engine_machine *m)
{
	const struct model_undo *undo = &e->model->hook[m->hook].undo;
	const int slot = engine_slot_find(e, m->target);
	const struct engine_context context = { e, slot, slot < 0 ? -1 : e->slot[slot].profile };
	const struct expr_env env = engine_env(&context, NULL);

	if (m->blind)
		return TRI_UNKNOWN;	/* idle counts towards undo, not seeing does not */
	return undo->has_when ? expr_eval(&undo->when, &env).truth : TRI_TRUE;
}

/* A destructive hook never runs for the network's fault unless the rule says so. */
static bool may_drive(const struct engine *e, const struct model_rule *r)
{
	return r->ladder >= 0 && engine_alerts(r) &&
	       (r->class != CLASS_NETWORK || r->allow_network || e->model->hook[r->ladder].kind != HOOK_DESTRUCTIVE);
}

static void collect_wishes(struct engine *e)
{
	for (int i = 0; i < ENGINE_MACHINES; i++)
		if (e->machine[i].used)
			e->machine[i].wanted = e->machine[i].frozen = e->machine[i].blind = false;
	for (uint32_t i = 0; i < e->pair_count; i++) {
		const int slot = e->pair[i].slot, rule = e->pair[i].rule;
		const struct model_rule *r = &e->model->rule[rule];
		const struct engine_cell *c = &e->cell[slot][rule];
		const bool wants = rule_alert_wants(&c->alert) && !c->inhibited;
		struct engine_machine *m;

		if (!may_drive(e, r))
			continue;
		m = wants ? engine_machine_get(e, r->ladder, e->slot[slot].name) :
			    engine_machine_find(e, r->ladder, e->slot[slot].name);
		if (!m)
			continue;
		if (wants && (!m->wanted || m->rule < 0))
			m->rule = rule;
		m->wanted |= wants;
		m->frozen |= c->alert.flapping;
		m->blind |= c->alert.blind_since_ns != 0;
	}
}

static void dry_step(struct engine *e, struct engine_machine *m, struct engine_out *out)
{
	if (m->wanted && !m->dry_told) {
		m->alert_id[0] = '\0';
		machine_ask(e, m, "do", out);
	}
	m->dry_told = m->wanted;
}

void engine_hooks_step(struct engine *e, struct engine_out *out)
{
	collect_wishes(e);
	for (int i = 0; i < ENGINE_MACHINES; i++) {
		struct engine_machine *m = &e->machine[i];
		const bool act = e->model->mode == MODE_ACT;

		if (!m->used || m->frozen || !engine_has_room(out))
			continue;
		if (e->model->mode == MODE_DRY_RUN && m->remedy.phase == REMEDY_REST)
			dry_step(e, m, out);
		engine_machine_obey(e, m, remedy_step(&m->remedy, &e->model->hook[m->hook].undo, act && m->wanted,
					       undo_when(e, m), e->now_ns), out);
	}
}
