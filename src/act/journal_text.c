/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "journal_entry.h"

/* A bounded text that is appended to and silently cut at the end. */
struct text { char *buf; size_t length, size; };

__attribute__((format(printf, 2, 3)))
static void put(struct text *t, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(t->buf + t->length, t->size - t->length, format, ap);
	va_end(ap);
	if (n > 0)
		t->length += (size_t)n < t->size - t->length ? (size_t)n : t->size - t->length - 1;
}

char *journal_duration(unsigned long long ns, char *buf, size_t size)
{
	const unsigned long long s = ns / 1000000000ULL;

	if (s < 1)
		snprintf(buf, size, "%llums", ns / 1000000ULL);
	else if (s < 60)
		snprintf(buf, size, "%llus", s);
	else if (s < 3600)
		snprintf(buf, size, "%llumin %02llus", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, size, "%lluh %02llumin", s / 3600, s % 3600 / 60);
	else
		snprintf(buf, size, "%llud %02lluh", s / 86400, s % 86400 / 3600);
	return buf;
}

int journal_priority(const struct event *e)
{
	switch (e->kind) {
	case EVENT_FIRE:
	case EVENT_WORSE:
	case EVENT_REMINDER:
		return e->severity == SEVERITY_CRITICAL ? 2 : e->severity == SEVERITY_WARNING ? 4 : 6;
	case EVENT_FLAPPING:
	case EVENT_NODATA:
		return e->severity == SEVERITY_INFO ? 6 : 4;
	case EVENT_LATCHED:
	case EVENT_HOOK_FAILED:
		return 3;
	case EVENT_BETTER:
	case EVENT_MITIGATED:
	case EVENT_RESOLVE:
	case EVENT_WITHDRAW:
	case EVENT_SETTLED:
	case EVENT_DATA_BACK:
		return 5;
	case EVENT_TEST:
	case EVENT_HOOK_ASKED:
	case EVENT_HOOK_DONE:
		return 6;
	case EVENT_KIND_COUNT:
		break;
	}
	return 6;
}

/* "sfu: server / reader-starved: the threads that read sfu wait for a CPU" */
static void put_alert(struct text *t, const struct event *e)
{
	put(t, "%s: %s / %s", e->target, rule_class_name(e->class), e->rule);
	if (e->summary[0])
		put(t, ": %s", e->summary);
}

static void put_evidence(struct text *t, const struct event *e)
{
	if (e->evidence_text[0])
		put(t, " (%s)", e->evidence_text);
}

/* " after 4min 20s, worst 57ms" */
static void put_past(struct text *t, const struct event *e)
{
	char buf[48];

	if (e->duration_ns)
		put(t, " after %s", journal_duration(e->duration_ns, buf, sizeof(buf)));
	if (e->value_known)
		put(t, ", worst %s", units_format(e->peak, e->dim, buf, sizeof(buf)));
}

static void put_exit(struct text *t, const struct event *e)
{
	if (e->signal)
		put(t, "killed by signal %d (%s)", e->signal, strsignal(e->signal));
	else if (e->exit_code < 0)
		put(t, "no exit status: it ran out of time or was lost");
	else if (e->exit_code == 0)
		put(t, "exit 0");
	else if (e->exit_code == 75)
		put(t, "exit 75, to be tried again later");
	else if (e->exit_code == 80)
		put(t, "exit 80, it is so already and not by us");
	else if (e->exit_code >= 64 && e->exit_code <= 78)
		put(t, "exit %d, refused, nothing was changed", e->exit_code);
	else
		put(t, "exit %d, perhaps half done", e->exit_code);
	if (e->result[0])
		put(t, ": %s", e->result);
}

static void put_hook(struct text *t, const struct event *e)
{
	put(t, "HOOK %s %s for %s", e->hook, e->action, e->target);
	if (e->kind == EVENT_HOOK_ASKED) {
		put(t, " asked");
		if (e->rule[0])
			put(t, " by %s", e->rule);
		if (e->result[0])	/* why now: "undo: rule not firing and ... for 10s" */
			put(t, ": %s", e->result);
		else if (e->summary[0])
			put(t, ": %s", e->summary);
		return;
	}
	put(t, e->kind == EVENT_HOOK_DONE ? " done: " : " failed: ");
	put_exit(t, e);
}

