// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/trusted_path.h>

#include "scratch.h"

#define OTHER 65534 /* nobody: its group has other members */
#define DAEMON 1    /* the only member of the group of this number */
#define THIRD 54321
#define LINKS_MAX 40 /* that a path may follow, as in the kernel */

static struct frag_err err = FRAG_ERR_INIT;

static mode_t before;

static void begin(void)
{
	before = umask(0);
	scratch_make();
	cr_assert_eq(chdir(scratch), 0);
}

static void end(void)
{
	umask(before);
	scratch_remove();
}

TestSuite(trusted_path, .init = begin, .fini = end);

static void make_folder(const char *path, uid_t owner, mode_t mode)
{
	cr_assert_eq(mkdir(path, mode), 0, "%s", path);
	cr_assert_eq(chown(path, owner, owner), 0);
	cr_assert_eq(chmod(path, mode), 0);
}

static void make_file(const char *path, uid_t owner, mode_t mode)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);

	cr_assert_geq(fd, 0, "%s", path);
	close(fd);
	cr_assert_eq(chown(path, owner, owner), 0);
	cr_assert_eq(chmod(path, mode), 0);
}

static int look(const char *path, uid_t user)
{
	err = (struct frag_err)FRAG_ERR_INIT;
	return fragi_trusted_path_check(path, user, &err);
}

Test(trusted_path, of_the_user_alone)
{
	const uid_t user = geteuid();
	char full[128];

	make_folder("own", user, 0755);
	make_file("own/file", user, 0644);
	make_file("own/shut", user, 0400);
	make_file("own/open", user, 0646);
	make_folder("own/wide", user, 0757);
	make_file("own/wide/file", user, 0600);
	make_folder("own/sticky", user, 01777);
	make_file("own/sticky/file", user, 0600);
	make_folder("own/sticky/folder", user, 0755);
	cr_assert_eq(symlink("file", "own/link"), 0);
	cr_assert_eq(symlink("wide/file", "own/astray"), 0);
	cr_assert_eq(symlink("loop", "own/loop"), 0);
	cr_assert_eq(symlink("sticky/.", "own/to-sticky"), 0);
	snprintf(full, sizeof(full), "%s/own/file", scratch);

	cr_expect_eq(look(full, user), 0, "%s", err.text);
	cr_expect_eq(look("own/file", user), 0, "%s", err.text);
	cr_expect_eq(look("own", user), 0, "%s", err.text);
	cr_expect_eq(look("own/", user), 0, "%s", err.text);
	cr_expect_eq(look("own/shut", user), 0, "%s", err.text);
	cr_expect_eq(look("./own//../own/link", user), 0, "%s", err.text);
	cr_expect_eq(look("own/sticky/file", user), 0, "%s", err.text);
	cr_expect_eq(look("own/open", user), -EPERM);
	cr_expect_eq(look("own/wide", user), -EPERM);
	cr_expect_eq(look("own/wide/file", user), -EPERM);
	cr_expect_eq(look("own/astray", user), -EPERM);
	cr_expect_eq(look("own/sticky", user), -EPERM, "others may add to it");
	cr_expect_eq(look("own/sticky/", user), -EPERM);
	cr_expect_eq(look("own/sticky/.", user), -EPERM);
	cr_expect_eq(look("own/sticky/folder/..", user), -EPERM);
	cr_expect_eq(look("own/sticky/folder/.", user), 0, "%s", err.text);
	cr_expect_eq(look("own/to-sticky", user), -EPERM);
	cr_expect_eq(look("own/to-sticky/file", user), 0, "%s", err.text);
	for (int i = 0; i <= LINKS_MAX; i++) {
		char link[32], target[32];

		snprintf(target, sizeof(target), i == 0 ? "file" : "link%d", i - 1);
		snprintf(link, sizeof(link), "own/link%d", i);
		cr_assert_eq(symlink(target, link), 0);
		cr_expect_eq(look(link, user), i < LINKS_MAX ? 0 : -ELOOP, "%d links", i + 1);
	}
	cr_expect_eq(look("own/none", user), -ENOENT);
	cr_expect_eq(look("own/loop", user), -ELOOP);
	cr_expect_eq(look("own/file/more", user), -ENOTDIR);
}

