// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/alloc.h>
#include <text/holoscan.h>

#include "slow.h"
#include "unit/graph_texts.h"

#define HEAD "frag: 1\napplication: app\n"

/* The example of the schema, as its page gives it. */
static void read_example(struct fragi_source *source, const char *const *sets, size_t set_count,
			 const char *const *args, size_t arg_count)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_source_read(source, "tests/data/endoscopy.yaml", NULL, 0, sets,
				       set_count, args, arg_count, &err),
		     0, "%s", err.text);
}

static struct fragi_spec *good_example(const char *const *sets, size_t set_count,
				       const char *const *args, size_t arg_count)
{
	struct fragi_diag diag = {0};
	struct fragi_source source;
	struct fragi_spec *spec = NULL;

	read_example(&source, sets, set_count, args, arg_count);
	cr_expect_eq(fragi_spec_parse(&source.source, &diag, &spec), 0);
	expect_errors(&diag, "");
	cr_assert_not_null(spec);
	fragi_source_fini(&source); /* the spec holds copies */
	fragi_diag_fini(&diag);
	return spec;
}

static const struct fragi_spec_setting *setting(const struct fragi_spec_setting *settings,
						size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(settings[i].name, name) == 0)
			return &settings[i];
	cr_assert_fail("no setting %s", name);
	return NULL;
}

Test(spec, the_example_is_read_whole)
{
	struct fragi_spec *spec = good_example(NULL, 0, NULL, 0);
	const struct fragi_spec_fragment *one = &spec->fragments[0], *two = &spec->fragments[1];
	const struct fragi_spec_operator *replayer = &one->operators[0],
					 *detect = &one->operators[1];

	cr_expect_str_eq(spec->application, "endoscopy");
	cr_expect_not_null(strstr(spec->app_folder, "/tests/data"));
	cr_expect(spec->metadata);
	cr_assert_eq(spec->fragment_count, 2);
	cr_expect_eq(one->extension_count, 1);
	cr_expect_str_eq(one->extensions[0].library, "libendoscopy.so");
	cr_assert_eq(one->resource_count, 1);
	cr_expect_str_eq(one->resources[0].name, "pool");
	cr_expect_str_eq(one->resources[0].type, "block_memory_pool");
	cr_assert_eq(one->resources[0].setting_count, 3);
	cr_expect_str_eq(one->resources[0].settings[1].name, "block_size");
	cr_expect_str_eq(one->resources[0].settings[1].value->text, "2MB");
	cr_assert_eq(one->operator_count, 2);
	cr_expect_str_eq(replayer->type, "video_replayer");
	cr_expect_str_eq(setting(replayer->settings, replayer->setting_count, "path")->value->text,
			 "data/clip.mp4");
	cr_expect_str_eq(setting(replayer->settings, replayer->setting_count, "pool")->value->text,
			 "$pool");
	cr_assert_eq(replayer->condition_count, 2);
	cr_expect_str_eq(replayer->conditions[1].type, "periodic");
	cr_expect_null(replayer->conditions[1].name);
	cr_expect_str_eq(replayer->conditions[1].settings[0].value->text, "30hz");
	cr_expect_eq(replayer->metadata_policy, FRAG_METADATA_UPDATE);
	cr_expect_str_eq(setting(detect->settings, detect->setting_count, "threshold")->value->text,
			 "0.5");
	cr_expect_eq(setting(detect->settings, detect->setting_count, "labels")->value->count, 3);
	cr_assert_eq(one->flow_count, 1);
	cr_expect_str_eq(one->flows[0].from.op, "replayer");
	cr_expect_null(one->flows[0].from.fragment);
	cr_expect_str_eq(one->flows[0].to[0].port, "in");
	cr_expect_eq(one->flows[0].capacity, 4);
	cr_expect_eq(one->flows[0].policy, FRAG_POLICY_POP);
	cr_expect_eq(one->scheduler.kind, FRAGI_SCHEDULER_EVENT_BASED);
	cr_expect_eq(one->scheduler.worker_thread_number, 2);
	cr_expect(one->scheduler.stop_on_deadlock);
	cr_expect_str_eq(one->host, "main");
	cr_expect_eq(one->watchdog_ns, 2000000000);
	cr_expect_eq(one->requirements.wanted[FRAGI_AMOUNT_CPU], 2000);
	cr_expect_eq(one->requirements.wanted[FRAGI_AMOUNT_MEMORY], 512 << 20);
	cr_expect_eq(one->requirements.limit[FRAGI_AMOUNT_MEMORY], 0);
	cr_expect_str_eq(two->compose, "endoscopy_view");
	cr_expect_null(two->host);
	cr_assert_eq(two->operator_count, 1);
	cr_expect_null(two->operators[0].type);
	cr_expect_str_eq(two->operators[0].settings[0].value->text, "OR 3");
	cr_assert_eq(spec->flow_count, 2);
	cr_expect_str_eq(spec->flows[0].from.fragment, "fragment1");
	cr_expect_str_eq(spec->flows[0].to[0].port, "receivers");
	cr_expect_eq(spec->flows[0].capacity, 0);
	cr_expect_eq(spec->flows[0].policy, FRAG_POLICY_DEFAULT);
	cr_expect_str_eq(spec->flows[1].edge, "auto");
	fragi_spec_destroy(spec);
}

Test(spec, the_example_with_the_other_source)
{
	static const char *const args[] = {"--source", "aja"};
	static const char *const sets[] = {"fragment1.detect.mode=fast",
					   "fragment2.view.title=OR 4"};
	struct fragi_spec *spec = good_example(sets, 2, args, 2);
	const struct fragi_spec_operator *detect = &spec->fragments[0].operators[0];

	cr_assert_eq(spec->fragments[0].operator_count, 1);
	cr_expect_str_eq(setting(detect->settings, detect->setting_count, "threshold")->value->text,
			 "0.4");
	cr_expect_str_eq(setting(detect->settings, detect->setting_count, "mode")->value->text,
			 "fast");
	cr_expect_str_eq(spec->fragments[1].operators[0].settings[0].value->text, "OR 4");
	cr_expect_eq(spec->fragments[0].flow_count, 0);
	cr_expect_eq(spec->flow_count, 1);
	fragi_spec_destroy(spec);
}

