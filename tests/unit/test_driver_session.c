// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

WORLD_TEST(driver_session, a_silent_worker_is_suspected_then_dead, world_init)
{
	to_running(w);
	say_stats(w, 1, 1, false, 6, 0);
	say_stats(w, 2, 2, false, 0, 5);
	pass_beating(w, 1500 * MS, 1, 1);
	assert_has(w->log, "worker b has not been heard for 1.");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "no beat");
	pass_beating(w, SECOND, 1, 1);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "a suspect is not judged yet");
	pass_beating(w, SECOND, 1, 1);
	assert_has(w->errors,
		   "worker b at 10.0.0.9:1, which ran f2, was lost: it has not been heard for 3.");
	cr_expect_eq(w->closed[0], 2);
	cr_expect_eq(drv_core_session_count(w->core), 1);
	say_end(w, 1, 1, 20, 0, 137, 9);
	cr_assert(w->ended);
	assert_has(w->json,
		   "\"name\": \"f2\", \"worker\": \"b\", \"host_pid\": 102, \"state\": \"lost\"");
	assert_has(w->json, "\"sent\": 20, \"delivered\": 16");
	assert_has(w->json, "\"lost\": 4");
}

WORLD_TEST(driver_session, a_worker_that_is_heard_again_is_no_longer_suspected, world_init)
{
	to_running(w);
	pass_beating(w, 2 * SECOND, 1, 1);
	beat(w, 2);
	assert_has(w->log, "worker b is heard again");
	pass_beating(w, 10 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

WORLD_TEST(driver_session, who_slept_himself_judges_nobody, world_init)
{
	to_running(w);
	w->now_ns += 60 * SECOND; /* SIGSTOP, SIGCONT */
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	pass_beating(w, 5 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	cr_expect_str_eq(w->errors, "");
}

WORLD_TEST(driver_session, who_is_always_late_finds_the_dead_too, world_init)
{
	to_running(w);
	for (int i = 0; i < 13; i++) { /* every timer is late by more than a beat */
		w->now_ns += 600 * MS;
		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
		beat(w, 1);
		pass(w, 0);
	}
	assert_has(w->errors,
		   "worker b at 10.0.0.9:1, which ran f2, was lost: it has not been heard for");
}

static void forget_beats(struct world *w)
{
	for (uint64_t c = 1; c <= 2; c++)
		while (taken(w, c, FW_BEAT) != NULL)
			;
}

/* Some ms between pauses: all get a beat, and what has arrived is read before time goes on. */
WORLD_TEST(driver_session, who_is_stopped_again_and_again_judges_nobody, world_init)
{
	to_running(w);
	for (int i = 0; i < 20; i++) {
		w->now_ns = drv_core_deadline_ns(w->core) + 1000 * MS + i * 100 * MS;
		forget_beats(w);
		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
		cr_expect_eq(drv_core_deadline_ns(w->core) <= w->now_ns, i % 2 == 0,
			     "one waits: %d", i);
		for (uint64_t c = 1; c <= 2; c++)
			cr_expect_not_null(taken(w, c, FW_BEAT), "%d", i);
		if (i % 4 == 3) /* else it is stopped before it has read anything */
			for (uint64_t c = 1; c <= 2; c++)
				beat(w, c);
	}
	cr_expect_str_eq(w->errors, "");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

/* It runs, and is busy with one frame after the other. */
WORLD_TEST(driver_session, beats_are_sent_between_frames_when_timers_are_late, world_init)
{
	to_running(w);
	w->now_ns = drv_core_deadline_ns(w->core);
	forget_beats(w);
	for (int i = 1; i <= 50; i++) {
		w->now_ns += 10 * MS;
		beat(w, 1);
		cr_expect_eq(taken(w, 2, FW_BEAT) != NULL, i == 26, "%d", i);
	}
}

WORLD_TEST(driver_session, a_driver_that_did_not_run_names_itself_as_the_cause, world_init)
{
	to_running(w);
	for (int i = 0; i < 2; i++) {
		w->now_ns = drv_core_deadline_ns(w->core) + 1500 * MS;
		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
		beat(w, 2);
	}
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "it closed"});
	assert_has(
		w->errors,
		"worker a at 10.0.0.9:1, which ran f1, was lost: driverd itself did not run for 3.0 s (it was stopped, or got no processor), so the worker left it");
	hello(w, 3, "c", NULL);
	pass_beating(w, 3 * SECOND, 2, 3);
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 3, .text = "it closed"});
	assert_has(w->log, "worker c left: it closed");
}

