/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config_tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct config_source *config_source_of(const struct config_tree *t, const config_setting_t *s)
{
	for (unsigned int i = 0; i < t->count; i++)
		if (s && s->config == &t->source[i].cfg)
			return &t->source[i];
	return NULL;
}

struct model_place config_place(const struct config_tree *t, const config_setting_t *s)
{
	const struct config_source *source = config_source_of(t, s);

	return (struct model_place){.file = source ? source->file : 0, .line = s ? s->line : 0};
}

/* "undo.after": the names from the entry's group down to s. An element of an array goes by the array's name.
 */
static void key_path(const config_setting_t *s, char *buf, size_t size)
{
	char tail[MODEL_PATH] = "";

	buf[0] = '\0';
	while (s && !s->name && s->parent && s->type != CONFIG_TYPE_GROUP)
		s = s->parent;
	for (; s && s->name; s = s->parent) {
		snprintf(buf, size, "%.80s%s%.*s", s->name, tail[0] ? "." : "", (int)sizeof(tail) - 82, tail);
		snprintf(tail, sizeof(tail), "%s", buf);
	}
}

static bool already_told(const struct config_source *source, unsigned int line)
{
	for (unsigned int i = 0; source && i < source->told_count; i++)
		if (source->told[i] == line)
			return true;
	return false;
}

/* Texts quote what a file says, and are shown on terminals. */
static void say(struct config_tree *t, enum diag_level level, const config_setting_t *at, char *text)
{
	const struct config_source *source = config_source_of(t, at);
	const char *file = source ? source->path : NULL;
	const unsigned int line = at ? at->line : 0;
	char key[MODEL_PATH];

	if (level == DIAG_ERROR && already_told(source, line))
		return;
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p >= 127)
			*p = '?';
	key_path(at, key, sizeof(key));
	if (level == DIAG_ERROR)
		diag_add(t->d, file, line, "%s%s%s", key, key[0] ? ": " : "", text);
	else
		diag_warn(t->d, file, line, "%s%s%s", key, key[0] ? ": " : "", text);
}

int config_error(struct config_tree *t, const config_setting_t *at, const char *format, ...)
{
	char text[DIAG_TEXT];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	say(t, DIAG_ERROR, at, text);
	return -EINVAL;
}

int config_warning(struct config_tree *t, const config_setting_t *at, const char *format, ...)
{
	char text[DIAG_TEXT];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	say(t, DIAG_WARNING, at, text);
	return 0;
}

/* Edits from a to b; words longer than 40 are no typing mistake of ours. */
static unsigned int distance(const char *a, const char *b)
{
	const size_t n = strlen(a), m = strlen(b);
	unsigned int row[41], diagonal, up;

	if (n > 40 || m > 40)
		return 100;
	for (unsigned int j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 1; i <= n; i++) {
		diagonal = row[0];
		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= m; j++) {
			up = row[j];
			row[j] = diagonal + (a[i - 1] != b[j - 1]);
			if (up + 1 < row[j])
				row[j] = up + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			diagonal = up;
		}
	}
	return row[m];
}

const char *config_nearest(const char *word, const char *const *names)
{
	const char *best = NULL;
	unsigned int best_edits = (unsigned int)strlen(word) / 4 + 1;

	if (best_edits > 3)
		best_edits = 3;
	for (; *names; names++) {
		/* "warn" means "warning" */
		const bool begins = word[0] && word[1] && strncmp(word, *names, strlen(word)) == 0;
		const unsigned int edits = begins ? 1 : distance(word, *names);

		if (edits < best_edits || (edits == best_edits && !best)) {
			best_edits = edits;
			best = *names;
		}
	}
	return best;
}

static bool among(const char *word, const char *const *names)
{
	for (; names && *names; names++)
		if (strcmp(word, *names) == 0)
			return true;
	return false;
}

void config_check_keys(struct config_tree *t, const config_setting_t *group, const struct config_keys *keys)
{
	const int n = config_setting_length(group);

	for (int i = 0; i < n; i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned int)i);
		const char *near;

		if (among(s->name, keys->now))
			continue;
		if (among(s->name, keys->later)) {
			config_error(t, s, "not supported yet");
			continue;
		}
		near = config_nearest(s->name, keys->now);
		if (near)
			config_error(t, s, "unknown key, did you mean \"%s\"?", near);
		else
			config_error(t, s, "unknown key");
	}
}

