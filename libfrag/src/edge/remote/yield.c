// SPDX-License-Identifier: Apache-2.0
#include <edge/remote/state.h>

/*
 * A host is replaced by another process while it runs, and nothing is lost. Its peers suspend their
 * edges to it: each one that sends says CLOSE with a flag behind what has left, and keeps the rest.
 * So the inputs of the host end, its operators with them, and what they have sent arrives; but its
 * own ends say no CLOSE and no DONE. Then it leaves, and its successor takes the place
 * (successor.c).
 */

void fragi_remote_yield(struct fragi_remote *remote)
{
	atomic_store(&remote->keeps_open, true);
	atomic_store(&remote->yields, true);
}

bool fragi_remote_yields(const struct fragi_remote *remote)
{
	return atomic_load(&remote->yields);
}

void fragi_remote_endpoint_suspend(struct fragi_remote_endpoint *endpoint)
{
	fragi_remote_endpoint_transition(endpoint, FRAGI_ENDPOINT_SUSPENDED);
	for (struct fragi_remote_edge *edge = endpoint->edges; edge != NULL; edge = edge->next) {
		struct fragi_remote_tx *tx = edge->is_tx ? fragi_remote_tx_of(edge) : NULL;

		if (tx == NULL || tx->close_sent)
			continue;
		tx->close_sent = true;
		fragi_remote_send_control(edge, FRAGI_KIND_CLOSE, FRAGI_FLAG_YIELD,
					  tx->window.sent - tx->before, 0);
	}
}

void fragi_remote_peer_suspend(struct fragi_remote_peer *peer)
{
	for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
	     endpoint = endpoint->next) {
		if (fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_CONNECTING)
			endpoint->suspend_wanted = true;
		else if (fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_READY)
			fragi_remote_endpoint_suspend(endpoint);
	}
}
