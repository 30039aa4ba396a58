// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>

#include <frag/tree.h>

#include "layers.h"

#define LUT_MAX 256 /* classes are u8 */

static const char *const type_names[] = {
	[LAYER_COLOR] = "color",
	[LAYER_COLOR_LUT] = "color_lut",
	[LAYER_POINTS] = "points",
	[LAYER_LINES] = "lines",
	[LAYER_LINE_STRIP] = "line_strip",
	[LAYER_TRIANGLES] = "triangles",
	[LAYER_CROSSES] = "crosses",
	[LAYER_RECTANGLES] = "rectangles",
	[LAYER_OVALS] = "ovals",
	[LAYER_TEXT] = "text",
	[LAYER_DEPTH_MAP] = "depth_map",
	[LAYER_DEPTH_MAP_COLOR] = "depth_map_color",
	[LAYER_POINTS_3D] = "points_3d",
	[LAYER_LINES_3D] = "lines_3d",
	[LAYER_LINE_STRIP_3D] = "line_strip_3d",
	[LAYER_TRIANGLES_3D] = "triangles_3d",
};
#define TYPES                                                                                      \
	"color, color_lut, points, lines, line_strip, triangles, crosses, rectangles, ovals, "     \
	"text, depth_map, depth_map_color, points_3d, lines_3d, line_strip_3d or triangles_3d"

static const char *const mode_names[] = {
	[SPACE_POINTS] = "points",
	[SPACE_LINES] = "lines",
	[SPACE_TRIANGLES] = "triangles",
};

/* Where no color_lut is given: 0 is the background. */
static const struct paint default_classes[] = {
	{{0, 0, 0}, 0},        {{255, 64, 64}, 128},  {{64, 160, 255}, 128}, {{64, 220, 96}, 128},
	{{255, 200, 40}, 128}, {{200, 96, 255}, 128}, {{40, 220, 220}, 128}, {{255, 128, 192}, 128},
};

static int refuse(struct frag_err *err, const struct frag_tree *at, const char *what,
		  const char *remedy)
{
	return frag_err_set(err, -EINVAL, "line %d, \"%s\": %s; %s", at->line,
			    at->key != NULL ? at->key : "", what, remedy);
}

static int read_number(const struct frag_tree *tree, double least, double most, double *out,
		       struct frag_err *err)
{
	char *end = NULL;
	double x = tree->kind == FRAG_TREE_TEXT ? strtod(tree->text, &end) : 0.0;

	if (end == NULL || end == tree->text || *end != '\0' || !(x >= least && x <= most))
		return frag_err_set(err, -EINVAL,
				    "line %d: \"%.80s\" is not a number from %g to %g", tree->line,
				    tree->text != NULL ? tree->text : "a list or map", least, most);
	*out = x;
	return 0;
}

static int read_text(const struct frag_tree *tree, const char **out, struct frag_err *err)
{
	if (tree->kind != FRAG_TREE_TEXT)
		return refuse(err, tree, "a list or map is no name", "give a text");
	*out = tree->text;
	return 0;
}

/* Reads [red, green, blue] or [red, green, blue, alpha], each from 0 to 1. */
static int read_paint(const struct frag_tree *tree, struct paint *out, struct frag_err *err)
{
	double channels[4] = {1.0, 1.0, 1.0, 1.0};
	int r = 0;

	if (tree->kind != FRAG_TREE_LIST || tree->count < 3 || tree->count > 4)
		return refuse(err, tree, "this is no colour",
			      "give [red, green, blue] or [red, green, blue, alpha], from 0 to 1");
	for (size_t i = 0; r == 0 && i < tree->count; i++)
		r = read_number(&tree->items[i], 0.0, 1.0, &channels[i], err);
	for (int c = 0; c < 3; c++)
		out->rgb[c] = (uint8_t)lrint(channels[c] * 255.0);
	out->alpha = (uint16_t)lrint(channels[3] * 256.0);
	return r;
}

