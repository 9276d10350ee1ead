/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "decide/hist.h"
#include "decide/values.h"

#define MS 1000000ULL
#define S(n) ((n) * 1000000000ULL)
#define TICK (250 * MS)
#define SFU SAMPLE_FIRST_FREE
#define DNS (SAMPLE_FIRST_FREE + 1)

static struct model model;
static struct sample sample;
static struct values *v;

static void use(int slot, const char *name)
{
	struct sample_target *t = &sample.target[slot];

	t->used = t->ever_seen = true;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->dist[SAMPLE_DIST_DWELL].known = t->dist[SAMPLE_DIST_DWELL].moved = true;
	t->dist[SAMPLE_DIST_RUNQ].known = t->dist[SAMPLE_DIST_RUNQ].moved = true;
	t->counter_known = (1U << SAMPLE_COUNTER_COUNT) - 1;
	t->oldest_known = t->fill_known = t->rcvbuf_known = true;
	t->sockets = 1;
}

static void tick_after(uint64_t ns)
{
	sample.now_ns += ns;
	values_tick(v, &sample);
	sample.gap = false;
}

static void tick(void)
{
	tick_after(TICK);
}

static void begin(void)
{
	model.tick_ns = TICK;
	model.window_ns[0] = S(10);
	model.window_ns[1] = S(3);
	model.window_ns[2] = S(60);
	model.window_count = 3;
	v = values_new(&model);
	cr_assert_not_null(v);
	use(SAMPLE_OTHER, "other");
	use(SFU, "sfu");
	use(DNS, "dns");
	sample.target[SAMPLE_HOST].used = true;
	sample.host_known = (1U << SAMPLE_HOST_COUNTER_COUNT) - 1;
	sample.streams_known = true;
	sample.now_ns = S(1000);
	sample.gap = true;
	tick();
}

static void dwell(int slot, uint64_t ns, unsigned int n)
{
	sample.target[slot].dist[SAMPLE_DIST_DWELL].slot[hist_slot(ns)] += n;
	sample.target[slot].counter[SAMPLE_ENQUEUED] += n;
	sample.target[slot].counter[SAMPLE_READ] += n;
}

static struct value value(int slot, enum signal_id signal, enum signal_stat stat, uint64_t window_ns)
{
	const struct expr_term term = {
		.signal = signal, .stat = stat, .window_ns = window_ns, .arg_param = -1};

	return values_read(v, slot, &term, 20e6, NULL);
}

#define expect_number(VALUE, NUMBER) do { \
	const struct value got = (VALUE); \
	cr_expect_eq(got.why, VALUE_OK, "why %d", got.why); \
	cr_expect_float_eq(got.number, NUMBER, 1e-9 + (NUMBER) * 0.032, "%g", got.number); \
} while (0)
#define expect_why(VALUE, WHY) cr_expect_eq((VALUE).why, WHY)

Test(values, distribution_statistics)
{
	begin();
	for (unsigned int i = 0; i < 40; i++) {
		dwell(SFU, 1 * MS, 95);
		dwell(SFU, 40 * MS, 5);
		tick();
	}
	expect_number(value(SFU, SIGNAL_DWELL, STAT_P50, 0), 1e6);
	expect_number(value(SFU, SIGNAL_DWELL, STAT_P90, S(10)), 1e6);
	expect_number(value(SFU, SIGNAL_DWELL, STAT_P99, S(10)), 40e6);
	expect_number(value(SFU, SIGNAL_DWELL, STAT_P999, S(3)), 40e6);
	expect_number(value(SFU, SIGNAL_DWELL, STAT_MAX, S(3)), 40e6);
	expect_number(value(SFU, SIGNAL_DWELL, STAT_MEAN, S(10)), 0.95e6 + 2e6);
	expect_number(value(SFU, SIGNAL_DWELL, STAT_OVER, S(10)), 0.05);
	cr_expect_eq(value(SFU, SIGNAL_DWELL, STAT_COUNT, S(10)).number, 4000);
	cr_expect_eq(value(SFU, SIGNAL_DWELL, STAT_COUNT, S(3)).number, 1200);
	cr_expect_float_eq(value(SFU, SIGNAL_DWELL, STAT_RATE, S(10)).number, 400, 1e-9);
	expect_number(value(SAMPLE_HOST, SIGNAL_DWELL, STAT_P99, S(10)), 40e6);
	cr_expect_eq(hist_count(values_hist(v, SFU, SIGNAL_DWELL, S(3)), HIST_FINE), 1200);
	expect_why(value(SFU, SIGNAL_DWELL, STAT_P99, S(7)), VALUE_GAP);
	cr_expect_null(values_hist(v, SFU, SIGNAL_DWELL, S(7)));
	cr_expect_null(values_hist(v, SFU, SIGNAL_RTP_LOSS, 0));
	values_free(v);
}

