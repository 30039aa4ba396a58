/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_TYPE_H
#define FRAG_TYPE_H

#include <frag/check.h>
#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Types of values. A port declares the type of its messages' value by name; both ends of a flow
 * must declare the same type. A type is a table:
 * - scalars, "string" and "bytes" are built in
 * - "NAME[]" is the array of any registered type of fixed size: its value is the C array
 * - "NAME[]" of any other type, and "NAME{}", a map from texts, are collections (<frag/collection.h>)
 * - a plugin registers its own types: a plain struct by its fields, anything else by encode and
 *   decode
 *
 * Two names that a port may declare are not types of values: "message" (or NULL) accepts any
 * message, "tensor" any message with at least one tensor.
 */
struct frag_type;
struct frag_writer;
struct frag_reader;

/* One field of a plain struct. */
struct frag_field {
	/* of the field, as in C */
	const char *name;
	/* a scalar, or the name of another plain struct */
	const char *type;
	/* bytes from the start of the struct */
	uint32_t offset;
	/* number of elements of an array field; 1: a single value */
	uint32_t count;
	/* bytes of one element in C; 0: not known */
	uint32_t size;
};

/*
 * Entries of a field table, for example FRAG_FIELD(struct pose, x, "f64").
 * - T: the struct
 * - member: its member, which is also the name of the field
 * - text: a literal, the type: a scalar, whose C type the member must have (char is i8 or u8, an
 *   enum its integer), or the name of another plain struct. A wrong scalar does not compile; a
 *   struct of another size is refused when the type is registered.
 * - count: elements of the array; FRAG_FIELD_MATRIX takes an array of arrays, row by row
 */
#define FRAG_FIELD(T, member, text)                                                                \
	{                                                                                          \
#member, "" text,                                                                  \
			(uint32_t)offsetof(T, member) + FRAG_CHECK_FIELD(((T *)0)->member, text),  \
			1, (uint32_t)sizeof(((T *)0)->member)                                      \
	}
#define FRAG_FIELD_ARRAY(T, member, text, count)                                                   \
	{                                                                                          \
#member, "" text,                                                                  \
			(uint32_t)offsetof(T, member) +                                            \
				FRAG_CHECK_FIELD(((T *)0)->member[0], text) +                      \
				FRAG_CHECK_COUNT(((T *)0)->member, count),                         \
			(count), (uint32_t)sizeof(((T *)0)->member[0])                             \
	}
#define FRAG_FIELD_MATRIX(T, member, text, rows, columns)                                          \
	{                                                                                          \
#member, "" text,                                                                  \
			(uint32_t)offsetof(T, member) +                                            \
				FRAG_CHECK_FIELD(((T *)0)->member[0][0], text) +                   \
				FRAG_CHECK_COUNT(((T *)0)->member, rows) +                         \
				FRAG_CHECK_COUNT(((T *)0)->member[0], columns),                    \
			(rows) * (columns), (uint32_t)sizeof(((T *)0)->member[0][0])               \
	}

/*
 * The table of a type of values: a plain struct with its fields, or any other type with its
 * functions.
 */
struct frag_type {
	/* set by FRAG_TYPE_INIT */
	size_t struct_size;
	/* FRAG_NAME_MAX - 2 bytes at most, so that "NAME[]" is a name too */
	const char *name;
	/* one line for people; NULL: none */
	const char *headline;
	/* bytes of one value in memory; a table that is registered says 1 or more */
	size_t size;
	/* alignment of one value in bytes, a power of two up to 64; 0: 8 */
	size_t align;

	/*
	 * The fields of a plain struct; write them with FRAG_FIELDS. Each field travels with the
	 * codec of its own type, little-endian and without padding.
	 */
	const struct frag_field *fields;
	uint32_t field_count;
	uint32_t field_size;

	/*
	 * The codec of any other type. If all three are NULL the type cannot leave its process, and
	 * a flow that needs it to is refused.
	 * - encode appends value to writer. Returns 0 or a negative errno.
	 * - decode fills value (`size` bytes, zeroed before) from reader. It must accept any bytes
	 *   without harm. Returns 0, or -EBADMSG for bytes that it cannot read.
	 * - fini frees what decode or the emitting operator stored in value. It is also called when
	 *   decode failed half-way; a zeroed value holds nothing. It runs on the thread that drops
	 *   the last reference to the message.
	 */
	int (*encode)(const void *value, struct frag_writer *writer);
	int (*decode)(void *value, struct frag_reader *reader);
	void (*fini)(void *value);
};

