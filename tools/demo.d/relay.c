/* SPDX-License-Identifier: GPL-2.0-or-later */
/* relay.c - the network between senders and server: a two-port bridge in user space that can lose and delay.
 *
 * Frames go through AF_PACKET sockets on both ports, so that the path has no UDP reader of its own. PACKET_VNET_HDR
 * carries the checksum state (else UDP with partial checksums is thrown away behind the bridge). USR1: UDP from the
 * first port to the second is lost and delayed as asked for; USR2: a clean network again. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <getopt.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rig.h"

#define FRAME_MAX 1600
#define FRAMES 8192	/* in flight: 9 000 packets/s for 0.9 s */

struct frame {
	uint64_t due_ns;
	uint32_t length;
	uint8_t data[FRAME_MAX];
};

struct relay {
	int port[2];
	uint64_t loss_permille, delay_ns, jitter_ns;
	struct frame *frame;
	uint16_t heap[FRAMES], spare[FRAMES];
	unsigned int waiting, spares;
	uint64_t random, passed, lost, delayed, refused;
};

static volatile bool stop, impaired;

static void on_switch(int signal_number)
{
	impaired = signal_number == SIGUSR1;
}

static uint64_t dice(struct relay *r, uint64_t below)	/* xorshift64 */
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return below ? r->random % below : 0;
}

static int open_port(const char *name)
{
	const int one = 1, bytes = 16 << 20;
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	at.sll_ifindex = (int)if_nametoindex(name);
	if (fd < 0 || !at.sll_ifindex)
		rig_die(name);
	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) < 0)
		rig_die("AF_PACKET options");
	setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		rig_die("bind to the port");
	return fd;
}

/* The relay has taken its copy; the frame itself, addressed to somebody else, would be thrown away by the IP layer and
 * count as a drop of this host. Ends it in silence (STOLEN), behind the packet sockets. */
static void silence(const char *name)
{
	const struct bpf_insn stolen[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = TC_ACT_STOLEN },
		{ .code = BPF_JMP | BPF_EXIT } };
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)if_nametoindex(name), .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, filter);
	int r;

	filter.prog_fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "demo_stolen", "GPL", stolen, 2, NULL);
	r = filter.prog_fd < 0 ? filter.prog_fd : bpf_tc_hook_create(&hook);
	if (r == 0 || r == -EEXIST)
		r = bpf_tc_attach(&hook, &filter);
	if (r < 0)
		fprintf(stderr, "%s: relayed frames count as drops: %s\n", name, strerror(-r));
	if (filter.prog_fd >= 0)
		close(filter.prog_fd);
}

static void pass(struct relay *r, int port, const uint8_t *data, size_t length)
{
	if (write(r->port[port], data, length) == (ssize_t)length)
		r->passed++;
	else
		r->refused++;
}

static uint64_t due_at(const struct relay *r, unsigned int place)
{
	return r->frame[r->heap[place]].due_ns;
}

static void swap(struct relay *r, unsigned int a, unsigned int b)
{
	const uint16_t keep = r->heap[a];

	r->heap[a] = r->heap[b];
	r->heap[b] = keep;
}

static void hold(struct relay *r, const uint8_t *data, size_t length, uint64_t due_ns)
{
	unsigned int i = r->waiting;

	if (r->spares == 0) {
		r->refused++;
		return;
	}
	r->heap[i] = r->spare[--r->spares];
	r->waiting++;
	r->delayed++;
	r->frame[r->heap[i]].due_ns = due_ns;
	r->frame[r->heap[i]].length = (uint32_t)length;
	memcpy(r->frame[r->heap[i]].data, data, length);
	for (; i && due_at(r, i) < due_at(r, (i - 1) / 2); i = (i - 1) / 2)
		swap(r, i, (i - 1) / 2);
}

static void release_first(struct relay *r)
{
	struct frame *f = &r->frame[r->heap[0]];
	unsigned int i = 0, child;

	pass(r, 1, f->data, f->length);
	r->spare[r->spares++] = r->heap[0];
	r->heap[0] = r->heap[--r->waiting];
	for (; (child = 2 * i + 1) < r->waiting; i = child) {
		if (child + 1 < r->waiting && due_at(r, child + 1) < due_at(r, child))
			child++;
		if (due_at(r, i) <= due_at(r, child))
			return;
		swap(r, i, child);
	}
}

