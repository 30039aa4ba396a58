// SPDX-License-Identifier: Apache-2.0
#include "look_world.h"

/* So metrics leave out drops that cannot be. */
WORLD_TEST(driver_look, a_flow_is_timed_where_its_receiver_may_drop_for_the_time, NULL)
{
	static const struct {
		const char *of_f2, *of_all;
		bool is_timed;
	} cases[] = {
		{"", "", false},
		{", ports: {in: {capacity: 2}}", "", false},
		{", ports: {in: {age: 50ms}}", "", true},
		{", ports: {in: {missing: reuse_last}}", "", true},
		{", deadline: {budget: 20ms, from: acquisition, on_miss: drop}", "", true},
		{"", "deadlines: [{path: [f1.tx, f2.rx], budget: 5ms}]\n", true},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		char text[1024];

		snprintf(text, sizeof(text),
			 "frag: 1\napplication: app\nfragments:\n"
			 "  f1: {operators: {tx: {type: ping_tx}}}\n"
			 "  f2: {operators: {rx: {type: ping_rx%s}}}\n"
			 "flows: [f1.tx -> f2.rx]\n%s",
			 cases[i].of_f2, cases[i].of_all);
		two_run(w, text);
		client_hello(w, CLIENT, "web");
		look_at_once(w, SECOND, 10);
		cr_expect_eq(looked(w, CLIENT)->look.flows[0].is_timed, cases[i].is_timed, "%zu",
			     i);
		if (i + 1 < FRAG_COUNT_OF(cases))
			world_fini(w);
	}
}

/* LOOK of a client that keeps the tables. */
static void look_for_changes(struct world *w, const char *name)
{
	struct fw_message message = {.kind = FW_LOOK, .seq = 9};

	message.look = (struct fw_look){.name = name, .every_ns = SECOND, .changes = true};
	say(w, CLIENT, &message);
}

WORLD_TEST(driver_look, who_keeps_tables_gets_what_has_changed, NULL)
{
	const struct fw_message *m;

	two_run(w, receiver_restarts);
	report(w, 1, false, (struct report){7 * SECOND, 5, 0, 7, 0, 100, 100});
	report(w, 2, false, (struct report){3 * SECOND, 5, 7, 0, 0, 90, 90});
	client_hello(w, CLIENT, "top");
	look_for_changes(w, "");
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_not(looked(w, CLIENT)->is_same, "it has none yet");
	pass_beating(w, SECOND, 1, CLIENT);
	m = must_take(w, CLIENT, FW_LOOKED);
	cr_expect(m->looked.is_same);
	cr_expect(m->looked.is_last);
	cr_expect_neq(m->run, 0);
	cr_expect_eq(m->looked.look.unix_ns, w->core->real_ns + w->core->config.realtime_offset_ns);
	cr_expect_eq(m->looked.look.operator_count, 0);
	report(w, 2, false, (struct report){5 * SECOND, 6, 7, 0, 0, 91, 91});
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_eq(looked(w, CLIENT)->look.flows[0].delivered_sum, 91, "it has reported");
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect(looked(w, CLIENT)->is_same);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_not_null(looked(w, CLIENT)->look.hosts[1].suspended_because);
	pass_beating(w, SECOND, 1, CLIENT);
	(void)looked(w, CLIENT); /* it is asked to begin */
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect(looked(w, CLIENT)->is_same, "it is still being started again");
	/* Each question begins with all tables. */
	look_for_changes(w, "app");
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_not(looked(w, CLIENT)->is_same);
}

static uint32_t windows_of(struct world *w, uint64_t client)
{
	uint32_t count = 0;

	while (taken(w, client, FW_LOOKED) != NULL)
		count++;
	return count;
}

WORLD_TEST(driver_look, each_client_has_its_own_windows_until_it_goes, NULL)
{
	two_run(w, two_fragments);
	look(w, CLIENT, "app", SECOND, false);
	look(w, CLIENT + 1, "", 1, false); /* as often as may be */
	look(w, CLIENT + 2, "app", 500 * MS, true);
	pass_beating(w, 2 * SECOND, 1, CLIENT + 2);
	cr_expect_eq(windows_of(w, CLIENT), 2);
	cr_expect_eq(windows_of(w, CLIENT + 1), 8);
	cr_expect_eq(windows_of(w, CLIENT + 2), 1);
	for (uint64_t client = CLIENT; client < CLIENT + 2; client++)
		step(w, &(struct drv_event){
				.kind = DRV_EVENT_CLOSED, .connection = client, .text = "it left"});
	while (taken(w, 1, FW_HOST_LOOK) != NULL)
		;
	pass_beating(w, 3 * SECOND, 1, 2);
	cr_expect_null(taken(w, 1, FW_HOST_LOOK), "nobody looks");
	cr_expect_null(w->core->waiting);
}

