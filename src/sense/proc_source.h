/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proc_source.h - the host's own counters from /proc and /sys, once per tick: CPU time, backlog, network cards. Layer: sense.
 *
 * Units:     counters are cumulative since the first read and never fall: a part that vanishes (a CPU, a card) keeps what it
 *            had, one that appears starts from where it stands, and a part that fell is taken as it is from there on.
 * Ownership: files stay open between reads; proc_source_free closes them.
 * Errors:    a file that cannot be read or understood clears its known bits in that sample, and is tried again at the next. */
#ifndef DWELLD_PROC_SOURCE_H
#define DWELLD_PROC_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/sample.h"

#define PROC_SOURCE_CARDS_NS 5000000000ULL	/* how often /sys/class/net is listed anew */

struct proc_source;

struct proc_self {
	bool cpu_known;		/* false until a second has passed */
	double cpu_share;	/* of one CPU, over the last second or more */
	bool rss_known;
	uint64_t rss_anon_bytes;
};

/* root: put before /proc and /sys, for tests; NULL or "" is the host. -ENOMEM. */
int proc_source_new(const char *root, struct proc_source **ret);
void proc_source_free(struct proc_source *p);	/* NULL is fine */
/* Fills host_counter and host_known of *sample. */
void proc_source_read(struct proc_source *p, uint64_t now_ns, struct sample *sample);
/* This process. */
void proc_source_self(struct proc_source *p, uint64_t now_ns, struct proc_self *ret);
#endif
