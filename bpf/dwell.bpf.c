// SPDX-License-Identifier: GPL-2.0-only
/* dwell.bpf.c - how long each datagram waits between its entry into the socket's queue and its read.
 *
 * Rungs, best first; each only wraps begin()/end() bodies:
 *   fentry   __udp_enqueue_schedule_skb and skb_consume_udp, stamp keyed by skb (exact)
 *   kprobe   the same two functions (exact)
 *   consume  cgroup_skb/ingress and tp_btf/consume_skb (kfree_skb: dropped), stamp keyed by skb; wrong from 6.18 on (frees
 *            are deferred), which the self-test finds out
 *   fifo     cgroup_skb/ingress pushes, tp_btf/sock_recv_length (6.3) pops a FIFO in socket storage; counts exact, pairing
 *            not when two CPUs feed one socket */
#include "maps.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* ---- both ends, whatever found the stamp ---- */

static __always_inline void begin(__u32 row, __u64 now)
{
	struct map_socket *s = socket_row(row);

	if (!s)
		return;
	__sync_fetch_and_add(&s->enqueued, 1);
	s->last_enqueue_ts = now;
	if (row && !s->head_ts)
		s->head_ts = now;
	count_add(s->target, MAP_COUNT_ENQUEUED, 1);
}

/* The queue refused it: it never waited. */
static __always_inline void unqueue(__u32 row)
{
	struct map_socket *s = socket_row(row);

	if (!s)
		return;
	__sync_fetch_and_add(&s->unqueued, 1);
	count_add(s->target, MAP_COUNT_UNQUEUED, 1);
	if (s->enqueued - s->read - s->unqueued - s->healed == 0 && !s->backlog)
		s->head_ts = 0;
}

static __always_inline void reader_row_take(struct map_thread *t, __u32 tid, __u32 tgid, __u64 now)
{
	struct map_reader *r;
	__u32 row = 0;

	if (bpf_map_pop_elem(&free_readers, &row) || !row) {
		lost_add(MAP_LOST_READER_ROWS);
		return;
	}
	r = bpf_map_lookup_elem(&readers, &row);
	if (!r)
		return;
	__builtin_memset(r->slot, 0, sizeof(r->slot));
	r->tid = tid;
	r->tgid = tgid;
	r->target = MAP_SLOT_OTHER;
	r->last_ts = now;
	r->id = now << 16 | (tid & 0xffff);
	t->row = row;
}

/* The storage of the thread that reads now, made at its first read. */
static __always_inline struct map_thread *thread_self(__u64 now)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)id, tgid = id >> 32;
	struct map_thread *t, fresh = {};

	if (cfg_task_hash) {
		t = bpf_map_lookup_elem(&threads_hash, &tid);
		if (!t) {
			bpf_map_update_elem(&threads_hash, &tid, &fresh, BPF_NOEXIST);
			t = bpf_map_lookup_elem(&threads_hash, &tid);
		}
	} else {
		t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0,
					 BPF_LOCAL_STORAGE_GET_F_CREATE);
	}
	if (!t) {
		lost_add(MAP_LOST_STORAGE);
		return 0;
	}
	if (!t->row)
		reader_row_take(t, tid, tgid, now);
	t->tgid = tgid;
	return t;
}

static __always_inline __u32 thread_target(struct map_thread *t, __u32 tgid)
{
	__u32 g = generation();

	if (!t)
		return tgid_target(tgid, true);
	if (t->generation != g || t->target == MAP_SLOT_OTHER) {
		t->target = tgid_target(tgid, true);
		t->generation = g;
	}
	return t->target;
}

static __always_inline void reader_add(struct map_thread *t, __u32 target, __u64 dwell, __u64 now)
{
	__u32 row = t ? t->row : 0, slot = hist_coarse_slot(dwell);
	struct map_reader *r;

	if (!row)
		return;
	r = bpf_map_lookup_elem(&readers, &row);
	if (!r || slot >= HIST_COARSE_SLOTS)
		return;
	r->slot[slot]++;	/* only this thread writes its row */
	r->target = target;
	r->last_ts = now;
}

/* One datagram was read. stamp 0: it was there before us, or its stamp was lost. next: stamp of what is now the oldest
 * unread one (upper bound for its age), 0: the queue is empty. */