WORLD_TEST(driver_session, a_worker_that_leaves_while_it_has_nothing_is_no_failure, world_init)
{
	app(w, two_fragments);
	hello(w, 1, "a", "f1");
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "it closed"});
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	hello(w, 3, "a", "f1");
	hello(w, 2, "b", "f2");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
}

WORLD_TEST(driver_session, another_major_is_refused_naming_both, world_init)
{
	struct fw_message message = {.kind = FW_HELLO, .seq = 4};
	const struct fw_message *m;

	message.hello.major = 99;
	say(w, 1, &message);
	m = must_take(w, 1, FW_REFUSED);
	cr_expect_eq(m->refused.failure.code, FRAGI_FAILURE_VERSION_REFUSED);
	assert_has(m->refused.failure.sentence, "99.0");
	assert_has(m->refused.failure.sentence, "this side 1.");
	cr_expect_eq(w->closed[0], 1);
	cr_expect_eq(drv_core_session_count(w->core), 0);
}

WORLD_TEST(driver_session, strangers_are_sent_away, world_init)
{
	say(w, 7, &(struct fw_message){.kind = FW_BEAT});
	cr_expect_eq(w->closed[0], 7);
	cr_expect_eq(drv_core_session_count(w->core), 0);
}

static void hello_with_key(struct world *w, uint64_t connection, enum fw_role role,
			   const char *key_role)
{
	const struct fw_identity identity = {
		.name = "node7", .roles = fw_key_roles(key_role), .serial = 1};
	struct fw_message message = {.kind = FW_HELLO, .seq = 1};

	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR, .role = role, .name = "a"};
	w->identity = &identity;
	say(w, connection, &message);
	w->identity = NULL;
}

