/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "control_peer.h"

static gid_t group_number(const char *name)
{
	struct group *g = getgrnam(name);

	return g ? g->gr_gid : CONTROL_PEER_NO_GROUP;
}

struct control_groups control_peer_groups(void)
{
	return (struct control_groups){ .read = group_number("dwelld"), .admin = group_number("dwelld-admin") };
}

struct control_peer control_peer_rights(uid_t uid, const gid_t *gid, size_t count,
					const struct control_groups *groups)
{
	struct control_peer p = { .uid = uid, .may_read = uid == 0, .may_write = uid == 0 };

	for (size_t i = 0; i < count; i++) {
		if (gid[i] == CONTROL_PEER_NO_GROUP)
			continue;
		if (gid[i] == groups->admin)
			p.may_read = p.may_write = true;
		if (gid[i] == groups->read)
			p.may_read = true;
	}
	return p;
}

int control_peer_of(int fd, const struct control_groups *groups, struct control_peer *ret)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);
	gid_t none, *gid;
	int r = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) < 0)
		return -errno;
	length = 0;	/* how much room the supplementary groups need: up to 64 Ki of them */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, &none, &length) < 0 && errno != ERANGE)
		return -errno;
	gid = malloc(length + sizeof(*gid));
	if (!gid)
		return -ENOMEM;
	if (length && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gid + 1, &length) < 0)
		r = -errno;
	gid[0] = cred.gid;
	if (r == 0)
		*ret = control_peer_rights(cred.uid, gid, 1 + length / sizeof(*gid), groups);
	free(gid);
	return r;
}

enum control_verb_kind control_peer_verb(const char *verb)
{
	static const struct { const char *name; enum control_verb_kind kind; } verbs[] = {
		{ "status", CONTROL_VERB_READ }, { "prometheus", CONTROL_VERB_READ },
		{ "histograms", CONTROL_VERB_READ }, { "reload", CONTROL_VERB_WRITE }, { "undo", CONTROL_VERB_WRITE },
	};

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].name, verb) == 0)
			return verbs[i].kind;
	return CONTROL_VERB_UNKNOWN;
}
