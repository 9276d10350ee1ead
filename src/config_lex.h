/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_lex.h - the text of a configuration file as tokens, the way libconfig cuts it. Private to config_syntax.c.
 *
 * Errors: config_lex_next() returns -EINVAL with the message in *d. */
#ifndef DWELLD_CONFIG_LEX_H
#define DWELLD_CONFIG_LEX_H

#include <stdbool.h>
#include <stddef.h>

#include "config_tree.h"

enum config_token_kind { TOKEN_END, TOKEN_NAME, TOKEN_STRING, TOKEN_NUMBER, TOKEN_BOOL, TOKEN_OTHER };

struct config_token {
	enum config_token_kind kind;
	const char *at;
	size_t length;
	unsigned int line;	/* where it begins */
	char c;			/* TOKEN_OTHER: the byte */
	bool glued;		/* a number with letters or % right after it */
	bool escaped_hex;	/* a string with \xNN */
	bool too_big;		/* a whole number that does not fit */
};

struct config_lex {
	const char *text, *end, *at;
	unsigned int line;
	unsigned int torn_line, torn_end;	/* last string of more than one line: where it begins and ends; 0: none */
	struct config_token token, before;
	const struct config_source *source;
	struct diag *d;
};

int config_lex_next(struct config_lex *l);
/* "message, in: the text of the line". Returns -EINVAL. */
int config_lex_fail(struct config_lex *l, unsigned int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool config_token_is(const struct config_token *token, const char *word);	/* ignoring case */
#endif
