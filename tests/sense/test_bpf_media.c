/* SPDX-License-Identifier: GPL-2.0-or-later */
/* media.bpf.c over real packets on loopback, against a reference that knows nothing of windows, wraps or bit maps. */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bpf_fixture.h"

#define MS 1000000ULL
#define UDP_SEGMENT_OPTION 103	/* not in every libc */
#define UDP_GRO_OPTION 104

static struct fixture f;
static int receiver, sender;
static struct sockaddr_storage to;

static void open_sockets(int family)
{
	struct sockaddr_storage from;

	receiver = fixture_socket(family, &to);
	sender = fixture_socket(family, &from);
	cr_assert_eq(connect(sender, (struct sockaddr *)&to, family == AF_INET6 ? sizeof(struct sockaddr_in6)
									       : sizeof(struct sockaddr_in)), 0);
}

static void setup(void)
{
	static const char *const programs[] = { "media_ingress", NULL };

	fixture_open(&f);
	fixture_load(&f, FIXTURE_MEDIA, programs);
	fixture_attach(&f, "media_ingress");
	open_sockets(AF_INET);
}

static void teardown(void)
{
	close(receiver);
	close(sender);
	fixture_close(&f);
}

TestSuite(media, .init = setup, .fini = teardown, .timeout = 60);

static size_t rtp(uint8_t *p, uint16_t seq, uint32_t time, uint8_t type)
{
	memset(p, 0, 20);
	p[0] = 0x80;
	p[1] = type;
	p[2] = (uint8_t)(seq >> 8);
	p[3] = (uint8_t)seq;
	for (int i = 0; i < 4; i++)
		p[4 + i] = (uint8_t)(time >> (24 - 8 * i));
	memcpy(p + 8, "\x12\x34\x56\x78", 4);
	return 20;
}

/* Sent and read: the datagram has passed the program. */
static void pass(const void *data, size_t size)
{
	uint8_t got[2048];

	cr_assert_eq(send(sender, data, size, 0), (ssize_t)size);
	cr_assert_eq(recv(receiver, got, sizeof(got), 0), (ssize_t)size);
}

static void pass_rtp(uint16_t seq)
{
	uint8_t p[32];

	pass(p, rtp(p, seq, 0, 96));
}

static bool stream(struct map_stream *ret)
{
	const struct map_stream_key key = { .cookie = fixture_cookie(receiver), .ssrc = 0x12345678 };

	return !bpf_map_lookup_elem_flags(fixture_map(&f, "streams"), &key, ret, BPF_F_LOCK);
}

static int64_t lost(const struct map_stream *s)
{
	return (int64_t)(s->past_expected + s->highest - s->base + 1) - (int64_t)s->received;
}

static int stream_count(void)
{
	const uint64_t cookie = fixture_cookie(receiver);
	struct map_stream_key key, next;
	int n = 0, fd = fixture_map(&f, "streams");

	for (int r = bpf_map_get_next_key(fd, NULL, &next); !r; r = bpf_map_get_next_key(fd, &key, &next)) {
		key = next;
		n += key.cookie == cookie;
	}
	return n;
}

Test(media, c69_wrap_loss_duplicate_and_reorder)
{
	static const uint16_t seq[] = { 65533, 65534, 65535, 0, 2, 3, 2, 4, 5, 10, 6, 7, 8, 9 };
	struct map_stream s;

	for (size_t i = 0; i < sizeof(seq) / sizeof(seq[0]); i++) {
		pass_rtp(seq[i]);
		if (i > 0) {
			cr_assert(stream(&s));
			cr_expect(lost(&s) >= 0 && lost(&s) < 10, "after %u: lost %ld", seq[i], (long)lost(&s));
		}
	}
	cr_expect_eq(lost(&s), 1);
	cr_expect_eq(s.duplicates, 1);
	cr_expect_eq(s.reorder, 4);
	cr_expect_eq(s.received, 12);	/* of 65534 .. 10: the first packet is probation */
	cr_expect_eq(s.highest - s.base + 1, 13);
}

/* The reference: numbers are 64 bits wide because the sender's are, and what came is a set. */
struct reference {
	uint8_t came[1 << 18];
	uint64_t base, highest, received, duplicates, late;
	bool started;
};

static void reference_take(struct reference *r, uint64_t wide, bool after_its_neighbour)
{
	if (!r->started) {
		if (!after_its_neighbour)
			return;
		r->started = true;
		r->base = r->highest = wide;
	} else if (r->came[wide]) {
		r->duplicates++;
		return;
	} else if (wide < r->highest) {
		r->late++;
	}
	if (wide > r->highest)
		r->highest = wide;
	r->came[wide] = 1;
	r->received += wide >= r->base;
}

