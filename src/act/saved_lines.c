/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "saved_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS 9

static const char *const kind_names[] = { [SAVED_OWE] = "owe", [SAVED_PAID] = "paid", [SAVED_SEQ] = "seq" };

static uint32_t crc32(const char *text, size_t length)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < length; i++) {
		crc ^= (unsigned char)text[i];
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320U : 0);
	}
	return ~crc;
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("._:@/-", c));
}

struct out { char *buf; size_t size, length; };

static void put(struct out *o, char c)
{
	if (o->length < o->size)
		o->buf[o->length] = c;
	o->length++;
}

static void put_field(struct out *o, const char *field)
{
	static const char hex[] = "0123456789ABCDEF";

	put(o, ' ');
	if (!*field || strcmp(field, "-") == 0) {	/* "-" stands for empty, so a real one is escaped */
		for (const char *p = *field ? "%2D" : "-"; *p; p++)
			put(o, *p);
		return;
	}
	for (; *field; field++) {
		const unsigned char c = (unsigned char)*field;

		if (is_plain(*field)) {
			put(o, *field);
			continue;
		}
		put(o, '%');
		put(o, hex[c >> 4]);
		put(o, hex[c & 15]);
	}
}

static void put_number(struct out *o, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), " %" PRIu64, n);
	for (const char *p = text; *p; p++)
		put(o, *p);
}

int saved_line_format(const struct saved_line *l, char *buf, size_t size)
{
	struct out o = { .buf = buf, .size = size };
	char end[16];

	put(&o, '1');
	put_field(&o, kind_names[l->kind]);
	put_number(&o, l->seq);
	put_field(&o, l->hook);
	put_field(&o, l->target);
	put_field(&o, l->rule);
	put_field(&o, l->alert_id);
	put_number(&o, l->wall_us);
	if (o.length >= size)
		return -ENOBUFS;
	snprintf(end, sizeof(end), " %08" PRIx32 "\n", crc32(buf, o.length));
	for (const char *p = end; *p; p++)
		put(&o, *p);
	if (o.length >= size)
		return -ENOBUFS;
	buf[o.length] = '\0';
	return (int)o.length;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int read_field(const char *text, char *ret, size_t size)
{
	size_t n = 0;

	if (strcmp(text, "-") == 0)
		text = "";
	while (*text) {
		char c = *text++;

		if (c == '%') {
			const int high = hex_value(text[0]), low = high < 0 ? -1 : hex_value(text[1]);

			if (low < 0 || high + low == 0)
				return -EINVAL;
			c = (char)(high * 16 + low);
			text += 2;
		}
		if (n + 1 >= size)
			return -EINVAL;
		ret[n++] = c;
	}
	ret[n] = '\0';
	return 0;
}

static int read_number(const char *text, uint64_t *ret)
{
	unsigned long long n;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end)
		return -EINVAL;
	*ret = n;
	return 0;
}

static int read_kind(const char *text, enum saved_kind *ret)
{
	for (unsigned int i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++) {
		if (strcmp(text, kind_names[i]) == 0) {
			*ret = (enum saved_kind)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Whether the checksum after the last space is that of the text before it. */
static bool is_sound(const char *text)
{
	const char *last = strrchr(text, ' ');
	char want[16];

	if (!last)
		return false;
	snprintf(want, sizeof(want), "%08" PRIx32, crc32(text, (size_t)(last - text)));
	return strcmp(last + 1, want) == 0;
}

int saved_line_parse(char *text, struct saved_line *ret)
{
	struct saved_line l = { 0 };
	char *field[FIELDS], *rest = text;
	unsigned int n = 0;

	if (!is_sound(text))
		return -EINVAL;
	for (char *f = strsep(&rest, " "); f; f = strsep(&rest, " ")) {
		if (n == FIELDS)
			return -EINVAL;
		field[n++] = f;
	}
	if (n != FIELDS || strcmp(field[0], "1") != 0)
		return -EINVAL;
	if (read_kind(field[1], &l.kind) < 0 || read_number(field[2], &l.seq) < 0 ||
	    read_field(field[3], l.hook, sizeof(l.hook)) < 0 ||
	    read_field(field[4], l.target, sizeof(l.target)) < 0 ||
	    read_field(field[5], l.rule, sizeof(l.rule)) < 0 ||
	    read_field(field[6], l.alert_id, sizeof(l.alert_id)) < 0 || read_number(field[7], &l.wall_us) < 0)
		return -EINVAL;
	*ret = l;
	return 0;
}
