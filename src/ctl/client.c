/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

#define HEADER_MAX 64		/* "OK LENGTH" */

struct talk {
	int fd;
	uint64_t deadline_ns;
	struct client_why *why;
	const char *path;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static int fail(const struct talk *t, int error, const char *what)
{
	snprintf(t->why->text, sizeof(t->why->text), "%s: %s", t->path, what);
	return error;
}

static int fail_connect(const struct talk *t, int error)
{
	const char *hint = "";

	if (error == ENOENT || error == ECONNREFUSED)
		hint = "dwelld does not run (systemctl status dwelld): ";
	else if (error == EACCES)
		hint = "not allowed (root or group dwelld): ";
	snprintf(t->why->text, sizeof(t->why->text), "%s%s: %s", hint, t->path, strerror(error));
	return -error;
}

/* Wait until fd is ready for events, or the deadline of the whole talk. */
static int wait_for(const struct talk *t, short events)
{
	struct pollfd p = { .fd = t->fd, .events = events };
	uint64_t now;
	int r;

	do {
		now = now_ns();
		if (now >= t->deadline_ns)
			return fail(t, -ETIMEDOUT, "no answer in time: dwelld hangs or is starved");
		r = poll(&p, 1, (int)((t->deadline_ns - now) / 1000000 + 1));
	} while (r == 0 || (r < 0 && errno == EINTR));
	return r < 0 ? fail(t, -errno, "poll failed") : 0;
}

static int connect_to(struct talk *t)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int r;

	if (strlen(t->path) >= sizeof(address.sun_path))
		return fail(t, -ENAMETOOLONG, "path of the socket is too long");
	memcpy(address.sun_path, t->path, strlen(t->path));
	t->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->fd < 0)
		return fail(t, -errno, "no socket");
	while (connect(t->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return fail_connect(t, errno);
		/* unix sockets answer EAGAIN when the backlog is full, and give nothing to poll for */
		if (now_ns() >= t->deadline_ns)
			return fail(t, -ETIMEDOUT, "too many clients wait: dwelld hangs or is starved");
		r = poll(NULL, 0, 20);
		if (r < 0 && errno != EINTR)
			return fail(t, -errno, "poll failed");
	}
	return 0;
}

