// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/transports.h>
#include <base/units.h>
#include <graph/transport.h>
#include <text/node.h>

/*
 * The flows between the fragments of an application. How they travel, and whether their variables
 * can be shared, is decided as soon as it is known where the fragments run; their hosts open these
 * transports while they prepare. When all hosts have answered with their tables, the flows between
 * ports and the edges of each host are made of these.
 */

struct fragi_fragment_info drv_flow_end_info(const struct drv_host *host)
{
	return (struct fragi_fragment_info){.host = host->number, .memory = host->first_memory};
}

/* The names lie in the table of transports, or in the spec. */
static void open_in(struct drv_host *host, const struct drv_host *peer,
		    const struct fragi_choice *choice)
{
	const char *transport = choice->transport;

	for (uint32_t i = 0; i < host->transport_count; i++)
		if (strcmp(host->transports[i], transport) == 0)
			return;
	host->transports[host->transport_count++] = transport;
	drv_log(host->app->core, FRAGI_LOG_DEBUG, host->app->spec->application,
		"%s opens the transport %s for flows with %s: %s", host->name, transport,
		peer->name, choice->reason);
}

/* Why the hosts of a worker share no memory, as it says itself. */
static const char *reason_of(const struct drv_host *host)
{
	return host->no_memory[0] != '\0' ? host->no_memory : "its log says why";
}

/*
 * Logs why the host shares no memory: if the graph leaves the transport to the driver, flows go
 * another way, and people would not see why.
 */
static void note_no_memory(struct drv_host *host)
{
	if (host->no_memory[0] == '\0' || host->noted_no_memory)
		return;
	host->noted_no_memory = true;
	drv_log(host->app->core, FRAGI_LOG_INFO, host->app->spec->application,
		"%s on worker %s shares no memory with other hosts: %s", host->name, host->worker,
		host->no_memory);
}

/* Part of a sentence: why two hosts do not share memory, and what to do; instead: one of two. */
static const char *explain(struct drv_core *core, enum fragi_apart apart,
			   const struct drv_host *from, const struct drv_host *to,
			   const char *instead)
{
	const struct drv_host *unknown = from->memory[0] == '\0' ? from : to;

	switch (apart) {
	case FRAGI_APART_MACHINE:
		return drv_text(
			core,
			"worker %s and worker %s are on two machines; %s, or give both fragments to workers of one machine",
			from->worker, to->worker, instead);
	case FRAGI_APART_NETWORK:
		return drv_text(
			core,
			"worker %s and worker %s are in two network namespaces, as two containers are; %s, or start both workers in one",
			from->worker, to->worker, instead);
	case FRAGI_APART_USER:
		return drv_text(
			core,
			"worker %s and worker %s run their hosts as two users; %s, or start both with one --host-user",
			from->worker, to->worker, instead);
	default:
		return drv_text(core, "worker %s shares none: %s; %s, or remove that reason",
				unknown->worker, reason_of(unknown), instead);
	}
}

static void refuse_transport(struct drv_app *app, const struct fragi_spec_flow *flow,
			     const struct fragi_spec_end *to, enum fragi_apart apart)
{
	const struct fragi_spec_end *from = &flow->from;
	const size_t first = app->diag.count;

	(void)fragi_node_error(
		&app->diag, to->place != NULL ? to->place : flow->place, NULL,
		"flow %s.%s%s%s -> %s.%s%s%s: edge %s needs hosts that share memory, but %s",
		from->fragment, from->op, from->port != NULL ? "." : "",
		from->port != NULL ? from->port : "", to->fragment, to->op,
		to->port != NULL ? "." : "", to->port != NULL ? to->port : "", flow->edge,
		explain(app->core, apart, drv_host_running(app, from->fragment),
			drv_host_running(app, to->fragment), "leave edge out"));
	fragi_diag_classify(&app->diag, first, FRAGI_FAILURE_MEMORY_NOT_SHARED, NULL);
}

