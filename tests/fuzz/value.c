// SPDX-License-Identifier: Apache-2.0
#include "types.h"

#include <base/alloc.h>
#include <data/codec.h>
#include <data/metadata.h>

/*
 * A first byte below 128: one value as it travels, the byte says of which type; what is decoded is
 * encoded again and must be the same bytes. From 128: what operators do to two dictionaries of
 * metadata, compared with what a dictionary promises.
 */
static void decode(const struct frag_type *type, const uint8_t *bytes, size_t wire_size)
{
	const struct fragi_type_info *info = fragi_type_info(type);
	struct frag_writer writer = {.limit = 1 << 20};
	uint8_t *wire = fuzz_copy(bytes, wire_size);
	size_t value_size;
	void *value;
	int r = fragi_value_measure(info, wire, wire_size, &value_size);

	fuzz_check(r == 0 || r == -EBADMSG || r == -EMSGSIZE);
	if (r == 0) {
		fuzz_check(value_size <= FRAGI_DECODED_MAX);
		value = calloc(1, value_size + 1);
		fuzz_check(value != NULL);
		r = fragi_value_decode(info, wire, wire_size, value, value_size);
		fuzz_check(r == 0 || r == -EBADMSG);
		if (r == 0) {
			fuzz_check(fragi_value_encode(info, value, value_size, &writer) == 0);
			fuzz_check(writer.size == wire_size &&
				   (wire_size == 0 || memcmp(writer.bytes, wire, wire_size) == 0));
			fragi_free(writer.bytes);
		}
		if (type->fini != NULL)
			fragi_value_fini(type, value, value_size);
		free(value);
	}
	free(wire);
}

static void set(struct frag_metadata *metadata, enum frag_metadata_policy policy, const char *key,
		struct fuzz_input *input)
{
	bool had = frag_metadata_has(metadata, key);
	uint32_t count = frag_metadata_count(metadata);
	int64_t value = fuzz_u8(input) - 128, got = 0;
	int r = frag_metadata_set_i64(metadata, key, value);
	bool kept = had && policy == FRAG_METADATA_REJECT;

	fuzz_check(r == (had && policy == FRAG_METADATA_RAISE ? -EEXIST : 0));
	fuzz_check(frag_metadata_count(metadata) == count + !had);
	if (r == 0 && !kept)
		fuzz_check(frag_metadata_get_i64(metadata, key, &got) == 0 && got == value);
}

static void use(struct frag_metadata *metadata, enum frag_metadata_policy policy,
		struct frag_metadata *other, struct fuzz_input *input)
{
	static const char *const keys[] = {"a", "b", "a_key_that_is_longer_than_most", "d"};
	uint8_t op = fuzz_u8(input);
	const char *key = keys[op >> 4 & 3], *text = NULL, *both = NULL;
	uint32_t count = frag_metadata_count(metadata);
	bool had = frag_metadata_has(metadata, key);
	double number;
	size_t size;
	const uint8_t *bytes;
	char *copy;
	int flag, r;

	switch (op & 7) {
	case 0:
		set(metadata, policy, key, input);
		break;
	case 1:
		bytes = fuzz_bytes(input, fuzz_u8(input), &size);
		copy = fuzz_text(bytes, size);
		r = frag_metadata_set_string(metadata, key, copy);
		if (r == 0 && !(had && policy == FRAG_METADATA_REJECT))
			fuzz_check(frag_metadata_get_string(metadata, key, &text) == 0 &&
				   strcmp(text, copy) == 0);
		free(copy);
		break;
	case 2:
		fuzz_check(frag_metadata_erase(metadata, key) == (had ? 0 : -ENOENT));
		fuzz_check(frag_metadata_count(metadata) == count - had);
		break;
	case 3:
		r = fragi_metadata_merge(metadata, other, &both);
		fuzz_check(r == 0 ||
			   (r == -EEXIST && policy == FRAG_METADATA_RAISE &&
			    frag_metadata_has(metadata, both) && frag_metadata_has(other, both)));
		for (uint32_t i = 0; r == 0 && i < frag_metadata_count(other); i++)
			fuzz_check(frag_metadata_has(metadata, frag_metadata_key(other, i)));
		break;
	case 4:
		frag_metadata_clear(metadata);
		fuzz_check(frag_metadata_count(metadata) == 0);
		break;
	case 5:
		r = frag_metadata_set_f64(metadata, key, 0.5);
		fuzz_check(r == 0 || r == -EEXIST);
		(void)frag_metadata_get_f64(metadata, key, &number);
		break;
	case 6:
		bytes = fuzz_bytes(input, 70, &size);
		copy = fuzz_text(bytes, size);
		r = frag_metadata_set_bool(metadata, copy, 1);
		fuzz_check(r == 0 || r == -EINVAL || r == -EEXIST || r == -E2BIG);
		(void)frag_metadata_get_bool(metadata, copy, &flag);
		free(copy);
		break;
	default:
		(void)frag_metadata_get_i64(metadata, key, &(int64_t){0});
		(void)frag_metadata_get_bool(metadata, key, &flag);
		(void)frag_metadata_get_string(metadata, key, &text);
		break;
	}
}

static void use_metadata(struct fuzz_input *input, uint8_t first)
{
	enum frag_metadata_policy policies[2] = {(enum frag_metadata_policy)(1 + (first & 3)),
						 (enum frag_metadata_policy)(1 + (first >> 2 & 3))};
	struct frag_metadata *both[2] = {fragi_metadata_create(policies[0]),
					 fragi_metadata_create(policies[1])};
	struct frag_metadata *copy;
	uint8_t which;

	for (int steps = 0; steps < 2000 && fuzz_left(input) > 0; steps++) {
		which = fuzz_u8(input);
		if ((which & 0x80) != 0) { /* a copy, as a message takes one, shares the content */
			copy = fragi_metadata_copy(both[which & 1]);
			fuzz_check(frag_metadata_count(copy) ==
				   frag_metadata_count(both[which & 1]));
			use(both[which & 1], policies[which & 1], copy, input);
			fragi_metadata_destroy(copy);
		} else {
			use(both[which & 1], policies[which & 1], both[!(which & 1)], input);
		}
	}
	fragi_metadata_destroy(both[0]);
	fragi_metadata_destroy(both[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = {bytes, bytes + size};
	uint8_t first = fuzz_u8(&input);
	const struct frag_type *type = fuzz_type(first);

	if (first >= 128)
		use_metadata(&input, first);
	else
		decode(type, input.at, fuzz_left(&input));
	return 0;
}
