/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hist_layout.h - how a latency becomes a histogram slot, and back. Compiled by clang for BPF and by the host
 * compiler for decide/; one test covers both. No includes on purpose: both sides bring their own integer types.
 *
 * Units:  nanoseconds. Slot 0 is [0, 256 ns), the last slot is everything from 2^35 ns (34.4 s) up. Between them each
 *         octave has 16 linear slots, so that a slot's midpoint is at most 1/32 (3.13 %) from any value in it.
 * Errors: none; every 64-bit value has a slot. */
#ifndef DWELLD_HIST_LAYOUT_H
#define DWELLD_HIST_LAYOUT_H

#define HIST_MIN_SHIFT 8	/* 256 ns */
#define HIST_MAX_SHIFT 35	/* 34.36 s */
#define HIST_SUB_SHIFT 4	/* 16 slots an octave */
#define HIST_SLOTS (((HIST_MAX_SHIFT - HIST_MIN_SHIFT) << HIST_SUB_SHIFT) + 2)	/* 434 */

/* The worst-reader rows are coarser: 4 slots an octave, error <= 12.5 %. */
#define HIST_COARSE_SUB_SHIFT 2
#define HIST_COARSE_SLOTS (((HIST_MAX_SHIFT - HIST_MIN_SHIFT) << HIST_COARSE_SUB_SHIFT) + 2)	/* 110 */

static inline __attribute__((always_inline)) unsigned int hist_log2(unsigned long long v)
{
	unsigned int r = 0, shift;

	/* clang for BPF has no clz before cpu v4: five compares. */
	shift = (v > 0xffffffffULL) << 5; v >>= shift; r |= shift;
	shift = (v > 0xffffULL) << 4; v >>= shift; r |= shift;
	shift = (v > 0xffULL) << 3; v >>= shift; r |= shift;
	shift = (v > 0xfULL) << 2; v >>= shift; r |= shift;
	shift = (v > 0x3ULL) << 1; v >>= shift; r |= shift;
	r |= (unsigned int)(v >> 1);
	return r;
}

static inline __attribute__((always_inline)) unsigned int hist_slot_of(unsigned long long ns, unsigned int sub_shift,
									unsigned int slots)
{
	unsigned int e;

	if (ns < (1ULL << HIST_MIN_SHIFT))
		return 0;
	if (ns >= (1ULL << HIST_MAX_SHIFT))
		return slots - 1;
	e = hist_log2(ns);
	return 1 + ((e - HIST_MIN_SHIFT) << sub_shift) +
	       ((unsigned int)(ns >> (e - sub_shift)) & ((1U << sub_shift) - 1));
}

static inline __attribute__((always_inline)) unsigned int hist_slot(unsigned long long ns)
{
	return hist_slot_of(ns, HIST_SUB_SHIFT, HIST_SLOTS);
}

static inline __attribute__((always_inline)) unsigned int hist_coarse_slot(unsigned long long ns)
{
	return hist_slot_of(ns, HIST_COARSE_SUB_SHIFT, HIST_COARSE_SLOTS);
}

/* The midpoint of a slot in ns; the overflow slot answers its lower bound. */
static inline __attribute__((always_inline)) unsigned long long hist_midpoint_of(unsigned int slot,
										 unsigned int sub_shift,
										 unsigned int slots)
{
	unsigned int octave, sub;
	unsigned long long lo, width;

	if (slot == 0)
		return 1ULL << (HIST_MIN_SHIFT - 1);
	if (slot >= slots - 1)
		return 1ULL << HIST_MAX_SHIFT;
	octave = (slot - 1) >> sub_shift;
	sub = (slot - 1) & ((1U << sub_shift) - 1);
	width = (1ULL << (HIST_MIN_SHIFT + octave)) >> sub_shift;
	lo = (1ULL << (HIST_MIN_SHIFT + octave)) + width * sub;
	return lo + width / 2;
}

static inline __attribute__((always_inline)) unsigned long long hist_midpoint(unsigned int slot)
{
	return hist_midpoint_of(slot, HIST_SUB_SHIFT, HIST_SLOTS);
}
#endif
