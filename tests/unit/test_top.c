// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include <base/log.h>
#include <fragctl/table.h>
#include <fragctl/top_lines.h>
#include <fragctl/top_opened.h>

#include "printed.h"

#define MS 1000000ull
#define NONE FRAGI_LOOK_NONE

static struct fragi_look_operator operators[] = {
	{.name = "fragment1.video",
	 .type = "video_replayer",
	 .use_ns = {20 * MS, 0, 740 * MS, 0, 0, 240 * MS, 0},
	 .input_flow = NONE,
	 .room_flow = 0,
	 .ticks = 18,
	 .period_ns = 33333333,
	 .compute = {.count = 180, .p50 = 1 * MS, .p99 = 2 * MS, .p999 = 3 * MS, .max = 4 * MS}},
	{.name = "fragment2.detect",
	 .type = "detector",
	 .host = 1,
	 .use_ns = {990 * MS, 10 * MS},
	 .input_flow = 0,
	 .room_flow = NONE,
	 .ticks = 18,
	 .promised_mhz = 30000,
	 .compute =
		 {.count = 180, .p50 = 55 * MS, .p99 = 61 * MS, .p999 = 62 * MS, .max = 63 * MS}},
	{.name = "fragment2.\xc3\xbc"
		 "berblick",
	 .type = "viewer",
	 .host = 1,
	 .use_ns = {1 * MS, 999 * MS},
	 .input_flow = 1,
	 .room_flow = NONE,
	 .ticks = 1800},
};
static struct fragi_look_flow flows[] = {
	{.from = "fragment1.video.output",
	 .to = "fragment2.detect.in",
	 .sender = 0,
	 .receiver = 1,
	 .edge = "ucx",
	 .policy = "block",
	 .capacity = 4,
	 .sent = 18,
	 .full_ns = 760 * MS,
	 .depth = 4,
	 .latency = {.count = 180, .p99 = 230 * MS}},
	{.from = "fragment2.detect.out",
	 .to = "fragment2.view.receivers",
	 .sender = 1,
	 .receiver = 2,
	 .edge = "inproc",
	 .policy = "pop",
	 .capacity = 1,
	 .sent = 18,
	 .dropped = {6},
	 .dropped_sum = 60,
	 .lost_sum = 2},
};
static struct fragi_look_host hosts[] = {
	{.name = "fragment1",
	 .worker = "a",
	 .pid = 4711,
	 .threads = 2,
	 .cpu_ns = 60 * MS,
	 .rss_bytes = 30 << 20},
	{.name = "fragment2",
	 .worker = "b",
	 .pid = 4712,
	 .threads = 1,
	 .cpu_ns = 990 * MS,
	 .rss_bytes = 300 << 20,
	 .restarts = 1},
};
static struct fragi_look_worker workers[] = {
	{.name = "a",
	 .cores = 4,
	 .cpu_ns = 400 * MS,
	 .memory_bytes = 8ull << 30,
	 .memory_used_bytes = 3ull << 30,
	 .sent_bytes = 5 << 20},
};
static struct fragi_look_pool pools[] = {
	{.name = "fragment1.frames",
	 .host = 0,
	 .blocks = 8,
	 .block_bytes = 900 << 10,
	 .used = 7,
	 .empty_ns = 230 * MS,
	 .refused_sum = 5},
	/* of a GPU */
	{.name = "fragment2.masks",
	 .host = 1,
	 .blocks = 32 << 20,
	 .block_bytes = 1,
	 .used = 12 << 20},
};
static struct fragi_look_step chain[] = {
	{.op = 0, .flow = NONE, .text = "fragment1.video ticks 18 of 30 times a second"},
	{.op = 1, .flow = NONE, .text = "fragment2.detect computes 990 ms a second, 55 ms a tick"},
};
#define SENTENCE                                                                                   \
	"fragment1.video is slow (18 of 30 /s) because fragment2.detect computes 55 ms a tick on 1 thread; 2 threads or policy latest would help"

static struct ctl_top_app endoscopy(void)
{
	return (struct ctl_top_app){.look = {.application = "endoscopy",
					     .state = "running",
					     .window_ns = 1000 * MS,
					     .operators = operators,
					     .operator_count = 3,
					     .flows = flows,
					     .flow_count = 2,
					     .hosts = hosts,
					     .host_count = 2,
					     .workers = workers,
					     .worker_count = 1},
				    .cause = {.kind = FRAGI_CAUSE_OPERATOR,
					      .op = 1,
					      .flow = NONE,
					      .host = NONE,
					      .sentence = SENTENCE,
					      .help = "Write less.",
					      .chain = chain,
					      .chain_count = 2}};
}

