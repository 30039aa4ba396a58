// SPDX-License-Identifier: Apache-2.0
/*
 * Follows people from frame to frame. A box belongs to the person whose last box, moved on by the
 * pace of that person, it overlaps most. Nothing is recognised: who leaves and comes back gets a
 * new number.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <frag/frag.h>

#define TRACKS_MAX 128
#define TRAIL_MAX 64
#define TEXT_SIZE 0.04f
#define SMOOTHING 0.3f /* share of the newest box */

struct track {
	int64_t number; /* 0: not confirmed yet */
	float box[4];   /* left, top, right, bottom */
	float pace[2];  /* of its centre, a frame */
	int64_t seen, missed;
	float feet[2];             /* the middle of the lower border, smoothed */
	float trail[TRAIL_MAX][2]; /* where the feet were, the oldest first */
	int64_t trail_count;
};

struct people_tracker {
	double min_overlap;
	int64_t confirm, bridge, forget, trail;

	struct track tracks[TRACKS_MAX];
	int64_t count, last_number;
};

enum { IN, OUT };
static const struct frag_port ports[] = {
	[IN] = {.name = "in",
		.dir = FRAG_IN,
		.type = "tensor",
		.headline =
			"boxes: [n, 4] f32, left, top, right, bottom from 0 to 1, from detection_postprocessor"},
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline =
			 "of n people: rectangles [2n, 2], numbers [n] i32 from 1, number_places [n, 3]; and trails [m, 4], lines behind their feet"},
};

static const struct frag_param params[] = {
	FRAG_PARAM_F64(struct people_tracker, min_overlap, 0.2,
		       .headline = "A box that overlaps less than this is another person",
		       .min = 0.01, .max = 1.0),
	FRAG_PARAM_I64(struct people_tracker, confirm, 3,
		       .headline = "A person gets a number after so many frames", .min = 1,
		       .max = 1000),
	FRAG_PARAM_I64(struct people_tracker, bridge, 2,
		       .headline = "A person who is not found is shown for so many frames",
		       .min = 0, .max = 1000),
	FRAG_PARAM_I64(struct people_tracker, forget, 15,
		       .headline = "A person who is not found for so many frames is gone", .min = 1,
		       .max = 1000),
	FRAG_PARAM_I64(struct people_tracker, trail, 40,
		       .headline = "Length of the trails, in frames", .min = 0, .max = TRAIL_MAX),
};

static float overlap(const float a[4], const float b[4])
{
	float width = fminf(a[2], b[2]) - fmaxf(a[0], b[0]);
	float height = fminf(a[3], b[3]) - fmaxf(a[1], b[1]);
	float both = width > 0.0f && height > 0.0f ? width * height : 0.0f;
	float all = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both;

	return both > 0.0f && all > 0.0f ? both / all : 0.0f;
}

static void move_on(struct track *t)
{
	for (int i = 0; i < 4; i++)
		t->box[i] += t->pace[i % 2];
}

static void lengthen_trail(const struct people_tracker *p, struct track *t)
{
	if (p->trail == 0)
		return;
	if (t->trail_count == p->trail)
		memmove(t->trail, t->trail + 1, (size_t)--t->trail_count * sizeof(*t->trail));
	t->trail[t->trail_count][0] = t->feet[0];
	t->trail[t->trail_count++][1] = t->feet[1];
}

/* Gives a track, which has moved on, the box in which its person was found. */
static void find_again(struct track *t, const float box[4])
{
	for (int i = 0; i < 2; i++) {
		float ahead = (box[i] + box[i + 2] - t->box[i] - t->box[i + 2]) / 2.0f;

		t->pace[i] += SMOOTHING * ahead;
	}
	memcpy(t->box, box, sizeof(t->box));
	t->feet[0] += SMOOTHING * ((box[0] + box[2]) / 2.0f - t->feet[0]);
	t->feet[1] += SMOOTHING * (box[3] - t->feet[1]);
	t->missed = 0;
	t->seen++;
}

/* Matches boxes with tracks, the largest overlap first. A track or a box is taken once. */
static void match(struct people_tracker *p, const float *boxes, int64_t count, bool *box_taken)
{
	bool track_taken[TRACKS_MAX] = {false};

	for (;;) {
		float best = (float)p->min_overlap;
		int64_t track = -1, box = -1;

		for (int64_t t = 0; t < p->count; t++) {
			for (int64_t b = 0; b < count && !track_taken[t]; b++) {
				float o = box_taken[b] ? 0.0f
						       : overlap(p->tracks[t].box, boxes + 4 * b);

				if (o < best)
					continue;
				best = o;
				track = t;
				box = b;
			}
		}
		if (track < 0)
			return;
		track_taken[track] = box_taken[box] = true;
		find_again(&p->tracks[track], boxes + 4 * box);
	}
}

static void begin_track(struct people_tracker *p, const float box[4])
{
	struct track *t = &p->tracks[p->count++];

	*t = (struct track){.feet = {(box[0] + box[2]) / 2.0f, box[3]}};
	find_again(t, box);
	t->pace[0] = t->pace[1] = 0.0f;
}

