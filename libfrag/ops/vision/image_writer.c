// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <stdio.h>
#include <strings.h>

#include "../folders.h"
#include "../image/png_file.h"
#include "vision.h"

struct image_writer {
	const char *path;
	int64_t frame, every;
	const char *in_tensor_name;

	int64_t received, written;
};

enum { IN };
static const struct frag_port image_writer_ports[] = {
	[IN] = {.name = "in",
		.dir = FRAG_IN,
		.type = "tensor",
		.headline = "frames of u8 or u16: gray, RGB or RGBA"},
};

static const struct frag_param image_writer_params[] = {
	FRAG_PARAM_PATH(
		struct image_writer, path, NULL, .headline = "PNG file to write",
		.description =
			"Its folders are made. A file that is there is replaced. Without an ending it is a PNG too; any other ending than .png is refused.",
		.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_I64(struct image_writer, frame, 0,
		       .headline = "Which message to write, counted from 0", .min = 0, .max = 9e15),
	FRAG_PARAM_I64(
		struct image_writer, every, 0,
		.headline = "Also write every n-th message after that one; 0: only that one",
		.description =
			"The number of the message is then put before the file's ending: picture-000150.png",
		.min = 0, .max = 9e15),
	FRAG_PARAM_STRING(
		struct image_writer, in_tensor_name, "",
		.headline = "Tensor of the frame; empty: the one without a name, else the first"),
};

/* Writes the file name for message n: path, with the number added when there are several. */
static int file_name(const struct image_writer *iw, int64_t n, char name[PATH_MAX])
{
	const char *slash = strrchr(iw->path, '/'), *dot = strrchr(iw->path, '.');
	size_t stem = strlen(iw->path);
	int length;

	if (dot != NULL && (slash == NULL || dot > slash))
		stem = (size_t)(dot - iw->path);
	if (iw->every == 0)
		length = snprintf(name, PATH_MAX, "%s", iw->path);
	else
		length = snprintf(name, PATH_MAX, "%.*s-%06lld%s", (int)stem, iw->path,
				  (long long)n, iw->path + stem);
	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int image_writer_setup(void *state, struct frag_op *op)
{
	struct image_writer *iw = state;
	const char *slash = strrchr(iw->path, '/'),
		   *dot = strrchr(slash != NULL ? slash : iw->path, '.');

	if (frame_check_path(op, iw->path) < 0)
		return -EINVAL;
	if (dot == NULL || strcasecmp(dot, ".png") == 0)
		return 0;
	return frag_op_fail(
		op, -ENOTSUP,
		"pictures are written as PNG, and path ends with %s; let it end with .png", dot);
}

static int image_writer_compute(void *state, struct frag_tick *tick)
{
	struct image_writer *iw = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	struct frag_tensor *tensor;
	struct frame frame = {0};
	char name[PATH_MAX];
	int r = frag_tick_receive(tick, IN, &message);
	int64_t n = iw->received;

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	iw->received++;
	if (n < iw->frame || (iw->every == 0 ? n > iw->frame : (n - iw->frame) % iw->every != 0))
		return 0;
	r = frame_receive_by(op, message, iw->in_tensor_name, frame_deep_from_tensor, &tensor,
			     &frame);
	if (r < 0)
		return r;
	if (frame.is_float)
		return frag_op_fail(
			op, -EINVAL,
			"the frame has f32 elements; convert it with format_converter to out_dtype rgb888 before");
	r = file_name(iw, n, name);
	if (r == 0)
		r = folders_make(name);
	if (r == 0)
		r = image_png_write(name, &frame);
	if (r < 0)
		return frag_op_fail(
			op, r,
			"cannot write the picture %s: %s; check the folder and the space on its disk",
			iw->path, frag_strerror(r));
	iw->written++;
	return 0;
}

static int image_writer_stop(void *state, struct frag_op *op)
{
	struct image_writer *iw = state;

	if (iw->written == 0)
		frag_op_log(
			op,
			"no picture was written: messages that came: %lld; the first to write, counted from 0: %lld",
			(long long)iw->received, (long long)iw->frame);
	return 0;
}

const struct frag_op_type vision_image_writer_type = {
	FRAG_OP_TYPE_INIT,
	.name = "image_writer",
	.headline = "Writes frames as PNG pictures",
	.state_size = sizeof(struct image_writer),
	FRAG_PORTS(image_writer_ports),
	FRAG_PARAMS(image_writer_params),
	.setup = image_writer_setup,
	.compute = image_writer_compute,
	.stop = image_writer_stop,
};
