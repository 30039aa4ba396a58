// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <base/alloc.h>
#include <data/metadata.h>
#include <data/tensor.h>
#include <data/type.h>

/* A key with its value; immutable once it is in a dictionary that is shared. */
struct item {
	_Atomic uint32_t refs;
	uint32_t hash;
	const struct frag_type *type;
	size_t size;
	void *value;
	char key[FRAG_NAME_MAX + 1];
	/* the value follows here, aligned for its type */
};

struct body {
	_Atomic uint32_t refs;
	uint32_t count, capacity;
	struct item *items[]; /* in the order of the keys */
};

struct frag_metadata {
	enum frag_metadata_policy policy;
	uint64_t copies;   /* of a body that was shared, made because this one was written to */
	struct body *body; /* NULL: empty */
};

static uint32_t hash_key(const char *key, size_t length)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)key[i]) * 16777619u;
	return hash;
}

static struct item *item_create(const char *key, size_t key_length, const struct frag_type *type,
				size_t size)
{
	size_t align = type->align > 16 ? type->align : 16;
	size_t offset = (sizeof(struct item) + align - 1) & ~(align - 1);
	size_t total = offset + 1; /* one more byte for the NUL of a string */
	struct item *item;

	if (__builtin_add_overflow(total, size, &total) || total > PTRDIFF_MAX)
		return NULL;
	item = fragi_aligned_alloc(align, total);
	if (item == NULL)
		return NULL;
	memset(item, 0, total);
	atomic_init(&item->refs, 1);
	item->hash = hash_key(key, key_length);
	item->type = type;
	item->size = size;
	item->value = (char *)item + offset;
	memcpy(item->key, key, key_length);
	return item;
}

static void item_unref(struct item *item)
{
	uint32_t before = atomic_fetch_sub_explicit(&item->refs, 1, memory_order_acq_rel);

	assert(before > 0);
	if (before != 1)
		return;
	if (item->type->fini != NULL)
		fragi_value_fini(item->type, item->value, item->size);
	fragi_free(item);
}

static void body_unref(struct body *body)
{
	if (body == NULL || atomic_fetch_sub_explicit(&body->refs, 1, memory_order_acq_rel) != 1)
		return;
	assert(atomic_load_explicit(&body->refs, memory_order_relaxed) == 0);
	for (uint32_t i = 0; i < body->count; i++)
		item_unref(body->items[i]);
	fragi_free(body);
}

static uint32_t count_of(const struct frag_metadata *metadata)
{
	return metadata->body != NULL ? metadata->body->count : 0;
}

/* Returns the index of a key, or the number of keys when it is not there. */
static uint32_t index_of(const struct frag_metadata *metadata, const char *key, size_t length)
{
	uint32_t count = count_of(metadata), hash = hash_key(key, length), i;

	for (i = 0; i < count; i++)
		if (metadata->body->items[i]->hash == hash &&
		    memcmp(metadata->body->items[i]->key, key, length + 1) == 0)
			break;
	return i;
}

/*
 * Gives the dictionary a body that no other one shares, with room for `more` keys. Returns 0 or
 * -ENOMEM.
 */
static int make_own(struct frag_metadata *metadata, uint32_t more)
{
	struct body *body = metadata->body, *own;
	uint32_t count = count_of(metadata), capacity = count + more;
	bool is_own = body != NULL && atomic_load_explicit(&body->refs, memory_order_acquire) == 1;

	if (is_own && capacity <= body->capacity)
		return 0;
	if (more > 0)
		capacity = capacity < 8 ? 8 : capacity + capacity / 2;
	own = is_own ? fragi_realloc(body, sizeof(*own) + capacity * sizeof(own->items[0]))
		     : fragi_malloc(sizeof(*own) + capacity * sizeof(own->items[0]));
	if (own == NULL)
		return -ENOMEM;
	own->capacity = capacity;
	metadata->body = own;
	if (is_own)
		return 0;
	atomic_init(&own->refs, 1);
	own->count = count;
	metadata->copies += count > 0;
	for (uint32_t i = 0; i < count; i++) {
		own->items[i] = body->items[i];
		atomic_fetch_add_explicit(&own->items[i]->refs, 1, memory_order_relaxed);
	}
	body_unref(body);
	return 0;
}

