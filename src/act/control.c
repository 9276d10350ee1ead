/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "control_peer.h"
#include "control_socket.h"

#define CLIENTS_MAX 32
#define CLIENTS_PER_UID 8		/* not for root: one user cannot take all places */
#define CLIENT_TIME_US 5000000ULL
#define LINE_MAX_BYTES 1024
#define ANSWER_MAX (4U << 20)
#define PAUSE_US 1000000ULL		/* of accepting, when descriptors or memory ran out */

struct client {
	struct control *control;
	struct client *next;
	int fd;
	sd_event_source *io, *timer;
	struct control_peer peer;
	char in[LINE_MAX_BYTES + 1];
	size_t in_length;
	char head[256];			/* "OK n\n" or the whole of "ERR ..." */
	size_t head_length;
	char *body;			/* malloc'ed by the verb */
	size_t body_length, sent;
	bool answering;
};

struct control {
	sd_event *event;
	char *path;
	struct control_socket socket;
	struct control_groups groups;
	sd_event_source *io, *pause;
	control_verb_fn verb;
	void *userdata;
	struct client *clients;
	unsigned int client_count;
};

static void client_free(struct client *c)
{
	struct client **p = &c->control->clients;
	char rest[4096];

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	c->control->client_count--;
	sd_event_source_disable_unref(c->io);
	sd_event_source_disable_unref(c->timer);
	/* Closing with unread bytes would reset the connection under the answer. */
	(void)!recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT);
	close(c->fd);
	free(c->body);
	free(c);
}

/* False when the client is done with, and freed. */
static bool client_send(struct client *c)
{
	const size_t total = c->head_length + c->body_length;

	while (c->sent < total) {
		const bool in_head = c->sent < c->head_length;
		const char *from = in_head ? c->head + c->sent : c->body + (c->sent - c->head_length);
		const size_t length = in_head ? c->head_length - c->sent : total - c->sent;
		const ssize_t n = send(c->fd, from, length, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS) &&
		    sd_event_source_set_io_events(c->io, EPOLLOUT) >= 0)
			return true;
		if (n < 0)
			break;
		c->sent += (size_t)n;
	}
	client_free(c);
	return false;
}

__attribute__((format(printf, 3, 4)))
static bool client_refuse(struct client *c, int error, const char *format, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	for (char *p = text; *p; p++)	/* the client prints it on a terminal */
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = '?';
	free(c->body);
	c->body = NULL;
	c->body_length = 0;
	c->head_length = (size_t)snprintf(c->head, sizeof(c->head), "ERR %d %s\n", error, text);
	c->answering = true;
	return client_send(c);
}

/* The reason that a verb gave, with its lines: a client prints them all. */
static bool client_verb_failed(struct client *c, int error)
{
	if (!c->body)
		return client_refuse(c, error, "%s", strerror(error));
	c->body_length = strnlen(c->body, ANSWER_MAX);
	for (char *p = c->body; p < c->body + c->body_length; p++)
		if (((unsigned char)*p < ' ' && *p != '\n') || *p == 127)
			*p = '?';
	if (c->body_length == 0 || c->body[c->body_length - 1] != '\n')
		c->body[c->body_length++] = '\n';	/* in place of the terminating zero */
	c->head_length = (size_t)snprintf(c->head, sizeof(c->head), "ERR %d ", error);
	c->answering = true;
	return client_send(c);
}

static bool client_run_verb(struct client *c, const char *verb, const char *args)
{
	size_t length = 0;
	const int r = c->control->verb(c->control->userdata, verb, args, c->peer.uid, &c->body, &length);

	if (r < 0)
		return client_verb_failed(c, -r);
	if (length > ANSWER_MAX)
		return client_refuse(c, EMSGSIZE, "the answer to \"%s\" has %zu bytes, at most %u are sent", verb, length,
				     ANSWER_MAX);
	c->body_length = c->body ? length : 0;
	c->head_length = (size_t)snprintf(c->head, sizeof(c->head), "OK %zu\n", c->body_length);
	c->answering = true;
	return client_send(c);
}

/* c->in is one whole line without its newline. */
static bool client_request(struct client *c)
{
	char *args = strchr(c->in, ' ');

	if (args)
		*args++ = 0;
	switch (control_peer_verb(c->in)) {
	case CONTROL_VERB_UNKNOWN:
		return client_refuse(c, EOPNOTSUPP, "unknown request \"%.40s\"; there are: " CONTROL_PEER_VERBS, c->in);
	case CONTROL_VERB_READ:
		if (!c->peer.may_read)
			return client_refuse(c, EACCES, "%s is for root and the group dwelld", c->in);
		break;
	case CONTROL_VERB_WRITE:
		if (!c->peer.may_write)
			return client_refuse(c, EACCES, "%s is for root and the group dwelld-admin", c->in);
		break;
	}
	return client_run_verb(c, c->in, args ? args : "");
}