Test(spec, one_fragment_may_stand_at_the_top)
{
	struct fragi_spec *spec =
		good_text(HEAD "extensions: [liba.so, libb.so, liba.so]\n"
			       "operators: {tx: {type: PingTxOp}, rx: {type: ping_rx}}\n"
			       "flows: [tx -> rx.in, {from: tx.out, to: rx}]\n"
			       "scheduler: {type: greedy}\n"
			       "host: h\n"
			       "metadata: false\n"
			       "watchdog: 0\n");
	const struct fragi_spec_fragment *fragment = &spec->fragments[0];

	cr_assert_eq(spec->fragment_count, 1);
	cr_expect_str_eq(fragment->name, "app");
	cr_expect_eq(fragment->extension_count, 2);
	cr_expect_str_eq(fragment->operators[0].type, "ping_tx");
	cr_expect_null(fragment->flows[0].from.port);
	cr_expect_null(fragment->flows[1].to[0].port);
	cr_expect_eq(spec->flow_count, 0);
	cr_expect_eq(fragment->scheduler.kind, FRAGI_SCHEDULER_GREEDY);
	cr_expect_not(spec->metadata);
	fragi_spec_destroy(spec);
}

Test(spec, extensions_at_the_top_come_first_in_all_fragments)
{
	struct fragi_spec *spec = good_text(HEAD "extensions: [a.so, b.so]\n"
						 "fragments:\n"
						 "  f: {compose: c, extensions: [b.so, c.so]}\n"
						 "  g: {compose: c}\n");

	cr_assert_eq(spec->fragments[0].extension_count, 3);
	cr_expect_str_eq(spec->fragments[0].extensions[0].library, "a.so");
	cr_expect_str_eq(spec->fragments[0].extensions[2].library, "c.so");
	cr_expect_eq(spec->fragments[1].extension_count, 2);
	fragi_spec_destroy(spec);
}

Test(spec, a_flow_may_be_encrypted_wherever_its_ends_run)
{
	struct fragi_spec *spec = good_text(
		HEAD
		"fragments: {f: {compose: c, flows: [{from: a, to: b, encrypt: on}]}, g: {compose: c}}\n"
		"flows: [{from: f.a, to: g.b, encrypt: on}, {from: f.c, to: g.d, encrypt: off}, f.e -> g.f]\n");

	cr_expect(spec->fragments[0].flows[0].encrypt);
	cr_expect(spec->flows[0].encrypt);
	cr_expect_not(spec->flows[1].encrypt);
	cr_expect_not(spec->flows[2].encrypt);
	fragi_spec_destroy(spec);
	bad_text(HEAD "compose: c\nflows: [{from: a, to: b, encrypt: maybe}]\n",
		 "app.yaml:4:35: app: encrypt \"maybe\" is neither true nor false\n");
}

#define DIGITS "86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
#define OTHER_DIGITS "0000000000000000000000000000000000000000000000000000000000000001"

Test(spec, a_sha256_holds_wherever_its_library_is_named)
{
	struct fragi_spec *spec =
		good_text(HEAD "extensions: [{name: a.so}, b.so]\n"
			       "fragments:\n"
			       "  f: {compose: c, extensions: [c.so]}\n"
			       "  g: {compose: c}\n"
			       "  h: {compose: c, extensions: [{name: c.so, sha256: 9F" DIGITS
			       "}, {name: b.so, sha256: '" OTHER_DIGITS "'}]}\n");
	const struct fragi_spec_extension *f = spec->fragments[0].extensions;

	cr_assert_eq(spec->fragments[0].extension_count, 3);
	cr_expect_str_eq(f[0].library, "a.so");
	cr_expect_null(f[0].sha256);
	cr_expect_str_eq(f[1].sha256, OTHER_DIGITS);
	cr_expect_str_eq(f[2].sha256, "9f" DIGITS, "in lower case");
	cr_expect_str_eq(spec->fragments[1].extensions[1].sha256, OTHER_DIGITS);
	fragi_spec_destroy(spec);
}

Test(spec, a_sha256_has_one_form_and_one_value)
{
	bad_text(
		HEAD "extensions: [{name: a.so, sha256: 12ab}, {sha256: 9f" DIGITS
		     "}, {name: b.so, sha: 1}, {name: c.so, sha256: [1]}, [d.so]]\n"
		     "fragments:\n"
		     "  f: {compose: c, extensions: [{name: e.so, sha256: 9f" DIGITS "}]}\n"
		     "  g: {compose: c, extensions: [{name: e.so, sha256: '" OTHER_DIGITS "'}]}\n",
		"app.yaml:3:35: sha256 \"12ab\" is not 64 hexadecimal digits; `fragctl inspect a.so` prints them\n"
		"app.yaml:3:42: an extension without `name`; write for example {name: libview.so, sha256: DIGITS}\n"
		"app.yaml:3:131: unknown key \"sha\"; valid keys: name, sha256\n"
		"app.yaml:3:161: sha256 is a list; it must be a single value\n"
		"app.yaml:3:167: an extension is a list; it must be a single value\n"
		"app.yaml:6:53: g: e.so has another sha256 in line 5; a library is loaded once, so state the same one\n");
}

