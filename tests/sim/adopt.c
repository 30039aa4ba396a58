// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>

/*
 * The state folder, record by record, and what becomes of applications when their driver dies: one
 * that ran goes on, and is accounted for to the message as if its driver had never been away. One
 * that had not come so far, or lost a worker meanwhile, may start anew: as another run, which is
 * another application here.
 */
struct sim_record {
	struct drv_record record; /* owns what it points to */
	uint64_t change;          /* 0: of a driver before */
};
static struct {
	struct sim_record *items;
	size_t count, capacity;
} disk;

bool sim_adopt_is_open(const struct sim *sim)
{
	return sim->is.adopts &&
	       sim->now_ns < sim_able_since(&sim->driver.process, sim->driver.started_ns) +
				     SIM_ADOPT_NS + SIM_S;
}

/* One that had run waits to be reported: as long from when the driver has first heard of it. */
bool sim_adopt_waits(const struct sim *sim, const struct sim_app *app)
{
	int64_t since_ns = sim_able_since(&sim->driver.process, app->state_since_ns);

	return sim_adopt_is_open(sim) ||
	       (sim->is.adopts && app->state == DRV_APP_WAITING &&
		app->furthest > DRV_APP_WAITING && sim->now_ns < since_ns + SIM_ADOPT_NS + SIM_S);
}

static void record_fini(struct sim_record *item)
{
	free((void *)(uintptr_t)item->record.name);
	free((void *)(uintptr_t)item->record.who);
	free((void *)(uintptr_t)item->record.text);
	free((void *)(uintptr_t)item->record.source);
	free((void *)(uintptr_t)item->record.outcome);
}

static void *copy_of(const void *bytes, size_t size)
{
	void *copy = bytes != NULL ? malloc(size + 1) : NULL;

	if (bytes != NULL && copy == NULL)
		abort();
	return copy != NULL ? memcpy(copy, bytes, size) : NULL;
}

static const char *copy_text(const char *text)
{
	return text != NULL ? copy_of(text, strlen(text) + 1) : NULL;
}

/* Keeps the records for which keeps says so. */
static void drop(bool (*keeps)(const struct sim_record *item, uint64_t change), uint64_t change)
{
	size_t kept = 0;

	for (size_t i = 0; i < disk.count; i++) {
		if (keeps(&disk.items[i], change))
			disk.items[kept++] = disk.items[i];
		else
			record_fini(&disk.items[i]);
	}
	disk.count = kept;
}

static bool keeps_none(const struct sim_record *item, uint64_t change)
{
	(void)item, (void)change;
	return false;
}

static bool keeps_written(const struct sim_record *item, uint64_t change)
{
	return item->change <= change;
}

/* What could not be written and was an attempt is void. */
static uint64_t synced_before;
static bool keeps_no_attempts(const struct sim_record *item, uint64_t change)
{
	return item->change <= synced_before || item->change > change || !item->record.is_attempt;
}

void sim_adopt_fini(struct sim *sim)
{
	(void)sim;
	drop(keeps_none, 0);
	free(disk.items);
	memset(&disk, 0, sizeof(disk));
}

static struct sim_app *app_of_run(struct sim *sim, const char *name, uint64_t run)
{
	for (uint32_t i = sim->apps_given; i-- > 0;)
		if (sim->apps[i].kept_run == run && strcmp(sim->apps[i].name, name) == 0)
			return &sim->apps[i];
	return NULL;
}

static struct sim_app *app_named(struct sim *sim, const char *name)
{
	for (uint32_t i = sim->apps_given; i-- > 0;)
		if (strcmp(sim->apps[i].name, name) == 0)
			return &sim->apps[i];
	return NULL;
}

static bool has_shared_name(const struct sim *sim, uint32_t worker)
{
	return sim->workers[worker].same_name || (worker == 0 && sim->same_names);
}

/*
 * The driver knows workers by their names: another one with the name of one that runs the
 * application has come to it, and does not run it.
 */
