// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <base/alloc.h>

#include "rig_ops.h"

/* The same graphs under every scheduler: what sinks wrote down must be what sources numbered. */

static void expect_all(const struct note *note, int64_t first, int64_t count)
{
	cr_assert_eq(note->count, count, "%u of %lld", note->count, (long long)count);
	for (int64_t i = 0; i < count; i++)
		cr_assert_eq(note->values[i], first + i, "at %lld: %lld", (long long)i,
			     (long long)note->values[i]);
}

RIG_TEST(schedulers, pair)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, parameters: {count: 20000}}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx -> rx]\n"));
	expect_all(notes[0], 0, 20000);
	cr_expect_eq(notes[0]->started, 1);
	cr_expect_eq(notes[0]->stopped, 1);
	cr_expect_eq(notes[SLOTS - 1]->stopped, 1);
	cr_expect_eq(rig_row(rig, 0)->sent, 20000);
	cr_expect_eq(rig_row(rig, 0)->delivered, 20000);
	cr_expect_eq(rig_row(rig, 0)->latency.count, 20000);
	cr_expect_eq(fragi_run_ledger(rig->run)->ops[1].ticks, 20000);
	cr_expect_eq(fragi_run_ledger(rig->run)->ops[1].compute.count, 20000);
	cr_expect_eq(fragi_run_ledger(rig->run)->ops[0].state, FRAGI_OP_DONE);
	cr_expect_eq(rig->failed, 0);
}

Test(schedulers, chain_of_ten_with_capacities)
{
	struct rig rig;
	char text[4096];
	int n;

	for (int capacity = 1; capacity <= 64; capacity *= 8) {
		n = snprintf(text, sizeof(text),
			     "operators:\n  m0: {type: source, parameters: {count: 5000}}\n");
		for (int i = 1; i < 9; i++)
			n += snprintf(text + n, sizeof(text) - (size_t)n,
				      "  m%d: {type: middle, parameters: {add: 1}}\n", i);
		n += snprintf(text + n, sizeof(text) - (size_t)n, "  m9: {type: sink}\nflows:\n");
		for (int i = 0; i < 9; i++)
			n += snprintf(text + n, sizeof(text) - (size_t)n,
				      "  - {from: m%d, to: m%d, capacity: %d}\n", i, i + 1,
				      capacity);
		FOR_EACH_SCHEDULER(s)
		{
			rig_run(&rig, &rig_plugin, rig_graph(s, text));
			expect_all(notes[0], 8, 5000);
			cr_expect(rig_balances(&rig));
			rig_end(&rig);
		}
	}
}

RIG_TEST(schedulers, fan_out_and_fan_in)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, parameters: {count: 3000}}\n"
			     "  a: {type: middle, parameters: {add: 1}}\n"
			     "  b: {type: middle, parameters: {add: 2}}\n"
			     "  c: {type: middle, parameters: {add: 3}}\n"
			     "  direct: {type: sink, parameters: {slot: 1}}\n"
			     "  all: {type: gather}\n"
			     "flows:\n"
			     "  - {from: tx, to: [a, b, c, direct.in]}\n"
			     "  - c -> all\n"
			     "  - a -> all\n"
			     "  - b -> all\n"));
	expect_all(notes[1], 0, 3000);
	cr_assert_eq(notes[0]->count, 9000);
	for (int i = 0; i < 3000; i++) { /* the order of the flows in the text: c, a, b */
		cr_assert_eq(notes[0]->values[3 * i], i + 3);
		cr_assert_eq(notes[0]->values[3 * i + 1], 1000 + i + 1);
		cr_assert_eq(notes[0]->values[3 * i + 2], 2000 + i + 2);
	}
	cr_expect(rig_balances(rig));
}

RIG_TEST(schedulers, a_plain_input_waits_for_no_flow_in_particular)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  kick: {type: source, parameters: {count: 1}}\n"
			     "  loop: {type: middle, parameters: {add: 1, done_after: 100}}\n"
			     "  rx: {type: sink, parameters: {slot: 0}}\n"
			     "flows:\n"
			     "  - kick.out -> loop.in\n"
			     "  - {from: loop.out, to: loop.in, capacity: 2}\n"
			     "  - loop.out -> rx.in\n"));
	cr_assert_eq(notes[0]->count, 100);
	for (int i = 0; i < 100; i++)
		cr_expect_eq(notes[0]->values[i], i + 1);
}

