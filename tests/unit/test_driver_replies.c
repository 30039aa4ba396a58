// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

#include <driverd/core/base/lines.h>

/* What clients are answered and sent: each figure, and each of several things that one follows. */
#define CLIENT 3
#define LONG_NAME "f123456789_123456789_123456789_123456789_123456789_123456789_12"

static const struct fw_reply *reply_of(struct world *w)
{
	request_state(w, CLIENT, 90);
	return &must_take(w, CLIENT, FW_REPLY)->reply;
}

WORLD_TEST(driver_replies, a_reply_has_the_figures_of_the_machine, world_init)
{
	static const struct drv_machine machine = {.state_bytes = 11,
						   .state_free_bytes = 12,
						   .certificate_ends_unix_s = 13,
						   .started_unix_s = 14};
	const struct fw_reply *reply;

	client_hello(w, CLIENT, "");
	drv_core_set_machine(w->core, &machine);
	reply = reply_of(w);
	cr_expect_eq(reply->state_bytes, 11);
	cr_expect_eq(reply->state_free_bytes, 12);
	cr_expect_eq(reply->certificate_ends_unix_s, 13);
	cr_expect_eq(reply->started_unix_s, 14);
	cr_expect_str_eq(reply->state_failure, "");
}

/* Also where the clock of the machine was set back since. */
WORLD_TEST(driver_replies, a_run_that_has_ended_has_an_age, world_init)
{
	const struct fw_ended_row *row;

	client_hello(w, CLIENT, "");
	both_come(w);
	say_start(w, CLIENT, 2, "", two_fragments);
	both_prepare(w);
	both_run(w);
	pass_beating(w, SECOND, 1, CLIENT);
	both_are_done(w);
	both_exit(w);
	pass_beating(w, 2 * SECOND, 1, CLIENT);
	row = &reply_of(w)->ended[0];
	cr_expect_eq(row->run, 1);
	cr_expect_str_eq(row->name, "app");
	cr_expect_eq(row->result, FRAGI_SUMMARY_DONE);
	cr_expect_eq(row->exit_code, 0);
	cr_expect_eq(row->age_ns, 2 * SECOND);
	cr_expect_eq(row->duration_ns, SECOND);
	cr_expect_str_eq(row->started_by, "10.0.0.9:1");
	cr_expect_not(row->wanted);
	drv_core_set_clock(w->core, 998 * SECOND);
	cr_expect_eq(reply_of(w)->ended[0].age_ns, 0);
	drv_core_set_clock(w->core, 998 * SECOND + 1);
	cr_expect_eq(reply_of(w)->ended[0].age_ns, 1);
	drv_core_set_clock(w->core, 900 * SECOND);
	cr_expect_eq(reply_of(w)->ended[0].age_ns, 0);
}

WORLD_TEST(driver_replies, a_run_that_nobody_knows_is_not_awaited, world_init)
{
	client_hello(w, CLIENT, "");
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_AWAIT, .seq = 2, .run = 5, .await.until = FW_ENDED});
	cr_expect_str_eq(must_take(w, CLIENT, FW_ANSWER)->answer.failure.sentence,
			 "run 5 was not started, or driverd has forgotten how it ended; `fragctl "
			 "events` may show why");
}

/* Each 64 bytes of an outcome are as much work as a row. */
WORLD_TEST(driver_replies, an_outcome_costs_what_it_has, world_init)
{
	int64_t unknown, known;

	client_hello(w, CLIENT, "");
	both_come(w);
	app(w, two_fragments);
	both_prepare(w);
	both_run(w);
	both_are_done(w);
	both_exit(w);
	pass(w, 1);
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_AWAIT, .seq = 2, .run = 5, .await.until = FW_ENDED});
	unknown = drv_core_step_items(w->core);
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_AWAIT, .seq = 3, .run = 1, .await.until = FW_ENDED});
	known = drv_core_step_items(w->core);
	cr_expect_not_null(taken(w, CLIENT, FW_OUTCOME));
	cr_expect_eq(known - unknown, (int64_t)w->core->history.ended->outcome_bytes / 64);
	cr_expect_gt(known, unknown);
}