Test(values, few_samples_say_how_many)
{
	const struct expr_term p99 = { .signal = SIGNAL_DWELL, .stat = STAT_P99, .arg_param = -1 };
	const uint32_t need[STAT_ID_COUNT] = { [STAT_P99] = 3 };
	struct value few;

	begin();
	dwell(SFU, 900 * MS, 3);
	tick();
	few = value(SFU, SIGNAL_DWELL, STAT_P99, 0);
	expect_why(few, VALUE_FEW);
	cr_expect_eq(few.have, 3);
	cr_expect_eq(few.need, 100);
	cr_expect_float_eq(few.number, 900e6, 900e6 * 0.032);
	expect_why(values_read(v, SFU, &p99, 0, need), VALUE_OK);
	values_free(v);
}

Test(values, c08_nothing_read_and_nothing_queued_is_idle_not_zero)
{
	begin();
	for (unsigned int i = 0; i < 40; i++) {
		dwell(SFU, MS, 1250);
		tick();
	}
	for (unsigned int i = 0; i < 240; i++)
		tick();
	for (int stat = STAT_P50; stat <= STAT_MEAN; stat++) {
		const struct value idle = value(SFU, SIGNAL_DWELL, (enum signal_stat)stat, 0);

		expect_why(idle, VALUE_FEW);
		cr_expect_eq(idle.have, 0);
		cr_expect_geq(idle.need, 1);
	}
	cr_expect_eq(value(SFU, SIGNAL_DWELL, STAT_RATE, 0).number, 0);
	expect_why(value(SFU, SIGNAL_DWELL, STAT_COUNT, 0), VALUE_OK);
	expect_why(value(SFU, SIGNAL_DROPS_RCVBUF, STAT_SHARE, 0), VALUE_FEW);
	values_free(v);
}

Test(values, c13_a_constant_value_is_never_missing)
{
	begin();
	for (unsigned int i = 0; i < 14400; i++) {
		dwell(SFU, 2 * MS, 50);
		tick();
		if (i >= 8)
			cr_assert_eq(value(SFU, SIGNAL_DWELL, STAT_P99, 0).why, VALUE_OK, "tick %u", i);
	}
	cr_expect_eq(value(SFU, SIGNAL_DWELL, STAT_COUNT, S(10)).number, 2000);
	cr_expect_eq(value(SFU, SIGNAL_DWELL, STAT_COUNT, S(60)).number, 12000);
	values_free(v);
}

