// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <frag/data_logger.h>
#include <data/pool.h>
#include <res/data_logger.h>
#include <run/state.h>

#include "rig_ops.h"

/* Data loggers of whole graphs: what loggers get, in which order, and what becomes of the rest. */

/* A logger that writes down what it gets. */
#define ENTRIES_MAX 4096
static struct {
	char id[64];
	char logger[64];
	enum frag_dir dir;
	int64_t value;
	int has_content;
	int large;
	int64_t metadata; /* "hop"; -1: none */
	int tensors;
	int data;        /* the first byte of the first tensor; -1: not read */
	bool in_compute; /* on the operator's thread, inside its callback */
} entries[ENTRIES_MAX];
static _Atomic uint32_t entry_count;
static _Atomic bool gate_is_closed;
static _Atomic uint32_t at_gate, starts, stops;
static _Atomic int fail_with;

struct capture {
	int64_t gate;
};
static const struct frag_param capture_params[] = {FRAG_PARAM_I64(struct capture, gate, 0)};

static int capture_start(void *state, const struct frag_resource *logger, struct frag_err *err)
{
	const struct capture *capture = state;

	cr_expect_not_null(strstr(frag_resource_name(logger), "log"));
	atomic_fetch_add(&starts, 1);
	return capture->gate == 2 ? frag_err_set(err, -EIO, "it has no paper") : 0;
}

static int note(const struct frag_log_entry *entry, int large)
{
	uint32_t i = atomic_fetch_add(&entry_count, 1);
	const struct frag_tensor *tensor = frag_message_tensor(entry->message, NULL);
	const struct frag_type *type;
	const void *value;

	if (i >= ENTRIES_MAX)
		return -ENOSPC;
	snprintf(entries[i].id, sizeof(entries[i].id), "%s", entry->id);
	snprintf(entries[i].logger, sizeof(entries[i].logger), "%s",
		 frag_resource_name(entry->logger));
	entries[i].dir = entry->dir;
	type = frag_message_value(entry->message, &value, NULL);
	entries[i].value = frag_type_equal(type, &frag_type_i64) ? *(const int64_t *)value : -1;
	entries[i].has_content = entry->has_content;
	entries[i].large = large;
	entries[i].tensors = (int)frag_message_tensor_count(entry->message);
	entries[i].data = tensor != NULL && entry->has_content
				  ? *(const uint8_t *)frag_tensor_data(tensor)
				  : -1;
	entries[i].metadata = -1;
	if (entry->metadata != NULL)
		(void)frag_metadata_get_i64(entry->metadata, "hop", &entries[i].metadata);
	entries[i].in_compute = fragi_current()->op != NULL;
	return fail_with;
}

static int capture_log(void *state, const struct frag_log_entry *entry)
{
	const struct capture *capture = state;

	while (capture->gate == 1 && atomic_load(&gate_is_closed)) {
		atomic_store(&at_gate, 1);
		usleep(200);
	}
	return note(entry, 0);
}
static int capture_log_large(void *state, const struct frag_log_entry *entry)
{
	return note(entry, 1);
}
static int capture_stop(void *state)
{
	atomic_fetch_add(&stops, 1);
	return 0;
}

static const struct frag_data_logger_type capture_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,  .name = "capture",      .state_size = sizeof(struct capture),
	FRAG_PARAMS(capture_params), .start = capture_start, .log = capture_log,
	.stop = capture_stop,
};
static const struct frag_data_logger_type async_capture_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "async_capture",
	.flags = FRAG_DATA_LOGGER_ASYNC,
	.state_size = sizeof(struct capture),
	FRAG_PARAMS(capture_params),
	.start = capture_start,
	.log = capture_log,
	.log_large = capture_log_large,
	.stop = capture_stop,
};
static const struct frag_data_logger_type *const loggers[] = {&capture_type, &async_capture_type};

