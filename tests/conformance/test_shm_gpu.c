// SPDX-License-Identifier: Apache-2.0
/* Hosts that hand over memory of a GPU, over the driver of tests. */
#define _GNU_SOURCE
#include <errno.h>

#include "gpu.h"
#include "pair.h"
#include <base/stamp.h>
#include <data/allocator.h>
#include <data/memory.h>
#include <data/staging.h>
#include <res/resource.h>

#define BYTES ((int64_t)100000)
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})

static void set_up(void)
{
	set_environment();
	gpu_open();
}

TestSuite(shm_gpu, .init = set_up, .timeout = 100);

#define AREA_BYTES ((size_t)1 << 20)

/* Of the sender, which has taken it before it was connected, as pools do. */
static uint8_t *area;

static struct frag_resource *areas_of(struct pair *pair, int side)
{
	const struct fragi_transport *transport = pair_transport(pair, side, 0);

	return transport->ops->memory((struct fragi_transport *)(uintptr_t)transport, GPU);
}

/* As a pool does: what other hosts cannot map serves as well. */
static struct frag_resource *area_from;

static void take_area(struct pair *pair, int side)
{
	if (side != 0)
		return;
	area_from = fragi_resource_ref(areas_of(pair, 0));
	if (fragi_alloc_on(area_from, GPU, AREA_BYTES, (void **)&area) < 0) {
		fragi_resource_unref(area_from);
		area_from = NULL;
		cr_assert_eq(fragi_alloc_on(NULL, GPU, AREA_BYTES, (void **)&area), 0);
	}
	gpu_fill(area, AREA_BYTES, 'z');
}

static void open_pair(struct pair *pair, const struct kind *kind)
{
	*pair = (struct pair){.capacity = 4, .opened = take_area, .dead_ns = NO_BEAT_NS};
	pair_open(pair, kind);
}

static void close_hosts(struct pair *pair)
{
	pair_close(pair);
	fragi_free_on(area_from, GPU, area);
	fragi_resource_unref(area_from);
}

/* What was staged is kept for the next time, and freed by a stream of the driver's. */
static void close_pair(struct pair *pair)
{
	close_hosts(pair);
	fragi_staging_trim();
	for (int i = 0; i < 10000 && fake.used() > 0; i++)
		usleep(1000);
	cr_expect_eq(fake.used(), 0, "memory of the GPU is left");
}

/* With such a pair of one kind. */
#define SENT_TEST(suite, name, kind)                                                               \
	static void name##_by(struct pair *pair);                                                  \
	Test(suite, name)                                                                          \
	{                                                                                          \
		struct pair pair;                                                                  \
		open_pair(&pair, kind);                                                            \
		name##_by(&pair);                                                                  \
		close_pair(&pair);                                                                 \
	}                                                                                          \
	static void name##_by(struct pair *pair)

static int released;

static void on_release(void *context)
{
	released++;
}

static void send_dl(struct pair *pair, const struct frag_dltensor *dl)
{
	struct frag_message *message = frag_message_create();
	struct frag_tensor *tensor;

	cr_assert_eq(frag_tensor_wrap(dl, on_release, NULL, &tensor), 0);
	cr_assert_eq(frag_message_add_tensor(message, "", tensor), 0);
	fragi_message_share(message);
	cr_assert_eq(pair->tx->ops->send(pair->tx, message, fragi_stamp()), 0);
}

static bool has_arrived(struct pair *pair)
{
	return fragi_rx_available(pair->rx) > 0;
}

/* What has arrived, when the GPU has it. */
static struct frag_message *take(struct pair *pair)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_message *taken;

	cr_assert(pair_until(pair, has_arrived));
	taken = fragi_rx_take(pair->rx, fragi_stamp());
	cr_assert_not_null(taken);
	cr_assert_eq(fragi_tensor_wait(frag_message_tensor(taken, NULL), &err), 0, "%s", err.text);
	return taken;
}

/* Sends so many bytes at an address, and returns what the receiver took. */
static struct frag_message *pass(struct pair *pair, void *memory, int64_t bytes)
{
	const struct frag_dltensor dl = {
		.data = memory, .device = GPU, .ndim = 1, .dtype = U8, .shape = &bytes};

	send_dl(pair, &dl);
	return take(pair);
}

static const struct frag_dltensor *dl_of(const struct frag_message *message)
{
	return frag_tensor_dl(frag_message_tensor(message, NULL));
}

