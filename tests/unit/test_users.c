// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
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
