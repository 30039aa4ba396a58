// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <track/late.h>
#include <track/summary.h>

#include "printed.h"

static const struct fragi_summary_operator operators[] = {
	{.name = "replayer",
	 .type = "video_replayer",
	 .ticks = 300,
	 .compute = {.count = 299, .p50 = 1, .p99 = 2, .max = 3},
	 .time_ns = 400,
	 .waiting_ns = 500},
};
static const struct fragi_summary_fragment fragments[] = {
	{.name = "fragment1",
	 .worker = "a",
	 .host_pid = 42,
	 .state = "done",
	 .epoch = 1,
	 .operators = operators,
	 .operator_count = 1},
	{.name = "fragment2", .state = "waiting"},
};
static const struct fragi_summary_flow flows[] = {
	{.from = "fragment1.replayer.output",
	 .to = "fragment2.conv.source_video",
	 .edge = "ucx",
	 .edge_detail = "ucx tcp lo",
	 .capacity = 4,
	 .policy = "block",
	 .sent = 303,
	 .delivered = 300,
	 .lost = 1,
	 .exact = true,
	 .bytes = 7,
	 .copied_out = 1000000,
	 .copied_in = 2000000,
	 .dropped = {[FRAGI_DROP_QUEUE_FULL] = 2},
	 .latency = {300, 41000, 88000, 200000, 210000}},
	{.from = "a.b.c",
	 .to = "d.e.f",
	 .edge = "inproc",
	 .capacity = 1,
	 .policy = "pop",
	 .sent = 1,
	 .in_flight = 1,
	 .exact = true,
	 .latency_reason = "the ends are on two nodes"},
};
static const struct fragi_summary summary = {
	.application = "video",
	.result = FRAGI_SUMMARY_DONE,
	.started_unix_ns = 5,
	.first_message_ns = 6,
	.duration_ns = 30100000000,
	.shutdown_ns = 8,
	.fragments = fragments,
	.fragment_count = 2,
	.flows = flows,
	.flow_count = 1,
};

static char *printed(const struct fragi_summary *s,
		     int (*print)(const struct fragi_summary *, FILE *))
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(print(s, out), 0);
	fclose(out);
	return text;
}

Test(summary, the_table_is_aligned)
{
	char *text = printed(&summary, fragi_summary_print_table);

	cr_expect_str_eq(
		text,
		"video: done in 30.1 s\n"
		"flow                                                      sent  delivered  dropped  lost   copied  latency p50    p99     max  edge\n"
		"fragment1.replayer.output -> fragment2.conv.source_video   303        300        2     1  2.9 MiB        41 us  88 us  210 us  ucx tcp lo\n");
	free(text);
}

/* Nobody believes that a message takes 10 ns, and it does not. */
Test(summary, the_table_shows_no_latency_below_what_is_measured)
{
	struct fragi_summary_flow flow = {.from = "a", .to = "b", .edge = "inproc", .exact = true};
	struct fragi_summary s = {.application = "hop", .flows = &flow, .flow_count = 1};
	char *text;

	flow.latency = (struct fragi_quantiles){.count = 9, .p50 = 10, .p99 = 99, .max = 100};
	text = printed(&s, fragi_summary_print_table);
	cr_expect_str_eq(
		strstr(text, "a ->"),
		"a -> b     0          0        0     0      <100 ns  <100 ns  100 ns  inproc\n",
		"%s", text);
	free(text);
	text = printed(&s, fragi_summary_print_json);
	cr_expect_not_null(strstr(text, "\"p50\": 10, \"p99\": 99"), "as it was counted");
	free(text);
}

