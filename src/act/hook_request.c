/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hook_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAD_MAX 4096
#define BODY_MAX 32768

struct head { char text[HEAD_MAX]; size_t length; };

static void put(struct head *h, const char *key, const char *value)
{
	const size_t start = h->length;
	const int n = snprintf(h->text + start, sizeof(h->text) - start, "%s=%s\n", key, value);

	if (n < 0 || (size_t)n >= sizeof(h->text) - start) {
		h->length = sizeof(h->text);	/* found full by the caller */
		return;
	}
	h->length += (size_t)n;
	for (size_t i = start; i + 1 < h->length; i++) {	/* a line stays one line, whatever the value holds */
		if ((unsigned char)h->text[i] < 0x20)
			h->text[i] = '?';
	}
}

static void put_event(struct head *h, const struct event *e)
{
	char pids[16 * 12] = "";
	size_t n = 0;

	for (uint32_t i = 0; i < e->pid_count && i < 16; i++)
		n += (size_t)snprintf(pids + n, sizeof(pids) - n, "%s%" PRIu32, i ? " " : "", e->pids[i]);
	put(h, "event", event_kind_name(e->kind));
	put(h, "rule", e->rule);
	put(h, "unit", e->unit);
	put(h, "cgroup", e->cgroup);
	put(h, "pids", pids);
	put(h, "ports", e->ports);
	put(h, "class", rule_class_name(e->class));
	put(h, "severity", severity_name(e->severity));
	put(h, "alert_id", e->alert_id);
	put(h, "summary", e->summary);
}

static int build_head(const struct hook_request *q, size_t body_length, struct head *h)
{
	char number[24];

	h->length = (size_t)snprintf(h->text, sizeof(h->text), "dwelld-hook 1\n");
	put(h, "hook", q->hook);
	put(h, "action", q->action);
	put(h, "target", q->target);
	snprintf(number, sizeof(number), "%" PRIu64, q->seq);
	put(h, "seq", number);
	snprintf(number, sizeof(number), "%" PRIu32, q->attempt);
	put(h, "attempt", number);
	put_event(h, q->event);
	snprintf(number, sizeof(number), "%zu", body_length);
	put(h, "length", number);
	if (h->length + 1 >= sizeof(h->text))
		return -EINVAL;
	h->text[h->length++] = '\n';
	return 0;
}

static int write_file(const struct head *h, const char *body, size_t body_length)
{
	const int fd = memfd_create("hook-request", MFD_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return -errno;
	errno = EIO;
	if (write(fd, h->text, h->length) != (ssize_t)h->length ||
	    write(fd, body, body_length) != (ssize_t)body_length || lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

int hook_request_file(const struct hook_request *q, int *ret_fd)
{
	struct head head;
	char *body;
	int r;

	if (!q->hook || !*q->hook || !q->target || !q->action || !q->event || !q->attempt)
		return -EINVAL;
	body = malloc(BODY_MAX);
	if (!body)
		return -ENOMEM;
	r = hook_event_json(q->event, q->action, q->hook, q->seq, q->attempt, body, BODY_MAX);
	if (r == 0)
		r = build_head(q, strlen(body), &head);
	if (r == 0)
		r = write_file(&head, body, strlen(body));
	free(body);
	if (r < 0)
		return r;
	*ret_fd = r;
	return 0;
}

bool hook_request_result(const char *text, struct run_result *ret, char *ret_line, size_t size)
{
	const char *start = strncmp(text, "result ", 7) == 0 ? text : strstr(text, "\nresult ");
	int code, sig, timeout, lost, line_at = -1;

	if (!start)
		return false;
	start += *start == '\n';
	if (sscanf(start, "result exit=%d signal=%d timeout=%d lost=%d ran=%*d line=%n", &code, &sig, &timeout, &lost,
		   &line_at) != 4 || line_at < 0)
		return false;
	snprintf(ret_line, size, "%.*s", (int)strcspn(start + line_at, "\n"), start + line_at);
	*ret = (struct run_result){ .exit_code = code, .signal = sig, .timeout = timeout, .lost = lost };
	return true;
}
