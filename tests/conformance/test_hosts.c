// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include "../unit/cycle_ops.h"
#include "../unit/trace_shown.h"

#include "hosts.h"

HOSTS_TEST(what_one_host_sends_the_other_gets_in_order)
{
	static const struct cut cuts[] = {{"tx", "out", "m", "in", 0, 0, 0, 0, 0},
					  {"m", "out", "rx", "in", 0, 0, 1, 0, 0}};

	for (int s = 0; s < 4; s++) {
		run_all(hosts, cuts, 2,
			"  one: {scheduler: {type: %s}, operators: {tx: {type: source, parameters: {count: 5000}},\n"
			"        rx: {type: sink}}}\n"
			"  two: {scheduler: {type: %s}, operators: {m: {type: middle, parameters: {add: 3}}}}\n"
			"flows: [one.tx -> two.m, two.m -> one.rx]\n",
			schedulers[s / 2], schedulers[s % 2]);
		cr_assert_eq(notes[0]->count, 5000);
		for (int i = 0; i < 5000; i++)
			cr_assert_eq(notes[0]->values[i], i + 3);
		/* Rows: the first flow leaves host 0, the second comes to it. */
		cr_expect_eq(rig_row(&hosts->rig[0], 0)->sent, 5000);
		cr_expect_eq(rig_row(&hosts->rig[1], 0)->delivered, 5000);
		cr_expect_eq(rig_row(&hosts->rig[1], 1)->sent, 5000);
		cr_expect_eq(rig_row(&hosts->rig[0], 1)->delivered, 5000);
		cr_expect_eq(hosts->rig[0].failed + hosts->rig[1].failed + hosts->rig[0].lost +
				     hosts->rig[1].lost,
			     0);
	}
}

/* Of a flow between hosts each traces its end, by the same number. */
HOSTS_TEST(a_trace_names_the_ends_of_flows_and_the_peers)
{
	static const struct cut cuts[] = {{"m", "out", "rx", "in", 0, 0, 1, 0, 0},
					  {"tx", "out", "m", "in", 0, 0, 0, 0, 0}};
	static const char *const shown[HOSTS] = {
		"  trace 5 of host 0, epoch 1: one, number 0, 0 lost, end 1\n"
		"  host 1, epoch 1: 0 ns ahead, within 0\n"
		"  operator 0: one.tx\n"
		"  operator 1: one.rx\n"
		"  flow 1, 0 1, capacity 0, number 1 of link 2 behind 0: one.tx.out -> two.m.in\n"
		"  flow 0, 1 0, capacity 4, number 0 of link 2 behind 0:  -> one.rx.in\n",
		"  trace 5 of host 1, epoch 1: two, number 0, 0 lost, end 1\n"
		"  host 0, epoch 1: 0 ns ahead, within 0\n"
		"  operator 0: two.m\n"
		"  operator 1: two.s\n"
		"  flow 0, 1 1, capacity 1, number 0 of link 0 behind 0: two.m.out -> two.s.in\n"
		"  flow 2, 1 0, capacity 4, number 1 of link 2 behind 0:  -> two.m.in\n"
		"  flow 1, 0 1, capacity 0, number 0 of link 2 behind 0: two.m.out -> one.rx.in\n"};

	prepare(hosts, NULL,
		"  one: {operators: {tx: {type: source, parameters: {count: 20}}, rx: {type: sink}}}\n"
		"  two: {operators: {m: {type: middle}, s: {type: sink, parameters: {slot: 1}}},\n"
		"        flows: [m -> s]}\n"
		"flows: [one.tx -> two.m, two.m -> one.rx]\n");
	wire(hosts, cuts, 2);
	for (int h = 0; h < HOSTS; h++)
		cr_assert_eq(fragi_run_tap(hosts->rig[h].run,
					   &(struct fragi_run_tap_wish){.id = 5,
									.for_ns = INT64_MAX / 2,
									.traces = true}),
			     0);
	start(hosts);
	wait_for_both(hosts);
	trace_shows_names = true;
	for (int h = 0; h < HOSTS; h++) {
		char *text, *records;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		fragi_run_traced(hosts->rig[h].run, true, trace_shown, out);
		fclose(out);
		records = strstr(text, "  records:");
		cr_assert_not_null(records);
		*records = '\0';
		cr_expect_str_eq(text, shown[h], "%s", text);
		free(text);
	}
}

