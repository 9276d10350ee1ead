/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "load_clock.h"

#define PAYLOAD 200
#define WAIT_S 5

struct packet_events {
	struct ring_buffer *ring;
	pthread_t thread;
	clockid_t clock;
	sem_t reached;
	atomic_ullong seen, target;	/* events */
	atomic_bool stop;
};

/* ---- reader ---- */

static int on_event(void *context, void *data, size_t size)
{
	struct packet_events *e = context;

	(void)data;
	(void)size;
	if (atomic_fetch_add(&e->seen, 1) + 1 == atomic_load(&e->target))
		sem_post(&e->reached);
	return 0;
}

static void *read_events(void *context)
{
	struct packet_events *e = context;

	while (!atomic_load(&e->stop))
		ring_buffer__poll(e->ring, 100);
	return NULL;
}

int packet_events_open(int ring_fd, struct packet_events **ret)
{
	struct packet_events *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	sem_init(&e->reached, 0, 0);
	e->ring = ring_buffer__new(ring_fd, on_event, e, NULL);
	r = e->ring ? -pthread_create(&e->thread, NULL, read_events, e) : -errno;
	if (!r)
		r = -pthread_getcpuclockid(e->thread, &e->clock);
	if (r < 0) {
		ring_buffer__free(e->ring);
		free(e);
		return r;
	}
	*ret = e;
	return 0;
}

void packet_events_close(struct packet_events *e)
{
	if (!e)
		return;
	atomic_store(&e->stop, true);
	pthread_join(e->thread, NULL);
	ring_buffer__free(e->ring);
	sem_destroy(&e->reached);
	free(e);
}

uint64_t packet_events_count(const struct packet_events *e)
{
	return atomic_load(&e->seen);
}

/* Until the reader has seen `target` events: what it owes is part of the chunk. */
static int events_wait(struct packet_events *e)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	while (atomic_load(&e->seen) < atomic_load(&e->target))
		if (sem_timedwait(&e->reached, &until) < 0 && errno != EINTR)
			return -errno;
	while (sem_trywait(&e->reached) == 0)
		;
	return 0;
}

/* ---- sender and receiver ---- */

int packet_load_open(struct packet_load *l)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval deadline = { .tv_sec = WAIT_S };
	const int room = 1 << 20;	/* net.core.rmem_max cuts it: 200 datagrams fit into Debian's */
	socklen_t size = sizeof(a);

	*l = (struct packet_load){ .tx = -1 };
	l->rx = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (l->rx >= 0)
		l->tx = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (l->tx < 0 || setsockopt(l->rx, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) < 0 ||
	    setsockopt(l->rx, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)) < 0 ||
	    bind(l->rx, (struct sockaddr *)&a, size) < 0 || getsockname(l->rx, (struct sockaddr *)&a, &size) < 0 ||
	    connect(l->tx, (struct sockaddr *)&a, size) < 0) {
		const int r = -errno;

		packet_load_close(l);
		return r;
	}
	l->port = ntohs(a.sin_port);
	return 0;
}

void packet_load_close(struct packet_load *l)
{
	if (l->rx >= 0)
		close(l->rx);
	if (l->tx >= 0)
		close(l->tx);
}

/* What a video sender would send now, so that the media program does its full work: 90 kHz, one stream. */
static void rtp_stamp(struct packet_load *l, uint8_t *packet, uint64_t now_ns)
{
	const uint32_t head = htonl(0x80600000U | l->sequence++), time = htonl((uint32_t)(now_ns * 9 / 100000)), ssrc = htonl(1);

	memcpy(packet, &head, 4);
	memcpy(packet + 4, &time, 4);
	memcpy(packet + 8, &ssrc, 4);
}

static int chunk_run(struct packet_load *l)
{
	uint8_t packet[PAYLOAD] = { 0 }, got[PAYLOAD];

	for (unsigned int done = 0; done < l->chunk; done += l->depth) {
		const uint64_t now_ns = load_clock(CLOCK_MONOTONIC);

		for (unsigned int i = 0; i < l->depth; i++) {
			rtp_stamp(l, packet, now_ns);
			if (send(l->tx, packet, sizeof(packet), 0) != sizeof(packet))
				return errno ? -errno : -EIO;
		}
		for (unsigned int i = 0; i < l->depth; i++)
			if (recv(l->rx, got, sizeof(got), 0) != sizeof(got))
				return errno ? -errno : -EIO;
	}
	return 0;
}

static int chunk_measure(struct packet_load *l, struct packet_events *e, struct load_cost *ret)
{
	uint64_t wall = load_clock(CLOCK_MONOTONIC), cpu = load_clock(CLOCK_THREAD_CPUTIME_ID), reader = 0;
	int r;

	if (e) {
		reader = load_clock(e->clock);
		atomic_store(&e->target, atomic_load(&e->seen) + l->chunk);
	}
	r = chunk_run(l);
	if (r < 0)
		return r;
	cpu = load_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
	wall = load_clock(CLOCK_MONOTONIC) - wall;
	if (e) {
		r = events_wait(e);
		if (r < 0)
			return r;
		cpu += load_clock(e->clock) - reader;
	}
	ret->cpu_ns = (double)cpu / l->chunk;
	ret->wall_ns = (double)wall / l->chunk;
	return 0;
}

int packet_load_run(struct packet_load *l, struct packet_events *events, struct load_cost *ret)
{
	struct load_cost chunk[LOAD_CHUNKS];

	for (unsigned int i = 0; i < LOAD_CHUNKS; i++) {
		int r = chunk_measure(l, events, &chunk[i]);

		if (r < 0)
			return r;
	}
	load_median(chunk, ret);
	return 0;
}
