/* SPDX-License-Identifier: GPL-2.0-or-later */
/* drops.bpf.c on this kernel: exact counts of what a socket refused, and nothing of what was only freed. */
#include <criterion/criterion.h>

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bpf_fixture.h"

static struct fixture f;
static int receiver, sender;
static struct sockaddr_in to;

static void drops_open(void)
{
	static const char *const media[] = { "media_ingress", NULL };
	static const char *const drops[] = { "drops_queue", "drops_filter", NULL };
	const struct map_control control = { .epoch = 7, .generation = 1 };
	const uint32_t zero = 0;
	struct sockaddr_in from;
	char byte;

	fixture_open(&f);
	fixture_load(&f, FIXTURE_MEDIA, media);	/* it gives the socket its row */
	fixture_load(&f, FIXTURE_DROPS, drops);
	cr_assert_eq(bpf_map_update_elem(fixture_map(&f, "control"), &zero, &control, 0), 0);
	fixture_attach(&f, "media_ingress");
	fixture_attach(&f, "drops_queue");
	fixture_attach(&f, "drops_filter");
	receiver = fixture_socket(AF_INET, &to);
	sender = fixture_socket(AF_INET, &from);
	cr_assert_eq(sendto(sender, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
	cr_assert_eq(recv(receiver, &byte, 1, 0), 1);
	fixture_own(&f, receiver);
}

static void drops_close(void)
{
	close(receiver);
	close(sender);
	fixture_close(&f);
}

static void send_many(int n)
{
	char data[200] = { 0 };

	for (int i = 0; i < n; i++)
		cr_assert_eq(sendto(sender, data, sizeof(data), 0, (struct sockaddr *)&to, sizeof(to)), (ssize_t)sizeof(data));
}

static uint64_t drops(enum map_count what)
{
	return fixture_count(&f, FIXTURE_SLOT, what);
}

Test(drops, receive_buffer_overflow_is_counted_exactly, .fini = drops_close, .timeout = 30)
{
	const int small = 16384;
	char data[256];
	uint64_t got = 0;
	struct map_socket s;
	uint32_t row;

	drops_open();
	cr_assert_eq(setsockopt(receiver, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	send_many(500);
	while (recv(receiver, data, sizeof(data), MSG_DONTWAIT) > 0)
		got++;
	cr_expect_gt(got, 5);
	cr_expect_lt(got, 400);
	cr_expect_eq(drops(MAP_COUNT_DROP_RCVBUF), 500 - got);
	cr_expect_eq(drops(MAP_COUNT_DROP_MEMORY), 0);
	cr_expect_eq(drops(MAP_COUNT_DROP_SERVER), 0);
	cr_expect_eq(drops(MAP_COUNT_DROP_NETWORK), 0);
	row = fixture_row(&f, receiver);
	cr_assert_eq(bpf_map_lookup_elem(fixture_map(&f, "sockets"), &row, &s), 0);
	cr_expect_geq(s.fill_permille, 1000);
	cr_expect_eq(s.fill_epoch, 7);
}

Test(drops, a_socket_filter_is_the_networks_class, .fini = drops_close, .timeout = 30)
{
	struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = { .len = 1, .filter = &refuse };

	drops_open();
	cr_assert_eq(setsockopt(receiver, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
	send_many(50);
	cr_expect_eq(drops(MAP_COUNT_DROP_NETWORK), 50);
	cr_expect_eq(drops(MAP_COUNT_DROP_RCVBUF), 0);
	cr_expect_eq(drops(MAP_COUNT_DROP_SERVER), 0);
}

static uint64_t drops_anywhere(void)
{
	static const enum map_count all[] = { MAP_COUNT_DROP_RCVBUF, MAP_COUNT_DROP_MEMORY, MAP_COUNT_DROP_SERVER,
					      MAP_COUNT_DROP_NETWORK };
	uint64_t sum = 0;

	for (uint32_t slot = 0; slot < MAP_TARGETS; slot++)
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
			sum += fixture_count(&f, slot, all[i]);
	return sum;
}

/* Frees that are no drops of a UDP socket: TCP closed with unread data and refused, netlink, a closed UDP port, a UDP socket
 * closed with a full queue. */
static void free_without_dropping(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) }, gone;
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), c, s, n;
	socklen_t size = sizeof(a);

	cr_assert_eq(bind(l, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(listen(l, 4), 0);
	cr_assert_eq(getsockname(l, (struct sockaddr *)&a, &size), 0);
	for (int i = 0; i < 20; i++) {
		c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		cr_assert_eq(connect(c, (struct sockaddr *)&a, sizeof(a)), 0);
		s = accept(l, NULL, NULL);
		cr_assert_eq(send(c, "unread", 6, 0), 6);
		close(s);
		close(c);
	}
	close(l);
	c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_expect_lt(connect(c, (struct sockaddr *)&a, sizeof(a)), 0);
	close(c);
	n = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
	cr_assert_eq(send(n, "\x14\0\0\0\x12\0\x01\x03\0\0\0\0\0\0\0\0\0\0\0\0", 20, 0), 20);
	close(n);
	s = fixture_socket(AF_INET, &gone);
	for (int i = 0; i < 20; i++)
		cr_assert_eq(sendto(sender, "x", 1, 0, (struct sockaddr *)&gone, sizeof(gone)), 1);
	close(s);
	for (int i = 0; i < 20; i++)
		sendto(sender, "x", 1, 0, (struct sockaddr *)&gone, sizeof(gone));
}

/* Other programs on this machine may drop datagrams of their own meanwhile: one quiet try of ten is enough. */
Test(drops, c66_frees_of_others_never_count, .fini = drops_close, .timeout = 30)
{
	uint64_t before = 1, after = 0;

	drops_open();
	for (int i = 0; i < 10 && before != after; i++) {
		before = drops_anywhere();
		free_without_dropping();
		after = drops_anywhere();
	}
	cr_expect_eq(after, before);
	cr_expect_eq(drops(MAP_COUNT_DROP_NETWORK) + drops(MAP_COUNT_DROP_RCVBUF), 0);
}
