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
/* NULL is accepted. */
void video_pipe_close(AVIOContext *io);

#endif
