// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <text/spec.h>

/* What a seed means: the workers, the applications and their fates, the faults and their times. */

static void add_text(struct sim_app *app, const char *format, ...) FRAG_PRINTF(2, 3);
static void add_text(struct sim_app *app, const char *format, ...)
{
	size_t used = strlen(app->text);
	va_list args;

	va_start(args, format);
	vsnprintf(app->text + used, sizeof(app->text) - used, format, args);
	va_end(args);
}

static void write_text(struct sim_app *app, bool swaps)
{
	static const char *const policies[] = {
		[FRAG_POLICY_BLOCK] = "block",
		[FRAG_POLICY_POP] = "pop",
		[FRAG_POLICY_REJECT] = "reject",
		[FRAG_POLICY_LATEST] = "latest",
	};
	char on_failure[192], required[128];

	add_text(app, "frag: 1\napplication: %s\nfragments:\n", app->name);
	for (uint32_t f = 0; f < app->fragment_count; f++) {
		add_text(app, "  f%u:\n", f);
		if (app->own_host[f])
			add_text(app, "    host: h%u\n", f);
		sim_restart_text(&app->on_failure[f], on_failure, sizeof(on_failure));
		add_text(app, "%s", on_failure);
		if (swaps)
			add_text(app, "    extensions: [lib0.so]\n");
		sim_place_text(app, f, required, sizeof(required));
		add_text(app, "%s", required);
		add_text(app, "    operators:\n      a: {type: source}\n      b: {type: sink}\n"
			      "    flows:\n      - a.x -> b.x\n");
	}
	if (app->flow_count > app->fragment_count)
		add_text(app, "flows:\n");
	for (uint32_t i = app->fragment_count; i < app->flow_count; i++) {
		const struct sim_flow *flow = &app->flows[i];

		add_text(app, "  - {from: f%u.b.o%u, to: f%u.a.i%u", flow->from_fragment,
			 flow->from_port - 1u, flow->to_fragment, flow->to_port - 1u);
		if (flow->given_policy != FRAG_POLICY_DEFAULT)
			add_text(app, ", policy: %s", policies[flow->given_policy]);
		if (flow->given_capacity != 0)
			add_text(app, ", capacity: %u", flow->given_capacity);
		if (flow->given_edge != NULL)
			add_text(app, ", edge: %s", flow->given_edge);
		add_text(app, "}\n");
	}
}

int sim_app_source(const struct sim_app *app, void **out_bytes, size_t *out_size)
{
	struct fragi_spec_source source = {.graph = {"app.yaml", app->text, strlen(app->text)}};

	return fragi_source_pack(&source, out_bytes, out_size);
}

static void add_flow(struct sim *sim, struct sim_app *app, uint32_t from, uint32_t to)
{
	static const enum frag_policy policies[] = {FRAG_POLICY_DEFAULT, FRAG_POLICY_DEFAULT,
						    FRAG_POLICY_BLOCK,   FRAG_POLICY_POP,
						    FRAG_POLICY_REJECT,  FRAG_POLICY_LATEST};
	struct sim_flow *flow;

	if (app->flow_count == SIM_FLOWS_MAX)
		return;
	flow = &app->flows[app->flow_count++];
	*flow = (struct sim_flow){
		.app = (uint32_t)(app - sim->apps),
		.from_fragment = (uint8_t)from,
		.from_op = 1,
		.from_port = ++app->out_count[from],
		.to_fragment = (uint8_t)to,
		.to_port = ++app->in_count[to],
		.given_policy = policies[sim_between(sim, 0, 5)],
	};
	flow->policy =
		flow->given_policy == FRAG_POLICY_DEFAULT ? FRAG_POLICY_BLOCK : flow->given_policy;
	flow->largest = sim_chance(sim, 3) ? (uint32_t)sim_between(sim, 1, 100 << 20) : 64;
	if (flow->policy != FRAG_POLICY_LATEST && !sim_chance(sim, 3))
		flow->given_capacity = (uint32_t)sim_between(sim, 1, 5);
	if (from == to || !sim_chance(sim, 10))
		return;
	/* Such a flow uses the transport within one host too, where the simulator has none. */
	flow->given_edge = sim_chance(sim, 2) ? "shm" : "ucx";
	app->own_host[from] = app->own_host[to] = true;
}

