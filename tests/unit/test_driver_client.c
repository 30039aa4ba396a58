// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

#include <wire/keys.h>

#define CLIENT 50

static const struct fw_reply *reply_of(struct world *w, uint64_t seq)
{
	const struct fw_message *message;

	request_state(w, CLIENT, seq);
	message = must_take(w, CLIENT, FW_REPLY);
	cr_expect_eq(message->reply_to, seq);
	return &message->reply;
}

WORLD_TEST(driver_client, a_client_is_welcome, world_init)
{
	const struct fw_reply *reply;

	client_hello(w, CLIENT, "");
	cr_expect_str_eq(taken(w, CLIENT, FW_WELCOME)->welcome.name, "client");
	reply = reply_of(w, 2);
	cr_expect_eq(reply->application_count, 0);
	cr_expect_eq(reply->worker_count, 0, "a client is no worker");
	cr_expect_eq(reply->more, 0);
}

WORLD_TEST(driver_client, a_reply_tells_how_things_stand, world_init)
{
	const struct fw_reply *reply;
	const struct fw_application_row *row;

	client_hello(w, CLIENT, "top");
	app(w, two_fragments);
	pass_beating(w, 2 * SECOND, CLIENT, CLIENT);
	reply = reply_of(w, 2);
	cr_assert_eq(reply->application_count, 1);
	cr_expect_str_eq(reply->applications[0].state, "waiting");
	cr_expect_eq(reply->applications[0].age_ns, 2 * SECOND);
	cr_expect_eq(reply->applications[0].host_count, 0);
	cr_expect_str_eq(reply->applications[0].missing, "f1, f2");
	both_come(w);
	say_prepared(w, 1, 1, "f1", true);
	reply = reply_of(w, 3);
	cr_expect_str_eq(reply->applications[0].hosts[0].state, "prepared");
	cr_expect_str_eq(reply->applications[0].missing, "");
	cr_expect_str_eq(reply->applications[0].hosts[1].state, "preparing");
	cr_expect_eq(reply->applications[0].hosts[1].pid, 0, "not known yet");
	say_prepared(w, 2, 2, "f2", false);
	both_run(w);
	reply = reply_of(w, 4);
	row = &reply->applications[0];
	cr_expect_str_eq(row->name, "app");
	cr_expect_str_eq(row->state, "running");
	cr_expect_eq(row->run, 1);
	cr_assert_eq(row->host_count, 2);
	cr_expect_eq(row->hosts[1].number, 2);
	cr_expect_str_eq(row->hosts[1].fragments, "f2");
	cr_expect_str_eq(row->hosts[1].worker, "b");
	cr_expect_str_eq(row->hosts[1].state, "running");
	cr_expect_eq(row->hosts[1].pid, 102);
	cr_assert_eq(reply->worker_count, 2);
	cr_expect_str_eq(reply->workers[0].name, "a");
	cr_expect_str_eq(reply->workers[0].address, "10.0.0.9:1");
	cr_expect_str_eq(reply->workers[0].state, "live");
	cr_expect_eq(reply->workers[0].cores, 4);
	cr_expect_eq(reply->workers[0].fragments, 1);
	both_are_done(w);
	both_exit(w);
	cr_assert(w->ended);
	reply = reply_of(w, 5);
	cr_expect_eq(reply->application_count, 0);
	cr_assert_eq(reply->worker_count, 2);
	cr_expect_eq(reply->workers[0].fragments, 0);
}

WORLD_TEST(driver_client, a_client_is_given_no_fragments, world_init)
{
	client_hello(w, 1, "top"); /* before, between and behind the workers, with more cores */
	app(w, two_fragments);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	hello(w, 2, "a", NULL);
	client_hello(w, 3, "top");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
	cr_expect_not_null(taken(w, 2, FW_HOST_CREATE));
	cr_expect_null(taken(w, 1, FW_HOST_CREATE));
	cr_expect_null(taken(w, 3, FW_HOST_CREATE));
	cr_expect_eq(drv_core_placed(w->core), 2);
}

