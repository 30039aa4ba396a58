// SPDX-License-Identifier: Apache-2.0
#include <fragctl/table.h>

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define SECOND_NS INT64_C(1000000000)
#define CELL_SIZE 256

const char *ctl_age(int64_t ns, char *out, size_t size)
{
	int64_t s = ns / SECOND_NS;

	if (s < 100)
		snprintf(out, size, "%" PRId64 " s", s);
	else if (s < 100 * 60)
		snprintf(out, size, "%" PRId64 " min", s / 60);
	else if (s < 48 * 3600)
		snprintf(out, size, "%" PRId64 " h", s / 3600);
	else
		snprintf(out, size, "%" PRId64 " d", s / 86400);
	return out;
}

static const void *value_of(const struct ctl_column *column, const void *row)
{
	return (const char *)row + column->offset;
}

static const char *text_of(const struct ctl_column *column, const void *row)
{
	return *(const char *const *)value_of(column, row);
}

static int64_t number_of(const struct ctl_column *column, const void *row)
{
	const void *value = value_of(column, row);

	return column->kind == CTL_BOOL  ? *(const bool *)value
	       : column->kind == CTL_I32 ? *(const int32_t *)value
	       : column->kind == CTL_U32 ? *(const uint32_t *)value
					 : *(const int64_t *)value;
}

static void member(struct ctl_json *json, const struct ctl_column *column, const void *row)
{
	char made[CELL_SIZE];

	switch (column->kind) {
	case CTL_TEXT:
		ctl_json_text(json, column->member, text_of(column, row));
		break;
	case CTL_OPTIONAL:
		ctl_json_optional(json, column->member, text_of(column, row));
		break;
	case CTL_NAME:
		ctl_json_text(json, column->member, column->name(row));
		break;
	case CTL_MADE:
		ctl_json_text(json, column->member, column->make(row, made, sizeof(made)));
		break;
	case CTL_BOOL:
		ctl_json_bool(json, column->member, number_of(column, row) != 0);
		break;
	case CTL_U64:
		ctl_json_unsigned(json, column->member, (uint64_t)number_of(column, row));
		break;
	case CTL_I32:
	case CTL_U32:
	case CTL_I64:
	case CTL_AGE:
		ctl_json_number(json, column->member, number_of(column, row));
		break;
	case CTL_ROWS:
		ctl_rows_json(json, column->member, column->rows,
			      *(const void *const *)value_of(column, row),
			      *(const uint32_t *)((const char *)row + column->count_offset));
		break;
	case CTL_ELSE:
		column->write(row, json);
		break;
	}
}

void ctl_row_members(struct ctl_json *json, const struct ctl_columns *columns, const void *row)
{
	for (size_t i = 0; i < columns->count; i++)
		if (columns->items[i].member != NULL)
			member(json, &columns->items[i], row);
}

void ctl_json_document(const struct ctl_columns *columns, const void *row, FILE *out)
{
	struct ctl_json json = ctl_json_begin(out);

	ctl_row_members(&json, columns, row);
	ctl_json_end(&json);
}

void ctl_row_json(struct ctl_json *json, const char *name, const struct ctl_columns *columns,
		  const void *row)
{
	ctl_json_open(json, name, '{');
	ctl_row_members(json, columns, row);
	ctl_json_close(json, '}');
}

void ctl_rows_json(struct ctl_json *json, const char *name, const struct ctl_columns *columns,
		   const void *rows, size_t count)
{
	ctl_json_open(json, name, '[');
	for (size_t i = 0; i < count; i++)
		ctl_row_json(json, NULL, columns, (const char *)rows + i * columns->row_size);
	ctl_json_close(json, ']');
}

static const char *cell(const struct ctl_column *column, const void *row, char *out, size_t size)
{
	if (column->kind == CTL_NAME)
		return column->name(row);
	if (column->kind == CTL_MADE)
		return column->make(row, out, size);
	if (column->kind == CTL_TEXT || column->kind == CTL_OPTIONAL)
		return text_of(column, row);
	if (column->kind == CTL_AGE)
		return ctl_age(number_of(column, row), out, size);
	if (column->kind == CTL_U64)
		snprintf(out, size, "%" PRIu64, (uint64_t)number_of(column, row));
	else
		snprintf(out, size, "%" PRId64, number_of(column, row));
	return out;
}

static void widen(int *width, const char *text, bool any)
{
	size_t length = any ? strlen(text) : strnlen(text, CTL_TABLE_WIDTH_MAX);

	if ((int)length > *width)
		*width = (int)length;
}

/* row NULL: the titles */
static void put_row(struct ctl_table *table, const struct ctl_columns *columns, const void *row)
{
	int blanks = columns->indent, *width = table->widths, padding;
	char made[CELL_SIZE];
	const char *text;

	for (size_t i = 0; i < columns->count; i++) {
		const struct ctl_column *column = &columns->items[i];

		if (column->title == NULL)
			continue;
		text = row != NULL ? cell(column, row, made, sizeof(made)) : column->title;
		if (!table->prints)
			widen(width, text, columns->indent > 0);
		padding = *width++ - (int)strlen(text);
		padding = padding > 0 ? padding : 0;
		if (table->prints && (text[0] != '\0' || columns->indent == 0)) {
			blanks += column->is_right ? padding : 0;
			fprintf(table->out, "%*s%s", blanks, "", text);
			blanks = 2 + (column->is_right ? 0 : padding);
		} else {
			blanks += 2 + padding;
		}
	}
	if (table->prints)
		fputc('\n', table->out);
}

void ctl_table_row(struct ctl_table *table, const struct ctl_columns *columns, const void *row)
{
	put_row(table, columns, row);
}

void ctl_table_note(const struct ctl_table *table, const char *format, ...)
{
	va_list args;

	if (!table->prints)
		return;
	va_start(args, format);
	vfprintf(table->out, format, args);
	va_end(args);
	fputc('\n', table->out);
}

void ctl_table_print(FILE *out, const struct ctl_columns *columns,
		     void (*each)(struct ctl_table *table, const void *arg), const void *arg)
{
	struct ctl_table table = {.out = out};
	size_t at = 0;

	for (size_t i = 0; i < columns->count; i++)
		if (columns->items[i].title != NULL)
			table.widths[at++] = columns->items[i].width;
	put_row(&table, columns, NULL);
	each(&table, arg);
	table.prints = true;
	put_row(&table, columns, NULL);
	each(&table, arg);
}