HOSTS_TEST(a_multi_receiver_has_the_flows_in_the_order_of_the_text)
{
	/* The driver gives them in another order than the text has them. */
	static const struct cut cuts[] = {{"b", "out", "all", "receivers", .order = 2},
					  {"a", "out", "all", "receivers", .order = 0}};

	prepare(hosts, (const char *const[]){"two", "three", NULL},
		"  one: {operators: {a: {type: source, parameters: {count: 50}},\n"
		"                    b: {type: source, parameters: {count: 50}}}}\n"
		"  two: {operators: {all: {type: gather}, d: {type: source, parameters: {count: 50}}},\n"
		"        flows: [d -> all]}\n"
		"  three: {operators: {c: {type: source, parameters: {count: 50}}}}\n"
		"flows: [one.a -> two.all, three.c -> two.all, one.b.out -> two.all.receivers]\n");
	cr_expect_eq(hosts->rig[1].run != NULL, 1);
	wire(hosts, cuts, 2);
	start(hosts);
	wait_for_both(hosts);
	cr_assert_eq(notes[0]->count, 200);
	for (int i = 0; i < 200; i++)
		cr_assert_eq(notes[0]->values[i], 1000 * (i % 4) + i / 4, "at %d: %lld", i,
			     (long long)notes[0]->values[i]);
}

/* What min_size gives room or waits for holds between hosts as it does inside one. */

HOSTS_TEST(min_size_holds_for_each_flow_of_a_multi_receiver)
{
	static const struct cut cuts[] = {{"a", "out", "all", "receivers", .order = 0},
					  {"b", "out", "all", "receivers", .order = 1}};

	for (int slower = 0; slower < 3; slower++) {
		run_all(hosts, cuts, 2,
			"  one: {operators: {a: {type: source, parameters: {count: 60, work_us: %d}},\n"
			"                    b: {type: source, parameters: {count: 60, work_us: %d}}}}\n"
			"  two: {operators: {c: {type: source, parameters: {count: 60, work_us: %d}},\n"
			"                    all: {type: gather, parameters: {rounds: 3},\n"
			"                          conditions: [{type: message_available, min_size: 3}]}},\n"
			"        flows: [{from: c, to: all, capacity: 4}]}\n"
			"flows: [one.a -> two.all, one.b -> two.all]\n",
			slower == 0 ? 100 : 0, slower == 1 ? 100 : 0, slower == 2 ? 100 : 0);
		cr_assert_eq(notes[0]->count, 180);
		/* The flow inside the host comes last in its fragment. */
		for (uint32_t i = 0; i < 180; i++)
			cr_assert_eq(notes[0]->values[i], 1000 * (i % 3) + i / 3, "at %u: %lld", i,
				     (long long)notes[0]->values[i]);
	}
}

HOSTS_TEST(min_size_counts_the_flows_of_an_input_together)
{
	static const struct cut cuts[] = {{"a", "out", "rx", "in", .order = 0},
					  {"b", "out", "rx", "in", .order = 1}};
	static const char *const cases[] = {"conditions: [{type: message_available, min_size: 4}]",
					    "ports: {in: {size: 4}}", "ports: {in: {size: 0}}"};

	for (int c = 0; c < 3; c++) {
		int64_t taken = 0, min = c < 2 ? 4 : 2;

		run_all(hosts, cuts, 2,
			"  one: {operators: {a: {type: source, parameters: {count: 50}},\n"
			"                    b: {type: source, parameters: {count: 30, work_us: 100}}}}\n"
			"  two: {operators: {rx: {type: taker, %s}}}\n"
			"flows: [one.a -> two.rx, one.b -> two.rx]\n",
			cases[c]);
		for (uint32_t i = 0; i < notes[0]->count; i++) {
			taken += notes[0]->values[i];
			cr_expect(notes[0]->values[i] >= min || i + 1 == notes[0]->count,
				  "%d: tick %u of %u took %lld", c, i, notes[0]->count,
				  (long long)notes[0]->values[i]);
		}
		cr_expect_eq(taken, 80);
	}
}

