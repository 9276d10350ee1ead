/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "window.h"

#include <string.h>

void window_init(struct window *w, uint64_t length_ns, uint64_t tick_ns, unsigned int cells)
{
	const uint64_t share_ns = (length_ns + cells - 1) / cells;

	memset(w, 0, sizeof(*w));
	w->length_ns = length_ns;
	w->tick_ns = tick_ns;
	w->cell_ns = share_ns > tick_ns ? share_ns : tick_ns;
	w->ring = (uint8_t)((length_ns + w->cell_ns - 1) / w->cell_ns + 2);
}

static unsigned int window_index(const struct window *w, unsigned int age)
{
	return (w->oldest + age) % w->ring;
}

unsigned int window_newest(const struct window *w)
{
	return window_index(w, w->live - 1U);
}

static void window_drop_oldest(struct window *w)
{
	w->left[w->left_count++] = w->oldest;
	w->oldest = (uint8_t)window_index(w, 1);
	w->live--;
}

static void window_open(struct window *w, uint64_t begin_ns, uint64_t end_ns)
{
	unsigned int i;

	if (w->live == w->ring)
		window_drop_oldest(w);
	w->live++;
	i = window_newest(w);
	w->begin_ns[i] = begin_ns;
	w->end_ns[i] = end_ns;
	w->opened = true;
}

void window_advance(struct window *w, uint64_t now_ns)
{
	const uint64_t last_ns = w->now_ns;
	const uint64_t half_ns = w->tick_ns / 2;
	unsigned int i;

	w->left_count = 0;
	w->opened = false;
	if (!w->live) {
		w->now_ns = now_ns;
		window_open(w, now_ns, now_ns);
		return;
	}
	if (now_ns > last_ns)
		w->now_ns = now_ns;
	i = window_newest(w);
	if (w->now_ns == last_ns || w->end_ns[i] - w->begin_ns[i] + half_ns < w->cell_ns)
		w->end_ns[i] = w->now_ns;
	else
		window_open(w, last_ns, w->now_ns);
	while (w->live > 1 && w->end_ns[w->oldest] + w->length_ns < w->now_ns + half_ns)
		window_drop_oldest(w);
}

void window_void(struct window *w)
{
	w->live = 0;
	w->oldest = 0;
	w->left_count = 0;
	w->opened = false;
}

uint64_t window_covered_ns(const struct window *w, uint64_t since_ns)
{
	uint64_t begin_ns;

	if (!w->live)
		return 0;
	begin_ns = w->begin_ns[w->oldest];
	if (since_ns > begin_ns)
		begin_ns = since_ns;
	return w->now_ns > begin_ns ? w->now_ns - begin_ns : 0;
}

uint64_t window_warm_ns(const struct window *w)
{
	return w->length_ns < WINDOW_WARM_NS ? w->length_ns : WINDOW_WARM_NS;
}

bool window_warm(const struct window *w, uint64_t since_ns)
{
	return window_covered_ns(w, since_ns) + w->tick_ns / 2 >= window_warm_ns(w);
}

bool window_stretched(const struct window *w)
{
	/* one cell is on its way out, one is half a tick long */
	return window_covered_ns(w, 0) > w->length_ns + 2 * w->cell_ns;
}

/* ---- histograms ---- */

bool window_delta(struct window_delta *delta, uint64_t last[HIST_SLOTS], const uint64_t now[HIST_SLOTS])
{
	uint64_t d[HIST_SLOTS], beyond = 0;
	unsigned int i;

	delta->blocks = 0;
	for (i = 0; i < HIST_SLOTS; i++) {
		d[i] = now[i] - last[i];
		beyond |= d[i] >> 32;
	}
	memcpy(last, now, HIST_SLOTS * sizeof(*last));
	if (beyond)
		return false;
	for (i = 0; i < HIST_SLOTS; i++) {
		delta->slot[i] = (uint32_t)d[i];
		if (d[i])
			delta->blocks |= 1U << (i >> HIST_SUB_SHIFT);
	}
	memset(delta->slot + HIST_SLOTS, 0, sizeof(delta->slot) - HIST_SLOTS * sizeof(delta->slot[0]));
	return true;
}

bool window_delta_coarse(struct window_delta *delta, uint32_t last[HIST_COARSE_SLOTS],
			 const uint32_t now[HIST_COARSE_SLOTS])
{
	bool backwards = false;
	unsigned int i;

	delta->blocks = 0;
	for (i = 0; i < HIST_COARSE_SLOTS; i++) {
		const uint32_t d = now[i] - last[i];

		backwards |= d > INT32_MAX;
		delta->slot[i] = d;
		delta->blocks |= (d != 0) << (i >> HIST_COARSE_SUB_SHIFT);
		last[i] = now[i];
	}
	memset(delta->slot + HIST_COARSE_SLOTS, 0, 4 * sizeof(delta->slot[0]));	/* rest of the last block */
	if (backwards)
		delta->blocks = 0;
	return !backwards;
}

