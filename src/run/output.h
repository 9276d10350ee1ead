/* SPDX-License-Identifier: GPL-2.0-or-later */
/* output.h - what a hook prints: passed on as tagged log lines, capped; the last line of stdout is its result. Layer: run.
 *
 * Control bytes and bytes that are not UTF-8 become '?'. Never blocks: a line that the log does not take is dropped. */
#ifndef DWELLD_OUTPUT_H
#define DWELLD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_RESULT 200	/* bytes of the result line */
#define OUTPUT_LINE 1000	/* bytes of a log line */
#define OUTPUT_LOG 65536	/* bytes of log per run, both streams together */

struct output_log { int fd; char tag[96]; size_t used; bool cut; };
struct output {
	struct output_log *log;
	char line[OUTPUT_LINE];
	size_t length;
	char last[OUTPUT_RESULT + 1];	/* last line that was not empty */
};

void output_feed(struct output *o, const char *buf, size_t size);
/* At the end: a last line without its newline counts. */
void output_end(struct output *o);
/* Cut text to at most size - 1 bytes, at a character's border, and clean it. */
void output_clean(const char *text, size_t length, char *ret, size_t size);
/* One line of the runner's own. */
void output_say(struct output_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
