/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "selftest.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define OVERFLOW_PACKETS 24

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static int fail(struct selftest *t)
{
	int r = -errno;

	selftest_close(t);
	return r;
}

int selftest_open(struct selftest *t)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int small = 1;	/* the kernel makes it its minimum, so that it can be overflowed */

	t->tx = -1;
	t->rx = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (t->rx < 0)
		return fail(t);
	if (setsockopt(t->rx, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) < 0 ||
	    bind(t->rx, (struct sockaddr *)&a, sizeof(a)) < 0 || getsockname(t->rx, (struct sockaddr *)&a, &len) < 0)
		return fail(t);
	t->tx = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (t->tx < 0 || connect(t->tx, (struct sockaddr *)&a, len) < 0)
		return fail(t);
	return 0;
}

void selftest_close(struct selftest *t)
{
	if (t->rx >= 0)
		close(t->rx);
	if (t->tx >= 0)
		close(t->tx);
	t->rx = t->tx = -1;
}

/* One at a time: the receive buffer is the kernel's minimum and holds few. */
int selftest_round(struct selftest *t, unsigned int n, uint64_t wait_ns, struct selftest_clock *ret)
{
	const struct timespec wait = { .tv_nsec = (long)wait_ns };
	char byte[8] = "dwelld";
	uint64_t sent, took;

	*ret = (struct selftest_clock){ .shortest_ns = UINT64_MAX };
	for (unsigned int i = 0; i < n; i++) {
		sent = now_ns();
		if (send(t->tx, byte, sizeof(byte), 0) < 0)
			return -errno;
		if (wait_ns)
			nanosleep(&wait, NULL);
		if (recv(t->rx, byte, sizeof(byte), 0) < 0)
			return errno == EAGAIN ? -ENODATA : -errno;
		took = now_ns() - sent;
		ret->read++;
		if (took < ret->shortest_ns)
			ret->shortest_ns = took;
		if (took > ret->longest_ns)
			ret->longest_ns = took;
	}
	return 0;
}

int selftest_overflow(struct selftest *t, unsigned int *ret_sent, unsigned int *ret_read)
{
	char big[1000];

	memset(big, 0, sizeof(big));
	*ret_sent = *ret_read = 0;
	for (unsigned int i = 0; i < OVERFLOW_PACKETS; i++)
		if (send(t->tx, big, sizeof(big), 0) >= 0)
			++*ret_sent;
	while (recv(t->rx, big, sizeof(big), 0) >= 0)
		++*ret_read;
	return *ret_sent ? 0 : -EIO;
}
