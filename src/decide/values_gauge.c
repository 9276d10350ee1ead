/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "values_private.h"

/* ---- streams ---- */

bool values_rtp_ever(const struct values *v, int slot)
{
	int i;

	if (slot != SAMPLE_HOST || v->slot[slot].rtp_ever)
		return v->slot[slot].rtp_ever;
	for (i = SAMPLE_HOST + 1; i < SAMPLE_TARGETS; i++)
		if (v->slot[i].used && v->slot[i].rtp_ever)
			return true;
	return false;
}

struct value values_read_streams(const struct values_place *p)
{
	const struct stream_counts *c = streams_counts(p->v->streams, p->slot, p->window);

	if (!streams_covered_ns(p->v->streams) ||
	    !window_covered_ns(&p->w->clock, p->v->slot[p->slot].since_ns))
		return values_because(VALUE_GAP);
	if (p->signal == SIGNAL_RTP_STREAMS)
		return values_ok(c->active, c->active, 0);
	if (p->signal == SIGNAL_RTP_JITTER)
		return c->jitter_known ? values_of((double)c->jitter_ns, c->jitter_known, p->need)
				       : values_idle(p);
	if (p->signal == SIGNAL_RTP_LATE_STREAMS)
		return values_ratio(p, c->late, c->jitter_known);
	if (p->signal == SIGNAL_RTP_BAD_STREAMS)
		return values_ratio(p, c->bad, c->active);
	return c->active ? values_of(c->worst_loss, c->active, p->need) : values_idle(p);
}

/* ---- gauges ---- */

/* One slot's gauge; false: not known. */
static bool gauge_of(const struct values_place *p, int slot, double *ret)
{
	const struct values_slot *s = &p->v->slot[slot];

	if (!s->used)
		return false;
	if (p->signal == SIGNAL_DWELL_OLDEST)
		*ret = (double)s->oldest_ns;
	else if (p->signal == SIGNAL_QUEUE_RCVBUF)
		*ret = s->rcvbuf_bytes;
	else
		*ret = window_peak_max(&p->w->fill[slot], &p->w->clock);
	return p->signal == SIGNAL_DWELL_OLDEST ? s->oldest_known :
	       p->signal == SIGNAL_QUEUE_RCVBUF ? s->rcvbuf_known : s->fill_known;
}

static bool host_gauge(const struct values_place *p, double *ret, bool *ret_idle)
{
	const bool smallest = p->signal == SIGNAL_QUEUE_RCVBUF;
	bool known = false;
	double one;
	int i;

	*ret_idle = true;
	for (i = SAMPLE_HOST + 1; i < SAMPLE_TARGETS; i++) {
		*ret_idle &= !p->v->slot[i].used || p->v->slot[i].idle;
		if (!gauge_of(p, i, &one))
			continue;
		if (!known || (smallest ? one < *ret : one > *ret))
			*ret = one;
		known = true;
	}
	return known;
}

struct value values_read_gauge(const struct values_place *p)
{
	const uint64_t since_ns = p->v->slot[p->slot].since_ns;
	bool no_socket = p->v->slot[p->slot].idle, known;
	double number = 0;

	if (p->slot == SAMPLE_HOST)
		known = host_gauge(p, &number, &no_socket);
	else
		known = gauge_of(p, p->slot, &number);
	if (!known)
		return no_socket ? values_idle(p) : values_because(VALUE_MISSING);
	if (p->signal == SIGNAL_QUEUE_FILL && !window_warm(&p->w->clock, since_ns))
		return values_because(VALUE_GAP);
	return values_ok(number, 1, 0);
}