static void expect_way(const struct pair *pair, uint64_t mapped, uint64_t staged)
{
	cr_expect_eq(atomic_load(&pair->tx_row->gpu_mapped), mapped);
	cr_expect_eq(atomic_load(&pair->tx_row->gpu_staged), staged);
}

SENT_TEST(shm_gpu, memory_of_a_gpu_is_not_copied, &kind_shm)
{
	struct frag_message *message;
	int copies;

	copies = fake.calls("cuMemcpyAsync");
	message = pass(pair, area + 4096, BYTES);
	cr_expect_eq(dl_of(message)->device.type, FRAG_DEVICE_CUDA);
	cr_expect(gpu_holds(frag_tensor_data(frag_message_tensor(message, NULL)), BYTES, 'z'));
	cr_expect_eq(fake.calls("cuMemcpyAsync"), copies);
	gpu_fill(area + 4096, BYTES, 'y');
	cr_expect(gpu_holds(dl_of(message)->data, BYTES, 'y'), "it is the sender's memory");
	frag_message_unref(message);
	expect_way(pair, 1, 0);
	cr_expect_eq(atomic_load(&pair->tx_row->copied_out), 0);
	cr_expect_eq(atomic_load(&pair->rx_row->copied_in), 0);
}

SENT_TEST(shm_gpu, memory_is_mapped_once_whatever_is_sent, &kind_shm)
{
	struct frag_message *message;
	int mapped;

	mapped = fake.calls("cuMemMap");
	for (int64_t bytes = 1; bytes <= (int64_t)AREA_BYTES; bytes *= 4) {
		message = pass(pair, area + AREA_BYTES - bytes, bytes);
		cr_expect(gpu_holds(dl_of(message)->data, (size_t)bytes, 'z'));
		frag_message_unref(message);
	}
	cr_expect_eq(fake.calls("cuMemMap"), mapped);
	expect_way(pair, 11, 0);
}

Test(shm_gpu, a_receiver_cannot_write_to_what_it_got)
{
	const struct fragi_memory *gpu = fragi_memory_of(GPU);
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_message *message;
	struct pair pair;

	left_own.descriptors = left_own.shared_maps = 2; /* of a GPU that has failed */
	open_pair(&pair, &kind_shm);
	message = pass(&pair, area, BYTES);
	cr_assert_eq(gpu->copy(GPU, dl_of(message)->data, "overwritten", 11, &err), 0);
	cr_expect_eq(gpu->wait(GPU, &err), -EIO);
	cr_expect_not_null(strstr(err.text, "CUDA_ERROR_ILLEGAL_ADDRESS"), "%s", err.text);
	cr_expect(gpu_holds(area, BYTES, 'z'));
	frag_message_unref(message);
	close_hosts(&pair);
}

SENT_TEST(shm_gpu, the_sender_has_its_memory_back_when_the_receiver_lets_go, &kind_shm)
{
	struct frag_message *message;

	message = pass(pair, area, BYTES);
	pair_settle(pair);
	cr_expect_eq(released, 0);
	frag_message_unref(message);
	pair_settle(pair);
	cr_expect_eq(released, 1);
}

Test(shm_gpu, a_message_stays_whole_when_its_sender_is_gone)
{
	struct frag_message *message;
	struct pair pair;

	open_pair(&pair, &kind_shm);
	message = pass(&pair, area, BYTES);
	close_hosts(&pair);
	cr_expect_gt(fake.used(), 0);
	cr_expect(gpu_holds(dl_of(message)->data, BYTES, 'z'));
	frag_message_unref(message);
	cr_expect_eq(fake.used(), 0, "the last message takes the memory along");
}

/* Work of the GPU that is not done when a message is emitted. */

static struct fragi_stream *stream;

static void open_stream(void)
{
	cr_assert_eq(fragi_memory_of(GPU)->streams->open(GPU, NULL, &stream, NULL), 0);
}

static void close_stream(void)
{
	(void)fragi_memory_of(GPU)->streams->finish(stream, NULL);
	fragi_memory_of(GPU)->streams->close(stream);
}

