// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/alloc.h>

#include "slow.h"
#include "spec_texts.h"

Test(spec, all_errors_come_in_one_go)
{
	bad_text(
		"frag: 1\n"
		"application: my app\n"
		"operatrs: {}\n"
		"fragments:\n"
		"  f:\n"
		"    operators:\n"
		"      detect: {type: detector, paramters: {}, conditions: {type: count}}\n"
		"      b: {parameters: [1]}\n"
		"      c: 5\n"
		"      d: {type: [x], metadata_policy: updat, watchdog: 5x, metadata: perhaps}\n"
		"      e e: {type: t}\n"
		"      g: {type: t, ports: {in: {capacity: 0, policy: pup, condition: nome, sise: 1}}}\n"
		"      h: {type: t, conditions: [{count: 1}, ~, {type: a, name: n}, {type: b, name: n}]}\n"
		"      i: {subgraph: cam}\n"
		"    resources: {pool: {block_size: 1}}\n"
		"    flows: [detect.out -> b.in -> c, {from: detect}, detct -> b, {from: detect, to: b, capcity: 1, edge: shm}, 5, [a, b]]\n"
		"    on_failure: {policy: migrate, intensity: x}\n"
		"    requirements: {cpu: x, memory: 5Q, affinity: {}, gpus: 1}\n"
		"    thread_pools: {p p: {}, q: {initial_size: x, size: 1, add: {operators: h}}, r: {add: [~, {}, {operators: [1], pin_cores: [0]}, {operators: h, pin_operator: 2, sched_policy: fifo}]}, s: 5}\n"
		"  g: {}\n",
		"app.yaml:2:14: application \"my app\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"app.yaml:3:1: unknown key \"operatrs\"; valid keys: frag, application, arguments, config, extensions, fragments, flows, metadata, metadata_policy, variables, subgraphs, clock, services, data_loggers, tracking, deadlines\n"
		"app.yaml:7:32: f.detect: unknown key \"paramters\"; did you mean \"parameters\"?\n"
		"app.yaml:7:59: f.detect: conditions is a map; it must be a list ([a, b])\n"
		"app.yaml:8:7: f.b: has no type, and no composer makes it; add `type: NAME`\n"
		"app.yaml:8:23: f.b: parameters is a list; it must be a map (keys and values)\n"
		"app.yaml:9:10: f.c: an operator is a single value; it must be a map (keys and values)\n"
		"app.yaml:10:17: f.d: type is a list; it must be a single value\n"
		"app.yaml:10:39: f.d: metadata_policy \"updat\" is not known; did you mean \"update\"?\n"
		"app.yaml:10:56: f.d: watchdog \"5x\" is not a valid duration; write for example 10ms, 2s or 30hz\n"
		"app.yaml:10:70: f.d: metadata \"perhaps\" is neither true nor false\n"
		"app.yaml:11:7: f: operator \"e e\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"app.yaml:12:43: f.g.in: capacity \"0\" is not a whole number from 1 to 65536\n"
		"app.yaml:12:54: f.g.in: policy \"pup\" is not known; did you mean \"pop\"?\n"
		"app.yaml:12:70: f.g.in: condition \"nome\" is not known; did you mean \"none\"?\n"
		"app.yaml:12:76: f.g.in: unknown key \"sise\"; did you mean \"size\"?\n"
		"app.yaml:13:33: f.h: a condition has no type; write for example {type: count, count: 10}\n"
		"app.yaml:13:45: f.h: a condition is empty; write {type: count, count: 10}\n"
		"app.yaml:13:68: f.h: two conditions are called \"n\"; names are unique in an operator\n"
		"app.yaml:15:17: f.pool: a resource has no type; write for example {type: unbounded_allocator}\n"
		"app.yaml:16:13: f: \"detect.out -> b.in -> c\" is not a valid flow; write `A.OUT -> B.IN`, or {from: A.OUT, to: [B.IN, C.IN]}\n"
		"app.yaml:16:38: f: a flow without `to`; add it\n"
		"app.yaml:16:54: flow end detct: unknown operator \"f.detct\"; did you mean \"detect\"?\n"
		"app.yaml:16:88: f: unknown key \"capcity\"; did you mean \"capacity\"?\n"
		"app.yaml:16:106: f: edge shm inside a fragment: both ends are in one process; leave edge out\n"
		"app.yaml:16:112: f: \"5\" is not a valid flow; write `A.OUT -> B.IN`, or {from: A.OUT, to: [B.IN, C.IN]}\n"
		"app.yaml:16:115: f: a flow is neither `A.OUT -> B.IN` nor {from: A.OUT, to: B.IN}\n"
		"app.yaml:17:46: f: on_failure intensity \"x\" is not a whole number from 1 to 1000\n"
		"app.yaml:18:25: f.requirements: cpu \"x\" is not a number from 0 up\n"
		"app.yaml:18:36: f.requirements: memory \"5Q\" is not a valid size; write for example 512Mi or 2GB\n"
		"app.yaml:18:40: f.requirements: affinity is not built yet; leave it out\n"
		"app.yaml:18:54: f.requirements: unknown key \"gpus\"; did you mean \"gpu\"?\n"
		"app.yaml:19:20: f: thread pool \"p p\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"app.yaml:19:47: f.thread_pools.q: initial_size \"x\" is not a whole number from 0 to 1024\n"
		"app.yaml:19:50: f.thread_pools.q: unknown key \"size\"; valid keys: initial_size, add, when\n"
		"app.yaml:19:64: f.thread_pools.q: add is a map; it must be a list ([a, b])\n"
		"app.yaml:19:91: f.thread_pools.r: an entry of add is empty; write {operators: [NAME]}\n"
		"app.yaml:19:94: f.thread_pools.r: an entry of add names no operators; write operators: [NAME]\n"
		"app.yaml:19:111: f.thread_pools.r: an operator \"1\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"app.yaml:19:115: f.thread_pools.r: pin_cores is for operators with a thread of their own; add pin_operator: true\n"
		"app.yaml:19:161: f.thread_pools.r: pin_operator \"2\" is neither true nor false\n"
		"app.yaml:19:178: f.thread_pools.r: sched_policy fifo and rr need sched_priority, 1 to 99\n"
		"app.yaml:19:190: f.thread_pools.s: a thread pool is a single value; it must be a map (keys and values)\n"
		"app.yaml:20:3: g: has no operators (or `when` excludes all of them); add operators or a composer\n");
}

