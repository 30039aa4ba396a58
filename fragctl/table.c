// SPDX-License-Identifier: Apache-2.0
#include <fragctl/table.h>

#include <stdio.h>
#include <string.h>

static bool is_last(const struct ctl_table *table, int i)
{
	return i + 1 == CTL_TABLE_COLUMNS || table->columns[i + 1].title == NULL;
}

static void widen(struct ctl_table_column *column, const char *cell)
{
	size_t length = strnlen(cell, CTL_TABLE_WIDTH_MAX);

	if ((int)length > column->width)
		column->width = (int)length;
}

void ctl_table_row(struct ctl_table *table, const char *const *cells)
{
	for (int i = 0; i < CTL_TABLE_COLUMNS && table->columns[i].title != NULL; i++) {
		struct ctl_table_column *column = &table->columns[i];

		if (!table->prints)
			widen(column, cells[i]);
		else if (column->is_right)
			printf("%*s%s", column->width, cells[i], is_last(table, i) ? "\n" : "  ");
		else if (is_last(table, i))
			printf("%s\n", cells[i]);
		else
			printf("%-*s  ", column->width, cells[i]);
	}
}

void ctl_table_print(struct ctl_table *table)
{
	const char *titles[CTL_TABLE_COLUMNS];

	for (int i = 0; i < CTL_TABLE_COLUMNS; i++) {
		titles[i] = table->columns[i].title;
		if (titles[i] == NULL)
			break;
		widen(&table->columns[i], titles[i]);
	}
	table->prints = true;
	ctl_table_row(table, titles);
}
