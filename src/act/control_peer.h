/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_peer.h - who asks, and what they may ask. Layer: act.
 *
 * Read verbs: uid 0 and the groups dwelld and dwelld-admin. Write verbs: uid 0 and the group dwelld-admin. Groups are
 * those the kernel recorded when the client connected (SO_PEERCRED, SO_PEERGROUPS), not what it says.
 * Ownership: struct control_peer holds no memory of its own. */
#ifndef DWELLD_CONTROL_PEER_H
#define DWELLD_CONTROL_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CONTROL_PEER_NO_GROUP ((gid_t)-1)

/* The two groups' numbers, CONTROL_PEER_NO_GROUP where the machine has no such group. */
struct control_groups { gid_t read, admin; };
struct control_peer {
	uid_t uid;
	bool may_read, may_write;
};

enum control_verb_kind { CONTROL_VERB_UNKNOWN, CONTROL_VERB_READ, CONTROL_VERB_WRITE };

/* Looks the groups up by name. Asks NSS, so it may be slow: once, at start. */
struct control_groups control_peer_groups(void);
/* Pure: what uid with these groups may do. */
struct control_peer control_peer_rights(uid_t uid, const gid_t *gid, size_t count,
					const struct control_groups *groups);
/* Of a connected socket. Negative errno when the kernel does not tell. */
int control_peer_of(int fd, const struct control_groups *groups, struct control_peer *ret);
enum control_verb_kind control_peer_verb(const char *verb);
#define CONTROL_PEER_VERBS "status prometheus histograms reload undo"
#endif
