// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <frag/draft.h>
#include <frag/status.h>

#include "../folders.h"
#include "encoder.h"
#include "gpu.h"
#include "names.h"
#include "pipe.h"
#include "video.h"

#define NS 1000000000LL
#define CLOCK_SET_NS (24 * 3600 * NS) /* no two frames are so far apart: a clock was set */
#define UNSTAMPED UINT32_MAX          /* in place of a clock: when the message was emitted */
/* With a limit of disk a file ends at a quarter of it, when a third is free of others. */
#define LIMIT_SIZE 4
#define LIMIT_FREE 3

struct recorder {
	const char *path, *directory, *basename;
	const char *codec;
	double frame_rate;
	const char *in_tensor_name;
	bool overwrite;
	int64_t flush, segment_time;
	uint64_t segment_size, disk_limit;

	char pattern[PATH_MAX], file[PATH_MAX]; /* of all files; the present, or the last one */
	struct video_encoder *encoder;          /* NULL: no file is open */
	struct video_name name;                 /* of the present, or the last file */
	int64_t recorded;
	uint32_t files;
	bool goes_on; /* this run has recorded before */

	uint32_t clock;           /* of the stamps */
	int64_t zero_ns, last_ns; /* the stamp at which the recording begins; the time in it */
	int64_t begun_ns;         /* the time in the recording at which the file begins */
	bool has_begun;
};

/* What outlives the process, so that the next one does not begin anew. */
struct kept {
	uint32_t number, run;
};

enum { INPUT };
static const struct frag_port recorder_ports[] = {
	[INPUT] = {.name = "input",
		   .dir = FRAG_IN,
		   .type = "tensor",
		   .headline = "frames of u8, with codec ffv1 also of u16: gray, RGB or RGBA"},
};

static const char *const codec_choices[] = {"auto", "h264", "h264_nvenc", "mpeg4", "ffv1", NULL};

