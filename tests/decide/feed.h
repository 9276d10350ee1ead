/* SPDX-License-Identifier: GPL-2.0-or-later */
/* feed.h - samples by hand for the tests of the engine: a world with a clock, targets and cumulative counters, and a
 * model built rule by rule. One world per test (Criterion forks for each). */
#ifndef TEST_FEED_H
#define TEST_FEED_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "decide/engine.h"

#define SEC 1000000000ULL
#define MS 1000000ULL
#define US 1000ULL
#define TICK (SEC / 4)
#define SFU SAMPLE_FIRST_FREE
#define DNS (SAMPLE_FIRST_FREE + 1)
#define ALL_HOST_BITS ((1U << SAMPLE_HOST_COUNTER_COUNT) - 1)

struct feed {
	struct model model;
	struct sample sample;
	struct engine *engine;
	struct engine_out out;
	bool answers;			/* act/ is there: debts get written, hooks exit with exit_code */
	int exit_code;
	uint64_t step_ns;		/* between two ticks; 0 = TICK. Long quiet stretches may take 1 s */
	unsigned int count[EVENT_KIND_COUNT], total;
	unsigned int runs, dry_runs, debts, cancelled, settled;
	struct event last[EVENT_KIND_COUNT];
	struct order last_run, last_debt;
	char log[4096];			/* "fire/r1/sfu ..." in order */
};
static struct feed feed;

/* ---- model ---- */

static inline void feed_expr(struct expr *e, const char *text)
{
	struct expr_error error;

	cr_assert_eq(expr_parse(text, e, &error), 0, "%s:%u: %s", text, error.column, error.text);
}

static inline void feed_windows(const struct expr *e)
{
	struct model *m = &feed.model;

	for (int i = 0; i < e->op_count; i++) {
		int k = 0;

		if (e->op[i].kind != EXPR_TERM && e->op[i].kind != EXPR_KNOWN)
			continue;
		while (k < m->window_count && m->window_ns[k] != e->op[i].term.window_ns)
			k++;
		if (k == m->window_count && k < SIGNAL_WINDOWS_MAX)
			m->window_ns[m->window_count++] = e->op[i].term.window_ns;
	}
}

static inline struct model_profile *feed_profile(const char *name, double slow, double clear, double bad)
{
	struct model_profile *p = &feed.model.profile[feed.model.profile_count++];

	snprintf(p->name, sizeof(p->name), "%s", name);
	p->param[0] = (struct model_param){ .name = "slow", .value = slow, .dim = UNIT_TIME };
	p->param[1] = (struct model_param){ .name = "clear", .value = clear, .dim = UNIT_TIME };
	p->param[2] = (struct model_param){ .name = "bad", .value = bad, .dim = UNIT_TIME };
	p->param_count = 3;
	p->at_most = SEVERITY_CRITICAL;
	return p;
}

/* An empty model: profiles, one configured target "sfu" of profile media; mode observe. */
static inline void feed_model(void)
{
	struct model *m = &feed.model;

	memset(m, 0, sizeof(*m));
	m->tick_ns = TICK;
	m->window_ns[0] = SIGNAL_WINDOW_DEFAULT_NS;
	m->window_count = 1;
	feed_profile("media", 10e6, 5e6, 30e6);
	feed_profile("generic", 100e6, 50e6, 300e6)->at_most = SEVERITY_WARNING;
	m->target_count = 1;
	strcpy(m->target[0].name, "sfu");
	strcpy(m->target[0].profile, "media");
}

static inline struct model_rule *feed_rule(const char *name, enum rule_class class, const char *when, const char *clear)
{
	struct model_rule *r = &feed.model.rule[feed.model.rule_count++];

	memset(r, 0, sizeof(*r));
	strcpy(r->name, name);
	snprintf(r->summary, sizeof(r->summary), "%s on {target}", name);
	r->class = class;
	r->severity = SEVERITY_WARNING;
	r->all_targets = true;
	r->ladder = -1;
	r->for_ns = 5 * SEC;
	r->clear_for_ns = 15 * SEC;
	feed_expr(&r->when, when);
	feed_windows(&r->when);
	r->has_clear = clear != NULL;
	if (clear) {
		feed_expr(&r->clear, clear);
		feed_windows(&r->clear);
	}
	return r;
}

static inline void feed_critical(struct model_rule *r, const char *when, uint64_t for_ns)
{
	r->has_critical = true;
	r->critical_for_ns = for_ns;
	feed_expr(&r->critical_when, when);
	feed_windows(&r->critical_when);
}

