// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../held_back.h"
#include "av_error.h"
#include "decoder.h"
#include "frames.h"
#include "live.h"
#include "pipe.h"
#include "sender.h"
#include "url.h"
#include "video.h"

#define NS 1000000000LL
#define RETRY_NS 200000000 /* between two attempts to connect to a stream */

struct replayer {
	const char *path, *directory, *basename, *formats, *url, *transport, *latency, *acquisition;
	int64_t connect_timeout, read_timeout, reconnect;
	double frame_rate;
	bool realtime, repeat, ignore_corrupted_entities, auto_rotate;
	int64_t count, decoder_threads;
	const char *tensor_name, *decoder, *format;
	struct frag_resource *pool, *allocator;

	char file[PATH_MAX], shown[VIDEO_URL_SHOWN];
	struct video_decoder *source;
	struct video_live *live; /* reads the source; NULL: nothing does ahead */
	AVFrame *now, *next;     /* the frame to emit, and the next one, to know the end in time */
	int64_t now_pts_ns;      /* when `now` is shown, after the first frame */
	int64_t lap_ns;          /* added to the file's times: grows each time the file repeats */
	double rate;             /* frames per second */
	struct video_frames frames;
	int64_t emitted, skipped, reconnected;
	int64_t left_out, late;     /* frames and packets, with latency low */
	const char *transport_used; /* what worked last */
	int64_t asked_ns;           /* by CLOCK_MONOTONIC: when the source was opened first */
	bool has_begun;             /* `now` is a frame */
	bool sender_refused;        /* and that is logged */
	struct held_back held_back;
	bool started;
	int64_t start_ns; /* when the first frame was due, by the fragment's clock */
};

enum { OUTPUT };
static const struct frag_port replayer_ports[] = {
	[OUTPUT] = {.name = "output",
		    .dir = FRAG_OUT,
		    .type = "tensor",
		    .headline = "a frame: [rows, columns, 3] u8, RGB; or as format says"},
};

static const char *const transports[] = {"auto", "udp", "tcp", NULL};
static const char *const acquisitions[] = {"media", "sender", NULL};
static const char *const latencies[] = {"normal", "low", NULL};

