/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model.h"

#include <string.h>

int model_profile_find(const struct model *m, const char *name)
{
	for (int i = 0; i < m->profile_count; i++)
		if (strcmp(m->profile[i].name, name) == 0)
			return i;
	return -1;
}

int model_hook_find(const struct model *m, const char *name)
{
	for (int i = 0; i < m->hook_count; i++)
		if (strcmp(m->hook[i].name, name) == 0)
			return i;
	return -1;
}

int model_rule_find(const struct model *m, const char *name)
{
	for (int i = 0; i < m->rule_count; i++)
		if (strcmp(m->rule[i].name, name) == 0)
			return i;
	return -1;
}

static const struct model_param *profile_param(const struct model *m, int profile, const char *name)
{
	if (profile < 0 || profile >= m->profile_count)
		return NULL;
	for (unsigned int i = 0; i < m->profile[profile].param_count; i++)
		if (strcmp(m->profile[profile].param[i].name, name) == 0)
			return &m->profile[profile].param[i];
	return NULL;
}

bool model_param(const struct model *m, int profile, const char *name, double *ret_value)
{
	const struct model_param *p = profile_param(m, profile, name);

	if (!p)
		p = profile_param(m, model_profile_find(m, "generic"), name);
	if (!p)
		return false;
	*ret_value = p->value;
	return true;
}

/* The switches have no default, so that the compiler finds a forgotten constant; "?" is for a corrupt value only. */
const char *model_mode_name(enum model_mode mode)
{
	switch (mode) {
	case MODE_OBSERVE:
		return "observe";
	case MODE_DRY_RUN:
		return "dry-run";
	case MODE_ACT:
		return "act";
	}
	return "?";
}

const char *rule_class_name(enum rule_class class)
{
	switch (class) {
	case CLASS_SERVER:
		return "server";
	case CLASS_HOST:
		return "host";
	case CLASS_NETWORK:
		return "network";
	case CLASS_COVERAGE:
		return "coverage";
	}
	return "?";
}

const char *severity_name(enum severity severity)
{
	switch (severity) {
	case SEVERITY_INFO:
		return "info";
	case SEVERITY_WARNING:
		return "warning";
	case SEVERITY_CRITICAL:
		return "critical";
	}
	return "?";
}

const char *hook_kind_name(enum hook_kind kind)
{
	switch (kind) {
	case HOOK_PAGE:
		return "page";
	case HOOK_REMEDY:
		return "remedy";
	case HOOK_DESTRUCTIVE:
		return "destructive";
	}
	return "?";
}
