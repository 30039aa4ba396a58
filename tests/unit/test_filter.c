// SPDX-License-Identifier: Apache-2.0
/* Which lines and events `logs` and `events` print: by time, level, fragment and operator. */
#include <criterion/criterion.h>
#include <time.h>

#include <base/log.h>
#include <fragctl/filter.h>
#include <wire/message.h>

/* A time is the first that --since takes, and the first that --until leaves out. */
Test(verbs, filters_of_lines_and_events)
{
	static const struct {
		struct ctl_filter filter;
		int64_t unix_ns;
		uint32_t level;
		const char *fragment, *op;
		bool passes;
	} lines[] = {
		{{0}, 5, FRAGI_LOG_TRACE, "f", "tx", true},
		{{.since_ns = 5}, 4, FRAGI_LOG_INFO, "f", "tx", false},
		{{.since_ns = 5}, 5, FRAGI_LOG_INFO, "f", "tx", true},
		{{.until_text = "", .until_ns = 5}, 4, FRAGI_LOG_INFO, "f", "tx", true},
		{{.until_text = "", .until_ns = 5}, 5, FRAGI_LOG_INFO, "f", "tx", false},
		{{.level = FRAGI_LOG_WARN}, 5, FRAGI_LOG_INFO, "f", "tx", false},
		{{.level = FRAGI_LOG_WARN}, 5, FRAGI_LOG_WARN, "f", "tx", true},
		{{.level = FRAGI_LOG_WARN}, 5, FRAGI_LOG_ERROR, "f", "tx", true},
		{{.op = "tx"}, 5, FRAGI_LOG_INFO, "f", "tx", true},
		{{.op = "f.tx"}, 5, FRAGI_LOG_INFO, "f", "tx", true},
		{{.op = "g.tx"}, 5, FRAGI_LOG_INFO, "f", "tx", false},
		{{.op = "tx"}, 5, FRAGI_LOG_INFO, "f", "tx2", false},
		{{.op = "f"}, 5, FRAGI_LOG_INFO, "f", "tx", false},
	};
	static const enum fw_notice_kind kinds[] = {FW_NOTICE_FAILED, FW_NOTICE_CLOCK,
						    FW_NOTICE_START};
	static const struct {
		const char *op, *text;
		bool passes;
	} events[] = {
		{"tx", "f1.tx.out -> f2.rx.in is late", true},
		{"f1.tx", "f1.tx.out -> f2.rx.in is late", true},
		{"rx", "f1.tx.out -> f2.rx.in is late", true},
		{"t", "f1.tx.out -> f2.rx.in is late", false},
		{"x", "f1.tx.out -> f2.rx.in is late", false},
		{"tx", "tx2 failed", false},
		{"tx", "tx2 and tx failed", true},
		{"tx", "tx-2 failed", false},
		{"tx", "my_tx failed", false},
		{"tx", "tx", true},
		{"", "tx", false},
		{"", "", false},
		{NULL, "whatever", true},
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const struct fw_line line = {.unix_ns = lines[i].unix_ns,
					     .level = lines[i].level,
					     .fragment = lines[i].fragment,
					     .op = lines[i].op};

		cr_expect_eq(ctl_filter_line(&lines[i].filter, &line), lines[i].passes, "row %zu",
			     i);
	}
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		const struct ctl_filter filter = {.op = events[i].op};
		const struct fw_notice event = {.kind = FW_NOTICE_START, .text = events[i].text};

		cr_expect_eq(ctl_filter_notice(&filter, &event), events[i].passes, "event %zu", i);
	}
	for (int level = FRAGI_LOG_TRACE; level < FRAGI_LOG_OFF; level++) {
		const struct ctl_filter filter = {.level = level};

		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			const struct fw_notice event = {.kind = kinds[i], .text = "", .who = ""};

			cr_expect_eq(ctl_filter_notice(&filter, &event),
				     ctl_notice_level(&event) >= level, "level %d, kind %zu", level,
				     i);
		}
	}
}

static int level_of(enum fw_notice_kind kind, const char *who)
{
	return ctl_notice_level(&(struct fw_notice){.kind = kind, .who = who});
}

/* A restart that on_failure has made is worse than one that somebody asked for. */
Test(verbs, events_have_levels)
{
	cr_expect_eq(level_of(FW_NOTICE_FAILED, ""), FRAGI_LOG_ERROR);
	cr_expect_eq(level_of(FW_NOTICE_CLOCK, ""), FRAGI_LOG_WARN);
	cr_expect_eq(level_of(FW_NOTICE_START, ""), FRAGI_LOG_INFO);
	cr_expect_eq(level_of(FW_NOTICE_RESTART, ""), FRAGI_LOG_WARN);
	cr_expect_eq(level_of(FW_NOTICE_RESTART, "user alice"), FRAGI_LOG_INFO);
}

/* A span is before now, an absolute time is what it says, to the nanosecond. */
Test(verbs, times_of_filters)
{
	struct timespec now;
	int64_t now_ns;
	struct ctl_filter ago = {.since_text = "1h", .until_text = "2min ago"};
	static const char *const refused[] = {"",
					      "ago",
					      " ago",
					      "10min  ago",
					      "10minago",
					      "10 ago",
					      "10min ago ago",
					      "-1s ago",
					      "1970-01-01T00:00:01Z ago"};
	static const struct {
		const char *text;
		int64_t unix_ns;
	} rows[] = {
		{"1970-01-01T00:00:01Z", 1000000000},
		{"1970-01-01T00:01:00.5Z", 60500000000},
		{"1970-01-01T00:00:00.000000001Z", 1},
		{"1970-01-02T00:00:00.25Z", 86400250000000},
	};

	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = now.tv_sec * 1000000000 + now.tv_nsec;
	cr_expect_eq(ctl_filter_read(&ago), CTL_OK);
	cr_expect_geq(ago.since_ns, now_ns - 3600000000000);
	cr_expect_lt(ago.since_ns, now_ns - 3000000000000);
	cr_expect_geq(ago.until_ns, now_ns - 120000000000);
	cr_expect_lt(ago.until_ns, now_ns);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ctl_filter filter = {.since_text = rows[i].text};

		cr_expect_eq(ctl_filter_read(&filter), CTL_OK, "%s", rows[i].text);
		cr_expect_eq(filter.since_ns, rows[i].unix_ns, "%s", rows[i].text);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct ctl_filter filter = {.since_text = refused[i]};

		cr_expect_eq(ctl_filter_read(&filter), CTL_USAGE, "%s", refused[i]);
	}
	for (int level = FRAGI_LOG_TRACE; level < FRAGI_LOG_OFF; level++) {
		struct ctl_filter filter = {.level_text = fragi_log_level_name(level)};

		cr_expect_eq(ctl_filter_read(&filter), CTL_OK);
		cr_expect_eq(filter.level, level);
	}
}
