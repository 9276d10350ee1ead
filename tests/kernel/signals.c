/* SPDX-License-Identifier: GPL-2.0-or-later */
/* signals.c - the signals beside dwell against what the kernel and the sender themselves count: run queue against schedstat,
 * softirq against /proc/softirqs, drops against sent less read, streams against the sender's own script.
 *
 * usage: signals [--rungs LIST] [runq|softirq|drops|rtp...]
 * Made for a quiet machine (the guest of run.sh): softirq counts the whole host. Ends with "N passed, N failed, N skipped";
 * a signal without a rung prints "absent" and its reason, and counts for nothing. Needs root. */
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sense/sense.h"

#define BURN_NS 1500000000ULL
#define RTP_PACKETS 120
#define RTP_GAP_MS 20

static struct sense *sense;
static struct sample *sample;
static unsigned int passed, failed;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void take_sample(void)
{
	sense_read(sense, now_ns(), sample);
}

static void result(const char *name, bool good, const char *what)
{
	printf("%s %s: %s\n", good ? "ok    " : "NOT OK", name, what);
	if (good)
		passed++;
	else
		failed++;
}

static const struct sample_probe *probe_of(const char *signal)
{
	for (uint32_t i = 0; i < sample->probe_count; i++)
		if (!strcmp(sample->probe[i].signal, signal))
			return &sample->probe[i];
	return NULL;
}

static uint64_t hist_count(const struct sample_hist *h)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < HIST_SLOTS; i++)
		n += h->slot[i];
	return n;
}

static double hist_seconds(const struct sample_hist *h)
{
	double s = 0;

	for (unsigned int i = 0; i < HIST_SLOTS; i++)
		s += (double)h->slot[i] * (double)hist_midpoint(i) / 1e9;
	return s;
}

/* ---- run queue ---- */

struct burner { pthread_t thread; pthread_barrier_t *turn; };

/* Both on one CPU, half of the time waiting, and asleep now and then so that wakeups are among the waits. */
static void *burn(void *data)
{
	const struct timespec rest = { .tv_nsec = 2000000 };
	struct burner *b = data;
	uint64_t until, pause;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(1, &one);
	sched_setaffinity(0, sizeof(one), &one);
	pthread_barrier_wait(b->turn);	/* started: probes can be attached */
	pthread_barrier_wait(b->turn);
	until = now_ns() + BURN_NS;
	while (now_ns() < until) {
		pause = now_ns() + 30000000;
		while (now_ns() < pause)
			;
		nanosleep(&rest, NULL);
	}
	pthread_barrier_wait(b->turn);
	pthread_barrier_wait(b->turn);	/* counted */
	return NULL;
}

/* Of all threads of this process: time waited, times put onto a CPU. */
static void schedstat(double *ret_seconds, uint64_t *ret_runs)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned long long run, wait, times;
	struct dirent *e;
	char path[300];
	FILE *f;

	*ret_seconds = 0;
	*ret_runs = 0;
	while (tasks && (e = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%llu %llu %llu", &run, &wait, &times) == 3) {
			*ret_seconds += (double)wait / 1e9;
			*ret_runs += times;
		}
		fclose(f);
	}
	if (tasks)
		closedir(tasks);
}

static void check_runq(pthread_barrier_t *turn)
{
	const struct sample_hist *h = &sample->target[SAMPLE_SELF].dist[SAMPLE_DIST_RUNQ];
	double waited, waited_before, seconds;
	uint64_t runs, runs_before, n;
	char what[200];

	take_sample();
	n = hist_count(h);
	seconds = hist_seconds(h);
	schedstat(&waited_before, &runs_before);
	pthread_barrier_wait(turn);
	pthread_barrier_wait(turn);
	schedstat(&waited, &runs);
	take_sample();
	n = hist_count(h) - n;
	seconds = hist_seconds(h) - seconds;
	waited -= waited_before;
	runs -= runs_before;
	snprintf(what, sizeof(what), "%llu waits of %.1f ms in all, schedstat %llu runs, %.1f ms", (unsigned long long)n,
		 seconds * 1e3, (unsigned long long)runs, waited * 1e3);
	/* runs: a thread that is put onto its CPU again without having left it counts there, but has not waited */
	result("runq", seconds > waited * 0.9 - 0.005 && seconds < waited * 1.1 + 0.005 && n <= runs + 4 &&
	       n + runs / 10 + 4 >= runs, what);
}

/* ---- sockets of our own ---- */

static int udp_pair(int *ret_tx, int rcvbuf)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int rx = socket(AF_INET, SOCK_DGRAM, 0);

	*ret_tx = socket(AF_INET, SOCK_DGRAM, 0);
	if (rcvbuf)
		setsockopt(rx, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf));
	if (rx < 0 || *ret_tx < 0 || bind(rx, (struct sockaddr *)&a, len) < 0 || getsockname(rx, (struct sockaddr *)&a, &len) < 0 ||
	    connect(*ret_tx, (struct sockaddr *)&a, len) < 0)
		return -1;
	return rx;
}

