/* SPDX-License-Identifier: GPL-2.0-or-later */
/* world.h - a host by hand for the built-in rules: readers that wait, streams that lose, counters that grow;
 * fed to the real engine at 250 ms ticks through tests/decide/feed.h. The model is the compiled-in
 * configuration, read by config_read().
 *
 * A stall is what a reader that can not run looks like: what arrives during it is read at its end, in order.
 * Packets come evenly, at most 1000 steps a second for each reader (beyond that a step stands for several
 * packets). */
#ifndef TEST_WORLD_H
#define TEST_WORLD_H

#include "../decide/feed.h"

#include <stdlib.h>
#include <unistd.h>

#include "config_file.h"

#define NEVER UINT64_MAX
#define WORLD_READERS 64
#define WORLD_STREAMS 200

struct world_reader {
	uint64_t arrived_ns, unread_ns; /* next arrival that is not counted; next that is not read */
	uint64_t begin_ns, end_ns;	/* of the current or next stall */
	uint32_t slot[HIST_COARSE_SLOTS];
};

/* What goes on, as a test sets it; the target "sfu" of profile media unless said otherwise. */
struct world {
	unsigned int pps, readers, bad; /* packets/s of all readers together; the first `bad` readers stall */
	uint64_t fine_ns;		/* dwell and run-queue wait without a stall */
	uint64_t wait_ns;		/* length of a stall of the lasting kind, 0: none */
	double duty;			/* share of the time in stalls, 0..1 */
	bool runq;			/* the run queue shows the stalls */
	bool stuck;			/* nothing is read any more */
	unsigned int streams, lossy, late;
	double loss, jitter_ms, stream_pps;
	double busy, steal; /* of the host's CPUs, 0..1 */
	uint64_t softirq_ns;
	double rcvbuf_drops, memory_drops, nic_drops; /* share of arrivals */
	/* state */
	struct world_reader reader[WORLD_READERS];
	struct sample_stream stream[WORLD_STREAMS];
	struct sample_reader rows[WORLD_READERS];
	double owed[8]; /* fractions of counts */
	uint64_t random;
	uint64_t mark_ns;  /* world_mark() */
	char events[1024]; /* "fire/rule" and so on since the mark, hook events left out */
};
static struct world world;

static inline double world_random(void) /* xorshift64, [0, 1) */
{
	world.random ^= world.random << 13;
	world.random ^= world.random >> 7;
	world.random ^= world.random << 17;
	return (double)(world.random >> 11) / 9007199254740992.0;
}

/* The whole part of what has been owed so far. */
static inline uint64_t world_part(int what, double more)
{
	const double all = world.owed[what] + more;
	const uint64_t whole = (uint64_t)all;

	world.owed[what] = all - (double)whole;
	return whole;
}

/* ---- model ---- */

/* Built-ins and this text. */
static inline void world_read(const char *text)
{
	char path[] = "/tmp/dwelld-rules-XXXXXX";
	static struct diag d;
	const int fd = mkstemp(path);
	int r;

	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	memset(&d, 0, sizeof(d));
	r = config_read(path, NULL, &d, &feed.model);
	unlink(path);
	cr_assert_eq(r, 0, "%s", d.count ? d.entry[0].text : "no message");
}

#define WORLD_SFU "targets = ( { name = \"sfu\"; unit = \"sfu.service\"; profile = \"media\"; } );"

/* A new engine, the same model, healthy media: 500 packets/s, one reader, 10 streams. */
static inline void world_begin(uint64_t seed)
{
	engine_free(feed.engine);
	memset((char *)&feed + sizeof(feed.model), 0, sizeof(feed) - sizeof(feed.model));
	memset(&world, 0, sizeof(world));
	world.random = seed * 0x9e3779b97f4a7c15ULL | 1;
	feed_start();
	world.pps = 500;
	world.readers = 1;
	world.fine_ns = 60 * US;
	world.streams = 10;
	world.stream_pps = 50;
	world.busy = 0.3;
	world.softirq_ns = 20 * US;
	feed.sample.target[SFU].media = feed.sample.target[SFU].rtp_ever = true;
	feed.sample.now_ns += SEC;
	for (int i = 0; i < WORLD_READERS; i++) {
		struct world_reader *r = &world.reader[i];

		r->arrived_ns = r->unread_ns = feed.sample.now_ns + (uint64_t)(world_random() * 20e6);
		r->begin_ns = r->end_ns = NEVER;
		world.rows[i] = (struct sample_reader){
			.id = 100U + (uint64_t)i, .tid = 5000U + (uint32_t)i, .target = SFU, .slot = r->slot};
	}
	for (int i = 0; i < WORLD_STREAMS; i++)
		world.stream[i] = (struct sample_stream){
			.id = 1U + (uint64_t)i, .target = SFU, .ssrc = (uint32_t)i, .jitter_known = true};
}

