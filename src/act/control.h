/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control.h - the unix socket that dwellctl talks to. Layer: act.
 *
 * Protocol: the client sends one line "VERB [ARGS]\n" (at most 1 KiB), the daemon answers "OK LENGTH\n" + LENGTH bytes,
 * or "ERR CODE text\n", and closes; "status --follow"-like streams do not exist, clients ask again. CODE is a positive
 * errno: EACCES, EBUSY (too many clients), EOPNOTSUPP (unknown verb), EMSGSIZE, EINVAL, or what the verb returned; only
 * the text of a verb may have several lines (the errors of a reload), so read up to the end. Socket mode 0666: rights
 * are checked by peer credentials (SO_PEERCRED, SO_PEERGROUPS): read verbs root and group dwelld, write verbs uid 0 or
 * group dwelld-admin; a refusal names the group. Hostile clients: at most 32 at once (8 of one user), 5 s each, never
 * blocks the loop. The answer of "reload" is sent when its verb returns: the new configuration is in force or refused. */
#ifndef DWELLD_CONTROL_H
#define DWELLD_CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct control;
/* Fill *ret_text (malloc'ed, becomes control's; at most 4 MiB) and return 0, or a negative errno with the reason in it.
 * uid is the caller's. verbs: "status" (JSON), "prometheus", "histograms" (status + histograms), "reload", "undo ARGS". */
typedef int (*control_verb_fn)(void *userdata, const char *verb, const char *args, uid_t uid, char **ret_text,
			       size_t *ret_length);
/* -EADDRINUSE with *ret_pid of the daemon that answers on path (0 unknown); a stale socket is replaced. PATH.lock beside
 * it is held while the socket lives. Asks NSS for the two groups, so call it before the first tick. */
int control_new(sd_event *event, const char *path, control_verb_fn verb, void *userdata, pid_t *ret_pid,
		struct control **ret);
void control_free(struct control *c);	/* NULL is fine; removes the socket */
#endif