/* One thing does not keep another one from coming. */
WORLD_TEST(driver_replies, a_client_may_follow_everything, world_init)
{
	struct fw_line line = {
		.level = FRAGI_LOG_INFO, .fragment = "f1", .op = "tx", .text = "hello"};
	struct fw_message lines = of_host(FW_HOST_LINES, 1), tapped = of_host(FW_HOST_TAPPED, 1);
	uint32_t tap;

	client_hello(w, CLIENT, "");
	both_come(w);
	say_start(w, CLIENT, 2, "", two_fragments);
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_WATCH_LOGS,
		    .seq = 3,
		    .watch_logs = {.name = "app", .fragment = "", .op = "", .follow = true}});
	say(w, CLIENT, &(struct fw_message){.kind = FW_WATCH, .seq = 4, .watch = {0, true}});
	both_prepare(w);
	both_run(w);
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_LOOK, .seq = 5, .look = {.name = "app", .every_ns = SECOND}});
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_TAP,
				 .seq = 6,
				 .tap = {.name = "app", .flow = "f1.tx.out", .every_ns = SECOND}});
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_AWAIT, .seq = 7, .run = 1, .await.until = FW_ENDED});
	tap = must_take(w, 1, FW_HOST_TAP)->host_tap.tap;
	for (int i = 0; i < 3; i++) {
		while (taken(w, CLIENT, FW_LOGS) != NULL || taken(w, CLIENT, FW_EVENTS) != NULL ||
		       taken(w, CLIENT, FW_LOOKED) != NULL)
			;
		lines.host_lines = (struct fw_host_lines){&line, 1, 0};
		say(w, 1, &lines);
		cr_expect_eq(must_take(w, CLIENT, FW_LOGS)->reply_to, 3);
		step(w, &(struct drv_event){.kind = DRV_EVENT_KEYS_KEPT, .text = "it is damaged"});
		cr_expect_eq(must_take(w, CLIENT, FW_EVENTS)->reply_to, 4);
		tapped.tapped = (struct fw_tapped){tap, "not read", 8};
		say(w, 1, &tapped);
		cr_expect_eq(must_take(w, CLIENT, FW_TAPPED)->reply_to, 6);
		pass_beating(w, SECOND, 1, CLIENT);
		cr_expect_eq(must_take(w, CLIENT, FW_LOOKED)->reply_to, 5);
		cr_expect_not_null(taken(w, 1, FW_HOST_TAP), "it goes on");
	}
	both_are_done(w);
	both_exit(w);
	cr_expect_eq(must_take(w, CLIENT, FW_OUTCOME)->reply_to, 7);
	cr_expect_eq(must_take(w, CLIENT, FW_EVENTS)->reply_to, 4);
	pass(w, SECOND);
	cr_expect_eq(must_take(w, CLIENT, FW_LOOKED)->reply_to, 5);
}

/* What is refused is asked for, too. */
WORLD_TEST(driver_replies, one_that_may_not_ask_does_not_ask_more_often, world_init)
{
	static const struct fw_identity key = {
		.name = "k", .roles = FW_ROLE_BIT(FW_ROLE_OBSERVER), .serial = 1};

	w->identity = &key;
	client_hello(w, CLIENT, "");
	for (int i = 0; i < DRV_REQUESTS_MAX; i++)
		say(w, CLIENT,
		    &(struct fw_message){.kind = FW_STOP_APP, .seq = 2, .stop_app.name = "app"});
	cr_expect_eq(w->closed_count, 0);
	say(w, CLIENT, &(struct fw_message){.kind = FW_STOP_APP, .seq = 2, .stop_app.name = "app"});
	cr_expect(is_closed(w, CLIENT));
	assert_has(w->log, "refused `fragctl stop` of key k: this needs the role client");
	cr_expect_eq(w->core->history.counts[FW_NOTICE_REFUSED], 1, "one of a session is an event");
}

/* The client of the first of all connections, too. */
WORLD_TEST(driver_replies, a_node_is_examined_for_whoever_asked, world_init)
{
	struct fw_finding finding = {"memlock", true, "8 MiB", "copies", "ulimit -l"};

	client_hello(w, 1, "");
	hello(w, 2, "a", NULL);
	client_hello(w, 3, "");
	for (uint64_t client = 1; client <= 3; client += 2)
		say(w, client,
		    &(struct fw_message){.kind = FW_EXAMINE, .seq = 4, .examine = {"a"}});
	say(w, 2, &(struct fw_message){.kind = FW_EXAMINED, .examined = {"", &finding, 1}});
	cr_expect_not_null(taken(w, 1, FW_EXAMINED));
	cr_expect_not_null(taken(w, 3, FW_EXAMINED));
}

