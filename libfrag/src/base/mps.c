// SPDX-License-Identifier: Apache-2.0
#include <base/mps.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

const char *fragi_mps_folder(void)
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");

	return folder != NULL && folder[0] != '\0' ? folder : "/tmp/nvidia-mps";
}

/* A socket of another type is not connected, but is refused in another way when nobody listens. */
static bool is_listened_to(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_there = fd >= 0 && (connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 ||
				    errno == EPROTOTYPE);

	if (fd >= 0)
		close(fd);
	return is_there;
}

static bool has_reader(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* NVIDIA says that these are "named pipes and UNIX domain sockets". */
bool fragi_mps_runs(const char *folder)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct stat status;
	int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s/control", folder);

	if (n < 0 || (size_t)n >= sizeof(at.sun_path) || stat(at.sun_path, &status) < 0)
		return false;
	if (S_ISSOCK(status.st_mode))
		return is_listened_to(&at);
	return S_ISFIFO(status.st_mode) && has_reader(at.sun_path);
}
