/* SPDX-License-Identifier: GPL-2.0-or-later */
/* expr.c - a checked program to true, false or unknown. No NaN and no infinity ever: what has no finite number is
 * unknown. Each value is computed three times over: strictly, leniently (as if few samples were enough), and whether
 * it can apply at all. */
#include "expr.h"

#include <stdio.h>
#include <string.h>

#define NUMBER_MAX 1.7e308	/* beyond is overflow: unknown, never infinity */

/* A number or a truth on the stack. na: needs something that was never there. */
struct cell {
	bool known, lenient_known, na;
	double number, lenient;
	enum tri truth, lenient_truth;
};

static bool finite_number(double x)
{
	return x == x && x <= NUMBER_MAX && x >= -NUMBER_MAX;
}

static enum tri tri_not(enum tri a)
{
	switch (a) {
	case TRI_FALSE: return TRI_TRUE;
	case TRI_TRUE: return TRI_FALSE;
	case TRI_UNKNOWN: break;
	}
	return TRI_UNKNOWN;
}

static enum tri tri_and(enum tri a, enum tri b)
{
	if (a == TRI_FALSE || b == TRI_FALSE)
		return TRI_FALSE;
	return a == TRI_TRUE && b == TRI_TRUE ? TRI_TRUE : TRI_UNKNOWN;
}

static enum tri tri_or(enum tri a, enum tri b)
{
	return tri_not(tri_and(tri_not(a), tri_not(b)));
}

static bool compare(enum expr_op_kind kind, double a, double b)
{
	switch (kind) {
	case EXPR_LT: return a < b;
	case EXPR_LE: return a <= b;
	case EXPR_GT: return a > b;
	case EXPR_GE: return a >= b;
	case EXPR_EQ: return a >= b && a <= b;
	case EXPR_NE: return a < b || a > b;
	case EXPR_NUMBER: case EXPR_PARAM: case EXPR_TERM: case EXPR_KNOWN: case EXPR_OR: case EXPR_AND: case EXPR_NOT:
	case EXPR_ADD: case EXPR_SUB: case EXPR_MUL: case EXPR_DIV: case EXPR_NEG:
		break;
	}
	return false;
}

/* false: no finite result. */
static bool arithmetic(enum expr_op_kind kind, double a, double b, double *ret)
{
	double x = 0;

	if (kind == EXPR_DIV && !(b < 0 || b > 0))
		return false;
	if (kind == EXPR_ADD)
		x = a + b;
	else if (kind == EXPR_SUB)
		x = a - b;
	else if (kind == EXPR_MUL)
		x = a * b;
	else
		x = a / b;
	if (!finite_number(x))
		return false;
	*ret = x;
	return true;
}

static struct cell cell_number(bool known, double number)
{
	const bool fine = known && finite_number(number);

	return (struct cell){ .known = fine, .lenient_known = fine, .number = fine ? number : 0,
			      .lenient = fine ? number : 0 };
}

static struct cell apply_compare(enum expr_op_kind kind, const struct cell *a, const struct cell *b)
{
	struct cell c = { .na = a->na || b->na, .truth = TRI_UNKNOWN, .lenient_truth = TRI_UNKNOWN };

	if (a->known && b->known)
		c.truth = compare(kind, a->number, b->number) ? TRI_TRUE : TRI_FALSE;
	if (a->lenient_known && b->lenient_known)
		c.lenient_truth = compare(kind, a->lenient, b->lenient) ? TRI_TRUE : TRI_FALSE;
	return c;
}

static struct cell apply_arithmetic(enum expr_op_kind kind, const struct cell *a, const struct cell *b)
{
	struct cell c = { .na = a->na || b->na };

	c.known = a->known && b->known && arithmetic(kind, a->number, b->number, &c.number);
	c.lenient_known = a->lenient_known && b->lenient_known &&
			  arithmetic(kind, a->lenient, b->lenient, &c.lenient);
	return c;
}

/* An "and" with something that can never be true can never be true; an "or" needs only one side to apply. */
static struct cell apply_logic(enum expr_op_kind kind, const struct cell *a, const struct cell *b)
{
	if (kind == EXPR_AND)
		return (struct cell){ .na = a->na || b->na, .truth = tri_and(a->truth, b->truth),
				      .lenient_truth = tri_and(a->lenient_truth, b->lenient_truth) };
	return (struct cell){ .na = a->na && b->na, .truth = tri_or(a->truth, b->truth),
			      .lenient_truth = tri_or(a->lenient_truth, b->lenient_truth) };
}