static const char long_graph[] = "frag: 1\napplication: app\nfragments:\n"
				 "  " LONG_NAME ": {operators: {tx: {type: t}}}\n";

static void write_line(struct world *w, const char *fragment, const char *text)
{
	struct fw_line line = {
		.level = FRAGI_LOG_INFO, .fragment = fragment, .op = LONG_NAME, .text = text};
	struct fw_message message = of_host(FW_HOST_LINES, 1);

	message.host_lines = (struct fw_host_lines){&line, 1, 0};
	say(w, 1, &message);
}

WORLD_TEST(driver_replies, lines_of_long_names_are_followed, world_init)
{
	client_hello(w, CLIENT, "");
	hello(w, 1, "a", NULL);
	say_start(w, CLIENT, 2, "", long_graph);
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_WATCH_LOGS,
				 .seq = 3,
				 .watch_logs = {.name = "app",
						.fragment = LONG_NAME,
						.op = LONG_NAME,
						.follow = true}});
	cr_expect_eq(must_take(w, CLIENT, FW_LOGS)->logs.count, 0);
	write_line(w, "f12", "of another one");
	cr_expect_eq(must_take(w, CLIENT, FW_LOGS)->logs.count, 0);
	write_line(w, LONG_NAME, "hello");
	cr_expect_eq(must_take(w, CLIENT, FW_LOGS)->logs.count, 1);
}

/* What does not fit into a message comes in the next step, and then there is nothing left to do. */
WORLD_TEST(driver_replies, a_follower_gets_many_lines_at_once, world_init)
{
	const struct fw_message *m;
	uint64_t last;

	client_hello(w, CLIENT, "");
	hello(w, 1, "a", NULL);
	say_start(w, CLIENT, 2, "", long_graph);
	for (int i = 0; i < FW_LOG_ROWS_MAX + 40; i++)
		write_line(w, LONG_NAME, "x");
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_WATCH_LOGS,
		    .seq = 3,
		    .watch_logs = {
			    .name = "app", .fragment = LONG_NAME, .op = "", .follow = true}});
	m = must_take(w, CLIENT, FW_LOGS);
	cr_expect_eq(m->logs.count, FW_LOG_ROWS_MAX);
	last = m->logs.last;
	m = taken(w, CLIENT, FW_LOGS);
	if (m == NULL) {
		cr_expect_leq(drv_core_deadline_ns(w->core), w->now_ns);
		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
		m = must_take(w, CLIENT, FW_LOGS);
	}
	cr_expect_eq(m->logs.count, 40);
	cr_expect_eq(m->logs.rows[0].number, last + 1);
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	cr_expect_gt(drv_core_deadline_ns(w->core), w->now_ns);
	cr_expect_null(taken(w, CLIENT, FW_LOGS));
}

static void start_and_end(struct world *w, uint64_t run, const char *name)
{
	say_start(w, CLIENT, run, name, two_fragments);
	speaking_run = speaking_epoch[1] = speaking_epoch[2] = run;
	both_prepare(w);
	both_run(w);
	both_are_done(w);
	both_exit(w);
}

/* The logs go with the last run of their application, and others stay. */
WORLD_TEST(driver_replies, logs_of_what_is_forgotten_are_forgotten, world_init)
{
	static const char *const names[] = {"one", "two", "three", "four"};
	const int64_t old = 1000 * SECOND;

	w->many_end = true;
	client_hello(w, CLIENT, "");
	both_come(w);
	for (uint64_t run = 1; run <= 4; run++) {
		drv_core_set_clock(w->core, run == 2 ? old + 100 * SECOND : old);
		start_and_end(w, run, names[run - 1]);
	}
	cr_expect_eq(w->core->lines.count, 4);
	drv_core_set_clock(w->core, old + DRV_KEPT_NS + 50 * SECOND);
	start_and_end(w, 5, "five"); /* forgets the runs that are old */
	cr_expect_null(drv_history_named(&w->core->history, "one"));
	cr_expect_not_null(drv_history_named(&w->core->history, "two"));
	start_and_end(w, 6, "six");
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(drv_lines_find(&w->core->lines, names[i]) != NULL, i == 1, "%s",
			     names[i]);
	cr_expect_eq(w->core->lines.count, 3);
	cr_expect_not_null(drv_lines_find(&w->core->lines, "five"));
	cr_expect_not_null(drv_lines_find(&w->core->lines, "six"));
	speaking_run = 1;
}

