# SPDX-License-Identifier: Apache-2.0
"""Values of messages, codecs, and the harness for unit tests of operators."""

import array
import subprocess
import sys
import unittest

import frag
from frag import _codec
from frag.testing import Harness

import operators


class Echo(frag.Operator):
    def setup(self, spec):
        spec.input("in")
        spec.output("out")

    def compute(self, op_input, op_output, context):
        op_output.emit(op_input.receive("in"), "out")


VALUES = [
    0,
    1,
    -5,
    2**63 - 1,
    -(2**63),
    2.5,
    True,
    False,
    "text",
    "",
    "\u00fc\U0001f600",
    b"by\0tes",
    b"",
    3 - 4j,
    None,
    [1, 2, 3],
    [1.0, 2],
    [True, False],
    ["a", ""],
    [b"1", b"22"],
    [[1], [2, 3]],
    [[1], [2.5]],
    [[[["deep"]]]],
    {"a": 1, "b": 2},
    {"": {"k": "v"}},
    {"x": [1.5]},
    [{"a": 1}, {"b": 2}],
    # By reference:
    2**70,
    [],
    {},
    (1, "t"),
    [1, "x"],
    {"a": 1, "b": "x"},
    {1: 2},
    [None],
    [[[[[1]]]]],
    [2**70],
    object(),
]