Test(spec, holoscan_names_and_numbers_are_understood)
{
	static const char *const schedulers[] = {"GreedyScheduler", "EventBasedScheduler",
						 "MultiThreadScheduler", "multi_thread"};
	char text[512];

	for (size_t i = 0; i < FRAG_COUNT_OF(schedulers); i++) {
		struct fragi_spec *spec;

		sprintf(text,
			HEAD
			"operators: {a: {type: VideoStreamReplayerOp, conditions: [{type: CountCondition}]}, b: {type: t}}\nflows: [{from: a, to: b, policy: %s}]\n"
			"scheduler: {type: %s}\n",
			i == 0   ? "0"
			: i == 1 ? "1"
			: i == 2 ? "2"
				 : "async_buffer",
			schedulers[i]);
		spec = good_text(text);
		cr_expect_str_eq(spec->fragments[0].operators[0].type, "video_replayer");
		cr_expect_str_eq(spec->fragments[0].operators[0].conditions[0].type, "count");
		cr_expect_eq(spec->fragments[0].scheduler.kind,
			     i == 0 ? FRAGI_SCHEDULER_GREEDY : FRAGI_SCHEDULER_EVENT_BASED);
		cr_expect_eq(spec->fragments[0].flows[0].policy,
			     i < 3 ? FRAG_POLICY_POP + i : FRAG_POLICY_ASYNC_BUFFER);
		fragi_spec_destroy(spec);
	}
	cr_expect_str_eq(
		fragi_alias(FRAGI_HOLOSCAN_CONDITION, "DownstreamMessageAffordableCondition"),
		"downstream_affordable");
	cr_expect_str_eq(fragi_alias(FRAGI_HOLOSCAN_OPERATOR, "video_stream_replayer"),
			 "video_replayer");
	cr_expect_str_eq(fragi_alias(FRAGI_HOLOSCAN_OPERATOR, "video_stream_replayer_op"),
			 "video_replayer");
	cr_expect_str_eq(fragi_alias(FRAGI_HOLOSCAN_OPERATOR, "my_op"), "my_op");
	cr_expect_str_eq(fragi_alias(FRAGI_HOLOSCAN_OPERATOR, "CountCondition"), "CountCondition");
	cr_expect_str_eq(fragi_alias(FRAGI_HOLOSCAN_OPERATOR, ""), "");
}

Test(spec, times_of_frags_own_keys_need_a_unit)
{
	bad_text(HEAD "compose: c\nwatchdog: 2\noperators: {a: {type: t, watchdog: 1.5}}\n",
		 "app.yaml:4:11: app: watchdog \"2\" has no unit; write for example 2s\n"
		 "app.yaml:5:36: app.a: watchdog \"1.5\" has no unit; write for example 1.5s\n");
}

Test(spec, names_of_holoscan_are_explained)
{
	static const char *const here[] = {"ping_tx", "format_converter"};
	static const struct {
		enum fragi_holoscan_kind kind;
		const char *name, *sentence;
	} cases[] = {
		{FRAGI_HOLOSCAN_RESOURCE, "CudaAllocator",
		 "resource type \"CudaAllocator\" is not part of frag; use stream_ordered_allocator or rmm_allocator"},
		{FRAGI_HOLOSCAN_OPERATOR, "aja_source_op",
		 "operator type \"aja_source_op\" is not part of frag; play a recording with video_replayer, or write an operator over the card's library"},
		{FRAGI_HOLOSCAN_OPERATOR, "CountCondition",
		 "operator type \"CountCondition\" names the condition \"count\"; list it under an operator's conditions"},
		{FRAGI_HOLOSCAN_CONDITION, "cuda_green_context",
		 "condition type \"cuda_green_context\" names the resource \"cuda_green_context\"; list it under resources"},
		{FRAGI_HOLOSCAN_CONDITION, "PeriodicConditon",
		 "unknown condition type \"PeriodicConditon\"; did you mean \"PeriodicCondition\"?"},
		{FRAGI_HOLOSCAN_OPERATOR, "ping_txx",
		 "unknown operator type \"ping_txx\"; did you mean \"ping_tx\"?"},
		{FRAGI_HOLOSCAN_OPERATOR, "video_stream_replayer",
		 "operator type \"video_stream_replayer\" is one of frag's, and no library that was found has it; install all of frag, or name the library under extensions"},
		{FRAGI_HOLOSCAN_OPERATOR, "x",
		 "unknown operator type \"x\"; valid: ping_tx, format_converter"},
	};
	char sentence[700];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_str_eq(fragi_refuse_type(sentence, sizeof(sentence), cases[i].kind,
						   cases[i].name, here, 2),
				 cases[i].sentence, "%s", sentence);
	bad_text(
		HEAD
		"operators: {a: {type: t, thread_pool: p, queue_size: 2, condition: {type: count}}}\n",
		"app.yaml:3:26: app.a: no key \"thread_pool\"; list the operator under thread_pools of the fragment\n"
		"app.yaml:3:42: app.a: no key \"queue_size\"; write capacity\n"
		"app.yaml:3:57: app.a: no key \"condition\"; write conditions: [{type: count, count: 10}]\n");
}

