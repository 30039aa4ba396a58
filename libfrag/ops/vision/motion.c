// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>

#include "motion.h"

/*
 * Parts of one object may be this far apart, in pixels of the model, whose sides are half those of
 * the frame. Without it heads are separated from their bodies.
 */
#define JOIN_X 2
#define JOIN_Y 4
/* Rate of the recent average, which tells a moving object from one that was left or has stopped. */
#define RECENT_RATE 0.25f
/* An object moves when this share of it differs from the recent average. */
#define MOVING_SHARE 0.06
/*
 * When more than this share of the picture is foreground, the light or the camera has changed, and
 * the background is learned anew.
 */
#define CHANGED_SHARE 0.6
#define CHANNELS_MAX 4

struct motion {
	int64_t rows, columns; /* of the model */
	size_t size;
	int64_t seen, warmup;
	uint8_t *first;             /* [warmup][size], until the background is computed */
	float *now, *back, *recent; /* [size] */
	uint8_t *front, *moving;    /* [size], 0 or 1 */
	uint8_t *joined, *scratch;  /* [size] front with its gaps closed; scratch memory */
	uint8_t *kept;              /* [size] 1 in objects that have a box */
	int32_t *queue;             /* [size] used by take_object */
	uint16_t *sums;             /* [2 * columns + 1][channels] of two lines of the frame */
};

struct object {
	int64_t area, moving; /* pixels of the model */
	int64_t left, top, right, bottom;
};

struct motion *vision_motion_create(const struct motion_config *config, int64_t rows,
				    int64_t columns)
{
	struct motion *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->rows = (rows + 1) / 2;
	m->columns = (columns + 1) / 2;
	m->size = (size_t)(m->rows * m->columns);
	m->warmup = config->warmup;
	m->first = malloc(m->size * (size_t)m->warmup);
	m->now = malloc(m->size * 3 * sizeof(float));
	m->front = malloc(m->size * 5);
	m->queue = malloc(m->size * sizeof(*m->queue));
	m->sums = malloc(((size_t)m->columns * 2 + 1) * CHANNELS_MAX * sizeof(*m->sums));
	if (m->first == NULL || m->now == NULL || m->front == NULL || m->queue == NULL ||
	    m->sums == NULL) {
		vision_motion_destroy(m);
		return NULL;
	}
	m->back = m->now + m->size;
	m->recent = m->back + m->size;
	m->moving = m->front + m->size;
	m->joined = m->moving + m->size;
	m->scratch = m->joined + m->size;
	m->kept = m->scratch + m->size;
	return m;
}

void vision_motion_destroy(struct motion *motion)
{
	if (motion == NULL)
		return;
	free(motion->first);
	free(motion->now);
	free(motion->front);
	free(motion->queue);
	free(motion->sums);
	free(motion);
}

/*
 * The compiler makes vector code of the loops over lines below, because none writes where it
 * reads. A step takes a quarter of the time that it takes without.
 */
static void add_lines(uint16_t *restrict sums, const uint8_t *restrict a, const uint8_t *restrict b,
		      int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		sums[i] = (uint16_t)(a[i] + b[i]);
}

/* Weights of red, green and blue in the brightness, in 1/2^14. Of four pixels they make 1/2^16. */
#define RED 4899
#define GREEN 9617
#define BLUE 1868

static void colours_to_gray(const uint16_t *sums, float *gray, int64_t pixels, int64_t channels)
{
	for (int64_t x = 0; x < pixels; x++) {
		const uint16_t *p = sums + 2 * x * channels, *q = p + channels;

		gray[x] = (float)(RED * (p[0] + q[0]) + GREEN * (p[1] + q[1]) +
				  BLUE * (p[2] + q[2])) /
			  65536.0f;
	}
}

static void grays_to_gray(const uint16_t *sums, float *gray, int64_t pixels)
{
	for (int64_t x = 0; x < pixels; x++)
		gray[x] = (float)(sums[2 * x] + sums[2 * x + 1]) / 4.0f;
}

/*
 * Computes the brightness at half the size: the mean of two by two pixels, which also removes some
 * of the noise. Where a side is odd, its last pixel counts twice.
 */
