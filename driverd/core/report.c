// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/policy.h>
#include <base/timeline.h>
#include <track/account.h>

/*
 * What an ended application's tables say, as a summary; everything lives in the application's
 * arena.
 */

static const struct fragi_flow_stats *row_at(const struct drv_host *host, uint32_t row)
{
	return host->now.stats != NULL && !host->now.is_doubted &&
			       row < host->now.stats->stats.flow_count
		       ? &host->now.stats->stats.flows[row]
		       : NULL;
}

static struct fragi_account_end end_at(const struct drv_host *host, uint32_t row)
{
	struct fragi_account_end end = {
		.row = row_at(host, row),
		.is_final = host->now.stats != NULL && host->now.stats->stats.final &&
			    !host->now.is_doubted,
		.is_orderly = host->now.is_orderly,
	};

	if (host->app->times.started_ns == 0) /* nothing ran, so nothing can be missing */
		end = (struct fragi_account_end){.is_final = true, .is_orderly = true};
	if (!host->now.has_begun)
		end.is_final = true;
	return end;
}

static const struct fragi_flow_stats *past_at(const struct drv_host *host, uint32_t row)
{
	return row < host->past.flow_count ? &host->past.flows[row] : NULL;
}

/* The sum of all epochs, in *sum where there were several. */
static struct fragi_account_end end_of_all(const struct drv_host *host, uint32_t row,
					   struct fragi_flow_stats *sum)
{
	struct fragi_account_end end = end_at(host, row);
	const struct fragi_flow_stats *past = past_at(host, row);

	if (host->restarts.count + host->restarts.moves == 0 && !host->past.is_inexact)
		return end;
	*sum = (struct fragi_flow_stats){0};
	if (past != NULL)
		fragi_account_add(sum, past);
	if (end.row != NULL)
		fragi_account_add(sum, end.row);
	end.row = sum;
	end.is_final = end.is_final && !host->past.is_inexact;
	end.was_restarted = true;
	return end;
}

/* How messages with memory of a GPU went to the other host; none has: nothing. */
static int put_gpu_way(const struct fragi_summary_flow *flow, char *out, size_t size)
{
	if (flow->gpu_mapped > 0 && flow->gpu_staged > 0)
		return snprintf(out, size, ", GPU memory mapped, %" PRIu64 " messages staged",
				flow->gpu_staged);
	return snprintf(out, size, "%s",
			flow->gpu_mapped > 0   ? ", GPU memory mapped"
			: flow->gpu_staged > 0 ? ", GPU memory staged"
					       : "");
}

/* "ucx tcp lo, encrypted" for people, and "ucx" for programs. */
static int put_edge(struct drv_app *app, const struct fw_address *address,
		    struct fragi_summary_flow *out)
{
	char gpu[80];

	if (address == NULL)
		return 0;
	out->edge = address->transport;
	if (put_gpu_way(out, gpu, sizeof(gpu)) == 0 && address->detail[0] == '\0' &&
	    !out->encrypted)
		return 0;
	out->edge_detail =
		fragi_arena_printf(&app->arena, "%s%s%s%s%s", address->transport,
				   address->detail[0] != '\0' ? " " : "", address->detail,
				   out->encrypted ? ", encrypted" : "", gpu);
	return out->edge_detail != NULL ? 0 : -ENOMEM;
}

static int report_inner(struct drv_app *app, size_t index, struct fragi_summary_flow *out)
{
	const struct fragi_flow_info *flow = &app->flows.items[index];
	const struct drv_host *host = app->fragments[flow->from_fragment].host;
	struct fragi_account_end end = end_at(host, (uint32_t)index - host->first_flow);

	fragi_account_inner(&end, past_at(host, (uint32_t)index - host->first_flow), flow->capacity,
			    out);
	if (host->past.is_inexact) {
		out->exact = false;
		out->lost_at_least = 0;
		out->sent_at_most = out->delivered_at_most = FRAGI_SUMMARY_OPEN;
	}
	out->lost_because = out->lost > 0 ? host->restarts.last : NULL;
	out->edge = "inproc";
	return 0;
}

static int report_between(struct drv_app *app, size_t index, struct fragi_summary_flow *out)
{
	const struct fragi_flow_info *flow = &app->flows.items[index];
	const struct drv_host *from = app->fragments[flow->from_fragment].host;
	const struct drv_host *to = app->fragments[flow->to_fragment].host;
	struct drv_edge_rows rows =
		app->flows.rows != NULL ? app->flows.rows[index] : (struct drv_edge_rows){0};
	struct fragi_flow_stats sent, received;
	struct fragi_account_end sender = end_of_all(from, rows.sender, &sent);
	struct fragi_account_end receiver = end_of_all(to, rows.receiver, &received);
	bool queues = !fragi_policy(flow->policy)->blocking;

	fragi_account_between(&sender, &receiver, flow->capacity, queues, out);
	if (out->lost > 0)
		out->lost_because =
			to->restarts.last != NULL ? to->restarts.last : from->restarts.last;
	if (fragi_timeline_between(to->clock, from->clock).state == FRAGI_TIMELINE_UNKNOWN)
		out->latency_reason = "its ends have two clocks, which are not compared yet";
	out->encrypted = drv_flow_is_encrypted(app, flow);
	return put_edge(app, drv_wiring_address(from, flow), out);
}

