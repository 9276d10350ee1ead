/* SPDX-License-Identifier: GPL-2.0-or-later */
/* daemon_private.h - the daemon's objects, shared by daemon.c (life and tick) and daemon_verbs.c (the control socket). */
#ifndef DWELLD_DAEMON_PRIVATE_H
#define DWELLD_DAEMON_PRIVATE_H

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "act/control.h"
#include "act/hook_client.h"
#include "act/journal.h"
#include "act/saved_state.h"
#include "daemon.h"
#include "decide/engine.h"
#include "decide/status.h"
#include "sense/sense.h"

#define LATE_TICKS 40	/* tick lateness is told over about ten seconds */

struct daemon {
	struct daemon_options options;
	struct model *model;
	struct diag *diag;
	struct journal *journal;
	struct control *control;
	struct sense *sense;
	struct engine *engine;
	struct hook_client *hooks;
	struct debts *debts;		/* NULL: no state directory; then no remedy is run */
	struct sample *sample;
	struct engine_out *out;
	sd_event *event;
	sd_event_source *tick_source, *sense_source, *term_source, *int_source, *hup_source;
	uint64_t tick_ns, due_ns, started_ns;
	uint64_t late_ns[LATE_TICKS];
	unsigned int late_at;
	bool ready, reload_failed;
	char boot_id[40];
};

uint64_t daemon_now_ns(void);
/* Journal the events and carry out the orders of d->out. */
void daemon_carry_out(struct daemon *d, uint64_t now_ns);
/* Answers from act/, in the loop. */
void daemon_on_hook_done(void *userdata, const char *hook, const char *target, uint64_t seq, struct run_result result,
			 const char *last_line);
void daemon_on_debt_found(void *userdata, uint64_t seq, const char *hook, const char *target, const char *rule,
			  const char *alert_id);
void daemon_on_debt_written(void *userdata, enum debt_kind kind, uint64_t seq, const char *hook, const char *target,
			    int error);
/* Read the configuration again; what is wrong goes into d->diag and the old one stays. */
int daemon_reload(struct daemon *d);
int daemon_verb(void *userdata, const char *verb, const char *args, uid_t uid, char **ret_text, size_t *ret_length);
#endif
