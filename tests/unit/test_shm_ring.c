// SPDX-License-Identifier: Apache-2.0
/* The ring of a channel of shared memory: one host writes records, its peer reads them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/bytes.h>
#include <base/stamp.h>
#include <libfrag/modules/shm/ring.h>

#ifdef __SANITIZE_THREAD__
#define RECORDS 30000
#else
#define RECORDS 300000
#endif
#define LONG_NS (30 * INT64_C(1000000000)) /* for one record */

/* The writer's channel and the reader's, each mapped by the other. */
struct ends {
	struct shm_ring_out out, back;
	struct shm_ring_in in, seen; /* seen: by the writer, how far the reader has read */
};

static void open_ends(struct ends *ends)
{
	memset(ends, 0, sizeof(*ends));
	cr_assert_eq(shm_ring_create(&ends->out), 0);
	cr_assert_eq(shm_ring_create(&ends->back), 0);
	cr_assert_eq(shm_ring_map(&ends->in, ends->out.fd), 0);
	cr_assert_eq(shm_ring_map(&ends->seen, ends->back.fd), 0);
}

static void close_ends(struct ends *ends)
{
	shm_ring_unmap(&ends->in);
	shm_ring_unmap(&ends->seen);
	shm_ring_destroy(&ends->out);
	shm_ring_destroy(&ends->back);
}

static struct shm_record_head head_of(uint32_t header_bytes, uint32_t inline_bytes)
{
	return (struct shm_record_head){.kind = SHM_MESSAGE,
					.header_bytes = (uint16_t)header_bytes,
					.inline_bytes = inline_bytes};
}

static uint64_t bytes_of(uint32_t header_bytes, uint32_t inline_bytes)
{
	return shm_record_bytes(head_of(header_bytes, inline_bytes));
}

/* A record but for its head; header and body are filled with `mark` and `mark + 1`. */
static bool write_record(struct ends *ends, uint32_t header_bytes, uint32_t inline_bytes,
			 uint64_t mark)
{
	uint8_t *at = shm_ring_room(&ends->out, &ends->seen, bytes_of(header_bytes, inline_bytes));

	if (at == NULL)
		return false;
	fragi_put64(at + 8, mark);
	memset(at + SHM_HEADER_AT, (uint8_t)mark, shm_padded(header_bytes));
	memset(at + SHM_HEADER_AT + shm_padded(header_bytes), (uint8_t)(mark + 1),
	       shm_padded(inline_bytes));
	return true;
}

static void publish(struct ends *ends, uint32_t header_bytes, uint32_t inline_bytes)
{
	shm_ring_publish(&ends->out, head_of(header_bytes, inline_bytes),
			 bytes_of(header_bytes, inline_bytes));
}

static bool put(struct ends *ends, uint32_t header_bytes, uint32_t inline_bytes, uint64_t mark)
{
	if (!write_record(ends, header_bytes, inline_bytes, mark))
		return false;
	publish(ends, header_bytes, inline_bytes);
	return true;
}

static bool is_filled(const uint8_t *bytes, uint32_t count, uint8_t with)
{
	for (uint32_t i = 0; i < count; i++)
		if (bytes[i] != with)
			return false;
	return true;
}

/* Takes the next record, if it is there, and compares it. */
static bool take(struct ends *ends, uint32_t header_bytes, uint32_t inline_bytes, uint64_t mark)
{
	struct shm_record record;
	int r = shm_ring_next(&ends->in, &record);

	if (r == 0)
		return false;
	cr_assert_eq(r, 1, "record %llu", (unsigned long long)mark);
	cr_assert_eq(record.slot, mark);
	cr_assert_eq(record.bytes, bytes_of(header_bytes, inline_bytes));
	cr_assert(is_filled(record.header, header_bytes, (uint8_t)mark));
	cr_assert(is_filled(record.rest, inline_bytes, (uint8_t)(mark + 1)));
	shm_ring_consume(&ends->in, &ends->back, &record);
	return true;
}

Test(shm_ring, a_record_is_there_with_its_head)
{
	struct shm_record record;
	struct ends ends;

	open_ends(&ends);
	cr_expect_eq(shm_ring_next(&ends.in, &record), 0);
	cr_assert(write_record(&ends, 40, 64, 7));
	cr_expect_eq(shm_ring_next(&ends.in, &record), 0);
	cr_expect(shm_ring_is_empty(&ends.in));
	publish(&ends, 40, 64);
	cr_expect_not(shm_ring_is_empty(&ends.in));
	cr_expect(take(&ends, 40, 64, 7));
	cr_expect(shm_ring_is_empty(&ends.in));
	cr_expect_eq(shm_ring_next(&ends.in, &record), 0);
	close_ends(&ends);
}

