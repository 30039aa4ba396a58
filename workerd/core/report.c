// SPDX-License-Identifier: Apache-2.0
#include <workerd/core/state.h>

#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <track/account.h>

#define REPORT_ROOM 65536u /* of a frame, for what HOST_REPORT holds beside the source */

/*
 * A driver that serves may go away while hosts run, and come back, even without its state. Of each
 * host that it had made is kept what it needs to go on: the request, the last answer to PREPARE,
 * what the host has said once and does not repeat, how it ended, and the sums of earlier epochs.
 * That is kept until the driver says that the run is over, because nothing tells whether it has got
 * and written down what was sent to it. Memory is bounded: what ended longest ago is forgotten
 * first, and what is too large together is not kept, the texts of graphs before anything else: a
 * driver that has its state does not need them.
 */

/* Finds the newest epoch of the host: the list has the newest first. */
static struct wrk_kept *kept_of(const struct wrk_core *core, uint64_t run, uint32_t number)
{
	struct wrk_kept *kept = core->kept;

	while (kept != NULL && (kept->run != run || kept->number != number))
		kept = kept->next;
	return kept;
}

/* Finds the host's entry of the message's epoch. */
static struct wrk_kept *kept_for(const struct wrk_core *core, const struct fw_message *message)
{
	struct wrk_kept *kept = core->kept;

	while (kept != NULL && (kept->run != message->run || kept->number != message->host ||
				kept->epoch != message->epoch))
		kept = kept->next;
	return kept;
}

static void drop(struct wrk_core *core, struct wrk_copy *copy)
{
	core->kept_bytes -= copy->bytes;
	fw_message_free(copy->message);
	*copy = (struct wrk_copy){0};
}

/* Drops the graph that was kept first. Returns whether there was one. */
static bool drop_text(struct wrk_core *core)
{
	struct wrk_kept *oldest = NULL;

	for (struct wrk_kept *kept = core->kept; kept != NULL; kept = kept->next)
		if (kept->source != NULL)
			oldest = kept;
	if (oldest != NULL)
		wrk_source_drop(core, oldest);
	return oldest != NULL;
}

/* Keeps the message in place of the one that was there. A message that is too large is not kept. */
static void keep(struct wrk_core *core, struct wrk_copy *at, const struct fw_message *message,
		 struct wrk_actions *actions)
{
	struct wrk_copy copy = {0};
	int r = fw_message_copy(message, &copy.message, &copy.bytes);

	drop(core, at);
	if (r == -ENOMEM)
		actions->out_of_memory = true;
	if (r < 0)
		return;
	*at = copy;
	core->kept_bytes += copy.bytes;
	while (core->kept_bytes > WRK_KEPT_BYTES && drop_text(core))
		;
	if (core->kept_bytes > WRK_KEPT_BYTES)
		drop(core, at);
}

static void clear_epoch(struct wrk_core *core, struct wrk_kept *kept)
{
	for (uint32_t i = 0; i < kept->event_count; i++)
		drop(core, &kept->events[i]);
	kept->event_count = 0;
	drop(core, &kept->stats);
	drop(core, &kept->exit);
	fragi_free(kept->reason);
	kept->reason = NULL;
	kept->is_wired = kept->started = kept->has_ended = false;
	kept->yields = kept->is_closing = false;
	kept->stop = FW_STOP_NOT;
	kept->failure = FRAGI_FAILURE_NONE;
}

static void forget(struct wrk_core *core, struct wrk_kept **at)
{
	struct wrk_kept *kept = *at;

	*at = kept->next;
	core->kept_count--;
	clear_epoch(core, kept);
	drop(core, &kept->create);
	wrk_source_drop(core, kept);
	drop(core, &kept->prepared);
	drop(core, &kept->past);
	fragi_free(kept);
}

void wrk_keep_forget(struct wrk_core *core, uint64_t run)
{
	struct wrk_kept **at = &core->kept;

	while (*at != NULL)
		if (run == 0 || (*at)->run == run)
			forget(core, at);
		else
			at = &(*at)->next;
}

bool wrk_keep_is_stale(const struct wrk_core *core, const struct fw_message *create)
{
	const struct wrk_kept *kept = kept_of(core, create->run, create->host);

	return kept != NULL && kept->epoch >= create->epoch;
}