Test(values, c15_c17_counters_through_the_seam)
{
	uint64_t *drops = &sample.target[SFU].counter[SAMPLE_DROPS_RCVBUF];

	*drops = 9000000;
	begin();
	expect_why(value(SFU, SIGNAL_DROPS_RCVBUF, STAT_COUNT, S(3)), VALUE_GAP);
	for (unsigned int i = 0; i < 12; i++) {
		*drops += 10;
		tick();
	}
	expect_number(value(SFU, SIGNAL_DROPS_RCVBUF, STAT_COUNT, S(3)), 120.0);
	expect_number(value(SFU, SIGNAL_DROPS_RCVBUF, STAT_RATE, S(3)), 40.0);
	*drops = 3;
	tick();
	expect_why(value(SFU, SIGNAL_DROPS_RCVBUF, STAT_COUNT, S(3)), VALUE_GAP);
	expect_why(value(SFU, SIGNAL_DWELL, STAT_COUNT, S(3)), VALUE_OK);
	for (unsigned int i = 0; i < 8; i++)
		tick();
	cr_expect_eq(value(SFU, SIGNAL_DROPS_RCVBUF, STAT_COUNT, S(3)).number, 0);
	expect_why(value(SFU, SIGNAL_DROPS_RCVBUF, STAT_COUNT, S(3)), VALUE_OK);
	values_free(v);
}

Test(values, c20_a_late_tick_is_marked)
{
	struct values_window_info info;

	begin();
	for (unsigned int i = 0; i < 50; i++)
		tick();
	cr_assert(values_window_info(v, 0, &info));
	cr_expect_not(info.stretched);
	dwell(SFU, MS, 450);
	tick_after(S(45));
	tick_after(0);
	tick_after(MS);
	cr_assert(values_window_info(v, 0, &info));
	cr_expect(info.stretched);
	cr_expect_eq(value(SFU, SIGNAL_DWELL, STAT_COUNT, 0).number, 450);
	cr_expect_float_eq(value(SFU, SIGNAL_DWELL, STAT_RATE, 0).number, 10, 0.01);
	values_free(v);
}

Test(values, a_suspend_voids_all)
{
	begin();
	for (unsigned int i = 0; i < 20; i++) {
		dwell(SFU, 90 * MS, 100);
		tick();
	}
	dwell(SFU, S(20), 1000);
	sample.gap = true;
	tick_after(S(3600));
	expect_why(value(SFU, SIGNAL_DWELL, STAT_P99, 0), VALUE_GAP);
	cr_expect_null(values_hist(v, SFU, SIGNAL_DWELL, 0));
	dwell(SFU, MS, 200);
	tick();
	expect_number(value(SFU, SIGNAL_DWELL, STAT_P99, 0), 1e6);
	expect_why(value(SFU, SIGNAL_DWELL, STAT_MAX, 0), VALUE_GAP);
	for (unsigned int i = 0; i < 7; i++)
		tick();
	expect_number(value(SFU, SIGNAL_DWELL, STAT_MAX, 0), 1e6);
	values_free(v);
}

Test(values, a_missing_probe_is_missing_and_comes_back)
{
	begin();
	dwell(SFU, MS, 200);
	tick();
	strcpy(sample.probe[0].signal, "dwell");
	sample.probe_count = 1;
	tick();
	expect_why(value(SFU, SIGNAL_DWELL, STAT_P99, 0), VALUE_MISSING);
	expect_why(value(SFU, SIGNAL_DWELL_WORST, STAT_P99, 0), VALUE_MISSING);
	expect_why(value(SFU, SIGNAL_RUNQ, STAT_COUNT, 0), VALUE_GAP);
	sample.probe[0].attached = true;
	sample.target[SFU].dist[SAMPLE_DIST_DWELL].known = false;
	tick();
	expect_why(value(SFU, SIGNAL_DWELL, STAT_P99, 0), VALUE_MISSING);
	dwell(SFU, S(20), 5000);
	sample.target[SFU].dist[SAMPLE_DIST_DWELL].known = true;
	tick();
	expect_why(value(SFU, SIGNAL_DWELL, STAT_P99, 0), VALUE_GAP);
	dwell(SFU, MS, 200);
	tick();
	expect_number(value(SFU, SIGNAL_DWELL, STAT_P99, 0), 1e6);
	values_free(v);
}