Test(summary, what_is_in_flight_is_shown_when_there_is_something)
{
	struct fragi_summary s = summary;
	char *text;

	s.flow_count = 2;
	s.result = FRAGI_SUMMARY_FAILED;
	s.failure = (struct fragi_summary_failure){FRAGI_FAILURE_HOST_CRASHED, "fragment1 crashed",
						   NULL, NULL};
	text = printed(&s, fragi_summary_print_table);
	cr_expect_eq(strncmp(text, "video: failed after 30.1 s\n", 27), 0);
	EXPECT_IN(text, "in flight");
	cr_expect_not_null(strstr(text, "  -  "), "there is no latency");
	free(text);
	s.flow_count = 0;
	text = printed(&s, fragi_summary_print_table);
	cr_expect_str_eq(text, "video: failed after 30.1 s\n");
	free(text);
}

Test(summary, ticks_without_a_message_have_a_line)
{
	static const struct fragi_summary_flow absent[] = {
		{.from = "a",
		 .to = "b",
		 .edge = "shm",
		 .policy = "latest",
		 .absent_late = 2,
		 .absent_stale = 1,
		 .absent_window = 3,
		 .absent_dropped = 4,
		 .absent_ended = 5,
		 .absent_clocks = 6,
		 .reused = 7},
		{.from = "c", .to = "d", .edge = "shm", .policy = "block"},
		{.from = "e", .to = "f", .edge = "shm", .policy = "block", .absent_ended = 1},
	};
	struct fragi_summary of = {.application = "app", .flows = absent, .flow_count = 3};
	char *text = printed(&of, fragi_summary_print_table);

	EXPECT_IN(
		text,
		"\na -> b: absent in 21 ticks (2 late, 1 stale, 3 window timed out, 4 dropped upstream, 5 source ended, 6 clocks not comparable), reused in 7\n"
		"e -> f: absent in 1 tick (1 source ended)\n");
	cr_expect_null(strstr(text, "c -> d: "));
	free(text);
	text = printed(&of, fragi_summary_print_json);
	EXPECT_IN(
		text,
		"\"reused\": 7, \"absent_late\": 2, \"absent_stale\": 1, \"absent_window\": 3, \"absent_dropped\": 4, \"absent_ended\": 5, \"absent_clocks\": 6");
	free(text);
}

Test(summary, operators_that_missed_deadlines_have_a_line)
{
	static const struct fragi_late_place places[] = {
		{NULL, "f.a", "left", {[FRAGI_BLAME_COMPUTE] = 2}},
		{"f.a", "g.c", "right", {[FRAGI_BLAME_NETWORK] = 3, [FRAGI_BLAME_QUEUE] = 5}},
	};
	static const struct fragi_summary_operator late[] = {
		{.name = "a", .type = "t", .slowest = 4},
		{.name = "b", .type = "t"},
		{.name = "c",
		 .type = "t",
		 .deadline_misses = 2,
		 .path_misses = 12,
		 .slowest = 1,
		 .late_queue = 5,
		 .late_compute = 2,
		 .late_network = 4,
		 .late_clock = 1,
		 .late_places = places,
		 .late_place_count = 2},
	};
	static const struct fragi_summary_fragment fragment = {
		.name = "f", .state = "done", .operators = late, .operator_count = 3};
	struct fragi_summary of = {
		.application = "app", .fragments = &fragment, .fragment_count = 1};
	char *text = printed(&of, fragi_summary_print_table);

	cr_expect_str_eq(
		strchr(text, '\n') + 1,
		"f.a: 4 times the slowest of a path that was late\n"
		"f.c: 2 past its deadline, 12 past the deadline of a path (5 g.c on worker right waited in queue, 3 f.a -> g.c network, 2 f.a on worker left computed long, 1 network, 1 clock unsure), 1 times the slowest of a path that was late\n",
		"%s", text);
	free(text);
	text = printed(&of, fragi_summary_print_json);
	EXPECT_IN(
		text,
		"\"deadline_misses\": 2, \"path_misses\": 12, \"slowest\": 1, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0, "
		"\"late\": {\"queue\": 5, \"compute\": 2, \"preempted\": 0, \"thread\": 0, \"pool\": 0, \"window\": 0, \"network\": 4, \"gpu\": 0, \"restart\": 0, \"clock\": 1}, "
		"\"late_places\": [{\"from\": null, \"at\": \"f.a\", \"worker\": \"left\", \"late\": {\"compute\": 2}}, "
		"{\"from\": \"f.a\", \"at\": \"g.c\", \"worker\": \"right\", \"late\": {\"queue\": 5, \"network\": 3}}]}");
	free(text);
}