static bool is_taken_for_another(const struct sim *sim, const struct sim_app *app)
{
	bool runs[SIM_WORKERS_MAX] = {false}, is_shared = false, has_come = false;

	for (uint32_t i = 0; i < sim->host_count; i++)
		if (sim->hosts[i].app == app && sim->hosts[i].process.alive)
			runs[sim->hosts[i].worker] = true;
	for (uint32_t w = 0; w < sim->worker_count; w++)
		is_shared = is_shared || (runs[w] && has_shared_name(sim, w));
	for (uint32_t i = 0; i < sim->connection_count; i++) {
		const struct sim_connection *connection = &sim->connections[i];
		uint32_t w = connection->worker;

		has_come = has_come || (w < sim->worker_count && connection->admitted &&
					connection->incarnation == sim->driver.incarnation &&
					!runs[w] && has_shared_name(sim, w));
	}
	return is_shared && has_come;
}

/* It is over without a result: its driver had died. */
static void forget_app(struct sim *sim, struct sim_app *app)
{
	if (app->ended)
		return;
	if (app->ran && !app->excused && !app->fate_met && app->blows == 0 &&
	    !app->stop_requested && !is_taken_for_another(sim, app))
		sim_fail(sim, "adoption", "%s ran when its driver died, and was not adopted",
			 app->name);
	app->ended = true;
	app->ended_ns = sim->now_ns;
	sim->waiting++;
}

/*
 * It had come to its end by itself, and its workers, which are there, could have said so. A driver
 * that is to end at once does not wait for that, nor until the disk is ready for an adoption.
 */
static void check_twice(struct sim *sim, const struct sim_app *app)
{
	bool known = !sim->disk.was_lost && app->has_result && app->result == FRAGI_SUMMARY_DONE &&
		     !app->excused && !app->was_cut;

	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[i];
		const struct sim_worker *worker = &sim->workers[host->worker];

		known = known &&
			(host->app != app ||
			 (worker->generation == host->generation && worker->process.alive &&
			  wrk_core_session(worker->core) == WRK_SESSION_ATTACHED));
	}
	if (known)
		sim_fail(sim, "adoption", "%s is done, and runs a second time", app->name);
}

/* The user is ending a worker, which leaves soon, or has left, of which the driver is to hear. */
static bool a_worker_leaves(const struct sim *sim)
{
	bool leaves = false;

	for (uint32_t i = 0; i < sim->worker_count; i++)
		leaves = leaves || (sim->workers[i].process.alive && sim->workers[i].end_requested);
	for (uint32_t i = 0; i < sim->connection_count; i++) {
		const struct sim_connection *connection = &sim->connections[i];

		leaves = leaves || (connection->worker < sim->worker_count && connection->open[1] &&
				    sim->workers[connection->worker].end_requested);
	}
	return leaves;
}

/* Whether a fault lasts that may harm what lives now. */
static bool may_fail_now(const struct sim *sim)
{
	return sim->now_ns < sim->excuse_until_ns || a_worker_leaves(sim);
}

/* Another run begins of what had a run already. */
static void renew(struct sim *sim, struct sim_app *old, uint64_t run)
{
	struct sim_app *app = &sim->apps[sim->app_count];
	const struct sim_app *planned = &sim->planned[old->planned];

	check_twice(sim, old);
	forget_app(sim, old);
	if (sim->app_count == SIM_APPS_MAX) {
		sim_fail(sim, "bounded", "too many runs");
		return;
	}
	*app = *planned;
	for (uint32_t i = 0; i < app->op_count; i++)
		app->ops[i].app = sim->app_count;
	for (uint32_t i = 0; i < app->flow_count; i++)
		app->flows[i].app = sim->app_count;
	app->fate = SIM_FATE_NONE;
	app->planned = old->planned;
	app->given = true;
	app->incarnation = sim->driver.incarnation;
	app->given_ns = app->busy_ns = app->state_since_ns = sim->now_ns;
	app->kept_run = run;
	app->start_timeout_ns = 0;
	app->stop_requested = sim->stops > 0; /* the user has stopped what the driver has */
	/* ... and then its workers, which may find this run before it runs */
	app->excused = app->disturbed = app->early_excuse =
		may_fail_now(sim) || app->stop_requested;
	sim->end_ns = sim->now_ns + SIM_LASTS_NS;
	sim->app_count++;
	sim->apps_given++;
	sim_print(sim, "driver", "%s begins anew as run %llu", app->name, (unsigned long long)run);
}

