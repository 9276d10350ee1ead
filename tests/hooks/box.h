/* SPDX-License-Identifier: GPL-2.0-or-later */
/* box.h - a directory that hooks may be run from (root-owned up to /), a configuration, and questions to the runner. */
#ifndef DWELLD_TEST_BOX_H
#define DWELLD_TEST_BOX_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>

struct box { char dir[64], config[96], runs[96], hooks[8192]; };

/* Skips the test, with the reason, when not root. */
void box_open(struct box *b);
void box_close(struct box *b);
/* A file in the box; returns its path (one buffer per call, four at once). */
const char *box_file(struct box *b, const char *name, int mode, const char *text);
/* A shell script hook of this name in the box and in the configuration. keys: further keys such as "timeout = \"1s\";". */
void box_hook(struct box *b, const char *name, const char *keys, const char *script);
/* A hook with this exec list ("\"/a\", \"b\""), no file made. */
void box_exec(struct box *b, const char *name, const char *keys, const char *exec);
/* Text of a file in the box, "" when it is not there. */
const char *box_read(struct box *b, const char *name);

struct box_answer {
	int status;			/* of the runner, as from waitpid() */
	int exit_code, signal, timeout, lost, ran;
	char line[256], out[1024], err[262144];
	double seconds;
};
struct box_question { const char *hook, *action; uint64_t seq; uint32_t attempt; const char *extra; };
/* extra: further header lines of the request. */
void box_ask(struct box *b, const struct box_question *q, struct box_answer *ret);
/* The same in two halves, to do something while it runs. */
struct box_run { pid_t pid; int out_fd, err_fd; uint64_t start_ns; };
void box_start(struct box *b, const struct box_question *q, struct box_run *ret);
void box_wait(struct box_run *run, struct box_answer *ret);
/* Waits until the file is in the box, at most 10 s. */
bool box_appears(struct box *b, const char *name);
/* Waits until the process is gone or a zombie, at most 10 s. */
bool box_is_gone(pid_t pid);
uint64_t box_now_ns(void);
#endif
