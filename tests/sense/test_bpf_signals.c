/* SPDX-License-Identifier: GPL-2.0-or-later */
/* runq, softirq and drops on this kernel, against what the kernel itself says. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf_fixture.h"

#define MS 1000000ULL

static struct fixture f;

static void close_fixture(void)
{
	fixture_close(&f);
}

/* ---- runq: two busy threads on one CPU ---- */

struct burner {
	pthread_t thread;
	pid_t tid;
	int cpu;
	uint64_t until_ns;
	pthread_barrier_t *ready;
};

static void *burn(void *data)
{
	struct burner *b = data;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)b->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	b->tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(b->ready);	/* both can be covered and counted */
	pthread_barrier_wait(b->ready);
	while (fixture_now() < b->until_ns)
		;
	pthread_barrier_wait(b->ready);
	pthread_barrier_wait(b->ready);
	return NULL;
}

static uint64_t run_delay(pid_t tid)
{
	unsigned long long run, delay = 0;
	char path[64];
	FILE *s;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	s = fopen(path, "re");
	cr_assert_not_null(s);
	cr_assert_eq(fscanf(s, "%llu %llu", &run, &delay), 2);
	fclose(s);
	return delay;
}

static void cover_threads(void)
{
	char buf[256];
	struct bpf_link *l = bpf_program__attach_iter(fixture_program(&f, "runq_threads"), NULL);
	int fd;

	cr_assert_not_null(l);
	fd = bpf_iter_create(bpf_link__fd(l));
	cr_assert_geq(fd, 0);
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
	bpf_link__destroy(l);
}

static void watch_self(void)
{
	const uint32_t tgid = (uint32_t)getpid(), slot = FIXTURE_SLOT;
	const struct map_control control = { .epoch = 1, .generation = 1 };
	const uint32_t zero = 0;

	cr_assert_eq(bpf_map_update_elem(fixture_map(&f, "control"), &zero, &control, 0), 0);
	cr_assert_eq(bpf_map_update_elem(fixture_map(&f, "tgid_slot"), &tgid, &slot, 0), 0);
}

static int a_cpu_of_ours(void)
{
	cpu_set_t set;

	cr_assert_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int c = CPU_SETSIZE - 1; c > 0; c--)
		if (CPU_ISSET((size_t)c, &set))
			return c;
	return 0;
}

/* Runs two burners for 600 ms; their waits by the kernel's account, and by the histogram. */
static void burners_run(bool storage, uint64_t *ret_kernel_ns, uint64_t *ret_ours_ns, uint64_t *ret_samples)
{
	struct burner b[2] = { 0 };
	uint64_t before[HIST_SLOTS], after[HIST_SLOTS];
	pthread_barrier_t ready;

	pthread_barrier_init(&ready, NULL, 3);
	for (int i = 0; i < 2; i++) {
		b[i] = (struct burner){ .cpu = a_cpu_of_ours(), .ready = &ready };
		cr_assert_eq(pthread_create(&b[i].thread, NULL, burn, &b[i]), 0);
	}
	pthread_barrier_wait(&ready);
	if (storage)
		cover_threads();
	fixture_hist(&f, "hists", FIXTURE_SLOT * MAP_DISTS + MAP_DIST_RUNQ, before);
	*ret_kernel_ns = 0;
	for (int i = 0; i < 2; i++) {
		*ret_kernel_ns -= run_delay(b[i].tid);
		b[i].until_ns = fixture_now() + 600 * MS;
	}
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&ready);
	for (int i = 0; i < 2; i++)
		*ret_kernel_ns += run_delay(b[i].tid);
	fixture_hist(&f, "hists", FIXTURE_SLOT * MAP_DISTS + MAP_DIST_RUNQ, after);
	pthread_barrier_wait(&ready);
	for (int i = 0; i < 2; i++)
		pthread_join(b[i].thread, NULL);
	pthread_barrier_destroy(&ready);
	for (int i = 0; i < HIST_SLOTS; i++)
		after[i] -= before[i];
	*ret_ours_ns = fixture_hist_sum_ns(after);
	*ret_samples = fixture_hist_count(after);
}

