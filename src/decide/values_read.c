/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "values_private.h"

struct value values_ok(double number, uint64_t have, uint64_t need)
{
	return (struct value){ .why = VALUE_OK, .number = number, .have = have, .need = need };
}

struct value values_because(enum value_why why)
{
	return (struct value){ .why = why };
}

/* With too few samples the number is there all the same, for those who want to see it. */
struct value values_of(double number, uint64_t have, uint64_t need)
{
	struct value r = values_ok(number, have, need);

	if (have < need)
		r.why = VALUE_FEW;
	return r;
}

struct value values_idle(const struct values_place *p)
{
	return values_of(0, 0, p->need ? p->need : 1);
}

struct value values_ratio(const struct values_place *p, double part, double whole)
{
	const uint64_t need = p->need ? p->need : 1;

	if (whole <= 0)
		return values_idle(p);
	part = part < 0 ? 0 : part > whole ? whole : part;
	return values_of(part / whole, whole >= 1 ? (uint64_t)whole : 1, need);
}

/* ---- distributions ---- */

static const uint32_t *dist_slots(const struct values_place *p, bool *ret_known, uint64_t *ret_since_ns)
{
	const bool host_dist = p->signal == SIGNAL_SOFTIRQ_WAIT || p->signal == SIGNAL_SOFTIRQ_RUN;
	const unsigned int d = p->signal == SIGNAL_RUNQ ? SAMPLE_DIST_RUNQ : SAMPLE_DIST_DWELL;
	const unsigned int h =
		p->signal == SIGNAL_SOFTIRQ_RUN ? SAMPLE_HOST_SOFTIRQ_RUN : SAMPLE_HOST_SOFTIRQ_WAIT;
	const struct values_dist *source = host_dist ? &p->v->host_dist[h] : &p->v->slot[p->slot].dist[d];
	unsigned int i;

	if (host_dist || p->slot != SAMPLE_HOST) {
		*ret_known = source->known;
		*ret_since_ns = source->since_ns;
		return host_dist ? p->w->host_dist[h].sum : p->w->dist[p->slot][d].sum;
	}
	*ret_known = false;
	*ret_since_ns = 0;
	for (i = SAMPLE_HOST + 1; i < SAMPLE_TARGETS; i++)
		*ret_known |= p->v->slot[i].used && p->v->slot[i].dist[d].known;
	return p->w->total[d];
}

static unsigned int stat_permille(enum signal_stat stat)
{
	return stat == STAT_P50 ? 500 : stat == STAT_P90 ? 900 : stat == STAT_P99 ? 990 : 999;
}

static struct value dist_stat(const struct values_place *p, const uint32_t *slot, uint64_t covered_ns)
{
	const uint64_t have = hist_count(slot, HIST_FINE);
	const uint64_t need = p->need ? p->need : 1;

	switch (p->stat) {
	case STAT_P50:
	case STAT_P90:
	case STAT_P99:
	case STAT_P999:
		return values_of((double)hist_percentile_ns(slot, HIST_FINE, stat_permille(p->stat)), have,
				 need);
	case STAT_MAX:
		return values_of((double)hist_max_ns(slot, HIST_FINE), have, need);
	case STAT_MEAN:
		return values_of(hist_mean_ns(slot, HIST_FINE), have, need);
	case STAT_OVER:
		return values_of(hist_over(slot, HIST_FINE, p->arg), have, need);
	case STAT_RATE:
		return values_of((double)have * 1e9 / (double)covered_ns, have, p->need);
	case STAT_COUNT:
		return values_of((double)have, have, p->need);
	case STAT_BARE:
	case STAT_SHARE:
	case STAT_ID_COUNT:
		break;
	}
	return values_because(VALUE_NEVER);	/* no such statistic: the parser refuses it */
}

static bool stat_needs_time(enum signal_stat stat)
{
	return stat == STAT_RATE || stat == STAT_COUNT || stat == STAT_MAX;
}

static struct value gap_or(const struct values_place *p, uint64_t since_ns, struct value otherwise)
{
	const struct window *w = &p->w->clock;

	if (!window_covered_ns(w, since_ns) || (stat_needs_time(p->stat) && !window_warm(w, since_ns)))
		return values_because(VALUE_GAP);
	return otherwise;
}

static struct value read_dist(const struct values_place *p)
{
	uint64_t since_ns, covered_ns;
	const uint32_t *slot;
	bool known;

	slot = dist_slots(p, &known, &since_ns);
	covered_ns = window_covered_ns(&p->w->clock, since_ns);
	if (!known)
		return values_because(VALUE_MISSING);
	return gap_or(p, since_ns, covered_ns ? dist_stat(p, slot, covered_ns) : values_because(VALUE_GAP));
}

static struct value read_worst(const struct values_place *p)
{
	bool known;
	uint64_t since_ns;
	const struct values_place dwell = { .v = p->v, .w = p->w, .slot = p->slot, .signal = SIGNAL_DWELL };

	dist_slots(&dwell, &known, &since_ns);
	if (!known)
		return values_because(VALUE_MISSING);
	if (!readers_covered_ns(p->v->readers, p->window))
		return values_because(VALUE_GAP);
	return readers_worst(p->v->readers, p->slot, p->window, p->need ? p->need : 1, NULL);
}

