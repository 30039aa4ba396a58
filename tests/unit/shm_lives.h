/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_SHM_LIVES_H
#define TESTS_UNIT_SHM_LIVES_H

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "expected.h"

#include <modules/shm/module.h>

/*
 * The hosts of test_shm_lives.c, and how what the protocol hears of them and what the module holds
 * is written.
 */
#define HOSTS 3
#define SENDS 400
#define KEPT 12
#define BLOCKS 8
#define AREAS 3

extern const struct fragi_transport_ops fragi_transport_v1;

struct host {
	struct fragi_transport *transport; /* NULL: it has ended */
	struct fragi_endpoint *ends[HOSTS];
	char shown[HOSTS][120]; /* what was printed of each */
};

struct block {
	void *memory; /* NULL: there is none */
	uint64_t bytes;
	int host;
	uint32_t users;
};

struct sending {
	struct fragi_send *send;
	bool is_over, is_left; /* left: its memory stays until its host has ended */
	int host;
	struct block *blocks[4];
	uint32_t block_count;
};

static FILE *out;
static struct host hosts[HOSTS];
static struct block blocks[BLOCKS];
static struct sending sends[SENDS];
static struct {
	struct fragi_body body;
	char what;
} kept[KEPT];
static uint32_t kept_count;
static bool keeps;

static inline bool say(const char *format, ...) FRAG_PRINTF(1, 2);
static inline bool say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(out, format, args);
	fputc('\n', out);
	va_end(args);
	return true;
}

/* Memory of a GPU, as the driver of tests has it: every page is in a memfd. */

static struct {
	void *memory;
	int fd;
	size_t bytes;
} areas[AREAS];
static bool gpu_fails;

static inline int area_at(const void *memory)
{
	int i = 0;

	while (i < AREAS && areas[i].memory != memory)
		i++;
	return i;
}

static inline int gpu_alloc(struct frag_device device, size_t size, void **out_memory,
			    size_t *out_bytes, struct frag_err *err)
{
	const int i = area_at(NULL);

	(void)device;
	if (gpu_fails || i == AREAS)
		return frag_err_set(err, -ENOTSUP, "the GPU shares nothing more");
	areas[i].bytes = *out_bytes = (size + 4095) & ~(size_t)4095;
	areas[i].fd = memfd_create("gpu", MFD_CLOEXEC);
	cr_assert_eq(ftruncate(areas[i].fd, (off_t)areas[i].bytes), 0);
	areas[i].memory = *out_memory =
		mmap(NULL, areas[i].bytes, PROT_READ | PROT_WRITE, MAP_SHARED, areas[i].fd, 0);
	return 0;
}

static inline void gpu_free(struct frag_device device, void *memory, size_t bytes)
{
	const int i = area_at(memory);

	(void)device;
	say("  area of %zu is given back", bytes);
	cr_assert(i < AREAS && areas[i].bytes == bytes);
	munmap(memory, bytes);
	close(areas[i].fd);
	areas[i].memory = NULL;
}

static inline int gpu_show(struct frag_device device, void *memory, int *out_fd,
			   uint8_t out_gpu[FRAGI_GPU_NAME_BYTES], struct frag_err *err)
{
	const int i = area_at(memory);

	(void)device;
	if (gpu_fails)
		return frag_err_set(err, -EIO, "the GPU does not show it");
	memset(out_gpu, 'g', FRAGI_GPU_NAME_BYTES);
	*out_fd = dup(areas[i].fd);
	return 0;
}

static inline int gpu_map(int fd, const uint8_t gpu[FRAGI_GPU_NAME_BYTES], size_t bytes,
			  struct frag_device *out_device, void **out_memory, struct frag_err *err)
{
	cr_expect_eq(gpu[FRAGI_GPU_NAME_BYTES - 1], 'g');
	if (gpu_fails)
		return frag_err_set(err, bytes > 4096 ? -EIO : -ENODEV, "the GPU maps nothing");
	*out_memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	*out_device = (struct frag_device){FRAG_DEVICE_CUDA, 1};
	say("  area of %zu is mapped", bytes);
	return 0;
}

static inline void gpu_unmap(struct frag_device device, void *memory, size_t bytes)
{
	say("  area of %zu on GPU %d is unmapped", bytes, device.id);
	munmap(memory, bytes);
}

static const struct fragi_shared_memory gpu_shared = {gpu_alloc, gpu_free, gpu_show, gpu_map,
						      gpu_unmap};
static const struct fragi_memory gpu_memory = {.shared = &gpu_shared};

/* What the protocol hears. */

static inline int end_of(int host, const struct fragi_endpoint *end)
{
	int i = 0;

	while (i < HOSTS && hosts[host].ends[i] != end)
		i++;
	return i;
}

/* The letter of which all bytes are; '!': they differ. */
static inline char letter_of(const void *bytes, uint64_t count)
{
	const char *at = bytes;

	for (uint64_t i = 1; i < count; i++)
		if (at[i] != at[0])
			return '!';
	return at[0];
}

