/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "values_private.h"

#define DISTS (SAMPLE_TARGETS * SAMPLE_DIST_COUNT + SAMPLE_HOST_DIST_COUNT)

/* ---- memory ---- */

static size_t values_window_size(uint64_t length_ns, uint64_t tick_ns)
{
	struct window clock;

	window_init(&clock, length_ns, tick_ns, WINDOW_CELLS);
	return sizeof(struct values_window) + DISTS * window_hist_words(&clock, HIST_FINE) * sizeof(uint32_t);
}

static struct values_window *values_window_new(uint64_t length_ns, uint64_t tick_ns)
{
	struct values_window *w = calloc(1, values_window_size(length_ns, tick_ns));
	unsigned int i, d;
	uint32_t *words;
	size_t n;

	if (!w)
		return NULL;
	window_init(&w->clock, length_ns, tick_ns, WINDOW_CELLS);
	n = window_hist_words(&w->clock, HIST_FINE);
	words = w->words;
	for (i = 0; i < SAMPLE_TARGETS; i++)
		for (d = 0; d < SAMPLE_DIST_COUNT; d++, words += n)
			window_hist_init(&w->dist[i][d], HIST_FINE, words);
	for (d = 0; d < SAMPLE_HOST_DIST_COUNT; d++, words += n)
		window_hist_init(&w->host_dist[d], HIST_FINE, words);
	return w;
}

/* The model's lengths, each once; at least the default one. */
static unsigned int model_windows(const struct model *m, uint64_t ret_ns[SIGNAL_WINDOWS_MAX])
{
	unsigned int i, k, n = 0;

	for (i = 0; i < m->window_count && i < SIGNAL_WINDOWS_MAX; i++) {
		for (k = 0; k < n && ret_ns[k] != m->window_ns[i]; k++)
			;
		if (k == n)
			ret_ns[n++] = m->window_ns[i];
	}
	if (!n)
		ret_ns[n++] = SIGNAL_WINDOW_DEFAULT_NS;
	return n;
}

static struct values_window *window_kept(const struct values *v, uint64_t length_ns, uint64_t tick_ns)
{
	unsigned int i;

	for (i = 0; i < v->windows; i++)
		if (v->window_ns[i] == length_ns && v->tick_ns == tick_ns)
			return v->window[i];
	return NULL;
}

static bool window_in(struct values_window *const *list, const struct values_window *w)
{
	unsigned int i;

	for (i = 0; i < SIGNAL_WINDOWS_MAX; i++)
		if (list[i] == w)
			return true;
	return false;
}

/* Frees what is in a and not in b. */
static void windows_drop(struct values_window *const *a, struct values_window *const *b)
{
	unsigned int i;

	for (i = 0; i < SIGNAL_WINDOWS_MAX; i++)
		if (a[i] && !window_in(b, a[i]))
			free(a[i]);
}

int values_reload(struct values *v, const struct model *m)
{
	struct values_window *next[SIGNAL_WINDOWS_MAX] = { 0 };
	uint64_t length_ns[SIGNAL_WINDOWS_MAX];
	const unsigned int n = model_windows(m, length_ns);
	unsigned int i;

	for (i = 0; i < n; i++) {
		next[i] = window_kept(v, length_ns[i], m->tick_ns);
		if (!next[i])
			next[i] = values_window_new(length_ns[i], m->tick_ns);
		if (!next[i])
			break;
	}
	if (i < n || readers_reload(v->readers, length_ns, n, m->tick_ns) < 0) {
		windows_drop(next, v->window);
		return -ENOMEM;
	}
	streams_reload(v->streams, length_ns, n);
	windows_drop(v->window, next);
	memcpy(v->window, next, sizeof(next));
	memcpy(v->window_ns, length_ns, n * sizeof(length_ns[0]));
	v->windows = n;
	v->tick_ns = m->tick_ns;
	return 0;
}

