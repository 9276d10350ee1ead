/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cost.c PID SECONDS - what a BPF program's owner costs: the CPU time of its BPF programs, by the kernel's own count,
 * and of the process itself.
 *
 * The programs are those that the process holds descriptors of (/proc/PID/fdinfo), so no other tool's are counted. The
 * kernel counts run time only while somebody asks (BPF_ENABLE_STATS); that ends with this program, the sysctl is not touched.
 * Each count takes two clock reads around the program, part of which is in the figure: it is an upper bound. */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rig.h"

#define PROGS 64

struct cost { uint64_t bpf_ns, bpf_runs, process_ns; };

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
	if (!after || sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &ticks_user, &ticks_system) != 2)
		rig_die("stat");
	return (ticks_user + ticks_system) * (RIG_NS / (uint64_t)sysconf(_SC_CLK_TCK));
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
			c.bpf_ns += info.run_time_ns;
			c.bpf_runs += info.run_cnt;
		}
		close(fd);
	}
	return c;
}

int main(int argc, char **argv)
{
	uint32_t ids[PROGS];
	struct cost before, after;
	unsigned int count;
	uint64_t start_ns;
	double wall_ns;
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
	start_ns = rig_now();
	before = read_cost(argv[1], ids, count);
	sleep((unsigned int)seconds);
	after = read_cost(argv[1], ids, count);
	wall_ns = (double)(rig_now() - start_ns);
	printf("programs=%u runs_per_s=%.0f bpf_share=%.6f process_share=%.6f\n", count,
	       (double)(after.bpf_runs - before.bpf_runs) * 1e9 / wall_ns,
	       (double)(after.bpf_ns - before.bpf_ns) / wall_ns,
	       (double)(after.process_ns - before.process_ns) / wall_ns);
	return 0;
}
