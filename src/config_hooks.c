/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_hooks.c - "hooks": what may be run, how long, as whom, and what takes it back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config_sections.h"
#include "decide/event.h"

#define SECOND 1000000000ULL

static const char *const now[] = {"name", "enabled", "kind",	   "exec", "timeout",
				  "undo", "user",    "credential", "on",   NULL};
static const char *const later[] = {
	"verify", "budget", "retries", "survives_reboot", "delay", "min_severity", "repeat",
	"env",	  "permit", "storm",   "cooldown",	  "hold",  "expire",	   NULL};
static const char *const undo_now[] = {"after", "when", "enabled", NULL};
static const char *const undo_later[] = {"expire", "verify", NULL};
static const char *const kinds[] = {"page", "remedy", "destructive", NULL};
static const char *const kinds_later[] = {"permit", "evidence", NULL};
static const char *const placeholders[] = {"target", "unit", "cgroup", "ports", "rule", "host", NULL};

/* {word} must be one that the runner replaces; other braces are text. */
static int placeholders_check(struct config_tree *t, const config_setting_t *s, const char *arg)
{
	for (const char *open = strchr(arg, '{'); open; open = strchr(open + 1, '{')) {
		const size_t n = strspn(open + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
		const char *near;
		char word[32];
		bool known = false;

		if (n == 0 || open[n + 1] != '}')
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)(n > 31 ? 31 : n), open + 1);
		for (int i = 0; placeholders[i]; i++)
			known |= strcmp(word, placeholders[i]) == 0;
		if (known)
			continue;
		near = config_nearest(word, placeholders);
		if (near)
			return config_error(t, s, "{%s} is not replaced by anything, did you mean {%s}?",
					    word, near);
		return config_error(
			t, s,
			"{%s} is not replaced by anything; there are {target} {unit} {cgroup} {ports} "
			"{rule} {host}",
			word);
	}
	return 0;
}

static int exec_read(struct config_tree *t, const struct config_entry *e, struct model_hook *hook)
{
	const config_setting_t *s = config_get(e, "exec");
	const int n = config_list_length(s);

	if (!s)
		return config_error(t, config_get(e, "name"),
				    "hook \"%s\" has no exec: expected exec = [ \"/path\", \"argument\" ]",
				    e->name);
	if (!config_setting_is_array(s) && !config_setting_is_list(s))
		return config_error(t, s,
				    "expected an array, one string per argument: [ \"/path\", \"argument\" "
				    "]; no shell runs");
	if (n == 0 || n > MODEL_ARGV)
		return config_error(t, s, "expected 1 to %d strings, found %d", MODEL_ARGV, n);
	for (int i = 0; i < n; i++) {
		const config_setting_t *arg = config_list_at(s, i);
		const char *text;

		if (config_text(t, arg, MODEL_PATH, &text) < 0 || placeholders_check(t, arg, text) < 0)
			return -EINVAL;
		snprintf(hook->argv[i], sizeof(hook->argv[i]), "%s", text);
	}
	hook->argc = (uint8_t)n;
	if (hook->argv[0][0] != '/')
		return config_error(t, s, "expected an absolute path first, found \"%s\"", hook->argv[0]);
	if (strchr(hook->argv[0], '{'))
		return config_error(t, s, "the path may not contain a placeholder");
	return 0;
}

static int credential_read(struct config_tree *t, const config_setting_t *s, struct model_hook *hook)
{
	const char *text, *colon;
	const uint8_t k = hook->credential_count;

	if (config_text(t, s, MODEL_NAME + MODEL_PATH, &text) < 0)
		return -EINVAL;
	colon = strchr(text, ':');
	if (!colon || colon == text || colon[1] != '/' || colon - text >= MODEL_NAME ||
	    strlen(colon + 1) >= MODEL_PATH)
		return config_error(t, s, "expected \"name:/absolute/path\", found \"%.60s\"", text);
	snprintf(hook->credential_name[k], MODEL_NAME, "%.*s", (int)(colon - text), text);
	snprintf(hook->credential_path[k], MODEL_PATH, "%s", colon + 1);
	/* it becomes a file name */
	if (!config_name_ok(hook->credential_name[k], "", MODEL_NAME) || hook->credential_name[k][0] == '.')
		return config_error(t, s,
				    "expected a name of letters, digits and . _ : @ - before the colon");
	hook->credential_count++;
	return 0;
}

