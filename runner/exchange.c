// SPDX-License-Identifier: Apache-2.0
#include <runner/exchange.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>

struct runner_frame {
	struct runner_frame *next;
	enum runner_exchange_end to;
	uint64_t connection;
	uint8_t *bytes; /* NULL: the sender has closed the connection */
	size_t size;
};

void runner_exchange_init(struct runner_exchange *exchange)
{
	*exchange = (struct runner_exchange){.last = &exchange->first};
}

/* Takes bytes. */
static int post(struct runner_exchange *exchange, enum runner_exchange_end to, uint64_t connection,
		uint8_t *bytes, size_t size)
{
	struct runner_frame *frame = fragi_calloc(1, sizeof(*frame));

	if (frame == NULL) {
		fragi_free(bytes);
		return -ENOMEM;
	}
	*frame = (struct runner_frame){
		.to = to, .connection = connection, .bytes = bytes, .size = size};
	*exchange->last = frame;
	exchange->last = &frame->next;
	return 0;
}

int runner_exchange_send_frame(struct runner_exchange *exchange, enum runner_exchange_end to,
			       uint64_t connection, const uint8_t *frame, size_t size)
{
	uint8_t *bytes = fragi_malloc(size);

	return bytes == NULL ? -ENOMEM
			     : post(exchange, to, connection, memcpy(bytes, frame, size), size);
}

int runner_exchange_send(struct runner_exchange *exchange, enum runner_exchange_end to,
			 uint64_t connection, const struct fw_message *message)
{
	struct fw_message copy = *message;
	uint8_t *bytes;
	size_t size;
	int r;

	copy.seq = 1; /* nobody compares it: nothing is lost or overtaken here */
	copy.reply_to = 0;
	r = fw_encode(&copy, &bytes, &size);
	return r < 0 ? r : post(exchange, to, connection, bytes, size);
}

int runner_exchange_close(struct runner_exchange *exchange, enum runner_exchange_end to,
			  uint64_t connection)
{
	return post(exchange, to, connection, NULL, 0);
}

int runner_exchange_take(struct runner_exchange *exchange, struct runner_transit *out)
{
	const size_t prefix = sizeof(uint32_t);
	struct runner_frame *frame = exchange->first;
	int r = 0;

	if (frame == NULL)
		return -ENOENT;
	exchange->first = frame->next;
	if (exchange->first == NULL)
		exchange->last = &exchange->first;
	*out = (struct runner_transit){.to = frame->to, .connection = frame->connection};
	if (frame->bytes != NULL)
		r = fw_decode(frame->bytes + prefix, frame->size - prefix, &out->message, NULL);
	fragi_free(frame->bytes);
	fragi_free(frame);
	return r;
}
