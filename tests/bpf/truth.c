/* SPDX-License-Identifier: GPL-2.0-or-later */
/* truth.c - is what the kernel measured what the receiver saw? Real datagrams, real probes.
 *
 * usage: truth [--rungs LIST] [--relative] [CASE...]
 * Counts must be exact, always. Times: recv and recvmsg within a slot's width (3.2 %) plus 150 us of the receiver's own at p50 and
 * p99; batches within the longest batch. A case whose times disagree is run again (the machine may have taken the CPU away
 * between two stamps), five times at most, and the number of runs is printed; a wrong count is never run again.
 * --relative is for emulated machines: 10 % plus 5 ms.
 * Ends with "N passed, N failed, N skipped". Needs root. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sense/sense.h"
#include "traffic.h"

static struct sense *sense;
static struct sample *sample;
static struct diag *diag;
static struct model *model;
static const char *rungs;
static double tolerance = 0.032;
static uint64_t slack_ns = 150000;
static unsigned int passed, failed, skipped;
static bool again;	/* a story asks to be run once more */

struct figures { uint64_t n, p50, p99, max; };

static void rest_ms(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static void result(const char *name, bool good, const char *why)
{
	printf("%s %s%s%s\n", good ? "ok    " : "NOT OK", name, why[0] ? ": " : "", why);
	fflush(stdout);
	if (good)
		passed++;
	else
		failed++;
}

static void skip(const char *name, const char *why)
{
	printf("skip   %s: %s\n", name, why);
	skipped++;
}

static int attach(void)
{
	const struct sense_setup setup = { .rungs = rungs };

	memset(diag, 0, sizeof(*diag));
	memset(sample, 0, sizeof(*sample));
	return sense_open(model, &setup, diag, &sense);
}

static void detach(void)
{
	sense_close(sense);
	sense = NULL;
}

static int slot_of_pid(uint32_t pid)
{
	for (int i = SAMPLE_FIRST_FREE; i < SAMPLE_TARGETS; i++)
		for (uint32_t k = 0; sample->target[i].used && k < sample->target[i].pid_count && k < 16; k++)
			if (sample->target[i].pids[k] == pid)
				return i;
	return -1;
}

/* Read until the process has a slot (its first read was told), at most 2 s. */
static int find_slot(uint32_t pid)
{
	uint64_t deadline = traffic_now_ns() + 2000000000ULL;
	int slot;

	do {
		sense_read(sense, traffic_now_ns(), sample);
		slot = slot_of_pid(pid);
		if (slot < 0)
			rest_ms(5);
	} while (slot < 0 && traffic_now_ns() < deadline);
	return slot;
}

static void figures_of_hist(const uint64_t *before, const uint64_t *after, struct figures *f)
{
	uint64_t seen = 0;

	*f = (struct figures){ 0 };
	for (unsigned int i = 0; i < HIST_SLOTS; i++)
		f->n += after[i] - before[i];
	for (unsigned int i = 0; i < HIST_SLOTS; i++) {
		uint64_t n = after[i] - before[i];

		if (!n)
			continue;
		if (seen * 2 < f->n && (seen + n) * 2 >= f->n)
			f->p50 = hist_midpoint(i);
		if (seen * 100 < f->n * 99 && (seen + n) * 100 >= f->n * 99)
			f->p99 = hist_midpoint(i);
		f->max = hist_midpoint(i);
		seen += n;
	}
}

static void figures_of_own(const struct traffic_result *r, struct figures *f)
{
	uint32_t n = r->reads < TRAFFIC_MAX ? r->reads : TRAFFIC_MAX;
	uint64_t *sorted = malloc((n + 1) * sizeof(*sorted));

	*f = (struct figures){ .n = r->reads };
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = r->own[i];
	qsort(sorted, n, sizeof(*sorted), traffic_ns_compare);
	if (n) {
		f->p50 = sorted[(n - 1) / 2];
		f->p99 = sorted[(uint32_t)((uint64_t)(n - 1) * 99 / 100)];
		f->max = sorted[n - 1];
	}
	free(sorted);
}

static double us(uint64_t ns)
{
	return (double)ns / 1000;
}

static bool near(uint64_t measured, uint64_t own, uint64_t extra)
{
	double off = (double)measured - (double)own, allowed = tolerance * (double)own + (double)slack_ns;

	return off <= allowed && -off <= allowed + (double)extra;
}

/* What a socket's own filter throws away is told by one rung only. */
static uint64_t untold(const struct traffic *t)
{
	for (uint32_t i = 0; t->filter_odd && i < sample->probe_count; i++)
		if (!strcmp(sample->probe[i].signal, "drops") && strcmp(sample->probe[i].rung, "reasons"))
			return t->packets / 2;
	return 0;
}

/* One run: 1 good, 0 wrong times, -1 wrong counts, -2 skipped. */
static int run_once(const struct traffic *t, char *why, size_t size)
{
	static uint64_t before[HIST_SLOTS];
	uint64_t counter[SAMPLE_COUNTER_COUNT], lost;
	struct traffic_run run;
	struct figures own, bpf;
	int slot, r = traffic_start(t, &run);

	if (r < 0 || run.result->skipped) {
		snprintf(why, size, "%s", strerror(r < 0 ? -r : run.result->skipped));
		traffic_end(&run);
		return -2;
	}
	slot = find_slot((uint32_t)run.receiver);
	if (slot < 0) {
		snprintf(why, size, "the reader got no target");
		traffic_end(&run);
		return -1;
	}
	memcpy(before, sample->target[slot].dist[SAMPLE_DIST_DWELL].slot, sizeof(before));
	memcpy(counter, sample->target[slot].counter, sizeof(counter));
	r = traffic_go(&run);
	sense_read(sense, traffic_now_ns(), sample);
	figures_of_own(run.result, &own);
	figures_of_hist(before, sample->target[slot].dist[SAMPLE_DIST_DWELL].slot, &bpf);
	lost = sample->target[slot].counter[SAMPLE_DROPS_SERVER] + sample->target[slot].counter[SAMPLE_DROPS_NETWORK] -
	       counter[SAMPLE_DROPS_SERVER] - counter[SAMPLE_DROPS_NETWORK];
	printf("       %-34s sent %6u read %6llu measured %6llu dropped %5llu | own p50 %9.1f p99 %9.1f max %9.1f | bpf p50 %9.1f p99 %9.1f "
	       "max %9.1f us | error p50 %+7.1f p99 %+8.1f\n",
	       t->name, run.result->sent, (unsigned long long)own.n, (unsigned long long)bpf.n, (unsigned long long)lost,
	       us(own.p50), us(own.p99), us(own.max), us(bpf.p50), us(bpf.p99), us(bpf.max), us(bpf.p50) - us(own.p50),
	       us(bpf.p99) - us(own.p99));
	why[0] = '\0';
	if (run.result->skipped) {
		snprintf(why, size, "%s", strerror(run.result->skipped));
		r = -2;
	} else if (r < 0) {
		snprintf(why, size, "the traffic did not end: %s", strerror(-r));
		r = -1;
	} else if (bpf.n != own.n) {
		snprintf(why, size, "count: measured %llu, the receiver read %llu", (unsigned long long)bpf.n,
			 (unsigned long long)own.n);
		r = -1;
	} else if (!t->gro && own.n + lost + untold(t) != run.result->sent) {
		snprintf(why, size, "conservation: sent %u, read %llu, dropped %llu", run.result->sent,
			 (unsigned long long)own.n, (unsigned long long)lost);
		r = -1;
	} else if (!t->may_lose && !t->filter_odd && lost) {
		snprintf(why, size, "dropped %llu", (unsigned long long)lost);
		r = 0;
	} else if (sample->target[slot].queued || sample->target[slot].oldest_ns) {
		snprintf(why, size, "queue: %llu datagrams, oldest %.1f us, though all were read",
			 (unsigned long long)sample->target[slot].queued, us(sample->target[slot].oldest_ns));
		r = -1;
	} else if (!near(bpf.p50, own.p50, run.result->batch_ns) || !near(bpf.p99, own.p99, run.result->batch_ns)) {
		snprintf(why, size, "times disagree");
		r = 0;
	} else {
		r = 1;
	}
	traffic_end(&run);
	return r;
}

static void run_case(const struct traffic *t)
{
	char why[160] = "", told[200];
	int r = 0;

	for (int attempt = 1; attempt <= 5 && r == 0; attempt++) {
		r = run_once(t, why, sizeof(why));
		if (r == 1 && attempt > 1)
			snprintf(why, sizeof(why), "in run %d", attempt);
	}
	snprintf(told, sizeof(told), "%s", why);
	if (r == -2)
		skip(t->name, told);
	else
		result(t->name, r == 1, told);
}

/* ---- the table of plain cases ---- */

/* a starved machine may take the reader's CPU away for long: nothing but the overflow cases may lose */
#define ROOMY .rcvbuf = 4 << 20
#define STALL(ms, every) .stall_ms = (ms), .stall_every = (every)
static const struct traffic cases[] = {
	{ "recv", READ_RECV, AF_INET, ROOMY, .packets = 5000, .gap_us = 100 },
	{ "recv, stall 5 ms", READ_RECV, AF_INET, ROOMY, .packets = 5000, .gap_us = 200, STALL(5, 50) },
	{ "recv, stall 20 ms", READ_RECV, AF_INET, ROOMY, .packets = 5000, .gap_us = 200, STALL(20, 200) },
	{ "recv, stall 76 ms", READ_RECV, AF_INET, ROOMY, .packets = 5000, .gap_us = 500, STALL(76, 500) },
	{ "recvmsg, stall 5 ms", READ_RECVMSG, AF_INET, ROOMY, .packets = 5000, .gap_us = 200, STALL(5, 50) },
	{ "recvmsg, stall 20 ms", READ_RECVMSG, AF_INET, ROOMY, .packets = 5000, .gap_us = 200, STALL(20, 200) },
	{ "recvmmsg(32), stall 20 ms", READ_RECVMMSG, AF_INET, ROOMY, .packets = 5000, .gap_us = 200, STALL(20, 200) },
	{ "read, stall 20 ms", READ_READ, AF_INET, ROOMY, .packets = 5000, .gap_us = 200, STALL(20, 200) },
	{ "io_uring recv, stall 5 ms", READ_URING, AF_INET, ROOMY, .packets = 5000, .gap_us = 200, STALL(5, 50) },
	{ "MSG_PEEK then read, stall 5 ms", READ_PEEK, AF_INET, ROOMY, .packets = 5000, .gap_us = 200, STALL(5, 50) },
	{ "connected sender, no stall", READ_RECV, AF_INET, .connected = true, ROOMY, .packets = 5000, .gap_us = 100 },
	{ "IPv6, stall 20 ms", READ_RECV, AF_INET6, ROOMY, .packets = 5000, .gap_us = 200, STALL(20, 200) },
	{ "dual-stack, stall 5 ms", READ_RECV, AF_INET6, .dual_stack = true, ROOMY, .packets = 5000, .gap_us = 200, STALL(5, 50) },
	{ "UDP_GRO, stall 5 ms", READ_RECV, AF_INET, .gro = true, ROOMY, .packets = 10000, .gap_us = 100, STALL(5, 50) },
	{ "two producers", READ_RECV, AF_INET, .senders = 2, ROOMY, .packets = 10000, .gap_us = 200, .two_producers = true },
	{ "other network namespace", READ_RECV, AF_INET, .netns = true, ROOMY, .packets = 5000, .gap_us = 200, STALL(20, 200) },
	{ "8 MB buffer, 6000 queued, 500 ms", READ_RECV, AF_INET, .packets = 6000, .gap_us = 70, .hold_ms = 500, .rcvbuf = 8 << 20 },
	{ "overflow, 16 KiB buffer", READ_RECV, AF_INET, .packets = 10000, .rcvbuf = 8192, STALL(20, 20), .may_lose = true },
	{ "overflow, two producers", READ_RECV, AF_INET, .packets = 10000, .senders = 2, .rcvbuf = 16384, STALL(20, 20),
	  .may_lose = true, .two_producers = true },
	{ "socket filter drops odd ones", READ_RECV, AF_INET, .filter_odd = true, ROOMY, .packets = 5000, .gap_us = 200, STALL(5, 50) },
};

/* ---- cases with a story of their own ---- */

/* Kernels before 5.11 do not tell whose a socket is before somebody reads it, and the probe says so. */
static bool owners_untold(const char *name)
{
	if (!strstr(sample->probe[0].reason, "first read only"))
		return false;
	skip(name, "owners of unread sockets are not told on this kernel");
	return true;
}

/* A rung may be lost at the second attach. */
static void tell_lost_rung(void)
{
	if (sample->probe_count && !sample->probe[0].attached)
		printf("       dwell has no rung now: %s\n", sample->probe[0].reason);
}

/* Wrong times are measured again, as in run_case(); wrong counts never are. */
static void settle(const char *name, bool counts, bool times, const char *why)
{
	static unsigned int attempt;

	again = counts && !times && ++attempt < 3;
	if (again) {
		printf("       %s: times disagree, again: %s\n", name, why);
		return;
	}
	attempt = 0;
	result(name, counts && times, why);
}

/* Ten that were there before us give no sample and disturb none of the ten that come after. */
static void case_before_attach(void)
{
	const struct traffic t = { "10 queued before attach", READ_RECV, AF_INET, .packets = 20, .pause_after = 10, .hold_until_sent = true };
	static uint64_t zero[HIST_SLOTS];
	struct figures bpf = { 0 };
	struct traffic_run run;
	uint64_t youngest = 0;
	char why[200];
	int slot;

	if (owners_untold(t.name))
		return;
	detach();
	if (traffic_start(&t, &run) < 0 || write(run.go, "x", 1) != 1)
		failed++;
	while (run.result->sent < 10)
		rest_ms(1);
	if (attach() < 0 || write(run.go, "x", 1) != 1)
		failed++;
	while (run.result->sent < 20)
		rest_ms(1);
	slot = find_slot((uint32_t)run.receiver);	/* its socket is found unread, by its owner */
	traffic_go(&run);
	sense_read(sense, traffic_now_ns(), sample);
	if (slot >= 0)
		figures_of_hist(zero, sample->target[slot].dist[SAMPLE_DIST_DWELL].slot, &bpf);
	for (unsigned int i = 10; i < run.result->reads; i++)
		youngest = run.result->own[i] > youngest ? run.result->own[i] : youngest;
	snprintf(why, sizeof(why), "read %u, measured %llu, longest %.0f ms (own of the last ten %.0f ms), queue now %llu", run.result->reads,
		 (unsigned long long)bpf.n, (double)bpf.max / 1e6, (double)youngest / 1e6,
		 slot < 0 ? 0ULL : (unsigned long long)sample->target[slot].queued);
	settle(t.name, slot >= 0 && run.result->reads == 20 && bpf.n == 10 && sample->target[slot].queued == 0,
	       near(bpf.max, youngest, 0), why);
	traffic_end(&run);
}

/* A reader that hung before we came, its buffer full: what comes now is refused, and nothing of that is idle. */
static void case_hung_before(void)
{
	const struct traffic t = { "hung before attach, buffer full", READ_NEVER, AF_INET, .packets = 700, .pause_after = 200, .gap_us = 5000,
				   .rcvbuf = 8192 };
	uint64_t deadline, oldest = 0, begun;
	struct traffic_run run;
	char why[160];
	int slot = -1;

	detach();
	if (traffic_start(&t, &run) < 0 || write(run.go, "x", 1) != 1)
		failed++;
	while (run.result->sent < 200)
		rest_ms(1);
	if (attach() < 0 || write(run.go, "x", 1) != 1)
		failed++;
	begun = traffic_now_ns();
	deadline = begun + 15000000000ULL;
	do {
		rest_ms(100);
		sense_read(sense, traffic_now_ns(), sample);
		slot = slot_of_pid((uint32_t)run.receiver);
		oldest = slot < 0 ? 0 : sample->target[slot].oldest_ns;
	} while (oldest < 2000000000ULL && traffic_now_ns() < deadline);
	snprintf(why, sizeof(why), "oldest at least %.1f s after %.1f s, queued %s", (double)oldest / 1e9,
		 (double)(traffic_now_ns() - begun) / 1e9, slot >= 0 && sample->target[slot].queued_known ? "known" : "unknown");
	result(t.name, oldest >= 2000000000ULL && oldest <= traffic_now_ns() - begun + 100000000ULL && slot >= 0 &&
	       !sample->target[slot].queued_known, why);
	traffic_end(&run);
}

static void case_close(void)
{
	const struct traffic t = { "close with a full queue", READ_CLOSE, AF_INET, .packets = 100, .gap_us = 50 };
	struct traffic_run run;
	uint64_t before, discarded;
	char why[160];
	int slot;

	if (traffic_start(&t, &run) < 0 || (slot = find_slot((uint32_t)run.receiver)) < 0) {
		result(t.name, false, "no traffic or no target");
		traffic_end(&run);
		return;
	}
	before = sample->target[slot].counter[SAMPLE_DISCARDED];
	traffic_go(&run);
	sense_read(sense, traffic_now_ns(), sample);
	discarded = sample->target[slot].counter[SAMPLE_DISCARDED] - before;
	snprintf(why, sizeof(why), "sent %u, discarded %llu, sockets left %u, queued %llu", run.result->sent,
		 (unsigned long long)discarded, sample->target[slot].sockets, (unsigned long long)sample->target[slot].queued);
	result(t.name, discarded == 100 && !sample->target[slot].sockets && !sample->target[slot].queued, why);
	traffic_end(&run);
}

static void never_read(bool configured)
{
	const struct traffic t = { configured ? "a socket that is never read" : "never read, not configured", READ_NEVER, AF_INET,
				   .packets = 20, .gap_us = 100 };
	struct traffic_run run;
	uint64_t sent_at, age, deadline;
	char why[160];
	int slot = -1;

	if (owners_untold(t.name))
		return;
	if (!configured) {
		model->target_count = 0;
		detach();
		attach();
	}
	traffic_start(&t, &run);
	sent_at = traffic_now_ns();
	if (write(run.go, "x", 1) != 1)
		failed++;
	deadline = sent_at + 8000000000ULL;	/* the owner iterator runs every 5 s */
	do {
		rest_ms(50);
		sense_read(sense, traffic_now_ns(), sample);
		slot = slot_of_pid((uint32_t)run.receiver);
	} while ((slot < 0 || !sample->target[slot].queued) && traffic_now_ns() < deadline);
	age = traffic_now_ns() - sent_at;
	if (slot < 0) {
		result(t.name, false, "no owner found");
	} else {
		uint64_t oldest = sample->target[slot].oldest_ns;

		snprintf(why, sizeof(why), "oldest %.3f s of at most %.3f s, queued %llu", (double)oldest / 1e9, (double)age / 1e9,
			 (unsigned long long)sample->target[slot].queued);
		result(t.name, (configured ? oldest <= age && oldest + 200000000ULL >= age : !oldest) &&
		       sample->target[slot].queued == 20, why);
	}
	traffic_end(&run);
	if (!configured) {
		model->target_count = 1;
		detach();
		attach();
	}
}

static void case_never_read(void)
{
	never_read(true);
}

/* Some programs open a socket that they never read: no alarm from that. */
static void case_never_read_by_itself(void)
{
	never_read(false);
}

static int udp_pair(int *ret_tx)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int rx = socket(AF_INET, SOCK_DGRAM, 0);

	*ret_tx = socket(AF_INET, SOCK_DGRAM, 0);
	if (rx < 0 || *ret_tx < 0 || bind(rx, (struct sockaddr *)&a, len) < 0 || getsockname(rx, (struct sockaddr *)&a, &len) < 0 ||
	    connect(*ret_tx, (struct sockaddr *)&a, len) < 0)
		return -1;
	return rx;
}

