// SPDX-License-Identifier: Apache-2.0
#include <cond/condition.h>
#include <fragctl/describe.h>
#include <graph/clocks.h>
#include <graph/thread_pool.h>

static void json_params(struct ctl_json *json, const struct frag_param *params, uint32_t count,
			const void *state)
{
	ctl_json_open(json, "parameters", '{');
	for (uint32_t i = 0; i < count; i++)
		fragi_param_write(&params[i], state, ctl_json_value(json, params[i].name));
	ctl_json_close(json, '}');
}

static void json_condition(const char *type, const char *port, const struct frag_condition *own,
			   bool first, void *arg)
{
	struct ctl_json *json = arg;

	(void)first;
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "type", type);
	ctl_json_text(json, "port", port);
	json_params(json, own != NULL ? own->type->params : NULL,
		    own != NULL ? own->type->param_count : 0, own != NULL ? own->state : NULL);
	ctl_json_close(json, '}');
}

static void json_port(struct ctl_json *json, const struct fragi_port *port, bool is_used)
{
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "name", port->name);
	ctl_json_text(json, "direction", port->dir == FRAG_IN ? "in" : "out");
	ctl_json_text(json, "type", port->type_name);
	ctl_json_bool(json, "connected", is_used);
	ctl_timing_json(json, port);
	ctl_json_close(json, '}');
}

static void json_op(struct ctl_json *json, const struct ctl_composed *composed, uint32_t f,
		    uint32_t o)
{
	const struct frag_op *op = composed->fragments[f]->ops[o];
	char decoder[CTL_DECODER_SIZE];

	ctl_json_gap(json, "\n    ");
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "name", op->name);
	ctl_json_text(json, "type", op->type->name);
	ctl_json_number(json, "watchdog_ns", op->watchdog_ns);
	ctl_json_open(json, "ports", '[');
	for (uint32_t i = 0; i < op->port_count; i++)
		if (ctl_port_is_shown(composed, f, o, i))
			json_port(json, &op->ports[i], ctl_port_is_used(composed, f, o, i));
	ctl_json_close(json, ']');
	ctl_timing_json_op(json, op);
	if (ctl_decoder(op, decoder, sizeof(decoder)) != NULL)
		ctl_json_text(json, "decoder", decoder);
	ctl_json_gap(json, "\n     ");
	ctl_json_open(json, "conditions", '[');
	ctl_each_condition(composed, f, o, json_condition, json);
	ctl_json_close(json, ']');
	ctl_json_gap(json, "\n     ");
	json_params(json, op->type->params, op->type->param_count, op->state);
	ctl_json_close(json, '}');
}

static void json_resource(struct ctl_json *json, const struct frag_resource *resource)
{
	struct fragi_blocks blocks;

	ctl_json_gap(json, "\n    ");
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "name", resource->name);
	ctl_json_text(json, "type", resource->type.name);
	json_params(json, resource->type.params, resource->type.param_count,
		    resource->allocator.state);
	if (resource->allocator.blocks != NULL) {
		resource->allocator.blocks(resource->allocator.state, &blocks);
		ctl_json_unsigned(json, "blocks", blocks.all);
		ctl_json_unsigned(json, "block_bytes", blocks.block_bytes);
		ctl_json_unsigned(json, "blocks_needed", resource->blocks_needed);
	}
	ctl_json_close(json, '}');
}

static void json_on_failure(struct ctl_json *json, const struct fragi_spec_on_failure *own)
{
	static const char *const names[] = {
		[FRAGI_ON_FAILURE_STOP] = "stop",
		[FRAGI_ON_FAILURE_RESTART] = "restart",
		[FRAGI_ON_FAILURE_MIGRATE] = "migrate",
	};

	ctl_json_open(json, "on_failure", '{');
	ctl_json_text(json, "policy", names[own->policy]);
	if (own->policy != FRAGI_ON_FAILURE_STOP) {
		ctl_json_unsigned(json, "intensity", own->intensity);
		ctl_json_number(json, "period_ns", own->period_ns);
		ctl_json_number(json, "backoff_ns", own->backoff_ns);
	}
	if (own->policy == FRAGI_ON_FAILURE_MIGRATE)
		ctl_json_number(json, "lease_ns", own->lease_ns);
	ctl_json_close(json, '}');
}

static void json_crew(struct ctl_json *json, const struct frag_fragment *fragment, uint32_t index)
{
	const struct fragi_crew *crew = &fragment->crews[index];

	ctl_json_gap(json, "\n    ");
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "pool", crew->pool->name);
	ctl_json_unsigned(json, "threads", crew->thread_count);
	ctl_json_bool(json, "pinned", crew->pinned != NULL);
	ctl_json_open(json, "operators", '[');
	for (uint32_t k = 0; k < fragment->op_count; k++)
		if (fragment->ops[k]->crew == index + 1)
			ctl_json_text(json, NULL, fragment->ops[k]->name);
	ctl_json_close(json, ']');
	ctl_json_open(json, "cores", '[');
	for (size_t k = 0; k < crew->core_count; k++)
		ctl_json_unsigned(json, NULL, crew->cores[k]);
	ctl_json_close(json, ']');
	if (crew->realtime.policy != FRAGI_SCHED_NONE) {
		fragi_realtime_json(&crew->realtime, ctl_json_value(json, "realtime"));
		ctl_json_bool(json, "best_effort", crew->best_effort);
	}
	ctl_json_close(json, '}');
}

