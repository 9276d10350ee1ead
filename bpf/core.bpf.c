// SPDX-License-Identifier: GPL-2.0-only
/* core.bpf.c - the shared maps, and what keeps them clean: a row is given back when its socket closes or its thread ends.
 * Loaded first. Not a signal. */
#include "maps.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Process context, last close of a socket; what lies unread is discarded with it. */
SEC("?cgroup/sock_release")
int core_sock_release(struct bpf_sock *ctx)
{
	struct map_socket *s;
	struct map_sk *k;
	__u64 key, gone;
	__u32 row;

	if (cfg_sock_hash) {
		key = pointer_number(SCRATCH_RELEASE, ctx);
		k = bpf_map_lookup_elem(&sk_rows_hash, &key);
	} else {
		k = bpf_sk_storage_get(&sk_rows, ctx, 0, 0);
	}
	if (!k || k->closed)
		return 1;
	k->closed = 1;	/* a datagram may still arrive before the socket is unhashed */
	row = k->row;
	if (cfg_sock_hash)
		bpf_map_delete_elem(&sk_rows_hash, &key);
	if (!row || row == MAP_ROW_NONE)
		return 1;
	s = socket_row(row);
	if (!s)
		return 1;
	gone = s->enqueued - s->read - s->unqueued - s->healed;
	if ((__s64)gone > 0)
		count_add(s->target, MAP_COUNT_DISCARDED, gone);
	s->head_ts = 0;
	s->cookie = 0;
	socket_row_give(row);
	return 1;
}

static __always_inline void thread_row_free(struct map_thread *t)
{
	struct map_reader *r;
	__u32 row;

	if (!t || !t->row)
		return;
	row = t->row;
	t->row = 0;
	r = bpf_map_lookup_elem(&readers, &row);
	if (!r)
		return;
	r->id = 0;
	bpf_map_push_elem(&free_readers, &row, 0);
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(core_process_exit, struct task_struct *task)
{
	__u32 tid = task->pid, tgid = task->tgid;

	if (cfg_task_hash) {
		thread_row_free(bpf_map_lookup_elem(&threads_hash, &tid));
		bpf_map_delete_elem(&threads_hash, &tid);
	} else {
		thread_row_free(bpf_task_storage_get(&threads, task, 0, 0));
	}
	/* A leader that ends before its threads is asked for again at their next read. */
	if (tid == tgid)
		bpf_map_delete_elem(&tgid_slot, &tgid);
	return 0;
}

/* The same process, another program: what it was named after is gone. */
SEC("?tp_btf/sched_process_exec")
int BPF_PROG(core_process_exec, struct task_struct *task)
{
	__u32 tid = task->pid, tgid = task->tgid;
	struct map_thread *t;

	bpf_map_delete_elem(&tgid_slot, &tgid);
	if (cfg_task_hash)
		t = bpf_map_lookup_elem(&threads_hash, &tid);
	else
		t = bpf_task_storage_get(&threads, task, 0, 0);
	if (t)
		t->generation = 0;
	return 0;
}

/* Which process holds which UDP socket, in all network namespaces, and how much waits in it. The socket is not trusted
 * enough here for its storage: user space finds its row by cookie or address. Needs bpf_sock_from_file (5.11). */
SEC("?iter/task_file")
int core_owners(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct map_owner o = {};
	struct socket *sock;
	struct sock *sk;

	if (!task || !file)
		return 0;
	sock = bpf_sock_from_file(file);
	if (!sock)
		return 0;
	sk = sock->sk;
	if (!sk || sk->sk_protocol != IPPROTO_UDP)
		return 0;
	o.family = sk->__sk_common.skc_family;
	if (o.family != AF_INET && o.family != AF_INET6)
		return 0;
	o.cookie = sk->__sk_common.skc_cookie.counter;
	o.address = pointer_number(SCRATCH_RELEASE, sk);
	o.tgid = task->tgid;
	o.port = sk->__sk_common.skc_num;
	o.queued_bytes = sk->sk_backlog.rmem_alloc.counter;
	bpf_seq_write(ctx->meta->seq, &o, sizeof(o));
	return 0;
}
