/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>

#include "decide/units.h"

static uint64_t duration(const char *text)
{
	uint64_t ns = 0;

	cr_assert_eq(units_parse_duration(text, &ns), 0, "%s", text);
	return ns;
}

Test(units, durations_are_exact)
{
	cr_expect_eq(duration("10ms"), 10000000);
	cr_expect_eq(duration("10 ms"), 10000000);
	cr_expect_eq(duration("1.5ms"), 1500000);
	cr_expect_eq(duration("2 h"), 7200000000000ULL);
	cr_expect_eq(duration("0s"), 0);
	cr_expect_eq(duration("5m"), 300000000000ULL);
	cr_expect_eq(duration("1d"), 86400000000000ULL);
	cr_expect_eq(duration("33us"), 33000);
	cr_expect_eq(duration("18446744073709551615ns"), UINT64_MAX);
	cr_expect_eq(duration("0.3333333333333333333333333333s"), 333333333);
}

Test(units, what_is_no_duration_is_refused)
{
	static const char *const bad[] = { "", " ", "10", "ms", "10ms5", "10 msec", "1e3s", "0x10s", ".5s",
		"5.s", "+5s", "10%",
					   "5/s", "inf", "1 0s", "10MS" };
	uint64_t ns = 42;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(units_parse_duration(bad[i], &ns), -EINVAL, "\"%s\"", bad[i]);
	cr_expect_eq(units_parse_duration(NULL, &ns), -EINVAL);
	cr_expect_eq(ns, 42, "written only on success");
}

Test(units, overflow_and_negative_are_refused)
{
	uint64_t ns = 42;
	enum unit_dim dim;
	double value;

	cr_expect_eq(units_parse_duration("-5s", &ns), -ERANGE);
	cr_expect_eq(units_parse_duration("18446744073709551616ns", &ns), -ERANGE);
	cr_expect_eq(units_parse_duration("18446744073709551615us", &ns), -ERANGE);
	cr_expect_eq(units_parse_duration("213504d", &ns), -ERANGE);
	cr_expect_eq(units_parse_duration("99999999999999999999999s", &ns), -ERANGE);
	cr_expect_eq(units_parse_quantity("213504d", &value, &dim), -ERANGE);
	cr_expect_eq(units_parse_quantity("-1%", &value, &dim), -ERANGE);
	cr_expect_eq(ns, 42);
}

Test(units, quantities_know_their_dimension)
{
	static const struct { const char *text; double value; enum unit_dim dim; } q[] = {
		{ "10ms", 1e7, UNIT_TIME }, { "30%", 0.3, UNIT_RATIO }, { "0.1%", 0.001, UNIT_RATIO },
		{ "5/s", 5, UNIT_RATE },
		{ "64KiB", 65536, UNIT_BYTES }, { "2 MiB", 2097152, UNIT_BYTES }, { "42", 42, UNIT_NONE },
		{ "0.5", 0.5, UNIT_NONE }, { "100 B", 100, UNIT_BYTES },
	};

	for (size_t i = 0; i < sizeof(q) / sizeof(q[0]); i++) {
		enum unit_dim dim;
		double value;

		cr_assert_eq(units_parse_quantity(q[i].text, &value, &dim), 0, "%s", q[i].text);
		cr_expect_eq(value, q[i].value, "%s", q[i].text);
		cr_expect_eq(dim, q[i].dim, "%s", q[i].text);
	}
}

Test(units, times_have_three_digits)
{
	static const struct { uint64_t ns; const char *text; } t[] = {
		{ 0, "0ns" }, { 1, "1ns" }, { 999, "999ns" }, { 1000, "1us" }, { 33000, "33us" },
		{ 33333, "33.3us" },
		{ 999499, "999us" }, { 999600, "1ms" }, { 9996000, "10ms" }, { 10200000, "10.2ms" },
		{ 99960000, "100ms" },
		{ 1500000000, "1.5s" }, { 59990000000ULL, "1m" }, { 90000000000ULL, "1.5m" },
		{ 5400000000000ULL, "1.5h" },
		{ 86400000000000ULL, "1d" }, { UINT64_MAX, "213504d" },
	};
	char buf[32];

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		cr_expect_str_eq(units_format_ns(t[i].ns, buf, sizeof(buf)), t[i].text);
}

Test(units, values_are_written_by_dimension)
{
	char buf[32];

	cr_expect_str_eq(units_format(10.2e6, UNIT_TIME, buf, sizeof(buf)), "10.2ms");
	cr_expect_str_eq(units_format(-5e6, UNIT_TIME, buf, sizeof(buf)), "-5ms");
	cr_expect_str_eq(units_format(0.931, UNIT_RATIO, buf, sizeof(buf)), "93.1%");
	cr_expect_str_eq(units_format(0, UNIT_RATIO, buf, sizeof(buf)), "0%");
	cr_expect_str_eq(units_format(0.00043219, UNIT_RATIO, buf, sizeof(buf)), "0.0432%");
	cr_expect_str_eq(units_format(1, UNIT_RATIO, buf, sizeof(buf)), "100%");
	cr_expect_str_eq(units_format(12.5, UNIT_RATE, buf, sizeof(buf)), "12.5/s");
	cr_expect_str_eq(units_format(212992, UNIT_BYTES, buf, sizeof(buf)), "208KiB");
	cr_expect_str_eq(units_format(42, UNIT_NONE, buf, sizeof(buf)), "42");
	cr_expect_str_eq(units_format(123456, UNIT_NONE, buf, sizeof(buf)), "123456");
	cr_expect_str_eq(units_format(0.0 / 0.0, UNIT_NONE, buf, sizeof(buf)), "-");
	cr_expect_str_eq(units_format(1e300, UNIT_TIME, buf, sizeof(buf)), "213504d");
}

Test(units, exact_durations_read_back)
{
	static const uint64_t ns[] = { 0, 1, 999, 250000000, 10000000000ULL, 90000000000ULL,
		3600000000000ULL, 86400000000000ULL,
				       123456789, UINT64_MAX };
	char buf[32];

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++)
		cr_expect_eq(duration(units_format_duration_exact(ns[i], buf, sizeof(buf))), ns[i], "%s",
			     buf);
	cr_expect_str_eq(units_format_duration_exact(250000000, buf, sizeof(buf)), "250ms");
	cr_expect_str_eq(units_format_duration_exact(10000000000ULL, buf, sizeof(buf)), "10s");
	cr_expect_str_eq(units_format_duration_exact(0, buf, sizeof(buf)), "0s");
}

Test(units, a_small_buffer_is_cut_and_ended)
{
	char buf[4] = "xxx";

	units_format(123456, UNIT_NONE, buf, sizeof(buf));
	cr_expect_str_eq(buf, "123");
	units_format_ns(10200000, buf, sizeof(buf));
	cr_expect_str_eq(buf, "10.");
}
