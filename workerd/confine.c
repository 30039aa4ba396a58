// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/confine.h>

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <workerd/control_group.h>
#include <workerd/landlock.h>

/* Both words of a set of capabilities. */
struct capabilities {
	struct __user_cap_header_struct head;
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];
};

static int has_sys_nice(bool *out_has)
{
	struct capabilities own = {.head = {.version = _LINUX_CAPABILITY_VERSION_3}};

	if (syscall(SYS_capget, &own.head, own.words) < 0)
		return -errno;
	*out_has = (own.words[0].permitted & CAP_TO_MASK(CAP_SYS_NICE)) != 0;
	return 0;
}

/*
 * Drops the bounding set of capabilities. Without CAP_SETPCAP the set stays; PR_SET_NO_NEW_PRIVS
 * then keeps a program from getting any of it.
 */
static void bound_capabilities(void)
{
	for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (i != CAP_SYS_NICE)
			(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
}

/* The ambient set hands it to a program that is executed by a user who is not root. */
static int keep_only_sys_nice(bool has)
{
	const uint32_t kept = has ? CAP_TO_MASK(CAP_SYS_NICE) : 0;
	struct capabilities own = {.head = {.version = _LINUX_CAPABILITY_VERSION_3},
				   .words = {{kept, kept, kept}}};

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &own.head, own.words) < 0)
		return -errno;
	if (has && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_NICE, 0, 0) < 0)
		return -errno;
	return 0;
}

static int become(const struct wrk_host_user *user)
{
	if (!user->is_other)
		return 0;
	if (setgroups(user->group_count, user->groups) < 0 ||
	    setresgid(user->gid, user->gid, user->gid) < 0 ||
	    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ||
	    setresuid(user->uid, user->uid, user->uid) < 0 ||
	    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* The flag keeps kernels before 5.16 from slowing down what is filtered. */
static int filter_calls(const struct sock_fprog *filter)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		       filter) < 0
		       ? -errno
		       : 0;
}

int wrk_confine(const struct wrk_confine *confine, const char **out_what)
{
	bool has = false;
	int r;

	*out_what = "enter its control group";
	if (confine->group_fd >= 0 && wrk_control_group_enter(confine->group_fd) < 0)
		return -errno;
	*out_what = "set the limits of --host-limit";
	r = wrk_host_limits_apply(confine->limits);
	if (r < 0)
		return r;
	*out_what = "drop its capabilities";
	r = has_sys_nice(&has);
	if (r < 0)
		return r;
	bound_capabilities();
	*out_what = "become the user of --host-user";
	r = become(confine->user);
	if (r < 0)
		return r;
	*out_what = "drop its capabilities";
	r = keep_only_sys_nice(has);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r < 0)
		return r;
	*out_what = "restrict what it may write (Landlock)";
	r = confine->rules_fd >= 0 ? wrk_landlock_restrict(confine->rules_fd) : 0;
	if (r < 0)
		return r;
	*out_what = "filter its system calls (seccomp)";
	return confine->filter != NULL ? filter_calls(confine->filter) : 0;
}

void wrk_confine_end(struct wrk_confine *confine)
{
	if (confine->rules_fd >= 0)
		close(confine->rules_fd);
	if (confine->group_fd >= 0)
		close(confine->group_fd);
	confine->rules_fd = confine->group_fd = -1;
}
