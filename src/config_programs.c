/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_programs.c - the programs of the hooks as they are on disk now. The runner looks again at each run;
 * here an operator is told before one is needed. */
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_file.h"
#include "config_keys.h"
#include "run/path_check.h"

#define HOOK_USER "dwelld-hook"	/* of page hooks that name none */

static int tell(struct diag *d, const struct model *m, struct model_place place, const char *key,
		const char *why)
{
	return diag_add(d, place.file ? m->file[place.file - 1] : NULL, place.line, "%s: %s", key, why);
}

static int hook_check(const struct model *m, const struct model_hook *h, struct diag *d)
{
	struct path_checked checked;
	char why[DIAG_TEXT];
	int r = 0;

	if (path_check_program(h->argv[0], why, sizeof(why), &checked) < 0)
		r = tell(d, m, h->place[HOOK_KEY_EXEC], "exec", why);
	else
		close(checked.fd);
	if (strcmp(h->user, HOOK_USER) && !getpwnam(h->user))
		r = tell(d, m, h->place[HOOK_KEY_USER], "user", "no such user here");
	/* only root can look at them, and the runner is root */
	for (unsigned int i = 0; geteuid() == 0 && i < h->credential_count; i++) {
		if (path_check_file(h->credential_path[i], why, sizeof(why), &checked) < 0)
			r = tell(d, m, h->place[HOOK_KEY_CREDENTIAL], "credential", why);
		else
			close(checked.fd);
	}
	return r;
}

/* The package makes this user; a build from source has to. Told when the daemon runs, not by a check of the text. */
void config_warn_user(const struct model *m, struct diag *d)
{
	if (getpwnam(HOOK_USER))
		return;
	for (int i = 0; i < m->hook_count; i++)
		if (!strcmp(m->hook[i].user, HOOK_USER)) {
			diag_warn(d, NULL, 0, "hook %s will not run: user " HOOK_USER " does not exist (systemd-sysusers makes it)",
				  m->hook[i].name);
			return;
		}
}

/* The runner refuses every hook of a configuration that others could have written. */
static int file_check(const char *path, struct diag *d)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;	/* "built-in" */
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return diag_add(d, path, 0, "belongs to uid %u: its hooks are refused; expected root's", st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return diag_add(d, path, 0, "mode %04o lets others write it: its hooks are refused; expected 0644 or less",
				st.st_mode & 07777);
	return 0;
}

int config_check_hooks(const struct model *m, struct diag *d)
{
	int worst = 0;

	for (int i = 0; m->hook_count && i < m->file_count; i++)
		if (file_check(m->file[i], d) < 0)
			worst = -EINVAL;
	for (int i = 0; i < m->hook_count; i++)
		if (hook_check(m, &m->hook[i], d) < 0)
			worst = -EINVAL;
	return worst;
}