static void choose_transport(struct drv_app *app, const struct fragi_spec_flow *flow,
			     const struct fragi_spec_end *to_end)
{
	struct drv_host *from = drv_host_running(app, flow->from.fragment),
			*to = drv_host_running(app, to_end->fragment);
	const struct fragi_fragment_info sender = drv_flow_end_info(from),
					 receiver = drv_flow_end_info(to);
	const struct fragi_choice choice = fragi_transport_choose(flow->edge, &sender, &receiver);

	if (choice.transport == NULL)
		return;
	if (choice.apart != FRAGI_APART_NOT) {
		refuse_transport(app, flow, to_end, choice.apart);
		return;
	}
	if (flow->edge == NULL || !fragi_transport_exists(flow->edge)) {
		note_no_memory(from);
		note_no_memory(to);
	}
	open_in(from, to, &choice);
	open_in(to, from, &choice);
}

/* Hosts of a shared variable cannot do without. */
static void check_reader(struct drv_app *app, const struct fragi_spec_variable *variable,
			 const struct fragi_spec_party *reader)
{
	const struct drv_host *from = drv_host_running(app, variable->writer.fragment);
	const struct drv_host *to = drv_host_running(app, reader->fragment);
	const size_t first = app->diag.count;
	enum fragi_apart apart;

	if (from == to)
		return;
	apart = fragi_identity_apart(from->first_memory, to->first_memory);
	if (apart == FRAGI_APART_NOT)
		return;
	(void)fragi_node_error(&app->diag, reader->place, NULL,
			       "variable %s of fragment %s cannot be read by fragment %s: %s",
			       variable->name, variable->writer.fragment, reader->fragment,
			       explain(app->core, apart, from, to, "send it over a flow"));
	fragi_diag_classify(&app->diag, first, FRAGI_FAILURE_MEMORY_NOT_SHARED, NULL);
}

int drv_flows_choose_transports(struct drv_app *app)
{
	const struct fragi_spec *spec = app->spec;

	for (size_t i = 0; i < spec->flow_count; i++)
		for (size_t k = 0; k < spec->flows[i].to_count; k++)
			choose_transport(app, &spec->flows[i], &spec->flows[i].to[k]);
	for (size_t i = 0; i < spec->variable_count; i++)
		for (size_t k = 0; k < spec->variables[i].reader_count; k++)
			if (spec->variables[i].path == NULL)
				check_reader(app, &spec->variables[i],
					     &spec->variables[i].readers[k]);
	return app->diag.count != 0 ? -EINVAL : 0;
}

/* How far the resolving of an application's flows has come. */
struct drv_resolving {
	uint32_t stage;
	/* in the stage: the host, its fragment, and a row of that one's table; or a flow */
	uint32_t host, fragment, row;
	size_t flow;
	struct fragi_resolving *between; /* NULL: not begun */
};

static bool is_enough(const struct drv_app *app)
{
	return app->core->items <= 0;
}

static void *take(struct drv_app *app, size_t count, size_t size)
{
	return fragi_arena_alloc(&app->arena, count * size);
}

static int op_info(struct drv_app *app, const struct fw_op *op, struct fragi_op_info *out)
{
	struct fragi_port_info *ports = take(app, op->port_count, sizeof(*ports));

	if (ports == NULL)
		return -ENOMEM;
	*out = (struct fragi_op_info){op->name, op->type, ports, op->port_count, op->has_gaps};
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
			.tensors = op->ports[i].tensors,
		};
	return 0;
}

static int gather_interface_ports(struct drv_app *app, const struct fw_fragment *table,
				  struct fragi_fragment_info *info)
{
	info->interfaces = take(app, table->interface_port_count, sizeof(*info->interfaces));
	if (info->interfaces == NULL)
		return -ENOMEM;
	info->interface_count = table->interface_port_count;
	app->core->items -= table->interface_port_count;
	for (uint32_t i = 0; i < table->interface_port_count; i++)
		info->interfaces[i] = (struct fragi_interface_info){
			table->interface_ports[i].instance, table->interface_ports[i].port,
			table->interface_ports[i].op, table->interface_ports[i].op_port};
	return 0;
}

