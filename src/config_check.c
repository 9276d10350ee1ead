/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_check.c - what no single key can tell: does one stall outlive "for", may this hook follow that rule,
 * are the $values there, how many windows are there, is every hook used. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config_sections.h"
#include "decide/units.h"

/* How long a term stays up after a single stall: its window; nothing for what is read as of now. */
static uint64_t term_memory_ns(const struct expr_term *term)
{
	if (term->signal == SIGNAL_DWELL_OLDEST || signal_table[term->signal].kind == SIGNAL_GAUGE)
		return 0;
	return term->window_ns;
}

/* The same for the whole condition: "and" lets go with its shortest side, everything else with its longest.
 */
static uint64_t memory_ns(const struct expr *e)
{
	uint64_t stack[EXPR_OPS_MAX + 1], a, b;
	unsigned int n = 0;

	for (unsigned int i = 0; i < e->op_count; i++) {
		const struct expr_op *op = &e->op[i];

		if (op->kind == EXPR_TERM) {
			stack[n++] = term_memory_ns(&op->term);
		} else if (op->kind == EXPR_NUMBER || op->kind == EXPR_PARAM || op->kind == EXPR_KNOWN) {
			stack[n++] = 0;
		} else if (op->kind != EXPR_NOT && op->kind != EXPR_NEG && n >= 2) {
			b = stack[--n];
			a = stack[--n];
			if (op->kind == EXPR_AND)
				stack[n++] = a < b ? a : b;
			else
				stack[n++] = a > b ? a : b;
		}
	}
	return n ? stack[n - 1] : 0;
}

int config_check_rule(struct config_tree *t, const struct config_entry *e, const struct model *m,
		      const struct model_rule *rule)
{
	const bool destructive = rule->ladder >= 0 && m->hook[rule->ladder].kind == HOOK_DESTRUCTIVE;
	const config_setting_t *at = config_get(e, "for") ? config_get(e, "for") : config_get(e, "when");
	const uint64_t memory = memory_ns(&rule->when);
	char hold[32], window[32];

	if (destructive && rule->class == CLASS_NETWORK && !rule->allow_network)
		return config_error(t, config_get(e, "ladder"),
				    "a network fault never starts a destructive hook (\"%s\"): "
				    "moving clients away does not cure their network; if that is meant, say "
				    "allow_network = "
				    "true",
				    m->hook[rule->ladder].name);
	if (memory <= rule->for_ns)
		return 0;
	units_format_duration_exact(rule->for_ns, hold, sizeof(hold));
	units_format_duration_exact(memory, window, sizeof(window));
	if (destructive)
		return config_error(
			t, at,
			"one short stall keeps \"when\" true for %s, longer than for = \"%s\", and would "
			"start the destructive hook \"%s\": add a term with a window shorter than for, such "
			"as "
			"\"and dwell.max[3s] > $slow\", or make for longer",
			window, hold, m->hook[rule->ladder].name);
	/* an operator's "at once" is meant so */
	if (rule->for_ns > 0)
		config_warning(
			t, at,
			"one short stall keeps \"when\" true for %s, longer than for = \"%s\": add a term "
			"with a "
			"window of at most %s, such as \"and dwell.max[3s] > $slow\", or make for longer",
			window, hold, hold);
	return 0;
}

static void say(struct config_tree *t, const struct model *m, struct model_place place, const char *text)
{
	diag_add(t->d, place.file ? m->file[place.file - 1] : NULL, place.line, "%s", text);
}

static const struct model_param *param_find(const struct model *m, int profile, const char *name)
{
	for (int i = 0; i < m->profile_count; i++) {
		if (profile >= 0 && i != profile)
			continue;
		for (unsigned int k = 0; k < m->profile[i].param_count; k++)
			if (strcmp(m->profile[i].param[k].name, name) == 0)
				return &m->profile[i].param[k];
	}
	return NULL;
}

/* A rule that runs for all targets meets every profile; a profile that lacks a value takes generic's. */
static bool param_everywhere(const struct model *m, const char *name)
{
	const int generic = model_profile_find(m, "generic");

	if (generic >= 0 && param_find(m, generic, name))
		return true;
	for (int i = 0; i < m->profile_count; i++)
		if (!param_find(m, i, name))
			return false;
	return generic >= 0;
}