WORLD_TEST(driver_client, its_name_and_its_session_are_not_those_of_a_worker, world_init)
{
	struct fw_message message = {.kind = FW_HELLO};
	const struct fw_message *welcome;

	client_hello(w, CLIENT, "a");
	hello(w, 1, "a", NULL);
	welcome = taken(w, 1, FW_WELCOME);
	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR, .role = FW_ROLE_CLIENT};
	message.hello.session = welcome->welcome.session;
	memcpy(message.hello.secret, welcome->welcome.secret, FW_SECRET_BYTES);
	say(w, CLIENT + 1, &message);
	cr_expect_eq(w->closed_count, 0, "the worker is not taken for a former session");
	cr_expect_str_eq(reply_of(w, 2)->workers[0].name, "a", "and has the name that it wished");
}

WORLD_TEST(driver_client, a_client_that_goes_ends_no_application, world_init)
{
	client_hello(w, CLIENT, "top");
	client_hello(w, CLIENT + 1, "top");
	to_running(w);
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = "it closed"});
	pass_beating(w, 4 * SECOND, 1, 2);
	assert_has(w->log, "client top#2 has not been heard for 1.");
	assert_has(w->log, "client top#2 left: it has not been heard for 3.");
	cr_expect_eq(w->closed[0], CLIENT + 1);
	cr_expect_eq(drv_core_session_count(w->core), 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

WORLD_TEST(driver_client, a_message_of_the_other_role_ends_the_session, world_init)
{
	to_running(w);
	client_hello(w, CLIENT, "top");
	say_exit(w, CLIENT, 1, 139, 11, "not its host");
	assert_has(w->log, "client top left: it sent HOST_EXIT, which is not for a client");
	cr_expect_eq(w->closed[0], CLIENT);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	hello(w, 3, "c", NULL);
	request_state(w, 3, 2);
	assert_has(w->log, "worker c left: it sent REQUEST, which is not for a driver");
	cr_expect_eq(w->closed[1], 3);
	cr_expect_null(taken(w, 3, FW_REPLY));
}

WORLD_TEST(driver_client, more_clients_than_it_takes_are_refused, world_init)
{
	const struct fw_message *refused;

	for (uint64_t i = 0; i < DRV_CLIENTS_MAX; i++)
		client_hello(w, CLIENT + i, "top");
	cr_expect_eq(drv_core_session_count(w->core), DRV_CLIENTS_MAX);
	client_hello(w, 1000, "top");
	refused = must_take(w, 1000, FW_REFUSED);
	cr_expect_eq(refused->refused.failure.code, FRAGI_FAILURE_DRIVER_FULL);
	cr_expect_str_eq(refused->refused.failure.sentence,
			 "driverd has as many clients as it takes");
	hello(w, 1001, "a", NULL);
	cr_expect_not_null(taken(w, 1001, FW_WELCOME), "a worker takes no place of a client");
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = "it closed"});
	client_hello(w, 1002, "top");
	cr_expect_not_null(taken(w, 1002, FW_WELCOME), "one has left");
	for (uint64_t i = 0; i < DRV_ADMINS_MAX; i++) {
		client_hello_as(w, 2000 + i, "root", true);
		cr_expect_not_null(taken(w, 2000 + i, FW_WELCOME), "%d", (int)i);
	}
	client_hello_as(w, 3000, "root", true);
	cr_expect_not_null(taken(w, 3000, FW_REFUSED));
}

WORLD_TEST(driver_client, those_who_follow_leave_places_for_those_who_command, world_init)
{
	struct fw_message events = {.kind = FW_WATCH, .seq = 5, .watch.follow = true};
	struct fw_message lines = {.kind = FW_WATCH_LOGS, .seq = 6};
	const struct fw_message *answer;

	lines.watch_logs =
		(struct fw_watch_logs){.name = "app", .fragment = "", .op = "", .follow = true};
	to_running(w);
	for (uint64_t i = 0; i <= DRV_FOLLOWERS_MAX; i++) {
		client_hello(w, CLIENT + i, "top");
		say(w, CLIENT + i, i % 2 == 0 ? &events : &lines);
		answer = taken(w, CLIENT + i, FW_ANSWER);
		cr_expect_eq(answer != NULL, i == DRV_FOLLOWERS_MAX, "%d", (int)i);
	}
	cr_expect_eq(answer->answer.failure.code, FRAGI_FAILURE_DRIVER_FULL);
	cr_expect_str_eq(
		answer->answer.failure.sentence,
		"48 clients follow events, logs, time or flows already, as many as driverd takes");
	cr_expect_null(taken(w, CLIENT + DRV_FOLLOWERS_MAX, FW_EVENTS), "it was refused");
	say(w, CLIENT, &lines);
	cr_expect_null(taken(w, CLIENT, FW_ANSWER), "it follows already");
	events.watch.follow = false;
	say(w, CLIENT + DRV_FOLLOWERS_MAX, &events);
	cr_expect_not_null(taken(w, CLIENT + DRV_FOLLOWERS_MAX, FW_EVENTS), "those of before");
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = CLIENT + 1, .text = "it closed"});
	say(w, CLIENT + DRV_FOLLOWERS_MAX, &lines);
	cr_expect_null(taken(w, CLIENT + DRV_FOLLOWERS_MAX, FW_ANSWER), "one has left");
}

