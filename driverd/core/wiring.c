// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>

#define WINDOW_BYTES ((uint64_t)64 << 20)
#define MESSAGE_BYTES_MAX ((uint64_t)1 << 30)

static void *take(struct drv_app *app, size_t count, size_t size)
{
	return fragi_arena_alloc(&app->arena, count * size);
}

/* Where the graph names an operator; NULL: it was composed in C. */
static const struct fragi_node *place_of(const struct fragi_spec_fragment *fragment, const char *op)
{
	for (size_t i = 0; i < fragment->operator_count; i++)
		if (strcmp(fragment->operators[i].name, op) == 0)
			return fragment->operators[i].place;
	return NULL;
}

static int op_info(struct drv_app *app, const struct fragi_spec_fragment *fragment,
		   const struct fw_op *op, struct fragi_op_info *out)
{
	struct fragi_port_info *ports = take(app, op->port_count, sizeof(*ports));

	if (ports == NULL)
		return -ENOMEM;
	*out = (struct fragi_op_info){op->name, op->type, ports, op->port_count,
				      place_of(fragment, op->name)};
	for (uint32_t i = 0; i < op->port_count; i++)
		ports[i] = (struct fragi_port_info){
			.name = op->ports[i].name,
			.dir = (enum frag_dir)op->ports[i].dir,
			.type = op->ports[i].type,
			.type_id = op->ports[i].type_id,
			.has_codec = op->ports[i].has_codec,
			.flags = op->ports[i].flags,
			.capacity = op->ports[i].capacity,
			.policy = (enum frag_policy)op->ports[i].policy,
		};
	return 0;
}

/* The tables that hosts reported, as those of the whole application, in the order of the spec. */
static int gather_tables(struct drv_app *app)
{
	struct fragi_fragment_info *infos = take(app, app->spec->fragment_count, sizeof(*infos));

	if (infos == NULL)
		return -ENOMEM;
	for (uint32_t h = 0; h < app->host_count; h++) {
		const struct drv_host *host = &app->hosts[h];

		for (uint32_t i = 0; i < host->fragment_count; i++) {
			const struct fw_fragment *table = &host->prepared->prepared.fragments[i];
			struct fragi_fragment_info *info = &infos[host->fragments[i]];

			const struct fragi_spec_fragment *fragment =
				&app->spec->fragments[host->fragments[i]];

			*info = (struct fragi_fragment_info){
				.name = fragment->name,
				.ops = take(app, table->op_count, sizeof(*info->ops)),
				.op_count = table->op_count,
				.host = host->number,
			};
			for (uint32_t k = 0; k < table->op_count; k++)
				if (info->ops == NULL ||
				    op_info(app, fragment, &table->ops[k], &info->ops[k]) < 0)
					return -ENOMEM;
		}
	}
	app->infos = infos;
	return 0;
}

/* Flows inside hosts come first, host by host, each host's in the order of its ledger. */
static int gather_inner_flows(struct drv_app *app)
{
	size_t count = 0;

	for (uint32_t h = 0; h < app->host_count; h++)
		count += app->hosts[h].prepared->prepared.flow_count;
	app->flows = fragi_calloc(count + 1, sizeof(*app->flows));
	if (app->flows == NULL)
		return -ENOMEM;
	for (uint32_t h = 0; h < app->host_count; h++) {
		struct drv_host *host = &app->hosts[h];
		const struct fw_host_prepared *prepared = &host->prepared->prepared;

		host->first_flow = (uint32_t)app->flow_count;
		host->inner_flow_count = prepared->flow_count;
		for (uint32_t i = 0; i < prepared->flow_count; i++)
			app->flows[app->flow_count++] = (struct fragi_flow_info){
				.from_fragment = host->fragments[prepared->flows[i].from_fragment],
				.from_op = prepared->flows[i].from_op,
				.from_port = prepared->flows[i].from_port,
				.to_fragment = host->fragments[prepared->flows[i].to_fragment],
				.to_op = prepared->flows[i].to_op,
				.to_port = prepared->flows[i].to_port,
				.capacity = prepared->flows[i].capacity,
				.policy = (enum frag_policy)prepared->flows[i].policy,
			};
	}
	return 0;
}

