// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>

#include "codec_messages.h"

TestSuite(codec, .init = register_types);

/* A trail of so many entries, every third of which stays in the process. */
static struct fragi_trail *trail_of(uint32_t count)
{
	struct fragi_trail *trail = fragi_trail_create(count);
	uint64_t now = fragi_stamp();

	trail->maker = trail;
	trail->tick = 5;
	for (uint32_t i = 0; i < count; i++)
		trail->entries[i] = (struct fragi_trail_entry){
			.deadline = (uint16_t)i,
			.at = 9,
			.slowest = 4,
			.flags = i % 3 == 2   ? FRAGI_TRAIL_LOCAL
				 : i % 3 == 1 ? FRAGI_TRAIL_FOREIGN
					      : 0,
			.begin = fragi_stamp_before(now, 5000000000),
			.published = now,
			.slowest_ns = UINT64_MAX - i,
			.error_ns = 300 + i,
			.parts = {.rest_ns = 5 + i,
				  .count = i % (FRAGI_BLAME_PARTS_MAX + 1),
				  .parts = {{.at = 3, .cause = FRAGI_BLAME_GPU, .ns = 17 + i},
					    {.at = 4, .cause = FRAGI_BLAME_CLOCK, .ns = 1}}},
		};
	trail->arrived = 0;
	trail->held = (struct fragi_trail_held){0};
	return trail;
}

Test(codec, a_trail_crosses_but_for_what_ends_here)
{
	static const uint32_t counts[] = {1, 2, 3, 4, 5, 100};

	fragi_stamp_refine();
	for (size_t c = 0; c < FRAG_COUNT_OF(counts); c++) {
		struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived;
		uint32_t number = 0;

		frag_message_set_sequence(message, 3);
		fragi_message_set_trail(message, trail_of(counts[c]));
		arrived = across(message);
		cr_assert_eq(arrived->stamps, FRAGI_STAMP_SEQUENCE | FRAGI_STAMP_TRAIL);
		cr_expect_eq(arrived->trail->count, counts[c] - counts[c] / 3);
		cr_expect_null(arrived->trail->maker);
		for (uint32_t i = 0; i < arrived->trail->count; i++, number++) {
			const struct fragi_trail_entry *entry = &arrived->trail->entries[i];
			uint64_t ns = fragi_stamp_diff_ns(entry->begin, entry->published);

			number += number % 3 == 2;
			cr_expect_eq(entry->deadline, number);
			cr_expect_eq(entry->at, 9);
			cr_expect_eq(entry->slowest, 4);
			cr_expect_eq(entry->flags, number % 3 == 1 ? FRAGI_TRAIL_FOREIGN : 0);
			cr_expect_eq(entry->slowest_ns, UINT64_MAX - number);
			cr_expect(ns > 4999900000 && ns < 5000100000, "%llu",
				  (unsigned long long)ns);
			cr_expect_eq(entry->error_ns, 300 + number);
			cr_expect_eq(entry->parts.rest_ns, 5 + number);
			cr_expect_eq(entry->parts.count, number % (FRAGI_BLAME_PARTS_MAX + 1));
			cr_expect(entry->parts.count < 2 ||
				  (entry->parts.parts[0].at == 3 &&
				   entry->parts.parts[0].cause == FRAGI_BLAME_GPU &&
				   entry->parts.parts[0].ns == 17 + number &&
				   entry->parts.parts[1].cause == FRAGI_BLAME_CLOCK));
		}
		frag_message_unref(arrived);
	}
}

static const char *name_of_step(const struct fragi_label_names *names, uint32_t op)
{
	static const char *const all[] = {"left.tx", "left.mx", "right.rx"};

	(void)names;
	return all[op];
}
static const struct fragi_label_names step_names = {name_of_step};

/* Two paths, of three operators and of one. */
static struct fragi_label *label_of_two_paths(void)
{
	static const uint32_t ops[] = {0, 1, 2, 1}, left[] = {3, 2, 1, 1};
	struct fragi_label *label = fragi_label_create(4);
	const uint64_t now = fragi_stamp();

