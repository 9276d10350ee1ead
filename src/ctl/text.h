/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text.h - text for a terminal: cleaned, measured in columns, cut and padded; lines collected in one buffer.
 * Layer: ctl.
 *
 * Widths:    columns of a terminal, by wcwidth() of the locale (setlocale() first). In a locale that is not UTF-8 every
 *            byte beyond ASCII is printed as '?'.
 * Ownership: struct text owns its bytes; text_free() it. Out of memory ends the program. */
#ifndef DWELLCTL_TEXT_H
#define DWELLCTL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text { char *bytes; size_t length, room; };

/* In place: C0 and C1 controls, DEL, invalid UTF-8, and what reorders a line (bidi controls) become '?'. */
void text_clean(char *s);
bool text_utf8(void);		/* of the locale */
size_t text_width(const char *s);

void text_put(struct text *t, const char *s);
void text_printf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_repeat(struct text *t, const char *s, size_t count);
/* s in exactly width columns: padded on the right (or left), or cut with a mark at the end, or in the middle. */
enum text_fit { TEXT_LEFT, TEXT_RIGHT, TEXT_MIDDLE };
void text_fit(struct text *t, const char *s, size_t width, enum text_fit fit);
/* The words of s over several lines of at most width columns, those after the first with indent blanks. Ends with \n. */
struct text_wrap { size_t first, indent, width; };	/* first: columns used already on the first line */
void text_wrap(struct text *t, const char *s, struct text_wrap wrap);
void text_free(struct text *t);
#endif
