// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <base/alloc.h>
#include <base/strmap.h>
#include <data/collection.h>
#include <data/type.h>
#include <data/type_check.h>

#define SCALAR(name_, ctype_, headline_)                                                           \
	const struct frag_type frag_type_##name_ = {                                               \
		FRAG_TYPE_INIT,                                                                    \
		.name = #name_,                                                                    \
		.headline = headline_,                                                             \
		.size = sizeof(ctype_),                                                            \
		.align = _Alignof(ctype_),                                                         \
	}
SCALAR(bool, bool, "False or true");
SCALAR(i8, int8_t, "Signed integer of 8 bits");
SCALAR(i16, int16_t, "Signed integer of 16 bits");
SCALAR(i32, int32_t, "Signed integer of 32 bits");
SCALAR(i64, int64_t, "Signed integer of 64 bits");
SCALAR(u8, uint8_t, "Unsigned integer of 8 bits");
SCALAR(u16, uint16_t, "Unsigned integer of 16 bits");
SCALAR(u32, uint32_t, "Unsigned integer of 32 bits");
SCALAR(u64, uint64_t, "Unsigned integer of 64 bits");
SCALAR(f32, float, "IEEE 754 binary32");
SCALAR(f64, double, "IEEE 754 binary64");
SCALAR(complex64, float _Complex, "Complex number: two f32, real and imaginary part");
SCALAR(complex128, double _Complex, "Complex number: two f64, real and imaginary part");

_Static_assert(sizeof(bool) == 1, "a bool travels as one byte");
_Static_assert(sizeof(float) == 4 && sizeof(double) == 8,
	       "f32 and f64 travel as IEEE 754 binary32 and 64");

const struct frag_type frag_type_string = {FRAG_TYPE_INIT, .name = "string",
					   .headline = "UTF-8 text", .align = 1};
const struct frag_type frag_type_bytes = {FRAG_TYPE_INIT, .name = "bytes",
					  .headline = "Any number of any bytes", .align = 16};

static const struct frag_type *const scalars[] = {
	&frag_type_bool,       &frag_type_i8,  &frag_type_i16, &frag_type_i32,
	&frag_type_i64,        &frag_type_u8,  &frag_type_u16, &frag_type_u32,
	&frag_type_u64,        &frag_type_f32, &frag_type_f64, &frag_type_complex64,
	&frag_type_complex128,
};

/*
 * Two open-addressed hash tables, by address and by id, which are read without a lock. A slot is
 * written once. A table that has become too small is replaced by a larger one and is never freed,
 * because a reader may still use it.
 */
struct index {
	struct index *smaller;
	size_t mask;
	_Atomic(const struct fragi_type_info *) *by_address, *by_id;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fragi_strmap by_name; /* guarded by lock, as is every change of the tables */
static size_t count;
static _Atomic(struct index *) current;
static pthread_once_t builtin_once = PTHREAD_ONCE_INIT;

static size_t hash_u64(uint64_t x)
{
	x *= UINT64_C(0x9E3779B97F4A7C15);
	return (size_t)(x ^ (x >> 32));
}

static size_t address_slot(const struct index *index, const struct frag_type *type,
			   const struct fragi_type_info **out)
{
	size_t i = hash_u64((uint64_t)(uintptr_t)type) & index->mask;

	for (;; i = (i + 1) & index->mask) {
		*out = atomic_load_explicit(&index->by_address[i], memory_order_acquire);
		if (*out == NULL || (*out)->type == type)
			return i;
	}
}

static size_t id_slot(const struct index *index, uint64_t id, const struct fragi_type_info **out)
{
	size_t i = hash_u64(id) & index->mask;

	for (;; i = (i + 1) & index->mask) {
		*out = atomic_load_explicit(&index->by_id[i], memory_order_acquire);
		if (*out == NULL || (*out)->id == id)
			return i;
	}
}

static void index_put(struct index *index, const struct fragi_type_info *info)
{
	const struct fragi_type_info *unused;

	atomic_store_explicit(&index->by_address[address_slot(index, info->type, &unused)], info,
			      memory_order_release);
	if (info->is_twin)
		return;
	atomic_store_explicit(&index->by_id[id_slot(index, info->id, &unused)], info,
			      memory_order_release);
}

/* Makes room for `more` types: at most half of the slots are in use. */
static int index_reserve(size_t more)
{
	struct index *old = atomic_load(&current), *index;
	size_t slots = old != NULL ? old->mask + 1 : 128;
	const struct fragi_type_info *info;

	if (old != NULL && (count + more) * 2 <= slots)
		return 0;
	while ((count + more) * 2 > slots)
		slots *= 2;
	index = fragi_calloc(1, sizeof(*index) + 2 * slots * sizeof(index->by_id[0]));
	if (index == NULL)
		return -ENOMEM;
	index->smaller = old;
	index->mask = slots - 1;
	index->by_address = (void *)(index + 1);
	index->by_id = index->by_address + slots;
	for (size_t i = 0; old != NULL && i <= old->mask; i++) {
		info = atomic_load_explicit(&old->by_address[i], memory_order_relaxed);
		if (info != NULL)
			index_put(index, info);
	}
	atomic_store_explicit(&current, index, memory_order_release);
	return 0;
}

static uint64_t fnv(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001B3);
	return hash;
}