static void remove_at(struct body *body, uint32_t i)
{
	item_unref(body->items[i]);
	body->count--;
	memmove(&body->items[i], &body->items[i + 1], (body->count - i) * sizeof(body->items[0]));
}

/*
 * Stores an item, whose reference it takes, under the policy. The caller has made the body its own,
 * with room for the item, and has ruled out a clash under raise.
 */
static void put_item(struct frag_metadata *metadata, struct item *item)
{
	uint32_t i = index_of(metadata, item->key, strlen(item->key));
	struct body *body = metadata->body;

	if (i == body->count) {
		body->items[body->count++] = item;
		return;
	}
	switch (metadata->policy) {
	case FRAG_METADATA_INPLACE_UPDATE:
		item_unref(body->items[i]);
		body->items[i] = item;
		break;
	case FRAG_METADATA_UPDATE:
		remove_at(body, i);
		body->items[body->count++] = item;
		break;
	case FRAG_METADATA_DEFAULT:
	case FRAG_METADATA_REJECT:
	case FRAG_METADATA_RAISE:
	default:
		item_unref(item);
	}
}

static bool raises(const struct frag_metadata *metadata)
{
	return metadata->policy == FRAG_METADATA_DEFAULT || metadata->policy == FRAG_METADATA_RAISE;
}

struct frag_metadata *fragi_metadata_create(enum frag_metadata_policy policy)
{
	struct frag_metadata *metadata = fragi_calloc(1, sizeof(*metadata));

	if (metadata != NULL)
		metadata->policy = policy;
	return metadata;
}

void fragi_metadata_destroy(struct frag_metadata *metadata)
{
	if (metadata == NULL)
		return;
	body_unref(metadata->body);
	fragi_free(metadata);
}

struct frag_metadata *fragi_metadata_copy(const struct frag_metadata *metadata)
{
	struct frag_metadata *copy = fragi_metadata_create(metadata->policy);

	if (copy != NULL && metadata->body != NULL) {
		copy->body = metadata->body;
		atomic_fetch_add_explicit(&copy->body->refs, 1, memory_order_relaxed);
	}
	return copy;
}

int fragi_metadata_merge(struct frag_metadata *dst, const struct frag_metadata *src,
			 const char **out_key)
{
	uint32_t added = 0;
	const char *key;

	if (src == NULL || count_of(src) == 0 || (src->body == dst->body && !raises(dst)))
		return 0;
	if (count_of(dst) == 0) {
		body_unref(dst->body);
		dst->body = src->body;
		atomic_fetch_add_explicit(&dst->body->refs, 1, memory_order_relaxed);
		return 0;
	}
	for (uint32_t i = 0; i < src->body->count; i++) {
		key = src->body->items[i]->key;
		if (index_of(dst, key, strlen(key)) == count_of(dst)) {
			added++;
		} else if (raises(dst)) {
			if (out_key != NULL)
				*out_key = key;
			return -EEXIST;
		}
	}
	if (count_of(dst) + added > FRAG_METADATA_KEYS_MAX)
		return -E2BIG;
	if (added == 0 && dst->policy == FRAG_METADATA_REJECT)
		return 0;
	if (make_own(dst, added) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < src->body->count; i++) {
		atomic_fetch_add_explicit(&src->body->items[i]->refs, 1, memory_order_relaxed);
		put_item(dst, src->body->items[i]);
	}
	return 0;
}

const char *fragi_metadata_at(const struct frag_metadata *metadata, uint32_t i,
			      const struct frag_type **out_type, const void **out_value,
			      size_t *out_size)
{
	if (i >= count_of(metadata))
		return NULL;
	*out_type = metadata->body->items[i]->type;
	*out_value = metadata->body->items[i]->value;
	*out_size = metadata->body->items[i]->size;
	return metadata->body->items[i]->key;
}

