/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_MUXER_H
#define VIDEO_MUXER_H

#include <stdbool.h>
#include <stdint.h>

#include <libavformat/avformat.h>

/*
 * A video file of one stream that is written in pieces: fragments of mp4 and mov, clusters of
 * Matroska, packets of the others. A piece ends when its oldest packet is flush_ns old; a thread of
 * the muxer then writes it and waits until the disk has it, also when no further packet comes. What
 * was written so can be played, whatever happens to the process. A piece that could not be written
 * is cut off again.
 *
 * Errors are FFmpeg's. Thread: one at a time.
 */
struct video_muxer;

/*
 * Makes a muxer for the format that the ending of path names.
 * - fd: of the file; taken if 0 is returned
 * - stop_fd: of a named pipe: as for video_pipe_write_to
 * - out_format: its context, borrowed, to add the stream to
 */
int video_muxer_create(const char *path, int fd, int64_t flush_ns, int stop_fd,
		       struct video_muxer **out, AVFormatContext **out_format);
/* Writes the header. Afterwards packets may come. */
int video_muxer_begin(struct video_muxer *muxer);
/* Whether the next packet is the first of a piece, which should be a key frame. */
bool video_muxer_begins_piece(struct video_muxer *muxer);
/* Takes the contents of a packet. Returns an error also for a piece that was written before. */
int video_muxer_add(struct video_muxer *muxer, AVPacket *packet);
/* The packets in the pieces that were written. */
int64_t video_muxer_kept(struct video_muxer *muxer);
/*
 * Writes the rest and the file's index, unless something failed before. Returns 0 or the first
 * error of all.
 */
int video_muxer_finish(struct video_muxer *muxer);
/* Closes the file and frees the muxer; NULL is accepted. */
void video_muxer_destroy(struct video_muxer *muxer);

#endif