static uint64_t lost_named(const char *name)
{
	for (uint32_t i = 0; i < sample->lost_count; i++)
		if (!strcmp(sample->lost[i].name, name))
			return sample->lost[i].count;
	return 0;
}

/* The sockets are this process's own, so they count for `self`. */
static void case_churn(void)
{
	uint64_t read_before, discarded_before, rows;
	char why[200], byte[8] = "churn";
	unsigned int opened = 0;
	int rx, tx;

	sense_read(sense, traffic_now_ns(), sample);
	read_before = sample->target[SAMPLE_SELF].counter[SAMPLE_READ] + sample->target[SAMPLE_OTHER].counter[SAMPLE_READ];
	discarded_before = sample->target[SAMPLE_SELF].counter[SAMPLE_DISCARDED] +
			   sample->target[SAMPLE_OTHER].counter[SAMPLE_DISCARDED];
	rows = lost_named("socket_rows");
	for (unsigned int i = 0; i < 5000; i++) {
		rx = udp_pair(&tx);
		if (rx < 0)
			break;
		opened++;
		if (send(tx, byte, sizeof(byte), 0) < 0 || recv(rx, byte, sizeof(byte), 0) < 0 || send(tx, byte, sizeof(byte), 0) < 0)
			break;
		if (poll(&(struct pollfd){ .fd = rx, .events = POLLIN }, 1, 1000) != 1)	/* a slow host brings it later */
			break;		/* the second stays unread */
		close(rx);
		close(tx);
	}
	sense_read(sense, traffic_now_ns(), sample);
	uint64_t read = sample->target[SAMPLE_SELF].counter[SAMPLE_READ] + sample->target[SAMPLE_OTHER].counter[SAMPLE_READ] -
			read_before;
	uint64_t discarded = sample->target[SAMPLE_SELF].counter[SAMPLE_DISCARDED] +
			     sample->target[SAMPLE_OTHER].counter[SAMPLE_DISCARDED] - discarded_before;

	snprintf(why, sizeof(why), "opened %u, read %llu, discarded %llu, rows still in use %u, rows refused %llu", opened,
		 (unsigned long long)read, (unsigned long long)discarded, sample->target[SAMPLE_SELF].sockets,
		 (unsigned long long)(lost_named("socket_rows") - rows));
	/* the self-test's socket has one row */
	result("5 000 sockets opened and closed", opened == 5000 && read == 5000 && discarded == 5000 &&
	       sample->target[SAMPLE_SELF].sockets <= 1 && lost_named("socket_rows") == rows, why);
}

