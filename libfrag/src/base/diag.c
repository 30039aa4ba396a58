// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/diag.h>
#include <base/printable.h>
#include <base/sentence.h>

/*
 * Returns a zeroed item at the end of the list; NULL when the list is full or memory is short: the
 * error is then only counted.
 */
static struct frag_err *diag_next(struct fragi_diag *diag)
{
	size_t capacity = diag->capacity == 0 ? 4 : diag->capacity * 2;
	struct frag_err *items;

	if (diag->count >= FRAGI_DIAG_MAX)
		goto err_beyond;
	if (diag->count == diag->capacity) {
		items = fragi_realloc(diag->items, capacity * sizeof(*items));
		if (items == NULL)
			goto err_beyond;
		diag->items = items;
		diag->capacity = capacity;
	}
	items = &diag->items[diag->count++];
	memset(items, 0, sizeof(*items));
	items->struct_size = sizeof(*items);
	return items;

err_beyond:
	diag->beyond++;
	return NULL;
}

int fragi_diag_add(struct fragi_diag *diag, int code, const char *file, int line, int column,
		   const char *format, ...)
{
	struct frag_err *item = diag_next(diag);
	char text[sizeof(item->text)];
	va_list args;

	if (item == NULL)
		return code;
	item->line = line;
	item->column = column;
	if (file != NULL)
		snprintf(item->file, sizeof(item->file), "%s", file);
	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	return frag_err_set(item, code, "%s", text);
}

int fragi_diag_add_err(struct fragi_diag *diag, const struct frag_err *err)
{
	struct frag_err *item = diag_next(diag);

	if (item != NULL)
		*item = *err;
	return err->code;
}

void fragi_diag_compare(struct fragi_diag *diag, const char *required, const char *provided)
{
	struct frag_err *last;

	if (diag->beyond > 0 || diag->count == 0)
		return;
	last = &diag->items[diag->count - 1];
	snprintf(last->required, sizeof(last->required), "%s", required);
	snprintf(last->provided, sizeof(last->provided), "%s", provided);
}

/* Returns the rank of errors[i]'s file: the index of the first error that names it. */
static size_t file_rank(const struct frag_err *errors, size_t i)
{
	size_t rank = 0;

	while (strcmp(errors[rank].file, errors[i].file) != 0)
		rank++;
	return rank;
}

static bool is_same(const struct frag_err *a, const struct frag_err *b)
{
	return a->line == b->line && a->column == b->column && strcmp(a->file, b->file) == 0 &&
	       strcmp(a->text, b->text) == 0;
}

/* Of sorted items; those of one place are few. */
static void remove_repeated(struct fragi_diag *diag, size_t first)
{
	struct frag_err *items = diag->items;
	size_t kept = first, k;

	for (size_t i = first; i < diag->count; i++) {
		for (k = kept; k > first && !is_same(&items[k - 1], &items[i]); k--)
			;
		if (k == first)
			items[kept++] = items[i];
	}
	diag->count = kept;
}

void fragi_diag_sort(struct fragi_diag *diag, size_t first)
{
	size_t ranks[FRAGI_DIAG_MAX], count, rank, j;
	struct frag_err *errors, error;

	if (diag->count <= first)
		return;
	errors = diag->items + first;
	count = diag->count - first;
	for (size_t i = 0; i < count; i++)
		ranks[i] = file_rank(errors, i);
	for (size_t i = 1; i < count; i++) { /* few, and the order of equal places is kept */
		error = errors[i];
		rank = ranks[i];
		for (j = i; j > 0; j--) {
			const struct frag_err *before = &errors[j - 1];

			if (ranks[j - 1] != rank         ? ranks[j - 1] < rank
			    : before->line != error.line ? before->line < error.line
							 : before->column <= error.column)
				break;
			errors[j] = *before;
			ranks[j] = ranks[j - 1];
		}
		errors[j] = error;
		ranks[j] = rank;
	}
	remove_repeated(diag, first);
}

void fragi_diag_fini(struct fragi_diag *diag)
{
	fragi_free(diag->items);
	memset(diag, 0, sizeof(*diag));
}

const char *fragi_err_line(const struct frag_err *err, char *out, size_t size)
{
	if (err->line > 0)
		snprintf(out, size, "%s%s%d:%d: %s", err->file, err->file[0] != '\0' ? ":" : "",
			 err->line, err->column, err->text);
	else
		snprintf(out, size, "%s%s%s", err->file, err->file[0] != '\0' ? ": " : "",
			 err->text);
	fragi_make_printable(out, '?'); /* the name of a file may hold anything */
	return out;
}
