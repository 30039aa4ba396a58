# SPDX-License-Identifier: Apache-2.0
"""Applications in Python: their life, their failures, and what they share with operators in C."""

import cProfile
import errno
import gc
import os
import sys
import threading
import time
import unittest

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

FOLDER = os.path.dirname(os.path.abspath(__file__))
GRAPH = """frag: 1
application: app
extensions: [%s]
operators:
  tx: {type: "python:operators.Source", parameters: {first: 3, names: [x, y], more: {k: [1, two]}},
       conditions: [{type: count, count: 4}]}
  fwd: {type: forward}
  rx: {type: "python:operators.Sink"}
flows: [tx -> fwd, fwd -> rx]
"""


class App(frag.Application):
    """An application whose compose is given."""

    def __init__(self, compose, **options):
        super().__init__(**options)
        self.make = compose

    def compose(self):
        self.make(self)


def chain(*operators):
    def compose(app):
        for a, b in zip(operators, operators[1:]):
            app.add_flow(a, b)
        if len(operators) == 1:
            app.add_operator(operators[0])

    return compose


class Recorder(frag.Operator):
    """Its methods in the order of their calls."""

    def setup(self, spec):
        self.calls = ["setup"]
        spec.output("out", type=float)
        spec.param("gain", 2.0)

    def initialize(self):
        self.calls.append("initialize %g" % self.gain)

    def start(self):
        self.calls.append("start")

    def compute(self, op_input, op_output, context):
        self.calls.append("compute %d" % context.count)
        op_output.emit(1, "out")  # a whole number becomes what the port declares
        return frag.DONE if context.count == 1 else None

    def stop(self):
        self.calls.append("stop")


