/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/types.h>
#include <bpf/bpf.h>

#include "bench.skel.h"
#include "bpf/map_layout.h"
#include "sense/host_paths.h"
#include "sense/ladder.h"

static int part_load(struct rig *rig, unsigned int index, const struct bpf_part *core)
{
	int r = bpf_part_load(&rig->part[index], rig->program[index], core, rig->why, sizeof(rig->why));

	if (r < 0) {
		bpf_part_drop(&rig->part[index]);
		return r;
	}
	rig->loaded |= RIG_BIT(index);
	return 0;
}

/* ---- dwelld's own ---- */

/* What the daemon's ladder takes on this host, proven by its self-tests. */
static int ask_ladder(struct rig *rig)
{
	struct sample_probe said[PROBE_COUNT];
	struct probes_setup setup = { 0 };
	struct probes *probes = NULL;
	struct diag *d = calloc(1, sizeof(*d));
	uint32_t count = 0;
	int r = d ? probes_open(&setup, d, &probes) : -ENOMEM;

	free(d);
	if (r < 0) {
		snprintf(rig->why, sizeof(rig->why), "the shared maps cannot be made: %s", strerror(-r));
		return r;
	}
	probes_describe(probes, said, &count);
	for (uint32_t i = 0; i < count; i++)
		snprintf(rig->rung[i], sizeof(rig->rung[i]), "%s", said[i].attached ? said[i].rung : "none");
	probes_close(probes);
	return 0;
}

static int fill_rows(int fd, unsigned int rows)
{
	for (__u32 row = rows - 1; row >= 1; row--)
		if (bpf_map_update_elem(fd, NULL, &row, BPF_ANY) < 0)
			return -errno;
	return 0;
}

static int core_load(struct rig *rig, const struct bpf_constants *constants)
{
	static const char *const programs[] = { "core_sock_release", "core_process_exit", "core_process_exec" };
	struct map_control control = { .epoch = 1, .generation = 1 };
	__u32 zero = 0, self = (__u32)getpid(), slot = RIG_SLOT;
	struct bpf_part *core = &rig->part[RIG_CORE];
	size_t size;
	const void *bytes = ladder_core_bytes(&size);
	int r = bpf_part_open(bytes, size, "core", core);

	if (r < 0)
		return r;
	memcpy(rig->program[RIG_CORE], programs, sizeof(programs));
	bpf_part_constants(core, constants);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(core->object, "hists"), constants->slots * MAP_DISTS);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(core->object, "counts"), constants->slots);
	bpf_map__set_autocreate(bpf_object__find_map_by_name(core->object, "threads"), !constants->task_hash);
	r = part_load(rig, RIG_CORE, NULL);
	if (!r)
		r = fill_rows(bpf_part_map(core, "free_sockets"), MAP_SOCKETS);
	if (!r)
		r = fill_rows(bpf_part_map(core, "free_readers"), MAP_READERS);
	if (!r && (bpf_map_update_elem(bpf_part_map(core, "control"), &zero, &control, BPF_ANY) < 0 ||
		   bpf_map_update_elem(bpf_part_map(core, "tgid_slot"), &self, &slot, BPF_ANY) < 0))
		r = -errno;
	return r;
}

static int signal_load(struct rig *rig, enum probe_signal signal, const struct rung *g,
		       const struct bpf_constants *constants)
{
	const unsigned int index = RIG_SIGNAL + signal;
	struct bpf_part *part = &rig->part[index];
	struct bpf_map *m;
	size_t size;
	const void *bytes = ladder_bytes(signal, &size);
	int r = bpf_part_open(bytes, size, ladders[signal].signal, part);

	if (r < 0)
		return r;
	memcpy(rig->program[index], g->program, sizeof(g->program));
	bpf_part_constants(part, constants);
	m = bpf_object__find_map_by_name(part->object, "inflight");
	if (m && !strcmp(g->name, "fifo"))
		bpf_map__set_autocreate(m, false);
	return part_load(rig, index, &rig->part[RIG_CORE]);
}

/* Several rows may carry the rung's name: the first that loads, as in the ladder. */
static int dwell_load(struct rig *rig, struct bpf_constants *constants)
{
	const struct ladder *l = &ladders[PROBE_DWELL];
	int r = -ENOENT;

	for (size_t i = 0; i < l->count; i++) {
		if (strcmp(l->rung[i].name, rig->rung[PROBE_DWELL]))
			continue;
		constants->sock_hash = l->rung[i].sock_hash;
		constants->task_hash = l->rung[i].task_hash;
		bpf_part_drop(&rig->part[RIG_CORE]);
		r = core_load(rig, constants);
		if (!r)
			r = signal_load(rig, PROBE_DWELL, &l->rung[i], constants);
		if (!r)
			return 0;
	}
	return r;
}

static void others_load(struct rig *rig, const struct bpf_constants *constants)
{
	for (int s = PROBE_DWELL + 1; s < PROBE_COUNT; s++)
		for (size_t i = 0; i < ladders[s].count && !(rig->loaded & RIG_BIT(RIG_SIGNAL + s)); i++)
			if (!strcmp(ladders[s].rung[i].name, rig->rung[s]))
				signal_load(rig, (enum probe_signal)s, &ladders[s].rung[i], constants);
}

/* ---- what it is compared with ---- */

