// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fragctl/metrics.h>

#define MS UINT64_C(1000000)
#define NONE FRAGI_LOOK_NONE

/* A page as a text of its own. */
static char *page_of(const struct ctl_metrics_source *source)
{
	char *text, *copy;
	size_t size;

	cr_assert_eq(ctl_metrics_write(source, &text, &size), 0);
	copy = strndup(text, size);
	free(text);
	cr_assert_eq(copy[strlen(copy) - 1], '\n');
	return copy;
}

static void assert_line(const char *page, const char *line)
{
	char whole[1024];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	cr_expect_not_null(strstr(page, whole), "%s is not in\n%s", line, page);
}

static void assert_none(const char *page, const char *text)
{
	cr_expect_null(strstr(page, text), "%s is in\n%s", text, page);
}

static const struct fragi_late_place late_places[] = {
	{"source.tx", "sink.rx", "right", {[FRAGI_BLAME_NETWORK] = 7, [FRAGI_BLAME_QUEUE] = 2}}};
static struct fragi_look_operator operators[] = {
	{.name = "source.tx",
	 .use_sums = {20 * MS, 0, 740 * MS, 0, 0, 240 * MS + 1, 0},
	 .ticks_sum = 18,
	 .promised_mhz = 29970,
	 .compute = {.count = 18,
		     .bars = {10, 0, 7, [FRAGI_HIST_BARS - 1] = 1},
		     .total_ns = 5 * MS}},
	{.name = "sink.rx",
	 .ticks_sum = 12345678901234567890u,
	 .deadline_misses_sum = 3,
	 .late_sums = {[FRAGI_BLAME_NETWORK] = 9},
	 .late_places = late_places,
	 .late_place_count = 1,
	 .has_ended = true},
};
static struct fragi_look_flow flows[] = {
	{.from = "source.tx.out",
	 .to = "sink.rx.in",
	 .receiver = 1,
	 .capacity = 4,
	 .sent_sum = 40,
	 .delivered_sum = 25,
	 .lost_sum = 2,
	 .bytes_sum = 4096,
	 .dropped_sums = {[FRAGI_DROP_QUEUE_FULL] = 7, [FRAGI_DROP_DEADLINE] = 5},
	 .full_ns_sum = 1,
	 .depth = 1},
	{.from = "timed.tx.out", .to = "sink.rx.in", .receiver = 1, .is_timed = true},
};
static struct fragi_look_host hosts[] = {
	{.name = "source", .restarts = 2, .cpu_sum_ns = 1500 * MS, .rss_bytes = 4096},
	{.name = "sink", .suspended_because = "it is started again"},
};
static struct fragi_look_pool pools[] = {
	{.name = "source.frames",
	 .blocks = 8,
	 .block_bytes = 4096,
	 .used = 7,
	 .empty_ns = 5,
	 .refused_sum = 3,
	 .empty_sum_ns = 1500 * MS},
};
static struct fw_application_row applications[] = {
	{.run = 7, .name = "slow", .state = "running", .age_ns = 2000000000},
	{.run = 9, .name = "held", .state = "waiting", .age_ns = 1},
};
static struct fw_worker_row workers[] = {
	{.name = "no\"de\\1\n\xff\xc3\xbc", .state = "live", .cores = 8, .fragments = 2},
	{.name = "b", .state = "lost", .drained = true},
	{.name = "c", .state = "left"},
	{.name = "b", .state = "live"},
};
static struct fw_ended_row ended[] = {
	{.name = "old", .result = FRAGI_SUMMARY_FAILED, .age_ns = 3500000000},
	{.name = "old", .result = FRAGI_SUMMARY_DONE, .age_ns = 9000000000},
	{.name = "slow", .result = FRAGI_SUMMARY_STOPPED, .age_ns = 4000000000},
};
static struct fw_reply state = {.applications = applications,
				.application_count = 2,
				.workers = workers,
				.worker_count = 4,
				.ended = ended,
				.ended_count = 3,
				.notices = {[FW_NOTICE_REFUSED] = 2, [FW_NOTICE_MIGRATED] = 9},
				.state_bytes = 1000,
				.certificate_ends_unix_s = 1800000000,
				.started_unix_s = 1790000000,
				.more = 6};

static struct ctl_top_app slow(enum fragi_cause_kind kind)
{
	return (struct ctl_top_app){.look = {.application = "slow",
					     .operators = operators,
					     .operator_count = 2,
					     .flows = flows,
					     .flow_count = 2,
					     .hosts = hosts,
					     .host_count = 2,
					     .pools = pools,
					     .pool_count = 1,
					     .operators_left_out = 4,
					     .flows_left_out = 5},
				    .cause = {.kind = kind, .op = 1, .flow = 0, .host = NONE}};
}

