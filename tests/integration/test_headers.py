# SPDX-License-Identifier: Apache-2.0
"""The public headers: C99, C++, each alone; an operator in C++ is an operator."""
import glob
import os
import re
import runpy
import shutil
import subprocess
import unittest
from xml.etree import ElementTree

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


# What a table may say of these fields, and what it may not.
FIELDS = """
#include <frag/frag.h>
#ifdef __cplusplus
#include <complex>
typedef std::complex<float> complex64;
typedef std::complex<double> complex128;
#else
typedef float _Complex complex64;
typedef double _Complex complex128;
#endif
enum color { RED, BLUE };
struct inner { double a; };
struct all {
	bool b; int8_t i8; uint8_t u8; char c; int16_t i16; uint16_t u16; int32_t i32; uint32_t u32;
	int64_t i64; uint64_t u64; long long ll; float f32; double f64; const int ci; enum color e;
	struct inner in; float array[3]; double matrix[2][3]; struct inner inners[2];
	const char *text; size_t size; void *other;
	struct frag_i64_list list; struct frag_resource *pool;
	complex64 c64; complex128 c128;
};
static const struct frag_field fields[] = {%s};
static const struct frag_param params[] = {%s};
extern const void *const used[];
const void *const used[] = {fields, params};
"""
GOOD_FIELDS = ["(struct all, %s, \"%s\")" % pair for pair in (
    ("b", "bool"), ("i8", "i8"), ("u8", "u8"), ("c", "u8"), ("c", "i8"), ("i16", "i16"), ("u16", "u16"),
    ("i32", "i32"), ("u32", "u32"), ("i64", "i64"), ("u64", "u64"), ("ll", "i64"), ("f32", "f32"), ("f64", "f64"),
    ("ci", "i32"), ("e", "u32"), ("in", "inner"), ("c64", "complex64"), ("c128", "complex128"))]
BAD_FIELDS = ["(struct all, %s, \"%s\")" % pair for pair in (
    ("f64", "f32"), ("f32", "f64"), ("i32", "i64"), ("i64", "i32"), ("i64", "u64"), ("u8", "i8"), ("c", "bool"),
    ("b", "u8"), ("i64", "f64"), ("f64", "point"), ("in", "f64"), ("text", "string"), ("text", "inner"),
    ("array", "f32"), ("i32", ""), ("c64", "complex128"), ("c128", "complex64"), ("f64", "complex64"), ("c64", "f32"))]
ARRAYS = ["_ARRAY(struct all, array, \"f32\", 3)", "_MATRIX(struct all, matrix, \"f64\", 2, 3)",
          "_ARRAY(struct all, inners, \"inner\", 2)"]
BAD_ARRAYS = ["_ARRAY(struct all, array, \"f64\", 3)", "_MATRIX(struct all, matrix, \"f32\", 2, 3)",
              "_ARRAY(struct all, inners, \"f64\", 2)", "_ARRAY(struct all, matrix, \"f64\", 2)"]
BAD_COUNTS = ["_ARRAY(struct all, array, \"f32\", 4)", "_MATRIX(struct all, matrix, \"f64\", 3, 2)"]
GOOD_PARAMS = ["I64(struct all, i64, 1)", "F64(struct all, f64, 1)", "BOOL(struct all, b, 1)",
               "SIZE(struct all, u64, 1)", "SIZE(struct all, size, 1)", "STRING(struct all, text, NULL)",
               "I64_LIST(struct all, list, NULL)", "RESOURCE(struct all, pool, NULL)"]
BAD_PARAMS = ["I64(struct all, i32, 1)", "I64(struct all, u64, 1)", "F64(struct all, f32, 1)",
              "BOOL(struct all, i32, 1)", "SIZE(struct all, i64, 1)", "DURATION(struct all, f64, 1)",
              "STRING(struct all, c, NULL)", "F64_LIST(struct all, list, NULL)",
              "RESOURCE(struct all, other, NULL)"]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
# C++ has no designated initialisers before C++20, so the macros of parameters need it.
C99 = ["gcc", "-std=c99", "-pedantic-errors", "-x", "c"]
CPP11 = ["g++", "-std=c++11", "-pedantic-errors", "-x", "c++"]
CPP20 = ["g++", "-std=c++20", "-Wno-missing-field-initializers", "-x", "c++"]


