// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include <driverd/core/clients/difference.h>

/* What differs between two graphs, and what that needs. */

static const char base[] = "frag: 1\n"
			   "application: app\n"
			   "extensions: [liba.so]\n"
			   "fragments:\n"
			   "  f1:\n"
			   "    resources: {pool: {type: p, size: 4}}\n"
			   "    operators:\n"
			   "      tx: {type: t, parameters: {value: 1, list: [1, 2], pool: $pool}, "
			   "conditions: [{type: count, count: 3}]}\n"
			   "      rx: {type: t}\n"
			   "    flows: [tx.out -> rx.in]\n"
			   "  f2: {operators: {rx: {type: t}}}\n"
			   "flows: [f1.tx.out -> f2.rx.in]\n";

static struct fragi_spec *parse_source(const struct fragi_spec_source *source)
{
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;

	cr_assert_eq(fragi_spec_parse(source, &diag, &spec), 0, "%s",
		     diag.count > 0 ? diag.items[0].text : "");
	fragi_diag_fini(&diag);
	return spec;
}

static struct fragi_spec *parse(const char *text)
{
	return parse_source(&(struct fragi_spec_source){.graph = {"app.yaml", text, strlen(text)}});
}

/* The base with its first `from` replaced. */
static const char *with(const char *from, const char *to)
{
	static char text[2048];
	const char *at = strstr(base, from);

	cr_assert_not_null(at, "%s", from);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - base), base, to, at + strlen(from));
	return text;
}

/* set: what `fragctl set` takes; "": this cannot be set. */
static void expect_set(const char *from, const char *to, enum fw_effect effect, const char *what,
		       const char *set)
{
	static struct drv_differences found;
	struct fragi_spec *before = parse(base), *after = parse(with(from, to));
	struct fragi_arena arena = {0};

	found = (struct drv_differences){.arena = &arena};
	drv_difference_find(before, after, &found);
	cr_assert_eq(found.count, 1, "%s: %u differences", to, found.count);
	cr_expect_eq(found.rows[0].change.effect, effect, "%s", found.rows[0].change.what);
	cr_expect_str_eq(found.rows[0].change.what, what);
	cr_expect_str_eq(found.rows[0].change.set != NULL ? found.rows[0].change.set : "", set);
	fragi_spec_destroy(before);
	fragi_spec_destroy(after);
	fragi_arena_fini(&arena);
}

static void expect(const char *from, const char *to, enum fw_effect effect, const char *what)
{
	expect_set(from, to, effect, what, "");
}

/* The largest of all differences. */
static enum fw_effect effect_of(const struct fragi_spec_source *a,
				const struct fragi_spec_source *b)
{
	static struct drv_differences found;
	struct fragi_spec *before = parse_source(a), *after = parse_source(b);
	struct fragi_arena arena = {0};
	enum fw_effect effect = FW_EFFECT_NONE;

	found = (struct drv_differences){.arena = &arena};
	drv_difference_find(before, after, &found);
	for (uint32_t i = 0; i < found.count; i++)
		if (found.rows[i].change.effect > effect)
			effect = found.rows[i].change.effect;
	fragi_spec_destroy(before);
	fragi_spec_destroy(after);
	fragi_arena_fini(&arena);
	return effect;
}

static enum fw_effect effect_between(const char *a, const char *b)
{
	return effect_of(&(struct fragi_spec_source){.graph = {"app.yaml", a, strlen(a)}},
			 &(struct fragi_spec_source){.graph = {"app.yaml", b, strlen(b)}});
}

Test(driver_difference, values_may_be_set)
{
	expect_set("value: 1", "value: 2", FW_EFFECT_SET, "f1.tx.value: 1 -> 2", "f1.tx.value=2");
	expect_set("value: 1", "value: 1, more: 5", FW_EFFECT_SET, "f1.tx.more: its default -> 5",
		   "f1.tx.more=5");
#define LONG "0123456789012345678901234567890123456789"
	expect_set("value: 1", "value: x" LONG, FW_EFFECT_SET,
		   "f1.tx.value: 1 -> x01234567890123456789012345678901234567",
		   "f1.tx.value=x" LONG);
}

