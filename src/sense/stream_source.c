/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stream_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

/* Twice the streams of the map, power of two: open addressing stays short. */
#define KNOWN_SLOTS (2 * MAP_STREAMS)

enum { SUM_EXPECTED, SUM_RECEIVED, SUM_REORDER, SUM_DUPLICATES, SUM_COUNT };
static const enum sample_counter sum_counter[SUM_COUNT] = {
	[SUM_EXPECTED] = SAMPLE_RTP_EXPECTED,
	[SUM_RECEIVED] = SAMPLE_RTP_RECEIVED,
	[SUM_REORDER] = SAMPLE_RTP_REORDER,
	[SUM_DUPLICATES] = SAMPLE_RTP_DUPLICATES,
};

/* What was last seen of a stream. id 0: free. */
struct known {
	struct map_stream_key key;
	uint64_t id, created_ts, tick;
	uint64_t sum[SUM_COUNT];
};

struct traffic {
	uint64_t since_ns, media, datagrams;	/* at the start of the span */
	bool is_media;
};

struct stream_source {
	int fd;
	bool no_batch;			/* the kernel has no batch look-up for it */
	uint64_t next_id, tick;
	uint32_t known_count;
	struct known *known;		/* KNOWN_SLOTS, one always free */
	struct sample_stream *row;	/* MAP_STREAMS */
	struct map_stream_key *key;	/* MAP_STREAMS, of the last read */
	struct map_stream *value;
	uint32_t *silent;
	uint64_t sum[SAMPLE_TARGETS][SUM_COUNT];
	bool ever[SAMPLE_TARGETS];
	struct traffic traffic[SAMPLE_TARGETS];
};

