// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>

/*
 * Hosts and their processes: states, the worker of a process, and what is known of both. host.c
 * records what a process reports, replace.c brings a host from one to the next.
 */

#define ENDS (FRAGI_TO(DRV_HOST_STOPPING) | FRAGI_TO(DRV_HOST_KILLED) | FRAGI_TO(DRV_HOST_GONE))

static const uint32_t host_transitions[DRV_HOST_STATES] = {
	[DRV_HOST_PLACED] = FRAGI_TO(DRV_HOST_PREPARING) | FRAGI_TO(DRV_HOST_GONE),
	[DRV_HOST_PREPARING] = FRAGI_TO(DRV_HOST_PREPARED) | ENDS,
	[DRV_HOST_PREPARED] = FRAGI_TO(DRV_HOST_WIRING) | ENDS,
	[DRV_HOST_WIRING] = FRAGI_TO(DRV_HOST_WIRED) | ENDS,
	[DRV_HOST_WIRED] = FRAGI_TO(DRV_HOST_STARTING) | ENDS,
	[DRV_HOST_STARTING] = FRAGI_TO(DRV_HOST_RUNNING) | ENDS,
	[DRV_HOST_RUNNING] = FRAGI_TO(DRV_HOST_DONE) | ENDS,
	[DRV_HOST_DONE] = ENDS,
	[DRV_HOST_STOPPING] = FRAGI_TO(DRV_HOST_KILLED) | FRAGI_TO(DRV_HOST_GONE),
	[DRV_HOST_KILLED] = FRAGI_TO(DRV_HOST_GONE),
	[DRV_HOST_GONE] = 0,
};

static const char *const host_names[DRV_HOST_STATES] = {
	[DRV_HOST_PLACED] = "placed",     [DRV_HOST_PREPARING] = "preparing",
	[DRV_HOST_PREPARED] = "prepared", [DRV_HOST_WIRING] = "wiring",
	[DRV_HOST_WIRED] = "wired",       [DRV_HOST_STARTING] = "starting",
	[DRV_HOST_RUNNING] = "running",   [DRV_HOST_DONE] = "done",
	[DRV_HOST_STOPPING] = "stopping", [DRV_HOST_KILLED] = "killed",
	[DRV_HOST_GONE] = "gone",
};

/* The request that leads to a goal, and the state that reaches it. */
static const struct {
	const char *name;
	enum drv_host_state reached;
} goals[DRV_GOALS] = {
	[DRV_GOAL_PREPARED] = {"PREPARE", DRV_HOST_PREPARED},
	[DRV_GOAL_WIRED] = {"WIRE", DRV_HOST_WIRED},
	[DRV_GOAL_RUNNING] = {"START", DRV_HOST_RUNNING},
	[DRV_GOAL_DRAINED] = {"STOP", DRV_HOST_DONE},
	[DRV_GOAL_CLOSED] = {"STOP", DRV_HOST_GONE},
	[DRV_GOAL_KILLED] = {"KILL", DRV_HOST_GONE},
};

const char *drv_goal_request(enum drv_goal goal)
{
	return goals[goal].name;
}

enum drv_host_state drv_goal_reached(enum drv_goal goal)
{
	return goals[goal].reached;
}

/* Asserts the invariants of a host at the end of every step. */
static void host_check(const void *object)
{
	const struct drv_host *host = object;

	(void)host;
	assert((host->now.state == DRV_HOST_GONE || host->now.session != NULL) &&
	       "it has a worker");
	assert(host->now.session == NULL || host->now.session->state == DRV_SESSION_LIVE ||
	       host->now.session->state == DRV_SESSION_SUSPECT);
	assert(host->now.asked <= host->now.goal && "it was asked for no more than its goal");
	assert(host->now.state != DRV_HOST_KILLED || host->now.goal == DRV_GOAL_KILLED);
	assert(!host->now.is_lost || host->now.state == DRV_HOST_GONE);
	assert(host->now.state < DRV_HOST_PREPARED || host->now.state > DRV_HOST_DONE ||
	       host->tables != NULL);
}

const struct fragi_machine drv_host_machine = {
	.name = "host",
	.state_names = host_names,
	.transitions = host_transitions,
	.count = DRV_HOST_STATES,
	.check = host_check,
};