/* What was set live is kept without its quotes. */
Test(driver_difference, quotes_alone_are_none)
{
	static char before[2048];

	snprintf(before, sizeof(before), "%s", with("value: 1", "value: \"fast\""));
	cr_expect_eq(effect_between(before, with("value: 1", "value: fast")), FW_EFFECT_NONE);
	cr_expect_eq(effect_between(before, with("value: 1", "value: slow")), FW_EFFECT_SET);
	/* but a reference is another thing than its text */
	snprintf(before, sizeof(before), "%s", with("value: 1", "value: \"$pool\""));
	cr_expect_eq(effect_between(before, with("value: 1", "value: $pool")), FW_EFFECT_SET);
	cr_expect_eq(effect_between(base, with("[1, 2]", "[\"1\", 2]")), FW_EFFECT_FRAGMENT);
}

Test(driver_difference, what_only_a_start_reads_needs_one_of_its_fragment)
{
	expect("value: 1, ", "", FW_EFFECT_FRAGMENT, "f1.tx.value: 1 -> its default");
	expect("[1, 2]", "[1, 3]", FW_EFFECT_FRAGMENT, "f1.tx.list: [...] -> [...]");
	expect("[1, 2]", "[3, 2]", FW_EFFECT_FRAGMENT, "f1.tx.list: [...] -> [...]");
	expect("[1, 2]", "[1]", FW_EFFECT_FRAGMENT, "f1.tx.list: [...] -> [...]");
	expect("[1, 2]", "[1, 2, 3]", FW_EFFECT_FRAGMENT, "f1.tx.list: [...] -> [...]");
	expect("[1, 2]", "{a: 1}", FW_EFFECT_FRAGMENT, "f1.tx.list: [...] -> {...}");
	expect("value: 1", "value: ~", FW_EFFECT_FRAGMENT, "f1.tx.value: 1 -> nothing");
	expect("size: 4", "size: 5", FW_EFFECT_FRAGMENT, "f1: its resources or services");
	expect("count: 3}", "count: 4}", FW_EFFECT_FRAGMENT, "f1.tx: its conditions");
	expect("    flows: [tx", "    scheduler: {type: greedy}\n    flows: [tx",
	       FW_EFFECT_FRAGMENT, "f1: its scheduler");
	expect("    flows: [tx", "    watchdog: 2s\n    flows: [tx", FW_EFFECT_FRAGMENT,
	       "f1: its watchdog, metadata or tracking");
	expect("    flows: [tx",
	       "    thread_pools: {slow: {initial_size: 1, add: [{operators: [rx]}]}}\n"
	       "    flows: [tx",
	       FW_EFFECT_FRAGMENT, "f1: its thread_pools");
	expect("    flows: [tx", "    clock: manual\n    flows: [tx", FW_EFFECT_FRAGMENT,
	       "f1: its clock or deadlines");
	expect("    flows: [tx", "    deadlines: [{path: [tx, rx], budget: 5ms}]\n    flows: [tx",
	       FW_EFFECT_FRAGMENT, "f1: its clock or deadlines");
	expect("    flows: [tx", "    services: {found: {type: s}}\n    flows: [tx",
	       FW_EFFECT_FRAGMENT, "f1: its resources or services");
	expect("rx: {type: t}\n", "rx: {type: t, budget: 5ms}\n", FW_EFFECT_FRAGMENT,
	       "f1.rx: its deadline, align, rate or budget");
	expect("    flows: [tx", "    data_loggers: {l: {type: x}}\n    flows: [tx",
	       FW_EFFECT_FRAGMENT, "f1: its data_loggers");
	expect("rx: {type: t}\n", "rx: {type: t, deadline: 5ms}\n", FW_EFFECT_FRAGMENT,
	       "f1.rx: its deadline, align, rate or budget");
	expect("rx: {type: t}\n", "rx: {type: t, align: {inputs: [a, b], window: 5ms}}\n",
	       FW_EFFECT_FRAGMENT, "f1.rx: its deadline, align, rate or budget");
	expect("rx: {type: t}\n", "rx: {type: t, resources: [$pool]}\n", FW_EFFECT_FRAGMENT,
	       "f1.rx: its resources");
	expect("rx: {type: t}\n", "rx: {type: t, watchdog: 1s}\n", FW_EFFECT_FRAGMENT,
	       "f1.rx: its watchdog or metadata");
}

