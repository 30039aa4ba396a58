// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>

#include "../expected.h"
#include "../fuzz/types.h"

#include <base/alloc.h>
#include <base/amounts.h>
#include <base/json.h>
#include <base/names.h>
#include <base/printable.h>
#include <base/sentence.h>
#include <base/units.h>
#include <data/codec.h>
#include <data/metadata.h>
#include <data/print.h>
#include <frag/value.h>

/* What becomes of texts that people write, and of values that travel between processes. */
static FILE *out;
static char *found;
static size_t found_size;

static void begin(void)
{
	out = open_memstream(&found, &found_size);
	cr_assert_not_null(out);
}

static void end(const char *name)
{
	fclose(out);
	expected_compare(name, found);
	free(found);
}

static const char *const words[] = {
	"",
	" ",
	"0",
	"1",
	"-1",
	"+1",
	"1.",
	".5",
	"1.5",
	"1e3",
	"1e-3",
	"0x10",
	"010",
	"nan",
	"inf",
	"-inf",
	"1e400",
	"9223372036854775807",
	"9223372036854775808",
	"-9223372036854775808",
	"-9223372036854775809",
	"18446744073709551615",
	"18446744073709551616",
	"1 2",
	"1,000",
	"true",
	"True",
	"yes",
	"on",
	"off",
	"no",
	"false",
	"TRUE",
	"y",
	"1k",
	"1K",
	"1Ki",
	"1KiB",
	"1kB",
	"1M",
	"1Mi",
	"2 GB",
	"2GiB",
	"1.5G",
	"1T",
	"1Ti",
	"16Ei",
	"15.9Ei",
	"1P",
	"1Q",
	"1B",
	"1b",
	"512Mi",
	"0.1k",
	"0.0001k",
	"1s",
	"1.5s",
	"10ms",
	"1us",
	"1 us",
	"1ns",
	"0.5ns",
	"1m",
	"1min",
	"1h",
	"2562047h",
	"2562048h",
	"30hz",
	"30Hz",
	"0.5hz",
	"0hz",
	"1e9hz",
	"2e9hz",
	"1khz",
	"1d",
	"-1s",
	"1s1",
	"s",
	"hz",
	"a",
	"a-b",
	"a_b9",
	"9a",
	"a.b",
	"-a",
	"_a",
	"a b",
	"python:a.B",
	"a:b:c",
	":a",
	"a:",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"\xc3\xa9",
	"4096",
	"4097",
	"4096.001",
	"0.0001",
	"8Ti",
	"8193Gi",
	"8796093022209",
};

/* Around the places where a duration gets another unit, or loses its decimal. */
static const int rounded[] = {
	999,       1000,      9949,      9950,      99949,     99950,     999399,
	999400,    999449,    999450,    999499,    999500,    999949,    999950,
	9949999,   9950000,   99949999,  99950000,  999399999, 999400000, 999449999,
	999450000, 999499999, 999500000, 999949999, 999950000,
};

FRAG_PRINTF(3, 4)
static void print_result(const char *what, int r, const char *format, ...)
{
	va_list args;

	if (r == -EINVAL)
		return;
	fprintf(out, ", %s ", what);
	if (r < 0) {
		fprintf(out, "%s", r == -ERANGE ? "beyond" : r == -EDOM ? "no frequency" : "other");
		return;
	}
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
}

