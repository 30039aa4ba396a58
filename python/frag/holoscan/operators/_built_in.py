# SPDX-License-Identifier: Apache-2.0
"""holoscan.operators: those that are operators of frag, with Holoscan's arguments and defaults."""
import ctypes
import functools
import os
import time

from .. import _entities, _environment, _log
from frag import _frag
from .._gpu import has_gpu
from .._operator import Operator
from .._tensor import as_array, is_tensor_like
from ..resources import UnboundedAllocator
from ._native import ROW_MAJOR, NativeOperator

_DTYPES = {"float32": "float", "float64": "double", "complex64": "complex<float>",
           "complex128": "complex<double>", "bool": "uint8_t"}


def _element(dtype):
    """The name of an element type, as C++ writes it."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or dtype.__name__
    if name in _DTYPES:
        return _DTYPES[name]
    return name + "_t" if name.rstrip("0123456789") in ("int", "uint") else name


class PingTxOp(Operator):
    """Sends 1, 2, 3 ..."""

    def __init__(self, fragment, *args, **kwargs):
        self.index = 1
        super().__init__(fragment, *args, **kwargs)

    def setup(self, spec):
        spec.output("out")

    def compute(self, op_input, op_output, context):
        op_output.emit(self.index, "out")
        self.index += 1


class PingRxOp(Operator):
    """Prints what it receives."""

    def setup(self, spec):
        spec.input("in")

    def compute(self, op_input, op_output, context):
        print("Rx message value: %s" % (op_input.receive("in"),))


class PingTensorTxOp(NativeOperator):
    """Sends a tensor a tick."""
    _native_type = "ping_tensor_tx"
    _outputs = ("out",)
    _same = ("storage_type", "batch_size", "rows", "columns", "channels", "tensor_name")

    def __init__(self, fragment, *args, allocator=None, storage_type="system", batch_size=None,
                 rows=32, columns=64, channels=None, dtype="uint8_t", tensor_name="tensor",
                 cuda_stream_pool=None, async_device_allocation=False, name="ping_tensor_tx"):
        self._make(fragment, args, name, allocator=allocator, storage_type=storage_type,
                   batch_size=batch_size, rows=rows, columns=columns, channels=channels,
                   data_type=_element(dtype), tensor_name=tensor_name,
                   cuda_stream_pool=cuda_stream_pool,
                   async_device_allocation=async_device_allocation)

    def _native_parameters(self):
        columns = 0 if self._given["columns"] is None else self._given["columns"]
        return {**super()._native_parameters(), "data_type": self._given["data_type"],
                "columns": columns}


class PingTensorRxOp(NativeOperator):
    """Prints the names and shapes of the tensors it receives."""
    _native_type = "ping_tensor_rx"
    _inputs = ("in",)

    def __init__(self, fragment, *args, receive_as_tensormap=True, name="ping_tensor_rx"):
        self._make(fragment, args, name, receive_as_tensormap=receive_as_tensormap)


class FormatConverterOp(NativeOperator):
    """Changes size, channels and element type of frames."""
    _native_type = "format_converter"
    _inputs = ("source_video",)
    _outputs = ("tensor",)
    _same = ("pool", "out_dtype", "in_dtype", "in_tensor_name", "out_tensor_name", "scale_min",
             "scale_max", "alpha_value", "resize_height", "resize_width", "resize_mode")
    _says = (("not adjacent", "Tensor is expected to be in a C-contiguous memory layout"),
             ("2 nor 3 dimensions", "Expected a tensor with 2 or 3 dimensions"),
             *((ours, "Failed to verify the channels for the expected input dtype")
               for ours in ("correct in_dtype", "3 nor 4 channels")))

    def __init__(self, fragment, *args, pool, out_dtype, in_dtype="", in_tensor_name="",
                 out_tensor_name="", scale_min=0.0, scale_max=1.0, alpha_value=255,
                 resize_height=0, resize_width=0, resize_mode=0, out_channel_order=(),
                 cuda_stream_pool=None, name="format_converter"):
        self._make(fragment, args, name, pool=pool, out_dtype=out_dtype, in_dtype=in_dtype,
                   in_tensor_name=in_tensor_name, out_tensor_name=out_tensor_name,
                   scale_min=float(scale_min), scale_max=float(scale_max), alpha_value=alpha_value,
                   resize_height=resize_height, resize_width=resize_width, resize_mode=resize_mode,
                   out_channel_order=list(out_channel_order), cuda_stream_pool=cuda_stream_pool)

    def _native_parameters(self):
        order = self._given["out_channel_order"]
        return {**super()._native_parameters(), **({"out_channel_order": order} if order else {})}


class VideoStreamReplayerOp(NativeOperator):
    """Plays a video file, or the files of Holoscan's recorder."""
    _outputs = ("output",)
    _same = ("basename", "ignore_corrupted_entities", "frame_rate", "realtime", "repeat", "count",
             "allocator")

    def __init__(self, fragment, *args, directory, basename, batch_size=1,
                 ignore_corrupted_entities=True, frame_rate=0.0, realtime=True, repeat=False,
                 count=0, allocator=None, entity_serializer=None, name="video_stream_replayer"):
        self._make(fragment, args, name, directory=str(directory), basename=basename,
                   batch_size=batch_size, ignore_corrupted_entities=ignore_corrupted_entities,
                   frame_rate=float(frame_rate), realtime=realtime, repeat=repeat, count=count,
                   allocator=allocator, entity_serializer=entity_serializer)

    @property
    def _directory(self):
        return _environment.input_path(self._given["directory"])

    @property
    def _native_type(self):
        """None: it plays Holoscan's files, in Python."""
        index, _ = _entities.paths(self._directory, self._given["basename"])
        return None if os.path.exists(index) else "video_replayer"

    def _native_parameters(self):
        self._check_batch()
        return {**super()._native_parameters(), "directory": self._directory}

    def _check_batch(self):
        self._refuse_unless("it plays one frame a tick", batch_size=1)

    def start(self):
        self._check_batch()
        self._reader = _entities.Reader(self._directory, self._given["basename"])
        self._next = self._played = 0
        self._begin_ns = time.monotonic_ns()

    def compute(self, op_input, op_output, context):
        given = self._given
        if self._next == len(self._reader) and given["repeat"]:
            self._next = 0
            self._begin_ns = time.monotonic_ns()
        if self._next == len(self._reader) or 0 < given["count"] <= self._played:
            self.stop_execution()
            return
        number = self._next
        self._next += 1
        try:
            tensors = self._reader.read(number)
        except ValueError as error:
            if not given["ignore_corrupted_entities"]:
                raise
            _log.warning("%s: %s", self.name, error)
            return
        if given["realtime"]:
            self._wait(number)
        self._played += 1
        op_output.emit(tensors, "output")

    def _wait(self, number):
        """Until the time of the message."""
        rate = self._given["frame_rate"]
        since = number * 1e9 / rate if rate > 0 else \
            self._reader.time_ns(number) - self._reader.time_ns(0)
        time.sleep(min(max(0, self._begin_ns + since - time.monotonic_ns()), 60e9) / 1e9)

    def stop(self):
        self._reader.close()


