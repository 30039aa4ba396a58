// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/arena.h>
#include <base/log.h>
#include <frag/operator.h>
#include <frag/v1/control.pb-c.h>
#include <wire/layout.h>

/* Messages with everything in them, from a seed; they live in the arena. */
struct maker {
	struct fragi_arena arena;
	uint64_t state;
};

static uint64_t random_u64(struct maker *m)
{
	m->state ^= m->state << 13;
	m->state ^= m->state >> 7;
	m->state ^= m->state << 17;
	return m->state;
}

static uint32_t below(struct maker *m, uint32_t n)
{
	return (uint32_t)(random_u64(m) % n);
}

static const char *word(struct maker *m)
{
	return fragi_arena_printf(&m->arena, "w%llx", (unsigned long long)random_u64(m));
}

static void *block(struct maker *m, size_t size)
{
	uint8_t *bytes = fragi_arena_alloc(&m->arena, size);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)random_u64(m);
	return bytes;
}

static uint64_t number(struct maker *m, const struct fw_field *field)
{
	return field->max == 0 ? random_u64(m)
			       : field->min + random_u64(m) % (field->max - field->min + 1);
}

static void set_number(struct maker *m, const struct fw_field *field, uint8_t *plain)
{
	void *member = plain + field->plain;

	if (field->kind == FW_BOOL)
		*(bool *)member = below(m, 2) == 1;
	else if (field->kind == FW_NUMBER32)
		*(uint32_t *)member = (uint32_t)number(m, field);
	else
		*(uint64_t *)member = number(m, field);
}

#define ROWS_MADE 2

static void make_fields(struct maker *m, const struct fw_layout *layout, uint8_t *plain);

static void make_rows(struct maker *m, const struct fw_field *field, uint8_t *plain)
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

static void make_field(struct maker *m, const struct fw_field *field, uint8_t *plain)
{
	void *member = plain + field->plain;
	uint32_t size = 1 + below(m, 20);

	switch (field->kind) {
	case FW_BOOL:
	case FW_NUMBER32:
	case FW_NUMBER64:
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

static void make_fields(struct maker *m, const struct fw_layout *layout, uint8_t *plain)
{
	for (const struct fw_field *f = layout->fields; f->kind != FW_END; f++)
		make_field(m, f, plain);
}

/* Rows that other rows name. */

static void name_ports(struct maker *m, struct fw_host_prepared *p)
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

static void name_rows(struct maker *m, struct fw_looked *looked)
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
static void make(struct maker *m, enum fw_kind kind, struct fw_message *message)
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

static struct fw_message *decode(const uint8_t *frame, size_t size)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message = NULL;

	cr_assert_eq((size_t)frame[0] | (size_t)frame[1] << 8 | (size_t)frame[2] << 16, size - 4);
	cr_assert_eq(fw_decode(frame + 4, size - 4, &message, &err), 0, "%s", err.text);
	return message;
}

/* The first kind from this number on; 0: there is none. */
static int known_kind(int kind)
{
	for (; kind < 200; kind++)
		if (fw_kind_name((enum fw_kind)kind)[0] != '?')
			return kind;
	return 0;
}

Test(wire_codec, every_kind_comes_back_as_it_was)
{
	for (int kind = FW_HELLO; (kind = known_kind(kind)) != 0; kind++) {
		for (uint64_t seed = 1; seed < 20; seed++) {
			struct maker m = {.state = seed * 7919};
			struct fw_message in, *out;
			uint8_t *frame, *again;
			size_t size, again_size;

			make(&m, (enum fw_kind)kind, &in);
			cr_assert_eq(fw_encode(&in, &frame, &size), 0);
			out = decode(frame, size);
			cr_assert_eq(out->kind, in.kind);
			cr_assert_eq(out->seq, in.seq);
			cr_assert_eq(out->reply_to, in.reply_to);
			cr_assert_eq(out->run, in.run);
			cr_assert_eq(out->host, in.host);
			cr_assert_eq(out->epoch, in.epoch);
			cr_assert_eq(fw_encode(out, &again, &again_size), 0);
			cr_assert_eq(again_size, size, "%s", fw_kind_name((enum fw_kind)kind));
			cr_assert_eq(memcmp(again, frame, size), 0, "%s",
				     fw_kind_name((enum fw_kind)kind));
			fw_message_free(out);
			fragi_free(frame);
			fragi_free(again);
			fragi_arena_fini(&m.arena);
		}
	}
}

/* The fields of protobuf messages that were seen with another value than the default. */
struct seen {
	struct seen_kind {
		const ProtobufCMessageDescriptor *kind;
		bool fields[64];
	} kinds[96];
	size_t count;
};

static struct seen_kind *seen_kind(struct seen *seen, const ProtobufCMessageDescriptor *kind)
{
	for (size_t i = 0; i < seen->count; i++)
		if (seen->kinds[i].kind == kind)
			return &seen->kinds[i];
	cr_assert_lt(seen->count, FRAG_COUNT_OF(seen->kinds));
	cr_assert_leq(kind->n_fields, FRAG_COUNT_OF(seen->kinds[0].fields));
	seen->kinds[seen->count].kind = kind;
	return &seen->kinds[seen->count++];
}

static void look_at(struct seen *seen, const ProtobufCMessage *message);

static bool look_at_field(struct seen *seen, const ProtobufCMessage *message,
			  const ProtobufCFieldDescriptor *field)
{
	const uint8_t *base = (const uint8_t *)message, *value = base + field->offset;
	const bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
	const size_t count = repeated ? *(const size_t *)(base + field->quantifier_offset) : 0;

	if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
	    *(const uint32_t *)(base + field->quantifier_offset) != field->id)
		return false;
	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		for (size_t i = 0; i < count; i++)
			look_at(seen, (*(ProtobufCMessage *const *const *)value)[i]);
		if (!repeated && *(ProtobufCMessage *const *)value != NULL)
			look_at(seen, *(ProtobufCMessage *const *)value);
		return repeated ? count > 0 : *(ProtobufCMessage *const *)value != NULL;
	case PROTOBUF_C_TYPE_STRING:
		return repeated ? count > 0 : **(const char *const *)value != '\0';
	case PROTOBUF_C_TYPE_BYTES:
		return repeated ? count > 0 : ((const ProtobufCBinaryData *)value)->len > 0;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		return repeated ? count > 0 : *(const uint64_t *)value != 0;
	default:
		return repeated ? count > 0 : *(const uint32_t *)value != 0;
	}
}

