// SPDX-License-Identifier: Apache-2.0
#include "../expected.h"
#include "transcript.h"
#include "worker_world.h"

/* What a page holds, by name. */
struct place {
	const char *name;
	size_t at;
};
#define OP(name) {#name, offsetof(struct fw_op_stats, name)},
#define OP_ROW(name, shown, what) OP(name)
static const struct place of_ops[] = {OP(state) OP(running) OP(ticks) OP(time_ns) OP(waiting_ns)
					      OP(compute) FRAGI_OP_LIST(OP_ROW)};
#define FLOW(name) {#name, offsetof(struct fragi_flow_stats, name)},
#define FLOW_ROW(name, shown, what) FLOW(name)
#define FLOW_DROPS(NAME, name, when)                                                               \
	{"sender's " #name, offsetof(struct fragi_flow_stats, tx_dropped[FRAGI_DROP_##NAME])},     \
		{"receiver's " #name,                                                              \
		 offsetof(struct fragi_flow_stats, rx_dropped[FRAGI_DROP_##NAME])},
static const struct place of_flows[] = {FRAGI_SENDER_LIST(FLOW_ROW) FRAGI_RECEIVER_LIST(FLOW_ROW)
						FRAGI_DROP_LIST(FLOW_DROPS) FLOW(latency)};
#define POOL(name) {#name, offsetof(struct fragi_pool_stats, name)},
static const struct place of_pools[] = {POOL(blocks) POOL(block_bytes) POOL(free) POOL(refused)
						POOL(empty_ns)};

/* The page has been the same for long, and differs in one place then: whether that is reported. */
static void show_news(const char *what, void *row, const struct place *places, size_t count,
		      struct fw_host_stats *stats)
{
	const struct wrk_event event = {
		.kind = WRK_EVENT_HOST_SAMPLED, .host = seen_host, .stats = stats};

	for (size_t i = 0; i < count; i++) {
		uint8_t *value = (uint8_t *)row + places[i].at;

		for (int times = 0; times < 3; times++)
			step(event);
		*value ^= 1;
		step(event);
		fprintf(transcript, "%s of %s: %s\n", places[i].name, what,
			sent(FW_HOST_STATS) != NULL ? "is news" : "is none");
		*value ^= 1;
	}
}

Test(worker_news, what_of_a_page_is_news, .fini = finish)
{
	struct fw_op_stats ops[2] = {{.ticks = 4}, {.ticks = 6}};
	struct fragi_flow_stats flows[2] = {{.sent = 8}, {.sent = 10}};
	struct fragi_pool_stats pools[2] = {{.free = 2}, {.free = 4}};
	struct fw_host_stats stats = {.ops = ops,
				      .op_count = 2,
				      .flows = flows,
				      .flow_count = 2,
				      .pools = pools,
				      .pool_count = 2};

	start_with_host(false, 1);
	transcript_begin();
	for (int i = 0; i < 2; i++) {
		fprintf(transcript, "of row %d\n", i);
		show_news("operators", &ops[i], of_ops, FRAG_COUNT_OF(of_ops), &stats);
		show_news("flows", &flows[i], of_flows, FRAG_COUNT_OF(of_flows), &stats);
		show_news("pools", &pools[i], of_pools, FRAG_COUNT_OF(of_pools), &stats);
	}
	fclose(transcript);
	expected_compare("worker/news", transcript_text);
	free(transcript_text);
}
