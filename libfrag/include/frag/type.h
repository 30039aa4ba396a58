/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_TYPE_H
#define FRAG_TYPE_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Types of values. A port declares the type of its messages' value by name; both ends of a flow
 * must agree. A type is a table; scalars, "string" and "bytes" are built in, "NAME[]" is the array
 * of any type of fixed size, and a plugin registers its own: a plain struct by its fields, anything
 * else by encode and decode.
 *
 * Two names are not values: "message" (or NULL) accepts any message, "tensor" one with at least one
 * tensor.
 */
struct frag_type;
struct frag_writer;
struct frag_reader;

/* One field of a plain struct. */
struct frag_field {
	const char *name;
	const char *type; /* a scalar, or the name of another plain struct */
	uint32_t offset;  /* in bytes */
	uint32_t count;   /* elements of an array field; 1 for a single one */
};

#define FRAG_FIELD(T, member, type_name)                                                           \
	{                                                                                          \
#member, type_name, (uint32_t)offsetof(T, member), 1                               \
	}
#define FRAG_FIELD_ARRAY(T, member, type_name, n)                                                  \
	{                                                                                          \
#member, type_name, (uint32_t)offsetof(T, member), (n)                             \
	}

struct frag_type {
	size_t struct_size;
	const char *name;
	const char *headline;
	size_t size;  /* bytes of one value in memory; 0: variable (string, bytes, arrays) */
	size_t align; /* of a value; 0: 8 */

	/*
	 * A plain struct: its fields. Each travels by its own codec, little-endian, without
	 * padding.
	 */
	const struct frag_field *fields;
	uint32_t field_count;
	uint32_t field_size;

	/*
	 * Any other type. encode appends value to writer; decode fills value (zeroed, `size` bytes)
	 * from reader and must accept any bytes without harm, returning -EBADMSG for what it cannot
	 * read; fini frees what decode or the emitter put into value, also when decode failed
	 * half-way (a zeroed value holds nothing), and is called from whichever thread drops the
	 * last reference to a message. All three may be NULL: the type then cannot leave its
	 * process, and a flow that would need it to is refused.
	 */
	int (*encode)(const void *value, struct frag_writer *writer);
	int (*decode)(void *value, struct frag_reader *reader);
	void (*fini)(void *value);
};

#define FRAG_TYPE_INIT .struct_size = sizeof(struct frag_type)
#define FRAG_FIELDS(table)                                                                         \
	.fields = (table), .field_count = (uint32_t)FRAG_COUNT_OF(table),                          \
	.field_size = (uint32_t)sizeof((table)[0])

/*
 * The scalars, in the order of their names in graphs: bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64.
 */
extern FRAG_API const struct frag_type frag_type_bool, frag_type_i8, frag_type_i16, frag_type_i32,
	frag_type_i64, frag_type_u8, frag_type_u16, frag_type_u32, frag_type_u64, frag_type_f32,
	frag_type_f64;
/* Text in UTF-8, NUL-terminated, the size counted without it; bytes of any kind. */
extern FRAG_API const struct frag_type frag_type_string, frag_type_bytes;

/*
 * Registers a type for this process; a plugin's FRAG_TYPES are registered when it is loaded. The
 * table is borrowed and must outlive the process's graphs. The same table twice is no error.
 * Returns 0; -EEXIST when another type has the name; -EINVAL (with a sentence) for a table that is
 * not one. Thread: any, before graphs run. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_type_register(const struct frag_type *type, struct frag_err *err);

/*
 * The type of that name, "NAME[]" included; NULL when there is none.
 * Thread: any. Blocks: no. RT-safe: no (looks up a string; do it in initialize).
 */
FRAG_API const struct frag_type *frag_type_find(const char *name);

/*
 * Codec primitives for encode and decode. Everything is little-endian. A writer grows its own
 * memory; put returns 0 or -ENOMEM. A reader never reads beyond its end; get returns 0 or -EBADMSG
 * and then leaves *out untouched. Thread: the one that called encode or decode. Blocks: no.
 */
FRAG_API int frag_writer_put(struct frag_writer *writer, const void *bytes, size_t size);
FRAG_API int frag_writer_put_u32(struct frag_writer *writer, uint32_t x);
FRAG_API int frag_writer_put_u64(struct frag_writer *writer, uint64_t x);
FRAG_API int frag_reader_get(struct frag_reader *reader, void *out, size_t size);
FRAG_API int frag_reader_get_u32(struct frag_reader *reader, uint32_t *out);
FRAG_API int frag_reader_get_u64(struct frag_reader *reader, uint64_t *out);
/* Bytes not yet read. */
FRAG_API size_t frag_reader_left(const struct frag_reader *reader);

FRAG_END_DECLS

#endif