class Tables(cluster.ClusterTest):
    """The compiler compares tables with the C fields that they describe."""

    def compile(self, compiler, fields=(), params=(), flags=()):
        """The first entry of each table stands in line 1, the second in line 2, and so on."""
        tables = ("FRAG_FIELD", fields or GOOD_FIELDS[:1]), ("FRAG_PARAM_", params)
        text = FIELDS % tuple("\n#line 1\n" + ",\n".join(prefix + e for e in entries)
                              for prefix, entries in tables)
        if not params:
            text = re.sub(r"static const struct frag_param params\[\] = \{\s#line 1\n\};", "", text).replace(", params", "")
        return subprocess.run([*compiler, *flags, "-fsyntax-only", "-I", INCLUDE, self.write("tables.c", text)],
                              capture_output=True, text=True)

    def expect_error(self, compiled, compiler, name, line):
        """The compiler reports that name for that line of the table."""
        errors = [e for e in compiled.stderr.split(" error: ")[1:] if name in e.split("\n")[0]]
        self.assertTrue(any(re.search(r"tables\.c:%d:\d+: note" % line, e) for e in errors),
                        (compiler[0], name, line, compiled.stderr))

    def test_what_agrees_compiles_without_a_warning(self):
        for compiler in (C99, CPP11, ["gcc", "-std=gnu17", "-x", "c"]):
            r = self.compile(compiler, GOOD_FIELDS + ARRAYS, flags=WARNINGS)
            self.assertEqual(r.returncode, 0, r.stderr)
        for compiler in (C99 + ["-Wno-missing-field-initializers"], CPP20):
            r = self.compile(compiler, params=GOOD_PARAMS, flags=WARNINGS)
            self.assertEqual(r.returncode, 0, r.stderr)

    def test_what_differs_is_an_error_without_any_flag(self):
        wrong = BAD_FIELDS + BAD_ARRAYS
        for compiler in (C99, CPP11):
            compiled = self.compile(compiler, wrong + BAD_COUNTS)
            self.assertNotEqual(compiled.returncode, 0)
            for i, field in enumerate(wrong + BAD_COUNTS):
                with self.subTest(compiler=compiler[0], field=field):
                    self.expect_error(compiled, compiler, "frag_field_has_another_%s" %
                                      ("type" if i < len(wrong) else "count"), i + 1)
        for compiler in (C99, CPP20):
            compiled = self.compile(compiler, params=BAD_PARAMS)
            self.assertNotEqual(compiled.returncode, 0)
            for i, param in enumerate(BAD_PARAMS):
                with self.subTest(compiler=compiler[0], param=param):
                    self.expect_error(compiled, compiler, "frag_parameter_has_another_type", i + 1)


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


HEADER = """/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a thing.
 * - name: of the thing
 * Returns 0 or a negative errno.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_thing_open(const char *name);
/* The same for what "a" and %s name. */
FRAG_API int frag_thing_a(const char *name);
FRAG_API int frag_thing_b(const char *name);

/* A thing. */
struct frag_thing {
	/* its place, from 1 */
	int line, column;
};
"""


class Reference(cluster.ClusterTest):
    """The API reference, which mk/reference.py and Doxygen make of the comments."""
    PROGRAM = os.path.join(cluster.TOP, "mk", "reference.py")

    def reference(self, *args):
        return subprocess.run([self.PROGRAM, *args], capture_output=True, text=True, check=False)

    def header(self, text):
        os.makedirs(self.path("include"), exist_ok=True)
        return self.write("include/thing.h", text)

    def test_the_public_headers_say_all_that_they_should(self):
        r = self.reference("--check", *sorted(glob.glob(os.path.join(INCLUDE, "frag", "*.h"))))
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", ""))

    def test_what_a_comment_lacks_is_named(self):
        path = self.header(HEADER)
        self.assertEqual(self.reference("--check", path).stdout, "")
        for line, sentence in ((" * Thread: any. Blocks: no. RT-safe: yes.\n", "does not name the thread"),
                               (" Blocks: no.", "does not say whether it blocks"),
                               (" * Returns 0 or a negative errno.\n", "does not say what it returns")):
            r = self.reference("--check", self.header(HEADER.replace(line, "")))
            self.assertEqual(r.returncode, 1)
            self.assertIn("frag_thing_open: its comment " + sentence, r.stdout)
        r = self.reference("--check", self.header(re.sub(r"(?m)^/\* The same .*$", "", HEADER)))
        self.assertIn("thing.h:10: frag_thing_a has no comment", r.stdout)

    def test_no_line_moves(self):
        filtered = runpy.run_path(self.PROGRAM)["filtered"]
        for path in glob.glob(os.path.join(INCLUDE, "frag", "*.h")):
            with open(path, encoding="utf-8") as f:
                lines = f.read().split("\n")
            shown = filtered("\n".join(lines)).split("\n")
            self.assertEqual(len(lines), len(shown), path)
            for line, there in zip(lines, shown):
                if line.startswith("FRAG_API"):
                    self.assertTrue(there.endswith(line), there)

    @unittest.skipUnless(shutil.which("doxygen"), "doxygen is not installed")
    def test_doxygen_has_no_warnings_and_finds_what_has_no_comment(self):
        with open(os.path.join(cluster.TOP, "mk", "Doxyfile"), encoding="utf-8") as f:
            settings = f.read().replace("mk/reference.py", self.PROGRAM)
        settings += "INPUT = %s\nOUTPUT_DIRECTORY = %s\n" % (self.path("include"), self.folder)
        for text, wrong in ((HEADER, None), (HEADER.replace("/* its place, from 1 */", ""), "Member line")):
            self.header(text)
            r = subprocess.run(["doxygen", "-"], input=settings, capture_output=True, text=True,
                               check=False)
            self.assertEqual(r.returncode != 0, wrong is not None, r.stderr)
            self.assertIn(wrong or "", r.stderr)
            tree = ElementTree.parse(self.path("xml/thing_8h.xml"))
            self.assertEqual([m.findtext("name") for m in tree.iter("memberdef")],
                             ["frag_thing_open", "frag_thing_a", "frag_thing_b"])
            opened = next(tree.iter("memberdef"))
            self.assertEqual([p.text for p in opened.iter("parametername")], ["name"])
            self.assertEqual([t.text for t in opened.iter("title")], ["Thread", "Blocks", "RT-safe"])
