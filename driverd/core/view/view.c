// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/policy.h>
#include <base/timeline.h>
#include <edge/ledger.h>
#include <graph/transport.h>
#include <track/account.h>

/* What the present process has counted; NULL: nothing that can be used. */
static const struct fw_host_stats *counts_of(const struct drv_host *host)
{
	return host->now.stats != NULL && !host->now.is_doubted ? &host->now.stats->stats : NULL;
}

/* Whether a process of the host still counts, or another one is going to. */
static bool is_open(const struct drv_host *host)
{
	return host->app->times.ended_ns == 0 &&
	       (host->now.state != DRV_HOST_GONE || host->replacement.phase >= DRV_PHASE_ENDING);
}

static int32_t pid_of(const struct drv_host *host)
{
	const struct fw_message *answer =
		host->now.prepared != NULL ? host->now.prepared : host->tables;

	return answer != NULL ? answer->prepared.pid : 0;
}

uint64_t drv_view_delivered(const struct drv_app *app)
{
	uint64_t delivered = 0;

	for (uint32_t h = 0; h < app->host_count; h++)
		delivered += app->hosts[h].now.delivered_sum + app->hosts[h].past.delivered_sum;
	return delivered;
}

int64_t drv_view_first_message_ns(const struct drv_app *app)
{
	const char *here = app->core->config.clock != NULL ? app->core->config.clock : "";
	int64_t first_ns = 0;

	for (uint32_t h = 0; app->times.started_ns != 0 && h < app->host_count; h++) {
		const struct drv_host *host = &app->hosts[h];
		const struct fragi_timeline peer = fragi_timeline_between(here, host->clock);
		struct fragi_time time;

		if (host->past.first_ns != 0 &&
		    fragi_timeline_convert(&peer, (int64_t)host->past.first_ns, &time) &&
		    (first_ns == 0 || time.ns < first_ns))
			first_ns = time.ns;
	}
	return first_ns > app->times.started_ns ? first_ns - app->times.started_ns : 0;
}

void drv_view_application(const struct drv_app *app, struct fw_application_row *out)
{
	*out = (struct fw_application_row){
		.run = app->run,
		.name = drv_app_name(app),
		.state = drv_app_state_name(app->state),
		.age_ns = app->core->real_ns - app->times.given_ns,
		.epoch = app->epoch,
		.delivered = drv_view_delivered(app),
		.started_by = app->given.by,
		.missing = app->state == DRV_APP_WAITING ? app->placing.missing : "",
		.adopted = app->origin == DRV_ORIGIN_ADOPTED,
	};
}

void drv_view_host(const struct drv_host *host, struct fw_host_row *out)
{
	*out = (struct fw_host_row){
		.number = host->number,
		.fragments = host->all_names,
		.worker = host->worker,
		.state = drv_host_machine.state_names[host->now.state],
		.pid = pid_of(host),
		.stays = host->replacement.stays,
	};
}

/* What a host has answered of one of its fragments; NULL: nothing. */
static const struct fw_fragment *table_of(const struct drv_host *host, uint32_t in_host)
{
	return host->tables != NULL && in_host < host->fragment_count &&
			       in_host < host->tables->prepared.fragment_count
		       ? &host->tables->prepared.fragments[in_host]
		       : NULL;
}

static const char *state_of(const struct drv_app *app, const struct drv_host *host)
{
	if (host == NULL)
		return "waiting";
	if (host->failed)
		return "failed";
	if (host->now.is_lost)
		return "lost";
	if (app->times.started_ns == 0)
		return "prepared";
	if (is_open(host))
		return "running";
	return app->summary.result == FRAGI_SUMMARY_DONE && host->now.is_orderly ? "done"
										 : "stopped";
}

void drv_view_fragment(const struct drv_app *app, uint32_t index,
		       struct fragi_summary_fragment *out)
{
	const struct drv_host *host = app->fragments[index].host;
	const struct fw_fragment *table =
		host != NULL ? table_of(host, app->fragments[index].in_host) : NULL;

	*out = (struct fragi_summary_fragment){.name = app->spec->fragments[index].name,
					       .state = state_of(app, host)};
	if (host == NULL)
		return;
	out->worker = app->core->config.is_local ? NULL : host->worker;
	out->epoch = host->now.epoch;
	out->restarts = host->restarts.count;
	out->host_pid = pid_of(host);
	out->operator_count = table != NULL ? table->op_count : 0;
}