Test(trusted_path, a_sentence_has_the_cause_and_the_command)
{
	char sentence[512];

	make_folder("wide", geteuid(), 0757);
	make_file("wide/file", geteuid(), 0600);
	cr_assert_eq(look("wide/file", geteuid()), -EPERM);
	snprintf(
		sentence, sizeof(sentence),
		"does not rely on wide/file: other users may write to %s/wide (mode 0757); see what it holds and run: chmod go-w %s/wide, or give another path",
		scratch, scratch);
	cr_expect_str_eq(err.text, sentence);
	cr_assert_eq(chmod("wide", 0755), 0);
	cr_expect_eq(look("wide/file", geteuid()), 0, "%s", err.text);
}

Test(trusted_path, what_the_kernel_says)
{
	int ends[2];
	char path[32];

	cr_assert_eq(pipe(ends), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	cr_expect_eq(look(path, geteuid()), 0, "%s", err.text);
	cr_expect_eq(look("/dev/null", geteuid()), 0, "%s", err.text);
	cr_expect_eq(look("/", geteuid()), 0, "%s", err.text);
	cr_expect_eq(look("/tmp", geteuid()), -EPERM);
	close(ends[0]);
	close(ends[1]);
}

Test(trusted_path, of_other_users)
{
	if (geteuid() != 0)
		cr_skip_test("only root can give files to others");
	make_folder("own", OTHER, 0755);
	make_file("own/file", OTHER, 0644);
	make_file("own/of-root", 0, 0644);
	make_file("own/of-third", THIRD, 0644);
	make_folder("sticky", 0, 01777);
	make_file("sticky/file", OTHER, 0600);
	make_file("file", 0, 0644);
	cr_assert_eq(symlink("../file", "sticky/link"), 0);
	cr_assert_eq(lchown("sticky/link", OTHER, OTHER), 0);

	cr_expect_eq(look("own/file", OTHER), 0, "%s", err.text);
	cr_expect_eq(look("own/of-root", OTHER), 0, "%s", err.text);
	cr_expect_eq(look("own/of-third", OTHER), -EPERM);
	cr_expect_eq(look("own/file", 0), -EPERM);
	cr_expect(strstr(err.text, "belongs to another user (65534), who could change it; see what "
				   "it holds and run: chown -h 0 ") != NULL,
		  "%s", err.text);
	cr_expect_eq(look("own/of-root", 0), -EPERM, "its folder is another user's");
	cr_expect_eq(look("sticky/file", OTHER), 0, "%s", err.text);
	cr_expect_eq(look("sticky/file", 0), -EPERM);
	cr_expect_eq(look("sticky/link", OTHER), 0, "%s", err.text);
	cr_expect_eq(look("sticky/link", 0), -EPERM, "it could be led elsewhere");
	cr_assert_eq(lchown("sticky/link", 0, 0), 0);
	cr_expect_eq(look("sticky/link", 0), 0, "%s", err.text);
}

/* Where users have groups of their own, files are often open to the group. */
Test(trusted_path, of_a_group)
{
	if (geteuid() != 0)
		cr_skip_test("only root can give files to others");
	make_file("of-daemon", DAEMON, 0664);
	make_file("of-nobody", OTHER, 0664);
	make_file("of-root", 0, 0664);
	make_file("of-no-group", THIRD, 0664);

	cr_expect_eq(look("of-daemon", DAEMON), 0, "%s", err.text);
	cr_expect_eq(look("of-root", 0), 0, "%s", err.text);
	cr_expect_eq(look("of-nobody", OTHER), -EPERM);
	cr_expect_eq(look("of-no-group", THIRD), -EPERM, "nobody knows who is in it");
	cr_assert_eq(chown("of-root", 0, DAEMON), 0);
	cr_expect_eq(look("of-root", 0), -EPERM);
	cr_expect_eq(look("of-root", DAEMON), 0, "%s", err.text);
	cr_assert_eq(chmod("of-root", 0644), 0);
	cr_expect_eq(look("of-root", 0), 0, "%s", err.text);
}
