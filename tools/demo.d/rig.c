/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rig.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

uint64_t rig_hist_percentile(const struct rig_hist *h, double share)
{
	const uint64_t wanted = (uint64_t)(share * (double)h->count);
	uint64_t seen = 0;

	for (unsigned int i = 0; i < HIST_SLOTS; i++) {
		seen += h->slot[i];
		if (seen > wanted) {
			const uint64_t ns = hist_midpoint(i);

			return ns < h->max_ns ? ns : h->max_ns;
		}
	}
	return h->max_ns;
}

void rig_hist_merge(struct rig_hist *into, const struct rig_hist *from)
{
	for (unsigned int i = 0; i < HIST_SLOTS; i++)
		into->slot[i] += from->slot[i];
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
}

void rig_rtp_write(uint8_t *buf, const struct rig_rtp *p)
{
	const uint64_t magic = RIG_MAGIC;
	const uint16_t seq = htons(p->seq);
	const uint32_t timestamp = htonl(p->timestamp), ssrc = htonl(p->ssrc);

	buf[0] = 0x80;	/* RTP version 2, no padding, extension or CSRC */
	buf[1] = (uint8_t)((p->marker ? 0x80 : 0) | p->payload_type);
	memcpy(buf + 2, &seq, sizeof(seq));
	memcpy(buf + 4, &timestamp, sizeof(timestamp));
	memcpy(buf + 8, &ssrc, sizeof(ssrc));
	memcpy(buf + 12, &magic, sizeof(magic));
	memcpy(buf + 20, &p->stamp_ns, sizeof(p->stamp_ns));
}

int rig_rtp_read(const uint8_t *buf, size_t length, struct rig_rtp *ret)
{
	uint64_t magic;
	uint32_t word;
	uint16_t seq;

	if (length < RIG_MIN_PACKET || buf[0] != 0x80)
		return -EINVAL;
	memcpy(&magic, buf + 12, sizeof(magic));
	if (magic != RIG_MAGIC)
		return -EINVAL;
	ret->marker = buf[1] & 0x80;
	ret->payload_type = buf[1] & 0x7f;
	memcpy(&seq, buf + 2, sizeof(seq));
	ret->seq = ntohs(seq);
	memcpy(&word, buf + 4, sizeof(word));
	ret->timestamp = ntohl(word);
	memcpy(&word, buf + 8, sizeof(word));
	ret->ssrc = ntohl(word);
	memcpy(&ret->stamp_ns, buf + 20, sizeof(ret->stamp_ns));
	return 0;
}

const char *rig_hurry(int priority)
{
	const struct sched_param wish = { .sched_priority = priority };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &wish) == 0)
		return "fifo";
	if (setpriority(PRIO_PROCESS, 0, -20) < 0)
		fprintf(stderr, "neither SCHED_FIFO nor a better niceness is permitted here\n");
	return "other";
}

void rig_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		fprintf(stderr, "cannot pin to CPU %d: %s\n", cpu, strerror(errno));
}

struct sockaddr_in rig_address(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	char host[INET_ADDRSTRLEN];
	const char *colon = strrchr(text, ':');
	const size_t length = colon ? (size_t)(colon - text) : 0;

	if (length && length < sizeof(host)) {
		memcpy(host, text, length);
		host[length] = '\0';
		a.sin_port = htons((uint16_t)rig_number(text, colon + 1, 1, 65535));
		if (inet_pton(AF_INET, host, &a.sin_addr) == 1)
			return a;
	}
	fprintf(stderr, "%s: expected ADDRESS:PORT\n", text);
	exit(2);
}

long rig_number(const char *option, const char *text, long low, long high)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < low || v > high) {
		fprintf(stderr, "%s: %s: expected a number from %ld to %ld\n", option, text, low, high);
		exit(2);
	}
	return v;
}

int rig_udp_socket(const struct sockaddr_in *address, int rcvbuf_bytes)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		rig_die("socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &rcvbuf_bytes, sizeof(rcvbuf_bytes)) < 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf_bytes, sizeof(rcvbuf_bytes)) < 0)
		rig_die("SO_RCVBUF");
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		rig_die("bind");
	return fd;
}

void rig_die_with_parent(void)
{
	const pid_t parent = getppid();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)	/* it ended before prctl */
		exit(1);
}

static volatile bool *stop_flag;

static void on_stop(int signal_number)
{
	(void)signal_number;
	*stop_flag = true;
}

void rig_stop_on_signals(volatile bool *stop)
{
	const struct sigaction action = { .sa_handler = on_stop };	/* no SA_RESTART: recv and poll end */

	stop_flag = stop;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

void rig_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}
