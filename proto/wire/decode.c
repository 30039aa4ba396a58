// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/arena.h>
#include <base/printable.h>
#include <base/units.h>
#include <wire/layout.h>

/*
 * A frame comes from a stranger. protobuf-c checks its form, out of a budget of memory, because two
 * bytes can ask for a row of a hundred. The budget holds the largest tables that are sent: the
 * counters of FW_ROWS_MAX operators and as many flows. Everything else is checked here: counts,
 * enums, lengths, texts. The message and all it points to live in one arena behind it, so that
 * fw_message_free is one call. It may carry tokens and keys, so all copies are wiped.
 */
#define BUDGET_BYTES ((size_t)64 << 20)

struct decoded {
	struct fw_message message; /* first: what the caller holds */
	struct fragi_arena arena;
};

struct decoder {
	struct decoded *decoded;
	struct frag_err *err;
	int error; /* 0, or the first failure, after which nothing more is decoded */
};

/* What protobuf-c makes: thousands of small pieces, which are wiped and dropped at once. */
struct unpacking {
	struct fragi_arena arena;
	bool no_memory;
};

static void *unpack_alloc(void *arg, size_t size)
{
	struct unpacking *unpacking = arg;
	void *memory = fragi_arena_alloc(&unpacking->arena, size);

	if (memory == NULL && size <= BUDGET_BYTES &&
	    unpacking->arena.used_bytes <= BUDGET_BYTES - size)
		unpacking->no_memory = true;
	return memory;
}

static void unpack_free(void *arg, void *memory)
{
	(void)arg;
	(void)memory;
}

static void failed(struct decoder *d, const char *flaw)
{
	d->error = fragi_err_fail(d->err, FRAGI_FAILURE_PROTOCOL, NULL, -EBADMSG,
				  "a %s message holds %s", fw_kind_name(d->decoded->message.kind),
				  flaw);
}

static void *get_memory(struct decoder *d, size_t size)
{
	void *memory = fragi_arena_alloc(&d->decoded->arena, size);

	if (memory == NULL)
		d->error = -ENOMEM;
	return memory;
}

/* Also of numbers below zero, which are large ones here. */
static bool is_within(const struct fw_field *field, uint64_t number)
{
	return field->max == 0 || (number >= field->min && number <= field->max);
}

static void get_number(struct decoder *d, const struct fw_field *field, uint64_t number,
		       uint8_t *plain)
{
	void *out = plain + field->plain;

	if (!is_within(field, number) && field->flaw != NULL)
		failed(d, field->flaw);
	else if (!is_within(field, number))
		number = field->otherwise;
	if (field->kind == FW_BOOL)
		*(bool *)out = number != 0;
	else if (field->kind == FW_NUMBER32)
		*(uint32_t *)out = (uint32_t)number;
	else
		*(uint64_t *)out = field->kind == FW_COUNTED ? number * field->unit : number;
}

static const char *get_text(struct decoder *d, const struct fw_field *field, const char *in)
{
	size_t length = strnlen(in, FW_TEXT_MAX + 1);
	unsigned char any = 0;
	char *copy;

	if (field->kind == FW_NAME && !fragi_name_is_valid(in) &&
	    !(field->may_be_empty && length == 0))
		failed(d, "a name that no application can have");
	else if (field->kind == FW_TEXT && !is_within(field, length))
		failed(d, field->flaw);
	else if (length > FW_TEXT_MAX)
		failed(d, "a text that is too long");
	if (d->error != 0)
		return "";
	if (field->kind == FW_OPTIONAL && length == 0)
		return NULL;
	copy = get_memory(d, length + 1);
	if (copy == NULL)
		return "";
	for (size_t i = 0; i < length; i++) {
		copy[i] = (unsigned char)in[i] < 0x20 || in[i] == 0x7F ? ' ' : in[i];
		any |= (unsigned char)in[i];
	}
	if (any >= 0x80) /* what is printed is UTF-8, and controls no terminal */
		fragi_make_printable(copy, '?');
	return copy;
}

