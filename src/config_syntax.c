/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config_syntax.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_lex.h"

#define KEYS_AT_ONCE (4 * CONFIG_KEYS)

struct key {
	const char *name;
	size_t length;
	unsigned int line;
};
struct syntax {
	struct config_lex lex;
	struct config_source *source;
	struct config_token key; /* the one whose value is read */
	unsigned int depth;
	size_t keys;
	struct key seen[KEYS_AT_ONCE]; /* of the groups that are open, a stack */
};

static int value_check(struct syntax *s);

static bool is_other(const struct syntax *s, char c)
{
	return s->lex.token.kind == TOKEN_OTHER && s->lex.token.c == c;
}

static int next(struct syntax *s)
{
	return config_lex_next(&s->lex);
}

static bool is_word(const struct config_token *token, const char *const *words)
{
	for (; *words; words++)
		if (config_token_is(token, *words))
			return true;
	return false;
}

/* A quote that was not closed swallows text up to the next one, and the error shows only behind it. */
static int fail_torn(struct syntax *s)
{
	return config_lex_fail(&s->lex, s->lex.torn_line,
			       "a quote that opens here seems not to be closed in its line (it goes "
			       "on to line %u)",
			       s->lex.torn_end);
}

static bool torn(const struct syntax *s)
{
	return s->lex.torn_line && s->lex.torn_end == s->lex.token.line &&
	       s->lex.before.kind == TOKEN_STRING && s->lex.before.line == s->lex.torn_line;
}

/* Why a token can't be a value; word is its text, for the messages that quote it. */
static const char *value_reason(const struct config_token *t, const char *word, char *buf, size_t size)
{
	static const char *const truths[] = {"yes", "no", "on", "off", NULL};

	if (t->kind == TOKEN_END)
		return "expected a value, found the end of the file";
	if (t->kind == TOKEN_NAME && is_word(t, truths)) {
		snprintf(buf, size, "%s is no truth value, write true or false", word);
		return buf;
	}
	if (t->kind == TOKEN_NAME) {
		snprintf(buf, size, "expected a value; a word needs quotes: \"%s\"", word);
		return buf;
	}
	if (t->c == '\'')
		return "a string needs double quotes";
	if ((unsigned char)t->c >= 0x80)
		return "a string needs straight double quotes, found a byte that is not ASCII";
	if (strchr("$/", t->c))
		return "expected a value; a string needs double quotes";
	return "expected a value";
}

static int fail_value(struct syntax *s)
{
	const struct config_token *t = &s->lex.token;
	char word[41], key[41], reason[128];

	if (torn(s))
		return fail_torn(s);
	snprintf(word, sizeof(word), "%.*s", t->length > 40 ? 40 : (int)t->length, t->at);
	snprintf(key, sizeof(key), "%.*s", s->key.length > 40 ? 40 : (int)s->key.length,
		 s->key.at ? s->key.at : "");
	return config_lex_fail(&s->lex, t->line, "%s: %s", key,
			       value_reason(t, word, reason, sizeof(reason)));
}

/* A bracket that should be closed here. */
static int fail_close(struct syntax *s, const struct config_token *open, char close)
{
	struct config_lex *l = &s->lex;
	const struct config_token *t = &l->token;

	if (torn(s))
		return fail_torn(s);
	if (t->kind == TOKEN_END)
		return config_lex_fail(l, open->line, "the %c that opens here is never closed with %c",
				       open->c, close);
	if (t->kind == TOKEN_OTHER && strchr(")]}", t->c))
		return config_lex_fail(l, t->line,
				       "found %c, but the %c of line %u is still open and needs a %c first",
				       t->c, open->c, open->line, close);
	if (close != '}' && (t->kind != TOKEN_OTHER || strchr("([{", t->c)))
		return config_lex_fail(l, t->line,
				       "expected a comma or %c between the values of the %c in line %u",
				       close, open->c, open->line);
	if (close != '}' && t->c == ';')
		return config_lex_fail(l, t->line,
				       "found ; but the %c of line %u is still open and needs a %c first",
				       open->c, open->line, close);
	return config_lex_fail(l, t->line, "expected the name of a key or %c", close);
}

/* "( a, b )" or "[ a, b ]"; the opening one is the current token. */
static int values_check(struct syntax *s, char close)
{
	const struct config_token open = s->lex.token;

	if (next(s) < 0)
		return -EINVAL;
	while (!is_other(s, close)) {
		if (close == ']' && s->lex.token.kind == TOKEN_OTHER && strchr("([{", s->lex.token.c))
			return config_lex_fail(&s->lex, s->lex.token.line,
					       "[ ] holds plain values only; groups and lists go into ( )");
		if (s->lex.token.kind == TOKEN_END)
			return fail_close(s, &open, close);
		if (value_check(s) < 0)
			return -EINVAL;
		if (is_other(s, close))
			break;
		if (!is_other(s, ','))
			return fail_close(s, &open, close);
		if (next(s) < 0)
			return -EINVAL;
		if (is_other(s, close))
			return config_lex_fail(&s->lex, s->lex.before.line,
					       "a comma after the last value, take it away");
	}
	return next(s);
}

