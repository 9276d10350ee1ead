/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide/units.h"
#include "text.h"

int reply_parse(const char *bytes, size_t length, struct client_why *why, json_t **ret)
{
	json_error_t error;
	json_t *value = json_loadb(bytes, length, 0, &error);

	if (json_is_object(value)) {
		*ret = value;
		return 0;
	}
	if (!value)
		text_clean(error.text);		/* it quotes what it stumbled over */
	snprintf(why->text, sizeof(why->text), "the answer is not the JSON of dwelld: %s",
		 value ? "not an object" : error.text);
	json_decref(value);
	return -EPROTO;
}

static void clean_string(json_t *value)
{
	char *copy = strdup(json_string_value(value));

	if (!copy)
		return;
	text_clean(copy);
	json_string_set(value, copy);
	free(copy);
}

/* The parser's own limit on nesting bounds the recursion. A NUL inside a string ends it for all readers. */
void reply_clean(json_t *value)
{
	const char *key;
	json_t *member;
	size_t i;

	if (json_is_string(value))
		clean_string(value);
	else if (json_is_object(value))
		json_object_foreach(value, key, member)
			reply_clean(member);
	else if (json_is_array(value))
		json_array_foreach(value, i, member)
			reply_clean(member);
}

const json_t *reply_at(const json_t *object, const char *path)
{
	char name[64];
	size_t n;

	while (object && *path) {
		n = strcspn(path, ".");
		if (n >= sizeof(name))
			return NULL;
		memcpy(name, path, n);
		name[n] = '\0';
		object = json_object_get(object, name);		/* NULL for anything but an object */
		path += n + (path[n] == '.');
	}
	return object;
}

bool reply_number(const json_t *object, const char *path, double *ret)
{
	const json_t *value = reply_at(object, path);

	if (!json_is_number(value))
		return false;
	*ret = json_number_value(value);
	return true;
}

const char *reply_string(const json_t *object, const char *path)
{
	const char *text = json_string_value(reply_at(object, path));

	return text ? text : "";
}

bool reply_is(const json_t *object, const char *path, const char *text)
{
	return strcmp(reply_string(object, path), text) == 0;
}

bool reply_true(const json_t *object, const char *path)
{
	return json_is_true(reply_at(object, path));
}

/* Two digits below ten, whole above: "1.2ms", "41ms". */
static char *scaled(double value, const char *unit, char buf[REPLY_CELL])
{
	snprintf(buf, REPLY_CELL, value < 9.95 ? "%.1f%s" : "%.0f%s", value, unit);
	return buf;
}

static char *unknown(char buf[REPLY_CELL])
{
	snprintf(buf, REPLY_CELL, "-");
	return buf;
}

char *reply_cell_ns(const json_t *object, const char *path, char buf[REPLY_CELL])
{
	static const struct { double below, unit; const char *name; } steps[] = {
		{ 999.5e3, 1e3, "us" }, { 999.5e6, 1e6, "ms" }, { 999.5e9, 1e9, "s" }, { 59940e9, 60e9, "m" },
		{ 3599640e9, 3600e9, "h" } };
	double ns;
	size_t i;

	if (!reply_number(object, path, &ns) || ns < 0)
		return unknown(buf);
	if (ns < 999.5) {
		snprintf(buf, REPLY_CELL, "%.0f%s", ns, ns < 0.5 ? "" : "ns");
		return buf;
	}
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (ns < steps[i].below)
			return scaled(ns / steps[i].unit, steps[i].name, buf);
	snprintf(buf, REPLY_CELL, ">999h");
	return buf;
}

static char *count_cell(double n, char buf[REPLY_CELL])
{
	if (n < 0)
		return unknown(buf);
	if (n == 0)
		snprintf(buf, REPLY_CELL, "0");
	else if (n < 0.05)
		snprintf(buf, REPLY_CELL, "<0.1");
	else if (n < 999.5)
		scaled(n, "", buf);
	else if (n < 999.5e3)
		scaled(n / 1e3, "k", buf);
	else if (n < 999.5e6)
		scaled(n / 1e6, "M", buf);
	else
		snprintf(buf, REPLY_CELL, n < 999.5e9 ? "%.0fG" : ">999G", n / 1e9);
	return buf;
}

char *reply_cell_count(const json_t *object, const char *path, char buf[REPLY_CELL])
{
	double n;

	return reply_number(object, path, &n) ? count_cell(n, buf) : unknown(buf);
}

char *reply_cell_ratio(const json_t *object, const char *path, char buf[REPLY_CELL])
{
	double r;

	if (!reply_number(object, path, &r) || r < 0)
		return unknown(buf);
	if (r == 0)
		snprintf(buf, REPLY_CELL, "0%%");
	else if (r < 0.0005)
		snprintf(buf, REPLY_CELL, "<.1%%");
	else if (r < 9.995)
		scaled(r * 100, "%", buf);
	else
		snprintf(buf, REPLY_CELL, ">999%%");
	return buf;
}

char *reply_cell_drops(const json_t *target, char buf[REPLY_CELL])
{
	double server = 0, network = 0;
	bool any;

	any = reply_number(target, "signals.drops.server.rate", &server);
	any |= reply_number(target, "signals.drops.network.rate", &network);
	return any ? count_cell(server + network, buf) : unknown(buf);
}

static enum unit_dim dim_of(const char *unit)
{
	static const struct { const char *name; enum unit_dim dim; } units[] = {
		{ "ns", UNIT_TIME }, { "ratio", UNIT_RATIO }, { "/s", UNIT_RATE }, { "bytes", UNIT_BYTES } };
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i].name) == 0)
			return units[i].dim;
	return UNIT_NONE;
}

/* Append to a string of size bytes; what does not fit is left out. */
static void append(char *buf, size_t size, const char *text)
{
	const size_t used = strlen(buf);

	snprintf(buf + used, size - used, "%s", text);
}

char *reply_evidence(const json_t *rule, const char *separator, char *buf, size_t size)
{
	const json_t *list = reply_at(rule, "evidence"), *item;
	char number[64];
	double value;
	size_t i;

	buf[0] = '\0';
	json_array_foreach(list, i, item) {
		append(buf, size, i ? separator : "");
		append(buf, size, reply_string(item, "term"));
		if (!reply_number(item, "value", &value))
			snprintf(number, sizeof(number), "-");
		else
			units_format(value, dim_of(reply_string(item, "unit")), number, sizeof(number));
		append(buf, size, " ");
		append(buf, size, number);
	}
	return buf;
}

char *reply_list(const json_t *object, const char *path, char *buf, size_t size)
{
	const json_t *list = reply_at(object, path), *item;
	size_t i;

	buf[0] = '\0';
	json_array_foreach(list, i, item) {
		append(buf, size, i ? ", " : "");
		append(buf, size, reply_string(item, ""));
	}
	return buf;
}

char *reply_why(const json_t *rule, char *buf, size_t size)
{
	const char *why = reply_string(rule, "why");
	double have, need;

	if (reply_number(rule, "have", &have) && reply_number(rule, "need", &need) && need > 0)
		snprintf(buf, size, "%.0f of %.0f samples", have, need);
	else
		snprintf(buf, size, "%s", why[0] ? why : "the daemon gives no reason");
	return buf;
}
