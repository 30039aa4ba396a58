// SPDX-License-Identifier: Apache-2.0
#include <workerd/host/tables.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <type/params.h>

_Static_assert(FW_TOKEN_BYTES == FRAGI_TOKEN_BYTES, "a token travels whole");
_Static_assert(FW_TRANSPORTS_MAX == FRAGI_HOST_TRANSPORTS_MAX, "each address of a host travels");
_Static_assert(FW_INTERFACE_PORTS_MAX == FRAGI_INTERFACES_MAX, "each interface port travels");
_Static_assert(FW_ADDRESS_MAX == FRAGI_HOST_ADDRESS_MAX, "an address travels whole");

/* Names of the parameters that may change while it runs. */
static int dynamic_of(const struct frag_op_type *table, struct fragi_arena *arena,
		      struct fw_op *out)
{
	uint32_t count = table != NULL ? table->param_count : 0;

	out->dynamic = fragi_arena_alloc(arena, (count + 1) * sizeof(*out->dynamic));
	if (out->dynamic == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		if (fragi_param_is_dynamic(&table->params[i]))
			out->dynamic[out->dynamic_count++] = table->params[i].name;
	return 0;
}

static int ports_of(const struct fragi_op_info *op, struct fragi_arena *arena, struct fw_op *out)
{
	out->name = op->name;
	out->type = op->type;
	out->has_gaps = op->has_gaps;
	out->pools = op->pools;
	out->port_count = (uint32_t)op->port_count;
	out->ports = fragi_arena_alloc(arena, op->port_count * sizeof(*out->ports));
	if (out->ports == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < op->port_count; i++) {
		const struct fragi_port_info *port = &op->ports[i];

		out->ports[i] = (struct fw_port){.name = port->name,
						 .type = port->type,
						 .dir = (uint32_t)port->dir,
						 .flags = port->flags,
						 .capacity = port->capacity,
						 .policy = (uint32_t)port->policy,
						 .type_id = port->type_id,
						 .has_codec = port->has_codec,
						 .tensors = port->tensors};
	}
	return dynamic_of(op->table, arena, out);
}

static int interface_ports_of(const struct fragi_fragment_info *info, struct fragi_arena *arena,
			      struct fw_fragment *out)
{
	out->interface_ports =
		fragi_arena_alloc(arena, info->interface_count * sizeof(*out->interface_ports));
	if (out->interface_ports == NULL)
		return -ENOMEM;
	out->interface_port_count = (uint32_t)info->interface_count;
	for (size_t i = 0; i < info->interface_count; i++)
		out->interface_ports[i] = (struct fw_interface_port){
			info->interfaces[i].instance, info->interfaces[i].port,
			info->interfaces[i].op, info->interfaces[i].op_port};
	return 0;
}

static int fragments_of(const struct fragi_run *run, struct fragi_arena *arena,
			struct fw_host_prepared *out)
{
	size_t count;
	const struct fragi_fragment_info *fragments = fragi_run_fragments(run, &count);
	int r = 0;

	out->fragments = fragi_arena_alloc(arena, count * sizeof(*out->fragments));
	if (out->fragments == NULL)
		return -ENOMEM;
	out->fragment_count = (uint32_t)count;
	for (size_t i = 0; i < count && r == 0; i++) {
		struct fw_fragment *fragment = &out->fragments[i];

		fragment->name = fragments[i].name;
		fragment->has_gaps = fragments[i].has_gaps;
		fragment->op_count = (uint32_t)fragments[i].op_count;
		fragment->ops =
			fragi_arena_alloc(arena, fragments[i].op_count * sizeof(*fragment->ops));
		if (fragment->ops == NULL)
			return -ENOMEM;
		for (size_t k = 0; k < fragments[i].op_count && r == 0; k++)
			r = ports_of(&fragments[i].ops[k], arena, &fragment->ops[k]);
		if (r == 0)
			r = interface_ports_of(&fragments[i], arena, fragment);
	}
	return r;
}

static int flows_of(const struct fragi_run *run, struct fragi_arena *arena,
		    struct fw_host_prepared *out)
{
	size_t count;
	const struct fragi_flow_info *flows = fragi_run_flows(run, &count);

	out->flows = fragi_arena_alloc(arena, count * sizeof(*out->flows));
	if (out->flows == NULL)
		return -ENOMEM;
	out->flow_count = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		out->flows[i] = (struct fw_inner_flow){.from_fragment = flows[i].from_fragment,
						       .from_op = flows[i].from_op,
						       .from_port = flows[i].from_port,
						       .to_fragment = flows[i].to_fragment,
						       .to_op = flows[i].to_op,
						       .to_port = flows[i].to_port,
						       .capacity = flows[i].capacity,
						       .encrypt = flows[i].encrypt,
						       .policy = (uint32_t)flows[i].policy};
	return 0;
}

static int addresses_of(const struct fragi_run *run, struct fragi_arena *arena,
			struct fw_host_prepared *out)
{
	struct fragi_run_address own[FRAGI_HOST_TRANSPORTS_MAX];

	out->address_count = fragi_run_addresses(run, own);
	out->addresses = fragi_arena_alloc(arena, out->address_count * sizeof(*out->addresses));
	if (out->addresses == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < out->address_count; i++)
		out->addresses[i] = (struct fw_address){own[i].transport, own[i].bytes,
							(uint32_t)own[i].size, own[i].detail};
	return 0;
}

static int announced_by(const struct fragi_run *run, struct fragi_arena *arena,
			struct fw_host_prepared *out)
{
	uint32_t count = fragi_run_service_count(run);
	const char **texts;

