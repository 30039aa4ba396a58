/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WINDOW_DISPLAY_H
#define WINDOW_DISPLAY_H

#include "../draw/layers.h"

/*
 * The thread that shows messages in a window. It keeps the newest messages only; who gives them
 * never waits for it. As SDL wants it, all calls are made by this thread, but that which wakes it.
 */
struct display;

struct display_config {
	const struct layers *layers; /* borrowed */
	const char *title;           /* borrowed */
	bool is_fullscreen;
	/* called once, on the thread, when a person has closed the window */
	void (*closed)(void *arg);
	void *arg;
};

/*
 * Opens the window, which is shown with the first picture. A process has one at most.
 * Returns 0, or a failure with a sentence. Blocks: until the desktop has answered.
 */
int window_display_create(const struct display_config *config, struct display **out,
			  struct frag_err *err);
/*
 * Gives the newest messages, of which it takes references; with the window they are dropped.
 * Returns 0, or a failure with a sentence, also that of the thread. Thread: one at a time.
 * Blocks: no.
 */
int window_display_give(struct display *display, struct messages *messages, struct frag_err *err);
/* Closes the window and ends the thread. NULL is accepted. Blocks: for one picture. */
void window_display_destroy(struct display *display);

#endif