	label->maker = label;
	label->names = &step_names;
	label->error_ns = 40;
	for (uint32_t i = 0; i < 4; i++)
		label->steps[i] = (struct fragi_step){
			ops[i],
			left[i],
			fragi_stamp_before(now, (10 - i) * 1000000000ull),
			fragi_stamp_before(now, (10 - i) * 1000000000ull - 500000000),
			17 + i,
			23 + i};
	return label;
}

/* Who sends a message looks only at that bit. */
static void expect_noted(bool has_trail, bool has_label, bool has_names)
{
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8);
	struct fragi_label *label = has_label ? label_of_two_paths() : NULL;

	if (has_label && !has_names)
		label->names = NULL;
	if (has_trail)
		fragi_message_set_trail(message, trail_of(1));
	if (has_label)
		fragi_message_set_label(message, label);
	cr_expect_eq((message->at_receive & FRAGI_AT_SEND_TRAIL) != 0,
		     has_trail || (has_label && has_names));
	fragi_message_set_trail(message, NULL);
	cr_expect_eq((message->at_receive & FRAGI_AT_SEND_TRAIL) != 0, has_label && has_names);
	fragi_message_set_label(message, NULL);
	cr_expect_eq(message->at_receive & FRAGI_AT_SEND_TRAIL, 0);
	frag_message_unref(message);
}

Test(codec, whoever_sends_a_message_hears_of_its_trail_and_its_label)
{
	for (int i = 0; i < 8; i++)
		expect_noted((i & 1) != 0, (i & 2) != 0, (i & 4) != 0);
}

/* How long a message was held is written into its descriptors when it is sent. */
Test(codec, a_trail_says_how_long_its_message_was_held)
{
	static const struct fragi_trail_held held = {23, 17, 11};
	static const uint32_t stamps[] = {0, 1, 2, 3}; /* what stands in front of it */

	for (size_t i = 0; i < FRAG_COUNT_OF(stamps); i++) {
		struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived;
		const struct fragi_blob *blob;
		uint8_t copy[512];

		if ((stamps[i] & 1) != 0)
			frag_message_set_sequence(message, 3);
		if ((stamps[i] & 2) != 0)
			frag_message_set_acquisition(message, 5, FRAG_CLOCK_UNIX);
		fragi_message_set_trail(message, trail_of(1));
		fragi_message_set_label(message, label_of_two_paths());
		cr_expect_neq(message->at_receive & FRAGI_AT_SEND_TRAIL, 0);
		cr_assert_eq(fragi_message_encode(message, &blob), 0);
		cr_assert_leq(blob->size, sizeof(copy));
		memcpy(copy, blob->bytes, blob->size);
		fragi_blob_set_held(blob, copy, &held);
		cr_assert_eq(fragi_message_decode(copy, blob->size, 1 << 20, &arrived, NULL), 0);
		cr_expect_eq(arrived->label->held_ns, 23);
		cr_expect_neq(arrived->label->arrived, 0);
		cr_expect_eq(arrived->trail->held.ns, 23);
		cr_expect_eq(arrived->trail->held.restart_ns, 17);
		cr_expect_eq(arrived->trail->held.gpu_ns, 11);
		cr_expect_neq(arrived->trail->arrived, 0);
		cr_expect_eq(arrived->trail->entries[0].deadline, 0);
		frag_message_unref(arrived);
		fragi_message_set_trail(message, NULL);
		cr_expect_neq(message->at_receive & FRAGI_AT_SEND_TRAIL, 0, "it has a label");
		message->label->names = NULL;
		fragi_message_set_trail(message, NULL);
		cr_expect_eq(message->at_receive & FRAGI_AT_SEND_TRAIL, 0, "of this process");
		frag_message_unref(message);
	}
}

