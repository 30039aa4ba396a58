// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include <linux/videodev2.h>

#include "../held_back.h"
#include "camera.h"
#include "capture.h"

#define NS 1000000000LL
#define RETRY_NS 200000000LL /* between two attempts to open a camera that is gone */

struct capture {
	const char *device, *pixel_format, *format;
	struct frag_string_map controls;
	int64_t width, height, num_buffers, exposure_time, gain;
	double frame_rate;
	bool pass_through;
	int64_t stall_timeout, reconnect;
	struct frag_resource *allocator;

	struct camera_request request;
	struct camera *camera; /* NULL while it is gone */
	char identity[CAMERA_IDENTITY];
	struct held_back held_back;
	struct picture_converter *converter;
	struct frag_err loss; /* why it is gone */
	int64_t lost_at_ns;
	int64_t last_frame_ns;  /* by CLOCK_MONOTONIC: when a frame was emitted, or it was opened */
	bool numbered;          /* a frame of the camera has come since it was opened */
	uint32_t last_sequence; /* of that frame */
	int64_t number;         /* of the frame to emit; grows by what the camera lost too */
	int64_t first_ns;       /* when the first frame was taken */
	int64_t emitted, lost, busy, damaged, reconnected;
};

enum { SIGNAL };
static const struct frag_port capture_ports[] = {
	[SIGNAL] =
		{.name = "signal",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline =
			 "a frame: [rows, columns, 3] u8, RGB; or as format or pass_through say"},
};

static const char *const pixel_formats[] = {
	"auto", "YUYV", "MJPG", "NV12", "RGB3", "AB24", "UYVY", "YU12", "BGR3", "GREY", "Y10",
	"Y12",  "Y16",  "BA81", "GBRG", "GRBG", "RGGB", "BYR2", "GB16", "GR16", "RG16", NULL};
static const char *const picture_formats[] = {"rgb8", "native", NULL};

