/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include <stdbool.h>

/* A table on stdout: each column is as wide as its widest cell, within a bound. */

#define CTL_TABLE_COLUMNS 8
#define CTL_TABLE_WIDTH_MAX 64 /* a wider cell is printed whole, and moves the rest of its row */

struct ctl_table {
	struct ctl_table_column {
		const char *title; /* NULL: no more columns */
		int width;         /* at least */
		bool is_right;     /* aligned */
	} columns[CTL_TABLE_COLUMNS];
	bool prints; /* false: rows only widen their columns */
};

/*
 * One cell for each column. The rows are given twice, before and after prints is set. Nothing
 * follows the last cell, unless that is aligned to the right.
 */
void ctl_table_row(struct ctl_table *table, const char *const *cells);
/* The rows that follow are printed, below the titles. */
void ctl_table_print(struct ctl_table *table);

#endif
