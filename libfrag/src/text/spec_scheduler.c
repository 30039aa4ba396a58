// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include <base/units.h>
#include <text/holoscan.h>
#include <text/builder.h>

#define RECESSION_MAX_MS 60000.0
#define TIME_MAX_MS (INT64_C(366) * 24 * 3600 * 1000)
#define CORE_MAX 8191

static void read_kind(struct fragi_builder *builder, const struct fragi_node *node,
		      const char *subject, struct fragi_spec_scheduler *scheduler)
{
	static const char *const words[] = {"event_based", "greedy", "multi_thread"};
	const char *text = fragi_read_text(builder, node, subject, "type");
	char advice[256];

	if (text == NULL)
		return;
	text = fragi_alias(FRAGI_HOLOSCAN_SCHEDULER, text);
	if (strcmp(text, "greedy") == 0)
		scheduler->kind = FRAGI_SCHEDULER_GREEDY;
	else if (strcmp(text, "event_based") != 0 && strcmp(text, "multi_thread") != 0)
		fragi_builder_error(builder, node, subject, "no scheduler \"%.80s\"%s", text,
				    fragi_builder_advise(builder, advice, sizeof(advice), text,
							 "schedulers", words,
							 FRAG_COUNT_OF(words)));
}

void fragi_spec_read_cores(struct fragi_builder *builder, struct fragi_node *list,
			   const char *subject, const uint32_t **out_cores, size_t *out_count)
{
	uint32_t *cores;
	int64_t core;

	list = fragi_read_list(builder, list, subject, "pin_cores");
	if (list == NULL)
		return;
	cores = fragi_builder_alloc(builder, list->count, sizeof(*cores));
	for (struct fragi_node *child = list->first; cores != NULL && child != NULL;
	     child = child->next)
		if (fragi_read_integer(builder, child, subject, "a core of pin_cores", 0, CORE_MAX,
				       &core))
			cores[(*out_count)++] = (uint32_t)core;
	*out_cores = cores;
}

static void read_recession(struct fragi_builder *builder, const struct fragi_node *node,
			   const char *subject, struct fragi_spec_scheduler *scheduler)
{
	const char *text = fragi_read_text(builder, node, subject, "check_recession_period_ms");
	double period;

	if (text == NULL)
		return;
	if (fragi_parse_f64(text, &period) < 0 || !(period >= 0) || period > RECESSION_MAX_MS)
		fragi_builder_error(
			builder, node, subject,
			"check_recession_period_ms \"%.80s\" is not a number of milliseconds from 0 to %.0f",
			text, RECESSION_MAX_MS);
	else
		scheduler->check_recession_period_ms = period;
}

void fragi_spec_read_scheduler(struct fragi_builder *builder, struct fragi_node *node,
			       const char *subject, struct fragi_spec_scheduler *out_scheduler)
{
	static const struct fragi_field fields[] = {
		{"type", false},
		{"worker_thread_number", false},
		{"stop_on_deadlock", false},
		{"stop_on_deadlock_timeout_ms", false},
		{"max_duration_ms", false},
		{"check_recession_period_ms", false},
		{"pin_cores", false},
		{"strict_thread_pinning", false},
		{"clock", false},
	};
	struct fragi_spec_scheduler scheduler = {
		.stop_on_deadlock = true,
		.check_recession_period_ms = FRAGI_RECESSION_MS,
	};
	int64_t threads = 0;

	node = fragi_read_map(builder, node, subject, "scheduler");
	if (node != NULL) {
		fragi_fields_check(builder, node, subject, fields, FRAG_COUNT_OF(fields));
		read_kind(builder, fragi_node_get(node, "type"), subject, &scheduler);
		fragi_read_integer(builder, fragi_node_get(node, "worker_thread_number"), subject,
				   "worker_thread_number", 1, FRAGI_THREADS_MAX, &threads);
		fragi_read_bool(builder, fragi_node_get(node, "stop_on_deadlock"), subject,
				"stop_on_deadlock", &scheduler.stop_on_deadlock);
		fragi_read_integer(builder, fragi_node_get(node, "stop_on_deadlock_timeout_ms"),
				   subject, "stop_on_deadlock_timeout_ms", -1, TIME_MAX_MS,
				   &scheduler.stop_on_deadlock_timeout_ms);
		fragi_read_integer(builder, fragi_node_get(node, "max_duration_ms"), subject,
				   "max_duration_ms", 0, TIME_MAX_MS, &scheduler.max_duration_ms);
		read_recession(builder, fragi_node_get(node, "check_recession_period_ms"), subject,
			       &scheduler);
		fragi_spec_read_cores(builder, fragi_node_get(node, "pin_cores"), subject,
				      &scheduler.pin_cores, &scheduler.pin_core_count);
		fragi_read_bool(builder, fragi_node_get(node, "strict_thread_pinning"), subject,
				"strict_thread_pinning", &scheduler.strict_thread_pinning);
		fragi_spec_read_clock(builder, fragi_node_get(node, "clock"), subject,
				      &scheduler.clock);
	}
	scheduler.worker_thread_number = (uint32_t)threads;
	if (scheduler.stop_on_deadlock_timeout_ms < 0) { /* in Holoscan, -1 means never */
		scheduler.stop_on_deadlock = false;
		scheduler.stop_on_deadlock_timeout_ms = 0;
	}
	*out_scheduler = scheduler;
}
