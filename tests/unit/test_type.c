// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <data/type.h>

#include "shapes.h"

Test(type, the_built_in_ones_are_there_with_their_arrays)
{
	static const char *const names[] = {"bool", "i8",        "i16",       "i32", "i64",
					    "u8",   "u16",       "u32",       "u64", "f32",
					    "f64",  "complex64", "complex128"};
	char array[16];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct frag_type *type = frag_type_find(names[i]);

		cr_assert_not_null(type);
		cr_expect_str_eq(type->name, names[i]);
		snprintf(array, sizeof(array), "%s[]", names[i]);
		cr_assert_not_null(frag_type_find(array));
		cr_expect_str_eq(frag_type_find(array)->name, array);
		cr_expect_eq(frag_type_find(array)->size, 0);
		cr_expect_eq(fragi_type_by_id(fragi_type_id(type)), type);
		cr_expect(fragi_type_has_codec(frag_type_find(array)));
	}
	cr_expect_eq(frag_type_find("i64"), &frag_type_i64);
	cr_expect_eq(frag_type_find("string"), &frag_type_string);
	cr_expect_eq(frag_type_find("bytes"), &frag_type_bytes);
	cr_expect_null(frag_type_find("message"));
	cr_expect_null(frag_type_find(""));
	cr_expect_eq(frag_type_register(&frag_type_i64, NULL), 0);
	cr_expect_eq(frag_type_register(&frag_type_string, NULL), 0);
}

Test(type, plain_structs_nested)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(frag_type_register(&box_type, &err), -EINVAL);
	cr_expect_not_null(strstr(err.text, "box.corners has the unknown type \"point\""), "%s",
			   err.text);
	cr_expect_eq(frag_type_register(&point_type, NULL), 0);
	cr_expect_eq(frag_type_register(&box_type, NULL), 0);
	cr_expect_eq(frag_type_register(&box_type, NULL), 0);
	cr_expect_eq(frag_type_find("box"), &box_type);
	cr_expect_not_null(frag_type_find("box[]"));
	cr_expect_eq(fragi_type_info(&box_type)->wire_size, 4 * 4 + 1 + 4);
	cr_expect(fragi_type_info(&point_type)->is_dense);
	cr_expect_not(fragi_type_info(&box_type)->is_dense);
	cr_expect_eq(fragi_type_check_size(frag_type_find("box[]"), 3 * sizeof(struct box)), 0);
	cr_expect_eq(fragi_type_check_size(frag_type_find("box[]"), 3 * sizeof(struct box) + 1),
		     -EINVAL);
}

/* The id goes over the wire between builds: it may not change. */
Test(type, ids_are_fnv1a_of_name_and_fields)
{
	cr_expect_eq(fragi_type_id(&frag_type_i64), UINT64_C(0x1093CDC467D08BF2));
	cr_expect_eq(fragi_type_id(&point_type), 0); /* not registered */
	frag_type_register(&point_type, NULL);
	cr_expect_eq(fragi_type_id(&point_type), UINT64_C(0xCD7A120FC584A0CA));
	cr_expect_eq(fragi_type_id(frag_type_find("point[]")), UINT64_C(0x8339A97B88927C9A));
}

Test(type, ids_differ_where_fields_differ)
{
	static const struct frag_field renamed[] = {FRAG_FIELD(struct point, x, "f32"),
						    {"z", "f32", 4, 1, 0}},
				       retyped[] = {FRAG_FIELD(struct point, x, "f32"),
						    {"y", "u32", 4, 1, 0}},
				       counted[] = {{"x", "f32", 0, 2, 0}};
	static const struct frag_type types[] = {
		{FRAG_TYPE_INIT, .name = "p1", .size = 8, FRAG_FIELDS(point_fields)},
		{FRAG_TYPE_INIT, .name = "p2", .size = 8, FRAG_FIELDS(point_fields)},
		{FRAG_TYPE_INIT, .name = "p3", .size = 8, FRAG_FIELDS(renamed)},
		{FRAG_TYPE_INIT, .name = "p4", .size = 8, FRAG_FIELDS(retyped)},
		{FRAG_TYPE_INIT, .name = "p5", .size = 8, FRAG_FIELDS(counted)},
	};

	for (size_t i = 0; i < 5; i++) {
		cr_assert_eq(frag_type_register(&types[i], NULL), 0);
		for (size_t k = 0; k < i; k++)
			cr_expect_neq(fragi_type_id(&types[i]), fragi_type_id(&types[k]));
	}
}

