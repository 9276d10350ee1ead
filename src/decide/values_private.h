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
#endif
