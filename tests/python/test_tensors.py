# SPDX-License-Identifier: Apache-2.0
"""Tensors: what others see of ours, what we take of others, and who may write."""

import gc
import io
import sys
import unittest

import frag
from frag.conditions import CountCondition
from frag.testing import Harness

try:
    import numpy

    # Older ones take no arrays by DLPack that are read-only.
    if tuple(int(n) for n in numpy.__version__.split(".")[:2]) < (2, 1):
        numpy = None
except ImportError:
    numpy = None


class Exporter:
    """An array of another library, which counts what it has handed out."""

    def __init__(self, tensor, versions=True):
        self.tensor = tensor
        self.versions = versions

    def __dlpack__(self, **options):
        if not self.versions and options:
            raise TypeError("unexpected keyword")
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Forward(frag.Operator):
    def setup(self, spec):
        spec.input("in")
        spec.output("out")

    def compute(self, op_input, op_output, context):
        op_output.emit(op_input.receive("in"), "out")


def filled(count=6, shape=(2, 3)):
    tensor = frag.empty(shape, "int32")
    view = memoryview(tensor).cast("B").cast("i")
    for i in range(count):
        view[i] = 10 * i
    return tensor


class Tensors(unittest.TestCase):
    def test_classes_in_turn(self):
        """What is known of the last class is not taken for the next one, or for an instance."""

        class Bare:
            pass

        tensor, bare = filled(), Bare()
        with_its_own = Bare()
        with_its_own.__dlpack__ = Exporter(tensor).__dlpack__
        for _ in range(2):
            for array in (Exporter(tensor), with_its_own, Exporter(tensor, versions=False)):
                self.assertEqual(frag.as_tensor(array).data, tensor.data)
            with self.assertRaisesRegex(TypeError, "an array has __dlpack__"):
                frag.as_tensor(bare)
            self.assertEqual(frag.as_tensor(with_its_own).data, tensor.data)

    def test_what_is_made_here(self):
        tensor = filled()
        self.assertEqual(
            (
                tensor.shape,
                tensor.strides,
                tensor.dtype,
                tensor.ndim,
                tensor.size,
                tensor.nbytes,
                tensor.itemsize,
            ),
            ((2, 3), (12, 4), "int32", 2, 6, 24, 4),
        )
        for shape, size in (((), 1), ((3,), 3), ((2, 5), 10), ((2, 3, 4), 24), ((1,) * 8, 1)):
            made = frag.empty(shape, "int16")
            self.assertEqual((made.shape, made.size, made.nbytes), (shape, size, 2 * size))
        self.assertEqual(tensor.data % 64, 0)
        self.assertEqual(memoryview(tensor).tolist(), [[0, 10, 20], [30, 40, 50]])
        self.assertEqual((frag.empty(4).shape, frag.empty(4).dtype), ((4,), "float32"))
        self.assertEqual(frag.empty((), "bool").ndim, 0)
        for shape, dtype, sentence in (
            ((1,) * 9, "int8", "at most 8 dimensions"),
            ((2,), "int7", "int7 is no element type"),
            ((2, -1), "int8", "dimension 1 is negative: -1"),
            ((2**62,), "int64", r"2\^63 bytes or more"),
        ):
            with self.assertRaisesRegex((ValueError, frag.Error), sentence):
                frag.empty(shape, dtype)
        with self.assertRaises(TypeError):
            frag.Tensor()

    def test_a_message_does_not_copy(self):
        tensor = filled()
        self.assertEqual(tensor.__array_interface__["data"], (tensor.data, False))
        with Harness(Forward) as harness:
            harness.feed(tensor)
            harness.tick()
            got = harness.take()
            self.assertIsInstance(got, frag.Tensor)
            self.assertEqual((got.data, got.shape), (tensor.data, (2, 3)))
            for one in (got, tensor):  # also for who has emitted it
                self.assertTrue(memoryview(one).readonly)
                before = bytes(memoryview(one).cast("B"))
                with self.assertRaises(TypeError):
                    io.BytesIO(b"\x55" * len(before)).readinto(one)
                self.assertEqual(bytes(memoryview(one).cast("B")), before)
                self.assertEqual(one.__array_interface__["data"], (tensor.data, True))
                with self.assertRaises(TypeError):
                    memoryview(one)[0, 0] = 1
                with self.assertRaises(BufferError):
                    one.__dlpack__()
            harness.feed({"a": tensor, "b": got})
            harness.tick()
            both = harness.take()
            self.assertEqual(
                (list(both), both["a"].data, both["b"].data),
                (["a", "b"], tensor.data, tensor.data),
            )

    def test_arrays_of_others(self):
        tensor = filled()
        for versions in (True, False):
            with self.subTest(versions=versions):
                exporter = Exporter(filled(), versions)
                count = sys.getrefcount(exporter.tensor)
                with Harness(Forward) as harness:
                    harness.feed(exporter)
                    harness.tick()
                    got = harness.take()
                self.assertEqual(got.data, exporter.tensor.data)
                self.assertEqual(memoryview(got).tolist(), memoryview(tensor).tolist())
                self.assertEqual(frag.as_tensor(exporter).data, got.data)
                del got
                self.assertEqual(sys.getrefcount(exporter.tensor), count)
        self.assertIs(frag.as_tensor(tensor), tensor)
        with self.assertRaises(TypeError):
            frag.as_tensor([1])

        class Liar:
            def __dlpack__(self, **options):
                return 3

        with self.assertRaises(ValueError):
            frag.as_tensor(Liar())

    def test_capsules_that_nobody_takes(self):
        tensor = filled()
        for _ in range(100):
            tensor.__dlpack__(max_version=(1, 0))
            tensor.__dlpack__()
        with self.assertRaises(BufferError):
            tensor.__dlpack__(copy=True)
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        self.assertEqual(memoryview(tensor).tolist()[1], [30, 40, 50])

    def test_metadata(self):
        class Meta(frag.Operator):
            def compute(self, op_input, op_output, context):
                self.metadata["t"] = tensor
                seen.append(self.metadata["t"].data)
                return frag.DONE

        tensor, seen = filled(), []
        App(lambda app: app.add_operator(Meta(app))).run()
        self.assertEqual(seen, [tensor.data])


