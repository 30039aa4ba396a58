// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>

#include <graph/op.h>

#include "graph_texts.h"
#include "meeting_op.h"

/* Operators in thread pools: which threads run them, and that nothing else changes. */

/* The names of this process' threads that begin so. */
static int threads_called(const char *begin, char names[][16], int most)
{
	DIR *folder = opendir("/proc/self/task");
	const struct dirent *entry;
	char path[300], name[32];
	int count = 0;
	FILE *file;

	cr_assert_not_null(folder);
	while ((entry = readdir(folder)) != NULL) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) != NULL &&
		    strncmp(name, begin, strlen(begin)) == 0) {
			name[strcspn(name, "\n")] = '\0';
			if (count < most)
				snprintf(names[count], 16, "%.15s", name);
			count++;
		}
		fclose(file);
	}
	closedir(folder);
	return count;
}

static int count_of(char names[][16], int count, const char *name)
{
	int same = 0;

	for (int i = 0; i < count; i++)
		same += strcmp(names[i], name) == 0;
	return same;
}

/* Notes which thread runs it, and on which core it may. */
struct where {
	int64_t slot;
};
static const struct frag_param where_params[] = {FRAG_PARAM_I64(struct where, slot, 0)};

static int where_compute(void *state, struct frag_tick *tick)
{
	const struct where *s = state;
	cpu_set_t cores;
	int64_t x;
	int r = frag_tick_receive_i64(tick, 0, &x);

	cr_assert_eq(sched_getaffinity(0, sizeof(cores), &cores), 0);
	note_add(note_of(s->slot), syscall(SYS_gettid));
	notes[s->slot]->times[NOTES_MAX - 1] = CPU_COUNT(&cores);
	return r;
}

TEST_OP(where, .state_size = sizeof(struct where), FRAG_PORTS(sink_ports),
	FRAG_PARAMS(where_params));

/* Computes until another operator has taken so many messages, after some short ticks. */
struct patient {
	int64_t slot, until, after;
};
static const struct frag_param patient_params[] = {FRAG_PARAM_I64(struct patient, slot, 0),
						   FRAG_PARAM_I64(struct patient, until, 10),
						   FRAG_PARAM_I64(struct patient, after, 0)};

static int patient_compute(void *state, struct frag_tick *tick)
{
	const struct patient *s = state;
	int64_t end_ns = fragi_now_ns() + RIG_LIMIT_NS;

	if ((int64_t)frag_tick_count(tick) < s->after)
		return 0;
	while (noted(s->slot) < s->until && fragi_now_ns() < end_ns)
		usleep(1000);
	return noted(s->slot) < s->until ? -ETIMEDOUT : FRAG_DONE;
}

TEST_OP(patient, .state_size = sizeof(struct patient), FRAG_PARAMS(patient_params));

/* Composes tx -> a -> b, the last two in a pool that C makes. */
static int compose_pooled(struct frag_fragment *fragment)
{
	struct frag_op *ops[2] = {
		frag_make_operator(fragment, "a", "middle", FRAG_NO_ARGS),
		frag_make_operator(fragment, "b", "sink", FRAG_NO_ARGS),
	};
	struct frag_op *tx =
		frag_make_operator(fragment, "tx", "source", FRAG_ARGS({"count", "100"}));
	struct frag_thread_pool *pool = frag_make_thread_pool(fragment, "crew", 2);

	frag_add_flow(fragment, tx, NULL, ops[0], NULL);
	frag_add_flow(fragment, ops[0], NULL, ops[1], NULL);
	return frag_thread_pool_add(pool, ops, 2, 0, NULL, 0);
}

/* A subgraph with a pool of its own. */
static int compose_stage(struct frag_subgraph *subgraph, struct frag_fragment *fragment)
{
	struct frag_op *op = frag_make_operator(fragment, "op", "middle", FRAG_NO_ARGS);
	struct frag_thread_pool *pool = frag_make_thread_pool(fragment, "own", 1);

	frag_add_operator(fragment, op);
	frag_add_input_interface_port(subgraph, op, "in", NULL);
	frag_add_output_interface_port(subgraph, op, "out", NULL);
	return frag_thread_pool_add(pool, &op, 1, 1, NULL, 0);
}

static const struct frag_subgraph_type stage_type = {.name = "stage", .compose = compose_stage};

