/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "private_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "path_check.h"

#define CREDENTIAL_MAX 65536

static int own(const char *path, uid_t uid, gid_t gid)
{
	if (geteuid() != 0)
		return 0;
	return lchown(path, uid, gid) < 0 ? -errno : 0;
}

int private_dir_state(const char *base, const struct model_hook *hook, uid_t uid, gid_t gid, char *ret_path, char *why,
		      size_t size)
{
	char path[PRIVATE_DIR_PATH];
	struct stat st;
	int r = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", base, hook->name) >= sizeof(path))
		r = -ENAMETOOLONG;
	else if (mkdir(base, 0755) < 0 && errno != EEXIST)
		r = -errno;
	else if (mkdir(path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	else if (lstat(path, &st) < 0)
		r = -errno;
	else if (!S_ISDIR(st.st_mode))
		r = -ENOTDIR;
	else if (st.st_uid != uid || st.st_gid != gid)
		r = own(path, uid, gid);	/* the hook's user was changed */
	if (r < 0) {
		snprintf(why, size, "state directory %s: %s", path, strerror(-r));
		return r;
	}
	strcpy(ret_path, path);
	return 0;
}

static bool is_tmpfs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC) &&
	       access(path, W_OK) == 0;
}

static int copy_one(const struct model_hook *hook, unsigned int i, const char *dir, uid_t uid, gid_t gid, char *why,
		    size_t size)
{
	char path[PRIVATE_DIR_PATH + MODEL_NAME + 1], buf[4096], inner[400];
	struct path_checked from;
	ssize_t n, total = 0;
	int fd, r = 0;

	if (path_check_file(hook->credential_path[i], inner, sizeof(inner), &from) < 0) {
		snprintf(why, size, "credential %s: %s", hook->credential_name[i], inner);
		return -EPERM;
	}
	snprintf(path, sizeof(path), "%s/%s", dir, hook->credential_name[i]);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400);
	if (fd < 0)
		r = -errno;
	while (r == 0 && (n = read(from.fd, buf, sizeof(buf))) != 0) {
		if (n < 0 || write(fd, buf, (size_t)n) != n)
			r = errno ? -errno : -EIO;
		else if ((total += n) > CREDENTIAL_MAX)
			r = -EFBIG;
	}
	explicit_bzero(buf, sizeof(buf));
	close(from.fd);
	if (fd >= 0)
		close(fd);
	if (r == 0)
		r = own(path, uid, gid);
	if (r < 0)
		snprintf(why, size, "credential %s: %s", path, strerror(-r));
	return r;
}

int private_dir_credentials(const struct model_hook *hook, const char *key, uid_t uid, gid_t gid, char *ret_path,
			    char *why, size_t size)
{
	const char *base = is_tmpfs("/run") ? "/run" : is_tmpfs("/dev/shm") ? "/dev/shm" : "/run";
	char path[PRIVATE_DIR_PATH];
	int r = 0;

	*ret_path = '\0';
	if (!hook->credential_count)
		return 0;
	if ((size_t)snprintf(path, sizeof(path), "%s/dwelld-hook.%s", base, key) >= sizeof(path))
		return -ENAMETOOLONG;
	private_dir_remove(path);
	if (mkdir(path, 0700) < 0) {	/* not O_EXCL-like enough only if somebody else could write in base: root's */
		r = -errno;
		snprintf(why, size, "credentials directory %s: %s", path, strerror(errno));
		return r;
	}
	for (unsigned int i = 0; r == 0 && i < hook->credential_count; i++)
		r = copy_one(hook, i, path, uid, gid, why, size);
	if (r == 0 && (own(path, uid, gid) < 0 || chmod(path, 0500) < 0)) {
		r = -errno;
		snprintf(why, size, "credentials directory %s: %s", path, strerror(errno));
	}
	if (r < 0) {
		private_dir_remove(path);
		return r;
	}
	strcpy(ret_path, path);
	return 0;
}

void private_dir_remove(const char *path)
{
	const int fd = *path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	fchmod(fd, 0700);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(fd, e->d_name, 0);
	}
	closedir(dir);
	rmdir(path);
}
