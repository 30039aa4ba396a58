// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <frag/harness.h>

extern const struct frag_op_type people_tracker_type;

/* Gives the boxes of a frame and returns what comes out. */
static struct frag_message *frame(struct frag_harness *h, const float *boxes, int64_t count)
{
	struct frag_dtype f32 = {FRAG_DTYPE_FLOAT, 32, 1};
	struct frag_tensor *tensor;
	struct frag_message *out;

	assert(frag_tensor_create(NULL, f32, 2, (int64_t[]){count, 4}, &tensor) == 0);
	if (count > 0)
		memcpy(frag_tensor_writable(tensor), boxes, (size_t)count * 4 * sizeof(float));
	assert(frag_harness_give_tensor(h, "in", "boxes", tensor) == 0);
	assert(frag_harness_tick(h) == 0);
	assert(frag_harness_take(h, "out", &out) == 0);
	return out;
}

/* Returns the numbers of a frame as a text, and releases it. */
static const char *numbers(struct frag_message *message)
{
	static char text[64];
	const struct frag_tensor *tensor = frag_message_tensor(message, "numbers");
	const int32_t *number = frag_tensor_data(tensor);
	size_t at = 0;

	text[0] = '\0';
	for (int64_t i = 0; i < frag_tensor_dl(tensor)->shape[0]; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%d ", number[i]);
	frag_message_unref(message);
	return text;
}

int main(void)
{
	struct frag_harness *h = frag_harness_create(
		&people_tracker_type,
		FRAG_ARGS({"confirm", "2"}, {"bridge", "1"}, {"forget", "3"}, {"trail", "4"}),
		NULL);
	float two[2][4] = {{0.1f, 0.1f, 0.2f, 0.4f}, {0.8f, 0.1f, 0.9f, 0.4f}}, swapped[2][4];
	struct frag_message *m;

	assert(h);
	assert(strcmp(numbers(frame(h, two[0], 2)), "") == 0); /* not confirmed yet */
	/* Both walk towards each other, and come in another order in every frame. */
	for (int i = 0; i < 6; i++) {
		for (int k = 0; k < 4; k += 2) {
			two[0][k] += 0.02f;
			two[1][k] -= 0.02f;
		}
		memcpy(swapped[i % 2], two[0], sizeof(two[0]));
		memcpy(swapped[1 - i % 2], two[1], sizeof(two[1]));
		assert(strcmp(numbers(frame(h, swapped[0], 2)), "1 2 ") == 0);
	}
	/* One is not found: shown once more where the pace leads, and remembered for 3 frames. */
	m = frame(h, two[1], 1);
	assert(((const float *)frag_tensor_data(frag_message_tensor(m, "rectangles")))[0] >
	       two[0][0]);
	assert(frag_tensor_dl(frag_message_tensor(m, "trails"))->shape[0] == 6);
	assert(strcmp(numbers(m), "1 2 ") == 0);
	assert(strcmp(numbers(frame(h, two[1], 1)), "2 ") == 0);
	assert(strcmp(numbers(frame(h, two[0], 2)), "1 2 ") == 0);
	/* Nobody for longer than that: whoever comes then has a new number. */
	for (int i = 0; i < 4; i++)
		frag_message_unref(frame(h, NULL, 0));
	frag_message_unref(frame(h, two[0], 1));
	assert(strcmp(numbers(frame(h, two[0], 1)), "3 ") == 0);
	frag_harness_destroy(h);
	puts("all tests passed");
	return 0;
}
