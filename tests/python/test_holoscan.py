# SPDX-License-Identifier: Apache-2.0
"""Programs in the style of Holoscan on frag.holoscan."""
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import frag
from frag.holoscan import install

install()
from holoscan.conditions import (AsynchronousEventState, BooleanCondition,  # noqa: E402
                                 CountCondition, PeriodicCondition)
from holoscan.core import (Application, Condition, ConditionType, Fragment,  # noqa: E402
                           IOSpec, MetadataPolicy, Operator, OperatorStatus, Subgraph)
from holoscan.core import SchedulingStatusType as Status  # noqa: E402
from holoscan.core import AsyncDataLoggerResource  # noqa: E402
from holoscan.decorator import Input, Output, create_op  # noqa: E402
from holoscan.operators import FormatConverterOp  # noqa: E402
from holoscan.resources import ManualClock, OrConditionCombiner, UnboundedAllocator  # noqa: E402
from holoscan.schedulers import EventBasedScheduler, GreedyScheduler  # noqa: E402


class Source(Operator):
    """Sends what it is given, one at each tick."""

    def __init__(self, fragment, *args, values=(), **kwargs):
        self.values = list(values)
        super().__init__(fragment, *args, **kwargs)

    def setup(self, spec):
        spec.output("out")

    def compute(self, op_input, op_output, context):
        op_output.emit(self.values.pop(0), "out")


class Times(Operator):
    def setup(self, spec):
        spec.input("in")
        spec.output("out")
        spec.param("factor", 2)

    def compute(self, op_input, op_output, context):
        op_output.emit(op_input.receive("in") * self.factor, "out")


class Sink(Operator):
    """Keeps what it receives."""

    def __init__(self, fragment, *args, size=IOSpec.SIZE_ONE, **kwargs):
        self.size = size
        self.got = []
        super().__init__(fragment, *args, **kwargs)

    def setup(self, spec):
        spec.input("in", size=self.size)

    def compute(self, op_input, op_output, context):
        self.got.append(op_input.receive("in"))


class Built(Application):
    """An application whose compose is a function."""

    def __init__(self, build):
        self.build = build
        super().__init__(["python3", "app.py"])

    def compose(self):
        self.build(self)


def run(build):
    """Runs it. Returns what it has logged."""
    log = io.StringIO()
    with contextlib.redirect_stderr(log):
        Built(build).run()
    return log.getvalue()