/* In as many messages as that takes, without a wait for whatever happens next. */
WORLD_TEST(driver_client, who_follows_events_gets_all_there_are_at_once, world_init)
{
	const struct fw_message *m;
	uint64_t last = 0;
	int messages = 0;
	char peer[40];

	for (int i = 0; i < 600; i++) {
		snprintf(peer, sizeof(peer), "10.0.%d.%d:1", i / 200, i % 200);
		step(w, &(struct drv_event){
				.kind = DRV_EVENT_STRANGER, .peer = peer, .text = "it has no key"});
	}
	cr_assert_eq(w->core->history.last_notice, 600);
	client_hello(w, CLIENT, "top");
	say(w, CLIENT, &(struct fw_message){.kind = FW_WATCH, .seq = 5, .watch.follow = true});
	while (last < 600) {
		while ((m = taken(w, CLIENT, FW_EVENTS)) != NULL) {
			cr_assert_eq(m->events.rows[0].number, last + 1);
			last += m->events.count;
			messages++;
		}
		cr_assert_eq(drv_core_deadline_ns(w->core) <= w->now_ns, last < 600, "%d of 600",
			     (int)last);
		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	}
	cr_expect_eq(messages, 3);
}

WORLD_TEST(driver_client, a_client_that_asks_too_often_is_closed, world_init)
{
	to_running(w);
	client_hello(w, CLIENT, "top");
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < DRV_REQUESTS_MAX; i++)
			request_state(w, CLIENT, 2 + i);
		beat(w, CLIENT);
		pass_beating(w, 300 * MS, 1, 2);
	}
	cr_expect_eq(w->closed_count, 0, "so often is allowed between two beats");
	for (uint64_t i = 0; i < DRV_REQUESTS_MAX + 1; i++)
		request_state(w, CLIENT, 2 + i);
	cr_expect_eq(w->closed[0], CLIENT);
	assert_has(w->log, "client top left: it asks too often");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

static void start_large_of(struct world *w, uint64_t client, uint64_t seq, char *bytes,
			   uint32_t size)
{
	struct fw_message message = {.kind = FW_START_APP, .seq = seq};

	message.start_app =
		(struct fw_start_app){.name = "", .source = bytes, .source_bytes = size};
	say(w, client, &message);
}

static void start_large(struct world *w, uint64_t seq, char *bytes, uint32_t size)
{
	start_large_of(w, CLIENT, seq, bytes, size);
}

/* They are refused, as they are no graphs; what matters is when. */
Test(driver_client, large_graphs_wait_for_a_beat)
{
	const uint32_t most = DRV_REQUESTS_MAX * DRV_REQUEST_BYTES - 4096;
	char *bytes = calloc(1, most);
	struct world w;

	world_init(&w);
	w.many_end = true;
	client_hello(&w, CLIENT, "top");
	start_large(&w, 2, bytes, most);
	cr_expect_not_null(taken(&w, CLIENT, FW_ANSWER), "the first one is never too large");
	start_large(&w, 3, bytes, most / 2);
	cr_expect_null(taken(&w, CLIENT, FW_ANSWER));
	for (int beats = 0; beats < 2; beats++)
		beat(&w, CLIENT);
	cr_expect_null(taken(&w, CLIENT, FW_ANSWER), "its own beats change nothing");
	pass(&w, 250 * MS);
	cr_expect_eq(taken(&w, CLIENT, FW_ANSWER)->reply_to, 3);
	start_large(&w, 4, bytes, most / 4);
	cr_expect_eq(taken(&w, CLIENT, FW_ANSWER)->reply_to, 4, "together they are not too large");
	start_large(&w, 5, bytes, most / 2);
	cr_expect_null(taken(&w, CLIENT, FW_ANSWER));
	cr_expect_eq(w.closed_count, 0);
	start_large(&w, 6, bytes, most / 2);
	cr_assert_eq(w.closed_count, 1, "one waits at a time");
	cr_expect_eq(w.closed[0], CLIENT);
	assert_has(w.log, "client top left: it asks too often");
	pass(&w, SECOND);
	world_fini(&w);
	free(bytes);
}

