// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <edge/ledger.h>

#define LEDGER_ROWS_MAX (1u << 20)
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define OFFSET(name, shown, what) offsetof(struct fragi_flow_row, name),
static const size_t offsets[FRAGI_COUNTERS] = {FRAGI_SENDER_LIST(OFFSET)
						       FRAGI_RECEIVER_LIST(OFFSET)};

static uint64_t load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_acquire);
}

void fragi_flow_row_read(const struct fragi_flow_row *row, struct fragi_hist_buckets latency,
			 struct fragi_flow_stats *out)
{
	for (int i = 0; i < FRAGI_DROP_REASONS; i++) {
		out->rx_dropped[i] = load(&row->rx_dropped[i]);
		out->tx_dropped[i] = load(&row->tx_dropped[i]);
	}
	for (int i = FRAGI_COUNTERS; i-- > 0;)
		out->counters[i] = load((const _Atomic uint64_t *)((const char *)row + offsets[i]));
	fragi_hist_read(&row->latency, latency, &out->latency);
}

static uint64_t align64(uint64_t n)
{
	return (n + 63) & ~(uint64_t)63;
}

static uint64_t bucket_bytes(uint32_t count)
{
	return (count + FRAGI_HIST_GROUP - 1) / FRAGI_HIST_GROUP * sizeof(struct fragi_hist_group);
}

static void layout(uint32_t op_count, uint32_t flow_count, struct fragi_ledger_head *out)
{
	memset(out, 0, sizeof(*out));
	out->magic = FRAGI_LEDGER_MAGIC;
	out->op_count = op_count;
	out->flow_count = flow_count;
	out->op_row_bytes = sizeof(struct fragi_op_row);
	out->flow_row_bytes = sizeof(struct fragi_flow_row);
	out->op_offset = align64(sizeof(*out));
	out->flow_offset = align64(out->op_offset + (uint64_t)op_count * out->op_row_bytes);
	out->op_bucket_offset =
		align64(out->flow_offset + (uint64_t)flow_count * out->flow_row_bytes);
	out->flow_bucket_offset = out->op_bucket_offset + bucket_bytes(op_count);
	out->size_bytes = out->flow_bucket_offset + bucket_bytes(flow_count);
}

static uint64_t bytes_with_ring(const struct fragi_ledger_head *head)
{
	return head->size_bytes + sizeof(struct fragi_trace_ring);
}

static void attach(struct fragi_ledger *ledger, void *memory, const struct fragi_ledger_head *head,
		   bool has_ring)
{
	assert((uintptr_t)memory % 64 == 0 && head->op_offset % 64 == 0 &&
	       head->flow_offset % 64 == 0 && "no two rows share a line of the cache");
	ledger->head = memory;
	ledger->op_count = head->op_count;
	ledger->flow_count = head->flow_count;
	ledger->mapped_bytes = (size_t)(has_ring ? bytes_with_ring(head) : head->size_bytes);
	ledger->ops = (struct fragi_op_row *)((char *)memory + head->op_offset);
	ledger->flows = (struct fragi_flow_row *)((char *)memory + head->flow_offset);
	ledger->op_buckets = (struct fragi_hist_group *)((char *)memory + head->op_bucket_offset);
	ledger->flow_buckets =
		(struct fragi_hist_group *)((char *)memory + head->flow_bucket_offset);
	ledger->ring =
		has_ring ? (struct fragi_trace_ring *)((char *)memory + head->size_bytes) : NULL;
}

int fragi_ledger_create(struct fragi_ledger *ledger, int fd, uint32_t op_count, uint32_t flow_count)
{
	struct fragi_ledger_head head;
	size_t bytes;
	void *memory;

	if (op_count > LEDGER_ROWS_MAX || flow_count > LEDGER_ROWS_MAX)
		return -E2BIG;
	layout(op_count, flow_count, &head);
	bytes = (size_t)bytes_with_ring(&head);
	if (fd >= 0) {
		/* What somebody has written into it before does not stay. */
		if (ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)bytes) < 0)
			return -errno;
		/* Nobody can cut it short under the reader. Only a sealable memfd knows seals. */
		(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	} else {
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	if (memory == MAP_FAILED)
		return -errno;
	/* Empty octaves of histograms lie between others: in a huge page they would take memory. */
	(void)madvise(memory, bytes, MADV_NOHUGEPAGE);
	/* The magic comes last: without it a reader waits for the rest. */
	memcpy((char *)memory + sizeof(head.magic), (const char *)&head + sizeof(head.magic),
	       sizeof(head) - sizeof(head.magic));
	atomic_thread_fence(memory_order_release);
	memcpy(memory, &head.magic, sizeof(head.magic));
	attach(ledger, memory, &head, true);
	for (uint32_t i = 0; i < op_count; i++)
		ledger->ops[i].compute.bucket = fragi_hist_in_group(ledger->op_buckets, i);
	for (uint32_t i = 0; i < flow_count; i++)
		ledger->flows[i].latency.bucket = fragi_hist_in_group(ledger->flow_buckets, i);
	return 0;
}

