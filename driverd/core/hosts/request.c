// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>
#include <driverd/core/hosts/swap.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/policy.h>

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

/* How much its fragments may take together; 0: one of them has no limit, or nobody enforces it. */
static int64_t limit_of(const struct drv_host *host, enum fragi_amount amount)
{
	const struct fragi_spec_fragment *fragments = host->app->spec->fragments;
	const enum fragi_bound bound = fragi_amount_bound(amount);
	const bool is_share = bound == FRAGI_BOUND_SHARE;
	int64_t sum = 0;

	if (bound == FRAGI_BOUND_NONE || (is_share && host->app->core->config.is_local))
		return 0;
	for (uint32_t i = 0; i < host->fragment_count; i++) {
		const struct fragi_spec_requirements *own =
			&fragments[host->fragments[i]].requirements;

		if (!is_share && own->limit[amount] == 0)
			return 0;
		sum += is_share ? own->wanted[amount] : own->limit[amount];
	}
	return is_share ? fragi_amount_clamp(amount, (uint64_t)sum) : sum;
}

/* The profile of its MIG instance; empty: it has none. */
static const char *mig_of(const struct drv_host *host)
{
	const struct fragi_spec_fragment *fragments = host->app->spec->fragments;

	for (uint32_t i = 0; !host->app->core->config.is_local && i < host->fragment_count; i++)
		if (fragments[host->fragments[i]].requirements.mig != NULL)
			return fragments[host->fragments[i]].requirements.mig->text;
	return "";
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
		.mig = mig_of(host),
	};
	for (int i = 0; i < FRAGI_AMOUNTS; i++)
		message.create.limits[i] = limit_of(host, (enum fragi_amount)i);
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

static int fill_edge(struct drv_host *host, uint32_t index, bool sends, const uint8_t *token,
		     struct fw_edge *out)
{
	const struct drv_app *app = host->app;
	const struct fragi_flow_info *flow = &app->flows.items[index];
	char *name = fragi_arena_alloc(&app->core->actions->arena, 3 * FRAG_NAME_MAX + 3);

	if (name == NULL)
		return -ENOMEM;
	if (sends)
		fragi_flow_to(app->flows.infos, flow, name, 3 * FRAG_NAME_MAX + 3);
	else
		fragi_flow_from(app->flows.infos, flow, name, 3 * FRAG_NAME_MAX + 3);
	*out = (struct fw_edge){
		.flow = index,
		.sends = sends,
		.fragment = app->fragments[sends ? flow->from_fragment : flow->to_fragment].in_host,
		.op = sends ? flow->from_op : flow->to_op,
		.port = sends ? flow->from_port : flow->to_port,
		.peer = app->fragments[sends ? flow->to_fragment : flow->from_fragment]
				.host->number,
		.window_messages = flow->capacity,
		.window_bytes = FRAGI_WINDOW_BYTES,
		.message_bytes_max = FRAGI_MESSAGE_BYTES_MAX,
		.policy = (uint32_t)flow->policy,
		.order = flow->order,
		.other_end = name,
		.transport = flow->transport,
		.encrypt = drv_flow_is_encrypted(app, flow),
	};
	memcpy(out->token, token, FW_TOKEN_BYTES);
	return 0;
}

/* Whether end i sends: of a host's two ends of a flow to itself the sending one comes first. */
static bool sends_at(const struct drv_host *host, uint32_t i)
{
	const struct fragi_flow_info *flow = &host->app->flows.items[host->edges[i]];

	return host->app->fragments[flow->from_fragment].host == host &&
	       (i == 0 || host->edges[i - 1] != host->edges[i]);
}

/* Fills in WIRE with all peers of the host, or with one (only; NULL: all). Returns 0 or -ENOMEM. */
static int fill_wire(struct drv_host *host, const struct drv_host *only, struct fw_host_wire *wire)
{
	struct drv_app *app = host->app;
	struct fragi_arena *arena = &app->core->actions->arena;
	bool *is_peer = fragi_arena_alloc(arena, app->host_count + 1);

	assert(host->edge_count <= FW_ROWS_MAX && "checked when they were counted");
	wire->edges = fragi_arena_alloc(arena, host->edge_count * sizeof(*wire->edges));
	wire->peers = fragi_arena_alloc(
		arena, (app->host_count < host->edge_count ? app->host_count : host->edge_count) *
			       sizeof(*wire->peers));
	app->core->items -= host->edge_count;
	wire->announced = drv_host_answer(app->fragments[0].host)->announced;
	wire->announced_count = drv_host_answer(app->fragments[0].host)->announced_count;
	if (is_peer == NULL || wire->edges == NULL || wire->peers == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < host->edge_count; i++) {
		const uint8_t *token = drv_flow_token(app, host->edges[i]);
		struct fw_edge *edge = &wire->edges[wire->edge_count];
		const struct drv_host *peer;

		if (token == NULL ||
		    fill_edge(host, host->edges[i], sends_at(host, i), token, edge) < 0)
			return -ENOMEM;
		if (only != NULL && edge->peer != only->number)
			continue;
		wire->edge_count++;
		if (edge->peer == 0 || is_peer[edge->peer])
			continue;
		is_peer[edge->peer] = true;
		peer = &app->hosts[edge->peer - 1];
		wire->peers[wire->peer_count++] = (struct fw_peer){
			.host = peer->number,
			.epoch = peer->now.epoch,
			.addresses = drv_host_answer(peer)->addresses,
			.address_count = drv_host_answer(peer)->address_count,
			.name = drv_text(app->core, "%s on worker %s", peer->name, peer->worker),
		};
	}
	return 0;
}

static int send_wire(struct drv_host *host)
{
	struct fw_message message = {.kind = FW_HOST_WIRE};
	int r = fill_wire(host, NULL, &message.wire);

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
	message.stop.restarts = host->replacement.phase == DRV_PHASE_YIELDING ||
				host->replacement.phase == DRV_PHASE_ENDING;
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

void drv_request_suspend(struct drv_host *peer, const struct drv_host *host)
{
	struct fw_message message = {.kind = FW_HOST_SUSPEND,
				     .suspend = {host->number, host->now.epoch}};

	if (send_to(peer, &message) < 0)
		drv_app_fail_for_memory(peer->app);
}

void drv_request_past(struct drv_host *host)
{
	struct fw_message message = {.kind = FW_HOST_PAST, .stats = host->past.sums};

	message.stats.final = !host->past.is_inexact;
	host->app->core->items -= message.stats.flow_count;
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
	int r = fill_wire(host, peer, &message.wire);

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
		drv_app_fail(
			app, FRAGI_FAILURE_GRAPH_TOO_LARGE, host,
			"what %s on worker %s needs to %s does not fit into a frame of %u MiB; %s",
			host->name, host->worker, drv_goal_request(goal), FW_FRAME_MAX >> 20,
			goal == DRV_GOAL_WIRED
				? "give its fragments to more workers or hosts, or shorter names to what its flows join"
				: "shorten the graph, or the files that go with it");
	return true;
}
