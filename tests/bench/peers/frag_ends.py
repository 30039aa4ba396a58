# SPDX-License-Identifier: Apache-2.0
"""The ends of peer.py as operators of frag in Python. A message is a tensor of bytes."""

import json
import os
import time

import frag

WARM_UP = 20


def message(number, size):
    tensor = frag.empty((size,), "uint8")
    memoryview(tensor).cast("B")[:8] = number.to_bytes(8, "little")
    return tensor


def number_of(tensor):
    return int.from_bytes(memoryview(tensor).cast("B")[:8], "little")


def save(path, **what):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(what, f)


class Ask(frag.Operator):
    def setup(self, spec):
        spec.input("in")
        spec.output("out", type="tensor")
        spec.param("folder", kind="path")
        spec.param("size", 8)
        spec.param("count", 100)

    def start(self):
        self.took, self.begin, self.cpu = [], None, 0

    def compute(self, op_input, op_output, context):
        back = op_input.receive("in")
        if self.begin is not None:
            if number_of(back) != len(self.took):
                raise RuntimeError("another message came back")
            self.took.append(time.perf_counter_ns() - self.begin)
        if len(self.took) == WARM_UP:
            self.cpu = time.process_time()
        if len(self.took) < self.count + WARM_UP:
            self.begin = time.perf_counter_ns()
            op_output.emit(message(len(self.took), self.size), "out")
            return
        cpu, took = time.process_time() - self.cpu, sorted(self.took[WARM_UP:])
        save(
            os.path.join(self.folder, "ask.json"),
            p50=took[self.count // 2] / 2e3,
            p99=took[self.count * 99 // 100] / 2e3,
            cpu=cpu / self.count * 1e6,
        )
        context.stop()


class Echo(frag.Operator):
    def setup(self, spec):
        spec.input("in", type="tensor")
        spec.output("out", type="tensor")
        spec.param("folder", kind="path")
        spec.param("count", 100)

    def compute(self, op_input, op_output, context):
        tensor = op_input.receive("in")
        back = frag.empty(tensor.shape, "uint8")
        memoryview(back).cast("B")[:] = memoryview(tensor).cast("B")
        number = number_of(tensor)
        if number == WARM_UP:
            self.cpu = time.process_time()
        op_output.emit(back, "out")
        if number == self.count + WARM_UP - 1:
            save(
                os.path.join(self.folder, "echo.json"),
                cpu=(time.process_time() - self.cpu) / self.count * 1e6,
            )


class Send(frag.Operator):
    def setup(self, spec):
        spec.output("out", type="tensor")

    def compute(self, op_input, op_output, context):
        op_output.emit(message(context.count, 64), "out")


class Take(frag.Operator):
    def setup(self, spec):
        spec.input("in", type="tensor")
        spec.param("folder", kind="path")

    def start(self):
        self.out = os.open(
            os.path.join(self.folder, "taken"), os.O_WRONLY | os.O_CREAT | os.O_APPEND
        )
        with open(os.path.join(self.folder, "take.pid"), "w", encoding="ascii") as f:
            f.write(str(os.getpid()))

    def compute(self, op_input, op_output, context):
        os.write(self.out, b"%d\n" % number_of(op_input.receive("in")))
