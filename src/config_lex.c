/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config_lex.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config_syntax.h"

void config_syntax_line(const char *text, unsigned int line, char *buf, size_t size)
{
	size_t n, blank;

	for (; line > 1; line--) {
		const char *newline = strchr(text, '\n');

		if (!newline)
			break;
		text = newline + 1;
	}
	blank = strspn(text, " \t\r");
	text += blank;
	n = strcspn(text, "\r\n");
	if (n >= size)
		n = size - 1;
	memcpy(buf, text, n);
	buf[n] = '\0';
	/* it is shown on terminals */
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)buf[i] < ' ' || (unsigned char)buf[i] >= 127)
			buf[i] = buf[i] == '\t' ? ' ' : '?';
}

int config_lex_fail(struct config_lex *l, unsigned int line, const char *format, ...)
{
	char text[256], shown[100]; /* together shorter than DIAG_TEXT */
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	config_syntax_line(l->text, line, shown, sizeof(shown));
	return diag_add(l->d, l->source->path, line, "%s, in: %s", text,
			shown[0] ? shown : "(an empty line)");
}

bool config_token_is(const struct config_token *token, const char *word)
{
	return strlen(word) == token->length && strncasecmp(token->at, word, token->length) == 0;
}

static bool is_alpha(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool starts(const struct config_lex *l, const char *with)
{
	const size_t n = strlen(with);

	return (size_t)(l->end - l->at) >= n && memcmp(l->at, with, n) == 0;
}

static int comment_skip(struct config_lex *l)
{
	const unsigned int line = l->line;

	l->at += 2;
	while (!starts(l, "*/")) {
		if (l->at >= l->end)
			return config_lex_fail(l, line, "the comment that begins here is not closed with */");
		l->line += *l->at++ == '\n';
	}
	l->at += 2;
	return 0;
}

static int blanks_skip(struct config_lex *l)
{
	while (l->at < l->end) {
		if (*l->at == '#' || starts(l, "//")) {
			while (l->at < l->end && *l->at != '\n')
				l->at++;
		} else if (starts(l, "/*")) {
			if (comment_skip(l) < 0)
				return -EINVAL;
		} else if (strchr(" \t\r\n\f", *l->at)) {
			l->line += *l->at++ == '\n';
		} else {
			return 0;
		}
	}
	return 0;
}

static int string_read(struct config_lex *l)
{
	const unsigned int line = l->line;

	l->token.kind = TOKEN_STRING;
	for (l->at++; l->at < l->end && *l->at != '"'; l->at++) {
		l->line += *l->at == '\n';
		if (*l->at != '\\' || l->at + 1 >= l->end)
			continue;
		l->at++;
		l->token.escaped_hex |= *l->at == 'x';
		l->line += *l->at == '\n';
	}
	if (l->at >= l->end)
		return config_lex_fail(l, line, "the quote that opens here is never closed");
	l->at++;
	if (l->line != line) {
		l->torn_line = line;
		l->torn_end = l->line;
	}
	return 0;
}

/* libconfig keeps what fits into an int and drops the rest without a word. */
static bool number_too_big(const char *text, size_t length)
{
	const bool hex = length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char copy[80];
	long long n;

	if (length >= sizeof(copy))
		return true;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (!hex && strpbrk(copy, ".eE"))
		return false;
	errno = 0;
	n = strtoll(copy, NULL, hex ? 16 : 10);
	if (errno == ERANGE)
		return true;
	return !strchr(copy, 'L') && (n > INT_MAX || n < INT_MIN);
}

static void number_read(struct config_lex *l)
{
	const char *start = l->at;

	l->token.kind = TOKEN_NUMBER;
	if (*l->at == '+' || *l->at == '-')
		l->at++;
	if (l->at == start && starts(l, "0x")) {
		for (l->at += 2; l->at < l->end && (is_digit(*l->at) || strchr("abcdefABCDEF", *l->at));
		     l->at++)
			;
	} else {
		while (l->at < l->end && (is_digit(*l->at) || *l->at == '.'))
			l->at++;
		if (l->at + 1 < l->end && (*l->at == 'e' || *l->at == 'E') &&
		    (is_digit(l->at[1]) ||
		     ((l->at[1] == '+' || l->at[1] == '-') && l->at + 2 < l->end && is_digit(l->at[2]))))
			for (l->at += 2; l->at < l->end && is_digit(*l->at); l->at++)
				;
	}
	while (l->at < l->end && *l->at == 'L')
		l->at++;
	l->token.too_big = number_too_big(start, (size_t)(l->at - start));
	l->token.glued =
		l->at < l->end && (is_alpha(*l->at) || *l->at == '%' || *l->at == '-' || *l->at == ':' ||
				   (*l->at == '/' && l->at + 1 < l->end && is_alpha(l->at[1])));
	while (l->token.glued && l->at < l->end && !strchr(" \t\r\n\f;,)]}\"#", *l->at))
		l->at++;
}

static void name_read(struct config_lex *l)
{
	l->token.kind = TOKEN_NAME;
	while (l->at < l->end && (is_alpha(*l->at) || is_digit(*l->at) || strchr("-_*", *l->at)))
		l->at++;
}

int config_lex_next(struct config_lex *l)
{
	const char *p;
	int r = 0;

	l->before = l->token;
	if (blanks_skip(l) < 0)
		return -EINVAL;
	p = l->at;
	l->token = (struct config_token){.at = p, .line = l->line};
	if (p >= l->end)
		return 0;
	if (*p == '"') {
		r = string_read(l);
	} else if (is_digit(*p) ||
		   ((*p == '+' || *p == '-' || *p == '.') && p + 1 < l->end && is_digit(p[1])) ||
		   ((*p == '+' || *p == '-') && p + 2 < l->end && p[1] == '.' && is_digit(p[2]))) {
		number_read(l);
	} else if (is_alpha(*p) || *p == '*') {
		name_read(l);
	} else {
		l->token.kind = TOKEN_OTHER;
		l->token.c = *p;
		l->at++;
	}
	l->token.length = (size_t)(l->at - p);
	if (l->token.kind == TOKEN_NAME &&
	    (config_token_is(&l->token, "true") || config_token_is(&l->token, "false")))
		l->token.kind = TOKEN_BOOL;
	return r;
}
