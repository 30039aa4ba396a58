// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define LOG_TOPIC "sched"
#include <base/alloc.h>
#include <base/log.h>
#include <base/stamp.h>
#include <sched/saved.h>

#define MAGIC 0x3164657661736766ull /* "fgsaved1" */
#define ALIGN 64u

/* The begin of the memory; the entries follow, then their places. */
struct head {
	_Atomic uint64_t magic; /* MAGIC once all below is written */
	uint64_t count;
	char unused[ALIGN - 2 * sizeof(uint64_t)];
};

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* The operators that save, one after the other; NULL behind the last. */
struct walk {
	struct frag_fragment *const *fragments;
	size_t fragment_count, fragment;
	uint32_t op;
};

static struct frag_op *next_op(struct walk *walk)
{
	for (; walk->fragment < walk->fragment_count; walk->fragment++, walk->op = 0) {
		const struct frag_fragment *fragment = walk->fragments[walk->fragment];

		while (walk->op < fragment->op_count) {
			struct frag_op *op = fragment->ops[walk->op++];

			if (op->type->save != NULL)
				return op;
		}
	}
	return NULL;
}

/* Bytes that the entries and places of these operators take, and their number. */
static uint64_t measure(const struct walk *all, uint64_t *out_count)
{
	struct walk walk = *all;
	uint64_t bytes = sizeof(struct head);
	struct frag_op *op;

	*out_count = 0;
	while ((op = next_op(&walk)) != NULL) {
		bytes += aligned(sizeof(struct fragi_saved_entry)) +
			 2 * aligned(op->type->save_size);
		++*out_count;
	}
	return bytes;
}

static struct fragi_saved_entry *entry_at(const struct fragi_saved_memory *memory, uint64_t i)
{
	char *entries = (char *)memory->memory + sizeof(struct head);

	return (struct fragi_saved_entry *)(void *)(entries +
						    i * aligned(sizeof(struct fragi_saved_entry)));
}

/* Whether the memory holds the entries of exactly these operators. */
static bool is_theirs(const struct fragi_saved_memory *memory, const struct walk *all,
		      uint64_t count)
{
	const struct head *head = memory->memory;
	uint64_t offset = sizeof(*head) + count * aligned(sizeof(struct fragi_saved_entry));
	struct walk walk = *all;

	if (atomic_load(&head->magic) != MAGIC || head->count != count)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		const struct frag_op *op = next_op(&walk);
		const struct fragi_saved_entry *entry = entry_at(memory, i);

		if (strncmp(entry->op, op->subject, sizeof(entry->op)) != 0 ||
		    entry->capacity != op->type->save_size || entry->offset != offset)
			return false;
		offset += 2 * aligned(entry->capacity);
	}
	return true;
}

static void lay_out(const struct fragi_saved_memory *memory, const struct walk *all, uint64_t count)
{
	struct head *head = memory->memory;
	uint64_t offset = sizeof(*head) + count * aligned(sizeof(struct fragi_saved_entry));
	struct walk walk = *all;

	atomic_store(&head->magic, 0);
	head->count = count;
	for (uint64_t i = 0; i < count; i++) {
		const struct frag_op *op = next_op(&walk);
		struct fragi_saved_entry *entry = entry_at(memory, i);

		*entry = (struct fragi_saved_entry){.capacity = op->type->save_size,
						    .offset = offset};
		memcpy(entry->op, op->subject, strlen(op->subject) + 1);
		offset += 2 * aligned(entry->capacity);
	}
	atomic_store(&head->magic, MAGIC);
}

static void give_to_operators(struct fragi_saved_memory *memory, const struct walk *all,
			      uint64_t count)
{
	struct walk walk = *all;

	for (uint64_t i = 0; i < count; i++) {
		struct frag_op *op = next_op(&walk);
		struct fragi_saved *saved = &memory->items[i];

		saved->entry = entry_at(memory, i);
		saved->places[0] = (char *)memory->memory + saved->entry->offset;
		saved->places[1] = saved->places[0] + aligned(op->type->save_size);
		op->saved = saved;
	}
}

