// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include "hosts.h"

static const struct frag_op_type *const stamp_ops[] = {&stamper_type, &pair_type, &many_type,
						       &source_type};
static const struct frag_plugin stamp_plugin = {TEST_PLUGIN_INIT, .name = "stamps",
						FRAG_OPS(stamp_ops)};

/* Each message that left the first host is delivered or dropped once, on one side. */
static void expect_balance(const struct hosts *hosts, size_t flow)
{
	const struct fragi_flow_row *from = rig_row(&hosts->rig[0], flow);
	const struct fragi_flow_row *to = rig_row(&hosts->rig[1], flow);

	cr_expect_eq(from->sent, to->delivered + rig_dropped_all(from) + rig_dropped_all(to));
}

HOSTS_TEST(inputs_are_timed_as_inside_a_host)
{
	static const struct cut cuts[] = {{"a", "out", "p", "a", 0, 0, 0, 0, 0},
					  {"b", "out", "p", "b", 0, 0, 0, 0, 0, 1}};
	const struct fragi_flow_row *a, *b;

	plugin = &stamp_plugin;
	for (int s = 0; s < 2; s++) {
		run_all(hosts, cuts, 2,
			"  one: {scheduler: {type: %s}, operators: {\n"
			"    a: {type: stamper, parameters: {values: [1, 2, 3, 4], at: [100, 200, 300, 400], clock: 256}},\n"
			"    b: {type: stamper, parameters: {values: [5, 6, 7, 8], at: [102, 255, 310, 400], clock: 256}}}}\n"
			"  two: {scheduler: {type: %s}, operators: {p: {type: pair, align: {window: 10ns}}}}\n"
			"flows: [one.a -> two.p.a, one.b -> two.p.b]\n",
			schedulers[s], schedulers[s]);
		cr_assert_eq(noted(0), 3);
		cr_expect_eq(notes[0]->values[0], 1005);
		cr_expect_eq(notes[0]->values[1], 3007);
		cr_expect_eq(notes[0]->values[2], 4008);
		a = rig_row(&hosts->rig[1], 0);
		b = rig_row(&hosts->rig[1], 1);
		cr_expect_eq(a->delivered, 3);
		cr_expect_eq(a->rx_dropped[FRAGI_DROP_LATE], 1);
		cr_expect_eq(b->rx_dropped[FRAGI_DROP_LATE], 1);
		expect_balance(hosts, 0);
		expect_balance(hosts, 1);
	}
}

HOSTS_TEST(an_old_message_is_stale_and_the_latest_is_taken)
{
	static const struct cut cuts[] = {
		{"a", "out", "p", "a", 0, 0, 0, 0, 0},
		{"b", "out", "m", "in", 0, 0, 0, 0, FRAG_POLICY_LATEST, 1}};

	plugin = &stamp_plugin;
	run_all(hosts, cuts, 2,
		"  one: {operators: {a: {type: stamper, parameters: {values: [1, 2, 3], ages: [0, 7200, 0], clock: 0}},\n"
		"                    b: {type: source, parameters: {count: 3000}}}}\n"
		"  two: {operators: {p: {type: pair, ports: {a: {age: 1h}}},\n"
		"                    m: {type: many, parameters: {slot: 1}, ports: {in: {take: latest_within, age: 1h}}}}}\n"
		"flows: [one.a -> two.p.a, one.b -> two.m.in]\n");
	cr_assert_eq(noted(0), 2);
	cr_expect_eq(notes[0]->values[0], 1999);
	cr_expect_eq(notes[0]->values[1], 3999);
	cr_expect_eq(rig_row(&hosts->rig[1], 0)->rx_dropped[FRAGI_DROP_STALE], 1);
	cr_assert_gt(noted(1), 0);
	cr_expect_eq(notes[1]->values[noted(1) - 1], 2999, "the last one is always the newest");
	for (uint32_t i = 1; i < noted(1); i++)
		cr_expect_lt(notes[1]->values[i - 1], notes[1]->values[i]);
	expect_balance(hosts, 0);
	expect_balance(hosts, 1);
}

