/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static void diag_put(struct diag *d, struct diag_entry *where, const char *format, va_list args)
{
	struct diag_entry *e;

	if (where->level == DIAG_ERROR)
		d->errors++;
	else
		d->warnings++;
	if (d->count == DIAG_MAX) {
		d->dropped++;
		return;
	}
	e = &d->entry[d->count++];
	*e = *where;
	vsnprintf(e->text, sizeof(e->text), format, args);
}

static void diag_locate(struct diag_entry *e, enum diag_level level, const char *file, unsigned int line)
{
	e->level = level;
	e->line = line;
	e->text[0] = '\0';
	snprintf(e->file, sizeof(e->file), "%s", file ? file : "");
}

int diag_add(struct diag *d, const char *file, unsigned int line, const char *format, ...)
{
	struct diag_entry where;
	va_list args;

	diag_locate(&where, DIAG_ERROR, file, line);
	va_start(args, format);
	diag_put(d, &where, format, args);
	va_end(args);
	return -EINVAL;
}

int diag_warn(struct diag *d, const char *file, unsigned int line, const char *format, ...)
{
	struct diag_entry where;
	va_list args;

	diag_locate(&where, DIAG_WARNING, file, line);
	va_start(args, format);
	diag_put(d, &where, format, args);
	va_end(args);
	return 0;
}

size_t diag_format(const struct diag_entry *e, char *buf, size_t size)
{
	const char *level = e->level == DIAG_WARNING ? "warning: " : "";
	int n;

	if (!e->file[0])
		n = snprintf(buf, size, "%s%s", level, e->text);
	else if (!e->line)
		n = snprintf(buf, size, "%s: %s%s", e->file, level, e->text);
	else
		n = snprintf(buf, size, "%s:%u: %s%s", e->file, e->line, level, e->text);
	if (n < 0 || size == 0)
		return 0;
	return (size_t)n < size ? (size_t)n : size - 1;	/* what is in buf */
}