/* Emits numbers with metadata, and changes the metadata after each emit. */
struct tagger {
	int64_t sent;
};
static int tagger_compute(void *state, struct frag_tick *tick)
{
	struct tagger *s = state;
	int r;

	(void)frag_metadata_set_i64(frag_tick_metadata(tick), "hop", s->sent);
	r = frag_tick_emit_i64(tick, 0, s->sent);
	return r < 0 ? r : ++s->sent == 5 ? FRAG_DONE : 0;
}
TEST_OP(tagger, .state_size = sizeof(struct tagger), FRAG_PORTS(source_ports));

/* Emits tensors of a pool with room for two. */
struct camera {
	struct frag_resource *pool;
	int64_t sent, refused, count;
};
static const struct frag_port camera_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "tensor"}};
static const struct frag_param camera_params[] = {FRAG_PARAM_RESOURCE(struct camera, pool, NULL),
						  FRAG_PARAM_I64(struct camera, count, 0)};
static _Atomic int64_t camera_refused;
static int camera_compute(void *state, struct frag_tick *tick)
{
	static const int64_t shape[] = {2, 3};
	struct camera *s = state;
	struct frag_tensor *tensor;
	int r = frag_tensor_create(s->pool, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 2, shape,
				   &tensor);

	if (r < 0) {
		atomic_fetch_add(&camera_refused, 1);
		return r;
	}
	memset(frag_tensor_writable(tensor), (int)s->sent, 6);
	r = frag_tick_emit_tensor(tick, 0, "frame", tensor);
	return r < 0 ? r : ++s->sent == s->count ? FRAG_DONE : 0;
}
TEST_OP(camera, .state_size = sizeof(struct camera), FRAG_PORTS(camera_ports),
	FRAG_PARAMS(camera_params));
static const struct frag_port eye_ports[] = {{.name = "in", .dir = FRAG_IN, .type = "tensor"}};
static int eye_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = frag_tick_receive(tick, 0, &message);

	return r == -ENOMSG ? 0 : r;
}
TEST_OP(eye, FRAG_PORTS(eye_ports));

static int compose(struct frag_fragment *fragment)
{
	struct frag_resource *logger =
		frag_make_resource(fragment, "log", "capture", FRAG_ARGS({"log_inputs", "false"}));
	struct frag_op *tx = frag_make_operator(fragment, "tx", "source",
						FRAG_ARGS({"count", "3"})),
		       *rx = frag_make_operator(fragment, "rx", "sink", FRAG_NO_ARGS);
	int r = frag_add_data_logger(fragment, logger);

	if (r == 0)
		r = frag_add_data_logger(fragment, logger); /* which changes nothing */
	return r < 0 ? r : frag_add_flow(fragment, tx, NULL, rx, NULL);
}
static int compose_badly(struct frag_fragment *fragment)
{
	cr_expect_eq(frag_add_data_logger(fragment,
					  frag_make_resource(fragment, "pool",
							     "unbounded_allocator", FRAG_NO_ARGS)),
		     -EINVAL);
	return -EINVAL;
}
/* A subgraph of a library with a data logger and one of the graph in it. */
static int compose_logged(struct frag_subgraph *subgraph, struct frag_fragment *fragment)
{
	struct frag_op *head = frag_make_operator(fragment, "h", "middle", FRAG_NO_ARGS);
	struct frag_subgraph *leaf = frag_make_subgraph(fragment, "p", "leaf", FRAG_NO_ARGS);
	int r = frag_add_data_logger(fragment,
				     frag_make_resource(fragment, "log", "capture", FRAG_NO_ARGS));

	if (r == 0)
		r = frag_add_interface_port(subgraph, head, "in", NULL);
	if (r == 0)
		r = frag_add_interface_port_of(subgraph, leaf, "out", NULL);
	return r < 0 ? r
		     : frag_add_named_flow(fragment, "h", "out", "p", "in", 0, FRAG_POLICY_DEFAULT);
}
static const struct frag_subgraph_type subgraph_types[] = {{"logged_in_c", NULL, compose_logged}};