/* Each part is the whole object with some of its programs, and of its maps those that they use. */
static int bench_part_open(struct rig *rig, unsigned int index, const char *maps)
{
	size_t size;
	const void *bytes = bench_bpf__elf_bytes(&size);
	int r = bpf_part_open(bytes, size, "bench", &rig->part[index]);
	struct bpf_map *m;

	if (r < 0)
		return r;
	bpf_object__for_each_map(m, rig->part[index].object)
		if (!bpf_map__is_internal(m))
			bpf_map__set_autocreate(m, !strncmp(bpf_map__name(m), maps, strlen(maps)));
	return 0;
}

static const char *empty_for(const struct bpf_object *bench, const char *section)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, bench)
		if (!strncmp(bpf_program__name(p), "empty_", 6) && !strcmp(bpf_program__section_name(p), section))
			return bpf_program__name(p);
	return NULL;
}

/* The same hooks as dwelld's own part, in the same order. */
static int empty_load(struct rig *rig, unsigned int own)
{
	const unsigned int index = own + RIG_EMPTY_CORE;
	int r = bench_part_open(rig, index, "empty_");

	for (size_t i = 0; !r && rig->program[own][i]; i++) {
		const struct bpf_program *p = bpf_object__find_program_by_name(rig->part[own].object, rig->program[own][i]);

		rig->program[index][i] = empty_for(rig->part[index].object, bpf_program__section_name(p));
		if (!rig->program[index][i]) {
			snprintf(rig->why, sizeof(rig->why), "bench.bpf.c has no empty program for %s",
				 bpf_program__section_name(p));
			r = -ENOENT;
		}
	}
	return r ? r : part_load(rig, index, NULL);
}

static int naive_load(struct rig *rig, uint16_t port)
{
	static const char *const programs[] = { "naive_begin", "naive_end" };
	struct bpf_map *m;
	size_t size = 0;
	void *constants = NULL;
	int r = bench_part_open(rig, RIG_NAIVE, "naive_");

	if (r < 0)
		return r;
	bpf_object__for_each_map(m, rig->part[RIG_NAIVE].object)
		if (strstr(bpf_map__name(m), ".rodata"))
			constants = (void *)bpf_map__initial_value(m, &size);	/* const before libbpf 1.4 */
	if (!constants || size < sizeof(port))
		return -ENOENT;
	memcpy(constants, &port, sizeof(port));
	memcpy(rig->program[RIG_NAIVE], programs, sizeof(programs));
	return part_load(rig, RIG_NAIVE, NULL);
}

static int classic_load(struct rig *rig)
{
	static const char *const programs[] = { "classic_wakeup", "classic_wakeup_new", "classic_switch" };
	int r = bench_part_open(rig, RIG_CLASSIC, "classic_");

	if (r < 0)
		return r;
	memcpy(rig->program[RIG_CLASSIC], programs, sizeof(programs));
	return part_load(rig, RIG_CLASSIC, NULL);
}

int rig_open(struct rig *rig, uint16_t port)
{
	struct bpf_constants constants = { 0 };
	char root[256];
	uint64_t bytes;
	int r;

	*rig = (struct rig){ .cgroup_fd = -1 };
	if (!host_cgroup2_root(root, sizeof(root)))
		rig->cgroup_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = ask_ladder(rig);
	if (r < 0)
		return r;
	probes_plan(&constants.slots, &bytes);
	r = dwell_load(rig, &constants);
	if (r < 0)
		return r;
	others_load(rig, &constants);
	for (unsigned int own = RIG_CORE; own < RIG_EMPTY_CORE; own++) {
		r = rig->loaded & RIG_BIT(own) ? empty_load(rig, own) : 0;
		if (r < 0)
			return r;
	}
	/* absent here: their gates are skipped */
	naive_load(rig, port);
	classic_load(rig);
	return 0;
}

void rig_close(struct rig *rig)
{
	for (unsigned int i = RIG_PARTS; i-- > 0;)
		bpf_part_drop(&rig->part[i]);
	if (rig->cgroup_fd >= 0)
		close(rig->cgroup_fd);
}

int rig_attach(struct rig *rig, unsigned int parts)
{
	for (unsigned int i = 0; i < RIG_PARTS; i++) {
		int r = 0;

		if (parts & RIG_BIT(i))
			r = bpf_part_attach(&rig->part[i], rig->program[i], rig->cgroup_fd, rig->why, sizeof(rig->why));
		if (r < 0) {
			rig_detach(rig);
			return r;
		}
	}
	return 0;
}

void rig_detach(struct rig *rig)
{
	for (unsigned int i = RIG_PARTS; i-- > 0;)
		bpf_part_detach(&rig->part[i]);
}

int rig_map(const struct rig *rig, const char *name)
{
	int fd = -ENOENT;

	for (unsigned int i = 0; fd < 0 && i < RIG_PARTS; i++)
		fd = bpf_part_map(&rig->part[i], name);
	return fd;
}

static uint64_t summed(int fd, uint32_t key, size_t words, size_t first, size_t last)
{
	const int cpus = libbpf_num_possible_cpus();
	uint64_t *all = calloc((size_t)(cpus > 0 ? cpus : 1) * words, sizeof(*all)), sum = 0;

	if (all && bpf_map_lookup_elem(fd, &key, all) == 0)
		for (size_t c = 0; c < (size_t)cpus; c++)
			for (size_t w = first; w <= last; w++)
				sum += all[c * words + w];
	free(all);
	return sum;
}

uint64_t rig_count(const struct rig *rig, unsigned int what)
{
	return summed(rig_map(rig, "counts"), RIG_SLOT, MAP_COUNTS, what, what);
}

uint64_t rig_host_samples(const struct rig *rig, uint32_t dist)
{
	return summed(rig_map(rig, "host_hists"), dist, HIST_SLOTS, 0, HIST_SLOTS - 1);
}
