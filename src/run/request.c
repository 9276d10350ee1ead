/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "request.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Bytes read until the end of file or size, whichever is first; negative errno. */
static ssize_t read_until(int fd, int64_t until_ms, char *buf, size_t size)
{
	size_t length = 0;

	while (length < size) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		const int64_t left = until_ms - now_ms();
		ssize_t n;

		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			return -ETIMEDOUT;
		n = read(fd, buf + length, size - length);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		length += (size_t)n;
	}
	return (ssize_t)length;
}

static void copy_text(char *to, size_t size, const char *from)
{
	size_t n = 0;

	for (; from[n] && n + 1 < size; n++)
		to[n] = (unsigned char)from[n] < 0x20 || from[n] == 0x7f ? '?' : from[n];
	to[n] = '\0';
}

static int read_number(const char *text, uint64_t max, uint64_t *ret)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || errno || *end || n > max)
		return -EINVAL;
	*ret = n;
	return 0;
}

static int take_number(struct request *r, const char *key, const char *value)
{
	uint64_t n;

	if (strcmp(key, "seq") == 0)
		return read_number(value, UINT64_MAX, &r->seq);
	if (strcmp(key, "attempt") == 0) {
		if (read_number(value, UINT32_MAX, &n) < 0 || n == 0)
			return -EINVAL;
		r->attempt = (uint32_t)n;
		return 0;
	}
	if (strcmp(key, "length") == 0) {
		if (read_number(value, REQUEST_BODY_MAX, &n) < 0)
			return -EINVAL;
		r->length = (size_t)n;
		return 0;
	}
	if (strcmp(key, "dry_run") == 0) {
		if (read_number(value, 1, &n) < 0)
			return -EINVAL;
		r->dry_run = n == 1;
		return 0;
	}
	return -ENOENT;
}

static int take(struct request *r, const char *key, const char *value)
{
	const struct { const char *key; char *to; size_t size; } texts[] = {
		{ "hook", r->hook, sizeof(r->hook) }, { "target", r->target, sizeof(r->target) },
		{ "action", r->action, sizeof(r->action) }, { "event", r->event, sizeof(r->event) },
		{ "rule", r->rule, sizeof(r->rule) }, { "unit", r->unit, sizeof(r->unit) },
		{ "cgroup", r->cgroup, sizeof(r->cgroup) }, { "pids", r->pids, sizeof(r->pids) },
		{ "ports", r->ports, sizeof(r->ports) }, { "class", r->class, sizeof(r->class) },
		{ "severity", r->severity, sizeof(r->severity) }, { "alert_id", r->alert_id, sizeof(r->alert_id) },
		{ "summary", r->summary, sizeof(r->summary) },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(key, texts[i].key) != 0)
			continue;
		copy_text(texts[i].to, texts[i].size, value);
		return 0;
	}
	return take_number(r, key, value);
}

static int take_head(struct request *r, char *head, char *why, size_t size)
{
	char *rest = head, *line = strsep(&rest, "\n");

	if (strcmp(line, "dwelld-hook 1") != 0) {
		snprintf(why, size, "first line \"%.40s\", expected \"dwelld-hook 1\"", line);
		return -EINVAL;
	}
	while (rest && (line = strsep(&rest, "\n")) && *line) {
		char *equals = strchr(line, '=');

		if (!equals) {
			snprintf(why, size, "line \"%.60s\", expected key=value", line);
			return -EINVAL;
		}
		*equals = '\0';
		if (take(r, line, equals + 1) < 0) {
			snprintf(why, size, "%.40s=%.60s: not a known key with a good value", line, equals + 1);
			return -EINVAL;
		}
	}
	return 0;
}

/* A hook's name becomes part of file names. */
static int check_names(const struct request *r, char *why, size_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@-";

	if (!r->hook[0] || r->hook[0] == '.' || r->hook[strspn(r->hook, plain)]) {
		snprintf(why, size, "hook=%s: expected a name of [A-Za-z0-9._:@-]", r->hook);
		return -EINVAL;
	}
	if (strcmp(r->action, "do") != 0 && strcmp(r->action, "undo") != 0 && strcmp(r->action, "notify") != 0) {
		snprintf(why, size, "action=%s: expected do, undo or notify", r->action);
		return -EINVAL;
	}
	if (!r->attempt) {
		snprintf(why, size, "attempt is missing, expected 1 or more");
		return -EINVAL;
	}
	return 0;
}

int request_read(int fd, int timeout_ms, struct request *ret, char *why, size_t size)
{
	static char text[REQUEST_HEAD_MAX + REQUEST_BODY_MAX + 1];	/* one request per process */
	const ssize_t n = read_until(fd, now_ms() + timeout_ms, text, sizeof(text));
	struct request *r = ret;
	char *body;
	int err;

	if (n < 0) {
		snprintf(why, size, "stdin: %s", n == -ETIMEDOUT ? "no whole request in time" : strerror((int)-n));
		return (int)n;
	}
	if ((size_t)n == sizeof(text)) {
		snprintf(why, size, "more than %d bytes", REQUEST_HEAD_MAX + REQUEST_BODY_MAX);
		return -E2BIG;
	}
	text[n] = '\0';
	body = memmem(text, (size_t)n, "\n\n", 2);
	if (!body || memchr(text, '\0', (size_t)(body - text))) {
		snprintf(why, size, "expected header lines, an empty line, then the event");
		return -EINVAL;
	}
	*++body = '\0';
	body++;
	*r = (struct request){ 0 };
	err = take_head(r, text, why, size);
	if (err == 0)
		err = check_names(r, why, size);
	if (err < 0)
		return err;
	if (r->length != (size_t)(text + n - body)) {
		snprintf(why, size, "length=%zu, but %zu bytes came", r->length, (size_t)(text + n - body));
		return -EINVAL;
	}
	memcpy(r->body, body, r->length);
	return 0;
}
