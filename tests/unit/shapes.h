/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_SHAPES_H
#define TESTS_UNIT_SHAPES_H

#include <stdbool.h>
#include <frag/type.h>

/* Plain types of the tests' own: one without padding, one with it that holds others. */
struct point {
	float x, y;
};
struct box {
	struct point corners[2];
	bool filled;
	int32_t label;
};

static const struct frag_field point_fields[] = {
	FRAG_FIELD(struct point, x, "f32"),
	FRAG_FIELD(struct point, y, "f32"),
};
static const struct frag_type point_type = {
	FRAG_TYPE_INIT, .name = "point", .size = sizeof(struct point), FRAG_FIELDS(point_fields)};
static const struct frag_field box_fields[] = {
	FRAG_FIELD_ARRAY(struct box, corners, "point", 2),
	FRAG_FIELD(struct box, filled, "bool"),
	FRAG_FIELD(struct box, label, "i32"),
};
static const struct frag_type box_type = {FRAG_TYPE_INIT, .name = "box", .size = sizeof(struct box),
					  FRAG_FIELDS(box_fields)};

#endif
