// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

#include <driverd/core/clients/tap.h>
#include <wire/keys.h>

/* Taps on flows, and traces. */
#define CLIENT 3

/* Asks for a tap, and takes the answer. */
static const struct fw_answer *tap(struct world *w, uint64_t client, uint64_t seq, const char *flow,
				   int64_t every_ns)
{
	struct fw_message message = {.kind = FW_TAP, .seq = seq};
	const struct fw_message *answer;

	message.tap = (struct fw_tap){.name = "app", .flow = flow, .every_ns = every_ns};
	say(w, client, &message);
	answer = must_take(w, client, FW_ANSWER);
	cr_expect_eq(answer->reply_to, seq);
	return &answer->answer;
}

static void expect_refused(const struct fw_answer *answer, enum fragi_failure code,
			   const char *sentence)
{
	cr_expect_eq(answer->failure.code, code);
	assert_has(answer->failure.sentence, sentence);
}

static void pass_message_of(struct world *w, uint64_t connection, uint32_t host, uint32_t id,
			    uint64_t epoch)
{
	struct fw_message message = of_host(FW_HOST_TAPPED, host);

	message.epoch = epoch;
	message.tapped = (struct fw_tapped){id, "not read", 8};
	say(w, connection, &message);
}

static void pass_message(struct world *w, uint64_t connection, uint32_t host, uint32_t id)
{
	pass_message_of(w, connection, host, id, 1);
}

/* The host of the sender hears of it until the client ends it, and what it copies is passed on. */
WORLD_TEST(driver_tap, a_tap_is_passed_on_unread, NULL)
{
	static const char *const names[] = {
		"f1.tx.out", "f1.tx", "f1", "f2.rx.in", "f1.tx.out -> f2.rx.in", "f1 -> f2.rx"};
	struct fw_message end = {.kind = FW_TAP, .seq = 99};
	const struct fw_message *m;
	uint32_t id;

	two_run(w, two_fragments);
	client_hello(w, CLIENT, "");
	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++) {
		cr_expect_str_eq(tap(w, CLIENT, 20 + i, names[i], SECOND)->name, "f1.tx.out");
		m = taken(w, 1, FW_HOST_TAP);
		cr_assert_not_null(m, "%s", names[i]);
		cr_expect_eq(m->host, 1);
		cr_expect_eq(m->epoch, 1);
		cr_expect_eq(m->host_tap.tap, i + 1);
		cr_expect_eq(m->host_tap.every_ns, SECOND);
		cr_expect_eq(m->host_tap.for_ns, 4 * SECOND);
		cr_expect_eq(m->host_tap.fragment + m->host_tap.op + m->host_tap.port, 0);
		if (i == FRAG_COUNT_OF(names) - 1)
			break;
		end.tap = (struct fw_tap){.name = "", .flow = "", .ends = 20 + i};
		say(w, CLIENT, &end);
		cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
		m = must_take(w, 1, FW_HOST_TAP);
		cr_expect_eq(m->host_tap.for_ns, 0, "it ends");
		cr_expect_null(w->core->waiting);
	}
	id = FRAG_COUNT_OF(names);
	pass_message(w, 1, 1, id);
	m = must_take(w, CLIENT, FW_TAPPED);
	cr_expect_eq(m->reply_to, 25);
	cr_expect_eq(m->tapped.size, 8);
	cr_expect_eq(memcmp(m->tapped.passed, "not read", 8), 0);
	cr_expect(w->sent[w->sent_count - 1].may_drop);
	/* too early, and of another host, by another worker, of another epoch, of another tap */
	pass_message(w, 1, 1, id);
	pass_beating(w, SECOND, 1, CLIENT);
	pass_message(w, 2, 2, id);
	pass_message(w, 2, 1, id);
	pass_message_of(w, 1, 1, id, 2);
	pass_message(w, 1, 1, id + 1);
	m = taken(w, 1, FW_HOST_TAP);
	cr_assert_not_null(m, "again and again");
	cr_expect_eq(m->host_tap.tap, id);
	cr_expect_null(taken(w, CLIENT, FW_TAPPED));
	pass_message(w, 1, 1, id);
	cr_expect_not_null(taken(w, CLIENT, FW_TAPPED));
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = "it left"});
	m = must_take(w, 1, FW_HOST_TAP);
	cr_expect_eq(m->host_tap.for_ns, 0);
	pass_message(w, 1, 1, id);
	pass_beating(w, 2 * SECOND, 1, 2);
	cr_expect_null(taken(w, 1, FW_HOST_TAP), "nobody watches");
	cr_expect_null(w->core->waiting);
}