int fragi_metadata_append(struct frag_metadata *metadata, const char *key, size_t key_length,
			  const struct frag_type *type, size_t size, void **out_value)
{
	char text[FRAG_NAME_MAX + 1] = "";
	struct item *item;

	if (key_length == 0 || key_length > FRAG_NAME_MAX || memchr(key, '\0', key_length) != NULL)
		return -EINVAL;
	memcpy(text, key, key_length);
	if (index_of(metadata, text, key_length) < count_of(metadata))
		return -EEXIST;
	if (count_of(metadata) >= FRAG_METADATA_KEYS_MAX)
		return -E2BIG;
	if (make_own(metadata, 1) < 0)
		return -ENOMEM;
	item = item_create(text, key_length, type, size);
	if (item == NULL)
		return -ENOMEM;
	metadata->body->items[metadata->body->count++] = item;
	*out_value = item->value;
	return 0;
}

int frag_metadata_set(struct frag_metadata *metadata, const char *key, const struct frag_type *type,
		      const void *value, size_t size)
{
	size_t key_length = key != NULL ? strnlen(key, FRAG_NAME_MAX + 1) : 0;
	struct item *item;
	bool is_new;

	if (key_length == 0 || key_length > FRAG_NAME_MAX || type == NULL || value == NULL)
		return -EINVAL;
	if (type == &frag_type_string)
		size = strlen(value);
	if (fragi_type_check_size(type, size) < 0 ||
	    (type == &frag_type_tensor && *(struct frag_tensor *const *)value == NULL))
		return -EINVAL;
	is_new = index_of(metadata, key, key_length) == count_of(metadata);
	if (!is_new && raises(metadata))
		return -EEXIST;
	if (is_new && count_of(metadata) >= FRAG_METADATA_KEYS_MAX)
		return -E2BIG;
	if (!is_new && metadata->policy == FRAG_METADATA_REJECT && type->fini == NULL)
		return 0;
	item = item_create(key, key_length, type, size);
	if (item == NULL)
		return -ENOMEM;
	memcpy(item->value, value, size);
	if (type == &frag_type_tensor)
		fragi_tensor_freeze(*(struct frag_tensor *const *)value);
	if (!is_new && metadata->policy == FRAG_METADATA_REJECT) {
		item_unref(item);
		return 0;
	}
	if (make_own(metadata, is_new) < 0) {
		fragi_free(item); /* not item_unref: the caller keeps what the value holds */
		return -ENOMEM;
	}
	put_item(metadata, item);
	return 0;
}

int frag_metadata_set_bool(struct frag_metadata *metadata, const char *key, int value)
{
	bool truth = value != 0;

	return frag_metadata_set(metadata, key, &frag_type_bool, &truth, sizeof(truth));
}

int frag_metadata_set_i64(struct frag_metadata *metadata, const char *key, int64_t value)
{
	return frag_metadata_set(metadata, key, &frag_type_i64, &value, sizeof(value));
}

int frag_metadata_set_f64(struct frag_metadata *metadata, const char *key, double value)
{
	return frag_metadata_set(metadata, key, &frag_type_f64, &value, sizeof(value));
}

int frag_metadata_set_string(struct frag_metadata *metadata, const char *key, const char *value)
{
	return frag_metadata_set(metadata, key, &frag_type_string, value, 0);
}

int frag_metadata_set_tensor(struct frag_metadata *metadata, const char *key,
			     struct frag_tensor *tensor)
{
	int r = frag_metadata_set(metadata, key, &frag_type_tensor, &tensor, sizeof(tensor));

	if (r < 0)
		frag_tensor_unref(tensor);
	return r;
}

static const struct item *find(const struct frag_metadata *metadata, const char *key)
{
	size_t length = strnlen(key, FRAG_NAME_MAX + 1);
	uint32_t i;

	if (length > FRAG_NAME_MAX)
		return NULL;
	i = index_of(metadata, key, length);
	return i < count_of(metadata) ? metadata->body->items[i] : NULL;
}

