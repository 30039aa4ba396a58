// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <string.h>

#include <base/policy.h>

/*
 * The ledger of messages: each that a simulated operator has sent was received, dropped for a
 * reason, or lies where it was when its application ended. What a summary counts is held against
 * that, message by message and reason by reason, and its ticks against those that there were.
 */
struct truth {
	uint64_t sent, received, dropped;
	/* no longer moved: at the sender, between the hosts, in the receiver's queue */
	uint64_t lost;
};

static struct truth truth_of(struct sim *sim, const struct sim_app *app,
			     const struct sim_flow *flow)
{
	struct truth truth = {.sent = flow->true_sent,
			      .received = flow->true_received,
			      .lost = flow->true_lost + flow->pending + sim_flow_left(flow) -
				      (flow->true_arrived - flow->arrived_before) + flow->queued};
	uint64_t known;

	for (int r = 0; r < FRAGI_DROP_REASONS; r++)
		truth.dropped += flow->true_dropped[r];
	known = truth.received + truth.dropped + truth.lost;
	if (truth.sent != known)
		sim_fail(sim, "ledger",
			 "%s: a flow of f%u was sent %llu messages, of which %llu are known",
			 app->name, flow->to_fragment, (unsigned long long)truth.sent,
			 (unsigned long long)known);
	return truth;
}

static const struct sim_flow *flow_of(const struct sim_app *app, const char *from, const char *to)
{
	unsigned int from_fragment, to_fragment, from_port = 0, to_port = 0;
	char from_op, to_op;

	if (sscanf(from, "f%u.%c", &from_fragment, &from_op) != 2 ||
	    sscanf(to, "f%u.%c", &to_fragment, &to_op) != 2)
		return NULL;
	sscanf(from, "f%*u.b.o%u", &from_port);
	sscanf(to, "f%*u.a.i%u", &to_port);
	for (uint32_t i = 0; i < app->flow_count; i++) {
		const struct sim_flow *flow = &app->flows[i];

		if (flow->from_fragment != from_fragment || flow->to_fragment != to_fragment ||
		    flow->inner != (from_op == 'a'))
			continue;
		if (flow->inner ||
		    (flow->from_port == from_port + 1 && flow->to_port == to_port + 1))
			return flow;
	}
	return NULL;
}

/* Another process follows one of it, or was to: it may have been refused, or lost on the way. */
static bool is_followed(const struct sim_app *app, const struct sim_flow *flow,
			const struct fragi_summary *summary)
{
	bool is_restarted = sim_restart_was_made(app);

	for (uint32_t i = 0; i < summary->fragment_count; i++)
		is_restarted = is_restarted || summary->fragments[i].restarts > 0;
	return is_restarted || app->on_failure[flow->from_fragment].lease_ns > 0 ||
	       app->on_failure[flow->to_fragment].lease_ns > 0;
}

/* What is lost or in flight: never less than in truth, nor more than the window above it. */
static void check_missing(struct sim *sim, const struct sim_app *app, const struct sim_flow *flow,
			  const struct fragi_summary_flow *said, const struct truth *truth,
			  bool is_bounded)
{
	uint64_t missing = said->lost + said->in_flight, bound = flow->capacity;

	if (!flow->in_host)
		bound = flow->policy == FRAG_POLICY_BLOCK ? flow->window : 3ull * flow->window;
	if (!fragi_summary_flow_balances(said))
		sim_fail(sim, "balance", "%s: %s -> %s does not balance", app->name, said->from,
			 said->to);
	if (is_bounded && (missing < truth->lost || missing > truth->lost + bound))
		sim_fail(sim, "ledger",
			 "%s: %s -> %s: %llu messages are missing in truth, %llu in the summary",
			 app->name, said->from, said->to, (unsigned long long)truth->lost,
			 (unsigned long long)missing);
	if (said->lost_at_least > truth->lost || said->sent_at_least > truth->sent ||
	    said->sent_at_most < truth->sent || said->delivered_at_least > truth->received ||
	    said->delivered_at_most < truth->received)
		sim_fail(
			sim, "ledger",
			"%s: %s -> %s: sent %llu, delivered %llu, lost %llu in truth; at least %llu sent, at most %llu delivered, at least %llu lost in the summary",
			app->name, said->from, said->to, (unsigned long long)truth->sent,
			(unsigned long long)truth->received, (unsigned long long)truth->lost,
			(unsigned long long)said->sent_at_least,
			(unsigned long long)said->delivered_at_most,
			(unsigned long long)said->lost_at_least);
}

