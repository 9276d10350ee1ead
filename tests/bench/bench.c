/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bench [--short] [--rounds N] - what the probes cost, beside empty programs on the same hooks and beside the simple ways to
 * measure the same. Prints tables, then gates; ends with "N passed, N failed, N skipped" and exit 1 when a gate is broken.
 *
 * A gate is judged by the 95 % interval of its ratio. One that holds the limit is undecided: in the short form that is a
 * skip, in the full benchmark a failure; it is never passed. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "experiment.h"
#include "host.h"

#define EXIT_SKIP 77

struct bench {
	bool brief;
	unsigned int rounds;
	unsigned int passed, failed, skipped;
	struct rig rig;
	struct packet_load packets;
	struct packet_events *events;
	struct switch_load *pair[2];
};

enum { P_NONE, P_EMPTY, P_DWELL, P_RUNQ, P_SOFTIRQ, P_DROPS, P_RTP, P_ALL, P_NAIVE };
static const struct variant packet_variants[] = {
	[P_NONE] = { "no probe", 0, PROOF_NONE, false, false },
	[P_EMPTY] = { "empty programs on the same hooks", RIG_EMPTY_ALL, PROOF_NONE, false, false },
	[P_DWELL] = { "dwelld, dwell alone", RIG_OWN(PROBE_DWELL), PROOF_DWELL, false, true },
	[P_RUNQ] = { "dwelld, runq alone", RIG_OWN(PROBE_RUNQ), PROOF_NONE, false, true },
	[P_SOFTIRQ] = { "dwelld, softirq alone", RIG_OWN(PROBE_SOFTIRQ), PROOF_SOFTIRQ, false, true },
	[P_DROPS] = { "dwelld, drops alone", RIG_OWN(PROBE_DROPS), PROOF_NONE, false, true },
	[P_RTP] = { "dwelld, rtp alone", RIG_OWN(PROBE_RTP), PROOF_DATAGRAMS, false, true },
	[P_ALL] = { "dwelld, all signals", RIG_OWN_ALL, PROOF_DWELL, false, false },
	[P_NAIVE] = { "naive (hash, event per datagram)", RIG_BIT(RIG_NAIVE), PROOF_EVENTS, false, true },
};

/* Of dwelld's programs only those of runq hang on a hook of this path. */
enum { S_NONE, S_NONE_WATCHED, S_EMPTY, S_UNWATCHED, S_WATCHED, S_CLASSIC };
static const struct variant switch_variants[] = {
	[S_NONE] = { "no probe", 0, PROOF_NONE, false, false },
	[S_NONE_WATCHED] = { "no probe, the watched threads", 0, PROOF_NONE, true, false },
	[S_EMPTY] = { "empty programs on the same hooks", RIG_OWN(PROBE_RUNQ) << RIG_EMPTY_CORE, PROOF_NONE, false, true },
	[S_UNWATCHED] = { "dwelld, threads not watched", RIG_OWN(PROBE_RUNQ), PROOF_UNWATCHED, false, true },
	[S_WATCHED] = { "dwelld, threads watched", RIG_OWN(PROBE_RUNQ), PROOF_RUNQ, true, true },
	[S_CLASSIC] = { "classic (two hashes, all threads)", RIG_BIT(RIG_CLASSIC), PROOF_CLASSIC, false, true },
};

/* ---- gates ---- */

struct gate {
	const char *name;
	size_t value, base, other, other_base;	/* variants: (value - base) / (other - other_base) */
	double limit;
};

