/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/videodev2.h>
#include <turbojpeg.h>

#include "picture.h"

struct picture_converter {
	tjhandle jpeg; /* NULL until a picture is one */
};

const char *picture_fourcc(uint32_t pixel_format, char text[PICTURE_FOURCC_TEXT])
{
	for (int i = 0; i < 4; i++) {
		char c = (char)(pixel_format >> (8 * i) & 0x7f);

		text[i] = c;
		if (c < ' ' || c == 0x7f || pixel_format >> (8 * i) & 0x80)
			text[i] = '?';
	}
	text[4] = '\0';
	return text;
}

uint64_t picture_bytes(const struct picture_format *f)
{
	uint64_t row = f->row_bytes, rows = f->rows, least;

	switch (f->pixel_format) {
	case V4L2_PIX_FMT_YUYV:
		least = 2 * (uint64_t)(f->columns + (f->columns & 1));
		break;
	case V4L2_PIX_FMT_NV12:
		least = (uint64_t)f->columns + (f->columns & 1);
		rows += (rows + 1) / 2;
		break;
	case V4L2_PIX_FMT_RGB24:
		least = 3 * (uint64_t)f->columns;
		break;
	case V4L2_PIX_FMT_RGBA32:
		least = 4 * (uint64_t)f->columns;
		break;
	case V4L2_PIX_FMT_MJPEG:
		return 1;
	default:
		return 0;
	}
	return row < least || rows == 0 ? 0 : row * (rows - 1) + least;
}

struct picture_converter *picture_converter_create(void)
{
	return calloc(1, sizeof(struct picture_converter));
}

void picture_converter_destroy(struct picture_converter *converter)
{
	if (converter != NULL && converter->jpeg != NULL)
		tjDestroy(converter->jpeg);
	free(converter);
}

static uint8_t clamp(int value)
{
	return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* ITU-R BT.601, in 256ths. */
static void put_pixel(uint8_t *rgb, int y, int u, int v)
{
	int luma = 298 * (y - 16) + 128;

	rgb[0] = clamp((luma + 409 * (v - 128)) >> 8);
	rgb[1] = clamp((luma - 100 * (u - 128) - 208 * (v - 128)) >> 8);
	rgb[2] = clamp((luma + 516 * (u - 128)) >> 8);
}

static void from_yuyv(const struct picture_format *f, const uint8_t *data, uint8_t *rgb)
{
	for (uint32_t y = 0; y < f->rows; y++) {
		const uint8_t *row = data + (size_t)y * f->row_bytes;

		for (uint32_t x = 0; x < f->columns; x++, rgb += 3) {
			const uint8_t *pair = row + (size_t)(x / 2) * 4;

			put_pixel(rgb, pair[x & 1 ? 2 : 0], pair[1], pair[3]);
		}
	}
}

static void from_nv12(const struct picture_format *f, const uint8_t *data, uint8_t *rgb)
{
	const uint8_t *chroma = data + (size_t)f->rows * f->row_bytes;

	for (uint32_t y = 0; y < f->rows; y++) {
		const uint8_t *luma = data + (size_t)y * f->row_bytes;
		const uint8_t *uv = chroma + (size_t)(y / 2) * f->row_bytes;

		for (size_t x = 0; x < f->columns; x++, rgb += 3)
			put_pixel(rgb, luma[x], uv[x / 2 * 2], uv[x / 2 * 2 + 1]);
	}
}

/* Rows of three or four bytes a pixel; the fourth is left out. */
static void from_rgb(const struct picture_format *f, uint32_t channels, const uint8_t *data,
		     uint8_t *rgb)
{
	for (uint32_t y = 0; y < f->rows; y++) {
		const uint8_t *pixel = data + (size_t)y * f->row_bytes;

		for (uint32_t x = 0; x < f->columns; x++, pixel += channels, rgb += 3)
			memcpy(rgb, pixel, 3);
	}
}

/* A picture that was cut off on its way is refused, although it could be decoded in part. */
static int from_jpeg(struct picture_converter *converter, const struct picture_format *f,
		     const uint8_t *data, uint64_t size, uint8_t *rgb)
{
	int columns, rows, sampling, space;

	if (converter->jpeg == NULL)
		converter->jpeg = tjInitDecompress();
	if (converter->jpeg == NULL)
		return -ENOMEM;
	if (tjDecompressHeader3(converter->jpeg, data, size, &columns, &rows, &sampling, &space) <
		    0 ||
	    columns != (int)f->columns || rows != (int)f->rows ||
	    tjDecompress2(converter->jpeg, data, size, rgb, columns, 0, rows, TJPF_RGB,
			  TJFLAG_STOPONWARNING) < 0)
		return -EBADMSG;
	return 0;
}

int picture_to_rgb(struct picture_converter *converter, const struct picture_format *format,
		   const uint8_t *data, uint64_t size, uint8_t *rgb)
{
	if (size < picture_bytes(format))
		return -EBADMSG;
	switch (format->pixel_format) {
	case V4L2_PIX_FMT_YUYV:
		from_yuyv(format, data, rgb);
		return 0;
	case V4L2_PIX_FMT_NV12:
		from_nv12(format, data, rgb);
		return 0;
	case V4L2_PIX_FMT_RGB24:
		from_rgb(format, 3, data, rgb);
		return 0;
	case V4L2_PIX_FMT_RGBA32:
		from_rgb(format, 4, data, rgb);
		return 0;
	case V4L2_PIX_FMT_MJPEG:
		return from_jpeg(converter, format, data, size, rgb);
	default:
		return -EBADMSG;
	}
}
