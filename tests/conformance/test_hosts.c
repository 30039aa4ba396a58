// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include "../unit/cycle_ops.h"
#include "../unit/stamp_ops.h"
#include <base/identity.h>
#include <edge/ucx_env.h>

/*
 * Runs of two hosts, both in this process, with an edge over UCX or shared memory for each flow
 * between them; the test is the driver: it gives both sides the flows' links.
 */
#define SET(name, value) setenv(name, value, 0);

static void set_environment(void)
{
	FRAGI_UCX_ENV(SET)
	setenv("UCX_NET_DEVICES", "lo", 0);
	fragi_log_init(0);
}

static void over_ucx(void)
{
	set_environment();
	rig_transports[0] = "ucx";
}

static void over_shm(void)
{
	set_environment();
	rig_transports[0] = "shm";
}

/* A test for each transport, in a process of its own. */
#define HOSTS_TEST(what)                                                                           \
	static void what(void);                                                                    \
	Test(hosts, what, .init = over_ucx)                                                        \
	{                                                                                          \
		what();                                                                            \
	}                                                                                          \
	Test(hosts_shm, what, .init = over_shm)                                                    \
	{                                                                                          \
		what();                                                                            \
	}                                                                                          \
	static void what(void)

#define HOSTS 2

/* a flow between the hosts */
struct cut {
	const char *from_op, *from_port, *to_op, *to_port; /* in the fragments' tables */
	uint32_t from_fragment, to_fragment;               /* index within its host */
	uint32_t from_host;
	uint32_t window;
	enum frag_policy policy;
	uint32_t order; /* in the text */
};

struct hosts {
	struct rig rig[HOSTS];
};

static uint32_t op_index(const struct fragi_fragment_info *info, const char *name)
{
	uint32_t i = 0;

	while (strcmp(info->ops[i].name, name) != 0)
		i++;
	return i;
}

static uint32_t port_index(const struct fragi_op_info *info, const char *name)
{
	uint32_t i = 0;

	while (strcmp(info->ports[i].name, name) != 0)
		i++;
	return i;
}

static bool is_encrypted;

/* The hosts take each other for hosts whose clocks cannot be compared with their own. */
static bool is_other_machine;

/* The address of a host that has another clock, valid until the next call. */
static const void *with_other_clock(const struct fragi_run_address *address)
{
	static uint8_t bytes[FRAGI_HOST_ADDRESS_MAX];
	char clock[FRAGI_IDENTITY_SIZE];
	uint8_t *at;

	cr_assert_eq(fragi_identity_clock(false, clock), 0);
	memcpy(bytes, address->bytes, address->size);
	at = memmem(bytes, address->size, clock, strlen(clock) + 1);
	cr_assert_not_null(at, "no clock in the address");
	at[strlen(clock) - 1] ^= 1;
	return bytes;
}

static void wire(struct hosts *hosts, const struct cut *cuts, size_t count)
{
	struct fragi_run_edge edges[16];
	static char names[16][200];
	struct frag_err err = FRAG_ERR_INIT;

	for (uint32_t h = 0; h < HOSTS; h++) {
		struct fragi_run_peer peer = {.host = 1 - h, .epoch = 1, .name = "other"};
		struct fragi_run_address addresses[FRAGI_HOST_TRANSPORTS_MAX];
		size_t unused;

		peer.address_count = fragi_run_addresses(hosts->rig[1 - h].run, addresses);
		cr_assert_eq(peer.address_count, 1);
		if (is_other_machine)
			addresses[0].bytes = with_other_clock(&addresses[0]);
		peer.addresses = addresses;
		for (size_t i = 0; i < count; i++) {
			const struct cut *c = &cuts[i];
			const struct fragi_fragment_info *from =
				fragi_run_fragments(hosts->rig[c->from_host].run, &unused);
			const struct fragi_fragment_info *to =
				fragi_run_fragments(hosts->rig[1 - c->from_host].run, &unused);
			bool sends = c->from_host == h;
			const struct fragi_fragment_info *here =
				sends ? &from[c->from_fragment] : &to[c->to_fragment];

			from += c->from_fragment;
			to += c->to_fragment;
			edges[i] = (struct fragi_run_edge){
				.config = {.flow = (uint32_t)i,
					   .token = {1, 2, (uint8_t)i},
					   .window_messages = c->window > 0 ? c->window : 4,
					   .window_bytes = FRAGI_WINDOW_BYTES,
					   .message_bytes_max = FRAGI_MESSAGE_BYTES_MAX,
					   .policy = c->policy != FRAG_POLICY_DEFAULT
							     ? c->policy
							     : FRAG_POLICY_BLOCK,
					   .encrypt = is_encrypted},
				.transport = rig_transports[0],
				.sends = sends,
				.fragment = sends ? c->from_fragment : c->to_fragment,
				.op = op_index(here, sends ? c->from_op : c->to_op),
				.peer = 1 - h,
				.order = c->order,
				.other_end = names[i],
			};
			edges[i].port = port_index(&here->ops[edges[i].op],
						   sends ? c->from_port : c->to_port);
			if (sends)
				snprintf(names[i], sizeof(names[i]), "%s.%s.%s", to->name, c->to_op,
					 c->to_port);
			else
				snprintf(names[i], sizeof(names[i]), "%s.%s.%s", from->name,
					 c->from_op, c->from_port);
		}
		cr_assert_eq(fragi_run_wire(hosts->rig[h].run, &peer, 1, edges, count, &err), 0,
			     "%s", err.text);
	}
}

