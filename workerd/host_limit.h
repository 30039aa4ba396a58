/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_HOST_LIMIT_H
#define WRK_HOST_LIMIT_H

#include <sys/resource.h>

#include <base/diag.h>

/*
 * Limits (setrlimit) of each host, as --host-limit gives them. What is not given is inherited: core
 * files and locked memory as this worker was granted them, and no limit on address space, of which
 * CUDA and sanitizers reserve far more than they use.
 */
#define WRK_HOST_LIMITS_MAX 16

struct wrk_host_limits {
	struct wrk_host_limit {
		int resource;
		struct rlimit value;
	} items[WRK_HOST_LIMITS_MAX];
	size_t count;
};

/* text: NAME=N, as nproc=512 or core=unlimited. Returns 0, or negative errno with a sentence. */
int wrk_host_limits_add(struct wrk_host_limits *limits, const char *text, struct frag_err *err);
/* What a host has of it: as given, or as this process. */
struct rlimit wrk_host_limits_get(const struct wrk_host_limits *limits, int resource);
/* Sets them for this process. Only system calls. */
int wrk_host_limits_apply(const struct wrk_host_limits *limits);

#endif
