// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <base/policy.h>
#include <wire/body.h>

/*
 * Bodies of the messages that make, wire, start and stop a host.
 */

void fw_put_create(struct fw_encoder *e, const struct fw_host_create *in, Frag__V1__HostCreate *out)
{
	out->application = fw_put_text(e, in->application);
	out->source = fw_put_data(e, in->source, in->source_bytes, FW_FRAME_MAX);
	out->fragments =
		fw_put_texts(e, in->fragments, in->fragment_count, FW_NAMES_MAX, &out->n_fragments);
	out->beat_ns = in->beat_ns;
	out->dead_ns = in->dead_ns;
	out->transports = fw_put_texts(e, in->transports, in->transport_count, FW_TRANSPORTS_MAX,
				       &out->n_transports);
	out->cpu_limit = in->cpu_limit;
	out->memory_limit_bytes = in->memory_limit_bytes;
	out->data_key = fw_put_data(e, in->data_key, sizeof(in->data_key), FW_DATA_KEY_BYTES);
	out->variables_key = fw_put_data(e, in->variables_key, sizeof(in->variables_key),
					 FW_VARIABLES_KEY_BYTES);
	out->may_restart = in->may_restart;
	out->is_beside = in->is_beside;
	out->is_moved = in->is_moved;
	out->restarts = in->restarts;
	out->memory = fw_put_text(e, in->memory);
	out->lease_ns = in->lease_ns;
	out->lease_until_ns = in->lease_until_ns;
}

void fw_encode_host_create(struct fw_encoder *e, const struct fw_message *message,
			   Frag__V1__HostCreate *out)
{
	fw_put_create(e, &message->create, out);
}

/* The copy in the protobuf tree is wiped: the tree is freed as any other memory. */
static void take_key(struct fw_decoder *d, ProtobufCBinaryData in, uint8_t *out, size_t size,
		     const char *other)
{
	if (in.len != size) {
		fw_get_failed(d, other);
		return;
	}
	memcpy(out, in.data, size);
	explicit_bzero(in.data, in.len);
}

void fw_get_create(struct fw_decoder *d, const Frag__V1__HostCreate *in, struct fw_host_create *out)
{
	out->application = fw_get_text(d, in->application);
	out->source = fw_get_data(d, in->source, FW_FRAME_MAX, &out->source_bytes);
	out->fragments =
		fw_get_texts(d, in->fragments, in->n_fragments, FW_NAMES_MAX, &out->fragment_count);
	out->beat_ns = fw_get_duration(d, in->beat_ns);
	out->dead_ns = fw_get_duration(d, in->dead_ns);
	out->transports = fw_get_texts(d, in->transports, in->n_transports, FW_TRANSPORTS_MAX,
				       &out->transport_count);
	out->cpu_limit = in->cpu_limit;
	out->memory_limit_bytes = in->memory_limit_bytes;
	take_key(d, in->data_key, out->data_key, FW_DATA_KEY_BYTES, "a data key of another length");
	take_key(d, in->variables_key, out->variables_key, FW_VARIABLES_KEY_BYTES,
		 "a key of variables of another length");
	out->may_restart = in->may_restart != 0;
	out->is_beside = in->is_beside != 0;
	out->is_moved = in->is_moved != 0;
	out->restarts = in->restarts;
	out->memory = fw_get_text(d, in->memory);
	out->lease_ns = fw_get_duration(d, in->lease_ns);
	out->lease_until_ns = fw_get_duration(d, in->lease_until_ns);
}

void fw_decode_host_create(struct fw_decoder *d, const Frag__V1__HostCreate *in,
			   struct fw_message *message)
{
	fw_get_create(d, in, &message->create);
}

static Frag__V1__DataAddress **encode_addresses(struct fw_encoder *e, const struct fw_address *in,
						uint32_t count, size_t *out_count)
{
	Frag__V1__DataAddress **out = fw_put_rows(e, &frag__v1__data_address__descriptor, count,
						  FW_TRANSPORTS_MAX, out_count);

	for (size_t i = 0; i < *out_count; i++) {
		out[i]->transport = fw_put_text(e, in[i].transport);
		out[i]->bytes = fw_put_data(e, in[i].bytes, in[i].size, FW_ADDRESS_MAX);
		out[i]->detail = fw_put_text(e, in[i].detail);
	}
	return out;
}

