/* SPDX-License-Identifier: GPL-2.0-or-later */
/* traffic.h - real datagrams with their send time inside, and a receiver that keeps its own account of each.
 *
 * The sender and the receiver are processes of their own. Units: nanoseconds of CLOCK_MONOTONIC. */
#ifndef TESTS_BPF_TRAFFIC_H
#define TESTS_BPF_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum traffic_read {
	READ_RECV, READ_RECVMSG, READ_RECVMMSG, READ_READ, READ_PEEK, READ_URING, READ_NEVER, READ_CLOSE
};

struct traffic {
	const char *name;
	enum traffic_read read;
	int family;			/* AF_INET, AF_INET6 */
	bool dual_stack, connected, gro, filter_odd, netns;
	unsigned int packets, senders;	/* in all; 0 senders: 1 */
	unsigned int gap_us;		/* between datagrams of one sender; 0: as fast as it goes */
	unsigned int stall_ms, stall_every;	/* the receiver sleeps so long before each so many reads */
	bool hold_until_sent;		/* the receiver reads nothing before all was sent */
	unsigned int hold_ms;		/* the receiver waits once, before its first read */
	unsigned int pause_after;	/* the sender stops there until it is told again */
	int rcvbuf;			/* 0: default */
	bool may_lose;			/* overflow: what was not read was dropped */
	bool two_producers;
};

#define TRAFFIC_MAX 20000
struct traffic_result {			/* in memory shared by all three processes */
	volatile uint32_t reads;		/* by the receiver, after the warm-up */
	volatile uint32_t sent;
	volatile uint64_t batch_ns;		/* longest recvmmsg */
	volatile int skipped;			/* errno of what this machine lacks */
	volatile int failed;			/* errno */
	volatile uint64_t own[TRAFFIC_MAX];	/* receiver's now - sender's stamp, per read */
};

struct traffic_run { pid_t receiver, sender; int go, done, quit; struct traffic_result *result; };

/* Start the receiver and send it two warm-up datagrams, which it has read when this returns. */
int traffic_start(const struct traffic *t, struct traffic_run *ret);
/* Let the traffic run to its end. The receiver still has its socket open when this returns. */
int traffic_go(struct traffic_run *r);
/* End both processes. */
void traffic_end(struct traffic_run *r);
uint64_t traffic_now_ns(void);
int traffic_ns_compare(const void *a, const void *b);
#endif
