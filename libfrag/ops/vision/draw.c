// SPDX-License-Identifier: Apache-2.0
#include "../draw/params.h"
#include "../gpu/twin.h"
#include "kernels.h"
#include "vision.h"

#define STEPS_MAX 16384 /* of a picture on a GPU */
#define WRITTEN_MAX 8   /* pictures that a GPU has not drawn yet */

struct draw {
	DRAW_FIELDS;
	const char *out_tensor_name;
	struct frag_resource *pool;

	struct layers layers;
	struct gpu_twin twin;
	struct frag_tensor *written[WRITTEN_MAX]; /* steps of pictures, in pinned memory */
};

enum { RECEIVERS, INPUT_SPECS, OUT };
static const struct frag_port draw_ports[] = {
	[RECEIVERS] = DRAW_RECEIVERS,
	[INPUT_SPECS] = DRAW_INPUT_SPECS,
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline = "the picture: [rows, columns, 3] u8, RGB"},
};

static const struct frag_param draw_params[] = {
	DRAW_PARAMS(struct draw),
	FRAG_PARAM_STRING(struct draw, out_tensor_name, "", .headline = "Name of the picture"),
	FRAG_PARAM_RESOURCE(
		struct draw, pool, NULL, .headline = "Allocator of the pictures",
		.description =
			"Where all frames lie on a GPU, they are drawn there, unless it has memory of the host only.",
		.flags = FRAG_PARAM_OPTIONAL),
};

static int draw_setup(void *state, struct frag_op *op)
{
	struct draw *d = state;

	return draw_params_read(op, DRAW_GIVEN(d), &d->layers);
}

/* Returns the first message that says when it was taken; NULL: none does. */
static const struct frag_message *first_with_time(const struct messages *messages)
{
	for (size_t i = 0; i < messages->count; i++)
		if (messages->items[i] != NULL &&
		    frag_message_acquisition(messages->items[i], NULL, NULL) == 0)
			return messages->items[i];
	return NULL;
}

/* Returns pinned memory for steps that no earlier tick's work reads; NULL: as gpu_twin_create. */
static struct frag_tensor *take_written(struct draw *d, struct frag_tick *tick)
{
	const int64_t room = (int64_t)(STEPS_MAX * sizeof(struct draw_step) +
				       d->layers.class_count * sizeof(struct paint) + 16);
	size_t i = 0;

	while (i < WRITTEN_MAX - 1 && d->written[i] != NULL &&
	       frag_tensor_writable(d->written[i]) == NULL)
		i++;
	if (d->written[i] == NULL && gpu_twin_create_pinned(&d->twin, frag_tick_op(tick), FRAME_U8,
							    1, &room, &d->written[i]) < 0)
		return NULL;
	if (frag_tensor_writable(d->written[i]) == NULL && gpu_twin_wait(&d->twin, tick) < 0)
		return NULL;
	return d->written[i];
}

/* Writes the steps, and behind them the colours of classes. Returns their bytes, or a failure. */
static int64_t write_steps(struct draw *d, struct frag_op *op, const struct messages *messages,
			   struct frag_tensor *written, struct draw_job *job)
{
	const size_t paints = d->layers.class_count * sizeof(struct paint);
	struct draw_steps steps = {.items = (struct draw_step *)frag_tensor_data(written),
				   .most = STEPS_MAX};
	struct canvas canvas = {.rows = job->rows, .columns = job->columns, .steps = &steps};
	size_t bytes;

	draw_layers_draw(&d->layers, messages, &canvas);
	if (steps.is_full)
		return frag_op_fail(
			op, -E2BIG,
			"the picture has more than %d parts (a line of 100 pixels has 100), and a GPU draws no more; give pool memory of the host, which lets the CPU draw",
			STEPS_MAX);
	bytes = steps.count * sizeof(struct draw_step);
	if (paints > 0)
		memcpy((unsigned char *)steps.items + bytes, d->layers.classes, paints);
	job->count = (int32_t)steps.count;
	job->paint_count = (int32_t)d->layers.class_count;
	return (int64_t)((bytes + paints + 15) / 16 * 16);
}

/* Gives the GPU the copy of the steps, and the picture. */
static int launch(struct draw *d, struct frag_tick *tick, const struct frag_tensor *written,
		  int64_t bytes, struct draw_job *job)
{
	const int64_t tiles = (int64_t)draw_tiles_across(job) * draw_tiles_down(job);
	const int64_t words = draw_words(job);
	unsigned char *there = gpu_twin_scratch(
		&d->twin, tick, (size_t)(bytes + tiles * words * (int64_t)sizeof(uint32_t)) + 16);
	struct draw_take_job take = {
		.in = frag_tensor_data(written), .out = there, .bytes = (uint64_t)bytes};
	int r = there != NULL ? 0 : -ENOMEM;

	job->steps = (const struct draw_step *)(const void *)there;
	job->paints =
		(const struct paint *)(const void *)(there +
						     (size_t)job->count * sizeof(struct draw_step));
	job->tiles = (uint32_t *)(void *)(there + bytes);
	if (r == 0)
		r = gpu_twin_launch(&d->twin, tick, "vision_draw_take", &take, bytes / 16, 1);
	if (r == 0)
		r = gpu_twin_launch(&d->twin, tick, "vision_draw_touch", job, tiles, words);
	if (r == 0)
		r = gpu_twin_launch(&d->twin, tick, "vision_draw", job,
				    (job->columns + DRAW_ACROSS - 1) / DRAW_ACROSS, job->rows);
	return r == 0 ? gpu_twin_end(&d->twin, tick) : r;
}

