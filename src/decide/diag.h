/* SPDX-License-Identifier: GPL-2.0-or-later */
/* diag.h - a bounded list of located messages, so that all errors of all files are told in one run.
 * Layer: decide (no I/O).
 * Ownership: fixed buffers inside the struct; {0} is an empty list. Messages past the end are counted in dropped. */
#ifndef DWELLD_DIAG_H
#define DWELLD_DIAG_H

#include <stddef.h>
#include <stdint.h>

#define DIAG_MAX 100
#define DIAG_TEXT 400
#define DIAG_FILE 256

enum diag_level { DIAG_ERROR, DIAG_WARNING };

struct diag_entry {
	enum diag_level level;
	char file[DIAG_FILE];	/* "" when there is none */
	unsigned int line;	/* 0 when there is none */
	char text[DIAG_TEXT];
};

struct diag {
	struct diag_entry entry[DIAG_MAX];
	size_t count, dropped, errors, warnings;
};

/* Add an error; returns -EINVAL always, so that "return diag_add(...)" reads well. file may be NULL, line 0. */
int diag_add(struct diag *d, const char *file, unsigned int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same for a warning; returns 0. */
int diag_warn(struct diag *d, const char *file, unsigned int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* "file:line: text", or "text" without a file; warnings get "warning: " before the text. Returns the length. */
size_t diag_format(const struct diag_entry *e, char *buf, size_t size);
#endif
