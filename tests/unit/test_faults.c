// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include "rig.h"

#include <base/alloc.h>
#include <base/flags.h>
#include <data/codec.h>
#include <data/metadata.h>
#include <edge/edge.h>
#include <frag/harness.h>
#include <text/spec.h>

/*
 * The n-th allocation fails, for every n, over whole lives: an application from its text to its
 * end, a message across an edge, a command line. Whatever fails ends with an error and (where there
 * is somebody to read it) a sentence, never with a crash; what it leaks is seen by make asan. The
 * parts' own tests do the same for the parser, the codecs and the cores of the daemons.
 */
#define SOURCE_COUNT 12

struct numbers {
	int64_t next;
	double factor;
	const char *name;
	struct frag_resource *pool;
};
static const struct frag_port numbers_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "i64"}};
static const struct frag_param numbers_params[] = {
	FRAG_PARAM_F64(struct numbers, factor, 1.0),
	FRAG_PARAM_STRING(struct numbers, name, "nobody"),
	FRAG_PARAM_RESOURCE(struct numbers, pool, NULL, .flags = FRAG_PARAM_OPTIONAL),
};

static _Atomic int64_t received, emitted;

static int numbers_compute(void *state, struct frag_tick *tick)
{
	static const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	static const int64_t shape[] = {100};
	struct numbers *s = state;
	struct frag_message *message = frag_message_create();
	struct frag_tensor *tensor;
	int r;

	if (message == NULL)
		return -ENOMEM;
	r = frag_message_set_value(message, &frag_type_i64, &s->next, sizeof(s->next), NULL);
	if (r == 0)
		r = frag_tensor_create(s->pool, u8, 1, shape, &tensor);
	if (r == 0)
		r = frag_message_add_tensor(message, "t", tensor);
	if (r == 0)
		r = frag_metadata_set_string(frag_tick_metadata(tick), "name", s->name);
	if (r < 0) {
		frag_message_unref(message);
		return r;
	}
	s->next++;
	r = frag_tick_emit(tick, 0, message);
	if (r == 0)
		atomic_fetch_add(&emitted, 1);
	return r < 0 ? r : s->next == SOURCE_COUNT ? FRAG_DONE : 0;
}

TEST_OP(numbers, .state_size = sizeof(struct numbers), FRAG_PORTS(numbers_ports),
	FRAG_PARAMS(numbers_params));

struct counter {
	int64_t count;
};
static const struct frag_port counter_ports[] = {{.name = "in", .dir = FRAG_IN, .type = "i64"}};

static int counter_compute(void *state, struct frag_tick *tick)
{
	struct counter *s = state;
	int64_t x;
	int r = frag_tick_receive_i64(tick, 0, &x);

	if (r < 0)
		return r;
	s->count++;
	atomic_fetch_add(&received, 1);
	return 0;
}

TEST_OP(counter, .state_size = sizeof(struct counter), FRAG_PORTS(counter_ports));
TEST_PLUGIN(faults, &numbers_type, &counter_type);

#define GRAPH                                                                                              \
	"frag: 1\n"                                                                                        \
	"application: app\n"                                                                               \
	"arguments: {who: {default: me}}\n"                                                                \
	"config: {c: {factor: 2.5}}\n"                                                                     \
	"scheduler: %s\n"                                                                                  \
	"resources: {pool: {type: block_memory_pool, storage_type: 2, block_size: 4Ki, num_blocks: 20}}\n" \
	"operators:\n"                                                                                     \
	"  tx:\n"                                                                                          \
	"    type: numbers\n"                                                                              \
	"    parameters: {from_config: c, name: \"${who}\", pool: $pool}\n"                                \
	"    conditions: [{type: count, count: 100}]\n"                                                    \
	"  rx: {type: counter, metadata_policy: update}\n"                                                 \
	"  more: {type: counter}\n"                                                                        \
	"flows:\n"                                                                                         \
	"  - {from: tx.out, to: rx.in, capacity: 3}\n"                                                     \
	"  - {from: tx.out, to: more.in, capacity: 2, policy: pop}\n"

static bool rig_has_ended(struct rig *rig)
{
	return rig->done > 0 || rig->failed > 0;
}

