# SPDX-License-Identifier: Apache-2.0
"""fragctl test: an application with inputs and expected outputs from files."""
import json
import os
import struct

import cluster

EXAMPLES = os.path.join(cluster.TOP, "examples")

GRAPH = """frag: 1
application: app
arguments: {hold: {default: 1s}}
fragments:
  f:
    operators:
      camera: {type: ping_tx, conditions: [{type: periodic, recess_period: 1ms}]}
      fwd: {type: forward}
    flows: [camera.out -> fwd.in]
  g:
    operators:
      batch:
        type: forward
        conditions: [{type: expiring_message_available, max_batch_size: 3, max_delay_ns: "${hold}"}]
      rx: {type: forward}
    flows: [batch.out -> rx.in]
flows: [{from: f.fwd.out, to: g.batch.in, capacity: 8}]
"""
TESTS = """frag_test: 1
tests:
  held_back:
    arguments: {hold: 2h}
    inputs: {f.camera.out: in.txt}
    outputs: {f.fwd.out: seen.txt, g.batch.out: late.txt}
"""

STRUCTS = """frag: 1
application: app
extensions: [libping_multi_port.so]
operators:
  tx: {type: multi_port_tx, conditions: [{type: count, count: 1}]}
  mx: {type: multi_port_mx, parameters: {multiplier: 2}}
  rx: {type: multi_port_rx}
flows: [tx.out1 -> mx.in1, tx.out2 -> mx.in2, mx.out1 -> rx.receivers, mx.out2 -> rx.receivers]
"""
TENSORS = """frag: 1
application: app
operators:
  tx:
    type: ping_tensor_tx
    parameters: {rows: 2, columns: 3}
    conditions: [{type: count, count: 2}]
  fwd: {type: forward}
  rx: {type: ping_tensor_rx}
flows: [tx -> fwd.in, fwd -> rx]
"""


