// SPDX-License-Identifier: Apache-2.0
#include <data/memory.h>
#include <data/message.h>
#include <data/staging.h>

static void unref_tensor(void *tensor)
{
	frag_tensor_unref(tensor);
}

int fragi_message_to_gpu(struct frag_message *message, struct fragi_stream **streams,
			 struct frag_err *err)
{
	struct frag_tensor *copy, *received;
	struct frag_device gpu;
	int r = 0;

	if (!fragi_memory_gpu(&gpu))
		return 0;
	for (uint32_t i = 0; i < message->tensor_count && r == 0; i++) {
		received = message->tensors[i].tensor;
		if (!received->was_on_gpu)
			continue;
		r = fragi_tensor_begin_copy(received, fragi_staging(), gpu, streams, &copy, err);
		if (r < 0)
			break;
		fragi_tensor_freeze(copy); /* the message is shared already */
		message->tensors[i].tensor = copy;
		if (copy->written == NULL) { /* it is empty */
			frag_tensor_unref(received);
			continue;
		}
		message->at_receive |= FRAGI_AT_RECEIVE_WORK;
		fragi_work_then(copy->written, unref_tensor, received);
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