static int credentials_read(struct config_tree *t, const config_setting_t *s, struct model_hook *hook)
{
	const int n = config_list_length(s);

	if (n > 4)
		return config_error(t, s, "more than 4 credentials");
	for (int i = 0; i < n; i++)
		if (credential_read(t, config_list_at(s, i), hook) < 0)
			return -EINVAL;
	return 0;
}

static int on_read(struct config_tree *t, const config_setting_t *s, struct model_hook *hook)
{
	const char *names[EVENT_KIND_COUNT + 1] = {NULL};
	const struct config_keys choice = {names, NULL};
	const int n = config_list_length(s);
	int value;

	if (!s)
		return 0;
	if (hook->kind != HOOK_PAGE)
		return config_error(t, s, "only for hooks of kind \"page\"; a %s follows its rule",
				    hook_kind_name(hook->kind));
	if (n == 0)
		return config_error(t, s, "expected at least one event, such as [ \"fire\", \"resolve\" ]");
	for (int i = 0; i < EVENT_KIND_COUNT; i++)
		names[i] = event_kind_name((enum event_kind)i);
	for (int i = 0; i < n; i++) {
		if (config_choice(t, config_list_at(s, i), &choice, &value) < 0)
			return -EINVAL;
		hook->on |= 1U << value;
	}
	return 0;
}

static int undo_when_read(struct config_tree *t, const struct config_entry *undo, struct model_hook *hook)
{
	const config_setting_t *when = config_get(undo, "when");
	int r = config_expr(t, when, &hook->undo.when);

	if (r == 0) {
		hook->undo.has_when = true;
		hook->place[HOOK_KEY_UNDO_WHEN] = config_place(t, when);
		return 0;
	}
	if (r != -ENOENT)
		return r;
	/* what was done to relieve a symptom hides it: without a cause to look at, nobody knows when it may
	 * end */
	if (hook->kind == HOOK_DESTRUCTIVE) {
		hook->undo.given = false;
		config_warning(t, config_blame(undo),
			       "a destructive hook without undo.when is undone by hand only "
			       "(dwellctl undo)");
	} else {
		config_warning(t, config_blame(undo),
			       "without undo.when the remedy is taken back as soon as its effect "
			       "shows, and may have to be done again; give a condition on the cause, such as "
			       "\"host.cpu.busy < 80%%\"");
	}
	return 0;
}

static int undo_read(struct config_tree *t, const struct config_entry *e, struct model_hook *hook)
{
	const struct config_keys keys = {undo_now, undo_later};
	struct config_entry undo;
	const config_setting_t *after;
	int r;

	hook->undo.after_ns = 300 * SECOND;
	if (!config_sub(t, e, "undo", &undo)) {
		if (hook->kind == HOOK_DESTRUCTIVE)
			config_warning(t, config_get(e, "name"),
				       "hook \"%s\": a destructive hook without undo.when is undone "
				       "by hand only (dwellctl undo)",
				       e->name);
		return 0;
	}
	for (unsigned int i = 0; i < undo.layers; i++)
		config_check_keys(t, undo.layer[i], &keys);
	if (!config_enabled(t, &undo))
		return 0;
	if (hook->kind == HOOK_PAGE)
		return config_error(t, config_blame(&undo), "a page can't be undone");
	hook->undo.given = true;
	hook->place[HOOK_KEY_UNDO] = config_place(t, config_blame(&undo));
	after = config_get(&undo, "after");
	r = config_duration(t, after, &hook->undo.after_ns);
	hook->place[HOOK_KEY_UNDO_AFTER] = config_place(t, after);
	if (r == 0 && (hook->undo.after_ns < SECOND || hook->undo.after_ns > 7 * 86400 * SECOND))
		r = config_error(t, after, "expected 1s to 7d");
	return undo_when_read(t, &undo, hook) < 0 || r == -EINVAL ? -EINVAL : 0;
}

