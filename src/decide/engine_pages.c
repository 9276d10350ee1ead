/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine_pages.c - orders and hook events in general, and page hooks: beside the ladder, one run per (hook, target), the
 * newest wish waits. */
#include <stdio.h>
#include <string.h>

#include "engine_private.h"

struct order *engine_order(struct engine_out *out, enum order_kind kind, int hook, const char *target)
{
	struct order *o;

	if (out->order_count == ENGINE_ORDERS) {
		out->order_dropped++;
		return NULL;
	}
	o = &out->order[out->order_count++];
	memset(o, 0, sizeof(*o));
	o->kind = kind;
	o->hook = hook;
	o->rule = -1;
	engine_copy(o->target, sizeof(o->target), target);
	return o;
}

bool engine_has_room(const struct engine_out *out)
{
	return out->order_count + ENGINE_ORDER_ROOM <= ENGINE_ORDERS &&
	       out->event_count + ENGINE_ORDER_ROOM <= ENGINE_EVENTS;
}

/* A hook event: about the rule on the target where both are known, else only about the hook. */
struct event *engine_hook_event(struct engine *e, enum event_kind kind, int hook, int rule, const char *target,
				struct engine_out *out)
{
	const int slot = engine_slot_find(e, target);
	const bool known = slot >= 0 && rule >= 0 && engine_applies(e, rule, slot);
	struct event *ev = engine_emit(e, kind, known ? slot : -1, known ? rule : -1, out);

	if (!ev)
		return NULL;
	if (!known) {
		engine_copy(ev->target, sizeof(ev->target), target);
		if (rule >= 0) {
			engine_copy(ev->rule, sizeof(ev->rule), e->model->rule[rule].name);
			ev->class = e->model->rule[rule].class;
			ev->severity = e->model->rule[rule].severity;
		}
	}
	engine_copy(ev->hook, sizeof(ev->hook), e->model->hook[hook].name);
	return ev;
}

/* ---- page hooks ---- */

static struct engine_page *page_get(struct engine *e, int hook, const char *target)
{
	struct engine_page *free_page = NULL;

	for (int i = 0; i < ENGINE_PAGES; i++) {
		struct engine_page *p = &e->page[i];

		if (p->used && p->hook == hook && !strcmp(p->target, target))
			return p;
		/* one that rests may give its place away: it holds nothing but its last result */
		if (!free_page && (!p->used || (!p->running && !p->pending)))
			free_page = p;
	}
	if (!free_page)
		return NULL;
	memset(free_page, 0, sizeof(*free_page));
	free_page->used = true;
	free_page->hook = hook;
	engine_copy(free_page->target, sizeof(free_page->target), target);
	return free_page;
}

static void page_start(struct engine *e, struct engine_page *p, const struct event *about, struct engine_out *out)
{
	const struct event cause = *about;	/* *about may lie in *out or in *p */
	struct event *ev;
	struct order *o;

	if (!engine_has_room(out)) {
		p->event = cause;
		p->pending = true;
		return;
	}
	ev = engine_hook_event(e, EVENT_HOOK_ASKED, p->hook, p->rule, p->target, out);
	o = engine_order(out, ORDER_RUN, p->hook, p->target);
	if (!ev || !o)
		return;
	engine_copy(ev->alert_id, sizeof(ev->alert_id), cause.alert_id);
	memcpy(ev->action, "notify", sizeof("notify"));
	snprintf(ev->result, sizeof(ev->result), "%s%s", e->model->mode == MODE_DRY_RUN ? "dry run, not started: " : "",
		 event_kind_name(cause.kind));
	o->rule = p->rule;
	memcpy(o->action, "notify", sizeof("notify"));
	o->seq = ev->seq;
	o->attempt = 1;
	o->dry_run = e->model->mode == MODE_DRY_RUN;
	snprintf(o->why, sizeof(o->why), "notify: %s", event_kind_name(cause.kind));
	o->event = cause;
	p->pending = false;
	p->running = !o->dry_run;
	p->run_seq = o->seq;
}

void engine_page_event(struct engine *e, int rule, const struct event *ev, struct engine_out *out)
{
	const struct model_rule *r = &e->model->rule[rule];

	if (e->model->mode == MODE_OBSERVE)
		return;
	for (int i = 0; i < r->notify_count; i++) {
		const int hook = r->notify[i];
		const uint32_t on = e->model->hook[hook].on ? e->model->hook[hook].on :
				    1U << EVENT_FIRE | 1U << EVENT_RESOLVE;
		struct engine_page *p;

		if (!(on & (1U << ev->kind)))
			continue;
		p = page_get(e, hook, ev->target);
		if (!p) {
			out->order_dropped++;
			continue;
		}
		p->rule = rule;
		if (p->running) {
			p->event = *ev;
			p->pending = true;
		} else {
			page_start(e, p, ev, out);
		}
	}
}

void engine_pages_step(struct engine *e, struct engine_out *out)
{
	for (int i = 0; i < ENGINE_PAGES; i++) {
		struct engine_page *p = &e->page[i];

		if (p->used && p->pending && !p->running && e->model->mode != MODE_OBSERVE)
			page_start(e, p, &p->event, out);
	}
}

bool engine_page_result(struct engine *e, const struct engine_answer *a, struct engine_out *out)
{
	struct engine_page *p = NULL;
	struct event *ev;

	for (int i = 0; i < ENGINE_PAGES && !p; i++)
		if (e->page[i].used && e->page[i].running && e->page[i].run_seq == a->seq && e->page[i].hook == a->hook &&
		    !strcmp(e->page[i].target, a->target))
			p = &e->page[i];
	if (!p)
		return false;
	p->running = false;
	engine_copy(p->last_result, sizeof(p->last_result), a->text);
	ev = engine_hook_event(e, a->result.exit_code == 0 ? EVENT_HOOK_DONE : EVENT_HOOK_FAILED, p->hook, p->rule,
			       p->target, out);
	if (ev) {
		memcpy(ev->action, "notify", sizeof("notify"));
		engine_copy(ev->result, sizeof(ev->result), a->text);
		ev->exit_code = a->result.exit_code;
		ev->signal = a->result.signal;
	}
	if (p->pending)
		page_start(e, p, &p->event, out);
	return true;
}
