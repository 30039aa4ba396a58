/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRANSCRIPT_H
#define TESTS_TRANSCRIPT_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <frag/v1/control.pb-c.h>
#include <wire/message.h>

/*
 * What a core does in a whole life, as text that a test compares with what it should be: every
 * message with all its fields, every line, every deadline. A change of what is said or how long is
 * waited shows here first; where it is wanted, the text of the test changes with it.
 */
static FILE *transcript;
static char *transcript_text;
static size_t transcript_size;

static inline void transcript_begin(void)
{
	transcript = open_memstream(&transcript_text, &transcript_size);
	cr_assert_not_null(transcript);
}

/* What came before is the matter of another test. */
static inline void transcript_forget(void)
{
	rewind(transcript);
}

/* Shows the first line that differs, and where. */
static inline void transcript_expect(const char *expected)
{
	const char *is, *should = expected;
	int line = 1;

	fclose(transcript);
	is = transcript_text;
	for (; *is != '\0' || *should != '\0'; line++) {
		size_t is_bytes = strcspn(is, "\n"), should_bytes = strcspn(should, "\n");

		if (is_bytes != should_bytes || memcmp(is, should, is_bytes) != 0)
			break;
		is += is_bytes + (is[is_bytes] == '\n');
		should += should_bytes + (should[should_bytes] == '\n');
	}
	if (*is != '\0' || *should != '\0') {
		fprintf(stderr, "line %d should be: %.*s\nthe whole transcript:\n%s", line,
			(int)strcspn(should, "\n"), should, transcript_text);
		cr_assert_fail("line %d differs", line);
	}
	free(transcript_text);
}

/* What a core has drawn by chance, tokens and the like, is shown by a number if this is set. */
static bool transcript_numbers_chance;
static uint64_t transcript_drawn[4096];
static size_t transcript_drawn_count;

static inline size_t transcript_number(const void *bytes)
{
	uint64_t drawn;
	size_t i = 0;

	memcpy(&drawn, bytes, sizeof(drawn));
	while (i < transcript_drawn_count && transcript_drawn[i] != drawn)
		i++;
	cr_assert_lt(i, sizeof(transcript_drawn) / sizeof(transcript_drawn[0]));
	transcript_drawn[i] = drawn;
	transcript_drawn_count += i == transcript_drawn_count;
	return i;
}

static inline void transcript_fields(const ProtobufCMessage *message);

/* One value of a field. Returns whether it is the default, which is not shown. */
static inline bool transcript_value(const ProtobufCFieldDescriptor *field, const void *at,
				    bool show)
{
	const ProtobufCBinaryData *bytes = at;
	size_t zeros = 0;

	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		if (show && *(ProtobufCMessage *const *)at != NULL) {
			fprintf(transcript, "{");
			transcript_fields(*(ProtobufCMessage *const *)at);
			fprintf(transcript, "}");
		}
		return *(ProtobufCMessage *const *)at == NULL;
	case PROTOBUF_C_TYPE_STRING:
		if (show)
			fprintf(transcript, "\"%s\"", *(const char *const *)at);
		return **(const char *const *)at == '\0';
	case PROTOBUF_C_TYPE_BYTES:
		if (show && transcript_numbers_chance && (bytes->len == 16 || bytes->len == 32))
			fprintf(transcript, "#%zu", transcript_number(bytes->data));
		else if (show && bytes->len > 16)
			fprintf(transcript, "<%zu bytes>", bytes->len);
		else if (show)
			for (size_t i = 0; i < bytes->len; i++)
				fprintf(transcript, "%02x", bytes->data[i]);
		while (bytes->len > zeros && bytes->data[zeros] == 0)
			zeros++;
		return bytes->len == zeros;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		if (show && transcript_numbers_chance && strcmp(field->name, "session") == 0)
			fprintf(transcript, "#%zu", transcript_number(at));
		else if (show)
			fprintf(transcript, "%" PRId64, *(const int64_t *)at);
		return *(const int64_t *)at == 0;
	default:
		if (show)
			fprintf(transcript, "%" PRId32, *(const int32_t *)at);
		return *(const int32_t *)at == 0;
	}
}

static inline void transcript_fields(const ProtobufCMessage *message)
{
	const char *before = "";

	for (unsigned int i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
		const uint8_t *base = (const uint8_t *)message, *at = base + field->offset;
		const size_t quantifier =
			field->quantifier_offset != 0
				? *(const size_t *)(base + field->quantifier_offset)
				: 0;

		if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
			continue;
		if (field->label == PROTOBUF_C_LABEL_REPEATED && quantifier > 0) {
			const uint8_t *values = *(const uint8_t *const *)at;
			size_t bytes = field->type == PROTOBUF_C_TYPE_UINT64 ||
						       field->type == PROTOBUF_C_TYPE_MESSAGE ||
						       field->type == PROTOBUF_C_TYPE_STRING
					       ? 8
					       : 4;

			fprintf(transcript, "%s%s: [", before, field->name);
			for (size_t k = 0; k < quantifier; k++) {
				fprintf(transcript, "%s", k > 0 ? ", " : "");
				transcript_value(field, values + k * bytes, true);
			}
			fprintf(transcript, "]");
		} else if (field->label != PROTOBUF_C_LABEL_REPEATED &&
			   !transcript_value(field, at, false)) {
			fprintf(transcript, "%s%s: ", before, field->name);
			transcript_value(field, at, true);
		} else {
			continue;
		}
		before = ", ";
	}
}

