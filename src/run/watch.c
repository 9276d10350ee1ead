/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decide/hook_life.h"
#include "tree.h"

#define KILL_AGAIN_MS 50	/* between two KILLs to a tree that does not end */

struct state {
	const struct watch *w;
	struct hook_life_spec life;
	uint64_t start_ns;
	enum hook_life done;		/* what was done last */
	int fd[2];			/* stdout, stderr; -1 closed */
	struct output out[2];
	bool ended, cancelled, timeout;
	int status;
};

int watch_prepare(int *ret_signal_fd)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	signal(SIGPIPE, SIG_IGN);	/* the daemon may be gone; the run goes on and its result is stored */
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_signal_fd = fd;
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void read_output(struct state *s, int i)
{
	char buf[8192];
	ssize_t n;

	while (s->fd[i] >= 0 && (n = read(s->fd[i], buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			break;
		output_feed(&s->out[i], buf, (size_t)n);
		if ((size_t)n < sizeof(buf))
			return;	/* a hook that prints without end must not keep us from the clock */
	}
	if (s->fd[i] >= 0)
		close(s->fd[i]);
	s->fd[i] = -1;
}

static void read_signals(struct state *s)
{
	struct signalfd_siginfo info;

	while (read(s->w->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			s->cancelled = true;
	}
}

/* False when no child is left, of the hook or adopted. */
static bool reap(struct state *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != s->w->pid)
			continue;
		s->ended = true;
		s->status = status;
	}
	return pid == 0;
}

/* From now on the run's time is over: by its limit, by our end, or because its main process has ended. */
static void end_by_now(struct state *s, uint64_t age_ns)
{
	if (s->life.limit_ns > age_ns && (s->ended || s->cancelled))
		s->life.limit_ns = age_ns;
}

/* Does what the age asks for; the time until it must be looked at again, -1 to give up. */
static int act(struct state *s)
{
	const uint64_t age_ns = now_ns() - s->start_ns;
	enum hook_life life;
	uint64_t wait_ns, wait_ms;

	end_by_now(s, age_ns);
	life = hook_life_step(&s->life, age_ns, &wait_ns);
	if (life != HOOK_LIFE_NONE && s->done == HOOK_LIFE_NONE)
		s->timeout = !s->ended;
	if (life == HOOK_LIFE_TERM && s->done != HOOK_LIFE_TERM) {
		tree_signal(SIGTERM);
		tree_signal(SIGCONT);	/* a stopped process would never see it */
	}
	if (life == HOOK_LIFE_KILL)
		tree_kill();
	s->done = life;
	if (life == HOOK_LIFE_GIVE_UP)
		return -1;
	wait_ms = wait_ns / 1000000 + 1;
	if (life == HOOK_LIFE_KILL && wait_ms > KILL_AGAIN_MS)
		return KILL_AGAIN_MS;
	return wait_ms > 60000 ? 60000 : (int)wait_ms;
}

static void describe_exit(const struct state *s, struct record_result *ret)
{
	const char *last = s->out[0].last;
	char how[100] = "";

	if (ret->lost)
		snprintf(how, sizeof(how), "lost: not ended %d s after KILL", (int)(HOOK_LIFE_KILL_NS / 1000000000));
	else if (ret->timeout && s->cancelled)
		snprintf(how, sizeof(how), "ended from outside (SIG%s)", ret->signal ? sigabbrev_np(ret->signal) : "TERM");
	else if (ret->timeout)
		snprintf(how, sizeof(how), "over its time limit of %.3g s, ended by %s",
			 (double)s->w->limit_ns / 1e9, s->done == HOOK_LIFE_KILL ? "SIGKILL" : "SIGTERM");
	else if (ret->signal)
		snprintf(how, sizeof(how), "killed by SIG%s", sigabbrev_np(ret->signal) ? : "?");
	else if (ret->exit_code == 127)
		snprintf(how, sizeof(how), "exit 127, a command was not found");
	else if (ret->exit_code != 0 && !*last)
		snprintf(how, sizeof(how), "exit %d", ret->exit_code);
	if (*how && *last)
		snprintf(ret->line, sizeof(ret->line), "%s: %.*s", how, (int)(OUTPUT_RESULT - strlen(how) - 2), last);
	else
		snprintf(ret->line, sizeof(ret->line), "%s", *how ? how : last);
}

static void fill_result(struct state *s, bool lost, struct record_result *ret)
{
	ret->ran = true;
	ret->lost = lost;
	ret->timeout = s->timeout;
	ret->exit_code = s->ended && WIFEXITED(s->status) ? WEXITSTATUS(s->status) : -1;
	ret->signal = s->ended && WIFSIGNALED(s->status) ? WTERMSIG(s->status) : 0;
	describe_exit(s, ret);
}

void watch_run(const struct watch *w, struct record_result *ret)
{
	struct state s = {
		.w = w, .start_ns = now_ns(), .fd = { w->out_fd, w->err_fd },
		.life = { .limit_ns = w->limit_ns, .grace_ns = HOOK_LIFE_GRACE_NS, .kill_ns = HOOK_LIFE_KILL_NS },
		.out = { { .log = w->log }, { .log = w->log } },
	};
	bool lost = false;

	while (reap(&s)) {
		struct pollfd p[] = {
			{ .fd = w->signal_fd, .events = POLLIN },
			{ .fd = s.fd[0], .events = POLLIN }, { .fd = s.fd[1], .events = POLLIN },
		};
		const int wait_ms = act(&s);

		lost = wait_ms < 0;
		if (lost)
			break;
		poll(p, 3, wait_ms);
		read_signals(&s);
		for (int i = 0; i < 2; i++) {
			if (p[i + 1].revents)
				read_output(&s, i);
		}
	}
	for (int i = 0; i < 2; i++) {	/* what is in the pipes; nobody is left to write more, or it is not waited for */
		for (int n = 0; n < 16 && s.fd[i] >= 0; n++)
			read_output(&s, i);
		output_end(&s.out[i]);
		if (s.fd[i] >= 0)
			close(s.fd[i]);
	}
	fill_result(&s, lost, ret);
}
