// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/*
 * Requirements of fragments and invented inventories. They are drawn from a stream of their own, so
 * that histories without them stay what they were.
 */
static int64_t draw(struct sim *sim, int64_t low, int64_t high)
{
	uint64_t x = sim->place_random += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return low + (int64_t)(x % (uint64_t)(high - low + 1));
}

void sim_place_worker(struct sim *sim, struct sim_worker *worker)
{
	static const char *const zones[] = {"zone=z0", "zone=z1"};

	if (!sim->is.places)
		return;
	worker->config.has[FRAGI_AMOUNT_CPU] = draw(sim, 1, 6) * FRAGI_AMOUNT_ONE;
	worker->config.has[FRAGI_AMOUNT_GPU] = draw(sim, 0, 2) * FRAGI_AMOUNT_ONE;
	worker->labels[0] = zones[draw(sim, 0, 1)];
	worker->config.labels = worker->labels;
	worker->config.label_count = draw(sim, 0, 3) != 0;
}

void sim_place_app(struct sim *sim, struct sim_app *app)
{
	for (uint32_t f = 0; f < SIM_FRAGMENTS_MAX; f++)
		app->required[f] = (struct sim_required){.zone = -1, .near = -1, .apart = -1};
	for (uint32_t f = 0; sim->is.places && f < app->fragment_count; f++) {
		struct sim_required *own = &app->required[f];

		if (draw(sim, 0, 3) != 0)
			own->cpu = draw(sim, 0, draw(sim, 0, 9) == 0 ? 9 : 2);
		own->gpu = draw(sim, 0, 3) == 0;
		if (draw(sim, 0, 5) == 0)
			own->zone = (int)draw(sim, 0, 1);
		if (f > 0 && draw(sim, 0, 5) == 0)
			own->near = (int)draw(sim, 0, (int64_t)f - 1);
		else if (f > 0 && draw(sim, 0, 5) == 0)
			own->apart = (int)draw(sim, 0, (int64_t)f - 1);
	}
	/* What is to be near is not apart over others: none of the two in one application. */
	for (uint32_t f = 0; f < app->fragment_count; f++)
		if (draw(sim, 0, 1) == 0 && app->required[f].near >= 0)
			for (uint32_t i = 0; i < app->fragment_count; i++)
				app->required[i].apart = -1;
	for (uint32_t f = 0, has_apart = 0; f < app->fragment_count; f++) {
		has_apart = has_apart || app->required[f].apart >= 0;
		for (uint32_t i = 0; has_apart && i < app->fragment_count; i++)
			app->required[i].near = -1;
	}
}

void sim_place_text(const struct sim_app *app, uint32_t fragment, char *out, size_t size)
{
	const struct sim_required *own = &app->required[fragment];
	size_t used;

	out[0] = '\0';
	if (own->cpu == 0 && own->gpu == 0 && own->zone < 0 && own->near < 0 && own->apart < 0)
		return;
	used = (size_t)snprintf(out, size, "    requirements: {gpu: %lld", (long long)own->gpu);
	if (own->cpu != 0)
		used += (size_t)snprintf(out + used, size - used, ", cpu: %lld",
					 (long long)own->cpu);
	if (own->zone >= 0)
		used += (size_t)snprintf(out + used, size - used, ", labels: {zone: z%d}",
					 own->zone);
	if (own->near >= 0)
		used += (size_t)snprintf(out + used, size - used, ", near: f%d", own->near);
	if (own->apart >= 0)
		used += (size_t)snprintf(out + used, size - used, ", apart: [f%d]", own->apart);
	snprintf(out + used, size - used, "}\n");
}

static bool has_zone(const struct sim_worker *worker, int zone)
{
	char label[16];

	snprintf(label, sizeof(label), "zone=z%d", zone);
	return zone < 0 ||
	       (worker->config.label_count != 0 && strcmp(worker->labels[0], label) == 0);
}

