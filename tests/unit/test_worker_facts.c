// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <workerd/facts.h>
#include <workerd/gpu_load.h>

#include "scratch.h"

/* What workerd reads of a host and its machine, from a procfs of files. */

#define PID 4711

static struct fw_facts facts_of(int pid)
{
	struct fw_facts facts = {0};

	wrk_facts_read(pid, &(struct wrk_facts_past){0}, &facts);
	return facts;
}

static void begin(void)
{
	scratch_make();
	wrk_facts_proc = scratch;
}

/* The fields of stat from the state on: 12 is majflt, 24 rss, 42 delayacct_blkio_ticks. */
#define STAT(name, faults, pages, io) STAT_IN("S", name, faults, pages, io)
#define STAT_IN(state, name, faults, pages, io)                                                    \
	"4711 (" name ") " state " 1 2 3 4 5 6 7 8 " faults                                        \
	" 10 11 12 13 14 15 16 17 18 19 20 " pages                                                 \
	" 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 " io " 40 41\n"

Test(worker_facts, what_procfs_says, .init = begin, .fini = scratch_remove)
{
	struct fw_facts facts;
	uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);

	/* A thread may be called anything, and one ends while it is read. */
	put("4711/stat", STAT("a) R 7 (b c", "13", "100", "0"));
	put("4711/task/4711/schedstat", "5000 300 7\n");
	put("4711/task/4711/stat", STAT("a) R 7 (b c", "13", "100", "2"));
	put("4711/task/4712/schedstat", "70 11 1\n");
	put("4711/task/4712/stat", STAT("", "0", "0", "3"));
	put("4711/task/4713/schedstat", "");
	put("4711/task/4714/stat", "4714 (cut");
	put("stat", "cpu  1 2 3 400 500 6 7 8 0 0\ncpu0 9 9 9 9 9 9 9 9\n");
	put("meminfo", "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:   400 kB\n");
	put("net/dev", "Inter-|   Receive  |  Transmit\n"
		       " face |bytes packets errs drop fifo frame compressed multicast|bytes\n"
		       "    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n"
		       "  eth0:17 1 0 0 0 0 0 0 19 1 0 0 0 0 0 0\n"
		       " lo2: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n"
		       "broken\n");
	facts = facts_of(PID);
	cr_expect_eq(facts.cpu_ns, 5070);
	cr_expect_eq(facts.starved_ns, 311);
	cr_expect_eq(facts.io_ns, 5 * tick_ns);
	cr_expect_eq(facts.major_faults, 13);
	cr_expect_eq(facts.rss_bytes, 100 * (uint64_t)sysconf(_SC_PAGESIZE));
	cr_expect_eq(facts.machine_cpu_ns, (1 + 2 + 3 + 6 + 7 + 8) * tick_ns);
	cr_expect_eq(facts.memory_bytes, 1000 * 1024);
	cr_expect_eq(facts.memory_used_bytes, 600 * 1024);
	cr_expect_eq(facts.received_bytes, 117);
	cr_expect_eq(facts.sent_bytes, 219);
	cr_expect_geq(facts.machine_cores, 1);
}

/* After so long; of two threads the states are those of ps. */
static uint64_t io_after(struct wrk_facts_past *past, uint64_t ms, const char *one, const char *two)
{
	struct fw_facts facts = {.at_ns = past->at_ns + ms * 1000000};

	put("4711/task/4711/stat", one);
	put("4711/task/4712/stat", two);
	wrk_facts_read(PID, past, &facts);
	return facts.io_ns / 1000000;
}