static bool is_udp(const uint8_t *data, size_t length)
{
	const uint8_t *eth = data + sizeof(struct virtio_net_hdr);

	return length > sizeof(struct virtio_net_hdr) + ETH_HLEN + 20 && eth[12] == 0x08 && eth[13] == 0x00 &&
	       eth[ETH_HLEN + 9] == IPPROTO_UDP;
}

static void drain(struct relay *r, int port)
{
	uint8_t buf[FRAME_MAX];
	ssize_t n;

	while ((n = read(r->port[port], buf, sizeof(buf))) > 0) {
		if (port != 0 || !is_udp(buf, (size_t)n) || (!impaired && !r->waiting))
			pass(r, !port, buf, (size_t)n);
		else if (!impaired)	/* behind those that still wait, in order */
			hold(r, buf, (size_t)n, rig_now());
		else if (dice(r, 1000) < r->loss_permille)
			r->lost++;
		else
			hold(r, buf, (size_t)n, rig_now() + r->delay_ns + dice(r, r->jitter_ns));
	}
}

static void run(struct relay *r)
{
	struct pollfd ports[2] = { { .fd = r->port[0], .events = POLLIN }, { .fd = r->port[1], .events = POLLIN } };

	while (!stop) {
		const uint64_t now_ns = rig_now(), due_ns = r->waiting ? due_at(r, 0) : now_ns + RIG_NS;
		const uint64_t wait_ns = due_ns > now_ns ? due_ns - now_ns : 0;
		const struct timespec wait = { .tv_sec = (time_t)(wait_ns / RIG_NS), .tv_nsec = (long)(wait_ns % RIG_NS) };

		if (ppoll(ports, 2, &wait, NULL) > 0) {
			drain(r, 0);
			drain(r, 1);
		}
		while (r->waiting && due_at(r, 0) <= rig_now())
			release_first(r);
	}
	printf("relay passed=%llu lost=%llu delayed=%llu refused=%llu\n", (unsigned long long)r->passed,
	       (unsigned long long)r->lost, (unsigned long long)r->delayed, (unsigned long long)r->refused);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "loss-permille", required_argument, NULL, 'l' },
						 { "delay-ms", required_argument, NULL, 'd' },
						 { "jitter-ms", required_argument, NULL, 'j' },
						 { "cpu", required_argument, NULL, 'c' },
						 { 0 } };
	const struct sigaction on_usr = { .sa_handler = on_switch };
	static struct relay r = { .loss_permille = 80 };
	bool usable = true;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'l')
			r.loss_permille = (uint64_t)rig_number("--loss-permille", optarg, 0, 1000);
		else if (o == 'd')
			r.delay_ns = 1000000 * (uint64_t)rig_number("--delay-ms", optarg, 0, 500);
		else if (o == 'j')
			r.jitter_ns = 1000000 * (uint64_t)rig_number("--jitter-ms", optarg, 0, 500);
		else if (o == 'c')
			rig_pin((int)rig_number("--cpu", optarg, 0, 1023));
		else
			usable = false;
	}
	if (!usable || optind != argc - 2) {
		fprintf(stderr, "usage: %s [--loss-permille N] [--delay-ms N] [--jitter-ms N] [--cpu N] PORT1 PORT2\n", argv[0]);
		return 2;
	}
	rig_die_with_parent();
	rig_stop_on_signals(&stop);
	sigaction(SIGUSR1, &on_usr, NULL);
	sigaction(SIGUSR2, &on_usr, NULL);
	r.port[0] = open_port(argv[optind]);
	r.port[1] = open_port(argv[optind + 1]);
	silence(argv[optind]);
	silence(argv[optind + 1]);
	r.frame = calloc(FRAMES, sizeof(*r.frame));
	if (!r.frame)
		rig_die("calloc");
	for (; r.spares < FRAMES; r.spares++)
		r.spare[r.spares] = (uint16_t)r.spares;
	r.random = rig_now() | 1;
	printf("sched=%s\n", rig_hurry(30));
	fflush(stdout);
	run(&r);
	free(r.frame);
	return 0;
}
