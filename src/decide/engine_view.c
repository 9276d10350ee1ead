/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine_view.c - what status and metrics read of the engine. */
#include <stdio.h>
#include <string.h>

#include "engine_private.h"

enum verdict engine_verdict(const struct engine *e)
{
	return e->verdict;
}

bool engine_target(const struct engine *e, int slot, struct engine_target_view *ret)
{
	const struct engine_slot *s;
	struct engine_target_view v = { 0 };

	if (slot < 0 || slot >= SAMPLE_TARGETS || !e->sample || !e->slot[slot].used)
		return false;
	s = &e->slot[slot];
	v.sample = &e->sample->target[slot];
	v.profile = s->profile >= 0 ? e->model->profile[s->profile].name : "";
	v.verdict = s->verdict.verdict;
	for (size_t i = 0; i < s->verdict.cause_count && i < 8; i++)
		v.cause[v.cause_count++] = s->verdict.cause[i];
	v.worst_tid = values_worst_tid(e->values, slot, SIGNAL_WINDOW_DEFAULT_NS);
	*ret = v;
	return true;
}

bool engine_rule(const struct engine *e, uint32_t i, struct engine_rule_view *ret)
{
	struct engine_rule_view v = { 0 };
	const struct engine_cell *c;

	if (i >= e->pair_count)
		return false;
	v.rule = e->pair[i].rule;
	v.target = e->pair[i].slot;
	c = &e->cell[v.target][v.rule];
	v.state = c->alert.started ? c->alert.state : STATE_UNKNOWN;
	v.severity = c->alert.started ? c->alert.severity : e->model->rule[v.rule].severity;
	v.state_age_ns = c->alert.started ? e->now_ns - c->alert.state_ns : 0;
	for (int k = 0; k < c->inhibited_count; k++)
		v.inhibited_by[v.inhibited_count++] = c->inhibited_by[k];
	v.have = c->why == WHY_FEW ? c->have : 0;
	v.need = c->why == WHY_FEW ? c->need : 0;
	engine_why_text(e, c, v.rule, v.why, sizeof(v.why));
	v.evidence_count = engine_evidence(e, v.target, v.rule, v.evidence);
	v.alert_id = c->alert.open && c->announced ? c->alert_id : "";
	*ret = v;
	return true;
}

static void page_view(const struct engine_page *p, struct engine_hook_view *ret)
{
	*ret = (struct engine_hook_view){
		.hook = p->hook, .target = p->target, .last_result = p->last_result, .last_seq = p->run_seq, .why = "",
		.state = p->pending ? HOOK_WAITING : p->running ? HOOK_RUNNING : HOOK_IDLE,
	};
}

bool engine_hook(const struct engine *e, uint32_t i, struct engine_hook_view *ret)
{
	for (int k = 0; k < ENGINE_MACHINES; k++) {
		const struct engine_machine *m = &e->machine[k];

		if (!m->used || i--)
			continue;
		*ret = (struct engine_hook_view){
			.hook = m->hook, .target = m->target, .state = remedy_state(&m->remedy),
			.last_result = m->last_result, .last_seq = m->run_seq, .why = m->remedy.why,
		};
		return true;
	}
	for (int k = 0; k < ENGINE_PAGES; k++) {
		if (!e->page[k].used || i--)
			continue;
		page_view(&e->page[k], ret);
		return true;
	}
	return false;
}

struct value engine_value(const struct engine *e, int slot, enum signal_id signal, enum signal_stat stat, double arg,
			  uint64_t window_ns)
{
	const struct expr_term term = {
		.signal = signal, .stat = stat, .window_ns = window_ns ? window_ns : SIGNAL_WINDOW_DEFAULT_NS, .arg = arg,
		.arg_param = -1,
	};

	if (slot < 0 || slot >= SAMPLE_TARGETS || !e->sample)
		return (struct value){ .why = VALUE_GAP };
	return values_read(e->values, slot, &term, arg, NULL);
}

const uint32_t *engine_hist(const struct engine *e, int slot, enum signal_id signal, uint64_t window_ns)
{
	if (slot < 0 || slot >= SAMPLE_TARGETS || !e->sample)
		return NULL;
	return values_hist(e->values, slot, signal, window_ns ? window_ns : SIGNAL_WINDOW_DEFAULT_NS);
}

const struct model *engine_model(const struct engine *e)
{
	return e->model;
}

const struct sample *engine_sample(const struct engine *e)
{
	return e->sample;
}
