/* SPDX-License-Identifier: GPL-2.0-or-later */
/* status_json.h - the parts of the status document that are read from windows: targets with their signals, and the host.
 * Layer: decide (pure). Only status.c calls these; the engine must have had its first sample. */
#ifndef DWELLD_STATUS_JSON_H
#define DWELLD_STATUS_JSON_H

#include "engine.h"
#include "jsonw.h"

void status_json_targets(struct jsonw *w, const struct engine *e);	/* "targets": [...] */
void status_json_host(struct jsonw *w, const struct engine *e);		/* "host": {...} */
#endif
