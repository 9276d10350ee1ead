/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plain.h - the status as a table and a few sections, for people and for pipes. Layer: ctl. */
#ifndef DWELLCTL_PLAIN_H
#define DWELLCTL_PLAIN_H

#include <jansson.h>

#include "term.h"

/* status: cleaned (reply_clean). target: show only this one, NULL for all. Lines fit term->width, 80..120 columns. */
void plain_status(struct text *out, const struct term *term, const json_t *status, const char *target);
#endif
