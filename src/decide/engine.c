/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine.c - the tick that joins windows, rules, verdicts and hooks; and the reload. */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_private.h"

void engine_out_begin(struct engine_out *out)
{
	out->event_count = out->event_dropped = 0;
	out->order_count = out->order_dropped = 0;
}

/* Most of a model is unused array places, all zero: their pages stay untouched in the copy. NULL: no memory. */
static struct model *model_copy(const struct model *m)
{
	static const char zero[512];
	const char *from = (const char *)m;
	struct model *c = calloc(1, sizeof(*c));

	for (size_t at = 0; c && at < sizeof(*m); at += sizeof(zero)) {
		const size_t n = sizeof(*m) - at < sizeof(zero) ? sizeof(*m) - at : sizeof(zero);

		if (memcmp(from + at, zero, n))
			memcpy((char *)c + at, from + at, n);
	}
	return c;
}

static void *cells_new(void)
{
	return calloc(SAMPLE_TARGETS, sizeof(struct engine_cell[MODEL_RULES]));
}

int engine_new(const struct model *m, const struct engine_setup *setup, struct engine **ret)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	engine_copy(e->setup.host, sizeof(e->setup.host), setup->host);
	engine_copy(e->setup.boot_id, sizeof(e->setup.boot_id), setup->boot_id);
	e->seq = setup->first_seq;
	e->verdict = VERDICT_UNKNOWN;
	e->model = model_copy(m);
	e->values = values_new(m);
	e->cell = cells_new();
	if (!e->model || !e->values || !e->cell) {
		engine_free(e);
		return -ENOMEM;
	}
	*ret = e;
	return 0;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	values_free(e->values);
	free(e->model);
	free(e->cell);
	free(e);
}

int engine_slot_find(const struct engine *e, const char *target)
{
	for (int i = 0; i < SAMPLE_TARGETS; i++)
		if (e->slot[i].used && !strcmp(e->slot[i].name, target))
			return i;
	return -1;
}

bool engine_applies(const struct engine *e, int rule, int slot)
{
	const struct model_rule *r = &e->model->rule[rule];

	if (r->class == CLASS_HOST || r->class == CLASS_COVERAGE)
		return slot == SAMPLE_HOST;
	if (slot == SAMPLE_HOST || slot == SAMPLE_SELF)
		return false;	/* the host is the sum of the others; its rules are those of class host */
	if (r->all_targets)
		return true;
	for (int i = 0; i < r->target_count; i++)
		if (!strcmp(r->target[i], e->slot[slot].name))
			return true;
	return false;
}

bool engine_alerts(const struct model_rule *r)
{
	return r->severity != SEVERITY_INFO || r->has_critical;
}

static struct value env_term(const void *context, const struct expr_term *term, double over_arg,
			     const uint32_t need_override[STAT_ID_COUNT])
{
	const struct engine_context *c = context;

	if (c->slot >= 0)
		return values_read(c->e->values, c->slot, term, over_arg, need_override);
	if (signal_table[term->signal].scope == SIGNAL_OF_TARGET)
		return (struct value){ .why = VALUE_NEVER };
	return values_read(c->e->values, SAMPLE_HOST, term, over_arg, need_override);
}

static bool env_param(const void *context, const char *name, double *ret_value)
{
	const struct engine_context *c = context;

	return model_param(c->e->model, c->profile, name, ret_value);
}

struct expr_env engine_env(const struct engine_context *c, const uint32_t *need_override)
{
	return (struct expr_env){ .context = c, .term = env_term, .param = env_param, .need_override = need_override };
}

/* The first window of a rule, after start or when a reload brought it, fires nothing. */
static void warm_up(struct engine *e)
{
	for (int i = 0; i < e->model->rule_count; i++)
		if (!e->warm_until_ns[i])
			e->warm_until_ns[i] = e->now_ns + expr_longest_window_ns(&e->model->rule[i].when) + 1;
}

/* Rules that a reload took away from a target: the alert is withdrawn and what was done for it is taken back. */
static void withdraw_strays(struct engine *e, struct engine_out *out)
{
	for (int slot = 0; slot < SAMPLE_TARGETS; slot++) {
		if (!e->slot[slot].used)
			continue;
		for (int rule = 0; rule < e->model->rule_count; rule++) {
			if (!e->cell[slot][rule].alert.open || engine_applies(e, rule, slot))
				continue;
			if (e->model->rule[rule].ladder >= 0)
				engine_machine_release(e, e->model->rule[rule].ladder, e->slot[slot].name);
			engine_withdraw(e, slot, rule, out);
		}
	}
}

