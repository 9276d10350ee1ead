/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reader [COUNT] - a UDP server that only reads. Binds a port of 127.0.0.1, writes its number to stdout, reads COUNT datagrams
 * (without it: for ever) and ends with whoever started it. Copied under several names, it is as many targets. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval deadline = { .tv_sec = 5 };
	unsigned long left = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(a);
	char buf[2048];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) < 0 || getsockname(fd, (struct sockaddr *)&a, &size) < 0)
		return EXIT_FAILURE;
	if (left)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
	printf("%u\n", ntohs(a.sin_port));
	fflush(stdout);
	while (recv(fd, buf, sizeof(buf), 0) >= 0)
		if (left && !--left)
			break;
	return EXIT_SUCCESS;
}