/* row: in the ledger of the host */
static void view_operator(const struct drv_host *host, uint32_t row, struct drv_view_operator *out)
{
	struct fragi_summary_operator *sum = &out->row;
	const struct fw_op_stats *now = NULL;

	if (host->now.stats != NULL && row < host->now.stats->stats.op_count)
		now = &host->now.stats->stats.ops[row];
	out->is_running = now != NULL && now->running;
	out->has_ended = now != NULL && now->state >= FRAGI_OP_DONE;
	if (row < host->past.sums.op_count) {
		const struct fw_op_stats *past = &host->past.sums.ops[row];

		sum->ticks = past->ticks;
		memcpy(sum->counters, past->counters, sizeof(sum->counters));
		sum->compute = past->compute;
	}
	if (now == NULL || host->now.is_doubted)
		return;
	sum->ticks += now->ticks;
	fragi_quantiles_add(&sum->compute, &now->compute);
	sum->time_ns = now->time_ns;
	sum->waiting_ns = now->waiting_ns;
	for (int i = 0; i < FRAGI_OP_COUNTERS; i++)
		sum->counters[i] += now->counters[i];
	sum->realtime = now->realtime;
}

bool drv_view_operator(const struct drv_app *app, struct drv_view_at *at,
		       struct drv_view_operator *out)
{
	const struct fw_fragment *table;

	for (; at->host < app->host_count; at->host++, at->in_host = at->row = 0) {
		const struct drv_host *host = &app->hosts[at->host];

		for (; (table = table_of(host, at->in_host)) != NULL; at->in_host++, at->op = 0) {
			if (at->op == table->op_count)
				continue;
			*out = (struct drv_view_operator){.fragment = host->fragments[at->in_host],
							  .number = at->op,
							  .pools = table->ops[at->op].pools,
							  .row.name = table->ops[at->op].name,
							  .row.type = table->ops[at->op].type};
			view_operator(host, at->row, out);
			at->op++;
			at->row++;
			return true;
		}
	}
	return false;
}

size_t drv_view_operator_count(const struct drv_app *app)
{
	const struct fw_fragment *table;
	size_t count = 0;

	for (uint32_t i = 0; i < app->host_count; i++)
		for (uint32_t k = 0; (table = table_of(&app->hosts[i], k)) != NULL; k++)
			count += table->op_count;
	return count;
}

const char *drv_view_busy(const struct drv_host *host)
{
	const struct drv_app *app = host->app;
	struct drv_view_at at = {.host = host->number - 1};
	struct drv_view_operator op;

	while (drv_view_operator(app, &at, &op) && at.host == host->number - 1)
		if (op.is_running)
			return drv_text(app->core, "%s.%s", app->spec->fragments[op.fragment].name,
					op.row.name);
	return NULL;
}

/* The end of a flow in a host; row: in the ledger of the host */
static struct fragi_account_end end_at(const struct drv_host *host, uint32_t row)
{
	const struct fw_host_stats *counts = counts_of(host);
	const struct drv_past *past = &host->past;
	struct fragi_account_end end = {
		.is_orderly = host->now.is_orderly,
		.was_restarted =
			host->restarts.count + host->restarts.moves != 0 || past->is_inexact,
		.past = row < past->sums.flow_count ? &past->sums.flows[row] : NULL,
		.is_inexact = past->is_inexact,
		.is_open = is_open(host),
	};

	if (counts != NULL && row < counts->flow_count)
		end.row = &counts->flows[row];
	if (end.is_open)
		end.is_final = !host->now.is_doubted;
	else
		end.is_final = counts != NULL && counts->final;
	if (!host->now.has_begun)
		end.is_final = true;
	if (host->app->times.started_ns == 0) /* nothing ran, so nothing can be missing */
		end = (struct fragi_account_end){.is_final = true, .is_orderly = true};
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
static int put_edge(const struct fw_address *address, struct fragi_arena *arena,
		    struct fragi_summary_flow *out)
{
	char gpu[80];

