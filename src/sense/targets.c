/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "targets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/types.h>
#include <bpf/bpf.h>

#include "bpf/map_layout.h"
#include "process.h"

struct slot {
	bool used, ever_seen;
	int16_t model_target;
	char name[SAMPLE_NAME_MAX], unit[SAMPLE_NAME_MAX], cgroup[MODEL_PATH];
};

#define BUCKETS 4096
#define SWEEP_TURNS 8	/* refreshes between two looks at all processes for want of a slot */

struct known {
	uint32_t tgid, pid;
	unsigned int slot;
	uint16_t next;
	uint64_t port_slots;		/* one bit each: slots that ports gave to sockets which it reads */
	struct process process;
};

struct targets {
	struct model_target target[MODEL_TARGETS];
	unsigned int target_count;
	struct slot slot[SAMPLE_TARGETS];
	struct known *known;		/* MAP_TGIDS entries, densely packed */
	uint16_t bucket[BUCKETS];	/* chains through known[].next; index + 1, 0 ends */
	unsigned int known_count, refresh_at, slots, sweep_wait;
	uint64_t no_slot, recycled;
	int tgid_slot_fd;
	bool have_ports;
	char proc_root[MODEL_PATH];
};

static struct known *find(const struct targets *t, uint32_t tgid)
{
	for (unsigned int at = t->bucket[tgid % BUCKETS]; at; at = t->known[at - 1].next)
		if (t->known[at - 1].tgid == tgid)
			return &t->known[at - 1];
	return NULL;
}

static void chain_in(struct targets *t, unsigned int index)
{
	uint16_t *head = &t->bucket[t->known[index].tgid % BUCKETS];

	t->known[index].next = *head;
	*head = (uint16_t)(index + 1);
}

static void chain_out(struct targets *t, unsigned int index)
{
	uint16_t *at = &t->bucket[t->known[index].tgid % BUCKETS];

	while (*at != index + 1)
		at = &t->known[*at - 1].next;
	*at = t->known[index].next;
}

/* The last entry takes the place of the one that goes. */
static void known_remove(struct targets *t, unsigned int index)
{
	unsigned int last = --t->known_count;

	chain_out(t, index);
	if (index == last)
		return;
	chain_out(t, last);
	t->known[index] = t->known[last];
	chain_in(t, index);
}

static int slot_by_name(const struct targets *t, const char *name)
{
	for (unsigned int i = 0; i < t->slots; i++)
		if (t->slot[i].used && !strcmp(t->slot[i].name, name))
			return (int)i;
	return -1;
}

/* A slot that was found by itself and whose processes are all gone; the lowest such one, or -1. */
static int slot_forgotten(const struct targets *t)
{
	uint64_t busy = 0;

	for (unsigned int i = 0; i < t->known_count; i++)
		busy |= 1ULL << t->known[i].slot | t->known[i].port_slots;
	for (unsigned int i = SAMPLE_FIRST_FREE; i < t->slots; i++)
		if (t->slot[i].model_target < 0 && !(busy & 1ULL << i))
			return (int)i;
	return -1;
}

static void tell_gone(const struct targets *t, uint32_t tgid)
{
	if (t->tgid_slot_fd >= 0)
		bpf_map_delete_elem(t->tgid_slot_fd, &tgid);
}

/* Those that ended keep their slots until their turn to be looked at comes; who needs one now can't wait for that. */
static void sweep(struct targets *t)
{
	struct process p;

	if (t->sweep_wait)
		return;
	t->sweep_wait = SWEEP_TURNS;
	for (unsigned int i = t->known_count; i-- > 0;) {
		if (process_read_cgroup(t->proc_root, t->known[i].pid, &p) >= 0)
			continue;
		tell_gone(t, t->known[i].tgid);
		known_remove(t, i);
	}
}

static int slot_take(struct targets *t, const char *name, int model_target)
{
	int at = slot_by_name(t, name);

	for (unsigned int i = SAMPLE_FIRST_FREE; at < 0 && i < t->slots; i++)
		if (!t->slot[i].used)
			at = (int)i;
	if (at < 0) {
		at = slot_forgotten(t);
		if (at < 0) {
			sweep(t);
			at = slot_forgotten(t);
		}
		if (at < 0)
			return -1;
		t->recycled |= 1ULL << at;
		t->slot[at] = (struct slot){ 0 };
	}
	t->slot[at].used = true;
	t->slot[at].model_target = (int16_t)model_target;
	snprintf(t->slot[at].name, sizeof(t->slot[at].name), "%s", name);
	return at;
}

static void configure(struct targets *t, const struct model *m)
{
	memcpy(t->target, m->target, sizeof(t->target));
	t->target_count = m->target_count;
	t->have_ports = false;
	for (unsigned int i = 0; i < t->slots; i++)
		t->slot[i].model_target = -1;
	for (unsigned int i = 0; i < t->target_count; i++) {
		const struct model_target *mt = &t->target[i];

		slot_take(t, mt->name, (int)i);
		for (unsigned int k = 0; k < mt->match_count; k++)
			t->have_ports = t->have_ports || mt->match[k].port_low;
	}
}

