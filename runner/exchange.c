// SPDX-License-Identifier: Apache-2.0
#include <runner/exchange.h>

#include <errno.h>
#include <stdlib.h>

#include <base/alloc.h>

void runner_exchange_init(struct runner_exchange *exchange)
{
	*exchange = (struct runner_exchange){.last = &exchange->first};
}

/* Takes message. */
static int post(struct runner_exchange *exchange, enum runner_exchange_end to, uint64_t connection,
		struct fw_message *message)
{
	struct runner_transit *transit = fragi_calloc(1, sizeof(*transit));

	if (transit == NULL) {
		fw_message_free(message);
		return -ENOMEM;
	}
	*transit = (struct runner_transit){.to = to, .connection = connection, .message = message};
	*exchange->last = transit;
	exchange->last = &transit->next;
	return 0;
}

int runner_exchange_send_frame(struct runner_exchange *exchange, enum runner_exchange_end to,
			       uint64_t connection, const uint8_t *frame, size_t size)
{
	struct fw_message *message;
	int r = fw_decode(frame + sizeof(uint32_t), size - sizeof(uint32_t), &message, NULL);

	return r < 0 ? r : post(exchange, to, connection, message);
}

int runner_exchange_send(struct runner_exchange *exchange, enum runner_exchange_end to,
			 uint64_t connection, const struct fw_message *message)
{
	struct fw_message copy = *message;
	uint8_t *frame;
	size_t size;
	int r;

	copy.seq = 1; /* nobody compares it: nothing is lost or overtaken here */
	copy.reply_to = 0;
	r = fw_encode(&copy, &frame, &size);
	if (r < 0)
		return r;
	r = runner_exchange_send_frame(exchange, to, connection, frame, size);
	free(frame);
	return r;
}

int runner_exchange_close(struct runner_exchange *exchange, enum runner_exchange_end to,
			  uint64_t connection)
{
	return post(exchange, to, connection, NULL);
}

bool runner_exchange_take(struct runner_exchange *exchange, struct runner_transit *out)
{
	struct runner_transit *transit = exchange->first;

	if (transit == NULL)
		return false;
	exchange->first = transit->next;
	if (exchange->first == NULL)
		exchange->last = &exchange->first;
	*out = *transit;
	fragi_free(transit);
	return true;
}