struct values *values_new(const struct model *m)
{
	struct values *v = calloc(1, sizeof(*v));
	uint64_t length_ns[SIGNAL_WINDOWS_MAX];
	const unsigned int n = model_windows(m, length_ns);

	if (!v)
		return NULL;
	v->readers = readers_new(length_ns, n, m->tick_ns);
	v->streams = streams_new(length_ns, n, m->tick_ns);
	if (!v->readers || !v->streams || values_reload(v, m) < 0) {
		values_free(v);
		return NULL;
	}
	return v;
}

void values_free(struct values *v)
{
	unsigned int i;

	if (!v)
		return;
	for (i = 0; i < v->windows; i++)
		free(v->window[i]);
	readers_free(v->readers);
	streams_free(v->streams);
	free(v);
}

int values_window_find(const struct values *v, uint64_t window_ns)
{
	unsigned int i;

	for (i = 0; window_ns && i < v->windows; i++)
		if (v->window_ns[i] == window_ns)
			return (int)i;
	return window_ns ? -1 : 0;
}

void values_set_missing(struct values *v, uint32_t probes)
{
	v->missing = probes;
	v->missing_set = true;
}

/* ---- one tick ---- */

/* Which distribution: of a slot, or of the host itself. */
struct dist_place { unsigned int slot, dist; bool host; };

static struct window_hist *place_hist(const struct values *v, unsigned int window, struct dist_place place)
{
	struct values_window *w = v->window[window];

	return place.host ? &w->host_dist[place.dist] : &w->dist[place.slot][place.dist];
}

static void dist_clear(struct values *v, struct values_dist *d, struct dist_place place, uint64_t now_ns)
{
	unsigned int i;

	for (i = 0; i < v->windows; i++)
		window_hist_clear(place_hist(v, i, place));
	d->since_ns = now_ns;
}

static void dist_step(struct values *v, struct values_dist *d, struct dist_place place,
		      const struct sample *s)
{
	const struct sample_hist *from =
		place.host ? &s->host_dist[place.dist] : &s->target[place.slot].dist[place.dist];
	unsigned int i;

	d->known = from->known;
	if (!from->known) {
		d->seen = false;
		return;
	}
	if (!d->seen) {
		d->seen = true;
		memcpy(d->last, from->slot, sizeof(d->last));
		dist_clear(v, d, place, s->now_ns);
		return;
	}
	for (i = 0; i < v->windows; i++)
		window_hist_roll(place_hist(v, i, place), &v->window[i]->clock);
	if (!from->moved)
		return;
	if (!window_delta(&v->delta, d->last, from->slot)) {
		dist_clear(v, d, place, s->now_ns);
		return;
	}
	for (i = 0; v->delta.blocks && i < v->windows; i++)
		window_hist_add(place_hist(v, i, place), &v->window[i]->clock, &v->delta);
}

static void slot_counters(struct values *v, unsigned int slot, const struct sample *s)
{
	const struct sample_target *t = &s->target[slot];
	unsigned int i, c;

	for (c = 0; c < SAMPLE_COUNTER_COUNT; c++) {
		struct window_source *source = &v->slot[slot].counter[c];

		for (i = 0; i < v->windows; i++)
			window_counter_roll(&v->window[i]->counter[slot][c], &v->window[i]->clock, source);
		window_source_step(source, t->counter[c], t->counter_known & (1U << c), s->now_ns);
	}
}

static void slot_gauges(struct values *v, unsigned int slot, const struct sample_target *t)
{
	struct values_slot *to = &v->slot[slot];
	unsigned int i;

	to->ever_seen = t->ever_seen;
	to->rtp_ever = t->rtp_ever;
	to->idle = t->sockets == 0;
	to->oldest_known = t->oldest_known;
	to->oldest_ns = t->oldest_ns;
	to->fill_known = t->fill_known;
	to->fill = t->fill;
	to->rcvbuf_known = t->rcvbuf_known;
	to->rcvbuf_bytes = t->rcvbuf_bytes;
	for (i = 0; i < v->windows; i++) {
		struct values_window *w = v->window[i];

		window_peak_roll(&w->fill[slot], &w->clock);
		if (t->fill_known)
			window_peak_add(&w->fill[slot], &w->clock, t->fill);
	}
}

