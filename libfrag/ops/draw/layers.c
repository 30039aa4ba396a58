/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "font.h"
#include "layers.h"
#include "levels.h"

#define TEXT_SIZE 0.05 /* Holoviz's default, as a share of the height */
#define TEXT_BYTES 256 /* of a line that is drawn */
#define ROWS_DEFAULT 1080
#define COLUMNS_DEFAULT 1920

/* Returns the first message with a tensor of that name; NULL: none has it. */
static const struct frag_message *holder(const struct messages *messages, const char *name)
{
	for (size_t i = 0; i < messages->count; i++) {
		if (messages->items[i] != NULL && frame_tensor(messages->items[i], name) != NULL)
			return messages->items[i];
	}
	return NULL;
}

static struct frag_tensor *find(const struct messages *messages, const char *name)
{
	const struct frag_message *message = holder(messages, name);

	return message != NULL ? frame_tensor(message, name) : NULL;
}

static bool is_compact_anywhere(const struct frag_tensor *tensor, uint8_t code, uint8_t bits)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);

	return dl->dtype.code == code && dl->dtype.bits == bits && dl->dtype.lanes == 1 &&
	       dl->ndim >= 1 && frag_tensor_is_compact(tensor);
}

static bool is_compact(const struct frag_tensor *tensor, uint8_t code, uint8_t bits)
{
	return is_compact_anywhere(tensor, code, bits) && frame_is_on_host(tensor);
}

/* Numbers of f32, in entries of the same count. */
struct entries {
	const float *numbers;
	int64_t count, width;
};

static int64_t element_count(const struct frag_tensor *tensor)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	int64_t count = 1;

	for (int32_t i = 0; i < dl->ndim; i++)
		count *= dl->shape[i];
	return count;
}

/* Reads geometry: the last dimension is a coordinate pair, or a whole entry of `width` numbers. */
static const char *read_entries(const struct frag_tensor *tensor, int64_t width,
				struct entries *out)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	int64_t count, last;

	if (!is_compact(tensor, FRAG_DTYPE_FLOAT, 32))
		return "it is not a tensor of f32 without gaps in host memory";
	last = dl->shape[dl->ndim - 1];
	count = element_count(tensor);
	if (last != width && !(last == 2 && width == 4))
		return "its last dimension is not the number of coordinates that the type has";
	if (count % width != 0)
		return "its corners do not come in pairs";
	if (count / width > LAYER_ENTRIES_MAX)
		return "it has more than 65536 entries";
	*out = (struct entries){frag_tensor_data(tensor), count / width, width};
	return NULL;
}

/* The width of a layer's entries; text has one more where it gives sizes, and points scores. */
static int64_t entry_width(const struct layer *layer, const struct frag_tensor *tensor)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);

	switch (layer->type) {
	case LAYER_CROSSES:
		return 3;
	case LAYER_RECTANGLES:
	case LAYER_LINES:
		return 4;
	case LAYER_POINTS: /* keypoints have a score, which is not drawn */
	case LAYER_TEXT:
		return dl->ndim >= 1 && dl->shape[dl->ndim - 1] == 3 ? 3 : 2;
	default:
		return 2;
	}
}

/* Frames may lie on a GPU: they are copied, or the steps of draw_layers_draw refer to them. */
static const char *read_frame(const struct frag_tensor *tensor, struct frame *out)
{
	const char *reason;

	if (frame_anywhere(tensor, out, &reason) < 0)
		return reason;
	return out->is_float ? "its elements are f32; convert it with format_converter before"
			     : NULL;
}

/* The same, also of u16. */
static const char *read_picture(const struct frag_tensor *tensor, struct frame *out)
{
	const char *reason;

	if (frame_deep_anywhere(tensor, out, &reason) == 0 && out->is_deep)
		return NULL;
	return read_frame(tensor, out);
}

/* Reads the masks of several boxes as one high frame: [n * rows, columns, 1]. */
static const char *read_masks(const struct frag_tensor *tensor, int64_t boxes, struct frame *out)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);

	if (!is_compact_anywhere(tensor, FRAG_DTYPE_UINT, 8))
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
static const char *selector(const struct layer *layer)
{
	return layer->numbers != NULL ? layer->numbers : layer->classes;
}

