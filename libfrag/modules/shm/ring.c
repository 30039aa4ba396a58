// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/bytes.h>

#define HEAD_BYTES ((size_t)65536) /* a page, of whatever size the kernel has */
#define CHANNEL_BYTES (HEAD_BYTES + SHM_RING_BYTES)
#define MAPPED_BYTES (CHANNEL_BYTES + SHM_RING_BYTES)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define AHEAD_BYTES (4 * SHM_LINE_BYTES) /* a message with a small body */
#define CHANNEL_MAGIC 0x43534646u        /* "FFSC" */

/* On cache lines of their own: each is read by the peer while the owner writes the others. */
struct head {
	uint32_t magic;
	_Atomic uint64_t areas; /* of the peer's that the owner has mapped */
	_Alignas(SHM_LINE_BYTES) _Atomic uint64_t consumed; /* bytes, of the peer's ring */
	_Alignas(SHM_LINE_BYTES) _Atomic uint32_t sleeps;
	_Atomic uint32_t wants_room;
};

static struct head *head_of(uint8_t *memory)
{
	return (struct head *)(void *)memory;
}

static const struct head *peer_head(const struct shm_ring_in *in)
{
	return (const struct head *)(const void *)in->memory;
}

/* The channel, and its ring once more behind it. */
static uint8_t *map_channel(int fd, int protection)
{
	uint8_t *memory = mmap(NULL, MAPPED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	if (mmap(memory, CHANNEL_BYTES, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(memory + CHANNEL_BYTES, SHM_RING_BYTES, protection, MAP_SHARED | MAP_FIXED, fd,
		 (off_t)HEAD_BYTES) == MAP_FAILED) {
		munmap(memory, MAPPED_BYTES);
		return NULL;
	}
	return memory;
}

int shm_ring_create(struct shm_ring_out *out)
{
	int fd = memfd_create("frag-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)CHANNEL_BYTES) == 0)
		out->memory = map_channel(fd, PROT_READ | PROT_WRITE);
	if (out->memory == NULL || fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
		r = -errno;
		if (out->memory != NULL)
			munmap(out->memory, MAPPED_BYTES);
		out->memory = NULL;
		close(fd);
		return r;
	}
	out->fd = fd;
	head_of(out->memory)->magic = CHANNEL_MAGIC;
	return 0;
}

void shm_ring_destroy(struct shm_ring_out *out)
{
	if (out->memory == NULL)
		return;
	munmap(out->memory, MAPPED_BYTES);
	close(out->fd);
	out->memory = NULL;
}

int shm_ring_map(struct shm_ring_in *in, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	off_t size = lseek(fd, 0, SEEK_END);

	/* One that can shrink would let a read beyond its end kill this process. */
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || size != (off_t)CHANNEL_BYTES)
		return -EBADMSG;
	in->memory = map_channel(fd, PROT_READ);
	if (in->memory == NULL)
		return -errno;
	if (peer_head(in)->magic != CHANNEL_MAGIC) {
		shm_ring_unmap(in);
		return -EBADMSG;
	}
	return 0;
}

void shm_ring_unmap(struct shm_ring_in *in)
{
	if (in->memory != NULL)
		munmap((void *)(uintptr_t)in->memory, MAPPED_BYTES);
	in->memory = NULL;
}

/* By the peer, as it says. */
static uint64_t consumed_by(const struct shm_ring_in *in)
{
	return in->memory == NULL
		       ? 0
		       : atomic_load_explicit(&peer_head(in)->consumed, memory_order_acquire);
}

void shm_ring_tell_areas(struct shm_ring_out *own, uint64_t areas)
{
	atomic_store_explicit(&head_of(own->memory)->areas, areas, memory_order_relaxed);
}

uint64_t shm_ring_areas(const struct shm_ring_in *in)
{
	return in->memory == NULL
		       ? 0
		       : atomic_load_explicit(&peer_head(in)->areas, memory_order_relaxed);
}

bool shm_ring_is_wrong(const struct shm_ring_out *out, const struct shm_ring_in *in)
{
	return out->produced - consumed_by(in) > SHM_RING_BYTES;
}

/* For that and a 0 behind it, at the beginning of the next line. */
static bool has_room(const struct shm_ring_out *out, uint64_t bytes)
{
	return bytes < SHM_RING_BYTES - (out->produced - out->consumed);
}

uint8_t *shm_ring_room(struct shm_ring_out *out, const struct shm_ring_in *in, uint64_t bytes)
{
	uint64_t consumed;

	if (!has_room(out, bytes)) {
		if (in->memory == NULL)
			return NULL;
		consumed = consumed_by(in);
		if (out->produced - consumed > SHM_RING_BYTES)
			return NULL;
		out->consumed = consumed;
		if (!has_room(out, bytes))
			return NULL;
	}
	return out->memory + HEAD_BYTES + out->produced % SHM_RING_BYTES;
}

static inline void fetch_for_writing(const uint8_t *at)
{
#if defined(__x86_64__)
	/* compilers make a fetch for reading of the builtin unless told of a newer processor */
	__asm__ volatile("prefetchw %0" : : "m"(*at));
#else
	__builtin_prefetch(at, 1);
#endif
}

/*
 * The next record goes where the peer has read before. To write there takes the lines from its
 * core, and the fence of the next message would wait for that: it begins here.
 */
static inline void fetch_ahead(const struct shm_ring_out *out)
{
	const uint8_t *at = out->memory + HEAD_BYTES + out->produced % SHM_RING_BYTES;

	for (uint32_t i = 0; i < AHEAD_BYTES; i += SHM_LINE_BYTES)
		fetch_for_writing(at + i);
}

static _Atomic uint64_t *word_at(const uint8_t *memory, uint64_t position)
{
	return (_Atomic uint64_t *)(uintptr_t)(memory + HEAD_BYTES + position % SHM_RING_BYTES);
}

/*
 * A peer that has read this record looks at the head behind it, where old bytes lie: the 0 is
 * stored first, and released with the record.
 */
void shm_ring_publish(struct shm_ring_out *out, struct shm_record_head head, uint64_t bytes)
{
	uint64_t begin = out->produced, word;

	memcpy(&word, &head, sizeof(word));
	out->produced += bytes;
	atomic_store_explicit(word_at(out->memory, out->produced), 0, memory_order_relaxed);
	atomic_store_explicit(word_at(out->memory, begin), word, memory_order_release);
	fetch_ahead(out);
}

/* The head of the next record; 0: it is not there yet. */
static uint64_t load_word(const struct shm_ring_in *in)
{
	return atomic_load_explicit(word_at(in->memory, in->consumed), memory_order_acquire);
}

static bool is_possible(struct shm_record_head head)
{
	if (head.header_bytes > FRAGI_HEADER_MAX || head.inline_bytes > SHM_INLINE_MAX)
		return false;
	return head.kind == SHM_MESSAGE
		       ? head.count <= FRAG_MESSAGE_TENSORS_MAX
		       : head.kind == SHM_RETURN && head.count > 0 && head.count <= SHM_RETURNS_MAX;
}

/* The head is read once, so that the peer cannot change what was checked. */
int shm_ring_next(struct shm_ring_in *in, struct shm_record *out)
{
	struct shm_record_head head;
	const uint8_t *at;
	uint64_t word;

	if (in->memory == NULL)
		return 0;
	word = load_word(in);
	if (word == 0)
		return 0;
	memcpy(&head, &word, sizeof(head));
	if (!is_possible(head))
		return -EBADMSG;
	at = in->memory + HEAD_BYTES + in->consumed % SHM_RING_BYTES;
	*out = (struct shm_record){
		.kind = head.kind,
		.header_bytes = head.header_bytes,
		.count = head.count,
		.inline_bytes = head.inline_bytes,
		.slot = fragi_get64(at + 8),
		.header = at + SHM_HEADER_AT,
		.rest = at + SHM_HEADER_AT + shm_padded(head.header_bytes),
		.bytes = shm_record_bytes(head),
	};
	return 1;
}

void shm_ring_consume(struct shm_ring_in *in, struct shm_ring_out *own,
		      const struct shm_record *record)
{
	in->consumed += record->bytes;
	atomic_store_explicit(&head_of(own->memory)->consumed, in->consumed, memory_order_release);
}

bool shm_ring_is_empty(const struct shm_ring_in *in)
{
	return in->memory == NULL || load_word(in) == 0;
}

void shm_ring_sleep(struct shm_ring_out *own, bool sleeps)
{
	struct head *head = head_of(own->memory);
	uint32_t before = atomic_load_explicit(&head->sleeps, memory_order_relaxed);

	if ((before & 1) != sleeps)
		atomic_store_explicit(&head->sleeps, before + 1, memory_order_release);
}

uint32_t shm_ring_sleeps(const struct shm_ring_in *in)
{
	return in->memory == NULL
		       ? 0
		       : atomic_load_explicit(&peer_head(in)->sleeps, memory_order_relaxed);
}

void shm_ring_want_room(struct shm_ring_out *own, bool wants)
{
	atomic_store_explicit(&head_of(own->memory)->wants_room, wants, memory_order_release);
}

bool shm_ring_wants_room(const struct shm_ring_in *in)
{
	return in->memory != NULL &&
	       atomic_load_explicit(&peer_head(in)->wants_room, memory_order_relaxed) != 0;
}
