/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_rules.c - "rules": when something is wrong, for which targets, and which hooks it asks for. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config_sections.h"

static const char *const now[] = {"name",	 "enabled",	  "class",   "severity", "targets",
				  "all_targets", "when",	  "clear",   "for",	 "clear_for",
				  "nodata",	 "critical",	  "samples", "inhibits", "ladder",
				  "notify",	 "allow_network", "summary", NULL};
static const char *const later[] = {"verify",	    "budget",	"cooldown", "hold",   "expire",
				    "permit",	    "evidence", "storm",    "repeat", "delay",
				    "min_severity", "retries",	"runbook",  NULL};
static const char *const critical_now[] = {"when", "for", "enabled", NULL};
static const char *const critical_later[] = {"ladder", "notify", "clear", NULL};
static const char *const classes[] = {"server", "host", "network", "coverage", NULL};
static const char *const severities[] = {"info", "warning", "critical", NULL};
static const char *const nodatas[] = {"keep", "unknown", "fire", NULL};

struct reading {
	struct config_tree *t;
	const struct config_entry *e;
	const struct config_names *names;
	const struct model *m;
	struct model_rule *rule;
};

/* 1 known, 0 not given, negative an error. */
static int choice_read(struct reading *r, const char *key, const char *const *names, int *ret)
{
	const struct config_keys choice = {names, NULL};
	const int error = config_choice(r->t, config_get(r->e, key), &choice, ret);

	return error == -ENOENT ? 0 : error < 0 ? error : 1;
}

static int enums_read(struct reading *r)
{
	int value, got;
	bool bad = false;

	got = choice_read(r, "class", classes, &value);
	if (got == 0)
		config_error(r->t, config_get(r->e, "name"),
			     "rule \"%s\" has no class: expected \"server\", \"host\", "
			     "\"network\" or \"coverage\"",
			     r->e->name);
	if (got <= 0)
		bad = true;
	else
		r->rule->class = (enum rule_class)value;
	r->rule->severity = SEVERITY_WARNING;
	got = choice_read(r, "severity", severities, &value);
	if (got > 0)
		r->rule->severity = (enum severity)value;
	bad |= got < 0;
	got = choice_read(r, "nodata", nodatas, &value);
	if (got > 0)
		r->rule->nodata = (enum nodata)value;
	return bad || got < 0 ? -EINVAL : 0;
}

static int target_name_check(struct reading *r, const config_setting_t *s, const char *name, bool acts)
{
	const char *names[CONFIG_ENTRIES + 1], *near;

	if (strcmp(name, "host") == 0 || strcmp(name, "other") == 0 || strcmp(name, "self") == 0)
		return 0;
	config_names_of(r->names->targets, names);
	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return 0;
	if (r->t->broken)
		return 0;
	near = config_nearest(name, names);
	if (near)
		return config_error(r->t, s, "target \"%s\" is unknown, did you mean \"%s\"?", name, near);
	/* a service that is found by itself has its unit's or executable's name */
	if (acts || !strchr(name, '.'))
		config_warning(
			r->t, s,
			"target \"%s\" is not configured; only a service found by that name will match",
			name);
	return 0;
}

