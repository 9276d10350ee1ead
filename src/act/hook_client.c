/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hook_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decide/hook_life.h"
#include "hook_request.h"

/* The runner ends its hook by itself at the limit, 3 s grace and at most 2 s of KILL; then its own time is over. */
#define RUNNER_EXTRA_NS (HOOK_LIFE_GRACE_NS + HOOK_LIFE_KILL_NS)
#define RUNS_MAX 64
#define ANSWER_MAX 1024
#define FREE_WAIT_MS 5000

struct run {
	struct run *next;
	struct hook_client *client;
	char hook[MODEL_NAME], target[SAMPLE_NAME_MAX];
	uint64_t seq, start_ns;
	struct hook_life_spec life;
	enum hook_life done;		/* what was done last */
	pid_t pid;			/* 0: never started */
	int out_fd, pid_fd;
	sd_event_source *out, *end, *timer;
	char answer[ANSWER_MAX];
	size_t length;
	bool reported;			/* given up; kept until the kernel gives it back */
	struct run_result failed;	/* pid 0: what to report */
};

struct hook_client {
	sd_event *event;
	char *runner, *config, *runs_dir;
	hook_done_fn done;
	void *userdata;
	struct run *runs;
	unsigned int count;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static char *copy_or_null(const char *text)
{
	return text ? strdup(text) : NULL;
}

int hook_client_new(sd_event *event, const struct hook_client_setup *setup, hook_done_fn done, void *userdata,
		    struct hook_client **ret)
{
	struct hook_client *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->event = sd_event_ref(event);
	c->done = done;
	c->userdata = userdata;
	c->runner = copy_or_null(setup->runner);
	c->config = copy_or_null(setup->config);
	c->runs_dir = copy_or_null(setup->runs_dir);
	if (!c->runner || (setup->config && !c->config) || (setup->runs_dir && !c->runs_dir)) {
		hook_client_free(c);
		return setup->runner ? -ENOMEM : -EINVAL;
	}
	*ret = c;
	return 0;
}

static void run_drop(struct run *r)
{
	struct run **at = &r->client->runs;

	while (*at && *at != r)
		at = &(*at)->next;
	if (*at) {
		*at = r->next;
		r->client->count--;
	}
	sd_event_source_disable_unref(r->out);
	sd_event_source_disable_unref(r->end);
	sd_event_source_disable_unref(r->timer);
	if (r->out_fd >= 0)
		close(r->out_fd);
	if (r->pid_fd >= 0)
		close(r->pid_fd);
	free(r);
}

/* Reports once. The callback may ask for the next run. */
static void report(struct run *r, struct run_result result, const char *line)
{
	struct hook_client *c = r->client;

	if (r->reported)
		return;
	r->reported = true;
	c->done(c->userdata, r->hook, r->target, r->seq, result, line);
}

static void read_answer(struct run *r)
{
	char rest[512];

	for (;;) {
		const size_t room = sizeof(r->answer) - 1 - r->length;
		const ssize_t n = read(r->out_fd, room ? r->answer + r->length : rest, room ? room : sizeof(rest));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		r->length += room ? (size_t)n : 0;
	}
	r->answer[r->length] = '\0';
}

static int on_output(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	(void)fd;
	read_answer(userdata);
	if (revents & (EPOLLHUP | EPOLLERR))
		sd_event_source_set_enabled(source, SD_EVENT_OFF);	/* the end is told by the pid's own source */
	return 0;
}

/* The runner printed no result: only what it says by its exit status is known. */
static struct run_result result_of_status(int status, char *line, size_t size)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2) {
		snprintf(line, size, "refused: the runner did not understand the request");
		return (struct run_result){ .exit_code = 64 };
	}
	if (WIFSIGNALED(status))
		snprintf(line, size, "lost: the runner was killed by signal %d", WTERMSIG(status));
	else
		snprintf(line, size, "lost: the runner ended with status %d and no result", WEXITSTATUS(status));
	return (struct run_result){ .exit_code = -1, .lost = true };
}

static int on_end(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct run *r = userdata;
	struct run_result result;
	char line[256];
	int status;

	(void)source;
	(void)fd;
	(void)revents;
	if (waitpid(r->pid, &status, WNOHANG) != r->pid)
		return 0;
	read_answer(r);
	if (!hook_request_result(r->answer, &result, line, sizeof(line)))
		result = result_of_status(status, line, sizeof(line));
	report(r, result, line);
	run_drop(r);
	return 0;
}

