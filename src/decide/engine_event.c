/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine_event.c - one transition as a struct event that is complete in itself: identity, evidence, words. */
#include <stdio.h>
#include <string.h>

#include "engine_private.h"

void engine_copy(char *to, size_t size, const char *from)
{
	size_t i;

	for (i = 0; from[i] && i + 1 < size; i++)
		to[i] = (unsigned char)from[i] < 0x20 || from[i] == 0x7f ? '?' : from[i];
	to[i] = '\0';
}

static void fill_summary(struct event *ev, const char *text, const char *target)
{
	static const char mark[] = "{target}";
	char buf[MODEL_TEXT + SAMPLE_NAME_MAX];
	const char *at = strstr(text, mark);

	if (!at) {
		engine_copy(ev->summary, sizeof(ev->summary), text);
		return;
	}
	snprintf(buf, sizeof(buf), "%.*s%s%s", (int)(at - text), text, target, at + sizeof(mark) - 1);
	engine_copy(ev->summary, sizeof(ev->summary), buf);
}

static void fill_coverage(const struct engine *e, struct event *ev)
{
	size_t n = 0;

	for (uint32_t i = 0; i < e->sample->probe_count && i < SAMPLE_PROBES && n < sizeof(ev->coverage); i++) {
		const struct sample_probe *p = &e->sample->probe[i];

		n += (size_t)snprintf(ev->coverage + n, sizeof(ev->coverage) - n, "%s%s %s%s", i ? "; " : "", p->signal,
				      p->attached ? p->rung : "none", p->attached && !p->exact ? " inexact" : "");
	}
}

static void fill_hooks(const struct engine *e, const struct model_rule *r, struct event *ev)
{
	size_t n = 0;

	if (r->ladder >= 0)
		n += (size_t)snprintf(ev->hooks, sizeof(ev->hooks), "%s do", e->model->hook[r->ladder].name);
	for (int i = 0; i < r->notify_count && n < sizeof(ev->hooks); i++)
		n += (size_t)snprintf(ev->hooks + n, sizeof(ev->hooks) - n, "%s%s notify", n ? ", " : "",
				      e->model->hook[r->notify[i]].name);
	if (n && n + 16 < sizeof(ev->hooks) && e->model->mode != MODE_ACT)
		snprintf(ev->hooks + n, sizeof(ev->hooks) - n, " (%s)", model_mode_name(e->model->mode));
}

static const char *operator_text(enum expr_op_kind kind)
{
	switch (kind) {
	case EXPR_LT: return "<";
	case EXPR_LE: return "<=";
	case EXPR_GT: return ">";
	case EXPR_GE: return ">=";
	case EXPR_EQ: return "==";
	case EXPR_NE: return "!=";
	case EXPR_NUMBER: case EXPR_PARAM: case EXPR_TERM: case EXPR_KNOWN: case EXPR_OR: case EXPR_AND: case EXPR_NOT:
	case EXPR_ADD: case EXPR_SUB: case EXPR_MUL: case EXPR_DIV: case EXPR_NEG:
		break;
	}
	return "?";
}

static double over_arg(const struct expr *e, const struct expr_env *env, const struct expr_term *t)
{
	double arg = t->arg;

	if (t->arg_param >= 0)
		env->param(env->context, e->param[t->arg_param], &arg);
	return arg;
}

/* The comparisons of the rule's when, with their values now. text may be NULL. */
static uint8_t evidence_of(const struct engine *e, int slot, int rule, struct evidence ret[EVENT_EVIDENCE],
			   char *text, size_t size)
{
	const struct model_rule *r = &e->model->rule[rule];
	const struct engine_context context = { e, slot, e->slot[slot].profile };
	const struct expr_env env = engine_env(&context, r->samples);
	struct expr_comparison c[EVENT_EVIDENCE];
	const size_t count = expr_comparisons(&r->when, &env, c, EVENT_EVIDENCE);
	char value[32], threshold[32];
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		const double arg = over_arg(&r->when, &env, &c[i].term);
		const struct value v = env.term(env.context, &c[i].term, arg, r->samples);

		ret[i] = (struct evidence){ .known = v.why == VALUE_OK, .dim = expr_term_dim(&c[i].term) };
		ret[i].value = ret[i].known ? v.number : 0;
		expr_term_format(&c[i].term, arg, ret[i].term, sizeof(ret[i].term));
		if (!text || n >= size)
			continue;
		n += (size_t)snprintf(text + n, size - n, "%s%s %s %s %s", i ? "; " : "", ret[i].term,
				      ret[i].known ? units_format(v.number, ret[i].dim, value, sizeof(value)) : "unknown",
				      operator_text(c[i].op),
				      c[i].threshold_known ? units_format(c[i].threshold, ret[i].dim, threshold,
									  sizeof(threshold)) : "unknown");
	}
	return (uint8_t)count;
}

uint8_t engine_evidence(const struct engine *e, int slot, int rule, struct evidence ret[EVENT_EVIDENCE])
{
	return evidence_of(e, slot, rule, ret, NULL, 0);
}

