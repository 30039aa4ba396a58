# SPDX-License-Identifier: Apache-2.0
"""holoscan.data_loggers: messages as lines on stderr, in Holoscan's form."""
from . import _log
from ._component import ResourceBase
from ._data_logger import (AsyncDataLoggerResource, AsyncQueuePolicy, DataLoggerQueueType,
                           DataLoggerResource)
from ._modules import module_of
from ._tensor import Tensor, as_array, is_tensor_like

__all__ = ["AsyncConsoleLogger", "BasicConsoleLogger", "GXFConsoleLogger", "async_console_logger",
           "basic_console_logger"]
__path__ = []  # it has modules

_DEVICES = {1: "kDLCPU", 2: "kDLCUDA", 3: "kDLCUDAHost", 13: "kDLCUDAManaged"}
_CODES = {"i": "kDLInt", "u": "kDLUInt", "f": "kDLFloat", "c": "kDLComplex", "b": "kDLBool"}


class SimpleTextSerializer(ResourceBase):
    """Makes text of messages."""
    _types = {"max_elements": "int64_t", "max_metadata_items": "int64_t",
              "log_video_buffer_content": "bool", "log_python_object_contents": "bool"}

    def __init__(self, fragment, max_elements=10, max_metadata_items=10,
                 log_video_buffer_content=False, log_python_object_contents=True,
                 name="simple_text_serializer"):
        self._init_built_in(fragment, name, max_elements=max_elements,
                            max_metadata_items=max_metadata_items,
                            log_video_buffer_content=log_video_buffer_content,
                            log_python_object_contents=log_python_object_contents)

    def _object(self, value):
        if not self._given["log_python_object_contents"]:
            return "Python Object"
        return "Python(%s): %r" % (type(value).__name__, value)

    def _some(self, values, count, limit):
        if count > limit:
            return values + ["... (%d more)" % (count - limit)]
        return values

    def metadata(self, metadata):
        """The last key first."""
        items = list(metadata.items())[::-1]
        limit = self._given["max_metadata_items"]
        texts = ["'%s': %s" % (key, self._object(value)) for key, value in items[:limit]]
        return "MetadataDictionary(size=%d) {%s}" % (
            len(items), ", ".join(self._some(texts, len(items), limit)))

    def tensor(self, tensor, has_content):
        tensor = Tensor.as_tensor(tensor)
        device, number = tensor.__dlpack_device__()
        text = "Tensor(shape=[%s], dtype=%s:%d:1, device=%s:%d, size=%d, nbytes=%d, " \
            "C-contiguous=%s" % (
                ", ".join(map(str, tensor.shape)), _CODES.get(tensor._kind, "kDLOpaqueHandle"),
                tensor.itemsize * 8, _DEVICES.get(int(device), int(device)), number, tensor.size,
                tensor.nbytes, str(tensor.is_contiguous()).lower())
        if has_content:
            text += self._content(tensor)
        return text + ")"

    def _content(self, tensor):
        limit = self._given["max_elements"]
        try:
            array = as_array(tensor)
        except ImportError:  # memory of a GPU, without CuPy
            return ""
        values = [str(x) for x in array.reshape(-1)[:limit].tolist()]
        return ", data=[%s]" % ", ".join(self._some(values, tensor.size, limit))

    def message(self, data, has_content):
        if _is_tensor_map(data):
            return "TensorMap(size=%d) {%s}" % (len(data), ", ".join(
                "'%s': %s" % (key, self.tensor(x, has_content)) for key, x in data.items()))
        if isinstance(data, Tensor):
            return self.tensor(data, has_content)
        return self._object(data)


def _is_tensor_map(data):
    return isinstance(data, dict) and len(data) > 0 and all(
        isinstance(key, str) and is_tensor_like(x) for key, x in data.items())


class _Console:
    """What the loggers have in common."""
    _prefix = "BasicConsoleLogger"

    def _line(self, data, unique_id, acquisition, metadata, io_type, category, has_content):
        text = "%s[ID:%s][Acquisition Timestamp:%d][%s Timestamp:%d][Category:%s]" \
            "[Type Name: %s][Stream: none] %s" % (
                self._prefix, unique_id, acquisition, "Emit" if io_type else "Receive",
                self.get_timestamp(), category,
                "TensorMap" if _is_tensor_map(data) else type(data).__name__,
                self._serializer.message(data, has_content))
        if metadata is not None:
            text += "\n" + self._serializer.metadata(metadata)
        _log.info("%s", text)

    def log_data(self, data, unique_id, acquisition_timestamp=-1, metadata=None, io_type=None,
                 stream=None):
        category = "TensorMap" if _is_tensor_map(data) else "Message (std::any)"
        self._line(data, unique_id, acquisition_timestamp, metadata, io_type, category,
                   self._given["log_tensor_data_content"])


