/* SPDX-License-Identifier: GPL-2.0-or-later */
/* map_layout.h - map keys, values and events shared by the kernel programs and sense/. Fixed-width types only; both
 * sides have included them (<linux/types.h> or kernel_types.bpf.h) before.
 *
 * Units: *_ts and *_ns are nanoseconds of CLOCK_MONOTONIC. Counters only grow; user space subtracts snapshots. */
#ifndef DWELLD_MAP_LAYOUT_H
#define DWELLD_MAP_LAYOUT_H

#include "hist_layout.h"

#define MAP_TARGETS 64		/* slots at most; fewer when the memory budget says so */
#define MAP_SLOT_HOST 0
#define MAP_SLOT_OTHER 1
#define MAP_SLOT_SELF 2

#define MAP_SOCKETS 16384	/* rows; row 0 aggregates what found no free row */
#define MAP_READERS 4096	/* rows; row 0 is not used */
#define MAP_STREAMS 4096
#define MAP_TGIDS 8192
#define MAP_INFLIGHT 65536	/* power of two */
#define MAP_INFLIGHT_WAYS 8
#define MAP_INFLIGHT_SETS (MAP_INFLIGHT / MAP_INFLIGHT_WAYS)

/* Distributions of a target: hists[slot * MAP_DISTS + dist]. */
enum map_dist { MAP_DIST_DWELL, MAP_DIST_RUNQ, MAP_DISTS };
/* Distributions of the host: host_hists[dist]. */
enum map_host_dist { MAP_HOST_SOFTIRQ_WAIT, MAP_HOST_SOFTIRQ_RUN, MAP_HOST_DISTS };

struct map_hist { __u64 slot[HIST_SLOTS]; };

/* Counters of a target, PERCPU_ARRAY counts[slot]. */
enum map_count {
	MAP_COUNT_DIST_DWELL,	/* samples put into the histogram, datagrams read: tells user space whether it moved */
	MAP_COUNT_DIST_RUNQ,
	MAP_COUNT_ENQUEUED,	/* reached the queue or tried to */
	MAP_COUNT_DISCARDED,	/* unread at close */
	MAP_COUNT_UNQUEUED,	/* dropped at the queue (rcvbuf, memory, filter): takes an enqueue back */
	MAP_COUNT_HEALED,	/* left the queue without a read that we saw (checksum at recvmsg) */
	MAP_COUNT_UNSTAMPED,	/* read, but queued before we watched, or its stamp was lost */
	MAP_COUNT_COARSE,	/* read with an interpolated stamp */
	MAP_COUNT_DROP_RCVBUF,	/* signal drops */
	MAP_COUNT_DROP_MEMORY,
	MAP_COUNT_DROP_SERVER,	/* other reasons, this host's */
	MAP_COUNT_DROP_NETWORK,
	MAP_COUNT_MEDIA,	/* datagrams that look like RTP, RTCP or STUN */
	MAP_COUNT_DATAGRAMS,	/* datagrams seen by the media program */
	MAP_COUNTS
};
struct map_counts { __u64 n[MAP_COUNTS]; };

/* What was lost, PERCPU_ARRAY lost[0]. Shown as self.lost. */
enum map_lost {
	MAP_LOST_SOCKET_ROWS,	/* a socket found no free row: aggregated in row 0 */
	MAP_LOST_READER_ROWS,
	MAP_LOST_TGID_EVENTS,	/* ring buffer full: the process is asked for again at its next read */
	MAP_LOST_STORAGE,	/* socket or task storage refused */
	MAP_LOST_COLLISIONS,	/* stamp of an unread packet overwritten (upper bound) */
	MAP_LOST_NEGATIVE,	/* clock went backwards between two stamps: clamped to 0 */
	MAP_LOST_STREAMS,	/* RTP stream table full */
	MAP_LOSTS
};
struct map_losses { __u64 n[MAP_LOSTS]; };

/* One watched socket; mmapable ARRAY sockets[row]. Written by the kernel; `target` also by user space. */
struct map_socket {
	__u64 cookie;		/* 0: row is free */
	__u64 head_ts;		/* stamp of the oldest unread datagram (upper bound for its age), 0: queue empty */
	__u64 last_enqueue_ts, last_read_ts;
	__u64 enqueued, read, unqueued, healed, unstamped;
	__u32 target;		/* slot; MAP_SLOT_OTHER until an owner is known */
	__u32 tgid;		/* last reader or owner, 0 unknown; in the initial pid namespace */
	__u32 rcvbuf;		/* sk_rcvbuf, 0 unknown */
	__u32 rcvbuf_locked;	/* SO_RCVBUF was set by the application */
	__u32 fill_permille;	/* high water of the epoch, rmem_alloc / rcvbuf */
	__u32 fill_epoch;	/* control.epoch it belongs to */
	__u16 port;		/* local, host order; 0 unknown */
	__u16 family;
	__u32 forced_target;	/* slot that a port match gave it, written by user space; 0: its reader decides */
	__u64 created_ts;
	__u32 backlog;		/* user space saw datagrams queued from before we watched: head_ts is a bound, kept until a read */
	__u32 pad;
};