static int no_encode(const void *value, struct frag_writer *writer)
{
	return 0;
}

Test(type, a_table_that_is_none_is_refused_with_a_sentence)
{
	static const struct frag_field overlap[] = {{"a", "i32", 0, 2, 0}, {"b", "i32", 4, 1, 0}};
	static const struct frag_field beyond[] = {{"a", "i32", 4, 2, 0}};
	static const struct frag_field far[] = {{"a", "f64", UINT32_MAX, UINT32_MAX, 0}};
	static const struct frag_field twice[] = {{"a", "i32", 0, 1, 0}, {"a", "i32", 4, 1, 0}};
	static const struct frag_field none[] = {{"a", "i32", 0, 0, 0}};
	static const struct frag_field text[] = {{"a", "string", 0, 1, 0}};
	static const struct frag_field array[] = {{"a", "i8[]", 0, 1, 0}};
	static const struct frag_field self[] = {{"a", "t", 0, 1, 0}};
	static const struct frag_field nameless[] = {{NULL, "i32", 0, 1, 0}};
	static const struct frag_field typeless[] = {{"a", NULL, 0, 1, 0}};
	static const struct {
		struct frag_type type;
		const char *says;
	} cases[] = {
		{{.name = "t", .size = 8}, "struct_size 0"},
		{{FRAG_TYPE_INIT, .name = NULL, .size = 8}, "not a valid name"},
		{{FRAG_TYPE_INIT, .name = "a b", .size = 8}, "not a valid name"},
		{{FRAG_TYPE_INIT, .name = "i64[]", .size = 8}, "not a valid name"},
		{{FRAG_TYPE_INIT, .name = "message", .size = 8}, "not a valid name"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 0}, "size 0"},
		{{FRAG_TYPE_INIT, .name = "t", .size = (size_t)2 << 30}, "size 2147483648"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, .align = 3}, "align 3"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, .align = 128}, "align 128"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, .encode = no_encode}, "only one of"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, .fini = free, FRAG_FIELDS(none)},
		 "both fields and"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, .fields = none, .field_count = 1},
		 "an invalid table"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, .fields = none, .field_count = UINT32_MAX,
		  .field_size = 32},
		 "an invalid table"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, FRAG_FIELDS(overlap)},
		 "t.a and t.b overlap"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, FRAG_FIELDS(beyond)},
		 "beyond the struct's 8 bytes"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, FRAG_FIELDS(far)},
		 "beyond the struct's 8 bytes"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, FRAG_FIELDS(twice)}, "two fields \"a\""},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, FRAG_FIELDS(none)}, "count 0"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, FRAG_FIELDS(text)},
		 "scalar or a plain struct"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, FRAG_FIELDS(array)},
		 "scalar or a plain struct"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, FRAG_FIELDS(self)}, "unknown type \"t\""},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, FRAG_FIELDS(nameless)}, "without a name"},
		{{FRAG_TYPE_INIT, .name = "t", .size = 8, FRAG_FIELDS(typeless)}, "unknown type"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_expect_eq(frag_type_register(&cases[i].type, &err), -EINVAL, "%s",
			     cases[i].says);
		cr_expect_not_null(strstr(err.text, cases[i].says), "%s: %s", cases[i].says,
				   err.text);
	}
	cr_expect_null(frag_type_find("t"));
}

