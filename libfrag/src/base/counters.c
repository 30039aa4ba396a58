// SPDX-License-Identifier: Apache-2.0
#include <base/counters.h>

#define SHOWN true
#define INTERNAL false
#define INFO(name, shown, what) {#name, shown},
#define DROP_NAME(NAME, name, when) #name,

const struct fragi_counter_info fragi_counter_infos[FRAGI_COUNTERS] = {
	FRAGI_SENDER_LIST(INFO) FRAGI_RECEIVER_LIST(INFO)};
static const char *const drop_names[FRAGI_DROP_REASONS] = {FRAGI_DROP_LIST(DROP_NAME)};

const char *fragi_drop_name(enum fragi_drop reason)
{
	return (unsigned int)reason < FRAGI_DROP_REASONS ? drop_names[reason] : "unknown";
}

uint64_t fragi_drops_unwanted(const uint64_t *dropped, bool is_latest)
{
	uint64_t sum = 0;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		if (i != FRAGI_DROP_RECEIVER_DONE && i != FRAGI_DROP_STOPPED &&
		    i != FRAGI_DROP_SUPERSEDED && !(i == FRAGI_DROP_QUEUE_FULL && is_latest))
			sum += dropped[i];
	return sum;
}

void fragi_flow_stats_add(struct fragi_flow_stats *sum, const struct fragi_flow_stats *row)
{
	uint64_t first_ns = sum->first_ns != 0 ? sum->first_ns : row->first_ns;

	for (int i = 0; i < FRAGI_COUNTERS; i++)
		sum->counters[i] += row->counters[i];
	for (int i = 0; i < FRAGI_DROP_REASONS; i++) {
		sum->tx_dropped[i] += row->tx_dropped[i];
		sum->rx_dropped[i] += row->rx_dropped[i];
	}
	sum->first_ns = first_ns;
	fragi_quantiles_add(&sum->latency, &row->latency);
}
