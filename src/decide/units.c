/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "units.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	enum unit_dim dim;
	uint64_t times, per;	/* value = number * times / per */
};

static const struct unit units[] = {
	{ "ns", UNIT_TIME, 1, 1 },
	{ "us", UNIT_TIME, 1000, 1 },
	{ "ms", UNIT_TIME, 1000000, 1 },
	{ "s", UNIT_TIME, 1000000000, 1 },
	{ "m", UNIT_TIME, 60 * 1000000000ULL, 1 },
	{ "h", UNIT_TIME, 3600 * 1000000000ULL, 1 },
	{ "d", UNIT_TIME, 86400 * 1000000000ULL, 1 },
	{ "%", UNIT_RATIO, 1, 100 },
	{ "/s", UNIT_RATE, 1, 1 },
	{ "B", UNIT_BYTES, 1, 1 },
	{ "KiB", UNIT_BYTES, 1 << 10, 1 },
	{ "MiB", UNIT_BYTES, 1 << 20, 1 },
	{ "GiB", UNIT_BYTES, 1 << 30, 1 },
	{ "", UNIT_NONE, 1, 1 },
};

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))
#define TIME_UNITS 7	/* the first ones, ascending */

/* A decimal number as mantissa / scale, so that durations stay exact. */
struct decimal { uint64_t mantissa, scale; };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static bool decimal_push(struct decimal *d, char digit)
{
	return !__builtin_mul_overflow(d->mantissa, 10, &d->mantissa) &&
	       !__builtin_add_overflow(d->mantissa, (uint64_t)(digit - '0'), &d->mantissa);
}

/* Not strtod(): that follows the locale, takes hex, "inf" and exponents, and rounds. */
static int decimal_parse(const char **text, struct decimal *ret)
{
	struct decimal d = { 0, 1 };
	const char *p = *text;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++)
		if (!decimal_push(&d, *p))
			return -ERANGE;
	if (*p == '.') {
		p++;
		if (!is_digit(*p))
			return -EINVAL;
		for (; is_digit(*p); p++) {
			/* digits past what 64 bits hold change nothing that anybody can measure */
			if (d.mantissa > UINT64_MAX / 100 || d.scale > UINT64_MAX / 100)
				continue;
			decimal_push(&d, *p);
			d.scale *= 10;
		}
	}
	*text = p;
	*ret = d;
	return 0;
}

static const struct unit *unit_find(const char *text)
{
	size_t length = strlen(text);
	size_t i;

	while (length && is_space(text[length - 1]))
		length--;
	for (i = 0; i < UNIT_COUNT; i++)
		if (strlen(units[i].name) == length && !strncmp(units[i].name, text, length))
			return &units[i];
	return NULL;
}

static int parse(const char *text, struct decimal *ret_number, const struct unit **ret_unit)
{
	int r;

	if (!text)
		return -EINVAL;
	while (is_space(*text))
		text++;
	if (*text == '-' && is_digit(text[1]))
		return -ERANGE;
	r = decimal_parse(&text, ret_number);
	if (r < 0)
		return r;
	while (is_space(*text))
		text++;
	*ret_unit = unit_find(text);
	return *ret_unit ? 0 : -EINVAL;
}

int units_parse_duration(const char *text, uint64_t *ret_ns)
{
	const struct unit *unit;
	struct decimal number;
	unsigned __int128 ns;
	int r;

	r = parse(text, &number, &unit);
	if (r < 0)
		return r;
	if (unit->dim != UNIT_TIME)
		return -EINVAL;
	ns = (unsigned __int128)number.mantissa * unit->times / number.scale;
	if (ns > UINT64_MAX)
		return -ERANGE;
	*ret_ns = (uint64_t)ns;
	return 0;
}

int units_parse_quantity(const char *text, double *ret_value, enum unit_dim *ret_dim)
{
	const struct unit *unit;
	struct decimal number;
	double value;
	int r;

	r = parse(text, &number, &unit);
	if (r < 0)
		return r;
	/* one rounding where possible: 0.1% is the double nearest to 0.001 */
	value = (double)number.mantissa * (double)unit->times / ((double)number.scale * (double)unit->per);
	if (unit->dim == UNIT_TIME && value >= (double)UINT64_MAX)
		return -ERANGE;
	*ret_value = value;
	*ret_dim = unit->dim;
	return 0;
}