static void json_clock(struct ctl_json *json, const struct fragi_clock_config *clock)
{
	if (clock == NULL) {
		ctl_json_text(json, "clock", NULL);
		return;
	}
	ctl_json_open(json, "clock", '{');
	ctl_json_text(json, "type", ctl_clock_name(clock->kind));
	if (clock->kind == FRAGI_CLOCK_REALTIME) {
		fprintf(ctl_json_value(json, "initial_time_offset"), "%.17g", clock->offset_s);
		fprintf(ctl_json_value(json, "initial_time_scale"), "%.17g", clock->scale);
		ctl_json_bool(json, "use_time_since_epoch", clock->since_epoch);
	} else if (clock->kind != FRAGI_CLOCK_MACHINE) {
		ctl_json_number(json, "initial_timestamp", clock->initial_ns);
	}
	ctl_json_close(json, '}');
}

static void json_fragment(struct ctl_json *json, const struct ctl_composed *composed, uint32_t f)
{
	const struct frag_fragment *fragment = composed->fragments[f];
	uint32_t threads = ctl_thread_count(fragment->own);

	ctl_json_gap(json, "\n  ");
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "name", fragment->name);
	ctl_json_text(json, "host", fragment->own->host);
	json_on_failure(json, &fragment->own->on_failure);
	json_clock(json, fragi_clock_own(fragment));
	ctl_json_text(json, "scheduler", ctl_scheduler_name(fragment->own));
	if (threads > 0)
		ctl_json_unsigned(json, "threads", threads);
	else
		ctl_json_text(json, "threads", NULL);
	ctl_json_gap(json, "\n   ");
	ctl_json_open(json, "operators", '[');
	for (uint32_t i = 0; i < fragment->op_count; i++)
		json_op(json, composed, f, i);
	ctl_json_close(json, ']');
	ctl_json_gap(json, "\n   ");
	ctl_json_open(json, "resources", '[');
	for (uint32_t i = 0; i < fragment->resource_count; i++)
		json_resource(json, fragment->resources[i]);
	ctl_json_close(json, ']');
	ctl_json_gap(json, "\n   ");
	ctl_json_open(json, "thread_pools", '[');
	for (uint32_t i = 0; i < fragment->crew_count; i++)
		json_crew(json, fragment, i);
	ctl_json_close(json, ']');
	ctl_json_close(json, '}');
}

static void json_flow(struct ctl_json *json, const struct ctl_flow *flow)
{
	ctl_json_gap(json, "\n  ");
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "from", flow->from);
	ctl_json_text(json, "to", flow->to);
	ctl_json_text(json, "type", flow->type);
	ctl_json_unsigned(json, "capacity", flow->capacity);
	ctl_json_text(json, "policy", flow->policy);
	ctl_json_text(json, "edge", flow->edge);
	ctl_json_text(json, "edge_reason", flow->edge_reason);
	if (flow->bytes_max == UINT64_MAX)
		ctl_json_text(json, "bytes_max", NULL);
	else
		ctl_json_unsigned(json, "bytes_max", flow->bytes_max);
	ctl_json_text(json, "bytes_reason", flow->bytes_reason);
	ctl_gpu_json(json, flow);
	ctl_json_bool(json, "execution", flow->is_execution);
	ctl_json_bool(json, "dynamic", flow->is_dynamic);
	ctl_json_close(json, '}');
}

static void json_party(struct ctl_json *json, const char *name,
		       const struct fragi_spec_party *party)
{
	ctl_json_open(json, name, '{');
	ctl_json_text(json, "fragment", party->fragment);
	ctl_json_text(json, "operator", party->op);
	ctl_json_close(json, '}');
}

static void json_variable(struct ctl_json *json, const struct fragi_spec_variable *variable)
{
	ctl_json_gap(json, "\n  ");
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "name", variable->name);
	ctl_json_text(json, "path", variable->path);
	if (variable->writer.fragment != NULL)
		json_party(json, "writer", &variable->writer);
	else
		ctl_json_text(json, "writer", NULL);
	ctl_json_open(json, "readers", '[');
	for (size_t i = 0; i < variable->reader_count; i++)
		json_party(json, NULL, &variable->readers[i]);
	ctl_json_close(json, ']');
	ctl_json_close(json, '}');
}

void ctl_describe_print_json(const struct fragi_spec *spec, const struct ctl_composed *composed,
			     const char *digest, FILE *out)
{
	struct ctl_json json = ctl_json_begin(out);
	struct ctl_flow flow;

	ctl_json_text(&json, "application", spec->application);
	if (digest != NULL)
		ctl_json_text(&json, "digest", digest);
	ctl_json_gap(&json, "\n ");
	json_clock(&json, &composed->clock);
	ctl_json_gap(&json, "\n ");
	ctl_json_open(&json, "fragments", '[');
	for (uint32_t f = 0; f < composed->fragment_count; f++)
		json_fragment(&json, composed, f);
	ctl_json_close(&json, ']');
	ctl_json_gap(&json, "\n ");
	ctl_json_open(&json, "variables", '[');
	for (size_t i = 0; i < spec->variable_count; i++)
		json_variable(&json, &spec->variables[i]);
	ctl_json_close(&json, ']');
	ctl_json_gap(&json, "\n ");
	ctl_json_open(&json, "flows", '[');
	for (size_t i = 0; i < ctl_flow_count(composed); i++) {
		ctl_flow_at(composed, i, &flow);
		json_flow(&json, &flow);
	}
	ctl_json_close(&json, ']');
	ctl_paths_json(&json, spec, composed);
	ctl_json_end(&json);
}