static const struct frag_param capture_params[] = {
	FRAG_PARAM_STRING(
		struct capture, device, "/dev/video0", .headline = "The camera's device",
		.description =
			"A path below /dev/v4l/by-id is that of a camera; a camera that is lost is also found under another number. fragctl cameras lists them."),
	FRAG_PARAM_I64(struct capture, width, 0, .headline = "Width; 0: as the camera is set",
		       .min = 0, .max = 32767),
	FRAG_PARAM_I64(struct capture, height, 0, .headline = "Height; 0: as the camera is set",
		       .min = 0, .max = 32767),
	FRAG_PARAM_F64(struct capture, frame_rate, 0.0,
		       .headline = "Frames a second; 0: as the camera is set", .min = 0.0,
		       .max = 10000.0),
	FRAG_PARAM_STRING(struct capture, pixel_format, "auto",
			  .headline =
				  "How the camera sends its pictures; auto: the first that it has",
			  .choices = pixel_formats),
	FRAG_PARAM_I64(struct capture, num_buffers, 4,
		       .headline = "Buffers that the camera fills in turn", .min = 2,
		       .max = CAMERA_BUFFERS_MAX),
	FRAG_PARAM_BOOL(
		struct capture, pass_through, false,
		.headline = "Send the camera's buffers as they are, without a copy",
		.description =
			"YUYV, UYVY: [rows, columns, 2]; NV12: [rows * 3 / 2, columns]; YU12: [rows * 3 / 2, bytes of a row]; RGB3, BGR3: [rows, columns, 3]; AB24: [rows, columns, 4]; gray and Bayer patterns: [rows, columns, 1]; MJPG: [bytes]; u8, and u16 for Y10, Y12, Y16, BYR2, GB16, GR16 and RG16"),
	FRAG_PARAM_STRING(
		struct capture, format, "rgb8", .headline = "What frames are sent as",
		.description =
			"rgb8: [rows, columns, 3] u8; native: gray and Bayer patterns as [rows, columns, 1] with the numbers of the camera, in u8 or u16, and pixel_format in the metadata; all others as rgb8",
		.choices = picture_formats),
	FRAG_PARAM_STRING_MAP(
		struct capture, controls, NULL,
		.headline =
			"Controls of the camera, as {brightness: 120, power_line_frequency: 50 Hz}",
		.description =
			"By the names of v4l2-ctl, in this order. fragctl cameras lists them. Numbers, true, false, or entries of menus",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_I64(struct capture, exposure_time, -1,
		       .headline = "Exposure time in units of 100 us; -1: as the camera is set",
		       .min = -1, .max = 2147483647.0),
	FRAG_PARAM_I64(struct capture, gain, -1, .headline = "Gain; -1: as the camera is set",
		       .min = -1, .max = 2147483647.0),
	FRAG_PARAM_DURATION(struct capture, stall_timeout, 5 * NS,
			    .headline = "The camera is lost when no frame comes for so long",
			    .min = 1e6, .max = 9e18),
	FRAG_PARAM_DURATION(
		struct capture, reconnect, 0,
		.headline = "Wait so long for a camera that is lost; 0: it is a failure at once",
		.min = 0, .max = 9e18),
	FRAG_PARAM_RESOURCE(struct capture, allocator, NULL,
			    .headline = "Allocator of the frames that are converted",
			    .flags = FRAG_PARAM_OPTIONAL),
};

static int64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

static int capture_setup(void *state, struct frag_op *op)
{
	struct capture *c = state;
	const char *name = c->pixel_format;

	if ((c->width == 0) != (c->height == 0))
		return frag_op_fail(op, -EINVAL, "width is %lld and height %lld; give both or none",
				    (long long)c->width, (long long)c->height);
	c->request = (struct camera_request){
		.device = c->device,
		.columns = (uint32_t)c->width,
		.rows = (uint32_t)c->height,
		.frame_rate = c->frame_rate,
		.buffers = (uint32_t)c->num_buffers,
		.exposure_time = c->exposure_time,
		.gain = c->gain,
		.controls = c->controls,
		.is_native = c->pass_through || strcmp(c->format, "native") == 0,
		.identity = c->identity,
	};
	if (strcmp(name, "auto") != 0) /* "Y10 " has four characters too */
		c->request.pixel_format =
			v4l2_fourcc((uint32_t)name[0], (uint32_t)name[1], (uint32_t)name[2],
				    name[3] != '\0' ? (uint32_t)name[3] : ' ');
	return 0;
}

static int open_camera(struct capture *c, struct frag_err *err)
{
	const struct picture_format *f;
	int r = camera_open(&c->request, &c->camera, err);

	if (r < 0)
		return r;
	/* A camera that comes back is to send what it sent before. */
	f = camera_format(c->camera);
	c->request.columns = f->columns;
	c->request.rows = f->rows;
	c->request.pixel_format = f->pixel_format;
	memcpy(c->identity, camera_identity(c->camera), sizeof(c->identity));
	c->numbered = false;
	c->last_frame_ns = clock_ns();
	return 0;
}

static int capture_start(void *state, struct frag_op *op)
{
	struct capture *c = state;
	struct frag_err err = FRAG_ERR_INIT;
	char text[PICTURE_FOURCC_TEXT];
	int r;

	c->converter = picture_converter_create();
	if (c->converter == NULL)
		return -ENOMEM;
	r = open_camera(c, &err);
	if (r < 0)
		return frag_op_fail(op, r, "%s", err.text);
	frag_op_log(op, "captures %ux%u in %s at %g frames a second from %s", c->request.columns,
		    c->request.rows, picture_fourcc(c->request.pixel_format, text),
		    camera_frame_rate(c->camera), c->device);
	return 0;
}

static void close_camera(struct capture *c)
{
	if (c->camera != NULL)
		camera_stop(c->camera);
	camera_unref(c->camera);
	c->camera = NULL;
}

/* The camera is lost, as *loss says. Returns 0: it is waited for; or the failure. */
static int lose(struct capture *c, struct frag_op *op, const struct frag_err *loss)
{
	close_camera(c);
	if (c->reconnect == 0)
		return frag_op_fail(op, loss->code,
				    "%s; with the parameter reconnect the application waits for it",
				    loss->text);
	c->loss = *loss;
	c->held_back.left_ns = 0; /* what comes now waits for the camera */
	c->lost_at_ns = clock_ns();
	frag_op_log(op, "%s; waits for it", loss->text);
	return 0;
}

/* Waits until the camera is back. Returns 1: it is; 0: the application is to stop; or a failure. */
static int wait_for_camera(struct capture *c, struct frag_op *op)
{
	struct pollfd stop = {.fd = frag_op_stop_fd(op), .events = POLLIN};
	const struct timespec pause = {.tv_nsec = RETRY_NS};

	for (;;) {
		struct frag_err err = FRAG_ERR_INIT;
		double away_s;

		if (open_camera(c, &err) == 0) {
			c->reconnected++;
			away_s = (double)(c->last_frame_ns - c->lost_at_ns) / 1e9;
			frag_op_log(op, "the camera %s is back after %.1f s, as %s", c->device,
				    away_s, camera_device(c->camera));
			return 1;
		}
		if (clock_ns() - c->lost_at_ns >= c->reconnect)
			return frag_op_fail(op, err.code,
					    "%s; then it did not come back within %.1f s: %s",
					    c->loss.text, (double)c->reconnect / 1e9, err.text);
		if (ppoll(&stop, 1, &pause, NULL) > 0)
			return 0;
	}
}

/* Waits for a frame. Returns 1: there may be one; 0: the application is to stop; -ETIMEDOUT. */
static int wait_for_frame(const struct capture *c, struct frag_op *op)
{
	struct pollfd fds[] = {
		{.fd = camera_fd(c->camera), .events = POLLIN},
		{.fd = frag_op_stop_fd(op), .events = POLLIN},
	};

	for (;;) {
		int64_t left_ns = c->last_frame_ns + c->stall_timeout - clock_ns();
		struct timespec left = {.tv_sec = left_ns / NS, .tv_nsec = left_ns % NS};
		int n;

		if (left_ns <= 0)
			return -ETIMEDOUT;
		n = ppoll(fds, FRAG_COUNT_OF(fds), &left, NULL);
		if (n > 0 && fds[1].revents != 0)
			return 0;
		if (n > 0)
			return 1;
	}
}

/* Counts what the camera lost before this frame. Some drivers do not count: theirs is always 0. */
static void count_frame(struct capture *c, const struct camera_frame *frame)
{
	uint32_t step = frame->sequence - c->last_sequence;

	if (c->numbered && step > 1 && step < UINT32_MAX / 2) {
		c->lost += step - 1;
		c->number += step - 1;
	}
	c->last_sequence = frame->sequence;
	c->numbered = true;
}

/* Makes a tensor of the camera's own buffer, which comes back when nobody uses it any more. */
static int wrap(struct capture *c, const struct camera_frame *frame, struct frag_tensor **out)
{
	int64_t shape[3], strides[3];
	uint8_t bits = 8;
	struct frag_dltensor dl = {
		.data = (void *)frame->data,
		.device = {.type = FRAG_DEVICE_CPU},
		.ndim = picture_describe(camera_format(c->camera), frame->size_bytes, shape,
					 strides, &bits),
		.shape = shape,
		.strides = strides,
	};
	void *loan = camera_lend(c->camera, frame->index);
	int r;

	dl.dtype = (struct frag_dtype){FRAG_DTYPE_UINT, bits, 1};
	r = frag_tensor_wrap(&dl, camera_end_loan, loan, out);

	if (r < 0)
		camera_end_loan(loan);
	return r;
}

/* Converts a frame; its buffer goes back at once. */
static int convert(struct capture *c, const struct camera_frame *frame, struct frag_tensor **out)
{
	const struct picture_format *f = camera_format(c->camera);
	uint8_t bits = 8;
	bool keeps = strcmp(c->format, "native") == 0 && picture_is_kept(f->pixel_format, &bits);
	int64_t shape[] = {f->rows, f->columns, keeps ? 1 : 3};
	int r = frag_tensor_create(c->allocator, (struct frag_dtype){FRAG_DTYPE_UINT, bits, 1}, 3,
				   shape, out);

	if (r == 0) {
		r = keeps ? picture_keep(f, frame->data, frame->size_bytes,
					 frag_tensor_writable(*out))
			  : picture_to_rgb(c->converter, f, frame->data, frame->size_bytes,
					   frag_tensor_writable(*out));
		if (r < 0)
			frag_tensor_unref(*out);
	}
	camera_give_back(c->camera, frame->index);
	return r;
}

static int64_t unix_ns_of(int64_t monotonic_ns)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * NS + t.tv_nsec - (clock_ns() - monotonic_ns);
}

