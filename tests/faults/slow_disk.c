// SPDX-License-Identifier: Apache-2.0
/* Preloaded into a process: while the file FRAG_TEST_SLOW_DISK is there, a sync takes 0.2 s. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for_disk(void)
{
	const char *file = getenv("FRAG_TEST_SLOW_DISK");

	if (file != NULL && access(file, F_OK) == 0)
		usleep(200000);
}

int fsync(int fd)
{
	wait_for_disk();
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	wait_for_disk();
	return (int)syscall(SYS_fdatasync, fd);
}