class Programs(unittest.TestCase):
    def test_a_chain_with_parameters(self):
        def build(app):
            self.sink = Sink(app, name="sink")
            source = Source(app, CountCondition(app, 3), name="source", values=[1, 2, 3])
            by_default, given = Times(app, name="two"), Times(app, name="five", factor=5)
            app.add_flow(source, by_default)
            app.add_flow(by_default, given, {("out", "in")})
            app.add_flow(given, self.sink)

        run(build)
        self.assertEqual(self.sink.got, [10, 20, 30])

    def test_objects_arrive_as_the_same_ones(self):
        values = [[1], {"a": 2}, {"a": "b", "c": [1.5]}, None, object(), (1, 2)]

        def build(app):
            self.sink = Sink(app, name="sink")
            app.add_flow(Source(app, CountCondition(app, 6), values=values), self.sink)

        run(build)
        self.assertEqual(len(self.sink.got), 6)
        for got, sent in zip(self.sink.got, values):
            self.assertIs(got, sent)

    def test_any_number_of_flows(self):
        def build(app):
            self.sink = Sink(app, name="sink", size=IOSpec.ANY_SIZE)
            for first in (1, 10):
                app.add_flow(Source(app, CountCondition(app, 2), name="from_%d" % first,
                                    values=[first, first + 1]), self.sink, {("out", "in")})

        run(build)
        self.assertEqual(self.sink.got, [(1, 10), (2, 11)])

    def test_a_queue_of_two(self):
        def build(app):
            self.sink = Sink(app, name="sink", size=2)
            app.add_flow(Source(app, CountCondition(app, 4), values=[1, 2, 3, 4]), self.sink)

        log = run(build)
        self.assertEqual(self.sink.got, [(1, 2), (3, 4)])
        self.assertIn("queue_size=2", log)

    def test_metadata(self):
        seen = []

        class Tagging(Source):
            def compute(self, op_input, op_output, context):
                self.metadata["tag"] = self.name
                self.metadata["object"] = self
                super().compute(op_input, op_output, context)

        class Reading(Sink):
            def compute(self, op_input, op_output, context):
                super().compute(op_input, op_output, context)
                seen.append((self.metadata["tag"], self.metadata["object"].name))

        def build(app, policy=MetadataPolicy.UPDATE):
            sink = Reading(app, name="sink", size=IOSpec.ANY_SIZE)
            sink.metadata_policy = policy
            for name in "ab":
                app.add_flow(Tagging(app, CountCondition(app, 1), name=name, values=[0]), sink)

        run(build)
        self.assertEqual(seen, [("b", "b")])
        with self.assertRaisesRegex(RuntimeError, "duplicate metadata keys: 'tag'"):
            run(lambda app: build(app, MetadataPolicy.RAISE))

    def test_metadata_passes_operators_in_c(self):
        """What operators in C can read becomes theirs; the rest travels beside it."""
        given = {"exposure": 4, "unit": "mm", "gains": [1.5, 2.5], "k" * 64: True,
                 "who": {"any": object()}, "": 0}

        class Frames(Operator):
            def setup(self, spec):
                spec.output("out")

            def compute(self, op_input, op_output, context):
                if self.fragment.sends:
                    for key, value in given.items():
                        self.metadata[key] = value
                op_output.emit({"": frag.empty((2, 2, 3), "uint8")}, "out", acq_timestamp=stamp)

        class Reading(Operator):
            def setup(self, spec):
                spec.input("in")

            def compute(self, op_input, op_output, context):
                frame = op_input.receive("in")[""]
                self.fragment.got.append((frame.shape, dict(self.metadata.items()),
                                          op_input.get_acquisition_timestamp("in")))

        def build(app):
            app.sends, app.got = sends, got
            frames = Frames(app, CountCondition(app, 2), name="frames")
            convert = FormatConverterOp(app, pool=UnboundedAllocator(app, name="pool"),
                                        out_dtype="rgb888", name="convert")
            app.add_flow(frames, convert)
            app.add_flow(convert, Reading(app, name="reading"))

        for sends, stamp, expected in ((True, 0, (given, 0)), (False, -1, ({}, None))):
            got = []
            run(build)
            self.assertEqual(got, [((2, 2, 3), *expected)] * 2)

    def test_exceptions_come_out_of_run(self):
        for method in ("initialize", "start", "compute", "stop"):
            class Broken(Operator):
                pass

            def fail(self, *args):
                raise ZeroDivisionError(self.name)

            setattr(Broken, method, fail)
            with self.assertRaisesRegex(ZeroDivisionError, "broken"):
                run(lambda app: app.add_operator(
                    Broken(app, CountCondition(app, 1), name="broken")))

    def test_queues_of_outputs(self):
        class Twice(Source):
            def __init__(self, *args, policy=None, **kwargs):
                self.policy = policy
                super().__init__(*args, **kwargs)

            def setup(self, spec):
                spec.output("out", policy=self.policy).condition(ConditionType.NONE)

            def compute(self, op_input, op_output, context):
                op_output.emit(self.values[0], "out")
                op_output.emit(self.values[1], "out")

        def build(app, policy):
            self.sink = Sink(app, name="sink")
            app.add_flow(Twice(app, CountCondition(app, 1), name="twice", values=[1, 2],
                               policy=policy), self.sink)

        for policy, expected in ((IOSpec.QueuePolicy.POP, 2), (IOSpec.QueuePolicy.REJECT, 1)):
            run(lambda app: build(app, policy))
            self.assertEqual(self.sink.got, [expected])
        with self.assertRaisesRegex(RuntimeError, "Failed to publish output message"):
            run(lambda app: build(app, None))

    def test_subgraphs(self):
        class Doubling(Subgraph):
            def compose(self):
                one, two = Times(self, name="one"), Times(self, name="two")
                self.add_flow(one, two)
                self.add_input_interface_port("x", one, "in")
                self.add_output_interface_port("y", two, "out")

        def build(app):
            self.sink = Sink(app, name="sink")
            doubling = Doubling(app, "doubling")
            app.add_flow(Source(app, CountCondition(app, 2), values=[1, 2]), doubling,
                         {("out", "x")})
            app.add_flow(doubling, self.sink, {("y", "in")})
            self.names = {op.name for op in app.graph.get_nodes()}

        run(build)
        self.assertEqual(self.sink.got, [4, 8])
        self.assertLess({"doubling_one", "doubling_two", "sink"}, self.names)

    def test_fragments(self):
        class Sender(Fragment):
            def compose(self):
                self.add_operator(Source(self, CountCondition(self, 3), name="source",
                                         values=[{"n": n} for n in range(3)]))

        class Receiver(Fragment):
            def compose(self):
                self.sink = Sink(self, name="sink")
                self.add_operator(self.sink)

        def build(app):
            self.receiver = Receiver(app, "receiver")
            app.add_flow(Sender(app, "sender"), self.receiver, {("source.out", "sink.in")})

        run(build)
        self.assertEqual(self.receiver.sink.got, [{"n": 0}, {"n": 1}, {"n": 2}])

    def test_conditions(self):
        class Stopping(Operator):
            ticks = 0

            def compute(self, op_input, op_output, context):
                self.ticks += 1
                if self.ticks == 4:
                    self.conditions["on"].disable_tick()

        class Counting(Operator):
            ticks = 0

            def compute(self, op_input, op_output, context):
                self.ticks += 1

        def build(app):
            app.scheduler(EventBasedScheduler(app, worker_thread_number=2))
            self.stopping = Stopping(app, BooleanCondition(app, name="on"),
                                     PeriodicCondition(app, 1000), name="stopping")
            terms = [CountCondition(app, n, name="count%d" % n) for n in (3, 5)]
            self.counting = Counting(app, OrConditionCombiner(app, terms=terms), name="counting")
            app.add_operator(self.stopping)
            app.add_operator(self.counting)

        run(build)
        self.assertEqual((self.stopping.ticks, self.counting.ticks), (4, 3))

    def test_conditions_in_python(self):
        class Every(Condition):
            """Ready once it was checked so often."""

            def __init__(self, *args, answer=None, **kwargs):
                self.answer = answer
                self.calls = []
                super().__init__(*args, **kwargs)

            def setup(self, spec):
                spec.param("times", 2)

            def check(self, timestamp):
                if self.answer is not None:
                    return self.answer
                self.calls.append("check")
                ready = self.calls.count("check") % self.times == 0
                return (Status.READY if ready else Status.WAIT_TIME), timestamp + 1000

            def on_execute(self, timestamp):
                self.calls.append("ticked")

        def build(app, **kwargs):
            self.every = Every(app, name="every", **kwargs)
            app.add_operator(Source(app, CountCondition(app, 2), self.every, name="source",
                                    values="ab"))

        run(lambda app: build(app, times=3))
        self.assertEqual(self.every.calls[:8], 2 * ["check", "check", "check", "ticked"])
        for answer, text in ((Status.READY, "must return a tuple"), ((1, 2, 3), "of size 2"),
                             ((None, None), "The first element"),
                             ((Status.READY, "soon"), "The second element")):
            with self.assertRaisesRegex(RuntimeError, text):
                run(lambda app: build(app, answer=answer))

    def test_inputs_without_flows(self):
        def build(app):
            self.sinks = [Sink(app, CountCondition(app, 2), name="alone"),
                          Sink(app, CountCondition(app, 2), name="free")]
            self.sinks[1].spec.inputs["in"].condition(ConditionType.NONE)
            for sink in self.sinks:
                app.add_operator(sink)

        log = run(build)
        self.assertEqual([sink.got for sink in self.sinks], [[], [None, None]])
        self.assertIn("Input port 'in' of operator 'alone' is not connected", log)
        self.assertNotIn("'free'", log)

    def test_dynamic_flows_and_what_they_carry(self):
        ticked = []

        class Step(Operator):
            def compute(self, op_input, op_output, context):
                path = self.metadata.get("path", [])
                self.metadata["path"] = path + [self.name]
                ticked.append(self.metadata["path"])

        def build(app):
            first, odd, even, last = (Step(app, name=n) for n in ("first", "odd", "even", "last"))
            app.add_flow(app.start_op(), first)
            for middle in (odd, even):
                app.add_flow(first, middle)
                app.add_flow(middle, last)
            app.set_dynamic_flows(first, lambda op: op.add_dynamic_flow(even))

        run(build)
        self.assertEqual(ticked, [["first"], ["first", "even"], ["first", "even", "last"]])

        def build_wrong(app):
            build(app)
            app.set_dynamic_flows(app.graph.find_node("first"), lambda op: op.add_dynamic_flow(op))

        with self.assertRaisesRegex(RuntimeError, "first has no flow to first"):
            run(build_wrong)

    def test_an_operator_waits_for_all_that_lead_to_it(self):
        """By execution flows; in a loop it goes on with each of them."""
        order = []

        class Step(Operator):
            def compute(self, op_input, op_output, context):
                order.append(self.name)
                if self.name == "last" and order.count("last") == 2:
                    self.fragment.stop_execution()

        def build(app, loop=False):
            first, left, right, last = (Step(app, name=name) for name in (
                "first", "left", "right", "last"))
            app.add_flow(app.start_op(), first)
            for side in (left, right):
                app.add_flow(first, side)
                app.add_flow(side, last)
            if loop:
                app.add_flow(last, first)

        run(build)
        self.assertEqual((order[0], sorted(order[1:3]), order[3:]),
                         ("first", ["left", "right"], ["last"]))
        order.clear()
        run(lambda app: build(app, loop=True))
        self.assertEqual((order[4:5], order.count("last")), (["first"], 2))

    def test_a_timeout_of_one_input(self):
        class Three(Operator):
            """Sends 3 messages, fewer than its receiver waits for, and is ticked until it has them."""
            ticks = 0

            def setup(self, spec):
                spec.output("out")

            def compute(self, op_input, op_output, context):
                self.ticks += 1
                if self.ticks <= 3:
                    op_output.emit(self.ticks, "out")
                if sum(map(len, got)) == 3:
                    self.stop_execution()

        class Batch(Operator):
            def setup(self, spec):
                spec.input("in", size=IOSpec.IOSize(5)).condition(
                    ConditionType.MULTI_MESSAGE_AVAILABLE_TIMEOUT, execution_frequency="1ms",
                    min_sum=5)

            def compute(self, op_input, op_output, context):
                got.append(op_input.receive("in"))

        def build(app):
            nonlocal three
            three = Three(app, PeriodicCondition(app, 0.001), CountCondition(app, 5000))
            app.add_flow(three, Batch(app, name="batch"))

        got, three = [], None
        run(build)
        self.assertEqual([x for messages in got for x in messages or ()], [1, 2, 3])
        self.assertLess(three.ticks, 5000)

    def test_the_clock_of_the_scheduler(self):
        times = []

        class Timed(Operator):
            def compute(self, op_input, op_output, context):
                times.append(self.fragment.scheduler().clock.timestamp())

        def build(app):
            self.clock = ManualClock(app, initial_timestamp=5)
            app.scheduler(GreedyScheduler(app, clock=self.clock))
            app.add_operator(Timed(app, CountCondition(app, 3), PeriodicCondition(app, 10 ** 12),
                                   name="timed"))

        run(build)
        self.assertEqual([b - a for a, b in zip(times, times[1:])], [10 ** 12] * 2)
        self.assertEqual(self.clock.timestamp(), times[-1])

    def test_batches_on_a_timeout(self):
        """Under the greedy scheduler the time is looked at with the next message."""
        batches = []

        class Batches(Operator):
            def setup(self, spec):
                spec.input("in", size=IOSpec.IOSize(5)).condition(
                    ConditionType.MULTI_MESSAGE_AVAILABLE_TIMEOUT,
                    execution_frequency="250ms", min_sum=5)

            def compute(self, op_input, op_output, context):
                batches.append(len(op_input.receive("in")))

        for scheduler, sizes in ((GreedyScheduler, [4, 3, 2]), (EventBasedScheduler, [3, 3, 2, 1])):
            def build(app):
                app.scheduler(scheduler(app, clock=ManualClock(app)))
                period = PeriodicCondition(app, 10 ** 8)
                source = Source(app, period, CountCondition(app, 9), values=range(9), name="tx")
                app.add_flow(source, Batches(app, name="rx"))

            run(build)
            self.assertEqual(batches, sizes)
            batches.clear()

    def test_the_time_of_what_is_logged_later(self):
        """It is read on the operator's thread: later the operator, and its clock, have ended."""
        stamps, ended = [], threading.Event()

        class Late(AsyncDataLoggerResource):
            def log_data(self, data, unique_id, *rest):
                ended.wait(60)
                stamps.append(self.get_timestamp())

            def _finish(self):
                ended.set()
                super()._finish()

        def build(app):
            clock = ManualClock(app, initial_timestamp=5)
            app.scheduler(GreedyScheduler(app, clock=clock))
            app.add_data_logger(Late(app, use_scheduler_clock=True, log_inputs=False, name="late"))
            period = PeriodicCondition(app, 10 ** 12)
            source = Source(app, period, CountCondition(app, 2), values=(1, 2), name="tx")
            app.add_flow(source, Sink(app, name="rx"))

        run(build)
        self.assertEqual(stamps[1] - stamps[0], 10 ** 12)

    def test_operators_watch_and_end_others(self):
        class Watching(Operator):
            def start(self):
                self.seen = []

            def compute(self, op_input, op_output, context):
                self.seen.append(context.get_operator_status("endless"))
                self.seen.append(context.get_operator_status(self.name))
                if context.find_operator("endless").ticks > 2:
                    self.fragment.stop_execution("endless")
                    self.async_condition.event_state = AsynchronousEventState.EVENT_NEVER

        class Endless(Operator):
            ticks = 0

            def compute(self, op_input, op_output, context):
                self.ticks += 1

        def build(app):
            self.watching = Watching(app, PeriodicCondition(app, 0.001), name="watching")
            self.late = BooleanCondition(app, name="late")
            app.add_operator(Endless(app, self.late, PeriodicCondition(app, 1000), name="endless"))
            app.add_operator(self.watching)

        run(build)
        self.assertEqual(set(self.watching.seen[1::2]), {OperatorStatus.TICKING})
        self.assertIn(OperatorStatus.IDLE, self.watching.seen[::2])
        self.assertIsNone(self.watching.execution_context)
        self.late.disable_tick()
        self.assertFalse(self.late.check_tick_enabled())
        with self.assertRaisesRegex(RuntimeError, "does not run"):
            self.watching.stop_execution()

    def test_queues_can_be_looked_at(self):
        seen, calls = [], []

        class Batch(Condition):
            def initialize(self):
                self.queue = self.receiver("in")

            def on_execute(self, timestamp):
                calls.append("ticked")

            def check(self, timestamp):
                calls.append("check")
                waiting = self.queue.size + self.queue.back_size
                return (Status.READY if waiting == 3 else Status.WAIT), None

        class Looking(Sink):
            def compute(self, op_input, op_output, context):
                queue = self.receiver("in")
                seen.append((queue.capacity, queue.size, queue.back_size))
                while (value := op_input.receive("in", kind="single")) is not None:
                    self.got.append(value)

        def build(app):
            self.sink = Looking(app, Batch(app, receiver_name="in", name="batch"), name="sink",
                                size=3)
            app.add_flow(Source(app, CountCondition(app, 6), values=range(6)), self.sink)

        run(build)
        self.assertEqual(self.sink.got, [0, 1, 2, 3, 4, 5])
        self.assertEqual(seen, [(3, 3, 0)] * 2)
        # asked once more after the last tick, as in Holoscan
        self.assertEqual((calls.count("ticked"), calls[-1]), (2, "check"))

    def test_functions_are_operators(self):
        got = []

        @create_op(outputs="number")
        def numbers(count):
            yield from range(count)

        @create_op(inputs="number", outputs=("half", "rest"))
        def split(number, *, by=2):
            return number // by, number % by

        @create_op(inputs=(Input("half", arg_map="a"), "rest"))
        def keep(a, rest):
            got.append((a, rest))

        def build(app):
            parts = split(app, name="split", by=3)
            app.add_flow(numbers(app, name="numbers", count=5), parts)
            app.add_flow(parts, keep(app, name="keep"), {("half", "half"), ("rest", "rest")})

        run(build)
        self.assertEqual(got, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)])
        self.assertEqual(Output("x").tensor_names, ())
        with self.assertRaisesRegex(ValueError, "'number', has not been specified"):
            run(lambda app: create_op(inputs=())(lambda number: number)(app))

    def test_what_is_absent_says_so(self):
        from holoscan.gxf import load_extensions
        with self.assertRaisesRegex(RuntimeError, "load_extensions of GXF is not supported by frag; "
                                    "write"):
            load_extensions(None, ["x.so"])


class Command(unittest.TestCase):
    PROGRAM = """
import sys
from holoscan.core import Application, Operator
from holoscan.conditions import CountCondition


class Show(Operator):
    def setup(self, spec):
        spec.param("word", "none")

    def compute(self, op_input, op_output, context):
        print(self.word, self.fragment.argv[1:])


class App(Application):
    def compose(self):
        self.add_operator(Show(self, CountCondition(self, 1), name="show", word=sys.argv[1]))


if __name__ == "__main__":
    App().run()
"""

    def test_a_program_runs_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "app.py")
            with open(path, "w") as file:
                file.write(self.PROGRAM)
            result = subprocess.run([sys.executable, "-m", "frag.holoscan", path, "hi", "--n=2"],
                                    capture_output=True, text=True, check=False)
        self.assertEqual(result.stdout, "hi ['hi', '--n=2']\n", result.stderr)

    def test_a_program_that_is_missing(self):
        result = subprocess.run([sys.executable, "-m", "frag.holoscan", "/no/app.py"],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("there is no file /no/app.py", result.stderr)


if __name__ == "__main__":
    unittest.main()
