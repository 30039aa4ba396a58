# SPDX-License-Identifier: Apache-2.0
"""Calls what frag offers with every kind of value, and prints all that comes of it.

tests/shared/test_python_recorded.c compares it with a recorded text.
"""

import array
import dataclasses
import re
import sys

import frag
from frag import conditions
from frag.testing import Harness

VALUES = [
    0, -5, 2**63 - 1, 2**63, 2.5, float("nan"), True, "text", "", "\u00fc", "a\0b", b"by\0tes",
    b"", 3 - 4j, None,
    [1, 2, 3], [1.0, 2], [True, False], ["a", ""], [b"1"], [[1], [2, 3]], [[1], [2.5]],
    {"a": 1, "b": 2}, {"": {"k": "v"}}, {"x": [1.5]}, [{"a": 1}],
    [], {}, (1, "t"), [1, "x"], {"a": 1, "b": "x"}, {1: 2}, [None],
    -(2**31), 2**31, "3", "10ms", 1e400, bytearray(b"ab"), range(3), {1, 2}, Ellipsis,
]
SHAPES = [
    0, 3, (), (0,), (2, 0, 3), (1,) * 8, (1,) * 9, -1, (2, -1), (2**31, 2**31, 4), "23", None,
    (2.0,), [2, 3], iter((2, 3)), True,
]


def text_of(value):
    if isinstance(value, frag.Tensor):
        held = bytes(memoryview(value)) if value.nbytes and value.dtype != "<f2" else b""
        return "Tensor %s %s %s %s" % (value.shape, value.strides, value.dtype, held.hex()[:48])
    return re.sub(r"0x[0-9a-f]+", "0x", repr(value))


def show(what, call, *args, **options):
    try:
        print(what, "->", text_of(call(*args, **options)))
    except BaseException as e:  # SystemExit, too
        text = re.sub(r"\.py:\d+", ".py", re.sub(r"0x[0-9a-f]+", "0x", str(e)))
        text = text.replace("\n", " / ")
        print(what, "raises", type(e).__name__ + ":", text[:300])


def head(text):
    print("==", text)


def tensors():
    head("tensors that are made")
    for dtype in ("uint8", "int16", "uint32", "int64", "float16", "float32", "float64", "bool",
                  "complex64", "bfloat16",
                  "<i4", ">i4", "|u1", "f4", "", "int33", None, 4, float, int, array.array("i")):
        show("dtype %s" % text_of(dtype), lambda: frag.empty((2, 1), dtype).dtype)
    for shape in SHAPES:
        def made():
            t = frag.empty(shape, "int32")
            return t.shape, t.ndim, t.size, t.nbytes, t.itemsize, t.strides

        show("shape %s" % text_of(shape)[:40], made)
    show("without a type", lambda: frag.empty((2, 2)).dtype)
    for gpu in (-1, "0"):
        show("on gpu %r" % gpu, lambda: frag.empty((1,), "uint8", gpu=gpu) and None)
    show("allocator", frag.empty, (1,), "uint8", 3)

    head("what is no array")
    for value in (3, "x", b"x", None, [1], array.array("i"), memoryview(b"x"), object()):
        show("as_tensor %s" % text_of(value), frag.as_tensor, value)


class Capsule:
    def __init__(self, tensor, device=None, **fixed):
        self.tensor, self.device, self.fixed = tensor, device, fixed

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**dict(options, **self.fixed))

    def __dlpack_device__(self):
        return self.device if self.device is not None else self.tensor.__dlpack_device__()


class Wrong:
    def __init__(self, made, device=(1, 0)):
        self.made, self.device = made, device

    def __dlpack__(self, **options):
        if isinstance(self.made, Exception):
            raise self.made
        return self.made

    def __dlpack_device__(self):
        return self.device


def filled():
    t = frag.empty((2, 3), "int32")
    memoryview(t).cast("B").cast("i")[:] = array.array("i", [1, 2, 3, 4, 5, 6])
    return t


