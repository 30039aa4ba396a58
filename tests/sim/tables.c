// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <string.h>

#include <base/transports.h>

/*
 * What a simulated host says of itself in PREPARED, and what it is told in WIRE, held against the
 * truth.
 */

/* Its tables: each fragment has a (inputs i0.., output x) and b (input x, outputs o0..). */
struct tables {
	struct fw_fragment fragments[SIM_FRAGMENTS_MAX];
	struct fw_op ops[SIM_FRAGMENTS_MAX][2];
	struct fw_port ports[SIM_FRAGMENTS_MAX][2][SIM_FLOWS_MAX + 1];
	struct fw_inner_flow flows[SIM_FLOWS_MAX];
	char names[SIM_FRAGMENTS_MAX][2][SIM_FLOWS_MAX][8];
	char fragment_names[SIM_FRAGMENTS_MAX][8];
	struct fw_address addresses[FW_TRANSPORTS_MAX];
	uint32_t pid;
};

static void fill_port(struct fw_port *port, const char *name, enum frag_dir dir)
{
	*port = (struct fw_port){
		.name = name, .type = "i64", .dir = (uint32_t)dir, .type_id = 7, .has_codec = true};
}

static void fill_fragment(struct tables *tables, const struct sim_host *host, uint32_t i)
{
	const struct sim_app *app = host->app;
	uint32_t fragment = host->fragments[i];
	struct fw_op *ops = tables->ops[i];

	snprintf(tables->fragment_names[i], 8, "f%u", fragment);
	tables->fragments[i] = (struct fw_fragment){tables->fragment_names[i], ops, 2};
	ops[0] = (struct fw_op){"a", "source", tables->ports[i][0], app->in_count[fragment] + 1u};
	ops[1] = (struct fw_op){"b", "sink", tables->ports[i][1], app->out_count[fragment] + 1u};
	fill_port(&tables->ports[i][0][0], "x", FRAG_OUT);
	fill_port(&tables->ports[i][1][0], "x", FRAG_IN);
	for (uint32_t k = 0; k < app->in_count[fragment]; k++) {
		snprintf(tables->names[i][0][k], 8, "i%u", k);
		fill_port(&tables->ports[i][0][k + 1], tables->names[i][0][k], FRAG_IN);
	}
	for (uint32_t k = 0; k < app->out_count[fragment]; k++) {
		snprintf(tables->names[i][1][k], 8, "o%u", k);
		fill_port(&tables->ports[i][1][k + 1], tables->names[i][1][k], FRAG_OUT);
	}
}

static int place_of(const struct sim_host *host, uint32_t fragment)
{
	for (uint32_t i = 0; i < host->fragment_count; i++)
		if (host->fragments[i] == fragment)
			return (int)i;
	return -1;
}

/* The flows inside this process: within its fragments, and between them. */
static uint32_t fill_flows(struct tables *tables, struct sim_host *host)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < host->app->flow_count; i++) {
		struct sim_flow *flow = &host->app->flows[i];
		int from = place_of(host, flow->from_fragment),
		    to = place_of(host, flow->to_fragment);

		if (from >= 0 && !host->incoming)
			flow->from = host;
		if (to >= 0 && !host->incoming)
			flow->to = host;
		if (from < 0 || to < 0)
			continue;
		flow->in_host = true;
		flow->capacity = flow->given_capacity != 0 ? flow->given_capacity
				 : from == to              ? 1
							   : 4;
		if (flow->policy == FRAG_POLICY_LATEST)
			flow->capacity = 1;
		tables->flows[count++] = (struct fw_inner_flow){
			(uint32_t)from, flow->from_op, flow->from_port, (uint32_t)to,
			flow->to_op,    flow->to_port, flow->capacity,  (uint32_t)flow->policy};
	}
	return count;
}

uint32_t sim_transport(const char *name)
{
	uint32_t i = 0;

	while (fragi_transport_name(i) != NULL && strcmp(fragi_transport_name(i), name) != 0)
		i++;
	return i;
}

/* One for each transport that it opened: its pid. */
static uint32_t fill_addresses(struct tables *tables, const struct sim_host *host)
{
	uint32_t count = 0;

	tables->pid = (uint32_t)host->pid;
	for (uint32_t i = 0; fragi_transport_name(i) != NULL; i++)
		if ((host->opened & 1u << i) != 0)
			tables->addresses[count++] = (struct fw_address){
				fragi_transport_name(i), &tables->pid, sizeof(tables->pid)};
	return count;
}

