/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "experiment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>
#include <bpf/bpf.h>

#include "bpf/map_layout.h"

int experiment_packets(struct experiment *e, const struct variant *v, struct load_cost *ret)
{
	e->packets->chunk = e->chunk;
	return packet_load_run(e->packets, v->parts & RIG_BIT(RIG_NAIVE) ? e->events : NULL, ret);
}

int experiment_switches(struct experiment *e, const struct variant *v, struct load_cost *ret)
{
	return switch_load_run(e->pair[v->watched], e->chunk, ret);
}

/* Histogram of bench.bpf.c's classic tracer. */
static uint64_t classic_samples(const struct rig *rig)
{
	uint32_t slot[64] = { 0 }, key = 0;
	uint64_t sum = 0;

	bpf_map_lookup_elem(rig_map(rig, "classic_hists"), &key, slot);
	for (size_t i = 0; i < sizeof(slot) / sizeof(slot[0]); i++)
		sum += slot[i];
	return sum;
}

static uint64_t proof_now(const struct experiment *e, enum proof proof)
{
	switch (proof) {
	case PROOF_NONE:
		break;
	case PROOF_DWELL:
		return rig_count(e->rig, MAP_COUNT_DIST_DWELL);
	case PROOF_RUNQ:
	case PROOF_UNWATCHED:
		return rig_count(e->rig, MAP_COUNT_DIST_RUNQ);
	case PROOF_SOFTIRQ:
		return rig_host_samples(e->rig, MAP_HOST_SOFTIRQ_RUN);
	case PROOF_DATAGRAMS:
		return rig_count(e->rig, MAP_COUNT_DATAGRAMS);
	case PROOF_EVENTS:
		return packet_events_count(e->events);
	case PROOF_CLASSIC:
		return classic_samples(e->rig);
	}
	return 0;
}

/* Units of load that a visit does. */
static uint64_t visit_units(const struct experiment *e)
{
	return (uint64_t)LOAD_CHUNKS * e->chunk * (e->packets ? 1 : 2);
}

static int visit(struct experiment *e, size_t i, struct load_cost *ret)
{
	const struct variant *v = &e->variant[i];
	uint64_t before = proof_now(e, v->proof);
	int r = rig_attach(e->rig, v->parts & e->rig->loaded);

	if (r < 0)
		return r;
	r = e->run(e, v, ret);
	rig_detach(e->rig);
	if (r < 0)
		snprintf(e->rig->why, sizeof(e->rig->why), "%s: %s", v->name, strerror(-r));
	e->grown[i] += proof_now(e, v->proof) - before;
	e->expected[i] += visit_units(e);
	return r;
}

static void shuffle(size_t *order, size_t n)
{
	for (size_t i = n - 1; i > 0; i--) {
		const size_t j = (size_t)random() % (i + 1), kept = order[i];

		order[i] = order[j];
		order[j] = kept;
	}
}

int experiment_run(struct experiment *e)
{
	size_t order[EXPERIMENT_VARIANTS];
	struct load_cost cost;

	for (size_t i = 0; i < e->variants; i++) {
		const unsigned int parts = e->variant[i].parts;

		order[i] = i;
		e->absent[i] = parts && (e->variant[i].required ? parts & ~e->rig->loaded : !(parts & e->rig->loaded));
	}
	/* one more, the first, is thrown away: rows, storages and caches are made in it */
	for (unsigned int round = 0; round <= e->rounds; round++) {
		shuffle(order, e->variants);
		for (size_t k = 0; k < e->variants; k++) {
			const size_t i = order[k];
			int r = e->absent[i] ? 0 : visit(e, i, &cost);

			if (r < 0)
				return r;
			if (round && !e->absent[i]) {
				e->cpu_ns[i][round - 1] = cost.cpu_ns;
				e->wall_ns[i][round - 1] = cost.wall_ns;
			}
			if (!round)
				e->grown[i] = e->expected[i] = 0;
		}
	}
	return 0;
}

void experiment_print(const struct experiment *e)
{
	printf("\n%s\n%u rounds in random order; ns of CPU time per %s; the difference is within a round, to no probe\n", e->title,
	       e->rounds, e->unit);
	printf("  %-34s %7s %7s %7s   %10s %7s %7s  %-17s %8s\n", "", "median", "q25", "q75", "difference", "q25", "q75",
	       "95 % interval", "wall");
	for (size_t i = 0; i < e->variants; i++) {
		struct stats own, over, wall;

		if (e->absent[i]) {
			printf("  %-34s not possible on this kernel\n", e->variant[i].name);
			continue;
		}
		stats_of(e->cpu_ns[i], e->rounds, &own);
		stats_of_differences(e->cpu_ns[i], e->cpu_ns[0], e->rounds, &over);
		stats_of(e->wall_ns[i], e->rounds, &wall);
		printf("  %-34s %7.0f %7.0f %7.0f", e->variant[i].name, own.median, own.q25, own.q75);
		if (i)
			printf("   %+10.0f %+7.0f %+7.0f  %+7.0f ..%+7.0f ", over.median, over.q25, over.q75, over.low,
			       over.high);
		else
			printf("   %10s %7s %7s  %7s   %7s ", "", "", "", "", "");
		printf("%8.0f\n", wall.median);
	}
}

bool experiment_proven(const struct experiment *e, size_t variant, char *ret_words, size_t size)
{
	const uint64_t grown = e->grown[variant], expected = e->expected[variant];
	bool proven = true;

	switch (e->variant[variant].proof) {
	case PROOF_NONE:
		break;
	case PROOF_DWELL:
	case PROOF_DATAGRAMS:
	case PROOF_EVENTS:
		proven = grown == expected;
		break;
	case PROOF_RUNQ:
	case PROOF_CLASSIC:
		proven = grown * 10 >= expected * 9;	/* others' threads may come between, or a switch be missed at attach */
		break;
	case PROOF_UNWATCHED:
		proven = grown * 100 <= expected;	/* the benchmark's own waiting thread */
		break;
	case PROOF_SOFTIRQ:
		proven = grown > 0;
		break;
	}
	snprintf(ret_words, size, "%s: %llu samples, %llu events were made", e->variant[variant].name,
		 (unsigned long long)grown, (unsigned long long)expected);
	return proven;
}