static void encode_op(struct fw_encoder *e, const struct fw_op *in, Frag__V1__Operator *out)
{
	out->name = fw_put_text(e, in->name);
	out->type = fw_put_text(e, in->type);
	out->has_gaps = in->has_gaps;
	out->dynamic =
		fw_put_texts(e, in->dynamic, in->dynamic_count, FW_PORTS_MAX, &out->n_dynamic);
	out->ports = fw_put_rows(e, &frag__v1__port__descriptor, in->port_count, FW_PORTS_MAX,
				 &out->n_ports);
	for (size_t i = 0; i < out->n_ports; i++) {
		const struct fw_port *port = &in->ports[i];
		Frag__V1__Port *row = out->ports[i];

		row->name = fw_put_text(e, port->name);
		row->type = fw_put_text(e, port->type);
		row->dir = port->dir;
		row->flags = port->flags;
		row->capacity = port->capacity;
		row->policy = port->policy;
		row->type_id = port->type_id;
		row->has_codec = port->has_codec;
	}
}

static void encode_interface_ports(struct fw_encoder *e, const struct fw_fragment *in,
				   Frag__V1__Fragment *out)
{
	out->interface_ports =
		fw_put_rows(e, &frag__v1__interface_port__descriptor, in->interface_port_count,
			    FW_INTERFACE_PORTS_MAX, &out->n_interface_ports);
	for (size_t i = 0; i < out->n_interface_ports; i++) {
		out->interface_ports[i]->instance = fw_put_text(e, in->interface_ports[i].instance);
		out->interface_ports[i]->port = fw_put_text(e, in->interface_ports[i].port);
		out->interface_ports[i]->op = in->interface_ports[i].op;
		out->interface_ports[i]->op_port = in->interface_ports[i].op_port;
	}
}

void fw_encode_host_prepared(struct fw_encoder *e, const struct fw_message *message,
			     Frag__V1__HostPrepared *out)
{
	const struct fw_host_prepared *in = &message->prepared;
	size_t errors = in->error_count < FW_ERRORS_MAX ? in->error_count : FW_ERRORS_MAX;

	out->ok = in->ok;
	out->errors = fw_put_rows(e, &frag__v1__failure__descriptor, errors, FW_ERRORS_MAX,
				  &out->n_errors);
	for (size_t i = 0; i < out->n_errors; i++)
		fw_put_failure_row(e, &in->errors[i], out->errors[i]);
	out->errors_beyond = in->errors_beyond;
	out->fragments = fw_put_rows(e, &frag__v1__fragment__descriptor, in->fragment_count,
				     FW_NAMES_MAX, &out->n_fragments);
	for (size_t i = 0; i < out->n_fragments; i++) {
		const struct fw_fragment *fragment = &in->fragments[i];
		Frag__V1__Fragment *row = out->fragments[i];

		row->name = fw_put_text(e, fragment->name);
		row->has_gaps = fragment->has_gaps;
		row->operators = fw_put_rows(e, &frag__v1__operator__descriptor, fragment->op_count,
					     FW_ROWS_MAX, &row->n_operators);
		for (size_t j = 0; j < row->n_operators; j++)
			encode_op(e, &fragment->ops[j], row->operators[j]);
		encode_interface_ports(e, fragment, row);
	}
	out->flows = fw_put_rows(e, &frag__v1__inner_flow__descriptor, in->flow_count, FW_ROWS_MAX,
				 &out->n_flows);
	for (size_t i = 0; i < out->n_flows; i++) {
		const struct fw_inner_flow *flow = &in->flows[i];
		Frag__V1__InnerFlow *row = out->flows[i];

		row->from_fragment = flow->from_fragment;
		row->from_op = flow->from_op;
		row->from_port = flow->from_port;
		row->to_fragment = flow->to_fragment;
		row->to_op = flow->to_op;
		row->to_port = flow->to_port;
		row->capacity = flow->capacity;
		row->encrypt = flow->encrypt;
		row->policy = flow->policy;
	}
	out->addresses = encode_addresses(e, in->addresses, in->address_count, &out->n_addresses);
	out->pid = in->pid;
	out->announced = fw_put_texts(e, in->announced, in->announced_count, FW_NAMES_MAX,
				      &out->n_announced);
}

