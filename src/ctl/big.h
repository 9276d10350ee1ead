/* SPDX-License-Identifier: GPL-2.0-or-later */
/* big.h - the verdict in letters of five lines. Layer: ctl. */
#ifndef DWELLCTL_BIG_H
#define DWELLCTL_BIG_H

#include <stddef.h>

#include "term.h"

#define BIG_ROWS 5
size_t big_width(const char *word);		/* columns; the letters A D E I K L N O R T U W and no others */
/* Row 0..4 of the word, full blocks or '#'. */
void big_row(struct line *l, const char *color, const char *word, size_t row);
#endif