int stream_source_new(int streams_fd, struct stream_source **ret)
{
	struct stream_source *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->fd = streams_fd;
	s->next_id = 1;
	s->known = calloc(KNOWN_SLOTS, sizeof(*s->known));
	s->row = calloc(MAP_STREAMS, sizeof(*s->row));
	s->key = calloc(MAP_STREAMS, sizeof(*s->key));
	s->value = calloc(MAP_STREAMS, sizeof(*s->value));
	s->silent = calloc(MAP_STREAMS, sizeof(*s->silent));
	if (!s->known || !s->row || !s->key || !s->value || !s->silent) {
		stream_source_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void stream_source_free(struct stream_source *s)
{
	if (!s)
		return;
	free(s->known);
	free(s->row);
	free(s->key);
	free(s->value);
	free(s->silent);
	free(s);
}

/* ---- streams seen before ---- */

static uint32_t known_home(const struct map_stream_key *key)
{
	return (uint32_t)(((key->cookie ^ ((uint64_t)key->ssrc << 32)) * 0x9e3779b97f4a7c15ULL) >> 40) & (KNOWN_SLOTS - 1);
}

/* The stream's entry, made if there is none; NULL when the table is full. */
static struct known *known_of(struct stream_source *s, const struct map_stream_key *key)
{
	uint32_t at = known_home(key);

	for (uint32_t i = 0; i < KNOWN_SLOTS; i++, at = (at + 1) & (KNOWN_SLOTS - 1)) {
		struct known *k = &s->known[at];

		if (k->id && (k->key.cookie != key->cookie || k->key.ssrc != key->ssrc))
			continue;
		if (k->id)
			return k;
		if (s->known_count == KNOWN_SLOTS - 1)
			return NULL;
		s->known_count++;
		*k = (struct known){ .key = *key, .id = s->next_id++ };
		return k;
	}
	return NULL;
}

/* Free an entry and move up what probed past it, so that no search ends too early. */
static void known_remove(struct stream_source *s, uint32_t hole)
{
	uint32_t at = hole;

	for (;;) {
		uint32_t home;

		at = (at + 1) & (KNOWN_SLOTS - 1);
		if (!s->known[at].id)
			break;
		home = known_home(&s->known[at].key);
		if (((at - home) & (KNOWN_SLOTS - 1)) < ((at - hole) & (KNOWN_SLOTS - 1)))
			continue;
		s->known[hole] = s->known[at];
		hole = at;
	}
	s->known[hole] = (struct known){ 0 };
	s->known_count--;
}

/* Forget what the table no longer holds. */
static void known_sweep(struct stream_source *s, uint32_t held)
{
	if (s->known_count == held)
		return;
	for (uint32_t i = 0; i < KNOWN_SLOTS;) {
		if (s->known[i].id && s->known[i].tick != s->tick)
			known_remove(s, i);	/* another may have moved here: look again */
		else
			i++;
	}
}

/* ---- one table ---- */

static uint16_t stream_target(const struct stream_table *t, size_t i)
{
	const struct map_socket *row;

	if (!t->sockets || !t->value[i].row || t->value[i].row >= MAP_SOCKETS)
		return SAMPLE_OTHER;
	row = &t->sockets[t->value[i].row];
	/* the row may have gone to another socket since */
	if (row->cookie != t->key[i].cookie || row->target >= SAMPLE_TARGETS)
		return SAMPLE_OTHER;
	return (uint16_t)row->target;
}

static void stream_sums(const struct map_stream *v, uint64_t ret[SUM_COUNT])
{
	ret[SUM_EXPECTED] = v->past_expected + v->highest - v->base + 1;
	ret[SUM_RECEIVED] = v->received;
	ret[SUM_REORDER] = v->reorder;
	ret[SUM_DUPLICATES] = v->duplicates;
}

static void sums_grow(struct stream_source *s, struct known *k, uint16_t target, const uint64_t sum[SUM_COUNT])
{
	for (int c = 0; c < SUM_COUNT; c++) {
		/* a copy taken in the middle of an update may lag behind the last one: nothing is taken back */
		const uint64_t grown = sum[c] > k->sum[c] ? sum[c] - k->sum[c] : 0;

		s->sum[target][c] += grown;
		k->sum[c] += grown;
	}
	s->ever[target] = s->ever[SAMPLE_HOST] = true;
}

static void stream_row(struct sample_stream *row, const struct known *k, const struct map_stream *v, uint16_t target)
{
	*row = (struct sample_stream){
		.id = k->id,
		.target = target,
		.ssrc = k->key.ssrc,
		.expected = k->sum[SUM_EXPECTED],
		.received = k->sum[SUM_RECEIVED],
		.reorder = k->sum[SUM_REORDER],
		.duplicates = k->sum[SUM_DUPLICATES],
		.last_ns = v->last_ts,
		.jitter_ns = v->jitter16_ns >> 4,
		.jitter_known = v->clock_rate != 0,
	};
}

static void sample_fill(const struct stream_source *s, uint32_t rows, struct sample *sample)
{
	for (unsigned int slot = 0; slot < SAMPLE_TARGETS; slot++) {
		struct sample_target *t = &sample->target[slot];

		t->rtp_ever = s->ever[slot];
		for (int c = 0; c < SUM_COUNT; c++) {
			t->counter[sum_counter[c]] = s->sum[slot][c];
			t->counter_known |= 1U << sum_counter[c];
		}
	}
	sample->stream = s->row;
	sample->stream_count = rows;
	sample->streams_known = true;
}

size_t stream_source_take(struct stream_source *s, uint64_t now_ns, const struct stream_table *table,
			  struct sample *sample, uint32_t *ret_silent)
{
	size_t silent = 0;
	uint32_t rows = 0, held = 0;

	s->tick++;
	for (size_t i = 0; i < table->count; i++) {
		const struct map_stream *v = &table->value[i];
		const bool over = now_ns > v->last_ts && now_ns - v->last_ts > STREAM_SOURCE_SILENCE_NS;
		const uint16_t target = stream_target(table, i);
		struct known *k = known_of(s, &table->key[i]);
		uint64_t sum[SUM_COUNT];

		if (!k)
			continue;
		if (k->created_ts && k->created_ts != v->created_ts)	/* gone and come back between two reads */
			*k = (struct known){ .key = table->key[i], .id = s->next_id++ };
		k->created_ts = v->created_ts;
		k->tick = s->tick;
		held++;
		stream_sums(v, sum);
		sums_grow(s, k, target, sum);
		if (over) {
			if (ret_silent)
				ret_silent[silent] = (uint32_t)i;
			silent++;
			continue;
		}
		if (rows < MAP_STREAMS)
			stream_row(&s->row[rows++], k, v, target);
	}
	known_sweep(s, held);
	sample_fill(s, rows, sample);
	return silent;
}

/* ---- the kernel's map ---- */

static int read_one_by_one(struct stream_source *s, size_t *ret_count)
{
	struct map_stream_key key;
	const struct map_stream_key *prev = NULL;
	size_t n = 0;

	while (n < MAP_STREAMS && !bpf_map_get_next_key(s->fd, prev, &key)) {
		s->key[n] = key;
		prev = &s->key[n];
		/* nobody but us deletes, so what was listed is there */
		if (bpf_map_lookup_elem_flags(s->fd, &key, &s->value[n], BPF_F_LOCK))
			return -errno;
		n++;
	}
	*ret_count = n;
	return 0;
}

static int read_all(struct stream_source *s, size_t *ret_count)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts, .elem_flags = BPF_F_LOCK);
	__u32 count = MAP_STREAMS, batch = 0;

	if (s->no_batch)
		return read_one_by_one(s, ret_count);
	/* one call for all; ENOENT says that the end was reached, and count is right */
	if (bpf_map_lookup_batch(s->fd, NULL, &batch, s->key, s->value, &count, &opts) && errno != ENOENT) {
		if (errno != EINVAL && errno != ENOTSUP && errno != 524 /* ENOTSUPP */)
			return -errno;
		s->no_batch = true;
		return read_one_by_one(s, ret_count);
	}
	*ret_count = count;
	return 0;
}

