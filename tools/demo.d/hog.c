/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hog.c - burns every CPU that it may use: --per-cpu threads pinned to each. Dies with its parent: a killed demo must
 * not leave a host whose CPUs are all busy. */
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "rig.h"

static void *burn(void *userdata)
{
	volatile uint64_t sink = 0;

	rig_pin((int)(intptr_t)userdata);
	for (;;)
		sink = sink * 2862933555777941757ULL + 3037000493ULL;
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "per-cpu", required_argument, NULL, 'n' }, { 0 } };
	long per_cpu = 2;
	cpu_set_t allowed;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o != 'n') {
			fprintf(stderr, "usage: %s [--per-cpu N]\n", argv[0]);
			return 2;
		}
		per_cpu = rig_number("--per-cpu", optarg, 1, 64);
	}
	rig_die_with_parent();
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		rig_die("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		for (long i = 0; CPU_ISSET(cpu, &allowed) && i < per_cpu; i++) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, burn, (void *)(intptr_t)cpu))
				rig_die("pthread_create");
		}
	}
	pause();
	return 0;
}
