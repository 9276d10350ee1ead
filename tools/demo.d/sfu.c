/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sfu.c - a small forwarding media server: one UDP port, one reader thread, epoll and recvfrom until EAGAIN, a fixed
 * amount of CPU work per packet (what decrypting and rewriting cost a real one), one sendto per packet to the
 * receivers.
 *
 * It knows nothing of dwelld. With --stats it prints once a second, by its own clock, how old the packets were when it
 * read them: the demo's ground truth. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rig.h"

struct sfu {
	int fd;
	bool forward, stats;
	struct sockaddr_in to;
	uint64_t work_ns;	/* of this thread's own CPU time, per packet */
	struct rig_hist age;
	uint64_t cpu_ns, printed_ns;
};

static volatile bool stop;

/* CPU time and not wall time: a thread that waits for its CPU has not done its work yet, as in a real server. */
static void work(uint64_t ns)
{
	const uint64_t end_ns = rig_clock(CLOCK_THREAD_CPUTIME_ID) + ns;

	if (ns)
		while (rig_clock(CLOCK_THREAD_CPUTIME_ID) < end_ns)
			;
}

static void print_stats(struct sfu *s, uint64_t now_ns)
{
	const uint64_t cpu_ns = rig_clock(CLOCK_PROCESS_CPUTIME_ID), wall_ns = now_ns - s->printed_ns;

	if (s->printed_ns)
		printf("sfu packets %llu age_ms mean %.3f p50 %.3f p99 %.3f max %.3f cpu %.2f%%\n",
		       (unsigned long long)s->age.count,
		       s->age.count ? (double)s->age.sum_ns / (double)s->age.count / 1e6 : 0.0,
		       (double)rig_hist_percentile(&s->age, 0.50) / 1e6,
		       (double)rig_hist_percentile(&s->age, 0.99) / 1e6, (double)s->age.max_ns / 1e6,
		       100.0 * (double)(cpu_ns - s->cpu_ns) / (double)wall_ns);
	fflush(stdout);
	memset(&s->age, 0, sizeof(s->age));
	s->cpu_ns = cpu_ns;
	s->printed_ns = now_ns;
}

static void one_packet(struct sfu *s, const uint8_t *buf, size_t length)
{
	struct rig_rtp p;

	if (rig_rtp_read(buf, length, &p) < 0)
		return;
	if (s->stats)
		rig_hist_add(&s->age, rig_now() - p.stamp_ns);
	work(s->work_ns);
	if (s->forward)		/* a full send buffer or a receiver that is gone is that packet's loss, as in UDP */
		(void)sendto(s->fd, buf, length, MSG_DONTWAIT, (struct sockaddr *)&s->to, sizeof(s->to));
}

static void drain(struct sfu *s)
{
	uint8_t buf[RIG_MAX_PACKET];

	while (!stop) {
		const ssize_t n = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n > 0)
			one_packet(s, buf, (size_t)n);
		if (s->stats && rig_now() - s->printed_ns >= RIG_NS)
			print_stats(s, rig_now());
	}
}

static void serve(struct sfu *s)
{
	struct epoll_event event = { .events = EPOLLIN };
	const int poll_fd = epoll_create1(EPOLL_CLOEXEC);

	if (poll_fd < 0 || epoll_ctl(poll_fd, EPOLL_CTL_ADD, s->fd, &event) < 0)
		rig_die("epoll");
	while (!stop) {
		if (epoll_wait(poll_fd, &event, 1, 1000) > 0)
			drain(s);
		if (s->stats && rig_now() - s->printed_ns >= RIG_NS)
			print_stats(s, rig_now());
	}
	close(poll_fd);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "listen", required_argument, NULL, 'l' },
						 { "to", required_argument, NULL, 't' },
						 { "work-us", required_argument, NULL, 'w' },
						 { "cpu", required_argument, NULL, 'c' },
						 { "stats", no_argument, NULL, 's' },
						 { 0 } };
	struct sockaddr_in listen_at = { .sin_family = AF_INET, .sin_port = htons(5004) };
	struct sfu s = { .work_ns = 10000 };
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'l') {
			listen_at = rig_address(optarg);
		} else if (o == 't') {
			s.to = rig_address(optarg);
			s.forward = true;
		} else if (o == 'w') {
			s.work_ns = 1000 * (uint64_t)rig_number("--work-us", optarg, 0, 10000);
		} else if (o == 'c') {
			rig_pin((int)rig_number("--cpu", optarg, 0, 1023));
		} else if (o == 's') {
			s.stats = true;
		} else {
			fprintf(stderr, "usage: %s --listen A:P [--to A:P] [--work-us N] [--cpu N] [--stats]\n", argv[0]);
			return 2;
		}
	}
	rig_die_with_parent();
	rig_stop_on_signals(&stop);
	/* 16 MiB: seconds of traffic fit, so starvation shows as dwell and not as loss */
	s.fd = rig_udp_socket(&listen_at, 16 << 20);
	serve(&s);
	close(s.fd);
	return 0;
}