class Life(unittest.TestCase):
    def setUp(self):
        operators.Sink.got = []
        operators.Source.values = None

    def test_the_order_of_calls_and_what_reaches_c(self):
        app = App(
            lambda app: chain(
                app.add_operator(tx) or tx,
                frag.NativeOperator(app, "forward"),
                operators.Sink(app),
            )(app)
        )
        tx = Recorder(app, name="tx", gain=3.0)
        summary = app.run()
        self.assertEqual(
            tx.calls, ["setup", "initialize 3", "start", "compute 0", "compute 1", "stop"]
        )
        self.assertEqual(operators.Sink.got, [1.0, 1.0])
        self.assertIsInstance(operators.Sink.got[0], float)
        self.assertEqual((summary["result"], summary["exit_code"]), ("done", 0))
        types = {op["name"]: op["type"] for op in summary["fragments"][0]["operators"]}
        self.assertEqual(types["tx"], "python:test_application.Recorder")

    def test_an_application_runs_again(self):
        app = App(
            lambda app: chain(
                operators.Source(app, CountCondition(app, 2), name="tx", first=5),
                operators.Sink(app),
            )(app)
        )
        app.run()
        app.run()
        self.assertEqual(operators.Sink.got, [5, 6, 5, 6])

    def test_fragments_in_one_process(self):
        class One(frag.Fragment):
            def compose(self):
                self.add_operator(operators.Source(self, CountCondition(self, 3), name="tx"))
                self.scheduler(GreedyScheduler(self))

        class Two(frag.Fragment):
            def compose(self):
                self.add_operator(operators.Sink(self, name="rx"))
                self.scheduler(EventBasedScheduler(self, worker_thread_number=2))

        app = App(lambda app: app.add_flow(One(app), Two(app), {("tx.out", "rx.in")}))
        summary = app.run()
        self.assertEqual(operators.Sink.got, [0, 1, 2])
        self.assertEqual([f["name"] for f in summary["fragments"]], ["One", "Two"])

    def test_several_receivers_and_names(self):
        class Multi(frag.Operator):
            def setup(self, spec):
                spec.input("receivers", size=frag.IOSpec.ANY_SIZE)

            def compute(self, op_input, op_output, context):
                got.append(op_input.receive("receivers"))

        got = []

        def compose(app):
            rx = Multi(app, name="rx")
            for first in (10, 20):
                app.add_flow(
                    operators.Source(
                        app, CountCondition(app, 2), name="tx%d" % first, first=first
                    ),
                    rx,
                    {("out", "receivers")},
                )

        App(compose).run()
        self.assertEqual(got, [(10, 20), (11, 21)])

    def test_conditions(self):
        class Ticker(frag.Operator):
            def compute(self, op_input, op_output, context):
                ticks.append(context.time_ns)
                if len(ticks) == 3:
                    self.conditions["go"].disable_tick()

        ticks = []
        App(
            lambda app: app.add_operator(
                Ticker(app, BooleanCondition(app, name="go"), PeriodicCondition(app, "2ms"))
            )
        ).run()
        self.assertEqual(len(ticks), 3)
        self.assertGreater(ticks[2] - ticks[0], 3e6)
        with self.assertRaisesRegex(RuntimeError, "does not run"):
            BooleanCondition(frag.Fragment(), name="other").enable_tick()

    def test_an_event_from_another_thread(self):
        class Waiting(frag.Operator):
            def compute(self, op_input, op_output, context):
                event = self.conditions["event"]
                if context.count == 1:
                    return frag.DONE
                event.event_state = AsynchronousEventState.EVENT_WAITING
                threading.Thread(target=self.signal, args=(event,)).start()

            def signal(self, event):
                event.event_state = AsynchronousEventState.EVENT_DONE

        app = App(
            lambda app: app.add_operator(Waiting(app, AsynchronousCondition(app, name="event")))
        )
        self.assertEqual(app.run()["fragments"][0]["operators"][0]["ticks"], 2)

    def started(self, app):
        """Starts it and waits until something has arrived, and parameters can be changed."""
        future = app.run_async()
        self.addCleanup(lambda: future.stop() or future.result())
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                future.set("App.tx.step=1")
                if operators.Sink.got:
                    return future
            except frag.Error as error:
                self.assertEqual(error.code, -errno.EAGAIN)
            time.sleep(0.001)
        return future

    def test_stop_and_async(self):
        app = App(lambda app: chain(operators.Source(app, name="tx"), operators.Sink(app))(app))
        future = self.started(app)
        self.assertFalse(future.done())
        with self.assertRaises(TimeoutError):
            future.result(timeout=0.02)
        with self.assertRaisesRegex(frag.Error, "another application runs"):
            App(lambda app: app.add_operator(operators.Source(app))).run()
        future.set("App.tx.step=4")
        with self.assertRaisesRegex(frag.Error, "10"):
            future.set("App.tx.step=40")
        future.stop()
        summary = future.result()
        self.assertEqual(summary["result"], "stopped")
        self.assertIs(future.result(), summary)
        self.assertEqual(len(operators.Sink.got), summary["flows"][0]["delivered"])
        with self.assertRaisesRegex(frag.Error, "has ended"):
            future.set("App.tx.step=4")

    def test_a_parameter_changes_while_it_runs(self):
        class Seen(operators.Source):
            def compute(self, op_input, op_output, context):
                operators.Sink.got.append(self.step)
                if self.step != 1.0:
                    context.stop()

        def compose(app):
            app.add_operator(Seen(app, PeriodicCondition(app, "1ms"), name="tx"))

        future = self.started(App(compose))
        future.set("App.tx.step=2.5")
        self.assertEqual(future.result(timeout=20)["result"], "done")
        self.assertEqual((operators.Sink.got[0], operators.Sink.got[-1]), (1.0, 2.5))

    def test_metadata(self):
        class Marks(operators.Source):
            def compute(self, op_input, op_output, context):
                self.metadata["n"] = context.count
                self.metadata.set("list", [1.5])
                super().compute(op_input, op_output, context)

        class Reads(operators.Sink):
            def compute(self, op_input, op_output, context):
                self.assert_empty = not self.metadata
                super().compute(op_input, op_output, context)
                read.append(
                    (
                        dict(self.metadata),
                        "n" in self.metadata,
                        self.metadata.get("no", 7),
                        self.metadata.erase("n"),
                        self.metadata.erase("n"),
                        len(self.metadata),
                    )
                )
                kept.append(self.metadata)

        read, kept = [], []
        App(
            lambda app: chain(
                Marks(app, CountCondition(app, 2), name="tx"),
                frag.NativeOperator(app, "forward"),
                Reads(app, name="rx"),
            )(app)
        ).run()
        self.assertEqual(read[1], ({"n": 1, "list": [1.5]}, True, 7, True, False, 1))
        with self.assertRaisesRegex(RuntimeError, "in compute only"):
            dict(kept[0])

    def test_a_key_that_is_there_already(self):
        class Twice(frag.Operator):
            def compute(self, op_input, op_output, context):
                self.metadata["k"] = 1
                for value in (2, kept):
                    try:
                        self.metadata["k"] = value
                    except KeyError as error:
                        seen.append(str(error))
                try:
                    del self.metadata["none"]
                except KeyError as error:
                    seen.append(error.args)
                return frag.DONE

        class Kept:
            """No value of frag: a reference to it is held."""

        seen, kept = [], Kept()
        held = sys.getrefcount(kept)
        App(lambda app: app.add_operator(Twice(app))).run()
        self.assertIn("raise", seen[0])
        self.assertIn("raise", seen[1])
        self.assertEqual(seen[2], ("none",))
        self.assertEqual(sys.getrefcount(kept), held, "what was refused is not held")


