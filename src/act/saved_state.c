/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "saved_state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "saved_owed.h"

#define WAITING_MAX 256
#define BATCH_BYTES (16 * SAVED_LINE_MAX)
#define CLOSE_WAIT_S 5

struct entry { struct saved_line line; int error; };

/* One ring with three marks that only grow: [told, synced) waits for the loop, [synced, tail) for the disk. The writer
 * alone moves synced and reads the entries behind it; the loop moves the others. */
struct debts {
	struct entry ring[WAITING_MAX];
	uint64_t told, synced, tail;
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t writer;
	bool stop;
	int dir_fd, fd;			/* fd: the writer's, -1 not open */
	char *dir;
	int wake_fd;
	sd_event_source *source;
	debt_written_fn written;
	void *userdata;
	uint64_t highest;
	char batch[BATCH_BYTES];
};

/* ---- the writer thread ---- */

/* A directory that was not there at start, or was exchanged since, is found again at each batch. */
static int writer_open(struct debts *d)
{
	struct stat st;
	char last = '\n';

	if (d->fd >= 0 && fstat(d->fd, &st) == 0 && st.st_nlink > 0)
		return 0;
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
	if (d->dir_fd >= 0 && (fstat(d->dir_fd, &st) < 0 || st.st_nlink == 0)) {
		close(d->dir_fd);
		d->dir_fd = -1;
	}
	if (d->dir_fd < 0)
		d->dir_fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->dir_fd < 0)
		return -errno;
	d->fd = openat(d->dir_fd, "owed", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (d->fd < 0)
		return -errno;
	if (fsync(d->dir_fd) < 0 || fstat(d->fd, &st) < 0)
		return -errno;
	if (st.st_size > 0 && pread(d->fd, &last, 1, st.st_size - 1) == 1 && last != '\n')
		return saved_owed_append(d->fd, "\n", 1);	/* a torn line must not swallow the next one */
	return 0;
}

static int writer_append(struct debts *d, size_t length)
{
	struct stat st;
	int r = writer_open(d);

	if (r < 0)
		return r;
	if (fstat(d->fd, &st) < 0)
		return -errno;
	r = saved_owed_append(d->fd, d->batch, length);
	if (r == 0 && fdatasync(d->fd) < 0)
		r = -errno;
	if (r < 0) {
		/* half a batch must not be read as owed later: it was reported as not written */
		if (ftruncate(d->fd, st.st_size) < 0 || r == -EIO) {
			close(d->fd);
			d->fd = -1;
		}
	}
	return r;
}

/* Formats and writes entries from..to, as many as fit a batch; returns how far it came. */
static uint64_t writer_batch(struct debts *d, uint64_t from, uint64_t to)
{
	size_t length = 0;
	uint64_t end;
	int r;

	for (end = from; end < to && sizeof(d->batch) - length >= SAVED_LINE_MAX; end++) {
		const int n = saved_line_format(&d->ring[end % WAITING_MAX].line, d->batch + length,
						sizeof(d->batch) - length);

		if (n < 0)
			break;	/* cannot be: every line fits SAVED_LINE_MAX */
		length += (size_t)n;
	}
	r = writer_append(d, length);
	for (uint64_t i = from; i < end; i++)
		d->ring[i % WAITING_MAX].error = r;
	return end;
}

static void *writer_main(void *userdata)
{
	const uint64_t one = 1;
	struct debts *d = userdata;

	pthread_mutex_lock(&d->lock);
	for (;;) {
		uint64_t from, to;

		while (d->synced == d->tail && !d->stop)
			pthread_cond_wait(&d->more, &d->lock);
		from = d->synced;
		to = d->tail;
		if (from == to)
			break;
		pthread_mutex_unlock(&d->lock);
		to = writer_batch(d, from, to);
		pthread_mutex_lock(&d->lock);
		d->synced = to;
		if (write(d->wake_fd, &one, sizeof(one)) < 0)
			continue;	/* EAGAIN: it is readable already */
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* Signals belong to the loop's thread. */
static int writer_start(struct debts *d)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&d->writer, NULL, writer_main, d);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -r;
}

/* ---- the loop's side ---- */

