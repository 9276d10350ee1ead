/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reply.h - reading the daemon's JSON: what is not there, null or of another type is "not known", never an error.
 * Layer: ctl. Paths are dotted member names, "signals.dwell.p99_ns". */
#ifndef DWELLCTL_REPLY_H
#define DWELLCTL_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "client.h"

/* 0 and an object that the caller json_decref()s, or -EPROTO with a line in why. */
int reply_parse(const char *bytes, size_t length, struct client_why *why, json_t **ret);
/* Every string value made harmless for a terminal (text.h); do it before printing any. */
void reply_clean(json_t *value);

const json_t *reply_at(const json_t *object, const char *path);	/* NULL when not there */
bool reply_number(const json_t *object, const char *path, double *ret);
const char *reply_string(const json_t *object, const char *path);	/* "" when not known */
bool reply_is(const json_t *object, const char *path, const char *text);
bool reply_true(const json_t *object, const char *path);

/* Numbers in at most 5 columns, "-" when not known: "41ms" "1.2ms"; "9.0k"; "0.1%" "12%". Return buf. */
#define REPLY_CELL 16
char *reply_cell_ns(const json_t *object, const char *path, char buf[REPLY_CELL]);
char *reply_cell_count(const json_t *object, const char *path, char buf[REPLY_CELL]);
char *reply_cell_ratio(const json_t *object, const char *path, char buf[REPLY_CELL]);
/* Drops of a target per second, server and network together. */
char *reply_cell_drops(const json_t *target, char buf[REPLY_CELL]);
/* "dwell.worst.p99 44.1ms, dwell.max[3s] 93ms" into buf, cut at its size. Returns buf. */
char *reply_evidence(const json_t *rule, const char *separator, char *buf, size_t size);
/* "a, b, c" of an array of strings. Returns buf. */
char *reply_list(const json_t *object, const char *path, char *buf, size_t size);
/* Why a rule is unknown: "3 of 200 samples", or what the daemon says. Returns buf. */
char *reply_why(const json_t *rule, char *buf, size_t size);
#endif