Test(values, never_seen_and_never_rtp)
{
	begin();
	sample.target[DNS].ever_seen = false;
	for (unsigned int i = 0; i < 10; i++)
		tick();
	expect_why(value(DNS, SIGNAL_DWELL, STAT_P99, 0), VALUE_NEVER);
	expect_why(value(DNS + 1, SIGNAL_DWELL, STAT_P99, 0), VALUE_NEVER);
	expect_why(value(SFU, SIGNAL_RTP_LOSS, STAT_BARE, 0), VALUE_NEVER);
	expect_why(value(SFU, SIGNAL_RTP_STREAMS, STAT_BARE, 0), VALUE_NEVER);
	sample.target[SFU].rtp_ever = true;
	tick();
	expect_number(value(SFU, SIGNAL_RTP_STREAMS, STAT_BARE, 0), 0.0);
	expect_why(value(SFU, SIGNAL_RTP_LOSS, STAT_BARE, 0), VALUE_FEW);
	expect_why(value(SFU, SIGNAL_RTP_BAD_STREAMS, STAT_BARE, 0), VALUE_FEW);
	sample.streams_known = false;
	tick();
	expect_why(value(SFU, SIGNAL_RTP_STREAMS, STAT_BARE, 0), VALUE_MISSING);
	values_free(v);
}

/* "rtp.bad_streams > 20% and (rtp.streams >= 5 or rtp.bad_streams >= 100%)" */
Test(values, c69_rtp_loss_and_streams)
{
	static struct sample_stream stream[6];
	struct sample_target *t = &sample.target[SFU];
	struct stream_counts counts;

	begin();
	t->rtp_ever = true;
	for (unsigned int i = 0; i < 6; i++)
		stream[i] = (struct sample_stream){ .id = i + 1, .target = SFU };
	sample.stream = stream;
	sample.stream_count = 6;
	tick();
	for (unsigned int k = 0; k < 12; k++) {
		for (unsigned int i = 0; i < 6; i++) {
			stream[i].expected += 50;
			stream[i].received += i < 2 ? 40 : 50;
			stream[i].last_ns = sample.now_ns + TICK;
		}
		t->counter[SAMPLE_RTP_EXPECTED] += 300;
		t->counter[SAMPLE_RTP_RECEIVED] += 280;
		t->counter[SAMPLE_RTP_DUPLICATES] += 3;
		tick();
	}
	expect_number(value(SFU, SIGNAL_RTP_LOSS, STAT_BARE, 0), 20.0 / 300);
	expect_number(value(SFU, SIGNAL_RTP_LOSS_WORST, STAT_BARE, S(3)), 0.2);
	expect_number(value(SFU, SIGNAL_RTP_BAD_STREAMS, STAT_BARE, 0), 2.0 / 6);
	expect_number(value(SFU, SIGNAL_RTP_STREAMS, STAT_BARE, 0), 6.0);
	expect_number(value(SFU, SIGNAL_RTP_DUPLICATES, STAT_COUNT, 0), 36.0);
	expect_number(value(SFU, SIGNAL_RTP_DUPLICATES, STAT_SHARE, 0), 3.0 / 280);
	expect_why(value(SFU, SIGNAL_RTP_JITTER, STAT_BARE, 0), VALUE_FEW);
	cr_assert(values_stream_counts(v, SFU, S(60), &counts));
	cr_expect_eq(counts.bad, 2);
	t->counter[SAMPLE_RTP_RECEIVED] += 100000;	/* late packets of an old gap */
	tick();
	expect_number(value(SFU, SIGNAL_RTP_LOSS, STAT_BARE, 0), 0.0);
	values_free(v);
}

