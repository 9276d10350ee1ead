// SPDX-License-Identifier: GPL-2.0-only
/* softirq.bpf.c - signals softirq.wait and softirq.run: NET_RX from raise to entry and from entry to exit, per CPU.
 *
 * Rung `tracepoint`: softirq_raise, softirq_entry, softirq_exit. Keyed by CPU alone, never by task: other vectors are
 * turned away by the first branch, so what runs between cannot disturb, and in ksoftirqd the wait for its turn counts. */
#include "maps.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define SOFTIRQ_NET_RX 3	/* user-space visible since 2.6: the order of /proc/softirqs */

struct softirq_cpu { __u64 raised_ts, entered_ts; };
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1);
	 __type(key, __u32); __type(value, struct softirq_cpu); } softirq_cpus SEC(".maps");

static __always_inline struct softirq_cpu *softirq_cpu(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&softirq_cpus, &key);
}

static __always_inline void softirq_sample(__u32 dist, __u64 now, __u64 since)
{
	struct map_hist *h = bpf_map_lookup_elem(&host_hists, &dist);
	__s64 ns = (__s64)(now - since);
	__u32 slot;

	if (ns < 0) {
		lost_add(MAP_LOST_NEGATIVE);
		ns = 0;
	}
	slot = hist_slot((__u64)ns);
	if (h && slot < HIST_SLOTS)
		__sync_fetch_and_add(&h->slot[slot], 1);
}

/* Many raises lead to one entry: the first of them has waited longest. */
SEC("?tp_btf/softirq_raise")
int BPF_PROG(softirq_raise, unsigned int vec)
{
	struct softirq_cpu *c;

	if (vec != SOFTIRQ_NET_RX)
		return 0;
	c = softirq_cpu();
	if (c && !c->raised_ts)
		c->raised_ts = bpf_ktime_get_ns();
	return 0;
}

SEC("?tp_btf/softirq_entry")
int BPF_PROG(softirq_entry, unsigned int vec)
{
	struct softirq_cpu *c;
	__u64 raised, now;

	if (vec != SOFTIRQ_NET_RX)
		return 0;
	c = softirq_cpu();
	if (!c)
		return 0;
	raised = c->raised_ts;
	c->raised_ts = 0;	/* a raise from now on belongs to the next entry */
	now = bpf_ktime_get_ns();
	c->entered_ts = now;
	if (raised)
		softirq_sample(MAP_HOST_SOFTIRQ_WAIT, now, raised);
	return 0;
}

SEC("?tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, unsigned int vec)
{
	struct softirq_cpu *c;
	__u64 entered;

	if (vec != SOFTIRQ_NET_RX)
		return 0;
	c = softirq_cpu();
	if (!c)
		return 0;
	entered = c->entered_ts;
	if (!entered)	/* attached in the middle of it */
		return 0;
	c->entered_ts = 0;
	softirq_sample(MAP_HOST_SOFTIRQ_RUN, bpf_ktime_get_ns(), entered);
	return 0;
}
