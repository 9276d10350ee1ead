/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "box.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t box_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void box_open(struct box *b)
{
	if (geteuid() != 0)
		cr_skip_test("needs root: hooks must belong to root and the runner changes users");
	umask(022);
	*b = (struct box){ 0 };
	/* not below /tmp: a directory that others may write is what the runner refuses */
	strcpy(b->dir, "/var/lib/dwelld-test-XXXXXX");
	cr_assert_not_null(mkdtemp(b->dir));
	chmod(b->dir, 0755);
	snprintf(b->config, sizeof(b->config), "%s/test.conf", b->dir);
	snprintf(b->runs, sizeof(b->runs), "%s/runs", b->dir);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

void box_close(struct box *b)
{
	if (b->dir[0])
		nftw(b->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *box_file(struct box *b, const char *name, int mode, const char *text)
{
	static char paths[4][256];
	static unsigned int n;
	char *path = paths[n++ % 4];
	int fd;

	snprintf(path, 256, "%s/%s", b->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	fchmod(fd, (mode_t)mode);
	close(fd);
	return path;
}

void box_exec(struct box *b, const char *name, const char *keys, const char *exec)
{
	char text[sizeof(b->hooks) + 64];
	const size_t n = strlen(b->hooks);

	snprintf(b->hooks + n, sizeof(b->hooks) - n, "%s  { name = \"%s\"; exec = [ %s ]; %s %s }", n ? ",\n" : "", name,
		 exec, strstr(keys, "kind") ? "" : "kind = \"remedy\";", keys);
	snprintf(text, sizeof(text), "hooks = (\n%s\n);\n", b->hooks);
	box_file(b, "test.conf", 0644, text);
}

void box_hook(struct box *b, const char *name, const char *keys, const char *script)
{
	char text[4096], exec[256];

	snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", script);
	snprintf(exec, sizeof(exec), "\"%s\"", box_file(b, name, 0755, text));
	box_exec(b, name, keys, exec);
}

const char *box_read(struct box *b, const char *name)
{
	static char text[65536];
	char path[256];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", b->dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static int request_file(const struct box_question *q)
{
	const int fd = memfd_create("request", 0);

	cr_assert_geq(fd, 0);
	dprintf(fd, "dwelld-hook 1\nhook=%s\naction=%s\nseq=%" PRIu64 "\nattempt=%u\n%slength=15\n\n{\"contract\": 1}",
		q->hook, q->action, q->seq, q->attempt, q->extra ? q->extra : "target=sfu\nevent=fire\nalert_id=a1\n");
	lseek(fd, 0, SEEK_SET);
	return fd;
}

void box_start(struct box *b, const struct box_question *q, struct box_run *ret)
{
	const char *runner = getenv("DWELLD_HOOK_RUN");
	const int in = request_file(q);
	int out[2], err[2];

	cr_assert_not_null(runner, "DWELLD_HOOK_RUN names no runner");
	cr_assert_eq(pipe(out), 0);
	cr_assert_eq(pipe(err), 0);
	ret->start_ns = box_now_ns();
	ret->pid = fork();
	cr_assert_geq(ret->pid, 0);
	if (ret->pid == 0) {
		setenv("LEAK", "this must not reach a hook", 1);
		dup2(in, 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		setpgid(0, 0);
		execl(runner, runner, "--config", b->config, "--runs-dir", b->runs, (char *)NULL);
		_exit(111);
	}
	close(in);
	close(out[1]);
	close(err[1]);
	ret->out_fd = out[0];
	ret->err_fd = err[0];
}

static bool take(int fd, char *buf, size_t size, size_t *length)
{
	char more[8192];
	const ssize_t n = read(fd, more, sizeof(more));
	const size_t room = size - 1 - *length;

	if (n <= 0)
		return false;
	memcpy(buf + *length, more, (size_t)n < room ? (size_t)n : room);
	*length += (size_t)n < room ? (size_t)n : room;
	buf[*length] = '\0';
	return true;
}

void box_wait(struct box_run *run, struct box_answer *a)
{
	struct pollfd p[2] = { { .fd = run->out_fd, .events = POLLIN }, { .fd = run->err_fd, .events = POLLIN } };
	size_t out = 0, err = 0;
	char *line;

	memset(a, 0, sizeof(*a));
	a->exit_code = -2;
	while (p[0].fd >= 0 || p[1].fd >= 0) {
		cr_assert_gt(poll(p, 2, 60000), 0, "the runner said nothing for 60 s");
		if (p[0].revents && !take(p[0].fd, a->out, sizeof(a->out), &out))
			p[0].fd = -1;
		if (p[1].revents && !take(p[1].fd, a->err, sizeof(a->err), &err))
			p[1].fd = -1;
	}
	close(run->out_fd);
	close(run->err_fd);
	cr_assert_eq(waitpid(run->pid, &a->status, 0), run->pid);
	a->seconds = (double)(box_now_ns() - run->start_ns) / 1e9;
	if (sscanf(a->out, "result exit=%d signal=%d timeout=%d lost=%d ran=%d", &a->exit_code, &a->signal,
		   &a->timeout, &a->lost, &a->ran) != 5)
		return;
	line = strstr(a->out, "line=");
	snprintf(a->line, sizeof(a->line), "%.*s", (int)strcspn(line + 5, "\n"), line + 5);
}

void box_ask(struct box *b, const struct box_question *q, struct box_answer *ret)
{
	struct box_run run;

	box_start(b, q, &run);
	box_wait(&run, ret);
}

/* Polling with a deadline: what is waited for is another process's doing, there is no event to wait on. */
static bool until(bool (*check)(const void *), const void *what)
{
	const uint64_t end = box_now_ns() + 10000000000ULL;
	const struct timespec pause = { .tv_nsec = 5000000 };

	while (!check(what)) {
		if (box_now_ns() > end)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static bool is_there(const void *path)
{
	return access(path, F_OK) == 0;
}

bool box_appears(struct box *b, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", b->dir, name);
	return until(is_there, path);
}

static bool is_gone(const void *pid)
{
	char path[64], text[256] = "", *after;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", *(const pid_t *)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	after = strrchr(text, ')');
	return n <= 0 || (after && after[2] == 'Z');
}

bool box_is_gone(pid_t pid)
{
	return pid > 0 && until(is_gone, &pid);
}
