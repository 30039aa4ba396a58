// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/page.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/alloc.h>

/* Rows that are read before their pages of the host's memory are let go: some MB. */
#define ROWS_AT_ONCE 8192u
#define REST_BYTES_MIN ((size_t)1 << 20) /* what takes less memory keeps it */

int wrk_page_init(struct wrk_page *page)
{
	memset(page, 0, sizeof(*page));
	page->fd = memfd_create("frag-ledger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return page->fd < 0 ? -errno : 0;
}

static int page_open(struct wrk_page *page)
{
	struct fw_host_stats rows = {.pool_count = FRAGI_POOLS_MAX,
				     .late_count = FRAGI_LATE_PLACES_MAX};
	struct stat st;
	int r;

	if (page->fd < 0)
		return -ENOENT;
	if (fstat(page->fd, &st) < 0)
		return -errno;
	if (st.st_size == 0)
		return -ENOENT;
	r = fragi_ledger_open(&page->ledger, page->fd);
	if (r < 0)
		return r;
	rows.op_count = page->ledger.op_count;
	rows.flow_count = page->ledger.flow_count;
	if (rows.op_count > FW_ROWS_MAX || rows.flow_count > FW_ROWS_MAX)
		r = -EMSGSIZE;
	else
		r = fw_stats_widen(&page->stats, &rows);
	if (r < 0) {
		fw_stats_fini(&page->stats);
		fragi_ledger_close(&page->ledger);
	}
	return r;
}

static uint64_t load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_acquire);
}

/* An operator may write anything into its page. */
static void read_realtime(const struct fragi_op_row *row, struct fragi_realtime *out)
{
	uint64_t sched = load(&row->sched), policy = sched & UINT32_MAX;

	out->policy =
		policy < FRAGI_SCHED_OTHER ? (enum fragi_sched_policy)policy : FRAGI_SCHED_OTHER;
	out->priority = (uint32_t)(sched >> 32);
	out->runtime_ns = load(&row->sched_runtime_ns);
	out->deadline_ns = load(&row->sched_deadline_ns);
	out->period_ns = load(&row->sched_period_ns);
}

static void read_op(const struct fragi_op_row *row, struct fragi_hist_buckets compute,
		    struct fw_op_stats *out)
{
	uint64_t state = load(&row->state);
	struct fragi_job job;

	out->state = state <= FRAGI_OP_FAILED ? (uint32_t)state : FRAGI_OP_FAILED;
	out->ticks = load(&row->ticks);
	out->running = load(&row->running) != 0 || out->ticks > load(&row->compute.count);
	fragi_hist_read(&row->compute, compute, &out->compute);
	fragi_op_row_job(row, out->compute.total_ns, &job);
	out->time_ns = job.time_ns;
	out->waiting_ns = job.waiting_ns;
#define READ(name, shown, what) out->name = load(&row->name);
	FRAGI_OP_LIST(READ)
#undef READ
	read_realtime(row, &out->realtime);
}

/* Returns how many there are: those that somebody has looked at. */
static uint32_t read_pools(const struct fragi_ledger *ledger, struct fragi_pool_stats *out)
{
	uint32_t count = 0;

	for (; count < FRAGI_POOLS_MAX; count++, out++) {
		const struct fragi_pool_row *row = &ledger->head->pools[count];

		*out = (struct fragi_pool_stats){load(&row->blocks), load(&row->block_bytes),
						 load(&row->free), load(&row->refused),
						 load(&row->empty_ns)};
		if (out->block_bytes == 0)
			break;
		if (out->free > out->blocks) /* as the host wrote it */
			out->free = out->blocks;
	}
	return count;
}

/* Returns at how many places late messages are counted. */
static uint32_t read_lates(const struct fragi_ledger *ledger, struct fw_late_counts *out)
{
	const uint64_t count = load(&ledger->head->late_count);
	uint32_t i = 0;

	for (; i < count && i < FRAGI_LATE_PLACES_MAX; i++)
		for (uint32_t k = 0; k < FRAGI_BLAME_CAUSES; k++)
			out[i].late[k] = load(&ledger->head->lates[i].late[k]);
	return i;
}

static void rest_between(const struct wrk_page *page, uint32_t row)
{
	if (row % ROWS_AT_ONCE == ROWS_AT_ONCE - 1)
		fragi_ledger_rest(&page->ledger);
}

int wrk_page_read(struct wrk_page *page, struct fw_host_stats *out_stats)
{
	struct fw_host_stats *stats = &page->stats;
	int r = stats->ops == NULL ? page_open(page) : 0;

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < stats->flow_count; i++) {
		fragi_flow_row_read(&page->ledger.flows[i], fragi_ledger_latency(&page->ledger, i),
				    &stats->flows[i]);
		rest_between(page, i);
	}
	for (uint32_t i = 0; i < stats->op_count; i++) {
		read_op(&page->ledger.ops[i], fragi_ledger_compute(&page->ledger, i),
			&stats->ops[i]);
		rest_between(page, i);
	}
	stats->pool_count = read_pools(&page->ledger, stats->pools);
	stats->late_count = read_lates(&page->ledger, stats->lates);
	if (stats->op_count >= ROWS_AT_ONCE)
		fragi_ledger_rest(&page->ledger);
	stats->facts.at_ns = (uint64_t)fragi_now_ns();
	*out_stats = *stats;
	return 0;
}

static void rest(void *rows, size_t bytes)
{
	const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t first = ((uintptr_t)rows + size - 1) / size * size;
	const uintptr_t end = ((uintptr_t)rows + bytes) / size * size;

	if (bytes >= REST_BYTES_MIN)
		(void)madvise((void *)first, end - first, MADV_DONTNEED);
}

void wrk_page_rest(struct wrk_page *page)
{
	rest(page->stats.ops, page->stats.op_count * sizeof(*page->stats.ops));
	rest(page->stats.flows, page->stats.flow_count * sizeof(*page->stats.flows));
}

void wrk_page_fini(struct wrk_page *page)
{
	fragi_ledger_close(&page->ledger);
	fw_stats_fini(&page->stats);
	if (page->fd >= 0)
		close(page->fd);
	page->fd = -1;
}
