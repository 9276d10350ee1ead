/* SPDX-License-Identifier: GPL-2.0-or-later */
/* path_check.h - whether nobody but root can change what a path runs. Layer: run.
 *
 * Every component from / to the file, as written and as resolved through symlinks, must belong to root and be writable by
 * its owner only (a sticky directory such as /tmp is refused too); the file must be regular, executable and start with #!
 * or as ELF; the interpreter of a script is checked in the same way. A process that is not root also trusts its own uid.
 * Errors: -EPERM with one line in why: the component, what is wrong with it, what was expected. */
#ifndef DWELLD_PATH_CHECK_H
#define DWELLD_PATH_CHECK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct path_checked {
	char real[PATH_MAX];	/* without symlinks */
	int fd;			/* open for reading, close-on-exec; the caller's */
	bool script;		/* starts with #!: must be run by its path, an interpreter cannot open a closed fd */
};

/* A program that may be run. */
int path_check_program(const char *path, char *why, size_t size, struct path_checked *ret);
/* A file that may be read (a credential, a configuration): the same, but for mode bits and content. */
int path_check_file(const char *path, char *why, size_t size, struct path_checked *ret);
#endif