/* Nobody hears of it before it is on the disk, but one may ask. */
WORLD_TEST(driver_replies, why_an_application_that_is_new_runs_nowhere, NULL)
{
	const struct fw_explanation *why;

	world_init_with(w, (struct drv_config){.version = "test", .keeps_state = true});
	client_hello(w, CLIENT, "");
	app(w, two_fragments);
	say(w, CLIENT, &(struct fw_message){.kind = FW_EXPLAIN, .seq = 7, .explain = {"app", ""}});
	why = &must_take(w, CLIENT, FW_EXPLANATION)->explanation;
	cr_expect_str_eq(why->state, "new");
	cr_assert_eq(why->placement_count, 2);
	cr_expect_str_eq(why->placements[1].reason, "nobody has looked for a worker yet");
}

/* All texts of an answer are whole, however many rows it has. */
WORLD_TEST(driver_replies, many_flows_are_explained, world_init)
{
	static const char text[] =
		"frag: 1\napplication: app\nfragments:\n"
		"  f1: {requirements: {cpu: 2}, operators: {tx: {type: t}}}\n"
		"  f2: {requirements: {cpu: 3}, operators: {rx: {type: t}}}\n"
		"flows: [{from: f1.tx.a, to: [f2.rx.a, f2.rx.b, f2.rx.c]}, "
		"{from: f1.tx.b, to: [f2.rx.d, f2.rx.e, f2.rx.f, f2.rx.g, f2.rx.h]}]\n";
	const struct fw_explanation *why;
	char to[20];

	client_hello(w, CLIENT, "");
	app(w, text);
	hello(w, 1, "a", NULL);
	hello(w, 2, "b", NULL);
	say(w, CLIENT, &(struct fw_message){.kind = FW_EXPLAIN, .seq = 7, .explain = {"app", ""}});
	why = &must_take(w, CLIENT, FW_EXPLANATION)->explanation;
	cr_assert_eq(why->placement_count, 2);
	cr_expect_str_eq(why->placements[0].fragment, "f1");
	cr_expect_str_eq(why->placements[0].required, "cpu 2");
	cr_expect_str_eq(why->placements[1].fragment, "f2");
	cr_expect_str_eq(why->placements[1].required, "cpu 3");
	cr_expect_gt(strlen(why->placements[1].reason), 0);
	cr_assert_eq(why->placements[0].other_count, 1);
	cr_expect_gt(strlen(why->placements[0].others[0].worker), 0);
	cr_expect_gt(strlen(why->placements[0].others[0].reason), 0);
	cr_assert_eq(why->route_count, 8);
	for (uint32_t i = 0; i < 8; i++) {
		snprintf(to, sizeof(to), "f2.rx.%c", 97 + (int)i);
		cr_expect_str_eq(why->routes[i].from, i < 3 ? "f1.tx.a" : "f1.tx.b");
		cr_expect_str_eq(why->routes[i].to, to);
	}
}

/* Events are as old as they may be, and have no time before 1970. */
WORLD_TEST(driver_replies, events_are_forgotten_by_their_age, world_init)
{
	const struct drv_history *history = &w->core->history;

	drv_core_set_clock(w->core, -100 * SECOND);
	step(w, &(struct drv_event){.kind = DRV_EVENT_KEYS_KEPT, .text = "it is damaged"});
	cr_expect_eq(drv_history_after(history, 0)->unix_ns, 0);
	drv_core_set_clock(w->core, DRV_KEPT_NS - w->now_ns);
	step(w, &(struct drv_event){.kind = DRV_EVENT_KEYS_KEPT, .text = "it is damaged"});
	cr_expect_eq(history->first_notice, 1, "just as old as it may be");
	drv_core_set_clock(w->core, DRV_KEPT_NS - w->now_ns + 1);
	step(w, &(struct drv_event){.kind = DRV_EVENT_KEYS_KEPT, .text = "it is damaged"});
	cr_expect_eq(history->first_notice, 2);
	drv_core_set_clock(w->core, 2 * DRV_KEPT_NS);
	step(w, &(struct drv_event){.kind = DRV_EVENT_KEYS_KEPT, .text = "it is damaged"});
	cr_expect_eq(history->first_notice, 4, "all that were there");
	cr_expect_eq(history->last_notice, 4);
}

