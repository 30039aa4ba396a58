// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <frag/harness.h>

extern const struct frag_op_type street_state_type;

/* Gives the scores of a frame, and returns the state. */
static int32_t frame(struct frag_harness *h, float first, float second)
{
	const float scores[] = {first, second};
	struct frag_dtype f32 = {FRAG_DTYPE_FLOAT, 32, 1};
	struct frag_tensor *tensor;
	struct frag_message *out;
	int32_t state;

	assert(frag_tensor_create(NULL, f32, 2, (int64_t[]){1, 2}, &tensor) == 0);
	memcpy(frag_tensor_writable(tensor), scores, sizeof(scores));
	assert(frag_harness_give_tensor(h, "in", "scores", tensor) == 0);
	assert(frag_harness_tick(h) == 0);
	assert(frag_harness_take(h, "out", &out) == 0);
	state = *(const int32_t *)frag_tensor_data(frag_message_tensor(out, "state"));
	assert(frag_tensor_dl(frag_message_tensor(out, "state_place"))->shape[1] == 3);
	frag_message_unref(out);
	return state;
}

int main(void)
{
	struct frag_harness *h = frag_harness_create(
		&street_state_type, FRAG_ARGS({"threshold", "0.5"}, {"hold", "3"}), NULL);
	struct frag_tensor *tensor;

	assert(h);
	assert(frame(h, 0.1f, 0.2f) == 0); /* the first frame decides */
	assert(frame(h, 0.1f, 0.9f) == 0 && frame(h, 0.9f, 0.0f) == 0);
	assert(frame(h, 0.1f, 0.1f) == 0); /* two frames are not enough */
	assert(frame(h, 0.6f, 0.1f) == 0 && frame(h, 0.6f, 0.1f) == 0);
	assert(frame(h, 0.6f, 0.1f) == 1);
	assert(frame(h, 0.0f, 0.0f) == 1 && frame(h, 0.0f, 0.0f) == 1);
	assert(frame(h, 0.0f, 0.0f) == 0);

	assert(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, 1,
				  (int64_t[]){1}, &tensor) == 0);
	*(float *)frag_tensor_writable(tensor) = NAN;
	assert(frag_harness_give_tensor(h, "in", "scores", tensor) == 0);
	assert(frag_harness_tick(h) < 0 && strstr(frag_harness_error(h), "NaN"));
	frag_harness_destroy(h);
	puts("all tests passed");
	return 0;
}
