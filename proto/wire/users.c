// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <wire/users.h>

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/units.h>
#include <wire/keys.h>
#include <wire/peer_user.h>

#define RECORD_BYTES 4096 /* a user, or a group with its members' names */
#define GROUPS_MAX 1024   /* of one user, of which the group is looked for */

static int find_user(const char *name, uid_t *out_user)
{
	struct passwd record, *found = NULL;
	char text[RECORD_BYTES];
	int64_t number;

	if (fragi_parse_i64(name, &number) == 0) {
		/* The last number is none: functions take it for "no change". */
		if (number < 0 || number >= UINT32_MAX)
			return -EINVAL;
		*out_user = (uid_t)number;
		return 0;
	}
	(void)getpwnam_r(name, &record, text, sizeof(text), &found);
	if (found == NULL)
		return -EINVAL;
	*out_user = found->pw_uid;
	return 0;
}

/* Whether this process runs in the group. */
static bool is_in_group(gid_t group)
{
	gid_t groups[GROUPS_MAX];
	int count = getgroups(GROUPS_MAX, groups);

	for (int i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return getegid() == group;
}

static void find_group(struct fw_users *users)
{
	struct group record, *found = NULL;
	size_t size = RECORD_BYTES;
	char *text = NULL;
	int r = ERANGE;

	for (; r == ERANGE && size <= (1u << 20); size *= 4) {
		fragi_free(text);
		text = fragi_malloc(size);
		r = text == NULL ? ENOMEM : getgrnam_r(FW_USERS_GROUP, &record, text, size, &found);
	}
	users->has_group = r == 0 && found != NULL && is_in_group(found->gr_gid);
	users->group = users->has_group ? found->gr_gid : 0;
	fragi_free(text);
}

/* "alice", or "alice=observer" */
static int parse_user(const char *text, bool with_role, struct fw_user *out, struct frag_err *err)
{
	const char *role = with_role ? strchr(text, '=') : NULL;
	char name[256];
	int length = snprintf(name, sizeof(name), "%.*s",
			      role != NULL ? (int)(role - text) : INT_MAX, text);

	out->roles = role != NULL ? fw_key_roles(role + 1) : FW_USER_ROLES;
	if (out->roles == 0)
		return frag_err_set(err, -EINVAL,
				    "--allow-user: \"%.40s\" is none of " FW_KEY_ROLES, role + 1);
	if (length < (int)sizeof(name) && find_user(name, &out->user) == 0)
		return 0;
	return frag_err_set(
		err, -EINVAL,
		"--allow-user: there is no user \"%.80s\" on this machine; give the name or the number of one",
		name);
}

int fw_users_init(struct fw_users *users, const char *program, const char *const *names,
		  size_t count, bool with_roles, struct frag_err *err)
{
	*users = (struct fw_users){.program = program};
	find_group(users);
	if (count == 0)
		return 0;
	users->items = fragi_calloc(count, sizeof(*users->items));
	if (users->items == NULL)
		return -ENOMEM;
	for (int r; users->count < count; users->count++) {
		r = parse_user(names[users->count], with_roles, &users->items[users->count], err);
		if (r < 0)
			return r;
	}
	return 0;
}

int fw_users_add(struct fw_users *users, uid_t user)
{
	struct fw_user *items = fragi_realloc(users->items, (users->count + 1) * sizeof(*items));

	if (items == NULL)
		return -ENOMEM;
	items[users->count++] = (struct fw_user){user, FW_USER_ROLES};
	users->items = items;
	return 0;
}

void fw_users_fini(struct fw_users *users)
{
	fragi_free(users->items);
	*users = (struct fw_users){0};
}

static bool is_member(uid_t user, gid_t group)
{
	struct passwd record, *found = NULL;
	char text[RECORD_BYTES];
	gid_t groups[GROUPS_MAX];
	int count = GROUPS_MAX;

	(void)getpwuid_r(user, &record, text, sizeof(text), &found);
	if (found == NULL || getgrouplist(found->pw_name, found->pw_gid, groups, &count) < 0)
		return false;
	for (int i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return false;
}

uint32_t fw_users_roles(const struct fw_users *users, uid_t user)
{
	uint32_t roles = 0;

	if (user == geteuid() || user == 0)
		return FW_USER_ROLES | FW_ROLE_BIT(FW_ROLE_OBSERVER) | FW_ROLE_BIT(FW_ROLE_PAYLOAD);
	for (size_t i = 0; i < users->count; i++)
		if (users->items[i].user == user)
			roles |= users->items[i].roles;
	if (roles == 0 && users->has_group && is_member(user, users->group))
		roles = FW_USER_ROLES;
	return roles;
}

bool fw_users_allow(const struct fw_users *users, uid_t user)
{
	return fw_users_roles(users, user) != 0;
}

const char *fw_user_name(uid_t user, char out[FW_USER_NAME_MAX])
{
	struct passwd record, *found = NULL;
	char text[RECORD_BYTES];

	(void)getpwuid_r(user, &record, text, sizeof(text), &found);
	if (found != NULL)
		snprintf(out, FW_USER_NAME_MAX, "%s", found->pw_name);
	else
		snprintf(out, FW_USER_NAME_MAX, "%u", (unsigned int)user);
	return out;
}

static int refuse(const struct fw_users *users, uid_t user, bool is_accepted, struct frag_err *err)
{
	char own[FW_USER_NAME_MAX], other[FW_USER_NAME_MAX];

	fw_user_name(geteuid(), own);
	fw_user_name(user, other);
	if (is_accepted)
		return frag_err_set(
			err, -EACCES,
			"%s runs as user %s and does not trust user %s; run both as the same user, or start %s with --allow-user %s",
			users->program, own, other, users->program, other);
	return frag_err_set(
		err, -EACCES,
		"a process of user %s listens there, and %s, which runs as user %s, does not trust that user; end that process, or start %s with --allow-user %s if it is meant",
		other, users->program, own, users->program, other);
}

int fw_users_judge(const struct fw_users *users, int fd, bool is_accepted, uid_t *out_user,
		   struct frag_err *err)
{
	uid_t user;
	int r = fw_peer_user(fd, &user);

	switch (r) {
	case 0:
		if (!fw_users_allow(users, user))
			return refuse(users, user, is_accepted, err);
		*out_user = user;
		return 1;
	case -EREMOTE:
		return users->insecure
			       ? 0
			       : frag_err_set(err, -EACCES,
					      "its peer is not on this machine and has no key");
	case -EOVERFLOW:
		return frag_err_set(
			err, -EACCES,
			"its peer is a process of a user that has no number in the user namespace of %s, so nobody knows who it is",
			users->program);
	case -EAGAIN:
		return r;
	case -ENOENT:
	case -ESHUTDOWN:
		return frag_err_set(err, r, "the peer closed the connection");
	case -EPROTONOSUPPORT:
		return frag_err_set(
			err, r,
			"the kernel does not say whose process the peer is; load its module tcp_diag (modprobe tcp_diag)");
	default:
		return frag_err_set(
			err, r, "the kernel does not say whose process the peer is (sock_diag): %s",
			frag_strerror(r));
	}
}
