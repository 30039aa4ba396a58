# SPDX-License-Identifier: Apache-2.0
"""holoscan.operators, holoscan.data_loggers and Holoscan's environment variables."""
import array
import contextlib
import gc
import importlib.util
import io
import os
import re
import sys
import tempfile
import types
import unittest
from unittest import mock

import frag
from frag.holoscan import _data_logger, _entities, _environment, _finder, _log, resources
from frag.holoscan._run import Run
from frag.holoscan.operators import _built_in

_finder.install()

from holoscan.conditions import CountCondition, MemoryAvailableCondition  # noqa: E402
from holoscan.core import (  # noqa: E402
    Application, AsyncDataLoggerResource, AsyncQueuePolicy, DataLoggerResource,
    DefaultFragmentService, DLDeviceType, Executor, Fragment, IOSpec, Operator, Resource, Tensor,
    arg_to_py_object, kwargs_to_arglist, py_object_to_arg)
from holoscan.data_loggers import (  # noqa: E402
    AsyncConsoleLogger, BasicConsoleLogger, SimpleTextSerializer)
from holoscan.logger import set_log_pattern  # noqa: E402
from holoscan.operators import (  # noqa: E402
    BayerDemosaicOp, FormatConverterOp, GXFCodeletOp, HolovizOp, InferenceOp, PingRxOp,
    PingTensorRxOp, PingTensorTxOp, PingTxOp, SegmentationPostprocessorOp, VideoStreamRecorderOp,
    VideoStreamReplayerOp)
from holoscan.operators.holoviz import _holoviz_str_to_color_space  # noqa: E402
from holoscan.operators.ping_tx import PingTxOp as PingTxOpOfModule  # noqa: E402
from holoscan.resources import (  # noqa: E402
    BlockMemoryPool, MemoryStorageType, RMMAllocator, UnboundedAllocator)


try:
    import numpy
except ImportError:
    numpy = None


class App(Application):
    def __init__(self, compose):
        super().__init__()
        self.make = compose

    def compose(self):
        self.make(self)


def ping(count, *loggers, metadata=True):
    """An application of a source with metadata and a sink, and the lines on stderr of its run."""
    class Tx(PingTxOp):
        def compute(self, op_input, op_output, context):
            self.metadata["first"] = self.index
            self.metadata["second"] = "b"
            super().compute(op_input, op_output, context)

    def compose(app):
        app.add_flow(Tx(app, CountCondition(app, count), name="tx"), PingRxOp(app, name="rx"))
        for logger in loggers:
            app.add_data_logger(logger(app))

    app = App(compose)
    app.enable_metadata(metadata)
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()) as out:
        app.run()
    return out.getvalue().splitlines(), err.getvalue()


class Kept(DataLoggerResource):
    """A logger of a program."""

    def __init__(self, *args, **kwargs):
        self.lines = []
        super().__init__(*args, **kwargs)

    def log_data(self, data, unique_id, acquisition_timestamp=-1, metadata=None, io_type=None,
                 stream=None):
        self.lines.append((unique_id, data, io_type == IOSpec.IOType.OUTPUT,
                           metadata and dict(metadata.items())))


class KeptAside(Kept, AsyncDataLoggerResource):
    pass


