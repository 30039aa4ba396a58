// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <run/state.h>

#include "logger_ops.h"

static uint32_t count_of(const char *id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < entry_count && i < ENTRIES_MAX; i++)
		n += strcmp(entries[i].id, id) == 0;
	return n;
}

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
		/* in brackets all are characters, and a ] that comes first is one, too */
		{"allowlist_patterns: [\"mx[]*?(?{.]\"]", 0, 20, 20, 0},
		{"allowlist_patterns: [\"mx[^](?*?{]in\"]", 0, 20, 0, 0},
		{"allowlist_patterns: [\"mx[.^]in\"]", 0, 20, 0, 0},
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
	rig_end(rig);
	cr_expect_eq(rig_prepare(rig, &plugin, rig_graph(0, "compose: shared\n")), -EINVAL);
	cr_expect_not_null(
		strstr(rig->diag.items[0].text, "data logger log is added in two places"), "%s",
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