int targets_new(const struct model *m, unsigned int slots, int tgid_slot_fd, const char *proc_root, struct targets **ret)
{
	static const char *const reserved[] = { "host", "other", "self" };
	struct targets *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->known = calloc(MAP_TGIDS, sizeof(*t->known));
	if (!t->known) {
		free(t);
		return -ENOMEM;
	}
	t->slots = slots < SAMPLE_TARGETS ? slots : SAMPLE_TARGETS;
	t->tgid_slot_fd = tgid_slot_fd;
	snprintf(t->proc_root, sizeof(t->proc_root), "%s", proc_root ? proc_root : "/proc");
	for (unsigned int i = 0; i < SAMPLE_FIRST_FREE; i++) {
		t->slot[i].used = t->slot[i].ever_seen = true;
		snprintf(t->slot[i].name, sizeof(t->slot[i].name), "%s", reserved[i]);
	}
	configure(t, m);
	*ret = t;
	return 0;
}

void targets_free(struct targets *t)
{
	if (!t)
		return;
	free(t->known);
	free(t);
}

/* The configured target that fits best; a match with ports is not for the whole process. */
static int model_target_of(const struct targets *t, const struct process *p)
{
	unsigned int best = 0, rank;
	int at = -1;

	for (unsigned int i = 0; i < t->target_count; i++) {
		const struct model_target *mt = &t->target[i];

		for (unsigned int k = 0; k < mt->match_count; k++) {
			rank = mt->match[k].port_low ? 0 : process_match(p, &mt->match[k]);
			if (rank > best) {
				best = rank;
				at = (int)i;
			}
		}
	}
	return at;
}

static void slot_seen(struct slot *s, const struct process *p)
{
	s->ever_seen = true;
	snprintf(s->unit, sizeof(s->unit), "%s", p->unit_generated ? "" : p->unit);
	snprintf(s->cgroup, sizeof(s->cgroup), "%s", p->cgroup);
}

/* MAP_SLOT_OTHER when all are taken. */
static unsigned int slot_of(struct targets *t, const struct process *p)
{
	int mt = model_target_of(t, p);
	int at = slot_take(t, mt >= 0 ? t->target[mt].name : p->name, mt);

	if (at < 0)
		return MAP_SLOT_OTHER;
	slot_seen(&t->slot[at], p);
	return (unsigned int)at;
}

/* flag BPF_EXIST: an answer to a reader's event, whose pending entry the kernel takes away when the process ends; an entry
 * made anew after that would stay for good, and the next process of that number would inherit it. */
static void tell_kernel(const struct targets *t, uint32_t tgid, unsigned int slot, uint64_t flag)
{
	__u32 value = slot;

	if (t->tgid_slot_fd >= 0)
		bpf_map_update_elem(t->tgid_slot_fd, &tgid, &value, flag);
}

static void known_add(struct targets *t, const struct known *k)
{
	struct known *at = find(t, k->tgid);

	if (!at && t->known_count < MAP_TGIDS) {
		at = &t->known[t->known_count];
		at->tgid = k->tgid;
		chain_in(t, t->known_count++);
	}
	if (!at)
		return;
	at->pid = k->pid;
	at->slot = k->slot;
	at->port_slots = 0;
	at->process = k->process;
}

static unsigned int learn(struct targets *t, uint32_t tgid, uint32_t pid, uint64_t flag)
{
	struct known k = { .tgid = tgid, .pid = pid, .slot = MAP_SLOT_OTHER };

	if (pid == (uint32_t)getpid()) {
		tell_kernel(t, tgid, MAP_SLOT_SELF, flag);
		return MAP_SLOT_SELF;
	}
	if (!pid) {		/* of a pid namespace that we do not see into */
		tell_kernel(t, tgid, MAP_SLOT_OTHER, flag);
		return MAP_SLOT_OTHER;
	}
	if (process_read(t->proc_root, pid, &k.process) < 0) {
		tell_gone(t, tgid);
		return MAP_SLOT_OTHER;
	}
	k.slot = slot_of(t, &k.process);
	t->no_slot += k.slot == MAP_SLOT_OTHER;
	known_add(t, &k);
	tell_kernel(t, tgid, k.slot, flag);
	return k.slot;
}

unsigned int targets_learn(struct targets *t, uint32_t tgid, uint32_t pid, bool *ret_changed)
{
	*ret_changed = true;
	return learn(t, tgid, pid, BPF_EXIST);
}

unsigned int targets_owner(struct targets *t, uint32_t tgid, bool *ret_changed)
{
	const struct known *k = find(t, tgid);

	if (k)
		return k->slot;
	*ret_changed = true;
	return learn(t, tgid, tgid, BPF_ANY);
}

