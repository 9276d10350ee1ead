/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine_slots.c - what the engine keeps of each target slot besides its rules: name, profile, traffic; and which probes
 * the rules miss. */
#include <stdio.h>
#include <string.h>

#include "engine_private.h"

static bool probe_attached(const struct sample *s, const char *probe)
{
	for (uint32_t i = 0; i < s->probe_count && i < SAMPLE_PROBES; i++)
		if (!strcmp(s->probe[i].signal, probe))
			return s->probe[i].attached;
	return false;
}

/* Adds the bits of the signals that the program reads. */
static uint32_t signals_of(const struct expr *e)
{
	uint32_t bits = 0;

	for (uint16_t i = 0; i < e->op_count; i++)
		if (e->op[i].kind == EXPR_TERM || e->op[i].kind == EXPR_KNOWN)
			bits |= 1U << e->op[i].term.signal;
	return bits;
}

/* Distinct probes that an enabled rule needs and that are not attached; their names, separated by blanks. */
uint32_t engine_missing_probes(const struct engine *e, char *buf, size_t size)
{
	uint32_t bits = 0, count = 0;
	size_t n = 0;

	for (int i = 0; i < e->model->rule_count; i++) {
		const struct model_rule *r = &e->model->rule[i];

		bits |= signals_of(&r->when) | (r->has_clear ? signals_of(&r->clear) : 0) |
			(r->has_critical ? signals_of(&r->critical_when) : 0);
	}
	if (size)
		buf[0] = '\0';
	for (int i = 0; i < SIGNAL_ID_COUNT; i++) {
		const char *probe = signal_table[i].probe;
		bool told = false;

		if (!(bits & (1U << i)) || !probe || probe_attached(e->sample, probe))
			continue;
		for (int j = 0; j < i && !told; j++)
			told = (bits & (1U << j)) && signal_table[j].probe && !strcmp(signal_table[j].probe, probe);
		if (told)
			continue;
		if (n < size)
			n += (size_t)snprintf(buf + n, size - n, "%s%s", count ? " " : "", probe);
		count++;
	}
	return count;
}

/* ---- slots ---- */

static void slot_profile(struct engine *e, int i, const struct sample_target *t)
{
	struct engine_slot *slot = &e->slot[i];
	const char *name = "";

	if (t->model_target >= 0 && t->model_target < e->model->target_count)
		name = e->model->target[t->model_target].profile;
	if (!*name)
		name = t->media ? "media" : "generic";
	slot->profile = model_profile_find(e->model, name);
	slot->at_most = slot->profile >= 0 ? e->model->profile[slot->profile].at_most : SEVERITY_CRITICAL;
	if (i != SAMPLE_HOST && !t->configured && slot->at_most > SEVERITY_WARNING)
		slot->at_most = SEVERITY_WARNING;
}

/* When did a datagram last arrive or leave, and is something waiting. What can't be read is never idle. */
static void slot_traffic(struct engine_slot *slot, const struct sample_target *t, const struct sample *s)
{
	const uint64_t enqueued = t->counter[SAMPLE_ENQUEUED], read = t->counter[SAMPLE_READ];
	const bool known = t->counter_known & (1U << SAMPLE_ENQUEUED);
	const bool moved = enqueued != slot->enqueued || read != slot->read;

	if (known && (!slot->arrivals_known || moved || s->gap)) {
		/* the first reading may hold what came before us: then something may just have arrived */
		slot->datagram_ever |= enqueued > 0;
		slot->datagram_ns = enqueued > 0 ? s->now_ns : 0;
	}
	slot->arrivals_known = known;
	slot->enqueued = enqueued;
	slot->read = read;
	slot->queue_empty = (!t->queued_known || t->queued == 0) && (!t->oldest_known || t->oldest_ns == 0);
}

bool engine_slot_quiet(const struct engine *e, int i)
{
	const struct engine_slot *slot = &e->slot[i];

	return slot->arrivals_known && slot->queue_empty &&
	       (!slot->datagram_ever || e->now_ns - slot->datagram_ns >= SIGNAL_WINDOW_DEFAULT_NS);
}

