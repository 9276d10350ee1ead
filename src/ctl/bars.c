/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bars.h"

#include <string.h>

#define TAIL 0.01

/* log2(1 + n) to 1/256, without libm: the whole part by halving, the fraction linear in between. */
static double log2_1p(double n)
{
	double whole = 0;

	for (n += 1; n >= 2; n /= 2)
		whole++;
	return whole + (n - 1);
}

struct bars bars_read(const json_t *octaves)
{
	struct bars b = { .tail = BARS_OCTAVES };
	double above = 0;
	size_t i;

	if (json_array_size(octaves) != BARS_OCTAVES)
		return b;
	for (i = 0; i < BARS_OCTAVES; i++) {
		const double n = json_number_value(json_array_get(octaves, i));

		b.count[i] = n > 0 && n < 1e18 ? n : 0;
		b.total += b.count[i];
	}
	b.known = true;
	for (i = BARS_OCTAVES; i-- > 0 && b.total > 0;) {
		above += b.count[i];
		if (above > b.total * TAIL)
			break;
		b.tail = i;
	}
	return b;
}

/* Height of an octave in steps of which each row has `steps`. */
static size_t height_of(const struct bars *b, size_t octave, size_t most)
{
	double top = 0, share;
	size_t i;

	for (i = 0; i < BARS_OCTAVES; i++)
		top = b->count[i] > top ? b->count[i] : top;
	if (b->count[octave] <= 0)
		return 0;
	share = log2_1p(b->count[octave]) / log2_1p(top);
	i = (size_t)(share * (double)most + 0.5);
	return i < 1 ? 1 : i > most ? most : i;
}

void bars_row(struct line *l, const struct bars *b, const struct bars_look *look, size_t row)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const plain[] = { " ", ".", ":", "#" };
	const size_t steps = l->term->utf8 ? 8 : 3, below = (look->rows - 1 - row) * steps;
	struct text t = { 0 };
	size_t i, j;

	for (i = 0; i < BARS_OCTAVES; i++) {
		const size_t height = height_of(b, i, look->rows * steps);
		const size_t here = height <= below ? 0 : height - below > steps ? steps : height - below;

		for (j = 0; j < look->columns_each; j++)
			text_put(&t, l->term->utf8 ? blocks[here] : plain[here]);
		if (i + 1 == b->tail || i + 1 == BARS_OCTAVES) {	/* a colour ends here */
			line_put(l, i + 1 == b->tail || b->tail == BARS_OCTAVES ? look->color : look->tail_color, t.bytes);
			text_free(&t);
		}
	}
}

void bars_axis(struct line *l, size_t columns_each)
{
	/* octave of the label's left edge; those that collide at one column an octave are left out there */
	static const struct { size_t octave; const char *text; bool narrow; } labels[] = {
		{ 0, "256ns", true },  { 4, "4us", false },   { 8, "66us", true },    { 12, "1ms", true },
		{ 16, "17ms", true }, { 20, "270ms", false }, { 21, "0.5s", true }, { 24, "4s", false } };
	size_t i, at = 0;

	for (i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		if ((columns_each == 1 && !labels[i].narrow) || (columns_each > 1 && labels[i].octave == 21))
			continue;
		line_gap(l, labels[i].octave * columns_each - at);
		line_put(l, TERM_DIM, labels[i].text);
		at = labels[i].octave * columns_each + strlen(labels[i].text);
	}
	line_gap(l, BARS_OCTAVES * columns_each - at);
}
