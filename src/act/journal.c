/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "journal.h"
#include "journal_entry.h"
#include "journal_ids.h"

/* Alerts whose newest entry is kept while journald does not read. */
#define KEPT_MAX 256
#define SAY_MAX 65536	/* a longer own message is cut */

struct kept {
	char key[EVENT_ID + MODEL_NAME + 1];	/* alert id and hook; "" = nothing that a newer entry replaces */
	struct journal_entry entry;
	uint64_t since_us;		/* CLOCK_MONOTONIC */
};

struct journal {
	int fd;
	struct sockaddr_un to;
	bool to_stderr;
	int terminal_fd;		/* of our own, for what poll() does not say of a terminal; -1: none */
	char config_hash[32];
	struct journal_entry now;	/* being built; its buffer is used again and again */
	struct kept kept[KEPT_MAX];	/* oldest first */
	unsigned int kept_count;
	uint64_t dropped, dropped_told;
};

static uint64_t monotonic_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

int journal_new(const char *socket_path, bool to_stderr, const char *config_hash, struct journal **ret)
{
	const char *path = socket_path ? socket_path : "/run/systemd/journal/socket";
	struct journal *j;

	if (strlen(path) >= sizeof(j->to.sun_path))
		return -ENAMETOOLONG;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	/* Not connected: each send finds the socket anew, so a restarted journald is no event for us. */
	j->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (j->fd < 0) {
		const int r = -errno;

		free(j);
		return r;
	}
	j->to.sun_family = AF_UNIX;
	memcpy(j->to.sun_path, path, strlen(path) + 1);
	j->to_stderr = to_stderr;
	/* A terminal that stands still polls writable with room for less than a line, and write() would wait. O_NONBLOCK
	 * on stderr itself would change it for all who share it. */
	j->terminal_fd = isatty(STDERR_FILENO) ? open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	journal_set_config_hash(j, config_hash);
	*ret = j;
	return 0;
}

void journal_free(struct journal *j)
{
	if (!j)
		return;
	for (unsigned int i = 0; i < j->kept_count; i++)
		journal_entry_free(&j->kept[i].entry);
	journal_entry_free(&j->now);
	close(j->fd);
	if (j->terminal_fd >= 0)
		close(j->terminal_fd);
	free(j);
}

void journal_set_config_hash(struct journal *j, const char *config_hash)
{
	snprintf(j->config_hash, sizeof(j->config_hash), "%s", config_hash ? config_hash : "");
}

uint64_t journal_dropped(const struct journal *j)
{
	return j->dropped;
}