Test(driver_session, a_key_serves_its_role_only)
{
	static const struct {
		enum fw_role role;
		const char *key, *sentence; /* NULL: it may */
	} cases[] = {
		{FW_ROLE_WORKER, "worker", NULL},
		{FW_ROLE_CLIENT, "client", NULL},
		{FW_ROLE_WORKER, "any", NULL},
		{FW_ROLE_CLIENT, "any", NULL},
		{FW_ROLE_WORKER, "client", "its key node7 is not for a worker"},
		{FW_ROLE_CLIENT, "worker", "its key node7 is not for a client"},
		{FW_ROLE_REPORTER, "client", "its key node7 is not for a"},
		{FW_ROLE_CLIENT, "observer", NULL},
		{FW_ROLE_CLIENT, "observer+payload", NULL},
		{FW_ROLE_WORKER, "observer", "its key node7 is not for a worker"},
		{FW_ROLE_WORKER, "observer+payload", "its key node7 is not for a worker"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct fw_message *refused;
		struct world w;

		world_init(&w);
		hello_with_key(&w, 1, cases[i].role, cases[i].key);
		refused = taken(&w, 1, FW_REFUSED);
		cr_expect_eq(refused == NULL, cases[i].sentence == NULL, "%zu", i);
		cr_expect_eq(drv_core_session_count(w.core), cases[i].sentence == NULL, "%zu", i);
		if (refused != NULL) {
			cr_expect_eq(refused->refused.failure.code, FRAGI_FAILURE_KEY_REFUSED);
			assert_has(refused->refused.failure.sentence, cases[i].sentence);
			cr_expect_eq(w.closed[0], 1);
		}
		world_fini(&w);
	}
}

/* Of keys, certificates, users and the unix socket, over which no worker comes. */
Test(driver_session, who_may_not_join_is_told_what_is_wrong)
{
	static const struct {
		bool has_identity, is_local;
		uint64_t serial;
		enum fw_role role;
		enum fragi_failure code;
		const char *sentence;
	} cases[] = {
		{true, false, 0, FW_ROLE_WORKER, FRAGI_FAILURE_KEY_REFUSED,
		 "its certificate node7 is not for a worker"},
		{true, false, 1, FW_ROLE_WORKER, FRAGI_FAILURE_KEY_REFUSED,
		 "its key node7 is not for a worker"},
		{true, false, 2, FW_ROLE_WORKER, FRAGI_FAILURE_KEY_REFUSED,
		 "its key node7 is not for a worker"},
		{false, false, 0, FW_ROLE_WORKER, FRAGI_FAILURE_USER_REFUSED,
		 "its user ann is not for a worker"},
		{false, true, 0, FW_ROLE_WORKER, FRAGI_FAILURE_USER_REFUSED,
		 "its user ann is not for a worker"},
		{true, true, 3, FW_ROLE_WORKER, FRAGI_FAILURE_SESSION_REFUSED,
		 "only clients may join over the unix socket; a worker connects to 127.0.0.1:1"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct fw_identity identity = {
			.name = "node7",
			.serial = cases[i].serial,
			.roles = FW_ROLE_BIT(cases[i].serial == 3 ? FW_ROLE_WORKER
								  : FW_ROLE_CLIENT)};
		struct fw_message hello = {
			.kind = FW_HELLO,
			.seq = 1,
			.hello = {.major = FW_PROTOCOL_MAJOR, .role = cases[i].role, .name = "a"}};
		struct drv_event event = {.kind = DRV_EVENT_MESSAGE,
					  .connection = 1,
					  .peer = "10.0.0.9:1",
					  .identity = cases[i].has_identity ? &identity : NULL,
					  .user = "ann",
					  .user_roles = FW_ROLE_BIT(FW_ROLE_CLIENT),
					  .is_local = cases[i].is_local};
		const struct fw_failure *failure;
		struct world w;
		uint8_t *frame;
		size_t size;

		world_init(&w);
		cr_assert_eq(fw_encode(&hello, &frame, &size), 0);
		cr_assert_eq(fw_decode(frame + 4, size - 4, &event.message, NULL), 0);
		fragi_free(frame);
		step(&w, &event);
		failure = &must_take(&w, 1, FW_REFUSED)->refused.failure;
		cr_expect_eq(failure->code, cases[i].code, "%zu", i);
		cr_expect_str_eq(failure->sentence, cases[i].sentence);
		cr_expect(is_closed(&w, 1));
		cr_expect_eq(w.core->history.counts[FW_NOTICE_REFUSED],
			     cases[i].code == FRAGI_FAILURE_KEY_REFUSED);
		world_fini(&w);
	}
}

WORLD_TEST(driver_session, a_key_that_was_removed_ends_its_session, world_init)
{
	struct fw_identity identity = {.name = "node7", .serial = 1};
	const struct fw_message *refused;

	to_running(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_REVOKED,
				    .connection = 1,
				    .peer = "10.0.0.9:1",
				    .identity = &identity});
	refused = must_take(w, 1, FW_REFUSED);
	cr_expect_eq(refused->refused.failure.code, FRAGI_FAILURE_KEY_REFUSED);
	cr_expect_str_eq(refused->refused.failure.sentence,
			 "its key node7 is no longer in the key file");
	cr_expect_eq(w->closed[0], 1);
	cr_expect_eq(drv_core_session_count(w->core), 1);
	assert_has(w->errors, "was lost: its key node7 is no longer in the key file");
	cr_expect_null(strstr(w->log, "may still run there"), "it was told");
}

static bool accepts(void *arg, const struct fw_identity *identity)
{
	return strcmp(identity->name, arg) != 0;
}

/* A worker behind NAT is seen by its two addresses, however they are written. */
WORLD_TEST(driver_session, a_worker_whose_own_address_is_another_is_behind_nat, NULL)
{
	static const struct {
		const char *peer, *local, *seen; /* NULL: it is not */
		const char *announced;
	} cases[] = {
		{"10.0.0.2:48284", "192.168.0.2",
		 "from 10.0.0.2, but its own address is 192.168.0.2,",
		 "--announce-address 10.0.0.2"},
		{"10.0.0.2:48284", "10.0.0.2", NULL},
		{"10.0.0.2:48284", "::ffff:10.0.0.2", NULL},
		{"10.0.0.2:48284", "", NULL},
		{"10.0.0.2:48284", "10.0.0.20", "from 10.0.0.2, but its own address is 10.0.0.20,",
		 "--announce-address 10.0.0.2"},
		{"[::ffff:10.0.0.2]:48284", "10.0.0.2", NULL},
		{"[::ffff:10.0.0.2]:48284", "10.0.0.3",
		 "from 10.0.0.2, but its own address is 10.0.0.3,", "--announce-address 10.0.0.2"},
		{"[fd00::2]:48284", "fd00::2", NULL},
		{"[fd00::2]:48284", "fd00::3", "from fd00::2, but its own address is fd00::3,",
		 "--announce-address fd00::2"},
	};
	char remedy[100];

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct drv_session *session;
		const char *text;

		if (i > 0)
			world_fini(w);
		world_init(w);
		hello(w, 1, "a", NULL);
		w->core->actions = &w->actions; /* as in a step */
		session = drv_session_find(w->core, 1);
		session->peer = cases[i].peer;
		session->local_address = cases[i].local;
		text = drv_session_translation(session);
		cr_assert_eq(text != NULL, cases[i].seen != NULL, "%zu: %s", i, text);
		if (text == NULL)
			continue;
		cr_expect_not_null(strstr(text, cases[i].seen), "%s", text);
		cr_expect_null(strstr(text, "--worker-address"), "it offers another address");
		session->worker_address = cases[i].local;
		text = drv_session_translation(session);
		snprintf(remedy, sizeof(remedy), "--worker-address %s:PORT-PORT", cases[i].local);
		cr_expect_not_null(strstr(text, remedy), "%s", text);
		cr_expect_not_null(strstr(text, cases[i].announced), "%s", text);
	}
}