/* A new name in the slot, or a gap: all that was is void. */
static void slot_begin(struct values *v, unsigned int slot, const struct sample *s)
{
	struct values_slot *to = &v->slot[slot];
	unsigned int i;

	to->used = true;
	to->since_ns = s->now_ns;
	memcpy(to->name, s->target[slot].name, sizeof(to->name));
	for (i = 0; i < SAMPLE_DIST_COUNT; i++)
		to->dist[i].seen = false;
	for (i = 0; i < SAMPLE_COUNTER_COUNT; i++)
		to->counter[i].seen = false;
	for (i = 0; i < v->windows; i++)
		memset(&v->window[i]->fill[slot], 0, sizeof(v->window[i]->fill[slot]));
}

static void slot_step(struct values *v, unsigned int slot, const struct sample *s)
{
	const struct sample_target *t = &s->target[slot];
	struct values_slot *to = &v->slot[slot];
	unsigned int d, i;

	if (!t->used) {
		to->used = false;
		return;
	}
	if (!to->used || s->gap || strncmp(to->name, t->name, sizeof(to->name)))
		slot_begin(v, slot, s);
	slot_gauges(v, slot, t);
	if (slot == SAMPLE_HOST)	/* a sum over the others, made here */
		return;
	slot_counters(v, slot, s);
	for (d = 0; d < SAMPLE_DIST_COUNT; d++) {
		dist_step(v, &to->dist[d], (struct dist_place){ slot, d, false }, s);
		for (i = 0; to->dist[d].known && i < v->windows; i++)
			hist_add(v->window[i]->total[d], v->window[i]->dist[slot][d].sum, HIST_FINE);
	}
}

static void host_step(struct values *v, const struct sample *s)
{
	unsigned int d, c, i;

	for (d = 0; d < SAMPLE_HOST_DIST_COUNT; d++) {
		if (s->gap)
			v->host_dist[d].seen = false;
		dist_step(v, &v->host_dist[d], (struct dist_place){ 0, d, true }, s);
	}
	for (c = 0; c < SAMPLE_HOST_COUNTER_COUNT; c++) {
		if (s->gap)
			v->host_counter[c].seen = false;
		for (i = 0; i < v->windows; i++)
			window_counter_roll(&v->window[i]->host_counter[c], &v->window[i]->clock,
					    &v->host_counter[c]);
		window_source_step(&v->host_counter[c], s->host_counter[c], s->host_known & (1U << c),
				   s->now_ns);
	}
}

static void probes_step(struct values *v, const struct sample *s)
{
	unsigned int i, p;

	for (i = 0; i < SIGNAL_ID_COUNT; i++) {
		v->unprobed[i] = false;
		for (p = 0; signal_table[i].probe && p < s->probe_count && p < SAMPLE_PROBES; p++)
			if (!strcmp(s->probe[p].signal, signal_table[i].probe) && !s->probe[p].attached)
				v->unprobed[i] = true;
	}
}

void values_tick(struct values *v, const struct sample *s)
{
	unsigned int i;

	for (i = 0; i < v->windows; i++) {
		struct values_window *w = v->window[i];

		if (s->gap)
			window_void(&w->clock);
		window_advance(&w->clock, s->now_ns);
		memset(w->total, 0, sizeof(w->total));
	}
	probes_step(v, s);
	for (i = 0; i < SAMPLE_TARGETS; i++)
		slot_step(v, i, s);
	host_step(v, s);
	v->streams_known = s->streams_known;
	readers_tick(v->readers, s);
	streams_tick(v->streams, s);
}
