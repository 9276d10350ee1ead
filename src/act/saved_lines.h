/* SPDX-License-Identifier: GPL-2.0-or-later */
/* saved_lines.h - one line of the debt file to and from text. Layer: act (no I/O here).
 *
 * "1 KIND SEQ HOOK TARGET RULE ALERT_ID WALL_US CRC32": KIND is owe, paid or seq (the highest number so far, kept through
 * compaction). Other bytes than [A-Za-z0-9._:@/-] in a field are %XX, an empty field is "-". The checksum (IEEE, eight
 * hex digits) covers everything before it, its space excluded.
 * Errors: -EINVAL not a whole, sound line; -ENOBUFS the buffer is too small. Outputs only on success. */
#ifndef DWELLD_SAVED_LINES_H
#define DWELLD_SAVED_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "decide/event.h"

#define SAVED_LINE_MAX 2048	/* with newline; every byte of every field escaped still fits */

enum saved_kind { SAVED_OWE, SAVED_PAID, SAVED_SEQ };
struct saved_line {
	enum saved_kind kind;
	uint64_t seq, wall_us;
	char hook[MODEL_NAME], target[SAMPLE_NAME_MAX], rule[MODEL_NAME], alert_id[EVENT_ID];
};

/* Writes the line with its newline and a NUL; returns the length without the NUL. */
int saved_line_format(const struct saved_line *l, char *buf, size_t size);
/* text: one line without its newline, NUL-terminated; it is cut into pieces. */
int saved_line_parse(char *text, struct saved_line *ret);
#endif