class Loggers(unittest.TestCase):
    def logged(self, cls=Kept, count=1, **options):
        kept = []

        def make(app):
            kept.append(cls(app, **options))
            return kept[0]

        out, _ = ping(count, make)
        self.assertEqual(len(out), count)
        return kept[0].lines

    def test_a_logger_of_a_program(self):
        first = {"first": 1, "second": "b"}
        for cls in (Kept, KeptAside):
            with self.subTest(cls):
                self.assertEqual(self.logged(cls), [
                    ("tx.out", 1, True, first), ("rx.in", 1, False, first)])

    def test_flows_of_an_input_have_numbers(self):
        class Rx(Operator):
            def setup(self, spec):
                spec.input("all", size=IOSpec.ANY_SIZE)

            def compute(self, op_input, op_output, context):
                op_input.receive("all")

        def compose(app):
            rx = Rx(app, name="rx")
            for name in ("a", "b"):
                app.add_flow(PingTxOp(app, CountCondition(app, 1), name=name), rx,
                             {("out", "all")})
            app.kept = Kept(app, log_outputs=False)
            app.add_data_logger(app.kept)

        app = App(compose)
        app.run()
        self.assertEqual([x[0] for x in app.kept.lines], ["rx.all:0", "rx.all:1"])

    def test_operators_in_c(self):
        """An array without a name gets the one that Holoscan gives it."""
        def run(cls, source, takes_map, **options):
            def compose(app):
                app.kept = cls(app, **options)
                app.add_flow(source(app), PingTensorRxOp(
                    app, name="rx", receive_as_tensormap=takes_map))
                app.add_data_logger(app.kept)

            app = App(compose)
            app.run()
            return [(name, x if isinstance(x, Tensor) else {
                key: tensor.shape for key, tensor in x.items()}, is_output)
                for name, x, is_output, _ in app.kept.lines]

        def named(app):
            return PingTensorTxOp(app, CountCondition(app, 1), name="tx", rows=2, columns=3,
                                  tensor_name="x")

        for cls in (Kept, KeptAside):
            self.assertEqual(run(cls, named, True), [("tx.out", {"x": (2, 3)}, True),
                                                     ("rx.in", {"x": (2, 3)}, False)])
        gc.collect()
        self.assertEqual(len(_data_logger._runs), 0)
        self.assertEqual(run(Kept, named, True, allowlist_patterns=["^rx"])[0][0], "rx.in")
        self.assertEqual(run(Kept, named, True, log_inputs=False)[0][0], "tx.out")

        class Unnamed(Operator):
            def setup(self, spec):
                spec.output("out")

            def compute(self, op_input, op_output, context):
                op_output.emit({"": frag.empty((4,), "uint8")}, "out")

        def unnamed(app):
            return Unnamed(app, CountCondition(app, 1), name="tx")

        self.assertEqual(run(Kept, unnamed, True)[1][1], {"#numpy: tensor": (4,)})
        (_, single, _), = run(Kept, unnamed, False, log_outputs=False)
        self.assertEqual(single.shape, (4,))

    def test_what_is_chosen(self):
        ids = {"log_outputs": ["rx.in"], "log_inputs": ["tx.out"]}
        for option, expected in ids.items():
            self.assertEqual([x[0] for x in self.logged(**{option: False})], expected)
        self.assertEqual(self.logged(log_metadata=False)[0][3], None)
        self.assertEqual([x[0] for x in self.logged(allowlist_patterns=["^r"])], ["rx.in"])
        self.assertEqual([x[0] for x in self.logged(denylist_patterns=["out"])], ["rx.in"])
        self.assertEqual(self.logged(allowlist_patterns=["tx"], denylist_patterns=["tx"]), [])

    def test_a_logger_that_fails_fails_nothing(self):
        class Failing(DataLoggerResource):
            def log_data(self, *message):
                raise ValueError("the disk is full")

        out, err = ping(2, Failing)
        self.assertEqual(out, ["Rx message value: 1", "Rx message value: 2"])
        self.assertEqual(err.count("tx.out was not logged: the disk is full"), 2)

    def test_a_full_queue(self):
        for policy, is_reported in (("reject", False), (AsyncQueuePolicy.RAISE, True)):
            def make(app, policy=policy):
                return KeptAside(app, max_queue_size=0, queue_policy=policy)

            out, err = ping(1, make)
            self.assertEqual(out, ["Rx message value: 1"])
            self.assertEqual("Exception during data enqueueing" in err, is_reported, err)
            self.assertIn("entries: 0", err)

    def test_lines_of_the_console(self):
        def console(cls, **options):
            return lambda app: cls(app, **options)

        for cls in (BasicConsoleLogger, AsyncConsoleLogger):
            _, err = ping(2, console(cls))
            name = cls.__name__
            self.assertRegex(err, name + r"\[ID:tx.out\]\[Acquisition Timestamp:-1\]"
                             r"\[Emit Timestamp:\d+\]\[Category:Message \(std::any\)\].* "
                             r"Python\(int\): 2\nMetadataDictionary\(size=2\) \{'second': "
                             r"Python\(str\): 'b', 'first': Python\(int\): 2\}\n")
            self.assertRegex(err, name + r"\[ID:rx.in\].*\[Receive Timestamp:")
        _, err = ping(1, lambda app: BasicConsoleLogger(app, SimpleTextSerializer(
            app, log_python_object_contents=False, max_metadata_items=1)))
        self.assertIn("Python Object\nMetadataDictionary(size=2) {'second': Python Object, "
                      "... (1 more)}", err)

    def test_lists_about_as_long_as_their_limit(self):
        for limit in (0, 2):
            texts = SimpleTextSerializer(Application(), max_elements=limit,
                                         max_metadata_items=limit)
            for count, more in ((max(limit - 1, 0), ""), (limit, ""),
                                (limit + 1, "... (1 more)"), (limit + 2, "... (2 more)")):
                made = [texts.metadata({"k%d" % i: i for i in range(count)})]
                if importlib.util.find_spec("numpy"):
                    made.append(texts.tensor(Tensor(numpy.full(count, 7, "uint8")), True))
                for text in made:
                    with self.subTest(text, limit=limit):
                        self.assertEqual("".join(re.findall(r"\.\.\..*more\)", text)), more)
                        self.assertEqual(len(re.findall(r"'k\d'|\b7\b", text)), min(count, limit))

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "numpy is not installed")
    def test_contents_of_tensors_wait_in_the_queue_for_large_ones(self):
        app = Application()
        tensor = Tensor(numpy.full(3, 7, "uint8"))
        without = {"enable_large_data_queue": False}
        for data, options, is_large in ((tensor, {}, True), ({"a": tensor}, {}, True),
                                        (7, {}, False), (tensor, without, False)):
            logger = AsyncConsoleLogger(app, **options)
            with contextlib.redirect_stderr(io.StringIO()) as err:
                logger._take(data, "tx.out", -1, None, True, None)
                logger._finish()
            self.assertEqual("data=[7, 7, 7]" in err.getvalue(), is_large, err.getvalue())


