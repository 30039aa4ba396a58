// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of a GPU that goes to another host through memory of the host, over the driver of tests:
 * copies are late, and nobody waits for them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "gpu.h"
#include "pair.h"
#include <base/stamp.h>
#include <data/allocator.h>
#include <data/memory.h>
#include <data/staging.h>
#include <edge/remote/state.h>

#define BYTES ((int64_t)100000)
#define COUNT 3
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})

static const struct kind *const kinds[] = {&kind_ucx, &kind_encrypted_ucx, &kind_socket, &kind_shm};

static void set_up(void)
{
	set_environment();
	setenv("FAKE_CUDA_DEVICES", "2", 1);
	gpu_open();
}

TestSuite(staged_gpu, .init = set_up, .timeout = 100);

static uint8_t *memory; /* of the sender: in no area, so that no host maps it */
static int released;

/* As a host does that shares memory with others. */
static void share_memory(struct pair *pair, int side)
{
	struct fragi_transport *transport =
		(struct fragi_transport *)(uintptr_t)pair_transport(pair, side, 0);

	if (side == 0 && transport->ops->memory != NULL)
		fragi_default_memory_set(transport->ops->memory(transport, GPU));
}

static void open_pair_with(struct pair *pair, const struct kind *kind, int64_t dead_ns)
{
	*pair = (struct pair){.capacity = 4, .opened = share_memory, .dead_ns = dead_ns};
	pair_open(pair, kind);
	released = 0;
	cr_assert_eq(fragi_alloc_on(NULL, GPU, COUNT * (size_t)BYTES, (void **)&memory), 0);
	gpu_fill(memory, COUNT * (size_t)BYTES, 'z');
}

static void open_pair(struct pair *pair, const struct kind *kind)
{
	open_pair_with(pair, kind, NO_BEAT_NS);
}

static void close_pair(struct pair *pair)
{
	pair_close(pair);
	fragi_free_on(NULL, GPU, memory);
	fragi_default_memory_set(NULL);
	fragi_staging_trim();
	for (int i = 0; i < 10000 && fake.used() > 0; i++)
		usleep(1000);
	cr_expect_eq(fake.used(), 0, "memory is left over %s", pair->kind->name);
}

static void on_release(void *context)
{
	released++;
}

/* The n-th piece of the memory. work: what writes it, taken; NULL: it is written. */
static int send(struct pair *pair, int n, struct fragi_work *work)
{
	int64_t bytes = BYTES;
	const struct frag_dltensor dl = {
		.data = memory + n * BYTES, .device = GPU, .ndim = 1, .dtype = U8, .shape = &bytes};
	struct frag_message *message = frag_message_create();
	struct frag_tensor *tensor;

	cr_assert_eq(frag_tensor_wrap(&dl, on_release, NULL, &tensor), 0);
	if (work != NULL) {
		fragi_tensor_set_written(tensor, work);
		message->at_receive |= FRAGI_AT_RECEIVE_WORK;
	}
	cr_assert_eq(frag_message_add_tensor(message, "", tensor), 0);
	fragi_message_share(message);
	return pair->tx->ops->send(pair->tx, message, fragi_stamp());
}

static bool has_arrived(struct pair *pair)
{
	return fragi_rx_available(pair->rx) > 0;
}

static void expect_next(struct pair *pair, uint8_t value)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_message *taken;
	struct frag_tensor *tensor;

	cr_assert(pair_until(pair, has_arrived), "nothing came over %s", pair->kind->name);
	taken = fragi_rx_take(pair->rx, fragi_stamp());
	tensor = frag_message_tensor(taken, NULL);
	cr_expect_eq(frag_tensor_dl(tensor)->device.type, FRAG_DEVICE_CUDA);
	cr_expect((taken->at_receive & FRAGI_AT_RECEIVE_WORK) != 0, "receivers are told to wait");
	cr_assert_eq(fragi_tensor_wait(tensor, &err), 0, "%s", err.text);
	cr_expect(gpu_holds(frag_tensor_data(tensor), BYTES, value), "%s", pair->kind->name);
	frag_message_unref(taken);
}

