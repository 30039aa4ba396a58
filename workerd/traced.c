// SPDX-License-Identifier: Apache-2.0
#include <workerd/traced.h>

#include <base/alloc.h>

void wrk_traced_note(struct wrk_traced *traced, const struct fw_message *message)
{
	const struct fw_tapped *tapped = &message->tapped;
	struct fragi_trace_host last;
	uint32_t i = 0;

	if (!fragi_trace_is_chunk(tapped->passed, tapped->size, &last))
		return;
	while (i < FRAGI_TRACE_READERS && traced->traces[i].tap != tapped->tap)
		i++;
	if (i == FRAGI_TRACE_READERS)
		i = traced->next++ % FRAGI_TRACE_READERS;
	traced->run = message->run;
	traced->epoch = message->epoch;
	traced->host = message->host;
	traced->traces[i].tap = tapped->tap;
	traced->traces[i].last = last;
}

void wrk_traced_rest(const struct wrk_traced *traced, const struct fragi_trace_ring *ring,
		     bool is_end, void (*take)(void *arg, uint32_t id, struct fw_message *message),
		     void *arg, uint32_t id)
{
	struct fragi_trace_chunk *chunk = ring != NULL ? fragi_malloc(sizeof(*chunk)) : NULL;
	struct fw_message message = {.kind = FW_HOST_TAPPED,
				     .run = traced->run,
				     .host = traced->host,
				     .epoch = traced->epoch},
			  *copy;
	struct fragi_trace_rest rest;
	size_t size;

	for (uint32_t i = 0; chunk != NULL && i < FRAGI_TRACE_READERS; i++) {
		bool has_more = fragi_trace_rest_begin(&rest, ring, traced->traces[i].tap,
						       &traced->traces[i].last);

		while (has_more) {
			has_more = fragi_trace_rest_next(
				&rest, ring, is_end ? FRAGI_TRACE_ENDS : FRAGI_TRACE_KILLED, chunk);
			message.tapped = (struct fw_tapped){traced->traces[i].tap, chunk->bytes,
							    chunk->size};
			if (fw_message_copy(&message, &copy, &size) == 0)
				take(arg, id, copy);
		}
	}
	fragi_free(chunk);
}