Test(spec, a_scheduler_has_all_its_settings)
{
	struct fragi_spec *spec = good_text(
		HEAD
		"compose: c\nscheduler: {worker_thread_number: 8, stop_on_deadlock_timeout_ms: 500, max_duration_ms: 10000, check_recession_period_ms: 0.5, pin_cores: [1, 3], require_pin_cores: yes}\n");
	const struct fragi_spec_scheduler *scheduler = &spec->fragments[0].scheduler;

	cr_expect_eq(scheduler->kind, FRAGI_SCHEDULER_EVENT_BASED);
	cr_expect_eq(scheduler->worker_thread_number, 8);
	cr_expect(scheduler->stop_on_deadlock);
	cr_expect_eq(scheduler->stop_on_deadlock_timeout_ms, 500);
	cr_expect_eq(scheduler->max_duration_ms, 10000);
	cr_expect_float_eq(scheduler->check_recession_period_ms, 0.5, 1e-9);
	cr_assert_eq(scheduler->pin_core_count, 2);
	cr_expect_eq(scheduler->pin_cores[1], 3);
	cr_expect(scheduler->require_pin_cores);
	fragi_spec_destroy(spec);
	spec = good_text(
		HEAD
		"compose: c\nconfig: {s: {worker_thread_number: 3, stop_on_deadlock_timeout: 7, strict_job_thread_pinning: false}}\n"
		"scheduler: {worker_thread_number: 2, from_config: s}\n");
	cr_expect_eq(spec->fragments[0].scheduler.worker_thread_number, 2,
		     "what stands there wins");
	cr_expect_eq(spec->fragments[0].scheduler.stop_on_deadlock_timeout_ms, 7);
	fragi_spec_destroy(spec);
	bad_text(
		HEAD "compose: c\nscheduler: {from_config: none}\nconfig: {s: {a: 1}}\n",
		"app.yaml:4:26: app.scheduler: from_config: config has no \"none\"; its keys: s\n");
	bad_text(
		HEAD "compose: c\nconfig: {s: {thread: 1}}\nscheduler: {from_config: s}\n",
		"app.yaml:4:14: app.scheduler: unknown key \"thread\"; did you mean \"worker_thread_number\"?\n");
	bad_text(
		HEAD "fragments: {all: {compose: c}, any: {compose: c}}\n",
		"app.yaml:3:13: no fragment can be called all, which stands for all of them in --fragments; rename it\n");
	spec = good_text(
		HEAD
		"compose: c\nscheduler: {stop_on_deadlock_timeout_ms: -1, max_duration_ms: -20}\n");
	cr_expect_not(spec->fragments[0].scheduler.stop_on_deadlock);
	cr_expect_eq(spec->fragments[0].scheduler.stop_on_deadlock_timeout_ms, 0);
	cr_expect_eq(spec->fragments[0].scheduler.max_duration_ms, 0);
	fragi_spec_destroy(spec);
	spec = good_text(HEAD "compose: c\n");
	cr_expect(spec->fragments[0].scheduler.stop_on_deadlock);
	cr_expect_float_eq(spec->fragments[0].scheduler.check_recession_period_ms, 5, 1e-9);
	fragi_spec_destroy(spec);
	bad_text(
		HEAD
		"compose: c\nscheduler: {type: greedi, worker_thread_number: 0, max_duration_ms: 1s, check_recession_period_ms: nan, pin_cores: [x], stop_on_deadlock: 2, clock: {}, thread: 1}\n",
		"app.yaml:4:19: app.scheduler: no scheduler \"greedi\"; did you mean \"greedy\"?\n"
		"app.yaml:4:49: app.scheduler: worker_thread_number \"0\" is not a whole number from 1 to 1024\n"
		"app.yaml:4:69: app.scheduler: max_duration_ms \"1s\" is not a whole number from -31622400000 to 31622400000\n"
		"app.yaml:4:100: app.scheduler: check_recession_period_ms \"nan\" is not a number of milliseconds from 0 to 60000\n"
		"app.yaml:4:117: app.scheduler: a core of pin_cores \"x\" is not a whole number from 0 to 8191\n"
		"app.yaml:4:139: app.scheduler: stop_on_deadlock \"2\" is neither true nor false\n"
		"app.yaml:4:149: app.scheduler: clock lacks type; give it realtime, manual or synthetic\n"
		"app.yaml:4:153: app.scheduler: unknown key \"thread\"; did you mean \"worker_thread_number\"?\n");
}

Test(spec, an_operator_has_all_its_settings)
{
	struct fragi_spec *spec = good_text(
		HEAD
		"operators:\n"
		"  a: {type: t, watchdog: 500ms, metadata: false, metadata_policy: inplace_update,\n"
		"      ports: {in: {capacity: 2, policy: reject, condition: none}, out: {}},\n"
		"      conditions: [{type: count, name: c1, count: 3}, {type: none, port: in}]}\n"
		"  b: {type: t, metadata: true}\n"
		"  c: {type: t}\n");
	const struct fragi_spec_operator *op = &spec->fragments[0].operators[0];

	cr_expect_eq(op->watchdog_ns, 500000000);
	cr_expect_eq(op->metadata, 0);
	cr_expect_eq(op[1].metadata, 1);
	cr_expect_eq(op[2].metadata, -1);
	cr_expect_eq(op->metadata_policy, FRAG_METADATA_INPLACE_UPDATE);
	cr_assert_eq(op->port_count, 2);
	cr_expect_str_eq(op->ports[0].name, "in");
	cr_expect_eq(op->ports[0].capacity, 2);
	cr_expect_eq(op->ports[0].policy, FRAG_POLICY_REJECT);
	cr_expect(op->ports[0].no_condition);
	cr_expect_eq(op->ports[1].policy, FRAG_POLICY_DEFAULT);
	cr_expect_str_eq(op->conditions[0].name, "c1");
	cr_expect_eq(op->conditions[0].setting_count, 1);
	cr_expect_str_eq(op->conditions[1].type, "none");
	cr_expect_str_eq(op->conditions[1].settings[0].name, "port");
	fragi_spec_destroy(spec);
}

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

Test(spec, on_failure_migrate_has_a_lease)
{
	struct fragi_spec *spec = good_text(
		HEAD "fragments:\n"
		     " a: {compose: c, on_failure: {policy: migrate}}\n"
		     " b: {compose: c, on_failure: {policy: migrate, lease: 0s}}\n"
		     " c: {compose: c, on_failure: {policy: migrate, intensity: 7, lease: 2s}}\n"
		     " d: {compose: c, on_failure: {policy: restart}}\n");

	for (size_t i = 0; i < 3; i++)
		cr_expect_eq(spec->fragments[i].on_failure.policy, FRAGI_ON_FAILURE_MIGRATE);
	cr_expect_eq(spec->fragments[0].on_failure.lease_ns, 10000000000);
	cr_expect_eq(spec->fragments[1].on_failure.lease_ns, 0);
	cr_expect_eq(spec->fragments[2].on_failure.lease_ns, 2000000000);
	cr_expect_eq(spec->fragments[2].on_failure.intensity, 7);
	cr_expect_eq(spec->fragments[3].on_failure.lease_ns, 0);
	cr_expect_not(fragi_spec_share_host(&spec->fragments[0], &spec->fragments[1]),
		      "their leases differ");
	fragi_spec_destroy(spec);
	bad_text(HEAD "fragments:\n"
		      " a: {compose: c, on_failure: {policy: restart, lease: 5s}}\n"
		      " b: {compose: c, on_failure: {policy: migrate, lease: 10ms}}\n"
		      " c: {compose: c, on_failure: {policy: migrate, lease: 2h}}\n",
		 "app.yaml:4:55: a: on_failure lease is for policy migrate only; leave it out\n"
		 "app.yaml:5:55: b: on_failure lease is neither 0s nor from 1s to 1h\n"
		 "app.yaml:6:55: c: on_failure lease is neither 0s nor from 1s to 1h\n");
}