Test(type, a_name_twice_is_refused)
{
	static const struct frag_type first = {FRAG_TYPE_INIT, .name = "mine", .size = 8},
				      second = {FRAG_TYPE_INIT, .name = "mine", .size = 8},
				      scalar = {FRAG_TYPE_INIT, .name = "f64", .size = 8};
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(frag_type_register(&first, NULL), 0);
	cr_expect_eq(frag_type_register(&second, &err), -EEXIST);
	cr_expect_not_null(strstr(err.text, "\"mine\""));
	cr_expect_eq(frag_type_register(&scalar, NULL), -EEXIST);
	cr_expect_eq(frag_type_find("mine"), &first);
	cr_expect_not(fragi_type_has_codec(&first));
	cr_expect_not(fragi_type_has_codec(frag_type_find("mine[]")));
	cr_expect_not(fragi_type_has_codec(&second));
}

/* Two plugins that include one header have a table each. */
Test(type, equal_tables_of_a_struct_are_one_type)
{
	static const struct frag_field fields[] = {FRAG_FIELD(struct point, x, "f32"),
						   FRAG_FIELD(struct point, y, "f32")};
	static const struct frag_type twin = {FRAG_TYPE_INIT, .name = "point",
					      .size = sizeof(struct point), FRAG_FIELDS(fields)};
	static struct frag_type many[200];
	static char names[200][8];

	static const struct frag_type third = {FRAG_TYPE_INIT, .name = "point",
					       .size = sizeof(struct point), FRAG_FIELDS(fields)};

	cr_expect_eq(frag_type_equal(&point_type, &twin), 0, "not registered yet");
	cr_expect_eq(fragi_type_id(&point_type), 0);
	cr_expect_eq(frag_type_register(&point_type, NULL), 0);
	cr_expect_eq(frag_type_equal(&third, &point_type), 1, "of another file of the plugin");
	cr_expect_eq(frag_type_register(&twin, NULL), 0);
	cr_expect_eq(frag_type_register(&twin, NULL), 0);
	cr_expect_eq(frag_type_equal(&point_type, &twin), 1);
	cr_expect_eq(frag_type_equal(&twin, &frag_type_f64), 0);
	cr_expect_eq(frag_type_equal(&twin, NULL), 0);
	/* The tables of the registry are replaced by larger ones meanwhile. */
	for (int i = 0; i < 200; i++) {
		snprintf(names[i], sizeof(names[i]), "t%d", i);
		many[i] = (struct frag_type){FRAG_TYPE_INIT, .name = names[i], .size = 1};
		cr_assert_eq(frag_type_register(&many[i], NULL), 0);
	}
	cr_expect_eq(frag_type_find("point"), &point_type);
	cr_expect_eq(fragi_type_by_id(fragi_type_id(&twin)), &point_type);
	cr_expect_eq(fragi_type_id(&twin), fragi_type_id(&point_type));
	cr_expect(fragi_type_has_codec(&twin));
}

Test(type, different_tables_of_one_name_are_refused)
{
	struct moved {
		float y, x;
	};
	struct padded {
		float x, y;
		int unused;
	};
	static const struct frag_field moved[] = {FRAG_FIELD(struct moved, x, "f32"),
						  FRAG_FIELD(struct moved, y, "f32")},
				       shorter[] = {FRAG_FIELD(struct point, x, "f32")},
				       equal[] = {FRAG_FIELD(struct padded, x, "f32"),
						  FRAG_FIELD(struct padded, y, "f32")};
	static const struct {
		struct frag_type type;
		const char *sentence;
	} cases[] = {
		{{FRAG_TYPE_INIT, .name = "point", .size = 8, FRAG_FIELDS(moved)},
		 "differ at field 0 (\"x\" of type f32 at byte 0, and \"x\" of type f32 at byte 4)"},
		{{FRAG_TYPE_INIT, .name = "point", .size = 8, FRAG_FIELDS(shorter)},
		 "with 2 fields in 8 bytes, and here it has 1 in 8"},
		{{FRAG_TYPE_INIT, .name = "point", .size = 12, FRAG_FIELDS(equal)},
		 "with 2 fields in 8 bytes, and here it has 2 in 12"},
		{{FRAG_TYPE_INIT, .name = "point", .size = 8}, "by another table"},
	};

	frag_type_register(&point_type, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_expect_eq(frag_type_register(&cases[i].type, &err), -EEXIST);
		cr_expect_not_null(strstr(err.text, cases[i].sentence), "%s", err.text);
		cr_expect_eq(frag_type_equal(&cases[i].type, &point_type), 0);
	}
}