/* One fragment's table. */
static int gather_table(struct drv_app *app, const struct drv_host *host, uint32_t index)
{
	struct drv_resolving *resolving = app->flows.resolving;
	const struct fw_fragment *table = &host->tables->prepared.fragments[index];
	const struct fragi_spec_fragment *fragment = &app->spec->fragments[host->fragments[index]];
	struct fragi_fragment_info *info = &app->flows.infos[host->fragments[index]];

	if (info->name == NULL) {
		*info = drv_flow_end_info(host);
		info->name = fragment->name;
		info->ops = take(app, table->op_count, sizeof(*info->ops));
		info->op_count = table->op_count;
		info->has_gaps = table->has_gaps;
		if (gather_interface_ports(app, table, info) < 0)
			return -ENOMEM;
	}
	if (info->ops == NULL)
		return -ENOMEM;
	for (; resolving->row < table->op_count; resolving->row++) {
		if (is_enough(app))
			return -EAGAIN;
		app->core->items--;
		if (op_info(app, &table->ops[resolving->row], &info->ops[resolving->row]) < 0)
			return -ENOMEM;
	}
	resolving->row = 0;
	return 0;
}

/* Fragments of which a host that failed has not even a table. */
static void fill_gaps(struct drv_app *app)
{
	for (size_t f = 0; f < app->spec->fragment_count; f++) {
		struct fragi_fragment_info *info = &app->flows.infos[f];

		if (info->name != NULL)
			continue;
		*info = drv_flow_end_info(app->fragments[f].host);
		info->name = app->spec->fragments[f].name;
		info->has_gaps = true;
	}
}

/* The tables that hosts reported, as those of the whole application, in the order of the spec. */
static int gather_tables(struct drv_app *app)
{
	struct drv_resolving *resolving = app->flows.resolving;
	int r;

	if (app->flows.infos == NULL)
		app->flows.infos = take(app, app->spec->fragment_count, sizeof(*app->flows.infos));
	if (app->flows.infos == NULL)
		return -ENOMEM;
	for (; resolving->host < app->host_count; resolving->host++, resolving->fragment = 0) {
		const struct drv_host *host = &app->hosts[resolving->host];

		for (; resolving->fragment < host->tables->prepared.fragment_count;
		     resolving->fragment++) {
			r = gather_table(app, host, resolving->fragment);
			if (r < 0)
				return r;
		}
	}
	fill_gaps(app);
	return 0;
}

/* Flows inside hosts come first, host by host, each host's in the order of its ledger. */
static int gather_inner_flows(struct drv_app *app)
{
	struct drv_resolving *resolving = app->flows.resolving;
	size_t count = 0;

	for (uint32_t h = 0; app->flows.items == NULL && h < app->host_count; h++)
		count += app->hosts[h].tables->prepared.flow_count;
	if (app->flows.items == NULL)
		app->flows.items = fragi_calloc(count + 1, sizeof(*app->flows.items));
	if (app->flows.items == NULL)
		return -ENOMEM;
	for (; resolving->host < app->host_count; resolving->host++, resolving->row = 0) {
		struct drv_host *host = &app->hosts[resolving->host];
		const struct fw_host_prepared *prepared = &host->tables->prepared;

		if (resolving->row == 0)
			host->first_flow = (uint32_t)app->flows.count;
		host->inner_flow_count = prepared->flow_count;
		for (; resolving->row < prepared->flow_count; resolving->row++) {
			const struct fw_inner_flow *flow = &prepared->flows[resolving->row];

			if (is_enough(app))
				return -EAGAIN;
			app->core->items--;
			app->flows.items[app->flows.count++] = (struct fragi_flow_info){
				.from_fragment = host->fragments[flow->from_fragment],
				.from_op = flow->from_op,
				.from_port = flow->from_port,
				.to_fragment = host->fragments[flow->to_fragment],
				.to_op = flow->to_op,
				.to_port = flow->to_port,
				.capacity = flow->capacity,
				.encrypt = flow->encrypt,
				.policy = (enum frag_policy)flow->policy,
			};
		}
	}
	return 0;
}

static struct drv_host *host_of(const struct drv_app *app, uint32_t fragment)
{
	return app->fragments[fragment].host;
}