static void get_bytes(struct decoder *d, const struct fw_field *field,
		      const ProtobufCBinaryData *in, const void **out, uint32_t *out_size)
{
	void *copy;

	if (in->len > field->max)
		failed(d, "too many bytes");
	else if (in->len < field->min)
		failed(d, field->flaw);
	if (in->len == 0 || d->error != 0)
		return;
	copy = get_memory(d, in->len);
	if (copy == NULL)
		return;
	*out = memcpy(copy, in->data, in->len);
	*out_size = (uint32_t)in->len;
}

static void get_key(struct decoder *d, const struct fw_field *field, const ProtobufCBinaryData *in,
		    uint8_t *out)
{
	if (in->len == field->max)
		memcpy(out, in->data, field->max);
	else if (in->len != 0 || !field->may_be_empty)
		failed(d, field->flaw);
}

/* What a newer peer counts beside is not for this side, but for sums. */
static void get_numbers(struct decoder *d, const struct fw_field *field, const uint64_t *in,
			size_t count, uint8_t *plain)
{
	uint8_t *member = plain + field->plain;
	uint64_t *out = (uint64_t *)(void *)member;

	for (size_t i = 0; i < count; i++)
		if (field->kind == FW_TUPLE && i < field->max)
			get_number(d, &field->of->fields[i], in[i], member);
		else if (field->kind == FW_SUMS)
			out[i < field->max ? i : field->max - 1] += in[i];
		else if (i < field->max)
			out[i] = in[i];
}

static void get_struct(struct decoder *d, const struct fw_layout *layout, const uint8_t *proto,
		       uint8_t *plain);

/* A table of texts, or of structs. */
static void get_rows(struct decoder *d, const struct fw_field *field, const void *const *in,
		     size_t count, uint8_t *plain)
{
	void *counter = plain + field->plain_count;
	size_t row_bytes = field->of != NULL ? field->of->plain_bytes : sizeof(char *);
	uint8_t *rows;

	if (count > field->max)
		failed(d, "too many rows");
	if (count == 0 || d->error != 0)
		return;
	rows = get_memory(d, count * row_bytes);
	*(void **)(void *)(plain + field->plain) = rows;
	for (size_t i = 0; i < count && d->error == 0; i++, rows += row_bytes)
		if (field->of != NULL)
			get_struct(d, field->of, in[i], rows);
		else
			*(const char **)(void *)rows = get_text(d, field, in[i]);
	if (field->is_wide)
		*(size_t *)counter = count;
	else
		*(uint32_t *)counter = (uint32_t)count;
}

/* Nobody who prints them need ask whether they are there. */
static void get_no_texts(const struct fw_layout *layout, uint8_t *plain)
{
	for (const struct fw_field *f = layout->fields; f->kind != FW_END; f++)
		if (f->kind == FW_TEXT)
			*(const char **)(void *)(plain + f->plain) = "";
}

static void get_one(struct decoder *d, const struct fw_field *field, const uint8_t *in,
		    uint8_t *plain)
{
	if (in != NULL)
		get_struct(d, field->of, in, plain + field->plain);
	else if (field->flaw != NULL)
		failed(d, field->flaw);
	else
		get_no_texts(field->of, plain + field->plain);
}

static void get_field(struct decoder *d, const struct fw_field *field, const uint8_t *proto,
		      uint8_t *plain)
{
	const void *in = proto + field->proto, *in_count = proto + field->proto_count;
	void *out = plain + field->plain;

	switch (field->kind) {
	case FW_BOOL:
	case FW_NUMBER32:
	case FW_COUNTED:
		get_number(d, field, *(const uint32_t *)in, plain);
		break;
	case FW_NUMBER64:
		get_number(d, field, *(const uint64_t *)in, plain);
		break;
	case FW_TEXT:
	case FW_OPTIONAL:
	case FW_NAME:
		*(const char **)out = get_text(d, field, *(const char *const *)in);
		break;
	case FW_BYTES:
		get_bytes(d, field, in, out, (uint32_t *)(void *)(plain + field->plain_count));
		break;
	case FW_KEY:
		get_key(d, field, in, out);
		break;
	case FW_NUMBERS:
	case FW_SUMS:
	case FW_TUPLE:
		get_numbers(d, field, *(const uint64_t *const *)in, *(const size_t *)in_count,
			    plain);
		break;
	case FW_TEXTS:
	case FW_ROWS:
		get_rows(d, field, *(const void *const *const *)in, *(const size_t *)in_count,
			 plain);
		break;
	case FW_ONE:
		get_one(d, field, *(const uint8_t *const *)in, plain);
		break;
	case FW_EXIT:
	case FW_END:
		break;
	}
}

