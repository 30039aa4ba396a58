/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "viewer/picture.h"

Test(ops_viewer, a_picture_is_a_whole_jpeg_with_its_numbers)
{
	static const char comment[] = "\xff\xd8\xff\xfe\0\x2f"
				      "frag number=7 received_ns=-17 acquired_ns=230";
	struct canvas canvas = {.rows = 8, .columns = 16, .pixels = calloc(8 * 16, 3)};
	struct picture *p = viewer_picture_create(&canvas, 90, 7, -17, 230);

	cr_assert_not_null(p);
	cr_expect_eq(memcmp(p->jpeg, comment, sizeof(comment) - 1), 0);
	cr_expect_eq(p->jpeg[sizeof(comment) - 1], 0xff, "the next segment");
	cr_expect_eq(memcmp(p->jpeg + p->size - 2, "\xff\xd9", 2), 0, "the end of the image");
	cr_expect_eq(viewer_picture_ref(p), p);
	viewer_picture_unref(p);
	cr_expect_eq(p->number, 7, "one reference is left");
	viewer_picture_unref(p);
	viewer_picture_unref(NULL);
	canvas.columns = 65536;
	cr_expect_null(viewer_picture_create(&canvas, 90, 7, 0, 0));
	free(canvas.pixels);
}
