// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frag/frag.h>
#include <frag/harness.h>
#include <built.h>
#include <ops.h>

/* Ranges of NVTX, which a library of the tests takes in the place of a profiler. */

static const char *path;
static int result;

static void find_probe(void)
{
	path = built("tests/sample_plugins/libnvtx_probe.so");
}

TestSuite(nvtx, .init = find_probe);

static int compute(void *state, struct frag_tick *tick)
{
	return result;
}

TEST_OP_BY(op, compute);

/* What the probe has seen of three ticks, the last of which fails. */
static void expect_ranges(const char *ranges)
{
	struct frag_harness *h = frag_harness_create(&op_type, NULL, NULL);
	const char *seen;
	void *probe;

	cr_assert_not_null(h);
	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(frag_harness_tick(h), 0);
	result = -EIO;
	cr_expect_eq(frag_harness_tick(h), -EIO);
	frag_harness_destroy(h);
	probe = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	seen = probe != NULL ? dlsym(probe, "nvtx_probe_ranges") : "";
	cr_expect_str_eq(seen, ranges, "%s", seen);
}

Test(nvtx, each_tick_is_a_range_with_the_name_of_its_operator)
{
	setenv("NVTX_INJECTION64_PATH", path, 1);
	expect_ranges("<harness.op><harness.op><harness.op>");
}

Test(nvtx, no_library_is_loaded_unasked)
{
	unsetenv("NVTX_INJECTION64_PATH");
	expect_ranges("");
	cr_expect_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}

Test(nvtx, a_profiler_that_cannot_be_used_changes_nothing)
{
	setenv("NVTX_INJECTION64_PATH", "/nowhere/libprofiler.so", 1);
	expect_ranges("");
}

Test(nvtx, a_profiler_that_refuses_changes_nothing)
{
	setenv("NVTX_INJECTION64_PATH", path, 1);
	setenv("NVTX_PROBE_REFUSES", "1", 1);
	expect_ranges("");
}
