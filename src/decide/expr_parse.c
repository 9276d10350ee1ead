/* SPDX-License-Identifier: GPL-2.0-or-later */
/* expr_parse.c - rule text to a postfix program. The text comes from a file that anyone may have written: recursion is
 * bounded by PARSE_DEPTH, the program by EXPR_OPS_MAX, and every error names its column.
 *
 * Precedence as in C: or, and, == !=, < <= > >=, + -, * /, unary. */
#include "expr.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "expr_private.h"

#define PARSE_DEPTH 32		/* nested parentheses and unary operators together */
#define PARSE_WORD 96		/* longest name or quantity */
#define PARSE_LEVELS 6

enum token_kind { TOKEN_END, TOKEN_NUMBER, TOKEN_NAME, TOKEN_PARAM, TOKEN_MARK, TOKEN_BAD };

struct token {
	enum token_kind kind;
	unsigned int column;
	char text[PARSE_WORD];
};

struct parser {
	const char *text;
	size_t at;		/* of the byte after the token */
	struct token token;	/* the one looked at */
	unsigned int depth;
	struct expr *expr;
	struct expr_error *error;
};

static const struct { const char *text; enum expr_op_kind kind; int level; } operators[] = {
	{ "or", EXPR_OR, 0 }, { "and", EXPR_AND, 1 }, { "==", EXPR_EQ, 2 }, { "!=", EXPR_NE, 2 }, { "<", EXPR_LT, 3 },
	{ "<=", EXPR_LE, 3 }, { ">", EXPR_GT, 3 }, { ">=", EXPR_GE, 3 }, { "+", EXPR_ADD, 4 }, { "-", EXPR_SUB, 4 },
	{ "*", EXPR_MUL, 5 }, { "/", EXPR_DIV, 5 },
};

/* What people write who come from another language. */
static const struct { const char *wrong, *right; } habits[] = {
	{ "&&", "and" }, { "||", "or" }, { "!", "not" }, { "=", "==" }, { "&", "and" }, { "|", "or" }, { "<>", "!=" },
	{ "AND", "and" }, { "OR", "or" }, { "NOT", "not" },
};

