// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <data/layout.h>
#include <data/metadata.h>
#include <data/pool.h>

/* data/layout.h: what messages of a flow have in common, so that descriptors need not travel. */

static const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1}, i8 = {FRAG_DTYPE_INT, 8, 1},
			       u16 = {FRAG_DTYPE_UINT, 16, 1};

static void add(struct frag_message *message, const char *name, struct frag_dtype dtype,
		int32_t ndim, const int64_t *shape)
{
	struct frag_tensor *tensor = NULL;

	cr_assert_eq(frag_tensor_create(NULL, dtype, ndim, shape, &tensor), 0);
	cr_assert_eq(frag_message_add_tensor(message, name, tensor), 0);
}

/* A value, a tensor of 6 bytes, an empty one, and one of 4 bytes. */
static struct frag_message *three(void)
{
	static const int64_t six[] = {2, 3}, none[] = {0, 5}, two[] = {2};
	struct frag_message *message = frag_message_create();
	const int64_t value = 23;

	cr_assert_eq(frag_message_set_value(message, &frag_type_i64, &value, 8, NULL), 0);
	add(message, "six", u8, 2, six);
	add(message, "none", u8, 2, none);
	add(message, "two", u16, 1, two);
	return message;
}

static void set(struct fragi_layout *layout, struct frag_message *message)
{
	cr_assert_eq(fragi_layout_set(layout, message), 0);
	frag_message_unref(message);
}

/* Messages that are like three() but for one thing. */
static struct frag_message *other(int what)
{
	static const int64_t six[] = {3, 2}, flat[] = {6}, none[] = {0, 5}, two[] = {2};
	struct frag_message *message = frag_message_create();
	const int64_t value = 23;

	if (what == 0)
		cr_assert_eq(frag_message_set_value(message, &frag_type_u64, &value, 8, NULL), 0);
	else if (what != 1)
		cr_assert_eq(frag_message_set_value(message, &frag_type_i64, &value, 8, NULL), 0);
	if (what == 2)
		add(message, "six", u8, 2, six);
	else if (what == 3)
		add(message, "six", u8, 1, flat);
	else if (what == 4)
		add(message, "six", i8, 2, (const int64_t[]){2, 3});
	else if (what == 5)
		add(message, "siy", u8, 2, (const int64_t[]){2, 3});
	else
		add(message, "six", u8, 2, (const int64_t[]){2, 3});
	add(message, "none", u8, 2, none);
	if (what != 6)
		add(message, "two", u16, 1, what == 7 ? (const int64_t[]){3} : two);
	if (what == 8)
		add(message, "more", u8, 1, two);
	if (what == 9)
		frag_message_set_sequence(message, 5);
	if (what == 10)
		message->at_receive |= FRAGI_AT_RECEIVE_WORK;
	return message;
}

