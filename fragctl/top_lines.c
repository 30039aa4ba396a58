// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* wcwidth */
#include <fragctl/top_lines.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <base/printable.h>
#include <base/sentence.h>

#define TEXT_MAX 2048 /* of a line that is formatted */

const char *ctl_top_text(const char *text)
{
	return text != NULL ? text : "";
}

const char *ctl_top_late(const struct fragi_look_operator *op, char out[CTL_TOP_LATE_SIZE])
{
	const uint64_t sum = fragi_late_sum(op->late_sums);
	char causes[FRAGI_LATE_TEXT_SIZE];

	out[0] = '\0';
	if (sum > 0)
		snprintf(out, CTL_TOP_LATE_SIZE, "%" PRIu64 " message%s late (%s)", sum,
			 sum == 1 ? "" : "s",
			 fragi_late_text(op->late_sums, op->late_places, op->late_place_count,
					 causes));
	return out;
}

int ctl_top_begin(struct ctl_top_drawing *d, const struct ctl_top *top)
{
	*d = (struct ctl_top_drawing){.top = top};
	d->out = open_memstream(&d->text, &d->size);
	return d->out != NULL ? 0 : -ENOMEM;
}

int ctl_top_end(struct ctl_top_drawing *d, struct ctl_top_lines *out)
{
	const char *at;
	bool failed = ferror(d->out) != 0 || d->is_short;

	if (fclose(d->out) != 0 || failed) {
		free(d->items);
		free(d->text);
		return -ENOMEM;
	}
	at = d->text;
	for (uint32_t i = 0; i < d->count; i++) {
		d->items[i].text = at;
		at += strlen(at) + 1;
	}
	*out = (struct ctl_top_lines){d->items, d->count, d->text};
	return 0;
}

void ctl_top_lines_free(struct ctl_top_lines *lines)
{
	free(lines->items);
	free(lines->text);
	*lines = (struct ctl_top_lines){0};
}

void ctl_top_line(struct ctl_top_drawing *d, enum ctl_top_style style, uint32_t app, uint32_t op)
{
	if (d->count == d->capacity) {
		uint32_t capacity = d->capacity > 0 ? 2 * d->capacity : 64;
		void *items = realloc(d->items, capacity * sizeof(*d->items));

		if (items == NULL) {
			d->is_short = true;
			return;
		}
		d->items = items;
		d->capacity = capacity;
	}
	fputc('\0', d->out);
	d->items[d->count++] = (struct ctl_top_line){.style = style, .app = app, .op = op};
	d->follows = false;
}

/* Columns of the character at text, and its length; what does not print takes one column. */
static uint32_t columns_of(const char *text, size_t *length)
{
	mbstate_t state = {0};
	size_t n = fragi_printable(text), used;
	wchar_t wide;
	int columns;

	*length = n > 0 ? n : 1;
	if (n == 0)
		return 1;
	used = mbrtowc(&wide, text, n, &state);
	columns = used != n ? 1 : wcwidth(wide);
	return columns >= 0 ? (uint32_t)columns : 1;
}

uint32_t ctl_top_width(const char *text)
{
	uint32_t width = 0;
	size_t length;

	for (; *text != '\0'; text += length)
		width += columns_of(text, &length);
	return width;
}

void ctl_top_cell(struct ctl_top_drawing *d, const char *text, uint32_t width, bool is_right)
{
	uint32_t has = ctl_top_width(text), used = 0, room = has > width ? width - 1 : width;
	size_t length;

	if (d->follows)
		fputc(' ', d->out);
	d->follows = true;
	for (uint32_t i = has; is_right && i < width; i++)
		fputc(' ', d->out);
	for (; *text != '\0'; text += length) {
		uint32_t columns = columns_of(text, &length);

		if (used + columns > room)
			break;
		used += columns;
		if (fragi_printable(text) > 0)
			fwrite(text, 1, length, d->out);
		else
			fputc('?', d->out);
	}
	if (has > width) {
		fputc('~', d->out);
		used++;
	}
	for (; !is_right && used < width; used++)
		fputc(' ', d->out);
}

void ctl_top_number(struct ctl_top_drawing *d, uint32_t width, const char *format, ...)
{
	char text[64];
	va_list args;

	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	ctl_top_cell(d, text, width, true);
}

static void whole(struct ctl_top_drawing *d, enum ctl_top_style style, const char *text)
{
	uint32_t width = ctl_top_width(text);

	if (width > 0)
		ctl_top_cell(d, text,
			     d->top->width > 0 && width > d->top->width ? d->top->width : width,
			     false);
	ctl_top_line(d, style, FRAGI_LOOK_NONE, FRAGI_LOOK_NONE);
}

void ctl_top_put(struct ctl_top_drawing *d, enum ctl_top_style style, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	whole(d, style, text);
}

void ctl_top_wrap(struct ctl_top_drawing *d, enum ctl_top_style style, uint32_t lines,
		  const char *text)
{
	char part[TEXT_MAX];

	while (lines > 1 && d->top->width > 0 && ctl_top_width(text) > d->top->width) {
		size_t end = 0, length;
		uint32_t used = 0;

		for (size_t i = 0; text[i] != '\0' && used <= d->top->width; i += length) {
			if (text[i] == ' ' && i > 0)
				end = i;
			used += columns_of(text + i, &length);
		}
		if (end == 0 || end >= sizeof(part))
			break;
		snprintf(part, sizeof(part), "%.*s", (int)end, text);
		whole(d, style, part);
		text += end + 1;
		lines--;
	}
	whole(d, style, text);
}

const char *ctl_top_size(uint64_t bytes, char *out, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t i = 0;

	for (; value >= 1000 && i < 4; i++)
		value /= 1024;
	snprintf(out, size, value < 10 && i > 0 ? "%.1f %s" : "%.0f %s", value, units[i]);
	return out;
}

const char *ctl_top_level(const struct fragi_look_pool *pool, char *out, size_t size)
{
	char used[32], all[32];

	if (pool->block_bytes == 1)
		snprintf(out, size, "%s of %s", ctl_top_size(pool->used, used, sizeof(used)),
			 ctl_top_size(pool->blocks, all, sizeof(all)));
	else
		snprintf(out, size, "%" PRIu64 " of %" PRIu64 " blocks of %s", pool->used,
			 pool->blocks, ctl_top_size(pool->block_bytes, all, sizeof(all)));
	return out;
}