static void expect_agreement(uint64_t kernel_ns, uint64_t ours_ns, uint64_t samples)
{
	const double k = (double)kernel_ns, o = (double)ours_ns;

	printf("runq: kernel %.1f ms, measured %.1f ms in %lu waits\n", k / 1e6, o / 1e6, (unsigned long)samples);
	cr_expect_gt(kernel_ns, 200 * MS, "the burners did not compete");
	cr_expect_gt(samples, 5);
	/* slots are 3 % wide; the main thread is watched too, and the switch in flight counts on one side only */
	cr_expect(o > 0.9 * k - 15e6 && o < 1.1 * k + 15e6, "kernel %.1f ms, measured %.1f ms", k / 1e6, o / 1e6);
}

Test(runq, wakeup_agrees_with_schedstat_under_load, .fini = close_fixture, .timeout = 30)
{
	static const char *const programs[] = { "runq_waking", "runq_switch", "runq_threads", NULL };
	uint64_t kernel_ns, ours_ns, samples;

	fixture_open(&f);
	fixture_load(&f, FIXTURE_RUNQ, programs);
	watch_self();
	fixture_attach(&f, "runq_waking");
	fixture_attach(&f, "runq_switch");
	burners_run(true, &kernel_ns, &ours_ns, &samples);
	expect_agreement(kernel_ns, ours_ns, samples);
}

Test(runq, three_argument_switch_agrees_too, .fini = close_fixture, .timeout = 30)
{
	static const char *const programs[] = { "runq_waking", "runq_switch3", "runq_threads", NULL };
	uint64_t kernel_ns, ours_ns, samples;

	fixture_open(&f);
	fixture_load(&f, FIXTURE_RUNQ, programs);
	watch_self();
	fixture_attach(&f, "runq_waking");
	fixture_attach(&f, "runq_switch3");
	burners_run(true, &kernel_ns, &ours_ns, &samples);
	expect_agreement(kernel_ns, ours_ns, samples);
}

Test(runq, sched_info_agrees_with_schedstat_under_load, .fini = close_fixture, .timeout = 30)
{
	static const char *const programs[] = { "runq_sched_info", NULL };
	uint64_t kernel_ns, ours_ns, samples;

	fixture_open(&f);
	fixture_load(&f, FIXTURE_RUNQ, programs);
	watch_self();
	fixture_attach(&f, "runq_sched_info");
	burners_run(false, &kernel_ns, &ours_ns, &samples);
	expect_agreement(kernel_ns, ours_ns, samples);
}

/* A sleep is not a wait: two threads that hand a byte to and fro on one CPU sleep nearly always. */
Test(runq, sleeping_is_not_waiting, .fini = close_fixture, .timeout = 30)
{
	static const char *const programs[] = { "runq_waking", "runq_switch", "runq_threads", NULL };
	uint64_t slot[HIST_SLOTS], spent;
	int64_t expirations = 0;

	fixture_open(&f);
	fixture_load(&f, FIXTURE_RUNQ, programs);
	watch_self();
	fixture_attach(&f, "runq_waking");
	fixture_attach(&f, "runq_switch");
	cover_threads();
	spent = fixture_now();
	while (expirations++ < 100)
		usleep(3000);	/* what is measured, not something waited for */
	spent = fixture_now() - spent;
	fixture_hist(&f, "hists", FIXTURE_SLOT * MAP_DISTS + MAP_DIST_RUNQ, slot);
	printf("runq: %lu waits, %.1f ms of %.1f ms asleep\n", (unsigned long)fixture_hist_count(slot),
	       (double)fixture_hist_sum_ns(slot) / 1e6, (double)spent / 1e6);
	cr_expect_geq(fixture_hist_count(slot), 95, "each wakeup waits once");
	cr_expect_lt(fixture_hist_sum_ns(slot), spent - 100 * 2500000ULL);
}