/* Six of them, the most frequent ones; of equal ones the first. */
Test(summary, of_many_places_of_late_messages_the_worst_are_shown)
{
	static const struct fragi_late_place places[] = {
		{NULL, "a", NULL, {[FRAGI_BLAME_POOL] = 3}},
		{"a", "b", NULL, {[FRAGI_BLAME_WINDOW] = 9, [FRAGI_BLAME_GPU] = 3}},
		{"b", "c", NULL, {[FRAGI_BLAME_RESTART] = 2, [FRAGI_BLAME_THREAD] = 4}},
		{NULL, "c", NULL, {[FRAGI_BLAME_WINDOW] = 8}},
	};
	const uint64_t late[FRAGI_BLAME_CAUSES] = {
		[FRAGI_BLAME_POOL] = 3,    [FRAGI_BLAME_WINDOW] = 17, [FRAGI_BLAME_GPU] = 3,
		[FRAGI_BLAME_RESTART] = 2, [FRAGI_BLAME_THREAD] = 4,  [FRAGI_BLAME_CLOCK] = 1,
		[FRAGI_BLAME_QUEUE] = 2};
	char text[FRAGI_LATE_TEXT_SIZE];

	cr_expect_str_eq(
		fragi_late_text(late, places, 4, text),
		"9 a -> b window closed, 8 c window closed, 4 c no thread, 3 a pool empty, 3 b GPU queue, 2 b -> c restart, 3 others");
	cr_expect_str_eq(
		fragi_late_text(late, places, 0, text),
		"17 window closed, 4 no thread, 3 pool empty, 3 GPU queue, 2 waited in queue, 2 restart, 1 others");
	cr_expect_str_eq(fragi_late_text((const uint64_t[FRAGI_BLAME_CAUSES]){0}, places, 0, text),
			 "");
}

Test(summary, what_is_not_known_exactly_is_a_range)
{
	static const struct fragi_summary_flow lost[] = {
		{.from = "a",
		 .to = "b",
		 .edge = "ucx",
		 .policy = "block",
		 .sent = 303,
		 .delivered = 299,
		 .lost = 4,
		 .sent_at_least = 303,
		 .sent_at_most = 303,
		 .delivered_at_least = 290,
		 .delivered_at_most = 301,
		 .lost_at_least = 2},
		{.from = "c",
		 .to = "d",
		 .edge = "inproc",
		 .policy = "block",
		 .sent = 8,
		 .delivered = 7,
		 .lost = 1,
		 .sent_at_least = 7,
		 .sent_at_most = FRAGI_SUMMARY_OPEN,
		 .delivered_at_least = 7,
		 .delivered_at_most = FRAGI_SUMMARY_OPEN},
	};
	struct fragi_summary of = {.application = "video", .flows = lost, .flow_count = 2};
	char *text = printed(&of, fragi_summary_print_table);

	cr_expect_str_eq(strchr(text, '\n') + 1,
			 "flow    sent  delivered  dropped  lost  latency p50  p99  max  edge\n"
			 "a -> b   303    290-301        0   2-4            -    -    -  ucx\n"
			 "c -> d    7+         7+        0   0-1            -    -    -  inproc\n",
			 "%s", text);
	free(text);
	text = printed(&of, fragi_summary_print_json);
	EXPECT_IN(text, "\"sent\": 303, \"delivered\": 299, ",
		  "\"lost\": 4, \"in_flight\": 0, \"exact\": false, "
		  "\"lost_at_least\": 2, \"delivered_at_least\": 290, ");
	free(text);
	for (int i = 0; i < 2; i++)
		cr_expect(fragi_summary_flow_balances(&lost[i]));
}

