/* SPDX-License-Identifier: GPL-2.0-or-later */
/* client.h - one question to the daemon over its control socket and the whole answer. Layer: ctl.
 *
 * Protocol (src/act/control.h): "VERB [ARGS]\n" out; "OK LENGTH\n" + LENGTH bytes, or "ERR CODE text\n" back, where
 *            text may go on over more lines (the errors of a configuration) until the daemon closes.
 * The peer is not trusted: the answer has a size limit and a deadline for all of it, and its text is not printed
 * before text.h has cleaned it.
 * Errors:    negative errno with cleaned text for the user in why->text, no newline at its end.
 * Ownership: *ret_bytes is malloc'ed, NUL-terminated, the caller's. */
#ifndef DWELLCTL_CLIENT_H
#define DWELLCTL_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#define CLIENT_SOCKET "/run/dwelld/control.sock"
#define CLIENT_ANSWER_MAX (16U << 20)
#define CLIENT_READ_TIMEOUT_NS 5000000000ULL
#define CLIENT_WRITE_TIMEOUT_NS 60000000000ULL	/* reload waits until the daemon has read its files */

struct client_why { char text[32768]; };
struct client_ask {
	const char *path;	/* of the socket */
	const char *line;	/* without the newline; at most 1022 bytes, no control bytes */
	uint64_t timeout_ns;	/* for connecting, sending and reading together */
};
int client_ask(const struct client_ask *ask, struct client_why *why, char **ret_bytes, size_t *ret_length);
#endif