Test(staged_gpu, an_emit_waits_for_no_copy_and_messages_keep_their_order)
{
	struct pair pair;

	for (size_t k = 0; k < FRAG_COUNT_OF(kinds); k++) {
		open_pair(&pair, kinds[k]);
		for (int n = 0; n < COUNT; n++)
			gpu_fill(memory + n * BYTES, BYTES, (uint8_t)('a' + n));
		fake.hold(true);
		for (int n = 0; n < COUNT; n++)
			cr_assert_eq(send(&pair, n, NULL), 0);
		pair_settle(&pair);
		cr_expect_eq(fragi_rx_available(pair.rx), 0);
		cr_expect_eq(released, 0, "the GPU still reads it");
		fake.hold(false);
		for (int n = 0; n < COUNT; n++)
			expect_next(&pair, (uint8_t)('a' + n));
		cr_expect_eq(atomic_load(&pair.tx_row->gpu_staged), COUNT);
		close_pair(&pair);
		cr_expect_eq(released, COUNT);
	}
}

/* A flow has a stream for each GPU that its tensors are on. */
Test(staged_gpu, tensors_on_two_gpus_are_copied_without_waiting)
{
	const struct frag_device devices[] = {GPU, {FRAG_DEVICE_CUDA, 1}};
	const struct fragi_cuda_ops *ops;
	struct frag_message *message, *taken;
	struct frag_tensor *tensors[2];
	struct pair pair;
	int64_t bytes = BYTES;
	int streams;

	cr_assert_eq(fragi_cuda_use(devices[1], &ops, NULL), 0);
	for (size_t k = 0; k < FRAG_COUNT_OF(kinds); k++) {
		open_pair(&pair, kinds[k]);
		streams = fake.calls("cuStreamCreateWithPriority");
		fake.hold(true);
		for (int n = 0; n < COUNT; n++) {
			message = frag_message_create();
			for (int i = 0; i < 2; i++) {
				cr_assert_eq(frag_tensor_create_on(NULL, devices[i], U8, 1, &bytes,
								   &tensors[i]),
					     0);
				gpu_fill(frag_tensor_dl(tensors[i])->data, BYTES,
					 (uint8_t)('a' + 2 * n + i));
				cr_assert_eq(frag_message_add_tensor(message, i == 0 ? "x" : "y",
								     tensors[i]),
					     0);
			}
			fragi_message_share(message);
			cr_assert_eq(pair.tx->ops->send(pair.tx, message, fragi_stamp()), 0);
		}
		pair_settle(&pair);
		cr_expect_eq(fragi_rx_available(pair.rx), 0, "the GPUs have not begun");
		/* Each has one more, on which ends of work are reported. */
		cr_expect_eq(fake.calls("cuStreamCreateWithPriority"), streams + 4);
		fake.hold(false);
		for (int n = 0; n < COUNT; n++) {
			cr_assert(pair_until(&pair, has_arrived));
			taken = fragi_rx_take(pair.rx, fragi_stamp());
			cr_assert_eq(fragi_message_wait(taken, NULL), 0);
			for (int i = 0; i < 2; i++)
				cr_expect(gpu_holds(frag_tensor_data(frag_message_tensor(
							    taken, i == 0 ? "x" : "y")),
						    BYTES, (uint8_t)('a' + 2 * n + i)));
			frag_message_unref(taken);
		}
		close_pair(&pair);
	}
}