Test(summary, the_json_is_one_document)
{
	char *text = printed(&summary, fragi_summary_print_json);

	cr_expect_str_eq(
		text,
		"{\"application\": \"video\", \"result\": \"done\", \"reason\": null, \"exit_code\": 0,\n"
		" \"started_unix_ns\": 5, \"first_message_ns\": 6, \"duration_ns\": 30100000000, \"shutdown_ns\": 8,\n"
		" \"fragments\": [\n"
		"  {\"name\": \"fragment1\", \"worker\": \"a\", \"host_pid\": 42, \"state\": \"done\", \"epoch\": 1, \"restarts\": 0,\n"
		"   \"operators\": [{\"name\": \"replayer\", \"type\": \"video_replayer\", \"ticks\": 300, \"compute_ns\": {\"p50\": 1, \"p99\": 2, \"max\": 3}, \"job\": {\"count\": 299, \"time_ns\": 400, \"waiting_ns\": 500}, \"deadline_misses\": 0, \"path_misses\": 0, \"slowest\": 0, \"path_clocks\": 0, \"skipped\": 0, \"removed\": 0, \"held_back\": 0, \"outdated\": 0}]},\n"
		"  {\"name\": \"fragment2\", \"worker\": null, \"host_pid\": 0, \"state\": \"waiting\", \"epoch\": 0, \"restarts\": 0,\n"
		"   \"operators\": []}],\n"
		" \"flows\": [\n"
		"  {\"from\": \"fragment1.replayer.output\", \"to\": \"fragment2.conv.source_video\", \"edge\": \"ucx\", \"encrypted\": false, \"capacity\": 4, \"policy\": \"block\",\n"
		"   \"sent\": 303, \"delivered\": 300, \"dropped\": {\"queue_full\": 2, \"no_room\": 0, \"receiver_done\": 0, \"stopped\": 0, \"stale\": 0, \"late\": 0, \"superseded\": 0, \"skipped\": 0, \"clocks_not_comparable\": 0, \"deadline\": 0}, \"lost\": 1, \"in_flight\": 0, \"exact\": true, \"bytes\": 7, \"reused\": 0, \"absent_late\": 0, \"absent_stale\": 0, \"absent_window\": 0, \"absent_dropped\": 0, \"absent_ended\": 0, \"absent_clocks\": 0, \"copied_bytes\": 3000000,\n"
		"   \"latency_ns\": {\"count\": 300, \"p50\": 41000, \"p99\": 88000, \"p999\": 200000, \"max\": 210000}}]}\n");
	free(text);
}

Test(summary, texts_of_any_bytes_make_valid_json)
{
	struct fragi_summary s = {.application = "q\"b\\n\nc\x01",
				  .failure.sentence =
					  "\xC3\xA9 \xC3 \xED\xA0\x80 \xF0\x9F\x98\x80 \xFF"};
	char *text = printed(&s, fragi_summary_print_json);

	EXPECT_IN(text, "\"q\\\"b\\\\n\\u000ac\\u0001\"",
		  "\"\xC3\xA9 \\ufffd \\ufffd\\ufffd\\ufffd \xF0\x9F\x98\x80 \\ufffd\"");
	free(text);
}

Test(summary, no_latency_has_a_reason)
{
	struct fragi_summary s = summary;
	char *text;

	s.flows = &flows[1];
	text = printed(&s, fragi_summary_print_json);
	EXPECT_IN(text, "\"latency_ns\": null, \"latency_reason\": \"the ends are on two nodes\"}");
	free(text);
}

Test(summary, balance)
{
	struct fragi_summary_flow flow = flows[0];

	cr_expect(fragi_summary_flow_balances(&flow));
	cr_expect(fragi_summary_flow_balances(&flows[1]));
	flow.lost++;
	cr_expect_not(fragi_summary_flow_balances(&flow));
}

