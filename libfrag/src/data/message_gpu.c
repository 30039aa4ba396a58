// SPDX-License-Identifier: Apache-2.0
#include <data/memory.h>
#include <data/message.h>
#include <data/staging.h>

int fragi_message_to_gpu(struct frag_message *message, struct frag_err *err)
{
	struct frag_tensor *copy;
	struct frag_device gpu;
	int r = 0;

	if (!fragi_memory_gpu(&gpu))
		return 0;
	for (uint32_t i = 0; i < message->tensor_count && r == 0; i++) {
		if (!message->tensors[i].tensor->was_on_gpu)
			continue;
		r = frag_tensor_copy(message->tensors[i].tensor, fragi_staging(), gpu, &copy, err);
		if (r < 0)
			break;
		fragi_tensor_freeze(copy); /* the message is shared already */
		frag_tensor_unref(message->tensors[i].tensor);
		message->tensors[i].tensor = copy;
	}
	return r;
}

int fragi_message_wait(const struct frag_message *message, struct frag_err *err)
{
	int r = 0;

	for (uint32_t i = 0; i < message->tensor_count && r == 0; i++)
		r = fragi_tensor_wait(message->tensors[i].tensor, err);
	return r;
}

int fragi_message_follow(const struct frag_message *message, void *stream, struct frag_err *err)
{
	int r = 0;

	for (uint32_t i = 0; i < message->tensor_count && r == 0; i++)
		r = fragi_work_follow(message->tensors[i].tensor->written, stream, err);
	return r;
}
