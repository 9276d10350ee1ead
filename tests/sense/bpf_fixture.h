/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bpf_fixture.h - load the shared maps and single programs for a test, without the daemon's ladder. The test is skipped with
 * a reason when it is not root. Maps are read by name; per-CPU values come summed. */
#ifndef DWELLD_TESTS_BPF_FIXTURE_H
#define DWELLD_TESTS_BPF_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/map_layout.h"

#define FIXTURE_OBJECTS 4
#define FIXTURE_LINKS 8
#define FIXTURE_SLOT 5	/* a target slot that nothing else uses */

struct fixture {
	struct bpf_object *object[FIXTURE_OBJECTS];	/* [0] is core */
	unsigned int objects;
	struct bpf_link *link[FIXTURE_LINKS];
	unsigned int links;
	int cgroup_fd;
};

enum fixture_object { FIXTURE_RUNQ, FIXTURE_SOFTIRQ, FIXTURE_DROPS, FIXTURE_MEDIA };

/* Ends the test (skipped) when BPF cannot be used here. */
void fixture_open(struct fixture *f);
/* Load these programs (NULL-terminated) of an object. */
void fixture_load(struct fixture *f, enum fixture_object which, const char *const *programs);
/* Attach one; cgroup programs to the root of cgroup2, so that all sockets are seen. */
void fixture_attach(struct fixture *f, const char *program);
/* Run a loaded tracepoint program once on that CPU, with one number as its argument. */
void fixture_run(struct fixture *f, const char *program, unsigned int cpu, uint64_t argument);
void fixture_close(struct fixture *f);

struct bpf_program *fixture_program(const struct fixture *f, const char *name);
int fixture_map(const struct fixture *f, const char *name);
uint64_t fixture_count(const struct fixture *f, uint32_t slot, enum map_count what);
/* Sum over all CPUs of hists[key] or host_hists[key]. */
void fixture_hist(const struct fixture *f, const char *map, uint32_t key, uint64_t ret_slot[HIST_SLOTS]);
uint64_t fixture_hist_count(const uint64_t slot[HIST_SLOTS]);
uint64_t fixture_hist_sum_ns(const uint64_t slot[HIST_SLOTS]);
/* Row of a socket by its cookie, 0: none. The second form also makes it belong to FIXTURE_SLOT. */
uint32_t fixture_row(const struct fixture *f, int socket_fd);
uint32_t fixture_own(const struct fixture *f, int socket_fd);
uint64_t fixture_cookie(int socket_fd);
uint64_t fixture_now(void);
/* A socket bound to loopback, with its address in *ret; family AF_INET or AF_INET6. */
int fixture_socket(int family, void *ret_address);
#endif