class Graphs(unittest.TestCase):
    """Graphs in YAML that name modules in Python."""

    def setUp(self):
        operators.Sink.got = []
        operators.Source.values = None
        self.graph = GRAPH % os.path.join(FOLDER, "operators.py")

    def test_a_graph(self):
        summary = frag.run(self.graph, sets=["app.tx.first=8"])
        self.assertEqual(operators.Sink.got, [8, 9, 10, 11])
        self.assertEqual(summary["flows"][0]["delivered"], 4)
        self.assertEqual(frag.run(self.graph)["result"], "done")
        self.assertEqual(operators.Sink.got[4:], [3, 4, 5, 6])

    def refused(self, graph, *sentences, sets=()):
        with self.assertRaises(frag.Error) as raised:
            frag.run(graph, sets=sets)
        for sentence in sentences:
            self.assertIn(sentence, str(raised.exception))
        self.assertEqual(operators.Sink.got, [])
        return raised.exception

    def test_what_is_refused(self):
        self.refused(self.graph, "10", sets=["app.tx.step=11"])
        self.refused(
            self.graph,
            "--set none: not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE",
            sets=["none"],
        )
        self.refused(
            self.graph.replace("first: 3", "furst: 3"), 'unknown parameter "furst"', '"first"'
        )
        self.refused(self.graph.replace("first: 3", "first: x"), "first")
        self.refused(self.graph.replace("Sink", "Sunk"), "python:operators.Sink")
        self.refused(
            self.graph.replace("operators.py", "nowhere.py"), "nowhere.py", "cannot be found"
        )

    def test_a_module_that_fails(self):
        import tempfile

        for name, text, sentence in (
            ("broken", "x = (", "SyntaxError"),
            ("raising", "1 / 0", "ZeroDivisionError"),
            ("leaving", "raise SystemExit(4)", "sys.exit(4)"),
            ("json", "", "json is loaded already"),
            (
                "wrong",
                "import frag\nclass A(frag.Operator):\n def setup(self, spec):\n"
                "  spec.input('in', policy='drop')",
                "'drop' is no policy",
            ),
        ):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, name + ".py")
                with open(path, "w") as file:
                    file.write(text)
                self.refused(
                    self.graph.replace(os.path.join(FOLDER, "operators.py"), path),
                    name + ".py",
                    sentence,
                )
                self.assertTrue(name == "json" or name not in sys.modules or name == "wrong")

    def test_parameters_of_every_kind(self):
        class Kinds(frag.Operator):
            def setup(self, spec):
                for name, default in (
                    ("b", True),
                    ("i", -4),
                    ("f", 0.5),
                    ("s", "text"),
                    ("li", [1, 2]),
                    ("lf", [1.5]),
                    ("ls", ["x"]),
                    ("tree", {"a": [1, None, "b"]}),
                    ("none", None),
                ):
                    spec.param(name, default)
                spec.param("size", 4096, kind="size")
                spec.param("time", 1000, kind="duration")

            def start(self):
                seen.append({k: getattr(self, k) for k in self.spec.params})

            def compute(self, op_input, op_output, context):
                return frag.DONE

        seen = []
        given = {
            "b": False,
            "i": 7,
            "f": 2,
            "s": "a: b",
            "li": [],
            "lf": [1, 2.5],
            "ls": ["1", "y"],
            "tree": {"z": {"y": 1.5}},
            "none": [1],
            "size": "2Mi",
            "time": "3ms",
        }
        App(lambda app: app.add_operator(Kinds(app))).run()
        App(lambda app: app.add_operator(Kinds(app, **given))).run()
        self.assertEqual(
            seen[0],
            {
                "b": True,
                "i": -4,
                "f": 0.5,
                "s": "text",
                "li": [1, 2],
                "lf": [1.5],
                "ls": ["x"],
                "tree": {"a": [1, None, "b"]},
                "none": None,
                "size": 4096,
                "time": 1000,
            },
        )
        self.assertEqual(seen[1], {**given, "size": 2 << 20, "time": 3000000})
        self.assertIsInstance(seen[1]["f"], float)

    def test_a_required_parameter_and_an_object(self):
        class Required(frag.Operator):
            def setup(self, spec):
                spec.param("must")
                spec.param("thing", None)

            def compute(self, op_input, op_output, context):
                seen.append((self.must, self.thing))
                return frag.DONE

        seen, thing = [], object()
        App(lambda app: app.add_operator(Required(app, must="x", thing=thing))).run()
        self.assertEqual(seen, [("x", thing)])
        with self.assertRaisesRegex(frag.Error, '"?must"?'):
            App(lambda app: app.add_operator(Required(app))).run()