/* The same, behind two instances of the subgraph. */
static int compose_stages(struct frag_fragment *fragment)
{
	frag_make_subgraph_of(fragment, "one", &stage_type, FRAG_NO_ARGS);
	frag_make_subgraph_of(fragment, "two", &stage_type, FRAG_NO_ARGS);
	frag_add_named_flow(fragment, "one", NULL, "two", NULL, 0, FRAG_POLICY_DEFAULT);
	return compose_pooled(fragment);
}

static int compose_bad(struct frag_fragment *fragment)
{
	static const uint32_t cores[] = {0};
	struct frag_op *op = frag_make_operator(fragment, "op", "sink", FRAG_NO_ARGS);
	struct frag_thread_pool *pool = frag_make_thread_pool(fragment, "pool", 1);
	struct frag_thread_pool *other = frag_make_thread_pool(fragment, "other", 1);

	frag_add_flow(fragment, frag_make_operator(fragment, "tx", "source", FRAG_NO_ARGS), NULL,
		      op, NULL);
	cr_expect_null(frag_make_thread_pool(fragment, "pool", 1));
	cr_expect_not_null(frag_make_thread_pool(fragment, "none", 0));
	cr_expect_null(frag_make_thread_pool(fragment, "many", 1025));
	cr_expect_null(frag_make_thread_pool(fragment, "a pool", 1));
	cr_expect_null(frag_make_thread_pool(fragment, NULL, 1));
	cr_expect_eq(frag_thread_pool_add(NULL, &op, 1, 0, NULL, 0), -EINVAL);
	cr_expect_eq(frag_thread_pool_add(pool, &op, 1, 0, cores, 1), -EINVAL);
	cr_expect_eq(frag_thread_pool_add(pool, &op, 1, 0, NULL, 0), 0);
	cr_expect_eq(frag_thread_pool_add(pool, &op, 1, 0, NULL, 0), -EINVAL);
	cr_expect_eq(frag_thread_pool_add(other, &op, 1, 0, NULL, 0), -EINVAL);
	return 0;
}

static const struct frag_composer composers[] = {
	{.name = "pooled", .compose = compose_pooled},
	{.name = "stages", .compose = compose_stages},
	{.name = "bad", .compose = compose_bad},
};

static const struct frag_op_type *const ops[] = {&source_type, &middle_type, &sink_type,
						 &ring_type,   &where_type,  &meeting_type,
						 &patient_type};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT, .name = "rig", FRAG_OPS(ops),
					  FRAG_COMPOSERS(composers)};

static void run(struct rig *rig, const char *graph)
{
	char text[4096];

	notes_clear();
	snprintf(text, sizeof(text), "frag: 1\napplication: app\n%s", graph);
	rig_run(rig, &plugin, text);
}

/* Operators that wait for a time which does not come. */
#define WAITS "type: source, conditions: [{type: periodic, recess_period: 1h}]"

RIG_ONE_TEST(thread_pools, come_in_addition_and_bear_names)
{
	char names[16][16];
	int count = 0;

	rig_prepare_good(
		rig, &plugin,
		"frag: 1\napplication: application\nscheduler: {worker_thread_number: 4}\n"
		"thread_pools:\n"
		"  first: {initial_size: 2, add: [{operators: [a, b]}]}\n"
		"  grows: {initial_size: 0}\n"
		"  second: {initial_size: 3, add: [{operators: c, pin_operator: true},\n"
		"                                  {operators: [long_name_of_it], pin_operator: yes}]}\n"
		"operators: {a: {" WAITS "}, b: {" WAITS "}, c: {" WAITS "}, d: {" WAITS
		"}, long_name_of_it: {" WAITS "}}\n");
	rig_start(rig);
	RIG_AWAIT(notes[SLOTS - 1] != NULL && atomic_load(&notes[SLOTS - 1]->started) >= 5);
	RIG_AWAIT(threads_called("frag:applicati", names, 16) == 4);
	RIG_AWAIT(threads_called("app", names, 16) == 5);
	count = threads_called("app", names, 16);
	cr_expect_eq(count_of(names, count, "applicati:first"), 2);
	cr_expect_eq(count_of(names, count, "applicat:second"), 1);
	cr_expect_eq(count_of(names, count, "application.c"), 1);
	cr_expect_eq(count_of(names, count, "appli.long_name"), 1);
	fragi_run_halt(rig->run);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
}

/* Distinct threads in a slot, up to two. */
static int threads_noted(int slot)
{
	for (uint32_t i = 1; i < noted(slot); i++)
		if (notes[slot]->values[i] != notes[slot]->values[0])
			return 2;
	return noted(slot) > 0;
}

