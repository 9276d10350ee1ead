/* SPDX-License-Identifier: GPL-2.0-or-later */
/* service.h - what the daemon says to its service manager, and how it stays alive on the starved host that it watches.
 * Layer: joins. Without a manager (foreground) every call is quiet; one that does not read is never waited for: what it
 * must hear is kept and sent with a later call. */
#ifndef DWELLD_SERVICE_H
#define DWELLD_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void service_ready(const char *status);
void service_status(const char *status);	/* only sent when it changed */
void service_alive(void);			/* after a complete tick */
void service_reloading(uint64_t now_us);
void service_stopping(void);
/* Lock memory (as it is touched) and raise our nice value. What was refused goes into why[], "" when all went well; that is
 * no error: the daemon goes on. */
void service_stay_alive(char *why, size_t size);
#endif
