# SPDX-License-Identifier: Apache-2.0
"""Lets each call of CPython and libfrag that the extension makes fail once, in each of its uses,
and prints what comes of it, and what was not given back.

usage: failing.py EXTENSION; tests/shared/test_python_recorded.c compares it with a recorded text.
"""

import array
import ctypes
import dataclasses
import gc
import importlib.machinery
import importlib.util
import json
import re
import sys

calls = ctypes.PyDLL(sys.argv[1])
calls.failing_end.restype = ctypes.c_char_p
loader = importlib.machinery.ExtensionFileLoader("frag._frag", sys.argv[1])
spec = importlib.util.spec_from_loader("frag._frag", loader)
sys.modules["frag._frag"] = importlib.util.module_from_spec(spec)
loader.exec_module(sys.modules["frag._frag"])

import frag  # noqa: E402
from frag import _frag, conditions  # noqa: E402
from frag.testing import Harness  # noqa: E402


def plain(text):
    """Without addresses and the numbers of lines."""
    return re.sub(r"\.py:\d+", ".py", re.sub(r"0x[0-9a-f]+", "0x", text)).replace("\n", " / ")


def outcome(use):
    try:
        return plain("-> %r" % (use(),))
    except BaseException as e:
        return plain("raises %s: %s" % (type(e).__name__, e))


def silent(*unused):
    pass


sys.excepthook = sys.unraisablehook = silent


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]


libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Mallinfo2


def kept():
    """What is allocated: blocks of Python's, of the extension, and bytes of all."""
    while gc.collect() > 0:
        pass
    sys._clear_type_cache()
    return (sys.getallocatedblocks(), calls.failing_kept(), libc.mallinfo2().uordblks)


def once(use, place=b"", nth=0):
    """Returns what came of it, and the places that were called."""
    with use() as run:
        calls.failing_begin(place, nth)
        text = outcome(run)
        places = calls.failing_end().decode()
    return text, places


def grows(use, place, nth, is_slow=False):
    """Whether each run leaves something behind. Slow ones have threads, whose memory comes late."""
    for runs in (2, 16, 64, 64):  # something may be made once
        before = kept()
        for _ in range(runs):
            once(use, place, nth)
        blocks, own, size = (now - b for now, b in zip(kept(), before))
        if blocks < runs and own < runs and (is_slow or size < runs * 32):
            return False
    return True


seen = {}


def fail_each(name, use, is_kept=False, is_slow=False):
    """is_kept: each run makes something that stays until the process ends. is_slow: what was tried
    in other uses is left out."""
    once(use)
    good, places = once(use)
    print("== %s %s" % (name, good))
    if not is_kept and grows(use, b"", 0, is_slow):
        print("  memory was not given back")
    for line in places.splitlines():
        count, place = line.split(" ", 1)
        if is_slow and place in seen:
            continue
        for nth in sorted({1, int(count)}):
            text = once(use, place.encode(), nth)[0]
            which = "%s%s" % (place, "" if nth == 1 else ", call %d" % nth)
            text = "as if it had not failed" if text == good else text
            if seen.get(place) != text:
                print("  %s: %s" % (which, text))
            seen[place] = text
            if not is_kept and grows(use, place.encode(), nth, is_slow):
                print("  %s: memory was not given back" % which)
    again = once(use)[0]
    if again != good:
        print("  then", again)
    sys.stdout.flush()


class Now:
    """A use that needs nothing before."""

    def __init__(self, run):
        self.run = run

    def __enter__(self):
        return self.run

    def __exit__(self, *unused):
        pass


class Inside:
    """A use with the harness of an operator that is made before."""

    def __init__(self, cls, run, *args, **params):
        self.cls, self.run, self.args, self.params = cls, run, args, params

    def __enter__(self):
        self.harness = Harness(self.cls, *self.args, **self.params)
        return lambda: self.run(self.harness)

    def __exit__(self, *unused):
        self.harness.close()


@frag.struct
@dataclasses.dataclass
class Point:
    x: float = 0.0
    n: int = 0


class Any:
    """Travels as a reference, and with its codec."""

    def __init__(self, text="any"):
        self.text = text

    def __repr__(self):
        return "Any(%r)" % self.text


class Coded(Any):
    pass


frag.register_codec(Coded, lambda value: value.text.encode(), lambda data: Coded(data.decode()))


def filled():
    tensor = frag.empty((2, 3), "int32")
    memoryview(tensor).cast("B").cast("i")[:] = array.array("i", [1, 2, 3, 4, 5, 6])
    return tensor


