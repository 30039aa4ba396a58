// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/sentence.h>
#include <workerd/shared_memory.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whether this kernel has memory that others can map and only this process writes: Linux 5.1. */
static int try_seals(void)
{
	int fd = memfd_create("frag-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING), r = 0;

	if (fd < 0)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* The shared heap of a host is as large as the machine's memory, though few pages are behind it. */
static const char *limit_in_the_way(const struct wrk_rights *rights)
{
	static const struct {
		int resource;
		const char *text;
	} limits[] = {
		{RLIMIT_AS, "the address space of hosts is limited (as, ulimit -v)"},
		{RLIMIT_FSIZE, "the size of files that hosts write is limited (fsize, ulimit -f)"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(limits); i++) {
		struct rlimit limit = wrk_host_limits_get(&rights->limits, limits[i].resource);

		if (limit.rlim_cur != RLIM_INFINITY)
			return limits[i].text;
	}
	return NULL;
}

void wrk_shared_memory(const struct wrk_rights *rights, char out[FRAGI_IDENTITY_MEMORY_SIZE],
		       char *out_why, size_t size)
{
	const char *limit = limit_in_the_way(rights);
	int r = limit == NULL ? try_seals() : 0;

	out[0] = '\0';
	if (limit != NULL)
		fragi_sentence(out_why, size, "%s", limit);
	else if (r < 0)
		snprintf(out_why, size, "memory cannot be sealed, which takes Linux 5.1 (%s)",
			 frag_strerror(r));
	else if ((r = fragi_identity_memory(rights->user.uid, out)) < 0 || out[0] == '\0')
		snprintf(out_why, size, "/proc does not say which machine this is (%s)",
			 r < 0 ? frag_strerror(r) : "it has no boot id");
}