void engine_why_text(const struct engine *e, const struct engine_cell *c, int rule, char *buf, size_t size)
{
	const char *signal = signal_table[c->missing_signal].name, *probe = signal_table[c->missing_signal].probe;

	buf[0] = '\0';
	switch (c->why) {
	case WHY_NONE:
		if (e->model->rule[rule].class == CLASS_COVERAGE && c->alert.open) {
			const int n = snprintf(buf, size, "not attached: ");

			if (!engine_missing_probes(e, buf + n, size - (size_t)n))
				buf[0] = '\0';
		}
		break;
	case WHY_NA:
		snprintf(buf, size, "does not apply: nothing of the kind was seen here");
		break;
	case WHY_WARMING:
		snprintf(buf, size, "warming up: the first window is not full yet");
		break;
	case WHY_GAP:
		snprintf(buf, size, "the window has a gap");
		break;
	case WHY_NO_PROCESS:
		snprintf(buf, size, "no process matched yet");
		break;
	case WHY_FEW:
		snprintf(buf, size, "too few samples: %llu of %llu", (unsigned long long)c->have,
			 (unsigned long long)c->need);
		break;
	case WHY_MISSING:
		snprintf(buf, size, "%s can not be read%s%s", signal, probe ? ": no probe for " : "", probe ? probe : "");
		break;
	case WHY_GONE:
		snprintf(buf, size, "its processes are gone");
		break;
	case WHY_QUIET:
		snprintf(buf, size, "no datagrams");
		break;
	}
}

static void prefix_text(struct event *ev, const char *prefix)
{
	char buf[sizeof(ev->evidence_text)];

	engine_copy(buf, sizeof(buf), ev->evidence_text);
	snprintf(ev->evidence_text, sizeof(ev->evidence_text), "%.200s%s%.300s", prefix, *buf ? "; " : "", buf);
}

/* Words that only some kinds have: "no data for 2min: ...", "54 more changes", the probes that are missing. */
static void fill_words(const struct engine *e, const struct engine_cell *c, int rule, struct event *ev)
{
	char why[96], buf[200], a[32], b[32];

	engine_why_text(e, c, rule, why, sizeof(why));
	if (ev->kind == EVENT_NODATA) {
		snprintf(buf, sizeof(buf), "no data since %s ago: %s",
			 units_format_ns(e->now_ns - c->alert.blind_since_ns, a, sizeof(a)), why);
		prefix_text(ev, buf);
	} else if (ev->kind == EVENT_SETTLED) {
		snprintf(buf, sizeof(buf), "flapping ended after %u more changes", c->alert.flap_count);
		if (c->alert.range_known)
			snprintf(buf, sizeof(buf), "flapping ended after %u more changes, value %s to %s",
				 c->alert.flap_count, units_format(c->alert.low, ev->dim, a, sizeof(a)),
				 units_format(c->alert.high, ev->dim, b, sizeof(b)));
		prefix_text(ev, buf);
	} else if (*why && e->model->rule[rule].class == CLASS_COVERAGE) {
		prefix_text(ev, why);
	}
}

static void fill_target(const struct engine *e, int slot, struct event *ev)
{
	const struct sample_target *t = &e->sample->target[slot];

	engine_copy(ev->target, sizeof(ev->target), e->slot[slot].name);
	if (!t->used || strcmp(t->name, e->slot[slot].name))
		return;		/* withdrawn: the slot is another's already */
	engine_copy(ev->unit, sizeof(ev->unit), t->unit);
	ev->pid_count = t->pid_count < 16 ? t->pid_count : 16;
	memcpy(ev->pids, t->pids, sizeof(ev->pids));
}

static void fill_numbers(const struct engine *e, int slot, const struct engine_cell *c, struct event *ev)
{
	const struct expr_term count = { .signal = SIGNAL_DWELL, .stat = STAT_COUNT,
					 .window_ns = SIGNAL_WINDOW_DEFAULT_NS, .arg_param = -1 };
	const struct value samples = values_read(e->values, slot, &count, 0, NULL);

	ev->value_known = c->value_known;
	ev->value = c->value_known ? c->value : 0;
	ev->threshold = c->threshold_known ? c->threshold : 0;
	ev->peak = c->peak_known ? c->peak : ev->value;
	ev->samples = samples.why == VALUE_OK && samples.number > 0 ? (uint64_t)samples.number : 0;
	ev->started_us = c->started_us;
	ev->duration_ns = c->alert.fired_ns ? e->now_ns - c->alert.fired_ns : 0;
}

void engine_event_fill(const struct engine *e, int slot, int rule, struct event *ev)
{
	const struct model_rule *r = &e->model->rule[rule];
	const struct engine_cell *c = &e->cell[slot][rule];

	engine_copy(ev->alert_id, sizeof(ev->alert_id), c->alert_id);
	engine_copy(ev->rule, sizeof(ev->rule), r->name);
	fill_target(e, slot, ev);
	ev->class = r->class;
	ev->severity = c->alert.severity;
	ev->state = c->alert.state;
	ev->prev_state = c->step.prev_state;
	fill_summary(ev, r->summary, ev->target);
	ev->evidence_count = evidence_of(e, slot, rule, ev->evidence, ev->evidence_text, sizeof(ev->evidence_text));
	ev->dim = ev->evidence_count ? ev->evidence[0].dim : UNIT_NONE;
	fill_numbers(e, slot, c, ev);
	fill_words(e, c, rule, ev);
	fill_coverage(e, ev);
	fill_hooks(e, r, ev);
	ev->exit_code = -1;
}

struct event *engine_emit(struct engine *e, enum event_kind kind, int slot, int rule, struct engine_out *out)
{
	struct event *ev;

	e->seq++;
	if (out->event_count == ENGINE_EVENTS) {
		out->event_dropped++;
		return NULL;
	}
	ev = &out->event[out->event_count++];
	memset(ev, 0, sizeof(*ev));
	ev->kind = kind;
	ev->seq = e->seq;
	ev->exit_code = -1;
	if (slot >= 0 && rule >= 0)
		engine_event_fill(e, slot, rule, ev);
	return ev;
}
