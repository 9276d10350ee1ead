/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host.h"

#include <stdio.h>
#include <string.h>

void host_cpu_model(char *buf, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(buf, size, "unknown CPU");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "model name", 10) || !strchr(line, ':'))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(buf, size, "%s", strchr(line, ':') + 2);
		break;
	}
	if (f)
		fclose(f);
}

void host_load_begin(struct host_load *ret)
{
	unsigned long long t[8] = { 0 };
	FILE *f = fopen("/proc/stat", "re");

	*ret = (struct host_load){ 0 };
	if (!f)
		return;
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) == 8) {
		for (int i = 0; i < 8; i++)
			ret->total += t[i];
		ret->idle = t[3] + t[4];
		ret->steal = t[7];
	}
	fclose(f);
}

void host_load_print(const struct host_load *begin, unsigned int seconds)
{
	struct host_load now;
	double total;

	host_load_begin(&now);
	total = (double)(now.total - begin->total);
	if (total > 0)
		printf("  took %u s; all CPUs meanwhile %.0f %% busy (this included), %.1f %% stolen by the hypervisor\n", seconds,
		       100.0 * (1.0 - (double)(now.idle - begin->idle) / total), 100.0 * (double)(now.steal - begin->steal) / total);
}