static inline int feed_hook(const char *name, enum hook_kind kind, uint64_t after_ns, const char *undo_when)
{
	struct model_hook *h = &feed.model.hook[feed.model.hook_count];

	memset(h, 0, sizeof(*h));
	strcpy(h->name, name);
	h->kind = kind;
	h->timeout_ns = 10 * SEC;
	h->undo.given = after_ns > 0;
	h->undo.after_ns = after_ns;
	h->undo.has_when = undo_when != NULL;
	if (undo_when) {
		feed_expr(&h->undo.when, undo_when);
		feed_windows(&h->undo.when);
	}
	return feed.model.hook_count++;
}

/* The shipped reader-starved, with its numbers. */
static inline struct model_rule *feed_starved(void)
{
	struct model_rule *r = feed_rule("reader-starved", CLASS_SERVER,
		"(dwell.p99 > $slow or dwell.worst.p99 > $slow) and dwell.max[3s] > $slow"
		" and runq.max[3s] > $slow / 2 and runq.max[3s] > dwell.max[3s] / 4",
		"dwell.worst.p99[3s] < $clear or dwell.max[3s] < $clear");

	feed_critical(r, "(dwell.p99 > $bad or dwell.worst.p99 > $bad) and dwell.max[3s] > $bad", 15 * SEC);
	strcpy(r->inhibits[r->inhibit_count++], "reader-slow");
	return r;
}

/* ---- sample ---- */

static inline struct sample_target *feed_target(int slot, const char *name)
{
	struct sample_target *t = &feed.sample.target[slot];

	t->used = t->ever_seen = true;
	t->model_target = -1;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->counter_known = (1U << SAMPLE_COUNTER_COUNT) - 1;
	t->dist[SAMPLE_DIST_DWELL].known = t->dist[SAMPLE_DIST_RUNQ].known = true;
	t->dist[SAMPLE_DIST_DWELL].moved = t->dist[SAMPLE_DIST_RUNQ].moved = true;
	t->oldest_known = t->queued_known = t->fill_known = true;
	if (slot >= SFU) {
		t->pid_count = 1;
		t->pids[0] = 4711;
		t->sockets = 1;
	}
	return t;
}

static inline struct sample_target *feed_sfu(void)
{
	struct sample_target *t = feed_target(SFU, "sfu");

	t->configured = true;
	t->model_target = 0;
	strcpy(t->unit, "sfu.service");
	return t;
}

static inline void feed_probe(const char *signal, bool attached)
{
	struct sample *s = &feed.sample;
	uint32_t i = 0;

	while (i < s->probe_count && strcmp(s->probe[i].signal, signal))
		i++;
	if (i == s->probe_count)
		s->probe_count++;
	strcpy(s->probe[i].signal, signal);
	strcpy(s->probe[i].rung, attached ? "fentry" : "none");
	s->probe[i].attached = s->probe[i].exact = attached;
}

/* Call after the model is built: target sfu, host, other, self; all probes; the engine; mode act answers by itself. */
static inline void feed_start(void)
{
	const struct engine_setup setup = { .host = "media1", .boot_id = "boot" };
	struct sample *s = &feed.sample;

	s->now_ns = 1000 * SEC;
	s->wall_us = 1800000000000000ULL;
	s->host_known = ALL_HOST_BITS;
	s->streams_known = true;
	s->host_dist[SAMPLE_HOST_SOFTIRQ_WAIT].known = s->host_dist[SAMPLE_HOST_SOFTIRQ_RUN].known = true;
	feed_target(SAMPLE_HOST, "host");
	feed_target(SAMPLE_OTHER, "other");
	feed_target(SAMPLE_SELF, "self");
	feed_sfu();
	feed_probe("dwell", true);
	feed_probe("runq", true);
	feed_probe("softirq", true);
	feed_probe("drops", true);
	feed_probe("rtp", true);
	feed.answers = true;
	cr_assert_eq(engine_new(&feed.model, &setup, &feed.engine), 0);
	s->gap = true;		/* first read */
}

static inline void feed_dwell(int slot, uint64_t ns, unsigned int n)
{
	struct sample_target *t = &feed.sample.target[slot];

	t->dist[SAMPLE_DIST_DWELL].slot[hist_slot(ns)] += n;
	t->counter[SAMPLE_ENQUEUED] += n;
	t->counter[SAMPLE_READ] += n;
}

static inline void feed_runq(int slot, uint64_t ns, unsigned int n)
{
	feed.sample.target[slot].dist[SAMPLE_DIST_RUNQ].slot[hist_slot(ns)] += n;
}

/* ---- what comes out ---- */

