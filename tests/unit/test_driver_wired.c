// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* What is made of the tables of hosts: flows, rows, tokens, and which host an error is about. */

/* Chains of three operators in f1 and f2, with flows inside both, and three flows between them. */
static const char chains[] =
	"frag: 1\napplication: app\nfragments:\n"
	"  f1: {operators: {a: {type: t}, b: {type: t}, c: {type: t}}}\n"
	"  f2: {operators: {a: {type: t}, b: {type: t}, c: {type: t}}}\n"
	"  f3: {operators: {a: {type: t}}}\n"
	"flows: [f1.a.out -> f2.a.in, f1.b.out -> f2.b.in, f2.c.out -> f3.a.in]\n";

static void say_chain(struct world *w, uint32_t host, uint32_t ops, uint32_t flows)
{
	static const char *const names[] = {"f1", "f2", "f3"}, *const op_names[] = {"a", "b", "c"};
	struct fw_message message = of_host(FW_HOST_PREPARED, host);
	struct fw_port ports[] = {
		{.name = "in",
		 .type = "message",
		 .dir = FRAG_IN,
		 .flags = FRAG_PORT_OPTIONAL,
		 .has_codec = true},
		{.name = "out", .type = "message", .dir = FRAG_OUT, .has_codec = true}};
	struct fw_inner_flow inner[2] = {0};
	struct fw_op rows[3] = {0};
	struct fw_fragment fragment = {.name = names[host - 1], .ops = rows, .op_count = ops};
	struct fw_address address = {"ucx", "address", 7, "tcp lo"};

	for (uint32_t i = 0; i < 3; i++)
		rows[i] = (struct fw_op){
			.name = op_names[i], .type = "t", .ports = ports, .port_count = 2};
	for (uint32_t i = 0; i < 2; i++)
		inner[i] = (struct fw_inner_flow){
			.from_op = i, .from_port = 1, .to_op = i + 1, .capacity = 4, .policy = 1};
	message.prepared = (struct fw_host_prepared){.ok = true,
						     .fragments = &fragment,
						     .fragment_count = 1,
						     .flows = inner,
						     .flow_count = flows,
						     .addresses = &address,
						     .address_count = 1,
						     .pid = 100 + (int32_t)host};
	say(w, host, &message);
}

static void chains_are_prepared(struct world *w)
{
	world_init(w);
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	app(w, chains);
	hello(w, 1, "a", "f1");
	hello(w, 2, "b", "f2");
	hello(w, 3, "c", "f3");
	say_chain(w, 1, 3, 1);
	say_chain(w, 2, 3, 2);
	say_chain(w, 3, 1, 0);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_WIRING, "%s", w->errors);
}

WORLD_TEST(driver_wired, each_host_has_rows_for_its_flows, chains_are_prepared)
{
	static const struct {
		uint32_t first, inner, edges;
	} hosts[] = {{0, 1, 2}, {1, 2, 3}, {3, 0, 1}};
	const struct drv_app *app = w->core->apps[0];
	const struct drv_host *host = app->hosts;

	for (size_t i = 0; i < FRAG_COUNT_OF(hosts); i++) {
		cr_expect_eq(host[i].first_flow, hosts[i].first, "%zu", i);
		cr_expect_eq(host[i].inner_flow_count, hosts[i].inner, "%zu", i);
		cr_expect_eq(host[i].edge_count, hosts[i].edges, "%zu", i);
		for (uint32_t k = 0; k < hosts[i].edges; k++)
			cr_expect_eq(host[i].edges[k], (i == 2 ? 5 : 3) + k, "%zu", i);
	}
	cr_assert_eq(app->flows.count, 6);
	for (size_t i = 3; i < 6; i++) {
		cr_expect_eq(app->flows.rows[i].sender, i < 5 ? 1 + i - 3 : 2 + 2);
		cr_expect_eq(app->flows.rows[i].receiver, i < 5 ? 2 + i - 3 : 0);
	}
}

/* Of a flow inside a host each of the five stages that look at flows takes an item. */
WORLD_TEST(driver_wired, what_is_made_of_tables_costs_what_they_have, chains_are_prepared)
{
	const int64_t before = drv_core_step_items(w->core);
	struct world other;
	int64_t fewer;

	world_init(&other);
	app(&other, chains);
	hello(&other, 1, "a", "f1");
	hello(&other, 2, "b", "f2");
	hello(&other, 3, "c", "f3");
	say_chain(&other, 1, 3, 0);
	say_chain(&other, 2, 3, 0);
	say_chain(&other, 3, 1, 0);
	cr_assert_eq(drv_core_app_state(other.core), DRV_APP_WIRING, "%s", other.errors);
	fewer = drv_core_step_items(other.core);
	world_fini(&other);
	cr_expect_eq(before - fewer, 3 * 5, "%d", (int)(before - fewer));
	cr_expect_eq(fewer, 35, "%d", (int)fewer);
}

