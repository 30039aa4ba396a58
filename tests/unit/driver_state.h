/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DRIVER_STATE_H
#define TESTS_UNIT_DRIVER_STATE_H

#include <driverd/core/applications/source.h>
#include <driverd/core/hosts/adopt.h>
#include <driverd/core/hosts/swap.h>
#include <driverd/core/state.h>

#include "state_sum.h"

/* All that the driver's core remembers, for the sum. */
static inline uint64_t state_session(const struct drv_session *s)
{
	return s == NULL ? 0 : s->number;
}

static inline void state_timer(const struct drv_timer *t)
{
	state_mix("timer", drv_timer_is_set(t) ? (uint64_t)t->at_ns : 0);
	STATE(t->is_due);
}

static inline void state_of_session(const struct drv_session *s)
{
	STATE(s->connection), STATE(s->number), STATE(s->reporter), STATE(s->state);
	STATE(s->role), STATE(s->roles), STATE(s->minor), STATE(s->requests);
	STATE_HAS(s->deferred), STATE_HAS(s->held), STATE(s->held_change), STATE(s->held_bytes);
	STATE_TEXT(s->who), STATE(s->has_overreached), STATE_TEXT(s->identity.name);
	STATE(s->await.run), STATE(s->await.seq), STATE(s->await.until);
	STATE(s->watch.seq), STATE(s->watch.last);
	STATE_HAS(s->log_watch), STATE_HAS(s->look), STATE_HAS(s->look_at_once), STATE_HAS(s->taps);
	state_mix("examine", state_session(s->examine.worker)), STATE(s->examine.seq);
	STATE_TEXT(s->name), STATE_TEXT(s->peer), STATE(s->fragment_count);
	STATE_TEXT(s->worker_address), STATE_TEXT(s->waits_for);
	for (int i = 0; i < FRAGI_AMOUNTS; i++)
		STATE(s->has[i]), STATE(s->used[i]);
	STATE(s->load), STATE(s->label_count), STATE(s->is_reporting), STATE(s->is_new);
	STATE(s->report_bytes), STATE(s->to_report), STATE(s->is_drained), STATE(s->has_left);
	STATE(s->is_revoked), STATE(s->placed), STATE(s->hosts), STATE(s->more_hosts);
	for (const struct drv_host *h = s->first_host; h != NULL; h = h->next_there)
		STATE(h->app->run), STATE(h->number);
	STATE(s->lease_sent_ns), STATE(s->lease_heard_ns), STATE(s->told_end);
	STATE(s->last_source.run), STATE(s->last_source.changes);
	STATE_TEXT(s->dropped);
	STATE(s->seq), STATE(s->joined_ns), STATE(s->heard_ns), STATE(s->heard_again_ns);
	state_timer(&s->beat);
}

static inline void state_of_process(const struct drv_process *p)
{
	STATE(p->epoch), STATE(p->state), STATE(p->goal), STATE(p->asked);
	state_mix("session", state_session(p->session));
	STATE_HAS(p->prepared), STATE_HAS(p->stats), STATE(p->counted_ns);
	STATE(p->looked_until_ns), STATE_HAS(p->report);
	if (p->report != NULL) {
		STATE(p->report->count), STATE(p->report->has_failed);
		STATE(p->report->has_stopped), STATE(p->report->is_done);
		STATE_HAS(p->report->exit), STATE(p->report->had_ended);
	}
	STATE(p->is_orderly), STATE(p->is_lost), STATE(p->is_adopted), STATE(p->has_begun);
	STATE(p->may_have_left), STATE(p->is_moved), STATE(p->change), STATE(p->sources);
	STATE(p->delivered_sum), STATE(p->is_doubted), STATE(p->is_idle);
	STATE(p->sent), STATE(p->delivered);
}

static inline void state_of_host(const struct drv_host *h)
{
	const struct drv_replacement *r = &h->replacement;
	const struct drv_restarts *s = &h->restarts;

	STATE(h->number), state_of_process(&h->now), state_of_process(&h->next);
	STATE_TEXT(h->worker), STATE_TEXT(h->node), STATE_TEXT(h->memory);
	STATE_TEXT(h->first_memory), STATE_TEXT(h->name), STATE(h->fragment_count);
	STATE(r->phase), STATE(r->cause), STATE(r->is_anew), STATE(r->is_resumed);
	STATE(r->is_old_swap), STATE(r->is_given_up), STATE(r->at_ns), STATE(r->until_ns);
	STATE_TEXT(r->failed), STATE(r->failed_code), state_mix("from", state_session(r->from));
	STATE(r->was_on), STATE_TEXT(r->was_at), STATE(r->is_leaving), STATE(r->is_refused);
	STATE(r->left), STATE(r->seen_version), STATE_TEXT(r->stays), STATE(r->retry_ns);
	STATE_TEXT(r->home), STATE(r->returns);
	STATE(s->count), STATE(s->earlier), STATE(s->moves), STATE(s->first_code);
	for (uint32_t i = 0; s->begun_ns != NULL && i < h->on_failure->intensity; i++)
		STATE(s->begun_ns[i]);
	STATE_TEXT(s->first), STATE_TEXT(s->first_op), STATE(s->first_is_asked),
		STATE_TEXT(s->last);
	STATE(h->lease_over_ns), STATE(h->past.is_inexact), STATE(h->past.sums.op_count);
	STATE_HAS(h->tables), STATE(h->failed), STATE(h->first_flow), STATE(h->inner_flow_count);
	STATE(h->edge_count), STATE(h->transport_count), STATE(h->is_out_of_reach);
	STATE(h->noted_no_memory);
}

