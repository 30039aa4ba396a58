// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/saved.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/alloc.h>
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

static struct wrk_saved_of *find(struct wrk_saved *saved, uint64_t run, uint32_t number,
				 uint64_t epoch)
{
	for (size_t i = 0; i < saved->count; i++)
		if (saved->items[i].run == run && saved->items[i].number == number &&
		    saved->items[i].epoch == epoch)
			return &saved->items[i];
	return NULL;
}

int wrk_saved_of(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch)
{
	const struct wrk_saved_of *found = find(saved, run, number, epoch);
	int fd;

	if (found != NULL)
		return found->fd;
	if (saved->count == FRAG_COUNT_OF(saved->items))
		return -ENOSPC;
	fd = make();
	if (fd >= 0)
		saved->items[saved->count++] = (struct wrk_saved_of){run, number, epoch, fd};
	return fd;
}

void wrk_saved_promote(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch)
{
	struct wrk_saved_of *item = find(saved, run, number, epoch);
	struct wrk_saved_of *old = find(saved, run, number, 0);
	int fd;

	if (item == NULL)
		return;
	if (old == NULL) {
		item->epoch = 0;
		return;
	}
	fd = old->fd;
	old->fd = item->fd;
	item->fd = fd;
	wrk_saved_forget(saved, run, number, epoch);
}

/* The bytes from a place where something is, to where nothing is; 0 or less: there is no more. */
static off_t next_part(int fd, off_t *from)
{
	off_t end, max = FW_SAVED_BYTES_MAX;

	*from = lseek(fd, *from, SEEK_DATA);
	if (*from < 0)
		return 0;
	end = lseek(fd, *from, SEEK_HOLE);
	return end - *from < max ? end - *from : max;
}

static off_t written_bytes(int fd)
{
	off_t sum = 0, size;

	for (off_t from = 0; (size = next_part(fd, &from)) > 0; from += size)
		sum += size;
	return sum;
}

static int send_parts(int fd,
		      void (*fn)(void *arg, uint64_t offset, const void *bytes, uint32_t size),
		      void *arg)
{
	void *bytes = fragi_malloc(FW_SAVED_BYTES_MAX);
	off_t size, from = 0;
	int r = 0;

	if (bytes == NULL)
		return -ENOMEM;
	for (; r == 0 && (size = next_part(fd, &from)) > 0; from += size) {
		if (pread(fd, bytes, (size_t)size, from) == (ssize_t)size)
			fn(arg, (uint64_t)from, bytes, (uint32_t)size);
		else
			r = -EIO;
	}
	fragi_free(bytes);
	return r;
}

int wrk_saved_read(struct wrk_saved *saved, uint64_t run, uint32_t number,
		   void (*fn)(void *arg, uint64_t offset, const void *bytes, uint32_t size),
		   void *arg)
{
	const struct wrk_saved_of *found = find(saved, run, number, 0);

	if (found == NULL)
		return 0;
	return written_bytes(found->fd) > (off_t)WRK_SAVED_SENT_MAX
		       ? -EFBIG
		       : send_parts(found->fd, fn, arg);
}

int wrk_saved_take(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch,
		   const struct fw_host_saved *part)
{
	const struct wrk_saved_of *beside = find(saved, run, number, epoch);
	int fd = beside != NULL ? beside->fd : wrk_saved_of(saved, run, number, 0);

	if (fd < 0)
		return fd;
	/* What an earlier host of this number has left here is older than that. */
	if (part->offset == 0 && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
					   (off_t)FRAGI_SAVED_BYTES_MAX) < 0)
		return -errno;
	return pwrite(fd, part->bytes, part->size, (off_t)part->offset) == (ssize_t)part->size
		       ? 0
		       : -EIO;
}

void wrk_saved_forget(struct wrk_saved *saved, uint64_t run, uint32_t number, uint64_t epoch)
{
	size_t kept = 0;

	for (size_t i = 0; i < saved->count; i++) {
		if ((run != 0 && saved->items[i].run != run) ||
		    (number != 0 && saved->items[i].number != number) ||
		    (epoch != 0 && saved->items[i].epoch != epoch))
			saved->items[kept++] = saved->items[i];
		else
			close(saved->items[i].fd);
	}
	saved->count = kept;
}
