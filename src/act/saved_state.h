/* SPDX-License-Identifier: GPL-2.0-or-later */
/* saved_state.h - the debt file STATE/owed: what was done and must be undone. Layer: act.
 *
 * A writer thread appends and fdatasyncs; the loop only queues and is told through an eventfd source when a line is on
 * disk. One line per debt: versioned, space separated, percent-escaped fields, with a checksum, so that a torn last line
 * is recognised: "1 owe SEQ HOOK TARGET RULE ALERT_ID WALL_US CRC32" and "1 paid SEQ ... CRC32". Compacted at start.
 * Ownership: debts_open allocates, debts_close flushes (bounded) and frees. */
#ifndef DWELLD_SAVED_STATE_H
#define DWELLD_SAVED_STATE_H

#include <stdint.h>
#include <systemd/sd-event.h>

struct debts;
enum debt_kind { DEBT_OWE, DEBT_PAID };
typedef void (*debt_found_fn)(void *userdata, uint64_t seq, const char *hook, const char *target, const char *rule,
			      const char *alert_id);
typedef void (*debt_written_fn)(void *userdata, enum debt_kind kind, uint64_t seq, const char *hook,
				const char *target, int error);

/* Reads STATE/owed (found is called for each debt still owed, before the return), compacts it, starts the writer.
 * A damaged file is kept aside as owed.damaged and reported through *ret_damaged lines; what could be read is used. */
int debts_open(sd_event *event, const char *state_dir, debt_found_fn found, debt_written_fn written, void *userdata,
	       unsigned int *ret_damaged, struct debts **ret);
/* Queue one line; written() is called from the loop. -ENOBUFS when 256 lines wait. */
int debts_write(struct debts *d, enum debt_kind kind, uint64_t seq, const char *hook, const char *target,
		const char *rule, const char *alert_id);
uint64_t debts_highest_seq(const struct debts *d);
void debts_close(struct debts *d);
#endif
