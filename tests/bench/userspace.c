/* SPDX-License-Identifier: GPL-2.0-or-later */
/* userspace DWELLD READER SECONDS - what the daemon itself costs with 16 targets that all get traffic (50 RTP datagrams a second
 * each, the built-in rules, its usual tick): at most 0.5 % of a core and 16 MiB of RssAnon. What the probes cost in the
 * kernel is not in it. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host.h"
#include "stats.h"
#include "subject.h"

#define EXIT_SKIP 77
#define TARGETS 16
#define STEP_NS 20000000L
#define STEPS_PER_S 50
#define WARM_S 12	/* the windows of the rules are full then */
#define SEEN_S 30
#define CPU_LIMIT_PCT 0.5
#define RSS_LIMIT_KIB (16 * 1024)

static unsigned int passed, failed, skipped;

static void result(bool ok, const char *words)
{
	printf("%s %s\n", ok ? "ok" : "NOT OK", words);
	passed += ok;
	failed += !ok;
}

/* One second of traffic. */
static void second_pass(struct readers *readers, struct timespec *due)
{
	for (int i = 0; i < STEPS_PER_S; i++) {
		readers_send(readers);
		due->tv_nsec += STEP_NS;
		if (due->tv_nsec >= 1000000000L) {
			due->tv_nsec -= 1000000000L;
			due->tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL);
	}
}

/* The mean decides here, not the median: what comes once a minute is part of the cost. */
static void mean_of(const double *value, size_t n, struct stats *ret)
{
	double sum = 0, squares = 0, half;

	stats_of(value, n, ret);
	for (size_t i = 0; i < n; i++)
		sum += value[i];
	ret->median = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (value[i] - ret->median) * (value[i] - ret->median);
	half = 1.96 * sqrt(squares / (double)(n - 1) / (double)n);
	ret->low = ret->median - half;
	ret->high = ret->median + half;
}

static void judge(const double *pct, size_t n, uint64_t rss_kib, bool brief)
{
	enum stats_verdict verdict;
	char words[240];
	struct stats s;

	mean_of(pct, n, &s);
	verdict = stats_at_most(&s, CPU_LIMIT_PCT);
	snprintf(words, sizeof(words), "user space at %d targets: %.3f %% of a core (quartiles of single seconds %.3f, %.3f; 95 %% "
		 "interval %.3f .. %.3f), limit %.1f %%", TARGETS, s.median, s.q25, s.q75, s.low, s.high, CPU_LIMIT_PCT);
	if (verdict == STATS_UNDECIDED && brief) {
		printf("skip undecided %s: the interval holds the limit\n", words);
		skipped++;
	} else {
		result(verdict == STATS_PASSED, words);
	}
	snprintf(words, sizeof(words), "RssAnon at %d targets: %.2f MiB, limit %d MiB", TARGETS, (double)rss_kib / 1024,
		 RSS_LIMIT_KIB / 1024);
	result(rss_kib <= RSS_LIMIT_KIB, words);
}

static int measure(struct subject *s, struct readers *readers, unsigned int seconds)
{
	static double pct[STATS_ROUNDS];
	struct subject_figures before, after = { 0 };
	struct timespec due, from, to;
	struct host_load load;
	char words[120];
	int seen = 0, r = 0;

	clock_gettime(CLOCK_MONOTONIC, &due);
	for (int i = 0; i < WARM_S || (seen < TARGETS && i < SEEN_S); i++) {
		second_pass(readers, &due);
		seen = i + 1 < WARM_S ? 0 : subject_targets_seen(s, TARGETS);
	}
	snprintf(words, sizeof(words), "the daemon shows %d of %d targets with samples", seen, TARGETS);
	result(seen == TARGETS, words);
	host_load_begin(&load);
	r = subject_read(s, &before);
	for (unsigned int i = 0; !r && i < seconds; i++) {
		clock_gettime(CLOCK_MONOTONIC, &from);
		second_pass(readers, &due);
		r = subject_read(s, &after);
		clock_gettime(CLOCK_MONOTONIC, &to);
		pct[i] = 100.0 * (double)(after.cpu_ns - before.cpu_ns) /
			 ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec));
		before = after;
	}
	host_load_print(&load, seconds);
	if (!r)
		judge(pct, seconds, after.rss_anon_kib, seconds < 30);
	return r;
}

int main(int argc, char **argv)
{
	const unsigned int seconds = argc > 3 ? (unsigned int)strtoul(argv[3], NULL, 10) : 0;
	struct readers readers;
	struct subject s;
	int r;

	if (seconds < 3 || seconds > STATS_ROUNDS) {
		fprintf(stderr, "usage: %s DWELLD READER 3..%d\n", argv[0], STATS_ROUNDS);
		return 2;
	}
	if (geteuid()) {
		puts("skip: dwelld needs root\n0 passed, 0 failed, 1 skipped");
		return EXIT_SKIP;
	}
	r = readers_start(&readers, argv[2], TARGETS);
	if (!r) {
		r = subject_start(&s, argv[1], TARGETS, 0);
		if (!r) {
			r = measure(&s, &readers, seconds);
			subject_end(&s);
		}
		readers_end(&readers);
	}
	if (r < 0)
		result(false, strerror(-r));
	printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
