/* SPDX-License-Identifier: GPL-2.0-or-later */
/* verdict.h - what the rules' states mean for a target, and the targets' for the host. Layer: decide (pure).
 *
 * Ownership: nothing is kept. Errors: none. */
#ifndef DWELLD_VERDICT_H
#define DWELLD_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine.h"

/* One rule on the target in question. Order in the array is the rules' order. */
struct verdict_rule {
	int rule;			/* model index, comes back as cause */
	enum rule_class class;
	enum severity severity;		/* now; info stands in status only and makes no verdict */
	enum rule_state state;
	bool inhibited;			/* keeps its state, is no cause */
};

#define VERDICT_CAUSES 8
struct verdict_result {
	enum verdict verdict;
	int cause[VERDICT_CAUSES];	/* primary first: severity, then order */
	size_t cause_count;
};
struct verdict_result verdict_of_target(const struct verdict_rule *rule, size_t count);
/* mixed if server and network both occur, else the first present of server, network, unknown, ok, idle.
 * No targets: idle. */
enum verdict verdict_of_host(const enum verdict *target, size_t count);
#endif
