/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "subject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/types.h>
#include <bpf/bpf.h>

#include "bpf/map_layout.h"

#define READY_MS 60000
#define ANSWER_BYTES (1 << 20)

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *where)
{
	(void)st;
	(void)flag;
	(void)where;
	return remove(path);
}

static void remove_tree(const char *dir)
{
	if (dir[0])
		nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int config_write(const char *path, unsigned int targets)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return -errno;
	fprintf(f, "mode = \"observe\";\n");
	if (targets)
		fprintf(f, "targets = (\n");
	for (unsigned int i = 0; i < targets; i++)
		fprintf(f, "{ name = \"bench-r%02u\"; process = \"bench-r%02u\"; profile = \"media\"; }%s\n", i, i,
			i + 1 < targets ? "," : " );");
	return fclose(f) ? -errno : 0;
}

/* The child: never returns. */
static void subject_exec(const struct subject *s, const char *daemon, unsigned int tick_us)
{
	static const char *const variable[][2] = { { "DWELLD_RUN_DIR", "run" }, { "DWELLD_STATE_DIR", "state" },
						   { "DWELLD_HOOK_DIR", "hooks" }, { "NOTIFY_SOCKET", "notify" } };
	char path[128], number[16];
	int log;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < sizeof(variable) / sizeof(variable[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", s->dir, variable[i][1]);
		setenv(variable[i][0], path, 1);
	}
	snprintf(number, sizeof(number), "%u", tick_us);
	setenv("DWELLD_TEST_TICK_US", number, 1);
	unsetenv("WATCHDOG_USEC");
	unsetenv("MALLOC_PERTURB_");	/* meson's: it writes to all memory that is asked for, and RssAnon would count it */
	snprintf(path, sizeof(path), "%s/log", s->dir);
	log = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	snprintf(path, sizeof(path), "%s/dwelld.conf", s->dir);
	execl(daemon, "dwelld", "--config", path, NULL);
	_exit(127);
}

static int notify_socket(const struct subject *s)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/notify", s->dir);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	return fd;
}

static int ready_wait(const struct subject *s, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[4096];
	ssize_t n;

	/* each message restarts the time; the daemon sends one per tick once it runs, none if it is dead */
	while (poll(&p, 1, READY_MS) > 0) {
		n = recv(fd, text, sizeof(text) - 1, 0);
		if (n > 0) {
			text[n] = '\0';
			if (strstr(text, "READY=1"))
				return 0;
		}
	}
	return waitpid(s->pid, NULL, WNOHANG) == s->pid ? -ECHILD : -ETIMEDOUT;
}

static void log_print(const struct subject *s)
{
	char path[128], line[400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", s->dir);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		printf("  dwelld: %s", line);
	if (f)
		fclose(f);
}

int subject_start(struct subject *s, const char *daemon, unsigned int targets, unsigned int tick_us)
{
	char path[128];
	int fd, r;

	*s = (struct subject){ .dir = "/tmp/dwelld-bench-XXXXXX" };
	if (!mkdtemp(s->dir))
		return -errno;
	snprintf(path, sizeof(path), "%s/dwelld.conf", s->dir);
	r = config_write(path, targets);
	fd = r < 0 ? r : notify_socket(s);
	if (fd < 0) {
		remove_tree(s->dir);
		return fd;
	}
	fflush(stdout);
	s->pid = fork();
	if (s->pid == 0)
		subject_exec(s, daemon, tick_us);
	r = s->pid < 0 ? -errno : ready_wait(s, fd);
	close(fd);	/* its later messages are refused at once; left unread, they would block it */
	if (r < 0) {
		log_print(s);
		subject_end(s);
	}
	return r;
}

void subject_end(struct subject *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	remove_tree(s->dir);
	*s = (struct subject){ 0 };
}

/* ---- figures ---- */

static int threads_cpu(pid_t pid, uint64_t *ret_ns)
{
	char path[300];
	struct dirent *entry;
	unsigned long long ns;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	*ret_ns = 0;
	while ((entry = readdir(dir))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/schedstat", pid, entry->d_name);
		f = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (f && fscanf(f, "%llu", &ns) == 1)
			*ret_ns += ns;
		if (f)
			fclose(f);
	}
	closedir(dir);
	return 0;
}

static unsigned int entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned int n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

int subject_read(const struct subject *s, struct subject_figures *ret)
{
	char path[64], line[256];
	unsigned long long kib;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", s->pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %llu", &kib) == 1)
			ret->rss_anon_kib = kib;
	fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/fd", s->pid);
	ret->fds = entries(path);
	return threads_cpu(s->pid, &ret->cpu_ns);
}

