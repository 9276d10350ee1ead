/* SPDX-License-Identifier: GPL-2.0-or-later */
/* usage.h - what dwellctl says about itself. Layer: ctl. */
#ifndef DWELLCTL_USAGE_H
#define DWELLCTL_USAGE_H

#include <stdbool.h>

/* The help of a verb, or of the whole program when verb is NULL or has none of its own. */
const char *usage_text(const char *verb);
/* A verb that a later version answers. */
bool usage_is_planned(const char *verb);
#endif
