/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_LAYOUT_H
#define FW_LAYOUT_H

#include <frag/v1/control.pb-c.h>
#include <wire/message.h>

/*
 * A layout says how a plain struct and a protobuf message correspond: a row for each field, with
 * its place in both and its bounds. The layouts are in layout_*.c; encode.c walks them from the
 * plain structs to protobuf-c's, decode.c walks them back and checks the bounds.
 */
enum fw_field_kind {
	FW_END,
	FW_BOOL,
	FW_NUMBER32, /* of any sign, or an enum */
	FW_NUMBER64,
	FW_COUNTED,  /* 32 bits, of an int64_t in the plain struct: so many times `unit` */
	FW_TEXT,     /* NULL is sent as an empty one */
	FW_OPTIONAL, /* a text; an empty one is decoded as NULL */
	FW_NAME,     /* a text: the name of an application, a fragment or an operator */
	FW_TEXTS,
	FW_BYTES,
	FW_KEY,     /* an array of bytes in the plain struct */
	FW_NUMBERS, /* an array of uint64_t in the plain struct; zeros at its end are not sent */
	FW_SUMS,    /* the same; what a newer peer counts beside is added to the last one */
	FW_TUPLE,   /* numbers that are members with names in the plain struct */
	FW_ONE,     /* a struct */
	FW_ROWS,    /* a table of structs */
	FW_EXIT,    /* the exit code of a failure: only sent */
};

/* What is sent of a table with more than `max` rows. */
enum fw_beyond {
	FW_NOTHING, /* the message is not encoded */
	FW_FIRST_ROWS,
	FW_LAST_ROWS,
};

struct fw_field {
	enum fw_field_kind kind;
	uint16_t plain, proto;             /* offsets of the member in both structs */
	uint16_t plain_count, proto_count; /* ... and of its count */
	bool is_wide;                      /* the count in the plain struct is a size_t */
	bool may_be_empty;                 /* KEY, NAME */
	enum fw_beyond beyond;
	/*
	 * Of numbers and of the lengths of texts: the least and the most; max 0: any number, a text
	 * of FW_TEXT_MAX bytes. Of tables, bytes, keys and numbers: max, how many.
	 */
	uint64_t min, max;
	uint32_t unit;      /* COUNTED */
	uint32_t otherwise; /* is decoded instead of a number out of bounds if flaw is NULL */
	/* "a message holds FLAW": out of bounds; of ONE: it is missing; NULL: it may be missing */
	const char *flaw;
	const struct fw_layout *of; /* ONE, ROWS, TUPLE */
};

struct fw_layout {
	const struct fw_field *fields; /* the last one is END */
	size_t plain_bytes;
	const ProtobufCMessageDescriptor *type;
	/* Returns what is wrong with a struct whose fields are right one by one, or NULL. */
	const char *(*flaw)(const void *proto, void *plain);
};

/* LAYOUT(x, struct fw_x, X, NULL) = {FIELD(x, m), ..., END}; */
#define LAYOUT(name, plain_type, Type, flaw) LAYOUT_OF(name, plain_type, name, Type, flaw)
#define LAYOUT_OF(name, plain_type, type, Type, flaw)                                              \
	typedef plain_type name##_plain;                                                           \
	typedef Frag__V1__##Type name##_proto;                                                     \
	extern const struct fw_field fw_fields_##name[];                                           \
	const struct fw_layout fw_layout_##name = {fw_fields_##name, sizeof(plain_type),           \
						   &frag__v1__##type##__descriptor, flaw};         \
	const struct fw_field fw_fields_##name[]
#define END                                                                                        \
	{                                                                                          \
		FW_END                                                                             \
	}

/*
 * Rows: x is the layout, m the member of both structs, a that of the plain one and b that of
 * protobuf-c's. Further members of struct fw_field may follow.
 */
