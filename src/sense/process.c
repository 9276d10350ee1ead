/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void clean(char *s)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("._:@-\\", *s))
			*s = '_';
}

static void copy_clean(char *to, size_t size, const char *from, size_t n)
{
	snprintf(to, size, "%.*s", (int)n, from);
	clean(to);
}

static bool ends_with(const char *s, size_t n, const char *end)
{
	size_t e = strlen(end);

	return n > e && !memcmp(s + n - e, end, e);
}

static bool generated(const char *unit)
{
	static const char *const pattern[] = {
		"docker-*.scope", "libpod-*", "cri-containerd-*", "crio-*", "session-*.scope", "user@*.service",
		"kubepods*", "machine-*.scope", "run-*.scope", "run-*.service", "app-*.scope", "vte-spawn-*.scope",
		"init.scope", "nspawn-*", "payload", "lxc-*", "lxc.payload*"
	};

	for (size_t i = 0; i < sizeof(pattern) / sizeof(pattern[0]); i++)
		if (!fnmatch(pattern[i], unit, 0))
			return true;
	return false;
}

/* The deepest component that is a service or scope is the unit; below it may be cgroups that the service made. */
static void unit_of(struct process *p)
{
	const char *at = p->cgroup;
	bool in_pod = strstr(p->cgroup, "kubepods") != NULL;

	p->unit[0] = '\0';
	while (*at) {
		size_t n;

		at += strspn(at, "/");
		n = strcspn(at, "/");
		if (ends_with(at, n, ".service") || ends_with(at, n, ".scope"))
			copy_clean(p->unit, sizeof(p->unit), at, n);
		at += n;
	}
	p->unit_generated = in_pod || generated(p->unit);
}

void process_cgroup(const char *text, struct process *p)
{
	const char *best = NULL;
	bool named = false;

	while (*text) {
		size_t n = strcspn(text, "\n");
		const char *first = memchr(text, ':', n);
		const char *second = first ? memchr(first + 1, ':', n - (size_t)(first + 1 - text)) : NULL;

		if (second) {
			bool systemd = !strncmp(first, ":name=systemd:", 14), v2 = !strncmp(text, "0::", 3);

			if (systemd || (v2 && !named)) {
				best = second + 1;
				named = systemd;
			}
		}
		text += n + (text[n] == '\n');
	}
	snprintf(p->cgroup, sizeof(p->cgroup), "%.*s", best ? (int)strcspn(best, "\n") : 1, best ? best : "/");
	unit_of(p);
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool interpreter(const char *program)
{
	return !fnmatch("java", program, 0) || !fnmatch("node*", program, 0) || !fnmatch("python*", program, 0) ||
	       !fnmatch("beam*", program, 0) || !fnmatch("perl*", program, 0) || !fnmatch("ruby*", program, 0);
}

static bool listed(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list))
			return true;
	return false;
}

/* Options whose value is the next word. */
static const char *const with_value[] = { "-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules",
	"--add-opens", "--add-exports", "-r", "--require", "--import", "--loader", "-W", "-X", "-I", NULL };
static const char *const node_code[] = { "-e", "-pe", "-p", "--eval", "--print", NULL };

/* Code on the command line, such as python3 -uc: it names nothing. */
static bool is_code(const char *program, const char *option)
{
	const size_t n = strlen(option);

	if (!fnmatch("node*", program, 0))
		return listed(option, node_code);
	if (n < 2 || option[1] == '-')
		return false;
	if (!fnmatch("python*", program, 0))
		return option[n - 1] == 'c';
	return (!fnmatch("perl*", program, 0) || !fnmatch("ruby*", program, 0)) && strchr("eE", option[n - 1]);
}

/* The first argument that is a script or jar: not an option, nor the value of one that we know to take one. */
static const char *script_of(const char *program, const char *cmdline, size_t n)
{
	const char *at = cmdline + strnlen(cmdline, n) + 1, *end = cmdline + n;
	bool skip = false;

	for (; at < end && *at; at += strnlen(at, (size_t)(end - at)) + 1) {
		if (skip)
			skip = false;
		else if (at[0] != '-')
			return at;
		else if (is_code(program, at))
			return NULL;
		else
			skip = listed(at, with_value);
	}
	return NULL;
}

void process_name(struct process *p, const char *exe, const char *cmdline, size_t n)
{
	char path[MODEL_PATH];
	const char *script;
	size_t len;

	snprintf(path, sizeof(path), "%s", exe[0] ? exe : n ? cmdline : "unknown");
	len = strlen(path);
	if (ends_with(path, len, " (deleted)"))
		path[len - 10] = '\0';
	copy_clean(p->program, sizeof(p->program), base(path), strlen(base(path)));
	if (p->unit[0] && !p->unit_generated) {
		snprintf(p->name, sizeof(p->name), "%s", p->unit);
		return;
	}
	script = n && interpreter(p->program) ? script_of(p->program, cmdline, n) : NULL;
	snprintf(p->name, sizeof(p->name), "%s%s%.60s", p->program, script ? ":" : "", script ? base(script) : "");
	clean(p->name);
}

static ssize_t read_file(const char *root, uint32_t pid, const char *what, char *buf, size_t size)
{
	char path[MODEL_PATH];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%u/%s", root, pid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n < 0 ? -ESRCH : n;
}

int process_read_cgroup(const char *root, uint32_t pid, struct process *p)
{
	char text[4096];

	if (read_file(root, pid, "cgroup", text, sizeof(text)) < 0)
		return -ESRCH;
	process_cgroup(text, p);
	return 0;
}

int process_read(const char *root, uint32_t pid, struct process *ret)
{
	char text[4096], path[MODEL_PATH], exe[MODEL_PATH];
	ssize_t n;

	memset(ret, 0, sizeof(*ret));
	if (process_read_cgroup(root, pid, ret) < 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "%s/%u/exe", root, pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	n = read_file(root, pid, "cmdline", text, sizeof(text));
	process_name(ret, exe, text, n > 0 ? (size_t)n : 0);
	return 0;
}

unsigned int process_match(const struct process *p, const struct model_match *m)
{
	unsigned int rank = m->port_low ? 8 : 0;

	if (m->process[0]) {
		if (fnmatch(m->process, p->program, 0))
			return 0;
		rank += 4;
	}
	if (m->unit[0]) {
		if (fnmatch(m->unit, p->unit, FNM_NOESCAPE))
			return 0;
		rank += 2;
	}
	if (m->cgroup[0]) {
		size_t n = strlen(m->cgroup);

		/* a path also stands for everything below it */
		if (fnmatch(m->cgroup, p->cgroup, FNM_NOESCAPE) &&
		    !(n && !strncmp(m->cgroup, p->cgroup, n) && (p->cgroup[n] == '/' || m->cgroup[n - 1] == '/')))
			return 0;
		rank += 1;
	}
	return rank;
}
