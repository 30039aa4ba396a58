# SPDX-License-Identifier: Apache-2.0
"""fragctl test: an application with inputs and expected outputs from files."""
import json
import os

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
        self.write_all("", "", tests="frag_test: 1\ntests:\n  t: {duration: 3ms, outputs: {f.camera.out: seen.txt}}\n")
        self.write("seen.txt", "0ms i64 1\n1ms i64 2\n2ms i64 3\n3ms i64 4\n")
        p = self.run_tests()
        self.assertEqual(p.wait(), 0, p.stdout + p.stderr)

    def test_f64_may_differ_by_the_tolerance(self):
        tests = "frag_test: 1\ntests:\n  t: {tolerance: %s, inputs: {f.camera.out: in.txt}, outputs: {f.fwd.out: seen.txt}}\n"
        for tolerance, status in ((0.01, 0), (0.001, 1)):
            self.write_all("0s f64 1.005\n", "", tests=tests % tolerance, inputs="0s f64 1\n")
            self.assertEqual(self.run_tests().wait(), status)

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
        self.write_all("", "", inputs="0ms i64 5\nsoon i64 6\n")
        p = self.run_tests()
        self.assertEqual(p.wait(), 1)
        self.assertIn('in.txt:2: no time; write for example 10ms or 1.5s in place of "soon"', p.stdout)
        os.unlink(self.path("app.test.yaml"))
        self.assertEqual(self.run_tests().wait(), 3)


if __name__ == "__main__":
    cluster.main()
