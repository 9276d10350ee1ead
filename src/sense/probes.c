/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/types.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/map_layout.h"
#include "bpf_object.h"
#include "host_paths.h"
#include "ladder.h"
#include "selftest.h"

#define MAP_BUDGET_BYTES (64ULL << 20)

struct probe {
	struct bpf_part part;
	const struct rung *rung;	/* NULL: none */
	bool proven;
	char reason[256];
};

struct probes {
	struct bpf_part core;
	struct probe probe[PROBE_COUNT];
	struct bpf_constants constants;
	struct selftest selftest;
	char selftest_why[96];		/* why there can be none, "" */
	unsigned int cpus, slots;
	int cgroup_fd;
	const char *rungs;
	uint64_t *scratch;		/* one map value for all CPUs */
};

static const char *const core_programs[] = { "core_sock_release", "core_process_exit", "core_process_exec", "core_owners", NULL };
/* without bpf_sock_from_file, before 5.11 */
static const char *const core_programs_old[] = { "core_sock_release", "core_process_exit", "core_process_exec", NULL };
/* without CAP_NET_ADMIN; rows of sockets are not given back, and without cgroup programs only fentry and kprobe fill them */
static const char *const core_programs_tracing[] = { "core_process_exit", "core_process_exec", "core_owners", NULL };

static void reason_add(struct probe *p, const char *rung, const char *why)
{
	size_t n = strlen(p->reason);

	if (n + 8 < sizeof(p->reason))
		snprintf(p->reason + n, sizeof(p->reason) - n, "%s%s: %s", n ? "; " : "", rung, why);
}

/* ---- shared maps ---- */

#define FIXED_BYTES                                                                                                    \
	(MAP_SOCKETS * (sizeof(struct map_socket) + 4ULL) + MAP_READERS * (sizeof(struct map_reader) + 4ULL) +          \
	 MAP_INFLIGHT * sizeof(struct map_inflight) + MAP_STREAMS * 256ULL + (2ULL << 20))

static unsigned long long slot_bytes(unsigned int cpus)
{
	return (MAP_DISTS * sizeof(struct map_hist) + sizeof(struct map_counts)) * cpus;
}

static unsigned int slots_for(unsigned int cpus)
{
	unsigned long long n = (MAP_BUDGET_BYTES - FIXED_BYTES) / slot_bytes(cpus);

	return n > MAP_TARGETS ? MAP_TARGETS : n < 8 ? 8 : (unsigned int)n;
}

void probes_plan(unsigned int *ret_slots, uint64_t *ret_bytes)
{
	int cpus = libbpf_num_possible_cpus();
	unsigned int n = cpus > 0 ? (unsigned int)cpus : 1, slots = slots_for(n);

	*ret_slots = slots;
	*ret_bytes = FIXED_BYTES + slot_bytes(n) * slots;
}

static int fill_rows(int fd, unsigned int rows)
{
	for (__u32 row = rows - 1; row >= 1; row--)	/* a stack: low rows come out first */
		if (bpf_map_update_elem(fd, NULL, &row, BPF_ANY) < 0)
			return -errno;
	return 0;
}

static int core_try(struct probes *p, const char *const *programs, char *why, size_t why_size)
{
	const char *const attached[] = { "core_sock_release", "core_process_exit", "core_process_exec", NULL };
	const bool release = programs != core_programs_tracing && p->cgroup_fd >= 0;
	size_t size;
	const void *bytes = ladder_core_bytes(&size);
	struct bpf_map *m;
	int r;

	r = bpf_part_open(bytes, size, "core", &p->core);
	if (r < 0)
		return r;
	bpf_part_constants(&p->core, &p->constants);
	bpf_object__for_each_map(m, p->core.object) {
		const char *name = bpf_map__name(m);

		if (!strcmp(name, "hists"))
			bpf_map__set_max_entries(m, p->slots * MAP_DISTS);
		if (!strcmp(name, "counts"))
			bpf_map__set_max_entries(m, p->slots);
		if (!strcmp(name, "threads"))
			bpf_map__set_autocreate(m, !p->constants.task_hash);
	}
	r = bpf_part_load(&p->core, programs, NULL, why, why_size);
	if (!r)
		r = fill_rows(bpf_part_map(&p->core, "free_sockets"), MAP_SOCKETS);
	if (!r)
		r = fill_rows(bpf_part_map(&p->core, "free_readers"), MAP_READERS);
	if (!r)
		r = bpf_part_attach(&p->core, release ? attached : attached + 1, p->cgroup_fd, why, why_size);
	if (r < 0)
		bpf_part_drop(&p->core);
	return r;
}