static inline void state_of_swap(const struct drv_swap *s)
{
	STATE(s->host->number), STATE(s->connection), STATE(s->seq), STATE(s->probation_ns);
	STATE(s->until_ns), STATE(s->has_begun), STATE(s->is_taken), STATE(s->source_bytes);
	STATE(s->set_count), STATE_TEXT(s->who), STATE_TEXT(s->library), STATE_TEXT(s->old);
}

static inline void state_of_fragment(const struct drv_fragment *f)
{
	state_mix("host", f->host != NULL ? f->host->number : 0);
	STATE(f->in_host), STATE(f->place.worker), STATE_TEXT(f->place.reason);
}

static inline void state_of_app(const struct drv_app *a)
{
	STATE(a->id), STATE(a->run), STATE(a->epoch), STATE(a->source.size), STATE(a->before.size);
	STATE_TEXT(a->given.by), STATE(a->given.timeout_ns), STATE(a->given.connection);
	STATE(a->given.seq), STATE(a->origin), STATE_HAS(a->adopting);
	if (a->adopting != NULL)
		STATE(a->adopting->is_touched), STATE(a->adopting->is_kept),
			STATE_HAS(a->adopting->placed), STATE(a->adopting->seen);
	STATE(a->kept.state), STATE(a->kept.change), STATE(a->next.is_wanted), STATE(a->next.run);
	STATE_TEXT(a->next.by), STATE(a->next.reserved_bytes), STATE(a->state);
	STATE(a->host_count), STATE(a->asked_count), STATE(a->replaced_count);
	for (int i = 0; i < DRV_HOST_STATES; i++)
		STATE(a->hosts_in[i]);
	STATE(a->flows.count), STATE_HAS(a->flows.resolving), STATE_HAS(a->flows.tokens);
	state_timer(&a->timers.phase), state_timer(&a->timers.start), state_timer(&a->timers.judge);
	state_timer(&a->timers.retry), state_timer(&a->timers.progress);
	state_mix("moving", a->moving != NULL ? a->moving->number : 0);
	if (a->swap != NULL)
		state_of_swap(a->swap);
	STATE(a->moves.is_back), STATE(a->moves.looked), STATE(a->moves.until_ns);
	STATE_HAS(a->suspicions), STATE(a->diag.count), STATE_HAS(a->diag_host);
	STATE_TEXT(a->placing.nearest), STATE_TEXT(a->placing.missing), STATE(a->placing.is_cut);
	STATE(a->placing.again_ns), STATE(a->workers_changed), STATE(a->end);
	STATE(a->turn.is_awake), STATE(a->turn.decided);
	STATE(a->times.given_ns), STATE(a->times.started_ns), STATE(a->times.running_ns);
	STATE(a->times.ending_ns), STATE(a->times.ended_ns);
	STATE(a->summary.result), STATE(a->summary.exit_code), STATE(a->summary.failure.code);
	STATE(a->settings.count), STATE(a->settings.last), STATE(a->settings.sources);
	state_timer(&a->settings.timeout), STATE_HAS(a->settings.source);
	for (const struct drv_parameter *p = a->settings.changed; p != NULL; p = p->next)
		STATE(p->at_ns), STATE_TEXT(p->text), STATE_TEXT(p->who);
	for (size_t i = 0; a->fragments != NULL && i < a->spec->fragment_count; i++)
		state_of_fragment(&a->fragments[i]);
	for (uint32_t k = 0; k < a->host_count; k++)
		state_of_host(&a->hosts[k]);
}

static inline void state_of_quantiles(const struct fragi_quantiles *q)
{
	STATE(q->count), STATE(q->p50), STATE(q->p99), STATE(q->p999), STATE(q->max);
	STATE(q->error_ns), STATE(q->total_ns);
	for (int i = 0; i < FRAGI_HIST_BARS; i++)
		STATE(q->bars[i]);
}

