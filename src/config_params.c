/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_params.c - the top level keys and the profiles of "params". */
#include <stdio.h>
#include <string.h>

#include "config_sections.h"
#include "decide/units.h"

static const char *const top_now[] = {"mode", "builtin_rules", "params", "targets", "rules", "hooks", NULL};
static const char *const top_later[] = {"storm",  "cooldown", "hold",	"expire",  "budget",   "permit",
					"repeat", "flight",   "ledger", "metrics", "required", NULL};
static const char *const modes[] = {"observe", "dry-run", "act", NULL};
static const char *const severities[] = {"info", "warning", "critical", NULL};

bool config_enabled(struct config_tree *t, const struct config_entry *e)
{
	bool enabled = true;

	config_bool(t, config_get(e, "enabled"), &enabled);
	return enabled;
}

void config_names_of(const struct config_section *section, const char **ret)
{
	for (unsigned int i = 0; i < section->count; i++)
		ret[i] = section->entry[i].name;
	ret[section->count] = NULL;
}

void config_top(struct config_tree *t, struct model *m, bool *ret_builtin_rules)
{
	const struct config_keys keys = {top_now, top_later}, choice = {modes, NULL};

	for (unsigned int i = 0; i < t->count; i++) {
		const config_setting_t *root = config_root_setting(&t->source[i].cfg);
		const config_setting_t *mode = config_setting_get_member(root, "mode");
		int value;

		config_check_keys(t, root, &keys);
		if (config_choice(t, mode, &choice, &value) == 0) {
			m->mode = (enum model_mode)value;
			m->mode_place = config_place(t, mode);
		}
		config_bool(t, config_setting_get_member(root, "builtin_rules"), ret_builtin_rules);
	}
}

static struct model_profile *profile_of(struct config_tree *t, const config_setting_t *group, struct model *m)
{
	const int found = model_profile_find(m, group->name);
	struct model_profile *p;

	if (found >= 0)
		return &m->profile[found];
	if (m->profile_count == MODEL_PROFILES) {
		config_error(t, group, "more than %d profiles", MODEL_PROFILES);
		return NULL;
	}
	if (strlen(group->name) >= MODEL_NAME) {
		config_error(t, group, "name of a profile longer than %d bytes", MODEL_NAME - 1);
		return NULL;
	}
	p = &m->profile[m->profile_count++];
	snprintf(p->name, sizeof(p->name), "%s", group->name);
	p->at_most = SEVERITY_CRITICAL;
	snprintf(p->origin.file, sizeof(p->origin.file), "%s", config_source_of(t, group)->path);
	p->origin.line = group->line;
	return p;
}

static struct model_param *param_of(struct config_tree *t, const config_setting_t *s, struct model_profile *p)
{
	for (unsigned int i = 0; i < p->param_count; i++)
		if (strcmp(p->param[i].name, s->name) == 0)
			return &p->param[i];
	if (p->param_count == MODEL_PARAMS) {
		config_error(t, s, "more than %d values in one profile", MODEL_PARAMS);
		return NULL;
	}
	if (strlen(s->name) >= EXPR_PARAM_NAME || s->name[strcspn(s->name, "-*")]) {
		config_error(t, s, "expected a name of letters, digits and _ of at most %d bytes",
			     EXPR_PARAM_NAME - 1);
		return NULL;
	}
	return &p->param[p->param_count];
}

static void param_read(struct config_tree *t, const config_setting_t *s, struct model_profile *p)
{
	const struct config_keys choice = {severities, NULL};
	struct model_param *param, next = {.place = config_place(t, s)};
	const char *text;
	int value;

	if (strcmp(s->name, "at_most") == 0) {
		if (config_choice(t, s, &choice, &value) < 0)
			return;
		p->at_most = (enum severity)value;
		p->at_most_place = config_place(t, s);
		return;
	}
	if (s->type != CONFIG_TYPE_STRING) {
		config_error(t, s,
			     "expected a quoted quantity, such as \"10ms\", \"30%%\", \"5/s\", \"64KiB\"");
		return;
	}
	if (config_text(t, s, MODEL_TEXT, &text) < 0)
		return;
	if (units_parse_quantity(text, &next.value, &next.dim) < 0) {
		config_error(t, s,
			     "expected a quoted quantity, such as \"10ms\", \"30%%\", \"5/s\", \"64KiB\", "
			     "found \"%.60s\"",
			     text);
		return;
	}
	param = param_of(t, s, p);
	if (!param)
		return;
	if (param == &p->param[p->param_count])
		p->param_count++;
	snprintf(next.name, sizeof(next.name), "%s", s->name);
	*param = next;
}

void config_params(struct config_tree *t, struct model *m)
{
	for (unsigned int i = 0; i < t->count; i++) {
		const config_setting_t *params =
			config_setting_get_member(config_root_setting(&t->source[i].cfg), "params");

		if (params && !config_setting_is_group(params)) {
			config_error(
				t, params,
				"expected a group of profiles: params = { media = { slow = \"10ms\"; }; };");
			continue;
		}
		for (int k = 0; params && k < config_setting_length(params); k++) {
			const config_setting_t *group = config_setting_get_elem(params, (unsigned int)k);
			struct model_profile *p;

			if (!config_setting_is_group(group)) {
				config_error(t, group, "expected a profile: a group of quantities");
				continue;
			}
			p = profile_of(t, group, m);
			for (int n = 0; p && n < config_setting_length(group); n++)
				param_read(t, config_setting_get_elem(group, (unsigned int)n), p);
		}
	}
}
