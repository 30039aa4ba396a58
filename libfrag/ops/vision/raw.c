// SPDX-License-Identifier: Apache-2.0
#include "raw.h"

static const struct raw_format formats[] = {
	{"nv12", RAW_SEMIPLANAR, 8, 0, 0},     {"p010", RAW_SEMIPLANAR, 16, 0, 0},
	{"yuv420", RAW_PLANAR, 8, 0, 0},       {"yuyv", RAW_YUYV, 8, 0, 0},
	{"uyvy", RAW_UYVY, 8, 0, 0},           {"bayer_rggb", RAW_BILINEAR, 0, 0, 0},
	{"bayer_bggr", RAW_BILINEAR, 0, 1, 1}, {"bayer_gbrg", RAW_BILINEAR, 0, 0, 1},
	{"bayer_grbg", RAW_BILINEAR, 0, 1, 0},
};

const struct raw_format *vision_raw_find(const char *name)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

static int32_t fixed(double x, bool is_deep)
{
	return (int32_t)lrint(ldexp(x, is_deep ? RAW_FRACTION_DEEP : RAW_FRACTION));
}

void vision_raw_set_color(struct raw_job *job, const struct raw_format *format, const char *color,
			  bool is_full)
{
	/* the parts of red and blue in luma: ITU-R BT.601, BT.709 and BT.2020 */
	const bool is_601 = strcmp(color, "bt601") == 0, is_709 = strcmp(color, "bt709") == 0;
	const double red = is_601 ? 0.299 : is_709 ? 0.2126 : 0.2627;
	const double blue = is_601 ? 0.114 : is_709 ? 0.0722 : 0.0593;
	const double green = 1.0 - red - blue;
	const bool is_deep = format->bits == 16;
	/* P010 has 10 bits, the upper ones of 16 */
	const double unit = is_deep ? 4.0 : 1.0, most = is_deep ? 65535.0 : 255.0;
	const double codes = is_deep ? 1023.0 : 255.0;
	const double luma = most / (is_full ? codes : 219.0 * unit);
	const double chroma = most / (is_full ? codes : 224.0 * unit);

	job->shift = is_deep ? 6 : 0;
	job->black = is_full ? 0 : (int32_t)(16.0 * unit);
	job->middle = (int32_t)(128.0 * unit);
	job->luma = fixed(luma, is_deep);
	job->red_v = fixed(2.0 * (1.0 - red) * chroma, is_deep);
	job->blue_u = fixed(2.0 * (1.0 - blue) * chroma, is_deep);
	job->green_v = fixed(2.0 * red * (1.0 - red) / green * chroma, is_deep);
	job->green_u = fixed(2.0 * blue * (1.0 - blue) / green * chroma, is_deep);
}

/* Checks the elements and their places. Returns why they do not fit; NULL: they do. */
static const char *check_elements(const struct raw_format *format, const struct frag_dltensor *dl)
{
	const int64_t channels = dl->ndim == 3 ? dl->shape[2] : 1;
	const bool is_packed = format->layout == RAW_YUYV || format->layout == RAW_UYVY;
	const bool is_u8 = frame_dtype_is(dl->dtype, FRAG_DTYPE_UINT, 8);
	const bool is_u16 = frame_dtype_is(dl->dtype, FRAG_DTYPE_UINT, 16);

	if (format->bits == 8 ? !is_u8 : format->bits == 16 ? !is_u16 : !is_u8 && !is_u16)
		return format->bits == 16  ? "its elements are not u16"
		       : format->bits == 8 ? "its elements are not u8"
					   : "its elements are neither u8 nor u16";
	if (is_packed ? dl->ndim != 3 || channels != 2
		      : (dl->ndim != 2 && dl->ndim != 3) || channels != 1)
		return is_packed ? "its shape is not [rows, columns, 2]"
				 : "its shape is not [rows, columns] or [rows, columns, 1]";
	if (dl->shape[0] < 1 || dl->shape[1] < 1 || dl->shape[0] > FRAME_SIDE_MAX ||
	    dl->shape[1] > FRAME_SIDE_MAX)
		return "its sides are not from 1 to 32767";
	if (dl->strides != NULL && ((channels > 1 && dl->strides[2] != 1) ||
				    (dl->shape[1] > 1 && dl->strides[1] != channels) ||
				    (dl->shape[0] > 1 && dl->strides[0] < dl->shape[1] * channels)))
		return "the pixels of its rows are not adjacent";
	return NULL;
}