static struct ctl_top view_of(const struct ctl_top_app *apps, uint32_t count)
{
	return (struct ctl_top){.apps = apps,
				.app_count = count,
				.where = "127.0.0.1:57777",
				.op = NONE,
				.width = 80,
				.height = 24};
}

/* All lines of a screen, in memory of the caller. */
static char *screen(struct ctl_top *top)
{
	struct ctl_top_lines body, lines;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	setlocale(LC_CTYPE, "C.UTF-8");
	cr_assert_eq(ctl_top_body(top, &body), 0);
	cr_assert_eq(ctl_top_screen(top, &body, &lines), 0);
	for (uint32_t i = 0; i < lines.count; i++) {
		cr_expect_leq(ctl_top_width(lines.items[i].text), top->width, "%s",
			      lines.items[i].text);
		fprintf(out, "%s%s\n", lines.items[i].style == CTL_TOP_SELECTED ? ">" : "",
			lines.items[i].text);
	}
	cr_expect_eq(lines.count, top->height);
	ctl_top_lines_free(&lines);
	ctl_top_lines_free(&body);
	fclose(out);
	return text;
}

/* What stands on the screen. */
#define EXPECT(top, ...)                                                                           \
	do {                                                                                       \
		char *text_ = screen(top);                                                         \
		EXPECT_IN(text_, __VA_ARGS__);                                                     \
		free(text_);                                                                       \
	} while (0)

/* What is printed without a screen, as lines of text or also as a table and as JSON. */
static char *printed(struct ctl_top *top, bool all)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (all)
		cr_assert_eq(ctl_top_print(top, out), 0);
	ctl_top_print_plain(top, out);
	if (all)
		ctl_top_print_json(top, out);
	fclose(out);
	return text;
}

Test(top, the_screen_of_80_by_24)
{
	const struct ctl_top_app app = endoscopy();
	struct ctl_top top = view_of(&app, 1);
	char *text = screen(&top);

	cr_expect_str_eq(
		text,
		"frag top  1 application  sorted by graph  at 127.0.0.1:57777\n"
		"endoscopy: fragment1.video is slow (18 of 30 /s) because fragment2.detect\n"
		"computes 55 ms a tick on 1 thread; 2 threads or policy latest would help\n"
		">APPLICATION              STATE         OPERATORS  TICKS/S   SENT/S  DROP/S  LOST\n"
		"endoscopy                running               3     1836     36.0     6.0     2\n"
		" OPERATOR                  TICK/S BUSY  IN ROOM MEM THR TIME OFF     P50     P99\n"
		" fragment1.video             18.0    2   0   74   0   0   24   0  1.0 ms  2.0 ms\n"
		"!fragment2.detect            18.0   99   1    0   0   0    0   0 55.0 ms 61.0 ms\n"
		" fragment2.\xc3\xbc"
		"berblick         1800    0 100    0   0   0    0   0       -       -\n"
		" FLOW                                SENT/S       FULL DEPTH DROP/S LOST     P99\n"
		" fragment1.video.output -> fragmen~    18.0 [######  ]     4      0    0  230 ms\n"
		" fragment2.detect.out -> fragment2~    18.0 [        ]     0    6.0    2       -\n"
		" HOST               WORKER            PID THREADS CPU% LATE%  DISK%     RSS REST\n"
		" fragment1          a                4711       2    6     0      0  30 MiB    0\n"
		" fragment2          b                4712       1   99     0      0 300 MiB    1\n"
		" WORKER                      CORES  CPU%              MEMORY      IN/S     OUT/S\n"
		" a                               4    10  3.0 GiB of 8.0 GiB       0 B   5.0 MiB\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"\n"
		"q quit  up/down move  Enter open  / filter  s sort  space pause  Tab next part\n");
	free(text);
}