class App(frag.Application):
    def __init__(self, compose):
        super().__init__()
        self.make = compose

    def compose(self):
        self.make(self)


@unittest.skipIf(numpy is None, "numpy 2.1 or newer is not there")
class Numpy(unittest.TestCase):
    DTYPES = (
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    )

    def test_every_element_type_both_ways(self):
        with Harness(Forward) as harness:
            for dtype in self.DTYPES:
                for shape in ((), (3,), (2, 3), (1, 2, 3, 4), (0, 2)):
                    with self.subTest(dtype=dtype, shape=shape):
                        array = numpy.asarray(
                            numpy.arange(numpy.prod(shape, dtype=int)) % 2, dtype
                        ).reshape(shape)
                        harness.feed(array)
                        harness.tick()
                        got = harness.take()
                        self.assertEqual(
                            (got.dtype, got.shape, got.strides), (dtype, shape, array.strides)
                        )
                        for back in (numpy.asarray(got), numpy.from_dlpack(got)):
                            numpy.testing.assert_array_equal(back, array)
                            self.assertEqual(
                                (back.dtype.name, back.flags.writeable), (dtype, False)
                            )
                            if array.size:
                                self.assertEqual(back.ctypes.data, array.ctypes.data)
                        self.assertEqual(
                            numpy.asarray(frag.empty(shape, dtype)).dtype.name, dtype
                        )

    def test_strides_and_what_is_written(self):
        array = numpy.arange(24).reshape(4, 6)
        with Harness(Forward) as harness:
            for view in (array.T, array[::2, 1::2], numpy.broadcast_to(array[0], (3, 6))):
                harness.feed(view)
                harness.tick()
                got = harness.take()
                numpy.testing.assert_array_equal(numpy.asarray(got), view)
                self.assertEqual(got.data, view.ctypes.data)
            with self.assertRaises(frag.Error):
                harness.feed(array[::-1])
        result = numpy.asarray(frag.empty((2, 2), numpy.float32))
        result[:] = 7
        self.assertTrue((result == 7).all())

    def test_scalars_of_numpy(self):
        with Harness(Forward) as harness:
            for value in (numpy.float64(2.5), numpy.int64(3), numpy.bool_(True)):
                harness.feed(value)
                harness.tick()
                self.assertEqual(harness.take(), value)

    def test_memory_is_given_back(self):
        class Big(frag.Operator):
            def setup(self, spec):
                spec.output("out")

            def compute(self, op_input, op_output, context):
                op_output.emit(numpy.zeros(1 << 20, "uint8"), "out")

        class Last(frag.Operator):
            def setup(self, spec):
                spec.input("in")

            def compute(self, op_input, op_output, context):
                seen.append(int(numpy.asarray(op_input.receive("in"))[-1]))

        import resource

        seen = []

        def compose(app):
            app.add_flow(Big(app, CountCondition(app, 2000), name="tx"), Last(app, name="rx"))

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        App(compose).run()
        gc.collect()
        self.assertEqual(len(seen), 2000)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 200 << 10)


if __name__ == "__main__":
    unittest.main()
