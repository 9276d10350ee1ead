// SPDX-License-Identifier: GPL-2.0-only
/* bench.bpf.c - what dwelld's programs are compared with.
 *
 *   empty_*    one on each hook that any of dwelld's rungs uses, under the same section name, with an empty body: what the
 *              hooks themselves cost
 *   naive_*    the simple way to measure dwell: a hash entry by datagram, an event by datagram to user space
 *   classic_*  the simple way to measure the run queue: every wakeup of every thread into a hash, every switch out of it */
#include "kernel_types.bpf.h"
#include "hist_layout.h"

char LICENSE[] SEC("license") = "GPL";

/* ---- empty ---- */

#define EMPTY(section, name, result)	\
	SEC(section)			\
	int empty_##name(void *ctx)	\
	{				\
		return result;		\
	}
EMPTY("?cgroup/sock_release", sock_release, 1)
EMPTY("?tp_btf/sched_process_exit", process_exit, 0)
EMPTY("?tp_btf/sched_process_exec", process_exec, 0)
EMPTY("?fentry/__udp_enqueue_schedule_skb", begin_fentry, 0)
EMPTY("?fentry/skb_consume_udp", end_fentry, 0)
EMPTY("?kprobe/__udp_enqueue_schedule_skb", begin_kprobe, 0)
EMPTY("?kprobe/skb_consume_udp", end_kprobe, 0)
EMPTY("?cgroup_skb/ingress", ingress, 1)
EMPTY("?tp_btf/consume_skb", consume_skb, 0)
EMPTY("?tp_btf/sock_recv_length", sock_recv_length, 0)
EMPTY("?tp_btf/udp_fail_queue_rcv_skb", udp_fail_queue, 0)
EMPTY("?tp_btf/kfree_skb", kfree_skb, 0)
EMPTY("?tp_btf/sched_waking", waking, 0)
EMPTY("?tp_btf/sched_switch", sched_switch, 0)
EMPTY("?tp_btf/softirq_raise", softirq_raise, 0)
EMPTY("?tp_btf/softirq_entry", softirq_entry, 0)
EMPTY("?tp_btf/softirq_exit", softirq_exit, 0)

/* ---- naive ----
 *
 * sock_recv_length has no skb, so that a datagram's key is its number on the one socket that is looked at. Real tools look
 * at all sockets and would pay for telling them apart too: this errs to the naive side's favour. */

const volatile __u16 bench_port;	/* the only constant: user space writes it at offset 0 */
__u64 naive_queued, naive_read;

struct naive_event { __u64 ts, dwell_ns, number; __u32 tgid, tid; };
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 65536);
	 __type(key, __u64); __type(value, __u64); } naive_stamps SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 20); } naive_events SEC(".maps");

SEC("?cgroup_skb/ingress")
int naive_begin(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	__u64 now, number;

	if (!sk)
		return 1;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol != IPPROTO_UDP || sk->src_port != bench_port)
		return 1;
	now = bpf_ktime_get_ns();
	number = naive_queued++;
	bpf_map_update_elem(&naive_stamps, &number, &now, BPF_ANY);
	return 1;
}

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(naive_end, struct sock *sk, int ret, int flags)
{
	__u64 now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid(), number, *stamp;
	struct naive_event *e;

	if (ret < 0 || sk->sk_protocol != IPPROTO_UDP || sk->__sk_common.skc_num != bench_port)
		return 0;
	number = naive_read++;
	stamp = bpf_map_lookup_elem(&naive_stamps, &number);
	if (!stamp)
		return 0;
	e = bpf_ringbuf_reserve(&naive_events, sizeof(*e), 0);
	if (e) {
		e->ts = now;
		e->dwell_ns = now - *stamp;
		e->number = number;
		e->tgid = id >> 32;
		e->tid = (__u32)id;
		bpf_ringbuf_submit(e, 0);	/* wakes the reader whenever it had caught up */
	}
	bpf_map_delete_elem(&naive_stamps, &number);
	return 0;
}

/* ---- classic ---- */

#define CLASSIC_SLOTS 27	/* powers of two of a microsecond */
struct classic_hist { __u32 slot[CLASSIC_SLOTS]; };
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 10240);
	 __type(key, __u32); __type(value, __u64); } classic_start SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 10240);
	 __type(key, __u32); __type(value, struct classic_hist); } classic_hists SEC(".maps");

static __always_inline int classic_queued(__u32 tid)
{
	__u64 now;

	if (!tid)	/* the idle task */
		return 0;
	now = bpf_ktime_get_ns();
	bpf_map_update_elem(&classic_start, &tid, &now, BPF_ANY);
	return 0;
}

SEC("?tp_btf/sched_wakeup")
int BPF_PROG(classic_wakeup, struct task_struct *task)
{
	return classic_queued(task->pid);
}

SEC("?tp_btf/sched_wakeup_new")
int BPF_PROG(classic_wakeup_new, struct task_struct *task)
{
	return classic_queued(task->pid);
}

static __always_inline long classic_state(struct task_struct *task)
{
	struct task_struct___old *old = (void *)task;

	return bpf_core_field_exists(task->__state) ? (long)task->__state : old->state;
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(classic_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 tid = next->pid, all = 0, slot;
	struct classic_hist *h, fresh = {};
	__u64 *start;

	if (!classic_state(prev))
		classic_queued(prev->pid);
	start = bpf_map_lookup_elem(&classic_start, &tid);
	if (!start)
		return 0;
	slot = hist_log2((bpf_ktime_get_ns() - *start) / 1000);
	h = bpf_map_lookup_elem(&classic_hists, &all);
	if (!h) {
		bpf_map_update_elem(&classic_hists, &all, &fresh, BPF_NOEXIST);
		h = bpf_map_lookup_elem(&classic_hists, &all);
	}
	if (h && slot < CLASSIC_SLOTS)
		__sync_fetch_and_add(&h->slot[slot], 1);
	bpf_map_delete_elem(&classic_start, &tid);
	return 0;
}
