/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control_socket.h"

#define LOCK_SUFFIX ".lock"

static int address_of(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!path[0] || strlen(path) + strlen(LOCK_SUFFIX) >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	memcpy(ret->sun_path, path, strlen(path) + 1);
	return 0;
}

static void lock_path(const char *path, char buf[sizeof(((struct sockaddr_un *)NULL)->sun_path)])
{
	snprintf(buf, sizeof(((struct sockaddr_un *)NULL)->sun_path), "%s" LOCK_SUFFIX, path);
}

/* Who holds the lock has written its pid there. 0 when it has not got so far yet. */
static pid_t holder(int fd)
{
	char text[16] = "";
	int pid = 0;

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0 || sscanf(text, "%d", &pid) != 1 || pid < 0)
		return 0;
	return pid;
}

static bool still_there(int fd, const char *name)
{
	struct stat ours, there;

	return fstat(fd, &ours) == 0 && lstat(name, &there) == 0 && ours.st_ino == there.st_ino &&
	       ours.st_dev == there.st_dev;
}

/* A lock on a file that its holder has unlinked meanwhile is worth nothing: then once more. */
static int take_lock(const char *path, pid_t *ret_pid)
{
	char name[sizeof(((struct sockaddr_un *)NULL)->sun_path)], text[16];

	lock_path(path, name);
	for (unsigned int tries = 0; tries < 16; tries++) {
		struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
		const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return -errno;
		if (fcntl(fd, F_OFD_SETLK, &l) < 0) {
			*ret_pid = holder(fd);
			close(fd);
			return -EADDRINUSE;
		}
		if (still_there(fd, name)) {
			const int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());

			/* without the pid the lock still holds, only the refusal says less */
			(void)!(ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n);
			return fd;
		}
		close(fd);
	}
	return -EADDRINUSE;
}

/* Does anybody answer there? The listener's pid comes from the kernel, not from what it says. */
static int probe(const struct sockaddr_un *a, pid_t *ret_pid)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred cred = { 0 };
	socklen_t length = sizeof(cred);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0) {
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) == 0)
			*ret_pid = cred.pid;
		r = -EADDRINUSE;
	} else if (errno != ECONNREFUSED && errno != ENOENT) {
		r = errno == EAGAIN ? -EADDRINUSE : -errno;	/* EAGAIN: alive, its queue is full */
	}
	close(fd);
	return r;
}

static int clear_stale(const struct sockaddr_un *a, pid_t *ret_pid)
{
	struct stat st;
	int r;

	if (lstat(a->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	r = probe(a, ret_pid);
	if (r < 0)
		return r;
	return unlink(a->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int listen_at(const struct sockaddr_un *a, struct control_socket *s)
{
	struct stat st;

	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	if (bind(s->fd, (const struct sockaddr *)a, sizeof(*a)) < 0)
		return -errno;
	/* rights are checked per request, by who asks */
	if (chmod(a->sun_path, 0666) < 0 || lstat(a->sun_path, &st) < 0 || listen(s->fd, 64) < 0) {
		const int r = -errno;

		unlink(a->sun_path);
		return r;
	}
	s->device = st.st_dev;
	s->inode = st.st_ino;
	return 0;
}

int control_socket_open(const char *path, pid_t *ret_pid, struct control_socket *ret)
{
	struct control_socket s = { .fd = -1, .lock_fd = -1 };
	struct sockaddr_un a;
	int r = address_of(path, &a);

	*ret_pid = 0;
	if (r < 0)
		return r;
	s.lock_fd = take_lock(path, ret_pid);
	if (s.lock_fd < 0)
		return s.lock_fd;
	r = clear_stale(&a, ret_pid);
	if (r == 0)
		r = listen_at(&a, &s);
	if (r < 0) {
		control_socket_close(&s, path);
		return r;
	}
	*ret = s;
	return 0;
}

void control_socket_close(struct control_socket *s, const char *path)
{
	char name[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct stat st;

	if (s->fd >= 0) {
		/* only the socket that is ours: somebody may have put another there by hand */
		if (lstat(path, &st) == 0 && st.st_ino == s->inode && st.st_dev == s->device)
			unlink(path);
		close(s->fd);
	}
	if (s->lock_fd >= 0) {
		lock_path(path, name);
		unlink(name);
		close(s->lock_fd);
	}
	s->fd = s->lock_fd = -1;
}