static struct fw_address *decode_addresses(struct fw_decoder *d, Frag__V1__DataAddress *const *in,
					   size_t count, uint32_t *out_count)
{
	struct fw_address *out = fw_get_rows(d, count, FW_TRANSPORTS_MAX, sizeof(*out), out_count);

	for (uint32_t i = 0; i < *out_count && d->error == 0; i++) {
		out[i].transport = fw_get_text(d, in[i]->transport);
		out[i].bytes = fw_get_data(d, in[i]->bytes, FW_ADDRESS_MAX, &out[i].size);
		if (out[i].size == 0)
			fw_get_failed(d, "an empty address");
		out[i].detail = fw_get_text(d, in[i]->detail);
	}
	return out;
}

static void decode_op(struct fw_decoder *d, const Frag__V1__Operator *in, struct fw_op *out)
{
	out->name = fw_get_text(d, in->name);
	out->type = fw_get_text(d, in->type);
	out->has_gaps = in->has_gaps != 0;
	out->dynamic =
		fw_get_texts(d, in->dynamic, in->n_dynamic, FW_PORTS_MAX, &out->dynamic_count);
	out->ports =
		fw_get_rows(d, in->n_ports, FW_PORTS_MAX, sizeof(*out->ports), &out->port_count);
	for (uint32_t i = 0; i < out->port_count; i++) {
		const Frag__V1__Port *row = in->ports[i];
		struct fw_port *port = &out->ports[i];

		port->name = fw_get_text(d, row->name);
		port->type = fw_get_text(d, row->type);
		if (row->dir != FRAG_IN && row->dir != FRAG_OUT)
			fw_get_failed(d, "a port without a direction");
		if (fragi_policy(row->policy) == NULL)
			fw_get_failed(d, "an unknown policy");
		port->dir = row->dir;
		port->flags = row->flags;
		port->capacity = row->capacity;
		port->policy = row->policy;
		port->type_id = row->type_id;
		port->has_codec = row->has_codec != 0;
	}
}

/* After the operators of the fragment. */
static void decode_interface_ports(struct fw_decoder *d, const Frag__V1__Fragment *in,
				   struct fw_fragment *out)
{
	out->interface_ports =
		fw_get_rows(d, in->n_interface_ports, FW_INTERFACE_PORTS_MAX,
			    sizeof(*out->interface_ports), &out->interface_port_count);
	for (uint32_t i = 0; i < out->interface_port_count && d->error == 0; i++) {
		const Frag__V1__InterfacePort *row = in->interface_ports[i];
		struct fw_interface_port *port = &out->interface_ports[i];

		port->instance = fw_get_text(d, row->instance);
		port->port = fw_get_text(d, row->port);
		if (row->op >= out->op_count || row->op_port >= out->ops[row->op].port_count)
			fw_get_failed(d, "an interface port for a port that is not there");
		port->op = row->op;
		port->op_port = row->op_port;
	}
}

/* Whether the three indices name a port of that direction in the tables of the same message. */
static bool is_port(const struct fw_host_prepared *in, uint32_t fragment, uint32_t op,
		    uint32_t port, uint32_t dir)
{
	return fragment < in->fragment_count && op < in->fragments[fragment].op_count &&
	       port < in->fragments[fragment].ops[op].port_count &&
	       in->fragments[fragment].ops[op].ports[port].dir == dir;
}

static void decode_inner_flow(struct fw_decoder *d, const Frag__V1__InnerFlow *in,
			      const struct fw_host_prepared *tables, struct fw_inner_flow *out)
{
	if (!is_port(tables, in->from_fragment, in->from_op, in->from_port, FRAG_OUT) ||
	    !is_port(tables, in->to_fragment, in->to_op, in->to_port, FRAG_IN))
		fw_get_failed(d, "a flow between ports that are not there");
	if (in->capacity == 0 || in->policy == FRAG_POLICY_DEFAULT ||
	    fragi_policy(in->policy) == NULL)
		fw_get_failed(d, "a flow without a capacity or a policy");
	out->from_fragment = in->from_fragment;
	out->from_op = in->from_op;
	out->from_port = in->from_port;
	out->to_fragment = in->to_fragment;
	out->to_op = in->to_op;
	out->to_port = in->to_port;
	out->capacity = in->capacity;
	out->encrypt = in->encrypt != 0;
	out->policy = in->policy;
}