/* Each of the three that a composer may read, and neither where there is no composer. */
Test(driver_difference, what_a_composer_may_read_counts)
{
	static const struct {
		const char *before, *after;
		enum fw_effect effect;
	} cases[] = {
		{"compose: c\nconfig: {a: 1}\n", "compose: c\nconfig: {a: 1}\n", FW_EFFECT_NONE},
		{"compose: c\nconfig: {a: 1}\n", "compose: c\nconfig: {a: 2}\n",
		 FW_EFFECT_FRAGMENT},
		{"compose: c\narguments: {a: {default: 1}}\n",
		 "compose: c\narguments: {a: {default: 2}}\n", FW_EFFECT_FRAGMENT},
		{"compose: c\narguments: {a: {}}\n", "compose: c\narguments: {a: {default: 1}}\n",
		 FW_EFFECT_FRAGMENT},
		{"compose: c\nsubgraphs: {s: {operators: {a: {type: t}}}}\n",
		 "compose: c\nsubgraphs: {s: {operators: {b: {type: t}}}}\n", FW_EFFECT_FRAGMENT},
		{"operators: {o: {type: t}}\nconfig: {a: 1}\n",
		 "operators: {o: {type: t}}\nconfig: {a: 2}\n", FW_EFFECT_NONE},
	};
	char texts[2][200];

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		snprintf(texts[0], sizeof(texts[0]), "frag: 1\napplication: app\n%s",
			 cases[i].before);
		snprintf(texts[1], sizeof(texts[1]), "frag: 1\napplication: app\n%s",
			 cases[i].after);
		cr_expect_eq(effect_between(texts[0], texts[1]), cases[i].effect, "%zu", i);
		cr_expect_eq(effect_between(texts[1], texts[0]), cases[i].effect, "%zu", i);
	}
}