/* Small ones, which a peer reads while the next one is written. */
Test(shm_ring, a_record_begins_with_a_line_and_is_no_longer_than_needed)
{
	cr_expect_eq(bytes_of(0, 0), 64);
	cr_expect_eq(bytes_of(40, 8), 64);
	cr_expect_eq(bytes_of(40, 9), 128);
	cr_expect_eq(bytes_of(41, 8), 128);
	cr_expect_eq(shm_record_bytes((struct shm_record_head){.kind = SHM_MESSAGE, .count = 3}),
		     64);
	cr_expect_eq(shm_record_bytes((struct shm_record_head){.kind = SHM_MESSAGE, .count = 4}),
		     128);
	cr_expect_eq(shm_record_bytes((struct shm_record_head){.kind = SHM_RETURN, .count = 6}),
		     64);
	cr_expect_eq(shm_record_bytes((struct shm_record_head){.kind = SHM_RETURN, .count = 7}),
		     128);
}

Test(shm_ring, what_lay_behind_a_record_is_no_record)
{
	struct ends ends;
	uint8_t *ring;

	open_ends(&ends);
	ring = shm_ring_room(&ends.out, &ends.seen, SHM_LINE_BYTES);
	memset(ring + 8, 0xff, SHM_RING_BYTES - 8);
	for (uint64_t i = 0; ends.out.produced < 3 * SHM_RING_BYTES; i++) {
		cr_assert(put(&ends, 0, (uint32_t)(i % 7 * 64), i));
		cr_assert(take(&ends, 0, (uint32_t)(i % 7 * 64), i));
		cr_assert(shm_ring_is_empty(&ends.in), "behind record %llu", (unsigned long long)i);
		memset(ring + (ends.out.produced + SHM_LINE_BYTES) % SHM_RING_BYTES, 0xff,
		       SHM_LINE_BYTES);
	}
	close_ends(&ends);
}

/* The page behind a record, which can be written to after the first store there. */
static struct {
	void *page;
	const _Atomic uint64_t *head; /* of the record */
	uint64_t head_then;
	int stores;
} watched;

