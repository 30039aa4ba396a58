// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <string.h>

#include <frag/frag.h>

enum { EMPTY, PEOPLE };
static const char *const sentences[] = {"the street is empty", "people are in the street"};

struct street_state {
	const char *scores_tensor_name;
	double threshold;
	int64_t hold;
	struct frag_f64_list place;

	int32_t state;    /* EMPTY or PEOPLE */
	int64_t contrary; /* frames in a row that show the other one */
};

enum { IN, OUT };
static const struct frag_port ports[] = {
	[IN] = {.name = "in",
		.dir = FRAG_IN,
		.type = "tensor",
		.headline = "scores of what a network detected in a frame: f32"},
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline =
			 "state [1] i32: 0 the street is empty, 1 people are in it; and state_place [1, 3], where a viewer writes it"},
};

static const double default_place[] = {0.02, 0.92, 0.06};
static const struct frag_param params[] = {
	FRAG_PARAM_STRING(struct street_state, scores_tensor_name, "scores",
			  .headline = "Tensor of the scores"),
	FRAG_PARAM_F64(struct street_state, threshold, 0.4,
		       .headline = "A frame in which the best score is lower shows nobody",
		       .min = 0.0, .max = 1.0, .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_I64(struct street_state, hold, 10,
		       .headline = "The state changes after so many frames in a row", .min = 1,
		       .max = 100000),
	FRAG_PARAM_F64_LIST(struct street_state, place, NULL,
			    .headline =
				    "Where it is written: x, y, size; default [0.02, 0.92, 0.06]",
			    .flags = FRAG_PARAM_OPTIONAL),
};

static int setup(void *state, struct frag_op *op)
{
	struct street_state *s = state;

	if (s->place.count == 0)
		s->place = (struct frag_f64_list){default_place, 3};
	if (s->place.count != 3)
		return frag_op_fail(op, -EINVAL,
				    "place has %zu numbers; give [x, y, size], from 0 to 1",
				    s->place.count);
	return 0;
}

/* Finds the best score of a frame. */
static int best_score(const struct street_state *s, struct frag_op *op,
		      const struct frag_message *message, float *out)
{
	const struct frag_tensor *tensor = frag_message_tensor(message, s->scores_tensor_name);
	const struct frag_dltensor *dl = tensor != NULL ? frag_tensor_dl(tensor) : NULL;
	const float *scores;
	int64_t count = 1;
	float best = 0.0f;

	if (dl == NULL || dl->dtype.code != FRAG_DTYPE_FLOAT || dl->dtype.bits != 32 ||
	    !frag_tensor_is_compact(tensor) || dl->device.type != FRAG_DEVICE_CPU)
		return frag_op_fail(
			op, -EINVAL,
			"the message holds no tensor \"%s\" of f32; set scores_tensor_name to that of the scores",
			s->scores_tensor_name);
	scores = frag_tensor_data(tensor);
	for (int32_t i = 0; i < dl->ndim; i++)
		count *= dl->shape[i];
	for (int64_t i = 0; i < count; i++) {
		if (isnan(scores[i]))
			return frag_op_fail(
				op, -EBADMSG,
				"score %lld is not a number (NaN); check the network and its input",
				(long long)i);
		best = fmaxf(best, scores[i]);
	}
	*out = best;
	return 0;
}

static void decide(struct street_state *s, struct frag_tick *tick, float best)
{
	int32_t shown = best >= (float)s->threshold ? PEOPLE : EMPTY;
	bool is_first = frag_tick_count(tick) == 0;

	s->contrary = shown != s->state ? s->contrary + 1 : 0;
	if (!is_first && s->contrary < s->hold)
		return;
	s->state = shown;
	s->contrary = 0;
	frag_op_log(frag_tick_op(tick), "frame %llu: %s", (unsigned long long)frag_tick_count(tick),
		    sentences[shown]);
}

static int emit(const struct street_state *s, struct frag_tick *tick,
		const struct frag_message *received)
{
	static const int64_t shapes[2][2] = {{1, 0}, {1, 3}};
	struct frag_message *message = frag_message_create();
	struct frag_tensor *state, *place;
	int r = message != NULL
			? frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_INT, 32, 1}, 1,
					     shapes[0], &state)
			: -ENOMEM;

	if (r == 0) {
		*(int32_t *)frag_tensor_writable(state) = s->state;
		r = frag_message_add_tensor(message, "state", state);
	}
	if (r == 0)
		r = frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, 2,
				       shapes[1], &place);
	if (r == 0) {
		for (int i = 0; i < 3; i++)
			((float *)frag_tensor_writable(place))[i] = (float)s->place.items[i];
		r = frag_message_add_tensor(message, "state_place", place);
	}
	if (r < 0) {
		frag_message_unref(message);
		return r;
	}
	frag_message_copy_stamps(message, received);
	return frag_tick_emit(tick, OUT, message);
}

static int compute(void *state, struct frag_tick *tick)
{
	struct street_state *s = state;
	const struct frag_message *received;
	float best = 0.0f;
	int r = frag_tick_receive(tick, IN, &received);

	if (r == 0)
		r = best_score(s, frag_tick_op(tick), received, &best);
	if (r < 0)
		return r;
	decide(s, tick, best);
	return emit(s, tick, received);
}

const struct frag_op_type street_state_type = {
	FRAG_OP_TYPE_INIT,
	.name = "street_state",
	.headline = "Says whether anybody is in the picture",
	.description = "Nobody is, when the best score of a detector is low for a while.",
	.state_size = sizeof(struct street_state),
	FRAG_PORTS(ports),
	FRAG_PARAMS(params),
	.setup = setup,
	.compute = compute,
};