static __always_inline void end(__u32 row, __u64 stamp, __u64 next, __u64 now)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, target;
	struct map_socket *s = socket_row(row);
	struct map_thread *t = thread_self(now);
	__u64 dwell = 0;

	if (!s)
		return;
	target = thread_target(t, tgid);
	if (s->forced_target && s->forced_target < cfg_slots)
		target = s->forced_target;
	if (row) {
		s->target = target;
		s->tgid = tgid;
		s->last_read_ts = now;
		s->backlog = 0;
		s->head_ts = next;
	}
	if (!stamp) {
		__sync_fetch_and_add(&s->unstamped, 1);
		count_add(target, MAP_COUNT_UNSTAMPED, 1);
		return;
	}
	if (now >= stamp)
		dwell = now - stamp;
	else
		lost_add(MAP_LOST_NEGATIVE);
	__sync_fetch_and_add(&s->read, 1);
	hist_add(target, MAP_DIST_DWELL, dwell);	/* its count is the number of reads too */
	reader_add(t, target, dwell, now);
}

/* What the socket itself tells at a read. */
static __always_inline void socket_seen(__u32 row, int rmem, int rcvbuf, __u32 locked)
{
	struct map_socket *s = socket_row(row);
	__u32 key = 0, fill, epoch;
	struct map_control *c;

	if (!s || !row || rcvbuf <= 0 || rmem < 0)
		return;
	c = bpf_map_lookup_elem(&control, &key);
	if (!c)
		return;
	epoch = c->epoch;
	s->rcvbuf = rcvbuf;
	s->rcvbuf_locked = locked;
	fill = (__u64)(__u32)rmem * 1000 / (__u32)rcvbuf;
	if (s->fill_epoch != epoch) {
		s->fill_epoch = epoch;
		s->fill_permille = fill;
	} else if (fill > s->fill_permille) {
		s->fill_permille = fill;
	}
}

/* ---- stamps keyed by skb: a table of sets ---- */

struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, MAP_INFLIGHT_SETS);
	 __type(key, __u32); __type(value, struct map_inflight_set); } inflight SEC(".maps");

/* An skb is 256 bytes of a slab: neighbours go to neighbouring sets. */
static __always_inline struct map_inflight_set *inflight_set(__u64 skb)
{
	__u32 key = (skb >> 8 ^ skb >> 21) & (MAP_INFLIGHT_SETS - 1);

	return bpf_map_lookup_elem(&inflight, &key);
}

static __always_inline struct map_inflight *inflight_find(__u64 skb)
{
	struct map_inflight_set *set = inflight_set(skb);

	if (!set)
		return 0;
#pragma unroll
	for (int i = 0; i < MAP_INFLIGHT_WAYS; i++)
		if (set->way[i].skb == skb)
			return &set->way[i];
	return 0;
}

/* A free place, or the skb's own of an earlier life, or the longest occupied one: most likely of a refused datagram. */
static __always_inline struct map_inflight *inflight_place(__u64 skb)
{
	struct map_inflight_set *set = inflight_set(skb);
	struct map_inflight *oldest;

	if (!set)
		return 0;
	oldest = &set->way[0];
#pragma unroll
	for (int i = 0; i < MAP_INFLIGHT_WAYS; i++) {
		if (!set->way[i].skb || set->way[i].skb == skb)
			return &set->way[i];
		if (set->way[i].ts < oldest->ts)
			oldest = &set->way[i];
	}
	lost_add(MAP_LOST_COLLISIONS);
	return oldest;
}

static __always_inline void begin_skb(__u64 skb, __u32 row, __u64 now)
{
	struct map_inflight *f = inflight_place(skb);

	if (!f)
		return;
	begin(row, now);
	f->skb = 0;
	f->ts = now;
	f->row = row;
	barrier();
	f->skb = skb;
}

/* The rest of the queue is what our own counts say. */
static __always_inline __u64 next_by_count(__u32 row, __u64 stamp)
{
	struct map_socket *s = socket_row(row);

	return s && (__s64)(s->enqueued - s->read - s->unqueued - s->healed) > 1 ? stamp : 0;
}