/* "10.20" to "10.2", "33.0" to "33". */
static void trim_zeros(char *text)
{
	char *end = text + strlen(text);

	if (!strchr(text, '.'))
		return;
	while (end[-1] == '0')
		*--end = '\0';
	if (end[-1] == '.')
		end[-1] = '\0';
}

char *units_format_ns(uint64_t ns, char *buf, size_t size)
{
	unsigned __int128 shown = 0;
	char number[32] = "0";
	unsigned int i, scale = 1;

	for (i = 0; i < TIME_UNITS; i++) {
		const uint64_t unit = units[i].times;
		const uint64_t next = i + 1 < TIME_UNITS ? units[i + 1].times / unit : UINT64_MAX;

		if (i == 0 || ns >= 100 * (unsigned __int128)unit)
			scale = 1;
		else
			scale = ns >= 10 * (unsigned __int128)unit ? 10 : 100;
		shown = ((unsigned __int128)ns * scale + unit / 2) / unit;
		if (shown < (unsigned __int128)next * scale)	/* 999.6us is 1ms */
			break;
	}
	if (scale == 1)
		snprintf(number, sizeof(number), "%llu", (unsigned long long)shown);
	else
		snprintf(number, sizeof(number), "%llu.%0*llu", (unsigned long long)(shown / scale),
			 scale == 10 ? 1 : 2, (unsigned long long)(shown % scale));
	trim_zeros(number);
	snprintf(buf, size, "%s%s", number, units[i < TIME_UNITS ? i : TIME_UNITS - 1].name);
	return buf;
}

/* Three significant digits, but all digits before the point. */
static char *format_number(double value, char *buf, size_t size)
{
	const double a = value < 0 ? -value : value;
	int decimals = 0;
	double limit;

	for (limit = 99.95; decimals < 8 && a < limit && a > 0; limit /= 10)
		decimals++;
	snprintf(buf, size, "%.*f", decimals, value);
	trim_zeros(buf);
	if (!strcmp(buf, "-0"))
		snprintf(buf, size, "0");
	return buf;
}

static char *format_bytes(double value, char *buf, size_t size)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB" };
	unsigned int i = 0;
	char number[400];

	while (i < 3 && value >= 1023.5) {
		value /= 1024;
		i++;
	}
	snprintf(buf, size, "%s%s", format_number(value, number, sizeof(number)), names[i]);
	return buf;
}

char *units_format(double value, enum unit_dim dim, char *buf, size_t size)
{
	char number[400];	/* the longest double has 309 digits */

	if (value != value) {
		snprintf(buf, size, "-");
		return buf;
	}
	switch (dim) {
	case UNIT_TIME:
		if (value < 0)
			snprintf(buf, size, "-%s", units_format(-value, dim, number, sizeof(number)));
		else
			units_format_ns(value >= (double)UINT64_MAX ? UINT64_MAX : (uint64_t)(value + 0.5),
					buf, size);
		return buf;
	case UNIT_RATIO:
		snprintf(buf, size, "%s%%", format_number(value * 100, number, sizeof(number)));
		return buf;
	case UNIT_RATE:
		snprintf(buf, size, "%s/s", format_number(value, number, sizeof(number)));
		return buf;
	case UNIT_BYTES:
		return format_bytes(value, buf, size);
	case UNIT_NONE:
		break;
	}
	return format_number(value, buf, size);
}

char *units_format_duration_exact(uint64_t ns, char *buf, size_t size)
{
	unsigned int i = TIME_UNITS - 1;

	if (ns == 0)
		i = 3;	/* "0s" */
	while (ns % units[i].times)
		i--;
	snprintf(buf, size, "%llu%s", (unsigned long long)(ns / units[i].times), units[i].name);
	return buf;
}
