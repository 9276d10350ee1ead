/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "sense/stream_source.h"

#define S(n) ((uint64_t)(n) * 1000000000ULL)
#define SLOT 7

static struct stream_source *source;
static struct sample sample;
static struct map_socket *sockets;
static struct map_stream_key key[8];
static struct map_stream value[8];
static struct stream_table table = { .key = key, .value = value };

static void setup(void)
{
	cr_assert_eq(stream_source_new(-1, &source), 0);
	sockets = calloc(MAP_SOCKETS, sizeof(*sockets));
	cr_assert_not_null(sockets);
	sockets[3].cookie = 33;
	sockets[3].target = SLOT;
	table.sockets = sockets;
	table.count = 0;
	memset(&sample, 0, sizeof(sample));
}

static void teardown(void)
{
	stream_source_free(source);
	free(sockets);
}

TestSuite(stream_source, .init = setup, .fini = teardown);

/* A stream of row 3 that expects numbers base .. highest. */
static void put(size_t i, uint32_t ssrc, uint64_t expected, uint64_t received, uint64_t last_ns)
{
	key[i] = (struct map_stream_key){ .cookie = 33, .ssrc = ssrc };
	value[i] = (struct map_stream){ .row = 3, .created_ts = S(1) + ssrc, .last_ts = last_ns, .base = 0x10000,
					.highest = 0x10000 + expected - 1, .received = received };
	if (i >= table.count)
		table.count = i + 1;
}

static uint64_t total(unsigned int slot, enum sample_counter what)
{
	cr_assert(sample.target[slot].counter_known & 1U << what);
	return sample.target[slot].counter[what];
}

Test(stream_source, a_stream_becomes_a_row_and_a_sum)
{
	put(0, 100, 50, 48, S(2));
	value[0].reorder = 3;
	value[0].duplicates = 2;
	value[0].jitter16_ns = 16 * 5000;
	value[0].clock_rate = 8000;
	cr_expect_eq(stream_source_take(source, S(2), &table, &sample, NULL), 0);
	cr_assert(sample.streams_known);
	cr_assert_eq(sample.stream_count, 1);
	cr_expect_eq(sample.stream[0].ssrc, 100);
	cr_expect_eq(sample.stream[0].target, SLOT);
	cr_expect_eq(sample.stream[0].expected, 50);
	cr_expect_eq(sample.stream[0].received, 48);
	cr_expect_eq(sample.stream[0].jitter_ns, 5000);
	cr_expect(sample.stream[0].jitter_known);
	cr_expect_eq(sample.stream[0].last_ns, S(2));
	cr_expect_eq(total(SLOT, SAMPLE_RTP_EXPECTED), 50);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_RECEIVED), 48);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_REORDER), 3);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_DUPLICATES), 2);
	cr_expect(sample.target[SLOT].rtp_ever);
	cr_expect(!sample.target[SLOT + 1].rtp_ever);
}

Test(stream_source, jitter_is_unknown_without_a_clock_rate)
{
	put(0, 100, 50, 50, S(2));
	stream_source_take(source, S(2), &table, &sample, NULL);
	cr_expect(!sample.stream[0].jitter_known);
}

Test(stream_source, sums_stay_when_a_stream_falls_silent)
{
	uint32_t silent[8];

	put(0, 100, 50, 40, S(2));
	put(1, 200, 10, 10, S(11));
	stream_source_take(source, S(12), &table, &sample, silent);
	cr_expect_eq(sample.stream_count, 2, "silent for exactly 10 s is not over yet");
	cr_assert_eq(stream_source_take(source, S(12) + 1, &table, &sample, silent), 1);
	cr_expect_eq(silent[0], 0);
	cr_assert_eq(sample.stream_count, 1);
	cr_expect_eq(sample.stream[0].ssrc, 200);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_EXPECTED), 60);
	/* not deleted: it is not counted again */
	stream_source_take(source, S(13), &table, &sample, silent);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_EXPECTED), 60);
	/* deleted */
	key[0] = key[1];
	value[0] = value[1];
	table.count = 1;
	stream_source_take(source, S(14), &table, &sample, silent);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_EXPECTED), 60);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_RECEIVED), 50);
	cr_expect(sample.target[SLOT].rtp_ever);
}

Test(stream_source, an_owner_found_later_takes_only_what_comes_later)
{
	sockets[3].target = SAMPLE_OTHER;
	put(0, 100, 50, 50, S(2));
	stream_source_take(source, S(2), &table, &sample, NULL);
	cr_expect_eq(sample.stream[0].target, SAMPLE_OTHER);
	sockets[3].target = SLOT;
	put(0, 100, 70, 65, S(3));
	stream_source_take(source, S(3), &table, &sample, NULL);
	cr_expect_eq(sample.stream[0].target, SLOT);
	cr_expect_eq(total(SAMPLE_OTHER, SAMPLE_RTP_EXPECTED), 50);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_EXPECTED), 20);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_RECEIVED), 15);
}