static const struct frag_plugin *plugin = &rig_plugin;

static void prepare(struct hosts *hosts, const char *yaml, const char *const *first,
		    const char *const *second)
{
	for (uint32_t h = 0; h < HOSTS; h++)
		if (rig_prepare_host(&hosts->rig[h], plugin, yaml, h == 0 ? first : second, h) <
		    0) {
			rig_errors(&hosts->rig[h]);
			cr_assert(0, "refused");
		}
}

static bool is_wired(struct rig *rig)
{
	return rig->wired > 0;
}

static void start(struct hosts *hosts)
{
	struct frag_err err = FRAG_ERR_INIT;

	for (uint32_t h = 0; h < HOSTS; h++)
		cr_assert(rig_wait(&hosts->rig[h], is_wired, 8000000000), "host %u: %s", h,
			  hosts->rig[h].sentence);
	for (uint32_t h = 0; h < HOSTS; h++)
		cr_assert_eq(fragi_run_start(hosts->rig[h].run, &err), 0, "%s", err.text);
}

static void end(struct hosts *hosts)
{
	for (uint32_t h = 0; h < HOSTS; h++)
		rig_end(&hosts->rig[h]);
	notes_clear();
}

static const char *const schedulers[] = {"greedy", "event_based"};

HOSTS_TEST(what_one_host_sends_the_other_gets_in_order)
{
	static const struct cut cuts[] = {{"tx", "out", "m", "in", 0, 0, 0, 0, 0},
					  {"m", "out", "rx", "in", 0, 0, 1, 0, 0}};
	struct hosts hosts;
	char yaml[2048];

	for (int s = 0; s < 4; s++) {
		snprintf(
			yaml, sizeof(yaml),
			"frag: 1\napplication: app\nfragments:\n"
			"  one: {scheduler: {type: %s}, operators: {tx: {type: source, parameters: {count: 5000}},\n"
			"        rx: {type: sink}}}\n"
			"  two: {scheduler: {type: %s}, operators: {m: {type: middle, parameters: {add: 3}}}}\n"
			"flows: [one.tx -> two.m, two.m -> one.rx]\n",
			schedulers[s / 2], schedulers[s % 2]);
		prepare(&hosts, yaml, (const char *const[]){"one", NULL},
			(const char *const[]){"two", NULL});
		wire(&hosts, cuts, 2);
		start(&hosts);
		for (uint32_t h = 0; h < HOSTS; h++)
			cr_assert(rig_wait(&hosts.rig[h], rig_is_done, RIG_LIMIT_NS), "host %u", h);
		cr_assert_eq(notes[0]->count, 5000);
		for (int i = 0; i < 5000; i++)
			cr_assert_eq(notes[0]->values[i], i + 3);
		/* Rows: the first flow leaves host 0, the second comes to it. */
		cr_expect_eq(rig_row(&hosts.rig[0], 0)->sent, 5000);
		cr_expect_eq(rig_row(&hosts.rig[1], 0)->delivered, 5000);
		cr_expect_eq(rig_row(&hosts.rig[1], 1)->sent, 5000);
		cr_expect_eq(rig_row(&hosts.rig[0], 1)->delivered, 5000);
		cr_expect_eq(hosts.rig[0].failed + hosts.rig[1].failed + hosts.rig[0].lost +
				     hosts.rig[1].lost,
			     0);
		end(&hosts);
	}
}

