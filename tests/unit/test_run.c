// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <base/alloc.h>
#include <data/pool.h>

#include "rig_ops.h"

RIG_ONE_TEST(run, hello)
{
	rig_run(rig, &rig_plugin,
		"frag: 1\n"
		"application: hello\n"
		"operators:\n"
		"  tx: {type: source, parameters: {count: 10}}\n"
		"  rx: {type: sink}\n"
		"flows: [tx -> rx]\n");
	cr_expect_eq(notes[0]->count, 10);
	cr_expect_eq(rig->started, 1);
	cr_expect(rig_balances(rig));
	cr_expect_lt(rig->done_ns - rig->start_ns, 10000000000);
}

/* A host that has no fragment is started, and done, all the same. */
RIG_ONE_TEST(run, nothing_to_run_is_reported_too)
{
	cr_assert_eq(rig_prepare_host(rig, &rig_plugin,
				      "frag: 1\napplication: app\noperators: {a: {type: source}}\n",
				      (const char *const[]){NULL}, 0),
		     0);
	rig_start(rig);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(rig->started, 1);
	cr_expect_eq(rig->wired, 1);
	cr_expect_eq(rig->failed + rig->stopped, 0);
}

/* Nobody looks at the run every now and then: it calls for its control thread. */
RIG_ONE_TEST(run, rest_is_found_at_once)
{
	struct fragi_run_event event;
	struct pollfd p = {.events = POLLIN};
	bool is_idle = false;

	rig_prepare_good(rig, &rig_plugin,
			 "frag: 1\napplication: app\n"
			 "operators: {a: {type: middle}, b: {type: middle},\n"
			 "  tx: {type: source, parameters: {count: 10},\n"
			 "       conditions: [{type: periodic, recess_period: 20ms}]},\n"
			 "  rx: {type: sink}}\n"
			 "flows: [a -> b, b -> a, tx -> rx]\n");
	rig_start(rig);
	p.fd = fragi_run_fd(rig->run);
	while (!is_idle) {
		cr_assert_eq(poll(&p, 1, (int)(RIG_LIMIT_NS / 1000000)), 1, "it says nothing");
		while (fragi_run_next(rig->run, &event) > 0)
			is_idle |= event.kind == FRAGI_RUN_IDLE;
	}
	fragi_run_halt(rig->run);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
}

/* Waits in compute until the application is to stop. */
static _Atomic int waiting, woken, flows_in, flows_out;

static int waiter_initialize(void *state, struct frag_op *op)
{
	atomic_store(&flows_in, (int)frag_op_flow_count(op, 0));
	atomic_store(&flows_out, (int)frag_op_flow_count(op, 1));
	return 0;
}

static int waiter_compute(void *state, struct frag_tick *tick)
{
	struct pollfd p = {.fd = frag_op_stop_fd(frag_tick_op(tick)), .events = POLLIN};

	atomic_store(&waiting, 1);
	atomic_store(&woken, poll(&p, 1, 20000));
	return FRAG_DONE;
}

static const struct frag_port waiter_ports[] = {
	{.name = "in",
	 .dir = FRAG_IN,
	 .type = "i64",
	 .flags = FRAG_PORT_MULTI | FRAG_PORT_OPTIONAL},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
TEST_OP(waiter, FRAG_PORTS(waiter_ports), .initialize = waiter_initialize);
TEST_PLUGIN(waiter, &waiter_type, &source_type, &sink_type);

RIG_ONE_TEST(run, a_drain_wakes_who_waits_in_compute)
{
	rig_prepare_good(rig, &waiter_plugin,
			 "frag: 1\napplication: app\noperators: {w: {type: waiter}}\n");
	rig_start(rig);
	RIG_AWAIT(atomic_load(&waiting));
	fragi_run_drain(rig->run);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(woken, 1);
	cr_expect_eq(flows_in + flows_out, 0);
}

RIG_ONE_TEST(run, initialize_knows_all_flows)
{
	rig_prepare_good(
		rig, &waiter_plugin,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {w: {type: waiter}, a: {type: source}, r: {type: sink}}, flows: [a -> w, w -> r]}\n"
		"  two: {operators: {b: {type: source}, s: {type: sink}, t: {type: sink}}}\n"
		"flows: [two.b -> one.w, {from: one.w, to: [two.s, two.t]}]\n");
	cr_expect_eq(flows_in, 2);
	cr_expect_eq(flows_out, 3);
}

