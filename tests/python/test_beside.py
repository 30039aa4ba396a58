# SPDX-License-Identifier: Apache-2.0
"""Operators in C go on while one in Python computes, which holds the interpreter's lock."""

import sys
import time
import unittest

import frag
from frag.conditions import CountCondition
from frag.schedulers import EventBasedScheduler

from test_application import App


class Computes(frag.Operator):
    """Computes in one tick until `ticks` numbers have come from an operator in C."""

    def setup(self, spec):
        spec.input("in", size=frag.IOSpec.ANY_SIZE).condition(frag.ConditionType.NONE)
        spec.param("ticks", 20)

    def compute(self, op_input, op_output, context):
        end = time.monotonic() + 60
        seen = 0
        while seen < self.ticks and time.monotonic() < end:
            seen += sum(value is not None for value in op_input.receive("in"))
        type(self).seen = seen
        return frag.DONE


class Beside(unittest.TestCase):
    def setUp(self):
        # Other threads of Python get the lock when it is given up, and not after 5 ms.
        before = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        self.addCleanup(sys.setswitchinterval, before)
        Computes.seen = None

    def test_of_its_own_fragment(self):
        class Watches(frag.Operator):
            def compute(self, op_input, op_output, context):
                end = time.monotonic() + 60
                while context.operator_ticks("rx") < 20 and time.monotonic() < end:
                    pass
                ticks.append(context.operator_ticks("rx"))
                return frag.DONE

        def compose(app):
            app.scheduler(EventBasedScheduler(app, worker_thread_number=2))
            app.add_operator(Watches(app, name="watches"))
            tx = frag.NativeOperator(app, "ping_tx", CountCondition(app, 20), name="tx")
            app.add_flow(tx, frag.NativeOperator(app, "forward", name="rx"))

        ticks = []
        App(compose).run()
        self.assertEqual(ticks, [20])

    def test_of_another_fragment(self):
        def compose(app):
            one, two = frag.Fragment(app, "one"), frag.Fragment(app, "two")
            tx = frag.NativeOperator(one, "ping_tx", CountCondition(one, 20), name="tx")
            one.compose = lambda: one.add_operator(tx)
            two.compose = lambda: two.add_operator(Computes(two, name="computes"))
            app.add_flow(one, two, {("tx.out", "computes.in")})

        App(compose).run()
        self.assertEqual(Computes.seen, 20)


if __name__ == "__main__":
    unittest.main()
