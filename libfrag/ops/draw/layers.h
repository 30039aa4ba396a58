/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRAW_LAYERS_H
#define DRAW_LAYERS_H

#include "canvas.h"
#include "space.h"

/*
 * What is drawn of the messages: Holoviz's list of InputSpec, in frag the parameter `tensors`.
 * (Keys and coordinates: Holoscan SDK user guide, "Visualization", "Holoviz operator".) Geometry is
 * a tensor of f32 or f64 without gaps in host memory, whose coordinates go from 0 (left, top) to 1
 * (right, bottom), or lie in space, which the camera looks at.
 */
#define LAYERS_MAX 64
#define LAYER_ENTRIES_MAX 65536 /* shapes of one layer */
#define LAYER_VIEWS_MAX 16

enum layer_type {
	LAYER_COLOR,           /* a frame of u8 or u16 */
	LAYER_COLOR_LUT,       /* [rows, columns(, 1)] u8: classes, with colours of color_lut */
	LAYER_POINTS,          /* x, y, or x, y, score: keypoints */
	LAYER_LINES,           /* x0, y0, x1, y1 */
	LAYER_LINE_STRIP,      /* x, y of each corner */
	LAYER_TRIANGLES,       /* x, y of three corners */
	LAYER_CROSSES,         /* x, y, size as a share of the height */
	LAYER_RECTANGLES,      /* x0, y0, x1, y1 */
	LAYER_OVALS,           /* x, y, width, height */
	LAYER_TEXT,            /* x, y or x, y, size as a share of the height */
	LAYER_DEPTH_MAP,       /* [rows, columns(, 1)] u8 or f32 */
	LAYER_DEPTH_MAP_COLOR, /* its colours: [rows, columns, 3 or 4] u8 */
	LAYER_POINTS_3D,       /* x, y, z, as each corner of the following */
	LAYER_LINES_3D,
	LAYER_LINE_STRIP_3D,
	LAYER_TRIANGLES_3D,
};

struct layer {
	const char *name; /* of the tensor */
	enum layer_type type;
	double opacity;                  /* 0 to 1 */
	double window[2], percentile[2]; /* COLOR: black and white; equal: none is given */
	int64_t priority;
	struct paint paint;            /* opacity included */
	double line_width, point_size; /* pixels */
	enum space_kind depth_map_render_mode;
	const struct frag_tree *text; /* TEXT: a list; NULL: numbers, or the lines of the message */
	const char *classes;          /* TEXT: tensor of i32 that selects the texts; NULL: none */
	const char *numbers;          /* TEXT: tensor of i32 that is written; NULL: none */
	/* parts of the picture that it is drawn into, as shares of its sides; none: all of it */
	struct view {
		double left, top, width, height;
	} views[LAYER_VIEWS_MAX];
	size_t view_count;
	const char *boxes; /* COLOR_LUT: tensor of the places of [n, rows, columns(, 1)]; NULL */
};

struct layers {
	struct layer items[LAYERS_MAX]; /* by priority */
	size_t count;
	size_t own_count;      /* of the parameter; 0: frames that no layer names are shown, too */
	struct paint *classes; /* of color_lut */
	size_t class_count;
	struct camera camera;
	const struct frag_tree *tree; /* of draw_layers_extend: its layers borrow from it; NULL */
	int64_t rows, columns;        /* of the picture; 0: those of its first frame */
};

/* The parameters of these names. */
struct draw_given {
	const struct frag_tree *tensors, *color_lut, *camera_eye, *camera_look_at, *camera_up;
	int64_t width, height;
};

/*
 * Reads the parameters, whose texts are borrowed as long as the operator lives. Returns 0, or a
 * failure with a sentence.
 */
int draw_layers_init(struct layers *layers, const struct draw_given *given, struct frag_err *err);
void draw_layers_fini(struct layers *layers);

/*
 * Makes layers with those of a text, as `tensors` has them, in addition. The rest is borrowed from
 * `layers`. Returns 0, or a failure with a sentence.
 */
int draw_layers_extend(const struct layers *layers, const char *text, struct layers **out,
		       struct frag_err *err);
/* Frees what draw_layers_extend made. NULL is accepted. */
void draw_layers_release(struct layers *layers);

/* One message from each of several flows; NULL where a flow has none. */
struct messages {
	const struct frag_message *const *items;
	size_t count;
	struct layers *own; /* owned: count instead of those of the operator; NULL: none */
};
/*
 * Checks whether the messages hold what the layers draw. A tensor may be missing only where a flow
 * has no message. Returns 0, or a failure with a sentence.
 */
int draw_layers_check(const struct layers *layers, const struct messages *messages,
		      struct frag_err *err);
/* Returns the size of the picture of these messages, in *columns and *rows. */
void draw_layers_size(const struct layers *layers, const struct messages *messages,
		      int64_t *columns, int64_t *rows);
/*
 * Whether a GPU can draw these messages where they are: all frames lie there, and none has levels.
 * *out: which one.
 */
bool draw_layers_suit_gpu(const struct layers *layers, const struct messages *messages,
			  struct frag_device *out);
/*
 * Draws the picture of messages that were checked; the canvas has the size above. Frames of a GPU
 * are copied to the host, unless it has steps.
 */
void draw_layers_draw(const struct layers *layers, const struct messages *messages,
		      struct canvas *canvas);

#endif