static void shrink_to_gray(struct motion *m, const struct frame *frame)
{
	const int64_t channels = frame->channels, count = frame->columns * channels;

	for (int64_t y = 0; y < m->rows; y++) {
		int64_t below = 2 * y + 1 < frame->rows ? 2 * y + 1 : 2 * y;
		const uint8_t *data = frame->data;
		float *gray = m->now + y * m->columns;

		add_lines(m->sums, data + (size_t)(2 * y) * frame->row_bytes,
			  data + (size_t)below * frame->row_bytes, count);
		memcpy(m->sums + count, m->sums + count - channels,
		       (size_t)channels * sizeof(*m->sums));
		if (channels == 1)
			grays_to_gray(m->sums, gray, m->columns);
		else if (channels == 3)
			colours_to_gray(m->sums, gray, m->columns, 3);
		else
			colours_to_gray(m->sums, gray, m->columns, 4);
	}
}

/* Computes the first background: the median of each pixel over the warm-up frames. */
static void warm_up(struct motion *m)
{
	uint8_t *keep = m->first + (size_t)m->seen * m->size;

	for (size_t i = 0; i < m->size; i++)
		keep[i] = (uint8_t)lrintf(m->now[i]);
	if (m->seen + 1 < m->warmup)
		return;
	for (size_t i = 0; i < m->size; i++) {
		int64_t counts[256] = {0}, below = 0;
		int value = 0;

		for (int64_t k = 0; k < m->warmup; k++)
			counts[m->first[(size_t)k * m->size + i]]++;
		while (2 * (below + counts[value]) < m->warmup)
			below += counts[value++];
		m->back[i] = (float)value;
	}
	memcpy(m->recent, m->now, m->size * sizeof(*m->recent));
	free(m->first);
	m->first = NULL;
}

static void majority_of_line(const uint8_t *restrict above, const uint8_t *restrict line,
			     const uint8_t *restrict below, uint8_t *restrict out, int64_t columns)
{
	for (int64_t x = 1; x < columns - 1; x++)
		out[x] = (uint8_t)(above[x - 1] + above[x] + above[x + 1] + line[x - 1] + line[x] +
				   line[x + 1] + below[x - 1] + below[x] + below[x + 1]) >= 5;
}

/* Sets each pixel to the majority of its neighbourhood: removes single pixels and closes holes. */
static void majority(const struct motion *m, const uint8_t *in, uint8_t *out)
{
	memset(out, 0, m->size);
	for (int64_t y = 1; y + 1 < m->rows; y++) {
		const uint8_t *line = in + y * m->columns;

		majority_of_line(line - m->columns, line, line + m->columns, out + y * m->columns,
				 m->columns);
	}
}

static void add_pixels(uint8_t *restrict out, const uint8_t *restrict in, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		out[i] |= in[i];
}

/* Sets every pixel that has a set pixel at most `reach` steps before or behind it. */
static void spread(const uint8_t *in, uint8_t *out, int64_t count, int64_t step, int64_t reach)
{
	memcpy(out, in, (size_t)count);
	for (int64_t shift = step; shift <= reach * step && shift < count; shift += step) {
		add_pixels(out + shift, in, count - shift);
		add_pixels(out, in + shift, count - shift);
	}
}

static void differ(const float *restrict now, const float *restrict average, uint8_t *restrict out,
		   size_t size, float threshold)
{
	for (size_t i = 0; i < size; i++)
		out[i] = fabsf(now[i] - average[i]) > threshold;
}

/* Lets an average follow the picture, except where `kept` says so. */
static void follow(const float *restrict now, float *restrict average, const uint8_t *restrict kept,
		   size_t size, float rate)
{
	for (size_t i = 0; i < size; i++)
		average[i] += (kept[i] ? 0.0f : rate) * (now[i] - average[i]);
}

