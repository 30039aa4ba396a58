// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>

/* driverd's shell, as driverd/shell.c: the core's actions become frames and closed connections. */

static void random_bytes(void *arg, void *bytes, size_t size)
{
	uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		at[i] = (uint8_t)(sim_random(arg) >> 32);
}

static void set_timer(struct sim *sim)
{
	struct sim_driver *driver = &sim->driver;
	int64_t deadline = drv_core_deadline_ns(driver->core), at_ns;

	if (deadline == INT64_MAX)
		return;
	at_ns = deadline - driver->process.clock_ns;
	if (at_ns < sim->now_ns)
		at_ns = sim->now_ns;
	if (driver->timer_at_ns >= sim->now_ns && driver->timer_at_ns <= at_ns)
		return;
	driver->timer_at_ns = at_ns + sim_between(sim, 0, SIM_MS); /* as libuv rounds */
	sim_put(sim, driver->timer_at_ns, SIM_EV_DRIVER_TIMER, 0, 0, driver->incarnation);
}

/* The connection of an action; it must be one that the driver still has. */
static struct sim_connection *connection_of(struct sim *sim, const struct drv_action *action)
{
	struct sim_connection *connection =
		&sim->connections[(action->connection - 1) % SIM_CONNECTIONS_MAX];

	if (action->connection != 0 && action->connection <= sim->connection_count &&
	    connection->open[1] && connection->incarnation == sim->driver.incarnation)
		return connection;
	sim_fail(sim, "dead session", "the driver acts on connection %llu, which is closed",
		 (unsigned long long)action->connection);
	return NULL;
}

static void do_ended(struct sim *sim, const struct fragi_summary *summary)
{
	for (uint32_t i = 0; i < sim->app_count; i++) {
		struct sim_app *app = &sim->apps[i];

		if (!app->given || (app->ended && sim->is.adopts) ||
		    app->incarnation != sim->driver.incarnation ||
		    strcmp(app->name, summary->application) != 0)
			continue;
		sim_print(sim, "driver", "%s ended: %s, exit code %d: %s", app->name,
			  summary->result == FRAGI_SUMMARY_DONE      ? "done"
			  : summary->result == FRAGI_SUMMARY_STOPPED ? "stopped"
								     : "failed",
			  summary->exit_code,
			  summary->failure.sentence != NULL ? summary->failure.sentence : "");
		sim_check_summary(sim, app, summary);
		app->ended = true;
		app->ended_ns = sim->now_ns;
		return;
	}
	sim_fail(sim, "results", "there is a result of %s, which was not given",
		 summary->application);
}

/* Most disks are quick, a busy one is not, and a full one says no. */
static void write_changes(struct sim *sim)
{
	int64_t takes_ns = sim_between(sim, 0, sim_chance(sim, 4) ? SIM_DISK_NS : 20 * SIM_MS);

	sim->disk.writing = sim->disk.wanted;
	sim->disk.writing_epoch = sim->disk.wanted_epoch;
	sim_put(sim, sim->now_ns + takes_ns, SIM_EV_SYNCED, (uint32_t)sim->driver.incarnation,
		sim_chance(sim, 50), sim->disk.writing);
}

/* As driverd/store.c: one write at a time, of all that has come. Only numbers are kept here. */
static void do_persist(struct sim *sim, const struct drv_action *action)
{
	sim->disk.wanted = action->change;
	if (sim->is.adopts)
		sim_adopt_persist(sim, action);
	if (action->record.kind == DRV_RECORD_NUMBERS)
		sim->disk.wanted_epoch = action->record.epoch;
	if (sim->disk.writing == 0 && !sim->is.adopts)
		write_changes(sim);
}

