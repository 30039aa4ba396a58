/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "encoder.h"
#include "video.h"

struct recorder {
	const char *path, *directory, *basename;
	const char *codec;
	double frame_rate;
	const char *in_tensor_name;
	bool overwrite;

	char file[PATH_MAX];
	struct video_encoder *encoder; /* created with the first frame */
	int64_t recorded;
};

enum { INPUT };
static const struct frag_port recorder_ports[] = {
	[INPUT] = {.name = "input",
		   .dir = FRAG_IN,
		   .type = "tensor",
		   .headline = "frames of u8: gray, RGB or RGBA"},
};

static const char *const codec_choices[] = {"auto", "h264", "mpeg4", "ffv1", NULL};

static const struct frag_param recorder_params[] = {
	FRAG_PARAM_PATH(
		struct recorder, path, NULL,
		.headline = "Video file; its ending says what kind; or directory and basename",
		.description =
			"Its folders are made. A file that is there is replaced, unless overwrite says otherwise.",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_PATH(struct recorder, directory, NULL, .headline = "Folder of the video file",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING(
		struct recorder, basename, NULL,
		.headline =
			"Name of the video file in directory, without an ending (.mp4; .mkv for ffv1)",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING(
		struct recorder, codec, "auto", .headline = "How the video is encoded",
		.description =
			"h264 (libx264), mpeg4, ffv1 (without loss); auto: h264, or mpeg4 where FFmpeg has no libx264",
		.choices = codec_choices),
	FRAG_PARAM_F64(
		struct recorder, frame_rate, 0.0,
		.headline =
			"Frames a second; 0: the metadata frame_rate of the first message, else 30",
		.min = 0.0, .max = 10000.0),
	FRAG_PARAM_STRING(
		struct recorder, in_tensor_name, "",
		.headline = "Tensor of the frame; empty: the one without a name, else the first"),
	FRAG_PARAM_BOOL(
		struct recorder, overwrite, true,
		.headline = "Whether a file that is there is replaced",
		.description =
			"Otherwise it stays, also when the operator is started again, and the next one gets a number: clip.mp4, clip-2.mp4, clip-3.mp4."),
};

static int recorder_setup(void *state, struct frag_op *op)
{
	struct recorder *rc = state;
	const char *folder = rc->directory != NULL ? rc->directory : ".";
	int length;

	if (video_encoder_name(rc->codec) == NULL)
		return frag_op_fail(
			op, -ENOTSUP,
			"this FFmpeg has no encoder for codec %s; use another of auto, h264, mpeg4, ffv1",
			rc->codec);
	if (rc->path != NULL && rc->path[0] != '\0')
		length = snprintf(rc->file, sizeof(rc->file), "%s", rc->path);
	else if (rc->basename != NULL && rc->basename[0] != '\0')
		length = snprintf(rc->file, sizeof(rc->file), "%s/%s.%s", folder, rc->basename,
				  strcmp(rc->codec, "ffv1") == 0 ? "mkv" : "mp4");
	else
		return frag_op_fail(op, -EINVAL,
				    "no video file is named; give path, or directory and basename");
	if ((size_t)length >= sizeof(rc->file))
		return frag_op_fail(op, -ENAMETOOLONG,
				    "the name of the video file is too long; shorten it");
	return 0;
}

/* Gives the file a number that none in its folder has: "clip-2.mp4". Returns 0 or -ENAMETOOLONG. */
static int number_file(struct recorder *rc)
{
	const char *name = strrchr(rc->file, '/'),
		   *end = strrchr(name != NULL ? name : rc->file, '.');
	int stem = end != NULL ? (int)(end - rc->file) : (int)strlen(rc->file);
	char next[sizeof(rc->file)];
	struct stat st;

	snprintf(next, sizeof(next), "%s", rc->file);
	for (int number = 2; lstat(next, &st) == 0; number++)
		if ((size_t)snprintf(next, sizeof(next), "%.*s-%d%s", stem, rc->file, number,
				     rc->file + stem) >= sizeof(next))
			return -ENAMETOOLONG;
	memcpy(rc->file, next, sizeof(next));
	return 0;
}

static int open_file(struct recorder *rc, struct frag_tick *tick, const struct frame *frame)
{
	struct frag_op *op = frag_tick_op(tick);
	struct frag_err err = FRAG_ERR_INIT;
	double rate = rc->frame_rate;
	int r = frame_make_folders(rc->file);

	if (r < 0)
		return frag_op_fail(op, r,
				    "cannot make the folder of %s: %s; check path or directory",
				    rc->file, frag_strerror(r));
	r = rc->overwrite ? 0 : number_file(rc);
	if (r < 0)
		return frag_op_fail(op, r, "the name of the video file is too long; shorten it");
	if (rate <= 0.0 &&
	    (frag_metadata_get_f64(frag_tick_metadata(tick), "frame_rate", &rate) < 0 ||
	     !(rate > 0.0 && rate <= 10000.0)))
		rate = 30.0;
	r = video_encoder_open(rc->file, rc->codec, rate, frame, &rc->encoder, &err);
	return r < 0 ? frag_op_fail(op, r, "%s", err.text) : 0;
}

static int recorder_compute(void *state, struct frag_tick *tick)
{
	struct recorder *rc = state;
	struct frag_op *op = frag_tick_op(tick);
	struct frag_err err = FRAG_ERR_INIT;
	const struct frag_message *message;
	struct frag_tensor *tensor;
	struct frame frame = {0};
	int r = frag_tick_receive(tick, INPUT, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	r = frame_receive(op, message, rc->in_tensor_name, &tensor, &frame);
	if (r < 0)
		return r;
	if (frame.is_float)
		return frag_op_fail(
			op, -EINVAL,
			"the frame has f32 elements; convert it with format_converter to out_dtype rgb888 before");
	if (rc->encoder == NULL)
		r = open_file(rc, tick, &frame);
	if (r < 0)
		return r;
	r = video_encoder_add(rc->encoder, &frame, &err);
	if (r < 0)
		return frag_op_fail(op, r, "%s", err.text);
	rc->recorded++;
	return 0;
}

static int recorder_stop(void *state, struct frag_op *op)
{
	struct recorder *rc = state;
	struct frag_err err = FRAG_ERR_INIT;
	struct video_encoder *encoder = rc->encoder;
	int r;

	rc->encoder = NULL;
	if (encoder == NULL) {
		frag_op_log(op, "no frame came: %s was not written", rc->file);
		return 0;
	}
	r = video_encoder_close(encoder, &err);
	if (r < 0)
		return frag_op_fail(op, r, "%s", err.text);
	frag_op_log(op, "recorded %lld frames in %s", (long long)rc->recorded, rc->file);
	return 0;
}

static void recorder_fini(void *state, struct frag_op *op)
{
	struct recorder *rc = state;

	(void)op;
	video_encoder_close(rc->encoder, NULL);
}

const struct frag_op_type video_recorder_type = {
	FRAG_OP_TYPE_INIT,
	.name = "video_recorder",
	.headline = "Records frames as a video file",
	.description =
		"Exactly one frame of the video a message, at a steady frame rate. The file is finished when the operator stops, also after a failure.",
	.state_size = sizeof(struct recorder),
	FRAG_PORTS(recorder_ports),
	FRAG_PARAMS(recorder_params),
	.setup = recorder_setup,
	.compute = recorder_compute,
	.stop = recorder_stop,
	.fini = recorder_fini,
};