def npy(descr, shape, data):
    """A file as numpy.save writes it."""
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    header += " " * ((64 - (11 + len(header))) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


class AppTests(cluster.ClusterTest):
    def run_tests(self, *args, app=None):
        p = self.start("fragctl", "test", *args, app or self.path("app.yaml"))
        p.wait(100)
        return p

    def write_all(self, seen, late, tests=TESTS, inputs="0ms i64 5\n10s i64 6\n"):
        self.write("app.yaml", GRAPH)
        self.write("app.test.yaml", tests)
        self.write("in.txt", inputs)
        self.write("seen.txt", seen)
        self.write("late.txt", late)

    def test_each_example_with_tests_passes(self):
        tested = 0
        for name in sorted(os.listdir(EXAMPLES)):
            if os.path.exists(os.path.join(EXAMPLES, name, "app.test.yaml")):
                p = self.run_tests(app=os.path.join(EXAMPLES, name, "app.yaml"))
                self.assertEqual(p.wait(), 0, p.stdout + p.stderr)
                tested += 1
        self.assertGreater(tested, 0)

    def test_hours_of_a_graph_pass_in_no_time(self):
        self.write_all("0ms i64 5\n10000ms i64 6\n9000s i64 7\n",
                       "7200s i64 5\n# - is any time\n- i64 6\n9000s i64 7\n",
                       inputs="0ms i64 5\n10s i64 6\n9000s i64 7\n")
        p = self.run_tests("--output", "json")
        self.assertEqual(p.wait(), 0, p.stdout + p.stderr)
        report = json.loads(p.stdout)
        self.assertEqual((report["passed"], report["failed"]), (1, 0))
        self.assertEqual(report["tests"][0]["messages"], 6)
        self.assert_nothing_left()

    def test_what_differs_is_named(self):
        self.write_all("0ms i64 5\n10000ms i64 7\n11000ms f64 1\n", "1s i64 5\n- f64 6\n")
        p = self.run_tests()
        self.assertEqual(p.wait(), 1, p.stdout + p.stderr)
        for line in ("FAIL held_back: 5 messages of 2 outputs",
                     "f.fwd.out, message 2, value:\n  - 7\n  + 6\n",
                     "f.fwd.out, message 3, message:\n  - 11000ms f64 1\n  + nothing\n",
                     "g.batch.out, message 1, time:\n  - 1s\n  + ",
                     "g.batch.out, message 2, type:\n  - f64\n  + i64\n",
                     "0 passed, 1 failed"):
            self.assertIn(line, p.stdout)
        p = self.run_tests("--output", "json")
        differences = json.loads(p.stdout)["tests"][0]["differences"]
        self.assertEqual(differences[0], {"output": "f.fwd.out", "message": 2, "field": "value",
                                          "expected": "7", "got": "6"})

    def test_update_writes_what_is_expected(self):
        self.write_all("", "")
        self.assertEqual(self.run_tests().wait(), 1)
        self.assertEqual(self.run_tests("--update").wait(), 0)
        self.assertEqual(self.run_tests().wait(), 0)
        with open(self.path("seen.txt"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "0ms i64 5\n10000ms i64 6\n")

    def test_a_duration_ends_what_does_not_end(self):
        for ms in (3, 1):
            self.write_all("", "", tests="frag_test: 1\ntests:\n  t: {duration: %dms, outputs: {f.camera.out: seen.txt}}\n" % ms)
            self.write("seen.txt", "".join("%dms i64 %d\n" % (i, i + 1) for i in range(ms + 1)))
            p = self.run_tests()
            self.assertEqual(p.wait(), 0, p.stdout + p.stderr)

    def test_f64_may_differ_by_the_tolerance(self):
        tests = "frag_test: 1\ntests:\n  t: {tolerance: %s, inputs: {f.camera.out: in.txt}, outputs: {f.fwd.out: seen.txt}}\n"
        for tolerance, status in ((0.01, 0), (0.001, 1)):
            self.write_all("0s f64 1.005\n", "", tests=tests % tolerance, inputs="0s f64 1\n")
            self.assertEqual(self.run_tests().wait(), status)

    def write_structs(self, first, expected, more=""):
        self.write("app.yaml", STRUCTS)
        self.write("app.test.yaml", "frag_test: 1\ntests:\n  t: {inputs: {tx.out1: a.txt, tx.out2: b.txt}, "
                   "outputs: {mx.out1: seen.txt}%s}\n" % more)
        self.write("a.txt", first)
        self.write("b.txt", '0ms value_data {"data": 1}\n')
        self.write("seen.txt", expected)

    def test_structs_are_objects_with_their_fields(self):
        self.write_structs('0ms value_data {"data": -4}\n', '- value_data {"data": -8}\n')
        self.assertEqual(self.run_tests().wait(), 0)
        self.write_structs('0ms value_data {"data": -4}\n', '- value_data {"data": -7}\n')
        p = self.run_tests()
        self.assertEqual(p.wait(), 1)
        self.assertIn("mx.out1, message 1, value.data:\n  - -7\n  + -8\n", p.stdout)
        self.write_structs('0ms value_data {"data": -4}\n', '- value_data {"data": -7}\n', ", tolerance: 1")
        self.assertEqual(self.run_tests().wait(), 0)

    def test_mistakes_in_structs_are_named_with_line_and_column(self):
        for line, sentence in (
                ('value_data {"dat": 1}', '2:17: value_data has no field "dat"; did you mean "data"?'),
                ('value_data {}', '2:16: field "data" of value_data is missing'),
                ('value_data {"data": 3000000000}', '2:25: 3000000000 is no i32'),
                ('value_data {"data": "1"}', '2:25: "1" is no i32'),
                ('value_data {"data": [1]}', '2:25: a list is no i32'),
                ('value_data 5', '2:16: a value_data is an object: {"data": ...}'),
                ('value_data {"data": 1', "2:"),
                ('valu_data {}', '2:5: no type of values')):
            self.write_structs('# one\n0ms %s\n' % line, "")
            p = self.run_tests()
            self.assertEqual(p.wait(), 1)
            self.assertIn("a.txt:" + sentence, p.stdout, line)

    def write_tensors(self, tests, **files):
        self.write("app.yaml", TENSORS)
        self.write("app.test.yaml", "frag_test: 1\ntests:\n" + tests)
        for name, text in files.items():
            self.write(name + ".txt", text)

    def test_tensors_are_npy_files(self):
        floats = [1, 2, 3, 4, 5, 6]
        self.write_tensors("  t: {tolerance: 0.1, inputs: {tx.out: in.txt}, outputs: {fwd.out: seen.txt}}\n",
                           **{"in": '0ms tensor "left" a.npy tensor "right" b.npy\n5ms tensor "" b.npy\n',
                              "seen": '0ms tensor "left" c.npy tensor "right" b.npy\n5ms tensor "" b.npy\n'})
        for name, last in (("a.npy", 6), ("c.npy", 6.05)):
            with open(self.path(name), "wb") as f:
                f.write(npy("<f4", "(2, 3)", struct.pack("<6f", *floats[:-1], last)))
        with open(self.path("b.npy"), "wb") as f:
            f.write(npy("|u1", "(4,)", bytes([1, 2, 3, 4])))
        p = self.run_tests()
        self.assertEqual(p.wait(), 0, p.stdout)
        with open(self.path("c.npy"), "wb") as f:
            f.write(npy("<f4", "(2, 3)", struct.pack("<6f", 1, 2, 3, 4, 5.5, 6)))
        p = self.run_tests()
        self.assertEqual(p.wait(), 1, p.stdout)
        self.assertIn('fwd.out, message 1, tensor "left"[1, 1]:\n  - 5.5\n  + 5\n', p.stdout)
        with open(self.path("c.npy"), "wb") as f:
            f.write(npy("<f8", "(6,)", struct.pack("<6d", *floats)))
        self.assertIn('tensor "left":\n  - float64 [6]\n  + float32 [2, 3]\n', self.run_tests().stdout)
        os.unlink(self.path("c.npy"))
        self.assertRegex(self.run_tests().stdout, r"seen.txt:1:19: cannot read \S*c.npy: No such file or directory")
        self.write("in.txt", '0ms tensor "left" seen.txt\n')
        self.assertRegex(self.run_tests().stdout, r"in.txt:1:19: \S*seen.txt: is no .npy file; write it with numpy.save")
        self.write("in.txt", "0ms tensor a.npy\n")
        self.assertIn("in.txt:1:12: not of the form `\"NAME\" FILE.npy`", self.run_tests().stdout)

    def test_update_writes_tensors_beside_what_is_expected(self):
        self.write_tensors("  t: {outputs: {tx.out: made.txt}}\n")
        self.assertEqual(self.run_tests("--update").wait(), 0)
        self.assertEqual(self.run_tests().wait(), 0)
        with open(self.path("made.txt"), encoding="utf-8") as f:
            self.assertEqual(f.read(), '0ms tensor "tensor" made.1.0.npy\n0ms tensor "tensor" made.2.0.npy\n')
        with open(self.path("made.2.0.npy"), "rb") as f:
            self.assertEqual(f.read(), npy("|u1", "(2,3,)", bytes([2] * 6)))
        # The sum of the bytes will do too.
        self.write("made.txt", '- tensor "tensor" 1:8[2x3] 4429ec0a2ffba2d7\n- tensor "tensor" 1:8[2x3] 0\n')
        p = self.run_tests()
        self.assertEqual(p.wait(), 1)
        self.assertRegex(p.stdout, r'message 2, tensor "tensor":\n  - 1:8\[2x3\] 0\n  \+ 1:8\[2x3\] [0-9a-f]{16}\n')

    def test_mistakes_are_named_with_their_place(self):
        self.write_all("", "", tests="frag_test: 1\ntests:\n  t: {input: {}, tolerance: -1, outputs: [a]}\n  u: 5\n")
        p = self.run_tests()
        self.assertEqual(p.wait(), 2)
        for line in ('app.test.yaml:3:7: t: unknown key "input"; did you mean "inputs"?',
                     "app.test.yaml:3:29: t: tolerance is not a number from 0 up",
                     "app.test.yaml:3:42: t: outputs must be a map",
                     "app.test.yaml:4:6: u: a test must be a map"):
            self.assertIn(line, p.stderr)
        tests = "frag_test: 1\ntests: {t: {inputs: {f.camra.out: in.txt}, outputs: {h.fwd.out: seen.txt}}}\n"
        self.write_all("", "", tests=tests)
        p = self.run_tests()
        self.assertEqual(p.wait(), 1)
        self.assertIn('there is no operator "camra"; did you mean "camera"?', p.stdout)
        self.assertIn('there is no fragment "h"', p.stdout)
        # The flow takes the only output there is, so the type of the operator must have it.
        tests = "frag_test: 1\ntests: {t: {inputs: {f.camera.%s: in.txt}, outputs: {f.fwd.out: seen.txt}}}\n"
        for port, code in (("oot", 1), ("out", 0)):
            self.write_all("0ms i64 5\n10000ms i64 6\n", "", tests=tests % port)
            self.write("app.yaml", GRAPH.replace("camera.out ->", "camera ->"))
            p = self.run_tests()
            self.assertEqual(p.wait(), code, p.stdout)
            self.assertEqual('there is no output "oot"; did you mean "out"?' in p.stdout, port == "oot", p.stdout)
        self.write_all("", "", inputs="0ms i64 5\nsoon i64 6\n")
        p = self.run_tests()
        self.assertEqual(p.wait(), 1)
        self.assertIn('in.txt:2:1: no time; write for example 10ms or 1.5s in place of "soon"', p.stdout)
        os.unlink(self.path("app.test.yaml"))
        self.assertEqual(self.run_tests().wait(), 3)
