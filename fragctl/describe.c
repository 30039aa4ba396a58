// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include <cond/condition.h>
#include <base/units.h>
#include <fragctl/describe.h>
#include <fragctl/report.h>
#include <graph/clocks.h>
#include <graph/pools.h>
#include <graph/thread_pool.h>

/* "64 MiB", "1.5 KiB", "24 B" */
static const char *format_bytes(uint64_t bytes, char *out, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t unit = 0;

	for (; value >= 1024 && unit + 1 < FRAG_COUNT_OF(units); unit++)
		value /= 1024;
	snprintf(out, size, "%.3g %s", value, units[unit]);
	return out;
}

static void print_condition(const char *type, const char *port, const struct frag_condition *own,
			    bool first, void *arg)
{
	FILE *out = arg;

	fprintf(out, "%s%s", first ? "\n      runs when  " : ", ", type);
	if (port != NULL)
		fprintf(out, "(%s)", port);
	for (uint32_t i = 0; own != NULL && port == NULL && i < own->type->param_count; i++) {
		fprintf(out, "%s%s: ", i == 0 ? "(" : ", ", own->type->params[i].name);
		fragi_param_write(&own->type->params[i], own->state, out);
	}
	if (own != NULL && port == NULL && own->type->param_count > 0)
		fputc(')', out);
}

static void print_op(const struct ctl_composed *composed, uint32_t f, uint32_t o, int width,
		     FILE *out)
{
	const struct frag_op *op = composed->fragments[f]->ops[o];
	char decoder[CTL_DECODER_SIZE];
	bool first = true;

	fprintf(out, "  %-*s  %s", width, op->name, op->type->name);
	for (uint32_t i = 0; i < op->port_count; i++) {
		if (!ctl_port_is_shown(composed, f, o, i))
			continue;
		fprintf(out, "%s%s %s: %s%s", first ? "\n      ports      " : ", ",
			op->ports[i].dir == FRAG_IN ? "in" : "out", op->ports[i].name,
			fragi_port_is_execution(op->ports[i].name) ? "execution"
								   : op->ports[i].type_name,
			ctl_port_is_used(composed, f, o, i) ? "" : " (not connected)");
		first = false;
	}
	if (op->choose_flows != NULL)
		fputs("\n      flows      dynamic: chosen after each tick", out);
	ctl_timing_print(op, out);
	if (ctl_decoder(op, decoder, sizeof(decoder)) != NULL)
		fprintf(out, "\n      decoder    %s", decoder);
	ctl_each_condition(composed, f, o, print_condition, out);
	fputc('\n', out);
}

static void print_resource(const struct frag_resource *resource, int width, FILE *out)
{
	struct fragi_blocks blocks;
	char one[32], all[32];

	fprintf(out, "  %-*s  %s", width, resource->name, resource->type.name);
	if (resource->allocator.blocks != NULL) {
		resource->allocator.blocks(resource->allocator.state, &blocks);
		fprintf(out, ": %zu blocks of %s = %s; %" PRIu64 " can be in use at a time",
			blocks.all, format_bytes(blocks.block_bytes, one, sizeof(one)),
			format_bytes((uint64_t)blocks.all * blocks.block_bytes, all, sizeof(all)),
			resource->blocks_needed);
	}
	fputc('\n', out);
}

static void print_on_failure(const struct fragi_spec_fragment *fragment, FILE *out)
{
	const struct fragi_spec_on_failure *own = &fragment->on_failure;
	char period[32], backoff[32], lease[32];

	if (own->policy == FRAGI_ON_FAILURE_STOP)
		return;
	fprintf(out,
		"; started again when it fails, %u time%s in %s with a backoff of %s, in a host of fragments of which the same is true",
		own->intensity, own->intensity == 1 ? "" : "s",
		fragi_format_duration(own->period_ns, period, sizeof(period)),
		fragi_format_duration(own->backoff_ns, backoff, sizeof(backoff)));
	if (own->policy == FRAGI_ON_FAILURE_MIGRATE)
		fprintf(out, "; on another worker if its own is lost, under a lease of %s",
			fragi_format_duration(own->lease_ns, lease, sizeof(lease)));
}