void fw_decode_host_prepared(struct fw_decoder *d, const Frag__V1__HostPrepared *in,
			     struct fw_message *message)
{
	struct fw_host_prepared *out = &message->prepared;
	uint32_t ops = 0;

	out->ok = in->ok != 0;
	out->errors = fw_get_rows(d, in->n_errors, FW_ERRORS_MAX, sizeof(*out->errors),
				  &out->error_count);
	for (uint32_t i = 0; i < out->error_count; i++)
		fw_get_failure(d, in->errors[i], &out->errors[i]);
	out->errors_beyond = in->errors_beyond;
	out->fragments = fw_get_rows(d, in->n_fragments, FW_NAMES_MAX, sizeof(*out->fragments),
				     &out->fragment_count);
	for (uint32_t i = 0; i < out->fragment_count && d->error == 0; i++) {
		const Frag__V1__Fragment *row = in->fragments[i];
		struct fw_fragment *fragment = &out->fragments[i];

		fragment->name = fw_get_text(d, row->name);
		fragment->has_gaps = row->has_gaps != 0;
		fragment->ops = fw_get_rows(d, row->n_operators, FW_ROWS_MAX - ops,
					    sizeof(*fragment->ops), &fragment->op_count);
		ops += fragment->op_count;
		for (uint32_t j = 0; j < fragment->op_count && d->error == 0; j++)
			decode_op(d, row->operators[j], &fragment->ops[j]);
		decode_interface_ports(d, row, fragment);
	}
	out->flows =
		fw_get_rows(d, in->n_flows, FW_ROWS_MAX, sizeof(*out->flows), &out->flow_count);
	for (uint32_t i = 0; i < out->flow_count && d->error == 0; i++)
		decode_inner_flow(d, in->flows[i], out, &out->flows[i]);
	out->addresses = decode_addresses(d, in->addresses, in->n_addresses, &out->address_count);
	out->pid = in->pid;
	out->announced = fw_get_texts(d, in->announced, in->n_announced, FW_NAMES_MAX,
				      &out->announced_count);
}

void fw_encode_host_wire(struct fw_encoder *e, const struct fw_message *message,
			 Frag__V1__HostWire *out)
{
	const struct fw_host_wire *in = &message->wire;

	out->announced = fw_put_texts(e, in->announced, in->announced_count, FW_NAMES_MAX,
				      &out->n_announced);
	out->peers = fw_put_rows(e, &frag__v1__peer__descriptor, in->peer_count, FW_ROWS_MAX,
				 &out->n_peers);
	for (size_t i = 0; i < out->n_peers; i++) {
		const struct fw_peer *peer = &in->peers[i];

		out->peers[i]->host = peer->host;
		out->peers[i]->epoch = peer->epoch;
		out->peers[i]->addresses = encode_addresses(e, peer->addresses, peer->address_count,
							    &out->peers[i]->n_addresses);
		out->peers[i]->name = fw_put_text(e, peer->name);
	}
	out->edges = fw_put_rows(e, &frag__v1__edge__descriptor, in->edge_count, FW_ROWS_MAX,
				 &out->n_edges);
	for (size_t i = 0; i < out->n_edges; i++) {
		const struct fw_edge *edge = &in->edges[i];
		Frag__V1__Edge *row = out->edges[i];

		row->flow = edge->flow;
		row->sends = edge->sends;
		row->fragment = edge->fragment;
		row->op = edge->op;
		row->port = edge->port;
		row->peer = edge->peer;
		row->token = fw_put_data(e, edge->token, sizeof(edge->token), FW_TOKEN_BYTES);
		row->window_messages = edge->window_messages;
		row->window_bytes = edge->window_bytes;
		row->message_bytes_max = edge->message_bytes_max;
		row->policy = edge->policy;
		row->order = edge->order;
		row->other_end = fw_put_text(e, edge->other_end);
		row->transport = fw_put_text(e, edge->transport);
		row->encrypt = edge->encrypt;
	}
}