/*
 * The id is the 64-bit FNV-1a hash of the name with its NUL, then of each field's name with its
 * NUL, type id and count, then of the id of an array's element. It is never 0.
 */
static uint64_t type_id(const struct fragi_type_info *info)
{
	uint64_t hash =
		fnv(UINT64_C(0xCBF29CE484222325), info->type->name, strlen(info->type->name) + 1);

	for (uint32_t i = 0; i < info->field_count; i++) {
		const char *name = fragi_type_field_at(info->type, i)->name;

		hash = fnv(hash, name, strlen(name) + 1);
		hash = fnv(hash, &info->fields[i].of->id, sizeof(info->fields[i].of->id));
		hash = fnv(hash, &info->fields[i].count, sizeof(info->fields[i].count));
	}
	if (info->element != NULL)
		hash = fnv(hash, &info->element->id, sizeof(info->element->id));
	return hash != 0 ? hash : 1;
}

/*
 * The id of a collection follows from that of its element, and can be turned back: see
 * collection_of_id_locked.
 */
#define LIST_SALT UINT64_C(0xA24BAED4963EE407)
#define MAP_SALT UINT64_C(0x9FB21C651E98DF25)

static uint64_t collection_id(uint64_t element_id, enum fragi_type_kind kind)
{
	return (element_id << 1 | element_id >> 63) ^
	       (kind == FRAGI_TYPE_MAP ? MAP_SALT : LIST_SALT);
}

static uint64_t element_id(uint64_t id, enum fragi_type_kind kind)
{
	id ^= kind == FRAGI_TYPE_MAP ? MAP_SALT : LIST_SALT;
	return id >> 1 | id << 63;
}

/*
 * Makes the type "NAME[]" or "NAME{}" of an element: its table, name and info in one allocation.
 * - kind: FRAGI_TYPE_ARRAY, FRAGI_TYPE_LIST or FRAGI_TYPE_MAP
 */
static struct fragi_type_info *nested_create(const struct fragi_type_info *element,
					     enum fragi_type_kind kind)
{
	struct nested {
		struct fragi_type_info info;
		struct frag_type type;
		char name[];
	} * nested;
	size_t length = strlen(element->type->name);
	bool is_array = kind == FRAGI_TYPE_ARRAY;

	nested = fragi_calloc(1, sizeof(*nested) + length + sizeof("[]"));
	if (nested == NULL)
		return NULL;
	memcpy(nested->name, element->type->name, length);
	memcpy(nested->name + length, kind == FRAGI_TYPE_MAP ? "{}" : "[]", sizeof("[]"));
	nested->type.struct_size = sizeof(nested->type);
	nested->type.name = nested->name;
	nested->type.headline = element->type->headline;
	nested->type.align = element->type->align;
	if (!is_array && nested->type.align < FRAGI_COLLECTION_ALIGN)
		nested->type.align = FRAGI_COLLECTION_ALIGN;
	nested->type.fini = element->type->fini != NULL ? fragi_array_fini : NULL;
	nested->info.type = &nested->type;
	nested->info.kind = kind;
	nested->info.is_dense = is_array && element->is_dense;
	nested->info.element = element;
	nested->info.nesting = element->nesting + 1;
	nested->info.id = is_array ? type_id(&nested->info) : collection_id(element->id, kind);
	return &nested->info;
}