RIG_ONE_TEST(thread_pools, a_pinned_operator_has_its_thread_and_cores)
{
	char graph[1024];
	cpu_set_t cores;
	size_t core = 0;

	cr_assert_eq(sched_getaffinity(0, sizeof(cores), &cores), 0);
	while (!CPU_ISSET(core, &cores))
		core++;
	snprintf(graph, sizeof(graph),
		 "scheduler: {worker_thread_number: 2}\n"
		 "thread_pools: {p: {add: [{operators: a, pin_operator: true, pin_cores: [%zu]},\n"
		 "  {operators: [b], pin_operator: true}, {operators: [c]}]}}\n"
		 "operators:\n  tx: {type: source, parameters: {count: 200},\n"
		 "    conditions: [{type: periodic, recess_period: 200us}]}\n"
		 "  a: {type: where, parameters: {slot: 1}}\n"
		 "  b: {type: where, parameters: {slot: 2}}\n"
		 "  c: {type: where, parameters: {slot: 3}}\n"
		 "flows: [tx -> a, tx -> b, tx -> c]\n",
		 core);
	run(rig, graph);
	for (int slot = 1; slot <= 3; slot++) {
		cr_expect_eq(noted(slot), 200);
		cr_expect_eq(threads_noted(slot), 1);
		for (int other = 1; other < slot; other++)
			cr_expect_neq(notes[slot]->values[0], notes[other]->values[0]);
	}
	cr_expect_eq(notes[1]->times[NOTES_MAX - 1], 1);
	cr_expect_eq(notes[2]->times[NOTES_MAX - 1], CPU_COUNT(&cores));
	cr_expect(rig_balances(rig));
}

RIG_ONE_TEST(thread_pools, the_threads_of_a_pool_work_at_the_same_time)
{
	run(rig, "scheduler: {worker_thread_number: 1}\n"
		 "thread_pools: {p: {initial_size: 2, add: [{operators: [a, b]}]}}\n"
		 "operators:\n  tx: {type: source, parameters: {count: 50},\n"
		 "       conditions: [{type: periodic, recess_period: 2ms}]}\n"
		 "  a: {type: meeting}\n  b: {type: meeting}\nflows: [tx -> a, tx -> b]\n");
	cr_expect_eq(rig->failed, 0);
	cr_expect_not(missed);
	cr_expect_eq(met, 100);
}

/* The one thread of the scheduler computes all the time: nobody but the pool watches its timers. */
RIG_ONE_TEST(thread_pools, a_pool_does_not_wait_for_other_operators)
{
	setenv("FRAG_TEST_NO_SAFETY_POLL", "all", 1);
	run(rig, "scheduler: {worker_thread_number: 1}\n"
		 "thread_pools: {p: {initial_size: 1, add: [{operators: [tx, a, b]}]}}\n"
		 "operators:\n  all: {type: patient, parameters: {slot: 1, until: 20}}\n"
		 "  tx: {type: source, parameters: {count: 20},\n"
		 "       conditions: [{type: periodic, recess_period: 1ms}]}\n"
		 "  a: {type: middle}\n  b: {type: sink, parameters: {slot: 1}}\n"
		 "flows: [tx -> a, a -> b]\n");
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
	cr_expect_eq(noted(1), 20);
}

/*
 * Both wait for a time, and one thread of the pool takes them one after the other: while it
 * computes the other one must watch, and nothing else reminds it.
 */
RIG_ONE_TEST(thread_pools, a_timer_does_not_wait_for_a_busy_thread)
{
	setenv("FRAG_TEST_NO_SAFETY_POLL", "all", 1);
	run(rig, "scheduler: {worker_thread_number: 1}\n"
		 "thread_pools: {p: {initial_size: 2, add: [{operators: [all, tx]}]}}\n"
		 "operators:\n  tx: {type: source, parameters: {count: 20},\n"
		 "       conditions: [{type: periodic, recess_period: 5ms}]}\n"
		 "  all: {type: patient, parameters: {slot: 1, until: 20, after: 3},\n"
		 "       conditions: [{type: periodic, recess_period: 5ms}]}\n"
		 "  b: {type: sink, parameters: {slot: 1}}\nflows: [tx -> b]\n");
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
	cr_expect_eq(noted(1), 20);
}

