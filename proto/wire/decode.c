// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <wire/body.h>

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

struct budget {
	size_t left;
	bool no_memory;
};

/* Each block carries its size in front, so that what is freed returns to the budget. */
static void *budget_alloc(void *arg, size_t size)
{
	struct budget *budget = arg;
	size_t *block;

	if (size > budget->left || budget->left - size < sizeof(max_align_t))
		return NULL;
	block = fragi_malloc(sizeof(max_align_t) + size);
	if (block == NULL) {
		budget->no_memory = true;
		return NULL;
	}
	*block = sizeof(max_align_t) + size;
	budget->left -= *block;
	return (uint8_t *)block + sizeof(max_align_t);
}

static void budget_free(void *arg, void *memory)
{
	struct budget *budget = arg;
	size_t *block;

	if (memory == NULL)
		return;
	block = (size_t *)(void *)((uint8_t *)memory - sizeof(max_align_t));
	budget->left += *block;
	explicit_bzero(memory, *block - sizeof(max_align_t));
	fragi_free(block);
}

void fw_get_failed(struct fw_decoder *d, const char *what)
{
	if (d->error != 0)
		return;
	d->error = frag_err_set(d->err, -EBADMSG, "a %s message holds %s",
				fw_kind_name(d->message->kind), what);
}

void *fw_get_memory(struct fw_decoder *d, size_t size)
{
	void *memory = fragi_arena_alloc(d->arena, size);

	if (memory == NULL && d->error == 0)
		d->error = -ENOMEM;
	return memory;
}

void *fw_get_rows(struct fw_decoder *d, size_t count, size_t max, size_t row_bytes,
		  uint32_t *out_count)
{
	void *table;

	*out_count = 0;
	if (count > max)
		fw_get_failed(d, "too many rows");
	if (count == 0 || d->error != 0)
		return NULL;
	table = fw_get_memory(d, count * row_bytes);
	if (table != NULL)
		*out_count = (uint32_t)count;
	return table;
}

const char *fw_get_text(struct fw_decoder *d, const char *in)
{
	size_t length = strnlen(in, FW_TEXT_MAX + 1);
	char *copy;

	if (length > FW_TEXT_MAX) {
		fw_get_failed(d, "a text that is too long");
		return "";
	}
	copy = fragi_arena_strndup(d->arena, in, length);
	if (copy == NULL) {
		d->error = d->error != 0 ? d->error : -ENOMEM;
		return "";
	}
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)copy[i] < 0x20 || copy[i] == 0x7F)
			copy[i] = ' ';
	return copy;
}

const char **fw_get_texts(struct fw_decoder *d, char **in, size_t count, size_t max,
			  uint32_t *out_count)
{
	const char **table = fw_get_rows(d, count, max, sizeof(*table), out_count);

	for (uint32_t i = 0; i < *out_count; i++)
		table[i] = fw_get_text(d, in[i]);
	return table;
}

const void *fw_get_data(struct fw_decoder *d, ProtobufCBinaryData in, size_t max,
			uint32_t *out_size)
{
	void *copy;

	*out_size = 0;
	if (in.len > max)
		fw_get_failed(d, "too many bytes");
	if (in.len == 0 || d->error != 0)
		return NULL;
	copy = fw_get_memory(d, in.len);
	if (copy == NULL)
		return NULL;
	memcpy(copy, in.data, in.len);
	*out_size = (uint32_t)in.len;
	return copy;
}

int32_t fw_get_exit_code(struct fw_decoder *d, int32_t code)
{
	if (code < 0 || code > 255)
		fw_get_failed(d, "an exit code out of range");
	return code;
}

int64_t fw_get_duration(struct fw_decoder *d, int64_t ns)
{
	if (ns < 0)
		fw_get_failed(d, "a negative time");
	return ns;
}

void fw_get_numbers(const uint64_t *in, size_t in_count, uint64_t *out, size_t count)
{
	for (size_t i = 0; i < in_count && i < count; i++)
		out[i] = in[i];
}

/* A policy of a newer peer is another one. */
void fw_get_realtime(const uint64_t *in, size_t in_count, struct fragi_realtime *out)
{
	uint64_t numbers[5] = {0};

	fw_get_numbers(in, in_count, numbers, FRAG_COUNT_OF(numbers));
	out->policy = numbers[0] < FRAGI_SCHED_OTHER ? (enum fragi_sched_policy)numbers[0]
						     : FRAGI_SCHED_OTHER;
	out->priority = (uint32_t)numbers[1];
	out->runtime_ns = numbers[2];
	out->deadline_ns = numbers[3];
	out->period_ns = numbers[4];
}

