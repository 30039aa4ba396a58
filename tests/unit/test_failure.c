// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/failure.h>
#include <graph/compose.h>
#include <sched/exec.h>

Test(failure, every_code_has_a_name_a_scope_and_an_exit_code)
{
	for (int i = FRAGI_FAILURE_NONE + 1; i < FRAGI_FAILURES; i++) {
		const char *name = fragi_failure_name((enum fragi_failure)i);

		cr_expect_neq(fragi_failure_scope((enum fragi_failure)i)[0], '\0', "%s", name);
		cr_expect(fragi_failure_exit((enum fragi_failure)i) >= FRAGI_EXIT_FAILED &&
				  fragi_failure_exit((enum fragi_failure)i) <= FRAGI_EXIT_REFUSED,
			  "%s", name);
		for (int k = FRAGI_FAILURE_NONE; k < i; k++)
			cr_expect_str_neq(fragi_failure_name((enum fragi_failure)k), name);
	}
	cr_expect_eq(fragi_failure_exit(FRAGI_FAILURE_NONE), FRAGI_EXIT_OK);
	cr_expect_str_eq(fragi_failure_name(FRAGI_FAILURES), "none");
	cr_expect_str_eq(fragi_failure_scope(FRAGI_FAILURES), "");
}

Test(failure, the_first_class_of_an_error_stays)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(
		fragi_err_fail(&err, FRAGI_FAILURE_PORT_IN_USE, "f.op", -EADDRINUSE, "port %d", 7),
		-EADDRINUSE);
	cr_expect_eq(fragi_err_fail(&err, FRAGI_FAILURE_USAGE, NULL, -EINVAL, "later"), -EINVAL);
	cr_expect_eq(fragi_err_classify(&err, FRAGI_FAILURE_USAGE, NULL), -EADDRINUSE);
	cr_expect_eq(fragi_err_failure(&err), FRAGI_FAILURE_PORT_IN_USE);
	cr_expect_str_eq(err.text, "port 7");
	cr_expect_str_eq(err.op, "f.op");
	cr_expect_eq(fragi_err_fail(NULL, FRAGI_FAILURE_USAGE, NULL, -EINVAL, "nowhere"), -EINVAL);
}

/* A program that was built before errors had a class holds a shorter struct. */
Test(failure, nothing_is_written_behind_an_older_struct)
{
	struct frag_err err;

	memset(&err, 0x5A, sizeof(err));
	err.struct_size = offsetof(struct frag_err, failure);
	err.code = 0;
	err.text[0] = '\0';
	fragi_err_fail(&err, FRAGI_FAILURE_LIBRARY_MISSING, "f.op", -ENOENT, "gone");
	cr_expect_str_eq(err.text, "gone");
	cr_expect_eq(err.failure, 0x5A5A5A5A);
	cr_expect_eq(err.op[0], 0x5A);
	cr_expect_eq(fragi_err_failure(&err), FRAGI_FAILURE_FILE_MISSING, "by its errno");
}

Test(failure, an_error_without_a_class_gets_one_by_its_errno)
{
	static const int codes[][2] = {
		{-EINVAL, FRAGI_FAILURE_GRAPH_INVALID},  {-ENOENT, FRAGI_FAILURE_FILE_MISSING},
		{-EMFILE, FRAGI_FAILURE_SYSTEM_REFUSED}, {-ENFILE, FRAGI_FAILURE_SYSTEM_REFUSED},
		{-ENOMEM, FRAGI_FAILURE_OUT_OF_MEMORY},  {-EIO, FRAGI_FAILURE_OTHER}};

	for (size_t i = 0; i < FRAG_COUNT_OF(codes); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		frag_err_set(&err, codes[i][0], "x");
		cr_expect_eq(fragi_err_failure(&err), (enum fragi_failure)codes[i][1]);
	}
}

Test(failure, a_callback_that_fails_before_the_start_says_what_it_lacks)
{
	static const int codes[][2] = {{-EINVAL, FRAGI_FAILURE_OPERATOR_REFUSED},
				       {-ENOENT, FRAGI_FAILURE_OPERATOR_LACKS_FILE},
				       {-EIO, FRAGI_FAILURE_OPERATOR_FAILED}};

	for (size_t i = 0; i < FRAG_COUNT_OF(codes); i++) {
		struct frag_op *op = calloc(1, sizeof(*op));
		struct fragi_diag diag = {0};

		op->subject = "f.op";
		fragi_diag_add(&diag, -EINVAL, NULL, 0, 0, "another's");
		cr_expect_eq(
			fragi_op_callback_failed(op, &diag, FRAGI_CALL_INITIALIZE, codes[i][0]),
			codes[i][0]);
		cr_assert_eq(diag.count, 2);
		cr_expect_eq(diag.items[0].failure, FRAGI_FAILURE_NONE);
		cr_expect_eq(fragi_err_failure(&diag.items[1]), (enum fragi_failure)codes[i][1]);
		cr_expect_str_eq(diag.items[1].op, "f.op");
		fragi_diag_fini(&diag);
		free(op);
	}
}

Test(failure, what_an_emit_refused_is_told_from_what_the_operator_found)
{
	struct fragi_exec *exec = calloc(1, sizeof(*exec));

	exec->tick.number = 5;
	cr_expect_eq(fragi_exec_failure(exec, FRAGI_CALL_COMPUTE, -EMSGSIZE),
		     FRAGI_FAILURE_OPERATOR_FAILED);
	exec->tick.refused = -EMSGSIZE;
	exec->tick.refused_in = 5;
	cr_expect_eq(fragi_exec_failure(exec, FRAGI_CALL_COMPUTE, -EMSGSIZE),
		     FRAGI_FAILURE_MESSAGE_REFUSED);
	cr_expect_eq(fragi_exec_failure(exec, FRAGI_CALL_COMPUTE, -EIO),
		     FRAGI_FAILURE_OPERATOR_FAILED);
	exec->tick.fault = -EOVERFLOW;
	cr_expect_eq(fragi_exec_failure(exec, FRAGI_CALL_COMPUTE, -EOVERFLOW),
		     FRAGI_FAILURE_QUEUE_OVERFLOW);
	cr_expect_eq(fragi_exec_failure(exec, FRAGI_CALL_START, -EIO),
		     FRAGI_FAILURE_OPERATOR_FAILED);
	exec->missed_deadline = true;
	cr_expect_eq(fragi_exec_failure(exec, FRAGI_CALL_COMPUTE, -ETIME),
		     FRAGI_FAILURE_DEADLINE_MISSED);
	free(exec);
}