/* The fields of a message that are not the default. */
static inline void transcript_body(const struct fw_message *message)
{
	Frag__V1__Envelope *envelope;
	uint8_t *frame;
	size_t size;

	cr_assert_eq(fw_encode(message, &frame, &size), 0);
	envelope = frag__v1__envelope__unpack(NULL, size - 4, frame + 4);
	fragi_free(frame);
	/* all bodies share one place */
	transcript_fields((const ProtobufCMessage *)envelope->hello);
	frag__v1__envelope__free_unpacked(envelope, NULL);
}

/*
 * The same, with a newline, where much comes again: ": #3f09 = FIELDS" the first time, ": #3f09"
 * after. What is short is written again. The name comes from the fields, so that a difference of
 * two texts has only what differs.
 */
#define TRANSCRIPT_SHORT 48
#define TRANSCRIPT_BODIES 2048
static char *transcript_bodies[TRANSCRIPT_BODIES];
static int transcript_body_count;
static bool transcript_repeats; /* each time whole */

static inline void transcript_body_once(const struct fw_message *message)
{
	FILE *whole = transcript;
	uint32_t name = 2166136261u;
	char *body;
	size_t size;
	int i = 0;

	transcript = open_memstream(&body, &size);
	transcript_body(message);
	fclose(transcript);
	transcript = whole;
	for (size_t k = 0; k < size; k++)
		name = (name ^ (uint8_t)body[k]) * 16777619u;
	while (i < transcript_body_count && strcmp(transcript_bodies[i], body) != 0)
		i++;
	if (size <= TRANSCRIPT_SHORT || transcript_repeats)
		fprintf(transcript, "%s%s\n", size > 0 ? ": " : "", body);
	else
		fprintf(transcript, ": #%04x%s%s\n", name >> 16,
			i == transcript_body_count ? " = " : "",
			i == transcript_body_count ? body : "");
	if (i < transcript_body_count || size <= TRANSCRIPT_SHORT || transcript_repeats) {
		free(body);
		return;
	}
	cr_assert_lt(i, TRANSCRIPT_BODIES);
	transcript_bodies[transcript_body_count++] = body;
}

static inline void transcript_free_bodies(void)
{
	while (transcript_body_count > 0)
		free(transcript_bodies[--transcript_body_count]);
}

/*
 * The text of a drawn life ends: out gets it, or what tells it from another one, its number of
 * lines and a sum over them. FRAG_TEST_LIFE=57 prints that life, FRAG_TEST_LIFE=all each one.
 */
static inline void transcript_begin_life(bool is_shown)
{
	transcript_repeats = !is_shown;
	transcript_begin();
}

static inline void transcript_end_life(FILE *out, int life, bool is_shown)
{
	const char *wanted = getenv("FRAG_TEST_LIFE");
	uint64_t sum = 14695981039346656037ull;
	int lines = 0;

	fclose(transcript);
	for (const char *at = transcript_text; *at != '\0'; at++) {
		sum = (sum ^ (uint8_t)*at) * 1099511628211ull;
		lines += *at == '\n';
	}
	if (is_shown)
		fputs(transcript_text, out);
	else
		fprintf(out, "life %d: %d lines, sum %016" PRIx64 "\n", life, lines, sum);
	if (wanted != NULL && (atoi(wanted) == 0 || atoi(wanted) == life))
		fputs(transcript_text, stderr);
	free(transcript_text);
}

/* "HOST_STOP of host 1, run 1, epoch 1: drain_ns: 10000000000", without the sequence. */
static inline void transcript_message(const char *to, const struct fw_message *message)
{
	if (message->kind == FW_BEAT)
		return;
	fprintf(transcript, "  %s: %s", to, fw_kind_name(message->kind));
	if (message->reply_to != 0)
		fprintf(transcript, " in reply to %" PRIu64, message->reply_to);
	if (message->host != 0)
		fprintf(transcript, " of host %u", message->host);
	if (message->run != 0)
		fprintf(transcript, ", run %" PRIu64 ", epoch %" PRIu64, message->run,
			message->epoch);
	fprintf(transcript, ": ");
	transcript_body(message);
	fprintf(transcript, "\n");
}

static inline void transcript_deadline(int64_t deadline_ns, int64_t now_ns)
{
	if (deadline_ns == INT64_MAX)
		fprintf(transcript, "  waits\n");
	else
		fprintf(transcript, "  waits for %.3f s\n", (double)(deadline_ns - now_ns) * 1e-9);
}

#endif
