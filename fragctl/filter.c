// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* strptime, timegm */
#include <fragctl/filter.h>

#include <ctype.h>
#include <string.h>
#include <time.h>

#include <base/log.h>
#include <base/units.h>

#define SECOND_NS INT64_C(1000000000)

/* As fragctl prints times. */
static bool read_absolute(const char *text, int64_t *out_unix_ns)
{
	struct tm at = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &at);
	double part = 0;

	if (end == NULL)
		return false;
	if (*end == '.')
		for (double digit = 0.1; isdigit((unsigned char)*++end); digit /= 10)
			part += digit * (*end - '0');
	if (strcmp(end, "Z") != 0)
		return false;
	*out_unix_ns = (int64_t)timegm(&at) * SECOND_NS + (int64_t)(part * 1e9 + 0.5);
	return true;
}

/* Copies a duration without the word behind it: 10min, or 10min ago. Returns whether it fits. */
static bool without_ago(const char *text, char *buffer, size_t size)
{
	static const char word[] = " ago";
	size_t length = strlen(text);

	if (length >= sizeof(word) && strcmp(text + length - strlen(word), word) == 0)
		length -= strlen(word);
	if (length >= size)
		return false;
	memcpy(buffer, text, length);
	buffer[length] = '\0';
	return true;
}

static int read_time(const char *flag, const char *text, int64_t *out_unix_ns)
{
	struct timespec now;
	char duration[32];
	int64_t ago_ns;

	if (text == NULL || read_absolute(text, out_unix_ns))
		return CTL_OK;
	if (!without_ago(text, duration, sizeof(duration)) || fragi_duration_lacks_unit(duration) ||
	    fragi_parse_time(duration, &ago_ns) < 0 || ago_ns < 0)
		return ctl_fail(
			CTL_USAGE,
			"%s \"%.40s\" is not a time; give it as 30s, 10min or 2h, or as 2026-11-27T14:03:00Z",
			flag, text);
	clock_gettime(CLOCK_REALTIME, &now);
	*out_unix_ns = (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec - ago_ns;
	return CTL_OK;
}

static int read_level(const char *text, int *out_level)
{
	if (text == NULL)
		return CTL_OK;
	for (int level = 0; level < FRAGI_LOG_OFF; level++)
		if (strcmp(text, fragi_log_level_name(level)) == 0) {
			*out_level = level;
			return CTL_OK;
		}
	return ctl_fail(CTL_USAGE,
			"--level \"%.40s\" is no level; valid: trace, debug, info, warn, error",
			text);
}

int ctl_filter_read(struct ctl_filter *filter)
{
	int code = read_time("--since", filter->since_text, &filter->since_ns);

	if (code == CTL_OK)
		code = read_time("--until", filter->until_text, &filter->until_ns);
	return code == CTL_OK ? read_level(filter->level_text, &filter->level) : code;
}

static bool is_in_time(const struct ctl_filter *filter, int64_t unix_ns)
{
	return unix_ns >= filter->since_ns &&
	       (filter->until_text == NULL || unix_ns < filter->until_ns);
}

bool ctl_filter_line(const struct ctl_filter *filter, const struct fw_line *line)
{
	size_t length = strlen(line->fragment);
	const char *op = filter->op;

	if (op != NULL && length > 0 && strncmp(op, line->fragment, length) == 0 &&
	    op[length] == '.')
		op += length + 1;
	return is_in_time(filter, line->unix_ns) && (int)line->level >= filter->level &&
	       (op == NULL || strcmp(op, line->op) == 0);
}

int ctl_notice_level(const struct fw_notice *notice)
{
	switch (notice->kind) {
	case FW_NOTICE_FAILED:
		return FRAGI_LOG_ERROR;
	case FW_NOTICE_REFUSED:
	case FW_NOTICE_WORKER_LEFT:
	case FW_NOTICE_LOSS:
	case FW_NOTICE_CLOCK:
		return FRAGI_LOG_WARN;
	case FW_NOTICE_RESTART: /* nobody has asked for it: on_failure */
		return notice->who[0] == '\0' ? FRAGI_LOG_WARN : FRAGI_LOG_INFO;
	default:
		return FRAGI_LOG_INFO;
	}
}

static bool is_part_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* "f1.tx.out -> f2.rx.in" names f1.tx, tx and rx. */
static bool names(const char *text, const char *op)
{
	size_t length = strlen(op);

	for (const char *at = text; length > 0 && (at = strstr(at, op)) != NULL; at++)
		if ((at == text || !is_part_of_name(at[-1])) && !is_part_of_name(at[length]))
			return true;
	return false;
}

bool ctl_filter_notice(const struct ctl_filter *filter, const struct fw_notice *event)
{
	return is_in_time(filter, event->unix_ns) && ctl_notice_level(event) >= filter->level &&
	       (filter->op == NULL || names(event->text, filter->op));
}
