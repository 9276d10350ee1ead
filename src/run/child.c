/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int child_find_user(const struct model_hook *hook, struct child_user *ret, char *why, size_t size)
{
	const struct passwd *pw = getpwnam(hook->user);
	struct child_user u = { .group_count = CHILD_GROUPS_MAX };

	if (!pw) {
		snprintf(why, size, "user \"%s\" does not exist, expected a system user (sysusers.d makes dwelld-hook)",
			 hook->user);
		return -ENOENT;
	}
	u.uid = pw->pw_uid;
	u.gid = pw->pw_gid;
	snprintf(u.name, sizeof(u.name), "%s", hook->user);
	if (geteuid() != 0 && u.uid != geteuid()) {
		snprintf(why, size, "must run as root to become user %s (is uid %u)", u.name, geteuid());
		return -EPERM;
	}
	if (getgrouplist(u.name, u.gid, u.group, &u.group_count) < 0) {
		snprintf(why, size, "user %s is in more than %d groups", u.name, CHILD_GROUPS_MAX);
		return -E2BIG;
	}
	*ret = u;
	return 0;
}

/* ---- arguments and environment ---- */

static char *keep(struct child *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static char *keep(struct child *c, const char *format, ...)
{
	char *at = c->text + c->used;
	const size_t room = sizeof(c->text) - c->used;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(at, room, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= room) {
		c->full = true;
		return at;
	}
	c->used += (size_t)n + 1;
	return at;
}

static const char *host_name(void)
{
	static char name[256];

	if (gethostname(name, sizeof(name) - 1) < 0)
		return "";
	return name;
}

/* Value of a placeholder such as "{unit}" at text; its length in *ret_length. NULL: no placeholder. */
static const char *placeholder(const struct request *q, const char *text, size_t *ret_length)
{
	const struct { const char *name, *value; } known[] = {
		{ "{target}", q->target }, { "{unit}", q->unit }, { "{cgroup}", q->cgroup },
		{ "{ports}", q->ports }, { "{rule}", q->rule }, { "{host}", host_name() },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		*ret_length = strlen(known[i].name);
		if (strncmp(text, known[i].name, *ret_length) == 0)
			return known[i].value;
	}
	return NULL;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Bytes that mean nothing to any shell, and the backslash of an escaped unit name (\x2d). */
static char safe_byte(const char *p)
{
	if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
	    strchr("._:@/,+-", *p))
		return *p;
	if (p[0] == '\\' && p[1] == 'x' && is_hex(p[2]) && is_hex(p[3]))
		return *p;
	return '_';
}

/* An argument that is nothing but a placeholder must not become an option. */
static char *expand(struct child *c, const char *argument)
{
	char out[4096];
	size_t n = 0;

	for (const char *p = argument; *p && n + 1 < sizeof(out);) {
		size_t length;
		const char *value = *p == '{' ? placeholder(c->request, p, &length) : NULL;

		if (!value) {
			out[n++] = *p++;
			continue;
		}
		for (const char *v = value; *v && n + 1 < sizeof(out); v++, n++)
			out[n] = *v == '-' && n == 0 ? '_' : safe_byte(v);
		p += length;
	}
	out[n] = '\0';
	return keep(c, "%s", out);
}

static void build_env(struct child *c)
{
	const struct request *q = c->request;
	const uint64_t deadline = (uint64_t)time(NULL) + (c->hook->timeout_ns + 999999999) / 1000000000;
	size_t n = 0;

	c->env[n++] = keep(c, "DWELLD_CONTRACT=1");
	c->env[n++] = keep(c, "DWELLD_ACTION=%s", q->action);
	c->env[n++] = keep(c, "DWELLD_EVENT=%s", q->event);
	c->env[n++] = keep(c, "DWELLD_HOOK=%s", q->hook);
	c->env[n++] = keep(c, "DWELLD_RULE=%s", q->rule);
	c->env[n++] = keep(c, "DWELLD_TARGET=%s", q->target);
	c->env[n++] = keep(c, "DWELLD_UNIT=%s", q->unit);
	c->env[n++] = keep(c, "DWELLD_CGROUP=%s", q->cgroup);
	c->env[n++] = keep(c, "DWELLD_PIDS=%s", q->pids);
	c->env[n++] = keep(c, "DWELLD_PORTS=%s", q->ports);
	c->env[n++] = keep(c, "DWELLD_CLASS=%s", q->class);
	c->env[n++] = keep(c, "DWELLD_SEVERITY=%s", q->severity);
	c->env[n++] = keep(c, "DWELLD_ALERT_ID=%s", q->alert_id);
	c->env[n++] = keep(c, "DWELLD_SEQ=%" PRIu64, q->seq);
	c->env[n++] = keep(c, "DWELLD_ATTEMPT=%u", c->attempt);
	c->env[n++] = keep(c, "DWELLD_SUMMARY=%s", q->summary);
	c->env[n++] = keep(c, "DWELLD_HOST=%s", host_name());
	c->env[n++] = keep(c, "DWELLD_DEADLINE=%" PRIu64, deadline);
	c->env[n++] = keep(c, "DWELLD_DRY_RUN=%d", q->dry_run);
	c->env[n++] = keep(c, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	c->env[n++] = keep(c, "LC_ALL=C.UTF-8");
	c->env[n++] = keep(c, "TZ=UTC");
	c->env[n++] = keep(c, "HOME=/nonexistent");
	c->env[n++] = keep(c, "STATE_DIRECTORY=%s", c->state_dir);
	if (*c->credentials_dir)
		c->env[n++] = keep(c, "CREDENTIALS_DIRECTORY=%s", c->credentials_dir);
	c->env[n] = NULL;
}

static int build(struct child *c, char *why, size_t size)
{
	c->used = 0;
	c->full = false;
	for (unsigned int i = 0; i < c->hook->argc; i++)
		c->argv[i] = i ? expand(c, c->hook->argv[i]) : keep(c, "%s", c->hook->argv[0]);
	c->argv[c->hook->argc] = NULL;
	build_env(c);
	if (!c->full)
		return 0;
	snprintf(why, size, "arguments and environment are longer than %zu bytes", sizeof(c->text));
	return -E2BIG;
}

/* ---- the process ---- */

/* The event as a file that the hook can neither change nor be kept waiting by. */
static int event_file(const struct request *q)
{
	const int fd = memfd_create("event", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, q->body, q->length) != (ssize_t)q->length || lseek(fd, 0, SEEK_SET) < 0 ||
	    fchmod(fd, 0444) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

struct ends { int in, out, err, failed; };

static void default_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int become(const struct child_user *u)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups((size_t)u->group_count, u->group) < 0 || setresgid(u->gid, u->gid, u->gid) < 0 ||
	    setresuid(u->uid, u->uid, u->uid) < 0)
		return -1;
	return 0;
}

/* In the new process, until exec. Any failure goes through the pipe as an errno. */
__attribute__((noreturn))
static void run(struct child *c, const struct ends *e, pid_t runner)
{
	int error;

	default_signals();
	/* a dead runner must not leave a hook that nobody watches; set after the change of user, which clears it */
	if (setsid() >= 0 && dup2(e->in, 0) >= 0 && dup2(e->out, 1) >= 0 && dup2(e->err, 2) >= 0 &&
	    chdir("/") == 0 && become(&c->user) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
	    getppid() == runner && close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
		umask(077);
		if (c->program->script)
			execve(c->program->real, c->argv, c->env);
		else
			fexecve(c->program->fd, c->argv, c->env);
	}
	error = errno ? errno : ECHILD;
	if (write(e->failed, &error, sizeof(error)) < 0)
		_exit(125);
	_exit(126);
}

static int wait_for_exec(int fd, pid_t pid)
{
	int error = 0;
	ssize_t n;

	do {
		n = read(fd, &error, sizeof(error));
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(error))
		return 0;	/* closed by exec */
	waitpid(pid, NULL, 0);
	return -error;
}

static void close_both(int fds[2])
{
	for (int i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

static int spawn(struct child *c, int in_fd)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, failed[2] = { -1, -1 };
	const pid_t runner = getpid();
	int r = 0;

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0)
		r = -errno;
	/* so that the hook's user may open /dev/stdout and /dev/stderr */
	if (r == 0 && geteuid() == 0 &&
	    (fchown(out[1], c->user.uid, c->user.gid) < 0 || fchown(err[1], c->user.uid, c->user.gid) < 0))
		r = -errno;
	if (r == 0) {
		c->pid = fork();
		if (c->pid == 0)
			run(c, &(struct ends){ .in = in_fd, .out = out[1], .err = err[1], .failed = failed[1] }, runner);
		r = c->pid < 0 ? -errno : 0;
	}
	if (r == 0) {
		close(failed[1]);
		failed[1] = -1;
		r = wait_for_exec(failed[0], c->pid);
	}
	if (r == 0) {
		c->out_fd = out[0];
		c->err_fd = err[0];
		out[0] = err[0] = -1;
		fcntl(c->out_fd, F_SETFL, O_NONBLOCK);
		fcntl(c->err_fd, F_SETFL, O_NONBLOCK);
	}
	close_both(out);
	close_both(err);
	close_both(failed);
	return r;
}

int child_start(struct child *c, char *why, size_t size)
{
	int in_fd, r = build(c, why, size);

	if (r < 0)
		return r;
	in_fd = event_file(c->request);
	if (in_fd < 0) {
		snprintf(why, size, "the event's file: %s", strerror(-in_fd));
		return in_fd;
	}
	r = spawn(c, in_fd);
	close(in_fd);
	if (r < 0)
		snprintf(why, size, "%s: cannot be started as user %s: %s", c->program->real, c->user.name, strerror(-r));
	return r;
}