static struct cell apply_binary(enum expr_op_kind kind, const struct cell *a, const struct cell *b)
{
	switch (kind) {
	case EXPR_OR: case EXPR_AND:
		return apply_logic(kind, a, b);
	case EXPR_ADD: case EXPR_SUB: case EXPR_MUL: case EXPR_DIV:
		return apply_arithmetic(kind, a, b);
	case EXPR_LT: case EXPR_LE: case EXPR_GT: case EXPR_GE: case EXPR_EQ: case EXPR_NE:
	case EXPR_NUMBER: case EXPR_PARAM: case EXPR_TERM: case EXPR_KNOWN: case EXPR_NOT: case EXPR_NEG:
		break;
	}
	return apply_compare(kind, a, b);
}

static bool param_value(const struct expr *e, const struct expr_env *env, int8_t param, double *ret)
{
	return env->param && env->param(env->context, e->param[param], ret) && finite_number(*ret);
}

/* Keep why a term was unknown; of several with too few samples, the one farthest from enough. */
static void note_reason(struct expr_result *r, const struct value *v, enum signal_id signal)
{
	switch (v->why) {
	case VALUE_OK:
		break;
	case VALUE_FEW:
		if (!r->few || (double)v->have * (double)r->need < (double)r->have * (double)v->need) {
			r->have = v->have;
			r->need = v->need;
		}
		r->few = true;
		break;
	case VALUE_MISSING:
		r->missing = true;
		r->missing_signal = signal;
		break;
	case VALUE_GAP:
		r->gap = true;
		break;
	case VALUE_NEVER:
		r->never = true;
		break;
	}
}

static struct cell eval_term(const struct expr *e, const struct expr_env *env, const struct expr_op *op,
			     struct expr_result *result)
{
	static const uint32_t no_override[STAT_ID_COUNT];
	const uint32_t *need = env->need_override ? env->need_override : no_override;
	struct value v = { .why = VALUE_MISSING };
	double arg = op->term.arg;
	struct cell c;

	if (op->term.arg_param < 0 || op->term.stat != STAT_OVER || param_value(e, env, op->term.arg_param, &arg))
		v = env->term(env->context, &op->term, arg, need);
	if (v.why == VALUE_OK && !finite_number(v.number))
		v.why = VALUE_MISSING;
	if (op->kind == EXPR_KNOWN) {
		const enum tri known = v.why == VALUE_OK ? TRI_TRUE : TRI_FALSE;

		return (struct cell){ .truth = known, .lenient_truth = known };
	}
	note_reason(result, &v, op->term.signal);
	c = cell_number(v.why == VALUE_OK, v.number);
	c.na = v.why == VALUE_NEVER;
	if (v.why == VALUE_FEW && v.have > 0 && finite_number(v.number)) {
		c.lenient_known = true;
		c.lenient = v.number;
	}
	return c;
}

static struct cell eval_unary(enum expr_op_kind kind, const struct cell *a)
{
	struct cell c = *a;

	c.number = -a->number;
	c.lenient = -a->lenient;
	if (kind == EXPR_NOT) {
		c.truth = tri_not(a->truth);
		c.lenient_truth = tri_not(a->lenient_truth);
	}
	return c;
}

struct expr_result expr_eval(const struct expr *e, const struct expr_env *env)
{
	struct expr_result result = { .truth = TRI_UNKNOWN, .lenient = TRI_UNKNOWN };
	struct cell stack[EXPR_OPS_MAX];
	size_t n = 0;
	double x = 0;

	for (uint16_t i = 0; i < e->op_count; i++) {
		const struct expr_op *op = &e->op[i];

		if (op->kind == EXPR_NUMBER) {
			stack[n++] = cell_number(true, op->number);
		} else if (op->kind == EXPR_PARAM) {
			const bool known = param_value(e, env, op->param, &x);

			stack[n++] = cell_number(known, x);
			result.missing |= !known;
		} else if (op->kind == EXPR_TERM || op->kind == EXPR_KNOWN) {
			stack[n++] = eval_term(e, env, op, &result);
		} else if (op->kind == EXPR_NOT || op->kind == EXPR_NEG) {
			stack[n - 1] = eval_unary(op->kind, &stack[n - 1]);
		} else {
			stack[n - 2] = apply_binary(op->kind, &stack[n - 2], &stack[n - 1]);
			n--;
		}
	}
	if (n == 1) {
		result.truth = stack[0].truth;
		result.lenient = stack[0].lenient_truth;
		result.na = stack[0].na;
	}
	return result;
}

