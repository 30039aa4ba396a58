// SPDX-License-Identifier: Apache-2.0
#include "worker_world.h"

/*
 * Whatever allocation fails in whatever step: the core says so and can be destroyed, or the worker
 * ends as it would have.
 */
TestSuite(worker_memory, .fini = finish);

static const char *const names[] = {"tx", "detect"};

static void host_says(enum fw_kind kind)
{
	struct fw_op ops[] = {{.name = names[0], .type = "t"}, {.name = names[1], .type = "t"}};
	struct fw_fragment table = {.name = "fragment1", .ops = ops, .op_count = 2};
	struct fw_message message = host_frame(kind);

	if (kind == FW_HOST_PREPARED)
		message.prepared = (struct fw_host_prepared){
			.ok = true, .fragments = &table, .fragment_count = 1};
	else
		message.result = (struct fw_host_result){0};
	from_host(&message);
}

static bool keeps_hosts; /* the driver */

/* To where a host runs, whose page is sampled. */
static void live_up_to_a_host(void)
{
	struct fw_op_stats ops[] = {{.ticks = 3}, {.ticks = 17, .running = true}};
	struct fw_host_stats stats = {.ops = ops, .op_count = 2};
	struct fw_message create = create_of(7, 1, 1), wire = host_frame(FW_HOST_WIRE),
			  kept = welcome;

	make_started(!keeps_hosts);
	connected("127.0.0.1");
	kept.welcome.keeps_hosts = keeps_hosts;
	from_driver(&kept);
	from_driver(&create);
	spawned(seen_host);
	host_says(FW_HOST_PREPARED);
	from_driver(&wire);
	host_says(FW_HOST_WIRED);
	now += 250 * MS;
	step((struct wrk_event){.kind = WRK_EVENT_TIMER});
	step((struct wrk_event){
		.kind = WRK_EVENT_HOST_SAMPLED, .host = seen_host, .stats = &stats});
}

static void end_by_a_crash(void)
{
	live_up_to_a_host();
	exited(0, SIGSEGV, true);
	app_ended(7, 1);
}

static void end_by_an_order(void)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	live_up_to_a_host();
	from_driver(&stop);
	exited(0, 0, true);
	app_ended(7, 0);
}

static void end_by_a_lost_driver(void)
{
	live_up_to_a_host();
	driver_lost("connection reset");
	exited(0, SIGKILL, true);
}

/* What is kept of its hosts is reported to the driver that has come back. */
static void end_after_a_report(void)
{
	struct fw_message kept = welcome;

	keeps_hosts = true;
	live_up_to_a_host();
	exited(1, 0, true);
	driver_lost("connection reset");
	now += WRK_BACKOFF_HOSTS_NS;
	step((struct wrk_event){.kind = WRK_EVENT_TIMER});
	connected("127.0.0.1");
	kept.welcome.keeps_hosts = true;
	from_driver(&kept);
	keeps_hosts = false;
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
}

static void end_by_a_refusal(void)
{
	struct fw_message create = create_of(7, 1, 1);

	live_up_to_a_host();
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	create.host = 2;
	from_driver(&create); /* refused: it has been told to end */
	now += WRK_GRACE_NS;
	step((struct wrk_event){.kind = WRK_EVENT_TIMER});
	exited(0, SIGTERM, false);
}

Test(worker_memory, every_failure_is_told, .timeout = 300)
{
	static const struct {
		void (*live)(void);
		int exit_code;
	} lives[] = {{end_by_a_crash, 1},
		     {end_by_an_order, 0},
		     {end_by_a_lost_driver, 3},
		     {end_by_a_refusal, 0},
		     {end_after_a_report, 0}};
	int64_t told = 0;

	for (size_t i = 0; i < FRAG_COUNT_OF(lives); i++) {
		int64_t skip = 0;

		short_step = 0;
		for (bool more = true; more;) {
			finish();
			broken = false;
			step_count = 0;
			short_skip = skip;
			lives[i].live();
			cr_assert(broken || (did(WRK_DO_EXIT) != NULL &&
					     did(WRK_DO_EXIT)->exit_code == lives[i].exit_code),
				  "life %zu, step %d, allocation %d: it did not end as it should",
				  i, (int)short_step, (int)skip);
			told += broken;
			more = broken || step_count > short_step;
			if (short_skip == -1) {
				short_step++;
				skip = 0;
			} else {
				skip++;
			}
		}
	}
	cr_expect_gt(told, 100);
}

Test(worker_memory, a_core_that_cannot_be_made_is_not)
{
	const struct wrk_config config = {.name = "a"};

	fragi_alloc_fail_after(0, 1);
	cr_expect_eq(wrk_core_create(&config, &core), -ENOMEM);
	fragi_alloc_fail_off();
	cr_expect_null(core);
}