static size_t compare(struct motion *m, double threshold)
{
	size_t in_front = 0;

	differ(m->now, m->back, m->scratch, m->size, (float)threshold);
	differ(m->now, m->recent, m->moving, m->size, (float)threshold / 2.0f);
	memset(m->kept, 0, m->size); /* no object is found yet */
	follow(m->now, m->recent, m->kept, m->size, RECENT_RATE);
	majority(m, m->scratch, m->front);
	for (size_t i = 0; i < m->size; i++)
		in_front += m->front[i];
	for (int64_t y = 0; y < m->rows; y++)
		spread(m->front + y * m->columns, m->scratch + y * m->columns, m->columns, 1,
		       JOIN_X);
	spread(m->scratch, m->joined, (int64_t)m->size, m->columns, JOIN_Y);
	return in_front;
}

/*
 * Removes the object that contains pixel `start` from `joined` and puts its pixels into m->queue.
 * Returns how many they are.
 */
static size_t take_object(struct motion *m, int32_t start, struct object *object)
{
	int32_t columns = (int32_t)m->columns, rows = (int32_t)m->rows;
	size_t head = 0, tail = 0;

	*object = (struct object){.left = m->columns, .top = m->rows};
	m->joined[start] = 0;
	m->queue[tail++] = start;
	while (head < tail) {
		int32_t at = m->queue[head++];
		int32_t x = at % columns, y = at / columns;
		const int32_t next[4] = {x > 0 ? at - 1 : -1, x + 1 < columns ? at + 1 : -1,
					 y > 0 ? at - columns : -1,
					 y + 1 < rows ? at + columns : -1};

		if (m->front[at]) {
			object->area++;
			object->moving += m->moving[at];
			object->left = x < object->left ? x : object->left;
			object->top = y < object->top ? y : object->top;
			object->right = x >= object->right ? x + 1 : object->right;
			object->bottom = y >= object->bottom ? y + 1 : object->bottom;
		}
		for (int i = 0; i < 4; i++) {
			if (next[i] >= 0 && m->joined[next[i]]) {
				m->joined[next[i]] = 0;
				m->queue[tail++] = next[i];
			}
		}
	}
	return tail;
}

static struct motion_box box_of(const struct object *object, const struct frame *frame)
{
	struct motion_box box = {
		.left = (int32_t)(2 * object->left),
		.top = (int32_t)(2 * object->top),
		.right = (int32_t)(2 * object->right),
		.bottom = (int32_t)(2 * object->bottom),
	};

	if (box.right > frame->columns)
		box.right = (int32_t)frame->columns;
	if (box.bottom > frame->rows)
		box.bottom = (int32_t)frame->rows;
	return box;
}

static int find_objects(struct motion *m, const struct motion_config *config,
			const struct frame *frame, struct motion_box *boxes)
{
	const uint8_t *at = m->joined;
	int count = 0;

	while (count < MOTION_BOXES_MAX &&
	       (at = memchr(at, 1, m->size - (size_t)(at - m->joined))) != NULL) {
		struct object object;
		size_t pixels = take_object(m, (int32_t)(at - m->joined), &object);

		if (object.area * 4 < config->min_area ||
		    (double)object.moving < MOVING_SHARE * (double)object.area || object.area == 0)
			continue;
		for (size_t k = 0; k < pixels; k++)
			m->kept[m->queue[k]] = 1;
		boxes[count++] = box_of(&object, frame);
	}
	return count;
}

int vision_motion_step(struct motion *m, const struct motion_config *config,
		       const struct frame *frame, struct motion_box boxes[MOTION_BOXES_MAX])
{
	size_t in_front;
	int count;

	shrink_to_gray(m, frame);
	if (m->seen < m->warmup) {
		warm_up(m);
		m->seen++;
		return 0;
	}
	in_front = compare(m, config->threshold);
	if ((double)in_front > CHANGED_SHARE * (double)m->size) {
		memcpy(m->back, m->now, m->size * sizeof(*m->back));
		memcpy(m->recent, m->now, m->size * sizeof(*m->recent));
		return 0;
	}
	count = find_objects(m, config, frame, boxes);
	/* An object that has stopped becomes background. */
	follow(m->now, m->back, m->kept, m->size, (float)config->learning_rate);
	return count;
}
