// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/policy.h>
#include <track/account.h>

/*
 * What an ended application's tables say, as a summary; everything lives in the application's
 * arena.
 */

static const struct fragi_flow_stats *row_at(const struct drv_host *host, uint32_t row)
{
	return host->stats != NULL && row < host->stats->stats.flow_count
		       ? &host->stats->stats.flows[row]
		       : NULL;
}

static struct fragi_account_end end_at(const struct drv_host *host, uint32_t row)
{
	struct fragi_account_end end = {
		.row = row_at(host, row),
		.is_final = host->stats != NULL && host->stats->stats.final,
		.is_orderly = host->orderly,
	};

	if (host->app->started_ns == 0) /* nothing ran, so nothing can be missing */
		end = (struct fragi_account_end){.is_final = true, .is_orderly = true};
	return end;
}

/*
 * The row of a flow between hosts in the ledger of one of them. A flow from a host to itself has
 * two, that of the sending end first.
 */
static uint32_t edge_row(const struct drv_host *host, size_t flow, bool sends)
{
	uint32_t i = 0;

	while (i < host->edge_count && host->edges[i] != flow)
		i++;
	if (!sends && i + 1 < host->edge_count && host->edges[i + 1] == flow)
		i++;
	return host->inner_flow_count + i;
}

/* "ucx 1.13.1 tcp lo" is "ucx tcp lo" for people, and "ucx" for programs. */
static int put_edge(struct drv_app *app, struct fragi_summary_flow *out, const char *transport)
{
	size_t word = strcspn(transport, " ");
	const char *rest = transport + word;

	if (rest[0] == ' ' && rest[1] >= '0' && rest[1] <= '9')
		rest += 1 + strcspn(rest + 1, " ");
	out->edge = fragi_arena_strndup(&app->arena, transport, word);
	out->edge_detail = fragi_arena_printf(&app->arena, "%.*s%s", (int)word, transport, rest);
	return out->edge != NULL && out->edge_detail != NULL ? 0 : -ENOMEM;
}

static int report_inner(struct drv_app *app, size_t index, struct fragi_summary_flow *out)
{
	const struct fragi_flow_info *flow = &app->flows[index];
	const struct drv_host *host = app->fragments[flow->from_fragment].host;
	struct fragi_account_end end = end_at(host, (uint32_t)index - host->first_flow);

	fragi_account_inner(&end, flow->capacity, out);
	out->edge = "inproc";
	return 0;
}

static int report_between(struct drv_app *app, size_t index, struct fragi_summary_flow *out)
{
	const struct fragi_flow_info *flow = &app->flows[index];
	const struct drv_host *from = app->fragments[flow->from_fragment].host;
	const struct drv_host *to = app->fragments[flow->to_fragment].host;
	struct fragi_account_end sender = end_at(from, edge_row(from, index, true));
	struct fragi_account_end receiver = end_at(to, edge_row(to, index, false));
	bool queues = !fragi_policy(flow->policy)->blocking;

	fragi_account_between(&sender, &receiver, flow->capacity, queues, out);
	if (strcmp(from->node, to->node) != 0)
		out->latency_reason =
			"its ends are on two nodes, whose clocks are not compared yet";
	return put_edge(app, out, from->prepared->prepared.transport);
}

static int report_flow(struct drv_app *app, size_t index, struct fragi_summary_flow *out)
{
	const struct fragi_flow_info *flow = &app->flows[index];
	char from[3 * FRAG_NAME_MAX + 3], to[3 * FRAG_NAME_MAX + 3];

	fragi_flow_from(app->infos, flow, from, sizeof(from));
	fragi_flow_to(app->infos, flow, to, sizeof(to));
	out->from = fragi_arena_strdup(&app->arena, from);
	out->to = fragi_arena_strdup(&app->arena, to);
	out->capacity = flow->capacity;
	out->policy = fragi_policy(flow->policy)->name;
	if (out->from == NULL || out->to == NULL)
		return -ENOMEM;
	return flow->between_hosts ? report_between(app, index, out)
				   : report_inner(app, index, out);
}

static const char *fragment_state(const struct drv_app *app, const struct drv_host *host)
{
	if (host == NULL)
		return "waiting";
	if (host->failed)
		return "failed";
	if (host->lost)
		return "lost";
	if (app->started_ns == 0)
		return "prepared";
	return app->result == FRAGI_SUMMARY_DONE && host->orderly ? "done" : "stopped";
}