/* A datagram with a wrong checksum is found out at recvmsg and leaves the queue without a read. It must not shift the stamps of all
 * that follow: at a steady 1000/s without a pause the error would stay one interval, 1 ms. */
static void case_checksum(void)
{
	struct { uint16_t from, to, length, checksum; char fill[200]; } bad = { .length = htons(208), .checksum = htons(1) };
	static uint64_t before[HIST_SLOTS];
	struct sockaddr_in a = { 0 };
	socklen_t len = sizeof(a);
	struct figures bpf;
	char byte[8] = "check", why[120];
	int tx, rx = udp_pair(&tx), raw = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
	unsigned int got = 0;

	if (rx < 0 || raw < 0 || getsockname(rx, (struct sockaddr *)&a, &len) < 0) {
		skip("wrong checksum in a steady stream", "no raw socket");
		return;
	}
	bad.to = a.sin_port;
	for (unsigned int i = 0; i < 500; i++) {
		if (i == 5 && sendto(raw, &bad, sizeof(bad), 0, (struct sockaddr *)&a, len) != sizeof(bad))
			break;
		if (i == 200) {
			sense_read(sense, traffic_now_ns(), sample);
			memcpy(before, sample->target[SAMPLE_SELF].dist[0].slot, sizeof(before));
			got = 0;
		}
		if (send(tx, byte, sizeof(byte), 0) < 0 || recv(rx, byte, sizeof(byte), 0) < 0)
			break;
		got++;
		rest_ms(1);
	}
	sense_read(sense, traffic_now_ns(), sample);
	figures_of_hist(before, sample->target[SAMPLE_SELF].dist[0].slot, &bpf);
	snprintf(why, sizeof(why), "read %u, measured %llu, p50 %.1f us", got, (unsigned long long)bpf.n, us(bpf.p50));
	result("wrong checksum in a steady stream", got == 300 && bpf.n == 300 && bpf.p50 < 500000, why);
	close(rx);
	close(tx);
	close(raw);
}

