/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_print.c - a model as configuration text that parses to itself. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_sections.h"
#include "decide/event.h"
#include "decide/units.h"

struct printing {
	const struct model *m;
	bool comments;
	FILE *out;
};

static void quoted(const struct printing *p, const char *text)
{
	fputc('"', p->out);
	for (; *text; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(p->out, "\\%c", c);
		else if (c < ' ' || c == 127)
			fprintf(p->out, "\\x%02x", c);
		else
			fputc(c, p->out);
	}
	fputc('"', p->out);
}

/* Where the key came from, to the end of the line. */
static void origin(const struct printing *p, struct model_place place)
{
	if (!p->comments)
		fputc('\n', p->out);
	else if (!place.file)
		fprintf(p->out, "\t# default\n");
	else
		fprintf(p->out, "\t# %s:%u\n", p->m->file[place.file - 1], (unsigned int)place.line);
}

static void text_key(const struct printing *p, const char *key, const char *text, struct model_place place)
{
	fprintf(p->out, "\t\t%s = ", key);
	quoted(p, text);
	fputc(';', p->out);
	origin(p, place);
}

static void duration_key(const struct printing *p, const char *key, uint64_t ns, struct model_place place)
{
	char buf[48];

	text_key(p, key, units_format_duration_exact(ns, buf, sizeof(buf)), place);
}

static void bool_key(const struct printing *p, const char *key, struct model_place place)
{
	fprintf(p->out, "\t\t%s = true;", key);
	origin(p, place);
}

/* The shortest text that reads back to the same number. */
static void quantity(const struct printing *p, double value, enum unit_dim dim)
{
	static const struct {
		const char *suffix;
		double times;
	} sizes[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}};
	const char *suffix = dim == UNIT_TIME ? "ns" : dim == UNIT_RATIO ? "%" : dim == UNIT_RATE ? "/s" : "";
	double shown = dim == UNIT_RATIO ? value * 100 : value, got;
	char text[400], number[360];
	enum unit_dim got_dim;

	if (dim == UNIT_TIME && value == (double)(uint64_t)value) {
		quoted(p, units_format_duration_exact((uint64_t)value, text, sizeof(text)));
		return;
	}
	for (unsigned int i = 0; dim == UNIT_BYTES && i < 4; i++) {
		shown = value / sizes[i].times;
		suffix = sizes[i].suffix;
		if (shown >= 1 && (shown >= 1e15 || shown == (double)(uint64_t)shown))
			break;
	}
	for (int digits = 0; digits <= 30; digits++) {
		snprintf(number, sizeof(number), "%.*f", digits, shown);
		snprintf(text, sizeof(text), "%s%s", number, suffix);
		if (units_parse_quantity(text, &got, &got_dim) == 0 && got == value)
			break;
	}
	quoted(p, text);
}

static void profiles(const struct printing *p)
{
	fprintf(p->out, "params = {\n");
	for (int i = 0; i < p->m->profile_count; i++) {
		const struct model_profile *profile = &p->m->profile[i];

		fprintf(p->out, "\t%s = {\n", profile->name);
		for (unsigned int k = 0; k < profile->param_count; k++) {
			fprintf(p->out, "\t\t%s = ", profile->param[k].name);
			quantity(p, profile->param[k].value, profile->param[k].dim);
			fputc(';', p->out);
			origin(p, profile->param[k].place);
		}
		text_key(p, "at_most", severity_name(profile->at_most), profile->at_most_place);
		fprintf(p->out, "\t};\n");
	}
	fprintf(p->out, "};\n");
}

/* One key of a match as text; false when the match has none. */
static bool match_part(const struct model_match *match, int key, char *buf, size_t size)
{
	buf[0] = '\0';
	if (key == TARGET_UNIT)
		snprintf(buf, size, "%s", match->unit);
	else if (key == TARGET_CGROUP)
		snprintf(buf, size, "%s", match->cgroup);
	else if (key == TARGET_PROCESS)
		snprintf(buf, size, "%s", match->process);
	else if (match->port_low && match->port_low == match->port_high)
		snprintf(buf, size, "%u", match->port_low);
	else if (match->port_low)
		snprintf(buf, size, "%u-%u", match->port_low, match->port_high);
	return buf[0] != '\0';
}

/* The matches are the product of the keys' lists, so the different values of a key, in order, give them
 * again. */
