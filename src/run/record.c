/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RECORD_TEXT 2048

static int make_dir(const char *dir)
{
	char path[512];

	if ((size_t)snprintf(path, sizeof(path), "%s", dir) >= sizeof(path))
		return -ENAMETOOLONG;
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return mkdir(path, 0750) < 0 && errno != EEXIST ? -errno : 0;
}

static int take_lock(int fd, int wait_ms)
{
	const struct timespec pause = { .tv_nsec = 20000000 };

	/* flock() has no time limit of its own; who waits here waits for a run of a daemon that died */
	for (;; wait_ms -= 20) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (wait_ms <= 0)
			return -EBUSY;
		nanosleep(&pause, NULL);
	}
}

static int lock_open(int dir_fd, const struct request *q)
{
	char name[256];

	snprintf(name, sizeof(name), "lock.%s.%s", q->hook, q->target);
	for (char *p = name; *p; p++)
		*p = *p == '/' ? '_' : *p;
	return openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
}

int record_open(const char *dir, const struct request *q, int wait_ms, struct record *ret, int *ret_pid)
{
	struct record r = { .dir_fd = -1, .lock_fd = -1 };
	char pid[24] = "";
	int err = make_dir(dir);

	if (err < 0)
		return err;
	r.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r.dir_fd < 0)
		return -errno;
	r.lock_fd = lock_open(r.dir_fd, q);
	err = r.lock_fd < 0 ? -errno : take_lock(r.lock_fd, wait_ms);
	if (err == -EBUSY)
		*ret_pid = pread(r.lock_fd, pid, sizeof(pid) - 1, 0) > 0 ? atoi(pid) : 0;
	if (err < 0) {
		record_close(&r);
		return err;
	}
	snprintf(pid, sizeof(pid), "%d\n", getpid());
	if (ftruncate(r.lock_fd, 0) == 0 && pwrite(r.lock_fd, pid, strlen(pid), 0) < 0)
		err = 0;	/* the pid is only for the message of the one who waits */
	snprintf(r.base, sizeof(r.base), "%" PRIu64 "-%s-%s", q->seq, q->hook, q->action);
	snprintf(r.mark, sizeof(r.mark), "%s %s %s", q->target, q->event, q->alert_id);
	*ret = r;
	return 0;
}

void record_close(struct record *r)
{
	if (r->lock_fd >= 0)
		close(r->lock_fd);
	if (r->dir_fd >= 0)
		close(r->dir_fd);
	r->lock_fd = r->dir_fd = -1;
}

static int read_file(const struct record *r, const char *suffix, char *buf, size_t size)
{
	char name[160];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "%s.%s", r->base, suffix);
	fd = openat(r->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

static int write_file(const struct record *r, const char *suffix, const char *text)
{
	char name[160], temp[168];
	int fd, err = 0;

	snprintf(name, sizeof(name), "%s.%s", r->base, suffix);
	snprintf(temp, sizeof(temp), "new.%s", name);
	fd = openat(r->dir_fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return -errno;
	errno = EIO;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) < 0)
		err = -errno;
	close(fd);
	if (err == 0 && renameat(r->dir_fd, temp, r->dir_fd, name) < 0)
		err = -errno;
	if (err < 0) {
		unlinkat(r->dir_fd, temp, 0);
		return err;
	}
	return fsync(r->dir_fd) < 0 ? -errno : 0;
}

/* Line "key=" of text, copied without its newline. */
static bool find_line(const char *text, const char *key, char *ret, size_t size)
{
	const size_t length = strlen(key);

	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		if (strncmp(p, key, length) != 0)
			continue;
		snprintf(ret, size, "%.*s", (int)strcspn(p + length, "\n"), p + length);
		return true;
	}
	return false;
}

static bool is_same_run(const struct record *r, const char *text, uint32_t *ret_attempt)
{
	char mark[512], number[16];

	if (!find_line(text, "mark=", mark, sizeof(mark)) || strcmp(mark, r->mark) != 0 ||
	    !find_line(text, "attempt=", number, sizeof(number)))
		return false;
	*ret_attempt = (uint32_t)strtoul(number, NULL, 10);
	return true;
}

static bool parse_result(const char *text, struct record_result *ret)
{
	struct record_result x = { 0 };
	int timeout, lost, ran;
	char line[RECORD_TEXT];

	if (!find_line(text, "result ", line, sizeof(line)) ||
	    sscanf(line, "exit=%d signal=%d timeout=%d lost=%d ran=%d", &x.exit_code, &x.signal, &timeout, &lost,
		   &ran) != 5)
		return false;
	x.timeout = timeout;
	x.lost = lost;
	x.ran = ran;
	if (strstr(line, "line="))
		snprintf(x.line, sizeof(x.line), "%.200s", strstr(line, "line=") + 5);
	*ret = x;
	return true;
}

