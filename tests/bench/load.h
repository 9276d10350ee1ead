/* SPDX-License-Identifier: GPL-2.0-or-later */
/* load.h - the two loads that probes are measured under. Each visit does the load in a few chunks and answers the median
 * chunk, so that one interrupt or preemption in it does not count.
 *
 * Units:  ns per datagram or per context switch. CPU time is that of the threads that do the load, kernel part included
 *         (loopback's softirq runs in the sender), and of the naive programs' reader. Wall time is the load's alone.
 * Errors: 0 or negative errno. */
#ifndef DWELLD_BENCH_LOAD_H
#define DWELLD_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

struct load_cost { double cpu_ns, wall_ns; };

#define LOAD_CHUNKS 8

/* ---- datagrams: send and receive in one thread over loopback, RTP of 200 bytes ---- */

struct packet_load {
	int rx, tx;
	uint16_t port;
	uint16_t sequence;
	unsigned int depth;	/* datagrams queued before they are read */
	unsigned int chunk;	/* datagrams of a chunk, a multiple of depth */
};
int packet_load_open(struct packet_load *l);
void packet_load_close(struct packet_load *l);
/* events: the ring buffer of the naive programs is read by a thread and its CPU counted. */
struct packet_events;
int packet_load_run(struct packet_load *l, struct packet_events *events, struct load_cost *ret);

/* The naive programs' reader: a thread on any CPU, woken by the kernel. */
int packet_events_open(int ring_fd, struct packet_events **ret);
void packet_events_close(struct packet_events *e);
uint64_t packet_events_count(const struct packet_events *e);

/* ---- context switches: two threads on one CPU pass a byte to and fro through pipes ---- */

struct switch_load;
/* watched: both threads read one datagram from a socket of their own before anything else; dwelld must be attached. */
int switch_load_open(int cpu, bool watched, struct switch_load **ret);
void switch_load_close(struct switch_load *l);
/* rounds: to and fro, of a chunk; each is two switches. */
int switch_load_run(struct switch_load *l, unsigned int rounds, struct load_cost *ret);

/* Bind the calling thread to the last CPU that it may use; its number, or negative errno. */
int load_pin(void);
#endif
