// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <data/metadata.h>
#include <data/pool.h>
#include <frag/frag.h>

static struct frag_metadata *create(enum frag_metadata_policy policy)
{
	struct frag_metadata *metadata = fragi_metadata_create(policy);

	cr_assert_not_null(metadata);
	return metadata;
}

static int64_t i64_at(const struct frag_metadata *metadata, const char *key)
{
	int64_t value = -1;

	cr_assert_eq(frag_metadata_get_i64(metadata, key, &value), 0, "%s", key);
	return value;
}

static void expect_keys(const struct frag_metadata *metadata, const char *expected)
{
	char keys[256] = "";

	for (uint32_t i = 0; frag_metadata_key(metadata, i) != NULL; i++) {
		strcat(keys, frag_metadata_key(metadata, i));
		strcat(keys, " ");
	}
	cr_expect_str_eq(keys, expected);
}

Test(metadata, typed_values)
{
	struct frag_metadata *m = create(FRAG_METADATA_DEFAULT);
	const struct frag_type *type;
	const char *text = NULL;
	const void *value;
	int flag = 0;
	double x = 0;
	int64_t i = 0;
	size_t size;

	cr_expect_eq(frag_metadata_set_bool(m, "flag", 7), 0);
	cr_expect_eq(frag_metadata_set_i64(m, "i", INT64_MIN), 0);
	cr_expect_eq(frag_metadata_set_f64(m, "x", 0.5), 0);
	cr_expect_eq(
		frag_metadata_set_string(m, "text", "a text of some length, longer than inline"),
		0);
	cr_expect_eq(frag_metadata_set(m, "raw", &frag_type_bytes, "\0\1", 2), 0);
	cr_expect(frag_metadata_get_bool(m, "flag", &flag) == 0 && flag == 1);
	cr_expect(frag_metadata_get_i64(m, "i", &i) == 0 && i == INT64_MIN);
	cr_expect(frag_metadata_get_f64(m, "x", &x) == 0 && x == 0.5);
	cr_expect_eq(frag_metadata_get_string(m, "text", &text), 0);
	cr_expect_str_eq(text, "a text of some length, longer than inline");
	cr_expect_eq(frag_metadata_get(m, "raw", &type, &value, &size), 0);
	cr_expect(type == &frag_type_bytes && size == 2 && memcmp(value, "\0\1", 2) == 0);
	cr_expect_eq(frag_metadata_get_i64(m, "x", &i), -EPROTOTYPE);
	cr_expect_eq(frag_metadata_get_i64(m, "none", &i), -ENOENT);
	cr_expect_eq(i, INT64_MIN);
	cr_expect_eq(frag_metadata_count(m), 5);
	expect_keys(m, "flag i x text raw ");
	fragi_metadata_destroy(m);
	fragi_metadata_destroy(NULL);
}

Test(metadata, what_is_no_key_or_value_is_refused)
{
	struct frag_metadata *m = create(FRAG_METADATA_UPDATE);
	char key[FRAG_NAME_MAX + 2];
	int64_t x = 0;

	memset(key, 'k', sizeof(key));
	key[sizeof(key) - 1] = '\0';
	cr_expect_eq(frag_metadata_set_i64(m, key, 1), -EINVAL);
	cr_expect_eq(frag_metadata_set_i64(m, "", 1), -EINVAL);
	cr_expect_eq(frag_metadata_set_i64(m, NULL, 1), -EINVAL);
	cr_expect_eq(frag_metadata_set(m, "k", &frag_type_i64, NULL, 8), -EINVAL);
	cr_expect_eq(frag_metadata_set(m, "k", &frag_type_i64, &x, 4), -EINVAL);
	cr_expect_eq(frag_metadata_has(m, key), 0);
	key[FRAG_NAME_MAX] = '\0';
	cr_expect_eq(frag_metadata_set_i64(m, key, 1), 0);
	cr_expect_eq(i64_at(m, key), 1);
	cr_expect_eq(frag_metadata_count(m), 1);
	fragi_metadata_destroy(m);
}

