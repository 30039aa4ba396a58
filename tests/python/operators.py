# SPDX-License-Identifier: Apache-2.0
"""Operators that the tests share; graphs name this file under extensions."""

import frag


class Source(frag.Operator):
    """Emits the values of a list, or numbers."""

    values = None

    def setup(self, spec):
        spec.output("out")
        spec.param("first", 0, "First number")
        spec.param("step", 1.0, "Step", dynamic=True, min=0.0, max=10.0)
        spec.param("names", ["a"], "Names")
        spec.param("more", None, "Anything", kind="tree")

    def start(self):
        self.sent = 0

    def compute(self, op_input, op_output, context):
        values = type(self).values
        value = values[self.sent] if values else self.first + self.sent
        self.sent += 1
        op_output.emit(value, "out")


class Sink(frag.Operator):
    """Keeps what it receives, in the class, so that tests see it."""

    got = []

    def setup(self, spec):
        spec.input("in")

    def compute(self, op_input, op_output, context):
        type(self).got.append(op_input.receive("in"))


class Raising(frag.Operator):
    """Raises in the method that `where` names."""

    def setup(self, spec):
        spec.output("out")
        spec.param("where", "compute")
        spec.param("what", "ValueError")

    def fail(self, where):
        if self.where != where:
            return
        if self.what == "exit":
            raise SystemExit(3)
        if self.what == "recursion":
            return self.fail(where)
        raise ValueError("no\nluck")

    def initialize(self):
        self.fail("initialize")

    def start(self):
        self.fail("start")

    def compute(self, op_input, op_output, context):
        self.fail("compute")
        return frag.DONE

    def stop(self):
        self.fail("stop")
