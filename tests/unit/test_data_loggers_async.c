// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <res/data_logger.h>
#include <run/state.h>

#include "left.h"
#include "logger_ops.h"

static struct frag_data_logger_counts counts_of(const struct rig *rig)
{
	struct frag_data_logger_counts counts;
	struct frag_fragment *fragment = rig->run->fragments[0].fragment;

	cr_assert_eq(fragment->logger_count, 1);
	cr_assert_eq(frag_data_logger_counts(fragment->loggers[0], &counts), 0);
	return counts;
}

/* Asynchronous ones. */

Test(data_loggers, an_asynchronous_one_logs_all_before_the_end)
{
	FOR_EACH_SCHEDULER(s)
	{
		struct rig rig;

		clear();
		rig_run(&rig, &plugin,
			rig_graph(s, "data_loggers: {log: {type: async_capture}}\n" CHAIN));
		rig_end(&rig);
		cr_expect_eq(entry_count, 80);
		for (uint32_t i = 0; i < entry_count; i++)
			cr_expect_not(entries[i].in_compute, "on a thread of its own");
		cr_expect_eq(stops, 1);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

/* The logger stands still: the graph ends nevertheless, and every message is accounted for. */
Test(data_loggers, a_stuck_logger_stops_nobody_and_rejections_are_counted)
{
	FOR_EACH_SCHEDULER(s)
	{
		struct frag_data_logger_counts counts;
		struct rig rig;

		clear();
		atomic_store(&gate_is_closed, true);
		rig_run(&rig, &plugin,
			rig_graph(s, "data_loggers: {log: {type: async_capture, gate: 1, "
				     "max_queue_size: 7}}\n" CHAIN));
		counts = counts_of(&rig);
		cr_expect_eq(counts.logged, 0);
		cr_expect(counts.rejected >= 72 && counts.rejected <= 73,
			  "7 wait, and the logger has one: %llu",
			  (unsigned long long)counts.rejected);
		atomic_store(&gate_is_closed, false);
		rig_end(&rig);
		cr_expect_eq(entry_count + counts.rejected, 80);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

Test(data_loggers, what_is_left_at_the_timeout_is_given_up)
{
	struct rig rig;
	struct frag_resource *logger;
	struct frag_data_logger_counts counts;

	clear();
	atomic_store(&gate_is_closed, true);
	rig_run(&rig, &plugin,
		rig_graph(0, "data_loggers: {log: {type: async_capture, gate: 1, "
			     "shutdown_timeout: 0ms}}\n" CHAIN));
	RIG_AWAIT(atomic_load(&at_gate) > 0);
	logger = rig.run->fragments[0].fragment->loggers[0];
	atomic_store(&gate_is_closed, false);
	fragi_data_logger_stop(fragi_data_logger_of(logger), false);
	cr_expect_eq(frag_data_logger_counts(logger, &counts), 0);
	cr_expect_eq(counts.logged + counts.abandoned, 80);
	cr_expect_eq(counts.logged, entry_count);
	cr_expect_geq(counts.abandoned, 1);
	rig_end(&rig);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

#define FRAMES(parameters)                                                                         \
	"data_loggers: {log: {type: async_capture, gate: 1, " parameters "}}\n"                    \
	"resources: {pool: {type: block_memory_pool, block_size: 64, num_blocks: 3}}\n"            \
	"operators:\n"                                                                             \
	"  tx: {type: camera, parameters: {pool: $pool, count: 30}}\n"                             \
	"  rx: {type: eye}\n"                                                                      \
	"flows: [tx -> rx]\n"

/* Nothing of such a run is freed: an operator may still come to log. */
static struct rig hanging[2];
Test(data_loggers, what_waits_when_an_operator_hangs_is_logged_or_counted)
{
	for (int stuck = 0; stuck < 2; stuck++) {
		struct frag_data_logger_counts counts;
		struct rig *rig = &hanging[stuck];

		clear();
		left_own.descriptors += 5; /* what hangs is left */
		left_own.shared_maps += 1;
		atomic_store(&gate_is_closed, stuck);
		rig_run(rig, &plugin,
			rig_graph(0, "data_loggers: {log: {type: async_capture, gate: 1, "
				     "shutdown_timeout: 1ms}}\n" CHAIN));
		fragi_sched_join(rig->run->fragments[0].sched);
		atomic_store(&rig->run->hung, true);
		atomic_store(&gate_is_closed, false);
		fragi_run_destroy(rig->run);
		counts = counts_of(rig);
		cr_expect_eq(counts.logged + counts.abandoned, 80, "%d + %d", (int)counts.logged,
			     (int)counts.abandoned);
		cr_expect_eq(counts.logged, entry_count);
		cr_expect_eq(counts.rejected + counts.failed, 0);
		cr_expect_eq(stops, 0, "its operator may still log");
	}
}

/* A description says of itself what the message does. */
static void expect_frame(uint32_t i)
{
	int number = atoi(entries[i].about);
	char about[160];

	snprintf(about, sizeof(about), "%d: at %d, flags %u, frame 1.8 of 2x3 by 3, 1", number,
		 number - 93, FRAG_MESSAGE_DEGRADED);
	cr_expect(number >= 100 && number < 200);
	cr_expect_str_eq(entries[i].about, about);
}

/* The logger has every message, yet no block: it has descriptions. */
Test(data_loggers, a_stuck_logger_keeps_no_blocks)
{
	struct rig rig;

	clear();
	atomic_store(&gate_is_closed, true);
	rig_run(&rig, &plugin, rig_graph(0, FRAMES("log_tensor_data_content: false")));
	cr_expect_eq(camera_refused, 0);
	atomic_store(&gate_is_closed, false);
	rig_end(&rig);
	cr_expect_eq(entry_count, 60);
	for (uint32_t i = 0; i < entry_count; i++) {
		cr_expect(entries[i].tensors == 1 && entries[i].has_content == 0);
		expect_frame(i);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

/* With the queue for large data each message comes twice: its description and its content. Without
 * it, or unless contents are asked for, the description is all. */
Test(data_loggers, contents_have_a_queue_of_their_own)
{
	static const char *const graphs[] = {
		"data_loggers: {log: {type: async_capture, log_tensor_data_content: true}}\n",
		"data_loggers: {log: {type: async_capture, log_tensor_data_content: true, enable_large_data_queue: false}}\n",
		"data_loggers: {log: {type: async_capture}}\n"};

	for (int i = 0; i < 3; i++) {
		bool is_separate = i == 0;
		char graph[512];
		uint32_t large = 0, whole = 0, described = 0;
		struct rig rig;

		clear();
		snprintf(graph, sizeof(graph),
			 "%soperators:\n  tx: {type: camera, parameters: {count: 9}}\n"
			 "  rx: {type: eye}\nflows: [tx -> rx]\n",
			 graphs[i]);
		rig_run(&rig, &plugin, rig_graph(0, graph));
		rig_end(&rig);
		for (uint32_t k = 0; k < entry_count; k++) {
			large += entries[k].large == 1;
			whole += entries[k].has_content == 1 && entries[k].data >= 0 &&
				 entries[k].data < 9;
			described += entries[k].has_content == 0;
			expect_frame(k);
		}
		cr_expect_eq(large, is_separate ? 18u : 0u);
		cr_expect_eq(whole, is_separate ? 18u : 0u);
		cr_expect_eq(described, 18u);
	}
}

RIG_ONE_TEST(data_loggers, failures_of_a_logger_are_counted_and_stop_nobody)
{
	struct frag_data_logger_counts counts;

	clear();
	atomic_store(&fail_with, -EIO);
	rig_run(rig, &plugin, rig_graph(0, "data_loggers: {log: {type: capture}}\n" CHAIN));
	counts = counts_of(rig);
	cr_expect_eq(counts.failed, 80);
	cr_expect_eq(counts.logged, 0);
}
