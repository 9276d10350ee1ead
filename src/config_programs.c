/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_programs.c - the programs of the hooks as they are on disk now. The runner looks again at each run;
 * here an operator is told before one is needed. */
#include <errno.h>
#include <unistd.h>

#include "config_file.h"
#include "config_keys.h"
#include "run/path_check.h"

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
	/* only root can look at them, and the runner is root */
	for (unsigned int i = 0; geteuid() == 0 && i < h->credential_count; i++) {
		if (path_check_file(h->credential_path[i], why, sizeof(why), &checked) < 0)
			r = tell(d, m, h->place[HOOK_KEY_CREDENTIAL], "credential", why);
		else
			close(checked.fd);
	}
	return r;
}

int config_check_hooks(const struct model *m, struct diag *d)
{
	int worst = 0;

	for (int i = 0; i < m->hook_count; i++)
		if (hook_check(m, &m->hook[i], d) < 0)
			worst = -EINVAL;
	return worst;
}
