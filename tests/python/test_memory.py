# SPDX-License-Identifier: Apache-2.0
"""Allocators, who keeps tensors, exchange by DLPack's table in C, and memory of GPUs."""

import ctypes
import os
import tempfile
import unittest
from unittest import mock

import frag
from frag.conditions import CountCondition
from frag.testing import Harness

from test_application import App, chain
from test_tensors import Exporter, Forward, filled

FAKE_GPU = "FAKE_CUDA" in os.environ


def pool(app, blocks):
    return frag.Resource(
        app,
        "block_memory_pool",
        name="pool",
        storage_type=2,
        block_size=256,
        num_blocks=blocks,
    )


class Make(frag.Operator):
    """Emits tensors of its pool."""

    def setup(self, spec):
        spec.output("out")
        spec.param("pool")

    def compute(self, op_input, op_output, context):
        tensor = frag.empty((16,), "int32", self.pool)
        memoryview(tensor).cast("B")[0] = context.count
        op_output.emit(tensor)


class Keep(frag.Operator):
    """Keeps what it receives, as a tensor or as what another library has of it."""

    def setup(self, spec):
        spec.input("in")
        self.kept = []

    def compute(self, op_input, op_output, context):
        tensor = op_input.receive("in")
        kinds = (lambda: tensor, lambda: memoryview(tensor), lambda: given(tensor))
        self.kept.append(kinds[context.count % 3]())


def given(tensor):
    return tensor.__dlpack__(max_version=(1, 0))


class Pools(unittest.TestCase):
    def run_app(self, blocks, count):
        def compose(app):
            nonlocal keep
            keep = Keep(app, name="keep")
            make = Make(app, CountCondition(app, count), name="make", pool=pool(app, blocks))
            chain(make, keep)(app)

        keep = None
        try:
            App(compose).run()
        finally:
            self.kept = keep.kept

    def test_what_is_kept_stays(self):
        self.run_app(6, 5)
        self.assertEqual([t.data % 64 for t in self.kept[::3]], [0, 0])
        self.assertEqual([memoryview(t).cast("B")[0] for t in self.kept[::3]], [0, 3])
        self.assertEqual([view.cast("B")[0] for view in self.kept[1::3]], [1, 4])

    def test_an_exhausted_pool_names_who_keeps(self):
        with self.assertRaises(frag.Error) as raised:
            self.run_app(4, 10)
        self.assertEqual(raised.exception.operator, "App.make")
        self.assertIn('pool "pool" ran out of its 4 blocks', str(raised.exception))
        self.assertEqual(
            str(raised.exception.__cause__),
            "pool has nothing left; tensors in Python: App.keep keeps 4",
        )

    def test_what_is_no_allocator(self):
        app = App(None)
        unused = pool(app, 2)
        with self.assertRaisesRegex(RuntimeError, "does not run"):
            frag.empty(3, allocator=unused)

        class Wrong(Make):
            def compute(self, op_input, op_output, context):
                frag.empty(shape, "uint8", self.pool)

        for shape, sentence in (((257,), "pool"), ((2,) * 9, "8 dimensions")):
            with self.assertRaisesRegex(frag.Error, sentence):
                App(lambda app: app.add_operator(Wrong(app, pool=pool(app, 1)))).run()


class Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class Table(ctypes.Structure):
    _fields_ = [("version", Version), ("previous", ctypes.c_void_p)] + [
        (name, ctypes.c_void_p) for name in ("allocate", "from_object", "to_object", "view", "stream")
    ]