Test(top, what_a_person_chooses)
{
	const struct ctl_top_app apps[] = {endoscopy(),
					   {.look = {.application = "quiet", .state = "waiting"},
					    .cause = {.op = NONE, .flow = NONE, .host = NONE}}};
	struct ctl_top top = view_of(apps, 2);
	char *text;

	EXPECT(&top, "2 applications", "quiet", &"\n endoscopy"[2]);
	top.order = CTL_TOP_RATE;
	text = screen(&top);
	cr_expect_lt(strstr(text, "berblick"), strstr(text, "fragment1.video  "), "%s", text);
	free(text);
	top.order = CTL_TOP_BUSY;
	text = screen(&top);
	cr_expect_lt(strstr(text, "!fragment2.detect  "), strstr(text, " fragment1.video  "), "%s",
		     text);
	free(text);
	top.filter = "DETECT";
	top.is_paused = true;
	text = screen(&top);
	cr_expect_null(strstr(text, "berblick"), "%s", text);
	EXPECT_IN(text, "!fragment2.detect", "filter DETECT  PAUSED");
	free(text);
	top.filter = NULL;
	top.op = 1;
	EXPECT(&top, "fragment2.detect, a detector of endoscopy",
	       "host fragment2, process 4712, worker b", "ticks a second: 18, promised 30",
	       "p50 55.0 ms  p99 61.0 ms  p99.9 62.0 ms  max 63.0 ms",
	       "busy       99.0 % ###############################.", "ROOT CAUSE", "Write less.",
	       "e set a parameter",
	       "fragment2.detect.out -> fragment2.view.receivers: inproc, pop, capacity 1, 0 ");
	top.lost = "lost the driver at 127.0.0.1:57777: connection reset; tries again every second";
	EXPECT(&top, "lost the driver at 127.0.0.1:57777");
	top = (struct ctl_top){.width = 80, .height = 24, .op = NONE};
	EXPECT(&top, "no application runs");
	top.is_measuring = true;
	EXPECT(&top, "measures the first second");
}

/* On any size of a screen the cursor is on it, and no line is wider. */
Test(top, many_operators_on_small_screens)
{
	static const uint32_t sizes[][2] = {{80, 24}, {1, 1}, {20, 4}, {40, 10}, {300, 100}};
	static struct fragi_look_operator many[500];
	static char names[500][40];
	struct ctl_top_app app = {.look = {.application = "app",
					   .state = "running",
					   .window_ns = 1000 * MS,
					   .operators = many,
					   .operator_count = 500,
					   .operators_left_out = 9500},
				  .cause = {.op = NONE, .flow = NONE, .host = NONE}};
	char *text;

	for (uint32_t i = 0; i < 500; i++) {
		snprintf(names[i], sizeof(names[i]), "fragment.\xe6\x97\xa5\xe6\x9c\xac_%u", i);
		many[i] = (struct fragi_look_operator){
			.name = names[i], .ticks = i, .room_flow = NONE, .input_flow = NONE};
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ctl_top top = view_of(&app, 1);

		top.width = sizes[i][0];
		top.height = sizes[i][1];
		top.cursor = 400;
		text = screen(&top);
		if (top.height > 3) {
			cr_expect_not_null(strchr(text, '>'), "%s", text);
			cr_expect_eq(top.cursor, 400);
		}
		free(text);
		top.cursor = 100000;
		EXPECT(&top, "");
		cr_expect_lt(top.cursor, 520);
	}
}

Test(top, what_is_printed_without_a_screen)
{
	struct ctl_top_app app = endoscopy();
	struct ctl_top top = view_of(&app, 1);
	char *text;

	app.look.pools = pools;
	app.look.pool_count = 2;
	top.width = 0;
	text = printed(&top, true);
	EXPECT_IN(
		text, "endoscopy: " SENTENCE "\n",
		" fragment2.detect.out -> fragment2.view.receivers ",
		"Operator fragment2.detect: 18 ticks a second, computes 99 percent, waits for messages 1 percent, half of its ticks below 55.0 ms.\n",
		"Flow from fragment2.detect.out to fragment2.view.receivers: 18 messages a second, 0 in flight, 6 dropped a second, 2 lost.\n",
		"\"cause\": {\"kind\": \"operator\", \"sentence\": \"fragment1.video is slow",
		"\"busy_ns\": 990000000, \"input_ns\": 10000000,",
		"\"host_index\": 1, \"input_flow_index\": 0, \"room_flow_index\": null}",
		"    0\n   pool fragment1.frames: 7 of 8 blocks of 900 KiB in use, empty 23 %, refused 5\n fragment2 ",
		"\n   pool fragment2.masks: 12 MiB of 32 MiB in use, empty 0 %, refused 0\n",
		"Pool fragment1.frames: 7 of 8 blocks of 900 KiB in use, empty 23 percent of the time, refused 5 times.\n"
		"Pool fragment2.masks: 12 MiB of 32 MiB in use.\n",
		"\"used_blocks\": 7, \"empty_ns\": 230000000, "
		"\"refused_sum\": 5, \"host_index\": 0}",
		"\"workers\": [{\"name\": \"a\", \"cores\": 4, ");
	free(text);
}