static int on_synced(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct debts *d = userdata;
	uint64_t count, synced;

	(void)source;
	(void)revents;
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -errno;
	pthread_mutex_lock(&d->lock);
	synced = d->synced;
	pthread_mutex_unlock(&d->lock);
	while (d->told < synced) {
		const struct entry e = d->ring[d->told % WAITING_MAX];

		d->told++;	/* before the call: it may queue the next line */
		d->written(d->userdata, e.line.kind == SAVED_OWE ? DEBT_OWE : DEBT_PAID, e.line.seq, e.line.hook,
			   e.line.target, e.error);
	}
	return 0;
}

static void debts_drop(struct debts *d)
{
	sd_event_source_disable_unref(d->source);
	if (d->fd >= 0)
		close(d->fd);
	if (d->dir_fd >= 0)
		close(d->dir_fd);
	if (d->wake_fd >= 0)
		close(d->wake_fd);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->more);
	free(d->dir);
	free(d);
}

/* A state directory that is missing, full or read-only does not stop the daemon: each line then reports its error. */
static int load(struct debts *d, debt_found_fn found, void *userdata, unsigned int *ret_damaged)
{
	struct saved_owed o = { 0 };
	int r;

	if (mkdir(d->dir, 0700) < 0 && errno != EEXIST && errno != ENOENT && errno != EROFS && errno != ENOTDIR &&
	    errno != EACCES && errno != ENOSPC)
		return -errno;
	d->dir_fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->dir_fd < 0)
		return 0;
	r = saved_owed_read(d->dir_fd, &o);
	if (r == 0) {
		saved_owed_compact(d->dir_fd, &o);	/* a failure shows at the first line written; the old file stands */
		d->highest = o.highest;
		for (size_t i = 0; i < o.count; i++)
			found(userdata, o.line[i].seq, o.line[i].hook, o.line[i].target, o.line[i].rule,
			      o.line[i].alert_id);
		*ret_damaged = o.damaged;
	}
	free(o.line);
	return r;
}

int debts_open(sd_event *event, const char *state_dir, debt_found_fn found, debt_written_fn written, void *userdata,
	       unsigned int *ret_damaged, struct debts **ret)
{
	struct debts *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->fd = d->dir_fd = -1;
	d->written = written;
	d->userdata = userdata;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->more, NULL);
	*ret_damaged = 0;
	d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->dir = strdup(state_dir);
	r = d->wake_fd < 0 ? -errno : d->dir ? 0 : -ENOMEM;
	if (r == 0)
		r = load(d, found, userdata, ret_damaged);
	if (r == 0)
		r = sd_event_add_io(event, &d->source, d->wake_fd, EPOLLIN, on_synced, d);
	if (r >= 0)
		r = writer_start(d);
	if (r < 0) {
		debts_drop(d);
		return r;
	}
	*ret = d;
	return 0;
}

static void copy(char *to, size_t size, const char *from)
{
	const size_t n = from ? strnlen(from, size - 1) : 0;

	memcpy(to, from ? from : "", n);
	to[n] = '\0';
}

static uint64_t wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int debts_write(struct debts *d, enum debt_kind kind, uint64_t seq, const char *hook, const char *target,
		const char *rule, const char *alert_id)
{
	struct saved_line *l;

	if (d->tail - d->told >= WAITING_MAX)
		return -ENOBUFS;
	l = &d->ring[d->tail % WAITING_MAX].line;
	l->kind = kind == DEBT_OWE ? SAVED_OWE : SAVED_PAID;
	l->seq = seq;
	l->wall_us = wall_us();
	copy(l->hook, sizeof(l->hook), hook);
	copy(l->target, sizeof(l->target), target);
	copy(l->rule, sizeof(l->rule), rule);
	copy(l->alert_id, sizeof(l->alert_id), alert_id);
	if (seq > d->highest)
		d->highest = seq;
	pthread_mutex_lock(&d->lock);
	d->tail++;
	pthread_cond_signal(&d->more);
	pthread_mutex_unlock(&d->lock);
	return 0;
}

uint64_t debts_highest_seq(const struct debts *d)
{
	return d->highest;
}

void debts_close(struct debts *d)
{
	struct timespec until;

	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_signal(&d->more);
	pthread_mutex_unlock(&d->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CLOSE_WAIT_S;
	if (pthread_timedjoin_np(d->writer, NULL, &until) == 0) {
		debts_drop(d);
		return;
	}
	/* the disk hangs: the thread still uses the struct, so it is left to the end of the process */
	d->source = sd_event_source_disable_unref(d->source);
	pthread_detach(d->writer);
}
