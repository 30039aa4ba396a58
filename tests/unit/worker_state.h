/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_WORKER_STATE_H
#define TESTS_UNIT_WORKER_STATE_H

#include <workerd/core/state.h>

#include "state_sum.h"

/* All that the worker's core remembers, for the sum. */
static inline void state_of_slot(const struct wrk_host *h)
{
	STATE(h->id), STATE(h->run), STATE(h->epoch), STATE(h->number), STATE(h->connection);
	STATE(h->state), STATE(h->pid), STATE(h->heard_ns), STATE(h->starts_until_ns);
	STATE(h->kill_at_ns), STATE(h->stop_requested), STATE(h->ending), STATE(h->ended_here);
	STATE(h->done), STATE(h->yields), STATE(h->is_beside), STATE(h->failed);
	STATE(h->exit_reported), STATE(h->why_failure), STATE_TEXT(h->why), STATE(h->cut);
	STATE_TEXT(h->end_reason), STATE_TEXT(h->application), STATE_TEXT(h->fragments);
	STATE(h->lease_ns), STATE(h->lease_until_ns), STATE(h->look_until_ns), STATE(h->counts);
	STATE(h->counts_for), STATE(h->same_counts), STATE(h->is_renewed), STATE(h->lines_at_ns);
	STATE(h->lines_used), STATE(h->lines_left_out), STATE(h->name_count);
	for (uint32_t i = 0; h->names != NULL && i < h->name_count; i++)
		STATE_TEXT(h->names[i]);
}

static inline void state_of_copy(const struct wrk_copy *copy)
{
	state_mix("kind", copy->message != NULL ? copy->message->kind : 0);
	STATE(copy->bytes);
}

static inline void state_of_kept(const struct wrk_kept *k)
{
	STATE(k->run), STATE(k->epoch), STATE(k->number), STATE_HAS(k->source);
	state_of_copy(&k->create), state_of_copy(&k->prepared), state_of_copy(&k->past);
	state_of_copy(&k->stats), state_of_copy(&k->exit), STATE(k->event_count);
	for (uint32_t i = 0; i < k->event_count; i++)
		state_of_copy(&k->events[i]);
	STATE(k->has_ended), STATE(k->is_wired), STATE(k->started), STATE(k->has_run);
	STATE(k->is_inexact), STATE(k->is_beside), STATE(k->is_closing), STATE(k->yields);
	STATE(k->stop), STATE(k->failure), STATE_TEXT(k->reason), STATE(k->restarts);
	STATE(k->made_ns);
}

static inline void state_of_worker(const struct wrk_core *c)
{
	STATE(c->session), STATE(c->connection), STATE(c->session_id), STATE_TEXT(c->name);
	for (int i = 0; i < FW_SECRET_BYTES; i++)
		STATE(c->secret[i]);
	STATE(c->takes_lines), STATE(c->keeps_hosts), STATE_TEXT(c->proof);
	STATE_TEXT(c->served_proof), STATE_HAS(c->source), STATE(c->kept_count);
	STATE(c->last_epoch), STATE(c->kept_bytes), STATE(c->beat_ns), STATE(c->dead_ns);
	STATE(c->real_ns), STATE(c->lease_sent_ns), STATE(c->lease_from_ns);
	STATE(c->driver_leaves), STATE(c->beaten_ns), STATE(c->read_ns), STATE(c->is_deferred);
	STATE(c->heard_ns), STATE(c->beat_at_ns), STATE(c->wait_until_ns), STATE(c->backoff_ns);
	STATE(c->lost_ns);
	STATE_TEXT(c->refusal), STATE(c->deadline_ns), STATE(c->waiting_logged);
	STATE(c->unanswered_logged), STATE(c->refusal_logged), STATE(c->random);
	STATE_TEXT(c->address), STATE_TEXT(c->local), STATE_TEXT(c->waits_for), STATE(c->has_gpus);
	STATE(c->waits_line_ns), STATE(c->slot_count), STATE(c->host_count), STATE(c->last_id);
	STATE(c->past_next), STATE(c->stops), STATE(c->grace_until_ns), STATE(c->stop_at_ns);
	STATE(c->served), STATE(c->served_run), STATE(c->result), STATE(c->decided);
	for (uint32_t i = 0; i < c->slot_count; i++)
		state_of_slot(&c->hosts[i]);
	for (const struct wrk_kept *k = c->kept; k != NULL; k = k->next)
		state_of_kept(k);
	for (uint32_t i = 0; i < WRK_PAST_MAX && c->past[i].run != 0; i++) {
		STATE(c->past[i].connection), STATE(c->past[i].run);
		STATE(c->past[i].epoch), STATE(c->past[i].number);
	}
}

#endif