static int key_seen(struct syntax *s, const struct config_token *t, size_t first)
{
	for (size_t i = first; i < s->keys; i++)
		if (s->seen[i].length == t->length && memcmp(s->seen[i].name, t->at, t->length) == 0)
			return config_lex_fail(&s->lex, t->line, "\"%.*s\" is already given in line %u",
					       t->length > 40 ? 40 : (int)t->length, t->at, s->seen[i].line);
	if (s->keys - first >= CONFIG_KEYS || s->keys >= KEYS_AT_ONCE)
		return config_lex_fail(&s->lex, t->line, "more than %d keys in one group", CONFIG_KEYS);
	s->seen[s->keys++] = (struct key){t->at, t->length, t->line};
	return 0;
}

static int fail_equals(struct syntax *s, const struct config_token *key, const struct config_token *before)
{
	static const char *const units[] = {"ns", "us",	 "ms",	"s",   "m", "h",
					    "d",  "kib", "mib", "gib", "b", NULL};
	const int n = key->length > 40 ? 40 : (int)key->length;
	struct config_lex *l = &s->lex;

	if (before->kind == TOKEN_NUMBER && before->line == key->line && is_word(key, units))
		return config_lex_fail(l, key->line, "%.*s: a quantity needs quotes: \"%.*s%.*s\"",
				       s->key.length > 40 ? 40 : (int)s->key.length, s->key.at,
				       before->length > 40 ? 40 : (int)before->length, before->at, n,
				       key->at);
	if (torn(s))
		return fail_torn(s);
	if (is_other(s, '.'))
		return config_lex_fail(l, key->line, "a key has no dot in it; write %.*s = { ... = ...; };",
				       n, key->at);
	return config_lex_fail(l, key->line, "expected = after \"%.*s\"", n, key->at);
}

static int setting_check(struct syntax *s, size_t first)
{
	const struct config_token key = s->lex.token, before = s->lex.before;

	if (next(s) < 0)
		return -EINVAL;
	if (!is_other(s, '=') && !is_other(s, ':'))
		return fail_equals(s, &key, &before);
	if (key_seen(s, &key, first) < 0)
		return -EINVAL;
	s->key = key;
	if (next(s) < 0 || value_check(s) < 0)
		return -EINVAL;
	if (is_other(s, ';') || is_other(s, ','))
		return next(s);
	return 0;
}

/* Up to close (0: the end of the file), which stays the current token. */
static int settings_check(struct syntax *s, const struct config_token *open, char close)
{
	const size_t first = s->keys;

	while (s->lex.token.kind == TOKEN_NAME)
		if (setting_check(s, first) < 0)
			return -EINVAL;
	s->keys = first;
	if (close ? is_other(s, close) : s->lex.token.kind == TOKEN_END)
		return 0;
	if (close && s->lex.token.kind == TOKEN_END)
		return fail_close(s, open, close);
	if (torn(s))
		return fail_torn(s);
	if (is_other(s, '@'))
		return config_lex_fail(&s->lex, s->lex.token.line,
				       "@include is not read: each file stands alone; put the other "
				       "file into conf.d");
	if (is_other(s, '%') && s->lex.before.kind == TOKEN_NUMBER)
		return config_lex_fail(
			&s->lex, s->lex.token.line, "%.*s: a quantity needs quotes: \"%.*s%%\"",
			s->key.length > 40 ? 40 : (int)s->key.length, s->key.at,
			s->lex.before.length > 40 ? 40 : (int)s->lex.before.length, s->lex.before.at);
	if (is_other(s, ';') && s->lex.before.kind == TOKEN_OTHER && s->lex.before.c == ';')
		return config_lex_fail(&s->lex, s->lex.token.line, "one semicolon too many");
	if (close)
		return fail_close(s, open, close);
	if (s->lex.token.kind == TOKEN_OTHER && strchr(")]}", s->lex.token.c))
		return config_lex_fail(&s->lex, s->lex.token.line, "found %c, but no bracket is open",
				       s->lex.token.c);
	return config_lex_fail(&s->lex, s->lex.token.line, "expected the name of a key");
}

static int group_check(struct syntax *s)
{
	const struct config_token open = s->lex.token;

	if (next(s) < 0 || settings_check(s, &open, '}') < 0)
		return -EINVAL;
	return next(s);
}