class BasicConsoleLogger(_Console, DataLoggerResource):
    """Logs on the thread of the operator."""

    def __init__(self, fragment, serializer=None, log_inputs=True, log_outputs=True,
                 log_metadata=True, log_tensor_data_content=True, use_scheduler_clock=True,
                 clock=None, allowlist_patterns=(), denylist_patterns=(),
                 name="basic_console_logger"):
        super().__init__(
            fragment, name=name, log_inputs=log_inputs, log_outputs=log_outputs,
            log_metadata=log_metadata, log_tensor_data_content=log_tensor_data_content,
            use_scheduler_clock=use_scheduler_clock, clock=clock,
            allowlist_patterns=allowlist_patterns, denylist_patterns=denylist_patterns)
        self._serializer = serializer or SimpleTextSerializer(fragment)


class GXFConsoleLogger(BasicConsoleLogger):
    """The same: here all tensors of a message are logged."""

    def __init__(self, fragment, serializer=None, log_inputs=True, log_outputs=True,
                 log_metadata=True, log_tensor_data_content=True, use_scheduler_clock=True,
                 clock=None, allowlist_patterns=(), denylist_patterns=(),
                 name="gxf_basic_console_logger"):
        super().__init__(
            fragment, serializer, log_inputs, log_outputs, log_metadata, log_tensor_data_content,
            use_scheduler_clock, clock, allowlist_patterns, denylist_patterns, name)


class AsyncConsoleLogger(_Console, AsyncDataLoggerResource):
    """Logs on a thread of its own."""
    _prefix = "AsyncConsoleLogger"

    def __init__(self, fragment, serializer=None, log_inputs=True, log_outputs=True,
                 log_metadata=True, log_tensor_data_content=True, use_scheduler_clock=False,
                 clock=None, allowlist_patterns=(), denylist_patterns=(), max_queue_size=50000,
                 worker_sleep_time=50000, queue_policy=AsyncQueuePolicy.REJECT,
                 large_data_max_queue_size=1000, large_data_worker_sleep_time=50000,
                 large_data_queue_policy=AsyncQueuePolicy.REJECT, enable_large_data_queue=True,
                 shutdown_wait_period_ms=-1, queue_type=DataLoggerQueueType.LOCK_FREE,
                 name="async_console_logger"):
        super().__init__(
            fragment, name=name, log_inputs=log_inputs, log_outputs=log_outputs,
            log_metadata=log_metadata, log_tensor_data_content=log_tensor_data_content,
            use_scheduler_clock=use_scheduler_clock, clock=clock,
            allowlist_patterns=allowlist_patterns, denylist_patterns=denylist_patterns,
            max_queue_size=max_queue_size, worker_sleep_time=worker_sleep_time,
            queue_policy=queue_policy, large_data_max_queue_size=large_data_max_queue_size,
            large_data_worker_sleep_time=large_data_worker_sleep_time,
            large_data_queue_policy=large_data_queue_policy,
            enable_large_data_queue=enable_large_data_queue,
            shutdown_wait_period_ms=shutdown_wait_period_ms, queue_type=queue_type)
        self._serializer = serializer or SimpleTextSerializer(fragment)

    def _is_large(self, data):
        return (self._given["log_tensor_data_content"] and self._given["enable_large_data_queue"]
                and (_is_tensor_map(data) or isinstance(data, Tensor)))

    def _log_entry(self, large, data, unique_id, acquisition, metadata, io_type, stream):
        category = "Content" if large else \
            "TensorMap" if _is_tensor_map(data) else "Message (std::any)"
        self._line(data, unique_id, acquisition, metadata, io_type, category, large)


async_console_logger = module_of(__name__ + ".async_console_logger", AsyncConsoleLogger)
basic_console_logger = module_of(__name__ + ".basic_console_logger", BasicConsoleLogger,
                                 GXFConsoleLogger, SimpleTextSerializer)
