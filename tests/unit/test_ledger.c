// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <edge/ledger.h>

static int memory_file(void)
{
	int fd = memfd_create("ledger", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_geq(fd, 0);
	return fd;
}

Test(ledger, a_reader_sees_what_the_writer_counts)
{
	struct fragi_ledger writer, reader;
	int fd = memory_file();

	cr_assert_eq(fragi_ledger_create(&writer, fd, 3, 5), 0);
	cr_assert_eq(fragi_ledger_open(&reader, fd), 0);
	cr_assert_eq(reader.head->op_count, 3);
	cr_assert_eq(reader.head->flow_count, 5);
	fragi_count(&writer.flows[4].sent, 7);
	fragi_count(&writer.ops[2].ticks, 9);
	fragi_hist_add(&writer.flows[4].latency, 1000);
	cr_assert_eq(reader.flows[4].sent, 7);
	cr_assert_eq(reader.ops[2].ticks, 9);
	cr_assert_eq(reader.flows[4].latency.count, 1);
	for (uint32_t i = 0; i < 5; i++)
		cr_assert_eq((uintptr_t)&reader.flows[i] % 64, 0);
	fragi_ledger_close(&writer);
	cr_assert_eq(reader.flows[4].sent, 7); /* also when the writer is gone */
	fragi_ledger_close(&reader);
	close(fd);
}

static long resident_pages(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	return (long)st.st_blocks / 8;
}

/* Neither to write nor to read it takes memory for octaves that no histogram has values in. */
Test(ledger, histograms_take_memory_for_the_octaves_they_use)
{
	enum { OPS = 1000 };
	struct fragi_ledger writer, reader;
	struct fragi_quantiles q;
	int fd = memory_file();

	cr_assert_eq(fragi_ledger_create(&writer, fd, OPS, OPS), 0);
	cr_assert_eq(fragi_ledger_open(&reader, fd), 0);
	for (uint32_t i = 0; i < OPS; i++) {
		fragi_hist_add(&writer.ops[i].compute, 100);
		fragi_hist_add(&writer.flows[i].latency, 3000 + i);
		fragi_hist_read(&reader.ops[i].compute, fragi_ledger_compute(&reader, i), &q);
		cr_assert_eq(q.p50, 100);
		fragi_hist_read(&reader.flows[i].latency, fragi_ledger_latency(&reader, i), &q);
		cr_assert_eq(q.max, 3000 + i);
	}
	/* rows of 704 bytes, and two octaves of 64 bytes; those below them would be 700 more */
	cr_expect_leq(resident_pages(fd) * 4096 / OPS, 1000, "%ld pages", resident_pages(fd));
	fragi_ledger_close(&writer);
	fragi_ledger_close(&reader);
	close(fd);
}

/* By name on one side, by index on the other: no counter is read into another's place. */
Test(ledger, every_counter_of_a_row_is_read)
{
	struct fragi_ledger ledger;
	struct fragi_flow_stats stats;
	uint64_t n = 100;

	cr_assert_eq(fragi_ledger_create(&ledger, -1, 0, 1), 0);
#define WRITE(name, shown, what) atomic_store(&ledger.flows[0].name, ++n);
	FRAGI_SENDER_LIST(WRITE)
	FRAGI_RECEIVER_LIST(WRITE)
	for (int i = 0; i < FRAGI_DROP_REASONS; i++) {
		atomic_store(&ledger.flows[0].tx_dropped[i], 200 + (uint64_t)i);
		atomic_store(&ledger.flows[0].rx_dropped[i], 300 + (uint64_t)i);
	}
	fragi_flow_row_read(&ledger.flows[0], fragi_ledger_latency(&ledger, 0), &stats);
	for (int i = 0; i < FRAGI_COUNTERS; i++)
		cr_expect_eq(stats.counters[i], 101 + (uint64_t)i, "%s",
			     fragi_counter_infos[i].name);
	for (int i = 0; i < FRAGI_DROP_REASONS; i++) {
		cr_expect_eq(stats.tx_dropped[i], 200 + (uint64_t)i);
		cr_expect_eq(stats.rx_dropped[i], 300 + (uint64_t)i);
	}
	cr_expect_eq(stats.sent, 101);
	cr_expect_eq(&stats.sent, &stats.counters[0], "what is sent is read last");
	fragi_ledger_close(&ledger);
}

Test(ledger, memory_of_the_process_itself)
{
	struct fragi_ledger ledger;

	cr_assert_eq(fragi_ledger_create(&ledger, -1, 0, 1), 0);
	cr_assert_eq(ledger.flows[0].sent, 0);
	fragi_ledger_close(&ledger);
	cr_assert_null(ledger.head);
	fragi_ledger_close(&ledger);
	cr_assert_eq(fragi_ledger_create(&ledger, -1, UINT32_MAX, 1), -E2BIG);
}

/* A host writes whatever it likes: no head may lead the reader out of the page. */
Test(ledger, every_changed_head_is_refused)
{
	struct fragi_ledger writer, reader;
	int fd = memory_file(), accepted = 0;
	uint8_t *bytes;
	size_t size;

	cr_assert_eq(fragi_ledger_create(&writer, fd, 2, 2), 0);
	bytes = (uint8_t *)writer.head;
	size = offsetof(struct fragi_ledger_head, reserved);
	for (size_t i = 0; i < size; i++)
		for (int bit = 0; bit < 8; bit++) {
			bytes[i] ^= (uint8_t)(1 << bit);
			if (fragi_ledger_open(&reader, fd) == 0) {
				accepted++;
				fragi_ledger_close(&reader);
			}
			bytes[i] ^= (uint8_t)(1 << bit);
		}
	cr_assert_eq(accepted, 0);
	cr_assert_eq(fragi_ledger_open(&reader, fd), 0);
	fragi_ledger_close(&reader);
	fragi_ledger_close(&writer);
	close(fd);
}

Test(ledger, a_page_cannot_be_cut_short)
{
	struct fragi_ledger writer, reader;
	int fd = memory_file();

	cr_assert_eq(fragi_ledger_create(&writer, fd, 2, 2), 0);
	cr_assert_eq(fragi_ledger_open(&reader, fd), 0);
	cr_assert_lt(ftruncate(fd, 10), 0);
	fragi_ledger_close(&reader);
	fragi_ledger_close(&writer);
	close(fd);
}

Test(ledger, what_is_no_page_is_refused)
{
	struct fragi_ledger reader;
	int fd = memory_file();

	cr_assert_eq(fragi_ledger_open(&reader, fd), -EBADMSG);
	close(fd);
	fd = memory_file();
	cr_assert_eq(ftruncate(fd, 100000), 0);
	cr_assert_eq(fragi_ledger_open(&reader, fd), -ENOENT, "its head is still to be written");
	cr_assert_eq(pwrite(fd, "other", 5, 0), 5);
	cr_assert_eq(fragi_ledger_open(&reader, fd), -EBADMSG);
	close(fd);
	cr_assert_lt(fragi_ledger_open(&reader, -1), 0);
}

/* What is computed is a sum of bucket middles, and no more than the operator has lasted. */
Test(ledger, an_operator_computes_or_waits_while_it_lasts)
{
	static const struct {
		uint64_t started, seen, ended, computed, time, waiting;
	} rows[] = {
		{100, 0, 900, 300, 300, 500},   {100, 0, 900, 0, 0, 800},
		{100, 0, 900, 800, 800, 0},     {100, 0, 900, 950, 800, 0},
		{100, 700, 0, 250, 250, 350},   {100, 700, 0, 601, 600, 0},
		{100, 700, 900, 250, 250, 550}, /* the end counts, not what was seen before */
		{0, 0, 900, 250, 0, 0},         {500, 0, 400, 250, 0, 0},
	};
	struct fragi_op_row row = {0};
	struct fragi_job job;

	atomic_store(&row.compute.count, 17);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		atomic_store(&row.started_ns, rows[i].started);
		atomic_store(&row.seen_ns, rows[i].seen);
		atomic_store(&row.ended_ns, rows[i].ended);
		fragi_op_row_job(&row, rows[i].computed, &job);
		cr_expect_eq(job.count, 17);
		cr_expect_eq(job.time_ns, rows[i].time, "row %zu: %llu", i,
			     (unsigned long long)job.time_ns);
		cr_expect_eq(job.waiting_ns, rows[i].waiting, "row %zu: %llu", i,
			     (unsigned long long)job.waiting_ns);
	}
	/* One that still runs, and was never seen, has lasted until now. */
	atomic_store(&row.started_ns, (uint64_t)fragi_now_ns() - 5000000);
	atomic_store(&row.ended_ns, 0);
	atomic_store(&row.seen_ns, 0);
	fragi_op_row_job(&row, 1000000, &job);
	cr_expect_eq(job.time_ns, 1000000);
	cr_expect_geq(job.waiting_ns, 4000000);
}

Test(ledger, reasons_have_names)
{
	cr_assert_str_eq(fragi_drop_name(FRAGI_DROP_QUEUE_FULL), "queue_full");
	cr_assert_str_eq(fragi_drop_name(FRAGI_DROP_NO_ROOM), "no_room");
	cr_assert_str_eq(fragi_drop_name(FRAGI_DROP_RECEIVER_DONE), "receiver_done");
	cr_assert_str_eq(fragi_drop_name(FRAGI_DROP_STOPPED), "stopped");
	cr_assert_str_eq(fragi_drop_name((enum fragi_drop)99), "unknown");
}
