# SPDX-License-Identifier: Apache-2.0
"""Values of each type at and beside its bounds, what lies where in structs and buffers, and
applications whose conditions, resources and flows answer and fail in each way. Prints all that
comes of it; tests/shared/test_python_recorded.c compares it with a recorded text.
"""

import ctypes
import dataclasses
import datetime
import itertools
import time
import typing

import frag
from frag import conditions, schedulers
from frag.testing import Harness
from frag.tracker import DataFlowMetric

from recorded import App, Point, filled, head, run, show, text_of
from test_dlpack import Given


class Index:
    def __index__(self):
        return 5


class Float:
    def __float__(self):
        return 1.5


class Liar:
    """Fails where it is asked for a number."""

    def __index__(self):
        raise ValueError("no index")

    def __float__(self):
        return "text"


KINDS = ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "complex64",
         "complex128", "string", "bytes", "i16[]", "u8[]", "f32{}", "bool[]", "string[]",
         "i8[]{}", "string{}", "complex64[]", Point, "python"]
BOUNDS = sorted({n + d for bits in (7, 8, 15, 16, 31, 32, 63, 64) for n in (2**bits, -(2**bits))
                 for d in (-1, 0)} | {0, 1, -1})
VALUES = BOUNDS + [
    2.5, -0.0, float("nan"), 1e39, -1e39, 1e-50, 3 - 4j, complex(1e39, 0), "x", "a\0b", b"x",
    bytearray(b"ab"), memoryview(b"abcd")[::2], None, True, False, Index(), Float(), Liar(),
    [1, 2], [1, 300], [1.5], [True], ["a"], ["a", 1], [None], [], {"a": 1}, {"a": [1, -128]},
    {"a": "b"}, {1: 2}, {}, (1, 2), Point(1.5, 2, True), {"x": 1.0, "n": 2, "is_on": False},
    {"x": 1.0},
]


def typed():
    head("values for ports with a type")
    for kind in KINDS:
        class Typed(frag.Operator):
            def setup(self, spec):
                spec.input("in", type=kind)
                spec.output("out", type=kind)

            def compute(self, op_input, op_output, context):
                op_output.emit(op_input.receive("in"))

        def through(value):
            h.feed(value)
            h.tick()
            return h.take("out", "nothing")

        print("-", getattr(kind, "__name__", kind))
        with Harness(Typed) as h:
            for value in VALUES:
                show("  " + text_of(value), through, value)


class Field(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("offset", ctypes.c_uint32),
                ("count", ctypes.c_uint32), ("size", ctypes.c_uint32)]


class Type(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("headline", ctypes.c_char_p), ("size", ctypes.c_size_t),
                ("align", ctypes.c_size_t), ("fields", ctypes.POINTER(Field)),
                ("field_count", ctypes.c_uint32), ("field_size", ctypes.c_uint32),
                ("encode", ctypes.c_void_p), ("decode", ctypes.c_void_p),
                ("fini", ctypes.c_void_p)]


def frag_type(name):
    find = ctypes.CDLL(frag._frag.__file__).frag_type_find
    find.restype, find.argtypes = ctypes.POINTER(Type), [ctypes.c_char_p]
    return find(name.encode()).contents


def layouts():
    head("where the fields of structs lie")
    scalars = ["bool", "i8", "u16", "i32", "i64", "f32", "f64", "complex64", "complex128"]
    hints = [typing.Annotated[object, kind] for kind in scalars] + [
        Point, typing.Annotated[list, "i16", 3], typing.Annotated[list, "recorded.Point", 2]]
    for number, pair in enumerate(itertools.product(hints, repeat=2)):
        made = dataclasses.make_dataclass(
            "Pair%d" % number, [("a", pair[0]), ("b", pair[1]), ("c", typing.Annotated[int, "i8"])])

        def laid_out():
            frag.struct(made, name=made.__name__)
            found = frag_type(made.__name__)
            return found.size, [(f.type.decode(), f.offset, f.count, f.size)
                                for f in found.fields[:found.field_count]]

        show("%s %s" % tuple(getattr(x, "__metadata__", x) for x in pair), laid_out)
    for cls, decoded in ((type("NoCodec", (), {}), False), (type("Codec", (), {}), True)):
        if decoded:
            frag.register_codec(cls, bytes, lambda data: None)

        class Port(frag.Operator):
            def setup(self, spec):
                spec.output("out", type=cls)

        with Harness(Port):
            found = frag_type(frag._types._objects[cls])
            print(cls.__name__, "size", found.size, "encodes", bool(found.encode), "decodes",
                  bool(found.decode), "ends", bool(found.fini))


class Buffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
                ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
                ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)), ("internal", ctypes.c_void_p)]


FLAGS = {"simple": 0, "writable": 1, "format": 4, "nd": 8, "nd and format": 12, "strides": 24,
         "strides, writable": 25, "C": 56, "F": 88, "any": 152, "indirect": 280, "full": 285}


def buffers():
    head("arrays by each flag of a buffer")
    api = ctypes.pythonapi
    api.PyObject_GetBuffer.argtypes = [ctypes.py_object, ctypes.POINTER(Buffer), ctypes.c_int]
    api.PyBuffer_Release.argtypes = [ctypes.POINTER(Buffer)]
    arrays = {"compact": Given(True), "of before 1.0": Given(False), "turned": Given(
        True, strides=(1, 2)), "every second": Given(True, shape=(2, 2), strides=(4, 2)),
        "repeated": Given(True, shape=(2, 3), strides=(0, 1)), "number": Given(True, shape=()),
        "empty": Given(True, shape=(0, 3)), "of one": Given(True, shape=(1, 1), strides=(9, 9)),
        "behind": Given(True, shape=(2,), offset=8), "lanes": Given(True, lanes=2, shape=(3,))}
    for name, array in arrays.items():
        tensor = frag.as_tensor(array)
        first = ctypes.addressof(array.memory)
        print("-", name, tensor.shape, tensor.strides, tensor.dtype, tensor.size, tensor.nbytes,
              tensor.itemsize, tensor.data - first)
        show("  interface", lambda: [v if k != "data" else (v[0] - first, v[1]) for k, v in sorted(
            tensor.__array_interface__.items())])
        for flag, number in FLAGS.items():
            def view():
                b = Buffer()
                api.PyObject_GetBuffer(tensor, b, number)
                seen = (b.buf - first, b.len, b.itemsize, b.readonly, b.ndim, b.format,
                        b.shape and b.shape[:b.ndim], b.strides and b.strides[:b.ndim])
                api.PyBuffer_Release(b)
                return seen

            show("  " + flag, view)
        print("  given back", array.given_back, end=" ")
        del tensor
        print(array.given_back)


@frag.operator
def scale(value: float, factor=2.0) -> float:
    return value * factor


def functions():
    head("functions as operators")

    def several(a, b, n=1):
        return a, n

    def by_name(a):
        return {"x": a, "y": None}

    def with_context(a, context):
        return context.count

    def many(first=2):
        yield first
        yield None
        yield first + 1

    def wrong(a) -> None:
        return 3

    def bad(*a):
        pass

    cases = {
        "scale": lambda: scale, "several": lambda: frag.operator(outputs=("x", "y"))(several),
        "by name": lambda: frag.operator(outputs={"x": {}, "y": {"type": int}})(by_name),
        "context": lambda: frag.operator(with_context), "generator": lambda: frag.operator(many),
        "wrong": lambda: frag.operator(wrong), "any arguments": lambda: frag.operator(bad),
        "an input that is none": lambda: frag.operator(inputs="z")(several),
        "optional": lambda: frag.operator(inputs={"a": {"optional": True}})(several),
    }
    for name, make in cases.items():
        def used():
            cls = make()
            with Harness(cls) as h:
                spec = h.operator.spec
                results = [cls.__name__, list(spec.inputs), list(spec.outputs), list(spec.params)]
                for _ in range(3):
                    for port in spec.inputs:
                        h.feed(2.5, port)
                    results.append((h.tick(), [h.take_all(o) for o in spec.outputs]))
                return results

        show(name, used)


