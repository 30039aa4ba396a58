// SPDX-License-Identifier: Apache-2.0
#include "muxer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <libavutil/opt.h>

#include "pipe.h"

struct video_muxer {
	AVFormatContext *format;
	int fd, stop_fd;
	bool is_pipe;
	int64_t flush_ns;
	pthread_mutex_t lock; /* of all below, and of the format once it has begun */
	pthread_cond_t changed;
	pthread_t thread;
	bool has_begun, ends;
	int64_t due_ns;        /* the piece is to be written then; 0: it is empty */
	int64_t packets, kept; /* that came; that are in pieces which were written */
	int64_t kept_bytes;    /* of the file with these */
	int error;             /* the first one; 0: none */
};

static int64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/*
 * Keeps an error, and cuts off what was written in part. The data that FFmpeg still holds would
 * be written behind it when the file is closed, so it is dropped.
 */
static int keep_error(struct video_muxer *m, int r)
{
	AVIOContext *io = m->format->pb;

	if (r >= 0 || m->error < 0)
		return m->error;
	m->error = r;
	m->due_ns = 0;
	if (io != NULL)
		io->buf_ptr = io->buf_ptr_max = io->buffer;
	if (ftruncate(m->fd, m->kept_bytes) < 0)
		return r; /* a pipe: what is written there is read */
	return r;
}

/* Writes what the muxer and FFmpeg's buffer hold. */
static int write_piece(struct video_muxer *m)
{
	int r = m->error;

	if (r == 0)
		r = av_write_frame(m->format, NULL);
	if (r >= 0)
		avio_flush(m->format->pb);
	if (r >= 0)
		r = m->format->pb->error;
	if (r < 0)
		return keep_error(m, r);
	/* Else mp4 lets the next frame begin where it has guessed that the last one ends. */
	if (av_opt_find(m->format->priv_data, "movflags", NULL, 0, 0) != NULL)
		(void)av_opt_set(m->format->priv_data, "movflags", "+frag_discont", 0);
	m->due_ns = 0;
	m->kept = m->packets;
	m->kept_bytes = avio_tell(m->format->pb);
	return 0;
}

/* What has no disk, such as a pipe, cannot be synchronised. */
static int synchronise(int fd)
{
	return fdatasync(fd) < 0 && errno != EINVAL && errno != EROFS ? AVERROR(errno) : 0;
}

static void *run(void *arg)
{
	struct video_muxer *m = arg;

	pthread_mutex_lock(&m->lock);
	while (!m->ends) {
		struct timespec due = {.tv_sec = m->due_ns / 1000000000,
				       .tv_nsec = m->due_ns % 1000000000};

		if (m->due_ns == 0) {
			pthread_cond_wait(&m->changed, &m->lock);
		} else if (clock_ns() < m->due_ns) {
			pthread_cond_timedwait(&m->changed, &m->lock, &due);
		} else if (write_piece(m) == 0) {
			int r;

			pthread_mutex_unlock(&m->lock);
			r = synchronise(m->fd);
			pthread_mutex_lock(&m->lock);
			keep_error(m, r);
		}
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

int video_muxer_create(const char *path, int fd, int64_t flush_ns, int stop_fd,
		       struct video_muxer **out, AVFormatContext **out_format)
{
	struct video_muxer *m = calloc(1, sizeof(*m));
	pthread_condattr_t monotonic;
	struct stat status;
	int r;

	if (m == NULL)
		return AVERROR(ENOMEM);
	r = avformat_alloc_output_context2(&m->format, NULL, NULL, path);
	if (r < 0) {
		free(m);
		return r;
	}
	m->fd = fd;
	m->stop_fd = stop_fd;
	m->is_pipe = fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
	m->flush_ns = flush_ns;
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&m->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*out = m;
	*out_format = m->format;
	return 0;
}

/* No protocol of FFmpeg's is meant, whatever the name of the file. */
static int open_output(struct video_muxer *m)
{
	char own[64];

	if (m->is_pipe)
		return video_pipe_write_to(m->fd, m->stop_fd, &m->format->pb);
	snprintf(own, sizeof(own), "file:/proc/self/fd/%d", m->fd);
	return avio_open(&m->format->pb, own, AVIO_FLAG_WRITE);
}

int video_muxer_begin(struct video_muxer *m)
{
	AVDictionary *options = NULL;
	int r = open_output(m);

	/* An mp4 has its index at the end, unless each fragment has its own. */
	if (r >= 0 && av_opt_find(m->format->priv_data, "movflags", NULL, 0, 0) != NULL)
		r = av_dict_set(&options, "movflags", "frag_custom+empty_moov+default_base_moof",
				0);
	if (r >= 0)
		r = avformat_write_header(m->format, &options);
	av_dict_free(&options);
	if (r >= 0)
		r = write_piece(m);
	if (r >= 0)
		r = AVERROR(pthread_create(&m->thread, NULL, run, m));
	m->has_begun = r == 0;
	return r;
}

bool video_muxer_begins_piece(struct video_muxer *m)
{
	bool begins;

	pthread_mutex_lock(&m->lock);
	begins = m->packets == m->kept;
	pthread_mutex_unlock(&m->lock);
	return begins;
}

int video_muxer_add(struct video_muxer *m, AVPacket *packet)
{
	int r;

	pthread_mutex_lock(&m->lock);
	r = m->error;
	if (r == 0)
		r = keep_error(m, av_write_frame(m->format, packet));
	if (r == 0) {
		m->packets++;
		if (m->due_ns == 0) {
			/* The first frame is written at once: a file has something to play. */
			m->due_ns = clock_ns() + (m->kept > 0 ? m->flush_ns : 0);
			pthread_cond_signal(&m->changed);
		}
	}
	pthread_mutex_unlock(&m->lock);
	av_packet_unref(packet);
	return r;
}

int64_t video_muxer_kept(struct video_muxer *m)
{
	int64_t kept;

	pthread_mutex_lock(&m->lock);
	kept = m->kept;
	pthread_mutex_unlock(&m->lock);
	return kept;
}

/* Ends the thread. The file is the caller's alone afterwards. */
static void join(struct video_muxer *m)
{
	if (!m->has_begun)
		return;
	pthread_mutex_lock(&m->lock);
	m->ends = true;
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	m->has_begun = false;
}

int video_muxer_finish(struct video_muxer *m)
{
	bool has_header = m->has_begun;

	join(m);
	if (!has_header || write_piece(m) < 0)
		return m->error;
	keep_error(m, av_write_trailer(m->format));
	if (m->error == 0) {
		avio_flush(m->format->pb);
		keep_error(m, m->format->pb->error);
	}
	if (m->error == 0)
		keep_error(m, synchronise(m->fd));
	return m->error;
}

void video_muxer_destroy(struct video_muxer *m)
{
	if (m == NULL)
		return;
	join(m);
	if (m->is_pipe)
		video_pipe_close(m->format->pb);
	else
		avio_closep(&m->format->pb);
	avformat_free_context(m->format);
	close(m->fd);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
