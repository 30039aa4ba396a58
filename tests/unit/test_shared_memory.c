// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <workerd/shared_memory.h>

/* What the worker says of its hosts; limits: as --host-limit has them. */
static const char *text_of(uid_t user, const char *limits, char *out_why, size_t size)
{
	static char text[FRAGI_IDENTITY_MEMORY_SIZE];
	struct wrk_rights rights = {.user = {.uid = user}};
	char one[64];
	int n;

	for (; sscanf(limits, " %63s%n", one, &n) == 1; limits += n)
		cr_assert_eq(wrk_host_limits_add(&rights.limits, one, NULL), 0);
	memset(text, 'x', sizeof(text)); /* as it was before */
	wrk_shared_memory(&rights, text, out_why, size);
	return text;
}

Test(shared_memory, is_shared_by_hosts_of_one_user)
{
	char why[128], mine[FRAGI_IDENTITY_MEMORY_SIZE];

	strcpy(why, "as before");
	snprintf(mine, sizeof(mine), "%s", text_of(7, "", why, sizeof(why)));
	cr_expect_str_eq(why, "as before");
	cr_assert_neq(mine[0], '\0', "%s", why);
	cr_expect_str_eq(text_of(7, "", why, sizeof(why)), mine);
	cr_expect_eq(fragi_identity_apart(text_of(8, "", why, sizeof(why)), mine),
		     FRAGI_APART_USER);
}

Test(shared_memory, is_not_offered_by_hosts_with_limits)
{
	static const struct {
		const char *limits, *why;
	} cases[] = {
		{"as=64GB", "the address space of hosts is limited (as, ulimit -v)"},
		{"fsize=1GB", "the size of files that hosts write is limited (fsize, ulimit -f)"},
		{"nproc=64 nofile=100 core=0", NULL},
		{"as=64GB as=unlimited", NULL}, /* the last one counts */
	};
	char why[128];

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const char *text = text_of(7, cases[i].limits, why, sizeof(why));

		cr_expect_eq(text[0] == '\0', cases[i].why != NULL, "%s", cases[i].limits);
		if (cases[i].why != NULL)
			cr_expect_str_eq(why, cases[i].why);
	}
}

/* As a worker that was started with ulimit. */
Test(shared_memory, is_not_offered_where_the_worker_itself_has_the_limit)
{
	const struct rlimit limit = {(rlim_t)1 << 30, RLIM_INFINITY};
	char why[128];

	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_expect_str_eq(text_of(7, "", why, sizeof(why)), "");
	cr_expect_not_null(strstr(why, "ulimit -f"), "%s", why);
}
