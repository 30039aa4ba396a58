// SPDX-License-Identifier: Apache-2.0
#undef NDEBUG
#include <assert.h>
#include <frag/harness.h>
#include <stdio.h>
#include <string.h>

extern const struct frag_op_type invert_type;

static const struct frag_device gpu = {FRAG_DEVICE_CUDA, 0}, cpu = {FRAG_DEVICE_CPU, 0};

int main(void)
{
	const int64_t shape[] = {100, 7};
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	const struct frag_harness_resource pools[] = {{"pool", "unbounded_allocator", NULL},
						      {NULL, NULL, NULL}};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h =
		frag_harness_create_with(&invert_type, FRAG_ARGS({"pool", "$pool"}), pools, &err);
	struct frag_tensor *host, *there, *back;
	struct frag_message *message;

	if (h == NULL) {
		printf("cuda: skipped: %s\n", err.text);
		return 0;
	}
	assert(frag_tensor_create(NULL, u8, 2, shape, &host) == 0);
	for (int i = 0; i < 700; i++)
		((uint8_t *)frag_tensor_writable(host))[i] = (uint8_t)i;
	assert(frag_tensor_copy(host, NULL, gpu, &there, NULL) == 0);
	assert(frag_harness_give_tensor(h, "in", "", there) == 0);
	assert(frag_harness_tick(h) == 0);
	assert(frag_harness_take(h, "out", &message) == 0);
	assert(frag_tensor_copy(frag_message_tensor(message, ""), NULL, cpu, &back, NULL) == 0);
	for (int i = 0; i < 700; i++)
		assert(((const uint8_t *)frag_tensor_data(back))[i] == (uint8_t)(255 - i));
	/* A tensor that the GPU cannot read is refused. */
	assert(frag_harness_give_tensor(h, "in", "", host) == 0);
	assert(frag_harness_tick(h) < 0);
	assert(strstr(frag_harness_error(h), "memory of the host"));
	frag_tensor_unref(back);
	frag_message_unref(message);
	frag_harness_destroy(h);
	puts("cuda: all tests passed");
	return 0;
}