Test(spec, the_top_is_checked)
{
	bad_text(
		"",
		"app.yaml:1:1: the graph is empty; it begins with `frag: 1` and `application: NAME`\n");
	bad_text("- a\n",
		 "app.yaml:1:1: the graph is a list; it must be a map (keys and values)\n");
	bad_text("frag: 2\nwhatever: 1\n",
		 "app.yaml:1:7: schema version 2 is not known; this program reads version 1\n");
	bad_text("compose: c\n",
		 "app.yaml:1:1: the schema version is missing; begin with `frag: 1`\n"
		 "app.yaml:1:1: the application has no name; add `application: NAME`\n");
	bad_text(
		HEAD
		"fragments: {f: {compose: c}}\nscheduler: {type: greedy}\nhost: x\nthread_pools: {}\n",
		"app.yaml:4:1: scheduler stands at the top, and there are fragments; move it into the fragment it is for\n"
		"app.yaml:5:1: host stands at the top, and there are fragments; move it into the fragment it is for\n"
		"app.yaml:6:1: thread_pools stands at the top, and there are fragments; move it into the fragment it is for\n");
	bad_text(
		HEAD
		"fragments: {f: {compose: c}}\n"
		"host: 1\nhost: 2\nhost: 3\nhost: 4\nhost: 5\nhost: 6\nhost: 7\nhost: 8\nhost: 9\n",
		"app.yaml:4:1: host stands at the top, and there are fragments; move it into the fragment it is for\n"
		"app.yaml:5:1: the key \"host\" is given twice in one map; remove one\n"
		"app.yaml:6:1: the key \"host\" is given twice in one map; remove one\n"
		"app.yaml:7:1: the key \"host\" is given twice in one map; remove one\n"
		"app.yaml:8:1: the key \"host\" is given twice in one map; remove one\n"
		"app.yaml:9:1: the key \"host\" is given twice in one map; remove one\n"
		"app.yaml:10:1: the key \"host\" is given twice in one map; remove one\n"
		"app.yaml:11:1: the key \"host\" is given twice in one map; remove one\n"
		"app.yaml:12:1: the key \"host\" is given twice in one map; remove one\n");
	bad_text(
		HEAD,
		"app.yaml:1:1: app: has no operators (or `when` excludes all of them); add operators or a composer\n");
	bad_text(
		HEAD "fragments: {}\n",
		"app.yaml:3:1: there are no fragments (or `when` excludes all of them); add one\n");
}

