// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "clip.h"

/*
 * Looks at a recorded video, decoded by the program ffmpeg:
 *   check_clip indices VIDEO FRAMES               the bar codes read 0 .. FRAMES - 1, in order
 *   check_clip boxes LOG FRAMES FIRST             frames from FIRST on have a box, and every box
 *   covers the
 * square check_clip outside VIDEO SOURCE LOG W H FRAMES  outside the boxes every frame is the
 * source's, PSNR >= 30 dB LOG is written by the operator box_log: a line `frame left top right
 * bottom` for each box.
 */
#define IOU_MIN 0.5
#define PSNR_MIN 30.0

static __attribute__((format(printf, 1, 2))) int wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "check_clip: ");
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return 1;
}

static FILE *decode(const char *video)
{
	char command[4400];

	if (strchr(video, '\'') != NULL ||
	    snprintf(
		    command, sizeof(command),
		    "exec ffmpeg -v error -nostdin -i '%s' -vsync passthrough -f rawvideo -pix_fmt rgb24 -",
		    video) >= (int)sizeof(command))
		return NULL;
	return popen(command, "r");
}

static double psnr(const uint8_t *a, const uint8_t *b)
{
	double sum = 0;

	for (size_t i = 0; i < CLIP_BYTES; i++)
		sum += (double)((a[i] - b[i]) * (a[i] - b[i]));
	return sum > 0 ? 10 * log10(255.0 * 255.0 * (double)CLIP_BYTES / sum) : 99.0;
}

/* How much a frame looks like frame n, frame 0 and a black one: what went wrong with it. */
static int wrong_number(const char *video, int n, const uint8_t *rgb)
{
	uint8_t *like = calloc(1, CLIP_BYTES);
	double black = psnr(rgb, like), first, own;

	clip_draw(like, 0, 0);
	first = psnr(rgb, like);
	clip_draw(like, n, 0);
	own = psnr(rgb, like);
	free(like);
	return wrong(
		"%s: frame %d holds the number %d; PSNR with that frame: %.1f dB, with frame 0: %.1f, with black: %.1f",
		video, n, clip_number(rgb), own, first, black);
}

static int check_indices(const char *video, int frames)
{
	uint8_t *rgb = malloc(CLIP_BYTES);
	FILE *in = decode(video);
	int n = 0, bad = 0;

	while (!bad && fread(rgb, CLIP_BYTES, 1, in) == 1) {
		if (clip_number(rgb) != n)
			bad = wrong_number(video, n, rgb);
		n++;
	}
	bad |= pclose(in) != 0 && !bad;
	free(rgb);
	if (!bad && n != frames)
		bad = wrong("%s: %d frames instead of %d", video, n, frames);
	return bad;
}

static int check_boxes(const char *log, int frames, int first)
{
	FILE *in = fopen(log, "r");
	double left, top, right, bottom;
	int n, bad = 0, boxed = 0, last = -1;

	if (in == NULL)
		return wrong("cannot open %s", log);
	while (fscanf(in, "%d %lf %lf %lf %lf", &n, &left, &top, &right, &bottom) == 5) {
		if (n < first)
			bad |= wrong("frame %d has a box before the background was made", n);
		if (clip_iou(n, left, top, right, bottom) < IOU_MIN)
			bad |= wrong("frame %d: box %g %g %g %g is not about the square at %d %d",
				     n, left, top, right, bottom, clip_left(n), clip_top(n));
		boxed += n != last;
		last = n;
	}
	fclose(in);
	if (boxed != frames - first)
		bad |= wrong("%d frames have a box, %d should", boxed, frames - first);
	return bad;
}

/*
 * Reads the boxes of frame n, the log being in the order of the frames, and marks what they cover.
 */
static void mask_boxes(FILE *log, int n, int columns, int rows, uint8_t *mask)
{
	for (;;) {
		long back = ftell(log);
		int frame, left, top, right, bottom;

		if (fscanf(log, "%d %d %d %d %d", &frame, &left, &top, &right, &bottom) != 5)
			return;
		if (frame != n) {
			fseek(log, back, SEEK_SET);
			return;
		}
		/* Encoders work in blocks of 16: a drawn line is felt that far. */
		for (int y = top - 16; y < bottom + 16; y++) {
			for (int x = left - 16; x < right + 16; x++) {
				if (x >= 0 && y >= 0 && x < columns && y < rows)
					mask[y * columns + x] = 1;
			}
		}
	}
}

static double psnr_outside(const uint8_t *a, const uint8_t *b, const uint8_t *mask, int pixels)
{
	double sum = 0;
	long count = 0;

	for (int i = 0; i < pixels; i++) {
		for (int c = 0; c < 3 && !mask[i]; c++) {
			int d = a[3 * i + c] - b[3 * i + c];

			sum += d * d;
			count++;
		}
	}
	return sum > 0 ? 10 * log10(255.0 * 255.0 * (double)count / sum) : 99.0;
}

static int check_outside(const char *video, const char *source, const char *log_name, int columns,
			 int rows, int frames)
{
	size_t size = (size_t)columns * (size_t)rows;
	uint8_t *recorded = malloc(size * 3), *original = malloc(size * 3), *mask = malloc(size);
	FILE *log = fopen(log_name, "r"), *a = decode(video), *b = decode(source);
	double least = 99.0;
	int n = 0, bad = 0;

	while (log != NULL && fread(recorded, size * 3, 1, a) == 1 &&
	       fread(original, size * 3, 1, b) == 1) {
		double psnr;

		memset(mask, 0, size);
		mask_boxes(log, n, columns, rows, mask);
		psnr = psnr_outside(recorded, original, mask, (int)size);
		least = fmin(least, psnr);
		if (psnr < PSNR_MIN)
			bad |= wrong("frame %d: PSNR %.1f dB outside the boxes", n, psnr);
		n++;
	}
	if (fread(original, 1, 1, b) != 0 || n != frames)
		bad |= wrong("%d frames were compared instead of %d", n, frames);
	printf("least PSNR outside the boxes: %.1f dB\n", least);
	pclose(a);
	pclose(b);
	if (log != NULL)
		fclose(log);
	free(recorded);
	free(original);
	free(mask);
	return bad;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "indices") == 0)
		return check_indices(argv[2], atoi(argv[3]));
	if (argc == 5 && strcmp(argv[1], "boxes") == 0)
		return check_boxes(argv[2], atoi(argv[3]), atoi(argv[4]));
	if (argc == 8 && strcmp(argv[1], "outside") == 0)
		return check_outside(argv[2], argv[3], argv[4], atoi(argv[5]), atoi(argv[6]),
				     atoi(argv[7]));
	fprintf(stderr, "usage: check_clip indices|boxes|outside ...\n");
	return 2;
}
