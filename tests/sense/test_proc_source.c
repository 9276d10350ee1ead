/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sense/proc_source.h"

#define S(n) ((uint64_t)(n) * 1000000000ULL)

static char root[64];
static struct proc_source *source;
static struct sample sample;

static void make_parents(char *path)
{
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
}

/* In place, as /proc is: the daemon keeps its descriptors. */
static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, name);
	make_parents(path);
	f = fopen(path, "r+");
	if (!f)
		f = fopen(path, "w");
	cr_assert_not_null(f, "%s", path);
	cr_assert_geq(fputs(text, f), 0);
	fflush(f);
	cr_assert_eq(ftruncate(fileno(f), (off_t)strlen(text)), 0);
	fclose(f);
}

static void put_card(const char *name, const char *missed, const char *fifo, const char *packets)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/x", name);
	put(path, "");
	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/rx_missed_errors", name);
	put(path, missed);
	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/rx_fifo_errors", name);
	put(path, fifo);
	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/rx_packets", name);
	put(path, packets);
}

static void remove_tree(const char *name)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf '%s%s'", root, name);
	cr_assert_eq(system(command), 0);
}

#define STAT_0 "cpu  100 10 50 800 20 5 5 10 7 3\ncpu0 1 1 1 1\n"
#define SOFTNET_0 "00000010 00000002 00000003 0 0 0 0 0 0 0 0 0 00000000\n00000010 00000000 00000001 0 0 0 0 0 0 0 0 0 00000001\n"

static void setup(void)
{
	snprintf(root, sizeof(root), "/tmp/dwelld-proc-XXXXXX");
	cr_assert_not_null(mkdtemp(root));
	put("/proc/stat", STAT_0);
	put("/proc/net/softnet_stat", SOFTNET_0);
	put_card("eth0", "5\n", "1\n", "1000\n");
	put("/proc/self/status", "Name:\tx\nRssAnon:\t    1234 kB\nRssFile:\t 9 kB\n");
	cr_assert_eq(proc_source_new(root, &source), 0);
	memset(&sample, 0, sizeof(sample));
}

static void teardown(void)
{
	proc_source_free(source);
	remove_tree("");
}

TestSuite(proc_source, .init = setup, .fini = teardown);

static uint64_t counter(enum sample_host_counter what)
{
	cr_assert(sample.host_known & 1U << what, "counter %d is unknown", what);
	return sample.host_counter[what];
}

static bool known(enum sample_host_counter what)
{
	return sample.host_known & 1U << what;
}

Test(proc_source, c17_the_first_read_is_a_baseline)
{
	proc_source_read(source, S(1), &sample);
	cr_expect_eq(sample.host_known, (1U << SAMPLE_HOST_COUNTER_COUNT) - 1);
	for (int i = 0; i < SAMPLE_HOST_COUNTER_COUNT; i++)
		cr_expect_eq(sample.host_counter[i], 0, "counter %d starts at %lu", i, (unsigned long)sample.host_counter[i]);
}

Test(proc_source, busy_steal_and_total_of_the_cpu_line)
{
	proc_source_read(source, S(1), &sample);
	/* user +40, nice +2, system +8, idle +30, iowait +4, irq +1, softirq +2, steal +13; guest is inside user */
	put("/proc/stat", "cpu  140 12 58 830 24 6 7 23 27 3\n");
	proc_source_read(source, S(2), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_CPU_BUSY), 53);
	cr_expect_eq(counter(SAMPLE_HOST_CPU_STEAL), 13);
	cr_expect_eq(counter(SAMPLE_HOST_CPU_TOTAL), 100);
}

Test(proc_source, c15_iowait_that_falls_takes_nothing_back)
{
	proc_source_read(source, S(1), &sample);
	put("/proc/stat", "cpu  110 10 50 810 5 5 5 10 0 0\n");
	proc_source_read(source, S(2), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_CPU_BUSY), 10);
	cr_expect_eq(counter(SAMPLE_HOST_CPU_TOTAL), 20);
	put("/proc/stat", "cpu  110 10 50 810 8 5 5 10 0 0\n");
	proc_source_read(source, S(3), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_CPU_TOTAL), 23);
}

