# SPDX-License-Identifier: Apache-2.0
"""An operator with numpy: it smooths a signal. Its memory crosses to the next operator uncopied."""
from typing import Any

import numpy as np
import numpy.typing as npt

import frag
from frag.conditions import CountCondition


class Signal(frag.Operator):
    """Sends a noisy sine."""

    def setup(self, spec: frag.OperatorSpec) -> None:
        spec.output("out")
        spec.param("samples", 1000, "Samples of a message", min=10)

    def start(self) -> None:
        self.random = np.random.default_rng(7)

    def compute(self, op_input: frag.InputContext, op_output: frag.OutputContext,
                context: frag.ExecutionContext) -> None:
        clean = np.sin(np.linspace(0, 20, self.samples))
        op_output.emit(clean + self.random.normal(0, 0.5, self.samples), "out")


class Smooth(frag.Operator):
    """The mean of each sample and its neighbours."""

    def setup(self, spec: frag.OperatorSpec) -> None:
        spec.input("in")
        spec.output("out")
        spec.param("width", 15, "Samples that are averaged", dynamic=True, min=1, max=999)

    def compute(self, op_input: frag.InputContext, op_output: frag.OutputContext,
                context: frag.ExecutionContext) -> None:
        signal: npt.NDArray[Any] = np.asarray(op_input.receive("in"))
        result = frag.empty(signal.shape, signal.dtype)
        np.asarray(result)[:] = np.convolve(signal, np.ones(self.width) / self.width, "same")
        op_output.emit(result, "out")


class Report(frag.Operator):
    """Prints how far neighbours are apart."""

    def setup(self, spec: frag.OperatorSpec) -> None:
        spec.input("in")

    def compute(self, op_input: frag.InputContext, op_output: frag.OutputContext,
                context: frag.ExecutionContext) -> None:
        signal: npt.NDArray[Any] = np.asarray(op_input.receive("in"))
        print("%d samples, roughness %.3f" % (signal.size, np.abs(np.diff(signal)).mean()))


class SmoothSignal(frag.Application):
    def compose(self) -> None:
        signal = Signal(self, CountCondition(self, 3), name="signal")
        smooth = Smooth(self, name="smooth", width=25)
        self.add_flow(signal, smooth)
        self.add_flow(smooth, Report(self, name="report"))


if __name__ == "__main__":
    SmoothSignal().run()