/* C52: 64 datagrams 10 ms apart, then one recvmmsg: 64 values from 630 ms down to 0. */
static void case_burst(void)
{
	const struct traffic t = { "C52: 64 queued 10 ms apart", READ_RECVMMSG, AF_INET, .packets = 64, .gap_us = 10000,
				   .hold_ms = 645 };
	static uint64_t before[HIST_SLOTS];
	struct traffic_run run;
	struct figures own, bpf;
	char why[160];
	unsigned int distinct = 0;
	int slot;

	if (traffic_start(&t, &run) < 0 || (slot = find_slot((uint32_t)run.receiver)) < 0) {
		result(t.name, false, "no traffic or no target");
		traffic_end(&run);
		return;
	}
	memcpy(before, sample->target[slot].dist[0].slot, sizeof(before));
	traffic_go(&run);
	sense_read(sense, traffic_now_ns(), sample);
	figures_of_hist(before, sample->target[slot].dist[0].slot, &bpf);
	figures_of_own(run.result, &own);
	for (unsigned int i = 0; i < HIST_SLOTS; i++)
		distinct += sample->target[slot].dist[0].slot[i] != before[i];
	snprintf(why, sizeof(why), "measured %llu in %u slots, p50 %.0f ms (own %.0f), max %.0f ms (own %.0f)", (unsigned long long)bpf.n,
		 distinct, (double)bpf.p50 / 1e6, (double)own.p50 / 1e6, (double)bpf.max / 1e6, (double)own.max / 1e6);
	settle(t.name, bpf.n == 64, distinct > 30 && near(bpf.p50, own.p50, run.result->batch_ns) && near(bpf.max, own.max, 0), why);
	traffic_end(&run);
}