static unsigned int block_slots(enum hist_grain grain)
{
	return 1U << (grain == HIST_FINE ? HIST_SUB_SHIFT : HIST_COARSE_SUB_SHIFT);
}

size_t window_hist_words(const struct window *w, enum hist_grain grain)
{
	return (size_t)WINDOW_BLOCKS * block_slots(grain) * (1U + w->ring);
}

void window_hist_init(struct window_hist *h, enum hist_grain grain, uint32_t *words)
{
	memset(h, 0, sizeof(*h));
	h->grain = grain;
	h->sum = words;
}

/* Blocks of one octave of all cells lie side by side: an octave without samples is never touched. */
static uint32_t *cell_block(const struct window_hist *h, const struct window *w, unsigned int block,
			    unsigned int cell)
{
	const unsigned int n = block_slots(h->grain);

	return h->sum + (size_t)n * (WINDOW_BLOCKS + block * w->ring + cell);
}

/* Fixed sizes, so that the compiler makes vector code of them: this is most of a tick. */
static void block_subtract(uint32_t *restrict sum, const uint32_t *restrict from, enum hist_grain grain)
{
	unsigned int i;

	if (grain == HIST_FINE)
		for (i = 0; i < 1U << HIST_SUB_SHIFT; i++)
			sum[i] -= from[i];
	else
		for (i = 0; i < 1U << HIST_COARSE_SUB_SHIFT; i++)
			sum[i] -= from[i];
}

static void block_add(uint32_t *restrict sum, const uint32_t *restrict from, enum hist_grain grain)
{
	unsigned int i;

	if (grain == HIST_FINE)
		for (i = 0; i < 1U << HIST_SUB_SHIFT; i++)
			sum[i] += from[i];
	else
		for (i = 0; i < 1U << HIST_COARSE_SUB_SHIFT; i++)
			sum[i] += from[i];
}

static void cell_leave(struct window_hist *h, const struct window *w, unsigned int cell)
{
	const unsigned int n = block_slots(h->grain);

	for (; h->mask[cell]; h->mask[cell] &= h->mask[cell] - 1) {
		const unsigned int block = (unsigned int)__builtin_ctz(h->mask[cell]);
		const uint32_t *from = cell_block(h, w, block, cell);

		block_subtract(h->sum + block * n, from, h->grain);
	}
}

void window_hist_roll(struct window_hist *h, const struct window *w)
{
	unsigned int i;

	for (i = 0; i < w->left_count; i++)
		cell_leave(h, w, w->left[i]);
}

void window_hist_add(struct window_hist *h, const struct window *w, const struct window_delta *delta)
{
	const unsigned int n = block_slots(h->grain), cell = window_newest(w);
	uint32_t blocks;

	for (blocks = delta->blocks; blocks; blocks &= blocks - 1) {
		const unsigned int block = (unsigned int)__builtin_ctz(blocks);
		const uint32_t *from = delta->slot + block * n;
		uint32_t *into = cell_block(h, w, block, cell);

		if (h->mask[cell] & (1U << block))
			block_add(into, from, h->grain);
		else
			memcpy(into, from, n * sizeof(*into));
		block_add(h->sum + block * n, from, h->grain);
	}
	h->mask[cell] |= delta->blocks;
}

void window_hist_clear(struct window_hist *h)
{
	memset(h->mask, 0, sizeof(h->mask));
	memset(h->sum, 0, (size_t)WINDOW_BLOCKS * block_slots(h->grain) * sizeof(*h->sum));
}

/* ---- counters ---- */

void window_counter_roll(struct window_counter *c, const struct window *w, const struct window_source *s)
{
	if (w->opened)
		c->at[window_newest(w)] = s->total;
}

void window_source_step(struct window_source *s, uint64_t reading, bool known, uint64_t now_ns)
{
	if (!known) {
		s->seen = false;
		return;
	}
	if (!s->seen || reading < s->last) {
		s->seen = true;
		s->floor = s->total;
		s->since_ns = now_ns;
	} else {
		s->total += reading - s->last;
	}
	s->last = reading;
}

uint64_t window_counter_sum(const struct window_counter *c, const struct window *w,
			    const struct window_source *s)
{
	uint64_t from;

	if (!w->live)
		return 0;
	from = c->at[w->oldest];
	/* the ring of a series that rested may hold old totals: never more than floor */
	return s->total - (from > s->floor ? from : s->floor);
}

/* ---- peaks ---- */

void window_peak_roll(struct window_peak *p, const struct window *w)
{
	if (w->opened)
		p->at[window_newest(w)] = 0;
}

void window_peak_add(struct window_peak *p, const struct window *w, double value)
{
	float *at = &p->at[window_newest(w)];

	if ((float)value > *at)
		*at = (float)value;
}

double window_peak_max(const struct window_peak *p, const struct window *w)
{
	float max = 0;
	unsigned int i;

	for (i = 0; i < w->live; i++)
		if (p->at[window_index(w, i)] > max)
			max = p->at[window_index(w, i)];
	return (double)max;
}
