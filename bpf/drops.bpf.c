// SPDX-License-Identifier: GPL-2.0-only
/* drops.bpf.c - signal drops: datagrams thrown away at a UDP socket, counted for the socket's target.
 *
 * Rungs:
 *   reasons  drops_queue + drops_filter: also what a socket filter, the checksum or the policy threw away (6.11 and later,
 *            where kfree_skb names the receiving socket).
 *   socket   drops_queue alone: receive buffer and memory. Inexact: the other reasons are not seen.
 *
 * Freed is not dropped: drops_filter counts only listed reasons of sockets that have a row, and only UDP sockets have. */
#include "maps.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* names the shared header does not need; the value always comes from the running kernel */
enum skb_drop_reason___drops {
	SKB_DROP_REASON_XFRM_POLICY___drops,
	SKB_DROP_REASON_PFMEMALLOC___drops,
};
struct udp_prod_queue;
struct udp_sock___prod { struct udp_prod_queue *udp_prod_queue; } CORE;	/* 6.18 and later */

/* NULL for a socket that shares row 0 or has none yet. */
static __always_inline struct map_socket *drops_own_row(const struct map_sk *k)
{
	return k->row && k->row != MAP_ROW_NONE ? socket_row(k->row) : 0;
}

/* NULL: not a UDP socket, or one that has had no datagram yet. */
static __always_inline struct map_sk *drops_sk(struct sock *sk, enum scratch_cell cell)
{
	__u64 key;

	if (!cfg_sock_hash)
		return bpf_sk_storage_get(&sk_rows, sk, 0, 0);
	key = pointer_number(cell, sk);
	return bpf_map_lookup_elem(&sk_rows_hash, &key);
}

static __always_inline struct map_socket *drops_row(struct sock *sk)
{
	struct map_sk *k = drops_sk(sk, SCRATCH_BEGIN);

	return k ? drops_own_row(k) : 0;
}

/* A full buffer was full: the high water of this tick says so even if the reader emptied it since. */
static __always_inline void drops_mark_full(struct map_socket *s)
{
	__u32 key = 0, epoch;
	struct map_control *c = bpf_map_lookup_elem(&control, &key);

	if (!c)
		return;
	epoch = *(volatile __u32 *)&c->epoch;
	if (s->fill_epoch != epoch || s->fill_permille < 1000)
		s->fill_permille = 1000;
	s->fill_epoch = epoch;
}

/* Runs for each datagram that the queue refused, on every kernel. */
SEC("?tp_btf/udp_fail_queue_rcv_skb")
int BPF_PROG(drops_queue, int rc, struct sock *sk)
{
	struct map_socket *s = drops_row(sk);
	__u32 target = s ? s->target : MAP_SLOT_OTHER;

	if (rc == -ENOMEM) {
		count_add(target, MAP_COUNT_DROP_RCVBUF, 1);
		if (s)
			drops_mark_full(s);
	} else if (rc == -ENOBUFS) {
		count_add(target, MAP_COUNT_DROP_MEMORY, 1);
	} else {
		count_add(target, MAP_COUNT_DROP_SERVER, 1);
	}
	return 0;
}

/* Value of a reason on this kernel, or one that no skb carries. */
#define DROPS_VALUE(type, name) (bpf_core_enum_value_exists(type, name) ? \
	(__u32)bpf_core_enum_value(type, name) : 0xffffffffU)

static __always_inline bool drops_class(__u32 reason, enum map_count *ret_what)
{
	if (reason == DROPS_VALUE(enum skb_drop_reason, SKB_DROP_REASON_SOCKET_FILTER) ||
	    reason == DROPS_VALUE(enum skb_drop_reason, SKB_DROP_REASON_UDP_CSUM) ||
	    reason == DROPS_VALUE(enum skb_drop_reason___drops, SKB_DROP_REASON_XFRM_POLICY___drops)) {
		*ret_what = MAP_COUNT_DROP_NETWORK;
		return true;
	}
	if (reason == DROPS_VALUE(enum skb_drop_reason___drops, SKB_DROP_REASON_PFMEMALLOC___drops)) {
		*ret_what = MAP_COUNT_DROP_SERVER;
		return true;
	}
	/* Since the producer queue exists the memory check comes after drops_queue's tracepoint; before, it fires too. */
	if (bpf_core_field_exists(struct udp_sock___prod, udp_prod_queue) &&
	    reason == DROPS_VALUE(enum skb_drop_reason, SKB_DROP_REASON_PROTO_MEM)) {
		*ret_what = MAP_COUNT_DROP_MEMORY;
		return true;
	}
	return false;
}

/* The socket is not looked into: some 6.12 kernels take it for never NULL and would drop the check; the helper has its own. */
SEC("?tp_btf/kfree_skb")
int BPF_PROG(drops_filter, struct sk_buff *skb, void *location, __u32 reason, struct sock *rx_sk)
{
	enum map_count what;
	struct map_socket *s;
	struct map_sk *k;

	if (!drops_class(reason, &what) || !rx_sk)
		return 0;
	k = drops_sk(rx_sk, SCRATCH_DROP);
	if (!k)
		return 0;
	s = drops_own_row(k);
	count_add(s ? s->target : MAP_SLOT_OTHER, what, 1);
	return 0;
}