Test(metadata, policies_of_set)
{
	struct frag_metadata *raise = create(FRAG_METADATA_DEFAULT),
			     *update = create(FRAG_METADATA_UPDATE),
			     *inplace = create(FRAG_METADATA_INPLACE_UPDATE),
			     *reject = create(FRAG_METADATA_REJECT);
	struct frag_metadata *all[] = {raise, update, inplace, reject};

	for (int i = 0; i < 4; i++) {
		frag_metadata_set_i64(all[i], "a", 1);
		frag_metadata_set_i64(all[i], "b", 2);
	}
	cr_expect_eq(frag_metadata_set_i64(raise, "a", 9), -EEXIST);
	cr_expect_eq(i64_at(raise, "a"), 1);
	cr_expect_eq(frag_metadata_set_i64(update, "a", 9), 0);
	cr_expect_eq(i64_at(update, "a"), 9);
	expect_keys(update, "b a ");
	cr_expect_eq(frag_metadata_set_string(inplace, "a", "nine"), 0);
	expect_keys(inplace, "a b ");
	cr_expect_eq(frag_metadata_set_i64(reject, "a", 9), 0);
	cr_expect_eq(i64_at(reject, "a"), 1);
	for (int i = 0; i < 4; i++)
		fragi_metadata_destroy(all[i]);
}

Test(metadata, erase_and_clear)
{
	struct frag_metadata *m = create(FRAG_METADATA_DEFAULT);

	frag_metadata_set_i64(m, "a", 1);
	frag_metadata_set_i64(m, "b", 2);
	frag_metadata_set_i64(m, "c", 3);
	cr_expect_eq(frag_metadata_erase(m, "b"), 0);
	cr_expect_eq(frag_metadata_erase(m, "b"), -ENOENT);
	expect_keys(m, "a c ");
	frag_metadata_clear(m);
	cr_expect_eq(frag_metadata_count(m), 0);
	cr_expect_eq(frag_metadata_has(m, "a"), 0);
	cr_expect_eq(frag_metadata_set_i64(m, "a", 4), 0);
	fragi_metadata_destroy(m);
}

Test(metadata, copies_are_apart)
{
	struct frag_metadata *m = create(FRAG_METADATA_UPDATE), *copy;

	frag_metadata_set_i64(m, "a", 1);
	frag_metadata_set_i64(m, "b", 2);
	copy = fragi_metadata_copy(m);
	frag_metadata_set_i64(m, "a", 9);
	frag_metadata_erase(m, "b");
	cr_expect_eq(i64_at(copy, "a"), 1);
	cr_expect_eq(i64_at(copy, "b"), 2);
	frag_metadata_clear(copy);
	cr_expect_eq(i64_at(m, "a"), 9);
	fragi_metadata_destroy(copy);
	fragi_metadata_destroy(m);
}

Test(metadata, merge_by_policy)
{
	struct frag_metadata *src = create(FRAG_METADATA_DEFAULT), *dst;
	const char *key = NULL;

	frag_metadata_set_i64(src, "a", 10);
	frag_metadata_set_i64(src, "c", 30);

	dst = create(FRAG_METADATA_RAISE);
	frag_metadata_set_i64(dst, "b", 2);
	frag_metadata_set_i64(dst, "c", 3);
	cr_expect_eq(fragi_metadata_merge(dst, src, &key), -EEXIST);
	cr_expect_str_eq(key, "c");
	expect_keys(dst, "b c ");
	cr_expect_eq(i64_at(dst, "c"), 3);
	frag_metadata_erase(dst, "c");
	cr_expect_eq(fragi_metadata_merge(dst, src, NULL), 0);
	expect_keys(dst, "b a c ");
	fragi_metadata_destroy(dst);

	dst = create(FRAG_METADATA_INPLACE_UPDATE);
	frag_metadata_set_i64(dst, "c", 3);
	cr_expect_eq(fragi_metadata_merge(dst, src, NULL), 0);
	expect_keys(dst, "c a ");
	cr_expect_eq(i64_at(dst, "c"), 30);
	fragi_metadata_destroy(dst);

	dst = create(FRAG_METADATA_REJECT);
	frag_metadata_set_i64(dst, "c", 3);
	cr_expect_eq(fragi_metadata_merge(dst, src, NULL), 0);
	cr_expect_eq(i64_at(dst, "c"), 3);
	cr_expect_eq(i64_at(dst, "a"), 10);
	fragi_metadata_destroy(dst);

	cr_expect_eq(fragi_metadata_merge(src, NULL, NULL), 0);
	fragi_metadata_destroy(src);
}

