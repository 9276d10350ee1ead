/* SPDX-License-Identifier: GPL-2.0-only */
/* maps.bpf.h - the maps shared by all programs, and the few steps that every signal needs: find a socket's row, find a
 * thread's target, add to a histogram. core.bpf.c is loaded first; each signal's own object reuses its maps by name.
 *
 * Memory, for P possible CPUs and T target slots (sense/ chooses T so that the sum stays under 64 MiB):
 *   hists T * MAP_DISTS * 3472 * P, counts T * 120 * P, sockets 2 MiB, readers 2 MiB, inflight 1.5 MiB (skb rungs only),
 *   per socket with traffic: 3.2 KiB of FIFO (fifo rung only). */
#ifndef DWELLD_MAPS_BPF_H
#define DWELLD_MAPS_BPF_H

#include "kernel_types.bpf.h"
#include "map_layout.h"

/* Set before load; the verifier drops what the kernel cannot do. */
const volatile bool cfg_sock_hash;	/* tracing programs have no socket storage (before 5.12) */
const volatile bool cfg_task_hash;	/* no task storage (before 5.12) */
const volatile bool cfg_pidns;		/* the daemon is not in the initial pid namespace */
const volatile __u32 cfg_slots = MAP_TARGETS;

struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, MAP_TARGETS * MAP_DISTS);
	 __type(key, __u32); __type(value, struct map_hist); } hists SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, MAP_HOST_DISTS);
	 __type(key, __u32); __type(value, struct map_hist); } host_hists SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, MAP_TARGETS);
	 __type(key, __u32); __type(value, struct map_counts); } counts SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1);
	 __type(key, __u32); __type(value, struct map_losses); } lost SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, MAP_SOCKETS); __uint(map_flags, BPF_F_MMAPABLE);
	 __type(key, __u32); __type(value, struct map_socket); } sockets SEC(".maps");
/* stacks, so that low rows are used again and user space scans few */
struct { __uint(type, BPF_MAP_TYPE_STACK); __uint(max_entries, MAP_SOCKETS);
	 __type(value, __u32); } free_sockets SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, MAP_READERS); __uint(map_flags, BPF_F_MMAPABLE);
	 __type(key, __u32); __type(value, struct map_reader); } readers SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_STACK); __uint(max_entries, MAP_READERS);
	 __type(value, __u32); } free_readers SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __uint(map_flags, BPF_F_MMAPABLE);
	 __type(key, __u32); __type(value, struct map_control); } control SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, MAP_TGIDS);
	 __type(key, __u32); __type(value, __u32); } tgid_slot SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 64 * 1024); } new_readers SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_SK_STORAGE); __uint(map_flags, BPF_F_NO_PREALLOC);
	 __type(key, int); __type(value, struct map_sk); } sk_rows SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, MAP_SOCKETS);
	 __type(key, __u64); __type(value, struct map_sk); } sk_rows_hash SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_TASK_STORAGE); __uint(map_flags, BPF_F_NO_PREALLOC);
	 __type(key, int); __type(value, struct map_thread); } threads SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, MAP_READERS);
	 __type(key, __u32); __type(value, struct map_thread); } threads_hash SEC(".maps");
/* A typed kernel pointer is not a number to the verifier: written here and read back, it is. One cell per kind of program:
 * a softirq may run its own program between another's write and read on the same CPU. */
enum scratch_cell { SCRATCH_RELEASE, SCRATCH_BEGIN, SCRATCH_END, SCRATCH_END_SOFTIRQ, SCRATCH_DROP, SCRATCH_MEDIA, SCRATCH_CELLS };
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, SCRATCH_CELLS);
	 __type(key, __u32); __type(value, __u64); } scratch SEC(".maps");

#define TGID_PENDING 0xffffffffU	/* in tgid_slot: user space has been told, has not answered */

static __always_inline __u64 pointer_number(__u32 key, const void *p)
{
	const void **cell = bpf_map_lookup_elem(&scratch, &key);

	if (!cell)
		return 0;
	*(const void *volatile *)cell = p;
	return *(volatile __u64 *)cell;
}

static __always_inline void lost_add(enum map_lost what)
{
	__u32 key = 0;
	struct map_losses *l = bpf_map_lookup_elem(&lost, &key);

	if (l)
		__sync_fetch_and_add(&l->n[what], 1);
}

static __always_inline void count_add(__u32 target, enum map_count what, __u64 n)
{
	struct map_counts *c = bpf_map_lookup_elem(&counts, &target);

	if (c)
		__sync_fetch_and_add(&c->n[what], n);
}

/* One sample of a target's distribution. */
static __always_inline void hist_add(__u32 target, enum map_dist dist, __u64 ns)
{
	__u32 key = target * MAP_DISTS + dist;
	struct map_hist *h = bpf_map_lookup_elem(&hists, &key);
	__u32 slot = hist_slot(ns);

	if (h && slot < HIST_SLOTS)
		__sync_fetch_and_add(&h->slot[slot], 1);
	count_add(target, dist == MAP_DIST_DWELL ? MAP_COUNT_DIST_DWELL : MAP_COUNT_DIST_RUNQ, 1);
}