Test(driver_difference, values_inside_what_a_start_reads_count)
{
	static const struct {
		const char *key, *before, *after;
	} cases[] = {
		{"thread_pools", "{p: {initial_size: 1, add: [{operators: [rx]}]}}",
		 "{p: {initial_size: 2, add: [{operators: [rx]}]}}"},
		{"thread_pools", "{p: {initial_size: 1, add: [{operators: [rx]}]}}",
		 "{p: {initial_size: 1, add: [{operators: [tx]}]}}"},
		{"thread_pools", "{p: {initial_size: 1, add: [{operators: [rx]}]}}",
		 "{p: {initial_size: 1, add: [{operators: [rx], pin_operator: true}]}}"},
		{"clock", "{type: manual, initial_timestamp: 1}",
		 "{type: manual, initial_timestamp: 2}"},
		{"clock", "{type: realtime, initial_time_scale: 2}",
		 "{type: realtime, initial_time_scale: 3}"},
		{"deadlines", "[{path: [tx, rx], budget: 5ms}]", "[{path: [tx, rx], budget: 6ms}]"},
		{"deadlines", "[{path: [tx, rx], budget: 5ms}]",
		 "[{path: [tx, rx], budget: 5ms, on_miss: stop}]"},
		{"thread_pools",
		 "{p: {initial_size: 1, add: [{operators: [rx], pin_operator: true, sched_policy: rr, sched_priority: 3}]}}",
		 "{p: {initial_size: 1, add: [{operators: [rx], pin_operator: true, sched_policy: rr, sched_priority: 3, best_effort: true}]}}"},
		{"thread_pools",
		 "{p: {initial_size: 1, add: [{operators: [rx], pin_operator: true, sched_policy: fifo, sched_priority: 3}]}}",
		 "{p: {initial_size: 1, add: [{operators: [rx], pin_operator: true, sched_policy: rr, sched_priority: 3}]}}"},
		{"thread_pools",
		 "{p: {initial_size: 1, add: [{operators: [rx], pin_operator: true, sched_policy: rr, sched_priority: 3}]}}",
		 "{p: {initial_size: 1, add: [{operators: [rx], pin_operator: true, sched_policy: rr, sched_priority: 4}]}}"},
		{"services", "{found: {type: s, size: 1}}", "{found: {type: s, size: 2}}"},
		{"services", "{found: {type: s, size: 1}}", "{found: {type: s, size: 1, of: 1}}"},
		{"services", "{found: {type: s, size: 1}}", "{found: {type: s}}"},
		{"services", "{found: {type: s, size: 1}}", "{found: {type: other, size: 1}}"},
		{"services", "{found: {type: s, size: 1}}", "{other: {type: s, size: 1}}"},
		{"services", "{found: {type: s, size: []}}", "{found: {type: s, size: {}}}"},
		{"services", "{found: {type: s, size: {a: 1}}}", "{found: {type: s, size: [1]}}"},
		{"services", "{found: {type: s, size: {a: 1}}}",
		 "{found: {type: s, size: {b: 1}}}"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char before[1024], after[1024];
		const char *at = strstr(base, "    flows: [tx");

		snprintf(before, sizeof(before), "%.*s    %s: %s\n%s", (int)(at - base), base,
			 cases[i].key, cases[i].before, at);
		snprintf(after, sizeof(after), "%.*s    %s: %s\n%s", (int)(at - base), base,
			 cases[i].key, cases[i].after, at);
		cr_expect_eq(effect_between(before, before), FW_EFFECT_NONE, "%s", cases[i].before);
		cr_expect_eq(effect_between(before, after), FW_EFFECT_FRAGMENT, "%s",
			     cases[i].after);
		cr_expect_eq(effect_between(after, before), FW_EFFECT_FRAGMENT, "%s, back",
			     cases[i].after);
	}
}

Test(driver_difference, what_the_driver_has_decided_needs_one_of_the_application)
{
	expect("      rx: {type: t}\n", "      rx: {type: other}\n", FW_EFFECT_APPLICATION,
	       "f1: its operators, ports or flows");
	expect("      rx: {type: t}\n", "      rx: {type: t}\n      third: {type: t}\n",
	       FW_EFFECT_APPLICATION, "f1: its operators, ports or flows");
	expect("[tx.out -> rx.in]", "[{from: tx.out, to: rx.in, capacity: 3}]",
	       FW_EFFECT_APPLICATION, "f1: its operators, ports or flows");
	expect("[f1.tx.out -> f2.rx.in]", "[{from: f1.tx.out, to: f2.rx.in, policy: pop}]",
	       FW_EFFECT_APPLICATION, "the application: its flows between fragments");
	expect("  f2: {", "  f3: {operators: {rx: {type: t}}}\n  f2: {", FW_EFFECT_APPLICATION,
	       "the application: its fragments");
	cr_expect_eq(effect_between("frag: 1\napplication: app\nfragments: {f1: {compose: c}}\n",
				    "frag: 1\napplication: app\nfragments: {f2: {compose: c}}\n"),
		     FW_EFFECT_APPLICATION);
	expect("  f2: {", "  f2: {host: own, ", FW_EFFECT_APPLICATION,
	       "f2: its host, requirements or on_failure");
	expect("  f2: {", "  f2: {requirements: {memoryLimit: 64Mi}, ", FW_EFFECT_APPLICATION,
	       "f2: its host, requirements or on_failure");
	expect("  f2: {", "  f2: {requirements: {near: [f1]}, ", FW_EFFECT_APPLICATION,
	       "f2: its host, requirements or on_failure");
	expect("rx: {type: t}\n",
	       "rx: {type: t, ports: {in: {take: latest_within, age: 5ms, missing: skip}}}\n",
	       FW_EFFECT_APPLICATION, "f1: its operators, ports or flows");
	expect("fragments:\n", "services: {found: {type: s}}\nfragments:\n", FW_EFFECT_APPLICATION,
	       "the application: its services");
	expect("fragments:\n", "deadlines: [{path: [f1.tx, f2.rx], budget: 5ms}]\nfragments:\n",
	       FW_EFFECT_APPLICATION, "the application: its clock or deadlines");
	expect("fragments:\n", "clock: {max_error: 1ms}\nfragments:\n", FW_EFFECT_APPLICATION,
	       "the application: its clock or deadlines");
}

/* Each part of a variable counts, of the readers the first like the last. */
Test(driver_difference, variables_are_made_with_the_application)
{
#define V "v: {type: f32, shape: [2, 3], writer: f1.tx, readers: [f1.rx, f2.rx, f3.rx]}"
	static const char head[] = "frag: 1\napplication: app\nfragments:\n"
				   "  f1: {operators: {tx: {type: t}, rx: {type: t}}}\n"
				   "  f2: {operators: {tx: {type: t}, rx: {type: t}}}\n"
				   "  f3: {operators: {tx: {type: t}, rx: {type: t}}}\n";
	static const char *const rows[] = {
		V,
		"w: {type: f32, shape: [2, 3], writer: f1.tx, readers: [f1.rx, f2.rx, f3.rx]}",
		"v: {type: f64, shape: [2, 3], writer: f1.tx, readers: [f1.rx, f2.rx, f3.rx]}",
		"v: {type: f32, shape: [6], writer: f1.tx, readers: [f1.rx, f2.rx, f3.rx]}",
		"v: {type: f32, shape: [3, 2], writer: f1.tx, readers: [f1.rx, f2.rx, f3.rx]}",
		"v: {type: f32, shape: [2, 3], writer: f2.tx, readers: [f1.rx, f2.rx, f3.rx]}",
		"v: {type: f32, shape: [2, 3], writer: f1.tx, readers: [f1.tx, f2.rx, f3.rx]}",
		"v: {type: f32, shape: [2, 3], writer: f1.tx, readers: [f1.rx, f2.tx, f3.rx]}",
		"v: {type: f32, shape: [2, 3], writer: f1.tx, readers: [f1.rx, f2.rx, f3.tx]}",
		"v: {type: f32, shape: [2, 3], writer: f1.tx, readers: [f1.rx, f2.rx]}",
		V ", u: {type: f32, writer: f1.tx, readers: [f2.rx]}",
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		char before[1024], after[1024];

		snprintf(before, sizeof(before), "%svariables: {" V "}\n", head);
		snprintf(after, sizeof(after), "%svariables: {%s}\n", head, rows[i]);
		cr_expect_eq(effect_between(before, after),
			     i == 0 ? FW_EFFECT_NONE : FW_EFFECT_APPLICATION, "%s", rows[i]);
		cr_expect_eq(effect_between(after, before),
			     i == 0 ? FW_EFFECT_NONE : FW_EFFECT_APPLICATION, "%s", rows[i]);
	}
}

/*
 * Values of a graph, each with another one that is as valid: <one|the other>. Lists have more than
 * one item of which the first and the second may be others, and a last one that may be missing.
 */
#define SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
static const char *const pairs[] = {
	/* what may not be given in fragments, too */
	"frag: 1\napplication: app\n"
	"tracking: {num_start_messages_to_skip: <1|2>, log: <a.txt|b.txt>, probes: [f1.<tx|rx>]}\n"
	"fragments: {f1: {operators: {tx: {type: t}, rx: {type: t}}}}\n",
	"frag: 1\napplication: app\n"
	"arguments: {a: {default: <1|2>}, <b|c>: {default: 3}<, d: {default: 4}|>}\n"
	"clock: {max_error: <1ms|2ms>}\n"
	"metadata: <true|false>\nmetadata_policy: <reject|raise>\n"
	"deadlines: [{path: [f1.<tx|rx>, <f2|f3>.rx<, f4.rx|>], budget: <5ms|6ms>, "
	"on_miss: <count|stop>}, {path: [f1.tx, f2.rx], budget: <7ms|8ms>}"
	"<, {path: [f1.tx, f3.rx], budget: 9ms}|>]\n"
	"services: {found: {type: <s|r>, size: <1|2>, of: <3|4>, <and|or>: 5}, <more|other>: "
	"{type: s}<, last: {type: s}|>}\n"
	"data_loggers: {<all|each>: {type: x}}\n"
	"variables: {v: {type: <f32|f64>, writer: f3.<tx|rx>, readers: [<f4|f5>.rx, "
	"f5.<tx|ty><, f4.tx|>]}, <w|u>: {type: f32, writer: <f4|f5>.tx, readers: [f3.rx]}"
	"<, last: {type: f32, writer: f4.tx, readers: [f3.rx]}|>}\n"
	"fragments:\n"
	"  f1:\n"
	"    extensions: [{name: <liba.so|libb.so>}, {name: libc.so, sha256: " SHA256
	"<e|f>}<, libd.so|>]\n"
	"    host: <h|g>\n"
	"    metadata: <true|false>\n"
	"    metadata_policy: <reject|raise>\n"
	"    watchdog: <2s|3s>\n"
	"    resources: {pool: {type: <p|q>, size: <4|5>}, other: {type: p}}\n"
	"    data_loggers: {l: {type: <x|y>}}\n"
	"    clock: {type: realtime, initial_time_offset: <1|2>, initial_time_scale: <2|3>, "
	"use_time_since_epoch: <true|false>}\n"
	"    deadlines: [{path: [<tx|rx>, <rx|tx>], budget: <5ms|6ms>, on_miss: <count|stop>}]\n"
	"    scheduler: {type: multi_thread, worker_thread_number: <2|3>, "
	"stop_on_deadlock: <true|false>, stop_on_deadlock_timeout_ms: <100|101>, "
	"max_duration_ms: <5000|5001>, check_recession_period_ms: <5|5.5>, "
	"pin_cores: [<0|2>, <1|3><, 4|>], require_pin_cores: <true|false>}\n"
	"    thread_pools: {p: {initial_size: <2|3>, add: [{operators: [<o1|o2>, <o3|o4><, o5|>], "
	"pin_operator: true, pin_cores: [<0|1>], sched_policy: <rr|fifo>, sched_priority: <3|4>, "
	"best_effort: <true|false>}, {operators: [o6], pin_operator: <true|false>}"
	"<, {operators: [o7]}|>]}, <q|r>: {initial_size: 1, add: [{operators: [o8], "
	"sched_policy: deadline, sched_runtime: <1ms|2ms>, sched_deadline: <5ms|6ms>, "
	"sched_period: <10ms|11ms>}]}<, s: {initial_size: 1, add: [{operators: [o9]}]}|>}\n"
	"    tracking: {num_start_messages_to_skip: <1|2>, num_last_messages_to_discard: <3|4>, "
	"latency_threshold: <5|6>, is_limited_tracking: <true|false>, log: <a.txt|b.txt>, "
	"num_buffered_messages: <7|8>, print: <true|false>, probes: [<o1|o2>, <o3|o4><, o5|>]}\n"
	"    on_failure: {policy: migrate, intensity: <2|3>, period: <7s|8s>, "
	"backoff: <200ms|300ms>, lease: <5s|6s>}\n"
	"    requirements: {cpu: <1|2>, memory: <1Gi|2Gi>, gpu: <1|2>, sharedMemory: <1Mi|2Mi>, "
	"gpuMemory: <1Gi|2Gi>, gpuThreads: <20%|21%>, cpuLimit: <3|4>, memoryLimit: <4Gi|5Gi>, "
	"gpuMemoryLimit: <4Gi|5Gi>, labels: {zone: <a|b>, <rack|room>: x, side: <c|d><, e: f|>}, "
	"near: [<f2|f3>, <f4|f5><, f6|>], apart: [<f7|f8>, <f9|f10><, f11|>]}\n"
	"    operators:\n"
	"      tx: {type: <t|u>, watchdog: <1s|2s>, metadata: <true|false>, "
	"metadata_policy: <reject|raise>, resources: [$<pool|other>, $<other|pool><, $pool|>], "
	"rate: <5ms|6ms>, budget: <1ms|2ms>, conditions: [{type: <count|other>, count: <3|4>}, "
	"{type: <count|other>, count: 5}<, {type: other}|>]}\n"
	"      rx: {type: t, deadline: {budget: <5ms|6ms>, from: <tick|acquisition>, "
	"on_miss: <count|stop>}, align: {inputs: [<a|c>, <b|d><, e|>], window: <5ms|6ms>, "
	"timeout: <7ms|8ms>}, ports: {in: {capacity: <2|3>, policy: <pop|reject>, size: <2|3>}, "
	"<unheard|unseen>: {<condition: none|capacity: 1>}, slow: {rate: <5ms|6ms>}, "
	"late: {take: latest_within, age: <5ms|6ms>, missing: default, default: <\"1\"|\"2\">}, "
	"more: {take: latest_within, age: 5ms, missing: <skip|reuse_last>}<, last: {capacity: 1}|>}}\n"
	"      o1: {type: t}\n      o2: {type: t}\n      o3: {type: t}\n      o4: {type: t}\n"
	"      o5: {type: t}\n      o6: {type: t}\n      o7: {type: t}\n      o8: {type: t}\n"
	"      <o9: {type: t}\n      o10|o10: {type: t}\n      o9>: {type: t}\n"
	"    flows: [{from: tx.<out|o>, to: [rx.<in|i>, o1.<in|i><, o2.in|>], capacity: <3|4>, "
	"policy: <block|pop>}, {from: <tx|rx>.more, to: o3.in}<, {from: tx.last, to: o4.in}|>]\n"
	"  f2: {on_failure: {policy: <restart|migrate>}, operators: {rx: {type: t}, tx: {type: t}}}\n"
	"  f3: {operators: {rx: {type: t}, tx: {type: t}}}\n"
	"  f4: {operators: {rx: {type: t}, tx: {type: t}}}\n"
	"  f5: {operators: {rx: {type: t}, tx: {type: t}, ty: {type: t}}}\n"
	"  f6: {compose: <c|d>}\n"
	"  f7: {compose: c}\n  f8: {compose: c}\n  f9: {compose: c}\n  f10: {compose: c}\n"
	"  f11: {compose: c}\n"
	"<  f12: {operators: {rx: {type: t}}}\n|>"
	"flows: [{from: f1.tx.<out|o>, to: f2.rx.<in|i>, capacity: <3|4>, policy: <block|pop>, "
	"edge: <ucx|auto>, encrypt: <false|true>}, {from: f1.<tx|rx>.more, to: f3.rx.in}"
	"<, {from: f1.tx.last, to: f3.rx.in}|>]\n",
};

/* The first of each pair, and the second of one of them; SIZE_MAX: of none. Returns its words. */
static const char *choose(const char *text, size_t number, char out[static 16384])
{
	const char *chosen = NULL, *bar, *end;
	size_t at = 0;

	for (const char *from = text; *from != '\0'; from++) {
		if (*from != '<') {
			out[at++] = *from;
			continue;
		}
		bar = strchr(from, '|');
		end = strchr(from, '>');
		if (number-- == 0) {
			chosen = bar + 1;
			at += (size_t)sprintf(out + at, "%.*s", (int)(end - bar - 1), bar + 1);
		} else {
			at += (size_t)sprintf(out + at, "%.*s", (int)(bar - from - 1), from + 1);
		}
		from = end;
	}
	out[at] = '\0';
	return chosen;
}

Test(driver_difference, each_value_alone_is_one)
{
	static char before[16384], after[16384];
	const char *chosen;
	size_t count = 0;

	for (size_t i = 0; i < FRAG_COUNT_OF(pairs); i++) {
		choose(pairs[i], SIZE_MAX, before);
		cr_expect_eq(effect_between(before, before), FW_EFFECT_NONE);
		for (size_t k = 0; (chosen = choose(pairs[i], k, after)) != NULL; k++, count++) {
			cr_expect_gt(effect_between(before, after), FW_EFFECT_NONE, "%.40s",
				     chosen);
			cr_expect_gt(effect_between(after, before), FW_EFFECT_NONE, "%.40s",
				     chosen);
		}
	}
	cr_expect_gt(count, 150);
}

/* Their files have other names. */
Test(driver_difference, a_logger_of_each_fragment_is_not_that_of_all)
{
#define OF_ALL(top, own)                                                                           \
	"frag: 1\napplication: app\n" top "fragments: {f1: {operators: {a: {type: t}}" own "}, "   \
	"f2: {operators: {a: {type: t}}" own "}}\n"
	static const char logger[] = OF_ALL("data_loggers: {l: {type: x}}\n", ""),
			  loggers[] = OF_ALL("", ", data_loggers: {l: {type: x}}");

	cr_expect_eq(effect_between(logger, logger), FW_EFFECT_NONE);
	cr_expect_eq(effect_between(logger, loggers), FW_EFFECT_FRAGMENT);
}

/* The other parts of a source beside the text of the graph. */
Test(driver_difference, where_the_file_is_and_what_is_tracked_count)
{
	static const char *const sets[][1] = {{"tracking=a.txt"}, {"tracking=b.txt"}};
	const struct fragi_spec_source sources[] = {
		{.graph = {"a", base, sizeof(base) - 1}, .app_folder = "/one"},
		{.graph = {"a", base, sizeof(base) - 1}, .app_folder = "/two"},
		{.graph = {"a", base, sizeof(base) - 1},
		 .app_folder = "/one",
		 .sets = sets[0],
		 .set_count = 1},
		{.graph = {"a", base, sizeof(base) - 1},
		 .app_folder = "/one",
		 .sets = sets[1],
		 .set_count = 1},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(sources); i++)
		for (size_t k = 0; k < FRAG_COUNT_OF(sources); k++)
			cr_expect_eq(effect_of(&sources[i], &sources[k]),
				     i == k ? FW_EFFECT_NONE : FW_EFFECT_APPLICATION, "%zu, %zu", i,
				     k);
}

Test(driver_difference, remarks_and_order_in_the_text_are_none)
{
	static struct drv_differences found;
	struct fragi_spec *before = parse(base),
			  *after = parse(
				  with("extensions: [liba.so]", "extensions:   [liba.so] # a"));
	struct fragi_arena arena = {0};

	found = (struct drv_differences){.arena = &arena};
	drv_difference_find(before, after, &found);
	cr_expect_eq(found.count, 0);
	fragi_spec_destroy(before);
	fragi_spec_destroy(after);
	fragi_arena_fini(&arena);
}

/* What there is no room for counts by the most that any of it needs, wherever that one is. */
Test(driver_difference, differences_are_bounded)
{
	static const struct {
		uint32_t count; /* of those of another operator */
		enum fw_effect effect;
	} cases[] = {{0, FW_EFFECT_SET}, {2, FW_EFFECT_FRAGMENT}};
	static struct drv_differences found;
	static char text[65536];
	struct fragi_arena arena = {0};
	struct fragi_spec *specs[2];

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		for (int k = 0; k < 2; k++) {
			size_t used = (size_t)snprintf(
				text, sizeof(text),
				"frag: 1\napplication: app\noperators:\n  a: {type: "
				"t, parameters: {x: 1");

			for (int p = 0; p < 2 * FW_CHANGES_MAX; p++)
				used += (size_t)snprintf(text + used, sizeof(text) - used,
							 ", p%d: %d", p, k);
			used += (size_t)snprintf(text + used, sizeof(text) - used, "}}\n");
			if (cases[i].count != 0)
				snprintf(text + used, sizeof(text) - used,
					 "  b: {type: t, parameters: {l: [%d], x: %d}}\n", k, k);
			specs[k] = parse(text);
		}
		found = (struct drv_differences){.arena = &arena};
		drv_difference_find(specs[0], specs[1], &found);
		cr_expect_eq(found.count, FW_CHANGES_MAX);
		cr_expect_eq(found.more, FW_CHANGES_MAX + cases[i].count);
		cr_expect_eq(found.more_effect, cases[i].effect);
		fragi_spec_destroy(specs[0]);
		fragi_spec_destroy(specs[1]);
	}
	fragi_arena_fini(&arena);
}
