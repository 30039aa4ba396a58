/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_WIRE_MESSAGES_H
#define TESTS_UNIT_WIRE_MESSAGES_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/arena.h>
#include <frag/operator.h>
#include <wire/layout.h>

/* Messages with everything in them, from a seed; they live in the arena. */
struct maker {
	struct fragi_arena arena;
	uint64_t state;
	bool is_natural; /* numbers of any size, most of them small, and short words */
};

static inline uint64_t random_u64(struct maker *m)
{
	m->state ^= m->state << 13;
	m->state ^= m->state >> 7;
	m->state ^= m->state << 17;
	return m->state;
}

static inline uint32_t below(struct maker *m, uint32_t n)
{
	return (uint32_t)(random_u64(m) % n);
}

static inline const char *word(struct maker *m)
{
	return fragi_arena_printf(&m->arena, m->is_natural ? "w%.3llx" : "w%llx",
				  (unsigned long long)random_u64(m) >> (m->is_natural ? 52 : 0));
}

static inline void *block(struct maker *m, size_t size)
{
	uint8_t *bytes = fragi_arena_alloc(&m->arena, size);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)random_u64(m);
	return bytes;
}

static inline uint64_t number(struct maker *m, const struct fw_field *field)
{
	uint64_t drawn = random_u64(m);

	if (m->is_natural)
		drawn >>= 20 + random_u64(m) % 44;
	return field->max == 0 ? drawn : field->min + drawn % (field->max - field->min + 1);
}

static inline void set_number(struct maker *m, const struct fw_field *field, uint8_t *plain)
{
	void *member = plain + field->plain;

	if (field->kind == FW_BOOL)
		*(bool *)member = below(m, 2) == 1;
	else if (field->kind == FW_NUMBER32)
		*(uint32_t *)member = (uint32_t)number(m, field);
	else if (field->kind == FW_COUNTED)
		*(uint64_t *)member = (uint64_t)(uint32_t)number(m, field) * field->unit;
	else
		*(uint64_t *)member = number(m, field);
}

#define ROWS_MADE 2

static void make_fields(struct maker *m, const struct fw_layout *layout, uint8_t *plain);

static inline void make_rows(struct maker *m, const struct fw_field *field, uint8_t *plain)
{
	size_t row_bytes = field->of != NULL ? field->of->plain_bytes : sizeof(char *);
	uint8_t *rows = block(m, ROWS_MADE * row_bytes);
	void *counter = plain + field->plain_count;

	*(void **)(void *)(plain + field->plain) = rows;
	for (size_t i = 0; i < ROWS_MADE; i++, rows += row_bytes)
		if (field->of != NULL)
			make_fields(m, field->of, rows);
		else
			*(const char **)(void *)rows = word(m);
	if (field->is_wide)
		*(size_t *)counter = ROWS_MADE;
	else
		*(uint32_t *)counter = ROWS_MADE;
}

static inline void make_field(struct maker *m, const struct fw_field *field, uint8_t *plain)
{
	void *member = plain + field->plain;
	uint32_t size = 1 + below(m, 20);

	switch (field->kind) {
	case FW_BOOL:
	case FW_NUMBER32:
	case FW_NUMBER64:
	case FW_COUNTED:
		set_number(m, field, plain);
		break;
	case FW_OPTIONAL:
		*(const char **)member = below(m, 4) > 0 ? word(m) : NULL;
		break;
	case FW_TEXT:
	case FW_NAME:
		*(const char **)member = word(m);
		break;
	case FW_BYTES:
		*(void **)member = block(m, size);
		*(uint32_t *)(void *)(plain + field->plain_count) = size;
		break;
	case FW_TUPLE:
		for (const struct fw_field *f = field->of->fields; f->kind != FW_END; f++)
			set_number(m, f, member);
		break;
	case FW_ONE:
		make_fields(m, field->of, member);
		break;
	case FW_TEXTS:
	case FW_ROWS:
		make_rows(m, field, plain);
		break;
	case FW_KEY: /* these are random as all of the struct is */
	case FW_NUMBERS:
	case FW_SUMS:
	case FW_EXIT:
	case FW_END:
		break;
	}
}

static inline void make_fields(struct maker *m, const struct fw_layout *layout, uint8_t *plain)
{
	for (const struct fw_field *f = layout->fields; f->kind != FW_END; f++)
		make_field(m, f, plain);
}

/* Rows that other rows name. */