static void tables_put(const struct fragi_type_info *info)
{
	struct fragi_type_info *value = (struct fragi_type_info *)(uintptr_t)info;

	fragi_strmap_put(&by_name, info->type->name, value);
	index_put(atomic_load(&current), info);
	count++;
}

/*
 * Adds a type and its array type to the tables. Takes info, also on failure. Returns 0; -ENOMEM:
 * the tables are unchanged.
 */
static int add_locked(struct fragi_type_info *info)
{
	struct fragi_type_info *array = NULL;

	if (info->type->size > 0) {
		array = nested_create(info, FRAGI_TYPE_ARRAY);
		if (array == NULL)
			goto err_free;
	}
	if (index_reserve(2) < 0 || fragi_strmap_reserve(&by_name, 2) < 0)
		goto err_free;
	tables_put(info);
	if (array != NULL)
		tables_put(array);
	return 0;

err_free:
	fragi_free(array);
	fragi_free(info);
	return -ENOMEM;
}

/* Whether a collection may have such elements: their values hold no pointers. */
static bool may_be_collected(const struct fragi_type_info *element)
{
	enum fragi_type_kind kind =
		element->kind == FRAGI_TYPE_ARRAY ? element->element->kind : element->kind;

	return kind != FRAGI_TYPE_CUSTOM && kind != FRAGI_TYPE_OPAQUE;
}

/* Adds the collection of an element. Returns NULL: there is none, or memory is short. */
static struct fragi_type_info *collection_add_locked(const struct fragi_type_info *element,
						     enum fragi_type_kind kind)
{
	struct fragi_type_info *info;

	if (!may_be_collected(element) || element->nesting >= FRAGI_TYPE_NESTING_MAX ||
	    strlen(element->type->name) + 2 > FRAG_NAME_MAX)
		return NULL;
	info = nested_create(element, kind);
	if (info != NULL && add_locked(info) < 0)
		return NULL; /* add_locked has freed it */
	return info;
}

/*
 * Several plugins may contain the table of one struct, from a header that they share. Each table is
 * found by its address, the first one also by its name and id. Takes info, also on failure.
 */
static int add_twin_locked(struct fragi_type_info *info)
{
	if (index_reserve(1) < 0) {
		fragi_free(info);
		return -ENOMEM;
	}
	info->is_twin = true;
	index_put(atomic_load(&current), info);
	count++;
	return 0;
}

static bool field_is_equal(const struct fragi_type_info *a, const struct fragi_type_info *b,
			   uint32_t i)
{
	return strcmp(fragi_type_field_at(a->type, i)->name,
		      fragi_type_field_at(b->type, i)->name) == 0 &&
	       a->fields[i].of->id == b->fields[i].of->id &&
	       a->fields[i].offset == b->fields[i].offset &&
	       a->fields[i].count == b->fields[i].count;
}

/*
 * Compares a type with the registered one of its name. Returns 0: both are the same plain struct;
 * else -EEXIST with a sentence that names the first difference.
 */
static int check_twin(const struct fragi_type_info *old, const struct fragi_type_info *new,
		      struct frag_err *err)
{
	const char *name = old->type->name;
	uint32_t i = 0;

	if (old->kind != FRAGI_TYPE_PLAIN || new->kind != FRAGI_TYPE_PLAIN)
		return frag_err_set(
			err, -EEXIST,
			"type \"%s\" is registered already, by another table; rename one, or put the table into one library that both use",
			name);
	while (i < old->field_count && i < new->field_count &&field_is_equal(old, new, i))
		i++;
	if (i < old->field_count && i < new->field_count)
		return frag_err_set(
			err, -EEXIST,
			"type \"%s\" is registered already, and the tables differ at field %u (\"%s\" of type %s at byte %u, and \"%s\" of type %s at byte %u); build both libraries with the same header, or rename one type",
			name, i, fragi_type_field_at(old->type, i)->name,
			old->fields[i].of->type->name, old->fields[i].offset,
			fragi_type_field_at(new->type, i)->name, new->fields[i].of->type->name,
			new->fields[i].offset);
	if (old->field_count != new->field_count || old->type->size != new->type->size ||
	    old->type->align != new->type->align)
		return frag_err_set(
			err, -EEXIST,
			"type \"%s\" is registered already, with %u fields in %zu bytes, and here it has %u in %zu; build both libraries with the same header, or rename one type",
			name, old->field_count, old->type->size, new->field_count, new->type->size);
	return 0;
}

