// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <text/spec.h>

/*
 * A client of the driver, in some histories: it sets parameters of applications that run, one
 * after the other, each to a higher value, and brings changed graphs (apply.c). What must hold:
 * each is answered, once and in time; what is answered as changed was taken by a host; and a host
 * that is started later begins with no older value than that, and with none that no host has taken.
 */
#define FIRST_CONNECTION (UINT64_C(1) << 40)

bool sim_client_is_there(const struct sim *sim)
{
	return sim->client.is_there && sim->client.incarnation == sim->driver.incarnation;
}

bool sim_client_has(const struct sim *sim, uint64_t connection)
{
	return connection == FIRST_CONNECTION + sim->client.greetings;
}

void sim_client_say(struct sim *sim, struct fw_message *message)
{
	struct drv_event event = {.kind = DRV_EVENT_MESSAGE,
				  .connection = FIRST_CONNECTION + sim->client.greetings,
				  .peer = "a client",
				  .is_local = true,
				  .user = "alice"};
	struct frag_err err = FRAG_ERR_INIT;
	uint8_t *frame;
	size_t size;

	message->seq = ++sim->client.seq;
	if (fw_encode(message, &frame, &size) < 0 ||
	    fw_decode(frame + 4, size - 4, &event.message, &err) < 0) {
		sim_fail(sim, "memory", "cannot encode %s", fw_kind_name(message->kind));
		return;
	}
	free(frame);
	sim_driver_step(sim, &event);
}

static bool is_waiting(const struct sim *sim)
{
	for (size_t i = 0; i < SIM_ASKED_MAX; i++)
		if (sim->client.asked[i].seq != 0)
			return true;
	return false;
}

static void greet(struct sim *sim)
{
	struct fw_message hello = {.kind = FW_HELLO};

	sim->client.is_unsure =
		sim->client.is_unsure || is_waiting(sim) || sim_apply_is_under_way(sim);
	memset(sim->client.asked, 0, sizeof(sim->client.asked));
	sim->client.applying = (struct sim_applying){0};
	sim_swap_forget(sim);
	sim->client.incarnation = sim->driver.incarnation;
	sim->client.is_there = true;
	sim->client.held_count = 0;
	sim->client.greetings++;
	hello.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					.minor = FW_PROTOCOL_MINOR,
					.role = FW_ROLE_CLIENT,
					.version = "0"};
	sim_client_say(sim, &hello);
}

/* Of an application that the driver has, whatever it does at the moment. */
static void set_one(struct sim *sim)
{
	struct fw_message message = {.kind = FW_SET};
	struct sim_asked *asked = NULL;
	struct sim_app *app;
	char text[64];

	if (sim->apps_given == 0)
		return;
	app = &sim->apps[sim_between(sim, 0, (int64_t)sim->apps_given - 1)];
	if (app->incarnation != sim->driver.incarnation)
		return;
	for (size_t i = 0; i < SIM_ASKED_MAX && asked == NULL; i++)
		if (sim->client.asked[i].seq == 0)
			asked = &sim->client.asked[i];
	if (asked == NULL)
		return;
	*asked = (struct sim_asked){
		.seq = sim->client.seq + 1,
		.app = (uint32_t)(app - sim->apps),
		.fragment = (uint32_t)sim_between(sim, 0, (int64_t)app->fragment_count - 1),
		.value = ++sim->client.value,
		.at_ns = sim->now_ns,
	};
	snprintf(text, sizeof(text), "f%u.a.p=%u", asked->fragment, asked->value);
	sim_print(sim, "client", "sets %s of %s", text, app->name);
	message.set = (struct fw_set){app->name, text};
	sim_client_say(sim, &message);
}

/* Each is answered within the time of death, as the driver counts it. */
static void look_for_late(struct sim *sim)
{
	for (size_t i = 0; i < SIM_ASKED_MAX; i++) {
		const struct sim_asked *asked = &sim->client.asked[i];

		if (asked->seq != 0 &&
		    sim->now_ns - sim_able_since(&sim->driver.process, asked->at_ns) >
			    sim->dead_ns + SIM_CLIENT_LATE_NS)
			sim_fail(sim, "answers", "the client has no answer for f%u.a.p=%u of %s",
				 asked->fragment, asked->value, sim->apps[asked->app].name);
	}
}

