/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "status.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "status_json.h"

#define OCTAVES (HIST_MAX_SHIFT - HIST_MIN_SHIFT)

static const char *unit_name(enum unit_dim dim)
{
	switch (dim) {
	case UNIT_NONE:
		return "";
	case UNIT_TIME:
		return "ns";
	case UNIT_RATIO:
		return "ratio";
	case UNIT_RATE:
		return "/s";
	case UNIT_BYTES:
		return "bytes";
	}
	return "";
}

static void put_evidence(struct jsonw *w, const struct engine_rule_view *r)
{
	uint8_t i;

	jsonw_array(w, "evidence");
	for (i = 0; i < r->evidence_count && i < EVENT_EVIDENCE; i++) {
		const struct evidence *v = &r->evidence[i];

		jsonw_object(w, NULL);
		jsonw_string(w, "term", v->term);
		if (v->known)
			jsonw_double(w, "value", v->value);
		else
			jsonw_null(w, "value");
		jsonw_string(w, "unit", unit_name(v->dim));
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

/* "3 of 200": only where too few samples are the reason. */
static void put_have(struct jsonw *w, const struct engine_rule_view *r)
{
	if (r->need == 0) {
		jsonw_null(w, "have");
		jsonw_null(w, "need");
		return;
	}
	jsonw_uint(w, "have", r->have);
	jsonw_uint(w, "need", r->need);
}

/* The rule's summary with {target} replaced. Returns buf. */
static const char *fill_summary(const char *text, const char *target, char *buf, size_t size)
{
	static const char mark[] = "{target}";
	size_t length = 0;

	while (*text && length + 1 < size) {
		if (strncmp(text, mark, sizeof(mark) - 1) == 0) {
			const size_t n = strnlen(target, size - 1 - length);

			memcpy(buf + length, target, n);
			length += n;
			text += sizeof(mark) - 1;
		} else {
			buf[length++] = *text++;
		}
	}
	buf[length] = '\0';
	return buf;
}

static void put_rule(struct jsonw *w, const struct engine *e, const struct engine_rule_view *r, const char *target)
{
	const struct model *m = engine_model(e);
	const struct model_rule *spec = &m->rule[r->rule];
	char summary[MODEL_TEXT + SAMPLE_NAME_MAX];
	uint8_t i;

	jsonw_object(w, NULL);
	jsonw_string(w, "name", spec->name);
	jsonw_string(w, "target", target);
	jsonw_string(w, "class", rule_class_name(spec->class));
	jsonw_string(w, "severity", severity_name(r->severity));
	jsonw_string(w, "state", rule_state_name(r->state));
	jsonw_uint(w, "state_age_ns", r->state_age_ns);
	jsonw_array(w, "inhibited_by");
	for (i = 0; i < r->inhibited_count && i < 4; i++)
		jsonw_string(w, NULL, m->rule[r->inhibited_by[i]].name);
	jsonw_array_end(w);
	put_evidence(w, r);
	jsonw_string_or_null(w, "summary", fill_summary(spec->summary, target, summary, sizeof(summary)));
	jsonw_string_or_null(w, "why", r->why);
	put_have(w, r);
	jsonw_string_or_null(w, "alert_id", r->alert_id);
	jsonw_object_end(w);
}

static void put_rules(struct jsonw *w, const struct engine *e)
{
	struct engine_target_view target;
	struct engine_rule_view rule;
	uint32_t i;

	jsonw_array(w, "rules");
	for (i = 0; engine_rule(e, i, &rule); i++)
		if (engine_target(e, rule.target, &target))
			put_rule(w, e, &rule, target.sample->name);
	jsonw_array_end(w);
}

static void put_hooks(struct jsonw *w, const struct engine *e)
{
	const struct model *m = engine_model(e);
	struct engine_hook_view h;
	uint32_t i;

	jsonw_array(w, "hooks");
	for (i = 0; engine_hook(e, i, &h); i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "name", m->hook[h.hook].name);
		jsonw_string(w, "target", h.target);
		jsonw_string(w, "state", hook_state_name(h.state));
		jsonw_string_or_null(w, "last_result", h.last_result);
		jsonw_uint(w, "last_seq", h.last_seq);
		jsonw_null(w, "budget_left");
		jsonw_string(w, "kind", hook_kind_name(m->hook[h.hook].kind));
		jsonw_string_or_null(w, "why", h.why);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

static void put_probes(struct jsonw *w, const struct sample *sample)
{
	uint32_t i;

	jsonw_array(w, "probes");
	for (i = 0; sample && i < sample->probe_count && i < SAMPLE_PROBES; i++) {
		const struct sample_probe *p = &sample->probe[i];

		jsonw_object(w, NULL);
		jsonw_string(w, "signal", p->signal);
		jsonw_string(w, "rung", p->rung);
		jsonw_bool(w, "attached", p->attached);
		jsonw_bool(w, "exact", p->exact);
		jsonw_int(w, "bias_ns", p->bias_ns);
		jsonw_string_or_null(w, "reason", p->reason);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

static void put_self(struct jsonw *w, const struct sample *sample, const struct status_self *self)
{
	uint32_t i;

	jsonw_object(w, "self");
	if (self->cpu_share_known)
		jsonw_double(w, "cpu_share", self->cpu_share);
	else
		jsonw_null(w, "cpu_share");
	if (self->rss_known)
		jsonw_uint(w, "rss_bytes", self->rss_bytes);
	else
		jsonw_null(w, "rss_bytes");
	if (sample)
		jsonw_uint(w, "map_bytes", sample->map_bytes);
	else
		jsonw_null(w, "map_bytes");
	jsonw_uint(w, "tick_late_max_ns", self->tick_late_max_ns);
	jsonw_object(w, "lost");
	for (i = 0; sample && i < sample->lost_count && i < SAMPLE_LOST; i++)
		jsonw_uint(w, sample->lost[i].name, sample->lost[i].count);
	jsonw_object_end(w);
	jsonw_uint(w, "pid", self->pid);
	jsonw_uint(w, "uptime_ns", self->uptime_ns);
	jsonw_uint(w, "journal_dropped", self->journal_dropped);
	jsonw_object_end(w);
}

/* RFC 3339 in UTC with milliseconds. */
static void put_now(struct jsonw *w, const struct sample *sample)
{
	char day[40], text[64];
	time_t seconds;
	struct tm tm;

	if (!sample) {
		jsonw_null(w, "now");
		return;
	}
	seconds = (time_t)(sample->wall_us / 1000000);
	if (!gmtime_r(&seconds, &tm) || strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
		jsonw_null(w, "now");
		return;
	}
	snprintf(text, sizeof(text), "%s.%03uZ", day, (unsigned int)(sample->wall_us / 1000 % 1000));
	jsonw_string(w, "now", text);
}

static void put_status(struct jsonw *w, const char *key, const struct engine *e, const struct status_self *self)
{
	const struct sample *sample = engine_sample(e);
	const struct model *m = engine_model(e);

	jsonw_object(w, key);
	jsonw_uint(w, "schema", 1);
	jsonw_string(w, "version", self->version);
	put_now(w, sample);
	jsonw_uint(w, "window_ns", m->window_ns[0] ? m->window_ns[0] : SIGNAL_WINDOW_DEFAULT_NS);
	jsonw_string(w, "boot_id", self->boot_id);
	jsonw_string(w, "config_hash", m->hash);
	jsonw_string(w, "mode", model_mode_name(m->mode));
	jsonw_string(w, "verdict", verdict_name(sample ? engine_verdict(e) : VERDICT_UNKNOWN));
	put_probes(w, sample);
	if (sample) {
		status_json_targets(w, e);
		status_json_host(w, e);
	} else {	/* before the first tick there is nothing to ask the windows for */
		jsonw_array(w, "targets");
		jsonw_array_end(w);
		jsonw_null(w, "host");
	}
	put_rules(w, e);
	put_hooks(w, e);
	put_self(w, sample, self);
	jsonw_object_end(w);
}

int status_json(const struct engine *e, const struct status_self *self, char *buf, size_t size, size_t *ret_length)
{
	struct jsonw w;

	jsonw_start(&w, buf, size);
	put_status(&w, NULL, e, self);
	return jsonw_finish(&w, ret_length);
}

/* The 16 slots of each octave added up; what is below 256 ns counts to the first, what is beyond 34 s to the last. */
static void put_octaves(struct jsonw *w, const char *key, const uint32_t *slot)
{
	uint64_t sum[OCTAVES] = { 0 };
	unsigned int i;

	if (!slot) {
		jsonw_null(w, key);
		return;
	}
	sum[0] = slot[0];
	for (i = 1; i < HIST_SLOTS - 1; i++)
		sum[(i - 1) >> HIST_SUB_SHIFT] += slot[i];
	sum[OCTAVES - 1] += slot[HIST_SLOTS - 1];
	jsonw_array(w, key);
	for (i = 0; i < OCTAVES; i++)
		jsonw_uint(w, NULL, sum[i]);
	jsonw_array_end(w);
}

static void put_histograms(struct jsonw *w, const char *key, const struct engine *e)
{
	struct engine_target_view t;
	int slot;

	jsonw_object(w, key);
	jsonw_array(w, "targets");
	for (slot = 0; engine_sample(e) && slot < SAMPLE_TARGETS; slot++) {
		if (!engine_target(e, slot, &t))
			continue;
		jsonw_object(w, NULL);
		jsonw_string(w, "name", t.sample->name);
		put_octaves(w, "dwell", engine_hist(e, slot, SIGNAL_DWELL, 0));
		put_octaves(w, "runq", engine_hist(e, slot, SIGNAL_RUNQ, 0));
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
	jsonw_object_end(w);
}

int status_histograms_json(const struct engine *e, char *buf, size_t size, size_t *ret_length)
{
	struct jsonw w;

	jsonw_start(&w, buf, size);
	put_histograms(&w, NULL, e);
	return jsonw_finish(&w, ret_length);
}

int status_watch_json(const struct engine *e, const struct status_self *self, char *buf, size_t size,
		      size_t *ret_length)
{
	struct jsonw w;

	jsonw_start(&w, buf, size);
	jsonw_object(&w, NULL);
	put_status(&w, "status", e, self);
	put_histograms(&w, "histograms", e);
	jsonw_object_end(&w);
	return jsonw_finish(&w, ret_length);
}