static void make_op(struct sim *sim, struct sim_app *app, uint32_t fragment, bool second)
{
	static const enum sim_source sources[] = {
		SIM_SOURCE_FINITE,  SIM_SOURCE_FINITE,  SIM_SOURCE_FINITE, SIM_SOURCE_FINITE,
		SIM_SOURCE_RESTING, SIM_SOURCE_ENDLESS, SIM_SOURCE_STOPPER};
	struct sim_op *op = &app->ops[2 * fragment + (second ? 1 : 0)];

	*op = (struct sim_op){
		.app = (uint32_t)(app - sim->apps),
		.fragment = fragment,
		.second = second,
		.source = SIM_SOURCE_NONE,
		.burst = sim_chance(sim, 8) ? (uint32_t)sim_between(sim, 2, 4) : 1,
		.period_ns = sim_between(sim, SIM_MS, 60 * SIM_MS),
		.compute_ns = sim_between(sim, 10000, sim_chance(sim, 4) ? 20 * SIM_MS : SIM_MS),
	};
	if (second && sim_chance(sim, 10))
		op->limit = (uint32_t)sim_between(sim, 1, 20);
	if (second || app->in_count[fragment] != 0)
		return;
	op->source = sources[sim_between(sim, 0, 6)];
	if ((sim->is.restarts || sim->is.swaps) && sim_chance(sim, 2))
		op->source = sim_chance(sim, 3) ? SIM_SOURCE_RESTING : SIM_SOURCE_ENDLESS;
	op->limit = (uint32_t)sim_between(sim, 0, sim_chance(sim, 4) ? 60 : 15);
}

static void make_app(struct sim *sim, struct sim_app *app)
{
	app->fragment_count =
		(uint32_t)sim_between(sim, 1, sim_chance(sim, 4) ? SIM_FRAGMENTS_MAX : 4);
	app->op_count = 2 * app->fragment_count;
	snprintf(app->name, sizeof(app->name), "app%u", (unsigned int)(app - sim->apps));
	for (uint32_t f = 0; f < app->fragment_count; f++) {
		app->flows[app->flow_count++] = (struct sim_flow){
			.app = (uint32_t)(app - sim->apps),
			.from_fragment = (uint8_t)f,
			.to_fragment = (uint8_t)f,
			.to_op = 1,
			.inner = true,
			.given_capacity = (uint32_t)sim_between(sim, 1, 3),
			.policy = FRAG_POLICY_BLOCK,
		};
		app->own_host[f] = sim_chance(sim, 6);
	}
	for (uint32_t f = 1; f < app->fragment_count; f++)
		for (int64_t n = sim_between(sim, sim_chance(sim, 6) ? 0 : 1, 2); n > 0; n--)
			add_flow(sim, app, (uint32_t)sim_between(sim, 0, f - 1), f);
	for (uint32_t f = 0; f < app->fragment_count; f++) {
		make_op(sim, app, f, false);
		make_op(sim, app, f, true);
	}
	if (sim_chance(sim, 4)) {
		app->fate = (int)sim_between(sim, 1, SIM_FATES - 1);
		app->fate_fragment = (uint32_t)sim_between(sim, 0, app->fragment_count - 1);
		app->fate_tick = (uint32_t)sim_between(sim, 0, 8);
		app->fate_late = sim_chance(sim, 4);
	}
	sim_restart_plan(sim, app);
	if (sim_chance(sim, 8))
		app->start_timeout_ns = sim_between(sim, 500 * SIM_MS, 6 * SIM_S);
	sim_place_app(sim, app);
	write_text(app, sim->is.swaps);
}

/* Of some workers hosts run as another user, and some cannot share memory. */
static void make_memory(struct sim *sim, struct sim_worker *worker, uint32_t node)
{
	worker->memory[0] = '\0';
	if (!sim_chance(sim, 5))
		snprintf(worker->memory, sizeof(worker->memory), "boot%u.1.1.%d", node,
			 sim_chance(sim, 4) && !sim->is.moves ? 10 : 1);
}