HOSTS_TEST(min_size_waits_for_that_much_room)
{
	static const struct cut cuts[] = {{"tx", "out", "rx", "in", .window = 3}};

	/* Three at a time into a window of three: nothing is dropped. */
	run_all(hosts, cuts, 1,
		"  one: {operators: {tx: {type: source, parameters: {burst: 3, count: 90},\n"
		"                         conditions: [{type: downstream_affordable, min_size: 3}]}}}\n"
		"  two: {operators: {rx: {type: sink, parameters: {work_us: 20}}}}\n"
		"flows: [{from: one.tx, to: two.rx, capacity: 3}]\n");
	cr_assert_eq(notes[0]->count, 90);
	for (int i = 0; i < 90; i++)
		cr_expect_eq(notes[0]->values[i], i);
	cr_expect_eq(rig_dropped_all(rig_row(&hosts->rig[0], 0)), 0);
}

/* The messages of several flows into one input count together. */
HOSTS_TEST(min_size_waits_for_that_many_messages)
{
	static const struct cut cuts[] = {{"tx", "out", "rx", "in", .window = 2},
					  {"ty", "out", "rx", "in", .window = 2, .order = 1}};
	int64_t sum = 0;

	run_all(hosts, cuts, 2,
		"  one: {operators: {tx: {type: source, parameters: {count: 30}},\n"
		"                    ty: {type: source, parameters: {count: 30}}}}\n"
		"  two: {operators: {rx: {type: taker,\n"
		"                         conditions: [{type: message_available, min_size: 3}]}}}\n"
		"flows: [{from: one.tx, to: two.rx, capacity: 2},\n"
		"        {from: one.ty, to: two.rx, capacity: 2}]\n");
	for (uint32_t i = 0; i < noted(0); i++) {
		sum += notes[0]->values[i];
		/* When one source has ended, the other alone holds two. */
		cr_expect_geq(notes[0]->values[i], sum <= 30 ? 3 : 1, "%u", i);
	}
	cr_expect_eq(sum, 60);
}

/* A limit of what waits, above which nothing is taken any more, and a batch with a time. */
HOSTS_TEST(other_conditions_of_inputs_see_what_has_arrived)
{
	static const struct cut cuts[] = {{"tx", "out", "rx", "in", .window = 2},
					  {"ty", "out", "ry", "in", .window = 8, .order = 1}};
	int64_t sum = 0;

	run_all(hosts, cuts, 2,
		"  one: {operators: {tx: {type: source, parameters: {count: 40}},\n"
		"                    ty: {type: source, parameters: {count: 40}}}}\n"
		"  two: {operators: {rx: {type: sink, conditions: [{type: message_available,\n"
		"                                                    front_stage_max_size: 2}]},\n"
		"                    ry: {type: taker, parameters: {slot: 1},\n"
		"                         conditions: [{type: expiring_message_available,\n"
		"                                       max_batch_size: 4, max_delay_ns: 1h}]}}}\n"
		"flows: [{from: one.tx, to: two.rx, capacity: 2},\n"
		"        {from: one.ty, to: two.ry, capacity: 8}]\n");
	cr_expect_eq(noted(0), 40);
	for (uint32_t i = 0; i < noted(1); i++) {
		sum += notes[1]->values[i];
		cr_expect_geq(notes[1]->values[i], i + 1 < noted(1) ? 4 : 1);
	}
	cr_expect_eq(sum, 40);
}

HOSTS_TEST(room_that_a_flow_can_never_have_is_refused)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_run_peer peer = {.host = 1, .epoch = 1, .name = "other"};
	struct fragi_run_address addresses[FRAGI_HOST_TRANSPORTS_MAX];
	struct fragi_run_edge edge = {
		.config = {.window_messages = 4,
			   .window_bytes = FRAGI_WINDOW_BYTES,
			   .message_bytes_max = FRAGI_MESSAGE_BYTES_MAX,
			   .policy = FRAG_POLICY_BLOCK},
		.transport = rig_transports[0],
		.sends = true,
		.peer = 1,
		.other_end = "two.rx.in",
	};

	prepare(hosts, NULL,
		"  one: {operators: {tx: {type: source,\n"
		"                         conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
		"  two: {operators: {rx: {type: sink}}}\n"
		"flows: [one.tx -> two.rx]\n");
	peer.address_count = fragi_run_addresses(hosts->rig[1].run, addresses);
	peer.addresses = addresses;
	cr_expect_eq(fragi_run_wire(hosts->rig[0].run, &peer, 1, &edge, 1, &err), -EINVAL);
	cr_expect_str_eq(
		err.text,
		"one.tx: a condition of output \"out\" asks for room for 5 messages, and a flow of it holds 4 at most; give the flow a larger capacity, or ask for less");
}