static int emit(struct capture *c, struct frag_tick *tick, const struct camera_frame *frame,
		struct frag_tensor *tensor)
{
	struct frag_metadata *metadata = frag_tick_metadata(tick);
	struct frag_message *message = frag_message_create();
	int64_t time_ns = frame->time_ns != 0 ? frame->time_ns : clock_ns();
	char text[PICTURE_FOURCC_TEXT];
	int r;

	if (message == NULL) {
		frag_tensor_unref(tensor);
		return -ENOMEM;
	}
	if (c->emitted == 0)
		c->first_ns = time_ns;
	r = frag_message_add_tensor(message, "", tensor);
	if (r == 0)
		r = frag_metadata_set_i64(metadata, "frame", c->number);
	if (r == 0)
		r = frag_metadata_set_i64(metadata, "pts_ns", time_ns - c->first_ns);
	if (r == 0)
		r = frag_metadata_set_f64(metadata, "frame_rate", camera_frame_rate(c->camera));
	if (r == 0)
		r = frag_metadata_set_i64(metadata, "live_ns", unix_ns_of(time_ns));
	if (r == 0)
		r = frag_metadata_set_i64(metadata, "dropped", c->lost + c->busy + c->damaged);
	if (r == 0 && (c->pass_through || strcmp(c->format, "native") == 0))
		r = frag_metadata_set_string(
			metadata, "pixel_format",
			picture_fourcc(camera_format(c->camera)->pixel_format, text));
	if (r < 0) {
		frag_message_unref(message);
		return frag_op_fail(frag_tick_op(tick), r, "cannot describe the frame: %s",
				    frag_strerror(r));
	}
	frag_message_set_acquisition_ns(message, unix_ns_of(time_ns));
	frag_message_set_sequence(message, (uint64_t)c->number);
	c->number++;
	c->emitted++;
	c->last_frame_ns = clock_ns();
	return frag_tick_emit(tick, SIGNAL, message);
}

