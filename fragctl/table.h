/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <frag/error.h>
#include <fragctl/json.h>

/*
 * Rows with columns. One description of the columns serves to print rows as a table for people and
 * as JSON for programs.
 */

#define CTL_TABLE_COLUMNS 12
#define CTL_TABLE_WIDTH_MAX 64 /* a wider cell is printed whole, and moves the rest of its row */

enum ctl_kind {
	CTL_TEXT,     /* const char *; NULL is null in JSON */
	CTL_OPTIONAL, /* const char *; empty is null in JSON */
	CTL_BOOL,
	CTL_I32,
	CTL_U32,
	CTL_U64,
	CTL_I64,
	CTL_AGE,  /* int64_t of nanoseconds; "3 min" for people */
	CTL_NAME, /* name, as a text */
	CTL_MADE, /* make, in a table; as a text in JSON */
	CTL_ROWS, /* JSON only: an array of rows with columns of their own */
	CTL_ELSE, /* JSON only: write */
};

struct ctl_column {
	const char *member; /* of JSON; NULL: only in tables */
	const char *title;  /* NULL: only in JSON */
	int width;          /* at least */
	bool is_right;      /* aligned */
	enum ctl_kind kind;
	size_t offset;                        /* of the value, in the row */
	const char *(*name)(const void *row); /* CTL_NAME */
	/* CTL_MADE: returns a text, maybe in out */
	const char *(*make)(const void *row, char *out, size_t size);
	/* CTL_ELSE: writes the member */
	void (*write)(const void *row, struct ctl_json *json);
	/* CTL_ROWS: the pointer is at offset; a uint32_t counts them */
	const struct ctl_columns *rows;
	size_t count_offset;
};
/* The rest of a row in the description above: its kind and its place in a struct. */
#define CTL_AT(KIND, TYPE, FIELD) .kind = (KIND), .offset = offsetof(struct TYPE, FIELD)

struct ctl_columns {
	const struct ctl_column *items;
	size_t count;
	size_t row_size; /* for arrays of rows */
	/* of a table inside a text: its columns have any width, its lines no blanks at their end */
	int indent;
};
#define CTL_COLUMNS(ITEMS, TYPE)                                                                   \
	{                                                                                          \
		(ITEMS), sizeof(ITEMS) / sizeof((ITEMS)[0]), sizeof(struct TYPE)                   \
	}

/* "12 s", "3 min", "5 h", "4 d" into out. Returns out. */
const char *ctl_age(int64_t ns, char *out, size_t size);

/* The members of the row's object, which is open. */
void ctl_row_members(struct ctl_json *json, const struct ctl_columns *columns, const void *row);
/* A document, which ends with a line. */
void ctl_json_document(const struct ctl_columns *columns, const void *row, FILE *out);
/* An object. */
void ctl_row_json(struct ctl_json *json, const char *name, const struct ctl_columns *columns,
		  const void *row);
/* An array of objects. */
void ctl_rows_json(struct ctl_json *json, const char *name, const struct ctl_columns *columns,
		   const void *rows, size_t count);

/* A table whose columns are as wide as their widest cells, within a bound. */
struct ctl_table {
	FILE *out;
	int widths[CTL_TABLE_COLUMNS];
	bool prints; /* false: rows only widen the columns */
};
/*
 * Prints the titles of these columns, and the rows that `each` puts with the functions below. It is
 * called twice, first for the widths.
 */
void ctl_table_print(FILE *out, const struct ctl_columns *columns,
		     void (*each)(struct ctl_table *table, const void *arg), const void *arg);
/* Nothing follows the last cell, unless that is aligned to the right. */
void ctl_table_row(struct ctl_table *table, const struct ctl_columns *columns, const void *row);
/* A line below the row. */
void ctl_table_note(const struct ctl_table *table, const char *format, ...) FRAG_PRINTF(2, 3);

#endif
