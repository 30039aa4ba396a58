/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <workerd/saved.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/saved_bytes.h>

static int make(void)
{
	int fd = memfd_create("frag-saved", MFD_CLOEXEC | MFD_ALLOW_SEALING), r = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)FRAGI_SAVED_BYTES_MAX) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

int wrk_saved_of(struct wrk_saved *saved, uint64_t run, uint32_t number)
{
	int fd;

	for (size_t i = 0; i < saved->count; i++)
		if (saved->items[i].run == run && saved->items[i].number == number)
			return saved->items[i].fd;
	if (saved->count == WRK_HOSTS_MAX)
		return -ENOSPC;
	fd = make();
	if (fd >= 0)
		saved->items[saved->count++] = (struct wrk_saved_of){run, number, fd};
	return fd;
}

void wrk_saved_forget(struct wrk_saved *saved, uint64_t run)
{
	size_t kept = 0;

	for (size_t i = 0; i < saved->count; i++) {
		if (run != 0 && saved->items[i].run != run)
			saved->items[kept++] = saved->items[i];
		else
			close(saved->items[i].fd);
	}
	saved->count = kept;
}