/* Those of its neighbours among each other stay. */
WORLD_TEST(driver_wired, a_host_that_starts_again_gets_tokens_of_its_own_edges, chains_are_prepared)
{
	struct drv_app *app = w->core->apps[0];
	uint8_t before[6 * FW_TOKEN_BYTES], zero[FW_TOKEN_BYTES] = {0};

	cr_assert_not_null(app->flows.tokens);
	memcpy(before, app->flows.tokens, sizeof(before));
	for (size_t i = 0; i < 6; i++) {
		cr_expect_arr_neq(before + i * FW_TOKEN_BYTES, zero, FW_TOKEN_BYTES);
		cr_expect_eq(drv_flow_token(app, (uint32_t)i),
			     app->flows.tokens + i * FW_TOKEN_BYTES);
		for (size_t k = 0; k < i; k++)
			cr_expect_arr_neq(before + i * FW_TOKEN_BYTES, before + k * FW_TOKEN_BYTES,
					  FW_TOKEN_BYTES);
	}
	drv_flows_draw_tokens(&app->hosts[2]);
	for (size_t i = 0; i < 6; i++) {
		const uint8_t *now = app->flows.tokens + i * FW_TOKEN_BYTES;
		size_t changed = 0;

		for (size_t k = 0; k < FW_TOKEN_BYTES; k++)
			changed += now[k] != before[i * FW_TOKEN_BYTES + k];
		cr_expect(i == 5 ? changed > FW_TOKEN_BYTES / 2 : changed == 0, "%zu: %zu", i,
			  changed);
	}
}

WORLD_TEST(driver_wired, neighbours_are_those_with_a_flow_between_them, chains_are_prepared)
{
	const struct drv_host *hosts = w->core->apps[0]->hosts;
	static const bool are[3][3] = {
		{false, true, false}, {true, false, true}, {false, true, false}};

	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 3; k++)
			cr_expect_eq(drv_host_is_neighbour(&hosts[i], &hosts[k]), are[i][k],
				     "%zu, %zu", i, k);
}

static int number;

static bool is_number(int other)
{
	return number++ == other;
}

/* Two fragments of two operators of two ports, of which one value is another one. */
static bool is_same_with(int other)
{
	struct fw_port ports[2][8];
	struct fw_op ops[2][4];
	struct fw_fragment fragments[2][2];
	struct fw_host_prepared prepared[2];

	for (int side = 0; side < 2; side++) {
		number = 0;
#define VALUE(one, another) (is_number(other) && side == 1 ? (another) : (one))
		for (int i = 0; i < 8; i++)
			ports[side][i] = (struct fw_port){.name = VALUE("p", "q"),
							  .dir = VALUE(FRAG_IN, FRAG_OUT),
							  .type_id = VALUE(1u, 2u)};
		for (int i = 0; i < 4; i++)
			ops[side][i] = (struct fw_op){.name = VALUE("o", "n"),
						      .ports = &ports[side][2 * i],
						      .port_count = VALUE(2u, 1u)};
		for (int i = 0; i < 2; i++)
			fragments[side][i] = (struct fw_fragment){.name = VALUE("f", "g"),
								  .ops = &ops[side][2 * i],
								  .op_count = VALUE(2u, 1u)};
		prepared[side] = (struct fw_host_prepared){.fragments = fragments[side],
							   .fragment_count = VALUE(2u, 1u),
							   .flow_count = VALUE(3u, 2u)};
#undef VALUE
	}
	cr_assert_eq(number, 38);
	return drv_host_tables_are_same(&prepared[0], &prepared[1]) &&
	       drv_host_tables_are_same(&prepared[1], &prepared[0]);
}

Test(driver_wired, a_process_that_answers_otherwise_is_seen_by_any_value)
{
	cr_expect(is_same_with(-1));
	for (int i = 0; i < 38; i++)
		cr_expect_not(is_same_with(i), "%d", i);
}

/* The error that is shown first names the worker of the host that has it. */
Test(driver_wired, an_error_is_that_of_the_host_that_reported_it)
{
	static const struct fw_failure own = {.code = FRAGI_FAILURE_LIBRARY_MISSING,
					      .sentence = "it is not there",
					      .file = "app.yaml",
					      .line = 5,
					      .column = 9};
	static const struct fw_failure others[] = {
		{.sentence = "it is not there", .file = "z.yaml", .line = 5, .column = 9},
		{.sentence = "it is not there", .file = "app.yaml", .line = 6, .column = 9},
		{.sentence = "it is not there", .file = "app.yaml", .line = 5, .column = 10},
		{.sentence = "it is wrong", .file = "app.yaml", .line = 5, .column = 9},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(others); i++) {
		struct fw_message message;
		struct fw_failure error;
		struct world w;

		world_init(&w);
		app(&w, two_fragments);
		both_come(&w);
		for (uint32_t host = 2; host >= 1; host--) {
			error = host == 2 ? own : others[i];
			error.code = FRAGI_FAILURE_LIBRARY_MISSING;
			message = of_host(FW_HOST_PREPARED, host);
			message.prepared =
				(struct fw_host_prepared){.errors = &error, .error_count = 1};
			say(&w, host, &message);
		}
		assert_has(w.errors, "app.yaml:5:9: it is not there (worker b)\n");
		both_are_killed(&w);
		cr_assert(w.ended);
		assert_has(w.json, "\"worker\": \"b\"");
		world_fini(&w);
	}
}

/* What the core has not finished is given back with it. */
WORLD_TEST(driver_wired, what_is_being_resolved_is_given_back, world_init)
{
	app(w, two_fragments);
	both_come(w);
	say_prepared(w, 1, 1, "f1", true);
	w->core->items = 0;
	cr_expect_eq(drv_flows_resolve(w->core->apps[0]), -EAGAIN);
	cr_expect_not_null(w->core->apps[0]->flows.resolving);
	cr_expect_eq(drv_flows_resolve(w->core->apps[0]), -EAGAIN);
}