/* Nothing can ever happen here, and the run says so; while the pool computes it does not. */
RIG_ONE_TEST(thread_pools, a_graph_that_waits_for_itself_is_at_rest)
{
	run(rig, "scheduler: {worker_thread_number: 2}\n"
		 "thread_pools: {p: {initial_size: 2, add: [{operators: [a, all]},\n"
		 "  {operators: b, pin_operator: true}]}}\n"
		 "operators: {a: {type: middle}, b: {type: middle},\n"
		 "  tx: {type: source, parameters: {count: 10},\n"
		 "       conditions: [{type: periodic, recess_period: 20ms}]},\n"
		 "  rx: {type: sink, parameters: {slot: 1}},\n"
		 "  all: {type: patient, parameters: {slot: 1, until: 10}}}\n"
		 "flows: [a -> b, b -> a, tx -> rx]\n");
	cr_expect_eq(rig->idle, 1);
	cr_expect_eq(rig->failed, 0);
	cr_expect_eq(noted(1), 10);
}

RIG_ONE_TEST(thread_pools, a_drain_delivers_all_that_was_sent)
{
	run(rig, "thread_pools: {p: {initial_size: 2, add: [{operators: [tx, a]},\n"
		 "  {operators: b, pin_operator: true}]}}\n"
		 "operators: {tx: {type: source, parameters: {stop_app_at: 500}},\n"
		 "  a: {type: middle}, b: {type: sink, parameters: {slot: 1, work_us: 5}}}\n"
		 "flows: [{from: tx, to: a, capacity: 20}, {from: a, to: b, capacity: 20}]\n");
	cr_expect_eq(rig->stopped, 1);
	cr_expect_geq(noted(1), 500);
	for (uint32_t i = 0; i < noted(1); i++)
		cr_assert_eq(notes[1]->values[i], i);
	cr_expect(rig_balances(rig));
	cr_expect_eq(rig_dropped_all(rig_row(rig, 0)), 0);
}

RIG_ONE_TEST(thread_pools, a_failure_in_a_pool_is_that_of_the_fragment)
{
	run(rig, "thread_pools: {p: {initial_size: 2, add: [{operators: [tx, a]}]}}\n"
		 "operators: {tx: {type: source}, a: {type: middle, parameters: {fail_at: 30}},\n"
		 "  b: {type: sink, parameters: {slot: 1}}}\n"
		 "flows: [tx -> a, a -> b]\n");
	cr_expect_eq(rig->failed, 1);
	cr_expect_not_null(strstr(rig->sentence, "app.a: "), "%s", rig->sentence);
	cr_expect(rig_balances(rig));
}

RIG_ONE_TEST(thread_pools, under_greedy_they_are_ignored)
{
	const char *text =
		"frag: 1\napplication: app\nscheduler: {type: greedy}\n"
		"thread_pools: {p: {initial_size: 2, add: [{operators: a}]}}\n"
		"operators: {tx: {type: source, parameters: {count: 10}},\n"
		"  a: {type: where, parameters: {slot: 1}},\n"
		"  b: {type: where, parameters: {slot: 2}}}\nflows: [tx -> a, tx -> b]\n";

	rig_run(rig, &plugin, text);
	cr_expect_eq(notes[1]->values[0], notes[2]->values[0]);
	cr_expect_eq(rig->spec->warnings.count, 1);
	cr_expect_not_null(strstr(rig->spec->warnings.items[0].text, "greedy"));
}

RIG_ONE_TEST(thread_pools, may_be_made_in_c)
{
	char names[16][16];

	run(rig, "compose: pooled\nscheduler: {worker_thread_number: 1}\n");
	cr_expect_eq(noted(0), 100);
	cr_expect(rig_balances(rig));
	rig_end(rig);
	notes_clear();
	/* One that C composed is added to a pool of the graph. Each instance has its own. */
	rig_prepare_good(rig, &plugin,
			 "frag: 1\napplication: app\ncompose: stages\n"
			 "thread_pools: {more: {add: [{operators: [tx, rx], pin_operator: yes}]}}\n"
			 "operators: {again: {" WAITS
			 "}, rx: {type: sink, parameters: {slot: 2}}}\n"
			 "flows: [again -> one.in, two.out -> rx]\n");
	rig_start(rig);
	RIG_AWAIT(threads_called("app", names, 16) == 6);
	cr_expect_eq(count_of(names, 6, "app:crew"), 2);
	cr_expect_eq(count_of(names, 6, "app.one_op"), 1);
	cr_expect_eq(count_of(names, 6, "app.two_op"), 1);
	cr_expect_eq(count_of(names, 6, "app.tx"), 1);
	cr_expect_eq(count_of(names, 6, "app.rx"), 1);
	fragi_run_halt(rig->run);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
}

