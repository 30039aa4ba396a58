// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include <frag/frag.h>

/* A data logger of one's own: prints the range of all numbers that it gets. */
struct range {
	int64_t lowest, highest;
	uint64_t count;
};

static int range_log(void *state, const struct frag_log_entry *entry)
{
	struct range *range = state;
	const void *value;
	int64_t number;

	if (!frag_type_equal(frag_message_value(entry->message, &value, NULL), &frag_type_i64))
		return 0;
	number = *(const int64_t *)value;
	range->lowest = range->count == 0 || number < range->lowest ? number : range->lowest;
	range->highest = range->count == 0 || number > range->highest ? number : range->highest;
	range->count++;
	return 0;
}

static int range_stop(void *state)
{
	const struct range *range = state;

	fprintf(stderr, "range_logger: %" PRIu64 " numbers, %" PRId64 " to %" PRId64 "\n",
		range->count, range->lowest, range->highest);
	return 0;
}

static const struct frag_data_logger_type range_logger_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "range_logger",
	.headline = "Prints the range of all numbers",
	.flags = FRAG_DATA_LOGGER_ASYNC,
	.state_size = sizeof(struct range),
	.log = range_log,
	.stop = range_stop,
};
static const struct frag_data_logger_type *const data_loggers[] = {&range_logger_type};

FRAG_PLUGIN(.name = "data_logging", .version = "1.0.0", FRAG_DATA_LOGGERS(data_loggers));