int targets_slot(const struct targets *t, uint32_t tgid)
{
	const struct known *k = find(t, tgid);

	return k ? (int)k->slot : -1;
}

/* Another program in the same process is told by the kernel; what can change unseen is its cgroup. Who found no slot asks
 * again, which may end other entries: then *k is another's. */
static bool refresh_one(struct targets *t, struct known *k)
{
	const uint32_t tgid = k->tgid, pid = k->pid;
	struct process p = k->process;
	unsigned int slot;

	if (process_read_cgroup(t->proc_root, pid, &p) < 0) {
		tell_gone(t, tgid);
		known_remove(t, (unsigned int)(k - t->known));
		return false;
	}
	if (!strcmp(p.cgroup, k->process.cgroup) && k->slot != MAP_SLOT_OTHER)
		return false;
	if (process_read(t->proc_root, pid, &p) < 0)
		return false;
	slot = slot_of(t, &p);
	k = find(t, tgid);
	if (!k)
		return false;
	k->process = p;
	if (slot == k->slot)
		return false;
	k->slot = slot;
	tell_kernel(t, tgid, slot, BPF_EXIST);
	return true;
}

bool targets_refresh(struct targets *t, unsigned int at_most)
{
	bool changed = false;

	t->sweep_wait -= t->sweep_wait > 0;
	for (unsigned int i = 0; i < at_most && i < t->known_count; i++) {
		if (t->refresh_at >= t->known_count)
			t->refresh_at = 0;
		if (!t->known_count)
			break;
		changed = refresh_one(t, &t->known[t->refresh_at]) || changed;
		t->refresh_at++;
	}
	return changed;
}

void targets_reload(struct targets *t, const struct model *m)
{
	t->sweep_wait = 0;
	sweep(t);	/* once, before the entries are gone through */
	configure(t, m);
	for (unsigned int i = 0; i < t->known_count; i++) {
		struct known *k = &t->known[i];

		k->slot = slot_of(t, &k->process);
		tell_kernel(t, k->tgid, k->slot, BPF_EXIST);
	}
}

bool targets_have_ports(const struct targets *t)
{
	return t->have_ports;
}

void targets_ports_begin(struct targets *t)
{
	for (unsigned int i = 0; t->have_ports && i < t->known_count; i++)
		t->known[i].port_slots = 0;
}

unsigned int targets_of_port(struct targets *t, uint32_t tgid, uint16_t port)
{
	static const struct process nobody;
	struct known *k = find(t, tgid);
	unsigned int best = 0, rank;
	int at;

	for (unsigned int i = 0; i < t->target_count; i++) {
		const struct model_target *mt = &t->target[i];

		for (unsigned int n = 0; n < mt->match_count; n++) {
			const struct model_match *m = &mt->match[n];

			if (!m->port_low || port < m->port_low || port > m->port_high)
				continue;
			rank = process_match(k ? &k->process : &nobody, m);
			at = slot_by_name(t, mt->name);
			if (rank > (best & 0xff) && at > 0)
				best = rank | (unsigned int)at << 8;
		}
	}
	if (k && best && !(k->port_slots & 1ULL << (best >> 8))) {
		k->port_slots |= 1ULL << (best >> 8);
		slot_seen(&t->slot[best >> 8], &k->process);
	}
	return best >> 8;
}

void targets_describe(const struct targets *t, struct sample_target *ret)
{
	for (unsigned int i = 0; i < SAMPLE_TARGETS; i++) {
		const struct slot *s = &t->slot[i];
		struct sample_target *out = &ret[i];

		out->used = s->used && i < t->slots;
		if (!out->used)
			continue;
		out->configured = s->model_target >= 0;
		out->model_target = s->model_target;
		out->ever_seen = s->ever_seen;
		memcpy(out->name, s->name, sizeof(out->name));
		memcpy(out->unit, s->unit, sizeof(out->unit));
		out->pid_count = 0;
	}
	for (unsigned int i = 0; i < t->known_count; i++) {
		uint64_t slots = 1ULL << t->known[i].slot | t->known[i].port_slots;

		for (; slots; slots &= slots - 1) {
			struct sample_target *out = &ret[__builtin_ctzll(slots)];

			if (out->pid_count < sizeof(out->pids) / sizeof(out->pids[0]))
				out->pids[out->pid_count] = t->known[i].pid;
			out->pid_count++;
		}
	}
}

const char *targets_cgroup(const struct targets *t, unsigned int slot)
{
	return slot < SAMPLE_TARGETS ? t->slot[slot].cgroup : "";
}

uint64_t targets_no_slot(const struct targets *t)
{
	return t->no_slot;
}

uint64_t targets_recycled(struct targets *t)
{
	uint64_t slots = t->recycled;

	t->recycled = 0;
	return slots;
}
