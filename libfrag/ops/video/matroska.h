/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_MATROSKA_H
#define VIDEO_MATROSKA_H

#include <stdbool.h>

#include <libavformat/avio.h>

/*
 * Whether a Matroska or WebM file ends inside one of its elements, as one does that was cut off or
 * whose writer was killed. FFmpeg reports the same end as for a whole file. A live file, which
 * states neither its size nor its duration, is whole when its last block is. Moves the position.
 */
bool video_matroska_is_cut(AVIOContext *io);

#endif
