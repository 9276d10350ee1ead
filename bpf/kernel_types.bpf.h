/* SPDX-License-Identifier: GPL-2.0-only */
/* kernel_types.bpf.h - only the kernel fields that the programs read, relocated at load by CO-RE. No vmlinux.h, so that
 * a build needs no kernel with BTF. A renamed field names the kernel version. */
#ifndef DWELLD_KERNEL_TYPES_BPF_H
#define DWELLD_KERNEL_TYPES_BPF_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define CORE __attribute__((preserve_access_index))

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_UDP 17
#define ENOMEM 12
#define EFAULT 14
#define ENOBUFS 105
#define MSG_PEEK 2
#define MSG_ERRQUEUE 0x2000
#define SOCK_RCVBUF_LOCK 2

typedef struct { int counter; } atomic_t;

struct sk_buff_head { __u32 qlen; } CORE;
struct sock_common {
	unsigned short skc_family;
	__u16 skc_num;
	struct { __s64 counter; } skc_cookie;	/* 0 until somebody asked for it */
} CORE;
struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	struct { atomic_t rmem_alloc; } sk_backlog;
	int sk_rcvbuf;
	__u16 sk_protocol;	/* 5.6 and later: no bit field any more */
	__u8 sk_userlocks : 4;
} CORE;
struct udp_sock {
	struct sk_buff_head reader_queue;
	void *udp_prod_queue;	/* 6.18 and later */
} CORE;
struct sk_buff {
	__u32 len, truesize;
	struct { atomic_t refs; } users;
} CORE;

struct bpf_local_storage;
struct sched_info { unsigned long long last_queued; } CORE;
struct rq { __u64 clock; } CORE;
struct cfs_rq { struct rq *rq; } CORE;
struct sched_entity { struct cfs_rq *cfs_rq; } CORE;
struct task_struct {
	int pid, tgid;
	unsigned int __state;			/* 5.14 and later */
	struct bpf_local_storage *bpf_storage;	/* 5.11 and later */
	struct sched_info sched_info;
	struct sched_entity se;
	struct task_struct *group_leader;
	__u64 start_time;
} CORE;
struct task_struct___old { volatile long state; } CORE;	/* before 5.14 */

struct file;
struct socket { struct sock *sk; } CORE;
struct seq_file;
struct bpf_iter_meta { struct seq_file *seq; __u64 session_id, seq_num; } CORE;
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
} CORE;
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} CORE;

/* values move between kernels: always through bpf_core_enum_value() */
enum skb_drop_reason {
	SKB_DROP_REASON_SOCKET_FILTER,
	SKB_DROP_REASON_SOCKET_RCVBUFF,
	SKB_DROP_REASON_PROTO_MEM,
	SKB_DROP_REASON_UDP_CSUM,
};
#endif
