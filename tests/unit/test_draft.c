// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/draft.h>
#include <frag/frag.h>

static char folder[64], path[96];

static void begin(void)
{
	snprintf(folder, sizeof(folder), "/tmp/frag-draft-test-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
}

static void end(void)
{
	unlink(path);
	cr_expect_eq(rmdir(folder), 0, "nothing else is left in the folder");
}

TestSuite(draft, .init = begin, .fini = end);

static void expect_content(const char *expected)
{
	char text[64] = "";
	FILE *file = fopen(path, "r");

	cr_assert_not_null(file);
	cr_expect_eq(fread(text, 1, sizeof(text) - 1, file), strlen(expected));
	cr_expect_str_eq(text, expected);
	fclose(file);
}

static void write_file(const char *text)
{
	struct frag_draft *draft;

	cr_assert_eq(frag_draft_create(path, &draft), 0);
	fputs(text, frag_draft_stream(draft));
	cr_assert_eq(frag_draft_commit(draft), 0);
}

/* Finds the name of the only file of the folder. */
static void only_name(char name[256])
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int count = 0;

	cr_assert_not_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(name, 256, "%s", entry->d_name);
		count++;
	}
	closedir(dir);
	cr_assert_eq(count, 1);
}

Test(draft, takes_its_name_when_it_is_complete)
{
	struct frag_draft *draft;

	write_file("old");
	cr_assert_eq(frag_draft_create(path, &draft), 0);
	fputs("new", frag_draft_stream(draft));
	fflush(frag_draft_stream(draft));
	expect_content("old");
	cr_assert_eq(frag_draft_commit(draft), 0);
	expect_content("new");
}

Test(draft, leaves_the_file_when_it_is_given_up)
{
	struct frag_draft *draft;

	write_file("old");
	cr_assert_eq(frag_draft_create(path, &draft), 0);
	fputs("new", frag_draft_stream(draft));
	frag_draft_destroy(draft);
	frag_draft_destroy(NULL);
	expect_content("old");
}

Test(draft, has_another_name_each_time)
{
	struct frag_draft *draft;
	char first[256], second[256];

	cr_assert_eq(frag_draft_create(path, &draft), 0);
	only_name(first);
	frag_draft_destroy(draft);
	cr_assert_eq(frag_draft_create(path, &draft), 0);
	only_name(second);
	frag_draft_destroy(draft);
	cr_expect_str_neq(first, second);
	cr_expect_geq(strlen(first), strlen(".frag-draft-") + 16);
}

Test(draft, has_the_permissions_of_any_new_file)
{
	const mode_t before = umask(027);
	struct frag_draft *draft;
	struct stat st;

	write_file("x");
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0640u);
	cr_assert_eq(fragi_draft_create(AT_FDCWD, path, 0600, &draft), 0);
	cr_expect_neq(fcntl(fileno(frag_draft_stream(draft)), F_GETFD) & FD_CLOEXEC, 0);
	cr_assert_eq(frag_draft_commit(draft), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600u);
	umask(before);
}

Test(draft, replaces_a_symbolic_link_and_not_what_it_points_to)
{
	char other[96];
	struct stat st;

	snprintf(other, sizeof(other), "%s/other", folder);
	cr_assert_eq(symlink(other, path), 0);
	write_file("x");
	cr_expect_eq(access(other, F_OK), -1);
	cr_assert_eq(lstat(path, &st), 0);
	cr_expect(S_ISREG(st.st_mode));
}

Test(draft, says_why_a_write_or_the_folder_failed)
{
	struct frag_draft *draft;
	char none[128];
	int open_folder;

	snprintf(none, sizeof(none), "%s/none/file", folder);
	cr_expect_eq(frag_draft_create(none, &draft), -ENOENT);
	cr_expect_eq(frag_draft_create("/proc/file", &draft), -ENOENT);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(frag_draft_create(path, &draft), 0);
	cr_expect_eq(frag_draft_commit(draft), -EISDIR, "it is not left beside the folder either");
	cr_assert_eq(rmdir(path), 0);

	write_file("old");
	cr_assert_eq(frag_draft_create(path, &draft), 0);
	cr_assert_not_null(freopen("/dev/full", "w", frag_draft_stream(draft)));
	fputs("new", frag_draft_stream(draft));
	cr_expect_eq(frag_draft_commit(draft), -ENOSPC);
	expect_content("old");
	cr_assert_eq(frag_draft_create(path, &draft), 0);
	cr_assert_not_null(freopen("/dev/full", "w", frag_draft_stream(draft)));
	fputs("new", frag_draft_stream(draft));
	cr_expect_neq(fflush(frag_draft_stream(draft)), 0, "long before the end");
	cr_expect_eq(frag_draft_commit(draft), -ENOSPC);
	expect_content("old");

	open_folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(fragi_draft_create(open_folder, "file", 0600, &draft), 0);
	fputs("by folder", frag_draft_stream(draft));
	cr_assert_eq(frag_draft_commit(draft), 0);
	close(open_folder);
	expect_content("by folder");
}

Test(draft, fails_when_memory_is_short)
{
	struct frag_draft *draft = NULL;
	int64_t failed;
	int n = 0, r;

	do {
		fragi_alloc_fail_after(n++, 1);
		r = frag_draft_create(path, &draft);
		failed = fragi_alloc_fail_off();
		cr_expect_eq(r, failed > 0 ? -ENOMEM : 0);
	} while (failed > 0);
	cr_expect_gt(n, 3);
	frag_draft_destroy(draft);
}

static void write_output(const char *text)
{
	FILE *file = NULL;

	cr_assert_eq(frag_output_open(path, &file), 0);
	fputs(text, file);
	fclose(file);
}

Test(draft, an_output_has_its_name_at_once)
{
	FILE *file = NULL;

	write_file("old");
	cr_assert_eq(frag_output_open(path, &file), 0);
	expect_content("");
	fputs("new", file);
	fflush(file);
	expect_content("new");
	fclose(file);
	write_output("newer");
	expect_content("newer");
}

Test(draft, an_output_does_not_follow_a_link)
{
	char target[96];
	struct stat at;

	snprintf(target, sizeof(target), "%s/target", folder);
	cr_assert_eq(rename((write_file("kept"), path), target), 0);
	cr_assert_eq(symlink(target, path), 0);
	write_output("new");
	expect_content("new");
	cr_assert_eq(lstat(path, &at), 0);
	cr_expect(S_ISREG(at.st_mode));
	cr_assert_eq(rename(target, path), 0);
	expect_content("kept");
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(symlink(target, path), 0);
	write_output("new"); /* where the link leads nothing is made */
	cr_expect_eq(access(target, F_OK), -1);
}

Test(draft, an_output_that_is_a_pipe_stays_one)
{
	char text[8] = "";
	struct stat at;
	int reader;

	cr_assert_eq(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	write_output("new");
	cr_expect_eq(read(reader, text, sizeof(text)), 3);
	cr_expect_str_eq(text, "new");
	cr_assert_eq(lstat(path, &at), 0);
	cr_expect(S_ISFIFO(at.st_mode));
	close(reader);
}

Test(draft, an_output_that_cannot_be_made_changes_nothing)
{
	FILE *file = NULL;
	char missing[112];

	snprintf(missing, sizeof(missing), "%s/none/file", folder);
	cr_expect_eq(frag_output_open(missing, &file), -ENOENT);
	cr_expect_eq(frag_output_open(folder, &file), -EISDIR);
	cr_expect_null(file);
}