Test(layout, fits_what_differs_in_nothing)
{
	struct fragi_layout layout = {0};
	struct frag_message *message = three();

	set(&layout, three());
	cr_expect(fragi_layout_fits(&layout, message));
	cr_expect_eq(layout.descriptor_bytes, fragi_layout_bytes(message));
	cr_expect_eq(layout.body_bytes, 6 + 4);
	cr_expect_eq(layout.value_bytes, 8);
	cr_expect_eq(layout.tensor_count, 3);
	frag_message_unref(message);
	message = other(-1);
	cr_expect(fragi_layout_fits(&layout, message), "it is the same");
	frag_message_unref(message);
	for (int what = 0; what <= 10; what++) {
		message = other(what);
		cr_expect_not(fragi_layout_fits(&layout, message), "%d", what);
		frag_message_unref(message);
	}
	fragi_layout_fini(&layout);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

/* The descriptors have as many bytes as are encoded. */
Test(layout, of_messages_that_have_one)
{
	static const int64_t one[] = {1};
	const struct fragi_blob *blob;
	struct frag_message *message;
	struct frag_metadata *metadata;
	char name[8];

	for (uint32_t tensors = 0; tensors <= FRAGI_LAYOUT_TENSORS_MAX + 1; tensors++)
		for (int has_value = 0; has_value < 2; has_value++) {
			const int64_t value = 5;

			message = frag_message_create();
			if (has_value == 1)
				frag_message_set_value(message, &frag_type_i64, &value, 8, NULL);
			for (uint32_t i = 0; i < tensors; i++) {
				snprintf(name, sizeof(name), "%u", 100 * i);
				add(message, name, u8, 1, one);
			}
			cr_assert_eq(fragi_message_encode(message, &blob), 0);
			cr_expect_eq(fragi_layout_bytes(message),
				     tensors <= FRAGI_LAYOUT_TENSORS_MAX ? blob->size : 0,
				     "%u, %d: %u", tensors, has_value, fragi_layout_bytes(message));
			frag_message_unref(message);
		}
	message = frag_message_create();
	frag_message_set_value(message, &frag_type_bytes, "some", 4, NULL);
	cr_expect_eq(fragi_layout_bytes(message), 0, "a value of any size");
	frag_message_unref(message);
	message = three();
	metadata = fragi_metadata_create(FRAG_METADATA_UPDATE);
	cr_assert_eq(frag_metadata_set_i64(metadata, "a", 1), 0);
	fragi_message_set_metadata(message, metadata);
	cr_expect_eq(fragi_layout_bytes(message), 0, "with metadata");
	frag_message_unref(message);
}

static int released;

static void release(void *owner)
{
	released += (int)(intptr_t)owner;
}

static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 0, 8, 0};
static const int64_t value = 17;

/* - data: copied; NULL: `mapped` is given */
static int make(const struct fragi_layout *layout, const uint8_t *data,
		const struct fragi_body *mapped, uint32_t count, struct frag_message **out)
{
	return fragi_layout_make(layout, NULL, (const uint8_t *)&value, data, mapped, count, out);
}

static void expect_three(struct frag_message *message)
{
	const struct frag_tensor *tensor;
	const void *got = NULL;
	size_t size = 0;

	cr_expect_eq(frag_message_value(message, &got, &size), &frag_type_i64);
	cr_assert_eq(size, 8);
	cr_expect_eq(memcmp(got, &value, 8), 0);
	cr_assert_eq(frag_message_tensor_count(message), 3);
	tensor = frag_message_tensor(message, "six");
	cr_expect(tensor->dl.ndim == 2 && tensor->dl.shape[0] == 2 && tensor->dl.shape[1] == 3);
	cr_expect_eq(memcmp(tensor->dl.data, bytes, 6), 0);
	tensor = frag_message_tensor(message, "none");
	cr_expect(tensor->dl.shape[0] == 0 && tensor->dl.shape[1] == 5);
	tensor = frag_message_tensor(message, "two");
	cr_expect_eq(tensor->dl.dtype.bits, 16);
	cr_expect_eq(memcmp(tensor->dl.data, bytes + 6, 4), 0);
	cr_expect(message->shared);
	frag_message_unref(message);
}

static struct fragi_body body_of(size_t at, uint64_t size, int owner)
{
	return (struct fragi_body){.data = (void *)(uintptr_t)(bytes + at),
				   .bytes = size,
				   .device = {FRAG_DEVICE_CPU, 0},
				   .owner = (void *)(intptr_t)owner,
				   .release = release};
}

Test(layout, makes_messages_of_copies_and_of_what_is_mapped)
{
	struct fragi_body mapped[] = {body_of(0, 6, 1), body_of(6, 4, 1)};
	struct fragi_layout layout = {0};
	struct frag_message *message = NULL;

	mapped[0].owner = mapped[1].owner = (void *)(intptr_t)1;
	set(&layout, three());
	cr_assert_eq(make(&layout, bytes, NULL, 0, &message), 0);
	expect_three(message);
	cr_assert_eq(make(&layout, NULL, mapped, 2, &message), 0);
	cr_expect_eq(released, 0);
	expect_three(message);
	cr_expect_eq(released, 2, "each body once");
	fragi_layout_fini(&layout);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_BODY), 0);
}

