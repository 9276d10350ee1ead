/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "status_json.h"

/* A member of a signal's object. */
enum form { FORM_NS, FORM_COUNT, FORM_NUMBER };
struct member {
	const char *key;
	enum signal_stat stat;
	enum form form;
};

static const struct member latency_members[] = {
	{ "count", STAT_COUNT, FORM_COUNT }, { "rate", STAT_RATE, FORM_NUMBER }, { "mean_ns", STAT_MEAN, FORM_NS },
	{ "p50_ns", STAT_P50, FORM_NS },     { "p90_ns", STAT_P90, FORM_NS },	 { "p99_ns", STAT_P99, FORM_NS },
	{ "p999_ns", STAT_P999, FORM_NS },   { "max_ns", STAT_MAX, FORM_NS },
};
#define LATENCY_MEMBERS (sizeof(latency_members) / sizeof(latency_members[0]))

static bool ask(const struct engine *e, int slot, enum signal_id signal, enum signal_stat stat, double *ret)
{
	const struct value v = engine_value(e, slot, signal, stat, 0, 0);

	if (v.why != VALUE_OK)
		return false;
	*ret = v.number;
	return true;
}

static bool known(const struct engine *e, int slot, enum signal_id signal, enum signal_stat stat)
{
	double unused;

	return ask(e, slot, signal, stat, &unused);
}

/* Doubles from the engine to whole numbers; a tiny negative one from rounding is 0. */
static void put_number(struct jsonw *w, const char *key, enum form form, double number)
{
	if (form == FORM_NUMBER)
		jsonw_double(w, key, number);
	else if (number >= (double)JSONW_INT_MAX)
		jsonw_uint(w, key, JSONW_INT_MAX);
	else
		jsonw_uint(w, key, number > 0 ? (uint64_t)(number + 0.5) : 0);
}

struct source {
	struct jsonw *w;
	const struct engine *e;
	int slot;
};

static void put_stat(const struct source *s, enum signal_id signal, struct member m)
{
	double number;

	if (ask(s->e, s->slot, signal, m.stat, &number))
		put_number(s->w, m.key, m.form, number);
	else
		jsonw_null(s->w, m.key);
}

static void put_bare(const struct source *s, const char *key, enum signal_id signal, enum form form)
{
	put_stat(s, signal, (struct member){ key, STAT_BARE, form });
}

/* Whether anything at all is known of a distribution. */
static bool latency_known(const struct source *s, enum signal_id signal)
{
	size_t i;

	for (i = 0; i < LATENCY_MEMBERS; i++)
		if (known(s->e, s->slot, signal, latency_members[i].stat))
			return true;
	return false;
}

static void put_latency(const struct source *s, enum signal_id signal)
{
	size_t i;

	for (i = 0; i < LATENCY_MEMBERS; i++)
		put_stat(s, signal, latency_members[i]);
}

static void put_latency_object(const struct source *s, const char *key, enum signal_id signal)
{
	if (!latency_known(s, signal)) {
		jsonw_null(s->w, key);
		return;
	}
	jsonw_object(s->w, key);
	put_latency(s, signal);
	jsonw_object_end(s->w);
}

static void put_worst(const struct source *s, uint64_t tid)
{
	if (!known(s->e, s->slot, SIGNAL_DWELL_WORST, STAT_P99)) {
		jsonw_null(s->w, "worst");
		return;
	}
	jsonw_object(s->w, "worst");
	put_stat(s, SIGNAL_DWELL_WORST, (struct member){ "p99_ns", STAT_P99, FORM_NS });
	if (tid)
		jsonw_uint(s->w, "tid", tid);
	else
		jsonw_null(s->w, "tid");
	jsonw_object_end(s->w);
}

