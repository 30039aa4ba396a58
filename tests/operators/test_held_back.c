// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdarg.h>

#include "held_back.h"

static uint64_t counted;
static int logged;

/* In place of the library's. */
void frag_op_log(const struct frag_op *op, const char *format, ...)
{
	(void)op;
	(void)format;
	logged++;
}

void frag_op_count(const struct frag_op *op, enum frag_op_counter counter, uint64_t more)
{
	(void)op;
	counted += counter == FRAG_OP_HELD_BACK ? more : 0;
}

/* Ticks that begin ten seconds late: each is counted, and the first one is logged. */
Test(ops_held_back, every_late_tick_is_counted_and_the_first_one_logged)
{
	static const struct {
		double rate;
		int counted;
	} rows[] = {{0.0, 0}, {0.2, 0}, {0.4, 1}, {0.2, 1}, {0.4, 2}, {100.0, 3}};
	struct held_back held = {0};

	held_back_begin(&held, NULL, 0.4);
	cr_expect(counted == 0 && logged == 0, "no tick has ended");
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		held_back_end(&held);
		held.left_ns -= 10 * INT64_C(1000000000);
		held_back_begin(&held, NULL, rows[i].rate);
		cr_expect_eq(counted, (uint64_t)rows[i].counted, "row %zu", i);
		cr_expect_eq(logged, rows[i].counted > 0, "row %zu", i);
	}
	held_back_end(&held);
	held_back_begin(&held, NULL, 0.4);
	cr_expect_eq(counted, 3, "this one is not late");
}