/* p ends with b, and a message of a that waits for the next one of b is held then. */
HOSTS_TEST(what_an_input_holds_at_its_end_is_not_confirmed)
{
	static const struct cut cuts[] = {{"a", "out", "p", "a", 0, 0, 0, 0, 0},
					  {"b", "out", "p", "b", 0, 0, 0, 0, 0, 1}};

	plugin = &stamp_plugin;
	for (int s = 0; s < 2; s++) {
		run_all(hosts, cuts, 2,
			"  one: {scheduler: {type: %s}, operators: {\n"
			"    a: {type: stamper, parameters: {values: [1, 2, 3, 4]}},\n"
			"    b: {type: stamper, parameters: {values: [5]}}}}\n"
			"  two: {scheduler: {type: %s}, operators: {p: {type: pair,\n"
			"    ports: {a: {age: 1h}, b: {age: 1h, missing: wait}}}}}\n"
			"flows: [one.a -> two.p.a, one.b -> two.p.b]\n",
			schedulers[s], schedulers[s]);
		cr_expect_eq(rig_row(&hosts->rig[1], 0)->delivered, 1);
		cr_expect_eq(rig_row(&hosts->rig[0], 0)->confirmed, 1);
		expect_balance(hosts, 0);
	}
}

HOSTS_TEST(an_async_buffer_is_read_again_when_its_sender_has_ended)
{
	static const struct cut cuts[] = {
		{"tx", "out", "rx", "in", 0, 0, 0, 0, FRAG_POLICY_ASYNC_BUFFER}};

	for (int s = 0; s < 4; s++) {
		is_encrypted = s >= 2;
		run_all(hosts, cuts, 1,
			"  one: {scheduler: {type: %s}, operators: {tx: {type: source, parameters: {count: 3}}}}\n"
			"  two: {scheduler: {type: %s}, operators: {rx: {type: sink, conditions: [\n"
			"         {type: periodic, recess_period: 2ms}, {type: count, count: 100}]}}}\n"
			"flows: [{from: one.tx, to: two.rx, policy: async_buffer}]\n",
			schedulers[s % 2], schedulers[s % 2]);
		cr_assert_eq(noted(0), 100);
		cr_expect_eq(notes[0]->values[99], 2);
		for (int i = 1; i < 100; i++)
			cr_expect_leq(notes[0]->values[i - 1], notes[0]->values[i]);
		cr_expect_eq(rig_row(&hosts->rig[1], 0)->reused,
			     100 - rig_row(&hosts->rig[1], 0)->delivered);
		expect_balance(hosts, 0);
	}
}

/*
 * Policy latest in whole graphs, in a process and between hosts: a receiver gets newer and newer
 * messages and at last the newest one, nobody waits, and each message is counted once. This is also
 * run under ThreadSanitizer. A flow with latest has no capacity, so the flows before it have those.
 */
#define LATEST_COUNT 2000

static const uint32_t latest_capacities[] = {1, 2, 65536};

static const char *latest_graph(const char *scheduler, uint32_t capacity)
{
	static char yaml[2048];

	snprintf(
		yaml, sizeof(yaml),
		HEAD
		"  one: {scheduler: {type: %s}, operators: {\n"
		"      tx: {type: source, parameters: {count: %d}}, p: {type: middle},\n"
		"      rx: {type: sink}, near: {type: sink, parameters: {slot: 1}}},\n"
		"    flows: [{from: tx, to: p, capacity: %u}, {from: p, to: near, policy: latest}]}\n"
		"  two: {scheduler: {type: %s}, operators: {\n"
		"      m: {type: middle}, q: {type: middle}, far: {type: sink, parameters: {slot: 2}}},\n"
		"    flows: [{from: m, to: q, capacity: %u}, {from: q, to: far, policy: latest}]}\n"
		"flows: [{from: one.p, to: two.m, policy: latest},\n"
		"        {from: two.q, to: one.rx, policy: latest}]\n",
		scheduler, LATEST_COUNT, capacity, scheduler, capacity);
	return yaml;
}

static void expect_newer_and_newer(void)
{
	for (int slot = 0; slot < 3; slot++) {
		uint32_t count = noted(slot);

		cr_assert_gt(count, 0, "slot %d", slot);
		cr_expect_eq(notes[slot]->values[count - 1], LATEST_COUNT - 1, "slot %d", slot);
		for (uint32_t i = 1; i < count; i++)
			cr_assert_lt(notes[slot]->values[i - 1], notes[slot]->values[i]);
	}
}

