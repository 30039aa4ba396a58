/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADOPT_WORLD_H
#define ADOPT_WORLD_H

#include "driver_world.h"

/*
 * A driver that has come back, without state, to workers that report what they run. What they say
 * is not believed beyond reason: a worker may have been taken over.
 */
#define RUN 7

static const char restarting[] =
	TWO_FRAGMENTS("", ", on_failure: {policy: restart, intensity: 2, period: 60s}");

static inline void comes_back(struct world *w)
{
	world_init_with(w, (struct drv_config){.version = "test",
					       .keeps_state = true,
					       .adopts = true,
					       .realtime_offset_ns = 1000 * SECOND});
	speaking_run = RUN;
}

static inline void written(struct world *w)
{
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
}

static inline void hello_reporting(struct world *w, uint64_t connection, uint32_t reports)
{
	hello_by(w, connection, connection == 1 ? "a" : "b", NULL,
		 (struct fw_hello){.worker_address = "127.0.0.1",
				   .node = "node",
				   .clock = "node",
				   .reports = reports});
}

/* Of a host that was made, and started or not. */
static inline void say_report_as(struct world *w, uint64_t connection, struct fw_message message,
				 const char *name, const char *text, const char *fragment,
				 bool started)
{
	struct fragi_spec_source source = {.graph = {"app.yaml", text, strlen(text)}};
	const char *fragments[] = {fragment};
	size_t bytes;
	void *packed;

	cr_assert_eq(fragi_source_pack(&source, &packed, &bytes), 0);
	message.report.create = (struct fw_host_create){.application = name,
							.fragments = fragments,
							.fragment_count = 1,
							.source = packed,
							.source_bytes = (uint32_t)bytes,
							.memory = message.report.create.memory};
	message.report.started = started;
	message.report.has_run = true;
	say(w, connection, &message);
	fragi_free(packed);
}

/* Host `number` runs the fragment of that number of the graph. */
static inline void say_report_of(struct world *w, uint64_t connection, struct fw_message message,
				 const char *name, const char *text, const char *fragment)
{
	say_report_as(w, connection, message, name, text, fragment, true);
}

static inline void say_report(struct world *w, uint64_t connection, uint32_t number,
			      const char *text)
{
	say_report_of(w, connection, of_host(FW_HOST_REPORT, number), "app", text,
		      number == 1 ? "f1" : "f2");
}

/* The same with its tables. */
static inline void say_running(struct world *w, uint64_t connection, uint32_t number,
			       const char *text)
{
	say_report(w, connection, number, text);
	say_prepared(w, connection, number, number == 1 ? "f1" : "f2", number == 1);
}

static inline void say_reported(struct world *w, uint64_t connection)
{
	say(w, connection, &(struct fw_message){.kind = FW_REPORTED});
}

/* Two workers report the two hosts of an application, all but the last word of the second. */
static inline void report_two(struct world *w)
{
	hello_reporting(w, 1, 2);
	hello_reporting(w, 2, 1);
	say_running(w, 1, 1, two_fragments);
	say_reported(w, 1);
	say_running(w, 2, 2, two_fragments);
	written(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
}

static inline void adopt_two_as(struct world *w, enum drv_app_state state)
{
	report_two(w);
	say_reported(w, 2);
	cr_assert_eq(drv_core_app_state(w->core), state, "%s", w->log);
}

static inline void adopt_two(struct world *w)
{
	adopt_two_as(w, DRV_APP_RUNNING);
}

static inline void restore_graph(struct world *w, uint64_t run, bool is_wanted, const char *text)
{
	struct fragi_spec_source source = {.graph = {"app.yaml", text, strlen(text)}};
	struct drv_record record = {.kind = DRV_RECORD_RUN,
				    .run = run,
				    .epoch = run,
				    .name = "app",
				    .who = "user alice",
				    .is_wanted = is_wanted};
	void *packed;

	cr_assert_eq(fragi_source_pack(&source, &packed, &record.source_bytes), 0);
	record.source = packed;
	cr_assert_eq(drv_core_restore(w->core, &record), 0);
	fragi_free(packed);
}

static inline void restore_as(struct world *w, uint64_t run, bool is_wanted)
{
	restore_graph(w, run, is_wanted, two_fragments);
}

static inline void restore(struct world *w, uint64_t run)
{
	restore_as(w, run, true);
}

/* Where it is not known which workers run an application, it waits for all of them. */
static inline void others_may_come(struct world *w)
{
	written(w);
	for (int i = 0; i < 80 && drv_core_app_state(w->core) == DRV_APP_WAITING; i++)
		pass_beating(w, 100 * MS, 1, 2);
}

#endif