static void match_key(const struct printing *p, const struct model_target *target, const char *name, int key)
{
	char value[MODEL_MATCHES][MODEL_PATH];
	unsigned int n = 0;

	for (unsigned int i = 0; i < target->match_count; i++) {
		bool seen = false;

		if (!match_part(&target->match[i], key, value[n], sizeof(value[n])))
			return;
		for (unsigned int k = 0; k < n; k++)
			seen |= strcmp(value[k], value[n]) == 0;
		if (!seen)
			n++;
	}
	fprintf(p->out, "\t\t%s = [ ", name);
	for (unsigned int i = 0; i < n; i++) {
		fputs(i ? ", " : "", p->out);
		quoted(p, value[i]);
	}
	fputs(" ];", p->out);
	origin(p, target->place[key]);
}

static void targets(const struct printing *p)
{
	fprintf(p->out, "targets = (");
	for (int i = 0; i < p->m->target_count; i++) {
		const struct model_target *target = &p->m->target[i];

		fprintf(p->out, "%s\n\t{\n", i ? "," : "");
		text_key(p, "name", target->name, target->place[TARGET_NAME]);
		match_key(p, target, "unit", TARGET_UNIT);
		match_key(p, target, "cgroup", TARGET_CGROUP);
		match_key(p, target, "process", TARGET_PROCESS);
		match_key(p, target, "ports", TARGET_PORTS);
		if (target->profile[0])
			text_key(p, "profile", target->profile, target->place[TARGET_PROFILE]);
		fprintf(p->out, "\t}");
	}
	fprintf(p->out, "\n);\n");
}

static void list_begin(const struct printing *p, const char *key)
{
	fprintf(p->out, "\t\t%s = [ ", key);
}

static void list_item(const struct printing *p, unsigned int i, const char *text)
{
	fputs(i ? ", " : "", p->out);
	quoted(p, text);
}

static void list_end(const struct printing *p, struct model_place place)
{
	fputs(" ];", p->out);
	origin(p, place);
}

static void undo(const struct printing *p, const struct model_hook *h)
{
	if (!h->undo.given)
		return;
	fprintf(p->out, "\t\tundo = {");
	origin(p, h->place[HOOK_KEY_UNDO]);
	duration_key(p, "\tafter", h->undo.after_ns, h->place[HOOK_KEY_UNDO_AFTER]);
	if (h->undo.has_when)
		text_key(p, "\twhen", h->undo.when.text, h->place[HOOK_KEY_UNDO_WHEN]);
	fprintf(p->out, "\t\t};\n");
}

static void hook(const struct printing *p, const struct model_hook *h)
{
	char credential[MODEL_NAME + MODEL_PATH];
	unsigned int n = 0;

	text_key(p, "name", h->name, h->place[HOOK_KEY_NAME]);
	text_key(p, "kind", hook_kind_name(h->kind), h->place[HOOK_KEY_KIND]);
	list_begin(p, "exec");
	for (unsigned int i = 0; i < h->argc; i++)
		list_item(p, i, h->argv[i]);
	list_end(p, h->place[HOOK_KEY_EXEC]);
	duration_key(p, "timeout", h->timeout_ns, h->place[HOOK_KEY_TIMEOUT]);
	text_key(p, "user", h->user, h->place[HOOK_KEY_USER]);
	if (h->credential_count) {
		list_begin(p, "credential");
		for (unsigned int i = 0; i < h->credential_count; i++) {
			snprintf(credential, sizeof(credential), "%s:%s", h->credential_name[i],
				 h->credential_path[i]);
			list_item(p, i, credential);
		}
		list_end(p, h->place[HOOK_KEY_CREDENTIAL]);
	}
	if (h->on) {
		list_begin(p, "on");
		for (int i = 0; i < EVENT_KIND_COUNT; i++)
			if (h->on & 1U << i)
				list_item(p, n++, event_kind_name((enum event_kind)i));
		list_end(p, h->place[HOOK_KEY_ON]);
	}
	undo(p, h);
}

static void samples(const struct printing *p, const struct model_rule *r)
{
	bool any = false;

	for (int i = 0; i < STAT_ID_COUNT; i++)
		any |= r->samples[i] != 0;
	if (!any)
		return;
	fprintf(p->out, "\t\tsamples = { ");
	for (int i = 0; i < STAT_ID_COUNT; i++)
		if (r->samples[i])
			fprintf(p->out, "%s = %u; ", signal_stats[i].name, (unsigned int)r->samples[i]);
	fputs("};", p->out);
	origin(p, r->place[RULE_SAMPLES]);
}

