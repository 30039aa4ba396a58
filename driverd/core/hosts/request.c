// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>
#include <driverd/core/hosts/swap.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

/*
 * The requests that bring a host to its goal: PREPARE (it is created), WIRE and START, which it
 * answers, STOP and KILL, which it answers by ending.
 */
static int send_as(const struct drv_host *host, struct drv_session *session, uint64_t epoch,
		   struct fw_message *message)
{
	assert(session != NULL);
	assert(host->app->core->decides && "an event only records");
	message->run = host->app->run;
	message->host = host->number;
	message->epoch = epoch;
	return drv_send(session, message);
}

static int send_to(struct drv_host *host, struct fw_message *message)
{
	return send_as(host, host->now.session, host->now.epoch, message);
}

/* How much its fragments may take together; 0: one of them has no limit. */
static int64_t limit_of(const struct drv_host *host, enum fragi_amount amount)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < host->fragment_count; i++) {
		int64_t own =
			host->app->spec->fragments[host->fragments[i]].requirements.limit[amount];

		if (own == 0)
			return 0;
		sum += own;
	}
	return sum < UINT32_MAX || amount == FRAGI_AMOUNT_MEMORY ? sum : UINT32_MAX;
}

/* A worker that has got the source of the application is not sent it with each host. */
static bool has_source(const struct drv_session *session, const struct drv_app *app)
{
	return session->minor >= FW_LAST_SOURCE_MINOR && session->last_source.run == app->run &&
	       session->last_source.changes == app->settings.sources;
}

static void note_source(struct drv_session *session, const struct drv_app *app, bool is_other)
{
	session->last_source.run = is_other ? 0 : app->run;
	session->last_source.changes = app->settings.sources;
}

static int send_create_to(struct drv_host *host, struct drv_session *session, uint64_t epoch,
			  bool is_beside)
{
	struct drv_app *app = host->app;
	struct fw_message message = {.kind = FW_HOST_CREATE};
	size_t source_bytes = app->source.size;
	const void *source = is_beside ? drv_swap_source(host, &source_bytes) : NULL;
	const char **names = fragi_arena_alloc(&app->core->actions->arena,
					       host->fragment_count * sizeof(*names));
	bool has_last_source = source == NULL && has_source(session, app);
	int r;

	if (names == NULL)
		return -ENOMEM;
	if (source == NULL)
		source = app->source.bytes;
	if (has_last_source)
		source_bytes = 0;
	for (uint32_t i = 0; i < host->fragment_count; i++)
		names[i] = app->spec->fragments[host->fragments[i]].name;
	message.create = (struct fw_host_create){
		.application = app->spec->application,
		.source = source,
		.source_bytes = (uint32_t)source_bytes,
		.has_last_source = has_last_source,
		.fragments = names,
		.fragment_count = host->fragment_count,
		.beat_ns = app->core->config.beat_ns,
		.dead_ns = app->core->config.dead_ns,
		.transports = host->transports,
		.transport_count = host->transport_count,
		.lease_ns = app->core->config.is_local ? 0 : host->on_failure->lease_ns,
		.is_moved = !is_beside && host->now.is_moved,
		.restarts = host->restarts.count,
		.memory = host->first_memory[0] != '\0' ? host->first_memory : FW_MEMORY_NONE,
		.may_restart = host->on_failure->policy != FRAGI_ON_FAILURE_STOP ||
			       (!app->core->config.ends_with_app && !app->core->config.is_local),
		.is_beside = is_beside,
		.cpu_limit = (uint32_t)limit_of(host, FRAGI_AMOUNT_CPU),
		.memory_limit_bytes = (uint64_t)limit_of(host, FRAGI_AMOUNT_MEMORY),
	};
	memcpy(message.create.data_key, app->keys.data, FW_DATA_KEY_BYTES);
	memcpy(message.create.variables_key, app->keys.variables, FW_VARIABLES_KEY_BYTES);
	app->core->items -= (int64_t)source_bytes / 64;
	r = send_as(host, session, epoch, &message);
	if (r == 0 && !has_last_source)
		note_source(session, app, source != app->source.bytes);
	explicit_bzero(message.create.data_key, FW_DATA_KEY_BYTES);
	explicit_bzero(message.create.variables_key, FW_VARIABLES_KEY_BYTES);
	return r;
}

static int send_create(struct drv_host *host)
{
	drv_host_asked(host, host->now.session);
	return send_create_to(host, host->now.session, host->now.epoch, false);
}

static int send_wire(struct drv_host *host)
{
	struct fw_message message = {.kind = FW_HOST_WIRE};
	int r = drv_wiring_fill(host, NULL, &message.wire);

	return r < 0 ? r : send_to(host, &message);
}

static int send_start(struct drv_host *host)
{
	struct fw_message message = {.kind = FW_HOST_START};

	return send_to(host, &message);
}

struct fw_message drv_request_end(const struct drv_app *app, enum fw_kind kind)
{
	const struct fragi_summary *summary = &app->summary;

	return (struct fw_message){.kind = kind,
				   .stop = {.exit_code = summary->exit_code,
					    .reason = summary->failure.sentence,
					    .failure = summary->failure.code}};
}

