/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prometheus text format. What is not known has no sample. Latencies come twice: as a histogram since the probe was
 * attached (cumulative, so that servers can rate() and add hosts up), and as statistics of the window, which are what
 * the rules see. */
#include "status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jsonw.h"

#define NAME_MAX_LENGTH 96
#define OCTAVES (HIST_MAX_SHIFT - HIST_MIN_SHIFT)

struct out {
	char *buf;
	size_t size, length;
	bool full;
	const struct engine *e;
	/* the family being written; its head goes out with its first sample */
	char family[NAME_MAX_LENGTH + 8];
	const char *type, *help;
	bool headed;
};

__attribute__((format(printf, 2, 3))) static void put(struct out *o, const char *format, ...)
{
	va_list ap;
	int n;

	if (o->full)
		return;
	va_start(ap, format);
	n = vsnprintf(o->buf + o->length, o->size - o->length, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= o->size - o->length)
		o->full = true;
	else
		o->length += (size_t)n;
}

/* A label value, with what the format and a terminal cannot bear replaced. Returns buf. */
static const char *escape(const char *text, char buf[4 * SAMPLE_NAME_MAX])
{
	size_t n, used = 0;

	for (; *text && used + 8 < 4 * SAMPLE_NAME_MAX; text += n ? n : 1) {
		const unsigned char c = (unsigned char)*text;

		n = jsonw_utf8_length(text);
		if (c == '\\' || c == '"') {
			buf[used++] = '\\';
			buf[used++] = (char)c;
		} else if (c == '\n') {
			buf[used++] = '\\';
			buf[used++] = 'n';
		} else if (n == 0 || c < 0x20 || c == 0x7f) {
			buf[used++] = '?';
		} else {
			memcpy(buf + used, text, n);
			used += n;
		}
	}
	buf[used] = '\0';
	return buf;
}

static void family(struct out *o, const char *type, const char *name, const char *help)
{
	snprintf(o->family, sizeof(o->family), "dwelld_%s", name);
	o->type = type;
	o->help = help;
	o->headed = false;
}

static void head(struct out *o)
{
	if (o->headed)
		return;
	put(o, "# HELP %s %s\n# TYPE %s %s\n", o->family, o->help, o->family, o->type);
	o->headed = true;
}

/* labels: "" or a{}-less list such as target="x". %.17g would print noise; 9 digits are more than any of it has. */
static void sample_value(struct out *o, const char *labels, double value)
{
	if (!__builtin_isfinite(value))
		return;
	head(o);
	put(o, "%s%s%s%s %.9g\n", o->family, labels[0] ? "{" : "", labels, labels[0] ? "}" : "", value);
}

static void sample_count(struct out *o, const char *labels, uint64_t value)
{
	head(o);
	put(o, "%s%s%s%s %llu\n", o->family, labels[0] ? "{" : "", labels, labels[0] ? "}" : "",
	    (unsigned long long)value);
}

#define LABELS (4 * SAMPLE_NAME_MAX + 160)

/* "" for a host signal, else target="name". false: the slot is not used. */
static bool labels_of(const struct out *o, enum signal_id signal, int slot, char labels[LABELS])
{
	struct engine_target_view t;
	char name[4 * SAMPLE_NAME_MAX];

	labels[0] = '\0';
	if (signal_table[signal].scope == SIGNAL_OF_HOST)
		return slot == SAMPLE_HOST;
	if (!engine_target(o->e, slot, &t))
		return false;
	snprintf(labels, LABELS, "target=\"%s\"", escape(t.sample->name, name));
	return true;
}

/* "host.cpu.busy" and "_ratio" to "host_cpu_busy_ratio". */
static void name_of(enum signal_id signal, const char *suffix, char name[NAME_MAX_LENGTH])
{
	char *c;

	snprintf(name, NAME_MAX_LENGTH, "%s%s", signal_table[signal].name, suffix);
	for (c = name; *c; c++)
		if (*c == '.')
			*c = '_';
}

/* ---- histograms since attach ---- */

