// SPDX-License-Identifier: GPL-2.0-only
/* runq.bpf.c - signal runq: how long the threads of watched processes wait for a CPU once they could run.
 *
 * Rungs:
 *   wakeup      runq_waking + runq_switch (or runq_switch3 before 5.18), with the iterator runq_threads that user space
 *               runs after a new process got its slot and every few seconds. Our own stamps; exact.
 *   sched_info  runq_sched_info alone: the kernel's own queueing stamp, for kernels without task storage. Inexact: a wait
 *               that moved between CPUs counts from the last move, and a corrected clock stands in for a fresh one.
 *
 * No storage is ever created in a scheduler hook: that would allocate under the run-queue lock. sched_wakeup_new has no
 * program because a new thread has no storage yet. */
#include "maps.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define RUNQ_SANE_NS (60ULL * 1000000000ULL)	/* above: a stamp from before a detach, not a wait */
#define RUNQ_EARLY 1ULL	/* lowest bit of a stamp: the thread had not left its CPU yet */
#define RUNQ_WINDOW_NS 50000000ULL

static __always_inline void runq_sample(__u32 target, __u64 now, __u64 since)
{
	__s64 wait = (__s64)(now - since);

	if (wait < 0) {
		lost_add(MAP_LOST_NEGATIVE);
		wait = 0;
	}
	if ((__u64)wait > RUNQ_SANE_NS) {
		lost_add(MAP_LOST_NEGATIVE);
		return;
	}
	hist_add(target, MAP_DIST_RUNQ, (__u64)wait);
}

/* SMP kernels; an int, and by 7.2 a u8: only unsigned fields change their width at load */
struct task_struct___running { unsigned int on_cpu; } CORE;

/* A waker may come while the thread still runs: then either it is on its way to sleep and the wait has begun, or it will
 * go on and sleep later, and the next wakeup takes its stamp for stale. So nothing has to be cleared when a thread falls
 * asleep. A woken thread is not woken again before it has run; only one that was preempted on its way to sleep is, and it
 * waits since then. */
SEC("?tp_btf/sched_waking")
int BPF_PROG(runq_waking, struct task_struct *task)
{
	struct task_struct___running *r = (void *)task;
	struct map_thread *t;
	bool running;

	if (!task->bpf_storage)
		return 0;
	t = bpf_task_storage_get(&threads, task, 0, 0);
	if (!t)
		return 0;
	running = r->on_cpu;
	if (t->queued_ts && !(t->queued_ts & RUNQ_EARLY) && !running)
		return 0;
	t->queued_ts = running ? bpf_ktime_get_ns() | RUNQ_EARLY : bpf_ktime_get_ns() & ~RUNQ_EARLY;
	return 0;
}

static __always_inline void runq_preempted(struct task_struct *prev, __u64 now)
{
	struct map_thread *t = bpf_task_storage_get(&threads, prev, 0, 0);

	if (t)
		t->queued_ts = now & ~RUNQ_EARLY;
}

static __always_inline void runq_arrived(struct task_struct *next, __u64 now)
{
	struct map_thread *t = bpf_task_storage_get(&threads, next, 0, 0);
	__u32 current_generation;
	__u64 since;

	if (!t)
		return;
	since = t->queued_ts;
	if (!since)
		return;
	t->queued_ts = 0;
	current_generation = generation();
	if (t->generation != current_generation) {
		t->target = tgid_target(next->tgid, false);
		t->generation = current_generation;
	}
	runq_sample(t->target, now, since & ~RUNQ_EARLY);
}

static __always_inline int runq_switched(struct task_struct *prev, struct task_struct *next, bool runnable)
{
	bool left = runnable && prev->bpf_storage;
	__u64 now;

	if (!left && !next->bpf_storage)
		return 0;
	now = bpf_ktime_get_ns();
	if (left)
		runq_preempted(prev, now);
	if (next->bpf_storage)
		runq_arrived(next, now);
	return 0;
}

/* 5.18 and later hand over the state that the switch was decided on. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(runq_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	if (!prev->bpf_storage && !next->bpf_storage)
		return 0;
	return runq_switched(prev, next, preempt || !prev_state);
}

/* Before, it is read from the thread: a waker may have set TASK_WAKING since, which is not 0 either. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(runq_switch3, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct task_struct___old *old = (void *)prev;
	long state;

	if (!prev->bpf_storage && !next->bpf_storage)
		return 0;
	if (bpf_core_field_exists(prev->__state))
		state = prev->__state;
	else
		state = old->state;
	return runq_switched(prev, next, preempt || !state);
}

/* A record for every thread of a process that has a slot, so that the hooks above find it. */
SEC("?iter/task")
int runq_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 tgid, *slot;

	if (!task)
		return 0;
	tgid = task->tgid;
	slot = bpf_map_lookup_elem(&tgid_slot, &tgid);
	if (!slot || *slot >= cfg_slots)
		return 0;
	if (!bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
		lost_add(MAP_LOST_STORAGE);
	return 0;
}

/* rq->clock is often stale at a switch, by what the wakeup and the idle exit took. Per CPU the smallest distance between
 * it and our clock within a window is that of a fresh one; the distance is signed and may cross zero. */
struct runq_clock { __s64 smallest, smallest_before; __u64 window_ts; };
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1);
	 __type(key, __u32); __type(value, struct runq_clock); } runq_clocks SEC(".maps");

static __always_inline __s64 runq_clock_offset(struct runq_clock *c, __u64 now, __s64 distance)
{
	if (now - c->window_ts > RUNQ_WINDOW_NS) {
		/* after a long idle time the window before is too old to help */
		c->smallest_before = now - c->window_ts > 2 * RUNQ_WINDOW_NS ? distance : c->smallest;
		c->smallest = distance;
		c->window_ts = now;
	} else if (distance < c->smallest) {
		c->smallest = distance;
	}
	return c->smallest < c->smallest_before ? c->smallest : c->smallest_before;
}

/* Whoever has a slot is watched: one lookup by process, no table of threads. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(runq_sched_info, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 key = 0, tgid = next->tgid, *slot;
	struct runq_clock *c = bpf_map_lookup_elem(&runq_clocks, &key);
	__u64 now = bpf_ktime_get_ns(), queued;
	__s64 offset, wait;

	if (!c)
		return 0;
	offset = runq_clock_offset(c, now, (__s64)(now - next->se.cfs_rq->rq->clock));
	if (!tgid)	/* the idle task */
		return 0;
	queued = next->sched_info.last_queued;
	if (!queued)
		return 0;
	slot = bpf_map_lookup_elem(&tgid_slot, &tgid);
	if (!slot || *slot >= cfg_slots)
		return 0;
	wait = (__s64)(now - queued) - offset;
	runq_sample(*slot, wait > 0 ? (__u64)wait : 0, 0);
	return 0;
}
