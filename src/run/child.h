/* SPDX-License-Identifier: GPL-2.0-or-later */
/* child.h - the hook's process: user, environment, arguments, descriptors, exec. Layer: run.
 *
 * The environment is complete: nothing of the runner's own goes through. Errors: negative errno with one line in why. */
#ifndef DWELLD_CHILD_H
#define DWELLD_CHILD_H

#include <grp.h>
#include <sys/types.h>

#include "decide/model.h"
#include "path_check.h"
#include "request.h"

#define CHILD_ENV_MAX 40
#define CHILD_GROUPS_MAX 64
#define CHILD_TEXT 16384

struct child_user { char name[MODEL_NAME]; uid_t uid; gid_t gid; gid_t group[CHILD_GROUPS_MAX]; int group_count; };

struct child {
	const struct model_hook *hook;
	const struct request *request;
	const struct path_checked *program;
	struct child_user user;
	uint32_t attempt;
	const char *state_dir, *credentials_dir;	/* credentials_dir "" = none */
	/* filled by child_start() */
	pid_t pid;
	int out_fd, err_fd;				/* pipes to read, nonblocking; the caller's */
	char *argv[MODEL_ARGV + 1], *env[CHILD_ENV_MAX + 1];
	char text[CHILD_TEXT];				/* what argv and env point into */
	size_t used;
	bool full;
};

int child_find_user(const struct model_hook *hook, struct child_user *ret, char *why, size_t size);
/* Builds argv and env and starts the process; -errno with why also when exec failed (then nothing ran). */
int child_start(struct child *c, char *why, size_t size);
#endif