static inline enum fragi_arrival_use arrived(void *arg, const struct fragi_arrival *arrival)
{
	const int host = (int)((struct host *)arg - hosts);
	const bool is_kept = keeps && kept_count + arrival->mapped_count <= KEPT;

	fprintf(out, "  host %d hears from %d: header %zu %c, bodies of %" PRIu64 ":", host,
		end_of(host, arrival->from), arrival->header_bytes,
		letter_of(arrival->header, arrival->header_bytes), arrival->body_bytes);
	cr_expect_null(arrival->handle);
	if (arrival->data != NULL) {
		for (uint64_t i = 0; i < arrival->body_bytes; i++)
			if (i == 0 || ((const char *)arrival->data)[i - 1] !=
					      ((const char *)arrival->data)[i])
				fprintf(out, " %" PRIu64 "%c", i, ((const char *)arrival->data)[i]);
		fprintf(out, " beside it");
	}
	for (uint32_t i = 0; i < arrival->mapped_count; i++) {
		const struct fragi_body *body = &arrival->mapped[i];

		fprintf(out, " %" PRIu64 " %c%s", body->bytes, letter_of(body->data, body->bytes),
			body->device.type == FRAG_DEVICE_CUDA ? " on a GPU" : "");
		if (!is_kept)
			continue;
		kept[kept_count].what = letter_of(body->data, body->bytes);
		kept[kept_count++].body = *body;
	}
	fprintf(out, "%s\n", is_kept && arrival->mapped_count > 0 ? ", kept" : "");
	return is_kept && arrival->mapped_count > 0 ? FRAGI_ARRIVAL_KEPT : FRAGI_ARRIVAL_USED;
}

static inline void let_go(struct sending *sending)
{
	for (uint32_t i = 0; i < sending->block_count; i++)
		sending->blocks[i]->users--;
	sending->block_count = 0;
}

static inline void sent(struct fragi_send *send, bool abandoned)
{
	struct sending *sending = sends;

	while (sending->send != send)
		cr_assert(++sending < sends + SENDS);
	cr_assert(!sending->is_over, "it ends twice");
	say("  send %d is over%s", (int)(sending - sends), abandoned ? ", given up" : "");
	sending->is_over = true;
	sending->is_left = abandoned;
	let_go(sending);
}

static inline void received(struct fragi_receive *receive, const char *cause, uint64_t bytes)
{
	(void)receive, (void)cause, (void)bytes;
	cr_assert_fail("nothing is received");
}

static inline void failed(void *owner, const char *cause)
{
	const int number = (int)(intptr_t)owner - 1;

	say("  host %d has lost host %d: %s", number / HOSTS, number % HOSTS, cause);
}

static inline void fault(void *arg, enum fragi_failure failure, const char *sentence)
{
	say("  fault of host %d, %d: %s", (int)((struct host *)arg - hosts), failure, sentence);
}

/* What the module holds: its state, slots, and what is not in the ring yet; the ring's places. */
static inline void show(int host)
{
	for (int k = 0; k < HOSTS; k++) {
		const struct shm_endpoint *end =
			(const struct shm_endpoint *)(const void *)hosts[host].ends[k];
		uint32_t waiting = 0, unsent = 0, spare = 0;
		char text[120] = "";

		if (end != NULL) {
			for (const struct shm_send *s = end->waiting; s != NULL; s = s->next)
				waiting++;
			for (const struct shm_taken *t = end->unsent; t != NULL; t = t->next)
				unsent++;
			for (const struct shm_taken *t = end->spare; t != NULL; t = t->next)
				spare++;
			snprintf(text, sizeof(text),
				 "%s%s, %u of %u slots, %u wait, %u unsent, %u spare, out %" PRIu64
				 " of %" PRIu64 ", in %" PRIu64 "%s%s",
				 (const char *[]){"connecting", "open", "closed"}[end->state],
				 end->failed ? " failed" : "", end->slots_in_use, end->slot_count,
				 waiting, unsent, spare, end->out.consumed, end->out.produced,
				 end->in.consumed, end->view != NULL ? ", viewed" : "",
				 end->view != NULL && end->view->areas != NULL ? ", areas" : "");
		}
		if (strcmp(text, hosts[host].shown[k]) != 0)
			say("  %d to %d: %s", host, k, text);
		memcpy(hosts[host].shown[k], text, sizeof(text));
	}
}

/* Lines that follow one another as they are become one. Returns text. */
static inline char *shorten(char *text)
{
	char *copy = strdup(text), *to = text;
	const char *next;

	for (const char *line = copy; *line != '\0'; line = next) {
		uint32_t count = 1;
		size_t length;

		next = expected_next_line(line);
		length = (size_t)(next - line);
		for (; strncmp(line, next, length) == 0; next += length)
			count++;
		memcpy(to, line, length);
		to += length;
		if (count > 2) /* the copy has had as much room */
			to += sprintf(to, "  %u times\n", count);
		else if (count == 2)
			to = (char *)memcpy(to, line, length) + length;
	}
	*to = '\0';
	free(copy);
	return text;
}

#endif