/* true: this skb was stamped; its row is in *ret_row. */
static __always_inline bool end_skb(__u64 skb, bool empty, __u64 now, __u32 *ret_row)
{
	struct map_inflight *f = inflight_find(skb);
	__u64 stamp;
	__u32 row;

	if (!f)
		return false;
	stamp = f->ts;
	row = f->row;
	f->skb = 0;
	end(row, stamp, empty ? 0 : next_by_count(row, stamp), now);
	*ret_row = row;
	return true;
}

/* ---- rung fentry ---- */

/* Row of a socket by what tracing programs can use: storage, or on old kernels a hash by address. */
static __always_inline int sk_row_of_sock(struct sock *sk, __u64 now)
{
	__u32 port_family = sk->__sk_common.skc_num | (__u32)sk->__sk_common.skc_family << 16;
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
	return sk_row_first(k, cfg_sock_hash ? key : bpf_get_socket_cookie(sk), now, port_family);
}

SEC("?fentry/__udp_enqueue_schedule_skb")
int BPF_PROG(dwell_begin_fentry, struct sock *sk, struct sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns();
	int row = sk_row_of_sock(sk, now);

	if (row >= 0)
		begin_skb(pointer_number(SCRATCH_BEGIN, skb), row, now);
	return 0;
}

SEC("?fentry/skb_consume_udp")
int BPF_PROG(dwell_end_fentry, struct sock *sk, struct sk_buff *skb, int len)
{
	__u64 now = bpf_ktime_get_ns();
	int rmem = sk->sk_backlog.rmem_alloc.counter;
	__u32 row = 0;

	if (len < 0 || skb->users.refs.counter > 1)	/* MSG_PEEK leaves it in the queue */
		return 0;
	if (end_skb(pointer_number(SCRATCH_END, skb), rmem == 0, now, &row))
		socket_seen(row, rmem + (int)skb->truesize, sk->sk_rcvbuf,
			    BPF_CORE_READ_BITFIELD(sk, sk_userlocks) & SOCK_RCVBUF_LOCK);
	else
		count_add(tgid_target(bpf_get_current_pid_tgid() >> 32, true), MAP_COUNT_UNSTAMPED, 1);
	return 0;
}

/* The queue refused a datagram (also rung kprobe). On 6.12 and later it carries the skb; the stamp of one
 * without is simply overwritten later. */
SEC("?tp_btf/udp_fail_queue_rcv_skb")
int BPF_PROG(dwell_refused, int rc, struct sock *sk)
{
	struct map_sk *k;
	__u64 key;

	if (cfg_sock_hash) {
		key = pointer_number(SCRATCH_END_SOFTIRQ, sk);
		k = bpf_map_lookup_elem(&sk_rows_hash, &key);
	} else {
		k = bpf_sk_storage_get(&sk_rows, sk, 0, 0);
	}
	if (k && !k->closed && k->row)
		unqueue(k->row == MAP_ROW_NONE ? 0 : k->row);
	return 0;
}

/* ---- rung kprobe: the only programs that may use bpf_probe_read_kernel ---- */

SEC("?kprobe/__udp_enqueue_schedule_skb")
int BPF_KPROBE(dwell_begin_kprobe, struct sock *sk, struct sk_buff *skb)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)sk;
	struct map_sk *k, fresh = {};
	__u32 port_family, row;

	k = bpf_map_lookup_elem(&sk_rows_hash, &key);
	if (!k) {
		bpf_map_update_elem(&sk_rows_hash, &key, &fresh, BPF_NOEXIST);
		k = bpf_map_lookup_elem(&sk_rows_hash, &key);
	}
	if (!k) {
		lost_add(MAP_LOST_STORAGE);
		return 0;
	}
	if (k->closed)
		return 0;
	row = k->row;
	if (!row) {
		port_family = BPF_CORE_READ(sk, __sk_common.skc_num) |
			      (__u32)BPF_CORE_READ(sk, __sk_common.skc_family) << 16;
		row = sk_row_first(k, key, now, port_family);
	}
	begin_skb((__u64)skb, row == MAP_ROW_NONE ? 0 : row, now);
	return 0;
}