/* The one that ended longest ago makes room. */
static void make_room(struct wrk_core *core)
{
	struct wrk_kept **oldest = NULL;

	for (struct wrk_kept **at = &core->kept; *at != NULL; at = &(*at)->next)
		if ((*at)->has_ended)
			oldest = at;
	if (core->kept_count >= WRK_KEPT_MAX && oldest != NULL)
		forget(core, oldest);
}

/* Whether it has more rows: pools are reported once they were looked at. */
static bool is_wider(const struct fw_host_stats *stats, const struct fw_host_stats *than)
{
	return stats->flow_count > than->flow_count ||
	       (stats->flow_count == than->flow_count && stats->pool_count > than->pool_count);
}

/*
 * The epoch before is over: what it counted is added to those before it. One that was not wired has
 * fewer rows.
 */
static void add_past(struct wrk_core *core, struct wrk_kept *kept)
{
	const uint32_t inner =
		kept->prepared.message != NULL ? kept->prepared.message->prepared.flow_count : 0;
	const struct fw_host_stats *stats =
		kept->stats.message != NULL ? &kept->stats.message->stats : NULL;

	kept->restarts++;
	if (stats == NULL || !stats->final) {
		kept->is_inexact = kept->is_inexact || kept->is_wired;
		return;
	}
	for (uint32_t i = 0; i < inner && i < stats->flow_count; i++)
		fragi_account_settle(&stats->flows[i]);
	if (kept->past.message != NULL && is_wider(stats, &kept->past.message->stats)) {
		const struct wrk_copy wider = kept->stats;

		kept->stats = kept->past;
		kept->past = wider;
	}
	if (kept->past.message != NULL) {
		fw_stats_add(&kept->past.message->stats, &kept->stats.message->stats);
		drop(core, &kept->stats);
	} else {
		kept->past = kept->stats;
		kept->stats = (struct wrk_copy){0};
	}
	kept->past.message->kind = FW_HOST_PAST;
}

/* If there is no room for the text of the graph, without it. */
static void keep_create(struct wrk_core *core, struct wrk_kept *kept,
			const struct fw_message *create, struct wrk_actions *actions)
{
	struct fw_message *small = fragi_arena_alloc(&actions->arena, sizeof(*small));

	wrk_source_drop(core, kept);
	if (small == NULL) {
		actions->out_of_memory = true;
		drop(core, &kept->create);
		return;
	}
	*small = *create;
	small->create.source_bytes = 0;
	keep(core, &kept->create, small, actions);
	explicit_bzero(small, sizeof(*small));
	if (kept->create.message != NULL)
		wrk_source_keep(core, kept);
	if (core->kept_bytes > WRK_KEPT_BYTES)
		wrk_source_drop(core, kept);
}

void wrk_keep_create(struct wrk_core *core, const struct fw_message *create, int64_t now_ns,
		     struct wrk_actions *actions)
{
	struct wrk_kept *kept = kept_of(core, create->run, create->host);

	while (kept != NULL &&
	       (kept->is_beside || kept->run != create->run || kept->number != create->host))
		kept = kept->next;
	if (!core->keeps_hosts)
		return;
	if (kept != NULL && !create->create.is_beside) {
		add_past(core, kept);
		clear_epoch(core, kept);
	} else {
		make_room(core);
		kept = fragi_calloc(1, sizeof(*kept));
		if (kept == NULL) {
			actions->out_of_memory = true;
			return;
		}
		kept->next = core->kept;
		core->kept = kept;
		core->kept_count++;
		kept->run = create->run;
		kept->number = create->host;
		kept->made_ns = now_ns;
		kept->is_beside = create->create.is_beside;
	}
	/*
	 * The operators of a moved host ran on another worker; their counts from there come with
	 * HOST_PAST.
	 */
	kept->has_run = kept->has_run || create->create.is_moved;
	kept->is_inexact = kept->is_inexact || create->create.is_moved;
	if (create->create.is_moved || create->create.restarts > kept->restarts)
		kept->restarts = create->create.restarts;
	kept->epoch = create->epoch;
	keep_create(core, kept, create, actions);
}

bool wrk_keep_past(struct wrk_core *core, const struct fw_message *past,
		   struct wrk_actions *actions)
{
	struct wrk_kept *kept = kept_for(core, past), **at = &core->kept;