/* Beats of all of them are due in the same step. */
Test(driver_client, large_graphs_of_several_clients_wait_for_each_other)
{
	const uint32_t most = DRV_REQUESTS_MAX * DRV_REQUEST_BYTES - 4096;
	char *bytes = calloc(1, most);
	int answered[4] = {0};
	struct world w;

	world_init(&w);
	w.many_end = true;
	for (uint64_t client = CLIENT; client < CLIENT + 4; client++)
		client_hello(&w, client, "top");
	for (uint64_t client = CLIENT; client < CLIENT + 4; client++) {
		start_large_of(&w, client, 2, bytes, most);
		cr_expect_not_null(taken(&w, client, FW_ANSWER));
		start_large_of(&w, client, 3, bytes, most);
		cr_expect_null(taken(&w, client, FW_ANSWER));
	}
	for (int beats = 1; beats <= 4; beats++) {
		int count = 0;

		pass(&w, 250 * MS);
		cr_expect_leq(drv_core_step_items(w.core), DRV_STEP_ITEMS_MAX);
		for (uint64_t client = CLIENT; client < CLIENT + 4; client++) {
			beat(&w, client);
			answered[client - CLIENT] += taken(&w, client, FW_ANSWER) != NULL;
			count += answered[client - CLIENT];
		}
		cr_expect_eq(count, beats, "one in each step: %d", count);
	}
	cr_expect_eq(w.closed_count, 0);
	world_fini(&w);
	free(bytes);
}

/* One that leaves while a graph of it waits takes that with it. */
Test(driver_client, a_large_graph_waits_only_as_long_as_its_client)
{
	const uint32_t most = DRV_REQUESTS_MAX * DRV_REQUEST_BYTES - 4096;
	char *bytes = calloc(1, most);
	struct world w;

	world_init(&w);
	w.many_end = true;
	client_hello(&w, CLIENT, "top");
	start_large(&w, 2, bytes, most);
	start_large(&w, 3, bytes, most);
	step(&w, &(struct drv_event){
			 .kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = "end of file"});
	cr_expect_not_null(taken(&w, CLIENT, FW_ANSWER));
	pass(&w, SECOND);
	cr_expect_null(taken(&w, CLIENT, FW_ANSWER));
	world_fini(&w);
	free(bytes);
}

Test(driver_client, what_a_reply_cannot_hold_is_only_counted)
{
	struct world *w = malloc(sizeof(*w));
	const struct fw_reply *reply;
	char name[16];

	fragi_log_threshold = FRAGI_LOG_WARN;
	world_init(w);
	for (uint64_t c = 1; c <= DRV_REPLY_ITEMS + 10; c++) {
		snprintf(name, sizeof(name), "w%d", (int)c);
		hello(w, c + CLIENT, name, "none");
	}
	app(w, two_fragments);
	client_hello(w, CLIENT, "top");
	reply = reply_of(w, 2);
	cr_expect_eq(reply->application_count, 1, "applications come first");
	cr_expect_eq(reply->worker_count, DRV_REPLY_ITEMS - 1);
	cr_expect_eq(reply->more, 11);
	cr_expect_leq(drv_core_step_items(w->core), DRV_REPLY_ITEMS);
	world_fini(w);
	free(w);
}

/* An application of so many hosts, named after its first letter; free() it. */
static char *wide_app(char letter, int hosts)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "frag: 1\napplication: %c\nfragments:\n", letter);
	for (int i = 0; i < hosts; i++)
		fprintf(out, "  %c%d: {host: h%d, operators: {o: {type: t}}}\n", letter, i, i);
	fclose(out);
	return text;
}

