/* SPDX-License-Identifier: GPL-2.0-or-later */
/* panel_view.h - what the parts of the panel share: where it is drawn and how many lines are used. Layer: ctl. */
#ifndef DWELLCTL_PANEL_VIEW_H
#define DWELLCTL_PANEL_VIEW_H

#include "panel.h"

struct view {
	struct text *out;
	const struct term *term;
	const json_t *status, *histograms;
	const struct panel *panel;
	size_t used;		/* lines so far */
};

static inline struct line begin(struct view *v)
{
	v->used++;
	return line_start(v->out, v->term);
}

static inline void blank(struct view *v)
{
	v->used++;
	text_put(v->out, "\n");
}

static inline bool room(const struct view *v, size_t lines)
{
	return v->used + lines <= v->term->height;
}

static inline const char *dot(const struct view *v)
{
	return v->term->utf8 ? " · " : ", ";
}

/* A line of detail under a headline, when there is room. */
static inline void detail(struct view *v, const char *text)
{
	struct line l;

	if (!text[0] || !room(v, 1))
		return;
	l = begin(v);
	line_gap(&l, 12);
	line_put(&l, TERM_PLAIN, text);
	line_end(&l);
}

/* panel_targets.c: the histograms, in what room is left. */
void panel_targets(struct view *v);
#endif
