/* SPDX-License-Identifier: GPL-2.0-or-later */
/* panel.h - one frame of `status --watch` on a terminal: the verdict in large, alerts and hooks, a histogram per target.
 * Layer: ctl. */
#ifndef DWELLCTL_PANEL_H
#define DWELLCTL_PANEL_H

#include <jansson.h>

#include "term.h"

struct panel {
	const json_t *answer;	/* cleaned; NULL when the daemon did not answer */
	const char *trouble;	/* why it did not, else "" */
	const char *target;	/* only this one; NULL all */
};
/* At most term->height lines of at most term->width columns; each ends with \n. */
void panel_draw(struct text *out, const struct term *term, const struct panel *p);
#endif
