// SPDX-License-Identifier: Apache-2.0
#include "adopt_world.h"

/*
 * Whatever allocation fails in whatever step: the application ends as it would have, or because
 * memory is short for it; or a worker is turned away, and may come again. Only when the list of
 * actions cannot grow is the core itself at its end.
 */
static const char no_memory[] = "driverd has no memory left for this application";

/* Takes the next allocation of a step, or the next step. Returns whether there are more. */
static bool next_failure(const struct world *w, int64_t *at_step, int64_t *skip)
{
	bool more = w->broken || w->step_count > *at_step;

	if (w->short_skip == -1) {
		++*at_step;
		*skip = 0;
	} else {
		++*skip;
	}
	return more;
}

static void live_and_be_done(struct world *w)
{
	app_timed(w, two_fragments, 20 * SECOND);
	both_come(w);
	both_prepare(w);
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_WIRED);
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_STARTED);
	pass_beating(w, 1200 * MS, 1, 2);
	say_stats(w, 1, 1, true, 7, 0);
	say_stats(w, 2, 2, true, 0, 7);
	both_are_done(w);
	both_exit(w);
}

/* The receiver dies, and its next process runs to the end. */
static void live_again(struct world *w)
{
	app_timed(w, receiver_restarts, 20 * SECOND);
	both_come(w);
	both_prepare(w);
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_WIRED);
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_STARTED);
	say_stats(w, 2, 2, true, 0, 5);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	pass_beating(w, 2 * SECOND, 1, 2);
	speaking_epoch[2] = 2;
	say_prepared(w, 2, 2, "f2", false);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_STARTED);
	say_stats(w, 1, 1, true, 7, 0);
	say_stats(w, 2, 2, true, 0, 2);
	both_are_done(w);
	both_exit(w);
	speaking_epoch[2] = 1;
}

/* The receiver's worker is lost, and another one takes it. */
static void live_elsewhere(struct world *w)
{
	static const char migrates[] =
		TWO_FRAGMENTS("", ", on_failure: {policy: migrate, lease: 0s}");

	app_timed(w, migrates, 20 * SECOND);
	both_come(w);
	both_prepare(w);
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_WIRED);
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_STARTED);
	hello(w, 3, "c", "f2");
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "it closed"});
	pass_beating(w, 200 * MS, 1, 1);
	speaking_epoch[2] = 2;
	say_prepared(w, 3, 2, "f2", false);
	say_result(w, 3, 2, FW_HOST_WIRED);
	say_result(w, 3, 2, FW_HOST_STARTED);
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_event(w, 3, 2, FW_STATE_DONE, "");
	say_exit(w, 1, 1, 0, 0, "");
	say_exit(w, 3, 2, 0, 0, "");
	speaking_epoch[2] = 1;
}

static void end_by_a_lost_link(struct world *w)
{
	app(w, two_fragments);
	both_come(w);
	both_prepare(w);
	say_result(w, 1, 1, FW_HOST_WIRED);
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
	pass_beating(w, SECOND, 1, 2);
	say_exit(w, 1, 1, 137, 9, "");
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "it closed"});
}

static void end_by_errors_of_prepare(struct world *w)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 2);
	struct fw_failure errors[] = {{FRAGI_FAILURE_GRAPH_INVALID, "app.yaml:5:9: one", ""},
				      {FRAGI_FAILURE_GRAPH_INVALID, "app.yaml:5:10: two", ""}};

	app(w, two_fragments);
	both_come(w);
	message.prepared = (struct fw_host_prepared){.errors = errors, .error_count = 2};
	say(w, 2, &message);
	pass_beating(w, 3 * SECOND, 1, 2);
	both_are_killed(w);
}

static void end_without_a_worker(struct world *w)
{
	struct fw_message other = {.kind = FW_HELLO, .hello.major = FW_PROTOCOL_MAJOR + 1};

	app_timed(w, two_fragments, SECOND);
	hello(w, 1, "a", "f3"); /* names are compared, and one is pointed out */
	say(w, 2, &other);
	pass_beating(w, 2 * SECOND, 1, 1);
}

static void end_by_an_error_of_the_graph(struct world *w)
{
	app(w, "frag: 1\napplication: app\nfragments: {f1: {operators: {tx: {typo: t}}}}\n");
}

/*
 * The next message of that kind from *at on, encoded without its number and its sentences, which
 * may lack what could not be kept; NULL: there is none.
 */