Test(metrics, every_number_is_where_it_belongs)
{
	struct ctl_top_app app = slow(FRAGI_CAUSE_OPERATOR);
	char *page = page_of(&(struct ctl_metrics_source){&state, &app, 1});

	assert_line(page, "frag_driver_up 1");
	assert_line(page, "frag_build_info{version=\"" FRAG_VERSION "\"} 1");
	assert_line(page, "frag_driver_start_time_seconds 1790000000");
	assert_line(page, "frag_driver_state_bytes 1000");
	assert_line(page, "frag_driver_state_free_bytes 0");
	assert_line(page, "frag_driver_certificate_expiry_timestamp_seconds 1800000000");
	assert_line(page, "frag_events_total{kind=\"refused\"} 2");
	assert_line(page, "frag_events_total{kind=\"migrated\"} 9");
	assert_line(page, "frag_events_total{kind=\"start\"} 0");
	assert_line(page, "frag_application_state{app=\"slow\",state=\"running\"} 1");
	assert_line(page, "frag_application_state{app=\"held\",state=\"waiting\"} 1");
	assert_line(page, "frag_application_run{app=\"held\"} 9");
	assert_line(page, "frag_application_age_seconds{app=\"slow\"} 2");
	assert_line(page, "frag_application_age_seconds{app=\"held\"} 0.000000001");
	assert_line(page, "frag_application_ended_age_seconds{app=\"old\",result=\"failed\"} 3.5");
	assert_none(page, "result=\"done\""); /* of an earlier run of that name */
	assert_line(page, "frag_application_slow{app=\"slow\"} 1");
	assert_line(
		page,
		"frag_application_root_cause{app=\"slow\",kind=\"operator\",operator=\"sink.rx\",flow_from=\"source.tx.out\"} 1");
	assert_line(page, "frag_worker_up{worker=\"no\\\"de\\\\1\\n?\xc3\xbc\"} 1");
	assert_line(page, "frag_worker_up{worker=\"b\"} 0");
	assert_none(page, "frag_worker_up{worker=\"b\"} 1"); /* no series twice */
	assert_none(page, "worker=\"c\"");
	assert_line(page, "frag_worker_drained{worker=\"b\"} 1");
	assert_line(page, "frag_worker_cores{worker=\"no\\\"de\\\\1\\n?\xc3\xbc\"} 8");
	assert_line(page, "frag_host_restarts_total{app=\"slow\",host=\"source\"} 2");
	assert_line(page, "frag_host_cpu_seconds_total{app=\"slow\",host=\"source\"} 1.5");
	assert_none(page, "frag_host_cpu_seconds_total{app=\"slow\",host=\"sink\"}");
	assert_line(page, "frag_host_suspended{app=\"slow\",host=\"sink\"} 1");
	assert_line(page, "frag_host_suspended{app=\"slow\",host=\"source\"} 0");
	assert_line(page, "frag_pool_blocks{app=\"slow\",pool=\"source.frames\"} 8");
	assert_line(page, "frag_pool_block_bytes{app=\"slow\",pool=\"source.frames\"} 4096");
	assert_line(page, "frag_pool_used_blocks{app=\"slow\",pool=\"source.frames\"} 7");
	assert_line(page, "frag_pool_empty_seconds_total{app=\"slow\",pool=\"source.frames\"} 1.5");
	assert_line(page, "frag_pool_refused_total{app=\"slow\",pool=\"source.frames\"} 3");
	assert_line(
		page,
		"frag_operator_ticks_total{app=\"slow\",operator=\"sink.rx\"} 12345678901234567890");
	assert_line(
		page,
		"frag_operator_time_seconds_total{app=\"slow\",operator=\"source.tx\",use=\"room\"} 0.74");
	assert_line(
		page,
		"frag_operator_time_seconds_total{app=\"slow\",operator=\"source.tx\",use=\"time\"} 0.240000001");
	assert_line(page,
		    "frag_operator_promised_hertz{app=\"slow\",operator=\"source.tx\"} 29.97");
	assert_none(page, "frag_operator_promised_hertz{app=\"slow\",operator=\"sink.rx\"}");
	assert_line(page,
		    "frag_operator_deadline_misses_total{app=\"slow\",operator=\"sink.rx\"} 3");
#define LATE "frag_operator_late_messages_total{app=\"slow\",operator="
	assert_line(page, LATE "\"sink.rx\",cause=\"network\"} 9");
	assert_line(page, LATE "\"sink.rx\",cause=\"window\"} 0");
	assert_none(page, LATE "\"source.tx\"");
#define LATE_AT "frag_operator_late_messages_at_total{app=\"slow\",operator="
	assert_line(page, LATE_AT "\"sink.rx\",at=\"source.tx -> sink.rx\",cause=\"network\"} 7");
	assert_line(page, LATE_AT "\"sink.rx\",at=\"sink.rx\",cause=\"queue\"} 2");
	assert_none(page, "at=\"sink.rx\",cause=\"compute\"");
	assert_none(page, LATE_AT "\"source.tx\"");
	assert_line(page, "frag_operator_ended{app=\"slow\",operator=\"sink.rx\"} 1");
#define FLOW "{app=\"slow\",flow=\"source.tx.out -> sink.rx.in\""
	assert_line(page, "frag_flow_messages_sent_total" FLOW "} 40");
	assert_line(page, "frag_flow_messages_delivered_total" FLOW "} 25");
	assert_line(page, "frag_flow_messages_dropped_total" FLOW ",reason=\"queue_full\"} 7");
	assert_line(page, "frag_flow_messages_dropped_total" FLOW ",reason=\"deadline\"} 5");
	assert_line(page, "frag_flow_messages_dropped_total" FLOW ",reason=\"no_room\"} 0");
	assert_none(page, FLOW ",reason=\"stale\"}"); /* its receiver has no timing */
	assert_line(
		page,
		"frag_flow_messages_dropped_total{app=\"slow\",flow=\"timed.tx.out -> sink.rx.in\",reason=\"stale\"} 0");
	assert_line(page, "frag_flow_messages_lost_total" FLOW "} 2");
	assert_line(page, "frag_flow_messages_in_flight" FLOW "} 1");
	assert_line(page, "frag_flow_capacity_messages" FLOW "} 4");
	assert_line(page, "frag_flow_sent_bytes_total" FLOW "} 4096");
	assert_line(page, "frag_flow_full_seconds_total" FLOW "} 0.000000001");
	assert_line(page, "frag_left_out_rows{of=\"operator\"} 4");
	assert_line(page, "frag_left_out_rows{of=\"flow\"} 5");
	assert_line(page, "frag_left_out_rows{of=\"state\"} 6");
	free(page);
}

