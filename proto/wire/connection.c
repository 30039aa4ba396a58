// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include <base/alloc.h>
#include <base/sentence.h>
#include <base/stamp.h>
#include <wire/connection.h>
#include <wire/peer_words.h>

/*
 * All goes well: start reads, every read is fed to the reader and every whole frame is handed on; a
 * send becomes one uv_write. What fails, in reading, decoding, sending or by the clock, calls
 * fail(), which keeps the first reason and closes both handles; when libuv has let go of the second
 * one, ops->closed is called and the memory freed.
 *
 * finish() keeps reading and forgets what it reads: closing a socket with unread bytes would make
 * the system reset the connection and could take our last words from the peer.
 *
 * Bytes enter by take_bytes() and leave by put_bytes(), and nowhere else. With TLS a session stands
 * between the stream and the frames: take_sealed() in front of take_bytes(), and put_sealed() in
 * front of put_bytes(). No frame is read or sent before the handshake has proven who the peer is.
 * Without TLS nothing at all is read before the kernel has said whose process it is.
 */
#define ADMIT_NS_DEFAULT ((int64_t)2000000000)
#define FRAME_NS_DEFAULT ((int64_t)10000000000)
#define FINISH_NS ((int64_t)1000000000)
#define LATE_NS ((int64_t)500000000)
#define QUEUE_BYTES_DEFAULT ((size_t)64 << 20)
#define READ_BYTES 16384
#define ASK_NS ((int64_t)1000000) /* until the user is asked for again; doubled each time */

struct fw_connection {
	/* constant once created */
	const struct fw_connection_ops *ops;
	void *arg;
	struct fw_connection_options options;
	char peer[FW_PEER_NAME_MAX];
	/* the loop's */
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} stream;
	uv_timer_t timer;
	uv_shutdown_t shutdown;
	struct fw_reader reader;
	void *session;                           /* of TLS; NULL: the stream is in clear */
	int64_t admit_until_ns, finish_until_ns; /* 0: not running */
	int64_t ask_at_ns, ask_after_ns;         /* for the peer's user, again; 0: known */
	int64_t timer_due_ns;
	int handles; /* that libuv still has */
	bool closing, finishing;
	bool excused;    /* a deadline passed while this process did not run */
	bool understood; /* a whole message has come, right or wrong */
	bool ready;      /* the peer has proven who it is, as far as it must */
	bool has_user;
	uid_t user; /* of the peer, with has_user */
	int reason;
	char sentence[1024];
	uint8_t buffer[READ_BYTES];
};

struct send_request {
	uv_write_t write;
	struct fw_connection *connection;
	uint8_t *frame;
	size_t size;
};

/* It may have carried a token or a key. */
static void free_frame(uint8_t *frame, size_t size)
{
	explicit_bzero(frame, size);
	fragi_free(frame);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct fw_connection *c = handle->data;

	if (--c->handles != 0)
		return;
	c->ops->closed(c, c->reason, c->sentence, c->arg);
	fw_reader_fini(&c->reader);
	if (c->session != NULL)
		c->options.tls->ops->end(c->session);
	explicit_bzero(c->buffer, sizeof(c->buffer));
	fragi_free(c);
}

static void fail(struct fw_connection *c, int reason, const char *sentence)
{
	if (c->closing)
		return;
	c->closing = true;
	if (c->reason == 0) { /* else it was refused before */
		c->reason = reason;
		fragi_sentence(c->sentence, sizeof(c->sentence), "%s", sentence);
	}
	uv_close(&c->stream.handle, on_handle_closed);
	uv_close((uv_handle_t *)&c->timer, on_handle_closed);
}

static void on_timer(uv_timer_t *timer);
static int put_bytes(struct fw_connection *c, uint8_t *bytes, size_t size);
static void prove_user(struct fw_connection *c);

