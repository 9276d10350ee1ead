/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_value.c - one setting to one checked value. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config_tree.h"
#include "decide/units.h"

int config_text(struct config_tree *t, const config_setting_t *s, size_t size, const char **ret)
{
	const char *text;

	if (!s)
		return -ENOENT;
	text = config_setting_get_string(s);
	if (s->type != CONFIG_TYPE_STRING || !text)
		return config_error(t, s, "expected a quoted string");
	if (strlen(text) >= size)
		return config_error(t, s, "too long: %zu bytes, at most %zu", strlen(text), size - 1);
	*ret = text;
	return 0;
}

/* A bare number gets the text that was perhaps meant, because libconfig reads 3000000000 as a negative one.
 */
int config_duration(struct config_tree *t, const config_setting_t *s, uint64_t *ret_ns)
{
	const char *text;
	int r;

	if (!s)
		return -ENOENT;
	if (s->type != CONFIG_TYPE_STRING)
		return config_error(t, s, "expected a quoted duration with a unit, such as \"30s\"");
	r = config_text(t, s, MODEL_TEXT, &text);
	if (r < 0)
		return r;
	r = units_parse_duration(text, ret_ns);
	if (r == -ERANGE)
		return config_error(t, s, "\"%.60s\" is out of range for a duration", text);
	if (r < 0)
		return config_error(
			t, s, "expected a quoted duration with a unit, such as \"30s\", found \"%.60s\"",
			text);
	return 0;
}

int config_bool(struct config_tree *t, const config_setting_t *s, bool *ret)
{
	if (!s)
		return -ENOENT;
	if (s->type != CONFIG_TYPE_BOOL)
		return config_error(t, s, "expected true or false, without quotes");
	*ret = config_setting_get_bool(s) != 0;
	return 0;
}

int config_count(struct config_tree *t, const config_setting_t *s, uint32_t *ret)
{
	long long n;

	if (!s)
		return -ENOENT;
	if (s->type != CONFIG_TYPE_INT && s->type != CONFIG_TYPE_INT64)
		return config_error(t, s, "expected a whole number from 1 to %d", CONFIG_COUNT_MAX);
	n = s->type == CONFIG_TYPE_INT ? config_setting_get_int(s) : config_setting_get_int64(s);
	if (n < 1 || n > CONFIG_COUNT_MAX)
		return config_error(t, s, "expected a whole number from 1 to %d, found %lld",
				    CONFIG_COUNT_MAX, n);
	*ret = (uint32_t)n;
	return 0;
}

static void join(const char *const *names, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (; *names && used + 1 < size; names++) {
		const int n = snprintf(buf + used, size - used, "%s%s", used ? ", " : "", *names);

		if (n < 0)
			return;
		used += (size_t)n;
	}
}

int config_choice(struct config_tree *t, const config_setting_t *s, const struct config_keys *names, int *ret)
{
	const char *text, *near;
	char all[MODEL_TEXT];

	if (!s)
		return -ENOENT;
	if (config_text(t, s, MODEL_TEXT, &text) < 0)
		return -EINVAL;
	for (int i = 0; names->now[i]; i++) {
		if (strcmp(text, names->now[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	for (int i = 0; names->later && names->later[i]; i++)
		if (strcmp(text, names->later[i]) == 0)
			return config_error(t, s, "\"%s\" is not supported yet", text);
	near = config_nearest(text, names->now);
	if (near)
		return config_error(t, s, "\"%.60s\" is unknown, did you mean \"%s\"?", text, near);
	join(names->now, all, sizeof(all));
	return config_error(t, s, "expected one of %s, found \"%.60s\"", all, text);
}

int config_list_length(const config_setting_t *s)
{
	if (!s)
		return 0;
	return s->type == CONFIG_TYPE_ARRAY || s->type == CONFIG_TYPE_LIST ? config_setting_length(s) : 1;
}

const config_setting_t *config_list_at(const config_setting_t *s, int i)
{
	if (s->type == CONFIG_TYPE_ARRAY || s->type == CONFIG_TYPE_LIST)
		return config_setting_get_elem(s, (unsigned int)i);
	return s;
}

int config_expr(struct config_tree *t, const config_setting_t *s, struct expr *ret)
{
	struct expr_error error;
	const char *text;
	int r;

	r = config_text(t, s, EXPR_TEXT_MAX, &text);
	if (r < 0)
		return r;
	r = expr_parse(text, ret, &error);
	if (r < 0)
		return config_error(t, s, "column %u: %s", error.column, error.text);
	return 0;
}