WORLD_TEST(driver_tap, a_tap_follows_its_host_and_ends_with_the_application, NULL)
{
	const struct fw_message *m;

	two_run(w, two_fragments);
	client_hello(w, CLIENT, "");
	cr_expect_eq(tap(w, CLIENT, 2, "f1", 0)->failure.code, FRAGI_FAILURE_NONE);
	m = must_take(w, 1, FW_HOST_TAP);
	cr_expect_eq(m->host_tap.every_ns, FW_TAP_MIN_NS);
	both_are_killed(w);
	pass_beating(w, 2 * SECOND, 1, CLIENT);
	m = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(m->reply_to, 2);
	expect_refused(&m->answer, FRAGI_FAILURE_APPLICATION_UNKNOWN, "the application has ended");
	cr_expect_null(w->core->waiting);
}

/* Half of the time after the last one is enough: what was held up comes in haste. */
WORLD_TEST(driver_tap, a_message_that_comes_too_early_is_left_out, NULL)
{
	static const struct {
		int64_t after_ns;
		bool is_passed;
	} rows[] = {{0, false}, {SECOND / 2 - 1, false}, {SECOND / 2, true}, {SECOND, true}};
	uint32_t id;

	two_run(w, two_fragments);
	client_hello(w, CLIENT, "");
	cr_expect_eq(tap(w, CLIENT, 2, "f1", SECOND)->failure.code, FRAGI_FAILURE_NONE);
	id = must_take(w, 1, FW_HOST_TAP)->host_tap.tap;
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		pass_message(w, 1, 1, id);
		cr_expect(w->sent[w->sent_count - 1].may_drop);
		cr_expect_eq(w->sent[w->sent_count - 1].room_bytes, 0);
		cr_assert_not_null(taken(w, CLIENT, FW_TAPPED), "%zu", i);
		pass(w, rows[i].after_ns);
		pass_message(w, 1, 1, id);
		cr_expect_eq(taken(w, CLIENT, FW_TAPPED) != NULL, rows[i].is_passed, "%zu", i);
		pass_beating(w, SECOND, 1, CLIENT);
	}
}

WORLD_TEST(driver_tap, taps_are_bounded, NULL)
{
	two_run(w, two_fragments);
	client_hello(w, CLIENT, "");
	client_hello(w, CLIENT + 1, "");
	client_hello(w, CLIENT + 2, "");
	expect_refused(tap(w, CLIENT, 1, "f3", 0), FRAGI_FAILURE_USAGE,
		       "app has no flow \"f3\"; write f1.tx.out, or what `fragctl top app` shows");
	expect_refused(tap(w, CLIENT, 1, "tx", 0), FRAGI_FAILURE_USAGE,
		       "app has no flow \"tx\"; write f1.tx.out, or");
	expect_refused(tap(w, CLIENT, 1, "f1.t", 0), FRAGI_FAILURE_USAGE, "app has no flow");
	expect_refused(tap(w, CLIENT, 1, "", 0), FRAGI_FAILURE_USAGE, "app has no flow");
	for (uint64_t i = 0; i < DRV_TAPS_MAX; i++)
		for (uint64_t client = CLIENT; client < CLIENT + 2; client++)
			cr_expect_eq(tap(w, client, 10 + i, "f1", 0)->failure.code,
				     FRAGI_FAILURE_NONE);
	expect_refused(tap(w, CLIENT, 3, "f1", 0), FRAGI_FAILURE_DRIVER_FULL,
		       "a client watches 4 flows at most");
	expect_refused(tap(w, CLIENT + 2, 3, "f1", 0), FRAGI_FAILURE_DRIVER_FULL,
		       "8 flows of this host are watched already");
	for (size_t i = 0; i < w->core->session_count; i++)
		w->core->sessions[i]->minor = FW_TAP_MINOR - 1;
	expect_refused(tap(w, CLIENT + 2, 3, "f1", 0), FRAGI_FAILURE_DRIVER_FULL,
		       "worker a speaks protocol 1.9, and flows can be watched from 1.10 on");
}