static void follow(struct people_tracker *p, const float *boxes, int64_t count)
{
	bool taken[TRACKS_MAX] = {false};
	int64_t kept = 0;

	for (int64_t t = 0; t < p->count; t++) {
		move_on(&p->tracks[t]);
		p->tracks[t].missed++;
	}
	match(p, boxes, count, taken);
	for (int64_t t = 0; t < p->count; t++) {
		struct track *track = &p->tracks[t];

		/* Somebody who was seen once may have been a mistake. */
		if (track->missed > (track->number > 0 ? p->forget : 0))
			continue;
		p->tracks[kept++] = *track;
	}
	p->count = kept;
	for (int64_t b = 0; b < count && p->count < TRACKS_MAX; b++)
		if (!taken[b])
			begin_track(p, boxes + 4 * b);
	for (int64_t t = 0; t < p->count; t++) {
		if (p->tracks[t].number == 0 && p->tracks[t].seen >= p->confirm)
			p->tracks[t].number = ++p->last_number;
		lengthen_trail(p, &p->tracks[t]);
	}
}

static bool is_shown(const struct people_tracker *p, const struct track *t)
{
	return t->number > 0 && t->missed <= p->bridge;
}

static int add(struct frag_message *message, const char *name, enum frag_dtype_code code,
	       int64_t rows, int64_t columns, void **out)
{
	int64_t shape[] = {rows, columns};
	struct frag_tensor *tensor;
	int r = frag_tensor_create(NULL, (struct frag_dtype){(uint8_t)code, 32, 1},
				   columns > 0 ? 2 : 1, shape, &tensor);

	if (r < 0)
		return r;
	*out = frag_tensor_writable(tensor);
	return frag_message_add_tensor(message, name, tensor);
}

static int fill(const struct people_tracker *p, struct frag_message *message)
{
	void *rectangles = NULL, *numbers = NULL, *places = NULL, *trails = NULL;
	int64_t people = 0, lines = 0;
	float *line;
	int r;

	for (int64_t t = 0; t < p->count; t++) {
		if (!is_shown(p, &p->tracks[t]))
			continue;
		people++;
		lines += p->tracks[t].trail_count > 1 ? p->tracks[t].trail_count - 1 : 0;
	}
	r = add(message, "rectangles", FRAG_DTYPE_FLOAT, 2 * people, 2, &rectangles);
	if (r == 0)
		r = add(message, "numbers", FRAG_DTYPE_INT, people, 0, &numbers);
	if (r == 0)
		r = add(message, "number_places", FRAG_DTYPE_FLOAT, people, 3, &places);
	if (r == 0)
		r = add(message, "trails", FRAG_DTYPE_FLOAT, lines, 4, &trails);
	if (r < 0)
		return r;
	line = trails;
	people = 0;
	for (int64_t t = 0; t < p->count; t++) {
		const struct track *track = &p->tracks[t];
		float place[] = {track->box[0], track->box[1] - TEXT_SIZE, TEXT_SIZE};

		if (!is_shown(p, track))
			continue;
		memcpy((float *)rectangles + 4 * people, track->box, sizeof(track->box));
		memcpy((float *)places + 3 * people, place, sizeof(place));
		((int32_t *)numbers)[people++] = (int32_t)track->number;
		for (int64_t i = 1; i < track->trail_count; i++, line += 4)
			memcpy(line, track->trail[i - 1], 4 * sizeof(float));
	}
	return 0;
}

static int compute(void *state, struct frag_tick *tick)
{
	struct people_tracker *p = state;
	const struct frag_message *received;
	const struct frag_tensor *boxes;
	struct frag_message *message;
	const struct frag_dltensor *dl;
	int r = frag_tick_receive(tick, IN, &received);

	if (r < 0)
		return r;
	boxes = frag_message_tensor(received, "boxes");
	dl = boxes != NULL ? frag_tensor_dl(boxes) : NULL;
	if (dl == NULL || dl->ndim != 2 || dl->shape[1] != 4 ||
	    dl->dtype.code != FRAG_DTYPE_FLOAT || dl->dtype.bits != 32 ||
	    !frag_tensor_is_compact(boxes) || dl->device.type != FRAG_DEVICE_CPU)
		return frag_op_fail(
			frag_tick_op(tick), -EINVAL,
			"the message holds no tensor \"boxes\" of [n, 4] f32; connect a detection_postprocessor");
	follow(p, frag_tensor_data(boxes), dl->shape[0] < TRACKS_MAX ? dl->shape[0] : TRACKS_MAX);
	message = frag_message_create();
	if (message == NULL)
		return -ENOMEM;
	r = fill(p, message);
	if (r < 0) {
		frag_message_unref(message);
		return r;
	}
	frag_message_copy_stamps(message, received);
	return frag_tick_emit(tick, OUT, message);
}

const struct frag_op_type people_tracker_type = {
	FRAG_OP_TYPE_INIT,
	.name = "people_tracker",
	.headline = "Numbers people and follows them from frame to frame",
	.state_size = sizeof(struct people_tracker),
	FRAG_PORTS(ports),
	FRAG_PARAMS(params),
	.compute = compute,
};