/* Whether the driver counts on that host: it lives, and its application is not being ended. */
static bool counts(const struct sim *sim, const struct sim_host *host)
{
	const struct sim_app *app = host->app;

	if (sim_lease_is_of(host) && !sim->connections[host->connection].open[1])
		return false; /* its worker is lost: it goes elsewhere when its lease is over */
	return host->process.alive && !host->superseded && !app->ended &&
	       sim->driver.process.alive && app->incarnation == sim->driver.incarnation &&
	       drv_core_named_state(sim->driver.core, app->name) < DRV_APP_KILLING;
}

static void check_fragment(struct sim *sim, const struct sim_host *host, uint32_t f)
{
	const struct sim_worker *worker = &sim->workers[host->worker];

	if (!has_zone(worker, host->app->required[f].zone))
		sim_fail(sim, "requirements", "f%u of %s runs on %s, which lacks its label", f,
			 host->app->name, worker->name);
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *other = &sim->hosts[i];

		for (uint32_t k = 0; other->app == host->app && k < other->fragment_count; k++) {
			uint32_t g = other->fragments[k];
			bool near = host->app->required[f].near == (int)g ||
				    host->app->required[g].near == (int)f;
			bool apart = host->app->required[f].apart == (int)g ||
				     host->app->required[g].apart == (int)f;

			if (counts(sim, other) && (other->worker == host->worker ? apart : near))
				sim_fail(sim, "requirements", "f%u and f%u of %s: %s", f, g,
					 host->app->name,
					 apart ? "one worker runs both" : "two workers run them");
		}
	}
}

static bool is_drained(const struct sim *sim, const struct sim_worker *worker)
{
	return drv_core_is_drained(sim->driver.core, worker->name);
}

static void say(struct sim *sim, uint32_t connection, struct fw_message *message)
{
	struct drv_event event = {
		.kind = DRV_EVENT_MESSAGE, .connection = connection + 1, .peer = "10.0.0.8:4711"};
	struct frag_err err = FRAG_ERR_INIT;
	uint8_t *frame;
	size_t size;

	if (fw_encode(message, &frame, &size) < 0 ||
	    fw_decode(frame + 4, size - 4, &event.message, &err) < 0) {
		sim_fail(sim, "codec", "cannot say %s", fw_kind_name(message->kind));
		return;
	}
	free(frame);
	sim_driver_step(sim, &event);
}

/* Who drains a worker mostly wants it back. */
static struct sim_worker *some_worker(struct sim *sim, uint32_t index)
{
	for (uint32_t w = 0; w < sim->worker_count; w++)
		if (is_drained(sim, &sim->workers[w]) && draw(sim, 0, 2) != 0)
			return &sim->workers[w];
	for (uint32_t i = 0; sim->is.moves && i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[(i + index * 7) % sim->host_count];

		if (host->process.alive && !host->superseded)
			return &sim->workers[host->worker];
	}
	return &sim->workers[index];
}

void sim_place_user(struct sim *sim, struct fw_message *message)
{
	struct fw_message hello = {.kind = FW_HELLO};
	uint32_t number = sim->connection_count;
	struct sim_connection *connection = sim_connection_new(sim, SIM_WORKERS_MAX);

	connection->incarnation = sim->driver.incarnation;
	connection->open[1] = connection->connected = true;
	connection->heard_ns[0] = connection->heard_ns[1] = sim->now_ns;
	hello.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR, .role = FW_ROLE_CLIENT};
	say(sim, number, &hello);
	say(sim, number, message);
}

void sim_place_drain(struct sim *sim, uint32_t index)
{
	struct sim_worker *worker;
	struct fw_message message = {.kind = FW_DRAIN};

	if (!sim->driver.process.alive || sim->same_names || sim->stops != 0 ||
	    sim_is_stopped(sim, &sim->driver.process))
		return;
	worker = some_worker(sim, index);
	message.drain = (struct fw_drain){worker->name, is_drained(sim, worker)};
	sim_place_user(sim, &message);
	sim_print(sim, "user", "%s %s", message.drain.undo ? "ends the drain of" : "drains",
		  worker->name);
}

