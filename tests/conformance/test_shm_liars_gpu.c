// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE

#include "shm_liar.h"

/* Areas of device memory. */

#define AREA_BYTES ((uint64_t)1 << 20)
#define IN_AREA(number, offset) (((uint64_t)(number) + 1) << 48 | (offset))

/* Memory of the GPU, which the liar shows; its descriptor. */
static int area_create(struct area *out, void **out_memory)
{
	const struct fragi_shared_memory *shared = fragi_memory_of(GPU)->shared;
	struct frag_err err = FRAG_ERR_INIT;
	size_t bytes;
	int fd;

	cr_assert_eq(shared->alloc(GPU, AREA_BYTES, out_memory, &bytes, &err), 0, "%s", err.text);
	*out = (struct area){.bytes = AREA_BYTES};
	cr_assert_eq(shared->show(GPU, *out_memory, &fd, out->gpu, &err), 0, "%s", err.text);
	return fd;
}

static void area_destroy(void *memory, int fd)
{
	fragi_memory_of(GPU)->shared->free(GPU, memory, AREA_BYTES);
	close(fd);
}

static void set_up_gpu(void)
{
	set_environment();
	gpu_open();
}

Test(shm_liars, a_body_in_an_area_is_within_it, .init = set_up_gpu)
{
	static const struct {
		uint64_t offset, bytes;
		bool good;
	} places[] = {
		{IN_AREA(0, 0), AREA_BYTES, true},
		{IN_AREA(0, AREA_BYTES - 1), 1, true},
		{IN_AREA(0, AREA_BYTES - 1), 2, false},
		{IN_AREA(0, 1), AREA_BYTES, false},
		{IN_AREA(0, 0), 0, false},
		{IN_AREA(0, 8), UINT64_MAX - 4, false},
		{IN_AREA(0, (uint64_t)1 << 46), 1, false},
		{IN_AREA(1, 0), 1, false},
		{IN_AREA(63, 0), 1, false},
		{IN_AREA(64, 0), 1, false},
		{IN_AREA(65534, 0), 1, false},
	};
	struct area area;
	void *memory;

	for (size_t i = 0; i < FRAG_COUNT_OF(places); i++) {
		struct host host = {0};
		struct liar liar = {0};
		int fd;

		cr_assert_eq(host_create(&host), 0);
		liar_create(&liar);
		fd = area_create(&area, &memory);
		meet_with(&host, &liar, 1, &area, 1, fd);
		cr_assert_eq(host.failed, 0, "%s", host.cause);
		liar_shows(&liar, 5, places[i].offset, places[i].bytes);
		turns(&host);
		cr_expect_eq(host.arrived, places[i].good, "place %zu", i);
		cr_expect_eq(host.failed, !places[i].good, "place %zu", i);
		if (places[i].good)
			cr_expect_eq(host.kept[0].device.type, FRAG_DEVICE_CUDA);
		all_gone(&host, &liar);
		area_destroy(memory, fd);
		cr_expect_eq(fake.used(), 0);
	}
}

Test(shm_liars, an_area_that_cannot_be_is_refused, .init = set_up_gpu)
{
	struct area good, areas[2];
	void *memory;
	int fd = area_create(&good, &memory);
	unsigned int before;
	const struct area wrong[][2] = {
		{{.bytes = AREA_BYTES, .number = 64}},
		{{.bytes = AREA_BYTES, .number = UINT32_MAX}},
		{{.bytes = 0}},
		{{.bytes = ((uint64_t)1 << 46) + 1}},
		{good, good},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(wrong) + 1; i++) {
		struct host host = {0};
		struct liar liar = {0};
		bool too_many = i == FRAG_COUNT_OF(wrong);
		char byte;

		cr_assert_eq(host_create(&host), 0);
		liar_create(&liar);
		before = left_entries("/proc/self/fd");
		memcpy(areas, wrong[too_many ? 0 : i], sizeof(areas));
		meet_with(&host, &liar, too_many ? 65 : 2, areas, areas[1].bytes > 0 ? 2 : 1, fd);
		cr_expect_eq(recv(liar.socket, &byte, 1, MSG_DONTWAIT), 0, "%zu: is sent away", i);
		liar_shows(&liar, 5, 4096, 100);
		turns(&host);
		cr_expect_eq(host.arrived, 0, "%zu", i);
		/* the liar's socket, what the host made for its peer, and its end of that */
		cr_expect_leq(left_entries("/proc/self/fd"), before + 4, "%zu", i);
		all_gone(&host, &liar);
	}
	area_destroy(memory, fd);
}

/* Its messages come as long as they are somewhere else. */
static void expect_unmapped(const struct area *area, int fd)
{
	struct host host = {0};
	struct liar liar = {0};

	cr_assert_eq(host_create(&host), 0);
	liar_create(&liar);
	meet_with(&host, &liar, 1, area, 1, fd);
	liar_shows(&liar, 5, 4096, 100);
	turns(&host);
	cr_expect_eq(host.arrived, 1);
	liar_shows(&liar, 6, IN_AREA(0, 0), 100);
	turns(&host);
	cr_expect_eq(host.failed, 1);
	cr_expect_str_eq(host.cause, "it wrote to shared memory what no host writes");
	all_gone(&host, &liar);
}

Test(shm_liars, memory_that_is_none_of_a_gpu_is_not_mapped, .init = set_up_gpu)
{
	struct area area = {.bytes = AREA_BYTES, .gpu = "Fake 0"};
	int fd = memfd_create("fake", MFD_CLOEXEC);

	cr_assert_eq(ftruncate(fd, (off_t)AREA_BYTES), 0);
	expect_unmapped(&area, fd);
	close(fd);
	cr_expect_eq(fake.used(), 0);
}

Test(shm_liars, memory_of_a_gpu_that_is_not_used_here_is_not_mapped, .init = set_up_gpu)
{
	struct area area;
	void *memory;
	int fd = area_create(&area, &memory);

	area.gpu[5] = '1';
	expect_unmapped(&area, fd);
	area_destroy(memory, fd);
	cr_expect_eq(fake.used(), 0);
}

/* A host that never says which areas follow is not waited for: it is a guest as any other. */
Test(shm_liars, an_area_that_does_not_come_holds_nobody, .init = set_up_gpu)
{
	struct host host = {0};
	struct liar liar = {0};
	unsigned int before;

	cr_assert_eq(host_create(&host), 0);
	liar_create(&liar);
	before = left_entries("/proc/self/fd");
	meet_with(&host, &liar, 3, NULL, 0, -1);
	liar_shows(&liar, 5, 4096, 100);
	turns(&host);
	cr_expect_eq(host.arrived, 0);
	close(liar.socket);
	liar.socket = -1;
	turns(&host);
	cr_expect_leq(left_entries("/proc/self/fd"), before + 3);
	all_gone(&host, &liar);
}
