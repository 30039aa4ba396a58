// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <frag/track.h>
#include <run/state.h>

#include <data/pool.h>

#include "rig_ops.h"

/* Data flow tracking of whole graphs: which paths there are, and how many messages took each. */

/* Passes on the message that it received, which others may hold too. */
static int pass_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = frag_tick_receive(tick, MIDDLE_IN, &message);

	return r < 0 ? (r == -ENOMSG ? 0 : r)
		     : frag_tick_emit(tick, MIDDLE_OUT, frag_message_ref(message));
}
TEST_OP(pass, FRAG_PORTS(middle_ports));

/* Takes two calls of compute for each tick, and emits in the second one. */
struct twice {
	bool again;
	int64_t value;
};
static int twice_compute(void *state, struct frag_tick *tick)
{
	struct twice *s = state;
	int r;

	if (!s->again) {
		r = frag_tick_receive_i64(tick, MIDDLE_IN, &s->value);
		if (r < 0)
			return r == -ENOMSG ? 0 : r;
		s->again = true;
		frag_op_resume(frag_tick_op(tick));
		return FRAG_PENDING;
	}
	s->again = false;
	return frag_tick_emit_i64(tick, MIDDLE_OUT, s->value);
}
TEST_OP(twice, .state_size = sizeof(struct twice), FRAG_PORTS(middle_ports));

/* Takes one message from each of two inputs, and from a third one if there is one. */
static const struct frag_port join_ports[] = {
	{.name = "a", .dir = FRAG_IN, .type = "i64"},
	{.name = "b", .dir = FRAG_IN, .type = "i64"},
	/* two: a second tick may send before the first message has come round */
	{.name = "back",
	 .dir = FRAG_IN,
	 .type = "i64",
	 .capacity = 2,
	 .flags = FRAG_PORT_NO_CONDITION | FRAG_PORT_OPTIONAL},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static int join_compute(void *state, struct frag_tick *tick)
{
	int64_t value;

	for (uint32_t port = 0; port < 3; port++)
		(void)frag_tick_receive_i64(tick, port, &value);
	return frag_tick_emit_i64(tick, 3, 1);
}
TEST_OP(join, FRAG_PORTS(join_ports));

static struct frag_tracker *composed;

static int compose(struct frag_fragment *fragment)
{
	struct frag_op *tx = frag_make_operator(fragment, "tx", "source",
						FRAG_ARGS({"count", "9"})),
		       *rx = frag_make_operator(fragment, "rx", "sink", FRAG_NO_ARGS);

	composed = frag_fragment_track(fragment, 2, 3, 0, 0);
	return frag_add_flow(fragment, tx, NULL, rx, NULL);
}
static const char *probe;
static int compose_probed(struct frag_fragment *fragment)
{
	int r = compose(fragment);

	cr_expect_eq(frag_tracker_add_probe_operator(composed, ""), -EINVAL);
	cr_expect_eq(frag_tracker_add_probe_operator(composed, NULL), -EINVAL);
	for (int i = 0; r == 0 && i < 2; i++)
		r = frag_tracker_add_probe_operator(composed, probe);
	return r;
}
static int compose_badly(struct frag_fragment *fragment)
{
	cr_expect_null(frag_fragment_track(fragment, 0, FRAG_TRACK_DISCARD_MAX + 1, 0, 0));
	return compose(fragment);
}
static const struct frag_composer composers[] = {{.name = "tracked", .compose = compose},
						 {.name = "badly", .compose = compose_badly},
						 {.name = "probed", .compose = compose_probed}};

static const struct frag_op_type *const types[] = {&source_type, &middle_type, &sink_type,
						   &gather_type, &taker_type,  &ring_type,
						   &pass_type,   &twice_type,  &join_type};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT, .name = "rig", FRAG_OPS(types),
					  FRAG_COMPOSERS(composers)};

#define EXACT "num_start_messages_to_skip: 0, num_last_messages_to_discard: 0, print: false"
#define EVERY "tracking: {" EXACT "}\n"

static struct frag_tracker *tracker_of(const struct rig *rig, size_t fragment)
{
	return frag_fragment_tracker(rig->run->fragments[fragment].fragment);
}

/* Returns how many messages took a path; -1: it does not exist. */
static double messages(struct frag_tracker *tracker, const char *path)
{
	double value = -1;

	(void)frag_tracker_metric(tracker, path, FRAG_TRACK_NUM_DST_MESSAGES, &value);
	return value;
}