Test(spec, on_failure_may_stop_within_a_period)
{
	fragi_spec_destroy(good_text(HEAD "compose: c\non_failure: {policy: stop, period: 60s}\n"));
}

Test(spec, thread_pools)
{
	struct fragi_spec *spec = good_text(
		HEAD
		"arguments: {slow: {default: false}}\n"
		"operators: {a: {type: t}, b: {type: t}, c: {type: t, when: {slow: true}}}\n"
		"thread_pools:\n"
		"  one: {initial_size: 3, add: [{operators: [a, b]}, {operators: c, when: {slow: true}}]}\n"
		"  two: {add: [{operators: x, pin_operator: true, pin_cores: [1, 2]}]}\n"
		"  three: {when: {slow: true}}\n");
	const struct fragi_spec_fragment *own = &spec->fragments[0];

	cr_assert_eq(own->thread_pool_count, 2);
	cr_expect_str_eq(own->thread_pools[0].name, "one");
	cr_expect_eq(own->thread_pools[0].initial_size, 3);
	cr_assert_eq(own->thread_pools[0].entry_count, 1);
	cr_assert_eq(own->thread_pools[0].entries[0].member_count, 2);
	cr_expect_str_eq(own->thread_pools[0].entries[0].members[1].op, "b");
	cr_expect_not(own->thread_pools[0].entries[0].pin_operator);
	cr_expect_eq(own->thread_pools[1].initial_size, 1);
	cr_expect(own->thread_pools[1].entries[0].pin_operator);
	cr_assert_eq(own->thread_pools[1].entries[0].pin_core_count, 2);
	cr_expect_eq(own->thread_pools[1].entries[0].pin_cores[1], 2);
	cr_expect_eq(spec->warnings.count, 0);
	fragi_spec_destroy(spec);
	bad_text(
		HEAD "arguments: {slow: {default: false}}\n"
		     "operators: {a: {type: t, when: {slow: true}}, b: {type: t}}\n"
		     "thread_pools: {p: {add: [{operators: [a, b]}]}}\n"
		     "subgraphs: {s: {operators: {a: {type: t}}, thread_pools: {}}}\n",
		"app.yaml:5:39: app.thread_pools.p: operator a is excluded by its when; give what names it here the same when\n"
		"app.yaml:6:44: subgraphs.s: thread pools belong to a fragment; list the operators of the instances there, as INSTANCE_OPERATOR\n");
}

Test(spec, clocks)
{
	struct fragi_spec *spec = good_text(
		HEAD
		"compose: c\nscheduler: {clock: {type: RealtimeClock, initial_time_offset: -2.5, "
		"initial_time_scale: 0.5, use_time_since_epoch: true}}\n");
	const struct fragi_clock_config *config = &spec->fragments[0].clock.config;

	cr_expect_eq(config->kind, FRAGI_CLOCK_REALTIME);
	cr_expect(config->offset_s == -2.5 && config->scale == 0.5 && config->since_epoch);
	cr_expect_eq(spec->clock.config.kind, FRAGI_CLOCK_MACHINE);
	fragi_spec_destroy(spec);
	spec = good_text(HEAD "clock: {type: manual, initial_timestamp: 7}\n"
			      "fragments: {f: {compose: c}, g: {compose: c}}\n");
	cr_expect_eq(spec->clock.config.kind, FRAGI_CLOCK_MANUAL);
	cr_expect_eq(spec->clock.config.initial_ns, 7);
	cr_expect_null(spec->fragments[0].clock.place);
	fragi_spec_destroy(spec);
	spec = good_text(HEAD "fragments: {f: {clock: synthetic, compose: c}, g: {compose: c}}\n");
	cr_expect_eq(spec->fragments[0].clock.config.kind, FRAGI_CLOCK_SYNTHETIC);
	cr_expect_null(spec->fragments[1].clock.place);
	fragi_spec_destroy(spec);

	spec = good_text(HEAD "clock: {max_error: 200us}\n"
			      "fragments: {f: {compose: c, clock: manual}}\n");
	cr_expect_eq(spec->clock.config.kind, FRAGI_CLOCK_MACHINE);
	cr_expect_eq(spec->clock.config.max_error_ns, 200000);
	cr_expect_eq(spec->fragments[0].clock.config.kind, FRAGI_CLOCK_MANUAL);
	fragi_spec_destroy(spec);
	spec = good_text(HEAD "clock: {type: realtime, max_error: 1ms}\n"
			      "fragments: {f: {compose: c}}\n");
	cr_expect_eq(spec->clock.config.kind, FRAGI_CLOCK_REALTIME);
	cr_expect_eq(spec->clock.config.max_error_ns, 1000000);
	fragi_spec_destroy(spec);
	bad_text(
		HEAD "clock: {max_error: 0s, scale: 1}\n"
		     "fragments:\n"
		     " f: {compose: c, clock: {max_error: 1ms}}\n"
		     " g: {compose: c, scheduler: {clock: {type: realtime, max_error: 1ms}}}\n"
		     " h: {compose: c, clock: {type: manual, max_error: 1ms}}\n",
		"app.yaml:3:20: max_error is 0; leave it out to have none\n"
		"app.yaml:3:24: unknown key \"scale\"; valid keys: max_error\n"
		"app.yaml:5:37: f: max_error holds for the whole application; move it to clock at the top of the graph\n"
		"app.yaml:6:65: g.scheduler: max_error holds for the whole application; move it to clock at the top of the graph\n"
		"app.yaml:7:40: h: unknown key \"max_error\"; valid keys: type, initial_timestamp\n");
	bad_text(HEAD "compose: c\n"
		      "clock: {type: manuel, initial_timestamp: 7}\n",
		 "app.yaml:4:15: no clock \"manuel\"; did you mean \"manual\"?\n");
	bad_text(
		HEAD "clock: {type: manual, initial_time_scale: 2, initial_timestamp: -1}\n"
		     "fragments:\n"
		     " f: {compose: c, scheduler: {clock: manual}}\n"
		     " g: {compose: c, clock: {type: realtime, initial_time_scale: 0, "
		     "initial_time_offset: inf}, scheduler: {clock: [manual]}}\n",
		"app.yaml:3:23: unknown key \"initial_time_scale\"; did you mean \"initial_timestamp\"?\n"
		"app.yaml:3:65: initial_timestamp \"-1\" is not a whole number from 0 to 4611686018427387903\n"
		"app.yaml:5:30: f: clock is given for all fragments at the top too; remove one\n"
		"app.yaml:6:18: g: clock is given for all fragments at the top too; remove one\n"
		"app.yaml:6:62: g: initial_time_scale \"0\" is not a number from 1e-06 to 1000000\n"
		"app.yaml:6:86: g: initial_time_offset \"inf\" is not a number from -1000000000 to 1000000000\n"
		"app.yaml:6:104: g: clock is given for its fragment too; remove one\n"
		"app.yaml:6:111: g.scheduler: clock is a list; it must be a map (keys and values)\n");
}