/* ---- counters ---- */

struct count { bool known; uint64_t sum, since_ns; };

static struct count slot_count(const struct values_place *p, enum sample_counter c)
{
	struct count r = { 0 };
	int i;

	if (p->slot != SAMPLE_HOST) {
		const struct window_source *s = &p->v->slot[p->slot].counter[c];

		return (struct count){s->seen,
				      window_counter_sum(&p->w->counter[p->slot][c], &p->w->clock, s),
				      s->since_ns};
	}
	for (i = SAMPLE_HOST + 1; i < SAMPLE_TARGETS; i++) {
		const struct window_source *s = &p->v->slot[i].counter[c];

		if (!p->v->slot[i].used || !s->seen)
			continue;
		r.known = true;
		r.sum += window_counter_sum(&p->w->counter[i][c], &p->w->clock, s);
	}
	return r;
}

static struct count host_count(const struct values_place *p, enum sample_host_counter c)
{
	const struct window_source *s = &p->v->host_counter[c];

	return (struct count){s->seen, window_counter_sum(&p->w->host_counter[c], &p->w->clock, s),
			      s->since_ns};
}

/* part of whole: both counters must be known and cover the same time. */
static struct value count_ratio(const struct values_place *p, struct count part, struct count whole,
				bool whole_has_part)
{
	const uint64_t since_ns = part.since_ns > whole.since_ns ? part.since_ns : whole.since_ns;
	double all = (double)whole.sum;

	if (!part.known || !whole.known)
		return values_because(VALUE_MISSING);
	if (!whole_has_part)
		all += (double)part.sum;
	else if (part.sum > whole.sum)	/* dropped before it could be counted as arrived */
		all = (double)part.sum;
	return gap_or(p, since_ns, values_ratio(p, (double)part.sum, all));
}

static struct value count_stat(const struct values_place *p, struct count n)
{
	const uint64_t covered_ns = window_covered_ns(&p->w->clock, n.since_ns);

	if (!n.known)
		return values_because(VALUE_MISSING);
	if (!covered_ns)
		return values_because(VALUE_GAP);
	return gap_or(
		p, n.since_ns,
		values_of(p->stat == STAT_RATE ? (double)n.sum * 1e9 / (double)covered_ns : (double)n.sum,
			  n.sum, p->need));
}

static struct value read_counter(const struct values_place *p, enum sample_counter c,
				 enum sample_counter arrivals)
{
	if (p->stat == STAT_SHARE)
		return count_ratio(p, slot_count(p, c), slot_count(p, arrivals), true);
	return count_stat(p, slot_count(p, c));
}

static struct value read_host_counter(const struct values_place *p, enum sample_host_counter c)
{
	if (p->stat == STAT_SHARE)	/* an interface's packets are those it did not drop */
		return count_ratio(p, host_count(p, c), host_count(p, SAMPLE_HOST_NIC_PACKETS), false);
	return count_stat(p, host_count(p, c));
}

static struct value read_host_ratio(const struct values_place *p, enum sample_host_counter c)
{
	return count_ratio(p, host_count(p, c), host_count(p, SAMPLE_HOST_CPU_TOTAL), true);
}

/* expected - received is signed: late packets of an earlier gap may make it negative, which is no loss. */
static struct value read_loss(const struct values_place *p)
{
	const struct count expected = slot_count(p, SAMPLE_RTP_EXPECTED),
			   received = slot_count(p, SAMPLE_RTP_RECEIVED);
	struct count lost = received;

	lost.sum = expected.sum > received.sum ? expected.sum - received.sum : 0;
	return count_ratio(p, lost, expected, true);
}

/* ---- all of them ---- */

static struct value read_signal(const struct values_place *p)
{
	switch (p->signal) {
	case SIGNAL_DWELL:
	case SIGNAL_RUNQ:
	case SIGNAL_SOFTIRQ_WAIT:
	case SIGNAL_SOFTIRQ_RUN:
		return read_dist(p);
	case SIGNAL_DWELL_WORST:
		return read_worst(p);
	case SIGNAL_RTP_LOSS:
		return read_loss(p);
	case SIGNAL_RTP_LOSS_WORST:
	case SIGNAL_RTP_BAD_STREAMS:
	case SIGNAL_RTP_LATE_STREAMS:
	case SIGNAL_RTP_STREAMS:
	case SIGNAL_RTP_JITTER:
		return values_read_streams(p);
	case SIGNAL_DWELL_OLDEST:
	case SIGNAL_QUEUE_FILL:
	case SIGNAL_QUEUE_RCVBUF:
		return values_read_gauge(p);
	case SIGNAL_HOST_CPU_BUSY:
		return read_host_ratio(p, SAMPLE_HOST_CPU_BUSY);
	case SIGNAL_HOST_STEAL:
		return read_host_ratio(p, SAMPLE_HOST_CPU_STEAL);
	case SIGNAL_DROPS_SERVER:
		return read_counter(p, SAMPLE_DROPS_SERVER, SAMPLE_ENQUEUED);
	case SIGNAL_DROPS_NETWORK:
		return read_counter(p, SAMPLE_DROPS_NETWORK, SAMPLE_ENQUEUED);
	case SIGNAL_DROPS_RCVBUF:
		return read_counter(p, SAMPLE_DROPS_RCVBUF, SAMPLE_ENQUEUED);
	case SIGNAL_RTP_REORDER:
		return read_counter(p, SAMPLE_RTP_REORDER, SAMPLE_RTP_RECEIVED);
	case SIGNAL_RTP_DUPLICATES:
		return read_counter(p, SAMPLE_RTP_DUPLICATES, SAMPLE_RTP_RECEIVED);
	case SIGNAL_HOST_NIC_DROPS:
		return read_host_counter(p, SAMPLE_HOST_NIC_DROPS);
	case SIGNAL_HOST_SQUEEZED:
		return read_host_counter(p, SAMPLE_HOST_SQUEEZED);
	case SIGNAL_COVERAGE:
		return p->v->missing_set ? values_ok(p->v->missing, 1, 0) : values_because(VALUE_GAP);
	case SIGNAL_ID_COUNT:
		break;
	}
	return values_because(VALUE_NEVER);
}

