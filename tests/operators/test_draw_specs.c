// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <frag/tree.h>

#include "draw/held.h"
#include "draw_pictures.h"

/* Gives a black frame, a box of its left half, and layers; returns the red of its first pixel. */
static int red_of_corner(struct frag_harness *h, const char *specs)
{
	const float half[] = {0, 0, 0.5f, 1};
	struct frag_message *m;
	int red;

	if (specs != NULL)
		cr_assert_eq(frag_harness_give_string(h, "input_specs", specs), 0);
	m = drawn(h, numbers(1, 4, half));
	red = ((const uint8_t *)frag_tensor_data(frag_message_tensor(m, "")))[0];
	frag_message_unref(m);
	return red;
}

/* They count for one picture, beside the operator's own and among them by priority. */
Test(ops_draw, layers_come_with_messages)
{
	static const char *const given[] = {
		"[{type: color}, {name: t, type: lines, color: [1, 1, 1], priority: 1}]", "[]"};
	static const char *const below =
		"[{\"name\": \"t\", \"type\": \"rectangles\", \"color\": [0.5, 0, 0, 1]}]";
	static const char *const above =
		"[{name: t, type: rectangles, color: [0.5, 0, 0], priority: 2}]";

	for (int i = 0; i < 2; i++) {
		const int without = i == 0 ? 255 : 0;
		struct frag_harness *h = make(&vision_draw_type, FRAG_ARGS({"tensors", given[i]}));

		cr_expect_eq(red_of_corner(h, NULL), without);
		cr_expect_eq(red_of_corner(h, below), i == 0 ? 255 : 128, "set %d", i);
		cr_expect_eq(red_of_corner(h, above), 128);
		cr_expect_eq(red_of_corner(h, NULL), without);
		cr_expect_eq(red_of_corner(h, "[]"), without);
		frag_harness_destroy(h);
	}
}

/* Without layers of its own the operator shows the frames that no layer of a message names. */
Test(ops_draw, layers_of_messages_name_the_frames_that_they_draw)
{
	static const struct {
		const char *specs;
		int red;
	} cases[] = {
		{NULL, 200},
		{"[{name: t, type: rectangles, color: [0, 0, 0]}]", 200},
		{"[{type: color, opacity: 0.5}]", 100},
	};
	struct frag_harness *h = make(&vision_draw_type, NULL);

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_message *m = frag_message_create();
		const uint8_t *pixel;

		if (cases[i].specs != NULL)
			cr_assert_eq(frag_harness_give_string(h, "input_specs", cases[i].specs), 0);
		cr_assert_eq(frag_message_add_tensor(m, "", frame_of(200)), 0);
		cr_assert_eq(frag_message_add_tensor(
				     m, "t", numbers(1, 4, (const float[]){0, 0, 0.5f, 0.5f})),
			     0);
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		m = ticked(h, "out");
		pixel = frag_tensor_data(frag_message_tensor(m, ""));
		cr_expect_eq(pixel[(ROWS * COLUMNS - 1) * 3], cases[i].red, "case %zu: %d", i,
			     pixel[(ROWS * COLUMNS - 1) * 3]);
		frag_message_unref(m);
	}
	frag_harness_destroy(h);
}

/* The text of a layer is another one in each picture. */
Test(ops_draw, texts_come_with_messages)
{
	static const char *const specs[] = {"[{name: t, type: text, text: [I]}]",
					    "[{name: t, type: text, text: [L]}]"};
	static const char *const pictures[] = {
		".###....................\n"
		"..#..................... x5\n"
		".###....................\n"
		"........................ x5\n",
		"#....................... x6\n"
		"#####...................\n"
		"........................ x5\n",
	};
	struct frag_harness *h =
		make(&vision_draw_type,
		     FRAG_ARGS({"tensors", "[{type: color}]"}, {"width", "24"}, {"height", "12"}));

	for (int i = 0; i < 2; i++) {
		struct frag_message *m;

		cr_assert_eq(frag_harness_give_string(h, "input_specs", specs[i]), 0);
		m = drawn(h, numbers(1, 2, (const float[]){0, 0}));
		expect_drawn(m, pictures[i], specs[i]);
		frag_message_unref(m);
	}
	frag_harness_destroy(h);
}