Test(stream_source, a_row_that_went_to_another_socket_is_not_the_owner)
{
	put(0, 100, 50, 50, S(2));
	sockets[3].cookie = 34;
	stream_source_take(source, S(2), &table, &sample, NULL);
	cr_expect_eq(sample.stream[0].target, SAMPLE_OTHER);
	value[0].row = 0xffffffff;
	stream_source_take(source, S(2), &table, &sample, NULL);
	cr_expect_eq(sample.stream[0].target, SAMPLE_OTHER);
	sockets[3].cookie = 33;
	sockets[3].target = SAMPLE_TARGETS;
	value[0].row = 3;
	stream_source_take(source, S(2), &table, &sample, NULL);
	cr_expect_eq(sample.stream[0].target, SAMPLE_OTHER);
	table.sockets = NULL;
	stream_source_take(source, S(2), &table, &sample, NULL);
	cr_expect_eq(sample.stream[0].target, SAMPLE_OTHER);
}

Test(stream_source, identity_lasts_for_the_life_of_a_stream)
{
	uint64_t id;

	put(0, 100, 50, 50, S(2));
	stream_source_take(source, S(2), &table, &sample, NULL);
	id = sample.stream[0].id;
	cr_expect_neq(id, 0);
	put(0, 100, 60, 60, S(3));
	stream_source_take(source, S(3), &table, &sample, NULL);
	cr_expect_eq(sample.stream[0].id, id);
	/* deleted and begun anew between two reads: counts start again, the sum goes on */
	put(0, 100, 5, 4, S(4));
	value[0].created_ts = S(4);
	stream_source_take(source, S(4), &table, &sample, NULL);
	cr_expect_neq(sample.stream[0].id, id);
	cr_expect_eq(sample.stream[0].expected, 5);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_EXPECTED), 65);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_RECEIVED), 64);
}

Test(stream_source, a_copy_that_lags_takes_nothing_back)
{
	put(0, 100, 50, 50, S(2));
	stream_source_take(source, S(2), &table, &sample, NULL);
	put(0, 100, 50, 49, S(3));
	stream_source_take(source, S(3), &table, &sample, NULL);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_RECEIVED), 50);
	put(0, 100, 51, 51, S(4));
	stream_source_take(source, S(4), &table, &sample, NULL);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_RECEIVED), 51);
}

/* Half of a full table is replaced at each tick; names are spread as badly as SSRC and cookies allow. */
Test(stream_source, a_full_table_that_churns_keeps_exact_sums)
{
	struct map_stream_key *k = calloc(MAP_STREAMS, sizeof(*k));
	struct map_stream *v = calloc(MAP_STREAMS, sizeof(*v));
	struct stream_table full = { .key = k, .value = v, .count = MAP_STREAMS, .sockets = sockets };
	uint64_t expected = 0;

	for (uint32_t tick = 1; tick <= 20; tick++) {
		for (uint32_t i = 0; i < MAP_STREAMS; i++) {
			const bool fresh = tick == 1 || (i & 1) == (tick & 1);

			if (fresh) {
				k[i] = (struct map_stream_key){ .cookie = 33, .ssrc = tick * MAP_STREAMS + i };
				v[i] = (struct map_stream){ .row = 3, .created_ts = tick, .base = 0x10000,
							    .highest = 0xffff };
			}
			v[i].highest += 2;
			v[i].received++;
			v[i].last_ts = S(tick);
			expected += 2;
		}
		stream_source_take(source, S(tick), &full, &sample, NULL);
		cr_assert_eq(sample.stream_count, MAP_STREAMS);
		cr_assert_eq(total(SLOT, SAMPLE_RTP_EXPECTED), expected, "tick %u", tick);
		cr_assert_eq(total(SLOT, SAMPLE_RTP_RECEIVED), expected / 2);
	}
	full.count = 0;
	stream_source_take(source, S(21), &full, &sample, NULL);
	cr_expect_eq(sample.stream_count, 0);
	cr_expect_eq(total(SLOT, SAMPLE_RTP_EXPECTED), expected);
	free(k);
	free(v);
}

Test(stream_source, without_a_map_everything_is_unknown)
{
	put(0, 100, 50, 50, S(2));
	stream_source_take(source, S(2), &table, &sample, NULL);
	cr_expect_lt(stream_source_read(source, S(3), sockets, &sample), 0);
	cr_expect(!sample.streams_known);
	cr_expect_eq(sample.stream_count, 0);
	cr_expect_eq(sample.target[SLOT].counter_known & 1U << SAMPLE_RTP_EXPECTED, 0);
}

static bool media(uint64_t now_ns, uint64_t media_count, uint64_t datagrams)
{
	const uint64_t counts[2] = { media_count, datagrams };

	return stream_source_media(source, now_ns, SLOT, counts);
}

Test(stream_source, half_of_the_datagrams_make_a_media_server)
{
	cr_expect(!media(S(10), 1000, 1000), "what came before is not looked at");
	cr_expect(!media(S(11), 1050, 1100), "not over the whole span yet");
	cr_expect(media(S(12), 1100, 1200), "exactly half");
	cr_expect(media(S(14), 1100, 1200), "nothing came: as before");
	cr_expect(!media(S(16), 1149, 1300), "49 of 100");
	cr_expect(media(S(18), 1249, 1400));
	stream_source_forget(source, SLOT);
	cr_expect(!media(S(19), 1300, 1500));
}
