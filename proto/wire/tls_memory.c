// SPDX-License-Identifier: Apache-2.0
#include <wire/tls_memory.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <openssl/crypto.h>

#include <base/secret.h>

#ifdef __SANITIZE_ADDRESS__
#define TLS_MEMORY_ASAN 1
#elif defined(__has_feature)
#define TLS_MEMORY_ASAN __has_feature(address_sanitizer)
#else
#define TLS_MEMORY_ASAN 0
#endif

/*
 * Blocks of a power of two are cut from chunks; a free block waits in the list of its size. Chunks
 * are kept until the process ends: what a daemon needs for its most connections is needed again.
 * Larger blocks have pages of their own. A block is wiped when it is freed.
 */
#define CHUNK_BYTES ((size_t)256 << 10)
#define SIZE_FIRST 64u
#define SIZES 10 /* up to 32 KiB: a buffer for a record fits */

union head {
	struct {
		size_t size; /* of the block, this head included */
		union head *next;
	};
	max_align_t align;
};

static struct {
	pthread_mutex_t lock;
	union head *free[SIZES];
	uint8_t *chunk;
	size_t left; /* of the chunk */
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* SIZES: it is larger than any. */
static unsigned int index_of(size_t size)
{
	unsigned int i = 0;

	while (i < SIZES && ((size_t)SIZE_FIRST << i) < size)
		i++;
	return i;
}

static union head *take(unsigned int i)
{
	size_t size = (size_t)SIZE_FIRST << i;
	union head *head = memory.free[i];

	if (head != NULL) {
		memory.free[i] = head->next;
		return head;
	}
	if (memory.left < size) { /* what is left of the former one stays unused */
		memory.chunk = fragi_secret_alloc(CHUNK_BYTES);
		memory.left = memory.chunk != NULL ? CHUNK_BYTES : 0;
	}
	if (memory.chunk == NULL)
		return NULL;
	memory.left -= size;
	head = (union head *)(void *)(memory.chunk + memory.left);
	head->size = size;
	return head;
}

static void *allocate(size_t size, const char *file, int line)
{
	size_t whole = size + sizeof(union head);
	unsigned int i = index_of(whole);
	union head *head;

	(void)file;
	(void)line;
	if (size == 0 || whole < size)
		return NULL;
	if (i == SIZES) {
		head = fragi_secret_alloc(whole);
		if (head != NULL)
			head->size = whole;
	} else {
		pthread_mutex_lock(&memory.lock);
		head = take(i);
		pthread_mutex_unlock(&memory.lock);
	}
	return head != NULL ? head + 1 : NULL;
}

static void release(void *block, const char *file, int line)
{
	union head *head = (union head *)block - 1;
	unsigned int i;

	(void)file;
	(void)line;
	if (block == NULL)
		return;
	i = index_of(head->size);
	if (i == SIZES) {
		fragi_secret_free(head, head->size);
		return;
	}
	explicit_bzero(block, head->size - sizeof(*head));
	pthread_mutex_lock(&memory.lock);
	head->next = memory.free[i];
	memory.free[i] = head;
	pthread_mutex_unlock(&memory.lock);
}

static void *reallocate(void *block, size_t size, const char *file, int line)
{
	const union head *head = (union head *)block - 1;
	void *moved;

	if (block == NULL)
		return allocate(size, file, line);
	if (size != 0 && size <= head->size - sizeof(*head))
		return block;
	moved = allocate(size, file, line);
	if (moved != NULL)
		memcpy(moved, block, head->size - sizeof(*head));
	if (moved != NULL || size == 0)
		release(block, file, line);
	return moved;
}

void fw_tls_memory_use(void)
{
	/* AddressSanitizer has to see each block of OpenSSL's. */
	if (!TLS_MEMORY_ASAN)
		(void)CRYPTO_set_mem_functions(allocate, reallocate, release);
}
