// SPDX-License-Identifier: Apache-2.0
#include "graph_texts.h"
#include "input_ops.h"

/* What conditions may ask of inputs, queues and memory, and what is refused before a start. */
#define BAD(graph, lines)                                                                          \
	do {                                                                                       \
		struct rig rig;                                                                    \
		cr_expect_lt(                                                                      \
			rig_prepare(&rig, &inputs_plugin, "frag: 1\napplication: app\n" graph),    \
			0);                                                                        \
		expect_errors(&rig.diag, lines);                                                   \
		rig_end(&rig);                                                                     \
	} while (0)

Test(inputs_refused, what_the_queues_can_never_hold_is_refused)
{
	BAD("operators:\n"
	    "  tx: {type: source, conditions: [{type: downstream_affordable, min_size: 3}]}\n"
	    "  rx: {type: sink, conditions: [{type: message_available, min_size: 3}]}\n"
	    "  ry: {type: gather, conditions: [{type: message_available, min_size: 3}]}\n"
	    "  rz: {type: taker, conditions: [{type: expiring_message_available, max_batch_size: 5, max_delay_ns: 1ms}]}\n"
	    "  r2: {type: two, conditions: [{type: multi_message_available, min_sum: 6}]}\n"
	    "  r3: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [2, 3]}]}\n"
	    "  r4: {type: sink, conditions: [{type: message_available, min_size: 2}]}\n"
	    "  ty: {type: source}\n"
	    "flows:\n"
	    "  - {from: tx, to: rx, capacity: 2}\n"
	    "  - {from: tx, to: ry, capacity: 4}\n"
	    "  - {from: ty, to: ry, capacity: 2}\n"
	    "  - {from: tx, to: rz, capacity: 4}\n"
	    "  - {from: tx, to: r2.a, capacity: 3}\n"
	    "  - {from: tx, to: r2.b, policy: latest}\n"
	    "  - {from: ty, to: r3.a, capacity: 2}\n"
	    "  - {from: ty, to: r3.b, capacity: 2}\n"
	    "  - {from: ty, to: r4, policy: latest}\n",
	    "test.yaml:4:35: app.tx: condition downstream_affordable: it asks for room for 3 messages, and a flow of port \"out\" holds 2 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:5:33: app.rx: condition message_available: it asks for 3 messages, and the flow of port \"in\" holds 2 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:6:35: app.ry: condition message_available: it asks for 3 messages, and a flow of port \"receivers\" holds 2 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:7:34: app.rz: condition expiring_message_available: it asks for 5 messages, and the flow of port \"in\" holds 4 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:8:32: app.r2: condition multi_message_available: it asks for 6 messages, and the flows of its inputs hold 4 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:9:32: app.r3: condition multi_message_available: it asks for 3 messages, and the flow of port \"b\" holds 2 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:10:33: app.r4: condition message_available: it asks for 2 messages, and the flow of port \"in\" holds 1 at most; give a larger capacity, or ask for less\n");
	BAD("operators: {ty: {type: source}, rx: {type: sink, conditions: [{type: message_available, min_size: 3, front_stage_max_size: 2}]}}\n"
	    "flows: [{from: ty, to: rx, capacity: 8}]\n",
	    "test.yaml:3:63: app.rx: condition message_available: min_size is 3 and front_stage_max_size 2, so no number of messages is right; lower min_size\n");
}

#define GOOD(graph)                                                                                \
	do {                                                                                       \
		struct rig rig;                                                                    \
		rig_prepare_good(&rig, &inputs_plugin, "frag: 1\napplication: app\n" graph);       \
		rig_end(&rig);                                                                     \
	} while (0)

