// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <frag/harness.h>

#include "video/video.h"

/*
 * Compares the frames that a GPU decodes of a file with those of the CPU, bit for bit, and measures
 * both: video_check FILE FORMAT [STREAMS [BOUND]]. They may differ by BOUND, for codecs that allow
 * that. Ends with 0: they are the same; 77: the GPU does not decode this file; 1.
 */
#define CPU ((struct frag_device){FRAG_DEVICE_CPU, 0})
#define STREAMS_MAX 64

static const char *file, *format;
static int bound;

static struct frag_harness *make(const char *decoder, bool on_gpu)
{
	const struct frag_harness_resource pools[] = {
		{"pool", "block_memory_pool",
		 FRAG_ARGS({"storage_type", on_gpu ? "1" : "2"}, {"block_size", "16M"},
			   {"num_blocks", "8"})},
		{NULL, NULL, NULL}};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create_with(
		&video_replayer_type,
		FRAG_ARGS({"path", file}, {"realtime", "false"}, {"decoder", decoder},
			  {"format", format}, {"pool", "$pool"}),
		pools, &err);

	if (h == NULL)
		fprintf(stderr, "%s\n", err.text);
	return h;
}

/* Returns 1; 0: that was the last frame; negative: it failed. */
static int next(struct frag_harness *h, struct frag_message **out)
{
	int r = frag_harness_tick(h);

	if (r < 0) {
		fprintf(stderr, "%s\n", frag_harness_error(h));
		return r;
	}
	if (frag_harness_take(h, "output", out) != 0)
		return -ENOMSG;
	return r != FRAG_DONE;
}

static struct frag_tensor *on_host(struct frag_message *message)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *copy = NULL;

	if (frag_tensor_copy(frag_message_tensor(message, ""), NULL, CPU, &copy, &err) < 0)
		fprintf(stderr, "%s\n", err.text);
	frag_message_unref(message);
	return copy;
}

/* The largest difference of two bytes; of numbers of 16 bits, of their upper bytes. */
static int difference(const struct frag_tensor *a, const struct frag_tensor *b)
{
	const uint8_t *x = frag_tensor_data(a), *y = frag_tensor_data(b);
	size_t bytes = frag_tensor_size_bytes(a);
	int most = 0;

	if (bytes != frag_tensor_size_bytes(b))
		return 255;
	for (size_t i = 0; i < bytes; i++)
		most = abs(x[i] - y[i]) > most ? abs(x[i] - y[i]) : most;
	return most;
}

static int compare(void)
{
	struct frag_harness *there = make("gpu", true), *here = make("cpu", false);
	int frames = 0, most = 0, more = 1, result = there == NULL ? 77 : here == NULL;

	while (result == 0 && more > 0) {
		struct frag_message *a = NULL, *b = NULL;
		struct frag_tensor *x, *y;
		int want = next(here, &b);

		more = next(there, &a);
		if (more != want) {
			result = more < 0 && frames == 0 ? 77 : 1;
			break;
		}
		x = on_host(a);
		y = on_host(b);
		if (x == NULL || y == NULL)
			return 1;
		if (difference(x, y) > most)
			most = difference(x, y);
		frag_tensor_unref(x);
		frag_tensor_unref(y);
		frames++;
	}
	frag_harness_destroy(there);
	frag_harness_destroy(here);
	if (result == 0 && most > bound)
		result = 1;
	printf("%s %d frames of %s as %s from the GPU differ by at most %d from those of the CPU\n",
	       result == 0    ? "ok  "
	       : result == 77 ? "skip"
			      : "FAIL",
	       frames, file, format, most);
	return result;
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *play(void *harness)
{
	struct frag_message *message = NULL;
	intptr_t frames = 0;
	int more = 1;

	while (more > 0) {
		more = next(harness, &message);
		if (more < 0)
			break;
		frag_message_unref(message);
		frames++;
	}
	return (void *)frames;
}

/* Frames of several streams, each with a thread, as fast as they are decoded. */
static void measure(const char *decoder, bool on_gpu, int streams)
{
	struct frag_harness *h[STREAMS_MAX];
	pthread_t threads[STREAMS_MAX];
	double begin, cpu;
	intptr_t frames = 0;

	for (int i = 0; i < streams; i++) {
		h[i] = make(decoder, on_gpu);
		if (h[i] == NULL)
			exit(1);
	}
	begin = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < streams; i++)
		if (pthread_create(&threads[i], NULL, play, h[i]) != 0)
			exit(1);
	for (int i = 0; i < streams; i++) {
		void *played;

		pthread_join(threads[i], &played);
		frames += (intptr_t)played;
	}
	begin = seconds(CLOCK_MONOTONIC) - begin;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("     %s, %d streams: %.0f frames/s, %.0f %% of a core, %.2f ms of a core for a frame\n",
	       decoder, streams, (double)frames / begin, 100.0 * cpu / begin,
	       1e3 * cpu / (double)frames);
	for (int i = 0; i < streams; i++)
		frag_harness_destroy(h[i]);
}

int main(int argc, char **argv)
{
	int streams = argc > 3 ? atoi(argv[3]) : 0, result;

	if (argc < 3 || streams < 0 || streams > STREAMS_MAX)
		return 2;
	bound = argc > 4 ? atoi(argv[4]) : 0;
	file = argv[1];
	format = argv[2];
	result = compare();
	if (result != 0 || streams == 0)
		return result;
	measure("gpu", true, streams);
	measure("cpu", false, streams);
	return 0;
}