/* Sends memory that a kernel fills with a byte; it may not have begun. */
static void send_late(struct pair *pair, uint8_t *memory, uint8_t value)
{
	int64_t bytes = BYTES;
	const struct frag_dltensor dl = {
		.data = memory, .device = GPU, .ndim = 1, .dtype = U8, .shape = &bytes};
	struct frag_message *message = frag_message_create();
	struct frag_tensor *tensor;
	struct fragi_work *work;

	cr_assert_eq(fake.write(stream->handle, (uintptr_t)memory, value, BYTES), 0);
	cr_assert_eq(fragi_memory_of(GPU)->streams->record(stream, &work, NULL), 0);
	cr_assert_eq(frag_tensor_wrap(&dl, on_release, NULL, &tensor), 0);
	fragi_tensor_set_written(tensor, work);
	cr_assert_eq(frag_message_add_tensor(message, "", tensor), 0);
	message->at_receive |= FRAGI_AT_RECEIVE_WORK;
	fragi_message_share(message);
	cr_assert_eq(pair->tx->ops->send(pair->tx, message, fragi_stamp()), 0);
}

static bool have_arrived(struct pair *pair)
{
	return fragi_rx_available(pair->rx) == 3;
}

SENT_TEST(shm_gpu, a_message_leaves_when_the_gpu_has_written_it, &kind_shm)
{
	struct frag_message *message;

	open_stream();
	fake.hold(true);
	send_late(pair, area, 'n');
	pair_settle(pair);
	cr_expect_eq(fragi_rx_available(pair->rx), 0, "emit has not waited, and nothing came");
	fake.hold(false);
	cr_assert(pair_until(pair, has_arrived));
	message = take(pair);
	cr_expect(gpu_holds(dl_of(message)->data, BYTES, 'n'));
	frag_message_unref(message);
	expect_way(pair, 1, 0);
	close_stream();
}

SENT_TEST(shm_gpu, what_is_emitted_later_stays_behind, &kind_shm)
{
	static const char values[] = {'n', 'o', 'z'};
	struct frag_message *message;
	int64_t bytes = BYTES;
	struct frag_dltensor dl = {.device = GPU, .ndim = 1, .dtype = U8, .shape = &bytes};

	open_stream();
	fake.hold(true);
	send_late(pair, area, 'n');
	send_late(pair, area + BYTES, 'o');
	dl.data = area + 2 * BYTES;
	send_dl(pair, &dl);
	pair_settle(pair);
	cr_expect_eq(fragi_rx_available(pair->rx), 0);
	fake.hold(false);
	cr_assert(pair_until(pair, have_arrived));
	for (size_t i = 0; i < FRAG_COUNT_OF(values); i++) {
		message = take(pair);
		cr_expect(gpu_holds(dl_of(message)->data, BYTES, (uint8_t)values[i]), "%zu", i);
		frag_message_unref(message);
	}
	close_stream();
}

SENT_TEST(shm_gpu, a_close_comes_after_what_the_gpu_still_writes, &kind_shm)
{
	struct frag_message *message;

	open_stream();
	fake.hold(true);
	send_late(pair, area, 'n');
	pair->tx->ops->close(pair->tx);
	pair_settle(pair);
	cr_expect(!fragi_rx_is_finished(pair->rx));
	fake.hold(false);
	cr_assert(pair_until(pair, has_arrived));
	message = take(pair);
	cr_expect(gpu_holds(dl_of(message)->data, BYTES, 'n'));
	frag_message_unref(message);
	pair_settle(pair);
	cr_expect(fragi_rx_is_finished(pair->rx));
	close_stream();
}

/* The receiver ends first: the message is dropped, and its memory returned after the kernel. */
SENT_TEST(shm_gpu, memory_of_a_dropped_message_comes_back_after_its_kernel, &kind_shm)
{
	open_stream();
	fake.hold(true);
	send_late(pair, area, 'n');
	fragi_rx_close(pair->rx);
	pair_settle(pair);
	cr_expect_eq(atomic_load(&pair->tx_row->tx_dropped[FRAGI_DROP_RECEIVER_DONE]), 1);
	cr_expect_eq(released, 0);
	fake.hold(false);
	close_stream();
	cr_expect_eq(released, 1);
}

