/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <endian.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "journal_entry.h"
#include "journal_ids.h"

static const char *const event_ids[EVENT_KIND_COUNT] = {
	[EVENT_FIRE] = JOURNAL_ID_FIRE, [EVENT_WORSE] = JOURNAL_ID_WORSE, [EVENT_BETTER] = JOURNAL_ID_BETTER,
	[EVENT_MITIGATED] = JOURNAL_ID_MITIGATED, [EVENT_RESOLVE] = JOURNAL_ID_RESOLVE,
	[EVENT_WITHDRAW] = JOURNAL_ID_WITHDRAW, [EVENT_FLAPPING] = JOURNAL_ID_FLAPPING,
	[EVENT_SETTLED] = JOURNAL_ID_SETTLED, [EVENT_NODATA] = JOURNAL_ID_NODATA,
	[EVENT_DATA_BACK] = JOURNAL_ID_DATA_BACK, [EVENT_REMINDER] = JOURNAL_ID_REMINDER,
	[EVENT_LATCHED] = JOURNAL_ID_LATCHED, [EVENT_TEST] = JOURNAL_ID_TEST,
	[EVENT_HOOK_ASKED] = JOURNAL_ID_HOOK_ASKED, [EVENT_HOOK_DONE] = JOURNAL_ID_HOOK_DONE,
	[EVENT_HOOK_FAILED] = JOURNAL_ID_HOOK_FAILED,
};

void journal_entry_clear(struct journal_entry *e)
{
	e->length = 0;
	e->broken = false;
}

void journal_entry_free(struct journal_entry *e)
{
	free(e->data);
	*e = (struct journal_entry){ 0 };
}

static void add(struct journal_entry *e, const void *data, size_t length)
{
	if (e->broken)
		return;
	if (e->size - e->length < length) {
		const size_t size = (e->length + length) * 2 > 4096 ? (e->length + length) * 2 : 4096;
		char *grown = realloc(e->data, size);

		if (!grown) {
			e->broken = true;
			return;
		}
		e->data = grown;
		e->size = size;
	}
	memcpy(e->data + e->length, data, length);
	e->length += length;
}

void journal_entry_field(struct journal_entry *e, const char *name, const char *value)
{
	const size_t length = strlen(value);

	add(e, name, strlen(name));
	if (memchr(value, '\n', length)) {
		const uint64_t size_le = htole64(length);

		add(e, "\n", 1);
		add(e, &size_le, sizeof(size_le));
	} else {
		add(e, "=", 1);
	}
	add(e, value, length);
	add(e, "\n", 1);
}

void journal_entry_fieldf(struct journal_entry *e, const char *name, const char *format, ...)
{
	char value[JOURNAL_TEXT_MAX];
	va_list ap;

	va_start(ap, format);
	vsnprintf(value, sizeof(value), format, ap);
	va_end(ap);
	journal_entry_field(e, name, value);
}

/* Absent rather than empty: a filter on the field's presence then means something. */
static void field_if(struct journal_entry *e, const char *name, const char *value)
{
	if (value && value[0])
		journal_entry_field(e, name, value);
}

void journal_entry_own(struct journal_entry *entry, int priority, const char *message_id, const char *message)
{
	journal_entry_clear(entry);
	journal_entry_field(entry, "MESSAGE", message);
	journal_entry_fieldf(entry, "PRIORITY", "%d", priority);
	journal_entry_field(entry, "SYSLOG_IDENTIFIER", "dwelld");
	field_if(entry, "MESSAGE_ID", message_id);
}