static unsigned int read_all(int rx)
{
	char buf[1500];
	unsigned int n = 0;

	while (recv(rx, buf, sizeof(buf), MSG_DONTWAIT) >= 0)
		n++;
	return n;
}

/* ---- softirq ---- */

static uint64_t softirqs_net_rx(void)
{
	FILE *f = fopen("/proc/softirqs", "re");
	char line[4096], *p;
	uint64_t sum = 0;

	while (f && fgets(line, sizeof(line), f)) {
		p = strstr(line, "NET_RX:");
		if (!p)
			continue;
		for (p += 7; *p && *p != '\n';)
			sum += strtoull(p, &p, 10);
	}
	if (f)
		fclose(f);
	return sum;
}

static void check_softirq(void)
{
	uint64_t waits, runs, truth;
	int tx, rx = udp_pair(&tx, 1 << 20);
	char what[200];

	take_sample();
	waits = hist_count(&sample->host_dist[SAMPLE_HOST_SOFTIRQ_WAIT]);
	runs = hist_count(&sample->host_dist[SAMPLE_HOST_SOFTIRQ_RUN]);
	truth = softirqs_net_rx();
	for (int i = 0; i < 500; i++)
		if (send(tx, what, 100, 0) < 0)
			failed++;
	truth = softirqs_net_rx() - truth;
	take_sample();
	waits = hist_count(&sample->host_dist[SAMPLE_HOST_SOFTIRQ_WAIT]) - waits;
	runs = hist_count(&sample->host_dist[SAMPLE_HOST_SOFTIRQ_RUN]) - runs;
	snprintf(what, sizeof(what), "%llu waits and %llu runs, /proc/softirqs %llu, read %u of 500", (unsigned long long)waits,
		 (unsigned long long)runs, (unsigned long long)truth, read_all(rx));
	/* one that began before the first look may end after it */
	result("softirq", truth >= 100 && waits + 1 >= truth && waits <= truth + 1 && runs + 1 >= truth && runs <= truth + 1, what);
	close(rx);
	close(tx);
}

/* ---- drops ---- */

static uint64_t self_and_other(enum sample_counter c)
{
	return sample->target[SAMPLE_SELF].counter[c] + sample->target[SAMPLE_OTHER].counter[c];
}

static void check_overflow(void)
{
	uint64_t server, rcvbuf;
	unsigned int sent = 0, got;
	int tx, rx = udp_pair(&tx, 8192);
	char what[200] = "";

	take_sample();
	server = self_and_other(SAMPLE_DROPS_SERVER);
	rcvbuf = self_and_other(SAMPLE_DROPS_RCVBUF);
	for (int i = 0; i < 300; i++)
		sent += send(tx, what, 200, 0) >= 0;
	got = read_all(rx);
	take_sample();
	server = self_and_other(SAMPLE_DROPS_SERVER) - server;
	rcvbuf = self_and_other(SAMPLE_DROPS_RCVBUF) - rcvbuf;
	snprintf(what, sizeof(what), "sent %u, read %u, drops %llu of which buffer %llu", sent, got, (unsigned long long)server,
		 (unsigned long long)rcvbuf);
	result("drops overflow", got < sent && server == sent - got && rcvbuf == server, what);
	close(rx);
	close(tx);
}

