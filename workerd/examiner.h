/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_EXAMINER_H
#define WRK_EXAMINER_H

#include <uv.h>

#include <wire/message.h>

/*
 * What `fragctl doctor` finds on this node, as a child of this worker, whose limits it has. A disk
 * or a GPU that is ill may hold it for long, so it ends itself after a while.
 */
#define WRK_EXAMINER_BYTES 65536
struct wrk_examiner {
	char program[4096]; /* fragctl, beside this program; empty: there is none to run */
	const char *argv[8];
	void (*done)(void *arg, const struct fw_message *answer);
	void *arg;
	uv_pipe_t output;
	pid_t pid; /* of the child; 0: it could not be started */
	bool is_busy;
	char text[WRK_EXAMINER_BYTES];
	size_t used;
	char why_not[400];
	struct fw_finding findings[FW_FINDINGS_MAX];
	struct fw_message answer; /* of these texts */
};

/*
 * Of workerd. Texts are borrowed.
 * - driver: its address
 * - certificate: a file; NULL: none
 */
void wrk_examiner_init(struct wrk_examiner *examiner, const char *driver, const char *certificate);
/*
 * Starts it, and calls done with an EXAMINED that is valid until the next call of this function.
 * While it runs another call does nothing.
 */
void wrk_examiner_begin(struct wrk_examiner *examiner, uv_loop_t *loop,
			void (*done)(void *arg, const struct fw_message *answer), void *arg);
/* The loop is about to end: done is not called any more. */
void wrk_examiner_end(struct wrk_examiner *examiner);

#endif
