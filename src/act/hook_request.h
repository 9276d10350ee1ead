/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook_request.h - a request to dwelld-hook-run as a file that it reads from stdin. Layer: act.
 *
 * "dwelld-hook 1", lines key=value, an empty line, the event as JSON. Errors: negative errno. */
#ifndef DWELLD_HOOK_REQUEST_H
#define DWELLD_HOOK_REQUEST_H

#include "hook_client.h"

/* A memory file at its start; the caller closes it. -EINVAL for a name that is missing or too long. */
int hook_request_file(const struct hook_request *q, int *ret_fd);
/* The runner's answer in text ("result exit=0 ..."): true and both outputs, line at most size - 1 bytes. */
bool hook_request_result(const char *text, struct run_result *ret, char *ret_line, size_t size);
#endif
