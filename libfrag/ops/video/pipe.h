/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_PIPE_H
#define VIDEO_PIPE_H

#include <stdbool.h>

#include <libavformat/avio.h>

#include "url.h"

/* Whether the file is a named pipe, which has no begin to go back to. */
bool video_pipe_is(const char *path);
/*
 * Opens a named pipe. Neither this nor a read waits any longer when the watch is stopped; FFmpeg's
 * own would.
 * - watch: borrowed as long as the context
 * Returns 0 or FFmpeg's error.
 */
int video_pipe_open(const char *path, struct video_watch *watch, AVIOContext **out);
/*
 * Opens a named pipe to write to, and waits for a reader. Returns its descriptor; -ECANCELED:
 * stop_fd has become readable before; or a negative errno.
 */
int video_pipe_open_output(const char *path, int stop_fd);
/*
 * Makes an output of FFmpeg's of such a descriptor, which stays the caller's. A reader that takes
 * nothing is waited for, but no longer than a moment after stop_fd has become readable. Returns 0
 * or FFmpeg's error.
 */
int video_pipe_write_to(int fd, int stop_fd, AVIOContext **out);
/* NULL is accepted. */
void video_pipe_close(AVIOContext *io);

#endif
