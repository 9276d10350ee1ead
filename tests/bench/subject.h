/* SPDX-License-Identifier: GPL-2.0-or-later */
/* subject.h - a dwelld of our own, in directories of its own, and programs for it to watch.
 *
 * Ownership: subject_start and readers_start fork; subject_end and readers_end kill, wait and remove the directory. Children
 *            also die with this process.
 * Errors:    0 or negative errno; the daemon's own words are in DIR/log, printed by subject_start when it fails. */
#ifndef DWELLD_BENCH_SUBJECT_H
#define DWELLD_BENCH_SUBJECT_H

#include <stdint.h>
#include <sys/types.h>

struct subject {
	char dir[64];
	pid_t pid;
};

/* Waits until it says READY, 60 s at most. targets: names and processes "bench-r00" and up. tick_us 0: its usual tick. */
int subject_start(struct subject *s, const char *daemon, unsigned int targets, unsigned int tick_us);
void subject_end(struct subject *s);

struct subject_figures {
	uint64_t cpu_ns;	/* all threads, since its start */
	uint64_t rss_anon_kib;
	unsigned int fds;
};
int subject_read(const struct subject *s, struct subject_figures *ret);
/* How many of the targets its status shows with samples. */
int subject_targets_seen(const struct subject *s, unsigned int targets);

/* Its BPF maps, found by name among its descriptors. */
struct subject_maps {
	uint32_t ticks;		/* so far; control[0].epoch */
	unsigned int tgids, streams, sockets, readers;	/* entries; rows in use */
	unsigned int dead;	/* of tgids: processes that are gone */
};
int subject_maps_read(const struct subject *s, struct subject_maps *ret);

#define READERS_MAX 16
struct readers {
	char dir[64];
	unsigned int count;
	pid_t pid[READERS_MAX];
	uint16_t port[READERS_MAX];
	int tx;
	uint16_t sequence;
};
/* program: tests/bench/reader. Each runs under a name of its own. */
int readers_start(struct readers *r, const char *program, unsigned int count);
/* One more, of the name bench-short, that ends after `datagrams`; not waited for. */
int readers_short(struct readers *r, unsigned int datagrams, pid_t *ret_pid);
/* One RTP datagram to each. */
void readers_send(struct readers *r);
void readers_end(struct readers *r);
#endif
