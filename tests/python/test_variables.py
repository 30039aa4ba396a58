# SPDX-License-Identifier: Apache-2.0
"""Shared variables of operators in Python."""

import os
import sys
import tempfile
import threading
import unittest

import frag
from frag.conditions import CountCondition
from frag.schedulers import GreedyScheduler
from frag.testing import Harness

from test_application import App
from test_tensors import filled

GRAPH = """frag: 1
application: app
extensions: [%s]
variables:
  gain: {type: i32, shape: [2, -1], writer: one.writer, readers: [two.reader]}
  label: {type: string, writer: one.writer, readers: [two.reader]}
  scan: {type: path, path: /some/scan, readers: [two.reader]}
fragments:
  one: {operators: {writer: {type: "python:shares.Writer", conditions: [{type: count, count: 1}]}}}
  two: {operators: {reader: {type: "python:shares.Reader", conditions: [{type: count, count: 1}]}}}
"""

SHARES = """import frag

SEEN = []

class Writer(frag.Operator):
    def compute(self, op_input, op_output, context):
        gain = frag.empty((2, 2), "int32")
        memoryview(gain).cast("B").cast("i")[:] = memoryview(bytes((7, 0, 0, 0) * 4)).cast("i")
        self.variable("label").set("left")
        self.variable("gain").set(gain)


class Reader(frag.Operator):
    def compute(self, op_input, op_output, context):
        gain = self.variable("gain").get(timeout=60)
        label = self.variable("label").get(timeout=60)
        SEEN.append((memoryview(gain).tolist(), bytes(label).decode()))
        SEEN.append((self.variable_path("scan"), self.variable_path("gain")))
"""


class Maker(frag.Operator):
    """Creates a variable, and sets it in its second tick."""

    def initialize(self):
        self.made = self.create_variable("made")

    def compute(self, op_input, op_output, context):
        if context.count > 0:
            self.made.set(filled())


def composed(reader):
    """Under the greedy scheduler the maker is ticked first, and ends after its second tick."""

    def compose(app):
        app.scheduler(GreedyScheduler())
        app.add_operator(Maker(app, CountCondition(app, 2), name="maker"))
        app.add_operator(reader(app, CountCondition(app, 2), name="reader"))

    return compose


class Variables(unittest.TestCase):
    def test_a_created_variable(self):
        seen = []

        class Reader(frag.Operator):
            def compute(self, op_input, op_output, context):
                try:
                    made = self.variable("made")
                except frag.Error as error:
                    seen.append(str(error))
                    return
                seen.append(made.wait())
                seen.append(made.wait(after=1))
                seen.append((made.get().shape, memoryview(made.get()).tolist()))
                try:
                    made.set(filled())
                except frag.Error as error:
                    seen.append(str(error))

        App(composed(Reader)).run()
        self.assertEqual(seen[0], "no variable made is declared, nor published on this machine")
        self.assertEqual(seen[1:3], [1, None])
        self.assertEqual(seen[3], ((2, 3), memoryview(filled()).tolist()))
        self.assertIn("not for this operator to write: another one created it", seen[4])

    def test_a_failure_after_one_that_was_handled(self):
        """The sentence is that of the exception, and not of the variable that was not there."""

        class Fails(frag.Operator):
            def initialize(self):
                self.mine = self.create_variable("mine")
                self.mine.set(filled())

            def compute(self, op_input, op_output, context):
                assert self.mine.wait(after=1) is None
                raise ValueError("something else")

        with self.assertRaisesRegex(frag.Error, "something else"):
            App(lambda app: app.add_operator(Fails(app, name="fails"))).run()

    def test_what_is_got_is_a_copy(self):
        class Keeps(frag.Operator):
            def setup(self, spec):
                spec.output("out")

            def initialize(self):
                self.mine = self.create_variable("mine")

            def compute(self, op_input, op_output, context):
                if context.count > 0:
                    self.mine.set(b"of another type")
                array = filled()
                self.mine.set(array)
                before = self.mine.get()
                memoryview(array).cast("B")[0] = 99
                self.mine.set(array)
                after = self.mine.get()
                op_output.emit([memoryview(tensor).cast("B")[0] for tensor in (before, after)])

        with Harness(Keeps) as harness:
            harness.tick()
            self.assertEqual(harness.take(), [0, 99])
            with self.assertRaisesRegex(frag.Error, "cannot allocate variable mine"):
                harness.tick()

    def test_a_refused_array_leaves_it_as_it_was(self):
        class Keeps(frag.Operator):
            def setup(self, spec):
                spec.output("out")

            def initialize(self):
                self.mine = self.create_variable("mine")

            def compute(self, op_input, op_output, context):
                got = []
                self.mine.set(filled())
                for other in (frag.empty((3, 2), "int32"), frag.empty((2, 3), "uint8"), b"abc"):
                    try:
                        self.mine.set(other)
                    except frag.Error as error:
                        got.append(str(error))
                    self.mine.set(filled())
                    got.append(memoryview(self.mine.get()).tolist())
                op_output.emit(got)

        with Harness(Keeps) as harness:
            harness.tick()
            got = harness.take()
        self.assertEqual(got[1::2], [memoryview(filled()).tolist()] * 3)
        for sentence in got[::2]:
            self.assertIn("cannot allocate variable mine", sentence)

    def test_times_that_are_none_do_not_wait(self):
        class Waits(frag.Operator):
            def initialize(self):
                self.mine = self.create_variable("mine")

            def compute(self, op_input, op_output, context):
                for seconds in (0, -1, float("-inf"), float("nan")):
                    assert self.mine.wait(timeout=seconds) is None
                try:
                    self.mine.wait(-8)
                except ValueError as error:
                    assert "-8 is out of range; give 0 to " in str(error)
                else:
                    raise AssertionError("it waits for a publication after -8")

        with Harness(Waits) as harness:
            self.assertTrue(harness.tick())

    def test_who_may_call(self):
        class Lends(frag.Operator):
            def compute(self, op_input, op_output, context):
                self.mine = self.create_variable("mine")
                thread = threading.Thread(target=self.use)
                thread.start()
                thread.join()

            def use(self):
                try:
                    self.mine.set(filled())
                except RuntimeError as error:
                    sentences.append(str(error))

        sentences = []
        app = App(lambda app: app.add_operator(Lends(app, CountCondition(app, 1), name="lends")))
        app.run()
        app.operators["lends"].use()
        self.assertEqual([s[:32] for s in sentences], ["variables are for the callbacks "] * 2)
        with self.assertRaisesRegex(RuntimeError, "from initialize on"):
            Lends(app).variable("mine")

    def test_what_a_graph_declares(self):
        """Two fragments; the reader waits without the interpreter's lock until both are there."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "shares.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(SHARES)
            frag.run(GRAPH % path)
        seen = sys.modules.pop("shares").SEEN
        self.assertEqual(seen, [([[7, 7], [7, 7]], "left"), ("/some/scan", None)])


if __name__ == "__main__":
    unittest.main()
