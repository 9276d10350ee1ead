/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef HAVE_LIBURING
#include <liburing.h>
#endif

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define BATCH 32
#define SEGMENTS 10
#define QUIET_MS 300	/* the receiver gives up when nothing came for so long after the sender ended */

struct stamp { uint64_t ns; uint32_t seq, pad; char fill[184]; };	/* 200 bytes */

uint64_t traffic_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

int traffic_ns_compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void rest_ms(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

static void loopback_up(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	ioctl(fd, SIOCSIFFLAGS, &r);
	close(fd);
}

static int open_receiver(const struct traffic *t, uint16_t *ret_port)
{
	/* keeps datagrams whose sequence number (at offset 8 of the payload) is even; the filter sees the UDP header first */
	struct sock_filter odd[] = { BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 8 + 8),
				     BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0),
				     BPF_STMT(BPF_RET | BPF_K, 0xffff) };
	struct sock_fprog prog = { .len = 4, .filter = odd };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *a = t->family == AF_INET6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4;
	socklen_t len = t->family == AF_INET6 ? sizeof(a6) : sizeof(a4);
	int fd = socket(t->family, SOCK_DGRAM, 0), on = 1, off = 0;

	if (fd < 0)
		return -errno;
	if (t->dual_stack) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		a6.sin6_addr = in6addr_any;
	}
	if (t->rcvbuf && setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &t->rcvbuf, sizeof(t->rcvbuf)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &t->rcvbuf, sizeof(t->rcvbuf));
	if (t->gro)
		setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
	if (bind(fd, a, len) < 0 || getsockname(fd, a, &len) < 0)
		return -errno;
	if (t->filter_odd && setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0)
		return -errno;
	*ret_port = ntohs(t->family == AF_INET6 ? a6.sin6_port : a4.sin_port);
	return fd;
}

static int open_sender(const struct traffic *t, uint16_t port)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(port) };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(port) };
	bool six = t->family == AF_INET6 && !t->dual_stack;
	int fd = socket(six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || connect(fd, six ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4, six ? sizeof(a6) : sizeof(a4)) < 0)
		return -errno;
	return fd;
}

/* ---- the sender ---- */

static void send_all(const struct traffic *t, int fd, unsigned int count, const struct traffic_run *run)
{
	struct traffic_result *r = run->result;
	char byte;

	uint64_t due = traffic_now_ns();
	struct stamp s[SEGMENTS] = { 0 };
	int segment = sizeof(struct stamp);
	unsigned int burst = t->gro ? SEGMENTS : 1;
	struct timespec at;

	if (t->gro)
		setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	for (unsigned int i = 0; i < count; i += burst) {
		if (t->pause_after && i == t->pause_after && read(run->go, &byte, 1) != 1)
			return;
		if (t->gap_us) {
			due += t->gap_us * 1000ULL * burst;
			at = (struct timespec){ .tv_sec = (time_t)(due / 1000000000ULL), .tv_nsec = (long)(due % 1000000000ULL) };
			while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
				;
		}
		for (unsigned int k = 0; k < burst; k++) {
			s[k].seq = i + k;
			s[k].ns = traffic_now_ns();
		}
		if (send(fd, s, sizeof(s[0]) * burst, 0) >= 0)
			__atomic_fetch_add(&r->sent, burst, __ATOMIC_RELAXED);
	}
}

static void sender_main(const struct traffic *t, int fd, struct traffic_run *run)
{
	unsigned int senders = t->senders ? t->senders : 1;
	char byte;

	if (read(run->go, &byte, 1) != 1)
		_exit(0);
	for (unsigned int i = 1; i < senders; i++)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			send_all(t, fd, t->packets / senders, run);
			_exit(0);
		}
	send_all(t, fd, t->packets / senders, run);
	while (wait(NULL) > 0)
		;
	_exit(0);
}

/* ---- the receiver ---- */

