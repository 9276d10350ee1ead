/* SPDX-License-Identifier: GPL-2.0-or-later */
/* runq and softirq on this kernel, against what the kernel itself says. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
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
