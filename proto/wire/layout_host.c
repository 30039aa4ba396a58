// SPDX-License-Identifier: Apache-2.0
#include <base/policy.h>
#include <wire/layout.h>

/*
 * Layouts of the messages that make, wire, start and stop a host, and of those by which a worker
 * reports what it has run while its driver was away.
 */

LAYOUT(host_create, struct fw_host_create, HostCreate, NULL) = {
	FIELD(host_create, application),
	BYTES(host_create, source, source_bytes, FW_FRAME_MAX),
	TEXTS(host_create, fragments, fragment_count, FW_NAMES_MAX),
	TIME(host_create, beat_ns),
	TIME(host_create, dead_ns),
	TEXTS(host_create, transports, transport_count, FW_TRANSPORTS_MAX),
	AMOUNT(host_create, limits[FRAGI_AMOUNT_CPU], cpu_limit, .unit = 1),
	AMOUNT(host_create, limits[FRAGI_AMOUNT_MEMORY], memory_limit_bytes),
	AMOUNT(host_create, limits[FRAGI_AMOUNT_GPU_MEMORY], gpu_memory_limit_bytes),
	WHOLE(host_create, limits[FRAGI_AMOUNT_GPU_THREADS], gpu_threads, .max = 100,
	      .flaw = "more than all threads of a GPU"),
	FIELD(host_create, mig),
	KEY(host_create, data_key, "a data key of another length"),
	KEY(host_create, variables_key, "a key of variables of another length"),
	FIELD(host_create, may_restart),
	FIELD(host_create, is_beside),
	FIELD(host_create, is_moved),
	FIELD(host_create, restarts),
	FIELD(host_create, memory),
	FIELD(host_create, has_last_source),
	TIME(host_create, lease_ns),
	TIME(host_create, lease_until_ns),
	END,
};

LAYOUT(data_address, struct fw_address, DataAddress, NULL) = {
	FIELD(data_address, transport),
	BYTES(data_address, bytes, size, FW_ADDRESS_MAX, .min = 1, .flaw = "an empty address"),
	FIELD(data_address, detail),
	END,
};

static const char *port_flaw(const void *proto, void *plain)
{
	(void)proto;
	return fragi_policy(((const struct fw_port *)plain)->policy) == NULL ? "an unknown policy"
									     : NULL;
}

LAYOUT(port, struct fw_port, Port, port_flaw) = {
	FIELD(port, name),
	FIELD(port, type),
	WITHIN(port, dir, FRAG_IN, FRAG_OUT, "a port without a direction"),
	FIELD(port, flags),
	FIELD(port, capacity),
	FIELD(port, policy),
	FIELD(port, type_id),
	FIELD(port, has_codec),
	WITHIN(port, tensors, 0, FRAG_PORT_TENSORS_MAX, "a long declaration of tensors"),
	END,
};

LAYOUT(operator, struct fw_op, Operator, NULL) = {
	FIELD(operator, name),
	FIELD(operator, type),
	FIELD(operator, has_gaps),
	TEXTS(operator, dynamic, dynamic_count, FW_PORTS_MAX),
	OPTIONAL(operator, pools),
	ROWS(operator, ports, port_count, FW_PORTS_MAX, port),
	END,
};

LAYOUT(interface_port, struct fw_interface_port, InterfacePort, NULL) = {
	FIELD(interface_port, instance),
	FIELD(interface_port, port),
	FIELD(interface_port, op),
	FIELD(interface_port, op_port),
	END,
};

static const char *fragment_flaw(const void *proto, void *plain)
{
	const struct fw_fragment *in = plain;

	(void)proto;
	for (uint32_t i = 0; i < in->interface_port_count; i++) {
		const struct fw_interface_port *port = &in->interface_ports[i];

		if (port->op >= in->op_count || port->op_port >= in->ops[port->op].port_count)
			return "an interface port for a port that is not there";
	}
	return NULL;
}

