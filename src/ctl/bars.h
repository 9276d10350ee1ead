/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bars.h - a histogram of 27 octaves (256 ns to 34 s) as rows of blocks. Layer: ctl.
 *
 * Both axes are logarithmic: across the latency, upwards the number of datagrams, so that a tail of a few can be seen
 * beside the bulk. Every octave that holds one datagram shows at least the lowest block. */
#ifndef DWELLCTL_BARS_H
#define DWELLCTL_BARS_H

#include <jansson.h>

#include "term.h"

#define BARS_OCTAVES 27

struct bars {
	bool known;
	double count[BARS_OCTAVES], total;
	size_t tail;		/* first octave that holds the slowest 1 %; BARS_OCTAVES when there is none */
};
/* From an array of numbers; anything else is not known. */
struct bars bars_read(const json_t *octaves);
/* Row 0 is the topmost of rows; each octave takes columns_each (1 or 2). */
struct bars_look { size_t rows, columns_each; const char *color, *tail_color; };
void bars_row(struct line *l, const struct bars *b, const struct bars_look *look, size_t row);
/* The labels of the latency axis. */
void bars_axis(struct line *l, size_t columns_each);
#endif