static void rule_scope(const struct printing *p, const struct model_rule *r)
{
	text_key(p, "name", r->name, r->place[RULE_NAME]);
	text_key(p, "class", rule_class_name(r->class), r->place[RULE_CLASS]);
	text_key(p, "severity", severity_name(r->severity), r->place[RULE_SEVERITY]);
	if (!r->all_targets || r->ladder >= 0) {
		list_begin(p, "targets");
		for (unsigned int i = 0; i < r->target_count; i++)
			list_item(p, i, r->target[i]);
		if (r->all_targets)
			list_item(p, 0, "*");
		list_end(p, r->place[RULE_TARGETS]);
	}
	if (r->all_targets && r->ladder >= 0)
		bool_key(p, "all_targets", r->place[RULE_ALL_TARGETS]);
}

static void rule_when(const struct printing *p, const struct model_rule *r)
{
	static const char *const nodatas[] = {
		[NODATA_KEEP] = "keep", [NODATA_UNKNOWN] = "unknown", [NODATA_FIRE] = "fire"};

	text_key(p, "when", r->when.text, r->place[RULE_WHEN]);
	if (r->has_clear)
		text_key(p, "clear", r->clear.text, r->place[RULE_CLEAR]);
	duration_key(p, "for", r->for_ns, r->place[RULE_FOR]);
	duration_key(p, "clear_for", r->clear_for_ns, r->place[RULE_CLEAR_FOR]);
	text_key(p, "nodata", nodatas[r->nodata], r->place[RULE_NODATA]);
	samples(p, r);
	if (r->has_critical) {
		fprintf(p->out, "\t\tcritical = {\n");
		text_key(p, "\twhen", r->critical_when.text, r->place[RULE_CRITICAL_WHEN]);
		duration_key(p, "\tfor", r->critical_for_ns, r->place[RULE_CRITICAL_FOR]);
		fprintf(p->out, "\t\t};\n");
	}
}

static void rule_consequences(const struct printing *p, const struct model_rule *r)
{
	if (r->inhibit_count) {
		list_begin(p, "inhibits");
		for (unsigned int i = 0; i < r->inhibit_count; i++)
			list_item(p, i, r->inhibits[i]);
		list_end(p, r->place[RULE_INHIBITS]);
	}
	if (r->ladder >= 0) {
		list_begin(p, "ladder");
		list_item(p, 0, p->m->hook[r->ladder].name);
		list_end(p, r->place[RULE_LADDER]);
	}
	if (r->notify_count) {
		list_begin(p, "notify");
		for (unsigned int i = 0; i < r->notify_count; i++)
			list_item(p, i, p->m->hook[r->notify[i]].name);
		list_end(p, r->place[RULE_NOTIFY]);
	}
	if (r->allow_network)
		bool_key(p, "allow_network", r->place[RULE_ALLOW_NETWORK]);
	text_key(p, "summary", r->summary, r->place[RULE_SUMMARY]);
}

int config_write_model(const struct model *m, bool comments, FILE *out)
{
	const struct printing p = {m, comments, out};

	fprintf(out, "builtin_rules = false;%s\n",
		comments ? "\t# all that is in force is written here" : "");
	fprintf(out, "mode = \"%s\";", model_mode_name(m->mode));
	origin(&p, m->mode_place);
	profiles(&p);
	targets(&p);
	fprintf(out, "hooks = (");
	for (int i = 0; i < m->hook_count; i++) {
		fprintf(out, "%s\n\t{\n", i ? "," : "");
		hook(&p, &m->hook[i]);
		fprintf(out, "\t}");
	}
	fprintf(out, "\n);\nrules = (");
	for (int i = 0; i < m->rule_count; i++) {
		fprintf(out, "%s\n\t{\n", i ? "," : "");
		rule_scope(&p, &m->rule[i]);
		rule_when(&p, &m->rule[i]);
		rule_consequences(&p, &m->rule[i]);
		fprintf(out, "\t}");
	}
	fprintf(out, "\n);\n");
	return ferror(out) ? -EIO : 0;
}
