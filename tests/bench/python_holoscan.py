# SPDX-License-Identifier: Apache-2.0
"""A program with Holoscan's API, which Holoscan's wheel and frag.holoscan run alike: prints the ns of
a message at its sink, from message to message. In the environment: BENCH_LENGTH operators between
source and sink, BENCH_COUNT messages, BENCH_BYTES of an array in each (0: a number), BENCH_PARTS
fragments (1 or 2)."""
import os
import time

from holoscan.conditions import CountCondition
from holoscan.core import Application, Fragment, Operator

LENGTH, COUNT, BYTES, PARTS = (int(os.environ["BENCH_" + name])
                               for name in ("LENGTH", "COUNT", "BYTES", "PARTS"))
FIRST = COUNT // 5  # messages that warm up


class Source(Operator):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.value = 1
        if BYTES:
            import numpy
            self.value = {"array": numpy.zeros(BYTES, "uint8")}

    def setup(self, spec):
        spec.output("out")

    def compute(self, op_input, op_output, context):
        op_output.emit(self.value, "out")


class Pass(Operator):
    def setup(self, spec):
        spec.input("in")
        spec.output("out")

    def compute(self, op_input, op_output, context):
        op_output.emit(op_input.receive("in"), "out")


class Sink(Operator):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = 0

    def setup(self, spec):
        spec.input("in")

    def compute(self, op_input, op_output, context):
        op_input.receive("in")
        self.seen += 1
        if self.seen == FIRST:
            self.begin = time.perf_counter_ns()
        elif self.seen == COUNT:
            each = (time.perf_counter_ns() - self.begin) / (COUNT - FIRST)
            print("ns of a message: %.1f" % each, flush=True)


def source(part):
    return Source(part, CountCondition(part, COUNT), name="source")


class Sends(Fragment):
    def compose(self):
        self.add_operator(source(self))


class Receives(Fragment):
    def compose(self):
        self.add_operator(Sink(self, name="sink"))


class Chain(Application):
    def compose(self):
        if PARTS == 2:
            self.add_flow(Sends(self, name="sends"), Receives(self, name="receives"),
                          {("source.out", "sink.in")})
            return
        last = source(self)
        for i in range(LENGTH):
            one = Pass(self, name="pass%d" % i)
            self.add_flow(last, one)
            last = one
        self.add_flow(last, Sink(self, name="sink"))


if __name__ == "__main__":
    Chain().run()
