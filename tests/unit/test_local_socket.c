// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <driverd/local_socket.h>

#include "left.h"
#include "scratch.h"

static char folder[64], path[128];
static struct fw_users nobody_else;
static struct frag_err err = FRAG_ERR_INIT;

static void begin(void)
{
	scratch_make();
	snprintf(folder, sizeof(folder), "%s/frag", scratch);
	snprintf(path, sizeof(path), "%s/7.sock", folder);
	unsetenv("RUNTIME_DIRECTORY");
	setenv("XDG_RUNTIME_DIR", scratch, 1);
}

TestSuite(local_socket, .init = begin, .fini = scratch_remove);

/* Of each lock of a folder: it is its own until the folder is closed. */
static int locks;

int flock(int fd, int operation)
{
	struct stat at;

	cr_expect(operation == LOCK_EX || operation == LOCK_UN);
	cr_expect(fstat(fd, &at) == 0 && S_ISDIR(at.st_mode));
	locks++;
	return 0;
}

static mode_t mode_of(const char *file)
{
	struct stat at;

	return lstat(file, &at) == 0 ? at.st_mode & 0777 : 0;
}

static bool is_there(const char *file)
{
	struct stat at;

	return lstat(file, &at) == 0;
}

static int open_it(struct drv_local_socket *local, const struct fw_users *users)
{
	int fd = -1, r = drv_local_socket_open(local, 7, users, &fd, &err);

	return r == 0 ? fd : r;
}

/* Returns 0 or negative errno. */
static int connect_to(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

	close(fd);
	return r;
}

Test(local_socket, it_is_the_user_s_own_and_goes_in_the_end)
{
	struct drv_local_socket local;
	int fd = open_it(&local, &nobody_else);

	cr_assert_geq(fd, 0, "%s", err.text);
	cr_expect_str_eq(local.address.sun_path, path);
	cr_expect_eq(mode_of(folder), 0700);
	cr_expect_eq(mode_of(path), 0600);
	cr_expect_eq(connect_to(&local.address), 0);
	drv_local_socket_close(&local);
	cr_expect_not(is_there(path));
	drv_local_socket_close(&local);
	close(fd);
}

Test(local_socket, other_users_reach_it_if_they_are_allowed)
{
	struct fw_user other = {4711, UINT32_MAX};
	const struct fw_users users = {.items = &other, .count = 1};
	struct drv_local_socket local;
	int fd;

	cr_assert_eq(mkdir(folder, 0700), 0);
	fd = open_it(&local, &users);
	cr_assert_geq(fd, 0, "%s", err.text);
	cr_expect_eq(mode_of(folder), 0711);
	cr_expect_eq(mode_of(path), 0666);
	drv_local_socket_close(&local);
	close(fd);
}

Test(local_socket, a_group_reaches_it_if_it_is_allowed)
{
	const struct fw_users users = {.has_group = true, .group = getegid()};
	struct drv_local_socket local;
	int fd = open_it(&local, &users);

	cr_assert_geq(fd, 0, "%s", err.text);
	cr_expect_eq(mode_of(folder), 0750);
	cr_expect_eq(mode_of(path), 0660);
	drv_local_socket_close(&local);
	close(fd);
}

Test(local_socket, one_that_was_left_behind_is_replaced)
{
	struct drv_local_socket dead, local;
	int fd = open_it(&dead, &nobody_else);

	left_own.descriptors = 1; /* what the dead one had */
	cr_assert_geq(fd, 0, "%s", err.text);
	close(fd);
	cr_expect_eq(connect_to(&dead.address), -ECONNREFUSED);
	fd = open_it(&local, &nobody_else);
	cr_assert_geq(fd, 0, "%s", err.text);
	cr_expect_eq(connect_to(&local.address), 0);
	drv_local_socket_close(&local);
	close(fd);
}

