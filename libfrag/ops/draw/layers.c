// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "font.h"
#include "layer_tensors.h"
#include "levels.h"

#define SIZE_DEFAULT 0.05 /* Holoviz's, of texts, crosses and ovals that have no size */
#define TEXT_BYTES 256    /* of a line that is drawn */
#define NUMBERS_MAX 6     /* of a shape in the plane */
#define ROWS_DEFAULT 1080
#define COLUMNS_DEFAULT 1920

/* Where the frames of messages lie. */
struct places {
	bool on_gpu, on_host, is_deep;
	int32_t gpu;
};

static void note_place(struct places *places, const struct frag_tensor *tensor)
{
	if (draw_element_count(tensor) == 0)
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

	if (draw_read_picture(tensor, &frame) == NULL)
		note_place(arg, tensor);
}

static bool is_named(const struct layers *layers, const char *name)
{
	for (size_t i = 0; i < layers->count; i++)
		if (strcmp(layers->items[i].name, name) == 0)
			return true;
	return false;
}

/* Calls `visit` with every tensor that is shown without a layer. */
static void each_tensor(const struct layers *layers, const struct messages *messages,
			void (*visit)(void *arg, const struct frag_tensor *tensor), void *arg)
{
	for (size_t i = 0; layers->own_count == 0 && i < messages->count; i++) {
		uint32_t count = messages->items[i] != NULL
					 ? frag_message_tensor_count(messages->items[i])
					 : 0;

		for (uint32_t k = 0; k < count; k++) {
			const char *name;
			const struct frag_tensor *tensor =
				frag_message_tensor_at(messages->items[i], k, &name);

			if (!is_named(layers, name))
				visit(arg, tensor);
		}
	}
}

static void take_size(void *arg, const struct frag_tensor *tensor)
{
	struct canvas *size = arg;
	struct frame frame;

	if (size->rows != 0 || draw_read_picture(tensor, &frame) != NULL)
		return;
	size->rows = frame.rows;
	size->columns = frame.columns;
}

