/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_SECCOMP_H
#define WRK_SECCOMP_H

#include <linux/filter.h>
#include <stddef.h>

#include <base/diag.h>

/*
 * The system calls that hosts are refused: those that reach into other processes or into the
 * kernel, and that no operator needs. They return EPERM. Everything else is allowed, because what
 * operators, UCX and CUDA call differs from version to version.
 */
struct wrk_seccomp {
	struct sock_fprog program; /* owned */
	size_t denied;             /* system calls */
};

/* Whether the running kernel has filters. Returns 0 or negative errno. */
int wrk_seccomp_probe(void);
int wrk_seccomp_init(struct wrk_seccomp *seccomp, struct frag_err *err);
void wrk_seccomp_fini(struct wrk_seccomp *seccomp);

#endif