/* As far as it comes. Returns 0 when it was done, 1 when it failed with a sentence while it ran. */
static int live(struct rig *rig, const char *yaml)
{
	const struct fragi_spec_source source = {.graph = {"test.yaml", yaml, strlen(yaml)}};
	const struct fragi_registry_config registry = {0};
	struct fragi_run_config config = {.epoch = 1, .ledger_fd = -1};
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	memset(rig, 0, sizeof(*rig));
	r = fragi_spec_parse(&source, &rig->diag, &rig->spec);
	if (r == 0)
		r = fragi_registry_create(&registry, &rig->registry);
	if (r == 0)
		r = fragi_registry_add(rig->registry, "faults", &faults_plugin, &err);
	config.spec = rig->spec;
	config.registry = rig->registry;
	if (r == 0)
		r = fragi_run_create(&config, &rig->run);
	if (r == 0)
		r = fragi_run_prepare(rig->run, &rig->diag);
	if (r == 0)
		r = fragi_run_wire(rig->run, NULL, 0, NULL, 0, &err);
	if (r == 0)
		r = fragi_run_start(rig->run, &err);
	if (r < 0)
		return r;
	cr_assert(rig_wait(rig, rig_has_ended, RIG_LIMIT_NS), "it hangs, %u idle, %lld received",
		  rig->idle, (long long)received);
	if (rig->failed > 0)
		cr_expect_neq(rig->sentence[0], '\0');
	return rig->failed > 0;
}

static void lives_with_failures(const char *scheduler)
{
	static char yaml[4096];
	int64_t hits = 1;

	snprintf(yaml, sizeof(yaml), GRAPH, scheduler);
	for (int64_t skip = 0; hits > 0; skip++) {
		struct rig rig;
		int r;

		cr_assert_lt(skip, 20000);
		atomic_store(&received, 0);
		atomic_store(&emitted, 0);
		fragi_alloc_fail_after(skip, 1);
		r = live(&rig, yaml);
		hits = fragi_alloc_fail_off();
		cr_assert(r >= 0 || r == -ENOMEM, "allocation %lld: %d %s", (long long)skip, r,
			  frag_strerror(r));
		if (r == 0) { /* nothing is lost in silence */
			cr_assert_eq(atomic_load(&emitted), SOURCE_COUNT, "allocation %lld",
				     (long long)skip);
			cr_assert(rig_balances(&rig), "allocation %lld", (long long)skip);
			cr_assert_eq(rig_row(&rig, 0)->delivered, SOURCE_COUNT, "allocation %lld",
				     (long long)skip);
		}
		if (hits == 0)
			cr_assert_eq(r, 0);
		rig_end(&rig);
	}
}

Test(faults, an_application_under_greedy)
{
	lives_with_failures("{type: greedy}");
}

Test(faults, an_application_under_event_based)
{
	lives_with_failures("{type: event_based, worker_thread_number: 2}");
}

Test(faults, an_application_with_thread_pools)
{
	lives_with_failures("{type: event_based, worker_thread_number: 1}\n"
			    "thread_pools: {p: {initial_size: 2, add: [{operators: [rx, more]},\n"
			    "  {operators: tx, pin_operator: true, pin_cores: [0]}]}}");
}

