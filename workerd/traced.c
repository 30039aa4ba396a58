/* SPDX-License-Identifier: Apache-2.0 */
#include <workerd/traced.h>

#include <base/alloc.h>

void wrk_traced_note(struct wrk_traced *traced, const struct fw_message *message)
{
	const struct fw_tapped *tapped = &message->tapped;
	struct fragi_trace_host last = {0};
	struct fragi_trace_read read;
	bool is_trace = false, is_end = false;
	uint32_t i = 0, at = 0;

	while (fragi_trace_read(tapped->passed, tapped->size, &at, &read) > 0) {
		if (read.kind == FRAGI_TRACE_HOST)
			last = read.host;
		is_trace |= read.kind == FRAGI_TRACE_HOST;
		is_end |= read.kind == FRAGI_TRACE_END;
	}
	while (i < FRAGI_TRACE_READERS && traced->traces[i].tap != tapped->tap)
		i++;
	if (!is_trace || (is_end && i == FRAGI_TRACE_READERS))
		return;
	if (i == FRAGI_TRACE_READERS)
		i = traced->next++ % FRAGI_TRACE_READERS;
	traced->run = message->run;
	traced->epoch = message->epoch;
	traced->host = message->host;
	traced->traces[i].tap = is_end ? 0 : tapped->tap;
	traced->traces[i].last = last;
}

void wrk_traced_rest(struct wrk_traced *traced, const struct fragi_trace_ring *ring,
		     void (*take)(void *arg, uint32_t id, struct fw_message *message), void *arg,
		     uint32_t id)
{
	struct fragi_trace_chunk *chunk = ring != NULL ? fragi_malloc(sizeof(*chunk)) : NULL;
	struct fw_message message = {.kind = FW_HOST_TAPPED,
				     .run = traced->run,
				     .host = traced->host,
				     .epoch = traced->epoch},
			  *copy;
	size_t size;

	for (uint32_t i = 0; chunk != NULL && i < FRAGI_TRACE_READERS; i++) {
		if (!fragi_trace_rest(ring, traced->traces[i].tap, &traced->traces[i].last, chunk))
			continue;
		message.tapped =
			(struct fw_tapped){traced->traces[i].tap, chunk->bytes, chunk->size};
		if (fw_message_copy(&message, &copy, &size) == 0)
			take(arg, id, copy);
	}
	fragi_free(chunk);
}
