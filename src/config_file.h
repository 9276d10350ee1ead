/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_file.h - configuration files to a validated struct model, and back to text. Layer: joins (main, run).
 *
 * Files:     the compiled-in built-ins, then /etc/dwelld/dwelld.conf, then /etc/dwelld/conf.d/ *.conf in byte order, each
 *            parsed alone (libconfig); targets, rules and hooks merge by name, key by key, later wins.
 *            With a file given: built-ins and that file only.
 * Errors:    -EINVAL with every semantic error of all files in *d (file:line: key: what was expected); syntax errors
 *            are one per file, with a hint. -ENOENT when a file that was named does not exist (also in *d). */
#ifndef DWELLD_CONFIG_FILE_H
#define DWELLD_CONFIG_FILE_H

#include <stdio.h>

#include "decide/diag.h"
#include "decide/model.h"

#define CONFIG_ETC "/etc/dwelld"	/* the default directory */

/* libconfig exports a function of this name too: ours is called config_file_read in the object files, and whoever
 * includes <libconfig.h> as well includes it before this file. */
#define config_read config_file_read

/* path NULL: the default files (dir replaces /etc/dwelld when not NULL, for tests). *ret is written only on success. */
int config_read(const char *path, const char *dir, struct diag *d, struct model *ret);
/* The resolved configuration with the origin of each key as comments; the output parses to itself with builtin_rules
 * = false at its top. */
int config_print(const struct model *m, FILE *out);
/* What the runner needs: only the hooks, read with the same rules; a broken rule elsewhere must not stop an undo, so
 * errors outside "hooks" are ignored here. A hook with an error is left out of *ret and its error is in *d, so that it
 * does not stop the others; the return value is an error only when a file could not be read or parsed. */
int config_read_hooks(const char *path, const char *dir, struct diag *d, struct model *ret);
/* For --check and at start: is each hook's program there, executable, with an interpreter line, and safe up to "/"?
 * Every finding is an error in *d with the line of exec. 0, or -EINVAL when there was one. */
int config_check_hooks(const struct model *m, struct diag *d);
/* Page hooks that name no user need dwelld-hook: a warning when there is none. */
void config_warn_user(const struct model *m, struct diag *d);
#endif