Test(spec, rates_and_budgets)
{
	struct fragi_spec *spec = good_text(
		HEAD "operators:\n"
		     "  a: {type: t, rate: 30hz, budget: 2ms, ports: {out: {rate: 50ms}}}\n");
	const struct fragi_spec_operator *op = &spec->fragments[0].operators[0];

	cr_expect_eq(op->rate_ns, 33333333);
	cr_expect_eq(op->budget_ns, 2000000);
	cr_expect_eq(op->ports[0].rate_ns, 50000000);
	fragi_spec_destroy(spec);
	bad_text(
		HEAD
		"operators:\n"
		"  a: {type: t, rate: 30, budget: 0s, ports: {out: {rate: fast}}, buget: 1ms}\n",
		"app.yaml:4:22: app.a: rate \"30\" has no unit; write for example 30s\n"
		"app.yaml:4:34: app.a: budget is 0; leave it out to have none\n"
		"app.yaml:4:58: app.a.out: rate \"fast\" is not a valid duration; write for example 10ms, 2s or 30hz\n"
		"app.yaml:4:66: app.a: unknown key \"buget\"; did you mean \"budget\"?\n");
}

Test(spec, data_loggers)
{
	struct fragi_spec *spec = good_text(
		HEAD "data_loggers: {all: {type: basic_console_logger, log_inputs: false}}\n"
		     "fragments:\n"
		     "  f:\n    compose: c\n    data_loggers: {own: {type: l, when: {x: y}}}\n"
		     "  g: {compose: c, data_loggers: {one: {type: a}, two: {type: b}}}\n"
		     "arguments: {x: {default: z}}\n");

	cr_assert_eq(spec->fragments[0].logger_count, 1);
	cr_expect_str_eq(spec->fragments[0].loggers[0].name, "all");
	cr_expect_str_eq(spec->fragments[0].loggers[0].settings[0].name, "log_inputs");
	cr_assert_eq(spec->fragments[1].logger_count, 3);
	cr_expect_str_eq(spec->fragments[1].loggers[0].type, "basic_console_logger");
	cr_expect_str_eq(spec->fragments[1].loggers[2].name, "two");
	fragi_spec_destroy(spec);
	spec = good_text(HEAD "compose: c\ndata_loggers: {one: {type: a}}\n");
	cr_expect_eq(spec->fragments[0].logger_count, 1);
	fragi_spec_destroy(spec);
	bad_text(
		HEAD "compose: c\ndata_loggers: {a b: {type: x}, c: {}, d: 1}\n",
		"app.yaml:4:16: app: data logger \"a b\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"app.yaml:4:32: app.c: a data logger has no type; write for example {type: basic_console_logger}\n"
		"app.yaml:4:42: app.d: a data logger is a single value; it must be a map (keys and values)\n");
	bad_text(
		HEAD
		"data_loggers: {a: {type: x}}\nfragments: {f: {compose: c, data_loggers: {a: {type: y}}}}\n",
		"app.yaml:4:44: f: data logger \"a\" is given at the top too, for all fragments; rename one\n");
}