Test(runq, nobody_else_is_counted, .fini = close_fixture, .timeout = 30)
{
	static const char *const programs[] = { "runq_waking", "runq_switch", "runq_threads", NULL };
	uint64_t kernel_ns, ours_ns, samples;
	const uint32_t tgid = (uint32_t)getpid();

	fixture_open(&f);
	fixture_load(&f, FIXTURE_RUNQ, programs);
	watch_self();
	cr_assert_eq(bpf_map_delete_elem(fixture_map(&f, "tgid_slot"), &tgid), 0);
	fixture_attach(&f, "runq_waking");
	fixture_attach(&f, "runq_switch");
	burners_run(true, &kernel_ns, &ours_ns, &samples);
	cr_expect_gt(kernel_ns, 200 * MS);
	cr_expect_eq(samples, 0);
}

/* ---- softirq ---- */

enum { NET_RX = 3, TASKLET = 6 };

static void busy_until(uint64_t ns)
{
	while (fixture_now() < ns)
		;
}

static void host_hist(enum map_host_dist dist, uint64_t ret[HIST_SLOTS])
{
	fixture_hist(&f, "host_hists", dist, ret);
}

/* The one value of a histogram, whose slots are 3 % wide. */
static void expect_between(const uint64_t slot[HIST_SLOTS], uint64_t low_ns, uint64_t high_ns)
{
	const uint64_t ns = fixture_hist_sum_ns(slot);

	cr_expect(ns >= low_ns - low_ns / 25 && ns <= high_ns + high_ns / 25, "%.3f ms, not %.3f .. %.3f ms", (double)ns / 1e6,
		  (double)low_ns / 1e6, (double)high_ns / 1e6);
}

/* The programs are fed by hand, on chosen CPUs, so that nothing else interleaves. */
Test(softirq, c55_tasklets_and_other_cpus_do_not_disturb, .fini = close_fixture, .timeout = 30)
{
	static const char *const programs[] = { "softirq_raise", "softirq_entry", "softirq_exit", NULL };
	const unsigned int b = libbpf_num_possible_cpus() > 1 ? 1 : 0;
	uint64_t wait[HIST_SLOTS], run[HIST_SLOTS], start, raised, before_entry, entered, before_exit, left;

	fixture_open(&f);
	fixture_load(&f, FIXTURE_SOFTIRQ, programs);
	start = fixture_now();
	fixture_run(&f, "softirq_raise", 0, NET_RX);
	raised = fixture_now();
	fixture_run(&f, "softirq_raise", 0, TASKLET);
	busy_until(raised + 30 * MS);
	fixture_run(&f, "softirq_raise", 0, NET_RX);	/* the first raise counts */
	fixture_run(&f, "softirq_entry", b, TASKLET);
	before_entry = fixture_now();
	fixture_run(&f, "softirq_entry", 0, NET_RX);
	entered = fixture_now();
	busy_until(entered + 30 * MS);
	fixture_run(&f, "softirq_entry", 0, TASKLET);	/* neither the entry nor the end of another vector */
	fixture_run(&f, "softirq_exit", 0, TASKLET);
	fixture_run(&f, "softirq_exit", b, TASKLET);
	fixture_run(&f, "softirq_raise", 0, NET_RX);	/* for the next pass */
	busy_until(entered + 60 * MS);
	before_exit = fixture_now();
	fixture_run(&f, "softirq_exit", 0, NET_RX);
	left = fixture_now();
	fixture_run(&f, "softirq_exit", 0, NET_RX);	/* without an entry: nothing */

	host_hist(MAP_HOST_SOFTIRQ_WAIT, wait);
	host_hist(MAP_HOST_SOFTIRQ_RUN, run);
	cr_expect_eq(fixture_hist_count(wait), 1);
	cr_expect_eq(fixture_hist_count(run), 1);
	expect_between(wait, before_entry - raised, entered - start);
	expect_between(run, before_exit - entered, left - before_entry);

	fixture_run(&f, "softirq_entry", 0, NET_RX);
	host_hist(MAP_HOST_SOFTIRQ_WAIT, wait);
	cr_expect_eq(fixture_hist_count(wait), 2, "the raise in the middle of a pass belongs to the next one");
}