class VideoStreamRecorderOp(NativeOperator):
    """Writes tensors into files as Holoscan's recorder does. It is written in Python."""
    _inputs = ("input",)

    def __init__(self, fragment, *args, directory, basename, flush_on_tick=False,
                 name="video_stream_recorder"):
        self._make(fragment, args, name, directory=str(directory), basename=basename,
                   flush_on_tick=flush_on_tick)

    def start(self):
        self._writer = _entities.Writer(self._given["directory"], self._given["basename"])

    def compute(self, op_input, op_output, context):
        message = op_input.receive("input")
        if not isinstance(message, dict):
            message = {"": message}
        if not message or not all(map(is_tensor_like, message.values())):
            raise RuntimeError("%s records tensors, and it has received %s" % (
                self.name, ", ".join(type(x).__name__ for x in message.values())))
        self._writer.write({name: as_array(x) for name, x in message.items()}, time.time_ns(),
                           self._given["flush_on_tick"])

    def stop(self):
        self._writer.close()


class InferenceOp(NativeOperator):
    """Runs neural networks: on a GPU where FRAG_ONNXRUNTIME has ONNX Runtime for it, else by
    OpenVINO on the CPU."""
    _native_type = "inference"
    _inputs = ("receivers",)
    _outputs = ("transmitter",)
    _same = ("allocator", "model_path_map", "pre_processor_map", "inference_map", "temporal_map",
             "activation_map", "in_tensor_names", "out_tensor_names", "parallel_inference",
             "input_on_cuda", "output_on_cuda", "transmit_on_cuda", "dynamic_input_dims",
             "enable_fp16", "enable_cuda_graphs", "dla_core", "dla_gpu_fallback",
             "is_engine_path", "device_map", "dla_core_map", "trt_opt_profile")

    def __init__(self, fragment, *args, backend, allocator, inference_map, model_path_map,
                 pre_processor_map, device_map=None, dla_core_map=None, temporal_map=None,
                 activation_map=None, backend_map=None, in_tensor_names=(), out_tensor_names=(),
                 trt_opt_profile=None, infer_on_cpu=False, parallel_inference=True,
                 input_on_cuda=True, output_on_cuda=True, transmit_on_cuda=True,
                 dynamic_input_dims=False, enable_fp16=False, enable_cuda_graphs=True, dla_core=-1,
                 dla_gpu_fallback=True, is_engine_path=False, cuda_stream_pool=None,
                 name="inference"):
        self._make(fragment, args, name, backend=backend, allocator=allocator,
                   inference_map=_lists(inference_map, "inference_map"),
                   model_path_map=model_path_map,
                   pre_processor_map=_lists(pre_processor_map, "pre_processor_map"),
                   device_map=device_map or None, dla_core_map=dla_core_map or None,
                   temporal_map=temporal_map or None, activation_map=activation_map or None,
                   backend_map=backend_map or None,
                   in_tensor_names=list(in_tensor_names) or None,
                   out_tensor_names=list(out_tensor_names) or None,
                   trt_opt_profile=trt_opt_profile or None, infer_on_cpu=infer_on_cpu,
                   parallel_inference=parallel_inference, input_on_cuda=input_on_cuda,
                   output_on_cuda=output_on_cuda, transmit_on_cuda=transmit_on_cuda,
                   dynamic_input_dims=dynamic_input_dims, enable_fp16=enable_fp16,
                   enable_cuda_graphs=enable_cuda_graphs, dla_core=dla_core,
                   dla_gpu_fallback=dla_gpu_fallback, is_engine_path=is_engine_path,
                   cuda_stream_pool=cuda_stream_pool)

    def _setup_ports(self, spec):
        from .._spec import IOSpec
        spec.input("receivers", size=IOSpec.ANY_SIZE)
        spec.output("transmitter")

    def _native_parameters(self):
        parameters = super()._native_parameters()
        on_gpu = has_gpu() and not self._given["infer_on_cpu"]
        if on_gpu and not _has_provider("cuda"):
            _log.warning(
                "'%s': the networks run on the CPU, because neither FRAG_ONNXRUNTIME nor "
                "lib/frag/onnxruntime is the folder of the wheel onnxruntime-gpu "
                "(onnxruntime/capi)", self.name)
            on_gpu = False
        if not on_gpu:
            for key in ("device_map", "dla_core", "dla_core_map"):
                parameters.pop(key, None)
            return parameters
        # Holoscan records graphs for TensorRT where it can, and frag refuses where it cannot.
        parameters.pop("enable_cuda_graphs", None)
        parameters.update({key: self._given[key] for key in
                           ("backend", "backend_map", "infer_on_cpu", "cuda_stream_pool")
                           if self._given[key] is not None})
        if not _has_tensorrt():
            parameters["provider"] = "cuda"
        return parameters


