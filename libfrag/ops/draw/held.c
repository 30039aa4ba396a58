// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "held.h"

struct held *draw_held_create(struct messages *messages)
{
	struct held *held = calloc(1, sizeof(*held) + messages->count * sizeof(held->items[0]));

	if (held == NULL)
		return NULL;
	held->count = messages->count;
	held->own = messages->own;
	messages->own = NULL;
	for (size_t i = 0; i < messages->count; i++) {
		if (messages->items[i] != NULL)
			held->items[i] = frag_message_ref(messages->items[i]);
	}
	return held;
}

void draw_held_destroy(struct held *held)
{
	for (size_t i = 0; held != NULL && i < held->count; i++)
		frag_message_unref(held->items[i]);
	if (held != NULL)
		draw_layers_release(held->own);
	free(held);
}

static int resize_canvas(struct canvas *canvas, int64_t columns, int64_t rows)
{
	uint8_t *pixels;

	if (canvas->columns == columns && canvas->rows == rows)
		return 0;
	pixels = realloc(canvas->pixels, (size_t)(rows * columns) * 3);
	if (pixels == NULL)
		return -ENOMEM;
	*canvas = (struct canvas){.pixels = pixels, .rows = rows, .columns = columns};
	return 0;
}

int draw_held_draw(const struct layers *layers, const struct held *held, struct canvas *canvas)
{
	const struct messages messages = {(const struct frag_message *const *)held->items,
					  held->count, held->own};
	int64_t columns, rows;
	int r;

	draw_layers_size(layers, &messages, &columns, &rows);
	r = resize_canvas(canvas, columns, rows);
	if (r == 0)
		draw_layers_draw(layers, &messages, canvas);
	return r;
}