/* The picture of a tensor; its rows hold colours below the picture where YUV has planes. */
static const char *check_sides(const struct raw_format *format, struct raw_job *job)
{
	const bool is_bayer = format->layout == RAW_BILINEAR;
	const bool has_planes = format->layout == RAW_SEMIPLANAR || format->layout == RAW_PLANAR;

	if (is_bayer)
		return job->rows < 4 || job->columns < 4
			       ? "its sides are less than 4, too small for a Bayer pattern"
			       : NULL;
	if (has_planes && job->rows % 3 != 0)
		return "its rows are not 3/2 of an even number; those of the colours lie below the picture";
	if (has_planes)
		job->rows = job->rows / 3 * 2;
	return job->columns % 2 != 0 ? "its columns are odd, and two pixels share their colours"
				     : NULL;
}

int vision_raw_describe(const struct raw_format *format, const struct frag_tensor *tensor,
			bool is_malvar, struct raw_job *job, const char **reason)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	size_t bytes = dl->dtype.bits / 8u;

	*reason = check_elements(format, dl);
	if (*reason != NULL)
		return -EINVAL;
	job->in = frag_tensor_data(tensor);
	job->rows = (int32_t)dl->shape[0];
	job->columns = (int32_t)dl->shape[1];
	job->is_deep = bytes == 2;
	job->row_bytes = (uint64_t)dl->shape[1] * (dl->ndim == 3 ? (uint64_t)dl->shape[2] : 1);
	if (dl->strides != NULL && dl->shape[0] > 1)
		job->row_bytes = (uint64_t)dl->strides[0];
	job->row_bytes *= bytes;
	job->layout = (int32_t)format->layout;
	if (format->layout == RAW_BILINEAR && is_malvar)
		job->layout = RAW_MALVAR;
	job->red_x = format->red_x;
	job->red_y = format->red_y;
	*reason = check_sides(format, job);
	if (((uintptr_t)job->in | job->row_bytes) % bytes != 0)
		*reason = "its u16 are not aligned to 2 bytes; give the tensor another byte_offset";
	else if (job->layout == RAW_PLANAR && job->row_bytes != (uint64_t)job->columns)
		*reason = "there are gaps between its rows";
	return *reason != NULL ? -EINVAL : 0;
}

#define NAME(name, layout, is_deep) {#name, layout, is_deep},
static const struct {
	const char *name;
	int layout, is_deep;
} kernels[] = {RAW_KERNELS(NAME)};

/* The kernel that is used: that for words, where these can be read. */
static int layout_of(const struct raw_job *job)
{
	if (job->is_deep || !job->is_aligned)
		return job->layout;
	return job->layout == RAW_BILINEAR ? RAW_BILINEAR_WORDS
	       : job->layout == RAW_MALVAR ? RAW_MALVAR_WORDS
					   : job->layout;
}

const char *vision_raw_kernel(const struct raw_job *job)
{
	const int layout = layout_of(job);
	size_t i = 0;

	while (kernels[i].layout != layout || kernels[i].is_deep != job->is_deep)
		i++;
	return kernels[i].name;
}

int vision_raw_thread_columns(const struct raw_job *job)
{
	return (job->columns + RAW_ACROSS - 1) / RAW_ACROSS;
}

static int thread_rows(const struct raw_job *job, int layout)
{
	return (job->rows + raw_down(layout) - 1) / raw_down(layout);
}

int vision_raw_thread_rows(const struct raw_job *job)
{
	return thread_rows(job, layout_of(job));
}

void vision_raw_settle(struct raw_job *job)
{
	const uint64_t places = (uintptr_t)job->in | (uintptr_t)job->out | job->row_bytes;

	job->is_aligned = places % (job->is_deep ? 8 : 4) == 0 && job->columns % 4 == 0;
}

void vision_raw_convert(const struct raw_job *job)
{
	struct raw_kind kind = {layout_of(job), job->is_deep};

	if (kind.layout == RAW_MALVAR_WORDS) /* which takes 1.5 times as long on a CPU */
		kind.layout = RAW_MALVAR;
	for (int y = 0; y < thread_rows(job, kind.layout); y++)
		for (int x = 0; x < vision_raw_thread_columns(job); x++)
			raw_pixels(job, kind, x, y);
}