Test(worker_facts, a_kernel_that_counts_no_waits_for_disks, .init = begin, .fini = scratch_remove)
{
	static const char waits[] = STAT_IN("D", "a) S 7 (b c", "0", "0", "0"),
			  sleeps[] = STAT_IN("S", "a) D 7 (b c", "0", "0", "0");
	struct wrk_facts_past past = {0};

	put("sys/kernel/task_delayacct", "0\n");
	cr_expect_eq(io_after(&past, 5000, waits, waits), 0, "nothing was seen before");
	cr_expect_eq(io_after(&past, 250, sleeps, sleeps), 0);
	cr_expect_eq(io_after(&past, 250, sleeps, waits), 250);
	cr_expect_eq(io_after(&past, 30, waits, waits), 250 + 60);
	cr_expect_eq(io_after(&past, 9000, waits, sleeps), 250 + 60 + 1000, "after a pause");
	cr_expect_eq(io_after(&past, 250, sleeps, "4712 (cut"), 250 + 60 + 1000);
	put("sys/kernel/task_delayacct", "1\n");
	cr_expect_eq(io_after(&past, 250, waits, STAT("x", "0", "0", "700")),
		     700 * 1000 / (uint64_t)sysconf(_SC_CLK_TCK), "it is counted");
}

Test(worker_facts, what_is_not_there_stays_zero, .init = begin, .fini = scratch_remove)
{
	struct fw_facts facts = facts_of(PID);
	static const struct fw_facts nothing;

	facts.machine_cores = facts.cores = 0; /* the kernel itself is asked */
	cr_expect_arr_eq(&facts, &nothing, sizeof(facts));
	put("4711/stat", "");
	put("stat", "cpu 1 2 3\n");
	put("meminfo", "MemTotal: 10 kB\nMemAvailable: 40 kB\n");
	put("net/dev", "eth0: 1 2 3\n eth1:\n");
	facts = facts_of(PID);
	cr_expect_eq(facts.machine_cpu_ns, 0);
	cr_expect_eq(facts.memory_bytes, 10240);
	cr_expect_eq(facts.memory_used_bytes, 0, "as in a container of a larger machine");
	cr_expect_eq(facts.received_bytes, 0);
}

/* A shell script in the place of fraghost. */
static void run_script(struct wrk_gpu_reader *reader, const char *text)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/script", scratch);
	put("script", text);
	cr_assert_eq(chmod(path, 0700), 0);
	*reader = (struct wrk_gpu_reader){.program = path};
}

Test(worker_facts, a_child_reads_gpus_while_somebody_looks, .init = begin, .fini = scratch_remove)
{
	struct wrk_gpu_reader reader;
	struct fw_facts facts = {0};
	uv_loop_t loop;

	uv_loop_init(&loop);
	run_script(&reader, "#!/bin/sh\nwhile echo 1 20 300 40; do sleep 0.02; done\n");
	wrk_gpu_load_read(&reader, &loop, &facts);
	cr_expect_eq(facts.gpus, 0, "it has only begun");
	while (reader.last.count == 0)
		uv_run(&loop, UV_RUN_ONCE);
	wrk_gpu_load_read(&reader, &loop, &facts);
	cr_expect_eq(facts.gpus, 1);
	cr_expect_eq(facts.gpu_busy_permille, 20);
	cr_expect_eq(facts.gpu_memory_bytes, 300);
	cr_expect_eq(facts.gpu_memory_used_bytes, 40);
	reader.asked_ns -= 6000000000;
	uv_run(&loop, UV_RUN_DEFAULT); /* until there is no child */
	cr_expect_eq(reader.pid, 0);
	wrk_gpu_load_read(&reader, &loop, &facts);
	cr_expect_eq(facts.gpus, 0);
	cr_expect_neq(reader.pid, 0, "it is started anew");
	wrk_gpu_load_end(&reader);
	wrk_gpu_load_end(&reader);
	uv_run(&loop, UV_RUN_DEFAULT);
	run_script(&reader, "#!/bin/sh\necho no GPU\n");
	wrk_gpu_load_read(&reader, &loop, &facts);
	uv_run(&loop, UV_RUN_DEFAULT);
	wrk_gpu_load_read(&reader, &loop, &facts);
	cr_expect_eq(reader.pid, 0, "it is not tried again");
	reader = (struct wrk_gpu_reader){.program = NULL};
	wrk_gpu_load_read(&reader, &loop, &facts);
	cr_expect_eq(reader.pid, 0, "a machine without GPUs");
	cr_expect_eq(uv_loop_close(&loop), 0);
}
