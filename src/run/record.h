/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record.h - the runs directory: one run at a time per (hook, target), each sequence number once. Layer: run.
 *
 * Files: RUNS/lock.HOOK.TARGET (flock, held for the run); RUNS/SEQ-HOOK-ACTION.started and .result, written under another
 * name, synced, renamed. They carry the request's mark (target, event, alert id), so that the same number of another life
 * of the daemon is another run. Errors: negative errno. */
#ifndef DWELLD_RECORD_H
#define DWELLD_RECORD_H

#include <stdbool.h>

#include "output.h"
#include "request.h"

#define RECORD_KEEP 100

struct record_result { int exit_code, signal; bool timeout, lost, ran; char line[OUTPUT_RESULT + 1]; };

struct record { int dir_fd, lock_fd; char base[128]; char mark[512]; };

/* What is known of this run. FOUND: its stored result is to be answered. CRASHED: it was begun and has no result. */
enum record_state { RECORD_NEW, RECORD_FOUND, RECORD_AGAIN, RECORD_CRASHED };

/* Makes the directory if need be (0750) and takes the lock, waiting for it at most wait_ms; -EBUSY and the pid that holds
 * it in *ret_pid (0 unknown). {.dir_fd = -1, .lock_fd = -1} needs no close. */
int record_open(const char *dir, const struct request *q, int wait_ms, struct record *ret, int *ret_pid);
void record_close(struct record *r);
/* ret_attempt: the number that the run to come should carry. */
enum record_state record_look(const struct record *r, const struct request *q, struct record_result *ret_result,
			      uint32_t *ret_attempt);
int record_started(const struct record *r, uint32_t attempt);
int record_result(const struct record *r, uint32_t attempt, const struct record_result *result);
/* Removes the oldest records so that RECORD_KEEP results remain. */
void record_prune(const struct record *r);
/* "result exit=0 signal=0 timeout=0 lost=0 ran=1 line=..." without newline. */
void record_format(const struct record_result *result, char *buf, size_t size);
#endif