Test(metadata, merge_into_an_empty_one_shares_and_stays_apart)
{
	struct frag_metadata *src = create(FRAG_METADATA_DEFAULT),
			     *dst = create(FRAG_METADATA_UPDATE),
			     *raise = create(FRAG_METADATA_RAISE);

	frag_metadata_set_i64(src, "a", 1);
	fragi_alloc_fail_after(0, INT64_MAX);
	cr_expect_eq(fragi_metadata_merge(dst, src, NULL), 0);
	cr_expect_eq(fragi_metadata_merge(dst, src, NULL), 0);
	cr_expect_eq(fragi_metadata_merge(raise, src, NULL), 0);
	cr_expect_eq(fragi_metadata_merge(raise, src, NULL), -EEXIST);
	cr_expect_eq(fragi_alloc_fail_off(), 0);
	frag_metadata_set_i64(dst, "a", 2);
	cr_expect_eq(i64_at(src, "a"), 1);
	cr_expect_eq(i64_at(dst, "a"), 2);
	fragi_metadata_destroy(src);
	fragi_metadata_destroy(dst);
	fragi_metadata_destroy(raise);
}

Test(metadata, no_more_keys_than_the_limit)
{
	struct frag_metadata *m = create(FRAG_METADATA_UPDATE),
			     *more = create(FRAG_METADATA_UPDATE);
	char key[16];

	for (int i = 0; i < FRAG_METADATA_KEYS_MAX; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		cr_assert_eq(frag_metadata_set_i64(m, key, i), 0);
	}
	cr_expect_eq(frag_metadata_set_i64(m, "more", 1), -E2BIG);
	cr_expect_eq(frag_metadata_set_i64(m, "k7", 1), 0);
	frag_metadata_set_i64(more, "k8", 80);
	cr_expect_eq(fragi_metadata_merge(m, more, NULL), 0);
	frag_metadata_set_i64(more, "more", 1);
	cr_expect_eq(fragi_metadata_merge(m, more, NULL), -E2BIG);
	cr_expect_eq(frag_metadata_count(m), FRAG_METADATA_KEYS_MAX);
	fragi_metadata_destroy(m);
	fragi_metadata_destroy(more);
}

Test(metadata, every_failed_allocation_leaves_it_as_it_was)
{
	struct frag_metadata *m = create(FRAG_METADATA_UPDATE), *shared, *again;
	int64_t failed = 1;
	int r;

	frag_metadata_set_i64(m, "a", 1);
	shared = fragi_metadata_copy(m);
	again = fragi_metadata_copy(m);
	for (int64_t n = 0; failed > 0; n++) {
		fragi_alloc_fail_after(n, 1);
		r = frag_metadata_set_i64(m, "a", 2);
		failed = fragi_alloc_fail_off();
		cr_assert_eq(r, failed > 0 ? -ENOMEM : 0);
		cr_assert_eq(i64_at(m, "a"), failed > 0 ? 1 : 2);
		cr_assert_eq(i64_at(shared, "a"), 1);
	}
	fragi_alloc_fail_after(0, INT64_MAX);
	cr_expect_eq(frag_metadata_erase(again, "a"), -ENOMEM, "its keys are another's, too");
	cr_expect_eq(i64_at(again, "a"), 1);
	cr_expect_null(fragi_metadata_copy(m));
	cr_expect_null(fragi_metadata_create(FRAG_METADATA_UPDATE));
	fragi_alloc_fail_off();
	fragi_metadata_destroy(m);
	fragi_metadata_destroy(shared);
	fragi_metadata_destroy(again);
}

