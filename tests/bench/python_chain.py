# SPDX-License-Identifier: Apache-2.0
"""python_chain.py KIND LENGTH COUNT: the ns of a processor that each of COUNT numbers takes through
LENGTH operators, which receive and emit it: `c`, in C (examples/custom_operator), or `python`."""
import sys
import time

import frag
from frag.conditions import CountCondition
from frag.schedulers import GreedyScheduler


class Source(frag.Operator):
    def setup(self, spec):
        spec.output("out", type=float)

    def compute(self, op_input, op_output, context):
        op_output.emit(1.0, "out")


class Pass(frag.Operator):
    def setup(self, spec):
        spec.input("in")
        spec.output("out")

    def compute(self, op_input, op_output, context):
        op_output.emit(op_input.receive("in"), "out")


class Chain(frag.Application):
    def compose(self):
        kind, length, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        self.extensions = ["libscale.so"]
        last = Source(self, CountCondition(self, count), name="source")
        for i in range(length):
            name = "pass%d" % i
            one = (frag.NativeOperator(self, "scale", name=name, factor=1.0) if kind == "c"
                   else Pass(self, name=name))
            self.add_flow(last, one)
            last = one
        self.add_flow(last, frag.NativeOperator(self, "forward", name="end"))
        self.scheduler(GreedyScheduler(self))


def main():
    app = Chain()
    start = time.process_time_ns()
    app.run()
    print((time.process_time_ns() - start) / int(sys.argv[3]))


if __name__ == "__main__":
    main()
