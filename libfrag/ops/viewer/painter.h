/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIEWER_PAINTER_H
#define VIEWER_PAINTER_H

#include "../draw/layers.h"
#include "listener.h"

/*
 * The thread that turns messages into pictures, for a page and a file. It keeps the newest messages
 * only, and draws them when somebody looks, or the file is due. Who gives messages never waits for
 * it.
 */
struct painter;

struct painter_config {
	const struct layers *layers; /* borrowed */
	const char *title;           /* borrowed */
	int quality;
	double framerate;       /* pictures a second at most */
	const char *path;       /* of a file; NULL: none. Borrowed */
	bool is_png;            /* the file is PNG; else JPEG */
	int64_t path_period_ns; /* how often it is written; 0: at the end only */
	unsigned int connections;
};

/*
 * - listener: takes it, also on failure
 * Returns 0, or a failure with a sentence.
 */
int viewer_painter_create(const struct painter_config *config, const struct listener *listener,
			  struct painter **out, struct frag_err *err);
/*
 * Gives the newest messages, of which it takes references, where it can.
 * - acquired_ns: when they were taken, Unix time; 0: not known
 * Returns 0 or -ENOMEM. Thread: one at a time. Blocks: no.
 */
int viewer_painter_give(struct painter *painter, struct messages *messages, int64_t acquired_ns);
/*
 * Writes the file and ends the thread and the page. NULL is accepted. Returns 0; a negative errno:
 * the file could not be written, then or earlier. Blocks: as the disk does, and for one picture.
 */
int viewer_painter_destroy(struct painter *painter);

#endif
