/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config_syntax.h - reads a file's text before libconfig does, because libconfig tells only "syntax error", reads
 * numbers that are too large as others, and would include other files. Private to the configuration reader.
 *
 * What passes here is what libconfig takes, less @include, trailing commas and more than CONFIG_DEPTH brackets inside each
 * other. Every byte may be hostile. */
#ifndef DWELLD_CONFIG_SYNTAX_H
#define DWELLD_CONFIG_SYNTAX_H

#include <stddef.h>

#include "config_tree.h"

#define CONFIG_DEPTH 16
#define CONFIG_KEYS 1000	/* keys in one group */

/* 0; or -EINVAL with the first syntax error in *d. text[size] must be 0. Numbers that are too large are errors in *d too,
 * but the file goes on to be read: their lines are noted in *source. */
int config_syntax_check(const char *text, size_t size, struct config_source *source, struct diag *d);
/* The line of an error that only libconfig found. */
void config_syntax_line(const char *text, unsigned int line, char *buf, size_t size);
#endif