class Exporter:
    """An array of another library, without DLPack's table."""

    def __init__(self):
        self.tensor = filled()

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Old(Exporter):
    """Of before DLPack 1.0."""

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__()


class Echo(frag.Operator):
    def setup(self, spec):
        spec.input("in")
        spec.output("out")

    def compute(self, op_input, op_output, context):
        op_output.emit(op_input.receive("in"), "out")


def echo(value):
    def run(harness):
        harness.feed(value() if callable(value) else value)
        harness.tick()
        return harness.take("out", "nothing")

    return lambda: Inside(Echo, run)


def typed(kind, value):
    class Typed(frag.Operator):
        def setup(self, spec):
            spec.input("in", type=kind)
            spec.output("out", type=kind)

        def compute(self, op_input, op_output, context):
            op_output.emit(op_input.receive("in"), "out")

    def run(harness):
        harness.feed(value)
        harness.tick()
        return harness.take("out", "nothing")

    return lambda: Inside(Typed, run)


def inside(body, **params):
    """Runs the body in a tick."""
    class Body(frag.Operator):
        def setup(self, spec):
            spec.input("in", optional=True)
            spec.output("out")

        def compute(self, op_input, op_output, context):
            self.result = body(self, context)

    def run(harness):
        harness.tick()
        return harness.operator.result

    return lambda: Inside(Body, run)


class All(frag.Operator):
    """Has parameters of all kinds."""

    def setup(self, spec):
        spec.input("in", optional=True)
        spec.output("out")
        for kind, value in (("bool", True), ("int", 3), ("float", 2.5), ("str", "text"),
                            ("size", 4), ("duration", 5), ("path", "here"), ("int_list", [1, 2]),
                            ("float_list", [1.5]), ("str_list", ["a", "b"])):
            spec.param(kind, value, "Headline of " + kind, kind=kind)
        spec.param("choice", "a", choices=["a", "b"])
        spec.param("changing", 1, dynamic=True)
        spec.param("tree", None, kind="tree")

    def compute(self, op_input, op_output, context):
        pass


def life():
    with Harness(All, tree={"a": [1, "x", 2.5, None, True], "b": {"c": "d"}}) as h:
        h.tick()
        return h.operator.tree, h.operator.str_list, h.operator.changing


def metadata(operator, context):
    m = operator.metadata
    m["int"], m["text"], m["list"], m["tensor"] = 1, "2", [1, 2], filled()
    m["any"] = Any()
    values = [m["int"], m["text"], m["list"], m["any"].text, m["tensor"].shape]
    del m["int"]
    return values, sorted(m)


def surroundings(operator, context):
    clock = operator.clock
    clock.advance_by(5)
    clock.advance_to(clock.timestamp() + 7)
    clock.sleep_for(0)
    clock.sleep_until(0)
    return (context.operator_status(), context.operator_ticks(), context.argument("none"),
            context.count, context.time_ns, context.stream, context.flows(),
            operator.resource("none"), operator.condition("none"), clock.timestamp(),
            len(context.describe()) > 20)


def exchange():
    tensor = filled()
    view = memoryview(tensor)
    interface = tensor.__array_interface__
    return (view.shape, view.strides, interface["shape"], tensor.strides, tensor.size,
            tensor.__dlpack_device__(), tensor.dtype, tensor.data == interface["data"][0])


class Raising(frag.Operator):
    def setup(self, spec):
        spec.output("out")

    def compute(self, op_input, op_output, context):
        raise ValueError("no luck")


def raising():
    with Harness(Raising) as h:
        h.tick()


class App(frag.Application):
    def __init__(self, make):
        super().__init__([], name="app")
        self.make = make
        self.scheduler(frag.Scheduler("greedy"))

    def compose(self):
        self.make(self)


class Turns(frag.Condition):
    """Allows so many ticks."""

    def setup(self, spec):
        spec.param("limit", 2)
        self.done = 0

    def update_state(self, timestamp):
        pass

    def check(self, timestamp):
        if self.done == self.limit:
            return frag.Ready.NEVER
        return (frag.Ready.READY, 0) if self.done else frag.Ready.READY

    def on_execute(self, timestamp):
        self.done += 1


class Table(frag.Resource):
    def setup(self, spec):
        spec.param("size", 2)

    def initialize(self):
        self.items = [0] * self.size