static void expect_latest_between_hosts(struct hosts *hosts)
{
	static const struct cut cuts[] = {
		{"p", "out", "m", "in", 0, 0, 0, 1, FRAG_POLICY_LATEST, 0},
		{"q", "out", "rx", "in", 0, 0, 1, 1, FRAG_POLICY_LATEST, 1}};

	for (size_t i = 0; i < 2 * FRAG_COUNT_OF(latest_capacities); i++) {
		run_all(hosts, cuts, 2, "%s",
			latest_graph(schedulers[i % 2], latest_capacities[i / 2]) + strlen(HEAD));
		expect_newer_and_newer();
		for (uint32_t h = 0; h < HOSTS; h++) {
			const struct fragi_flow_row *inner = rig_row(&hosts->rig[h], 1);
			const struct fragi_flow_row *from = rig_row(&hosts->rig[h], 2 + h);
			const struct fragi_flow_row *to = rig_row(&hosts->rig[1 - h], 2 + h);

			cr_expect_eq(hosts->rig[h].failed + hosts->rig[h].lost, 0);
			cr_expect_eq(inner->sent, inner->delivered + rig_dropped_all(inner));
			cr_expect_eq(from->sent,
				     to->delivered + rig_dropped_all(from) + rig_dropped_all(to));
		}
		cr_expect_eq(rig_row(&hosts->rig[0], 2)->sent, LATEST_COUNT);
	}
}

HOSTS_TEST(latest_in_a_whole_graph)
{
	expect_latest_between_hosts(hosts);
}

HOSTS_TEST(latest_in_a_whole_encrypted_graph)
{
	is_encrypted = true;
	expect_latest_between_hosts(hosts);
}

Test(one_host, latest_in_a_whole_graph)
{
	struct rig rig;

	for (size_t i = 0; i < 2 * FRAG_COUNT_OF(latest_capacities); i++) {
		rig_run(&rig, &rig_plugin,
			latest_graph(schedulers[i % 2], latest_capacities[i / 2]));
		cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
		cr_expect(rig_balances(&rig));
		expect_newer_and_newer();
		rig_end(&rig);
		notes_clear();
	}
}

/* Deadlines of paths that lead from host to host and back. */

#define PATH_CUTS                                                                                  \
	{"tx", "out", "m", "in", 0, 0, 0, 0, 0},                                                   \
	{                                                                                          \
		"m", "out", "rx", "in", 0, 0, 1, 0, 0, 1                                           \
	}

/* From the first host through the second one, where m works for a while, and back. */
static void run_path(struct hosts *hosts, const char *scheduler, const char *work, const char *more)
{
	static const struct cut cuts[] = {PATH_CUTS};

	run_all(hosts, cuts, 2,
		"  one: {scheduler: {type: %s}, operators: {tx: {type: source, parameters: {count: 5}},\n"
		"        rx: {type: sink}}}\n"
		"  two: {scheduler: {type: %s}, operators: {m: {type: middle, parameters: {work_us: %s}}}}\n"
		"flows: [one.tx -> two.m, two.m -> one.rx]\n"
		"deadlines:\n%s",
		scheduler, scheduler, work, more);
}

static uint64_t op_counter(const _Atomic uint64_t *counter)
{
	return atomic_load(counter);
}
/* of the i-th operator of a host */
#define OP_COUNTER(h, i, member) op_counter(&fragi_run_ledger(hosts->rig[h].run)->ops[i].member)

HOSTS_TEST(a_path_through_several_hosts_is_checked)
{
	for (int s = 0; s < 2; s++) {
		run_path(hosts, schedulers[s], "3000",
			 "  - {path: [one.tx, two.m, one.rx], budget: 2ms}\n"
			 "  - {path: [one.tx, two.m], budget: 2ms}\n"
			 "  - {path: [two.m, one.rx], budget: 1h, on_miss: stop}\n");
		cr_expect_eq(hosts->rig[0].failed + hosts->rig[1].failed, 0);
		cr_expect_eq(noted(0), 5);
		cr_expect_eq(OP_COUNTER(0, 1, path_misses), 5);
		cr_expect_eq(OP_COUNTER(1, 0, path_misses), 5);
		cr_expect_eq(OP_COUNTER(0, 1, path_clocks) + OP_COUNTER(1, 0, path_clocks), 0);
	}
}

