# SPDX-License-Identifier: Apache-2.0
"""Data loggers: resources of a fragment that get what its operators receive and emit.

A class of a program derives from DataLoggerResource and has log_data(); one that derives from
AsyncDataLoggerResource gets its calls on a thread of its own, and a message for which its queue has
no room is rejected.
"""
import copy
import re
import threading
import time
import weakref
from collections import deque

from . import _log
from frag import _frag
from ._component import ResourceBase
from ._enums import make
from ._message import Message
from ._metadata import MetadataDictionary
from ._spec import IOSpec

AsyncQueuePolicy = make("AsyncQueuePolicy", "REJECT RAISE")
DataLoggerQueueType = make("DataLoggerQueueType", "LOCK_FREE ORDERED")


class DataLogger:
    """The base of data loggers."""

    def _log_message(self, operator, port, value, metadata, io_type):
        """An operator has received or emits a value; its metadata are a MetadataDictionary."""

    def _finish(self):
        """The application has ended."""


class DataLoggerResource(DataLogger, ResourceBase):
    """A data logger that logs on the thread of the operator."""
    _types = {"log_inputs": "bool", "log_outputs": "bool", "log_metadata": "bool",
              "log_tensor_data_content": "bool", "use_scheduler_clock": "bool",
              "allowlist_patterns": "std::vector<std::string>",
              "denylist_patterns": "std::vector<std::string>"}

    def __init__(self, fragment, *, name="data_logger", log_inputs=True, log_outputs=True,
                 log_metadata=True, log_tensor_data_content=True, use_scheduler_clock=False,
                 clock=None, allowlist_patterns=(), denylist_patterns=(), **more):
        self._init_built_in(
            fragment, name, log_inputs=log_inputs, log_outputs=log_outputs,
            log_metadata=log_metadata, log_tensor_data_content=log_tensor_data_content,
            use_scheduler_clock=use_scheduler_clock, allowlist_patterns=list(allowlist_patterns),
            denylist_patterns=list(denylist_patterns), **more)
        self._clock = clock
        self._directions = ([0] if log_inputs else []) + ([1] if log_outputs else [])
        self._allow = [re.compile(text) for text in allowlist_patterns]
        self._deny = [re.compile(text) for text in denylist_patterns]
        self._wanted = {}

    def get_timestamp(self):
        """Nanoseconds of the logger's clock; without one, since 1970."""
        if self._clock is not None:
            return self._clock.timestamp()
        if self._given["use_scheduler_clock"]:
            clock = self.fragment.scheduler().clock
            if clock is not None:
                return clock.timestamp()
        return time.time_ns()

    def log_data(self, data, unique_id, acquisition_timestamp=-1, metadata=None, io_type=None,
                 stream=None):
        """Logs one message. metadata: a MetadataDictionary; None: it has none."""
        raise NotImplementedError("%s has no log_data" % type(self).__name__)

    def _wants(self, unique_id):
        wanted = self._wanted.get(unique_id)
        if wanted is None:
            wanted = self._wanted[unique_id] = not any(
                p.search(unique_id) for p in self._deny) and (
                not self._allow or any(p.search(unique_id) for p in self._allow))
        return wanted

    def _log_message(self, operator, port, value, metadata, io_type):
        unique_id = _id(operator, port)
        if int(io_type) not in self._directions or not self._wants(unique_id):
            return
        if not self._given["log_metadata"]:
            metadata = None
        try:
            self._take(value, unique_id, -1, metadata, io_type, None)
        except Exception as error:  # a logger never fails an operator
            _log.error("data logger '%s': %s was not logged: %s", self.name, unique_id, error)

    def _take(self, *message):
        self.log_data(*message)


