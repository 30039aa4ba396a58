// SPDX-License-Identifier: Apache-2.0
#include <wire/layout.h>

/* Layouts of LOOK and LOOKED: where the time of an application goes; and of taps on flows. */

LAYOUT(look, struct fw_look, Look, NULL) = {
	NAME_OR_NONE(look, name),
	TIME(look, every_ns),
	FIELD(look, once),
	FIELD(look, at_once),
	FIELD(look, rows),
	FIELD(look, changes),
	END,
};

TUPLE_LAYOUT(look_operator_sums) = {
	ITEM(struct fragi_look_operator, ticks_sum),
#define SUM(name, unit, metric, help) ITEM(struct fragi_look_operator, name##_sum),
	FRAGI_OP_LIVE_LIST(SUM)
#undef SUM
		END,
};

LAYOUT(late_at, struct fragi_late_place, LateAt, NULL) = {
	OPTIONAL(late_at, from),
	FIELD(late_at, at),
	OPTIONAL(late_at, worker),
	ARRAY(FW_NUMBERS, late_at, late, late, FRAGI_BLAME_CAUSES),
	END,
};

LAYOUT(look_operator, struct fragi_look_operator, LookOperator, NULL) = {
	FIELD(look_operator, name),
	FIELD(look_operator, type),
	FIELD(look_operator, host),
	ARRAY(FW_NUMBERS, look_operator, use_ns, use_ns, FRAGI_USES),
	FIELD(look_operator, input_flow),
	FIELD(look_operator, room_flow),
	OPTIONAL(look_operator, pool),
	FIELD(look_operator, ticks),
	ONE(look_operator, compute, quantiles),
	FIELD(look_operator, promised_mhz),
	FIELD(look_operator, budget_ns),
	FIELD(look_operator, period_ns),
	FIELD(look_operator, has_ended),
	ARRAY(FW_NUMBERS, look_operator, use_sums, use_sums, FRAGI_USES),
	TUPLE(look_operator, 0, sums, look_operator_sums),
	ARRAY(FW_NUMBERS, look_operator, late_sums, late_sums, FRAGI_BLAME_CAUSES),
	ROWS(look_operator, late_places, late_place_count, FRAGI_LATE_PLACES_MAX, late_at),
	END,
};

TUPLE_LAYOUT(look_flow_numbers) = {
	ITEM(struct fragi_look_flow, sent),
	ITEM(struct fragi_look_flow, delivered),
	ITEM(struct fragi_look_flow, bytes),
	ITEM(struct fragi_look_flow, lost),
	ITEM(struct fragi_look_flow, full_ns),
	ITEM(struct fragi_look_flow, depth),
	ITEM(struct fragi_look_flow, sent_sum),
	ITEM(struct fragi_look_flow, delivered_sum),
	ITEM(struct fragi_look_flow, dropped_sum),
	ITEM(struct fragi_look_flow, lost_sum),
#define SUM(name, unit, metric, help) ITEM(struct fragi_look_flow, name##_sum),
	FRAGI_FLOW_LIVE_LIST(SUM)
#undef SUM
		END,
};

LAYOUT(look_flow, struct fragi_look_flow, LookFlow, NULL) = {
	FIELD(look_flow, from),
	FIELD(look_flow, to),
	FIELD(look_flow, sender),
	FIELD(look_flow, receiver),
	FIELD(look_flow, edge),
	FIELD(look_flow, policy),
	FIELD(look_flow, capacity),
	ARRAY(FW_SUMS, look_flow, dropped, dropped, FRAGI_DROP_REASONS),
	ONE(look_flow, latency, quantiles),
	TUPLE(look_flow, 0, numbers, look_flow_numbers),
	ARRAY(FW_SUMS, look_flow, dropped_sums, dropped_sums, FRAGI_DROP_REASONS),
	FIELD(look_flow, is_timed),
	END,
};

TUPLE_LAYOUT(look_host_numbers) = {
	ITEM(struct fragi_look_host, cpu_ns),
	ITEM(struct fragi_look_host, starved_ns),
	ITEM(struct fragi_look_host, io_ns),
	ITEM(struct fragi_look_host, rss_bytes),
	ITEM(struct fragi_look_host, major_faults),
	ITEM(struct fragi_look_host, cpu_sum_ns),
	END,
};

LAYOUT(look_host, struct fragi_look_host, LookHost, NULL) = {
	FIELD(look_host, name),
	OPTIONAL(look_host, worker),
	FIELD(look_host, pid),
	FIELD(look_host, epoch),
	FIELD(look_host, restarts),
	FIELD(look_host, threads),
	FIELD(look_host, cores),
	TUPLE(look_host, 0, numbers, look_host_numbers),
	OPTIONAL(look_host, suspended_because),
	END,
};

TUPLE_LAYOUT(look_worker_numbers) = {
	ITEM(struct fragi_look_worker, cpu_ns),
	ITEM(struct fragi_look_worker, memory_bytes),
	ITEM(struct fragi_look_worker, memory_used_bytes),
	ITEM(struct fragi_look_worker, received_bytes),
	ITEM(struct fragi_look_worker, sent_bytes),
	ITEM(struct fragi_look_worker, gpus),
	ITEM(struct fragi_look_worker, gpu_busy_permille),
	ITEM(struct fragi_look_worker, gpu_memory_bytes),
	ITEM(struct fragi_look_worker, gpu_memory_used_bytes),
	END,
};

LAYOUT(look_worker, struct fragi_look_worker, LookWorker, NULL) = {
	FIELD(look_worker, name),
	FIELD(look_worker, cores),
	TUPLE(look_worker, 0, numbers, look_worker_numbers),
	END,
};

