// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <fragctl/perfetto.h>
#include <fragctl/trace_model.h>
#include <base/blame.h>
#include <base/look.h>

/*
 * What `fragctl trace` writes beside ticks, for samples and ticks that are given here. These
 * functions take the place of fragctl/perfetto.c and fragctl/trace_write.c: they write texts.
 */
static char written[2048];

static void __attribute__((format(printf, 1, 2))) add(const char *format, ...)
{
	size_t used = strlen(written);
	va_list args;

	va_start(args, format);
	vsnprintf(written + used, sizeof(written) - used, format, args);
	va_end(args);
}

void ctl_perfetto_track(FILE *out, uint64_t uuid, uint64_t process, const char *name)
{
	(void)out;
	(void)uuid;
	(void)process;
	add("%s:", name);
}

void ctl_perfetto_counter(FILE *out, uint64_t uuid, uint64_t process, const char *name)
{
	ctl_perfetto_track(out, uuid, process, name);
}

void ctl_perfetto_slice(FILE *out, uint64_t track, int64_t begin_ns, const char *name,
			const struct ctl_perfetto_flows *flows)
{
	(void)out;
	(void)track;
	(void)flows;
	add(" [%s %d", name, (int)begin_ns);
}

void ctl_perfetto_slice_end(FILE *out, uint64_t track, int64_t end_ns,
			    const struct ctl_perfetto_flows *flows)
{
	(void)out;
	(void)track;
	(void)flows;
	add(" %d]", (int)end_ns);
}

void ctl_perfetto_instant(FILE *out, uint64_t track, int64_t at_ns, const char *name)
{
	(void)out;
	(void)track;
	add(" %d %s", (int)at_ns, name);
}

void ctl_perfetto_value(FILE *out, uint64_t track, int64_t at_ns, int64_t value)
{
	(void)out;
	(void)track;
	add(" %d=%d", (int)at_ns, (int)value);
}

void ctl_trace_name_flow(const struct trace_flow *flow, const char *what, char *out, size_t size)
{
	snprintf(out, size, "%s -> %s: %s", flow->from, flow->to, what);
}

/* They are given in their order. */
void ctl_trace_sort_ticks(const struct ctl_trace *trace, enum trace_of of, uint32_t *order)
{
	(void)of;
	for (uint32_t i = 0; i < trace->tick_count; i++)
		order[i] = i;
}

#define MOST 8

static char op_a[] = "a", op_b[] = "b";
static char beyond[] = "beyond";
static char *ops[] = {op_a, op_b, NULL, beyond}; /* of which the last one is none of the host */
static char from[] = "a.out", to[] = "b.in", pool[] = "f.pool";

/* Writes them, of a host that was seen until 300. Those without an end are none. */
static const char *write(const struct trace_sample *samples, const struct trace_tick *ticks)
{
	static struct trace_flow flows[3];
	static struct trace_host host;
	struct trace_sample all_samples[MOST];
	struct trace_tick all_ticks[MOST];
	struct ctl_trace trace = {.hosts = &host, .host_count = 1};

	flows[0] = (struct trace_flow){.from = from, .to = to};
	flows[2] = (struct trace_flow){.from = beyond, .to = beyond}; /* none of the host either */
	host = (struct trace_host){.ops = ops,
				   .op_count = 3,
				   .pools = {pool},
				   .flows = flows,
				   .flow_count = 2,
				   .last_ns = 300};
	for (; trace.sample_count < MOST && samples[trace.sample_count].kind != 0;
	     trace.sample_count++)
		all_samples[trace.sample_count] = samples[trace.sample_count];
	for (; trace.tick_count < MOST && ticks[trace.tick_count].end_ns != 0; trace.tick_count++)
		all_ticks[trace.tick_count] = ticks[trace.tick_count];
	trace.samples = all_samples;
	trace.ticks = all_ticks;
	written[0] = '\0';
	ctl_trace_write_samples(&trace, NULL);
	return written;
}

