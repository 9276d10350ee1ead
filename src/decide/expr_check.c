/* SPDX-License-Identifier: GPL-2.0-or-later */
/* expr_check.c - names and dimensions of rule expressions: what a term means, and that milliseconds are never compared
 * with percent. Works on the postfix program, so that it can be repeated once the $params are known. */
#include "expr.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "expr_private.h"

/* What one value on the stack is. The first ones equal enum unit_dim. */
enum type {
	TYPE_NONE = UNIT_NONE, TYPE_TIME = UNIT_TIME, TYPE_RATIO = UNIT_RATIO, TYPE_RATE = UNIT_RATE,
	TYPE_BYTES = UNIT_BYTES,
	TYPE_PURE,	/* quotient of two like quantities: compares with 2 as with 200% */
	TYPE_ANY,	/* a $param whose dimension is not known yet */
	TYPE_TRUTH
};

static const char *type_name(enum type type)
{
	switch (type) {
	case TYPE_NONE: return "a plain number";
	case TYPE_TIME: return "a duration";
	case TYPE_RATIO: return "a percentage";
	case TYPE_RATE: return "a rate (/s)";
	case TYPE_BYTES: return "a size in bytes";
	case TYPE_PURE: return "a ratio";
	case TYPE_ANY: return "a parameter";
	case TYPE_TRUTH: return "true or false";
	}
	return "?";
}

static bool is_scalar(enum type t)
{
	return t == TYPE_NONE || t == TYPE_RATIO || t == TYPE_PURE;
}

/* Both may stand beside one another in a comparison or a sum. Writes the dimension of the sum. */
static bool types_join(enum type a, enum type b, enum type *ret)
{
	if (a == TYPE_TRUTH || b == TYPE_TRUTH)
		return false;
	if (a == b || b == TYPE_ANY || (b == TYPE_PURE && is_scalar(a))) {
		*ret = a;
		return true;
	}
	if (a == TYPE_ANY || (a == TYPE_PURE && is_scalar(b))) {
		*ret = b;
		return true;
	}
	return false;
}

static bool types_multiply(enum type a, enum type b, enum type *ret)
{
	if (a == TYPE_TRUTH || b == TYPE_TRUTH)
		return false;
	if (a == TYPE_ANY || b == TYPE_ANY)
		*ret = TYPE_ANY;
	else if (is_scalar(a))
		*ret = a == TYPE_NONE || !is_scalar(b) ? b : a;
	else if (is_scalar(b))
		*ret = a;
	else
		return false;
	return true;
}

static bool types_divide(enum type a, enum type b, enum type *ret)
{
	if (a == TYPE_TRUTH || b == TYPE_TRUTH)
		return false;
	if (a == TYPE_ANY || b == TYPE_ANY)
		*ret = TYPE_ANY;
	else if (a == b)
		*ret = a == TYPE_NONE ? TYPE_NONE : TYPE_PURE;
	else if (is_scalar(b))
		*ret = a;
	else
		return false;
	return true;
}

enum unit_dim expr_term_dim(const struct expr_term *t)
{
	/* in signal_stats, TIME means the signal's own */
	if (t->stat == STAT_BARE || signal_stats[t->stat].dim == UNIT_TIME)
		return signal_table[t->signal].dim;
	return signal_stats[t->stat].dim;
}

struct checker {
	enum type stack[EXPR_OPS_MAX];
	size_t depth;
	expr_param_dim_fn param;
	const void *context;
	struct expr_error *error;
};

static int check_param(struct checker *c, const char *name, unsigned int column, enum type *ret)
{
	enum unit_dim dim;

	*ret = TYPE_ANY;
	if (!c->param)
		return 0;
	if (!c->param(c->context, name, &dim))
		return expr_fail(c->error, column, "expected a parameter of the profile, found \"$%s\"", name);
	*ret = (enum type)dim;
	return 0;
}

static int check_binary(struct checker *c, const struct expr_op *op)
{
	const enum type a = c->stack[c->depth - 2], b = c->stack[c->depth - 1];
	enum type result = TYPE_TRUTH;
	bool fits = false;

	switch (op->kind) {
	case EXPR_OR: case EXPR_AND:
		fits = a == TYPE_TRUTH && b == TYPE_TRUTH;
		break;
	case EXPR_LT: case EXPR_LE: case EXPR_GT: case EXPR_GE: case EXPR_EQ: case EXPR_NE:
		fits = types_join(a, b, &result);
		result = TYPE_TRUTH;
		break;
	case EXPR_ADD: case EXPR_SUB:
		fits = types_join(a, b, &result);
		break;
	case EXPR_MUL:
		fits = types_multiply(a, b, &result);
		break;
	case EXPR_DIV:
		fits = types_divide(a, b, &result);
		break;
	case EXPR_NUMBER: case EXPR_PARAM: case EXPR_TERM: case EXPR_KNOWN: case EXPR_NOT: case EXPR_NEG:
		break;
	}
	if (!fits && (op->kind == EXPR_AND || op->kind == EXPR_OR))
		return expr_fail(c->error, op->column, "expected true or false on both sides, found %s and %s",
				 type_name(a), type_name(b));
	if (!fits)
		return expr_fail(c->error, op->column, "expected quantities that fit each other, found %s and %s%s",
				 type_name(a), type_name(b),
				 a == TYPE_TRUTH || b == TYPE_TRUTH ? "; parentheses may help" : "");
	c->stack[--c->depth - 1] = result;
	return 0;
}