static void make_worker(struct sim *sim, uint32_t index, bool one_node)
{
	struct sim_worker *worker = &sim->workers[index];

	snprintf(worker->name, sizeof(worker->name), "w%u", index);
	worker->same_name = index > 0 && sim_chance(sim, 20);
	sim->same_names = sim->same_names || worker->same_name;
	snprintf(worker->node, sizeof(worker->node), "node%u", one_node ? 0 : index);
	make_memory(sim, worker, one_node ? 0 : index);
	worker->connection = SIM_CONNECTIONS_MAX;
	worker->latency_ns = sim_chance(sim, 8) ? sim_between(sim, 5 * SIM_MS, 100 * SIM_MS)
						: sim_between(sim, 50000, 2 * SIM_MS);
	worker->config = (struct wrk_config){
		.name = worker->same_name ? "w0" : worker->name,
		.fragments = worker->fragments,
		.driver = "10.0.0.1:57777",
		.worker_address = "10.0.0.2",
		.node = worker->node,
		.clock = worker->node,
		.memory = worker->memory,
		.version = "0",
		.has = {[FRAGI_AMOUNT_CPU] = sim_between(sim, 1, 16) * FRAGI_AMOUNT_ONE,
			[FRAGI_AMOUNT_MEMORY] = 1 << 30},
		.once = sim->once,
		.beat_ns = sim->beat_ns,
		.dead_ns = sim->dead_ns,
	};
	sim_place_worker(sim, worker);
}

/*
 * Who takes what: all take everything, or each fragment is named by one or two workers; or one by
 * nobody.
 */
static void share_fragments(struct sim *sim)
{
	static const char *const names[SIM_FRAGMENTS_MAX] = {"f0", "f1", "f2", "f3", "f4",
							     "f5", "f6", "f7", "f8", "f9"};
	bool gap = sim_chance(sim, 12);
	uint32_t missing = (uint32_t)sim_between(sim, 0, 3);

	if (sim_chance(sim, 3) || sim->is.moves || (sim->is.leases && sim->variant % 2 == 0))
		return;
	for (uint32_t f = 0; f < SIM_FRAGMENTS_MAX; f++) {
		for (int64_t n = sim_chance(sim, 5) ? 2 : 1; n > 0 && !(gap && f == missing); n--) {
			struct sim_worker *worker =
				&sim->workers[sim_between(sim, 0, (int64_t)sim->worker_count - 1)];
			bool has = false;

			for (uint32_t i = 0; i < worker->config.fragment_count; i++)
				has = has || worker->fragments[i] == names[f];
			if (!has)
				worker->fragments[worker->config.fragment_count++] = names[f];
		}
	}
	for (uint32_t w = 0; w < sim->worker_count; w++)
		if (sim->workers[w].config.fragment_count == 0 && (gap || sim_chance(sim, 2)))
			sim->workers[w].fragments[sim->workers[w].config.fragment_count++] =
				"nothing";
}

static void add_fault(struct sim *sim, enum sim_fault_kind kind, int64_t at_ns)
{
	struct sim_fault *fault = &sim->plan[sim->plan_count];

	if (sim->plan_count == SIM_PLAN_MAX)
		return;
	*fault = (struct sim_fault){
		.kind = kind,
		.at_ns = at_ns,
		.for_ns = kind == SIM_FAULT_NAP || kind == SIM_FAULT_HICCUP
				  ? sim_between(sim, SIM_MS, sim->dead_ns * 3 / 5)
				  : sim_between(sim, 10 * SIM_MS, 2 * sim->dead_ns),
		.worker = (uint32_t)sim_between(sim, 0, (int64_t)sim->worker_count),
		.other = (uint32_t)(sim_random(sim) >> 40),
	};
	if (at_ns != SIM_NEVER)
		sim_put(sim, at_ns, SIM_EV_FAULT, sim->plan_count, 0, 0);
	sim->plan_count++;
}

