// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <frag/frag.h>

/* Sends one frame of 64 x 32 with a box in pixels, and says so. */
enum { OUT };
static const struct frag_port pixel_boxes_ports[] = {
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .tensors = "boxes: f32[n][4], x0 y0 x1 y1 in pixels"},
};

static int add(struct frag_message *message, const char *name, struct frag_dtype dtype,
	       int64_t rows, int64_t columns, struct frag_tensor **out)
{
	const int64_t shape[] = {rows, columns};
	int r = frag_tensor_create(NULL, dtype, 2, shape, out);

	return r < 0 ? r : frag_message_add_tensor(message, name, *out);
}

static int pixel_boxes_compute(void *state, struct frag_tick *tick)
{
	static const float box[] = {8, 4, 24, 20};
	struct frag_message *message = frag_message_create();
	struct frag_tensor *frame, *boxes;
	int r = message != NULL ? 0 : -ENOMEM;

	if (r == 0)
		r = add(message, "", (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 32, 64, &frame);
	if (r == 0)
		r = add(message, "boxes", (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, 1, 4,
			&boxes);
	if (r < 0) {
		frag_message_unref(message);
		return r;
	}
	memset(frag_tensor_writable(frame), 0, 32 * 64);
	memcpy(frag_tensor_writable(boxes), box, sizeof(box));
	r = frag_tick_emit(tick, OUT, message);
	return r < 0 ? r : FRAG_DONE;
}

static const struct frag_op_type pixel_boxes_type = {
	FRAG_OP_TYPE_INIT,
	.name = "pixel_boxes",
	.headline = "Sends a box in pixels",
	FRAG_PORTS(pixel_boxes_ports),
	.compute = pixel_boxes_compute,
};
static const struct frag_op_type *const ops[] = {&pixel_boxes_type};
FRAG_PLUGIN(.name = "pixel_boxes", .version = "1.0.0", FRAG_OPS(ops));
