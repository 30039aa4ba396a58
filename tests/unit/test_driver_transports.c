// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* Over which transport the flows of an application go, and what its hosts open for them. */

/* "ucx shm": what HOST_CREATE names; "-": there was none. */
static void expect_opened(struct world *w, uint64_t connection, const char *expected)
{
	const struct fw_message *message = taken(w, connection, FW_HOST_CREATE);
	char opened[64] = "-";
	size_t used = 0;

	for (uint32_t i = 0; message != NULL && i < message->create.transport_count; i++)
		used += (size_t)snprintf(opened + used, sizeof(opened) - used, "%s%s",
					 i > 0 ? " " : "", message->create.transports[i]);
	if (message != NULL && message->create.transport_count == 0)
		opened[0] = '\0';
	cr_expect_str_eq(opened, expected, "connection %d opens \"%s\"", (int)connection, opened);
}

static const char *graph_with(const char *edge)
{
	static char text[400];

	snprintf(text, sizeof(text),
		 "frag: 1\napplication: app\nfragments:\n"
		 "  f1: {operators: {tx: {type: t}}}\n"
		 "  f2: {operators: {rx: {type: t}}}\n"
		 "flows: [{from: f1.tx.out, to: f2.rx.in%s}]\n",
		 edge);
	return text;
}