Test(local_socket, another_one_in_its_place_stays)
{
	struct drv_local_socket removed, local;
	int removed_fd = open_it(&removed, &nobody_else), fd;

	cr_assert_geq(removed_fd, 0, "%s", err.text);
	cr_assert_eq(unlink(path), 0);
	fd = open_it(&local, &nobody_else);
	cr_assert_geq(fd, 0, "%s", err.text);
	drv_local_socket_close(&removed);
	close(removed_fd);
	cr_expect_eq(connect_to(&local.address), 0);
	drv_local_socket_close(&local);
	close(fd);
}

Test(local_socket, one_that_lives_stays)
{
	struct drv_local_socket first, second;
	int fd = open_it(&first, &nobody_else);

	cr_assert_geq(fd, 0, "%s", err.text);
	cr_expect_eq(open_it(&second, &nobody_else), -EADDRINUSE);
	cr_expect_not_null(strstr(err.text, path));
	drv_local_socket_close(&second);
	cr_expect_eq(connect_to(&first.address), 0);
	drv_local_socket_close(&first);
	close(fd);
}

Test(local_socket, what_is_no_socket_stays)
{
	struct drv_local_socket local;

	cr_assert_eq(mkdir(folder, 0700), 0);
	close(open(path, O_CREAT | O_CLOEXEC, 0600));
	cr_expect_eq(open_it(&local, &nobody_else), -EADDRINUSE);
	cr_expect(is_there(path));
	unlink(path);
	cr_assert_eq(symlink("/etc/passwd", path), 0);
	cr_expect_eq(open_it(&local, &nobody_else), -EADDRINUSE);
	cr_expect(is_there(path));
}

Test(local_socket, a_folder_that_others_may_write_is_not_used)
{
	struct drv_local_socket local;

	cr_assert_eq(mkdir(folder, 0700), 0);
	cr_assert_eq(chmod(folder, 0777), 0);
	cr_expect_eq(open_it(&local, &nobody_else), -EPERM);
	cr_expect_not_null(strstr(err.text, folder));
	cr_assert_eq(rmdir(folder), 0);
	cr_assert_eq(symlink("/tmp", folder), 0);
	cr_expect_lt(open_it(&local, &nobody_else), 0);
	drv_local_socket_close(&local);
}

Test(local_socket, the_folder_of_another_user_is_not_used)
{
	struct drv_local_socket local;

	if (geteuid() != 0)
		cr_skip_test("only root can make it");
	cr_assert_eq(mkdir(folder, 0700), 0);
	cr_assert_eq(chown(folder, 65534, 65534), 0);
	cr_expect_eq(open_it(&local, &nobody_else), -EPERM);
}

Test(local_socket, a_service_has_the_folder_that_systemd_made_for_it)
{
	struct drv_local_socket local;
	char value[96];
	int fd;

	cr_assert_eq(mkdir(folder, 0755), 0);
	snprintf(value, sizeof(value), "%s:/nowhere", folder);
	setenv("RUNTIME_DIRECTORY", value, 1);
	setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
	fd = open_it(&local, &nobody_else);
	cr_assert_geq(fd, 0, "%s", err.text);
	cr_expect_str_eq(local.address.sun_path, path);
	drv_local_socket_close(&local);
	close(fd);
}

Test(local_socket, a_path_that_is_too_long_is_reported)
{
	struct drv_local_socket local;
	char value[200] = "/";

	memset(value + 1, 'x', sizeof(value) - 2);
	setenv("RUNTIME_DIRECTORY", value, 1);
	cr_expect_eq(open_it(&local, &nobody_else), -ENAMETOOLONG);
	drv_local_socket_close(&local);
}

static void expect_permissions(const struct fw_users *users, mode_t before, mode_t folder_mode,
			       mode_t mode)
{
	struct drv_local_socket local;
	int fd;

	cr_assert(mkdir(folder, 0700) == 0 || errno == EEXIST);
	cr_assert_eq(chmod(folder, before), 0);
	fd = open_it(&local, users);
	cr_assert_geq(fd, 0, "%s", err.text);
	cr_expect_eq(mode_of(folder), folder_mode, "%o", mode_of(folder));
	cr_expect_eq(mode_of(path), mode, "%o", mode_of(path));
	drv_local_socket_close(&local);
	close(fd);
}