def _has_provider(name):
    folder = _frag.library_folder("FRAG_ONNXRUNTIME", "onnxruntime")
    return folder is not None and os.path.exists(
        os.path.join(folder, "libonnxruntime_providers_%s.so" % name))


@functools.cache
def _has_tensorrt():
    try:
        ctypes.CDLL("libnvinfer.so.10")
        return _has_provider("tensorrt")
    except OSError:
        return False


class InferenceProcessorOp(NativeOperator):
    """Does small operations on what a network made."""
    _native_type = "inference_processor"
    _same = ("allocator", "process_operations", "processed_map", "in_tensor_names",
             "out_tensor_names", "disable_transmitter", "input_on_cuda", "output_on_cuda",
             "transmit_on_cuda")
    _setup_ports = InferenceOp._setup_ports

    def __init__(self, fragment, *args, allocator, process_operations=None, processed_map=None,
                 in_tensor_names=(), out_tensor_names=(), custom_kernels=None,
                 input_on_cuda=False, output_on_cuda=False, transmit_on_cuda=False,
                 disable_transmitter=False, cuda_stream_pool=None, config_path="",
                 name="postprocessor"):
        self._make(fragment, args, name, allocator=allocator,
                   process_operations=_lists(process_operations or {}, "process_operations"),
                   processed_map=_lists(processed_map or {}, "processed_map") or None,
                   in_tensor_names=list(in_tensor_names) or None,
                   out_tensor_names=list(out_tensor_names) or None,
                   custom_kernels=custom_kernels or None, input_on_cuda=input_on_cuda,
                   output_on_cuda=output_on_cuda, transmit_on_cuda=transmit_on_cuda,
                   disable_transmitter=disable_transmitter, cuda_stream_pool=cuda_stream_pool,
                   config_path=config_path)

    def _native_parameters(self):
        self._refuse_unless("do it in an operator of your own", custom_kernels=None)
        self._refuse_unless("give process_operations and processed_map", config_path="")
        return super()._native_parameters()