/* Of those that do not answer or are away, once each. One that was away and is back is told. */
WORLD_TEST(driver_session, what_a_worker_may_run_on_without_its_key_is_named, NULL)
{
	struct fw_identity identity = {.name = "node7", .serial = 1};
	struct drv_event revoked = {.kind = DRV_EVENT_REVOKED,
				    .connection = 1,
				    .peer = "10.0.0.9:1",
				    .identity = &identity};
	struct drv_event unheard = {.kind = DRV_EVENT_UNHEARD, .connection = 1};
	char gone[] = "node7";
	struct drv_event keys = {.kind = DRV_EVENT_KEYS, .accepts = accepts, .arg = gone};
	static const char word[] =
		"worker a cannot be told that its key node7 is no longer in the key file: this may still run there: f1 of app";
	enum { ANSWERS, DOES_NOT_ANSWER, IS_AWAY, CASES };

	for (int is = 0; is < CASES; is++) {
		if (is > 0)
			world_fini(w);
		world_init(w);
		to_running(w);
		drv_session_find(w->core, 1)->identity = identity;
		if (is == IS_AWAY)
			step(w, &(struct drv_event){
					.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "cut"});
		else
			step(w, &revoked);
		strcpy(gone, "node8");
		step(w, &keys);
		cr_expect_null(strstr(w->log, word), "%d: its key is there", is);
		strcpy(gone, "node7");
		step(w, &keys);
		cr_expect_eq(strstr(w->log, word) != NULL, is == IS_AWAY, "%d: %s", is, w->log);
		for (unheard.connection = 2; unheard.connection != 0; unheard.connection--) {
			if (is == DOES_NOT_ANSWER)
				step(w, &unheard);
			cr_expect_eq(strstr(w->log, word) != NULL,
				     is == IS_AWAY ||
					     (is == DOES_NOT_ANSWER && unheard.connection == 1),
				     "%d, connection %d: %s", is, (int)unheard.connection, w->log);
		}
		w->log[0] = '\0';
		unheard.connection = 1;
		if (is == DOES_NOT_ANSWER)
			step(w, &unheard);
		step(w, &keys);
		cr_expect_null(strstr(w->log, word), "%d: it was said", is);
	}
}