/* A service with an application, of which a client asks. */
static void serves(struct world *w)
{
	world_init(w);
	client_hello(w, CLIENT, "");
	both_come(w);
	say_start(w, CLIENT, 2, "", two_fragments);
	both_prepare(w);
	both_run(w);
}

static int64_t items_of(struct world *w, uint64_t connection, struct fw_message message)
{
	message.seq = 9;
	say(w, connection, &message);
	return drv_core_step_items(w->core);
}

/* An application with so much behind its graph. */
static int64_t items_of_source(struct world *w, const char *starts, size_t more)
{
	static char text[20000];
	const size_t size = strlen(two_fragments);

	memcpy(text, two_fragments, size);
	memset(text + size, 35, more);
	text[size + more] = 0;
	if (starts != NULL)
		say_start(w, CLIENT, 9, starts, text);
	else
		say_apply(w, CLIENT, 9, text, true);
	return drv_core_step_items(w->core);
}

/* Rows, hosts and each 64 bytes of a text or a message are items, of which a step has so many. */
WORLD_TEST(driver_replies, each_request_costs_what_it_has, serves)
{
	static char text[1000];
	struct fw_line rows[3];
	struct fw_message lines = of_host(FW_HOST_LINES, 1), tapped = of_host(FW_HOST_TAPPED, 1);
	struct fw_message beat = {.kind = FW_BEAT};
	const int64_t nothing = items_of(w, 1, beat);
	int64_t look;

	for (int i = 0; i < 3; i++)
		rows[i] = (struct fw_line){
			.level = FRAGI_LOG_INFO, .fragment = "f1", .op = "tx", .text = "x"};
	lines.host_lines = (struct fw_host_lines){rows, 3, 0};
	tapped.tapped = (struct fw_tapped){1, text, 640};
	cr_expect_eq(nothing, 0);
	cr_expect_eq(items_of(w, CLIENT, beat), 0);
	cr_expect_eq(items_of(w, 1, lines), 3);
	cr_expect_eq(items_of(w, 1, tapped), 10);
	cr_expect_eq(
		items_of(w, CLIENT,
			 (struct fw_message){.kind = FW_REQUEST, .request.what = FW_REQUEST_STATE}),
		5, "an application, two hosts, two workers");
	cr_expect_eq(items_of(w, CLIENT,
			      (struct fw_message){.kind = FW_EXPLAIN, .explain = {"app", ""}}),
		     5, "two fragments with another worker each, and a flow");
	cr_expect_eq(items_of(w, CLIENT, (struct fw_message){.kind = FW_WATCH}), 4);
	cr_expect_eq(items_of(w, CLIENT,
			      (struct fw_message){
				      .kind = FW_WATCH_LOGS,
				      .watch_logs = {.name = "app", .fragment = "f1", .op = ""}}),
		     3);
	look = items_of(
		w, CLIENT,
		(struct fw_message){.kind = FW_LOOK, .look = {.name = "app", .at_once = true}});
	cr_expect_eq(look, 5, "%d", (int)look);
	cr_expect_eq(items_of_source(w, NULL, 6400) - items_of_source(w, NULL, 0), 100);
	look = items_of_source(w, "other", 6400);
	cr_expect_eq(look - items_of_source(w, "third", 0), 300, "it is read, and sent to two");
}

/* As much as a text has room for. */
WORLD_TEST(driver_replies, much_that_is_required_is_cut, world_init)
{
	char text[4096], *at = text, shown[600] = "cpu 2";
	const struct fw_explanation *why;

	at += sprintf(at, "frag: 1\napplication: app\nfragments:\n"
			  "  f1: {requirements: {cpu: 2, labels: {");
	for (int i = 10; i < 40; i++) {
		at += sprintf(at, "%sname%d: value%d", i > 10 ? ", " : "", i, i);
		snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown),
			 ", label name%d=value%d", i, i);
	}
	sprintf(at, "}}, operators: {tx: {type: t}}}\n");
	client_hello(w, CLIENT, "");
	app(w, text);
	say(w, CLIENT, &(struct fw_message){.kind = FW_EXPLAIN, .seq = 7, .explain = {"app", ""}});
	why = &must_take(w, CLIENT, FW_EXPLANATION)->explanation;
	shown[511] = 0;
	cr_expect_str_eq(why->placements[0].required, shown);
}