/* Its own session's hook dies with it (the runner asked the kernel for that). */
static void end_runner(struct run *r, enum hook_life life)
{
	if (life == HOOK_LIFE_TERM && r->done == HOOK_LIFE_NONE)
		kill(-r->pid, SIGTERM);
	if (life == HOOK_LIFE_KILL || life == HOOK_LIFE_GIVE_UP)
		kill(-r->pid, SIGKILL);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct run *r = userdata;
	uint64_t wait_ns;
	const enum hook_life life = hook_life_step(&r->life, now_ns() - r->start_ns, &wait_ns);

	(void)usec;
	end_runner(r, life);
	r->done = life;
	if (life == HOOK_LIFE_GIVE_UP) {
		report(r, (struct run_result){ .exit_code = -1, .lost = true }, "lost: the runner does not end");
		return 0;
	}
	sd_event_source_set_time_relative(source, wait_ns / 1000 + 1);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_not_started(sd_event_source *source, void *userdata)
{
	struct run *r = userdata;

	(void)source;
	report(r, r->failed, r->answer);
	run_drop(r);
	return 0;
}

static int spawn_with(struct run *r, int in_fd, int out_fd, posix_spawnattr_t *attr,
		      posix_spawn_file_actions_t *files)
{
	static char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", NULL };
	struct hook_client *c = r->client;
	char *argv[6] = { c->runner };
	sigset_t all, none;
	int n = 1, e;

	if (c->config) {
		argv[n++] = "--config";
		argv[n++] = c->config;
	}
	if (c->runs_dir) {
		argv[n++] = "--runs-dir";
		argv[n++] = c->runs_dir;
	}
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(attr, 0);
	posix_spawnattr_setsigmask(attr, &none);
	posix_spawnattr_setsigdefault(attr, &all);
	e = posix_spawn_file_actions_adddup2(files, in_fd, STDIN_FILENO);
	if (!e)
		e = posix_spawn_file_actions_adddup2(files, out_fd, STDOUT_FILENO);
	if (!e)
		e = posix_spawn_file_actions_addclosefrom_np(files, 3);
	return e ? -e : -posix_spawn(&r->pid, c->runner, files, attr, argv, env);
}

static int spawn(struct run *r, int in_fd)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int out[2], err;

	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	err = spawn_with(r, in_fd, out[1], &attr, &files);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	close(out[1]);
	if (err < 0) {
		close(out[0]);
		r->pid = 0;
		return err;
	}
	r->out_fd = out[0];
	return fcntl(r->out_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* A pidfd needs no blocked SIGCHLD in the whole process, as sd_event_add_child() would. */
static int watch(struct run *r)
{
	sd_event *event = r->client->event;
	int err;

	r->pid_fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
	if (r->pid_fd < 0)
		return -errno;
	err = sd_event_add_io(event, &r->out, r->out_fd, EPOLLIN, on_output, r);
	if (err >= 0)
		err = sd_event_add_io(event, &r->end, r->pid_fd, EPOLLIN, on_end, r);
	if (err >= 0)
		err = sd_event_add_time_relative(event, &r->timer, CLOCK_MONOTONIC, r->life.limit_ns / 1000, 0,
						 on_time, r);
	return err;
}

/* A run that could not be started is a result like any other, told from the loop, never from inside the caller. */
static int fail_later(struct run *r, int error)
{
	r->failed = (struct run_result){ .exit_code = error == -EAGAIN ? 75 : 69 };
	snprintf(r->answer, sizeof(r->answer), "refused: %s: %s", r->client->runner,
		 error == -EAGAIN ? "too many hooks run at once" : strerror(-error));
	return sd_event_add_defer(r->client->event, &r->end, on_not_started, r);
}

int hook_client_run(struct hook_client *c, const struct hook_request *request)
{
	struct run *r;
	int in_fd, err = hook_request_file(request, &in_fd);

	if (err < 0)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r) {
		close(in_fd);
		return -ENOMEM;
	}
	r->client = c;
	r->out_fd = r->pid_fd = -1;
	r->seq = request->seq;
	r->start_ns = now_ns();
	r->life = (struct hook_life_spec){ .limit_ns = request->timeout_ns + RUNNER_EXTRA_NS,
					   .grace_ns = HOOK_LIFE_GRACE_NS, .kill_ns = HOOK_LIFE_KILL_NS };
	snprintf(r->hook, sizeof(r->hook), "%s", request->hook);
	snprintf(r->target, sizeof(r->target), "%s", request->target);
	err = c->count >= RUNS_MAX ? -EAGAIN : spawn(r, in_fd);
	close(in_fd);
	r->next = c->runs;
	c->runs = r;
	c->count++;
	if (err == 0)
		err = watch(r);
	if (err < 0 && r->pid) {	/* started but cannot be watched: it must not run on unseen */
		kill(-r->pid, SIGKILL);
		waitpid(r->pid, NULL, 0);
		r->pid = 0;
		r->end = sd_event_source_disable_unref(r->end);
	}
	return err < 0 ? fail_later(r, err) : 0;
}

unsigned int hook_client_running(const struct hook_client *c)
{
	unsigned int n = 0;

	for (const struct run *r = c->runs; r; r = r->next)
		n += !r->reported;
	return n;
}

/* Until it has ended, at most until until_ns; true when it has. */
static bool wait_for_end(struct run *r, uint64_t until_ns)
{
	struct pollfd p = { .fd = r->pid_fd, .events = POLLIN };
	const uint64_t now = now_ns();

	if (waitpid(r->pid, NULL, WNOHANG) == r->pid)
		return true;
	poll(&p, 1, now < until_ns ? (int)((until_ns - now) / 1000000) : 0);
	return waitpid(r->pid, NULL, WNOHANG) == r->pid;
}

void hook_client_free(struct hook_client *c)
{
	const uint64_t until_ns = now_ns() + (uint64_t)FREE_WAIT_MS * 1000000;

	if (!c)
		return;
	for (struct run *r = c->runs; r; r = r->next) {
		if (r->pid)
			kill(-r->pid, SIGTERM);
	}
	while (c->runs) {
		struct run *r = c->runs;

		if (r->pid && !wait_for_end(r, until_ns)) {
			kill(-r->pid, SIGKILL);
			wait_for_end(r, now_ns() + 1000000000);
		}
		run_drop(r);
	}
	sd_event_unref(c->event);
	free(c->runner);
	free(c->config);
	free(c->runs_dir);
	free(c);
}