class Failures(unittest.TestCase):
    def fails(self, app, sentence, cause=None):
        with self.assertRaisesRegex(frag.Error, sentence) as raised:
            app.run()
        if cause is not None:
            self.assertIsInstance(raised.exception.__cause__, cause)
        return raised.exception

    def test_exceptions_of_each_callback(self):
        for where in ("initialize", "start", "compute", "stop"):
            with self.subTest(where):
                app = App(
                    lambda app: app.add_operator(operators.Raising(app, name="bad", where=where))
                )
                error = self.fails(
                    app,
                    "%s raised ValueError: no . luck .*operators.py:.* in fail" % where,
                    ValueError,
                )
                self.assertIn("bad", error.operator or str(error))
        self.fails(
            App(lambda app: app.add_operator(operators.Raising(app, what="exit"))),
            r"sys.exit\(3\)",
            SystemExit,
        )
        self.fails(
            App(lambda app: app.add_operator(operators.Raising(app, what="recursion"))),
            "RecursionError",
            RecursionError,
        )
        # After all that an application runs as ever.
        self.assertEqual(
            App(lambda app: app.add_operator(operators.Raising(app, where="none"))).run()[
                "result"
            ],
            "done",
        )

    def test_garbage(self):
        class Garbage(frag.Operator):
            def setup(self, spec):
                spec.output("out", type="i64")

            def compute(self, op_input, op_output, context):
                return what(op_output)

        for what, sentence in (
            (lambda out: "text", "returned a value of <class 'str'>"),
            (lambda out: True, "<class 'bool'>"),
            (lambda out: 0, "<class 'int'>"),
            (lambda out: out.emit("x", "out"), "cannot become i64"),
            (lambda out: out.emit(2**63, "out"), "OverflowError"),
            (lambda out: out.emit(1, "in"), 'has no output "in"'),
            (lambda out: out.emit(), "emit takes"),
            (lambda out: out.emit(1, nome="out"), "emit takes"),
            (lambda out: out.emit(1, 2), 'has no output|TypeError'),
        ):
            with self.subTest(sentence):
                self.fails(App(lambda app: app.add_operator(Garbage(app))), sentence)

    def test_threads_and_what_comes_too_late(self):
        class Leaking(operators.Source):
            def compute(self, op_input, op_output, context):
                kept.append((op_output, context))
                thread = threading.Thread(target=self.elsewhere, args=(op_output,))
                thread.start()
                thread.join()
                return frag.DONE

            def elsewhere(self, op_output):
                try:
                    op_output.emit(1, "out")
                except RuntimeError as error:
                    seen.append(str(error))

        kept, seen = [], []
        App(lambda app: app.add_operator(Leaking(app))).run()
        self.assertIn("another thread", seen[0])
        for use in (
            lambda: kept[0][0].emit(1, "out"),
            lambda: kept[0][1].count,
            lambda: kept[0][1].stop(),
        ):
            with self.assertRaisesRegex(RuntimeError, "in compute only|has ended"):
                use()

    def test_what_cannot_be_composed(self):
        app = App(
            lambda app: app.add_operator(operators.Source(app))
            or app.add_operator(operators.Source(app))
        )
        with self.assertRaisesRegex(ValueError, "two operators called source"):
            app.run()
        with self.assertRaisesRegex(TypeError, "neither a condition nor a resource"):
            operators.Source(app, 3)
        with self.assertRaises(NotImplementedError):
            frag.Application().run()
        with self.assertRaisesRegex(TypeError, "no scheduler"):
            app.scheduler("greedy")
        self.fails(
            App(lambda app: app.add_operator(frag.NativeOperator(app, "no_such"))), "no_such"
        )


