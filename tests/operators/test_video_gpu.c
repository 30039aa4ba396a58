// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <frag/harness.h>

#include "../video/clip.h"
#include "cuda/fake_decoder.h"
#include "cuda/load.h"
#include "video/encoder.h"
#include "video/pixels.h"
#include "video/video.h"

/*
 * video_replayer with memory of a GPU, over the driver of tests and a decoder that makes patterns
 * of what FFmpeg gives it. make gpu-check compares the frames of a real GPU with those of the CPU.
 */
#define CPU ((struct frag_device){FRAG_DEVICE_CPU, 0})
#define FRAMES 12
#define COLUMNS 100 /* no multiples of 16, so the decoder's pictures are larger */
#define ROWS 68
#define NV12_BYTES (COLUMNS * ROWS * 3 / 2)

static char clip[200];

static void record(const char *codec, const char *ending, int columns, int rows)
{
	static uint8_t rgb[CLIP_BYTES];
	const char *tmp = getenv("TMPDIR");
	struct frame frame = {.data = rgb,
			      .rows = rows,
			      .columns = columns,
			      .channels = 3,
			      .row_bytes = (size_t)CLIP_COLUMNS * 3};
	struct video_encoder_config config = {.path = clip,
					      .codec = codec,
					      .frame_rate = CLIP_RATE,
					      .is_fixed = true,
					      .flush_ns = 1000000000};
	struct frag_err err = FRAG_ERR_INIT;
	struct video_encoder *e = NULL;

	snprintf(clip, sizeof(clip), "%s/frag-gpu-XXXXXX%s", tmp != NULL ? tmp : "/tmp", ending);
	config.fd = mkstemps(clip, (int)strlen(ending));
	cr_assert_geq(config.fd, 0);
	cr_assert_eq(video_encoder_open(&config, &frame, &e, &err), 0, "%s", err.text);
	for (int n = 0; n < FRAMES; n++) {
		clip_draw(rgb, n, 0);
		cr_assert_eq(video_encoder_add(e, &frame, 0, &err), 0, "%s", err.text);
	}
	cr_assert_eq(video_encoder_close(e, &err), 0, "%s", err.text);
}

static void setup(void)
{
	load_fake();
	record("auto", ".mp4", COLUMNS, ROWS);
}

static void teardown(void)
{
	unlink(clip);
}

TestSuite(ops_video_gpu, .init = setup, .fini = teardown);

static void load_decoder(void)
{
	cr_assert_not_null(dlopen(built("tests/cuda/libnvcuvid.so.1"), RTLD_NOW | RTLD_LOCAL), "%s",
			   dlerror());
}

static struct frag_harness *make(const char *decoder, const char *format, bool on_gpu,
				 struct frag_err *err)
{
	const struct frag_harness_resource pools[] = {
		{"pool", "block_memory_pool",
		 FRAG_ARGS({"storage_type", on_gpu ? "1" : "2"}, {"block_size", "100000"},
			   {"num_blocks", "4"})},
		{NULL, NULL, NULL}};

	return frag_harness_create_with(&video_replayer_type,
					FRAG_ARGS({"path", clip}, {"realtime", "false"},
						  {"decoder", decoder}, {"format", format},
						  {"pool", "$pool"}),
					pools, err);
}

/* The next frame, in memory of the host; NULL: there is none. */
static struct frag_tensor *next(struct frag_harness *h, bool on_gpu)
{
	struct frag_message *message = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *copy = NULL;

	cr_assert_geq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	if (frag_harness_take(h, "output", &message) != 0)
		return NULL;
	cr_expect_eq(frag_tensor_dl(frag_message_tensor(message, ""))->device.type,
		     on_gpu ? FRAG_DEVICE_CUDA : FRAG_DEVICE_CPU);
	cr_assert_eq(frag_tensor_copy(frag_message_tensor(message, ""), NULL, CPU, &copy, &err), 0,
		     "%s", err.text);
	frag_message_unref(message);
	return copy;
}