Test(values, host_is_the_sum_of_its_slots)
{
	begin();
	for (unsigned int i = 0; i < 12; i++) {
		dwell(SFU, MS, 30);
		dwell(DNS, 80 * MS, 70);
		sample.target[SFU].counter[SAMPLE_DROPS_SERVER] += 1;
		sample.target[DNS].counter[SAMPLE_DROPS_SERVER] += 2;
		tick();
	}
	sample.target[SFU].oldest_ns = 5 * MS;
	sample.target[DNS].oldest_ns = S(4);
	sample.target[SFU].fill = 0.75;
	sample.target[SFU].rcvbuf_bytes = 4096;
	sample.target[DNS].rcvbuf_bytes = 212992;
	sample.target[SAMPLE_OTHER].rcvbuf_known = false;
	tick();
	sample.target[SFU].fill = 0.1;
	tick();
	cr_expect_eq(value(SAMPLE_HOST, SIGNAL_DWELL, STAT_COUNT, 0).number, 1200);
	expect_number(value(SAMPLE_HOST, SIGNAL_DWELL, STAT_OVER, 0), 0.7);
	expect_number(value(SAMPLE_HOST, SIGNAL_DROPS_SERVER, STAT_COUNT, 0), 36.0);
	expect_number(value(SAMPLE_HOST, SIGNAL_DROPS_SERVER, STAT_SHARE, 0), 0.03);
	expect_number(value(SAMPLE_HOST, SIGNAL_DWELL_OLDEST, STAT_BARE, 0), 4e9);
	expect_number(value(SAMPLE_HOST, SIGNAL_QUEUE_FILL, STAT_BARE, 0), 0.75);
	expect_number(value(DNS, SIGNAL_QUEUE_FILL, STAT_BARE, 0), 0.0);
	cr_expect_eq(value(SAMPLE_HOST, SIGNAL_QUEUE_RCVBUF, STAT_BARE, 0).number, 4096);
	expect_why(value(SAMPLE_OTHER, SIGNAL_QUEUE_RCVBUF, STAT_BARE, 0), VALUE_MISSING);
	values_free(v);
}

Test(values, ratios_of_the_host)
{
	begin();
	for (unsigned int i = 0; i < 40; i++) {
		sample.host_counter[SAMPLE_HOST_CPU_BUSY] += 93;
		sample.host_counter[SAMPLE_HOST_CPU_STEAL] += 2;
		sample.host_counter[SAMPLE_HOST_CPU_TOTAL] += 100;
		sample.host_counter[SAMPLE_HOST_NIC_PACKETS] += 999;
		sample.host_counter[SAMPLE_HOST_NIC_DROPS] += 1;
		tick();
	}
	expect_number(value(SFU, SIGNAL_HOST_CPU_BUSY, STAT_BARE, 0), 0.93);
	expect_number(value(SAMPLE_HOST, SIGNAL_HOST_STEAL, STAT_BARE, S(3)), 0.02);
	expect_number(value(SFU, SIGNAL_HOST_NIC_DROPS, STAT_SHARE, 0), 0.001);
	expect_number(value(SFU, SIGNAL_HOST_NIC_DROPS, STAT_RATE, 0), 4.0);
	sample.host_known &= ~(1U << SAMPLE_HOST_CPU_STEAL);
	tick();
	expect_why(value(SFU, SIGNAL_HOST_STEAL, STAT_BARE, 0), VALUE_MISSING);
	expect_why(value(SFU, SIGNAL_COVERAGE, STAT_BARE, 0), VALUE_GAP);
	values_set_missing(v, 2);
	cr_expect_eq(value(SFU, SIGNAL_COVERAGE, STAT_BARE, 0).number, 2);
	values_free(v);
}

Test(values, a_slot_with_a_new_name_starts_anew)
{
	begin();
	dwell(SFU, 90 * MS, 500);
	tick();
	strcpy(sample.target[SFU].name, "other-sfu");
	tick();
	expect_why(value(SFU, SIGNAL_DWELL, STAT_P99, 0), VALUE_GAP);
	dwell(SFU, MS, 500);
	tick();
	expect_number(value(SFU, SIGNAL_DWELL, STAT_P99, 0), 1e6);
	values_free(v);
}