static void read_failed(struct sample *sample)
{
	for (unsigned int slot = 0; slot < SAMPLE_TARGETS; slot++)
		for (int c = 0; c < SUM_COUNT; c++)
			sample->target[slot].counter_known &= ~(1U << sum_counter[c]);
	sample->stream = NULL;
	sample->stream_count = 0;
	sample->streams_known = false;
}

int stream_source_read(struct stream_source *s, uint64_t now_ns, const struct map_socket *sockets, struct sample *sample)
{
	struct stream_table table = { .key = s->key, .value = s->value, .sockets = sockets };
	size_t silent;
	int r = s->fd < 0 ? -EBADF : read_all(s, &table.count);

	if (r < 0) {
		read_failed(sample);
		return r;
	}
	silent = stream_source_take(s, now_ns, &table, sample, s->silent);
	for (size_t i = 0; i < silent; i++)
		bpf_map_delete_elem(s->fd, &s->key[s->silent[i]]);
	return 0;
}

/* ---- media or not ---- */

bool stream_source_media(struct stream_source *s, uint64_t now_ns, unsigned int slot, const uint64_t media_datagrams[2])
{
	struct traffic *t = &s->traffic[slot];
	const uint64_t datagrams = media_datagrams[1] - t->datagrams;

	if (media_datagrams[1] < t->datagrams || !t->since_ns) {	/* first look, or the counters started anew */
		t->since_ns = now_ns;
		t->media = media_datagrams[0];
		t->datagrams = media_datagrams[1];
		return t->is_media;
	}
	if (now_ns - t->since_ns < STREAM_SOURCE_TRAFFIC_NS)
		return t->is_media;
	if (datagrams)
		t->is_media = (media_datagrams[0] - t->media) * 2 >= datagrams;
	t->since_ns = now_ns;
	t->media = media_datagrams[0];
	t->datagrams = media_datagrams[1];
	return t->is_media;
}

void stream_source_forget(struct stream_source *s, unsigned int slot)
{
	s->ever[slot] = false;
	s->traffic[slot] = (struct traffic){ 0 };
}
