/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bpf_source.h - read all maps once per tick into a sample: histograms that moved, counters, socket and reader rows.
 * Layer: sense. Cumulative values only; the maps are never written but for a row's target and a mended queue.
 *
 * Ownership: bpf_source_new maps the row arrays; the reader rows of a sample point into them. */
#ifndef DWELLD_BPF_SOURCE_H
#define DWELLD_BPF_SOURCE_H

#include <stdint.h>
#include <linux/types.h>

#include "bpf/map_layout.h"
#include "conserve.h"
#include "decide/sample.h"
#include "probes.h"
#include "targets.h"

struct bpf_source;
int bpf_source_new(const struct probes *p, struct bpf_source **ret);
void bpf_source_free(struct bpf_source *b);
/* Everything but names, streams and host files. */
void bpf_source_read(struct bpf_source *b, uint64_t now_ns, struct sample *s);
/* Port matches, and owners of sockets that nobody has read yet: rows get their targets. true: there are sockets with
 * datagrams and no known owner, or with a queue that looks stuck: the owner iterator should run. */
bool bpf_source_place(struct bpf_source *b, struct targets *t, uint64_t now_ns);
/* One line of the owner iterator: the row learns its owner; a queue that is empty though our counts differ is mended. */
void bpf_source_owner(struct bpf_source *b, const struct map_owner *o, unsigned int slot, uint64_t now_ns);
/* Does a row with datagrams belong to this socket? */
bool bpf_source_has(const struct bpf_source *b, const struct map_owner *o);
void bpf_source_generation(struct bpf_source *b);	/* cached slots are looked up again */
const struct map_socket *bpf_source_sockets(const struct bpf_source *b);
/* Media-looking datagrams and all datagrams of a slot, cumulative, as of the last read. */
void bpf_source_media(const struct bpf_source *b, unsigned int slot, uint64_t ret[2]);
const struct conserve *bpf_source_conserve(const struct bpf_source *b);
/* Local ports of a slot as "5000,5002-5004"; cut with ",..." when there are too many. */
void bpf_source_ports(const struct bpf_source *b, unsigned int slot, char *buf, size_t size);
#endif
