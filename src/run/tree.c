/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FREEZE_ROUNDS 100	/* each round stops what was forked since the last one */
#define ENVIRON_MAX 65536

struct process { pid_t pid, parent; bool ours, zombie, stopped; };
struct table { struct process *p; size_t count, room; };

static ssize_t read_proc(const char *pid, const char *file, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

static void table_add(struct table *t, const char *pid)
{
	struct process p = { .pid = (pid_t)atoi(pid) };
	char text[512], state;
	const char *after;

	if (read_proc(pid, "stat", text, sizeof(text)) <= 0)
		return;
	after = strrchr(text, ')');	/* the name may hold anything, a ")" too */
	if (!after || sscanf(after, ") %c %d", &state, &p.parent) != 2)
		return;
	p.zombie = state == 'Z' || state == 'X';
	if (t->count == t->room) {
		const size_t room = t->room ? 2 * t->room : 256;
		struct process *more = realloc(t->p, room * sizeof(*more));

		if (!more)
			return;
		t->p = more;
		t->room = room;
	}
	t->p[t->count++] = p;
}

static bool is_ours(const struct table *t, pid_t parent)
{
	if (parent == getpid())
		return true;
	for (size_t i = 0; i < t->count; i++) {
		if (t->p[i].pid == parent)
			return t->p[i].ours;
	}
	return false;
}

/* Reads /proc once and marks our descendants, whatever the order of the pids. */
static void table_read(struct table *t)
{
	DIR *proc = opendir("/proc");
	bool more = true;

	t->count = 0;
	for (struct dirent *e = proc ? readdir(proc) : NULL; e; e = readdir(proc)) {
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			table_add(t, e->d_name);
	}
	if (proc)
		closedir(proc);
	while (more) {
		more = false;
		for (size_t i = 0; i < t->count; i++) {
			if (t->p[i].ours || !is_ours(t, t->p[i].parent))
				continue;
			t->p[i].ours = more = true;
		}
	}
}

unsigned int tree_signal(int sig)
{
	struct table t = { 0 };
	unsigned int n = 0;

	table_read(&t);
	for (size_t i = 0; i < t.count; i++) {
		if (!t.p[i].ours || t.p[i].zombie)
			continue;
		kill(t.p[i].pid, sig);
		n++;
	}
	free(t.p);
	return n;
}

static bool was_stopped(const struct table *before, pid_t pid)
{
	for (size_t i = 0; i < before->count; i++) {
		if (before->p[i].pid == pid)
			return before->p[i].stopped;
	}
	return false;
}

/* One round: stops what was not stopped before. False when there was nothing new. */
static bool freeze_round(struct table *before)
{
	struct table now = { 0 };
	bool found = false;

	table_read(&now);
	for (size_t i = 0; i < now.count; i++) {
		struct process *p = &now.p[i];

		if (!p->ours || p->zombie)
			continue;
		if (!was_stopped(before, p->pid)) {
			kill(p->pid, SIGSTOP);
			found = true;
		}
		p->stopped = true;
	}
	free(before->p);
	*before = now;
	return found;
}

void tree_kill(void)
{
	struct table seen = { 0 };

	for (int i = 0; i < FREEZE_ROUNDS && freeze_round(&seen); i++)
		;
	free(seen.p);
	tree_signal(SIGKILL);
}

static bool has_word(const char *text, size_t length, const char *word)
{
	for (size_t i = 0; i < length; i += strlen(text + i) + 1) {
		if (strcmp(text + i, word) == 0)
			return true;
	}
	return false;
}

unsigned int tree_kill_marked(const char *mark, const char *mark2)
{
	char *text = malloc(ENVIRON_MAX);
	DIR *proc = opendir("/proc");
	unsigned int n = 0;

	for (struct dirent *e = proc && text ? readdir(proc) : NULL; e; e = readdir(proc)) {
		ssize_t length;

		if (e->d_name[0] < '1' || e->d_name[0] > '9' || atoi(e->d_name) == getpid())
			continue;
		length = read_proc(e->d_name, "environ", text, ENVIRON_MAX);
		if (length <= 0 || !has_word(text, (size_t)length, mark) || !has_word(text, (size_t)length, mark2))
			continue;
		n += kill((pid_t)atoi(e->d_name), SIGKILL) == 0;
	}
	if (proc)
		closedir(proc);
	free(text);
	return n;
}
