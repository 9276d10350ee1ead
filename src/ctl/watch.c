/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "panel.h"
#include "plain.h"
#include "reply.h"

#define FIRST_TRIES 25	/* 200 ms apart */
#define ASK_TIMEOUT_NS 2000000000ULL	/* a key press or Ctrl-C waits as long at worst */

struct screen {
	struct term term;
	const struct watch *watch;
	json_t *answer;			/* the last good one; NULL when the last ask failed */
	struct client_why why;
	int signals, timer;
	bool entered, raw;		/* cursor hidden; keyboard set up */
	struct termios before;
};

static int write_all(const char *bytes, size_t length)
{
	ssize_t n;

	while (length) {
		n = write(STDOUT_FILENO, bytes, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };

			if (poll(&p, 1, 1000) < 0 && errno != EINTR)
				return -errno;
			continue;
		}
		if (n < 0)
			return -errno;
		bytes += n;
		length -= (size_t)n;
	}
	return 0;
}

/* Hide the cursor, no wrapping, no echo of keys. What was on the screen scrolls away instead of being overwritten. */
static void enter(struct screen *s)
{
	struct text t = { 0 };
	struct termios mode;

	if (!s->term.tty)
		return;
	text_repeat(&t, "\n", s->term.height);
	text_put(&t, "\033[?25l\033[?7l\033[H\033[J");
	s->entered = write_all(t.bytes, t.length) == 0;
	text_free(&t);
	if (tcgetattr(STDIN_FILENO, &s->before) == 0 && tcgetpgrp(STDIN_FILENO) == getpgrp()) {
		mode = s->before;
		mode.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
		mode.c_cc[VMIN] = 1;
		mode.c_cc[VTIME] = 0;
		s->raw = tcsetattr(STDIN_FILENO, TCSANOW, &mode) == 0;
	}
}

static void leave(struct screen *s)
{
	static const char restore[] = "\033[0m\033[?7h\033[?25h\n";

	if (s->entered)
		write_all(restore, sizeof(restore) - 1);
	if (s->raw)
		tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
	s->entered = s->raw = false;
}

/* Ask again; 0, or the error with s->why filled. */
static int refresh(struct screen *s)
{
	const struct client_ask ask = { s->watch->path, s->term.tty ? "histograms" : "status", ASK_TIMEOUT_NS };
	size_t length = 0;
	char *bytes = NULL;
	int r;

	json_decref(s->answer);
	s->answer = NULL;
	r = client_ask(&ask, &s->why, &bytes, &length);
	if (r < 0)
		return r;
	r = reply_parse(bytes, length, &s->why, &s->answer);
	free(bytes);
	if (r < 0)
		return r;
	reply_clean(s->answer);
	s->why.text[0] = '\0';
	return 0;
}

/* The frame over the one before, line by line: what a line leaves over is erased, so nothing flickers. */
static int draw_panel(const struct screen *s)
{
	const struct panel panel = { s->answer, s->why.text, s->watch->target };
	struct text frame = { 0 }, t = { 0 };
	const char *line, *end;
	size_t rows = 0;
	int r;

	panel_draw(&frame, &s->term, &panel);
	text_put(&t, "\033[H");
	for (line = frame.bytes; line && *line && rows < s->term.height; line = end + 1, rows++) {
		end = strchr(line, '\n');
		text_put(&t, rows ? "\r\n" : "");
		text_printf(&t, "\033[K");
		while (line < end) {	/* pieces: a line with colours can be long */
			char piece[256];
			const size_t n = (size_t)(end - line) < sizeof(piece) ? (size_t)(end - line) : sizeof(piece) - 1;

			memcpy(piece, line, n);
			piece[n] = '\0';
			text_put(&t, piece);
			line += n;
		}
	}
	text_put(&t, "\033[J");
	r = write_all(t.bytes, t.length);
	text_free(&frame);
	text_free(&t);
	return r;
}

