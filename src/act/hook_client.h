/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook_client.h - one run of a hook: a request to dwelld-hook-run and its result. Layer: act.
 *
 * Here the runner is started as a child of the loop (sd-event child source); the socket way comes with issue 3's
 * service and has the same interface. The daemon never execs a hook itself: the runner is told a name, finds the path.
 * Nothing blocks; the result comes through the callback from the loop. The child is in its own process group and dies
 * with its deadline even if the runner hangs (TERM, then KILL after grace, then reported lost).
 * A run that cannot be started is a result too (exit 69, 75 when 64 run already), told from the loop; only a request that
 * makes no sense and no memory are returned as errors, and then done is not called.
 * Ownership: hook_client_free ends what still runs (bounded) and reports nothing more. */
#ifndef DWELLD_HOOK_CLIENT_H
#define DWELLD_HOOK_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "decide/event.h"
#include "decide/model.h"
#include "decide/remedy.h"

struct hook_client;

struct hook_request {
	const char *hook;		/* name */
	const char *target;
	const char *action;		/* do undo notify */
	uint64_t seq;
	uint32_t attempt;
	uint64_t timeout_ns;		/* the hook's own; the client adds grace */
	const struct event *event;	/* becomes the JSON on stdin */
};
typedef void (*hook_done_fn)(void *userdata, const char *hook, const char *target, uint64_t seq,
			     struct run_result result, const char *last_line);

struct hook_client_setup {
	const char *runner;		/* path of dwelld-hook-run */
	const char *config;		/* --config for it, NULL = /etc/dwelld */
	const char *runs_dir;		/* where runs are recorded, NULL = /var/lib/dwelld-hook/runs */
};
int hook_client_new(sd_event *event, const struct hook_client_setup *setup, hook_done_fn done, void *userdata,
		    struct hook_client **ret);
int hook_client_run(struct hook_client *c, const struct hook_request *request);
unsigned int hook_client_running(const struct hook_client *c);
void hook_client_free(struct hook_client *c);
/* The event as the one JSON document that hooks read (schema conf/hook-event.schema.json). -ENOBUFS if too small. */
int hook_event_json(const struct event *e, const char *action, const char *hook, uint64_t seq, uint32_t attempt,
		    char *buf, size_t size);
#endif
