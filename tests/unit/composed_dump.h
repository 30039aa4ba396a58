/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_COMPOSED_DUMP_H
#define TESTS_UNIT_COMPOSED_DUMP_H

#include <base/alloc.h>
#include <cond/condition.h>
#include <graph/clocks.h>
#include <graph/op.h>
#include <graph/pools.h>
#include <graph/predict.h>
#include <graph/thread_pool.h>

#include "graph_dump.h"

/* All fragments of a graph as they are composed, the flows between them, and what is predicted. */
struct composed {
	struct fragi_registry *registry;
	struct frag_fragment *shared, *fragments[8];
	struct fragi_fragment_info infos[8];
	struct fragi_flow_info *flows;
	size_t fragment_count, flow_count;
	struct fragi_clock_config clock;
};

/* Returns whether it has no error; all are in diag. */
static inline bool compose_all(const struct fragi_spec *spec, const struct frag_plugin *plugin,
			       struct fragi_diag *diag, struct composed *composed)
{
	const struct fragi_registry_config config = {0};
	struct frag_err err = FRAG_ERR_INIT;

	*composed = (struct composed){0};
	if (fragi_registry_create(&config, &composed->registry) < 0 ||
	    fragi_registry_add(composed->registry, "ops", plugin, &err) < 0)
		abort();
	fragi_services_compose(spec, composed->registry, diag, &composed->shared);
	for (size_t i = 0; i < spec->fragment_count && i < 8; i++, composed->fragment_count++) {
		struct frag_fragment **fragment = &composed->fragments[i];

		fragi_fragment_compose_partial(spec, &spec->fragments[i], composed->shared,
					       composed->registry, diag, fragment);
		composed->infos[i] = (struct fragi_fragment_info){
			.name = spec->fragments[i].name,
			.has_gaps = true,
		};
		if (*fragment != NULL)
			composed->infos[i] = (*fragment)->info;
		composed->infos[i].host = (uint32_t)i / 2;
	}
	fragi_clock_shared(spec, composed->fragments, composed->fragment_count, diag,
			   &composed->clock);
	fragi_flows_resolve(spec->flows, spec->flow_count, -1, composed->infos,
			    composed->fragment_count, diag, &composed->flows,
			    &composed->flow_count);
	fragi_diag_sort(diag, 0);
	return diag->count == 0;
}

static inline void composed_fini(struct composed *composed)
{
	for (size_t i = 0; i < composed->fragment_count; i++)
		fragi_fragment_destroy(composed->fragments[i]);
	fragi_fragment_destroy(composed->shared);
	fragi_free(composed->flows);
	fragi_registry_destroy(composed->registry);
}

/* The values of parameters, behind what they belong to, in one line: {add: 3, name: "x"} */
static inline void dump_params(const struct frag_param *params, uint32_t count, const void *state)
{
	char *text, *line;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const char *before = " {";

	fragi_params_describe(params, count, state, "", out);
	fclose(out);
	strtok(text, "\n"); /* what they are */
	for (; (line = strtok(NULL, "\n")) != NULL; before = ", ")
		fprintf(dump, "%s%s", before, line + strspn(line, " "));
	fputs(before[0] == ',' ? "}" : "", dump);
	free(text);
}

static inline void dump_condition(const struct frag_op *op, const struct frag_condition *condition)
{
	fprintf(dump, "  has %s.%s: %s", op->subject, condition->name, condition->type->name);
	dump_if(condition->is_term, "term");
	dump_if(condition->bound, "bound");
	if (condition->gate_min != 0)
		fprintf(dump, " gate %s min %u max %u", op->ports[condition->port].name,
			condition->gate_min, condition->gate_max);
	for (uint32_t i = 0; i < condition->port_count; i++) {
		fprintf(dump, " of %s", op->ports[condition->ports[i]].name);
		if (condition->sizes != NULL)
			fprintf(dump, ":%" PRId64, condition->sizes[i]);
	}
	dump_count("sum", (int64_t)condition->sum);
	for (uint32_t i = 0; i < condition->term_count; i++)
		fprintf(dump, " or %s", condition->terms[i]->name);
	dump_params(condition->type->params, condition->type->param_count, condition->state);
	fputc('\n', dump);
}

