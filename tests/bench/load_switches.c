/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "load.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "load_clock.h"

enum { PING, PONG };

struct switch_load {
	pthread_t thread[2];
	clockid_t clock[2];
	int pipe[2][2];		/* [PING]: from ping to pong */
	int cpu;
	bool watched, stop;
	unsigned int rounds;
	sem_t ready, start, done;
	struct load_cost chunk[LOAD_CHUNKS];
	int error;
};

/* Reading a datagram makes dwelld watch a thread. */
static int become_watched(void)
{
	struct packet_load l;
	struct load_cost ignored;
	int r = packet_load_open(&l);

	if (r < 0)
		return r;
	l.depth = l.chunk = 1;
	r = packet_load_run(&l, NULL, &ignored);
	packet_load_close(&l);
	return r;
}

static int thread_begin(struct switch_load *l)
{
	cpu_set_t only;
	int r = l->watched ? become_watched() : 0;

	CPU_ZERO(&only);
	CPU_SET(l->cpu, &only);
	if (!r && sched_setaffinity(0, sizeof(only), &only) < 0)
		r = -errno;
	if (r < 0)
		l->error = r;
	sem_post(&l->ready);
	return r;
}

static void *pong(void *context)
{
	struct switch_load *l = context;
	char byte;

	if (thread_begin(l) < 0)
		return NULL;
	while (read(l->pipe[PING][0], &byte, 1) == 1 && write(l->pipe[PONG][1], &byte, 1) == 1)
		;
	return NULL;
}

static int chunk_measure(struct switch_load *l, struct load_cost *ret)
{
	const uint64_t wall = load_clock(CLOCK_MONOTONIC);
	const uint64_t cpu = load_clock(CLOCK_THREAD_CPUTIME_ID) + load_clock(l->clock[PONG]);
	char byte = 0;

	for (unsigned int i = 0; i < l->rounds; i++)
		if (write(l->pipe[PING][1], &byte, 1) != 1 || read(l->pipe[PONG][0], &byte, 1) != 1)
			return errno ? -errno : -EIO;
	ret->cpu_ns = (double)(load_clock(CLOCK_THREAD_CPUTIME_ID) + load_clock(l->clock[PONG]) - cpu) / (2.0 * l->rounds);
	ret->wall_ns = (double)(load_clock(CLOCK_MONOTONIC) - wall) / (2.0 * l->rounds);
	return 0;
}

static void *ping(void *context)
{
	struct switch_load *l = context;

	if (thread_begin(l) < 0)
		return NULL;
	for (;;) {
		while (sem_wait(&l->start) < 0)
			;
		if (l->stop)
			return NULL;
		for (unsigned int i = 0; i < LOAD_CHUNKS && !l->error; i++)
			l->error = chunk_measure(l, &l->chunk[i]);
		sem_post(&l->done);
	}
}

int switch_load_open(int cpu, bool watched, struct switch_load **ret)
{
	void *(*const body[2])(void *) = { ping, pong };
	struct switch_load *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->cpu = cpu;
	l->watched = watched;
	sem_init(&l->ready, 0, 0);
	sem_init(&l->start, 0, 0);
	sem_init(&l->done, 0, 0);
	if (pipe(l->pipe[PING]) < 0 || pipe(l->pipe[PONG]) < 0) {
		free(l);
		return -errno;
	}
	for (int i = PONG; i >= PING; i--) {
		r = -pthread_create(&l->thread[i], NULL, body[i], l);
		if (!r)
			r = -pthread_getcpuclockid(l->thread[i], &l->clock[i]);
		if (r < 0)
			return r;	/* the benchmark ends: no thread of it is left */
		while (sem_wait(&l->ready) < 0)
			;
	}
	if (l->error)
		return l->error;
	*ret = l;
	return 0;
}

void switch_load_close(struct switch_load *l)
{
	if (!l)
		return;
	l->stop = true;
	sem_post(&l->start);
	pthread_join(l->thread[PING], NULL);
	close(l->pipe[PING][1]);	/* pong reads the end */
	pthread_join(l->thread[PONG], NULL);
	close(l->pipe[PING][0]);
	close(l->pipe[PONG][0]);
	close(l->pipe[PONG][1]);
	free(l);
}

int switch_load_run(struct switch_load *l, unsigned int rounds, struct load_cost *ret)
{
	l->rounds = rounds;
	sem_post(&l->start);
	while (sem_wait(&l->done) < 0)
		;
	if (!l->error)
		load_median(l->chunk, ret);
	return l->error;
}