/* Causes and numbers of parts that cannot be are refused, and so are trails of older hosts. */
Test(codec, a_trail_with_parts_that_cannot_be_is_refused)
{
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived = NULL;
	struct fragi_trail *trail = trail_of(1);
	const struct fragi_blob *blob;
	uint8_t copy[FRAGI_BLOB_POOLED];
	/* the descriptors' head, that of the trail, then the entry's members */
	const size_t entry = 16 + 26, flags = entry + 6, count = entry + 48, cause = entry + 52;

	trail->entries[0].parts.count = 1;
	fragi_message_set_trail(message, trail);
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	memcpy(copy, blob->bytes, blob->size);
	cr_assert_eq(fragi_message_decode(copy, blob->size, 1 << 20, &arrived, NULL), 0);
	frag_message_unref(arrived);
	for (int i = 0; i < 4; i++) {
		static const uint8_t wrong[] = {0, 4, FRAGI_BLAME_PARTS_MAX + 1,
						FRAGI_BLAME_CAUSES};
		const size_t at[] = {flags, flags, count, cause};

		memcpy(copy, blob->bytes, blob->size);
		copy[at[i]] = wrong[i];
		cr_expect_eq(fragi_message_decode(copy, blob->size, 1 << 20, &arrived, NULL),
			     -EBADMSG, "%d", i);
	}
	frag_message_unref(message);
}

static const char *where(const struct frag_message *message, uint16_t at)
{
	const char *name = fragi_trail_where(&message->trail->entries[0].places, at);

	return name != NULL ? name : "";
}

/* From worker "left" over "right" to here: each notes where what it receives came from. */
Test(codec, a_trail_says_on_which_workers_the_operators_of_a_path_were)
{
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived, *again;
	struct fragi_trail *trail = trail_of(1);
	const uint16_t left = fragi_trail_worker("left", 4), right = fragi_trail_worker("right", 5);

	cr_assert_neq(left, FRAGI_TRAIL_NOWHERE);
	cr_expect_eq(fragi_trail_worker("left!", 4), left);
	cr_expect_neq(left, right);
	cr_expect_eq(fragi_trail_worker("", 0), FRAGI_TRAIL_NOWHERE);
	cr_expect_eq(fragi_trail_worker("a\033[2J", 5), FRAGI_TRAIL_NOWHERE, "not printable");
	cr_expect_null(fragi_trail_worker_name(FRAGI_TRAIL_NOWHERE));
	cr_expect_null(fragi_trail_worker_name(UINT16_MAX));
	trail->entries[0].at = 2;
	fragi_message_set_trail(message, trail);
	arrived = across(message);
	fragi_trail_came_from(arrived->trail, left);
	cr_expect_str_eq(where(arrived, 0), "left");
	cr_expect_str_eq(where(arrived, 2), "left");
	cr_expect_str_eq(where(arrived, 3), "", "it is here");
	arrived->trail->entries[0].at = 4;
	again = across(arrived);
	fragi_trail_came_from(again->trail, right);
	cr_expect_str_eq(where(again, 2), "left");
	cr_expect_str_eq(where(again, 3), "right");
	cr_expect_str_eq(where(again, 4), "right");
	cr_expect_str_eq(where(again, 5), "");
	again->trail->entries[0].at = 6;
	fragi_trail_came_from(again->trail, right);
	cr_expect_eq(again->trail->entries[0].places.count, 2, "one worker after itself");
	cr_expect_str_eq(where(again, 6), "right");
	for (uint16_t i = 0; i < 20; i++)
		fragi_trail_came_from(again->trail, i % 2 == 0 ? left : right);
	cr_expect_eq(again->trail->entries[0].places.count, FRAGI_TRAIL_PLACES_MAX);
	frag_message_unref(again);
}

Test(codec, of_too_many_places_a_trail_is_refused)
{
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived = NULL;
	const struct fragi_blob *blob;
	uint8_t copy[FRAGI_BLOB_POOLED];
	const size_t count = 16 + 26 + 50; /* heads of the descriptors, the trail, its entry */

	fragi_message_set_trail(message, trail_of(1));
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	memcpy(copy, blob->bytes, blob->size);
	cr_assert_eq(copy[count], 0);
	cr_assert_eq(fragi_message_decode(copy, blob->size, 1 << 20, &arrived, NULL), 0);
	frag_message_unref(arrived);
	copy[count] = FRAGI_TRAIL_PLACES_MAX + 1;
	cr_expect_eq(fragi_message_decode(copy, blob->size, 1 << 20, &arrived, NULL), -EBADMSG);
	frag_message_unref(message);
}

