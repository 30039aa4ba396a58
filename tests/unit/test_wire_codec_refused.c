// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>

#include "wire_messages.h"

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
	memcpy(longer + FW_TEXT_MAX - 1, "\xC3\xA9", 2); /* beyond the mark */
	longer[2] = '\n';
	longer[3] = '\033';
	in.refused.failure.sentence = longer;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_eq(strlen(out->refused.failure.sentence), FW_TEXT_MAX);
	cr_expect_eq(strncmp(out->refused.failure.sentence, "xx  x", 5), 0);
	cr_expect_str_eq(out->refused.failure.sentence + FW_TEXT_MAX - 4, "x...");
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
	cr_expect_eq(strlen(out->refused.failure.sentence), FW_TEXT_MAX - 3);
	fw_message_free(out);
	for (int64_t skip = 0; skip < 2; skip++) { /* the body, then the copy that is cut */
		fragi_free(frame);
		frame = NULL;
		fragi_alloc_fail_after(skip + 1, 1);
		cr_expect_eq(fw_encode(&in, &frame, &size), -ENOMEM);
		fragi_alloc_fail_off();
	}
}