static void on_store(int number)
{
	(void)number;
	watched.stores++;
	watched.head_then = atomic_load(watched.head);
	(void)mprotect(watched.page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
}

/* A peer that sees the head first could take old bytes for the head of a record. */
Test(shm_ring, the_0_behind_a_record_is_stored_before_its_head)
{
	const uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	struct ends ends;
	uint8_t *ring;

	open_ends(&ends);
	ring = shm_ring_room(&ends.out, &ends.seen, page);
	cr_assert(write_record(&ends, 0, page - SHM_HEADER_AT, 7));
	memset(ring + page, 0xff, 8);
	watched.page = ring + page;
	watched.head = (const _Atomic uint64_t *)(const void *)ring;
	signal(SIGSEGV, on_store);
	cr_assert_eq(mprotect(watched.page, page, PROT_READ), 0);
	publish(&ends, 0, page - SHM_HEADER_AT);
	signal(SIGSEGV, SIG_DFL);
	cr_expect_eq(watched.stores, 1);
	cr_expect_eq(watched.head_then, 0);
	cr_expect_neq(atomic_load(watched.head), 0);
	cr_expect_eq(fragi_get64(ring + page), 0);
	close_ends(&ends);
}

/* But for a line, where the 0 behind the last record is: it would else be the head of the first. */
Test(shm_ring, a_full_ring_is_read_from_any_place)
{
	const uint32_t many = 944; /* 273 of 960 bytes, and 64 are left */
	const uint64_t count = SHM_RING_BYTES / bytes_of(0, many);
	struct ends ends;

	cr_assert_eq(bytes_of(0, many), 960);
	open_ends(&ends);
	for (int start = 0; start < 200;
	     start++) { /* each a line before that of the round before */
		for (uint64_t i = 0; i < count; i++)
			cr_assert(put(&ends, 0, many, i), "round %d", start);
		cr_assert_not(put(&ends, 0, 48, count), "round %d: the ring and no 0", start);
		for (uint64_t i = 0; i < count; i++)
			cr_assert(take(&ends, 0, many, i), "round %d: %llu of %llu", start,
				  (unsigned long long)i, (unsigned long long)count);
		cr_assert(shm_ring_is_empty(&ends.in));
		cr_assert_eq(ends.in.consumed, ends.out.produced);
	}
	close_ends(&ends);
}

static int read_with_head(struct shm_record_head head)
{
	struct shm_record record;
	struct ends ends;
	int r;

	open_ends(&ends);
	cr_assert_not_null(shm_ring_room(&ends.out, &ends.seen, SHM_LINE_BYTES));
	shm_ring_publish(&ends.out, head, SHM_LINE_BYTES);
	r = shm_ring_next(&ends.in, &record);
	close_ends(&ends);
	return r;
}

Test(shm_ring, a_head_that_no_host_writes_is_refused)
{
	const struct {
		struct shm_record_head head;
		int r;
	} rows[] = {
		{{0, 0, 0, 0}, 0},
		{{SHM_MESSAGE, 0, 0, 0}, 1},
		{{SHM_MESSAGE, FRAG_MESSAGE_TENSORS_MAX, FRAGI_HEADER_MAX, 0}, 1},
		{{SHM_MESSAGE, 0, 0, SHM_INLINE_MAX}, 1},
		{{SHM_MESSAGE, FRAG_MESSAGE_TENSORS_MAX + 1, 0, 0}, -EBADMSG},
		{{SHM_MESSAGE, 0, FRAGI_HEADER_MAX + 1, 0}, -EBADMSG},
		{{SHM_MESSAGE, 0, UINT16_MAX, 0}, -EBADMSG},
		{{SHM_MESSAGE, 0, 0, SHM_INLINE_MAX + 1}, -EBADMSG},
		{{SHM_MESSAGE, 0, 0, UINT32_MAX}, -EBADMSG},
		{{SHM_RETURN, 1, 0, 0}, 1},
		{{SHM_RETURN, SHM_RETURNS_MAX, 0, 0}, 1},
		{{SHM_RETURN, 0, 0, 0}, -EBADMSG},
		{{SHM_RETURN, SHM_RETURNS_MAX + 1, 0, 0}, -EBADMSG},
		{{0, 1, 0, 0}, -EBADMSG},
		{{0, 0, 0, 8}, -EBADMSG},
		{{SHM_RETURN + 1, 1, 0, 0}, -EBADMSG},
		{{UINT8_MAX, UINT8_MAX, UINT16_MAX, UINT32_MAX}, -EBADMSG},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(read_with_head(rows[i].head), rows[i].r, "row %zu", i);
}

/* Two threads. They share one mapping, as ThreadSanitizer compares addresses. */

static uint32_t header_of(uint64_t i)
{
	return (uint32_t)(i % 5 * 8);
}

static uint32_t body_of(uint64_t i)
{
	return (uint32_t)(i * 31 % 97 + 1);
}

static void *write_all(void *arg)
{
	struct ends *ends = arg;

	for (uint64_t i = 0; i < RECORDS; i++)
		while (!put(ends, header_of(i), body_of(i), i))
			sched_yield();
	return NULL;
}

/* Where both ends wait for each other it ends: a busy machine needs some seconds for all. */
static void wait_for_record(struct ends *ends, uint64_t i, int64_t until_ns)
{
	uint32_t looks = 0;

	while (!take(ends, header_of(i), body_of(i), i)) {
		if (++looks % 1024 != 0)
			continue;
		cr_assert_lt(fragi_now_ns(), until_ns, "record %llu does not come",
			     (unsigned long long)i);
		sched_yield();
	}
}

Test(shm_ring, a_peer_reads_while_a_host_writes, .timeout = 120)
{
	struct ends all, *ends = &all;
	const uint8_t *in, *seen;
	pthread_t writer;

	open_ends(ends);
	in = ends->in.memory;
	seen = ends->seen.memory;
	ends->in.memory = ends->out.memory;
	ends->seen.memory = ends->back.memory;
	cr_assert_eq(pthread_create(&writer, NULL, write_all, ends), 0);
	for (uint64_t i = 0; i < RECORDS; i++)
		wait_for_record(ends, i, fragi_now_ns() + LONG_NS);
	pthread_join(writer, NULL);
	cr_expect(shm_ring_is_empty(&ends->in));
	ends->in.memory = in;
	ends->seen.memory = seen;
	close_ends(ends);
}