/* It has proven a key and not said HELLO yet. */
WORLD_TEST(driver_session, a_stranger_whose_key_was_removed_is_closed, world_init)
{
	struct fw_identity identity = {.name = "node7", .serial = 1};

	step(w, &(struct drv_event){.kind = DRV_EVENT_REVOKED,
				    .connection = 5,
				    .peer = "10.0.0.9:1",
				    .identity = &identity});
	cr_expect_eq(w->closed[0], 5);
	assert_has(w->log, "closes the connection of 10.0.0.9:1: its key node7 is no longer in the "
			   "key file");
}

/* Of a machine that tries again and again there is one event. */
WORLD_TEST(driver_session, a_refused_key_is_an_event, world_init)
{
	static const char *const peers[] = {"10.0.0.9:1", "10.0.0.9:2", "10.0.0.8:3",
					    "10.0.0.9:4", "10.0.0.9:5", "10.0.0.9:6"};
	static const uint64_t events[] = {1, 1, 2, 3, 3, 4};

	for (int i = 0; i < 6; i++) {
		if (i >= 4)
			pass(w, i == 4 ? 600 * SECOND - 1 : 1);
		step(w, &(struct drv_event){.kind = DRV_EVENT_STRANGER,
					    .peer = peers[i],
					    .text = "its key is not in the key file"});
		cr_expect_eq(w->core->history.last_notice, events[i], "%d", i);
	}
	cr_expect_str_eq(drv_history_after(&w->core->history, 1)->text,
			 "a connection of 10.0.0.8: its key is not in the key file");
}

WORLD_TEST(driver_session, names_are_made_unique, world_init)
{
	hello(w, 1, "node", NULL);
	hello(w, 2, "node", NULL);
	hello(w, 3, "node", NULL);
	cr_expect_str_eq(taken(w, 1, FW_WELCOME)->welcome.name, "node");
	cr_expect_str_eq(taken(w, 2, FW_WELCOME)->welcome.name, "node#2");
	cr_expect_str_eq(taken(w, 3, FW_WELCOME)->welcome.name, "node#3");
}

static void expect_sessions(const struct world *w, const bool *is_there, uint64_t count)
{
	size_t sessions = 0, clients = 0;

	for (uint64_t c = 1; c <= count; c++) {
		const struct drv_session *session = drv_session_find(w->core, c);

		cr_expect_eq(session != NULL, is_there[c], "%d", (int)c);
		if (session != NULL)
			cr_expect_eq(session->connection, c);
		sessions += is_there[c];
		clients += is_there[c] && c % 3 == 0;
	}
	cr_expect_eq(drv_core_session_count(w->core), sessions);
	cr_expect_eq(w->core->client_count, clients);
	for (size_t i = 1; i < sessions; i++)
		cr_expect_lt(w->core->connections[i - 1], w->core->connections[i]);
	for (size_t i = 0; i < sessions; i++)
		cr_expect_eq(w->core->sessions[i]->connection, w->core->connections[i]);
}