/* All that is counted, where the last counts of both ends are known. */
static void check_exact(struct sim *sim, const struct sim_app *app, const struct sim_flow *flow,
			const struct fragi_summary_flow *said, const struct truth *truth)
{
	uint64_t missing = said->lost + said->in_flight;

	if (said->sent != truth->sent || said->delivered != truth->received ||
	    missing != truth->lost || said->bytes != 8 * truth->sent)
		sim_fail(
			sim, "ledger",
			"%s: %s -> %s: sent %llu, delivered %llu, lost %llu in truth; %llu (%llu bytes), %llu, %llu in the summary",
			app->name, said->from, said->to, (unsigned long long)truth->sent,
			(unsigned long long)truth->received, (unsigned long long)truth->lost,
			(unsigned long long)said->sent, (unsigned long long)said->bytes,
			(unsigned long long)said->delivered, (unsigned long long)missing);
	for (int r = 0; r < FRAGI_DROP_REASONS; r++)
		if (said->dropped[r] != flow->true_dropped[r])
			sim_fail(sim, "ledger",
				 "%s: %s -> %s: %s: %llu dropped in truth, %llu in the summary",
				 app->name, said->from, said->to,
				 fragi_drop_name((enum fragi_drop)r),
				 (unsigned long long)flow->true_dropped[r],
				 (unsigned long long)said->dropped[r]);
}

/* What it is, apart from what went over it. */
static void check_kind(struct sim *sim, const struct sim_app *app, const struct sim_flow *flow,
		       const struct fragi_summary_flow *said)
{
	const char *edge = flow->in_host             ? "inproc"
			   : flow->transport != NULL ? flow->transport
						     : sim_transport_of(sim, flow);

	if (said->capacity != flow->capacity || strcmp(said->edge, edge) != 0 ||
	    strcmp(said->policy, fragi_policy(flow->policy)->name) != 0)
		sim_fail(sim, "ledger",
			 "%s: %s -> %s holds %u (%s, %s); in the summary %u (%s, %s)", app->name,
			 said->from, said->to, flow->capacity, fragi_policy(flow->policy)->name,
			 edge, said->capacity, said->policy, said->edge);
}

/* Nobody has told the driver whether another process has followed what it knows of the host. */
static bool is_unknown(const struct sim *sim, const struct sim_app *app,
		       const struct sim_host *host)
{
	return host != NULL && (sim_move_is_unknown(sim, app, host->number) ||
				sim_lease_is_unknown(sim, app, host->number));
}

/* Of the fragment's host. */
static bool is_unknown_of(const struct sim *sim, const struct sim_app *app, uint32_t fragment)
{
	for (uint32_t i = 0; i < app->flow_count; i++)
		if (app->flows[i].from_fragment == fragment)
			return is_unknown(sim, app, app->flows[i].from);
	return false;
}

/* exact: all that the hosts counted has reached the driver. */
static void check_flow(struct sim *sim, const struct sim_app *app,
		       const struct fragi_summary *summary, const struct fragi_summary_flow *said,
		       bool exact)
{
	const struct sim_flow *flow = flow_of(app, said->from, said->to);
	struct truth truth;

	if (flow == NULL) {
		sim_fail(sim, "ledger", "%s has no flow %s -> %s", app->name, said->from, said->to);
		return;
	}
	truth = truth_of(sim, app, flow);
	/* Nothing bounds what an earlier process counted after its last report. */
	check_missing(sim, app, flow, said, &truth, !is_followed(app, flow, summary));
	exact = exact && !is_unknown(sim, app, flow->from) && !is_unknown(sim, app, flow->to);
	if (exact && !said->exact)
		sim_fail(sim, "ledger", "%s: %s -> %s is called inexact", app->name, said->from,
			 said->to);
	if (exact || said->exact)
		check_exact(sim, app, flow, said, &truth);
	if (truth.sent > 0)
		check_kind(sim, app, flow, said);
}

