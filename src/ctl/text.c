/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "text.h"

#include <langinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

bool text_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* One UTF-8 sequence: its length and code point, or 0 when the bytes are none. */
static size_t decode(const char *text, unsigned int *ret_code)
{
	const unsigned char *s = (const unsigned char *)text;
	static const unsigned int least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned int code;
	size_t i, n;

	if (s[0] < 0x80) {
		*ret_code = s[0];
		return 1;
	}
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	code = s[0] & (0x7fU >> n);
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return n;
}

static bool harmful(unsigned int code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || (code >= 0x200b && code <= 0x200f) ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

void text_clean(char *s)
{
	const bool utf8 = text_utf8();
	unsigned int code = 0;
	char *out = s;
	size_t n;

	for (; *s; s += n ? n : 1) {
		n = decode(s, &code);
		if (n == 0 || harmful(code) || (n > 1 && !utf8)) {
			*out++ = '?';
			continue;
		}
		memmove(out, s, n);
		out += n;
	}
	*out = '\0';
}

static size_t width_of(unsigned int code)
{
	const int w = code < 0x80 ? 1 : wcwidth((wchar_t)code);

	return w < 0 ? 1 : (size_t)w;
}

size_t text_width(const char *s)
{
	unsigned int code = 0;
	size_t n, width = 0;

	for (; *s; s += n ? n : 1) {
		n = decode(s, &code);
		width += n ? width_of(code) : 1;
	}
	return width;
}

static void put_bytes(struct text *t, const char *s, size_t n)
{
	if (t->length + n + 1 > t->room) {
		t->room = (t->length + n + 1) * 2;
		t->bytes = realloc(t->bytes, t->room);
		if (!t->bytes) {
			fputs("dwellctl: out of memory\n", stderr);
			exit(1);
		}
	}
	memcpy(t->bytes + t->length, s, n);
	t->length += n;
	t->bytes[t->length] = '\0';
}

void text_put(struct text *t, const char *s)
{
	put_bytes(t, s, strlen(s));
}

void text_printf(struct text *t, const char *format, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	text_put(t, line);
}

void text_repeat(struct text *t, const char *s, size_t count)
{
	while (count--)
		text_put(t, s);
}

/* Bytes of the longest beginning of s that fits in width columns; *ret_width is what it takes. */
static size_t head_bytes(const char *s, size_t width, size_t *ret_width)
{
	unsigned int code = 0;
	size_t n, w, used = 0, i = 0;

	while (s[i]) {
		n = decode(s + i, &code);
		w = n ? width_of(code) : 1;
		if (used + w > width)
			break;
		used += w;
		i += n ? n : 1;
	}
	*ret_width = used;
	return i;
}

/* Where the longest end of s that fits in width columns begins. */
static const char *tail_start(const char *s, size_t width)
{
	size_t unused;

	while (*s && text_width(s) > width) {
		s += head_bytes(s, 1, &unused) ? head_bytes(s, 1, &unused) : 1;
		while (((unsigned char)*s & 0xc0) == 0x80)	/* a double-width one did not fit into 1 */
			s++;
	}
	return s;
}

void text_fit(struct text *t, const char *s, size_t width, enum text_fit fit)
{
	const char *mark = text_utf8() ? "…" : "~";
	size_t used = text_width(s), head;

	if (width == 0)
		return;
	if (used <= width) {
		text_repeat(t, " ", fit == TEXT_RIGHT ? width - used : 0);
		text_put(t, s);
		text_repeat(t, " ", fit == TEXT_RIGHT ? 0 : width - used);
		return;
	}
	head = head_bytes(s, fit == TEXT_MIDDLE ? width / 2 : width - 1, &used);
	put_bytes(t, s, head);
	text_put(t, mark);
	used++;
	if (fit == TEXT_MIDDLE) {
		s = tail_start(s + head, width - used);
		text_put(t, s);
		used += text_width(s);
	}
	text_repeat(t, " ", width - used);
}

void text_wrap(struct text *t, const char *s, struct text_wrap wrap)
{
	size_t column = wrap.first, length, width;
	bool fresh = true;		/* no blank before the first word of a line */
	char word[512];

	while (*s) {
		s += strspn(s, " ");
		length = strcspn(s, " ");
		if (length == 0)
			break;
		snprintf(word, sizeof(word), "%.*s", (int)length, s);
		s += length;
		width = text_width(word);
		if (width > wrap.width - wrap.indent)	/* a word longer than a line is cut in the middle */
			width = wrap.width - wrap.indent;
		if (!fresh && column + 1 + width > wrap.width) {
			text_put(t, "\n");
			text_repeat(t, " ", wrap.indent);
			column = wrap.indent;
			fresh = true;
		}
		text_put(t, fresh ? "" : " ");
		column += width + (fresh ? 0 : 1);
		text_fit(t, word, width, TEXT_MIDDLE);
		fresh = false;
	}
	text_put(t, "\n");
}

void text_free(struct text *t)
{
	free(t->bytes);
	*t = (struct text){ 0 };
}
