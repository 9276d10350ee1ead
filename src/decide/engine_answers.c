/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine_answers.c - what comes back from act/: debts written, runs ended, debts found at start, undo by hand; and what
 * a reload does to hooks under way. */
#include <stdio.h>
#include <string.h>

#include "engine_private.h"

static void clock_to(struct engine *e, uint64_t now_ns)
{
	if (now_ns > e->now_ns)
		e->now_ns = now_ns;
}

/* The result of a remedy's run, to the journal and to page hooks that want to know. */
static void tell(struct engine *e, const struct engine_machine *m, enum event_kind kind,
		 const struct engine_answer *a, struct engine_out *out)
{
	struct event *ev = engine_hook_event(e, kind, m->hook, m->rule, m->target, out);
	const bool undo = m->remedy.phase == REMEDY_UNDOING;

	if (!ev)
		return;
	if (m->alert_id[0])
		engine_copy(ev->alert_id, sizeof(ev->alert_id), m->alert_id);
	memcpy(ev->action, undo ? "undo" : "do", undo ? 5 : 3);
	engine_copy(ev->result, sizeof(ev->result), a->text);
	ev->exit_code = a->result.exit_code;
	ev->signal = a->result.signal;
	if (m->rule >= 0)
		engine_page_event(e, m->rule, ev, out);
}

void engine_debt_written(struct engine *e, int hook, const char *target, uint64_t seq, int error, uint64_t now_ns,
			 struct engine_out *out)
{
	struct engine_answer a = { hook, target, seq, { .exit_code = -1 }, NULL };
	struct engine_machine *m = engine_machine_find(e, hook, target);
	enum remedy_order order;
	struct order *o;

	engine_out_begin(out);
	if (!m || m->debt_seq != seq || m->remedy.phase != REMEDY_DEBT)
		return;
	clock_to(e, now_ns);
	/* the rule is looked at again: it may have gone quiet while the line was written */
	m->remedy.wanted = m->remedy.wanted && m->wanted && e->model->mode == MODE_ACT;
	order = remedy_debt_written(&m->remedy, error, e->now_ns);
	if (order == REMEDY_ORDER_DO) {
		/* asked when the debt was; it runs with the same number */
		o = engine_order(out, ORDER_RUN, hook, m->target);
		memcpy(o->action, "do", sizeof("do"));
		m->run_seq = m->debt_seq;
		engine_machine_order(e, m, o, NULL);
		return;
	}
	a.text = m->remedy.why;
	tell(e, m, EVENT_HOOK_FAILED, &a, out);
	engine_machine_obey(e, m, order, out);
}

void engine_hook_result(struct engine *e, int hook, const char *target, uint64_t seq, struct run_result result,
			const char *last_line, uint64_t now_ns, struct engine_out *out)
{
	const struct engine_answer a = { hook, target, seq, result, last_line ? last_line : "" };
	struct engine_machine *m = engine_machine_find(e, hook, target);
	bool done;

	engine_out_begin(out);
	clock_to(e, now_ns);
	if (engine_page_result(e, &a, out) || !m || m->run_seq != seq ||
	    (m->remedy.phase != REMEDY_DOING && m->remedy.phase != REMEDY_UNDOING))
		return;
	engine_copy(m->last_result, sizeof(m->last_result), a.text);
	done = !result.signal && !result.timeout && !result.lost && (result.exit_code == 0 || result.exit_code == 80);
	tell(e, m, done ? EVENT_HOOK_DONE : EVENT_HOOK_FAILED, &a, out);
	engine_machine_obey(e, m, remedy_result(&m->remedy, &e->model->hook[hook].undo, result, e->now_ns), out);
}

void engine_debt_restored(struct engine *e, const struct engine_debt *debt, uint64_t now_ns)
{
	const int hook = model_hook_find(e->model, debt->hook);
	struct engine_machine *m = hook < 0 ? NULL : engine_machine_get(e, hook, debt->target);

	if (debt->seq > e->seq)
		e->seq = debt->seq;
	if (!m)
		return;
	m->rule = debt->rule ? model_rule_find(e->model, debt->rule) : -1;
	m->debt_seq = debt->seq;
	engine_copy(m->alert_id, sizeof(m->alert_id), debt->alert_id ? debt->alert_id : "");
	remedy_restore(&m->remedy, now_ns);
}

void engine_debt_restore(struct engine *e, const char *hook, const char *target, const char *rule, uint64_t now_ns)
{
	const struct engine_debt debt = { hook, target, rule, NULL, 0 };

	engine_debt_restored(e, &debt, now_ns);
}

int engine_undo(struct engine *e, const char *hook, const char *target, uint64_t now_ns, struct engine_out *out)
{
	int count = 0;

	engine_out_begin(out);
	clock_to(e, now_ns);
	for (int i = 0; i < ENGINE_MACHINES; i++) {
		struct engine_machine *m = &e->machine[i];

		if (!m->used || (hook && strcmp(hook, e->model->hook[m->hook].name)) ||
		    (target && strcmp(target, m->target)) || remedy_undo_by_hand(&m->remedy) < 0)
			continue;
		count++;
		if (engine_has_room(out))	/* else the next tick starts it */
			engine_machine_obey(e, m, remedy_step(&m->remedy, &e->model->hook[m->hook].undo,
							      m->remedy.wanted, TRI_TRUE, e->now_ns), out);
	}
	return count;
}

/* Still owed by a hook that the new configuration does not have: it can not be run any more, so it is said once. */
static void tell_lost(struct engine *e, const struct engine_machine *m, struct engine_out *out)
{
	struct event *ev;

	if (m->remedy.phase == REMEDY_REST || m->remedy.phase == REMEDY_REFUSED)
		return;
	ev = engine_hook_event(e, EVENT_HOOK_FAILED, m->hook, m->rule, m->target, out);
	if (!ev)
		return;
	memcpy(ev->action, "undo", sizeof("undo"));
	engine_copy(ev->result, sizeof(ev->result),
		    "its undo is owed, but the hook is no longer configured: put it back, or undo by hand");
}

/* Indices of the running model become those of the next one. */
void engine_hooks_reload(struct engine *e, const struct model *next, struct engine_out *out)
{
	for (int i = 0; i < ENGINE_MACHINES; i++) {
		struct engine_machine *m = &e->machine[i];

		if (!m->used)
			continue;
		const int hook = model_hook_find(next, e->model->hook[m->hook].name);

		if (hook < 0) {
			tell_lost(e, m, out);
			memset(m, 0, sizeof(*m));
			continue;
		}
		m->hook = hook;
		if (m->rule >= 0)
			m->rule = model_rule_find(next, e->model->rule[m->rule].name);
	}
	for (int i = 0; i < ENGINE_PAGES; i++) {
		struct engine_page *p = &e->page[i];

		if (!p->used)
			continue;
		p->hook = model_hook_find(next, e->model->hook[p->hook].name);
		if (p->rule >= 0)
			p->rule = model_rule_find(next, e->model->rule[p->rule].name);
		if (p->hook < 0)
			memset(p, 0, sizeof(*p));
	}
}