/* What ended: the word "resolved" is kept for a cause that is gone; unknown is never worded so. */
static void put_end(struct text *t, const struct event *e)
{
	if (e->kind == EVENT_MITIGATED) {
		put(t, "MITIGATED %s: %s is quiet", e->target, e->rule);
		put_past(t, e);
		put(t, ", while %s is in force; that stays until the cause is gone",
		    e->hooks[0] ? e->hooks : "a remedy");
	} else if (e->kind == EVENT_RESOLVE) {
		put(t, "RESOLVED %s: %s is over", e->target, e->rule);
		put_past(t, e);
	} else {
		put(t, "WITHDRAWN %s: %s is no longer judged", e->target, e->rule);
		put_past(t, e);
		put(t, ": its rule or target is gone; this does not say that the fault is");
	}
	put_evidence(t, e);
}

static void put_doubt(struct text *t, const struct event *e)
{
	if (e->kind == EVENT_FLAPPING) {
		put(t, "FLAPPING ");
		put_alert(t, e);
		put(t, ": comes and goes; its hooks are frozen as they are");
	} else if (e->kind == EVENT_SETTLED) {
		put(t, "SETTLED %s: %s no longer flaps, it is %s", e->target, e->rule, rule_state_name(e->state));
	} else if (e->kind == EVENT_NODATA) {
		put(t, "NO DATA %s: %s cannot be judged now (it was %s)", e->target, e->rule,
		    rule_state_name(e->prev_state));
		if (e->coverage[0])
			put(t, "; probes: %s", e->coverage);
	} else {
		put(t, "DATA BACK %s: %s can be judged again, it is %s", e->target, e->rule,
		    rule_state_name(e->state));
	}
	put_evidence(t, e);
}

static void put_firing(struct text *t, const struct event *e)
{
	char buf[48];

	if (e->kind == EVENT_WORSE)
		put(t, "ALERT, now %s, ", severity_name(e->severity));
	else if (e->kind == EVENT_BETTER)
		put(t, "ALERT, only %s now, ", severity_name(e->severity));
	else if (e->kind == EVENT_REMINDER)
		put(t, "STILL ALERT for %s, ", journal_duration(e->duration_ns, buf, sizeof(buf)));
	else if (e->kind == EVENT_LATCHED)
		put(t, "LATCHED, nothing more is done by itself (%s), ", e->hooks[0] ? e->hooks : "no remedy helped");
	else if (e->kind == EVENT_TEST)
		put(t, "TEST, nothing is wrong, ");
	else
		put(t, "ALERT ");
	put_alert(t, e);
	put_evidence(t, e);
}

char *journal_text(const struct event *e, char buf[JOURNAL_TEXT_MAX])
{
	struct text t = { .buf = buf, .size = JOURNAL_TEXT_MAX };

	buf[0] = 0;
	switch (e->kind) {
	case EVENT_FIRE:
	case EVENT_WORSE:
	case EVENT_BETTER:
	case EVENT_REMINDER:
	case EVENT_LATCHED:
	case EVENT_TEST:
		put_firing(&t, e);
		break;
	case EVENT_MITIGATED:
	case EVENT_RESOLVE:
	case EVENT_WITHDRAW:
		put_end(&t, e);
		break;
	case EVENT_FLAPPING:
	case EVENT_SETTLED:
	case EVENT_NODATA:
	case EVENT_DATA_BACK:
		put_doubt(&t, e);
		break;
	case EVENT_HOOK_ASKED:
	case EVENT_HOOK_DONE:
	case EVENT_HOOK_FAILED:
		put_hook(&t, e);
		break;
	case EVENT_KIND_COUNT:
		break;
	}
	return buf;
}
