/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_FILTER_H
#define CTL_FILTER_H

#include <fragctl/ctl.h>
#include <wire/message.h>

/* Which lines of logs and events a person wants to see. Zeroed: all. */
struct ctl_filter {
	const char *since_text, *until_text, *level_text, *op; /* flags */
	int64_t since_ns, until_ns;                            /* unix time; 0: no bound */
	int level;                                             /* no lines below it */
};
#define CTL_SINCE_FLAG(filter)                                                                     \
	{                                                                                          \
		.name = "since", .value = "TIME", .no_env = true,                                  \
		.help = "only what is not older: 30s, 10min, 2h, or 2026-11-27T14:03:00Z",         \
		.text = &(filter).since_text                                                       \
	}
#define CTL_FILTER_FLAGS(filter)                                                                   \
	CTL_SINCE_FLAG(filter),                                                                    \
		{.name = "until",                                                                  \
		 .value = "TIME",                                                                  \
		 .no_env = true,                                                                   \
		 .help = "only what is older; as --since",                                         \
		 .text = &(filter).until_text},                                                    \
		{.name = "level",                                                                  \
		 .value = "LEVEL",                                                                 \
		 .no_env = true,                                                                   \
		 .help = "only this level and above: debug, info, warn, error",                    \
		 .text = &(filter).level_text},                                                    \
	{                                                                                          \
		.name = "operator", .value = "[FRAGMENT.]OPERATOR", .no_env = true,                \
		.help = "only what is about it", .text = &(filter).op                              \
	}

/* Reads the flags. Returns CTL_OK or CTL_USAGE, complained. */
int ctl_filter_read(struct ctl_filter *filter);
bool ctl_filter_line(const struct ctl_filter *filter, const struct fw_line *line);
/* An operator's events are those that name it. */
bool ctl_filter_notice(const struct ctl_filter *filter, const struct fw_notice *event);
/* How bad an event is, as a level of logs. */
int ctl_notice_level(const struct fw_notice *notice);

#endif
