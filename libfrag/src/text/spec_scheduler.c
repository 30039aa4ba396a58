// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include <text/builder.h>

#define RECESSION_MAX_MS 60000.0
#define TIME_MAX_MS (INT64_C(366) * 24 * 3600 * 1000)
#define CORE_MAX 8191

static void read_type(struct fragi_builder *builder, struct fragi_node *node, const char *subject,
		      void *out)
{
	static const char *const words[] = {"event_based", "greedy", "multi_thread"};
	struct fragi_spec_scheduler *scheduler = out;

	if (fragi_read_section_type(builder, node, subject, "type", FRAGI_HOLOSCAN_SCHEDULER,
				    "scheduler", words, FRAG_COUNT_OF(words)) == 1)
		scheduler->kind = FRAGI_SCHEDULER_GREEDY;
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

#define MEMBER(m) FRAGI_MEMBER(struct fragi_spec_scheduler, m)
static const struct fragi_key keys[] = {
	{"type", .read = read_type},
	{"worker_thread_number", FRAGI_KEY_INTEGER, MEMBER(worker_thread_number), .min = 1,
	 .max = FRAGI_THREADS_MAX},
	{"stop_on_deadlock", FRAGI_KEY_BOOL, MEMBER(stop_on_deadlock), .usual = true},
	{"stop_on_deadlock_timeout_ms", FRAGI_KEY_INTEGER, MEMBER(stop_on_deadlock_timeout_ms),
	 .min = -TIME_MAX_MS, .max = TIME_MAX_MS},
	{"stop_on_deadlock_timeout", FRAGI_KEY_INTEGER, MEMBER(stop_on_deadlock_timeout_ms),
	 .min = -TIME_MAX_MS, .max = TIME_MAX_MS},
	{"max_duration_ms", FRAGI_KEY_INTEGER, MEMBER(max_duration_ms), .min = -TIME_MAX_MS,
	 .max = TIME_MAX_MS},
	{"check_recession_period_ms", FRAGI_KEY_NUMBER, MEMBER(check_recession_period_ms),
	 .most = RECESSION_MAX_MS, .normal = FRAGI_RECESSION_MS, .unit = " of milliseconds"},
	{"pin_cores"},
	{"require_pin_cores", FRAGI_KEY_BOOL, MEMBER(require_pin_cores)},
	/* Holoscan's MultiThreadScheduler: without effect, as pinned operators share no thread */
	{"strict_thread_pinning", FRAGI_KEY_BOOL, MEMBER(pins_strictly)},
	{"strict_job_thread_pinning", FRAGI_KEY_BOOL, MEMBER(pins_strictly)},
	{"clock", MEMBER(clock), .read = fragi_spec_read_clock},
};

void fragi_spec_read_scheduler(struct fragi_builder *builder, struct fragi_node *node,
			       const char *fragment, void *out)
{
	struct fragi_spec_scheduler *scheduler = out;
	char subject[FRAG_NAME_MAX + 32];

	snprintf(subject, sizeof(subject), "%s.scheduler", fragment);
	node = fragi_settings_merge(builder, node, subject);
	fragi_keys_default(FRAGI_KEYS(keys), scheduler);
	if (fragi_section_read(builder, node, subject, "scheduler", FRAGI_KEYS(keys), scheduler))
		fragi_spec_read_cores(builder, fragi_node_get(node, "pin_cores"), subject,
				      &scheduler->pin_cores, &scheduler->pin_core_count);
	/* in Holoscan, negative times mean never */
	if (scheduler->stop_on_deadlock_timeout_ms < 0) {
		scheduler->stop_on_deadlock = false;
		scheduler->stop_on_deadlock_timeout_ms = 0;
	}
	if (scheduler->max_duration_ms < 0)
		scheduler->max_duration_ms = 0;
}
