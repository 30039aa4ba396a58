# SPDX-License-Identifier: Apache-2.0
"""Frames of 1080p between operators in Python; part_python.py runs them in two hosts."""
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
