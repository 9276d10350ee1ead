/* SPDX-License-Identifier: GPL-2.0-or-later */
/* saved_owed.h - the debt file as it is found at start. Layer: act.
 *
 * Ownership: {0} is empty; the caller frees o->line. Errors: negative errno. */
#ifndef DWELLD_SAVED_OWED_H
#define DWELLD_SAVED_OWED_H

#include "saved_lines.h"

struct saved_owed {
	struct saved_line *line;	/* what is still owed, oldest first */
	size_t count, room;
	uint64_t highest;		/* sequence number that was ever written */
	unsigned int damaged;		/* lines that could not be read */
};

/* Reads DIR/owed; a file that is not there is an empty one. */
int saved_owed_read(int dir_fd, struct saved_owed *o);
/* Replaces DIR/owed by what is still owed; the old one is kept as owed.damaged when lines of it could not be read. */
int saved_owed_compact(int dir_fd, const struct saved_owed *o);
/* write(2) to the end of buf. */
int saved_owed_append(int fd, const char *buf, size_t size);
#endif