class Stubborn:
    """A run of which no call returns until it was stopped ten times."""

    def __init__(self):
        self.calls = []

    def stop(self):
        self.calls.append("stop")
        if len(self.calls) <= 10:
            raise RecursionError

    def wait(self, timeout_ns):
        return True

    def close(self):
        self.calls.append("close")


class Ends(unittest.TestCase):
    def test_what_raises_without_end_is_closed(self):
        """In order, at once, and then it is destroyed."""
        run = Stubborn()
        frag._run._give_up(run, None)
        self.assertEqual(run.calls, ["stop", "stop", "close"])


class References(unittest.TestCase):
    def test_nothing_grows(self):
        """What a tick takes it gives back: objects, messages and the operators themselves."""
        marker = object()
        operators.Source.values = [marker, [1, 2], {"a": 1.5}, "text"] * 500
        counts, nones = [], []
        for _ in range(3):
            operators.Sink.got = []
            App(
                lambda app: chain(
                    operators.Source(app, CountCondition(app, 2000), name="tx"),
                    frag.NativeOperator(app, "forward"),
                    operators.Sink(app),
                )(app)
            ).run()
            self.assertEqual(len(operators.Sink.got), 2000)
            operators.Sink.got = []
            gc.collect()
            counts.append((sys.getrefcount(marker), sys.getrefcount(operators.Source)))
            nones.append(sys.getrefcount(None))
        operators.Source.values = None
        self.assertEqual(counts[1], counts[2])
        self.assertLess(abs(nones[1] - nones[2]), 1000)


class Tracing(unittest.TestCase):
    """What traces or profiles the thread that runs an application sees operators, too."""

    def called(self, begin, end):
        seen = []
        begin(lambda frame, event, arg: event == "call" and seen.append(frame.f_code.co_qualname))
        try:
            App(lambda app: chain(operators.Source(app, CountCondition(app, 2), name="tx"),
                                  operators.Sink(app))(app)).run()
        finally:
            end(None)
        return [name for name in seen if name in ("Source.compute", "Sink.compute")]

    def test_tracers_and_profilers(self):
        for kind in (sys.settrace, sys.setprofile):
            self.assertEqual(sorted(self.called(kind, kind)),
                             2 * ["Sink.compute"] + 2 * ["Source.compute"])
        self.assertEqual(self.called(lambda function: None, lambda function: None), [])
        profile = cProfile.Profile()
        profile.runcall(self.called, lambda function: None, lambda function: None)
        counts = {entry.code.co_qualname: entry.callcount for entry in profile.getstats()
                  if not isinstance(entry.code, str)}
        self.assertEqual((counts["Source.compute"], counts["Sink.compute"]), (2, 2))

if __name__ == "__main__":
    unittest.main()
