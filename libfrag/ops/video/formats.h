/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_FORMATS_H
#define VIDEO_FORMATS_H

#include <libavformat/avformat.h>

#include <frag/error.h>

/*
 * A path names one media file. Playlists and the like (HLS, DASH, ffconcat, numbered pictures) make
 * FFmpeg open other files, which whoever made the file chooses; they are played only if their
 * format is allowed by name.
 */

/*
 * Opens a file into *format, or what its pb reads, if it has one.
 * - also: formats that are allowed besides those of one media file, by FFmpeg's names and with
 *   commas between them; "": none
 * Returns 0 or FFmpeg's error, with a sentence where the format is refused.
 */
int video_formats_open(AVFormatContext **format, const char *path, const char *also,
		       struct frag_err *err);

#define VIDEO_WHY 200
/* Words in text why FFmpeg could not open a file: what it reports, or what is seen to be wrong. */
const char *video_formats_why(const char *path, int error, char text[VIDEO_WHY]);

#endif
