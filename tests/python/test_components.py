# SPDX-License-Identifier: Apache-2.0
"""Conditions and resources in Python, live conditions of C, and what an operator asks of others."""

import contextlib
import io
import os
import threading
import unittest
import warnings

import frag
from frag.conditions import (
    AsynchronousCondition,
    AsynchronousEventState,
    BooleanCondition,
    CountCondition,
    PeriodicCondition,
)
from frag.schedulers import EventBasedScheduler, GreedyScheduler

import operators
from components import Counts, Table, Times
from test_application import App, chain

FOLDER = os.path.dirname(os.path.abspath(__file__))
GRAPH = """frag: 1
application: app
extensions: [%s]
resources:
  t: {type: "python:components.Table", size: 5}
operators:
  tx: {type: "python:components.Counts", parameters: {table: $t, times: $Times},
       conditions: [{type: "python:components.Times", limit: 4}]}
  rx: {type: ping_rx}
flows: [tx -> rx]
"""


class Conditions(unittest.TestCase):
    def setUp(self):
        operators.Sink.got = []
        operators.Source.values = None

    def test_the_order_of_calls(self):
        def compose(app):
            app.scheduler(scheduler)
            app.table = Table(app, name="t", size=3)
            app.times = Times(app, limit=2)
            tx = Counts(app, app.times, name="tx", table=app.table, times=app.times)
            chain(tx, operators.Sink(app))(app)

        for scheduler in (GreedyScheduler(), EventBasedScheduler(worker_thread_number=3)):
            with self.subTest(scheduler.type), contextlib.redirect_stdout(io.StringIO()) as out:
                operators.Sink.got = []
                app = App(compose)
                app.run()
            self.assertEqual(app.times.calls, ["initialize 2", "start", "stop after 2"])
            self.assertEqual(app.table.items, [2, 0, 0])
            self.assertEqual(operators.Sink.got, [1, 2])
            self.assertEqual(out.getvalue(), "counted [2, 0, 0] 2 2\n")

    def test_a_graph(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            frag.run(GRAPH % os.path.join(FOLDER, "components.py"))
        self.assertIn("counted [4, 0, 0, 0, 0] 4 4\n", out.getvalue())
        with self.assertRaisesRegex(frag.Error, 'unknown parameter "limits"'):
            frag.run((GRAPH % os.path.join(FOLDER, "components.py")).replace("limit:", "limits:"))

    def test_a_misspelt_parameter_is_warned_of_in_its_line(self):
        class Scale(frag.Operator):
            def setup(self, spec):
                spec.param("factor", 1)

        with self.assertWarnsRegex(UserWarning, "scale: facter is no parameter .* did you mean factor") as caught:
            Scale(frag.Application(), facter=2)
        self.assertEqual(caught.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(Scale(frag.Application(), factor=3, sink=[]).sink, [])

    def test_of_an_operator_in_c(self):
        app = App(
            lambda app: chain(
                frag.NativeOperator(app, "ping_tx", Times(app, name="t"), name="tx"),
                operators.Sink(app),
            )(app)
        )
        app.run()
        self.assertEqual(len(operators.Sink.got), 3)

    def test_a_change_from_outside(self):
        class Gate(frag.Condition):
            is_open = False

            def check(self, timestamp):
                asked.set()
                return frag.Ready.READY if self.is_open else frag.Ready.WAIT_EVENT

        def opens():
            asked.wait(20)
            gate.is_open = True
            gate.changed()

        def compose(app):
            nonlocal gate
            gate = Gate(app)
            chain(
                operators.Source(app, gate, CountCondition(app, 2), name="tx"), operators.Sink(app)
            )(app)

        gate, asked = None, threading.Event()
        thread = threading.Thread(target=opens)
        thread.start()
        App(compose).run()
        thread.join()
        self.assertEqual(operators.Sink.got, [0, 1])
        gate.changed()  # its operator has ended: nothing happens

    def test_what_fails(self):
        class Bad(frag.Condition):
            def setup(self, spec):
                if where == "setup":
                    raise ValueError("no luck")

            def initialize(self):
                self.at("initialize")

            def start(self):
                self.at("start")

            def update_state(self, timestamp):
                self.at("update_state")

            def check(self, timestamp):
                self.at("check")
                return answer

            def on_execute(self, timestamp):
                self.at("on_execute")

            def at(self, here):
                if where == here:
                    raise ValueError("no luck")

        def fails(sentence, make):
            for scheduler in (GreedyScheduler(), EventBasedScheduler(worker_thread_number=2)):

                def compose(app):
                    app.scheduler(scheduler)
                    app.add_operator(make(app))

                with self.subTest(sentence), self.assertRaisesRegex(frag.Error, sentence) as raised:
                    App(compose).run()
                self.assertIn(".tx", raised.exception.operator or str(raised.exception))

        answer = frag.Ready.READY
        for where in ("initialize", "start", "update_state", "check", "on_execute"):
            for make in (
                lambda app: operators.Source(app, Bad(app), name="tx"),
                lambda app: frag.NativeOperator(app, "ping_tx", Bad(app), name="tx"),
            ):
                fails("condition bad: %s raised ValueError: no luck" % where, make)
        where = None
        for answer, sentence in (
            (None, "returned None"),
            (True, "returned True"),
            (7, "returned 7"),
            (-5, "returned -5"),
            ((1, "x"), "TypeError"),
            (frag.Ready.WAIT_TIME, "TypeError"),
        ):
            fails(sentence, lambda app: operators.Source(app, Bad(app), name="tx"))
        where = "setup"
        with self.assertRaisesRegex(ValueError, "no luck"):
            App(lambda app: app.add_operator(operators.Source(app, Bad(app)))).run()
        where, answer = None, frag.Ready.NEVER
        App(lambda app: app.add_operator(operators.Source(app, Bad(app)))).run()

    def test_what_cannot_be_made(self):
        app = frag.Application()
        with self.assertRaisesRegex(TypeError, "Condition has no check"):
            frag.Condition(app)
        Table(app, name="t")
        with self.assertRaisesRegex(ValueError, "two resources called t"):
            Table(app, name="t")


class Surroundings(unittest.TestCase):
    """What an operator asks of its fragment."""

    def setUp(self):
        operators.Sink.got = []
        operators.Source.values = None

    def test_others_are_watched_and_ended(self):
        class Watch(frag.Operator):
            def compute(self, op_input, op_output, context):
                seen.add(context.operator_status("tx"))
                if context.operator_ticks("tx") > 3:
                    switch.disable_tick()
                    waits.event_state = AsynchronousEventState.EVENT_NEVER
                    context.stop_operator("other")
                    try:
                        context.operator_status("nothing")
                    except LookupError as error:
                        seen.add(str(error))
                    return frag.DONE

        def compose(app):
            nonlocal switch, waits
            switch, waits = BooleanCondition(app), AsynchronousCondition(app)
            app.add_operator(frag.NativeOperator(app, "ping_tx", switch, name="tx"))
            app.add_operator(operators.Source(app, waits, name="waits"))
            app.add_operator(operators.Source(app, PeriodicCondition(app, "1ms"), name="other"))
            app.add_operator(Watch(app, PeriodicCondition(app, "1ms"), name="watch"))

        switch, waits, seen = None, None, set()
        self.assertEqual(App(compose).run()["result"], "done")
        self.assertIn('fragment App has no operator "nothing"', seen)
        self.assertTrue(seen & {"idle", "ticking"}, seen)
        with self.assertRaisesRegex(RuntimeError, "has ended"):
            switch.enable_tick()

    def test_chosen_flows(self):
        class Router(operators.Source):
            def choose_flows(self, context):
                flows = context.flows()
                seen.update(flows)
                if self.count > 3:
                    context.take_flow(len(flows))
                at = [name for _, name, _ in flows].index("App.odd" if self.count % 2 else
                                                          "App.even")
                context.take_flow(at)

            def compute(self, op_input, op_output, context):
                self.count = context.count
                op_output.emit(context.count, "out")
                try:
                    context.take_flow(0)
                except RuntimeError as error:
                    seen.add(str(error))

        class Got(frag.Operator):
            def setup(self, spec):
                spec.input("in")

            def compute(self, op_input, op_output, context):
                got[self.name].append(op_input.receive("in"))

        def compose(app):
            router = Router(app, CountCondition(app, app.ticks), name="router")
            for name in got:
                app.add_flow(router, Got(app, name=name))

        seen, got = set(), {"odd": [], "even": []}
        app = App(compose)
        app.ticks = 4
        app.run()
        self.assertEqual(got, {"odd": [1, 3], "even": [0, 2]})
        self.assertIn(("out", "App.even", "in"), seen)
        self.assertTrue(any("in choose_flows only" in str(x) for x in seen), seen)
        app = App(compose)
        app.ticks = 5
        with self.assertRaisesRegex(frag.Error, "choose_flows raised IndexError: the operator has "
                                                "2 flows"):
            app.run()

    def test_the_clock(self):
        class Sleeper(frag.Operator):
            def compute(self, op_input, op_output, context):
                clock = self.clock
                times.append(clock.timestamp())
                clock.sleep_for(5_000)
                clock.advance_by(1_000)
                times.append(round(clock.time() * 1e9))
                clock.sleep_until(9_000)
                clock.advance_to(10_000)
                times.append(clock.timestamp())
                try:
                    clock.advance_to(1)
                except frag.Error as error:
                    times.append(str(error))
                return frag.DONE

        times = []
        app = App(lambda app: app.clock("manual", initial_timestamp=3) or app.add_operator(sleeper))
        sleeper = Sleeper(app)
        with self.assertRaisesRegex(RuntimeError, "from initialize on"):
            sleeper.clock.time()
        app.run()
        self.assertEqual(times[:3], [3, 6_003, 10_000])
        self.assertIn("cannot do that", times[3])


if __name__ == "__main__":
    unittest.main()