Test(top, latencies_between_two_clocks_have_a_bound)
{
	struct fragi_look_flow between[] = {flows[0], flows[1]};
	struct ctl_top_app app = endoscopy();
	struct ctl_top top = view_of(&app, 1);
	char *text;

	app.look.flows = between;
	between[0].latency.error_ns = 31000;
	EXPECT(&top,
	       " FLOW                        SENT/S       FULL DEPTH DROP/S LOST     P99     +/-\n"
	       " fragment1.video.output ->~    18.0 [######  ]     4      0    0  230 ms   31 us\n"
	       " fragment2.detect.out -> f~    18.0 [        ]     0    6.0    2       -       -\n");
	text = printed(&top, false);
	EXPECT_IN(text, "4 in flight, 99 percent within 230 ms give or take 31 us.\n");
	free(text);
}

Test(top, late_messages_of_paths_are_shown_with_what_is_to_blame)
{
	const struct fragi_late_place place = {
		"source.a",
		"detect.b",
		"left",
		{[FRAGI_BLAME_COMPUTE] = 4, [FRAGI_BLAME_NETWORK] = 8}};
	struct fragi_look_operator late[] = {operators[0], operators[1], operators[2]};
	struct ctl_top_app app = endoscopy();
	struct ctl_top top = view_of(&app, 1);
	char *text;

	app.look.operators = late;
	late[1].late_sums[FRAGI_BLAME_COMPUTE] = 4;
	late[1].late_sums[FRAGI_BLAME_NETWORK] = 8;
	late[1].late_places = &place;
	late[1].late_place_count = 1;
	late[2].late_sums[FRAGI_BLAME_CLOCK] = 1;
	top.width = 0; /* no terminal */
	text = printed(&top, true);
	EXPECT_IN(
		text,
		"\n    12 messages late (8 source.a -> detect.b network, 4 detect.b on worker left computed long)\n",
		"below 55.0 ms, 12 messages late (8 source.a -> detect.b network, 4 detect.b on worker left computed long).\n",
		"\"late\": {}",
		"\"late\": {\"compute\": 4, \"network\": 8}, \"late_places\": [{\"from\": \"source.a\", \"at\": \"detect.b\", \"worker\": \"left\", \"late\": {\"compute\": 4, \"network\": 8}}]",
		"\"late\": {}, \"late_places\": []", "\n    1 message late (1 clock unsure)\n");
	free(text);
	top.op = 1;
	top.width = 80;
	EXPECT(&top,
	       "\n12 messages late (8 source.a -> detect.b network, 4 detect.b on worker left\n"
	       "computed long)\n");
	top.op = 0;
	text = screen(&top);
	cr_expect_null(strstr(text, "late ("), "%s", text);
	free(text);
}

Test(top, what_an_opened_operator_writes_and_what_was_set)
{
	static char texts[10][16];
	struct fw_line lines[10];
	struct fw_parameter_row parameters[] = {
		{"fragment2.detect.threshold", "0.4", "user alice", 12000 * MS},
		{"fragment2.detector.size", "3", "user bob", 0}};
	struct fw_application_row rows[] = {
		{.name = "other", .parameters = parameters, .parameter_count = 2},
		{.name = "endoscopy", .parameters = parameters, .parameter_count = 2}};
	struct fw_message logs = {.kind = FW_LOGS, .logs = {.rows = lines, .count = 10}},
			  reply = {.kind = FW_REPLY,
				   .reply = {.applications = rows, .application_count = 2}};
	const struct ctl_top_app app = endoscopy();
	struct ctl_top top = view_of(&app, 1);
	struct ctl_top_opened opened;

	for (size_t i = 0; i < 10; i++) {
		snprintf(texts[i], sizeof(texts[i]), "line %zu.", i);
		lines[i] = (struct fw_line){.level = FRAGI_LOG_WARN,
					    .fragment = i == 5 ? "fragment1" : "fragment2",
					    .op = i == 6 ? "detector" : "detect",
					    .text = texts[i]};
	}
	ctl_top_opened_begin(&opened, "endoscopy", "fragment2.detect");
	ctl_top_opened_take(&opened, &reply);
	ctl_top_opened_take(&opened, &logs);
	ctl_top_opened_take(&opened, &logs);
	top.op = 1;
	top.opened = &opened;
	top.height = 60;
	EXPECT(&top, "SET WHILE IT RUNS\n"
		     "  threshold=0.4, 12 s ago by user alice\nLAST LINES\n"
		     "  warn  line 0.\n  warn  line 1.\n  warn  line 2.\n"
		     "  warn  line 3.\n  warn  line 4.\n  warn  line 7.\n"
		     "  warn  line 8.\n  warn  line 9.\nROOT CAUSE\n");
}