/* Asks its pool for tensors until it is empty; keeps them, or gives them back as it fails. */
struct hoarder {
	struct frag_resource *pool;
	bool keeps;
	struct frag_tensor *tensors[4];
	uint32_t count;
};

static const struct frag_param hoarder_params[] = {
	FRAG_PARAM_RESOURCE(struct hoarder, pool, NULL),
	FRAG_PARAM_BOOL(struct hoarder, keeps, false),
};

static void hoarder_fini(void *state, struct frag_op *op)
{
	struct hoarder *h = state;

	while (h->count > 0)
		frag_tensor_unref(h->tensors[--h->count]);
}

static int hoarder_compute(void *state, struct frag_tick *tick)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct hoarder *h = state;
	int64_t shape = 1000;
	int r = 0;

	while (r == 0) {
		r = frag_tensor_create(h->pool, u8, 1, &shape, &h->tensors[h->count]);
		h->count += r == 0;
	}
	if (!h->keeps)
		hoarder_fini(h, frag_tick_op(tick));
	return r;
}

TEST_OP(hoarder, .state_size = sizeof(struct hoarder), FRAG_PARAMS(hoarder_params),
	.fini = hoarder_fini);
TEST_PLUGIN(hoarder, &hoarder_type);

/* Blocks that are free again when the failure is reported are in nobody's hands. */
Test(run, an_empty_pool_says_where_its_blocks_are)
{
	static const char *const sentences[] = {
		"app.h: pool \"blocks\" ran out of its 2 blocks, and some have come back since; set num_blocks to 3 or more",
		"app.h: pool \"blocks\" ran out of its 2 blocks, and no message waits: operators keep them; set num_blocks to 3 or more",
	};
	char graph[400];

	for (int keeps = 0; keeps < 2; keeps++) {
		struct rig rig;

		snprintf(
			graph, sizeof(graph),
			"frag: 1\napplication: app\n"
			"resources: {blocks: {type: block_memory_pool, block_size: 4KiB, num_blocks: 2}}\n"
			"operators: {h: {type: hoarder, parameters: {pool: $blocks, keeps: %s}}}\n",
			keeps != 0 ? "true" : "false");
		rig_prepare_good(&rig, &hoarder_plugin, graph);
		rig_start(&rig);
		cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS));
		cr_expect_str_eq(rig.sentence, sentences[keeps]);
		rig_end(&rig);
	}
}

/* Sends a new tensor of its pool on each of two ports, until there is none. */
struct giver {
	struct frag_resource *pool;
};
static const struct frag_param giver_params[] = {FRAG_PARAM_RESOURCE(struct giver, pool, NULL)};
static const struct frag_port giver_ports[] = {
	{.name = "out", .dir = FRAG_OUT, .type = "tensor"},
	{.name = "more", .dir = FRAG_OUT, .type = "tensor"},
};

static int giver_compute(void *state, struct frag_tick *tick)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	const struct giver *g = state;
	struct frag_tensor *tensor;
	int64_t shape = 1000;
	int r = 0;

	for (uint32_t port = 0; port < 2 && r == 0; port++) {
		r = frag_tensor_create(g->pool, u8, 1, &shape, &tensor);
		if (r == 0)
			r = frag_tick_emit_tensor(tick, port, "", tensor);
	}
	return r;
}

/* Passes one message on, and leaves the others where they are; `keeper` leaves all. */
static const struct frag_port passer_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "tensor"},
	{.name = "out", .dir = FRAG_OUT, .type = "tensor"},
};

static int passer_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;

	(void)state;
	return frag_tick_count(tick) == 0 && frag_tick_receive(tick, 0, &message) == 0
		       ? frag_tick_emit(tick, 1, frag_message_ref(message))
		       : 0;
}

static int keeper_compute(void *state, struct frag_tick *tick)
{
	(void)state;
	(void)tick;
	return 0;
}

TEST_OP(giver, .state_size = sizeof(struct giver), FRAG_PARAMS(giver_params),
	FRAG_PORTS(giver_ports));
