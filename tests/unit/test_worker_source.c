// SPDX-License-Identifier: Apache-2.0
#include "worker_world.h"

/* Graphs that hosts have in common: the driver sends one with the first of them. */

static void creates(uint32_t number, const char *source)
{
	static struct fw_message create;

	create = create_of(7, number, 9);
	create.create.source = source;
	create.create.source_bytes = source != NULL ? (uint32_t)strlen(source) : 0;
	create.create.has_last_source = source == NULL;
	from_driver(&create);
}

static void expect_spawned(uint32_t number, const char *source)
{
	const struct wrk_action *spawn = did(WRK_DO_SPAWN);

	cr_assert_not_null(spawn, "host %u", number);
	cr_expect_eq(spawn->message->host, number);
	cr_expect_not(spawn->message->create.has_last_source, "the host gets the graph itself");
	cr_assert_eq(spawn->message->create.source_bytes, strlen(source));
	cr_expect_eq(memcmp(spawn->message->create.source, source, strlen(source)), 0);
}

Test(worker_source, a_host_has_the_graph_of_the_one_before_it, .fini = finish)
{
	start_attached(false);
	creates(1, "first");
	expect_spawned(1, "first");
	creates(2, NULL);
	expect_spawned(2, "first");
	creates(3, "second");
	expect_spawned(3, "second");
	creates(4, NULL);
	expect_spawned(4, "second");
}

Test(worker_source, a_host_that_is_refused_leaves_its_graph_for_the_next, .fini = finish)
{
	start_attached(false);
	creates(1, "first");
	creates(1, "second"); /* of an epoch that runs */
	cr_expect_null(did(WRK_DO_SPAWN));
	creates(2, NULL);
	expect_spawned(2, "second");
}

Test(worker_source, a_driver_that_has_sent_no_graph_is_left, .fini = finish)
{
	start_attached(false);
	creates(1, NULL);
	cr_expect_null(did(WRK_DO_SPAWN));
	cr_assert_not_null(did(WRK_DO_DISCONNECT));
}

Test(worker_source, graphs_are_of_one_session, .fini = finish)
{
	start_attached(false);
	creates(1, "first");
	driver_lost("it was killed");
	cr_assert(timers_until(now + 60000 * MS, WRK_DO_CONNECT));
	attach();
	creates(2, NULL);
	cr_expect_null(did(WRK_DO_SPAWN), "the next driver has sent none");
	cr_expect_not_null(did(WRK_DO_DISCONNECT));
}