void sim_on_synced(struct sim *sim, const struct sim_event *event)
{
	struct drv_event synced = {.kind = DRV_EVENT_PERSISTED, .change = event->c};
	struct sim_driver *driver = &sim->driver;

	if (driver->incarnation != event->a || !driver->process.alive) {
		sim_print(sim, "disk", "lost change %llu with its driver",
			  (unsigned long long)event->c);
		return;
	}
	if (sim_is_stopped(sim, &driver->process)) {
		sim_put_back(sim, *event, driver->process.stopped_until_ns);
		return;
	}
	sim->disk.writing = 0;
	sim->disk.written = event->b != 0 ? 0 : event->c;
	sim_print(sim, "disk", "%s change %llu", event->b != 0 ? "has no room for" : "has",
		  (unsigned long long)event->c);
	if (event->b != 0) {
		synced.text = "cannot keep state: the disk is full";
		for (uint32_t i = 0; i < sim->apps_given; i++)
			if (sim->apps[i].incarnation == driver->incarnation && !sim->apps[i].ended)
				sim->apps[i].excused = true;
	} else if (sim->disk.writing_epoch > sim->disk.epoch) {
		sim->disk.epoch = sim->disk.writing_epoch;
	}
	if (sim->is.adopts)
		sim_adopt_written(sim, event->c, event->b != 0);
	if (sim->disk.wanted > event->c || (sim->is.adopts && event->b != 0))
		write_changes(sim);
	sim_driver_step(sim, &synced);
}

/* Who waits for workers says for which fragments. */
static void check_progress(struct sim *sim, const char *text)
{
	static const char waiting[] = "waiting for ";
	unsigned int fragment;

	if (strncmp(text, waiting, sizeof(waiting) - 1) == 0 &&
	    strcmp(text + sizeof(waiting) - 1, "the workers that run it") != 0 &&
	    strcmp(text + sizeof(waiting) - 1, "the leases of its last run to end") != 0 &&
	    sscanf(text + sizeof(waiting) - 1, "f%u", &fragment) != 1)
		sim_fail(sim, "waits for nothing", "the driver waits and names nothing: \"%s\"",
			 text);
}

/*
 * The worker has closed a session that the driver takes for live, because its HELLO was not
 * answered in time: what is placed there fails.
 */
static void excuse_placed_on_closed(struct sim *sim, const struct sim_connection *connection,
				    const struct drv_action *action)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message;

	if (connection->open[0] || fw_decode((const uint8_t *)action->frame + 4,
					     action->frame_bytes - 4, &message, &err) < 0)
		return;
	for (uint32_t i = 0; message->kind == FW_HOST_CREATE && i < sim->apps_given; i++)
		sim->apps[i].excused |= strcmp(sim->apps[i].name, message->create.application) == 0;
	fw_message_free(message);
}

static void perform(struct sim *sim, struct drv_action *action)
{
	uint32_t index = (uint32_t)action->connection - 1;
	struct sim_connection *connection;

	if (action->connection != 0 && sim_client_has(sim, action->connection)) {
		sim_client_hear(sim, action);
		return;
	}
	if (sim_look_has(action->connection)) {
		sim_look_hear(sim, action);
		return;
	}
	switch (action->kind) {
	case DRV_DO_SEND:
		connection = connection_of(sim, action);
		if (connection == NULL)
			break;
		excuse_placed_on_closed(sim, connection, action);
		sim_move_sent(sim, connection, action->frame, action->frame_bytes);
		sim_look_sent(sim, action->frame, action->frame_bytes);
		sim_send(sim, index, 0, action->frame, action->frame_bytes);
		action->frame = NULL;
		break;
	case DRV_DO_ADMIT:
		connection = connection_of(sim, action);
		if (connection != NULL)
			connection->admitted = true;
		break;
	case DRV_DO_CLOSE:
		if (connection_of(sim, action) == NULL)
			break;
		sim_limit_came(sim, NULL);
		sim_print(sim, "driver", "closes connection %llu",
			  (unsigned long long)action->connection);
		sim_close(sim, index, 1, false);
		break;
	case DRV_DO_LOG:
		sim_print(sim, "driver", "| %s%s%s", action->subject != NULL ? action->subject : "",
			  action->subject != NULL ? ": " : "", action->text);
		break;
	case DRV_DO_PROGRESS:
		check_progress(sim, action->text);
		break;
	case DRV_DO_PERSIST:
		do_persist(sim, action);
		break;
	case DRV_DO_ENDED:
		do_ended(sim, action->summary);
		if (!sim->driver_for_one)
			break;
		sim_driver_die(sim, false);
		sim->driver_returns = sim->apps_given < sim->app_count;
		if (sim->driver_returns)
			sim_put(sim, sim->now_ns + sim_between(sim, SIM_MS, 2 * SIM_S),
				SIM_EV_RESTART, SIM_WORKERS_MAX, 0, 0);
		break;
	}
}