/* What a mistake hides is not a second one. */
Test(spec, one_mistake_is_one_error)
{
	bad_text("{frag:1, application: app, operators: {a: {type: t}}}\n",
		 "app.yaml:1:2: \"frag:1\" lacks a space after the colon; write \"frag: 1\"\n");
	bad_text(
		HEAD "operators: {a: {type:t}, b: {type: t, metadata_policy:update}}\n",
		"app.yaml:3:17: app.a: \"type:t\" lacks a space after the colon; write \"type: t\"\n"
		"app.yaml:3:39: app.b: \"metadata_policy:update\" lacks a space after the colon; write \"metadata_policy: update\"\n");
	bad_text(
		HEAD "operators:\n  a: {type: t}\nb: {type: t}\nflows: [a -> b]\n",
		"app.yaml:5:1: \"b\" stands beside operators; if it is one, indent it as the others\n");
	bad_text(
		HEAD
		"subgraphs: {s: {operators: {a: {type: t}}, b: {type: t}, flows: [{from: a, to: b}, a -> b]}}\n"
		"operators: {i: {subgraph: s}, k: {subgraph: s}}\n",
		"app.yaml:3:44: subgraphs.s: \"b\" stands beside operators; if it is one, indent it as the others\n");
	bad_text(
		HEAD
		"subgraphs: {s: {operators: {a: {type: t}}, flows: [{from: [x.out, a.out], to: a}]}}\n"
		"operators: {i: {subgraph: s}, k: {subgraph: s}}\n",
		"app.yaml:3:60: subgraphs.s: a flow: unknown operator \"x\"; operators: a\n");
	bad_text(
		HEAD
		"config: {a: {x: 1}}\narguments: {n: {default: zzz}}\noperators: {o: {type: t, parameters: {p: {from_config: [\"${n}\"]}}}}\n",
		"app.yaml:5:56: app.o: from_config: config has none of these\n");
	fragi_spec_destroy(good_text(
		HEAD
		"config: {a: {x: 1}, b: {x: 2}}\noperators: {o: {type: t, parameters: {p: {from_config: [a, b]}}}}\n"));
}

Test(spec, ten_thousand_operators_are_read_fast)
{
	char *text = malloc(3 << 20);
	size_t length = (size_t)sprintf(text, HEAD "operators:\n");
	int64_t begin;
	struct fragi_spec *spec;

	for (int i = 0; i < 10000; i++)
		length += (size_t)sprintf(text + length,
					  "  op%d: {type: forward, parameters: {a: 1, b: x}}\n", i);
	length += (size_t)sprintf(text + length, "flows:\n");
	for (int i = 1; i < 10000; i++)
		length += (size_t)sprintf(text + length, "  - op%d.out -> op%d.in\n", i - 1, i);
	begin = own_time_ns();
	spec = good_text(text);
	cr_expect_lt(own_time_ns() - begin, 10000000000 * times_slower());
	cr_expect_eq(spec->fragments[0].operator_count, 10000);
	cr_expect_eq(spec->fragments[0].flow_count, 9999);
	fragi_spec_destroy(spec);
	free(text);
}