HOSTS_TEST(a_multi_receiver_has_the_flows_in_the_order_of_the_text)
{
	/* The driver gives them in another order than the text has them. */
	static const struct cut cuts[] = {{"b", "out", "all", "receivers", .order = 2},
					  {"a", "out", "all", "receivers", .order = 0}};
	struct hosts hosts;

	prepare(&hosts,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {a: {type: source, parameters: {count: 50}},\n"
		"                    b: {type: source, parameters: {count: 50}}}}\n"
		"  two: {operators: {all: {type: gather}, d: {type: source, parameters: {count: 50}}},\n"
		"        flows: [d -> all]}\n"
		"  three: {operators: {c: {type: source, parameters: {count: 50}}}}\n"
		"flows: [one.a -> two.all, three.c -> two.all, one.b.out -> two.all.receivers]\n",
		(const char *const[]){"one", NULL}, (const char *const[]){"two", "three", NULL});
	cr_expect_eq(hosts.rig[1].run != NULL, 1);
	wire(&hosts, cuts, 2);
	start(&hosts);
	for (uint32_t h = 0; h < HOSTS; h++)
		cr_assert(rig_wait(&hosts.rig[h], rig_is_done, RIG_LIMIT_NS));
	cr_assert_eq(notes[0]->count, 200);
	for (int i = 0; i < 200; i++)
		cr_assert_eq(notes[0]->values[i], 1000 * (i % 4) + i / 4, "at %d: %lld", i,
			     (long long)notes[0]->values[i]);
	end(&hosts);
}

/* Both hosts run to their end. */
static void run_all(struct hosts *hosts, const char *yaml, const struct cut *cuts, size_t count)
{
	prepare(hosts, yaml, (const char *const[]){"one", NULL},
		(const char *const[]){"two", NULL});
	wire(hosts, cuts, count);
	start(hosts);
	for (uint32_t h = 0; h < HOSTS; h++)
		cr_assert(rig_wait(&hosts->rig[h], rig_is_done, RIG_LIMIT_NS), "host %u", h);
}

/* What min_size gives room or waits for holds between hosts as it does inside one. */

HOSTS_TEST(min_size_holds_for_each_flow_of_a_multi_receiver)
{
	static const struct cut cuts[] = {{"a", "out", "all", "receivers", .order = 0},
					  {"b", "out", "all", "receivers", .order = 1}};
	struct hosts hosts;
	char yaml[1024];

	for (int slower = 0; slower < 3; slower++) {
		snprintf(
			yaml, sizeof(yaml),
			"frag: 1\napplication: app\nfragments:\n"
			"  one: {operators: {a: {type: source, parameters: {count: 60, work_us: %d}},\n"
			"                    b: {type: source, parameters: {count: 60, work_us: %d}}}}\n"
			"  two: {operators: {c: {type: source, parameters: {count: 60, work_us: %d}},\n"
			"                    all: {type: gather, parameters: {rounds: 3},\n"
			"                          conditions: [{type: message_available, min_size: 3}]}},\n"
			"        flows: [{from: c, to: all, capacity: 4}]}\n"
			"flows: [one.a -> two.all, one.b -> two.all]\n",
			slower == 0 ? 100 : 0, slower == 1 ? 100 : 0, slower == 2 ? 100 : 0);
		run_all(&hosts, yaml, cuts, 2);
		cr_assert_eq(notes[0]->count, 180);
		/* The flow inside the host comes last in its fragment. */
		for (uint32_t i = 0; i < 180; i++)
			cr_assert_eq(notes[0]->values[i], 1000 * (i % 3) + i / 3, "at %u: %lld", i,
				     (long long)notes[0]->values[i]);
		end(&hosts);
	}
}

HOSTS_TEST(min_size_counts_the_flows_of_an_input_together)
{
	static const struct cut cuts[] = {{"a", "out", "rx", "in", .order = 0},
					  {"b", "out", "rx", "in", .order = 1}};
	static const char *const cases[] = {"conditions: [{type: message_available, min_size: 4}]",
					    "ports: {in: {size: 4}}", "ports: {in: {size: 0}}"};
	struct hosts hosts;
	char yaml[1024];

	for (int c = 0; c < 3; c++) {
		int64_t taken = 0, min = c < 2 ? 4 : 2;

		snprintf(
			yaml, sizeof(yaml),
			"frag: 1\napplication: app\nfragments:\n"
			"  one: {operators: {a: {type: source, parameters: {count: 50}},\n"
			"                    b: {type: source, parameters: {count: 30, work_us: 100}}}}\n"
			"  two: {operators: {rx: {type: taker, %s}}}\n"
			"flows: [one.a -> two.rx, one.b -> two.rx]\n",
			cases[c]);
		run_all(&hosts, yaml, cuts, 2);
		for (uint32_t i = 0; i < notes[0]->count; i++) {
			taken += notes[0]->values[i];
			cr_expect(notes[0]->values[i] >= min || i + 1 == notes[0]->count,
				  "%d: tick %u of %u took %lld", c, i, notes[0]->count,
				  (long long)notes[0]->values[i]);
		}
		cr_expect_eq(taken, 80);
		end(&hosts);
	}
}

HOSTS_TEST(min_size_waits_for_that_much_room)
{
	static const struct cut cuts[] = {{"tx", "out", "rx", "in", .window = 3}};
	struct hosts hosts;

	/* Three at a time into a window of three: nothing is dropped. */
	run_all(&hosts,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {tx: {type: source, parameters: {burst: 3, count: 90},\n"
		"                         conditions: [{type: downstream_affordable, min_size: 3}]}}}\n"
		"  two: {operators: {rx: {type: sink, parameters: {work_us: 20}}}}\n"
		"flows: [{from: one.tx, to: two.rx, capacity: 3}]\n",
		cuts, 1);
	cr_assert_eq(notes[0]->count, 90);
	for (int i = 0; i < 90; i++)
		cr_expect_eq(notes[0]->values[i], i);
	cr_expect_eq(rig_dropped_all(rig_row(&hosts.rig[0], 0)), 0);
	end(&hosts);
}

/* The messages of several flows into one input count together. */
HOSTS_TEST(min_size_waits_for_that_many_messages)
{
	static const struct cut cuts[] = {{"tx", "out", "rx", "in", .window = 2},
					  {"ty", "out", "rx", "in", .window = 2, .order = 1}};
	struct hosts hosts;
	int64_t sum = 0;

	run_all(&hosts,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {tx: {type: source, parameters: {count: 30}},\n"
		"                    ty: {type: source, parameters: {count: 30}}}}\n"
		"  two: {operators: {rx: {type: taker,\n"
		"                         conditions: [{type: message_available, min_size: 3}]}}}\n"
		"flows: [{from: one.tx, to: two.rx, capacity: 2},\n"
		"        {from: one.ty, to: two.rx, capacity: 2}]\n",
		cuts, 2);
	for (uint32_t i = 0; i < noted(0); i++) {
		sum += notes[0]->values[i];
		/* When one source has ended, the other alone holds two. */
		cr_expect_geq(notes[0]->values[i], sum <= 30 ? 3 : 1, "%u", i);
	}
	cr_expect_eq(sum, 60);
	end(&hosts);
}

/* A limit of what waits, above which nothing is taken any more, and a batch with a time. */
HOSTS_TEST(other_conditions_of_inputs_see_what_has_arrived)
{
	static const struct cut cuts[] = {{"tx", "out", "rx", "in", .window = 2},
					  {"ty", "out", "ry", "in", .window = 8, .order = 1}};
	struct hosts hosts;
	int64_t sum = 0;

	run_all(&hosts,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {tx: {type: source, parameters: {count: 40}},\n"
		"                    ty: {type: source, parameters: {count: 40}}}}\n"
		"  two: {operators: {rx: {type: sink, conditions: [{type: message_available,\n"
		"                                                    front_stage_max_size: 2}]},\n"
		"                    ry: {type: taker, parameters: {slot: 1},\n"
		"                         conditions: [{type: expiring_message_available,\n"
		"                                       max_batch_size: 4, max_delay_ns: 1h}]}}}\n"
		"flows: [{from: one.tx, to: two.rx, capacity: 2},\n"
		"        {from: one.ty, to: two.ry, capacity: 8}]\n",
		cuts, 2);
	cr_expect_eq(noted(0), 40);
	for (uint32_t i = 0; i < noted(1); i++) {
		sum += notes[1]->values[i];
		cr_expect_geq(notes[1]->values[i], i + 1 < noted(1) ? 4 : 1);
	}
	cr_expect_eq(sum, 40);
	end(&hosts);
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
	struct hosts hosts;

	prepare(&hosts,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {tx: {type: source,\n"
		"                         conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
		"  two: {operators: {rx: {type: sink}}}\n"
		"flows: [one.tx -> two.rx]\n",
		(const char *const[]){"one", NULL}, (const char *const[]){"two", NULL});
	peer.address_count = fragi_run_addresses(hosts.rig[1].run, addresses);
	peer.addresses = addresses;
	cr_expect_eq(fragi_run_wire(hosts.rig[0].run, &peer, 1, &edge, 1, &err), -EINVAL);
	cr_expect_str_eq(
		err.text,
		"one.tx: a condition of output \"out\" asks for room for 5 messages, and a flow of it holds 4 at most; give the flow a larger capacity, or ask for less");
	end(&hosts);
}

/* It would be waited for, and never answer. */
HOSTS_TEST(a_peer_without_an_edge_is_refused)
{
	struct fragi_run_peer peer = {.host = 1, .epoch = 1, .name = "other"};
	struct fragi_run_address addresses[FRAGI_HOST_TRANSPORTS_MAX];
	struct frag_err err = FRAG_ERR_INIT;
	struct hosts hosts;

	prepare(&hosts,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {tx: {type: source}}}\n"
		"  two: {operators: {rx: {type: sink}}}\n"
		"flows: [one.tx -> two.rx]\n",
		(const char *const[]){"one", NULL}, (const char *const[]){"two", NULL});
	peer.address_count = fragi_run_addresses(hosts.rig[1].run, addresses);
	peer.addresses = addresses;
	cr_expect_eq(fragi_run_wire(hosts.rig[0].run, &peer, 1, NULL, 0, &err), -EINVAL);
	cr_expect_str_eq(err.text,
			 "host other is a peer without an edge; this is an error in frag");
	end(&hosts);
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
	struct hosts hosts;

	/* b answers ten times and then waits for ever, as a does. */
	prepare(&hosts,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {a: {type: ring, conditions: [{type: count, count: 1}]},\n"
		"                    c: {type: middle, parameters: {slot: 3}}, d: {type: middle, parameters: {slot: 4}}},\n"
		"        flows: [c -> d, d -> c]}\n"
		"  two: {operators: {b: {type: middle}, e: {type: middle, parameters: {slot: 5}},\n"
		"                    f: {type: middle, parameters: {slot: 6}}}, flows: [e -> f, f -> e]}\n"
		"flows: [one.a -> two.b, two.b -> one.a]\n",
		(const char *const[]){"one", NULL}, (const char *const[]){"two", NULL});
	wire(&hosts, cuts, 2);
	start(&hosts);
	/* Either may have told of its rest while a message travelled to it. */
	for (uint32_t i = 0; i < 50 * HOSTS && !is_all_at_rest(&hosts); i++) {
		reports_before = hosts.rig[i % HOSTS].idle;
		cr_assert(rig_wait(&hosts.rig[i % HOSTS], reports_rest_again, RIG_LIMIT_NS),
			  "host %u", i % HOSTS);
	}
	cr_expect(is_all_at_rest(&hosts));
	cr_expect_eq(hosts.rig[0].done + hosts.rig[1].done, 0);
	for (uint32_t h = 0; h < HOSTS; h++)
		fragi_run_drain(hosts.rig[h].run);
	/* The loops inside have no source, and so end with the drain. */
	for (uint32_t h = 0; h < HOSTS; h++)
		cr_assert(rig_wait(&hosts.rig[h], rig_is_done, RIG_LIMIT_NS));
	end(&hosts);
}

HOSTS_TEST(a_drain_of_all_hosts_loses_nothing)
{
	static const struct cut cuts[] = {{"tx", "out", "m", "in", 0, 0, 0, 8, 0},
					  {"m", "out", "rx", "in", 0, 0, 1, 8, 0}};
	struct hosts hosts;

	prepare(&hosts,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {tx: {type: source}, rx: {type: sink, parameters: {work_us: 30}}}}\n"
		"  two: {operators: {m: {type: middle}}}\n"
		"flows: [{from: one.tx, to: two.m, capacity: 8}, {from: two.m, to: one.rx, capacity: 8}]\n",
		(const char *const[]){"one", NULL}, (const char *const[]){"two", NULL});
	wire(&hosts, cuts, 2);
	start(&hosts);
	RIG_AWAIT(noted(0) >= 200);
	for (uint32_t h = 0; h < HOSTS; h++)
		fragi_run_drain(hosts.rig[h].run);
	for (uint32_t h = 0; h < HOSTS; h++)
		cr_assert(rig_wait(&hosts.rig[h], rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(notes[0]->count, rig_row(&hosts.rig[0], 0)->sent);
	for (uint32_t i = 0; i < notes[0]->count; i++)
		cr_assert_eq(notes[0]->values[i], i);
	end(&hosts);
}

HOSTS_TEST(a_host_that_is_halted_ends_the_other_by_its_closes)
{
	static const struct cut cuts[] = {{"tx", "out", "rx", "in", 0, 0, 0, 0, 0}};
	struct hosts hosts;
	const struct fragi_flow_row *row;

	prepare(&hosts,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {tx: {type: source}}}\n"
		"  two: {operators: {rx: {type: sink}}}\n"
		"flows: [one.tx -> two.rx]\n",
		(const char *const[]){"one", NULL}, (const char *const[]){"two", NULL});
	wire(&hosts, cuts, 1);
	start(&hosts);
	RIG_AWAIT(noted(0) >= 100);
	fragi_run_halt(hosts.rig[0].run);
	for (uint32_t h = 0; h < HOSTS; h++)
		cr_assert(rig_wait(&hosts.rig[h], rig_is_done, RIG_LIMIT_NS));
	row = rig_row(&hosts.rig[1], 0);
	cr_expect_eq(rig_row(&hosts.rig[0], 0)->sent, row->arrived);
	cr_expect_eq(row->arrived, row->delivered);
	cr_expect_eq(notes[0]->count, row->delivered);
	end(&hosts);
}

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
	struct hosts hosts;

	plugin = &stamp_plugin;
	for (int s = 0; s < 2; s++) {
		char yaml[2048];

		snprintf(
			yaml, sizeof(yaml),
			"frag: 1\napplication: app\nfragments:\n"
			"  one: {scheduler: {type: %s}, operators: {\n"
			"    a: {type: stamper, parameters: {values: [1, 2, 3, 4], at: [100, 200, 300, 400], clock: 256}},\n"
			"    b: {type: stamper, parameters: {values: [5, 6, 7, 8], at: [102, 255, 310, 400], clock: 256}}}}\n"
			"  two: {scheduler: {type: %s}, operators: {p: {type: pair, align: {window: 10ns}}}}\n"
			"flows: [one.a -> two.p.a, one.b -> two.p.b]\n",
			schedulers[s], schedulers[s]);
		run_all(&hosts, yaml, cuts, 2);
		cr_assert_eq(noted(0), 3);
		cr_expect_eq(notes[0]->values[0], 1005);
		cr_expect_eq(notes[0]->values[1], 3007);
		cr_expect_eq(notes[0]->values[2], 4008);
		a = rig_row(&hosts.rig[1], 0);
		b = rig_row(&hosts.rig[1], 1);
		cr_expect_eq(a->delivered, 3);
		cr_expect_eq(a->rx_dropped[FRAGI_DROP_LATE], 1);
		cr_expect_eq(b->rx_dropped[FRAGI_DROP_LATE], 1);
		expect_balance(&hosts, 0);
		expect_balance(&hosts, 1);
		end(&hosts);
	}
	plugin = &rig_plugin;
}

HOSTS_TEST(an_old_message_is_stale_and_the_latest_is_taken)
{
	static const struct cut cuts[] = {
		{"a", "out", "p", "a", 0, 0, 0, 0, 0},
		{"b", "out", "m", "in", 0, 0, 0, 0, FRAG_POLICY_LATEST, 1}};
	struct hosts hosts;

	plugin = &stamp_plugin;
	run_all(&hosts,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {a: {type: stamper, parameters: {values: [1, 2, 3], ages: [0, 7200, 0], clock: 0}},\n"
		"                    b: {type: source, parameters: {count: 3000}}}}\n"
		"  two: {operators: {p: {type: pair, ports: {a: {age: 1h}}},\n"
		"                    m: {type: many, parameters: {slot: 1}, ports: {in: {take: latest_within, age: 1h}}}}}\n"
		"flows: [one.a -> two.p.a, one.b -> two.m.in]\n",
		cuts, 2);
	cr_assert_eq(noted(0), 2);
	cr_expect_eq(notes[0]->values[0], 1999);
	cr_expect_eq(notes[0]->values[1], 3999);
	cr_expect_eq(rig_row(&hosts.rig[1], 0)->rx_dropped[FRAGI_DROP_STALE], 1);
	cr_assert_gt(noted(1), 0);
	cr_expect_eq(notes[1]->values[noted(1) - 1], 2999, "the last one is always the newest");
	for (uint32_t i = 1; i < noted(1); i++)
		cr_expect_lt(notes[1]->values[i - 1], notes[1]->values[i]);
	expect_balance(&hosts, 0);
	expect_balance(&hosts, 1);
	end(&hosts);
	plugin = &rig_plugin;
}

HOSTS_TEST(an_async_buffer_is_read_again_when_its_sender_has_ended)
{
	static const struct cut cuts[] = {
		{"tx", "out", "rx", "in", 0, 0, 0, 0, FRAG_POLICY_ASYNC_BUFFER}};
	struct hosts hosts;
	char yaml[1024];

	for (int s = 0; s < 4; s++) {
		is_encrypted = s >= 2;
		snprintf(
			yaml, sizeof(yaml),
			"frag: 1\napplication: app\nfragments:\n"
			"  one: {scheduler: {type: %s}, operators: {tx: {type: source, parameters: {count: 3}}}}\n"
			"  two: {scheduler: {type: %s}, operators: {rx: {type: sink, conditions: [\n"
			"         {type: periodic, recess_period: 2ms}, {type: count, count: 100}]}}}\n"
			"flows: [{from: one.tx, to: two.rx, policy: async_buffer}]\n",
			schedulers[s % 2], schedulers[s % 2]);
		run_all(&hosts, yaml, cuts, 1);
		cr_assert_eq(noted(0), 100);
		cr_expect_eq(notes[0]->values[99], 2);
		for (int i = 1; i < 100; i++)
			cr_expect_leq(notes[0]->values[i - 1], notes[0]->values[i]);
		cr_expect_eq(rig_row(&hosts.rig[1], 0)->reused,
			     100 - rig_row(&hosts.rig[1], 0)->delivered);
		expect_balance(&hosts, 0);
		end(&hosts);
	}
	is_encrypted = false;
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
	struct hosts hosts;
	char yaml[2048];

	plugin = &cycles_plugin;
	for (size_t i = 0; i < FRAG_COUNT_OF(cycles); i++)
		for (int s = 0; s < 4; s++) {
			snprintf(yaml, sizeof(yaml),
				 "frag: 1\napplication: app\nfragments:\n"
				 "  one: {scheduler: {type: %s}, operators: {%s}%s}\n"
				 "  two: {scheduler: {type: %s}, operators: {%s}%s}\nflows: [%s]\n",
				 schedulers[s / 2], cycles[i].one,
				 i == 1 ? ", flows: [tx.out -> t.a]" : "", schedulers[s % 2],
				 cycles[i].two, i == 1 ? ", flows: [m.x -> n.a]" : "",
				 cycles[i].flows);
			run_all(&hosts, yaml, cycles[i].cuts, (size_t)cycles[i].count);
			for (int slot = 0; slot < 3; slot++)
				if (cycles[i].ticks[slot] > 0)
					cr_expect_eq(note_of(slot)->ticks, cycles[i].ticks[slot],
						     "%zu, %d: slot %d ticked %d times", i, s, slot,
						     (int)note_of(slot)->ticks);
			cr_expect_eq(hosts.rig[0].failed + hosts.rig[1].failed, 0);
			end(&hosts);
		}
	plugin = &rig_plugin;
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
		"frag: 1\napplication: app\nfragments:\n"
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

static void expect_latest_between_hosts(void)
{
	static const struct cut cuts[] = {
		{"p", "out", "m", "in", 0, 0, 0, 1, FRAG_POLICY_LATEST, 0},
		{"q", "out", "rx", "in", 0, 0, 1, 1, FRAG_POLICY_LATEST, 1}};
	struct hosts hosts;

	for (size_t i = 0; i < 2 * FRAG_COUNT_OF(latest_capacities); i++) {
		run_all(&hosts, latest_graph(schedulers[i % 2], latest_capacities[i / 2]), cuts, 2);
		expect_newer_and_newer();
		for (uint32_t h = 0; h < HOSTS; h++) {
			const struct fragi_flow_row *inner = rig_row(&hosts.rig[h], 1);
			const struct fragi_flow_row *from = rig_row(&hosts.rig[h], 2 + h);
			const struct fragi_flow_row *to = rig_row(&hosts.rig[1 - h], 2 + h);

			cr_expect_eq(hosts.rig[h].failed + hosts.rig[h].lost, 0);
			cr_expect_eq(inner->sent, inner->delivered + rig_dropped_all(inner));
			cr_expect_eq(from->sent,
				     to->delivered + rig_dropped_all(from) + rig_dropped_all(to));
		}
		cr_expect_eq(rig_row(&hosts.rig[0], 2)->sent, LATEST_COUNT);
		end(&hosts);
	}
}

HOSTS_TEST(latest_in_a_whole_graph)
{
	expect_latest_between_hosts();
}

HOSTS_TEST(latest_in_a_whole_encrypted_graph)
{
	is_encrypted = true;
	expect_latest_between_hosts();
	is_encrypted = false;
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
	char yaml[2048];

	snprintf(
		yaml, sizeof(yaml),
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {scheduler: {type: %s}, operators: {tx: {type: source, parameters: {count: 5}},\n"
		"        rx: {type: sink}}}\n"
		"  two: {scheduler: {type: %s}, operators: {m: {type: middle, parameters: {work_us: %s}}}}\n"
		"flows: [one.tx -> two.m, two.m -> one.rx]\n"
		"deadlines:\n%s",
		scheduler, scheduler, work, more);
	run_all(hosts, yaml, cuts, 2);
}

static uint64_t op_counter(const _Atomic uint64_t *counter)
{
	return atomic_load(counter);
}
/* of the i-th operator of a host */
#define OP_COUNTER(h, i, member) op_counter(&fragi_run_ledger(hosts.rig[h].run)->ops[i].member)

HOSTS_TEST(a_path_through_several_hosts_is_checked)
{
	struct hosts hosts;

	for (int s = 0; s < 2; s++) {
		run_path(&hosts, schedulers[s], "3000",
			 "  - {path: [one.tx, two.m, one.rx], budget: 2ms}\n"
			 "  - {path: [one.tx, two.m], budget: 2ms}\n"
			 "  - {path: [two.m, one.rx], budget: 1h, on_miss: stop}\n");
		cr_expect_eq(hosts.rig[0].failed + hosts.rig[1].failed, 0);
		cr_expect_eq(noted(0), 5);
		cr_expect_eq(OP_COUNTER(0, 1, path_misses), 5);
		cr_expect_eq(OP_COUNTER(1, 0, path_misses), 5);
		cr_expect_eq(OP_COUNTER(0, 1, path_clocks) + OP_COUNTER(1, 0, path_clocks), 0);
		end(&hosts);
	}
}

HOSTS_TEST(a_path_through_several_hosts_that_is_fast_enough_is_no_miss)
{
	struct hosts hosts;

	run_path(&hosts, "event_based", "0",
		 "  - {path: [one.tx, two.m, one.rx], budget: 1h, on_miss: stop}\n"
		 "  - {path: [one.tx, two.m], budget: 1h, on_miss: drop}\n");
	cr_expect_eq(hosts.rig[0].failed + hosts.rig[1].failed, 0);
	cr_expect_eq(noted(0), 5);
	cr_expect_eq(OP_COUNTER(0, 1, path_misses), 0);
	cr_expect_eq(OP_COUNTER(1, 0, path_misses), 0);
	end(&hosts);
}

HOSTS_TEST(a_path_through_several_hosts_drops_what_is_late)
{
	struct hosts hosts;

	run_path(&hosts, "greedy", "3000",
		 "  - {path: [one.tx, two.m, one.rx], budget: 2ms, on_miss: drop}\n");
	cr_expect_eq(noted(0), 0);
	cr_expect_eq(OP_COUNTER(0, 1, path_misses), 5);
	cr_expect_eq(rig_row(&hosts.rig[0], 1)->rx_dropped[FRAGI_DROP_DEADLINE], 5);
	end(&hosts);
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
	struct hosts hosts;
	bool is_named = false;

	for (int i = 0; i < 6 && !is_named; i++) {
		prepare(&hosts,
			"frag: 1\napplication: app\nfragments:\n"
			"  one: {operators: {tx: {type: source, parameters: {count: 1}}, rx: {type: sink}}}\n"
			"  two: {operators: {m: {type: middle, parameters: {work_us: 100000}}}}\n"
			"flows: [one.tx -> two.m, two.m -> one.rx]\n"
			"deadlines: [{path: [one.tx, two.m, one.rx], budget: 50ms, on_miss: stop}]\n",
			(const char *const[]){"one", NULL}, (const char *const[]){"two", NULL});
		wire(&hosts, cuts, 2);
		start(&hosts);
		for (uint32_t h = 0; h < HOSTS; h++)
			cr_assert(rig_wait(&hosts.rig[h], rig_is_done, RIG_LIMIT_NS), "host %u", h);
		cr_expect_eq(hosts.rig[0].failed, 1);
		cr_expect_eq(hosts.rig[0].failure, FRAGI_FAILURE_DEADLINE_MISSED);
		is_named = strncmp(hosts.rig[0].sentence, sentence, sizeof(sentence) - 1) == 0;
		end(&hosts);
	}
	cr_expect(is_named, "%s", hosts.rig[0].sentence);
}

/* Neither a stop nor a drop: nobody knows. What does not leave the machine is checked. */
HOSTS_TEST(a_path_between_clocks_that_cannot_be_compared_is_not_checked)
{
	struct hosts hosts;

	is_other_machine = true;
	run_path(&hosts, "greedy", "3000",
		 "  - {path: [one.tx, two.m, one.rx], budget: 1ns, on_miss: stop}\n"
		 "  - {path: [one.tx, two.m], budget: 1ns, on_miss: drop}\n"
		 "clock: {max_error: 1ns}\n"); /* no two clocks are compared so well */
	is_other_machine = false;
	cr_expect_eq(hosts.rig[0].failed + hosts.rig[1].failed, 0);
	cr_expect_eq(noted(0), 5);
	cr_expect_eq(OP_COUNTER(0, 1, path_misses), 0);
	cr_expect_eq(OP_COUNTER(0, 1, path_clocks), 5);
	cr_expect_eq(OP_COUNTER(1, 0, path_misses), 0);
	cr_expect_eq(OP_COUNTER(1, 0, path_clocks), 5);
	end(&hosts);
}

/* As soon as they are compared: what came before is counted as not comparable. */
HOSTS_TEST(a_path_between_two_clocks_is_checked)
{
	struct hosts hosts;

	is_other_machine = true;
	run_path(&hosts, "greedy", "3000",
		 "  - {path: [one.tx, two.m], budget: 1ns}\n"
		 "  - {path: [one.tx, two.m, one.rx], budget: 1h}\n");
	is_other_machine = false;
	cr_expect_eq(noted(0), 5);
	cr_expect_gt(OP_COUNTER(1, 0, path_misses), 0);
	cr_expect_eq(OP_COUNTER(1, 0, path_misses) + OP_COUNTER(1, 0, path_clocks), 5);
	cr_expect_eq(OP_COUNTER(0, 1, path_misses), 0);
	end(&hosts);
}
