// SPDX-License-Identifier: Apache-2.0
#include "module.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

int shm_bell_create(struct shm_bell **out_bell)
{
	struct shm_bell *bell = fragi_calloc(1, sizeof(*bell));
	int r;

	if (bell == NULL)
		return -ENOMEM;
	bell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (bell->fd < 0) {
		r = -errno;
		fragi_free(bell);
		return r;
	}
	atomic_init(&bell->refs, 1);
	*out_bell = bell;
	return 0;
}

struct shm_bell *shm_bell_ref(struct shm_bell *bell)
{
	atomic_fetch_add_explicit(&bell->refs, 1, memory_order_relaxed);
	return bell;
}

void shm_bell_unref(struct shm_bell *bell)
{
	if (bell == NULL || atomic_fetch_sub_explicit(&bell->refs, 1, memory_order_acq_rel) != 1)
		return;
	close(bell->fd);
	fragi_free(bell);
}

/*
 * Its host waits for the moment of a ring and does not read how many there were. Only what is
 * counted is a ring: a bell that cannot count further is emptied first.
 */
void shm_bell_ring(int fd)
{
	const uint64_t one = 1;
	uint64_t rings;

	if (write(fd, &one, sizeof(one)) == (ssize_t)sizeof(one) || errno != EAGAIN)
		return;
	(void)!read(fd, &rings, sizeof(rings));
	(void)!write(fd, &one, sizeof(one));
}