/* Whether a layer of text shows the lines of the text that the message of its tensor carries. */
static bool shows_lines(const struct layer *layer)
{
	return layer->type == LAYER_TEXT && layer->text == NULL && layer->numbers == NULL;
}

static bool carries_text(const struct frag_message *message)
{
	return frag_message_value(message, NULL, NULL) == &frag_type_string;
}

/* Checks the tensor of a layer, and those that it refers to. Returns what is wrong, or NULL. */
static const char *check_layer(const struct layer *layer, const struct messages *messages,
			       const struct frag_tensor *tensor)
{
	const struct frag_tensor *other;
	struct entries entries;
	struct frame frame;
	const char *reason;

	if (layer->type == LAYER_COLOR)
		return read_picture(tensor, &frame);
	if (layer->type == LAYER_COLOR_LUT && layer->boxes == NULL) {
		reason = read_frame(tensor, &frame);
		return reason != NULL || frame.channels == 1 ? reason : "it has several channels";
	}
	if (layer->type == LAYER_COLOR_LUT) {
		other = find(messages, layer->boxes);
		if (other == NULL)
			return "the tensor that its key boxes names is in no message";
		reason = read_entries(other, 4, &entries);
		return reason != NULL ? "its boxes are not [n, 4] of f32"
				      : read_masks(tensor, entries.count, &frame);
	}
	reason = read_entries(tensor, entry_width(layer, tensor), &entries);
	if (reason == NULL && shows_lines(layer) && !carries_text(holder(messages, layer->name)))
		return "its message carries no text, and the layer has neither text nor numbers";
	if (reason != NULL || layer->type != LAYER_TEXT || selector(layer) == NULL)
		return reason;
	other = find(messages, selector(layer));
	if (other == NULL)
		return "the tensor that its key classes or numbers names is in no message";
	if (!is_compact(other, FRAG_DTYPE_INT, 32) || element_count(other) < entries.count)
		return "its classes or numbers are not one i32 for each entry";
	return NULL;
}

int draw_layers_check(const struct layers *layers, const struct messages *messages,
		      struct frag_err *err)
{
	bool is_complete = true;

	for (size_t i = 0; i < messages->count; i++)
		is_complete = is_complete && messages->items[i] != NULL;
	for (size_t i = 0; i < layers->count; i++) {
		const struct layer *layer = &layers->items[i];
		const struct frag_tensor *tensor = find(messages, layer->name);
		const char *reason;

		if (tensor == NULL && is_complete)
			return frag_err_set(
				err, -EINVAL,
				"no message holds a tensor \"%.80s\"; set tensors to the names that the senders give",
				layer->name);
		reason = tensor != NULL ? check_layer(layer, messages, tensor) : NULL;
		if (reason != NULL && is_complete)
			return frag_err_set(
				err, -EINVAL,
				"tensor \"%.80s\" cannot be drawn as its layer says: %s",
				layer->name, reason);
	}
	return 0;
}

/* Where the frames of messages lie. */
struct places {
	bool on_gpu, on_host, is_deep;
	int32_t gpu;
};

static void note_place(struct places *places, const struct frag_tensor *tensor)
{
	if (element_count(tensor) == 0)
		return;
	places->is_deep = places->is_deep || frag_tensor_dl(tensor)->dtype.bits > 8;
	if (frame_is_on_host(tensor)) {
		places->on_host = true;
	} else {
		places->on_gpu = true;
		places->gpu = frag_tensor_dl(tensor)->device.id;
	}
}

static void note_picture(void *arg, const struct frag_tensor *tensor)
{
	struct frame frame;

	if (read_picture(tensor, &frame) == NULL)
		note_place(arg, tensor);
}

/* Calls `visit` with every tensor, which may be a layer by itself, where no layers are given. */
static void each_tensor(const struct messages *messages,
			void (*visit)(void *arg, const struct frag_tensor *tensor), void *arg)
{
	for (size_t i = 0; i < messages->count; i++) {
		uint32_t count = messages->items[i] != NULL
					 ? frag_message_tensor_count(messages->items[i])
					 : 0;

		for (uint32_t k = 0; k < count; k++)
			visit(arg, frag_message_tensor_at(messages->items[i], k, NULL));
	}
}