LAYOUT(fragment, struct fw_fragment, Fragment, fragment_flaw) = {
	FIELD(fragment, name),
	FIELD(fragment, has_gaps),
	ROWS(fragment, ops, op_count, FW_ROWS_MAX, operator),
	ROWS(fragment, interface_ports, interface_port_count, FW_INTERFACE_PORTS_MAX,
	     interface_port),
	END,
};

LAYOUT(inner_flow, struct fw_inner_flow, InnerFlow, NULL) = {
	FIELD(inner_flow, from_fragment), FIELD(inner_flow, from_op),
	FIELD(inner_flow, from_port),     FIELD(inner_flow, to_fragment),
	FIELD(inner_flow, to_op),         FIELD(inner_flow, to_port),
	FIELD(inner_flow, capacity),      FIELD(inner_flow, encrypt),
	FIELD(inner_flow, policy),        END,
};

/* Whether the three indices name a port of that direction in the tables of the same message. */
static bool is_port(const struct fw_host_prepared *in, uint32_t fragment_index, uint32_t op,
		    uint32_t port_index, uint32_t dir)
{
	return fragment_index < in->fragment_count && op < in->fragments[fragment_index].op_count &&
	       port_index < in->fragments[fragment_index].ops[op].port_count &&
	       in->fragments[fragment_index].ops[op].ports[port_index].dir == dir;
}

static const char *prepared_flaw(const void *proto, void *plain)
{
	const struct fw_host_prepared *in = plain;
	uint64_t ops = 0;

	(void)proto;
	for (uint32_t i = 0; i < in->fragment_count; i++)
		ops += in->fragments[i].op_count;
	if (ops > FW_ROWS_MAX)
		return "too many rows";
	for (uint32_t i = 0; i < in->late_place_count; i++)
		if (in->late_places[i].fragment >= in->fragment_count ||
		    in->late_places[i].op >= in->fragments[in->late_places[i].fragment].op_count)
			return "a path that ends in an operator that is not there";
	for (uint32_t i = 0; i < in->flow_count; i++) {
		const struct fw_inner_flow *flow = &in->flows[i];

		if (!is_port(in, flow->from_fragment, flow->from_op, flow->from_port, FRAG_OUT) ||
		    !is_port(in, flow->to_fragment, flow->to_op, flow->to_port, FRAG_IN))
			return "a flow between ports that are not there";
		if (flow->capacity == 0 || flow->policy == FRAG_POLICY_DEFAULT ||
		    fragi_policy(flow->policy) == NULL)
			return "a flow without a capacity or a policy";
	}
	return NULL;
}

LAYOUT(late_place, struct fw_late_place, LatePlace, NULL) = {
	FIELD(late_place, fragment),
	FIELD(late_place, op),
	OPTIONAL(late_place, from),
	FIELD(late_place, at),
	END,
};

LAYOUT(host_prepared, struct fw_host_prepared, HostPrepared, prepared_flaw) = {
	FIELD(host_prepared, ok),
	ROWS(host_prepared, errors, error_count, FW_ERRORS_MAX, failure, .beyond = FW_FIRST_ROWS),
	FIELD(host_prepared, errors_beyond),
	ROWS(host_prepared, fragments, fragment_count, FW_NAMES_MAX, fragment),
	ROWS(host_prepared, flows, flow_count, FW_ROWS_MAX, inner_flow),
	ROWS(host_prepared, addresses, address_count, FW_TRANSPORTS_MAX, data_address),
	FIELD(host_prepared, pid),
	TEXTS(host_prepared, announced, announced_count, FW_NAMES_MAX),
	TEXTS(host_prepared, pools, pool_count, FRAGI_POOLS_MAX),
	ROWS(host_prepared, late_places, late_place_count, FRAGI_LATE_PLACES_MAX, late_place),
	END,
};

LAYOUT(peer, struct fw_peer, Peer, NULL) = {
	FIELD(peer, host),
	FIELD(peer, epoch),
	ROWS(peer, addresses, address_count, FW_TRANSPORTS_MAX, data_address),
	FIELD(peer, name),
	END,
};

