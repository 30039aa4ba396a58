// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>

#include "page_inside.h"

#define BOUNDARY "frag-picture"
#define BLOCK_BYTES (64 * 1024) /* handed to the socket at a time */

/*
 * Each part of the stream ends with the head of the next one, because Chromium shows a picture when
 * it has read that. So the head is the same for all parts, and holds no length.
 */
#define STREAM_START "--" BOUNDARY "\r\nContent-Type: image/jpeg\r\n\r\n"
#define PART_END "\r\n" STREAM_START

struct stream {
	struct stream *next;
	struct page *page;
	struct MHD_Connection *connection;
	int fd;
	bool is_endless;
	bool is_waiting; /* for a picture: the connection is suspended */
	bool is_gone;    /* the browser has closed */

	/* Of the page's thread: what is sent now. */
	struct picture *picture;
	uint64_t number; /* of the last picture */
	size_t head_size, tail_size;
	size_t sent, total;
};

/* Prepares the picture that was taken. A stream begins with a head. */
static void begin_part(struct stream *stream, bool is_first)
{
	const struct picture *picture = stream->picture;

	stream->number = picture->number;
	stream->sent = 0;
	stream->head_size = stream->is_endless && is_first ? sizeof(STREAM_START) - 1 : 0;
	stream->tail_size = stream->is_endless ? sizeof(PART_END) - 1 : 0;
	stream->total = stream->head_size + picture->size + stream->tail_size;
}

/* Takes the next picture. Returns 1; 0: it comes later; MHD_CONTENT_READER_END_...: none comes. */
static ssize_t take_next(struct stream *stream)
{
	struct page *page = stream->page;
	bool is_first = stream->number == 0;
	ssize_t r = 0;

	viewer_picture_unref(stream->picture);
	stream->picture = NULL;
	if (!is_first && !stream->is_endless)
		return MHD_CONTENT_READER_END_OF_STREAM;
	pthread_mutex_lock(&page->lock);
	if (page->is_closing || stream->is_gone) {
		r = MHD_CONTENT_READER_END_WITH_ERROR;
	} else if (page->newest != NULL && page->newest->number > stream->number) {
		stream->picture = viewer_picture_ref(page->newest);
		r = 1;
	} else {
		stream->is_waiting = true;
		MHD_suspend_connection(stream->connection);
	}
	pthread_mutex_unlock(&page->lock);
	if (r == 1)
		begin_part(stream, is_first);
	return r;
}

/* Copies what of a piece lies behind *at, as far as there is room. */
static void copy_piece(const void *piece, size_t size, size_t *at, char **to, size_t *room)
{
	size_t count;

	if (*at >= size) {
		*at -= size;
		return;
	}
	count = size - *at < *room ? size - *at : *room;
	memcpy(*to, (const char *)piece + *at, count);
	*at = 0;
	*to += count;
	*room -= count;
}

/* MHD's reader: the next bytes to send. */
static ssize_t stream_read(void *arg, uint64_t position, char *to, size_t room)
{
	struct stream *stream = arg;
	size_t at, size = room;

	(void)position;
	if (stream->sent == stream->total) {
		ssize_t r = take_next(stream);

		if (r <= 0)
			return r;
	}
	at = stream->sent;
	copy_piece(STREAM_START, stream->head_size, &at, &to, &room);
	if (room > 0)
		copy_piece(stream->picture->jpeg, stream->picture->size, &at, &to, &room);
	if (room > 0)
		copy_piece(PART_END, stream->tail_size, &at, &to, &room);
	stream->sent += size - room;
	return (ssize_t)(size - room);
}

static void stream_destroy(void *arg)
{
	struct stream *stream = arg, **link = &stream->page->streams;
	struct page *page = stream->page;

	pthread_mutex_lock(&page->lock);
	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	page->watchers--;
	if (page->watchers == 0) {
		/* Whoever looks next is not shown what is old by then. */
		viewer_picture_unref(page->newest);
		page->newest = NULL;
	}
	pthread_mutex_unlock(&page->lock);
	viewer_picture_unref(stream->picture);
	free(stream);
	page->owner.changed(page->owner.arg);
}

struct MHD_Response *viewer_stream_create(struct page *page, struct MHD_Connection *connection,
					  bool is_endless)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	struct MHD_Response *response = NULL;

	if (stream == NULL)
		return NULL;
	*stream = (struct stream){
		.page = page,
		.connection = connection,
		.fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
			      ->connect_fd,
		.is_endless = is_endless,
	};
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, stream_read,
						     stream, stream_destroy);
	if (response == NULL) {
		free(stream);
		return NULL;
	}
	pthread_mutex_lock(&page->lock);
	stream->next = page->streams;
	page->streams = stream;
	page->watchers++;
	pthread_mutex_unlock(&page->lock);
	MHD_add_response_header(response, "Content-Type",
				is_endless ? "multipart/x-mixed-replace; boundary=" BOUNDARY
					   : "image/jpeg");
	page->owner.changed(page->owner.arg);
	return response;
}

static void resume(struct stream *stream)
{
	stream->is_waiting = false;
	MHD_resume_connection(stream->connection);
}

void viewer_streams_resume_locked(struct page *page)
{
	for (struct stream *s = page->streams; s != NULL; s = s->next) {
		if (s->is_waiting)
			resume(s);
	}
}

/* Nobody reads from a connection that is suspended, so its end is looked for here. */
void viewer_streams_end_gone_locked(struct page *page)
{
	for (struct stream *s = page->streams; s != NULL; s = s->next) {
		struct pollfd peer = {.fd = s->fd, .events = POLLRDHUP};

		if (!s->is_waiting || poll(&peer, 1, 0) <= 0)
			continue;
		s->is_gone = true;
		resume(s);
	}
}