class Operators(unittest.TestCase):
    def setUp(self):
        self.app = Application()
        self.pool = UnboundedAllocator(self.app)

    def test_arguments_become_parameters(self):
        self.assertIs(PingTxOp, PingTxOpOfModule)
        op = FormatConverterOp(self.app, CountCondition(self.app, 2), pool=self.pool,
                               out_dtype="rgb888", resize_width=64, name="fmt")
        self.assertEqual((op.name, len(op.args), len(op.conditions)), ("fmt", 12, 1))
        parameters = op._native_parameters()
        self.assertEqual((parameters["resize_width"], parameters["resize_height"],
                          parameters["pool"], parameters["scale_max"]), (64, 0, self.pool, 1.0))
        self.assertNotIn("out_channel_order", parameters)
        for dtype, name in (("uint16_t", "uint16_t"), (float, "float"),
                            (type("dtype", (), {"name": "complex64"})(), "complex<float>")):
            op = PingTensorTxOp(self.app, columns=None, dtype=dtype)
            self.assertEqual(op._native_parameters()["data_type"], name)
            self.assertEqual(op._native_parameters()["columns"], 0)
        op = InferenceOp(self.app, backend="onnxrt", allocator=self.pool, model_path_map={"m": "f"},
                         pre_processor_map={"m": "in"}, inference_map={"m": ["out"]})
        self.assertEqual(op._native_parameters()["pre_processor_map"], {"m": ["in"]})

    def test_where_networks_run(self):
        given = dict(allocator=self.pool, model_path_map={"m": "f"}, pre_processor_map={"m": "in"},
                     inference_map={"m": ["out"]}, device_map={"m": "1"})

        def parameters(engine, has_gpu=True, has_tensorrt=False, **more):
            with mock.patch.object(_built_in, "has_gpu", lambda: has_gpu), \
                    mock.patch.object(_built_in, "_has_tensorrt", lambda: has_tensorrt), \
                    mock.patch.dict(os.environ, FRAG_ONNXRUNTIME=engine), \
                    contextlib.redirect_stderr(io.StringIO()) as err:
                made = InferenceOp(self.app, **{**given, **more})._native_parameters()
            self.assertEqual("run on the CPU, because neither FRAG_ONNXRUNTIME nor" in err.getvalue(),
                             has_gpu and engine == "" and not more.get("infer_on_cpu"))
            return [made.get(key) for key in ("backend", "provider", "infer_on_cpu",
                                              "enable_cuda_graphs", "device_map")]

        device = {"m": "1"}
        with tempfile.TemporaryDirectory() as engine:
            open(os.path.join(engine, "libonnxruntime_providers_cuda.so"), "w").close()
            for backend in ("trt", "onnxrt", "torch"):
                self.assertEqual(parameters(engine, backend=backend),
                                 [backend, "cuda", False, None, device])
                self.assertEqual(parameters(engine, backend=backend, has_tensorrt=True),
                                 [backend, None, False, None, device])
                on_cpu = [None, None, None, True, None]
                self.assertEqual(parameters("", backend=backend), on_cpu)
                self.assertEqual(parameters(engine, has_gpu=False, backend=backend), on_cpu)
                self.assertEqual(parameters(engine, backend=backend, infer_on_cpu=True), on_cpu)
            # where nothing is named, the operator looks beside its own libraries, and nowhere else
            with mock.patch.object(_built_in._frag, "library_folder", lambda *names: engine):
                self.assertTrue(_built_in._has_provider("cuda"))
                self.assertFalse(_built_in._has_provider("tensorrt"))
            before = os.getcwd()
            os.chdir(engine)
            try:
                self.assertEqual(parameters("", backend="trt"), on_cpu)
            finally:
                os.chdir(before)

    def test_blocks_of_a_gpu_are_in_host_memory_without_one(self):
        pool = BlockMemoryPool(self.app, MemoryStorageType.DEVICE, 64, 2)
        host = BlockMemoryPool(self.app, MemoryStorageType.HOST, 64, 2)
        for has_gpu, storage in ((True, 1), (False, 2)):
            with mock.patch.object(resources, "has_gpu", lambda answer=has_gpu: answer), \
                    contextlib.redirect_stderr(io.StringIO()) as err:
                self.assertEqual(pool._declare()["storage_type"], storage)
                self.assertEqual(host._declare()["storage_type"], 0)
            self.assertEqual("this machine has no GPU" in err.getvalue(), not has_gpu)

    def test_layers(self):
        op = HolovizOp(self.app, tensors=[{"name": "a", "type": "lines", "color": [1, 0, 0, 1]}],
                       width=64)
        parameters = op._native_parameters()
        self.assertEqual(parameters["width"], 64)
        self.assertEqual(parameters["tensors"][0]["color"], [1, 0, 0, 1])
        layer = HolovizOp.InputSpec("a", "depth_map")
        layer.depth_map_render_mode = HolovizOp.DepthMapRenderMode.LINES
        layer.views = [HolovizOp.InputSpec.View()]
        layer.views[0].width = 0.5
        parameters = HolovizOp(self.app, tensors=[layer],
                               camera_eye=(0, 0, 2))._native_parameters()
        self.assertEqual(parameters["camera_eye"], [0, 0, 2])
        self.assertEqual(parameters["tensors"][0]["depth_map_render_mode"], "lines")
        self.assertEqual(parameters["tensors"][0]["views"],
                         [{"offset_x": 0.0, "offset_y": 0.0, "width": 0.5, "height": 1.0}])
        self.assertEqual(_holoviz_str_to_color_space["auto"], HolovizOp.ColorSpace.AUTO)
        for wrong in ({"name": "a"}, {"name": "a", "type": "lines", "color": "red"},
                      {"name": "a", "type": "lines", "size": 3},
                      {"name": "a", "type": "color", "image_format": "none"}):
            with self.assertRaises(ValueError):
                HolovizOp(self.app, tensors=[wrong])

    def test_tensors_go_through_an_operator_in_c(self):
        """Both ways, between operators in Python; "" names the only port."""
        shapes = []

        class Tx(Operator):
            def setup(self, spec):
                spec.output("out")

            def compute(self, op_input, op_output, context):
                self.metadata["frame"] = 7
                op_output.emit({"frame": frag.empty((2, 4, 3), "uint8")}, "out")

        class Rx(Operator):
            def setup(self, spec):
                spec.input("in")

            def compute(self, op_input, op_output, context):
                shapes.extend((name, tuple(x.shape)) for name, x in op_input.receive("in").items())

        def compose(app):
            tx = Tx(app, CountCondition(app, 1), name="tx")
            converter = FormatConverterOp(
                app, pool=UnboundedAllocator(app), out_dtype="float32", in_tensor_name="frame",
                out_tensor_name="half", resize_width=2, resize_height=1)
            app.add_flow(tx, converter, {("", "source_video")})
            app.add_flow(converter, Rx(app, name="rx"), {("tensor", "")})

        app = App(compose)
        app.run()
        self.assertEqual(shapes, [("half", (1, 2, 3))])
        graph = Run(App(compose)).graph.to_yaml()
        self.assertRegex(graph, r'format_converter.*"metadata_policy": "update"')

    @unittest.skipUnless(numpy, "needs numpy")
    def test_failures_have_holoscans_words(self):
        """Frag's sentence stands before them; what is right fails nowhere."""
        class Tx(Operator):
            def setup(self, spec):
                spec.output("out")

            def compute(self, op_input, op_output, context):
                op_output.emit({"frame": self.array}, "out")

        def run(cls, array, **options):
            def compose(app):
                tx = Tx(app, CountCondition(app, 1), name="tx")
                tx.array = array
                op = cls(app, in_tensor_name="frame", name="op", **options)
                app.add_flow(tx, op, {("out", next(iter(op.spec.inputs)))})
                app.add_flow(op, PingTensorRxOp(app, name="rx"))

            App(compose).run()

        def converter(shape, order="C"):
            return lambda: run(FormatConverterOp, numpy.zeros(shape, "uint8", order),
                               pool=self.pool, in_dtype="rgba8888", out_dtype="rgb888")

        def masks(dtype, order="C"):
            return lambda: run(SegmentationPostprocessorOp, numpy.zeros((8, 9, 2), dtype, order),
                               allocator=self.pool)

        def bayer(order):
            return lambda: run(BayerDemosaicOp, numpy.zeros((8, 10), "uint8", order),
                               pool=self.pool)

        for words, wrong, right in (
                ("Tensor is expected to be in a C-contiguous memory layout",
                 converter((8, 9, 4), "F"), converter((8, 9, 4))),
                ("Expected a tensor with 2 or 3 dimensions", converter((4,)), None),
                ("Failed to verify the channels for the expected input dtype",
                 converter((8, 9, 3)), None),
                ("Failed to verify the channels for the expected input dtype",
                 converter((8, 9, 5)), None),
                ("Input tensor must be of type float32", masks("uint8"), masks("float32")),
                ("Input tensor must have row-major memory layout", masks("float32", "F"), None),
                ("Tensor must have a row-major memory layout", bayer("F"), bayer("C"))):
            with self.subTest(words), contextlib.redirect_stderr(io.StringIO()) as err:
                with self.assertRaisesRegex(RuntimeError, r"^fragment\.op: .+ \(%s\)$" % words):
                    wrong()
                self.assertIn("(%s)" % words, err.getvalue())
            with contextlib.redirect_stderr(io.StringIO()) as err:
                if right is not None:
                    right()
            self.assertNotIn("error", err.getvalue())

    def test_pictures_are_shown(self):
        """The wheel has the viewer too."""
        class Tx(Operator):
            def setup(self, spec):
                spec.output("out")

            def compute(self, op_input, op_output, context):
                op_output.emit({"": frag.empty((4, 6, 3), "uint8")}, "out")

        def compose(app):
            app.add_flow(Tx(app, CountCondition(app, 2), name="tx"),
                         HolovizOp(app, name="viz", headless=True), {("out", "receivers")})

        App(compose).run()

    def test_layers_come_with_messages(self):
        """As in Holoviz: behind those of the operator, for the picture of this tick."""
        def picture(colors, tensors=()):
            """The file after ticks of which each sends a layer of this colour; None: none."""
            class Tx(Operator):
                def setup(self, spec):
                    spec.output("outputs")
                    spec.output("output_specs")

                def compute(self, op_input, op_output, context):
                    frame, box = frag.empty((8, 8, 3), "uint8"), frag.empty((1, 4), "float32")
                    memoryview(frame).cast("B")[:] = bytes(8 * 8 * 3)
                    memoryview(box).cast("B")[:] = array.array("f", [0, 0, 1, 1]).tobytes()
                    op_output.emit({"": frame, "box": box}, "outputs")
                    color = colors.pop(0)
                    if color is not None:
                        spec = HolovizOp.InputSpec("box", "rectangles")
                        spec.color = color
                        text = HolovizOp.InputSpec("box", HolovizOp.InputType.UNKNOWN)
                        op_output.emit([spec, text], "output_specs")

            class Shows(HolovizOp):
                def _native_parameters(self):
                    return {**super()._native_parameters(), "path": path}

            def compose(app):
                tx = Tx(app, CountCondition(app, len(colors)), name="tx")
                holoviz = Shows(app, name="viz", headless=True,
                                tensors=[{"name": "", "type": "color"}, *tensors])
                app.add_flow(tx, holoviz, {("outputs", "receivers")})
                app.add_flow(tx, holoviz, {("output_specs", "input_specs")})

            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "picture.png")
                App(compose).run()
                with open(path, "rb") as file:
                    return file.read()

        red, green = [1.0, 0, 0, 1.0], (0, 1, 0, 0.5)
        layer = {"name": "box", "type": "rectangles"}
        pictures = [picture([None], [{**layer, "color": color}]) for color in (red, green)]
        self.assertEqual(picture([green, red]), pictures[0])
        self.assertEqual(picture([red, green]), pictures[1])
        self.assertEqual(picture([red, None]), picture([None]))
        self.assertEqual(len({picture([None]), *pictures}), 3)
        for wrong, sentence in (([{"name": "box", "type": "lines", "opacity": 2}], "from 0 to 1"),
                                ([{"name": "none", "type": "lines"}], '"none"'),
                                ("box", "takes a list of HolovizOp.InputSpec")):
            class Wrong(Operator):
                def setup(self, spec):
                    spec.output("outputs")
                    spec.output("output_specs")

                def compute(self, op_input, op_output, context):
                    op_output.emit({"": frag.empty((8, 8, 3), "uint8")}, "outputs")
                    op_output.emit(wrong, "output_specs")

            def refused(app):
                tx = Wrong(app, CountCondition(app, 1), name="tx")
                holoviz = HolovizOp(app, name="viz", headless=True)
                app.add_flow(tx, holoviz, {("outputs", "receivers")})
                app.add_flow(tx, holoviz, {("output_specs", "input_specs")})

            with contextlib.redirect_stderr(io.StringIO()) as err, \
                    self.assertRaises(Exception) as raised:
                App(refused).run()
            self.assertIn(sentence, str(raised.exception) + err.getvalue())

    def test_what_the_wheel_lacks(self):
        class Shows(PingTensorRxOp):
            _native_type = "nothing_like_it"

        def compose(app):
            app.add_flow(PingTensorTxOp(app, CountCondition(app, 1), name="tx"),
                         Shows(app, name="rx"))

        with contextlib.redirect_stderr(io.StringIO()), self.assertRaisesRegex(
                RuntimeError, r"Shows of .*test_holoscan_operators.py:\d+ needs an installed frag"):
            App(compose).run()

    def test_memory_of_an_rmm_allocator_is_always_there(self):
        """Holoscan does not know how much of it is free."""
        rmm = RMMAllocator(self.app)
        with contextlib.redirect_stderr(io.StringIO()) as err:
            condition = MemoryAvailableCondition(self.app, rmm, min_bytes=5)
            self.assertEqual((condition._frag_type, condition._declare()),
                             ("boolean", {"enable_tick": True}))
        self.assertIn("[warning]", err.getvalue())
        condition = MemoryAvailableCondition(self.app, self.pool, min_bytes=5)
        self.assertEqual((condition._frag_type, condition._declare()),
                         ("memory_available", {"allocator": self.pool, "min_bytes": 5}))

    def test_what_only_a_running_application_has(self):
        op = HolovizOp(self.app)
        with self.assertRaisesRegex(RuntimeError, "initialized when their application starts"):
            op.initialize()
        arg, = [arg for arg in op.args if arg.name == "render_buffer_input"]
        with self.assertRaisesRegex(RuntimeError, "has no value in Python"):
            arg_to_py_object(arg)
        self.assertIsNone(Executor(self.app).context)
        self.assertIsNotNone(self.app.executor.context)

    def test_later_arguments_count_more(self):
        op = FormatConverterOp(self.app, pool=self.pool, out_dtype="rgb888", resize_width=7)
        op.add_arg(resize_width=400, alpha_value=9)
        op.add_arg(kwargs_to_arglist(resize_height=200), py_object_to_arg(300, "resize_width"))
        parameters = op._native_parameters()
        self.assertEqual([parameters[key] for key in (
            "resize_width", "resize_height", "alpha_value", "out_dtype")], [300, 200, 9, "rgb888"])

    def test_resources_by_name_are_no_arguments(self):
        op = Operator(self.app, a=5, pool=self.pool)
        self.assertEqual(([arg.name for arg in op.args], op.resources), (
            ["a"], {"pool": self.pool}))

    def test_bayer_patterns(self):
        """By NPP's numbers; each has its red pixel elsewhere."""
        class Tx(Operator):
            def setup(self, spec):
                spec.output("out")

            def compute(self, op_input, op_output, context):
                frame = frag.empty((4, 4), "uint8")
                memoryview(frame).cast("B")[:] = bytes((200, 0, 0, 0, 0, 0, 0, 0) * 2)
                op_output.emit({"": frame}, "out")

        class Rx(Operator):
            def setup(self, spec):
                spec.input("in")

            def compute(self, op_input, op_output, context):
                frame = op_input.receive("in")[""]
                self.fragment.seen = (frame.shape, bytes(frame._source))

        for position, channel, alpha in ((0, 2, False), (1, 0, True), (2, 1, False), (3, 1, True)):
            def compose(app):
                op = BayerDemosaicOp(app, pool=UnboundedAllocator(app), bayer_grid_pos=position,
                                     generate_alpha=alpha, alpha_value=77)
                app.add_flow(Tx(app, CountCondition(app, 1)), op, {("out", "receiver")})
                app.add_flow(op, Rx(app), {("transmitter", "in")})

            app = App(compose)
            app.run()
            shape, data = app.seen
            self.assertEqual(shape, (4, 4, 3 + alpha))
            self.assertEqual(data[channel], 200)
            self.assertEqual([data[i] for i in range(3) if i != channel], [0, 0])
            self.assertEqual(data[3] if alpha else 77, 77)

    def test_names_and_wrong_arguments(self):
        names = {Operator(self.app).name for _ in range(2)}
        self.assertEqual(len(names), 2)
        self.assertRegex(names.pop(), r"^unnamed_operator_\d+$")
        self.assertEqual(Operator(self.app, name="a").name, "a")
        with self.assertRaisesRegex(RuntimeError, "belongs to one fragment"):
            Operator(self.app, self.app)
        HolovizOp(self.app).default_window_close_callback()

    def test_a_resource_is_a_service(self):
        class Pool(Resource):
            pass

        pool, other = Pool(self.app, name="pool"), Pool(self.app, name="other")
        self.app.register_service(pool)
        self.app.register_service(other)
        op = Operator(self.app)
        for found in (op.service(Pool, "pool"), op.service(DefaultFragmentService, "pool").resource):
            self.assertIs(found, pool)
        self.assertIs(op.service(DefaultFragmentService, "other").resource, other)
        self.assertIsNone(op.service(DefaultFragmentService, "none"))

    def test_maps_of_ports(self):
        class Rx(Operator):
            def setup(self, spec):
                spec.input("all", size=IOSpec.ANY_SIZE)

        for fragment, prefix in ((self.app, ""), (Fragment(self.app, "f"), "f.")):
            rx, one = Rx(fragment, name="rx"), PingRxOp(fragment, name="one")
            for name in ("b", "a"):
                tx = PingTxOp(fragment, name=name)
                fragment.add_flow(tx, rx, {("out", "all")})
                fragment.add_flow(tx, one)
            maps = fragment.graph.get_port_connectivity_maps()
            inputs, outputs = ({name.replace("@", prefix): [x.replace("@", prefix) for x in names]
                                for name, names in ports.items()} for ports in (
                {"@one.in": ["@a.out", "@b.out"], "@rx.all:0": ["@b.out"],
                 "@rx.all:1": ["@a.out"]},
                {"@a.out": ["@one.in", "@rx.all:1"], "@b.out": ["@one.in", "@rx.all:0"]}))
            self.assertEqual(maps, (inputs, outputs))
            self.assertEqual([list(ports) for ports in maps], [list(inputs), list(outputs)])

    def test_exports_of_tensors(self):
        tensor = Tensor.as_tensor(frag.empty((2, 2), "uint8"))
        cpu, gpu = DLDeviceType.DLCPU, DLDeviceType.DLCUDA
        for given in ({}, {"copy": False}, {"max_version": (1, 0)}, {"dl_device": (cpu, 0)}):
            self.assertIn("dltensor", repr(tensor.__dlpack__(**given)))
        for error, given in ((BufferError, {"copy": True}), (BufferError, {"dl_device": (gpu, 0)}),
                             (ValueError, {"copy": "no"}), (ValueError, {"dl_device": (1, 0)}),
                             (ValueError, {"max_version": 1.0})):
            with self.assertRaises(error):
                tensor.__dlpack__(**given)

    def test_what_frag_has_not(self):
        here = r"test_holoscan_operators.py:\d+: "
        turned = HolovizOp.InputSpec("a", "points_3d")
        turned.views = [HolovizOp.InputSpec.View()]
        turned.views[0].matrix = range(16)
        for op, sentence in (
                (BayerDemosaicOp(self.app, pool=self.pool, interpolation_mode=4),
                 "interpolation_mode=4"),
                (BayerDemosaicOp(self.app, pool=self.pool, bayer_grid_pos=4), "0 to 3 are"),
                (HolovizOp(self.app, tensors=[turned]), "View.matrix"),
                (HolovizOp(self.app, key_callback=print), "key_callback"),
                (HolovizOp(self.app, enable_render_buffer_output=True),
                 "use the operator draw of frag"),
                (VideoStreamReplayerOp(self.app, directory=".", basename="a", batch_size=2),
                 "batch_size=2")):
            with self.assertRaisesRegex(RuntimeError, here + ".*" + sentence):
                op._native_parameters()
        with self.assertRaisesRegex(RuntimeError, here + "GXFCodeletOp is not supported"):
            GXFCodeletOp(self.app, "nvidia::gxf::Ping")