static inline void dump_made_port(const struct frag_op *op, uint32_t i)
{
	const struct fragi_port *port = &op->ports[i];
	struct frag_message *message = NULL;

	fprintf(dump, "  %s %s.%s %s", port->dir == FRAG_IN ? "input" : "output", op->subject,
		port->name, port->type_name);
	dump_if((port->flags & FRAG_PORT_MULTI) != 0, "multi");
	dump_if((port->flags & FRAG_PORT_OPTIONAL) != 0, "optional");
	dump_if((port->flags & FRAG_PORT_NO_CONDITION) != 0, "no_condition");
	dump_count("capacity", port->capacity);
	if (port->policy != FRAG_POLICY_DEFAULT)
		fprintf(dump, " %s", dump_policy(port->policy));
	if (port->min_size == FRAG_PORT_PRECEDING_COUNT)
		fputs(" min as_many_as_flows", dump);
	else
		dump_count("min", port->min_size);
	dump_if(port->has_size, "sized");
	dump_text("tensors", port->tensors);
	dump_count("flows", port->flow_count);
	dump_if(port->is_aligned, "aligned");
	if (dump_if(port->timing != NULL, "timed"))
		dump_timing(port->timing);
	if (port->timing != NULL && fragi_timing_default(port, &message) == 0 && message != NULL) {
		dump_if(true, "has_default");
		frag_message_unref(message);
	}
	if (port->dir == FRAG_OUT)
		dump_count("room", fragi_op_asks_for_room(op, i));
	fputc('\n', dump);
}

static inline void dump_made_op(const struct frag_op *op)
{
	fprintf(dump, "op %s", op->subject);
	dump_text("type", op->type->name);
	dump_text("scope", op->scope);
	for (uint32_t i = 0; i < op->resource_count; i++)
		fprintf(dump, " $%s", op->resources[i]->name);
	dump_count("metadata_policy", op->metadata_policy);
	dump_if(!op->metadata, "no_metadata");
	dump_ns("watchdog", op->watchdog_ns);
	dump_ns("window", op->align.window_ns);
	dump_ns("timeout", op->align.timeout_ns);
	dump_ns("deadline", op->deadline.budget_ns);
	dump_if(op->deadline.from_acquisition, "from_acquisition");
	dump_count("on_miss", op->deadline.on_miss);
	dump_if(op->drops_late, "drops_late");
	dump_if(op->choose_flows != NULL, "chooses");
	dump_count("crew", op->crew);
	if (op->pool_place != NULL) {
		fprintf(dump, " in %s", op->pool_place->pool->subject);
		dump_if(op->pool_place->is_pinned, "pinned");
	}
	dump_if(op->tracked != NULL, "tracked");
	dump_if(op->on_path != NULL, "on_path");
	dump_if(op->logged != NULL, "logged");
	dump_params(op->type->params, op->type->param_count, op->state);
	dump_place(op->place);
	fputc('\n', dump);
	for (uint32_t i = 0; i < op->port_count; i++)
		dump_made_port(op, i);
	for (uint32_t i = 0; i < op->condition_count; i++)
		dump_condition(op, op->conditions[i]);
}

static inline void dump_made_resource(const char *what, const struct frag_resource *resource)
{
	fprintf(dump, "%s %s %s", what, resource->name, resource->type.name);
	dump_text("scope", resource->scope);
	dump_if(resource->is_logger, "logger");
	for (uint32_t i = 0; i < resource->use_count; i++)
		fprintf(dump, " uses %s", resource->uses[i]->name);
	dump_count("needs", (int64_t)resource->blocks_needed);
	if (!resource->is_logger)
		dump_params(resource->type.params, resource->type.param_count,
			    resource->allocator.state);
	fputc('\n', dump);
}

static inline void dump_made_flow(const struct fragi_fragment_info *infos,
				  const struct fragi_flow_info *flow)
{
	char from[256], to[256];

	fprintf(dump, "leads %s -> %s capacity %u %s order %u",
		fragi_flow_from(infos, flow, from, sizeof(from)),
		fragi_flow_to(infos, flow, to, sizeof(to)), flow->capacity,
		dump_policy(flow->policy), flow->order);
	dump_if(flow->between_hosts, "between_hosts");
	dump_text("over", flow->transport);
	dump_text("because", flow->transport_reason);
	dump_if(flow->encrypt, "encrypt");
	dump_place(flow->place);
	fputc('\n', dump);
}

