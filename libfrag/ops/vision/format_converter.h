/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_FORMAT_CONVERTER_H
#define VISION_FORMAT_CONVERTER_H

#include "../draw/levels.h"
#include "../gpu/twin.h"
#include "convert.h"
#include "convert_gpu.h"
#include "raw.h"
#include "resize.h"

struct format_converter {
	const char *in_tensor_name, *out_tensor_name;
	const char *in_dtype, *out_dtype, *out_layout;
	const char *in_color, *demosaic;
	bool in_full_range;
	double scale_min, scale_max;
	int64_t alpha_value;
	int64_t resize_width, resize_height, resize_mode;
	bool pad;
	int64_t pad_value;
	struct frag_i64_list out_channel_order;
	struct frag_f64_list window, percentile;
	struct frag_resource *pool;

	const struct raw_format *raw_format; /* NULL: frames come as RGB, RGBA or gray */
	struct raw_job raw;
	void *unpacked; /* scratch memory between unpacking `raw` and the levels */
	size_t unpacked_size;
	struct convert convert; /* channels and order for the format of the current frame */
	struct convert_place place;
	void *leveled; /* scratch memory between the levels and resizing */
	size_t leveled_size;
	void *resized; /* the same between resizing and converting */
	size_t resized_size;

	struct gpu_twin twin;
	struct convert_gpu gpu;
};

/*
 * Holoscan's names of formats. The ones that are missing here are refused by name. gray8, gray16
 * and gray32f are additions of frag.
 */
#define CONVERTER_FORMATS                                                                          \
	"rgb888, rgba8888, uint8, float32, gray8, gray32f, rgb161616, rgba16161616, uint16, gray16"
struct converter_format {
	const char *name;
	int64_t channels; /* 0: 3, or 1 when the input is gray */
	uint8_t bits;     /* 32: f32 */
	bool built;
};
/* Returns 0, or a failure that is worded in the operator. */
int converter_find_format(struct frag_op *op, const char *parameter, const char *name,
			  const struct converter_format **out);

/* Whether the values of these frames are brought to black and white before anything else. */
bool converter_has_levels(const struct format_converter *fc, const struct frame *frame);
/* Returns the levels of window, or of all values of the frame. */
struct levels converter_levels(const struct format_converter *fc, const struct frame *frame);

/*
 * The body for GPUs (format_converter_gpu.c): as that for the CPU, with the same result.
 * - device: where the frame lies, or is brought to
 * - frame: of fc->raw if there is a raw_format
 * Returns 0, or a failure that is worded in the operator.
 */
int converter_on_gpu(struct format_converter *fc, struct frag_tick *tick, struct frag_device device,
		     const struct frame *frame, struct frag_tensor **out);
/* What the output is. Writes the shape of three sides. */
struct frag_dtype converter_output(const struct format_converter *fc, int64_t shape[3]);

#endif
