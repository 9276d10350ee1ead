/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "subject.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAYLOAD 200

/* A copy, not a link: the build may lie on another file system. */
static int program_copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, r = 0;
	ssize_t n = 1;

	if (in >= 0)
		out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (out < 0)
		r = -errno;
	while (!r && n > 0) {
		n = sendfile(out, in, NULL, 1 << 20);
		if (n < 0)
			r = -errno;
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return r;
}

static int run(const char *path, const char *argument, pid_t *ret_pid, uint16_t *ret_port)
{
	char text[16] = "";
	int out[2], r = 0;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		execl(path, path, argument, NULL);
		_exit(127);
	}
	close(out[1]);
	if (pid < 0 || read(out[0], text, sizeof(text) - 1) <= 0)	/* ends with the child at the latest */
		r = -ECHILD;
	close(out[0]);
	*ret_pid = pid;
	*ret_port = (uint16_t)strtoul(text, NULL, 10);
	return r;
}

int readers_start(struct readers *r, const char *program, unsigned int count)
{
	char path[128];
	int e;

	*r = (struct readers){ .dir = "/tmp/dwelld-bench-XXXXXX" };
	r->tx = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (r->tx < 0 || !mkdtemp(r->dir))
		return -errno;
	snprintf(path, sizeof(path), "%s/bench-short", r->dir);
	e = program_copy(program, path);
	for (unsigned int i = 0; !e && i < count; i++) {
		snprintf(path, sizeof(path), "%s/bench-r%02u", r->dir, i);
		e = program_copy(program, path);
		if (!e)
			e = run(path, NULL, &r->pid[i], &r->port[i]);
		if (!e)
			r->count++;
	}
	if (e < 0)
		readers_end(r);
	return e;
}

static void send_one(const struct readers *r, uint16_t port, uint32_t ssrc, uint16_t sequence)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port) };
	const uint32_t word[3] = { htonl(0x80600000U | sequence), htonl(sequence * 160U), htonl(ssrc) };	/* 8 kHz, 20 ms */
	uint8_t packet[PAYLOAD] = { 0 };

	memcpy(packet, word, sizeof(word));
	sendto(r->tx, packet, sizeof(packet), 0, (struct sockaddr *)&a, sizeof(a));
}

void readers_send(struct readers *r)
{
	for (unsigned int i = 0; i < r->count; i++)
		send_one(r, r->port[i], 100 + i, r->sequence);
	r->sequence++;
}

int readers_short(struct readers *r, unsigned int datagrams, pid_t *ret_pid)
{
	char path[128], number[16];
	uint16_t port;
	int e;

	snprintf(path, sizeof(path), "%s/bench-short", r->dir);
	snprintf(number, sizeof(number), "%u", datagrams);
	e = run(path, number, ret_pid, &port);
	for (unsigned int i = 0; !e && i < datagrams; i++)
		send_one(r, port, 99, (uint16_t)i);
	return e;
}

void readers_end(struct readers *r)
{
	char path[128];

	for (unsigned int i = 0; i < r->count; i++) {
		kill(r->pid[i], SIGKILL);
		waitpid(r->pid[i], NULL, 0);
	}
	for (unsigned int i = 0; i < READERS_MAX; i++) {
		snprintf(path, sizeof(path), "%s/bench-r%02u", r->dir, i);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/bench-short", r->dir);
	unlink(path);
	rmdir(r->dir);
	if (r->tx >= 0)
		close(r->tx);
}
