// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/host_user.h>

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int take(const struct passwd *entry, struct wrk_host_user *out_user, struct frag_err *err)
{
	int count = WRK_HOST_USER_GROUPS_MAX;
	struct wrk_host_user user = {
		.is_other = entry->pw_uid != geteuid(), .uid = entry->pw_uid, .gid = entry->pw_gid};

	if (user.is_other && geteuid() != 0)
		return frag_err_set(
			err, -EPERM,
			"--host-user %.40s: only root can start hosts as another user; start workerd as root or as that user",
			entry->pw_name);
	if (getgrouplist(entry->pw_name, entry->pw_gid, user.groups, &count) < 0)
		return frag_err_set(err, -E2BIG, "--host-user %.40s is in more than %d groups",
				    entry->pw_name, WRK_HOST_USER_GROUPS_MAX);
	user.group_count = (size_t)count;
	snprintf(user.name, sizeof(user.name), "%s", entry->pw_name);
	snprintf(user.home, sizeof(user.home), "%s", entry->pw_dir);
	*out_user = user;
	return 0;
}

int wrk_host_user_find(const char *name, struct wrk_host_user *out_user, struct frag_err *err)
{
	const struct passwd *entry;

	if (name != NULL) {
		errno = 0;
		entry = getpwnam(name);
		return entry != NULL ? take(entry, out_user, err)
				     : frag_err_set(err, -ENOENT,
						    "--host-user %.40s: there is no such user%s%s",
						    name, errno != 0 ? ": " : "",
						    errno != 0 ? frag_strerror(-errno) : "");
	}
	entry = geteuid() == 0 ? getpwnam(WRK_HOST_USER_DEFAULT) : NULL;
	if (entry != NULL)
		return take(entry, out_user, err);
	*out_user = (struct wrk_host_user){.uid = geteuid(), .gid = getegid()};
	entry = getpwuid(geteuid());
	if (entry != NULL)
		snprintf(out_user->name, sizeof(out_user->name), "%s", entry->pw_name);
	else
		snprintf(out_user->name, sizeof(out_user->name), "%u", (unsigned int)geteuid());
	return 0;
}
