/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cost.c PID SECONDS - what a BPF program's owner costs: the CPU time of its BPF programs, by the kernel's own count,
 * and of the process itself.
 *
 * The programs are those that the process holds descriptors of (/proc/PID/fdinfo), so no other tool's are counted.
 * The kernel counts run time only while somebody asks (BPF_ENABLE_STATS); that ends with this program, the sysctl is
 * not touched. Each count reads the clock before and after the program and so measures itself too: an empty program
 * is counted in the same way, and what it seems to cost is taken off each run. Three sums: dwell (enqueue and read of
 * each packet, what the published figure covers), runq (at every context switch of the host), other (RTP, drops,
 * softirq). */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rig.h"

#define PROGS 64

#define EMPTY_RUNS 200000

enum kind { KIND_DWELL, KIND_RUNQ, KIND_OTHER, KIND_COUNT };
struct cost { uint64_t bpf_ns[KIND_COUNT], bpf_runs[KIND_COUNT], process_ns; };

static unsigned int program_ids(const char *pid, uint32_t ids[PROGS])
{
	unsigned int count = 0;
	struct dirent *entry;
	char path[300];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo", pid);
	dir = opendir(path);
	if (!dir)
		rig_die(path);
	while ((entry = readdir(dir)) && count < PROGS) {
		char line[128];
		bool known = false;
		unsigned int id;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%s/fdinfo/%.20s", pid, entry->d_name);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f)) {
			if (sscanf(line, "prog_id: %u", &id) != 1)
				continue;
			for (unsigned int i = 0; i < count; i++)	/* a link and its program name the same id */
				known |= ids[i] == id;
			if (!known)
				ids[count++] = id;
		}
		if (f)
			fclose(f);
	}
	closedir(dir);
	return count;
}

static uint64_t process_ns(const char *pid)
{
	unsigned long long ticks_user = 0, ticks_system = 0;
	char path[64], line[1024], *after;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		rig_die(path);
	fclose(f);
	after = strrchr(line, ')');	/* the name may hold anything */
	if (!after || sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &ticks_user,
			     &ticks_system) != 2)
		rig_die("stat");
	return (ticks_user + ticks_system) * (RIG_NS / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* What the kernel's count says of a program that does nothing, in ns a run. */
static double empty_ns(void)
{
	const struct bpf_insn nothing[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
					    { .code = BPF_JMP | BPF_EXIT } };
	uint8_t packet[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = packet, .data_size_in = sizeof(packet), .repeat = EMPTY_RUNS);
	struct bpf_prog_info info = { 0 };
	uint32_t length = sizeof(info);
	const int fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "demo_empty", "GPL", nothing, 2, NULL);

	if (fd < 0 || bpf_prog_test_run_opts(fd, &run) < 0 || bpf_obj_get_info_by_fd(fd, &info, &length) < 0)
		rig_die("empty program");
	close(fd);
	return info.run_cnt ? (double)info.run_time_ns / (double)info.run_cnt : 0;
}

static struct cost read_cost(const char *pid, const uint32_t *ids, unsigned int count)
{
	struct cost c = { .process_ns = process_ns(pid) };

	for (unsigned int i = 0; i < count; i++) {
		struct bpf_prog_info info = { 0 };
		uint32_t length = sizeof(info);
		const int fd = bpf_prog_get_fd_by_id(ids[i]);

		if (fd < 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &length) == 0) {
			const enum kind kind = strncmp(info.name, "dwell_", 6) == 0 ? KIND_DWELL :
					       strncmp(info.name, "runq_", 5) == 0 ? KIND_RUNQ : KIND_OTHER;

			c.bpf_ns[kind] += info.run_time_ns;
			c.bpf_runs[kind] += info.run_cnt;
		}
		close(fd);
	}
	return c;
}

/* share of a core, and runs per second, of one kind between two readings wall_ns apart */
static void print_kind(const char *name, const struct cost d[2], enum kind kind, const double scale[2])
{
	const double runs = (double)(d[1].bpf_runs[kind] - d[0].bpf_runs[kind]);
	const double ns = (double)(d[1].bpf_ns[kind] - d[0].bpf_ns[kind]), net_ns = ns - runs * scale[1];

	printf("%s_share=%.6f %s_runs_per_s=%.0f %s_run_ns=%.0f ", name, (net_ns > 0 ? net_ns : 0) / scale[0], name,
	       runs * 1e9 / scale[0], name, runs > 0 ? ns / runs - scale[1] : 0);
}

int main(int argc, char **argv)
{
	uint32_t ids[PROGS];
	struct cost reading[2];
	unsigned int count;
	uint64_t start_ns;
	double scale[2];	/* wall time, cost of counting one run; ns */
	long seconds;

	if (argc != 3) {
		fprintf(stderr, "usage: %s PID SECONDS\n", argv[0]);
		return 2;
	}
	seconds = rig_number("SECONDS", argv[2], 1, 600);
	count = program_ids(argv[1], ids);
	if (count == 0) {
		fprintf(stderr, "process %s holds no BPF program\n", argv[1]);
		return 1;
	}
	if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
		rig_die("BPF_ENABLE_STATS");
	scale[1] = empty_ns();
	start_ns = rig_now();
	reading[0] = read_cost(argv[1], ids, count);
	sleep((unsigned int)seconds);
	reading[1] = read_cost(argv[1], ids, count);
	scale[0] = (double)(rig_now() - start_ns);
	print_kind("dwell", reading, KIND_DWELL, scale);
	print_kind("runq", reading, KIND_RUNQ, scale);
	print_kind("other", reading, KIND_OTHER, scale);
	printf("counting_ns=%.0f process_share=%.6f\n", scale[1],
	       (double)(reading[1].process_ns - reading[0].process_ns) / scale[0]);
	return 0;
}
