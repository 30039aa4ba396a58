/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_KERNEL_H
#define FRAGI_BASE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

#include <base/failure.h>

/* What a program of frag cannot do without, and a container or a limit may take away. */

/* A system call. of_hosts: only where hosts run; else every program needs it. */
struct fragi_kernel_call {
	const char *name;
	bool of_hosts;
	int (*make)(void);  /* makes it once, without effect; returns 0 or negative errno */
	const char *remedy; /* where it is refused; NULL: as of all calls, fragi_kernel_remedy */
};

/* The i-th call; NULL beyond the last. */
FRAGI_API const struct fragi_kernel_call *fragi_kernel_call_at(size_t i);

/*
 * Whether a program can begin: it may open the few files of an event loop, and the system makes
 * each call, those of_hosts if it runs hosts. Returns 0, or negative errno with a sentence.
 */
FRAGI_API int fragi_kernel_check(bool runs_hosts, struct frag_err *err);

#define FRAGI_KERNEL_REMEDY_MAX 256
/*
 * What to do when a system call of this process has failed so: "; let its container allow ...", for
 * a limit of processes and threads (-EAGAIN) which one it is and how large; "" where the code's own
 * text says it. To be added to that text. Returns out.
 */
FRAGI_API const char *fragi_kernel_remedy(int code, char out[FRAGI_KERNEL_REMEDY_MAX]);

#endif
