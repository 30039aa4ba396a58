// SPDX-License-Identifier: Apache-2.0

#include <errno.h>
#include <pthread.h>

#include <text/holoscan.h>

#include "spec_texts.h"

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

/* What one of them changes, or makes, is its own; what both point to stays until both are gone. */
Test(spec, the_same_source_is_parsed_once)
{
	static const char *const sets[] = {"fragment2.view.title=OR 4"};
	struct fragi_spec *a = good_example(NULL, 0, NULL, 0);
	struct fragi_spec *b = good_example(NULL, 0, NULL, 0);
	struct fragi_spec *other = good_example(sets, 1, NULL, 0), *again;

	cr_expect_eq(a->fragments, b->fragments);
	cr_expect_neq(a->fragments, other->fragments);
	b->application = "another";
	cr_expect_str_eq(a->application, "endoscopy");
	cr_expect_neq(fragi_spec_arguments_help(a), fragi_spec_arguments_help(b));
	again = good_example(NULL, 0, NULL, 0);
	cr_expect_eq(again->fragments, a->fragments);
	cr_expect_str_eq(again->application, "endoscopy");
	fragi_spec_destroy(a);
	fragi_spec_destroy(again);
	cr_expect_str_eq(b->fragments[0].operators[0].name, "replayer");
	cr_expect_str_eq(other->fragments[1].operators[0].settings[0].value->text, "OR 4");
	fragi_spec_destroy(b);
	fragi_spec_destroy(other);
	a = good_example(NULL, 0, NULL, 0);
	cr_expect_str_eq(a->fragments[0].operators[0].name, "replayer");
	fragi_spec_destroy(a);
}

static const char *const parallel_texts[] = {
	HEAD "operators: {a: {type: one}}\n",
	HEAD "operators: {a: {type: two}}\n",
};

static void *parse_again_and_again(void *arg)
{
	for (int i = 0; i < 300; i++) {
		const char *text = parallel_texts[i % 3 == 0];
		const struct fragi_spec_source source = {.graph = {"app.yaml", text, strlen(text)}};
		struct fragi_diag diag = {0};
		struct fragi_spec *spec = NULL;

		cr_assert_eq(fragi_spec_parse(&source, &diag, &spec), 0);
		cr_assert_str_eq(spec->fragments[0].operators[0].type, i % 3 == 0 ? "two" : "one");
		cr_assert_not_null(strstr(fragi_spec_arguments_help(spec), "no arguments"));
		fragi_spec_destroy(spec);
		fragi_diag_fini(&diag);
	}
	return arg;
}

Test(spec, several_threads_parse_the_same_sources_at_once)
{
	pthread_t threads[4];

	for (size_t i = 0; i < FRAG_COUNT_OF(threads); i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, parse_again_and_again, NULL), 0);
	for (size_t i = 0; i < FRAG_COUNT_OF(threads); i++)
		pthread_join(threads[i], NULL);
}

/* Its errors are for each who parses it; what is left of it is nobody's graph. */
Test(spec, a_source_with_errors_is_parsed_each_time)
{
	static const char text[] = HEAD "operators: {a: {type: t}}\nflows: [a -> b]\n";
	const struct fragi_spec_source source = {
		.graph = {.file = "app.yaml", .text = text, .length = sizeof(text) - 1}};

	for (int i = 0; i < 3; i++) {
		struct fragi_diag diag = {0};
		struct fragi_spec *spec = NULL;

		cr_expect_eq(i == 1 ? fragi_spec_parse_partial(&source, &diag, &spec)
				    : fragi_spec_parse(&source, &diag, &spec),
			     -EINVAL);
		cr_expect_eq(diag.count, 1, "%zu", diag.count);
		cr_expect_eq(spec != NULL, i == 1);
		fragi_spec_destroy(spec);
		fragi_diag_fini(&diag);
	}
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
