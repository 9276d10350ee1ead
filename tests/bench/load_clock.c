/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "load_clock.h"

#include <errno.h>
#include <sched.h>

#include "load.h"
#include "stats.h"

uint64_t load_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

void load_median(const struct load_cost *chunk, struct load_cost *ret)
{
	double cpu[LOAD_CHUNKS], wall[LOAD_CHUNKS];
	struct stats s;

	for (unsigned int i = 0; i < LOAD_CHUNKS; i++) {
		cpu[i] = chunk[i].cpu_ns;
		wall[i] = chunk[i].wall_ns;
	}
	stats_of(cpu, LOAD_CHUNKS, &s);
	ret->cpu_ns = s.median;
	stats_of(wall, LOAD_CHUNKS, &s);
	ret->wall_ns = s.median;
}

int load_pin(void)
{
	cpu_set_t may;
	int cpu = CPU_SETSIZE - 1;

	if (sched_getaffinity(0, sizeof(may), &may) < 0)
		return -errno;
	while (cpu > 0 && !CPU_ISSET(cpu, &may))
		cpu--;
	CPU_ZERO(&may);
	CPU_SET(cpu, &may);
	return sched_setaffinity(0, sizeof(may), &may) < 0 ? -errno : cpu;
}
