/* SPDX-License-Identifier: GPL-2.0-or-later */
/* targets.h - which process belongs to which target slot. Layer: sense.
 *
 * Configured targets have their slots from the start. Every other service that reads UDP gets one by itself, named after
 * its unit or program: same name, same slot, same state. When the slots are used up, the rest is `other`.
 * Ownership: caller's struct through targets_new/free. Time: monotonic ns from the caller. */
#ifndef DWELLD_TARGETS_H
#define DWELLD_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/model.h"
#include "decide/sample.h"

struct targets;

/* slots: how many the maps have room for. tgid_slot_fd: the kernel's table; -1 in tests. */
int targets_new(const struct model *m, unsigned int slots, int tgid_slot_fd, const char *proc_root, struct targets **ret);
void targets_free(struct targets *t);
/* New configuration: names keep their slots; every process is asked for again. */
void targets_reload(struct targets *t, const struct model *m);
/* A process that reads UDP and has no slot in the kernel's table (new, or another program since). tgid: the kernel's number,
 * pid: /proc's. Answers its slot, MAP_SLOT_OTHER when it cannot be looked at. */
unsigned int targets_learn(struct targets *t, uint32_t tgid, uint32_t pid, bool *ret_changed);
/* A process that owns a socket with datagrams in it; a known one costs no look at /proc. */
unsigned int targets_owner(struct targets *t, uint32_t tgid, bool *ret_changed);
int targets_slot(const struct targets *t, uint32_t tgid);	/* -1: not known */
/* Look again at a few processes: gone, or moved to another cgroup. true: a slot changed (the generation must grow). */
bool targets_refresh(struct targets *t, unsigned int at_most);
/* The slot that a local port gives a socket of this process, or 0: its reader decides. The process is then one of that
 * target's too, until targets_ports_begin(), which comes before all sockets are asked for. */
void targets_ports_begin(struct targets *t);
unsigned int targets_of_port(struct targets *t, uint32_t tgid, uint16_t port);
bool targets_have_ports(const struct targets *t);
/* Fill name, unit, pids, flags of every used slot. */
void targets_describe(const struct targets *t, struct sample_target *ret);
const char *targets_cgroup(const struct targets *t, unsigned int slot);	/* of its newest process, "" */
/* Slots given to another name since the last call, one bit each. */
uint64_t targets_recycled(struct targets *t);
uint64_t targets_no_slot(const struct targets *t);	/* processes put into `other` for want of a slot */
#endif
