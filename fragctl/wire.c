/* SPDX-License-Identifier: Apache-2.0 */
#include <fragctl/wire.h>

#include <errno.h>
#include <stdlib.h>

#include <base/alloc.h>

void ctl_wire_init(struct ctl_wire *wire)
{
	*wire = (struct ctl_wire){.last = &wire->first};
}

/* Takes message. */
static int post(struct ctl_wire *wire, enum ctl_wire_end to, uint64_t connection,
		struct fw_message *message)
{
	struct ctl_transit *transit = fragi_calloc(1, sizeof(*transit));

	if (transit == NULL) {
		fw_message_free(message);
		return -ENOMEM;
	}
	*transit = (struct ctl_transit){.to = to, .connection = connection, .message = message};
	*wire->last = transit;
	wire->last = &transit->next;
	return 0;
}

int ctl_wire_send_frame(struct ctl_wire *wire, enum ctl_wire_end to, uint64_t connection,
			const uint8_t *frame, size_t size)
{
	struct fw_message *message;
	int r = fw_decode(frame + sizeof(uint32_t), size - sizeof(uint32_t), &message, NULL);

	return r < 0 ? r : post(wire, to, connection, message);
}

int ctl_wire_send(struct ctl_wire *wire, enum ctl_wire_end to, uint64_t connection,
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
	r = ctl_wire_send_frame(wire, to, connection, frame, size);
	free(frame);
	return r;
}

int ctl_wire_close(struct ctl_wire *wire, enum ctl_wire_end to, uint64_t connection)
{
	return post(wire, to, connection, NULL);
}

bool ctl_wire_take(struct ctl_wire *wire, struct ctl_transit *out)
{
	struct ctl_transit *transit = wire->first;

	if (transit == NULL)
		return false;
	wire->first = transit->next;
	if (wire->first == NULL)
		wire->last = &wire->first;
	*out = *transit;
	fragi_free(transit);
	return true;
}