static int compose_two(struct frag_fragment *fragment)
{
	static const char *const names[] = {"tx", "cam", "cam_2", "rx"};
	int r = 0;

	frag_make_operator(fragment, "tx", "source", FRAG_ARGS({"count", "10"}));
	frag_make_subgraph(fragment, "cam", "logged_in_c", FRAG_NO_ARGS);
	frag_make_subgraph(fragment, "cam_2", "logged_in_c", FRAG_NO_ARGS);
	frag_make_operator(fragment, "rx", "sink", FRAG_NO_ARGS);
	for (int i = 0; r == 0 && i < 3; i++)
		r = frag_add_named_flow(fragment, names[i], "out", names[i + 1], "in", 0,
					FRAG_POLICY_DEFAULT);
	return r;
}

static const struct frag_composer composers[] = {{.name = "logged", .compose = compose},
						 {.name = "two", .compose = compose_two},
						 {.name = "badly", .compose = compose_badly}};

static const struct frag_op_type *const types[] = {&source_type, &middle_type, &sink_type,
						   &gather_type, &tagger_type, &camera_type,
						   &eye_type};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT,
					  .name = "rig",
					  FRAG_OPS(types),
					  FRAG_DATA_LOGGERS(loggers),
					  FRAG_SUBGRAPHS(subgraph_types),
					  FRAG_COMPOSERS(composers)};

static void clear(void)
{
	memset(entries, 0, sizeof(entries));
	atomic_store(&entry_count, 0);
	atomic_store(&gate_is_closed, false);
	atomic_store(&at_gate, 0);
	atomic_store(&starts, 0);
	atomic_store(&stops, 0);
	atomic_store(&fail_with, 0);
	atomic_store(&camera_refused, 0);
}

static uint32_t count_of(const char *id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < entry_count && i < ENTRIES_MAX; i++)
		n += strcmp(entries[i].id, id) == 0;
	return n;
}

static struct frag_data_logger_counts counts_of(const struct rig *rig)
{
	struct frag_data_logger_counts counts;
	struct frag_fragment *fragment = rig->run->fragments[0].fragment;

	cr_assert_eq(fragment->logger_count, 1);
	cr_assert_eq(frag_data_logger_counts(fragment->loggers[0], &counts), 0);
	return counts;
}

#define CHAIN                                                                                      \
	"operators:\n"                                                                             \
	"  tx: {type: source, parameters: {count: 20}}\n"                                          \
	"  mx: {type: middle, parameters: {add: 100}}\n"                                           \
	"  rx: {type: sink}\n"                                                                     \
	"flows: [tx -> mx, mx -> rx]\n"