static int send_line(const struct talk *t, const char *line)
{
	char out[1024];
	size_t done = 0, size;
	ssize_t n;
	int r;

	size = strlen(line);
	if (size + 2 > sizeof(out))
		return fail(t, -EMSGSIZE, "too long a question");
	memcpy(out, line, size);
	out[size++] = '\n';
	while (done < size) {
		n = send(t->fd, out + done, size - done, MSG_NOSIGNAL);
		if (n >= 0) {
			done += (size_t)n;
			continue;
		}
		if (errno == EPIPE || errno == ECONNRESET)
			return 0;	/* it may have answered already, e.g. a refusal: read that */
		if (errno != EAGAIN && errno != EINTR)
			return fail(t, -errno, "cannot send");
		r = wait_for(t, POLLOUT);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Some bytes; 0 at the end. */
static ssize_t read_some(const struct talk *t, char *buf, size_t size)
{
	ssize_t n;
	int r;

	for (;;) {
		n = recv(t->fd, buf, size, 0);
		if (n >= 0)
			return n;
		if (errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return fail(t, -errno, "cannot read");
		r = wait_for(t, POLLIN);
		if (r < 0)
			return r;
	}
}

/* Clean a text of several lines, line by line; newlines at its end go. */
static void clean_lines(char *text)
{
	char *end = text + strlen(text), *line, *next;

	while (end > text && end[-1] == '\n')
		*--end = '\0';
	for (line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next = '\0';
		text_clean(line);
		if (!next)
			return;
		/* cleaning only shortens: close the gap */
		end = line + strlen(line);
		memmove(end + 1, next + 1, strlen(next + 1) + 1);
		*end = '\n';
		next = end + 1;
	}
}

/* After "ERR ": "CODE text" to the end of the connection; the code is for programs. */
static int read_refusal(const struct talk *t)
{
	char *const text = t->why->text, *body;
	const size_t room = sizeof(t->why->text);
	size_t length = 0;
	ssize_t n;
	int code;

	while (length + 1 < room) {
		n = read_some(t, text + length, room - 1 - length);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		length += (size_t)n;
	}
	text[length] = '\0';
	code = atoi(text);
	body = text + strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	body += *body == ' ';
	memmove(text, body, strlen(body) + 1);
	clean_lines(text);
	if (!text[0])
		snprintf(text, room, "dwelld refuses without a reason");
	return code == EAGAIN ? -EAGAIN : -EREMOTEIO;	/* EAGAIN: it starts, ask again */
}

/* The first line, byte by byte so that nothing of the body is taken; it is short. */
static int read_header(const struct talk *t, char header[HEADER_MAX])
{
	size_t length = 0;
	ssize_t n;

	while (length + 1 < HEADER_MAX) {
		n = read_some(t, header + length, 1);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return fail(t, -EPROTO, length ? "the answer was cut off" : "closed without an answer");
		if (header[length] == '\n') {
			header[length] = '\0';
			return 0;
		}
		length++;
		if (length == 4 && memcmp(header, "ERR ", 4) == 0)
			return read_refusal(t);
	}
	return fail(t, -EPROTO, "what answers there is not dwelld");
}

static int parse_length(const struct talk *t, const char *text, size_t *ret)
{
	size_t value = 0, digits = 0;

	for (; *text >= '0' && *text <= '9'; text++, digits++) {
		value = value * 10 + (size_t)(*text - '0');
		if (value > CLIENT_ANSWER_MAX)
			return fail(t, -EMSGSIZE, "refused an answer of more than 16 MiB");
	}
	if (digits == 0 || *text)
		return fail(t, -EPROTO, "what answers there is not dwelld");
	*ret = value;
	return 0;
}

static int read_body(const struct talk *t, size_t size, char **ret)
{
	size_t done = 0, room = size < 65536 ? size + 1 : 65536;	/* grown as it comes: LENGTH is a claim */
	char *body = malloc(room), *more;
	ssize_t n = 1;

	while (body && done < size) {
		if (done + 1 >= room) {
			room = room * 2 < size + 1 ? room * 2 : size + 1;
			more = realloc(body, room);
			if (!more)
				break;
			body = more;
		}
		n = read_some(t, body + done, (size < room - 1 ? size : room - 1) - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (body && done == size) {
		body[done] = '\0';
		*ret = body;
		return 0;
	}
	free(body);
	if (n < 0)
		return (int)n;
	return n == 0 ? fail(t, -EPROTO, "the answer was cut off") : fail(t, -ENOMEM, "out of memory");
}

static int converse(struct talk *t, const char *line, char **ret_bytes, size_t *ret_length)
{
	char header[HEADER_MAX];
	size_t size = 0;
	int r;

	r = connect_to(t);
	if (r < 0)
		return r;
	r = send_line(t, line);
	if (r < 0)
		return r;
	r = read_header(t, header);
	if (r < 0)
		return r;
	if (strncmp(header, "OK ", 3) != 0)
		return fail(t, -EPROTO, "what answers there is not dwelld");
	r = parse_length(t, header + 3, &size);
	if (r < 0)
		return r;
	r = read_body(t, size, ret_bytes);
	if (r < 0)
		return r;
	*ret_length = size;
	return 0;
}

int client_ask(const struct client_ask *ask, struct client_why *why, char **ret_bytes, size_t *ret_length)
{
	struct talk t = { .fd = -1, .deadline_ns = now_ns() + ask->timeout_ns, .why = why, .path = ask->path };
	int r;

	r = converse(&t, ask->line, ret_bytes, ret_length);
	if (t.fd >= 0)
		close(t.fd);
	return r;
}
