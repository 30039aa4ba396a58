// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <workerd/page.h>
#include <workerd/traced.h>

static struct wrk_page page;

static void begin(void)
{
	cr_assert_eq(wrk_page_init(&page), 0);
}
static void end(void)
{
	wrk_page_fini(&page);
}
TestSuite(worker_page, .init = begin, .fini = end);

Test(worker_page, there_is_nothing_before_the_host_made_it)
{
	struct fw_host_stats stats;

	cr_expect_eq(wrk_page_read(&page, &stats), -ENOENT);
}

Test(worker_page, what_the_host_counts_is_read)
{
	struct fragi_ledger ledger = {0};
	struct fw_host_stats stats;

	cr_assert_eq(fragi_ledger_create(&ledger, page.fd, 2, 3), 0);
	for (uint64_t i = 0; i < 10; i++) {
		fragi_count(&ledger.flows[1].sent, 1);
		fragi_hist_add(&ledger.flows[1].latency, 1000);
		fragi_hist_add(&ledger.ops[1].compute, 2000);
	}
	fragi_count(&ledger.flows[1].delivered, 7);
	fragi_count(&ledger.flows[1].rx_dropped[FRAGI_DROP_RECEIVER_DONE], 2);
	fragi_count(&ledger.flows[1].tx_dropped[FRAGI_DROP_NO_ROOM], 1);
	fragi_count(&ledger.ops[1].ticks, 10);
	atomic_store(&ledger.ops[1].running, 1);
	atomic_store(&ledger.ops[1].sched, FRAGI_SCHED_FIFO | (uint64_t)17 << 32);
	atomic_store(&ledger.ops[0].sched, UINT64_MAX); /* nonsense */
	atomic_store(&ledger.ops[1].state, FRAGI_OP_STARTED);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_assert_eq(stats.op_count, 2);
	cr_assert_eq(stats.flow_count, 3);
	cr_expect_eq(stats.flows[1].sent, 10);
	cr_expect_eq(stats.flows[1].delivered, 7);
	cr_expect_eq(stats.flows[1].rx_dropped[FRAGI_DROP_RECEIVER_DONE], 2);
	cr_expect_eq(stats.flows[1].tx_dropped[FRAGI_DROP_NO_ROOM], 1);
	cr_expect_eq(stats.flows[1].latency.count, 10);
	cr_expect_eq(stats.flows[1].latency.max, 1000);
	cr_expect_eq(stats.ops[1].ticks, 10);
	cr_expect_eq(stats.ops[1].state, FRAGI_OP_STARTED);
	cr_expect(stats.ops[1].running);
	cr_expect_not(stats.ops[0].running);
	cr_expect_eq(stats.ops[1].realtime.policy, FRAGI_SCHED_FIFO);
	cr_expect_eq(stats.ops[1].realtime.priority, 17);
	cr_expect_eq(stats.ops[0].realtime.policy, FRAGI_SCHED_OTHER);
	fragi_count(&ledger.ops[0].ticks, 1); /* begun, and not yet counted among the computes */
	atomic_store(&ledger.ops[1].running, 0);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_expect(stats.ops[0].running);
	cr_expect_not(stats.ops[1].running);
	fragi_count(&ledger.flows[1].sent, 5);
	fragi_ledger_close(&ledger); /* as when the host is gone */
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_expect_eq(stats.flows[1].sent, 15);
}