SENT_TEST(shm_gpu, a_gpu_that_fails_while_it_writes_ends_the_host, &kind_shm)
{
	open_stream();
	fake.hold(true);
	fake.fail("cuEventQuery", 1, 700);
	send_late(pair, area, 'n');
	pair_settle(pair);
	cr_expect_eq(atomic_load(&pair->faults[0]), 1);
	cr_expect_str_eq(
		pair->sentence[0],
		"one.tx: a message that it has emitted cannot be sent: the GPU that writes or copies it has failed: GPU 0 (Fake 0): cuEventQuery: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered");
	cr_expect_eq(fragi_rx_available(pair->rx), 0);
	fake.hold(false);
	close_stream();
}

/* What cannot be handed over is staged, and arrives on the GPU all the same. */

static void expect_staged(struct pair *pair, const struct frag_dltensor *dl, size_t bytes)
{
	struct frag_message *message;
	uint64_t before = atomic_load(&pair->tx_row->gpu_staged);

	send_dl(pair, dl);
	message = take(pair);
	cr_expect_eq(dl_of(message)->device.type, FRAG_DEVICE_CUDA);
	cr_expect(gpu_holds(dl_of(message)->data, bytes, 'z'));
	frag_message_unref(message);
	expect_way(pair, 0, before + 1);
}

static void expect_area_staged(struct pair *pair)
{
	int64_t bytes = BYTES;
	const struct frag_dltensor dl = {
		.data = area, .device = GPU, .ndim = 1, .dtype = U8, .shape = &bytes};

	expect_staged(pair, &dl, (size_t)bytes);
}

SENT_TEST(shm_gpu, memory_of_no_area_is_staged, &kind_shm)
{
	int64_t bytes = BYTES;
	struct frag_dltensor dl = {.device = GPU, .ndim = 1, .dtype = U8, .shape = &bytes};

	cr_assert_eq(fragi_alloc_on(NULL, GPU, (size_t)bytes, &dl.data), 0);
	gpu_fill(dl.data, (size_t)bytes, 'z');
	expect_staged(pair, &dl, (size_t)bytes);
	fragi_free_on(NULL, GPU, dl.data);
}

SENT_TEST(shm_gpu, an_area_that_is_made_later_is_staged, &kind_shm)
{
	int64_t bytes = BYTES;
	struct frag_dltensor dl = {.device = GPU, .ndim = 1, .dtype = U8, .shape = &bytes};

	cr_assert_eq(fragi_alloc_on(areas_of(pair, 0), GPU, (size_t)bytes, &dl.data), 0);
	gpu_fill(dl.data, (size_t)bytes, 'z');
	expect_staged(pair, &dl, (size_t)bytes);
	fragi_free_on(areas_of(pair, 0), GPU, dl.data);
}

SENT_TEST(shm_gpu, a_tensor_with_gaps_is_staged, &kind_shm)
{
	int64_t shape[] = {100, 10}, strides[] = {64, 1};

	expect_staged(pair,
		      &(struct frag_dltensor){.data = area,
					      .device = GPU,
					      .ndim = 2,
					      .dtype = U8,
					      .shape = shape,
					      .strides = strides},
		      1000);
}

SENT_TEST(shm_gpu, an_encrypted_flow_stages, &kind_encrypted_shm)
{
	expect_area_staged(pair);
}

Test(shm_gpu, a_receiver_that_cannot_map_gets_copies)
{
	struct pair pair;

	/* The first is the sender's own. */
	fake.fail("cuMemMap", 2, 1);
	open_pair(&pair, &kind_shm);
	expect_area_staged(&pair);
	close_pair(&pair);
}

Test(shm_gpu, a_driver_that_does_not_show_memory_stages)
{
	struct pair pair;

	fake.fail("cuMemExportToShareableHandle", 1, 801);
	open_pair(&pair, &kind_shm);
	expect_area_staged(&pair);
	close_pair(&pair);
}

/* Whatever the driver refuses while hosts meet, what is sent arrives, and nothing is left. */
Test(shm_gpu, a_call_that_fails_costs_a_copy_and_no_more)
{
	static const struct {
		const char *name;
		int calls; /* while one host makes an area, shows it, and the other maps it */
	} functions[] = {
		{"cuMemGetAllocationGranularity", 1},
		{"cuMemCreate", 1},
		{"cuMemAddressReserve", 2},
		{"cuMemMap", 2},
		{"cuMemSetAccess", 2},
		{"cuMemRetainAllocationHandle", 1},
		{"cuMemExportToShareableHandle", 1},
		{"cuMemImportFromShareableHandle", 1},
	};
	struct pair pair;

	for (size_t i = 0; i < FRAG_COUNT_OF(functions); i++)
		for (int n = 1; n <= functions[i].calls; n++) {
			fake.fail(functions[i].name, n, 304);
			open_pair(&pair, &kind_shm);
			expect_area_staged(&pair);
			close_pair(&pair);
		}
}

