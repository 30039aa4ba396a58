// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <base/log.h>

/* xorshift64*, seeded through splitmix64. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

uint64_t sim_random(struct sim *sim)
{
	sim->random ^= sim->random >> 12;
	sim->random ^= sim->random << 25;
	sim->random ^= sim->random >> 27;
	return sim->random * 0x2545f4914f6cdd1dull;
}

int64_t sim_between(struct sim *sim, int64_t low, int64_t high)
{
	return low + (int64_t)(sim_random(sim) % (uint64_t)(high - low + 1));
}

bool sim_chance(struct sim *sim, uint32_t of)
{
	return sim_random(sim) % of == 0;
}

void sim_note(struct sim *sim, uint64_t a, uint64_t b)
{
	sim->hash = mix(sim->hash ^ a) + b;
}

void sim_note_bytes(struct sim *sim, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	uint64_t word;

	for (; size >= 8; at += 8, size -= 8) {
		memcpy(&word, at, 8);
		sim->hash = (sim->hash ^ word) * 0x9fb21c651e98df25ull;
		sim->hash ^= sim->hash >> 29;
	}
	word = 0;
	memcpy(&word, at, size);
	sim_note(sim, word, size);
}

void sim_print(struct sim *sim, const char *who, const char *format, ...)
{
	va_list args;

	if (sim->out == NULL)
		return;
	fprintf(sim->out, "%12.6f  %-10s ", (double)sim->now_ns * 1e-9, who);
	va_start(args, format);
	vfprintf(sim->out, format, args);
	va_end(args);
	fputc('\n', sim->out);
}

void sim_fail(struct sim *sim, const char *invariant, const char *format, ...)
{
	va_list args;

	if (sim->failed)
		return;
	sim->failed = true;
	sim->invariant = invariant;
	va_start(args, format);
	vsnprintf(sim->failure, sizeof(sim->failure), format, args);
	va_end(args);
	sim_print(sim, "INVARIANT", "%s: %s", invariant, sim->failure);
}

static void happen(struct sim *sim, const struct sim_event *event)
{
	switch (event->kind) {
	case SIM_EV_CONNECTION:
		sim_on_connection(sim, event);
		break;
	case SIM_EV_SYN:
		sim_on_syn(sim, event);
		break;
	case SIM_EV_STRANGER:
		sim_on_stranger(sim, event);
		break;
	case SIM_EV_DRIVER_TIMER:
		sim_on_driver_timer(sim, event);
		break;
	case SIM_EV_SYNCED:
		sim_on_synced(sim, event);
		break;
	case SIM_EV_WORKER_TIMER:
		sim_on_worker_timer(sim, event);
		break;
	case SIM_EV_REPORTER:
		sim_on_reporter(sim, event);
		break;
	case SIM_EV_SOCKET:
	case SIM_EV_REAP:
	case SIM_EV_HOST_TIMER:
	case SIM_EV_HOST_STOP:
	case SIM_EV_HOST_END:
	case SIM_EV_RUN_BEAT:
	case SIM_EV_WORK_DONE:
	case SIM_EV_WIRED:
	case SIM_EV_PEER_LOST:
	case SIM_EV_WATCHDOG:
	case SIM_EV_LIBRARY:
		sim_on_host(sim, event);
		break;
	case SIM_EV_TICK:
	case SIM_EV_DATA:
	case SIM_EV_CREDIT:
	case SIM_EV_WANT:
	case SIM_EV_CALM:
	case SIM_EV_CLOSE:
	case SIM_EV_DONE:
		sim_on_data(sim, event);
		break;
	case SIM_EV_FAULT:
		sim_on_fault(sim, event);
		break;
	case SIM_EV_CLOCK:
		sim_on_clock(sim, event);
		break;
	case SIM_EV_NAP:
		sim_on_nap(sim, event);
		break;
	case SIM_EV_HEAL:
		sim_heal(sim, event->a);
		break;
	case SIM_EV_NETWORK:
		sim_on_network(sim, event);
		break;
	case SIM_EV_RESTART:
		sim_on_restart(sim, event);
		break;
	case SIM_EV_LEASE:
		sim_on_lease(sim, event);
		break;
	case SIM_EV_CLIENT:
		sim_on_client(sim);
		break;
	case SIM_EV_LOOKER:
		sim_on_looker(sim, event);
		break;
	case SIM_EV_LOOK:
		sim_check_look(sim);
		sim_put(sim, sim->now_ns + 100 * SIM_MS, SIM_EV_LOOK, 0, 0, 0);
		break;
	case SIM_EVENTS:
		break;
	}
}

static void run(struct sim *sim)
{
	struct sim_event event;

	while (!sim->failed && sim_take(sim, &event) && event.at_ns <= sim->end_ns) {
		sim->same_time = event.at_ns == sim->now_ns ? sim->same_time + 1 : 0;
		sim->now_ns = event.at_ns;
		sim->event_count++;
		sim_note(sim, (uint64_t)event.at_ns ^ (uint64_t)event.kind << 56,
			 event.a * 65537ull + event.b + event.c);
		happen(sim, &event);
		sim_check(sim);
	}
	if (!sim->failed)
		sim_check_end(sim);
}

static void sim_fini(struct sim *sim)
{
	sim_driver_fini(sim);
	sim_adopt_fini(sim);
	for (uint32_t i = 0; i < sim->worker_count; i++)
		sim_worker_fini(sim, i);
	for (uint32_t i = 0; i < sim->host_count; i++)
		sim_host_fini(&sim->hosts[i]);
	for (uint32_t i = 0; i < sim->connection_count; i++)
		sim_connection_fini(&sim->connections[i]);
}

void sim_run(uint64_t seed, FILE *out, struct sim_result *out_result)
{
	static struct sim world;
	struct sim *sim = &world;
	struct sim_event *heap = sim->events.heap;
	size_t capacity = sim->events.capacity;
	int threshold = fragi_log_threshold;

	/* The big tables are cleared as far as the history before used them. */
	memset(sim->hosts, 0, sim->host_count * sizeof(*sim->hosts));
	memset(sim->connections, 0, sim->connection_count * sizeof(*sim->connections));
	memset(sim->apps, 0, (sim->app_count + 1) * sizeof(*sim->apps));
	memset(sim->workers, 0, sizeof(sim->workers));
	memset(&sim->driver, 0, sizeof(sim->driver));
	memset(&sim->disk, 0, sizeof(sim->disk));
	memset(&sim->client, 0, sizeof(sim->client));
	memset(sim->lookers, 0, sizeof(sim->lookers));
	sim->looker_count = 0;
	memset(sim->plan, 0, sizeof(sim->plan));
	memset(sim->cut_until_ns, 0, sizeof(sim->cut_until_ns));
	sim->events = (struct sim_events){.heap = heap, .capacity = capacity};
	sim->host_count = sim->connection_count = sim->worker_count = sim->app_count =
		sim->apps_given = 0;
	sim->plan_count = sim->stops = sim->waiting = 0;
	sim->compared = 0;
	memset(sim->outcomes, 0, sizeof(sim->outcomes));
	sim->event_count = sim->step_count = sim->same_time = 0;
	sim->excuse_until_ns = sim->hiccup_until_ns = sim->frozen_until_ns = 0;
	sim->last_steps = 0;
	sim->failed = sim->driver_returns = false;
	sim->invariant = "";
	sim->failure[0] = '\0';
	sim->seed = seed;
	sim->random = mix(seed) | 1;
	sim->hash = 0;
	sim->out = out;
	sim->now_ns = 1000 * SIM_S;
	fragi_log_threshold = out != NULL ? FRAGI_LOG_DEBUG : FRAGI_LOG_OFF;
	sim_plan(sim);
	sim_client_start(sim);
	sim_look_start(sim);
	sim_clocks_start(sim);
	run(sim);
	sim_fini(sim);
	fragi_log_threshold = threshold;
	*out_result = (struct sim_result){
		.failed = sim->failed,
		.invariant = sim->invariant,
		.hash = sim->hash,
		.events = sim->event_count,
		.steps = sim->step_count,
		.waiting = sim->waiting,
		.compared = sim->compared,
	};
	memcpy(out_result->outcomes, sim->outcomes, sizeof(sim->outcomes));
	memcpy(out_result->failure, sim->failure, sizeof(sim->failure));
}