/* By what it has proven, as events and the log have it. */
Test(driver_replies, who_comes_is_named)
{
	static const struct {
		const char *key, *user;
		uint64_t serial;
		const char *who, *logged;
	} cases[] = {
		{NULL, NULL, 0, "10.0.0.9:1", "worker a joined from 10.0.0.9:1\n"},
		{NULL, "ann", 0, "user ann", "worker a joined from 10.0.0.9:1\n"},
		{"k", "ann", 0, "certificate k",
		 "worker a joined from 10.0.0.9:1 with the certificate k\n"},
		{"k", NULL, 1, "key k", "worker a joined from 10.0.0.9:1 with the key k\n"},
		{"k", NULL, 2, "key k", "worker a joined from 10.0.0.9:1 with the key k\n"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct fw_identity identity = {.roles = FW_ROLE_BIT(FW_ROLE_WORKER),
					       .serial = cases[i].serial};
		const struct drv_notice *notice;
		struct world w;

		world_init(&w);
		if (cases[i].key != NULL) {
			strcpy(identity.name, cases[i].key);
			w.identity = &identity;
		}
		w.user = cases[i].user;
		hello(&w, 1, "a", NULL);
		w.identity = NULL;
		notice = drv_history_after(&w.core->history, 0);
		cr_expect_eq(notice->kind, FW_NOTICE_WORKER_JOINED);
		cr_expect_str_eq(notice->who, cases[i].who);
		cr_expect_str_eq(notice->text, "a");
		assert_has(w.log, cases[i].logged);
		world_fini(&w);
	}
}

/* Each text of its HELLO is kept where it belongs, for as long as the worker is there. */
WORLD_TEST(driver_replies, a_worker_is_known_as_it_says, world_init)
{
	static const char *fragments[] = {"f1", "f2"}, *labels[] = {"zone=a", "rack=b", "side=c"};
	struct fw_message message = {.kind = FW_HELLO,
				     .seq = 1,
				     .hello = {.major = FW_PROTOCOL_MAJOR,
					       .minor = 3,
					       .role = FW_ROLE_WORKER,
					       .name = "name",
					       .fragments = fragments,
					       .fragment_count = 2,
					       .labels = labels,
					       .label_count = 3,
					       .worker_address = "10.0.0.1",
					       .local_address = "10.0.0.2",
					       .node = "node",
					       .clock = "clock",
					       .memory = "memory",
					       .no_memory = "no memory",
					       .no_limits = "no limits",
					       .limited = "limited",
					       .waits_for = "waits for"}};
	const struct drv_session *session;

	pass(w, SECOND);
	say(w, 1, &message);
	session = w->core->sessions[0];
	cr_expect_str_eq(session->name, "name");
	cr_expect_str_eq(session->peer, "10.0.0.9:1");
	cr_expect_str_eq(session->worker_address, "10.0.0.1");
	cr_expect_str_eq(session->local_address, "10.0.0.2");
	cr_expect_str_eq(session->node, "node");
	cr_expect_str_eq(session->clock, "clock");
	cr_expect_str_eq(session->memory, "memory");
	cr_expect_str_eq(session->no_memory, "no memory");
	cr_expect_str_eq(session->no_limits, "no limits");
	cr_expect_str_eq(session->limited, "limited");
	cr_expect_str_eq(session->waits_for, "waits for");
	cr_expect_eq(session->minor, 3);
	cr_expect_eq(session->number, 1);
	cr_expect_eq(session->heard_ns, w->core->now_ns);
	cr_assert_eq(session->fragment_count, 2);
	cr_expect_str_eq(session->fragments[0], "f1");
	cr_expect_str_eq(session->fragments[1], "f2");
	cr_assert_eq(session->label_count, 3);
	cr_expect_str_eq(session->labels[0], "zone=a");
	cr_expect_str_eq(session->labels[2], "side=c");
	assert_has(w->log, "worker name can run nothing yet: waits for");
}