/* One line, cut to PIPE_BUF so that a pipe that polls writable takes it whole without blocking. */
static void say_stderr(const struct journal *j, const char *text)
{
	const int fd = j->terminal_fd >= 0 ? j->terminal_fd : STDERR_FILENO;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	const time_t now = time(NULL);
	char line[4096], clock[16] = "";
	struct tm tm;
	int n;

	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S ", &tm);
	n = snprintf(line, sizeof(line) - 1, "%s%s", clock, text);
	if (n < 0 || poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return;
	if ((size_t)n > sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	if (send(fd, line, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == ENOTSOCK)
		(void)!write(fd, line, (size_t)n);
}

/* Too large for a datagram: journald takes a sealed memfd instead. */
static int send_memfd(struct journal *j, const struct journal_entry *e)
{
	union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct msghdr m = { .msg_name = &j->to, .msg_namelen = sizeof(j->to), .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	int fd = memfd_create("journal-data", MFD_ALLOW_SEALING | MFD_CLOEXEC), r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, e->data, e->length) != (ssize_t)e->length ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -EIO;
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (r == 0 && sendmsg(j->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		r = -errno;
	close(fd);
	return r;
}

static int send_entry(struct journal *j, const struct journal_entry *e)
{
	if (sendto(j->fd, e->data, e->length, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&j->to,
		   sizeof(j->to)) >= 0)
		return 0;
	if (errno == EMSGSIZE)
		return send_memfd(j, e);
	return -errno;
}

static bool is_full(int error)
{
	return error == -EAGAIN || error == -ENOBUFS || error == -EINTR || error == -ENOMEM;
}

static void forget(struct journal *j, unsigned int i)
{
	journal_entry_free(&j->kept[i].entry);
	memmove(&j->kept[i], &j->kept[i + 1], (j->kept_count - i - 1) * sizeof(j->kept[0]));
	j->kept_count--;
}

/* Who has to go for a newer one: the older entry of the same alert, else, when all places are taken, the oldest
 * that belongs to no alert, else the oldest. -1: nobody. */
static int find_victim(const struct journal *j, const char *key)
{
	for (unsigned int i = 0; key[0] && i < j->kept_count; i++)
		if (strcmp(j->kept[i].key, key) == 0)
			return (int)i;
	if (j->kept_count < KEPT_MAX)
		return -1;
	for (unsigned int i = 0; i < j->kept_count; i++)
		if (!j->kept[i].key[0])
			return (int)i;
	return 0;
}

static void keep(struct journal *j, const char *key)
{
	const int victim = find_victim(j, key);
	struct kept *k;

	if (victim >= 0) {
		forget(j, (unsigned int)victim);
		j->dropped++;
	}
	k = &j->kept[j->kept_count++];
	snprintf(k->key, sizeof(k->key), "%s", key);
	k->entry = j->now;		/* the buffer changes hands; the next entry gets a new one */
	j->now = (struct journal_entry){ 0 };
	k->since_us = monotonic_us();
}

/* False while journald still does not read. */
static bool tell_dropped(struct journal *j)
{
	const uint64_t lost = j->dropped - j->dropped_told;
	char text[200];

	if (!lost)
		return true;
	snprintf(text, sizeof(text), "%llu journal entries were lost while the journal did not read; the newest entry of "
		 "each alert was kept and sent late", (unsigned long long)lost);
	journal_entry_own(&j->now, 4, JOURNAL_ID_LOST, text);
	journal_entry_fieldf(&j->now, "DWELLD_LOST", "%llu", (unsigned long long)lost);
	if (j->now.broken || is_full(send_entry(j, &j->now)))
		return false;
	j->dropped_told = j->dropped;
	return true;
}

void journal_flush(struct journal *j)
{
	while (j->kept_count) {
		struct kept *k = &j->kept[0];
		const size_t length = k->entry.length;

		/* journald stamps on arrival: say how late that is */
		journal_entry_fieldf(&k->entry, "DWELLD_LATE_USEC", "%llu",
				     (unsigned long long)(monotonic_us() - k->since_us));
		if (is_full(send_entry(j, &k->entry))) {
			k->entry.length = length;
			return;
		}
		forget(j, 0);
	}
	tell_dropped(j);
}

static void deliver(struct journal *j, const char *key, const char *text)
{
	struct journal_entry entry = j->now;	/* flushing may need j->now for its own message */
	bool seen = false;
	int r;

	if (j->to_stderr) {
		say_stderr(j, text);
		seen = true;
	}
	if (entry.broken) {
		j->dropped++;
		return;
	}
	if (j->kept_count || j->dropped != j->dropped_told) {
		j->now = (struct journal_entry){ 0 };
		journal_flush(j);
		journal_entry_free(&j->now);
		j->now = entry;
	}
	r = j->kept_count ? -EAGAIN : send_entry(j, &j->now);
	if (is_full(r))
		keep(j, key);
	else if (r < 0 && !seen)
		say_stderr(j, text);
}

void journal_event(struct journal *j, const struct event *e)
{
	char key[sizeof(((struct kept *)NULL)->key)], text[JOURNAL_TEXT_MAX];

	journal_entry_event(&j->now, e, j->config_hash);
	snprintf(key, sizeof(key), "%s%s%s", e->alert_id, e->hook[0] ? " " : "", e->hook);
	deliver(j, key, journal_text(e, text));
}

void journal_say(struct journal *j, int priority, const char *message_id, const char *format, ...)
{
	char short_text[512], *text = short_text;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(short_text, sizeof(short_text), format, ap);
	va_end(ap);
	if (n >= (int)sizeof(short_text)) {
		const size_t size = n < SAY_MAX ? (size_t)n + 1 : SAY_MAX;
		char *longer = malloc(size);

		if (longer) {
			va_start(ap, format);
			vsnprintf(longer, size, format, ap);
			va_end(ap);
			text = longer;
		}
	}
	journal_entry_own(&j->now, priority, message_id, text);
	if (j->config_hash[0])
		journal_entry_field(&j->now, "DWELLD_CONFIG_HASH", j->config_hash);
	deliver(j, "", text);
	if (text != short_text)
		free(text);
}