static void look_at(struct seen *seen, const ProtobufCMessage *message)
{
	struct seen_kind *kind = seen_kind(seen, message->descriptor);

	for (unsigned int i = 0; i < message->descriptor->n_fields; i++)
		if (look_at_field(seen, message, &message->descriptor->fields[i]))
			kind->fields[i] = true;
}

/* Encodes and decodes; returns what the decoder says. */
static int cross(const struct fw_message *in)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *out = NULL;
	uint8_t *frame;
	size_t size;
	int r;

	cr_assert_eq(fw_encode(in, &frame, &size), 0);
	r = fw_decode(frame + 4, size - 4, &out, &err);
	cr_expect(r == 0 || strstr(err.text, "row that it does not hold") != NULL, "%s", err.text);
	fw_message_free(out);
	fragi_free(frame);
	return r;
}

Test(wire_codec, a_look_names_no_row_that_it_does_not_hold)
{
	struct maker m = {.state = 7};
	struct fw_message in;
	struct fragi_look *look = &in.looked.look;
	struct fragi_look_operator *op;
	struct fragi_look_flow *flow;
	uint32_t *indices[10];

	make(&m, FW_LOOKED, &in);
	op = (struct fragi_look_operator *)look->operators;
	flow = (struct fragi_look_flow *)look->flows;
	indices[0] = &op[1].host;
	indices[1] = &op[1].input_flow;
	indices[2] = &op[1].room_flow;
	indices[3] = &flow[1].sender;
	indices[4] = &flow[1].receiver;
	indices[5] = &in.looked.op;
	indices[6] = &in.looked.flow;
	indices[7] = &in.looked.host;
	indices[8] = &in.looked.chain[0].op;
	indices[9] = &((struct fragi_look_pool *)look->pools)[1].host;
	for (int i = 0; i < 10; i++) {
		uint32_t before = *indices[i];

		*indices[i] = ROWS_MADE - 1;
		cr_expect_eq(cross(&in), 0, "index %d", i);
		*indices[i] = ROWS_MADE;
		cr_expect_eq(cross(&in), -EBADMSG, "index %d", i);
		*indices[i] = before;
	}
	fragi_arena_fini(&m.arena);
}