class Tx(frag.Operator):
    def setup(self, spec):
        spec.output("out")
        spec.param("table", None, kind="resource")
        spec.param("turns", None, kind="condition")

    def initialize(self):
        self.mine = self.create_variable("mine")

    def choose_flows(self, context):
        if context.flows():
            context.take_flow(len(context.flows()) - 1)

    def compute(self, op_input, op_output, context):
        self.mine.set("x%d" % context.count)
        self.read = bytes(self.mine.get()), self.mine.wait(), self.variable_path("none")
        self.table.items[context.count] += 1
        op_output.emit(context.count)

    def save(self):
        return b"saved"

    def restore(self, state):
        pass


class Rx(frag.Operator):
    def setup(self, spec):
        spec.input("in", size=frag.IOSpec.ANY_SIZE)
        self.got = []

    def compute(self, op_input, op_output, context):
        self.got.append(op_input.receive("in"))


def application():
    def make(app):
        table, turns = Table(app, name="table", size=3), Turns(app, limit=2)
        made.append(Tx(app, turns, name="tx", table=table, turns=turns))
        made.append(Rx(app, name="rx"))
        app.add_flow(made[0], made[1])

    made = []
    app = App(make)
    with frag.Tracker(app) as tracker:
        summary = app.run()
        paths = tracker.get_path_strings(), tracker.get_metric(), tracker.get_metric(
            "tx,rx", frag.DataFlowMetric.NUM_DST_MESSAGES)
    return summary["result"], made[0].read, made[0].table.items, made[1].got, paths


def logged():
    app = App(lambda app: app.add_operator(
        All(app, conditions.CountCondition(app, 2), name="all")))
    with frag.Tracker(app, filename="/dev/null", num_start_messages_to_skip=0) as tracker:
        app.run()
        tracker.end_logging()
        return tracker.get_num_paths()


def later():
    future = App(lambda app: app.add_operator(
        All(app, conditions.CountCondition(app, 2), name="all", tree=[1, {"a": "b"}]))).run_async()
    return future.result()["result"], future.done()


def registered():
    @frag.struct
    @dataclasses.dataclass
    class Made:
        x: float
        p: Point

    return Made(1.0, Point()).x


def values():
    for name, value in (
            ("int", -5), ("large int", 2**80), ("float", 2.5), ("bool", True), ("text", "text"),
            ("bytes", b"by\0tes"), ("bytearray", bytearray(b"ab")), ("complex", 3 - 4j),
            ("None", None), ("numbers", [1, 2.5]), ("texts", ["a", "b"]),
            ("lists", [[1], [2, 3]]), ("dict", {"a": 1, "b": 2}), ("dicts", {"a": {"b": "c"}}),
            ("struct", Point(1.5, 2)), ("structs", [Point(1.5, 2), Point()]),
            ("struct in dict", {"a": Point(1.5, 2)}), ("object", Any()), ("objects", [Any(), 1]),
            ("tensor", filled), ("tensors", lambda: {"a": filled(), "b": Exporter()}),
            ("both", lambda: {"a": filled(), "b": 1}), ("exporter", Exporter), ("old", Old)):
        fail_each(name, echo(value))
    for kind, value in (
            ("i8", -128), ("u8", 255), ("i16", -5), ("u32", 7), ("u64", 2**64 - 1), ("f32", 1.5),
            ("bool", False), ("string", "x"), ("bytes", b"x"), ("bytes", bytearray(b"ab")),
            ("complex64", 1 + 2j), ("i64[]", [1, 2]), ("string[]", ["a"]), ("f32{}", {"a": 1.5}),
            (Point, Point(2.5, 1)), (Coded, Coded("c"))):
        fail_each("%s of %s" % (getattr(kind, "__name__", kind), value), typed(kind, value))


def main():
    values()
    fail_each("a tensor", lambda: Now(exchange))
    fail_each("as_tensor", lambda: Now(lambda: frag.as_tensor(Exporter()).shape))
    fail_each("as_tensor of an old one", lambda: Now(lambda: frag.as_tensor(Old()).shape))
    fail_each("the life of an operator", lambda: Now(life))
    fail_each("an operator that raises", lambda: Now(raising))
    fail_each("metadata", inside(metadata))
    fail_each("surroundings", inside(surroundings))
    fail_each("an application", lambda: Now(application), is_slow=True)
    fail_each("a tracker with a log", lambda: Now(logged), is_slow=True)
    fail_each("a loader", lambda: Now(_frag.loader_register), is_kept=True)
    fail_each("a folder", lambda: Now(lambda: _frag.library_folder("NONE", "none")))
    fail_each("an application beside", lambda: Now(later), is_slow=True)
    fail_each("a struct", lambda: Now(registered), is_kept=True)


gc.collect()
gc.freeze()
main()