/* Its end was not on the disk: the next driver comes to the same end. */
static void revive(struct sim *sim, struct sim_app *app)
{
	if (!app->ended)
		return;
	sim_print(sim, "driver", "%s has not ended, as far as is known", app->name);
	app->ended = app->ran = app->cut = false;
	sim->end_ns = sim->now_ns + SIM_LASTS_NS;                    /* all seemed to be over */
	app->start_timeout_ns = 0;                                   /* it has started */
	app->stop_requested = app->stop_requested || sim->stops > 0; /* before it was taken */
	/* What has begun since its end was no fault of it then, nor was a start that was late. */
	app->excused = app->disturbed = app->excused || may_fail_now(sim) || app->exit_code == 4;
	app->state_since_ns = app->busy_ns = sim->now_ns;
	app->incarnation = sim->driver.incarnation;
}

static void take_run(struct sim *sim, const struct drv_record *record)
{
	struct sim_app *app = app_of_run(sim, record->name, record->run);

	for (uint32_t i = 0; i < sim->apps_given; i++)
		if (sim->apps[i].kept_run != 0 && sim->apps[i].kept_run < record->run &&
		    strcmp(sim->apps[i].name, record->name) == 0)
			forget_app(sim, &sim->apps[i]);
	if (app != NULL) {
		revive(sim, app);
		return;
	}
	app = app_named(sim, record->name);
	if (app == NULL)
		sim_fail(sim, "results", "run %llu of %s was not given",
			 (unsigned long long)record->run, record->name);
	else if (app->kept_run == 0 && !app->ended)
		app->kept_run = record->run;
	else
		renew(sim, app, record->run);
}

void sim_adopt_persist(struct sim *sim, const struct drv_action *action)
{
	const struct drv_record *record = &action->record;
	struct sim_record *item;

	if (disk.count == disk.capacity) {
		disk.capacity = disk.capacity == 0 ? 64 : disk.capacity * 2;
		disk.items = realloc(disk.items, disk.capacity * sizeof(*disk.items));
		if (disk.items == NULL)
			abort();
	}
	if (record->kind == DRV_RECORD_RUN)
		take_run(sim, record);
	item = &disk.items[disk.count++];
	*item = (struct sim_record){*record, action->change};
	item->record.name = copy_text(record->name);
	item->record.who = copy_text(record->who);
	item->record.text = copy_text(record->text);
	item->record.source = copy_of(record->source, record->source_bytes);
	item->record.outcome = copy_of(record->outcome, record->outcome_bytes);
}

void sim_adopt_written(struct sim *sim, uint64_t change, bool failed)
{
	synced_before = sim->disk.synced;
	if (failed)
		drop(keeps_no_attempts, change);
	else
		sim->disk.synced = change;
}

void sim_adopt_died(struct sim *sim, bool crashed)
{
	if (!crashed)
		sim->disk.synced = sim->disk.wanted;
	/* What was being written may have come to the disk. */
	else if (sim->disk.writing != 0 && sim_chance(sim, 2))
		sim->disk.synced = sim->disk.writing;
	/* That a second worker has come with the name of one that runs it may not be kept yet. */
	if (sim->same_names && disk.count > 0 &&
	    !keeps_written(&disk.items[disk.count - 1], sim->disk.synced))
		for (uint32_t i = 0; i < sim->apps_given; i++)
			sim->apps[i].excused = true;
	drop(keeps_written, sim->disk.synced);
	for (size_t i = 0; i < disk.count; i++)
		disk.items[i].change = 0;
	sim->disk.synced = 0;
	for (uint32_t i = 0; i < sim->apps_given; i++) {
		struct sim_app *app = &sim->apps[i];

		app->was_cut = app->was_cut || (app->cut && !app->ended);
		app->cut = false; /* why it is to end at once is known to nobody else */
		app->ran = !app->ended && (app->state == DRV_APP_RUNNING ||
					   (app->ran && app->state <= DRV_APP_STARTING));
		/* The next driver has not heard the stop because of which it leaves. */
		app->excused = app->excused || a_worker_leaves(sim);
	}
	if (!crashed || !sim_chance(sim, 4))
		return;
	sim_print(sim, "disk", "is lost");
	sim->disk.was_lost = true;
	drop(keeps_none, 0);
	sim->disk.lost_with = sim->driver.incarnation;
	sim->disk.epoch = sim->disk.heard = 0;
}

