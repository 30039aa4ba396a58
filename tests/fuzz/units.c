// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>

#include <base/units.h>

/* Texts that people write: a byte that says what it should be, then the text. */
static void parse_numbers(const char *text)
{
	uint64_t bytes = 42;
	int64_t ns = 42, time_ns = 42, integer = 42;
	double number = 42;
	bool flag = true;
	char out[32], small[4];
	int r;

	r = fragi_parse_size(text, &bytes);
	fuzz_check(r == 0 || ((r == -EINVAL || r == -ERANGE) && bytes == 42));
	r = fragi_parse_duration(text, &ns);
	fuzz_check(r == 0 || ((r == -EINVAL || r == -ERANGE || r == -EDOM) && ns == 42));
	fuzz_check(r < 0 || ns >= 0);
	if (fragi_parse_time(text, &time_ns) == 0)
		fuzz_check(r == 0 && time_ns == ns);
	fuzz_check(fragi_format_duration(ns, out, sizeof(out))[0] != '\0');
	fragi_format_duration(ns, small, sizeof(small));
	r = fragi_parse_i64(text, &integer);
	fuzz_check(r == 0 || ((r == -EINVAL || r == -ERANGE) && integer == 42));
	fragi_format_duration(integer, out, sizeof(out));
	r = fragi_parse_f64(text, &number);
	fuzz_check(r == 0 || ((r == -EINVAL || r == -ERANGE) && number == 42));
	r = fragi_parse_bool(text, &flag);
	fuzz_check(r == 0 || (r == -EINVAL && flag));
	(void)fragi_name_is_valid(text);
}

static void parse_address(const char *text)
{
	struct fragi_address address, again;
	struct frag_err err = FRAG_ERR_INIT;
	char line[300];
	int r = fragi_parse_address(text, "127.0.0.1", FRAGI_PORT_DEFAULT, &address, &err);

	fuzz_check(r == 0 || (r == -EINVAL && err.text[0] != '\0'));
	if (r < 0)
		return;
	fuzz_check(address.port <= address.port_last);
	(void)fragi_address_is_loopback(&address);
	snprintf(line, sizeof(line), strchr(address.host, ':') != NULL ? "[%s]:%u-%u" : "%s:%u-%u",
		 address.host, (unsigned int)address.port, (unsigned int)address.port_last);
	if (address.port == 0)
		return; /* any port is no range */
	fuzz_check(fragi_parse_address(line, "x", 1, &again, NULL) == 0);
	fuzz_check(strcmp(again.host, address.host) == 0 && again.port == address.port &&
		   again.port_last == address.port_last);
}

static void suggest(char *text)
{
	const char *names[8];
	char out[128];
	const char *found;
	size_t count = 0;
	bool known = false;

	for (char *name = strtok(text, "\n"); name != NULL && count < 8; name = strtok(NULL, "\n"))
		names[count++] = name;
	if (count == 0)
		return;
	found = fragi_suggest(names[0], names + 1, count - 1);
	for (size_t i = 1; i < count; i++)
		known = known || names[i] == found;
	fuzz_check(found == NULL || known);
	fuzz_check(strlen(fragi_advise(out, sizeof(out), names[0], "known", names + 1, count - 1)) <
		   sizeof(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = {bytes, bytes + size};
	uint8_t what = fuzz_u8(&input);
	char *text = fuzz_text(input.at, fuzz_left(&input));

	if (what % 3 == 0)
		parse_numbers(text);
	else if (what % 3 == 1)
		parse_address(text);
	else
		suggest(text);
	free(text);
	return 0;
}