static int draw_plain(const struct screen *s)
{
	struct text t = { 0 };
	int r;

	if (s->answer)
		plain_status(&t, &s->term, s->answer, s->watch->target);
	else
		text_printf(&t, "UNKNOWN  %.*s\n", (int)strcspn(s->why.text, "\n"), s->why.text);
	text_put(&t, "\n");
	r = write_all(t.bytes, t.length);
	text_free(&t);
	return r;
}

static int draw(const struct screen *s)
{
	return s->term.tty ? draw_panel(s) : draw_plain(s);
}

static int arm(struct screen *s)
{
	const uint64_t ns = s->watch->interval_ns;
	const struct timespec each = { (time_t)(ns / 1000000000ULL), (long)(ns % 1000000000ULL) };
	const struct itimerspec timer = { .it_interval = each, .it_value = each };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);		/* a closed pipe is a write error */
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->signals < 0 || s->timer < 0 || timerfd_settime(s->timer, 0, &timer, NULL) < 0)
		return -errno;
	return 0;
}

/* Ctrl-Z: give the terminal back, stop, and take it again when continued. */
static void suspend(struct screen *s)
{
	leave(s);
	raise(SIGSTOP);
	s->term = term_probe();
	enter(s);
}

/* true: the user wants to end. */
static bool on_signal(struct screen *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTSTP)
			suspend(s);
		else if (info.ssi_signo != SIGWINCH)
			return true;
		s->term = term_probe();
	}
	return false;
}

static bool on_key(struct screen *s)
{
	char key[16];
	const ssize_t n = read(STDIN_FILENO, key, sizeof(key));

	if (n <= 0)
		s->raw = false;		/* no keyboard any more; the settings cannot be put back there either */
	return n > 0 && (memchr(key, 'q', (size_t)n) || memchr(key, 'Q', (size_t)n));
}

static int loop(struct screen *s)
{
	uint64_t ticks;
	int r = draw(s);

	while (r == 0) {
		struct pollfd p[] = { { .fd = s->signals, .events = POLLIN }, { .fd = s->timer, .events = POLLIN },
				      { .fd = s->raw ? STDIN_FILENO : -1, .events = POLLIN } };

		if (poll(p, 3, -1) < 0 && errno != EINTR)
			return -errno;
		if (p[2].revents && on_key(s))
			return 0;
		if (p[0].revents && on_signal(s))
			return 0;
		if (p[1].revents && read(s->timer, &ticks, sizeof(ticks)) == (ssize_t)sizeof(ticks))
			refresh(s);
		else if (!(p[0].revents && s->term.tty))
			continue;	/* nothing new to show; a new size is */
		r = draw(s);
	}
	return r;
}

/* A daemon that starts is worth a few seconds; one that refuses us is not. */
static int first_answer(struct screen *s)
{
	const struct timespec pause = { .tv_nsec = 200000000 };
	int r = refresh(s);

	for (int i = 0; i < FIRST_TRIES && (r == -ENOENT || r == -ECONNREFUSED || r == -EAGAIN); i++) {
		if (!i)
			fprintf(stderr, "dwellctl: %s; waiting a few seconds\n", s->why.text);
		nanosleep(&pause, NULL);
		r = refresh(s);
	}
	return r;
}

int watch_run(const struct watch *w)
{
	struct screen s = { .term = term_probe(), .watch = w, .signals = -1, .timer = -1 };
	int r;

	r = first_answer(&s);
	if (r < 0) {
		fprintf(stderr, "dwellctl: %s\n", s.why.text);
		return EXIT_FAILURE;
	}
	r = arm(&s);
	if (r == 0) {
		enter(&s);
		r = loop(&s);
		leave(&s);
	}
	json_decref(s.answer);
	if (r < 0 && r != -EPIPE)
		fprintf(stderr, "dwellctl: %s\n", strerror(-r));
	return r < 0 && r != -EPIPE ? EXIT_FAILURE : EXIT_SUCCESS;
}