WORLD_TEST(driver_look, who_asks_at_once_is_no_follower_and_may_follow_beside, NULL)
{
	uint32_t clients = 0;

	two_run(w, two_fragments);
	look(w, CLIENT, "app", SECOND, false);
	look_at_once(w, SECOND, 10);
	cr_expect_eq(windows_of(w, CLIENT), 1);
	pass_beating(w, 3 * SECOND, 1, CLIENT);
	cr_expect_eq(windows_of(w, CLIENT), 3, "its windows go on");
	look_at_once(w, SECOND, 10);
	cr_expect_eq(looked(w, CLIENT)->look.window_ns, 3 * SECOND);
	/* As many follow as may. */
	do
		look(w, CLIENT + ++clients, "", SECOND, false);
	while (clients < 100 && taken(w, CLIENT + clients, FW_ANSWER) == NULL);
	cr_expect_eq(clients, DRV_FOLLOWERS_MAX);
	look(w, CLIENT + 101, "app", SECOND, true);
	pass_beating(w, SECOND, 1, CLIENT + 101);
	cr_expect_eq(windows_of(w, CLIENT + 101), 1, "one window is no following");
	(void)windows_of(w, CLIENT);
	look_at_once(w, SECOND, 10);
	cr_expect_eq(windows_of(w, CLIENT), 1);
}

WORLD_TEST(driver_look, nothing_is_asked_of_a_worker_that_does_not_know_it, NULL)
{
	two_run(w, two_fragments);
	for (size_t i = 0; i < w->core->session_count; i++)
		if (w->core->sessions[i]->connection == 2)
			w->core->sessions[i]->minor = FW_LOOK_MINOR - 1;
	look(w, CLIENT, "app", 0, false);
	cr_expect_not_null(taken(w, 1, FW_HOST_LOOK));
	cr_expect_null(taken(w, 2, FW_HOST_LOOK));
}

WORLD_TEST(driver_look, where_nothing_runs_an_empty_window_comes, NULL)
{
	const struct fw_looked *window;
	const struct fw_message *answer;

	world_init(w);
	look(w, CLIENT, "", 0, false);
	pass_beating(w, SECOND, CLIENT, CLIENT);
	window = looked(w, CLIENT);
	cr_expect(window->is_last);
	cr_expect_str_eq(window->look.application, "");
	look(w, CLIENT + 1, "elsewhere", 0, false);
	answer = must_take(w, CLIENT + 1, FW_ANSWER);
	cr_expect_eq(answer->answer.failure.code, FRAGI_FAILURE_APPLICATION_UNKNOWN);
}

#define MANY (FW_LOOK_ROWS_MAX + 100)

/* f1 has MANY operators beside tx; the i-th of them was busy for i ms. */
static void prepare_many(struct world *w)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 1);
	struct fw_port out = {.name = "out", .type = "message", .dir = FRAG_OUT, .has_codec = true};
	struct fw_address address = {"ucx", "address", 7, "tcp lo"};
	static struct fw_op ops[MANY + 1];
	static char names[MANY + 1][8];
	struct fw_fragment fragment = {.name = "f1", .ops = ops, .op_count = MANY + 1};

	for (size_t i = 0; i <= MANY; i++) {
		snprintf(names[i], sizeof(names[i]), i == 0 ? "tx" : "op%zu", i);
		ops[i] = (struct fw_op){.name = names[i], .type = "t"};
	}
	ops[0].ports = &out;
	ops[0].port_count = 1;
	message.prepared = (struct fw_host_prepared){.ok = true,
						     .fragments = &fragment,
						     .fragment_count = 1,
						     .addresses = &address,
						     .address_count = 1,
						     .pid = 101};
	say(w, 1, &message);
}