RIG_TEST(schedulers, a_plain_input_takes_from_its_flows_in_turn)
{
	uint32_t high = 0, high_early = 0;

	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  a: {type: source, parameters: {count: 200}}\n"
			     "  b: {type: source, parameters: {count: 200}}\n"
			     "  up: {type: middle, parameters: {add: 1000}}\n"
			     "  rx: {type: sink, parameters: {slot: 0}}\n"
			     "flows: [a -> rx.in, b -> up.in, up -> rx.in]\n"));
	cr_assert_eq(notes[0]->count, 400);
	for (uint32_t i = 0; i < 400; i++) {
		high += notes[0]->values[i] >= 1000;
		high_early += i < 100 && notes[0]->values[i] >= 1000;
	}
	cr_expect_eq(high, 200);
	if (strstr(rig_schedulers[s], "greedy") != NULL) /* others may run ahead of each other */
		cr_expect(high_early >= 45 && high_early <= 50, "%u", high_early);
	cr_expect(rig_balances(rig));
}

RIG_TEST(schedulers, a_multi_receiver_goes_on_without_the_flow_that_ended)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  long: {type: source, parameters: {count: 5}}\n"
			     "  short: {type: source, parameters: {count: 2}}\n"
			     "  all: {type: gather}\n"
			     "flows: [long -> all, short -> all]\n"));
	cr_assert_eq(notes[0]->count, 10);
	for (int i = 0; i < 5; i++) {
		cr_expect_eq(notes[0]->values[2 * i], i);
		cr_expect_eq(notes[0]->values[2 * i + 1], i < 2 ? 1000 + i : -2);
	}
}

RIG_TEST(schedulers, a_cycle_with_a_root_goes_round_until_it_ends)
{
	struct note *note;

	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  a: {type: ring, conditions: [{type: count, count: 20000}]}\n"
			     "  b: {type: middle, parameters: {add: 10}}\n"
			     "flows: [a -> b, b -> a]\n"));
	note = notes[0];
	cr_expect_gt(note->count, 0);
	for (uint32_t i = 0; i < note->count; i++)
		cr_assert_eq(note->values[i], 10 + 11 * i);
	cr_expect_eq(fragi_run_ledger(rig->run)->ops[0].ticks, 20000);
	cr_expect(rig_balances(rig));
}

RIG_TEST(schedulers, a_cycle_that_waits_for_itself_is_at_rest)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  a: {type: middle, parameters: {slot: 1}}\n"
			     "  b: {type: middle, parameters: {slot: 2}}\n"
			     "flows: [a -> b, b -> a]\n"));
	cr_expect_eq(rig->failed, 0);
	cr_expect_eq(notes[1]->stopped, 1);
	cr_expect_eq(notes[2]->stopped, 1);
	cr_expect_lt(rig->done_ns - rig->start_ns, 20000000000);
}

Test(schedulers, several_fragments_in_one_process)
{
	struct rig rig;
	char text[4096];

	FOR_EACH_SCHEDULER(s)
	{
		for (size_t t = 0; t < FRAG_COUNT_OF(rig_schedulers); t++) {
			notes_clear();
			snprintf(text, sizeof(text),
				 "frag: 1\napplication: app\nfragments:\n"
				 "  one:\n    scheduler: %s\n    operators:\n"
				 "      tx: {type: source, parameters: {count: 2000}}\n"
				 "      rx: {type: sink, parameters: {slot: 1}}\n"
				 "  two:\n    scheduler: %s\n    operators:\n"
				 "      m: {type: middle, parameters: {add: 5}}\n"
				 "      rx: {type: sink}\n"
				 "    flows: [m -> rx]\n"
				 "flows: [one.tx -> two.m, two.m -> one.rx]\n",
				 rig_schedulers[s], rig_schedulers[t]);
			rig_run(&rig, &rig_plugin, text);
			expect_all(notes[0], 5, 2000);
			expect_all(notes[1], 5, 2000);
			cr_expect(rig_balances(&rig));
			rig_end(&rig);
		}
	}
}

Test(schedulers, drop_policies_drop_what_they_say)
{
	static const char *const policies[] = {"pop", "reject", "latest"};
	struct rig rig;
	char text[1024];

	for (size_t p = 0; p < FRAG_COUNT_OF(policies); p++) {
		FOR_EACH_SCHEDULER(s)
		{
			const struct fragi_flow_row *row;
			struct note *note;

			snprintf(text, sizeof(text),
				 "operators:\n"
				 "  tx: {type: source, parameters: {count: 3000, burst: 10}}\n"
				 "  rx: {type: sink}\n"
				 "flows: [{from: tx, to: rx%s, policy: %s}]\n",
				 p < 2 ? ", capacity: 3" : "", policies[p]);
			rig_run(&rig, &rig_plugin, rig_graph(s, text));
			row = rig_row(&rig, 0);
			note = notes[0];
			cr_expect_eq(row->sent, 3000);
			cr_expect_eq(row->delivered, note->count);
			cr_expect_eq(rig_dropped(row, FRAGI_DROP_QUEUE_FULL), 3000 - note->count);
			for (uint32_t i = 1; i < note->count; i++)
				cr_assert_gt(note->values[i], note->values[i - 1]);
			if (p != 1) /* the newest is never dropped */
				cr_expect_eq(note->values[note->count - 1], 2999);
			else
				cr_expect_eq(note->values[0], 0);
			rig_end(&rig);
		}
	}
}