/* Sets the timer to the nearest deadline, if there is one. */
static void watch(struct fw_connection *c)
{
	int64_t due = 0, frame = 0, now = fragi_now_ns();

	if (c->closing)
		return;
	if (c->reader.frame_since_ns != 0 && !c->finishing)
		frame = c->reader.frame_since_ns + c->options.frame_ns;
	if (c->finishing)
		due = c->finish_until_ns;
	else if (c->admit_until_ns != 0 && (frame == 0 || c->admit_until_ns < frame))
		due = c->admit_until_ns;
	else
		due = frame;
	if (c->ask_at_ns != 0 && !c->finishing && (due == 0 || c->ask_at_ns < due))
		due = c->ask_at_ns;
	if (due == c->timer_due_ns)
		return;
	c->timer_due_ns = due;
	if (due == 0) {
		c->excused = false;
		uv_timer_stop(&c->timer);
	} else {
		uv_timer_start(&c->timer, on_timer,
			       due > now ? (uint64_t)((due - now) / 1000000 + 1) : 0, 0);
	}
}

/*
 * A timer that is called very late means that this process did not run: what the peer sent
 * meanwhile is read before it is judged.
 */
static void on_timer(uv_timer_t *timer)
{
	struct fw_connection *c = timer->data;
	int64_t due = c->timer_due_ns, now = fragi_now_ns();

	if (due == 0)
		return;
	if (now - due > LATE_NS && !c->excused) {
		c->excused = true;
		due = now + LATE_NS;
	}
	if (now < due) {
		c->timer_due_ns = due;
		uv_timer_start(timer, on_timer, (uint64_t)((due - now) / 1000000 + 1), 0);
		return;
	}
	if (c->finishing)
		fail(c, -ETIMEDOUT, "the peer did not close in time");
	else if (c->ask_at_ns != 0 && now >= c->admit_until_ns)
		fail(c, -ETIMEDOUT, "its program does not accept the connection");
	else if (c->ask_at_ns != 0)
		prove_user(c);
	else if (c->admit_until_ns != 0 && now >= c->admit_until_ns)
		fail(c, -ETIMEDOUT, "the peer did not say who it is in time");
	else
		fail(c, -ETIMEDOUT, "the peer began a message and did not end it in time");
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
	struct fw_connection *c = handle->data;

	(void)suggested;
	*out = uv_buf_init((char *)c->buffer, sizeof(c->buffer));
}

/*
 * The connection ends for this reason, once what is queued has left: it says why in the peer's
 * language.
 */
static void refuse(struct fw_connection *c, int reason, const char *sentence)
{
	if (c->closing || c->finishing)
		return;
	c->reason = reason;
	fragi_sentence(c->sentence, sizeof(c->sentence), "%s", sentence);
	fw_connection_finish(c);
}

/* The peer has a key and this side has none: it hears so in an alert (protocol_version, fatal). */
static void refuse_tls(struct fw_connection *c)
{
	static const uint8_t alert[] = {21, 3, 3, 0, 2, 2, 70};
	uint8_t *bytes = fragi_malloc(sizeof(alert));

	if (bytes != NULL) {
		memcpy(bytes, alert, sizeof(alert));
		(void)put_bytes(c, bytes, sizeof(alert));
	}
	refuse(c, -EKEYREJECTED,
	       "it has a key, and this side has none; give --key-file to both sides");
}

/*
 * What the peer sent is no message. If nothing before it was one, another program has the other
 * end: a browser, a scanner, or a server of another kind where a driver was expected.
 */
static void fail_by_bytes(struct fw_connection *c, int reason, const char *sentence)
{
	char quoted[FW_QUOTE_MAX], own[sizeof(quoted) + 64];

	if (c->understood || c->stream.handle.type != UV_TCP ||
	    (reason != -EMSGSIZE && reason != -EBADMSG)) {
		fail(c, reason, sentence);
		return;
	}
	if (fw_bytes_begin_tls(c->reader.bytes, c->reader.size)) {
		refuse_tls(c);
		return;
	}
	fw_bytes_quote(c->reader.bytes, c->reader.size, quoted);
	snprintf(own, sizeof(own), "it sent %s, so it is not a frag program", quoted);
	fail(c, -EPROTOTYPE, own);
}

