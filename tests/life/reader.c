/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reader.c - a UDP server that feeds itself, for the tests of the daemon's life.
 *
 * usage: reader [-i INTERVAL_US] [-n ROUNDS] [-s FILE] PORT[*COUNT]...
 * Each round sends COUNT datagrams to each of its ports on 127.0.0.1 (0: any), lets them lie for as many microseconds as FILE
 * says (no file: 0) and reads them. "ready PORT..." is printed after the first round. Ends after ROUNDS, or with its parent. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORTS 16

struct port { int fd; unsigned int count; struct sockaddr_in address; };

static void wait_us(long us)
{
	const struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	if (us > 0)
		nanosleep(&t, NULL);
}

static void die(const char *what)
{
	fprintf(stderr, "reader: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void port_open(struct port *p, const char *text)
{
	const char *star = strchr(text, '*');
	socklen_t size = sizeof(p->address);

	p->count = star ? (unsigned int)atoi(star + 1) : 1;
	p->address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(text)),
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	p->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0 || bind(p->fd, (struct sockaddr *)&p->address, sizeof(p->address)) < 0 ||
	    getsockname(p->fd, (struct sockaddr *)&p->address, &size) < 0)
		die(text);
}

static long lie_us(const char *file)
{
	long us = 0;
	FILE *f = file ? fopen(file, "re") : NULL;

	if (f && fscanf(f, "%ld", &us) != 1)
		us = 0;
	if (f)
		fclose(f);
	return us;
}

static void one_round(const struct port *port, unsigned int n, const char *file)
{
	char bytes[100] = "";

	for (unsigned int i = 0; i < n; i++)
		for (unsigned int k = 0; k < port[i].count; k++)
			if (sendto(port[i].fd, bytes, sizeof(bytes), 0, (const struct sockaddr *)&port[i].address,
				   sizeof(port[i].address)) < 0)
				die("send");
	wait_us(lie_us(file));
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int k = 0; k < port[i].count; k++)
			if (recv(port[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT) < 0)
				die("recv");
}

int main(int argc, char **argv)
{
	long interval_us = 10000, rounds = -1;
	const char *file = NULL;
	struct port port[PORTS];
	unsigned int n = 0;
	int c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while ((c = getopt(argc, argv, "i:n:s:")) != -1) {
		switch (c) {
		case 'i': interval_us = atol(optarg); break;
		case 'n': rounds = atol(optarg); break;
		case 's': file = optarg; break;
		default: return 2;
		}
	}
	for (; optind < argc && n < PORTS; optind++)
		port_open(&port[n++], argv[optind]);
	for (long done = 0; rounds < 0 || done < rounds; done++) {
		one_round(port, n, file);
		if (!done) {
			printf("ready");
			for (unsigned int i = 0; i < n; i++)
				printf(" %d", ntohs(port[i].address.sin_port));
			puts("");
			fflush(stdout);
		}
		wait_us(interval_us);
	}
	return 0;
}