static struct drv_host *host_of(const struct drv_app *app, uint32_t fragment)
{
	return app->fragments[fragment].host;
}

/* Each host's flows to others, in the order of the run. */
static int gather_edges(struct drv_app *app)
{
	for (size_t i = 0; i < app->flow_count; i++) {
		if (!app->flows[i].between_hosts)
			continue;
		host_of(app, app->flows[i].from_fragment)->edge_count++;
		host_of(app, app->flows[i].to_fragment)->edge_count++;
	}
	for (uint32_t h = 0; h < app->host_count; h++) {
		app->hosts[h].edges =
			take(app, app->hosts[h].edge_count, sizeof(*app->hosts[h].edges));
		if (app->hosts[h].edges == NULL)
			return -ENOMEM;
		app->hosts[h].edge_count = 0;
	}
	for (size_t i = 0; i < app->flow_count; i++) {
		struct drv_host *from = host_of(app, app->flows[i].from_fragment);
		struct drv_host *to = host_of(app, app->flows[i].to_fragment);

		if (!app->flows[i].between_hosts)
			continue;
		from->edges[from->edge_count++] = (uint32_t)i;
		to->edges[to->edge_count++] = (uint32_t)i;
	}
	return 0;
}

static bool is_loopback(const char *host)
{
	struct fragi_address address = {0};

	snprintf(address.host, sizeof(address.host), "%s", host);
	return fragi_address_is_loopback(&address);
}

/* Whether the two hosts of an edge can reach each other at all. */
static void check_pair(struct drv_app *app, const struct drv_host *host,
		       const struct drv_host *peer)
{
	const size_t first = app->diag.count;

	if (first == 0)
		app->diag_host = host;
	if (host->prepared->prepared.address_count == 0) {
		fragi_diag_add(&app->diag, -ENOENT, NULL, 0, 0,
			       "%s on worker %s has no data plane to reach %s on worker %s: %s",
			       host->name, host->worker, peer->name, peer->worker,
			       host->prepared->prepared.transport);
		fragi_diag_classify(&app->diag, first, FRAGI_FAILURE_TRANSPORT_MISSING, NULL);
	} else if (strcmp(host->node, peer->node) != 0 &&
		   is_loopback(host->session->worker_address)) {
		fragi_diag_add(
			&app->diag, -EINVAL, NULL, 0, 0,
			"worker %s offers the loopback address %s for data, but worker %s is on another node; start %s with --worker-address and an address that %s can reach",
			host->worker, host->session->worker_address, peer->worker, host->worker,
			peer->worker);
		fragi_diag_classify(&app->diag, first, FRAGI_FAILURE_LOOPBACK_ADDRESS, NULL);
	}
}

static void check_reach(struct drv_app *app)
{
	for (uint32_t h = 0; h < app->host_count; h++) {
		const struct drv_host *host = &app->hosts[h], *peer;

		if (host->edge_count == 0)
			continue;
		peer = host_of(app, app->flows[host->edges[0]].from_fragment);
		if (peer == host)
			peer = host_of(app, app->flows[host->edges[0]].to_fragment);
		check_pair(app, host, peer);
	}
}

int drv_wiring_resolve(struct drv_app *app)
{
	const struct fragi_spec *spec = app->spec;
	int r = gather_tables(app);

	if (r == 0)
		r = gather_inner_flows(app);
	if (r == 0)
		r = fragi_flows_resolve(spec->flows, spec->flow_count, -1, app->infos,
					spec->fragment_count, &app->diag, &app->flows,
					&app->flow_count);
	if (r == 0)
		r = fragi_flows_check(app->infos, spec->fragment_count, app->flows, app->flow_count,
				      &app->diag);
	if (r == 0)
		r = gather_edges(app);
	if (r == 0)
		check_reach(app);
	return r == 0 && app->diag.count != 0 ? -EINVAL : r;
}

