// SPDX-License-Identifier: Apache-2.0
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

/*
 * How the pixel formats lie in memory. In `packed` two pixels share four bytes; luma and the two
 * colours are at these places of them.
 */
enum layout { PACKED, SEMIPLANAR, PLANAR, COLOUR, GRAY, BAYER, JPEG };
static const struct layout_of {
	uint32_t pixel_format;
	enum layout layout;
	uint8_t pixel_bytes;
	uint8_t bits;      /* of a value of GRAY and BAYER */
	uint8_t y, u, v;   /* PACKED */
	uint8_t red, blue; /* COLOUR */
} layouts[] = {
	{V4L2_PIX_FMT_YUYV, PACKED, 2, 8, 0, 1, 3, 0, 0},
	{V4L2_PIX_FMT_UYVY, PACKED, 2, 8, 1, 0, 2, 0, 0},
	{V4L2_PIX_FMT_NV12, SEMIPLANAR, 1, 8, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_YUV420, PLANAR, 1, 8, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_RGB24, COLOUR, 3, 8, 0, 0, 0, 0, 2},
	{V4L2_PIX_FMT_BGR24, COLOUR, 3, 8, 0, 0, 0, 2, 0},
	{V4L2_PIX_FMT_RGBA32, COLOUR, 4, 8, 0, 0, 0, 0, 2},
	{V4L2_PIX_FMT_GREY, GRAY, 1, 8, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_Y10, GRAY, 2, 10, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_Y12, GRAY, 2, 12, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_Y16, GRAY, 2, 16, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_SBGGR8, BAYER, 1, 8, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_SGBRG8, BAYER, 1, 8, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_SGRBG8, BAYER, 1, 8, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_SRGGB8, BAYER, 1, 8, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_SBGGR16, BAYER, 2, 16, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_SGBRG16, BAYER, 2, 16, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_SGRBG16, BAYER, 2, 16, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_SRGGB16, BAYER, 2, 16, 0, 0, 0, 0, 0},
	{V4L2_PIX_FMT_MJPEG, JPEG, 0, 8, 0, 0, 0, 0, 0},
};

static const struct layout_of *layout_of(uint32_t pixel_format)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(layouts); i++) {
		if (layouts[i].pixel_format == pixel_format)
			return &layouts[i];
	}
	return NULL;
}

bool picture_is_bayer(uint32_t pixel_format)
{
	const struct layout_of *l = layout_of(pixel_format);

	return l != NULL && l->layout == BAYER;
}

bool picture_is_kept(uint32_t pixel_format, uint8_t *out_bits)
{
	const struct layout_of *l = layout_of(pixel_format);

	if (l == NULL || (l->layout != BAYER && l->layout != GRAY))
		return false;
	*out_bits = (uint8_t)(8 * l->pixel_bytes);
	return true;
}