/* ---- readers ---- */

static inline bool world_is_bad(int reader)
{
	return reader < (int)world.bad;
}

/* The stall after the one that ended at from_ns, of the lasting kind: the pause before it and its length vary
 * by a third. */
static inline void world_next_stall(struct world_reader *r, uint64_t from_ns)
{
	const double length = (double)world.wait_ns * (0.85 + 0.3 * world_random());
	const double pause =
		(double)world.wait_ns * (1 - world.duty) / world.duty * (0.7 + 0.6 * world_random());

	r->begin_ns = from_ns + (uint64_t)pause;
	r->end_ns = r->begin_ns + (uint64_t)length;
}

/* One reader reads a step of n packets. */
static inline void world_packet(struct world_reader *r, uint64_t dwell_ns, unsigned int n)
{
	struct sample_target *t = &feed.sample.target[SFU];

	t->dist[SAMPLE_DIST_DWELL].slot[hist_slot(dwell_ns)] += n;
	t->counter[SAMPLE_READ] += n;
	r->slot[hist_coarse_slot(dwell_ns)] += n;
}

/* Everything that one reader gets and reads until now_ns. */
static inline void world_read_packets(int reader, uint64_t now_ns)
{
	struct world_reader *r = &world.reader[reader];
	struct sample_target *t = &feed.sample.target[SFU];
	const unsigned int pps = world.pps / world.readers ? world.pps / world.readers : 1;
	const unsigned int weight = (pps + 999) / 1000;
	const uint64_t step_ns = SEC * weight / pps;

	if (world.wait_ns && world_is_bad(reader) && r->end_ns == NEVER)
		world_next_stall(r, r->unread_ns);
	for (; r->arrived_ns <= now_ns; r->arrived_ns += step_ns)
		t->counter[SAMPLE_ENQUEUED] += weight;
	while (!world.stuck && r->unread_ns <= now_ns) {
		uint64_t dwell_ns = world.fine_ns + (uint64_t)(world_random() * (double)world.fine_ns);

		if (r->end_ns <= r->unread_ns) { /* a stall is over */
			if (world.runq)
				feed_runq(SFU, r->end_ns - r->begin_ns, 1);
			if (world.wait_ns && world_is_bad(reader))
				world_next_stall(r, r->end_ns);
			else
				r->begin_ns = r->end_ns = NEVER;
			continue;
		}
		if (r->unread_ns >= r->begin_ns) {
			if (r->end_ns > now_ns)
				break;
			dwell_ns = r->end_ns - r->unread_ns;
		}
		world_packet(r, dwell_ns, weight);
		r->unread_ns += step_ns;
	}
	feed_runq(SFU, world.fine_ns / 2, 1 + pps / 8);
	if (r->unread_ns <= now_ns) {
		t->queued += (now_ns - r->unread_ns) / step_ns * weight + weight;
		if (now_ns - r->unread_ns > t->oldest_ns)
			t->oldest_ns = now_ns - r->unread_ns;
	}
}

/* One stall of the bad readers (all if none), beginning now. */
static inline void world_stall(uint64_t ns, bool runq)
{
	world.runq = runq;
	for (int i = 0; i < (int)world.readers; i++) {
		if (world.bad && !world_is_bad(i))
			continue;
		world.reader[i].begin_ns = feed.sample.now_ns - feed_step();
		world.reader[i].end_ns = world.reader[i].begin_ns + ns;
	}
}

/* ---- streams and host ---- */

static inline void world_stream(int i, uint64_t now_ns)
{
	struct sample_stream *s = &world.stream[i];
	struct sample_target *t = &feed.sample.target[SFU];
	const double loss = i < (int)world.lossy ? world.loss : 0.0005;
	const double jitter_ms = i < (int)world.late ? world.jitter_ms : 2;
	const double due = world.stream_pps * (double)feed_step() / 1e9 + world_random() - 0.5;
	const unsigned int n = due > 0 ? (unsigned int)(due + 0.5) : 0;
	unsigned int got = 0;

	for (unsigned int k = 0; k < n; k++)
		got += world_random() >= loss;
	s->expected += n;
	s->received += got;
	t->counter[SAMPLE_RTP_EXPECTED] += n;
	t->counter[SAMPLE_RTP_RECEIVED] += got;
	if (got)
		s->last_ns = now_ns;
	/* RFC 3550's smoothing, to the quarter of a second, and its noise */
	for (unsigned int k = 0; k < got; k++)
		s->jitter_ns = (uint64_t)((double)s->jitter_ns * 15 / 16 +
					  jitter_ms * 1e6 * (0.7 + 0.6 * world_random()) / 16);
}