/* A reader that stopped has no dwell but an oldest datagram: then the object is there and its statistics are null. */
static void put_dwell(const struct source *s, const struct engine_target_view *t)
{
	if (!latency_known(s, SIGNAL_DWELL) && !known(s->e, s->slot, SIGNAL_DWELL_OLDEST, STAT_BARE) &&
	    !known(s->e, s->slot, SIGNAL_DWELL_WORST, STAT_P99)) {
		jsonw_null(s->w, "dwell");
		return;
	}
	jsonw_object(s->w, "dwell");
	put_latency(s, SIGNAL_DWELL);
	put_bare(s, "oldest_ns", SIGNAL_DWELL_OLDEST, FORM_NS);
	put_worst(s, t->worst_tid);
	jsonw_null(s->w, "share");
	jsonw_object_end(s->w);
}

static void put_runq(const struct source *s)
{
	if (!latency_known(s, SIGNAL_RUNQ)) {
		jsonw_null(s->w, "runq");
		return;
	}
	jsonw_object(s->w, "runq");
	put_latency(s, SIGNAL_RUNQ);
	jsonw_null(s->w, "by");
	jsonw_object_end(s->w);
}

/* A counter as {"rate","count"}, or only one of the two; null when neither is known. */
static void put_counter(const struct source *s, const char *key, enum signal_id signal)
{
	if (!known(s->e, s->slot, signal, STAT_RATE) && !known(s->e, s->slot, signal, STAT_COUNT)) {
		jsonw_null(s->w, key);
		return;
	}
	jsonw_object(s->w, key);
	put_stat(s, signal, (struct member){ "rate", STAT_RATE, FORM_NUMBER });
	put_stat(s, signal, (struct member){ "count", STAT_COUNT, FORM_COUNT });
	jsonw_object_end(s->w);
}

static void put_drops(const struct source *s)
{
	static const enum signal_id ids[] = { SIGNAL_DROPS_SERVER, SIGNAL_DROPS_NETWORK, SIGNAL_DROPS_RCVBUF };
	static const char *const keys[] = { "server", "network", "rcvbuf" };
	bool any = false;
	size_t i;

	for (i = 0; i < 3; i++)
		any |= known(s->e, s->slot, ids[i], STAT_RATE) || known(s->e, s->slot, ids[i], STAT_COUNT);
	if (!any) {
		jsonw_null(s->w, "drops");
		return;
	}
	jsonw_object(s->w, "drops");
	for (i = 0; i < 3; i++)
		put_counter(s, keys[i], ids[i]);
	jsonw_null(s->w, "reason");
	jsonw_object_end(s->w);
}

static void put_queue(const struct source *s, const struct sample_target *t)
{
	if (!known(s->e, s->slot, SIGNAL_QUEUE_FILL, STAT_BARE) &&
	    !known(s->e, s->slot, SIGNAL_QUEUE_RCVBUF, STAT_BARE) && !t->queued_known) {
		jsonw_null(s->w, "queue");
		return;
	}
	jsonw_object(s->w, "queue");
	put_bare(s, "fill", SIGNAL_QUEUE_FILL, FORM_NUMBER);
	put_bare(s, "rcvbuf_bytes", SIGNAL_QUEUE_RCVBUF, FORM_COUNT);
	if (t->rcvbuf_known)
		jsonw_bool(s->w, "set_by_application", t->rcvbuf_by_application);
	else
		jsonw_null(s->w, "set_by_application");
	if (t->queued_known && t->sockets)
		jsonw_uint(s->w, "queued", t->queued);
	else
		jsonw_null(s->w, "queued");
	jsonw_object_end(s->w);
}

static void put_rtp_count(const struct source *s, const char *key, enum signal_id signal)
{
	if (!known(s->e, s->slot, signal, STAT_COUNT)) {
		jsonw_null(s->w, key);
		return;
	}
	jsonw_object(s->w, key);
	put_stat(s, signal, (struct member){ "count", STAT_COUNT, FORM_COUNT });
	jsonw_object_end(s->w);
}

