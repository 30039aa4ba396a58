/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_REMOTE_STATE_H
#define TESTS_UNIT_REMOTE_STATE_H

#include <edge/remote/state.h>

#include "state_sum.h"

/* All that a host remembers of its peers and flows, for the sum. */
static inline void state_of_transport(const struct fragi_remote_transport *t)
{
	uint32_t sends = 0, receives = 0, abandoned = 0;

	for (const struct fragi_remote_send *s = t->free_sends; s != NULL; s = s->next)
		sends++;
	for (const struct fragi_remote_send *s = t->abandoned_sends; s != NULL; s = s->next)
		abandoned++;
	for (const struct fragi_remote_receive *r = t->free_receives; r != NULL; r = r->next)
		receives++;
	STATE(sends), STATE(abandoned), STATE(receives);
	STATE(t->free_send_count), STATE(t->receiving), STATE(t->header_max);
}

static inline void state_of_endpoint(const struct fragi_remote_endpoint *e)
{
	uint32_t sends = 0;

	for (const struct fragi_remote_send *s = e->sends; s != NULL; s = s->next)
		STATE_HAS(s->sealed), sends++;
	STATE(sends), STATE_HAS(e->base), STATE(e->state), STATE(e->areas), STATE(e->takes_next);
	STATE(e->heard), STATE(e->suspend_wanted), STATE(e->failed), STATE(e->broken);
	STATE(e->closing), STATE(e->stopped), STATE(e->failure), STATE_TEXT(e->sentence);
	STATE(e->has_name), STATE(e->back), STATE(e->flow), STATE(e->token[0]);
	STATE(e->token[15]), STATE_HAS(e->seal), STATE(e->own_sends), STATE(e->heard_ns);
	STATE(e->sent_ns), STATE(e->ready_ns), STATE(e->hello_ns), STATE(e->connect_until_ns);
	STATE(e->waits_longer), STATE(e->sent_count), STATE(e->sync_asked);
	STATE(e->sync_answered), STATE(e->leave_wanted), STATE(e->leave_sent);
	STATE(e->leave_heard), STATE_HAS(e->successor), STATE(e->successor_size);
	STATE(e->arriving), STATE(e->clock_reported), STATE(e->asked_ns), STATE(e->clock_until_ns);
	STATE(e->questions), STATE(e->refused), STATE(e->smeared_until_ns), STATE(e->sync_owed);
	STATE(e->leave_owed), STATE(e->sync_sequence);
}

static inline void state_of_layout(const struct fragi_remote_layout *l)
{
	STATE_HAS(l->known), STATE_HAS(l->descriptors);
	STATE(l->descriptor_bytes), STATE(l->body_bytes);
}

static inline void state_of_tx(const struct fragi_remote_tx *t)
{
	STATE(t->edge.link), STATE(t->kicked), STATE(t->closing), STATE(t->at_send);
	STATE_HAS(t->held), STATE_HAS(t->awaited), STATE(t->gpu_failed), STATE(t->awaiting);
	STATE(t->under_way), STATE(t->close_sent), STATE(t->before), STATE(t->before_bytes);
	STATE(t->dropped_before), state_of_layout(&t->layout);
	STATE(t->window.posted), STATE(t->window.posted_bytes), STATE(t->window.credited);
	STATE(t->window.credited_bytes), STATE(t->window.sent), STATE(t->window.sent_bytes);
	STATE(t->window.dropped), STATE(t->window.dropped_bytes), STATE(t->window.wanted);
}

static inline void state_of_part(const struct fragi_remote_part *p)
{
	STATE(p->state);
	if (p->state == FRAGI_PART_FREE)
		return;
	STATE_HAS(p->message), STATE(p->descriptor_bytes), STATE(p->body_bytes);
	STATE(p->has_descriptors), STATE(p->has_bodies), STATE(p->was_on_gpu);
	STATE_HAS(p->descriptors), STATE_HAS(p->data), STATE_HAS(p->handle), STATE_HAS(p->mapped);
	STATE(p->mapped_count), STATE(p->waiting), STATE_HAS(p->receive);
}

static inline void state_of_rx(const struct fragi_remote_rx *r)
{
	STATE(r->edge.link), STATE(r->blocking), STATE(r->kicked), STATE(r->done), STATE(r->mask);
	STATE(r->next), STATE(r->next_bytes), STATE(r->before), STATE(r->before_bytes);
	STATE(r->waits_for_place), STATE(r->receiving_bytes), STATE(r->receiving);
	STATE(r->waiting), STATE(r->taking_turns), STATE(r->close_known), STATE(r->close_reported);
	STATE(r->done_sent), STATE(r->broken), STATE(r->close_sequence),
		state_of_layout(&r->layout);
	STATE(r->window.consumed), STATE(r->window.consumed_bytes), STATE(r->window.returned);
	STATE(r->window.returned_bytes), STATE(r->window.wanted), STATE(r->window.accepted);
	STATE(r->window.accepted_bytes);
	for (uint64_t i = 0; r->parts != NULL && i <= r->mask; i++)
		state_of_part(&r->parts[i]);
	for (uint64_t i = 0; r->sizes != NULL && i <= r->mask; i++)
		STATE(r->sizes[i]);
}

static inline void state_of_remote(const struct fragi_remote *r)
{
	if (r == NULL)
		return;
	for (uint32_t i = 0; i < r->transport_count; i++)
		state_of_transport(&r->transports[i]);
	for (const struct fragi_remote_peer *p = r->peers; p != NULL; p = p->next) {
		STATE(p->host), STATE(p->epoch), STATE_TEXT(p->name), STATE(p->ready);
		STATE(p->lost);
		for (const struct fragi_remote_endpoint *e = p->endpoints; e != NULL; e = e->next)
			state_of_endpoint(e);
	}
	for (uint32_t i = 0; i < r->flows_size; i++) {
		const struct fragi_remote_flow *f = &r->flows[i];

		STATE_HAS(f->endpoint), STATE(f->token[0]), STATE(f->token[15]);
		STATE_HAS(f->seal), STATE_HAS(f->tx), STATE_HAS(f->rx);
		if (f->tx != NULL)
			state_of_tx(f->tx);
		if (f->rx != NULL)
			state_of_rx(f->rx);
	}
	STATE(r->now_ns), STATE(r->tick_ns), STATE(r->happened), STATE(r->endpoint_failed);
	STATE(r->endpoints_closing), STATE(r->flush_wanted), STATE(r->draining);
	STATE(r->keeps_open), STATE(r->yields), STATE(r->credits_waiting), STATE(r->refused);
}

#endif