Test(spec, tracking)
{
	struct fragi_spec *spec = good_text(HEAD "compose: c\ntracking: true\n");

	cr_expect(spec->tracking.is_on && spec->tracking.print);
	cr_expect(spec->tracking.skip == 10 && spec->tracking.discard == 10);
	cr_expect_null(spec->tracking.log);
	fragi_spec_destroy(spec);
	spec = good_text(HEAD "fragments:\n"
			      " a: {compose: c, tracking: {num_start_messages_to_skip: 0,\n"
			      "  num_last_messages_to_discard: 10000, latency_threshold: 5,\n"
			      "  is_limited_tracking: true, log: x.log, print: false}}\n"
			      " b: {compose: c, tracking: false}\n"
			      " c: {compose: c, tracking: {log: y.log}}\n");
	cr_expect(!spec->tracking.is_on && !spec->fragments[1].tracking.is_on);
	cr_expect_str_eq(spec->fragments[2].tracking.log, "y.log");
	cr_expect(spec->fragments[0].tracking.is_on && spec->fragments[0].tracking.is_limited);
	cr_expect_eq(spec->fragments[0].tracking.skip, 0);
	cr_expect_eq(spec->fragments[0].tracking.discard, 10000);
	cr_expect_eq(spec->fragments[0].tracking.threshold_ms, 5);
	cr_expect_str_eq(spec->fragments[0].tracking.log, "x.log");
	fragi_spec_destroy(spec);
	bad_text(
		HEAD
		"compose: c\ntracking: {num_last_messages_to_discard: 10001, latency_threshold: -1,\n"
		"  print: maybe, log: '', num_bufered_messages: 0}\n",
		"app.yaml:4:42: num_last_messages_to_discard \"10001\" is not a whole number from 0 to 10000\n"
		"app.yaml:4:68: latency_threshold \"-1\" is not a whole number from 0 to 86400000\n"
		"app.yaml:5:10: print \"maybe\" is neither true nor false\n"
		"app.yaml:5:22: log is empty; write the name of a file\n"
		"app.yaml:5:26: unknown key \"num_bufered_messages\"; did you mean \"num_buffered_messages\"?\n");
	bad_text(
		HEAD
		"fragments:\n a: {compose: c, tracking: {log: x}}\n b: {compose: c, tracking: {log: y}}\n"
		" c: {compose: c, tracking: {log: y}}\n d: {compose: c, tracking: {log: x}}\n",
		"app.yaml:6:34: c: log names the file of fragment b; name another file, or write tracking at the top, for all fragments\n"
		"app.yaml:7:34: d: log names the file of fragment a; name another file, or write tracking at the top, for all fragments\n");
	spec = good_text(HEAD
			 "arguments: {a: {default: \"1\"}}\ntracking: {probes: [a.x, b.y, b.z]}\n"
			 "fragments: {a: {operators: {x: {type: t}}},\n"
			 "  b: {compose: c, operators: {z: {type: t, when: {a: 2}}}}}\n");
	cr_assert_eq(spec->tracking.probe_count, 2, "one is excluded");
	cr_expect_str_eq(spec->tracking.probes[1].fragment, "b");
	cr_expect_str_eq(spec->tracking.probes[1].op, "y");
	fragi_spec_destroy(spec);
	spec = good_text(HEAD "tracking: {probes: [x]}\noperators: {x: {type: t}}\n");
	cr_assert_eq(spec->tracking.probe_count, 1);
	cr_expect_str_eq(spec->tracking.probes[0].fragment, "app");
	fragi_spec_destroy(spec);
	bad_text(HEAD
		 "tracking: {probes: [x, a.xx]}\nfragments: {a: {operators: {x1: {type: t}}}}\n",
		 "app.yaml:3:21: \"x\" is not an operator; write fragment.operator\n"
		 "app.yaml:3:24: unknown operator \"a.xx\"; operators: x1\n");
	bad_text(HEAD
		 "fragments: {a: {operators: {x1: {type: t}}, tracking: {probes: [x2, a.x1]}}}\n",
		 "app.yaml:3:65: a: unknown operator \"a.x2\"; operators: x1\n"
		 "app.yaml:3:69: a: \"a.x1\" is not an operator; write its name\n");
	bad_text(HEAD "compose: c\ntracking: [a]\n",
		 "app.yaml:4:11: tracking is a list; it must be a map (keys and values)\n");
	bad_text(HEAD "compose: c\ntracking: on please\n",
		 "app.yaml:4:11: tracking \"on please\" is neither true nor false\n");
	bad_text(
		HEAD "tracking: true\nfragments:\n a: {compose: c, tracking: true}\n",
		"app.yaml:5:18: a: tracking is given at the top too, for all fragments; remove one\n");
}

Test(spec, the_fragments_of_a_host_agree_on_what_becomes_of_it)
{
	struct fragi_spec *spec = good_text(
		HEAD
		"fragments:\n"
		" a: {compose: c, on_failure: {policy: restart}}\n"
		" b: {compose: c, on_failure: {policy: restart, intensity: 5, period: 2s, backoff: 1s}}\n"
		" c: {compose: c, on_failure: {policy: stop, intensity: 5}}\n"
		" d: {compose: c}\n"
		" e: {compose: c, on_failure: {policy: restart}}\n"
		" f: {compose: c, host: h, on_failure: {policy: restart}}\n"
		" g: {compose: c, host: h, on_failure: {policy: restart, intensity: 3}}\n");
	const struct fragi_spec_fragment *f = spec->fragments;

	cr_expect_eq(f[0].on_failure.policy, FRAGI_ON_FAILURE_RESTART);
	cr_expect_eq(f[0].on_failure.intensity, 3);
	cr_expect_eq(f[0].on_failure.period_ns, 60000000000);
	cr_expect_eq(f[0].on_failure.backoff_ns, 100000000);
	cr_expect_eq(f[1].on_failure.intensity, 5);
	cr_expect_eq(f[1].on_failure.period_ns, 2000000000);
	cr_expect_eq(f[1].on_failure.backoff_ns, 1000000000);
	cr_expect_eq(f[2].on_failure.policy, FRAGI_ON_FAILURE_STOP);
	cr_expect(fragi_spec_share_host(&f[2], &f[3]));
	cr_expect(fragi_spec_share_host(&f[0], &f[4]));
	cr_expect_not(fragi_spec_share_host(&f[0], &f[1]));
	cr_expect_not(fragi_spec_share_host(&f[0], &f[3]));
	cr_expect_not(fragi_spec_share_host(&f[0], &f[5]));
	cr_expect(fragi_spec_share_host(&f[5], &f[6]));
	fragi_spec_destroy(spec);
	bad_text(
		HEAD "fragments:\n"
		     " a: {compose: c, host: h}\n"
		     " b: {compose: c, host: h, on_failure: {policy: restart}}\n"
		     " c: {compose: c, host: i, on_failure: {policy: restart}}\n",
		"app.yaml:5:2: b: shares host h with a, and its on_failure is another one; a host is started again as a whole, so give both the same on_failure, or another host\n");
	bad_text(
		HEAD "variables: {v: {type: f32, shape: [3], writer: a.x, readers: [b.x]}}\n"
		     "fragments:\n"
		     " a: {operators: {x: {type: t}}, on_failure: {policy: restart}}\n"
		     " b: {operators: {x: {type: t}}}\n",
		"app.yaml:3:13: v: its writer a is started again when it fails (on_failure), and other fragments would go on to read the old memory; that is not built yet, so let it stop, or let it write to readers in its own fragment\n");
}