void sim_client_start(struct sim *sim)
{
	if (sim->is.has_client)
		sim_put(sim, sim->now_ns + sim_between(sim, 0, SIM_S), SIM_EV_CLIENT, 0, 0, 0);
}

void sim_on_client(struct sim *sim)
{
	const struct sim_driver *driver = &sim->driver;

	sim_put(sim, sim->now_ns + sim->beat_ns / 2, SIM_EV_CLIENT, 0, 0, 0);
	if (!driver->process.alive || sim_is_stopped(sim, &driver->process))
		return;
	if (!sim_client_is_there(sim))
		greet(sim);
	if (sim->client.is_there && driver->process.alive)
		sim_client_say(sim, &(struct fw_message){.kind = FW_BEAT});
	look_for_late(sim);
	sim_swap_look_for_late(sim);
	if (!sim->client.is_there || !driver->process.alive || sim_apply_is_under_way(sim))
		return;
	if (sim_chance(sim, 3))
		set_one(sim);
	else if (sim->is.swaps && !sim_swap_is_under_way(sim))
		sim_swap_turn(sim);
	else if (!sim->is.swaps && !is_waiting(sim))
		sim_apply_turn(sim);
}

static void take_answer(struct sim *sim, const struct fw_message *message)
{
	for (size_t i = 0; i < SIM_ASKED_MAX; i++) {
		struct sim_asked *asked = &sim->client.asked[i];
		struct sim_app *app = &sim->apps[asked->app];

		if (asked->seq == 0 || asked->seq != message->reply_to)
			continue;
		sim_print(sim, "client", "hears of f%u.a.p=%u of %s: %s", asked->fragment,
			  asked->value, app->name, message->answer.failure.sentence);
		asked->seq = 0;
		if (message->answer.failure.code != FRAGI_FAILURE_NONE)
			return;
		if (app->taken[asked->fragment] < asked->value)
			sim_fail(sim, "answers", "no host of %s has taken f%u.a.p=%u", app->name,
				 asked->fragment, asked->value);
		if (app->set[asked->fragment] < asked->value)
			app->set[asked->fragment] = asked->value;
		return;
	}
	sim_fail(sim, "answers", "the client was answered what it has not asked, or twice");
}

static void take(struct sim *sim, const struct fw_message *message)
{
	if (!sim_apply_hear(sim, message) && !sim_swap_hear(sim, message) &&
	    message->kind == FW_ANSWER)
		take_answer(sim, message);
}

void sim_client_learn(struct sim *sim)
{
	struct sim_client *client = &sim->client;
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message;
	const uint8_t *frame;
	uint64_t connection;
	size_t bytes;

	if (client->learnt_of != sim->driver.incarnation)
		client->learnt = client->held_count = 0;
	client->learnt_of = sim->driver.incarnation;
	while ((frame = drv_core_held_answer(sim->driver.core, &client->learnt, &connection,
					     &bytes)) != NULL) {
		if (!sim_client_has(sim, connection))
			continue;
		if (client->held_count == SIM_HELD_MAX ||
		    fw_decode(frame + 4, bytes - 4, &message, &err) < 0) {
			sim_fail(sim, "answers", "too many answers are held, or one is damaged");
			return;
		}
		client->held[client->held_count++] = message->reply_to;
		take(sim, message);
		fw_message_free(message);
	}
}

/* Whether it was learnt before. */
static bool is_known(struct sim *sim, const struct fw_message *message)
{
	struct sim_client *client = &sim->client;

	for (uint32_t i = 0; i < client->held_count; i++)
		if (client->held[i] == message->reply_to) {
			client->held[i] = client->held[--client->held_count];
			return true;
		}
	return false;
}

