/* SPDX-License-Identifier: GPL-2.0-or-later */
/* watch.h - `status --watch`: asks once per interval and redraws in place, or prints plain blocks into a pipe.
 * Layer: ctl. The terminal is as before when it returns, also after a signal. */
#ifndef DWELLCTL_WATCH_H
#define DWELLCTL_WATCH_H

#include <stdint.h>

struct watch { const char *path, *target; uint64_t interval_ns; };
/* The exit status: 0 when the user ended it, 1 when the daemon could not be reached at the first try. */
int watch_run(const struct watch *w);
#endif