static int core_open(struct probes *p, bool sock_hash, bool task_hash, char *why, size_t why_size)
{
	struct map_control control = { .epoch = 1, .generation = 1 };
	__u32 key = 0, self = (__u32)getpid(), slot = MAP_SLOT_SELF;
	struct stat st;
	int r;

	bpf_part_drop(&p->core);
	p->constants.sock_hash = sock_hash;
	p->constants.task_hash = task_hash;
	r = core_try(p, core_programs, why, why_size);
	if (r < 0)
		r = core_try(p, core_programs_old, why, why_size);
	if (r < 0)
		r = core_try(p, core_programs_tracing, why, why_size);
	if (r < 0)
		return r;
	if (p->constants.pidns && !stat("/proc/self/ns/pid", &st)) {
		control.pidns_dev = st.st_dev;
		control.pidns_ino = st.st_ino;
	}
	bpf_map_update_elem(bpf_part_map(&p->core, "control"), &key, &control, BPF_ANY);
	/* in another pid namespace our own number is another: then self-test reads come as a new reader */
	bpf_map_update_elem(bpf_part_map(&p->core, "tgid_slot"), &self, &slot, BPF_ANY);
	return 0;
}

/* ---- proof ---- */

static uint64_t counted(const struct probes *p, const char *map, __u32 key, size_t word, size_t words)
{
	uint64_t sum = 0;

	memset(p->scratch, 0, words * 8 * p->cpus);
	if (bpf_map_lookup_elem(probes_map(p, map), &key, p->scratch) < 0)
		return 0;
	for (unsigned int c = 0; c < p->cpus; c++)
		sum += p->scratch[c * words + word];
	return sum;
}

static uint64_t self_count(const struct probes *p, enum map_count what)
{
	/* in a child pid namespace our reads are counted as `other` until the event is answered */
	return counted(p, "counts", MAP_SLOT_SELF, what, MAP_COUNTS) +
	       (p->constants.pidns ? counted(p, "counts", MAP_SLOT_OTHER, what, MAP_COUNTS) : 0);
}

static uint64_t hist_sum(const struct probes *p, const char *map, __u32 key, unsigned int from)
{
	uint64_t sum = 0;

	memset(p->scratch, 0, sizeof(struct map_hist) * p->cpus);
	if (bpf_map_lookup_elem(probes_map(p, map), &key, p->scratch) < 0)
		return 0;
	for (unsigned int c = 0; c < p->cpus; c++)
		for (unsigned int i = from; i < HIST_SLOTS; i++)
			sum += p->scratch[c * HIST_SLOTS + i];
	return sum;
}

/* At open the maps are new, so that all of self's samples are ours: each must agree with our own clock within a tenth. */
static int prove_dwell_values(const struct probes *p, uint64_t wait_ns, uint64_t longest_ns, char *why, size_t size)
{
	const __u32 key = MAP_SLOT_SELF * MAP_DISTS + MAP_DIST_DWELL;
	uint64_t all = hist_sum(p, "hists", key, 0);
	uint64_t slow = hist_sum(p, "hists", key, hist_slot(longest_ns + longest_ns / 10) + 1);
	uint64_t fast = all - hist_sum(p, "hists", key, hist_slot(wait_ns - wait_ns / 10));

	if (!slow && !fast)
		return 0;
	snprintf(why, size, "attached, but of %llu self-test samples %llu were too long and %llu too short",
		 (unsigned long long)all, (unsigned long long)slow, (unsigned long long)fast);
	return -ERANGE;
}

static int prove_dwell(struct probes *p, unsigned int packets, uint64_t wait_ns, char *why, size_t size)
{
	uint64_t before = self_count(p, MAP_COUNT_DIST_DWELL), got;
	struct selftest_clock clock;
	int r = selftest_round(&p->selftest, packets, wait_ns, &clock);

	if (r < 0) {
		snprintf(why, size, "self-test: %s", strerror(-r));
		return r;
	}
	got = self_count(p, MAP_COUNT_DIST_DWELL) - before;
	/* there `other` counts whatever else is read meanwhile, too */
	if (p->constants.pidns ? got < packets : got != packets) {
		snprintf(why, size, "attached, but of %u self-test datagrams it measured %llu", packets,
			 (unsigned long long)got);
		return -ENODATA;
	}
	return wait_ns && !p->constants.pidns ? prove_dwell_values(p, wait_ns, clock.longest_ns, why, size) : 0;
}