/* Bytes of the peer, in clear, become messages. */
static void take_bytes(struct fw_connection *c, const uint8_t *bytes, size_t size)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message;
	const uint8_t *envelope;
	size_t envelope_size;
	int r = fw_reader_feed(&c->reader, bytes, size, fragi_now_ns());

	while (r >= 0 && !c->closing && !c->finishing) {
		r = fw_reader_next(&c->reader, &envelope, &envelope_size, &err);
		if (r <= 0)
			break;
		r = fw_decode(envelope, envelope_size, &message, &err);
		if (r == 0 || fragi_err_failure(&err) == FRAGI_FAILURE_PROTOCOL)
			c->understood = true;
		if (r == 0)
			c->ops->message(c, message, c->arg);
	}
	if (r < 0)
		fail_by_bytes(c, r, err.text[0] != '\0' ? err.text : frag_strerror(r));
	else
		watch(c);
}

/* Sends what TLS has to say. Returns 0 or negative errno. */
static int put_output(struct fw_connection *c)
{
	uint8_t *bytes;
	ssize_t size = c->options.tls->ops->output(c->session, &bytes);

	return size > 0 ? put_bytes(c, bytes, (size_t)size) : (int)size;
}

static void become_ready(struct fw_connection *c)
{
	c->ready = true;
	if (c->ops->ready != NULL)
		c->ops->ready(c, c->arg);
}

/* What TLS makes of what has come: the handshake advances, frames are handed on in clear. */
static void advance_tls(struct fw_connection *c)
{
	const struct fw_tls_ops *tls = c->options.tls->ops;
	struct frag_err err = FRAG_ERR_INIT;
	uint8_t clear[READ_BYTES];
	ssize_t count;
	int r;

	do {
		count = tls->read(c->session, clear, sizeof(clear), &err);
		if (count >= 0 && !c->ready && tls->identity(c->session) != NULL)
			become_ready(c);
		if (count > 0 && !c->closing && !c->finishing)
			take_bytes(c, clear, (size_t)count);
	} while (count > 0 && !c->closing && !c->finishing);
	explicit_bzero(clear, sizeof(clear));
	r = c->closing ? 0 : put_output(c);
	if (r < 0)
		fail(c, r, frag_strerror(r));
	else if (count == -ESHUTDOWN)
		fail(c, 0, err.text);
	else if (count < 0)
		refuse(c, (int)count, err.text);
}

/* Bytes of the peer, as the stream has them. */
static void take_sealed(struct fw_connection *c, const uint8_t *bytes, size_t size)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = c->options.tls->ops->take(c->session, bytes, size, &err);

	if (r == 0) {
		advance_tls(c);
		return;
	}
	(void)put_output(c);
	refuse(c, r, err.text);
}

/* The stream has ended; under TLS its end is marked, so this is a cut. */
static void take_end(struct fw_connection *c)
{
	if (c->session == NULL)
		fail(c, 0, "the peer closed the connection");
	else if (c->ready)
		fail(c, -ECONNRESET, "the connection was cut");
	else
		fail(c, -ECONNRESET, "it closed the connection during the TLS handshake");
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
	struct fw_connection *c = stream->data;

	if (count == 0 || c->closing)
		return;
	if (count > 0 && c->finishing)
		return;
	if (count > 0 && c->session != NULL)
		take_sealed(c, (const uint8_t *)buffer->base, (size_t)count);
	else if (count > 0)
		take_bytes(c, (const uint8_t *)buffer->base, (size_t)count);
	else if (c->finishing)
		fail(c, -ECANCELED, "closed");
	else if (count == UV_EOF)
		take_end(c);
	else
		fail(c, (int)count, frag_strerror((int)count));
}

static void on_written(uv_write_t *write, int status)
{
	struct send_request *request = (struct send_request *)write;
	struct fw_connection *c = request->connection;

	free_frame(request->frame, request->size);
	fragi_free(request);
	/*
	 * A peer that has closed may have said why: that is read first, and the end of file follows
	 * it.
	 */
	if (status < 0 && status != UV_ECANCELED && status != UV_EPIPE)
		fail(c, status, frag_strerror(status));
}