static inline void world_host(void)
{
	struct sample *s = &feed.sample;
	struct sample_target *t = &s->target[SFU];
	const double arrived = world.pps * (double)feed_step() / 1e9;
	const uint64_t rcvbuf = world_part(0, arrived * world.rcvbuf_drops);

	s->host_counter[SAMPLE_HOST_CPU_TOTAL] += 100;
	s->host_counter[SAMPLE_HOST_NIC_PACKETS] += 100;
	s->host_counter[SAMPLE_HOST_CPU_BUSY] += world_part(1, 100 * world.busy);
	s->host_counter[SAMPLE_HOST_CPU_STEAL] += world_part(2, 100 * world.steal);
	s->host_counter[SAMPLE_HOST_NIC_DROPS] += world_part(3, 100 * world.nic_drops);
	t->counter[SAMPLE_DROPS_RCVBUF] += rcvbuf;
	t->counter[SAMPLE_DROPS_SERVER] += rcvbuf + world_part(4, arrived * world.memory_drops);
	for (int d = 0; d < SAMPLE_HOST_DIST_COUNT; d++) {
		s->host_dist[d].moved = true;
		s->host_dist[d].slot[hist_slot(world.softirq_ns)] += 1 + world.pps / 16;
		s->host_dist[d].slot[hist_slot(20 * US)] += 2;
	}
}

static inline void world_note(const struct engine_out *out)
{
	for (uint32_t i = 0; i < out->event_count; i++) {
		const struct event *ev = &out->event[i];
		const size_t n = strlen(world.events);

		if (ev->kind < EVENT_HOOK_ASKED)
			snprintf(world.events + n, sizeof(world.events) - n, "%s%s/%s", n ? " " : "",
				 event_kind_name(ev->kind), ev->rule);
	}
}

/* ---- time ---- */

static inline void world_tick(void)
{
	struct sample *s = &feed.sample;
	struct sample_target *t = &s->target[SFU];
	const uint64_t now_ns = s->now_ns;

	t->queued = t->oldest_ns = 0;
	for (int i = 0; i < (int)world.readers; i++)
		world_read_packets(i, now_ns);
	for (int i = 0; i < (int)world.streams; i++)
		world_stream(i, now_ns);
	world_host();
	s->stream = world.stream;
	s->stream_count = world.streams;
	s->reader = world.rows;
	s->reader_count = world.readers;
	engine_tick(feed.engine, s, &feed.out);
	s->gap = false;
	if (feed.out.event_count || feed.out.order_count) /* it copies a lot */
		feed_note(&feed.out);
	world_note(&feed.out);
	s->now_ns += feed_step();
	s->wall_us += feed_step() / 1000;
}

static inline void world_run(double seconds)
{
	for (int i = 0; i < feed_ticks(seconds); i++)
		world_tick();
}

/* From here on count seconds, and forget what was told. */
static inline void world_mark(void)
{
	world.mark_ns = feed.sample.now_ns;
	world.events[0] = '\0';
}

static inline double world_since(void)
{
	return (double)(feed.sample.now_ns - world.mark_ns) / 1e9;
}

/* Until the event "fire/rule" was told: seconds since the mark, or -1 after limit seconds. */
static inline double world_until(const char *event, double limit)
{
	while (world_since() <= limit) {
		if (strstr(world.events, event))
			return world_since();
		world_tick();
	}
	return -1;
}

/* Name of the first cause of a slot; "" for none. */
static inline const char *world_cause(int slot)
{
	struct engine_target_view v;

	cr_assert(engine_target(feed.engine, slot, &v));
	return v.cause_count ? engine_model(feed.engine)->rule[v.cause[0]].name : "";
}

#define expect_verdict(slot, want) \
	cr_expect_eq(feed_verdict(slot), want, "verdict of %d is %s", slot, verdict_name(feed_verdict(slot)))
#define expect_host(want) \
	cr_expect_eq(engine_verdict(feed.engine), want, "verdict is %s", \
		     verdict_name(engine_verdict(feed.engine)))
#define expect_cause(slot, want) \
	cr_expect_str_eq(world_cause(slot), want, "%s; told: %s", world_cause(slot), world.events)
#define expect_told(want) cr_expect_str_eq(world.events, want, "told: %s", world.events)
#define expect_within(event, limit) \
	do { \
		const double took = world_until(event, limit); \
		cr_expect(took >= 0, "no %s within %g s; told: %s", event, (double)(limit), world.events); \
		printf("   %-28s after %5.2f s\n", event, took); \
	} while (0)
#endif
