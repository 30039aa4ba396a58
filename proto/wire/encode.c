// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <wire/body.h>

static char empty[] = "";

/* The first error is the one that is returned. */
static void put_failed(struct fw_encoder *e, int error)
{
	if (e->error == 0)
		e->error = error;
}

void *fw_put_memory(struct fw_encoder *e, size_t size)
{
	void *memory = fragi_arena_alloc(&e->arena, size);

	if (memory == NULL)
		put_failed(e, -ENOMEM);
	return memory;
}

void *fw_put_body(struct fw_encoder *e, const ProtobufCMessageDescriptor *type)
{
	void *body = fw_put_memory(e, type->sizeof_message);

	if (body != NULL)
		protobuf_c_message_init(type, body);
	return body;
}

void *fw_put_rows(struct fw_encoder *e, const ProtobufCMessageDescriptor *type, size_t count,
		  size_t max, size_t *out_count)
{
	ProtobufCMessage **rows;

	*out_count = 0;
	if (count > max)
		put_failed(e, -EMSGSIZE);
	if (count == 0 || e->error < 0)
		return NULL;
	rows = fw_put_memory(e, count * sizeof(*rows));
	for (size_t i = 0; rows != NULL && i < count; i++) {
		rows[i] = fw_put_body(e, type);
		if (rows[i] == NULL)
			return NULL;
	}
	if (rows != NULL)
		*out_count = count;
	return rows;
}

char *fw_put_text(struct fw_encoder *e, const char *text)
{
	size_t length;
	char *copy;

	if (text == NULL)
		return empty;
	length = strnlen(text, FW_TEXT_MAX + 1);
	if (length <= FW_TEXT_MAX)
		return (char *)(uintptr_t)text;
	for (length = FW_TEXT_MAX;
	     length > FW_TEXT_MAX - 4 && ((unsigned char)text[length] & 0xC0) == 0x80;)
		length--;
	copy = fragi_arena_strndup(&e->arena, text, length);
	if (copy == NULL)
		put_failed(e, -ENOMEM);
	return copy != NULL ? copy : empty;
}

char **fw_put_texts(struct fw_encoder *e, const char *const *texts, size_t count, size_t max,
		    size_t *out_count)
{
	char **rows;

	*out_count = 0;
	if (count > max)
		put_failed(e, -EMSGSIZE);
	if (count == 0 || e->error < 0)
		return NULL;
	rows = fw_put_memory(e, count * sizeof(*rows));
	for (size_t i = 0; rows != NULL && i < count; i++)
		rows[i] = fw_put_text(e, texts[i]);
	if (rows != NULL)
		*out_count = count;
	return rows;
}

ProtobufCBinaryData fw_put_data(struct fw_encoder *e, const void *bytes, size_t size, size_t max)
{
	if (size > max)
		put_failed(e, -EMSGSIZE);
	return (ProtobufCBinaryData){.len = e->error == 0 ? size : 0,
				     .data = (uint8_t *)(uintptr_t)bytes};
}

/* Most rows of a large graph have never dropped a message. */
uint64_t *fw_put_numbers(struct fw_encoder *e, const uint64_t *numbers, size_t count,
			 size_t *out_count)
{
	uint64_t *copy;

	while (count > 0 && numbers[count - 1] == 0)
		count--;
	copy = fw_put_memory(e, count * sizeof(*copy));
	*out_count = copy != NULL ? count : 0;
	if (copy != NULL)
		memcpy(copy, numbers, count * sizeof(*copy));
	return copy;
}

uint64_t *fw_put_realtime(struct fw_encoder *e, const struct fragi_realtime *in, size_t *out_count)
{
	const uint64_t numbers[] = {(uint64_t)in->policy, in->priority, in->runtime_ns,
				    in->deadline_ns, in->period_ns};

	return fw_put_numbers(e, numbers, FRAG_COUNT_OF(numbers), out_count);
}

Frag__V1__Quantiles *fw_put_quantiles(struct fw_encoder *e, const struct fragi_quantiles *in)
{
	Frag__V1__Quantiles *out;

	if (in->count == 0)
		return NULL;
	out = fw_put_body(e, &frag__v1__quantiles__descriptor);
	if (out == NULL)
		return NULL;
	out->count = in->count;
	out->p50 = in->p50;
	out->p99 = in->p99;
	out->p999 = in->p999;
	out->max = in->max;
	return out;
}

void fw_put_failure_row(struct fw_encoder *e, const struct fw_failure *in, Frag__V1__Failure *out)
{
	out->code = (uint32_t)in->code;
	out->sentence = fw_put_text(e, in->sentence);
	out->operator_ = fw_put_text(e, in->op);
	out->file = fw_put_text(e, in->file);
	out->line = in->line;
	out->column = in->column;
}

Frag__V1__Failure *fw_put_failure(struct fw_encoder *e, const struct fw_failure *in)
{
	Frag__V1__Failure *out = NULL;

	if (in->code != FRAGI_FAILURE_NONE)
		out = fw_put_body(e, &frag__v1__failure__descriptor);
	if (out != NULL)
		fw_put_failure_row(e, in, out);
	return out;
}

/* Makes the body of the message's kind and tells the envelope its case. */
static void encode_body(struct fw_encoder *e, const struct fw_message *in, Frag__V1__Envelope *out)
{
	switch (in->kind) {
#define ENCODE(number, KIND, name, type, Type)                                                     \
	case FW_##KIND:                                                                            \
		out->body_case = FRAG__V1__ENVELOPE__BODY_##KIND;                                  \
		out->name = fw_put_body(e, &frag__v1__##type##__descriptor);                       \
		if (out->name != NULL)                                                             \
			fw_encode_##type(e, in, out->name);                                        \
		return;
		FW_KIND_LIST(ENCODE)
#undef ENCODE
	}
	e->error = -EINVAL;
}

static int pack(const Frag__V1__Envelope *envelope, uint8_t **out_frame, size_t *out_size)
{
	size_t size = frag__v1__envelope__get_packed_size(envelope);
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

int fw_encode(const struct fw_message *message, uint8_t **out_frame, size_t *out_size)
{
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	struct fw_encoder encoder = {0};
	int r;

	envelope.seq = message->seq;
	envelope.reply_to = message->reply_to;
	envelope.run = message->run;
	envelope.host = message->host;
	envelope.epoch = message->epoch;
	encode_body(&encoder, message, &envelope);
	r = encoder.error;
	if (r == 0)
		r = pack(&envelope, out_frame, out_size);
	fragi_arena_wipe(&encoder.arena); /* numbers of sessions */
	return r;
}