static void add_builtin(const struct frag_type *type, enum fragi_type_kind kind)
{
	struct fragi_type_info *info = fragi_calloc(1, sizeof(*info));

	if (info == NULL)
		return;
	info->type = type;
	info->kind = kind;
	info->wire_size = kind != FRAGI_TYPE_CUSTOM ? type->size : 0;
	info->is_dense = kind != FRAGI_TYPE_CUSTOM && type != &frag_type_bool;
	info->id = type_id(info);
	add_locked(info);
}

static void add_builtins(void)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(scalars); i++)
		add_builtin(scalars[i], FRAGI_TYPE_SCALAR);
	add_builtin(&frag_type_string, FRAGI_TYPE_STRING);
	add_builtin(&frag_type_bytes, FRAGI_TYPE_BYTES);
	add_builtin(&frag_type_tensor, FRAGI_TYPE_CUSTOM);
}

/* Runs when the library is loaded, so that the first message does not pay for it. */
__attribute__((constructor)) static void builtins_init(void)
{
	pthread_once(&builtin_once, add_builtins);
}

static const struct index *index_get(void)
{
	pthread_once(&builtin_once, add_builtins);
	return atomic_load_explicit(&current, memory_order_acquire);
}

const struct fragi_type_info *fragi_type_info(const struct frag_type *type)
{
	const struct index *index = index_get();
	const struct fragi_type_info *info = NULL;

	if (index != NULL)
		address_slot(index, type, &info);
	return info;
}

static const struct fragi_type_info *info_of_id(uint64_t id)
{
	const struct index *index = index_get();
	const struct fragi_type_info *info = NULL;

	if (index != NULL)
		id_slot(index, id, &info);
	return info;
}

/*
 * Finds the type with that id, or makes it, if it is the id of a collection of a registered type:
 * asks for the element of the list and of the map that would have this id, `nesting` times deep.
 */
static const struct fragi_type_info *type_of_id_locked(uint64_t id, uint32_t nesting)
{
	static const enum fragi_type_kind kinds[] = {FRAGI_TYPE_LIST, FRAGI_TYPE_MAP};
	const struct fragi_type_info *info = info_of_id(id), *element;

	for (size_t i = 0; i < FRAG_COUNT_OF(kinds) && info == NULL && nesting > 0; i++) {
		element = type_of_id_locked(element_id(id, kinds[i]), nesting - 1);
		/* An array of elements of fixed size has an id of another kind. */
		if (element != NULL && (kinds[i] == FRAGI_TYPE_MAP || element->type->size == 0))
			info = collection_add_locked(element, kinds[i]);
	}
	return info;
}

const struct fragi_type_info *fragi_type_info_by_id(uint64_t id)
{
	const struct fragi_type_info *info = info_of_id(id);

	if (info != NULL || id == 0)
		return info;
	pthread_mutex_lock(&lock);
	info = type_of_id_locked(id, FRAGI_TYPE_NESTING_MAX);
	pthread_mutex_unlock(&lock);
	return info;
}

size_t fragi_type_stem_length(const char *name)
{
	size_t length = strlen(name);

	while (length >= 2 &&
	       (memcmp(name + length - 2, "[]", 2) == 0 || memcmp(name + length - 2, "{}", 2) == 0))
		length -= 2;
	return length;
}

/* Finds a type by name. A collection is made when it is first met. */
static struct fragi_type_info *find_locked(const char *name)
{
	struct fragi_type_info *info = fragi_strmap_get(&by_name, name);
	size_t length = strlen(name), stem = fragi_type_stem_length(name);
	char part[FRAG_NAME_MAX + 1];

