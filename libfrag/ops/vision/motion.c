/* SPDX-License-Identifier: Apache-2.0 */
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
	if (m->first == NULL || m->now == NULL || m->front == NULL || m->queue == NULL) {
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
	free(motion);
}

/*
 * Computes the brightness at half the size: the mean of two by two pixels, which also removes some
 * of the noise.
 */
static void shrink_to_gray(struct motion *m, const struct frame *frame)
{
	for (int64_t y = 0; y < m->rows; y++) {
		int64_t below = 2 * y + 1 < frame->rows ? 2 * y + 1 : 2 * y;
		const uint8_t *lines[2] = {
			(const uint8_t *)frame->data + (size_t)(2 * y) * frame->row_bytes,
			(const uint8_t *)frame->data + (size_t)below * frame->row_bytes};

		for (int64_t x = 0; x < m->columns; x++) {
			int64_t beside = 2 * x + 1 < frame->columns ? 2 * x + 1 : 2 * x;
			int64_t at[2] = {2 * x * frame->channels, beside * frame->channels};
			float sum = 0.0f;

			for (int i = 0; i < 4; i++) {
				const uint8_t *p = lines[i / 2] + at[i % 2];

				sum += frame->channels == 1
					       ? (float)p[0]
					       : 0.299f * (float)p[0] + 0.587f * (float)p[1] +
							 0.114f * (float)p[2];
			}
			m->now[y * m->columns + x] = sum / 4.0f;
		}
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

/* Sets each pixel to the majority of its neighbourhood: removes single pixels and closes holes. */
static void majority(const struct motion *m, const uint8_t *in, uint8_t *out)
{
	memset(out, 0, m->size);
	for (int64_t y = 1; y + 1 < m->rows; y++) {
		for (int64_t x = 1; x + 1 < m->columns; x++) {
			const uint8_t *p = in + y * m->columns + x;
			int sum = 0;

			for (int64_t dy = -m->columns; dy <= m->columns; dy += m->columns)
				sum += p[dy - 1] + p[dy] + p[dy + 1];
			out[y * m->columns + x] = sum >= 5;
		}
	}
}

/*
 * Sets every pixel of a line that has a set pixel within `reach` pixels. The line has `length`
 * pixels, `stride` apart.
 */
static void spread(const uint8_t *in, uint8_t *out, int64_t length, int64_t stride, int64_t reach)
{
	int64_t last = -reach - 1;

	for (int64_t i = 0; i < length; i++) {
		if (in[i * stride])
			last = i;
		out[i * stride] = i - last <= reach;
	}
	last = length + reach;
	for (int64_t i = length - 1; i >= 0; i--) {
		if (in[i * stride])
			last = i;
		if (last - i <= reach)
			out[i * stride] = 1;
	}
}

static size_t compare(struct motion *m, double threshold)
{
	size_t in_front = 0;

	for (size_t i = 0; i < m->size; i++) {
		m->scratch[i] = fabsf(m->now[i] - m->back[i]) > (float)threshold;
		m->moving[i] = fabsf(m->now[i] - m->recent[i]) > (float)threshold / 2.0f;
		m->recent[i] += RECENT_RATE * (m->now[i] - m->recent[i]);
	}
	majority(m, m->scratch, m->front);
	for (size_t i = 0; i < m->size; i++)
		in_front += m->front[i];
	for (int64_t y = 0; y < m->rows; y++)
		spread(m->front + y * m->columns, m->scratch + y * m->columns, m->columns, 1,
		       JOIN_X);
	for (int64_t x = 0; x < m->columns; x++)
		spread(m->scratch + x, m->joined + x, m->rows, m->columns, JOIN_Y);
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
	int count = 0;

	memset(m->kept, 0, m->size);
	for (size_t i = 0; i < m->size && count < MOTION_BOXES_MAX; i++) {
		struct object object;
		size_t pixels;

		if (!m->joined[i])
			continue;
		pixels = take_object(m, (int32_t)i, &object);
		if (object.area * 4 < config->min_area ||
		    (double)object.moving < MOVING_SHARE * (double)object.area || object.area == 0)
			continue;
		for (size_t k = 0; k < pixels; k++)
			m->kept[m->queue[k]] = 1;
		boxes[count++] = box_of(&object, frame);
	}
	return count;
}

/*
 * Lets the background follow the picture, except where an object moves. An object that has stopped
 * becomes background.
 */
static void learn(struct motion *m, float rate)
{
	for (size_t i = 0; i < m->size; i++) {
		if (!m->kept[i])
			m->back[i] += rate * (m->now[i] - m->back[i]);
	}
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
	learn(m, (float)config->learning_rate);
	return count;
}