static void check_filter(bool seen)
{
	struct sock_filter none[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_fprog prog = { .len = 1, .filter = none };
	int tx, rx = udp_pair(&tx, 0);
	char what[200] = "";
	uint64_t network;

	/* a socket without a row of its own is not watched: its first datagram gives it one */
	if (send(tx, what, 100, 0) < 0 || recv(rx, what, 100, 0) < 0 ||
	    setsockopt(rx, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0)
		failed++;
	take_sample();
	network = self_and_other(SAMPLE_DROPS_NETWORK);
	for (int i = 0; i < 100; i++)
		if (send(tx, what, 100, 0) < 0)
			failed++;
	take_sample();
	network = self_and_other(SAMPLE_DROPS_NETWORK) - network;
	snprintf(what, sizeof(what), "socket filter refused 100, counted %llu%s", (unsigned long long)network,
		 seen ? "" : " (this rung does not tell them)");
	result("drops filter", network == (seen ? 100 : 0), what);
	close(rx);
	close(tx);
}

static void check_drops(const char *rung)
{
	check_overflow();
	check_filter(!strcmp(rung, "reasons"));
}

/* ---- rtp ---- */

/* 8 kHz, 20 ms: 10 and 50 are lost, 20 comes twice, 30 and 31 change places. */
static void rtp_send(int tx, unsigned int seq)
{
	const uint32_t time = htonl(seq * 160), ssrc = htonl(0x5eed0001);
	uint8_t b[172] = { 0x80, 0, (uint8_t)(seq >> 8), (uint8_t)seq };

	memcpy(b + 4, &time, 4);
	memcpy(b + 8, &ssrc, 4);
	if (send(tx, b, sizeof(b), 0) < 0)
		failed++;
}

static void rtp_script(int tx)
{
	struct timespec at;
	uint64_t due = now_ns();

	for (unsigned int i = 0; i < RTP_PACKETS; i++) {
		due += RTP_GAP_MS * 1000000ULL;
		at = (struct timespec){ .tv_sec = (time_t)(due / 1000000000ULL), .tv_nsec = (long)(due % 1000000000ULL) };
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
			;
		if (i == 10 || i == 50)
			continue;
		rtp_send(tx, 1000 + (i == 30 ? 31 : i == 31 ? 30 : i));
		if (i == 20)
			rtp_send(tx, 1000 + i);
	}
}

static void check_rtp(void)
{
	const struct sample_stream *s = NULL;
	int tx, rx = udp_pair(&tx, 1 << 20);
	unsigned int got;
	char what[300];

	rtp_script(tx);
	got = read_all(rx);
	take_sample();
	for (uint32_t i = 0; i < sample->stream_count; i++)
		if (sample->stream[i].ssrc == 0x5eed0001)
			s = &sample->stream[i];
	if (!s) {
		snprintf(what, sizeof(what), "no stream, though %u packets were read; streams known: %u", got,
			 sample->streams_known);
		result("rtp", false, what);
	} else {
		/* the first of two packets in sequence makes the candidate, the second the stream */
		snprintf(what, sizeof(what), "sent %u of %u, read %u; expected %llu, received %llu, reorder %llu, duplicates %llu, "
			 "jitter %.1f ms%s", RTP_PACKETS - 1, RTP_PACKETS, got, (unsigned long long)s->expected,
			 (unsigned long long)s->received, (unsigned long long)s->reorder, (unsigned long long)s->duplicates,
			 (double)s->jitter_ns / 1e6, s->jitter_known ? "" : " (unknown)");
		result("rtp", s->expected == RTP_PACKETS - 1 && s->received == RTP_PACKETS - 3 && s->reorder == 1 &&
		       s->duplicates == 1 && s->jitter_known && s->jitter_ns < 10000000, what);
	}
	close(rx);
	close(tx);
}

static bool wanted(int argc, char **argv, const char *name)
{
	if (argc <= 0)
		return true;
	for (int i = 0; i < argc; i++)
		if (!strcmp(name, argv[i]))
			return true;
	return false;
}

/* True: the signal was asked for and measures. */
static bool begin(int argc, char **argv, const char *signal)
{
	const struct sample_probe *p = probe_of(signal);

	if (!wanted(argc, argv, signal))
		return false;
	if (p && p->attached)
		return true;
	printf("absent %s: %s\n", signal, p ? p->reason : "no such probe");
	return false;
}

static void run(int argc, char **argv, pthread_barrier_t *turn)
{
	take_sample();
	for (uint32_t i = 0; i < sample->probe_count; i++)
		printf("       probe %-8s rung %-10s %s %s\n", sample->probe[i].signal, sample->probe[i].rung,
		       sample->probe[i].exact ? "exact" : "inexact", sample->probe[i].reason);
	if (begin(argc, argv, "runq")) {
		check_runq(turn);
	} else {
		pthread_barrier_wait(turn);
		pthread_barrier_wait(turn);
	}
	if (begin(argc, argv, "softirq"))
		check_softirq();
	if (begin(argc, argv, "drops"))
		check_drops(probe_of("drops")->rung);
	if (begin(argc, argv, "rtp"))
		check_rtp();
}

int main(int argc, char **argv)
{
	struct model *model = calloc(1, sizeof(*model));
	struct diag *diag = calloc(1, sizeof(*diag));
	struct sense_setup setup = { 0 };
	pthread_barrier_t turn;
	struct burner burner[2];
	int at = 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (at + 1 < argc && !strcmp(argv[at], "--rungs")) {
		setup.rungs = argv[at + 1];
		at += 2;
	}
	sample = calloc(1, sizeof(*sample));
	if (!model || !diag || !sample || geteuid()) {
		printf("skip   signals: BPF needs root\n0 passed, 0 failed, 1 skipped\n");
		return 77;
	}
	pthread_barrier_init(&turn, NULL, 3);
	for (int i = 0; i < 2; i++) {
		burner[i].turn = &turn;
		pthread_create(&burner[i].thread, NULL, burn, &burner[i]);
	}
	pthread_barrier_wait(&turn);
	if (sense_open(model, &setup, diag, &sense) < 0) {
		printf("NOT OK attach\n0 passed, 1 failed, 0 skipped\n");
		return 1;
	}
	run(argc - at, argv + at, &turn);
	pthread_barrier_wait(&turn);
	for (int i = 0; i < 2; i++)
		pthread_join(burner[i].thread, NULL);
	sense_close(sense);
	printf("%u passed, %u failed, 0 skipped\n", passed, failed);
	return failed ? 1 : 0;
}
