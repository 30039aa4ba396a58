/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DRIVER_LIVES_CLIENTS_H
#define TESTS_UNIT_DRIVER_LIVES_CLIENTS_H

#include "driver_lives_workers.h"

#include <driverd/core/applications/source.h>

/* The clients of a life: what they give, change, ask for and watch. */
static inline void client_comes(struct life *l)
{
	size_t i = drawn(l, LIFE_CLIENTS);
	struct fw_identity key = {.name = "tablet", .serial = 3, .roles = FW_ROLE_BIT(4)};

	if (l->clients[i].connection != 0)
		return;
	l->clients[i].connection = life_connect(l, (char)('x' + i));
	happens(l, "client %c comes", (char)('x' + i));
	l->w->user = i == 1 ? "alice" : NULL;
	l->w->user_roles = i == 1 ? FW_USER_ROLES : 0;
	l->w->identity = i == 2 ? &key : NULL;
	if (!l->w->broken) {
		client_hello_as(l->w, l->clients[i].connection, one_of(l, "top", "fragctl"),
				i == 0);
		note(l);
	}
	l->w->user = NULL;
	l->w->user_roles = 0;
	l->w->identity = NULL;
}

static inline void client_goes(struct life *l)
{
	size_t i = drawn(l, LIFE_CLIENTS);
	uint64_t connection = l->clients[i].connection;

	if (connection == 0)
		return;
	l->clients[i].connection = 0;
	happens(l, "client %s goes", life_name(l, connection));
	event(l, (struct drv_event){
			 .kind = DRV_EVENT_CLOSED, .connection = connection, .text = "it closed"});
}

/* The graph that is sent, without what makes it large. */
static inline void show_text(struct life *l)
{
	if (l->text != NULL)
		fprintf(transcript, "%.*s", (int)strcspn(l->text, "#"), l->text);
	l->text = NULL;
}

static inline void client_sends(struct life *l, struct fw_message *m, const char *what)
{
	size_t i = one_in(l, 16) ? 2 : drawn(l, 2);

	if (m->kind == FW_TAP)
		i = 0;
	if (l->clients[i].connection == 0)
		return;
	m->seq = ++l->seq;
	happens(l, "%s: %s %s", life_name(l, l->clients[i].connection), fw_kind_name(m->kind),
		what);
	show_text(l);
	speak(l, l->clients[i].connection, m);
}

static inline uint64_t some_run(struct life *l)
{
	return 1 + drawn(l, 6);
}

static inline const char *some_app(struct life *l)
{
	static char name[FRAG_NAME_MAX + 1];
	const struct drv_core *core = l->w->core;

	if (!l->w->broken && core->app_count != 0 && !one_in(l, 6)) {
		const struct drv_app *app = core->apps[drawn(l, core->app_count)];

		for (size_t i = 0; i < core->app_count && l->is_calm; i++)
			if (core->apps[i]->state == DRV_APP_RUNNING)
				app = core->apps[i];
		snprintf(name, sizeof(name), "%s", drv_app_name(app));
		return name;
	}
	return one_in(l, 12) ? "apb" : app_names[drawn(l, 3)];
}

/* A source that speak() takes; freed by the next one. */
static inline void *source_of(struct life *l, size_t app, bool anew, uint32_t *out_bytes)
{
	static void *packed;
	struct life_graph *g = &l->graphs[app];
	const char *text;
	size_t bytes;

	if (anew)
		draw_graph(l, g);
	g->is_mistaken = one_in(l, 25);
	text = graph_text(g, app_names[app]);
	fragi_free(packed);
	cr_assert_eq(fragi_source_pack(
			     &(struct fragi_spec_source){.graph = {"app.yaml", text, strlen(text)}},
			     &packed, &bytes),
		     0);
	l->text = text;
	*out_bytes = (uint32_t)bytes;
	return packed;
}

static inline void app_is_given(struct life *l)
{
	struct drv_event given = {.kind = DRV_EVENT_APP};
	size_t app = drawn(l, 3);
	uint32_t bytes;

	given.app.source = source_of(l, app, true, &bytes);
	given.app.source_bytes = bytes;
	given.app.id = app + 10;
	given.app.start_timeout_ns = one_in(l, 3) ? (1 + (int64_t)drawn(l, 12)) * SECOND : 0;
	happens(l, "application %s is given", app_names[app]);
	show_text(l);
	event(l, given);
}