static int cross(void)
{
	struct fragi_flow_row *row = calloc(1, sizeof(*row));
	struct frag_message *message = frag_message_create(), *arrived = NULL;
	struct frag_metadata *metadata = NULL, *merged = NULL;
	const struct fragi_blob *blob = NULL;
	struct fragi_tx *tx = NULL;
	struct fragi_rx *rx = NULL;
	static const double values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	int r = message == NULL ? -ENOMEM
				: fragi_inproc_create(2, FRAG_POLICY_BLOCK, row, &tx, &rx);

	if (r == 0)
		r = frag_message_set_value(message, frag_type_find("f64[]"), values, sizeof(values),
					   NULL);
	metadata = fragi_metadata_create(FRAG_METADATA_UPDATE);
	merged = fragi_metadata_create(FRAG_METADATA_REJECT);
	if (r == 0 && (metadata == NULL || merged == NULL))
		r = -ENOMEM;
	for (int i = 0; r == 0 && i < 20; i++) {
		char key[8];

		snprintf(key, sizeof(key), "k%d", i);
		r = frag_metadata_set_i64(metadata, key, i);
	}
	if (r == 0)
		r = fragi_metadata_merge(merged, metadata, NULL);
	if (r == 0)
		r = frag_metadata_set_string(merged, "more", "text");
	if (r == 0) {
		fragi_message_set_metadata(message, merged);
		merged = NULL;
		r = fragi_message_encode(message, &blob);
	}
	if (r == 0)
		r = fragi_message_decode(blob->bytes, blob->size, 1 << 20, &arrived, NULL);
	if (r == 0) {
		fragi_message_share(message);
		r = tx->ops->send(tx, frag_message_ref(message), 1);
	}
	if (r == 0)
		frag_message_unref(fragi_rx_take(rx, 2));
	if (arrived != NULL)
		frag_message_unref(arrived);
	if (message != NULL)
		frag_message_unref(message);
	fragi_metadata_destroy(metadata);
	fragi_metadata_destroy(merged);
	if (tx != NULL)
		fragi_inproc_destroy(tx);
	free(row);
	return r;
}

static int harness(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create(&numbers_type, NULL, &err);
	struct frag_message *message;
	int r;

	if (h == NULL) {
		cr_expect_neq(err.text[0], '\0');
		return err.code;
	}
	r = frag_harness_tick(h);
	if (r == 0) {
		r = frag_harness_take(h, "out", &message);
		cr_expect_eq(r, 0);
		frag_message_unref(message);
	}
	frag_harness_destroy(h);
	return r;
}

static int command_line(void)
{
	const char *text = NULL;
	struct fragi_texts sets = {0}, operands = {0};
	const struct fragi_flag table[] = {
		{.name = "address", .value = "A", .help = "one", .text = &text},
		{.name = "set", .value = "S", .help = "many", .texts = &sets},
	};
	const struct fragi_flags flags = {.program = "p", .flags = table, .count = 2};
	const char *argv[] = {"p", "--set", "a",     "--set=b", "x", "--address",
			      "y", "z",     "--set", "c",       NULL};
	struct frag_err err = FRAG_ERR_INIT;
	int r = fragi_flags_parse(&flags, 10, (char **)(uintptr_t)argv, &operands, NULL, &err);

	fragi_texts_fini(&sets);
	fragi_texts_fini(&operands);
	return r;
}

static int source(void)
{
	static const char *const configs[] = {"tests/data/labels.yaml"};
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_source read = {0}, unpacked = {0};
	void *bytes = NULL;
	size_t size;
	int r = fragi_source_read(&read, "tests/data/endoscopy.yaml", configs, 1, NULL, 0, NULL, 0,
				  &err);

	if (r < 0)
		cr_expect_neq(err.text[0], '\0');
	if (r == 0)
		r = fragi_source_pack(&read.source, &bytes, &size);
	if (r == 0)
		r = fragi_source_unpack(bytes, size, &unpacked);
	fragi_free(bytes);
	fragi_source_fini(&read);
	fragi_source_fini(&unpacked);
	return r;
}

static void every_allocation_fails(int (*once)(void))
{
	int64_t hits = 1;

	cr_assert_eq(once(), 0); /* what is made once a process is made now */
	for (int64_t skip = 0; hits > 0; skip++) {
		int r;

		cr_assert_lt(skip, 20000);
		fragi_alloc_fail_after(skip, 1);
		r = once();
		hits = fragi_alloc_fail_off();
		cr_assert(r == -ENOMEM || r == 0, "allocation %lld: %d", (long long)skip, r);
		cr_assert(r == 0 || hits > 0);
	}
}

Test(faults, a_message_across_an_edge)
{
	every_allocation_fails(cross);
}

Test(faults, an_operator_in_the_harness)
{
	every_allocation_fails(harness);
}

Test(faults, a_command_line)
{
	every_allocation_fails(command_line);
}

Test(faults, the_files_of_a_graph)
{
	every_allocation_fails(source);
}
