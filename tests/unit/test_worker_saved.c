/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <workerd/saved.h>

/* What a worker keeps of its hosts for those that are started in their place. */

static ino_t inode_of(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	return st.st_ino;
}

Test(worker_saved, each_host_has_its_own)
{
	struct wrk_saved saved = {.count = 0};
	int a = wrk_saved_of(&saved, 1, 0, 0), b = wrk_saved_of(&saved, 1, 1, 0),
	    c = wrk_saved_of(&saved, 2, 0, 0);

	cr_assert(a > 0 && b > 0 && c > 0);
	cr_expect(a != b && b != c && a != c);
	cr_expect_eq(wrk_saved_of(&saved, 1, 0, 0), a, "the next host of the same number gets it");
	cr_expect_eq(wrk_saved_of(&saved, 2, 0, 0), c);
	wrk_saved_forget(&saved, 0, 0, 0);
	cr_expect_eq(saved.count, 0);
	cr_expect_eq(fcntl(a, F_GETFD), -1, "closed");
}

Test(worker_saved, it_goes_with_its_run)
{
	struct wrk_saved saved = {.count = 0};
	ino_t first;
	int other;

	first = inode_of(wrk_saved_of(&saved, 1, 0, 0));
	other = wrk_saved_of(&saved, 2, 0, 0);
	wrk_saved_forget(&saved, 1, 0, 0);
	cr_expect_eq(saved.count, 1);
	cr_expect_eq(wrk_saved_of(&saved, 2, 0, 0), other);
	cr_expect_neq(inode_of(wrk_saved_of(&saved, 1, 0, 0)), first, "another memory");
	wrk_saved_forget(&saved, 0, 0, 0);
}

Test(worker_saved, a_host_that_ran_elsewhere_begins_anew)
{
	struct wrk_saved saved = {.count = 0};
	int first = wrk_saved_of(&saved, 1, 1, 0), other = wrk_saved_of(&saved, 1, 2, 0);
	const char byte = 'x';
	struct stat st;

	cr_assert_eq(pwrite(first, &byte, 1, 0), 1);
	wrk_saved_forget(&saved, 1, 1, 0);
	cr_expect_eq(saved.count, 1);
	cr_assert_eq(fstat(wrk_saved_of(&saved, 1, 1, 0), &st), 0);
	cr_expect_eq(st.st_blocks, 0, "nothing is in it");
	cr_expect_eq(wrk_saved_of(&saved, 1, 2, 0), other);
	wrk_saved_forget(&saved, 0, 0, 0);
}

Test(worker_saved, a_host_can_neither_grow_nor_cut_it)
{
	struct wrk_saved saved = {.count = 0};
	int fd = wrk_saved_of(&saved, 1, 0, 0);
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_blocks, 0, "it takes no memory yet");
	cr_expect_eq(ftruncate(fd, 0), -1);
	cr_expect_eq(ftruncate(fd, st.st_size + 4096), -1);
	cr_expect_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	wrk_saved_forget(&saved, 0, 0, 0);
}

Test(worker_saved, there_is_room_for_as_many_as_hosts)
{
	struct wrk_saved saved = {.count = 0};

	for (uint32_t i = 0; i < 2 * WRK_HOSTS_MAX; i++)
		cr_assert_gt(wrk_saved_of(&saved, 1, i, 0), 0);
	cr_expect_eq(wrk_saved_of(&saved, 1, 2 * WRK_HOSTS_MAX, 0), -ENOSPC);
	wrk_saved_forget(&saved, 1, 0, 0);
	cr_expect_gt(wrk_saved_of(&saved, 1, 2 * WRK_HOSTS_MAX, 0), 0);
	wrk_saved_forget(&saved, 0, 0, 0);
}
