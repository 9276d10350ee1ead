/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "act/journal.h"
#include "act/journal_entry.h"
#include "act/journal_ids.h"

#define MS 1000000ULL
#define S 1000000000ULL

static char dir[] = "/tmp/dwelld-journal-XXXXXX", path[64];

/* A journald that is read only when the test says so. */
static int fake_journald(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	cr_assert_neq(mkdtemp(dir), NULL);
	snprintf(path, sizeof(path), "%s/socket", dir);
	memcpy(a.sun_path, path, strlen(path) + 1);
	cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void remove_journald(int fd)
{
	close(fd);
	unlink(path);
	rmdir(dir);
}

/* Next entry as journald would read it, NULL when none waits. *ret_memfd: whether it came in a memfd. */
static char *receive(int fd, size_t *ret_length, bool *ret_memfd)
{
	static char buf[262144];
	union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control;
	struct iovec io = { .iov_base = buf, .iov_len = sizeof(buf) - 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
	struct cmsghdr *c;

	if (n < 0)
		return NULL;
	c = CMSG_FIRSTHDR(&m);
	*ret_memfd = c != NULL;
	if (c) {
		int data;

		memcpy(&data, CMSG_DATA(c), sizeof(data));
		cr_expect_eq(fcntl(data, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
		n = pread(data, buf, sizeof(buf) - 1, 0);
		cr_assert_geq(n, 0);
		close(data);
	}
	buf[n] = 0;
	*ret_length = (size_t)n;
	return buf;
}

/* Value of a field, decoded by the rules of the protocol; "" when it is not there. Static buffer. */
static const char *field(const char *data, size_t length, const char *name)
{
	static char value[262144];
	const char *end = data + length;

	while (data < end) {
		const char *line_end = memchr(data, '\n', (size_t)(end - data));
		const char *eq = memchr(data, '=', (size_t)(line_end - data));
		const char *start = eq ? eq + 1 : line_end + 1 + 8;
		const size_t name_length = (size_t)((eq ? eq : line_end) - data);
		size_t size;

		if (eq) {
			size = (size_t)(line_end - start);
		} else {
			uint64_t le;

			memcpy(&le, line_end + 1, 8);
			size = le;
			cr_assert_leq(size, (size_t)(end - start));
			cr_assert_eq(start[size], '\n');
		}
		if (name_length == strlen(name) && memcmp(data, name, name_length) == 0) {
			memcpy(value, start, size);
			value[size] = 0;
			return value;
		}
		data = start + size + 1;
	}
	return "";
}

static struct event starved(void)
{
	struct event e = {
		.kind = EVENT_FIRE, .class = CLASS_SERVER, .severity = SEVERITY_WARNING, .state = STATE_FIRING,
		.prev_state = STATE_PENDING, .seq = 7, .value_known = true, .value = 41.0 * MS, .threshold = 10.0 * MS,
		.peak = 57.0 * MS, .dim = UNIT_TIME, .samples = 2210, .started_us = 1700000000123456, .exit_code = -1,
		.duration_ns = 260 * S,
	};

	strcpy(e.alert_id, "h1-reader-starved-sfu-1700000000");
	strcpy(e.rule, "reader-starved");
	strcpy(e.target, "sfu");
	strcpy(e.unit, "janus.service");
	strcpy(e.summary, "the threads that read sfu wait for a CPU");
	strcpy(e.evidence_text, "dwell p99 41ms > 10ms, run queue p99 38ms");
	strcpy(e.coverage, "dwell fifo inexact");
	strcpy(e.hooks, "raise-cpu do");
	return e;
}

Test(journal, an_alert_carries_all_its_fields)
{
	const struct event e = starved();
	const int fd = fake_journald();
	struct journal *j;
	size_t n;
	bool memfd;
	char *got;

	cr_assert_eq(journal_new(path, false, "cafe", &j), 0);
	journal_event(j, &e);
	got = receive(fd, &n, &memfd);
	cr_assert_neq(got, NULL);
	cr_expect_not(memfd);
	cr_expect_str_eq(field(got, n, "MESSAGE"), "ALERT sfu: server / reader-starved: the threads that read sfu wait "
			 "for a CPU (dwell p99 41ms > 10ms, run queue p99 38ms)");
	cr_expect_str_eq(field(got, n, "MESSAGE_ID"), JOURNAL_ID_FIRE);
	cr_expect_str_eq(field(got, n, "PRIORITY"), "4");
	cr_expect_str_eq(field(got, n, "SYSLOG_IDENTIFIER"), "dwelld");
	cr_expect_str_eq(field(got, n, "DWELLD_EVENT"), "fire");
	cr_expect_str_eq(field(got, n, "DWELLD_ALERT_ID"), "h1-reader-starved-sfu-1700000000");
	cr_expect_str_eq(field(got, n, "DWELLD_RULE"), "reader-starved");
	cr_expect_str_eq(field(got, n, "DWELLD_TARGET"), "sfu");
	cr_expect_str_eq(field(got, n, "DWELLD_UNIT"), "janus.service");
	cr_expect_str_eq(field(got, n, "DWELLD_CLASS"), "server");
	cr_expect_str_eq(field(got, n, "DWELLD_SEVERITY"), "warning");
	cr_expect_str_eq(field(got, n, "DWELLD_STATE"), "firing");
	cr_expect_str_eq(field(got, n, "DWELLD_PREV_STATE"), "pending");
	cr_expect_str_eq(field(got, n, "DWELLD_SEQ"), "7");
	cr_expect_str_eq(field(got, n, "DWELLD_SUMMARY"), e.summary);
	cr_expect_str_eq(field(got, n, "DWELLD_EVIDENCE"), e.evidence_text);
	cr_expect(strstr(field(got, n, "DWELLD_VALUE"), "41") && strstr(field(got, n, "DWELLD_VALUE"), "ms"));
	cr_expect(strstr(field(got, n, "DWELLD_THRESHOLD"), "10"));
	cr_expect(strstr(field(got, n, "DWELLD_PEAK"), "57"));
	cr_expect_str_eq(field(got, n, "DWELLD_SAMPLES"), "2210");
	cr_expect_str_eq(field(got, n, "DWELLD_STARTED"), "2023-11-14T22:13:20.123456Z");
	cr_expect_str_eq(field(got, n, "DWELLD_DURATION_USEC"), "260000000");
	cr_expect_str_eq(field(got, n, "DWELLD_COVERAGE"), "dwell fifo inexact");
	cr_expect_str_eq(field(got, n, "DWELLD_HOOKS"), "raise-cpu do");
	cr_expect_str_eq(field(got, n, "DWELLD_CONFIG_HASH"), "cafe");
	cr_expect_eq(receive(fd, &n, &memfd), NULL, "one transition, one entry");
	cr_expect_eq(journal_dropped(j), 0);
	journal_free(j);
	remove_journald(fd);
}

Test(journal, each_kind_has_its_own_id_priority_and_words)
{
	static const struct { enum event_kind kind; int priority; const char *starts; } want[] = {
		{ EVENT_FIRE, 4, "ALERT sfu: " }, { EVENT_WORSE, 4, "ALERT, now warning, sfu: " },
		{ EVENT_BETTER, 5, "ALERT, only warning now, sfu: " },
		{ EVENT_MITIGATED, 5, "MITIGATED sfu: reader-starved is quiet after 4min 20s, worst 57" },
		{ EVENT_RESOLVE, 5, "RESOLVED sfu: reader-starved is over after 4min 20s, worst 57" },
		{ EVENT_WITHDRAW, 5, "WITHDRAWN sfu: " }, { EVENT_FLAPPING, 4, "FLAPPING sfu: " },
		{ EVENT_SETTLED, 5, "SETTLED sfu: " },
		{ EVENT_NODATA, 4, "NO DATA sfu: reader-starved cannot be judged now (it was pending)" },
		{ EVENT_DATA_BACK, 5, "DATA BACK sfu: " }, { EVENT_REMINDER, 4, "STILL ALERT for 4min 20s, sfu: " },
		{ EVENT_LATCHED, 3, "LATCHED, " }, { EVENT_TEST, 6, "TEST, nothing is wrong, sfu: " },
		{ EVENT_HOOK_ASKED, 6, "HOOK raise-cpu do for sfu asked by reader-starved: " },
		{ EVENT_HOOK_DONE, 6, "HOOK raise-cpu do for sfu done: exit 0: old=100 new=1000" },
		{ EVENT_HOOK_FAILED, 3, "HOOK raise-cpu do for sfu failed: exit 0" },
	};
	char ids[EVENT_KIND_COUNT][64];

	cr_assert_eq(sizeof(want) / sizeof(want[0]), EVENT_KIND_COUNT);
	for (unsigned int i = 0; i < EVENT_KIND_COUNT; i++) {
		struct journal_entry entry = { 0 };
		struct event e = starved();
		char text[JOURNAL_TEXT_MAX];

		e.kind = want[i].kind;
		e.exit_code = 0;
		strcpy(e.hook, "raise-cpu");
		strcpy(e.action, "do");
		strcpy(e.result, "old=100 new=1000");
		cr_expect_eq(journal_priority(&e), want[i].priority, "kind %u", i);
		cr_expect_eq(strncmp(journal_text(&e, text), want[i].starts, strlen(want[i].starts)), 0, "%s", text);
		cr_expect_eq(strchr(text, '\n'), NULL);
		if (e.kind != EVENT_RESOLVE)
			cr_expect_eq(strstr(text, "RESOLVED"), NULL, "%s", text);
		journal_entry_event(&entry, &e, NULL);
		snprintf(ids[i], sizeof(ids[i]), "%s", field(entry.data, entry.length, "MESSAGE_ID"));
		cr_expect_eq(strlen(ids[i]), 32);
		for (unsigned int k = 0; k < i; k++)
			cr_expect_str_neq(ids[i], ids[k]);
		journal_entry_free(&entry);
	}
}

Test(journal, critical_is_2_and_a_resolved_critical_is_5)
{
	struct event e = starved();

	e.severity = SEVERITY_CRITICAL;
	cr_expect_eq(journal_priority(&e), 2);
	e.kind = EVENT_RESOLVE;
	cr_expect_eq(journal_priority(&e), 5);
	e.kind = EVENT_FIRE;
	e.severity = SEVERITY_INFO;
	cr_expect_eq(journal_priority(&e), 6);
}

Test(journal, a_hooks_end_says_what_it_left_behind)
{
	static const struct { int exit_code, signal; const char *has; } want[] = {
		{ 69, 0, "exit 69, refused, nothing was changed" }, { 75, 0, "to be tried again later" },
		{ 80, 0, "so already" }, { 1, 0, "perhaps half done" }, { -1, 9, "killed by signal 9" },
		{ -1, 0, "ran out of time or was lost" },
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct event e = starved();
		char text[JOURNAL_TEXT_MAX];

		e.kind = EVENT_HOOK_FAILED;
		strcpy(e.hook, "raise-cpu");
		e.exit_code = want[i].exit_code;
		e.signal = want[i].signal;
		cr_expect_neq(strstr(journal_text(&e, text), want[i].has), NULL, "%s", text);
	}
}

Test(journal, words_of_a_hooks_result_become_fields)
{
	struct journal_entry entry = { 0 };
	struct event e = starved();

	e.kind = EVENT_HOOK_DONE;
	e.exit_code = 0;
	strcpy(e.hook, "raise-cpu");
	strcpy(e.action, "do");
	strcpy(e.result, "raised old=100 new=1000 Bad=1 =2 a-b=3 empty= ");
	journal_entry_event(&entry, &e, NULL);
	cr_expect_str_eq(field(entry.data, entry.length, "DWELLD_RESULT_OLD"), "100");
	cr_expect_str_eq(field(entry.data, entry.length, "DWELLD_RESULT_NEW"), "1000");
	cr_expect_str_eq(field(entry.data, entry.length, "DWELLD_EXIT_STATUS"), "0");
	cr_expect_str_eq(field(entry.data, entry.length, "DWELLD_ACTION"), "do");
	cr_expect_eq(memmem(entry.data, entry.length, "_BAD=", 5), NULL);
	cr_expect_eq(memmem(entry.data, entry.length, "RESULT_=", 8), NULL);
	journal_entry_free(&entry);
}

Test(journal, a_newline_in_a_value_cannot_forge_a_field)
{
	const int fd = fake_journald();
	struct journal *j;
	size_t n;
	bool memfd;
	char *got;

	cr_assert_eq(journal_new(path, false, NULL, &j), 0);
	journal_say(j, 3, JOURNAL_ID_STOPPED, "first line\nPRIORITY=0\n%s", "x");
	got = receive(fd, &n, &memfd);
	cr_assert_neq(got, NULL);
	cr_expect_str_eq(field(got, n, "PRIORITY"), "3");
	cr_expect_str_eq(field(got, n, "MESSAGE"), "first line\nPRIORITY=0\nx");
	cr_expect_str_eq(field(got, n, "MESSAGE_ID"), JOURNAL_ID_STOPPED);
	cr_expect_str_eq(field(got, n, "DWELLD_CONFIG_HASH"), "");
	journal_free(j);
	remove_journald(fd);
}

Test(journal, what_does_not_fit_a_datagram_goes_through_a_sealed_memfd)
{
	const int fd = fake_journald();
	char *large = malloc(60001);
	struct journal *j;
	size_t n;
	bool memfd;
	char *got;
	int small = 4608;

	memset(large, 'a', 60000);
	large[60000] = 0;
	cr_assert_eq(journal_new(path, false, NULL, &j), 0);
	/* the journal's own descriptor is the one after the fake's: a small send buffer makes 60 kB too large */
	cr_assert_eq(setsockopt(fd + 1, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	journal_say(j, 6, NULL, "%s", large);
	got = receive(fd, &n, &memfd);
	cr_assert_neq(got, NULL);
	cr_expect(memfd);
	cr_expect_str_eq(field(got, n, "MESSAGE"), large);
	free(large);
	journal_free(j);
	remove_journald(fd);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * S + (uint64_t)ts.tv_nsec;
}

#define C75_EVENTS 100000
#define C75_ALERTS 20

/* A dwelld that met a stopped journald: the last event is on a known alert, so that what was kept can be checked. */
static uint64_t flood(struct journal *j, struct event *e)
{
	uint64_t worst_ns = 0;

	for (unsigned int i = 0; i < C75_EVENTS; i++) {
		const uint64_t start = now_ns();

		snprintf(e->alert_id, sizeof(e->alert_id), "alert-%u", i % C75_ALERTS);
		e->seq = i;
		journal_event(j, e);
		if (now_ns() - start > worst_ns)
			worst_ns = now_ns() - start;
	}
	return worst_ns;
}

Test(journal, c75_a_journal_that_is_never_read_blocks_nothing_and_keeps_the_newest, .timeout = 60)
{
	const int fd = fake_journald();
	uint64_t seen[C75_ALERTS] = { 0 }, worst_ns, lost = 0, received = 0;
	struct event e = starved();
	struct journal *j;
	bool memfd;
	size_t n;
	char *got;

	cr_assert_eq(journal_new(path, false, "cafe", &j), 0);
	worst_ns = flood(j, &e);
	cr_expect_lt(worst_ns, 2 * S, "one send took %.1f ms", (double)worst_ns / 1e6);
	cr_expect_gt(journal_dropped(j), C75_EVENTS - 2000);
	/* The reader comes back: read all, flush, until the count of what was lost has come too. */
	for (unsigned int rounds = 0; rounds < 1000 && !lost; rounds++) {
		while ((got = receive(fd, &n, &memfd))) {
			const char *id = field(got, n, "DWELLD_ALERT_ID");
			unsigned int alert;

			received++;
			if (sscanf(id, "alert-%u", &alert) == 1) {
				const uint64_t seq = strtoull(field(got, n, "DWELLD_SEQ"), NULL, 10);

				cr_expect_geq(seq, seen[alert], "an older entry came after a newer one");
				seen[alert] = seq;
			}
			if (strcmp(field(got, n, "MESSAGE_ID"), JOURNAL_ID_LOST) == 0)
				lost = strtoull(field(got, n, "DWELLD_LOST"), NULL, 10);
		}
		journal_flush(j);
	}
	for (unsigned int i = 0; i < C75_ALERTS; i++)
		cr_expect_eq(seen[i], C75_EVENTS - C75_ALERTS + i, "alert %u: newest transition kept", i);
	cr_expect_eq(lost, journal_dropped(j));
	cr_expect_eq(lost + received - 1, C75_EVENTS, "every event is either read or counted");
	journal_free(j);
	remove_journald(fd);
}

Test(journal, c75_more_alerts_than_places_lose_the_oldest_and_own_messages_first)
{
	const int fd = fake_journald();
	struct event e = starved();
	struct journal *j;
	uint64_t before;
	bool memfd, first = true;
	size_t n;
	char *got;

	cr_assert_eq(journal_new(path, false, NULL, &j), 0);
	for (unsigned int i = 0; journal_dropped(j) == 0 && i < 10000; i++)	/* the same alert, until one is lost */
		journal_event(j, &e);
	journal_say(j, 6, NULL, "of no alert");
	before = journal_dropped(j);
	for (unsigned int i = 0; i < 255; i++) {	/* 256 places: 1 alert, 1 message, 254 new, the 255th pushes */
		snprintf(e.alert_id, sizeof(e.alert_id), "many-%u", i);
		journal_event(j, &e);
	}
	cr_expect_eq(journal_dropped(j), before + 1);
	for (unsigned int rounds = 0; rounds < 1000; rounds++) {
		while ((got = receive(fd, &n, &memfd))) {
			cr_expect_eq(memmem(got, n, "of no alert", 11), NULL, "the message went before any alert");
			if (field(got, n, "DWELLD_LATE_USEC")[0] && first) {
				cr_expect_str_eq(field(got, n, "DWELLD_ALERT_ID"), "h1-reader-starved-sfu-1700000000");
				first = false;
			}
		}
		journal_flush(j);
	}
	cr_expect_not(first, "entries that waited say how late they are");
	journal_free(j);
	remove_journald(fd);
}

/* Run with stderr in a pipe; returns what was written there. */
static char *stderr_of(const char *socket_path, bool to_stderr)
{
	static char text[4096];
	const struct event e = starved();
	struct journal *j;
	int p[2], old = dup(STDERR_FILENO);
	ssize_t n;

	cr_assert_eq(pipe(p), 0);
	dup2(p[1], STDERR_FILENO);
	close(p[1]);
	cr_assert_eq(journal_new(socket_path, to_stderr, NULL, &j), 0);
	journal_event(j, &e);
	cr_expect_eq(journal_dropped(j), 0);
	journal_free(j);
	dup2(old, STDERR_FILENO);
	close(old);
	n = read(p[0], text, sizeof(text) - 1);
	cr_assert_geq(n, 0);
	text[n] = 0;
	close(p[0]);
	return text;
}

Test(journal, without_journald_the_line_goes_to_stderr_once)
{
	for (int to_stderr = 0; to_stderr < 2; to_stderr++) {
		const char *text = stderr_of("/nonexistent/socket", to_stderr);
		const char *line = strstr(text, " ALERT sfu: server / reader-starved: ");

		cr_assert_neq(line, NULL, "%s", text);
		cr_expect_eq(strstr(line + 8, "ALERT sfu"), NULL, "%s", text);
		cr_expect_eq(text[strlen(text) - 1], '\n');
	}
}

Test(journal, a_stderr_that_is_not_read_blocks_nothing, .timeout = 20)
{
	int p[2], old = dup(STDERR_FILENO);
	struct event e = starved();
	struct journal *j;

	cr_assert_eq(pipe(p), 0);
	dup2(p[1], STDERR_FILENO);
	cr_assert_eq(journal_new("/nonexistent/socket", true, NULL, &j), 0);
	for (unsigned int i = 0; i < 5000; i++)
		journal_event(j, &e);
	journal_free(j);
	dup2(old, STDERR_FILENO);
	close(old);
	close(p[0]);
	close(p[1]);
}

Test(journal, journald_that_comes_back_is_found_again)
{
	const int fd = fake_journald();
	struct event e = starved();
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct journal *j;
	bool memfd;
	size_t n;
	int second;

	cr_assert_eq(journal_new(path, false, NULL, &j), 0);
	close(fd);
	unlink(path);
	journal_event(j, &e);	/* to stderr */
	second = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memcpy(a.sun_path, path, strlen(path) + 1);
	cr_assert_eq(bind(second, (struct sockaddr *)&a, sizeof(a)), 0);
	journal_event(j, &e);
	cr_expect_neq(receive(second, &n, &memfd), NULL);
	journal_free(j);
	remove_journald(second);
}

Test(journal, names_that_cannot_be_a_socket_are_refused)
{
	char longer[200];
	struct journal *j;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	cr_expect_eq(journal_new(longer, false, NULL, &j), -ENAMETOOLONG);
	journal_free(NULL);
}