#define TYPE(struct_type, m) __typeof__(((struct_type *)NULL)->m)
#define ROW(which, x, a, b, ...)                                                                   \
	{                                                                                          \
		which, offsetof(x##_plain, a), offsetof(x##_proto, b), ##__VA_ARGS__               \
	}
/* The kind follows from the types of the members; without one that fits it does not compile. */
#define KIND(x, a, b)                                                                              \
	_Generic((void (*)(TYPE(x##_plain, a), TYPE(x##_proto, b)))NULL,                           \
		 void (*)(bool, protobuf_c_boolean)                                                \
		 : FW_BOOL, void (*)(int32_t, int32_t)                                             \
		 : FW_NUMBER32, void (*)(uint32_t, uint32_t)                                       \
		 : FW_NUMBER32, void (*)(int64_t, int64_t)                                         \
		 : FW_NUMBER64, void (*)(uint64_t, uint64_t)                                       \
		 : FW_NUMBER64, void (*)(const char *, char *)                                     \
		 : FW_TEXT)
#define FIELD_AS(x, a, b, ...) ROW(KIND(x, a, b), x, a, b, ##__VA_ARGS__)
#define FIELD(x, m, ...) FIELD_AS(x, m, m, ##__VA_ARGS__)
#define WITHIN(x, m, least, most, wrong) FIELD(x, m, .min = least, .max = most, .flaw = wrong)
#define OR_ELSE(x, m, least, most, other) FIELD(x, m, .min = least, .max = most, .otherwise = other)
#define TIME(x, m) WITHIN(x, m, 0, INT64_MAX, "a negative time")
#define EXIT_CODE(x, m) WITHIN(x, m, 0, 255, "an exit code out of range")
/* a: a place in an array that has all amounts (base/amounts.h) */
#define AMOUNT(x, a, b, ...)                                                                       \
	ROW(_Generic((void (*)(TYPE(x##_plain, a), TYPE(x##_proto, b)))NULL,                       \
		     void (*)(int64_t, uint32_t)                                                   \
		     : FW_COUNTED, void (*)(int64_t, uint64_t)                                     \
		     : FW_NUMBER64),                                                               \
	    x, a, b, ##__VA_ARGS__)
#define WHOLE(x, a, b, ...) AMOUNT(x, a, b, .unit = FRAGI_AMOUNT_ONE, ##__VA_ARGS__)
#define OPTIONAL(x, m) ROW(FW_OPTIONAL, x, m, m)
#define NAME(x, m) ROW(FW_NAME, x, m, m)
#define NAME_OR_NONE(x, m) ROW(FW_NAME, x, m, m, .may_be_empty = true)
#define KEY(x, m, wrong, ...)                                                                      \
	ROW(FW_KEY, x, m, m, .max = sizeof(TYPE(x##_plain, m)), .flaw = wrong, ##__VA_ARGS__)
#define BYTES(x, m, size, most, ...)                                                               \
	ROW(FW_BYTES, x, m, m, .plain_count = offsetof(x##_plain, size), .max = most, ##__VA_ARGS__)
#define COUNT(x, m, count)                                                                         \
	.plain_count = offsetof(x##_plain, count), .proto_count = offsetof(x##_proto, n_##m),      \
	.is_wide = sizeof(TYPE(x##_plain, count)) == sizeof(size_t)
#define TEXTS(x, m, count, most, ...)                                                              \
	ROW(FW_TEXTS, x, m, m, COUNT(x, m, count), .max = most, ##__VA_ARGS__)
#define ROWS(x, m, count, most, y, ...)                                                            \
	ROW(FW_ROWS, x, m, m, COUNT(x, m, count), .max = most, .of = &fw_layout_##y, ##__VA_ARGS__)
#define ONE(x, m, y, ...) ROW(FW_ONE, x, m, m, .of = &fw_layout_##y, ##__VA_ARGS__)
#define ARRAY(which, x, a, b, most)                                                                \
	ROW(which, x, a, b, .proto_count = offsetof(x##_proto, n_##b), .max = most)
/* y: a layout of ITEMs; where: the place of the struct whose members they are */
#define TUPLE(x, where, b, y)                                                                      \
	{                                                                                          \
		FW_TUPLE, where, offsetof(x##_proto, b),                                           \
			.proto_count = offsetof(x##_proto, n_##b), .of = &fw_layout_##y,           \
			.max = FRAG_COUNT_OF(fw_fields_##y) - 1                                    \
	}
#define ITEM(type, m, ...)                                                                         \
	{                                                                                          \
		sizeof(TYPE(type, m)) == 8 ? FW_NUMBER64 : FW_NUMBER32, offsetof(type, m),         \
			##__VA_ARGS__                                                              \
	}
#define TUPLE_LAYOUT(name)                                                                         \
	extern const struct fw_field fw_fields_##name[];                                           \
	const struct fw_layout fw_layout_##name = {fw_fields_##name};                              \
	const struct fw_field fw_fields_##name[]

/* of every kind of message, by the name of its protobuf type */
#define FW_LAYOUT_DECLARE(number, KIND, type) extern const struct fw_layout fw_layout_##type;
FW_KIND_LIST(FW_LAYOUT_DECLARE)
#undef FW_LAYOUT_DECLARE
extern const struct fw_layout fw_layout_failure, fw_layout_late_at, fw_layout_quantiles,
	fw_layout_version;

/* The layout of a kind; NULL: there is no such kind. */
const struct fw_layout *fw_layout(enum fw_kind kind);

#endif