static int report_flow(struct drv_app *app, size_t index, struct fragi_summary_flow *out)
{
	const struct fragi_flow_info *flow = &app->flows.items[index];
	char from[3 * FRAG_NAME_MAX + 3], to[3 * FRAG_NAME_MAX + 3];

	fragi_flow_from(app->flows.infos, flow, from, sizeof(from));
	fragi_flow_to(app->flows.infos, flow, to, sizeof(to));
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
	if (host->now.is_lost)
		return "lost";
	if (app->times.started_ns == 0)
		return "prepared";
	return app->summary.result == FRAGI_SUMMARY_DONE && host->now.is_orderly ? "done"
										 : "stopped";
}

static void report_fragment(struct drv_app *app, uint32_t index, struct fragi_summary_fragment *out)
{
	const struct drv_host *host = app->fragments[index].host;

	out->name = app->spec->fragments[index].name;
	out->state = fragment_state(app, host);
	if (host == NULL)
		return;
	out->worker = app->core->config.is_local ? NULL : host->worker;
	out->epoch = host->now.epoch;
	out->restarts = host->restarts.count;
	if (host->tables != NULL)
		out->host_pid = host->now.prepared != NULL ? host->now.prepared->prepared.pid
							   : host->tables->prepared.pid;
}

/* An operator; row: its row in the ledger of its host. */
static struct fragi_summary_operator operator_at(const struct drv_host *host,
						 const struct fw_op *op, uint32_t row)
{
	struct fragi_summary_operator out = {.name = op->name, .type = op->type};

	if (row < host->past.op_count) {
		out.ticks = host->past.ops[row].ticks;
		memcpy(out.counters, host->past.ops[row].counters, sizeof(out.counters));
	}
	if (host->now.stats == NULL || host->now.is_doubted ||
	    row >= host->now.stats->stats.op_count)
		return out;
	out.ticks += host->now.stats->stats.ops[row].ticks;
	out.compute = host->now.stats->stats.ops[row].compute;
	out.time_ns = host->now.stats->stats.ops[row].time_ns;
	out.waiting_ns = host->now.stats->stats.ops[row].waiting_ns;
	for (int i = 0; i < FRAGI_OP_COUNTERS; i++)
		out.counters[i] += host->now.stats->stats.ops[row].counters[i];
	out.realtime = host->now.stats->stats.ops[row].realtime;
	return out;
}

/* What its rates and budgets promised of the operator that is next. */
static void add_prediction(struct drv_reporting *at, uint32_t fragment)
{
	struct fragi_summary_operator *out = &at->operators[at->op];
	const struct fragi_predicted_op *predicted;

	if (at->prediction.ops == NULL)
		return;
	predicted = &at->prediction.ops[at->prediction.first_op[fragment] + at->op];
	out->predicted_rate_mhz = (uint64_t)(predicted->rate * 1000 + 0.5);
	out->budget_ns = (uint64_t)predicted->budget_ns;
}

/* The operators of one fragment of a host. */
static int report_operators(struct drv_app *app, const struct drv_host *host)
{
	struct drv_reporting *at = &app->reporting;
	const struct fw_fragment *table = &host->tables->prepared.fragments[at->in_host];
	struct fragi_summary_fragment *out = &at->fragments[host->fragments[at->in_host]];

	if (at->op == 0)
		at->operators =
			fragi_arena_alloc(&app->arena, table->op_count * sizeof(*at->operators));
	if (at->operators == NULL)
		return -ENOMEM;
	for (; at->op < table->op_count; at->op++) {
		if (app->core->items <= 0)
			return -EAGAIN;
		app->core->items--;
		at->operators[at->op] = operator_at(host, &table->ops[at->op], at->row++);
		add_prediction(at, host->fragments[at->in_host]);
	}
	out->operators = at->operators;
	out->operator_count = table->op_count;
	at->op = 0;
	return 0;
}

