/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc_source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
#define CPUS_MAX 8192		/* CONFIG_NR_CPUS goes no higher */
#define CARDS_MAX 64
#define TEXT_MAX (2U << 20)	/* softnet_stat of 8192 CPUs is 1.1 MB */

/* A cumulative number that may fall in its file; total never does. */
struct grower { uint64_t last, total; bool seen; };

enum stat_part { STAT_BUSY, STAT_IDLE, STAT_STEAL, STAT_PARTS };
enum card_part { CARD_MISSED, CARD_FIFO, CARD_PACKETS, CARD_PARTS };
static const char *const card_file[CARD_PARTS] = {
	[CARD_MISSED] = "statistics/rx_missed_errors",
	[CARD_FIFO] = "statistics/rx_fifo_errors",
	[CARD_PACKETS] = "statistics/rx_packets",
};

struct card {
	bool used, listed;
	dev_t dev;		/* of its directory: the same card after a rename */
	ino_t ino;
	int fd[CARD_PARTS];
	struct grower part[CARD_PARTS];
};

struct proc_source {
	char root[PATH_MAX / 2];
	int stat_fd, softnet_fd, status_fd;	/* -1: not open */
	char *text;				/* the file being read */
	size_t text_size;
	struct grower stat[8];			/* columns of the cpu line */
	struct grower *dropped, *squeezed;	/* CPUS_MAX, by CPU */
	uint64_t dropped_total, squeezed_total;
	struct card card[CARDS_MAX];
	uint64_t cards_gone[CARD_PARTS];	/* what cards that went away had */
	uint64_t cards_listed_ns;
	bool cards_known;
	uint64_t self_ns, self_cpu_ns;
	double self_share;
	bool self_known;
};

static uint64_t grow(struct grower *g, uint64_t value)
{
	uint64_t by = 0;

	if (g->seen && value > g->last)
		by = value - g->last;
	g->seen = true;
	g->last = value;
	g->total += by;
	return by;
}

int proc_source_new(const char *root, struct proc_source **ret)
{
	struct proc_source *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->stat_fd = p->softnet_fd = p->status_fd = -1;
	p->text_size = 16384;
	p->text = malloc(p->text_size);
	p->dropped = calloc(CPUS_MAX, sizeof(*p->dropped));
	p->squeezed = calloc(CPUS_MAX, sizeof(*p->squeezed));
	if (!p->text || !p->dropped || !p->squeezed) {
		proc_source_free(p);
		return -ENOMEM;
	}
	snprintf(p->root, sizeof(p->root), "%s", root ? root : "");
	*ret = p;
	return 0;
}

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Its counts stay in the sum. */
static void card_drop(struct proc_source *p, struct card *c)
{
	for (int i = 0; i < CARD_PARTS; i++) {
		p->cards_gone[i] += c->part[i].total;
		fd_close(&c->fd[i]);
	}
	c->used = false;
}

void proc_source_free(struct proc_source *p)
{
	if (!p)
		return;
	for (int i = 0; i < CARDS_MAX; i++)
		if (p->card[i].used)
			card_drop(p, &p->card[i]);
	fd_close(&p->stat_fd);
	fd_close(&p->softnet_fd);
	fd_close(&p->status_fd);
	free(p->text);
	free(p->dropped);
	free(p->squeezed);
	free(p);
}

/* ---- text ---- */

static int text_double(struct proc_source *p)
{
	char *more = realloc(p->text, p->text_size * 2);

	if (!more)
		return -ENOMEM;
	p->text = more;
	p->text_size *= 2;
	return 0;
}