Test(texts, numbers_units_and_names)
{
	char text[64], amount[FRAGI_AMOUNT_TEXT];

	begin();
	for (size_t i = 0; i < FRAG_COUNT_OF(words); i++) {
		const char *word = words[i];
		uint64_t bytes = 0;
		int64_t n = 0, ns = 0, time_ns = 0, some = 0;
		double x = 0;
		bool flag = false;
		int r;

		fprintf(out, "\"%s\"", word);
		r = fragi_parse_i64(word, &n);
		print_result("i64", r, "%lld", (long long)n);
		r = fragi_parse_f64(word, &x);
		print_result("f64", r, "%g", x);
		r = fragi_parse_bool(word, &flag);
		print_result("bool", r, "%d", flag);
		r = fragi_parse_size(word, &bytes);
		print_result("size", r, "%llu", (unsigned long long)bytes);
		r = fragi_parse_duration(word, &ns);
		print_result("duration", r, "%lld %s", (long long)ns,
			     fragi_format_duration(ns, text, sizeof(text)));
		r = fragi_parse_time(word, &time_ns);
		print_result("time", r, "%lld", (long long)time_ns);
		for (int a = 0; a < FRAGI_AMOUNTS; a++) {
			r = fragi_amount_parse((enum fragi_amount)a, word, &some);
			print_result(fragi_amount_name((enum fragi_amount)a), r, "%lld %s",
				     (long long)some,
				     fragi_amount_text((enum fragi_amount)a, some, amount));
		}
		fprintf(out, "%s%s%s%s\n", fragi_name_is_valid(word) ? ", name" : "",
			fragi_type_name_is_valid(word) ? ", type" : "",
			fragi_duration_lacks_unit(word) ? ", no unit" : "",
			fragi_json_is_value(word) ? ", json" : "");
	}
	fprintf(out, "behind 0x, and behind 0x1:");
	for (int c = ' '; c <= 0x7f; c++) {
		const char first[] = {'0', 'x', (char)c, '\0'};
		const char second[] = {'0', 'X', '1', (char)c, '\0'};
		int64_t n = 0;

		if (fragi_parse_i64(first, &n) == 0)
			fprintf(out, " %c %d", c, (int)n);
		if (fragi_parse_i64(second, &n) == 0)
			fprintf(out, " %d", (int)n);
	}
	fputc('\n', out);
	for (size_t i = 0; i < FRAG_COUNT_OF(rounded); i++)
		fprintf(out, "%d %s\n", rounded[i],
			fragi_format_duration(rounded[i], text, sizeof(text)));
	for (int64_t ns = 1; ns > 0 && ns < INT64_MAX / 10; ns *= 10)
		for (int k = -1; k < 12; k++) {
			int64_t some = k < 2 ? ns + k : ns * k - 1;

			fprintf(out, "%lld %s\n", (long long)some,
				fragi_format_duration(some, text, sizeof(text)));
		}
	end("texts/numbers");
}

static const char *const addresses[] = {
	"",
	":",
	":1",
	"1",
	"57777",
	"host",
	"host:",
	"host:1",
	"host:65535",
	"host:65536",
	"host:0",
	"host:1-2",
	"host:2-1",
	"host:1-1",
	"host:1-",
	"host:-1",
	"host:1-65536",
	"127.0.0.1",
	"127.0.0.2:5",
	"128.0.0.1",
	"0.0.0.0:9",
	"localhost",
	"localhost:7",
	"::1",
	"[::1]",
	"[::1]:5",
	"[::1]:5-8",
	"[::1",
	"::1]:5",
	"[]:5",
	"[::2]:5",
	"fe80::1",
	"a:b:c",
	"host:1:2",
	" host:1",
	"host :1",
	"ho st",
	"host:x",
	"host:00080",
	"host:000080",
	":/",
	"::",
	":1:",
	"[127.0.0.1]:5",
	"::ffff:127.0.0.1",
};

Test(texts, addresses_and_advice)
{
	static const char *const names[] = {"camera", "detect", "detector", "view", "viewer2", "a"};
	static const char *const typed[] = {"camra", "detct", "detec", "VIEW",   "viewer",
					    "b",     "",      "x",     "camera", "cameraa",
					    "amera", "vi_ew", "tedect"};

	begin();
	for (size_t i = 0; i < FRAG_COUNT_OF(addresses); i++) {
		struct fragi_address address = {.host = ""};
		struct frag_err err = FRAG_ERR_INIT;
		int r = fragi_parse_address(addresses[i], "default", 4242, &address, &err);

		fprintf(out, "\"%s\" ", addresses[i]);
		if (r < 0)
			fprintf(out, "%s\n", err.text);
		else
			fprintf(out, "%s port %u to %u%s\n", address.host, address.port,
				address.port_last,
				fragi_address_is_loopback(&address) ? ", loopback" : "");
	}
	for (size_t length = 250; length < 259; length++) {
		char host[300], zone[320];
		struct fragi_address address;

		memset(host, 'a', length);
		host[length] = '\0';
		snprintf(zone, sizeof(zone), "[fe80::1%%%s]", host + 240);
		fprintf(out, "%zu: %d, zone %d\n", length,
			fragi_parse_address(host, "default", 1, &address, NULL),
			fragi_parse_address(zone, "default", 1, &address, NULL));
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(typed); i++)
		for (size_t count = 0; count <= FRAG_COUNT_OF(names); count += 3) {
			char advice[130];
			const char *near = fragi_suggest(typed[i], names, count);

			fprintf(out, "\"%s\" of %zu: %s \"%s\"\n", typed[i], count,
				near != NULL ? near : "-",
				fragi_advise(advice, sizeof(advice), typed[i], "known", names,
					     count));
		}
	end("texts/addresses");
}

