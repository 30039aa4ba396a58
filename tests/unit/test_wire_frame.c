// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <wire/frame.h>

static size_t put_frame(uint8_t *out, uint32_t length, uint8_t fill)
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(length >> (8 * i));
	memset(out + 4, fill, length);
	return 4 + length;
}

Test(wire_frame, frames_are_cut_whatever_the_pieces)
{
	uint8_t stream[4096];
	size_t total = 0;

	for (uint32_t i = 1; i <= 40; i++)
		total += put_frame(stream + total, i * 2, (uint8_t)i);
	for (size_t piece = 1; piece <= total; piece += piece < 16 ? 1 : 97) {
		struct fw_reader reader;
		struct frag_err err = FRAG_ERR_INIT;
		const uint8_t *bytes;
		uint32_t seen = 0;
		size_t size;

		fw_reader_init(&reader, FW_FRAME_MAX);
		for (size_t at = 0; at < total; at += piece) {
			size_t n = total - at < piece ? total - at : piece;

			cr_assert_eq(fw_reader_feed(&reader, stream + at, n, 5), 0);
			while (fw_reader_next(&reader, &bytes, &size, &err) == 1) {
				seen++;
				cr_assert_eq(size, seen * 2);
				cr_assert_eq(bytes[0], seen);
				cr_assert_eq(bytes[size - 1], seen);
			}
		}
		cr_expect_eq(seen, 40);
		cr_expect_eq(reader.frame_since_ns, 0);
		fw_reader_fini(&reader);
	}
}

Test(wire_frame, the_age_of_an_unfinished_frame_is_that_of_its_first_byte)
{
	struct fw_reader reader;
	struct frag_err err = FRAG_ERR_INIT;
	const uint8_t *bytes;
	uint8_t stream[64];
	size_t size, total = put_frame(stream, 10, 1);

	total += put_frame(stream + total, 10, 2);
	fw_reader_init(&reader, FW_FRAME_MAX);
	cr_expect_eq(reader.frame_since_ns, 0);
	for (size_t i = 0; i < 5; i++) {
		cr_assert_eq(fw_reader_feed(&reader, stream + i, 1, 100 + (int64_t)i), 0);
		cr_assert_eq(fw_reader_next(&reader, &bytes, &size, &err), 0);
		cr_expect_eq(reader.frame_since_ns, 100);
	}
	cr_assert_eq(fw_reader_feed(&reader, stream + 5, 12, 200), 0);
	cr_assert_eq(fw_reader_next(&reader, &bytes, &size, &err), 1);
	cr_assert_eq(fw_reader_next(&reader, &bytes, &size, &err), 0);
	cr_expect_eq(reader.frame_since_ns, 200, "three bytes of the second frame are there");
	cr_assert_eq(fw_reader_feed(&reader, stream + 17, total - 17, 300), 0);
	cr_assert_eq(fw_reader_next(&reader, &bytes, &size, &err), 1);
	cr_expect_eq(bytes[0], 2);
	cr_assert_eq(fw_reader_next(&reader, &bytes, &size, &err), 0);
	cr_expect_eq(reader.frame_since_ns, 0);
	fw_reader_fini(&reader);
}