void fw_get_quantiles(const Frag__V1__Quantiles *in, struct fragi_quantiles *out)
{
	if (in == NULL)
		return;
	out->count = in->count;
	out->p50 = in->p50;
	out->p99 = in->p99;
	out->p999 = in->p999;
	out->max = in->max;
}

enum fragi_failure fw_get_failure_code(uint32_t code)
{
	return code > FRAGI_FAILURE_NONE && code < FRAGI_FAILURES ? (enum fragi_failure)code
								  : FRAGI_FAILURE_OTHER;
}

void fw_get_failure(struct fw_decoder *d, const Frag__V1__Failure *in, struct fw_failure *out)
{
	out->code = FRAGI_FAILURE_NONE;
	out->sentence = out->op = out->file = "";
	if (in == NULL)
		return;
	out->code = fw_get_failure_code(in->code);
	out->sentence = fw_get_text(d, in->sentence);
	out->op = fw_get_text(d, in->operator_);
	out->file = fw_get_text(d, in->file);
	if (in->line > INT32_MAX || in->column > INT32_MAX)
		fw_get_failed(d, "a place that no text has");
	out->line = in->line;
	out->column = in->column;
}

#define SAME(number, KIND, field, type, Type)                                                      \
	_Static_assert((int)FW_##KIND == (int)FRAG__V1__ENVELOPE__BODY_##KIND,                     \
		       "a kind is the number of its field");
FW_KIND_LIST(SAME)
#undef SAME

/* false: the envelope holds no kind that this side knows. */
static bool is_known(const Frag__V1__Envelope *in)
{
	return fw_kind_name((enum fw_kind)in->body_case)[0] != '?';
}

static void decode_body(struct fw_decoder *d, const Frag__V1__Envelope *in, struct fw_message *out)
{
	switch (out->kind) {
#define DECODE(number, KIND, field, type, Type)                                                    \
	case FW_##KIND:                                                                            \
		fw_decode_##type(d, in->field, out);                                               \
		return;
		FW_KIND_LIST(DECODE)
#undef DECODE
	}
}

int fw_decode(const uint8_t *bytes, size_t size, struct fw_message **out_message,
	      struct frag_err *err)
{
	struct budget budget = {.left = BUDGET_BYTES};
	ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
	struct fw_decoder decoder = {.err = err};
	struct decoded *decoded;
	Frag__V1__Envelope *envelope;
	struct fw_message *message;

	if (size > FW_FRAME_MAX)
		return frag_err_set(err, -EBADMSG,
				    "a frame of %zu bytes came, at most %u are taken", size,
				    FW_FRAME_MAX);
	envelope = frag__v1__envelope__unpack(&allocator, size, bytes);
	if (envelope == NULL && budget.no_memory)
		return -ENOMEM;
	if (envelope == NULL)
		return frag_err_set(err, -EBADMSG,
				    "a frame of %zu bytes holds no message of this protocol", size);
	if (!is_known(envelope)) {
		frag__v1__envelope__free_unpacked(envelope, &allocator);
		return frag_err_set(err, -EBADMSG,
				    "a frame of %zu bytes holds a message of unknown kind", size);
	}
	decoded = fragi_calloc(1, sizeof(*decoded));
	if (decoded == NULL) {
		frag__v1__envelope__free_unpacked(envelope, &allocator);
		return -ENOMEM;
	}
	decoded->arena.limit_bytes = BUDGET_BYTES;
	message = &decoded->message;
	decoder.message = message;
	decoder.arena = &decoded->arena;
	message->kind = (enum fw_kind)envelope->body_case;
	message->seq = envelope->seq;
	message->reply_to = envelope->reply_to;
	message->run = envelope->run;
	message->host = envelope->host;
	message->epoch = envelope->epoch;
	decode_body(&decoder, envelope, message);
	frag__v1__envelope__free_unpacked(envelope, &allocator);
	if (decoder.error != 0) {
		fw_message_free(message);
		return decoder.error;
	}
	*out_message = message;
	return 0;
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
