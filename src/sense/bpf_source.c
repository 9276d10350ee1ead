/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bpf_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#define MEND_GUARD_NS 1000000000ULL
#define READER_STALE_NS 15000000000ULL	/* longer than the default window: its samples have left it */

struct bpf_source {
	const struct probes *probes;
	unsigned int cpus, slots;
	int hists_fd, host_hists_fd, counts_fd, lost_fd;
	struct map_socket *sockets;
	struct map_reader *readers;
	struct map_control *control;
	unsigned int socket_rows, reader_rows;	/* rows that were ever used, from 0 */
	uint64_t *cell;				/* one value of the largest kind for all CPUs */
	uint64_t *batch;			/* counters of all slots for all CPUs */
	__u32 batch_key[SAMPLE_TARGETS];
	bool no_batch;
	uint64_t moved[SAMPLE_TARGETS][SAMPLE_DIST_COUNT];
	uint64_t host_moved[SAMPLE_HOST_DIST_COUNT];
	struct sample_reader reader[MAP_READERS];
	uint64_t per_slot[SAMPLE_TARGETS][MAP_COUNTS];	/* as last read */
	uint64_t mended;	/* healed by bpf_source_owner: the kernel's counter does not know */
	struct conserve conserve;
};

static void *map_rows(const struct probes *p, const char *name, size_t bytes)
{
	int fd = probes_map(p, name);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

int bpf_source_new(const struct probes *p, struct bpf_source **ret)
{
	struct bpf_source *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->probes = p;
	b->cpus = probes_cpus(p);
	b->slots = probes_slots(p);
	b->hists_fd = probes_map(p, "hists");
	b->host_hists_fd = probes_map(p, "host_hists");
	b->counts_fd = probes_map(p, "counts");
	b->lost_fd = probes_map(p, "lost");
	b->cell = calloc(b->cpus, sizeof(struct map_hist));
	b->batch = calloc((size_t)b->cpus * b->slots, sizeof(struct map_counts));
	b->sockets = map_rows(p, "sockets", MAP_SOCKETS * sizeof(struct map_socket));
	b->readers = map_rows(p, "readers", MAP_READERS * sizeof(struct map_reader));
	b->control = map_rows(p, "control", sizeof(struct map_control));
	if (!b->cell || !b->batch || !b->sockets || !b->readers || !b->control) {
		bpf_source_free(b);
		return -ENOMEM;
	}
	*ret = b;
	return 0;
}

void bpf_source_free(struct bpf_source *b)
{
	if (!b)
		return;
	if (b->sockets)
		munmap(b->sockets, MAP_SOCKETS * sizeof(struct map_socket));
	if (b->readers)
		munmap(b->readers, MAP_READERS * sizeof(struct map_reader));
	if (b->control)
		munmap(b->control, sizeof(struct map_control));
	free(b->cell);
	free(b->batch);
	free(b);
}

static bool read_cpus(struct bpf_source *b, int fd, __u32 key, size_t words, uint64_t *ret)
{
	memset(ret, 0, words * sizeof(*ret));
	if (fd < 0 || bpf_map_lookup_elem(fd, &key, b->cell) < 0)
		return false;
	for (unsigned int c = 0; c < b->cpus; c++)
		for (size_t i = 0; i < words; i++)
			ret[i] += b->cell[c * words + i];
	return true;
}

/* All counters of all slots in one call (5.13); before that, or when it is refused, slot by slot. */
static bool read_counts(struct bpf_source *b)
{
	__u32 at, count = b->slots;

	if (b->no_batch || b->counts_fd < 0)
		return false;
	if (bpf_map_lookup_batch(b->counts_fd, NULL, &at, b->batch_key, b->batch, &count, NULL) < 0 && errno != ENOENT) {
		b->no_batch = true;
		return false;
	}
	memset(b->per_slot, 0, sizeof(b->per_slot));
	for (__u32 i = 0; i < count; i++)
		for (unsigned int c = 0; b->batch_key[i] < SAMPLE_TARGETS && c < b->cpus; c++)
			for (unsigned int k = 0; k < MAP_COUNTS; k++)
				b->per_slot[b->batch_key[i]][k] += b->batch[((size_t)i * b->cpus + c) * MAP_COUNTS + k];
	return true;
}

static bool attached(const struct sample *s, const char *signal)
{
	for (uint32_t i = 0; i < s->probe_count; i++)
		if (!strcmp(s->probe[i].signal, signal))
			return s->probe[i].attached;
	return false;
}

static void known_if(struct sample_target *t, bool known, uint32_t bits)
{
	t->counter_known = known ? t->counter_known | bits : t->counter_known & ~bits;
}

static void read_target(struct bpf_source *b, unsigned int slot, bool counted, struct sample *s)
{
	static const enum map_count dist_count[] = { MAP_COUNT_DIST_DWELL, MAP_COUNT_DIST_RUNQ };
	const bool dist_known[] = { attached(s, "dwell"), attached(s, "runq") }, drops = attached(s, "drops");
	struct sample_target *t = &s->target[slot];
	uint64_t *n = b->per_slot[slot];

	if (!counted && !read_cpus(b, b->counts_fd, slot, MAP_COUNTS, n))
		return;
	for (unsigned int d = 0; d < SAMPLE_DIST_COUNT; d++) {
		t->dist[d].known = dist_known[d];
		t->dist[d].moved = n[dist_count[d]] != b->moved[slot][d];
		if (t->dist[d].moved)
			read_cpus(b, b->hists_fd, slot * MAP_DISTS + d, HIST_SLOTS, t->dist[d].slot);
		b->moved[slot][d] = n[dist_count[d]];
	}
	t->counter[SAMPLE_ENQUEUED] = n[MAP_COUNT_ENQUEUED];
	t->counter[SAMPLE_READ] = n[MAP_COUNT_DIST_DWELL];
	t->counter[SAMPLE_DISCARDED] = n[MAP_COUNT_DISCARDED];
	t->counter[SAMPLE_DROPS_RCVBUF] = n[MAP_COUNT_DROP_RCVBUF];
	t->counter[SAMPLE_DROPS_SERVER] = n[MAP_COUNT_DROP_RCVBUF] + n[MAP_COUNT_DROP_MEMORY] + n[MAP_COUNT_DROP_SERVER];
	t->counter[SAMPLE_DROPS_NETWORK] = n[MAP_COUNT_DROP_NETWORK];
	known_if(t, dist_known[0], 1U << SAMPLE_ENQUEUED | 1U << SAMPLE_READ | 1U << SAMPLE_DISCARDED);
	known_if(t, drops, 1U << SAMPLE_DROPS_RCVBUF | 1U << SAMPLE_DROPS_SERVER | 1U << SAMPLE_DROPS_NETWORK);
}

static void read_host(struct bpf_source *b, struct sample *s)
{
	bool known = attached(s, "softirq");
	uint64_t sum;

	for (unsigned int d = 0; d < SAMPLE_HOST_DIST_COUNT; d++) {
		struct sample_hist *h = &s->host_dist[d];

		h->known = known && read_cpus(b, b->host_hists_fd, d, HIST_SLOTS, h->slot);
		sum = 0;
		for (unsigned int i = 0; h->known && i < HIST_SLOTS; i++)
			sum += h->slot[i];
		h->moved = sum != b->host_moved[d];
		b->host_moved[d] = sum;
	}
}

/* Rows come from a stack, low ones first: the first that was never used ends the search. */
static void rows_used(struct bpf_source *b)
{
	if (b->socket_rows < 1)
		b->socket_rows = 1;
	while (b->socket_rows < MAP_SOCKETS && b->sockets[b->socket_rows].created_ts)
		b->socket_rows++;
	if (b->reader_rows < 1)
		b->reader_rows = 1;
	while (b->reader_rows < MAP_READERS && b->readers[b->reader_rows].last_ts)
		b->reader_rows++;
}

static uint64_t waiting(const struct map_socket *row)
{
	int64_t n = (int64_t)(row->enqueued - row->read - row->unqueued - row->healed);

	return n > 0 ? (uint64_t)n : 0;
}

static void read_socket(const struct map_socket *row, uint64_t now_ns, uint32_t epoch, struct sample_target *t)
{
	uint64_t head = row->head_ts, age = head && now_ns > head ? now_ns - head : 0;

	t->sockets++;
	t->queued += waiting(row);
	if (row->backlog)
		t->queued_known = false;
	/* some sockets are opened and never read on purpose: they say something only where an operator named the target */
	if (age > t->oldest_ns && (row->last_read_ts || t->configured))
		t->oldest_ns = age;
	if (row->rcvbuf) {
		if (!t->rcvbuf_known || row->rcvbuf < t->rcvbuf_bytes) {
			t->rcvbuf_bytes = row->rcvbuf;
			t->rcvbuf_by_application = row->rcvbuf_locked;
		}
		t->rcvbuf_known = true;
	}
	if (row->fill_epoch == epoch || row->fill_epoch + 1 == epoch)
		if (row->fill_permille / 1000.0 > t->fill)
			t->fill = row->fill_permille / 1000.0;
}

static void read_sockets(struct bpf_source *b, uint64_t now_ns, struct sample *s)
{
	bool known = attached(s, "dwell");
	uint32_t epoch = b->control->epoch;

	for (unsigned int i = 0; i < SAMPLE_TARGETS; i++) {
		struct sample_target *t = &s->target[i];

		t->sockets = 0;
		t->queued = t->oldest_ns = 0;
		t->fill = 0;
		t->rcvbuf_known = false;
		t->oldest_known = t->queued_known = known;
		t->fill_known = known;
	}
	for (unsigned int i = 1; i < b->socket_rows; i++) {
		const struct map_socket *row = &b->sockets[i];

		if (row->cookie && row->target < b->slots)
			read_socket(row, now_ns, epoch, &s->target[row->target]);
	}
	b->control->epoch = epoch + 1;
}

static void read_readers(struct bpf_source *b, uint64_t now_ns, struct sample *s)
{
	s->reader = b->reader;
	s->reader_count = 0;
	for (unsigned int i = 1; i < b->reader_rows; i++) {
		const struct map_reader *row = &b->readers[i];

		if (!row->id || row->target >= b->slots || now_ns > row->last_ts + READER_STALE_NS)
			continue;
		b->reader[s->reader_count++] = (struct sample_reader){ .id = row->id, .tid = row->tid,
			.target = (uint16_t)row->target, .slot = row->slot };
	}
}

static void read_lost(struct bpf_source *b, struct sample *s)
{
	static const char *const name[MAP_LOSTS] = { "socket_rows", "reader_rows", "reader_events", "storage", "collisions",
						     "negative", "streams" };
	uint64_t n[MAP_LOSTS];

	s->lost_count = 0;
	if (!read_cpus(b, b->lost_fd, 0, MAP_LOSTS, n))
		return;
	for (unsigned int i = 0; i < MAP_LOSTS; i++) {
		snprintf(s->lost[i].name, sizeof(s->lost[i].name), "%s", name[i]);
		s->lost[i].count = n[i];
	}
	s->lost_count = MAP_LOSTS;
}

static void check_conservation(struct bpf_source *b, uint64_t now_ns)
{
	struct conserve_totals t = { 0 };

	for (unsigned int slot = 0; slot < b->slots; slot++) {
		const uint64_t *n = b->per_slot[slot];

		t.enqueued += n[MAP_COUNT_ENQUEUED];
		t.read += n[MAP_COUNT_DIST_DWELL];
		t.unqueued += n[MAP_COUNT_UNQUEUED];
		t.discarded += n[MAP_COUNT_DISCARDED];
		t.healed += n[MAP_COUNT_HEALED];
		t.unstamped += n[MAP_COUNT_UNSTAMPED];
	}
	t.healed += b->mended;
	for (unsigned int i = 0; i < b->socket_rows; i++)
		if (b->sockets[i].cookie || !i)
			t.waiting += waiting(&b->sockets[i]);
	conserve_step(&b->conserve, &t, now_ns);
}

const struct conserve *bpf_source_conserve(const struct bpf_source *b)
{
	return &b->conserve;
}

void bpf_source_read(struct bpf_source *b, uint64_t now_ns, struct sample *s)
{
	bool counted = read_counts(b);

	rows_used(b);
	for (unsigned int slot = SAMPLE_OTHER; slot < b->slots; slot++)
		if (s->target[slot].used)
			read_target(b, slot, counted, s);
	check_conservation(b, now_ns);
	read_host(b, s);
	read_sockets(b, now_ns, s);
	read_readers(b, now_ns, s);
	read_lost(b, s);
	s->map_bytes = probes_map_bytes(b->probes);
}

static uint64_t silent_since(const struct map_socket *row)
{
	return row->last_read_ts > row->created_ts ? row->last_read_ts : row->created_ts;
}

/* Only the socket itself knows: nobody read it yet; or it looks old although nothing comes or goes; or datagrams come, are
 * refused and none is read: it may be full of what was there before us. */
static bool doubtful(const struct map_socket *row, uint64_t now_ns)
{
	if (!row->tgid && row->enqueued)
		return true;
	if (silent_since(row) + MEND_GUARD_NS > now_ns)
		return false;
	return (row->head_ts && row->head_ts + MEND_GUARD_NS < now_ns) || row->last_enqueue_ts > row->last_read_ts;
}

bool bpf_source_place(struct bpf_source *b, struct targets *t, uint64_t now_ns)
{
	bool ports = targets_have_ports(t), unowned = false;
	int slot;

	rows_used(b);
	targets_ports_begin(t);
	for (unsigned int i = 1; i < b->socket_rows; i++) {
		struct map_socket *row = &b->sockets[i];

		if (!row->cookie)
			continue;
		unowned = unowned || doubtful(row, now_ns);
		slot = row->tgid ? targets_slot(t, row->tgid) : -1;
		if (row->port && (ports || row->forced_target)) {	/* a reload may have taken the last ports away */
			row->forced_target = targets_of_port(t, row->tgid, row->port);
			if (row->forced_target)
				slot = (int)row->forced_target;
		}
		if (slot > 0)	/* its next read would say so too, but drops come before it */
			row->target = (__u32)slot;
	}
	return unowned;
}

static struct map_socket *row_of(const struct bpf_source *b, const struct map_owner *o)
{
	uint64_t key = probes_sock_hash(b->probes) ? o->address : o->cookie;

	for (unsigned int i = 1; key && i < b->socket_rows; i++)
		if (b->sockets[i].cookie == key)
			return &b->sockets[i];
	return NULL;
}

bool bpf_source_has(const struct bpf_source *b, const struct map_owner *o)
{
	const struct map_socket *row = row_of(b, o);

	return row && row->enqueued;
}

void bpf_source_owner(struct bpf_source *b, const struct map_owner *o, unsigned int slot, uint64_t now_ns)
{
	struct map_socket *row = row_of(b, o);
	uint64_t drift, head;

	if (!row)
		return;
	if (!row->last_read_ts) {
		row->tgid = o->tgid;
		if (!row->forced_target)
			row->target = slot;
	}
	if (o->queued_bytes && !waiting(row) && silent_since(row) + MEND_GUARD_NS < now_ns) {
		/* queued before we watched, and not read since: at least so old */
		row->backlog = 1;
		if (!row->head_ts || row->head_ts > silent_since(row))
			row->head_ts = silent_since(row);
	}
	if (o->queued_bytes || row->last_enqueue_ts + MEND_GUARD_NS > now_ns)
		return;
	head = row->head_ts;
	drift = waiting(row);
	if (drift) {
		__atomic_fetch_add(&row->healed, drift, __ATOMIC_RELAXED);
		b->mended += drift;
	}
	row->backlog = 0;
	if (head && row->last_enqueue_ts + MEND_GUARD_NS <= now_ns)
		__atomic_compare_exchange_n(&row->head_ts, &head, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void bpf_source_generation(struct bpf_source *b)
{
	__atomic_fetch_add(&b->control->generation, 1, __ATOMIC_RELEASE);
}

const struct map_socket *bpf_source_sockets(const struct bpf_source *b)
{
	return b->sockets;
}

void bpf_source_media(const struct bpf_source *b, unsigned int slot, uint64_t ret[2])
{
	ret[0] = b->per_slot[slot][MAP_COUNT_MEDIA];
	ret[1] = b->per_slot[slot][MAP_COUNT_DATAGRAMS];
}

static int port_order(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

void bpf_source_ports(const struct bpf_source *b, unsigned int slot, char *buf, size_t size)
{
	uint16_t port[512];
	unsigned int count = 0;
	size_t n = 0;

	buf[0] = '\0';
	for (unsigned int i = 1; i < b->socket_rows && count < 512; i++)
		if (b->sockets[i].cookie && b->sockets[i].target == slot && b->sockets[i].port)
			port[count++] = b->sockets[i].port;
	qsort(port, count, sizeof(port[0]), port_order);
	for (unsigned int i = 0; i < count;) {
		unsigned int last = i;

		while (last + 1 < count && port[last + 1] <= port[last] + 1)
			last++;
		if (n + 20 > size) {
			snprintf(buf + n, size - n, ",...");
			return;
		}
		if (port[last] == port[i])
			n += (size_t)snprintf(buf + n, size - n, "%s%u", n ? "," : "", port[i]);
		else
			n += (size_t)snprintf(buf + n, size - n, "%s%u-%u", n ? "," : "", port[i], port[last]);
		i = last + 1;
	}
}