static void put_rtp(const struct source *s)
{
	static const enum signal_id ids[] = { SIGNAL_RTP_STREAMS, SIGNAL_RTP_LOSS, SIGNAL_RTP_LOSS_WORST,
					      SIGNAL_RTP_BAD_STREAMS, SIGNAL_RTP_LATE_STREAMS, SIGNAL_RTP_JITTER };
	static const char *const keys[] = { "streams", "loss", "loss_worst", "bad_streams", "late_streams", "jitter_ns" };
	static const enum form forms[] = { FORM_COUNT, FORM_NUMBER, FORM_NUMBER, FORM_NUMBER, FORM_NUMBER, FORM_NS };
	bool any = false;
	size_t i;

	for (i = 0; i < 6; i++)
		any |= known(s->e, s->slot, ids[i], STAT_BARE);
	if (!any) {
		jsonw_null(s->w, "rtp");
		return;
	}
	jsonw_object(s->w, "rtp");
	for (i = 0; i < 6; i++)
		put_bare(s, keys[i], ids[i], forms[i]);
	put_rtp_count(s, "reorder", SIGNAL_RTP_REORDER);
	put_rtp_count(s, "duplicates", SIGNAL_RTP_DUPLICATES);
	jsonw_object_end(s->w);
}

static void put_pids(struct jsonw *w, const struct sample_target *t)
{
	const uint32_t most = sizeof(t->pids) / sizeof(t->pids[0]);
	uint32_t i;

	jsonw_array(w, "pids");
	for (i = 0; i < t->pid_count && i < most; i++)
		jsonw_uint(w, NULL, t->pids[i]);
	jsonw_array_end(w);
	jsonw_uint(w, "pid_count", t->pid_count);
	jsonw_uint(w, "sockets", t->sockets);
	jsonw_null(w, "tcp_sockets_not_measured");
}

static void put_target(const struct source *s, const struct engine_target_view *t)
{
	const struct model *m = engine_model(s->e);
	uint8_t i;

	jsonw_object(s->w, NULL);
	jsonw_string(s->w, "name", t->sample->name);
	jsonw_string_or_null(s->w, "profile", t->profile);
	jsonw_string(s->w, "verdict", verdict_name(t->verdict));
	jsonw_array(s->w, "causes");
	for (i = 0; i < t->cause_count; i++)
		jsonw_string(s->w, NULL, m->rule[t->cause[i]].name);
	jsonw_array_end(s->w);
	jsonw_bool(s->w, "configured", t->sample->configured);
	jsonw_string_or_null(s->w, "unit", t->sample->unit);
	put_pids(s->w, t->sample);
	jsonw_object(s->w, "signals");
	put_dwell(s, t);
	put_runq(s);
	jsonw_null(s->w, "irq2app");
	put_drops(s);
	put_queue(s, t->sample);
	put_rtp(s);
	jsonw_null(s->w, "rtcp");
	jsonw_null(s->w, "cpu");
	jsonw_object_end(s->w);
	jsonw_object_end(s->w);
}

void status_json_targets(struct jsonw *w, const struct engine *e)
{
	struct engine_target_view t;
	int slot;

	jsonw_array(w, "targets");
	for (slot = 0; slot < SAMPLE_TARGETS; slot++)
		if (engine_target(e, slot, &t))
			put_target(&(struct source){ w, e, slot }, &t);
	jsonw_array_end(w);
}

void status_json_host(struct jsonw *w, const struct engine *e)
{
	const struct source s = { w, e, SAMPLE_HOST };

	jsonw_object(w, "host");
	jsonw_object(w, "softirq");
	put_latency_object(&s, "wait", SIGNAL_SOFTIRQ_WAIT);
	put_latency_object(&s, "run", SIGNAL_SOFTIRQ_RUN);
	jsonw_object_end(w);
	put_counter(&s, "squeezed", SIGNAL_HOST_SQUEEZED);
	put_counter(&s, "nic_drops", SIGNAL_HOST_NIC_DROPS);
	jsonw_object(w, "cpu");
	put_bare(&s, "busy", SIGNAL_HOST_CPU_BUSY, FORM_NUMBER);
	jsonw_object_end(w);
	put_bare(&s, "steal", SIGNAL_HOST_STEAL, FORM_NUMBER);
	jsonw_object_end(w);
}