	if (address == NULL)
		return 0;
	out->edge = address->transport;
	if (put_gpu_way(out, gpu, sizeof(gpu)) == 0 && address->detail[0] == '\0' &&
	    !out->encrypted)
		return 0;
	out->edge_detail = fragi_arena_printf(
		arena, "%s%s%s%s%s", address->transport, address->detail[0] != '\0' ? " " : "",
		address->detail, out->encrypted ? ", encrypted" : "", gpu);
	return out->edge_detail != NULL ? 0 : -ENOMEM;
}

size_t drv_view_flow_count(const struct drv_app *app)
{
	return app->flows.infos != NULL ? app->flows.count : 0;
}

static void view_between(const struct drv_host *from, const struct drv_host *to,
			 const struct fragi_flow_info *flow, struct drv_edge_rows rows,
			 struct fragi_summary_flow *out)
{
	const struct fragi_account_end sender = end_at(from, rows.sender);
	const struct fragi_account_end receiver = end_at(to, rows.receiver);

	fragi_account_between(&sender, &receiver, flow->capacity,
			      !fragi_policy(flow->policy)->blocking, out);
	if (out->latency.count == 0 &&
	    fragi_timeline_between(to->clock, from->clock).state == FRAGI_TIMELINE_UNKNOWN)
		out->latency_reason = "its ends have two clocks, which are not compared yet";
	out->encrypted = drv_flow_is_encrypted(from->app, flow);
}

static void view_inner(const struct drv_host *host, const struct fragi_flow_info *flow,
		       uint32_t row, struct fragi_summary_flow *out)
{
	const struct fragi_account_end end = end_at(host, row);

	fragi_account_inner(&end, flow->capacity, out);
	out->edge = "inproc";
}

void drv_view_counts(const struct drv_app *app, size_t index, struct fragi_summary_flow *out)
{
	const struct fragi_flow_info *flow = &app->flows.items[index];
	const struct drv_host *from = app->fragments[flow->from_fragment].host;
	const struct drv_host *to = app->fragments[flow->to_fragment].host;

	*out = (struct fragi_summary_flow){
		.capacity = flow->capacity,
		.policy = fragi_policy(flow->policy)->name,
	};
	if (flow->between_hosts)
		view_between(from, to, flow,
			     app->flows.rows != NULL ? app->flows.rows[index]
						     : (struct drv_edge_rows){0},
			     out);
	else
		view_inner(from, flow, (uint32_t)index - from->first_flow, out);
	if (out->lost > 0)
		out->lost_because =
			to->restarts.last != NULL ? to->restarts.last : from->restarts.last;
}

int drv_view_flow(const struct drv_app *app, size_t index, struct fragi_arena *arena,
		  struct fragi_summary_flow *out)
{
	const struct fragi_flow_info *flow = &app->flows.items[index];
	const struct drv_host *from = app->fragments[flow->from_fragment].host;
	char sender[3 * FRAG_NAME_MAX + 3], receiver[3 * FRAG_NAME_MAX + 3];

	fragi_flow_from(app->flows.infos, flow, sender, sizeof(sender));
	fragi_flow_to(app->flows.infos, flow, receiver, sizeof(receiver));
	drv_view_counts(app, index, out);
	out->from = fragi_arena_strdup(arena, sender);
	out->to = fragi_arena_strdup(arena, receiver);
	if (out->from == NULL || out->to == NULL)
		return -ENOMEM;
	return flow->between_hosts ? put_edge(drv_flow_address(from, flow), arena, out) : 0;
}

/* "f1.tx.out", without what the graph leaves out. */
static const char *end_text(const struct drv_app *app, const struct fragi_spec_end *end)
{
	return drv_text(app->core, "%s.%s%s%s", end->fragment, end->op,
			end->port != NULL ? "." : "", end->port != NULL ? end->port : "");
}

void drv_view_route(const struct drv_app *app, const struct fragi_spec_flow *flow,
		    const struct fragi_spec_end *to, struct fw_route_row *out)
{
	const struct drv_host *sender = drv_host_running(app, flow->from.fragment);
	const struct drv_host *receiver = drv_host_running(app, to->fragment);
	struct fragi_fragment_info from_info, to_info;
	struct fragi_choice choice;

	*out = (struct fw_route_row){.from = end_text(app, &flow->from),
				     .to = end_text(app, to),
				     .edge = "",
				     .reason = "its fragments have no workers yet"};
	if (sender == NULL || receiver == NULL)
		return;
	from_info = drv_flow_end_info(sender);
	to_info = drv_flow_end_info(receiver);
	choice = fragi_transport_choose(flow->edge, &from_info, &to_info);
	out->edge = choice.transport != NULL ? choice.transport : "inproc";
	out->reason =
		choice.transport != NULL ? choice.reason : "both fragments run in one process";
	out->encrypted = sender != receiver && (flow->encrypt || app->core->config.encrypts_data);
}
