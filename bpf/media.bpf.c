// SPDX-License-Identifier: GPL-2.0-only
/* media.bpf.c - signal rtp: per stream at arrival, before any queue, what the network lost, reordered, doubled and delayed.
 *
 * One program on every rung, `cgroup_skb`: media_ingress. It reads the payload with bpf_skb_load_bytes, which also reaches
 * into fragments, and walks the segments of a merged datagram. It never refuses a packet.
 *
 * What is RTP is told by RFC 7983's first byte and by two packets in sequence (RFC 3550 A.1); until then a source stands in
 * a table of candidates that random traffic cannot fill. A.1 is changed in two ways: duplicates are told from late packets
 * by a map of the last 128 numbers, and a source that starts anew keeps the loss of its past. */
#include "maps.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define MEDIA_SEGMENTS 64		/* UDP_MAX_SEGMENTS */
#define MEDIA_MAX_DROPOUT 3000
#define MEDIA_MAX_MISORDER 100		/* below the 128 of seen[] */
#define MEDIA_SECOND 1000000000ULL
#define MEDIA_LEARN_AGAIN_NS (5 * MEDIA_SECOND)
#define MEDIA_LEARN_STALE_NS (20 * MEDIA_SECOND)
#define MEDIA_JUMP_NS (2 * MEDIA_SECOND)	/* farther off than any network delays: another clock, or a pause */
#define MEDIA_NO_RESTART 0x10000U

struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, MAP_STREAMS);
	 __type(key, struct map_stream_key); __type(value, struct map_stream); } streams SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, MAP_CANDIDATES);
	 __type(key, __u32); __type(value, struct map_candidate); } candidates SEC(".maps");

struct media_rtp { __u8 first, type; __u8 seq[2], time[4], ssrc[4]; };	/* the fixed header, network order */