/* It would be waited for, and never answer. */
HOSTS_TEST(a_peer_without_an_edge_is_refused)
{
	struct fragi_run_peer peer = {.host = 1, .epoch = 1, .name = "other"};
	struct fragi_run_address addresses[FRAGI_HOST_TRANSPORTS_MAX];
	struct frag_err err = FRAG_ERR_INIT;

	prepare(hosts, NULL,
		"  one: {operators: {tx: {type: source}}}\n"
		"  two: {operators: {rx: {type: sink}}}\n"
		"flows: [one.tx -> two.rx]\n");
	peer.address_count = fragi_run_addresses(hosts->rig[1].run, addresses);
	peer.addresses = addresses;
	cr_expect_eq(fragi_run_wire(hosts->rig[0].run, &peer, 1, NULL, 0, &err), -EINVAL);
	cr_expect_str_eq(err.text,
			 "host other is a peer without an edge; this is an error in frag");
}

static unsigned int reports_before;

static bool reports_rest_again(struct rig *rig)
{
	return rig->idle > reports_before;
}

/* Whether both have told of their rest, and all that one says it sent has arrived at the other. */
static bool is_all_at_rest(const struct hosts *hosts)
{
	const struct rig *a = &hosts->rig[0], *b = &hosts->rig[1];

	return a->idle > 0 && b->idle > 0 && a->last_idle.sent > 0 &&
	       a->last_idle.sent + b->last_idle.sent ==
		       a->last_idle.delivered + b->last_idle.delivered;
}

HOSTS_TEST(rest_is_told_with_what_travelled)
{
	static const struct cut cuts[] = {{"a", "out", "b", "in", 0, 0, 0, 0, 0},
					  {"b", "out", "a", "in", 0, 0, 1, 0, 0}};

	/* b answers ten times and then waits for ever, as a does. */
	prepare(hosts, NULL,
		"  one: {operators: {a: {type: ring, conditions: [{type: count, count: 1}]},\n"
		"                    c: {type: middle, parameters: {slot: 3}}, d: {type: middle, parameters: {slot: 4}}},\n"
		"        flows: [c -> d, d -> c]}\n"
		"  two: {operators: {b: {type: middle}, e: {type: middle, parameters: {slot: 5}},\n"
		"                    f: {type: middle, parameters: {slot: 6}}}, flows: [e -> f, f -> e]}\n"
		"flows: [one.a -> two.b, two.b -> one.a]\n");
	wire(hosts, cuts, 2);
	start(hosts);
	/* Either may have told of its rest while a message travelled to it. */
	for (uint32_t i = 0; i < 50 * HOSTS && !is_all_at_rest(hosts); i++) {
		reports_before = hosts->rig[i % HOSTS].idle;
		cr_assert(rig_wait(&hosts->rig[i % HOSTS], reports_rest_again, RIG_LIMIT_NS),
			  "host %u", i % HOSTS);
	}
	cr_expect(is_all_at_rest(hosts));
	cr_expect_eq(hosts->rig[0].done + hosts->rig[1].done, 0);
	for (uint32_t h = 0; h < HOSTS; h++)
		fragi_run_drain(hosts->rig[h].run);
	/* The loops inside have no source, and so end with the drain. */
	wait_for_both(hosts);
}

HOSTS_TEST(a_drain_of_all_hosts_loses_nothing)
{
	static const struct cut cuts[] = {{"tx", "out", "m", "in", 0, 0, 0, 8, 0},
					  {"m", "out", "rx", "in", 0, 0, 1, 8, 0}};

	prepare(hosts, NULL,
		"  one: {operators: {tx: {type: source}, rx: {type: sink, parameters: {work_us: 30}}}}\n"
		"  two: {operators: {m: {type: middle}}}\n"
		"flows: [{from: one.tx, to: two.m, capacity: 8}, {from: two.m, to: one.rx, capacity: 8}]\n");
	wire(hosts, cuts, 2);
	start(hosts);
	RIG_AWAIT(noted(0) >= 200);
	for (uint32_t h = 0; h < HOSTS; h++)
		fragi_run_drain(hosts->rig[h].run);
	wait_for_both(hosts);
	cr_expect_eq(notes[0]->count, rig_row(&hosts->rig[0], 0)->sent);
	for (uint32_t i = 0; i < notes[0]->count; i++)
		cr_assert_eq(notes[0]->values[i], i);
}