/* A line for each thread of a pinned operator, and one for those that the others share. */
static void print_pool(const struct frag_fragment *fragment, const struct frag_thread_pool *pool,
		       FILE *out)
{
	char text[96];

	for (uint32_t i = 0; i < fragment->crew_count; i++) {
		const struct fragi_crew *crew = &fragment->crews[i];

		if (crew->pool != pool)
			continue;
		fprintf(out, "  thread pool %s: %u thread%s for", pool->name, crew->thread_count,
			crew->thread_count == 1 ? "" : "s");
		for (uint32_t k = 0, n = 0; k < fragment->op_count; k++)
			if (fragment->ops[k]->crew == i + 1)
				fprintf(out, "%s%s", n++ > 0 ? ", " : " ", fragment->ops[k]->name);
		if (crew->pinned == NULL && pool->shared_count == 0)
			fputs(" no operator", out);
		for (size_t k = 0; k < crew->core_count; k++)
			fprintf(out, "%s%u", k > 0 ? ", " : " alone, on cores ", crew->cores[k]);
		if (crew->pinned != NULL && crew->core_count == 0)
			fputs(" alone", out);
		if (crew->realtime.policy != FRAGI_SCHED_NONE)
			fprintf(out, ", %s%s",
				fragi_realtime_text(&crew->realtime, text, sizeof(text)),
				crew->best_effort ? ", best effort" : "");
		fputc('\n', out);
	}
}

/* "realtime, 2 times as fast, from 10 s", "manual, from 5 ns", "of the machine" */
static void print_clock(const struct fragi_clock_config *clock, FILE *out)
{
	if (clock->kind == FRAGI_CLOCK_MACHINE) {
		fputs("of the machine", out);
		return;
	}
	fputs(ctl_clock_name(clock->kind), out);
	if (clock->kind != FRAGI_CLOCK_REALTIME) {
		fprintf(out, " (from %" PRId64 " ns)", clock->initial_ns);
		return;
	}
	fprintf(out, " (from %s%.10g s", clock->since_epoch ? "the Unix time + " : "",
		clock->offset_s);
	if (clock->scale != 1)
		fprintf(out, ", %.10g times as fast", clock->scale);
	fputc(')', out);
}

static void print_fragment(const struct ctl_composed *composed, uint32_t f, FILE *out)
{
	const struct frag_fragment *fragment = composed->fragments[f];
	uint32_t threads = ctl_thread_count(fragment->own);
	int width = 4;

	for (uint32_t i = 0; i < fragment->op_count; i++)
		if ((int)strlen(fragment->ops[i]->name) > width)
			width = (int)strlen(fragment->ops[i]->name);
	for (uint32_t i = 0; i < fragment->resource_count; i++)
		if ((int)strlen(fragment->resources[i]->name) > width)
			width = (int)strlen(fragment->resources[i]->name);
	fprintf(out, "\nfragment %s: %s, ", fragment->name, ctl_scheduler_name(fragment->own));
	if (threads > 0)
		fprintf(out, "%u thread%s", threads, threads == 1 ? "" : "s");
	else
		fprintf(out, "a thread for each operator%s, as far as there are cores",
			fragment->crew_count > 0 ? " in no thread pool" : "");
	if (fragment->own->host != NULL)
		fprintf(out, ", host %s", fragment->own->host);
	if (fragi_clock_own(fragment) != NULL) {
		fputs(", clock ", out);
		print_clock(fragi_clock_own(fragment), out);
	}
	print_on_failure(fragment->own, out);
	fputc('\n', out);
	for (uint32_t i = 0; i < fragment->op_count; i++)
		print_op(composed, f, i, width, out);
	for (uint32_t i = 0; i < fragment->resource_count; i++)
		print_resource(fragment->resources[i], width, out);
	for (uint32_t i = 0; i < fragment->pool_count; i++)
		print_pool(fragment, fragment->pools[i], out);
}

/* Of flows whose sender has memory of a GPU: prints each different reason once. */
static void print_gpu_reason(const struct ctl_composed *composed, size_t i, FILE *out)
{
	struct ctl_flow flow, earlier;

	ctl_flow_at(composed, i, &flow);
	if (flow.gpu_ways == 0)
		return;
	for (size_t k = 0; k < i; k++) {
		ctl_flow_at(composed, k, &earlier);
		if (strcmp(earlier.gpu_reason, flow.gpu_reason) == 0)
			return;
	}
	fprintf(out, "  GPU memory: %s\n", flow.gpu_reason);
}

/* Prints each different reason once, with the edge or the bound that it explains. */
static void print_reason(const struct ctl_composed *composed, size_t i, bool is_edge, FILE *out)
{
	struct ctl_flow flow, earlier;
	char bytes[32];

	ctl_flow_at(composed, i, &flow);
	for (size_t k = 0; k < i; k++) {
		ctl_flow_at(composed, k, &earlier);
		if (is_edge && strcmp(earlier.edge, flow.edge) == 0 &&
		    strcmp(earlier.edge_reason, flow.edge_reason) == 0)
			return;
		if (!is_edge && earlier.bytes_max == flow.bytes_max &&
		    strcmp(earlier.bytes_reason, flow.bytes_reason) == 0)
			return;
	}
	if (is_edge)
		fprintf(out, "  edge %s: %s\n", flow.edge, flow.edge_reason);
	else
		fprintf(out, "  memory %s: %s\n",
			flow.bytes_max == UINT64_MAX
				? "-"
				: format_bytes(flow.bytes_max, bytes, sizeof(bytes)),
			flow.bytes_reason);
}

