/* SPDX-License-Identifier: Apache-2.0 */
#include <fragctl/exchange.h>

#include <errno.h>
#include <stdlib.h>

#include <base/alloc.h>

void ctl_exchange_init(struct ctl_exchange *exchange)
{
	*exchange = (struct ctl_exchange){.last = &exchange->first};
}

/* Takes message. */
static int post(struct ctl_exchange *exchange, enum ctl_exchange_end to, uint64_t connection,
		struct fw_message *message)
{
	struct ctl_transit *transit = fragi_calloc(1, sizeof(*transit));

	if (transit == NULL) {
		fw_message_free(message);
		return -ENOMEM;
	}
	*transit = (struct ctl_transit){.to = to, .connection = connection, .message = message};
	*exchange->last = transit;
	exchange->last = &transit->next;
	return 0;
}

int ctl_exchange_send_frame(struct ctl_exchange *exchange, enum ctl_exchange_end to,
			    uint64_t connection, const uint8_t *frame, size_t size)
{
	struct fw_message *message;
	int r = fw_decode(frame + sizeof(uint32_t), size - sizeof(uint32_t), &message, NULL);

	return r < 0 ? r : post(exchange, to, connection, message);
}

int ctl_exchange_send(struct ctl_exchange *exchange, enum ctl_exchange_end to, uint64_t connection,
		      const struct fw_message *message)
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
	r = ctl_exchange_send_frame(exchange, to, connection, frame, size);
	free(frame);
	return r;
}

int ctl_exchange_close(struct ctl_exchange *exchange, enum ctl_exchange_end to, uint64_t connection)
{
	return post(exchange, to, connection, NULL);
}

bool ctl_exchange_take(struct ctl_exchange *exchange, struct ctl_transit *out)
{
	struct ctl_transit *transit = exchange->first;

	if (transit == NULL)
		return false;
	exchange->first = transit->next;
	if (exchange->first == NULL)
		exchange->last = &exchange->first;
	*out = *transit;
	fragi_free(transit);
	return true;
}