@unittest.skipUnless(importlib.util.find_spec("numpy"), "numpy is not installed")
class Recordings(unittest.TestCase):
    """Files of VideoStreamRecorderOp, which Holoscan's reads too."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def play(self, **options):
        """The sum of each frame that the operator plays."""
        seen = []

        class Rx(Operator):
            def setup(self, spec):
                spec.input("in")

            def compute(self, op_input, op_output, context):
                frame = op_input.receive("in")["frame"]
                seen.append((tuple(frame.shape), int(numpy.asarray(frame).sum())))

        def compose(app):
            app.add_flow(VideoStreamReplayerOp(app, directory=self.folder, basename="video",
                                               **options), Rx(app, name="rx"))

        App(compose).run()
        return seen

    def record(self, count=3):
        class Tx(Operator):
            def setup(self, spec):
                spec.output("out")
                self.number = 0

            def compute(self, op_input, op_output, context):
                self.number += 1
                frame = numpy.asfortranarray(numpy.full((2, 3), self.number, "uint8"))
                frame[0, 1] = 0
                op_output.emit({"frame": frame}, "out")

        def compose(app):
            app.add_flow(Tx(app, CountCondition(app, count), name="tx"),
                         VideoStreamRecorderOp(app, directory=self.folder, basename="video"))

        App(compose).run()

    def test_what_was_recorded_is_played(self):
        self.record()
        self.assertEqual(sorted(os.listdir(self.folder)), ["video.gxf_entities", "video.gxf_index"])
        frames = [((2, 3), 5 * number) for number in (1, 2, 3)]
        self.assertEqual(self.play(), frames)
        self.assertEqual(self.play(count=2), frames[:2])
        self.assertEqual(self.play(realtime=False, repeat=True, count=5), frames + frames[:2])
        with self.assertRaisesRegex(RuntimeError, "batch_size=2"):
            self.play(batch_size=2)

    def test_a_link_that_somebody_planted_is_replaced(self):
        kept = os.path.join(self.folder, "kept")
        with open(kept, "w") as file:
            file.write("kept")
        for end in ("index", "entities"):
            os.symlink(kept, os.path.join(self.folder, "video.gxf_" + end))
        self.record()
        self.assertEqual(sorted(os.listdir(self.folder)), ["kept", "video.gxf_entities", "video.gxf_index"])
        with open(kept) as file:
            self.assertEqual(file.read(), "kept")
        self.assertEqual(len(self.play()), 3)
        self.record(1)  # in place of what was recorded before
        self.assertEqual(len(self.play()), 1)

    def test_rows_lie_one_after_the_other(self):
        self.record(1)
        with _entities.Reader(self.folder, "video")._file as file:
            self.assertEqual(file.read()[-6:], bytes([1, 0, 1, 1, 1, 1]))

    def test_damaged_files(self):
        self.record()
        path = os.path.join(self.folder, "video.gxf_entities")
        with open(path, "rb") as file:
            good = file.read()
        size = len(good) // 3
        at = {"count": 24, "type": 40 + 8, "name": 40 + 24, "rank": 40 + 32 + 5 + 16,
              "side": 40 + 32 + 5 + 20, "end": None}
        for what, offset in at.items():
            with self.subTest(what), open(path, "wb") as file:
                bad = bytearray(good if offset else good[:-1])
                if offset:
                    bad[size + offset:size + offset + 3] = b"\xff\xff\xff"
                file.write(bad)
                file.flush()
                with contextlib.redirect_stderr(io.StringIO()) as err:
                    played = self.play(realtime=False)
                left = [((2, 3), 5), ((2, 3), 15)] if offset else [((2, 3), 5), ((2, 3), 10)]
                self.assertEqual(played, left)
                self.assertIn("is damaged", err.getvalue())
                with self.assertRaisesRegex(ValueError, "is damaged"), \
                        contextlib.redirect_stderr(io.StringIO()):
                    self.play(ignore_corrupted_entities=False)

    def test_tensors_of_a_gpu_are_played_there(self):
        """Where there is none, in memory of the system."""
        class OnGpu(numpy.ndarray):
            __cuda_array_interface__ = {}

        writer = _entities.Writer(self.folder, "video")
        writer.write({"gpu": numpy.ones(3, "uint8").view(OnGpu), "cpu": numpy.ones(2)}, 0)
        writer.close()
        reader = _entities.Reader(self.folder, "video")
        self.addCleanup(reader.close)
        for is_there, expected in ((True, "of 3"), (False, "[1, 1, 1]")):
            cupy = types.SimpleNamespace(asarray=lambda array: "of %d" % array.sum())
            with mock.patch.object(_entities, "has_gpu", lambda: is_there), \
                    mock.patch.dict(sys.modules, cupy=cupy):
                tensors = reader.read(0)
            played = tensors["gpu"]
            self.assertEqual(str(getattr(played, "tolist", lambda: played)()), expected)
            self.assertEqual(tensors["cpu"].tolist(), [1, 1])

    def test_what_no_file_holds(self):
        writer = _entities.Writer(self.folder, "video")
        for array in (numpy.zeros(2, "complex64"), numpy.zeros([1] * 9, "uint8")):
            with self.assertRaisesRegex(ValueError, "tensor 'a' is .* dimensions, and a file"):
                writer.write({"a": array}, 0)
        writer.write({"a": numpy.zeros([1] * 8, "uint8")}, 0)
        writer.close()
        reader = _entities.Reader(self.folder, "video")
        self.addCleanup(reader.close)
        self.assertEqual(reader.read(0)["a"].shape, (1,) * 8)


class Variables(unittest.TestCase):
    def given(self, **variables):
        return mock.patch.dict(os.environ, {"HOLOSCAN_" + k: v for k, v in variables.items()})

    def test_of_the_scheduler(self):
        self.assertEqual(_environment.scheduler(), {})
        with self.given(STOP_ON_DEADLOCK="off", MAX_DURATION_MS="250",
                        STOP_ON_DEADLOCK_TIMEOUT="30", CHECK_RECESSION_PERIOD_MS="2.4"):
            self.assertEqual(_environment.scheduler(), {"scheduler": {
                "type": "event_based", "stop_on_deadlock": False, "max_duration_ms": 250,
                "stop_on_deadlock_timeout_ms": 30, "check_recession_period_ms": 2}})
        with self.given(STOP_ON_DEADLOCK="1", STOP_ON_DEADLOCK_TIMEOUT="-1"):
            self.assertEqual(_environment.scheduler()["scheduler"]["stop_on_deadlock"], False)
        for name, texts, key, value in (
                ("MAX_DURATION_MS", "0 1", "max_duration_ms", 1),
                ("MAX_DURATION_MS", "-1", None, None),
                ("STOP_ON_DEADLOCK", "false 0 OFF no", "stop_on_deadlock", False),
                ("STOP_ON_DEADLOCK", "true 1 on", "stop_on_deadlock", True),
                ("STOP_ON_DEADLOCK_TIMEOUT", "-1 -30", "stop_on_deadlock", False),
                ("STOP_ON_DEADLOCK_TIMEOUT", "1", "stop_on_deadlock_timeout_ms", 1),
                ("STOP_ON_DEADLOCK_TIMEOUT", "0", None, None),
                ("CHECK_RECESSION_PERIOD_MS", "0.2 1", "check_recession_period_ms", 1),
                ("CHECK_RECESSION_PERIOD_MS", "0", None, None)):
            for text in texts.split():
                with self.subTest(name, text=text), self.given(**{name: text}):
                    section = _environment.scheduler().get("scheduler", {"type": "event_based"})
                    expected = {"type": "event_based", **({key: value} if key else {})}
                    self.assertEqual(section, expected)
        with self.given(MAX_DURATION_MS="soon"), contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(_environment.scheduler(), {})
        self.assertIn("Invalid value for HOLOSCAN_MAX_DURATION_MS: soon", err.getvalue())

    def test_a_limit_of_time_ends_an_application_of_fragments(self):
        def compose(app):
            for name in ("one", "two"):
                fragment = Fragment(app, name)
                fragment.compose = lambda f=fragment: f.add_flow(
                    PingTxOp(f, name="tx"), PingRxOp(f, name="rx"))
                app.add_fragment(fragment)

        with self.given(MAX_DURATION_MS="30"), contextlib.redirect_stdout(io.StringIO()) as out:
            App(compose).run()
        self.assertIn("Rx message value: 1\n", out.getvalue())

    @unittest.skipUnless(importlib.util.find_spec("yaml"), "pyyaml is not installed")
    def test_a_configuration(self):
        for begin in ("", "%YAML 1.2\n# a comment\n", "%YAML 1.2\n---\n"):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file, \
                    self.given(CONFIG_PATH=file.name):
                file.write(begin + "rx: {gain: 3}\n")
                file.flush()
                app = Application(["python3", "app.py"])
                app.config("/nothing/like/it.yaml")
                self.assertEqual(app.kwargs("rx"), {"gain": 3})
                app = Application(["python3", "app.py", "--config", "/nothing.yaml"])
                self.assertEqual(app.kwargs("rx"), {})

    def test_of_queues_and_folders(self):
        for text, policy in (("", "fail"), ("POP", "pop"), ("reject", "reject"), ("x", "fail")):
            with self.given(QUEUE_POLICY=text), contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(_environment.queue_policy(), policy)
        folder, name = os.path.split(os.path.dirname(os.path.abspath(__file__)))
        with self.given(INPUT_PATH=folder):
            self.assertEqual(_environment.input_path(name + "/nothing"), name + "/nothing")
            self.assertEqual(_environment.input_path("../" + name)[-len(name):], name)

    def test_others_are_named_once(self):
        with mock.patch.object(_environment, "_warned", False), \
                self.given(UCX_PORTS="1", LOG_LEVEL="INFO"), \
                contextlib.redirect_stderr(io.StringIO()) as err:
            _environment.warn_of_others()
            _environment.warn_of_others()
        self.assertEqual(err.getvalue().count("frag does not use HOLOSCAN_UCX_PORTS;"), 1)
        self.assertNotIn("LOG_LEVEL", err.getvalue())

    def test_lines_of_the_log(self):
        for pattern, form in (
                ("", r"^\[warning\] \[holoscan\] text$"), ("short", r"^\[warning\] text$"),
                ("%L|%n|%v|%s:%#|%%|%e",
                 r"^W\|holoscan\|text\|test_holoscan_operators.py:\d+\|%\|\d{3}$"),
                ("LONG", r"^\[\d{4}-\d\d-\d\d [\d:]{8}\.\d{3}\] \[holoscan\] \[warning\] \[")):
            with mock.patch.object(_log, "pattern", ""), \
                    contextlib.redirect_stderr(io.StringIO()) as err:
                set_log_pattern(pattern)
                _log.warning("text")
            self.assertRegex(err.getvalue().rstrip("\n"), form)
        with self.given(LOG_FORMAT="SHORT"), mock.patch.object(_log, "pattern", ""):
            set_log_pattern("%v")
            self.assertEqual(_log.pattern, "SHORT")


if __name__ == "__main__":
    unittest.main()