class Values(unittest.TestCase):
    def test_every_value_comes_back(self):
        with Harness(Echo) as harness:
            for value in VALUES:
                with self.subTest(value=value):
                    harness.feed(value)
                    self.assertTrue(harness.tick())
                    got = harness.take("out", default="nothing")
                    self.assertEqual(got, value)
                    self.assertIs(type(got), type(value))
            self.assertIsNone(harness.take())
        self.assertEqual(Harness(Echo).take("out", default=3), 3)

    def test_typed_ports(self):
        types = [
            ("i8", 127, 128),
            ("i8", -128, -129),
            ("u8", 255, -1),
            ("u16", 65535, 65536),
            ("i32", -(2**31), 2**31),
            ("u64", 2**64 - 1, 2**64),
            ("f32", 0.5, "x"),
            ("f64", 3, None),
            ("bool", True, 1),
            ("string", "a", b"a"),
            ("bytes", b"a", "a"),
            ("complex64", 1j, "x"),
            ("f64[]", [1.0], ["x"]),
            ("string{}", {"a": "b"}, {"a": 1}),
            ("string{}", {}, [("a", "b")]),
            ("i64{}", {"a": 1}, 5),
            ("i64{}", {"a": 1}, {1: 1}),
            ("string[]", ["a"], 5),
            ("i64[][]", [[], [1]], [1]),
        ]
        for name, good, bad in types:
            with self.subTest(name):

                class Typed(Echo):
                    def setup(self, spec):
                        spec.input("in", type=name)
                        spec.output("out", type=name)

                with Harness(Typed) as harness:
                    harness.feed(good)
                    harness.tick()
                    self.assertEqual(harness.take("out"), good)
                    with self.assertRaises((TypeError, OverflowError, ValueError)):
                        harness.feed(bad)
        with self.assertRaisesRegex(ValueError, "NUL"):
            Harness(Echo).feed("a\0b")
        with self.assertRaises(UnicodeEncodeError):
            Harness(Echo).feed("\ud800")

    def test_integers_have_the_bounds_of_their_type(self):
        for bits in (8, 16, 32, 64):
            for name, least, most in (
                ("i%d" % bits, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
                ("u%d" % bits, 0, 2**bits - 1),
            ):

                class Typed(Echo):
                    def setup(self, spec):
                        spec.input("in", type=name)
                        spec.output("out", type=name)

                with self.subTest(name), Harness(Typed) as harness:
                    for good in (least, least + 1, most - 1, most):
                        harness.feed(good)
                        harness.tick()
                        self.assertEqual(harness.take("out"), good)
                    for bad in (least - 1, most + 1):
                        with self.assertRaises(OverflowError, msg=bad):
                            harness.feed(bad)

    def test_what_suits_a_type_is_a_value_and_no_object(self):
        # An object comes back itself, and a value as a new one.
        rows = [
            ([1, 2.5], [1.0, 2.5]),
            ([2.5, 1], [2.5, 1.0]),
            ([1, 2.5, 3], [1.0, 2.5, 3.0]),
            ({"a": 2.5, "b": 1}, {"a": 2.5, "b": 1.0}),
            ([[[[1]]]], [[[[1]]]]),
            ([[[[[1]]]]], None),
            ([True, 1], None),
            ([1, "a"], None),
            ({1: 2}, None),
            ([], None),
        ]
        with Harness(Echo) as harness:
            for value, expected in rows:
                with self.subTest(value=value):
                    harness.feed(value)
                    harness.tick()
                    got = harness.take("out")
                    self.assertEqual(got is value, expected is None)
                    self.assertEqual(repr(got), repr(value if expected is None else expected))

    def test_buffers_become_bytes(self):
        class Typed(Echo):
            def setup(self, spec):
                spec.input("in", type=bytes)
                spec.output("out", type=bytes)

        with Harness(Typed) as harness:
            for value in (bytearray(b"xy"), memoryview(b"xy"), array.array("B", b"xy")):
                harness.feed(value)
                harness.tick()
                self.assertEqual(harness.take(), b"xy")


    def test_no_memory_for_a_value(self):
        """Where a copy cannot be made, that is what is raised, and the next value is taken."""
        for name, value in (("bytes", "bytearray(200 << 20)"), ("u8[]", "range(200 << 20)")):
            child = subprocess.run([sys.executable, "-c", STARVED % (name, name, value)],
                                   capture_output=True, text=True, timeout=100)
            self.assertEqual((child.stdout, child.returncode), ("MemoryError\n", 0), child.stderr)


STARVED = """import resource
import frag
from frag.testing import Harness


class Typed(frag.Operator):
    def setup(self, spec):
        spec.input("in", type=%r)
        spec.output("out", type=%r)

    def compute(self, op_input, op_output, context):
        op_output.emit(op_input.receive("in"), "out")


with Harness(Typed) as harness:
    value = %s
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20),) * 2)
    try:
        harness.feed(value)
    except MemoryError:
        print("MemoryError")
    small = value[:0]
    harness.feed(small)
    harness.tick()
    assert len(harness.take()) == 0
"""


class Codecs(unittest.TestCase):
    def test_plain_data(self):
        data = [
            None,
            True,
            False,
            2**70,
            -1,
            1.5,
            1j,
            "\u00fc\ud800",
            b"\0",
            (1, [2, {"k": (3,)}]),
            {1: {"a": []}},
        ]
        self.assertEqual(_codec.decode(_codec.encode(data)), data)

    def test_integers_of_every_length(self):
        for bits in range(70):
            for value in (2**bits - 1, 2**bits, 2**bits + 1):
                for signed in (value, -value):
                    self.assertEqual(_codec.decode(_codec.encode(signed)), signed)

    def test_any_bytes_are_refused_without_harm(self):
        whole = _codec.encode({"k": [1, "text", b"b", (2.5, None)]})
        for size in range(len(whole)):
            with self.assertRaises(Exception):
                _codec.decode(whole[:size])
        for bad in (
            b"L\xff\xff\xff\xff",
            b"P\0\0\0\0",
            b"Z",
            b"L\1\0\0\0" * 100,
            b"O\1\0\0\0xY\0\0\0\0",
        ):
            with self.assertRaises(Exception):
                _codec.decode(bad)

    def test_a_class_of_its_own(self):
        class Point:
            def __init__(self, x):
                self.x = x

        with self.assertRaisesRegex(TypeError, "has no codec"):
            _codec.encode(Point(1))
        frag.register_codec(Point, lambda p: b"%d" % p.x, lambda b: Point(int(b)))
        self.assertEqual(_codec.decode(_codec.encode([Point(7)]))[0].x, 7)


class Harnesses(unittest.TestCase):
    def test_parameters_conditions_and_failures(self):
        with Harness(operators.Source, first=5) as harness:
            self.assertTrue(harness.ready())
            harness.tick()
            harness.tick()
            self.assertEqual(harness.take_all("out"), [5, 6])
        with self.assertRaisesRegex(ValueError, "no\nluck"):
            Harness(operators.Raising, where="start")
        with Harness(operators.Raising) as harness:
            with self.assertRaisesRegex(ValueError, "no\nluck"):
                harness.tick()
        with Harness(operators.Raising, where="none") as harness:
            self.assertFalse(harness.tick())
        with self.assertRaises(frag.Error):
            Harness(operators.Source, step=11.0)
        harness.close()
        with self.assertRaisesRegex(RuntimeError, "closed"):
            harness.tick()

    def test_ports_and_the_clock(self):
        class Times(frag.Operator):
            def setup(self, spec):
                spec.input("a")
                spec.input("b").condition(frag.ConditionType.NONE)
                spec.output("out")

            def compute(self, op_input, op_output, context):
                op_output.emit(
                    [op_input.receive("a"), op_input.receive("b"), context.time_ns], "out"
                )

        with Harness(Times) as harness:
            with self.assertRaisesRegex(ValueError, "name the port"):
                harness.feed(1)
            self.assertFalse(harness.ready())
            harness.feed(1, "a")
            self.assertTrue(harness.ready())
            harness.advance(0.5)
            harness.tick()
            self.assertEqual(harness.take(), [1, None, 500000000])
            with self.assertRaises(frag.Error):
                harness.feed(1, "c")


if __name__ == "__main__":
    unittest.main()