static void check_operators(struct sim *sim, const struct sim_app *app, uint32_t fragment,
			    const struct fragi_summary_fragment *said, bool exact)
{
	if (said->operator_count == 0 && !exact)
		return;
	for (uint32_t i = 0; i < 2; i++) {
		const struct sim_op *op = &app->ops[2 * fragment + i];
		const struct fragi_summary_operator *row = &said->operators[i];

		const uint64_t ticks = op->past_ticks + op->ticks;

		if (said->operator_count != 2 || strcmp(row->name, i == 0 ? "a" : "b") != 0 ||
		    row->ticks > ticks || (exact && row->ticks != ticks)) {
			sim_fail(sim, "ledger",
				 "%s: operator %u of %s: %llu ticks in truth, %llu in the summary",
				 app->name, i, said->name, (unsigned long long)ticks,
				 said->operator_count > i ? (unsigned long long)row->ticks : 0);
			return;
		}
	}
}

/*
 * A sleep of its workers kept the driver from hearing of the hosts' ends in time, which is shorter
 * when its own clock is fast, or jumps ahead meanwhile.
 */
static bool last_counts_are_missing(const struct sim *sim, const struct sim_app *app)
{
	int64_t kill_ns = SIM_KILL_NS - (sim->is.leases ? SIM_KILL_NS / 100 : 0);

	return app->state == DRV_APP_KILLING && sim->quiet_ns > sim->now_ns - SIM_KILL_NS &&
	       (sim->now_ns - app->state_since_ns >= kill_ns ||
		sim->driver.process.jumped_ns >= app->state_since_ns);
}

/*
 * A driver before had wired it in place of a process that moved, and it had not started when that
 * driver ended. The next one does not know how far that came: it kills it, with what it was sent.
 */
static bool was_killed_before_it_ran(const struct sim *sim, const struct sim_app *app)
{
	bool was = false;

	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[i];

		was = was || (host->app == app && sim->driver.incarnation > 1 && !host->started &&
			      host->kill_requested && app->hosts[host->number].moves > 0);
	}
	return was;
}

void sim_account_check(struct sim *sim, const struct sim_app *app,
		       const struct fragi_summary *summary)
{
	bool kept = app->kept && app->harms == 1 && !app->early_excuse;
	bool exact =
		(!app->excused || kept) && !app->dies_slowly && !last_counts_are_missing(sim, app);

	if (sim_app_has_living_host(sim, app)) /* its counters still move */
		return;
	for (size_t i = 0; i < summary->flow_count; i++) {
		const struct fragi_summary_flow *said = &summary->flows[i];

		check_flow(sim, app, summary, said, exact);
		if (exact && summary->result == FRAGI_SUMMARY_DONE && !app->fate_met &&
		    !app->blows && app->harms == 0 && !was_killed_before_it_ran(sim, app) &&
		    said->lost != 0)
			sim_fail(sim, "ledger", "%s is done, and %llu messages of %s are lost",
				 app->name, (unsigned long long)said->lost, said->from);
	}
	if (summary->started_unix_ns == 0)
		return;
	if (summary->flow_count != app->flow_count)
		sim_fail(sim, "ledger", "%s has %u flows, its summary %zu", app->name,
			 app->flow_count, summary->flow_count);
	for (uint32_t i = 0; i < summary->fragment_count; i++)
		check_operators(sim, app, i, &summary->fragments[i],
				exact && !is_unknown_of(sim, app, i));
}