static inline void start_app(struct life *l)
{
	struct fw_message m = {.kind = FW_START_APP};
	size_t app = drawn(l, 3);

	m.start_app.source = source_of(l, app, true, &m.start_app.source_bytes);
	m.start_app.name = one_in(l, 6) ? "apb" : "";
	m.start_app.start_timeout_ns = one_in(l, 3) ? (1 + (int64_t)drawn(l, 12)) * SECOND : 0;
	client_sends(l, &m, app_names[app]);
}

static inline void stop_app(struct life *l)
{
	struct fw_message m = {.kind = FW_STOP_APP};

	m.stop_app.name = some_app(l);
	m.stop_app.restart = one_in(l, 2);
	m.stop_app.at_once = one_in(l, 3);
	m.stop_app.awaits = one_in(l, 2);
	client_sends(l, &m, m.stop_app.restart ? "and restart" : m.stop_app.name);
}

static inline void is_interrupted(struct life *l);

static inline bool runs(const struct life *l)
{
	for (size_t i = 0; !l->w->broken && i < l->w->core->app_count; i++)
		if (l->w->core->apps[i]->state == DRV_APP_RUNNING)
			return true;
	return false;
}

/* Something is to run before it can be changed, but for some lives. */
static inline bool is_too_early(struct life *l)
{
	if (!l->is_calm || runs(l))
		return false;
	worker_comes(l);
	client_comes(l);
	start_app(l);
	for (int i = 0; i < 4; i++) {
		all_answer(l);
		disk_writes(l);
	}
	return true;
}

static inline void apply(struct life *l)
{
	struct fw_message m = {.kind = FW_APPLY};
	const char *name = some_app(l);
	size_t app = strcmp(name, "cam") == 0 ? 1 : strcmp(name, "lab") == 0 ? 2 : 0;
	struct life_graph *g = &l->graphs[app];

	if (is_too_early(l))
		return;
	switch (drawn(l, 9)) {
	case 6:
		g->more[0] = (unsigned int)drawn(l, FRAG_COUNT_OF(op_more));
		break;
	case 7:
		g->more[1] = (unsigned int)drawn(l, FRAG_COUNT_OF(fragment_more));
		break;
	case 8:
		g->more[2] = (unsigned int)drawn(l, FRAG_COUNT_OF(top_more));
		break;
	case 0:
		g->value++;
		break;
	case 1:
		g->capacity = (g->capacity + 1) % 3;
		break;
	case 2:
		g->library++;
		break;
	case 3:
		g->policy[drawn(l, 5)] = (unsigned int)drawn(l, FRAG_COUNT_OF(policies));
		break;
	case 4:
		g->needs[drawn(l, 5)] = (unsigned int)drawn(l, FRAG_COUNT_OF(needs));
		break;
	default:
		g->shape = one_in(l, 3) ? (unsigned int)drawn(l, SHAPES) : g->shape;
		break;
	}
	m.apply.name = app_names[app];
	m.apply.only_shows = one_in(l, 3);
	m.apply.source = source_of(l, app, false, &m.apply.source_bytes);
	client_sends(l, &m, m.apply.only_shows ? "to look" : m.apply.name);
}

static inline void change_app(struct life *l)
{
	struct fw_message m = {.kind = FW_SET};
	const char *what;

	if (is_too_early(l))
		return;
	if (one_in(l, 2)) {
		m.set.name = some_app(l);
		m.set.text = what = one_of(l, "f1.tx.value=7", "f1.tx.value=8", "f5.tx.value=1",
					   "f1.tx.size=3", "f1.tx", "f9.tx.value=1");
	} else {
		m.kind = FW_SWAP;
		m.swap = (struct fw_swap){
			.name = some_app(l),
			.fragment = one_of(l, "f1", "f2", "f3", "f9"),
			.library = what = one_of(l, "libnew.so", "libone0.so"),
			.replaces = one_of(l, "", "", "libone0.so", "libone2.so", "libnone.so"),
			.probation_ns = (int64_t)drawn(l, 3) * 2 * SECOND};
	}
	client_sends(l, &m, what);
	if (m.kind == FW_SWAP)
		is_interrupted(l);
}