/* As much as the queues can hold, in each of the ways that the refusals above have. */
Test(inputs_refused, what_fits_is_not_refused)
{
	GOOD("operators:\n"
	     "  tx: {type: source, conditions: [{type: downstream_affordable, min_size: 3}]}\n"
	     "  rx: {type: sink, conditions: [{type: message_available, min_size: 3}]}\n"
	     "  ry: {type: taker, conditions: [{type: message_available, min_size: 6}]}\n"
	     "  rz: {type: sink, conditions: [{type: message_available, min_size: 2, front_stage_max_size: 2}]}\n"
	     "  rw: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [65536, 1]}]}\n"
	     "  ty: {type: source}\n"
	     "flows:\n"
	     "  - {from: tx, to: rx, capacity: 3}\n"
	     "  - {from: tx, to: ry, capacity: 1, policy: pop}\n"
	     "  - {from: ty, to: ry, capacity: 5}\n"
	     "  - {from: ty, to: rz, capacity: 2}\n"
	     "  - {from: ty, to: rw.a, capacity: 65536}\n"
	     "  - {from: ty, to: rw.b, capacity: 1}\n");
	GOOD("operators:\n"
	     "  tx: {type: source}\n"
	     "  ty: {type: source}\n"
	     "  ry: {type: gather, conditions: [{type: message_available, min_size: 3}]}\n"
	     "  rz: {type: taker, conditions: [{type: expiring_message_available, max_batch_size: 4, max_delay_ns: 1ms}]}\n"
	     "  r2: {type: two, conditions: [{type: multi_message_available, min_sum: 4}]}\n"
	     "  r3: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [2, 3]}]}\n"
	     "flows:\n"
	     "  - {from: tx, to: ry, capacity: 3}\n"
	     "  - {from: ty, to: ry, capacity: 4}\n"
	     "  - {from: tx, to: rz, capacity: 4}\n"
	     "  - {from: tx, to: r2.a, capacity: 3}\n"
	     "  - {from: tx, to: r2.b, policy: latest}\n"
	     "  - {from: ty, to: r3.a, capacity: 2}\n"
	     "  - {from: ty, to: r3.b, capacity: 3}\n");
	GOOD("fragments:\n"
	     "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
	     "  two: {operators: {rx: {type: sink, conditions: [{type: message_available, min_size: 5}]}}}\n"
	     "flows: [{from: one.tx, to: two.rx, capacity: 5}]\n");
	GOOD("fragments:\n"
	     "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
	     "  two: {operators: {rx: {type: sink}}}\n"
	     "flows: [{from: one.tx, to: two.rx, capacity: 4, policy: pop}]\n");
	/* What an input asks for says nothing about the room behind an output. */
	GOOD("fragments:\n"
	     "  one:\n"
	     "    operators: {tx: {type: source}, mid: {type: middle, conditions: [{type: message_available, min_size: 5}]}}\n"
	     "    flows: [{from: tx, to: mid, capacity: 5}]\n"
	     "  two: {operators: {rx: {type: sink}}}\n"
	     "flows: [one.mid -> two.rx]\n");
}

Test(inputs_refused, between_fragments_too)
{
	BAD("fragments:\n"
	    "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
	    "  two: {operators: {rx: {type: sink, conditions: [{type: message_available, min_size: 5}]}}}\n"
	    "flows: [one.tx -> two.rx]\n",
	    "test.yaml:5:51: two.rx: condition message_available: it asks for 5 messages, and the flow of port \"in\" holds 4 at most; give a larger capacity, or ask for less\n");
	BAD("fragments:\n"
	    "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
	    "  two: {operators: {rx: {type: sink}}}\n"
	    "flows: [one.tx -> two.rx]\n",
	    "test.yaml:6:9: one.tx: a condition of output \"out\" asks for room for 5 messages, and a flow of it holds 4 at most; give the flow a larger capacity, or ask for less\n");
	/* The condition that asks for most counts, whichever comes first. */
	BAD("fragments:\n"
	    "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}, {type: downstream_affordable, name: again, min_size: 2}]}}}\n"
	    "  two: {operators: {rx: {type: sink}}}\n"
	    "flows: [one.tx -> two.rx]\n",
	    "test.yaml:6:9: one.tx: a condition of output \"out\" asks for room for 5 messages, and a flow of it holds 4 at most; give the flow a larger capacity, or ask for less\n");
	BAD("fragments:\n"
	    "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 2}, {type: downstream_affordable, name: again, min_size: 5}]}}}\n"
	    "  two: {operators: {rx: {type: sink}}}\n"
	    "flows: [one.tx -> two.rx]\n",
	    "test.yaml:6:9: one.tx: a condition of output \"out\" asks for room for 5 messages, and a flow of it holds 4 at most; give the flow a larger capacity, or ask for less\n");
	BAD("fragments:\n"
	    "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
	    "  two: {operators: {rx: {type: sink}}}\n"
	    "flows: [{from: one.tx, to: two.rx, capacity: 4}]\n",
	    "test.yaml:4:53: one.tx: condition downstream_affordable: it asks for room for 5 messages, and the flow of port \"out\" holds 4 at most; give a larger capacity, or ask for less\n");
}

