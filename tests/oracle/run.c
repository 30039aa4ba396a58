// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>

#include "../slow.h"
#include "../unit/rig.h"

#include <run/state.h>
#include <sched/exec.h>

#include "node.h"
#include "oracle.h"

/*
 * Runs a graph in this process, with the rules that hold for every graph:
 * - It ends. No thread looks for forgotten work now and then (main.c), so a lost wake-up is one
 *   reason why it would not.
 * - When it rests no operator could be ticked, or could end.
 * - No queue ever holds more than its capacity, and nothing is emitted where there is no room.
 * - Of every flow, what was sent was delivered, or dropped for a reason that its policy allows; the
 *   ledger and the receiver count the same.
 * - The messages of a flow arrive in order, and none is missing where none may be dropped.
 * - No operator ticks more often than its conditions allow, and one with an execution input once
 *   for each execution message.
 * - An operator that chooses its flows sends what it emits on those that it has chosen, and an
 *   execution message follows each tick.
 */
int64_t oracle_limit_ns = 30000000000;

__attribute__((format(printf, 2, 3))) static void fail(struct oracle_run *run, const char *format,
						       ...)
{
	va_list args;

	if (run->failure[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(run->failure, sizeof(run->failure), format, args);
	va_end(args);
}

static void check_capacity(struct frag_op *op)
{
	const struct fragi_exec *exec = op->exec;

	for (uint32_t i = 0; i < exec->rx_count; i++) {
		const struct fragi_rx *rx = exec->rxs[i];

		/* One that drops its oldest message may hold one more for a moment. */
		if (!fragi_rx_is_shared(rx) && fragi_rx_available(rx) > rx->queue.capacity)
			frag_op_fail(op, -EOVERFLOW, "a queue of %u messages holds %u",
				     (unsigned int)rx->queue.capacity, fragi_rx_available(rx));
	}
}

/* At rest nothing runs, so the conditions may be evaluated here. */
static void check_rest(const struct fragi_run *frag_run, struct oracle_run *run)
{
	for (size_t i = 0; i < frag_run->fragment_count; i++) {
		const struct frag_fragment *fragment = frag_run->fragments[i].fragment;

		for (uint32_t k = 0; k < fragment->op_count; k++) {
			struct fragi_exec *exec = fragment->ops[k]->exec;
			enum frag_ready ready;

			if (exec->done)
				continue;
			ready = fragi_exec_ready_all(exec);
			if (ready == FRAG_READY || ready == FRAG_NEVER)
				fail(run, "the application rests although operator %s %s",
				     fragment->ops[k]->name,
				     ready == FRAG_READY ? "is ready" : "should end");
		}
	}
}

static void wait_until_done(struct rig *rig, struct oracle_run *run)
{
	int64_t end_ns = fragi_now_ns() +
			 (int64_t)((double)oracle_limit_ns * times_busier()) * times_slower();
	struct pollfd p = {.fd = fragi_run_fd(rig->run), .events = POLLIN};
	struct fragi_run_event event;

	while (rig->done == 0 && fragi_now_ns() < end_ns) {
		poll(&p, 1, 1000);
		while (fragi_run_next(rig->run, &event) > 0) {
			rig->done += event.kind == FRAGI_RUN_DONE;
			if (event.kind == FRAGI_RUN_FAILED)
				fail(run, "%s", event.sentence);
			if (event.kind == FRAGI_RUN_IDLE && !run->rested && rig->done == 0) {
				run->rested = true;
				check_rest(rig->run, run);
			}
			rig_decide(rig, &event);
		}
	}
	if (rig->done == 0)
		fail(run, "it does not end");
}

/* The number in the name of an operator or a port. */
static uint32_t number_of(const char *name)
{
	return (uint32_t)strtoul(name + strcspn(name, "0123456789"), NULL, 10);
}

static struct node *node_of(const struct fragi_run *frag_run, uint32_t index)
{
	for (size_t i = 0; i < frag_run->fragment_count; i++) {
		const struct frag_fragment *fragment = frag_run->fragments[i].fragment;

		for (uint32_t k = 0; k < fragment->op_count; k++)
			if (fragment->ops[k]->name[0] == 'n' &&
			    number_of(fragment->ops[k]->name) == index)
				return fragment->ops[k]->state;
	}
	RIG_FAIL("there is no operator n%u\n", index);
}

/* The row of a flow in the ledger. */
static const struct fragi_flow_row *row_of(const struct rig *rig, const struct oracle_flow *flow)
{
	size_t fragment_count, flow_count;
	const struct fragi_fragment_info *fragments =
		fragi_run_fragments(rig->run, &fragment_count);
	const struct fragi_flow_info *flows = fragi_run_flows(rig->run, &flow_count);

	for (size_t i = 0; i < flow_count; i++) {
		const struct fragi_op_info *from =
			&fragments[flows[i].from_fragment].ops[flows[i].from_op];
		const struct fragi_op_info *to =
			&fragments[flows[i].to_fragment].ops[flows[i].to_op];

		if (from->name[0] == 'n' && number_of(from->name) == flow->from &&
		    number_of(to->name) == flow->to &&
		    fragi_port_is_execution(from->ports[flows[i].from_port].name) ==
			    flow->execution &&
		    number_of(from->ports[flows[i].from_port].name) == flow->out &&
		    number_of(to->ports[flows[i].to_port].name) == flow->in)
			return rig_row(rig, i);
	}
	RIG_FAIL("there is no flow n%u.out%u -> n%u.in%u\n", flow->from, flow->out, flow->to,
		 flow->in);
}

static void check_counts(const struct oracle_graph *graph, uint32_t index,
			 const struct fragi_flow_row *row, bool has_gaps, struct oracle_run *run)
{
	const struct oracle_flow *flow = &graph->flows[index];
	const bool drops = flow->policy == FRAG_POLICY_POP || flow->policy == FRAG_POLICY_REJECT ||
			   flow->policy == FRAG_POLICY_LATEST;
	char name[64];

	snprintf(name, sizeof(name), "n%u.out%u -> n%u.in%u", flow->from, flow->out, flow->to,
		 flow->in);
	if (row->sent != row->delivered + rig_dropped_all(row))
		fail(run, "%s: %llu sent are not %llu delivered and %llu dropped", name,
		     (unsigned long long)row->sent, (unsigned long long)row->delivered,
		     (unsigned long long)rig_dropped_all(row));
	if (row->delivered != run->flows[index].count)
		fail(run, "%s: %llu were delivered by the ledger, %u by the receiver", name,
		     (unsigned long long)row->delivered, run->flows[index].count);
	if (!drops && rig_dropped(row, FRAGI_DROP_QUEUE_FULL) > 0)
		fail(run, "%s: a queue that blocks dropped messages", name);
	if (!oracle_flow_is_lossy(graph, index) &&
	    ((has_gaps && !oracle_is_dynamic(&graph->ops[flow->from])) ||
	     rig_dropped(row, FRAGI_DROP_NO_ROOM) > 0))
		fail(run, "%s: a message is missing", name);
}

/* How many messages an operator has sent on a flow by its own count; UINT64_MAX: any number. */
static uint64_t expected_on(const struct oracle_graph *graph, const struct oracle_flow *flow,
			    const struct node *node)
{
	for (uint32_t i = 0; i < node->route_count; i++) {
		const struct node_route *route = &node->routes_taken[i];

		if (route->execution == flow->execution && route->to == flow->to &&
		    (flow->execution || (route->out == flow->out && route->in == flow->in)))
			return route->messages;
	}
	if (oracle_is_dynamic(&graph->ops[flow->from]))
		return node->ticks == 0 ? 0 : UINT64_MAX - 1; /* it has not found the flow */
	/* One for each tick that is not pending still. */
	return flow->execution ? (uint64_t)node->ticks - node->pending : UINT64_MAX;
}

/* Of an execution flow only the number of messages is known: they are all the same. */
static void collect_execution(const struct rig *rig, uint32_t index, const struct oracle_flow *flow,
			      struct oracle_run *run)
{
	uint32_t count = (uint32_t)row_of(rig, flow)->delivered;

	run->flows[index] = (struct oracle_history){count, calloc(count + 1, sizeof(uint32_t))};
	if (run->flows[index].values == NULL)
		RIG_FAIL("no memory\n");
}

/* Each tick of an operator with an execution input has taken one message. */
static void check_ticks(const struct oracle_graph *graph, const struct rig *rig, uint32_t index,
			struct oracle_run *run)
{
	uint64_t ticks = (uint64_t)node_of(rig->run, index)->ticks, taken = 0;

	for (uint32_t i = 0; i < graph->flow_count; i++)
		if (graph->flows[i].execution && graph->flows[i].to == index &&
		    oracle_flow_exists(graph, i))
			taken += row_of(rig, &graph->flows[i])->delivered;
	if (graph->ops[index].started ? ticks != taken && ticks != taken + 1 : ticks != taken)
		fail(run, "n%u ticked %llu times for %llu execution messages", index,
		     (unsigned long long)ticks, (unsigned long long)taken);
}

/* Whether a loop of execution flows leads back to the operator, and nothing ends it early. */
static bool loops_freely(const struct oracle_graph *graph, uint32_t first)
{
	bool reached[ORACLE_OPS_MAX] = {false}, changed = true, returns = false;

	reached[first] = true;
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < graph->flow_count; i++) {
			const struct oracle_flow *flow = &graph->flows[i];

			if (!oracle_flow_exists(graph, i) || !reached[flow->from])
				continue;
			returns |= flow->execution && flow->to == first;
			changed |= !reached[flow->to];
			reached[flow->to] = true;
		}
	}
	for (uint32_t i = 0; i < graph->op_count; i++)
		if (reached[i] && (graph->ops[i].count > 0 || graph->ops[i].chooses))
			return false;
	return returns && graph->ops[first].started;
}

