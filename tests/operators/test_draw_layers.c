// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw_pictures.h"

Test(ops_draw, masks_are_painted_by_their_classes)
{
	const uint8_t classes[] = {0, 1, 2, 7, 1, 0};
	struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_harness *h = make(
		&vision_draw_type,
		FRAG_ARGS({"tensors", "[{type: color_lut, name: t, opacity: 0.5}, {type: color}]"},
			  {"color_lut", "[[1, 1, 1, 0], [1, 0, 0], [0, 1, 0, 0.5]]"}));
	struct frag_message *m = NULL;
	const uint8_t *pixel;

	/* The color layer comes last and covers the mask. */
	m = drawn(h, tensor_of(u8, 3, (const int64_t[]){2, 3, 1}, classes));
	pixel = frag_tensor_data(frag_message_tensor(m, ""));
	for (int i = 0; i < ROWS * COLUMNS * 3; i++)
		cr_assert_eq(pixel[i], 0);
	finish(h, m);

	h = make(&vision_draw_type,
		 FRAG_ARGS(
			 {"tensors",
			  "[{type: color_lut, name: t, opacity: 0.5, priority: 1}, {type: color}]"},
			 {"color_lut", "[[1, 1, 1, 0], [1, 0, 0], [0, 1, 0, 0.5]]"}));
	m = drawn(h, tensor_of(u8, 2, (const int64_t[]){2, 3}, classes));
	pixel = frag_tensor_data(frag_message_tensor(m, ""));
	for (int y = 0; y < ROWS; y++) {
		for (int x = 0; x < COLUMNS; x++, pixel += 3) {
			int class = classes[y / 6 * 3 + x / 8];

			cr_assert_eq(pixel[0], class == 1 ? 128 : 0, "at %d, %d", x, y);
			cr_assert_eq(pixel[1], class == 2 ? 64 : 0, "at %d, %d", x, y);
		}
	}
	finish(h, m);
}