/* Bodies that are not those of the layout stay the caller's. */
Test(layout, other_bodies_are_refused)
{
	const struct fragi_body six = body_of(0, 6, 1), four = body_of(6, 4, 1),
				five = body_of(0, 5, 1), empty = body_of(0, 0, 1);
	struct fragi_body gpu = four;
	const struct {
		struct fragi_body bodies[3];
		uint32_t count;
	} rows[] = {{{six}, 1},       {{six, four, four}, 3},  {{four, six}, 2}, {{five, four}, 2},
		    {{six, five}, 2}, {{six, empty, four}, 3}, {{six}, 0},       {{gpu}, 1}};
	struct fragi_layout layout = {0};
	struct frag_message *message = NULL;

	set(&layout, three());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(make(&layout, NULL, rows[i].bodies, rows[i].count, &message), -EBADMSG,
			     "row %zu", i);
	gpu.device = (struct frag_device){FRAG_DEVICE_CUDA, 0};
	cr_expect_eq(make(&layout, NULL, (const struct fragi_body[]){six, gpu}, 2, &message),
		     -EBADMSG);
	cr_expect_eq(make(&layout, bytes, &six, 1, &message), -EBADMSG, "copied and mapped");
	cr_expect_null(message);
	cr_expect_eq(released, 0);
	fragi_layout_fini(&layout);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

/* Takes all that the pools of this thread have, so that the next object needs memory. */
#define SPARES 4096
static struct frag_message *messages[SPARES];
static struct frag_tensor *tensors[SPARES];

static void empty_pools(const struct frag_tensor *like)
{
	size_t m = 0, t = 0;

	fragi_alloc_fail_after(0, INT64_MAX);
	while (m < SPARES && (messages[m] = frag_message_create()) != NULL)
		m++;
	while (t < SPARES && fragi_tensor_describe_as(like, &tensors[t]) == 0)
		t++;
	cr_assert(m < SPARES && t < SPARES);
	tensors[t] = NULL;
	fragi_alloc_fail_off();
}

static void fill_pools(void)
{
	for (size_t i = 0; messages[i] != NULL; i++)
		frag_message_unref(messages[i]);
	for (size_t i = 0; tensors[i] != NULL; i++)
		frag_tensor_unref(tensors[i]);
}

Test(layout, survives_every_failed_allocation)
{
	struct fragi_layout layout = {0};
	struct frag_message *message = three(), *made;
	int64_t failed = 1, failures = 0;
	int r;

	for (int64_t n = 0; failed > 0; n++, failures += failed > 0) {
		empty_pools(message->tensors[0].tensor);
		fragi_alloc_fail_after(n, 1);
		r = fragi_layout_set(&layout, message);
		failed = fragi_alloc_fail_off();
		cr_assert_eq(r, failed > 0 ? -ENOMEM : 0);
		cr_assert_eq(layout.tensor_count, failed > 0 ? 0 : 3, "it is unchanged");
		fill_pools();
	}
	cr_expect_gt(failures, 0);
	failed = 1;
	failures = 0;
	for (int64_t n = 0; failed > 0; n++, failures += failed > 0) {
		made = NULL;
		empty_pools(message->tensors[0].tensor);
		fragi_alloc_fail_after(n, 1);
		r = make(&layout, bytes, NULL, 0, &made);
		failed = fragi_alloc_fail_off();
		cr_assert_eq(r, failed > 0 ? -ENOMEM : 0);
		cr_assert_eq(made != NULL, failed == 0);
		if (made != NULL)
			expect_three(made);
		fill_pools();
	}
	cr_expect_gt(failures, 1, "of the message, and of a tensor");
	frag_message_unref(message);
	fragi_layout_fini(&layout);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}