void sim_tables_fill(struct sim_host *host, struct fw_host_prepared *out)
{
	static struct tables tables;

	memset(&tables, 0, sizeof(tables));
	for (uint32_t i = 0; i < host->fragment_count; i++)
		fill_fragment(&tables, host, i);
	out->ok = true;
	out->flows = tables.flows;
	out->flow_count = fill_flows(&tables, host);
	out->fragments = tables.fragments;
	out->fragment_count = host->fragment_count;
	out->addresses = tables.addresses;
	out->address_count = fill_addresses(&tables, host);
}

const char *sim_transport_of(const struct sim *sim, const struct sim_flow *flow)
{
	const char *a = sim->workers[flow->from->worker].memory;
	const char *b = sim->workers[flow->to->worker].memory;
	bool shares = a[0] != '\0' && strcmp(a, b) == 0;

	if (flow->given_edge != NULL && strcmp(flow->given_edge, "shm") == 0)
		return shares ? flow->given_edge : "nothing: it should have been refused";
	return shares && flow->given_edge == NULL ? "shm" : "ucx";
}

static bool share_memory(const struct sim *sim, const struct sim_flow *flow)
{
	return strcmp(sim->workers[flow->from->worker].memory,
		      sim->workers[flow->to->worker].memory) == 0;
}

/* A flow keeps its transport when its hosts go to other workers. */
static void check_transport(struct sim *sim, const struct sim_host *host, struct sim_flow *flow,
			    const struct fw_edge *edge)
{
	if (flow->transport == NULL && flow->from != NULL && flow->to != NULL)
		flow->transport = sim_transport_of(sim, flow);
	if (flow->transport == NULL || strcmp(edge->transport, flow->transport) != 0 ||
	    (strcmp(flow->transport, "shm") == 0 && !share_memory(sim, flow)))
		sim_fail(sim, "wiring", "an edge of pid %d goes over %s", host->pid,
			 edge->transport);
	else if ((host->opened & 1u << sim_transport(edge->transport)) == 0)
		sim_fail(sim, "wiring", "pid %d was not asked to open %s", host->pid,
			 edge->transport);
}

static uint32_t pid_of(const struct fw_peer *peer)
{
	uint32_t pid = 0;

	if (peer->address_count > 0 && peer->addresses->size == sizeof(pid))
		memcpy(&pid, peer->addresses->bytes, sizeof(pid));
	return pid;
}

/* The pid that is the peer of that number, as WIRE has it. */
static uint32_t named_in(const struct fw_host_wire *wire, uint32_t number)
{
	for (uint32_t i = 0; i < wire->peer_count; i++)
		if (wire->peers[i].host == number)
			return pid_of(&wire->peers[i]);
	return 0;
}

/* What WIRE says is held against what this simulator knows. */
static void take_edge(struct sim *sim, struct sim_host *host, const struct fw_host_wire *wire,
		      const struct fw_edge *edge, bool again)
{
	struct sim_app *app = host->app;
	struct sim_flow *flow = NULL;
	const struct sim_host *peer;

	for (uint32_t i = 0; i < app->flow_count && flow == NULL; i++) {
		struct sim_flow *f = &app->flows[i];
		bool mine = edge->sends ? place_of(host, f->from_fragment) == (int)edge->fragment
					: place_of(host, f->to_fragment) == (int)edge->fragment;

		if (mine && !f->in_host && (edge->sends ? f->from_op : f->to_op) == edge->op &&
		    (edge->sends ? f->from_port : f->to_port) == edge->port)
			flow = f;
	}
	if (flow == NULL || (!again && host->edge_count == SIM_FLOWS_MAX)) {
		sim_fail(sim, "wiring", "pid %d got an edge at %u.%u.%u, where no flow is",
			 host->pid, edge->fragment, edge->op, edge->port);
		return;
	}
	peer = edge->sends ? flow->to : flow->from;
	if (peer->number != edge->peer)
		sim_fail(sim, "wiring", "an edge of pid %d got host %u as its other end", host->pid,
			 edge->peer);
	if (!again)
		host->edges[host->edge_count++] =
			(struct sim_edge){(uint32_t)(flow - app->flows), edge->sends, edge->peer};
	if (named_in(wire, edge->peer) != (uint32_t)peer->pid)
		return; /* another one has taken its place meanwhile: that will be said */
	if (flow->token_known && memcmp(flow->token, edge->token, FW_TOKEN_BYTES) != 0)
		sim_fail(sim, "wiring", "the ends of an edge of %s got two tokens", app->name);
	if (flow->window != 0 && flow->window != edge->window_messages)
		sim_fail(sim, "wiring", "the ends of an edge of %s got two windows", app->name);
	check_transport(sim, host, flow, edge);
	memcpy(flow->token, edge->token, FW_TOKEN_BYTES);
	flow->token_known = true;
	flow->window = flow->capacity = edge->window_messages;
	flow->tx_window.messages = flow->rx_window.messages = edge->window_messages;
	flow->tx_window.bytes = flow->rx_window.bytes = edge->window_bytes;
	if (flow->window > SIM_QUEUE_MAX)
		sim_fail(sim, "bounded", "a window of %u", flow->window);
	if (edge->policy != (uint32_t)flow->policy)
		sim_fail(sim, "wiring", "an edge of %s got policy %u", app->name, edge->policy);
	sim_link_ready(flow, host, peer);
}