/* All rows that a host may have, and no more: what follows them in the page is no row. */
Test(worker_page, tables_that_are_full)
{
	struct fragi_ledger ledger = {0};
	struct fw_host_stats stats;

	cr_assert_eq(fragi_ledger_create(&ledger, page.fd, 1, 1), 0);
	for (uint32_t i = 0; i < FRAGI_POOLS_MAX; i++) {
		atomic_store(&ledger.head->pools[i].block_bytes, i + 1);
		atomic_store(&ledger.head->pools[i].blocks, 2);
		atomic_store(&ledger.head->pools[i].free, i < 3 ? i + 1 : 0);
	}
	for (uint32_t i = 0; i < FRAGI_LATE_PLACES_MAX; i++)
		atomic_store(&ledger.head->lates[i].late[0], i + 1);
	atomic_store(&ledger.head->late_count, FRAGI_LATE_PLACES_MAX + 5);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_assert_eq(stats.pool_count, FRAGI_POOLS_MAX);
	cr_expect_eq(stats.pools[FRAGI_POOLS_MAX - 1].block_bytes, FRAGI_POOLS_MAX);
	cr_expect_eq(stats.pools[1].free, 2);
	cr_expect_eq(stats.pools[2].free, 2, "not more than there are");
	cr_assert_eq(stats.late_count, FRAGI_LATE_PLACES_MAX);
	cr_expect_eq(stats.lates[FRAGI_LATE_PLACES_MAX - 1].late[0], FRAGI_LATE_PLACES_MAX);
	fragi_ledger_close(&ledger);
}

static size_t resident_bytes(const void *first, size_t bytes)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	const uintptr_t begin = (uintptr_t)first / size * size;
	static unsigned char pages[1 << 16];
	size_t resident = 0;

	bytes = (uintptr_t)first + bytes - begin;
	cr_assert_leq(bytes / size + 1, sizeof(pages));
	cr_assert_eq(mincore((void *)begin, bytes, pages), 0);
	for (size_t i = 0; i < (bytes + size - 1) / size; i++)
		resident += (pages[i] & 1) * size;
	return resident;
}

/* The mapped pages are the host's, so the process's own are counted by the kernel's table. */
static size_t mapped_bytes_of_page(void)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[400];
	bool is_page = false;
	size_t kib = 0, sum = 0;

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strchr(line, '-') != NULL && strstr(line, " kB") == NULL)
			is_page =
				strstr(line, "frag-ledger") != NULL && strstr(line, "r--s") != NULL;
		else if (is_page && sscanf(line, "Rss: %zu", &kib) == 1)
			sum += kib * 1024;
	}
	fclose(f);
	return sum;
}

Test(worker_page, many_rows_give_their_memory_back_and_are_read_again)
{
	enum { OPS = 20000, FLOWS = 17 };
	struct fragi_ledger ledger = {0};
	struct fw_host_stats stats;

	cr_assert_eq(fragi_ledger_create(&ledger, page.fd, OPS, FLOWS), 0);
	for (uint32_t i = 0; i < OPS; i++)
		fragi_count(&ledger.ops[i].ticks, i + 5);
	fragi_count(&ledger.flows[16].sent, 3);
	for (int round = 0; round < 2; round++) {
		cr_assert_eq(wrk_page_read(&page, &stats), 0);
		cr_expect_lt(mapped_bytes_of_page(), 20000, "of 7 MB of rows");
		cr_assert_eq(stats.op_count, OPS);
		for (uint32_t i = 0; i < OPS; i++)
			cr_assert_eq(stats.ops[i].ticks, i + 5);
		cr_assert_eq(stats.flows[16].sent, 3);
		cr_expect_gt(resident_bytes(stats.ops, OPS * sizeof(*stats.ops)), 8000000);
		wrk_page_rest(&page);
		cr_expect_lt(resident_bytes(stats.ops, OPS * sizeof(*stats.ops)), 20000);
	}
	fragi_ledger_close(&ledger);
}

Test(worker_page, few_rows_stay)
{
	struct fragi_ledger ledger = {0};
	struct fw_host_stats stats;

	wrk_page_rest(&page); /* there is nothing yet */
	cr_assert_eq(fragi_ledger_create(&ledger, page.fd, 100, 100), 0);
	fragi_count(&ledger.ops[99].ticks, 7);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	wrk_page_rest(&page);
	cr_expect_eq(stats.ops[99].ticks, 7);
	fragi_ledger_close(&ledger);
}