#define USE(at, of, what)                                                                          \
	{                                                                                          \
		.at_ns = at, .row = of, .kind = FRAGI_TRACE_USE, .value = what                     \
	}
#define TICK(begin, end, of)                                                                       \
	{                                                                                          \
		.begin_ns = begin, .end_ns = end, .op = of                                         \
	}

/* An operator waits between its ticks, from the end of the last one on. */
Test(trace_waits, operators_wait_between_their_ticks)
{
	static const struct {
		struct trace_sample samples[MOST];
		struct trace_tick ticks[MOST];
		const char *written;
	} rows[] = {
		{{USE(0, 0, FRAGI_USE_INPUT)},
		 {TICK(100, 110, 0), TICK(200, 210, 0)},
		 "a: [waits for a message 0 100] [waits for a message 110 200] "
		 "[waits for a message 210 300]"},
		{{USE(0, 0, FRAGI_USE_INPUT), USE(150, 0, FRAGI_USE_ROOM)},
		 {TICK(100, 110, 0)},
		 "a: [waits for a message 0 100] [waits for a message 110 150] "
		 "[waits for room 150 300]"},
		/* It was seen after a tick, and has waited since its end. */
		{{USE(105, 0, FRAGI_USE_BUSY), USE(150, 0, FRAGI_USE_ROOM)},
		 {TICK(100, 110, 0)},
		 "a: [waits for room 110 300]"},
		/* Without a tick between, it waits since it was seen to. */
		{{USE(105, 0, FRAGI_USE_BUSY), USE(150, 0, FRAGI_USE_ROOM)},
		 {TICK(0, 0, 0)},
		 "a: [waits for room 150 300]"},
		/* A tick goes on beyond the end of what was seen. */
		{{USE(0, 0, FRAGI_USE_INPUT), USE(100, 0, FRAGI_USE_BUSY)},
		 {TICK(90, 400, 0)},
		 "a: [waits for a message 0 90]"},
		/* What does not run does so until it runs. */
		{{USE(0, 0, FRAGI_USE_SUSPENDED), USE(100, 0, FRAGI_USE_BUSY),
		  USE(140, 0, FRAGI_USE_INPUT)},
		 {TICK(20, 30, 0)},
		 "a: [does not run 0 20] [waits for a message 100 300]"},
		/* Ticks at the borders leave no wait of no time. */
		{{USE(0, 0, FRAGI_USE_INPUT)},
		 {TICK(0, 10, 0), TICK(10, 20, 0), TICK(290, 300, 0)},
		 "a: [waits for a message 20 290]"},
		/* Each has its own ticks; one without a name is called an operator. */
		{{USE(0, 0, FRAGI_USE_INPUT), USE(0, 1, FRAGI_USE_TIME),
		  USE(0, 2, FRAGI_USE_THREAD)},
		 {TICK(100, 110, 0), TICK(50, 60, 1), TICK(70, 80, 2)},
		 "a: [waits for a message 0 100] [waits for a message 110 300]"
		 "b: [waits for a time 0 50] [waits for a time 60 300]"
		 "operator: [waits for a thread 0 70] [waits for a thread 80 300]"},
		{{USE(0, 0, FRAGI_USE_MEMORY), USE(0, 3, FRAGI_USE_MEMORY)},
		 {TICK(100, 110, 1)},
		 "a: [waits for memory 0 300]operator: [waits for memory 0 300]"},
		{{USE(0, 0, FRAGI_USE_MEMORY), USE(0, 9, FRAGI_USE_MEMORY)},
		 {TICK(100, 110, 1)},
		 "a: [waits for memory 0 300]operator: [waits for memory 0 300]"},
		{{USE(0, 0, FRAGI_USES), USE(10, 0, FRAGI_USES + 100)}, {TICK(100, 110, 0)}, "a:"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		cr_expect_str_eq(write(rows[i].samples, rows[i].ticks), rows[i].written,
				 "row %zu: %s", i, written);
}

static const struct trace_tick no_ticks[MOST];

/* Work of a GPU is written one behind the other, as its track can show it. */
Test(trace_waits, work_of_a_gpu_does_not_overlap)
{
	static const struct trace_sample samples[MOST] = {
		{.at_ns = 10, .value = 20, .kind = FRAGI_TRACE_GPU},
		{.at_ns = 25, .value = 10, .kind = FRAGI_TRACE_GPU},
		{.at_ns = 31, .value = 2, .kind = FRAGI_TRACE_GPU},
		{.at_ns = 35, .value = 5, .kind = FRAGI_TRACE_GPU},
		{.at_ns = 5, .value = 1, .row = 2, .kind = FRAGI_TRACE_GPU},
		{.at_ns = 6, .value = 1, .row = 3, .kind = FRAGI_TRACE_GPU},
	};

	cr_expect_str_eq(write(samples, no_ticks),
			 "a: GPU: [work 10 30] [work 30 35] [work 35 40]operator: GPU: [work 5 6]"
			 "operator: GPU: [work 6 7]",
			 "%s", written);
}

/* What a host says of late messages may be anything. */
Test(trace_waits, late_messages_name_what_is_to_blame)
{
	static const struct trace_sample samples[MOST] = {
		{.at_ns = 10, .value = 2000, .row = 1, .kind = FRAGI_TRACE_LATE, .blamed = 1},
		{.at_ns = 20,
		 .value = 3000,
		 .row = 1,
		 .kind = FRAGI_TRACE_LATE,
		 .blamed = 2,
		 .cause = FRAGI_BLAME_CAUSES},
		{.at_ns = 30,
		 .value = 4000,
		 .row = 1,
		 .kind = FRAGI_TRACE_LATE,
		 .blamed = 0,
		 .cause = FRAGI_BLAME_CAUSES},
		{.at_ns = 40,
		 .value = 5000,
		 .row = 1,
		 .kind = FRAGI_TRACE_LATE,
		 .blamed = 3,
		 .cause = FRAGI_BLAME_CAUSES},
		{.at_ns = 50,
		 .value = 6000,
		 .row = 1,
		 .kind = FRAGI_TRACE_LATE,
		 .blamed = 4,
		 .cause = FRAGI_BLAME_CAUSES + 7},
	};
	char expected[400];

	snprintf(
		expected, sizeof(expected),
		"b: late messages: 10 late after 2.0 us: a %s 20 late after 3.0 us: b cause not known "
		"30 late after 4.0 us: cause not known 40 late after 5.0 us: cause not known "
		"50 late after 6.0 us: cause not known",
		fragi_blame_text((enum fragi_blame_cause)0));
	cr_expect_str_eq(write(samples, no_ticks), expected, "%s", written);
}

/* Pools and flows that are not named, or are none, are left out. */
Test(trace_waits, levels_are_counters)
{
	static const struct trace_sample samples[MOST] = {
		{.at_ns = 10, .value = 3, .row = 0, .kind = FRAGI_TRACE_POOL},
		{.at_ns = 20, .value = 1, .row = 0, .kind = FRAGI_TRACE_POOL},
		{.at_ns = 10, .value = 3, .row = 1, .kind = FRAGI_TRACE_POOL},
		{.at_ns = 10, .value = 3, .row = FRAGI_POOLS_MAX, .kind = FRAGI_TRACE_POOL},
		{.at_ns = 30, .value = 7, .row = 0, .kind = FRAGI_TRACE_LOST},
		{.at_ns = 30, .value = 7, .row = 1, .kind = FRAGI_TRACE_LOST},
		{.at_ns = 30, .value = 7, .row = 2, .kind = FRAGI_TRACE_LOST},
	};

	cr_expect_str_eq(write(samples, no_ticks),
			 "f.pool: blocks in use: 10=3 20=1a.out -> b.in: dropped: 30=7", "%s",
			 written);
}