/* C54: 10 000 queued at once: no value above the true maximum, nothing lost, coarse ones counted by the kernel. */
static void case_deep(void)
{
	const struct traffic t = { "C54: 10 000 queued", READ_RECV, AF_INET, .packets = 10000, .gap_us = 0, .hold_ms = 400,
				   .rcvbuf = 32 << 20 };
	static uint64_t before[HIST_SLOTS];
	struct traffic_run run;
	struct figures own, bpf;
	char why[160];
	int slot;

	if (traffic_start(&t, &run) < 0 || (slot = find_slot((uint32_t)run.receiver)) < 0) {
		result(t.name, false, "no traffic or no target");
		traffic_end(&run);
		return;
	}
	memcpy(before, sample->target[slot].dist[0].slot, sizeof(before));
	traffic_go(&run);
	sense_read(sense, traffic_now_ns(), sample);
	figures_of_hist(before, sample->target[slot].dist[0].slot, &bpf);
	figures_of_own(run.result, &own);
	snprintf(why, sizeof(why), "read %llu, measured %llu, p50 %.1f (own %.1f), p99 %.1f (own %.1f), max %.1f (own %.1f) ms",
		 (unsigned long long)own.n, (unsigned long long)bpf.n, (double)bpf.p50 / 1e6, (double)own.p50 / 1e6,
		 (double)bpf.p99 / 1e6, (double)own.p99 / 1e6, (double)bpf.max / 1e6, (double)own.max / 1e6);
	settle(t.name, own.n == 10000 && bpf.n == 10000, (double)bpf.max <= (double)own.max * 1.032 &&
	       near(bpf.p50, own.p50, 0) && near(bpf.p99, own.p99, 0), why);
	traffic_end(&run);
}

