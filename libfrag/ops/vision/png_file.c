/* SPDX-License-Identifier: Apache-2.0 */
#include <png.h>
#include <stdio.h>
#include <unistd.h>

#include "png_file.h"

/* libpng reports errors by longjmp, so no variable that changes after setjmp is read after it. */
static int write_rows(FILE *file, const struct frame *frame)
{
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
	int colour = frame->channels == 1   ? PNG_COLOR_TYPE_GRAY
		     : frame->channels == 3 ? PNG_COLOR_TYPE_RGB
					    : PNG_COLOR_TYPE_RGB_ALPHA;

	if (info == NULL) {
		png_destroy_write_struct(&png, NULL);
		return -ENOMEM;
	}
	if (setjmp(png_jmpbuf(png))) {
		png_destroy_write_struct(&png, &info);
		return -EIO;
	}
	png_init_io(png, file);
	png_set_IHDR(png, info, (png_uint_32)frame->columns, (png_uint_32)frame->rows, 8, colour,
		     PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(png, info);
	for (int64_t y = 0; y < frame->rows; y++)
		png_write_row(png, (png_const_bytep)frame->data + (size_t)y * frame->row_bytes);
	png_write_end(png, info);
	png_destroy_write_struct(&png, &info);
	return 0;
}

int vision_png_write(const char *path, const struct frame *frame)
{
	char part[PATH_MAX];
	FILE *file;
	int r;

	if (snprintf(part, sizeof(part), "%s.part", path) >= (int)sizeof(part))
		return -ENAMETOOLONG;
	file = fopen(part, "wbe");
	if (file == NULL)
		return -errno;
	r = write_rows(file, frame);
	if (fclose(file) != 0 && r == 0)
		r = -errno;
	if (r == 0 && rename(part, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(part);
	return r;
}
