# SPDX-License-Identifier: Apache-2.0
"""Two fragments, one with an operator in C and one in Python. The graph ping_distributed.yaml runs
the same operators on two workers."""
import frag
from frag.conditions import CountCondition, PeriodicCondition


class Ping(frag.Operator):
    """Sends lists of numbers, with metadata."""

    def setup(self, spec: frag.OperatorSpec) -> None:
        spec.output("out")
        spec.param("length", 3, "Numbers in a list", min=1, max=1000)

    def compute(self, op_input: frag.InputContext, op_output: frag.OutputContext,
                context: frag.ExecutionContext) -> None:
        self.metadata["round"] = context.count
        op_output.emit([context.count * i for i in range(self.length)], "out")


class Pong(frag.Operator):
    """Prints what arrives."""

    def setup(self, spec: frag.OperatorSpec) -> None:
        spec.input("in")

    def compute(self, op_input: frag.InputContext, op_output: frag.OutputContext,
                context: frag.ExecutionContext) -> None:
        numbers = op_input.receive("in")  # and its metadata
        print("round", self.metadata["round"], "brought", numbers)


class Sender(frag.Fragment):
    def compose(self) -> None:
        ping = Ping(self, CountCondition(self, 4), PeriodicCondition(self, "10ms"), name="ping")
        forward = frag.NativeOperator(self, "forward", name="forward")
        self.add_flow(ping, forward)


class Receiver(frag.Fragment):
    def compose(self) -> None:
        self.add_operator(Pong(self, name="pong"))


class PingDistributed(frag.Application):
    def compose(self) -> None:
        self.add_flow(Sender(self, name="sender"), Receiver(self, name="receiver"),
                      {("forward.out", "pong.in")})


if __name__ == "__main__":
    PingDistributed().run()
