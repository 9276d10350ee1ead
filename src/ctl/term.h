/* SPDX-License-Identifier: GPL-2.0-or-later */
/* term.h - what the terminal can do, and lines that never grow wider than it. Layer: ctl. */
#ifndef DWELLCTL_TERM_H
#define DWELLCTL_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

struct term {
	bool tty;		/* standard output is a terminal that moves its cursor */
	bool color;		/* and NO_COLOR is not set */
	bool utf8;		/* the locale's codeset; else ASCII */
	size_t width, height;	/* of the terminal, else COLUMNS or 100, and 0 */
};
struct term term_probe(void);

/* SGR codes; "" paints nothing. */
#define TERM_PLAIN ""
#define TERM_BOLD "1"
#define TERM_DIM "2"
#define TERM_RED "31"
#define TERM_GREEN "32"
#define TERM_YELLOW "33"
#define TERM_BLUE "34"
#define TERM_CYAN "36"
#define TERM_BOLD_RED "1;31"
#define TERM_BOLD_GREEN "1;32"
#define TERM_BOLD_YELLOW "1;33"
#define TERM_BOLD_BLUE "1;34"
const char *term_verdict_color(const char *verdict);

/* One line under construction: pieces are cut when the width is used up. */
struct line { struct text *out; const struct term *term; size_t left; };
struct line line_start(struct text *out, const struct term *term);
void line_put(struct line *l, const char *color, const char *text);
void line_fit(struct line *l, const char *color, const char *text, size_t width, enum text_fit fit);
void line_gap(struct line *l, size_t columns);
/* Pad so that columns are left before the right edge. */
void line_until(struct line *l, size_t columns);
void line_end(struct line *l);
#endif