Test(driver_transports, hosts_that_share_memory_use_it_and_others_do_not)
{
	static const struct {
		const char *a, *b, *edge, *transport;
	} cases[] = {
		{"boot.net.user.7", "boot.net.user.7", "", "shm"},
		{"boot.net.user.7", "boot.net.user.7", ", edge: auto", "shm"},
		{"boot.net.user.7", "boot.net.user.7", ", edge: shm", "shm"},
		{"boot.net.user.7", "boot.net.user.7", ", edge: ucx", "ucx"},
		{"boot.net.user.7", "boot.net.user.8", "", "ucx"},
		{"boot.net.user.7", "boot.net.user.70", "", "ucx"},
		{"boot.net.user.7", "boot.net.other.7", "", "ucx"},
		{"boot.net.user.7", "boot.other.user.7", "", "ucx"},
		{"boot.net.user.7", "other.net.user.7", "", "ucx"},
		{"boot.net.user.7", "", "", "ucx"},
		{"", "", "", "ucx"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct table tx = table_of("f1", true), rx = table_of("f2", false);
		const struct fw_message *wire;
		struct world w;

		world_init(&w);
		app(&w, graph_with(cases[i].edge));
		hello_by_memory(&w, 1, "a", "f1", cases[i].a);
		hello_by_memory(&w, 2, "b", "f2", cases[i].b);
		expect_opened(&w, 1, cases[i].transport);
		expect_opened(&w, 2, cases[i].transport);
		tx.transport = rx.transport = cases[i].transport;
		say_table(&w, 1, 1, &tx);
		say_table(&w, 2, 2, &rx);
		wire = taken(&w, 1, FW_HOST_WIRE);
		cr_assert_not_null(wire, "%zu: %s", i, w.errors);
		cr_expect_str_eq(wire->wire.edges[0].transport, cases[i].transport, "%zu", i);
		world_fini(&w);
	}
}

Test(driver_transports, shared_memory_that_cannot_be_is_refused_before_a_host_is_made)
{
	static const struct {
		const char *a, *b, *sentence;
	} cases[] = {
		{"boot.net.user.7", "other.net.user.7",
		 "app.yaml:6:31: flow f1.tx.out -> f2.rx.in: edge shm needs hosts that share memory, but worker a and worker b are on two machines; leave edge out, or give both fragments to workers of one machine"},
		{"boot.net.user.7", "boot.other.user.7",
		 "but worker a and worker b are in two network namespaces, as two containers are; leave edge out, or start both workers in one"},
		{"boot.net.user.7", "boot.net.user.8",
		 "but worker a and worker b run their hosts as two users; leave edge out, or start both with one --host-user"},
		{"boot.net.user.7", "",
		 "but worker b shares none: files are limited; leave edge out, or remove that reason"},
		{"", "", "but worker a shares none: files are limited"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct world w;

		world_init(&w);
		app(&w, graph_with(", edge: shm"));
		hello_by_memory(&w, 1, "a", "f1", cases[i].a);
		hello_by_memory(&w, 2, "b", "f2", cases[i].b);
		assert_has(w.errors, cases[i].sentence);
		expect_opened(&w, 1, "-");
		expect_opened(&w, 2, "-");
		cr_assert(w.ended);
		cr_expect_eq(w.exit_code, 2);
		assert_has(w.json, "{\"code\": \"memory_not_shared\", \"scope\": \"edge\"");
		world_fini(&w);
	}
}

/* Only where the driver would have chosen it, and once for each host. */
Test(driver_transports, why_memory_is_not_shared_is_logged)
{
	static const char *const line =
		"f2 on worker b shares no memory with other hosts: files are limited\n";
	static const char *const edges[] = {"", ", edge: auto", ", edge: ucx"};

	for (size_t i = 0; i < FRAG_COUNT_OF(edges); i++) {
		const char *found;
		struct world w;

		world_init(&w);
		app(&w, graph_with(edges[i]));
		hello_by_memory(&w, 1, "a", "f1", "boot.net.user.7");
		hello_by_memory(&w, 2, "b", "f2", "");
		found = strstr(w.log, line);
		cr_expect_eq(found != NULL, i < 2, "%s: %s", edges[i], w.log);
		cr_expect(found == NULL || strstr(found + 1, line) == NULL, "%s", w.log);
		cr_expect_null(strstr(w.log, "f1 on worker a shares no memory"));
		world_fini(&w);
	}
}

Test(driver_transports, a_variable_is_shared_on_one_machine_or_refused)
{
	static const char *const graph = "frag: 1\napplication: app\nfragments:\n"
					 "  f1: {operators: {tx: {type: t}}}\n"
					 "  f2: {operators: {rx: {type: t}}}\n"
					 "variables:\n"
					 "  p: {type: path, path: /x, writer: f1, readers: [f2]}\n"
					 "  v: {type: f32, writer: f1.tx, readers: [f1, f2.rx]}\n";
	struct world w;

	world_init(&w);
	app(&w, graph);
	hello_by_memory(&w, 1, "a", "f1", "boot.net.user.7");
	hello_by_memory(&w, 2, "b", "f2", "boot.net.user.7");
	expect_opened(&w, 1, "");
	expect_opened(&w, 2, "");
	world_fini(&w);

	world_init(&w);
	app(&w, graph);
	hello_by_memory(&w, 1, "a", "f1", "boot.net.user.7");
	hello_by_memory(&w, 2, "b", "f2", "other.net.user.7");
	cr_expect_str_eq(
		w.errors,
		"app.yaml:8:47: variable v of fragment f1 cannot be read by fragment f2: worker a and worker b are on two machines; send it over a flow, or give both fragments to workers of one machine\n");
	expect_opened(&w, 1, "-");
	cr_assert(w.ended);
	cr_expect_eq(w.exit_code, 2);
	assert_has(w.json, "{\"code\": \"memory_not_shared\", \"scope\": \"edge\"");
	world_fini(&w);
}

/* The first of several variables counts, and of its readers, like the last. */
Test(driver_transports, each_reader_of_each_variable_is_looked_at)
{
	for (int v = 0; v < 2; v++)
		for (int reader = 0; reader < 3; reader++) {
			char text[1024];
			struct world w;
			int used = snprintf(text, sizeof(text),
					    "frag: 1\napplication: app\nfragments:\n"
					    "  f1: {operators: {tx: {type: t}}}\n"
					    "  f2: {operators: {rx: {type: t}}}\n"
					    "  f3: {operators: {rx: {type: t}}}\n"
					    "  f4: {operators: {rx: {type: t}}}\n"
					    "variables:\n");

			for (int i = 0; i < 2; i++)
				used += snprintf(text + used, sizeof(text) - (size_t)used,
						 "  v%d: {type: f32, writer: f1.tx, readers: [%s, "
						 "%s, %s]}\n",
						 i, i == v && reader == 0 ? "f4" : "f1",
						 i == v && reader == 1 ? "f4" : "f2",
						 i == v && reader == 2 ? "f4" : "f3");
			world_init(&w);
			app(&w, text);
			for (uint64_t c = 1; c <= 4; c++) {
				char name[3] = {102, (char)(48 + c), 0};

				hello_by_memory(&w, c, name, name,
						c == 4 ? "other.net.user.7" : "boot.net.user.7");
			}
			snprintf(text, sizeof(text),
				 "variable v%d of fragment f1 cannot be read by fragment f4", v);
			assert_has(w.errors, text);
			cr_expect_null(strstr(w.log, "(4 workers here)"));
			cr_assert(w.ended);
			world_fini(&w);
		}
}

/* The worker serves the next application as if nothing had been placed there. */
WORLD_TEST(driver_transports, a_refused_application_gives_its_places_back, world_init)
{
	app(w, graph_with(", edge: shm"));
	hello_by_memory(w, 2, "b", "f2", "");
	hello_by_memory(w, 1, "a", NULL, "");
	cr_assert(w->ended);
	w->ended = false;
	app(w, graph_with(""));
	assert_has(w->log, "f1 runs on worker a");
	expect_opened(w, 1, "ucx");
}

WORLD_TEST(driver_transports, a_host_opens_what_its_own_flows_need, world_init)
{
	app(w, "frag: 1\napplication: app\nfragments:\n"
	       "  f1: {operators: {tx: {type: t}}}\n"
	       "  f2: {operators: {rx: {type: t}}}\n"
	       "  f3: {operators: {rx: {type: t}}}\n"
	       "  f4: {operators: {rx: {type: t}}}\n"
	       "flows: [{from: f1.tx, to: [f2.rx, f3.rx]}]\n");
	hello_by_memory(w, 1, "a", "f1", "boot.net.user.7");
	hello_by_memory(w, 2, "b", "f2", "boot.net.user.7");
	hello_by_memory(w, 3, "c", "f3", "boot.net.user.8");
	hello_by_memory(w, 4, "d", "f4", "boot.net.user.7");
	expect_opened(w, 1, "shm ucx");
	expect_opened(w, 2, "shm");
	expect_opened(w, 3, "ucx");
	expect_opened(w, 4, "");
}

WORLD_TEST(driver_transports, a_host_that_opened_another_one_is_not_wired, world_init)
{
	struct table tx = table_of("f1", true), rx = table_of("f2", false);

	app(w, graph_with(""));
	hello_by_memory(w, 1, "a", "f1", "boot.net.user.7");
	hello_by_memory(w, 2, "b", "f2", "boot.net.user.7");
	tx.transport = "shm";
	say_table(w, 1, 1, &tx);
	say_table(w, 2, 2, &rx);
	assert_has(
		w->errors,
		"f2 on worker b has not opened the transport shm, over which f1 on worker a is to reach it; see what worker b logged");
	both_are_killed(w);
	assert_has(w->json, "{\"code\": \"transport_missing\", \"scope\": \"node\"");
}