static void get_struct(struct decoder *d, const struct fw_layout *layout, const uint8_t *proto,
		       uint8_t *plain)
{
	const char *flaw = NULL;

	assert(((const ProtobufCMessage *)(const void *)proto)->descriptor == layout->type);
	for (const struct fw_field *f = layout->fields; f->kind != FW_END && d->error == 0; f++)
		get_field(d, f, proto, plain);
	if (layout->flaw != NULL && d->error == 0)
		flaw = layout->flaw(proto, plain);
	if (flaw != NULL)
		failed(d, flaw);
}

static void get_body(struct decoder *d, const Frag__V1__Envelope *in, struct fw_message *out)
{
	const struct fw_layout *layout = fw_layout(out->kind);
	/* all bodies are members of the same union */
	const uint8_t *proto = (const uint8_t *)in->hello;
	uint8_t *plain = (uint8_t *)&out->hello;

	if (out->kind == FW_HELLO && in->hello->major != FW_PROTOCOL_MAJOR) {
		get_no_texts(layout, plain);
		layout = &fw_layout_version;
	}
	get_struct(d, layout, proto, plain);
}

/* envelope: NULL: there is none */
static int take_envelope(const Frag__V1__Envelope *envelope, size_t size,
			 const struct unpacking *unpacking, struct fw_message **out_message,
			 struct frag_err *err)
{
	struct decoder decoder = {.err = err};
	struct fw_message *message;

	if (envelope == NULL && unpacking->no_memory)
		return -ENOMEM;
	if (envelope == NULL)
		return frag_err_set(err, -EBADMSG,
				    "a frame of %zu bytes holds no message of this protocol", size);
	if (fw_layout((enum fw_kind)envelope->body_case) == NULL)
		return frag_err_set(err, -EBADMSG,
				    "a frame of %zu bytes holds a message of unknown kind", size);
	decoder.decoded = fragi_calloc(1, sizeof(*decoder.decoded));
	if (decoder.decoded == NULL)
		return -ENOMEM;
	decoder.decoded->arena.limit_bytes = BUDGET_BYTES;
	message = &decoder.decoded->message;
	message->kind = (enum fw_kind)envelope->body_case;
	message->seq = envelope->seq;
	message->reply_to = envelope->reply_to;
	message->run = envelope->run;
	message->host = envelope->host;
	message->epoch = envelope->epoch;
	get_body(&decoder, envelope, message);
	if (decoder.error != 0) {
		fw_message_free(message);
		return decoder.error;
	}
	*out_message = message;
	return 0;
}

int fw_decode(const uint8_t *bytes, size_t size, struct fw_message **out_message,
	      struct frag_err *err)
{
	struct unpacking unpacking = {.arena.limit_bytes = BUDGET_BYTES};
	ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &unpacking};
	Frag__V1__Envelope *envelope;
	int r;

	if (size > FW_FRAME_MAX)
		return frag_err_set(err, -EBADMSG,
				    "a frame of %zu bytes came, at most %u are taken", size,
				    FW_FRAME_MAX);
	envelope = frag__v1__envelope__unpack(&allocator, size, bytes);
	r = take_envelope(envelope, size, &unpacking, out_message, err);
	fragi_arena_wipe(&unpacking.arena);
	return r;
}

void fw_message_free(struct fw_message *message)
{
	struct decoded *decoded = (struct decoded *)message;

	if (message == NULL)
		return;
	fragi_arena_wipe(&decoded->arena);
	explicit_bzero(message, sizeof(*message));
	fragi_free(decoded);
}