/* As in viewer and window, which draw later. */
Test(ops_draw, layers_of_messages_are_held_with_them)
{
	static const char *const texts[] = {"[{type: color}]", "[]", "[0, 0, 1]", "[0, 0, 0]",
					    "[0, 1, 0]"};
	const struct frag_tree *trees[FRAG_COUNT_OF(texts)];
	struct frag_message *m = frag_message_create();
	const struct frag_message *items[] = {m};
	struct messages messages = {.items = items, .count = 1};
	struct frag_err err = FRAG_ERR_INIT;
	struct canvas canvas = {0};
	struct layers layers;
	struct held *held;

	for (size_t i = 0; i < FRAG_COUNT_OF(texts); i++)
		cr_assert_eq(frag_tree_parse(texts[i], &trees[i], &err), 0, "%s", err.text);
	cr_assert_eq(draw_layers_init(&layers,
				      &(const struct draw_given){trees[0], trees[1], trees[2],
								 trees[3], trees[4], 0, 0},
				      &err),
		     0, "%s", err.text);
	cr_assert_eq(frag_message_add_tensor(m, "", frame_of(0)), 0);
	cr_assert_eq(frag_message_add_tensor(m, "t", numbers(1, 4, (const float[]){0, 0, 1, 1})),
		     0);
	for (int with = 1; with >= 0; with--) {
		if (with)
			cr_assert_eq(draw_layers_extend(&layers, "[{name: t, type: rectangles}]",
							&messages.own, &err),
				     0, "%s", err.text);
		held = draw_held_create(&messages);
		cr_assert_null(messages.own, "it took them");
		cr_assert_eq(draw_held_draw(&layers, held, &canvas), 0);
		cr_expect_eq(canvas.pixels[0], with ? 255 : 0);
		draw_held_destroy(held);
	}
	free(canvas.pixels);
	draw_layers_fini(&layers);
	frag_message_unref(m);
	for (size_t i = 0; i < FRAG_COUNT_OF(texts); i++)
		frag_tree_destroy(trees[i]);
}

/* The sentences are those of the parameter; the next tick is as if nothing had been. */
Test(ops_draw, layers_of_messages_that_make_no_sense_are_refused)
{
	static char many[64 * 16 + 3] = "[";
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "input_specs: the text is not a list of up to 63 layers"},
		{"{a: b}", "input_specs: the text is not a list of up to 63 layers"},
		{many, "input_specs: the text is not a list of up to 63 layers"},
		{"[{", "input_specs: line 1: "},
		{"[]\n--- []", "input_specs: line 2: "},
		{"[\n{name: a, type: cubes}]",
		 "input_specs: line 2: \"cubes\" is not a type of layer; give color, "},
		{"[{name: a}]", "input_specs: line 1: layer \"a\" has no type"},
		{"[{name: none, type: lines}]", "no message holds a tensor \"none\""},
		{"[{type: lines}]", "tensor \"\" cannot be drawn as its layer says"},
	};

	for (int i = 0; i < 64; i++)
		strcat(many, "{type: color}, ");
	strcat(many, "]");
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_harness *h =
			make(&vision_draw_type, FRAG_ARGS({"tensors", "[{type: color}]"}));

		cr_assert_eq(frag_harness_give_string(h, "input_specs", cases[i].text), 0);
		give_tensor(h, "receivers", "", frame_of(0));
		cr_expect_eq(frag_harness_tick(h), -EINVAL, "case %zu", i);
		cr_expect(strstr(frag_harness_error(h), cases[i].says) != NULL, "case %zu: %s", i,
			  frag_harness_error(h));
		cr_expect_eq(red_of_corner(h, NULL), 0, "case %zu", i);
		frag_harness_destroy(h);
	}
}