static unsigned int roll(unsigned int *seed, unsigned int below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % below;
}

/* 3 % lost, 2 % doubled up to 95 later, 3 % late by up to 95; the 16-bit numbers wrap twice. */
Test(media, random_streams_agree_with_the_reference)
{
	enum { PACKETS = 100000, LATER = 128 };
	struct reference *r = calloc(1, sizeof(*r));
	uint64_t held[LATER] = { 0 }, previous = 0;
	unsigned int seed = 20261201;
	struct map_stream s;

	cr_assert_not_null(r);
	for (uint64_t wide = 60000; wide < 60000 + PACKETS; wide++) {
		const unsigned int fate = roll(&seed, 100);
		uint64_t out[2];
		int n = 0;

		if (wide < 60004)
			out[n++] = wide;
		else if (fate < 3)
			;
		else if (fate < 6)
			held[(wide + 1 + roll(&seed, 95)) % LATER] = wide;
		else
			out[n++] = wide;
		if (fate >= 98)
			held[(wide + 1 + roll(&seed, 95)) % LATER] = wide;
		if (held[wide % LATER])
			out[n++] = held[wide % LATER];
		held[wide % LATER] = 0;
		for (int i = 0; i < n; i++) {
			pass_rtp((uint16_t)out[i]);
			reference_take(r, out[i], out[i] == previous + 1);
			previous = out[i];
		}
	}
	cr_assert(stream(&s));
	cr_expect_eq(s.past_expected, 0);
	cr_expect_eq(s.highest - s.base, r->highest - r->base);
	cr_expect_eq(s.received, r->received, "%lu, reference %lu", (unsigned long)s.received, (unsigned long)r->received);
	cr_expect_eq(s.duplicates, r->duplicates, "%lu, reference %lu", (unsigned long)s.duplicates,
		     (unsigned long)r->duplicates);
	cr_expect_eq(s.reorder, r->late);
	cr_expect_gt(r->late, 1000);
	cr_expect_gt(r->duplicates, 1000);
	cr_expect_gt(lost(&s), 2000);
	free(r);
}

Test(media, a_source_that_starts_anew_keeps_the_loss_of_its_past)
{
	static const uint16_t seq[] = { 10, 11, 12, 14, 30000, 15, 16, 40000, 40001, 40002, 40004 };
	struct map_stream s;

	for (size_t i = 0; i < sizeof(seq) / sizeof(seq[0]); i++)
		pass_rtp(seq[i]);
	cr_assert(stream(&s));
	/* 13 is lost; 30000 was a stray; the new run starts at 40001, and loses 40003 */
	cr_expect_eq(s.past_expected, 6);	/* 11 .. 16 */
	cr_expect_eq(s.base & 0xffff, 40001);
	cr_expect_eq(lost(&s), 2);
	cr_expect_eq(s.received, 8);
}

Test(media, one_packet_that_looks_like_rtp_makes_no_stream)
{
	unsigned int seed = 7;
	uint8_t p[64];

	for (int i = 0; i < 3000; i++) {
		for (size_t k = 0; k < sizeof(p); k++)
			p[k] = (uint8_t)roll(&seed, 256);
		p[0] = (uint8_t)(0x80 | (p[0] & 0x3f));
		p[1] = 96;
		pass(p, sizeof(p));
	}
	cr_expect_eq(stream_count(), 0);
	pass_rtp(100);
	pass_rtp(102);	/* not in sequence */
	cr_expect_eq(stream_count(), 0);
	pass_rtp(103);
	cr_expect_eq(stream_count(), 1);
}