static int send_stop(struct drv_host *host)
{
	struct fw_message message = drv_request_end(host->app, FW_HOST_STOP);

	if (host->now.goal == DRV_GOAL_DRAINED)
		message.stop.drain_ns = host->app->core->config.drain_ns;
	message.stop.restarts = host->replacement.phase == DRV_PHASE_ENDING;
	return send_to(host, &message);
}

static int send_kill(struct drv_host *host)
{
	struct fw_message message = drv_request_end(host->app, FW_HOST_KILL);

	message.stop.restarts =
		host->replacement.phase >= DRV_PHASE_ENDING && host->app->end < DRV_END_FAILED;
	return send_to(host, &message);
}

/*
 * The request that is sent for a goal, and the host's state from then on; PLACED: it keeps its
 * state.
 */
static const struct {
	int (*send)(struct drv_host *host);
	enum drv_host_state during;
} requests[DRV_GOALS] = {
	[DRV_GOAL_PREPARED] = {send_create, DRV_HOST_PREPARING},
	[DRV_GOAL_WIRED] = {send_wire, DRV_HOST_WIRING},
	[DRV_GOAL_RUNNING] = {send_start, DRV_HOST_STARTING},
	[DRV_GOAL_DRAINED] = {send_stop, DRV_HOST_PLACED},
	[DRV_GOAL_CLOSED] = {send_stop, DRV_HOST_STOPPING},
	[DRV_GOAL_KILLED] = {send_kill, DRV_HOST_KILLED},
};

/* Kills the host: its worker is asked to, or the host is gone when the time for that is over. */
static bool kill(struct drv_host *host)
{
	bool is_sent = send_kill(host) != -ENOMEM;

	if (is_sent)
		drv_host_transition(host, DRV_HOST_KILLED);
	return is_sent;
}

int drv_request_next(struct drv_host *host)
{
	return send_create_to(host, host->next.session, host->next.epoch, true);
}

void drv_request_no_next(struct drv_host *host)
{
	struct fw_message message = {.kind = FW_HOST_KILL, .stop = {.restarts = true}};

	(void)send_as(host, host->next.session, host->next.epoch, &message);
}

void drv_request_yield(struct drv_host *host)
{
	struct fw_message message = {.kind = FW_HOST_STOP, .stop = {.restarts = true}};

	message.stop.drain_ns = host->app->core->config.drain_ns;
	if (send_to(host, &message) < 0)
		drv_app_fail_for_memory(host->app);
}

void drv_request_suspend(struct drv_host *peer, const struct drv_host *host)
{
	struct fw_message message = {.kind = FW_HOST_SUSPEND,
				     .suspend = {host->number, host->now.epoch}};

	if (send_to(peer, &message) < 0)
		drv_app_fail_for_memory(peer->app);
}

void drv_request_past(struct drv_host *host)
{
	const struct drv_past *past = &host->past;
	struct fw_message message = {.kind = FW_HOST_PAST,
				     .stats = {.final = !past->is_inexact,
					       .ops = past->ops,
					       .op_count = past->op_count,
					       .flows = past->flows,
					       .flow_count = past->flow_count,
					       .pools = past->pools,
					       .pool_count = past->pool_count,
					       .facts.cpu_ns = past->cpu_ns}};

	host->app->core->items -= past->flow_count;
	if (send_to(host, &message) < 0)
		drv_app_fail_for_memory(host->app);
}

void drv_request_past_of(const struct drv_host *host, struct drv_session *from)
{
	struct fw_message message = {.kind = FW_HOST_PAST};

	(void)send_as(host, from, host->now.epoch,
		      &message); /* it keeps what nobody asks for, else */
}

void drv_request_rewire(struct drv_host *host, const struct drv_host *peer)
{
	struct fw_message message = {.kind = FW_HOST_WIRE};
	int r = drv_wiring_fill(host, peer, &message.wire);

	if (r == 0)
		r = send_to(host, &message);
	if (r < 0) /* it is a part of a frame that was sent before */
		drv_app_fail_for_memory(host->app);
}

bool drv_request(struct drv_host *host)
{
	struct drv_app *app = host->app;
	enum drv_goal goal = host->now.goal;
	int r;

	if (goal == DRV_GOAL_KILLED && host->now.state == DRV_HOST_PLACED)
		drv_host_transition(host, DRV_HOST_GONE); /* nobody was asked to start it */
	if (host->now.asked == goal || host->now.state == DRV_HOST_GONE)
		return true;
	if (host->now.state == DRV_HOST_KILLED) /* for its restart, which was given up */
		return true;
	app->core->items--;
	if (goal == DRV_GOAL_KILLED)
		return kill(host);
	if (app->end >= (goal < DRV_GOAL_DRAINED ? DRV_END_FAILED : DRV_END_AT_ONCE))
		return false; /* another host could not be asked: all end next */
	host->now.asked = goal;
	if (requests[goal].during != DRV_HOST_PLACED)
		drv_host_transition(host, requests[goal].during);
	r = requests[goal].send(host);
	if (r == -ENOMEM)
		drv_app_fail_for_memory(app);
	else if (r < 0)
		drv_app_fail(app, FRAGI_FAILURE_GRAPH_TOO_LARGE, host,
			     "what %s on worker %s needs to %s does not fit into a frame: %s",
			     host->name, host->worker, drv_goal_request(goal), frag_strerror(r));
	return true;
}
