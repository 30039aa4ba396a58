/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cuda/twin.h"
#include "cuda/twin_cases.h"
#include "vision/vision.h"

#define SIDE_MAX 50

/* Says which case it is, and lets the failure follow. */
static void head(char **why, size_t *size, uint64_t seed, const struct twin *twin)
{
	int n = snprintf(*why, *size, "seed %llu of %s:", (unsigned long long)seed,
			 twin->type->name);

	for (size_t i = 0; twin->args[i].name != NULL && (size_t)n < *size; i++)
		n += snprintf(*why + n, *size - (size_t)n, " %s=%s", twin->args[i].name,
			      twin->args[i].text);
	if ((size_t)n + 2 < *size)
		n += snprintf(*why + n, *size - (size_t)n, ": ");
	*why += n;
	*size -= (size_t)n;
}

/* Formats that are not RGB, and frames of 16 bits. */
static bool format_converter_case(uint64_t seed, char *why, size_t size)
{
	static const char *const formats[] = {
		"nv12",       "p010",       "yuv420",     "yuyv",   "uyvy",  "bayer_rggb",
		"bayer_bggr", "bayer_gbrg", "bayer_grbg", "uint16", "uint8", "float32"};
	static const char *const colors[] = {"bt601", "bt709", "bt2020"};
	static const char *const outs[] = {"rgb888", "rgba8888", "float32", "gray8", "gray32f"};
	static const int channels[] = {1, 3, 4};
	struct twin twin = {.type = &vision_format_converter_type,
			    .pool = "pool",
			    .out_port = "tensor",
			    .outputs = {"", NULL}};
	uint64_t s = seed;
	const int format = twin_below(&s, 12);
	struct frag_dtype dtype = TWIN_U8;
	int64_t rows = 2 * (2 + twin_below(&s, SIDE_MAX / 2));
	int64_t columns = 2 * (2 + twin_below(&s, SIDE_MAX / 2));
	int64_t shape[3] = {rows, columns, 1};

	if (format == 1 || format == 9 || (format >= 5 && format < 9 && twin_below(&s, 2) == 0))
		dtype = TWIN_U16;
	if (format == 11)
		dtype = TWIN_F32;
	if (format < 3)
		shape[0] = rows / 2 * 3;
	else if (format < 5)
		shape[2] = 2;
	else if (format >= 9)
		shape[2] = channels[twin_below(&s, 3)];
	twin_arg(&twin, "in_dtype", "%s", format >= 9 ? "" : formats[format]);
	twin_arg(&twin, "in_color", "%s", colors[twin_below(&s, 3)]);
	twin_arg(&twin, "in_full_range", "%s", twin_below(&s, 2) == 0 ? "true" : "false");
	twin_arg(&twin, "demosaic", "%s", twin_below(&s, 2) == 0 ? "bilinear" : "malvar");
	twin_arg(&twin, "out_dtype", "%s", outs[twin_below(&s, 5)]);
	twin_arg(&twin, "out_layout", "%s", twin_below(&s, 2) == 0 ? "hwc" : "chw");
	if (twin_below(&s, 2) == 0) {
		twin_arg(&twin, "resize_width", "%d", 1 + twin_below(&s, SIDE_MAX));
		twin_arg(&twin, "resize_height", "%d", 1 + twin_below(&s, SIDE_MAX));
		twin_arg(&twin, "resize_mode", "%d", 1 << twin_below(&s, 3));
	}
	if (format >= 9 && twin_below(&s, 2) == 0)
		twin_arg(&twin, "window", "[%d, %d]", twin_below(&s, 100),
			 100 + twin_below(&s, 90));
	twin.pool_is_on_gpu = twin_below(&s, 2) == 0;
	twin.in[0] = (struct twin_input){
		.port = "source_video",
		.name = "",
		.tensor = twin_noise(&s, dtype, 3, shape, format != 2 && twin_below(&s, 2) == 0)};
	head(&why, &size, seed, &twin);
	return twin_same(&twin, why, size);
}

static bool resize_case(uint64_t seed, char *why, size_t size)
{
	static const char *const modes[] = {"nearest", "linear", "cubic", "area"};
	static const int channels[] = {1, 3, 4};
	struct twin twin = {.type = &vision_resize_type,
			    .pool = "pool",
			    .out_port = "out",
			    .outputs = {"", NULL}};
	uint64_t s = seed;
	const int64_t shape[] = {1 + twin_below(&s, SIDE_MAX), 1 + twin_below(&s, SIDE_MAX),
				 channels[twin_below(&s, 3)]};
	const struct frag_dtype dtype = twin_below(&s, 2) == 0 ? TWIN_U8 : TWIN_F32;
	const int sides = 1 + twin_below(&s, 3);

	if ((sides & 1) != 0)
		twin_arg(&twin, "width", "%d", 1 + twin_below(&s, SIDE_MAX));
	if ((sides & 2) != 0)
		twin_arg(&twin, "height", "%d", 1 + twin_below(&s, SIDE_MAX));
	twin_arg(&twin, "mode", "%s", modes[twin_below(&s, 4)]);
	twin.pool_is_on_gpu = twin_below(&s, 2) == 0;
	twin.in[0] = (struct twin_input){
		.port = "in",
		.name = "",
		.tensor = twin_noise(&s, dtype, 3, shape, twin_below(&s, 2) == 0)};
	head(&why, &size, seed, &twin);
	return twin_same(&twin, why, size);
}

const struct twin_cases twin_cases[] = {
	{"format_converter of YUV, Bayer patterns and 16 bits", format_converter_case},
	{"resize", resize_case},
	{NULL, NULL},
};
