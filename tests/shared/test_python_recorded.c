// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "built.h"
#include "expected.h"

/* What a program in Python prints is compared with a recorded text. */
static void compare(const char *program, const char *argument, const char *name)
{
	char buffer[4096], *text;
	size_t bytes;
	FILE *pipe, *out;

	if (access(built("python/frag/_frag.abi3.so"), R_OK) != 0)
		cr_skip_test("this build has no extension for Python");
	/* Other versions word some of their own exceptions differently. */
	if (system("python3 -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'") != 0)
		cr_skip_test("python3 is not Python 3.11, with which the text was recorded");
	setenv("PYTHONPATH", built("python"), 1);
	setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
	setenv("PYTHONHASHSEED", "0", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	snprintf(buffer, sizeof(buffer), "python3 tests/python/%s %s 2>/dev/null", program,
		 argument);
	pipe = popen(buffer, "re");
	cr_assert_not_null(pipe);
	out = open_memstream(&text, &bytes);
	for (size_t got; (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
		fwrite(buffer, 1, got, out);
	cr_expect_eq(pclose(pipe), 0);
	fclose(out);
	expected_compare(name, text);
	free(text);
}

Test(python_recorded, all_that_it_offers)
{
	compare("recorded.py", "", "python/all");
}

Test(python_recorded, types_and_applications)
{
	compare("recorded_types.py", "", "python/types");
}

Test(python_recorded, holoscan)
{
	compare("recorded_holoscan.py", "", "python/holoscan");
}

Test(python_recorded, each_call_that_fails)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", built("tests/python/failing.so"));
	compare("failing.py", path, "python/failing");
}