/*
 * Of many hosts that want to do the same, on machines that are short of processors, each waits for
 * the others: what they have in all counts from when one of them has done it last.
 */
static void prolong_limit(struct drv_app *app, enum drv_host_state to)
{
	const struct drv_config *config = &app->core->config;
	int64_t within_ns = 0;

	if (app->state == DRV_APP_WIRING && to == DRV_HOST_WIRED)
		within_ns = config->wire_ns;
	else if (app->state == DRV_APP_CLOSING && to == DRV_HOST_GONE)
		within_ns = config->close_ns;
	else if (app->state == DRV_APP_KILLING && to == DRV_HOST_GONE)
		within_ns = config->kill_ns;
	if (within_ns != 0 && drv_timer_is_set(&app->timers.phase))
		drv_set(app->core, &app->timers.phase, app->core->now_ns + within_ns);
}

void drv_host_transition(struct drv_host *host, enum drv_host_state to)
{
	struct drv_app *app = host->app;
	bool legal = fragi_machine_transition(&drv_host_machine, host->now.state, to);

	drv_log(app->core, legal ? FRAGI_LOG_DEBUG : FRAGI_LOG_ERROR, app->spec->application,
		"host %u of run %llu, epoch %llu, on %s: %s -> %s%s", host->number,
		(unsigned long long)app->run, (unsigned long long)host->now.epoch, host->worker,
		host_names[host->now.state], host_names[to], fragi_machine_remark(legal));
	if (!legal) {
		app->core->illegal_transitions++;
		return;
	}
	drv_app_wake(app);
	app->hosts_in[host->now.state]--;
	app->hosts_in[to]++;
	host->now.state = to;
	prolong_limit(app, to);
}

void drv_host_renew(struct drv_host *host, uint64_t epoch, enum drv_host_state state)
{
	struct drv_app *app = host->app;

	assert(host->now.state == DRV_HOST_GONE && host->now.stats == NULL);
	drv_log(app->core, FRAGI_LOG_DEBUG, drv_app_name(app),
		"host %u of run %llu: epoch %llu follows epoch %llu, on %s", host->number,
		(unsigned long long)app->run, (unsigned long long)epoch,
		(unsigned long long)host->now.epoch, host->worker);
	app->hosts_in[host->now.state]--;
	app->hosts_in[state]++;
	host->now = (struct drv_process){
		.epoch = epoch,
		.state = state,
		.session = host->now.session,
		.prepared = host->now.prepared,
	};
	drv_app_wake(app);
}

void drv_process_fini(struct drv_process *process)
{
	fw_message_free(process->prepared);
	fw_message_free(process->stats);
	*process = (struct drv_process){0};
}

void drv_host_attach(struct drv_host *host, struct drv_session *session)
{
	if (session->first_host == NULL)
		session->last_host = &session->first_host;
	host->now.session = session;
	host->next_there = NULL;
	host->at_there = session->last_host;
	*session->last_host = host;
	session->last_host = &host->next_there;
	session->hosts++;
}

void drv_host_detach(struct drv_host *host)
{
	struct drv_session *session = host->now.session;

	assert(session != NULL && session->hosts > 0);
	*host->at_there = host->next_there;
	if (host->next_there != NULL)
		host->next_there->at_there = host->at_there;
	else
		session->last_host = host->at_there;
	session->hosts--;
	host->now.session = NULL;
}

void drv_host_asked(struct drv_host *host, const struct drv_session *session)
{
	fragi_free(host->replacement.was_at);
	host->replacement.was_at = fragi_strdup(session->name);
	host->replacement.was_on = session->number;
}

/* The texts are in one piece of memory. */
int drv_host_take_texts(struct drv_host *host, const struct drv_session *session)
{
	const char **texts[] = {&host->worker, &host->node, &host->clock, &host->memory,
				&host->no_memory};
	const char *const values[] = {session->name, session->node, session->clock, session->memory,
				      session->no_memory};
	size_t size = 0;
	char *at;

	for (size_t i = 0; i < FRAG_COUNT_OF(values); i++)
		size += strlen(values[i]) + 1;
	at = fragi_malloc(size);
	if (at == NULL)
		return -ENOMEM;
	fragi_free(host->texts);
	host->texts = at;
	for (size_t i = 0; i < FRAG_COUNT_OF(values); i++) {
		*texts[i] = at;
		at = stpcpy(at, values[i]) + 1;
	}
	return 0;
}