def protocols():
    head("protocols of arrays")
    t = filled()
    for options in ({}, {"stream": None}, {"stream": 1}, {"stream": "x"},
                    {"max_version": (1, 0)}, {"max_version": (0, 8)},
                    {"max_version": (2, 0)}, {"max_version": 1}, {"max_version": (1,)},
                    {"dl_device": (1, 0)},
                    {"dl_device": (2, 0)}, {"dl_device": 1}, {"copy": True}, {"copy": False},
                    {"copy": 3}, {"other": 1}):
        show("dlpack %s" % options, lambda: t.__dlpack__(**options) and None)
        show("from %s" % options, frag.as_tensor, Capsule(filled(), **options))
    show("device", t.__dlpack_device__)
    for device in ((1, 0), (1, 1), (2, 0), (3, 0), (99, 0), (1,), 1, None, ("a", "b")):
        show("from device %s" % (device,), frag.as_tensor, Capsule(filled(), device=device))
    for made in (None, 1, "capsule", ValueError("no array"), TypeError("no options"),
                 BufferError("no buffer")):
        show("from %s" % text_of(made), frag.as_tensor, Wrong(made))
    used = t.__dlpack__()
    show("a capsule once", frag.as_tensor, Wrong(used))
    show("a capsule twice", frag.as_tensor, Wrong(used))
    interface = t.__array_interface__
    print("interface", {k: v for k, v in sorted(interface.items()) if k != "data"},
          interface["data"][1])
    show("of a gpu", lambda: t.__cuda_array_interface__)
    for name in ("shape", "strides", "dtype", "ndim", "size", "nbytes", "itemsize"):
        show(name, getattr, t, name)
        show("set " + name, setattr, t, name, 1)
    view = memoryview(t)
    print("view", view.shape, view.strides, view.format, view.itemsize, view.readonly,
          view.c_contiguous)
    show("numbers", lambda: float(t))
    show("length", lambda: len(t))


class Echo(frag.Operator):
    def setup(self, spec):
        spec.input("in")
        spec.output("out")

    def compute(self, op_input, op_output, context):
        op_output.emit(op_input.receive("in"), "out")


class Compared(type):
    """Its classes cannot be hashed."""

    def __eq__(cls, other):
        return cls is other


@frag.struct
@dataclasses.dataclass
class Point:
    x: float = 0.0
    n: int = 0
    is_on: bool = False


def values():
    head("values that are sent")
    with Harness(Echo) as h:
        for value in VALUES + [Point(1.5, 2, True), Point(n="x"), Point(x=None), Point(n=2**70),
                               Compared("Unhashable", (), {})(), filled(), {"t": filled()},
                               [filled()], {"a": filled(), "b": 1}, {"a\0b": filled()},
                               {"a\0b": 1}, {"a\0b": "x", "a": "y"}, {"k": {"a\0": 1}}]:
            what = text_of(value)
            show("feed %s" % what, h.feed, value)
            show("  tick", h.tick)
            show("  take", h.take, "out", "nothing")
        for port in ("in", "out", "none", "", None, 3):
            show("feed port %r" % port, h.feed, 1, port)
            show("take port %r" % port, h.take, port, "nothing")
        show("ready", h.ready)
        show("take all", h.take_all)
        for seconds in (0, 0.5, -1, "x", 1e30):
            show("advance %r" % seconds, h.advance, seconds)
    show("after the end", h.tick)


class Keys(frag.Operator):
    def setup(self, spec):
        spec.input("in")
        spec.output("out")

    def compute(self, op_input, op_output, context):
        op_input.receive("in")
        m = self.metadata
        for value in VALUES + [filled(), Point(1.5, 2, True)]:
            show("set %s" % text_of(value), m.set, "k", value)
            show("  get", m.get, "k", "nothing")
            m.erase("k")
        m["k"] = 1
        show("again", m.set, "k", 2)
        for key in ("", "a" * 300, 3, None, "a\0b", "\u00fc"):
            show("key %s" % text_of(key)[:20], m.set, key, 1)
            show("  has", m.has_key, key)
            show("  get", lambda: m[key])
            show("  in", lambda: key in m)
            show("  erase", m.erase, key)
        m["one"], m["two"] = 1, "2"
        show("keys", lambda: sorted(m))
        show("length", len, m)
        show("items", lambda: sorted(m.items(), key=str))
        show("erase one", m.erase, "one")
        show("erase one again", m.erase, "one")
        show("delete none", m.__delitem__, "none")
        show("pop", m.pop, "two", "nothing")
        show("clear", m.clear)
        show("length", len, m)
        for name in ("in", "none", "", 3, None):
            show("receive %r" % name, op_input.receive, name)
            show("emit to %r" % name, op_output.emit, 1, name)
        show("emit nothing", op_output.emit)
        for name in ("count", "time_ns", "stream"):
            show("context.%s" % name, getattr, context, name)
        for name in ("", "none", "Keys", None, 3):
            show("status of %r" % name, context.operator_status, name)
            show("ticks of %r" % name, context.operator_ticks, name)
            show("argument %r" % name, context.argument, name)
            show("stop %r" % name, context.stop_operator, name)
        show("flows", context.flows)
        for number in (-1, 0, 99, "x"):
            show("take flow %r" % number, context.take_flow, number)
        show("log", context.log, "a line")
        show("log a number", context.log, 3)
        show("resource", self.resource, "none")
        show("condition", self.condition, "none")
        show("variable", self.variable, "none")
        show("path", self.variable_path, "none")
        clock = self.clock
        show("time", clock.timestamp)
        for value in (0, 1, -1, "x", 2**70, 1.5):
            for verb in ("advance_by", "advance_to", "sleep_for", "sleep_until", "set_time_scale"):
                show("%s %r" % (verb, value), getattr(clock, verb), value)
        show("time", clock.timestamp)


