// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/arena.h>
#include <base/sentence.h>
#include <wire/layout.h>

/*
 * The protobuf tree of one message is built in an arena, borrowing the message's texts, packed, and
 * dropped. After the first failure, which is kept in `error`, nothing more is put into the tree.
 */
struct encoder {
	struct fragi_arena arena;
	int error;
};

static char empty[] = "";

static void *put_memory(struct encoder *e, size_t size)
{
	void *memory = fragi_arena_alloc(&e->arena, size);

	if (memory == NULL)
		e->error = -ENOMEM;
	return memory;
}

/* The text itself, or a copy cut to FW_TEXT_MAX, which ends with a mark. */
static char *put_text(struct encoder *e, const char *text)
{
	char *copy;

	if (text == NULL)
		return empty;
	if (strnlen(text, FW_TEXT_MAX + 1) <= FW_TEXT_MAX)
		return (char *)(uintptr_t)text;
	copy = put_memory(e, FW_TEXT_MAX + 1);
	return copy != NULL ? fragi_sentence(copy, FW_TEXT_MAX + 1, "%s", text) : empty;
}

/* Numbers, and whether there is a text. */
static uint64_t number_of(const struct fw_field *field, const uint8_t *plain)
{
	const void *member = plain + field->plain;
	uint64_t count;

	switch (field->kind) {
	case FW_BOOL:
		return *(const bool *)member;
	case FW_NUMBER32:
		return *(const uint32_t *)member;
	case FW_NUMBER64:
		return *(const uint64_t *)member;
	case FW_COUNTED:
		count = *(const uint64_t *)member / field->unit;
		return count < UINT32_MAX ? count : UINT32_MAX;
	default:
		return *(const char *const *)member != NULL;
	}
}

static void put_bytes(struct encoder *e, const struct fw_field *field, const void *bytes,
		      size_t size, ProtobufCBinaryData *out)
{
	if (size > field->max)
		e->error = -EMSGSIZE;
	else
		*out = (ProtobufCBinaryData){size, (uint8_t *)(uintptr_t)bytes};
}

/* A key that may be empty is not sent when it is all zeros. */
static void put_key(struct encoder *e, const struct fw_field *field, const uint8_t *key,
		    ProtobufCBinaryData *out)
{
	uint8_t any = 0;

	for (size_t i = 0; i < field->max; i++)
		any |= key[i];
	if (any != 0 || !field->may_be_empty)
		put_bytes(e, field, key, field->max, out);
}

static uint64_t number_at(const struct fw_field *field, const uint8_t *plain, size_t i)
{
	const uint8_t *member = plain + field->plain;

	return field->of != NULL ? number_of(&field->of->fields[i], member)
				 : ((const uint64_t *)(const void *)member)[i];
}

/* Most rows of a large graph have never dropped a message: zeros at the end take no room. */
static void put_numbers(struct encoder *e, const struct fw_field *field, const uint8_t *plain,
			uint64_t **out, size_t *out_count)
{
	size_t count = field->max;

	while (count > 0 && number_at(field, plain, count - 1) == 0)
		count--;
	*out = count > 0 ? put_memory(e, count * sizeof(**out)) : NULL;
	if (*out == NULL)
		return;
	for (size_t i = 0; i < count; i++)
		(*out)[i] = number_at(field, plain, i);
	*out_count = count;
}

static void *put_struct(struct encoder *e, const struct fw_layout *layout, const uint8_t *plain);

/* A table of texts, or of structs. */
static void put_rows(struct encoder *e, const struct fw_field *field, const uint8_t *plain,
		     void ***out, size_t *out_count)
{
	const void *counter = plain + field->plain_count;
	size_t count = field->is_wide ? *(const size_t *)counter : *(const uint32_t *)counter;
	const uint8_t *rows = *(const void *const *)(const void *)(plain + field->plain);
	size_t row_bytes = field->of != NULL ? field->of->plain_bytes : sizeof(char *);

	assert(field->kind == FW_TEXTS || field->of != NULL);
	assert(count == 0 || rows != NULL);
	if (count > field->max && field->beyond == FW_NOTHING)
		e->error = -EMSGSIZE;
	if (count == 0 || e->error < 0)
		return;
	if (count > field->max && field->beyond == FW_LAST_ROWS)
		rows += (count - field->max) * row_bytes;
	if (count > field->max)
		count = field->max;
	*out = put_memory(e, count * sizeof(**out));
	for (size_t i = 0; i < count && e->error == 0; i++, rows += row_bytes)
		(*out)[i] = field->of != NULL
				    ? put_struct(e, field->of, rows)
				    : put_text(e, *(const char *const *)(const void *)rows);
	*out_count = count;
}

