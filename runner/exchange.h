/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNER_EXCHANGE_H
#define RUNNER_EXCHANGE_H

#include <wire/message.h>

/*
 * The connection between the core of a driver and that of a worker in one process: messages in the
 * order in which they were sent, both ways. They are encoded and decoded as on a socket, so that a
 * core gets what it would get there, and owns it. Under way they are frames, which are smaller.
 */
enum runner_exchange_end { RUNNER_EXCHANGE_DRIVER, RUNNER_EXCHANGE_WORKER };

struct runner_frame;
struct runner_exchange {
	struct runner_frame *first, **last;
};

/* One message that has arrived; NULL: the sender has closed the connection. */
struct runner_transit {
	enum runner_exchange_end to;
	uint64_t connection; /* the worker's number of the connection, and the driver's */
	struct fw_message *message;
};

void runner_exchange_init(struct runner_exchange *exchange);
/* frame: as fw_encode makes it; copied. Returns 0 or -ENOMEM. */
int runner_exchange_send_frame(struct runner_exchange *exchange, enum runner_exchange_end to,
			       uint64_t connection, const uint8_t *frame, size_t size);
/* message is copied. Returns the same, or -EMSGSIZE when it does not fit into a frame. */
int runner_exchange_send(struct runner_exchange *exchange, enum runner_exchange_end to,
			 uint64_t connection, const struct fw_message *message);
/* Returns 0 or -ENOMEM. */
int runner_exchange_close(struct runner_exchange *exchange, enum runner_exchange_end to,
			  uint64_t connection);
/*
 * Takes the next one, whose message is the caller's then. Returns 0; -ENOENT when there is none;
 * -ENOMEM or -EBADMSG, and that one is gone.
 */
int runner_exchange_take(struct runner_exchange *exchange, struct runner_transit *out);

#endif
