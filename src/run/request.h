/* SPDX-License-Identifier: GPL-2.0-or-later */
/* request.h - what the daemon asks dwelld-hook-run for. Layer: run.
 *
 * On stdin: "dwelld-hook 1\n", then lines "key=value\n" (each key once, any order), an empty line, then the event as JSON
 * of exactly "length" bytes, which goes to the hook unread. A request holds names, never a path to run. Keys: hook action
 * seq attempt length (needed); event rule target unit cgroup pids ports class severity alert_id summary dry_run.
 * Errors: -EINVAL, -ETIMEDOUT, -E2BIG with one line in why. */
#ifndef DWELLD_REQUEST_H
#define DWELLD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_HEAD_MAX 8192
#define REQUEST_BODY_MAX 65536

/* Texts are free of control bytes ('?' stands for them). */
struct request {
	char hook[64], target[128], action[8], event[16], rule[64], unit[128], cgroup[256], pids[256], ports[128];
	char class[16], severity[16], alert_id[256], summary[256];
	uint64_t seq;
	uint32_t attempt;
	bool dry_run;
	size_t length;
	char body[REQUEST_BODY_MAX];
};

/* Waits for the whole request, at most timeout_ms. */
int request_read(int fd, int timeout_ms, struct request *ret, char *why, size_t size);
#endif