static inline void feed_note_events(const struct engine_out *out)
{
	cr_assert_eq(out->event_dropped, 0);
	cr_assert_eq(out->order_dropped, 0);
	for (uint32_t i = 0; i < out->event_count; i++) {
		const struct event *ev = &out->event[i];
		const size_t n = strlen(feed.log);

		feed.count[ev->kind]++;
		feed.total++;
		feed.last[ev->kind] = *ev;
		snprintf(feed.log + n, sizeof(feed.log) - n, "%s%s/%s/%s", n ? " " : "", event_kind_name(ev->kind),
			 ev->rule, ev->target);
	}
}

static inline void feed_answer(const struct engine_out *given);

static inline void feed_note(const struct engine_out *given)
{
	static struct engine_out copy[3];	/* an answer brings orders that are answered: do, its result, a settle */
	static int depth;
	struct engine_out *out = &copy[depth];

	cr_assert_lt(depth, 3);
	*out = *given;
	feed_note_events(out);
	depth++;
	feed_answer(out);
	depth--;
}

static inline void feed_answer(const struct engine_out *out)
{
	static struct engine_out next;

	for (uint32_t i = 0; i < out->order_count; i++) {
		const struct order *o = &out->order[i];

		feed.dry_runs += o->dry_run;
		feed.runs += o->kind == ORDER_RUN && !o->dry_run;
		feed.debts += o->kind == ORDER_DEBT_WRITE && !o->dry_run;
		feed.cancelled += o->kind == ORDER_DEBT_CANCEL;
		feed.settled += o->kind == ORDER_DEBT_SETTLE;
		if (o->kind == ORDER_RUN)
			feed.last_run = *o;
		else
			feed.last_debt = *o;
		if (!feed.answers || o->dry_run || o->kind == ORDER_DEBT_CANCEL || o->kind == ORDER_DEBT_SETTLE)
			continue;
		if (o->kind == ORDER_DEBT_WRITE)
			engine_debt_written(feed.engine, o->hook, o->target, o->seq, 0, feed.sample.now_ns, &next);
		else
			engine_hook_result(feed.engine, o->hook, o->target, o->seq,
					   (struct run_result){ .exit_code = feed.exit_code }, "ok",
					   feed.sample.now_ns, &next);
		feed_note(&next);
	}
}

static inline uint64_t feed_step(void)
{
	return feed.step_ns ? feed.step_ns : TICK;
}

static inline int feed_ticks(double seconds)
{
	return (int)(seconds * 1e9 / (double)feed_step() + 0.5);
}

/* One tick, 250 ms after the last one. */
static inline void feed_tick(void)
{
	engine_tick(feed.engine, &feed.sample, &feed.out);
	feed.sample.gap = false;
	feed_note(&feed.out);
	feed.sample.now_ns += feed_step();
	feed.sample.wall_us += feed_step() / 1000;
	feed.sample.host_counter[SAMPLE_HOST_CPU_TOTAL] += 100;
	feed.sample.host_counter[SAMPLE_HOST_NIC_PACKETS] += 100;
}

/* seconds of traffic on a slot: pps packets of dwell ns, the reader's run-queue wait with it. */
static inline void feed_load(int slot, double seconds, uint64_t dwell_ns, uint64_t runq_ns, unsigned int pps)
{
	for (int i = 0; i < feed_ticks(seconds); i++) {
		feed_dwell(slot, dwell_ns, (unsigned int)(pps * feed_step() / SEC));
		feed_runq(slot, runq_ns, (unsigned int)(pps * feed_step() / SEC));
		feed_tick();
	}
}

static inline void feed_fine(double seconds)
{
	feed_load(SFU, seconds, 50 * US, 20 * US, 1000);
}

static inline void feed_slow(double seconds)
{
	feed_load(SFU, seconds, 40 * MS, 38 * MS, 1000);
}

static inline void feed_silence(double seconds)
{
	for (int i = 0; i < feed_ticks(seconds); i++)
		feed_tick();
}

/* A rule on a slot; the test fails if it is not listed. */
static inline struct engine_rule_view feed_view(const char *rule, int slot)
{
	struct engine_rule_view v;

	for (uint32_t i = 0; engine_rule(feed.engine, i, &v); i++)
		if (v.target == slot && !strcmp(engine_model(feed.engine)->rule[v.rule].name, rule))
			return v;
	cr_assert_fail("rule %s is not evaluated on slot %d", rule, slot);
	return v;
}

static inline enum rule_state feed_state(const char *rule, int slot)
{
	return feed_view(rule, slot).state;
}

static inline enum verdict feed_verdict(int slot)
{
	struct engine_target_view v;

	cr_assert(engine_target(feed.engine, slot, &v));
	return v.verdict;
}

static inline void feed_reload(void)
{
	static struct engine_out out;

	cr_assert_eq(engine_reload(feed.engine, &feed.model, &out), 0);
	feed_note(&out);
}
#endif