void sim_adopt_away(struct sim *sim)
{
	int64_t away_ns = sim_between(sim, SIM_MS, sim_chance(sim, 2) ? 50 * SIM_MS : 4 * SIM_S);
	int64_t back_ns =
		sim->now_ns + (sim_chance(sim, 3) ? sim_lease_lasts(sim, away_ns) : away_ns);

	if (!sim->driver.process.alive)
		return;
	sim_disturb(sim, back_ns + 3 * SIM_S);
	/* As at a planned restart. */
	if (sim->is.leases && sim_chance(sim, 2) && !sim_is_stopped(sim, &sim->driver.process)) {
		sim_promise_leaves(sim);
		sim_driver_step(sim, &(struct drv_event){.kind = DRV_EVENT_LEAVE});
		if (sim_chance(sim, 2))
			sim_put(sim, sim->now_ns + sim_between(sim, 0, 3 * SIM_S), SIM_EV_FAULT,
				sim->lease_fault, 0, 0);
	}
	sim_driver_die(sim, true);
	sim->driver_returns = true;
	sim_put(sim, back_ns, SIM_EV_RESTART, SIM_WORKERS_MAX, 0, 0);
}

void sim_adopt_begin_again(struct sim *sim)
{
	sim_print(sim, "driver", "did not run for so long that a worker has left it");
	sim_disturb(sim, sim->now_ns + 3 * SIM_S);
	sim_driver_die(sim, false);
	sim->driver_returns = true;
	sim_put(sim, sim->now_ns + sim_between(sim, SIM_MS, 20 * SIM_MS), SIM_EV_RESTART,
		SIM_WORKERS_MAX, 0, 0);
}

void sim_adopt_pause(struct sim *sim, const struct sim_event *event)
{
	struct sim_process *driver = &sim->driver.process;
	uint32_t left = event->b != 0 ? event->b : (uint32_t)sim_between(sim, 2, 8);
	int64_t for_ns = sim_chance(sim, 8) ? sim_between(sim, 3 * SIM_S, 12 * SIM_S)
					    : sim_between(sim, SIM_S, 3 * SIM_S);

	if (!driver->alive || sim_is_stopped(sim, driver) || sim->stops > 0)
		return;
	sim_print(sim, "driver", "stands still for %.3f s", (double)for_ns * 1e-9);
	sim_disturb(sim, sim->now_ns + for_ns + 3 * SIM_S);
	driver->stopped_until_ns = sim->now_ns + for_ns;
	driver->slept_ns = for_ns;
	/* What waits is given a worker whose HELLO lay there, also when that has given up since. */
	for (uint32_t i = 0; i < sim->apps_given; i++)
		sim->apps[i].excused |= sim->apps[i].state <= DRV_APP_WAITING;
	if (left > 1)
		sim_put(sim, driver->stopped_until_ns + sim_between(sim, SIM_MS, 20 * SIM_MS),
			SIM_EV_FAULT, event->a, left - 1, 0);
}

static bool is_newest(size_t at)
{
	for (size_t i = 0; i < disk.count; i++)
		if (disk.items[i].record.kind == DRV_RECORD_RUN &&
		    disk.items[i].record.run > disk.items[at].record.run &&
		    strcmp(disk.items[i].record.name, disk.items[at].record.name) == 0)
			return false;
	return true;
}

/* A run that nobody knows of: it was not on the disk, so none of its hosts was made. */
static bool is_unknown(const struct sim *sim, const struct sim_app *app)
{
	for (size_t i = 0; i < disk.count; i++)
		if (disk.items[i].record.kind == DRV_RECORD_RUN &&
		    disk.items[i].record.run == app->kept_run)
			return false;
	for (uint32_t i = 0; i < sim->host_count; i++)
		if (sim->hosts[i].app == app)
			return false;
	return true;
}

