/* SPDX-License-Identifier: GPL-2.0-or-later */
/* host_paths.h - where this host keeps what we need. Layer: sense. Errors: negative errno; nothing is cached. */
#ifndef DWELLD_HOST_PATHS_H
#define DWELLD_HOST_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* Mount point of the cgroup2 hierarchy (also beside v1 controllers); -ENOENT. */
int host_cgroup2_root(char *buf, size_t size);
/* Are our process numbers the kernel's own? */
bool host_initial_pidns(void);
/* What BPF lacks here, in words with what is lost, or false: no BTF, missing capabilities. */
bool host_bpf_missing(char *buf, size_t size);
#endif