def _lists(table, name):
    """One name of a tensor may stand in place of a list of one."""
    if not isinstance(table, dict):
        raise ValueError("%s is a dict, not %r" % (name, table))
    return {key: [value] if isinstance(value, str) else list(value)
            for key, value in table.items()}


class SegmentationPostprocessorOp(NativeOperator):
    """Makes a mask of classes of what a network segmented."""
    _native_type = "segmentation_postprocessor"
    _inputs = ("in_tensor",)
    _outputs = ("out_tensor",)
    _same = ("allocator", "in_tensor_name", "network_output_type", "data_format")
    _says = (("are not f32", "Input tensor must be of type float32"),
             ("has gaps", "Input tensor must have row-major memory layout"))

    def __init__(self, fragment, *args, allocator, in_tensor_name="",
                 network_output_type="softmax", data_format="hwc", cuda_stream_pool=None,
                 name="segmentation_postprocessor"):
        self._make(fragment, args, name, allocator=allocator, in_tensor_name=in_tensor_name,
                   network_output_type=network_output_type, data_format=data_format,
                   cuda_stream_pool=cuda_stream_pool)


class V4L2VideoCaptureOp(NativeOperator):
    """Captures frames of a camera."""
    _native_type = "v4l2_video_capture"
    _outputs = ("signal",)
    _same = ("allocator", "device", "width", "height", "frame_rate", "num_buffers",
             "pixel_format", "pass_through", "exposure_time", "gain")

    def __init__(self, fragment, *args, allocator=None, device="/dev/video0", width=0, height=0,
                 frame_rate=0.0, num_buffers=4, pixel_format="auto", pass_through=False,
                 exposure_time=None, gain=None, name="v4l2_video_capture"):
        self._make(fragment, args, name,
                   allocator=allocator or UnboundedAllocator(fragment, name="allocator"),
                   device=device, width=width,
                   height=height, frame_rate=float(frame_rate), num_buffers=num_buffers,
                   pixel_format=pixel_format, pass_through=pass_through,
                   exposure_time=exposure_time, gain=gain)


_PATTERNS = ("bayer_bggr", "bayer_rggb", "bayer_gbrg", "bayer_grbg")  # by NPP's numbers


class BayerDemosaicOp(NativeOperator):
    """Finds the colours of a Bayer pattern, linearly between its pixels."""
    _native_type = "format_converter"
    _inputs = ("receiver",)
    _outputs = ("transmitter",)
    _frag_ports = {"receiver": "source_video", "transmitter": "tensor"}
    _same = ("pool", "in_tensor_name", "out_tensor_name", "alpha_value")
    _says = ROW_MAJOR

    def __init__(self, fragment, *args, pool, cuda_stream_pool=None, in_tensor_name="",
                 out_tensor_name="", interpolation_mode=0, bayer_grid_pos=2, generate_alpha=False,
                 alpha_value=255, name="bayer_demosaic"):
        self._make(fragment, args, name, pool=pool, cuda_stream_pool=cuda_stream_pool,
                   in_tensor_name=in_tensor_name, out_tensor_name=out_tensor_name,
                   interpolation_mode=interpolation_mode, bayer_grid_pos=bayer_grid_pos,
                   generate_alpha=generate_alpha, alpha_value=alpha_value)

    def _native_parameters(self):
        self._refuse_unless("it interpolates linearly", interpolation_mode=0)
        position = self._given["bayer_grid_pos"]
        if position not in range(len(_PATTERNS)):
            self.refuse("bayer_grid_pos=%r" % (position,),
                        "0 to %d are patterns" % (len(_PATTERNS) - 1))
        return {**super()._native_parameters(), "demosaic": "bilinear",
                "in_dtype": _PATTERNS[position],
                "out_dtype": "rgba8888" if self._given["generate_alpha"] else "rgb888"}


class GXFCodeletOp(NativeOperator):
    """frag has no GXF."""

    def __init__(self, fragment, *args, name="gxf_codelet", **kwargs):
        from ._native import place
        self._place = place()
        self.refuse("GXFCodeletOp", "write the codelet as an operator, since frag has no GXF")
