// SPDX-License-Identifier: Apache-2.0
#include "../expected.h"
#include "driver_lives_adoptions.h"

/*
 * Drawn lives of the driver's core. Of the first ones all is written, of the others a line with the
 * sum over what they did: FRAG_TEST_LIFE=NUMBER prints such a life, FRAG_TEST_LIFE=all each one.
 */

#define LIVES 240
#define LIVES_SHOWN 8
#define SHORT_LIVES 1000   /* from this number on memory fails in a life, again and again */
#define MOVED_LIVES 2000   /* from this number on hosts are replaced all the time */
#define ADOPTED_LIVES 3000 /* from this number on drivers follow one another */
#define LIFE_EVENTS 150

static void time_passes(struct life *l)
{
	life_pass(l, (int64_t)drawn(l, 800) * MS);
}

static void long_time_passes(struct life *l)
{
	life_pass(l, (int64_t)drawn(l, 12) * SECOND);
}

static void machine(struct life *l)
{
	happens(l, "its clock is set, and its disk looked at");
	if (l->w->broken)
		return;
	drv_core_set_clock(l->w->core, (int64_t)drawn(l, 5) * 500 * SECOND);
	drv_core_set_machine(l->w->core,
			     &(struct drv_machine){.state_bytes = drawn(l, 5) << 20,
						   .state_free_bytes = drawn(l, 5) << 25,
						   .certificate_ends_unix_s = 99,
						   .started_unix_s = 7});
}

/* The process does not run for a while: not a step. */
static void stands_still(struct life *l)
{
	int64_t ns = (int64_t)drawn(l, 5000) * MS;

	happens(l, "it stands still for %.3f s", (double)ns * 1e-9);
	l->w->now_ns += ns;
}

static void asks_often(struct life *l)
{
	for (int i = 0; i < 66; i++)
		client_sends(l,
			     &(struct fw_message){.kind = FW_EXPLAIN,
						  .explain = {.name = "apb", .what = ""}},
			     "");
}

/* What the core holds: sessions with what they carry, applications with their hosts. */
static void show_sessions(const struct drv_core *core)
{
	for (size_t i = 0; i < core->session_count; i++) {
		const struct drv_session *s = core->sessions[i];

		fprintf(transcript, "  %s %s: load %" PRId64 ", hosts %u and %u, requests %u, used",
			drv_session_role(s), s->name, s->load, s->hosts, s->more_hosts,
			s->requests);
		for (int k = 0; k < FRAGI_AMOUNTS; k++)
			fprintf(transcript, " %" PRId64, s->used[k]);
		fprintf(transcript, "%s%s%s%s\n", s->is_reporting ? ", reports" : "",
			s->is_drained ? ", drained" : "", s->is_revoked ? ", revoked" : "",
			s->held != NULL ? ", holds a command" : "");
	}
}

static void show_apps(const struct drv_core *core)
{
	for (size_t i = 0; i < core->app_count; i++) {
		const struct drv_app *app = core->apps[i];

		fprintf(transcript,
			"  run %" PRIu64
			" %s %s: end %d, sources %u of %zu and %zu bytes, replaced %u%s%s%s\n",
			app->run, drv_app_name(app), drv_app_state_name(app->state), (int)app->end,
			app->settings.sources, app->source.size, app->before.size,
			app->replaced_count, app->next.is_wanted ? ", wanted" : "",
			app->adopting != NULL ? ", is adopted" : "",
			app->swap != NULL ? ", swaps" : "");
		for (uint32_t k = 0; k < app->host_count; k++) {
			const struct drv_host *host = &app->hosts[k];
			const struct drv_replacement *r = &host->replacement;

			fprintf(transcript,
				"    %s epoch %" PRIu64
				" %s, goal %d asked %d, phase %d cause %d%s, restarts %u moves %u, lease %.3f, next %" PRIu64
				"%s\n",
				host->name, host->now.epoch,
				drv_host_machine.state_names[host->now.state], (int)host->now.goal,
				(int)host->now.asked, (int)r->phase, (int)r->cause,
				r->is_leaving ? " leaves" : "", host->restarts.count,
				host->restarts.moves, (double)host->lease_over_ns * 1e-9,
				host->next.session != NULL ? host->next.epoch : 0,
				host->past.is_inexact ? ", inexact" : "");
		}
	}
}

