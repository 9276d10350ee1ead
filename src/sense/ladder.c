/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ladder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.skel.h"
#include "dwell.skel.h"
#include "drops.skel.h"
#include "media.skel.h"
#include "runq.skel.h"
#include "softirq.skel.h"

/* Two rows of one name: the second is the same rung on kernels whose tracing programs have no socket or task storage. */
static const struct rung dwell_rungs[] = {
	{ "fentry", { "dwell_begin_fentry", "dwell_end_fentry", "dwell_refused" }, true, 0, "", false, false, false, false },
	{ "fentry", { "dwell_begin_fentry", "dwell_end_fentry", "dwell_refused" }, true, 0, "", true, true, false, false },
	{ "kprobe", { "dwell_begin_kprobe", "dwell_end_kprobe", "dwell_refused" }, true, 0, "", true, false, false, false },
	{ "kprobe", { "dwell_begin_kprobe", "dwell_end_kprobe", "dwell_refused" }, true, 0, "", true, true, false, false },
	{ "consume", { "dwell_begin_consume", "dwell_end_consume", "dwell_dropped_consume" }, true, 0, "", false, false, false,
	  true },
	{ "consume", { "dwell_begin_consume", "dwell_end_consume", "dwell_dropped_consume" }, true, 0, "", true, true, false, true },
	{ "fifo", { "dwell_begin_fifo", "dwell_end_fifo", "dwell_refused_fifo", "dwell_filtered_fifo" }, false, 0,
	  "order: counts are exact, but two CPUs that feed one socket may swap the stamps of neighbours", false, false,
	  false, false },
};
static const struct rung runq_rungs[] = {
	{ "wakeup", { "runq_waking", "runq_switch" }, true, 0, "", false, false, true, false },
	{ "wakeup", { "runq_waking", "runq_switch3" }, true, 0, "", false, false, true, false },
	{ "sched_info", { "runq_sched_info" }, false, 0,
	  "kernel's own stamps: a wait that moved between CPUs counts from the last move", false, false, false, false },
};
static const struct rung softirq_rungs[] = {
	{ "tracepoint", { "softirq_raise", "softirq_entry", "softirq_exit" }, true, 0, "", false, false, false, false },
};
static const struct rung drops_rungs[] = {
	{ "reasons", { "drops_queue", "drops_filter" }, true, 0, "", false, false, false, false },
	{ "socket", { "drops_queue" }, false, 0, "drops by a socket's own filter are not told on this kernel", false, false,
	  false, false },
};
static const struct rung media_rungs[] = {
	{ "cgroup_skb", { "media_ingress" }, true, 0, "", false, false, false, false },
};

#define RUNGS(a) (a), sizeof(a) / sizeof((a)[0])
const struct ladder ladders[PROBE_COUNT] = {
	[PROBE_DWELL] = { "dwell", RUNGS(dwell_rungs), "no dwell, no oldest datagram, no target is found by itself" },
	[PROBE_RUNQ] = { "runq", RUNGS(runq_rungs), "starved and slow readers cannot be told apart" },
	[PROBE_SOFTIRQ] = { "softirq", RUNGS(softirq_rungs), "late softirqs go unseen" },
	[PROBE_DROPS] = { "drops", RUNGS(drops_rungs), "drops at the sockets go unseen" },
	[PROBE_RTP] = { "rtp", RUNGS(media_rungs), "loss and jitter before arrival go unseen" },
};

const void *ladder_bytes(enum probe_signal signal, size_t *ret_size)
{
	switch (signal) {
	case PROBE_DWELL:
		return dwell_bpf__elf_bytes(ret_size);
	case PROBE_RUNQ:
		return runq_bpf__elf_bytes(ret_size);
	case PROBE_SOFTIRQ:
		return softirq_bpf__elf_bytes(ret_size);
	case PROBE_DROPS:
		return drops_bpf__elf_bytes(ret_size);
	case PROBE_RTP:
		return media_bpf__elf_bytes(ret_size);
	case PROBE_COUNT:
		break;
	}
	return NULL;
}

const void *ladder_core_bytes(size_t *ret_size)
{
	return core_bpf__elf_bytes(ret_size);
}

/* Walk "signal=rung" or "rung" words. */
static const char *next_word(const char *p, char *signal, char *rung, size_t size)
{
	size_t n = strcspn(p, ",");
	const char *eq = memchr(p, '=', n);

	signal[0] = '\0';
	if (eq) {
		snprintf(signal, size, "%.*s", (int)(eq - p), p);
		snprintf(rung, size, "%.*s", (int)(n - (size_t)(eq + 1 - p)), eq + 1);
	} else {
		snprintf(rung, size, "%.*s", (int)n, p);
	}
	return p[n] ? p + n + 1 : NULL;
}

static bool ladder_has(const struct ladder *l, const char *rung)
{
	for (size_t i = 0; i < l->count; i++)
		if (!strcmp(l->rung[i].name, rung))
			return true;
	return false;
}

static const struct ladder *ladder_of(const char *signal, const char *rung)
{
	for (int i = 0; i < PROBE_COUNT; i++)
		if (signal[0] ? !strcmp(ladders[i].signal, signal) && (!strcmp(rung, "none") || ladder_has(&ladders[i], rung))
			      : ladder_has(&ladders[i], rung))
			return &ladders[i];
	return NULL;
}

static bool named(const char *list, const char *signal, const char *rung, bool *ret_mentioned)
{
	char s[32], r[32];
	bool hit = false;

	*ret_mentioned = false;
	for (const char *p = list; p && *p;) {
		const struct ladder *l;

		p = next_word(p, s, r, sizeof(s));
		l = ladder_of(s, r);
		if (!l || strcmp(l->signal, signal))
			continue;
		*ret_mentioned = true;
		hit = hit || !strcmp(r, rung);
	}
	return hit;
}

bool ladder_allows(const char *rungs, const char *signal, const char *rung)
{
	bool mentioned, hit = named(rungs, signal, rung, &mentioned);

	return hit || !mentioned;
}

bool ladder_muted(const char *signal, const char *rung)
{
#ifdef DWELLD_TEST_HOOKS
	bool mentioned;

	return named(getenv("DWELLD_TEST_MUTE_RUNG"), signal, rung, &mentioned);
#else
	(void)signal;
	(void)rung;
	return false;
#endif
}

int ladder_check(const char *rungs, struct diag *d)
{
	char s[32], r[32], all[256];
	size_t n = 0;
	int bad = 0;

	for (int i = 0; i < PROBE_COUNT; i++)
		for (size_t j = 0; j < ladders[i].count; j++)
			if (!j || strcmp(ladders[i].rung[j].name, ladders[i].rung[j - 1].name))
				n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s=%s", n ? ", " : "",
						      ladders[i].signal, ladders[i].rung[j].name);
	for (const char *p = rungs; p && *p;) {
		p = next_word(p, s, r, sizeof(s));
		if (!ladder_of(s, r))
			bad = diag_add(d, NULL, 0, "--rungs: no rung \"%s%s%s\"; expected some of: %s, or SIGNAL=none",
				       s, s[0] ? "=" : "", r, all);
	}
	return bad;
}