/* They are found by their connections, in whatever order these say HELLO and go. */
WORLD_TEST(driver_session, sessions_are_found_by_their_connections, world_init)
{
	enum { CONNECTIONS = 41 }; /* each is 7 times a number, modulo that */
	bool is_there[CONNECTIONS] = {false};
	char name[8];

	for (uint64_t i = 1; i < CONNECTIONS; i++) {
		const uint64_t c = 7 * i % CONNECTIONS;

		snprintf(name, sizeof(name), "w%d", (int)c);
		if (c % 3 == 0)
			client_hello(w, c, name);
		else
			hello(w, c, name, NULL);
		is_there[c] = true;
		expect_sessions(w, is_there, CONNECTIONS - 1);
	}
	for (uint64_t i = 1; i < CONNECTIONS; i++) {
		const uint64_t c = 11 * i % CONNECTIONS;

		step(w, &(struct drv_event){
				.kind = DRV_EVENT_CLOSED, .connection = c, .text = "it closed"});
		is_there[c] = false;
		expect_sessions(w, is_there, CONNECTIONS - 1);
	}
}

/* A worker keeps a name that this driver, or one before, has made of its own, if nobody has it. */
Test(driver_session, a_worker_keeps_the_name_that_it_had)
{
	static const struct {
		const char *others[3], *last, *name; /* of workers that are there; NULL: no more */
	} cases[] = {
		{{NULL}, "node#2", "node#2"},
		{{NULL}, "node#12", "node#12"},
		{{NULL}, "node", "node"},
		{{NULL}, "", "node"},
		{{NULL}, "node#1", "node"},
		{{NULL}, "node#0", "node"},
		{{NULL}, "node#-2", "node"},
		{{NULL}, "node#", "node"},
		{{NULL}, "node#2x", "node"},
		{{NULL}, "node2", "node"},
		{{NULL}, "nod#2", "node"},
		{{NULL}, "other#2", "node"},
		{{"node#2", NULL}, "node#2", "node"},
		{{"node", NULL}, "node#3", "node#3"},
		{{"node", NULL}, "", "node#2"},
		{{"node", "node#2", NULL}, "", "node#3"},
		{{"node", "node#3", NULL}, "", "node#2"},
		{{"node", "node#2", "node#4"}, "", "node#3"},
		{{"node", "node#99", NULL}, "", "node#2"},
		{{"node#2", "nodes", NULL}, "", "node"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct world w;

		world_init(&w);
		for (uint64_t k = 0; k < 3 && cases[i].others[k] != NULL; k++)
			hello_by(&w, 10 + k, cases[i].others[k], NULL,
				 (struct fw_hello){.last_name = ""});
		hello_by(&w, 1, "node", NULL, (struct fw_hello){.last_name = cases[i].last});
		cr_expect_str_eq(taken(&w, 1, FW_WELCOME)->welcome.name, cases[i].name, "%zu", i);
		world_fini(&w);
	}
}

WORLD_TEST(driver_session, a_misspelt_fragment_is_pointed_out, world_init)
{
	app(w, "frag: 1\napplication: app\nfragments: {camera: {operators: {tx: {type: t}}}}\n");
	hello(w, 1, "a", "camrea");
	assert_has(
		w->log,
		"names the fragment \"camrea\", which this application does not have; did you mean \"camera\"?");
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (; (text = strstr(text, part)) != NULL; text += strlen(part))
		count++;
	return count;
}

/* The search for a similar name compares with all of them, so it is made for eight. */
WORLD_TEST(driver_session, of_many_misspelt_fragments_all_are_pointed_out, world_init)
{
	const char *fragments[10];
	struct fw_message message = {
		.kind = FW_HELLO,
		.seq = 1,
		.hello = {.major = FW_PROTOCOL_MAJOR,
			  .role = FW_ROLE_WORKER,
			  .name = "a",
			  .fragments = fragments,
			  .fragment_count = FRAG_COUNT_OF(fragments),
			  .version = "test"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(fragments); i++)
		fragments[i] = i == 4 ? "camera" : "camrea";
	app(w, "frag: 1\napplication: app\nfragments: {camera: {operators: {tx: {type: t}}}}\n");
	say(w, 1, &message);
	cr_expect_eq(count_of(w->log, "names the fragment \"camrea\""), 9);
	cr_expect_eq(count_of(w->log, "did you mean \"camera\"?"), 8);
	cr_expect_eq(count_of(w->log, "does not have\n"), 1);
}

WORLD_TEST(driver_session, frames_of_other_hosts_runs_and_epochs_are_not_heard, world_init)
{
	struct fw_message message;

	to_running(w);
	say_exit(w, 1, 2, 139, 11, "not its host");
	message = of_host(FW_HOST_EXIT, 1);
	message.epoch = 2;
	say(w, 1, &message);
	message.epoch = 1;
	message.run = 9;
	say(w, 1, &message);
	message = of_host(FW_HOST_EXIT, 77);
	say(w, 1, &message);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

Test(driver_session, more_workers_than_it_takes_are_refused)
{
	struct world *w = malloc(sizeof(*w));
	const struct fw_message *m;
	char name[16];

	fragi_log_threshold = FRAGI_LOG_WARN;
	world_init(w);
	for (uint64_t c = 1; c <= DRV_WORKERS_MAX; c++) {
		snprintf(name, sizeof(name), "w%d", (int)c);
		hello(w, c, name, NULL);
	}
	cr_expect_eq(drv_core_session_count(w->core), DRV_WORKERS_MAX);
	hello(w, 100000, "late", NULL);
	cr_expect_eq(drv_core_session_count(w->core), DRV_WORKERS_MAX);
	m = must_take(w, 100000, FW_REFUSED);
	cr_expect_eq(m->refused.failure.code, FRAGI_FAILURE_DRIVER_FULL);
	cr_expect_str_eq(m->refused.failure.sentence, "driverd has as many workers as it takes");
	cr_expect_eq(w->closed[0], 100000);
	client_hello(w, 100002, "top");
	cr_expect_not_null(taken(w, 100002, FW_WELCOME), "a client takes no place of a worker");
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = 4000, .text = "it closed"});
	hello(w, 100003, "late", NULL);
	cr_expect_not_null(taken(w, 100003, FW_WELCOME), "one has left");
	world_fini(w);
	free(w);
}

WORLD_TEST(driver_session, the_nameless_get_names_too, world_init)
{
	hello(w, 1, "", NULL);
	hello(w, 2, "", NULL);
	cr_expect_str_eq(taken(w, 1, FW_WELCOME)->welcome.name, "worker");
	cr_expect_str_eq(taken(w, 2, FW_WELCOME)->welcome.name, "worker#2");
}

WORLD_TEST(driver_session, who_comes_back_takes_the_place_of_its_former_session, world_init)
{
	struct fw_message message = {.kind = FW_HELLO};
	const struct fw_message *first, *second;

	to_running(w);
	first = taken(w, 1, FW_WELCOME);
	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					  .role = FW_ROLE_WORKER,
					  .name = "a",
					  .session = first->welcome.session};
	memcpy(message.hello.secret, first->welcome.secret, FW_SECRET_BYTES);
	say(w, 3, &message);
	second = must_take(w, 3, FW_WELCOME);
	cr_expect_neq(second->welcome.session, first->welcome.session);
	cr_expect_str_eq(second->welcome.name, "a", "its name is free again");
	cr_expect_eq(w->closed[0], 1);
	cr_expect_eq(drv_core_session_count(w->core), 2);
	assert_has(
		w->errors,
		"worker a at 10.0.0.9:1, which ran f1, was lost: it came back on a new connection");
}