Test(driver_client, hosts_that_a_reply_cannot_hold_are_counted_with_their_application)
{
	struct world *w = malloc(sizeof(*w));
	char *first = wide_app('x', DRV_REPLY_ITEMS + 50), *second = wide_app('y', 3);
	const struct fw_reply *reply;

	fragi_log_threshold = FRAGI_LOG_WARN;
	world_init(w);
	for (uint64_t i = 1; i <= 9; i++) /* each takes FW_WORKER_HOSTS_MAX hosts */
		hello(w, CLIENT + i, "a", "all");
	app(w, first);
	pass(w, 0);
	app(w, second);
	pass(w, 0);
	client_hello(w, CLIENT, "top");
	reply = reply_of(w, 2);
	cr_assert_eq(reply->application_count, 1);
	cr_expect_eq(reply->applications[0].host_count, DRV_REPLY_ITEMS - 1);
	cr_expect(reply->applications[0].hosts[DRV_REPLY_ITEMS - 2].worker[0] == 'a');
	cr_expect_eq(reply->worker_count, 0);
	cr_expect_eq(reply->more, 51 + (1 + 3) + 9, "%u", reply->more);
	world_fini(w);
	free(w);
	free(first);
	free(second);
}

/* Of workers: "NAME STATE RAN, ..." in the order of the reply. */
static const char *workers_of(struct world *w, uint64_t seq)
{
	static char text[1024];
	const struct fw_reply *reply = reply_of(w, seq);
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < reply->worker_count; i++) {
		const struct fw_worker_row *row = &reply->workers[i];

		cr_expect_eq(row->age_ns != 0, row->state[0] == 'l' && row->state[1] != 'i');
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s %s",
					 used != 0 ? ", " : "", row->name, row->state, row->ran);
	}
	return text;
}

WORLD_TEST(driver_client, workers_that_are_away_are_shown_until_they_are_back, NULL)
{
	static const char *const expected[] = {"b", "z"};
	struct fw_message leave = {.kind = FW_LEAVE, .leave = {"it was told to end"}};

	world_init_with(w, (struct drv_config){.version = "test",
					       .clock = "node",
					       .address = "127.0.0.1:1",
					       .expected = expected,
					       .expected_count = 2});
	client_hello(w, CLIENT, "top");
	cr_expect_str_eq(workers_of(w, 2), "b expected , z expected ");
	to_running(w);
	hello(w, 3, "c", NULL);
	cr_expect_str_eq(workers_of(w, 3), "a live , b live , c live , z expected ");
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "cut"});
	say(w, 3, &leave);
	cr_expect_str_eq(workers_of(w, 4), "a live , c left , b lost f2 of app, z expected ");
	pass_beating(w, 2 * SECOND, 1, 1);
	cr_expect_eq(reply_of(w, 5)->workers[2].age_ns, 2 * SECOND + 1);
	hello(w, 4, "b", NULL);
	hello(w, 5, "c", NULL);
	hello(w, 6, "c", NULL);
	cr_expect_str_eq(workers_of(w, 6), "a live , b live , c live , c#2 live , z expected ");
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 5, .text = "cut"});
	cr_expect_str_eq(workers_of(w, 7), "a live , b live , c#2 live , z expected ",
			 "its next process is there");
}

WORLD_TEST(driver_client, so_many_workers_that_are_away_are_remembered, world_init)
{
	char name[16];

	client_hello(w, CLIENT, "top");
	for (uint64_t i = 1; i <= 65; i++) {
		snprintf(name, sizeof(name), "w%d", (int)i);
		hello(w, i + CLIENT, name, NULL);
		step(w, &(struct drv_event){
				.kind = DRV_EVENT_CLOSED, .connection = i + CLIENT, .text = "cut"});
	}
	cr_assert_eq(reply_of(w, 2)->worker_count, 64);
	cr_expect_str_eq(reply_of(w, 3)->workers[0].name, "w65", "the last one first");
	cr_expect_str_eq(reply_of(w, 4)->workers[63].name, "w2", "the first one is forgotten");
	/* Two come back, and then two others have gone. */
	for (uint64_t i = 64; i <= 67; i++) {
		snprintf(name, sizeof(name), "w%d", (int)i);
		hello(w, 100 + i, name, NULL);
		if (i > 65)
			step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED,
						    .connection = 100 + i,
						    .text = "cut"});
	}
	cr_assert_eq(reply_of(w, 5)->worker_count, 2 + 64);
	cr_expect_str_eq(reply_of(w, 6)->workers[2].name, "w67");
	cr_expect_str_eq(reply_of(w, 7)->workers[65].name, "w2", "there was room for it");
}

