/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRAW_LAYER_TENSORS_H
#define DRAW_LAYER_TENSORS_H

#include "entries.h"

/* The tensors of layers in messages. What reads one returns NULL, or what is wrong with it. */

/* Returns the first message with a tensor of that name; NULL: none has it. */
const struct frag_message *draw_holder(const struct messages *messages, const char *name);
struct frag_tensor *draw_find(const struct messages *messages, const char *name);

/* Frames may lie on a GPU: they are copied, or the steps of draw_layers_draw refer to them. */
const char *draw_read_frame(const struct frag_tensor *tensor, struct frame *out);
/* The same, also of u16. */
const char *draw_read_picture(const struct frag_tensor *tensor, struct frame *out);
/* Reads the masks of several boxes as one high frame: [n * rows, columns, 1]. */
const char *draw_read_masks(const struct frag_tensor *tensor, int64_t boxes, struct frame *out);

/* The tensor of i32 that says what a layer of text writes; NULL: none. */
const char *draw_selector(const struct layer *layer);
/* Whether a layer of text shows the lines of the text that the message of its tensor carries. */
bool draw_shows_lines(const struct layer *layer);

/* The tensor of the first layer of colours for depth maps; NULL: none is there. */
const struct frag_tensor *draw_depth_colors(const struct layers *layers,
					    const struct messages *messages);
/* Reads a depth map with these colours. */
const char *draw_read_depths(const struct layers *layers, const struct messages *messages,
			     const struct frag_tensor *tensor, struct space *out);

/* Checks the tensor of a layer, and those that it refers to. */
const char *draw_check_layer(const struct layers *layers, const struct layer *layer,
			     const struct messages *messages, const struct frag_tensor *tensor);

#endif
