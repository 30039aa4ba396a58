// SPDX-License-Identifier: Apache-2.0
#include "entries.h"

/* Numbers of a corner, the most and the least, and corners of a shape. */
static const struct {
	int8_t most, least, corners;
} widths[] = {
	[LAYER_POINTS] = {3, 2, 1}, /* keypoints have a score, which is not drawn */
	[LAYER_LINES] = {2, 2, 2},        [LAYER_LINE_STRIP] = {2, 2, 1},
	[LAYER_TRIANGLES] = {2, 2, 3},    [LAYER_CROSSES] = {3, 2, 1},
	[LAYER_RECTANGLES] = {2, 2, 2},   [LAYER_OVALS] = {4, 2, 1},
	[LAYER_TEXT] = {3, 2, 1},         [LAYER_POINTS_3D] = {3, 3, 1},
	[LAYER_LINES_3D] = {3, 3, 2},     [LAYER_LINE_STRIP_3D] = {3, 3, 1},
	[LAYER_TRIANGLES_3D] = {3, 3, 3},
};

bool draw_is_compact_anywhere(const struct frag_tensor *tensor, uint8_t code, uint8_t bits)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);

	return dl->dtype.code == code && dl->dtype.bits == bits && dl->dtype.lanes == 1 &&
	       dl->ndim >= 1 && frag_tensor_is_compact(tensor);
}

bool draw_is_compact(const struct frag_tensor *tensor, uint8_t code, uint8_t bits)
{
	return draw_is_compact_anywhere(tensor, code, bits) && frame_is_on_host(tensor);
}

int64_t draw_element_count(const struct frag_tensor *tensor)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	int64_t count = 1;

	for (int32_t i = 0; i < dl->ndim; i++)
		count *= dl->shape[i];
	return count;
}

const char *draw_entries_read(const struct frag_tensor *tensor, enum layer_type type,
			      struct entries *out)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	const bool is_f64 = draw_is_compact(tensor, FRAG_DTYPE_FLOAT, 64);
	const int64_t corners = widths[type].corners;
	int64_t count, last, width;

	if (!is_f64 && !draw_is_compact(tensor, FRAG_DTYPE_FLOAT, 32))
		return "it is not a tensor of f32 or f64 without gaps in host memory";
	last = dl->shape[dl->ndim - 1];
	width = last >= widths[type].least && last <= widths[type].most ? last * corners : last;
	if (width < widths[type].least * corners || width > widths[type].most * corners)
		return "its last dimension is not the number of coordinates that the type has";
	count = draw_element_count(tensor);
	if (count % width != 0)
		return "its corners do not make up whole shapes: a line or rectangle has two, a triangle three";
	if (count / width > LAYER_ENTRIES_MAX)
		return "it has more than 65536 entries";
	*out = (struct entries){frag_tensor_data(tensor), is_f64, count / width, width};
	return NULL;
}