static void add_time(struct journal_entry *entry, const char *name, uint64_t wall_us)
{
	const time_t s = (time_t)(wall_us / 1000000);
	char text[40];
	struct tm tm;

	if (!wall_us || !gmtime_r(&s, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		return;
	journal_entry_fieldf(entry, name, "%s.%06uZ", text, (unsigned int)(wall_us % 1000000));
}

/* What was measured. value and peak carry their unit, since a field has no other place for it. */
static void add_measured(struct journal_entry *entry, const struct event *e)
{
	char buf[48];

	field_if(entry, "DWELLD_EVIDENCE", e->evidence_text);
	if (e->value_known) {
		journal_entry_field(entry, "DWELLD_VALUE", units_format(e->value, e->dim, buf, sizeof(buf)));
		journal_entry_field(entry, "DWELLD_THRESHOLD", units_format(e->threshold, e->dim, buf, sizeof(buf)));
		journal_entry_field(entry, "DWELLD_PEAK", units_format(e->peak, e->dim, buf, sizeof(buf)));
	}
	journal_entry_fieldf(entry, "DWELLD_SAMPLES", "%llu", (unsigned long long)e->samples);
	add_time(entry, "DWELLD_STARTED", e->started_us);
	journal_entry_fieldf(entry, "DWELLD_DURATION_USEC", "%llu", (unsigned long long)(e->duration_ns / 1000));
	field_if(entry, "DWELLD_COVERAGE", e->coverage);
}

/* "key=value" words of a hook's result line as DWELLD_RESULT_KEY=value. A key is [a-z0-9_]{1,32}. */
static void add_result_words(struct journal_entry *entry, const char *result)
{
	while (*result) {
		const size_t word = strcspn(result, " ");
		const size_t key = strspn(result, "abcdefghijklmnopqrstuvwxyz0123456789_");
		char name[64] = "DWELLD_RESULT_", value[sizeof(((struct event *)NULL)->result)];

		if (key && key <= 32 && key < word && result[key] == '=' && word - key - 1 < sizeof(value)) {
			for (size_t i = 0; i < key; i++)
				name[14 + i] = (char)(result[i] >= 'a' ? result[i] - 'a' + 'A' : result[i]);
			memcpy(value, result + key + 1, word - key - 1);
			value[word - key - 1] = 0;
			journal_entry_field(entry, name, value);
		}
		result += word;
		result += strspn(result, " ");
	}
}

static void add_hook(struct journal_entry *entry, const struct event *e)
{
	if (!e->hook[0])
		return;
	journal_entry_field(entry, "DWELLD_HOOK", e->hook);
	field_if(entry, "DWELLD_ACTION", e->action);
	if (e->kind != EVENT_HOOK_DONE && e->kind != EVENT_HOOK_FAILED)
		return;
	if (e->exit_code >= 0)
		journal_entry_fieldf(entry, "DWELLD_EXIT_STATUS", "%d", e->exit_code);
	if (e->signal)
		journal_entry_fieldf(entry, "DWELLD_SIGNAL", "%d", e->signal);
	field_if(entry, "DWELLD_RESULT", e->result);
	add_result_words(entry, e->result);
}

void journal_entry_event(struct journal_entry *entry, const struct event *e, const char *config_hash)
{
	char text[JOURNAL_TEXT_MAX];

	journal_entry_own(entry, journal_priority(e), (unsigned int)e->kind < EVENT_KIND_COUNT ? event_ids[e->kind] : NULL,
			  journal_text(e, text));
	journal_entry_field(entry, "DWELLD_EVENT", event_kind_name(e->kind));
	field_if(entry, "DWELLD_ALERT_ID", e->alert_id);
	field_if(entry, "DWELLD_RULE", e->rule);
	field_if(entry, "DWELLD_TARGET", e->target);
	field_if(entry, "DWELLD_UNIT", e->unit);
	if (e->rule[0]) {
		journal_entry_field(entry, "DWELLD_CLASS", rule_class_name(e->class));
		journal_entry_field(entry, "DWELLD_SEVERITY", severity_name(e->severity));
		journal_entry_field(entry, "DWELLD_STATE", rule_state_name(e->state));
		journal_entry_field(entry, "DWELLD_PREV_STATE", rule_state_name(e->prev_state));
	}
	journal_entry_fieldf(entry, "DWELLD_SEQ", "%llu", (unsigned long long)e->seq);
	field_if(entry, "DWELLD_SUMMARY", e->summary);
	add_measured(entry, e);
	field_if(entry, "DWELLD_HOOKS", e->hooks);
	add_hook(entry, e);
	field_if(entry, "DWELLD_CONFIG_HASH", config_hash);
}