/* What the encoder forgot would come back as it was: as nothing. */
Test(wire_codec, every_field_of_the_protocol_is_sent)
{
	static struct seen seen;

	for (int kind = FW_HELLO; (kind = known_kind(kind)) != 0; kind++)
		for (uint64_t seed = 1; seed < 20; seed++) {
			struct maker m = {.state = seed * 7919};
			Frag__V1__Envelope *envelope;
			struct fw_message in;
			uint8_t *frame;
			size_t size;

			make(&m, (enum fw_kind)kind, &in);
			cr_assert_eq(fw_encode(&in, &frame, &size), 0);
			envelope = frag__v1__envelope__unpack(NULL, size - 4, frame + 4);
			cr_assert_not_null(envelope);
			look_at(&seen, &envelope->base);
			frag__v1__envelope__free_unpacked(envelope, NULL);
			fragi_free(frame);
			fragi_arena_fini(&m.arena);
		}
	for (size_t i = 0; i < seen.count; i++)
		for (unsigned int k = 0; k < seen.kinds[i].kind->n_fields; k++)
			cr_expect(seen.kinds[i].fields[k], "%s.%s is never sent",
				  seen.kinds[i].kind->name, seen.kinds[i].kind->fields[k].name);
}

Test(wire_codec, fields_arrive_where_they_belong)
{
	struct maker m = {.state = 99};
	const struct fw_address *there, *here;
	struct fw_message in, *out;
	uint8_t *frame;
	size_t size;

	make(&m, FW_HOST_WIRE, &in);
	in.wire.edges[1].token[0] = 0x5A;
	in.wire.edges[1].order = 7;
	in.wire.edges[0].sends = in.wire.edges[1].encrypt = true;
	in.wire.edges[0].encrypt = in.wire.edges[1].sends = false;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_assert_eq(out->wire.edge_count, ROWS_MADE);
	cr_expect_eq(out->wire.edges[1].token[0], 0x5A);
	cr_expect_eq(out->wire.edges[1].window_bytes, in.wire.edges[1].window_bytes);
	cr_expect_eq(out->wire.edges[1].order, 7);
	cr_expect(out->wire.edges[0].sends && !out->wire.edges[1].sends);
	cr_expect(out->wire.edges[1].encrypt && !out->wire.edges[0].encrypt);
	cr_expect_str_eq(out->wire.edges[1].transport, in.wire.edges[1].transport);
	cr_expect_str_eq(out->wire.peers[1].name, in.wire.peers[1].name);
	cr_assert_eq(out->wire.announced_count, ROWS_MADE);
	cr_expect_str_eq(out->wire.announced[1], in.wire.announced[1]);
	cr_assert_eq(out->wire.peers[1].address_count, ROWS_MADE);
	there = &in.wire.peers[1].addresses[1];
	here = &out->wire.peers[1].addresses[1];
	cr_expect_str_eq(here->transport, there->transport);
	cr_expect_str_eq(here->detail, there->detail);
	cr_assert_eq(here->size, there->size);
	cr_expect_arr_eq(here->bytes, there->bytes, here->size);
	fw_message_free(out);
	fragi_free(frame);

	make(&m, FW_HOST_STATS, &in);
	in.stats.ops[1].running = true;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_arr_eq(&out->stats.flows[1], &in.stats.flows[1], sizeof(struct fragi_flow_stats),
			 "every counter, reason and quantile");
	cr_expect_arr_eq(&out->stats.facts, &in.stats.facts, sizeof(struct fw_facts));
	cr_expect_eq(out->stats.ops[1].running, true);
	cr_expect_eq(out->stats.ops[1].time_ns, in.stats.ops[1].time_ns);
	cr_expect_eq(out->stats.ops[1].waiting_ns, in.stats.ops[1].waiting_ns);
	cr_expect_arr_eq(&out->stats.ops[1].compute, &in.stats.ops[1].compute,
			 sizeof(struct fragi_quantiles));
	cr_expect_arr_eq(&out->stats.ops[1].realtime, &in.stats.ops[1].realtime,
			 sizeof(struct fragi_realtime));
	fw_message_free(out);
	fragi_free(frame);
	fragi_arena_fini(&m.arena);
}