	if (kept != NULL) {
		kept->is_beside = false;
		kept->has_run = true;
		kept->restarts = kept->restarts > 0 ? kept->restarts : 1;
		keep(core, &kept->past, past, actions);
		kept->is_inexact = !past->stats.final || kept->past.message == NULL;
	}
	while (*at != NULL) /* the epochs before it are within these sums */
		if ((*at)->run == past->run && (*at)->number == past->host &&
		    (*at)->epoch < past->epoch)
			forget(core, at);
		else
			at = &(*at)->next;
	return kept != NULL;
}

void wrk_keep_adopted(struct wrk_core *core, const struct fw_message *adopted)
{
	struct wrk_kept *kept = kept_for(core, adopted);

	if (kept != NULL)
		kept->is_inexact = kept->is_inexact || adopted->adopted.is_inexact;
}

void wrk_keep_request(struct wrk_core *core, const struct fw_message *request,
		      struct wrk_actions *actions)
{
	struct wrk_kept *kept = kept_for(core, request);
	const struct fw_host_stop *stop = &request->stop;

	if (kept == NULL)
		return;
	kept->yields = kept->yields || (request->kind == FW_HOST_STOP && request->stop.restarts);
	kept->is_wired = kept->is_wired || request->kind == FW_HOST_WIRE;
	if (request->kind == FW_HOST_START)
		kept->started = kept->has_run = true;
	if ((request->kind != FW_HOST_STOP && request->kind != FW_HOST_KILL) || stop->restarts)
		return;
	kept->stop = request->kind == FW_HOST_KILL ? FW_STOP_KILLED
		     : stop->drain_ns > 0          ? FW_STOP_DRAINS
		     : kept->stop != FW_STOP_NOT   ? FW_STOP_DRAINED_ENDS
						   : FW_STOP_ENDS;
	kept->is_closing = kept->is_closing || kept->stop == FW_STOP_ENDS;
	kept->failure = stop->failure;
	if (kept->reason != NULL || stop->reason == NULL || stop->reason[0] == '\0')
		return;
	kept->reason = fragi_strdup(stop->reason);
	if (kept->reason == NULL)
		actions->out_of_memory = true;
}

/* Whether the state is reported once only, so that there is room for it. */
static bool is_final_state(enum fw_host_state state)
{
	return state == FW_STATE_DONE || state == FW_STATE_FAILED || state == FW_STATE_STOPPED;
}

/* RUNNING and IDLE are said again with the next beat; a start that failed is said once too. */
static void keep_event(struct wrk_core *core, struct wrk_kept *kept,
		       const struct fw_message *message, struct wrk_actions *actions)
{
	const struct fw_host_event *event = &message->event;
	struct wrk_copy *at = &kept->events[kept->event_count];
	bool is_event = message->kind == FW_HOST_EVENT;
	bool is_final = !is_event || is_final_state(event->state);
	uint32_t most = is_final ? WRK_KEPT_EVENTS_MAX : WRK_KEPT_EVENTS_MAX - WRK_KEPT_FINAL;

	if (is_event && (event->state == FW_STATE_RUNNING || event->state == FW_STATE_IDLE))
		return;
	/* Its driver told it to end, and heeds nothing but its end from then on. */
	if (kept->stop >= FW_STOP_ENDS)
		return;
	if (!is_event && message->result.failure.code == FRAGI_FAILURE_NONE)
		return;
	for (uint32_t i = 0; is_event && i < kept->event_count; i++)
		if (kept->events[i].message != NULL &&
		    kept->events[i].message->kind == FW_HOST_EVENT &&
		    kept->events[i].message->event.state == event->state &&
		    kept->events[i].message->event.peer == event->peer)
			at = &kept->events[i];
	if (at >= &kept->events[most] && at == &kept->events[kept->event_count])
		return;
	keep(core, at, message, actions);
	kept->event_count += at == &kept->events[kept->event_count];
}

void wrk_keep_frame(struct wrk_core *core, const struct fw_message *message,
		    struct wrk_actions *actions)
{
	struct wrk_kept *kept = kept_for(core, message);