static inline void name_ports(struct maker *m, struct fw_host_prepared *p)
{
	for (uint32_t i = 0; i < ROWS_MADE; i++) {
		p->late_places[i].fragment = below(m, ROWS_MADE);
		p->late_places[i].op = below(m, ROWS_MADE);
	}
	for (uint32_t i = 0; i < ROWS_MADE; i++) {
		struct fw_fragment *fragment = &p->fragments[i];
		uint32_t from = below(m, ROWS_MADE), to = below(m, ROWS_MADE);

		for (uint32_t k = 0; k < ROWS_MADE; k++) {
			fragment->ops[k].ports[i].dir = FRAG_IN;
			fragment->ops[k].ports[1 - i].dir = FRAG_OUT;
			fragment->ops[k].ports[i].policy = below(m, 6);
			fragment->ops[k].ports[1 - i].policy = below(m, 6);
			fragment->interface_ports[k].op = below(m, ROWS_MADE);
			fragment->interface_ports[k].op_port = below(m, ROWS_MADE);
		}
		p->flows[i] = (struct fw_inner_flow){.from_fragment = from,
						     .from_op = below(m, ROWS_MADE),
						     .from_port = 1 - from,
						     .to_fragment = to,
						     .to_op = below(m, ROWS_MADE),
						     .to_port = to,
						     .capacity = 1 + below(m, 9),
						     .policy = 1 + below(m, 5),
						     .encrypt = below(m, 2) == 1};
	}
}

static inline void name_rows(struct maker *m, struct fw_looked *looked)
{
	for (uint32_t i = 0; i < ROWS_MADE; i++) {
		struct fragi_look_operator *op =
			&((struct fragi_look_operator *)looked->look.operators)[i];
		struct fragi_look_flow *flow = &((struct fragi_look_flow *)looked->look.flows)[i];

		op->host = below(m, ROWS_MADE);
		op->input_flow = below(m, ROWS_MADE);
		op->room_flow = FRAGI_LOOK_NONE;
		flow->sender = below(m, ROWS_MADE);
		flow->receiver = below(m, ROWS_MADE);
		((struct fragi_look_pool *)looked->look.pools)[i].host = below(m, ROWS_MADE);
		looked->chain[i].op = FRAGI_LOOK_NONE;
		looked->chain[i].flow = below(m, ROWS_MADE);
	}
	looked->op = below(m, ROWS_MADE);
	looked->flow = FRAGI_LOOK_NONE;
	looked->host = below(m, ROWS_MADE);
}

/* Every field of its kind, within its bounds. */
static inline void make(struct maker *m, enum fw_kind kind, struct fw_message *message)
{
	const struct fw_layout *layout = fw_layout(kind);
	struct fragi_passed *passed = &message->passed;

	*message = (struct fw_message){.kind = kind,
				       .seq = random_u64(m),
				       .reply_to = random_u64(m),
				       .run = random_u64(m),
				       .host = (uint32_t)random_u64(m),
				       .epoch = random_u64(m)};
	/* all bodies are members of the same union */
	memcpy(&message->hello, block(m, layout->plain_bytes), layout->plain_bytes);
	make_fields(m, layout, (uint8_t *)&message->hello);
	if (kind == FW_HELLO)
		message->hello.major = FW_PROTOCOL_MAJOR;
	else if (kind == FW_REFUSED)
		message->refused.failure.code = 1 + below(m, FRAGI_FAILURES - 1);
	else if (kind == FW_HOST_PREPARED)
		name_ports(m, &message->prepared);
	else if (kind == FW_HOST_WIRE)
		for (uint32_t i = 0; i < ROWS_MADE; i++)
			message->wire.edges[i].policy = 1 + below(m, 5);
	else if (kind == FW_LOOKED)
		name_rows(m, &message->looked);
	else if (kind == FW_HOST_SAVED)
		message->saved.offset %= 4096;
	else if (kind == FW_PASSED) {
		passed->width = 5;
		passed->height = 7;
		passed->channels = 3;
		passed->pixels = block(m, 105);
		passed->pixel_bytes = 105;
	}
}

static inline struct fw_message *decode(const uint8_t *frame, size_t size)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message = NULL;

	cr_assert_eq((size_t)frame[0] | (size_t)frame[1] << 8 | (size_t)frame[2] << 16, size - 4);
	cr_assert_eq(fw_decode(frame + 4, size - 4, &message, &err), 0, "%s", err.text);
	return message;
}

/* The first kind from this number on; 0: there is none. */
static inline int known_kind(int kind)
{
	for (; kind < 200; kind++)
		if (fw_kind_name((enum fw_kind)kind)[0] != '?')
			return kind;
	return 0;
}

#endif
