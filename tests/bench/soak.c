/* SPDX-License-Identifier: GPL-2.0-or-later */
/* soak DWELLD READER TICKS - the daemon driven at a tick of 1 ms, while programs that read UDP come and go: memory, descriptors
 * and map entries must not grow over TICKS ticks, which begin after some 2 000 others. DWELLD: a build with -Dtest_hooks=true. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "subject.h"

#define EXIT_SKIP 77
#define STEADY 4
#define FIRST_TICK 2000
#define FIRST_S 12	/* a stream is kept for 10 s: until then their number grows, and with it the memory that they touch */
#define STEP_NS 20000000L
#define STEPS_PER_SHORT 3	/* a short-lived reader every 60 ms */
#define REPORT_TICKS 3000
#define DEADLINE_S 240
/* Others on this host may open sockets meanwhile; a leak would show in hundreds. */
#define STRANGERS 48
/* Streams are kept for 10 s after their last datagram: those of so many short-lived readers, and a quarter again. */
#define STREAMS_KEPT (10 * 1000 / 60 * 5 / 4)
#define GONE 8	/* have just ended */
#define RSS_SLACK_KIB 256

static unsigned int passed, failed;

struct state { struct subject_figures figures; struct subject_maps maps; unsigned int born; };

static void result(bool ok, const char *words)
{
	printf("%s %s\n", ok ? "ok" : "NOT OK", words);
	passed += ok;
	failed += !ok;
}

static int state_read(const struct subject *s, unsigned int born, struct state *ret)
{
	int r = subject_read(s, &ret->figures);

	ret->born = born;
	if (!r)
		r = subject_maps_read(s, &ret->maps);
	if (!r)
		printf("  tick %6u: RssAnon %6llu KiB, %3u fds, %4u processes (%u gone), %4u streams, %4u sockets, %4u readers; %4u "
		       "short-lived readers so far\n", ret->maps.ticks, (unsigned long long)ret->figures.rss_anon_kib, ret->figures.fds,
		       ret->maps.tgids, ret->maps.dead, ret->maps.streams, ret->maps.sockets, ret->maps.readers, born);
	fflush(stdout);
	return r;
}

/* 20 ms of traffic; at times somebody new. */
static int step(struct readers *readers, struct timespec *due, unsigned int *born)
{
	static unsigned int steps;
	pid_t pid;
	int r = 0;

	readers_send(readers);
	if (++steps % STEPS_PER_SHORT == 0) {
		r = readers_short(readers, 3, &pid);
		++*born;
	}
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (unsigned int i = 0; i < readers->count; i++)
			if (readers->pid[i] == pid)
				r = -ECHILD;	/* a steady one died: nothing would be measured */
	due->tv_nsec += STEP_NS;
	if (due->tv_nsec >= 1000000000L) {
		due->tv_nsec -= 1000000000L;
		due->tv_sec++;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL);
	return r;
}

/* Until the daemon has done `ticks` after the first state: that is taken at FIRST_TICK, or when streams have begun to expire. */
static int drive(const struct subject *s, struct readers *readers, uint32_t ticks, struct state state[2])
{
	uint32_t next = FIRST_TICK, end = UINT32_MAX;
	struct subject_maps maps;
	struct timespec due, began;
	unsigned int born = 0;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &due);
	began = due;
	while (!r) {
		for (int i = 0; !r && i < 25; i++)
			r = step(readers, &due, &born);
		if (!r)
			r = subject_maps_read(s, &maps);
		if (r || due.tv_sec - began.tv_sec > DEADLINE_S)
			return r ? r : -ETIMEDOUT;
		if ((maps.ticks < next && maps.ticks < end) || due.tv_sec - began.tv_sec < FIRST_S)
			continue;
		r = state_read(s, born, &state[end == UINT32_MAX ? 0 : 1]);
		if (maps.ticks >= end)
			return r;
		if (end == UINT32_MAX)
			end = maps.ticks + ticks;
		next = maps.ticks + REPORT_TICKS;
	}
	return r;
}

static void flat(const char *what, uint64_t first, uint64_t last, uint64_t allowed)
{
	char words[160];

	snprintf(words, sizeof(words), "%s: %llu at first, %llu in the end, at most %llu allowed", what, (unsigned long long)first,
		 (unsigned long long)last, (unsigned long long)allowed);
	result(last <= allowed, words);
}

static void judge(const struct state *first, const struct state *last)
{
	const struct subject_maps *a = &first->maps, *b = &last->maps;
	char words[120];

	snprintf(words, sizeof(words), "%u short-lived readers came and went, more than any slack", last->born - first->born);
	result(last->born - first->born > 2 * STRANGERS, words);
	flat("RssAnon KiB", first->figures.rss_anon_kib, last->figures.rss_anon_kib, first->figures.rss_anon_kib + RSS_SLACK_KIB);
	flat("descriptors", first->figures.fds, last->figures.fds, first->figures.fds);
	flat("processes known", a->tgids, b->tgids, a->tgids + STRANGERS);
	flat("processes known that are gone", a->dead, b->dead, GONE);
	flat("sockets known", a->sockets, b->sockets, a->sockets + STRANGERS);
	flat("reader threads known", a->readers, b->readers, a->readers + STRANGERS);
	flat("streams known", a->streams, b->streams, STEADY + STREAMS_KEPT + STRANGERS);
}

static int soak(const char *daemon, struct readers *readers, uint32_t ticks)
{
	struct state state[2] = { 0 };
	struct subject s;
	int r = subject_start(&s, daemon, 0, 1000);

	if (r < 0)
		return r;
	r = drive(&s, readers, ticks, state);
	if (!r)
		judge(&state[0], &state[1]);
	subject_end(&s);
	return r;
}

int main(int argc, char **argv)
{
	const uint32_t ticks = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	struct readers readers;
	int r;

	if (ticks < FIRST_TICK) {
		fprintf(stderr, "usage: %s DWELLD READER TICKS (from %d)\n", argv[0], FIRST_TICK);
		return 2;
	}
	if (geteuid()) {
		puts("skip: dwelld needs root\n0 passed, 0 failed, 1 skipped");
		return EXIT_SKIP;
	}
	r = readers_start(&readers, argv[2], STEADY);
	if (!r) {
		r = soak(argv[1], &readers, ticks);
		readers_end(&readers);
	}
	if (r < 0)
		result(false, strerror(-r));
	printf("%u passed, %u failed, 0 skipped\n", passed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