bool config_name_ok(const char *name, const char *extra, size_t size)
{
	const size_t n = strlen(name);

	for (size_t i = 0; i < n; i++) {
		const char c = name[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		      strchr("._:@-", c) || strchr(extra, c)))
			return false;
	}
	return n > 0 && n < size;
}

static struct config_entry *entry_find(struct config_section *section, const char *name)
{
	for (unsigned int i = 0; i < section->count; i++)
		if (strcmp(section->entry[i].name, name) == 0)
			return &section->entry[i];
	return NULL;
}

/* One group of one file's list: to the entry of its name. */
static void layer_add(struct config_tree *t, const config_setting_t *group, struct config_section *ret)
{
	const config_setting_t *name_setting, *last;
	struct config_entry *e;
	const char *name;

	if (!config_setting_is_group(group)) {
		config_error(t, group, "expected a group: { name = \"...\"; ... }");
		return;
	}
	name_setting = config_setting_get_member(group, "name");
	if (!name_setting) {
		config_error(t, group, "name is missing; every entry of \"%s\" needs one",
			     group->parent->name);
		return;
	}
	if (config_text(t, name_setting, SAMPLE_NAME_MAX, &name) < 0)
		return;
	if (!config_name_ok(name, "\\", SAMPLE_NAME_MAX)) {
		config_error(t, name_setting, "expected letters, digits and . _ : @ -, at most %d of them",
			     SAMPLE_NAME_MAX - 1);
		return;
	}
	e = entry_find(ret, name);
	last = e ? e->layer[e->layers - 1] : NULL;
	if (last && last->config == group->config) {
		config_error(t, name_setting, "\"%s\" is already defined in line %u of this file", name,
			     last->line);
		return;
	}
	if (!e && ret->count == CONFIG_ENTRIES) {
		config_error(t, name_setting, "more than %d entries", CONFIG_ENTRIES);
		return;
	}
	if (!e) {
		e = &ret->entry[ret->count++];
		snprintf(e->name, sizeof(e->name), "%s", name);
		e->layers = 0;
	}
	e->layer[e->layers++] = group;
}

void config_section_read(struct config_tree *t, const char *section, bool skip_builtin,
			 struct config_section *ret)
{
	ret->count = 0;
	for (unsigned int i = 0; i < t->count; i++) {
		const config_setting_t *list =
			config_setting_get_member(config_root_setting(&t->source[i].cfg), section);
		int n;

		if (!list || (skip_builtin && t->source[i].builtin))
			continue;
		if (list->type != CONFIG_TYPE_LIST && config_setting_is_aggregate(list) &&
		    config_setting_length(list) == 0)
			continue;
		if (!config_setting_is_list(list)) {
			config_error(t, list, "expected a list of groups: %s = ( { name = \"...\"; ... } );",
				     section);
			continue;
		}
		n = config_setting_length(list);
		for (int k = 0; k < n; k++)
			layer_add(t, config_setting_get_elem(list, (unsigned int)k), ret);
	}
}

const config_setting_t *config_get(const struct config_entry *e, const char *key)
{
	for (unsigned int i = e->layers; i > 0; i--) {
		const config_setting_t *s = config_setting_get_member(e->layer[i - 1], key);

		if (s)
			return s;
	}
	return NULL;
}

bool config_sub(struct config_tree *t, const struct config_entry *e, const char *key,
		struct config_entry *ret)
{
	ret->layers = 0;
	snprintf(ret->name, sizeof(ret->name), "%s", key);
	for (unsigned int i = 0; i < e->layers; i++) {
		const config_setting_t *s = config_setting_get_member(e->layer[i], key);

		if (s && !config_setting_is_group(s))
			config_error(t, s, "expected a group: %s = { ... };", key);
		else if (s)
			ret->layer[ret->layers++] = s;
	}
	return ret->layers > 0;
}

const config_setting_t *config_blame(const struct config_entry *e)
{
	return e->layer[e->layers - 1];
}
