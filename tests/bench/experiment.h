/* SPDX-License-Identifier: GPL-2.0-or-later */
/* experiment.h - variants of probes under one load: in every round each of them once, in a random order, so that what the
 * machine does meanwhile meets them all alike and differences within a round can be compared.
 *
 * Errors: experiment_run answers a negative errno with words in rig->why, or 0. */
#ifndef DWELLD_BENCH_EXPERIMENT_H
#define DWELLD_BENCH_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "load.h"
#include "rig.h"
#include "stats.h"

#define EXPERIMENT_VARIANTS 10

/* What must have grown while a variant was attached, or the figure is that of a probe that did nothing. */
enum proof { PROOF_NONE, PROOF_DWELL, PROOF_RUNQ, PROOF_UNWATCHED, PROOF_SOFTIRQ, PROOF_DATAGRAMS, PROOF_EVENTS, PROOF_CLASSIC };

struct variant {
	const char *name;
	unsigned int parts;	/* RIG_BITs; those not loaded on this kernel are left out */
	enum proof proof;
	bool watched;		/* context switches: by the watched pair */
	bool required;		/* all parts must be loaded, else the variant is absent */
};

struct experiment {
	const char *title, *unit;
	const struct variant *variant;
	size_t variants;
	struct rig *rig;
	int (*run)(struct experiment *e, const struct variant *v, struct load_cost *ret);
	struct packet_load *packets;
	struct packet_events *events;
	struct switch_load *pair[2];	/* [watched] */
	unsigned int chunk;		/* datagrams, or to and fro */
	unsigned int rounds;
	/* results */
	bool absent[EXPERIMENT_VARIANTS];
	uint64_t grown[EXPERIMENT_VARIANTS], expected[EXPERIMENT_VARIANTS];
	double cpu_ns[EXPERIMENT_VARIANTS][STATS_ROUNDS], wall_ns[EXPERIMENT_VARIANTS][STATS_ROUNDS];
};

int experiment_packets(struct experiment *e, const struct variant *v, struct load_cost *ret);
int experiment_switches(struct experiment *e, const struct variant *v, struct load_cost *ret);

int experiment_run(struct experiment *e);
/* Variant 0 is the one without probes. */
void experiment_print(const struct experiment *e);
/* Did the variant's proof grow as it should? Words for the report in *ret_words. True for PROOF_NONE. */
bool experiment_proven(const struct experiment *e, size_t variant, char *ret_words, size_t size);
#endif