Test(type, a_nested_struct_has_the_size_of_its_field)
{
	struct outer {
		struct {
			double a, b;
		} in;
	};
	static const struct frag_field fields[] = {FRAG_FIELD(struct outer, in, "point")};
	static const struct frag_type outer = {FRAG_TYPE_INIT, .name = "outer",
					       .size = sizeof(struct outer), FRAG_FIELDS(fields)};
	/* the table of a plugin that was built before frag_field had a size */
	static const struct {
		const char *name, *type;
		uint32_t offset, count;
	} old_fields[] = {{"in", "point", 0, 1}};
	const struct frag_type old = {
		FRAG_TYPE_INIT,   .name = "old",
		.size = 16,       .fields = (const struct frag_field *)(const void *)old_fields,
		.field_count = 1, .field_size = sizeof(old_fields[0])};
	struct frag_err err = FRAG_ERR_INIT;

	frag_type_register(&point_type, NULL);
	cr_expect_eq(frag_type_register(&outer, &err), -EINVAL);
	cr_expect_not_null(
		strstr(err.text, "outer.in has 16 bytes in C, and its type \"point\" has 8"), "%s",
		err.text);
	cr_expect_eq(frag_type_register(&old, NULL), 0);
}

Test(type, nesting_is_bounded)
{
	static char names[32][8];
	static struct frag_field fields[32];
	static struct frag_type types[32];
	struct frag_err err = FRAG_ERR_INIT;
	int deep = 0;

	for (int i = 0; i < 32; i++) {
		snprintf(names[i], sizeof(names[i]), "n%d", i);
		fields[i] = (struct frag_field){"in", i == 0 ? "i64" : names[i - 1], 0, 1, 0};
		types[i] = (struct frag_type){FRAG_TYPE_INIT,   .name = names[i],
					      .size = 8,        .fields = &fields[i],
					      .field_count = 1, .field_size = sizeof(fields[i])};
		if (frag_type_register(&types[i], &err) == 0)
			deep++;
	}
	cr_expect_eq(deep, FRAGI_TYPE_DEPTH_MAX);
	cr_expect_not_null(strstr(err.text, " nests structs more than 16 deep; flatten it"), "%s",
			   err.text);
}

Test(type, every_failed_allocation_is_survived)
{
	static const struct frag_type small = {FRAG_TYPE_INIT, .name = "small", .size = 8,
					       FRAG_FIELDS(point_fields)};
	int64_t failed = 1;
	int r;

	for (int64_t n = 0; failed > 0; n++) {
		struct frag_err err = FRAG_ERR_INIT;

		fragi_alloc_fail_after(n, 1);
		r = frag_type_register(&small, &err);
		failed = fragi_alloc_fail_off();
		cr_assert_eq(r, failed > 0 ? -ENOMEM : 0);
		cr_assert_eq(frag_type_find("small") != NULL, failed == 0);
		cr_assert_eq(frag_type_find("small[]") != NULL, failed == 0);
	}
}

#define MANY 1000

static struct frag_type many[MANY];

static void *look_up(void *failures)
{
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < MANY; i += 97)
			if (fragi_type_id(&many[i]) != 0 &&
			    fragi_type_by_id(fragi_type_id(&many[i])) != &many[i])
				(*(int *)failures)++;
		*(int *)failures += fragi_type_by_id(fragi_type_id(&frag_type_u8)) != &frag_type_u8;
	}
	return NULL;
}

Test(type, lookups_go_on_while_types_are_added)
{
	static char names[MANY][16];
	pthread_t thread;
	int failures = 0;

	for (int i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "many.%d", i);
		many[i] = (struct frag_type){FRAG_TYPE_INIT, .name = names[i], .size = 4};
	}
	cr_assert_eq(pthread_create(&thread, NULL, look_up, &failures), 0);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(frag_type_register(&many[i], NULL), 0);
	pthread_join(thread, NULL);
	cr_expect_eq(failures, 0);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(frag_type_find(names[i]), &many[i]);
}
