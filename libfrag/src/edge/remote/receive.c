// SPDX-License-Identifier: Apache-2.0
#include <edge/remote/state.h>

/*
 * A receive is made for the bodies or the descriptors of one part. A part that is given up leaves
 * its receive behind, and with it the memory that the transport may still write to: a peer that was
 * lost for its silence may wake up and go on sending.
 */

struct fragi_remote_receive *fragi_remote_receive_create(struct fragi_remote_transport *transport)
{
	struct fragi_remote_receive *receive = transport->free_receives;

	if (receive != NULL)
		transport->free_receives = receive->next;
	else
		receive = fragi_malloc(sizeof(*receive) + transport->transport->receive_room);
	if (receive == NULL)
		return NULL;
	receive->transport = transport;
	receive->part = NULL;
	receive->message = NULL;
	receive->descriptors = NULL;
	return receive;
}

void fragi_remote_receive_free(struct fragi_remote_receive *receive)
{
	struct fragi_remote_transport *transport = receive->transport;

	if (receive->message != NULL)
		fragi_pump_dispose(transport->remote->config.pump, receive->message);
	fragi_free(receive->descriptors);
	receive->next = transport->free_receives;
	transport->free_receives = receive;
}

void fragi_remote_receives_free(struct fragi_remote_transport *transport)
{
	struct fragi_remote_receive *next;

	for (; transport->free_receives != NULL; transport->free_receives = next) {
		next = transport->free_receives->next;
		fragi_free(transport->free_receives);
	}
}