Test(data_loggers, every_message_is_logged_where_it_leaves_and_arrives)
{
	FOR_EACH_SCHEDULER(s)
	{
		int64_t next[4] = {0};
		struct rig rig;

		clear();
		rig_run(&rig, &plugin,
			rig_graph(s, "data_loggers: {log: {type: capture}}\n" CHAIN));
		cr_expect_eq(entry_count, 80);
		for (uint32_t i = 0; i < entry_count; i++) {
			bool out = entries[i].dir == FRAG_OUT, late = entries[i].value >= 100;
			int which = out ? (late ? 1 : 0) : (late ? 3 : 2);
			static const char *const ids[] = {"app.tx.out", "app.mx.out", "app.mx.in",
							  "app.rx.in"};

			cr_expect_str_eq(entries[i].id, ids[which]);
			cr_expect_eq(entries[i].value % 100, next[which]++, "in order");
			cr_expect(entries[i].in_compute, "at once");
		}
		rig_end(&rig);
		cr_expect_eq(starts, 1);
		cr_expect_eq(stops, 1);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

/* What a tick received is logged before what it emits, which may be the answer. */
RIG_ONE_TEST(data_loggers, what_was_received_comes_before_what_is_emitted)
{
	clear();
	rig_run(rig, &plugin,
		rig_graph(0, "data_loggers: {log: {type: capture, allowlist_patterns: "
			     "[\"mx\\\\.\"]}}\n" CHAIN));
	cr_assert_eq(entry_count, 40);
	for (uint32_t i = 0; i < 40; i += 2) {
		cr_expect_eq(entries[i].dir, FRAG_IN);
		cr_expect_eq(entries[i + 1].dir, FRAG_OUT);
		cr_expect_eq(entries[i + 1].value, entries[i].value + 100);
	}
}

/* Its flows are emptied before the tick, and what is old is dropped there. */
RIG_TEST(data_loggers, an_input_with_timing_is_logged_as_it_is_received)
{
	int64_t last = -1;

	clear();
	rig_run(rig, &plugin,
		rig_graph(s, "data_loggers: {log: {type: capture, log_outputs: false}}\n"
			     "operators:\n"
			     "  tx: {type: source, parameters: {count: 20}}\n"
			     "  rx: {type: sink, ports: {in: {take: latest_within, age: 1h}}}\n"
			     "flows: [tx -> rx]\n"));
	cr_assert_gt(entry_count, 0);
	for (uint32_t i = 0; i < entry_count; i++) {
		cr_expect_str_eq(entries[i].id, "app.rx.in");
		cr_expect_gt(entries[i].value, last);
		last = entries[i].value;
	}
	cr_expect_eq(last, 19);
}

Test(data_loggers, patterns_choose_and_the_allowlist_wins)
{
	static const struct {
		const char *parameters;
		uint32_t tx_out, mx_in, mx_out, rx_in;
	} cases[] = {
		{"denylist_patterns: [mx, \"rx\\\\.in$\"]", 20, 0, 0, 0},
		{"allowlist_patterns: [\"^app\\\\.(tx|rx)\"]", 20, 0, 0, 20},
		{"allowlist_patterns: [\"out$\"], denylist_patterns: [tx]", 20, 0, 20, 0},
		{"log_inputs: false", 20, 0, 20, 0},
		{"log_outputs: false", 0, 20, 0, 20},
		{"allowlist_patterns: [nobody]", 0, 0, 0, 0},
		{"denylist_patterns: [\"[0-9]\", \"x{3}\"]", 20, 20, 20, 20},
	};
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		char graph[1024];
		struct rig rig;

		clear();
		snprintf(graph, sizeof(graph), "data_loggers: {log: {type: capture, %s}}\n%s",
			 cases[i].parameters, CHAIN);
		rig_run(&rig, &plugin, rig_graph(1, graph));
		cr_expect_eq(count_of("app.tx.out"), cases[i].tx_out, "%s", cases[i].parameters);
		cr_expect_eq(count_of("app.mx.in"), cases[i].mx_in, "%s", cases[i].parameters);
		cr_expect_eq(count_of("app.mx.out"), cases[i].mx_out, "%s", cases[i].parameters);
		cr_expect_eq(count_of("app.rx.in"), cases[i].rx_in, "%s", cases[i].parameters);
		rig_end(&rig);
	}
}

RIG_ONE_TEST(data_loggers, flows_of_a_multi_receiver_have_ids_of_their_own)
{
	clear();
	rig_run(rig, &plugin,
		rig_graph(0, "data_loggers: {log: {type: capture, denylist_patterns: [\":1$\"]}}\n"
			     "operators:\n"
			     "  a: {type: source, parameters: {count: 10}}\n"
			     "  b: {type: source, parameters: {count: 10}}\n"
			     "  c: {type: source, parameters: {count: 10}}\n"
			     "  all: {type: gather}\n"
			     "flows: [a -> all, b -> all, c -> all]\n"));
	cr_expect_eq(count_of("app.all.receivers:0"), 10);
	cr_expect_eq(count_of("app.all.receivers:1"), 0);
	cr_expect_eq(count_of("app.all.receivers:2"), 10);
}

Test(data_loggers, metadata_is_that_of_the_message)
{
	for (int on = 0; on < 2; on++) {
		struct rig rig;

		clear();
		rig_run(&rig, &plugin,
			rig_graph(0, on ? "data_loggers: {log: {type: async_capture}}\n"
					  "operators:\n  tx: {type: tagger}\n  rx: {type: sink}\n"
					  "flows: [tx -> rx]\n"
					: "data_loggers: {log: {type: async_capture, "
					  "log_metadata: false}}\n"
					  "operators:\n  tx: {type: tagger}\n  rx: {type: sink}\n"
					  "flows: [tx -> rx]\n"));
		rig_end(&rig);
		cr_expect_eq(entry_count, 10);
		for (uint32_t i = 0; i < entry_count; i++)
			cr_expect_eq(entries[i].metadata, on ? entries[i].value : -1);
	}
}

RIG_ONE_TEST(data_loggers, a_composer_adds_one)
{
	clear();
	rig_run(rig, &plugin, rig_graph(0, "compose: logged\n"));
	rig_end(rig);
	cr_expect_eq(entry_count, 3);
	cr_expect_eq(rig_prepare(rig, &plugin, rig_graph(0, "compose: badly\n")), -EINVAL);
	cr_expect_not_null(strstr(rig->diag.items[0].text, "pool is no data logger"), "%s",
			   rig->diag.items[0].text);
}

/* How many messages a logger got of ids that begin so. */
static uint32_t got(const char *logger, const char *prefix)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < entry_count && i < ENTRIES_MAX; i++)
		n += strcmp(entries[i].logger, logger) == 0 &&
		     strncmp(entries[i].id, prefix, strlen(prefix)) == 0;
	return n;
}