static int prove_grows(struct probes *p, const char *what, uint64_t before, uint64_t after, char *why, size_t size)
{
	(void)p;
	if (after > before)
		return 0;
	snprintf(why, size, "attached, but the self-test gave no %s", what);
	return -ENODATA;
}

/* The self-test thread sleeps between send and read: it has to be woken and scheduled. */
static int prove_runq(struct probes *p, char *why, size_t size)
{
	uint64_t before = self_count(p, MAP_COUNT_DIST_RUNQ);
	struct selftest_clock clock;

	probes_cover_threads(p);
	selftest_round(&p->selftest, 4, 200000, &clock);
	return prove_grows(p, "run-queue sample", before, self_count(p, MAP_COUNT_DIST_RUNQ), why, size);
}

static int prove_softirq(struct probes *p, char *why, size_t size)
{
	uint64_t before = hist_sum(p, "host_hists", MAP_HOST_SOFTIRQ_RUN, 0);
	struct selftest_clock clock;

	selftest_round(&p->selftest, 4, 0, &clock);
	return prove_grows(p, "softirq run", before, hist_sum(p, "host_hists", MAP_HOST_SOFTIRQ_RUN, 0), why, size);
}

/* Counted where the socket's row says; the row knows us once we have read. Without dwell nobody fills that in. */
static int prove_drops(struct probes *p, char *why, size_t size)
{
	uint64_t before = 0, after = 0;
	unsigned int sent, read;

	for (__u32 slot = MAP_SLOT_OTHER; slot <= MAP_SLOT_SELF; slot++)
		before += counted(p, "counts", slot, MAP_COUNT_DROP_RCVBUF, MAP_COUNTS);
	selftest_overflow(&p->selftest, &sent, &read);
	for (__u32 slot = MAP_SLOT_OTHER; slot <= MAP_SLOT_SELF; slot++)
		after += counted(p, "counts", slot, MAP_COUNT_DROP_RCVBUF, MAP_COUNTS);
	if (sent == read)
		return 0;	/* nothing overflowed: nothing to prove it by */
	return prove_grows(p, "drop", before, after, why, size);
}

static int prove_rtp(struct probes *p, char *why, size_t size)
{
	uint64_t before = 0, after = 0;
	struct selftest_clock clock;

	for (__u32 slot = MAP_SLOT_OTHER; slot <= MAP_SLOT_SELF; slot++)
		before += counted(p, "counts", slot, MAP_COUNT_DATAGRAMS, MAP_COUNTS);
	selftest_round(&p->selftest, 4, 0, &clock);
	for (__u32 slot = MAP_SLOT_OTHER; slot <= MAP_SLOT_SELF; slot++)
		after += counted(p, "counts", slot, MAP_COUNT_DATAGRAMS, MAP_COUNTS);
	return prove_grows(p, "datagram", before, after, why, size);
}

static int prove(struct probes *p, enum probe_signal signal, bool at_open, char *why, size_t size)
{
	if (p->selftest_why[0])
		return 0;	/* attached, and said to be unproven */
	switch (signal) {
	case PROBE_DWELL:
		return prove_dwell(p, SELFTEST_PACKETS, at_open ? 250000 : 0, why, size);
	case PROBE_RUNQ:
		return at_open ? prove_runq(p, why, size) : 0;
	case PROBE_SOFTIRQ:
		return prove_softirq(p, why, size);
	case PROBE_DROPS:
		return at_open ? prove_drops(p, why, size) : 0;
	case PROBE_RTP:
		return prove_rtp(p, why, size);
	case PROBE_COUNT:
		break;
	}
	return -EINVAL;
}

/* ---- the ladder ---- */

static int rung_load(struct probes *p, enum probe_signal signal, const struct rung *g, char *why, size_t size)
{
	struct probe *probe = &p->probe[signal];
	const char *const *programs = g->program;
	size_t bytes_size;
	const void *bytes = ladder_bytes(signal, &bytes_size);
	struct bpf_map *m;
	int r;

	r = bpf_part_open(bytes, bytes_size, ladders[signal].signal, &probe->part);
	if (r < 0)
		return r;
	bpf_part_constants(&probe->part, &p->constants);
	m = bpf_object__find_map_by_name(probe->part.object, "inflight");
	if (m && !strcmp(g->name, "fifo"))
		bpf_map__set_autocreate(m, false);
	r = bpf_part_load(&probe->part, programs, &p->core, why, size);
	if (!r)
		r = bpf_part_attach(&probe->part, programs, p->cgroup_fd, why, size);
	if (!r && ladder_muted(ladders[signal].signal, g->name))
		bpf_part_detach(&probe->part);
	return r;
}

