/* SPDX-License-Identifier: GPL-2.0-or-later */
/* expr.h - rule expressions: text to a checked program, program to true, false or unknown. Layer: decide (pure).
 *
 * Grammar:  or, and, not, < <= > >= == !=, + - * /, known(term), (...), quantities with units, $param, terms
 *           signal[.stat][window] and signal.over(20ms)[window]. Precedence as in C, "not" binds like unary.
 *           Dimensions are checked when parsed: dwell.p99 > 5% is an error.
 * Logic:    Kleene: true or unknown = true, false and unknown = false, everything else with unknown is unknown.
 *           Arithmetic with an unknown, and a division by zero, is unknown.
 * Ownership: a program is plain data inside struct expr; it points to nothing outside itself. */
#ifndef DWELLD_EXPR_H
#define DWELLD_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "signal.h"

#define EXPR_OPS_MAX 96
#define EXPR_TEXT_MAX 512
#define EXPR_PARAM_NAME 32
#define EXPR_PARAMS_MAX 8	/* distinct $params in one expression */

enum expr_op_kind {
	EXPR_NUMBER, EXPR_PARAM, EXPR_TERM, EXPR_KNOWN, EXPR_OR, EXPR_AND, EXPR_NOT, EXPR_LT, EXPR_LE, EXPR_GT, EXPR_GE,
	EXPR_EQ, EXPR_NE, EXPR_ADD, EXPR_SUB, EXPR_MUL, EXPR_DIV, EXPR_NEG
};

struct expr_term {
	enum signal_id signal;
	enum signal_stat stat;
	uint64_t window_ns;	/* default filled in */
	double arg;		/* over(x) in ns; for over($slow) see param */
	int8_t arg_param;	/* index into params, or -1 */
};

struct expr_op {
	enum expr_op_kind kind;
	int8_t param;		/* EXPR_PARAM: index into params */
	uint16_t column;	/* 1-based, for messages */
	double number;		/* EXPR_NUMBER */
	enum unit_dim dim;	/* EXPR_NUMBER: its dimension */
	struct expr_term term;	/* EXPR_TERM, EXPR_KNOWN */
};

struct expr {
	char text[EXPR_TEXT_MAX];	/* as written */
	struct expr_op op[EXPR_OPS_MAX];	/* postfix */
	uint16_t op_count;
	char param[EXPR_PARAMS_MAX][EXPR_PARAM_NAME];	/* names without $ */
	uint8_t param_count;
};

struct expr_error {
	unsigned int column;	/* 1-based */
	char text[256];		/* what was expected, with a suggestion where there is one */
};

/* 0, or -EINVAL with *ret_error filled. The result must be a truth value. */
int expr_parse(const char *text, struct expr *ret, struct expr_error *ret_error);
/* The dimension check again with the dimensions of the $params known (expr_parse takes them for whatever fits). false
 * from param: unknown name, an error here. param NULL: as expr_parse does. */
typedef bool (*expr_param_dim_fn)(const void *context, const char *name, enum unit_dim *ret_dim);
int expr_check(const struct expr *e, expr_param_dim_fn param, const void *context, struct expr_error *ret_error);
/* The longest window that the program reads; 0 when it reads no windowed term. */
uint64_t expr_longest_window_ns(const struct expr *e);

enum tri { TRI_FALSE, TRI_TRUE, TRI_UNKNOWN };
enum value_why { VALUE_OK, VALUE_FEW, VALUE_MISSING, VALUE_GAP, VALUE_NEVER };

/* A number or the reason why there is none. FEW: have of need samples (number still holds what the few say, if have > 0).
 * MISSING: no probe. GAP: window not filled since start, gap or counter reset. NEVER: nothing to measure (no RTP, no
 * datagram ever). */
struct value {
	enum value_why why;
	double number;
	uint64_t have, need;
};

/* How the caller answers terms and params. need_override: samples needed by statistic, 0 = default. */
struct expr_env {
	const void *context;
	struct value (*term)(const void *context, const struct expr_term *term, double over_arg,
			     const uint32_t need_override[STAT_ID_COUNT]);
	bool (*param)(const void *context, const char *name, double *ret_value);
	const uint32_t *need_override;	/* STAT_ID_COUNT entries, or NULL */
};

struct expr_result {
	enum tri truth;
	enum tri lenient;	/* truth if too few samples were enough: false here and unknown above means idle */
	bool few, missing, gap, never;	/* reasons met among the terms that were unknown */
	bool na;		/* can be neither true nor false for good: what it needs was NEVER there */
	uint64_t have, need;	/* of the worst term with too few samples */
	enum signal_id missing_signal;	/* valid when missing */
};
struct expr_result expr_eval(const struct expr *e, const struct expr_env *env);

/* For evidence and thresholds: every comparison "term op constant" of the program, left to right. */
struct expr_comparison { struct expr_term term; enum expr_op_kind op; double threshold; bool threshold_known; };
size_t expr_comparisons(const struct expr *e, const struct expr_env *env, struct expr_comparison *ret, size_t max);
/* Dimension of a term's value. */
enum unit_dim expr_term_dim(const struct expr_term *t);
/* "dwell.p99[3s]"; the default window is left out. Returns buf. */
char *expr_term_format(const struct expr_term *t, double over_arg, char *buf, size_t size);
#endif