/* The first member of a struct frag_type. */
#define FRAG_TYPE_INIT .struct_size = sizeof(struct frag_type)
/* The members of a struct frag_type that name the table of its fields. */
#define FRAG_FIELDS(table)                                                                         \
	.fields = (table), .field_count = (uint32_t)FRAG_COUNT_OF(table),                          \
	.field_size = (uint32_t)sizeof((table)[0])

/*
 * The scalars. Their names in graphs are bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 complex64
 * complex128; f32 and f64 are IEEE 754 binary32 and binary64. The complex ones are two of these,
 * real and imaginary part: float _Complex and double _Complex in C, std::complex<float> and
 * std::complex<double> in C++.
 */
extern FRAG_API const struct frag_type frag_type_bool, frag_type_i8, frag_type_i16, frag_type_i32,
	frag_type_i64, frag_type_u8, frag_type_u16, frag_type_u32, frag_type_u64, frag_type_f32,
	frag_type_f64, frag_type_complex64, frag_type_complex128;
/*
 * "string" is UTF-8 text that ends with a NUL; its size is counted without the NUL. "bytes" is any
 * number of any bytes.
 */
extern FRAG_API const struct frag_type frag_type_string, frag_type_bytes;

/*
 * "tensor" is a reference to a tensor (struct frag_tensor *), as a value of metadata. A port that
 * declares it accepts messages with tensors instead.
 */
extern FRAG_API const struct frag_type frag_type_tensor;

/*
 * Registers a type for this process. The types that a plugin lists in FRAG_TYPES are registered
 * when the plugin is loaded.
 * - type: borrowed until the process ends
 * - err: receives the sentence; NULL is accepted
 * Returns 0, also when this table, or the same table of a plain struct (as by a header that two
 * plugins include), is registered already; -EEXIST: a different table has the name; -EINVAL: the
 * table has a mistake, which the sentence names; -ENOMEM.
 * Thread: any, before graphs run. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_type_register(const struct frag_type *type, struct frag_err *err);

/*
 * Finds a registered type.
 * - name: of a type, also with up to 4 of "[]" and "{}" after it
 * Returns the table, valid until the process ends; NULL when no type has that name.
 * Thread: any. Blocks: no. RT-safe: no (it compares strings; call it in initialize).
 */
FRAG_API const struct frag_type *frag_type_find(const char *name);

/*
 * Returns 1 when both tables are of the same registered type, else 0. Each file that includes a
 * header with a table has a table of its own, so compare types with this function and not by their
 * addresses. Tables that equal a registered one need not be registered themselves.
 * - a, b: NULL is accepted, and equals nothing
 * Thread: any. Blocks: no. RT-safe: after the first call with two tables.
 */
FRAG_API int frag_type_equal(const struct frag_type *a, const struct frag_type *b);

/*
 * Appends to the bytes that encode makes. Integers are written little-endian.
 * - writer: the argument of encode; it grows its own memory
 * - bytes, size: what to append; bytes are copied; bytes may be NULL when size is 0
 * Returns 0; -ENOMEM; -EMSGSIZE: the message's descriptors would exceed 64 MiB. After a failure
 * every later call returns the same code, so encode may check only the last one.
 * Thread: the one that called encode. Blocks: no. RT-safe: no (it allocates).
 */
FRAG_API int frag_writer_put(struct frag_writer *writer, const void *bytes, size_t size);
FRAG_API int frag_writer_put_u32(struct frag_writer *writer, uint32_t x);
FRAG_API int frag_writer_put_u64(struct frag_writer *writer, uint64_t x);

/*
 * Reads the next bytes that decode is given, and never beyond the last one.
 * - reader: the argument of decode
 * - out: receives `size` bytes, or the integer
 * Returns 0; -EBADMSG: fewer bytes are left, and nothing was read.
 * Thread: the one that called decode. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_reader_get(struct frag_reader *reader, void *out, size_t size);
FRAG_API int frag_reader_get_u32(struct frag_reader *reader, uint32_t *out);
FRAG_API int frag_reader_get_u64(struct frag_reader *reader, uint64_t *out);
/* Returns the number of bytes not yet read. Thread: as above. Blocks: no. RT-safe: yes. */
FRAG_API size_t frag_reader_left(const struct frag_reader *reader);

FRAG_END_DECLS

#endif