SEC("?kprobe/skb_consume_udp")
int BPF_KPROBE(dwell_end_kprobe, struct sock *sk, struct sk_buff *skb, int len)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 row = 0;
	int rmem;

	if (len < 0 || BPF_CORE_READ(skb, users.refs.counter) > 1)
		return 0;
	rmem = BPF_CORE_READ(sk, sk_backlog.rmem_alloc.counter);
	if (end_skb((__u64)skb, rmem == 0, now, &row))
		socket_seen(row, rmem + (int)BPF_CORE_READ(skb, truesize), BPF_CORE_READ(sk, sk_rcvbuf),
			    BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & SOCK_RCVBUF_LOCK);
	else
		count_add(tgid_target(bpf_get_current_pid_tgid() >> 32, true), MAP_COUNT_UNSTAMPED, 1);
	return 0;
}

/* ---- rung consume ---- */

SEC("?cgroup_skb/ingress")
int dwell_begin_consume(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	__u64 now;
	int row;

	if (!sk)
		return 1;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol != IPPROTO_UDP)
		return 1;
	now = bpf_ktime_get_ns();
	row = sk_row_of_skb(skb, sk, now);
	if (row >= 0)
		begin_skb(pointer_number(SCRATCH_BEGIN, skb), row, now);
	return 1;
}

SEC("?tp_btf/consume_skb")
int BPF_PROG(dwell_end_consume, struct sk_buff *skb)
{
	__u64 key = pointer_number(SCRATCH_END_SOFTIRQ, skb);
	__u32 row;

	if (inflight_find(key))		/* nearly all are not ours */
		end_skb(key, false, bpf_ktime_get_ns(), &row);
	return 0;
}

/* A stamped datagram was dropped: by the queue, by the socket's own filter, for its checksum at the read, or unread at
 * close, when the row may have another socket already. Without this its stamp would be taken for that of the next user of
 * the same address. */
SEC("?tp_btf/kfree_skb")
int BPF_PROG(dwell_dropped_consume, struct sk_buff *skb)
{
	struct map_inflight *f = inflight_find(pointer_number(SCRATCH_DROP, skb));
	struct map_socket *s;

	if (!f)
		return 0;
	f->skb = 0;
	s = socket_row(f->row);
	if (!f->row || (s && s->cookie && s->created_ts <= f->ts))
		unqueue(f->row);
	return 0;
}

/* ---- rung fifo ----
 *
 * Run-length: an entry is (number of its first datagram, time). While the ring is less than three quarters full each
 * datagram gets an entry. Above that a new entry is made only when it is a fixed share of the queue's age after the last
 * one, so that 256 entries always reach: nothing is overwritten, the oldest and slowest keep exact stamps, and the stamps
 * between two entries are interpolated (counted coarse). A refused datagram lowers the number again.
 * Only kernels with sock_recv_length (6.3) run this, so fetching atomics and bpf_rdonly_cast are there. */

#define FIFO_ENTRIES 256
struct fifo {
	__u32 tail, head;		/* datagrams pushed, popped */
	__u32 entry_tail, entry_head;
	__u64 last_ts;			/* of the last push */
	__u64 cookie;			/* of the row when it was found; another one there: the socket is closed */
	__u32 row;
	bool ready, aggregated;
	/* datagrams that we think are queued and the kernel does not, seen at each of the last reads: the least of them */
	__u32 surplus, surplus_reads;
	__u64 surplus_ts;
	__u32 first[FIFO_ENTRIES];
	__u64 ts[FIFO_ENTRIES];
};
struct { __uint(type, BPF_MAP_TYPE_SK_STORAGE); __uint(map_flags, BPF_F_NO_PREALLOC);
	 __type(key, int); __type(value, struct fifo); } fifos SEC(".maps");

extern void *bpf_rdonly_cast(void *obj, __u32 btf_id) __ksym __weak;

/* How long after the last entry the next one is due, by how full the ring is. 32 entries at 1/16, 24 at 1/8 and 7 at 1/2 of
 * the age reach about 2000 times the age at 192 entries. */
static __always_inline __u64 fifo_gap(__u32 used, __u64 age)
{
	if (used < FIFO_ENTRIES * 3 / 4)
		return 0;
	if (used < 224)
		return age >> 4;
	if (used < 248)
		return age >> 3;
	return age >> 1;
}