static int find_typed(const struct frag_metadata *metadata, const char *key,
		      const struct frag_type *type, const void **out_value)
{
	const struct item *item = find(metadata, key);

	if (item == NULL)
		return -ENOENT;
	if (item->type != type && !frag_type_equal(item->type, type))
		return -EPROTOTYPE;
	*out_value = item->value;
	return 0;
}

int frag_metadata_get(const struct frag_metadata *metadata, const char *key,
		      const struct frag_type **out_type, const void **out_value, size_t *out_size)
{
	const struct item *item = find(metadata, key);

	if (item == NULL)
		return -ENOENT;
	if (out_type != NULL)
		*out_type = item->type;
	if (out_value != NULL)
		*out_value = item->value;
	if (out_size != NULL)
		*out_size = item->size;
	return 0;
}

int frag_metadata_get_bool(const struct frag_metadata *metadata, const char *key, int *out_value)
{
	const void *value;
	int r = find_typed(metadata, key, &frag_type_bool, &value);

	if (r == 0)
		*out_value = *(const bool *)value;
	return r;
}

int frag_metadata_get_i64(const struct frag_metadata *metadata, const char *key, int64_t *out_value)
{
	const void *value;
	int r = find_typed(metadata, key, &frag_type_i64, &value);

	if (r == 0)
		*out_value = *(const int64_t *)value;
	return r;
}

int frag_metadata_get_f64(const struct frag_metadata *metadata, const char *key, double *out_value)
{
	const void *value;
	int r = find_typed(metadata, key, &frag_type_f64, &value);

	if (r == 0)
		*out_value = *(const double *)value;
	return r;
}

int frag_metadata_get_string(const struct frag_metadata *metadata, const char *key,
			     const char **out_value)
{
	const void *value;
	int r = find_typed(metadata, key, &frag_type_string, &value);

	if (r == 0)
		*out_value = value;
	return r;
}

int frag_metadata_get_tensor(const struct frag_metadata *metadata, const char *key,
			     struct frag_tensor **out_value)
{
	const void *value;
	int r = find_typed(metadata, key, &frag_type_tensor, &value);

	if (r == 0)
		*out_value = *(struct frag_tensor *const *)value;
	return r;
}

#define GET_OR(name, ctype)                                                                        \
	int frag_metadata_get_##name##_or(const struct frag_metadata *metadata, const char *key,   \
					  ctype otherwise, ctype *out_value)                       \
	{                                                                                          \
		int r = frag_metadata_get_##name(metadata, key, out_value);                        \
                                                                                                   \
		if (r == -ENOENT)                                                                  \
			*out_value = otherwise;                                                    \
		return r == -ENOENT ? 0 : r;                                                       \
	}
GET_OR(bool, int)
GET_OR(i64, int64_t)
GET_OR(f64, double)
GET_OR(string, const char *)

int frag_metadata_has(const struct frag_metadata *metadata, const char *key)
{
	return find(metadata, key) != NULL;
}

int frag_metadata_erase(struct frag_metadata *metadata, const char *key)
{
	const struct item *item = find(metadata, key);

	if (item == NULL)
		return -ENOENT;
	if (make_own(metadata, 0) < 0)
		return -ENOMEM;
	remove_at(metadata->body, index_of(metadata, key, strlen(key)));
	return 0;
}

void frag_metadata_clear(struct frag_metadata *metadata)
{
	struct body *body = metadata->body;

	if (body == NULL)
		return;
	if (atomic_load_explicit(&body->refs, memory_order_acquire) != 1) {
		body_unref(body);
		metadata->body = NULL;
		return;
	}
	while (body->count > 0)
		item_unref(body->items[--body->count]);
}

uint32_t frag_metadata_count(const struct frag_metadata *metadata)
{
	return count_of(metadata);
}

const char *frag_metadata_key(const struct frag_metadata *metadata, uint32_t i)
{
	return i < count_of(metadata) ? metadata->body->items[i]->key : NULL;
}

enum frag_metadata_policy fragi_metadata_policy(const struct frag_metadata *metadata)
{
	return metadata->policy;
}

uint64_t frag_metadata_copies(const struct frag_metadata *metadata)
{
	return metadata->copies;
}
