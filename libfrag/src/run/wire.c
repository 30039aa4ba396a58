// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "run"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/kernel.h>
#include <base/log.h>
#include <base/strmap.h>
#include <base/transports.h>
#include <data/staging.h>
#include <graph/interface.h>
#include <run/state.h>

/*
 * From flows to edges. Flows inside a fragment come resolved; those between fragments of this
 * process are resolved here, and become inproc edges too; those to other hosts come from the driver
 * by fragi_run_wire. All ends of one port are ordered as the flows stand in the graph, inner ones
 * first, wherever the other end is: so a multi-receiver gives the same array in every deployment.
 */
/* The fragments of this process by name, and the operators of each. */
struct names {
	const struct fragi_run *run;
	struct fragi_strmap fragments; /* struct fragi_fragment_info */
	struct fragi_strmap composed;  /* those with operators that the graph does not list */
	struct fragi_strmap *ops;      /* struct frag_op; a fragment's when the first is wanted */
};

static int names_init(struct names *names, const struct fragi_run *run)
{
	const struct fragi_spec *spec = run->config.spec;

	names->run = run;
	names->ops = fragi_calloc(run->fragment_count + 1, sizeof(*names->ops));
	if (names->ops == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->fragment_count; i++)
		if (fragi_strmap_put(&names->fragments, run->infos[i].name, &run->infos[i]) ==
		    -ENOMEM)
			return -ENOMEM;
	for (size_t i = 0; i < spec->fragment_count; i++)
		if (spec->fragments[i].is_composed &&
		    fragi_strmap_put(&names->composed, spec->fragments[i].name,
				     &spec->fragments[i]) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

static void names_fini(struct names *names)
{
	for (size_t i = 0; names->ops != NULL && i < names->run->fragment_count; i++)
		fragi_strmap_fini(&names->ops[i]);
	fragi_free(names->ops);
	fragi_strmap_fini(&names->fragments);
	fragi_strmap_fini(&names->composed);
}

/* -1: it is not in this process. */
static int fragment_of(const struct names *names, const char *name)
{
	const struct fragi_fragment_info *info =
		name != NULL ? fragi_strmap_get(&names->fragments, name) : NULL;

	return info != NULL ? (int)(info - names->run->infos) : -1;
}

static int op_of(struct names *names, int index, const char *name, struct frag_op **out_op)
{
	const struct frag_fragment *fragment = names->run->fragments[index].fragment;
	struct fragi_strmap *ops = &names->ops[index];

	for (uint32_t i = 0; ops->count < fragment->op_count && i < fragment->op_count; i++)
		if (fragi_strmap_put(ops, fragment->ops[i]->name, fragment->ops[i]) == -ENOMEM)
			return -ENOMEM;
	*out_op = fragi_strmap_get(ops, name);
	return 0;
}

/*
 * The port of that direction that has the name, or the only one, else the one for execution. NULL:
 * none, or not clear.
 */
static struct fragi_port *port_of(struct frag_op *op, const char *name, enum frag_dir dir)
{
	struct fragi_port *found = NULL, *execution = NULL;

	for (uint32_t i = 0; i < op->port_count; i++) {
		struct fragi_port *port = &op->ports[i];

		if (port->dir != dir || (name != NULL && strcmp(port->name, name) != 0))
			continue;
		if (name == NULL && fragi_port_is_execution(port->name)) {
			execution = port;
			continue;
		}
		if (found != NULL)
			return NULL;
		found = port;
	}
	return found != NULL ? found : execution;
}

/*
 * A flow between fragments whose capacity was not known when its sender was composed. Returns
 * -EINVAL with a sentence when the sender's conditions ask for more room than the flow can have.
 */
static int check_room(const struct frag_op *op, uint32_t port, uint32_t capacity,
		      enum frag_policy policy, struct frag_err *err)
{
	uint32_t asked = fragi_op_asks_for_room(op, port);

	if (!fragi_policy(policy)->blocking || asked <= capacity)
		return 0;
	return frag_err_set(
		err, -EINVAL,
		"%s: a condition of output \"%s\" asks for room for %u messages, and a flow of it holds %u at most; give the flow a larger capacity, or ask for less",
		op->subject, op->ports[port].name, asked, capacity);
}

/* Flows between fragments that both are here. */
static int resolve_between(struct fragi_run *run, const struct fragi_spec_flow *flows, size_t count,
			   struct fragi_diag *diag)
{
	int r = fragi_flows_resolve(flows, count, -1, run->infos, run->fragment_count, diag,
				    &run->flows, &run->flow_count);

	for (size_t i = run->inner_flow_count; r == 0 && i < run->flow_count; i++) {
		const struct fragi_flow_info *flow = &run->flows[i];
		struct frag_err err = FRAG_ERR_INIT;

		if (check_room(run->fragments[flow->from_fragment].fragment->ops[flow->from_op],
			       flow->from_port, flow->capacity, flow->policy, &err) < 0)
			r = fragi_node_error(diag, flow->place, NULL, "%s", err.text);
		run->fragments[flow->from_fragment]
			.fragment->ops[flow->from_op]
			->ports[flow->from_port]
			.flow_count++;
		run->fragments[flow->to_fragment]
			.fragment->ops[flow->to_op]
			->ports[flow->to_port]
			.flow_count++;
	}
	return r;
}

/* The graph asks for a transport, wherever the other end is. */
static bool leaves(const struct fragi_spec_flow *flow)
{
	return flow->edge != NULL && fragi_transport_exists(flow->edge);
}

/*
 * Returns how many flows an end in another host may stand for: that host knows what inputs its
 * subgraphs have.
 */
static uint32_t flows_of(const struct names *names, const struct fragi_spec_end *end)
{
	return fragi_strmap_get(&names->composed, end->fragment) ? FRAGI_INTERFACE_INPUTS_MAX : 1;
}

/* A flow with one end here: the port counts it, and the ledger has rows for it. */
static int note_edge(struct fragi_run *run, struct names *names, int fragment,
		     const struct fragi_spec_end *end, enum frag_dir dir, uint32_t rows)
{
	struct fragi_port *port;
	struct frag_op *op = NULL;

	run->edge_rows += rows;
	if (end->op != NULL && op_of(names, fragment, end->op, &op) < 0)
		return -ENOMEM;
	port = op != NULL ? port_of(op, end->port, dir) : NULL;
	if (port != NULL)
		port->flow_count++;
	if (op != NULL && dir == FRAG_OUT)
		op->sends_away = true;
	else if (op != NULL)
		op->receives_from_away = true;
	return 0;
}

static int copy_inner(struct fragi_run *run)
{
	size_t count = 0;

	for (size_t i = 0; i < run->fragment_count; i++)
		count += run->fragments[i].fragment->flow_count;
	run->flows = fragi_calloc(count + 1, sizeof(*run->flows));
	if (run->flows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->fragment_count; i++) {
		const struct frag_fragment *fragment = run->fragments[i].fragment;

		for (size_t k = 0; k < fragment->flow_count; k++) {
			run->flows[run->flow_count] = fragment->flows[k];
			run->flows[run->flow_count].from_fragment = (uint32_t)i;
			run->flows[run->flow_count].to_fragment = (uint32_t)i;
			run->flows[run->flow_count++].order = (uint32_t)k;
		}
	}
	run->inner_flow_count = run->flow_count;
	return 0;
}

/* Whether both ends are here and the graph asks for no transport. */
static bool is_between(const struct names *names, const struct fragi_spec_flow *flow,
		       const struct fragi_spec_end *to)
{
	return !leaves(flow) && fragment_of(names, flow->from.fragment) >= 0 &&
	       fragment_of(names, to->fragment) >= 0;
}

/* The flows that do not leave this process; flows has room for every end in the spec. */
static size_t gather_between(const struct fragi_run *run, const struct names *names,
			     struct fragi_spec_flow *flows)
{
	const struct fragi_spec *spec = run->config.spec;
	size_t count = 0;

	for (size_t i = 0; i < spec->flow_count; i++) {
		const struct fragi_spec_flow *flow = &spec->flows[i];

		for (size_t k = 0; k < flow->to_count; k++) {
			if (!is_between(names, flow, &flow->to[k]))
				continue;
			flows[count] = *flow;
			flows[count].to = &flow->to[k];
			flows[count].to_count = 1;
			flows[count++].order = flow->order + (uint32_t)k;
		}
	}
	return count;
}

/* The ends here of all others. What is wrong with these flows is reported by the driver. */
static int note_edges(struct fragi_run *run, struct names *names)
{
	const struct fragi_spec *spec = run->config.spec;
	const struct fragi_spec_flow *flows;
	struct fragi_arena arena = {0};
	struct fragi_diag ignored = {0};
	size_t count;
	int r = fragi_interfaces_apply(&arena, spec->flows, spec->flow_count, -1, run->infos,
				       run->fragment_count, &ignored, &flows, &count);

	for (size_t i = 0; r != -ENOMEM && i < count; i++) {
		const struct fragi_spec_flow *flow = &flows[i];
		int from = fragment_of(names, flow->from.fragment);

		for (size_t k = 0; r != -ENOMEM && k < flow->to_count; k++) {
			int to = fragment_of(names, flow->to[k].fragment);

			if (is_between(names, flow, &flow->to[k]))
				continue;
			if (from >= 0)
				r = note_edge(run, names, from, &flow->from, FRAG_OUT,
					      to < 0 ? flows_of(names, &flow->to[k]) : 1);
			if (r != -ENOMEM && to >= 0)
				r = note_edge(run, names, to, &flow->to[k], FRAG_IN, 1);
		}
	}
	fragi_diag_fini(&ignored);
	fragi_arena_fini(&arena);
	return r == -ENOMEM ? r : 0;
}

int fragi_run_resolve(struct fragi_run *run, struct fragi_diag *diag)
{
	const struct fragi_spec *spec = run->config.spec;
	struct fragi_spec_flow *flows;
	struct names names = {0};
	size_t ends = 0;
	int r = copy_inner(run);

	for (size_t i = 0; i < spec->flow_count; i++)
		ends += spec->flows[i].to_count;
	flows = fragi_calloc(ends + 1, sizeof(*flows));
	if (flows == NULL || names_init(&names, run) < 0)
		r = -ENOMEM;
	if (r == 0)
		r = note_edges(run, &names);
	if (r == 0)
		r = resolve_between(run, flows, gather_between(run, &names, flows), diag);
	names_fini(&names);
	fragi_free(flows);
	return r;
}

static int end_add(struct fragi_run *run, const struct fragi_run_end *end)
{
	struct fragi_run_end *ends;
	size_t capacity;

	if (run->end_count == run->end_capacity) {
		capacity = run->end_capacity > 0 ? run->end_capacity * 2 : 16;
		ends = fragi_realloc(run->ends, capacity * sizeof(*ends));
		if (ends == NULL)
			return -ENOMEM;
		run->ends = ends;
		run->end_capacity = capacity;
	}
	run->ends[run->end_count++] = *end;
	return 0;
}

int fragi_run_connect(struct fragi_run *run)
{
	int r;

	run->inproc = fragi_calloc(run->flow_count + 1, sizeof(struct fragi_tx *));
	if (run->inproc == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->flow_count; i++) {
		const struct fragi_flow_info *flow = &run->flows[i];
		uint64_t order = (i < run->inner_flow_count ? 0 : FRAGI_RUN_BETWEEN) + flow->order;
		struct fragi_run_end from = {
			.fragment = flow->from_fragment,
			.op = flow->from_op,
			.port = flow->from_port,
			.order = order,
		};
		struct fragi_run_end to = {
			.fragment = flow->to_fragment,
			.op = flow->to_op,
			.port = flow->to_port,
			.order = order,
		};

		r = fragi_inproc_create(flow->capacity, flow->policy, &run->ledger.flows[i],
					&run->inproc[i], &to.rx);
		if (r < 0)
			return r;
		from.tx = run->inproc[i];
		from.flow = (uint32_t)i;
		if (end_add(run, &from) < 0 || end_add(run, &to) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int edge_add(struct fragi_run *run, const struct fragi_run_edge *edge,
		    struct fragi_remote_endpoint *endpoint, struct fragi_flow_row *row)
{
	struct fragi_run_end end = {
		.fragment = edge->fragment,
		.op = edge->op,
		.port = edge->port,
		.order = FRAGI_RUN_BETWEEN + edge->order,
		.between_hosts = true,
		.flow = edge->config.flow,
	};
	struct fragi_edge_config config = edge->config;
	int r;

	config.op = run->fragments[edge->fragment].fragment->ops[edge->op]->subject;
	if (edge->sends && edge->other_end != NULL) {
		end.other_end = fragi_strdup(edge->other_end);
		if (end.other_end == NULL)
			return -ENOMEM;
	}
	r = edge->sends ? fragi_remote_tx_create(endpoint, &config, row, &end.tx)
			: fragi_remote_rx_create(endpoint, &config, row, &end.rx);
	if (r == 0)
		r = end_add(run, &end);
	if (r < 0)
		fragi_free(end.other_end);
	return r;
}

static bool edge_is_valid(const struct fragi_run *run, const struct fragi_run_edge *edge)
{
	const struct frag_fragment *fragment;

	if (edge->fragment >= run->fragment_count)
		return false;
	fragment = run->fragments[edge->fragment].fragment;
	return edge->op < fragment->op_count && edge->port < fragment->ops[edge->op]->port_count &&
	       fragment->ops[edge->op]->ports[edge->port].dir == (edge->sends ? FRAG_OUT : FRAG_IN);
}

/* A peer, and its endpoints by the order of its addresses, made for the first edge over each. */
struct wiring {
	const struct fragi_run_peer *info;
	struct fragi_remote_peer *peer;
	struct fragi_remote_endpoint *endpoints[FRAGI_HOST_TRANSPORTS_MAX];
};

/* A transport does not know whom it connects to. */
static void name_peer(struct frag_err *err, const char *name)
{
	char text[sizeof(err->text)];

	memcpy(text, err->text, sizeof(text));
	snprintf(err->text, sizeof(err->text), "no way to %.120s%s%.*s", name,
		 text[0] == ' ' ? "" : ": ", (int)sizeof(text) - 140, text);
}

static int endpoint_of(struct wiring *wiring, const char *transport,
		       struct fragi_remote_endpoint **out, struct frag_err *err)
{
	const struct fragi_run_peer *info = wiring->info;
	uint32_t i = 0;
	int r = 0;

	while (i < info->address_count && i < FRAGI_HOST_TRANSPORTS_MAX &&
	       (transport == NULL || strcmp(info->addresses[i].transport, transport) != 0))
		i++;
	if (i == info->address_count || i == FRAGI_HOST_TRANSPORTS_MAX)
		return frag_err_set(err, -EINVAL,
				    "host %s has no address for %s; this is an error in frag",
				    info->name, transport != NULL ? transport : "a transport");
	if (wiring->endpoints[i] == NULL)
		r = fragi_remote_connect(wiring->peer, transport, info->addresses[i].bytes,
					 info->addresses[i].size, &wiring->endpoints[i], err);
	if (r < 0 && fragi_err_failure(err) == FRAGI_FAILURE_EDGE_UNREACHABLE)
		name_peer(err, info->name);
	if (r < 0)
		return frag_err_set(err, r, "cannot connect to host %s (%s)", info->name,
				    frag_strerror(r));
	*out = wiring->endpoints[i];
	return 0;
}

/* Such a peer would be waited for, and never answer. */
static bool has_no_edge(const struct wiring *wiring)
{
	for (uint32_t i = 0; i < FRAGI_HOST_TRANSPORTS_MAX; i++)
		if (wiring->endpoints[i] != NULL)
			return false;
	return true;
}

/* The module is opened by hosts that have an encrypted edge, and by no others. */
static int open_crypto(struct fragi_run *run, const struct fragi_run_edge *edges, size_t count,
		       struct frag_err *err)
{
	const struct fragi_crypto_ops *crypto;
	struct frag_err cause = FRAG_ERR_INIT;
	size_t i = 0;
	int r;

	while (i < count && !edges[i].config.encrypt)
		i++;
	if (i == count)
		return 0;
	if (run->config.data_key == NULL)
		return frag_err_set(
			err, -EINVAL,
			"an encrypted edge, but the driver sent no key; this is an error in frag");
	r = fragi_crypto_open("run the application without encryption", &crypto, &cause);
	if (r < 0)
		return frag_err_set(err, r, "cannot encrypt the edge to %s: %s", edges[i].other_end,
				    cause.text);
	fragi_remote_set_crypto(run->remote, crypto);
	return 0;
}

/* With the pump's lock: peers, then their edges. */
static int wire_locked(struct fragi_run *run, struct wiring *peers, size_t peer_count,
		       const struct fragi_run_edge *edges, size_t edge_count, struct frag_err *err)
{
	struct fragi_remote_endpoint *endpoint = NULL;
	int r;

	for (size_t i = 0; i < peer_count; i++) {
		const struct fragi_run_peer *info = peers[i].info;

		r = fragi_remote_peer_create(run->remote, info->host, info->epoch, &peers[i].peer);
		if (r < 0)
			return frag_err_set(err, r, "cannot connect to host %s (%s)", info->name,
					    frag_strerror(r));
		fragi_remote_peer_set_name(peers[i].peer, info->name);
		run->peers[i] = *info;
	}
	for (size_t i = 0; i < edge_count; i++) {
		size_t k = 0;

		while (k < peer_count && peers[k].info->host != edges[i].peer)
			k++;
		if (k == peer_count || !edge_is_valid(run, &edges[i]))
			return frag_err_set(
				err, -EINVAL,
				"edge %zu to %s names a peer or a port that is not there; this is an error in frag",
				i, edges[i].other_end != NULL ? edges[i].other_end : "?");
		if (edges[i].sends) {
			r = check_room(run->fragments[edges[i].fragment].fragment->ops[edges[i].op],
				       edges[i].port, edges[i].config.window_messages,
				       edges[i].config.policy, err);
			if (r < 0)
				return r;
		}
		r = endpoint_of(&peers[k], edges[i].transport, &endpoint, err);
		if (r == 0)
			r = edge_add(run, &edges[i], endpoint,
				     &run->ledger.flows[run->flow_count + i]);
		if (r < 0)
			return frag_err_set(err, r, "cannot make the edge to %s (%s)",
					    edges[i].other_end, frag_strerror(r));
	}
	for (size_t i = 0; i < peer_count; i++)
		if (has_no_edge(&peers[i]))
			return frag_err_set(
				err, -EINVAL,
				"host %s is a peer without an edge; this is an error in frag",
				peers[i].info->name);
	return 0;
}

/* What goes over a transport that takes no memory of a GPU goes through memory of the host. */
static void prepare_staging(const struct fragi_run *run, const struct fragi_run_edge *edges,
			    size_t count)
{
	bool any = false, arrives = false;

	for (size_t i = 0; i < count; i++) {
		const struct fragi_transport *transport =
			fragi_remote_transport(run->remote, edges[i].transport);

		if (transport == NULL || (transport->devices & 1u << FRAG_DEVICE_CUDA) != 0)
			continue;
		any = true;
		arrives |= !edges[i].sends;
	}
	if (any)
		fragi_staging_prepare(arrives);
}

int fragi_run_wire(struct fragi_run *run, const struct fragi_run_peer *peers, size_t peer_count,
		   const struct fragi_run_edge *edges, size_t edge_count, struct frag_err *err)
{
	char remedy[FRAGI_KERNEL_REMEDY_MAX];
	struct wiring *made;
	int r;

	if (peer_count > 0 && run->remote == NULL)
		return frag_err_set(
			err, -EINVAL,
			"edges to other hosts, but no flow of the graph leaves this one; this is an error in frag");
	if (edge_count > run->edge_rows)
		return frag_err_set(
			err, -EINVAL,
			"%zu edges to other hosts, but the graph has %u; this is an error in frag",
			edge_count, run->edge_rows);
	r = open_crypto(run, edges, edge_count, err);
	if (r == 0)
		r = fragi_run_fetch_variables(run, err);
	if (r < 0)
		return r;
	made = fragi_calloc(peer_count + 1, sizeof(*made));
	run->peers = fragi_calloc(peer_count + 1, sizeof(*run->peers));
	if (made == NULL || run->peers == NULL) {
		fragi_free(made);
		return frag_err_set(err, -ENOMEM, "out of memory for %zu peers", peer_count);
	}
	for (size_t i = 0; i < peer_count; i++)
		made[i].info = &peers[i];
	run->peer_count = peer_count;
	fragi_pump_lock(run->pump);
	r = wire_locked(run, made, peer_count, edges, edge_count, err);
	fragi_pump_unlock(run->pump);
	fragi_free(made);
	if (r == 0 && fragi_run_check_pools(run, edges, edge_count) < 0)
		r = frag_err_set(err, -ENOMEM, "out of memory for a look at the pools");
	if (r == 0 && peer_count > 0) {
		prepare_staging(run, edges, edge_count);
		r = fragi_pump_attach(run->pump, &fragi_remote_pump_ops, run->remote);
		if (r < 0)
			frag_err_set(err, r, "cannot start the thread that drives the edges (%s)%s",
				     frag_strerror(r), fragi_kernel_remedy(r, remedy));
		run->attached = r == 0;
	}
	if (r == 0 && peer_count == 0)
		fragi_run_report(run, FRAGI_RUN_WIRED);
	return r;
}
