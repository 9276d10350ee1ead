/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sample.h - one tick's reading of everything, as sense/ hands it to decide/. Plain data, no functions: the same
 * struct is filled from live maps and, later, from a flight record. Layer: decide.
 *
 * Units:     *_ns are nanoseconds (now_ns: CLOCK_MONOTONIC). Counters are CUMULATIVE since the daemon attached (or since
 *            boot for host files) and only grow; a counter that went backwards is a reset and its window is unknown.
 *            decide/ subtracts. Nothing here is ever a zero for "could not be read": that is a cleared known bit.
 * Ownership: sense/ owns every array and pointer; valid until the next read. decide/ copies what it keeps. */
#ifndef DWELLD_SAMPLE_H
#define DWELLD_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/hist_layout.h"

#define SAMPLE_TARGETS 64	/* target slots at most; the first three are reserved */
enum sample_reserved { SAMPLE_HOST = 0, SAMPLE_OTHER = 1, SAMPLE_SELF = 2, SAMPLE_FIRST_FREE = 3 };

#define SAMPLE_NAME_MAX 128	/* target names, with NUL */

/* Distributions of a target. Later issues append (irq2app). */
enum sample_dist { SAMPLE_DIST_DWELL, SAMPLE_DIST_RUNQ, SAMPLE_DIST_COUNT };
/* Distributions of the host. */
enum sample_host_dist { SAMPLE_HOST_SOFTIRQ_WAIT, SAMPLE_HOST_SOFTIRQ_RUN, SAMPLE_HOST_DIST_COUNT };

/* Cumulative counters of a target. */
enum sample_counter {
	SAMPLE_ENQUEUED,	/* datagrams that reached the socket's queue (or tried to) */
	SAMPLE_READ,		/* datagrams read by the application */
	SAMPLE_DISCARDED,	/* unread at close */
	SAMPLE_DROPS_SERVER,	/* dropped for a watched socket, this host's doing (rcvbuf, memory, ...) */
	SAMPLE_DROPS_NETWORK,	/* dropped, the network's or sender's doing (checksum, filter, ...) */
	SAMPLE_DROPS_RCVBUF,	/* part of drops.server: receive buffer full */
	SAMPLE_RTP_EXPECTED,	/* summed over streams: extended highest - base + 1 */
	SAMPLE_RTP_RECEIVED,
	SAMPLE_RTP_REORDER,
	SAMPLE_RTP_DUPLICATES,
	SAMPLE_COUNTER_COUNT
};

/* Cumulative counters of the host. */
enum sample_host_counter {
	SAMPLE_HOST_CPU_BUSY,	/* /proc/stat jiffies: all but idle, iowait, steal */
	SAMPLE_HOST_CPU_STEAL,
	SAMPLE_HOST_CPU_TOTAL,
	SAMPLE_HOST_NIC_DROPS,	/* rx_missed + rx_fifo of real interfaces + backlog drops */
	SAMPLE_HOST_NIC_PACKETS,
	SAMPLE_HOST_SQUEEZED,	/* time_squeeze, net_rx_action gave up its budget */
	SAMPLE_HOST_COUNTER_COUNT
};

/* Cumulative histogram. moved: false means equal to the last tick's (then slot[] need not be looked at). */
struct sample_hist {
	bool known;		/* the probe that feeds it is attached and proven */
	bool moved;
	uint64_t slot[HIST_SLOTS];
};

/* One RTP stream (socket, SSRC) seen in the last 10 s. Cumulative; loss = expected - received, signed. */
struct sample_stream {
	uint64_t id;		/* unique for the life of the stream */
	uint16_t target;	/* slot; SAMPLE_OTHER while the socket's owner is unknown */
	uint32_t ssrc;
	uint64_t expected, received, reorder, duplicates;
	uint64_t last_ns;	/* arrival of its last packet */
	uint64_t jitter_ns;	/* RFC 3550 A.8 smoothed */
	bool jitter_known;	/* clock rate learnt */
};

/* One reader thread; coarse histogram of the dwell of what it read. */
struct sample_reader {
	uint64_t id;		/* unique for the life of the thread */
	uint32_t tid;
	uint16_t target;
	const uint32_t *slot;	/* HIST_COARSE_SLOTS, cumulative, wraps at 2^32 */
};

struct sample_target {
	bool used;			/* the slot has a name */
	bool configured;		/* from the configuration, else found by itself */
	int16_t model_target;		/* index in model.targets, or -1 */
	char name[SAMPLE_NAME_MAX];	/* what [A-Za-z0-9._:@-] and escaped units allow */
	char unit[SAMPLE_NAME_MAX];	/* "" if none */
	bool ever_seen;			/* a reader process was matched at least once */
	uint32_t pids[16];		/* the first ones */
	uint32_t pid_count;		/* all; 0: processes are gone */
	uint32_t sockets;
	bool media;			/* half or more of its datagrams look like RTP/STUN */
	bool rtp_ever;			/* an RTP stream was seen on it */
	struct sample_hist dist[SAMPLE_DIST_COUNT];
	uint64_t counter[SAMPLE_COUNTER_COUNT];
	uint32_t counter_known;		/* bit per enum sample_counter */
	bool oldest_known;
	uint64_t oldest_ns;		/* age of the oldest unread datagram; 0: queue empty */
	bool queued_known;
	uint64_t queued;		/* datagrams in its queues now */
	bool fill_known;
	double fill;			/* highest receive-buffer fill since the last tick, 0..1 (can exceed 1 slightly) */
	bool rcvbuf_known;
	uint32_t rcvbuf_bytes;		/* smallest of its sockets */
	bool rcvbuf_by_application;	/* SO_RCVBUF was set */
};

/* What sense/ says of one probe; one row per signal object. */
#define SAMPLE_PROBES 8
struct sample_probe {
	char signal[16];	/* dwell runq softirq drops rtp */
	char rung[16];		/* "fentry" ... , "none" */
	bool attached;		/* attached and proven by the self-test */
	bool exact;
	int64_t bias_ns;	/* known systematic error, 0 if none */
	char reason[256];	/* why not a better rung, or why not exact; "" if nothing to say */
};

#define SAMPLE_LOST 12
struct sample_lost { char name[24]; uint64_t count; };	/* cumulative; what was not measured and why */

struct sample {
	uint64_t now_ns;	/* CLOCK_MONOTONIC of this tick */
	uint64_t wall_us;	/* CLOCK_REALTIME, only for printing */
	bool gap;		/* suspend, or first read: windows start anew, nothing may fire or clear from it */
	uint64_t late_ns;	/* how late this tick ran */
	struct sample_target target[SAMPLE_TARGETS];
	struct sample_hist host_dist[SAMPLE_HOST_DIST_COUNT];
	uint64_t host_counter[SAMPLE_HOST_COUNTER_COUNT];
	uint32_t host_known;	/* bit per enum sample_host_counter */
	const struct sample_stream *stream;
	uint32_t stream_count;
	bool streams_known;
	const struct sample_reader *reader;
	uint32_t reader_count;
	struct sample_probe probe[SAMPLE_PROBES];
	uint32_t probe_count;
	struct sample_lost lost[SAMPLE_LOST];
	uint32_t lost_count;
	uint64_t map_bytes;	/* kernel memory of the BPF maps */
};
#endif
