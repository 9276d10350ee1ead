/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stands in for config_file.c in a build that has none: reads name, kind, exec, timeout, user, credential. */
#include <libconfig.h>

#include "config_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "decide/units.h"

static void text(const config_setting_t *s, const char *key, const char *otherwise, char *ret, size_t size)
{
	const char *value = otherwise;

	config_setting_lookup_string(s, key, &value);
	snprintf(ret, size, "%s", value);
}

static void read_hook(const config_setting_t *s, struct model_hook *h)
{
	const config_setting_t *exec = config_setting_get_member(s, "exec");
	const config_setting_t *credential = config_setting_get_member(s, "credential");
	char kind[16], timeout[32];

	text(s, "name", "", h->name, sizeof(h->name));
	text(s, "kind", "remedy", kind, sizeof(kind));
	text(s, "timeout", "10s", timeout, sizeof(timeout));
	h->kind = strcmp(kind, "page") == 0 ? HOOK_PAGE : HOOK_REMEDY;
	text(s, "user", h->kind == HOOK_PAGE ? "dwelld-hook" : "root", h->user, sizeof(h->user));
	units_parse_duration(timeout, &h->timeout_ns);
	h->argc = exec ? (uint8_t)config_setting_length(exec) : 0;
	for (unsigned int i = 0; i < h->argc; i++)
		snprintf(h->argv[i], sizeof(h->argv[i]), "%s", config_setting_get_string_elem(exec, (int)i));
	h->credential_count = credential ? (uint8_t)config_setting_length(credential) : 0;
	for (unsigned int i = 0; i < h->credential_count; i++) {
		const char *pair = config_setting_get_string_elem(credential, (int)i), *colon = strchr(pair, ':');

		snprintf(h->credential_name[i], sizeof(h->credential_name[i]), "%.*s", (int)(colon - pair), pair);
		snprintf(h->credential_path[i], sizeof(h->credential_path[i]), "%s", colon + 1);
	}
}

int config_read_hooks(const char *path, const char *dir, struct diag *d, struct model *ret)
{
	const config_setting_t *list;
	config_t c;

	(void)dir;
	config_init(&c);
	if (!config_read_file(&c, path)) {
		diag_add(d, path, (unsigned int)config_error_line(&c), "%s", config_error_text(&c));
		config_destroy(&c);
		return -EINVAL;
	}
	list = config_lookup(&c, "hooks");
	for (int i = 0; list && i < config_setting_length(list); i++)
		read_hook(config_setting_get_elem(list, (unsigned int)i), &ret->hook[ret->hook_count++]);
	config_destroy(&c);
	return 0;
}