static inline void dump_crew(const struct frag_fragment *fragment, uint32_t i)
{
	const struct fragi_crew *crew = &fragment->crews[i];

	fprintf(dump, "crew %u of %s threads %u", i + 1, crew->pool->subject, crew->thread_count);
	dump_text("pinned", crew->pinned != NULL ? crew->pinned->name : NULL);
	dump_cores(crew->cores, crew->core_count);
	dump_realtime(&crew->realtime);
	dump_if(crew->best_effort, "best_effort");
	fputc('\n', dump);
}

static inline void dump_composed_fragment(struct frag_fragment *fragment)
{
	const uint32_t *order = fragi_fragment_order(fragment);

	fprintf(dump, "composed %s: ", fragment->name);
	for (uint32_t i = 0; i < fragment->op_count; i++)
		fprintf(dump, "%s ", fragment->ops[order[i]]->name);
	dump_if(fragment->tracker != NULL, "tracked");
	dump_count("paths", fragment->path_count);
	dump_count("unpooled", fragi_thread_pools_unpooled(fragment));
	fputc('\n', dump);
	for (uint32_t i = 0; i < fragment->op_count; i++)
		dump_made_op(fragment->ops[i]);
	for (uint32_t i = 0; i < fragment->resource_count; i++)
		dump_made_resource("made", fragment->resources[i]);
	for (uint32_t i = 0; i < fragment->service_count; i++)
		fprintf(dump, "finds %s id \"%s\" scope %s\n", fragment->services[i].resource->name,
			fragment->services[i].id,
			fragment->services[i].scope != NULL ? fragment->services[i].scope : "-");
	for (uint32_t i = 0; i < fragment->crew_count; i++)
		dump_crew(fragment, i);
	for (size_t i = 0; i < fragment->flow_count; i++)
		dump_made_flow(&fragment->info, &fragment->flows[i]);
	for (size_t i = 0; i < fragment->info.interface_count; i++) {
		const struct fragi_interface_info *row = &fragment->info.interfaces[i];
		const struct frag_op *op = fragment->ops[row->op];

		fprintf(dump, "interface %s.%s is %s.%s\n", row->instance, row->port, op->name,
			op->ports[row->op_port].name);
	}
	if (fragi_clock_own(fragment) != NULL)
		dump_clock_config(fragment->name, fragi_clock_own(fragment));
}

/* All flows, as fragctl validate puts them together to predict. */
static inline void dump_prediction(const struct fragi_spec *spec, const struct composed *composed,
				   struct fragi_diag *warnings)
{
	struct fragi_prediction prediction = {0};
	struct fragi_flow_info flows[256];
	size_t count = 0;

	if (!fragi_predict_wanted(spec))
		return;
	for (size_t f = 0; f < composed->fragment_count; f++)
		for (size_t i = 0; i < composed->fragments[f]->flow_count && count < 256; i++) {
			flows[count] = composed->fragments[f]->flows[i];
			flows[count].from_fragment = flows[count].to_fragment = (uint32_t)f;
			count++;
		}
	for (size_t i = 0; i < composed->flow_count && count < 256; i++)
		flows[count++] = composed->flows[i];
	if (fragi_predict(spec, composed->infos, flows, count, &prediction) < 0)
		abort();
	fragi_predict_print(&prediction, spec, composed->infos, flows, count, 4, dump, warnings);
	fragi_prediction_fini(&prediction);
}

static inline void dump_composed(const struct fragi_spec *spec, const struct composed *composed)
{
	struct fragi_diag warnings = {0};

	for (size_t i = 0; i < composed->fragment_count; i++)
		fragi_pools_check(composed->fragments[i], (uint32_t)i, composed->flows,
				  composed->flow_count, &warnings);
	for (size_t i = 0; i < composed->fragment_count; i++)
		dump_composed_fragment(composed->fragments[i]);
	for (uint32_t i = 0; composed->shared != NULL && i < composed->shared->resource_count; i++)
		dump_made_resource("shared", composed->shared->resources[i]);
	for (size_t i = 0; i < composed->flow_count; i++)
		dump_made_flow(composed->infos, &composed->flows[i]);
	dump_clock_config("shared", &composed->clock);
	dump_prediction(spec, composed, &warnings);
	dump_diag("warning ", &warnings);
	fragi_diag_fini(&warnings);
}

#endif