/*
 * Ten messages in one tick into a queue that nobody takes from meanwhile, since there is one
 * thread.
 */
static void expect_kept(size_t scheduler, const char *port, const char *flow, int64_t first,
			uint32_t count)
{
	struct rig rig;
	char text[1024];

	notes_clear();
	snprintf(text, sizeof(text),
		 "operators:\n"
		 "  tx: {type: source, parameters: {count: 10, burst: 10}}\n"
		 "  rx: {type: sink%s}\n"
		 "flows: [{from: tx, to: rx%s}]\n",
		 port, flow);
	rig_run(&rig, &rig_plugin, rig_graph(scheduler, text));
	expect_all(notes[0], first, count);
	cr_expect_eq(rig_dropped_all(rig_row(&rig, 0)), 10 - count);
	cr_expect(rig_balances(&rig));
	rig_end(&rig);
}

Test(schedulers, a_queue_keeps_what_port_and_flow_say)
{
	static const char port[] = ", ports: {in: {capacity: 2, policy: pop}}";

	for (size_t s = 0; s < 2; s++) {
		expect_kept(s, "", "", 0, 1);
		expect_kept(s, "", ", capacity: 3", 0, 3);
		expect_kept(s, "", ", capacity: 3, policy: reject", 0, 3);
		expect_kept(s, "", ", capacity: 3, policy: pop", 7, 3);
		expect_kept(s, "", ", policy: latest", 9, 1);
		expect_kept(s, port, "", 8, 2);
		expect_kept(s, port, ", capacity: 4", 6, 4);
		expect_kept(s, port, ", policy: reject", 0, 2);
	}
}

RIG_ONE_TEST(schedulers, emitting_beyond_block_is_counted)
{
	rig_run(rig, &rig_plugin,
		rig_graph(0, "operators:\n"
			     "  tx: {type: source, parameters: {count: 100, burst: 10}}\n"
			     "  rx: {type: sink}\n"
			     "flows: [{from: tx, to: rx, capacity: 3}]\n"));
	/* A tick begins with room for one at least. */
	cr_expect_eq(rig_row(rig, 0)->sent, 100);
	cr_expect_geq(rig_dropped(rig_row(rig, 0), FRAGI_DROP_NO_ROOM), 70);
	cr_expect_eq(notes[0]->count + rig_dropped(rig_row(rig, 0), FRAGI_DROP_NO_ROOM), 100);
}

RIG_TEST(schedulers, an_emit_that_compute_passes_on_says_what_to_do)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s,
			  "operators:\n"
			  "  tx: {type: source, parameters: {count: 5}}\n"
			  "  mid: {type: middle, ports: {out: {condition: none}}}\n"
			  "  rx: {type: sink, conditions: [{type: boolean, enable_tick: false}]}\n"
			  "flows: [tx -> mid, mid -> rx]\n"));
	cr_expect_eq(rig->failed, 1);
	cr_expect_str_eq(
		rig->sentence,
		"app.mid: cannot emit on port \"out\" in tick 2: no room in the queue of a flow; leave the output its downstream_affordable and emit no more a tick than the capacity, or give the flow a larger capacity or another policy");
	cr_expect(rig_balances(rig));
}

RIG_TEST(schedulers, emitting_beyond_fault_fails_the_application)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, parameters: {count: 100, burst: 10}}\n"
			     "  rx: {type: sink}\n"
			     "flows: [{from: tx, to: rx, capacity: 3, policy: fault}]\n"));
	cr_expect_eq(rig->failed, 1);
	cr_expect_not_null(strstr(rig->sentence, "app.tx: port \"out\": emitted into a full queue"),
			   "%s", rig->sentence);
	cr_expect(rig_balances(rig));
}