static int report_hosts(struct drv_app *app)
{
	struct drv_reporting *at = &app->reporting;
	int r;

	for (; at->host < app->host_count; at->host++, at->in_host = at->row = 0) {
		const struct drv_host *host = &app->hosts[at->host];
		uint32_t count = host->tables != NULL ? host->tables->prepared.fragment_count : 0;

		for (; at->in_host < count && at->in_host < host->fragment_count; at->in_host++) {
			r = report_operators(app, host);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* When the first message was sent, as far as the driver knows the time of hosts. */
static int64_t first_message(const struct drv_app *app)
{
	const char *here = app->core->config.clock;
	int64_t first = 0;

	for (uint32_t h = 0; h < app->host_count; h++) {
		const struct drv_host *host = &app->hosts[h];
		const struct fragi_timeline peer =
			fragi_timeline_between(here != NULL ? here : "", host->clock);
		struct fragi_time time;

		if (host->now.first_ns == 0 ||
		    !fragi_timeline_convert(&peer, (int64_t)host->now.first_ns, &time))
			continue;
		if (first == 0 || time.ns < first)
			first = time.ns;
	}
	return first > app->times.started_ns ? first - app->times.started_ns : 0;
}

/* Everything but the tables. */
static void report_head(struct drv_app *app)
{
	int64_t from = app->times.started_ns != 0 ? app->times.started_ns : app->times.given_ns;

	app->summary = (struct fragi_summary){
		.application = app->spec != NULL ? app->spec->application : "",
		.result = app->summary.result,
		.failure = app->summary.failure,
		.exit_code = app->summary.exit_code,
		.started_unix_ns =
			app->times.started_ns != 0
				? app->times.started_ns + app->core->config.realtime_offset_ns
				: 0,
		.duration_ns = app->times.ended_ns - from,
		.shutdown_ns = app->times.ended_ns - app->times.ending_ns,
		.first_message_ns = app->times.started_ns != 0 ? first_message(app) : 0,
	};
}

static int report_begin(struct drv_app *app)
{
	size_t fragment_count = app->spec != NULL ? app->spec->fragment_count : 0;
	size_t flow_count = app->flows.infos != NULL ? app->flows.count : 0;
	struct drv_reporting *at = &app->reporting;
	int r;

	at->begun = true;
	report_head(app);
	if (app->times.started_ns != 0 && app->flows.infos != NULL &&
	    fragi_predict_wanted(app->spec)) {
		r = fragi_predict(app->spec, app->flows.infos, app->flows.items, app->flows.count,
				  &at->prediction);
		if (r < 0)
			return r;
		app->core->items -= (int64_t)app->flows.count;
	}
	if (app->fragments == NULL) /* memory was short from the beginning */
		fragment_count = 0;
	at->fragments = fragi_arena_alloc(&app->arena, fragment_count * sizeof(*at->fragments));
	at->flows = fragi_arena_alloc(&app->arena, flow_count * sizeof(*at->flows));
	if (at->fragments == NULL || at->flows == NULL)
		return -ENOMEM;
	app->summary.fragments = at->fragments;
	app->summary.fragment_count = fragment_count;
	app->summary.flows = at->flows;
	app->summary.flow_count = flow_count;
	return 0;
}

static int report_tables(struct drv_app *app)
{
	struct drv_reporting *at = &app->reporting;
	int r = 0;

	for (; r == 0 && at->fragment < app->summary.fragment_count; at->fragment++) {
		if (app->core->items <= 0)
			return -EAGAIN;
		app->core->items--;
		report_fragment(app, at->fragment, &at->fragments[at->fragment]);
	}
	if (r == 0)
		r = report_hosts(app);
	for (; r == 0 && at->flow < app->summary.flow_count; at->flow++) {
		if (app->core->items <= 0)
			return -EAGAIN;
		app->core->items--;
		r = report_flow(app, at->flow, &at->flows[at->flow]);
	}
	return r;
}

int drv_report(struct drv_app *app)
{
	int r = app->reporting.begun ? 0 : report_begin(app);

	if (r == 0)
		r = report_tables(app);
	if (r != -EAGAIN)
		fragi_prediction_fini(&app->reporting.prediction);
	if (r != -ENOMEM)
		return r;
	app->end = DRV_END_NONE; /* that its end cannot be shown is the cause that counts */
	drv_app_fail_for_memory(app);
	report_head(app);
	return 0;
}

/* What an operator has overwritten is of no use, and nobody knows how much of it that is. */
static void doubt(struct drv_host *host)
{
	host->now.is_doubted = true;
	drv_log(host->app->core, FRAGI_LOG_WARN, host->app->spec->application,
		"the counts of %s on worker %s contradict each other or have become less: an operator may have overwritten them; they are not used, and the summary is not exact",
		host->name, host->worker);
}

void drv_report_stats(struct drv_host *host, const struct fw_host_stats *stats)
{
	const struct fw_host_stats *before =
		host->now.stats != NULL ? &host->now.stats->stats : NULL;

	host->now.delivered_sum = 0;
	host->now.first_ns = host->past.first_ns;
	for (uint32_t i = 0; i < stats->flow_count; i++) {
		const struct fragi_flow_stats *row = &stats->flows[i];
		bool had_row = before != NULL && i < before->flow_count;

		if (!host->now.is_doubted &&
		    !fragi_account_is_sound(row, had_row ? &before->flows[i] : NULL))
			doubt(host);
		host->now.delivered_sum += row->delivered;
		if (row->first_ns != 0 && row->first_ns < INT64_MAX &&
		    (host->now.first_ns == 0 || row->first_ns < host->now.first_ns))
			host->now.first_ns = row->first_ns;
	}
	host->app->core->items -= stats->flow_count;
}

uint64_t drv_report_delivered(const struct drv_app *app)
{
	uint64_t delivered = 0;

	for (uint32_t h = 0; h < app->host_count; h++)
		delivered += app->hosts[h].now.delivered_sum + app->hosts[h].past.delivered_sum;
	return delivered;
}