static void gate_judge(struct bench *b, const struct experiment *e, const struct gate *g)
{
	static const char *const word[] = { "ok", "NOT OK", "undecided" };
	enum stats_verdict verdict;
	struct stats s;

	if (e->absent[g->value] || e->absent[g->other]) {
		printf("skip %s: one side is not possible on this kernel\n", g->name);
		b->skipped++;
		return;
	}
	stats_of_ratio(e->cpu_ns[g->value], e->cpu_ns[g->base], e->cpu_ns[g->other], e->cpu_ns[g->other_base], e->rounds, &s);
	verdict = stats_at_most(&s, g->limit);
	if (verdict == STATS_UNDECIDED && b->brief) {
		printf("skip ");
		b->skipped++;
	} else if (verdict == STATS_UNDECIDED) {
		printf("NOT OK ");
		b->failed++;
	} else {
		b->passed += verdict == STATS_PASSED;
		b->failed += verdict == STATS_FAILED;
	}
	printf("%s %s: ratio %.3f, 95 %% interval %.3f .. %.3f, limit %.3f%s\n", word[verdict], g->name, s.median, s.low, s.high,
	       g->limit, verdict == STATS_UNDECIDED ? ": the interval holds the limit, more rounds or a quieter machine would tell" : "");
}

/* Told, not judged. */
static void ratio_print(const struct experiment *e, const struct gate *g)
{
	struct stats s;

	if (e->absent[g->value] || e->absent[g->other])
		return;
	stats_of_ratio(e->cpu_ns[g->value], e->cpu_ns[g->base], e->cpu_ns[g->other], e->cpu_ns[g->other_base], e->rounds, &s);
	printf("   %s: ratio %.3f, 95 %% interval %.3f .. %.3f (no gate)\n", g->name, s.median, s.low, s.high);
}

static void proofs_judge(struct bench *b, const struct experiment *e)
{
	char words[160];

	for (size_t i = 0; i < e->variants; i++) {
		bool proven;

		if (e->absent[i] || e->variant[i].proof == PROOF_NONE)
			continue;
		proven = experiment_proven(e, i, words, sizeof(words));
		printf("%s measured while timed: %s\n", proven ? "ok" : "NOT OK", words);
		b->passed += proven;
		b->failed += !proven;
	}
}

/* ---- experiments ---- */

static int experiment_do(struct bench *b, struct experiment *e)
{
	const time_t began = time(NULL);
	struct host_load load;
	int r;

	e->rig = &b->rig;
	e->rounds = b->rounds;
	host_load_begin(&load);
	r = experiment_run(e);
	if (r < 0) {
		printf("NOT OK %s: %s\n", e->title, b->rig.why);
		b->failed++;
		return r;
	}
	experiment_print(e);
	host_load_print(&load, (unsigned int)(time(NULL) - began));
	proofs_judge(b, e);
	fflush(stdout);
	return 0;
}

static void bench_packets(struct bench *b, unsigned int depth, bool gated)
{
	static const struct gate gate = { "packet path, (dwelld - empty) / (naive - empty) in CPU time",
					  P_ALL, P_EMPTY, P_NAIVE, P_EMPTY, 1.0 / 6 };
	struct experiment *e = calloc(1, sizeof(*e));
	char title[120];

	if (!e)
		return;
	snprintf(title, sizeof(title), "Packet path: RTP of 200 bytes over loopback, sent and received by one thread, %u queued", depth);
	e->title = title;
	e->unit = "datagram";
	e->variant = packet_variants;
	e->variants = sizeof(packet_variants) / sizeof(packet_variants[0]);
	e->run = experiment_packets;
	e->packets = &b->packets;
	e->events = b->events;
	e->chunk = b->brief ? 600 : 1000;
	b->packets.depth = depth;
	if (!experiment_do(b, e)) {
		if (gated)
			gate_judge(b, e, &gate);
		else
			ratio_print(e, &gate);
	}
	free(e);
}

