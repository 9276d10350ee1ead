/* SPDX-License-Identifier: GPL-2.0-or-later */
/* units.h - text to and from quantities: durations, percentages, rates, bytes. Layer: decide.
 *
 * Units:  time is nanoseconds; a percentage is a ratio (30% = 0.3); a rate is per second; sizes are bytes.
 * Errors: -EINVAL not a quantity, -ERANGE overflow or negative. Outputs are written only on success. */
#ifndef DWELLD_UNITS_H
#define DWELLD_UNITS_H

#include <stddef.h>
#include <stdint.h>

enum unit_dim { UNIT_NONE, UNIT_TIME, UNIT_RATIO, UNIT_RATE, UNIT_BYTES };

/* "30s", "1.5ms", "2 h": ns us ms s m h d. A bare number is refused. */
int units_parse_duration(const char *text, uint64_t *ret_ns);
/* Any quantity of the expression language: 10ms, 30%, 5/s, 64KiB, 42. */
int units_parse_quantity(const char *text, double *ret_value, enum unit_dim *ret_dim);
/* "10.2ms", "33us", "1.5h": three significant digits. Returns buf. */
char *units_format_ns(uint64_t ns, char *buf, size_t size);
/* By dimension: "10.2ms", "93.1%", "12.5/s", "208KiB", "42". Returns buf. */
char *units_format(double value, enum unit_dim dim, char *buf, size_t size);
/* Exact text that units_parse_duration() reads back to the same number: "250ms", "10s". Returns buf. */
char *units_format_duration_exact(uint64_t ns, char *buf, size_t size);
#endif
