/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_tree.h - the parsed files, one over the other, and the typed reading of their settings. Private to the
 * configuration reader.
 *
 * Layers:    an entry is what all files say under one name; a key's value is the last layer's that has it. Groups in an
 *            entry (undo, critical, samples) merge key by key too.
 * Errors:    readers return -EINVAL after they put "key: what was expected" with its place into the diag; they return
 *            -ENOENT silently when the key is not given.
 * Ownership: strings that are handed out belong to the tree. */
#ifndef DWELLD_CONFIG_TREE_H
#define DWELLD_CONFIG_TREE_H

#include <libconfig.h>
#include <stdbool.h>
#include <stdint.h>

#include "decide/diag.h"
#include "decide/model.h"

#define CONFIG_ENTRIES 256	/* names in one section of all files; refused above */
#define CONFIG_TOO_BIG 16	/* numbers too large that a file remembers */
#define CONFIG_COUNT_MAX 1000000

struct config_source {
	config_t cfg;
	char path[MODEL_PATH];
	uint8_t file;			/* index in model.file + 1 */
	bool builtin;
	unsigned int told[CONFIG_TOO_BIG];	/* lines with an error already: one message per mistake */
	unsigned int told_count;
};

struct config_tree {
	struct diag *d;
	struct config_source source[MODEL_FILES];
	unsigned int count;
	bool broken;			/* a file is missing from it: what refers to other entries can't be judged */
};

struct config_entry {
	char name[SAMPLE_NAME_MAX];
	const config_setting_t *layer[MODEL_FILES];
	unsigned int layers;
};
struct config_section {
	struct config_entry entry[CONFIG_ENTRIES];
	unsigned int count;
};

/* Known keys of one kind of group; later: known by name, but not supported yet. Both end with NULL. */
struct config_keys { const char *const *now, *const *later; };

int config_error(struct config_tree *t, const config_setting_t *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int config_warning(struct config_tree *t, const config_setting_t *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
const struct config_source *config_source_of(const struct config_tree *t, const config_setting_t *s);
struct model_place config_place(const struct config_tree *t, const config_setting_t *s);
/* Nearest of names (NULL-terminated) when it is near enough, else NULL. */
const char *config_nearest(const char *word, const char *const *names);
/* Every key of a group is known; else errors. */
void config_check_keys(struct config_tree *t, const config_setting_t *group, const struct config_keys *keys);

/* Entries of the named list section of all files, in order of first appearance. skip_builtin leaves out layers. */
void config_section_read(struct config_tree *t, const char *section, bool skip_builtin, struct config_section *ret);
const config_setting_t *config_get(const struct config_entry *e, const char *key);
/* The group called key of all layers as an entry. False if no layer has it. */
bool config_sub(struct config_tree *t, const struct config_entry *e, const char *key, struct config_entry *ret);
/* A setting to blame when a key is missing: the last layer's name, or the group itself. */
const config_setting_t *config_blame(const struct config_entry *e);

int config_text(struct config_tree *t, const config_setting_t *s, size_t size, const char **ret);
int config_duration(struct config_tree *t, const config_setting_t *s, uint64_t *ret_ns);
int config_bool(struct config_tree *t, const config_setting_t *s, bool *ret);
int config_count(struct config_tree *t, const config_setting_t *s, uint32_t *ret);
/* Index into names (NULL-terminated); later: names that are refused as not supported yet, or NULL. */
int config_choice(struct config_tree *t, const config_setting_t *s, const struct config_keys *names, int *ret);
/* A string, or an array or list of them: element i, or NULL with an error told. */
int config_list_length(const config_setting_t *s);
const config_setting_t *config_list_at(const config_setting_t *s, int i);
int config_expr(struct config_tree *t, const config_setting_t *s, struct expr *ret);
bool config_name_ok(const char *name, const char *extra, size_t size);
#endif