/* An offset that is known to 9 ns, of which `most` is allowed. */
#define ESTIMATED(offset, most, has_unix, has_tai)                                                 \
	{                                                                                          \
		.state = FRAGI_TIMELINE_ESTIMATED,                                                 \
		.line = {.base_ns = 60000000000,                                                   \
			 .offset_ns = offset,                                                      \
			 .low_ns = offset - 8,                                                     \
			 .high_ns = offset + 8},                                                   \
		.max_error_ns = most, .knows_unix = has_unix, .knows_tai = has_tai,                \
		.unix_ahead_ns = 100000000000, .our_unix_ahead_ns = 102000000000,                  \
		.tai_ahead_ns = 130000000000, .our_tai_ahead_ns = 133000000000,                    \
	}

/* What becomes of times that a peer took: the table is written for 60 s of its clock. */
Test(codec, times_of_a_peer_are_converted_by_its_timeline)
{
	const int64_t theirs_ns = fragi_now_ns(), since_ns = theirs_ns - 60000000000;
	static const struct {
		struct fragi_timeline peer;
		uint32_t clock; /* of the acquisition */
		int64_t ours_ns;
		bool is_foreign, trail_is_foreign;
	} cases[] = {
		{{.state = FRAGI_TIMELINE_SAME}, FRAG_CLOCK_MONOTONIC, 60000000000, false, false},
		{{.state = FRAGI_TIMELINE_SAME}, FRAG_CLOCK_UNIX, 60000000000, false, false},
		{{.state = FRAGI_TIMELINE_SAME}, FRAG_CLOCK_OWN, 60000000000, false, false},
		{{.state = FRAGI_TIMELINE_UNKNOWN}, FRAG_CLOCK_MONOTONIC, 60000000000, true, true},
		{{.state = FRAGI_TIMELINE_UNKNOWN}, FRAG_CLOCK_OWN, 60000000000, true, true},
		{ESTIMATED(7000000000, 0, false, false), FRAG_CLOCK_MONOTONIC, 67000000000, false,
		 false},
		{ESTIMATED(-3000000000, 9, false, false), FRAG_CLOCK_MONOTONIC, 57000000000, false,
		 false},
		{ESTIMATED(7000000000, 8, true, true), FRAG_CLOCK_MONOTONIC, 60000000000, true,
		 true},
		/* the other clocks: 100 s and 130 s ahead over there, 102 s and 133 s here */
		{ESTIMATED(7000000000, 9, true, false), FRAG_CLOCK_UNIX, 69000000000, false, false},
		{ESTIMATED(7000000000, 9, false, true), FRAG_CLOCK_UNIX, 60000000000, true, false},
		{ESTIMATED(7000000000, 9, false, true), FRAG_CLOCK_TAI, 70000000000, false, false},
		{ESTIMATED(7000000000, 9, true, false), FRAG_CLOCK_TAI, 60000000000, true, false},
		{ESTIMATED(7000000000, 9, true, true), FRAG_CLOCK_OWN, 60000000000, true, false},
	};

	fragi_stamp_refine();
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_message *message = message_of(&frag_type_i64, NULL, 8);
		struct fragi_timeline peer = cases[i].peer;
		const int64_t offset_ns = peer.line.offset_ns;
		const struct fragi_moment moment = fragi_moment_now();
		const struct fragi_trail_entry *entry;
		int64_t acquired_ns = 0, begin_ns, published_ns;

		peer.line.base_ns = theirs_ns;
		fragi_message_convert_times(message, &peer);
		cr_expect_eq(message->stamps, 0, "%zu: a message without times", i);
		frag_message_set_acquisition(message, theirs_ns, cases[i].clock);
		fragi_message_set_trail(message, trail_of(1));
		begin_ns = fragi_moment_ns_at(&moment, message->trail->entries[0].begin);
		published_ns = fragi_moment_ns_at(&moment, message->trail->entries[0].published);
		fragi_message_convert_times(message, &peer);
		entry = &message->trail->entries[0];
		frag_message_acquisition(message, &acquired_ns, NULL);
		cr_expect_eq(acquired_ns, cases[i].ours_ns + since_ns, "%zu", i);
		cr_expect_eq((message->stamps & FRAGI_STAMP_FOREIGN) != 0, cases[i].is_foreign,
			     "%zu", i);
		cr_expect_eq(entry->flags, cases[i].trail_is_foreign ? FRAGI_TRAIL_FOREIGN : 0,
			     "%zu", i);
		if (!cases[i].trail_is_foreign) {
			begin_ns += offset_ns - fragi_moment_ns_at(&moment, entry->begin);
			published_ns += offset_ns - fragi_moment_ns_at(&moment, entry->published);
			cr_expect(begin_ns > -100000 && begin_ns < 100000, "%zu", i);
			cr_expect(published_ns > -100000 && published_ns < 100000, "%zu", i);
		}
		frag_message_unref(message);
	}
}