static int read_type(const struct frag_tree *tree, enum layer_type *out, struct frag_err *err)
{
	for (size_t i = 0; tree->kind == FRAG_TREE_TEXT && i < FRAG_COUNT_OF(type_names); i++) {
		if (strcmp(tree->text, type_names[i]) == 0) {
			*out = (enum layer_type)i;
			return 0;
		}
	}
	return frag_err_set(err, -EINVAL, "line %d: \"%.80s\" is not a type of layer; give " TYPES,
			    tree->line, tree->text != NULL ? tree->text : "a list or map");
}

static int read_mode(const struct frag_tree *tree, enum space_kind *out, struct frag_err *err)
{
	for (size_t i = 0; tree->kind == FRAG_TREE_TEXT && i < FRAG_COUNT_OF(mode_names); i++) {
		if (strcmp(tree->text, mode_names[i]) == 0) {
			*out = (enum space_kind)i;
			return 0;
		}
	}
	return refuse(err, tree, "no depth map is drawn like this",
		      "give points, lines or triangles");
}

static int read_list_of_texts(const struct frag_tree *tree, const struct frag_tree **out,
			      struct frag_err *err)
{
	if (tree->kind != FRAG_TREE_LIST || tree->count == 0)
		return refuse(err, tree, "this is no list of texts", "give [text, text]");
	for (size_t i = 0; i < tree->count; i++) {
		if (tree->items[i].kind != FRAG_TREE_TEXT)
			return refuse(err, tree, "this is no list of texts", "give [text, text]");
	}
	*out = tree;
	return 0;
}

/* Reads [black, white], of which the first is less. */
static int read_levels(const struct frag_tree *tree, double least, double most, double out[2],
		       struct frag_err *err)
{
	int r = 0;

	if (tree->kind != FRAG_TREE_LIST || tree->count != 2)
		return refuse(err, tree, "this is no list of two numbers", "give [black, white]");
	for (size_t i = 0; r == 0 && i < 2; i++)
		r = read_number(&tree->items[i], least, most, &out[i], err);
	if (r == 0 && !(out[0] < out[1]))
		return refuse(err, tree, "the first number is not less than the second",
			      "give [black, white]");
	return r;
}

/* Reads {offset_x, offset_y, width, height}; what is left out is that of the whole picture. */
static int read_view(const struct frag_tree *tree, struct view *out, struct frag_err *err)
{
	static const char *const keys[] = {"offset_x", "offset_y", "width", "height"};
	double values[] = {0.0, 0.0, 1.0, 1.0};
	int r = 0;

	if (tree->kind != FRAG_TREE_MAP)
		return refuse(err, tree, "this is no view",
			      "give {offset_x: 0, offset_y: 0, width: 0.5, height: 0.5}");
	for (size_t i = 0; r == 0 && i < tree->count; i++) {
		const struct frag_tree *item = &tree->items[i];
		size_t k = 0;

		while (k < 4 && strcmp(item->key, keys[k]) != 0)
			k++;
		r = k < 4 ? read_number(item, 0.0, 1.0, &values[k], err)
			  : refuse(err, item, "no view has this key",
				   "its keys are offset_x, offset_y, width and height");
	}
	if (r == 0 && (values[2] == 0.0 || values[3] == 0.0 || values[0] + values[2] > 1.001 ||
		       values[1] + values[3] > 1.001))
		r = refuse(err, tree, "this view is empty, or lies beyond the picture",
			   "offset_x + width and offset_y + height are 1 at most");
	*out = (struct view){values[0], values[1], values[2], values[3]};
	return r;
}

static int read_views(struct layer *layer, const struct frag_tree *tree, struct frag_err *err)
{
	int r = 0;

	if (tree->kind != FRAG_TREE_LIST || tree->count == 0 || tree->count > LAYER_VIEWS_MAX)
		return refuse(err, tree, "this is no list of 1 to 16 views",
			      "give [{offset_x: 0, offset_y: 0, width: 0.5, height: 0.5}]");
	for (size_t i = 0; r == 0 && i < tree->count; i++)
		r = read_view(&tree->items[i], &layer->views[i], err);
	layer->view_count = tree->count;
	return r;
}

