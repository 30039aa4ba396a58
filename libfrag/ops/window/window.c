// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "../draw/params.h"
#include "display.h"
#include "window.h"

struct window {
	DRAW_FIELDS;
	const char *window_title;
	bool fullscreen;

	struct layers layers;
	char title[2 * (FRAG_NAME_MAX + 1)];
	struct display *display;
};

enum { RECEIVERS, INPUT_SPECS };
static const struct frag_port window_ports[] = {
	[RECEIVERS] = DRAW_RECEIVERS,
	[INPUT_SPECS] = DRAW_INPUT_SPECS,
};

static const struct frag_param window_params[] = {
	DRAW_PARAMS(struct window),
	FRAG_PARAM_STRING(struct window, window_title, "",
			  .headline = "Title of the window; empty: fragment.operator"),
	FRAG_PARAM_BOOL(struct window, fullscreen, false, .headline = "Fill the screen"),
};

static int window_setup(void *state, struct frag_op *op)
{
	struct window *w = state;

	return draw_params_read(op, DRAW_GIVEN(w), &w->layers);
}

static void closed(void *arg)
{
	struct frag_op *op = arg;

	frag_op_log(op, "its window was closed");
	frag_op_stop_execution(op);
}

/* Here and not in start, so that the thread is not that of a realtime scheduler. */
static int window_initialize(void *state, struct frag_op *op)
{
	struct window *w = state;
	struct frag_err err = FRAG_ERR_INIT;
	const struct display_config config = {
		.layers = &w->layers,
		.title = w->window_title[0] != '\0' ? w->window_title : w->title,
		.is_fullscreen = w->fullscreen,
		.closed = closed,
		.arg = op,
	};
	int r;

	snprintf(w->title, sizeof(w->title), "%s.%s", frag_op_fragment_name(op), frag_op_name(op));
	r = window_display_create(&config, &w->display, &err);
	return r < 0 ? frag_op_fail(op, r, "%s", err.text) : 0;
}

static int window_compute(void *state, struct frag_tick *tick)
{
	struct window *w = state;
	struct frag_err err = FRAG_ERR_INIT;
	struct messages messages = {0};
	int r = draw_receive(tick, RECEIVERS, INPUT_SPECS, &w->layers, &messages);

	if (r < 0) {
		draw_layers_release(messages.own);
		return r;
	}
	r = window_display_give(w->display, &messages, &err);
	draw_layers_release(messages.own); /* unless the display took them */
	return r < 0 ? frag_op_fail(frag_tick_op(tick), r, "%s", err.text) : 0;
}

static int window_stop(void *state, struct frag_op *op)
{
	struct window *w = state;

	(void)op;
	window_display_destroy(w->display);
	w->display = NULL;
	return 0;
}

static void window_fini(void *state, struct frag_op *op)
{
	struct window *w = state;

	(void)op;
	window_display_destroy(w->display);
	draw_layers_fini(&w->layers);
}

const struct frag_op_type window_window_type = {
	FRAG_OP_TYPE_INIT,
	.name = "window",
	.headline = "Shows pictures in a window of the desktop",
	.description =
		"The newest picture, made of layers as Holoviz's. Closing the window ends this operator, and with it what sends to it alone. It needs SDL2 on the machine that it runs on. It holds the newest messages, and those that it draws: give pools two blocks more.",
	.state_size = sizeof(struct window),
	FRAG_PORTS(window_ports),
	FRAG_PARAMS(window_params),
	.setup = window_setup,
	.initialize = window_initialize,
	.compute = window_compute,
	.stop = window_stop,
	.fini = window_fini,
};