static void bench_switches(struct bench *b)
{
	static const struct gate gate[] = {
		{ "context switch, watched / classic", S_WATCHED, S_NONE_WATCHED, S_CLASSIC, S_NONE, 1.0 },
		{ "context switch, not watched / classic", S_UNWATCHED, S_NONE, S_CLASSIC, S_NONE, 0.6 },
	};
	struct experiment *e = calloc(1, sizeof(*e));

	if (!e)
		return;
	e->title = "Context switches: two threads on one CPU pass a byte to and fro through pipes";
	e->unit = "switch";
	e->variant = switch_variants;
	e->variants = sizeof(switch_variants) / sizeof(switch_variants[0]);
	e->run = experiment_switches;
	e->pair[0] = b->pair[0];
	e->pair[1] = b->pair[1];
	e->chunk = b->brief ? 400 : 800;
	if (!experiment_do(b, e))
		for (size_t i = 0; i < sizeof(gate) / sizeof(gate[0]); i++)
			gate_judge(b, e, &gate[i]);
	free(e);
}

static int bench_open(struct bench *b)
{
	int r = packet_load_open(&b->packets), cpu;

	if (r < 0)
		return r;
	r = rig_open(&b->rig, b->packets.port);
	if (!r && b->rig.loaded & RIG_BIT(RIG_NAIVE))
		r = packet_events_open(rig_map(&b->rig, "naive_events"), &b->events);
	cpu = load_pin();	/* after the reader was made: that one stays free */
	if (r < 0 || cpu < 0)
		return r < 0 ? r : cpu;
	r = rig_attach(&b->rig, RIG_OWN(PROBE_DWELL));
	if (!r)
		r = switch_load_open(cpu, true, &b->pair[1]);
	rig_detach(&b->rig);
	if (!r)
		r = switch_load_open(cpu, false, &b->pair[0]);
	return r;
}

static void print_host(const struct bench *b)
{
	struct utsname u;
	char model[128];

	uname(&u);
	host_cpu_model(model, sizeof(model));
	printf("%s, %ld CPUs, %s %s %s; rungs:", model, sysconf(_SC_NPROCESSORS_ONLN), u.sysname, u.release, u.machine);
	for (int i = 0; i < PROBE_COUNT; i++) {
		static const char *const name[PROBE_COUNT] = { "dwell", "runq", "softirq", "drops", "rtp" };

		printf(" %s=%s", name[i], b->rig.rung[i]);
	}
	printf("\n");
}

static int options_read(int argc, char **argv, struct bench *b)
{
	static const struct option option[] = { { "short", no_argument, NULL, 's' },
						{ "rounds", required_argument, NULL, 'r' }, { 0 } };
	int c;

	b->rounds = 60;
	while ((c = getopt_long(argc, argv, "", option, NULL)) != -1) {
		if (c == 's') {
			b->brief = true;
			b->rounds = 24;
		} else if (c == 'r') {
			b->rounds = (unsigned int)strtoul(optarg, NULL, 10);
		}
		if (c == '?' || b->rounds < 6 || b->rounds > STATS_ROUNDS) {
			fprintf(stderr, "usage: %s [--short] [--rounds 6..%d]\n", argv[0], STATS_ROUNDS);
			return -1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct bench b;
	int r;

	if (options_read(argc, argv, &b) < 0)
		return 2;
	if (geteuid()) {
		puts("skip: the benchmark loads BPF programs and needs root\n0 passed, 0 failed, 1 skipped");
		return EXIT_SKIP;
	}
	srandom((unsigned int)time(NULL));
	r = bench_open(&b);
	if (r < 0) {
		printf("NOT OK cannot start: %s %s\n0 passed, 1 failed, 0 skipped\n", strerror(-r), b.rig.why);
		return EXIT_FAILURE;
	}
	print_host(&b);
	bench_packets(&b, 8, true);
	if (!b.brief)
		bench_packets(&b, 200, false);
	bench_switches(&b);
	for (int i = 0; i < 2; i++)
		switch_load_close(b.pair[i]);
	packet_events_close(b.events);
	rig_close(&b.rig);
	packet_load_close(&b.packets);
	printf("\n%u passed, %u failed, %u skipped\n", b.passed, b.failed, b.skipped);
	return b.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