/* As many as there can be, and one more. */
SENT_TEST(shm_gpu, more_areas_than_there_can_be_are_refused, &kind_shm)
{
	struct frag_resource *areas;
	void *others[64];

	areas = areas_of(pair, 0);
	for (int i = 0; i < 64; i++)
		cr_assert_eq(fragi_alloc_on(areas, GPU, 1000, &others[i]), i < 63 ? 0 : -ENOTSUP);
	for (int i = 0; i < 63; i++)
		fragi_free_on(areas, GPU, others[i]);
}

/* Pools of the driver, in a host whose memory others map. */

#define POOL_BYTES ((int64_t)1 << 20)

static const char *pool_type;
static struct frag_resource *pool;

static void take_pool(struct pair *pair, int side)
{
	static const char *const names[] = {"device_memory_initial_size", "device_memory_max_size"};
	const int64_t values[] = {POOL_BYTES, 4 * POOL_BYTES};
	const struct fragi_built_in_resource *built_in = fragi_built_in_resource(pool_type);
	struct frag_err err = FRAG_ERR_INIT;

	if (side != 0)
		return;
	fragi_default_memory_set(areas_of(pair, 0));
	cr_assert_eq(fragi_resource_create(&built_in->type, built_in, "pool", &pool), 0);
	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
		for (uint32_t k = 0; k < built_in->type.param_count; k++)
			if (strcmp(built_in->type.params[k].name, names[i]) == 0)
				memcpy((char *)fragi_resource_state(pool) +
					       built_in->type.params[k].offset,
				       &values[i], sizeof(values[i]));
	cr_assert_eq(fragi_resource_set_up(pool, &err), 0, "%s", err.text);
	cr_assert_eq(built_in->type.initialize(fragi_resource_state(pool), pool, &err), 0, "%s",
		     err.text);
}

static void open_with_pool(struct pair *pair, const char *type)
{
	pool_type = type;
	*pair = (struct pair){.capacity = 4, .opened = take_pool};
	pair_open(pair, &kind_shm);
}

static void close_with_pool(struct pair *pair)
{
	pair_close(pair);
	fragi_resource_unref(pool);
	fragi_default_memory_set(NULL);
	fragi_staging_trim();
	for (int i = 0; i < 10000 && fake.used() > 0; i++)
		usleep(1000);
	cr_expect_eq(fake.used(), 0, "memory of the GPU is left");
}

static struct frag_tensor *of_pool(int64_t bytes, uint8_t value)
{
	struct frag_tensor *tensor;

	cr_assert_eq(frag_tensor_create_on(pool, GPU, U8, 1, &bytes, &tensor), 0);
	gpu_fill(frag_tensor_dl(tensor)->data, (size_t)bytes, value);
	return tensor;
}

/* Sends it, and returns what the receiver took, which holds `value`. */
static struct frag_message *pass_tensor(struct pair *pair, struct frag_tensor *tensor,
					uint8_t value)
{
	const size_t bytes = frag_tensor_size_bytes(tensor);
	struct frag_message *message = frag_message_create();

	cr_assert_eq(frag_message_add_tensor(message, "", tensor), 0);
	fragi_message_share(message);
	cr_assert_eq(pair->tx->ops->send(pair->tx, message, fragi_stamp()), 0);
	message = take(pair);
	cr_expect_eq(dl_of(message)->device.type, FRAG_DEVICE_CUDA);
	cr_expect(gpu_holds(dl_of(message)->data, bytes, value));
	return message;
}

static const char *const pool_types[] = {"rmm_allocator", "stream_ordered_allocator"};