static const struct frag_param recorder_params[] = {
	FRAG_PARAM_PATH(
		struct recorder, path, NULL,
		.headline = "Video file; its ending says what kind; or directory and basename",
		.description =
			"Its folders are made. %Y %m %d %H %M %S are the time at which the file begins, %n is its number, %r that of the run, %% is a percent sign. A file that is there stays, and the next one gets a number, clip-2.mp4, unless overwrite says otherwise.",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_PATH(struct recorder, directory, NULL, .headline = "Folder of the video file",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING(
		struct recorder, basename, NULL,
		.headline =
			"Name of the video file in directory, without an ending (.mp4; .mkv for ffv1)",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING(
		struct recorder, codec, "auto", .headline = "How the video is encoded",
		.description =
			"h264 (libx264), h264_nvenc (a GPU of NVIDIA that has an encoder), mpeg4, ffv1 (without loss); auto: h264, or mpeg4 where FFmpeg has no libx264",
		.choices = codec_choices),
	FRAG_PARAM_F64(
		struct recorder, frame_rate, 0.0,
		.headline = "Frames a second; 0: each frame at its time",
		.description =
			"The time is that of acquisition where messages have one, else that at which the message was emitted.",
		.min = 0.0, .max = 10000.0),
	FRAG_PARAM_STRING(
		struct recorder, in_tensor_name, "",
		.headline = "Tensor of the frame; empty: the one without a name, else the first"),
	FRAG_PARAM_BOOL(
		struct recorder, overwrite, false,
		.headline = "Whether a file of an earlier run is replaced",
		.description =
			"Files of the same run never are, also when the operator is started again."),
	FRAG_PARAM_DURATION(struct recorder, flush, NS,
			    .headline = "At most so much is lost when the power fails",
			    .description = "So often a piece of the file is written to the disk.",
			    .min = 1e6, .max = 3600e9),
	FRAG_PARAM_DURATION(
		struct recorder, segment_time, 0,
		.headline = "Begin a new file after so long; 0: never",
		.description =
			"Of the recording's own time. Without a field, the name gets -%n before its ending.",
		.min = 0, .max = 9e18),
	FRAG_PARAM_SIZE(struct recorder, segment_size, 0,
			.headline = "Begin a new file after so many bytes; 0: never", .min = 0,
			.max = 9e18),
	FRAG_PARAM_SIZE(
		struct recorder, disk_limit, 0,
		.headline = "All files of this name together, in bytes; 0: no limit",
		.description =
			"The oldest are removed, also those of earlier runs. A file gets a quarter of it at most.",
		.min = 0, .max = 9e18),
};

static bool has_segments(const struct recorder *rc)
{
	return rc->segment_time > 0 || rc->segment_size > 0 || rc->disk_limit > 0;
}

static int recorder_setup(void *state, struct frag_op *op)
{
	struct recorder *rc = state;
	const char *folder = rc->directory != NULL ? rc->directory : ".";
	char *pattern = rc->pattern;
	struct frag_err err = FRAG_ERR_INIT;
	int length, r;

	if (rc->path != NULL && rc->path[0] != '\0')
		length = snprintf(pattern, sizeof(rc->pattern), "%s", rc->path);
	else if (rc->basename != NULL && rc->basename[0] != '\0')
		length = snprintf(pattern, sizeof(rc->pattern), "%s/%s.%s", folder, rc->basename,
				  strcmp(rc->codec, "ffv1") == 0 ? "mkv" : "mp4");
	else
		return frag_op_fail(op, -EINVAL,
				    "no video file is named; give path, or directory and basename");
	if ((size_t)length >= sizeof(rc->pattern))
		return frag_op_fail(op, -ENAMETOOLONG,
				    "the name of the video file is too long; shorten it");
	if (frame_check_path(op, pattern) < 0)
		return -EINVAL;
	r = video_names_check(pattern, &err);
	if (r == 0)
		r = video_encoder_check(rc->codec, pattern, &err);
	if (r < 0)
		return frag_op_fail(op, r, "%s", err.text);
	if (has_segments(rc) && !video_names_have(pattern, 'n') &&
	    !video_names_have(pattern, 'S')) {
		char *ending = strrchr(pattern, '.');

		memmove(ending + 3, ending, strlen(ending) + 1);
		memcpy(ending, "-%n", 3);
	}
	return 0;
}

static int recorder_initialize(void *state, struct frag_op *op)
{
	const struct recorder *rc = state;
	struct frag_err err = FRAG_ERR_INIT;
	int r = video_encoder_is_of_gpu(rc->codec) ? video_gpu_find_encoder(&err) : 0;

	return r < 0 ? frag_op_fail(op, r, "%s", err.text) : 0;
}

/* What the files of earlier runs, and of this one, are. */
struct seen {
	const struct recorder *rc;
	uint32_t number, run; /* the highest */
	uint64_t bytes;       /* of all but the present one */
	char oldest[PATH_MAX];
	struct timespec oldest_time;
};

static void see(void *arg, const char *path, const struct video_name *name,
		const struct stat *status)
{
	struct seen *seen = arg;
	const struct timespec *time = &status->st_mtim;

	if (name->number > seen->number)
		seen->number = name->number;
	if (name->run > seen->run)
		seen->run = name->run;
	if (seen->rc->encoder != NULL && strcmp(path, seen->rc->file) == 0)
		return;
	seen->bytes += (uint64_t)status->st_size;
	if (seen->oldest[0] == '\0' || time->tv_sec < seen->oldest_time.tv_sec ||
	    (time->tv_sec == seen->oldest_time.tv_sec &&
	     (time->tv_nsec < seen->oldest_time.tv_nsec ||
	      (time->tv_nsec == seen->oldest_time.tv_nsec && strcmp(path, seen->oldest) < 0)))) {
		snprintf(seen->oldest, sizeof(seen->oldest), "%s", path);
		seen->oldest_time = *time;
	}
}

/* Removes the oldest files until those that are left keep to the limit. */
static int keep_to_limit(struct recorder *rc, struct frag_op *op, uint64_t present_bytes)
{
	for (;;) {
		struct seen seen = {.rc = rc};
		int r = video_names_look(rc->pattern, see, &seen);

		if (r == 0 && seen.bytes + present_bytes > rc->disk_limit && seen.bytes > 0) {
			r = unlink(seen.oldest) < 0 && errno != ENOENT ? -errno : 0;
			if (r == 0) {
				frag_op_count(op, FRAG_OP_REMOVED, 1);
				frag_op_log(op, "removed %s to keep within disk_limit",
					    seen.oldest);
				continue;
			}
		}
		return r < 0 ? frag_op_fail(
				       op, r,
				       "cannot remove %s to keep within disk_limit: %s; check its folder",
				       seen.oldest, frag_strerror(r))
			     : 0;
	}
}

/* Chooses the numbers of the next file: after those that are there. */
static int number_file(struct recorder *rc)
{
	bool has_number = video_names_have(rc->pattern, 'n'),
	     has_run = video_names_have(rc->pattern, 'r'), begins = rc->files == 0 && !rc->goes_on;
	struct seen seen = {.rc = rc};
	int r = 0;

	if (begins && (has_number || has_run))
		r = video_names_look(rc->pattern, see, &seen);
	if (begins) {
		rc->name.run = seen.run + 1;
		rc->name.number = rc->overwrite || has_run ? 0 : seen.number;
	}
	rc->name.number++;
	rc->name.begun = time(NULL);
	return r;
}

/*
 * Opens what is to be written: a new file, unless an old one may be replaced or is no file. Returns
 * its descriptor; -ECANCELED: nobody reads the pipe, and the application is to stop.
 */
static int create_file(struct recorder *rc, int stop_fd)
{
	char path[PATH_MAX];
	struct stat status;
	bool replaces;
	FILE *file;
	int r = video_names_make(rc->pattern, &rc->name, path);

	if (r < 0)
		return r;
	replaces = rc->overwrite && !rc->goes_on && strcmp(path, rc->file) != 0;
	memcpy(rc->file, path, sizeof(path));
	if (video_pipe_is(path))
		return video_pipe_open_output(path, stop_fd);
	if (!replaces && (stat(path, &status) < 0 || S_ISREG(status.st_mode)))
		return video_names_create(rc->pattern, &rc->name, rc->file);
	r = folders_make(path);
	if (r == 0)
		r = frag_output_open(path, &file);
	if (r < 0)
		return r;
	r = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
	fclose(file);
	return r >= 0 ? r : -errno;
}

static int open_file(struct recorder *rc, struct frag_tick *tick, const struct frame *frame)
{
	struct frag_op *op = frag_tick_op(tick);
	struct frag_err err = FRAG_ERR_INIT;
	struct video_encoder_config config = {.path = rc->file,
					      .codec = rc->codec,
					      .frame_rate = rc->frame_rate,
					      .is_fixed = rc->frame_rate > 0.0,
					      .flush_ns = rc->flush,
					      .stop_fd = frag_op_stop_fd(op)};
	struct stat status;
	int r = number_file(rc);

	if (r == 0 && rc->disk_limit > 0)
		r = keep_to_limit(rc, op, rc->disk_limit / LIMIT_FREE);
	if (r == 0)
		r = config.fd = create_file(rc, config.stop_fd);
	if (r == -ECANCELED)
		return r;
	if (r < 0)
		return frag_op_fail(
			op, r,
			"cannot create the video %s: %s; check path or directory, and the space on its disk",
			rc->file, frag_strerror(r));
	if (!config.is_fixed && (frag_metadata_get_f64(frag_tick_metadata(tick), "frame_rate",
						       &config.frame_rate) < 0 ||
				 !(config.frame_rate > 0.0 && config.frame_rate <= 10000.0)))
		config.frame_rate = 30.0;
	if (frag_metadata_get_f64(frag_tick_metadata(tick), "sample_aspect_ratio", &config.aspect) <
		    0 ||
	    !(config.aspect > 1e-2 && config.aspect < 1e2))
		config.aspect = 0.0;
	r = video_encoder_open(&config, frame, &rc->encoder, &err);
	if (r < 0) {
		if (lstat(rc->file, &status) == 0 && S_ISREG(status.st_mode))
			unlink(rc->file); /* there is nothing in it */
		return frag_op_fail(op, r, "%s", err.text);
	}
	rc->files++;
	return 0;
}

static int close_file(struct recorder *rc, struct frag_op *op)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = video_encoder_close(rc->encoder, &err);

	rc->encoder = NULL;
	return r < 0 ? frag_op_fail(op, r, "%s", err.text) : 0;
}

/*
 * The time in the recording of a message: by its stamps, which must be of one clock and grow. Where
 * they change or go back, the recording goes on at its last frame.
 */
static void advance(struct recorder *rc, const struct frag_message *message, int64_t emitted_ns)
{
	uint32_t clock = UNSTAMPED;
	int64_t stamp_ns = emitted_ns, passed_ns;

	frag_message_acquisition(message, &stamp_ns, &clock);
	passed_ns = stamp_ns - rc->zero_ns - rc->last_ns;
	if (!rc->has_begun || clock != rc->clock || passed_ns < 0 || passed_ns > CLOCK_SET_NS) {
		rc->clock = clock;
		rc->zero_ns = stamp_ns - rc->last_ns;
	}
	rc->has_begun = true;
	rc->last_ns = stamp_ns - rc->zero_ns;
}

/* Whether the file has what it may hold, before the next frame. */
static bool is_full(const struct recorder *rc)
{
	uint64_t bytes = video_encoder_bytes(rc->encoder);

	return (rc->segment_time > 0 && rc->last_ns - rc->begun_ns >= rc->segment_time) ||
	       (rc->segment_size > 0 && bytes >= rc->segment_size) ||
	       (rc->disk_limit > 0 && bytes >= rc->disk_limit / LIMIT_SIZE);
}

static int recorder_compute(void *state, struct frag_tick *tick)
{
	struct recorder *rc = state;
	struct frag_op *op = frag_tick_op(tick);
	struct frag_err err = FRAG_ERR_INIT;
	const struct frag_message *message;
	struct frag_tensor *tensor;
	struct frame frame = {0};
	int64_t emitted_ns = frag_tick_emitted_ns(tick, INPUT);
	int r = frag_tick_receive(tick, INPUT, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	r = frame_receive_by(op, message, rc->in_tensor_name,
			     strcmp(rc->codec, "ffv1") == 0 ? frame_deep_from_tensor
							    : frame_from_tensor,
			     &tensor, &frame);
	if (r < 0)
		return r;
	if (frame.is_float)
		return frag_op_fail(
			op, -EINVAL,
			"the frame has f32 elements; convert it with format_converter to out_dtype rgb888 before");
	advance(rc, message, emitted_ns);
	if (rc->encoder != NULL && is_full(rc))
		r = close_file(rc, op);
	if (r == 0 && rc->encoder == NULL) {
		rc->begun_ns = rc->last_ns;
		r = open_file(rc, tick, &frame);
	}
	if (r == -ECANCELED)
		return FRAG_DONE;
	if (r < 0)
		return r;
	r = video_encoder_add(rc->encoder, &frame, rc->last_ns - rc->begun_ns, &err);
	if (r < 0)
		return frag_op_fail(op, r, "%s", err.text);
	rc->recorded++;
	return 0;
}

static int recorder_stop(void *state, struct frag_op *op)
{
	struct recorder *rc = state;
	int r;

	if (rc->files == 0 && rc->has_begun) {
		frag_op_log(op, "nothing was recorded in %s", rc->file);
		return 0;
	}
	if (rc->files == 0) {
		frag_op_log(op, "no frame came: %s was not written", rc->pattern);
		return 0;
	}
	r = close_file(rc, op);
	if (r < 0)
		return r;
	if (rc->files > 1)
		frag_op_log(op, "recorded %lld frames in %u files, the last one %s",
			    (long long)rc->recorded, rc->files, rc->file);
	else
		frag_op_log(op, "recorded %lld frames in %s", (long long)rc->recorded, rc->file);
	return 0;
}

static void recorder_fini(void *state, struct frag_op *op)
{
	struct recorder *rc = state;

	(void)op;
	video_encoder_close(rc->encoder, NULL);
}

static int recorder_save(void *state, struct frag_op *op, void *out_bytes, size_t size)
{
	const struct recorder *rc = state;
	const struct kept kept = {.number = rc->name.number, .run = rc->name.run};

	(void)op;
	(void)size;
	memcpy(out_bytes, &kept, sizeof(kept));
	return sizeof(kept);
}

static int recorder_restore(void *state, struct frag_op *op, const void *bytes, size_t size)
{
	struct recorder *rc = state;
	struct kept kept;

	(void)op;
	if (size != sizeof(kept))
		return -EINVAL;
	memcpy(&kept, bytes, sizeof(kept));
	rc->name.number = kept.number;
	rc->name.run = kept.run;
	rc->goes_on = kept.number > 0;
	return 0;
}

const struct frag_op_type video_recorder_type = {
	FRAG_OP_TYPE_INIT,
	.name = "video_recorder",
	.headline = "Records frames as a video file",
	.description =
		"Exactly one frame of the video a message. The file is written in pieces, so it can be played up to its last second whatever happens, and is finished when the operator stops, also after a failure.",
	.state_size = sizeof(struct recorder),
	FRAG_PORTS(recorder_ports),
	FRAG_PARAMS(recorder_params),
	.setup = recorder_setup,
	.initialize = recorder_initialize,
	.compute = recorder_compute,
	.stop = recorder_stop,
	.fini = recorder_fini,
	.save = recorder_save,
	.restore = recorder_restore,
	.save_size = sizeof(struct kept),
};
