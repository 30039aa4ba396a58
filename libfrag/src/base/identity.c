// SPDX-License-Identifier: Apache-2.0
#include <base/identity.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT_ID_BYTES 36

int fragi_identity_machine(char out[FRAGI_IDENTITY_SIZE])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd >= 0) {
		n = read(fd, out, BOOT_ID_BYTES);
		close(fd);
	}
	out[n == BOOT_ID_BYTES ? BOOT_ID_BYTES : 0] = '\0';
	return 0;
}

/* A kernel without that kind of namespace has one for all. */
static int with_namespace(const char *path, char out[FRAGI_IDENTITY_SIZE])
{
	struct stat space = {0};
	int r = fragi_identity_machine(out);
	size_t used;

	if (r < 0 || out[0] == '\0')
		return r;
	(void)stat(path, &space);
	used = strlen(out);
	snprintf(out + used, FRAGI_IDENTITY_SIZE - used, ".%llu", (unsigned long long)space.st_ino);
	return 0;
}

int fragi_identity_loopback(char out[FRAGI_IDENTITY_SIZE])
{
	return with_namespace("/proc/self/ns/net", out);
}

int fragi_identity_clock(bool of_children, char out[FRAGI_IDENTITY_SIZE])
{
	return with_namespace(
		of_children ? "/proc/self/ns/time_for_children" : "/proc/self/ns/time", out);
}

bool fragi_identity_is_same(const char *a, const char *b)
{
	return a[0] != '\0' && strcmp(a, b) == 0;
}