int fragi_ledger_seal(int fd)
{
	int seals;

	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0 && errno == EINVAL)
		(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
	seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & F_SEAL_SHRINK) == 0 ? -EPERM : 0;
}

/*
 * The layout is a function of the counts: a head that says anything else is not one of this build.
 */
static bool head_is_sound(const struct fragi_ledger_head *head, uint64_t file_bytes)
{
	struct fragi_ledger_head expected;

	if (head->magic != FRAGI_LEDGER_MAGIC || head->op_count > LEDGER_ROWS_MAX ||
	    head->flow_count > LEDGER_ROWS_MAX)
		return false;
	layout(head->op_count, head->flow_count, &expected);
	return head->op_row_bytes == expected.op_row_bytes &&
	       head->flow_row_bytes == expected.flow_row_bytes &&
	       head->op_offset == expected.op_offset && head->flow_offset == expected.flow_offset &&
	       head->op_bucket_offset == expected.op_bucket_offset &&
	       head->flow_bucket_offset == expected.flow_bucket_offset &&
	       head->size_bytes == expected.size_bytes && file_bytes >= expected.size_bytes;
}

int fragi_ledger_open(struct fragi_ledger *ledger, int fd)
{
	struct fragi_ledger_head head;
	struct stat st;
	bool has_ring;
	ssize_t n;
	int seals;
	void *memory;

	seals = fcntl(fd, F_GET_SEALS);
	if (seals >= 0 && (seals & F_SEAL_SHRINK) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return -EBADMSG; /* it could be cut short while it is read */
	if (fstat(fd, &st) < 0)
		return -errno;
	n = pread(fd, &head, sizeof(head), 0);
	if (n < 0)
		return -errno;
	if (n == (ssize_t)sizeof(head) && head.magic == 0)
		return -ENOENT; /* its host is about to write it */
	if (n != (ssize_t)sizeof(head) || !head_is_sound(&head, (uint64_t)st.st_size))
		return -EBADMSG;
	has_ring = (uint64_t)st.st_size >= bytes_with_ring(&head);
	memory = mmap(NULL, (size_t)(has_ring ? bytes_with_ring(&head) : head.size_bytes),
		      PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	attach(ledger, memory, &head, has_ring);
	return 0;
}

void fragi_ledger_rest(const struct fragi_ledger *ledger)
{
	(void)madvise(ledger->head, ledger->mapped_bytes, MADV_DONTNEED);
}

void fragi_ledger_close(struct fragi_ledger *ledger)
{
	if (ledger->head != NULL)
		munmap(ledger->head, ledger->mapped_bytes);
	memset(ledger, 0, sizeof(*ledger));
}

void fragi_op_row_job(const struct fragi_op_row *row, uint64_t computed_ns, struct fragi_job *out)
{
	const uint64_t started = atomic_load_explicit(&row->started_ns, memory_order_acquire),
		       seen = atomic_load_explicit(&row->seen_ns, memory_order_acquire);
	uint64_t ended = atomic_load_explicit(&row->ended_ns, memory_order_acquire), lasted;

	out->count = atomic_load_explicit(&row->compute.count, memory_order_acquire);
	out->time_ns = computed_ns;
	if (ended == 0)
		ended = seen != 0 ? seen : (uint64_t)fragi_now_ns() + 1;
	lasted = started != 0 && ended > started ? ended - started : 0;
	/* The sum is only known by its buckets. */
	if (out->time_ns > lasted)
		out->time_ns = lasted;
	out->waiting_ns = lasted - out->time_ns;
}