/* As driverd/database.c reads it: one row a run. */
static void restore_run(struct sim *sim, size_t at)
{
	struct drv_record row = disk.items[at].record;
	struct sim_app *app;

	for (size_t i = at + 1; i < disk.count; i++) {
		const struct drv_record *later = &disk.items[i].record;

		if (later->run != row.run)
			continue;
		switch (later->kind) {
		case DRV_RECORD_RUN: /* in its place */
		case DRV_RECORD_FORGOTTEN:
			return;
		case DRV_RECORD_SOURCE:
			row.source = later->source;
			row.source_bytes = later->source_bytes;
			break;
		case DRV_RECORD_WANTED:
			row.is_wanted = later->is_wanted;
			break;
		case DRV_RECORD_END:
			row.is_wanted = later->is_wanted;
			row.ended_unix_ns = later->ended_unix_ns;
			row.outcome = later->outcome;
			row.outcome_bytes = later->outcome_bytes;
			break;
		case DRV_RECORD_SOURCELESS:
			row.source_bytes = 0;
			break;
		default:
			break;
		}
	}
	app = app_of_run(sim, row.name, row.run);
	if (app != NULL && row.outcome_bytes == 0 && is_newest(at))
		revive(sim, app);
	if (drv_core_restore(sim->driver.core, &row) < 0)
		sim_fail(sim, "state", "run %llu cannot be read", (unsigned long long)row.run);
}

/* As driverd/database.c keeps it: one row a run, which the end of the run takes away. */
static bool is_placed_anew(size_t at)
{
	for (size_t i = at + 1; i < disk.count; i++)
		if (disk.items[i].record.run == disk.items[at].record.run &&
		    (disk.items[i].record.kind == DRV_RECORD_PLACED ||
		     disk.items[i].record.kind == DRV_RECORD_END ||
		     disk.items[i].record.kind == DRV_RECORD_FORGOTTEN))
			return true;
	return false;
}

void sim_adopt_restore(struct sim *sim)
{
	for (size_t i = 0; i < disk.count; i++) {
		enum drv_record_kind kind = disk.items[i].record.kind;

		if (kind == DRV_RECORD_NUMBERS || (kind == DRV_RECORD_PLACED && !is_placed_anew(i)))
			(void)drv_core_restore(sim->driver.core, &disk.items[i].record);
	}
	for (uint32_t i = 0; sim->driver.incarnation > 1 && i < sim->apps_given; i++)
		if (!sim->apps[i].ended && is_unknown(sim, &sim->apps[i])) {
			sim->apps[i].ended = true;
			sim->apps[i].ended_ns = sim->now_ns;
			sim->waiting++;
		}
	for (size_t i = 0; i < disk.count; i++)
		if (disk.items[i].record.kind == DRV_RECORD_RUN)
			restore_run(sim, i);
	for (uint32_t i = 0; i < sim->apps_given; i++) {
		if (sim->apps[i].ended)
			continue;
		sim->apps[i].incarnation = sim->driver.incarnation;
		/* A start that was late is why it ends, which the next driver only hears. */
		sim->apps[i].excused |= sim->apps[i].start_timeout_ns != 0 &&
					sim->apps[i].furthest <= DRV_APP_STARTING &&
					sim->apps[i].state >= DRV_APP_FAILING;
		sim->apps[i].start_timeout_ns = 0;
	}
	while (sim->driver.incarnation == 1 && sim->apps_given < sim->app_count)
		sim_driver_app(sim);
}

void sim_adopt_reported(struct sim *sim, uint32_t worker, const struct fw_message *message)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *host = &sim->hosts[i];

		if (host->worker != worker || host->generation != sim->workers[worker].generation ||
		    host->run != message->run || host->number != message->host ||
		    host->epoch != message->epoch)
			continue;
		host->connection = sim->workers[worker].connection;
		host->incarnation = sim->connections[host->connection].incarnation;
		host->reported_ns = sim->now_ns;
	}
}

/* Runs that the driver does not know, or has given up. */
static void forget_unknown(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->apps_given; i++) {
		struct sim_app *app = &sim->apps[i];

		if (app->ended ||
		    drv_core_named_state(sim->driver.core, app->name) != DRV_APP_ENDED)
			continue;
		if (!sim->disk.was_lost && !app->stop_requested && !app->excused)
			sim_fail(sim, "adoption",
				 "%s is wanted, and neither adopted nor begun anew", app->name);
		forget_app(sim, app);
	}
}

void sim_adopt_look(struct sim *sim)
{
	if (sim->is.adopts && sim->driver.process.alive && !sim_adopt_is_open(sim))
		forget_unknown(sim);
}

void sim_adopt_end(struct sim *sim)
{
	if (sim->is.adopts && sim->driver.process.alive)
		forget_unknown(sim);
}
