/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <string.h>

#include "decide/streams.h"

#define MS 1000000ULL
#define S(n) ((n) * 1000000000ULL)
#define TICK (250 * MS)
#define SFU SAMPLE_FIRST_FREE
#define STREAMS 5000

static struct sample sample;
static struct sample_stream stream[STREAMS];
static const uint64_t lengths[] = { S(10), S(3), S(60) };
static struct streams *s;

static void begin(unsigned int streams)
{
	s = streams_new(lengths, 3, TICK);
	cr_assert_not_null(s);
	sample.now_ns = S(1000);
	sample.stream = stream;
	sample.stream_count = streams;
	sample.streams_known = true;
	for (unsigned int i = 0; i < STREAMS; i++)
		stream[i] = (struct sample_stream){.id = i + 1,
						   .target = SFU,
						   .expected = 70000,
						   .received = 69000,
						   .last_ns = sample.now_ns};
	sample.gap = true;
	streams_tick(s, &sample);
	sample.gap = false;
}

static void tick(void)
{
	sample.now_ns += TICK;
	streams_tick(s, &sample);
}

static void send(unsigned int i, unsigned int expected, unsigned int lost)
{
	stream[i].expected += expected;
	stream[i].received += expected - lost;
	stream[i].last_ns = sample.now_ns + TICK;
}

Test(streams, loss_is_counted_per_stream)
{
	const struct stream_counts *c;

	begin(5);
	for (unsigned int t = 0; t < 20; t++) {
		for (unsigned int i = 0; i < 5; i++)
			send(i, 100, i == 0 ? 20 : i == 1 ? 5 : 0);
		tick();
	}
	c = streams_counts(s, SFU, 0);
	cr_expect_eq(c->active, 5);
	cr_expect_eq(c->bad, 1, "5 %% is not more than 5 %%");
	cr_expect_float_eq(c->worst_loss, 0.2, 1e-9);
	cr_expect_eq(streams_counts(s, SAMPLE_HOST, 0)->bad, 1);
	cr_expect_eq(streams_counts(s, SFU + 1, 0)->active, 0);
	streams_free(s);
}

/* 65533..65535, 0..3 with 65535 missing: 7 expected, 6 received. 2 again: a duplicate, in neither count. 10
 * before 6..9: 4 and 5 came, expected goes to 14, then the four late ones fill in. */
Test(streams, c69_signed_loss_of_late_packets)
{
	begin(1);
	stream[0].expected += 7;
	stream[0].received += 6;
	stream[0].last_ns = sample.now_ns;
	tick();
	cr_expect_float_eq(streams_counts(s, SFU, 0)->worst_loss, 1.0 / 7, 1e-9, "lost 1");
	stream[0].duplicates++;
	tick();
	cr_expect_float_eq(streams_counts(s, SFU, 0)->worst_loss, 1.0 / 7, 1e-9, "a duplicate hides no loss");
	stream[0].expected += 7;
	stream[0].received += 3;
	tick();
	cr_expect_float_eq(streams_counts(s, SFU, 0)->worst_loss, 5.0 / 14, 1e-9);
	stream[0].received += 4;
	stream[0].reorder += 4;
	tick();
	cr_expect_float_eq(streams_counts(s, SFU, 0)->worst_loss, 1.0 / 14, 1e-9, "late is not lost");
	streams_free(s);
}

Test(streams, c69_loss_is_never_negative)
{
	begin(1);
	send(0, 100, 50);
	tick();
	for (unsigned int t = 0; t < 16; t++) {
		send(0, 10, 0);
		tick();
	}
	stream[0].received += 50;	/* they come after the 3 s window has forgotten the gap */
	tick();
	cr_expect_eq(streams_counts(s, SFU, 1)->worst_loss, 0);
	cr_expect_eq(streams_counts(s, SFU, 1)->bad, 0);
	cr_expect_eq(streams_counts(s, SFU, 0)->worst_loss, 0, "given back in the 10 s");
	streams_free(s);
}