static const char *const shown[] = {
	"plain",
	"a\nb",
	"\x1b[31m",
	"\xc3\xa9t\xc3\xa9",
	"\xff\xfe",
	"tab\tbed",
	"\x7f",
	"\xe2\x82\xac",
	"\xe2\x82",
	"\xed\xa0\x80",
	"\xf0\x9f\x98\x80",
	"\xc2\x85",
	"quote \" and \\ slash",
	"\xc0\x80",
	"user:secret@host",
	"rtsp://user:secret@host/path?token=x",
	"a key=value",
};

Test(texts, what_is_shown_of_any_bytes)
{
	begin();
	for (size_t i = 0; i < FRAG_COUNT_OF(shown); i++) {
		char text[200], part[12];

		fprintf(out, "%zu of %zu: ", fragi_printable(shown[i]), strlen(shown[i]));
		fragi_json_text(shown[i], out);
		snprintf(text, sizeof(text), "%s", shown[i]);
		fragi_make_printable(text, '?');
		fprintf(out, " %s", text);
		fragi_show(shown[i], strlen(shown[i]), text, sizeof(text));
		fprintf(out, " %s", text);
		fprintf(out, " %zu %s", fragi_show(shown[i], strlen(shown[i]), part, sizeof(part)),
			part);
		snprintf(text, sizeof(text), "%s", shown[i]);
		frag_hide_credentials(text, sizeof(text));
		fragi_make_printable(text, '?');
		fprintf(out, " %s\n", text);
	}
	for (size_t size = 4; size < 40; size += 3) {
		char text[40] = "";
		struct fragi_names names = {.text = text, .size = size};

		for (int k = 0; k < 6; k++)
			fragi_names_add(&names, "name%d", k);
		fprintf(out, "%zu: %s", size, text);
		fprintf(out, " | %s",
			fragi_sentence(text, size, "a sentence of %d %s", 12, "words"));
		fprintf(out, " | %s\n", fragi_sentence_add(text, size, ", and %s", "more"));
	}
	end("texts/shown");
}

static const char *const jsons[] = {
	"true",
	"0",
	"-1",
	"1.5",
	"127",
	"128",
	"255",
	"256",
	"65535",
	"-32769",
	"4294967296",
	"1e39",
	"1e3",
	"null",
	"\"a\"",
	"\"\"",
	"\"\\u00e9\\n\"",
	"[]",
	"[1, -2.5]",
	"[true, false]",
	"[[1, 2], []]",
	"[\"a\", \"bc\"]",
	"{\"x\": 1, \"y\": 2}",
	"{x: 1.5}",
	"{corners: [{x: 1, y: 2}, {x: 3, y: 4}], filled: true, label: -7}",
	"[{corners: [{x: 1, y: 2}, {x: 3, y: 4}], filled: no, label: 9}]",
	"{a: b, c: d}",
	"{",
	"[1",
};

/* Of each byte that is left out, and of each one that is another: how decoding ends. */
static void print_damage(const struct fragi_type_info *info, const struct frag_type *type,
			 const uint8_t *wire, size_t size)
{
	for (size_t i = 0; i < 2 * size; i++) {
		const size_t length = i < size ? i : size;
		uint8_t *copy = malloc(length + 1);
		size_t bytes = 0;
		void *value = NULL;
		int r;

		memcpy(copy, wire, length);
		if (i >= size)
			copy[i - size] ^= 0x41;
		r = fragi_value_measure(info, copy, length, &bytes);
		if (r == 0 && bytes <= 4096) {
			value = calloc(1, bytes + 1);
			r = fragi_value_decode(info, copy, length, value, bytes);
			if (type->fini != NULL)
				fragi_value_fini(type, value, bytes);
		}
		fprintf(out, "%s%s", i == size ? " | " : "",
			r == 0           ? "."
			: r == -EBADMSG  ? "b"
			: r == -EMSGSIZE ? "s"
					 : "?");
		free(value);
		free(copy);
	}
}