def inside():
    head("inside of a tick")
    with Harness(Keys) as h:
        h.feed(1)
        show("tick", h.tick)
        show("taken", h.take_all, "out")
    show("metadata outside of a tick", lambda: h.operator.metadata.set("a", 1))


def parameters():
    head("parameters")
    kinds = (None, "bool", "int", "float", "str", "size", "duration", "path", "int_list",
             "float_list", "str_list",
             "tree", "resource", "condition")
    for kind in ("other", "", 3):
        class Wrong(frag.Operator):
            def setup(self, spec):
                spec.param("p", None, kind=kind)

        show("kind %r" % kind, Harness, Wrong)
    given = [True, 0, 3, -1, 2**63, 2.5, "text", "", "3", "10ms", "512Mi", [1, 2], [1.5], ["a"],
             {"a": "b"}, {"a": [1]}, None,
             [[1]], b"x", object]
    for kind in kinds:
        class One(frag.Operator):
            def setup(self, spec):
                spec.param("p", None, "Headline", kind=kind)

            def compute(self, op_input, op_output, context):
                pass

        for value in given:
            show("%s %s" % (kind, text_of(value)), lambda: Harness(One, p=value).operator.p)
    for options in ({"min": 1}, {"max": 1}, {"min": 2, "max": 1}, {"min": 1, "max": 3},
                    {"min": "x"}, {"choices": ["a", "3"]},
                    {"choices": []}, {"choices": "ab"}, {"choices": [1]}, {"dynamic": True}):
        for default in (0, 1, 3, 4, 2.5, "a", "c"):
            class Bound(frag.Operator):
                def setup(self, spec):
                    spec.param("p", default, **options)

                def compute(self, op_input, op_output, context):
                    pass

            show("%s default %r" % (options, default), lambda: Harness(Bound).operator.p)
    for name in ("", "a b", "a.b", "name", "compute", "1", 3, None, "\u00fc", "a" * 200):
        class Named(frag.Operator):
            def setup(self, spec):
                spec.param(name, 1)

            def compute(self, op_input, op_output, context):
                pass

        show("called %s" % text_of(name)[:30], lambda: Harness(Named) and None)
    show("unknown", Harness, Echo, none=3)


PORTS = [
    ((), {}), (("a",), {}), (("",), {}), (("a b",), {}), ((3,), {}), (("a", 3), {}),
    (("a",), {"size": 0}), (("a",), {"size": 3}), (("a",), {"size": -1}), (("a",), {"size": "x"}),
    (("a",), {"policy": "pop"}), (("a",), {"policy": "none"}), (("a",), {"optional": True}),
    (("a",), {"type": int}), (("a",), {"type": "i64"}), (("a",), {"type": "none"}),
    (("a",), {"type": Point}), (("a",), {"type": 3}),
]


def ports():
    head("ports")
    for verb in ("input", "output"):
        for args, options in PORTS:
            class Port(frag.Operator):
                def setup(self, spec):
                    port = getattr(spec, verb)(*args, **options)
                    print("   ", port.name)

                def compute(self, op_input, op_output, context):
                    pass

            show("%s %s %s" % (verb, args, options), lambda: Harness(Port) and None)
    for kind, options in (("none", {}), ("message_available", {"min_size": 2}),
                          ("downstream_affordable", {}), ("other", {}),
                          (3, {}), ("message_available", {"min_size": -1}),
                          ("message_available", {"min_size": "x"})):
        class Conditioned(frag.Operator):
            def setup(self, spec):
                spec.input("in").condition(kind, **options)

            def compute(self, op_input, op_output, context):
                pass

        show("condition %r %s" % (kind, options), lambda: Harness(Conditioned).ready())
    for args in ((), (3,), (0,), ("x",), (2, "pop"), (2, "none"), (2, 3)):
        class Queued(frag.Operator):
            def setup(self, spec):
                spec.input("in").queue_policy(*args)

            def compute(self, op_input, op_output, context):
                pass

        show("queue %s" % (args,), lambda: Harness(Queued) and None)


def failing():
    head("methods that fail")
    for where in ("setup", "initialize", "start", "compute", "stop"):
        for what in (ValueError("no\nluck"), SystemExit(3), KeyboardInterrupt(),
                     frag.Error("own"), RecursionError(), "text"):
            class Failing(frag.Operator):
                pass

            def fail(self, *args):
                if isinstance(what, BaseException):
                    raise what
                return what

            setattr(Failing, where, fail)
            if where != "compute":
                Failing.compute = lambda *args: None

            def run():
                with Harness(Failing) as h:
                    return h.tick()

            show("%s %s" % (where, text_of(what)), run)
    for result in (None, frag.DONE, 0, 1, 2, -1, "x", True, 2.5):
        class Result(frag.Operator):
            def compute(self, op_input, op_output, context):
                return result

        show("compute returns %r" % (result,), lambda: Harness(Result).tick())
    for cls in (int, object, frag.Operator, None, 3, "Echo"):
        show("harness of %s" % text_of(cls), lambda: Harness(cls) and None)


