/* SPDX-License-Identifier: GPL-2.0-or-later */
/* journal.h - structured log entries, never blocking. Layer: act.
 *
 * Speaks journald's native datagram protocol with MSG_DONTWAIT (sd_journal_send blocks on a full socket). When the
 * socket is full the entry is kept in a small ring (newest per alert), counted, and the count told after recovery.
 * Without journald, or in the foreground on a terminal, the MESSAGE goes to stderr as one line.
 * Ownership: journal_new allocates; journal_free(NULL) is fine. Errors: sending never fails the caller. */
#ifndef DWELLD_JOURNAL_H
#define DWELLD_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/event.h"

struct journal;
/* socket_path NULL = /run/systemd/journal/socket. to_stderr: also (or only, when journald is not there) to stderr. */
int journal_new(const char *socket_path, bool to_stderr, const char *config_hash, struct journal **ret);
void journal_free(struct journal *j);
void journal_set_config_hash(struct journal *j, const char *config_hash);
/* One entry for one transition. */
void journal_event(struct journal *j, const struct event *e);
/* Own messages: priority as in syslog (3 error, 4 warning, 6 info). message_id NULL for none. */
void journal_say(struct journal *j, int priority, const char *message_id, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Call once a tick: tries to send what is kept. */
void journal_flush(struct journal *j);
uint64_t journal_dropped(const struct journal *j);
#endif
