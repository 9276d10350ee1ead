/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "output.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "decide/jsonw.h"

void output_clean(const char *text, size_t length, char *ret, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < length;) {
		char piece[5] = "";
		size_t step;

		strncat(piece, text + i, length - i < 4 ? length - i : 4);
		step = jsonw_utf8_length(piece);
		if (step > length - i)
			step = 0;
		if (n + (step ? step : 1) >= size)
			break;
		if (step > 1) {
			memcpy(ret + n, text + i, step);
			n += step;
			i += step;
			continue;
		}
		ret[n++] = step == 1 && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f ? text[i] : '?';
		i++;
	}
	ret[n] = '\0';
}

/* A line is written whole or not at all; poll() says there is room for at least one. */
static void log_line(struct output_log *log, const char *text)
{
	struct pollfd p = { .fd = log->fd, .events = POLLOUT };
	char line[OUTPUT_LINE + sizeof(log->tag) + 4];
	const int n = snprintf(line, sizeof(line), "%s: %s\n", log->tag, text);

	if (n < 0 || poll(&p, 1, 0) <= 0 || !(p.revents & POLLOUT))
		return;
	if (write(log->fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1) < 0)
		return;	/* nobody reads the log any more */
}

void output_say(struct output_log *log, const char *format, ...)
{
	char text[OUTPUT_LINE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_line(log, text);
}

static void end_line(struct output *o)
{
	char text[OUTPUT_LINE + 1];

	if (!o->length)
		return;
	output_clean(o->line, o->length, text, sizeof(text));
	output_clean(text, strlen(text), o->last, sizeof(o->last));
	o->length = 0;
	if (o->log->cut)
		return;
	if (o->log->used + strlen(text) > OUTPUT_LOG) {
		o->log->cut = true;
		output_say(o->log, "more than %d bytes of output, the rest is dropped", OUTPUT_LOG);
		return;
	}
	o->log->used += strlen(text) + 1;
	log_line(o->log, text);
}

void output_feed(struct output *o, const char *buf, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (buf[i] == '\n')
			end_line(o);
		else if (o->length < sizeof(o->line))
			o->line[o->length++] = buf[i];	/* the tail of an endless line is dropped */
	}
}

void output_end(struct output *o)
{
	end_line(o);
}