static void note(struct traffic_result *r, const struct stamp *s, uint64_t now)
{
	if (r->reads < TRAFFIC_MAX)
		r->own[r->reads] = now - s->ns;
	r->reads++;
}

static int read_one(const struct traffic *t, int fd, struct traffic_result *r)
{
	static struct stamp s[SEGMENTS * 8];	/* room for a merged GRO datagram */
	struct iovec v = { s, sizeof(s) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	ssize_t n;

	if (t->read == READ_PEEK && recv(fd, s, sizeof(s), MSG_PEEK) < 0)
		return -errno;
	if (t->read == READ_RECVMSG)
		n = recvmsg(fd, &m, 0);
	else if (t->read == READ_READ || t->read == READ_PEEK)
		n = read(fd, s, sizeof(s));
	else
		n = recv(fd, s, sizeof(s), 0);
	if (n < 0)
		return -errno;
	note(r, &s[0], traffic_now_ns());
	return 0;
}

static int read_batch(int fd, struct traffic_result *r)
{
	static struct stamp s[BATCH];
	struct mmsghdr m[BATCH];
	struct iovec v[BATCH];
	uint64_t before = traffic_now_ns(), now;
	int n;

	memset(m, 0, sizeof(m));
	for (int i = 0; i < BATCH; i++) {
		v[i] = (struct iovec){ &s[i], sizeof(s[i]) };
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	n = recvmmsg(fd, m, BATCH, MSG_WAITFORONE, NULL);
	if (n < 0)
		return -errno;
	now = traffic_now_ns();
	if (now - before > r->batch_ns)
		r->batch_ns = now - before;
	for (int i = 0; i < n; i++)
		note(r, &s[i], now);
	return 0;
}

#ifdef HAVE_LIBURING
static int read_uring(int fd, struct traffic_result *r)
{
	static struct io_uring ring;
	static bool ready;
	struct io_uring_cqe *cqe;
	struct stamp s;
	int n;

	if (!ready && (n = io_uring_queue_init(4, &ring, 0)) < 0) {
		r->skipped = -n;
		return n;
	}
	ready = true;
	io_uring_prep_recv(io_uring_get_sqe(&ring), fd, &s, sizeof(s), 0);
	io_uring_submit(&ring);
	n = io_uring_wait_cqe(&ring, &cqe);
	if (n < 0)
		return n;
	n = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	if (n < 0)
		return n;
	note(r, &s, traffic_now_ns());
	return 0;
}
#endif

static int read_some(const struct traffic *t, int fd, struct traffic_result *r)
{
	if (t->read == READ_RECVMMSG)
		return read_batch(fd, r);
#ifdef HAVE_LIBURING
	if (t->read == READ_URING)
		return read_uring(fd, r);
#else
	if (t->read == READ_URING) {
		r->skipped = ENOSYS;
		return -ENOSYS;
	}
#endif
	return read_one(t, fd, r);
}

/* quit_again: the write end of quit, to tell ourselves */
static void receive_all(const struct traffic *t, int fd, int quit, int quit_again, struct traffic_result *r)
{
	struct pollfd p[2] = { { fd, POLLIN, 0 }, { quit, POLLIN, 0 } };
	unsigned int stalled = 0;
	char byte;

	if (t->hold_until_sent && (read(quit, &byte, 1) != 1 || write(quit_again, "x", 1) != 1))
		return;
	if (t->hold_ms)
		rest_ms(t->hold_ms);
	for (;;) {
		if (poll(p, 2, -1) < 0)
			return;
		if (p[0].revents) {
			if (t->stall_ms && r->reads / t->stall_every >= stalled) {
				stalled = r->reads / t->stall_every + 1;
				rest_ms(t->stall_ms);
			}
			if (read_some(t, fd, r) < 0)
				return;
		} else if (p[1].revents) {
			return;		/* the sender is done and the queue is empty */
		}
	}
}

static void receiver_main(const struct traffic *t, int fd, struct traffic_run *run, int quit, int finished)
{
	char byte = 0;

	if (t->read == READ_NEVER || t->read == READ_CLOSE) {
		if (read(quit, &byte, 1) < 0)
			_exit(1);
		if (t->read == READ_CLOSE)
			close(fd);
	} else {
		receive_all(t, fd, quit, run->quit, run->result);
	}
	if (write(finished, &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();	/* with the socket open, until traffic_end() */
}

static int warm_up(const struct traffic *t, int tx, int rx)
{
	struct stamp s = { 0 };

	if (t->read == READ_NEVER)
		return 0;
	for (int i = 0; i < 2; i++)	/* even numbers pass the filter */
		if (send(tx, &s, sizeof(s), 0) < 0 || recv(rx, &s, sizeof(s), 0) < 0)
			return -errno;
	return 0;
}

static pid_t child(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

int traffic_start(const struct traffic *t, struct traffic_run *ret)
{
	int go[2], quit[2], finished[2], ready[2], error = 0;
	uint16_t port = 0;
	int rx, tx;

	*ret = (struct traffic_run){ .result = mmap(NULL, sizeof(struct traffic_result), PROT_READ | PROT_WRITE,
						    MAP_SHARED | MAP_ANONYMOUS, -1, 0) };
	if (ret->result == MAP_FAILED || pipe(go) || pipe(quit) || pipe(finished) || pipe(ready))
		return -errno;
	ret->go = go[0];
	ret->quit = quit[1];
	ret->receiver = child();
	if (ret->receiver == 0) {
		if (t->netns) {
			if (unshare(CLONE_NEWNET) < 0)
				ret->result->skipped = errno;
			loopback_up();
		}
		rx = open_receiver(t, &port);
		tx = rx < 0 ? rx : open_sender(t, port);
		error = tx < 0 ? -tx : -warm_up(t, tx, rx);
		if (!error) {
			ret->sender = child();
			if (ret->sender == 0)
				sender_main(t, tx, ret);
		}
		if (write(ready[1], &error, sizeof(error)) != sizeof(error) ||
		    write(ready[1], &ret->sender, sizeof(pid_t)) != sizeof(pid_t))
			_exit(1);
		receiver_main(t, rx, ret, quit[0], finished[1]);
	}
	if (read(ready[0], &error, sizeof(error)) != sizeof(error) ||
	    read(ready[0], &ret->sender, sizeof(pid_t)) != sizeof(pid_t))
		error = EPIPE;
	close(ready[0]);
	close(ready[1]);
	close(go[0]);
	ret->go = go[1];
	ret->quit = quit[1];
	ret->done = finished[0];
	close(quit[0]);
	close(finished[1]);
	return -error;
}

int traffic_go(struct traffic_run *r)
{
	char byte = 1;
	struct pollfd p = { r->done, POLLIN, 0 };
	uint64_t deadline = traffic_now_ns() + 60000000000ULL;
	char path[64];

	if (write(r->go, &byte, 1) != 1)
		return -errno;
	/* the sender is the receiver's child: seen to end when its /proc state is Z or it is gone */
	snprintf(path, sizeof(path), "/proc/%d/stat", r->sender);
	for (;;) {
		char text[256] = "";
		int fd = open(path, O_RDONLY);
		ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		const char *state = n > 0 ? strrchr(text, ')') : NULL;

		if (fd >= 0)
			close(fd);
		if (!state || state[2] == 'Z')
			break;
		if (traffic_now_ns() > deadline)
			return -ETIMEDOUT;
		rest_ms(2);
	}
	if (write(r->quit, &byte, 1) != 1)
		return -errno;
	if (poll(&p, 1, 30000) != 1)
		return -ETIMEDOUT;
	return 0;
}

void traffic_end(struct traffic_run *r)
{
	if (r->receiver > 0) {
		if (r->sender > 0)
			kill(r->sender, SIGKILL);
		kill(r->receiver, SIGKILL);
		waitpid(r->receiver, NULL, 0);
	}
	close(r->go);
	close(r->quit);
	close(r->done);
	munmap(r->result, sizeof(*r->result));
}