Test(softirq, each_pass_has_a_wait_and_a_run, .fini = close_fixture, .timeout = 30)
{
	static const char *const programs[] = { "softirq_raise", "softirq_entry", "softirq_exit", NULL };
	uint64_t wait[HIST_SLOTS], run[HIST_SLOTS], waits, runs, start;
	struct sockaddr_in to, from;
	int receiver, sender;
	char byte;

	fixture_open(&f);
	fixture_load(&f, FIXTURE_SOFTIRQ, programs);
	for (int i = 0; programs[i]; i++)
		fixture_attach(&f, programs[i]);
	receiver = fixture_socket(AF_INET, &to);
	sender = fixture_socket(AF_INET, &from);
	start = fixture_now();
	for (int i = 0; i < 500; i++) {
		cr_assert_eq(sendto(sender, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
		cr_assert_eq(recv(receiver, &byte, 1, 0), 1);
	}
	host_hist(MAP_HOST_SOFTIRQ_WAIT, wait);
	host_hist(MAP_HOST_SOFTIRQ_RUN, run);
	waits = fixture_hist_count(wait);
	runs = fixture_hist_count(run);
	printf("softirq: %lu waits, mean %.1f us; %lu runs, mean %.1f us\n", (unsigned long)waits,
	       (double)fixture_hist_sum_ns(wait) / 1e3 / (double)waits, (unsigned long)runs,
	       (double)fixture_hist_sum_ns(run) / 1e3 / (double)runs);
	cr_expect_geq(runs, 400);
	cr_expect_lt(waits > runs ? waits - runs : runs - waits, 20 + runs / 50);
	/* no pass lasted longer than all of it together, on all CPUs */
	cr_expect_lt(fixture_hist_sum_ns(run), (uint64_t)libbpf_num_possible_cpus() * (fixture_now() - start));
	close(receiver);
	close(sender);
}

/* ---- drops ---- */

static int receiver, sender;
static struct sockaddr_in to;

static void drops_open(void)
{
	static const char *const media[] = { "media_ingress", NULL };
	static const char *const drops[] = { "drops_queue", "drops_filter", NULL };
	const struct map_control control = { .epoch = 7, .generation = 1 };
	const uint32_t zero = 0;
	struct sockaddr_in from;
	char byte;

	fixture_open(&f);
	fixture_load(&f, FIXTURE_MEDIA, media);	/* it gives the socket its row */
	fixture_load(&f, FIXTURE_DROPS, drops);
	cr_assert_eq(bpf_map_update_elem(fixture_map(&f, "control"), &zero, &control, 0), 0);
	fixture_attach(&f, "media_ingress");
	fixture_attach(&f, "drops_queue");
	fixture_attach(&f, "drops_filter");
	receiver = fixture_socket(AF_INET, &to);
	sender = fixture_socket(AF_INET, &from);
	cr_assert_eq(sendto(sender, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
	cr_assert_eq(recv(receiver, &byte, 1, 0), 1);
	fixture_own(&f, receiver);
}

static void drops_close(void)
{
	close(receiver);
	close(sender);
	fixture_close(&f);
}

static void send_many(int n)
{
	char data[200] = { 0 };

	for (int i = 0; i < n; i++)
		cr_assert_eq(sendto(sender, data, sizeof(data), 0, (struct sockaddr *)&to, sizeof(to)), (ssize_t)sizeof(data));
}

static uint64_t drops(enum map_count what)
{
	return fixture_count(&f, FIXTURE_SLOT, what);
}

Test(drops, receive_buffer_overflow_is_counted_exactly, .fini = drops_close, .timeout = 30)
{
	const int small = 16384;
	char data[256];
	uint64_t got = 0;
	struct map_socket s;
	uint32_t row;

	drops_open();
	cr_assert_eq(setsockopt(receiver, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	send_many(500);
	while (recv(receiver, data, sizeof(data), MSG_DONTWAIT) > 0)
		got++;
	cr_expect_gt(got, 5);
	cr_expect_lt(got, 400);
	cr_expect_eq(drops(MAP_COUNT_DROP_RCVBUF), 500 - got);
	cr_expect_eq(drops(MAP_COUNT_DROP_MEMORY), 0);
	cr_expect_eq(drops(MAP_COUNT_DROP_SERVER), 0);
	cr_expect_eq(drops(MAP_COUNT_DROP_NETWORK), 0);
	row = fixture_row(&f, receiver);
	cr_assert_eq(bpf_map_lookup_elem(fixture_map(&f, "sockets"), &row, &s), 0);
	cr_expect_geq(s.fill_permille, 1000);
	cr_expect_eq(s.fill_epoch, 7);
}

Test(drops, a_socket_filter_is_the_networks_class, .fini = drops_close, .timeout = 30)
{
	struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = { .len = 1, .filter = &refuse };

	drops_open();
	cr_assert_eq(setsockopt(receiver, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
	send_many(50);
	cr_expect_eq(drops(MAP_COUNT_DROP_NETWORK), 50);
	cr_expect_eq(drops(MAP_COUNT_DROP_RCVBUF), 0);
	cr_expect_eq(drops(MAP_COUNT_DROP_SERVER), 0);
}

static uint64_t drops_anywhere(void)
{
	static const enum map_count all[] = { MAP_COUNT_DROP_RCVBUF, MAP_COUNT_DROP_MEMORY, MAP_COUNT_DROP_SERVER,
					      MAP_COUNT_DROP_NETWORK };
	uint64_t sum = 0;

	for (uint32_t slot = 0; slot < MAP_TARGETS; slot++)
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
			sum += fixture_count(&f, slot, all[i]);
	return sum;
}

/* Frees that are no drops of a UDP socket: TCP closed with unread data and refused, netlink, a closed UDP port, a UDP socket
 * closed with a full queue. */
static void free_without_dropping(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) }, gone;
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), c, s, n;
	socklen_t size = sizeof(a);

	cr_assert_eq(bind(l, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(listen(l, 4), 0);
	cr_assert_eq(getsockname(l, (struct sockaddr *)&a, &size), 0);
	for (int i = 0; i < 20; i++) {
		c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		cr_assert_eq(connect(c, (struct sockaddr *)&a, sizeof(a)), 0);
		s = accept(l, NULL, NULL);
		cr_assert_eq(send(c, "unread", 6, 0), 6);
		close(s);
		close(c);
	}
	close(l);
	c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_expect_lt(connect(c, (struct sockaddr *)&a, sizeof(a)), 0);
	close(c);
	n = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
	cr_assert_eq(send(n, "\x14\0\0\0\x12\0\x01\x03\0\0\0\0\0\0\0\0\0\0\0\0", 20, 0), 20);
	close(n);
	s = fixture_socket(AF_INET, &gone);
	for (int i = 0; i < 20; i++)
		cr_assert_eq(sendto(sender, "x", 1, 0, (struct sockaddr *)&gone, sizeof(gone)), 1);
	close(s);
	for (int i = 0; i < 20; i++)
		sendto(sender, "x", 1, 0, (struct sockaddr *)&gone, sizeof(gone));
}

/* Other programs on this machine may drop datagrams of their own meanwhile: one quiet try of ten is enough. */
Test(drops, c66_frees_of_others_never_count, .fini = drops_close, .timeout = 30)
{
	uint64_t before = 1, after = 0;

	drops_open();
	for (int i = 0; i < 10 && before != after; i++) {
		before = drops_anywhere();
		free_without_dropping();
		after = drops_anywhere();
	}
	cr_expect_eq(after, before);
	cr_expect_eq(drops(MAP_COUNT_DROP_NETWORK) + drops(MAP_COUNT_DROP_RCVBUF), 0);
}