HOSTS_TEST(a_path_through_several_hosts_that_is_fast_enough_is_no_miss)
{
	run_path(hosts, "event_based", "0",
		 "  - {path: [one.tx, two.m, one.rx], budget: 1h, on_miss: stop}\n"
		 "  - {path: [one.tx, two.m], budget: 1h, on_miss: drop}\n");
	cr_expect_eq(hosts->rig[0].failed + hosts->rig[1].failed, 0);
	cr_expect_eq(noted(0), 5);
	cr_expect_eq(OP_COUNTER(0, 1, path_misses), 0);
	cr_expect_eq(OP_COUNTER(1, 0, path_misses), 0);
}

HOSTS_TEST(a_path_through_several_hosts_drops_what_is_late)
{
	run_path(hosts, "greedy", "3000",
		 "  - {path: [one.tx, two.m, one.rx], budget: 2ms, on_miss: drop}\n");
	cr_expect_eq(noted(0), 0);
	cr_expect_eq(OP_COUNTER(0, 1, path_misses), 5);
	cr_expect_eq(rig_row(&hosts->rig[0], 1)->rx_dropped[FRAGI_DROP_DEADLINE], 5);
}

/*
 * The operator that is named is in the other host. Where the system runs other programs in between,
 * another one may be slower, but not again and again.
 */
HOSTS_TEST(a_path_through_several_hosts_names_the_slowest_operator)
{
	static const struct cut cuts[] = {PATH_CUTS};
	static const char sentence[] =
		"one.rx: tick 1 missed a deadline: the path from one.tx (slowest: two.m) took ";
	bool is_named = false;

	for (int i = 0; i < 6 && !is_named; i++) {
		prepare(hosts, NULL,
			"  one: {operators: {tx: {type: source, parameters: {count: 1}}, rx: {type: sink}}}\n"
			"  two: {operators: {m: {type: middle, parameters: {work_us: 100000}}}}\n"
			"flows: [one.tx -> two.m, two.m -> one.rx]\n"
			"deadlines: [{path: [one.tx, two.m, one.rx], budget: 50ms, on_miss: stop}]\n");
		wire(hosts, cuts, 2);
		start(hosts);
		wait_for_both(hosts);
		cr_expect_eq(hosts->rig[0].failed, 1);
		cr_expect_eq(hosts->rig[0].failure, FRAGI_FAILURE_DEADLINE_MISSED);
		is_named = strncmp(hosts->rig[0].sentence, sentence, sizeof(sentence) - 1) == 0;
	}
	cr_expect(is_named, "%s", hosts->rig[0].sentence);
}

/* Neither a stop nor a drop: nobody knows. What does not leave the machine is checked. */
HOSTS_TEST(a_path_between_clocks_that_cannot_be_compared_is_not_checked)
{
	is_other_machine = true;
	run_path(hosts, "greedy", "3000",
		 "  - {path: [one.tx, two.m, one.rx], budget: 1ns, on_miss: stop}\n"
		 "  - {path: [one.tx, two.m], budget: 1ns, on_miss: drop}\n"
		 "clock: {max_error: 1ns}\n"); /* no two clocks are compared so well */
	is_other_machine = false;
	cr_expect_eq(hosts->rig[0].failed + hosts->rig[1].failed, 0);
	cr_expect_eq(noted(0), 5);
	cr_expect_eq(OP_COUNTER(0, 1, path_misses), 0);
	cr_expect_eq(OP_COUNTER(0, 1, path_clocks), 5);
	cr_expect_eq(OP_COUNTER(1, 0, path_misses), 0);
	cr_expect_eq(OP_COUNTER(1, 0, path_clocks), 5);
}

/* As soon as they are compared: what came before is counted as not comparable. */
HOSTS_TEST(a_path_between_two_clocks_is_checked)
{
	is_other_machine = true;
	run_path(hosts, "greedy", "3000",
		 "  - {path: [one.tx, two.m], budget: 1ns}\n"
		 "  - {path: [one.tx, two.m, one.rx], budget: 1h}\n");
	is_other_machine = false;
	cr_expect_eq(noted(0), 5);
	cr_expect_gt(OP_COUNTER(1, 0, path_misses), 0);
	cr_expect_eq(OP_COUNTER(1, 0, path_misses) + OP_COUNTER(1, 0, path_clocks), 5);
	cr_expect_eq(OP_COUNTER(0, 1, path_misses), 0);
}