static bool is_rtp(enum signal_id signal)
{
	return signal_table[signal].probe && !strcmp(signal_table[signal].probe, "rtp");
}

/* Missing before never: without the probe nobody knows whether there ever was any. */
static enum value_why slot_why(const struct values_place *p)
{
	const struct values_slot *s = &p->v->slot[p->slot];

	if (p->v->unprobed[p->signal] || (is_rtp(p->signal) && !p->v->streams_known))
		return VALUE_MISSING;
	if (signal_table[p->signal].scope == SIGNAL_OF_HOST)
		return VALUE_OK;
	if (p->slot >= SAMPLE_FIRST_FREE && (!s->used || !s->ever_seen))
		return VALUE_NEVER;
	if (p->slot != SAMPLE_HOST && !s->used)
		return VALUE_NEVER;
	return is_rtp(p->signal) && !values_rtp_ever(p->v, p->slot) ? VALUE_NEVER : VALUE_OK;
}

struct value values_read(const struct values *v, int slot, const struct expr_term *term, double over_arg,
			 const uint32_t need_override[STAT_ID_COUNT])
{
	const int window = values_window_find(v, term->window_ns);
	struct values_place p = {
		.v = v, .slot = slot, .signal = term->signal, .stat = term->stat, .arg = over_arg};
	enum value_why why;

	if (window < 0 || slot < 0 || slot >= SAMPLE_TARGETS)
		return values_because(VALUE_GAP);
	p.window = (unsigned int)window;
	p.w = v->window[window];
	p.need = signal_stats[term->stat].need;
	if (need_override && need_override[term->stat])
		p.need = need_override[term->stat];
	why = slot_why(&p);
	return why == VALUE_OK ? read_signal(&p) : values_because(why);
}

const uint32_t *values_hist(const struct values *v, int slot, enum signal_id signal, uint64_t window_ns)
{
	const int window = values_window_find(v, window_ns);
	struct values_place p = { .v = v, .slot = slot, .signal = signal };
	const uint32_t *slots;
	uint64_t since_ns;
	bool known;

	if (window < 0 || slot < 0 || slot >= SAMPLE_TARGETS || signal == SIGNAL_DWELL_WORST ||
	    !(signal_table[signal].stats & (1U << STAT_P99)))
		return NULL;
	p.w = v->window[window];
	if (slot_why(&p) != VALUE_OK)
		return NULL;
	slots = dist_slots(&p, &known, &since_ns);
	return known && window_covered_ns(&p.w->clock, since_ns) ? slots : NULL;
}

bool values_stream_counts(const struct values *v, int slot, uint64_t window_ns, struct stream_counts *ret)
{
	const int window = values_window_find(v, window_ns);

	if (window < 0 || slot < 0 || slot >= SAMPLE_TARGETS || v->unprobed[SIGNAL_RTP_STREAMS] ||
	    !v->streams_known)
		return false;
	*ret = *streams_counts(v->streams, slot, (unsigned int)window);
	return true;
}

uint32_t values_worst_tid(const struct values *v, int slot, uint64_t window_ns)
{
	const int window = values_window_find(v, window_ns);
	uint32_t tid = 0;

	if (window >= 0 && slot >= 0 && slot < SAMPLE_TARGETS)
		readers_worst(v->readers, slot, (unsigned int)window, signal_stats[STAT_P99].need, &tid);
	return tid;
}

bool values_window_info(const struct values *v, uint64_t window_ns, struct values_window_info *ret)
{
	const int window = values_window_find(v, window_ns);

	if (window < 0)
		return false;
	ret->covered_ns = window_covered_ns(&v->window[window]->clock, 0);
	ret->stretched = window_stretched(&v->window[window]->clock);
	return true;
}

uint32_t values_untracked_readers(const struct values *v)
{
	return readers_untracked(v->readers);
}

uint32_t values_untracked_streams(const struct values *v)
{
	return streams_untracked(v->streams);
}