static void report_many(struct world *w, uint64_t times)
{
	struct fw_message message = of_host(FW_HOST_STATS, 1);
	static struct fw_op_stats ops[MANY + 1];
	struct fragi_flow_stats row = {.sent = times};

	for (uint64_t i = 0; i <= MANY; i++)
		ops[i] = (struct fw_op_stats){.use_busy = times * i * MS,
					      .use_room = times * ((uint64_t)SECOND - i * MS)};
	message.stats = (struct fw_host_stats){
		.ops = ops, .op_count = MANY + 1, .flows = &row, .flow_count = 1};
	message.stats.facts.at_ns = (uint64_t)SECOND * times;
	say(w, 1, &message);
}

WORLD_TEST(driver_look, the_busiest_rows_are_shown_and_the_rest_is_counted, NULL)
{
	const struct fragi_look *shown;

	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	world_init(w);
	app(w, two_fragments);
	both_come(w);
	prepare_many(w);
	say_prepared(w, 2, 2, "f2", false);
	both_run(w);
	report_many(w, 1);
	report(w, 2, false, (struct report){1 * SECOND, 0, 0, 0, 0, 0, 0});
	look(w, CLIENT, "app", SECOND, false);
	report_many(w, 2);
	report(w, 2, false, (struct report){2 * SECOND, 900 * MS, 100 * MS, 0, 0, 1, 1});
	pass_beating(w, SECOND, 1, CLIENT);
	shown = &looked(w, CLIENT)->look;
	cr_assert_eq(shown->operator_count, FW_LOOK_ROWS_MAX);
	cr_expect_eq(shown->operators_left_out, MANY + 2 - FW_LOOK_ROWS_MAX);
	cr_expect_str_eq(shown->operators[0].name, "f1.op102", "rx is one of the 500");
	cr_expect_str_eq(shown->operators[FW_LOOK_ROWS_MAX - 1].name, "f2.rx");
	cr_expect_eq(shown->flows[0].sender, FRAGI_LOOK_NONE);
	cr_expect_eq(shown->flows[0].receiver, FW_LOOK_ROWS_MAX - 1);
	cr_expect_eq(shown->operators[FW_LOOK_ROWS_MAX - 1].input_flow, 0);
	cr_expect_eq(shown->flows_left_out, 0);
}

#define LOOKERS 9

/* How much of a step the end of a window takes for so many clients, whose tables are equal. */
static int64_t items_of(struct world *w, uint32_t lookers)
{
	const struct fragi_look *first;

	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	world_init(w);
	app(w, two_fragments);
	both_come(w);
	prepare_many(w);
	say_prepared(w, 2, 2, "f2", false);
	both_run(w);
	report_many(w, 1);
	for (uint32_t i = 0; i < lookers; i++)
		look(w, CLIENT + i, "app", SECOND, false);
	report_many(w, 2);
	pass_beating(w, 900 * MS, 1, CLIENT + lookers);
	pass(w, 100 * MS);
	first = &looked(w, CLIENT)->look;
	cr_assert_eq(first->operator_count, FW_LOOK_ROWS_MAX);
	for (uint32_t i = 1; i < lookers; i++) {
		const struct fragi_look *next = &looked(w, CLIENT + i)->look;

		cr_assert_eq(next->operator_count, first->operator_count);
		for (uint32_t k = 0; k < first->operator_count; k++) {
			cr_assert_str_eq(next->operators[k].name, first->operators[k].name);
			cr_assert_arr_eq(next->operators[k].use_ns, first->operators[k].use_ns,
					 sizeof(first->operators[k].use_ns));
		}
	}
	return DRV_STEP_ITEMS - w->core->items;
}

WORLD_TEST(driver_look, tables_are_made_once_for_all_who_look_at_the_same, NULL)
{
	int64_t one = items_of(w, 1), many;

	world_fini(w);
	many = items_of(w, LOOKERS);
	cr_expect_gt(one, MANY, "each row is an item");
	cr_expect_lt(many, 2 * one, "%lld and %lld", (long long)one, (long long)many);
}