static void take_size(void *arg, const struct frag_tensor *tensor)
{
	struct canvas *size = arg;
	struct frame frame;

	if (size->rows != 0 || read_picture(tensor, &frame) != NULL)
		return;
	size->rows = frame.rows;
	size->columns = frame.columns;
}

void draw_layers_size(const struct layers *layers, const struct messages *messages,
		      int64_t *columns, int64_t *rows)
{
	struct canvas size = {0};

	if (layers->count == 0)
		each_tensor(messages, take_size, &size);
	for (size_t i = 0; i < layers->count; i++) {
		const struct frag_tensor *tensor = find(messages, layers->items[i].name);

		if (layers->items[i].type == LAYER_COLOR && tensor != NULL)
			take_size(&size, tensor);
	}
	*rows = layers->rows != 0 ? layers->rows : size.rows != 0 ? size.rows : ROWS_DEFAULT;
	*columns = layers->columns != 0 ? layers->columns
		   : size.columns != 0  ? size.columns
					: COLUMNS_DEFAULT;
}

bool draw_layers_suit_gpu(const struct layers *layers, const struct messages *messages,
			  struct frag_device *out)
{
	struct places places = {0};
	bool has_levels = false;

	if (layers->count == 0)
		each_tensor(messages, note_picture, &places);
	for (size_t i = 0; i < layers->count; i++) {
		const struct layer *layer = &layers->items[i];
		const struct frag_tensor *tensor = find(messages, layer->name);

		if (tensor == NULL ||
		    (layer->type != LAYER_COLOR && layer->type != LAYER_COLOR_LUT))
			continue;
		note_place(&places, tensor);
		has_levels = has_levels || layer->window[0] < layer->window[1] ||
			     layer->percentile[0] < layer->percentile[1];
	}
	*out = (struct frag_device){FRAG_DEVICE_CUDA, places.gpu};
	return places.on_gpu && !places.on_host && !places.is_deep && !has_levels;
}

static struct area all_of(const struct canvas *canvas)
{
	return (struct area){0, 0, canvas->columns, canvas->rows};
}

static struct area area_of(const struct canvas *canvas, const float *corners)
{
	double width = (double)canvas->columns, height = (double)canvas->rows;

	return draw_area(
		fmin(corners[0], corners[2]) * width, fmin(corners[1], corners[3]) * height,
		fmax(corners[0], corners[2]) * width, fmax(corners[1], corners[3]) * height);
}

static void draw_masks(const struct layers *layers, const struct layer *layer,
		       const struct messages *messages, const struct frag_tensor *tensor,
		       struct canvas *canvas)
{
	const struct palette palette = {layers->classes, layers->class_count};
	uint16_t alpha = (uint16_t)lrint(layer->opacity * 256.0);
	struct area area = all_of(canvas);
	struct entries boxes;
	struct frame frame;

	if (layer->boxes == NULL) {
		if (read_frame(tensor, &frame) == NULL)
			draw_frame(canvas, &area, &frame, &palette, alpha);
		return;
	}
	if (read_entries(find(messages, layer->boxes), 4, &boxes) != NULL ||
	    read_masks(tensor, boxes.count, &frame) != NULL)
		return;
	for (int64_t i = 0; i < boxes.count; i++) {
		area = area_of(canvas, boxes.numbers + i * 4);
		draw_frame(canvas, &area, &frame, &palette, alpha);
		frame.data = (const uint8_t *)frame.data + frame.rows * frame.columns;
	}
}

/* What a layer of text writes, place by place. */
struct writing {
	const struct layer *layer;
	const int32_t *selected; /* classes or numbers; NULL: none */
	const char *line, *end;  /* what is left of the message's lines */
	char buffer[TEXT_BYTES];
};