/* The iterator belongs to runq's object but must be loaded with it; it is tried apart so that its lack spoils nothing. */
static int runq_load(struct probes *p, const struct rung *g, char *why, size_t size)
{
	struct rung with = *g;
	size_t n = 0;
	int r;

	while (with.program[n])
		n++;
	with.program[n] = "runq_threads";
	r = rung_load(p, PROBE_RUNQ, &with, why, size);
	if (r < 0)
		bpf_part_drop(&p->probe[PROBE_RUNQ].part);
	return r;
}

static int rung_try(struct probes *p, enum probe_signal signal, const struct rung *g, char *why, size_t size)
{
	struct probe *probe = &p->probe[signal];
	int r = 0;

	if (g->needs_task_storage && p->constants.task_hash) {
		snprintf(why, size, "no task storage on this kernel");
		return -EOPNOTSUPP;
	}
	if (g->needs_proof && p->selftest_why[0]) {
		snprintf(why, size, "may attach and measure nothing, and there is no self-test");
		return -ENODATA;
	}
	if (signal == PROBE_DWELL)
		r = core_open(p, g->sock_hash, g->task_hash, why, size);
	if (!r)
		r = signal == PROBE_RUNQ && g->needs_task_storage ? runq_load(p, g, why, size)
								  : rung_load(p, signal, g, why, size);
	if (!r)
		r = prove(p, signal, true, why, size);
	if (r < 0)
		bpf_part_drop(&probe->part);
	return r;
}

/* Whose an unread socket is (5.11 and later). */
static bool core_tells_owners(const struct probes *p)
{
	const struct bpf_program *owners = bpf_object__find_program_by_name(p->core.object, "core_owners");

	return owners && bpf_program__fd(owners) >= 0;
}

static void ladder_climb(struct probes *p, enum probe_signal signal)
{
	const struct ladder *l = &ladders[signal];
	struct probe *probe = &p->probe[signal];
	char why[256];

	for (size_t i = 0; i < l->count && !probe->rung; i++) {
		const struct rung *g = &l->rung[i];
		bool again = i + 1 < l->count && !strcmp(g->name, l->rung[i + 1].name);

		if (!ladder_allows(p->rungs, l->signal, g->name)) {
			if (!again)
				reason_add(probe, g->name, "not asked for");
			continue;
		}
		why[0] = '\0';
		if (rung_try(p, signal, g, why, sizeof(why)) == 0)
			probe->rung = g;
		else if (!again)
			reason_add(probe, g->name, why);
	}
	probe->proven = probe->rung && !p->selftest_why[0];
	if (probe->rung && p->selftest_why[0])
		reason_add(probe, probe->rung->name, p->selftest_why);
	if (probe->rung && probe->rung->note[0])
		reason_add(probe, probe->rung->name, probe->rung->note);
	if (signal == PROBE_DWELL && probe->rung && !core_tells_owners(p))
		reason_add(probe, "owners", "known from a socket's first read only on this kernel");
}

static void host_open(struct probes *p)
{
	char root[256];
	int r = selftest_open(&p->selftest);
	struct selftest_clock clock;

	if (!r)
		r = selftest_round(&p->selftest, 1, 0, &clock);
	if (r < 0)
		snprintf(p->selftest_why, sizeof(p->selftest_why), "not proven, no loopback for self-test packets (%s)",
			 strerror(-r));
	p->cgroup_fd = -1;
	if (!host_cgroup2_root(root, sizeof(root)))
		p->cgroup_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p->constants.pidns = !host_initial_pidns();
}

int probes_open(const struct probes_setup *setup, struct diag *d, struct probes **ret)
{
	struct probes *p = calloc(1, sizeof(*p));
	char why[256] = "";
	int r = 0, cpus;

	if (!p)
		return -ENOMEM;
	cpus = libbpf_num_possible_cpus();
	p->cpus = setup->cpus ? setup->cpus : cpus > 0 ? (unsigned int)cpus : 1;
	p->rungs = setup->rungs;
	p->slots = p->constants.slots = slots_for(p->cpus);
	p->scratch = calloc(p->cpus, sizeof(struct map_hist));
	if (!p->scratch) {
		free(p);
		return -ENOMEM;
	}
	host_open(p);
	ladder_climb(p, PROBE_DWELL);
	if (!p->core.object)
		r = core_open(p, false, false, why, sizeof(why));
	if (r < 0)
		r = core_open(p, true, true, why, sizeof(why));
	if (r < 0) {
		diag_add(d, NULL, 0, "BPF: the shared maps cannot be made: %s", why);
		probes_close(p);
		return r;
	}
	for (int i = PROBE_DWELL + 1; i < PROBE_COUNT; i++)
		ladder_climb(p, (enum probe_signal)i);
	*ret = p;
	return 0;
}