static void decode_edge(struct fw_decoder *d, const Frag__V1__Edge *in, struct fw_edge *out)
{
	if (in->token.len != FW_TOKEN_BYTES)
		fw_get_failed(d, "a token of another length");
	else
		/*
		 * NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): rows counts what it gave
		 */
		memcpy(out->token, in->token.data, FW_TOKEN_BYTES);
	if (in->policy == FRAG_POLICY_DEFAULT || fragi_policy(in->policy) == NULL ||
	    in->window_messages == 0 || in->window_bytes == 0 || in->message_bytes_max == 0)
		fw_get_failed(d, "an edge without a policy or a window");
	out->flow = in->flow;
	out->sends = in->sends != 0;
	out->fragment = in->fragment;
	out->op = in->op;
	out->port = in->port;
	out->peer = in->peer;
	out->window_messages = in->window_messages;
	out->window_bytes = in->window_bytes;
	out->message_bytes_max = in->message_bytes_max;
	out->order = in->order;
	out->policy = in->policy;
	out->other_end = fw_get_text(d, in->other_end);
	out->transport = fw_get_text(d, in->transport);
	out->encrypt = in->encrypt != 0;
}

void fw_decode_host_wire(struct fw_decoder *d, const Frag__V1__HostWire *in,
			 struct fw_message *message)
{
	struct fw_host_wire *out = &message->wire;

	out->peers =
		fw_get_rows(d, in->n_peers, FW_ROWS_MAX, sizeof(*out->peers), &out->peer_count);
	for (uint32_t i = 0; i < out->peer_count; i++) {
		struct fw_peer *peer = &out->peers[i];

		peer->host = in->peers[i]->host;
		peer->epoch = in->peers[i]->epoch;
		peer->addresses = decode_addresses(d, in->peers[i]->addresses,
						   in->peers[i]->n_addresses, &peer->address_count);
		peer->name = fw_get_text(d, in->peers[i]->name);
	}
	out->edges =
		fw_get_rows(d, in->n_edges, FW_ROWS_MAX, sizeof(*out->edges), &out->edge_count);
	for (uint32_t i = 0; i < out->edge_count; i++)
		decode_edge(d, in->edges[i], &out->edges[i]);
	out->announced = fw_get_texts(d, in->announced, in->n_announced, FW_NAMES_MAX,
				      &out->announced_count);
}

void fw_encode_host_result(struct fw_encoder *e, const struct fw_message *message,
			   Frag__V1__HostResult *out)
{
	const struct fw_host_result *in = &message->result;

	out->failure = fw_put_failure(e, &in->failure);
}

void fw_decode_host_result(struct fw_decoder *d, const Frag__V1__HostResult *in,
			   struct fw_message *message)
{
	struct fw_host_result *out = &message->result;

	fw_get_failure(d, in->failure, &out->failure);
}

void fw_encode_host_start(struct fw_encoder *e, const struct fw_message *message,
			  Frag__V1__HostStart *out)
{
	(void)e;
	(void)message;
	(void)out;
}

void fw_decode_host_start(struct fw_decoder *d, const Frag__V1__HostStart *in,
			  struct fw_message *message)
{
	(void)d;
	(void)in;
	(void)message;
}

void fw_encode_host_stop(struct fw_encoder *e, const struct fw_message *message,
			 Frag__V1__HostStop *out)
{
	const struct fw_host_stop *in = &message->stop;

	out->drain_ns = in->drain_ns;
	out->exit_code = in->exit_code;
	out->reason = fw_put_text(e, in->reason);
	out->starts_again = in->starts_again;
	out->failure = (uint32_t)in->failure;
}

void fw_decode_host_stop(struct fw_decoder *d, const Frag__V1__HostStop *in,
			 struct fw_message *message)
{
	struct fw_host_stop *out = &message->stop;

	out->drain_ns = fw_get_duration(d, in->drain_ns);
	out->exit_code = fw_get_exit_code(d, in->exit_code);
	out->reason = fw_get_text(d, in->reason);
	out->starts_again = in->starts_again != 0;
	out->failure = in->failure == 0 ? FRAGI_FAILURE_NONE : fw_get_failure_code(in->failure);
}