Test(shm_gpu, what_a_pool_of_the_driver_has_at_first_is_mapped)
{
	struct frag_message *messages[4];
	struct pair pair;
	int allocations;

	for (size_t i = 0; i < FRAG_COUNT_OF(pool_types); i++) {
		open_with_pool(&pair, pool_types[i]);
		allocations = fake.calls("cuMemAllocFromPoolAsync");
		/* All of it, again and again: the receiver gives back what it has let go. */
		for (int round = 0; round < 3; round++) {
			for (int k = 0; k < 4; k++)
				messages[k] = pass_tensor(
					&pair, of_pool(POOL_BYTES / 4, (uint8_t)('a' + k)),
					(uint8_t)('a' + k));
			for (int k = 0; k < 4; k++)
				frag_message_unref(messages[(k + round) % 4]);
			pair_settle(&pair);
		}
		frag_message_unref(pass_tensor(&pair, of_pool(POOL_BYTES, 'x'), 'x'));
		pair_settle(&pair);
		expect_way(&pair, 13, 0);
		cr_expect_eq(atomic_load(&pair.tx_row->copied_out), 0);
		cr_expect_eq(fake.calls("cuMemAllocFromPoolAsync"), allocations);
		close_with_pool(&pair);
	}
}

/* What was staged is given back when the driver has reported its copy. */
static bool has_all(struct pair *pair)
{
	struct frag_tensor *tensor;
	int r = frag_tensor_create_on(pool, GPU, U8, 1, (const int64_t[]){4 * POOL_BYTES}, &tensor);

	if (r == 0)
		frag_tensor_unref(tensor);
	return r == 0;
}

Test(shm_gpu, what_it_takes_later_is_staged_up_to_its_maximum)
{
	struct frag_message *first;
	struct frag_tensor *tensors[3], *none;
	struct pair pair;

	for (size_t i = 0; i < FRAG_COUNT_OF(pool_types); i++) {
		open_with_pool(&pair, pool_types[i]);
		first = pass_tensor(&pair, of_pool(POOL_BYTES, 'a'), 'a');
		frag_message_unref(pass_tensor(&pair, of_pool(POOL_BYTES, 'b'), 'b'));
		expect_way(&pair, 1, 1);
		frag_message_unref(first);
		cr_assert(pair_until(&pair, has_all));
		/* In all, it gives no more than its maximum, wherever that lies. */
		tensors[0] = of_pool(POOL_BYTES, 'c');
		tensors[1] = of_pool(2 * POOL_BYTES, 'd');
		tensors[2] = of_pool(POOL_BYTES, 'e');
		cr_expect_eq(frag_tensor_create_on(pool, GPU, U8, 0, NULL, &none), -ENOMEM);
		frag_tensor_unref(tensors[0]);
		frag_message_unref(pass_tensor(&pair, of_pool(POOL_BYTES, 'f'), 'f'));
		expect_way(&pair, 2, 1);
		frag_tensor_unref(tensors[1]);
		frag_tensor_unref(tensors[2]);
		close_with_pool(&pair);
	}
}

/* One tensor may be larger than what the pool has at first. */
Test(shm_gpu, a_pool_that_cannot_be_shared_stages)
{
	struct pair pair;

	fake.fail("cuMemCreate", 1, 801);
	open_with_pool(&pair, "rmm_allocator");
	frag_message_unref(pass_tensor(&pair, of_pool(POOL_BYTES / 2, 'a'), 'a'));
	frag_message_unref(pass_tensor(&pair, of_pool(3 * POOL_BYTES, 'b'), 'b'));
	expect_way(&pair, 0, 2);
	close_with_pool(&pair);
}

Test(shm_gpu, a_tensor_of_a_pool_outlives_its_sender)
{
	struct frag_message *message;
	struct pair pair;

	open_with_pool(&pair, "rmm_allocator");
	message = pass_tensor(&pair, of_pool(BYTES, 'a'), 'a');
	pair_close(&pair);
	fragi_resource_unref(pool);
	fragi_default_memory_set(NULL);
	cr_expect(gpu_holds(dl_of(message)->data, BYTES, 'a'));
	cr_expect_gt(fake.used(), 0);
	frag_message_unref(message);
	for (int i = 0; i < 10000 && fake.used() > 0; i++)
		usleep(1000);
	cr_expect_eq(fake.used(), 0, "the last message takes the memory along");
}

SENT_TEST(shm_gpu, a_host_that_follows_another_maps_its_areas, &kind_shm)
{
	struct frag_message *message;

	frag_message_unref(pass(pair, area, BYTES));
	pair_replace(pair, 1);
	message = pass(pair, area, BYTES);
	cr_expect(gpu_holds(dl_of(message)->data, BYTES, 'z'));
	frag_message_unref(message);
	expect_way(pair, 2, 0);
}