void probes_close(struct probes *p)
{
	if (!p)
		return;
	for (int i = 0; i < PROBE_COUNT; i++)
		bpf_part_drop(&p->probe[i].part);
	bpf_part_drop(&p->core);
	selftest_close(&p->selftest);
	if (p->cgroup_fd >= 0)
		close(p->cgroup_fd);
	free(p->scratch);
	free(p);
}

int probes_map(const struct probes *p, const char *name)
{
	int fd = bpf_part_map(&p->core, name);

	for (int i = 0; fd < 0 && i < PROBE_COUNT; i++)
		fd = bpf_part_map(&p->probe[i].part, name);
	return fd;
}

unsigned int probes_cpus(const struct probes *p)
{
	return p->cpus;
}

unsigned int probes_slots(const struct probes *p)
{
	return p->slots;
}

uint64_t probes_map_bytes(const struct probes *p)
{
	uint64_t sum = bpf_part_bytes(&p->core, p->cpus, NULL);

	for (int i = 0; i < PROBE_COUNT; i++)
		sum += bpf_part_bytes(&p->probe[i].part, p->cpus, &p->core);
	return sum;
}

const char *probes_unproven(const struct probes *p)
{
	return p->selftest_why;
}

bool probes_sock_hash(const struct probes *p)
{
	return p->constants.sock_hash;
}

void probes_describe(const struct probes *p, struct sample_probe *ret, uint32_t *ret_count)
{
	for (int i = 0; i < PROBE_COUNT; i++) {
		const struct probe *probe = &p->probe[i];
		struct sample_probe *out = &ret[i];

		memset(out, 0, sizeof(*out));
		snprintf(out->signal, sizeof(out->signal), "%s", ladders[i].signal);
		snprintf(out->rung, sizeof(out->rung), "%s", probe->rung ? probe->rung->name : "none");
		out->attached = probe->rung && (probe->proven || p->selftest_why[0]);
		out->exact = probe->rung && probe->rung->exact;
		out->bias_ns = probe->rung ? probe->rung->bias_ns : 0;
		snprintf(out->reason, sizeof(out->reason), "%s", probe->reason);
	}
	*ret_count = PROBE_COUNT;
}

void probes_retest(struct probes *p)
{
	char why[256] = "";

	for (int i = 0; i < PROBE_COUNT; i++) {
		struct probe *probe = &p->probe[i];

		if (!probe->rung || p->selftest_why[0])
			continue;
		if (prove(p, (enum probe_signal)i, false, why, sizeof(why)) == 0) {
			probe->proven = true;
		} else if (probe->proven) {
			probe->proven = false;
			reason_add(probe, probe->rung->name, why);
		}
	}
}

static struct bpf_link *iterator_of(const struct bpf_part *part, const char *name)
{
	const struct bpf_program *prog = part->object ? bpf_object__find_program_by_name(part->object, name) : NULL;

	if (!prog || bpf_program__fd(prog) < 0)
		return NULL;
	return bpf_program__attach_iter(prog, NULL);
}

int probes_owners(const struct probes *p)
{
	struct bpf_link *link = iterator_of(&p->core, "core_owners");
	int fd, r;

	if (!link)
		return -EOPNOTSUPP;
	fd = bpf_iter_create(bpf_link__fd(link));
	r = fd < 0 ? -errno : fd;
	bpf_link__destroy(link);
	return r;
}

void probes_cover_threads(const struct probes *p)
{
	const struct bpf_part *part = &p->probe[PROBE_RUNQ].part;
	char buf[64];
	int fd;

	for (unsigned int i = 0; i < part->link_count; i++) {
		fd = bpf_iter_create(bpf_link__fd(part->link[i]));
		if (fd < 0)
			continue;	/* not the iterator */
		while (read(fd, buf, sizeof(buf)) > 0)
			;
		close(fd);
	}
}

int probes_check_rungs(const char *rungs, struct diag *d)
{
	return ladder_check(rungs, d);
}
