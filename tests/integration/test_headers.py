# SPDX-License-Identifier: Apache-2.0
"""The public headers: C99, C++, each alone; an operator in C++ is an operator."""
import glob
import os
import subprocess
import unittest

import cluster

INCLUDE = os.path.join(cluster.TOP, "libfrag", "include")

OPERATOR = """
#include <frag/frag.h>
#include <vector>

struct twice { int64_t offset; };
enum { IN, OUT };
static const struct frag_port ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64"},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static const struct frag_param params[] = {
	FRAG_PARAM_I64(struct twice, offset, 1, .headline = "Added to it"),
};

static int compute(void *state, struct frag_tick *tick)
{
	std::vector<int64_t> x(1);
	int r = frag_tick_receive_i64(tick, IN, &x[0]);

	if (r < 0)
		return r;
	return frag_tick_emit_i64(tick, OUT, 2 * x[0] + static_cast<twice *>(state)->offset);
}

static const struct frag_op_type type = {
	FRAG_OP_TYPE_INIT, .name = "twice", .state_size = sizeof(struct twice), FRAG_PORTS(ports),
	FRAG_PARAMS(params),
	.compute = compute,
};
static const struct frag_op_type *const ops[] = {&type};
FRAG_PLUGIN(.name = "twice", .version = "1.0.0", FRAG_OPS(ops));
"""

APP = """
frag: 1
application: cpp
extensions: [./libtwice.so]
operators:
  tx: {type: ping_tx, conditions: [{type: count, count: 3}]}
  twice: {type: twice}
  rx: {type: ping_rx}
flows:
  - tx.out -> twice.in
  - twice.out -> rx.in
"""


class Headers(cluster.ClusterTest):
    def test_each_compiles_alone_as_c99_and_cpp(self):
        headers = glob.glob(os.path.join(INCLUDE, "frag", "*.h"))
        self.assertGreater(len(headers), 10)
        for header in headers:
            for compiler in (["gcc", "-std=c99", "-pedantic-errors", "-x", "c"], ["g++", "-std=c++11", "-x", "c++"]):
                r = subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", INCLUDE, header],
                                   capture_output=True, text=True)
                self.assertEqual(r.returncode, 0, r.stderr)

    def test_an_operator_in_cpp(self):
        source = self.write("twice.cc", OPERATOR)
        subprocess.run(["g++", "-std=c++20", "-shared", "-fPIC", "-I", INCLUDE, source, "-o", self.path("libtwice.so"),
                        "-L", os.path.join(cluster.BUILD, "lib"), "-lfrag"], check=True)
        run = self.start("fragctl", "run", self.write("app.yaml", APP))
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertRegex(run.stderr, r"(?s)value: 3\b.*value: 5\b.*value: 7\b")


if __name__ == "__main__":
    cluster.main()