	if (count == 0 || !fragi_run_is_driver(run))
		return 0;
	texts = fragi_arena_alloc(arena, count * sizeof(*texts));
	if (texts == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		texts[i] = fragi_run_announced(run, i);
	out->announced = texts;
	out->announced_count = count;
	return 0;
}

static int pools_of(const struct fragi_run *run, struct fragi_arena *arena,
		    struct fw_host_prepared *out)
{
	const char **names = fragi_arena_alloc(arena, FRAGI_POOLS_MAX * sizeof(*names));
	char name[2 * FRAG_NAME_MAX + 2];

	out->pools = names;
	while (names != NULL && out->pool_count < FRAGI_POOLS_MAX &&
	       fragi_run_pool(run, out->pool_count, name, sizeof(name)) != NULL) {
		names[out->pool_count] = fragi_arena_strdup(arena, name);
		if (names[out->pool_count++] == NULL)
			return -ENOMEM;
	}
	return names != NULL ? 0 : -ENOMEM;
}

static int late_places_of(const struct fragi_run *run, struct fragi_arena *arena,
			  struct fw_host_prepared *out)
{
	struct fragi_run_late_place place;
	uint32_t count = 0;

	while (fragi_run_late_place(run, count, &place))
		count++;
	out->late_places = fragi_arena_alloc(arena, (count + 1) * sizeof(*out->late_places));
	if (out->late_places == NULL)
		return -ENOMEM;
	while (out->late_place_count < count &&
	       fragi_run_late_place(run, out->late_place_count, &place))
		out->late_places[out->late_place_count++] =
			(struct fw_late_place){place.fragment, place.op, place.from, place.at};
	return 0;
}

int host_tables_prepared(const struct fragi_run *run, struct fragi_arena *arena,
			 struct fw_host_prepared *out_prepared)
{
	struct fw_host_prepared prepared = {.ok = true, .pid = (int32_t)getpid()};
	int r = fragments_of(run, arena, &prepared);

	if (r == 0)
		r = flows_of(run, arena, &prepared);
	if (r < 0)
		return r;
	r = addresses_of(run, arena, &prepared);
	if (r == 0)
		r = pools_of(run, arena, &prepared);
	if (r == 0)
		r = late_places_of(run, arena, &prepared);
	if (r == 0)
		r = announced_by(run, arena, &prepared);
	if (r < 0)
		return r;
	*out_prepared = prepared;
	return 0;
}

int host_tables_errors(const struct fragi_diag *diag, const struct fragi_run *run,
		       struct fragi_arena *arena, struct fw_host_prepared *out_prepared)
{
	struct fw_failure *errors = fragi_arena_alloc(arena, (diag->count + 1) * sizeof(*errors));
	struct fw_host_prepared prepared = {.pid = (int32_t)getpid()};
	int r = errors == NULL ? -ENOMEM : run != NULL ? fragments_of(run, arena, &prepared) : 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < diag->count; i++)
		errors[i] = (struct fw_failure){
			.code = fragi_err_failure(&diag->items[i]),
			.sentence = diag->items[i].text,
			.op = diag->items[i].op,
			.file = diag->items[i].file,
			.line = (uint32_t)diag->items[i].line,
			.column = (uint32_t)diag->items[i].column,
		};
	prepared.errors = errors;
	prepared.error_count = (uint32_t)diag->count;
	prepared.errors_beyond = (uint32_t)diag->beyond;
	*out_prepared = prepared;
	return 0;
}

int host_tables_wire(const struct fw_host_wire *wire, struct fragi_arena *arena,
		     struct fragi_run_peer **out_peers, struct fragi_run_edge **out_edges)
{
	struct fragi_run_peer *peers = fragi_arena_alloc(arena, wire->peer_count * sizeof(*peers));
	struct fragi_run_edge *edges = fragi_arena_alloc(arena, wire->edge_count * sizeof(*edges));

	if (peers == NULL || edges == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < wire->peer_count; i++) {
		const struct fw_peer *peer = &wire->peers[i];
		struct fragi_run_address *addresses =
			fragi_arena_alloc(arena, peer->address_count * sizeof(*addresses));

		if (addresses == NULL)
			return -ENOMEM;
		for (uint32_t k = 0; k < peer->address_count; k++)
			addresses[k] = (struct fragi_run_address){peer->addresses[k].transport,
								  peer->addresses[k].bytes,
								  peer->addresses[k].size};
		peers[i] = (struct fragi_run_peer){.host = peer->host,
						   .epoch = peer->epoch,
						   .addresses = addresses,
						   .address_count = peer->address_count,
						   .name = peer->name};
	}
	for (uint32_t i = 0; i < wire->edge_count; i++) {
		const struct fw_edge *edge = &wire->edges[i];

		edges[i] = (struct fragi_run_edge){
			.config = {.flow = edge->flow,
				   .window_messages = edge->window_messages,
				   .window_bytes = edge->window_bytes,
				   .message_bytes_max = edge->message_bytes_max,
				   .policy = (enum frag_policy)edge->policy,
				   .encrypt = edge->encrypt},
			.transport = edge->transport,
			.sends = edge->sends,
			.fragment = edge->fragment,
			.op = edge->op,
			.port = edge->port,
			.peer = edge->peer,
			.order = edge->order,
			.other_end = edge->other_end};
		memcpy(edges[i].config.token, edge->token, FRAGI_TOKEN_BYTES);
	}
	*out_peers = peers;
	*out_edges = edges;
	return 0;
}
