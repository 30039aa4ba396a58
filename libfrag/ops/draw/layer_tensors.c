// SPDX-License-Identifier: Apache-2.0
#include "layer_tensors.h"

#define DEPTHS_MAX 1048576

/* Returns the first message with a tensor of that name; NULL: none has it. */
const struct frag_message *draw_holder(const struct messages *messages, const char *name)
{
	for (size_t i = 0; i < messages->count; i++) {
		if (messages->items[i] != NULL && frame_tensor(messages->items[i], name) != NULL)
			return messages->items[i];
	}
	return NULL;
}

struct frag_tensor *draw_find(const struct messages *messages, const char *name)
{
	const struct frag_message *message = draw_holder(messages, name);

	return message != NULL ? frame_tensor(message, name) : NULL;
}

/* Frames may lie on a GPU: they are copied, or the steps of draw_layers_draw refer to them. */
const char *draw_read_frame(const struct frag_tensor *tensor, struct frame *out)
{
	const char *reason;

	if (frame_anywhere(tensor, out, &reason) < 0)
		return reason;
	return out->is_float ? "its elements are f32; convert it with format_converter before"
			     : NULL;
}

/* The same, also of u16. */
const char *draw_read_picture(const struct frag_tensor *tensor, struct frame *out)
{
	const char *reason;

	if (frame_deep_anywhere(tensor, out, &reason) == 0 && out->is_deep)
		return NULL;
	return draw_read_frame(tensor, out);
}

/* Reads the masks of several boxes as one high frame: [n * rows, columns, 1]. */
const char *draw_read_masks(const struct frag_tensor *tensor, int64_t boxes, struct frame *out)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);

	if (!draw_is_compact_anywhere(tensor, FRAG_DTYPE_UINT, 8))
		return "it is not a tensor of u8 without gaps";
	if (dl->ndim < 3 || dl->ndim > 4 || (dl->ndim == 4 && dl->shape[3] != 1))
		return "it is not [n, rows, columns] or [n, rows, columns, 1]";
	if (dl->shape[0] != boxes)
		return "it has another number of masks than there are boxes";
	if (boxes > 0 && (dl->shape[1] < 1 || dl->shape[2] < 1 || dl->shape[1] > FRAME_SIDE_MAX ||
			  dl->shape[2] > FRAME_SIDE_MAX))
		return "its sides are not from 1 to 32767";
	*out = (struct frame){.data = frag_tensor_data(tensor),
			      .rows = dl->shape[1],
			      .columns = dl->shape[2],
			      .channels = 1,
			      .row_bytes = (size_t)dl->shape[2]};
	return NULL;
}

/* The tensor of i32 that says what a layer of text writes; NULL: none. */
const char *draw_selector(const struct layer *layer)
{
	return layer->numbers != NULL ? layer->numbers : layer->classes;
}

/* Whether a layer of text shows the lines of the text that the message of its tensor carries. */
bool draw_shows_lines(const struct layer *layer)
{
	return layer->type == LAYER_TEXT && layer->text == NULL && layer->numbers == NULL;
}

static bool carries_text(const struct frag_message *message)
{
	return frag_message_value(message, NULL, NULL) == &frag_type_string;
}

/* Reads the colours of a depth map. */
static const char *read_colors(const struct frag_tensor *tensor, struct frame *out)
{
	const char *reason = draw_read_frame(tensor, out);

	if (reason == NULL && !draw_is_compact_anywhere(tensor, FRAG_DTYPE_UINT, 8))
		return "it has gaps";
	return reason != NULL || out->channels >= 3 ? reason : "it has not 3 or 4 channels";
}

/* The corner of row 0 and column 0 has the least x and y, as in Holoviz. */
static void depth_corner(const struct space *space, int64_t i, double out[3])
{
	out[0] = (double)(i % space->columns) / (double)space->columns - 0.5;
	out[1] = (double)(i / space->columns) / (double)space->rows - 0.5;
	out[2] = space->is_wide ? (double)((const float *)space->data)[i]
				: ((const uint8_t *)space->data)[i] / 255.0;
}

/* The tensor of the first layer of such colours; NULL: none is there. */
const struct frag_tensor *draw_depth_colors(const struct layers *layers,
					    const struct messages *messages)
{
	for (size_t i = 0; i < layers->count; i++)
		if (layers->items[i].type == LAYER_DEPTH_MAP_COLOR)
			return draw_find(messages, layers->items[i].name);
	return NULL;
}

