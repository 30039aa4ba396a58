// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <time.h>

#include <frag/frag.h>

#include "../video/clip.h"

/*
 * Sends the clip whose frames bear their number, frame 0 first, each with the time at which it was
 * made. After `count` frames it waits until the application is to stop.
 */
struct clip_source {
	int64_t count, sent;
};

enum { OUT };
static const struct frag_port clip_source_ports[] = {
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "tensor"},
};
static const struct frag_param clip_source_params[] = {
	FRAG_PARAM_I64(struct clip_source, count, (1 << CLIP_BITS) - 1, .headline = "Frames",
		       .min = 0, .max = (1 << CLIP_BITS) - 1),
};

static int send_frame(struct clip_source *clip, struct frag_tick *tick)
{
	const int64_t shape[] = {CLIP_ROWS, CLIP_COLUMNS, 3};
	struct frag_tensor *tensor;
	struct timespec now;
	int r = frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3, shape,
				   &tensor);

	if (r < 0)
		return r;
	clip_draw(frag_tensor_writable(tensor), (int)clip->sent++, 0);
	clock_gettime(CLOCK_REALTIME, &now);
	r = frag_metadata_set_i64(frag_tick_metadata(tick), "acquired_ns",
				  now.tv_sec * INT64_C(1000000000) + now.tv_nsec);
	if (r < 0) {
		frag_tensor_unref(tensor);
		return r;
	}
	return frag_tick_emit_tensor(tick, OUT, "", tensor);
}

static int clip_source_compute(void *state, struct frag_tick *tick)
{
	struct clip_source *clip = state;
	struct pollfd stop = {.fd = frag_op_stop_fd(frag_tick_op(tick)), .events = POLLIN};

	if (clip->sent < clip->count)
		return send_frame(clip, tick);
	poll(&stop, 1, -1);
	return FRAG_DONE;
}

static const struct frag_op_type clip_source = {
	FRAG_OP_TYPE_INIT,
	.name = "clip_source",
	.state_size = sizeof(struct clip_source),
	FRAG_PORTS(clip_source_ports),
	FRAG_PARAMS(clip_source_params),
	.compute = clip_source_compute,
};
static const struct frag_op_type *const ops[] = {&clip_source};

FRAG_PLUGIN(.name = "clip_source", .version = "1", FRAG_OPS(ops));