/* A host of one operator with two outputs, or two inputs. */
static void say_two_ports(struct world *w, uint32_t host, const char *fragment, const char *op,
			  enum frag_dir dir)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, host);
	struct fw_port ports[] = {
		{.name = "left", .type = "message", .dir = dir, .has_codec = true},
		{.name = "right", .type = "message", .dir = dir, .has_codec = true}};
	struct fw_op row = {.name = op, .type = "t", .ports = ports, .port_count = 2};
	struct fw_fragment table = {.name = fragment, .ops = &row, .op_count = 1};
	struct fw_address address = {"ucx", "address", 7, "tcp lo"};

	message.prepared = (struct fw_host_prepared){.ok = true,
						     .fragments = &table,
						     .fragment_count = 1,
						     .addresses = &address,
						     .address_count = 1,
						     .pid = 100 + (int32_t)host};
	say(w, host, &message);
}

WORLD_TEST(driver_tap, an_output_is_named_where_there_are_several, world_init)
{
	static const struct {
		const char *what, *refusal; /* NULL: it is that output */
		const char *name;
	} cases[] = {
		{"f1", "\"f1\" names several outputs of app; name one, such as f1.tx.", NULL},
		{"f2.rx", "\"f2.rx\" names several outputs of app; name one, such as f1.tx.", NULL},
		{"f1.tx.left", NULL, "f1.tx.left"},
		{"f1.tx.right", NULL, "f1.tx.right"},
		{"f2.rx.right", NULL, "f1.tx.right"},
		{"right", "app has no flow \"right\"; write f1.tx.right, or what", NULL},
		{"no", "app has no flow \"no\"; write f1.tx.left, or what", NULL},
	};

	app(w, "frag: 1\napplication: app\nfragments:\n"
	       "  f1: {operators: {tx: {type: t}}}\n"
	       "  f2: {operators: {rx: {type: t}}}\n"
	       "flows: [f1.tx.left -> f2.rx.left, f1.tx.right -> f2.rx.right]\n");
	both_come(w);
	say_two_ports(w, 1, "f1", "tx", FRAG_OUT);
	say_two_ports(w, 2, "f2", "rx", FRAG_IN);
	both_run(w);
	client_hello(w, CLIENT, "");
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct fw_answer *answer = tap(w, CLIENT, 20 + i, cases[i].what, SECOND);

		if (cases[i].refusal != NULL) {
			expect_refused(answer, FRAGI_FAILURE_USAGE, cases[i].refusal);
			continue;
		}
		cr_expect_str_eq(answer->name, cases[i].name, "%s", cases[i].what);
		cr_expect_eq(must_take(w, 1, FW_HOST_TAP)->host_tap.port,
			     strcmp(cases[i].name, "f1.tx.right") == 0, "%s", cases[i].what);
	}
}

/* Of an encrypted flow only those see messages who may by name. */
Test(driver_tap, an_encrypted_flow_needs_its_role)
{
	static const struct {
		const char *role;
		bool plain, encrypted;
	} cases[] = {{"client", true, false},
		     {"any", true, false},
		     {"observer", false, false},
		     {"observer+payload", true, true}};
	static struct world w;

	for (size_t i = 0; i < 2 * FRAG_COUNT_OF(cases); i++) {
		bool is_encrypted = i % 2 == 1,
		     may = is_encrypted ? cases[i / 2].encrypted : cases[i / 2].plain;
		const struct fw_identity key = {
			.name = "k", .roles = fw_key_roles(cases[i / 2].role), .serial = 1};
		const struct fw_answer *answer;

		two_run(&w, is_encrypted
				    ? "frag: 1\napplication: app\nfragments:\n"
				      "  f1: {operators: {tx: {type: t}}}\n"
				      "  f2: {operators: {rx: {type: t}}}\n"
				      "flows: [{from: f1.tx.out, to: f2.rx.in, encrypt: true}]\n"
				    : two_fragments);
		w.identity = &key;
		client_hello(&w, CLIENT, "");
		answer = tap(&w, CLIENT, 2, "f1", 0);
		cr_expect_eq(answer->failure.code,
			     may ? FRAGI_FAILURE_NONE : FRAGI_FAILURE_ROLE_REFUSED, "%zu", i);
		if (!may)
			assert_has(answer->failure.sentence,
				   "the role observer+payload, which key k does not have");
		cr_expect_eq(taken(&w, 1, FW_HOST_TAP) != NULL, may, "%zu", i);
		if (is_encrypted && i < 4)
			assert_has(answer->failure.sentence, "f1.tx.out is encrypted");
		world_fini(&w);
	}
}