static const struct sample_hist *hist_of(const struct out *o, enum signal_id signal, int slot)
{
	const struct sample *s = engine_sample(o->e);

	if (signal == SIGNAL_DWELL)
		return &s->target[slot].dist[SAMPLE_DIST_DWELL];
	if (signal == SIGNAL_RUNQ)
		return &s->target[slot].dist[SAMPLE_DIST_RUNQ];
	if (signal == SIGNAL_SOFTIRQ_WAIT)
		return &s->host_dist[SAMPLE_HOST_SOFTIRQ_WAIT];
	if (signal == SIGNAL_SOFTIRQ_RUN)
		return &s->host_dist[SAMPLE_HOST_SOFTIRQ_RUN];
	return NULL;
}

static void histogram(struct out *o, const struct sample_hist *h, const char *labels)
{
	const char *comma = labels[0] ? "," : "";
	uint64_t count = h->slot[0];
	double sum = (double)count * (double)hist_midpoint(0);
	unsigned int octave, i, slot = 1;

	head(o);
	for (octave = 0;; octave++) {
		put(o, "%s_bucket{%s%sle=\"%.9g\"} %llu\n", o->family, labels, comma,
		    (double)(1ULL << (HIST_MIN_SHIFT + octave)) / 1e9, (unsigned long long)count);
		if (octave == OCTAVES)
			break;
		for (i = 0; i < 1U << HIST_SUB_SHIFT; i++, slot++) {
			count += h->slot[slot];
			sum += (double)h->slot[slot] * (double)hist_midpoint(slot);
		}
	}
	count += h->slot[HIST_SLOTS - 1];
	sum += (double)h->slot[HIST_SLOTS - 1] * (double)hist_midpoint(HIST_SLOTS - 1);
	put(o, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", o->family, labels, comma, (unsigned long long)count);
	put(o, "%s_sum%s%s%s %.9g\n", o->family, labels[0] ? "{" : "", labels, labels[0] ? "}" : "", sum / 1e9);
	put(o, "%s_count%s%s%s %llu\n", o->family, labels[0] ? "{" : "", labels, labels[0] ? "}" : "",
	    (unsigned long long)count);
}

static void histograms(struct out *o, enum signal_id signal)
{
	char name[NAME_MAX_LENGTH], labels[LABELS];
	const struct sample_hist *h;
	int slot;

	name_of(signal, "_seconds", name);
	family(o, "histogram", name, signal_table[signal].help);
	for (slot = 0; slot < SAMPLE_TARGETS; slot++) {
		h = hist_of(o, signal, slot);
		if (h && h->known && labels_of(o, signal, slot, labels))
			histogram(o, h, labels);
	}
}

/* ---- the window ---- */

static void window_stats(struct out *o, enum signal_id signal)
{
	static const enum signal_stat stats[] = { STAT_P50, STAT_P90, STAT_P99, STAT_P999, STAT_MAX, STAT_MEAN };
	char name[NAME_MAX_LENGTH], labels[LABELS];
	struct value v;
	size_t i, n;
	int slot;

	name_of(signal, "_window_seconds", name);
	family(o, "gauge", name, signal_table[signal].help);
	for (slot = 0; slot < SAMPLE_TARGETS; slot++) {
		if (!labels_of(o, signal, slot, labels))
			continue;
		n = strlen(labels);
		for (i = 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
			if (!(signal_table[signal].stats & 1U << stats[i]))
				continue;
			v = engine_value(o->e, slot, signal, stats[i], 0, 0);
			snprintf(labels + n, LABELS - n, "%sstat=\"%s\"", n ? "," : "", signal_stats[stats[i]].name);
			if (v.why == VALUE_OK)
				sample_value(o, labels, v.number / 1e9);
		}
	}
}

static const char *suffix_of(enum unit_dim dim)
{
	switch (dim) {
	case UNIT_TIME:
		return "_seconds";
	case UNIT_RATIO:
		return "_ratio";
	case UNIT_BYTES:
		return "_bytes";
	case UNIT_RATE:
		return "_per_second";
	case UNIT_NONE:
		return "";
	}
	return "";
}

static void bare(struct out *o, enum signal_id signal)
{
	const enum unit_dim dim = signal_table[signal].dim;
	char name[NAME_MAX_LENGTH], labels[LABELS];
	struct value v;
	int slot;

	name_of(signal, suffix_of(dim), name);
	family(o, "gauge", name, signal_table[signal].help);
	for (slot = 0; slot < SAMPLE_TARGETS; slot++) {
		if (!labels_of(o, signal, slot, labels))
			continue;
		v = engine_value(o->e, slot, signal, STAT_BARE, 0, 0);
		if (v.why == VALUE_OK)
			sample_value(o, labels, dim == UNIT_TIME ? v.number / 1e9 : v.number);
	}
}

/* ---- counters since attach or boot ---- */

static const struct { enum signal_id signal; int counter; } counters[] = {
	{ SIGNAL_DROPS_SERVER, SAMPLE_DROPS_SERVER },	  { SIGNAL_DROPS_NETWORK, SAMPLE_DROPS_NETWORK },
	{ SIGNAL_DROPS_RCVBUF, SAMPLE_DROPS_RCVBUF },	  { SIGNAL_RTP_REORDER, SAMPLE_RTP_REORDER },
	{ SIGNAL_RTP_DUPLICATES, SAMPLE_RTP_DUPLICATES }, { SIGNAL_HOST_NIC_DROPS, SAMPLE_HOST_NIC_DROPS },
	{ SIGNAL_HOST_SQUEEZED, SAMPLE_HOST_SQUEEZED } };

static bool counter_of(const struct sample *s, int slot, size_t i, uint64_t *ret)
{
	const bool host = signal_table[counters[i].signal].scope == SIGNAL_OF_HOST;
	const uint32_t known = host ? s->host_known : s->target[slot].counter_known;

	if (!(known & 1U << counters[i].counter))
		return false;
	*ret = host ? s->host_counter[counters[i].counter] : s->target[slot].counter[counters[i].counter];
	return true;
}

static void counter(struct out *o, enum signal_id signal)
{
	char name[NAME_MAX_LENGTH], labels[LABELS];
	uint64_t value;
	size_t i;
	int slot;

	name_of(signal, "_total", name);
	family(o, "counter", name, signal_table[signal].help);
	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		for (slot = 0; counters[i].signal == signal && slot < SAMPLE_TARGETS; slot++)
			if (labels_of(o, signal, slot, labels) && counter_of(engine_sample(o->e), slot, i, &value))
				sample_count(o, labels, value);
}

static void signals(struct out *o)
{
	int id;

	for (id = 0; id < SIGNAL_ID_COUNT; id++) {
		const enum signal_id signal = (enum signal_id)id;

		if (signal_table[id].kind == SIGNAL_COUNTER) {
			counter(o, signal);
		} else if (signal_table[id].stats & 1U << STAT_BARE) {
			bare(o, signal);
		} else {
			histograms(o, signal);
			window_stats(o, signal);
		}
	}
}

/* ---- what the daemon concluded ---- */

static void verdicts(struct out *o)
{
	static const enum verdict all[] = { VERDICT_IDLE, VERDICT_OK, VERDICT_UNKNOWN, VERDICT_NETWORK, VERDICT_SERVER,
					    VERDICT_MIXED };
	char labels[LABELS], name[4 * SAMPLE_NAME_MAX];
	struct engine_target_view t;
	size_t i;
	int slot;

	family(o, "gauge", "verdict", "1 for the verdict that holds for the target now, 0 for the others");
	for (slot = 0; slot < SAMPLE_TARGETS; slot++) {
		if (!engine_target(o->e, slot, &t))
			continue;
		escape(t.sample->name, name);
		for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
			snprintf(labels, sizeof(labels), "target=\"%s\",verdict=\"%s\"", name, verdict_name(all[i]));
			sample_count(o, labels, t.verdict == all[i]);
		}
	}
	family(o, "gauge", "host_verdict", "1 for the verdict over all targets now, 0 for the others");
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(labels, sizeof(labels), "verdict=\"%s\"", verdict_name(all[i]));
		sample_count(o, labels, engine_verdict(o->e) == all[i]);
	}
}