static int targets_read(struct reading *r)
{
	const config_setting_t *s = config_get(r->e, "targets");
	const bool acts =
		config_get(r->e, "ladder") != NULL && config_list_length(config_get(r->e, "ladder")) > 0;
	const int n = config_list_length(s);
	bool all_targets = false;

	if (config_bool(r->t, config_get(r->e, "all_targets"), &all_targets) == -EINVAL)
		return -EINVAL;
	if (!s && acts)
		return config_error(r->t, config_get(r->e, "ladder"),
				    "a rule with a ladder must name its targets");
	if (!s) {
		r->rule->all_targets = true;
		return 0;
	}
	if (n == 0)
		return config_error(r->t, s,
				    "empty list: name the targets, or leave the key out to watch all");
	if (n > MODEL_LIST)
		return config_error(r->t, s, "more than %d targets; leave the key out to watch all",
				    MODEL_LIST);
	for (int i = 0; i < n; i++) {
		const config_setting_t *item = config_list_at(s, i);
		const char *name;

		if (config_text(r->t, item, SAMPLE_NAME_MAX, &name) < 0)
			return -EINVAL;
		if (strcmp(name, "*") == 0 && n > 1)
			return config_error(r->t, item, "\"*\" stands alone or not at all");
		if (strcmp(name, "*") == 0 && acts && !all_targets)
			return config_error(
				r->t, item,
				"\"*\" with a ladder acts on every service of this host; if that is "
				"meant, say all_targets = true");
		if (strcmp(name, "*") == 0) {
			r->rule->all_targets = true;
			return 0;
		}
		if (!config_name_ok(name, "\\", SAMPLE_NAME_MAX))
			return config_error(r->t, item, "expected the name of a target, found \"%.60s\"",
					    name);
		if (target_name_check(r, item, name, acts) < 0)
			return -EINVAL;
		snprintf(r->rule->target[r->rule->target_count++], SAMPLE_NAME_MAX, "%s", name);
	}
	return 0;
}

static int expressions_read(struct reading *r)
{
	const config_setting_t *when = config_get(r->e, "when");
	int got = config_expr(r->t, when, &r->rule->when);
	bool bad = got < 0;

	if (got == -ENOENT)
		config_error(r->t, config_get(r->e, "name"),
			     "rule \"%s\" has no when: expected a condition such as "
			     "\"dwell.p99 > 20ms\"",
			     r->e->name);
	got = config_expr(r->t, config_get(r->e, "clear"), &r->rule->clear);
	r->rule->has_clear = got == 0;
	return bad || (got < 0 && got != -ENOENT) ? -EINVAL : 0;
}

static int holds_read(struct reading *r)
{
	const config_setting_t *hold = config_get(r->e, "for"), *clear_hold = config_get(r->e, "clear_for");
	const uint64_t day = 86400000000000ULL;
	int a = config_duration(r->t, hold, &r->rule->for_ns);
	int b = config_duration(r->t, clear_hold, &r->rule->clear_for_ns);

	if (a == 0 && r->rule->for_ns > day)
		a = config_error(r->t, hold, "expected at most 1d");
	if (b == 0 && r->rule->clear_for_ns > day)
		b = config_error(r->t, clear_hold, "expected at most 1d");
	if (b == -ENOENT)
		r->rule->clear_for_ns = 3 * r->rule->for_ns;
	if (r->rule->clear_for_ns < r->m->tick_ns)
		r->rule->clear_for_ns = r->m->tick_ns;
	return a == -EINVAL || b == -EINVAL ? -EINVAL : 0;
}

static int critical_read(struct reading *r)
{
	const struct config_keys keys = {critical_now, critical_later};
	const config_setting_t *when, *hold;
	struct config_entry critical;
	int a, b;

	if (!config_sub(r->t, r->e, "critical", &critical))
		return 0;
	for (unsigned int i = 0; i < critical.layers; i++)
		config_check_keys(r->t, critical.layer[i], &keys);
	if (!config_enabled(r->t, &critical))
		return 0;
	when = config_get(&critical, "when");
	hold = config_get(&critical, "for");
	a = config_expr(r->t, when, &r->rule->critical_when);
	b = config_duration(r->t, hold, &r->rule->critical_for_ns);
	if (a == -ENOENT)
		a = config_error(r->t, config_blame(&critical),
				 "when is missing: expected critical = { when = \"...\"; for = \"...\"; }");
	if (b == 0 && r->rule->critical_for_ns > 86400000000000ULL)
		b = config_error(r->t, hold, "expected at most 1d");
	r->rule->has_critical = a == 0;
	r->rule->place[RULE_CRITICAL_WHEN] = config_place(r->t, when);
	r->rule->place[RULE_CRITICAL_FOR] = config_place(r->t, hold);
	return a < 0 || b == -EINVAL ? -EINVAL : 0;
}

