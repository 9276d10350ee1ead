/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sense.h - everything that is measured, behind one object: probes, sources and targets. Layer: sense.
 *
 * sense_read() is called once per tick; between ticks the loop calls sense_dispatch() when sense_fd() is readable (a new
 * process has read a UDP socket). Nothing blocks. Without BPF it opens all the same: every signal reads unknown and
 * probes say why.
 * Ownership: sense_open allocates, sense_close detaches and frees; *s of sense_read is the caller's (about 450 KiB). */
#ifndef DWELLD_SENSE_H
#define DWELLD_SENSE_H

#include <stddef.h>
#include <stdint.h>

#include "decide/diag.h"
#include "decide/model.h"
#include "decide/sample.h"
#include "proc_source.h"

struct sense;
struct sense_setup {
	const char *rungs;	/* --rungs, NULL */
	const char *root;	/* before /proc and /sys of the host's counters, for tests; NULL: the host */
	unsigned int cpus;	/* 0: this host's */
};

/* What is missing and what is lost goes into *d as warnings, one line each. Fails only for want of memory. */
int sense_open(const struct model *m, const struct sense_setup *setup, struct diag *d, struct sense **ret);
void sense_close(struct sense *s);
int sense_fd(const struct sense *s);	/* -1: none */
void sense_dispatch(struct sense *s, uint64_t now_ns);
void sense_read(struct sense *s, uint64_t now_ns, struct sample *ret);
void sense_reload(struct sense *s, const struct model *m);
/* This process: CPU share and memory. */
void sense_self(struct sense *s, uint64_t now_ns, struct proc_self *ret);
/* For an event: cgroup path and ports of a target slot. */
void sense_cgroup(const struct sense *s, unsigned int slot, char *buf, size_t size);
void sense_ports(const struct sense *s, unsigned int slot, char *buf, size_t size);
#endif
