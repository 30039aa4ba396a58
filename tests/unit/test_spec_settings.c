// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "spec_texts.h"

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