static bool param_of_targets(const struct model *m, const struct model_rule *rule, const char *name)
{
	if (param_everywhere(m, name))
		return true;
	if (!rule || rule->all_targets)
		return false;
	for (unsigned int i = 0; i < rule->target_count; i++) {
		int profile = -1;

		for (unsigned int k = 0; k < m->target_count; k++)
			if (strcmp(m->target[k].name, rule->target[i]) == 0)
				profile = model_profile_find(m, m->target[k].profile);
		if (profile < 0 || !param_find(m, profile, name))
			return false;
	}
	return true;
}

static const char *param_suggest(const struct model *m, const char *name)
{
	const char *names[MODEL_PROFILES * MODEL_PARAMS + 1];
	unsigned int n = 0;

	for (int i = 0; i < m->profile_count; i++)
		for (unsigned int k = 0; k < m->profile[i].param_count; k++)
			names[n++] = m->profile[i].param[k].name;
	names[n] = NULL;
	return config_nearest(name, names);
}

static const char *const dim_names[] = {
	[UNIT_NONE] = "a plain number", [UNIT_TIME] = "a duration", [UNIT_RATIO] = "a percentage",
	[UNIT_RATE] = "a rate",		[UNIT_BYTES] = "a size",
};

static bool is_comparison(enum expr_op_kind kind)
{
	return kind == EXPR_LT || kind == EXPR_LE || kind == EXPR_GT || kind == EXPR_GE || kind == EXPR_EQ ||
	       kind == EXPR_NE;
}

/* "dwell.p99 > $share": the parser can't know the dimension of a $value. */
static const char *param_dim_wrong(const struct model *m, const struct expr *e, unsigned int i,
				   enum unit_dim *ret_want)
{
	const struct expr_op *op = &e->op[i];
	const struct model_param *param;

	if (op->kind == EXPR_TERM && op->term.arg_param >= 0) {
		param = param_find(m, -1, e->param[op->term.arg_param]);
		*ret_want = UNIT_TIME;
		return param && param->dim != UNIT_TIME ? param->name : NULL;
	}
	if (i < 2 || !is_comparison(op->kind))
		return NULL;
	for (unsigned int side = 1; side <= 2; side++) {
		const struct expr_op *p = &e->op[i - side], *term = &e->op[i - 3 + side];

		if (p->kind != EXPR_PARAM || term->kind != EXPR_TERM)
			continue;
		param = param_find(m, -1, e->param[p->param]);
		*ret_want = expr_term_dim(&term->term);
		if (param && param->dim != *ret_want)
			return param->name;
	}
	return NULL;
}

struct site {
	const struct expr *e;
	struct model_place place;
	const char *key;
	const struct model_rule *rule;
};

static void params_check(struct config_tree *t, const struct model *m, const struct site *site)
{
	char text[DIAG_TEXT];
	enum unit_dim want;

	for (unsigned int i = 0; i < site->e->param_count; i++) {
		const char *name = site->e->param[i], *near = param_suggest(m, name);

		if (param_of_targets(m, site->rule, name))
			continue;
		if (param_find(m, -1, name))
			snprintf(text, sizeof(text),
				 "%s: $%s is not in the profile of every target that this watches; give "
				 "the profile \"generic\" one too",
				 site->key, name);
		else if (near)
			snprintf(text, sizeof(text), "%s: no profile has $%s, did you mean $%s?", site->key,
				 name, near);
		else
			snprintf(text, sizeof(text), "%s: no profile has $%s", site->key, name);
		say(t, m, site->place, text);
	}
	for (unsigned int i = 0; i < site->e->op_count; i++) {
		const char *name = param_dim_wrong(m, site->e, i, &want);

		if (!name)
			continue;
		snprintf(text, sizeof(text), "%s: column %u: expected %s, and $%s is %s", site->key,
			 site->e->op[i].column, dim_names[want], name,
			 dim_names[param_find(m, -1, name)->dim]);
		say(t, m, site->place, text);
	}
}

