/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jsonw.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void put(struct jsonw *w, const char *bytes, size_t n)
{
	if (w->full)
		return;
	if (n >= w->size - w->length) {		/* one byte stays for the NUL */
		w->full = true;
		return;
	}
	memcpy(w->buf + w->length, bytes, n);
	w->length += n;
}

static void put_text(struct jsonw *w, const char *text)
{
	put(w, text, strlen(text));
}

size_t jsonw_utf8_length(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i, n;

	if (s[0] < 0x80)
		return 1;
	n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	for (i = 1; i < n; i++)		/* a NUL is no continuation byte, so this stops at the end */
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, UTF-16 surrogates, beyond U+10FFFF */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

static void put_escaped(struct jsonw *w, const char *text)
{
	char escape[8];
	size_t n;

	for (; *text; text += n) {
		const unsigned char c = (unsigned char)text[0];

		n = jsonw_utf8_length(text);
		if (n == 0) {
			put_text(w, "\\ufffd");
			n = 1;
		} else if (c == '"' || c == '\\') {
			escape[0] = '\\';
			escape[1] = (char)c;
			put(w, escape, 2);
		} else if (c < 0x20 || c == 0x7f) {
			snprintf(escape, sizeof(escape), "\\u%04x", c);
			put(w, escape, 6);
		} else if (c == 0xc2 && (unsigned char)text[1] < 0xa0) {
			snprintf(escape, sizeof(escape), "\\u%04x", (unsigned char)text[1]);
			put(w, escape, 6);
		} else {
			put(w, text, n);
		}
	}
}

static void put_quoted(struct jsonw *w, const char *text)
{
	put(w, "\"", 1);
	put_escaped(w, text);
	put(w, "\"", 1);
}

/* What stands before every value: the comma and the key. */
static void before(struct jsonw *w, const char *key)
{
	if (w->comma)
		put(w, ",", 1);
	w->comma = true;
	if (key) {
		put_quoted(w, key);
		put(w, ":", 1);
	}
}

void jsonw_start(struct jsonw *w, char *buf, size_t size)
{
	*w = (struct jsonw){ .buf = buf, .size = size, .full = size == 0 };
}

int jsonw_finish(struct jsonw *w, size_t *ret_length)
{
	if (w->full)
		return -ENOBUFS;
	w->buf[w->length] = '\0';
	*ret_length = w->length;
	return 0;
}

static void open_level(struct jsonw *w, const char *key, const char *bracket)
{
	before(w, key);
	put(w, bracket, 1);
	w->comma = false;
}

static void close_level(struct jsonw *w, const char *bracket)
{
	put(w, bracket, 1);
	w->comma = true;	/* the level around it now holds at least this value */
}

void jsonw_object(struct jsonw *w, const char *key)
{
	open_level(w, key, "{");
}

void jsonw_object_end(struct jsonw *w)
{
	close_level(w, "}");
}

void jsonw_array(struct jsonw *w, const char *key)
{
	open_level(w, key, "[");
}

void jsonw_array_end(struct jsonw *w)
{
	close_level(w, "]");
}

void jsonw_null(struct jsonw *w, const char *key)
{
	before(w, key);
	put_text(w, "null");
}

void jsonw_bool(struct jsonw *w, const char *key, bool value)
{
	before(w, key);
	put_text(w, value ? "true" : "false");
}

void jsonw_uint(struct jsonw *w, const char *key, uint64_t value)
{
	char text[24];

	before(w, key);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(value > JSONW_INT_MAX ? JSONW_INT_MAX : value));
	put_text(w, text);
}

void jsonw_int(struct jsonw *w, const char *key, int64_t value)
{
	char text[24];
	const int64_t most = (int64_t)JSONW_INT_MAX;

	before(w, key);
	snprintf(text, sizeof(text), "%lld", (long long)(value > most ? most : value < -most ? -most : value));
	put_text(w, text);
}

void jsonw_double(struct jsonw *w, const char *key, double value)
{
	char text[40], *comma;

	if (!__builtin_isfinite(value)) {
		jsonw_null(w, key);
		return;
	}
	before(w, key);
	snprintf(text, sizeof(text), "%.9g", value);
	comma = strchr(text, ',');
	if (comma)
		*comma = '.';
	put_text(w, text);
}

void jsonw_string(struct jsonw *w, const char *key, const char *text)
{
	if (!text) {
		jsonw_null(w, key);
		return;
	}
	before(w, key);
	put_quoted(w, text);
}

void jsonw_string_or_null(struct jsonw *w, const char *key, const char *text)
{
	jsonw_string(w, key, text && text[0] ? text : NULL);
}
