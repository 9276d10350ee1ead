/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_sections.h - each section of the merged files to its part of the model. Private to the configuration reader.
 *
 * Errors:  go to t->d; an entry with an error is left out of the model. The order matters: params, targets, hooks, rules. */
#ifndef DWELLD_CONFIG_SECTIONS_H
#define DWELLD_CONFIG_SECTIONS_H

#include <stdio.h>

#include "config_keys.h"
#include "config_tree.h"

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