void draw_layers_size(const struct layers *layers, const struct messages *messages,
		      int64_t *columns, int64_t *rows)
{
	struct canvas size = {0};

	layers = messages->own != NULL ? messages->own : layers;
	each_tensor(layers, messages, take_size, &size);
	for (size_t i = 0; i < layers->count; i++) {
		const struct frag_tensor *tensor = draw_find(messages, layers->items[i].name);

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
	bool has_levels = false, has_depths = false;

	layers = messages->own != NULL ? messages->own : layers;
	each_tensor(layers, messages, note_picture, &places);
	for (size_t i = 0; i < layers->count; i++) {
		const struct layer *layer = &layers->items[i];
		const struct frag_tensor *tensor = draw_find(messages, layer->name);

		has_depths = has_depths || (tensor != NULL && layer->type == LAYER_DEPTH_MAP &&
					    !frame_is_on_host(tensor));
		if (tensor == NULL ||
		    (layer->type != LAYER_COLOR && layer->type != LAYER_COLOR_LUT))
			continue;
		note_place(&places, tensor);
		has_levels = has_levels || layer->window[0] < layer->window[1] ||
			     layer->percentile[0] < layer->percentile[1];
	}
	*out = (struct frag_device){FRAG_DEVICE_CUDA, places.gpu};
	return places.on_gpu && !places.on_host && !places.is_deep && !has_levels && !has_depths;
}

static struct area all_of(const struct canvas *canvas)
{
	return (struct area){0, 0, canvas->columns, canvas->rows};
}

static struct area area_of(const struct canvas *canvas, const double *corners)
{
	double width = (double)canvas->columns, height = (double)canvas->rows;

	return draw_area(
		fmin(corners[0], corners[2]) * width, fmin(corners[1], corners[3]) * height,
		fmax(corners[0], corners[2]) * width, fmax(corners[1], corners[3]) * height);
}

/* Takes numbers of a shape; sizes that it has not are the usual ones. */
static void take_numbers(const struct entries *entries, int64_t i, int64_t count, double *out)
{
	for (int64_t k = 0; k < NUMBERS_MAX; k++)
		out[k] = k < count ? entry_number(entries, i, k) : SIZE_DEFAULT;
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
		if (draw_read_frame(tensor, &frame) == NULL)
			draw_frame(canvas, &area, &frame, &palette, alpha);
		return;
	}
	if (draw_entries_read(draw_find(messages, layer->boxes), LAYER_RECTANGLES, &boxes) !=
		    NULL ||
	    draw_read_masks(tensor, boxes.count, &frame) != NULL)
		return;
	for (int64_t i = 0; i < boxes.count; i++) {
		double corners[NUMBERS_MAX];

		take_numbers(&boxes, i, 4, corners);
		area = area_of(canvas, corners);
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

	if (draw_shows_lines(layer))
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
	const char *name = draw_selector(layer);
	const struct frag_tensor *tensor = name != NULL ? draw_find(messages, name) : NULL;
	struct writing writing = {.layer = layer};
	const void *text = NULL;
	size_t size = 0;

	writing.selected = tensor != NULL ? frag_tensor_data(tensor) : NULL;
	if (draw_shows_lines(layer)) {
		frag_message_value(draw_holder(messages, layer->name), &text, &size);
		writing.line = text;
		writing.end = writing.line + size;
	}
	for (int64_t i = 0; i < entries->count; i++) {
		double at[NUMBERS_MAX];
		int64_t scale;

		take_numbers(entries, i, entries->width, at);
		scale = llrint(fmin(fmax(at[2], 0.0), 1.0) * (double)canvas->rows / FONT_CELL_ROWS);
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

static void draw_shape(const struct layer *layer, const struct entries *entries, int64_t i,
		       struct canvas *canvas)
{
	double width = (double)canvas->columns, height = (double)canvas->rows;
	double at[NUMBERS_MAX], x, y;
	struct area area;

	take_numbers(entries, i, layer->type == LAYER_LINE_STRIP ? 4 : entries->width, at);
	x = at[0] * width;
	y = at[1] * height;
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
	case LAYER_OVALS:
		draw_oval(canvas, x, y, at[2] * width, at[3] * height, layer->line_width,
			  &layer->paint);
		break;
	case LAYER_TRIANGLES:
		for (int k = 0; k < 6; k++)
			at[k] *= k % 2 == 0 ? width : height;
		draw_triangle(canvas, at, &layer->paint);
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

static void draw_in_space(const struct layers *layers, const struct layer *layer,
			  struct space *space, struct canvas *canvas)
{
	space->paint = layer->paint;
	space->line_width = layer->line_width;
	space->point_size = layer->point_size;
	draw_space(canvas, &layers->camera, space);
}

static void draw_depths(const struct layers *layers, const struct layer *layer,
			const struct messages *messages, const struct frag_tensor *tensor,
			struct canvas *canvas)
{
	const struct frag_tensor *colors = draw_depth_colors(layers, messages);
	struct frag_tensor *reached = within_reach(canvas, tensor);
	struct frag_tensor *reached_colors = NULL;
	struct space space;

	if (reached != NULL && draw_read_depths(layers, messages, tensor, &space) == NULL) {
		if (space.colors != NULL)
			reached_colors = within_reach(canvas, colors);
		space.kind = layer->depth_map_render_mode;
		space.data = frag_tensor_data(reached);
		space.colors = reached_colors != NULL ? frag_tensor_data(reached_colors) : NULL;
		draw_in_space(layers, layer, &space, canvas);
	}
	frag_tensor_unref(reached);
	frag_tensor_unref(reached_colors);
}

static void corner_3d(const struct space *space, int64_t i, double out[3])
{
	for (int k = 0; k < 3; k++)
		out[k] = space->is_wide ? ((const double *)space->data)[3 * i + k]
					: (double)((const float *)space->data)[3 * i + k];
}

static void draw_shapes_3d(const struct layers *layers, const struct layer *layer,
			   const struct entries *entries, struct canvas *canvas)
{
	struct space space = {.is_strip = layer->type == LAYER_LINE_STRIP_3D,
			      .corners = entries->count * entries->width / 3,
			      .corner = corner_3d,
			      .data = entries->numbers,
			      .is_wide = entries->is_f64};

	space.kind = layer->type == LAYER_POINTS_3D      ? SPACE_POINTS
		     : layer->type == LAYER_TRIANGLES_3D ? SPACE_TRIANGLES
							 : SPACE_LINES;
	draw_in_space(layers, layer, &space, canvas);
}

static void draw_layer(const struct layers *layers, const struct layer *layer,
		       const struct messages *messages, struct canvas *canvas)
{
	const struct frag_tensor *tensor = draw_find(messages, layer->name);
	struct frag_tensor *reached;
	struct entries entries;
	struct frame frame;
	bool is_strip = layer->type == LAYER_LINE_STRIP;

	if (tensor == NULL || draw_check_layer(layers, layer, messages, tensor) != NULL)
		return;
	if (layer->type == LAYER_COLOR_LUT || layer->type == LAYER_COLOR) {
		reached = within_reach(canvas, tensor);
		if (reached != NULL && layer->type == LAYER_COLOR_LUT)
			draw_masks(layers, layer, messages, reached, canvas);
		else if (reached != NULL && draw_read_picture(reached, &frame) == NULL)
			draw_leveled(layer, &frame, canvas);
		frag_tensor_unref(reached);
		return;
	}
	if (layer->type == LAYER_DEPTH_MAP)
		draw_depths(layers, layer, messages, tensor, canvas);
	if (layer->type == LAYER_DEPTH_MAP || layer->type == LAYER_DEPTH_MAP_COLOR ||
	    draw_entries_read(tensor, layer->type, &entries) != NULL)
		return;
	if (layer->type > LAYER_DEPTH_MAP_COLOR) {
		draw_shapes_3d(layers, layer, &entries, canvas);
		return;
	}
	if (layer->type == LAYER_TEXT) {
		draw_texts(layer, messages, &entries, canvas);
		return;
	}
	for (int64_t i = 0; i < entries.count - is_strip; i++)
		draw_shape(layer, &entries, i, canvas);
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

	if (draw_read_picture(tensor, &frame) != NULL)
		return;
	reached = within_reach(arg, tensor);
	if (reached != NULL && draw_read_picture(reached, &frame) == NULL)
		draw_leveled(&layer, &frame, arg);
	frag_tensor_unref(reached);
}

void draw_layers_draw(const struct layers *layers, const struct messages *messages,
		      struct canvas *canvas)
{
	layers = messages->own != NULL ? messages->own : layers;
	if (canvas->steps == NULL)
		memset(canvas->pixels, 0, (size_t)(canvas->rows * canvas->columns) * 3);
	each_tensor(layers, messages, draw_picture, canvas);
	for (size_t i = 0; i < layers->count; i++)
		draw_views(layers, &layers->items[i], messages, canvas);
}