Test(worker_page, places_of_late_messages_are_read)
{
	struct fragi_ledger ledger = {0};
	struct fw_host_stats stats;

	cr_assert_eq(fragi_ledger_create(&ledger, page.fd, 1, 1), 0);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_expect_eq(stats.late_count, 0, "no path ends there");
	atomic_store(&ledger.head->late_count, 2);
	fragi_count(&ledger.head->lates[0].late[FRAGI_BLAME_QUEUE], 3);
	fragi_count(&ledger.head->lates[1].late[FRAGI_BLAME_CLOCK], 5);
	fragi_count(&ledger.head->lates[2].late[FRAGI_BLAME_GPU], 7);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_assert_eq(stats.late_count, 2);
	cr_expect_eq(stats.lates[0].late[FRAGI_BLAME_QUEUE], 3);
	cr_expect_eq(stats.lates[0].late[FRAGI_BLAME_CLOCK], 0);
	cr_expect_eq(stats.lates[1].late[FRAGI_BLAME_CLOCK], 5);
	atomic_store(&ledger.head->late_count, UINT64_MAX); /* nonsense */
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_expect_eq(stats.late_count, FRAGI_LATE_PLACES_MAX);
	cr_expect_eq(stats.lates[2].late[FRAGI_BLAME_GPU], 7);
	fragi_ledger_close(&ledger);
}

Test(worker_page, pools_that_were_looked_at_are_read)
{
	struct fragi_ledger ledger = {0};
	struct fw_host_stats stats;
	struct fragi_pool_row *rows;

	cr_assert_eq(fragi_ledger_create(&ledger, page.fd, 1, 1), 0);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_expect_eq(stats.pool_count, 0, "nobody has looked");
	rows = ledger.head->pools;
	atomic_store(&rows[0].blocks, 8);
	atomic_store(&rows[0].block_bytes, 1);
	atomic_store(&rows[0].free, 9); /* nonsense */
	atomic_store(&rows[1].blocks, 4);
	atomic_store(&rows[1].block_bytes, 4096);
	atomic_store(&rows[1].free, 3);
	atomic_store(&rows[1].refused, 17);
	atomic_store(&rows[1].empty_ns, 23);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_assert_eq(stats.pool_count, 2);
	cr_expect_eq(stats.pools[0].free, 8, "no more than there are");
	cr_expect_eq(stats.pools[1].blocks, 4);
	cr_expect_eq(stats.pools[1].block_bytes, 4096);
	cr_expect_eq(stats.pools[1].free, 3);
	cr_expect_eq(stats.pools[1].refused, 17);
	cr_expect_eq(stats.pools[1].empty_ns, 23);
	for (uint32_t i = 0; i < FRAGI_POOLS_MAX; i++)
		atomic_store(&rows[i].block_bytes, 1);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_expect_eq(stats.pool_count, FRAGI_POOLS_MAX);
	fragi_ledger_close(&ledger);
}

