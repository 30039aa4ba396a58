// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <frag/frag.h>

/*
 * Sends small frames without end, and with number `after` it closes the window of its process as a
 * person would: through SDL2's queue of events.
 */
struct window_closer {
	int64_t after, sent;
};

enum { OUT };
static const struct frag_port window_closer_ports[] = {
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "tensor"},
};
static const struct frag_param window_closer_params[] = {
	FRAG_PARAM_I64(struct window_closer, after, 3, .headline = "Frames before it"),
};

/* SDL_WindowEvent, SDL_WINDOWEVENT_CLOSE of window 1, in the size of SDL_Event */
struct event {
	uint32_t type, timestamp, window;
	uint8_t event;
	uint8_t rest[43];
};

static int press_close(struct frag_op *op)
{
	struct event event = {.type = 0x200, .window = 1, .event = 14};
	void *sdl = dlopen("libSDL2-2.0.so.0", RTLD_NOW | RTLD_NOLOAD);
	void *symbol = sdl != NULL ? dlsym(sdl, "SDL_PushEvent") : NULL;
	int (*push)(struct event *);

	if (symbol == NULL)
		return frag_op_fail(op, -ENOENT, "SDL2 is not loaded");
	memcpy(&push, &symbol, sizeof(push));
	push(&event);
	dlclose(sdl);
	return 0;
}

static int window_closer_compute(void *state, struct frag_tick *tick)
{
	struct window_closer *w = state;
	struct frag_tensor *tensor;
	int r = frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3,
				   (const int64_t[]){8, 16, 3}, &tensor);

	if (r < 0)
		return r;
	memset(frag_tensor_writable(tensor), 200, frag_tensor_size_bytes(tensor));
	r = frag_tick_emit_tensor(tick, OUT, "", tensor);
	if (r == 0 && ++w->sent == w->after)
		r = press_close(frag_tick_op(tick));
	return r;
}

static const struct frag_op_type window_closer = {
	FRAG_OP_TYPE_INIT,
	.name = "window_closer",
	.state_size = sizeof(struct window_closer),
	FRAG_PORTS(window_closer_ports),
	FRAG_PARAMS(window_closer_params),
	.compute = window_closer_compute,
};
static const struct frag_op_type *const ops[] = {&window_closer};

FRAG_PLUGIN(.name = "window_closer", .version = "1", FRAG_OPS(ops));