Test(wire_frame, lengths_out_of_bounds_are_refused_from_the_head_alone)
{
	static const struct {
		uint8_t head[4];
		int r;
	} cases[] = {
		{{0, 0, 0, 0}, -EBADMSG},
		{{0xFF, 0xFF, 0xFF, 0xFF}, -EMSGSIZE},
		{{0x01, 0x00, 0x40, 0x00}, -EMSGSIZE},
		{{'G', 'E', 'T', ' '}, -EMSGSIZE},
		{{0x00, 0x00, 0x40, 0x00}, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fw_reader reader;
		struct frag_err err = FRAG_ERR_INIT;
		const uint8_t *bytes;
		size_t size;

		fw_reader_init(&reader, FW_FRAME_MAX);
		cr_assert_eq(fw_reader_feed(&reader, cases[i].head, 4, 1), 0);
		cr_expect_eq(fw_reader_next(&reader, &bytes, &size, &err), cases[i].r, "case %zu",
			     i);
		cr_expect_eq(err.text[0] != '\0', cases[i].r < 0);
		cr_expect_leq(reader.capacity, (size_t)4096,
			      "what a length announces costs no memory");
		fw_reader_fini(&reader);
	}
}

Test(wire_frame, the_memory_of_a_large_frame_is_given_back)
{
	const size_t large = 300 << 10;
	uint8_t *stream = malloc(large + 4);
	struct fw_reader reader;
	struct frag_err err = FRAG_ERR_INIT;
	const uint8_t *bytes;
	size_t size, total = put_frame(stream, (uint32_t)large, 1);

	fw_reader_init(&reader, FW_FRAME_MAX);
	cr_assert_eq(fw_reader_feed(&reader, stream, total, 1), 0);
	cr_assert_eq(fw_reader_next(&reader, &bytes, &size, &err), 1);
	cr_expect_geq(reader.capacity, large);
	total = put_frame(stream, 1, 2);
	cr_assert_eq(fw_reader_feed(&reader, stream, total, 2), 0);
	cr_assert_eq(fw_reader_next(&reader, &bytes, &size, &err), 1);
	cr_expect_eq(bytes[0], 2);
	cr_expect_leq(reader.capacity, (size_t)4096);
	fw_reader_fini(&reader);
	free(stream);
}

Test(wire_frame, a_lower_limit_holds_until_it_is_raised)
{
	struct fw_reader reader;
	struct frag_err err = FRAG_ERR_INIT;
	const uint8_t *bytes;
	uint8_t stream[2048];
	size_t size, total = put_frame(stream, 1500, 3);

	fw_reader_init(&reader, 1000);
	cr_assert_eq(fw_reader_feed(&reader, stream, total, 1), 0);
	cr_expect_eq(fw_reader_next(&reader, &bytes, &size, &err), -EMSGSIZE);
	reader.limit = FW_FRAME_MAX;
	cr_expect_eq(fw_reader_next(&reader, &bytes, &size, NULL), 1);
	cr_expect_eq(size, 1500);
	fw_reader_fini(&reader);
}

Test(wire_frame, frames_that_nobody_takes_do_not_pile_up)
{
	struct fw_reader reader;
	static uint8_t piece[1 << 20];
	int r = 0;

	fw_reader_init(&reader, FW_FRAME_MAX);
	for (int i = 0; i < 100 && r == 0; i++)
		r = fw_reader_feed(&reader, piece, sizeof(piece), 1);
	cr_expect_eq(r, -EMSGSIZE);
	cr_expect_leq(reader.capacity, (size_t)4 * FW_FRAME_MAX);
	fw_reader_fini(&reader);
}

Test(wire_frame, a_reader_that_was_emptied_reads_again)
{
	uint8_t stream[64];
	const uint8_t *bytes;
	size_t size, total = put_frame(stream, 20, 1);
	struct fw_reader reader;

	fw_reader_init(&reader, FW_FRAME_MAX);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(fw_reader_feed(&reader, stream, 7, 1), 0);
		fw_reader_fini(&reader);
		cr_assert_eq(fw_reader_feed(&reader, stream, total, 2), 0);
		cr_assert_eq(fw_reader_next(&reader, &bytes, &size, NULL), 1);
		cr_expect_eq(size, 20);
		cr_expect_eq(fw_reader_next(&reader, &bytes, &size, NULL), 0);
	}
	fw_reader_fini(&reader);
	fw_reader_fini(&reader);
}

/* Time 0 means that no frame has begun. */
Test(wire_frame, what_comes_at_time_zero_has_begun_all_the_same)
{
	uint8_t stream[64];
	size_t whole = put_frame(stream, 4, 'a'), size;
	struct fw_reader reader;
	const uint8_t *bytes;

	(void)put_frame(stream + whole, 9, 'b');
	fw_reader_init(&reader, FW_FRAME_MAX);
	cr_assert_eq(fw_reader_feed(&reader, stream, whole + 3, 0), 0);
	cr_expect_eq(reader.frame_since_ns, 1);
	cr_assert_eq(fw_reader_next(&reader, &bytes, &size, NULL), 1);
	cr_expect_eq(reader.frame_since_ns, 1, "of the next one a part has come");
	fw_reader_fini(&reader);
}
