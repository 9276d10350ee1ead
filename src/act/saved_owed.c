/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "saved_owed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (16 << 20)

static int note(struct saved_owed *o, const struct saved_line *l)
{
	size_t i = 0;

	if (l->seq > o->highest)
		o->highest = l->seq;
	if (l->kind == SAVED_SEQ)
		return 0;
	while (i < o->count && (o->line[i].seq != l->seq || strcmp(o->line[i].hook, l->hook) != 0 ||
				strcmp(o->line[i].target, l->target) != 0))
		i++;
	if (l->kind == SAVED_PAID) {
		if (i < o->count)
			memmove(&o->line[i], &o->line[i + 1], (--o->count - i) * sizeof(o->line[0]));
		return 0;
	}
	if (i == o->room) {
		struct saved_line *more = realloc(o->line, (o->room + 64) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		o->line = more;
		o->room += 64;
	}
	o->line[i] = *l;
	if (i == o->count)
		o->count++;
	return 0;
}

/* A last line without its newline was never reported as written, so nothing was done for it: dropped, no damage. */
static int read_text(struct saved_owed *o, char *text)
{
	char *end;

	for (; (end = strchr(text, '\n')); text = end + 1) {
		struct saved_line l;
		int r;

		*end = '\0';
		if (saved_line_parse(text, &l) < 0) {
			o->damaged++;
			continue;
		}
		r = note(o, &l);
		if (r < 0)
			return r;
	}
	return 0;
}

int saved_owed_read(int dir_fd, struct saved_owed *o)
{
	const int fd = openat(dir_fd, "owed", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t length = 0;
	struct stat st;
	char *text;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		close(fd);
		return -EINVAL;
	}
	text = calloc(1, (size_t)st.st_size + 1);
	while (text && length < (size_t)st.st_size) {
		const ssize_t n = read(fd, text + length, (size_t)st.st_size - length);

		if (n <= 0)
			break;
		length += (size_t)n;
	}
	close(fd);
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < length; i++)
		text[i] = text[i] ? text[i] : '?';	/* a hole after a power cut must not hide the lines behind it */
	r = read_text(o, text);
	free(text);
	return r;
}

int saved_owed_append(int fd, const char *buf, size_t size)
{
	while (size) {
		const ssize_t n = write(fd, buf, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		buf += n;
		size -= (size_t)n;
	}
	return 0;
}

static int write_line(int fd, const struct saved_line *l)
{
	char text[SAVED_LINE_MAX];
	const int n = saved_line_format(l, text, sizeof(text));

	return n < 0 ? n : saved_owed_append(fd, text, (size_t)n);
}

static int write_new(int dir_fd, const struct saved_owed *o)
{
	const struct saved_line highest = { .kind = SAVED_SEQ, .seq = o->highest };
	const int fd = openat(dir_fd, "owed.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = write_line(fd, &highest);
	for (size_t i = 0; r == 0 && i < o->count; i++)
		r = write_line(fd, &o->line[i]);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* Never a moment without a whole file under the name "owed". */
int saved_owed_compact(int dir_fd, const struct saved_owed *o)
{
	int r = write_new(dir_fd, o);

	if (r < 0)
		return r;
	if (o->damaged) {
		unlinkat(dir_fd, "owed.damaged", 0);
		if (linkat(dir_fd, "owed", dir_fd, "owed.damaged", 0) < 0)
			return -errno;
	}
	if (renameat(dir_fd, "owed.new", dir_fd, "owed") < 0)
		return -errno;
	return fsync(dir_fd) < 0 ? -errno : 0;
}