int expr_fail(struct expr_error *error, unsigned int column, const char *format, ...)
{
	va_list args;

	error->column = column ? column : 1;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	for (char *p = error->text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return -EINVAL;
}

/* No ctype.h: the locale must not change what a rule means. */
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_word(char c) { return is_letter(c) || is_digit(c); }

/* Length of a name with dots; of a quantity with its unit. A dot counts only when a word follows. */
static size_t name_length(const char *s)
{
	size_t n = 0;

	while (is_word(s[n]) || (s[n] == '.' && is_word(s[n + 1])))
		n++;
	return n;
}

static size_t number_length(const char *s)
{
	size_t n = 0;

	while (is_word(s[n]) || s[n] == '.')
		n++;
	if (s[n] == '%')
		return n + 1;
	if (s[n] == '/' && s[n + 1] == 's' && !is_word(s[n + 2]) && s[n + 2] != '.')
		return n + 2;
	return n;
}

static size_t mark_length(const char *s)
{
	static const char *const two[] = { "<=", ">=", "==", "!=", "&&", "||", "<>" };

	for (size_t i = 0; i < sizeof(two) / sizeof(*two); i++)
		if (!strncmp(s, two[i], 2))
			return 2;
	return 1;
}

static void token_next(struct parser *p)
{
	struct token *t = &p->token;
	const char *s;
	size_t n, skip = 0;

	while (is_space(p->text[p->at]))
		p->at++;
	s = p->text + p->at;
	t->column = (unsigned int)p->at + 1;
	if (!*s) {
		t->kind = TOKEN_END;
		n = 0;
	} else if (is_digit(*s)) {
		t->kind = TOKEN_NUMBER;
		n = number_length(s);
	} else if (is_letter(*s)) {
		t->kind = TOKEN_NAME;
		n = name_length(s);
	} else if (*s == '$' && is_letter(s[1])) {
		t->kind = TOKEN_PARAM;
		skip = 1;
		n = 1 + name_length(s + 1);
	} else {
		t->kind = TOKEN_MARK;
		n = mark_length(s);
	}
	p->at += n;
	n -= skip;
	if (n >= sizeof(t->text)) {
		t->kind = TOKEN_BAD;
		n = sizeof(t->text) - 1;
	}
	memcpy(t->text, s + skip, n);
	t->text[n] = '\0';
}

static bool token_is(const struct parser *p, const char *text)
{
	return (p->token.kind == TOKEN_MARK || p->token.kind == TOKEN_NAME) && !strcmp(p->token.text, text);
}

/* "expected WHAT, found ..., did you mean ..." at the token. */
static int expected(struct parser *p, const char *what)
{
	const struct token *t = &p->token;

	if (t->kind == TOKEN_END)
		return expr_fail(p->error, t->column, "expected %s, found the end", what);
	if (t->kind == TOKEN_BAD)
		return expr_fail(p->error, t->column, "expected %s, found a word longer than %d bytes", what,
				 PARSE_WORD - 1);
	for (size_t i = 0; i < sizeof(habits) / sizeof(*habits); i++)
		if (!strcmp(t->text, habits[i].wrong))
			return expr_fail(p->error, t->column, "expected %s, found \"%s\", did you mean \"%s\"?", what,
					 t->text, habits[i].right);
	return expr_fail(p->error, t->column, "expected %s, found \"%s%s\"", what, t->kind == TOKEN_PARAM ? "$" : "",
			 t->text);
}

static int expect_mark(struct parser *p, const char *mark)
{
	char what[16];

	if (token_is(p, mark)) {
		token_next(p);
		return 0;
	}
	snprintf(what, sizeof(what), "\"%s\"", mark);
	return expected(p, what);
}

static int emit(struct parser *p, const struct expr_op *op)
{
	if (p->expr->op_count == EXPR_OPS_MAX)
		return expr_fail(p->error, op->column, "expected at most %d operands and operators", EXPR_OPS_MAX);
	p->expr->op[p->expr->op_count++] = *op;
	return 0;
}

static int param_index(struct parser *p, int8_t *ret)
{
	struct expr *e = p->expr;
	const char *name = p->token.text;

	if (strlen(name) >= EXPR_PARAM_NAME || strchr(name, '.'))
		return expected(p, "a parameter name without dots, shorter than 32 bytes");
	for (uint8_t i = 0; i < e->param_count; i++)
		if (!strcmp(e->param[i], name)) {
			*ret = (int8_t)i;
			return 0;
		}
	if (e->param_count == EXPR_PARAMS_MAX)
		return expected(p, "at most 8 different parameters");
	memcpy(e->param[e->param_count], name, strlen(name) + 1);
	*ret = (int8_t)e->param_count++;
	return 0;
}

/* The "(20ms)" of over(20ms), or ($slow). */
static int parse_over(struct parser *p, struct expr_term *term)
{
	enum unit_dim dim;
	int r;

	r = expect_mark(p, "(");
	if (r < 0)
		return r;
	if (p->token.kind == TOKEN_PARAM) {
		r = param_index(p, &term->arg_param);
		if (r < 0)
			return r;
	} else if (p->token.kind != TOKEN_NUMBER || units_parse_quantity(p->token.text, &term->arg, &dim) < 0 ||
		   dim != UNIT_TIME) {
		return expected(p, "a duration such as 20ms");
	}
	token_next(p);
	return expect_mark(p, ")");
}

static int parse_window(struct parser *p, struct expr_term *term)
{
	if (!token_is(p, "["))
		return 0;
	token_next(p);
	if (p->token.kind != TOKEN_NUMBER || units_parse_duration(p->token.text, &term->window_ns) < 0)
		return expected(p, "a window such as 10s");
	if (term->window_ns < SIGNAL_WINDOW_MIN_NS || term->window_ns > SIGNAL_WINDOW_MAX_NS)
		return expected(p, "a window of 1s to 10m");
	token_next(p);
	return expect_mark(p, "]");
}

/* A name at the token to a term with statistic, argument and window. */
static int parse_term(struct parser *p, struct expr_op *op)
{
	int r;

	op->column = (uint16_t)p->token.column;
	op->term.window_ns = SIGNAL_WINDOW_DEFAULT_NS;
	op->term.arg_param = -1;
	r = expr_term_resolve(p->token.text, p->token.column, &op->term, p->error);
	if (r < 0)
		return r;
	token_next(p);
	if (op->term.stat == STAT_OVER) {
		r = parse_over(p, &op->term);
		if (r < 0)
			return r;
	}
	return parse_window(p, &op->term);
}

static int parse_level(struct parser *p, int level);

static int parse_known(struct parser *p)
{
	struct expr_op op = { .kind = EXPR_KNOWN };
	int r;

	token_next(p);
	r = expect_mark(p, "(");
	if (r < 0)
		return r;
	if (p->token.kind != TOKEN_NAME)
		return expected(p, "a signal");
	r = parse_term(p, &op);
	if (r < 0)
		return r;
	r = expect_mark(p, ")");
	return r < 0 ? r : emit(p, &op);
}

static int parse_number(struct parser *p)
{
	struct expr_op op = { .kind = EXPR_NUMBER, .column = (uint16_t)p->token.column };
	int r;

	r = units_parse_quantity(p->token.text, &op.number, &op.dim);
	if (r == -ERANGE)
		return expected(p, "a smaller quantity");
	if (r < 0)
		return expected(p, "a quantity with a unit of ns us ms s m h d % B KiB MiB /s, or a plain number");
	token_next(p);
	return emit(p, &op);
}

static int parse_primary(struct parser *p)
{
	struct expr_op op = { .column = (uint16_t)p->token.column };
	int r;

	if (token_is(p, "(")) {
		token_next(p);
		r = parse_level(p, 0);
		return r < 0 ? r : expect_mark(p, ")");
	}
	if (p->token.kind == TOKEN_NUMBER)
		return parse_number(p);
	if (p->token.kind == TOKEN_PARAM) {
		op.kind = EXPR_PARAM;
		r = param_index(p, &op.param);
		token_next(p);
		return r < 0 ? r : emit(p, &op);
	}
	if (token_is(p, "known"))
		return parse_known(p);
	if (p->token.kind != TOKEN_NAME || token_is(p, "and") || token_is(p, "or") || token_is(p, "AND") ||
	    token_is(p, "OR") || token_is(p, "NOT"))
		return expected(p, "a signal, a quantity, $param, known() or \"(\"");
	op.kind = EXPR_TERM;
	r = parse_term(p, &op);
	return r < 0 ? r : emit(p, &op);
}

static int parse_unary(struct parser *p)
{
	struct expr_op op = { .column = (uint16_t)p->token.column };
	int r;

	if (p->depth >= PARSE_DEPTH)
		return expr_fail(p->error, p->token.column, "expected at most %d nested parentheses and signs",
				 PARSE_DEPTH);
	p->depth++;
	if (token_is(p, "not") || token_is(p, "-")) {
		op.kind = token_is(p, "not") ? EXPR_NOT : EXPR_NEG;
		token_next(p);
		r = parse_unary(p);
		if (r == 0)
			r = emit(p, &op);
	} else {
		r = parse_primary(p);
	}
	p->depth--;
	return r;
}

/* The operator of this level at the token, or -1. */
static int operator_at(const struct parser *p, int level)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
		if (operators[i].level == level && token_is(p, operators[i].text))
			return (int)i;
	return -1;
}

