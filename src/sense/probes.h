/* SPDX-License-Identifier: GPL-2.0-or-later */
/* probes.h - attach the BPF programs rung by rung, prove each by self-test packets, tell what is used and why not better.
 * Layer: sense.
 *
 * The attempt is the probe: no kernel version is looked at. A rung that loads but does not measure is found out by the
 * self-test (8 datagrams to ourselves over loopback, read 2 ms later) and the next one is taken. A signal without a
 * rung never stops the others.
 * Ownership: probes_open allocates; probes_close detaches everything (links die with the process too).
 * Errors:    probes_open fails only when not even the shared maps can be made (-EPERM without the capabilities). */
#ifndef DWELLD_PROBES_H
#define DWELLD_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide/diag.h"
#include "decide/sample.h"

struct probes;
struct bpf_object;

enum probe_signal { PROBE_DWELL, PROBE_RUNQ, PROBE_SOFTIRQ, PROBE_DROPS, PROBE_RTP, PROBE_COUNT };

struct probes_setup {
	const char *rungs;	/* "dwell=kprobe,runq=sched_info" or bare rung names; NULL: the ladder */
	unsigned int cpus;	/* possible CPUs the maps are sized for; 0: ask libbpf (tests fake 320) */
};

int probes_open(const struct probes_setup *setup, struct diag *d, struct probes **ret);
void probes_close(struct probes *p);
/* fd of a shared map by name ("hists", "sockets", ...) or of a signal's own ("streams"); -ENOENT. */
int probes_map(const struct probes *p, const char *name);
unsigned int probes_cpus(const struct probes *p);
unsigned int probes_slots(const struct probes *p);	/* target slots that the memory budget allows */
uint64_t probes_map_bytes(const struct probes *p);
/* The memory plan of this host: target slots, bytes at most. */
void probes_plan(unsigned int *ret_slots, uint64_t *ret_bytes);
/* Rows found by address, not by cookie (old kernels, kprobe rung). */
bool probes_sock_hash(const struct probes *p);
/* Why there can be no self-test, "" when there is one. */
const char *probes_unproven(const struct probes *p);
void probes_describe(const struct probes *p, struct sample_probe *ret, uint32_t *ret_count);
/* Once a minute: a few datagrams to ourselves; a rung that no longer measures is reported as not attached until the next
 * good test. Never blocks. */
void probes_retest(struct probes *p);
/* Run the owner iterator: fd to read struct map_owner from, or negative errno (kernels before 5.11). */
int probes_owners(const struct probes *p);
/* Give storage to all threads of watched processes (runq). Errors are ignored. */
void probes_cover_threads(const struct probes *p);
/* "dwell" fentry|kprobe|consume|fifo ...: for --help and the check of --rungs. -EINVAL with a message. */
int probes_check_rungs(const char *rungs, struct diag *d);
#endif