static int read_key(struct layer *layer, const struct frag_tree *tree, struct frag_err *err)
{
	const char *key = tree->key;
	double priority;
	int r;

	if (strcmp(key, "name") == 0)
		return read_text(tree, &layer->name, err);
	if (strcmp(key, "type") == 0)
		return read_type(tree, &layer->type, err);
	if (strcmp(key, "opacity") == 0)
		return read_number(tree, 0.0, 1.0, &layer->opacity, err);
	if (strcmp(key, "window") == 0)
		return read_levels(tree, -1e9, 1e9, layer->window, err);
	if (strcmp(key, "percentile") == 0)
		return read_levels(tree, 0.0, 100.0, layer->percentile, err);
	if (strcmp(key, "color") == 0)
		return read_paint(tree, &layer->paint, err);
	if (strcmp(key, "line_width") == 0)
		return read_number(tree, 0.0, 1000.0, &layer->line_width, err);
	if (strcmp(key, "point_size") == 0)
		return read_number(tree, 0.0, 1000.0, &layer->point_size, err);
	if (strcmp(key, "depth_map_render_mode") == 0)
		return read_mode(tree, &layer->depth_map_render_mode, err);
	if (strcmp(key, "text") == 0)
		return read_list_of_texts(tree, &layer->text, err);
	if (strcmp(key, "classes") == 0)
		return read_text(tree, &layer->classes, err);
	if (strcmp(key, "numbers") == 0)
		return read_text(tree, &layer->numbers, err);
	if (strcmp(key, "boxes") == 0)
		return read_text(tree, &layer->boxes, err);
	if (strcmp(key, "views") == 0)
		return read_views(layer, tree, err);
	if (strcmp(key, "priority") != 0)
		return refuse(
			err, tree, "no layer has this key",
			"its keys are name, type, opacity, priority, window, percentile, color, line_width, point_size, depth_map_render_mode, text, classes, numbers, boxes and views");
	r = read_number(tree, -1e6, 1e6, &priority, err);
	layer->priority = r == 0 ? llrint(priority) : 0;
	return r;
}

static int read_layer(struct layer *layer, const struct frag_tree *tree, struct frag_err *err)
{
	bool has_type = false;
	int r = 0;

	*layer = (struct layer){.name = "",
				.opacity = 1.0,
				.paint = {{255, 255, 255}, 256},
				.line_width = 1.0,
				.point_size = 1.0};
	if (tree->kind != FRAG_TREE_MAP)
		return refuse(err, tree, "this is no layer", "give {name: TENSOR, type: TYPE}");
	for (size_t i = 0; r == 0 && i < tree->count; i++) {
		r = read_key(layer, &tree->items[i], err);
		has_type = has_type || strcmp(tree->items[i].key, "type") == 0;
	}
	if (r < 0)
		return r;
	if (!has_type)
		return frag_err_set(err, -EINVAL,
				    "line %d: layer \"%.80s\" has no type; give " TYPES, tree->line,
				    layer->name);
	if (layer->window[0] < layer->window[1] && layer->percentile[0] < layer->percentile[1])
		return frag_err_set(
			err, -EINVAL,
			"line %d: layer \"%.80s\" has both window and percentile; remove one of them",
			tree->line, layer->name);
	if (layer->text != NULL && layer->numbers != NULL)
		return frag_err_set(
			err, -EINVAL,
			"line %d: layer \"%.80s\" has both text and numbers; remove one of them",
			tree->line, layer->name);
	if (layer->classes != NULL && layer->text == NULL)
		return frag_err_set(
			err, -EINVAL,
			"line %d: layer \"%.80s\" has classes but no texts that they select; give text: [text, text]",
			tree->line, layer->name);
	layer->paint.alpha = (uint16_t)lrint(layer->paint.alpha * layer->opacity);
	return 0;
}

/* Puts a layer behind those of the same or a lower priority. */
static void insert(struct layers *layers, const struct layer *layer)
{
	size_t i = layers->count++;

	for (; i > 0 && layers->items[i - 1].priority > layer->priority; i--)
		layers->items[i] = layers->items[i - 1];
	layers->items[i] = *layer;
}

