/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rig.h - what the demo's programs share: the clock, the stamped RTP packet, a histogram, a real-time wish.
 *
 * Units:  nanoseconds of CLOCK_MONOTONIC; all programs run on one host, so the stamps of one are the age in another.
 * Errors: functions answer 0 or a negative errno; rig_die ends the program. */
#ifndef DEMO_RIG_H
#define DEMO_RIG_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bpf/hist_layout.h"

#define RIG_NS 1000000000ULL
#define RIG_RTP_HEADER 12
#define RIG_MIN_PACKET (RIG_RTP_HEADER + 16)	/* header, magic, stamp */
#define RIG_MAX_PACKET 1400
#define RIG_MAGIC 0x6477656c6c64656dULL		/* a packet of the demo's own sender */
#define RIG_STREAMS 128

struct rig_rtp {
	uint8_t payload_type;
	bool marker;
	uint16_t seq;
	uint32_t timestamp, ssrc;
	uint64_t stamp_ns;	/* when it was sent */
};

/* Latencies since the last reset; at most 3.2 % off, the maximum is exact. */
struct rig_hist {
	uint64_t slot[HIST_SLOTS], count, max_ns, sum_ns;
};

static inline uint64_t rig_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * RIG_NS + (uint64_t)t.tv_nsec;
}

static inline uint64_t rig_now(void)
{
	return rig_clock(CLOCK_MONOTONIC);
}

static inline void rig_hist_add(struct rig_hist *h, uint64_t ns)
{
	h->slot[hist_slot(ns)]++;
	h->count++;
	h->sum_ns += ns;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

/* share 0..1; 0 when there is nothing in it. */
uint64_t rig_hist_percentile(const struct rig_hist *h, double share);
void rig_hist_merge(struct rig_hist *into, const struct rig_hist *from);

/* buf holds at least RIG_MIN_PACKET bytes. */
void rig_rtp_write(uint8_t *buf, const struct rig_rtp *p);
/* -EINVAL when it is no packet of the demo's sender. */
int rig_rtp_read(const uint8_t *buf, size_t length, struct rig_rtp *ret);

/* SCHED_FIFO at this priority (1..99), else the best niceness; answers what it got: "fifo" or "other". */
const char *rig_hurry(int priority);
/* cpu < 0: leave it. A CPU that does not exist is no error: the programs work unpinned too. */
void rig_pin(int cpu);
/* "10.0.0.1:5004"; dies when it is not one. */
struct sockaddr_in rig_address(const char *text);
/* A decimal number in low..high, or death with the option's name. */
long rig_number(const char *option, const char *text, long low, long high);
/* A UDP socket with a large receive buffer (root passes rmem_max), bound to address. */
int rig_udp_socket(const struct sockaddr_in *address, int rcvbuf_bytes);
/* KILL when the parent ends, so that a killed demo leaves no sender, no relay and no busy CPU behind. */
void rig_die_with_parent(void);
/* TERM and INT set *stop and interrupt system calls. */
void rig_stop_on_signals(volatile bool *stop);
_Noreturn void rig_die(const char *what);
#endif