static __always_inline __u32 media_u32(const __u8 *b)
{
	return (__u32)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

/* Offset of the UDP payload from the IP header, where the data starts here; -1: not understood. */
static __always_inline int media_payload(struct __sk_buff *skb)
{
	__u8 first, next, extension[2];
	__u32 offset = 40;

	if (bpf_skb_load_bytes(skb, 0, &first, 1))
		return -1;
	if (first >> 4 == 4)
		return (first & 15) * 4 + 8;
	if (first >> 4 != 6 || bpf_skb_load_bytes(skb, 6, &next, 1))
		return -1;
#pragma unroll
	for (int i = 0; i < 5; i++) {
		if (next == IPPROTO_UDP)
			return offset + 8;
		/* hop-by-hop, routing, fragment, authentication, destination options */
		if (i == 4 || (next != 0 && next != 43 && next != 44 && next != 51 && next != 60))
			return -1;
		if (bpf_skb_load_bytes(skb, offset, extension, 2))
			return -1;
		offset += next == 44 ? 8 : next == 51 ? (extension[1] + 2) * 4 : (extension[1] + 1) * 8;
		next = extension[0];
	}
	return -1;
}

/* The usual clock rate near a measured one, 0 if there is none. The three that audio over RTP hardly uses must fit closely,
 * or a delayed 48 kHz would pass for 44.1. */
static __always_inline __u32 media_snap(__u64 hz)
{
#define MEDIA_NEAR(rate, permille) \
	if (hz * 1000 >= (rate) * (1000ULL - (permille)) && hz * 1000 <= (rate) * (1000ULL + (permille))) \
		return rate
	MEDIA_NEAR(11025, 10);
	MEDIA_NEAR(22050, 10);
	MEDIA_NEAR(44100, 10);
	MEDIA_NEAR(8000, 80);
	MEDIA_NEAR(12000, 80);
	MEDIA_NEAR(16000, 80);
	MEDIA_NEAR(24000, 80);
	MEDIA_NEAR(32000, 80);
	MEDIA_NEAR(48000, 80);
	MEDIA_NEAR(90000, 80);
	return 0;
}

static __always_inline void media_clock_start(struct map_stream *s, __u32 rtp_time, __u64 now)
{
	s->rtp_time = s->learn_time = rtp_time;
	s->arrival_ts = s->learn_ts = now;
	s->clock_rate = s->learnt_rate = 0;
	s->jitter16_ns = 0;
}

static __always_inline void media_clock_learn(struct map_stream *s, __u64 now)
{
	__u64 span = now - s->learn_ts;
	__u32 ticks = s->rtp_time - s->learn_time, rate;

	if (span < (s->clock_rate ? MEDIA_LEARN_AGAIN_NS : MEDIA_SECOND))
		return;
	rate = span < MEDIA_LEARN_STALE_NS ? media_snap(ticks * MEDIA_SECOND / span) : 0;
	if (rate && rate != s->clock_rate && (!s->clock_rate || rate == s->learnt_rate)) {
		s->clock_rate = rate;
		s->jitter16_ns = 0;
	}
	s->learnt_rate = rate;
	s->learn_ts = now;
	s->learn_time = s->rtp_time;
}

/* RFC 3550 A.8, in the order of arrival, once per timestamp: the packets of one video frame share it and are paced by the
 * sender. An older timestamp in a late packet counts, for the network reordered it; in one that is in sequence it is a frame
 * shown out of order, which says nothing. */
static __always_inline void media_jitter(struct map_stream *s, __u32 rtp_time, bool late, __u64 now)
{
	__u32 ticks = rtp_time - s->rtp_time;
	bool older = ticks >= 0x80000000U;
	__u64 sent, came = now - s->arrival_ts, off;

	if (!ticks || (older && !late))
		return;
	if (s->clock_rate) {
		sent = (older ? -ticks : ticks) * MEDIA_SECOND / s->clock_rate;
		if (older)
			off = came + sent;
		else
			off = sent > came ? sent - came : came - sent;
		if (off > MEDIA_JUMP_NS) {
			if (!late)
				media_clock_start(s, rtp_time, now);
			return;
		}
		s->jitter16_ns += off - ((s->jitter16_ns + 8) >> 4);
	}
	s->rtp_time = rtp_time;
	s->arrival_ts = now;
	if (!late)
		media_clock_learn(s, now);
}

/* seen[] after the highest number has grown by n, 1 <= n. */
static __always_inline void media_seen_shift(struct map_stream *s, __u32 n)
{
	if (n >= 128) {
		s->seen[1] = s->seen[0] = 0;
	} else if (n >= 64) {
		s->seen[1] = s->seen[0] << (n - 64);
		s->seen[0] = 0;
	} else {
		s->seen[1] = s->seen[1] << n | s->seen[0] >> (64 - n);
		s->seen[0] <<= n;
	}
	s->seen[0] |= 1;
}

static __always_inline void media_late(struct map_stream *s, __u32 behind)
{
	__u64 bit = 1ULL << (behind & 63);
	__u64 *seen = behind < 64 ? &s->seen[0] : &s->seen[1];

	if (s->highest - behind < s->base) {	/* sent before we listened */
		s->reorder++;
	} else if (*seen & bit) {
		s->duplicates++;
	} else {
		*seen |= bit;
		s->reorder++;
		s->received++;
	}
}

static __always_inline void media_run_start(struct map_stream *s, __u16 seq)
{
	s->base = s->highest = 0x10000ULL + seq;
	s->seen[0] = 1;
	s->seen[1] = 0;
	s->restart_seq = MEDIA_NO_RESTART;
	s->received++;
}

/* Sequence number of a packet of a known stream. False: a wild one, perhaps a stray. */
static __always_inline bool media_sequence(struct map_stream *s, __u16 seq)
{
	__u16 ahead = seq - (__u16)s->highest;

	if (!ahead) {
		s->duplicates++;
	} else if (ahead < MEDIA_MAX_DROPOUT) {
		media_seen_shift(s, ahead);
		s->highest += ahead;
		s->received++;
	} else if (ahead > 0x10000 - MEDIA_MAX_MISORDER) {
		media_late(s, 0x10000 - ahead);
	} else if (s->restart_seq == seq) {
		s->past_expected += s->highest - s->base + 1;
		media_run_start(s, seq);
	} else {
		s->restart_seq = (__u16)(seq + 1);
		return false;
	}
	s->restart_seq = MEDIA_NO_RESTART;
	return true;
}

/* The second packet in sequence makes a stream. */
static __always_inline void media_candidate(const struct map_stream_key *key, __u16 seq, __u32 row, const struct media_rtp *h,
					    __u64 now)
{
	__u32 slot = (__u32)((key->cookie ^ key->ssrc) * 0x9e3779b97f4a7c15ULL >> 32) & (MAP_CANDIDATES - 1);
	struct map_candidate *c = bpf_map_lookup_elem(&candidates, &slot);
	struct map_stream fresh = {};

	if (!c)
		return;
	if (c->cookie != key->cookie || c->ssrc != key->ssrc || c->next_seq != seq) {
		c->cookie = key->cookie;
		c->ssrc = key->ssrc;
		c->next_seq = (__u16)(seq + 1);
		return;
	}
	fresh.row = row;
	fresh.created_ts = fresh.last_ts = now;
	fresh.payload_type = h->type & 127;
	media_run_start(&fresh, seq);
	media_clock_start(&fresh, media_u32(h->time), now);
	if (bpf_map_update_elem(&streams, key, &fresh, BPF_NOEXIST) == -7 /* E2BIG */)
		lost_add(MAP_LOST_STREAMS);
}

static __always_inline void media_stream(const struct media_rtp *h, __u64 cookie, __u32 row, __u64 now)
{
	__u64 highest, duplicates;
	struct map_stream_key key = { .cookie = cookie, .ssrc = media_u32(h->ssrc) };
	__u16 seq = (__u16)(h->seq[0] << 8 | h->seq[1]);
	__u32 rtp_time = media_u32(h->time), type = h->type & 127;
	struct map_stream *s = bpf_map_lookup_elem(&streams, &key);

	if (!s) {
		media_candidate(&key, seq, row, h, now);
		return;
	}
	bpf_spin_lock(&s->lock);
	s->last_ts = now;
	highest = s->highest;
	duplicates = s->duplicates;
	if (media_sequence(s, seq) && s->duplicates == duplicates) {
		if (s->payload_type != type) {
			s->payload_type = type;
			media_clock_start(s, rtp_time, now);
		} else {
			media_jitter(s, rtp_time, s->highest == highest, now);
		}
	}
	bpf_spin_unlock(&s->lock);
}

/* One datagram (one segment of a merged one): 1 if it looks like RTP, RTCP or STUN. Global, so that the verifier checks it
 * once and not for each turn of the loop. */
__attribute__((noinline)) int media_segment(struct __sk_buff *skb, __u32 offset, __u64 cookie, __u32 row, __u64 now)
{
	struct media_rtp h;

	if (bpf_skb_load_bytes(skb, offset, &h, 8))	/* the shortest RTCP */
		return 0;
	if (h.first < 4)
		return media_u32(h.time) == 0x2112a442;	/* STUN's magic cookie stands where RTP has its timestamp */
	if (h.first >> 6 != 2)
		return 0;
	if (h.type >= 192 && h.type <= 223)	/* RTCP */
		return 1;
	if ((h.type & 127) >= 64 && (h.type & 127) < 96)	/* no payload type: RFC 5761 keeps them for RTCP */
		return 0;
	if (bpf_skb_load_bytes(skb, offset + 8, h.ssrc, 4))
		return 0;
	media_stream(&h, cookie, row, now);
	return 1;
}

SEC("?cgroup_skb/ingress")
int media_ingress(struct __sk_buff *skb)
{
	__u32 datagrams = 0, media = 0, target = MAP_SLOT_OTHER, size, end;
	struct bpf_sock *sk = skb->sk;
	struct map_socket *s;
	__u64 now, cookie;
	int offset, row;

	if (!sk)
		return 1;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol != IPPROTO_UDP)
		return 1;
	offset = media_payload(skb);
	if (offset < 0)
		return 1;
	now = bpf_ktime_get_ns();
	row = sk_row_of_skb(skb, sk, now);
	if (row < 0)
		return 1;
	s = row ? socket_row(row) : 0;
	if (s)
		target = s->target;
	cookie = s ? s->cookie : bpf_get_socket_cookie(skb);
	size = skb->gso_size;
	end = skb->len;
	for (int i = 0; i < MEDIA_SEGMENTS; i++) {
		datagrams++;
		media += media_segment(skb, offset, cookie, row, now);
		offset += size;
		if (!size || (__u32)offset >= end)
			break;
	}
	count_add(target, MAP_COUNT_DATAGRAMS, datagrams);
	if (media)
		count_add(target, MAP_COUNT_MEDIA, media);
	return 1;
}
