/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static size_t columns_wanted(void)
{
	const char *text = getenv("COLUMNS");
	const long n = text ? strtol(text, NULL, 10) : 0;

	return n >= 20 && n <= 1000 ? (size_t)n : 100;
}

struct term term_probe(void)
{
	const char *name = getenv("TERM"), *no_color = getenv("NO_COLOR");
	struct term t = { .utf8 = text_utf8() };
	struct winsize size;

	t.tty = isatty(STDOUT_FILENO) == 1 && name && name[0] && strcmp(name, "dumb") != 0;
	t.color = t.tty && !(no_color && no_color[0]);
	t.width = columns_wanted();
	if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
		t.width = size.ws_col;
		t.height = size.ws_row;
	}
	if (t.tty && t.height == 0)
		t.height = 24;
	return t;
}

const char *term_verdict_color(const char *verdict)
{
	if (strcmp(verdict, "ok") == 0 || strcmp(verdict, "idle") == 0)
		return TERM_GREEN;
	if (strcmp(verdict, "network") == 0)
		return TERM_BOLD_BLUE;
	if (strcmp(verdict, "server") == 0 || strcmp(verdict, "mixed") == 0)
		return TERM_BOLD_RED;
	return TERM_YELLOW;
}

struct line line_start(struct text *out, const struct term *term)
{
	return (struct line){ .out = out, .term = term, .left = term->width };
}

void line_fit(struct line *l, const char *color, const char *text, size_t width, enum text_fit fit)
{
	const bool paint = l->term->color && color[0] && text[0];

	if (width > l->left)
		width = l->left;
	if (width == 0)
		return;
	if (paint)
		text_printf(l->out, "\033[%sm", color);
	text_fit(l->out, text, width, fit);
	if (paint)
		text_put(l->out, "\033[0m");
	l->left -= width;
}

void line_put(struct line *l, const char *color, const char *text)
{
	const size_t width = text_width(text);

	line_fit(l, color, text, width < l->left ? width : l->left, TEXT_LEFT);
}

void line_gap(struct line *l, size_t columns)
{
	line_fit(l, TERM_PLAIN, "", columns, TEXT_LEFT);
}

void line_until(struct line *l, size_t columns)
{
	if (l->left > columns)
		line_gap(l, l->left - columns);
}

void line_end(struct line *l)
{
	/* no blanks at the end of a line: they would show in a pager and in golden files */
	while (l->out->length && l->out->bytes[l->out->length - 1] == ' ')
		l->out->bytes[--l->out->length] = '\0';
	text_put(l->out, "\n");
}