static void rules(struct out *o)
{
	const struct model *m = engine_model(o->e);
	char labels[LABELS], name[4 * SAMPLE_NAME_MAX];
	struct engine_target_view t;
	struct engine_rule_view r;
	uint32_t i;

	family(o, "gauge", "rule_firing", "1 while the rule fires for the target, 0 while it is known not to");
	for (i = 0; engine_rule(o->e, i, &r); i++) {
		if (r.state == STATE_NA || r.state == STATE_UNKNOWN || r.state == STATE_WITHDRAWN ||
		    !engine_target(o->e, r.target, &t))
			continue;
		snprintf(labels, sizeof(labels), "target=\"%s\",rule=\"%s\",class=\"%s\"", escape(t.sample->name, name),
			 m->rule[r.rule].name, rule_class_name(m->rule[r.rule].class));
		sample_count(o, labels, r.state == STATE_FIRING);
	}
}

static void hooks(struct out *o)
{
	char labels[LABELS], name[4 * SAMPLE_NAME_MAX];
	struct engine_hook_view h;
	uint32_t i;

	family(o, "gauge", "hook_idle", "0 while the hook runs, waits or still owes an undo for the target, else 1");
	for (i = 0; engine_hook(o->e, i, &h); i++) {
		snprintf(labels, sizeof(labels), "target=\"%s\",hook=\"%s\"", escape(h.target, name),
			 engine_model(o->e)->hook[h.hook].name);
		sample_count(o, labels, h.state == HOOK_IDLE);
	}
}

