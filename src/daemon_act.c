/* SPDX-License-Identifier: GPL-2.0-or-later */
/* daemon_act.c - what the engine decided is carried out: events to the journal, debts to the disk, hooks to the runner; and
 * their answers back to the engine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "act/journal_ids.h"
#include "daemon_private.h"

static int slot_of(const struct daemon *d, const char *target)
{
	for (int i = 0; i < SAMPLE_TARGETS; i++)
		if (d->sample->target[i].used && !strcmp(d->sample->target[i].name, target))
			return i;
	return -1;
}

/* decide/ knows no cgroups and ports; hooks and people want them. */
static void complete(const struct daemon *d, struct event *e)
{
	int slot = slot_of(d, e->target);

	if (slot < 0)
		return;
	sense_cgroup(d->sense, (unsigned int)slot, e->cgroup, sizeof(e->cgroup));
	sense_ports(d->sense, (unsigned int)slot, e->ports, sizeof(e->ports));
}

static void carry_out(struct daemon *d, struct engine_out *out, uint64_t now_ns, bool nested);

/* An answer to an order that failed at once may bring events and orders of its own: they are carried out after it. */
static void answer_now(struct daemon *d, struct engine_out *more, uint64_t now_ns)
{
	carry_out(d, more, now_ns, true);
	free(more);
}

static void order_run(struct daemon *d, struct order *o, bool nested)
{
	const struct model_hook *hook = &engine_model(d->engine)->hook[o->hook];
	const struct hook_request request = { .hook = hook->name, .target = o->target, .action = o->action,
		.seq = o->seq, .attempt = o->attempt, .timeout_ns = hook->timeout_ns, .event = &o->event };
	const struct run_result lost = { .exit_code = -1, .lost = true };
	struct engine_out *more;
	char why[80];
	int r;

	if (o->dry_run)
		return;		/* the hook-asked event has said so */
	complete(d, &o->event);
	r = hook_client_run(d->hooks, &request);
	if (r >= 0)
		return;
	more = nested ? NULL : calloc(1, sizeof(*more));
	snprintf(why, sizeof(why), "the runner could not be started: %s", strerror(-r));
	if (!more) {
		journal_say(d->journal, 3, NULL, "hook %s on %s: %s", hook->name, o->target, why);
		return;
	}
	engine_hook_result(d->engine, o->hook, o->target, o->seq, lost, why, daemon_now_ns(), more);
	answer_now(d, more, daemon_now_ns());
}

static void order_debt(struct daemon *d, const struct order *o, uint64_t now_ns, bool nested)
{
	const struct model *m = engine_model(d->engine);
	enum debt_kind kind = o->kind == ORDER_DEBT_WRITE ? DEBT_OWE : DEBT_PAID;
	struct engine_out *more;
	int r = -ENOTDIR;

	if (d->debts)
		r = debts_write(d->debts, kind, o->seq, m->hook[o->hook].name, o->target,
				o->rule >= 0 ? m->rule[o->rule].name : "", o->event.alert_id);
	if (r >= 0)
		return;
	more = kind == DEBT_OWE && !nested ? calloc(1, sizeof(*more)) : NULL;
	if (!more) {
		journal_say(d->journal, 3, NULL, "hook %s on %s: its %s debt could not be written (%s)",
			    m->hook[o->hook].name, o->target, kind == DEBT_OWE ? "new" : "settled", strerror(-r));
		return;
	}
	engine_debt_written(d->engine, o->hook, o->target, o->seq, r, now_ns, more);
	answer_now(d, more, now_ns);
}

static void carry_out(struct daemon *d, struct engine_out *out, uint64_t now_ns, bool nested)
{
	for (uint32_t i = 0; i < out->event_count; i++) {
		complete(d, &out->event[i]);
		journal_event(d->journal, &out->event[i]);
	}
	if (out->event_dropped || out->order_dropped)
		journal_say(d->journal, 3, NULL, "too much at once: %u events and %u orders were dropped",
			    out->event_dropped, out->order_dropped);
	for (uint32_t i = 0; i < out->order_count; i++) {
		if (out->order[i].kind == ORDER_RUN)
			order_run(d, &out->order[i], nested);
		else
			order_debt(d, &out->order[i], now_ns, nested);
	}
}

void daemon_carry_out(struct daemon *d, uint64_t now_ns)
{
	carry_out(d, d->out, now_ns, false);
}

void daemon_on_hook_done(void *userdata, const char *hook, const char *target, uint64_t seq, struct run_result result,
			 const char *last_line)
{
	struct daemon *d = userdata;
	int h = model_hook_find(engine_model(d->engine), hook);
	uint64_t now_ns = daemon_now_ns();

	if (h < 0)
		return;		/* a reload took it away; its debt was settled by then or stays on disk */
	engine_hook_result(d->engine, h, target, seq, result, last_line, now_ns, d->out);
	daemon_carry_out(d, now_ns);
}

void daemon_on_debt_found(void *userdata, uint64_t seq, const char *hook, const char *target, const char *rule,
			  const char *alert_id)
{
	const struct engine_debt debt = { .hook = hook, .target = target, .rule = rule, .alert_id = alert_id, .seq = seq };
	struct daemon *d = userdata;

	journal_say(d->journal, 5, JOURNAL_ID_DEBT_FOUND, "an undo is owed from before: hook %s on %s (rule %s, %s, seq %llu)", hook,
		    target, rule, alert_id, (unsigned long long)seq);
	engine_debt_restored(d->engine, &debt, daemon_now_ns());
}

void daemon_on_debt_written(void *userdata, enum debt_kind kind, uint64_t seq, const char *hook, const char *target,
			    int error)
{
	struct daemon *d = userdata;
	int h = model_hook_find(engine_model(d->engine), hook);
	uint64_t now_ns = daemon_now_ns();

	if (error < 0)
		journal_say(d->journal, 3, NULL, "debt of hook %s on %s could not be written to %s: %s", hook, target,
			    d->options.state_dir, strerror(-error));
	if (kind != DEBT_OWE || h < 0)
		return;
	engine_debt_written(d->engine, h, target, seq, error, now_ns, d->out);
	daemon_carry_out(d, now_ns);
}