/* The same picture as the CPU's. */
static int draw_on_gpu(struct draw *d, struct frag_tick *tick, const struct messages *messages,
		       struct frag_device device, const int64_t *shape, struct frag_tensor **out)
{
	struct frag_op *op = frag_tick_op(tick);
	struct draw_job job = {.rows = (int32_t)shape[0], .columns = (int32_t)shape[1]};
	struct frag_tensor *tensor = NULL, *written;
	int64_t bytes;
	int r = gpu_twin_begin(&d->twin, op, device);

	if (r < 0)
		return r;
	written = take_written(d, tick);
	if (written == NULL)
		return -ENOMEM;
	bytes = write_steps(d, op, messages, written, &job);
	r = bytes < 0 ? (int)bytes : gpu_twin_create(&d->twin, op, FRAME_U8, 3, shape, &tensor);
	if (r == 0) {
		job.out = frag_tensor_writable(tensor);
		r = launch(d, tick, written, bytes, &job);
	}
	/* The GPU reads the steps until the tick's work is done. */
	if (gpu_twin_stream(&d->twin, tick) != NULL)
		(void)frag_tick_hold(tick, frag_tensor_ref(written));
	if (r == 0)
		*out = tensor;
	else
		frag_tensor_unref(tensor);
	return r;
}

/* Waits for what other kernels write into pinned memory, which the CPU reads. */
static int wait_for_pinned(struct draw *d, struct frag_tick *tick, const struct messages *messages)
{
	struct frag_err err = FRAG_ERR_INIT;
	bool has_pinned = false;
	int r;

	for (size_t i = 0; d->twin.has_stream && i < messages->count; i++) {
		const struct frag_message *message = messages->items[i];
		uint32_t count = message != NULL ? frag_message_tensor_count(message) : 0;

		for (uint32_t k = 0; k < count; k++)
			has_pinned = has_pinned ||
				     frag_tensor_dl(frag_message_tensor_at(message, k, NULL))
						     ->device.type == FRAG_DEVICE_CUDA_HOST;
	}
	r = has_pinned ? frag_stream_wait(d->twin.stream_device, frag_tick_stream(tick), &err) : 0;
	return r < 0 ? frag_op_fail(frag_tick_op(tick), r, "%s", err.text) : 0;
}

static int draw_on_cpu(struct draw *d, struct frag_op *op, const struct messages *messages,
		       const int64_t *shape, struct frag_tensor **out)
{
	struct canvas canvas = {.rows = shape[0], .columns = shape[1]};
	int r = frame_create(op, d->pool, FRAME_U8, shape, out);

	if (r < 0)
		return r;
	canvas.pixels = frag_tensor_writable(*out);
	draw_layers_draw(&d->layers, messages, &canvas);
	return 0;
}

static int draw_initialize(void *state, struct frag_op *op)
{
	struct draw *d = state;

	return gpu_twin_open(&d->twin, op, vision_ptx, d->pool, NULL);
}

static int draw_messages(struct draw *d, struct frag_tick *tick, const struct messages *messages)
{
	struct frag_op *op = frag_tick_op(tick);
	struct frag_tensor *tensor = NULL;
	int64_t shape[3] = {0, 0, 3};
	struct frag_device device;
	bool on_gpu;
	int r = wait_for_pinned(d, tick, messages);

	if (r < 0)
		return r;
	draw_layers_size(&d->layers, messages, &shape[1], &shape[0]);
	on_gpu = draw_layers_suit_gpu(&d->layers, messages, &device);
	if (d->twin.pool_is_on_gpu && !on_gpu)
		return frag_op_fail(
			op, -EINVAL,
			"pool has memory of a GPU, and not all frames lie on one as u8 without window and percentile; convert them by format_converter, or give pool memory of the host");
	if (on_gpu && d->twin.ptx != NULL && (d->pool == NULL || d->twin.pool_is_on_gpu))
		r = draw_on_gpu(d, tick, messages, device, shape, &tensor);
	else
		r = draw_on_cpu(d, op, messages, shape, &tensor);
	return r < 0 ? r
		     : frame_emit(tick, OUT, d->out_tensor_name, tensor, first_with_time(messages));
}

static int draw_compute(void *state, struct frag_tick *tick)
{
	struct draw *d = state;
	struct messages messages = {0};
	int r = draw_receive(tick, RECEIVERS, INPUT_SPECS, &d->layers, &messages);

	if (r == 0)
		r = draw_messages(d, tick, &messages);
	draw_layers_release(messages.own);
	return r;
}

static void draw_fini(void *state, struct frag_op *op)
{
	struct draw *d = state;

	(void)op;
	gpu_twin_close(&d->twin);
	for (size_t i = 0; i < WRITTEN_MAX; i++)
		frag_tensor_unref(d->written[i]);
	draw_layers_fini(&d->layers);
}

const struct frag_op_type vision_draw_type = {
	FRAG_OP_TYPE_INIT,
	.name = "draw",
	.headline = "Draws boxes, points, lines, text and masks into frames",
	.description =
		"Makes the picture that the operator viewer shows with the same tensors and color_lut. Where its frames lie on a GPU it is drawn there, with the same result; boxes, points and texts lie in memory of the host.",
	.state_size = sizeof(struct draw),
	FRAG_PORTS(draw_ports),
	FRAG_PARAMS(draw_params),
	.setup = draw_setup,
	.initialize = draw_initialize,
	.compute = draw_compute,
	.fini = draw_fini,
};