/* Another driver may have let in others. */
Test(local_socket, bits_of_the_folder_are_only_added)
{
	struct fw_user other = {4711, UINT32_MAX};
	const struct fw_users group = {.has_group = true, .group = getegid()},
			      both = {.items = &other,
				      .count = 1,
				      .has_group = true,
				      .group = getegid()},
			      named = {.items = &other, .count = 1};

	expect_permissions(&nobody_else, 0755, 0755, 0600);
	expect_permissions(&group, 0701, 0751, 0660);
	expect_permissions(&named, 0744, 0755, 0666);
	expect_permissions(&both, 0700, 0751, 0666);
}

/* Only root may give files to a group that it is not in. */
Test(local_socket, folder_and_socket_are_given_to_the_group)
{
	const struct fw_users users = {.has_group = true, .group = 54321};
	struct drv_local_socket local;
	struct stat of_folder, of_socket;
	int fd;

	if (geteuid() != 0)
		cr_skip_test("only root can do so");
	fd = open_it(&local, &users);
	cr_assert_geq(fd, 0, "%s", err.text);
	cr_assert(stat(folder, &of_folder) == 0 && lstat(path, &of_socket) == 0);
	cr_expect(of_folder.st_gid == 54321 && of_socket.st_gid == 54321);
	cr_expect(of_folder.st_uid == 0 && of_socket.st_uid == 0);
	drv_local_socket_close(&local);
	close(fd);
}

/* What counts is the first that can be used; nothing is made for the others. */
Test(local_socket, the_folder_is_the_first_that_there_is)
{
	struct drv_local_socket local;
	char other[128], expected[64];
	int fd;

	setenv("RUNTIME_DIRECTORY", "relative", 1);
	fd = open_it(&local, &nobody_else);
	cr_assert_geq(fd, 0, "%s", err.text);
	cr_expect_str_eq(local.address.sun_path, path);
	drv_local_socket_close(&local);
	close(fd);
	if (geteuid() != 0)
		cr_skip_test("only root can make a folder of another user");
	snprintf(other, sizeof(other), "%s/other", scratch);
	cr_assert(mkdir(other, 0700) == 0 && chown(other, 65534, 65534) == 0);
	snprintf(expected, sizeof(expected), "/run/frag/7.sock");
	for (int i = 0; i < 3; i++) {
		setenv("XDG_RUNTIME_DIR", i == 0 ? other : "relative", 1);
		if (i == 2)
			unsetenv("XDG_RUNTIME_DIR");
		fd = open_it(&local, &nobody_else);
		cr_expect(fd < 0 || strcmp(local.address.sun_path, expected) == 0, "%s",
			  local.address.sun_path);
		drv_local_socket_close(&local);
		if (fd >= 0)
			close(fd);
	}
}

/* The name, too, must fit behind the folder. */
Test(local_socket, the_longest_path_has_room)
{
	struct drv_local_socket local;
	const size_t most = sizeof(local.address.sun_path) - sizeof("/7.sock");
	char value[sizeof(local.address.sun_path)];
	int fd;

	for (size_t length = most; length <= most + 1; length++) {
		snprintf(value, sizeof(value), "%s/", scratch);
		memset(value + strlen(value), 'x', length - strlen(value));
		value[length] = '\0';
		setenv("RUNTIME_DIRECTORY", value, 1);
		fd = open_it(&local, &nobody_else);
		cr_expect_eq(fd >= 0 ? 0 : fd, length == most ? 0 : -ENAMETOOLONG, "%zu: %s",
			     length, err.text);
		cr_expect_eq(strlen(local.address.sun_path), length == most ? most + 7 : 0);
		drv_local_socket_close(&local);
		if (fd >= 0)
			close(fd);
	}
}
