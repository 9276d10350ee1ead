/* SPDX-License-Identifier: GPL-2.0-or-later */
/* model.h - the validated configuration as plain structs. config_file.c fills it, everything else reads it.
 * Layer: decide (pure data and look-ups).
 *
 * Units:     *_ns nanoseconds; ratios 0..1. Names are checked when read: [A-Za-z0-9._:@-], at most 127 bytes.
 * Ownership: one heap block, no pointers out of it; may be copied with memcpy. Indices are into its own arrays. */
#ifndef DWELLD_MODEL_H
#define DWELLD_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "expr.h"
#include "sample.h"

#define MODEL_NAME 64
#define MODEL_TEXT 256
#define MODEL_PATH 256
#define MODEL_TARGETS (SAMPLE_TARGETS - SAMPLE_FIRST_FREE)
#define MODEL_RULES 64
#define MODEL_HOOKS 32
#define MODEL_PROFILES 16
#define MODEL_PARAMS 16
#define MODEL_LIST 8		/* rungs of a ladder, notify, inhibits */
#define MODEL_ARGV 16

enum model_mode { MODE_OBSERVE, MODE_DRY_RUN, MODE_ACT };
enum rule_class { CLASS_SERVER, CLASS_HOST, CLASS_NETWORK, CLASS_COVERAGE };
enum severity { SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_CRITICAL };
enum nodata { NODATA_KEEP, NODATA_UNKNOWN, NODATA_FIRE };
enum hook_kind { HOOK_PAGE, HOOK_REMEDY, HOOK_DESTRUCTIVE };	/* permit, evidence: later */

/* Where a key came from, for --print and messages. file "built-in" line 0 for compiled-in ones. */
struct model_origin { char file[MODEL_PATH]; unsigned int line; };
/* The same for one key, small because there are many. file: index in model.file + 1; 0 = a default, written nowhere. */
#define MODEL_FILES 64
#define MODEL_KEYS 24
struct model_place { uint8_t file; uint32_t line; };

struct model_param { char name[EXPR_PARAM_NAME]; double value; enum unit_dim dim; struct model_place place; };
struct model_profile {			/* params = { media = { slow = "10ms"; ... } } */
	char name[MODEL_NAME];
	struct model_param param[MODEL_PARAMS];
	uint8_t param_count;
	enum severity at_most;		/* generic: warning */
	struct model_place at_most_place;
	struct model_origin origin;
};

/* Keys of one match AND together; a target's matches OR. Empty string / port_low 0 = not given. */
struct model_match {
	char unit[SAMPLE_NAME_MAX];	/* glob (fnmatch) */
	char cgroup[MODEL_PATH];	/* path or glob, as in /proc/PID/cgroup */
	char process[MODEL_NAME];	/* base name of the executable, glob */
	uint16_t port_low, port_high;	/* local ports */
};
#define MODEL_MATCHES 8
struct model_target {
	char name[SAMPLE_NAME_MAX];
	struct model_match match[MODEL_MATCHES];
	uint8_t match_count;
	char profile[MODEL_NAME];	/* "" = by what the datagrams look like */
	struct model_origin origin;
	struct model_place place[MODEL_KEYS];	/* by key; the order is config_keys.h's */
};

struct model_rule {
	char name[MODEL_NAME];
	char summary[MODEL_TEXT];	/* {target} is replaced */
	enum rule_class class;
	enum severity severity;
	bool all_targets;		/* no targets key, or [ "*" ] */
	char target[MODEL_LIST][SAMPLE_NAME_MAX];
	uint8_t target_count;
	struct expr when, clear;
	bool has_clear;			/* else clear = not when */
	uint64_t for_ns, clear_for_ns;	/* default for 0, clear_for 3 * for (at least one tick) */
	enum nodata nodata;
	bool has_critical;
	struct expr critical_when;
	uint64_t critical_for_ns;
	uint32_t samples[STAT_ID_COUNT];	/* 0 = default */
	char inhibits[MODEL_LIST][MODEL_NAME];	/* may name rules that do not exist (switched off) */
	uint8_t inhibit_count;
	int8_t ladder;			/* hook index, -1 none. A ladder of one rung for now */
	int8_t notify[MODEL_LIST];	/* hook indices */
	uint8_t notify_count;
	bool allow_network;		/* a destructive hook on a network rule */
	struct model_origin origin;
	struct model_place place[MODEL_KEYS];
};

struct model_undo {
	bool given;
	uint64_t after_ns;		/* default 5 min */
	bool has_when;
	struct expr when;		/* evaluated on the rule's target */
};
struct model_hook {
	char name[MODEL_NAME];
	enum hook_kind kind;
	char argv[MODEL_ARGV][MODEL_PATH];
	uint8_t argc;
	uint64_t timeout_ns;		/* default 10 s, 1 s .. 1 h */
	struct model_undo undo;
	char user[MODEL_NAME];		/* default root for remedy and destructive, dwelld-hook for page */
	char credential_name[4][MODEL_NAME], credential_path[4][MODEL_PATH];
	uint8_t credential_count;
	uint32_t on;			/* bit per enum event_kind (event.h) that a page hook wants; 0 = fire and resolve */
	struct model_origin origin;
	struct model_place place[MODEL_KEYS];
};

struct model {
	enum model_mode mode;
	struct model_profile profile[MODEL_PROFILES];
	uint8_t profile_count;
	struct model_target target[MODEL_TARGETS];
	uint8_t target_count;
	struct model_rule rule[MODEL_RULES];
	uint8_t rule_count;
	struct model_hook hook[MODEL_HOOKS];
	uint8_t hook_count;
	uint64_t window_ns[SIGNAL_WINDOWS_MAX];	/* every window that an expression uses; [0] is the default 10 s */
	uint8_t window_count;
	uint64_t tick_ns;		/* 250 ms; a test build may set it lower */
	char hash[17];			/* of the resolved text: config_hash */
	char file[MODEL_FILES][MODEL_PATH];	/* what was read, in order; [0] is "built-in" */
	uint8_t file_count;
	struct model_place mode_place;
};

int model_profile_find(const struct model *m, const char *name);	/* index or -1 */
int model_hook_find(const struct model *m, const char *name);
int model_rule_find(const struct model *m, const char *name);
/* $param of a target: its profile's, else generic's. false: no such param. */
bool model_param(const struct model *m, int profile, const char *name, double *ret_value);

const char *model_mode_name(enum model_mode mode);
const char *rule_class_name(enum rule_class class);
const char *severity_name(enum severity severity);
const char *hook_kind_name(enum hook_kind kind);
#endif
