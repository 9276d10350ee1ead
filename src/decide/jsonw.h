/* SPDX-License-Identifier: GPL-2.0-or-later */
/* jsonw.h - writes one JSON document into a caller's buffer. Layer: decide (pure; no allocation).
 *
 * The writer puts commas, quotes and escapes; the caller keeps opening and closing in balance. key is NULL inside an
 * array and at the top. A buffer that is too small is remembered and reported once, by jsonw_finish().
 * Numbers:   integers stop at JSONW_INT_MAX (2^53 - 1, what every reader holds exactly); a number that is not finite is
 *            null. The decimal point is a point in every locale.
 * Strings:   control characters (C0, DEL, C1) are escaped, bytes that are not UTF-8 become U+FFFD. NULL is null.
 * Ownership: the buffer is the caller's; nothing is kept after jsonw_finish(). */
#ifndef DWELLD_JSONW_H
#define DWELLD_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSONW_INT_MAX 9007199254740991ULL

struct jsonw {
	char *buf;
	size_t size, length;
	bool full;	/* something did not fit; nothing is written any more */
	bool comma;	/* the next value of this level needs one */
};

void jsonw_start(struct jsonw *w, char *buf, size_t size);
/* 0 and the length without the closing NUL, or -ENOBUFS. */
int jsonw_finish(struct jsonw *w, size_t *ret_length);

void jsonw_object(struct jsonw *w, const char *key);
void jsonw_object_end(struct jsonw *w);
void jsonw_array(struct jsonw *w, const char *key);
void jsonw_array_end(struct jsonw *w);
void jsonw_null(struct jsonw *w, const char *key);
void jsonw_bool(struct jsonw *w, const char *key, bool value);
void jsonw_uint(struct jsonw *w, const char *key, uint64_t value);
void jsonw_int(struct jsonw *w, const char *key, int64_t value);
void jsonw_double(struct jsonw *w, const char *key, double value);
void jsonw_string(struct jsonw *w, const char *key, const char *text);
/* Like jsonw_string(), but "" is null too. */
void jsonw_string_or_null(struct jsonw *w, const char *key, const char *text);

/* Length of the UTF-8 sequence at text (NUL-terminated), 1..4; 0 when the bytes there are not UTF-8. */
size_t jsonw_utf8_length(const char *text);
#endif