class App(frag.Application):
    def __init__(self, composed, **options):
        super().__init__([], **options)
        self.composed = composed

    def compose(self):
        self.composed(self)


class Tx(frag.Operator):
    def setup(self, spec):
        spec.output("out")
        spec.param("first", 3)

    def compute(self, op_input, op_output, context):
        op_output.emit(self.first)


class Rx(frag.Operator):
    def setup(self, spec):
        spec.input("in")

    def compute(self, op_input, op_output, context):
        print("    received", op_input.receive("in"))


def graphs():
    head("graphs")

    def pair(app, count=2, ports=None, **flow):
        tx = Tx(app, conditions.CountCondition(app, count), name="tx")
        app.add_flow(tx, Rx(app, name="rx"), ports, **flow)

    cases = {
        "plain": pair,
        "named ports": lambda app: pair(app, ports=("out", "in")),
        "two pairs": lambda app: pair(app, ports={("out", "in")}),
        "wrong output": lambda app: pair(app, ports=("uot", "in")),
        "wrong input": lambda app: pair(app, ports=("out", "ni")),
        "no ports": lambda app: pair(app, ports=3),
        "capacity": lambda app: pair(app, capacity=4, policy="pop"),
        "wrong capacity": lambda app: pair(app, capacity="x"),
        "wrong policy": lambda app: pair(app, policy="none"),
        "count": lambda app: pair(app, count="x"),
        "nothing": lambda app: None,
        "one name twice": lambda app: [app.add_operator(Tx(app, name="a")),
                                       app.add_operator(Tx(app, name="a"))],
        "bad name": lambda app: app.add_operator(Tx(app, name="a.b")),
        "no operator": lambda app: app.add_operator(3),
        "no flow": lambda app: app.add_flow(3, 4),
        "native": lambda app: app.add_operator(
            frag.NativeOperator(app, "ping_tx", conditions.CountCondition(app, 1), name="n")),
        "unknown native": lambda app: app.add_operator(
            frag.NativeOperator(app, "ping_txx", name="n")),
        "parameter": lambda app: app.add_operator(
            frag.NativeOperator(app, "ping_tensor_tx", conditions.CountCondition(app, 1),
                                name="n", rows=2, none=3)),
        "scheduler": lambda app: [pair(app), app.scheduler(frag.Scheduler("greedy"))],
        "wrong scheduler": lambda app: [pair(app), app.scheduler(frag.Scheduler("none"))],
        "no scheduler": lambda app: [pair(app), app.scheduler(3)],
        "clock": lambda app: [pair(app), app.clock("manual")],
        "wrong clock": lambda app: [pair(app), app.clock("none")],
        "raises": lambda app: 1 // 0,
    }
    for what, compose in cases.items():
        show("%s: yaml" % what, lambda: App(compose, name="app").to_yaml())
    for name in ("app", "", "a.b", 3, None, "a" * 99):
        show("application %s" % text_of(name)[:20], lambda: App(pair, name=name).name)


def codecs():
    head("structs and codecs")
    for fields in ({"x": float}, {"x": "float"}, {"x": str}, {"x": list}, {"x": dict},
                   {"x": bytes}, {"x": Point},
                   {"x": object}, {}):
        cls = dataclasses.make_dataclass("Made", list(fields.items()))
        show("struct %s" % {k: text_of(v) for k, v in fields.items()},
             lambda: frag.struct(cls) and None)
    for cls in (int, 3, None, type("Plain", (), {})):
        show("struct of %s" % text_of(cls), lambda: frag.struct(cls) and None)
    show("struct twice", lambda: frag.struct(Point) and None)
    for args in ((int, bytes, bytes), (3, bytes, bytes), (type("A", (), {}), 3, bytes),
                 (type("B", (), {}), bytes, 3),
                 (type("C", (), {}), bytes, bytes, "made"),
                 (type("D", (), {}), bytes, bytes, "made"),
                 (type("E", (), {}), bytes, bytes, ""), (type("F", (), {}), bytes, bytes, 3)):
        show("codec %s" % text_of(args[0]), frag.register_codec, *args)


def run(*sections):
    for section in sections:
        section()
        sys.stdout.flush()


if __name__ == "__main__":
    run(tensors, protocols, values, inside, parameters, ports, failing, graphs, codecs)