void engine_tick(struct engine *e, const struct sample *s, struct engine_out *out)
{
	char unused[1];

	engine_out_begin(out);
	if (!e->seq)
		e->seq = s->wall_us / 1000;	/* numbers of a later start are higher, without anything to save */
	if (e->sample)
		withdraw_strays(e, out);
	engine_slots_follow(e, s, out);
	e->sample = s;
	e->now_ns = s->now_ns > e->now_ns ? s->now_ns : e->now_ns;
	e->wall_us = s->wall_us;
	warm_up(e);
	engine_slots_update(e, s);
	values_tick(e->values, s);
	values_set_missing(e->values, engine_missing_probes(e, unused, sizeof(unused)));
	engine_rules_step(e);
	engine_rules_emit(e, out);
	engine_hooks_step(e, out);
	engine_pages_step(e, out);
}

/* ---- reload ---- */

static bool rule_changed(const struct model_rule *a, const struct model_rule *b)
{
	return strcmp(a->when.text, b->when.text) || a->has_clear != b->has_clear ||
	       (a->has_clear && strcmp(a->clear.text, b->clear.text)) || a->has_critical != b->has_critical ||
	       (a->has_critical && strcmp(a->critical_when.text, b->critical_when.text));
}

/* Another rule of the next model still drives the hook of the old rule. */
static bool ladder_stays(const struct engine *e, int rule, const struct model *next)
{
	const char *hook = e->model->hook[e->model->rule[rule].ladder].name;

	for (int i = 0; i < next->rule_count; i++)
		if (next->rule[i].ladder >= 0 && !strcmp(next->hook[next->rule[i].ladder].name, hook))
			return true;
	return false;
}

static void withdraw_removed(struct engine *e, const struct model *next, struct engine_out *out)
{
	for (int rule = 0; rule < e->model->rule_count; rule++) {
		if (model_rule_find(next, e->model->rule[rule].name) >= 0)
			continue;
		for (int slot = 0; slot < SAMPLE_TARGETS; slot++) {
			if (!e->slot[slot].used || !e->cell[slot][rule].alert.open)
				continue;
			if (e->model->rule[rule].ladder >= 0 && !ladder_stays(e, rule, next))
				engine_machine_release(e, e->model->rule[rule].ladder, e->slot[slot].name);
			engine_withdraw(e, slot, rule, out);
		}
	}
}

static void carry_cells(struct engine *e, const struct model *next, struct engine_cell (*cell)[MODEL_RULES])
{
	uint64_t warm[MODEL_RULES] = { 0 };

	for (int i = 0; i < next->rule_count; i++) {
		const int old = model_rule_find(e->model, next->rule[i].name);

		if (old < 0)
			continue;
		warm[i] = e->warm_until_ns[old];
		for (int slot = 0; slot < SAMPLE_TARGETS; slot++) {
			if (!e->slot[slot].used)
				continue;
			cell[slot][i] = e->cell[slot][old];
			cell[slot][i].inhibited_count = 0;	/* these are indices of the old model */
			if (rule_changed(&next->rule[i], &e->model->rule[old]))
				rule_alert_restart_holds(&cell[slot][i].alert, e->now_ns);
		}
	}
	memcpy(e->warm_until_ns, warm, sizeof(warm));
}

/* What withdrawn alerts asked for names hooks of the old model. */
static void translate_orders(const struct model *old, const struct model *next, struct engine_out *out)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < out->order_count; i++) {
		struct order *o = &out->order[i];

		o->hook = model_hook_find(next, old->hook[o->hook].name);
		o->rule = o->rule < 0 ? -1 : model_rule_find(next, old->rule[o->rule].name);
		if (o->hook < 0)
			continue;
		if (kept != i)
			out->order[kept] = *o;
		kept++;
	}
	out->order_count = kept;
}

int engine_reload(struct engine *e, const struct model *m, struct engine_out *out)
{
	struct engine_cell (*cell)[MODEL_RULES] = cells_new();
	struct model *next = model_copy(m);

	engine_out_begin(out);
	if (!cell || !next || values_reload(e->values, m) < 0) {
		free(cell);
		free(next);
		return -ENOMEM;
	}
	withdraw_removed(e, next, out);
	engine_hooks_reload(e, next, out);
	translate_orders(e->model, next, out);
	carry_cells(e, next, cell);
	free(e->cell);
	free(e->model);
	e->cell = cell;
	e->model = next;
	if (e->sample) {
		engine_slots_update(e, e->sample);
		engine_verdicts(e);
	}
	return 0;
}
