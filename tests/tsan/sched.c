// SPDX-License-Identifier: Apache-2.0
/* Graphs of every shape on pools of threads, for ThreadSanitizer; what arrived is checked too. */
#include "../unit/rig_ops.h"

static const char *const schedulers[] = {
	"{type: greedy}",
	"{type: event_based, worker_thread_number: 1}",
	"{type: event_based, worker_thread_number: 2}",
	"{type: event_based, worker_thread_number: 4}",
};

#define CHECK(what)                                                                                          \
	do {                                                                                                 \
		if (!(what))                                                                                 \
			RIG_FAIL("%s:%d: %s\n", __FILE__, __LINE__, #what);                                  \
	} while (0)

static void run_all(const char *name, const char *graph, int64_t count, int64_t add)
{
	static char text[70000];
	struct rig rig;

	for (size_t s = 0; s < FRAG_COUNT_OF(schedulers); s++) {
		notes_clear();
		for (int64_t i = 0; i < SLOTS; i++) /* before threads could make one at the same time */
			note_of(i);
		snprintf(text, sizeof(text), "frag: 1\napplication: app\nscheduler: %s\n%s", schedulers[s],
			 graph);
		rig_run(&rig, &rig_plugin, text);
		CHECK(rig.failed == 0);
		CHECK(notes[0]->count == count);
		for (int64_t i = 0; add >= 0 && i < count; i++)
			CHECK(notes[0]->values[i] == i + add);
		CHECK(rig_balances(&rig));
		rig_end(&rig);
		fprintf(stderr, "%s: %s\n", name, schedulers[s]);
	}
}

static void drain_and_halt(void)
{
	char text[1024];
	struct rig rig;

	for (size_t s = 0; s < FRAG_COUNT_OF(schedulers); s++) {
		for (int halt = 0; halt < 2; halt++) {
			notes_clear();
			for (int64_t i = 0; i < SLOTS; i++)
				note_of(i);
			snprintf(text, sizeof(text),
				 "frag: 1\napplication: app\nscheduler: %s\n"
				 "operators: {tx: {type: source}, m: {type: middle}, rx: {type: sink}}\n"
				 "flows: [{from: tx, to: m, capacity: 5}, {from: m, to: rx, capacity: 3}]\n",
				 schedulers[s]);
			CHECK(rig_prepare(&rig, &rig_plugin, text) == 0);
			rig_start(&rig);
			while (notes[0]->count < 100)
				usleep(200);
			if (halt)
				fragi_run_halt(rig.run);
			else
				fragi_run_drain(rig.run);
			CHECK(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS));
			CHECK(rig_balances(&rig));
			if (!halt)
				CHECK(rig_dropped_all(rig_row(&rig, 1)) == 0);
			rig_end(&rig);
		}
	}
}

/* Fragments with pools of their own, flows in both directions between them. */
static void between_fragments(void)
{
	char text[2048];
	struct rig rig;

	for (size_t s = 0; s < FRAG_COUNT_OF(schedulers); s++) {
		notes_clear();
		for (int64_t i = 0; i < SLOTS; i++)
			note_of(i);
		snprintf(text, sizeof(text),
			 "frag: 1\napplication: app\nfragments:\n"
			 "  one: {scheduler: %s, operators: {tx: {type: source, parameters: {count: 2000}},\n"
			 "        rx: {type: sink, parameters: {slot: 1}}}}\n"
			 "  two: {scheduler: {type: event_based, worker_thread_number: 3}, operators: {\n"
			 "        m: {type: middle, parameters: {add: 5}}, rx: {type: sink}}, flows: [m -> "
			 "rx]}\n"
			 "flows: [one.tx -> two.m, two.m -> one.rx]\n",
			 schedulers[s]);
		rig_run(&rig, &rig_plugin, text);
		CHECK(notes[0]->count == 2000 && notes[1]->count == 2000);
		rig_end(&rig);
	}
}

int main(void)
{
	run_all("pair",
		"operators: {tx: {type: source, parameters: {count: 5000}}, rx: {type: sink}}\n"
		"flows: [tx -> rx]\n",
		5000, 0);
	run_all("pair, capacity 16",
		"operators: {tx: {type: source, parameters: {count: 5000}}, rx: {type: sink}}\n"
		"flows: [{from: tx, to: rx, capacity: 16}]\n",
		5000, 0);
	run_all("chain of long ticks",
		"operators: {tx: {type: source, parameters: {count: 300}},\n"
		"  a: {type: middle, parameters: {work_us: 60, add: 1}},\n"
		"  b: {type: middle, parameters: {work_us: 60, add: 1}},\n"
		"  c: {type: middle, parameters: {work_us: 60, add: 1}}, rx: {type: sink}}\n"
		"flows: [{from: tx, to: a, capacity: 2}, {from: a, to: b, capacity: 2},\n"
		"        {from: b, to: c, capacity: 2}, {from: c, to: rx, capacity: 2}]\n",
		300, 3);
	run_all("fan out and in",
		"operators: {tx: {type: source, parameters: {count: 1000}}, a: {type: middle}, b: {type: "
		"middle},\n"
		"  c: {type: middle, parameters: {work_us: 5}}, rx: {type: gather}}\n"
		"flows: [{from: tx, to: [a, b, c], capacity: 3}, a -> rx, b -> rx, c -> rx]\n",
		3000, -1);
	run_all("periods",
		"operators: {tx: {type: source, parameters: {count: 100},\n"
		"                 conditions: [{type: periodic, recess_period: 1ms}]},\n"
		"  other: {type: source, parameters: {count: 30, slot: 5},\n"
		"          conditions: [{type: periodic, recess_period: 3ms}]},\n"
		"  rx: {type: sink}, rx2: {type: sink, parameters: {slot: 6}}}\n"
		"flows: [tx -> rx, other -> rx2]\n",
		100, 0);
	for (int i = 0; i < 3; i++) {
		drain_and_halt();
		between_fragments();
	}
	return 0;
}