#define LEAF                                                                                       \
	"subgraphs:\n"                                                                             \
	"  leaf:\n"                                                                                \
	"    data_loggers: {log: {type: capture, log_inputs: false}}\n"                            \
	"    operators: {f: {type: middle}}\n"                                                     \
	"    ports: {in: f.in, out: f.out}\n"

/* The name of the second instance begins as names in the first one do. */
Test(data_loggers, those_of_an_instance_get_what_is_in_it)
{
	static const char *const ids[2][5] = {
		{"cam_log", "cam_p_a_log", "app.cam_h.", "app.cam_p_", "app.cam_p_a_f.out"},
		{"cam_2_log", "cam_2_p_a_log", "app.cam_2_h.", "app.cam_2_p_",
		 "app.cam_2_p_a_f.out"}};
	struct rig rig;

	clear();
	rig_run(&rig, &plugin,
		rig_graph(0, LEAF
			  "  pair:\n"
			  "    operators: {a: {subgraph: leaf}, b: {subgraph: leaf}}\n"
			  "    flows: [a.out -> b.in]\n"
			  "    ports: {in: a.in, out: b.out}\n"
			  "  outer:\n"
			  "    data_loggers: {log: {type: capture}}\n"
			  "    operators: {h: {type: middle}, p: {subgraph: pair}}\n"
			  "    flows: [h -> p.in]\n"
			  "    ports: {in: h.in, out: p.out}\n"
			  "data_loggers: {log: {type: capture, denylist_patterns: [cam_p, rx]}}\n"
			  "operators:\n"
			  "  tx: {type: source, parameters: {count: 10}}\n"
			  "  cam: {subgraph: outer}\n"
			  "  cam_2: {subgraph: outer}\n"
			  "  rx: {type: sink}\n"
			  "flows: [tx -> cam.in, cam.out -> cam_2.in, cam_2.out -> rx]\n"));
	cr_expect_eq(starts, 7, "one of the graph, and three of each instance");
	cr_expect_eq(got("log", "app.cam_2_p_b_f.out"), 10, "through three levels");
	cr_expect_eq(got("log", "app.cam_h."), 20);
	cr_expect_eq(got("log", ""), 90, "tx, cam_h and all of cam_2");
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(got(ids[i][0], ids[i][2]), 20);
		cr_expect_eq(got(ids[i][0], ids[i][3]), 40);
		cr_expect_eq(got(ids[i][0], ""), 60, "nothing of the other instance");
		cr_expect_eq(got(ids[i][1], ids[i][4]), 10);
		cr_expect_eq(got(ids[i][1], ""), 10, "nothing of its neighbour");
	}
	rig_end(&rig);
	cr_expect_eq(stops, 7);
}