Test(media, what_counts_as_media)
{
	static const struct { uint8_t bytes[20]; size_t size; int media; const char *what; } cases[] = {
		{ { 0x80, 96, 0, 1 }, 20, 1, "RTP" },
		{ { 0xbf, 0xe0, 0, 1 }, 20, 1, "RTP with marker, padding, extension, 15 CSRC" },
		{ { 0x80, 96, 0, 1 }, 12, 1, "RTP without payload" },
		{ { 0x80, 96, 0, 1 }, 11, 0, "too short for RTP" },
		{ { 0x80, 200, 0, 1 }, 8, 1, "RTCP" },
		{ { 0x80, 200, 0, 1 }, 7, 0, "too short for RTCP" },
		{ { 0x80, 70, 0, 1 }, 20, 0, "no payload type" },
		{ { 0x00, 0x01, 0, 0, 0x21, 0x12, 0xa4, 0x42 }, 20, 1, "STUN" },
		{ { 0x00, 0x01, 0, 0, 0x21, 0x12, 0xa4, 0x43 }, 20, 0, "no magic cookie" },
		{ { 0x16, 0xfe, 0xfd }, 20, 0, "DTLS" },
		{ { 0x40 }, 20, 0, "QUIC" },
		{ { 0xc0, 96 }, 20, 0, "version 3" },
		{ { 0 }, 0, 0, "empty" },
	};
	uint64_t media, datagrams;

	pass("x", 1);
	fixture_own(&f, receiver);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		media = fixture_count(&f, FIXTURE_SLOT, MAP_COUNT_MEDIA);
		datagrams = fixture_count(&f, FIXTURE_SLOT, MAP_COUNT_DATAGRAMS);
		pass(cases[i].bytes, cases[i].size);
		cr_expect_eq(fixture_count(&f, FIXTURE_SLOT, MAP_COUNT_MEDIA) - media, cases[i].media, "%s", cases[i].what);
		cr_expect_eq(fixture_count(&f, FIXTURE_SLOT, MAP_COUNT_DATAGRAMS) - datagrams, 1, "%s", cases[i].what);
	}
}

static void expect_ten_of_a_stream(void)
{
	struct map_stream s;

	cr_assert(stream(&s));
	cr_expect_eq(s.received, 9);
	cr_expect_eq(lost(&s), 0);
}

Test(media, ipv6_with_extension_headers)
{
	static const uint8_t options[8] = { 0, 0, 1, 4, 0, 0, 0, 0 };	/* PadN */

	close(receiver);
	close(sender);
	open_sockets(AF_INET6);
	cr_assert_eq(setsockopt(sender, IPPROTO_IPV6, IPV6_HOPOPTS, options, sizeof(options)), 0);
	cr_assert_eq(setsockopt(sender, IPPROTO_IPV6, IPV6_DSTOPTS, options, sizeof(options)), 0);
	for (uint16_t seq = 1; seq <= 10; seq++)
		pass_rtp(seq);
	expect_ten_of_a_stream();
}

/* The payload lies in page fragments, not behind the headers. */
Test(media, payload_in_page_fragments)
{
	uint8_t p[512] = { 0 }, got[512];
	int pipes[2];

	cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
	for (uint16_t seq = 1; seq <= 10; seq++) {
		rtp(p, seq, 0, 96);
		cr_assert_eq(write(pipes[1], p, sizeof(p)), (ssize_t)sizeof(p));
		cr_assert_eq(splice(pipes[0], NULL, sender, NULL, sizeof(p), 0), (ssize_t)sizeof(p));
		cr_assert_eq(recv(receiver, got, sizeof(got), 0), (ssize_t)sizeof(p));
	}
	expect_ten_of_a_stream();
	close(pipes[0]);
	close(pipes[1]);
}

/* One send of ten segments; with UDP_GRO the socket gets them as one datagram, without it as ten. */
static void segments(bool merged)
{
	const int size = 20, on = 1;
	uint8_t p[200], got[2048];
	uint64_t before;
	size_t read = 0;

	pass("x", 1);
	fixture_own(&f, receiver);
	before = fixture_count(&f, FIXTURE_SLOT, MAP_COUNT_MEDIA);
	if (setsockopt(sender, IPPROTO_UDP, UDP_SEGMENT_OPTION, &size, sizeof(size)))
		cr_skip_test("this kernel has no UDP_SEGMENT");
	if (merged)
		cr_assert_eq(setsockopt(receiver, IPPROTO_UDP, UDP_GRO_OPTION, &on, sizeof(on)), 0);
	for (uint16_t seq = 1; seq <= 10; seq++)
		rtp(p + (seq - 1) * 20, seq, 0, 96);
	cr_assert_eq(send(sender, p, sizeof(p), 0), (ssize_t)sizeof(p));
	while (read < sizeof(p)) {
		const ssize_t n = recv(receiver, got, sizeof(got), 0);

		cr_assert_gt(n, 0);
		cr_expect_eq(n, merged ? 200 : 20);
		read += (size_t)n;
	}
	expect_ten_of_a_stream();
	cr_expect_eq(fixture_count(&f, FIXTURE_SLOT, MAP_COUNT_MEDIA) - before, 10);
}

Test(media, merged_segments_are_walked)
{
	segments(true);
}

Test(media, split_segments_are_counted_once_each)
{
	segments(false);
}

static void sleep_until(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / 1000000000ULL), .tv_nsec = (long)(ns % 1000000000ULL) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