/* What shells and simulators count. */
static void is_looked_into(struct life *l)
{
	const struct drv_core *core = l->w->core;
	const char *failed;

	if (l->w->broken)
		return;
	failed = drv_core_failed(core);
	happens(l,
		"%zu sessions, %zu applications, %" PRId64 " placed, load %" PRId64
		", failed: %s, b %s, %s",
		drv_core_session_count(core), drv_core_app_count(core), drv_core_placed(core),
		drv_core_load(core), failed != NULL ? failed : "none",
		drv_core_is_drained(core, "b") ? "drained" : "not drained",
		drv_core_holds_answers(core) ? "holds answers" : "holds none");
	fprintf(transcript,
		"  ended %zu of %zu bytes, away %zu, drained %zu, held %zu, foreign %zu, sources %zu bytes, lines of %zu, epoch %" PRIu64
		", run %" PRIu64 "\n",
		core->history.ended_count, core->history.ended_bytes, core->away_count,
		core->drained_count, core->held_count, core->foreign_count,
		drv_source_bytes_of_all(core), core->lines.count, core->last_epoch, core->last_run);
	show_sessions(core);
	show_apps(core);
	for (int i = 0; i < 3; i++)
		fprintf(transcript, "  %s %s%s\n", app_names[i],
			drv_app_state_name(drv_core_named_state(core, app_names[i])),
			drv_core_moves(core, app_names[i]) ? ", moves" : "");
	fprintf(transcript, "  state %016" PRIx64 "\n", state_sum);
}

