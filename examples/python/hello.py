# SPDX-License-Identifier: Apache-2.0
"""The smallest application: one operator sends numbers, the other prints them."""
import frag
from frag.conditions import CountCondition


class Numbers(frag.Operator):
    """Sends a number at each tick."""

    def setup(self, spec: frag.OperatorSpec) -> None:
        spec.output("out")
        spec.param("first", 1, "The first number")

    def compute(self, op_input: frag.InputContext, op_output: frag.OutputContext,
                context: frag.ExecutionContext) -> None:
        op_output.emit(self.first + context.count, "out")


class Print(frag.Operator):
    """Prints what it receives."""

    def setup(self, spec: frag.OperatorSpec) -> None:
        spec.input("in")

    def compute(self, op_input: frag.InputContext, op_output: frag.OutputContext,
                context: frag.ExecutionContext) -> None:
        print("hello", op_input.receive("in"))


class Hello(frag.Application):
    def compose(self) -> None:
        numbers = Numbers(self, CountCondition(self, 3), name="numbers", first=10)
        printer = Print(self, name="print")
        self.add_flow(numbers, printer)


if __name__ == "__main__":
    Hello().run()