static int parse_level(struct parser *p, int level)
{
	struct expr_op op = { 0 };
	int r, i;

	if (level == PARSE_LEVELS)
		return parse_unary(p);
	r = parse_level(p, level + 1);
	while (r == 0 && (i = operator_at(p, level)) >= 0) {
		op.kind = operators[i].kind;
		op.column = (uint16_t)p->token.column;
		token_next(p);
		r = parse_level(p, level + 1);
		if (r == 0)
			r = emit(p, &op);
	}
	return r;
}

int expr_parse(const char *text, struct expr *ret, struct expr_error *ret_error)
{
	struct expr e = { 0 };
	struct parser p = { .text = text, .expr = &e, .error = ret_error };
	const size_t length = strnlen(text, EXPR_TEXT_MAX);
	int r;

	if (length >= EXPR_TEXT_MAX)
		return expr_fail(ret_error, EXPR_TEXT_MAX, "expected at most %d bytes", EXPR_TEXT_MAX - 1);
	memcpy(e.text, text, length + 1);
	token_next(&p);
	r = parse_level(&p, 0);
	if (r < 0)
		return r;
	if (p.token.kind != TOKEN_END)
		return expected(&p, "an operator or the end");
	r = expr_check(&e, NULL, NULL, ret_error);
	if (r < 0)
		return r;
	*ret = e;
	return 0;
}