static int samples_read(struct reading *r)
{
	const char *names[STAT_ID_COUNT + 1] = {NULL};
	const struct config_keys keys = {names, NULL};
	struct config_entry samples;
	bool bad = false;
	int n = 0;

	for (int i = 0; i < STAT_ID_COUNT; i++)
		if (signal_stats[i].need)
			names[n++] = signal_stats[i].name;
	if (!config_sub(r->t, r->e, "samples", &samples))
		return 0;
	for (unsigned int i = 0; i < samples.layers; i++)
		config_check_keys(r->t, samples.layer[i], &keys);
	for (int i = 0; i < STAT_ID_COUNT; i++)
		if (signal_stats[i].need)
			bad |= config_count(r->t, config_get(&samples, signal_stats[i].name),
					    &r->rule->samples[i]) == -EINVAL;
	return bad ? -EINVAL : 0;
}

static int inhibits_read(struct reading *r)
{
	const config_setting_t *s = config_get(r->e, "inhibits");
	const char *names[CONFIG_ENTRIES + 1], *near, *name;
	const int n = config_list_length(s);

	config_names_of(r->names->rules, names);
	if (n > MODEL_LIST)
		return config_error(r->t, s, "more than %d rules", MODEL_LIST);
	for (int i = 0; i < n; i++) {
		const config_setting_t *item = config_list_at(s, i);
		bool known = r->t->broken;

		if (config_text(r->t, item, MODEL_NAME, &name) < 0)
			return -EINVAL;
		if (strcmp(name, r->e->name) == 0)
			return config_error(r->t, item, "a rule can't inhibit itself");
		for (int k = 0; names[k]; k++)
			known |= strcmp(names[k], name) == 0;
		near = known ? NULL : config_nearest(name, names);
		if (near)
			config_warning(r->t, item, "no rule \"%s\", did you mean \"%s\"?", name, near);
		else if (!known)
			config_warning(r->t, item, "no rule \"%s\"", name);
		snprintf(r->rule->inhibits[r->rule->inhibit_count++], MODEL_NAME, "%s", name);
	}
	return 0;
}

/* Index of the hook, or -EINVAL; -ENOENT when it is there but wrong, which has been told. */
static int hook_find(struct reading *r, const config_setting_t *s)
{
	const char *names[CONFIG_ENTRIES + 1], *near, *name;
	int found;

	if (config_text(r->t, s, MODEL_NAME, &name) < 0)
		return -EINVAL;
	found = model_hook_find(r->m, name);
	if (found >= 0)
		return found;
	config_names_of(r->names->hooks, names);
	for (unsigned int i = 0; i < r->names->hooks->count; i++) {
		const struct config_entry *e = &r->names->hooks->entry[i];

		if (strcmp(e->name, name) == 0 && !config_enabled(r->t, e))
			return config_error(r->t, s, "hook \"%s\" is switched off (enabled = false)", name);
		if (strcmp(e->name, name) == 0)
			return -ENOENT;
	}
	if (r->t->broken)
		return -ENOENT;
	near = config_nearest(name, names);
	if (near)
		return config_error(r->t, s, "hook \"%s\" is unknown, did you mean \"%s\"?", name, near);
	return config_error(r->t, s, "hook \"%s\" is unknown", name);
}

static int ladder_read(struct reading *r)
{
	const config_setting_t *s = config_get(r->e, "ladder"), *rung;
	const int n = config_list_length(s);
	int found;

	r->rule->ladder = -1;
	if (n == 0)
		return 0;
	if (n > 1)
		return config_error(r->t, s, "a ladder of more than one rung is not supported yet");
	rung = config_list_at(s, 0);
	found = hook_find(r, rung);
	if (found < 0)
		return -EINVAL;
	if (r->m->hook[found].kind == HOOK_PAGE)
		return config_error(r->t, rung, "\"%s\" is a page: it belongs into notify",
				    r->m->hook[found].name);
	r->rule->ladder = (int8_t)found;
	return 0;
}

