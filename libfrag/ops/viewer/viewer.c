// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <unistd.h>

#include <frag/draft.h>

#include "../draw/params.h"
#include "../folders.h"
#include "painter.h"
#include "viewer.h"

struct viewer {
	DRAW_FIELDS;
	double framerate;
	const char *window_title;
	const char *address;
	int64_t port, max_connections, quality;
	const char *path;
	int64_t path_period;
	bool is_png;

	struct layers layers;
	char title[2 * (FRAG_NAME_MAX + 1)];
	struct painter *painter;
};

enum { RECEIVERS, INPUT_SPECS };
static const struct frag_port viewer_ports[] = {
	[RECEIVERS] = DRAW_RECEIVERS,
	[INPUT_SPECS] = DRAW_INPUT_SPECS,
};

static const struct frag_param viewer_params[] = {
	DRAW_PARAMS(struct viewer),
	FRAG_PARAM_F64(struct viewer, framerate, 60.0,
		       .headline = "Pictures a second that the page gets at most", .min = 0.001,
		       .max = 10000.0),
	FRAG_PARAM_STRING(struct viewer, window_title, "",
			  .headline = "Title of the page; empty: fragment.operator"),
	FRAG_PARAM_STRING(
		struct viewer, address, "127.0.0.1",
		.headline = "Address that the page is served at",
		.description =
			"On loopback only this machine reaches it. At any other address everybody who reaches it sees the pictures: there is no password."),
	FRAG_PARAM_I64(struct viewer, port, 0,
		       .headline = "Port of the page; 0: one that is free, which is logged",
		       .min = 0, .max = 65535),
	FRAG_PARAM_I64(struct viewer, max_connections, 32,
		       .headline = "Connections that are served at a time", .min = 1, .max = 1024),
	FRAG_PARAM_I64(struct viewer, quality, 75, .headline = "Quality of the JPEG", .min = 1,
		       .max = 100),
	FRAG_PARAM_PATH(
		struct viewer, path, NULL, .headline = "JPEG or PNG file of the newest picture",
		.description =
			"Its folders are made. It is replaced as a whole every path_period, and at the end.",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_DURATION(struct viewer, path_period, 1000000000,
			    .headline = "How often the file is written; 0: at the end only",
			    .min = 0, .max = 9e18),
};

static int viewer_setup(void *state, struct frag_op *op)
{
	struct viewer *v = state;
	const char *ending = v->path != NULL ? strrchr(v->path, '.') : ".jpg";

	if (v->path != NULL && frame_check_path(op, v->path) < 0)
		return -EINVAL;
	v->is_png = ending != NULL && strcmp(ending, ".png") == 0;
	if (ending == NULL ||
	    (!v->is_png && strcmp(ending, ".jpg") != 0 && strcmp(ending, ".jpeg") != 0))
		return frag_op_fail(
			op, -EINVAL,
			"path \"%s\" does not end with .jpg, .jpeg or .png; for a video connect draw to video_recorder",
			v->path);
	return draw_params_read(op, DRAW_GIVEN(v), &v->layers);
}

/* Fails where the file cannot be written, before anything runs. */
static int try_file(const struct viewer *v, struct frag_op *op)
{
	struct frag_draft *draft;
	int r = folders_make(v->path);

	if (r == 0)
		r = frag_draft_create(v->path, &draft);
	if (r < 0)
		return frag_op_fail(op, r, "cannot write the picture %s: %s; check the folder",
				    v->path, frag_strerror(r));
	frag_draft_destroy(draft);
	return 0;
}

/* Here and not in start, so that the threads are not those of a realtime scheduler. */
static int viewer_initialize(void *state, struct frag_op *op)
{
	struct viewer *v = state;
	struct frag_err err = FRAG_ERR_INIT;
	struct listener listener;
	struct painter_config config = {
		.layers = &v->layers,
		.title = v->window_title[0] != '\0' ? v->window_title : v->title,
		.quality = (int)v->quality,
		.framerate = v->framerate,
		.path = v->path,
		.is_png = v->is_png,
		.path_period_ns = v->path != NULL ? v->path_period : 0,
		.connections = (unsigned int)v->max_connections,
	};
	int r = v->path != NULL ? try_file(v, op) : 0;

	if (r < 0)
		return r;
	snprintf(v->title, sizeof(v->title), "%s.%s", frag_op_fragment_name(op), frag_op_name(op));
	r = viewer_listener_open(v->address, v->port, &listener, &err);
	if (r == 0)
		r = viewer_painter_create(&config, &listener, &v->painter, &err);
	if (r < 0)
		return frag_op_fail(op, r, "%s", err.text);
	frag_op_log(op, "shows its pictures at %s%s", listener.url,
		    listener.is_loopback ? "" : ", to everybody who reaches this address");
	return 0;
}

/* Returns when the messages were taken, Unix time; 0: nobody said so. */
static int64_t acquired_ns(struct frag_tick *tick, const struct messages *messages)
{
	int64_t newest_ns = 0, ns;

	for (size_t i = 0; i < messages->count; i++) {
		ns = messages->items[i] != NULL ? frag_message_acquisition_ns(messages->items[i])
						: 0;
		newest_ns = ns > newest_ns ? ns : newest_ns;
	}
	if (newest_ns == 0 &&
	    frag_metadata_get_i64(frag_tick_metadata(tick), "acquired_ns", &ns) == 0)
		newest_ns = ns;
	return newest_ns;
}

static int viewer_compute(void *state, struct frag_tick *tick)
{
	struct viewer *v = state;
	struct messages messages = {0};
	int r = draw_receive(tick, RECEIVERS, INPUT_SPECS, &v->layers, &messages);

	if (r == 0)
		r = viewer_painter_give(v->painter, &messages, acquired_ns(tick, &messages));
	draw_layers_release(messages.own); /* unless the painter took them */
	return r;
}

static int viewer_stop(void *state, struct frag_op *op)
{
	struct viewer *v = state;
	int r = viewer_painter_destroy(v->painter);

	v->painter = NULL;
	if (r < 0)
		return frag_op_fail(
			op, r,
			"cannot write the picture %s: %s; check the folder and the space on its disk",
			v->path, frag_strerror(r));
	return 0;
}

static void viewer_fini(void *state, struct frag_op *op)
{
	struct viewer *v = state;

	(void)op;
	viewer_painter_destroy(v->painter);
	draw_layers_fini(&v->layers);
}

const struct frag_op_type viewer_viewer_type = {
	FRAG_OP_TYPE_INIT,
	.name = "viewer",
	.headline = "Shows pictures on a web page",
	.description =
		"The newest picture, made of layers as Holoviz's, on a page for any browser. Pictures are only drawn while somebody looks. It holds the newest messages, and those that it draws: give pools two blocks more.",
	.state_size = sizeof(struct viewer),
	FRAG_PORTS(viewer_ports),
	FRAG_PARAMS(viewer_params),
	.setup = viewer_setup,
	.initialize = viewer_initialize,
	.compute = viewer_compute,
	.stop = viewer_stop,
	.fini = viewer_fini,
};