static void collect_flow(const struct oracle_graph *graph, const struct rig *rig, uint32_t index,
			 struct oracle_run *run)
{
	const struct oracle_flow *flow = &graph->flows[index];
	struct node *node = node_of(rig->run, flow->to);
	bool has_gaps = false;
	uint64_t expected;

	for (uint32_t i = 0; i < node->flow_count && !flow->execution; i++) {
		struct node_flow *one = &node->flows[i];

		if (one->in != flow->in || one->origin != node_origin(flow->from, flow->out))
			continue;
		run->flows[index] = (struct oracle_history){one->count, one->values};
		has_gaps = one->has_gaps;
		one->values = NULL; /* now the run's */
	}
	if (flow->execution)
		collect_execution(rig, index, flow, run);
	check_counts(graph, index, row_of(rig, flow), has_gaps, run);
	expected = expected_on(graph, flow, node_of(rig->run, flow->from));
	if (expected != UINT64_MAX && row_of(rig, flow)->sent != expected)
		fail(run, "n%u -> n%u: %llu were sent, %llu were to be", flow->from, flow->to,
		     (unsigned long long)row_of(rig, flow)->sent, (unsigned long long)expected);
}

static void collect(const struct oracle_graph *graph, const struct rig *rig, struct oracle_run *run)
{
	for (uint32_t i = 0; i < graph->flow_count; i++)
		if (oracle_flow_exists(graph, i))
			collect_flow(graph, rig, i, run);
	for (uint32_t i = 0; i < graph->op_count; i++) {
		const struct oracle_op *op = &graph->ops[i];
		int64_t ticks;

		if (op->removed)
			continue;
		ticks = node_of(rig->run, i)->ticks;
		if (oracle_waits_for_execution(graph, i))
			check_ticks(graph, rig, i, run);
		if (op->turns > 0 && loops_freely(graph, i) && ticks != op->turns + 1)
			fail(run, "n%u ticked %lld times in a loop of %u turns", i,
			     (long long)ticks, op->turns);
		if ((op->count_condition > 0 && ticks > op->count_condition) ||
		    (op->count > 0 && ticks > op->count) ||
		    (op->disable_at > 0 && ticks > op->disable_at))
			fail(run, "n%u ticked %lld times", i, (long long)ticks);
	}
}

void oracle_run(const struct oracle_graph *graph, const char *scheduler, struct oracle_run *run)
{
	extern const struct frag_plugin frag_plugin_v1;
	struct rig rig;
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	memset(run, 0, sizeof(*run));
	if (out == NULL)
		RIG_FAIL("no memory\n");
	oracle_graph_write(graph, scheduler, false, out);
	fclose(out);
	oracle_tick_begins = check_capacity;
	if (rig_prepare(&rig, &frag_plugin_v1, text) < 0) {
		rig_errors(&rig);
		fprintf(stderr, "the graph was refused\n%s", text);
		exit(ORACLE_REFUSED);
	}
	rig_start(&rig);
	wait_until_done(&rig, run);
	if (rig.done == 0) {
		free(text); /* its threads still use the rest */
		return;
	}
	if (run->failure[0] == '\0')
		collect(graph, &rig, run);
	rig_end(&rig);
	free(text);
}

void oracle_run_fini(struct oracle_run *run)
{
	for (uint32_t i = 0; i < ORACLE_FLOWS_MAX; i++)
		free(run->flows[i].values);
}