Test(inputs_refused, mistakes_are_refused_with_a_sentence)
{
	BAD("resources: {pool: {type: block_memory_pool, block_size: 64, num_blocks: 2}, heap: {type: unbounded_allocator}, gpu: {type: stream_ordered_allocator, device_memory_initial_size: 1K, device_memory_max_size: 2K}}\n"
	    "operators:\n"
	    "  a: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $pool}]}\n"
	    "  b: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $pool, min_blocks: 3}]}\n"
	    "  c: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $pool, min_bytes: 129}]}\n"
	    "  d: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $heap, min_blocks: 1}]}\n"
	    "  e: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $poll, min_blocks: 1}]}\n"
	    "  f: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, min_blocks: 1}]}\n"
	    "  g: {type: two, conditions: [{type: multi_message_available, min_sizes: [1, 1]}]}\n"
	    "  h: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [1]}]}\n"
	    "  i: {type: two, conditions: [{type: multi_message_available, receivers: [a, c]}]}\n"
	    "  j: {type: two, conditions: [{type: multi_message_available, receivers: [a, a]}]}\n"
	    "  k: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [1, 0]}]}\n"
	    "  l: {type: borrower, parameters: {pool: $pool}, conditions: [{type: multi_message_available}]}\n"
	    "  m: {type: two, conditions: [{type: expiring_message_available, receiver: a, max_batch_size: 2}]}\n"
	    "  n: {type: two, conditions: [{type: multi_message_available_timeout, sampling_mode: Sum}]}\n"
	    "  o: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $gpu, min_bytes: 2049}]}\n"
	    "  p: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $gpu, min_bytes: 2048}]}\n"
	    "  q: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [1, 1, 1]}]}\n"
	    "  r: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [65537, 1]}]}\n"
	    "  ty: {type: source}\n"
	    "flows: [ty -> q.a, ty -> q.b, ty -> r.a, ty -> r.b, ty -> g.a, ty -> g.b, ty -> h.a, ty -> h.b, ty -> i.a, ty -> i.b, ty -> j.a, ty -> j.b, ty -> k.a, ty -> k.b, ty -> m.a, ty -> m.b, ty -> n.a, ty -> n.b]\n",
	    "test.yaml:5:63: app.a: condition memory_available: give either min_bytes or min_blocks, more than 0\n"
	    "test.yaml:6:63: app.b: condition memory_available: min_blocks is 3, and resource \"pool\" has 2 blocks; lower min_blocks, or raise its num_blocks\n"
	    "test.yaml:7:63: app.c: condition memory_available: min_bytes is 129, and resource \"pool\" has 128 bytes; lower min_bytes, or make the pool larger\n"
	    "test.yaml:8:63: app.d: condition memory_available: resource \"heap\" has no blocks; give min_bytes\n"
	    "test.yaml:9:99: app.e: condition memory_available: parameter \"allocator\": there is no resource \"poll\"; did you mean \"pool\"?\n"
	    "test.yaml:10:63: app.f: condition memory_available: parameter \"allocator\" (resource) is required and not set\n"
	    "test.yaml:11:31: app.g: condition multi_message_available: min_sizes counts in sampling_mode PerReceiver only; give min_sum, or that mode\n"
	    "test.yaml:12:31: app.h: condition multi_message_available: min_sizes is a list of 1, and there are 2 inputs; give one number for each\n"
	    "test.yaml:13:31: app.i: condition multi_message_available: there is no input \"c\"; its inputs: a, b\n"
	    "test.yaml:14:31: app.j: condition multi_message_available: port \"a\" is named twice\n"
	    "test.yaml:15:31: app.k: condition multi_message_available: min_sizes has 0; give numbers from 1 to 65536\n"
	    "test.yaml:16:63: app.l: condition multi_message_available: the operator has no inputs\n"
	    "test.yaml:17:31: app.m: condition expiring_message_available: parameter \"max_delay_ns\" (duration) is required and not set\n"
	    "test.yaml:18:31: app.n: condition multi_message_available_timeout: parameter \"execution_frequency\" (duration) is required and not set\n"
	    "test.yaml:18:86: app.n: condition multi_message_available_timeout: parameter \"sampling_mode\": \"Sum\" is not a valid choice; choices: SumOfAll, PerReceiver\n"
	    "test.yaml:19:63: app.o: condition memory_available: min_bytes is 2049, and resource \"gpu\" has 2048 bytes; lower min_bytes, or make the pool larger\n"
	    "test.yaml:21:31: app.q: condition multi_message_available: min_sizes is a list of 3, and there are 2 inputs; give one number for each\n"
	    "test.yaml:22:31: app.r: condition multi_message_available: min_sizes has 65537; give numbers from 1 to 65536\n");
}