/* Bytes to the stream; takes them. */
static int put_bytes(struct fw_connection *c, uint8_t *frame, size_t size)
{
	struct send_request *request = fragi_malloc(sizeof(*request));
	uv_buf_t buffer = uv_buf_init((char *)frame, (unsigned int)size);
	int r;

	if (request == NULL) {
		free_frame(frame, size);
		return -ENOMEM;
	}
	request->connection = c;
	request->frame = frame;
	request->size = size;
	r = uv_write(&request->write, &c->stream.stream, &buffer, 1, on_written);
	if (r < 0) {
		free_frame(frame, size);
		fragi_free(request);
	}
	return r;
}

/* One frame, in clear, to the peer; takes it. */
static int put_sealed(struct fw_connection *c, uint8_t *frame, size_t size)
{
	int r = c->options.tls->ops->write(c->session, frame, size);

	free_frame(frame, size);
	return r == 0 ? put_output(c) : r;
}

int fw_connection_send(struct fw_connection *c, uint8_t *frame, size_t size)
{
	int r;

	assert(c->ready || c->closing);
	if (c->closing || c->finishing) {
		free_frame(frame, size);
		return -EPIPE;
	}
	if (size > c->options.queue_bytes ||
	    fw_connection_queued(c) > c->options.queue_bytes - size) {
		free_frame(frame, size);
		fail(c, -ENOBUFS, "the peer does not read what is sent to it");
		return -ENOBUFS;
	}
	r = c->session != NULL ? put_sealed(c, frame, size) : put_bytes(c, frame, size);
	if (r < 0)
		fail(c, r, frag_strerror(r));
	return r;
}

int fw_connection_create(uv_loop_t *loop, enum fw_stream_kind kind,
			 const struct fw_connection_ops *ops, void *arg,
			 const struct fw_connection_options *options,
			 struct fw_connection **out_connection)
{
	struct fw_connection *c = fragi_calloc(1, sizeof(*c));
	int r;

	if (c == NULL)
		return -ENOMEM;
	r = kind == FW_STREAM_TCP ? uv_tcp_init(loop, &c->stream.tcp)
				  : uv_pipe_init(loop, &c->stream.pipe, 0);
	if (r < 0) {
		fragi_free(c);
		return r;
	}
	uv_timer_init(loop, &c->timer);
	c->stream.handle.data = c->timer.data = c;
	c->handles = 2;
	c->ops = ops;
	c->arg = arg;
	if (options != NULL)
		c->options = *options;
	c->options.admit_ns = c->options.admit_ns ?: ADMIT_NS_DEFAULT;
	c->options.frame_ns = c->options.frame_ns ?: FRAME_NS_DEFAULT;
	c->options.queue_bytes = c->options.queue_bytes ?: QUEUE_BYTES_DEFAULT;
	strcpy(c->peer, "?");
	fw_reader_init(&c->reader, FW_HELLO_MAX);
	*out_connection = c;
	return 0;
}

uv_stream_t *fw_connection_stream(struct fw_connection *c)
{
	return &c->stream.stream;
}

/* Its process may not take part: a peer that waits for an answer hears why. */
static void refuse_user(struct fw_connection *c, const char *sentence)
{
	struct fw_message message = {
		.kind = FW_REFUSED,
		.seq = 1,
		.refused.failure = {.code = FRAGI_FAILURE_USER_REFUSED, .sentence = sentence}};
	uint8_t *frame;
	size_t size;

	if (!c->options.is_accepted || fw_encode(&message, &frame, &size) < 0)
		fail(c, -EACCES, sentence);
	else if (put_bytes(c, frame, size) == 0)
		refuse(c, -EACCES, sentence);
	else
		fail(c, -EACCES, sentence);
}

