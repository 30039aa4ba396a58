// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Clients that look at where the time goes, in every second history of a kind: they come and go,
 * change what they look at, and fall silent. What must hold: each window comes in time, and the
 * seven uses of an operator add up to it; the sums of an operator never become less, and never
 * exceed the time since somebody looked first; the driver asks hosts to count only while a client
 * looks; and a host counts no longer than it was asked to.
 */
#define FIRST_CONNECTION (UINT64_C(1) << 41)
#define LATE_NS (500 * SIM_MS) /* steps of a busy driver, and timers that are rounded */

static bool is_there(const struct sim *sim, const struct sim_looker *looker)
{
	return looker->is_there && looker->incarnation == sim->driver.incarnation &&
	       sim->driver.process.alive;
}

static struct sim_looker *looker_of(struct sim *sim, uint64_t connection)
{
	for (uint32_t i = 0; i < SIM_LOOKERS; i++)
		if (connection == FIRST_CONNECTION + sim->lookers[i].number)
			return &sim->lookers[i];
	return NULL;
}

size_t sim_look_sessions(const struct sim *sim)
{
	size_t count = 0;

	for (uint32_t i = 0; i < SIM_LOOKERS; i++)
		count += is_there(sim, &sim->lookers[i]);
	return count;
}

bool sim_look_has(uint64_t connection)
{
	return connection >= FIRST_CONNECTION;
}

static void say(struct sim *sim, struct sim_looker *looker, struct fw_message *message)
{
	struct drv_event event = {.kind = DRV_EVENT_MESSAGE,
				  .connection = FIRST_CONNECTION + looker->number,
				  .peer = "a looker",
				  .is_local = true,
				  .user = "bob"};
	struct frag_err err = FRAG_ERR_INIT;
	uint8_t *frame;
	size_t size;

	message->seq = ++looker->seq;
	if (fw_encode(message, &frame, &size) < 0 ||
	    fw_decode(frame + 4, size - 4, &event.message, &err) < 0) {
		sim_fail(sim, "memory", "cannot encode %s", fw_kind_name(message->kind));
		return;
	}
	free(frame);
	sim_driver_step(sim, &event);
}

static void ask(struct sim *sim, struct sim_looker *looker)
{
	struct fw_message message = {.kind = FW_LOOK};
	const char *name = "";

	looker->every_ns = sim_between(sim, FW_LOOK_MIN_NS, 5 * SIM_S);
	if (sim->apps_given > 0 && sim_chance(sim, 2))
		name = sim->apps[sim_between(sim, 0, (int64_t)sim->apps_given - 1)].name;
	looker->asked = looker->seq + 1;
	looker->is_refused = false;
	looker->heard_ns = sim->now_ns;
	sim_print(sim, "looker", "%llu looks at \"%s\" every %.3f s",
		  (unsigned long long)looker->number, name, (double)looker->every_ns * 1e-9);
	message.look = (struct fw_look){
		.name = name, .every_ns = looker->every_ns, .changes = looker->number % 2 == 0};
	say(sim, looker, &message);
}

static void come(struct sim *sim, struct sim_looker *looker)
{
	struct fw_message hello = {.kind = FW_HELLO};

	*looker = (struct sim_looker){.is_there = true,
				      .incarnation = sim->driver.incarnation,
				      .number = ++sim->looker_count};
	hello.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					.minor = FW_PROTOCOL_MINOR,
					.role = FW_ROLE_CLIENT,
					.version = "0"};
	say(sim, looker, &hello);
	if (is_there(sim, looker))
		ask(sim, looker);
}

static void look_for_late(struct sim *sim, const struct sim_looker *looker)
{
	const struct sim_process *driver = &sim->driver.process;
	int64_t since_ns = looker->silent_ns != 0 ? looker->silent_ns : looker->heard_ns,
		late_ns =
			looker->silent_ns != 0 ? sim->dead_ns + 2 * sim->beat_ns : looker->every_ns;

	if (sim->now_ns - sim_able_since(driver, since_ns) > late_ns + LATE_NS)
		sim_fail(sim, "looks", "looker %llu %s", (unsigned long long)looker->number,
			 looker->silent_ns != 0 ? "is silent, and the driver has it still"
						: "gets no window");
}