const char *draw_read_depths(const struct layers *layers, const struct messages *messages,
			     const struct frag_tensor *tensor, struct space *out)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	const bool is_wide = draw_is_compact_anywhere(tensor, FRAG_DTYPE_FLOAT, 32);
	const struct frag_tensor *colors = draw_depth_colors(layers, messages);
	struct frame frame;

	if (!is_wide && !draw_is_compact_anywhere(tensor, FRAG_DTYPE_UINT, 8))
		return "it is not a tensor of u8 or f32 without gaps";
	if (dl->ndim < 2 || dl->ndim > 3 || (dl->ndim == 3 && dl->shape[2] != 1))
		return "it is not [rows, columns] or [rows, columns, 1]";
	if (draw_element_count(tensor) > DEPTHS_MAX)
		return "it has more than 1048576 depths; make it smaller with resize";
	*out = (struct space){.corners = draw_element_count(tensor),
			      .corner = depth_corner,
			      .data = frag_tensor_data(tensor),
			      .is_wide = is_wide,
			      .rows = dl->shape[0],
			      .columns = dl->shape[1]};
	if (colors == NULL || read_colors(colors, &frame) != NULL)
		return NULL;
	if (frame.rows != out->rows || frame.columns != out->columns)
		return "its layer depth_map_color has other sides";
	if (frame_is_on_host(colors) != frame_is_on_host(tensor))
		return "one of it and its layer depth_map_color lies on a GPU, the other one does not";
	out->colors = frag_tensor_data(colors);
	out->channels = frame.channels;
	return NULL;
}

/* Checks the tensor of a layer, and those that it refers to. Returns what is wrong, or NULL. */
const char *draw_check_layer(const struct layers *layers, const struct layer *layer,
			     const struct messages *messages, const struct frag_tensor *tensor)
{
	const struct frag_tensor *other;
	struct entries entries;
	struct space space;
	struct frame frame;
	const char *reason;

	if (layer->type == LAYER_DEPTH_MAP_COLOR)
		return read_colors(tensor, &frame);
	if (layer->type == LAYER_DEPTH_MAP)
		return draw_read_depths(layers, messages, tensor, &space);

	if (layer->type == LAYER_COLOR)
		return draw_read_picture(tensor, &frame);
	if (layer->type == LAYER_COLOR_LUT && layer->boxes == NULL) {
		reason = draw_read_frame(tensor, &frame);
		return reason != NULL || frame.channels == 1 ? reason : "it has several channels";
	}
	if (layer->type == LAYER_COLOR_LUT) {
		other = draw_find(messages, layer->boxes);
		if (other == NULL)
			return "the tensor that its key boxes names is in no message";
		reason = draw_entries_read(other, LAYER_RECTANGLES, &entries);
		return reason != NULL ? "its boxes are not [n, 4] of f32"
				      : draw_read_masks(tensor, entries.count, &frame);
	}
	reason = draw_entries_read(tensor, layer->type, &entries);
	if (reason == NULL && draw_shows_lines(layer) &&
	    !carries_text(draw_holder(messages, layer->name)))
		return "its message carries no text, and the layer has neither text nor numbers";
	if (reason != NULL || layer->type != LAYER_TEXT || draw_selector(layer) == NULL)
		return reason;
	other = draw_find(messages, draw_selector(layer));
	if (other == NULL)
		return "the tensor that its key classes or numbers names is in no message";
	if (!draw_is_compact(other, FRAG_DTYPE_INT, 32) ||
	    draw_element_count(other) < entries.count)
		return "its classes or numbers are not one i32 for each entry";
	return NULL;
}

int draw_layers_check(const struct layers *layers, const struct messages *messages,
		      struct frag_err *err)
{
	bool is_complete = true;

	layers = messages->own != NULL ? messages->own : layers;
	for (size_t i = 0; i < messages->count; i++)
		is_complete = is_complete && messages->items[i] != NULL;
	for (size_t i = 0; i < layers->count; i++) {
		const struct layer *layer = &layers->items[i];
		const struct frag_tensor *tensor = draw_find(messages, layer->name);
		const char *reason;

		if (tensor == NULL && is_complete)
			return frag_err_set(
				err, -EINVAL,
				"no message holds a tensor \"%.80s\"; set tensors to the names that the senders give",
				layer->name);
		reason = tensor != NULL ? draw_check_layer(layers, layer, messages, tensor) : NULL;
		if (reason != NULL && is_complete)
			return frag_err_set(
				err, -EINVAL,
				"tensor \"%.80s\" cannot be drawn as its layer says: %s",
				layer->name, reason);
	}
	return 0;
}
