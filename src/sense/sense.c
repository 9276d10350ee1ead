/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sense.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "bpf_source.h"
#include "host_paths.h"
#include "ladder.h"
#include "probes.h"
#include "proc_source.h"
#include "stream_source.h"
#include "targets.h"

#define SECOND_NS 1000000000ULL
#define OWNERS_EVERY_NS (5 * SECOND_NS)
#define RETEST_EVERY_NS (60 * SECOND_NS)
#define REFRESH_PER_TICK 2	/* processes looked at again each tick */
#define SUSPEND_NS (SECOND_NS / 2)

struct sense {
	struct probes *probes;		/* NULL: no BPF here */
	struct bpf_source *bpf;
	struct stream_source *streams;
	struct proc_source *proc;
	struct targets *targets;
	struct ring_buffer *ring;
	char no_bpf[256];		/* why there are no probes */
	bool first, unowned, new_process;
	uint64_t owners_ns, retest_ns, read_ns, lost_processes;
	int64_t suspended_ns;		/* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
	uint64_t now_ns;
};

static int on_new_reader(void *context, void *data, size_t size)
{
	const struct map_new_reader *e = data;
	struct sense *s = context;
	bool changed = false;

	if (size >= sizeof(*e))
		targets_learn(s->targets, e->tgid, e->ns_tgid, &changed);
	if (changed)
		s->new_process = true;
	return 0;
}

static int bpf_open(struct sense *s, const struct sense_setup *setup, struct diag *d)
{
	const struct probes_setup ps = { .rungs = setup->rungs, .cpus = setup->cpus };
	struct diag *own = calloc(1, sizeof(*own));
	int r;

	if (!own)
		return -ENOMEM;
	r = probes_open(&ps, own, &s->probes);
	if (r < 0)
		snprintf(s->no_bpf, sizeof(s->no_bpf), "%.250s",
			 own->count ? own->entry[0].text : strerror(-r));
	free(own);
	if (r < 0) {
		s->probes = NULL;
		return 0;
	}
	(void)d;
	r = bpf_source_new(s->probes, &s->bpf);
	if (!r)
		s->ring = ring_buffer__new(probes_map(s->probes, "new_readers"), on_new_reader, s, NULL);
	return r;
}

static void say_missing(const struct sense *s, struct diag *d)
{
	struct sample_probe row[SAMPLE_PROBES];
	char missing[160];
	uint32_t n = 0;

	if (host_bpf_missing(missing, sizeof(missing)))
		diag_warn(d, NULL, 0, "BPF: %s", missing);
	if (!s->probes) {
		diag_warn(d, NULL, 0, "no probes at all (%s): every signal of the kernel reads unknown", s->no_bpf);
		return;
	}
	if (host_cgroup2_root(missing, sizeof(missing)) < 0)
		diag_warn(d, NULL, 0, "no cgroup2 is mounted: rtp reads unknown, and dwell needs fentry or kprobe");
	if (probes_unproven(s->probes)[0])
		diag_warn(d, NULL, 0, "self-test: %s; what the probes read is taken on trust", probes_unproven(s->probes));
	probes_describe(s->probes, row, &n);
	for (uint32_t i = 0; i < n; i++)
		if (!row[i].attached)
			diag_warn(d, NULL, 0, "probe %s: no rung works, %s (%s)", row[i].signal, ladders[i].lost,
				  row[i].reason);
}

static int64_t suspended_now(void)
{
	struct timespec boot, mono;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	return (boot.tv_sec - mono.tv_sec) * 1000000000LL + boot.tv_nsec - mono.tv_nsec;
}

int sense_open(const struct model *m, const struct sense_setup *setup, struct diag *d, struct sense **ret)
{
	struct sense *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->first = s->unowned = true;
	s->suspended_ns = suspended_now();
	r = bpf_open(s, setup, d);
	if (!r)
		r = targets_new(m, s->probes ? probes_slots(s->probes) : SAMPLE_TARGETS,
				s->probes ? probes_map(s->probes, "tgid_slot") : -1, NULL, &s->targets);
	if (!r)
		r = stream_source_new(s->probes ? probes_map(s->probes, "streams") : -1, &s->streams);
	if (!r)
		r = proc_source_new(setup->root, &s->proc);
	if (r < 0) {
		sense_close(s);
		return r;
	}
	say_missing(s, d);
	*ret = s;
	return 0;
}

void sense_close(struct sense *s)
{
	if (!s)
		return;
	ring_buffer__free(s->ring);
	bpf_source_free(s->bpf);
	stream_source_free(s->streams);
	proc_source_free(s->proc);
	targets_free(s->targets);
	probes_close(s->probes);
	free(s);
}

int sense_fd(const struct sense *s)
{
	return s->ring ? ring_buffer__epoll_fd(s->ring) : -1;
}

static void new_processes(struct sense *s)
{
	if (!s->new_process)
		return;
	s->new_process = false;
	bpf_source_place(s->bpf, s->targets, s->now_ns);
	bpf_source_generation(s->bpf);
	probes_cover_threads(s->probes);
}

void sense_dispatch(struct sense *s, uint64_t now_ns)
{
	s->now_ns = now_ns;
	if (!s->ring)
		return;
	ring_buffer__consume(s->ring);
	new_processes(s);
}

/* Sockets with datagrams that nobody has read: whose are they? */
static void owners_read(struct sense *s, uint64_t now_ns)
{
	struct map_owner o[64];
	bool changed = false;
	ssize_t n;
	int fd = probes_owners(s->probes);

	if (fd < 0)
		return;
	while ((n = read(fd, o, sizeof(o))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(o[0]); i++)
			if (bpf_source_has(s->bpf, &o[i]))
				bpf_source_owner(s->bpf, &o[i],
						 targets_owner(s->targets, o[i].tgid, &changed), now_ns);
	close(fd);
	s->new_process = s->new_process || changed;
	new_processes(s);
}

/* A balance that does not close is no reason to be silent, but the numbers are no longer exact. */
static void conserved(const struct sense *s, struct sample_probe *dwell)
{
	const struct conserve *c = bpf_source_conserve(s->bpf);
	char why[sizeof(dwell->reason)];

	if (!c->degraded || !dwell->attached)
		return;
	dwell->exact = false;
	snprintf(why, sizeof(why), "%s%s%.120s", c->why, dwell->reason[0] ? "; " : "", dwell->reason);
	memcpy(dwell->reason, why, sizeof(why));
}

static void read_bpf(struct sense *s, uint64_t now_ns, struct sample *ret)
{
	uint64_t recycled;
	bool slow_turn = now_ns - s->owners_ns >= OWNERS_EVERY_NS;

	sense_dispatch(s, now_ns);
	if (targets_refresh(s->targets, REFRESH_PER_TICK))
		bpf_source_generation(s->bpf);
	s->unowned = bpf_source_place(s->bpf, s->targets, s->now_ns) || s->unowned;
	if (slow_turn) {
		s->owners_ns = now_ns;
		if (s->unowned)
			owners_read(s, now_ns);
		probes_cover_threads(s->probes);
		s->unowned = false;
	}
	if (now_ns - s->retest_ns >= RETEST_EVERY_NS) {
		if (s->retest_ns)
			probes_retest(s->probes);
		s->retest_ns = now_ns;
	}
	probes_describe(s->probes, ret->probe, &ret->probe_count);
	recycled = targets_recycled(s->targets);
	for (unsigned int i = 0; recycled; i++, recycled >>= 1)
		if (recycled & 1)
			stream_source_forget(s->streams, i);
	targets_describe(s->targets, ret->target);
	bpf_source_read(s->bpf, now_ns, ret);
	stream_source_read(s->streams, now_ns, bpf_source_sockets(s->bpf), ret);
	for (unsigned int i = SAMPLE_OTHER; i < SAMPLE_TARGETS; i++) {
		uint64_t media[2];

		bpf_source_media(s->bpf, i, media);
		ret->target[i].media = stream_source_media(s->streams, now_ns, i, media);
	}
	conserved(s, &ret->probe[PROBE_DWELL]);
	if (ret->lost_count < SAMPLE_LOST) {
		snprintf(ret->lost[ret->lost_count].name, sizeof(ret->lost[0].name), "target_slots");
		ret->lost[ret->lost_count++].count = targets_no_slot(s->targets);
	}
}

static void describe_nothing(const struct sense *s, struct sample *ret)
{
	ret->probe_count = PROBE_COUNT;
	for (int i = 0; i < PROBE_COUNT; i++) {
		struct sample_probe *p = &ret->probe[i];

		memset(p, 0, sizeof(*p));
		snprintf(p->signal, sizeof(p->signal), "%s", ladders[i].signal);
		snprintf(p->rung, sizeof(p->rung), "none");
		snprintf(p->reason, sizeof(p->reason), "%.250s", s->no_bpf);
	}
	targets_describe(s->targets, ret->target);
}

void sense_read(struct sense *s, uint64_t now_ns, struct sample *ret)
{
	int64_t suspended = suspended_now();
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	ret->now_ns = now_ns;
	ret->wall_us = (uint64_t)wall.tv_sec * 1000000 + (uint64_t)wall.tv_nsec / 1000;
	ret->gap = s->first || suspended - s->suspended_ns > (int64_t)SUSPEND_NS;
	s->first = false;
	s->suspended_ns = suspended;
	if (s->probes)
		read_bpf(s, now_ns, ret);
	else
		describe_nothing(s, ret);
	proc_source_read(s->proc, now_ns, ret);
}

void sense_reload(struct sense *s, const struct model *m)
{
	targets_reload(s->targets, m);
	if (s->bpf)
		bpf_source_generation(s->bpf);
	s->owners_ns = 0;
	s->unowned = true;
}

void sense_cgroup(const struct sense *s, unsigned int slot, char *buf, size_t size)
{
	snprintf(buf, size, "%s", targets_cgroup(s->targets, slot));
}

void sense_ports(const struct sense *s, unsigned int slot, char *buf, size_t size)
{
	buf[0] = '\0';
	if (s->bpf)
		bpf_source_ports(s->bpf, slot, buf, size);
}

void sense_self(struct sense *s, uint64_t now_ns, struct proc_self *ret)
{
	proc_source_self(s->proc, now_ns, ret);
}
