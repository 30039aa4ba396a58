// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <frag/harness.h>

#include "testing/testing.h"

static size_t bytes_of(struct frag_message *message)
{
	return frag_tensor_size_bytes(frag_message_tensor_at(message, 0, NULL));
}

/* Sends back what came out, one at a time. Returns how many bytes it had; 0: nothing came. */
static size_t send_back(struct frag_harness *h)
{
	struct frag_message *message = NULL;
	size_t bytes;

	if (frag_harness_take(h, "out", &message) < 0)
		return 0;
	bytes = bytes_of(message);
	cr_assert_eq(frag_harness_give(h, "in", message), 0);
	return bytes;
}

Test(ops_connection, it_asks_one_by_one_then_keeps_some_under_way)
{
	struct frag_harness *h = frag_harness_create(&testing_connection_type, FRAG_NO_ARGS, NULL);
	size_t small = 0, large = 0, bytes;
	int r = 0;

	cr_assert_not_null(h);
	cr_assert_eq(frag_harness_ready(h), 0, "it waits for whoever begins");
	cr_assert_eq(frag_harness_give_i64(h, "in", 1), 0);
	while (r == 0 && frag_harness_ready(h) == 1) {
		r = frag_harness_tick(h);
		bytes = send_back(h);
		small += bytes == 8;
		large += bytes == 1 << 20;
		if (bytes == 8)
			cr_assert_eq(send_back(h), 0, "one at a time");
		while (large != 0 && (bytes = send_back(h)) != 0)
			large++;
	}
	cr_expect_eq(r, FRAG_DONE);
	cr_expect_eq(small, 101);
	cr_expect_eq(large, 64);
	frag_harness_destroy(h);
}