Test(wire_codec, a_cut_frame_or_a_flipped_bit_is_refused_or_read_and_nothing_worse)
{
	for (int kind = FW_HELLO; (kind = known_kind(kind)) != 0; kind++) {
		struct maker m = {.state = 4242};
		struct fw_message in, *out;
		uint8_t *frame;
		size_t size;

		make(&m, (enum fw_kind)kind, &in);
		cr_assert_eq(fw_encode(&in, &frame, &size), 0);
		for (size_t cut = 0; cut < size - 4; cut++) {
			uint8_t *exact = malloc(cut + 1);
			struct frag_err err = FRAG_ERR_INIT;
			int r;

			memcpy(exact, frame + 4, cut);
			r = fw_decode(exact, cut, &out, &err);
			cr_assert(r == 0 || (r == -EBADMSG && err.text[0] != '\0'), "cut %zu: %d",
				  cut, r);
			if (r == 0)
				fw_message_free(out);
			free(exact);
		}
		for (size_t bit = 0; bit < (size - 4) * 8; bit++) {
			int r;

			frame[4 + bit / 8] ^= (uint8_t)(1u << (bit % 8));
			r = fw_decode(frame + 4, size - 4, &out, NULL);
			cr_assert(r == 0 || r == -EBADMSG);
			if (r == 0)
				fw_message_free(out);
			frame[4 + bit / 8] ^= (uint8_t)(1u << (bit % 8));
		}
		fragi_free(frame);
		fragi_arena_fini(&m.arena);
	}
}

Test(wire_codec, random_bytes_are_refused)
{
	struct maker m = {.state = 31337};
	uint8_t bytes[512];

	for (int i = 0; i < 100000; i++) {
		size_t size = below(&m, sizeof(bytes));
		struct fw_message *out;

		for (size_t j = 0; j < size; j++)
			bytes[j] = (uint8_t)random_u64(&m);
		if (fw_decode(bytes, size, &out, NULL) == 0)
			fw_message_free(out);
	}
	cr_expect_eq(fw_decode(bytes, 0, &(struct fw_message *){NULL}, NULL), -EBADMSG,
		     "an envelope without a body is no message");
}

Test(wire_codec, inner_flows_must_name_ports_of_the_same_message)
{
	struct maker m = {.state = 5};
	struct fw_message in, *out;
	uint8_t *frame;
	size_t size;

	for (int field = 0; field < 6; field++) {
		make(&m, FW_HOST_PREPARED, &in);
		(&in.prepared.flows[1].from_fragment)[field] = field % 3 == 2 ? 7 : 1000;
		cr_assert_eq(fw_encode(&in, &frame, &size), 0);
		cr_expect_eq(fw_decode(frame + 4, size - 4, &out, NULL), -EBADMSG, "field %d",
			     field);
		fragi_free(frame);
	}
	make(&m, FW_HOST_PREPARED, &in);
	in.prepared.flows[1].from_port = in.prepared.flows[1].from_fragment; /* an input */
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	cr_expect_eq(fw_decode(frame + 4, size - 4, &out, NULL), -EBADMSG);
	fragi_free(frame);
	fragi_arena_fini(&m.arena);
}

Test(wire_codec, paths_with_late_messages_must_end_in_operators_of_the_same_message)
{
	struct maker m = {.state = 5};
	struct fw_message in, *out;
	uint8_t *frame;
	size_t size;

	for (int field = 0; field < 2; field++) {
		make(&m, FW_HOST_PREPARED, &in);
		(&in.prepared.late_places[1].fragment)[field] = ROWS_MADE;
		cr_assert_eq(fw_encode(&in, &frame, &size), 0);
		cr_expect_eq(fw_decode(frame + 4, size - 4, &out, NULL), -EBADMSG, "field %d",
			     field);
		fragi_free(frame);
	}
	fragi_arena_fini(&m.arena);
}