	if (kept == NULL)
		return;
	if (message->kind == FW_HOST_EVENT || message->kind == FW_HOST_STARTED)
		keep_event(core, kept, message, actions);
	if (message->kind == FW_HOST_PREPARED && message->prepared.ok)
		keep(core, &kept->prepared, message, actions);
}

void wrk_keep_exit(struct wrk_core *core, const struct wrk_host *host,
		   const struct fw_host_stats *stats, const struct fw_host_exit *exit,
		   struct wrk_actions *actions)
{
	struct fw_message message = {.kind = FW_HOST_STATS,
				     .run = host->run,
				     .host = host->number,
				     .epoch = host->epoch};
	struct wrk_kept *kept = kept_for(core, &message);

	if (kept == NULL)
		return;
	if (stats != NULL) {
		message.stats = *stats;
		message.stats.final = true;
		keep(core, &kept->stats, &message, actions);
	}
	message.kind = FW_HOST_EXIT;
	message.exit = *exit;
	keep(core, &kept->exit, &message, actions);
	kept->has_ended = true;
}

/* Sends what was kept of an earlier epoch under the present one. */
static void send_if_any(struct wrk_core *core, const struct wrk_copy *copy, uint64_t epoch,
			struct wrk_actions *actions)
{
	if (copy->message == NULL)
		return;
	copy->message->epoch = epoch;
	wrk_session_send(core, copy->message, actions);
}

static void report(struct wrk_core *core, const struct wrk_kept *kept, int64_t now_ns,
		   struct wrk_actions *actions)
{
	struct fw_message *message = wrk_message(actions, FW_HOST_REPORT, NULL);

	if (message == NULL || kept->create.message == NULL)
		return;
	if (kept->has_ended && kept->exit.message == NULL) /* it would be taken for one that runs */
		return;
	message->run = kept->run;
	message->host = kept->number;
	message->epoch = kept->epoch;
	message->report = (struct fw_host_report){
		.create = kept->create.message->create,
		.started = kept->started,
		.has_run = kept->has_run,
		.stop = kept->stop,
		.failure = kept->failure,
		.reason = kept->reason,
		.restarts = kept->restarts,
		.is_inexact = kept->is_inexact,
		.age_ns = now_ns > kept->made_ns ? now_ns - kept->made_ns : 0,
		.is_closing = kept->is_closing,
		.yields = kept->yields,
		.is_beside = kept->is_beside,
		.is_wired = kept->is_wired,
	};
	wrk_source_report(kept, FW_FRAME_MAX - REPORT_ROOM, &message->report.create);
	wrk_session_send(core, message, actions);
	send_if_any(core, &kept->prepared, kept->epoch, actions);
	send_if_any(core, &kept->past, kept->epoch, actions);
	for (uint32_t i = 0; i < kept->event_count; i++)
		send_if_any(core, &kept->events[i], kept->epoch, actions);
	if (kept->has_ended && kept->yields)
		wrk_move_send_saved(core, kept->run, kept->number, kept->epoch, actions);
	if (kept->has_ended)
		send_if_any(core, &kept->stats, kept->epoch, actions);
	send_if_any(core, &kept->exit, kept->epoch, actions);
}

void wrk_report_take_over(struct wrk_core *core, struct wrk_actions *actions)
{
	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;) {
		const struct wrk_kept *kept = kept_of(core, host->run, host->number);

		/* The others are of a run that is over, and being killed. */
		if (kept == NULL)
			continue;
		if (kept->create.message == NULL) { /* the driver would not hear of it */
			wrk_host_kill(core, host, FRAGI_FAILURE_DRIVER_LOST,
				      "it cannot be reported to the driver that has come back",
				      actions);
			continue;
		}
		host->connection = core->connection;
		wrk_emit(actions, WRK_DO_REPORTER_HOST)->host = host->id;
	}
	for (uint32_t i = 0; i < WRK_PAST_MAX; i++)
		core->past[i].connection = core->connection;
	if (core->kept == NULL)
		wrk_emit(actions, WRK_DO_FORGET_SAVED);
}

void wrk_report_all(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	for (const struct wrk_kept *kept = core->kept; kept != NULL; kept = kept->next)
		report(core, kept, now_ns, actions);
	wrk_session_send(core, wrk_message(actions, FW_REPORTED, NULL), actions);
}
