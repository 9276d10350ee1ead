/* SPDX-License-Identifier: GPL-2.0-or-later */
/* process.h - what one process is, from /proc: its cgroup, systemd unit and program. Layer: sense.
 *
 * Everything in /proc/PID is hostile text: names are cut and odd bytes replaced by '_'. The root of /proc can be given, so
 * that tests bring their own. Errors: -ESRCH when the process is gone. */
#ifndef DWELLD_PROCESS_H
#define DWELLD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide/model.h"

struct process {
	char cgroup[MODEL_PATH];	/* systemd's line on v1 and hybrid hosts, "0::" on v2; "/" if none */
	char unit[SAMPLE_NAME_MAX];	/* "" when it is in none */
	bool unit_generated;		/* docker-*.scope, session-*, ...: says nothing about the service */
	char program[MODEL_NAME];	/* base name of the executable, or first word of the command line */
	char name[SAMPLE_NAME_MAX];	/* as a target: unit, else program (with script or jar for interpreters) */
};

int process_read(const char *proc_root, uint32_t pid, struct process *ret);
int process_read_cgroup(const char *proc_root, uint32_t pid, struct process *p);	/* only its cgroup and unit */
/* Pure parts, for tests. cgroup_text is the content of /proc/PID/cgroup. */
void process_cgroup(const char *cgroup_text, struct process *p);
/* exe may be "" (not readable); cmdline is the NUL-separated content, n bytes. */
void process_name(struct process *p, const char *exe, const char *cmdline, size_t n);
/* How well a match fits (0: not at all); ports are judged elsewhere. Ports 8, process 4, unit 2, cgroup 1. */
unsigned int process_match(const struct process *p, const struct model_match *m);
#endif
