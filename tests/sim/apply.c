// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <text/spec.h>

/*
 * The client brings changed graphs: another value of a parameter that may not change while its
 * fragment runs. It lets the driver show first what that takes. Where it takes a host to be started
 * again it then asks for that, and must get it: the host ends, and the next one has the new value;
 * all others go on. Where it takes the whole application the client leaves it at that. What was
 * shown alone must not be in any host.
 */
bool sim_apply_is_under_way(const struct sim *sim)
{
	return sim->client.applying.seq != 0;
}

static void send(struct sim *sim, struct sim_applying *applying)
{
	struct sim_app *app = &sim->apps[applying->app];
	struct fragi_spec_source source = {.graph = {"app.yaml", app->text, strlen(app->text)}};
	struct fw_message message = {.kind = FW_APPLY};
	char texts[2 * SIM_FRAGMENTS_MAX][32];
	const char *sets[2 * SIM_FRAGMENTS_MAX];
	void *packed;
	size_t size;

	for (uint32_t f = 0; f < app->fragment_count; f++) {
		uint32_t applied = f == applying->fragment ? applying->value : app->applied[f];

		if (app->set[f] != 0) {
			sets[source.set_count] = texts[source.set_count];
			snprintf(texts[source.set_count++], sizeof(texts[0]), "f%u.a.p=%u", f,
				 app->set[f]);
		}
		if (applied != 0) {
			sets[source.set_count] = texts[source.set_count];
			snprintf(texts[source.set_count++], sizeof(texts[0]), "f%u.b.q=%u", f,
				 applied);
		}
	}
	source.sets = sets;
	if (applying->is_impossible)
		source.graph = (struct fragi_spec_text){"app.yaml", "frag: 1\nfragments: [", 21};
	if (fragi_source_pack(&source, &packed, &size) < 0) {
		sim_fail(sim, "memory", "cannot pack %s", app->name);
		return;
	}
	applying->seq = sim->client.seq + 1;
	applying->at_ns = sim->now_ns;
	sim_print(sim, "client", "%s f%u.b.q=%u of %s",
		  applying->only_shows ? "is shown" : "applies", applying->fragment,
		  applying->value, app->name);
	message.apply = (struct fw_apply){app->name, packed, (uint32_t)size, applying->only_shows};
	sim_client_say(sim, &message);
	free(packed);
}

static void show_one(struct sim *sim)
{
	struct sim_applying *applying = &sim->client.applying;
	struct sim_app *app;

	if (sim->apps_given == 0 || !sim_chance(sim, 4))
		return;
	app = &sim->apps[sim_between(sim, 0, (int64_t)sim->apps_given - 1)];
	if (app->incarnation != sim->driver.incarnation || app->ended ||
	    (app->state != DRV_APP_RUNNING && !sim_chance(sim, 4)))
		return;
	*applying = (struct sim_applying){
		.app = (uint32_t)(app - sim->apps),
		.fragment = (uint32_t)sim_between(sim, 0, (int64_t)app->fragment_count - 1),
		.value = ++sim->client.value,
		.only_shows = true,
		.is_impossible = sim_chance(sim, 8),
	};
	if (sim_chance(sim, 8)) /* the graph that it has */
		applying->value = app->applied[applying->fragment];
	send(sim, applying);
}

void sim_apply_turn(struct sim *sim)
{
	struct sim_applying *applying = &sim->client.applying;
	struct sim_app *app = &sim->apps[applying->app];

	if (!applying->is_next) {
		show_one(sim);
		return;
	}
	applying->is_next = applying->only_shows = false;
	app->offered[applying->fragment] = applying->value;
	app->disturbed = true;
	app->blow_ns = sim->now_ns; /* as if the host had failed */
	app->blows++;
	send(sim, applying);
}

static bool set_is_known(const struct sim *sim, const struct sim_app *app)
{
	for (uint32_t f = 0; f < app->fragment_count; f++)
		if (app->taken[f] != app->set[f])
			return false;
	return !sim->client.is_unsure;
}