static void windows_tell(struct config_tree *t, const struct model *m, const struct site *site,
			 uint64_t one_more_ns)
{
	char text[DIAG_TEXT], window[32];
	int used = snprintf(text, sizeof(text), "%s: more than %d different windows: ", site->key,
			    SIGNAL_WINDOWS_MAX);

	for (unsigned int i = 0; i < m->window_count; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%s ",
				 units_format_duration_exact(m->window_ns[i], window, sizeof(window)));
	snprintf(text + used, sizeof(text) - (size_t)used, "are in use, and here %s",
		 units_format_duration_exact(one_more_ns, window, sizeof(window)));
	say(t, m, site->place, text);
}

static void windows_collect(struct config_tree *t, struct model *m, const struct site *site)
{
	for (unsigned int i = 0; i < site->e->op_count; i++) {
		const struct expr_op *op = &site->e->op[i];
		bool have = false;

		if (op->kind != EXPR_TERM && op->kind != EXPR_KNOWN)
			continue;
		for (unsigned int k = 0; k < m->window_count; k++)
			have |= m->window_ns[k] == op->term.window_ns;
		if (have)
			continue;
		if (m->window_count == SIGNAL_WINDOWS_MAX) {
			windows_tell(t, m, site, op->term.window_ns);
			return;
		}
		m->window_ns[m->window_count++] = op->term.window_ns;
	}
}

/* One name, one dimension: $slow may not be a duration here and a percentage there. */
static void dims_check(struct config_tree *t, const struct model *m)
{
	for (int i = 0; i < m->profile_count; i++) {
		for (unsigned int k = 0; k < m->profile[i].param_count; k++) {
			const struct model_param *p = &m->profile[i].param[k],
						 *first = param_find(m, -1, p->name);
			char text[DIAG_TEXT];

			if (p->dim == first->dim)
				continue;
			snprintf(text, sizeof(text), "params.%s.%s: %s, but %s in another profile",
				 m->profile[i].name, p->name, dim_names[p->dim], dim_names[first->dim]);
			say(t, m, p->place, text);
		}
	}
}

static void hooks_used(struct config_tree *t, const struct config_names *names, const struct model *m)
{
	for (int i = 0; i < m->hook_count; i++) {
		const char *name = m->hook[i].name;
		bool used = false;

		for (int k = 0; k < m->rule_count; k++) {
			used |= m->rule[k].ladder == i;
			for (unsigned int n = 0; n < m->rule[k].notify_count; n++)
				used |= m->rule[k].notify[n] == i;
		}
		for (unsigned int k = 0; !used && k < names->hooks->count; k++)
			if (strcmp(names->hooks->entry[k].name, name) == 0)
				config_warning(t, config_get(&names->hooks->entry[k], "name"),
					       "no rule uses hook \"%s\"", name);
	}
}

void config_check_model(struct config_tree *t, const struct config_names *names, struct model *m)
{
	m->window_ns[0] = SIGNAL_WINDOW_DEFAULT_NS;
	m->window_count = 1;
	dims_check(t, m);
	for (int i = 0; i < m->rule_count; i++) {
		const struct model_rule *r = &m->rule[i];
		const struct site site[] = {
			{&r->when, r->place[RULE_WHEN], "when", r},
			{&r->clear, r->place[RULE_CLEAR], "clear", r},
			{&r->critical_when, r->place[RULE_CRITICAL_WHEN], "critical.when", r},
		};

		for (unsigned int k = 0; k < 3; k++) {
			params_check(t, m, &site[k]);
			windows_collect(t, m, &site[k]);
		}
	}
	for (int i = 0; i < m->hook_count; i++) {
		const struct model_hook *h = &m->hook[i];
		const struct site site = {&h->undo.when, h->place[HOOK_KEY_UNDO_WHEN], "undo.when", NULL};

		params_check(t, m, &site);
		windows_collect(t, m, &site);
	}
	/* with an error elsewhere a rule is missing from the model, and its hooks would look unused */
	if (t->d->errors == 0)
		hooks_used(t, names, m);
}