static int status_text(const struct subject *s, char *buf, size_t size)
{
	static const char ask[] = "status\n";
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t got = 0;
	ssize_t n;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/run/control.sock", s->dir);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || send(fd, ask, sizeof(ask) - 1, MSG_NOSIGNAL) < 0) {
		n = -errno;
		if (fd >= 0)
			close(fd);
		return (int)n;
	}
	while (got + 1 < size && (n = recv(fd, buf + got, size - 1 - got, 0)) > 0)
		got += (size_t)n;
	buf[got] = '\0';
	close(fd);
	return 0;
}

int subject_targets_seen(const struct subject *s, unsigned int targets)
{
	char *text = malloc(ANSWER_BYTES), want[32];
	int seen = 0, r = text ? status_text(s, text, ANSWER_BYTES) : -ENOMEM;

	for (unsigned int i = 0; !r && i < targets; i++) {
		const char *at, *next, *dwell;

		snprintf(want, sizeof(want), "\"bench-r%02u\"", i);
		at = strstr(text, want);
		if (!at)
			continue;
		next = strstr(at + 1, "\"bench-r");
		dwell = strstr(at, "\"p99_ns\":");	/* the first is that of dwell; null while unknown */
		seen += dwell && (!next || dwell < next) && strncmp(dwell + 9, "null", 4) && strncmp(dwell + 10, "null", 4);
	}
	free(text);
	return r < 0 ? r : seen;
}

/* ---- maps ---- */

/* A new descriptor of the daemon's map of that name, or negative errno. */
static int map_of(const struct subject *s, const char *name)
{
	char path[300], line[128];
	struct dirent *entry;
	int found = -ENOENT;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", s->pid);
	dir = opendir(path);
	while (dir && found < 0 && (entry = readdir(dir))) {
		struct bpf_map_info info = { 0 };
		uint32_t id = 0, length = sizeof(info);
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.20s", s->pid, entry->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			sscanf(line, "map_id: %u", &id);
		if (f)
			fclose(f);
		found = id ? bpf_map_get_fd_by_id(id) : -ENOENT;
		if (found >= 0 && (bpf_obj_get_info_by_fd(found, &info, &length) < 0 || strcmp(info.name, name))) {
			close(found);
			found = -ENOENT;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

/* ret_dead, may be NULL: keys are numbers of processes; how many of them are gone. */
static unsigned int hash_entries(int fd, size_t key_size, unsigned int *ret_dead)
{
	uint8_t key[64], next[64];
	unsigned int n = 0;
	void *at = NULL;
	pid_t pid;

	while (n < 100000 && bpf_map_get_next_key(fd, at, next) == 0) {
		memcpy(key, next, key_size);
		at = key;
		n++;
		memcpy(&pid, next, sizeof(pid));
		if (ret_dead && kill(pid, 0) < 0 && errno == ESRCH)
			++*ret_dead;
	}
	return n;
}

/* Rows of an array whose first word says whether they are used. */
static unsigned int rows_used(int fd, uint32_t rows, size_t size)
{
	uint64_t *row = malloc(size);
	unsigned int n = 0;

	for (uint32_t i = 1; row && i < rows; i++)
		if (bpf_map_lookup_elem(fd, &i, row) == 0 && row[0])
			n++;
	free(row);
	return n;
}

int subject_maps_read(const struct subject *s, struct subject_maps *ret)
{
	static const char *const name[] = { "control", "tgid_slot", "streams", "sockets", "readers" };
	struct map_control control = { 0 };
	uint32_t zero = 0;
	int fd[5], r = 0;

	for (int i = 0; i < 5; i++) {
		fd[i] = map_of(s, name[i]);
		if (fd[i] < 0)
			r = fd[i];
	}
	if (!r && bpf_map_lookup_elem(fd[0], &zero, &control) < 0)
		r = -errno;
	if (!r) {
		ret->ticks = control.epoch;
		ret->dead = 0;
		ret->tgids = hash_entries(fd[1], sizeof(uint32_t), &ret->dead);
		ret->streams = hash_entries(fd[2], sizeof(struct map_stream_key), NULL);
		ret->sockets = rows_used(fd[3], MAP_SOCKETS, sizeof(struct map_socket));
		ret->readers = rows_used(fd[4], MAP_READERS, sizeof(struct map_reader));
	}
	for (int i = 0; i < 5; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return r;
}