static const struct frag_param replayer_params[] = {
	FRAG_PARAM_PATH(struct replayer, path, NULL,
			.headline = "Video file; or directory and basename",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_PATH(struct replayer, directory, NULL, .headline = "Folder of the video file",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING(
		struct replayer, basename, NULL,
		.headline =
			"Name of the video file in directory; .mp4, .mkv, .mov, .avi or .webm may be left out",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING(
		struct replayer, formats, "",
		.headline = "Formats that may open other files and are played all the same",
		.description =
			"FFmpeg's names with commas between them, such as hls, concat or dash. Without, a file is one media file, and playlists are refused."),
	FRAG_PARAM_STRING(
		struct replayer, url, "",
		.headline = "Stream instead of a file: rtsp://, http://, https:// or udp://",
		.description = "What FFmpeg can read; redirects and playlists may name no file"),
	FRAG_PARAM_DURATION(struct replayer, connect_timeout, 5 * NS,
			    .headline = "A stream begins within this time", .min = 1e6,
			    .max = 3600e9),
	FRAG_PARAM_DURATION(struct replayer, read_timeout, 5 * NS,
			    .headline = "The next frame of a stream comes within this time",
			    .min = 1e6, .max = 3600e9),
	FRAG_PARAM_DURATION(
		struct replayer, reconnect, 300 * NS,
		.headline = "Connect again for so long when a stream is lost; 0: it is a failure",
		.description =
			"A stream that has not begun is tried again as long as connect_timeout lasts.",
		.min = 0, .max = 9e18),
	FRAG_PARAM_STRING(
		struct replayer, transport, "auto", .headline = "What carries the pictures of RTSP",
		.description =
			"udp, tcp; auto: TCP where nothing comes over UDP for a third of connect_timeout, 3 s at most, as behind a firewall",
		.choices = transports),
	FRAG_PARAM_STRING(
		struct replayer, latency, "normal",
		.headline = "low: always the newest frame of a stream",
		.description =
			"Frames that come while the receivers are busy are left out; when packets are late by more than half a second, all are skipped to the next key frame. Both are counted, in the log and in the metadata dropped (i64). Frames are sent at once, without regard to their times.",
		.choices = latencies),
	FRAG_PARAM_STRING(
		struct replayer, acquisition, "media",
		.headline = "Clock of the acquisition times: that of the media, or of the sender",
		.description =
			"sender: the Unix time that the RTCP reports of an RTSP camera state, which keeps its clock by NTP, PTP or GPS. Frames before the first report have no acquisition time, nor have those of a camera whose clock is further than 10 s from that of this machine; the log says so.",
		.choices = acquisitions),
	FRAG_PARAM_F64(struct replayer, frame_rate, 0.0,
		       .headline = "Frames a second; 0: as the file says", .min = 0.0,
		       .max = 10000.0),
	FRAG_PARAM_BOOL(struct replayer, realtime, true,
			.headline =
				"Each frame at its time; else as fast as the receivers take them"),
	FRAG_PARAM_BOOL(struct replayer, repeat, false,
			.headline = "Begin anew at the end of the file"),
	FRAG_PARAM_I64(struct replayer, count, 0, .headline = "Frames to play; 0: all", .min = 0,
		       .max = 9e15),
	FRAG_PARAM_BOOL(
		struct replayer, ignore_corrupted_entities, true,
		.headline = "Skip what cannot be decoded; else it is a failure",
		.description =
			"A file that is cut off is a failure too. Formats that may end anywhere (MPEG-TS and PS, Ogg, NUT, streams without a container) do not show that they are."),
	FRAG_PARAM_STRING(
		struct replayer, decoder, "auto", .headline = "What decodes: cpu or gpu",
		.description =
			"The GPU of the pool, where that has memory of a GPU only, and format is nv12 or p010. auto: the CPU where the GPU cannot, and frames are copied to it. The log reports which one it is.",
		.choices = video_decoders),
	FRAG_PARAM_I64(
		struct replayer, decoder_threads, 1,
		.headline = "Threads of the CPU that decode; 0: as many as the host may use",
		.description =
			"More threads decode a file faster than one core can. They work on some frames at once; thus two damaged pieces may count as one, and a damaged piece that is a failure may end the file some frames earlier. Frames of a stream or a named pipe are not delayed: there they share each picture, where it was encoded in slices.",
		.min = 0, .max = 64),
	FRAG_PARAM_STRING(
		struct replayer, format, "rgb8", .headline = "What frames are sent as",
		.description =
			"rgb8, gray8: u8; rgb16, gray16: u16, where white is 65535, whatever depth the file has; of YUV, and gray of a limited range, it is what FFmpeg makes of it, 65283 or less. native: gray, RGB, RGBA and Bayer patterns with the numbers of the file, as u8, u16 or f32; others as RGB or RGBA, of u16 where the file has more than 8 bits. The metadata pixel_format then holds FFmpeg's name of what is sent, such as gray10le or bayer_rggb8. nv12, p010: YUV with the numbers of the file, [rows * 3 / 2, columns, 1] of u8 or u16, for format_converter; it is not turned.",
		.choices = video_frame_formats),
	FRAG_PARAM_BOOL(
		struct replayer, auto_rotate, true,
		.headline = "Turn and mirror frames as the file says",
		.description =
			"Otherwise, and where it is no multiple of 90 degrees, the metadata has rotation (f64, degrees clockwise) and mirrored (bool: exchange left and right before)."),
	FRAG_PARAM_STRING(struct replayer, tensor_name, "",
			  .headline = "Name of the frame's tensor"),
	FRAG_PARAM_RESOURCE(struct replayer, pool, NULL, .headline = "Allocator of the frames",
			    .description = "With memory of a GPU only: frames are sent there",
			    .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_RESOURCE(struct replayer, allocator, NULL,
			    .headline = "The same, by Holoscan's name",
			    .flags = FRAG_PARAM_OPTIONAL),
};

static int pass_on(struct frag_op *op, int r, const struct frag_err *err)
{
	return r < 0 ? frag_op_fail(op, r, "%s", err->text) : r;
}

/* Finds the file that the parameters name, or checks the URL. */
static int find_file(struct replayer *rp, struct frag_op *op)
{
	static const char *const endings[] = {"", ".mp4", ".mkv", ".mov", ".avi", ".webm"};
	const char *folder = rp->directory != NULL ? rp->directory : ".";
	struct frag_err err = FRAG_ERR_INIT;
	const char *protocols;

	if (rp->url[0] != '\0' &&
	    (rp->path != NULL || rp->directory != NULL || rp->basename != NULL))
		return frag_op_fail(
			op, -EINVAL,
			"both url and a file are given; leave out url, or path, directory and basename");
	if (rp->url[0] != '\0')
		return pass_on(op, video_url_check(rp->url, &protocols, rp->shown, &err), &err);
	if (rp->path != NULL && rp->path[0] != '\0') {
		snprintf(rp->file, sizeof(rp->file), "%s", rp->path);
		if (access(rp->file, R_OK) == 0)
			return 0;
		if (video_url_in_path(rp->file, rp->shown))
			return frag_op_fail(
				op, -EINVAL,
				"%s is a stream and no file; give it as url in place of path",
				rp->shown);
		return frag_op_fail(op, -errno, "cannot read the video %s: %s; check path",
				    rp->file, frag_strerror(-errno));
	}
	if (rp->basename == NULL || rp->basename[0] == '\0')
		return frag_op_fail(op, -EINVAL,
				    "no video is named; give path, or directory and basename");
	for (size_t i = 0; i < FRAG_COUNT_OF(endings); i++) {
		snprintf(rp->file, sizeof(rp->file), "%s/%s%s", folder, rp->basename, endings[i]);
		if (access(rp->file, F_OK) == 0)
			return 0;
	}
	return frag_op_fail(
		op, -ENOENT,
		"no video %s in %s, also not as .mp4, .mkv, .mov, .avi or .webm; check directory and basename",
		rp->basename, folder);
}

static bool is_low(const struct replayer *rp)
{
	return rp->url[0] != '\0' && strcmp(rp->latency, "low") == 0;
}

static void close_source(struct replayer *rp)
{
	video_live_destroy(rp->live);
	rp->live = NULL;
	video_frames_settle(&rp->frames);
	if (rp->source != NULL)
		rp->late += video_decoder_late(rp->source);
	video_decoder_close(rp->source);
	rp->source = NULL;
}

static int open_source(struct replayer *rp, struct frag_op *op, struct frag_err *err)
{
	const struct video_how how = {
		.gpu = &rp->frames.gpu,
		.threads = (int)rp->decoder_threads,
	};
	const struct video_url url = {
		.text = rp->url,
		.connect_timeout_ns = rp->connect_timeout,
		.read_timeout_ns = rp->read_timeout,
		.stop_fd = frag_op_stop_fd(op),
		.transport = rp->transport_used != NULL ? rp->transport_used : rp->transport,
		.is_low = is_low(rp),
		.how = &how,
	};
	int r;

	close_source(rp);
	if (rp->url[0] == '\0')
		return video_decoder_open(rp->file, rp->formats, url.stop_fd, &how, &rp->source,
					  err);
	r = video_decoder_open_url(&url, &rp->source, err);
	if (r < 0)
		return r;
	if (video_decoder_fell_back(rp->source)) {
		frag_op_log(
			op,
			"nothing came from %s over UDP, so TCP is used; transport: tcp does so at once",
			rp->shown);
		rp->transport_used = "tcp";
	}
	r = is_low(rp) ? video_live_create(rp->source, url.stop_fd, &rp->live) : 0;
	return r < 0 ? frag_err_set(err, r, "cannot start a thread for %s: %s", rp->shown,
				    frag_strerror(r))
		     : 0;
}

/* Opens the source if it is not open, and decodes the next frame. Returns as video_decoder_next. */
static int next_frame(struct replayer *rp, struct frag_op *op, AVFrame *frame, struct frag_err *err)
{
	int64_t *skipped = rp->ignore_corrupted_entities ? &rp->skipped : NULL;
	int r = rp->source != NULL ? 0 : open_source(rp, op, err);

	if (r < 0)
		return r;
	if (rp->live != NULL)
		return video_live_take(rp->live, frame, &rp->left_out, &rp->skipped, err);
	return video_decoder_next(rp->source, frame, skipped, err);
}

/* Begins to play the file: its times count from its first frame, which is shown at at_ns. */
static void begin_lap(struct replayer *rp, const AVFrame *first, int64_t at_ns)
{
	int64_t first_ns = video_decoder_time_ns(rp->source, first);

	rp->lap_ns = at_ns - (first_ns > 0 ? first_ns : 0);
}

/*
 * Connects to a stream that was lost, as *loss says, until a frame comes. One that has not begun
 * is tried as long as it has to begin. Returns as decode.
 */
static int connect_again(struct replayer *rp, struct frag_op *op, AVFrame *frame,
			 const struct frag_err *loss)
{
	struct pollfd stop = {.fd = frag_op_stop_fd(op), .events = POLLIN};
	const struct timespec pause = {.tv_nsec = RETRY_NS};
	const char *missed = rp->has_begun ? "then it did not come back" : "it did not begin";
	int64_t lost_ns = rp->has_begun ? held_back_now_ns() : rp->asked_ns;
	int64_t limit_ns = !rp->has_begun && rp->connect_timeout < rp->reconnect
				   ? rp->connect_timeout
				   : rp->reconnect;

	if (held_back_now_ns() - lost_ns >= limit_ns)
		return pass_on(op, loss->code, loss);
	frag_op_log(op, "%s; connects again", loss->text);
	for (;;) {
		struct frag_err err = FRAG_ERR_INIT;
		int r;

		close_source(rp);
		r = next_frame(rp, op, frame, &err);
		if (r > 0) {
			rp->reconnected++;
			frag_op_log(op, "%s plays%s after %.1f s", rp->shown,
				    rp->has_begun ? " again" : "",
				    (double)(held_back_now_ns() - lost_ns) / 1e9);
			return r;
		}
		if (r == -ECANCELED || ppoll(&stop, 1, &pause, NULL) > 0)
			return -ECANCELED;
		if (held_back_now_ns() - lost_ns >= limit_ns)
			return frag_op_fail(op, loss->code, "%s; %s within %.1f s", loss->text,
					    missed, (double)limit_ns / 1e9);
	}
}

/*
 * Decodes the next frame. Returns 1; 0: the end; -ECANCELED: the application is to stop; or a
 * failure that is worded in the operator.
 */
static int decode(struct replayer *rp, struct frag_op *op, AVFrame *frame)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = next_frame(rp, op, frame, &err);

	if (r == -ECANCELED)
		return r;
	if (r >= 0 || rp->url[0] == '\0' || rp->reconnect == 0)
		return pass_on(op, r, &err);
	return connect_again(rp, op, frame, &err);
}

/* Looks for the file and the GPU here, so that a missing one is reported before anything runs. */
static int replayer_initialize(void *state, struct frag_op *op)
{
	struct replayer *rp = state;
	int r = find_file(rp, op);

	if (r == 0)
		r = video_sender_check(op, rp->acquisition, rp->url);
	rp->frames = (struct video_frames){
		.decoder = rp->decoder,
		.format = rp->format,
		.auto_rotate = rp->auto_rotate,
		.pool = rp->pool != NULL ? rp->pool : rp->allocator,
	};
	return r < 0 ? r : video_frames_open(&rp->frames, op);
}

/* Decodes the first frame. Returns as decode, but a source without a frame is a failure. */
static int begin(struct replayer *rp, struct frag_op *op)
{
	int r;

	rp->asked_ns = held_back_now_ns();
	r = decode(rp, op, rp->now);
	if (r == 0)
		return frag_op_fail(op, -EBADMSG, "%s holds no frame; give another one",
				    rp->url[0] != '\0' ? rp->shown : rp->file);
	if (r < 0)
		return r;
	rp->rate = rp->frame_rate > 0.0 ? rp->frame_rate : video_decoder_frame_rate(rp->source);
	if (!(rp->rate > 0.0))
		rp->rate = 30.0;
	begin_lap(rp, rp->now, 0);
	rp->has_begun = true;
	return r;
}

/* A stream or pipe begins in the first tick, because a stop does not end a start that waits. */
static int replayer_start(void *state, struct frag_op *op)
{
	struct replayer *rp = state;
	int r;

	rp->now = av_frame_alloc();
	rp->next = av_frame_alloc();
	if (rp->now == NULL || rp->next == NULL)
		return -ENOMEM;
	r = rp->url[0] != '\0' || video_pipe_is(rp->file) ? 0 : begin(rp, op);
	return r < 0 && r != -ECANCELED ? r : 0;
}

/*
 * Returns when the frame after `now` is shown. Where the file's times do not grow, it is one period
 * of the frame rate later.
 */
static int64_t next_pts_ns(const struct replayer *rp, const AVFrame *frame)
{
	int64_t period = llrint(1e9 / rp->rate);
	int64_t frame_ns = video_decoder_time_ns(rp->source, frame);

	if (rp->frame_rate > 0.0)
		return llrint((double)(rp->emitted + 1) * 1e9 / rp->frame_rate);
	if (frame_ns < 0 || rp->lap_ns + frame_ns <= rp->now_pts_ns)
		return rp->now_pts_ns + period;
	return rp->lap_ns + frame_ns;
}

/* Decodes the frame after `now`. Returns 1; 0: `now` is the last one; or a negative errno. */
static int look_ahead(struct replayer *rp, struct frag_op *op, int64_t *out_pts_ns)
{
	int64_t reconnected = rp->reconnected;
	bool anew = false;
	int r;

	if (rp->count > 0 && rp->emitted + 1 >= rp->count)
		return 0;
	r = decode(rp, op, rp->next);
	if (r == 0 && rp->repeat) {
		close_source(rp);
		r = decode(rp, op, rp->next);
		anew = true;
	}
	if (r > 0 && (anew || rp->reconnected > reconnected))
		begin_lap(rp, rp->next, rp->now_pts_ns + llrint(1e9 / rp->rate));
	if (r > 0)
		*out_pts_ns = next_pts_ns(rp, rp->next);
	return r;
}

/* Sleeps until the frame is due. Returns 1 when the application is to stop, else 0. */
static int wait_until_due(struct replayer *rp, struct frag_tick *tick)
{
	struct frag_clock *clock = frag_op_clock(frag_tick_op(tick));

	if (!rp->started) {
		rp->start_ns = frag_tick_time_ns(tick);
		rp->started = true;
	}
	frag_clock_sleep_until(clock, rp->start_ns + rp->now_pts_ns);
	return frag_clock_timestamp(clock) < rp->start_ns + rp->now_pts_ns;
}

static int make_frame(struct replayer *rp, struct frag_op *op, struct frag_tensor **out)
{
	return video_frames_make(&rp->frames, op, rp->source, rp->now,
				 rp->url[0] != '\0' ? rp->shown : rp->file, out);
}

/* What is stated only where there is something to state. */
static int describe(const struct replayer *rp, struct frag_metadata *metadata)
{
	int r = video_frames_describe(&rp->frames, metadata);

	if (r == 0 && rp->url[0] != '\0')
		r = frag_metadata_set_i64(metadata, "live_ns", held_back_unix_now_ns());
	if (r == 0 && is_low(rp))
		r = frag_metadata_set_i64(metadata, "dropped", rp->left_out);
	return r;
}

static int emit_frame(struct replayer *rp, struct frag_tick *tick, struct frag_tensor *tensor)
{
	struct frag_metadata *metadata = frag_tick_metadata(tick);
	struct frag_message *message = frag_message_create();
	int r = message != NULL ? frag_message_add_tensor(message, rp->tensor_name, tensor)
				: -ENOMEM;

	if (message == NULL)
		frag_tensor_unref(tensor);
	if (r == 0)
		r = video_sender_is_wanted(rp->acquisition)
			    ? video_sender_stamp(rp->source, rp->now, frag_tick_op(tick), rp->shown,
						 &rp->sender_refused, message)
			    : frag_message_set_acquisition(message, rp->now_pts_ns,
							   FRAG_CLOCK_MEDIA);
	if (r == 0)
		r = frag_message_set_sequence(message, (uint64_t)rp->emitted);
	if (r == 0)
		r = frag_metadata_set_i64(metadata, "frame", rp->emitted);
	if (r == 0)
		r = frag_metadata_set_i64(metadata, "pts_ns", rp->now_pts_ns);
	if (r == 0)
		r = frag_metadata_set_f64(metadata, "frame_rate", rp->rate);
	if (r == 0)
		r = describe(rp, metadata);
	if (r < 0) {
		frag_message_unref(message);
		return frag_op_fail(frag_tick_op(tick), r, "cannot describe the frame: %s",
				    frag_strerror(r));
	}
	return frag_tick_emit(tick, OUTPUT, message);
}

/* Sends the newest frame of a stream. */
static int compute_low(struct replayer *rp, struct frag_tick *tick)
{
	struct frag_op *op = frag_tick_op(tick);
	int64_t reconnected = rp->reconnected;
	struct frag_tensor *tensor = NULL;
	int r = rp->has_begun ? decode(rp, op, rp->now) : begin(rp, op);

	if (r == 0 || r == -ECANCELED)
		return FRAG_DONE;
	if (r > 0 && rp->reconnected > reconnected)
		begin_lap(rp, rp->now, rp->now_pts_ns + llrint(1e9 / rp->rate));
	if (r > 0 && rp->emitted > 0)
		rp->now_pts_ns = next_pts_ns(rp, rp->now);
	if (r > 0)
		r = make_frame(rp, op, &tensor);
	if (r >= 0)
		r = emit_frame(rp, tick, tensor);
	if (r < 0)
		return r;
	rp->emitted++;
	return rp->count > 0 && rp->emitted >= rp->count ? FRAG_DONE : 0;
}

/* Decodes and converts before it waits, so that a frame is sent when it is due. */
static int replayer_compute(void *state, struct frag_tick *tick)
{
	struct replayer *rp = state;
	struct frag_op *op = frag_tick_op(tick);
	int64_t pts_ns = 0;
	struct frag_tensor *tensor = NULL;
	int more, r;

	if (is_low(rp))
		return compute_low(rp, tick);
	if (rp->url[0] != '\0')
		held_back_begin(&rp->held_back, op, rp->rate);
	r = rp->has_begun ? 0 : begin(rp, op);
	if (r == -ECANCELED)
		return FRAG_DONE;
	if (r >= 0)
		r = make_frame(rp, op, &tensor);
	if (r < 0)
		return r;
	more = look_ahead(rp, op, &pts_ns);
	if (more < 0) {
		frag_tensor_unref(tensor);
		return more == -ECANCELED ? FRAG_DONE : more;
	}
	if (rp->realtime && wait_until_due(rp, tick)) {
		frag_tensor_unref(tensor);
		return FRAG_DONE;
	}
	r = emit_frame(rp, tick, tensor);
	if (r < 0)
		return r;
	rp->emitted++;
	if (more == 0)
		return FRAG_DONE;
	AVFrame *shown = rp->now;

	rp->now = rp->next;
	rp->next = shown;
	rp->now_pts_ns = pts_ns;
	held_back_end(&rp->held_back);
	return 0;
}

static int replayer_stop(void *state, struct frag_op *op)
{
	struct replayer *rp = state;

	close_source(rp);
	if (is_low(rp))
		frag_op_log(
			op,
			"sent %lld frames of %s; left out %lld because newer ones were there, skipped %lld packets that were late",
			(long long)rp->emitted, rp->shown, (long long)rp->left_out,
			(long long)rp->late);
	frag_op_count(op, FRAG_OP_SKIPPED, (uint64_t)rp->skipped);
	if (rp->skipped > 0)
		frag_op_log(op, "skipped %lld damaged pieces of %s", (long long)rp->skipped,
			    rp->url[0] != '\0' ? rp->shown : rp->file);
	return 0;
}

static void replayer_fini(void *state, struct frag_op *op)
{
	struct replayer *rp = state;

	(void)op;
	av_frame_free(&rp->now);
	av_frame_free(&rp->next);
	close_source(rp);
	video_frames_close(&rp->frames);
}

const struct frag_op_type video_replayer_type = {
	FRAG_OP_TYPE_INIT,
	.name = "video_replayer",
	.headline = "Plays a video file",
	.description =
		"Or a stream, with url. One frame a tick, until it ends or count frames are played. Metadata: frame (i64), pts_ns (i64), frame_rate (f64), sample_aspect_ratio (f64, width of a pixel divided by its height) where the file states it, of a url live_ns (i64, Unix time at which it came), and with format native pixel_format (string). The acquisition time is pts_ns, on the media clock, or as acquisition says; the sequence is frame. In real time a late frame is sent at once; none is left out.",
	.state_size = sizeof(struct replayer),
	FRAG_PORTS(replayer_ports),
	FRAG_PARAMS(replayer_params),
	.initialize = replayer_initialize,
	.start = replayer_start,
	.compute = replayer_compute,
	.stop = replayer_stop,
	.fini = replayer_fini,
};