static int nested_check(struct syntax *s)
{
	int r;

	if (s->depth >= CONFIG_DEPTH)
		return config_lex_fail(&s->lex, s->lex.token.line, "more than %d brackets inside each other",
				       CONFIG_DEPTH);
	s->depth++;
	if (is_other(s, '{'))
		r = group_check(s);
	else
		r = values_check(s, is_other(s, '[') ? ']' : ')');
	s->depth--;
	return r;
}

static int number_check(struct syntax *s)
{
	const struct config_token *t = &s->lex.token;
	const int n = t->length > 40 ? 40 : (int)t->length;

	if (t->glued)
		return config_lex_fail(&s->lex, t->line, "%.*s: a quantity needs quotes: \"%.*s\"",
				       s->key.length > 40 ? 40 : (int)s->key.length, s->key.at, n, t->at);
	if (t->too_big) {
		diag_add(s->lex.d, s->source->path, t->line,
			 "%.*s: %.*s is too large a number; quantities are quoted, with a "
			 "unit",
			 s->key.length > 40 ? 40 : (int)s->key.length, s->key.at, n, t->at);
		if (s->source->told_count < CONFIG_TOO_BIG)
			s->source->told[s->source->told_count++] = t->line;
	}
	return next(s);
}

/* One string, or several that libconfig joins. In a list that is a forgotten comma. */
static int string_check(struct syntax *s)
{
	static const char *const unit_keys[] = {"unit", "cgroup", "targets", "name", NULL};
	const bool in_list = s->lex.before.kind == TOKEN_OTHER && strchr("([,", s->lex.before.c);

	for (;;) {
		const struct config_token *t = &s->lex.token;

		if (t->escaped_hex && is_word(&s->key, unit_keys))
			diag_warn(s->lex.d, s->source->path, t->line,
				  "%.*s: \\x2d in quotes is read as -; the name of an "
				  "escaped unit needs \\\\x2d",
				  (int)s->key.length, s->key.at);
		if (next(s) < 0)
			return -EINVAL;
		if (s->lex.token.kind != TOKEN_STRING)
			return 0;
		if (in_list)
			return config_lex_fail(&s->lex, s->lex.token.line,
					       "a comma is missing between two strings, they would "
					       "be read as one");
	}
}

static int value_check(struct syntax *s)
{
	const struct config_token *t = &s->lex.token;

	if (t->kind == TOKEN_STRING)
		return string_check(s);
	if (t->kind == TOKEN_NUMBER)
		return number_check(s);
	if (t->kind == TOKEN_BOOL)
		return next(s);
	if (t->kind == TOKEN_OTHER && strchr("([{", t->c))
		return nested_check(s);
	return fail_value(s);
}

/* libconfig would read the file named here, wherever its own scanner stands in a line: so look at every line.
 */
static int include_check(struct config_lex *l)
{
	unsigned int line = 1;

	for (const char *p = l->text; p < l->end; line++) {
		const char *word = p + strspn(p, " \t"), *newline = strchr(p, '\n');

		if (strncmp(word, "@include", 8) == 0)
			return config_lex_fail(
				l, line,
				"@include is not read: each file stands alone; put the other file into "
				"conf.d");
		if (!newline)
			break;
		p = newline + 1;
	}
	return 0;
}

static int bytes_check(struct config_lex *l, size_t size)
{
	const char *nul = memchr(l->text, 0, size);
	unsigned int line = 1;

	if (size >= 2 && (memcmp(l->text, "\xff\xfe", 2) == 0 || memcmp(l->text, "\xfe\xff", 2) == 0))
		return diag_add(l->d, l->source->path, 1,
				"the file is UTF-16; save it as UTF-8 without a byte order mark");
	if (size >= 3 && memcmp(l->text, "\xef\xbb\xbf", 3) == 0)
		return diag_add(l->d, l->source->path, 1,
				"the file begins with a byte order mark (BOM); save it as UTF-8 "
				"without one");
	for (const char *p = l->text; nul && p < nul; p++)
		line += *p == '\n';
	if (nul)
		return diag_add(l->d, l->source->path, line, "a zero byte: this is no text file");
	return 0;
}

int config_syntax_check(const char *text, size_t size, struct config_source *source, struct diag *d)
{
	struct syntax *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return diag_add(d, source->path, 0, "out of memory");
	s->source = source;
	s->lex = (struct config_lex){
		.text = text, .end = text + size, .at = text, .line = 1, .source = source, .d = d};
	r = bytes_check(&s->lex, size);
	if (r == 0)
		r = include_check(&s->lex);
	if (r == 0)
		r = next(s);
	if (r == 0)
		r = settings_check(s, NULL, '\0');
	free(s);
	return r;
}