/* Over gray: a black frame could not tell a black class from none. */
Test(ops_draw, a_class_without_a_colour_is_not_painted)
{
	const uint8_t classes[] = {1, 2};
	struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_harness *h =
		make(&vision_draw_type,
		     FRAG_ARGS({"tensors", "[{type: color}, {type: color_lut, name: t}]"},
			       {"color_lut", "[[0, 0, 0, 0], [1, 0, 0]]"}));
	struct frag_message *m = frag_message_create();
	const uint8_t *pixel;

	cr_assert_eq(frag_message_add_tensor(m, "", frame_of(200)), 0);
	cr_assert_eq(
		frag_message_add_tensor(m, "t", tensor_of(u8, 2, (const int64_t[]){1, 2}, classes)),
		0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	m = ticked(h, "out");
	pixel = frag_tensor_data(frag_message_tensor(m, ""));
	cr_assert_eq(pixel[0], 255);
	cr_assert_eq(pixel[1], 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pixel[COLUMNS / 2 * 3 + i], 200);
	finish(h, m);
}

Test(ops_draw, masks_of_boxes)
{
	const uint8_t classes[] = {1, 0, 0, 1, 0, 1, 1, 0};
	const float boxes[] = {0, 0, 8 / 24.0f, 4 / 12.0f, 20 / 24.0f, 8 / 12.0f, 28 / 24.0f, 1};
	struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_harness *h =
		make(&vision_draw_type,
		     FRAG_ARGS({"tensors", "[{name: t, type: color_lut, boxes: boxes}]"},
			       {"color_lut", "[[0, 0, 0, 0], [1, 1, 1]]"}, {"width", "24"},
			       {"height", "12"}));
	struct frag_message *m = frag_message_create();

	cr_assert_eq(frag_message_add_tensor(m, "t",
					     tensor_of(u8, 3, (const int64_t[]){2, 2, 2}, classes)),
		     0);
	cr_assert_eq(frag_message_add_tensor(m, "boxes", numbers(2, 4, boxes)), 0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	m = ticked(h, "out");
	expect_drawn(m,
		     "####.................... x2\n"
		     "....####................ x2\n"
		     "........................ x6\n"
		     "....................#### x2\n",
		     "masks of boxes");
	finish(h, m);
}

Test(ops_draw, classes_select_texts)
{
	const float places[] = {0, 0, 0.5f, 0, 0, 0};
	const int32_t classes[] = {1, 9, -1};
	struct frag_harness *h =
		make(&vision_draw_type,
		     FRAG_ARGS({"tensors", "[{name: t, type: text, text: [X, I], classes: of}]"},
			       {"width", "24"}, {"height", "12"}));
	struct frag_message *m = frag_message_create();

	cr_assert_eq(frag_message_add_tensor(m, "t", numbers(3, 2, places)), 0);
	cr_assert_eq(frag_message_add_tensor(m, "of",
					     tensor_of((struct frag_dtype){FRAG_DTYPE_INT, 32, 1},
						       1, (const int64_t[]){3}, classes)),
		     0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	m = ticked(h, "out");
	expect_drawn(m,
		     ".###....................\n"
		     "..#..................... x5\n"
		     ".###....................\n"
		     "........................ x5\n",
		     "the text of classes that have one");
	finish(h, m);
}

/* The texts and the numbers of the same layer look alike. */
Test(ops_draw, numbers_as_text)
{
	static const char *const layers[] = {
		"[{name: t, type: text, text: ['17', '-3']}]",
		"[{name: t, type: text, numbers: of}]",
	};
	const float places[] = {1 / 24.0f, 2 / 12.0f, 0.1f, 13 / 24.0f, 2 / 12.0f, 0.1f};
	const int32_t values[] = {17, -3};
	char text[2][ROWS * (COLUMNS + 1) + 1];

	for (int i = 0; i < 2; i++) {
		struct frag_harness *h =
			make(&vision_draw_type,
			     FRAG_ARGS({"tensors", layers[i]}, {"width", "24"}, {"height", "12"}));
		struct frag_message *m = frag_message_create();

		cr_assert_eq(frag_message_add_tensor(m, "t", numbers(2, 3, places)), 0);
		cr_assert_eq(frag_message_add_tensor(
				     m, "of",
				     tensor_of((struct frag_dtype){FRAG_DTYPE_INT, 32, 1}, 1,
					       (const int64_t[]){2}, values)),
			     0);
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		m = ticked(h, "out");
		write_picture(m, text[i]);
		finish(h, m);
	}
	cr_expect_str_eq(text[1], text[0], "is\n%s", text[1]);
	cr_expect(strchr(text[0], '#') != NULL);
}

/* As detection_postprocessor sends labels: a line for each place, with or without an end. */
Test(ops_draw, lines_of_the_message_as_text)
{
	static const struct {
		const char *carried, *layer;
	} cases[] = {
		{"aG\n17\n", "[{name: t, type: text, text: [aG, '17']}]"},
		{"aG\n17", "[{name: t, type: text, text: [aG, '17']}]"},
		{"\n17\nmore", "[{name: t, type: text, text: ['', '17']}]"},
		{"aG", "[{name: t, type: text, text: [aG, '']}]"},
		{"", "[{name: t, type: text, text: ['']}]"},
	};
	const float places[] = {1 / 24.0f, 2 / 12.0f, 0.1f, 13 / 24.0f, 2 / 12.0f, 0.1f};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const char *layers[] = {cases[i].layer, "[{name: t, type: text}]"};
		char text[2][ROWS * (COLUMNS + 1) + 1];

		for (int k = 0; k < 2; k++) {
			struct frag_harness *h = make(&vision_draw_type,
						      FRAG_ARGS({"tensors", layers[k]},
								{"width", "24"}, {"height", "12"}));
			struct frag_message *m = frag_message_create();

			cr_assert_eq(frag_message_set_value(m, &frag_type_string, cases[i].carried,
							    strlen(cases[i].carried), NULL),
				     0);
			cr_assert_eq(frag_message_add_tensor(m, "t", numbers(2, 3, places)), 0);
			cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
			m = ticked(h, "out");
			write_picture(m, text[k]);
			finish(h, m);
		}
		cr_expect_str_eq(text[1], text[0], "\"%s\" is\n%s", cases[i].carried, text[1]);
		cr_expect((strchr(text[0], '#') != NULL) == (cases[i].carried[0] != '\0'));
	}
}

/* Draws places by a layer of text; the message carries a text. Returns whether anything is seen. */
static bool draw_text_layer(const char *layer, const char *carried, int64_t places,
			    struct frag_message **out)
{
	const float at[] = {0, 0, 0.1f, 8 / 1600.0f, 4 / 12.0f, 0.1f, 0, 6 / 12.0f, 0.1f};
	struct frag_harness *h =
		make(&vision_draw_type,
		     FRAG_ARGS({"tensors", layer}, {"width", "1600"}, {"height", "12"}));
	struct frag_message *m = frag_message_create();
	const struct frag_tensor *picture;
	const uint8_t *pixel;
	bool is_seen = false;

	cr_assert_eq(frag_message_set_value(m, &frag_type_string, carried, strlen(carried), NULL),
		     0);
	cr_assert_eq(frag_message_add_tensor(m, "t", numbers(places, 3, at)), 0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	*out = ticked(h, "out");
	frag_harness_destroy(h);
	picture = frag_message_tensor(*out, "");
	pixel = frag_tensor_data(picture);
	for (size_t i = 0; i < frag_tensor_size_bytes(picture); i++)
		is_seen = is_seen || pixel[i] != 0;
	return is_seen;
}

/* Pairs of layers and texts, which look alike or do not. */
Test(ops_draw, texts_that_are_too_few_or_too_long)
{
	char lines[4][260]; /* of 254 to 257 characters */
	const struct {
		const char *layers[2], *carried[2];
		int64_t places;
		bool are_alike;
	} pairs[] = {
		/* Holoviz repeats the last text. */
		{{"text: [X, I]", "text: [X, I, I]"}, {"", ""}, 3, true},
		{{"text: [X, I]", "text: [X, I, X]"}, {"", ""}, 3, false},
		{{"text: [X]", "text: [X, X]"}, {"", ""}, 2, true},
		/* 255 characters of a line are shown. */
		{{"opacity: 1", "opacity: 1"}, {lines[0], lines[1]}, 1, false},
		{{"opacity: 1", "opacity: 1"}, {lines[1], lines[2]}, 1, true},
		{{"opacity: 1", "opacity: 1"}, {lines[1], lines[3]}, 1, true},
	};

	for (int i = 0; i < 4; i++) {
		memset(lines[i], 'X', 254 + (size_t)i);
		lines[i][254 + i] = '\0';
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(pairs); i++) {
		struct frag_message *m[2];
		char layer[100];

		for (int k = 0; k < 2; k++) {
			snprintf(layer, sizeof(layer), "[{name: t, type: text, %s}]",
				 pairs[i].layers[k]);
			cr_expect(
				draw_text_layer(layer, pairs[i].carried[k], pairs[i].places, &m[k]),
				"pair %zu", i);
		}
		cr_expect_eq(memcmp(frag_tensor_data(frag_message_tensor(m[0], "")),
				    frag_tensor_data(frag_message_tensor(m[1], "")),
				    1600 * 12 * 3) == 0,
			     pairs[i].are_alike, "pair %zu", i);
		frag_message_unref(m[0]);
		frag_message_unref(m[1]);
	}
}

Test(ops_draw, several_flows_and_frames_without_layers)
{
	const uint8_t half[] = {255, 255, 255, 128};
	struct frag_harness *h = make(&vision_draw_type, NULL);
	struct frag_message *m;
	const uint8_t *pixel;

	give_tensor(h, "receivers", "", frame_of(0));
	give_tensor(h, "receivers:1", "over",
		    tensor_of((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3,
			      (const int64_t[]){1, 1, 4}, half));
	m = ticked(h, "out");
	pixel = frag_tensor_data(frag_message_tensor(m, ""));
	for (int i = 0; i < ROWS * COLUMNS * 3; i++)
		cr_assert_eq(pixel[i], 128, "alpha counts, and the frame is enlarged");
	frag_message_unref(m);

	/* What one flow lacks this time is left out. */
	frag_harness_destroy(h);
	h = make(&vision_draw_type,
		 FRAG_ARGS({"tensors", "[{type: color}, {type: color, name: over}]"}));
	give_tensor(h, "receivers:1", "other", numbers(1, 1, (float[]){0}));
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	frag_harness_destroy(h);
}

Test(ops_draw, what_cannot_be_drawn_is_refused_by_name)
{
	static const float three[] = {0, 0, 0, 0, 0, 0};
	static const uint8_t many[300];
	static const struct {
		const char *layer, *says;
		int64_t shape[2];
		bool is_u8;
	} cases[] = {
		{"type: rectangles",
		 "\"t\" cannot be drawn as its layer says: its corners do not",
		 {3, 2},
		 false},
		{"type: points", "its last dimension is not", {1, 6}, false},
		{"type: triangles", "a triangle three", {2, 2}, false},
		{"type: ovals", "its last dimension is not", {1, 5}, false},
		{"type: lines_3d", "its last dimension is not", {3, 2}, false},
		{"type: triangles_3d", "a triangle three", {2, 3}, false},
		{"type: depth_map", "it is not a tensor of u8 or f32", {0, 0}, true},
		{"type: depth_map_color", "it has not 3 or 4 channels", {2, 3}, true},
		{"type: color_lut, boxes: none",
		 "the tensor that its key boxes names is in no message",
		 {2, 3},
		 true},
		{"type: color_lut", "neither u8 nor f32", {0, 0}, false},
		{"type: text, text: [a], classes: none",
		 "the tensor that its key classes or numbers names",
		 {3, 2},
		 false},
		{"type: text", "its message carries no text", {3, 2}, false},
		{"type: points", "it is not a tensor of f32", {2, 2}, true},
		{"type: color", "its elements are f32", {2, 3}, false},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		char tensors[200];
		struct frag_harness *h;
		struct frag_dtype dtype = cases[i].is_u8
						  ? (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}
						  : (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1};

		if (cases[i].shape[0] == 0)
			dtype.bits = 16;
		snprintf(tensors, sizeof(tensors), "[{name: t, %s}]", cases[i].layer);
		h = make(&vision_draw_type, FRAG_ARGS({"tensors", tensors}));
		give_tensor(
			h, "receivers", "t",
			tensor_of(dtype, 2,
				  cases[i].shape[0] == 0 ? (const int64_t[]){2, 2} : cases[i].shape,
				  cases[i].is_u8 ? (const void *)many : three));
		cr_expect_eq(frag_harness_tick(h), -EINVAL, "case %zu", i);
		cr_expect(strstr(frag_harness_error(h), cases[i].says) != NULL, "case %zu said: %s",
			  i, frag_harness_error(h));
		frag_harness_destroy(h);
	}
}

/* A tensor that belongs to another has one entry for each of it, or more where that is said. */
Test(ops_draw, entries_of_another_tensor_are_counted)
{
	static const struct {
		const char *layer;
		int64_t count; /* of the other tensor, beside two boxes or places */
		const char *says;
	} rows[] = {
		{"type: color_lut, boxes: of", 1, "another number of masks than there are boxes"},
		{"type: color_lut, boxes: of", 2, NULL},
		{"type: color_lut, boxes: of", 3, "another number of masks than there are boxes"},
		{"type: text, text: [a], classes: of", 1, "are not one i32 for each entry"},
		{"type: text, text: [a], classes: of", 2, NULL},
		{"type: text, text: [a], classes: of", 3, NULL},
		{"type: text, numbers: of", 1, "are not one i32 for each entry"},
		{"type: text, numbers: of", 2, NULL},
	};
	static const float places[] = {0, 0, 1, 1, 0, 0, 1, 1};
	static const int32_t zeros[12];
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1}, i32 = {FRAG_DTYPE_INT, 32, 1};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		const bool is_mask = strncmp(rows[i].layer, "type: color", 11) == 0;
		const int64_t shape[] = {rows[i].count, 2, 2};
		struct frag_message *m = frag_message_create();
		struct frag_harness *h;
		char tensors[200];

		snprintf(tensors, sizeof(tensors), "[{name: t, %s}]", rows[i].layer);
		h = make(&vision_draw_type,
			 FRAG_ARGS({"tensors", tensors}, {"width", "24"}, {"height", "12"}));
		cr_assert_eq(frag_message_add_tensor(m, is_mask ? "of" : "t",
						     numbers(2, is_mask ? 4 : 2, places)),
			     0);
		cr_assert_eq(frag_message_add_tensor(m, is_mask ? "t" : "of",
						     is_mask ? tensor_of(u8, 3, shape, zeros)
							     : tensor_of(i32, 1, shape, zeros)),
			     0);
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		cr_expect_eq(frag_harness_tick(h), rows[i].says != NULL ? -EINVAL : 0,
			     "row %zu: %s", i, frag_harness_error(h));
		cr_expect(rows[i].says == NULL ||
				  strstr(frag_harness_error(h), rows[i].says) != NULL,
			  "row %zu said: %s", i, frag_harness_error(h));
		frag_harness_destroy(h);
	}
}

/* A rectangle that leaves its view on the right and below is cut off there. */
Test(ops_draw, a_layer_is_drawn_into_each_of_its_views)
{
	const float corners[] = {0.5f, 0.25f, 2.0f, 2.0f, 0.0f, 0.0f, 0.25f, 0.25f};

	expect_picture("type: rectangles, line_width: 9, "
		       "views: [{width: 0.5, height: 0.75}, "
		       "{offset_x: 0.5, offset_y: 0.5, width: 0.25, height: 0.25}]",
		       numbers(2, 4, corners),
		       "###..................... x2\n"
		       "......######............ x4\n"
		       "......########..........\n"
		       "......######...###...... x2\n"
		       "........................ x3\n");
}

Test(ops_draw, layers_that_make_no_sense_are_refused)
{
	static const struct {
		struct frag_arg args[3];
		const char *says;
	} cases[] = {
		{{{"tensors", "{a: b}"}}, "tensors is not a list of up to 64 layers"},
		{{{"tensors", "[a]"}}, "this is no layer; give {name: TENSOR, type: TYPE}"},
		{{{"tensors", "[{type: color, opacity: 2}]"}}, "\"2\" is not a number from 0 to 1"},
		{{{"tensors", "[{type: color, opacity: nan}]"}}, "\"nan\" is not a number"},
		{{{"tensors", "[{type: color, color: [1, 2, 3]}]"}},
		 "\"2\" is not a number from 0 to 1"},
		{{{"tensors", "[{type: color, color: [1, 1]}]"}}, "this is no colour"},
		{{{"tensors", "[{type: color, color: red}]"}}, "this is no colour"},
		{{{"tensors", "[{type: text, classes: of}]"}}, "classes but no texts"},
		{{{"tensors", "[{type: text, text: [a], numbers: of}]"}}, "both text and numbers"},
		{{{"tensors", "[{type: text, text: [[a]]}]"}}, "no list of texts"},
		{{{"tensors", "[{type: points, point_size: [1]}]"}},
		 "\"a list or map\" is not a number"},
		{{{"tensors", "[{type: color, name: [a]}]"}}, "a list or map is no name"},
		{{{"tensors", "[{type: color, views: []}]"}}, "no list of 1 to 16 views"},
		{{{"tensors", "[{type: color, views: [a]}]"}}, "this is no view; give {offset_x"},
		{{{"tensors", "[{type: color, views: [{left: 0}]}]"}},
		 "no view has this key; its keys are offset_x"},
		{{{"tensors", "[{type: color, views: [{width: 0}]}]"}}, "this view is empty"},
		{{{"tensors", "[{type: color, views: [{offset_y: 0.6, height: 0.5}]}]"}},
		 "lies beyond the picture"},
		{{{"tensors", "[{type: depth_map, depth_map_render_mode: walls}]"}},
		 "give points, lines or triangles"},
		{{{"camera_eye", "[1, 2]"}}, "camera_eye is not three numbers"},
		{{{"camera_look_at", "[0, 0, nan]"}}, "\"nan\" is not a number from -1e+06"},
		{{{"camera_look_at", "[0, 0, 1]"}}, "camera_look_at is where camera_eye is"},
		{{{"camera_up", "[0, 0, 2]"}}, "in the direction of camera_up"},
		{{{"color_lut", "{a: b}"}}, "color_lut is not a list of up to 256 colours"},
		{{{"color_lut", "[[1, 1]]"}}, "this is no colour"},
		{{{"width", "10"}}, "one of width and height is 0"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_assert_null(frag_harness_create(&vision_draw_type, cases[i].args, &err),
			       "case %zu", i);
		cr_expect(strstr(err.text, cases[i].says) != NULL, "case %zu said: %s", i,
			  err.text);
	}
}

/* Numbers that no picture has, in every shape: nothing is drawn outside of the canvas. */
Test(ops_draw, any_coordinates_are_harmless)
{
	static const float odd[] = {0,      1,      -1,   NAN, INFINITY, -INFINITY, 1e30f,
				    -1e30f, 1e-30f, 0.5f, 2,   3e9f,     -3e9f,     0.999f};
	static const char *const layers[] = {
		"type: points, point_size: 1000",   "type: lines, line_width: 1000",
		"type: line_strip, line_width: 0",  "type: crosses, line_width: 3",
		"type: rectangles, line_width: 50", "type: text, text: [abc]",
	};
	enum { N = 14 };
	static float all[N * N * N][3];

	for (int i = 0; i < N * N * N; i++) {
		all[i][0] = odd[i % N];
		all[i][1] = odd[i / N % N];
		all[i][2] = odd[i / N / N];
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(layers); i++) {
		bool has_size =
			strstr(layers[i], "text") != NULL || strstr(layers[i], "crosses") != NULL;
		char tensors[200];
		struct frag_harness *h;

		snprintf(tensors, sizeof(tensors), "[{type: color}, {name: t, %s}]", layers[i]);
		h = make(&vision_draw_type, FRAG_ARGS({"tensors", tensors}));
		frag_message_unref(drawn(h, has_size ? numbers(N * N * N, 3, &all[0][0])
						     : numbers(N * N * N / 4 * 6, 2, &all[0][0])));
		frag_harness_destroy(h);
	}
}
