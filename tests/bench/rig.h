/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rig.h - the BPF programs that the benchmark compares, all loaded once; each variant is a set of parts, attached and
 * detached per round. dwelld's parts are its real objects, through its own loader and on the rung that its own ladder takes.
 *
 * Ownership: rig_open loads, rig_close detaches and frees.
 * Errors:    negative errno with words in rig->why; a part that cannot be loaded here leaves its bit out of rig->loaded. */
#ifndef DWELLD_BENCH_RIG_H
#define DWELLD_BENCH_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sense/bpf_object.h"
#include "sense/probes.h"

enum rig_part {
	RIG_CORE,
	RIG_SIGNAL,	/* + enum probe_signal */
	RIG_EMPTY_CORE = RIG_SIGNAL + PROBE_COUNT,
	RIG_EMPTY,	/* + enum probe_signal */
	RIG_NAIVE = RIG_EMPTY + PROBE_COUNT,
	RIG_CLASSIC,
	RIG_PARTS
};
#define RIG_BIT(part) (1U << (part))
#define RIG_OWN(signal) (RIG_BIT(RIG_CORE) | RIG_BIT(RIG_SIGNAL + (signal)))
#define RIG_OWN_ALL (RIG_BIT(RIG_EMPTY_CORE) - 1)
#define RIG_EMPTY_ALL (RIG_OWN_ALL << RIG_EMPTY_CORE)

#define RIG_SLOT 5	/* the target that this process is */

struct rig {
	struct bpf_part part[RIG_PARTS];
	const char *program[RIG_PARTS][8];	/* NULL-terminated */
	char rung[PROBE_COUNT][24];		/* "none": not measured on this kernel */
	char why[256];
	unsigned int loaded;			/* RIG_BITs */
	int cgroup_fd;
};

/* port: of the socket that the naive programs look at. */
int rig_open(struct rig *rig, uint16_t port);
void rig_close(struct rig *rig);
/* All bits must be loaded. */
int rig_attach(struct rig *rig, unsigned int parts);
void rig_detach(struct rig *rig);
/* fd of a map of any loaded part. */
int rig_map(const struct rig *rig, const char *name);
/* Sum over CPUs of counts[RIG_SLOT].n[what] (enum map_count). */
uint64_t rig_count(const struct rig *rig, unsigned int what);
/* Samples in host_hists[dist] so far. */
uint64_t rig_host_samples(const struct rig *rig, uint32_t dist);
#endif