void sim_driver_step(struct sim *sim, struct drv_event *event)
{
	struct sim_driver *driver = &sim->driver;

	if (driver->process.alive && !sim->failed && sim->is.adopts &&
	    drv_core_is_given_up(driver->core, event, sim_clock(sim, &driver->process)))
		sim_adopt_begin_again(sim);
	if (!driver->process.alive || sim->failed) {
		fw_message_free(event->message);
		return;
	}
	sim->step_count++;
	drv_actions_reset(&driver->actions);
	if (drv_core_step(driver->core, event, sim_clock(sim, &driver->process), &driver->actions) <
	    0) {
		sim_fail(sim, "memory", "the driver's core is out of memory");
		return;
	}
	sim_client_learn(sim);
	for (size_t i = 0; i < driver->actions.count && driver->process.alive && !sim->failed; i++)
		perform(sim, &driver->actions.items[i]);
	/* What a step has is written together. */
	if (sim->is.adopts && driver->process.alive && sim->disk.writing == 0 &&
	    sim->disk.wanted > sim->disk.written)
		write_changes(sim);
	if (driver->process.alive)
		set_timer(sim);
}

void sim_on_driver_timer(struct sim *sim, const struct sim_event *event)
{
	struct sim_driver *driver = &sim->driver;

	if (event->c != driver->incarnation || !driver->process.alive)
		return;
	if (sim_is_stopped(sim, &driver->process)) {
		driver->timer_at_ns = driver->process.stopped_until_ns;
		sim_put_back(sim, *event, driver->process.stopped_until_ns);
		return;
	}
	if (event->at_ns == driver->timer_at_ns)
		driver->timer_at_ns = -1;
	if (drv_core_deadline_ns(driver->core) > sim_clock(sim, &driver->process)) {
		set_timer(sim);
		return;
	}
	sim_driver_step(sim, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	if (driver->process.alive &&
	    drv_core_deadline_ns(driver->core) <= sim_clock(sim, &driver->process)) {
		if (++driver->spins > (sim->is.adopts ? 24 : 4)) /* it restores in steps */
			sim_fail(sim, "at rest", "the driver's timer is due again and again");
	} else {
		driver->spins = 0;
	}
}

/* The next application of the plan. */
void sim_driver_app(struct sim *sim)
{
	struct drv_event event = {.kind = DRV_EVENT_APP};
	struct sim_app *app;
	void *source;
	size_t size;

	if (sim->apps_given == sim->app_count || !sim->driver.process.alive)
		return;
	app = &sim->apps[sim->apps_given++];
	if (sim_app_source(app, &source, &size) < 0) {
		sim_fail(sim, "memory", "cannot pack %s", app->name);
		return;
	}
	app->given = true;
	app->incarnation = sim->driver.incarnation;
	app->given_ns = app->busy_ns = app->state_since_ns = sim->now_ns;
	/* A worker that serves one application refuses another. */
	app->excused = app->disturbed =
		sim->now_ns < sim->excuse_until_ns || (sim->once && sim->app_count > 1);
	for (uint32_t i = 0; i < sim->worker_count;
	     i++) /* the user is ending it, and asks for more */
		app->excused = app->excused ||
			       (sim->workers[i].process.alive && sim->workers[i].end_requested);
	app->early_excuse = app->excused;
	sim_print(sim, "driver", "is given %s", app->name);
	event.app = (struct drv_event_app){source, size, app->start_timeout_ns};
	sim_driver_step(sim, &event);
	free(source);
}

/* SIGTERM. The first one drains or ends what there is, the second one ends it at once. */
void sim_driver_stop(struct sim *sim)
{
	struct sim_driver *driver = &sim->driver;
	uint64_t incarnation = driver->incarnation;

	if (!driver->process.alive || sim_is_stopped(sim, &driver->process))
		return;
	sim_print(sim, "user", "stops the driver");
	sim->stops++;
	sim->stopped_in = incarnation;
	for (uint32_t i = 0; i < sim->apps_given; i++) {
		struct sim_app *app = &sim->apps[i];

		if (app->ended || app->incarnation != incarnation)
			continue;
		app->cut = app->cut ||
			   (app->stop_requested && sim->stops > 1 &&
			    drv_core_named_state(driver->core, app->name) < DRV_APP_KILLING);
		app->stop_requested = true;
		app->excused = app->excused || sim_swap_is_failing(sim, app);
	}
	sim_driver_step(sim, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	for (uint32_t i = 0; i < sim->apps_given && driver->process.alive; i++) {
		const struct sim_app *app = &sim->apps[i];
		enum drv_app_state state = drv_core_named_state(driver->core, app->name);

		bool goes_on = state < DRV_APP_STARTING ||
			       (state == DRV_APP_RUNNING && !sim_move_is_under_way(sim, app));

		if (sim->stops == 1 && sim_adopt_waits(sim, app)) /* first it is adopted */
			continue;
		if (!app->ended && app->incarnation == incarnation &&
		    (sim->stops > 1 ? state < DRV_APP_KILLING : goes_on))
			sim_fail(sim, "stop", "%s is %s after SIGTERM", app->name,
				 drv_app_state_name(state));
	}
}

void sim_driver_start(struct sim *sim)
{
	struct drv_config config = {
		.version = "0",
		.clock = "node0",
		.address = "10.0.0.1:57777",
		.beat_ns = sim->beat_ns,
		.dead_ns = sim->dead_ns,
		.prepare_ns = SIM_PREPARE_NS,
		.wire_ns = SIM_WIRE_NS,
		.start_ns = SIM_START_NS,
		.drain_ns = SIM_DRAIN_NS,
		.close_ns = SIM_CLOSE_NS,
		.kill_ns = SIM_KILL_NS,
		.ends_with_app = sim->driver_for_one,
		.keeps_state = sim->disk.is_used,
		.adopts = sim->is.adopts,
		.adopt_ns = SIM_ADOPT_NS,
		.random = random_bytes,
		.random_arg = sim,
	};
	struct sim_driver *driver = &sim->driver;

	sim->driver_returns = false;
	sim->disk.writing = sim->disk.wanted = sim->disk.wanted_epoch = sim->disk.written = 0;
	driver->incarnation++;
	driver->process = (struct sim_process){.alive = true};
	driver->timer_at_ns = -1;
	driver->started_ns = sim->now_ns;
	driver->spins = 0;
	sim->stops = 0;
	if (drv_core_create(&config, &driver->core) < 0) {
		sim_fail(sim, "memory", "cannot make a driver");
		return;
	}
	sim_print(sim, "driver", "starts");
	if (sim->is.adopts) {
		sim_adopt_restore(sim);
		set_timer(sim);
		return;
	}
	(void)drv_core_restore(driver->core, &(struct drv_record){.kind = DRV_RECORD_NUMBERS,
								  .epoch = sim->disk.epoch});
	sim_driver_app(sim);
}

void sim_driver_die(struct sim *sim, bool crashed)
{
	struct sim_driver *driver = &sim->driver;

	if (!driver->process.alive)
		return;
	sim_print(sim, "driver", crashed ? "is killed" : "exits");
	driver->process.alive = false;
	for (uint32_t i = 0; i < sim->connection_count; i++)
		if (sim->connections[i].open[1])
			sim_close(sim, i, 1, false);
	if (sim->is.adopts)
		sim_adopt_died(sim, crashed);
	for (uint32_t i = 0; i < sim->app_count && !sim->is.adopts; i++) {
		struct sim_app *app = &sim->apps[i];

		if (!app->given || app->ended || app->incarnation != driver->incarnation)
			continue;
		app->ended = true;
		app->ended_ns = sim->now_ns;
		sim->waiting++;
	}
}

void sim_driver_fini(struct sim *sim)
{
	drv_core_destroy(sim->driver.core);
	drv_actions_fini(&sim->driver.actions);
	sim->driver.core = NULL;
}