/* A number of each length, with the one before and the one behind it. */
Test(metrics, numbers_of_each_length_are_whole)
{
	struct fragi_look_flow each[64] = {{0}};
	struct ctl_top_app app = {.look = {.application = "a", .flows = each}};
	char names[64][8], line[160], *page;
	uint64_t number = 1;

	for (uint32_t i = 0; i < 61; i++) {
		snprintf(names[i], sizeof(names[i]), "f%u", i);
		each[i] = (struct fragi_look_flow){.from = names[i],
						   .to = "x",
						   .sent_sum = number + i % 3 - 1,
						   .full_ns_sum = number + i % 3 - 1};
		number *= i % 3 == 2 && number < 10000000000000000000u ? 10 : 1;
	}
	each[60].sent_sum = each[60].full_ns_sum = UINT64_MAX;
	app.look.flow_count = 61;
	page = page_of(&(struct ctl_metrics_source){NULL, &app, 1});
	for (uint32_t i = 0; i < 61; i++) {
		int size =
			snprintf(line, sizeof(line),
				 "frag_flow_messages_sent_total{app=\"a\",flow=\"f%u -> x\"} %llu",
				 i, (unsigned long long)each[i].sent_sum);

		cr_assert_lt((size_t)size, sizeof(line));
		assert_line(page, line);
		size = snprintf(
			line, sizeof(line),
			"frag_flow_full_seconds_total{app=\"a\",flow=\"f%u -> x\"} %llu.%09llu", i,
			(unsigned long long)(each[i].full_ns_sum / 1000000000),
			(unsigned long long)(each[i].full_ns_sum % 1000000000));
		while (line[size - 1] == '0' && strchr(line, '.') != NULL)
			line[--size] = '\0';
		if (line[size - 1] == '.')
			line[--size] = '\0';
		assert_line(page, line);
	}
	free(page);
}

Test(metrics, histograms_are_cumulative_and_shown_when_they_are_known)
{
	struct ctl_top_app app = slow(FRAGI_CAUSE_NONE);
	char *page = page_of(&(struct ctl_metrics_source){&state, &app, 1});

#define TX "{app=\"slow\",operator=\"source.tx\""
	assert_line(page, "frag_operator_compute_seconds_bucket" TX ",le=\"0.000004096\"} 10");
	assert_line(page, "frag_operator_compute_seconds_bucket" TX ",le=\"0.000016384\"} 10");
	assert_line(page, "frag_operator_compute_seconds_bucket" TX ",le=\"0.000065536\"} 17");
	assert_line(page, "frag_operator_compute_seconds_bucket" TX ",le=\"4.294967296\"} 17");
	assert_line(page, "frag_operator_compute_seconds_bucket" TX ",le=\"+Inf\"} 18");
	assert_line(page, "frag_operator_compute_seconds_sum" TX "} 0.005");
	assert_line(page, "frag_operator_compute_seconds_count" TX "} 18");
	assert_none(page, "frag_operator_compute_seconds_count{app=\"slow\",operator=\"sink.rx\"}");
	assert_none(page, "frag_flow_latency_seconds_count{");
	/* Nothing is wrong: what bounds the rate is no root cause. */
	assert_line(page, "frag_application_slow{app=\"slow\"} 0");
	assert_none(page, "frag_application_root_cause{");
	free(page);
}