TAKE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
GIVE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype = ctypes.py_object
capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exchange(unittest.TestCase):
    def setUp(self):
        address = pointer(frag.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
        self.table = Table.from_address(address)

    def test_our_table(self):
        self.assertEqual((self.table.version.major, self.table.previous), (1, None))
        tensor, managed, back = filled(), ctypes.c_void_p(), ctypes.py_object()
        self.assertEqual(TAKE(self.table.from_object)(tensor, ctypes.byref(managed)), 0)
        self.assertEqual(GIVE(self.table.to_object)(managed, ctypes.byref(back)), 0)
        got = back.value
        ctypes.pythonapi.Py_DecRef(back)  # that of the table; got has its own
        self.assertEqual((got.data, got.shape, got.dtype), (tensor.data, (2, 3), "int32"))
        self.assertTrue(memoryview(got).readonly)

    def test_tables_of_others(self):
        """Their arrays are taken without a call of __dlpack__."""

        def from_object(array, out):
            array.count += 1
            return TAKE(self.table.from_object)(array.tensor, out)

        class Fast(Exporter):
            count = 0

            def __dlpack__(self, **options):
                raise AssertionError("the table was there")

        class Newer(Fast):
            pass

        function = TAKE(from_object)
        table = Table(Version(1, 9), None, None, ctypes.cast(function, ctypes.c_void_p).value)
        newer = Table(Version(2, 0), ctypes.addressof(table))
        for kind, one in ((Fast, table), (Newer, newer)) * 2:
            kind.__dlpack_c_exchange_api__ = capsule(
                ctypes.addressof(one), b"dlpack_exchange_api", None
            )
            array = kind(filled())
            with Harness(Forward) as harness:
                harness.feed(array)
                harness.tick()
                self.assertEqual(harness.take().data, array.tensor.data)
            self.assertEqual(array.count, 1)

        class Strange(Exporter):
            __dlpack_c_exchange_api__ = "a text"

        array = Strange(filled())
        self.assertEqual(frag.as_tensor(array).data, array.tensor.data)


class Array(Exporter):
    """An array on a GPU of another library, which notes the streams that it is asked for."""

    asked = []

    def __dlpack__(self, **options):
        self.asked.append(options.get("stream"))
        return super().__dlpack__(**options)


class Emits(frag.Operator):
    gpu = 0

    def setup(self, spec):
        spec.output("out")

    def compute(self, op_input, op_output, context):
        self.streams = (context.stream,)
        self.array = Array(frag.empty((8,), gpu=0))
        op_output.emit(self.array)


class Reads(frag.Operator):
    """Hands what it receives to a library that works on these streams."""

    def setup(self, spec):
        spec.input("in")
        self.seen = []

    def compute(self, op_input, op_output, context):
        tensor = op_input.receive("in")
        self.seen.append((tensor.data, tensor.__dlpack_device__(), context.stream is None))
        for stream in (-1, context.stream, 12345, None):
            try:
                tensor.__dlpack__(stream=stream, max_version=(1, 3))
                self.seen.append(stream if stream in (-1, 12345) else "ours")
            except BufferError as error:
                self.seen.append(str(error)[:39])


class OnGpu(Reads):
    gpu = 0


@unittest.skipUnless(FAKE_GPU, "needs the driver of tests (test_python.py runs it with that)")
class Gpu(unittest.TestCase):
    def run_app(self, receiver, sender=Emits):
        def compose(app):
            nonlocal tx, rx
            tx, rx = sender(app, CountCondition(app, 1), name="tx"), receiver(app, name="rx")
            chain(tx, rx)(app)

        tx = rx = None
        Array.asked = []
        App(compose).run()
        return tx, rx

    def test_streams(self):
        tx, rx = self.run_app(OnGpu)
        self.assertEqual((Array.asked[-1],), tx.streams)
        self.assertEqual(rx.seen[0], (tx.array.tensor.data, (2, 0), False))
        refused = "this tensor is written on the stream of"
        self.assertEqual(rx.seen[1:], [-1, "ours", refused, refused])
        tx, rx = self.run_app(Reads)  # receive has waited for the GPU
        self.assertEqual(rx.seen[1:], [-1, "ours", 12345, "ours"])

    def test_an_operator_without_a_stream(self):
        """What it emits comes after the default stream, for which it waits."""

        class NoStream(Emits):
            gpu = None

        tx, rx = self.run_app(OnGpu, sender=NoStream)
        self.assertEqual((tx.streams, Array.asked[-1]), ((None,), 1))
        self.assertEqual(rx.seen[0], (tx.array.tensor.data, (2, 0), False))
        driver = ctypes.CDLL("libcuda.so.1")
        count = driver.fake_cuda_calls(b"cuStreamSynchronize")
        self.assertEqual(frag.as_tensor(Array(tx.array.tensor)).data, tx.array.tensor.data)
        self.assertEqual(driver.fake_cuda_calls(b"cuStreamSynchronize"), count + 1)
        driver.fake_cuda_fail(b"cuStreamSynchronize", 1, 700)
        with self.assertRaisesRegex(frag.Error, "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"):
            frag.as_tensor(Array(tx.array.tensor))
        self.assertEqual(frag.as_tensor(Array(tx.array.tensor)).data, tx.array.tensor.data)

    def test_the_interface_of_arrays_on_gpus(self):
        class Looks(Reads):
            def compute(self, op_input, op_output, context):
                self.seen.append((op_input.receive("in").__cuda_array_interface__, context.stream))

        class LooksOnGpu(Looks):
            gpu = 0

        for receiver in (Looks, LooksOnGpu):
            tx, rx = self.run_app(receiver)
            interface, stream = rx.seen[0]
            self.assertEqual(interface.pop("stream", None), stream)
            self.assertEqual(
                interface,
                {
                    "version": 3,
                    "typestr": "<f4",
                    "shape": (8,),
                    "strides": (4,),
                    "data": (tx.array.tensor.data, True),
                },
            )
        self.assertFalse(hasattr(frag.empty((8,)), "__cuda_array_interface__"))

    def test_streams_of_programs_of_holoscan(self):
        """Each is made once, waited for at the end of a tick, and destroyed with the run."""
        from frag.holoscan import _finder

        _finder.install()
        from holoscan.conditions import CountCondition as HoloscanCount
        from holoscan.core import Application, Operator
        from holoscan.operators import PingRxOp
        from holoscan.resources import CudaStreamPool

        driver = ctypes.CDLL("libcuda.so.1")
        waits = []

        class Tx(Operator):
            def setup(self, spec):
                spec.output("out")

            def compute(self, op_input, op_output, context):
                mine = context.allocate_cuda_stream("mine")
                self.streams = (mine, context.allocate_cuda_stream("other"))
                self.known = [context.device_from_stream(x) for x in (*self.streams, 1, 0, 12345)]
                op_output.set_cuda_stream(mine, "out")
                try:
                    op_output.set_cuda_stream(12345, "out")
                except RuntimeError as error:
                    self.refused = str(error)
                waits.append(driver.fake_cuda_calls(b"cuStreamSynchronize"))
                op_output.emit(1, "out")

        class Rx(PingRxOp):
            def compute(self, op_input, op_output, context):
                waits.append(driver.fake_cuda_calls(b"cuStreamSynchronize"))
                self.value = op_input.receive("in")
                self.streams = (op_input.receive_cuda_stream("in"),
                                op_input.receive_cuda_stream("in", allocate=False),
                                *op_input.receive_cuda_streams("in"))
                self.again = op_input.receive_cuda_stream("in")

        class Both(Application):
            def compose(self):
                self.tx = Tx(self, CudaStreamPool(self, name="own"),
                             HoloscanCount(self, 1), name="tx")
                self.rx = Rx(self, name="rx")
                self.add_flow(self.tx, self.rx)

        app, left = Both(), driver.fake_cuda_left()
        app.run()
        self.assertEqual(app.rx.value, 1)
        self.assertEqual(len({*app.tx.streams, *app.rx.streams, 0}), 5)
        self.assertEqual(app.rx.streams[1:], (1, 1))
        self.assertEqual(app.rx.again, app.rx.streams[0])
        self.assertEqual(app.tx.known, [0, 0, 0, None, None])
        self.assertIn("take one by allocate_cuda_stream", app.tx.refused)
        self.assertEqual(waits[1] - waits[0], 2)
        self.assertEqual(driver.fake_cuda_left(), left)
        self.assertEqual((list(app.tx.resources), list(app.rx.resources)),
                         (["own"], ["rx_stream_pool"]))

    def test_networks_of_programs_of_holoscan(self):
        """They run on the GPU where its ONNX Runtime is, by TensorRT where that is; else on the CPU."""
        from frag.holoscan import _finder

        _finder.install()
        from holoscan.conditions import CountCondition as HoloscanCount
        from holoscan.core import Application, Operator
        from holoscan.operators import InferenceOp
        from holoscan.resources import UnboundedAllocator

        class Tx(Operator):
            def setup(self, spec):
                spec.output("out")

            def compute(self, op_input, op_output, context):
                op_output.emit({"image": frag.empty((1, 3), "float32", gpu=0)}, "out")

        class Rx(Operator):
            def setup(self, spec):
                spec.input("in")

            def compute(self, op_input, op_output, context):
                self.seen = {name: (tuple(x.shape), x.__dlpack_device__()[0])
                             for name, x in op_input.receive("in").items()}

        class Detect(Application):
            def compose(self):
                self.rx = Rx(self, name="rx")
                detect = InferenceOp(
                    self, name="detect", backend="trt", allocator=UnboundedAllocator(self),
                    model_path_map={"m": model}, pre_processor_map={"m": ["image"]},
                    inference_map={"m": ["boxes"]}, cuda_stream_pool=None)
                self.add_flow(Tx(self, HoloscanCount(self, 1), name="tx"), detect)
                self.add_flow(detect, self.rx)

        engine = os.path.join(os.path.dirname(os.environ["LD_LIBRARY_PATH"]), "engine")
        with tempfile.TemporaryDirectory() as folder:
            model, log = os.path.join(folder, "m.onnx"), os.path.join(folder, "log")
            with open(model, "w", encoding="utf-8") as f:
                f.write("engine of tests\ninput image 1 n 3\noutput boxes 1 n 2\n")
            with mock.patch.dict(os.environ, FRAG_ONNXRUNTIME=engine, FRAG_TEST_ENGINE_LOG=log):
                app = Detect()
                app.run()
            self.assertEqual(app.rx.seen, {"boxes": ((1, 2), 2)})
            with open(log, encoding="utf-8") as f:
                self.assertIn("session cuda device_id=0", f.read())

    def test_what_cannot_be(self):
        class NoGpu(Emits):
            gpu = 77

        tensor = self.run_app(Reads)[0].array.tensor
        for use in (
            lambda: memoryview(tensor),
            lambda: tensor.__dlpack__(dl_device=(1, 0), max_version=(1, 0)),
        ):
            with self.assertRaises(BufferError):
                use()
        with self.assertRaises(AttributeError):
            tensor.__array_interface__
        with self.assertRaisesRegex(frag.Error, "77"):
            App(lambda app: app.add_operator(NoGpu(app))).run()


if __name__ == "__main__":
    unittest.main()
