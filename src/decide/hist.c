/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hist.h"

unsigned int hist_slots(enum hist_grain grain)
{
	return grain == HIST_FINE ? HIST_SLOTS : HIST_COARSE_SLOTS;
}

uint64_t hist_midpoint_ns(enum hist_grain grain, unsigned int slot)
{
	if (grain == HIST_FINE)
		return hist_midpoint(slot);
	return hist_midpoint_of(slot, HIST_COARSE_SUB_SHIFT, HIST_COARSE_SLOTS);
}

void hist_add(uint32_t *restrict into, const uint32_t *restrict from, enum hist_grain grain)
{
	const unsigned int n = hist_slots(grain) & ~3U;	/* by fours: vector code */
	unsigned int i;

	for (i = 0; i < n; i++)
		into[i] += from[i];
	for (; i < hist_slots(grain); i++)
		into[i] += from[i];
}

void hist_subtract(uint32_t *into, const uint32_t *from, enum hist_grain grain)
{
	const unsigned int n = hist_slots(grain);
	unsigned int i;

	for (i = 0; i < n; i++)
		into[i] -= from[i];
}

uint64_t hist_count(const uint32_t *slot, enum hist_grain grain)
{
	const unsigned int n = hist_slots(grain);
	uint64_t count = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		count += slot[i];
	return count;
}

uint64_t hist_percentile_ns(const uint32_t *slot, enum hist_grain grain, unsigned int permille)
{
	const unsigned int n = hist_slots(grain);
	const uint64_t rank = (hist_count(slot, grain) * permille + 999) / 1000;
	uint64_t below = 0;
	unsigned int i;

	if (rank == 0)
		return 0;
	for (i = 0; i < n - 1; i++) {
		below += slot[i];
		if (below >= rank)
			break;
	}
	return hist_midpoint_ns(grain, i);
}

uint64_t hist_max_ns(const uint32_t *slot, enum hist_grain grain)
{
	unsigned int i;

	for (i = hist_slots(grain); i > 0; i--)
		if (slot[i - 1])
			return hist_midpoint_ns(grain, i - 1);
	return 0;
}

double hist_mean_ns(const uint32_t *slot, enum hist_grain grain)
{
	const unsigned int n = hist_slots(grain);
	uint64_t count = 0;
	double sum = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!slot[i])
			continue;
		count += slot[i];
		sum += (double)slot[i] * (double)hist_midpoint_ns(grain, i);
	}
	return count ? sum / (double)count : 0;
}

double hist_over(const uint32_t *slot, enum hist_grain grain, double limit_ns)
{
	uint64_t count = 0, over = 0;
	unsigned int i;

	for (i = 0; i < hist_slots(grain); i++) {
		count += slot[i];
		if (slot[i] && (double)hist_midpoint_ns(grain, i) > limit_ns)
			over += slot[i];
	}
	return count ? (double)over / (double)count : 0;
}
