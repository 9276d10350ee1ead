/* SPDX-License-Identifier: GPL-2.0-or-later */
/* private_dir.h - directories that only the run's user can enter: STATE_DIRECTORY, CREDENTIALS_DIRECTORY. Layer: run.
 *
 * Errors: negative errno with one line in why. */
#ifndef DWELLD_PRIVATE_DIR_H
#define DWELLD_PRIVATE_DIR_H

#include <sys/types.h>

#include "decide/model.h"

#define PRIVATE_DIR_PATH 512

/* BASE/NAME, kept between runs, 0700 of the user. */
int private_dir_state(const char *base, const struct model_hook *hook, uid_t uid, gid_t gid, char *ret_path, char *why,
		      size_t size);
/* A new directory (0500) with a copy (0400) of each credential, on a tmpfs where there is one. key names the run: a
 * directory that a crashed run of the same key left is removed first. ret_path "" when the hook has no credential. */
int private_dir_credentials(const struct model_hook *hook, const char *key, uid_t uid, gid_t gid, char *ret_path,
			    char *why, size_t size);
/* Removes what private_dir_credentials() made; "" is fine. */
void private_dir_remove(const char *path);
#endif