Test(summary, the_file_appears_whole_and_a_device_stays_one)
{
	char folder[] = "/tmp/frag-summary-XXXXXX", path[64], start[8] = "", sentence[256];
	struct frag_err err = FRAG_ERR_INIT;
	struct stat st;
	FILE *in;

	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s.json", folder);
	cr_assert_eq(fragi_summary_write(&summary, path, &err), 0);
	in = fopen(path, "r");
	cr_assert_not_null(in);
	cr_expect_eq(fread(start, 1, 5, in), 5);
	cr_expect_str_eq(start, "{\"app");
	fclose(in);
	unlink(path);
	cr_expect_eq(rmdir(folder), 0, "nothing else is left in the folder");
	cr_expect_eq(fragi_summary_write(&summary, path, &err), -ENOENT);
	snprintf(
		sentence, sizeof(sentence),
		"cannot write the summary to %s: No such file or directory; give --summary a file in a folder that can be written",
		path);
	cr_expect_str_eq(err.text, sentence);
	cr_expect_eq(fragi_summary_write(&summary, "/dev/null", NULL), 0);
	cr_expect_eq(fragi_summary_check(path, &err), -ENOENT);
	EXPECT_IN(err.text, path);
	cr_expect_eq(fragi_summary_check("/tmp", NULL), -EISDIR);
	cr_expect_eq(fragi_summary_check("/tmp/frag-summary-never-written.json", NULL), 0);
	cr_expect_eq(fragi_summary_check("/dev/null", NULL), 0);
	cr_expect(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
}

Test(summary, no_link_that_somebody_planted_is_followed)
{
	char folder[] = "/tmp/frag-summary-XXXXXX", path[64], planted[96], target[96];

	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s.json", folder);
	snprintf(planted, sizeof(planted), "%s.%d.part", path, (int)getpid());
	snprintf(target, sizeof(target), "%s/target", folder);
	cr_assert_eq(symlink(target, planted), 0);
	cr_assert_eq(fragi_summary_write(&summary, path, NULL), 0);
	cr_expect_eq(access(target, F_OK), -1, "it was written through the link");
	cr_expect_eq(unlink(planted), 0);
	cr_expect_eq(unlink(path), 0);
	cr_expect_eq(rmdir(folder), 0);
}

Test(summary, promises_that_were_not_kept_are_shown)
{
	struct fragi_summary_operator ops[] = {
		{.name = "kept",
		 .compute = {.count = 100},
		 .time_ns = 100000000,
		 .waiting_ns = 900000000,
		 .predicted_rate_mhz = 110000,
		 .budget_ns = 1100000},
		{.name = "slow",
		 .compute = {.count = 100},
		 .time_ns = 1000000000,
		 .waiting_ns = 1000000000,
		 .predicted_rate_mhz = 100000,
		 .budget_ns = 5000000},
		{.name = "few",
		 .compute = {.count = 9},
		 .time_ns = 9,
		 .waiting_ns = 900000000,
		 .predicted_rate_mhz = 1000000},
		{.name = "none", .compute = {.count = 100}, .time_ns = 9, .waiting_ns = 9},
	};
	struct fragi_summary_fragment fragment = {
		.name = "f", .state = "done", .operators = ops, .operator_count = 4};
	struct fragi_summary s = {
		.application = "app", .fragments = &fragment, .fragment_count = 1};
	char *text = printed(&s, fragi_summary_print_table);

	cr_expect_str_eq(strchr(text, '\n') + 1,
			 "more than 20 % from what rates and budgets predict:\n"
			 "  f.slow: ticks predicted 100 a second, measured 50 a second\n"
			 "  f.slow: compute predicted 5.0 ms, measured 10.0 ms\n");
	free(text);
	text = printed(&s, fragi_summary_print_json);
	EXPECT_IN(text,
		  "\"predicted\": {\"rate_mhz\": 100000, \"compute_ns\": 5000000, "
		  "\"measured_rate_mhz\": 50000, \"measured_compute_ns\": 10000000, "
		  "\"differs\": true}",
		  "\"differs\": false}");
	free(text);
}
