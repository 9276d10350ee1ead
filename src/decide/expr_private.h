/* SPDX-License-Identifier: GPL-2.0-or-later */
/* expr_private.h - shared by expr.c, expr_parse.c and expr_check.c only. */
#ifndef DWELLD_EXPR_PRIVATE_H
#define DWELLD_EXPR_PRIVATE_H

#include "expr.h"

/* Fill *error; returns -EINVAL always. Control bytes of hostile text become '?'. */
int expr_fail(struct expr_error *error, unsigned int column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* "dwell.worst.p99" to signal and stat of *term; planned and unknown names are refused by name. */
int expr_term_resolve(const char *name, unsigned int column, struct expr_term *term, struct expr_error *error);
#endif