/* The index of an application's fragment within its host. */
static uint32_t fragment_in_host(const struct drv_host *host, uint32_t fragment)
{
	uint32_t i = 0;

	while (host->fragments[i] != fragment)
		i++;
	return i;
}

static void fill_edge(struct drv_host *host, uint32_t index, bool sends, const uint8_t *token,
		      struct fw_edge *out)
{
	const struct drv_app *app = host->app;
	const struct fragi_flow_info *flow = &app->flows[index];
	char *name = fragi_arena_alloc(&app->core->actions->arena, 3 * FRAG_NAME_MAX + 3);

	if (name == NULL) {
		drv_short_of_memory(app->core);
		return;
	}
	if (sends)
		fragi_flow_to(app->infos, flow, name, 3 * FRAG_NAME_MAX + 3);
	else
		fragi_flow_from(app->infos, flow, name, 3 * FRAG_NAME_MAX + 3);
	*out = (struct fw_edge){
		.flow = index,
		.sends = sends,
		.fragment = fragment_in_host(host, sends ? flow->from_fragment : flow->to_fragment),
		.op = sends ? flow->from_op : flow->to_op,
		.port = sends ? flow->from_port : flow->to_port,
		.peer = host_of(app, sends ? flow->to_fragment : flow->from_fragment)->number,
		.window_messages = flow->capacity,
		.window_bytes = WINDOW_BYTES,
		.message_bytes_max = MESSAGE_BYTES_MAX,
		.policy = (uint32_t)flow->policy,
		.order = flow->order,
		.other_end = name,
		.transport = flow->transport,
		.transport_reason = flow->transport_reason,
	};
	memcpy(out->token, token, FW_TOKEN_BYTES);
}

/* Both ends of an edge get the same token: it is drawn when the first of them is wired. */
static const uint8_t *token_of(struct drv_app *app, uint32_t flow)
{
	if (app->tokens == NULL) {
		app->tokens = take(app, app->flow_count, FW_TOKEN_BYTES);
		if (app->tokens == NULL)
			return NULL;
		app->core->config.random(app->core->config.random_arg, app->tokens,
					 app->flow_count * FW_TOKEN_BYTES);
	}
	return app->tokens + (size_t)flow * FW_TOKEN_BYTES;
}

/* Of a host's two ends of a flow to itself the sending one comes first. */
static bool sends_at(const struct drv_host *host, uint32_t i)
{
	const struct fragi_flow_info *flow = &host->app->flows[host->edges[i]];

	return host_of(host->app, flow->from_fragment) == host &&
	       (i == 0 || host->edges[i - 1] != host->edges[i]);
}

int drv_wiring_fill(struct drv_host *host, struct fw_host_wire *wire)
{
	struct drv_app *app = host->app;
	struct fragi_arena *arena = &app->core->actions->arena;
	bool *is_peer = fragi_arena_alloc(arena, app->host_count + 1);

	wire->edges = fragi_arena_alloc(arena, host->edge_count * sizeof(*wire->edges));
	wire->peers = fragi_arena_alloc(arena, app->host_count * sizeof(*wire->peers));
	if (is_peer == NULL || wire->edges == NULL || wire->peers == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < host->edge_count; i++) {
		const uint8_t *token = token_of(app, host->edges[i]);
		struct fw_edge *edge = &wire->edges[i];
		const struct drv_host *peer;

		if (token == NULL)
			return -ENOMEM;
		fill_edge(host, host->edges[i], sends_at(host, i), token, edge);
		if (edge->peer == 0 || is_peer[edge->peer])
			continue;
		is_peer[edge->peer] = true;
		peer = &app->hosts[edge->peer - 1];
		wire->peers[wire->peer_count++] = (struct fw_peer){
			.host = peer->number,
			.epoch = peer->epoch,
			.addresses = peer->prepared->prepared.addresses,
			.address_count = peer->prepared->prepared.address_count,
			.name = peer->name,
		};
	}
	wire->edge_count = host->edge_count;
	return 0;
}