/* All frames are the same in both runs. */
static void same_as_cpu(const char *decoder, const char *format)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *there = make(decoder, format, true, &err);
	struct frag_harness *here = make("cpu", format, false, &err);

	cr_assert(there != NULL && here != NULL, "%s", err.text);
	for (int n = 0; n < FRAMES; n++) {
		struct frag_tensor *a = next(there, true), *b = next(here, false);

		cr_assert(a != NULL && b != NULL, "frame %d of %s", n, format);
		cr_assert_eq(frag_tensor_size_bytes(a), frag_tensor_size_bytes(b));
		cr_assert_arr_eq(frag_tensor_data(a), frag_tensor_data(b),
				 frag_tensor_size_bytes(a), "frame %d of %s", n, format);
		frag_tensor_unref(a);
		frag_tensor_unref(b);
	}
	frag_harness_destroy(there);
	frag_harness_destroy(here);
}

static void refused(const char *decoder, const char *format, bool on_gpu, const char *sentence)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = make(decoder, format, on_gpu, &err);
	const char *text = err.text;

	if (h != NULL) {
		cr_expect_lt(frag_harness_tick(h), 0);
		text = frag_harness_error(h);
	}
	cr_expect_not_null(strstr(text, sentence), "%s", text);
	frag_harness_destroy(h);
}

GPU_TEST(ops_video_gpu, frames_of_the_gpu_stay_there)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h;
	int changes = 0, before = -1;

	load_decoder();
	h = make("gpu", "nv12", true, &err);
	cr_assert_not_null(h, "%s", err.text);
	for (int n = 0; n < FRAMES; n++) {
		const int copies = fake.calls("cuMemcpyAsync");
		const int parts = fake.calls("cuMemcpy2DAsync_v2");
		struct frag_message *message = NULL;
		struct frag_tensor *frame = NULL;
		const uint8_t *at;
		uint8_t seed;

		cr_assert_geq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		cr_expect_eq(fake.calls("cuMemcpyAsync"), copies, "nothing is copied to the host");
		cr_expect_eq(fake.calls("cuMemcpy2DAsync_v2"), parts + 2);
		cr_assert_eq(frag_harness_take(h, "output", &message), 0);
		cr_assert_eq(frag_tensor_dl(frag_message_tensor(message, ""))->device.type,
			     FRAG_DEVICE_CUDA);
		cr_assert_eq(
			frag_tensor_copy(frag_message_tensor(message, ""), NULL, CPU, &frame, &err),
			0, "%s", err.text);
		frag_message_unref(message);
		cr_assert_eq(frag_tensor_size_bytes(frame), NV12_BYTES);
		cr_assert_eq(frag_tensor_dl(frame)->shape[0], ROWS * 3 / 2);
		at = frag_tensor_data(frame);
		seed = at[0];
		changes += before >= 0 && seed != before;
		before = seed;
		for (size_t y = 0; y < ROWS * 3 / 2; y++)
			for (size_t x = 0; x < COLUMNS; x++)
				cr_assert_eq(at[y * COLUMNS + x],
					     y < ROWS ? fake_decoder_luma(seed, x, y)
						      : fake_decoder_chroma(seed, x, y - ROWS),
					     "frame %d, row %zu, column %zu", n, y, x);
		frag_tensor_unref(frame);
	}
	cr_expect_geq(changes, FRAMES / 2, "the frames are of different pictures");
	frag_harness_destroy(h);
}

GPU_TEST(ops_video_gpu, auto_uses_the_gpu_where_it_decodes)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *frame;
	struct frag_harness *h;
	const uint8_t *at;

	load_decoder();
	h = make("auto", "nv12", true, &err);
	cr_assert_not_null(h, "%s", err.text);
	frame = next(h, true);
	at = frag_tensor_data(frame);
	cr_expect_eq(at[COLUMNS + 1], fake_decoder_luma(at[0], 1, 1));
	frag_tensor_unref(frame);
	frag_harness_destroy(h);
	same_as_cpu("cpu", "nv12");
}