static uint8_t *next_of_kind(const struct world *w, enum fw_kind kind, size_t *at, size_t *out_size)
{
	struct fw_message *m;
	uint8_t *frame;

	while (*at < w->sent_count && w->sent[*at].message->kind != kind)
		++*at;
	*out_size = 0;
	if (*at == w->sent_count)
		return NULL;
	m = w->sent[(*at)++].message;
	m->seq = 0;
	if (kind == FW_HOST_STOP || kind == FW_HOST_KILL)
		m->stop.reason = "";
	for (uint32_t i = 0; kind == FW_HOST_WIRE && i < m->wire.peer_count; i++)
		m->wire.peers[i].name = "";
	cr_assert_eq(fw_encode(m, &frame, out_size), 0);
	return frame;
}

/* A beat may be left out, and a worker ends by what it knows without APP_ENDED. */
static void expect_the_same_requests(const struct world *w, const struct world *as_ever)
{
	static const enum fw_kind requests[] = {FW_HOST_CREATE, FW_HOST_WIRE, FW_HOST_START,
						FW_HOST_STOP, FW_HOST_KILL};

	for (size_t i = 0; i < FRAG_COUNT_OF(requests); i++) {
		size_t at = 0, at_ever = 0, size, size_ever;
		uint8_t *one, *ever;

		do {
			one = next_of_kind(w, requests[i], &at, &size);
			ever = next_of_kind(as_ever, requests[i], &at_ever, &size_ever);
			cr_assert(size == size_ever && memcmp(one, ever, size) == 0, "%s",
				  fw_kind_name(requests[i]));
			fragi_free(one);
			fragi_free(ever);
		} while (size != 0);
	}
}

/* How a life with a failure ended. */
enum outcome { AS_EVER, WITHOUT_MEMORY, TURNED_AWAY, BROKEN, OUTCOMES };

/* as_ever: a life in which no memory failed */
static enum outcome outcome_of(const struct world *w, const struct world *as_ever)
{
	cr_assert_null(strstr(w->log, "(null)"), "%s", w->log);
	cr_assert_null(strstr(w->log, "waiting for a worker for  ("), "%s", w->log);
	if (w->broken)
		return BROKEN;
	if (w->ended && w->exit_code == 1 && strcmp(w->reason, no_memory) == 0)
		return WITHOUT_MEMORY;
	if (strstr(w->log, "no memory is left for a session") != NULL)
		return TURNED_AWAY;
	cr_assert(w->ended && w->exit_code == as_ever->exit_code, "it ended with %d: %s",
		  w->exit_code, w->reason);
	expect_the_same_requests(w, as_ever);
	/* A sentence may lack what could not be kept. */
	cr_assert_str_eq(strstr(w->json, "\"fragments\""), strstr(as_ever->json, "\"fragments\""));
	if (as_ever->exit_code == 0)
		cr_assert_str_eq(w->table, as_ever->table);
	return AS_EVER;
}

Test(driver_memory, every_failure_ends_no_more_than_it_must, .timeout = 300)
{
	static const struct {
		void (*live)(struct world *w);
		int exit_code;
	} lives[] = {{live_and_be_done, 0},
		     {live_again, 0},
		     {live_elsewhere, 0},
		     {end_by_a_lost_link, 1},
		     {end_by_errors_of_prepare, 2},
		     {end_without_a_worker, 4},
		     {end_by_an_error_of_the_graph, 2}};
	struct world *w = malloc(sizeof(*w)), *as_ever = malloc(sizeof(*as_ever));
	int outcomes[OUTCOMES] = {0};

	for (size_t i = 0; i < FRAG_COUNT_OF(lives); i++) {
		int64_t at_step = 0, skip = 0;
		bool more = true;

		world_init(as_ever);
		lives[i].live(as_ever);
		cr_assert_eq(as_ever->exit_code, lives[i].exit_code, "%s", as_ever->log);
		while (more) {
			world_init(w);
			w->runs_short = true;
			w->short_step = at_step;
			w->short_skip = skip;
			lives[i].live(w);
			outcomes[outcome_of(w, as_ever)]++;
			more = next_failure(w, &at_step, &skip);
			world_fini(w);
		}
		world_fini(as_ever);
	}
	cr_expect_gt(outcomes[AS_EVER], 20);
	cr_expect_gt(outcomes[WITHOUT_MEMORY], 100);
	cr_expect_gt(outcomes[TURNED_AWAY], 20);
	/* The list of actions begins in each life, and grows in some. */
	cr_expect_geq(outcomes[BROKEN], (int)FRAG_COUNT_OF(lives));
	cr_expect_leq(outcomes[BROKEN], 2 * (int)FRAG_COUNT_OF(lives));
	free(w);
	free(as_ever);
}