void sim_client_hear(struct sim *sim, const struct drv_action *action)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message;

	if (action->kind == DRV_DO_CLOSE) {
		sim_print(sim, "client", "is closed");
		sim->client.is_there = false;
	}
	if (action->kind != DRV_DO_SEND)
		return;
	if (fw_decode(action->frame + 4, action->frame_bytes - 4, &message, &err) < 0) {
		sim_fail(sim, "codec", "a frame that was sent cannot be read: %s", err.text);
		return;
	}
	if (!is_known(sim, message))
		take(sim, message);
	fw_message_free(message);
}

void sim_client_ask_host(struct sim *sim, struct sim_host *host, const struct fw_host_set *request)
{
	struct fw_host_set_done done = {.number = request->number};
	unsigned int fragment = SIM_FRAGMENTS_MAX, value = 0;
	bool is_here = false;

	sscanf(request->text, "f%u.a.p=%u", &fragment, &value);
	for (uint32_t i = 0; i < host->fragment_count; i++)
		is_here = is_here || host->fragments[i] == fragment;
	if (!is_here) {
		sim_fail(sim, "addressing", "pid %d, which does not run it, is asked for %s",
			 host->pid, request->text);
		return;
	}
	if (sim_chance(sim, 5))
		done.failure = (struct fw_failure){FRAGI_FAILURE_USAGE, "it is out of range", ""};
	else if (host->app->taken[fragment] < value)
		host->app->taken[fragment] = value;
	sim_host_raise(sim, host,
		       &(struct host_event){.kind = HOST_EV_SET_DONE, .set_done = &done});
}

void sim_client_check_source(struct sim *sim, struct sim_host *host,
			     const struct fw_host_create *create)
{
	uint32_t values[SIM_FRAGMENTS_MAX] = {0}, applied[SIM_FRAGMENTS_MAX] = {0};
	struct fragi_source source;

	if (!sim->is.has_client)
		return;
	if (fragi_source_unpack(create->source, create->source_bytes, &source) < 0) {
		sim_fail(sim, "source", "pid %d got a source that cannot be read", host->pid);
		return;
	}
	for (size_t i = 0; i < source.source.set_count; i++) {
		unsigned int fragment = 0, value = 0;

		if (sscanf(source.source.sets[i], "f%u.a.p=%u", &fragment, &value) == 2 &&
		    fragment < SIM_FRAGMENTS_MAX) {
			if (values[fragment] != 0)
				sim_fail(sim, "kept", "pid %d begins with two values of f%u.a.p",
					 host->pid, fragment);
			values[fragment] = value;
		}
		if (sscanf(source.source.sets[i], "f%u.b.q=%u", &fragment, &value) == 2 &&
		    fragment < SIM_FRAGMENTS_MAX)
			applied[fragment] = value;
		if (sscanf(source.source.sets[i], FRAGI_SPEC_SWAP "f%u/lib0.so=lib%u.so", &fragment,
			   &value) == 2 &&
		    fragment == host->fragments[0])
			host->library = value;
	}
	fragi_source_fini(&source);
	memcpy(host->begins_with, values, sizeof(values));
	memcpy(host->begins_applied, applied, sizeof(applied));
	if (host->incoming)
		sim_swap_begin(sim, host);
	if (!host->incoming)
		sim_client_check_values(sim, host);
}

void sim_client_check_values(struct sim *sim, struct sim_host *host)
{
	const uint32_t *values = host->begins_with;

	if (sim->is.swaps)
		sim_swap_begin(sim, host);

	for (uint32_t i = 0; sim->is.has_client && i < host->fragment_count; i++) { /* of its own */
		uint8_t f = host->fragments[i];

		sim_apply_begin(sim, host, f, host->begins_applied[f]);
		if (values[f] < host->app->set[f] || values[f] > host->app->taken[f])
			sim_fail(sim, "kept", "pid %d begins with f%u.a.p=%u; %u was set, %u taken",
				 host->pid, f, values[f], host->app->set[f], host->app->taken[f]);
	}
}
