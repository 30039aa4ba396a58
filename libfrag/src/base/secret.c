// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/secret.h>

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <base/alloc.h>

void *fragi_secret_alloc(size_t size)
{
	void *secret;

	if (fragi_alloc_fails())
		return NULL;
	secret = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (secret == MAP_FAILED)
		return NULL;
	if (madvise(secret, size, MADV_DONTDUMP) < 0 ||
	    madvise(secret, size, MADV_WIPEONFORK) < 0) {
		munmap(secret, size);
		return NULL;
	}
	(void)mlock(secret, size);
	return secret;
}

void fragi_secret_free(void *secret, size_t size)
{
	if (secret == NULL)
		return;
	explicit_bzero(secret, size);
	munmap(secret, size);
}

bool fragi_secret_equal(const void *a, const void *b, size_t size)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t different = 0;

	for (size_t i = 0; i < size; i++)
		different |= x[i] ^ y[i];
	return different == 0;
}