/* Up to max bytes of a file into p->text, NUL-terminated. Opens it if need be; a failed one is opened again next time. */
static int text_read(struct proc_source *p, int *fd, const char *path, size_t max)
{
	char full[PATH_MAX];
	size_t have = 0;

	if (*fd < 0) {
		snprintf(full, sizeof(full), "%s%s", p->root, path);
		*fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	if (*fd < 0)
		return -errno;
	while (have < max) {
		ssize_t n;

		if (have + 1 >= p->text_size && text_double(p) < 0)
			return -ENOMEM;
		n = pread(*fd, p->text + have, (p->text_size - 1 < max ? p->text_size - 1 : max) - have, (off_t)have);
		if (n < 0)
			return fd_close(fd), -EIO;
		if (!n)
			break;
		have += (size_t)n;
	}
	p->text[have] = '\0';
	return have ? 0 : -ENODATA;
}

/* The next number of a line, in base 10 or 16. False at the line's end, at anything else, and past 64 bits. */
static bool number_next(const char **at, int base, uint64_t *ret)
{
	const char *s = *at;
	char *end;

	while (*s == ' ' || *s == '\t')
		s++;
	if (*s == '-' || *s == '+' || *s == '\n' || !*s)
		return false;
	errno = 0;
	*ret = strtoull(s, &end, base);
	if (end == s || errno || (*end != ' ' && *end != '\t' && *end != '\n' && *end))
		return false;
	*at = end;
	return true;
}

/* ---- CPU time ---- */

static void host_set(struct sample *s, enum sample_host_counter what, uint64_t value)
{
	s->host_counter[what] = value;
	s->host_known |= 1U << what;
}

static void read_stat(struct proc_source *p, struct sample *sample)
{
	/* user nice system idle iowait irq softirq steal; guest and guest_nice are inside user and nice */
	static const enum stat_part part[8] = { STAT_BUSY, STAT_BUSY, STAT_BUSY, STAT_IDLE, STAT_IDLE, STAT_BUSY,
						STAT_BUSY, STAT_STEAL };
	uint64_t value[8], sum[STAT_PARTS] = { 0 };
	const char *at;

	if (text_read(p, &p->stat_fd, "/proc/stat", 512) < 0 || strncmp(p->text, "cpu ", 4))
		return;
	at = p->text + 4;
	for (int i = 0; i < 8; i++)
		if (!number_next(&at, 10, &value[i]))
			return;
	for (int i = 0; i < 8; i++) {	/* each by itself: idle and iowait are known to fall now and then */
		grow(&p->stat[i], value[i]);
		sum[part[i]] += p->stat[i].total;
	}
	host_set(sample, SAMPLE_HOST_CPU_BUSY, sum[STAT_BUSY]);
	host_set(sample, SAMPLE_HOST_CPU_STEAL, sum[STAT_STEAL]);
	host_set(sample, SAMPLE_HOST_CPU_TOTAL, sum[STAT_BUSY] + sum[STAT_IDLE] + sum[STAT_STEAL]);
}

/* ---- backlog ---- */

/* One CPU's line; the CPU is column 13 since 5.10, before that lines are counted. */
static bool softnet_line(struct proc_source *p, const char *at, uint64_t line)
{
	uint64_t value[13];
	int n = 0;

	while (n < 13 && number_next(&at, 16, &value[n]))
		n++;
	if (n < 3)
		return false;
	if (n == 13)
		line = value[12];
	if (line >= CPUS_MAX)
		return false;
	p->dropped_total += grow(&p->dropped[line], value[1]);
	p->squeezed_total += grow(&p->squeezed[line], value[2]);
	return true;
}

static bool read_softnet(struct proc_source *p)
{
	uint64_t line = 0;
	bool any = false;

	if (text_read(p, &p->softnet_fd, "/proc/net/softnet_stat", TEXT_MAX) < 0)
		return false;
	for (const char *at = p->text; at && *at; line++) {
		const char *end = strchr(at, '\n');

		any = softnet_line(p, at, line) || any;
		at = end ? end + 1 : NULL;
	}
	return any;
}

/* ---- network cards ---- */

static struct card *card_of(struct proc_source *p, const struct stat *st)
{
	struct card *free_card = NULL;

	for (int i = 0; i < CARDS_MAX; i++) {
		struct card *c = &p->card[i];

		if (c->used && c->dev == st->st_dev && c->ino == st->st_ino)
			return c;
		if (!c->used && !free_card)
			free_card = c;
	}
	if (free_card)
		*free_card = (struct card){ .dev = st->st_dev, .ino = st->st_ino, .fd = { -1, -1, -1 } };
	return free_card;
}

static void card_list(struct proc_source *p, int class_fd, const char *name)
{
	int dir = openat(class_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct card *c;
	struct stat st;

	if (dir < 0)
		return;
	/* only what has hardware behind it: else a bridge or a bond counts a packet again */
	if (faccessat(dir, "device", F_OK, 0) || fstat(dir, &st)) {
		close(dir);
		return;
	}
	c = card_of(p, &st);
	if (c && !c->used) {
		c->used = true;
		for (int i = 0; i < CARD_PARTS; i++)
			c->fd[i] = openat(dir, card_file[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	if (c)
		c->listed = true;
	close(dir);
}

static bool cards_list(struct proc_source *p)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%s/sys/class/net", p->root);
	d = opendir(path);
	if (!d)
		return false;
	for (int i = 0; i < CARDS_MAX; i++)
		p->card[i].listed = false;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && strcmp(e->d_name, "lo"))
			card_list(p, dirfd(d), e->d_name);
	closedir(d);
	for (int i = 0; i < CARDS_MAX; i++)
		if (p->card[i].used && !p->card[i].listed)
			card_drop(p, &p->card[i]);
	return true;
}

/* A counter that cannot be read now keeps its last value: the card is going, or never had one. */
static void card_read(struct card *c)
{
	for (int i = 0; i < CARD_PARTS; i++) {
		char text[32];
		const char *at = text;
		uint64_t value;
		ssize_t n = c->fd[i] < 0 ? -1 : pread(c->fd[i], text, sizeof(text) - 1, 0);

		if (n <= 0)
			continue;
		text[n] = '\0';
		if (number_next(&at, 10, &value))
			grow(&c->part[i], value);
	}
}

static bool read_cards(struct proc_source *p, uint64_t now_ns, uint64_t ret_sum[CARD_PARTS])
{
	if (!p->cards_known || now_ns - p->cards_listed_ns >= PROC_SOURCE_CARDS_NS) {
		p->cards_known = cards_list(p);
		p->cards_listed_ns = now_ns;
	}
	for (int i = 0; i < CARD_PARTS; i++)
		ret_sum[i] = p->cards_gone[i];
	for (int k = 0; k < CARDS_MAX; k++) {
		if (!p->card[k].used)
			continue;
		card_read(&p->card[k]);
		for (int i = 0; i < CARD_PARTS; i++)
			ret_sum[i] += p->card[k].part[i].total;
	}
	return p->cards_known;
}

void proc_source_read(struct proc_source *p, uint64_t now_ns, struct sample *sample)
{
	uint64_t cards[CARD_PARTS];
	bool softnet;

	sample->host_known = 0;
	read_stat(p, sample);
	softnet = read_softnet(p);
	if (softnet)
		host_set(sample, SAMPLE_HOST_SQUEEZED, p->squeezed_total);
	if (!read_cards(p, now_ns, cards))
		return;
	host_set(sample, SAMPLE_HOST_NIC_PACKETS, cards[CARD_PACKETS]);
	if (softnet)
		host_set(sample, SAMPLE_HOST_NIC_DROPS, cards[CARD_MISSED] + cards[CARD_FIFO] + p->dropped_total);
}

/* ---- this process ---- */

static void self_cpu(struct proc_source *p, uint64_t now_ns)
{
	struct timespec t;
	uint64_t cpu_ns;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t))
		return;
	cpu_ns = (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
	if (p->self_ns && now_ns - p->self_ns < SECOND_NS)
		return;
	p->self_known = p->self_ns != 0;
	if (p->self_known)
		p->self_share = (double)(cpu_ns - p->self_cpu_ns) / (double)(now_ns - p->self_ns);
	p->self_ns = now_ns;
	p->self_cpu_ns = cpu_ns;
}

void proc_source_self(struct proc_source *p, uint64_t now_ns, struct proc_self *ret)
{
	const char *at;
	uint64_t kib;

	self_cpu(p, now_ns);
	*ret = (struct proc_self){ .cpu_known = p->self_known, .cpu_share = p->self_share };
	at = text_read(p, &p->status_fd, "/proc/self/status", 16384) < 0 ? NULL : strstr(p->text, "\nRssAnon:");
	if (!at)
		return;
	at += strlen("\nRssAnon:");
	if (!number_next(&at, 10, &kib) || kib > UINT64_MAX / 1024)
		return;
	ret->rss_known = true;
	ret->rss_anon_bytes = kib * 1024;
}