static __always_inline void fifo_push(struct fifo *f, __u64 now)
{
	__u32 n = __sync_fetch_and_add(&f->tail, 1), e = f->entry_tail, used = e - f->entry_head;
	__u32 last = (e - 1) & (FIFO_ENTRIES - 1);
	__u64 gap;

	f->last_ts = now;
	if (e && f->first[last] == n) {	/* left by one that was refused */
		f->ts[last] = now;
		return;
	}
	if (used >= FIFO_ENTRIES)
		return;
	gap = fifo_gap(used, now - f->ts[f->entry_head & (FIFO_ENTRIES - 1)]);
	if (gap && now - f->ts[last] < gap)
		return;
	f->first[e & (FIFO_ENTRIES - 1)] = n;
	f->ts[e & (FIFO_ENTRIES - 1)] = now;
	barrier();
	f->entry_tail = e + 1;
}

/* Stamp of datagram n, whose run starts at entry e. */
static __always_inline __u64 fifo_stamp(struct fifo *f, __u32 e, __u32 n, __u32 tail, bool *ret_coarse)
{
	__u32 i = e & (FIFO_ENTRIES - 1), j = (e + 1) & (FIFO_ENTRIES - 1), run, into;
	__u64 from = f->ts[i], to;

	into = n - f->first[i];
	if (!into)
		return from;
	*ret_coarse = true;
	if (e + 1 != f->entry_tail) {
		to = f->ts[j];
		run = f->first[j] - f->first[i];
	} else {
		to = f->last_ts;
		run = tail - 1 - f->first[i];
	}
	if (!run || to < from || into > run)
		return from;
	return from + (to - from) * into / run;
}

static __always_inline bool fifo_closed(const struct fifo *f)
{
	struct map_socket *s = socket_row(f->row);

	return !s || (!f->aggregated && s->cookie != f->cookie);
}

SEC("?cgroup_skb/ingress")
int dwell_begin_fifo(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct fifo *f;
	__u64 now;
	int row;

	if (!sk)
		return 1;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol != IPPROTO_UDP)
		return 1;
	f = bpf_sk_storage_get(&fifos, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!f) {
		lost_add(MAP_LOST_STORAGE);
		return 1;
	}
	now = bpf_ktime_get_ns();
	if (!f->ready) {
		row = sk_row_of_skb(skb, sk, now);
		if (row < 0)
			return 1;
		f->row = row;
		f->aggregated = !row;
		f->cookie = bpf_get_socket_cookie(skb);
		f->ready = true;
	}
	if (fifo_closed(f))
		return 1;
	fifo_push(f, now);
	begin(f->row, now);
	return 1;
}

static __always_inline __u32 sk_true_length(struct sock *sk)
{
	struct udp_sock *up;
	__u32 n = sk->sk_receive_queue.qlen;

	up = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct udp_sock));
	return n + up->reader_queue.qlen;
}

/* Datagrams that left without a pop (bad checksum found at recvmsg) are known by the same surplus at many reads in a row. A
 * producer between this hook and the queue, or another thread that has read and not yet come here, does not stay that long;
 * and should its CPU be taken away, the machine being a virtual one, then its own datagram is the last that was pushed. */
#define FIFO_HEAL_GUARD_NS 100000000ULL
#define FIFO_HEAL_READS 64
#define FIFO_HEAL_IDLE_NS 1000000000ULL

static __always_inline __u32 fifo_surplus(struct fifo *f, __u32 len, __u32 true_left, __u64 now)
{
	__u32 surplus = len - 1 - true_left, heal;

	if (!surplus) {
		f->surplus_reads = 0;
		return 0;
	}
	/* few a second: many reads would take minutes, and nobody stands between hook and queue for so long; another CPU's push
	 * may be younger than our clock */
	if (!true_left && (__s64)(now - f->last_ts) > (__s64)FIFO_HEAL_IDLE_NS) {
		f->surplus_reads = 0;
		return surplus;
	}
	if (!f->surplus_reads) {
		f->surplus = surplus;
		f->surplus_ts = now;
	} else if (surplus < f->surplus) {
		f->surplus = surplus;
	}
	f->surplus_reads++;
	if (f->surplus_reads < FIFO_HEAL_READS || (__s64)(f->last_ts - f->surplus_ts) < (__s64)FIFO_HEAL_GUARD_NS)
		return 0;
	heal = f->surplus;
	f->surplus_reads = 0;
	return heal;
}

