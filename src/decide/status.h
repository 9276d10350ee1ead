/* SPDX-License-Identifier: GPL-2.0-or-later */
/* status.h - the whole state of the daemon rendered into a caller's buffer. Layer: decide (pure).
 *
 * The JSON is the contract of conf/status.schema.json: add, never rename. Unknown is null, never 0: a signal that is
 * unknown is null as a whole, a statistic with too few samples is null singly.
 * Size:   64 KiB hold a usual host; each (rule, target) row takes some 400 bytes, so grow and ask again on -ENOBUFS.
 * Errors: -ENOBUFS when the buffer is too small (then nothing useful is in it). */
#ifndef DWELLD_STATUS_H
#define DWELLD_STATUS_H

#include <stddef.h>

#include "engine.h"

/* What only the daemon knows. */
struct status_self {
	const char *version, *boot_id;
	uint32_t pid;
	bool cpu_share_known; double cpu_share;		/* of one core, over the last ~10 s */
	bool rss_known; uint64_t rss_bytes;		/* RssAnon */
	uint64_t tick_late_max_ns;			/* over the last ~10 s */
	uint64_t journal_dropped;			/* entries that a full journal socket refused */
	uint64_t uptime_ns;
};
int status_json(const struct engine *e, const struct status_self *self, char *buf, size_t size, size_t *ret_length);
/* Prometheus text format, from the same registry. */
int status_prometheus(const struct engine *e, const struct status_self *self, char *buf, size_t size,
		      size_t *ret_length);
/* The buckets of each target's dwell window as JSON, for `dwellctl status --watch`: {"targets":[{"name","dwell":[...]}]}.
 * One number per octave from 256 ns to 34 s, 27 of them, and the same for "runq"; null where unknown. */
int status_histograms_json(const struct engine *e, char *buf, size_t size, size_t *ret_length);
/* The answer of the verb "histograms": {"status":{as status_json},"histograms":{as status_histograms_json}}. */
int status_watch_json(const struct engine *e, const struct status_self *self, char *buf, size_t size,
		      size_t *ret_length);
#endif