Test(wire_codec, texts_are_cut_and_cleaned)
{
	struct fw_message in = {.kind = FW_REFUSED, .refused = {{FRAGI_FAILURE_OTHER, "", ""}}},
			  *out;
	char longer[FW_TEXT_MAX + 10];
	uint8_t *frame;
	size_t size;

	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	memcpy(longer + FW_TEXT_MAX - 1, "\xC3\xA9", 2); /* a character across the bound */
	longer[2] = '\n';
	longer[3] = '\033';
	in.refused.failure.sentence = longer;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_eq(strlen(out->refused.failure.sentence), FW_TEXT_MAX - 1);
	cr_expect_eq(strncmp(out->refused.failure.sentence, "xx  x", 5), 0);
	fw_message_free(out);
	fragi_free(frame);

	in.refused.failure.sentence = NULL;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_str_eq(out->refused.failure.sentence, "");
	fw_message_free(out);
	fragi_free(frame);
}

Test(wire_codec, the_last_lines_of_a_host_are_kept)
{
	const char *lines[30];
	char texts[30][8];
	struct fw_message in = {.kind = FW_HOST_EXIT}, *out;
	uint8_t *frame;
	size_t size;

	for (int i = 0; i < 30; i++) {
		snprintf(texts[i], sizeof(texts[i]), "l%d", i);
		lines[i] = texts[i];
	}
	in.exit = (struct fw_host_exit){.lines = lines, .line_count = 30};
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_assert_eq(out->exit.line_count, FW_LINES_MAX);
	cr_expect_str_eq(out->exit.lines[0], "l10");
	cr_expect_str_eq(out->exit.lines[19], "l29");
	fw_message_free(out);
	fragi_free(frame);
}

Test(wire_codec, every_failure_of_memory_is_told)
{
	struct maker m = {.state = 8};

	for (int kind = FW_HELLO; (kind = known_kind(kind)) != 0; kind++) {
		struct fw_message in, *out;
		uint8_t *frame, *good;
		size_t size, good_size;
		int r;

		make(&m, (enum fw_kind)kind, &in);
		cr_assert_eq(fw_encode(&in, &good, &good_size), 0);
		for (int64_t skip = 0, failed = 1; failed > 0; skip++) {
			fragi_alloc_fail_after(skip, 1);
			r = fw_encode(&in, &frame, &size);
			failed = fragi_alloc_fail_off();
			cr_assert_eq(r, failed > 0 ? -ENOMEM : 0, "%s, allocation %lld",
				     fw_kind_name(in.kind), (long long)skip);
		}
		fragi_free(frame);
		for (int64_t skip = 0, failed = 1; failed > 0; skip++) {
			fragi_alloc_fail_after(skip, 1);
			r = fw_decode(good + 4, good_size - 4, &out, NULL);
			failed = fragi_alloc_fail_off();
			cr_assert_eq(r, failed > 0 ? -ENOMEM : 0, "%s, allocation %lld",
				     fw_kind_name(in.kind), (long long)skip);
		}
		fw_message_free(out);
		fragi_free(good);
	}
	fragi_arena_fini(&m.arena);
}

/* Whoever prints them need not ask. */
Test(wire_codec, no_text_of_a_failure_is_missing)
{
	const struct fw_failure failure = {.code = FRAGI_FAILURE_VERSION_REFUSED};
	struct fw_message messages[] = {
		{.kind = FW_REFUSED, .refused = {failure}},
		{.kind = FW_HOST_WIRED, .result = {failure}},
		{.kind = FW_HOST_STARTED},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(messages); i++) {
		const struct fw_failure *out;
		struct fw_message *message;
		uint8_t *frame;
		size_t size;

		cr_assert_eq(fw_encode(&messages[i], &frame, &size), 0);
		message = decode(frame, size);
		out = i == 0 ? &message->refused.failure : &message->result.failure;
		cr_expect_str_eq(out->sentence, "");
		cr_expect_str_eq(out->op, "");
		cr_expect_str_eq(out->file, "");
		fw_message_free(message);
		fragi_free(frame);
	}
}

