/* SPDX-License-Identifier: GPL-2.0-or-later */
/* daemon.h - owns every object and drives the tick: read, window, expr, rule, verdict, remedy, act. Layer: joins.
 *
 * Ownership: daemon_new allocates everything, daemon_free ends it. Errors: negative errno, told in words on the journal. */
#ifndef DWELLD_DAEMON_H
#define DWELLD_DAEMON_H

#include <stdbool.h>

#include "decide/diag.h"
#include "decide/model.h"

struct daemon;

struct daemon_options {
	const char *config;		/* --config FILE, NULL: the default files */
	const char *rungs;
	const char *run_dir, *state_dir, *hook_dir;	/* sockets, debts, run records */
	const char *runner;		/* dwelld-hook-run */
	bool dry_run;			/* --dry-run: nothing is run, whatever mode says */
	unsigned long long tick_us;	/* 0: the model's; test builds only */
	const char *root;		/* of host counters, test builds only */
};

int daemon_new(const struct daemon_options *options, struct daemon **ret);
/* Until TERM or INT; the exit status. */
int daemon_run(struct daemon *d);
void daemon_free(struct daemon *d);
#endif