/* The place of such a message among those that were sent; sent_count: there is none. */
static size_t sent_at(const struct world *w, uint64_t connection, enum fw_kind kind)
{
	size_t i = 0;

	while (i < w->sent_count &&
	       (w->sent[i].connection != connection || w->sent[i].message->kind != kind))
		i++;
	return i;
}

/* All hosts hear of a trace, also again, and the chunks of each are passed on as they come. */
WORLD_TEST(driver_tap, a_trace_asks_all_hosts, NULL)
{
	struct fw_message trace = {.kind = FW_TAP, .seq = 7};
	const struct fw_message *m;

	two_run(w, two_fragments);
	client_hello(w, CLIENT, "");
	trace.tap = (struct fw_tap){.name = "app", .flow = "", .traces = true};
	for (size_t i = 0; i < w->core->session_count; i++)
		w->core->sessions[i]->minor = FW_TRACE_MINOR - 1;
	say(w, CLIENT, &trace);
	m = must_take(w, CLIENT, FW_ANSWER);
	expect_refused(&m->answer, FRAGI_FAILURE_DRIVER_FULL,
		       "worker a speaks protocol 1.13, and hosts can be traced from 1.14 on");
	for (size_t i = 0; i < w->core->session_count; i++)
		w->core->sessions[i]->minor = FW_TRACE_MINOR;
	say(w, CLIENT, &trace);
	m = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(m->answer.failure.code, FRAGI_FAILURE_NONE);
	cr_expect_str_eq(m->answer.name, "app");
	for (uint64_t host = 1; host <= 2; host++) {
		m = must_take(w, host, FW_HOST_TAP);
		cr_expect_eq(m->host, host);
		cr_expect(m->host_tap.traces);
		cr_expect_eq(m->host_tap.for_ns, 4 * SECOND);
	}
	for (int i = 0; i < 3; i++)
		for (uint32_t host = 1; host <= 2; host++) {
			pass_message(w, host, host, 1);
			cr_expect_eq(w->sent[w->sent_count - 1].room_bytes, 8 << 20);
			m = must_take(w, CLIENT, FW_TAPPED);
			cr_expect_eq(m->reply_to, 7);
		}
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_not_null(taken(w, 1, FW_HOST_TAP), "again and again");
	cr_expect_not_null(taken(w, 2, FW_HOST_TAP));
}

/* A trace that is asked for before the start reaches hosts before it, and is told of the end. */
WORLD_TEST(driver_tap, a_trace_lasts_from_the_start_to_the_end, NULL)
{
	struct fw_message trace = {.kind = FW_TAP, .seq = 7};
	const struct fw_message *m;

	world_init(w);
	app(w, two_fragments);
	client_hello(w, CLIENT, "");
	trace.tap = (struct fw_tap){.name = "app", .flow = "", .traces = true};
	say(w, CLIENT, &trace);
	m = taken(w, CLIENT, FW_ANSWER);
	cr_assert_not_null(m);
	cr_expect_eq(m->answer.failure.code, FRAGI_FAILURE_NONE);
	both_come(w);
	say_prepared(w, 1, 1, "f1", true);
	say_prepared(w, 2, 2, "f2", false);
	cr_expect_eq(sent_at(w, 1, FW_HOST_TAP), w->sent_count, "it cannot start yet");
	say_result(w, 1, 1, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_WIRED);
	for (uint64_t host = 1; host <= 2; host++) {
		size_t tap = sent_at(w, host, FW_HOST_TAP), start = sent_at(w, host, FW_HOST_START);

		cr_assert(tap < w->sent_count && start < w->sent_count);
		cr_expect_lt(tap, start);
		cr_expect(w->sent[tap].message->host_tap.traces);
	}
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_STARTED);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	cr_expect_null(taken(w, CLIENT, FW_ANSWER));
	say_exit(w, 1, 1, 137, 9, "");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_ENDED);
	m = taken(w, CLIENT, FW_ANSWER);
	cr_assert_not_null(m);
	cr_expect_eq(m->reply_to, 7);
	expect_refused(&m->answer, FRAGI_FAILURE_HOST_CRASHED, "the application has ended");
}