Test(streams, windows_forget_and_longer_than_10_s_are_clamped)
{
	begin(1);
	send(0, 100, 50);
	tick();
	for (unsigned int t = 0; t < 17; t++) {
		send(0, 10, 0);
		tick();
	}
	cr_expect_eq(streams_counts(s, SFU, 1)->bad, 0, "3 s");
	cr_expect_eq(streams_counts(s, SFU, 0)->bad, 1, "10 s");
	for (unsigned int t = 0; t < 30; t++) {
		send(0, 10, 0);
		tick();
	}
	cr_expect_eq(streams_counts(s, SFU, 0)->bad, 0);
	cr_expect_eq(streams_counts(s, SFU, 2)->bad, 0, "60 s is 10 s here");
	cr_expect_leq(streams_covered_ns(s), S(11));
	streams_free(s);
}

Test(streams, a_stream_that_stops_is_not_active)
{
	begin(2);
	for (unsigned int t = 0; t < 19; t++) {
		send(0, 10, 0);
		tick();
	}
	cr_expect_eq(streams_counts(s, SFU, 0)->active, 2);
	for (unsigned int t = 0; t < 2; t++) {
		send(0, 10, 0);
		tick();
	}
	cr_expect_eq(streams_counts(s, SFU, 0)->active, 1, "5 s without a packet");
	sample.stream_count = 1;
	tick();
	cr_expect_eq(streams_counts(s, SFU, 0)->active, 1);
	streams_free(s);
}

Test(streams, jitter_is_the_median_of_those_that_know_it)
{
	const struct stream_counts *c;

	begin(6);
	for (unsigned int i = 0; i < 5; i++) {
		stream[i].jitter_known = true;
		stream[i].jitter_ns = (uint64_t[]){ 1, 2, 8, 60, 90 }[i] * MS;
	}
	stream[5].jitter_ns = 500 * MS;
	tick();
	c = streams_counts(s, SFU, 0);
	cr_expect_eq(c->active, 6);
	cr_expect_eq(c->jitter_known, 5);
	cr_expect_eq(c->late, 2);
	cr_expect_float_eq((double)c->jitter_ns, 8e6, 8e6 * 0.032);
	tick();
	cr_expect_float_eq((double)c->jitter_ns, 8e6, 8e6 * 0.032, "nothing is left over from the last tick");
	streams_free(s);
}

Test(streams, counts_that_decrease_are_a_reset)
{
	begin(1);
	send(0, 100, 50);
	tick();
	stream[0].expected = 5;
	stream[0].received = 5;
	tick();
	cr_expect_eq(streams_counts(s, SFU, 0)->worst_loss, 0);
	send(0, 100, 10);
	tick();
	cr_expect_float_eq(streams_counts(s, SFU, 0)->worst_loss, 0.1, 1e-9);
	streams_free(s);
}

Test(streams, more_streams_than_rows_are_counted)
{
	begin(STREAMS);
	cr_expect_eq(streams_untracked(s), STREAMS - STREAMS_MAX);
	cr_expect_eq(streams_counts(s, SAMPLE_HOST, 0)->active, STREAMS_MAX);
	sample.stream = stream + STREAMS_MAX;
	sample.stream_count = STREAMS - STREAMS_MAX;
	tick();
	cr_expect_eq(streams_untracked(s), 0, "streams that ended make room");
	cr_expect_eq(streams_counts(s, SAMPLE_HOST, 0)->active, STREAMS - STREAMS_MAX);
	streams_free(s);
}

Test(streams, a_gap_and_unknown_void)
{
	begin(1);
	send(0, 100, 50);
	tick();
	sample.gap = true;
	tick();
	cr_expect_eq(streams_counts(s, SFU, 0)->bad, 0);
	cr_expect_eq(streams_covered_ns(s), 0);
	sample.gap = false;
	send(0, 100, 50);
	tick();
	cr_expect_eq(streams_counts(s, SFU, 0)->bad, 1);
	sample.streams_known = false;
	tick();
	cr_expect_eq(streams_counts(s, SFU, 0)->active, 0);
	streams_free(s);
}
