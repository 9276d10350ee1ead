/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bpf_object.h - one compiled-in BPF object: open, set its constants, load some of its programs, attach. Layer: sense.
 * Ownership: bpf_part_drop frees; {0} is empty. Errors: negative errno, with libbpf's own words in why[]. */
#ifndef DWELLD_BPF_OBJECT_H
#define DWELLD_BPF_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include <bpf/libbpf.h>

#define BPF_PART_LINKS 12
struct bpf_part {
	struct bpf_object *object;
	struct bpf_link *link[BPF_PART_LINKS];
	unsigned int link_count;
};

/* Constants of maps.bpf.h, the same in every object. */
struct bpf_constants { bool sock_hash, task_hash, pidns; unsigned int slots; };

/* bytes: a skeleton's embedded object. */
int bpf_part_open(const void *bytes, size_t size, const char *name, struct bpf_part *ret);
void bpf_part_constants(const struct bpf_part *p, const struct bpf_constants *c);
/* Only these programs (NULL-terminated); maps of the same name are taken from core when it is not NULL. */
int bpf_part_load(struct bpf_part *p, const char *const *programs, const struct bpf_part *core, char *why, size_t why_size);
int bpf_part_attach(struct bpf_part *p, const char *const *programs, int cgroup_fd, char *why, size_t why_size);
void bpf_part_detach(struct bpf_part *p);
void bpf_part_drop(struct bpf_part *p);
int bpf_part_map(const struct bpf_part *p, const char *name);	/* fd or -ENOENT */
/* Kernel memory of its maps, roughly: entries * value (* CPUs). Reused maps are not counted. */
unsigned long long bpf_part_bytes(const struct bpf_part *p, unsigned int cpus, const struct bpf_part *core);
#endif