/* When the kernel received the datagram read last, by the kernel's own stamp; the first call switches the stamps on. */
static uint64_t arrived(void)
{
	struct timespec t = { 0 };

	if (ioctl(receiver, SIOCGSTAMPNS, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* RFC 3550 A.8 in floating point, from the kernel's stamps. */
struct jitter { double ns; uint64_t arrival_ns; double media_ns; bool started; };

static void jitter_take(struct jitter *j, uint64_t arrival_ns, double media_ns)
{
	const double d = (double)(int64_t)(arrival_ns - j->arrival_ns) - (media_ns - j->media_ns);

	if (j->started)
		j->ns += ((d < 0 ? -d : d) - j->ns) / 16;
	j->started = true;
	j->arrival_ns = arrival_ns;
	j->media_ns = media_ns;
}

/* 8 kHz in steps of 10 ms: 1.1 s even, so that the rate is learnt, then every other packet 6 ms late. */
Test(media, jitter_follows_rfc_3550_once_the_clock_rate_is_learnt)
{
	const uint64_t start = fixture_now() + 10 * MS;
	struct jitter reference = { 0 };
	struct map_stream s;
	uint32_t rate = 0;
	double off;
	uint8_t p[32];

	arrived();
	for (uint16_t i = 0; i < 210; i++) {
		sleep_until(start + i * 10 * MS + (i > 110 && i % 2 ? 6 * MS : 0));
		pass(p, rtp(p, i, i * 80U, 0));
		if (rate)	/* the first packet after the learning is the reference's first too */
			jitter_take(&reference, arrived(), i * 1e7);
		if (!rate && stream(&s) && s.clock_rate) {
			rate = s.clock_rate;
			jitter_take(&reference, arrived(), i * 1e7);
			cr_expect_geq(i, 100, "learnt over a second, not in %u packets", i);
		}
	}
	cr_assert(stream(&s));
	cr_expect_eq(rate, 8000);
	cr_expect_eq(s.clock_rate, 8000);
	cr_expect_gt(reference.ns, 4e6);
	off = (double)(s.jitter16_ns >> 4) - reference.ns;
	cr_expect(off < 0.1 * reference.ns + 2e5 && off > -0.1 * reference.ns - 2e5, "jitter %.3f ms, reference %.3f ms",
		  (double)(s.jitter16_ns >> 4) / 1e6, reference.ns / 1e6);

	/* a packet of the same frame adds nothing; another payload type, or a jump of the timestamp, starts anew */
	pass(p, rtp(p, 210, 209 * 80, 0));
	off = (double)s.jitter16_ns;
	cr_assert(stream(&s));
	cr_expect_eq((double)s.jitter16_ns, off);
	pass(p, rtp(p, 211, 209 * 80 + 8000 * 100, 0));
	cr_assert(stream(&s));
	cr_expect_eq(s.clock_rate, 0);
	cr_expect_eq(s.jitter16_ns, 0);
}

/* A network that swaps neighbours: every packet counts, in the order of arrival. */
Test(media, jitter_counts_late_packets)
{
	const uint64_t start = fixture_now() + 10 * MS;
	struct jitter reference = { 0 };
	struct map_stream s;
	uint8_t p[32];

	arrived();
	for (uint16_t i = 0; i < 240; i++) {
		uint16_t seq = i < 140 ? i : i ^ 1;	/* from 140 on 141 140 143 142 ... */

		sleep_until(start + i * 10 * MS);
		pass(p, rtp(p, seq, seq * 80U, 0));
		if (i >= 139)
			jitter_take(&reference, arrived(), seq * 1e7);
	}
	cr_assert(stream(&s));
	cr_assert_eq(s.clock_rate, 8000);
	cr_expect_gt(reference.ns, 10e6);
	cr_expect_float_eq((double)(s.jitter16_ns >> 4), reference.ns, 0.1 * reference.ns + 2e5, "jitter %.3f ms, reference %.3f ms",
			   (double)(s.jitter16_ns >> 4) / 1e6, reference.ns / 1e6);
}

Test(media, another_payload_type_resets_jitter)
{
	const uint64_t start = fixture_now() + 10 * MS;
	struct map_stream s;
	uint8_t p[32];

	for (uint16_t i = 0; i < 60; i++) {
		sleep_until(start + i * 20 * MS);
		pass(p, rtp(p, i, i * 960U, 111));
	}
	cr_assert(stream(&s));
	cr_expect_eq(s.clock_rate, 48000);
	pass(p, rtp(p, 60, 60 * 960, 8));
	cr_assert(stream(&s));
	cr_expect_eq(s.clock_rate, 0);
	cr_expect_eq(s.jitter16_ns, 0);
	cr_expect_eq(lost(&s), 0);
}