void sim_look_start(struct sim *sim)
{
	for (uint32_t i = 0; i < SIM_LOOKERS && sim->variant % 2 == 1; i++)
		sim_put(sim, sim->now_ns + sim_between(sim, 0, SIM_S), SIM_EV_LOOKER, i, 0, 0);
}

void sim_on_looker(struct sim *sim, const struct sim_event *event)
{
	struct sim_looker *looker = &sim->lookers[event->a];

	sim_put(sim, sim->now_ns + sim->beat_ns / 2, SIM_EV_LOOKER, event->a, 0, 0);
	if (!sim->driver.process.alive || sim_is_stopped(sim, &sim->driver.process))
		return;
	if (!is_there(sim, looker)) {
		if (sim_chance(sim, 10))
			come(sim, looker);
		return;
	}
	if (!looker->is_refused)
		look_for_late(sim, looker);
	if (looker->silent_ns != 0)
		return;
	if (looker->is_refused) {
		ask(sim, looker);
	} else if (sim_chance(sim, 60)) {
		sim_print(sim, "looker", "%llu leaves", (unsigned long long)looker->number);
		looker->is_there = false;
		sim_driver_step(sim,
				&(struct drv_event){.kind = DRV_EVENT_CLOSED,
						    .connection = FIRST_CONNECTION + looker->number,
						    .text = "it has left"});
	} else if (sim_chance(sim, 80)) {
		sim_print(sim, "looker", "%llu is lost", (unsigned long long)looker->number);
		looker->silent_ns = sim->now_ns;
	} else if (sim_chance(sim, 40)) {
		ask(sim, looker);
	} else {
		say(sim, looker, &(struct fw_message){.kind = FW_BEAT});
	}
}

/* The run that the driver has: one that lost its disk may adopt a run before the last. */
static struct sim_app *app_named(struct sim *sim, const char *name)
{
	struct sim_app *found = NULL;

	for (uint32_t i = 0; i < sim->apps_given; i++)
		if (strcmp(sim->apps[i].name, name) == 0 &&
		    (found == NULL || sim->apps[i].incarnation >= found->incarnation))
			found = &sim->apps[i];
	return found;
}

/* The uses of an operator, in its window and since somebody looked first. */
static void check_operator(struct sim *sim, struct sim_looker *looker, const struct sim_app *app,
			   const struct fragi_look *look, uint32_t i)
{
	const struct fragi_look_operator *op = &look->operators[i];
	uint64_t window_ns = 0, sum_ns = 0, *least = &looker->sums[app - sim->apps][i],
		 most = app->looked_ns != 0 ? (uint64_t)(sim->now_ns - app->looked_ns) : 0;

	for (int use = 0; use < FRAGI_USES; use++) {
		window_ns += op->use_ns[use];
		sum_ns += op->use_sums[use];
	}
	if (look->window_ns > 0 && window_ns != look->window_ns)
		sim_fail(sim, "looks", "%s of %s did %llu ns in a window of %llu ns", op->name,
			 app->name, (unsigned long long)window_ns,
			 (unsigned long long)look->window_ns);
	if (sum_ns < *least || sum_ns > most)
		sim_fail(sim, "looks",
			 "%s of %s did %llu ns since somebody looked: at least %llu, at most %llu",
			 op->name, app->name, (unsigned long long)sum_ns,
			 (unsigned long long)*least, (unsigned long long)most);
	*least = sum_ns;
}

static void take_window(struct sim *sim, struct sim_looker *looker,
			const struct fw_message *message)
{
	const struct fragi_look *look = &message->looked.look;
	struct sim_app *app = app_named(sim, look->application);

	if (message->reply_to != looker->asked)
		sim_fail(sim, "looks", "looker %llu gets a window that it has not asked for",
			 (unsigned long long)looker->number);
	looker->heard_ns = sim->now_ns;
	if (app == NULL || look->operator_count > 2 * SIM_FRAGMENTS_MAX)
		return;
	for (uint32_t i = 0; i < look->operator_count; i++)
		check_operator(sim, looker, app, look, i);
	for (uint32_t i = 0; i < look->flow_count; i++)
		if (look->flows[i].full_ns > look->window_ns)
			sim_fail(sim, "looks", "%s was full for longer than the window",
				 look->flows[i].from);
}

