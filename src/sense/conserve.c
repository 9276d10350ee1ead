/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "conserve.h"

#include <stdio.h>

#define SPAN_NS 10000000000ULL
#define OPEN_TICKS 8	/* two seconds */
#define SLACK 32

static void mark(struct conserve *c, uint64_t now_ns)
{
	c->degraded = true;
	c->bad_ns = now_ns;
}

void conserve_step(struct conserve *c, const struct conserve_totals *now, uint64_t now_ns)
{
	const int64_t expected = (int64_t)(now->enqueued - now->read - now->unqueued - now->discarded - now->healed);
	const int64_t off = expected - (int64_t)now->waiting;
	const uint64_t came = now->enqueued - c->base.enqueued;
	/* what may have come between the reading of one counter and of the next */
	const int64_t slack = SLACK + (int64_t)(came / 100);
	const uint64_t strange = now->healed - c->base.healed + now->unstamped - c->base.unstamped;

	if (!c->base_ns) {
		c->base = *now;
		c->base_ns = now_ns;
		return;
	}
	c->open_ticks = off > slack || off < -slack ? c->open_ticks + 1 : 0;
	if (c->open_ticks >= OPEN_TICKS) {
		mark(c, now_ns);
		snprintf(c->why, sizeof(c->why), "degraded: %lld datagrams are unaccounted for", (long long)off);
	}
	if (now_ns - c->base_ns < SPAN_NS)
		return;
	if (came > 100 && strange * 100 > came) {
		mark(c, now_ns);
		snprintf(c->why, sizeof(c->why), "degraded: %llu of the last %llu datagrams left their queue unseen or unstamped",
			 (unsigned long long)strange, (unsigned long long)came);
	} else if (now_ns - c->bad_ns >= SPAN_NS && c->open_ticks < OPEN_TICKS) {
		c->degraded = false;
	}
	c->base = *now;
	c->base_ns = now_ns;
}