Test(staged_gpu, a_copy_begins_behind_the_kernel_that_writes)
{
	const struct fragi_stream_ops *ops = fragi_memory_of(GPU)->streams;
	struct fragi_stream *stream;
	struct fragi_work *work;
	struct pair pair;

	for (size_t k = 0; k < FRAG_COUNT_OF(kinds); k++) {
		open_pair(&pair, kinds[k]);
		cr_assert_eq(ops->open(GPU, NULL, &stream, NULL), 0);
		fake.hold_stream(stream->handle, true);
		cr_assert_eq(fake.write(stream->handle, (uintptr_t)memory, 'n', BYTES), 0);
		cr_assert_eq(ops->record(stream, &work, NULL), 0);
		cr_assert_eq(send(&pair, 0, work), 0);
		pair_settle(&pair);
		cr_expect_eq(fragi_rx_available(pair.rx), 0);
		fake.hold_stream(stream->handle, false);
		expect_next(&pair, 'n');
		cr_assert_eq(ops->finish(stream, NULL), 0);
		ops->close(stream);
		close_pair(&pair);
	}
}

/* So a pool of GPU memory needs no blocks for messages that the receiver's GPU still copies. */
Test(staged_gpu, memory_of_the_sender_comes_back_before_the_receivers_copy_ends)
{
	struct frag_message *taken[COUNT];
	struct pair pair;
	void *stream;

	for (size_t k = 0; k < FRAG_COUNT_OF(kinds); k++) {
		open_pair(&pair, kinds[k]);
		cr_assert_eq(send(&pair, 0, NULL), 0);
		expect_next(&pair, 'z');
		pair_settle(&pair);
		cr_expect_eq(released, 1);
		stream = pair.remote[1]->arrivals->handle;
		fake.hold_stream(stream, true);
		for (int n = 1; n < COUNT; n++) {
			gpu_fill(memory + n * BYTES, BYTES, (uint8_t)('a' + n));
			cr_assert_eq(send(&pair, n, NULL), 0);
		}
		for (int n = 1; n < COUNT; n++) {
			cr_assert(pair_until(&pair, has_arrived));
			taken[n] = fragi_rx_take(pair.rx, fragi_stamp());
		}
		pair_settle(&pair);
		cr_expect_eq(released, COUNT, "%d of %d are back over %s", released, COUNT,
			     kinds[k]->name);
		gpu_fill(memory, COUNT * (size_t)BYTES, 'x'); /* nobody reads it any more */
		fake.hold_stream(stream, false);
		for (int n = 1; n < COUNT; n++) {
			struct frag_tensor *tensor = frag_message_tensor(taken[n], NULL);

			cr_assert_eq(fragi_tensor_wait(tensor, NULL), 0);
			cr_expect(gpu_holds(frag_tensor_data(tensor), BYTES, (uint8_t)('a' + n)));
			frag_message_unref(taken[n]);
		}
		close_pair(&pair);
	}
}

/* What the GPU has copied is read by the other host where it lies: nobody copies it again. */
Test(staged_gpu, shared_memory_is_pinned_and_handed_over)
{
	struct pair pair;
	int pinned;

	open_pair(&pair, &kind_shm);
	pinned = fake.calls("cuMemHostRegister_v2");
	for (int n = 0; n < 2 * COUNT; n++) {
		cr_assert_eq(send(&pair, n % COUNT, NULL), 0);
		expect_next(&pair, 'z');
	}
	cr_expect_eq(atomic_load(&pair.tx_row->copied_out), 2 * COUNT * BYTES,
		     "each was copied once, by the GPU");
	cr_expect_eq(fake.calls("cuMemHostRegister_v2"), pinned + 1, "once for all");
	cr_expect_eq(fake.calls("cuMemHostAlloc"), 0);
	close_pair(&pair);
}

Test(staged_gpu, where_shared_memory_cannot_be_pinned_no_emit_waits)
{
	struct pair pair;

	fake.fail("cuMemHostRegister_v2", 1, 304);
	open_pair(&pair, &kind_shm);
	fake.hold(true);
	cr_assert_eq(send(&pair, 0, NULL), 0);
	pair_settle(&pair);
	cr_expect_eq(fragi_rx_available(pair.rx), 0);
	fake.hold(false);
	expect_next(&pair, 'z');
	cr_expect_eq(fake.calls("cuMemHostAlloc"), 1);
	close_pair(&pair);
}