static const char *next_line(struct writing *writing)
{
	size_t left = (size_t)(writing->end - writing->line);
	const char *newline = left > 0 ? memchr(writing->line, '\n', left) : NULL;
	size_t size = newline != NULL ? (size_t)(newline - writing->line) : left;
	size_t shown = size < TEXT_BYTES ? size : TEXT_BYTES - 1;

	if (shown > 0)
		memcpy(writing->buffer, writing->line, shown);
	writing->buffer[shown] = '\0';
	writing->line += newline != NULL ? size + 1 : size;
	return writing->buffer;
}

/* Returns what is written at place i; the places are asked for in order. */
static const char *text_at(struct writing *writing, int64_t i)
{
	const struct layer *layer = writing->layer;
	size_t which = (size_t)(writing->selected != NULL ? writing->selected[i] : i);

	if (shows_lines(layer))
		return next_line(writing);
	if (layer->numbers != NULL) {
		snprintf(writing->buffer, sizeof(writing->buffer), "%d", (int)writing->selected[i]);
		return writing->buffer;
	}
	/* Holoviz repeats the last text for further places; a class has its own or none. */
	if (which >= layer->text->count)
		return writing->selected != NULL ? ""
						 : layer->text->items[layer->text->count - 1].text;
	return layer->text->items[which].text;
}

static void draw_texts(const struct layer *layer, const struct messages *messages,
		       const struct entries *entries, struct canvas *canvas)
{
	const char *name = selector(layer);
	const struct frag_tensor *tensor = name != NULL ? find(messages, name) : NULL;
	struct writing writing = {.layer = layer};
	const void *text = NULL;
	size_t size = 0;

	writing.selected = tensor != NULL ? frag_tensor_data(tensor) : NULL;
	if (shows_lines(layer)) {
		frag_message_value(holder(messages, layer->name), &text, &size);
		writing.line = text;
		writing.end = writing.line + size;
	}
	for (int64_t i = 0; i < entries->count; i++) {
		const float *at = entries->numbers + i * entries->width;
		double text_size = entries->width == 3 ? fmin(fmax(at[2], 0.0), 1.0) : TEXT_SIZE;
		int64_t scale = llrint(text_size * (double)canvas->rows / FONT_CELL_ROWS);

		draw_text(canvas, at[0] * (double)canvas->columns, at[1] * (double)canvas->rows,
			  scale < 1 ? 1 : scale, text_at(&writing, i), &layer->paint);
	}
}

/* Draws a horizontal line, and a vertical one that leaves out where they meet. */
static void draw_cross(struct canvas *canvas, double x, double y, double size, double width,
		       const struct paint *paint)
{
	double half = size / 2;

	draw_line(canvas, x - half, y, x + half, y, width, paint);
	draw_line(canvas, x, y - half, x, y - width / 2, width, paint);
	draw_line(canvas, x, y + width / 2, x, y + half, width, paint);
}

static void draw_shape(const struct layer *layer, const float *at, struct canvas *canvas)
{
	double width = (double)canvas->columns, height = (double)canvas->rows;
	double x = at[0] * width, y = at[1] * height;
	struct area area;

	switch (layer->type) {
	case LAYER_POINTS:
		draw_disc(canvas, x, y, layer->point_size, &layer->paint);
		break;
	case LAYER_CROSSES:
		draw_cross(canvas, x, y, at[2] * height, layer->line_width, &layer->paint);
		break;
	case LAYER_RECTANGLES:
		area = area_of(canvas, at);
		draw_outline(canvas, &area, llrint(fmax(layer->line_width, 1.0)), &layer->paint);
		break;
	default:
		draw_line(canvas, x, y, at[2] * width, at[3] * height, layer->line_width,
			  &layer->paint);
		break;
	}
}

/*
 * Returns a tensor that the canvas can be drawn from: the steps for a GPU refer to it where it is,
 * otherwise it is copied to the host. NULL: it cannot be copied.
 */
static struct frag_tensor *within_reach(const struct canvas *canvas,
					const struct frag_tensor *tensor)
{
	const struct frag_device cpu = {FRAG_DEVICE_CPU, 0};
	struct frag_tensor *copy;

	if (canvas->steps != NULL || frame_is_on_host(tensor))
		return frag_tensor_ref(tensor);
	return frag_tensor_copy(tensor, NULL, cpu, &copy, NULL) == 0 ? copy : NULL;
}

