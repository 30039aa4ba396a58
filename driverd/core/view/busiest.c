// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/view/look.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Tables of a look that are too long: which of their rows are shown. */

/* Rows by how much they do, the busiest one first; as many as are shown. */
struct rank {
	uint64_t load;
	uint32_t row;
};

static int by_load(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->load != y->load)
		return x->load > y->load ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static int by_row(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	return x->row < y->row ? -1 : x->row > y->row;
}

/* A table that may be too long. Its load is a number of each row: how much that does. */
struct table {
	void *rows;
	size_t row_bytes, load_offset;
	uint32_t *count;
};

/* Keeps `most` rows. Returns where each row goes; NULL: there is no memory. */
static uint32_t *keep(const struct table *table, uint32_t most, bool by_load_first,
		      struct fragi_arena *arena)
{
	uint32_t count = *table->count;
	struct rank *ranks = fragi_arena_alloc(arena, count * sizeof(*ranks));
	uint32_t *places = fragi_arena_alloc(arena, count * sizeof(*places));
	char *rows = table->rows;

	if (ranks == NULL || places == NULL)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		ranks[i] = (struct rank){.row = i};
		places[i] = FRAGI_LOOK_NONE;
		if (by_load_first)
			memcpy(&ranks[i].load, rows + i * table->row_bytes + table->load_offset,
			       sizeof(ranks[i].load));
	}
	qsort(ranks, count, sizeof(*ranks), by_load);
	qsort(ranks, most, sizeof(*ranks), by_row);
	for (uint32_t i = 0; i < most; i++) {
		places[ranks[i].row] = i;
		memmove(rows + i * table->row_bytes, rows + ranks[i].row * table->row_bytes,
			table->row_bytes);
	}
	*table->count = most;
	return places;
}

static void follow(const uint32_t *places, uint32_t *index)
{
	if (places != NULL && *index != FRAGI_LOOK_NONE)
		*index = places[*index];
}

int drv_look_bound(struct fragi_look *look, struct fragi_look_operator *ops,
		   struct fragi_look_flow *flows, uint32_t rows, struct fragi_arena *arena)
{
	const struct table op_table = {ops, sizeof(*ops),
				       offsetof(struct fragi_look_operator, use_ns[FRAGI_USE_BUSY]),
				       &look->operator_count};
	const struct table flow_table = {flows, sizeof(*flows),
					 offsetof(struct fragi_look_flow, sent), &look->flow_count};
	uint32_t *op_places = NULL, *flow_places = NULL;
	uint32_t op_count = look->operator_count, flow_count = look->flow_count;
	uint32_t most = rows != 0 ? rows : FW_LOOK_ROWS_MAX;

	if (op_count > most && (op_places = keep(&op_table, most, rows == 0, arena)) == NULL)
		return -ENOMEM;
	if (flow_count > most && (flow_places = keep(&flow_table, most, rows == 0, arena)) == NULL)
		return -ENOMEM;
	look->operators_left_out = op_count - look->operator_count;
	look->flows_left_out = flow_count - look->flow_count;
	for (uint32_t i = 0; i < look->operator_count; i++) {
		follow(flow_places, &ops[i].input_flow);
		follow(flow_places, &ops[i].room_flow);
	}
	for (uint32_t i = 0; i < look->flow_count; i++) {
		follow(op_places, &flows[i].sender);
		follow(op_places, &flows[i].receiver);
	}
	return 0;
}
