/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRAW_HELD_H
#define DRAW_HELD_H

#include "layers.h"

/* The messages of one tick, held longer than the tick. */
struct held {
	size_t count;
	struct layers *own;           /* as of messages */
	struct frag_message *items[]; /* NULL where a flow has none */
};

/* Takes a reference to each message, and their own layers. NULL: memory is short. */
struct held *draw_held_create(struct messages *messages);
/* Drops them. NULL is accepted. */
void draw_held_destroy(struct held *held);
/*
 * Draws them into a canvas, whose pixels are the caller's to free; they are made anew where the
 * picture has another size. Returns 0 or -ENOMEM.
 */
int draw_held_draw(const struct layers *layers, const struct held *held, struct canvas *canvas);

#endif