/* How often these words are logged while the whole clip is played. */
static int times_logged(const char *words)
{
	int old = dup(2), file = memfd_create("log", 0), times = 0;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h;
	static char text[16384];
	ssize_t bytes;

	cr_assert(old >= 0 && file >= 0 && dup2(file, 2) == 2);
	h = make("auto", "nv12", true, &err);
	cr_assert_not_null(h, "%s", err.text);
	for (int n = 0; n < FRAMES; n++)
		frag_tensor_unref(next(h, true));
	frag_harness_destroy(h);
	dup2(old, 2);
	bytes = pread(file, text, sizeof(text) - 1, 0);
	text[bytes > 0 ? bytes : 0] = '\0';
	close(old);
	close(file);
	for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
		times++;
	return times;
}

GPU_TEST(ops_video_gpu, who_decodes_is_logged_once)
{
	load_decoder();
	cr_expect_eq(times_logged("GPU 0 decodes "), 1);
	cr_expect_eq(times_logged("the CPU decodes "), 0);
	setenv("FAKE_DECODER", "cuvidGetDecoderCaps", 1);
	cr_expect_eq(times_logged("the CPU decodes "), 1);
	cr_expect_eq(times_logged("GPU 0 decodes "), 0);
	unsetenv("FAKE_DECODER");
}

GPU_TEST(ops_video_gpu, where_the_gpu_takes_no_such_video_the_cpu_decodes)
{
	load_decoder();
	setenv("FAKE_DECODER", "cuvidGetDecoderCaps", 1);
	same_as_cpu("auto", "nv12");
	refused("gpu", "nv12", true, "GPU 0 cannot decode");
	refused("gpu", "nv12", true, "of yuv420p, 100 x 68; leave out decoder: gpu");
	setenv("FAKE_DECODER", "cuvidCreateDecoder", 1);
	same_as_cpu("auto", "nv12");
	unsetenv("FAKE_DECODER");
	/* its frames would be nv12 */
	same_as_cpu("auto", "p010");
	refused("gpu", "p010", true, "it does not make frames of this format of");
}

GPU_TEST(ops_video_gpu, without_the_drivers_decoder_the_cpu_decodes)
{
	if (dlopen("libnvcuvid.so.1", RTLD_NOW | RTLD_LOCAL) != NULL)
		cr_skip_test("the decoder of a real driver is here");
	same_as_cpu("auto", "nv12");
	refused("gpu", "nv12", true, "GPU 0 cannot decode: its driver has no decoder here");
	refused("gpu", "nv12", true, "NVIDIA_DRIVER_CAPABILITIES=video; leave out decoder: gpu");
}

GPU_TEST(ops_video_gpu, other_formats_are_sent_to_the_gpu)
{
	load_decoder();
	same_as_cpu("auto", "rgb8");
	same_as_cpu("cpu", "gray8");
	refused("gpu", "rgb8", true, "decoder is gpu, which makes frames of nv12 and p010");
	refused("gpu", "nv12", false, "the pool has no memory of a GPU; give it storage_type: 1");
}

/* An H.264 file may cut its pictures off on the left and above too. */
GPU_TEST(ops_video_gpu, pictures_are_cut_off_as_the_file_states)
{
	const int columns = COLUMNS - 8, rows = ROWS - 6;
	char whole[sizeof(clip)], command[3 * sizeof(clip)];
	const char *const decoders[] = {"cpu", "gpu"};
	struct frag_err err = FRAG_ERR_INIT;

	strcpy(whole, clip);
	strcpy(strrchr(clip, '.'), "-cut.mp4");
	snprintf(command, sizeof(command),
		 "ffmpeg -v error -i %s -c copy -bsf:v h264_metadata=crop_left=8:crop_top=6 %s",
		 whole, clip);
	cr_assert_eq(system(command), 0);
	unlink(whole);
	load_decoder();
	for (int i = 0; i < 2; i++) {
		struct frag_harness *h = make(decoders[i], "nv12", i == 1, &err);
		struct frag_tensor *frame;
		const uint8_t *at;

		cr_assert_not_null(h, "%s", err.text);
		frame = next(h, i == 1);
		cr_expect_eq(frag_tensor_dl(frame)->shape[0], rows * 3 / 2, "%s", decoders[i]);
		cr_expect_eq(frag_tensor_dl(frame)->shape[1], columns, "%s", decoders[i]);
		at = frag_tensor_data(frame);
		if (i == 1) {
			const uint8_t seed = (uint8_t)(at[0] - fake_decoder_luma(0, 8, 6));

			cr_expect_eq(at[columns + 1], fake_decoder_luma(seed, 9, 7));
			cr_expect_eq(at[columns * rows], fake_decoder_chroma(seed, 8, 3));
			cr_expect_eq(at[columns * (rows + 1) + 1], fake_decoder_chroma(seed, 9, 4));
		}
		frag_tensor_unref(frame);
		frag_harness_destroy(h);
	}
}