WORLD_TEST(driver_session, an_id_without_its_secret_ends_no_session, world_init)
{
	struct fw_message message = {.kind = FW_HELLO};
	const struct fw_message *first, *other;

	to_running(w);
	first = taken(w, 1, FW_WELCOME);
	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					  .role = FW_ROLE_WORKER,
					  .name = "a",
					  .session = first->welcome.session};
	say(w, 3, &message);
	memcpy(message.hello.secret, first->welcome.secret, FW_SECRET_BYTES);
	message.hello.secret[FW_SECRET_BYTES - 1] ^= 1;
	say(w, 4, &message);
	message.hello.secret[FW_SECRET_BYTES - 1] ^= 1;
	message.hello.session++;
	say(w, 5, &message);
	cr_expect_eq(w->closed_count, 0);
	cr_expect_str_eq(w->errors, "");
	other = taken(w, 3, FW_WELCOME);
	cr_expect_str_eq(other->welcome.name, "a#2");
	cr_expect_arr_neq(other->welcome.secret, first->welcome.secret, FW_SECRET_BYTES);
	cr_expect_str_eq(taken(w, 4, FW_WELCOME)->welcome.name, "a#3");
	cr_expect_str_eq(taken(w, 5, FW_WELCOME)->welcome.name, "a#4");
}

