// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <workerd/saved.h>

#include "descriptors.h"

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

	need_descriptors(2 * WRK_HOSTS_MAX + 30);
	for (uint32_t i = 0; i < 2 * WRK_HOSTS_MAX; i++)
		cr_assert_gt(wrk_saved_of(&saved, 1, i, 0), 0);
	cr_expect_eq(wrk_saved_of(&saved, 1, 2 * WRK_HOSTS_MAX, 0), -ENOSPC);
	wrk_saved_forget(&saved, 1, 0, 0);
	cr_expect_gt(wrk_saved_of(&saved, 1, 2 * WRK_HOSTS_MAX, 0), 0);
	wrk_saved_forget(&saved, 0, 0, 0);
}

static char byte_in(int fd)
{
	char byte = '?';

	cr_assert_eq(pread(fd, &byte, 1, 0), 1);
	return byte;
}

static void put(int fd, char byte)
{
	cr_assert_eq(pwrite(fd, &byte, 1, 0), 1);
}

/* What the process beside a host has saved becomes the host's, whose own is given back. */
Test(worker_saved, what_is_beside_becomes_the_hosts)
{
	struct wrk_saved saved = {.count = 0};
	int of_host = wrk_saved_of(&saved, 1, 1, 0), other = wrk_saved_of(&saved, 1, 2, 0), beside;

	put(of_host, 'a');
	put(other, 'o');
	for (uint64_t epoch = 5; epoch < 8; epoch++) {
		const char byte = (char)('a' + epoch);

		of_host = wrk_saved_of(&saved, 1, 1, 0);
		beside = wrk_saved_of(&saved, 1, 1, epoch);
		cr_assert_neq(beside, of_host);
		put(beside, byte);
		wrk_saved_promote(&saved, 1, 1, epoch + 10); /* which there is not */
		wrk_saved_promote(&saved, 1, 2, epoch);
		cr_expect_eq(saved.count, 3);
		wrk_saved_promote(&saved, 1, 1, epoch);
		cr_expect_eq(saved.count, 2);
		cr_expect_eq(wrk_saved_of(&saved, 1, 1, 0), beside);
		cr_expect_eq(byte_in(wrk_saved_of(&saved, 1, 1, 0)), byte);
		cr_expect_eq(fcntl(of_host, F_GETFD), -1, "that of the host before is closed");
	}
	cr_expect_eq(byte_in(other), 'o');
	/* A host that had saved nothing gets it, too. */
	wrk_saved_forget(&saved, 1, 1, 0);
	beside = wrk_saved_of(&saved, 1, 1, 9);
	wrk_saved_promote(&saved, 1, 1, 9);
	cr_expect_eq(wrk_saved_of(&saved, 1, 1, 0), beside);
	wrk_saved_forget(&saved, 0, 0, 0);
}

struct taking {
	struct wrk_saved *to;
	uint64_t bytes;
	uint32_t parts, largest;
};

static void take(void *arg, uint64_t offset, const void *bytes, uint32_t size)
{
	struct taking *taking = arg;
	const struct fw_host_saved part = {offset, bytes, size};

	taking->bytes += size;
	taking->parts++;
	taking->largest = size > taking->largest ? size : taking->largest;
	cr_assert_eq(wrk_saved_take(taking->to, 7, 3, 0, &part), 0);
}

#define PAGE 4096

/* What goes to another worker is whole, in parts that a message holds, up to so many bytes. */
Test(worker_saved, it_goes_to_another_worker_in_parts)
{
	enum { PART = FW_SAVED_BYTES_MAX, MOST = WRK_SAVED_SENT_MAX };
	static const struct {
		size_t begin, size; /* what is written */
		int r;
		uint32_t parts;
	} rows[] = {
		{0, 0, 0, 0},
		{0, 1, 0, 1},
		{0, PART, 0, 1},
		{0, PART + PAGE, 0, 2},
		{3 * PAGE, 2 * PART, 0, 2},
		{0, MOST, 0, MOST / PART},
		{0, MOST + PAGE, -EFBIG, 0},
		{PAGE, MOST, 0, MOST / PART},
	};
	static char bytes[MOST + PAGE], got[MOST + PAGE];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i % 251 + 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wrk_saved from = {.count = 0}, to = {.count = 0};
		struct taking taking = {.to = &to};
		int fd = wrk_saved_of(&from, 1, 1, 0);

		cr_assert_eq(pwrite(fd, bytes, rows[i].size, (off_t)rows[i].begin),
			     (ssize_t)rows[i].size);
		cr_expect_eq(wrk_saved_read(&from, 1, 1, take, &taking), rows[i].r, "row %zu", i);
		cr_expect_eq(taking.parts, rows[i].parts, "row %zu: %u", i, taking.parts);
		cr_expect_leq(taking.largest, PART, "row %zu", i);
		if (taking.parts > 0) {
			fd = wrk_saved_of(&to, 7, 3, 0);
			cr_assert_eq(pread(fd, got, rows[i].size, (off_t)rows[i].begin),
				     (ssize_t)rows[i].size);
			cr_expect_eq(memcmp(got, bytes, rows[i].size), 0, "row %zu", i);
		}
		cr_expect_eq(wrk_saved_read(&from, 1, 2, take, &taking), 0, "of another host");
		cr_expect_eq(taking.parts, rows[i].parts);
		wrk_saved_forget(&from, 0, 0, 0);
		wrk_saved_forget(&to, 0, 0, 0);
	}
}

/* The part at the begin is the first: what an earlier host has left is not mixed with it. */
Test(worker_saved, the_first_part_takes_the_place_of_all)
{
	struct wrk_saved saved = {.count = 0};
	const struct fw_host_saved first = {0, "first", 5}, second = {PAGE, "second", 6};
	int of_host = wrk_saved_of(&saved, 1, 1, 0), beside = wrk_saved_of(&saved, 1, 1, 4);
	char text[6];

	cr_assert_eq(pwrite(beside, "older!", 6, 2 * PAGE), 6);
	put(of_host, 'h');
	cr_expect_eq(wrk_saved_take(&saved, 1, 1, 4, &first), 0);
	cr_expect_eq(wrk_saved_take(&saved, 1, 1, 4, &second), 0);
	cr_assert_eq(pread(beside, text, 6, 2 * PAGE), 6);
	cr_expect_eq(memcmp(text, "\0\0\0\0\0\0", 6), 0);
	cr_assert_eq(pread(beside, text, 6, PAGE), 6);
	cr_expect_eq(memcmp(text, "second", 6), 0);
	cr_assert_eq(pread(beside, text, 5, 0), 5);
	cr_expect_eq(memcmp(text, "first", 5), 0, "what comes later leaves it");
	cr_expect_eq(byte_in(of_host), 'h', "it went beside the host");
	cr_expect_eq(wrk_saved_take(&saved, 1, 1, 5, &first), 0);
	cr_expect_eq(byte_in(of_host), 'f', "without one beside it is the host's");
	wrk_saved_forget(&saved, 0, 0, 0);
}