/* Returns the pid of the peer. */
static uint32_t take_peer(struct sim *sim, const struct sim_host *host, const struct fw_peer *named)
{
	uint32_t pid = pid_of(named);
	struct sim_host *peer = sim_host_by_pid(sim, pid);

	if (peer != NULL)
		sim_move_takes_over(sim, peer);
	if (peer == NULL || peer->app != host->app || peer->number != named->host ||
	    peer->epoch != named->epoch)
		sim_fail(sim, "wiring", "pid %d got the address of pid %u as that of host %u",
			 host->pid, pid, named->host);
	else if (!peer->process.alive) /* its address is refused */
		sim_put(sim, sim->now_ns + sim_between(sim, SIM_MS, 30 * SIM_MS), SIM_EV_PEER_LOST,
			host->index, peer->index, 0);
	return pid;
}

void sim_tables_retake(struct sim *sim, struct sim_host *host, const struct fw_host_wire *wire)
{
	for (uint32_t i = 0; i < wire->peer_count; i++) {
		uint32_t pid = take_peer(sim, host, &wire->peers[i]), k = 0;
		const struct sim_host *before;

		while (k < host->peer_count &&
		       sim_host_by_pid(sim, host->peers[k])->number != wire->peers[i].host)
			k++;
		before = k < host->peer_count ? sim_host_by_pid(sim, host->peers[k]) : NULL;
		if (before == NULL) {
			sim_fail(sim, "wiring", "pid %d is wired anew to host %u, no peer of it",
				 host->pid, wire->peers[i].host);
			return;
		}
		if (before->epoch > wire->peers[i].epoch)
			sim_fail(sim, "epochs", "pid %d is wired to epoch %llu after %llu",
				 host->pid, (unsigned long long)wire->peers[i].epoch,
				 (unsigned long long)before->epoch);
		if (before->epoch == wire->peers[i].epoch)
			continue; /* it knows */
		host->peers[k] = pid;
		host->wired = false;
		for (uint32_t e = 0; e < wire->edge_count; e++)
			if (wire->edges[e].peer == wire->peers[i].host)
				take_edge(sim, host, wire, &wire->edges[e], true);
	}
}

void sim_tables_take(struct sim *sim, struct sim_host *host, const struct fw_host_wire *wire)
{
	uint32_t needed = 0;

	for (uint32_t i = 0; i < wire->edge_count; i++) {
		take_edge(sim, host, wire, &wire->edges[i], false);
		needed |= 1u << sim_transport(wire->edges[i].transport);
	}
	if (host->opened != needed)
		sim_fail(sim, "wiring", "pid %d was asked to open what no flow of it needs",
			 host->pid);
	for (uint32_t i = 0; i < wire->peer_count && i < SIM_FRAGMENTS_MAX; i++) {
		host->peers[host->peer_count++] = take_peer(sim, host, &wire->peers[i]);
	}
	for (uint32_t i = 0; i < host->edge_count; i++) {
		bool named = false;

		for (uint32_t k = 0; k < wire->peer_count; k++)
			named = named || wire->peers[k].host == host->edges[i].peer;
		if (!named)
			sim_fail(sim, "wiring", "pid %d was not told of its peer, host %u",
				 host->pid, host->edges[i].peer);
	}
}