WORLD_TEST(driver_look, who_comes_later_gets_all_tables_with_the_next_window_of_the_others, NULL)
{
	const struct fw_looked *window;

	two_run(w, two_fragments);
	report(w, 1, false, (struct report){7 * SECOND, 0, 0, 0, 0, 100, 100});
	report(w, 2, false, (struct report){3 * SECOND, 0, 0, 0, 0, 90, 90});
	client_hello(w, CLIENT, "top");
	look_for_changes(w, "app");
	report(w, 1, false, (struct report){8 * SECOND, 0, 0, 0, 0, 130, 130});
	pass_beating(w, 1500 * MS, 1, CLIENT);
	cr_expect_eq(looked(w, CLIENT)->look.flows[0].sent, 30);
	look(w, CLIENT + 1, "app", SECOND, false);
	look(w, CLIENT + 2, "app", 2 * SECOND, false);
	pass_beating(w, 500 * MS, 1, CLIENT + 2);
	cr_expect(looked(w, CLIENT)->is_same);
	window = looked(w, CLIENT + 1);
	cr_expect_not(window->is_same);
	cr_expect_eq(window->look.window_ns, SECOND);
	cr_expect_eq(window->look.flows[0].sent, 30, "it shows that window again");
	cr_expect_null(taken(w, CLIENT + 2, FW_LOOKED), "it has windows of its own");
	/* One of them goes. */
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = "it left"});
	report(w, 1, false, (struct report){9 * SECOND, 0, 0, 0, 0, 150, 150});
	pass_beating(w, SECOND, 1, CLIENT + 2);
	cr_expect_eq(looked(w, CLIENT + 1)->look.flows[0].sent, 20);
	for (uint64_t client = CLIENT + 1; client <= CLIENT + 2; client++)
		step(w, &(struct drv_event){
				.kind = DRV_EVENT_CLOSED, .connection = client, .text = "it left"});
	cr_expect_null(w->core->windows);
}

WORLD_TEST(driver_look, hosts_are_told_once_for_all_who_look, NULL)
{
	two_run(w, two_fragments);
	look(w, CLIENT, "app", SECOND, false);
	cr_expect_not_null(taken(w, 1, FW_HOST_LOOK));
	look(w, CLIENT + 1, "app", SECOND, false);
	cr_expect_null(taken(w, 1, FW_HOST_LOOK));
	look(w, CLIENT + 2, "app", 5 * SECOND, false);
	cr_expect_eq(taken(w, 1, FW_HOST_LOOK)->host_look.for_ns, 8 * SECOND);
	pass_beating(w, 4 * SECOND, 1, CLIENT + 2);
	cr_expect_null(taken(w, 1, FW_HOST_LOOK), "it knows that already");
	pass_beating(w, 2 * SECOND, 1, CLIENT + 2);
	cr_expect_eq(taken(w, 1, FW_HOST_LOOK)->host_look.for_ns, 8 * SECOND);
}

/* Of two windows that are shared a third client finds the one that is its own. */
WORLD_TEST(driver_look, each_finds_the_window_of_those_who_look_at_the_same, NULL)
{
	static const struct {
		const char *name;
		int64_t every_ns;
		uint32_t rows;
	} looks[] = {{"app", SECOND, 10},
		     {"", SECOND, 10},
		     {"app", 2 * SECOND, 10},
		     {"app", SECOND, 20}};
	const size_t count = FRAG_COUNT_OF(looks);

	two_run(w, two_fragments);
	for (size_t i = 0; i < 2 * count; i++) {
		struct fw_message message = {.kind = FW_LOOK, .seq = 9};

		if (i == count)
			pass_beating(w, 500 * MS, 1, CLIENT + count);
		client_hello(w, CLIENT + i, "top");
		message.look = (struct fw_look){.name = looks[i % count].name,
						.every_ns = looks[i % count].every_ns,
						.rows = looks[i % count].rows};
		say(w, CLIENT + i, &message);
	}
	pass_beating(w, 500 * MS, 1, CLIENT + 2 * count);
	for (size_t i = 0; i < 2 * count; i++)
		cr_expect_eq(taken(w, CLIENT + i, FW_LOOKED) != NULL,
			     looks[i % count].every_ns == SECOND, "%zu", i);
	pass_beating(w, SECOND, 1, CLIENT + 2 * count);
	for (size_t i = 0; i < 2 * count; i++)
		cr_expect_not_null(taken(w, CLIENT + i, FW_LOOKED), "%zu", i);
}