Test(wire_codec, no_more_errors_travel_than_are_taken)
{
	struct fw_failure errors[FW_ERRORS_MAX + 1];
	struct fw_message in = {.kind = FW_HOST_PREPARED,
				.prepared = {.errors = errors, .error_count = FW_ERRORS_MAX + 1}},
			  *out;
	uint8_t *frame;
	size_t size;

	for (size_t i = 0; i < FRAG_COUNT_OF(errors); i++)
		errors[i] = (struct fw_failure){FRAGI_FAILURE_OTHER,
						i == 0 ? "the first" : "another", NULL};
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_eq(out->prepared.error_count, FW_ERRORS_MAX);
	cr_expect_str_eq(out->prepared.errors[0].sentence, "the first");
	fw_message_free(out);
	fragi_free(frame);
}

Test(wire_codec, a_text_of_continuation_bytes_alone_is_cut_all_the_same)
{
	struct fw_message in = {.kind = FW_REFUSED, .refused = {{FRAGI_FAILURE_OTHER, "", ""}}},
			  *out;
	char text[FW_TEXT_MAX + 10];
	uint8_t *frame;
	size_t size;

	memset(text, 0x80, sizeof(text)); /* no UTF-8 */
	text[sizeof(text) - 1] = '\0';
	in.refused.failure.sentence = text;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_eq(strlen(out->refused.failure.sentence), FW_TEXT_MAX - 4);
	fw_message_free(out);
	for (int64_t skip = 0; skip < 2; skip++) { /* the body, then the copy that is cut */
		fragi_free(frame);
		frame = NULL;
		fragi_alloc_fail_after(skip + 1, 1);
		cr_expect_eq(fw_encode(&in, &frame, &size), -ENOMEM);
		fragi_alloc_fail_off();
	}
}

Test(wire_codec, kinds_have_names)
{
	cr_expect_str_eq(fw_kind_name(FW_HELLO), "HELLO");
	cr_expect_str_eq(fw_kind_name(FW_HOST_EXIT), "HOST_EXIT");
	cr_expect_str_eq(fw_kind_name((enum fw_kind)0), "?");
	cr_expect_str_eq(fw_kind_name((enum fw_kind)(FW_EVENTS + 1)), "?");
}

/* What people look at comes from any host: a picture has as many bytes as it says. */
Test(wire_codec, a_picture_has_its_size)
{
	static const struct {
		uint32_t width, height, channels, bytes;
		bool is_right;
	} cases[] = {
		{4, 3, 3, 36, true},         {4, 3, 4, 48, true},
		{4, 3, 1, 12, true},         {0, 0, 0, 0, true},
		{4, 3, 3, 35, false},        {4, 3, 3, 37, false},
		{4, 3, 2, 24, false},        {4, 3, 0, 0, true},
		{0, 3, 3, 1, false},         {65536, 65536, 1, 0, false},
		{98304, 1, 1, 0, false},     {98304, 1, 1, 98304, true},
		{98305, 1, 1, 98304, false}, {1u << 31, 2, 1, 0, false},
		{65536, 65536, 4, 0, false},
	};
	static uint8_t pixels[FRAGI_PASSED_PIXELS_MAX];
	struct fw_message message = {.kind = FW_PASSED}, *same;
	uint8_t *frame;
	size_t size;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		int r;

		message.passed = (struct fragi_passed){.value = "",
						       .metadata = "",
						       .width = cases[i].width,
						       .height = cases[i].height,
						       .channels = cases[i].channels,
						       .pixels = pixels,
						       .pixel_bytes = cases[i].bytes};
		cr_assert_eq(fw_encode(&message, &frame, &size), 0, "%zu", i);
		r = fw_decode(frame + 4, size - 4, &same, &err);
		cr_expect_eq(r, cases[i].is_right ? 0 : -EBADMSG, "%zu: %s", i, err.text);
		if (r == 0)
			fw_message_free(same);
		else
			cr_expect(strstr(err.text, "a picture of another size") != NULL, "%s",
				  err.text);
		fragi_free(frame);
	}
	message.passed =
		(struct fragi_passed){.pixels = pixels, .pixel_bytes = FRAGI_PASSED_PIXELS_MAX + 1};
	cr_expect_eq(fw_encode(&message, &frame, &size), -EMSGSIZE);
}