static void put_field(struct encoder *e, const struct fw_field *field, const uint8_t *plain,
		      uint8_t *proto)
{
	void *out = proto + field->proto, *out_count = proto + field->proto_count;
	const uint8_t *member = plain + field->plain;

	switch (field->kind) {
	case FW_BOOL:
	case FW_NUMBER32:
	case FW_COUNTED:
		*(uint32_t *)out = (uint32_t)number_of(field, plain);
		break;
	case FW_NUMBER64:
		*(uint64_t *)out = number_of(field, plain);
		break;
	case FW_TEXT:
	case FW_OPTIONAL:
	case FW_NAME:
		*(char **)out = put_text(e, *(const char *const *)(const void *)member);
		break;
	case FW_BYTES:
		put_bytes(e, field, *(const void *const *)(const void *)member,
			  *(const uint32_t *)(const void *)(plain + field->plain_count), out);
		break;
	case FW_KEY:
		put_key(e, field, member, out);
		break;
	case FW_NUMBERS:
	case FW_SUMS:
	case FW_TUPLE:
		put_numbers(e, field, plain, out, out_count);
		break;
	case FW_TEXTS:
	case FW_ROWS:
		put_rows(e, field, plain, out, out_count);
		break;
	case FW_ONE: /* is not sent if its first field is 0, unless it must be there */
		if (field->flaw != NULL || number_of(field->of->fields, member) != 0)
			*(void **)out = put_struct(e, field->of, member);
		break;
	case FW_EXIT:
		*(int32_t *)out =
			fragi_failure_exit(*(const enum fragi_failure *)(const void *)member);
		break;
	case FW_END:
		break;
	}
}

static void *put_struct(struct encoder *e, const struct fw_layout *layout, const uint8_t *plain)
{
	uint8_t *proto = put_memory(e, layout->type->sizeof_message);

	if (proto == NULL)
		return NULL;
	protobuf_c_message_init(layout->type, proto);
	for (const struct fw_field *f = layout->fields; f->kind != FW_END && e->error == 0; f++)
		put_field(e, f, plain, proto);
	return proto;
}

/* more: bytes of the frame that follow it, for the caller to write */
static int pack(const Frag__V1__Envelope *envelope, size_t more, uint8_t **out_frame,
		size_t *out_size)
{
	size_t size = frag__v1__envelope__get_packed_size(envelope) + more;
	uint8_t *frame;

	if (size > FW_FRAME_MAX)
		return -EMSGSIZE;
	frame = fragi_malloc(4 + size);
	if (frame == NULL)
		return -ENOMEM;
	for (int i = 0; i < 4; i++)
		frame[i] = (uint8_t)(size >> (8 * i));
	frag__v1__envelope__pack(envelope, frame + 4);
	*out_frame = frame;
	*out_size = 4 + size;
	return 0;
}

/* Of two envelopes one after another a decoder makes one: the first one has what differs. */
int fw_frame_address(const uint8_t *frame, size_t size, uint64_t seq, uint64_t reply_to,
		     uint8_t **out_frame, size_t *out_size)
{
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	uint8_t *head;
	size_t head_size;
	int r;

	envelope.seq = seq;
	envelope.reply_to = reply_to;
	r = pack(&envelope, size - 4, &head, &head_size);
	if (r < 0)
		return r;
	memcpy(head + head_size - (size - 4), frame + 4, size - 4);
	*out_frame = head;
	*out_size = head_size;
	return 0;
}

int fw_encode(const struct fw_message *message, uint8_t **out_frame, size_t *out_size)
{
	const struct fw_layout *layout = fw_layout(message->kind);
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	struct encoder encoder = {0};
	int r;

	if (layout == NULL)
		return -EINVAL;
	envelope.seq = message->seq;
	envelope.reply_to = message->reply_to;
	envelope.run = message->run;
	envelope.host = message->host;
	envelope.epoch = message->epoch;
	envelope.body_case = (Frag__V1__Envelope__BodyCase)message->kind;
	/* all bodies are members of the same union */
	envelope.hello = put_struct(&encoder, layout, (const uint8_t *)&message->hello);
	r = encoder.error;
	if (r == 0)
		r = pack(&envelope, 0, out_frame, out_size);
	fragi_arena_wipe(&encoder.arena); /* numbers of sessions */
	return r;
}