static int finis;

static void count_fini(void *value)
{
	finis += *(int *)value;
}

Test(metadata, fini_runs_once_for_all_copies)
{
	static const struct frag_type counted = {FRAG_TYPE_INIT, .name = "counted",
						 .size = sizeof(int), .fini = count_fini};
	struct frag_metadata *m = create(FRAG_METADATA_REJECT), *copy;
	int one = 1, ten = 10;

	cr_expect_eq(frag_metadata_set(m, "c", &counted, &one, sizeof(one)), 0);
	/* rejected, and dropped */
	cr_expect_eq(frag_metadata_set(m, "c", &counted, &ten, sizeof(ten)), 0);
	cr_expect_eq(finis, 10);
	copy = fragi_metadata_copy(m);
	frag_metadata_set_i64(copy, "other", 1);
	fragi_metadata_destroy(m);
	cr_expect_eq(finis, 10);
	fragi_metadata_destroy(copy);
	cr_expect_eq(finis, 11);
}

static struct frag_tensor *tensor_of(const float *values, int64_t count)
{
	struct frag_tensor *tensor = NULL;

	cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, 1,
					&count, &tensor),
		     0);
	memcpy(frag_tensor_writable(tensor), values, (size_t)count * sizeof(*values));
	return tensor;
}

Test(metadata, tensors)
{
	const float values[3] = {1, 2.5f, -3};
	struct frag_metadata *m = create(FRAG_METADATA_RAISE), *copy;
	struct frag_tensor *tensor = tensor_of(values, 3), *got = NULL;
	int64_t number;

	frag_tensor_ref(tensor);
	cr_expect_eq(frag_metadata_set_tensor(m, "calibration", tensor), 0);
	cr_expect_eq(frag_metadata_set_tensor(m, "none", NULL), -EINVAL);
	cr_expect_eq(frag_metadata_get_tensor(m, "calibration", &got), 0);
	cr_expect_eq(got, tensor, "by reference");
	cr_expect_null(frag_tensor_writable(tensor), "immutable");
	cr_expect_eq(frag_metadata_get_i64(m, "calibration", &number), -EPROTOTYPE);
	cr_expect_eq(frag_metadata_get_tensor(m, "other", &got), -ENOENT);
	/* refused, and the reference is given up */
	cr_expect_eq(frag_metadata_set_tensor(m, "calibration", frag_tensor_ref(tensor)), -EEXIST);
	cr_expect_eq(frag_metadata_set_tensor(m, "", frag_tensor_ref(tensor)), -EINVAL);
	frag_tensor_unref(tensor);
	cr_expect_null(frag_tensor_writable(tensor), "frozen, although m alone holds it");
	copy = fragi_metadata_copy(m);
	fragi_metadata_destroy(m);
	cr_expect_eq(frag_metadata_get_tensor(copy, "calibration", &got), 0);
	cr_expect_eq(memcmp(frag_tensor_data(got), values, sizeof(values)), 0);
	fragi_metadata_destroy(copy);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

Test(metadata, get_with_a_default)
{
	struct frag_metadata *m = create(FRAG_METADATA_DEFAULT);
	const char *text = NULL;
	int64_t number = 0;
	double x = 0;
	int flag = 0;

	frag_metadata_set_i64(m, "i", 1);
	frag_metadata_set_f64(m, "x", 0.5);
	frag_metadata_set_bool(m, "flag", 0);
	frag_metadata_set_string(m, "text", "there");
	cr_expect(frag_metadata_get_i64_or(m, "i", 7, &number) == 0 && number == 1);
	cr_expect(frag_metadata_get_i64_or(m, "none", 7, &number) == 0 && number == 7);
	cr_expect(frag_metadata_get_f64_or(m, "x", 7, &x) == 0 && x == 0.5);
	cr_expect(frag_metadata_get_f64_or(m, "none", 7, &x) == 0 && x == 7);
	cr_expect(frag_metadata_get_bool_or(m, "flag", 1, &flag) == 0 && flag == 0);
	cr_expect(frag_metadata_get_bool_or(m, "none", 1, &flag) == 0 && flag == 1);
	cr_expect_eq(frag_metadata_get_string_or(m, "text", "other", &text), 0);
	cr_expect_str_eq(text, "there");
	cr_expect_eq(frag_metadata_get_string_or(m, "none", "other", &text), 0);
	cr_expect_str_eq(text, "other");
	/* A default does not hide that the key holds something else. */
	cr_expect_eq(frag_metadata_get_i64_or(m, "x", 7, &number), -EPROTOTYPE);
	cr_expect_eq(number, 7);
	cr_expect_eq(frag_metadata_count(m), 4, "a default is not set");
	fragi_metadata_destroy(m);
}

Test(metadata, a_change_copies_what_is_shared_once)
{
	struct frag_metadata *m = NULL, *copy = NULL, *other = NULL;

	cr_assert_eq(frag_metadata_create(FRAG_METADATA_UPDATE, &m), 0);
	frag_metadata_set_i64(m, "a", 1);
	frag_metadata_set_i64(m, "b", 2);
	cr_expect_eq(frag_metadata_copies(m), 0, "nothing was shared");
	cr_assert_eq(frag_metadata_copy(m, &copy), 0);
	cr_assert_eq(frag_metadata_copy(m, &other), 0);
	cr_expect_eq(frag_metadata_has(copy, "a"), 1);
	cr_expect_eq(frag_metadata_copies(m) + frag_metadata_copies(copy), 0, "reading copies");
	frag_metadata_set_i64(copy, "a", 9);
	cr_expect_eq(frag_metadata_copies(copy), 1);
	frag_metadata_set_i64(copy, "c", 3);
	frag_metadata_erase(copy, "b");
	cr_expect_eq(frag_metadata_copies(copy), 1, "it is its own now");
	frag_metadata_erase(m, "a");
	cr_expect_eq(frag_metadata_copies(m), 1, "the third one still shares it");
	frag_metadata_set_i64(other, "a", 4);
	cr_expect_eq(frag_metadata_copies(other), 0, "nobody shares it any more");
	expect_keys(m, "b ");
	expect_keys(copy, "a c ");
	expect_keys(other, "b a ");
	frag_metadata_destroy(copy);
	cr_assert_eq(frag_metadata_copy(m, &copy), 0);
	frag_metadata_clear(copy);
	cr_expect_eq(frag_metadata_copies(copy), 0, "there is nothing to copy");
	expect_keys(m, "b ");
	frag_metadata_destroy(copy);
	frag_metadata_destroy(other);
	frag_metadata_destroy(m);
	frag_metadata_destroy(NULL);
	cr_expect_eq(frag_metadata_create((enum frag_metadata_policy)5, &m), -EINVAL);
}

/* The policy decides before anything is copied. */
Test(metadata, what_is_rejected_copies_nothing)
{
	struct frag_metadata *m = create(FRAG_METADATA_REJECT), *copy, *raise;
	const float values[1] = {1};

	frag_metadata_set_i64(m, "a", 1);
	frag_metadata_set_tensor(m, "t", tensor_of(values, 1));
	copy = fragi_metadata_copy(m);
	cr_expect_eq(frag_metadata_set_i64(copy, "a", 2), 0);
	cr_expect_eq(frag_metadata_set_tensor(copy, "t", tensor_of(values, 1)), 0);
	raise = create(FRAG_METADATA_RAISE);
	frag_metadata_set_i64(raise, "a", 3);
	cr_expect_eq(frag_metadata_update(copy, raise), 0);
	cr_expect_eq(frag_metadata_copies(copy), 0);
	cr_expect_eq(i64_at(copy, "a"), 1);
	frag_metadata_clear(raise);
	cr_expect_eq(frag_metadata_update(raise, m), 0, "shares it");
	cr_expect_eq(frag_metadata_set_i64(raise, "a", 4), -EEXIST);
	cr_expect_eq(frag_metadata_erase(raise, "none"), -ENOENT);
	cr_expect_eq(frag_metadata_copies(raise), 0);
	fragi_metadata_destroy(m);
	fragi_metadata_destroy(copy);
	fragi_metadata_destroy(raise);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

Test(metadata, a_deep_copy_shares_nothing)
{
	static const struct frag_type bare = {FRAG_TYPE_INIT, .name = "bare", .size = sizeof(int),
					      .fini = count_fini};
	struct frag_metadata *m = create(FRAG_METADATA_INPLACE_UPDATE), *deep = NULL, *shallow;
	const float values[300] = {1, 2, 3};
	struct frag_tensor *in = NULL, *out = NULL;
	struct frag_collection *map = NULL;
	const void *value, *got;
	int one = 1;
	size_t size;

	frag_metadata_set_i64(m, "i", 5);
	frag_metadata_set_string(m, "text", "some text");
	frag_metadata_set_tensor(m, "t", tensor_of(values, 300));
	cr_assert_eq(frag_collection_create("string{}", &map, NULL), 0);
	frag_collection_put(map, "k", "v", 1);
	cr_assert_eq(frag_collection_value(map, &value, &size), 0);
	frag_metadata_set(m, "map", frag_collection_type(map), value, size);
	frag_collection_destroy(map);
	cr_assert_eq(frag_metadata_deep_copy(m, &deep), 0);
	shallow = fragi_metadata_copy(m);
	frag_metadata_get_tensor(m, "t", &in);
	frag_metadata_get_tensor(shallow, "t", &out);
	cr_expect_eq(in, out, "a shallow one shares the tensor");
	frag_metadata_get_tensor(deep, "t", &out);
	cr_expect_neq(in, out);
	cr_expect_neq(frag_tensor_data(in), frag_tensor_data(out));
	frag_metadata_set_i64(deep, "i", 6);
	cr_expect_eq(frag_metadata_copies(deep), 0, "there was nothing left to copy");
	expect_keys(deep, "i text t map ");
	cr_expect_eq(i64_at(m, "i"), 5);
	fragi_metadata_destroy(m);
	fragi_metadata_destroy(shallow);
	cr_expect_eq(memcmp(frag_tensor_data(out), values, sizeof(values)), 0);
	cr_expect_null(frag_tensor_writable(out), "immutable as in every dictionary");
	cr_expect_eq(frag_metadata_get(deep, "map", NULL, &got, NULL), 0);
	cr_expect_str_eq(frag_collection_get(got, "k", NULL), "v");
	cr_expect_eq(frag_metadata_set(deep, "bare", &bare, &one, sizeof(one)), 0);
	cr_expect_eq(frag_metadata_deep_copy(deep, &m), -ENOTSUP, "nobody knows how to copy it");
	fragi_metadata_destroy(deep);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}

Test(metadata, a_deep_copy_survives_every_failed_allocation)
{
	struct frag_metadata *m = create(FRAG_METADATA_UPDATE), *deep;
	const float values[100] = {4};
	int64_t failed = 1;
	int r;

	frag_metadata_set_i64(m, "a", 1);
	frag_metadata_set_tensor(m, "t", tensor_of(values, 100));
	for (int64_t n = 0; failed > 0; n++) {
		deep = NULL;
		fragi_alloc_fail_after(n, 1);
		r = frag_metadata_deep_copy(m, &deep);
		failed = fragi_alloc_fail_off();
		cr_assert(failed > 0 ? r < 0 && deep == NULL : r == 0);
		fragi_metadata_destroy(deep);
	}
	fragi_metadata_destroy(m);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_TENSOR), 0);
}