/* Nothing is asked of a host without a worker, and the tap goes on with the next process. */
WORLD_TEST(driver_tap, a_tap_waits_for_a_host_that_starts_again, NULL)
{
	struct fw_message trace = {
		.kind = FW_TAP, .seq = 7, .tap = {.name = "app", .flow = "", .traces = true}};
	const struct fw_message *m;

	two_run(w, TWO_FRAGMENTS(", on_failure: {policy: migrate, intensity: 5, lease: 1s}", ""));
	client_hello(w, CLIENT, "");
	cr_expect_eq(tap(w, CLIENT, 2, "f1", SECOND)->failure.code, FRAGI_FAILURE_NONE);
	say(w, CLIENT, &trace);
	cr_expect_eq(must_take(w, CLIENT, FW_ANSWER)->answer.failure.code, FRAGI_FAILURE_NONE);
	while (taken(w, 1, FW_HOST_TAP) != NULL)
		;
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "it closed"});
	cr_assert_null(w->core->apps[0]->hosts[0].now.session);
	pass(w, SECOND);
	beat(w, 2);
	beat(w, CLIENT);
	pass(w, SECOND);
	cr_expect_not_null(taken(w, 2, FW_HOST_TAP), "the trace goes on there");
	expect_refused(tap(w, CLIENT, 3, "f1", SECOND), FRAGI_FAILURE_DRIVER_FULL,
		       "the operator that sends on this flow does not run at the moment");
	beat(w, 2);
	beat(w, CLIENT);
	hello(w, 4, "d", "f1");
	for (int i = 0; i < 8 && taken(w, 4, FW_HOST_CREATE) == NULL; i++) {
		pass(w, 500 * MS);
		beat(w, 2);
		beat(w, CLIENT);
		beat(w, 4);
	}
	pass(w, SECOND);
	m = must_take(w, 4, FW_HOST_TAP);
	cr_expect_eq(m->host, 1);
	cr_expect_eq(m->epoch, 2);
}

/* Those of another application take no place. */
WORLD_TEST(driver_tap, taps_on_another_application_are_not_counted, NULL)
{
	struct fw_message other = {
		.kind = FW_TAP, .seq = 9, .tap = {.name = "other", .flow = "f1"}};

	two_run(w, two_fragments);
	for (uint64_t i = 0; i < 4; i++)
		client_hello(w, CLIENT + i, "");
	say_start(w, CLIENT, 8, "other", two_fragments);
	cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
	speaking_run = 2;
	both_prepare(w);
	both_run(w);
	speaking_run = 1;
	for (uint64_t i = 0; i < DRV_HOST_TAPS_MAX; i++)
		cr_expect_eq(tap(w, CLIENT + i / DRV_TAPS_MAX, 10 + i, "f1", 0)->failure.code,
			     FRAGI_FAILURE_NONE);
	expect_refused(tap(w, CLIENT + 2, 3, "f1", 0), FRAGI_FAILURE_DRIVER_FULL,
		       "8 flows of this host are watched already, as many as it takes");
	say(w, CLIENT + 3, &other);
	cr_expect_eq(must_take(w, CLIENT + 3, FW_ANSWER)->answer.failure.code, FRAGI_FAILURE_NONE);
}

/* Each flow is looked at, and once more for what was meant if none was found. */
WORLD_TEST(driver_tap, looking_for_a_flow_costs_what_it_looks_at, NULL)
{
	int64_t found, missed;

	two_run(w, two_fragments);
	client_hello(w, CLIENT, "");
	tap(w, CLIENT, 2, "f1", 0);
	found = drv_core_step_items(w->core);
	tap(w, CLIENT, 3, "f9", 0);
	missed = drv_core_step_items(w->core);
	cr_expect_eq(found, 1);
	cr_expect_eq(missed, 2);
}

/* 0 is no tap. */
WORLD_TEST(driver_tap, numbers_of_taps_begin_again, NULL)
{
	two_run(w, two_fragments);
	client_hello(w, CLIENT, "");
	w->core->last_tap = UINT32_MAX - 1;
	for (uint64_t i = 0; i < 3; i++) {
		static const uint32_t ids[] = {UINT32_MAX, 1, 2};

		cr_expect_eq(tap(w, CLIENT, 10 + i, "f1", 0)->failure.code, FRAGI_FAILURE_NONE);
		cr_expect_eq(must_take(w, 1, FW_HOST_TAP)->host_tap.tap, ids[i]);
	}
}