static void make_faults(struct sim *sim)
{
	int64_t mood = sim_between(sim, 0, 9), harmless = sim_between(sim, 0, 4), harmful = 0;
	int64_t within_ns = sim_chance(sim, 2) ? 1500 * SIM_MS : 5 * SIM_S;

	if (mood >= 4)
		harmful = sim_between(sim, 1, 2);
	if (mood >= 8)
		harmful = sim_between(sim, 3, 8);
	for (int64_t i = 0; i < harmless; i++)
		add_fault(sim,
			  (enum sim_fault_kind)sim_between(sim, SIM_FAULT_STRANGER,
							   SIM_FAULT_HARMLESS_END - 1),
			  sim->now_ns + sim_between(sim, 0, within_ns));
	for (int64_t i = 0; i < harmful; i++)
		add_fault(sim,
			  (enum sim_fault_kind)sim_between(sim, SIM_FAULT_HARMLESS_END + 1,
							   SIM_FAULTS - 1),
			  sim->now_ns + sim_between(sim, 0, within_ns));
	if (sim_chance(sim, sim->is.restarts ? 3 : 8))
		add_fault(sim, SIM_FAULT_DATA_CUT,
			  sim->now_ns + sim_between(sim, 500 * SIM_MS, 3 * SIM_S));
	sim->blow_fault = 0;
	sim->blows_left = 8;
	for (int64_t i = sim->is.restarts ? sim_between(sim, 1, 8) : 0; i > 0; i--) {
		sim->blow_fault = sim->plan_count;
		add_fault(sim, SIM_FAULT_BLOW,
			  sim->now_ns + sim_between(sim, 300 * SIM_MS, 6 * SIM_S));
	}
	for (uint32_t i = sim_lease_faults(sim); i > 0; i--) {
		sim->lease_fault = sim->plan_count;
		add_fault(sim, sim_lease_fault(sim),
			  sim->now_ns + sim_between(sim, 500 * SIM_MS, 8 * SIM_S));
		sim->plan[sim->plan_count - 1].for_ns =
			sim_lease_lasts(sim, sim_between(sim, 500 * SIM_MS, 3 * sim->dead_ns));
	}
	if (sim->is.leases && sim_chance(sim, 3)) /* so are hosts of two workers, about then */
		add_fault(sim, SIM_FAULT_PARTITION,
			  sim->plan[sim->lease_fault].at_ns + sim_between(sim, 0, SIM_S));
	if (sim->is.leases && sim->is.adopts && sim_chance(sim, 2))
		add_fault(sim, SIM_FAULT_RESTART_APP,
			  sim->plan[sim->lease_fault].at_ns +
				  sim_between(sim, sim->dead_ns / 2, sim->dead_ns + 3 * SIM_S));
	for (int64_t i = sim->is.places ? sim_between(sim, 0, 6) : 0; i > 0; i--)
		add_fault(sim, SIM_FAULT_DRAIN,
			  sim->now_ns + sim_between(sim, 0, i % 2 == 0 ? SIM_S : 6 * SIM_S));
	if (sim->is.moves)
		sim_move_plan(sim, add_fault);
	for (int64_t i = sim->is.pauses ? sim_between(sim, 1, 3) : 0; i > 0; i--)
		add_fault(sim, SIM_FAULT_DRIVER_PAUSES,
			  sim->now_ns + sim_between(sim, 200 * SIM_MS, 9 * SIM_S));
	for (int64_t i = sim->is.adopts && (!sim->is.pauses || sim_chance(sim, 2))
				 ? sim_between(sim, 1, 3)
				 : 0;
	     i > 0; i--)
		add_fault(sim, SIM_FAULT_DRIVER_AWAY,
			  sim->now_ns + sim_between(sim, 200 * SIM_MS, 9 * SIM_S));
	for (uint32_t i = 1; i < sim->app_count; i++)
		add_fault(sim, SIM_FAULT_APP,
			  sim->now_ns + sim_between(sim, 100 * SIM_MS, 4 * SIM_S));
	if (sim_chance(sim, 20)) {
		add_fault(sim, SIM_FAULT_CTRL_C, sim->now_ns + sim_between(sim, 0, 3 * SIM_S));
	} else if (sim_chance(sim, 8)) { /* in states that do not last long, too */
		sim->hasty_state =
			(enum drv_app_state)sim_between(sim, DRV_APP_PREPARING, DRV_APP_CLOSING);
		sim->hasty_fault = sim->plan_count;
		add_fault(sim, sim_chance(sim, 2) ? SIM_FAULT_CTRL_C : SIM_FAULT_STOP, SIM_NEVER);
	} else if (sim_chance(sim, 3)) {
		add_fault(sim, SIM_FAULT_STOP, sim->now_ns + sim_between(sim, 0, 3 * SIM_S));
		if (sim_chance(sim, 2))
			add_fault(sim, SIM_FAULT_STOP,
				  sim->now_ns + sim_between(sim, 0, 4 * SIM_S));
	}
}

