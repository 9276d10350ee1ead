/* SPDX-License-Identifier: GPL-2.0-or-later */
/* built-in rules: many random faults, each of which must be named right and first. */
#include "world.h"

#ifndef SEED
#define SEED 20261201U
#endif
#define RUNS 128 /* of each fault */

enum fault { STARVED, SLOW, LOSS, JITTER, FAULTS };
static const char *const wanted[FAULTS] = {"reader-starved", "reader-slow", "network-loss", "network-jitter"};

struct drawn {
	enum fault fault;
	unsigned int pps, streams;
	double stall_ms, duty, loss, jitter_ms;
};

static double between(double low, double high)
{
	return low + (high - low) * world_random();
}

static void draw(struct drawn *d, enum fault fault)
{
	double most;

	d->fault = fault;
	d->pps = (unsigned int)(50 * (1 + 99 * world_random() * world_random()));
	most = d->pps / 10.0 < 200 ? d->pps / 10.0 : 200; /* a stream has 10 packets/s or more */
	d->streams = (unsigned int)between(5, most + 0.99);
	d->stall_ms = between(30, 500);
	d->duty = between(0.1, 0.9);
	while (d->stall_ms * (1 - d->duty) / d->duty > 2000)
		d->duty = between(0.1, 0.9);
	d->loss = between(0.06, 0.30);
	d->jitter_ms = between(60, 200);
}

static void begin(const struct drawn *d)
{
	world.pps = d->pps;
	world.streams = d->streams;
	world.stream_pps = (double)d->pps / d->streams;
	world_run(11);
	cr_assert_eq(feed.total, 0, "%s", feed.log);
	world_mark();
	if (d->fault == STARVED || d->fault == SLOW) {
		world.bad = 1;
		world.wait_ns = (uint64_t)(d->stall_ms * 1e6);
		world.duty = d->duty;
		world.runq = d->fault == STARVED;
	}
	world.lossy = d->fault == LOSS ? d->streams : 0;
	world.loss = d->loss;
	world.late = d->fault == JITTER ? d->streams : 0;
	world.jitter_ms = d->jitter_ms;
}

/* Its seconds to the alert, or -1: another cause, another verdict, or none in time. */
static double judge(const struct drawn *d)
{
	const enum verdict verdict = d->fault < LOSS ? VERDICT_SERVER : VERDICT_NETWORK;
	char fire[64];
	double took;

	begin(d);
	snprintf(fire, sizeof(fire), "fire/%s", wanted[d->fault]);
	took = world_until(fire, 60);
	world_run(3);
	if (took < 0 || feed.count[EVENT_FIRE] != 1 || strcmp(world_cause(SFU), wanted[d->fault]) ||
	    feed_verdict(SFU) != verdict || engine_verdict(feed.engine) != verdict)
		return -1;
	return took;
}

static void print_wrong(const struct drawn *d, unsigned int run)
{
	printf("   WRONG run %u: %u packets/s, %u streams, stall %.0f ms in %.0f %%, loss %.1f %%, jitter "
	       "%.0f ms: %s\n",
	       run, d->pps, d->streams, d->stall_ms, d->duty * 100, d->loss * 100, d->jitter_ms,
	       world.events);
}

static void run_fault(enum fault fault)
{
	double worst = 0, sum = 0;
	unsigned int wrong = 0;
	struct drawn d;

	world_read(WORLD_SFU);
	for (unsigned int i = 0; i < RUNS; i++) {
		double took;

		world_begin(SEED + (unsigned int)fault + FAULTS * i);
		draw(&d, fault);
		took = judge(&d);
		if (took < 0) {
			print_wrong(&d, i);
			wrong++;
			continue;
		}
		sum += took;
		worst = took > worst ? took : worst;
	}
	printf("seed %u: 50-5000 packets/s, 5-200 streams of 10 packets/s or more; stalls of 30-500 ms in "
	       "10-90 %% of the time,\n"
	       "   2 s apart at most on average; loss of 6-30 %%, jitter of 60-200 ms\n"
	       "   %-16s %u runs, %u wrong, after %.1f s (mean), %.1f s (latest)\n",
	       SEED, wanted[fault], RUNS, wrong, sum / (RUNS - wrong ? RUNS - wrong : 1), worst);
	cr_expect_eq(wrong, 0);
	if (fault == STARVED)
		cr_expect(worst <= 8, "%g s", worst);
	if (fault >= LOSS)
		cr_expect(worst <= 16, "%g s", worst);
}

Test(rules_random, starved)
{
	run_fault(STARVED);
}

Test(rules_random, slow)
{
	run_fault(SLOW);
}

Test(rules_random, loss)
{
	run_fault(LOSS);
}

Test(rules_random, jitter)
{
	run_fault(JITTER);
}