class AsyncDataLoggerResource(DataLoggerResource):
    """A data logger with a queue and a thread, which starts with the first message."""
    _types = {**DataLoggerResource._types, "max_queue_size": "uint64_t",
              "worker_sleep_time": "int64_t", "large_data_max_queue_size": "uint64_t",
              "large_data_worker_sleep_time": "int64_t", "enable_large_data_queue": "bool",
              "shutdown_wait_period_ms": "int64_t"}

    def __init__(self, fragment, *, max_queue_size=50000, worker_sleep_time=50000,
                 queue_policy=AsyncQueuePolicy.REJECT, large_data_max_queue_size=1000,
                 large_data_worker_sleep_time=50000,
                 large_data_queue_policy=AsyncQueuePolicy.REJECT, enable_large_data_queue=True,
                 shutdown_wait_period_ms=-1, queue_type=DataLoggerQueueType.LOCK_FREE,
                 name="async_data_logger", **more):
        super().__init__(
            fragment, name=name, max_queue_size=max_queue_size,
            worker_sleep_time=worker_sleep_time,
            large_data_max_queue_size=large_data_max_queue_size,
            large_data_worker_sleep_time=large_data_worker_sleep_time,
            enable_large_data_queue=enable_large_data_queue,
            shutdown_wait_period_ms=shutdown_wait_period_ms, **more)
        self._queue_type = _member(DataLoggerQueueType, queue_type)
        self._policies = [_member(AsyncQueuePolicy, policy)
                          for policy in (queue_policy, large_data_queue_policy)]
        self._limits = (max_queue_size, large_data_max_queue_size)
        self._clear()

    def _clear(self):
        self._changed = threading.Condition()
        self._queue = deque()
        self._waiting = [0, 0]  # entries in the queue, large ones
        self._counts = [0, 0]
        self._thread = None
        self._stamp = None  # of the message that log_data gets
        self._ends = False

    def get_timestamp(self):
        """In log_data: when the message was received or emitted; its operator may have ended."""
        if threading.current_thread() is self._thread and self._stamp is not None:
            return self._stamp
        return super().get_timestamp()

    def _is_large(self, data):
        """Whether the entry belongs to the queue for contents of tensors."""
        return False

    def _take(self, data, unique_id, acquisition_timestamp, metadata, *rest):
        large = self._is_large(data)
        metadata = copy.copy(metadata)  # the operator goes on and may change it
        entry = (data, unique_id, acquisition_timestamp, metadata, *rest)
        stamp = self.get_timestamp()
        with self._changed:
            if self._waiting[large] >= self._limits[large]:
                if self._policies[large] == AsyncQueuePolicy.RAISE:
                    _log.error("Exception during %sdata enqueueing: the queue of data logger '%s' "
                               "is full", "large " if large else "", self.name)
                if not large:
                    return
                large = False  # its description
            self._waiting[large] += 1
            self._queue.append((large, stamp, entry))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def _work(self):
        while True:
            with self._changed:
                while not self._queue and not self._ends:
                    self._changed.wait()
                if not self._queue:
                    return
                large, self._stamp, message = self._queue.popleft()
                self._waiting[large] -= 1
            self._counts[large] += 1
            try:
                self._log_entry(large, *message)
            except Exception as error:
                _log.error("data logger '%s': %s was not logged: %s", self.name, message[1], error)

    def _log_entry(self, large, *message):
        self.log_data(*message)

    def _finish(self):
        with self._changed:
            self._ends = True
            self._changed.notify()
        period = self._given["shutdown_wait_period_ms"]
        if self._thread is not None:
            self._thread.join(None if period < 0 else period / 1000)
        _log.info("%s Shutdown - entries: %d, Large entries: %d", type(self).__name__,
                  *self._counts)
        self._clear()


_runs = weakref.WeakValueDictionary()  # key of a python_logger -> the run whose operators it logs


class _Metadata:
    """What a logged message has, as a context would say it."""

    def __init__(self, items):
        self._metadata_get, self._metadata_erase = items.__getitem__, items.pop
        self._metadata_keys = lambda: list(items)


def _of_unnamed(tensor, operator, is_output):
    """What Holoscan's operators in C++ make of an array that was emitted without a name."""
    if not is_output and not operator._given.get("receive_as_tensormap", True):
        return tensor
    library = "cupy" if hasattr(tensor, "__cuda_array_interface__") else "numpy"
    return {"#%s: tensor" % library: tensor}


def _on_log(key, unique_id, is_output, value, metadata):
    """An operator in C has received or emitted a value of frag."""
    run = _runs.get(key)
    operator_id, _, name = unique_id.rpartition(".")
    operator = run.find(operator_id) if run is not None else None
    if operator is None:
        return
    message = Message.of_frag(value, _Metadata(metadata))
    value = message.value
    if message.is_tensor_map and "" in value:
        value = _of_unnamed(value.pop(""), operator, is_output)
    stated = MetadataDictionary()
    stated._update(message.metadata or {})
    for logger in operator._loggers:
        logger._log_message(operator, name, value, stated,
                            IOSpec.IOType.OUTPUT if is_output else IOSpec.IOType.INPUT)


def listen(run, operator_ids):
    """The section of a graph by which loggers get what operators in C receive and emit.

    run.find("fragment.operator") gives the operator, or None.
    """
    key = id(run)
    _runs[key] = run
    _frag.on_log(_on_log)
    return {"holoscan": {"type": "python_logger", "key": key, "allowlist_patterns": [
        "^%s\\." % re.escape(name) for name in operator_ids]}}


def _id(operator, port):
    """"operator.port", behind the name of its fragment if the application has several."""
    name = "%s.%s" % (operator.name, port)
    fragment = operator.fragment.name
    return "%s.%s" % (fragment, name) if fragment else name


def _member(enumeration, value):
    """A member, also by its name: "reject", "kReject", "lock_free"."""
    if not isinstance(value, str):
        return enumeration(value)
    known = {member.name.replace("_", "").lower(): member for member in enumeration}
    key = value.replace("_", "").lower()
    member = known.get(key) or known.get(key.removeprefix("k"))
    if member is None:
        raise ValueError("%s has no %s; it has %s" % (
            enumeration.__name__, value, ", ".join(m.name for m in enumeration)))
    return member