/* A second application comes and ends. */
static void live_and_be_killed(struct world *w)
{
	speaking_run = 2;
	app(w, two_fragments);
	both_prepare(w);
	say_result(w, 1, 1, FW_HOST_WIRED);
	both_are_killed(w);
	speaking_run = 1;
}

Test(driver_memory, an_application_without_memory_ends_alone, .timeout = 300)
{
	struct world *w = malloc(sizeof(*w));
	int64_t at_step = 0, skip = 0, without = 0;
	bool more = true;

	while (more) {
		world_init(w);
		to_running(w);
		w->runs_short = true;
		w->short_step = at_step;
		w->short_skip = skip;
		live_and_be_killed(w);
		w->runs_short = false;
		cr_assert(w->ended || w->broken);
		without += strcmp(w->reason, no_memory) == 0;
		more = next_failure(w, &at_step, &skip);
		w->ended = false;
		both_are_done(w);
		both_exit(w);
		cr_assert(w->broken || (w->ended && w->result == FRAGI_SUMMARY_DONE),
			  "step %d, allocation %d: %s", (int)at_step, (int)skip, w->reason);
		world_fini(w);
	}
	cr_expect_gt(without, 50);
	free(w);
}

static const char leased[] = TWO_FRAGMENTS(", on_failure: {policy: migrate, lease: 5s}",
					   ", on_failure: {policy: migrate, lease: 5s}");

/* The last worker has reported, and the hosts are taken: all of them, or the application ends. */
Test(driver_memory, an_application_that_is_adopted_without_memory_ends, .timeout = 300)
{
	struct world *w = malloc(sizeof(*w));
	int64_t at_step = 0, skip = 0, without = 0;
	bool more = true;

	while (more) {
		comes_back(w);
		hello_reporting(w, 1, 1);
		hello_reporting(w, 2, 1);
		say_running(w, 1, 1, leased);
		say_reported(w, 1);
		say_running(w, 2, 2, leased);
		written(w);
		cr_assert_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
		w->runs_short = true;
		w->short_step = at_step;
		w->short_skip = skip;
		say_reported(w, 2);
		others_may_come(w);
		w->runs_short = false;
		if (strstr(w->log, no_memory) != NULL) {
			without++;
			for (uint64_t c = 1; c <= 2; c++)
				cr_assert_not_null(taken(w, c, FW_HOST_KILL), "%s", w->log);
		} else if (!w->broken) {
			cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
			for (uint64_t c = 1; c <= 2; c++)
				cr_assert_not_null(taken(w, c, FW_HOST_ADOPTED), "%s", w->log);
		}
		more = next_failure(w, &at_step, &skip);
		world_fini(w);
	}
	cr_expect_gt(without, 4);
	speaking_run = 1;
	free(w);
}

Test(driver_memory, a_client_without_memory_goes_alone, .timeout = 300)
{
	struct world *w = malloc(sizeof(*w));
	int64_t at_step = 0, skip = 0, turned_away = 0, without_reply = 0, replies = 0;
	const struct fw_message *reply;
	bool more = true;

	while (more) {
		world_init(w);
		to_running(w);
		w->runs_short = true;
		w->short_step = at_step;
		w->short_skip = skip;
		client_hello(w, 3, "top");
		if (w->closed_count == 0)
			request_state(w, 3, 2);
		w->runs_short = false;
		turned_away += strstr(w->log, "no memory is left for a session") != NULL;
		without_reply += strstr(w->log, "no memory is left for a reply") != NULL;
		reply = taken(w, 3, FW_REPLY);
		cr_assert(w->broken || reply != NULL || w->closed_count == 1,
			  "it waits for a reply that does not come");
		if (reply != NULL) {
			replies++;
			cr_expect_eq(reply->reply.more, 0);
			cr_expect_eq(reply->reply.worker_count, 2);
			cr_assert_eq(reply->reply.application_count, 1);
			cr_expect_eq(reply->reply.applications[0].host_count, 2);
		}
		if (!w->broken) {
			cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
			cr_expect_eq(drv_core_session_count(w->core), w->closed_count != 0 ? 2 : 3);
		}
		more = next_failure(w, &at_step, &skip);
		world_fini(w);
	}
	cr_expect_gt(turned_away, 2);
	cr_expect_gt(without_reply, 4);
	cr_expect_gt(replies, 2);
	free(w);
}