Test(values, a_reload_keeps_the_windows_that_remain)
{
	begin();
	for (unsigned int i = 0; i < 40; i++) {
		dwell(SFU, MS, 100);
		tick();
	}
	model.window_ns[1] = S(30);
	cr_assert_eq(values_reload(v, &model), 0);
	cr_expect_eq(value(SFU, SIGNAL_DWELL, STAT_COUNT, S(10)).number, 4000);
	expect_why(value(SFU, SIGNAL_DWELL, STAT_COUNT, S(30)), VALUE_GAP);
	expect_why(value(SFU, SIGNAL_DWELL, STAT_COUNT, S(3)), VALUE_GAP);
	for (unsigned int i = 0; i < 9; i++) {
		dwell(SFU, MS, 100);
		tick();
	}
	cr_expect_eq(value(SFU, SIGNAL_DWELL, STAT_COUNT, S(10)).number, 4000);
	expect_why(value(SFU, SIGNAL_DWELL, STAT_COUNT, S(30)), VALUE_OK);
	values_free(v);
}

static size_t resident_bytes(void)
{
	unsigned long size, resident, shared;
	FILE *f = fopen("/proc/self/statm", "r");

	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%lu %lu %lu", &size, &resident, &shared), 3);
	fclose(f);
	return (resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}

/* `slots` targets with 4 threads each, dwell and runq over 10 octaves. Returns ns of CPU per tick. */
static double load(int slots, unsigned int ticks)
{
	static uint32_t coarse[4 * SAMPLE_TARGETS][HIST_COARSE_SLOTS];
	static struct sample_reader reader[4 * SAMPLE_TARGETS];
	struct timespec a, b;
	double ns = 0;

	for (int i = SFU; i < slots; i++)
		use(i, "load");
	for (int i = 0; i < 4 * slots; i++)
		reader[i] = (struct sample_reader){
			.id = (uint64_t)i + 1, .target = (uint16_t)(i / 4), .slot = coarse[i]};
	sample.reader = reader;
	sample.reader_count = (uint32_t)(4 * slots);
	for (unsigned int k = 0; k < ticks; k++) {
		for (int i = SFU; i < slots; i++) {
			for (unsigned int n = 0; n < 160; n++) {
				sample.target[i].dist[SAMPLE_DIST_DWELL].slot[80 + n] += n;
				sample.target[i].dist[SAMPLE_DIST_RUNQ].slot[60 + n] += n;
			}
			for (unsigned int n = 0; n < 40; n++)
				coarse[4 * i + (int)(k % 4)][20 + n]++;
		}
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		tick();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
		ns += (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
	}
	return ns / ticks;
}

Test(values, sixteen_targets_stay_under_6_mib)
{
	size_t before, after;

	memset(&sample, 0xff, sizeof(sample));	/* its pages are not what is measured */
	memset(&sample, 0, sizeof(sample));
	before = resident_bytes();
	begin();
	load(SFU + 16, 300);
	after = resident_bytes();
	fprintf(stderr, "values: 16 targets, 64 threads, 3 windows touch %zu KiB\n", (after - before) / 1024);
#ifndef __SANITIZE_ADDRESS__
	cr_expect_lt(after - before, 6U << 20);
#endif
	cr_expect_gt(after, before);
	values_free(v);
}

Test(values, a_tick_with_64_slots_is_cheap)
{
	double ns;

	begin();
	load(SAMPLE_TARGETS,
	     260); /* until the longest window is full: no first touch of a page is measured */
	ns = load(SAMPLE_TARGETS, 100);
	fprintf(stderr, "values: 64 slots, 256 threads, 3 windows: %.0f us a tick\n", ns / 1e3);
#ifdef __OPTIMIZE__
#ifndef __SANITIZE_ADDRESS__
	cr_expect_lt(ns, 4e6, "the goal is 1 ms; the margin is for a loaded machine");
#endif
#endif
	cr_expect_gt(ns, 0);
	values_free(v);
}