GPU_TEST(ops_video_gpu, sides_of_yuv_are_even)
{
	unlink(clip);
	record("ffv1", ".mkv", COLUMNS - 1, ROWS);
	refused("cpu", "nv12", false, "a frame of 99 x 68 cannot be of nv12");
	refused("auto", "p010", true, "a frame of 99 x 68 cannot be of p010");
	same_as_cpu("auto", "rgb8");
}

static AVFrame *yuv_frame(enum AVPixelFormat format)
{
	AVFrame *frame = av_frame_alloc();

	cr_assert_not_null(frame);
	frame->format = format;
	frame->width = 6;
	frame->height = 4;
	frame->color_range = AVCOL_RANGE_JPEG; /* whose numbers stay too */
	cr_assert_eq(av_frame_get_buffer(frame, 64), 0);
	for (int plane = 0; plane < 3; plane++)
		for (int y = 0; y < (plane == 0 ? 4 : 2); y++)
			for (int x = 0; x < (plane == 0 ? 6 : 3); x++) {
				const int value = 20 + plane * 80 + y * 11 + x;
				uint8_t *row = frame->data[plane] + y * frame->linesize[plane];

				if (format == AV_PIX_FMT_YUV420P)
					row[x] = (uint8_t)value;
				else
					((uint16_t *)(void *)row)[x] = (uint16_t)(value * 4 + 1);
			}
	return frame;
}

/* [y][x] of a picture of two planes is the number of the frame's planes */
static int expected(int y, int x)
{
	return y < 4 ? 20 + y * 11 + x : 20 + (1 + x % 2) * 80 + (y - 4) * 11 + x / 2;
}

Test(ops_video_gpu, numbers_of_yuv_stay)
{
	struct video_pixels pixels = {0};
	struct video_picture picture;
	uint16_t out[6][6];
	const uint8_t *bytes = (const uint8_t *)out;
	AVFrame *frame = yuv_frame(AV_PIX_FMT_YUV420P);

	video_picture_of(frame, "nv12", &(struct video_turn){.swaps = true}, &picture);
	cr_assert(picture.shape[0] == 6 && picture.shape[1] == 6 && picture.shape[2] == 1);
	cr_assert(picture.dtype.bits == 8 && !video_turn_is_needed(&picture.turn));
	cr_assert_eq(video_pixels_convert(&pixels, frame, &picture, (uint8_t *)out), 0);
	for (int y = 0; y < 6; y++)
		for (int x = 0; x < 6; x++)
			cr_expect_eq(bytes[y * 6 + x], expected(y, x), "row %d, column %d", y, x);
	av_frame_free(&frame);

	frame = yuv_frame(AV_PIX_FMT_YUV420P10);
	video_picture_of(frame, "p010", &(struct video_turn){0}, &picture);
	cr_assert(picture.shape[0] == 6 && picture.dtype.bits == 16);
	cr_assert_eq(video_pixels_convert(&pixels, frame, &picture, (uint8_t *)out), 0);
	for (int y = 0; y < 6; y++)
		for (int x = 0; x < 6; x++)
			cr_expect_eq(out[y][x], (expected(y, x) * 4 + 1) << 6, "row %d, column %d",
				     y, x);
	av_frame_free(&frame);
	video_pixels_fini(&pixels);
}