/* Something comes in between while hosts are replaced. */
static inline void is_interrupted(struct life *l)
{
	for (uint64_t i = drawn(l, 3); i > 0; i--)
		disk_writes(l);
	for (uint64_t i = drawn(l, 8); i > 0; i--)
		one_answers(l);
	switch (drawn(l, 12)) {
	case 0:
	case 1:
		driver_returns(l);
		for (int i = 0; i < 6; i++)
			worker_comes(l);
		for (int i = 0; i < 12; i++)
			worker_reports(l);
		break;
	case 2:
		worker_goes(l);
		break;
	case 3:
		worker_is_silent(l);
		break;
	case 4:
		one_loses_a_peer(l);
		break;
	case 5:
		stop_app(l);
		break;
	case 6:
		one_crashes_often(l);
		break;
	default:
		break;
	}
}

static inline void drain(struct life *l)
{
	struct fw_message m = {.kind = FW_DRAIN};

	if (is_too_early(l))
		return;
	m.drain.worker = one_of(l, "a", "b", "b", "b#2", "c", "d");
	m.drain.undo = one_in(l, 2);
	m.drain.rebalance = m.drain.undo && one_in(l, 2);
	client_sends(l, &m, m.drain.undo ? "undone" : m.drain.worker);
	is_interrupted(l);
}

static inline void ask(struct life *l)
{
	struct fw_message m = {.kind = FW_REQUEST};
	const char *what = "";

	switch (drawn(l, 4)) {
	case 0:
		m.request.what = FW_REQUEST_STATE;
		m.request.worker = what = one_of(l, "", "a", "b#2");
		break;
	case 1:
		m.kind = FW_EXPLAIN;
		m.explain.name = some_app(l);
		m.explain.what = what =
			one_of(l, "", "", "f1", "f1.tx", "f1.tx.out -> f2.rx.in", "f");
		break;
	case 2:
		m.kind = FW_AWAIT;
		m.run = some_run(l);
		m.await.until = one_in(l, 2) ? FW_RUNNING : FW_ENDED;
		what = m.await.until == FW_RUNNING ? "until it runs" : "until it ends";
		break;
	default:
		m.kind = FW_EXAMINE;
		m.examine.worker = what = one_of(l, "a", "b", "c", "e");
		break;
	}
	client_sends(l, &m, what);
}

static inline void watch(struct life *l)
{
	struct fw_message m = {.kind = FW_WATCH};
	const char *what = "";

	if (is_too_early(l))
		return;
	switch (drawn(l, 4)) {
	case 0:
		m.watch = (struct fw_watch){drawn(l, 12), one_in(l, 2)};
		break;
	case 1:
		m.kind = FW_WATCH_LOGS;
		m.watch_logs = (struct fw_watch_logs){.name = some_app(l),
						      .fragment = one_of(l, "", "", "f1"),
						      .op = one_of(l, "", "", "tx"),
						      .after = drawn(l, 8),
						      .follow = one_in(l, 2)};
		what = m.watch_logs.name;
		break;
	case 2:
		m.kind = FW_LOOK;
		m.look = (struct fw_look){.name = one_in(l, 3) ? "" : some_app(l),
					  .every_ns = (int64_t)drawn(l, 3) * SECOND,
					  .once = one_in(l, 3),
					  .at_once = one_in(l, 3),
					  .rows = (uint32_t)drawn(l, 2),
					  .changes = one_in(l, 3)};
		what = m.look.at_once ? "at once" : m.look.once ? "once" : "";
		break;
	default:
		m.kind = FW_TAP;
		m.tap = (struct fw_tap){.name = some_app(l),
					.flow = what = one_of(l, "f1.tx.out", "f1", "f3.mid", "x"),
					.every_ns = (int64_t)drawn(l, 2) * SECOND,
					.pictures = one_in(l, 2),
					.traces = one_in(l, 4),
					.ends = one_in(l, 4) ? l->tap_seq : 0};
		l->tap_seq = l->seq + 1;
		break;
	}
	client_sends(l, &m, what);
}

#endif