void sim_look_hear(struct sim *sim, const struct drv_action *action)
{
	struct sim_looker *looker = looker_of(sim, action->connection);
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message;

	if (looker == NULL || !looker->is_there) {
		sim_fail(sim, "dead session", "the driver acts on a looker that has left");
		return;
	}
	if (action->kind == DRV_DO_CLOSE) {
		sim_print(sim, "looker", "%llu is closed", (unsigned long long)looker->number);
		looker->is_there = false;
	}
	if (action->kind != DRV_DO_SEND)
		return;
	if (fw_decode(action->frame + 4, action->frame_bytes - 4, &message, &err) < 0) {
		sim_fail(sim, "codec", "a frame that was sent cannot be read: %s", err.text);
		return;
	}
	if (message->kind == FW_LOOKED)
		take_window(sim, looker, message);
	else if (message->kind == FW_ANSWER)
		looker->is_refused = true; /* that application has ended */
	fw_message_free(message);
}

/* A frame of the driver to a worker. */
void sim_look_sent(struct sim *sim, const uint8_t *frame, size_t size)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message;
	bool is_look, is_looked_at = false;

	if (sim->variant % 2 == 0 || fw_decode(frame + 4, size - 4, &message, &err) < 0)
		return;
	is_look = message->kind == FW_HOST_LOOK;
	fw_message_free(message);
	for (uint32_t i = 0; i < SIM_LOOKERS; i++)
		is_looked_at = is_looked_at || is_there(sim, &sim->lookers[i]);
	if (is_look && !is_looked_at)
		sim_fail(sim, "looks", "the driver asks a host to count, and nobody looks");
}

/* A frame of the driver has come to a worker. */
void sim_look_heard(struct sim *sim, uint32_t worker, const struct fw_message *message)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *host = &sim->hosts[i];
		int64_t until_ns = sim->now_ns + message->host_look.for_ns;

		if (host->worker == worker && host->run == message->run &&
		    host->number == message->host && until_ns > host->look_until_ns)
			host->look_until_ns = until_ns;
	}
}

/* Adds the time since the last count to what each operator does now. */
void sim_look_count(struct sim *sim, struct sim_host *host)
{
	uint64_t ns = (uint64_t)(sim->now_ns - host->looked_ns);

	if (host->looks == 0 || !host->process.alive || host->incoming || host->superseded)
		return;
	host->looked_ns = sim->now_ns;
	for (uint32_t i = 0; i < 2 * host->fragment_count; i++) {
		struct sim_op *op = &host->app->ops[2 * host->fragments[i / 2] + i % 2];
		enum fragi_use use = FRAGI_USE_INPUT;

		if (!op->started || op->done)
			use = FRAGI_USE_SUSPENDED;
		else if (op->ticking)
			use = FRAGI_USE_BUSY;
		else if (op->source != SIM_SOURCE_NONE && !op->second)
			use = FRAGI_USE_TIME;
		op->use_ns[use] += ns;
	}
}

/* Its core has said at how many hosts somebody looks. */
void sim_look_host(struct sim *sim, struct sim_host *host, uint32_t looks)
{
	sim_look_count(sim, host);
	sim_print(sim, sim_host_name(host), "counts for %u hosts", looks);
	host->looks = looks;
	host->looked_ns = sim->now_ns;
	if (looks != 0 && host->app->looked_ns == 0)
		host->app->looked_ns = sim->now_ns;
}

/* At what only time shows; each 100 ms. */
void sim_look_look(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *host = &sim->hosts[i];
		const struct sim_worker *worker = &sim->workers[host->worker];
		int64_t since_ns;

		if (sim_is_stopped(sim, &worker->process))
			host->look_until_ns += 100 * SIM_MS; /* its clock stands still */
		since_ns = sim_able_since(&worker->process, host->look_until_ns);
		if (host->looks != 0 && sim_host_runs(host) && worker->process.alive &&
		    worker->generation == host->generation &&
		    sim->now_ns - sim_able_since(&host->process, since_ns) >
			    2 * sim->beat_ns + LATE_NS)
			sim_fail(sim, "looks", "pid %d counts, %.3f s after it was to end",
				 host->pid, (double)(sim->now_ns - host->look_until_ns) * 1e-9);
	}
}