Test(schedulers, an_operator_is_never_in_two_threads)
{
	struct rig rig;

	/* Its notes would get lost or out of order, and its ticks would not add up. */
	FOR_EACH_SCHEDULER(s)
	{
		rig_run(&rig, &rig_plugin,
			rig_graph(s, "operators:\n"
				     "  a: {type: source, parameters: {count: 5000}}\n"
				     "  b: {type: source, parameters: {count: 5000}}\n"
				     "  c: {type: source, parameters: {count: 5000}}\n"
				     "  all: {type: gather}\n"
				     "flows:\n"
				     "  - {from: a, to: all, capacity: 3}\n"
				     "  - {from: b, to: all, capacity: 2}\n"
				     "  - {from: c, to: all}\n"));
		cr_expect_eq(notes[0]->count, 15000);
		cr_expect_eq(fragi_run_ledger(rig.run)->ops[3].ticks, 5000);
		rig_end(&rig);
	}
}

/* The receiver has taken its message before it computes, so there is room meanwhile. */
Test(schedulers, neighbours_compute_at_the_same_time)
{
	struct rig rig;

	rig_run(&rig, &rig_plugin,
		"frag: 1\napplication: app\n"
		"scheduler: {type: event_based, worker_thread_number: 2}\n"
		"operators:\n"
		"  tx: {type: source, parameters: {count: 100, work_us: 200, slot: 1}}\n"
		"  rx: {type: sink, parameters: {work_us: 200, beside: 1}}\n"
		"flows: [tx -> rx]\n");
	cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
	cr_expect_eq(notes[0]->count, 100);
	rig_end(&rig);
	notes_clear();
}

RIG_TEST(schedulers, long_ticks_run_in_parallel_and_lose_nothing)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, parameters: {count: 100}}\n"
			     "  a: {type: middle, parameters: {work_us: 300, add: 1}}\n"
			     "  b: {type: middle, parameters: {work_us: 300, add: 1}}\n"
			     "  rx: {type: sink, parameters: {work_us: 300}}\n"
			     "flows: [tx -> a, a -> b, b -> rx]\n"));
	expect_all(notes[0], 2, 100);
}

Test(schedulers, hundreds_of_operators)
{
	static char text[65536];
	struct rig rig;
	int n = snprintf(text, sizeof(text),
			 "operators:\n  tx: {type: source, parameters: {count: 50}}\n");

	for (int i = 0; i < 300; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "  m%d: {type: middle}\n", i);
	n += snprintf(text + n, sizeof(text) - (size_t)n,
		      "  rx: {type: gather}\nflows:\n  - {from: tx, to: [m0");
	for (int i = 1; i < 300; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", m%d", i);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "]}\n");
	for (int i = 0; i < 300; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "  - m%d -> rx\n", i);
	FOR_EACH_SCHEDULER(s)
	{
		rig_run(&rig, &rig_plugin, rig_graph(s, text));
		cr_expect_eq(notes[0]->count, 50 * 300);
		cr_expect(rig_balances(&rig));
		rig_end(&rig);
	}
}

/* From its 2000th tick to its 20000th no memory is to be had. */
struct starved {
	int64_t next;
};
static _Atomic int64_t refused;

static int starved_compute(void *state, struct frag_tick *tick)
{
	struct starved *s = state;

	if (s->next == 2000)
		fragi_alloc_fail_after(0, INT64_MAX);
	if (s->next == 20000)
		atomic_store(&refused, fragi_alloc_fail_off());
	if (s->next == 22000)
		return FRAG_DONE;
	return frag_tick_emit_i64(tick, 0, s->next++);
}

TEST_OP(starved, .state_size = sizeof(struct starved), FRAG_PORTS(source_ports));
TEST_PLUGIN(starved, &starved_type, &middle_type, &sink_type, &gather_type);

Test(schedulers, messages_allocate_nothing_once_warm)
{
	struct rig rig;

	/* On one thread: with more it is luck when each of them makes its first message. */
	for (size_t s = 0; s < 2; s++, notes_clear()) {
		atomic_store(&refused, -1);
		rig_run(&rig, &starved_plugin,
			rig_graph(s, "operators:\n"
				     "  tx: {type: starved}\n"
				     "  a: {type: middle}\n"
				     "  b: {type: middle}\n"
				     "  rx: {type: sink}\n"
				     "  all: {type: gather, parameters: {slot: 1}}\n"
				     "flows:\n"
				     "  - {from: tx, to: [a, b], capacity: 4}\n"
				     "  - {from: a, to: [rx.in, all.receivers], capacity: 4}\n"
				     "  - b -> all\n"));
		cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
		cr_expect_eq(refused, 0, "%lld refused", (long long)refused);
		cr_expect_eq(notes[0]->count, 22000);
		rig_end(&rig);
	}
}