/* Right of each kind that a client may send: Read, Payload, Command, - for none. */
static char right_of(enum fw_kind kind)
{
	switch (kind) {
	case FW_BEAT:
		return '-';
	case FW_REQUEST:
	case FW_AWAIT:
	case FW_WATCH:
	case FW_WATCH_LOGS:
	case FW_EXPLAIN:
	case FW_LOOK:
		return 'r';
	case FW_TAP:
		return 'p';
	case FW_START_APP:
	case FW_STOP_APP:
	case FW_APPLY:
	case FW_SET:
	case FW_SWAP:
	case FW_DRAIN:
		return 'c';
	default:
		return 0;
	}
}

/* Sends one message of the kind in a session of its own, by that role of a key or a user. */
static void try_kind(enum fw_kind kind, const char *role, bool is_key, bool may)
{
	static struct world w;
	const struct fw_identity key = {.name = "k", .roles = fw_key_roles(role), .serial = 1};
	struct fw_message message = {.kind = kind, .seq = 2};
	const struct fw_message *answer;
	bool is_refused;

	world_init(&w);
	w.identity = is_key ? &key : NULL;
	w.user = "ann";
	w.user_roles = is_key ? 0 : key.roles;
	client_hello(&w, CLIENT, "");
	cr_assert_not_null(taken(&w, CLIENT, FW_WELCOME), "%s", role);
	if (kind == FW_AWAIT)
		message.await.until = FW_ENDED;
	else if (kind == FW_SET)
		message.set = (struct fw_set){"app", "f1.tx.rate=1"};
	else if (kind == FW_REQUEST)
		message.request.what = FW_REQUEST_STATE;
	else if (kind == FW_DRAIN)
		message.drain.worker = "a";
	else if (kind == FW_SWAP)
		message.swap = (struct fw_swap){"app", "f1", .library = "libx.so"};
	else if (right_of(kind) == 'c' || kind == FW_TAP || kind == FW_EXPLAIN ||
		 kind == FW_WATCH_LOGS)
		message.stop_app.name = "app"; /* the first member of all of them */
	say(&w, CLIENT, &message);
	answer = taken(&w, CLIENT, FW_ANSWER);
	is_refused = answer != NULL && answer->answer.failure.code == FRAGI_FAILURE_ROLE_REFUSED;
	cr_expect_eq(is_refused, !may, "%s by %s", fw_kind_name(kind), role);
	cr_expect_eq(w.closed_count, right_of(kind) == 0, "%s by %s", fw_kind_name(kind), role);
	if (is_refused) {
		cr_expect_eq(fragi_failure_exit(answer->answer.failure.code), 5);
		assert_has(answer->answer.failure.sentence,
			   is_key ? "which key k does not have" : "which user ann does not have");
		assert_has(answer->answer.failure.sentence, right_of(kind) == 'p'
								    ? "the role observer+payload,"
								    : "the role client,");
		cr_expect_eq(answer->reply_to, 2);
	}
	world_fini(&w);
}

/* Messages that are not for a client end the session, whatever its role. */
Test(driver_client, each_message_needs_its_role)
{
	static const struct {
		const char *role, *rights;
	} roles[] = {{"client", "-rpc"},
		     {"any", "-rpc"},
		     {"observer", "-r"},
		     {"observer+payload", "-rp"}};
	static const enum fw_kind kinds[] = {
#define KIND(number, KIND, type) FW_##KIND,
		FW_KIND_LIST(KIND)
#undef KIND
	};

	for (size_t k = 0; k < FRAG_COUNT_OF(kinds); k++) {
		char right = right_of(kinds[k]);

		if (right ==
		    0) /* most of them cannot be empty; one is enough, for they have no row */
			continue;
		for (size_t r = 0; r < FRAG_COUNT_OF(roles); r++) {
			bool may = strchr(roles[r].rights, right) != NULL;

			try_kind(kinds[k], roles[r].role, true, may);
			try_kind(kinds[k], roles[r].role, false, may);
		}
	}
	for (size_t r = 0; r < FRAG_COUNT_OF(roles); r++)
		try_kind(FW_REPORTED, roles[r].role, true, true);
}