void sim_plan(struct sim *sim)
{
	static const int64_t beats[][2] = {{250, 3000}, {250, 3000}, {100, 1000}, {200, 2000}};
	const int64_t *beat = beats[sim_between(sim, 0, 3)];
	bool one_node = sim_chance(sim, 2);

	sim->is = *sim_kind_of(sim->seed, &sim->variant);
	one_node = one_node || sim->is.moves;

	sim->beat_ns = beat[0] * SIM_MS;
	sim->dead_ns = beat[1] * SIM_MS;
	sim->place_random = sim->seed;
	sim->once = sim_chance(sim, sim->is.restarts ? 4 : 10);
	sim->same_names = false;
	sim->hasty_state = DRV_APP_NEW;
	sim->driver_for_one = sim_chance(sim, 2) && !sim->is.adopts && !sim->is.moves;
	sim->once = sim->once && !sim->is.adopts;
	sim->disk.is_used = sim->variant % 3 == 0 || sim->is.adopts;
	sim->worker_count = (uint32_t)sim_between(sim, 1, sim_chance(sim, 4) ? SIM_WORKERS_MAX : 3);
	sim->app_count = sim_chance(sim, 3) ? (uint32_t)sim_between(sim, 2, 3) : 1;
	if ((sim->is.moves || sim->is.leases) && sim->worker_count < 3)
		sim->worker_count++;
	if (sim->is.places) { /* for them to be in each other's way */
		sim->driver_for_one = false;
		sim->app_count = sim->app_count == 1 ? 2 : sim->app_count;
	}
	sim->stop_ns = sim->now_ns + sim_between(sim, 12, 16) * SIM_S;
	if (sim->is.restarts && !sim->is.adopts && sim->variant % 8 == 2)
		sim->stop_ns += 12 * SIM_S;
	if (sim->is.leases && sim->is.adopts && sim->variant % 8 == 2)
		sim->stop_ns += FW_LEASE_AWAY_NS + 8 * SIM_S;
	sim->end_ns = sim->now_ns + SIM_LASTS_NS;
	sim->quiet_ns = sim->now_ns;
	sim->driver_returns = true;
	for (uint32_t i = 0; i < sim->worker_count; i++)
		make_worker(sim, i, one_node);
	share_fragments(sim);
	for (uint32_t i = 0; i < sim->app_count; i++)
		make_app(sim, &sim->apps[i]);
	for (uint32_t i = 0; i < sim->worker_count; i++)
		sim_put(sim,
			sim->now_ns +
				sim_between(sim, 0, sim_chance(sim, 10) ? 3 * SIM_S : 300 * SIM_MS),
			SIM_EV_RESTART, i, 0, 0);
	sim_put(sim, sim->now_ns + sim_between(sim, 0, 400 * SIM_MS), SIM_EV_RESTART,
		SIM_WORKERS_MAX, 0, 0);
	make_faults(sim);
	for (uint32_t i = 0; i < sim->plan_count;
	     i++) /* who starts a driver again gives it something to do */
		if (sim->plan[i].kind == SIM_FAULT_DRIVER_CRASH && !sim->is.adopts &&
		    sim->app_count < SIM_PLANNED_MAX)
			make_app(sim, &sim->apps[sim->app_count++]);
	for (uint32_t i = 0; sim->is.adopts && i < sim->app_count; i++) {
		sim->apps[i].planned = i;
		sim->planned[i] = sim->apps[i];
	}
	sim_put(sim, sim->now_ns + 100 * SIM_MS, SIM_EV_LOOK, 0, 0, 0);
	sim_print(
		sim, "plan",
		"seed %llu, %s: %u workers, %u applications, beat %lld ms, dead %lld ms, driver for %s, faults %u",
		(unsigned long long)sim->seed, sim->is.name, sim->worker_count, sim->app_count,
		(long long)beat[0], (long long)beat[1], sim->driver_for_one ? "one" : "all",
		sim->plan_count);
	for (uint32_t i = 0; i < sim->app_count; i++)
		sim_print(sim, "plan", "%s: fate %d of f%u at tick %u\n%s", sim->apps[i].name,
			  sim->apps[i].fate, sim->apps[i].fate_fragment, sim->apps[i].fate_tick,
			  sim->apps[i].text);
}
