/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_socket.h - one listening socket per path, even when two daemons start in the same instant. Layer: act.
 *
 * PATH.lock is held with a record lock while the socket lives, so that "stale" is never guessed in a race, and so that
 * the pid of a daemon that is stopped and answers nothing is still known. Both files go with control_socket_close().
 * Ownership: plain descriptors inside; {-1, -1} closes fine. */
#ifndef DWELLD_CONTROL_SOCKET_H
#define DWELLD_CONTROL_SOCKET_H

#include <sys/types.h>

struct control_socket { int fd, lock_fd; dev_t device; ino_t inode; };

/* Mode 0666, nonblocking, close-on-exec. -EADDRINUSE: somebody lives there, *ret_pid is its pid (0 unknown). -EEXIST:
 * path is something else than a socket and is left alone. A socket where nobody answers is replaced. */
int control_socket_open(const char *path, pid_t *ret_pid, struct control_socket *ret);
void control_socket_close(struct control_socket *s, const char *path);
#endif