static __always_inline void fifo_heal(struct fifo *f, __u32 surplus)
{
	struct map_socket *s = socket_row(f->row);

	__sync_fetch_and_add(&f->head, surplus);
	if (!s)
		return;
	__sync_fetch_and_add(&s->healed, surplus);
	count_add(s->target, MAP_COUNT_HEALED, surplus);
}

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(dwell_end_fifo, struct sock *sk, int ret, int flags)
{
	__u32 row, true_left, tail, len, n, e, end_entry, i, surplus;
	bool coarse = false, ignore = false;
	__u64 now, stamp, next = 0;
	struct fifo *f;

	if (flags & (MSG_PEEK | MSG_ERRQUEUE) || (ret < 0 && ret != -EFAULT))
		return 0;
	if (sk->sk_protocol != IPPROTO_UDP)
		return 0;
	f = bpf_sk_storage_get(&fifos, sk, 0, 0);
	if (!f)
		return 0;
	row = f->row;
	if (!f->ready || fifo_closed(f))
		return 0;
	now = bpf_ktime_get_ns();
	true_left = sk_true_length(sk);	/* before tail: one pushed in between must not look like a surplus */
	barrier();
	tail = *(volatile __u32 *)&f->tail;
	len = tail - f->head;
	if ((__s32)len <= 0)
		return 0;	/* shutdown() lets a read return without a datagram */
	if (true_left + 1 > len) {
		end(row, 0, f->ts[f->entry_head & (FIFO_ENTRIES - 1)], now);	/* queued before we watched */
		return 0;
	}
	surplus = fifo_surplus(f, len, true_left, now);
	if (surplus)
		fifo_heal(f, surplus);
	n = __sync_fetch_and_add(&f->head, 1);
	e = f->entry_head;
	end_entry = f->entry_tail;
	for (i = 0; i < FIFO_ENTRIES; i++) {
		if (e + 1 == end_entry || (__s32)(f->first[(e + 1) & (FIFO_ENTRIES - 1)] - n) > 0)
			break;
		e++;
	}
	f->entry_head = e;
	stamp = fifo_stamp(f, e, n, tail, &coarse);
	if (coarse) {
		struct map_socket *s = socket_row(row);

		if (s)
			count_add(s->target, MAP_COUNT_COARSE, 1);
	}
	if (*(volatile __u32 *)&f->tail != n + 1) {	/* one is left: when did it come? */
		if (e + 1 != end_entry && f->first[(e + 1) & (FIFO_ENTRIES - 1)] == n + 1)
			next = f->ts[(e + 1) & (FIFO_ENTRIES - 1)];
		else
			next = fifo_stamp(f, e, n + 1, tail, &ignore);
	}
	end(row, stamp, next, now);
	socket_seen(row, sk->sk_backlog.rmem_alloc.counter, sk->sk_rcvbuf,
		    BPF_CORE_READ_BITFIELD(sk, sk_userlocks) & SOCK_RCVBUF_LOCK);
	return 0;
}

static __always_inline void fifo_unpush(struct sock *sk)
{
	struct fifo *f = bpf_sk_storage_get(&fifos, sk, 0, 0);

	if (!f || !f->ready || fifo_closed(f))
		return;
	__sync_fetch_and_add(&f->tail, -1);
	unqueue(f->row);
}

SEC("?tp_btf/udp_fail_queue_rcv_skb")
int BPF_PROG(dwell_refused_fifo, int rc, struct sock *sk)
{
	fifo_unpush(sk);
	return 0;
}

/* Dropped between our hook and the queue by the socket's own filter; or, where producers have a queue of their own (6.18), for
 * want of memory by the CPU that drains it, which udp_fail_queue_rcv_skb does not tell. */
SEC("?tp_btf/kfree_skb")
int BPF_PROG(dwell_filtered_fifo, struct sk_buff *skb, void *location, enum skb_drop_reason reason, struct sock *rx_sk)
{
	if (!rx_sk)
		return 0;
	if (reason != bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_SOCKET_FILTER) &&
	    !(bpf_core_field_exists(struct udp_sock, udp_prod_queue) &&
	      reason == bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_PROTO_MEM)))
		return 0;
	if (rx_sk->sk_protocol != IPPROTO_UDP)
		return 0;
	fifo_unpush(rx_sk);
	return 0;
}
