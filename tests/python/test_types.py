# SPDX-License-Identifier: Apache-2.0
"""Classes as types of values, and functions as operators."""

import ctypes
import dataclasses
import os
import unittest
from typing import Annotated

import frag
from frag.conditions import CountCondition
from frag.testing import Harness

import operators
from test_application import App, chain
from test_values import Echo

LIBRARY = os.path.join(
    os.path.dirname(frag.__file__), "../../lib/frag/extensions/libping_multi_port.so"
)


@frag.struct(name="value_data")
@dataclasses.dataclass
class ValueData:
    """As the example ping_multi_port has it in C."""

    data: Annotated[int, "i32"]


@dataclasses.dataclass
class Point:
    tag: Annotated[int, "u8"]
    x: float
    y: float


@frag.struct
class Shape:
    points: Annotated[list, "test_types.Point", 2]
    closed: bool
    weights: Annotated[list, "f32", 3]
    phase: complex = 1j
    origin: Point = dataclasses.field(default_factory=lambda: Point(0, 0.0, 0.0))


class Thing:
    pass


class TypeTable(ctypes.Structure):
    """The beginning of struct frag_type of frag/type.h."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("headline", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
    ]


find_type = ctypes.CDLL(frag._frag.__file__).frag_type_find
find_type.restype, find_type.argtypes = ctypes.POINTER(TypeTable), [ctypes.c_char_p]


def typed(cls):
    class Typed(Echo):
        def setup(self, spec):
            spec.input("in", type=cls)
            spec.output("out", type=cls)

    return Typed


class Structs(unittest.TestCase):
    def test_dataclasses_are_structs(self):
        shape = Shape([Point(1, 2.0, 3.0), Point(255, 5.0, 6.0)], True, [0.5, 1.5, 2.5])
        for operator in (Echo, typed(Shape)):
            with Harness(operator) as harness:
                harness.feed(shape)
                harness.tick()
                got = harness.take()
                self.assertEqual(got, shape)
                self.assertIsNot(got, shape)
        with Harness(Echo) as harness:
            for value in ([Point(1, 2.0, 3.0)] * 2, {"a": Point(1, 2.0, 3.0)}):
                harness.feed(value)
                harness.tick()
                self.assertEqual(harness.take(), value)
            for wrong in (
                Point(256, 2.0, 3.0),
                Shape([Point(1, 2.0, 3.0)], True, [0.5, 1.5, 2.5]),
                Shape([Point(1, 2.0, 3.0)] * 2, 1, [0.5, 1.5, 2.5]),
                Shape([Point(1, 2.0, 3.0)] * 2, True, [0.5]),
            ):
                with self.assertRaises((OverflowError, TypeError, ValueError)):
                    harness.feed(wrong)

    def test_they_are_as_large_as_in_c(self):
        scalars = {"u8": ctypes.c_uint8, "i16": ctypes.c_int16, "f32": ctypes.c_float, "f64": ctypes.c_double}
        inner = {"a": ("f32", 1), "b": ("u8", 1)}
        structs = dict(scalars)
        for i, fields in enumerate(
            (
                inner,
                {"a": ("u8", 1), "b": ("f64", 1)},
                {"a": ("f64", 1), "b": ("u8", 1)},
                {"a": ("i16", 1), "b": ("f64", 1), "c": ("f32", 1)},
                {"a": ("u8", 3)},
                {"a": ("i16", 1), "b": ("u8", 2)},
                {"a": ("u8", 1), "b": ("test_types.Laid0", 2), "c": ("i16", 1)},
                {"a": ("test_types.Laid2", 1), "b": ("u8", 1)},
            )
        ):
            name = "test_types.Laid%d" % i
            of = {key: structs[kind] * count for key, (kind, count) in fields.items()}
            structs[name] = type("C", (ctypes.Structure,), {"_fields_": list(of.items())})
            hints = [
                (key, Annotated[list, kind, count] if count > 1 else Annotated[object, kind])
                for key, (kind, count) in fields.items()
            ]
            frag.struct(dataclasses.make_dataclass("Laid%d" % i, hints), name=name)
            with self.subTest(fields):
                self.assertEqual(find_type(name.encode())[0].size, ctypes.sizeof(structs[name]))

    @unittest.skipUnless(os.path.exists(LIBRARY), "not in a tree that was built")
    def test_they_are_those_of_operators_in_c(self):
        class Tx(frag.Operator):
            def setup(self, spec):
                for port in ("out1", "out2"):
                    spec.output(port, type=ValueData)

            def compute(self, op_input, op_output, context):
                op_output.emit(ValueData(3), "out1")
                op_output.emit(ValueData(-4), "out2")

        def compose(app):
            app.extensions = [os.path.realpath(LIBRARY)]
            app.library_path = os.path.dirname(os.path.realpath(LIBRARY))
            tx = Tx(app, CountCondition(app, 1))
            mx = frag.NativeOperator(app, "multi_port_mx", multiplier=5)
            app.add_flow(tx, mx, {("out1", "in1"), ("out2", "in2")})
            for port in ("out1", "out2"):
                app.add_flow(mx, operators.Sink(app, name=port), {(port, "in")})

        operators.Sink.got = []
        App(compose).run()
        self.assertCountEqual(operators.Sink.got, [ValueData(15), ValueData(-20)])

    def test_what_is_no_struct(self):
        for hint in (str, list, Thing, Annotated[list, "f32", "x"], "list[int]"):

            @dataclasses.dataclass
            class Bad:
                field: hint

            with self.subTest(hint), self.assertRaisesRegex(TypeError, "Bad.field: a field of"):
                frag.struct(Bad)
        with self.assertRaisesRegex(TypeError, "there is no type nothing"):

            @frag.struct
            class Unknown:
                field: Annotated[int, "nothing"]

        with self.assertRaisesRegex(frag.Error, "value_data"):

            @frag.struct(name="value_data")
            class Other:
                data: float


class Objects(unittest.TestCase):
    def test_a_port_of_a_class(self):
        with Harness(typed(Thing)) as harness:
            thing = Thing()
            harness.feed(thing)
            harness.tick()
            self.assertIs(harness.take(), thing)
            with self.assertRaisesRegex(TypeError, "cannot become test_types.Thing"):
                harness.feed("text")
        with self.assertRaisesRegex(ValueError, "type of a port already"):
            frag.register_codec(Thing, bytes, bytes)
        with Harness(typed(object)) as harness:
            harness.feed([thing, "x"])
            harness.tick()
            self.assertEqual(harness.take(), [thing, "x"])


class Functions(unittest.TestCase):
    def test_values(self):
        @frag.operator
        def scale(value: float, factor=2.0) -> float:
            """Scales."""
            return value * factor if value else None

        self.assertEqual(scale.__name__, "scale")
        with Harness(scale, factor=3.0) as harness:
            self.assertEqual(harness.operator.spec.inputs["value"].type, float)
            harness.feed(1)
            harness.tick()
            self.assertEqual(harness.take(), 3.0)
            harness.feed(0)
            harness.tick()
            self.assertEqual(harness.take(default="nothing"), "nothing")

    def test_several_ports_and_the_context(self):
        @frag.operator(
            inputs={"a": {}, "b": {"type": "i64"}}, outputs=("sum", "rest", "count", "none")
        )
        def split(a, b, context, *, by=7):
            if a < 0:
                return a
            result = ((a + b) // by, (a + b) % by, context.count, None)
            return result if a else dict(zip(("sum", "rest"), result))

        with Harness(split, by=5) as harness:
            for a, expected in ((9, [[2], [2], [0], []]), (0, [[0], [3], [], []])):
                harness.feed(a, "a")
                harness.feed(3, "b")
                harness.tick()
                self.assertEqual(
                    [harness.take_all(port) for port in ("sum", "rest", "count", "none")], expected
                )
            harness.feed(-1, "a")
            harness.feed(3, "b")
            with self.assertRaisesRegex(TypeError, "has returned -1; its outputs are sum, rest"):
                harness.tick()

    def test_generators_and_applications(self):
        @frag.operator(inputs=())
        def count(first: int = 3):
            for i in range(first, first + 3):
                yield i

        @frag.operator
        def show(value) -> None:
            got.append(value)

        got = []
        App(lambda app: chain(count(app, first=5), show(app))(app)).run()
        self.assertEqual(got, [5, 6, 7])

    def test_what_is_refused(self):
        with self.assertRaisesRegex(TypeError, "no argument for its input b"):
            frag.operator(inputs="b")(lambda a: a)
        with self.assertRaisesRegex(TypeError, "any arguments"):
            frag.operator(lambda *a: a)


if __name__ == "__main__":
    unittest.main()