Test(texts, values_of_all_types)
{
	begin();
	for (uint8_t t = 0; t < FUZZ_TYPES; t++)
		for (size_t i = 0; i < FRAG_COUNT_OF(jsons); i++) {
			const struct frag_type *type = fuzz_type(t);
			const struct fragi_type_info *info = fragi_type_info(type);
			struct frag_message *message = frag_message_create();
			struct frag_writer writer = {.limit = 1 << 16};
			struct frag_err err = FRAG_ERR_INIT;
			const void *value;
			size_t size;

			if (i == 0)
				fprintf(out, "%s size %zu id %016llx\n", type->name, type->size,
					(unsigned long long)info->id);
			if (frag_message_read_value(message, type, jsons[i], &err) < 0) {
				fprintf(out, "  %s: %d:%d %s\n", jsons[i], err.line, err.column,
					err.text);
				frag_message_unref(message);
				continue;
			}
			frag_message_value(message, &value, &size);
			fprintf(out, "  %s: %zu bytes ", jsons[i], size);
			fragi_value_print(type, value, size, 2, out);
			if (fragi_value_encode(info, value, size, &writer) == 0) {
				fputs(" = ", out);
				for (size_t k = 0; k < writer.size; k++)
					fprintf(out, "%02x", writer.bytes[k]);
				fputc(' ', out);
				print_damage(info, type, writer.bytes, writer.size);
			}
			fputc('\n', out);
			fragi_free(writer.bytes);
			frag_message_unref(message);
		}
	end("texts/values");
}