static __always_inline __u32 generation(void)
{
	__u32 key = 0;
	struct map_control *c = bpf_map_lookup_elem(&control, &key);

	return c ? *(volatile __u32 *)&c->generation : 0;
}

static __always_inline struct map_socket *socket_row(__u32 row)
{
	return bpf_map_lookup_elem(&sockets, &row);
}

/* The slot of a process. Unknown ones are told to user space once; until it answers they count as `other`. */
static __always_inline __u32 tgid_target(__u32 tgid, bool may_ask)
{
	__u32 *slot = bpf_map_lookup_elem(&tgid_slot, &tgid), pending = TGID_PENDING;
	struct bpf_pidns_info ns = {};
	struct map_new_reader *e;
	struct map_control *c;
	__u32 key = 0;

	if (slot)
		return *slot < cfg_slots ? *slot : MAP_SLOT_OTHER;
	if (!may_ask)
		return MAP_SLOT_OTHER;
	e = bpf_ringbuf_reserve(&new_readers, sizeof(*e), 0);
	if (!e) {
		lost_add(MAP_LOST_TGID_EVENTS);
		return MAP_SLOT_OTHER;
	}
	e->tgid = tgid;
	e->ns_tgid = tgid;
	e->ts = bpf_ktime_get_ns();
	if (cfg_pidns) {
		c = bpf_map_lookup_elem(&control, &key);
		e->ns_tgid = 0;
		if (c && !bpf_get_ns_current_pid_tgid(c->pidns_dev, c->pidns_ino, &ns, sizeof(ns)))
			e->ns_tgid = ns.tgid;
	}
	bpf_map_update_elem(&tgid_slot, &tgid, &pending, BPF_NOEXIST);
	bpf_ringbuf_submit(e, 0);
	return MAP_SLOT_OTHER;
}

/* A row for a new socket; 0 when there is none left (row 0 aggregates). */
static __always_inline __u32 socket_row_take(__u64 cookie, __u64 now)
{
	struct map_socket *s;
	__u32 row = 0;

	if (bpf_map_pop_elem(&free_sockets, &row) || !row) {
		lost_add(MAP_LOST_SOCKET_ROWS);
		return 0;
	}
	s = socket_row(row);
	if (!s)
		return 0;
	s->head_ts = 0;
	s->last_enqueue_ts = s->last_read_ts = 0;
	s->enqueued = s->read = s->unqueued = s->healed = s->unstamped = 0;
	s->target = MAP_SLOT_OTHER;
	s->tgid = s->rcvbuf = s->rcvbuf_locked = s->fill_permille = s->fill_epoch = 0;
	s->port = s->family = 0;
	s->forced_target = 0;
	s->backlog = 0;
	s->created_ts = now;
	s->cookie = cookie;
	return row;
}

static __always_inline void socket_row_give(__u32 row)
{
	bpf_map_push_elem(&free_sockets, &row, 0);
}

/* First datagram of a socket: give it a row. Two CPUs at once: the second hands its row back. */
static __always_inline __u32 sk_row_first(struct map_sk *k, __u64 cookie, __u64 now, __u32 port_family)
{
	__u32 row = socket_row_take(cookie, now);
	struct map_socket *s;

	if (!row) {
		k->row = MAP_ROW_NONE;
		return 0;
	}
	if (k->row) {
		s = socket_row(row);
		if (s)
			s->cookie = 0;
		socket_row_give(row);
		return k->row == MAP_ROW_NONE ? 0 : k->row;
	}
	s = socket_row(row);
	if (s) {
		s->port = port_family & 0xffff;
		s->family = port_family >> 16;
	}
	k->row = row;
	return row;
}

/* cgroup_skb: the row of a datagram's socket, made if it is new. -1: closed, or there is no storage for it. */
static __always_inline int sk_row_of_skb(struct __sk_buff *skb, struct bpf_sock *sk, __u64 now)
{
	struct map_sk *k, fresh = {};
	__u64 key = 0;

	if (cfg_sock_hash) {
		key = pointer_number(SCRATCH_BEGIN, sk);
		k = bpf_map_lookup_elem(&sk_rows_hash, &key);
		if (!k) {
			bpf_map_update_elem(&sk_rows_hash, &key, &fresh, BPF_NOEXIST);
			k = bpf_map_lookup_elem(&sk_rows_hash, &key);
		}
	} else {
		k = bpf_sk_storage_get(&sk_rows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	}
	if (!k) {
		lost_add(MAP_LOST_STORAGE);
		return -1;
	}
	if (k->closed)
		return -1;
	if (k->row)
		return k->row == MAP_ROW_NONE ? 0 : k->row;
	return sk_row_first(k, cfg_sock_hash ? key : bpf_get_socket_cookie(skb), now, sk->src_port | sk->family << 16);
}
#endif