int fragi_saved_open(struct fragi_saved_memory *memory, int fd,
		     struct frag_fragment *const *fragments, size_t fragment_count,
		     struct frag_err *err)
{
	const struct walk all = {.fragments = fragments, .fragment_count = fragment_count};
	uint64_t count, bytes = measure(&all, &count);
	struct stat file = {0};
	int r = 0;

	*memory = (struct fragi_saved_memory){0};
	if (bytes > FRAGI_SAVED_BYTES_MAX)
		return frag_err_set(
			err, -E2BIG,
			"the operators of this host save up to %llu MiB, more than %llu MiB; divide the fragments over more hosts (`host: NAME`)",
			(unsigned long long)(bytes >> 20), FRAGI_SAVED_BYTES_MAX >> 20);
	if (fd <= 0 || count == 0 || fstat(fd, &file) < 0 || (uint64_t)file.st_size < bytes)
		return 0;
	memory->items = fragi_calloc(count, sizeof(*memory->items));
	if (memory->items == NULL)
		return -ENOMEM;
	memory->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory->memory == MAP_FAILED) {
		r = -errno;
		memory->memory = NULL;
		fragi_saved_close(memory);
		return frag_err_set(err, r, "cannot map the memory for saved states: %s",
				    frag_strerror(r));
	}
	memory->bytes = bytes;
	if (!is_theirs(memory, &all, count))
		lay_out(memory, &all, count);
	give_to_operators(memory, &all, count);
	return 0;
}

void fragi_saved_settle(const struct fragi_saved_memory *memory,
			struct frag_fragment *const *fragments, size_t fragment_count)
{
	const struct walk all = {.fragments = fragments, .fragment_count = fragment_count};
	uint64_t count;

	(void)measure(&all, &count);
	if (memory->memory != NULL && !is_theirs(memory, &all, count))
		lay_out(memory, &all, count);
}

void fragi_saved_close(struct fragi_saved_memory *memory)
{
	if (memory->memory != NULL)
		munmap(memory->memory, memory->bytes);
	fragi_free(memory->items);
	*memory = (struct fragi_saved_memory){0};
}

/* The place that is not the newest. */
static uint64_t other_place(const struct fragi_saved *saved)
{
	return atomic_load_explicit(&saved->entry->newest, memory_order_relaxed) == 1 ? 1 : 0;
}

bool fragi_saved_has_state(const struct fragi_saved *saved)
{
	uint64_t newest = atomic_load_explicit(&saved->entry->newest, memory_order_acquire);

	return newest != 0 && newest <= 2 &&
	       saved->entry->size[newest - 1] <= saved->entry->capacity;
}

int fragi_saved_restore(struct frag_op *op)
{
	const struct fragi_saved *saved = op->saved;
	uint64_t place = atomic_load(&saved->entry->newest) - 1;

	return op->type->restore(op->state, op, saved->places[place], saved->entry->size[place]);
}

static bool is_due(const struct frag_op *op)
{
	int64_t now_ns;

	if (op->type->save_period_ns <= 0)
		return true;
	now_ns = fragi_now_ns();
	if (now_ns < op->saved->due_ns)
		return false;
	op->saved->due_ns = now_ns + op->type->save_period_ns;
	return true;
}

/* The state that was saved before stays. */
static void refuse(struct frag_op *op, int r)
{
	const char *why =
		fragi_op_own_error(op)[0] != '\0' ? fragi_op_own_error(op) : frag_strerror(r);

	if (!op->saved->has_failed && r > 0)
		log_warn(op->subject, "save returned %d, more bytes than its save_size of %zu", r,
			 op->type->save_size);
	else if (!op->saved->has_failed)
		log_warn(op->subject, "its state cannot be saved: %s", why);
	op->saved->has_failed = true;
	fragi_op_forget_failure(op);
}

void fragi_saved_save(struct frag_op *op)
{
	struct fragi_saved *saved = op->saved;
	uint64_t place = other_place(saved);
	int r;

	if (!is_due(op))
		return;
	r = op->type->save(op->state, op, saved->places[place], op->type->save_size);
	if (r < 0 || (size_t)r > op->type->save_size) {
		refuse(op, r);
		return;
	}
	saved->has_failed = false;
	saved->entry->size[place] = (uint64_t)r;
	atomic_store_explicit(&saved->entry->newest, place + 1, memory_order_release);
}