static const char *edge_flaw(const void *proto, void *plain)
{
	(void)proto;
	return fragi_policy(((const struct fw_edge *)plain)->policy) == NULL
		       ? "an edge without a policy or a window"
		       : NULL;
}

LAYOUT(edge, struct fw_edge, Edge, edge_flaw) = {
	FIELD(edge, flow),
	FIELD(edge, sends),
	FIELD(edge, fragment),
	FIELD(edge, op),
	FIELD(edge, port),
	FIELD(edge, peer),
	KEY(edge, token, "a token of another length"),
	WITHIN(edge, window_messages, 1, UINT32_MAX, "an edge without a policy or a window"),
	WITHIN(edge, window_bytes, 1, UINT64_MAX, "an edge without a policy or a window"),
	WITHIN(edge, message_bytes_max, 1, UINT64_MAX, "an edge without a policy or a window"),
	WITHIN(edge, policy, 1, UINT32_MAX, "an edge without a policy or a window"),
	FIELD(edge, order),
	FIELD(edge, other_end),
	FIELD(edge, transport),
	FIELD(edge, encrypt),
	END,
};

LAYOUT(host_wire, struct fw_host_wire, HostWire, NULL) = {
	ROWS(host_wire, peers, peer_count, FW_ROWS_MAX, peer),
	ROWS(host_wire, edges, edge_count, FW_ROWS_MAX, edge),
	TEXTS(host_wire, announced, announced_count, FW_NAMES_MAX),
	END,
};

LAYOUT(host_result, struct fw_host_result, HostResult, NULL) = {
	ONE(host_result, failure, failure),
	END,
};

LAYOUT(host_start, char, HostStart, NULL) = {END};

LAYOUT(host_stop, struct fw_host_stop, HostStop, NULL) = {
	TIME(host_stop, drain_ns),
	EXIT_CODE(host_stop, exit_code),
	FIELD(host_stop, reason),
	FIELD(host_stop, restarts),
	OR_ELSE(host_stop, failure, 0, FRAGI_FAILURES - 1, FRAGI_FAILURE_OTHER),
	END,
};

LAYOUT(host_look, struct fw_host_look, HostLook, NULL) = {
	TIME(host_look, for_ns),
	END,
};

LAYOUT(host_suspend, struct fw_host_suspend, HostSuspend, NULL) = {
	FIELD(host_suspend, peer),
	FIELD(host_suspend, peer_epoch),
	END,
};

static const char *saved_flaw(const void *proto, void *plain)
{
	const struct fw_host_saved *in = plain;

	(void)proto;
	return in->size > FRAGI_SAVED_BYTES_MAX - in->offset
		       ? "saved bytes beyond the memory for them"
		       : NULL;
}

LAYOUT(host_saved, struct fw_host_saved, HostSaved, saved_flaw) = {
	WITHIN(host_saved, offset, 0, FRAGI_SAVED_BYTES_MAX,
	       "saved bytes beyond the memory for them"),
	BYTES(host_saved, bytes, size, FW_SAVED_BYTES_MAX),
	END,
};

LAYOUT(host_report, struct fw_host_report, HostReport, NULL) = {
	WITHIN(host_report, stop, 0, FW_STOP_KILLED, "a report about no host"),
	ONE(host_report, create, host_create, .flaw = "a report about no host"),
	FIELD(host_report, started),
	FIELD(host_report, has_run),
	OR_ELSE(host_report, failure, 0, FRAGI_FAILURES - 1, FRAGI_FAILURE_OTHER),
	FIELD(host_report, reason),
	FIELD(host_report, restarts),
	FIELD(host_report, is_inexact),
	TIME(host_report, age_ns),
	FIELD(host_report, is_closing),
	FIELD(host_report, yields),
	FIELD(host_report, is_beside),
	FIELD(host_report, is_wired),
	END,
};

LAYOUT(reported, char, Reported, NULL) = {END};

LAYOUT(host_adopted, struct fw_host_adopted, HostAdopted, NULL) = {
	FIELD(host_adopted, is_inexact),
	END,
};