Test(top, sizes_and_ages_change_their_unit)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes[] = {{0, "0 B"},
		     {999, "999 B"},
		     {1000, "1.0 KiB"},
		     {1024, "1.0 KiB"},
		     {10239, "10.0 KiB"},
		     {10240, "10 KiB"},
		     {1023999, "1000 KiB"},
		     {1024000, "1.0 MiB"}};
	static const struct {
		int64_t s;
		const char *text;
	} ages[] = {{0, "0 s"},        {99, "99 s"},  {100, "1 min"},
		    {5999, "99 min"},  {6000, "1 h"}, {48 * 3600 - 1, "47 h"},
		    {48 * 3600, "2 d"}};
	char text[64];

	for (size_t i = 0; i < FRAG_COUNT_OF(sizes); i++)
		cr_expect_str_eq(ctl_top_size(sizes[i].bytes, text, sizeof(text)), sizes[i].text,
				 "%d: %s", (int)sizes[i].bytes, text);
	for (size_t i = 0; i < FRAG_COUNT_OF(ages); i++)
		cr_expect_str_eq(ctl_age(ages[i].s * 1000000000, text, sizeof(text)), ages[i].text,
				 "%d: %s", (int)ages[i].s, text);
}

/* A text of several lines is broken at the last blank that fits, the one behind the line too. */
Test(top, texts_are_broken_between_words)
{
	static const struct {
		uint32_t lines;
		const char *text, *drawn[3];
	} rows[] = {
		{2, "aaaa bbbbb ccc", {"aaaa bbbbb", "ccc"}},
		{2, "aaaa bbbb ccc", {"aaaa bbbb", "ccc"}},
		{2, "aaaa bbbbbb ccc", {"aaaa", "bbbbbb ccc"}},
		{3, "aaaa bbbbbb cccc", {"aaaa", "bbbbbb", "cccc"}},
		{2, "aaaa bbbbbb cccc", {"aaaa", "bbbbbb cc~"}},
		{1, "aaaa bbbbb ccc", {"aaaa bbbb~"}},
		{2, "aaaa bbbbb", {"aaaa bbbbb"}},
		{2, "aaaaaaaaaaa b", {"aaaaaaaaa~"}},
	};
	const struct ctl_top screen = {.width = 10};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct ctl_top_drawing d;
		struct ctl_top_lines lines;
		uint32_t count = 0;

		cr_assert_eq(ctl_top_begin(&d, &screen), 0);
		ctl_top_wrap(&d, 0, rows[i].lines, rows[i].text);
		cr_assert_eq(ctl_top_end(&d, &lines), 0);
		while (count < 3 && rows[i].drawn[count] != NULL)
			count++;
		cr_expect_eq(lines.count, count, "row %zu: %u lines", i, lines.count);
		for (uint32_t k = 0; k < count && k < lines.count; k++)
			cr_expect_str_eq(lines.items[k].text, rows[i].drawn[k], "row %zu: %s", i,
					 lines.items[k].text);
		ctl_top_lines_free(&lines);
	}
}

/* What is to blame may be left out of the tables: then it has no name. */
Test(top, a_cause_beyond_the_tables_has_no_name)
{
	for (uint32_t left_out = 0; left_out < 2; left_out++) {
		struct ctl_top_app app = endoscopy();
		struct ctl_json json;
		size_t size;
		char *text;
		FILE *out = open_memstream(&text, &size);

		app.cause.op = 2;
		app.cause.flow = app.cause.host = 1;
		app.look.operator_count -= left_out;
		app.look.flow_count -= left_out;
		app.look.host_count -= left_out;
		json = ctl_json_begin(out);
		ctl_top_json_cause(&json, &app);
		ctl_json_end(&json);
		fclose(out);
		if (left_out == 1)
			EXPECT_IN(text, "\"operator\": null", "\"from\": null", "\"to\": null",
				  "\"host\": null");
		else
			EXPECT_IN(text,
				  "\"operator\": \"fragment2.\xc3\xbc"
				  "berblick\"",
				  "\"from\": \"fragment2.detect.out\"",
				  "\"to\": \"fragment2.view.receivers\"",
				  "\"host\": \"fragment2\"");
		free(text);
	}
}
