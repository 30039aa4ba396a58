// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "live.h"

struct video_live {
	/* constant */
	struct video_decoder *decoder;
	int stop_fd, news_fd; /* news_fd: readable when there is a frame, or the thread has ended */
	pthread_t thread;
	AVFrame *decoded; /* the thread's */

	pthread_mutex_t lock; /* guards what follows */
	AVFrame *newest;
	bool has_news; /* `newest` was not taken */
	int64_t left_out, skipped;
	int ended; /* 1: not yet; else what video_decoder_next returned */
	struct frag_err err;
};

static void notify(struct video_live *live)
{
	const uint64_t one = 1;
	ssize_t n = write(live->news_fd, &one, sizeof(one));

	(void)n; /* a counter that is full is readable too */
}

static void *decode(void *arg)
{
	struct video_live *live = arg;
	int r = 1;

	while (r == 1) {
		struct frag_err err = FRAG_ERR_INIT;
		int64_t skipped = 0;

		r = video_decoder_next(live->decoder, live->decoded, &skipped, &err);
		pthread_mutex_lock(&live->lock);
		live->skipped += skipped;
		if (r == 1) {
			live->left_out += live->has_news;
			live->has_news = true;
			av_frame_unref(live->newest);
			av_frame_move_ref(live->newest, live->decoded);
		}
		live->ended = r;
		live->err = err;
		pthread_mutex_unlock(&live->lock);
		notify(live);
	}
	return NULL;
}

int video_live_create(struct video_decoder *decoder, int stop_fd, struct video_live **out)
{
	struct video_live *live = calloc(1, sizeof(*live));
	int r = -ENOMEM;

	if (live == NULL)
		return r;
	live->decoder = decoder;
	live->stop_fd = stop_fd;
	live->ended = 1;
	live->decoded = av_frame_alloc();
	live->newest = av_frame_alloc();
	live->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&live->lock, NULL);
	if (live->news_fd < 0)
		r = -errno;
	else if (live->decoded != NULL && live->newest != NULL)
		r = -pthread_create(&live->thread, NULL, decode, live);
	if (r == 0) {
		*out = live;
		return 0;
	}
	if (live->news_fd >= 0)
		close(live->news_fd);
	av_frame_free(&live->decoded);
	av_frame_free(&live->newest);
	pthread_mutex_destroy(&live->lock);
	free(live);
	return r;
}

void video_live_destroy(struct video_live *live)
{
	if (live == NULL)
		return;
	video_decoder_interrupt(live->decoder);
	pthread_join(live->thread, NULL);
	close(live->news_fd);
	av_frame_free(&live->decoded);
	av_frame_free(&live->newest);
	pthread_mutex_destroy(&live->lock);
	free(live);
}

int video_live_take(struct video_live *live, AVFrame *frame, int64_t *left_out, int64_t *skipped,
		    struct frag_err *err)
{
	struct pollfd fds[] = {{.fd = live->news_fd, .events = POLLIN},
			       {.fd = live->stop_fd, .events = POLLIN}};
	uint64_t count;
	int r = 1;

	for (;;) {
		bool has_news;

		pthread_mutex_lock(&live->lock);
		has_news = live->has_news;
		if (has_news) {
			av_frame_unref(frame);
			av_frame_move_ref(frame, live->newest);
			live->has_news = false;
		} else {
			r = live->ended;
			*err = live->err;
		}
		*left_out += live->left_out;
		*skipped += live->skipped;
		live->left_out = live->skipped = 0;
		pthread_mutex_unlock(&live->lock);
		if (has_news || r != 1)
			return r;
		if (poll(fds, 2, -1) > 0 && fds[1].revents != 0)
			return frag_err_set(err, -ECANCELED,
					    "the stream is not waited for any more");
		count = 0;
		if (read(live->news_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
			return frag_err_set(err, -errno, "cannot wait for the stream: %s",
					    frag_strerror(-errno));
	}
}