HOSTS_TEST(a_host_that_is_halted_ends_the_other_by_its_closes)
{
	static const struct cut cuts[] = {{"tx", "out", "rx", "in", 0, 0, 0, 0, 0}};
	const struct fragi_flow_row *row;

	prepare(hosts, NULL,
		"  one: {operators: {tx: {type: source}}}\n"
		"  two: {operators: {rx: {type: sink}}}\n"
		"flows: [one.tx -> two.rx]\n");
	wire(hosts, cuts, 1);
	start(hosts);
	RIG_AWAIT(noted(0) >= 100);
	fragi_run_halt(hosts->rig[0].run);
	wait_for_both(hosts);
	row = rig_row(&hosts->rig[1], 0);
	cr_expect_eq(rig_row(&hosts->rig[0], 0)->sent, row->arrived);
	cr_expect_eq(row->arrived, row->delivered);
	cr_expect_eq(notes[0]->count, row->delivered);
}

/* Cycles of Holoscan's tests that lead through both hosts: `ticks` by slot; 0: any number. */
HOSTS_TEST(a_cycle_through_two_hosts_ends_with_an_operator_of_it)
{
	static const struct {
		const char *one, *two, *flows;
		struct cut cuts[4];
		int count, ticks[3];
	} cycles[] = {
		{"t: {type: free, conditions: [{type: count, count: 10}]}",
		 "m: {type: bound, parameters: {slot: 1}}",
		 "one.t.x -> two.m.a, two.m.x -> one.t.b",
		 {{"t", "x", "m", "a", 0, 0, 0, 64, 0, 0}, {"m", "x", "t", "b", 0, 0, 1, 64, 0, 1}},
		 2,
		 {10, 10}},
		/* a source starts it, and all wait for messages */
		{"tx: {type: source, parameters: {count: 1}}, "
		 "t: {type: free, ports: {b: {condition: none}}, conditions: [{type: count, count: 10}]}",
		 "m: {type: bound, parameters: {slot: 1}}, n: {type: bound, parameters: {slot: 2}}",
		 "one.t.x -> two.m.a, two.n.x -> one.t.b",
		 {{"t", "x", "m", "a", 0, 0, 0, 64, 0, 0}, {"n", "x", "t", "b", 0, 0, 1, 64, 0, 1}},
		 2,
		 {10, 10, 10}},
		/* two cycles through one operator, which nothing else would end */
		{"start: {type: bound, conditions: [{type: count, count: 5}]}, "
		 "end: {type: bound, parameters: {slot: 2}}",
		 "middle: {type: free, parameters: {slot: 1}}",
		 "one.start.x -> two.middle.a, two.middle.x -> one.end.a, two.middle.y -> one.start.a, one.end.x -> two.middle.b",
		 {{"start", "x", "middle", "a", 0, 0, 0, 64, 0, 0},
		  {"middle", "x", "end", "a", 0, 0, 1, 64, 0, 1},
		  {"middle", "y", "start", "a", 0, 0, 1, 64, 0, 2},
		  {"end", "x", "middle", "b", 0, 0, 0, 64, 0, 3}},
		 4,
		 {5}},
	};

	plugin = &cycles_plugin;
	for (size_t i = 0; i < FRAG_COUNT_OF(cycles); i++)
		for (int s = 0; s < 4; s++) {
			run_all(hosts, cycles[i].cuts, (size_t)cycles[i].count,
				"  one: {scheduler: {type: %s}, operators: {%s}%s}\n"
				"  two: {scheduler: {type: %s}, operators: {%s}%s}\nflows: [%s]\n",
				schedulers[s / 2], cycles[i].one,
				i == 1 ? ", flows: [tx.out -> t.a]" : "", schedulers[s % 2],
				cycles[i].two, i == 1 ? ", flows: [m.x -> n.a]" : "",
				cycles[i].flows);
			for (int slot = 0; slot < 3; slot++)
				if (cycles[i].ticks[slot] > 0)
					cr_expect_eq(note_of(slot)->ticks, cycles[i].ticks[slot],
						     "%zu, %d: slot %d ticked %d times", i, s, slot,
						     (int)note_of(slot)->ticks);
			cr_expect_eq(hosts->rig[0].failed + hosts->rig[1].failed, 0);
		}
}
