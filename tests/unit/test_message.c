// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <data/message.h>
#include <data/metadata.h>

static const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};

static struct frag_tensor *small_tensor(void)
{
	struct frag_tensor *tensor = NULL;
	int64_t shape[] = {4};

	cr_assert_eq(frag_tensor_create(NULL, u8, 1, shape, &tensor), 0);
	return tensor;
}

static int64_t i64_of(const struct frag_message *message)
{
	const void *value = NULL;
	size_t size = 0;

	cr_assert_eq(frag_message_value(message, &value, &size), &frag_type_i64);
	cr_assert_eq(size, 8);
	return *(const int64_t *)value;
}

Test(message, a_new_one_is_empty)
{
	struct frag_message *message = frag_message_create();
	const void *value = &value;
	size_t size = 9;

	cr_expect_null(frag_message_value(message, &value, &size));
	cr_expect_null(value);
	cr_expect_eq(size, 0);
	cr_expect_eq(frag_message_tensor_count(message), 0);
	cr_expect_null(frag_message_tensor(message, NULL));
	cr_expect_null(frag_message_metadata(message));
	cr_expect_eq(frag_message_acquisition_ns(message), 0);
	frag_message_unref(message);
	frag_message_unref(NULL);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

Test(message, a_reused_one_is_empty_too)
{
	struct frag_message *first = frag_message_create(), *second;
	uint64_t sequence;
	int64_t x = 7;

	frag_message_set_value(first, &frag_type_i64, &x, sizeof(x), NULL);
	frag_message_add_tensor(first, "t", small_tensor());
	frag_message_set_acquisition_ns(first, 5);
	frag_message_set_sequence(first, 6);
	frag_message_set_flags(first, FRAG_MESSAGE_INVALID);
	fragi_message_set_metadata(first, fragi_metadata_create(FRAG_METADATA_UPDATE));
	fragi_message_share(first);
	frag_message_unref(first);
	second = frag_message_create();
	cr_expect_eq(second, first);
	cr_expect_null(frag_message_value(second, NULL, NULL));
	cr_expect_eq(frag_message_tensor_count(second), 0);
	cr_expect_null(frag_message_metadata(second));
	cr_expect_eq(frag_message_acquisition(second, NULL, NULL), -ENODATA);
	cr_expect_eq(frag_message_sequence(second, &sequence), -ENODATA);
	cr_expect_eq(frag_message_flags(second), 0);
	cr_expect_eq(frag_message_set_value(second, &frag_type_i64, &x, sizeof(x), NULL), 0);
	frag_message_unref(second);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

Test(message, stamps_are_set_and_read)
{
	struct frag_message *message = frag_message_create(), *other = frag_message_create();
	uint64_t sequence = 99;
	uint32_t clock = 99;
	int64_t time_ns = 99;

	cr_expect_eq(frag_message_acquisition(message, &time_ns, &clock), -ENODATA);
	cr_expect_eq(frag_message_sequence(message, &sequence), -ENODATA);
	cr_expect(time_ns == 99 && clock == 99 && sequence == 99, "untouched");
	cr_expect_eq(frag_message_flags(message), 0);

	cr_expect_eq(frag_message_set_acquisition(message, 0, FRAG_CLOCK_MEDIA), 0);
	cr_expect_eq(frag_message_acquisition(message, &time_ns, &clock), 0);
	cr_expect(time_ns == 0 && clock == FRAG_CLOCK_MEDIA, "0 is a time too");
	cr_expect_eq(frag_message_acquisition(message, NULL, NULL), 0);
	cr_expect_eq(frag_message_acquisition_ns(message), 0);
	cr_expect_eq(frag_message_set_acquisition(message, -3, FRAG_CLOCK_MONOTONIC), 0);
	cr_expect_eq(frag_message_acquisition_ns(message), 0, "it is no Unix time");
	cr_expect_eq(frag_message_set_acquisition(message, 1, FRAG_CLOCK_MEDIA + 1), -EINVAL);
	cr_expect_eq(frag_message_set_acquisition(message, 1, FRAG_CLOCK_OWN - 1), -EINVAL);
	frag_message_acquisition(message, &time_ns, &clock);
	cr_expect(time_ns == -3 && clock == FRAG_CLOCK_MONOTONIC);

	cr_expect_eq(frag_message_set_sequence(message, UINT64_MAX), 0);
	cr_expect_eq(frag_message_sequence(message, &sequence), 0);
	cr_expect_eq(sequence, UINT64_MAX);
	cr_expect_eq(frag_message_set_flags(message, FRAG_MESSAGE_INVALID), 0);
	cr_expect_eq(frag_message_set_flags(message, 4), -EINVAL);
	cr_expect_eq(frag_message_flags(message), FRAG_MESSAGE_INVALID);

	cr_expect_eq(frag_message_copy_stamps(other, message), 0);
	cr_expect_eq(frag_message_flags(other), FRAG_MESSAGE_INVALID);
	sequence = 0;
	cr_expect(frag_message_sequence(other, &sequence) == 0 && sequence == UINT64_MAX);
	cr_expect_eq(frag_message_set_flags(message, FRAG_MESSAGE_DEGRADED), 0);
	cr_expect_eq(frag_message_flags(message), FRAG_MESSAGE_DEGRADED);
	cr_expect_eq(frag_message_sequence(message, &sequence), 0, "flags leave the others");

	cr_expect_eq(frag_message_set_acquisition_ns(message, 6), 0);
	cr_expect_eq(frag_message_acquisition(message, &time_ns, &clock), 0);
	cr_expect(time_ns == 6 && clock == FRAG_CLOCK_UNIX);
	cr_expect_eq(frag_message_set_acquisition_ns(message, 0), 0);
	cr_expect_eq(frag_message_acquisition(message, NULL, NULL), -ENODATA);
	frag_message_unref(message);
	frag_message_unref(other);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

Test(message, stamps_of_a_shared_one_stay)
{
	struct frag_message *message = frag_message_create(), *other = frag_message_create(), *own;
	uint64_t sequence = 0;

	frag_message_set_acquisition(message, 4, FRAG_CLOCK_TAI);
	frag_message_set_sequence(message, 5);
	frag_message_set_flags(message, FRAG_MESSAGE_DEGRADED);
	fragi_message_share(message);
	cr_expect_eq(frag_message_set_acquisition(message, 1, 0), -EBUSY);
	cr_expect_eq(frag_message_set_acquisition_ns(message, 1), -EBUSY);
	cr_expect_eq(frag_message_set_sequence(message, 1), -EBUSY);
	cr_expect_eq(frag_message_set_flags(message, 0), -EBUSY);
	cr_expect_eq(frag_message_copy_stamps(message, other), -EBUSY);

	own = frag_message_writable(frag_message_ref(message));
	cr_assert_neq(own, message);
	cr_expect(frag_message_sequence(own, &sequence) == 0 && sequence == 5);
	cr_expect_eq(frag_message_acquisition(own, NULL, NULL), 0);
	cr_expect_eq(frag_message_flags(own), FRAG_MESSAGE_DEGRADED);
	cr_expect_eq(frag_message_copy_stamps(own, other), 0);
	cr_expect_eq(frag_message_flags(own), 0);
	cr_expect_eq(frag_message_sequence(own, &sequence), -ENODATA);
	cr_expect_eq(frag_message_flags(message), FRAG_MESSAGE_DEGRADED);
	frag_message_unref(own);
	frag_message_unref(message);
	frag_message_unref(other);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}

Test(message, values_small_and_large)
{
	struct frag_message *message = frag_message_create();
	char text[5000];
	const void *value;
	size_t size;
	int64_t x = -3;
	void *at;

	memset(text, 'a', sizeof(text));
	cr_expect_eq(frag_message_set_value(message, &frag_type_i64, &x, sizeof(x), NULL), 0);
	cr_expect_eq(i64_of(message), -3);
	for (size_t length = 0; length < sizeof(text); length += length < 40 ? 1 : 997) {
		cr_assert_eq(frag_message_set_value(message, &frag_type_string, text, length, NULL),
			     0);
		cr_assert_eq(frag_message_value(message, &value, &size), &frag_type_string);
		cr_assert_eq(size, length);
		cr_assert_eq(strlen(value), length);
	}
	cr_expect_eq(frag_message_set_value(message, &frag_type_bytes, NULL, 3000, &at), 0);
	for (size_t i = 0; i < 3000; i++)
		cr_assert_eq(((char *)at)[i], 0);
	cr_expect_eq(fragi_message_bytes(message), 3000);
	cr_expect_eq(frag_message_set_value(message, &frag_type_f64, NULL, 8, &at), 0);
	cr_expect_eq(*(double *)at, 0.0);
	frag_message_unref(message);
}

Test(message, wrong_sizes_are_refused_and_the_value_stays)
{
	struct frag_message *message = frag_message_create();
	const struct frag_type *array = frag_type_find("i32[]");
	int64_t x = 11;

	frag_message_set_value(message, &frag_type_i64, &x, sizeof(x), NULL);
	cr_expect_eq(frag_message_set_value(message, &frag_type_i64, &x, 4, NULL), -EINVAL);
	cr_expect_eq(frag_message_set_value(message, &frag_type_i64, &x, 0, NULL), -EINVAL);
	cr_expect_eq(frag_message_set_value(message, array, &x, 6, NULL), -EINVAL);
	cr_expect_eq(frag_message_set_value(message, &frag_type_bytes, NULL, SIZE_MAX, NULL),
		     -EINVAL);
	fragi_alloc_fail_after(0, INT64_MAX);
	cr_expect_eq(frag_message_set_value(message, &frag_type_bytes, NULL, 100, NULL), -ENOMEM);
	fragi_alloc_fail_off();
	cr_expect_eq(i64_of(message), 11);
	cr_expect_eq(frag_message_set_value(message, array, &x, 8, NULL), 0);
	frag_message_unref(message);
}

Test(message, a_value_may_be_set_from_itself)
{
	struct frag_message *message = frag_message_create();
	char text[200];
	const void *value;
	size_t size;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 26);
	frag_message_set_value(message, &frag_type_bytes, text, 200, NULL);
	frag_message_value(message, &value, &size);
	cr_expect_eq(frag_message_set_value(message, &frag_type_bytes, (const char *)value + 3, 190,
					    NULL),
		     0);
	frag_message_value(message, &value, &size);
	cr_expect_eq(memcmp(value, text + 3, 190), 0);
	cr_expect_eq(frag_message_set_value(message, &frag_type_bytes, (const char *)value + 1, 10,
					    NULL),
		     0);
	frag_message_value(message, &value, &size);
	cr_expect_eq(memcmp(value, text + 4, 10), 0);
	frag_message_unref(message);
}

static int finis;

static void count_fini(void *value)
{
	finis += *(int *)value;
}

static const struct frag_type counted = {
	FRAG_TYPE_INIT,
	.name = "counted",
	.size = sizeof(int),
	.fini = count_fini,
};

Test(message, fini_runs_once_whoever_shares_the_value)
{
	struct frag_message *message = frag_message_create(), *copy;
	int one = 1, ten = 10;

	frag_message_set_value(message, &counted, &one, sizeof(one), NULL);
	frag_message_set_value(message, &counted, &ten, sizeof(ten), NULL);
	cr_expect_eq(finis, 1);
	copy = frag_message_writable(frag_message_ref(message));
	cr_expect_neq(copy, message);
	frag_message_unref(message);
	cr_expect_eq(finis, 1);
	frag_message_set_value(copy, &frag_type_i64, NULL, 8, NULL);
	cr_expect_eq(finis, 11);
	frag_message_unref(copy);
	cr_expect_eq(finis, 11);
}

Test(message, arrays_of_such_types_are_finished_element_by_element)
{
	struct frag_message *message = frag_message_create();
	const int values[] = {1, 2, 4};

	cr_assert_eq(frag_type_register(&counted, NULL), 0);
	finis = 0;
	cr_expect_eq(frag_message_set_value(message, frag_type_find("counted[]"), values,
					    sizeof(values), NULL),
		     0);
	frag_message_unref(message);
	cr_expect_eq(finis, 7);
}

/* Also where the box of an earlier value would be large enough, wherever that one lies. */
Test(message, a_value_keeps_its_types_alignment)
{
	static const struct frag_type wide = {FRAG_TYPE_INIT, .name = "wide", .size = 64,
					      .align = 64};
	struct frag_message *messages[16];
	void *at;

	for (size_t i = 0; i < FRAG_COUNT_OF(messages); i++) {
		messages[i] = frag_message_create();
		for (int round = 0; round < 2; round++) {
			cr_expect_eq(frag_message_set_value(messages[i], &frag_type_bytes, NULL,
							    100 + 16 * i, &at),
				     0);
			cr_expect_eq((uintptr_t)at % 16, 0);
			cr_expect_eq(frag_message_set_value(messages[i], &wide, NULL, 64, &at), 0);
			cr_expect_eq((uintptr_t)at % 64, 0);
		}
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(messages); i++)
		frag_message_unref(messages[i]);
}

Test(message, tensors_by_name)
{
	struct frag_message *message = frag_message_create();
	struct frag_tensor *first = small_tensor(), *second = small_tensor();
	char name[FRAG_NAME_MAX + 2];
	const char *at = NULL;

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	cr_expect_eq(frag_message_add_tensor(message, "", first), 0);
	cr_expect_eq(frag_message_add_tensor(message, "bb", small_tensor()), 0);
	cr_expect_eq(frag_message_add_tensor(message, "b", second), 0);
	cr_expect_eq(frag_message_add_tensor(message, "b", small_tensor()), -EEXIST);
	cr_expect_eq(frag_message_add_tensor(message, name, small_tensor()), -ENAMETOOLONG);
	cr_expect(strstr(frag_strerror(-ENAMETOOLONG), "63 bytes") != NULL);
	cr_expect_eq(frag_message_add_tensor(message, NULL, small_tensor()), -EINVAL);
	cr_expect_eq(frag_message_tensor_count(message), 3);
	cr_expect_eq(frag_message_tensor(message, NULL), first);
	cr_expect_eq(frag_message_tensor(message, "b"), second);
	cr_expect_null(frag_message_tensor(message, "c"));
	cr_expect_eq(frag_message_tensor_at(message, 2, &at), second);
	cr_expect_str_eq(at, "b");
	cr_expect_null(frag_message_tensor_at(message, 3, NULL));
	cr_expect_eq(fragi_message_bytes(message), 12);
	frag_message_unref(message);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

Test(message, no_more_tensors_than_the_limit)
{
	struct frag_message *message = frag_message_create();
	char name[16];

	for (int i = 0; i < FRAG_MESSAGE_TENSORS_MAX; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		cr_assert_eq(frag_message_add_tensor(message, name, small_tensor()), 0);
	}
	cr_expect_eq(frag_message_add_tensor(message, "more", small_tensor()), -E2BIG);
	frag_message_unref(message);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

Test(message, a_shared_one_is_immutable)
{
	struct frag_message *message = frag_message_create(), *other, *own;
	struct frag_tensor *tensor = small_tensor();
	int64_t x = 1, y = 2;

	cr_expect_not_null(frag_tensor_writable(tensor));
	frag_message_set_value(message, &frag_type_i64, &x, 8, NULL);
	frag_message_add_tensor(message, "t", tensor);
	frag_message_set_acquisition_ns(message, 4);
	fragi_message_share(message);
	cr_expect_null(frag_tensor_writable(tensor));
	cr_expect_eq(frag_message_set_value(message, &frag_type_i64, &y, 8, NULL), -EBUSY);
	cr_expect_eq(frag_message_add_tensor(message, "u", small_tensor()), -EBUSY);

	other = frag_message_ref(message);
	cr_expect_eq(frag_message_set_acquisition_ns(other, 5), -EBUSY);
	own = frag_message_writable(other);
	cr_expect_neq(own, message);
	cr_expect_eq(frag_message_set_value(own, &frag_type_i64, &y, 8, NULL), 0);
	cr_expect_eq(frag_message_add_tensor(own, "u", small_tensor()), 0);
	cr_expect_eq(frag_message_tensor(own, "t"), tensor);
	cr_expect_eq(frag_message_acquisition_ns(own), 4);
	cr_expect_eq(i64_of(message), 1);
	cr_expect_eq(i64_of(own), 2);
	frag_message_unref(own);

	cr_expect_eq(frag_message_writable(message), message); /* nobody else holds it */
	cr_expect_eq(frag_message_set_value(message, &frag_type_i64, &y, 8, NULL), 0);
	frag_message_unref(message);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

/* A value that two messages share is not written through either of them, whatever its size. */
Test(message, a_value_of_a_copy_is_its_own)
{
	static const size_t sizes[] = {8, FRAGI_MESSAGE_INLINE, FRAGI_MESSAGE_INLINE + 1, 3000};
	char one[3000], two[3000];
	const void *value;

	memset(one, 'a', sizeof(one));
	memset(two, 'b', sizeof(two));
	for (size_t i = 0; i < 2 * FRAG_COUNT_OF(sizes); i++) {
		struct frag_message *message = frag_message_create(), *copy;
		const size_t size = sizes[i / 2];

		cr_assert_eq(frag_message_set_value(message, &frag_type_bytes, one, size, NULL), 0);
		copy = frag_message_writable(frag_message_ref(message));
		cr_assert_neq(copy, message);
		cr_assert_eq(frag_message_set_value(i % 2 == 0 ? copy : message, &frag_type_bytes,
						    two, size, NULL),
			     0);
		frag_message_value(message, &value, NULL);
		cr_expect_eq(memcmp(value, i % 2 == 0 ? one : two, size), 0, "%zu", size);
		frag_message_value(copy, &value, NULL);
		cr_expect_eq(memcmp(value, i % 2 == 0 ? two : one, size), 0, "%zu", size);
		frag_message_unref(copy);
		frag_message_unref(message);
	}
}

/* What a copy is asked for when it is received or sent, and its stamps. */
Test(message, a_copy_has_all_that_the_message_had)
{
	static const uint8_t at_receive[] = {0, FRAGI_AT_RECEIVE_WORK};

	for (size_t i = 0; i < 2; i++) {
		struct frag_message *message = frag_message_create(), *copy;
		uint64_t sequence = 0;
		int64_t acquired_ns = 0;
		uint32_t clock = 0;

		frag_message_add_tensor(message, "t", small_tensor());
		frag_message_set_sequence(message, 23);
		frag_message_set_acquisition(message, 17, FRAG_CLOCK_TAI);
		message->at_receive = at_receive[i];
		copy = frag_message_writable(frag_message_ref(message));
		cr_expect_neq(copy, message);
		cr_expect_eq(copy->at_receive, message->at_receive);
		cr_expect_eq(copy->stamps, message->stamps);
		cr_expect_eq(frag_message_acquisition(copy, &acquired_ns, &clock), 0);
		cr_expect(acquired_ns == 17 && clock == FRAG_CLOCK_TAI);
		cr_expect_eq(frag_message_sequence(copy, &sequence), 0);
		cr_expect_eq(sequence, 23);
		cr_expect_eq(frag_message_tensor_count(copy), 1);
		frag_message_unref(copy);
		frag_message_unref(message);
	}
}

Test(message, writable_survives_every_failed_allocation)
{
	int64_t failed = 1;

	for (int64_t n = 0; failed > 0; n++) {
		struct frag_message *message = frag_message_create(), *spares[40], *copy;

		for (int i = 0; i < 40; i++) /* so that the copy needs a new slab as well */
			spares[i] = frag_message_create();
		frag_message_set_value(message, &frag_type_bytes, NULL, 100, NULL);
		frag_message_add_tensor(message, "t", small_tensor());
		fragi_message_set_metadata(message, fragi_metadata_create(FRAG_METADATA_UPDATE));
		frag_message_ref(message);
		fragi_alloc_fail_after(n, 1);
		copy = frag_message_writable(message);
		failed = fragi_alloc_fail_off();
		cr_assert_eq(copy == NULL, failed > 0);
		cr_assert_eq(atomic_load(&message->refs), 1);
		frag_message_unref(copy);
		frag_message_unref(message);
		for (int i = 0; i < 40; i++)
			frag_message_unref(spares[i]);
	}
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

Test(message, after_warm_up_nothing_is_allocated)
{
	struct frag_message *batch[20];
	int64_t shape[] = {0}, x = 3;
	struct frag_tensor *tensor;
	char text[100] = "text longer than what lies in the message itself";

	for (int round = 0; round < 2; round++) {
		if (round == 1)
			fragi_alloc_fail_after(0, INT64_MAX);
		for (int i = 0; i < 20; i++) {
			batch[i] = frag_message_create();
			cr_assert_not_null(batch[i]);
			cr_assert_eq(frag_message_set_value(batch[i], &frag_type_i64, &x, 8, NULL),
				     0);
			cr_assert_eq(frag_message_set_value(batch[i], &frag_type_string, text,
							    strlen(text), NULL),
				     0);
			cr_assert_eq(frag_tensor_create(NULL, u8, 1, shape, &tensor), 0);
			cr_assert_eq(frag_message_add_tensor(batch[i], "t", tensor), 0);
		}
		for (int i = 0; i < 20; i++)
			frag_message_unref(batch[i]);
	}
	cr_expect_eq(fragi_alloc_fail_off(), 0);
}

#define PASSED 20000
#define WINDOW 64

static _Atomic(struct frag_message *) ring[WINDOW];

static void *drop_what_comes(void *sum)
{
	struct frag_message *message;

	for (int64_t i = 0; i < PASSED; i++) {
		while ((message = atomic_exchange(&ring[i % WINDOW], NULL)) == NULL)
			sched_yield();
		*(int64_t *)sum += i64_of(message);
		frag_message_unref(message);
	}
	return NULL;
}

Test(message, dropped_on_another_thread_they_come_back)
{
	struct frag_message *message;
	int64_t sum = 0;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, drop_what_comes, &sum), 0);
	for (int64_t i = 0; i < PASSED; i++) {
		message = frag_message_create();
		frag_message_set_value(message, &frag_type_i64, &i, 8, NULL);
		while (atomic_load(&ring[i % WINDOW]) != NULL)
			sched_yield();
		atomic_store(&ring[i % WINDOW], message);
	}
	pthread_join(thread, NULL);
	cr_expect_eq(sum, (int64_t)PASSED * (PASSED - 1) / 2);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
	message = frag_message_create();
	cr_expect_leq(message->home.pool->total, 4 * WINDOW); /* bounded by what was in flight */
	frag_message_unref(message);
}

static void *make_one(void *out)
{
	*(struct frag_message **)out = frag_message_create();
	return NULL;
}

Test(message, the_pool_of_a_thread_that_ended_is_taken_over)
{
	struct frag_message *messages[10];
	pthread_t thread;

	for (int i = 0; i < 10; i++) {
		cr_assert_eq(pthread_create(&thread, NULL, make_one, &messages[i]), 0);
		pthread_join(thread, NULL);
		cr_assert_not_null(messages[i]);
		cr_assert_eq(messages[i]->home.pool, messages[0]->home.pool);
	}
	for (int i = 0; i < 10; i++)
		frag_message_unref(messages[i]);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0);
}
