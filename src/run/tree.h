/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tree.h - all descendants of this process, also those in sessions of their own. Layer: run.
 *
 * The process must be a subreaper, so that an orphan stays a descendant. */
#ifndef DWELLD_TREE_H
#define DWELLD_TREE_H

/* Sends sig to every descendant; the number of those that are no zombies. */
unsigned int tree_signal(int sig);
/* Stops every descendant first, so that none can fork out of sight, then kills them. */
void tree_kill(void);
/* Kills processes that a crashed run left behind: their environment has both of these "NAME=VALUE" words. */
unsigned int tree_kill_marked(const char *mark, const char *mark2);
#endif