static uint64_t drawn;
static uint32_t draw(uint32_t below)
{
	uint64_t z = drawn += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static void draw_tensors(struct frag_message *message)
{
	static const struct frag_dtype dtypes[] = {
		{FRAG_DTYPE_UINT, 8, 1},  {FRAG_DTYPE_FLOAT, 32, 1},   {FRAG_DTYPE_INT, 16, 1},
		{FRAG_DTYPE_BOOL, 8, 1},  {FRAG_DTYPE_COMPLEX, 64, 1}, {FRAG_DTYPE_BFLOAT, 16, 1},
		{FRAG_DTYPE_FLOAT, 64, 2}};
	static const char *const names[] = {NULL, "boxes", "mask"};

	for (uint32_t i = draw(4); i-- > 0;) {
		const uint32_t rows = draw(4);
		int64_t shape[3] = {rows, 1 + draw(3), 2};
		struct frag_tensor *tensor;
		const struct frag_dtype dtype = dtypes[draw(FRAG_COUNT_OF(dtypes))];
		int r = frag_tensor_create(NULL, dtype, (int32_t)draw(4), shape, &tensor);

		fprintf(out, "  tensor %d", r);
		if (r < 0)
			continue;
		if (frag_tensor_size_bytes(tensor) > 0)
			memset(frag_tensor_writable(tensor), 1, frag_tensor_size_bytes(tensor));
		fprintf(out, " added %d\n", frag_message_add_tensor(message, names[i % 3], tensor));
	}
}

static void draw_metadata(struct frag_message *message)
{
	struct frag_metadata *metadata = fragi_metadata_create(FRAG_METADATA_UPDATE);

	for (uint32_t i = draw(4); i > 0; i--) {
		char key[8];

		snprintf(key, sizeof(key), "k%u", draw(5));
		if (draw(2) == 0)
			frag_metadata_set_i64(metadata, key, (int64_t)draw(1000) - 500);
		else if (draw(2) == 0)
			frag_metadata_set_string(metadata, key, "text");
		else
			frag_metadata_set_bool(metadata, key, (int)draw(2));
	}
	cr_assert_eq(frag_message_set_metadata(message, metadata), 0);
	frag_metadata_destroy(metadata);
}

static struct frag_message *draw_message(void)
{
	struct frag_message *message = frag_message_create();
	struct frag_err err = FRAG_ERR_INIT;
	const struct frag_type *type = fuzz_type((uint8_t)draw(FUZZ_TYPES));

	for (int i = 0; i < 6; i++)
		if (frag_message_read_value(message, type, jsons[draw(FRAG_COUNT_OF(jsons))],
					    &err) == 0)
			break;
	draw_tensors(message);
	draw_metadata(message);
	if (draw(2) == 0) {
		const int64_t acquired_ns = draw(100000);

		frag_message_set_acquisition(message, acquired_ns, draw(4));
	}
	if (draw(2) == 0)
		frag_message_set_sequence(message, draw(300));
	if (draw(3) == 0)
		fprintf(out, "  flags %d\n", frag_message_set_flags(message, draw(8)));
	return message;
}

static void print_message(const struct frag_message *message)
{
	const struct frag_metadata *metadata = frag_message_metadata(message);
	const void *value;
	size_t size;
	const struct frag_type *type = frag_message_value(message, &value, &size);
	int64_t acquired = 0;
	uint32_t clock = 0;
	uint64_t sequence = 0;

	fprintf(out, "  value %s ", type != NULL ? type->name : "-");
	if (type != NULL)
		fragi_value_print(type, value, size, 3, out);
	fputs("\n  stamps:", out);
	if (frag_message_acquisition(message, &acquired, &clock) == 0)
		fprintf(out, " acquired %lld of %u", (long long)acquired, clock);
	if (frag_message_sequence(message, &sequence) == 0)
		fprintf(out, " sequence %llu", (unsigned long long)sequence);
	fprintf(out, " flags %u\n", frag_message_flags(message));
	for (uint32_t i = 0; i < frag_message_tensor_count(message); i++) {
		const char *name;
		const struct frag_tensor *tensor = frag_message_tensor_at(message, i, &name);

		fprintf(out, "  tensor \"%s\" %zu bytes ", name, frag_tensor_size_bytes(tensor));
		fragi_tensor_print(tensor, false, 2, out);
		fputc('\n', out);
	}
	for (uint32_t i = 0; metadata != NULL && i < frag_metadata_count(metadata); i++) {
		const char *key = frag_metadata_key(metadata, i), *text = "";
		int64_t whole = 0;
		int flag = 0;

		fprintf(out, "  %s:", key);
		if (frag_metadata_get_i64(metadata, key, &whole) == 0)
			fprintf(out, " %lld\n", (long long)whole);
		if (frag_metadata_get_bool(metadata, key, &flag) == 0)
			fprintf(out, " bool %d\n", flag);
		if (frag_metadata_get_string(metadata, key, &text) == 0)
			fprintf(out, " %s\n", text);
	}
}

/* Of each byte that is another, and of each one that is missing at the end. */
static void print_damaged_message(const struct fragi_blob *blob)
{
	for (size_t i = 0; i < 2 * blob->size; i++) {
		const size_t length = i < blob->size ? i : blob->size;
		uint8_t *copy = malloc(length + 1);
		struct frag_message *message = NULL;
		uint64_t id;
		int r;

		memcpy(copy, blob->bytes, length);
		if (i >= blob->size)
			copy[i - blob->size] ^= 0x21;
		r = fragi_message_decode(copy, length, 1 << 20, &message, &id);
		fprintf(out, "%s%s", i % blob->size == 0 ? "\n  " : "",
			r == 0           ? "."
			: r == -EBADMSG  ? "b"
			: r == -EMSGSIZE ? "s"
			: r == -ENOENT   ? "n"
					 : "?");
		if (r == 0)
			frag_message_unref(message);
		free(copy);
	}
	fputc('\n', out);
}

Test(texts, messages_as_they_travel)
{
	begin();
	for (drawn = 1; drawn <= 40; drawn++) {
		const uint64_t seed = drawn;
		struct frag_message *message, *again = NULL;
		const struct fragi_blob *blob;
		uint64_t id = 0;
		int r;

		fprintf(out, "message %d\n", (int)seed);
		message = draw_message();
		print_message(message);
		r = fragi_message_encode(message, &blob);
		fprintf(out, "  encoded %d", r);
		if (r == 0) {
			fprintf(out, " %u bytes\n  ", blob->size);
			for (size_t k = 0; k < blob->size; k++)
				fprintf(out, "%02x", blob->bytes[k]);
			print_damaged_message(blob);
			r = fragi_message_decode(blob->bytes, blob->size, 1 << 20, &again, &id);
			fprintf(out, "  decoded %d\n", r);
			if (r == 0)
				print_message(again);
			frag_message_unref(again);
		}
		fputc('\n', out);
		frag_message_unref(message);
		drawn = seed;
	}
	end("texts/messages");
}
