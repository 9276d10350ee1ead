/* SPDX-License-Identifier: GPL-2.0-or-later */
/* conserve.h - does what went into the queues equal what came out and what is still there? Layer: sense (pure).
 *
 * Units:  datagrams, cumulative. Two things mark the dwell rung as degraded: a balance that does not close for several ticks in a
 *         row (events were lost between the kernel and us), and more than 1 % of the last 10 s' datagrams that left a
 *         queue without a read we saw (healed) or were read without a stamp.
 * Holds:  degraded lasts until 10 s without either. {0} is a good start. */
#ifndef DWELLD_CONSERVE_H
#define DWELLD_CONSERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conserve_totals { uint64_t enqueued, read, unqueued, discarded, healed, unstamped, waiting; };
struct conserve {
	struct conserve_totals base;	/* when the current 10 s began */
	uint64_t base_ns, bad_ns;
	unsigned int open_ticks;	/* ticks in a row with a balance that does not close */
	bool degraded;
	char why[120];
};

/* Once a tick. rate-dependent slack: the counters are not read at one instant. */
void conserve_step(struct conserve *c, const struct conserve_totals *now, uint64_t now_ns);
#endif
