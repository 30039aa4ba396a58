// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <driverd/local_socket.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/trusted_path.h>

/*
 * The folder is locked while its sockets change: a driver that has bound its socket and does not
 * listen yet would look like one that is gone.
 */
#define BACKLOG 128

static bool is_own_folder(const char *path)
{
	struct stat at;

	return path != NULL && path[0] == '/' && stat(path, &at) == 0 && at.st_uid == geteuid();
}

/* Returns 0 or -ENAMETOOLONG. */
static int folder_path(char *out, size_t size)
{
	const char *systemd = getenv("RUNTIME_DIRECTORY"), *user = getenv("XDG_RUNTIME_DIR");
	int n;

	if (systemd != NULL && systemd[0] == '/') /* several are separated by colons */
		n = snprintf(out, size, "%.*s", (int)strcspn(systemd, ":"), systemd);
	else if (is_own_folder(user))
		n = snprintf(out, size, "%s/frag", user);
	else if (geteuid() == 0)
		n = snprintf(out, size, "/run/frag");
	else
		n = snprintf(out, size, "/tmp/frag-%u", (unsigned int)geteuid());
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* Lets in whom users allow. The bits of a folder that other drivers use too are only added to. */
static int permit(int folder, const struct fw_users *users, const struct stat *at)
{
	mode_t wanted = 0700, now = at->st_mode;

	if (users->has_group)
		wanted |= 0050;
	if (users->count > 0)
		wanted |= 0011;
	/* systemd may refuse the call, and has made the folder for the group already. */
	if (users->has_group && at->st_gid != users->group &&
	    fchown(folder, (uid_t)-1, users->group) < 0)
		return -errno;
	if ((now & wanted) != wanted && fchmod(folder, (now & 0777) | wanted) < 0)
		return -errno;
	return 0;
}

/* Returns the locked folder, or negative errno with a sentence. */
static int open_folder(const char *path, const struct fw_users *users, struct frag_err *err)
{
	struct stat at;
	int folder, r;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return frag_err_set(err, -errno, "cannot make the folder %s: %s", path,
				    frag_strerror(-errno));
	r = fragi_trusted_path_check(path, geteuid(), err);
	if (r < 0)
		return r;
	folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0 || fstat(folder, &at) < 0) {
		r = frag_err_set(err, -errno, "cannot open the folder %s: %s", path,
				 frag_strerror(-errno));
		goto err_folder;
	}
	r = permit(folder, users, &at);
	if (r == 0 && flock(folder, LOCK_EX) < 0)
		r = -errno;
	if (r == 0)
		return folder;
	frag_err_set(err, r, "cannot use the folder %s: %s", path, frag_strerror(r));
err_folder:
	if (folder >= 0)
		close(folder);
	return r;
}

static const struct sockaddr *as_address(const struct sockaddr_un *address)
{
	return (const struct sockaddr *)(const void *)address;
}

/* Whether the path is a socket whose driver is gone. */
static bool is_left_behind(const struct sockaddr_un *address)
{
	struct stat at;
	bool refused;
	int fd;

	if (lstat(address->sun_path, &at) < 0 || !S_ISSOCK(at.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	refused = fd >= 0 && connect(fd, as_address(address), sizeof(*address)) < 0 &&
		  errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return refused;
}

static int bind_to(int fd, const struct sockaddr_un *address)
{
	if (bind(fd, as_address(address), sizeof(*address)) == 0)
		return 0;
	if (errno != EADDRINUSE || !is_left_behind(address))
		return -errno;
	(void)unlink(address->sun_path);
	return bind(fd, as_address(address), sizeof(*address)) < 0 ? -errno : 0;
}

/* Returns the socket, or negative errno. */
static int make_socket(struct drv_local_socket *local, const struct fw_users *users)
{
	const char *path = local->address.sun_path;
	mode_t mode = users->count > 0 ? 0666 : users->has_group ? 0660 : 0600;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;
	struct stat at;

	if (fd < 0)
		return -errno;
	r = bind_to(fd, &local->address);
	if (r < 0)
		goto err_bind;
	if (lstat(path, &at) < 0 ||
	    (users->has_group && at.st_gid != users->group &&
	     chown(path, (uid_t)-1, users->group) < 0) ||
	    chmod(path, mode) < 0 || listen(fd, BACKLOG) < 0) {
		r = -errno;
		goto err_listen;
	}
	local->device = at.st_dev;
	local->inode = at.st_ino;
	return fd;

err_listen:
	(void)unlink(path);
err_bind:
	close(fd);
	return r;
}

int drv_local_socket_open(struct drv_local_socket *local, uint16_t port,
			  const struct fw_users *users, int *out_fd, struct frag_err *err)
{
	char *path = local->address.sun_path, name[16];
	int r;

	*local = (struct drv_local_socket){.address.sun_family = AF_UNIX, .folder = -1};
	snprintf(name, sizeof(name), "/%u.sock", (unsigned int)port);
	r = folder_path(path, sizeof(local->address.sun_path) - strlen(name));
	if (r < 0) {
		path[0] = '\0';
		return frag_err_set(err, r, "the path of the runtime folder is too long");
	}
	r = open_folder(path, users, err);
	if (r < 0) {
		path[0] = '\0';
		return r;
	}
	local->folder = r;
	strcat(path, name);
	r = make_socket(local, users);
	(void)flock(local->folder, LOCK_UN);
	if (r >= 0) {
		*out_fd = r;
		return 0;
	}
	if (r == -EADDRINUSE)
		frag_err_set(err, r, "%s is another driver's, or no socket", path);
	else
		frag_err_set(err, r, "cannot make %s: %s", path, frag_strerror(r));
	close(local->folder);
	path[0] = '\0';
	return r;
}

void drv_local_socket_close(struct drv_local_socket *local)
{
	struct stat at;

	if (local->address.sun_path[0] == '\0')
		return;
	(void)flock(local->folder, LOCK_EX);
	if (lstat(local->address.sun_path, &at) == 0 && at.st_dev == local->device &&
	    at.st_ino == local->inode)
		(void)unlink(local->address.sun_path);
	close(local->folder);
	local->address.sun_path[0] = '\0';
}