static void expect_refused(const char *graph, const char *errors)
{
	char text[4096];
	struct rig rig;

	snprintf(text, sizeof(text), "frag: 1\napplication: app\n%s", graph);
	cr_expect_eq(rig_prepare(&rig, &plugin, text), -EINVAL);
	expect_errors(&rig.diag, errors);
	rig_end(&rig);
}

Test(thread_pools, what_c_makes_is_checked)
{
	expect_refused(
		"compose: bad\n",
		"app: two thread pools are called \"pool\"; rename one of them\n"
		"app: thread pool \"many\" has an initial size of 1025; give 1024 at most\n"
		"app: \"a pool\" is not a valid name of a thread pool; write a letter, then letters, digits, _ or -, 63 in all at most\n"
		"app: \"\" is not a valid name of a thread pool; write a letter, then letters, digits, _ or -, 63 in all at most\n"
		"app: thread pool \"pool\": cores are for operators with a thread of their own; pass pin_operator 1\n"
		"app: operator \"op\" is in thread pool \"pool\" twice; take it out once\n"
		"app: operator \"op\" is in thread pools \"pool\" and \"other\"; take it out of one of them\n");
}

Test(thread_pools, what_the_graph_names_is_checked)
{
	expect_refused(
		"operators: {alpha: {type: source}}\ncompose: stages\nflows: [alpha -> one.in]\n"
		"thread_pools:\n  p: {add: [{operators: [alhpa, alpha, one]}]}\n"
		"  q: {initial_size: 1022, add: [{operators: [alpha]}]}\n",
		"test.yaml:7:26: app: thread pool \"p\": unknown operator \"alhpa\"; did you mean \"alpha\"?\n"
		"test.yaml:7:40: app: thread pool \"p\": \"one\" is an instance of a subgraph; name its operators, as one_OPERATOR\n"
		"test.yaml:8:46: app: operator \"alpha\" is in thread pools \"p\" and \"q\"; take it out of one of them\n"
		"app: its thread pools have 1027 threads together; 1024 are allowed\n");
	/* Operators of one pool use one GPU; a block_memory_pool of the host is on none. */
	expect_refused(
		"resources: {s: {type: cuda_stream_pool}, host: {type: block_memory_pool, dev_id: 2, storage_type: 0, block_size: 8, num_blocks: 1},\n"
		"            t: {type: cuda_stream_pool, dev_id: 1}, u: {type: rmm_allocator, dev_id: 1}}\n"
		"operators: {a: {type: source, resources: [$s, $host]}, b: {type: source, resources: [$t]}, c: {type: source, resources: [$u]}, d: {type: source}}\n"
		"thread_pools: {p: {add: [{operators: [a, b, d]}]}, q: {add: [{operators: c}]}}\n",
		"test.yaml:6:16: app: thread pool \"p\": operator \"b\" uses GPU 1 (resource \"t\") and operator \"a\" GPU 0; give operators of several GPUs pools of their own\n");
	/* A pool of an operator with an error of its own is not one more. */
	expect_refused(
		"operators: {a: {type: snk}}\nthread_pools: {p: {add: [{operators: [a]}]}}\n",
		"test.yaml:3:13: app.a: unknown operator type \"snk\"; did you mean \"sink\"?\n");
}

/* Threads that cannot be pinned: a warning, or with require_pin_cores no start. */
RIG_ONE_TEST(thread_pools, cores_that_are_not_there)
{
	struct frag_err err = FRAG_ERR_INIT;

	run(rig,
	    "thread_pools: {p: {add: [{operators: rx, pin_operator: true, pin_cores: [1023]}]}}\n"
	    "operators: {tx: {type: source, parameters: {count: 10}}, rx: {type: sink}}\n"
	    "flows: [tx -> rx]\n");
	cr_expect_eq(noted(0), 10);
	rig_end(rig);
	rig_prepare_good(
		rig, &plugin,
		"frag: 1\napplication: app\nscheduler: {require_pin_cores: true}\n"
		"thread_pools: {p: {add: [{operators: rx, pin_operator: true, pin_cores: [1023]}]}}\n"
		"operators: {tx: {type: source}, rx: {type: sink}}\nflows: [tx -> rx]\n");
	cr_assert_eq(fragi_run_wire(rig->run, NULL, 0, NULL, 0, &err), 0);
	cr_expect_lt(fragi_run_start(rig->run, &err), 0);
	cr_expect_not_null(strstr(err.text, "app.rx: a thread cannot be pinned"), "%s", err.text);
}
