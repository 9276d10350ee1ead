/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "id_table.h"

#include <string.h>

/* ids may be counters or pointers: multiply so that every bit counts. */
static unsigned int id_bucket(uint64_t id)
{
	return (unsigned int)((id * 0x9e3779b97f4a7c15ULL) >> 52) & (ID_BUCKETS - 1);
}

void id_table_init(struct id_table *t, struct id_row *row, uint16_t rows)
{
	memset(t, 0, sizeof(*t));
	memset(t->bucket, 0xff, sizeof(t->bucket));
	memset(t->first, 0xff, sizeof(t->first));
	t->row = row;
	t->rows = rows;
	t->free = ID_NONE;
}

uint16_t id_table_find(const struct id_table *t, uint64_t id)
{
	uint16_t i = t->bucket[id_bucket(id)];

	while (i != ID_NONE && t->row[i].id != id)
		i = t->row[i].chain;
	return i;
}

uint16_t id_table_add(struct id_table *t, uint64_t id)
{
	uint16_t *bucket = &t->bucket[id_bucket(id)];
	uint16_t i = t->free;

	if (i != ID_NONE)
		t->free = t->row[i].chain;
	else if (t->high < t->rows)
		i = t->high++;
	else
		return ID_NONE;
	t->row[i] = (struct id_row){ .id = id, .chain = *bucket, .next = ID_NONE, .used = true };
	*bucket = i;
	return i;
}

void id_table_remove(struct id_table *t, uint16_t row)
{
	uint16_t *link = &t->bucket[id_bucket(t->row[row].id)];

	while (*link != row)
		link = &t->row[*link].chain;
	*link = t->row[row].chain;
	t->row[row].used = false;
	t->row[row].present = false;
	t->row[row].chain = t->free;
	t->free = row;
}

void id_table_list(struct id_table *t)
{
	uint16_t i, *first;

	memset(t->first, 0xff, sizeof(t->first));
	for (i = 0; i < t->high; i++) {
		if (!t->row[i].used)
			continue;
		first = &t->first[t->row[i].target];
		t->row[i].next = *first;
		*first = i;
	}
}

void id_table_absent(struct id_table *t)
{
	uint16_t i;

	for (i = 0; i < t->high; i++)
		t->row[i].present = false;
}