static int check_op(struct checker *c, const struct expr *e, const struct expr_op *op)
{
	enum type *top = &c->stack[c->depth ? c->depth - 1 : 0];

	switch (op->kind) {
	case EXPR_NUMBER:
		c->stack[c->depth++] = (enum type)op->dim;
		return 0;
	case EXPR_PARAM:
		return check_param(c, e->param[op->param], op->column, &c->stack[c->depth++]);
	case EXPR_TERM: case EXPR_KNOWN:
		c->stack[c->depth++] = op->kind == EXPR_KNOWN ? TYPE_TRUTH : (enum type)expr_term_dim(&op->term);
		if (op->term.stat == STAT_OVER && op->term.arg_param >= 0) {
			enum type arg;

			if (check_param(c, e->param[op->term.arg_param], op->column, &arg) < 0)
				return -EINVAL;
			if (arg != TYPE_ANY && arg != TYPE_TIME)
				return expr_fail(c->error, op->column, "expected a duration in over(), found %s",
						 type_name(arg));
		}
		return 0;
	case EXPR_NOT:
		if (*top == TYPE_TRUTH)
			return 0;
		return expr_fail(c->error, op->column, "expected true or false after \"not\", found %s; "
				 "parentheses may help: not (a > b)", type_name(*top));
	case EXPR_NEG:
		if (*top != TYPE_TRUTH)
			return 0;
		return expr_fail(c->error, op->column, "expected a quantity after \"-\", found true or false");
	case EXPR_OR: case EXPR_AND: case EXPR_LT: case EXPR_LE: case EXPR_GT: case EXPR_GE: case EXPR_EQ: case EXPR_NE:
	case EXPR_ADD: case EXPR_SUB: case EXPR_MUL: case EXPR_DIV:
		return check_binary(c, op);
	}
	return -EINVAL;
}

int expr_check(const struct expr *e, expr_param_dim_fn param, const void *context, struct expr_error *ret_error)
{
	struct checker c = { .param = param, .context = context, .error = ret_error };
	int r;

	for (uint16_t i = 0; i < e->op_count; i++) {
		r = check_op(&c, e, &e->op[i]);
		if (r < 0)
			return r;
	}
	if (c.stack[0] != TYPE_TRUTH)
		return expr_fail(ret_error, 1, "expected a comparison, found %s", type_name(c.stack[0]));
	return 0;
}

static int signal_find(const char *name, size_t length)
{
	for (int i = 0; i < SIGNAL_ID_COUNT; i++)
		if (strlen(signal_table[i].name) == length && !strncmp(signal_table[i].name, name, length))
			return i;
	return -1;
}

/* "p50 p90 ..." of a signal. */
static const char *stats_list(enum signal_id signal, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (int i = STAT_BARE + 1; i < STAT_ID_COUNT && n < size; i++)
		if (signal_table[signal].stats & (1U << i))
			n += (size_t)snprintf(buf + n, size - n, " %s%s", signal_stats[i].name,
					      i == STAT_OVER ? "(20ms)" : "");
	return buf;
}

static int resolve_stat(const char *stat, unsigned int column, struct expr_term *term, struct expr_error *error)
{
	const struct signal_info *s = &signal_table[term->signal];
	char list[96];

	for (int i = 0; i < STAT_ID_COUNT; i++)
		if (!strcmp(signal_stats[i].name, stat) && (s->stats & (1U << i))) {
			term->stat = (enum signal_stat)i;
			return 0;
		}
	stats_list(term->signal, list, sizeof(list));
	if (!*list)
		return expr_fail(error, column, "expected nothing after \"%s\", found \".%s\"", s->name, stat);
	if (!*stat)
		return expr_fail(error, column, "expected a statistic after \"%s\": one of%s", s->name, list);
	return expr_fail(error, column, "expected a statistic of \"%s\", found \"%s\": one of%s", s->name, stat, list);
}

int expr_term_resolve(const char *name, unsigned int column, struct expr_term *term, struct expr_error *error)
{
	const size_t length = strlen(name);
	char base[96];
	const char *near;
	int id;

	/* the longest name wins: dwell.worst.p99 is not dwell with a statistic "worst.p99" */
	for (size_t n = length; n > 0; n--) {
		if (name[n] != '\0' && name[n] != '.')
			continue;
		snprintf(base, sizeof(base), "%.*s", (int)n, name);
		if (signal_is_planned(base))
			return expr_fail(error, column, "%s is not supported yet", base);
		id = signal_find(name, n);
		if (id < 0)
			continue;
		term->signal = (enum signal_id)id;
		return resolve_stat(name[n] ? name + n + 1 : "", column, term, error);
	}
	near = signal_suggest(name);
	if (!near) {
		snprintf(base, sizeof(base), "%s", name);
		if (strrchr(base, '.'))
			*strrchr(base, '.') = '\0';
		near = signal_suggest(base);
	}
	if (near)
		return expr_fail(error, column, "expected a signal, found \"%s\", did you mean \"%s\"?", name, near);
	return expr_fail(error, column, "expected a signal, found \"%s\"; dwelld-signals(7) lists them", name);
}