static void probes(struct out *o)
{
	const struct sample *s = engine_sample(o->e);
	char labels[LABELS], signal[4 * SAMPLE_NAME_MAX], rung[4 * SAMPLE_NAME_MAX];
	uint32_t i;
	int exact;

	for (exact = 0; exact < 2; exact++) {
		family(o, "gauge", exact ? "probe_exact" : "probe_attached",
		       exact ? "1 when the attached probe measures without a known error" :
			       "1 when the probe of the signal is attached and proven");
		for (i = 0; i < s->probe_count && i < SAMPLE_PROBES; i++) {
			const struct sample_probe *p = &s->probe[i];

			snprintf(labels, sizeof(labels), "signal=\"%s\",rung=\"%s\"", escape(p->signal, signal),
				 escape(p->rung, rung));
			if (!exact || p->attached)
				sample_count(o, labels, exact ? p->exact : p->attached);
		}
	}
}

static void self_metrics(struct out *o, const struct status_self *self)
{
	const struct sample *s = engine_sample(o->e);
	char labels[LABELS], name[4 * SAMPLE_NAME_MAX];
	uint32_t i;

	family(o, "gauge", "build_info", "1; the version is in the label");
	snprintf(labels, sizeof(labels), "version=\"%s\"", escape(self->version ? self->version : "", name));
	sample_count(o, labels, 1);
	family(o, "gauge", "uptime_seconds", "since the daemon started");
	sample_value(o, "", (double)self->uptime_ns / 1e9);
	family(o, "gauge", "self_cpu_ratio", "CPU that the daemon uses, of one core");
	if (self->cpu_share_known)
		sample_value(o, "", self->cpu_share);
	family(o, "gauge", "self_resident_bytes", "anonymous resident memory of the daemon");
	if (self->rss_known)
		sample_count(o, "", self->rss_bytes);
	family(o, "gauge", "self_tick_late_seconds", "largest lateness of a tick lately");
	sample_value(o, "", (double)self->tick_late_max_ns / 1e9);
	family(o, "counter", "self_journal_dropped_total", "journal entries that a full socket refused");
	sample_count(o, "", self->journal_dropped);
	if (!s)
		return;
	family(o, "gauge", "self_map_bytes", "kernel memory of the BPF maps");
	sample_count(o, "", s->map_bytes);
	family(o, "counter", "self_lost_total", "what was not measured, by why");
	for (i = 0; i < s->lost_count && i < SAMPLE_LOST; i++) {
		snprintf(labels, sizeof(labels), "reason=\"%s\"", escape(s->lost[i].name, name));
		sample_count(o, labels, s->lost[i].count);
	}
}

int status_prometheus(const struct engine *e, const struct status_self *self, char *buf, size_t size,
		      size_t *ret_length)
{
	struct out o = { .buf = buf, .size = size, .full = size == 0, .e = e };

	self_metrics(&o, self);
	if (engine_sample(e)) {
		verdicts(&o);
		rules(&o);
		hooks(&o);
		probes(&o);
		signals(&o);
	}
	if (o.full)
		return -ENOBUFS;
	*ret_length = o.length;
	return 0;
}
