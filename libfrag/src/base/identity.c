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
static unsigned long long namespace_number(const char *path)
{
	struct stat space = {0};

	(void)stat(path, &space);
	return (unsigned long long)space.st_ino;
}

static int with_namespace(const char *path, char out[FRAGI_IDENTITY_SIZE])
{
	int r = fragi_identity_machine(out);
	size_t used;

	if (r < 0 || out[0] == '\0')
		return r;
	used = strlen(out);
	snprintf(out + used, FRAGI_IDENTITY_SIZE - used, ".%llu", namespace_number(path));
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

int fragi_identity_memory(uid_t user, char out[FRAGI_IDENTITY_MEMORY_SIZE])
{
	char machine[FRAGI_IDENTITY_SIZE];
	int r = fragi_identity_machine(machine);

	if (r < 0)
		return r;
	out[0] = '\0';
	if (machine[0] != '\0')
		snprintf(out, FRAGI_IDENTITY_MEMORY_SIZE, "%s.%llu.%llu.%llu", machine,
			 namespace_number("/proc/self/ns/net"),
			 namespace_number("/proc/self/ns/user"), (unsigned long long)user);
	return 0;
}

enum fragi_apart fragi_identity_apart(const char *a, const char *b)
{
	/* by how many dots stand before the place where they differ */
	static const enum fragi_apart by_part[] = {FRAGI_APART_MACHINE, FRAGI_APART_NETWORK,
						   FRAGI_APART_USER};
	size_t part = 0;

	if (a[0] == '\0' || b[0] == '\0')
		return FRAGI_APART_UNKNOWN;
	for (; *a == *b && *a != '\0'; a++, b++)
		part += *a == '.' && part + 1 < FRAG_COUNT_OF(by_part);
	return *a == *b ? FRAGI_APART_NOT : by_part[part];
}

bool fragi_identity_is_same(const char *a, const char *b)
{
	return a[0] != '\0' && strcmp(a, b) == 0;
}
