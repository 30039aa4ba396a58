# SPDX-License-Identifier: Apache-2.0
"""DLPack by hand: what is asked of our tensors, and descriptions of others that numpy never makes."""

import ctypes
import gc
import unittest

import frag
from frag.testing import Harness

from test_memory import TAKE, Table, Version, capsule, pointer
from test_tensors import Exporter, Forward, filled

CPU, FLOAT = 1, 2
NAMES = (b"dltensor", b"dltensor_versioned")


class Description(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """Of before 1.0."""
    _fields_ = [("tensor", Description), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("version", Version), ("context", ctypes.c_void_p), ("deleter", DELETER),
                ("flags", ctypes.c_uint64), ("tensor", Description)]


class Given:
    """An array of six floats, described as wanted, which counts how often it was given back."""

    def __init__(self, versioned, shape=(2, 3), strides=None, device=(CPU, 0), lanes=1, offset=0):
        self.memory = (ctypes.c_float * 8)(*range(8))
        self.given_back = 0
        self.name = NAMES[versioned]
        self.managed = (Versioned if versioned else Managed)()
        if versioned:
            self.managed.version = Version(1, 0)
        self.managed.deleter = DELETER(self.take_back)
        tensor = self.managed.tensor
        self.shape = (ctypes.c_int64 * 16)(*shape)
        self.strides = (ctypes.c_int64 * 16)(*(strides or ()))
        tensor.data = ctypes.addressof(self.memory)
        tensor.device[:] = device
        tensor.ndim, tensor.code, tensor.bits, tensor.lanes = len(shape), FLOAT, 32, lanes
        tensor.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        if strides is not None:
            tensor.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        tensor.byte_offset = offset

    def take_back(self, unused):
        self.given_back += 1

    def __dlpack__(self, **options):
        return capsule(ctypes.addressof(self.managed), self.name, None)


BAD = (  # no tensor of frag is like these
    {"shape": (1,) * 9},
    {"shape": (-1, 3)},
    {"strides": (-3, 1)},
    {"device": (77, 0)},
    {"offset": 2**63},
)


class Asked(unittest.TestCase):
    def test_what_a_tensor_is_asked_for(self):
        tensor = filled()
        for options, name in (
            ({}, 0), ({"max_version": None}, 0), ({"max_version": ()}, 0), ({"max_version": (0, 8)}, 0),
            ({"max_version": (1, 0)}, 1), ({"max_version": (2, 0)}, 1), ({"copy": None}, 0),
            ({"copy": False}, 0), ({"dl_device": None}, 0), ({"dl_device": (CPU, 0)}, 0),
            ({"stream": None}, 0), ({"stream": -1}, 0), ({"stream": 7}, 0),
            ({"stream": 1, "max_version": (1, 3), "dl_device": (CPU, 0), "copy": False}, 1),
        ):
            with self.subTest(options):
                self.assertTrue(pointer(tensor.__dlpack__(**options), NAMES[name]))
        for options, error in (
            ({"copy": True}, BufferError), ({"dl_device": (CPU, 1)}, BufferError),
            ({"dl_device": (2, 0)}, BufferError), ({"dl_device": (2, 1)}, BufferError),
            ({"dl_device": "cpu"}, BufferError), ({"dl_device": (CPU,)}, BufferError),
            ({"max_version": ("x", 0)}, TypeError), ({"version": (1, 0)}, TypeError),
        ):
            with self.subTest(options), self.assertRaises(error):
                tensor.__dlpack__(**options)
        with self.assertRaises(TypeError):
            tensor.__dlpack__(None)

    def test_names_that_are_not_interned(self):
        tensor = filled()
        for name in ("max_version", "stream", "dl_device", "copy"):
            value = (1, 0) if name == "max_version" else None
            other = "".join(list(name))  # another object
            self.assertTrue(tensor.__dlpack__(**{other: value}))


class Taken(unittest.TestCase):
    def take(self, given):
        with Harness(Forward) as harness:
            harness.feed(given)
            harness.tick()
            return harness.take()

    def test_what_is_taken_is_given_back_once(self):
        for versioned in (False, True):
            for offset in (0, 4, 8):
                with self.subTest(versioned=versioned, offset=offset):
                    given = Given(versioned, offset=offset)
                    got = self.take(given)
                    first = ctypes.addressof(given.memory) + offset
                    self.assertEqual((got.data, got.__array_interface__["data"][0]), (first, first))
                    rows = [[offset / 4 + 3 * y + x for x in range(3)] for y in range(2)]
                    self.assertEqual(memoryview(got).tolist(), rows)
                    self.assertEqual(given.given_back, 0)
                    del got
                    gc.collect()
                    self.assertEqual(given.given_back, 1)

    def test_what_cannot_be_taken(self):
        """A capsule stays its owner's; it is the table's description that has to be given back."""
        for options in BAD:
            for versioned in (False, True):
                with self.subTest(options, versioned=versioned):
                    given = Given(versioned, **options)
                    with self.assertRaises(frag.Error):
                        frag.as_tensor(given)
                    self.assertEqual(given.given_back, 0)

    def test_elements_of_several_numbers(self):
        """No format has them; their sizes are right."""
        got = self.take(Given(True, shape=(3,), lanes=2))
        self.assertEqual((got.dtype, got.size, got.nbytes, got.itemsize, got.strides),
                         ("unknown", 3, 24, 8, (8,)))
        with self.assertRaises(BufferError):
            memoryview(got)
        self.assertFalse(hasattr(got, "__array_interface__"))


class Tables(unittest.TestCase):
    """Tables for exchange in C, of classes that have __dlpack__ too."""

    def setUp(self):
        self.asked, self.answer = 0, None

    def from_object(self, array, out):
        self.asked += 1
        out[0] = ctypes.addressof(self.answer.managed)
        return 0

    def kind(self, *majors):
        """A class whose table has these versions, the newest first."""
        self.function = TAKE(self.from_object)
        self.tables, previous = [], None
        for major in reversed(majors):
            table = Table(Version(major, 0), previous, None,
                          ctypes.cast(self.function, ctypes.c_void_p).value)
            self.tables.append(table)
            previous = ctypes.addressof(table)

        class Kind(Exporter):
            __dlpack_c_exchange_api__ = capsule(previous, b"dlpack_exchange_api", None)

        return Kind

    def test_only_a_table_of_our_version_is_called(self):
        for majors, asked in (((1,), 1), ((2, 1), 1), ((3, 2, 1), 1), ((1, 0), 1),
                              ((0,), 0), ((2,), 0), ((2, 0), 0), ((3, 2), 0)):
            with self.subTest(majors):
                self.asked, self.answer = 0, Given(True)
                array = self.kind(*majors)(filled())
                got = frag.as_tensor(array)
                self.assertEqual(self.asked, asked)
                own = ctypes.addressof(self.answer.memory)
                self.assertEqual(got.data, own if asked else array.tensor.data)
                del got
                self.assertEqual(self.answer.given_back, asked)

    def test_what_a_table_gives_is_given_back_where_it_is_refused(self):
        kind = self.kind(1)
        for options in BAD:
            if "device" not in options:  # an unknown device is asked for by __dlpack__
                with self.subTest(options):
                    self.answer = Given(True, **options)
                    with self.assertRaises(frag.Error):
                        frag.as_tensor(kind(filled()))
                    self.assertEqual(self.answer.given_back, 1)
        self.answer = Given(True)
        self.assertEqual(frag.as_tensor(kind(filled())).shape, (2, 3))  # the next one is well

    def test_one_of_a_gpu_is_asked_for_with_a_stream(self):
        for has_deleter in (True, False):
            self.asked, self.answer = 0, Given(True, device=(2, 0))
            if not has_deleter:
                self.answer.managed.deleter = DELETER()
            array = self.kind(1)(filled())
            self.assertEqual(frag.as_tensor(array).data, array.tensor.data)
            self.assertEqual((self.asked, self.answer.given_back), (1, has_deleter))

    def test_nothing_needs_to_be_given_back(self):
        """A description without a deleter is of memory that stays."""
        for options in ({}, {"shape": (1,) * 9}):
            self.answer = Given(True, **options)
            self.answer.managed.deleter = DELETER()
            kind = self.kind(1)
            if options:
                with self.assertRaises(frag.Error):
                    frag.as_tensor(kind(filled()))
            else:
                self.assertEqual(frag.as_tensor(kind(filled())).shape, (2, 3))


if __name__ == "__main__":
    unittest.main()
