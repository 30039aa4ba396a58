// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/alloc.h>
#include <wire/keys.h>
#include <wire/users.h>

static struct fw_users users;
static struct frag_err err;

static int init(const char *name)
{
	err = (struct frag_err)FRAG_ERR_INIT;
	return fw_users_init(&users, "driverd", &name, 1, true, &err);
}

Test(users, without_a_flag_this_user_and_root_are_trusted)
{
	cr_assert_eq(fw_users_init(&users, "driverd", NULL, 0, false, &err), 0);
	cr_expect(fw_users_allow(&users, geteuid()));
	cr_expect(fw_users_allow(&users, 0));
	cr_expect_not(fw_users_allow(&users, 54321));
	cr_expect_not(fw_users_allow(&users, (uid_t)-1));
	fw_users_fini(&users);
}

Test(users, others_are_named_or_numbered)
{
	const char *names[] = {"54321", "daemon"};

	cr_assert_eq(fw_users_init(&users, "driverd", names, 2, false, &err), 0);
	cr_expect(fw_users_allow(&users, 54321));
	cr_expect(fw_users_allow(&users, 1), "daemon");
	cr_expect_not(fw_users_allow(&users, 54320));
	fw_users_fini(&users);
}

Test(users, what_is_no_user_is_refused)
{
	static const char *const wrong[] = {"",           "no-such-user", "-1",
					    "4294967295", "4294967296",   "54321x"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		cr_expect_eq(init(wrong[i]), -EINVAL, "%s", wrong[i]);
		cr_expect_str_neq(err.text, "", "%s", wrong[i]);
		fw_users_fini(&users);
	}
}

Test(users, a_user_has_the_roles_that_are_named)
{
	const char *names[] = {"54321",        "54322=observer", "54323=observer+payload",
			       "54324=worker", "54325=observer", "54325=client"};
	const uint32_t worker = FW_ROLE_BIT(FW_ROLE_WORKER), client = FW_ROLE_BIT(FW_ROLE_CLIENT),
		       observer = FW_ROLE_BIT(FW_ROLE_OBSERVER),
		       payload = FW_ROLE_BIT(FW_ROLE_PAYLOAD),
		       roles[] = {worker | client, observer, observer | payload, worker,
				  observer | client};

	cr_assert_eq(fw_users_init(&users, "driverd", names, 6, true, &err), 0);
	for (uid_t i = 0; i < 5; i++)
		cr_expect_eq(fw_users_roles(&users, 54321 + i), roles[i], "%u", i);
	cr_expect_eq(fw_users_roles(&users, 0), worker | client | observer | payload);
	cr_expect_eq(fw_users_roles(&users, geteuid()), worker | client | observer | payload);
	cr_expect_eq(fw_users_roles(&users, 54320), 0);
	users.has_group = true;
	users.group = 1;
	cr_expect_eq(fw_users_roles(&users, 1), worker | client);
	users.items[0] = (struct fw_user){1, observer};
	cr_expect_eq(fw_users_roles(&users, 1), observer, "what is said of it counts");
	fw_users_fini(&users);
	cr_expect_eq(init("54321=root"), -EINVAL);
	cr_expect_str_eq(err.text, "--allow-user: \"root\" is none of " FW_KEY_ROLES);
	fw_users_fini(&users);
	cr_expect_eq(init("54321="), -EINVAL);
	fw_users_fini(&users);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(fw_users_init(&users, "workerd", names, 2, false, &err), -EINVAL);
	cr_expect(strstr(err.text, "there is no user \"54322=observer\"") != NULL, "%s", err.text);
	fw_users_fini(&users);
}

Test(users, the_group_counts_only_for_a_daemon_in_it)
{
	cr_assert_eq(fw_users_init(&users, "driverd", NULL, 0, false, &err), 0);
	users.has_group = true;
	users.group = 1; /* of the user daemon */
	cr_expect(fw_users_allow(&users, 1));
	cr_expect_not(fw_users_allow(&users, 2), "the user bin is not in it");
	cr_expect_not(fw_users_allow(&users, 54321), "a user without a name is in no group");
	users.has_group = false;
	cr_expect_not(fw_users_allow(&users, 1));
	fw_users_fini(&users);
}

/* The groups of this process and the number of the group frag; plays: not the machine's. */
static bool plays;
static gid_t own_groups[3];

int getgroups(int size, gid_t *out_groups)
{
	if (!plays)
		return (int)syscall(SYS_getgroups, size, out_groups);
	memcpy(out_groups, own_groups, sizeof(own_groups));
	return 3;
}

int getgrnam_r(const char *name, struct group *record, char *bytes, size_t size,
	       struct group **out_found)
{
	(void)bytes, (void)size;
	cr_expect_str_eq(name, FW_USERS_GROUP);
	record->gr_gid = 4711;
	*out_found = plays ? record : NULL;
	return 0;
}

Test(users, a_daemon_is_in_the_group_if_one_of_its_groups_is_it)
{
	plays = true;
	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < 3; k++)
			own_groups[k] = k == i ? 4711 : 5;
		cr_assert_eq(fw_users_init(&users, "driverd", NULL, 0, false, &err), 0);
		cr_expect_eq(users.has_group, i < 3, "%d", i);
		cr_expect_eq(users.group, i < 3 ? 4711u : 0u);
		fw_users_fini(&users);
	}
	plays = false;
}

/* The sockets are made by another user. */
Test(users, whoever_is_refused_is_named)
{
	int pair[2], r;
	uid_t user = 0;

	if (geteuid() != 0)
		cr_skip_test("only root can be another user");
	cr_assert_eq(fw_users_init(&users, "driverd", NULL, 0, false, &err), 0);
	cr_assert_eq(seteuid(54321), 0);
	r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
	cr_assert_eq(seteuid(0), 0);
	cr_assert_eq(r, 0);
	cr_expect_eq(fw_users_judge(&users, pair[0], true, &user, &err), -EACCES);
	cr_expect_str_eq(
		err.text,
		"driverd runs as user root and does not trust user 54321; run both as the same user, or start driverd with --allow-user 54321");
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(fw_users_judge(&users, pair[0], false, &user, &err), -EACCES);
	cr_expect_str_eq(
		err.text,
		"a process of user 54321 listens there, and driverd, which runs as user root, does not trust that user; end that process, or start driverd with --allow-user 54321 if it is meant");
	cr_assert_eq(fw_users_add(&users, 54321), 0);
	cr_expect_eq(fw_users_judge(&users, pair[0], false, &user, &err), 1);
	cr_expect_eq(user, 54321);
	fw_users_fini(&users);
	close(pair[0]);
	close(pair[1]);
}

Test(users, short_memory_is_survived)
{
	for (int64_t skip = 0; skip < 2; skip++) {
		fragi_alloc_fail_after(skip, 1);
		(void)init("54321");
		cr_expect_not(users.has_group);
		fw_users_fini(&users);
		fragi_alloc_fail_off();
	}
}

Test(users, a_user_has_a_name_or_a_number)
{
	char name[FW_USER_NAME_MAX];

	cr_expect_str_eq(fw_user_name(0, name), "root");
	cr_expect_str_eq(fw_user_name(54321, name), "54321");
}
