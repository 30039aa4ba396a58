// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <png.h>
#include <stdio.h>

#include "png_file.h"

static void on_error(png_structp png, png_const_charp text)
{
	(void)text; /* "Write Error", and errno says why */
	png_longjmp(png, 1);
}

/* libpng reports errors by longjmp, so no variable that changes after setjmp is read after it. */
static int write_rows(FILE *file, const struct frame *frame)
{
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, NULL);
	png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
	int colour = frame->channels == 1   ? PNG_COLOR_TYPE_GRAY
		     : frame->channels == 3 ? PNG_COLOR_TYPE_RGB
					    : PNG_COLOR_TYPE_RGB_ALPHA;

	if (info == NULL) {
		png_destroy_write_struct(&png, NULL);
		return -ENOMEM;
	}
	errno = 0;
	if (setjmp(png_jmpbuf(png))) {
		int why = errno;

		png_destroy_write_struct(&png, &info);
		return why > 0 ? -why : -EIO;
	}
	png_init_io(png, file);
	png_set_IHDR(png, info, (png_uint_32)frame->columns, (png_uint_32)frame->rows,
		     frame->is_deep ? 16 : 8, colour, PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(png, info);
	if (frame->is_deep)
		png_set_swap(png); /* a PNG has the high byte first */
	for (int64_t y = 0; y < frame->rows; y++)
		png_write_row(png, (png_const_bytep)frame->data + (size_t)y * frame->row_bytes);
	png_write_end(png, info);
	png_destroy_write_struct(&png, &info);
	return 0;
}

int image_png_write(const char *path, const struct frame *frame)
{
	struct frag_draft *draft;
	int r = frag_draft_create(path, &draft);

	if (r < 0)
		return r;
	r = write_rows(frag_draft_stream(draft), frame);
	if (r == 0)
		return frag_draft_commit(draft);
	frag_draft_destroy(draft);
	return r;
}