static int resolve_between(struct drv_app *app)
{
	struct drv_resolving *resolving = app->flows.resolving;
	const struct fragi_spec *spec = app->spec;
	int r;

	if (resolving->between == NULL)
		resolving->between = fragi_resolving_begin(
			spec->flows, spec->flow_count, -1, app->flows.infos, spec->fragment_count,
			app->flows.items, app->flows.count, &app->diag);
	if (resolving->between == NULL)
		return -ENOMEM;
	r = fragi_resolving_step(resolving->between, &app->core->items);
	if (r == 0)
		fragi_resolving_take(resolving->between, &app->flows.items, &app->flows.count);
	/* The errors of hosts leave gaps in the tables: what would be made from them is not. */
	return r == 0 && app->diag.count != 0 ? -EINVAL : r;
}

/* A host has a row in its frames for each of its flows, and two for one to itself. */
static int check_row_counts(struct drv_app *app)
{
	const size_t first = app->diag.count;
	int r = 0;

	for (uint32_t h = 0; h < app->host_count; h++) {
		const struct drv_host *host = &app->hosts[h];
		uint32_t rows = host->inner_flow_count + host->edge_count;

		if (rows <= FW_ROWS_MAX)
			continue;
		if (app->diag.count == 0)
			app->diag_host = host;
		r = fragi_diag_add(
			&app->diag, -EMSGSIZE, NULL, 0, 0,
			"%s on worker %s has %u flows, and a host can have %d; give its fragments to more workers or hosts",
			host->name, host->worker, rows, FW_ROWS_MAX);
	}
	fragi_diag_classify(&app->diag, first, FRAGI_FAILURE_GRAPH_TOO_LARGE, NULL);
	return r;
}

static int count_edges(struct drv_app *app)
{
	struct drv_resolving *resolving = app->flows.resolving;
	int r;

	for (; resolving->flow < app->flows.count; resolving->flow++) {
		const struct fragi_flow_info *flow = &app->flows.items[resolving->flow];

		if (is_enough(app))
			return -EAGAIN;
		app->core->items--;
		if (!flow->between_hosts)
			continue;
		host_of(app, flow->from_fragment)->edge_count++;
		host_of(app, flow->to_fragment)->edge_count++;
	}
	r = check_row_counts(app);
	if (r < 0)
		return r;
	app->flows.rows = take(app, app->flows.count, sizeof(*app->flows.rows));
	if (app->flows.rows == NULL)
		return -ENOMEM;
	for (uint32_t h = 0; h < app->host_count; h++) {
		app->hosts[h].edges =
			take(app, app->hosts[h].edge_count, sizeof(*app->hosts[h].edges));
		if (app->hosts[h].edges == NULL)
			return -ENOMEM;
		app->hosts[h].edge_count = 0;
	}
	return 0;
}

/* Appends a flow to the edges of a host. Returns its row in the host's ledger. */
static uint32_t add_edge(struct drv_host *host, size_t flow)
{
	host->edges[host->edge_count] = (uint32_t)flow;
	return host->inner_flow_count + host->edge_count++;
}

/* Each host's flows to others, in the order of the run. */
static int gather_edges(struct drv_app *app)
{
	struct drv_resolving *resolving = app->flows.resolving;

	for (; resolving->flow < app->flows.count; resolving->flow++) {
		const struct fragi_flow_info *flow = &app->flows.items[resolving->flow];
		struct drv_edge_rows *rows = &app->flows.rows[resolving->flow];

		if (is_enough(app))
			return -EAGAIN;
		app->core->items--;
		if (!flow->between_hosts)
			continue;
		rows->sender = add_edge(host_of(app, flow->from_fragment), resolving->flow);
		rows->receiver = add_edge(host_of(app, flow->to_fragment), resolving->flow);
	}
	return 0;
}

static bool is_loopback(const char *host)
{
	struct fragi_address address = {0};

	snprintf(address.host, sizeof(address.host), "%s", host);
	return fragi_address_is_loopback(&address);
}

const struct fw_address *drv_flow_address(const struct drv_host *host,
					  const struct fragi_flow_info *flow)
{
	const struct fw_host_prepared *prepared = drv_host_answer(host);

	for (uint32_t i = 0; i < prepared->address_count; i++)
		if (strcmp(prepared->addresses[i].transport, flow->transport) == 0)
			return &prepared->addresses[i];
	return NULL;
}

/* Whether the peer can reach the host at all. A host is reported once. */
static void check_pair(struct drv_app *app, const struct fragi_flow_info *flow,
		       struct drv_host *host, const struct drv_host *peer)
{
	const size_t first = app->diag.count;