/*
 * The error of the time that is known worst is that of all, wherever it stands. Here it grows by
 * 1 ms for each second before or after the base of the peer's line. The times of the label are 10
 * to 6.5 s old, those of the trail 5 and 0 s.
 */
Test(codec, the_worst_known_time_gives_the_error)
{
	static const struct {
		int64_t base_ms; /* so long ago */
		uint64_t label_us, trail_us;
	} cases[] = {{0, 10000, 5000}, {1000, 9000, 4000}, {4000, 6000, 4000}, {9000, 2500, 9000}};

	fragi_stamp_refine();
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_message *message = message_of(&frag_type_i64, NULL, 8);
		struct fragi_timeline peer = ESTIMATED(7000000000, 0, false, false);
		const int64_t now_ns = fragi_now_ns();
		int64_t label_ns, trail_ns;

		peer.line.rate_low = -1000000;
		peer.line.rate_high = 1000000;
		peer.line.base_ns = now_ns - cases[i].base_ms * 1000000;
		fragi_message_set_trail(message, trail_of(1));
		fragi_message_set_label(message, label_of_two_paths());
		fragi_message_convert_times(message, &peer);
		label_ns = (int64_t)message->label->error_ns - (int64_t)cases[i].label_us * 1000;
		trail_ns = (int64_t)message->trail->entries[0].error_ns -
			   (int64_t)cases[i].trail_us * 1000;
		cr_expect(llabs(label_ns) < 400000, "%zu: %lld", i, (long long)label_ns);
		cr_expect(llabs(trail_ns) < 400000, "%zu: %lld", i, (long long)trail_ns);
		frag_message_unref(message);
	}
}

Test(codec, a_label_crosses_with_its_names_and_times)
{
	static const char *const names[] = {"left.tx", "left.mx", "right.rx", "left.mx"};
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived;
	struct fragi_timeline peer = ESTIMATED(7000000000, 0, false, false);
	uint64_t now;
	int64_t took_ns;

	fragi_stamp_refine();
	now = fragi_stamp();
	fragi_message_set_trail(message, trail_of(1));
	fragi_message_set_label(message, label_of_two_paths());
	arrived = across(message);
	cr_assert_eq(arrived->stamps, FRAGI_STAMP_TRAIL | FRAGI_STAMP_LABEL);
	cr_assert_eq(arrived->label->step_count, 4);
	cr_expect_null(arrived->label->maker);
	peer.line.base_ns = fragi_now_ns();
	fragi_message_convert_times(arrived, &peer);
	took_ns = (int64_t)fragi_stamp_diff_ns(now, fragi_stamp());
	cr_expect_eq(arrived->label->error_ns, 40 + 9, "both clocks");
	cr_expect_eq(arrived->label->held_ns, 0, "nobody has written it");
	for (uint32_t i = 0; i < 4; i++) {
		const struct fragi_step *step = &arrived->label->steps[i];
		/* 10, 9, 8 and 7 s ago by a clock that is 7 s behind */
		int64_t ns = (int64_t)fragi_stamp_diff_ns(fragi_stamp_before(now, 20000000000),
							  step->received);

		cr_expect_str_eq(fragi_label_name(arrived->label, step), names[i]);
		cr_expect_eq(step->left, i == 3 ? 1 : 3 - i);
		cr_expect_eq(step->held_ns, 17 + i);
		cr_expect_eq(step->network_ns, 23 + i);
		ns -= (17 + (int64_t)i) * 1000000000;
		cr_expect(ns > -50000000 && ns < 50000000 + took_ns, "%lld", (long long)ns);
		ns = (int64_t)fragi_stamp_diff_ns(step->received, step->published);
		cr_expect(llabs(ns - 500000000) < 1000000, "%lld", (long long)ns);
	}
	peer.state = FRAGI_TIMELINE_UNKNOWN;
	fragi_message_convert_times(arrived, &peer);
	cr_expect_eq(arrived->label->step_count, 0,
		     "there are paths, and nothing is known of them");
	frag_message_unref(arrived);

	message = message_of(&frag_type_i64, NULL, 8);
	fragi_message_set_label(message, label_of_two_paths());
	message->label->names = NULL;
	arrived = across(message);
	cr_expect_eq(arrived->stamps, 0, "it stays in its process");
	frag_message_unref(arrived);
}