	if (info != NULL || length == stem || length > FRAG_NAME_MAX)
		return info;
	/* "NAME", then "NAME[]", and so on up to the whole name. */
	memcpy(part, name, length + 1);
	part[stem] = '\0';
	info = fragi_strmap_get(&by_name, part);
	for (; stem < length && info != NULL; stem += 2) {
		const struct fragi_type_info *element = info;

		memcpy(part + stem, name + stem, 2);
		part[stem + 2] = '\0';
		info = fragi_strmap_get(&by_name, part);
		if (info == NULL)
			info = collection_add_locked(element, name[stem] == '{' ? FRAGI_TYPE_MAP
										: FRAGI_TYPE_LIST);
	}
	return info;
}

const char *fragi_type_why_not(const char *name)
{
	size_t length = strlen(name), stem = fragi_type_stem_length(name);
	char text[FRAG_NAME_MAX + 1];
	const struct frag_type *type;

	if (stem == length || stem > FRAG_NAME_MAX)
		return NULL;
	memcpy(text, name, stem);
	text[stem] = '\0';
	type = frag_type_find(text);
	if (type == NULL)
		return NULL;
	if (!may_be_collected(fragi_type_info(type)))
		return "arrays of arrays and maps hold scalars, texts, bytes and plain structs; register a type with encode and decode for the whole";
	return "arrays and maps nest at most 4 deep; flatten it";
}

int frag_type_register(const struct frag_type *type, struct frag_err *err)
{
	struct fragi_type_info *info = NULL;
	const struct fragi_type_info *same;
	int r;

	if (fragi_type_info(type) != NULL)
		return 0;
	pthread_mutex_lock(&lock);
	r = 0;
	if (fragi_type_info(type) != NULL)
		goto out;
	r = fragi_type_check(type, find_locked, &info, err);
	if (r < 0)
		goto out;
	same = find_locked(type->name);
	info->id = type_id(info);
	if (same != NULL) {
		r = check_twin(same, info, err);
		if (r < 0) {
			fragi_free(info);
			goto out;
		}
		r = add_twin_locked(info);
		goto out_memory;
	}
	same = info_of_id(info->id);
	if (same != NULL) {
		fragi_free(info);
		r = frag_err_set(err, -EEXIST,
				 "types \"%s\" and \"%s\" have the same id; rename one", type->name,
				 same->type->name);
		goto out;
	}
	r = add_locked(info);
out_memory:
	if (r < 0)
		frag_err_set(err, r, "type \"%s\" cannot be registered: there is no memory",
			     type->name);
out:
	pthread_mutex_unlock(&lock);
	return r;
}

const struct frag_type *frag_type_find(const char *name)
{
	const struct fragi_type_info *info;

	index_get();
	pthread_mutex_lock(&lock);
	info = find_locked(name);
	pthread_mutex_unlock(&lock);
	return info != NULL ? info->type : NULL;
}

const struct fragi_type_info *fragi_type_resolve(const struct frag_type *type)
{
	const struct fragi_type_info *info = fragi_type_info(type);

	if (info == NULL && type->name != NULL && frag_type_find(type->name) != NULL &&
	    frag_type_register(type, NULL) == 0)
		info = fragi_type_info(type);
	return info;
}

int frag_type_equal(const struct frag_type *a, const struct frag_type *b)
{
	const struct fragi_type_info *x, *y;

	if (a == b)
		return a != NULL;
	x = a != NULL ? fragi_type_resolve(a) : NULL;
	y = b != NULL ? fragi_type_resolve(b) : NULL;
	return x != NULL && y != NULL && x->id == y->id;
}

uint64_t fragi_type_id(const struct frag_type *type)
{
	const struct fragi_type_info *info = fragi_type_info(type);

	return info != NULL ? info->id : 0;
}

const struct frag_type *fragi_type_by_id(uint64_t id)
{
	const struct fragi_type_info *info = fragi_type_info_by_id(id);

	return info != NULL ? info->type : NULL;
}

bool fragi_type_has_codec(const struct frag_type *type)
{
	const struct fragi_type_info *info = fragi_type_info(type);

	return info != NULL && fragi_type_info_has_codec(info);
}
