/* SPDX-License-Identifier: GPL-2.0-or-later */
/* id_table.h - 64-bit ids to row numbers of a fixed table, with a list of rows per target slot. Private to
 * readers.c and streams.c. Layer: decide (pure; memory is the caller's).
 *
 * Rows are 0..rows-1; chains and lists end with ID_NONE. */
#ifndef DWELLD_ID_TABLE_H
#define DWELLD_ID_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "sample.h"

#define ID_NONE UINT16_MAX
#define ID_BUCKETS 4096		/* power of two */

struct id_row {
	uint64_t id;
	uint16_t chain;		/* next row of the bucket, or next free row */
	uint16_t next;		/* next row of the same slot; rebuilt each tick */
	uint16_t target;
	bool used;
	bool present;		/* in the last sample */
};

struct id_table {
	struct id_row *row;
	uint16_t rows, free, high;	/* rows from high up were never used */
	uint16_t bucket[ID_BUCKETS];
	uint16_t first[SAMPLE_TARGETS];	/* first row of each slot */
};

void id_table_init(struct id_table *t, struct id_row *row, uint16_t rows);
uint16_t id_table_find(const struct id_table *t, uint64_t id);	/* ID_NONE: not there */
uint16_t id_table_add(struct id_table *t, uint64_t id);		/* ID_NONE: full. The id must not be there */
void id_table_remove(struct id_table *t, uint16_t row);
void id_table_list(struct id_table *t);				/* rebuilds first[] and next */
void id_table_absent(struct id_table *t);			/* clears present of all rows */
#endif
