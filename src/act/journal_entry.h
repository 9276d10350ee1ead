/* SPDX-License-Identifier: GPL-2.0-or-later */
/* journal_entry.h - one entry in journald's native form, and the words in it. Layer: act (no I/O).
 *
 * Form: "NAME=value\n", or, when the value has a newline, "NAME\n" + 64-bit little-endian size + value + "\n".
 * Ownership: an entry's buffer is the caller's: {0} is empty, journal_entry_free() gives it back. When memory runs out
 * the entry is marked broken and must not be sent. */
#ifndef DWELLD_JOURNAL_ENTRY_H
#define DWELLD_JOURNAL_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "decide/event.h"

struct journal_entry {
	char *data;
	size_t length, size;
	bool broken;
};

void journal_entry_clear(struct journal_entry *e);	/* keeps the buffer */
void journal_entry_free(struct journal_entry *e);
void journal_entry_field(struct journal_entry *e, const char *name, const char *value);
void journal_entry_fieldf(struct journal_entry *e, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Every field of one transition. config_hash may be NULL. */
void journal_entry_event(struct journal_entry *entry, const struct event *e, const char *config_hash);
/* An own message: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER and, if not NULL, MESSAGE_ID. */
void journal_entry_own(struct journal_entry *entry, int priority, const char *message_id, const char *message);

#define JOURNAL_TEXT_MAX 1536
/* The one line that a person reads, without newline. Returns buf. */
char *journal_text(const struct event *e, char buf[JOURNAL_TEXT_MAX]);
/* 2 critical, 3 a failure, 4 warning, 5 good news, 6 information. */
int journal_priority(const struct event *e);
/* "850ms", "12s", "4min 20s", "1h 02min", "3d 04h". Returns buf. */
char *journal_duration(unsigned long long ns, char *buf, size_t size);
#endif
