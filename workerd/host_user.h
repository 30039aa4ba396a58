/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_HOST_USER_H
#define WRK_HOST_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include <base/diag.h>

#define WRK_HOST_USER_DEFAULT "frag" /* of a worker that runs as root, where there is such a user */
#define WRK_HOST_USER_GROUPS_MAX 256

/* The user that hosts run as. */
struct wrk_host_user {
	bool is_other; /* than that of this process */
	uid_t uid;
	gid_t gid;
	gid_t groups[WRK_HOST_USER_GROUPS_MAX];
	size_t group_count;
	char name[64], home[512];
};

/*
 * name: as --host-user gives it; NULL: the default user if this process is root and there is one,
 * otherwise the user of this process. Returns 0, or negative errno with a sentence.
 */
int wrk_host_user_find(const char *name, struct wrk_host_user *out_user, struct frag_err *err);

#endif