static void draw_zeros(void *arg, void *bytes, size_t size)
{
	memset(bytes, 0, size);
}

WORLD_TEST(driver_session, no_session_is_0_since_0_is_none, world_init)
{
	struct drv_config config = {.random = draw_zeros};

	drv_core_destroy(w->core);
	cr_assert_eq(drv_core_create(&config, &w->core), 0);
	hello(w, 1, "a", NULL);
	cr_expect_neq(taken(w, 1, FW_WELCOME)->welcome.session, 0);
}

WORLD_TEST(driver_session, workers_that_die_in_one_moment_end_the_application_once, world_init)
{
	app(w, "frag: 1\napplication: app\nfragments:\n"
	       "  f1: {operators: {o: {type: t}}}\n"
	       "  f2: {operators: {o: {type: t}}}\n");
	/* two without a part in it, seen to be dead before and after the others */
	hello(w, 4, "d", "f4");
	hello(w, 3, "c", "f3");
	both_come(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
	pass(w, 4 * SECOND);
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 1);
	assert_has(w->reason, "was lost: it has not been heard for 3.");
	cr_expect_eq(drv_core_session_count(w->core), 0);
	cr_expect_eq(drv_core_deadline_ns(w->core), INT64_MAX, "nothing is left to happen");
}

WORLD_TEST(driver_session, what_a_worker_may_not_say_ends_its_session, world_init)
{
	to_running(w);
	say(w, 1, &(struct fw_message){.kind = FW_HOST_START});
	cr_expect_eq(w->closed[0], 1);
	assert_has(w->errors,
		   "which ran f1, was lost: it sent HOST_START, which is not for a driver");
	cr_assert_not_null(taken(w, 2, FW_HOST_STOP));
}

WORLD_TEST(driver_session, what_is_said_of_a_host_that_is_not_there_is_not_heard, world_init)
{
	static const uint32_t numbers[] = {0, 3, UINT32_MAX};

	to_running(w);
	w->log[0] = '\0';
	for (size_t i = 0; i < FRAG_COUNT_OF(numbers); i++) {
		say_event(w, 1, numbers[i], FW_STATE_FAILED, "it breaks");
		say_stats(w, 1, numbers[i], true, 5, 5);
		say_exit(w, 1, numbers[i], 1, 0, "it has exited");
	}
	cr_expect_str_eq(w->log, "");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	cr_expect_eq(drv_core_session_count(w->core), 2);
}

WORLD_TEST(driver_session, fragments_named_in_full_or_all_are_no_misspellings, world_init)
{
	app(w,
	    "frag: 1\napplication: other\nfragments: {camera: {host: x, operators: {tx: {type: t}}}, view: {operators: {tx: {type: t}}}}\n");
	hello(w, 1, "a", "otherXcamera");
	assert_has(w->log, "worker a names the fragment \"otherXcamera\"");
	hello(w, 2, "b", "another/camera");
	assert_has(w->log, "worker b names the fragment \"another/camera\"");
	hello(w, 3, "c", "other/camera");
	cr_expect_null(strstr(w->log, "names the fragment \"other/camera\""));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	hello(w, 4, "d", "all");
	cr_expect_null(strstr(w->log, "names the fragment \"all\""));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
}