LAYOUT(look_pool, struct fragi_look_pool, LookPool, NULL) = {
	FIELD(look_pool, name),        FIELD(look_pool, host),         FIELD(look_pool, blocks),
	FIELD(look_pool, block_bytes), FIELD(look_pool, used),         FIELD(look_pool, empty_ns),
	FIELD(look_pool, refused_sum), FIELD(look_pool, empty_sum_ns), END,
};

LAYOUT(look_tables, struct fragi_look, LookTables, NULL) = {
	FIELD(look_tables, application),
	FIELD(look_tables, state),
	FIELD(look_tables, window_ns),
	TIME(look_tables, unix_ns),
	ROWS(look_tables, operators, operator_count, FW_LOOK_ROWS_MOST, look_operator),
	ROWS(look_tables, flows, flow_count, FW_LOOK_ROWS_MOST, look_flow),
	ROWS(look_tables, hosts, host_count, FW_ROWS_MAX, look_host),
	ROWS(look_tables, workers, worker_count, FW_ROWS_MAX, look_worker),
	FIELD(look_tables, operators_left_out),
	FIELD(look_tables, flows_left_out),
	OPTIONAL(look_tables, cause),
	ROWS(look_tables, pools, pool_count, FW_ROWS_MAX, look_pool),
	END,
};

LAYOUT(look_step, struct fragi_look_step, LookStep, NULL) = {
	FIELD(look_step, op),
	FIELD(look_step, flow),
	FIELD(look_step, text),
	END,
};

/* A row that is not there is none: the tables are bounded, and their indices with them. */
static bool is_row(uint32_t index, uint32_t count)
{
	return index == FRAGI_LOOK_NONE || index < count;
}

static const char *looked_flaw(const void *proto, void *plain)
{
	const struct fw_looked *looked = plain;
	const struct fragi_look *look = &looked->look;
	uint32_t ops = look->operator_count, flows = look->flow_count;
	bool right = is_row(looked->op, ops) && is_row(looked->flow, flows) &&
		     is_row(looked->host, look->host_count);

	(void)proto;
	for (uint32_t i = 0; i < ops; i++)
		right = right && is_row(look->operators[i].host, look->host_count) &&
			is_row(look->operators[i].input_flow, flows) &&
			is_row(look->operators[i].room_flow, flows);
	for (uint32_t i = 0; i < flows; i++)
		right = right && is_row(look->flows[i].sender, ops) &&
			is_row(look->flows[i].receiver, ops);
	for (uint32_t i = 0; i < look->pool_count; i++)
		right = right && is_row(look->pools[i].host, look->host_count);
	for (uint32_t i = 0; i < looked->chain_count; i++)
		right = right && is_row(looked->chain[i].op, ops) &&
			is_row(looked->chain[i].flow, flows);
	return right ? NULL : "the index of a row that it does not hold";
}

LAYOUT(looked, struct fw_looked, Looked, looked_flaw) = {
	ONE(looked, look, look_tables, .flaw = "no tables"),
	FIELD(looked, is_last),
	FIELD(looked, cause),
	FIELD(looked, op),
	FIELD(looked, flow),
	FIELD(looked, host),
	OPTIONAL(looked, help),
	ROWS(looked, chain, chain_count, FW_ROWS_MAX, look_step),
	FIELD(looked, is_same),
	END,
};

LAYOUT(tap, struct fw_tap, Tap, NULL) = {
	NAME_OR_NONE(tap, name),
	FIELD(tap, flow),
	TIME(tap, every_ns),
	FIELD(tap, pictures),
	FIELD(tap, ends),
	FIELD(tap, traces),
	END,
};

LAYOUT(host_tap, struct fw_host_tap, HostTap, NULL) = {
	FIELD(host_tap, tap),      FIELD(host_tap, fragment), FIELD(host_tap, op),
	FIELD(host_tap, port),     TIME(host_tap, every_ns),  TIME(host_tap, for_ns),
	FIELD(host_tap, pictures), FIELD(host_tap, traces),   END,
};

LAYOUT(tapped, struct fw_tapped, Tapped, NULL) = {
	FIELD(tapped, tap),
	BYTES(tapped, passed, size, FW_TAPPED_BYTES_MAX),
	END,
};

LAYOUT(passed_tensor, struct fragi_passed_tensor, PassedTensor, NULL) = {
	FIELD(passed_tensor, name),
	FIELD(passed_tensor, text),
	END,
};

/* The pixels are those of the picture, all of them, or there is none. */
static const char *passed_flaw(const void *proto, void *plain)
{
	const struct fragi_passed *passed = plain;
	uint64_t size = (uint64_t)passed->width * passed->height * passed->channels;

	(void)proto;
	return size == passed->pixel_bytes && (size == 0 || passed->channels == 1 ||
					       passed->channels == 3 || passed->channels == 4)
		       ? NULL
		       : "a picture of another size";
}

LAYOUT(passed, struct fragi_passed, Passed, passed_flaw) = {
	FIELD(passed, number),
	FIELD(passed, seen),
	TIME(passed, unix_ns),
	OPTIONAL(passed, type),
	FIELD(passed, value),
	FIELD(passed, metadata),
	ROWS(passed, tensors, tensor_count, FRAGI_PASSED_TENSORS_MAX, passed_tensor),
	FIELD(passed, tensors_left_out),
	OPTIONAL(passed, picture_of),
	WITHIN(passed, width, 0, FRAGI_PASSED_PIXELS_MAX, "a picture of another size"),
	WITHIN(passed, height, 0, FRAGI_PASSED_PIXELS_MAX, "a picture of another size"),
	WITHIN(passed, channels, 0, 4, "a picture of another size"),
	FIELD(passed, step),
	BYTES(passed, pixels, pixel_bytes, FRAGI_PASSED_PIXELS_MAX),
	END,
};