static int read_classes(struct layers *layers, const struct frag_tree *lut, struct frag_err *err)
{
	bool is_given = lut != NULL && lut->count > 0;
	size_t count = is_given ? lut->count : FRAG_COUNT_OF(default_classes);
	int r = 0;

	if (count > LUT_MAX || (is_given && lut->kind != FRAG_TREE_LIST))
		return frag_err_set(
			err, -EINVAL,
			"color_lut is not a list of up to 256 colours; give [[red, green, blue, alpha], ...]");
	layers->classes = calloc(count, sizeof(*layers->classes));
	if (layers->classes == NULL)
		return frag_err_set(err, -ENOMEM, "no memory for the colours of color_lut");
	layers->class_count = count;
	if (!is_given)
		memcpy(layers->classes, default_classes, sizeof(default_classes));
	for (size_t i = 0; is_given && r == 0 && i < count; i++)
		r = read_paint(&lut->items[i], &layers->classes[i], err);
	return r;
}

static int read_point(const struct frag_tree *tree, double out[3], const char *name,
		      struct frag_err *err)
{
	int r = 0;

	if (tree->kind != FRAG_TREE_LIST || tree->count != 3)
		return frag_err_set(err, -EINVAL, "%s is not three numbers; give [x, y, z]", name);
	for (size_t i = 0; r == 0 && i < 3; i++)
		r = read_number(&tree->items[i], -1e6, 1e6, &out[i], err);
	return r;
}

static int read_camera(struct camera *camera, const struct draw_given *given, struct frag_err *err)
{
	double eye[3], look_at[3], up[3];
	int r = read_point(given->camera_eye, eye, "camera_eye", err);

	if (r == 0)
		r = read_point(given->camera_look_at, look_at, "camera_look_at", err);
	if (r == 0)
		r = read_point(given->camera_up, up, "camera_up", err);
	if (r == 0 && draw_camera_init(camera, eye, look_at, up) < 0)
		r = frag_err_set(
			err, -EINVAL,
			"camera_look_at is where camera_eye is, or lies in the direction of camera_up; give others");
	return r;
}

static int read_layers(struct layers *layers, const struct frag_tree *tensors, const char *name,
		       struct frag_err *err)
{
	struct layer layer;
	int r = 0;

	if (tensors->kind != FRAG_TREE_LIST || tensors->count > LAYERS_MAX - layers->count)
		return frag_err_set(
			err, -EINVAL,
			"%s is not a list of up to %zu layers; give [{name: TENSOR, type: TYPE}, ...]",
			name, LAYERS_MAX - layers->count);
	for (size_t i = 0; r == 0 && i < tensors->count; i++) {
		r = read_layer(&layer, &tensors->items[i], err);
		if (r == 0)
			insert(layers, &layer);
	}
	return r;
}

int draw_layers_extend(const struct layers *layers, const char *text, struct layers **out,
		       struct frag_err *err)
{
	struct layers *own = malloc(sizeof(*own));
	const struct frag_tree *tree;
	int r;

	if (own == NULL)
		return frag_err_set(err, -ENOMEM, "no memory for its layers");
	*own = *layers;
	r = frag_tree_parse(text, &tree, err);
	if (r < 0) {
		free(own);
		return r;
	}
	own->tree = tree;
	r = read_layers(own, tree, "the text", err);
	if (r < 0)
		draw_layers_release(own);
	else
		*out = own;
	return r;
}

void draw_layers_release(struct layers *layers)
{
	if (layers == NULL)
		return;
	frag_tree_destroy(layers->tree);
	free(layers);
}

int draw_layers_init(struct layers *layers, const struct draw_given *given, struct frag_err *err)
{
	int r;

	*layers = (struct layers){.rows = given->height, .columns = given->width};
	r = read_camera(&layers->camera, given, err);
	if (r < 0)
		return r;
	r = read_layers(layers, given->tensors, "tensors", err);
	if (r < 0)
		return r;
	layers->own_count = layers->count;
	r = read_classes(layers, given->color_lut, err);
	if (r < 0)
		draw_layers_fini(layers);
	return r;
}

void draw_layers_fini(struct layers *layers)
{
	free(layers->classes);
	layers->classes = NULL;
	layers->class_count = 0;
}
