/* SPDX-License-Identifier: GPL-2.0-or-later */
/* signal.h - the one registry of signal and statistic names. The grammar of rules, the JSON, the metrics and the
 * man-page test all read it; no other list of signals exists. Layer: decide (pure).
 *
 * A term is signal[.stat][window]: dwell.p99[3s], rtp.loss, dwell.over(20ms)[10s], known(dwell.p99). */
#ifndef DWELLD_SIGNAL_H
#define DWELLD_SIGNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "units.h"

enum signal_kind { SIGNAL_DISTRIBUTION, SIGNAL_RATIO, SIGNAL_COUNTER, SIGNAL_GAUGE };
enum signal_scope { SIGNAL_OF_TARGET, SIGNAL_OF_HOST };	/* a host signal reads the same in every target's rule */

enum signal_id {
	SIGNAL_DWELL, SIGNAL_DWELL_OLDEST, SIGNAL_DWELL_WORST, SIGNAL_RUNQ, SIGNAL_SOFTIRQ_WAIT, SIGNAL_SOFTIRQ_RUN,
	SIGNAL_RTP_LOSS, SIGNAL_RTP_LOSS_WORST, SIGNAL_RTP_BAD_STREAMS, SIGNAL_RTP_LATE_STREAMS,
	SIGNAL_QUEUE_FILL, SIGNAL_HOST_CPU_BUSY, SIGNAL_HOST_STEAL,
	SIGNAL_DROPS_SERVER, SIGNAL_DROPS_NETWORK, SIGNAL_DROPS_RCVBUF,
	SIGNAL_RTP_REORDER, SIGNAL_RTP_DUPLICATES, SIGNAL_HOST_NIC_DROPS, SIGNAL_HOST_SQUEEZED,
	SIGNAL_RTP_STREAMS, SIGNAL_RTP_JITTER, SIGNAL_QUEUE_RCVBUF,
	SIGNAL_COVERAGE,	/* probes.missing: enabled rules' signals without a proven rung (gauge, host) */
	SIGNAL_ID_COUNT
};

enum signal_stat {
	STAT_BARE, STAT_P50, STAT_P90, STAT_P99, STAT_P999, STAT_MAX, STAT_MEAN, STAT_RATE, STAT_COUNT, STAT_OVER,
	STAT_SHARE, STAT_ID_COUNT
};

struct signal_info {
	const char *name;	/* "dwell", "dwell.oldest", "host.nic_drops" */
	enum signal_kind kind;
	enum signal_scope scope;
	enum unit_dim dim;	/* of its value: TIME for latencies, RATIO, NONE, BYTES */
	uint32_t stats;		/* bit per enum signal_stat that it has */
	const char *probe;	/* the sample_probe.signal that feeds it, NULL: files */
	const char *help;	/* one line, for man page, --help and # HELP */
};
extern const struct signal_info signal_table[SIGNAL_ID_COUNT];

struct stat_info {
	const char *name;	/* "p99"; "" for STAT_BARE */
	uint32_t need;		/* samples needed by default; 0 none */
	enum unit_dim dim;	/* of the statistic; UNIT_TIME here means "the signal's own" */
	const char *help;
};
extern const struct stat_info signal_stats[STAT_ID_COUNT];

/* Known by name but built later (dwell.share.runq, irq2app, cpu.throttled ...): true, so that it is refused by name. */
bool signal_is_planned(const char *name);
/* Nearest registered name for "did you mean", or NULL. */
const char *signal_suggest(const char *name);

#define SIGNAL_WINDOW_DEFAULT_NS 10000000000ULL
#define SIGNAL_WINDOW_MIN_NS 1000000000ULL
#define SIGNAL_WINDOW_MAX_NS 600000000000ULL
#define SIGNAL_WINDOWS_MAX 6	/* distinct window lengths in one configuration */
#endif