Test(staged_gpu, memory_of_a_dropped_message_comes_back_after_its_copy)
{
	struct pair pair;

	for (size_t k = 0; k < FRAG_COUNT_OF(kinds); k++) {
		open_pair(&pair, kinds[k]);
		fake.hold(true);
		cr_assert_eq(send(&pair, 0, NULL), 0);
		fragi_rx_close(pair.rx);
		pair_settle(&pair);
		cr_expect_eq(atomic_load(&pair.tx_row->tx_dropped[FRAGI_DROP_RECEIVER_DONE]), 1);
		cr_expect_eq(released, 0, "the GPU still reads it");
		fake.hold(false);
		close_pair(&pair);
		cr_expect_eq(released, 1);
	}
}

struct sender {
	struct frag_tensor *tensor;
	struct fragi_stream *streams;
	pthread_barrier_t *both;
	pthread_t thread;
	_Atomic(struct frag_tensor *) sent;
};

static void *copy_tensor(void *arg)
{
	struct sender *sender = arg;

	pthread_barrier_wait(sender->both);
	atomic_store(&sender->sent, fragi_tensor_sent(sender->tensor, &sender->streams));
	return NULL;
}

static int count_of_done(struct sender senders[2])
{
	return (atomic_load(&senders[0].sent) != NULL) + (atomic_load(&senders[1].sent) != NULL);
}

/* Sends a tensor over two flows at once. Returns whether both copied it, as they rarely do. */
static bool both_copy(void)
{
	const struct frag_dltensor dl = {
		.data = memory, .device = GPU, .ndim = 1, .dtype = U8, .shape = &(int64_t){BYTES}};
	struct sender senders[2] = {0};
	struct frag_tensor *tensor;
	pthread_barrier_t both;
	int copies = fake.calls("cuMemcpyAsync");

	cr_assert_eq(frag_tensor_wrap(&dl, on_release, NULL, &tensor), 0);
	pthread_barrier_init(&both, NULL, 2);
	fake.hold(true);
	for (int i = 0; i < 2; i++) {
		senders[i].tensor = tensor;
		senders[i].both = &both;
		cr_assert_eq(pthread_create(&senders[i].thread, NULL, copy_tensor, &senders[i]), 0);
	}
	while (fake.calls("cuMemcpyAsync") < copies + 2 && count_of_done(senders) < 2)
		usleep(10);
	copies = fake.calls("cuMemcpyAsync") - copies;
	for (int i = 0; copies == 2 && i < 100; i++) {
		usleep(100);
		cr_assert_lt(count_of_done(senders), 2, "the GPU still reads it for who lost");
	}
	fake.hold(false);
	for (int i = 0; i < 2; i++) {
		pthread_join(senders[i].thread, NULL);
		fragi_streams_settle(senders[i].streams);
		fragi_streams_free(senders[i].streams);
	}
	cr_expect_eq(atomic_load(&senders[0].sent), atomic_load(&senders[1].sent));
	pthread_barrier_destroy(&both);
	frag_tensor_unref(tensor);
	return copies == 2;
}

/* What a copy reads stays until it is made, also the copy that nobody uses. */
Test(staged_gpu, a_tensor_that_two_flows_copy_at_once_stays_for_both_copies)
{
	int trials = 0;

	cr_assert_eq(fragi_alloc_on(NULL, GPU, (size_t)BYTES, (void **)&memory), 0);
	while (!both_copy())
		cr_assert_lt(++trials, 10000, "two threads never copied it at once");
	fragi_free_on(NULL, GPU, memory);
}

