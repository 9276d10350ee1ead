/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook_event_json.c - what a hook reads on stdin. The keys are a contract (conf/hook-event.schema.json): add, never
 * rename. What is not known is null, never 0 or "". */
#include "hook_client.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "decide/jsonw.h"

static const char *const unit_names[] = {
	[UNIT_NONE] = "", [UNIT_TIME] = "ns", [UNIT_RATIO] = "ratio", [UNIT_RATE] = "per_second", [UNIT_BYTES] = "bytes",
};

static void put_number(struct jsonw *w, const char *key, bool known, double value)
{
	if (known)
		jsonw_double(w, key, value);
	else
		jsonw_null(w, key);
}

static void put_time(struct jsonw *w, const char *key, uint64_t us)
{
	const time_t seconds = (time_t)(us / 1000000);
	char text[40];
	struct tm tm;
	size_t n;

	if (!us || !gmtime_r(&seconds, &tm)) {
		jsonw_null(w, key);
		return;
	}
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%06uZ", (unsigned int)(us % 1000000));
	jsonw_string(w, key, text);
}

static void put_host(struct jsonw *w)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	jsonw_string_or_null(w, "host", host);
}

static void put_who(struct jsonw *w, const struct event *e)
{
	jsonw_string_or_null(w, "rule", e->rule);
	jsonw_string_or_null(w, "target", e->target);
	jsonw_string_or_null(w, "unit", e->unit);
	jsonw_string_or_null(w, "cgroup", e->cgroup);
	jsonw_array(w, "pids");
	for (uint32_t i = 0; i < e->pid_count && i < 16; i++)
		jsonw_uint(w, NULL, e->pids[i]);
	jsonw_array_end(w);
	jsonw_string_or_null(w, "ports", e->ports);
}

static void put_evidence(struct jsonw *w, const struct event *e)
{
	jsonw_array(w, "evidence");
	for (unsigned int i = 0; i < e->evidence_count && i < EVENT_EVIDENCE; i++) {
		jsonw_object(w, NULL);
		jsonw_string(w, "term", e->evidence[i].term);
		put_number(w, "value", e->evidence[i].known, e->evidence[i].value);
		jsonw_string(w, "unit", unit_names[e->evidence[i].dim]);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
	jsonw_string_or_null(w, "evidence_text", e->evidence_text);
	put_number(w, "value", e->value_known, e->value);
	put_number(w, "threshold", e->value_known, e->threshold);
	put_number(w, "peak", e->value_known, e->peak);
	jsonw_string(w, "value_unit", unit_names[e->dim]);
	jsonw_uint(w, "samples", e->samples);
}

int hook_event_json(const struct event *e, const char *action, const char *hook, uint64_t seq, uint32_t attempt,
		    char *buf, size_t size)
{
	struct jsonw w;
	size_t length;

	jsonw_start(&w, buf, size);
	jsonw_object(&w, NULL);
	jsonw_uint(&w, "contract", 1);
	jsonw_string(&w, "action", action);
	jsonw_string(&w, "hook", hook);
	jsonw_uint(&w, "seq", seq);
	jsonw_uint(&w, "attempt", attempt);
	jsonw_string(&w, "event", event_kind_name(e->kind));
	put_host(&w);
	jsonw_string_or_null(&w, "alert_id", e->alert_id);
	put_who(&w, e);
	jsonw_string(&w, "class", rule_class_name(e->class));
	jsonw_string(&w, "severity", severity_name(e->severity));
	jsonw_string(&w, "state", rule_state_name(e->state));
	jsonw_string(&w, "prev_state", rule_state_name(e->prev_state));
	jsonw_string_or_null(&w, "summary", e->summary);
	put_evidence(&w, e);
	put_time(&w, "started", e->started_us);
	jsonw_uint(&w, "duration_ns", e->duration_ns);
	jsonw_string_or_null(&w, "coverage", e->coverage);
	jsonw_string_or_null(&w, "hooks", e->hooks);
	jsonw_object_end(&w);
	return jsonw_finish(&w, &length);
}