Test(spec, flows_name_what_exists)
{
	bad_text(
		HEAD
		"fragments:\n"
		"  f: {operators: {a: {type: t}}}\n"
		"  g: {compose: c}\n"
		"flows:\n"
		"  - h.a.out -> g.x\n"
		"  - {from: f.b.out, to: [g.x.in, f.a, a, a.b.c.d, \"g..x\"], policy: latest, capacity: 2}\n"
		"  - {from: f.a, to: []}\n",
		"app.yaml:7:5: flow end h.a.out: unknown fragment \"h\"; fragments: f, g\n"
		"app.yaml:8:12: flow end f.b.out: unknown operator \"f.b\"; operators: a\n"
		"app.yaml:8:34: both ends of this flow are in fragment f; write it into the flows of that fragment\n"
		"app.yaml:8:39: \"a\" is not a valid end of a flow; write FRAGMENT.OPERATOR.PORT or FRAGMENT.OPERATOR\n"
		"app.yaml:8:42: \"a.b.c.d\" is not a valid end of a flow; write FRAGMENT.OPERATOR.PORT or FRAGMENT.OPERATOR\n"
		"app.yaml:8:51: \"g..x\" is not a valid end of a flow; write FRAGMENT.OPERATOR.PORT or FRAGMENT.OPERATOR\n"
		"app.yaml:8:76: policy latest keeps the newest message only and has no capacity; leave capacity out\n"
		"app.yaml:9:21: to is empty; name the inputs of the flow\n");
	bad_text(
		HEAD
		"operators: {a: {type: t}}\nflows: [app.a.out -> a.in, {from: a, to: a, edge: ucx}]\n",
		"app.yaml:4:9: app: \"app.a.out\" is not a valid end of a flow; write OPERATOR.PORT or OPERATOR\n"
		"app.yaml:4:51: app: edge ucx inside a fragment: both ends are in one process; leave edge out\n");
	fragi_spec_destroy(good_text(HEAD "compose: c\nflows: [made.out -> other]\n"));
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

/* The ends of each range are taken, and what is beside them is refused. */
Test(spec, ranges_have_their_ends)
{
#define C "compose: c\n"
	static const struct {
		const char *before, *after, *in[2], *out[2];
	} cases[] = {
		{"operators: {a: {type: t}, b: {type: t}}\nflows: [{from: a, to: b, capacity: ",
		 "}]",
		 {"1", "65536"},
		 {"0", "65537"}},
		{"operators: {a: {type: t, ports: {in: {capacity: ",
		 "}}}}",
		 {"1", "65536"},
		 {"0", "65537"}},
		{C "scheduler: {worker_thread_number: ", "}", {"1", "1024"}, {"0", "1025"}},
		{C "scheduler: {max_duration_ms: ",
		 "}",
		 {"-31622400000", "31622400000"},
		 {"-31622400001", "31622400001"}},
		{C "scheduler: {stop_on_deadlock_timeout: ",
		 "}",
		 {"-31622400000", "31622400000"},
		 {"-31622400001", "31622400001"}},
		{C "scheduler: {stop_on_deadlock_timeout_ms: ",
		 "}",
		 {"-31622400000", "31622400000"},
		 {"-31622400001", "31622400001"}},
		{C "scheduler: {check_recession_period_ms: ",
		 "}",
		 {"0.1", "60000"},
		 {"-1", "60001"}},
		{C "scheduler: {pin_cores: [", "]}", {"0", "8191"}, {"-1", "8192"}},
		{C "tracking: {num_start_messages_to_skip: ",
		 "}",
		 {"0", "1000000000000"},
		 {"-1", "1000000000001"}},
		{C "tracking: {num_last_messages_to_discard: ",
		 "}",
		 {"0", "10000"},
		 {"-1", "10001"}},
		{C "tracking: {latency_threshold: ", "}", {"0", "86400000"}, {"-1", "86400001"}},
		{C "tracking: {num_buffered_messages: ",
		 ", log: x}",
		 {"1", "1000000000000"},
		 {"0", "1000000000001"}},
		{C "clock: {type: realtime, initial_time_scale: ",
		 "}",
		 {"0.000001", "1000000"},
		 {"0.0000009", "1000001"}},
		{C "clock: {type: realtime, initial_time_offset: ",
		 "}",
		 {"-1000000000", "1000000000"},
		 {"-1000000001", "1000000001"}},
		{C "on_failure: {policy: restart, intensity: ", "}", {"1", "1000"}, {"0", "1001"}},
		{C "on_failure: {policy: migrate, lease: ", "}", {"1s", "1h"}, {"999ms", "3601s"}},
		{C "on_failure: {policy: migrate, lease: ", "}", {"0s", "3600s"}, {"1ns", "2h"}},
	};
#undef C
	char text[300];

	for (size_t i = 0; i < 4 * FRAG_COUNT_OF(cases); i++) {
		const bool is_in = i % 4 < 2;
		const char *value = is_in ? cases[i / 4].in[i % 2] : cases[i / 4].out[i % 2];
		struct fragi_spec *spec = NULL;
		struct fragi_diag diag = {0};
		int n = snprintf(text, sizeof(text), HEAD);

		snprintf(text + n, sizeof(text) - (size_t)n, "%s%s%s\n", cases[i / 4].before, value,
			 cases[i / 4].after);
		cr_expect_eq(parse_graph(&(const struct graph_text){.text = text}, &diag, &spec),
			     is_in ? 0 : -EINVAL, "%s", text);
		fragi_spec_destroy(spec);
		fragi_diag_fini(&diag);
	}
}
