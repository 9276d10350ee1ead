/* SPDX-License-Identifier: GPL-2.0-or-later */
/* registry.c - the registry of signals and statistics as lines of words, for the comparison with dwelld-signals(7). */
#include <stdio.h>

#include "decide/signal.h"

static const char *const kinds[] = {
	[SIGNAL_DISTRIBUTION] = "distribution", [SIGNAL_RATIO] = "ratio", [SIGNAL_COUNTER] = "counter", [SIGNAL_GAUGE] = "gauge",
};
static const char *const dims[] = {
	[UNIT_NONE] = "none", [UNIT_TIME] = "time", [UNIT_RATIO] = "ratio", [UNIT_RATE] = "rate", [UNIT_BYTES] = "bytes",
};

int main(void)
{
	for (int i = 0; i < SIGNAL_ID_COUNT; i++) {
		const struct signal_info *s = &signal_table[i];

		printf("signal %s %s %s %s %s", s->name, kinds[s->kind], s->scope == SIGNAL_OF_HOST ? "host" : "target",
		       dims[s->dim], s->probe ? s->probe : "files");
		for (int k = STAT_BARE + 1; k < STAT_ID_COUNT; k++)
			if (s->stats & (1U << k))
				printf(" %s", signal_stats[k].name);
		putchar('\n');
	}
	for (int i = STAT_BARE + 1; i < STAT_ID_COUNT; i++)
		printf("stat %s %u %s\n", signal_stats[i].name, signal_stats[i].need, signal_stats[i].help);
	return 0;
}