/* Whichever ends: the one that was looked at first, or last. */
WORLD_TEST(driver_look, an_application_that_ends_leaves_the_windows_of_the_others, NULL)
{
	static const char *const names[] = {"app", "other"};

	for (uint64_t ends = 1; ends <= 2; ends++) {
		const struct fw_looked *window;

		if (ends > 1)
			world_fini(w);
		world_init(w);
		memset(speaking_epoch, 0, sizeof(speaking_epoch));
		both_come(w);
		client_hello(w, CLIENT + 1, "fragctl");
		for (speaking_run = 1; speaking_run <= 2; speaking_run++) {
			say_start(w, CLIENT + 1, speaking_run, names[speaking_run - 1],
				  two_fragments);
			both_prepare(w);
			for (uint32_t host = 1; host <= 2; host++)
				say_result(w, host, host, FW_HOST_WIRED);
			for (uint32_t host = 1; host <= 2; host++)
				say_result(w, host, host, FW_HOST_STARTED);
		}
		look(w, CLIENT, "", SECOND, false);
		pass_beating(w, SECOND, 1, CLIENT + 1);
		for (int i = 0; i < 2; i++) {
			window = looked(w, CLIENT);
			cr_expect_str_eq(window->look.application, names[i]);
			cr_expect_eq(window->is_last, i == 1);
		}
		speaking_run = ends;
		w->many_end = true;
		both_are_done(w);
		both_exit(w);
		for (int i = 0; i < 3; i++) {
			pass_beating(w, SECOND, 1, CLIENT + 1);
			window = looked(w, CLIENT);
			cr_expect_str_eq(window->look.application, names[2 - ends]);
			cr_expect(window->is_last, "%d", i);
			cr_expect_null(taken(w, CLIENT, FW_LOOKED));
		}
		speaking_run = 1;
	}
}

/* Each item is a digit for the connection, and its frame: "." is one that may be dropped, "!" a close. */
static void expect_joined(const char *const *given, const char *const *wanted, size_t count)
{
	struct drv_action items[16] = {0};
	struct drv_actions actions = {.items = items, .count = count};

	for (size_t i = 0; i < count; i++) {
		const char *frame = given[i] + 1;

		items[i].kind = *frame == '!' ? DRV_DO_CLOSE : DRV_DO_SEND;
		items[i].connection = (uint64_t)(given[i][0] - '0');
		items[i].may_drop = *frame == '.';
		items[i].frame_bytes = strlen(frame);
		items[i].frame = *frame != '!' ? fragi_malloc(strlen(frame)) : NULL;
		if (*frame != '!')
			memcpy(items[i].frame, frame, strlen(frame));
	}
	drv_actions_join(&actions);
	for (size_t i = 0; i < count; i++) {
		cr_expect_eq(items[i].frame == NULL, wanted[i] == NULL, "%zu", i);
		if (items[i].frame != NULL && wanted[i] != NULL) {
			cr_assert_eq(items[i].frame_bytes, strlen(wanted[i]), "%zu", i);
			cr_expect_arr_eq(items[i].frame, wanted[i], strlen(wanted[i]), "%zu", i);
		}
		fragi_free(items[i].frame);
	}
}

Test(driver_look, small_frames_for_a_peer_are_written_together_and_in_order)
{
	char large[70002];

	expect_joined(
		(const char *const[]){"1aa", "2b", "1cc", "1.d", "1e", "1f", "2g", "2!", "2h"},
		(const char *const[]){"aacc", "bg", NULL, ".d", "ef", NULL, NULL, NULL, "h"}, 9);
	memset(large, 'x', sizeof(large) - 1);
	large[0] = '1';
	large[sizeof(large) - 1] = '\0';
	expect_joined((const char *const[]){large, large, "1b", "1c"},
		      (const char *const[]){large + 1, large + 1, "bc", NULL}, 4);
	/* Only what is joined counts: not what may be dropped, or goes to another peer. */
	large[1] = '.';
	expect_joined((const char *const[]){"1b", "1c", large},
		      (const char *const[]){"bc", NULL, large + 1}, 3);
	large[1] = 'x';
	large[0] = '2';
	expect_joined((const char *const[]){"1b", large, "1c"},
		      (const char *const[]){"bc", large + 1, NULL}, 3);
}

Test(driver_look, joined_frames_have_at_most_64_kib)
{
	static const size_t limit = 65536;
	char large[65538], joined[65538];

	memset(large, 'x', sizeof(large));
	memset(joined, 'x', sizeof(joined));
	large[0] = '1';
	large[limit] = '\0'; /* behind the digit, one byte less than the limit */
	joined[limit - 1] = 'b';
	joined[limit] = '\0';
	expect_joined((const char *const[]){large, "1b"}, (const char *const[]){joined, NULL}, 2);
	large[limit] = 'x';
	large[limit + 1] = '\0';
	expect_joined((const char *const[]){large, "1b"}, (const char *const[]){large + 1, "b"}, 2);
}