/* Asks for the user until the peer has accepted the connection. */
static void prove_user(struct fw_connection *c)
{
	struct frag_err err = FRAG_ERR_INIT;
	int fd, r = uv_fileno(&c->stream.handle, &fd);

	if (r == 0)
		r = fw_users_judge(c->options.users, fd, c->options.is_accepted, &c->user, &err);
	if (r == -EAGAIN) {
		c->ask_after_ns = c->ask_after_ns == 0 ? ASK_NS : 2 * c->ask_after_ns;
		c->ask_at_ns = fragi_now_ns() + c->ask_after_ns;
		watch(c);
		return;
	}
	c->ask_at_ns = 0;
	c->has_user = r > 0;
	if (r >= 0 || r == -EACCES) {
		int started = uv_read_start(&c->stream.stream, on_alloc, on_read);

		r = started < 0 ? started : r;
	}
	watch(c);
	if (r >= 0)
		become_ready(c);
	else if (r == -EACCES)
		refuse_user(c, err.text);
	else
		fail(c, r, err.text[0] != '\0' ? err.text : frag_strerror(r));
}

int fw_connection_start(struct fw_connection *c)
{
	struct fw_tls *tls = c->options.tls;
	int r;

	if (c->closing)
		return -EPIPE;
	r = tls != NULL ? tls->ops->begin(tls, &c->session) : 0;
	if (r < 0)
		return r;
	if (c->stream.handle.type == UV_TCP) {
		fw_peer_name(&c->stream.tcp, c->peer);
		uv_tcp_nodelay(&c->stream.tcp, 1);
	} else {
		fw_process_name(&c->stream.pipe, c->peer);
	}
	c->admit_until_ns = fragi_now_ns() + c->options.admit_ns;
	if (tls == NULL && c->options.users != NULL) {
		prove_user(c);
		return 0;
	}
	r = uv_read_start(&c->stream.stream, on_alloc, on_read);
	if (r < 0)
		return r;
	watch(c);
	if (c->session != NULL)
		advance_tls(c);
	else
		become_ready(c);
	return 0;
}

void fw_connection_admit(struct fw_connection *c)
{
	c->admit_until_ns = 0;
	c->reader.limit = FW_FRAME_MAX;
	watch(c);
}

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
	struct fw_connection *c = shutdown->data;

	if (status < 0)
		fail(c, -ECANCELED, "closed");
}

void fw_connection_finish(struct fw_connection *c)
{
	if (c->closing || c->finishing)
		return;
	c->finishing = true;
	c->finish_until_ns = fragi_now_ns() + FINISH_NS;
	if (c->session != NULL) {
		c->options.tls->ops->finish(c->session);
		(void)put_output(c);
	}
	c->shutdown.data = c;
	if (uv_shutdown(&c->shutdown, &c->stream.stream, on_shutdown) < 0) {
		fail(c, -ECANCELED, "closed");
		return;
	}
	watch(c);
}

void fw_connection_fail(struct fw_connection *c, int reason, const char *sentence)
{
	fail(c, reason, sentence);
}

void fw_connection_close(struct fw_connection *c)
{
	fail(c, -ECANCELED, "closed");
}

const char *fw_connection_peer(const struct fw_connection *c)
{
	return c->peer;
}

bool fw_connection_user(const struct fw_connection *c, uid_t *out_user)
{
	if (c->has_user)
		*out_user = c->user;
	return c->has_user;
}

const struct fw_identity *fw_connection_identity(const struct fw_connection *c)
{
	return c->session != NULL ? c->options.tls->ops->identity(c->session) : NULL;
}

size_t fw_connection_queued(const struct fw_connection *c)
{
	return uv_stream_get_write_queue_size(&c->stream.stream);
}

bool fw_connection_has_room(const struct fw_connection *c, size_t most)
{
	int fd, waiting;

	return uv_fileno(&c->stream.handle, &fd) == 0 && ioctl(fd, SIOCOUTQ, &waiting) == 0 &&
	       fw_connection_queued(c) + (size_t)waiting <= most;
}
