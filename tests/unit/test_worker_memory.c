/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_world.h"

TestSuite(worker_memory, .fini = finish);

Test(worker_memory, short_memory_is_an_error_not_a_crash)
{
	int64_t failed = 1;

	for (int64_t skip = 0; failed > 0 && skip < 100; skip++) {
		struct fw_message create = create_of(7, 1, 1);
		int r;

		finish();
		start_attached(false);
		wrk_actions_fini(&actions);
		fragi_alloc_fail_after(skip, INT64_MAX);
		r = step((struct wrk_event){
			.kind = WRK_DRIVER_MESSAGE, .link = seen_link, .message = &create});
		failed = fragi_alloc_fail_off();
		cr_expect_eq(r, failed > 0 ? -ENOMEM : 0);
	}
}
