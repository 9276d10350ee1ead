/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stream_source.h - the RTP stream table of the kernel, once per tick, as rows and sums of a sample. Layer: sense.
 *
 * Units:     now_ns is CLOCK_MONOTONIC of the tick. A stream is forgotten STREAM_SOURCE_SILENCE_NS after its last packet.
 * Sums:      rtp.* of a target are the growth of its streams, so that they never fall when a stream ends or when a socket's
 *            owner becomes known. Slot SAMPLE_HOST has no counts of its own here: decide/ adds the slots up.
 * Ownership: everything is allocated by stream_source_new; sample->stream points into it until the next read.
 * Errors:    negative errno; a failed read clears streams_known and the known bits, and leaves the sums. */
#ifndef DWELLD_STREAM_SOURCE_H
#define DWELLD_STREAM_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "bpf/map_layout.h"
#include "decide/sample.h"

#define STREAM_SOURCE_SILENCE_NS 10000000000ULL
#define STREAM_SOURCE_TRAFFIC_NS 2000000000ULL	/* span over which a target is told to be media or not */

struct stream_source;

/* One read of the kernel's table. sockets: the mapped rows, MAP_SOCKETS of them; NULL: all streams count as `other`. */
struct stream_table {
	const struct map_stream_key *key;
	const struct map_stream *value;
	size_t count;
	const struct map_socket *sockets;
};

/* streams_fd: the map, not owned; -1: none (nothing is ever known, tests call stream_source_take). */
int stream_source_new(int streams_fd, struct stream_source **ret);
void stream_source_free(struct stream_source *s);	/* NULL is fine */
/* Read, sum, expire. Fills sample->stream*, and of each target rtp_ever, the four RTP counters and their known bits. */
int stream_source_read(struct stream_source *s, uint64_t now_ns, const struct map_socket *sockets, struct sample *sample);
/* What read does with a table once it has it; for tests and replay. ret_silent: indexes of the streams to delete, room for
 * table->count; may be NULL. Returns how many. */
size_t stream_source_take(struct stream_source *s, uint64_t now_ns, const struct stream_table *table,
			  struct sample *sample, uint32_t *ret_silent);
/* Are half or more of the target's datagrams media? Counters are MAP_COUNT_MEDIA and MAP_COUNT_DATAGRAMS, cumulative; the
 * answer holds for the last STREAM_SOURCE_TRAFFIC_NS and stays while nothing arrives. slot < SAMPLE_TARGETS. */
bool stream_source_media(struct stream_source *s, uint64_t now_ns, unsigned int slot, const uint64_t media_datagrams[2]);
/* The slot was given to another target: rtp_ever and media start anew (the sums go on). */
void stream_source_forget(struct stream_source *s, unsigned int slot);
#endif