Test(worker_page, garbage_is_refused)
{
	struct fw_host_stats stats;
	char bytes[256];

	memset(bytes, 0xa5, sizeof(bytes));
	cr_assert_eq(write(page.fd, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
	cr_expect_eq(wrk_page_read(&page, &stats), -EBADMSG);
}

Test(worker_page, a_host_that_changes_its_counts_later_changes_nothing)
{
	struct fragi_ledger ledger = {0};
	struct fw_host_stats stats;

	cr_assert_eq(fragi_ledger_create(&ledger, page.fd, 1, 1), 0);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	ledger.head->op_count = ledger.head->flow_count = UINT32_MAX;
	ledger.head->op_offset = ledger.head->flow_offset = UINT64_MAX;
	memset((void *)ledger.flows, 0xff, sizeof(*ledger.flows));
	memset((void *)ledger.ops, 0xff, sizeof(*ledger.ops));
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_expect_eq(stats.op_count, 1);
	cr_expect_eq(stats.flow_count, 1);
	cr_expect_leq(stats.ops[0].state, FRAGI_OP_FAILED);
	fragi_ledger_close(&ledger);
}

Test(worker_page, a_host_cannot_cut_the_page_under_its_reader)
{
	struct fragi_ledger ledger = {0};
	struct fw_host_stats stats;

	cr_assert_eq(fragi_ledger_create(&ledger, page.fd, 4, 4), 0);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_expect_eq(ftruncate(page.fd, 0), -1);
	cr_expect_eq(wrk_page_read(&page, &stats), 0);
	fragi_ledger_close(&ledger);
}

static struct fragi_trace_chunk chunk;
static enum fragi_trace_end told;
static uint32_t rests;

/* A host has sent that chunk of trace 5. */
static void note(struct wrk_traced *traced, uint64_t number)
{
	const struct fragi_trace_host host = {.host = 3, .epoch = 4, .number = number};
	struct fw_message message = {.kind = FW_HOST_TAPPED, .run = 2, .host = 3, .epoch = 4};

	chunk.size = 0;
	cr_assert(fragi_trace_add_host(&chunk, &host, "one", ""));
	message.tapped = (struct fw_tapped){5, chunk.bytes, chunk.size};
	wrk_traced_note(traced, &message);
}

static void take_rest(void *arg, uint32_t id, struct fw_message *message)
{
	struct fragi_trace_read read;
	uint32_t at = 0;

	(void)arg;
	cr_expect_eq(id, 17);
	cr_expect(message->kind == FW_HOST_TAPPED && message->run == 2 && message->host == 3 &&
		  message->epoch == 4 && message->tapped.tap == 5);
	cr_assert_eq(fragi_trace_read(message->tapped.passed, message->tapped.size, &at, &read), 1);
	cr_expect_eq(read.host.number, 1);
	told = read.host.end;
	cr_assert_eq(fragi_trace_read(message->tapped.passed, message->tapped.size, &at, &read), 1);
	cr_expect_eq(read.record_count, 1);
	rests++;
	fw_message_free(message);
}

static uint32_t rests_of(struct wrk_traced *traced, bool is_end)
{
	rests = 0;
	wrk_traced_rest(traced, page.ledger.ring, is_end, take_rest, NULL, 17);
	return rests;
}

/* The ring of a trace lies in the page: what a host had not sent is read after it was killed. */
Test(worker_page, what_was_traced_outlives_the_host)
{
	struct fragi_ledger ledger = {0};
	struct fw_host_stats stats;
	const struct fragi_moment now = fragi_moment_now();
	struct wrk_traced traced = {0};

	cr_expect_eq(rests_of(&traced, false), 0, "there is no page");
	cr_assert_eq(fragi_ledger_create(&ledger, page.fd, 1, 1), 0);
	fragi_trace_publish(&ledger.ring->readers[0], 1, 0, 0, &now);
	atomic_store(&ledger.ring->readers[0].id, 5);
	fragi_trace_note(ledger.ring, FRAGI_TRACE_POOL, 0, 12);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	fragi_ledger_close(&ledger);
	cr_expect_eq(rests_of(&traced, false), 0, "nothing has come, so its names are not known");
	note(&traced, 0);
	cr_expect(rests_of(&traced, false) == 1 && told == FRAGI_TRACE_KILLED);
	cr_expect(rests_of(&traced, true) == 1 && told == FRAGI_TRACE_ENDS);
}

/* A page without a ring, as a host of an older version makes it. */
Test(worker_page, a_page_may_have_no_ring)
{
	struct fragi_ledger ledger = {0};
	struct fw_host_stats stats;
	struct wrk_traced traced = {0};

	cr_assert_eq(fragi_ledger_create(&ledger, -1, 1, 1), 0);
	cr_assert_eq(write(page.fd, ledger.head, ledger.head->size_bytes),
		     (ssize_t)ledger.head->size_bytes);
	fragi_ledger_close(&ledger);
	cr_assert_eq(wrk_page_read(&page, &stats), 0);
	cr_expect_eq(stats.op_count, 1);
	cr_expect_null(page.ledger.ring);
	note(&traced, 0);
	cr_expect_eq(rests_of(&traced, false), 0);
}
