/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "big.h"

#include <string.h>

static const struct { char letter; const char *row[BIG_ROWS]; } letters[] = {
	{ 'A', { " #### ", "##  ##", "######", "##  ##", "##  ##" } },
	{ 'D', { "##### ", "##  ##", "##  ##", "##  ##", "##### " } },
	{ 'E', { "######", "##    ", "####  ", "##    ", "######" } },
	{ 'I', { "##", "##", "##", "##", "##" } },
	{ 'K', { "##  ##", "## ## ", "####  ", "## ## ", "##  ##" } },
	{ 'L', { "##    ", "##    ", "##    ", "##    ", "######" } },
	{ 'N', { "##  ##", "### ##", "######", "## ###", "##  ##" } },
	{ 'O', { " #### ", "##  ##", "##  ##", "##  ##", " #### " } },
	{ 'R', { "##### ", "##  ##", "##### ", "## ## ", "##  ##" } },
	{ 'T', { "######", "  ##  ", "  ##  ", "  ##  ", "  ##  " } },
	{ 'U', { "##  ##", "##  ##", "##  ##", "##  ##", " #### " } },
	{ 'W', { "##   ##", "##   ##", "## # ##", "### ###", "##   ##" } },
};

static const char *row_of(char letter, size_t row)
{
	size_t i;

	for (i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (letters[i].letter == letter)
			return letters[i].row[row];
	return "";
}

size_t big_width(const char *word)
{
	size_t width = 0;

	for (; *word; word++)
		width += strlen(row_of(*word, 0)) + (word[1] ? 1 : 0);
	return width;
}

void big_row(struct line *l, const char *color, const char *word, size_t row)
{
	const char *pixels;
	struct text t = { 0 };

	for (; *word; word++) {
		for (pixels = row_of(*word, row); *pixels; pixels++)
			text_put(&t, *pixels == ' ' ? " " : l->term->utf8 ? "█" : "#");
		text_put(&t, word[1] ? " " : "");
	}
	line_put(l, color, t.bytes ? t.bytes : "");
	text_free(&t);
}