static double metric(struct frag_tracker *tracker, const char *path, enum frag_track_metric m)
{
	double value = -1;

	cr_assert_eq(frag_tracker_metric(tracker, path, m, &value), 0, "%s", path);
	return value;
}

static uint64_t sent(struct frag_tracker *tracker, const char *source)
{
	uint64_t n;
	const char *name;

	for (uint32_t i = 0; (name = frag_tracker_source(tracker, i, &n)) != NULL; i++)
		if (strcmp(name, source) == 0)
			return n;
	cr_assert_fail("no source %s", source);
	return 0;
}

Test(tracking, a_chain_is_one_path)
{
	FOR_EACH_SCHEDULER(s)
	{
		struct rig rig;
		struct frag_tracker *t;
		double max, average, min;

		rig_run(&rig, &plugin,
			rig_graph(s, "tracking: {num_start_messages_to_skip: 3,\n"
				     "  num_last_messages_to_discard: 4, print: false}\n"
				     "operators:\n"
				     "  tx: {type: source, parameters: {count: 20}}\n"
				     "  mx: {type: middle, parameters: {work_us: 20}}\n"
				     "  rx: {type: sink}\n"
				     "flows: [tx -> mx, mx -> rx]\n"));
		t = tracker_of(&rig, 0);
		cr_assert_eq(frag_tracker_num_paths(t), 1);
		cr_expect_str_eq(frag_tracker_path(t, 0), "tx,mx,rx");
		cr_expect_eq(messages(t, "tx,mx,rx"), 13);
		max = metric(t, "tx,mx,rx", FRAG_TRACK_MAX_E2E_LATENCY);
		average = metric(t, "tx,mx,rx", FRAG_TRACK_AVG_E2E_LATENCY);
		min = metric(t, "tx,mx,rx", FRAG_TRACK_MIN_E2E_LATENCY);
		cr_expect(max >= average && average >= min);
		cr_expect_geq(min, 0.019, "mx alone works longer than %f ms", min);
		cr_expect_geq(metric(t, "tx,mx,rx", FRAG_TRACK_MAX_MESSAGE_ID), 1);
		cr_expect_leq(metric(t, "tx,mx,rx", FRAG_TRACK_MAX_MESSAGE_ID), 13);
		cr_expect_eq(sent(t, "tx->out"), 20);
		cr_expect_eq(notes[0]->count, 20);
		cr_expect_eq(frag_tracker_untracked(t), 0);
		rig_end(&rig);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

RIG_TEST(tracking, fan_out_and_fan_in)
{
	struct frag_tracker *t;

	rig_run(rig, &plugin,
		rig_graph(s, EVERY
			  "operators:\n"
			  "  tx: {type: source, parameters: {count: 10}}\n"
			  "  a: {type: middle}\n"
			  "  b: {type: middle, parameters: {slot: 13}}\n"
			  "  all: {type: gather}\n"
			  "  one: {type: sink, parameters: {slot: 1}}\n"
			  "flows:\n  - {from: tx, to: [a, b, one]}\n  - a -> all\n  - b -> all\n"));
	t = tracker_of(rig, 0);
	cr_expect_eq(frag_tracker_num_paths(t), 3);
	cr_expect_eq(messages(t, "tx,a,all"), 10);
	cr_expect_eq(messages(t, "tx,b,all"), 10);
	cr_expect_eq(messages(t, "tx,one"), 10);
	cr_expect_eq(sent(t, "tx->out"), 10, "messages, not flows");
}

/* The message is one for all its receivers, and each finds the path that it came by. */
Test(tracking, a_forwarded_message_keeps_its_paths_apart)
{
	FOR_EACH_SCHEDULER(s)
	{
		struct rig rig;
		struct frag_tracker *t;

		rig_run(&rig, &plugin,
			rig_graph(s, EVERY "operators:\n"
					   "  tx: {type: source, parameters: {count: 50}}\n"
					   "  p: {type: pass}\n"
					   "  q: {type: pass}\n"
					   "  near: {type: sink}\n"
					   "  far: {type: sink, parameters: {slot: 1}}\n"
					   "flows:\n"
					   "  - {from: tx, to: [p, near]}\n"
					   "  - p -> q\n"
					   "  - q -> far\n"));
		t = tracker_of(&rig, 0);
		cr_expect_eq(frag_tracker_num_paths(t), 2);
		cr_expect_eq(messages(t, "tx,near"), 50);
		cr_expect_eq(messages(t, "tx,p,q,far"), 50);
		cr_expect_eq(notes[1]->count, 50);
		rig_end(&rig);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

RIG_TEST(tracking, a_cycle_ends_where_it_began)
{
	struct frag_tracker *t;

	rig_run(rig, &plugin,
		rig_graph(s, EVERY "operators:\n"
				   "  r: {type: ring}\n"
				   "  m: {type: middle, parameters: {done_after: 6}}\n"
				   "flows: [r -> m, m -> r]\n"));
	t = tracker_of(rig, 0);
	cr_expect_eq(frag_tracker_num_paths(t), 1);
	cr_expect_str_eq(frag_tracker_path(t, 0), "r,m,r");
	cr_expect_eq(messages(t, "r,m,r"), notes[0]->count);
}

/* Two sources feed it in each turn. Its own paths begin with the second turn. */
Test(tracking, a_path_begins_where_a_cycle_with_sources_ends)
{
	FOR_EACH_SCHEDULER(s)
	{
		struct rig rig;
		struct frag_tracker *t;

		rig_run(&rig, &plugin,
			rig_graph(s, EVERY "operators:\n"
					   "  root1: {type: source, parameters: {count: 50}}\n"
					   "  root2: {type: source, parameters: {count: 50}}\n"
					   "  middle1: {type: pass}\n"
					   "  middle2: {type: join}\n"
					   "  last: {type: pass}\n"
					   "flows: [root1 -> middle1, middle1.out -> middle2.a, "
					   "root2.out -> middle2.b, middle2 -> last, "
					   "last.out -> middle2.back]\n"));
		t = tracker_of(&rig, 0);
		cr_expect_eq(frag_tracker_num_paths(t), 3);
		cr_expect_gt(messages(t, "middle2,last,middle2"), 0);
		if (s == 0) {
			cr_expect_eq(messages(t, "root1,middle1,middle2,last,middle2"), 49);
			cr_expect_eq(messages(t, "root2,middle2,last,middle2"), 49);
			cr_expect_eq(messages(t, "middle2,last,middle2"), 48);
		}
		rig_end(&rig);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

/* Each probe is the end of a path to it, beside those that go on, and counts what it sends. */
static const struct {
	const char *graph;
	struct {
		const char *name;
		int count; /* -1: some */
	} paths[8], sources[5];
} probed[] = {
	{"tracking: {" EXACT ", probes: [mx]}\n"
	 "operators: {tx: {type: source, parameters: {count: 10}}, mx: {type: middle},\n"
	 "            rx: {type: sink}}\n"
	 "flows: [tx -> mx, mx -> rx]\n",
	 {{"tx,mx", 10}, {"tx,mx,rx", 10}},
	 {{"tx->out", 10}, {"mx->out", 10}}},
	/* roots and leaves are ends already, and the same one again adds nothing */
	{"tracking: {" EXACT ", probes: [tx, mx, rx, mx]}\n"
	 "operators: {tx: {type: source, parameters: {count: 10}}, mx: {type: middle},\n"
	 "            rx: {type: sink}}\n"
	 "flows: [tx -> mx, mx -> rx]\n",
	 {{"tx,mx", 10}, {"tx,mx,rx", 10}},
	 {{"tx->out", 10}, {"mx->out", 10}}},
	{"tracking: {" EXACT ", probes: [m1, m2, m3]}\n"
	 "operators: {tx: {type: source, parameters: {count: 10}}, m1: {type: pass}, \n"
	 "            m2: {type: pass}, m3: {type: join}, rx: {type: sink}}\n"
	 "flows: [tx -> m1, tx -> m2, m1.out -> m3.a, m2.out -> m3.b, m3 -> rx]\n",
	 {{"tx,m1", 10},
	  {"tx,m2", 10},
	  {"tx,m1,m3", 10},
	  {"tx,m2,m3", 10},
	  {"tx,m1,m3,rx", 10},
	  {"tx,m2,m3,rx", 10}},
	 {{"tx->out", 10}, {"m1->out", 10}, {"m2->out", 10}, {"m3->out", 10}}},
	{"tracking: {" EXACT ", probes: [m]}\n"
	 "operators: {r: {type: ring}, m: {type: middle, parameters: {done_after: 6}}}\n"
	 "flows: [r -> m, m -> r]\n",
	 {{"r,m", -1}, {"r,m,r", -1}},
	 {{"m->out", -1}}},
	/* a turn that begins at a probe leads nowhere yet */
	{"tracking: {" EXACT ", probes: [middle]}\n"
	 "operators: {root1: {type: source, parameters: {count: 50}},\n"
	 "            root2: {type: source, parameters: {count: 50}},\n"
	 "            middle: {type: join}, last: {type: pass}}\n"
	 "flows: [root1.out -> middle.a, root2.out -> middle.b, middle -> last,\n"
	 "        last.out -> middle.back]\n",
	 {{"root1,middle", 50},
	  {"root2,middle", 50},
	  {"root1,middle,last,middle", -1},
	  {"root2,middle,last,middle", -1},
	  {"middle,last,middle", -1}},
	 {{"root1->out", 50}, {"root2->out", 50}, {"middle->out", 50}}},
};

Test(tracking, paths_to_probes_are_counted_too)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(probed); i++)
		FOR_EACH_SCHEDULER(s)
		{
			struct rig rig;
			struct frag_tracker *t;
			uint32_t paths = 0, sources = 0;
			uint64_t n;

			rig_run(&rig, &plugin, rig_graph(s, probed[i].graph));
			t = tracker_of(&rig, 0);
			for (; probed[i].paths[paths].name != NULL; paths++) {
				int count = probed[i].paths[paths].count;
				double all = messages(t, probed[i].paths[paths].name);

				cr_expect(count < 0 ? all > 0 : all == count, "%zu %s: %f", i,
					  probed[i].paths[paths].name, all);
			}
			cr_expect_eq(frag_tracker_num_paths(t), paths, "%zu: %s", i,
				     frag_tracker_describe(t));
			for (; probed[i].sources[sources].name != NULL; sources++) {
				int count = probed[i].sources[sources].count;

				n = sent(t, probed[i].sources[sources].name);
				cr_expect(count < 0 ? n > 0 : n == (uint64_t)count, "%zu %s", i,
					  probed[i].sources[sources].name);
			}
			cr_expect_null(frag_tracker_source(t, sources, &n));
			rig_end(&rig);
		}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

Test(tracking, what_was_dropped_has_not_arrived)
{
	FOR_EACH_SCHEDULER(s)
	{
		struct rig rig;
		struct frag_tracker *t;

		rig_run(&rig, &plugin,
			rig_graph(s,
				  EVERY "operators:\n"
					"  tx: {type: source, parameters: {count: 60, burst: 6}}\n"
					"  rx: {type: sink}\n"
					"flows: [{from: tx, to: rx, capacity: 2, policy: pop}]\n"));
		t = tracker_of(&rig, 0);
		cr_expect_eq(messages(t, "tx,rx"), notes[0]->count);
		if (s < RIG_ONE_THREAD)
			cr_expect_lt(notes[0]->count, 60);
		cr_expect_eq(sent(t, "tx->out"), 60);
		rig_end(&rig);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

RIG_ONE_TEST(tracking, limited_tracking_sees_the_ends_only)
{
	struct frag_tracker *t;

	rig_run(rig, &plugin,
		"frag: 1\napplication: app\n"
		"tracking: {num_start_messages_to_skip: 0, num_last_messages_to_discard: 0,\n"
		"  is_limited_tracking: true, print: false}\n"
		"operators:\n"
		"  tx: {type: source, parameters: {count: 10}}\n"
		"  a: {type: middle}\n"
		"  b: {type: middle, parameters: {slot: 13}}\n"
		"  all: {type: gather}\n"
		"flows:\n  - {from: tx, to: [a, b]}\n  - a -> all\n  - b -> all\n");
	t = tracker_of(rig, 0);
	cr_expect_eq(frag_tracker_num_paths(t), 1);
	cr_expect_eq(messages(t, "tx,all"), 20, "by a and by b");
}

RIG_ONE_TEST(tracking, every_message_of_a_batch_counts)
{
	rig_run(rig, &plugin,
		rig_graph(0, EVERY "operators:\n"
				   "  tx: {type: source, parameters: {count: 20, burst: 5}}\n"
				   "  rx: {type: taker}\n"
				   "flows: [{from: tx, to: rx, capacity: 8}]\n"));
	cr_expect_lt(notes[0]->count, 20, "some came together");
	cr_expect_eq(messages(tracker_of(rig, 0), "tx,rx"), 20);
}

RIG_TEST(tracking, a_tick_that_was_pending_is_one)
{
	struct frag_tracker *t;

	rig_run(rig, &plugin,
		rig_graph(s, EVERY "operators:\n"
				   "  tx: {type: source, parameters: {count: 10}}\n"
				   "  w: {type: twice}\n"
				   "  rx: {type: sink}\n"
				   "flows: [tx -> w, w -> rx]\n"));
	t = tracker_of(rig, 0);
	cr_expect_eq(frag_tracker_num_paths(t), 1);
	cr_expect_eq(messages(t, "tx,w,rx"), 10);
	rig_end(rig);
	rig_run(rig, &plugin,
		rig_graph(s, EVERY "operators:\n"
				   "  tx: {type: source, parameters: {count: 10}}\n"
				   "  w: {type: twice}\n"
				   "flows: [tx -> w]\n"));
	cr_expect_eq(messages(tracker_of(rig, 0), "tx,w"), 10, "w is the leaf now");
}

#define TWO                                                                                        \
	"  f1: {operators: {tx: {type: source, parameters: {count: 10}}}%s}\n"                     \
	"  f2: {operators: {rx: {type: sink}}}\n"                                                  \
	"flows: [f1.tx -> f2.rx]\n"

RIG_ONE_TEST(tracking, of_all_fragments_or_of_one)
{
	char text[1024];

	snprintf(text, sizeof(text), "frag: 1\napplication: app\n" EVERY "fragments:\n" TWO, "");
	rig_run(rig, &plugin, text);
	cr_expect_eq(tracker_of(rig, 0), tracker_of(rig, 1));
	cr_expect_eq(messages(tracker_of(rig, 0), "f1.tx,f2.rx"), 10);
	cr_expect_eq(frag_tracker_num_paths(tracker_of(rig, 0)), 1);
	cr_expect_eq(sent(tracker_of(rig, 0), "f1.tx->out"), 10);
	rig_end(rig);

	snprintf(
		text, sizeof(text), "frag: 1\napplication: app\nfragments:\n" TWO,
		", tracking: {num_start_messages_to_skip: 4, num_last_messages_to_discard: 0, print: false}");
	rig_run(rig, &plugin, text);
	cr_expect_null(tracker_of(rig, 1));
	cr_expect_geq(messages(tracker_of(rig, 0), "tx"), 6, "root and leaf, each tick");
	cr_expect_eq(sent(tracker_of(rig, 0), "tx->out"), 10);
	rig_end(rig);

	snprintf(text, sizeof(text), "frag: 1\napplication: app\nfragments:\n" TWO, "");
	rig_run(rig, &plugin, text);
	cr_expect_null(tracker_of(rig, 0));
}

RIG_ONE_TEST(tracking, by_a_composer)
{
	rig_run(rig, &plugin, "frag: 1\napplication: app\ncompose: tracked\n");
	cr_assert_eq(tracker_of(rig, 0), composed);
	cr_expect_eq(messages(composed, "tx,rx"), 4);
	rig_end(rig);
	rig_run(rig, &plugin,
		"frag: 1\napplication: app\ncompose: tracked\n"
		"tracking: {num_start_messages_to_skip: 8, num_last_messages_to_discard: 0, print: false}\n");
	cr_expect_eq(messages(tracker_of(rig, 0), "tx,rx"), 1, "the graph wins");
	rig_end(rig);
	cr_expect_lt(rig_prepare(rig, &plugin, "frag: 1\napplication: app\ncompose: badly\n"), 0);
	cr_assert_eq(rig->diag.count, 1);
	cr_expect(strstr(rig->diag.items[0].text,
			 "cannot track: 10001 messages to discard are more than 10000") != NULL,
		  "%s", rig->diag.items[0].text);
}

Test(tracking, a_composer_names_probes)
{
	static const char *const probes[] = {"mx", "app.mx", "other.mx"};

	for (size_t i = 0; i < FRAG_COUNT_OF(probes); i++, notes_clear()) {
		static const char text[] = "frag: 1\napplication: app\ncompose: probed\n"
					   "operators: {mx: {type: middle}, end: {type: sink,\n"
					   "            parameters: {slot: 1}}}\n"
					   "flows: [tx -> mx, mx -> end]\n";
		struct rig rig;

		probe = probes[i];
		if (i < 2) {
			rig_run(&rig, &plugin, text);
			cr_expect_eq(messages(composed, "tx,mx"), 4);
			cr_expect_eq(messages(composed, "tx,mx,end"), 4);
			cr_expect_eq(sent(composed, "mx->out"), 9);
		} else {
			cr_expect_lt(rig_prepare(&rig, &plugin, text), 0);
			cr_assert_eq(rig.diag.count, 1);
			cr_expect_str_eq(
				rig.diag.items[0].text,
				"app: data flow tracking has the probe other.mx, and there is no such operator");
		}
		rig_end(&rig);
	}
}

/* 70 paths meet in one tick of the leaf; a message carries 64. */
RIG_ONE_TEST(tracking, paths_in_a_message_are_bounded)
{
	static char text[16384];
	size_t n = (size_t)sprintf(text, EVERY "operators:\n"
					       "  tx: {type: source, parameters: {count: 3}}\n"
					       "  all: {type: gather}\n");
	double most;

	for (int i = 0; i < 70; i++)
		n += (size_t)sprintf(text + n, "  m%d: {type: middle}\n", i);
	n += (size_t)sprintf(text + n, "flows:\n");
	for (int i = 0; i < 70; i++)
		n += (size_t)sprintf(text + n, "  - tx -> m%d\n  - m%d -> all\n", i, i);
	rig_run(rig, &plugin, rig_graph(0, text));
	cr_expect_eq(frag_tracker_num_paths(tracker_of(rig, 0)), 64);
	cr_expect_eq(frag_tracker_untracked(tracker_of(rig, 0)), 3 * 6);
	most = messages(tracker_of(rig, 0), "tx,m63,all");
	cr_expect_eq(most, 3);
}

/* Reads the next entry of a log with one path. Returns its number; 0: there is none. */
static int read_entry(FILE *log, char *names, long long times[6])
{
	char a[64], b[64], c[64];
	int number = 0;

	if (fscanf(log, "%d:\n(%63[^,],%lld,%lld) -> (%63[^,],%lld,%lld) -> (%63[^,],%lld,%lld)\n",
		   &number, a, &times[0], &times[1], b, &times[2], &times[3], c, &times[4],
		   &times[5]) != 10)
		return 0;
	sprintf(names, "%s,%s,%s", a, b, c);
	return number;
}

RIG_ONE_TEST(tracking, the_log_has_every_path_of_every_message)
{
	char path[] = "/tmp/frag-track-XXXXXX", text[1024], names[256];
	int fd = mkstemp(path), number = 0;
	long long times[6];
	FILE *log;

	cr_assert_geq(fd, 0);
	snprintf(text, sizeof(text),
		 "frag: 1\napplication: app\n"
		 "tracking: {log: %s, num_buffered_messages: 7, print: false}\n"
		 "operators:\n"
		 "  tx: {type: source, parameters: {count: 30}}\n"
		 "  mx: {type: middle}\n"
		 "  rx: {type: sink}\n"
		 "flows: [tx -> mx, mx -> rx]\n",
		 path);
	rig_run(rig, &plugin, text);
	rig_end(rig);
	close(fd);
	log = fopen(path, "r");
	while (read_entry(log, names, times) > 0) {
		number++;
		cr_expect_str_eq(names, "tx,mx,rx");
		for (int i = 1; i < 6; i++)
			cr_expect_geq(times[i], times[i - 1], "entry %d, time %d", number, i);
		cr_expect_gt(times[0], 1600000000000000, "microseconds of Unix time");
	}
	cr_expect_eq(number, 30);
	fclose(log);
	unlink(path);
	cr_expect_lt(rig_prepare(rig, &plugin,
				 "frag: 1\napplication: app\ntracking: {log: /nowhere/x}\n"
				 "operators: {tx: {type: source}}\n"),
		     0);
	cr_assert_eq(rig->diag.count, 1);
	cr_expect_str_eq(
		rig->diag.items[0].text,
		"cannot write the log of data flow tracking, /nowhere/x: No such file or directory; name another file",
		"%s", rig->diag.items[0].text);
}