	if (host->is_out_of_reach)
		return;
	if (drv_flow_address(host, flow) == NULL) {
		fragi_diag_add(
			&app->diag, -ENOENT, NULL, 0, 0,
			"%s on worker %s has not opened the transport %s, over which %s on worker %s is to reach it; see what worker %s logged",
			host->name, host->worker, flow->transport, peer->name, peer->worker,
			host->worker);
		fragi_diag_classify(&app->diag, first, FRAGI_FAILURE_TRANSPORT_MISSING, NULL);
	} else if (strcmp(host->node, peer->node) != 0 &&
		   is_loopback(host->now.session->worker_address)) {
		fragi_diag_add(
			&app->diag, -EINVAL, NULL, 0, 0,
			"worker %s offers the loopback address %s for data, but worker %s is on another node; start %s with --worker-address and an address that %s can reach",
			host->worker, host->now.session->worker_address, peer->worker, host->worker,
			peer->worker);
		fragi_diag_classify(&app->diag, first, FRAGI_FAILURE_LOOPBACK_ADDRESS, NULL);
	} else {
		return;
	}
	host->is_out_of_reach = true;
	if (first == 0)
		app->diag_host = host;
}

static int check_reach(struct drv_app *app)
{
	struct drv_resolving *resolving = app->flows.resolving;

	for (; resolving->flow < app->flows.count; resolving->flow++) {
		const struct fragi_flow_info *flow = &app->flows.items[resolving->flow];
		struct drv_host *from = host_of(app, flow->from_fragment),
				*to = host_of(app, flow->to_fragment);

		if (is_enough(app))
			return -EAGAIN;
		app->core->items--;
		if (!flow->between_hosts)
			continue;
		check_pair(app, flow, from, to);
		check_pair(app, flow, to, from);
	}
	return 0;
}

/* One after the other; each returns -EAGAIN until it is done. */
static int (*const stages[])(struct drv_app *app) = {
	gather_tables, gather_inner_flows, resolve_between, count_edges, gather_edges, check_reach,
};

int drv_flows_resolve(struct drv_app *app)
{
	struct drv_resolving *resolving = app->flows.resolving;
	int r = 0;

	if (resolving == NULL)
		resolving = app->flows.resolving = fragi_calloc(1, sizeof(*resolving));
	if (resolving == NULL)
		return -ENOMEM;
	while (r == 0 && resolving->stage < FRAG_COUNT_OF(stages)) {
		r = stages[resolving->stage](app);
		if (r == -EAGAIN)
			return r;
		resolving->stage++;
		resolving->host = resolving->fragment = resolving->row = 0;
		resolving->flow = 0;
	}
	drv_flows_resolving_end(app);
	return r == 0 && app->diag.count != 0 ? -EINVAL : r;
}

void drv_flows_resolving_end(struct drv_app *app)
{
	struct drv_resolving *resolving = app->flows.resolving;

	if (resolving == NULL)
		return;
	fragi_resolving_end(resolving->between);
	fragi_free(resolving);
	app->flows.resolving = NULL;
}

bool drv_flow_is_encrypted(const struct drv_app *app, const struct fragi_flow_info *flow)
{
	return flow->between_hosts && (flow->encrypt || app->core->config.encrypts_data);
}

const uint8_t *drv_flow_token(struct drv_app *app, uint32_t flow)
{
	if (app->flows.tokens == NULL) {
		app->flows.tokens = take(app, app->flows.count, FW_TOKEN_BYTES);
		if (app->flows.tokens == NULL)
			return NULL;
		app->core->config.random(app->core->config.random_arg, app->flows.tokens,
					 app->flows.count * FW_TOKEN_BYTES);
	}
	return app->flows.tokens + (size_t)flow * FW_TOKEN_BYTES;
}

void drv_flows_draw_tokens(struct drv_host *host)
{
	struct drv_app *app = host->app;

	for (uint32_t i = 0; app->flows.tokens != NULL && i < host->edge_count; i++)
		app->core->config.random(app->core->config.random_arg,
					 app->flows.tokens +
						 (size_t)host->edges[i] * FW_TOKEN_BYTES,
					 FW_TOKEN_BYTES);
}