uint64_t expr_longest_window_ns(const struct expr *e)
{
	uint64_t longest = 0;

	for (uint16_t i = 0; i < e->op_count; i++)
		if ((e->op[i].kind == EXPR_TERM || e->op[i].kind == EXPR_KNOWN) && e->op[i].term.window_ns > longest)
			longest = e->op[i].term.window_ns;
	return longest;
}

/* For expr_comparisons(): what a stack place holds. */
struct shape {
	enum { SHAPE_CONSTANT, SHAPE_TERM, SHAPE_OTHER } kind;
	struct cell value;	/* SHAPE_CONSTANT */
	const struct expr_term *term;
};

static enum expr_op_kind mirrored(enum expr_op_kind kind)
{
	return kind == EXPR_LT ? EXPR_GT : kind == EXPR_GT ? EXPR_LT : kind == EXPR_LE ? EXPR_GE :
	       kind == EXPR_GE ? EXPR_LE : kind;
}

static bool is_comparison(enum expr_op_kind kind)
{
	return kind == EXPR_LT || kind == EXPR_LE || kind == EXPR_GT || kind == EXPR_GE || kind == EXPR_EQ ||
	       kind == EXPR_NE;
}

static bool shape_comparison(enum expr_op_kind kind, const struct shape *a, const struct shape *b,
			     struct expr_comparison *ret)
{
	const bool forward = a->kind == SHAPE_TERM && b->kind == SHAPE_CONSTANT;
	const struct shape *term = forward ? a : b, *constant = forward ? b : a;

	if (term->kind != SHAPE_TERM || constant->kind != SHAPE_CONSTANT)
		return false;
	*ret = (struct expr_comparison){ .term = *term->term, .op = forward ? kind : mirrored(kind),
					 .threshold = constant->value.number,
					 .threshold_known = constant->value.known };
	return true;
}

size_t expr_comparisons(const struct expr *e, const struct expr_env *env, struct expr_comparison *ret, size_t max)
{
	struct shape stack[EXPR_OPS_MAX];
	size_t n = 0, count = 0;
	double x = 0;

	for (uint16_t i = 0; i < e->op_count && count < max; i++) {
		const struct expr_op *op = &e->op[i];

		if (op->kind == EXPR_NUMBER) {
			stack[n++] = (struct shape){ SHAPE_CONSTANT, cell_number(true, op->number), NULL };
		} else if (op->kind == EXPR_PARAM) {
			const bool known = param_value(e, env, op->param, &x);

			stack[n++] = (struct shape){ SHAPE_CONSTANT, cell_number(known, x), NULL };
		} else if (op->kind == EXPR_TERM) {
			stack[n++] = (struct shape){ .kind = SHAPE_TERM, .term = &op->term };
		} else if (op->kind == EXPR_KNOWN) {
			stack[n++] = (struct shape){ .kind = SHAPE_OTHER };
		} else if (op->kind == EXPR_NOT || op->kind == EXPR_NEG) {
			stack[n - 1].kind = stack[n - 1].kind == SHAPE_CONSTANT ? SHAPE_CONSTANT : SHAPE_OTHER;
			stack[n - 1].value = eval_unary(op->kind, &stack[n - 1].value);
		} else {
			struct shape *a = &stack[n - 2], *b = &stack[n - 1];

			if (is_comparison(op->kind) && shape_comparison(op->kind, a, b, &ret[count]))
				count++;
			if (a->kind == SHAPE_CONSTANT && b->kind == SHAPE_CONSTANT)
				a->value = apply_binary(op->kind, &a->value, &b->value);
			else
				a->kind = SHAPE_OTHER;
			n--;
		}
	}
	return count;
}

char *expr_term_format(const struct expr_term *t, double over_arg, char *buf, size_t size)
{
	char over[40] = "", window[40] = "", text[32];
	const char *stat = signal_stats[t->stat].name;

	if (t->stat == STAT_OVER)
		snprintf(over, sizeof(over), "(%s)",
			 units_format_duration_exact(over_arg > 0 && over_arg < 1e18 ? (uint64_t)over_arg : 0, text,
						     sizeof(text)));
	if (t->window_ns != SIGNAL_WINDOW_DEFAULT_NS)
		snprintf(window, sizeof(window), "[%s]", units_format_duration_exact(t->window_ns, text, sizeof(text)));
	snprintf(buf, size, "%s%s%s%s%s", signal_table[t->signal].name, *stat ? "." : "", stat, over, window);
	return buf;
}