Test(driver_memory, a_core_that_cannot_be_made_is_not)
{
	struct drv_config config = {.random = world_random};
	struct drv_core *core = NULL;

	fragi_alloc_fail_after(0, 1);
	cr_expect_eq(drv_core_create(&config, &core), -ENOMEM);
	fragi_alloc_fail_off();
	cr_expect_null(core);
}

#define CLIENT 50
#define FIRST 2 /* request after HELLO */

/* f2 has a library, and may be started again alone. */
#define SWAPS(parameters)                                                                          \
	"frag: 1\n"                                                                                \
	"application: app\n"                                                                       \
	"fragments:\n"                                                                             \
	"  f1: {operators: {tx: {type: t}}}\n"                                                     \
	"  f2: {extensions: [libold.so], operators: {rx: {type: t, parameters: {" parameters       \
	"}}}, "                                                                                    \
	"on_failure: {policy: restart, intensity: 2}}\n"                                           \
	"flows: [f1.tx.out -> f2.rx.in]\n"

static void keep_all(struct world *w)
{
	if (w->persist != 0)
		step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
}

static void ask_to_look(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_LOOK, .seq = FIRST, .look = {"app", SECOND, true}});
	say_stats(w, 1, 1, false, 7, 0);
	say_stats(w, 2, 2, false, 0, 6);
	pass_beating(w, 1200 * MS, 1, 2);
}

static void ask_for_a_value(struct world *w)
{
	struct fw_message done = of_host(FW_HOST_SET_DONE, 2);
	const struct fw_message *m;

	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_SET, .seq = FIRST, .set = {"app", "f2.rx.value=4"}});
	m = taken(w, 2, FW_HOST_SET);
	if (m == NULL)
		return;
	done.host_set_done.number = m->host_set.number;
	say(w, 2, &done);
}

static void ask_for_another_graph(struct world *w)
{
	say_apply(w, CLIENT, FIRST, receiver_restarts, false);
}

static void ask_for_another_worker(struct world *w)
{
	say(w, CLIENT, &(struct fw_message){.kind = FW_DRAIN, .seq = FIRST, .drain = {"b", false}});
}

/* Where a parameter was set before. */
static void ask_how_it_stands(struct world *w)
{
	const bool runs_short = w->runs_short;

	w->runs_short = false;
	ask_for_a_value(w);
	keep_all(w);
	w->runs_short = runs_short;
	request_state(w, CLIENT, FIRST);
}

static void ask_to_swap(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_SWAP, .seq = FIRST, .swap = {"app", "f2", "libnew.so", "", SECOND}});
}

static void ask_to_restart(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_STOP_APP, .seq = FIRST, .stop_app = {"app", false, true}});
}

static void ask_for_another_application(struct world *w)
{
	say_start(w, CLIENT, FIRST, "other", two_fragments);
}

static void ask_why(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_EXPLAIN, .seq = FIRST, .explain = {"app", ""}});
}

static void ask_for_messages(struct world *w)
{
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_TAP,
				 .seq = FIRST,
				 .tap = {.name = "app", .flow = "f1.tx.out", .every_ns = SECOND}});
	pass(w, SECOND);
}

static void ask_for_events_and_lines(struct world *w)
{
	struct fw_line line = {
		.level = FRAGI_LOG_INFO, .fragment = "f1", .op = "tx", .text = "hello"};
	struct fw_message lines = of_host(FW_HOST_LINES, 1);

	bool runs_short = w->runs_short;

	lines.host_lines = (struct fw_host_lines){&line, 1, 0};
	w->runs_short = false; /* a line less is no reason to fail */
	say(w, 1, &lines);
	w->runs_short = runs_short;
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_WATCH, .seq = FIRST, .watch = {.follow = true}});
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_WATCH_LOGS,
		    .seq = FIRST,
		    .watch_logs = {.name = "app", .fragment = "", .op = "", .follow = true}});
}

static void ask_about_a_node(struct world *w)
{
	struct fw_finding finding = {"memlock", true, "8 MiB", "copies", "ulimit -l"};

	say(w, CLIENT, &(struct fw_message){.kind = FW_EXAMINE, .seq = FIRST, .examine = {"a"}});
	say(w, 1, &(struct fw_message){.kind = FW_EXAMINED, .examined = {"", &finding, 1}});
}