static int decode_label(const uint8_t *bytes, size_t size)
{
	struct frag_reader reader = {bytes, bytes + size};
	struct fragi_label *label = NULL;
	int r = fragi_label_decode(&reader, &label);

	if (r == 0)
		fragi_label_unref(label);
	return r;
}

Test(codec, labels_that_are_none_are_refused)
{
	struct fragi_label *label = label_of_two_paths();
	struct frag_writer writer = {.limit = 1 << 16};
	uint8_t *bytes;

	fragi_label_encode(label, &writer);
	bytes = writer.bytes;
	cr_assert_eq(decode_label(bytes, writer.size), 0);
	for (size_t size = 0; size < writer.size; size++)
		cr_expect_eq(decode_label(bytes, size), -EBADMSG, "%zu bytes", size);
	bytes[12] = 2; /* a path of three that says it has two */
	cr_expect_eq(decode_label(bytes, writer.size), -EBADMSG);
	bytes[12] = 3;
	bytes[0] = 3; /* the second path is missing: that is a label too */
	cr_expect_eq(decode_label(bytes, writer.size), 0);
	bytes[0] = 2; /* its first path ends too early */
	cr_expect_eq(decode_label(bytes, writer.size), -EBADMSG);
	bytes[0] = 4;
	bytes[3] = 0; /* of a host that knows no ways */
	cr_expect_eq(decode_label(bytes, writer.size), -EBADMSG);
	bytes[3] = 0x80;
	bytes[12 + 36] = '\n'; /* in a name, which goes into logs */
	cr_expect_eq(decode_label(bytes, writer.size), -EBADMSG);
	bytes[12 + 36] = 'l';
	cr_expect_eq(decode_label(bytes, writer.size), 0);
	bytes[11] = 0x80; /* an error of centuries */
	cr_expect_eq(decode_label(bytes, writer.size), -EBADMSG);
	fragi_free(writer.bytes);
	fragi_label_unref(label);
}

/* As many steps as a label may have, and one more: then it has none, since paths are whole. */
Test(codec, a_label_has_a_limit)
{
	for (uint32_t more = 0; more < 2; more++) {
		const uint32_t count = FRAGI_LABEL_STEPS_MAX + more;
		struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived;
		struct fragi_label *label = fragi_label_create(count);
		const uint64_t now = fragi_stamp();

		label->maker = label;
		label->names = &step_names;
		for (uint32_t i = 0; i < count; i++)
			label->steps[i] = (struct fragi_step){i % 3, 1, now, now, i, 0};
		fragi_message_set_label(message, label);
		arrived = across(message);
		cr_assert_eq(arrived->stamps, FRAGI_STAMP_LABEL);
		cr_assert_eq(arrived->label->step_count, more == 0 ? count : 0);
		for (uint32_t i = 0; i < arrived->label->step_count; i++)
			cr_assert_eq(arrived->label->steps[i].held_ns, i);
		frag_message_unref(arrived);
	}
}

Test(codec, a_trail_that_stays_here_is_not_sent)
{
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *arrived;

	fragi_message_set_trail(message, trail_of(1));
	message->trail->entries[0].flags = FRAGI_TRAIL_LOCAL;
	arrived = across(message);
	cr_expect_eq(arrived->stamps, 0);
	frag_message_unref(arrived);
}

Test(codec, a_copy_is_on_no_path)
{
	struct frag_message *message = message_of(&frag_type_i64, NULL, 8), *copy;

	fragi_message_set_trail(message, trail_of(1));
	frag_message_ref(message);
	copy = frag_message_writable(message);
	cr_expect_neq(copy, message);
	cr_expect_eq(copy->stamps, 0);
	cr_expect_eq(message->stamps, FRAGI_STAMP_TRAIL);
	frag_message_unref(copy);
	frag_message_unref(message);
}