/* Whether the stored answer is the answer to this request. A refusal before the start ran nothing, and an undo that did
 * not settle is asked for again with the same number for ever: those run anew. */
static bool is_answer(const struct request *q, const struct record_result *found, uint32_t attempt)
{
	if (!found->ran)
		return false;
	if (strcmp(q->action, "undo") == 0)
		return !found->signal && !found->timeout && !found->lost &&
		       (found->exit_code == 0 || found->exit_code == 80);
	return q->attempt <= attempt;
}

enum record_state record_look(const struct record *r, const struct request *q, struct record_result *ret_result,
			      uint32_t *ret_attempt)
{
	char text[RECORD_TEXT];
	uint32_t attempt;

	*ret_attempt = q->attempt;
	if (read_file(r, "result", text, sizeof(text)) == 0 && is_same_run(r, text, &attempt) &&
	    parse_result(text, ret_result)) {
		if (is_answer(q, ret_result, attempt))
			return RECORD_FOUND;
		if (ret_result->ran && *ret_attempt <= attempt)
			*ret_attempt = attempt + 1;
		return RECORD_AGAIN;
	}
	if (read_file(r, "started", text, sizeof(text)) == 0 && is_same_run(r, text, &attempt)) {
		if (*ret_attempt <= attempt)
			*ret_attempt = attempt + 1;
		return RECORD_CRASHED;
	}
	return RECORD_NEW;
}

/* Field 22 of /proc/self/stat: together with the pid it names this process until the next boot. */
static unsigned long long own_start(void)
{
	unsigned long long start = 0;
	char text[1024] = "";
	const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *p = n > 0 ? strrchr(text, ')') : NULL;

	if (fd >= 0)
		close(fd);
	if (p && sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &start) != 1)
		return 0;
	return start;
}

int record_started(const struct record *r, uint32_t attempt)
{
	char text[RECORD_TEXT], name[160];

	snprintf(name, sizeof(name), "%s.result", r->base);
	unlinkat(r->dir_fd, name, 0);	/* of an earlier attempt */
	snprintf(text, sizeof(text), "mark=%s\nattempt=%u\nrunner=%d %llu\n", r->mark, attempt, getpid(), own_start());
	return write_file(r, "started", text);
}

void record_format(const struct record_result *x, char *buf, size_t size)
{
	snprintf(buf, size, "result exit=%d signal=%d timeout=%d lost=%d ran=%d line=%s", x->exit_code, x->signal,
		 x->timeout, x->lost, x->ran, x->line);
}

int record_result(const struct record *r, uint32_t attempt, const struct record_result *result)
{
	char text[RECORD_TEXT], line[512], name[160];
	int err;

	record_format(result, line, sizeof(line));
	snprintf(text, sizeof(text), "mark=%s\nattempt=%u\n%s\n", r->mark, attempt, line);
	err = write_file(r, "result", text);
	snprintf(name, sizeof(name), "%s.started", r->base);
	if (err == 0)
		unlinkat(r->dir_fd, name, 0);
	return err;
}

struct found { char name[NAME_MAX + 1]; struct timespec when; };

static int newest_first(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->when.tv_sec != y->when.tv_sec)
		return x->when.tv_sec < y->when.tv_sec ? 1 : -1;
	return x->when.tv_nsec < y->when.tv_nsec ? 1 : x->when.tv_nsec > y->when.tv_nsec ? -1 : 0;
}

static bool is_result(const char *name)
{
	const size_t n = strlen(name);

	return n > 7 && strcmp(name + n - 7, ".result") == 0;
}

void record_prune(const struct record *r)
{
	const int fd = openat(r->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct found *f = NULL;
	size_t count = 0;

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		struct stat st;
		struct found *more;

		if (!is_result(e->d_name) || fstatat(r->dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		more = realloc(f, (count + 1) * sizeof(*f));
		if (!more)
			break;
		f = more;
		snprintf(f[count].name, sizeof(f[count].name), "%s", e->d_name);
		f[count++].when = st.st_mtim;
	}
	if (dir)
		closedir(dir);
	if (count > RECORD_KEEP) {
		qsort(f, count, sizeof(*f), newest_first);
		for (size_t i = RECORD_KEEP; i < count; i++)
			unlinkat(r->dir_fd, f[i].name, 0);
	}
	free(f);
}