TEST_OP(passer, FRAG_PORTS(passer_ports));
static const struct frag_port keeper_ports[] = {{.name = "in", .dir = FRAG_IN, .type = "tensor"}};
TEST_OP(keeper, FRAG_PORTS(keeper_ports));
static const struct frag_port counter_ports[] = {{.name = "in", .dir = FRAG_IN, .type = "i64"}};
TEST_OP_BY(counter, keeper_compute, FRAG_PORTS(counter_ports));
TEST_PLUGIN(giver, &giver_type, &passer_type, &keeper_type, &counter_type, &source_type);

/* Where the blocks are: in the flows that they can have reached, those with most messages first. */
RIG_ONE_TEST(run, the_flows_that_hold_an_empty_pool_are_named)
{
	rig_prepare_good(
		rig, &giver_plugin,
		"frag: 1\napplication: app\nscheduler: {type: greedy}\n"
		"resources: {blocks: {type: block_memory_pool, block_size: 4KiB, num_blocks: 7}}\n"
		"operators:\n"
		"  x: {type: source, parameters: {count: 9}}\n"
		"  y: {type: counter, ports: {in: {capacity: 9}}}\n"
		"  z: {type: counter, ports: {in: {capacity: 9}}}\n"
		"  g: {type: giver, parameters: {pool: $blocks}}\n"
		"  a: {type: keeper, ports: {in: {capacity: 9}}}\n"
		"  b: {type: passer, ports: {in: {capacity: 9}}}\n"
		"  c: {type: keeper, ports: {in: {capacity: 9}}}\n"
		"  d: {type: keeper, ports: {in: {capacity: 9}}}\n"
		"  e: {type: keeper, ports: {in: {capacity: 9}}}\n"
		"flows: [x.out -> y.in, x.out -> z.in, b.out -> c.in, g.more -> b.in, g.out -> a.in,\n"
		"  g.out -> d.in, b.out -> e.in]\n");
	rig_start(rig);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_str_eq(
		rig->sentence,
		"app.g: pool \"blocks\" ran out of its 7 blocks, and messages wait: 4 in app.g.out -> app.a.in, 4 in app.g.out -> app.d.in, 2 in app.g.more -> app.b.in, 1 in app.b.out -> app.c.in and in other flows; set num_blocks to 20 or more",
		"%s", rig->sentence);
}

/* What another host writes is asked for before anything starts; without a key nobody can. */
Test(run, a_variable_of_another_host_is_fetched)
{
	static const char yaml[] =
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {a: {type: source}, r: {type: sink}}, flows: [a -> r]}\n"
		"  two: {operators: {a: {type: source}, r: {type: sink}}, flows: [a -> r]}\n"
		"variables:\n"
		"  gain: {type: f32, shape: [2], writer: one.a, readers: [two.r]}\n"
		"  own: {type: f32, shape: [2], writer: two.a, readers: [two.r]}\n"
		"  where: {type: path, path: /data, readers: [two.r]}\n";
	static const char *const fragments[] = {"one", "two"};

	for (int i = 0; i < 2; i++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct rig rig;

		cr_assert_eq(rig_prepare_host(&rig, &rig_plugin, yaml,
					      (const char *const[]){fragments[i], NULL}, 0),
			     0);
		cr_expect_eq(fragi_run_wire_may_wait(rig.run), i == 1);
		cr_expect_eq(fragi_run_wire(rig.run, NULL, 0, NULL, 0, &err), i == 1 ? -ENOENT : 0);
		cr_expect_str_eq(
			err.text,
			i == 0 ? ""
			       : "cannot map variable gain of fragment one (its host is not on this machine); run both fragments on one machine, as one user and in one network namespace, or use a flow");
		rig_end(&rig);
	}
}

static void expect_refused(const char *yaml, const char *sentence)
{
	struct rig rig;
	char line[2048] = "";

	cr_assert_lt(rig_prepare(&rig, &rig_plugin, yaml), 0);
	cr_assert_gt(rig.diag.count, 0);
	fragi_err_line(&rig.diag.items[0], line, sizeof(line));
	cr_expect_not_null(strstr(line, sentence), "%s", line);
	rig_end(&rig);
}