uint64_t picture_bytes(const struct picture_format *f)
{
	const struct layout_of *l = layout_of(f->pixel_format);
	uint64_t row = f->row_bytes, rows = f->rows, least, colours = 0;

	if (l == NULL)
		return 0;
	if (l->layout == JPEG)
		return 1;
	least = l->pixel_bytes * (uint64_t)f->columns;
	if (l->layout == PACKED || l->layout == SEMIPLANAR || l->layout == PLANAR)
		least += l->pixel_bytes * (uint64_t)(f->columns & 1);
	if (l->layout == SEMIPLANAR)
		rows += (rows + 1) / 2;
	if (l->layout == PLANAR)
		colours = row / 2 * ((rows + 1) / 2) * 2;
	if (row < least || rows == 0)
		return 0;
	return colours > 0 ? row * rows + colours : row * (rows - 1) + least;
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

static void from_packed(const struct picture_format *f, const struct layout_of *l,
			const uint8_t *data, uint8_t *rgb)
{
	for (uint32_t y = 0; y < f->rows; y++) {
		const uint8_t *row = data + (size_t)y * f->row_bytes;

		for (uint32_t x = 0; x < f->columns; x++, rgb += 3) {
			const uint8_t *pair = row + (size_t)(x / 2) * 4;

			put_pixel(rgb, pair[l->y + 2 * (x & 1)], pair[l->u], pair[l->v]);
		}
	}
}

static void from_planes(const struct picture_format *f, const uint8_t *data, uint8_t *rgb)
{
	size_t half = f->row_bytes / 2;
	const uint8_t *u = data + (size_t)f->rows * f->row_bytes;
	const uint8_t *v = u + half * ((f->rows + 1) / 2);

	for (uint32_t y = 0; y < f->rows; y++) {
		const uint8_t *luma = data + (size_t)y * f->row_bytes;
		size_t at = half * (y / 2);

		for (size_t x = 0; x < f->columns; x++, rgb += 3)
			put_pixel(rgb, luma[x], u[at + x / 2], v[at + x / 2]);
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
static void from_colours(const struct picture_format *f, const struct layout_of *l,
			 const uint8_t *data, uint8_t *rgb)
{
	for (uint32_t y = 0; y < f->rows; y++) {
		const uint8_t *pixel = data + (size_t)y * f->row_bytes;

		for (uint32_t x = 0; x < f->columns; x++, pixel += l->pixel_bytes, rgb += 3) {
			rgb[0] = pixel[l->red];
			rgb[1] = pixel[1];
			rgb[2] = pixel[l->blue];
		}
	}
}

/* Gray of any depth; what exceeds the depth is white. */
static void from_gray(const struct picture_format *f, const struct layout_of *l,
		      const uint8_t *data, uint8_t *rgb)
{
	uint32_t most = (1u << l->bits) - 1;

	for (uint32_t y = 0; y < f->rows; y++) {
		const uint8_t *pixel = data + (size_t)y * f->row_bytes;

		for (uint32_t x = 0; x < f->columns; x++, pixel += l->pixel_bytes, rgb += 3) {
			uint32_t value =
				l->pixel_bytes == 1 ? pixel[0] : pixel[0] | (uint32_t)pixel[1] << 8;

			value = value > most ? most : value;
			memset(rgb, (int)((value * 255 + most / 2) / most), 3);
		}
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
	const struct layout_of *l = layout_of(format->pixel_format);

	if (l == NULL || size < picture_bytes(format))
		return -EBADMSG;
	switch (l->layout) {
	case PACKED:
		from_packed(format, l, data, rgb);
		return 0;
	case SEMIPLANAR:
		from_nv12(format, data, rgb);
		return 0;
	case PLANAR:
		from_planes(format, data, rgb);
		return 0;
	case COLOUR:
		from_colours(format, l, data, rgb);
		return 0;
	case GRAY:
		from_gray(format, l, data, rgb);
		return 0;
	case JPEG:
		return from_jpeg(converter, format, data, size, rgb);
	default:
		return -EBADMSG;
	}
}

int picture_keep(const struct picture_format *format, const uint8_t *data, uint64_t size,
		 uint8_t *out)
{
	const struct layout_of *l = layout_of(format->pixel_format);
	size_t row = l != NULL ? (size_t)format->columns * l->pixel_bytes : 0;

	if (row == 0 || size < picture_bytes(format))
		return -EBADMSG;
	for (uint32_t y = 0; y < format->rows; y++)
		memcpy(out + y * row, data + (size_t)y * format->row_bytes, row);
	return 0;
}

int32_t picture_describe(const struct picture_format *f, uint32_t size, int64_t shape[3],
			 int64_t strides[3], uint8_t *out_bits)
{
	const struct layout_of *l = layout_of(f->pixel_format);
	bool is_wide = (l->layout == GRAY || l->layout == BAYER) && l->pixel_bytes == 2;
	int64_t channels = is_wide ? 1 : l->pixel_bytes;

	*out_bits = is_wide ? 16 : 8;
	if (l->layout == JPEG) {
		shape[0] = size;
		strides[0] = 1;
		return 1;
	}
	shape[0] = f->rows;
	shape[1] = l->layout == PLANAR ? f->row_bytes : f->columns;
	strides[0] = f->row_bytes / (is_wide ? 2 : 1);
	if (l->layout == SEMIPLANAR || l->layout == PLANAR) {
		shape[0] += (f->rows + 1) / 2;
		strides[1] = 1;
		return 2;
	}
	shape[2] = channels;
	strides[1] = channels;
	strides[2] = 1;
	return 3;
}