static void print_flows(const struct ctl_composed *composed, FILE *out)
{
	size_t count = ctl_flow_count(composed);
	int from = 4, to = 2, type = 4;
	struct ctl_flow flow;
	char bytes[32], ways[CTL_GPU_WAYS_SIZE];

	for (size_t i = 0; i < count; i++) {
		ctl_flow_at(composed, i, &flow);
		from = (int)strlen(flow.from) > from ? (int)strlen(flow.from) : from;
		to = (int)strlen(flow.to) > to ? (int)strlen(flow.to) : to;
		type = (int)strlen(flow.type) > type ? (int)strlen(flow.type) : type;
	}
	if (count == 0)
		return;
	fprintf(out, "\n%-*s    %-*s  %-*s  capacity  policy  memory    edge\n", from, "flow", to,
		"", type, "type");
	for (size_t i = 0; i < count; i++) {
		ctl_flow_at(composed, i, &flow);
		fprintf(out, "%-*s -> %-*s  %-*s  %8u  %-6s  %-8s  %s%s%s%s\n", from, flow.from, to,
			flow.to, type, flow.type, flow.capacity, flow.policy,
			flow.bytes_max == UINT64_MAX
				? "-"
				: format_bytes(flow.bytes_max, bytes, sizeof(bytes)),
			flow.edge, flow.is_dynamic ? ", dynamic" : "",
			flow.gpu_ways != 0 ? ", GPU memory " : "",
			ctl_gpu_ways(flow.gpu_ways, ways, sizeof(ways)));
	}
	for (size_t i = 0; i < count; i++)
		print_reason(composed, i, true, out);
	for (size_t i = 0; i < count; i++)
		print_gpu_reason(composed, i, out);
	for (size_t i = 0; i < count; i++)
		print_reason(composed, i, false, out);
}

/* "fragment1.op", or "fragment1": all its operators */
static void print_party(const struct fragi_spec_party *party, FILE *out)
{
	fprintf(out, "%s%s%s", party->fragment, party->op != NULL ? "." : "",
		party->op != NULL ? party->op : "");
}

static void print_variable(const struct fragi_spec_variable *variable, FILE *out)
{
	fprintf(out, "  %s: %s", variable->name, variable->path != NULL ? "path, " : "");
	if (variable->writer.fragment != NULL) {
		fputs("written by ", out);
		print_party(&variable->writer, out);
	} else {
		fputs("written by no operator", out);
	}
	for (size_t i = 0; i < variable->reader_count; i++) {
		fputs(i == 0 ? ", read by " : ", ", out);
		print_party(&variable->readers[i], out);
	}
	fputc('\n', out);
}

static void print_plan(const struct fragi_spec *spec, const struct ctl_composed *composed,
		       FILE *out)
{
	char sum[200];

	fprintf(out, "%s: %s\nclock ", spec->application,
		ctl_composed_sum(composed, sum, sizeof(sum)));
	print_clock(&composed->clock, out);
	fputc('\n', out);
	for (uint32_t f = 0; f < composed->fragment_count; f++)
		print_fragment(composed, f, out);
	if (spec->variable_count > 0)
		fputs("\nshared variables\n", out);
	for (size_t i = 0; i < spec->variable_count; i++)
		print_variable(&spec->variables[i], out);
	print_flows(composed, out);
	ctl_paths_print(spec, composed, out);
}

static int describe(struct ctl_graph *graph)
{
	struct ctl_composed composed;
	char digest[CTL_DIGEST_SIZE];
	int exit_code = ctl_composed_make(graph, &composed);

	ctl_diag_print(&graph->diag);
	fragi_pools_warn(&graph->warnings);
	if (exit_code == CTL_OK && graph->is_json)
		exit_code = ctl_plan_digest(graph->spec, &composed, digest);
	if (exit_code != CTL_OK) {
		ctl_report(graph, NULL);
	} else if (graph->is_json) {
		ctl_describe_print_json(graph->spec, &composed, digest, stdout);
		graph->is_reported = true;
	} else {
		print_plan(graph->spec, &composed, stdout);
	}
	ctl_composed_fini(&composed);
	return exit_code;
}

int ctl_describe(int argc, char **argv)
{
	return ctl_report_verb(argc, argv, "fragctl describe",
			       "Composes an application as a run would, and prints its plan.",
			       describe);
}