void sim_place_check(struct sim *sim)
{
	uint32_t placed = 0;

	for (uint32_t i = 0; i < sim->apps_given; i++)
		if (sim->apps[i].incarnation == sim->driver.incarnation &&
		    drv_core_named_state(sim->driver.core, sim->apps[i].name) > DRV_APP_WAITING)
			placed |= 1u << i;
	for (uint32_t w = 0; w < sim->worker_count; w++) {
		struct sim_worker *worker = &sim->workers[w];
		bool drained = is_drained(sim, worker);

		/* One step may place an application and then begin the drain. */
		if (!drained || !worker->was_drained)
			worker->drained_apps = placed;
		worker->was_drained = drained;
	}
}

static bool offers(const struct sim_worker *worker, int64_t cpu, int64_t gpu)
{
	return cpu * FRAGI_AMOUNT_ONE <= worker->config.has[FRAGI_AMOUNT_CPU] &&
	       gpu * FRAGI_AMOUNT_ONE <= worker->config.has[FRAGI_AMOUNT_GPU];
}

void sim_place_spawned(struct sim *sim, const struct sim_host *host)
{
	const struct sim_worker *worker = &sim->workers[host->worker];
	int64_t cpu = 0, gpu = 0;

	if (!sim->is.places || !counts(sim, host))
		return;
	if (!sim->same_names && !worker->identity_unknown && is_drained(sim, worker) &&
	    (worker->drained_apps >> (host->app - sim->apps) & 1) == 0)
		sim_fail(sim, "drained", "%s is given a host of %s after it was drained",
			 worker->name, host->app->name);
	for (uint32_t i = 0; i < host->fragment_count; i++)
		check_fragment(sim, host, host->fragments[i]);
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *other = &sim->hosts[i];

		for (uint32_t k = 0; other->worker == host->worker && counts(sim, other) &&
				     k < other->fragment_count;
		     k++) {
			cpu += other->app->required[other->fragments[k]].cpu;
			gpu += other->app->required[other->fragments[k]].gpu;
		}
	}
	if (!offers(worker, cpu, gpu))
		sim_fail(sim, "over-committed",
			 "the fragments of %s require %lld cores and %lld GPUs, which it has not",
			 worker->name, (long long)cpu, (long long)gpu);
}

/* Where another application of this driver may hold something. */
static bool others_hold(const struct sim *sim, const struct sim_app *app)
{
	for (uint32_t i = 0; i < sim->apps_given; i++) {
		const struct sim_app *other = &sim->apps[i];

		if (other != app && !other->ended && other->incarnation == app->incarnation &&
		    drv_core_named_state(sim->driver.core, other->name) > DRV_APP_WAITING)
			return true;
	}
	return false;
}

static bool names(const struct sim_worker *worker, uint32_t fragment)
{
	char name[16];

	snprintf(name, sizeof(name), "f%u", fragment);
	for (uint32_t i = 0; i < worker->config.fragment_count; i++)
		if (strcmp(worker->fragments[i], name) == 0)
			return true;
	return false;
}

/* Whichever workers are there, this one is given the fragment if it fits. */
static bool takes(const struct sim *sim, const struct sim_worker *worker, uint32_t fragment)
{
	bool is_named = false;

	for (uint32_t w = 0; w < sim->worker_count; w++)
		is_named = is_named || names(&sim->workers[w], fragment);
	return is_named ? names(worker, fragment) : worker->config.fragment_count == 0;
}

bool sim_place_is_certain(const struct sim *sim, const struct sim_app *app)
{
	int64_t cpu = 0, gpu = 0;

	if (!sim->is.places && !sim->is.moves)
		return true;
	for (uint32_t f = 0; f < app->fragment_count; f++) {
		if (app->required[f].apart >= 0)
			return false;
		cpu += app->required[f].cpu;
		gpu += app->required[f].gpu;
	}
	if (others_hold(sim, app))
		return false;
	for (uint32_t w = 0; w < sim->worker_count; w++) {
		const struct sim_worker *worker = &sim->workers[w];
		bool fits = offers(worker, cpu, gpu) && worker->process.alive &&
			    !is_drained(sim, worker) &&
			    wrk_core_session(worker->core) == WRK_SESSION_ATTACHED;

		for (uint32_t f = 0; f < app->fragment_count; f++)
			fits = fits && has_zone(worker, app->required[f].zone) &&
			       takes(sim, worker, f);
		if (fits)
			return true;
	}
	return false;
}