/* Draws a frame over the whole canvas; without memory for its levels it is left out. */
static void draw_leveled(const struct layer *layer, const struct frame *frame,
			 struct canvas *canvas)
{
	static const struct palette none = {NULL, 0};
	bool has_window = layer->window[0] < layer->window[1];
	bool has_percentile = layer->percentile[0] < layer->percentile[1];
	size_t row = (size_t)(frame->columns * frame->channels);
	struct levels levels = draw_levels_all(frame);
	struct area area = all_of(canvas);
	struct frame shown = *frame;
	uint8_t *pixels = NULL;

	if (frame->is_deep || has_window || has_percentile) {
		pixels = malloc(row * (size_t)frame->rows);
		if (pixels == NULL ||
		    (has_percentile && draw_levels_percentile(frame, layer->percentile[0],
							      layer->percentile[1], &levels) < 0)) {
			free(pixels);
			return;
		}
		if (has_window)
			levels = (struct levels){layer->window[0], layer->window[1]};
		draw_levels_u8(&levels, frame, pixels);
		shown.data = pixels;
		shown.row_bytes = row;
		shown.is_deep = false;
	}
	draw_frame(canvas, &area, &shown, &none, (uint16_t)lrint(layer->opacity * 256.0));
	free(pixels);
}

static void draw_layer(const struct layers *layers, const struct layer *layer,
		       const struct messages *messages, struct canvas *canvas)
{
	const struct frag_tensor *tensor = find(messages, layer->name);
	struct frag_tensor *reached;
	struct entries entries;
	struct frame frame;
	bool is_strip = layer->type == LAYER_LINE_STRIP;

	if (tensor == NULL || check_layer(layer, messages, tensor) != NULL)
		return;
	if (layer->type == LAYER_COLOR_LUT || layer->type == LAYER_COLOR) {
		reached = within_reach(canvas, tensor);
		if (reached != NULL && layer->type == LAYER_COLOR_LUT)
			draw_masks(layers, layer, messages, reached, canvas);
		else if (reached != NULL && read_picture(reached, &frame) == NULL)
			draw_leveled(layer, &frame, canvas);
		frag_tensor_unref(reached);
		return;
	}
	if (read_entries(tensor, entry_width(layer, tensor), &entries) != NULL)
		return;
	if (layer->type == LAYER_TEXT) {
		draw_texts(layer, messages, &entries, canvas);
		return;
	}
	for (int64_t i = 0; i < entries.count - is_strip; i++)
		draw_shape(layer, entries.numbers + i * entries.width, canvas);
}

static void draw_views(const struct layers *layers, const struct layer *layer,
		       const struct messages *messages, struct canvas *canvas)
{
	const double width = (double)canvas->columns, height = (double)canvas->rows;

	if (layer->view_count == 0)
		draw_layer(layers, layer, messages, canvas);
	for (size_t i = 0; i < layer->view_count; i++) {
		const struct view *view = &layer->views[i];
		const struct area area = draw_area(view->left * width, view->top * height,
						   (view->left + view->width) * width,
						   (view->top + view->height) * height);
		struct canvas part = draw_part(canvas, &area);

		if (part.rows > 0)
			draw_layer(layers, layer, messages, &part);
	}
}

static void draw_picture(void *arg, const struct frag_tensor *tensor)
{
	const struct layer layer = {.opacity = 1.0};
	struct frag_tensor *reached;
	struct frame frame;

	if (read_picture(tensor, &frame) != NULL)
		return;
	reached = within_reach(arg, tensor);
	if (reached != NULL && read_picture(reached, &frame) == NULL)
		draw_leveled(&layer, &frame, arg);
	frag_tensor_unref(reached);
}

void draw_layers_draw(const struct layers *layers, const struct messages *messages,
		      struct canvas *canvas)
{
	if (canvas->steps == NULL)
		memset(canvas->pixels, 0, (size_t)(canvas->rows * canvas->columns) * 3);
	if (layers->count == 0)
		each_tensor(messages, draw_picture, canvas);
	for (size_t i = 0; i < layers->count; i++)
		draw_views(layers, &layers->items[i], messages, canvas);
}