Test(staged_gpu, a_gpu_that_fails_under_a_copy_ends_the_host_with_what_cuda_says)
{
	struct pair pair;

	open_pair(&pair, &kind_ucx);
	fake.hold(true);
	fake.fail("cuEventQuery", 1, 700);
	cr_assert_eq(send(&pair, 0, NULL), 0);
	pair_settle(&pair);
	cr_expect_eq(atomic_load(&pair.faults[0]), 1);
	cr_expect_not_null(
		strstr(pair.sentence[0], "one.tx: a message that it has emitted cannot be sent: "),
		"%s", pair.sentence[0]);
	cr_expect_str_eq(pair.op[0], "one.tx");
	cr_expect_not_null(strstr(pair.sentence[0], "cuEventQuery: CUDA_ERROR_ILLEGAL_ADDRESS"),
			   "%s", pair.sentence[0]);
	fake.hold(false);
	close_pair(&pair);
	cr_expect_eq(released, 1);
}

static bool has_failed(struct pair *pair)
{
	return atomic_load(&pair->faults[0]) > 0;
}

/* The first query says "not yet"; what asks again is the next emit. */
Test(staged_gpu, a_gpu_that_fails_after_a_message_has_waited_ends_the_host)
{
	struct pair pair;

	for (size_t k = 0; k < FRAG_COUNT_OF(kinds); k++) {
		open_pair(&pair, kinds[k]);
		fake.hold(true);
		cr_assert_eq(send(&pair, 0, NULL), 0);
		pair_settle(&pair);
		cr_expect_eq(atomic_load(&pair.faults[0]), 0);
		fake.fail("cuEventQuery", 1, 700);
		cr_assert_eq(send(&pair, 1, NULL), 0);
		cr_expect_eq(atomic_load(&pair.faults[0]), 1);
		cr_expect_not_null(
			strstr(pair.sentence[0], "cuEventQuery: CUDA_ERROR_ILLEGAL_ADDRESS"), "%s",
			pair.sentence[0]);
		fake.fail("cuEventQuery", 1, 700);
		cr_assert_eq(send(&pair, 2, NULL), 0);
		cr_expect_eq(atomic_load(&pair.faults[0]), 1, "it is reported once");
		fake.hold(false);
		close_pair(&pair);
	}
}

/* A GPU that has failed reports no end of work, and this flow emits nothing more. */
Test(staged_gpu, a_gpu_that_fails_and_reports_nothing_ends_the_host)
{
	struct pair pair;

	open_pair_with(&pair, &kind_ucx, 0);
	fake.hold(true);
	cr_assert_eq(send(&pair, 0, NULL), 0);
	pair_settle(&pair);
	fake.fail("cuEventQuery", 1, 700);
	cr_expect(pair_until(&pair, has_failed));
	cr_expect_str_eq(pair.op[0], "one.tx");
	fake.hold(false);
	close_pair(&pair);
}

Test(staged_gpu, a_message_leaves_also_when_the_end_of_its_copy_is_not_reported)
{
	struct pair pair;

	open_pair_with(&pair, &kind_ucx, 0);
	fake.hold(true);
	fake.hold_calls(true);
	cr_assert_eq(send(&pair, 0, NULL), 0);
	pair_settle(&pair);
	fake.hold(false);
	expect_next(&pair, 'z');
	fake.hold_calls(false);
	close_pair(&pair);
}

/* Whatever the driver refuses fails that emit, and the next message crosses. */
Test(staged_gpu, a_call_that_fails_fails_the_emit)
{
	static const char *const names[] = {"cuStreamCreateWithPriority", "cuMemcpyAsync",
					    "cuEventCreate", "cuEventRecord"};
	struct pair pair;

	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++) {
		open_pair(&pair, &kind_ucx);
		fake.fail(names[i], 1, 304);
		cr_expect_eq(send(&pair, 0, NULL), -EIO, "%s", names[i]);
		cr_expect_eq(send(&pair, 1, NULL), 0, "%s", names[i]);
		expect_next(&pair, 'z');
		cr_expect_eq(atomic_load(&pair.faults[0]), 0);
		close_pair(&pair);
	}
}