class Tx(frag.Operator):
    def setup(self, spec):
        spec.output("out")
        spec.output("other")

    def compute(self, op_input, op_output, context):
        op_output.emit(context.count, "out")


class Rx(frag.Operator):
    def setup(self, spec):
        spec.input("in", size=frag.IOSpec.ANY_SIZE)
        self.got = []

    def compute(self, op_input, op_output, context):
        self.got.append(op_input.receive("in"))


def outcome(app):
    summary = app.run()
    return summary["result"], summary["exit_code"]


CALLS = []


def condition_class(**methods):
    class Own(frag.Condition):
        def setup(self, spec):
            spec.param("n", 2)

        def check(self, timestamp):
            CALLS.append("check")
            return frag.Ready.READY

        def on_execute(self, timestamp):
            CALLS.append("on_execute %s" % (timestamp >= 0))

        def update_state(self, timestamp):
            CALLS.append("update_state")

        def stop(self):
            CALLS.append("stop")

    for name, method in methods.items():
        setattr(Own, name, method)
    return Own


def raising(what):
    def method(*unused):
        raise what

    return method


def callbacks():
    head("conditions and resources that answer and fail in each way")
    answers = [0, 4, 5, -1, True, None, "x", 1, (1,), (1, "x"), (1, 2**70), (1, None),
               (0, "x"), (4, 0, 0), (4, None), ("x", 0), 2.0, [0], Index()]
    cases = {"answers %s" % text_of(a): {"check": lambda self, now, a=a: CALLS.append("check") or a}
             for a in answers}
    cases.update({"%s raises %r" % (name, what): {name: raising(what)}
                  for name in ("setup", "initialize", "start", "update_state", "check",
                               "on_execute", "stop")
                  for what in (ValueError("no luck"), frag.Error("own", -5), SystemExit(2))})
    cases["returns text"] = {name: lambda *unused: "text" for name in (
        "initialize", "start", "update_state", "on_execute", "stop")}
    cases["plain"] = {}
    for name, methods in cases.items():
        def used():
            CALLS.clear()
            app = App(compose, name="app")
            return outcome(app)

        def compose(app):
            app.scheduler(schedulers.GreedyScheduler(check_recession_period_ms=0.01))
            app.clock("synthetic")
            app.add_operator(Tx(app, condition_class(**methods)(app, name="own", n=3),
                                conditions.CountCondition(app, 2), name="tx"))

        show(name, used)
        print("   ", " ".join(CALLS[:12]))
    for name in ("setup", "initialize"):
        for what in (ValueError("no luck"), frag.Error("own", -12)):
            made = type("Made", (frag.Resource,), {name: raising(what)})
            show("resource: %s raises %r" % (name, what), lambda: outcome(App(
                lambda app: [made(app, name="r"), app.add_operator(
                    Tx(app, conditions.CountCondition(app, 1), name="tx"))], name="app")))
    show("a condition without check", lambda: type("Bare", (frag.Condition,), {})(App(None)))
    show("two of a name", lambda: [frag.Resource(a, "realtime", name="x")
                                   for a in [App(None)] * 2])
    show("two conditions", lambda: Tx(App(None), *[conditions.CountCondition(App(None))] * 2))
    show("no condition", lambda: Tx(App(None), 3))


def others():
    head("what operators see of each other")
    seen = []

    class Asks(frag.Operator):
        def setup(self, spec):
            spec.input("in")

        def start(self):
            seen.append(("start", self._context.operator_status("late"),
                         self._context.operator_status("tx")))

        def compute(self, op_input, op_output, context):
            op_input.receive("in")
            for name in (None, "tx", "late", "ended"):
                seen.append((name, context.operator_status(name), context.operator_ticks(name)))
            if context.count == 1:
                context.stop_operator("late")
            if context.count == 2:
                return frag.DONE

        def stop(self):
            seen.append(("stop", self._context.operator_status("late"),
                         self._context.operator_status("tx")))

    def compose(app):
        app.scheduler(frag.Scheduler("greedy"))
        app.clock("synthetic")
        tx = Tx(app, conditions.CountCondition(app, 3), name="tx")
        app.add_flow(tx, Asks(app, name="asks"), {("out", "in")})
        app.add_operator(Tx(app, conditions.PeriodicCondition(app, 1000), name="late"))
        app.add_operator(Tx(app, conditions.CountCondition(app, 0 + 1), name="ended"))

    show("run", lambda: outcome(App(compose, name="app")))
    for line in seen:
        print("   ", *line)