static void slots_swap(struct engine *e, int a, int b)
{
	const struct engine_slot slot = e->slot[a];

	e->slot[a] = e->slot[b];
	e->slot[b] = slot;
	for (int r = 0; r < e->model->rule_count; r++) {
		const struct engine_cell cell = e->cell[a][r];

		e->cell[a][r] = e->cell[b][r];
		e->cell[b][r] = cell;
	}
}

static bool same_name(const struct engine_slot *slot, const struct sample_target *t)
{
	return slot->used == t->used && (!t->used || !strcmp(slot->name, t->name));
}

/* A target keeps its state by its name: rows of cells move with it. Who has no place any more is withdrawn. */
void engine_slots_follow(struct engine *e, const struct sample *s, struct engine_out *out)
{
	for (int i = 0; i < SAMPLE_TARGETS; i++) {
		if (!s->target[i].used || same_name(&e->slot[i], &s->target[i]))
			continue;
		for (int j = 0; j < SAMPLE_TARGETS; j++)
			if (e->slot[j].used && !strcmp(e->slot[j].name, s->target[i].name)) {
				slots_swap(e, i, j);
				break;
			}
	}
	for (int i = 0; i < SAMPLE_TARGETS; i++) {
		if (same_name(&e->slot[i], &s->target[i]))
			continue;
		for (int r = 0; e->slot[i].used && r < e->model->rule_count; r++)
			engine_withdraw(e, i, r, out);
		memset(&e->slot[i], 0, sizeof(e->slot[i]));
	}
}

/* The host's rules judge by the profile of the most sensitive target that has datagrams: what is late for it is late. */
static void host_profile(struct engine *e)
{
	struct engine_slot *host = &e->slot[SAMPLE_HOST];
	double slow, strictest;
	bool found = model_param(e->model, host->profile, "slow", &strictest);

	for (int i = SAMPLE_HOST + 1; i < SAMPLE_TARGETS; i++) {
		const int profile = e->slot[i].profile;

		if (!e->slot[i].used || i == SAMPLE_SELF || engine_slot_quiet(e, i) ||
		    !model_param(e->model, profile, "slow", &slow) || (found && slow >= strictest))
			continue;
		found = true;
		strictest = slow;
		host->profile = profile;
		host->at_most = profile >= 0 ? e->model->profile[profile].at_most : SEVERITY_CRITICAL;
	}
}

/* The host is all slots together, whatever its own row says. */
static void host_slot(struct engine *e)
{
	struct engine_slot *host = &e->slot[SAMPLE_HOST];

	host->arrivals_known = host->queue_empty = true;
	host->datagram_ever = false;
	host->datagram_ns = 0;
	for (int i = SAMPLE_HOST + 1; i < SAMPLE_TARGETS; i++) {
		const struct engine_slot *slot = &e->slot[i];

		if (!slot->used)
			continue;
		host->arrivals_known &= slot->arrivals_known;
		host->queue_empty &= slot->queue_empty;
		host->datagram_ever |= slot->datagram_ever;
		if (slot->datagram_ns > host->datagram_ns)
			host->datagram_ns = slot->datagram_ns;
	}
}

void engine_slots_update(struct engine *e, const struct sample *s)
{
	e->pair_count = 0;
	for (int i = 0; i < SAMPLE_TARGETS; i++) {
		const struct sample_target *t = &s->target[i];
		struct engine_slot *slot = &e->slot[i];

		slot->used = t->used;
		if (!t->used)
			continue;
		memcpy(slot->name, t->name, sizeof(slot->name));
		slot->name[sizeof(slot->name) - 1] = '\0';
		slot_profile(e, i, t);
		slot_traffic(slot, t, s);
		for (int r = 0; r < e->model->rule_count; r++)
			if (engine_applies(e, r, i)) {
				e->pair[e->pair_count].slot = (uint8_t)i;
				e->pair[e->pair_count++].rule = (uint8_t)r;
			}
	}
	host_slot(e);
	host_profile(e);
}