static bool wanted(int argc, char **argv, const char *name)
{
	if (argc <= 0)
		return true;
	for (int i = 0; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } stories[] = {
		{ "C52: 64 queued 10 ms apart", case_burst },	{ "C54: 10 000 queued", case_deep },
		{ "close with a full queue", case_close },	{ "a socket that is never read", case_never_read },
		{ "never read, not configured", case_never_read_by_itself },
		{ "wrong checksum in a steady stream", case_checksum },
		{ "5 000 sockets opened and closed", case_churn }, { "10 queued before attach", case_before_attach },
		{ "hung before attach, buffer full", case_hung_before },
	};
	bool measures;
	int at = 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (; at < argc && !strncmp(argv[at], "--", 2); at++) {
		if (!strcmp(argv[at], "--rungs") && at + 1 < argc) {
			rungs = argv[++at];
		} else if (!strcmp(argv[at], "--relative")) {
			tolerance = 0.1;
			slack_ns = 5000000;
		} else {
			fprintf(stderr, "usage: truth [--rungs LIST] [--relative] [CASE...]\n");
			return 2;
		}
	}
	if (geteuid() != 0) {
		printf("skip   ground truth: BPF needs root\n0 passed, 0 failed, 1 skipped\n");
		return 77;
	}
	diag = calloc(1, sizeof(*diag));
	sample = calloc(1, sizeof(*sample));
	model = calloc(1, sizeof(*model));
	if (model) {	/* a configured target: also its sockets that were never read are told */
		model->target_count = 1;
		model->target[0].match_count = 1;
		snprintf(model->target[0].name, sizeof(model->target[0].name), "truth");
		snprintf(model->target[0].match[0].process, sizeof(model->target[0].match[0].process), "truth");
	}
	if (!diag || !sample || !model || attach() < 0) {
		printf("NOT OK attach\n0 passed, 1 failed, 0 skipped\n");
		return 1;
	}
	sense_read(sense, traffic_now_ns(), sample);
	for (uint32_t i = 0; i < sample->probe_count; i++)
		printf("       probe %-8s rung %-10s %s %s\n", sample->probe[i].signal, sample->probe[i].rung,
		       sample->probe[i].exact ? "exact" : "inexact", sample->probe[i].reason);
	measures = sample->probe[0].attached;
	if (!measures)
		result("dwell has a rung", false, sample->probe[0].reason);
	for (size_t i = 0; measures && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (wanted(argc - at, argv + at, cases[i].name))
			run_case(&cases[i]);
	for (size_t i = 0; measures && i < sizeof(stories) / sizeof(stories[0]); i++)
		if (wanted(argc - at, argv + at, stories[i].name)) {
			do
				stories[i].run();
			while (again);
			tell_lost_rung();
		}
	for (uint32_t i = 0; i < sample->lost_count; i++)
		if (sample->lost[i].count)
			printf("       lost %s: %llu\n", sample->lost[i].name, (unsigned long long)sample->lost[i].count);
	detach();
	printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
	return failed ? 1 : 0;
}
