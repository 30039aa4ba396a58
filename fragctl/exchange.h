/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_EXCHANGE_H
#define CTL_EXCHANGE_H

#include <wire/message.h>

/*
 * The connection between the core of a driver and that of a worker in one process: messages in the
 * order in which they were sent, both ways. They are encoded and decoded as on a socket, so that a
 * core gets what it would get there, and owns it.
 */
enum ctl_exchange_end { CTL_EXCHANGE_DRIVER, CTL_EXCHANGE_WORKER };

/* One message under way; NULL: the sender has closed the connection. */
struct ctl_transit {
	struct ctl_transit *next;
	enum ctl_exchange_end to;
	uint64_t connection; /* the worker's number of the connection, and the driver's */
	struct fw_message *message;
};
struct ctl_exchange {
	struct ctl_transit *first, **last;
};

void ctl_exchange_init(struct ctl_exchange *exchange);
/* frame: as fw_encode makes it; copied. Returns 0, -ENOMEM, -EBADMSG. */
int ctl_exchange_send_frame(struct ctl_exchange *exchange, enum ctl_exchange_end to,
			    uint64_t connection, const uint8_t *frame, size_t size);
/* message is copied. Returns the same, or -EMSGSIZE when it does not fit into a frame. */
int ctl_exchange_send(struct ctl_exchange *exchange, enum ctl_exchange_end to, uint64_t connection,
		      const struct fw_message *message);
/* Returns 0 or -ENOMEM. */
int ctl_exchange_close(struct ctl_exchange *exchange, enum ctl_exchange_end to,
		       uint64_t connection);
/* The next one, whose message is the caller's then. Returns false when there is none. */
bool ctl_exchange_take(struct ctl_exchange *exchange, struct ctl_transit *out);

#endif