static int report_operators(struct drv_app *app, const struct drv_host *host, uint32_t in_host,
			    struct fragi_summary_fragment *out)
{
	const struct fw_host_prepared *prepared = &host->prepared->prepared;
	const struct fw_fragment *table = &prepared->fragments[in_host];
	struct fragi_summary_operator *ops =
		fragi_arena_alloc(&app->arena, table->op_count * sizeof(*ops));
	uint32_t row = 0;

	if (ops == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < in_host; i++)
		row += prepared->fragments[i].op_count;
	for (uint32_t i = 0; i < table->op_count; i++, row++) {
		ops[i] = (struct fragi_summary_operator){.name = table->ops[i].name,
							 .type = table->ops[i].type};
		if (host->stats == NULL || row >= host->stats->stats.op_count)
			continue;
		ops[i].ticks = host->stats->stats.ops[row].ticks;
		ops[i].compute = host->stats->stats.ops[row].compute;
	}
	out->operators = ops;
	out->operator_count = table->op_count;
	return 0;
}

static int report_fragment(struct drv_app *app, uint32_t index, struct fragi_summary_fragment *out)
{
	const struct drv_host *host = app->fragments[index].host;
	uint32_t in_host = 0;

	out->name = app->spec->fragments[index].name;
	out->state = fragment_state(app, host);
	if (host == NULL)
		return 0;
	out->worker = app->core->config.is_local ? NULL : host->worker;
	out->epoch = host->epoch;
	if (host->prepared == NULL)
		return 0;
	out->host_pid = host->prepared->prepared.pid;
	while (host->fragments[in_host] != index)
		in_host++;
	if (in_host >= host->prepared->prepared.fragment_count)
		return 0;
	return report_operators(app, host, in_host, out);
}

/* When the first message was sent, by the clock that the driver and hosts of its node share. */
static int64_t first_message(const struct drv_app *app)
{
	const char *here = app->core->config.node;
	uint64_t first = 0;

	for (uint32_t h = 0; h < app->host_count; h++) {
		const struct drv_host *host = &app->hosts[h];

		if (host->stats == NULL || here == NULL || strcmp(host->node, here) != 0)
			continue;
		for (uint32_t i = 0; i < host->stats->stats.flow_count; i++) {
			uint64_t at = host->stats->stats.flows[i].first_ns;

			if (at != 0 && at < INT64_MAX && (first == 0 || at < first))
				first = at;
		}
	}
	return first != 0 && (int64_t)first > app->started_ns ? (int64_t)first - app->started_ns
							      : 0;
}

static int report_tables(struct drv_app *app)
{
	size_t count = app->spec->fragment_count,
	       flow_count = app->infos != NULL ? app->flow_count : 0;
	struct fragi_summary_fragment *fragments =
		fragi_arena_alloc(&app->arena, count * sizeof(*fragments));
	struct fragi_summary_flow *flows =
		fragi_arena_alloc(&app->arena, flow_count * sizeof(*flows));

	if (fragments == NULL || flows == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		if (report_fragment(app, i, &fragments[i]) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < flow_count; i++)
		if (report_flow(app, i, &flows[i]) < 0)
			return -ENOMEM;
	app->summary.fragments = fragments;
	app->summary.fragment_count = count;
	app->summary.flows = flows;
	app->summary.flow_count = flow_count;
	return 0;
}

int drv_report(struct drv_app *app)
{
	int64_t from = app->started_ns != 0 ? app->started_ns : app->given_ns;

	app->summary = (struct fragi_summary){
		.application = app->spec != NULL ? app->spec->application : "",
		.result = app->result,
		.failure = app->failure,
		.exit_code = app->exit_code,
		.started_unix_ns = app->started_ns != 0
					   ? app->started_ns + app->core->config.realtime_offset_ns
					   : 0,
		.duration_ns = app->ended_ns - from,
		.shutdown_ns = app->ended_ns - app->ending_ns,
	};
	if (app->spec == NULL)
		return 0;
	if (app->started_ns != 0)
		app->summary.first_message_ns = first_message(app);
	return report_tables(app);
}

uint64_t drv_report_delivered(const struct drv_app *app)
{
	uint64_t delivered = 0;

	for (uint32_t h = 0; h < app->host_count; h++) {
		const struct fw_message *stats = app->hosts[h].stats;

		for (uint32_t i = 0; stats != NULL && i < stats->stats.flow_count; i++)
			delivered += stats->stats.flows[i].delivered;
	}
	return delivered;
}