int drv_host_name(struct drv_host *host)
{
	const struct fragi_spec_fragment *fragments = host->app->spec->fragments;
	char text[(FRAGI_NAMES_MAX + 1) * FRAG_NAME_MAX];
	struct fragi_names names = {.text = text, .size = sizeof(text)};
	size_t bytes = 1;
	char *at;

	for (uint32_t i = 0; i < host->fragment_count; i++)
		bytes += strlen(fragments[host->fragments[i]].name) + 2;
	host->all_names = at = fragi_arena_alloc(&host->app->arena, bytes);
	for (uint32_t i = 0; at != NULL && i < host->fragment_count; i++) {
		const char *name = fragments[host->fragments[i]].name;

		at += sprintf(at, "%s%s", i != 0 ? ", " : "", name);
		fragi_names_add(&names, "%s", name);
	}
	host->name = names.count > FRAGI_NAMES_MAX ? fragi_arena_strdup(&host->app->arena, text)
						   : host->all_names;
	return host->name != NULL ? 0 : -ENOMEM;
}

void drv_host_set_place(struct drv_host *host, const struct drv_place *place)
{
	for (uint32_t i = 0; i < host->fragment_count; i++)
		host->app->fragments[host->fragments[i]].place = *place;
}

struct drv_host *drv_host_neighbour(const struct drv_host *host, uint32_t edge)
{
	const struct fragi_flow_info *flow = &host->app->flows.items[host->edges[edge]];
	struct drv_host *from = host->app->fragments[flow->from_fragment].host;

	return from != host ? from : host->app->fragments[flow->to_fragment].host;
}

bool drv_host_is_neighbour(const struct drv_host *host, const struct drv_host *other)
{
	for (uint32_t i = 0; i < host->edge_count; i++)
		if (drv_host_neighbour(host, i) == other)
			return true;
	return false;
}

struct drv_host *drv_host_find(struct drv_core *core, uint64_t run, uint32_t number)
{
	struct drv_app *app = drv_app_find(core, run);
	uint32_t count = app != NULL ? app->host_count : 0;

	if (app != NULL && app->adopting != NULL && app->hosts != NULL)
		count = (uint32_t)app->spec->fragment_count; /* those too that are reported */
	return number >= 1 && number <= count ? &app->hosts[number - 1] : NULL;
}

struct drv_host *drv_host_running(const struct drv_app *app, const char *fragment)
{
	const struct fragi_spec_fragment *found = fragi_strmap_get(&app->by_name, fragment);

	return found != NULL ? app->fragments[found - app->spec->fragments].host : NULL;
}

const struct fw_host_prepared *drv_host_answer(const struct drv_host *host)
{
	return host->now.prepared != NULL ? &host->now.prepared->prepared : &host->tables->prepared;
}

/* The flows were resolved over the tables of the first epoch. */
bool drv_host_tables_are_same(const struct fw_host_prepared *a, const struct fw_host_prepared *b)
{
	bool same = a->fragment_count == b->fragment_count && a->flow_count == b->flow_count;

	for (uint32_t f = 0; same && f < a->fragment_count; f++) {
		const struct fw_fragment *x = &a->fragments[f], *y = &b->fragments[f];

		same = x->op_count == y->op_count && strcmp(x->name, y->name) == 0;
		for (uint32_t i = 0; same && i < x->op_count; i++) {
			same = x->ops[i].port_count == y->ops[i].port_count &&
			       strcmp(x->ops[i].name, y->ops[i].name) == 0;
			for (uint32_t p = 0; same && p < x->ops[i].port_count; p++)
				same = x->ops[i].ports[p].type_id == y->ops[i].ports[p].type_id &&
				       x->ops[i].ports[p].dir == y->ops[i].ports[p].dir &&
				       strcmp(x->ops[i].ports[p].name, y->ops[i].ports[p].name) ==
					       0;
		}
	}
	return same;
}
