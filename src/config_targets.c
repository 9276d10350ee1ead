/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_targets.c - "targets": which processes make up a target. Keys AND together, entries of a list OR. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_sections.h"

static const char *const now[] = {"name", "enabled", "unit", "cgroup", "process", "ports", "profile", NULL};
static const char *const later[] = {"tcp", "pace", "paced", "netns", "pid", "user", "required", NULL};

/* "5000" or "5000-5100", 1..65535. */
static int ports_parse(const char *text, uint16_t *ret_low, uint16_t *ret_high)
{
	unsigned long low, high;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	low = strtoul(text, &end, 10);
	high = low;
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		high = strtoul(end + 1, &end, 10);
	if (*end || low < 1 || high > 65535 || low > high)
		return -EINVAL;
	*ret_low = (uint16_t)low;
	*ret_high = (uint16_t)high;
	return 0;
}

static int ports_read(struct config_tree *t, const config_setting_t *s, struct model_match *match)
{
	const char *text;
	char number[24];

	if (s->type == CONFIG_TYPE_INT) {
		snprintf(number, sizeof(number), "%d", config_setting_get_int(s));
		text = number;
	} else if (s->type != CONFIG_TYPE_STRING || config_text(t, s, MODEL_TEXT, &text) < 0) {
		return config_error(t, s,
				    "expected a port or a quoted range, such as 3478 or \"10000-20000\"");
	}
	if (ports_parse(text, &match->port_low, &match->port_high) < 0)
		return config_error(
			t, s, "expected ports of 1 to 65535, such as 3478 or \"10000-20000\", found %.60s",
			text);
	return 0;
}

/* Fill the part of one key into a match. */
static int part_read(struct config_tree *t, const config_setting_t *s, enum config_target_key key,
		     struct model_match *match)
{
	char *const to = key == TARGET_UNIT	? match->unit
			 : key == TARGET_CGROUP ? match->cgroup
						: match->process;
	const size_t size = key == TARGET_UNIT	   ? sizeof(match->unit)
			    : key == TARGET_CGROUP ? sizeof(match->cgroup)
						   : sizeof(match->process);
	const char *text;
	int r;

	if (key == TARGET_PORTS)
		return ports_read(t, s, match);
	r = config_text(t, s, size, &text);
	if (r < 0)
		return r;
	if (!text[0])
		return config_error(t, s, "expected a name or pattern, found an empty string");
	if (key == TARGET_UNIT && strchr(text, '/'))
		return config_error(
			t, s,
			"expected the name of a systemd unit without a path, such as \"janus.service\"");
	if (key == TARGET_PROCESS && strchr(text, '/'))
		return config_error(t, s, "expected the base name of an executable, without a path");
	if (key == TARGET_CGROUP && text[0] != '/')
		return config_error(t, s, "expected a path that starts with /, as in /proc/PID/cgroup");
	snprintf(to, size, "%s", text);
	return 0;
}

/* Multiply the matches so far by the values of one key. */
static int key_read(struct config_tree *t, const config_setting_t *s, enum config_target_key key,
		    struct model_target *target)
{
	const uint8_t before = target->match_count;
	const int n = config_list_length(s);
	struct model_match match[MODEL_MATCHES];
	int count = 0;

	if (n == 0)
		return config_error(t, s, "expected at least one value");
	if (n * before > MODEL_MATCHES)
		return config_error(t, s, "more than %d combinations of unit, cgroup, process and ports",
				    MODEL_MATCHES);
	for (int k = 0; k < before; k++) {
		for (int i = 0; i < n; i++) {
			match[count] = target->match[k];
			if (part_read(t, config_list_at(s, i), key, &match[count]) < 0)
				return -EINVAL;
			count++;
		}
	}
	memcpy(target->match, match, (size_t)count * sizeof(match[0]));
	target->match_count = (uint8_t)count;
	return 0;
}

static int profile_read(struct config_tree *t, const config_setting_t *s, const struct model *m,
			struct model_target *target)
{
	const char *names[MODEL_PROFILES + 1] = {NULL};
	const struct config_keys choice = {names, NULL};
	int value, r;

	for (int i = 0; i < m->profile_count; i++)
		names[i] = m->profile[i].name;
	r = config_choice(t, s, &choice, &value);
	if (r == 0)
		snprintf(target->profile, sizeof(target->profile), "%s", names[value]);
	return r == -ENOENT ? 0 : r;
}

static int target_read(struct config_tree *t, const struct config_entry *e, const struct model *m,
		       struct model_target *ret)
{
	const config_setting_t *name = config_get(e, "name");
	bool given = false, bad = false;

	snprintf(ret->name, sizeof(ret->name), "%s", e->name);
	snprintf(ret->origin.file, sizeof(ret->origin.file), "%s", config_source_of(t, name)->path);
	ret->origin.line = name->line;
	if (strcmp(e->name, "host") == 0 || strcmp(e->name, "other") == 0 || strcmp(e->name, "self") == 0)
		return config_error(t, name, "\"%s\" is reserved", e->name);
	ret->match_count = 1;
	for (int key = TARGET_NAME; key <= TARGET_PROFILE; key++) {
		const config_setting_t *s = config_get(e, key == TARGET_NAME ? "name" : now[key + 1]);

		if (!s)
			continue;
		ret->place[key] = config_place(t, s);
		if (key == TARGET_NAME || key == TARGET_PROFILE)
			continue;
		given = true;
		bad |= key_read(t, s, (enum config_target_key)key, ret) < 0;
	}
	if (profile_read(t, config_get(e, "profile"), m, ret) < 0)
		bad = true;
	if (!given)
		return config_error(t, name,
				    "target \"%s\" matches nothing: expected unit, cgroup, process or ports",
				    e->name);
	return bad ? -EINVAL : 0;
}

void config_targets(struct config_tree *t, const struct config_section *section, struct model *m)
{
	const struct config_keys keys = {now, later};

	for (unsigned int i = 0; i < section->count; i++) {
		const struct config_entry *e = &section->entry[i];
		struct model_target target = {0};

		for (unsigned int k = 0; k < e->layers; k++)
			config_check_keys(t, e->layer[k], &keys);
		if (!config_enabled(t, e) || target_read(t, e, m, &target) < 0)
			continue;
		if (m->target_count == MODEL_TARGETS) {
			config_error(t, config_get(e, "name"), "more than %d targets", MODEL_TARGETS);
			return;
		}
		m->target[m->target_count++] = target;
	}
}
