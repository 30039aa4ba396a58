// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <frag/frag.h>

/*
 * Ground truth for pictures: passes messages on and writes their boxes, in pixels, and the
 * numbers of the frames as their metadata tells them, which must go up by one.
 */
struct box_log {
	const char *path;
	FILE *file;
	int64_t seen;
};

enum { IN, OUT };
static const struct frag_port box_log_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "tensor"},
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "tensor"},
};
static const struct frag_param box_log_params[] = {
	FRAG_PARAM_PATH(struct box_log, path, NULL, .headline = "Log",
			.flags = FRAG_PARAM_REQUIRED),
};

static int box_log_start(void *state, struct frag_op *op)
{
	struct box_log *log = state;

	log->file = fopen(log->path, "we");
	return log->file != NULL ? 0 : frag_op_fail(op, -errno, "cannot write %s", log->path);
}

/* The pixel at a part of a side, rounded. */
static int pixel(float part, int64_t side)
{
	return (int)((double)part * (double)side + 0.5);
}

static int box_log_compute(void *state, struct frag_tick *tick)
{
	struct box_log *log = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	const struct frag_tensor *boxes, *picture;
	const int64_t *sides;
	const float *b;
	int64_t frame = -1;
	int r = frag_tick_receive(tick, IN, &message);

	if (r < 0)
		return r;
	r = frag_metadata_get_i64(frag_tick_metadata(tick), "frame", &frame);
	if (r < 0 || frame != log->seen)
		return frag_op_fail(op, -EBADMSG, "message %" PRId64 " is frame %" PRId64,
				    log->seen, frame);
	log->seen++;
	boxes = frag_message_tensor(message, "boxes");
	picture = frag_message_tensor(message, "");
	if (boxes == NULL || picture == NULL)
		return frag_op_fail(op, -EBADMSG, "frame %" PRId64 " has no boxes", frame);
	sides = frag_tensor_dl(picture)->shape;
	b = frag_tensor_data(boxes);
	for (int64_t i = 0; i < frag_tensor_dl(boxes)->shape[0]; i++, b += 4)
		fprintf(log->file, "%" PRId64 " %d %d %d %d\n", frame, pixel(b[0], sides[1]),
			pixel(b[1], sides[0]), pixel(b[2], sides[1]), pixel(b[3], sides[0]));
	return frag_tick_emit(tick, OUT, frag_message_ref(message));
}

static int box_log_stop(void *state, struct frag_op *op)
{
	struct box_log *log = state;

	return fclose(log->file) == 0 ? 0 : -errno;
}

static const struct frag_op_type box_log_type = {
	FRAG_OP_TYPE_INIT,
	.name = "box_log",
	.headline = "Writes down boxes",
	.state_size = sizeof(struct box_log),
	FRAG_PORTS(box_log_ports),
	FRAG_PARAMS(box_log_params),
	.start = box_log_start,
	.compute = box_log_compute,
	.stop = box_log_stop,
};
static const struct frag_op_type *const box_log_ops[] = {&box_log_type};
FRAG_PLUGIN(.name = "box_log", .version = "1.0.0", FRAG_OPS(box_log_ops));
