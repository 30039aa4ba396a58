/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_CONFINE_H
#define WRK_CONFINE_H

#include <workerd/host_limit.h>
#include <workerd/host_user.h>

struct sock_fprog;

/*
 * The rights that a child gives up before it executes a host, for itself and for everything that it
 * starts: the user, all capabilities but that of real-time scheduling, the way to gain privileges,
 * writing elsewhere (workerd/landlock.h), and some system calls (workerd/seccomp.h). The parent
 * prepares all of it, so that the child makes system calls only.
 */
struct wrk_confine {
	const struct wrk_host_user *user;
	const struct wrk_host_limits *limits;
	int group_fd;                    /* the folder of its control group; -1: none */
	int rules_fd;                    /* of Landlock; -1: none */
	const struct sock_fprog *filter; /* NULL: none */
};

/*
 * Confines this process, the child, which has one thread. out_what: what the kernel refused, a
 * static text for a sentence. Returns 0 or negative errno. Clears PR_SET_PDEATHSIG where the user
 * changes.
 */
int wrk_confine(const struct wrk_confine *confine, const char **out_what);
/* Frees the rules in the parent, once the child has started or cannot. */
void wrk_confine_end(struct wrk_confine *confine);

#endif