Test(run, what_cannot_run_is_refused_before_anything_starts)
{
	expect_refused(
		"frag: 1\napplication: app\nfragments:\n  one: {operators: {a: {type: source}}}\n"
		"  two: {operators: {r: {type: sink}}}\nflows: [one.a -> two.q]\n",
		"q");
	expect_refused(
		"frag: 1\napplication: app\noperators: {a: {type: source}, r: {type: sink}}\n"
		"flows: [{from: a, to: r, capacity: 4000000}]\n",
		"capacity");
}

RIG_ONE_TEST(run, only_the_wanted_fragments)
{
	static const char yaml[] =
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {a: {type: source, parameters: {count: 3}}, r: {type: sink}},\n"
		"        flows: [a -> r]}\n"
		"  two: {operators: {b: {type: nix}}}\n";
	struct fragi_run_address addresses[FRAGI_HOST_TRANSPORTS_MAX];
	size_t count;

	cr_expect_lt(
		rig_prepare_host(rig, &rig_plugin, yaml, (const char *const[]){"three", NULL}, 0),
		0);
	cr_expect_str_eq(rig->diag.items[0].text, "app has no fragment \"three\"");
	rig_end(rig);
	cr_assert_eq(
		rig_prepare_host(rig, &rig_plugin, yaml, (const char *const[]){"one", NULL}, 0), 0);
	cr_expect_str_eq(fragi_run_fragments(rig->run, &count)[0].name, "one");
	cr_expect_eq(count, 1);
	cr_expect_eq(fragi_run_addresses(rig->run, addresses), 0, "no flow leaves this host");
	rig_start(rig);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(rig->wired, 1);
	cr_expect_eq(notes[0]->count, 3);
}

Test(run, memory_may_end_anywhere)
{
	static const char *const graphs[] = {
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {scheduler: {type: greedy}, operators: {a: {type: source, parameters: {count: 3}},\n"
		"        r: {type: sink, ports: {in: {capacity: 4}}, conditions: [{type: message_available, min_size: 2}]}},\n"
		"        flows: [a -> r]}\n"
		"  two: {scheduler: {type: event_based, worker_thread_number: 2}, operators: {\n"
		"        m: {type: middle, conditions: [{type: count, count: 100}]}, r: {type: gather, parameters: {slot: 1}}},\n"
		"        thread_pools: {p: {initial_size: 1, add: [{operators: [r]}]}}, flows: [m -> r]}\n"
		"flows: [one.a -> two.m]\n",
	};
	struct frag_err err = FRAG_ERR_INIT;
	unsigned int refused = 0, ran = 0;
	struct rig rig;

	for (int64_t skip = 0; ran < 20 && skip < 5000; skip++) {
		const struct fragi_spec_source source = {
			.graph = {"test.yaml", graphs[0], strlen(graphs[0])}};
		const struct fragi_registry_config registry = {0};
		struct fragi_run_config config = {.ledger_fd = -1};
		bool hit;
		int r;

		memset(&rig, 0, sizeof(rig));
		cr_assert_eq(fragi_spec_parse(&source, &rig.diag, &rig.spec), 0);
		cr_assert_eq(fragi_registry_create(&registry, &rig.registry), 0);
		cr_assert_eq(fragi_registry_add(rig.registry, "rig", &rig_plugin, &err), 0);
		config.spec = rig.spec;
		config.registry = rig.registry;
		fragi_alloc_fail_after(skip, 1);
		r = fragi_run_create(&config, &rig.run);
		if (r == 0)
			r = fragi_run_prepare(rig.run, &rig.diag);
		if (r == 0)
			r = fragi_run_wire(rig.run, NULL, 0, NULL, 0, NULL);
		if (r == 0)
			r = fragi_run_start(rig.run, NULL);
		hit = fragi_alloc_fail_off() > 0;
		if (r < 0) {
			cr_expect(hit);
			refused++;
		} else {
			/* Past the last allocation, or one whose lack harms nothing. */
			cr_expect(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS), "skip %lld",
				  (long long)skip);
			ran++;
		}
		rig_end(&rig);
	}
	cr_expect_gt(refused, 50);
	cr_expect_eq(ran, 20);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}
