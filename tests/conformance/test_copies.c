// SPDX-License-Identifier: Apache-2.0
/* copied_bytes: what is copied between two hosts is counted, to the byte, and nothing else is. */
#include <criterion/criterion.h>

#include "pair.h"
#include <base/stamp.h>
#include <data/allocator.h>

/* Of a flow, as the ends of it have counted. */
struct copied {
	uint64_t out, in;
};

static struct frag_tensor *tensor_from(struct frag_resource *memory, int64_t bytes)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_tensor *tensor;

	cr_assert_eq(frag_tensor_create(memory, u8, 1, &bytes, &tensor), 0);
	memset(frag_tensor_writable(tensor), 'x', (size_t)bytes);
	return tensor;
}

/* Every second element of `memory`. */
static struct frag_tensor *tensor_with_gaps(uint8_t *memory, int64_t elements)
{
	int64_t stride = 2;
	struct frag_dltensor description = {
		.data = memory,
		.device = {FRAG_DEVICE_CPU, 0},
		.ndim = 1,
		.dtype = {FRAG_DTYPE_UINT, 8, 1},
		.shape = &elements,
		.strides = &stride,
	};
	struct frag_tensor *tensor;

	cr_assert_eq(frag_tensor_wrap(&description, NULL, NULL, &tensor), 0);
	return tensor;
}

/* Sends the tensors in one message, and waits until it is received and over. */
static struct copied copied_by(struct pair *pair, struct frag_tensor *first,
			       struct frag_tensor *second)
{
	const struct fragi_flow_row *tx = pair->tx_row, *rx = pair->rx_row;
	struct copied before = {atomic_load(&tx->copied_out), atomic_load(&rx->copied_in)};
	struct frag_message *message = frag_message_create();

	cr_assert_eq(frag_message_add_tensor(message, "a", first), 0);
	if (second != NULL)
		cr_assert_eq(frag_message_add_tensor(message, "b", second), 0);
	fragi_message_share(message);
	cr_assert_eq(pair->tx->ops->send(pair->tx, message, fragi_stamp()), 0);
	pair_settle(pair);
	message = fragi_rx_take(pair->rx, fragi_stamp());
	cr_assert_not_null(message);
	frag_message_unref(message);
	pair_settle(pair);
	return (struct copied){atomic_load(&tx->copied_out) - before.out,
			       atomic_load(&rx->copied_in) - before.in};
}

#define EXPECT_COPIED(copied_expr, out_bytes, in_bytes)                                            \
	do {                                                                                       \
		struct copied c_ = (copied_expr);                                                  \
		cr_expect_eq(c_.out, (uint64_t)(out_bytes), "the sender copied %llu",              \
			     (unsigned long long)c_.out);                                          \
		cr_expect_eq(c_.in, (uint64_t)(in_bytes), "the receiver copied %llu",              \
			     (unsigned long long)c_.in);                                           \
	} while (0)

PAIR_TEST(copies, inside_a_host_there_are_none, &kind_inproc)
{
	EXPECT_COPIED(copied_by(pair, tensor_from(NULL, 100000), NULL), 0, 0);
}

PAIR_TEST(copies, of_shared_memory_there_are_none, &kind_shm)
{
	for (int64_t bytes = 1; bytes <= 16 << 20; bytes *= 4)
		EXPECT_COPIED(copied_by(pair, tensor_from(pair_memory(pair, 0), bytes), NULL), 0,
			      0);
}

PAIR_TEST(copies, of_other_memory_there_is_one_into_shared_memory, &kind_shm)
{
	EXPECT_COPIED(copied_by(pair, tensor_from(NULL, 100001), NULL), 100001, 0);
	EXPECT_COPIED(
		copied_by(pair, tensor_from(NULL, 3000), tensor_from(pair_memory(pair, 0), 5000)),
		3000, 0);
	EXPECT_COPIED(copied_by(pair, tensor_from(NULL, FRAGI_INLINE_MAX + 1), NULL),
		      FRAGI_INLINE_MAX + 1, 0);
}

Test(copies, of_short_messages_are_not_counted, .init = set_environment)
{
	static const struct kind *const kinds[] = {&kind_shm, &kind_ucx, &kind_encrypted_shm};

	for (size_t i = 0; i < 3; i++) {
		struct pair pair = {0};

		pair_open(&pair, kinds[i]);
		EXPECT_COPIED(copied_by(&pair, tensor_from(NULL, 24),
					tensor_from(NULL, FRAGI_INLINE_MAX - 24)),
			      0, 0);
		pair_close(&pair);
	}
}

PAIR_TEST(copies, of_a_tensor_with_gaps_is_made_once_for_all_flows, &kind_ucx)
{
	static uint8_t memory[20000];
	struct frag_tensor *tensor = tensor_with_gaps(memory, 10000);

	EXPECT_COPIED(copied_by(pair, frag_tensor_ref(tensor), NULL), 10000, 10000);
	EXPECT_COPIED(copied_by(pair, tensor, NULL), 0, 10000);
}

/* From 1 MiB on UCX fills the tensor itself. */
PAIR_TEST(copies, of_what_ucx_sends_at_once_there_is_one_at_the_receiver, &kind_ucx)
{
	EXPECT_COPIED(copied_by(pair, tensor_from(NULL, 2000), NULL), 0, 2000);
	EXPECT_COPIED(copied_by(pair, tensor_from(NULL, 4 << 20), NULL), 0, 0);
}

/* Encrypting is writing once more; decrypting too, unless it is done where the bytes arrived. */
Test(copies, of_encrypted_messages_are_counted, .init = set_environment)
{
	struct pair ucx = {0}, shm = {0};

	pair_open(&ucx, &kind_encrypted_ucx);
	EXPECT_COPIED(copied_by(&ucx, tensor_from(NULL, 2000), NULL), 2000, 2000);
	EXPECT_COPIED(copied_by(&ucx, tensor_from(NULL, 4 << 20), NULL), 4 << 20, 0);
	pair_close(&ucx);
	pair_open(&shm, &kind_encrypted_shm);
	EXPECT_COPIED(copied_by(&shm, tensor_from(pair_memory(&shm, 0), 5000), NULL), 2 * 5000,
		      5000);
	pair_close(&shm);
}
