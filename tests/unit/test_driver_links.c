// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* Data links that hosts report lost: what is waited for before one of them is the cause. */

/*
 * Both workers fall silent when the link is reported. The peer's is heard again, so that the link
 * would be judged; the reporter's is suspect by then, and dies.
 */
WORLD_TEST(driver_links, the_worker_that_reported_may_be_the_one_that_dies, world_init)
{
	to_running(w);
	pass_beating(w, SECOND, 1, 2);
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
	pass(w, 1200 * MS);
	assert_has(w->log, "worker a has not been heard");
	pass_beating(w, 1500 * MS, 2, 2);
	cr_expect_str_eq(w->errors, "");
	pass_beating(w, SECOND, 2, 2);
	assert_has(w->errors, "worker a at 10.0.0.9:1, which ran f1, was lost");
}
