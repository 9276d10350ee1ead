/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_sections.h - each section of the merged files to its part of the model. Private to the configuration reader.
 *
 * Errors:  go to t->d; an entry with an error is left out of the model. The order matters: params, targets, hooks, rules. */
#ifndef DWELLD_CONFIG_SECTIONS_H
#define DWELLD_CONFIG_SECTIONS_H

#include <stdio.h>

#include "config_tree.h"

/* Order of model_target.place, model_hook.place and model_rule.place. */
enum config_target_key { TARGET_NAME, TARGET_UNIT, TARGET_CGROUP, TARGET_PROCESS, TARGET_PORTS, TARGET_PROFILE };
enum config_hook_key {
	HOOK_KEY_NAME, HOOK_KEY_KIND, HOOK_KEY_EXEC, HOOK_KEY_TIMEOUT, HOOK_KEY_USER, HOOK_KEY_CREDENTIAL, HOOK_KEY_ON,
	HOOK_KEY_UNDO, HOOK_KEY_UNDO_AFTER, HOOK_KEY_UNDO_WHEN
};
enum config_rule_key {
	RULE_NAME, RULE_CLASS, RULE_SEVERITY, RULE_TARGETS, RULE_ALL_TARGETS, RULE_WHEN, RULE_CLEAR, RULE_FOR,
	RULE_CLEAR_FOR, RULE_NODATA, RULE_CRITICAL_WHEN, RULE_CRITICAL_FOR, RULE_SAMPLES, RULE_INHIBITS, RULE_LADDER,
	RULE_NOTIFY, RULE_ALLOW_NETWORK, RULE_SUMMARY
};

/* Names of entries that exist but may be switched off or wrong, so that who refers to them gets one message, not two. */
struct config_names { const struct config_section *targets, *hooks, *rules; };

void config_top(struct config_tree *t, struct model *m, bool *ret_builtin_rules);
void config_params(struct config_tree *t, struct model *m);
void config_targets(struct config_tree *t, const struct config_section *section, struct model *m);
void config_hooks(struct config_tree *t, const struct config_section *section, struct model *m);
void config_rules(struct config_tree *t, const struct config_names *names, struct model *m);

/* What needs the whole model: params that expressions use, windows, hooks that nothing uses. */
void config_check_model(struct config_tree *t, const struct config_names *names, struct model *m);
/* The same for one rule whose expressions are read: ladder, network, short for. */
int config_check_rule(struct config_tree *t, const struct config_entry *e, const struct model *m,
		      const struct model_rule *rule);

bool config_enabled(struct config_tree *t, const struct config_entry *e);
/* NULL-terminated names of a section for suggestions; ret holds CONFIG_ENTRIES + 1. */
void config_names_of(const struct config_section *section, const char **ret);
/* comments: the origin of each key. */
int config_write_model(const struct model *m, bool comments, FILE *out);
#endif
