/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "path_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYMLINKS_MAX 40
#define SCRIPT_DEPTH 3		/* a script whose interpreter is a script ... */

struct walk {
	char done[PATH_MAX];	/* resolved so far, "" is the root directory */
	char rest[PATH_MAX];	/* still to do */
	unsigned int symlinks;
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 2, 3)))
static int refuse(struct walk *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->why, w->why_size, format, args);
	va_end(args);
	return -EPERM;
}

static int check_owner(struct walk *w, const char *path, const struct stat *st)
{
	if (st->st_uid == 0 || st->st_uid == geteuid())
		return 0;
	return refuse(w, "%.300s: belongs to uid %u, expected root", path, st->st_uid);
}

static int check_mode(struct walk *w, const char *path, const struct stat *st)
{
	const char *who = (st->st_mode & S_IWOTH) ? "everybody" : "its group";
	const int r = check_owner(w, path, st);

	if (r < 0)
		return r;
	if (!(st->st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return refuse(w, "%.300s: writable by %s (mode %04o%s), expected by its owner only", path, who,
		      st->st_mode & 07777, (st->st_mode & S_ISVTX) ? ", sticky is not enough" : "");
}

/* Puts a symlink's target in front of what is still to do. */
static int follow(struct walk *w, const char *link, const struct stat *st)
{
	char target[PATH_MAX], joined[PATH_MAX];
	const int r = check_owner(w, link, st);
	ssize_t n;

	if (r < 0)
		return r;
	if (++w->symlinks > SYMLINKS_MAX)
		return refuse(w, "%.300s: more than %d symlinks, expected no loop", link, SYMLINKS_MAX);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return refuse(w, "%.300s: %s", link, strerror(errno));
	target[n] = '\0';
	if ((size_t)n + 1 + strlen(w->rest) >= sizeof(joined))
		return refuse(w, "%.300s: the path is too long", link);
	memcpy(joined, target, (size_t)n);
	joined[n] = '/';
	strcpy(joined + n + 1, w->rest);
	strcpy(w->rest, joined);
	if (target[0] == '/')
		w->done[0] = '\0';
	return 0;
}

/* Takes the next name off w->rest; "" at the end. */
static void next_name(struct walk *w, char name[NAME_MAX + 1])
{
	const size_t skip = strspn(w->rest, "/");
	const size_t length = strcspn(w->rest + skip, "/");
	const size_t copy = length > NAME_MAX ? NAME_MAX : length;

	memcpy(name, w->rest + skip, copy);
	name[copy] = '\0';
	memmove(w->rest, w->rest + skip + length, strlen(w->rest + skip + length) + 1);
}

static int step(struct walk *w, const char *name, struct stat *ret_st)
{
	char path[PATH_MAX];
	int r;

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {	/* done holds no symlinks, so its parent is what stands before the last / */
		char *slash = strrchr(w->done, '/');

		if (slash)
			*slash = '\0';
		return lstat(w->done[0] ? w->done : "/", ret_st) < 0 ? -errno : 0;
	}
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", w->done, name) >= sizeof(path))
		return refuse(w, "%.300s: the path is too long", w->done);
	if (lstat(path, ret_st) < 0)
		return refuse(w, "%.300s: %s", path, errno == ENOENT ? "does not exist" : strerror(errno));
	if (S_ISLNK(ret_st->st_mode))
		return follow(w, path, ret_st);
	r = check_mode(w, path, ret_st);
	if (r < 0)
		return r;
	if (!S_ISDIR(ret_st->st_mode) && strspn(w->rest, "/") != strlen(w->rest))
		return refuse(w, "%.300s: is not a directory", path);
	strcpy(w->done, path);
	return 0;
}

/* Leaves the resolved path in w->done and the file's stat in *ret_st. */
static int resolve(struct walk *w, const char *path, struct stat *ret_st)
{
	char name[NAME_MAX + 1];
	int r;

	if (path[0] != '/')
		return refuse(w, "\"%.300s\": expected an absolute path", path);
	if (strlen(path) >= sizeof(w->rest))
		return refuse(w, "%.100s...: the path is too long", path);
	strcpy(w->rest, path);
	w->done[0] = '\0';
	if (lstat("/", ret_st) < 0)
		return refuse(w, "/: %s", strerror(errno));
	r = check_mode(w, "/", ret_st);
	while (r == 0) {
		next_name(w, name);
		if (!*name)
			break;
		r = step(w, name, ret_st);
	}
	return r;
}

static int open_resolved(struct walk *w, const struct stat *st, struct path_checked *ret)
{
	struct stat now;

	if (!S_ISREG(st->st_mode))
		return refuse(w, "%.300s: is %s, expected a regular file", w->done[0] ? w->done : "/",
			      S_ISDIR(st->st_mode) ? "a directory" : "not a file");
	ret->fd = open(w->done, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
	if (ret->fd < 0)
		return refuse(w, "%.300s: cannot be opened: %s", w->done, strerror(errno));
	if (fstat(ret->fd, &now) < 0 || now.st_ino != st->st_ino || now.st_dev != st->st_dev) {
		close(ret->fd);
		return refuse(w, "%.300s: was exchanged while it was checked", w->done);
	}
	strcpy(ret->real, w->done);
	return 0;
}

int path_check_file(const char *path, char *why, size_t size, struct path_checked *ret)
{
	struct walk w = { .why = why, .why_size = size };
	struct path_checked checked = { .fd = -1 };
	struct stat st;
	int r = resolve(&w, path, &st);

	if (r == 0)
		r = open_resolved(&w, &st, &checked);
	if (r == 0)
		*ret = checked;
	return r;
}

static int check_program(struct walk *w, const char *path, unsigned int depth, struct path_checked *ret);

/* The interpreter named by a first line "#! /bin/sh -e". */
static int check_interpreter(struct walk *w, const char *script, const char *line, unsigned int depth)
{
	struct path_checked checked;
	char interpreter[PATH_MAX], inner[400];
	const char *name = line + 2 + strspn(line + 2, " \t");
	const size_t length = strcspn(name, " \t\r\n");
	struct walk sub = { .why = inner, .why_size = sizeof(inner) };
	int r;

	memcpy(interpreter, name, length);
	interpreter[length] = '\0';
	if (name[length] == '\r')
		return refuse(w, "%.300s: its #! line ends with a carriage return, expected Unix line ends", script);
	if (depth >= SCRIPT_DEPTH)
		return refuse(w, "%.300s: its interpreter is a script of a script", script);
	r = check_program(&sub, interpreter, depth + 1, &checked);
	if (r < 0)
		return refuse(w, "%.200s: interpreter %.400s", script, inner);
	close(checked.fd);
	return 0;
}

static int check_content(struct walk *w, unsigned int depth, struct path_checked *checked)
{
	char head[256 + 1];
	const ssize_t n = pread(checked->fd, head, sizeof(head) - 1, 0);

	if (n < 0)
		return refuse(w, "%.300s: cannot be read: %s", checked->real, strerror(errno));
	head[n] = '\0';
	if (n >= 4 && memcmp(head, "\177ELF", 4) == 0)
		return 0;
	if (n < 2 || memcmp(head, "#!", 2) != 0)
		return refuse(w, "%.300s: starts neither with #! nor as an ELF program, expected one of them",
			      checked->real);
	checked->script = true;
	return check_interpreter(w, checked->real, head, depth);
}

static int check_program(struct walk *w, const char *path, unsigned int depth, struct path_checked *ret)
{
	struct path_checked checked = { .fd = -1 };
	struct stat st;
	int r = resolve(w, path, &st);

	if (r < 0)
		return r;
	if (S_ISREG(st.st_mode) && !(st.st_mode & 0111))
		return refuse(w, "%.300s: not executable (mode %04o), expected for example 0755", w->done,
			      st.st_mode & 07777);
	r = open_resolved(w, &st, &checked);
	if (r < 0)
		return r;
	r = check_content(w, depth, &checked);
	if (r < 0) {
		close(checked.fd);
		return r;
	}
	*ret = checked;
	return 0;
}

int path_check_program(const char *path, char *why, size_t size, struct path_checked *ret)
{
	struct walk w = { .why = why, .why_size = size };

	return check_program(&w, path, 0, ret);
}