static int kind_read(struct config_tree *t, const struct config_entry *e, struct model_hook *hook)
{
	const struct config_keys choice = {kinds, kinds_later};
	int value, r = config_choice(t, config_get(e, "kind"), &choice, &value);

	if (r == -ENOENT)
		return config_error(t, config_get(e, "name"),
				    "hook \"%s\" has no kind: expected \"page\", \"remedy\" or "
				    "\"destructive\"",
				    e->name);
	if (r == 0)
		hook->kind = (enum hook_kind)value;
	return r;
}

static int user_read(struct config_tree *t, const struct config_entry *e, struct model_hook *hook)
{
	const config_setting_t *s = config_get(e, "user");
	const char *text = hook->kind == HOOK_PAGE ? "dwelld-hook" : "root";

	if (s && config_text(t, s, MODEL_NAME, &text) < 0)
		return -EINVAL;
	if (!config_name_ok(text, "$", MODEL_NAME) || text[0] == '-')
		return config_error(t, s, "expected the name of a user");
	snprintf(hook->user, sizeof(hook->user), "%s", text);
	return 0;
}

static int timeout_read(struct config_tree *t, const struct config_entry *e, struct model_hook *hook)
{
	const config_setting_t *s = config_get(e, "timeout");
	int r;

	hook->timeout_ns = 10 * SECOND;
	r = config_duration(t, s, &hook->timeout_ns);
	if (r == 0 && (hook->timeout_ns < SECOND || hook->timeout_ns > 3600 * SECOND))
		return config_error(t, s, "expected 1s to 1h");
	return r == -ENOENT ? 0 : r;
}

/* Goes on after an error, so that all are told. */
static int hook_read(struct config_tree *t, const struct config_entry *e, struct model_hook *ret)
{
	const config_setting_t *name = config_get(e, "name");
	static const char *const places[] = {"name", "kind", "exec", "timeout", "user", "credential", "on"};
	bool bad;

	snprintf(ret->name, sizeof(ret->name), "%.*s", MODEL_NAME - 1, e->name);
	snprintf(ret->origin.file, sizeof(ret->origin.file), "%s", config_source_of(t, name)->path);
	ret->origin.line = name->line;
	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (config_get(e, places[i]))
			ret->place[i] = config_place(t, config_get(e, places[i]));
	if (!config_name_ok(e->name, "", MODEL_NAME))
		return config_error(t, name, "expected letters, digits and . _ : @ -, at most %d of them",
				    MODEL_NAME - 1);
	bad = exec_read(t, e, ret) < 0;
	bad |= timeout_read(t, e, ret) < 0;
	bad |= credentials_read(t, config_get(e, "credential"), ret) < 0;
	if (kind_read(t, e, ret) < 0) /* what follows depends on it */
		return -EINVAL;
	bad |= user_read(t, e, ret) < 0;
	bad |= on_read(t, config_get(e, "on"), ret) < 0;
	bad |= undo_read(t, e, ret) < 0;
	return bad ? -EINVAL : 0;
}

void config_hooks(struct config_tree *t, const struct config_section *section, struct model *m)
{
	const struct config_keys keys = {now, later};

	for (unsigned int i = 0; i < section->count; i++) {
		const struct config_entry *e = &section->entry[i];
		struct model_hook hook = {0};
		const size_t errors = t->d->errors;

		for (unsigned int k = 0; k < e->layers; k++)
			config_check_keys(t, e->layer[k], &keys);
		if (!config_enabled(t, e) || hook_read(t, e, &hook) < 0 || t->d->errors != errors)
			continue;
		if (m->hook_count == MODEL_HOOKS) {
			config_error(t, config_get(e, "name"), "more than %d hooks", MODEL_HOOKS);
			return;
		}
		m->hook[m->hook_count++] = hook;
	}
}