Test(proc_source, garbage_in_proc_stat_is_unknown_and_comes_back)
{
	static const char *const bad[] = {
		"", "cpu", "cpu  1 2 3\n", "cpu  1 2 x 4 5 6 7 8\n", "cpu  1 2 -3 4 5 6 7 8\n", "cpux 1 2 3 4 5 6 7 8\n",
		"cpu  99999999999999999999999 2 3 4 5 6 7 8\n", "intr 1 2 3 4 5 6 7 8 9\n",
	};

	proc_source_read(source, S(1), &sample);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put("/proc/stat", bad[i]);
		proc_source_read(source, S(2), &sample);
		cr_expect(!known(SAMPLE_HOST_CPU_BUSY), "\"%s\"", bad[i]);
		cr_expect(!known(SAMPLE_HOST_CPU_STEAL), "\"%s\"", bad[i]);
		cr_expect(!known(SAMPLE_HOST_CPU_TOTAL), "\"%s\"", bad[i]);
		cr_expect(known(SAMPLE_HOST_NIC_PACKETS));
	}
	put("/proc/stat", "cpu  101 10 50 800 20 5 5 10\n");
	proc_source_read(source, S(3), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_CPU_BUSY), 1);
}

Test(proc_source, files_that_are_missing_clear_only_their_bits)
{
	struct proc_source *other;

	remove_tree("/proc/net/softnet_stat");
	cr_assert_eq(proc_source_new(root, &other), 0);
	proc_source_read(other, S(1), &sample);
	cr_expect(!known(SAMPLE_HOST_SQUEEZED));
	cr_expect(!known(SAMPLE_HOST_NIC_DROPS));	/* a part of it is missing: not a smaller number */
	cr_expect(known(SAMPLE_HOST_NIC_PACKETS));
	cr_expect(known(SAMPLE_HOST_CPU_BUSY));
	put("/proc/net/softnet_stat", SOFTNET_0);
	proc_source_read(other, S(2), &sample);
	cr_expect(known(SAMPLE_HOST_SQUEEZED));
	proc_source_free(other);

	remove_tree("/sys");
	cr_assert_eq(proc_source_new(root, &other), 0);
	proc_source_read(other, S(1), &sample);
	cr_expect(!known(SAMPLE_HOST_NIC_PACKETS));
	cr_expect(!known(SAMPLE_HOST_NIC_DROPS));
	cr_expect(known(SAMPLE_HOST_SQUEEZED));
	proc_source_free(other);
}

Test(proc_source, softnet_columns_are_hex_and_cpus_come_and_go)
{
	proc_source_read(source, S(1), &sample);
	put("/proc/net/softnet_stat", "00000010 00000012 0000000d 0 0 0 0 0 0 0 0 0 00000000\n"
				      "00000010 00000001 00000001 0 0 0 0 0 0 0 0 0 00000001\n");
	proc_source_read(source, S(2), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_DROPS), 0x10 + 1);
	cr_expect_eq(counter(SAMPLE_HOST_SQUEEZED), 10);
	/* CPU 0 is taken offline: its line goes, what it had stays, and CPU 1 is still CPU 1 */
	put("/proc/net/softnet_stat", "00000010 00000003 00000001 0 0 0 0 0 0 0 0 0 00000001\n");
	proc_source_read(source, S(3), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_DROPS), 0x10 + 3);
	/* and back, with CPU 2 new: a new line is a baseline */
	put("/proc/net/softnet_stat", "00000010 00000013 0000000d 0 0 0 0 0 0 0 0 0 00000000\n"
				      "00000010 00000003 00000001 0 0 0 0 0 0 0 0 0 00000001\n"
				      "00000010 0000ffff 00000001 0 0 0 0 0 0 0 0 0 00000002\n");
	proc_source_read(source, S(4), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_DROPS), 0x10 + 3 + 1);
}

Test(proc_source, softnet_without_a_cpu_column_counts_lines)
{
	put("/proc/net/softnet_stat", "00000010 00000001 00000000 0 0 0 0 0 0 0 0\n00000010 00000001 00000000 0 0 0 0 0 0 0 0\n");
	proc_source_read(source, S(1), &sample);
	put("/proc/net/softnet_stat", "00000010 00000002 00000000 0 0 0 0 0 0 0 0\n00000010 00000005 00000002 0 0 0 0 0 0 0 0\n");
	proc_source_read(source, S(2), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_DROPS), 5);
	cr_expect_eq(counter(SAMPLE_HOST_SQUEEZED), 2);
}

Test(proc_source, softnet_garbage_is_unknown)
{
	static const char *const bad[] = { "", "\n\n\n", "zz zz zz\n", "1 2\n",
					   "1 2 3 0 0 0 0 0 0 0 0 0 ffffffff\n", "123456789abcdef012 1 1\n" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put("/proc/net/softnet_stat", bad[i]);
		proc_source_read(source, S(1), &sample);
		cr_expect(!known(SAMPLE_HOST_SQUEEZED), "\"%s\"", bad[i]);
		cr_expect(!known(SAMPLE_HOST_NIC_DROPS), "\"%s\"", bad[i]);
	}
}

