/* SPDX-License-Identifier: GPL-2.0-or-later */
/* watch.h - from the start of a hook to the end of its whole tree. Layer: run.
 *
 * The hook's time limit ends it by TERM, 3 s later by KILL to every descendant; what a hook leaves behind when it exits is
 * ended in the same way. SIGTERM or SIGINT to this process ends the run at once. Never longer than limit + 5 s. */
#ifndef DWELLD_WATCH_H
#define DWELLD_WATCH_H

#include <stdint.h>
#include <sys/types.h>

#include "output.h"
#include "record.h"

/* Block the signals that watch_run() reads, and become the reaper of orphans; before the hook is started. */
int watch_prepare(int *ret_signal_fd);

struct watch { pid_t pid; int out_fd, err_fd, signal_fd; uint64_t limit_ns; struct output_log *log; };
/* Fills exit_code, signal, timeout, lost and line. Closes both pipes. */
void watch_run(const struct watch *w, struct record_result *ret);
#endif
