/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <string.h>

#include "decide/signal.h"

Test(signal, every_signal_is_described_once)
{
	for (int i = 0; i < SIGNAL_ID_COUNT; i++) {
		const struct signal_info *s = &signal_table[i];

		cr_assert(s->name && s->name[0], "signal %d has no name", i);
		cr_expect(s->help && s->help[0] && !strchr(s->help, '\n'), "%s", s->name);
		cr_expect(s->stats && !(s->stats >> STAT_ID_COUNT), "%s", s->name);
		cr_expect(!signal_is_planned(s->name), "%s", s->name);
		for (int k = 0; k < i; k++)
			cr_expect_str_neq(s->name, signal_table[k].name);
	}
	for (int i = 0; i < STAT_ID_COUNT; i++)
		cr_expect(signal_stats[i].name && signal_stats[i].help, "statistic %d", i);
}

Test(signal, kinds_have_the_statistics_of_the_design)
{
	const uint32_t distribution = 1U << STAT_P50 | 1U << STAT_P90 | 1U << STAT_P99 | 1U << STAT_P999 |
				      1U << STAT_MAX | 1U << STAT_MEAN | 1U << STAT_RATE | 1U << STAT_COUNT | 1U << STAT_OVER;
	const uint32_t counter = 1U << STAT_RATE | 1U << STAT_COUNT;

	cr_expect_eq(signal_table[SIGNAL_DWELL].stats, distribution);
	cr_expect_eq(signal_table[SIGNAL_SOFTIRQ_WAIT].stats, distribution);
	cr_expect_eq(signal_table[SIGNAL_DWELL_OLDEST].stats, 1U << STAT_BARE);
	cr_expect_eq(signal_table[SIGNAL_DWELL_WORST].stats, 1U << STAT_P99);
	cr_expect_eq(signal_table[SIGNAL_DROPS_RCVBUF].stats, counter | 1U << STAT_SHARE);
	for (int i = 0; i < SIGNAL_ID_COUNT; i++) {
		const struct signal_info *s = &signal_table[i];

		if (s->kind == SIGNAL_RATIO || s->kind == SIGNAL_GAUGE)
			cr_expect_eq(s->stats, 1U << STAT_BARE, "%s", s->name);
		if (s->kind == SIGNAL_COUNTER)
			cr_expect_eq(s->stats & counter, counter, "%s", s->name);
		if (s->kind == SIGNAL_RATIO)
			cr_expect_eq(s->dim, UNIT_RATIO, "%s", s->name);
	}
}

Test(signal, samples_needed_by_default)
{
	static const uint32_t need[STAT_ID_COUNT] = { [STAT_P50] = 20, [STAT_P90] = 50, [STAT_P99] = 100,
		[STAT_P999] = 1000,
						      [STAT_OVER] = 50, [STAT_MEAN] = 20 };

	for (int i = 0; i < STAT_ID_COUNT; i++)
		cr_expect_eq(signal_stats[i].need, need[i], "%s", signal_stats[i].name);
}

Test(signal, planned_names_are_known_as_such)
{
	static const char *const yes[] = { "dwell.share.runq", "dwell.share.handoff", "irq2app",
		"irq2app.p99", "runq.by", "rtcp.nack",
					   "drops.reason[\"X\"]", "cpu.throttled", "cpu.psi" };
	static const char *const no[] = { "", "dwell", "dwell.shared", "rtp.loss", "cpu", "cpu.psi2",
		"irq2apps", "drops" };

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		cr_expect(signal_is_planned(yes[i]), "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		cr_expect(!signal_is_planned(no[i]), "%s", no[i]);
}

Test(signal, typing_errors_get_a_suggestion)
{
	char name[200];

	cr_expect_str_eq(signal_suggest("dwel"), "dwell");
	cr_expect_str_eq(signal_suggest("rtp.los"), "rtp.loss");
	cr_expect_str_eq(signal_suggest("rtp.badstreams"), "rtp.bad_streams");
	cr_expect_str_eq(signal_suggest("host.cpubusy"), "host.cpu.busy");
	cr_expect_str_eq(signal_suggest("queue.rcvbuf"), "queue.rcvbuf");
	cr_expect_null(signal_suggest("temperature"));
	cr_expect_null(signal_suggest(""));
	memset(name, 'd', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	cr_expect_null(signal_suggest(name));
}