static bool client_receive(struct client *c)
{
	const ssize_t n = recv(c->fd, c->in + c->in_length, sizeof(c->in) - c->in_length, MSG_DONTWAIT);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		client_free(c);
		return false;
	}
	c->in_length += (size_t)n;
	end = memchr(c->in, '\n', c->in_length);
	if (!end && c->in_length <= LINE_MAX_BYTES)
		return true;
	if (!end)
		return client_refuse(c, EMSGSIZE, "a request is one line of at most %d bytes", LINE_MAX_BYTES);
	*end = 0;
	if (strlen(c->in) != (size_t)(end - c->in))
		return client_refuse(c, EINVAL, "a request has no zero bytes");
	return client_request(c);
}

static int on_client(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct client *c = userdata;

	(void)s;
	(void)fd;
	if (c->answering)
		client_send(c);
	else if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
		client_receive(c);
	return 0;
}

static int on_client_timeout(sd_event_source *s, uint64_t usec, void *userdata)
{
	(void)s;
	(void)usec;
	client_free(userdata);
	return 0;
}

/* A refusal before there is a client: what does not fit the socket's empty buffer is not sent. */
static void turn_away(int fd, int error, const char *text)
{
	char line[128];
	const int n = snprintf(line, sizeof(line), "ERR %d %s\n", error, text);

	(void)!send(fd, line, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static bool has_place(const struct control *c, const struct control_peer *peer)
{
	unsigned int same = 0;

	if (c->client_count >= CLIENTS_MAX)
		return false;
	/* who may nothing counts as one user, however many they are */
	for (const struct client *k = c->clients; k; k = k->next)
		same += k->peer.uid == peer->uid || (!k->peer.may_read && !peer->may_read);
	return peer->uid == 0 || same < CLIENTS_PER_UID;
}

static void client_new(struct control *c, int fd)
{
	struct control_peer peer;
	struct client *k;
	int r = control_peer_of(fd, &c->groups, &peer);

	if (r < 0) {
		turn_away(fd, -r, "the kernel does not tell who asks");
		return;
	}
	if (!has_place(c, &peer)) {
		turn_away(fd, EBUSY, "too many clients at once, try again");
		return;
	}
	k = calloc(1, sizeof(*k));
	if (!k) {
		turn_away(fd, ENOMEM, "out of memory");
		return;
	}
	k->control = c;
	k->fd = fd;
	k->peer = peer;
	k->next = c->clients;
	c->clients = k;
	c->client_count++;
	r = sd_event_add_io(c->event, &k->io, fd, EPOLLIN, on_client, k);
	if (r >= 0)
		r = sd_event_add_time_relative(c->event, &k->timer, CLOCK_MONOTONIC, CLIENT_TIME_US, 100000,
					       on_client_timeout, k);
	if (r < 0)
		client_refuse(k, -r, "%s", strerror(-r));
}

static int on_pause_over(sd_event_source *s, uint64_t usec, void *userdata)
{
	struct control *c = userdata;

	(void)s;
	(void)usec;
	return sd_event_source_set_enabled(c->io, SD_EVENT_ON);
}

/* Without a descriptor to accept with, a level-triggered source would spin. */
static void pause_accepting(struct control *c)
{
	c->pause = sd_event_source_disable_unref(c->pause);
	if (sd_event_add_time_relative(c->event, &c->pause, CLOCK_MONOTONIC, PAUSE_US, 100000, on_pause_over, c) >= 0)
		sd_event_source_set_enabled(c->io, SD_EVENT_OFF);
}

static int on_connect(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct control *c = userdata;

	(void)s;
	(void)revents;
	/* at most this many per turn of the loop, so that a flood of connections does not hold up a tick */
	for (unsigned int i = 0; i < 8; i++) {
		const int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (peer >= 0) {
			client_new(c, peer);
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			pause_accepting(c);
			break;
		}
	}
	return 0;
}

int control_new(sd_event *event, const char *path, control_verb_fn verb, void *userdata, pid_t *ret_pid,
		struct control **ret)
{
	struct control *c = calloc(1, sizeof(*c));
	int r;

	*ret_pid = 0;
	if (!c)
		return -ENOMEM;
	c->socket = (struct control_socket){ .fd = -1, .lock_fd = -1 };
	c->event = sd_event_ref(event);
	c->verb = verb;
	c->userdata = userdata;
	c->groups = control_peer_groups();
	c->path = strdup(path);
	r = c->path ? control_socket_open(path, ret_pid, &c->socket) : -ENOMEM;
	if (r == 0)
		r = sd_event_add_io(event, &c->io, c->socket.fd, EPOLLIN, on_connect, c);
	if (r < 0) {
		control_free(c);
		return r;
	}
	/* after the ticks and the children of the loop, whatever clients do */
	sd_event_source_set_priority(c->io, SD_EVENT_PRIORITY_IDLE);
	*ret = c;
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	while (c->clients)
		client_free(c->clients);
	sd_event_source_disable_unref(c->io);
	sd_event_source_disable_unref(c->pause);
	control_socket_close(&c->socket, c->path);
	sd_event_unref(c->event);
	free(c->path);
	free(c);
}