Test(metrics, without_a_driver_it_says_so_and_no_more)
{
	char *page = page_of(&(struct ctl_metrics_source){0});

	assert_line(page, "frag_driver_up 0");
	assert_line(page, "frag_left_out_rows{of=\"operator\"} 0");
	assert_none(page, "{app=");
	assert_none(page, "{worker=");
	assert_none(page, "{kind=");
	free(page);
	/* A driver without a folder and a certificate. */
	page = page_of(&(struct ctl_metrics_source){.state = &(struct fw_reply){0}});
	assert_line(page, "frag_driver_up 1");
	assert_none(page, "\nfrag_driver_state_");
	assert_none(page, "\nfrag_driver_certificate_");
	free(page);
}

/* Tables of n operators and as many flows. */
static struct fragi_look large(uint32_t n)
{
	struct fragi_look_operator *ops = calloc(n, sizeof(*ops));
	struct fragi_look_flow *all = calloc(n, sizeof(*all));

	for (uint32_t i = 0; i < n; i++) {
		char *name = malloc(64), *from = malloc(64), *to = malloc(64);

		snprintf(name, 64, "fragment%u.detector%u", i / 10, i);
		snprintf(from, 64, "fragment%u.detector%u.output", i / 10, i);
		snprintf(to, 64, "fragment%u.detector%u.input", (i + 1) / 10, i + 1);
		ops[i] = operators[0];
		ops[i].name = name;
		ops[i].ticks_sum = 1000000 + i;
		all[i] = flows[0];
		all[i].from = from;
		all[i].to = to;
		all[i].sent_sum = 1000000 + i;
		all[i].latency = operators[0].compute;
	}
	return (struct fragi_look){.application = "endoscopy",
				   .operators = ops,
				   .operator_count = n,
				   .flows = all,
				   .flow_count = n};
}

static void free_large(struct fragi_look *look)
{
	for (uint32_t i = 0; i < look->flow_count; i++) {
		free((char *)(uintptr_t)look->operators[i].name);
		free((char *)(uintptr_t)look->flows[i].from);
		free((char *)(uintptr_t)look->flows[i].to);
	}
	free((void *)(uintptr_t)look->operators);
	free((void *)(uintptr_t)look->flows);
}

static uint32_t lines_with(const char *page, const char *begin)
{
	uint32_t count = 0;

	for (const char *line = page; line != NULL; line = strchr(line, '\n')) {
		line += line[0] == '\n';
		count += strncmp(line, begin, strlen(begin)) == 0;
	}
	return count;
}

Test(metrics, a_page_is_bounded_and_counts_what_it_leaves_out)
{
	struct ctl_top_app apps[2] = {{.look = large(CTL_METRICS_ROWS_MAX - 1)},
				      {.look = large(4)}};
	char *page = page_of(&(struct ctl_metrics_source){.apps = apps, .app_count = 2});

	apps[1].look.application = "other";
	cr_expect_eq(lines_with(page, "frag_operator_ticks_total{"), CTL_METRICS_ROWS_MAX);
	cr_expect_eq(lines_with(page, "frag_flow_messages_lost_total{"), CTL_METRICS_ROWS_MAX);
	assert_line(page, "frag_left_out_rows{of=\"operator\"} 3");
	assert_line(page, "frag_left_out_rows{of=\"flow\"} 3");
	free(page);
	free_large(&apps[0].look);
	free_large(&apps[1].look);
}

/* Prints what it costs; the load of the machine decides, so nothing is expected of it. */
Test(metrics, a_page_of_a_thousand_operators_and_flows)
{
	struct ctl_top_app app = {.look = large(1000)};
	struct timespec begun, ended_at;
	int64_t best_us = INT64_MAX;
	char *text;
	size_t size;

	for (int i = 0; i < 10; i++) {
		int64_t us;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
		cr_assert_eq(ctl_metrics_write(
				     &(struct ctl_metrics_source){.apps = &app, .app_count = 1},
				     &text, &size),
			     0);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended_at);
		us = (ended_at.tv_sec - begun.tv_sec) * 1000000 +
		     (ended_at.tv_nsec - begun.tv_nsec) / 1000;
		best_us = us < best_us ? us : best_us;
		free(text);
	}
	fprintf(stderr, "a page of %zu bytes: %lld us of CPU\n", size, (long long)best_us);
	cr_expect_lt(size, 8u << 20);
	free_large(&app.look);
}