static void stop_signal(struct life *l)
{
	happens(l, "SIGTERM");
	event(l, (struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
}

static void is_stopped(struct life *l)
{
	if (one_in(l, l->is_calm ? 12 : 3))
		stop_signal(l);
}

static bool may_speak(const struct life *l, const struct life_process *p)
{
	const struct life_worker *worker = &l->workers[p->worker];

	return p->is_there && !p->has_ended && worker->connection != 0 && !worker->is_silent &&
	       (!worker->reports || p->is_reported);
}

/* The first or the last process of a host that there is; NULL: none may speak. */
static struct life_process *one_of_host(struct life *l, uint64_t run, uint32_t host, bool is_last)
{
	struct life_process *found = NULL;

	for (size_t i = 0; i < LIFE_PROCESSES; i++) {
		struct life_process *p = &l->processes[i];

		if (may_speak(l, p) && p->create->run == run && p->create->host == host &&
		    (found == NULL || (p->create->epoch > found->create->epoch) == is_last))
			found = p;
	}
	return found;
}

static void crashes(struct life *l, struct life_process *p)
{
	if (p != NULL && p->stage >= LIFE_PREPARED)
		say_ended(l, p, 139, 11, FRAGI_FAILURE_HOST_CRASHED,
			  "fraghost 101 crashed in f1.tx, tick 5");
}

static void next_driver_adopts(struct life *l)
{
	driver_returns(l);
	for (int i = 0; i < 6; i++)
		worker_comes(l);
	for (int i = 0; i < 14; i++)
		worker_reports(l);
}

/* A client has a host replaced: its library, or because its worker is drained. */
static void asks_for_another(struct life *l, const struct life_process *p)
{
	struct fw_message m = {.kind = FW_DRAIN};
	const struct drv_app *app = NULL;

	for (size_t i = 0; i < l->w->core->app_count; i++)
		if (l->w->core->apps[i]->run == p->create->run)
			app = l->w->core->apps[i];
	m.drain.worker = l->workers[p->worker].name;
	if (app != NULL && one_in(l, 2)) {
		m.kind = FW_SWAP;
		m.swap = (struct fw_swap){.name = drv_app_name(app),
					  .fragment = p->create->create.fragments[0],
					  .library = one_of(l, "libnew.so", "libother.so"),
					  .replaces = "",
					  .probation_ns = (int64_t)drawn(l, 3) * 2 * SECOND};
	}
	client_sends(l, &m, m.kind == FW_SWAP ? m.swap.library : m.drain.worker);
}

/* Something goes wrong at any moment while a host is replaced, or soon after. */
static void one_is_replaced(struct life *l)
{
	struct life_process *p = some_process(l, false);
	uint64_t run, steps = drawn(l, 14);
	uint32_t host;

	if (is_too_early(l) || p == NULL || p->stage != LIFE_RUNS || l->w->broken)
		return;
	run = p->create->run;
	host = p->create->host;
	asks_for_another(l, p);
	for (uint64_t i = 0; i < steps; i++) {
		p = one_of_host(l, run, host, i % 4 != 3);
		if (p != NULL && (p->stage == LIFE_MADE || p->owed_count > 0 || p->yields))
			answer(l, p);
		else if (one_in(l, 2))
			one_answers(l);
		disk_writes(l);
	}
	p = one_of_host(l, run, host, !one_in(l, 4));
	switch (drawn(l, 10)) {
	case 0:
	case 1:
		crashes(l, p);
		break;
	case 2:
		if (p != NULL && p->stage >= LIFE_PREPARED)
			say_state(l, p, FW_STATE_FAILED);
		break;
	case 3:
		worker_goes(l);
		break;
	case 4:
		life_pass(l, 20 * SECOND);
		break;
	case 5:
	case 6:
		next_driver_adopts(l);
		break;
	case 7:
		stop_app(l);
		break;
	default:
		break;
	}
	all_answer(l);
	disk_writes(l);
	life_pass(l, (int64_t)drawn(l, 5000) * MS);
	if (one_in(l, 2))
		crashes(l, one_of_host(l, run, host, true));
}

struct happening {
	unsigned int weight;
	void (*happen)(struct life *l);
};
static const struct happening moves[] = {{30, one_is_replaced},
					 {20, all_answer},
					 {10, worker_reports},
					 {20, disk_writes},
					 {12, time_passes},
					 {5, is_looked_into},
					 {10, worker_comes},
					 {6, worker_beats},
					 {3, client_comes},
					 {3, drain},
					 {2, apply},
					 {2, change_app},
					 {3, start_app},
					 {1, ask},
					 {8, watch},
					 {3, worker_goes},
					 {0, NULL}};
static const struct happening adoptions[] = {{20, next_driver_begins},
					     {24, all_answer},
					     {14, start_app},
					     {12, disk_writes},
					     {8, time_passes},
					     {5, is_looked_into},
					     {3, worker_goes},
					     {12, worker_comes},
					     {6, worker_reports},
					     {6, one_acts},
					     {2, drain},
					     {1, stop_app},
					     {2, apply},
					     {2, change_app},
					     {4, client_comes},
					     {2, one_crashes_often},
					     {0, NULL}};
static const struct happening events[] = {{60, one_answers},
					  {40, all_answer},
					  {36, one_acts},
					  {24, worker_comes},
					  {4, worker_goes},
					  {3, worker_is_silent},
					  {60, worker_reports},
					  {4, worker_beats},
					  {8, worker_examines},
					  {2, nonsense},
					  {2, stranger},
					  {1, keys_change},
					  {3, reporter},
					  {20, client_comes},
					  {3, client_goes},
					  {5, app_is_given},
					  {14, start_app},
					  {7, stop_app},
					  {9, apply},
					  {14, change_app},
					  {10, drain},
					  {9, ask},
					  {9, watch},
					  {90, disk_writes},
					  {36, time_passes},
					  {3, one_crashes_often},
					  {4, one_loses_a_peer},
					  {3, stands_still},
					  {1, asks_often},
					  {10, is_looked_into},
					  {5, long_time_passes},
					  {1, machine},
					  {1, is_stopped},
					  {3, driver_returns},
					  {0, NULL}};

static void happen(struct life *l, const struct happening *list)
{
	unsigned int all = 0;
	uint64_t at;
	size_t i = 0;

	for (size_t k = 0; list[k].weight > 0; k++)
		all += list[k].weight;
	at = drawn(l, all);
	while (at >= list[i].weight)
		at -= list[i++].weight;
	list[i].happen(l);
}

static const char *const expected[] = {"b", "e"};

static void life_begin(struct life *l, struct world *w, unsigned int number, bool is_brief)
{
	memset(l, 0, sizeof(*l));
	memset(w, 0, sizeof(*w));
	l->seed = number * 7919;
	l->is_brief = is_brief;
	l->w = w;
	transcript_drawn_count = 0;
	l->config = (struct drv_config){.version = "test",
					.clock = "node",
					.address = "127.0.0.1:1",
					.realtime_offset_ns = 1000 * SECOND,
					.random = world_random,
					.random_arg = w,
					.keeps_state = !one_in(l, 4),
					.adopts = !one_in(l, 3),
					.ends_with_app = one_in(l, 12),
					.encrypts_data = one_in(l, 8),
					.is_local = one_in(l, 15),
					.expected = expected,
					.expected_count = one_in(l, 4) ? 2 : 0,
					.progress_ns = one_in(l, 4) ? 0 : -1,
					.prepare_ns = one_in(l, 4) ? 5 * SECOND : 0,
					.start_ns = one_in(l, 4) ? 4 * SECOND : 0};
	if (number >= ADOPTED_LIVES) {
		l->config.keeps_state = l->config.adopts = true;
		l->config.is_local = l->config.ends_with_app = false;
	}
	if (l->config.is_local)
		l->config.ends_with_app = true;
	if (l->config.ends_with_app)
		l->config.adopts = false;
	w->many_end = true;
	w->now_ns = 50 * SECOND;
	w->runs_short = number >= SHORT_LIVES && number < MOVED_LIVES;
	w->short_step = (int64_t)drawn(l, 200);
	w->short_skip = (int64_t)drawn(l, 12);
	l->is_calm = number >= MOVED_LIVES || !one_in(l, 3);
	fprintf(transcript, "== life %u:%s%s%s%s%s\n", number,
		l->config.keeps_state ? " keeps state" : "", l->config.adopts ? " adopts" : "",
		l->config.is_local        ? " local"
		: l->config.ends_with_app ? " ends with its application"
					  : "",
		l->config.encrypts_data ? " encrypts" : "", w->runs_short ? " lacks memory" : "");
	cr_assert_eq(drv_core_create(&l->config, &w->core), 0);
	for (int i = 0; i < 3; i++)
		draw_graph(l, &l->graphs[i]);
	for (int i = 0; i < 5; i++) /* else it takes long until something runs */
		worker_comes(l);
	client_comes(l);
	client_comes(l);
	if (l->config.ends_with_app)
		app_is_given(l);
	else
		start_app(l);
	for (int i = 0; i < 6 && l->is_calm; i++) {
		all_answer(l);
		disk_writes(l);
	}
}

/* Whatever happened, a stop ends all. */
static void life_end(struct life *l)
{
	struct world *w = l->w;

	for (size_t i = 0; i < LIFE_WORKERS; i++)
		l->workers[i].is_silent = false;
	l->is_full = false;
	for (int i = 0; i < 2; i++) {
		stop_signal(l);
		for (int k = 0; k < 3; k++) {
			all_answer(l);
			disk_writes(l);
			life_pass(l, SECOND);
		}
	}
	life_pass(l, 20 * SECOND);
	is_looked_into(l);
	if (!w->broken)
		cr_assert_eq(drv_core_app_count(w->core), 0, "something runs on");
	for (size_t i = 0; i < LIFE_WORKERS; i++) {
		life_forget_worker(l, i);
		fw_message_free(l->workers[i].examine);
	}
	for (size_t i = 0; i < l->disk_count; i++)
		life_disk_free(l, i);
	world_fini(w);
}

/* A new minor of the protocol is to change no life. */
static void hide_minor(char *text)
{
	char ours[32];

	snprintf(ours, sizeof(ours), "this side %d.%d", FW_PROTOCOL_MAJOR, FW_PROTOCOL_MINOR);
	while ((text = strstr(text, ours)) != NULL) {
		text += strlen("this side");
		memmove(text, text + strlen(ours) - strlen("this side"),
			strlen(text + strlen(ours) - strlen("this side")) + 1);
	}
}

/* Returns all that came of it, which the caller frees. */
static char *live(unsigned int number, bool is_brief)
{
	static struct world w;
	static struct life l;

	transcript_begin();
	transcript_numbers_chance = true;
	state_begin();
	fragi_log_threshold = FRAGI_LOG_INFO;
	life_begin(&l, &w, number, is_brief);
	if (number >= ADOPTED_LIVES)
		for (int i = 0; i < LIFE_EVENTS / 3; i++)
			happen(&l, adoptions);
	else
		for (int i = 0; i < LIFE_EVENTS; i++)
			happen(&l, number >= MOVED_LIVES ? moves : events);
	life_end(&l);
	fclose(transcript);
	hide_minor(transcript_text);
	return transcript_text;
}

/* Returns the first lives as they are, and of the others what tells them apart. */
static char *lives(unsigned int first, unsigned int count, unsigned int shown_count)
{
	const char *shown = getenv("FRAG_TEST_LIFE");
	char *all;
	size_t bytes;
	FILE *out = open_memstream(&all, &bytes);

	for (unsigned int i = first; i < first + count; i++) {
		bool is_shown = i < first + shown_count;
		char *text = live(i, is_shown);
		uint64_t sum = 14695981039346656037ull;
		unsigned int lines = 0;

		for (const char *at = text; *at != '\0'; at++) {
			sum = (sum ^ (uint8_t)*at) * 1099511628211ull;
			lines += *at == '\n';
		}
		if (is_shown)
			fputs(text, out);
		else
			fprintf(out, "== life %u: %u lines, sum %016" PRIx64 "\n", i, lines, sum);
		if (shown != NULL && (atoi(shown) == 0 || atoi(shown) == (int)i))
			fputs(text, stderr);
		free(text);
	}
	fclose(out);
	return all;
}

Test(driver_lives, all_that_comes_of_what_is_drawn)
{
	char *all = lives(1, LIVES, LIVES_SHOWN);

	expected_compare("driver/lives", all);
	free(all);
}

/* An arena with gaps asks for memory at other times. */
Test(driver_lives, whenever_memory_fails)
{
	char *all = lives(SHORT_LIVES, LIVES / 4, 1);

#if !defined(__SANITIZE_ADDRESS__)
	expected_compare("driver/short", all);
#endif
	free(all);
}

Test(driver_lives, in_which_hosts_are_replaced)
{
	char *all = lives(MOVED_LIVES, LIVES / 4, 1);

	expected_compare("driver/moves", all);
	free(all);
}

Test(driver_lives, in_which_drivers_follow_one_another)
{
	char *all = lives(ADOPTED_LIVES, LIVES, 0);

	expected_compare("driver/adoptions", all);
	free(all);
}

static void start_named(struct life *l, size_t number)
{
	struct fw_message m = {.kind = FW_START_APP};
	char name[16];

	snprintf(name, sizeof(name), "n%zu", number);
	m.start_app.name = name;
	m.start_app.source = source_of(l, 0, false, &m.start_app.source_bytes);
	l->text = NULL;
	m.seq = ++l->seq;
	happens(l, "x: START_APP %s", name);
	speak(l, l->clients[0].connection, &m);
	if (number % 32 == 0) /* it may ask again */
		life_pass(l, 300 * MS);
}

static void stop_named(struct life *l, const char *name, bool restarts)
{
	struct fw_message m = {.kind = FW_STOP_APP, .seq = ++l->seq};

	m.stop_app.name = name;
	m.stop_app.restart = restarts;
	happens(l, "x: STOP_APP %s%s", name, restarts ? " and restart" : "");
	speak(l, l->clients[0].connection, &m);
	life_pass(l, 300 * MS);
}

Test(driver_lives, as_many_applications_as_there_may_be)
{
	static struct world w;
	static struct life l;

	transcript_begin();
	transcript_numbers_chance = true;
	fragi_log_threshold = FRAGI_LOG_INFO;
	l.w = &w;
	l.is_brief = w.many_end = true;
	l.graphs[0] = (struct life_graph){.shape = 2};
	l.config = (struct drv_config){.version = "test",
				       .progress_ns = -1,
				       .report_missing_ns = 3600 * SECOND,
				       .random = world_random,
				       .random_arg = &w};
	cr_assert_eq(drv_core_create(&l.config, &w.core), 0);
	while (l.clients[0].connection == 0)
		client_comes(&l);
	for (size_t i = 0; drv_core_app_count(w.core) < DRV_APPS_MAX; i++)
		start_named(&l, i);
	transcript_forget();
	start_named(&l, 2000);
	stop_named(&l, "n600", true);
	stop_named(&l, "n601", false);
	start_named(&l, 2000);
	start_named(&l, 2001);
	start_named(&l, 2000);
	stop_named(&l, "n602", false);
	stop_named(&l, "n602", true);
	stop_named(&l, "n601", true);
	stop_named(&l, "n601", false);
	start_named(&l, 2000);
	stop_named(&l, "n601", true);
	fclose(transcript);
	expected_compare("driver/full", transcript_text);
	free(transcript_text);
	transcript = fopen("/dev/null", "w");
	life_end(&l);
	fclose(transcript);
}