/* What the client was answered, and the workers were asked for, in the order of the frames. */
static uint8_t *told(const struct world *w, size_t *out_bytes)
{
	uint8_t *all = NULL, *frame;
	size_t bytes;

	*out_bytes = 0;
	for (size_t i = 0; i < w->sent_count; i++) {
		struct fw_message *m = w->sent[i].message;

		if (m->kind == FW_BEAT || (w->sent[i].connection == CLIENT && m->reply_to < FIRST))
			continue;
		if (m->kind == FW_ANSWER) /* a sentence may lack what could not be kept */
			m->answer.remark = "";
		else if (m->kind == FW_CHANGES)
			m->changes.remark = "";
		cr_assert_eq(fw_encode(m, &frame, &bytes), 0);
		all = realloc(all, *out_bytes + bytes);
		memcpy(all + *out_bytes, frame, bytes);
		*out_bytes += bytes;
		fragi_free(frame);
	}
	return all;
}

static bool is_told_of_memory(const struct world *w)
{
	for (size_t i = 0; i < w->sent_count; i++)
		if (w->sent[i].connection == CLIENT && w->sent[i].message->kind == FW_ANSWER &&
		    strstr(w->sent[i].message->answer.failure.sentence, "memory") != NULL)
			return true;
	return is_closed(w, CLIENT) || strstr(w->log, no_memory) != NULL ||
	       drv_core_app_state(w->core) != DRV_APP_RUNNING;
}

/* How often something says that memory is short, as a text does that takes the place of another. */
static size_t memory_in(const uint8_t *all, size_t bytes)
{
	static const char word[] = "memory";
	size_t count = 0;

	for (size_t i = 0; i + sizeof(word) <= bytes; i++)
		count += memcmp(all + i, word, sizeof(word) - 1) == 0;
	return count;
}

/* Asks while memory is short, and then what is known of it. */
static void ask_and_see(struct world *w, void (*ask)(struct world *w), bool keeps_state,
			int64_t at_step, int64_t skip)
{
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	world_init_with(w, (struct drv_config){.version = "test", .keeps_state = keeps_state});
	app(w, SWAPS(""));
	keep_all(w);
	both_come(w);
	both_prepare(w);
	both_run(w);
	hello(w, 3, "c", "f2");
	client_hello(w, CLIENT, "top");
	w->runs_short = at_step >= 0;
	w->short_step = at_step;
	w->short_skip = skip;
	ask(w);
	keep_all(w);
	w->runs_short = false;
	if (w->broken || is_closed(w, CLIENT))
		return;
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_LOOK, .seq = FIRST + 1, .look = {"", 0, true, true, 9}});
	request_state(w, CLIENT, FIRST + 2);
	say(w, CLIENT, &(struct fw_message){.kind = FW_WATCH, .seq = FIRST + 3});
}

Test(driver_memory, a_client_is_told_all_or_that_memory_is_short, .timeout = 300)
{
	static void (*const asks[])(struct world * w) = {ask_to_look,
							 ask_for_a_value,
							 ask_for_another_graph,
							 ask_for_another_worker,

							 ask_how_it_stands,
							 ask_to_swap,
							 ask_to_restart,
							 ask_for_another_application,
							 ask_why,
							 ask_for_messages,
							 ask_for_events_and_lines,
							 ask_about_a_node};
	struct world *w = malloc(sizeof(*w));

	for (size_t i = 0; i < 2 * FRAG_COUNT_OF(asks); i++) {
		const bool keeps_state = i % 2 != 0;
		void (*const ask)(struct world * w) = asks[i / 2];
		int64_t at_step = 0, skip = 0;
		size_t bytes, whole_bytes;
		uint8_t *whole, *all;
		int short_of = 0;
		bool more = true, is_told;

		ask_and_see(w, ask, keeps_state, -1, 0);
		whole = told(w, &whole_bytes);
		world_fini(w);
		while (more) {
			ask_and_see(w, ask, keeps_state, at_step, skip);
			is_told = is_told_of_memory(w);
			all = told(w, &bytes);
			is_told = is_told || memory_in(all, bytes) > memory_in(whole, whole_bytes);
			if (!w->broken &&
			    (bytes != whole_bytes || memcmp(all, whole, bytes) != 0)) {
				cr_assert(is_told, "request %zu, step %d, allocation %d: %s", i,
					  (int)at_step, (int)skip, w->log);
				short_of++;
			}
			free(all);
			more = next_failure(w, &at_step, &skip);
			world_fini(w);
		}
		cr_expect_gt(short_of, 2, "request %zu", i);
		free(whole);
	}
	free(w);
}