def flows():
    head("flows that are chosen")
    for chosen in ([0], [1], [2], [0, 1], [0, 0], [-1], [3], ["x"], [2**70], [None], []):
        seen = []

        class Router(Tx):
            def setup(self, spec):
                spec.output("out")

            def choose_flows(self, context):
                seen.append((context.count, context.flows()))
                for number in chosen:
                    context.take_flow(number)

        def compose(app):
            app.scheduler(frag.Scheduler("greedy"))
            tx = Router(app, conditions.CountCondition(app, 2), name="tx")
            for name in ("a", "b", "c"):
                made.append(Rx(app, name=name))
                app.add_flow(tx, made[-1])

        made = []
        show("takes %s" % chosen, lambda: outcome(App(compose, name="app")))
        print("   ", seen[:1], [rx.got for rx in made])


def pools():
    head("tensors of pools")

    class Makes(frag.Operator):
        def setup(self, spec):
            spec.param("pool", None, kind="resource")

        def compute(self, op_input, op_output, context):
            for options in ({}, {"dtype": "uint8"}, {"gpu": -1}, {"gpu": 99}, {"gpu": -2}):
                try:
                    got = frag.empty((3, 2), allocator=self.pool, **options)
                    print("   ", options, got.dtype, got.nbytes)
                except frag.Error:  # what it says depends on the machine
                    print("   ", options, "refused")

    def compose(app):
        pool = frag.Resource(app, "block_memory_pool", name="pool", storage_type=2, block_size=64,
                             num_blocks=2)
        app.add_operator(Makes(app, conditions.CountCondition(app, 1), name="op", pool=pool))

    show("run", lambda: outcome(App(compose, name="app")))


def trackers():
    head("trackers")
    made = []

    def compose(app):
        app.scheduler(frag.Scheduler("greedy"))
        rx = Rx(app, name="rx")
        app.add_flow(Tx(app, conditions.CountCondition(app, 30), name="tx"), rx, {("out", "in")})

    for options in ({}, {"num_start_messages_to_skip": 0, "num_last_messages_to_discard": 0},
                    {"latency_threshold": 10**6}, {"is_limited_tracking": True},
                    {"num_start_messages_to_skip": -1}, {"probes": ["none"]}):
        def used():
            app = App(compose, name="app")
            with frag.Tracker(app, **options) as tracker:
                outcome(app)
                made.append(tracker)
            return tracker.get_path_strings(), tracker.get_metric(), [
                show("  metric %d" % metric, lambda: type(tracker.get_metric("tx,rx", metric)))
                for metric in range(DataFlowMetric.NUM_DST_MESSAGES + 1)] and \
                tracker.get_metric("tx,rx", DataFlowMetric.NUM_DST_MESSAGES)

        show("%s" % options, used)
    show("none yet", frag.Tracker(App(None)).get_path_strings)
    tracker = made[0]
    for args in (("none", 0), ("tx,rx", 99), ("tx,rx", -1), ("tx,rx", "x"), (3, 0), ("tx,rx", None)):
        show("metric %s" % (args,), tracker.get_metric, *args)
    for verb in ("set_skip_starting_messages", "set_discard_last_messages", "set_skip_latencies"):
        for number in (0, 3, -1, 2**63 - 1, 2**64 - 1, 2**64, "x", None, 2.5):
            show("%s %r" % (verb, number), getattr(tracker, verb), number)
    for number in (0, 1, -1, 2**40, "x"):
        show("path %r" % number, tracker._now.path, number)
        show("source %r" % number, tracker._now.source, number)


GRAPH = """frag: 1
application: app
operators:
  tx: {type: ping_tensor_tx, parameters: {rows: 3}, conditions: [{type: count, count: 2}]}
  rx: {type: ping_tensor_rx}
flows: [tx -> rx]
"""