/* One reader thread; mmapable ARRAY readers[row]. */
struct map_reader {
	__u64 id;		/* 0: row is free; unique for the thread's life */
	__u64 last_ts;
	__u32 tid, tgid;
	__u32 target;
	__u32 slot[HIST_COARSE_SLOTS];	/* dwell of what it read */
	__u32 pad;
};

/* Task storage (or HASH by tid where that is missing) of threads of watched processes. */
struct map_thread {
	__u64 queued_ts;	/* runnable and waiting since, with a flag of runq.bpf.c in bit 0; 0: running */
	__u32 row;		/* in readers[], 0: none */
	__u32 target;
	__u32 generation;	/* control.generation when target was looked up; 0 never */
	__u32 tgid;
};

/* mmapable ARRAY control[0], written by user space. */
struct map_control {
	__u32 epoch;		/* grows with each tick: high-water marks restart */
	__u32 generation;	/* grows whenever tgid -> slot changes: cached slots are looked up again; starts at 1 */
	__u64 pidns_dev, pidns_ino;	/* of the daemon, for pids in its own namespace; 0: initial namespace */
};

/* Ring buffer: a process that reads a UDP socket and has no slot yet. */
struct map_new_reader {
	__u32 tgid;		/* initial pid namespace: the key of tgid_slot */
	__u32 ns_tgid;		/* as the daemon's /proc knows it; 0: not visible there */
	__u64 ts;
};

/* What the owner iterator writes for each UDP socket that a process holds. sockets[].cookie is the cookie, or the address
 * where rows are found by address. */
struct map_owner { __u64 cookie, address; __u32 tgid, queued_bytes; __u16 port, family; __u32 pad; };

/* Value of sk_rows (socket storage, or HASH by struct sock * on kernels where tracing has no socket storage). */
struct map_sk { __u32 row; __u32 closed; };	/* row 0: none asked for yet */
#define MAP_ROW_NONE 0xffffffffU	/* asked for, there was none: counts in row 0 */

/* skb-keyed rungs: inflight[hash(skb)]. With 10 000 unread datagrams a set of eight overflows about once in 200 000 times. */
struct map_inflight { __u64 skb; __u64 ts; __u32 row; __u32 pad; };
struct map_inflight_set { struct map_inflight way[MAP_INFLIGHT_WAYS]; };

/* RTP. HASH streams, key {cookie, ssrc}. Cumulative; RFC 3550 A.1, A.3, A.8. */
struct map_stream_key { __u64 cookie; __u32 ssrc; __u32 pad; };	/* sockets[row].cookie, or the socket's own in row 0 */
struct map_stream {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	__u32 lock;
#endif
	__u32 row;		/* in sockets[]; 0 or another cookie there: owner unknown */
	__u64 created_ts, last_ts;
	__u64 base, highest;	/* extended sequence numbers of this run; expected = highest - base + 1 + past_expected */
	__u64 past_expected;	/* of the runs before the source started anew */
	__u64 received;		/* of the expected: no duplicates, nothing older than base */
	__u64 reorder, duplicates;
	__u64 seen[2];		/* bit i: highest - i was received */
	__u64 jitter16_ns;	/* 16 times the jitter */
	__u64 arrival_ts;	/* when rtp_time came first */
	__u64 learn_ts;		/* start of the span that the clock rate is learnt over */
	__u32 rtp_time, learn_time;
	__u32 clock_rate;	/* Hz, 0: not learnt, no jitter */
	__u32 learnt_rate;	/* of the last span; two alike overrule clock_rate */
	__u32 restart_seq;	/* what would follow a wild sequence number, > 0xffff: none */
	__u32 payload_type;
};
/* Seen once, not yet a stream: the first of the two packets in sequence that make one. Direct-mapped. */
#define MAP_CANDIDATES 4096	/* power of two */
struct map_candidate { __u64 cookie; __u32 ssrc; __u32 next_seq; };
#endif