static int notify_read(struct reading *r)
{
	const config_setting_t *s = config_get(r->e, "notify");
	const int n = config_list_length(s);
	bool bad = false;

	if (n > MODEL_LIST)
		return config_error(r->t, s, "more than %d hooks", MODEL_LIST);
	for (int i = 0; i < n; i++) {
		const config_setting_t *item = config_list_at(s, i);
		const int found = hook_find(r, item);

		if (found >= 0 && r->m->hook[found].kind == HOOK_PAGE)
			r->rule->notify[r->rule->notify_count++] = (int8_t)found;
		else
			bad = true;
		if (found >= 0 && r->m->hook[found].kind != HOOK_PAGE)
			config_error(r->t, item, "\"%s\" is a %s: it belongs into ladder; notify takes pages",
				     r->m->hook[found].name, hook_kind_name(r->m->hook[found].kind));
	}
	return bad ? -EINVAL : 0;
}

static int rule_read(struct reading *r)
{
	static const char *const places[] = {
		[RULE_NAME] = "name",
		[RULE_CLASS] = "class",
		[RULE_SEVERITY] = "severity",
		[RULE_TARGETS] = "targets",
		[RULE_ALL_TARGETS] = "all_targets",
		[RULE_WHEN] = "when",
		[RULE_CLEAR] = "clear",
		[RULE_FOR] = "for",
		[RULE_CLEAR_FOR] = "clear_for",
		[RULE_NODATA] = "nodata",
		[RULE_SAMPLES] = "samples",
		[RULE_INHIBITS] = "inhibits",
		[RULE_LADDER] = "ladder",
		[RULE_NOTIFY] = "notify",
		[RULE_ALLOW_NETWORK] = "allow_network",
		[RULE_SUMMARY] = "summary",
	};
	const config_setting_t *name = config_get(r->e, "name");
	const char *summary = r->e->name;
	bool bad;

	snprintf(r->rule->name, MODEL_NAME, "%.*s", MODEL_NAME - 1, r->e->name);
	snprintf(r->rule->origin.file, MODEL_PATH, "%s", config_source_of(r->t, name)->path);
	r->rule->origin.line = name->line;
	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (places[i])
			r->rule->place[i] = config_place(r->t, config_get(r->e, places[i]));
	if (!config_name_ok(r->e->name, "", MODEL_NAME))
		return config_error(r->t, name, "expected letters, digits and . _ : @ -, at most %d of them",
				    MODEL_NAME - 1);
	bad = enums_read(r) < 0;
	bad |= targets_read(r) < 0;
	bad |= expressions_read(r) < 0;
	bad |= holds_read(r) < 0;
	bad |= critical_read(r) < 0;
	bad |= samples_read(r) < 0;
	bad |= inhibits_read(r) < 0;
	bad |= ladder_read(r) < 0;
	bad |= notify_read(r) < 0;
	bad |= config_bool(r->t, config_get(r->e, "allow_network"), &r->rule->allow_network) == -EINVAL;
	bad |= config_text(r->t, config_get(r->e, "summary"), MODEL_TEXT, &summary) == -EINVAL;
	snprintf(r->rule->summary, MODEL_TEXT, "%s", summary);
	return bad ? -EINVAL : config_check_rule(r->t, r->e, r->m, r->rule);
}

void config_rules(struct config_tree *t, const struct config_names *names, struct model *m)
{
	const struct config_keys keys = {now, later};

	for (unsigned int i = 0; i < names->rules->count; i++) {
		const struct config_entry *e = &names->rules->entry[i];
		struct reading r = {t, e, names, m, &m->rule[m->rule_count]};

		for (unsigned int k = 0; k < e->layers; k++)
			config_check_keys(t, e->layer[k], &keys);
		if (!config_enabled(t, e))
			continue;
		if (m->rule_count == MODEL_RULES) {
			config_error(t, config_get(e, "name"), "more than %d rules", MODEL_RULES);
			return;
		}
		memset(r.rule, 0, sizeof(*r.rule));
		if (rule_read(&r) == 0)
			m->rule_count++;
	}
	if (m->rule_count < MODEL_RULES) /* what is left of one with an error */
		memset(&m->rule[m->rule_count], 0, sizeof(m->rule[0]));
}
