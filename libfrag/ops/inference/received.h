/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_RECEIVED_H
#define INFERENCE_RECEIVED_H

#include <frag/frag.h>

/* The messages of a multi-receiver input in one tick: an array with NULL where none came. */

/* Returns the first tensor of that name; NULL: no message has one. */
static inline const struct frag_tensor *received_tensor(const struct frag_message *const *messages,
							int count, const char *name)
{
	const struct frag_tensor *tensor = NULL;

	for (int i = 0; i < count && tensor == NULL; i++)
		if (messages[i] != NULL)
			tensor = frag_message_tensor(messages[i], name);
	return tensor;
}

/* Gives a result the stamps of the first message of those that it was made of. */
static inline void received_stamp(const struct frag_message *const *messages, int count,
				  struct frag_message *result)
{
	for (int i = 0; i < count; i++)
		if (messages[i] != NULL && frag_message_acquisition(messages[i], NULL, NULL) == 0) {
			frag_message_copy_stamps(result, messages[i]);
			return;
		}
}

#endif