/*
 * Passes a frame on. One buffer always stays with the camera: without any it would stop, so a frame
 * is dropped when all others are in use.
 */
static int pass_on(struct capture *c, struct frag_tick *tick, const struct camera_frame *frame)
{
	struct frag_tensor *tensor = NULL;
	int r;

	count_frame(c, frame);
	if (frame->damaged || frame->size_bytes < picture_bytes(camera_format(c->camera))) {
		camera_give_back(c->camera, frame->index);
		r = -EBADMSG;
	} else if (c->pass_through && camera_buffers_left(c->camera) == 0) {
		camera_give_back(c->camera, frame->index);
		c->busy++;
		c->number++;
		c->last_frame_ns = clock_ns();
		return 0;
	} else {
		r = c->pass_through ? wrap(c, frame, &tensor) : convert(c, frame, &tensor);
	}
	if (r == 0)
		return emit(c, tick, frame, tensor);
	if (r != -EBADMSG)
		return frag_op_fail(
			frag_tick_op(tick), r,
			"cannot make a frame of %u x %u: %s; give the allocator larger or more blocks",
			camera_format(c->camera)->rows, camera_format(c->camera)->columns,
			frag_strerror(r));
	c->damaged++;
	c->number++;
	return 0;
}

static int capture_compute(void *state, struct frag_tick *tick)
{
	struct capture *c = state;
	struct frag_op *op = frag_tick_op(tick);
	struct frag_err err = FRAG_ERR_INIT;
	struct camera_frame frame = {0};
	int r = c->camera != NULL ? 1 : wait_for_camera(c, op);

	if (r <= 0)
		return r;
	held_back_begin(&c->held_back, op, camera_frame_rate(c->camera));
	do {
		r = wait_for_frame(c, op);
		if (r == 0)
			return 0;
		if (r > 0)
			r = camera_take(c->camera, &frame);
	} while (r == -EAGAIN);
	if (r == 0) {
		r = pass_on(c, tick, &frame);
		held_back_end(&c->held_back);
		return r;
	}
	if (r == -ETIMEDOUT)
		frag_err_set(&err, r,
			     "no usable frame came from the camera %s for %.1f s; check its cable",
			     c->device, (double)c->stall_timeout / 1e9);
	else if (r == -ENODEV)
		frag_err_set(&err, r, "the camera %s was unplugged; plug it in again", c->device);
	else
		frag_err_set(
			&err, r,
			"cannot take a frame from the camera %s: %s; unplug it and plug it in again",
			c->device, frag_strerror(r));
	return lose(c, op, &err);
}

static int capture_stop(void *state, struct frag_op *op)
{
	struct capture *c = state;

	close_camera(c);
	frag_op_log(
		op,
		"sent %lld frames; dropped %lld that the camera lost, %lld because all buffers were in use, %lld that were damaged",
		(long long)c->emitted, (long long)c->lost, (long long)c->busy,
		(long long)c->damaged);
	return 0;
}

static void capture_fini(void *state, struct frag_op *op)
{
	struct capture *c = state;

	(void)op;
	close_camera(c);
	picture_converter_destroy(c->converter);
}

const struct frag_op_type v4l2_video_capture_type = {
	FRAG_OP_TYPE_INIT,
	.name = "v4l2_video_capture",
	.headline = "Captures frames of a camera",
	.description =
		"One frame a tick. Metadata: frame (i64, its number, which counts those that were dropped too), pts_ns (i64), frame_rate (f64), live_ns (i64, Unix time at which it was taken), dropped (i64, since the start); with pass_through or format native pixel_format (string). The acquisition time is when the frame was taken, and the sequence is frame.",
	.state_size = sizeof(struct capture),
	FRAG_PORTS(capture_ports),
	FRAG_PARAMS(capture_params),
	.setup = capture_setup,
	.start = capture_start,
	.compute = capture_compute,
	.stop = capture_stop,
	.fini = capture_fini,
};