def is_started(future):
    try:
        future.set("app.op.level=1")
        return True
    except frag.Error:
        return False


def runs():
    head("runs")
    show("a graph", lambda: frag.run(GRAPH)["result"])
    for options in ({"sets": ["app.tx.rows=4"]}, {"sets": ["app.tx.rows=x"]},
                    {"sets": ["none"]}, {"sets": [3]}, {"sets": "x"}, {"args": ["a=b"]},
                    {"args": [3]}, {"configs": ["/none.yaml"]}, {"library_path": "/none"},
                    {"library_path": 3}):
        show("%s" % options, lambda: frag.run(GRAPH, **options)["result"])
    for graph in ("/none/of/these.yaml", "a\n", "frag: 1\n", GRAPH.replace("tensor_rx", "tensor_rxx"),
                  GRAPH.replace("tx -> rx", "tx -> xr"), "a\0b\n"):
        show("%r" % graph[:20], lambda: frag.run(graph)["result"])

    class Waits(frag.Operator):
        def setup(self, spec):
            spec.param("level", 1, dynamic=True, min=0, max=9)

        def compute(self, op_input, op_output, context):
            self.seen = self.level
            if self.level == 7:
                return frag.DONE

    def compose(app):
        made.append(Waits(app, conditions.PeriodicCondition(app, "1ms"), name="op"))
        app.add_operator(made[-1])

    made = []
    future = App(compose, name="app").run_async()
    while not is_started(future):
        time.sleep(1e-3)
    show("done", future.done)
    show("timeout", future.result, 0)
    for text in ("app.op.level=10", "app.op.level=x", "app.op.none=1", "app.no.level=1", "x", "",
                 3, None, "app.op.level=7"):
        show("set %r" % text, future.set, text)
    show("result", lambda: future.result()["result"])
    show("again", lambda: future.result(0)["result"])
    show("seen", lambda: made[0].seen)
    show("done", future.done)
    show("set at the end", future.set, "app.op.level=1")
    show("stop at the end", future.stop)


def small():
    head("schedulers, clocks and conditions")
    for cls in (schedulers.GreedyScheduler, schedulers.EventBasedScheduler,
                schedulers.MultiThreadScheduler):
        for options in ({}, {"max_duration_ms": 5}, {"worker_thread_number": 2}, {"none": 1}):
            show("%s %s" % (cls.__name__, options), lambda: cls(None, **options).declaration())
    app = App(None, name="app")
    for cls, options in (
            (conditions.CountCondition, ({}, {"count": 3}, {"count": "x"}, {"none": 1})),
            (conditions.PeriodicCondition, (
                {}, {"recess_period": 5}, {"recess_period": datetime.timedelta(seconds=1.5)},
                {"recess_period": "10ms", "policy": "none"}, {"recess_period": -1})),
            (conditions.BooleanCondition, ({}, {"enable_tick": False}, {"name": "own"})),
            (conditions.AsynchronousCondition, ({}, {"name": ""})),
            (conditions.MessageAvailableCondition, ({}, {"receiver": "in", "min_size": 2})),
            (conditions.DownstreamMessageAffordableCondition, (
                {}, {"transmitter": "out", "min_size": 2}))):
        for option in options:
            show("%s %s" % (cls.__name__, option), lambda: cls(app, **option).declaration())
    for call in ("enable_tick", "disable_tick"):
        show(call, getattr(conditions.BooleanCondition(app), call))
    show("event_state", lambda: conditions.AsynchronousCondition(app).event_state)
    clock = frag.Clock(None)
    show("a clock without an operator", clock.time)
    for name in ("a b", "9x", "", "\u00fc", "x" * 70):
        cls = type(name or "x", (frag.Application,), {})
        show("called %s" % name[:12], lambda: cls().name)
    show("no compose", lambda: frag.Application([]).to_yaml())
    show("none", lambda: frag.none)
    for value in (filled(), Point()):
        show("repr", repr, value)


if __name__ == "__main__":
    run(typed, layouts, buffers, functions, callbacks, others, flows, pools, trackers, runs, small)
