/* SPDX-License-Identifier: GPL-2.0-or-later */
/* values_private.h - what values.c fills and values_read.c reads. Layer: decide (pure). */
#ifndef DWELLD_VALUES_PRIVATE_H
#define DWELLD_VALUES_PRIVATE_H

#include "readers.h"
#include "values.h"
#include "window.h"

/* A cumulative histogram of the sample. */
struct values_dist {
	bool known, seen;		/* seen: last[] is a baseline */
	uint64_t since_ns;
	uint64_t last[HIST_SLOTS];
};

/* One target slot: baselines, and the gauges of the latest sample. */
struct values_slot {
	bool used, ever_seen, rtp_ever, idle;	/* idle: no sockets */
	char name[SAMPLE_NAME_MAX];
	uint64_t since_ns;
	struct values_dist dist[SAMPLE_DIST_COUNT];
	struct window_source counter[SAMPLE_COUNTER_COUNT];
	bool oldest_known, fill_known, rcvbuf_known;
	uint64_t oldest_ns;
	double fill;
	uint32_t rcvbuf_bytes;
};

/* Everything of one window length. */
struct values_window {
	struct window clock;
	struct window_hist dist[SAMPLE_TARGETS][SAMPLE_DIST_COUNT];
	struct window_hist host_dist[SAMPLE_HOST_DIST_COUNT];
	struct window_counter counter[SAMPLE_TARGETS][SAMPLE_COUNTER_COUNT];
	struct window_counter host_counter[SAMPLE_HOST_COUNTER_COUNT];
	struct window_peak fill[SAMPLE_TARGETS];
	uint32_t total[SAMPLE_DIST_COUNT][HIST_SLOTS];	/* of the host: sum over slots */
	uint32_t words[];
};

struct values {
	struct values_window *window[SIGNAL_WINDOWS_MAX];
	uint64_t window_ns[SIGNAL_WINDOWS_MAX], tick_ns;
	unsigned int windows;
	struct values_slot slot[SAMPLE_TARGETS];
	struct values_dist host_dist[SAMPLE_HOST_DIST_COUNT];
	struct window_source host_counter[SAMPLE_HOST_COUNTER_COUNT];
	bool unprobed[SIGNAL_ID_COUNT];		/* a probe row says not attached */
	bool streams_known;
	bool missing_set;
	uint32_t missing;
	struct readers *readers;
	struct streams *streams;
	struct window_delta delta;		/* scratch of a tick */
};

/* Index of a window length, 0 = default; -1: not in the model. */
int values_window_find(const struct values *v, uint64_t window_ns);
/* What a term is read from. */
struct values_place {
	const struct values *v;
	const struct values_window *w;
	unsigned int window;
	int slot;
	enum signal_id signal;
	enum signal_stat stat;
	double arg;
	uint32_t need;		/* samples; of what there must be at least one, 1 */
};

/* values_read.c: the answers. values_of is FEW when have < need; with too few samples the number is there
 * all the same. values_ratio clamps part to 0..whole, nothing of nothing is values_idle: FEW, have 0. */
struct value values_ok(double number, uint64_t have, uint64_t need);
struct value values_because(enum value_why why);
struct value values_of(double number, uint64_t have, uint64_t need);
struct value values_idle(const struct values_place *p);
struct value values_ratio(const struct values_place *p, double part, double whole);

/* values_gauge.c: rtp streams; queue, oldest. */
bool values_rtp_ever(const struct values *v, int slot);
struct value values_read_streams(const struct values_place *p);
struct value values_read_gauge(const struct values_place *p);
#endif