RIG_ONE_TEST(data_loggers, instances_that_c_makes_have_theirs)
{
	static const char *const ids[2][4] = {
		{"cam_log", "cam_p_log", "app.cam_p_f.", "app.cam_p_f.out"},
		{"cam_2_log", "cam_2_p_log", "app.cam_2_p_f.", "app.cam_2_p_f.out"}};

	clear();
	rig_run(rig, &plugin, rig_graph(0, LEAF "compose: two\n"));
	cr_expect_eq(starts, 4);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(got(ids[i][0], ids[i][2]), 20);
		cr_expect_eq(got(ids[i][0], ""), 40);
		cr_expect_eq(got(ids[i][1], ids[i][3]), 10);
		cr_expect_eq(got(ids[i][1], ""), 10);
	}
	cr_expect_eq(entry_count, 100);
}

/* Asynchronous ones. */

Test(data_loggers, an_asynchronous_one_logs_all_before_the_end)
{
	FOR_EACH_SCHEDULER(s)
	{
		struct rig rig;

		clear();
		rig_run(&rig, &plugin,
			rig_graph(s, "data_loggers: {log: {type: async_capture}}\n" CHAIN));
		rig_end(&rig);
		cr_expect_eq(entry_count, 80);
		for (uint32_t i = 0; i < entry_count; i++)
			cr_expect_not(entries[i].in_compute, "on a thread of its own");
		cr_expect_eq(stops, 1);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

/* The logger stands still: the graph ends nevertheless, and every message is accounted for. */
Test(data_loggers, a_stuck_logger_stops_nobody_and_rejections_are_counted)
{
	FOR_EACH_SCHEDULER(s)
	{
		struct frag_data_logger_counts counts;
		struct rig rig;

		clear();
		atomic_store(&gate_is_closed, true);
		rig_run(&rig, &plugin,
			rig_graph(s, "data_loggers: {log: {type: async_capture, gate: 1, "
				     "max_queue_size: 7}}\n" CHAIN));
		counts = counts_of(&rig);
		cr_expect_eq(counts.logged, 0);
		cr_expect(counts.rejected >= 72 && counts.rejected <= 73,
			  "7 wait, and the logger has one: %llu",
			  (unsigned long long)counts.rejected);
		atomic_store(&gate_is_closed, false);
		rig_end(&rig);
		cr_expect_eq(entry_count + counts.rejected, 80);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

RIG_ONE_TEST(data_loggers, raise_fails_the_operator)
{
	clear();
	atomic_store(&gate_is_closed, true);
	rig_prepare_good(rig, &plugin,
			 rig_graph(0, "data_loggers: {log: {type: async_capture, gate: 1, "
				      "max_queue_size: 1, queue_policy: raise}}\n" CHAIN));
	rig_start(rig);
	cr_assert(rig_wait(rig, rig_has_failed, RIG_LIMIT_NS));
	cr_expect_not_null(strstr(rig->sentence, "data logger log: its queue is full at app."),
			   "%s", rig->sentence);
	atomic_store(&gate_is_closed, false);
}

Test(data_loggers, what_is_left_at_the_timeout_is_given_up)
{
	struct rig rig;
	struct frag_resource *logger;
	struct frag_data_logger_counts counts;

	clear();
	atomic_store(&gate_is_closed, true);
	rig_run(&rig, &plugin,
		rig_graph(0, "data_loggers: {log: {type: async_capture, gate: 1, "
			     "shutdown_timeout: 0ms}}\n" CHAIN));
	RIG_AWAIT(atomic_load(&at_gate) > 0);
	logger = rig.run->fragments[0].fragment->loggers[0];
	atomic_store(&gate_is_closed, false);
	fragi_data_logger_stop(fragi_data_logger_of(logger), false);
	cr_expect_eq(frag_data_logger_counts(logger, &counts), 0);
	cr_expect_eq(counts.logged + counts.abandoned, 80);
	cr_expect_eq(counts.logged, entry_count);
	cr_expect_geq(counts.abandoned, 1);
	rig_end(&rig);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

#define FRAMES(parameters)                                                                         \
	"data_loggers: {log: {type: async_capture, gate: 1, " parameters "}}\n"                    \
	"resources: {pool: {type: block_memory_pool, block_size: 64, num_blocks: 3}}\n"            \
	"operators:\n"                                                                             \
	"  tx: {type: camera, parameters: {pool: $pool, count: 30}}\n"                             \
	"  rx: {type: eye}\n"                                                                      \
	"flows: [tx -> rx]\n"

/* Nothing of such a run is freed: an operator may still come to log. */
static struct rig hanging[2];
Test(data_loggers, what_waits_when_an_operator_hangs_is_logged_or_counted)
{
	for (int stuck = 0; stuck < 2; stuck++) {
		struct frag_data_logger_counts counts;
		struct rig *rig = &hanging[stuck];

		clear();
		atomic_store(&gate_is_closed, stuck);
		rig_run(rig, &plugin,
			rig_graph(0, "data_loggers: {log: {type: async_capture, gate: 1, "
				     "shutdown_timeout: 1ms}}\n" CHAIN));
		fragi_sched_join(rig->run->fragments[0].sched);
		atomic_store(&rig->run->hung, true);
		atomic_store(&gate_is_closed, false);
		fragi_run_destroy(rig->run);
		counts = counts_of(rig);
		cr_expect_eq(counts.logged + counts.abandoned, 80, "%d + %d", (int)counts.logged,
			     (int)counts.abandoned);
		cr_expect_eq(counts.logged, entry_count);
		cr_expect_eq(counts.rejected + counts.failed, 0);
		cr_expect_eq(stops, 0, "its operator may still log");
	}
}

/* The logger has every message, yet no block: it has descriptions. */
Test(data_loggers, a_stuck_logger_keeps_no_blocks)
{
	struct rig rig;

	clear();
	atomic_store(&gate_is_closed, true);
	rig_run(&rig, &plugin, rig_graph(0, FRAMES("log_tensor_data_content: false")));
	cr_expect_eq(camera_refused, 0);
	atomic_store(&gate_is_closed, false);
	rig_end(&rig);
	cr_expect_eq(entry_count, 60);
	for (uint32_t i = 0; i < entry_count; i++)
		cr_expect(entries[i].tensors == 1 && entries[i].has_content == 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

/* With the queue for large data each message comes twice: its description and its content. Without
 * it, or unless contents are asked for, the description is all. */
Test(data_loggers, contents_have_a_queue_of_their_own)
{
	static const char *const graphs[] = {
		"data_loggers: {log: {type: async_capture, log_tensor_data_content: true}}\n",
		"data_loggers: {log: {type: async_capture, log_tensor_data_content: true, enable_large_data_queue: false}}\n",
		"data_loggers: {log: {type: async_capture}}\n"};

	for (int i = 0; i < 3; i++) {
		bool is_separate = i == 0;
		char graph[512];
		uint32_t large = 0, whole = 0, described = 0;
		struct rig rig;

		clear();
		snprintf(graph, sizeof(graph),
			 "%soperators:\n  tx: {type: camera, parameters: {count: 9}}\n"
			 "  rx: {type: eye}\nflows: [tx -> rx]\n",
			 graphs[i]);
		rig_run(&rig, &plugin, rig_graph(0, graph));
		rig_end(&rig);
		for (uint32_t k = 0; k < entry_count; k++) {
			large += entries[k].large == 1;
			whole += entries[k].has_content == 1 && entries[k].data >= 0 &&
				 entries[k].data < 9;
			described += entries[k].has_content == 0;
		}
		cr_expect_eq(large, is_separate ? 18u : 0u);
		cr_expect_eq(whole, is_separate ? 18u : 0u);
		cr_expect_eq(described, 18u);
	}
}

RIG_ONE_TEST(data_loggers, failures_of_a_logger_are_counted_and_stop_nobody)
{
	struct frag_data_logger_counts counts;

	clear();
	atomic_store(&fail_with, -EIO);
	rig_run(rig, &plugin, rig_graph(0, "data_loggers: {log: {type: capture}}\n" CHAIN));
	counts = counts_of(rig);
	cr_expect_eq(counts.failed, 80);
	cr_expect_eq(counts.logged, 0);
}

Test(data_loggers, one_that_cannot_start_refuses_the_run)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct rig rig;

	clear();
	rig_prepare_good(&rig, &plugin,
			 rig_graph(0, "data_loggers: {log: {type: capture, gate: 2}}\n" CHAIN));
	cr_assert_eq(fragi_run_wire(rig.run, NULL, 0, NULL, 0, &err), 0);
	cr_expect_eq(fragi_run_start(rig.run, &err), -EIO);
	cr_expect_str_eq(err.text, "data logger log cannot start: it has no paper");
	cr_expect_eq(entry_count, 0);
	rig_end(&rig);
	cr_expect_eq(stops, 0, "it did not start");
}

/* An operator whose messages nobody wants is as without loggers. */
RIG_ONE_TEST(data_loggers, who_is_not_logged_is_left_alone)
{
	struct frag_fragment *fragment;

	clear();
	rig_prepare_good(rig, &plugin,
			 rig_graph(0, "data_loggers: {log: {type: capture, allowlist_patterns: "
				      "[tx]}}\n" CHAIN));
	fragment = rig->run->fragments[0].fragment;
	cr_expect_not_null(fragment->ops[0]->logged);
	cr_expect_null(fragment->ops[1]->logged);
	cr_expect_null(fragment->ops[2]->logged);
}

Test(data_loggers, patterns_that_cannot_be_are_refused)
{
	static const struct {
		const char *pattern, *sentence;
	} cases[] = {
		{"(a", "is no POSIX extended regular expression"},
		{"\\\\d+", "has \\d, which POSIX expressions do not have; write [0-9]"},
		{"(?:a)", "has (?, which"},
		{"(a)\\\\1", "has a back-reference"},
		{"a+?", "has a lazy quantifier"},
		{"(a{1,200}){200}", "repeats too much"},
		{"a{99999999999}", "repeats too much"},
		{"a{3", "has a { without its }"},
	};
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		char graph[1024];
		struct rig rig;

		snprintf(graph, sizeof(graph),
			 "data_loggers: {log: {type: capture, denylist_patterns: [\"%s\"]}}\n%s",
			 cases[i].pattern, CHAIN);
		cr_expect_eq(rig_prepare(&rig, &plugin, rig_graph(0, graph)), -EINVAL);
		cr_assert_eq(rig.diag.count, 1, "%s", cases[i].pattern);
		cr_expect_not_null(strstr(rig.diag.items[0].text, cases[i].sentence), "%s: %s",
				   cases[i].pattern, rig.diag.items[0].text);
		rig_end(&rig);
	}
}
