# SPDX-License-Identifier: Apache-2.0
"""Operators in Python that part_python.py runs in hosts: frames of 1080p, and one that computes."""
import time

import frag


class Camera(frag.Operator):
    def setup(self, spec):
        spec.output("out", type="tensor")

    def compute(self, op_input, op_output, context):
        frame = frag.empty((1080, 1920, 3), "uint8")
        memoryview(frame).cast("B")[0] = context.count % 256
        op_output.emit(frame)


class Viewer(frag.Operator):
    def setup(self, spec):
        spec.input("in", type="tensor")

    def compute(self, op_input, op_output, context):
        self.first = memoryview(op_input.receive("in")).cast("B")[0]


class Busy(frag.Operator):
    """Computes for so long in each tick, with the interpreter's lock."""

    def setup(self, spec):
        spec.param("ms", 5)

    def compute(self, op_input, op_output, context):
        end = time.perf_counter_ns() + self.ms * 1000000
        while time.perf_counter_ns() < end:
            pass
