// SPDX-License-Identifier: Apache-2.0
#include <fragctl/driver.h>

#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Where the sockets of drivers on this machine are, and which driver a person means. */

/* Anybody may have made it, where everybody may make folders: then the driver is asked by TCP. */
static bool is_own_folder(const char *folder)
{
	struct stat at;

	return lstat(folder, &at) == 0 && S_ISDIR(at.st_mode) && at.st_uid == geteuid();
}

void ctl_driver_folders(char folders[CTL_FOLDERS][200])
{
	const char *user = getenv("XDG_RUNTIME_DIR");

	folders[0][0] = '\0';
	if (user != NULL && user[0] == '/')
		snprintf(folders[0], sizeof(folders[0]), "%s/frag", user);
	/* Tests meet no driver but their own, whatever else runs on the machine. */
	if (folders[0][0] != '\0' && getenv("FRAG_TEST_OWN_DRIVERS") != NULL) {
		folders[1][0] = folders[2][0] = '\0';
		return;
	}
	snprintf(folders[1], sizeof(folders[1]), "/run/frag");
	snprintf(folders[2], sizeof(folders[2]), "/tmp/frag-%u", (unsigned int)geteuid());
	if (!is_own_folder(folders[2]))
		folders[2][0] = '\0';
}

/* Whether a driver listens there; *out_since: since when, 0: it is another user's. */
static bool is_driver(const char *folder, unsigned int port, int64_t *out_since)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat at;
	bool is_there;
	int fd;

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/%u.sock", folder, port);
	if (lstat(address.sun_path, &at) < 0 || !S_ISSOCK(at.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	is_there = fd >= 0 && (connect(fd, (const struct sockaddr *)(const void *)&address,
				       sizeof(address)) == 0 ||
			       errno == EACCES);
	if (fd >= 0)
		close(fd);
	*out_since = at.st_uid == geteuid() ? at.st_mtime : 0;
	return is_there;
}

void ctl_driver_find(struct ctl_driver *driver)
{
	char folders[CTL_FOLDERS][200];
	int64_t newest = 0, since;
	unsigned int port;

	ctl_driver_folders(folders);
	for (size_t i = 0; i < CTL_FOLDERS && driver->address_text == NULL; i++) {
		DIR *folder = folders[i][0] != '\0' ? opendir(folders[i]) : NULL;
		const struct dirent *entry;

		while (folder != NULL && (entry = readdir(folder)) != NULL) {
			if (sscanf(entry->d_name, "%u.sock", &port) != 1)
				continue;
			if (!is_driver(folders[i], port, &since))
				continue;
			if (port == FRAGI_PORT_DEFAULT)
				since = INT64_MAX;
			if (since == 0 || since < newest)
				continue;
			newest = since;
			snprintf(driver->found, sizeof(driver->found), ":%u", port);
		}
		if (folder != NULL)
			closedir(folder);
	}
	if (newest != 0 && newest != INT64_MAX)
		driver->address_text = driver->found;
}

/* A socket can be bound to an address of this machine. */
bool ctl_driver_is_near(const struct fragi_address *address)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	bool is_own = false;

	if (fragi_address_is_loopback(address))
		return true;
	if (getaddrinfo(address->host, "0", &hints, &found) != 0)
		return false;
	for (const struct addrinfo *at = found; at != NULL && !is_own; at = at->ai_next) {
		int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		is_own = fd >= 0 && bind(fd, at->ai_addr, at->ai_addrlen) == 0;
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(found);
	return is_own;
}
