// SPDX-License-Identifier: Apache-2.0
#include <endian.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <text/spec.h>

/*
 * u32 magic, version | text app_folder | file and text of the graph | u32 n, n times file and text:
 * configs | the same: files | u32 n, n texts: sets | the same: args. A text is u32 length, its
 * bytes, a NUL. Numbers are little-endian.
 */
#define PACK_MAGIC 0x47415246u /* "FRAG" */
#define PACK_VERSION 1u
#define TEXT_SIZE_MIN 5u /* bytes of an empty text */

struct packing {
	char *bytes; /* NULL: only measures */
	size_t at;
};

static void put_u32(struct packing *packing, size_t value)
{
	uint32_t number = htole32((uint32_t)value);

	if (packing->bytes != NULL)
		memcpy(packing->bytes + packing->at, &number, sizeof(number));
	packing->at += sizeof(number);
}

static void put_bytes(struct packing *packing, const char *text, size_t length)
{
	put_u32(packing, length);
	if (packing->bytes != NULL) {
		if (length > 0)
			memcpy(packing->bytes + packing->at, text, length);
		packing->bytes[packing->at + length] = '\0';
	}
	packing->at += length + 1;
}

static void put_name(struct packing *packing, const char *text)
{
	put_bytes(packing, text, text != NULL ? strlen(text) : 0);
}

static void put_texts(struct packing *packing, const struct fragi_spec_text *texts, size_t count)
{
	put_u32(packing, count);
	for (size_t i = 0; i < count; i++) {
		put_name(packing, texts[i].file);
		put_bytes(packing, texts[i].text, texts[i].length);
	}
}

static void put_names(struct packing *packing, const char *const *names, size_t count)
{
	put_u32(packing, count);
	for (size_t i = 0; i < count; i++)
		put_name(packing, names[i]);
}

static void put_source(struct packing *packing, const struct fragi_spec_source *source)
{
	put_u32(packing, PACK_MAGIC);
	put_u32(packing, PACK_VERSION);
	put_name(packing, source->app_folder);
	put_name(packing, source->graph.file);
	put_bytes(packing, source->graph.text, source->graph.length);
	put_texts(packing, source->configs, source->config_count);
	put_texts(packing, source->files, source->file_count);
	put_names(packing, source->sets, source->set_count);
	put_names(packing, source->args, source->arg_count);
}

int fragi_source_pack(const struct fragi_spec_source *source, void **out_bytes, size_t *out_size)
{
	struct packing packing = {0};

	put_source(&packing, source);
	if (packing.at > FRAGI_SOURCE_MAX || source->config_count > FRAGI_SPEC_TEXTS_MAX ||
	    source->file_count > FRAGI_SPEC_TEXTS_MAX)
		return -EFBIG;
	packing.bytes = fragi_malloc(packing.at);
	if (packing.bytes == NULL)
		return -ENOMEM;
	packing.at = 0;
	put_source(&packing, source);
	*out_bytes = packing.bytes;
	*out_size = packing.at;
	return 0;
}

struct unpacking {
	struct fragi_arena *arena;
	const char *bytes; /* in the arena */
	size_t size, at;
	int r;
};

static size_t get_u32(struct unpacking *unpacking)
{
	uint32_t number = 0;

	if (unpacking->r < 0 || unpacking->size - unpacking->at < sizeof(number)) {
		unpacking->r = unpacking->r < 0 ? unpacking->r : -EBADMSG;
		return 0;
	}
	memcpy(&number, unpacking->bytes + unpacking->at, sizeof(number));
	unpacking->at += sizeof(number);
	return le32toh(number);
}

static const char *get_bytes(struct unpacking *unpacking, size_t *out_length)
{
	size_t length = get_u32(unpacking);
	const char *text = unpacking->bytes + unpacking->at;

	if (unpacking->r < 0)
		return "";
	if (length >= unpacking->size - unpacking->at || text[length] != '\0') {
		unpacking->r = -EBADMSG;
		return "";
	}
	unpacking->at += length + 1;
	*out_length = length;
	return text;
}

static const char *get_name(struct unpacking *unpacking)
{
	size_t length = 0;
	const char *name = get_bytes(unpacking, &length);

	if (unpacking->r == 0 && strlen(name) != length)
		unpacking->r = -EBADMSG;
	return name;
}

/*
 * Reads the number of items that follow, and allocates their array. An item has at least size_min
 * bytes.
 */
static void *get_array(struct unpacking *unpacking, size_t size_min, size_t item_size,
		       size_t count_max, size_t *out_count)
{
	size_t count = get_u32(unpacking);
	void *items;

	if (unpacking->r == 0 &&
	    (count > count_max || count > (unpacking->size - unpacking->at) / size_min))
		unpacking->r = -EBADMSG;
	if (unpacking->r < 0 || count == 0)
		return NULL;
	items = fragi_arena_alloc(unpacking->arena, count * item_size);
	if (items == NULL)
		unpacking->r = -ENOMEM;
	else
		*out_count = count;
	return items;
}

static const struct fragi_spec_text *get_texts(struct unpacking *unpacking, size_t *out_count)
{
	struct fragi_spec_text *texts = get_array(unpacking, (size_t)2 * TEXT_SIZE_MIN,
						  sizeof(*texts), FRAGI_SPEC_TEXTS_MAX, out_count);

	for (size_t i = 0; i < *out_count; i++) {
		texts[i].file = get_name(unpacking);
		texts[i].text = get_bytes(unpacking, &texts[i].length);
	}
	return texts;
}

static const char *const *get_names(struct unpacking *unpacking, size_t *out_count)
{
	const char **names =
		get_array(unpacking, TEXT_SIZE_MIN, sizeof(*names), FRAGI_SOURCE_MAX, out_count);

	for (size_t i = 0; i < *out_count; i++)
		names[i] = get_name(unpacking);
	return names;
}

int fragi_source_unpack(const void *bytes, size_t size, struct fragi_source *out_source)
{
	struct fragi_source unpacked = {0};
	struct fragi_spec_source *source = &unpacked.source;
	struct unpacking unpacking = {.arena = &unpacked.arena, .size = size};
	char *copy;

	if (size > FRAGI_SOURCE_MAX)
		return -EBADMSG;
	copy = fragi_arena_alloc(&unpacked.arena, size + 1);
	if (copy == NULL)
		return -ENOMEM;
	if (size > 0)
		memcpy(copy, bytes, size);
	unpacking.bytes = copy;
	if (get_u32(&unpacking) != PACK_MAGIC || get_u32(&unpacking) != PACK_VERSION)
		unpacking.r = -EBADMSG;
	source->app_folder = get_name(&unpacking);
	if (source->app_folder[0] == '\0')
		source->app_folder = NULL;
	source->graph.file = get_name(&unpacking);
	source->graph.text = get_bytes(&unpacking, &source->graph.length);
	source->configs = get_texts(&unpacking, &source->config_count);
	source->files = get_texts(&unpacking, &source->file_count);
	source->sets = get_names(&unpacking, &source->set_count);
	source->args = get_names(&unpacking, &source->arg_count);
	if (unpacking.r == 0 && unpacking.at != size)
		unpacking.r = -EBADMSG;
	if (unpacking.r < 0) {
		fragi_source_fini(&unpacked);
		return unpacking.r;
	}
	*out_source = unpacked;
	return 0;
}