Test(proc_source, three_hundred_and_twenty_cpus)
{
	char *text = calloc(320, 128);
	size_t n = 0;

	for (int round = 0; round < 2; round++) {
		n = 0;
		for (int cpu = 0; cpu < 320; cpu++)
			n += (size_t)snprintf(text + n, 128, "%08x %08x %08x %08x 0 0 0 0 0 0 0 0 %08x 00000000 00000000\n", 1,
					      7 + round, cpu * round, 0, cpu);
		put("/proc/net/softnet_stat", text);
		proc_source_read(source, S(1 + round), &sample);
	}
	cr_expect_eq(counter(SAMPLE_HOST_NIC_DROPS), 320);
	cr_expect_eq(counter(SAMPLE_HOST_SQUEEZED), 319 * 320 / 2);
	free(text);
}

Test(proc_source, cards_without_hardware_are_not_counted)
{
	put_card("veth0", "0\n", "0\n", "0\n");
	remove_tree("/sys/class/net/veth0/device");
	put_card("lo", "0\n", "0\n", "0\n");
	proc_source_read(source, S(1), &sample);
	put_card("eth0", "6\n", "3\n", "1100\n");
	put("/sys/class/net/veth0/statistics/rx_packets", "500\n");
	put("/sys/class/net/lo/statistics/rx_packets", "500\n");
	proc_source_read(source, S(2), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_PACKETS), 100);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_DROPS), 3);
}

Test(proc_source, a_card_that_goes_keeps_its_counts_and_a_new_one_starts_from_where_it_is)
{
	proc_source_read(source, S(1), &sample);
	put("/sys/class/net/eth0/statistics/rx_packets", "1500\n");
	proc_source_read(source, S(2), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_PACKETS), 500);
	remove_tree("/sys/class/net/eth0");
	put_card("eth1", "0\n", "0\n", "1000000\n");
	proc_source_read(source, S(10), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_PACKETS), 500);
	put("/sys/class/net/eth1/statistics/rx_packets", "1000001\n");
	proc_source_read(source, S(11), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_PACKETS), 501);
	put("/sys/class/net/eth1/statistics/rx_packets", "3\n");	/* driver reset */
	proc_source_read(source, S(12), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_PACKETS), 501);
	put("/sys/class/net/eth1/statistics/rx_packets", "8\n");
	proc_source_read(source, S(13), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_PACKETS), 506);
}

Test(proc_source, cards_are_listed_anew_only_every_few_seconds)
{
	proc_source_read(source, S(1), &sample);
	put_card("eth1", "0\n", "0\n", "10\n");
	proc_source_read(source, S(2), &sample);	/* not seen yet: no baseline */
	put("/sys/class/net/eth1/statistics/rx_packets", "20\n");
	proc_source_read(source, S(6), &sample);	/* seen: baseline 20 */
	put("/sys/class/net/eth1/statistics/rx_packets", "25\n");
	proc_source_read(source, S(7), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_PACKETS), 5);
}

Test(proc_source, a_card_with_unreadable_counters_adds_nothing)
{
	proc_source_read(source, S(1), &sample);
	put("/sys/class/net/eth0/statistics/rx_packets", "many\n");
	proc_source_read(source, S(2), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_PACKETS), 0);
	put("/sys/class/net/eth0/statistics/rx_packets", "1001\n");
	proc_source_read(source, S(3), &sample);
	cr_expect_eq(counter(SAMPLE_HOST_NIC_PACKETS), 1);
}

Test(proc_source, own_memory_and_cpu)
{
	struct proc_self self;
	volatile unsigned int spin = 0;

	proc_source_self(source, S(1), &self);
	cr_expect(self.rss_known);
	cr_expect_eq(self.rss_anon_bytes, 1234 * 1024);
	cr_expect(!self.cpu_known);
	while (spin < 2000000)
		spin++;
	proc_source_self(source, S(1) + S(1) / 2, &self);
	cr_expect(!self.cpu_known, "half a second is too short");
	proc_source_self(source, S(2), &self);
	cr_expect(self.cpu_known);
	cr_expect_gt(self.cpu_share, 0.0);
	cr_expect_lt(self.cpu_share, 1.0);
	put("/proc/self/status", "Name:\tRssAnon\nVmRSS:\t 1 kB\n");
	proc_source_self(source, S(3), &self);
	cr_expect(!self.rss_known);
}

Test(proc_source, this_host_can_be_read)
{
	struct proc_source *host;
	struct proc_self self;

	cr_assert_eq(proc_source_new(NULL, &host), 0);
	proc_source_read(host, S(1), &sample);
	cr_expect(known(SAMPLE_HOST_CPU_BUSY));
	cr_expect(known(SAMPLE_HOST_CPU_TOTAL));
	proc_source_self(host, S(1), &self);
	cr_expect(self.rss_known);
	cr_expect_gt(self.rss_anon_bytes, 10000);
	proc_source_free(host);
}
