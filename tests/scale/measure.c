// SPDX-License-Identifier: Apache-2.0
#include "scale.h"

#include <stdio.h>

#include "fleet.h"

#define S INT64_C(1000000000)

const char *const scale_names[SCALE_PHASES] = {"attach",       "start",       "run", "adopt",
					       "a tenth dies", "start again", "stop"};

/* The phase is over: what was to come of it has, or *out_failure says what has not. */
static void end_phase(struct fleet *fleet, struct scale_costs *costs, enum scale_phase phase,
		      bool has_come, const char *otherwise, const char **out_failure)
{
	static char text[256];
	struct fleet_work work = fleet_take(fleet);
	double ns = (double)work.cpu_ns / (double)work.events;

	if (*out_failure == NULL && (fleet_failure(fleet) != NULL || !has_come)) {
		snprintf(text, sizeof(text), "%s: %s", scale_names[phase],
			 fleet_failure(fleet) != NULL ? fleet_failure(fleet) : otherwise);
		*out_failure = text;
	}
	if (costs->events[phase] == 0 || ns < costs->ns[phase])
		costs->ns[phase] = ns;
	if (costs->events[phase] == 0 || work.largest_ns < costs->largest_ns[phase])
		costs->largest_ns[phase] = work.largest_ns;
	costs->events[phase] = work.events;
}

const char *scale_measure(uint32_t workers, struct scale_costs *costs)
{
	uint32_t apps = workers / (FLEET_FRAGMENTS / FLEET_HOSTS), left = apps - (apps + 9) / 10,
		 spawned;
	struct fleet *fleet = fleet_create(workers, FLEET_FRAGMENTS, FLEET_HOSTS);
	const char *failure = NULL;

	fleet_attach(fleet, 0, workers);
	fleet_run(fleet, S);
	end_phase(fleet, costs, SCALE_ATTACH, fleet_attached(fleet) == workers,
		  "not all workers have come", &failure);
	fleet_start(fleet, 0, apps);
	fleet_run(fleet, S);
	end_phase(fleet, costs, SCALE_START,
		  fleet_hosts(fleet) == workers * FLEET_HOSTS &&
			  fleet_most_hosts(fleet) == FLEET_HOSTS,
		  "not all hosts run, or a worker has more than it may", &failure);
	fleet_run(fleet, 2 * S);
	end_phase(fleet, costs, SCALE_RUN, fleet_hosts(fleet) == workers * FLEET_HOSTS,
		  "a host has ended", &failure);
	spawned = fleet_spawned(fleet);
	fleet_replace_driver(fleet);
	fleet_run(fleet, 2 * S);
	end_phase(fleet, costs, SCALE_ADOPT,
		  fleet_running(fleet, apps) == apps && fleet_attached(fleet) == workers &&
			  fleet_hosts(fleet) == workers * FLEET_HOSTS &&
			  fleet_spawned(fleet) == spawned,
		  "not all applications are adopted", &failure);
	fleet_power_off(fleet, 10);
	fleet_run(fleet, 8 * S);
	end_phase(fleet, costs, SCALE_DEATHS,
		  fleet_attached(fleet) == workers - (workers + 9) / 10 &&
			  fleet_ended(fleet, false) == apps && fleet_hosts(fleet) == 0,
		  "not all applications have ended by it", &failure);
	fleet_start(fleet, 0, left);
	fleet_run(fleet, 2 * S);
	end_phase(fleet, costs, SCALE_AGAIN, fleet_hosts(fleet) == left * FLEET_FRAGMENTS,
		  "they do not run again", &failure);
	fleet_stop(fleet);
	fleet_run(fleet, 3 * S);
	end_phase(fleet, costs, SCALE_STOP,
		  fleet_ended(fleet, true) == left && fleet_hosts(fleet) == 0, "some run on",
		  &failure);
	fleet_destroy(fleet);
	return failure;
}

const char *scale_measure_one(uint32_t workers, uint32_t fragments, double *out_ns)
{
	static char text[256];
	struct fleet *fleet = fleet_create(workers, fragments, fragments / workers);
	double ns = 0;

	text[0] = '\0';
	fleet_start(fleet, 0, 1); /* it waits for the workers */
	fleet_take(fleet);
	for (uint32_t w = 0; w < workers; w++) {
		fleet_attach(fleet, w, 1);
		fleet_run(fleet, S / 1000);
	}
	fleet_run(fleet, S);
	ns = (double)fleet_take(fleet).cpu_ns;
	if (fleet_failure(fleet) != NULL || fleet_hosts(fleet) != fragments)
		snprintf(text, sizeof(text), "one application: %s",
			 fleet_failure(fleet) != NULL ? fleet_failure(fleet) : "not all hosts run");
	if (*out_ns == 0 || ns < *out_ns)
		*out_ns = ns;
	fleet_destroy(fleet);
	return text[0] != '\0' ? text : NULL;
}

double scale_growth(const struct scale_costs *small, const struct scale_costs *large)
{
	double most = 0;

	for (int p = 0; p < SCALE_PHASES; p++)
		if (large->ns[p] / small->ns[p] > most)
			most = large->ns[p] / small->ns[p];
	return most;
}