Test(spec, errors_beyond_the_hundredth_are_counted)
{
	char *text = malloc(3 << 20);
	size_t length = (size_t)sprintf(text, HEAD "operators:\n");
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;
	struct graph_text graph = {.text = text};

	for (int i = 0; i < 10000; i++)
		length += (size_t)sprintf(text + length,
					  "  op%d: {type: forward, parametres: {a: 1, b: x}}\n", i);
	cr_expect_eq(parse_graph(&graph, &diag, &spec), -EINVAL);
	cr_expect_eq(diag.count, FRAGI_DIAG_MAX);
	cr_expect_eq(diag.beyond, 10000 - FRAGI_DIAG_MAX);
	fragi_diag_fini(&diag);
	free(text);
}

Test(spec, memory_is_bounded)
{
	char text[8192];
	size_t length = (size_t)sprintf(text, HEAD
					"compose: c\nconfig:\n a0: &a0 [x, x, x, x, x, x, x, x]\n");
	struct fragi_spec_text configs[8];
	struct fragi_spec_source source = {.configs = configs, .config_count = 8};
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;

	for (int i = 1; i < 6; i++)
		length += (size_t)sprintf(text + length,
					  " a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
					  i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	sprintf(text + length, " a6: [*a5, *a5, *a5, *a5]\n");
	source.graph = (struct fragi_spec_text){"app.yaml", text, strlen(text)};
	for (size_t i = 0; i < FRAG_COUNT_OF(configs); i++)
		configs[i] = source.graph;
	cr_expect_eq(fragi_spec_parse(&source, &diag, &spec), -ENOMEM);
	expect_errors(&diag,
		      "app.yaml: out of memory, or the graph needs more than 256 MiB of it\n");
	fragi_diag_fini(&diag);
}

Test(spec, every_failure_of_memory_is_told)
{
	int r = -ENOMEM;
	struct fragi_source source;

	read_example(&source, NULL, 0, NULL, 0);
	*strstr((char *)(uintptr_t)source.source.graph.text, "on_failure") = '#';
	for (int64_t skip = 0; r != 0; skip++) {
		struct fragi_diag diag = {0};
		struct fragi_spec *spec = NULL;

		cr_assert_lt(skip, 10000);
		fragi_alloc_fail_after(skip, 1);
		r = fragi_spec_parse(&source.source, &diag, &spec);
		if (fragi_alloc_fail_off() > 0)
			cr_assert_eq(r, -ENOMEM, "%lld: %d", (long long)skip, r);
		else
			cr_assert_eq(r, 0);
		if (r != 0)
			cr_expect_null(spec);
		fragi_spec_destroy(spec);
		fragi_diag_fini(&diag);
	}
	fragi_source_fini(&source);
}

Test(spec, a_file_full_of_errors_is_refused_fast)
{
	size_t size = FRAGI_YAML_TEXT_MAX, length;
	char *text = malloc(size);
	struct graph_text graph = {.text = text};
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;
	int64_t begin;

	length = (size_t)sprintf(text, HEAD "operators:\n");
	for (int i = 0; i < 40000; i++)
		length += (size_t)sprintf(text + length,
					  " operator_with_a_long_name_%d: {type: t}\n", i);
	length += (size_t)sprintf(text + length, "flows:\n");
	for (int i = 0; length < size - 100; i++)
		length +=
			(size_t)sprintf(text + length, " - operatr_with_a_long_name_%d -> x\n", i);
	begin = own_time_ns();
	cr_expect_eq(parse_graph(&graph, &diag, &spec), -EINVAL);
	cr_expect_lt(own_time_ns() - begin, 10000000000 * times_slower());
	cr_expect_eq(diag.count, FRAGI_DIAG_MAX);
	fragi_diag_fini(&diag);
	free(text);
}
