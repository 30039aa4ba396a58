// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <wire/message.h>

static void add_op_stats(struct fw_op_stats *sum, const struct fw_op_stats *row)
{
	sum->ticks += row->ticks;
	for (int i = 0; i < FRAGI_OP_COUNTERS; i++)
		sum->counters[i] += row->counters[i];
	fragi_quantiles_add(&sum->compute, &row->compute);
}

static void add_flow_stats(struct fragi_flow_stats *sum, const struct fragi_flow_stats *row)
{
	fragi_flow_stats_add(sum, row);
}

/* The blocks are those of the present process. */
static void add_pool_stats(struct fragi_pool_stats *sum, const struct fragi_pool_stats *row)
{
	sum->refused += row->refused;
	sum->empty_ns += row->empty_ns;
}

static void add_late_counts(struct fw_late_counts *sum, const struct fw_late_counts *row)
{
	for (int i = 0; i < FRAGI_BLAME_CAUSES; i++)
		sum->late[i] += row->late[i];
}

void fw_stats_add(struct fw_host_stats *sum, const struct fw_host_stats *stats)
{
#define ADD(type, rows, count, row, most)                                                          \
	for (uint32_t i = 0; i < sum->count && i < stats->count; i++)                              \
		add_##row(&sum->rows[i], &stats->rows[i]);
	FW_STATS_LIST(ADD)
#undef ADD
	sum->facts.cpu_ns += stats->facts.cpu_ns;
}

/* Returns the rows with zeroed ones behind them, which are never NULL; NULL: there is no memory. */
static void *widen(void *rows, size_t row_bytes, uint32_t *count, uint32_t to)
{
	char *wide = rows;

	if (rows != NULL && to <= *count)
		return rows;
	wide = fragi_realloc(rows, (to + 1u) * row_bytes);
	if (wide == NULL)
		return NULL;
	memset(wide + *count * row_bytes, 0, (to - *count) * row_bytes);
	*count = to;
	return wide;
}

int fw_stats_widen(struct fw_host_stats *sum, const struct fw_host_stats *stats)
{
#define WIDEN(type, rows, count, row, most)                                                        \
	type *rows = widen(sum->rows, sizeof(*rows), &sum->count, stats->count);                   \
	if (rows == NULL)                                                                          \
		return -ENOMEM;                                                                    \
	sum->rows = rows;
	FW_STATS_LIST(WIDEN)
#undef WIDEN
	return 0;
}

void fw_stats_fini(struct fw_host_stats *sum)
{
#define FREE(type, rows, count, row, most) fragi_free(sum->rows);
	FW_STATS_LIST(FREE)
#undef FREE
	*sum = (struct fw_host_stats){0};
}
