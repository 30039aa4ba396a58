// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <driverd/local_socket.h>

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