/* What anybody would be shown of it. */
static inline void state_of_views(const struct drv_app *a)
{
	struct fragi_arena arena = {0};
	struct drv_view_at at = {0};
	struct drv_view_operator op;
	struct fragi_summary_flow flow;

	while (drv_view_operator(a, &at, &op)) {
		STATE(op.fragment), STATE(op.number), STATE(op.is_running), STATE(op.has_ended);
		STATE_TEXT(op.pools), STATE_TEXT(op.row.name), STATE(op.row.ticks);
		state_of_quantiles(&op.row.compute);
		STATE(op.row.time_ns), STATE(op.row.waiting_ns), STATE(op.row.realtime.policy);
		STATE(op.row.realtime.priority), STATE(op.row.realtime.period_ns);
		for (int i = 0; i < FRAGI_OP_COUNTERS; i++)
			STATE(op.row.counters[i]);
	}
	for (size_t i = 0; i < drv_view_flow_count(a); i++) {
		if (drv_view_flow(a, i, &arena, &flow) < 0)
			break;
		STATE_TEXT(flow.from), STATE_TEXT(flow.to), STATE_TEXT(flow.edge);
		STATE(flow.encrypted), STATE(flow.capacity), STATE_TEXT(flow.policy);
		for (size_t k = 0; k < FRAGI_COUNTERS; k++)
			STATE(flow.counters[k]);
		for (int k = 0; k < FRAGI_DROP_REASONS; k++)
			STATE(flow.dropped[k]);
		STATE(flow.lost), STATE(flow.in_flight), STATE_TEXT(flow.lost_because);
		STATE(flow.exact), STATE(flow.sent_at_least), STATE(flow.sent_at_most);
		STATE(flow.delivered_at_least), STATE(flow.delivered_at_most);
		STATE(flow.lost_at_least), state_of_quantiles(&flow.latency);
		STATE_TEXT(flow.latency_reason);
	}
	fragi_arena_fini(&arena);
}

static inline void state_of_history(const struct drv_history *h)
{
	STATE(h->first_notice), STATE(h->last_notice);
	for (int i = 0; i < FW_NOTICE_KINDS; i++)
		STATE(h->counts[i]);
	for (const struct drv_ended *e = h->ended; e != NULL; e = e->next) {
		STATE(e->run), STATE_TEXT(e->name), STATE_TEXT(e->started_by);
		STATE(e->outcome_bytes), STATE(e->source_bytes), STATE(e->start_timeout_ns);
		STATE(e->result), STATE(e->exit_code), STATE(e->ended_unix_ns);
		STATE(e->duration_ns), STATE_TEXT(e->sentence), STATE(e->is_wanted);
		STATE(e->restarts), STATE(e->is_cut), STATE(e->is_untold), STATE(e->change);
	}
	STATE(h->ended_count), STATE(h->ended_bytes);
}

static inline void state_of_driver(const struct drv_core *c)
{
	STATE(c->machine.state_bytes), STATE(c->config.realtime_offset_ns);
	STATE(c->timers.count), STATE(c->timers.reserved), STATE(c->client_count);
	STATE_TEXT(c->refused_peer), STATE(c->refused_ns), STATE(c->held_count);
	state_mix("dropped", state_session(c->dropped));
	for (const struct drv_session *s = c->waiting; s != NULL; s = s->next_waiting)
		state_mix("waiting", s->number);
	STATE_HAS(c->windows), STATE(c->losses_ns), STATE(c->lines.count), STATE(c->lines.last);
	for (const struct drv_placed *p = c->placed; p != NULL; p = p->next) {
		STATE(p->run);
		for (uint32_t i = 0; i < p->count; i++)
			STATE(p->at[i].host), STATE_TEXT(p->at[i].worker);
	}
	for (size_t i = 0; i < c->foreign_count; i++)
		STATE(c->foreign[i].first), STATE(c->foreign[i].last);
	STATE_HAS(c->outstanding), STATE(c->born_ns), STATE(c->pause.sum_ns);
	STATE(c->pause.defers), STATE(c->leaves);
	STATE(c->pause.defers), STATE(c->leaves);
	STATE(c->workers_version), STATE(c->away_count), STATE(c->drained_count);
	STATE(c->over_count), STATE_HAS(c->awake), STATE(c->last_run), STATE(c->last_epoch);
	STATE(c->last_tap), STATE(c->given_run), STATE(c->last_change), STATE(c->settled_change);
	STATE(c->written_change), STATE(c->numbers_change), STATE(c->is_behind);
	STATE_TEXT(c->behind_why), STATE(c->held_answer_count), STATE(c->held_answer_number);
	STATE(c->has_room), STATE(c->is_restoring), STATE(c->turn), STATE(c->stops);
	STATE(c->now_ns), STATE(c->real_ns), STATE(c->items), STATE(c->work_left);
	state_of_history(&c->history);
	for (size_t i = 0; i < c->session_count; i++)
		state_of_session(c->sessions[i]);
	for (size_t i = 0; i < c->app_count; i++) {
		state_of_app(c->apps[i]);
		state_of_views(c->apps[i]);
	}
}

#endif