static void shown(struct sim *sim, struct sim_applying *applying, enum fw_effect effect)
{
	const struct sim_app *app = &sim->apps[applying->app];
	bool restarts = app->on_failure[applying->fragment].restarts;

	if (applying->value == app->applied[applying->fragment]) {
		if (set_is_known(sim, app) && effect != FW_EFFECT_NONE)
			sim_fail(sim, "apply", "the graph that %s has has effect %d", app->name,
				 effect);
		return;
	}
	if ((effect != FW_EFFECT_FRAGMENT && effect != FW_EFFECT_APPLICATION) ||
	    (effect == FW_EFFECT_FRAGMENT) > restarts ||
	    (set_is_known(sim, app) && (effect == FW_EFFECT_FRAGMENT) != restarts))
		sim_fail(sim, "apply", "f%u.b.q of %s has effect %d, and its fragment %s",
			 applying->fragment, app->name, effect,
			 restarts ? "may be started again" : "may not be started again");
	applying->is_next = effect == FW_EFFECT_FRAGMENT && set_is_known(sim, app);
}

static void made(struct sim *sim, const struct sim_applying *applying, enum fw_effect effect)
{
	struct sim_app *app = &sim->apps[applying->app];

	if (effect != FW_EFFECT_FRAGMENT)
		sim_fail(sim, "apply", "f%u.b.q of %s was shown with another effect",
			 applying->fragment, app->name);
	app->applied[applying->fragment] = applying->value;
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[i];
		struct sim_restarts *r = &app->hosts[host->number];

		for (uint32_t k = 0; k < host->fragment_count; k++)
			if (host->app == app && !host->superseded && r->trouble_ns == 0 &&
			    host->fragments[k] == applying->fragment)
				r->trouble_ns = sim->now_ns;
	}
}

bool sim_apply_hear(struct sim *sim, const struct fw_message *message)
{
	struct sim_applying *applying = &sim->client.applying;

	if (applying->seq == 0 || message->reply_to != applying->seq)
		return false;
	applying->seq = 0;
	if (message->kind == FW_CHANGES && applying->is_impossible)
		sim_fail(sim, "apply", "a graph that cannot be read is taken");
	else if (message->kind == FW_CHANGES && applying->only_shows)
		shown(sim, applying, message->changes.effect);
	else if (message->kind == FW_CHANGES)
		made(sim, applying, message->changes.effect);
	else if (message->kind == FW_ANSWER &&
		 (applying->is_impossible ||
		  message->answer.failure.code != FRAGI_FAILURE_GRAPH_INVALID))
		sim_print(sim, "client", "is refused: %s", message->answer.failure.sentence);
	else
		sim_fail(sim, "answers", "a changed graph is answered by %s",
			 fw_kind_name(message->kind));
	return true;
}

void sim_apply_begin(struct sim *sim, struct sim_host *host, uint8_t fragment, uint32_t value)
{
	const struct sim_app *app = host->app;

	if (value < app->applied[fragment] || value > app->offered[fragment])
		sim_fail(sim, "kept", "pid %d begins with f%u.b.q=%u; %u was applied, %u brought",
			 host->pid, fragment, value, app->applied[fragment],
			 app->offered[fragment]);
	host->applied[fragment] = value;
}

void sim_apply_look(struct sim *sim, struct sim_app *app, bool quiet)
{
	const struct sim_applying *applying = &sim->client.applying;
	bool is_behind[SIM_FRAGMENTS_MAX] = {0};

	if (applying->seq != 0 && sim_client_is_there(sim) && sim->driver.process.alive &&
	    sim->now_ns - sim_able_since(&sim->driver.process, applying->at_ns) >
		    sim->dead_ns + SIM_CLIENT_LATE_NS)
		sim_fail(sim, "answers", "the client has no answer for f%u.b.q=%u of %s",
			 applying->fragment, applying->value, sim->apps[applying->app].name);
	/*
	 * What is left of an application that has ended may still be held up in the kernel. So may
	 * a host that was killed for the new value: nothing of it runs any more, and when it dies
	 * is up to its kernel.
	 */
	for (uint32_t i = 0; quiet && !app->ended && i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[i];

		for (uint32_t k = 0; k < host->fragment_count; k++) {
			uint8_t f = host->fragments[k];

			is_behind[f] = is_behind[f] ||
				       (host->app == app && host->process.alive && !host->dying &&
					!host->superseded && host->applied[f] < app->applied[f]);
		}
	}
	for (uint32_t f = 0; f < app->fragment_count; f++) {
		if (!is_behind[f])
			app->behind_since_ns[f] = 0;
		else if (app->behind_since_ns[f] == 0)
			app->behind_since_ns[f] = sim->now_ns;
		else if (sim->now_ns - app->behind_since_ns[f] > SIM_KILL_NS + 2 * SIM_S)
			sim_fail(sim, "apply", "a host of f%u of %s runs on with an older f%u.b.q",
				 f, app->name, f);
	}
}
