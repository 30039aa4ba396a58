# SPDX-License-Identifier: Apache-2.0
"""holoscan.resources: allocators, clocks, queues and thread pools with Holoscan's names."""
import time

from . import _log
from ._args import Arg, ArgContainerType, ArgElementType, ArgType
from ._component import (ClockInterface, ConditionBase, GXFResource,
                         GXFSystemResourceBase, check_owner, unsupported)
from ._enums import Enum, make
from ._gpu import has_gpu

MemoryStorageType = make("MemoryStorageType", "HOST DEVICE SYSTEM CUDA_MANAGED")


class SchedulingPolicy(Enum):
    """How the kernel schedules a thread."""
    SCHED_FIFO = 1
    SCHED_RR = 2
    SCHED_DEADLINE = 6


__all__ = ["Allocator", "AsyncBufferReceiver", "AsyncBufferTransmitter", "BlockMemoryPool",
           "CudaAllocator", "CudaGreenContext", "CudaGreenContextPool", "CudaStreamPool",
           "DoubleBufferReceiver", "DoubleBufferTransmitter", "GXFClock", "GXFComponentResource",
           "ManualClock", "MemoryStorageType", "OrConditionCombiner", "RealtimeClock", "Receiver",
           "RMMAllocator", "SchedulingPolicy", "SerializationBuffer", "StdComponentSerializer",
           "StdEntitySerializer", "StreamOrderedAllocator", "SyntheticClock", "ThreadPool",
           "Transmitter", "UcxComponentSerializer", "UcxEntitySerializer",
           "UcxHoloscanComponentSerializer", "UcxReceiver", "UcxSerializationBuffer",
           "UcxTransmitter", "UnboundedAllocator"]

_INT, _SIZE, _STR, _BOOL = "int32_t", "uint64_t", "std::string", "bool"
_RESOURCE = "std::shared_ptr<Resource>"


class Allocator(GXFResource):
    """Memory for tensors. In frag the operators in C take it; Python gets it from frag.empty()."""

    def __init__(self):
        raise TypeError("an Allocator is one of its subclasses")

    @property
    def block_size(self):
        return self._given.get("block_size", 1)

    def allocate(self, size, type):
        unsupported("%s.allocate" % self.__class__.__name__, "use frag.empty(shape, dtype)")

    def free(self, pointer):
        unsupported("%s.free" % type(self).__name__, "memory is released with its tensor")

    def is_available(self, size):
        unsupported("%s.is_available" % type(self).__name__, "use MemoryAvailableCondition")

    def _declare(self):
        """The parameters of frag's resource."""
        return {key: int(value) if isinstance(value, Enum) else value
                for key, value in self._given.items()}


class CudaAllocator(Allocator):
    @property
    def pool_size(self):
        unsupported("CudaAllocator.pool_size", "the summary shows what pools hold")


class BlockMemoryPool(Allocator):
    _gxf_typename = "nvidia::gxf::BlockMemoryPool"
    _frag_type = "block_memory_pool"
    _types = {"storage_type": _INT, "block_size": _SIZE, "num_blocks": _SIZE, "dev_id": _INT}

    def __init__(self, fragment, storage_type, block_size, num_blocks, dev_id=0,
                 name="block_memory_pool"):
        self._init_built_in(fragment, name, storage_type=storage_type, block_size=block_size,
                            num_blocks=num_blocks, dev_id=dev_id)

    def _declare(self):
        declared = super()._declare()
        if declared["storage_type"] == MemoryStorageType.DEVICE and not has_gpu():
            _log.warning("'%s': this machine has no GPU, so its blocks are in host memory",
                         self.name)
            declared["storage_type"] = int(MemoryStorageType.SYSTEM)
        return declared


class UnboundedAllocator(Allocator):
    _gxf_typename = "nvidia::gxf::UnboundedAllocator"
    _frag_type = "unbounded_allocator"
    _types = {}

    def __init__(self, fragment, name="unbounded_allocator"):
        self._init_built_in(fragment, name)


class RMMAllocator(CudaAllocator):
    _gxf_typename = "nvidia::gxf::RMMAllocator"
    _frag_type = "rmm_allocator"
    _types = {"device_memory_initial_size": _STR, "device_memory_max_size": _STR,
              "host_memory_initial_size": _STR, "host_memory_max_size": _STR, "dev_id": _INT}

    def __init__(self, fragment, device_memory_initial_size="16MB", device_memory_max_size="32MB",
                 host_memory_initial_size="16MB", host_memory_max_size="32MB", dev_id=0,
                 name="rmm_pool"):
        self._init_built_in(
            fragment, name, device_memory_initial_size=device_memory_initial_size,
            device_memory_max_size=device_memory_max_size,
            host_memory_initial_size=host_memory_initial_size,
            host_memory_max_size=host_memory_max_size, dev_id=dev_id)


class StreamOrderedAllocator(CudaAllocator):
    _gxf_typename = "nvidia::gxf::StreamOrderedAllocator"
    _frag_type = "stream_ordered_allocator"
    _types = {"device_memory_initial_size": _STR, "device_memory_max_size": _STR,
              "release_threshold": _STR, "dev_id": _INT}

    def __init__(self, fragment, device_memory_initial_size="16MB", device_memory_max_size="32MB",
                 release_threshold="4MB", dev_id=0, name="stream_ordered_allocator"):
        self._init_built_in(
            fragment, name, device_memory_initial_size=device_memory_initial_size,
            device_memory_max_size=device_memory_max_size, release_threshold=release_threshold,
            dev_id=dev_id)


class CudaStreamPool(Allocator):
    _gxf_typename = "nvidia::gxf::CudaStreamPool"
    _frag_type = "cuda_stream_pool"
    _types = {"dev_id": _INT, "stream_flags": "uint32_t", "stream_priority": _INT,
              "reserved_size": "uint32_t", "max_size": "uint32_t", "nvtx_identifier": _STR}

    def __init__(self, fragment, dev_id=0, stream_flags=0, stream_priority=0, reserved_size=1,
                 max_size=0, cuda_green_context=None, nvtx_identifier="nvtx_stream_pool",
                 name="cuda_stream_pool"):
        self._init_built_in(
            fragment, name, dev_id=dev_id, stream_flags=stream_flags,
            stream_priority=stream_priority, reserved_size=reserved_size, max_size=max_size,
            nvtx_identifier=nvtx_identifier, cuda_green_context=cuda_green_context)


class CudaGreenContextPool(GXFResource):
    _gxf_typename = "nvidia::gxf::CudaGreenContextPool"
    _frag_type = "cuda_green_context_pool"
    _types = {"dev_id": _INT, "flags": "uint32_t", "num_partitions": "uint32_t",
              "sms_per_partition": "std::vector<uint32_t>", "default_context_index": _INT,
              "min_sm_size": "uint32_t"}

    def __init__(self, fragment, dev_id=0, flags=0, num_partitions=0, sms_per_partition=(),
                 default_context_index=-1, min_sm_size=2, name="cuda_green_context_pool"):
        self._init_built_in(
            fragment, name, dev_id=dev_id, flags=flags, num_partitions=num_partitions,
            sms_per_partition=list(sms_per_partition),
            default_context_index=default_context_index, min_sm_size=min_sm_size)

    _declare = Allocator._declare


class CudaGreenContext(GXFResource):
    _gxf_typename = "nvidia::gxf::CudaGreenContext"
    _frag_type = "cuda_green_context"
    _types = {"cuda_green_context_pool": _RESOURCE, "index": _INT, "nvtx_identifier": _STR}

    def __init__(self, fragment, cuda_green_context_pool=None, index=-1,
                 nvtx_identifier="nvtx_green_context", name="cuda_green_context"):
        self._init_built_in(fragment, name, cuda_green_context_pool=cuda_green_context_pool,
                            index=index, nvtx_identifier=nvtx_identifier)

    _declare = Allocator._declare


class Receiver(GXFResource):
    """The queue of an input."""
    _port = None  # what shows it while the application runs

    def __init__(self):
        raise TypeError("a Receiver is one of its subclasses")

    @property
    def capacity(self):
        return self._given.get("capacity", 1)

    @property
    def size(self):
        """Messages that the operator can receive in this tick."""
        return self._port.size() if self._port is not None else 0

    @property
    def back_size(self):
        """Messages that the operator will be able to receive, or has emitted, in this tick."""
        return self._port.back_size() if self._port is not None else 0


class Transmitter(GXFResource):
    """The queue of an output: what is emitted in a tick leaves at its end."""
    _port = None

    def __init__(self):
        raise TypeError("a Transmitter is one of its subclasses")

    capacity = Receiver.capacity
    size = Receiver.size
    back_size = Receiver.back_size


_QUEUE = {"capacity": _SIZE, "policy": _SIZE}


class DoubleBufferReceiver(Receiver):
    _gxf_typename = "nvidia::gxf::DoubleBufferReceiver"
    _types = _QUEUE

    def __init__(self, fragment, capacity=1, policy=2, name="double_buffer_receiver"):
        self._init_built_in(fragment, name, capacity=capacity, policy=policy)


class DoubleBufferTransmitter(Transmitter):
    _gxf_typename = "nvidia::gxf::DoubleBufferTransmitter"
    _types = _QUEUE

    def __init__(self, fragment, capacity=1, policy=2, name="double_buffer_transmitter"):
        self._init_built_in(fragment, name, capacity=capacity, policy=policy)


class AsyncBufferReceiver(Receiver):
    _gxf_typename = "holoscan::HoloscanAsyncBufferReceiver"
    _types = {}

    def __init__(self, fragment, name="async_buffer_receiver"):
        self._init_built_in(fragment, name)


class AsyncBufferTransmitter(Transmitter):
    _gxf_typename = "holoscan::HoloscanAsyncBufferTransmitter"
    _types = {}

    def __init__(self, fragment, name="async_buffer_transmitter"):
        self._init_built_in(fragment, name)


class SerializationBuffer(GXFResource):
    """Accepted without effect: frag's buffers grow as they must."""
    _gxf_typename = "nvidia::gxf::SerializationBuffer"
    _types = {"allocator": _RESOURCE, "buffer_size": _SIZE}

    def __init__(self, fragment, allocator=None, buffer_size=4096, name="serialization_buffer"):
        self._init_built_in(fragment, name, allocator=allocator, buffer_size=buffer_size)


class UcxSerializationBuffer(SerializationBuffer):
    _gxf_typename = "nvidia::gxf::UcxSerializationBuffer"

    def __init__(self, fragment, allocator=None, buffer_size=4096,
                 name="ucx_serialization_buffer"):
        super().__init__(fragment, allocator, buffer_size, name)


class UcxReceiver(Receiver):
    """Its addresses are accepted without effect: the workers agree about theirs."""
    _gxf_typename = "holoscan::HoloscanUcxReceiver"
    _types = {**_QUEUE, "address": _STR, "port": "uint32_t", "buffer": _RESOURCE}

    def __init__(self, fragment, buffer=None, capacity=1, policy=2, address="0.0.0.0", port=13337,
                 name="ucx_receiver"):
        self._init_built_in(fragment, name, capacity=capacity, policy=policy, address=address,
                            port=port, buffer=buffer)


class UcxTransmitter(Transmitter):
    """Its addresses are accepted without effect: the workers agree about theirs."""
    _gxf_typename = "holoscan::HoloscanUcxTransmitter"
    _types = {**_QUEUE, "receiver_address": _STR, "local_address": _STR, "port": "uint32_t",
              "local_port": "uint32_t", "maximum_connection_retries": "uint32_t",
              "buffer": _RESOURCE}

    def __init__(self, fragment, buffer=None, capacity=1, policy=2, receiver_address="0.0.0.0",
                 local_address="0.0.0.0", port=13337, local_port=0, maximum_connection_retries=10,
                 name="ucx_transmitter"):
        self._init_built_in(
            fragment, name, capacity=capacity, policy=policy, receiver_address=receiver_address,
            local_address=local_address, port=port, local_port=local_port,
            maximum_connection_retries=maximum_connection_retries, buffer=buffer)


class _Serializer(GXFResource):
    """Accepted without effect: codecs belong to types in frag."""
    _types = {"allocator": _RESOURCE}


class StdComponentSerializer(_Serializer):
    _gxf_typename = "nvidia::gxf::StdComponentSerializer"

    def __init__(self, fragment, name="standard_component_serializer"):
        self._init_built_in(fragment, name)


class StdEntitySerializer(_Serializer):
    _gxf_typename = "nvidia::gxf::StdEntitySerializer"

    def __init__(self, fragment, name="standard_entity_serializer"):
        self._init_built_in(fragment, name)


class UcxComponentSerializer(_Serializer):
    _gxf_typename = "nvidia::gxf::UcxComponentSerializer"

    def __init__(self, fragment, allocator=None, name="ucx_component_serializer"):
        self._init_built_in(fragment, name, allocator=allocator)


class UcxHoloscanComponentSerializer(_Serializer):
    _gxf_typename = "nvidia::gxf::UcxHoloscanComponentSerializer"

    def __init__(self, fragment, allocator=None, name="ucx_holoscan_component_serializer"):
        self._init_built_in(fragment, name, allocator=allocator)


class UcxEntitySerializer(_Serializer):
    _gxf_typename = "nvidia::gxf::UcxEntitySerializer"
    _types = {"verbose_warning": _BOOL}

    def __init__(self, fragment, verbose_warning=False, name="ucx_entity_serializer"):
        self._init_built_in(fragment, name, verbose_warning=verbose_warning)


def _seconds(duration):
    """A duration in nanoseconds, or a timedelta."""
    return (duration.total_seconds() if hasattr(duration, "total_seconds")
            else int(duration) / 1e9)


class GXFClock(ClockInterface, GXFResource):
    """A clock. While a scheduler has it, it is that of the fragment; else it runs by itself."""
    _live = None  # the clock of frag

    def _note(self):
        """An operator ends: what the clock shows afterwards is the time of the last one."""

    def timestamp(self):
        """Nanoseconds."""
        return self._live.timestamp() if self._live is not None else self._own_ns()

    def time(self):
        """Seconds."""
        return self.timestamp() / 1e9

    def sleep_for(self, duration):
        self._sleep(round(_seconds(duration) * 1e9))

    def sleep_until(self, target_time_ns):
        self._sleep(int(target_time_ns) - self.timestamp())

    def _sleep(self, by_ns):
        if self._live is not None:
            self._live.sleep_for(by_ns)
        elif by_ns > 0:
            self._own_sleep(by_ns)


class RealtimeClock(GXFClock):
    _gxf_typename = "nvidia::gxf::RealtimeClock"
    _types = {"initial_time_offset": "double", "initial_time_scale": "double",
              "use_time_since_epoch": _BOOL}

    def __init__(self, fragment, initial_time_offset=0.0, initial_time_scale=1.0,
                 use_time_since_epoch=False, name="realtime_clock"):
        self._init_built_in(
            fragment, name, initial_time_offset=initial_time_offset,
            initial_time_scale=initial_time_scale, use_time_since_epoch=use_time_since_epoch)
        self._scale = initial_time_scale
        self._begin = time.monotonic_ns()
        self._at_begin = round(initial_time_offset * 1e9) + (
            time.time_ns() if use_time_since_epoch else 0)

    def _own_ns(self):
        return self._at_begin + round((time.monotonic_ns() - self._begin) * self._scale)

    def _own_sleep(self, by_ns):
        time.sleep(by_ns / 1e9 / self._scale)

    def set_time_scale(self, time_scale):
        if self._live is not None:
            self._live.set_time_scale(time_scale)
        self._at_begin, self._begin = self._own_ns(), time.monotonic_ns()
        self._scale = time_scale

    def _declare(self):
        """The section `clock` of a graph."""
        return {"type": "realtime", **self._given, "initial_time_scale": self._scale}


class _StandingClock(GXFClock):
    _types = {"initial_timestamp": "int64_t"}

    def _init_standing(self, fragment, name, initial_timestamp):
        self._init_built_in(fragment, name, initial_timestamp=initial_timestamp)
        self._now = initial_timestamp

    def _note(self):
        self._now = self.timestamp()

    def _own_ns(self):
        return self._now

    def _own_sleep(self, by_ns):
        self._now += by_ns

    def _declare(self):
        return {"type": self._frag_type, **self._given}


class ManualClock(_StandingClock):
    _gxf_typename = "nvidia::gxf::ManualClock"
    _frag_type = "manual"

    def __init__(self, fragment, initial_timestamp=0, name="manual_clock"):
        self._init_standing(fragment, name, initial_timestamp)


class SyntheticClock(_StandingClock):
    _gxf_typename = "nvidia::gxf::SyntheticClock"
    _frag_type = "synthetic"

    def __init__(self, fragment, initial_timestamp=0, name="synthetic_clock"):
        self._init_standing(fragment, name, initial_timestamp)

    def advance_by(self, time_delta_ns):
        by_ns = round(_seconds(time_delta_ns) * 1e9)
        if self._live is not None:
            self._live.advance_by(by_ns)
        else:
            self._now += by_ns

    def advance_to(self, new_time_ns):
        self.advance_by(new_time_ns - self.timestamp())


class OrConditionCombiner(GXFResource):
    """One of the terms is enough."""
    _gxf_typename = "nvidia::gxf::OrSchedulingTermCombiner"
    _types = {}

    def __init__(self, fragment, terms, name="or_condition_combiner"):
        if not terms or not all(isinstance(term, ConditionBase) for term in terms):
            raise TypeError("%s: terms are conditions" % name)
        self._init_built_in(fragment, name)
        self.terms = list(terms)
        self._args.append(Arg("terms", self.terms,
                              ArgType(ArgElementType.CONDITION, ArgContainerType.VECTOR)))


class CPUThread(GXFResource):
    """What pins an operator to a thread of its pool."""
    _gxf_typename = "nvidia::gxf::CPUThread"
    _types = {"pin_entity": _BOOL, "pin_cores": "std::vector<uint32_t>", "sched_policy": _STR,
              "sched_priority": "uint32_t", "sched_runtime": _SIZE, "sched_deadline": _SIZE,
              "sched_period": _SIZE}

    def __init__(self, fragment, name, entry):
        entry = dict(entry)
        if "sched_policy" in entry:
            entry["sched_policy"] = "SCHED_" + entry["sched_policy"].upper()
        self._init_built_in(fragment, name, pin_entity=entry.pop("pin_operator"), **entry)


class ThreadPool(GXFSystemResourceBase):
    """Threads for its operators alone."""
    _gxf_typename = "nvidia::gxf::ThreadPool"
    _types = {"initial_size": "int64_t"}

    def __init__(self, fragment, initial_size=1, name="thread_pool"):
        self._init_built_in(fragment, name, initial_size=initial_size)
        self.operators = []
        self._entries = []

    def _add(self, operators, entry):
        for operator in operators:
            self.operators.append(operator)
            self._entries.append((operator, entry))
            operator._add_resource(
                CPUThread(self.fragment, operator.name + "_cpu_thread", entry))

    def add(self, ops, pin_operator=True, pin_cores=()):
        """Adds an operator, or a list of them."""
        entry = {"pin_operator": bool(pin_operator)}
        if pin_cores:
            entry["pin_cores"] = list(pin_cores)
        self._add(ops if isinstance(ops, (list, tuple)) else [ops], entry)

    def add_realtime(self, op, sched_policy, pin_operator=True, pin_cores=(), sched_priority=0,
                     sched_runtime=0, sched_deadline=0, sched_period=0):
        """Adds an operator whose thread the kernel schedules in real time."""
        if isinstance(sched_policy, str):
            policy = SchedulingPolicy["SCHED_" + sched_policy.upper().removeprefix("SCHED_")]
        else:
            policy = SchedulingPolicy(sched_policy)
        entry = {"pin_operator": bool(pin_operator),
                 "sched_policy": policy.name.removeprefix("SCHED_").lower()}
        for key, value in (("pin_cores", list(pin_cores)), ("sched_priority", sched_priority),
                           ("sched_runtime", sched_runtime), ("sched_deadline", sched_deadline),
                           ("sched_period", sched_period)):
            if value:
                entry[key] = value
        self._add([op], entry)

    @property
    def tree(self):
        return {**super().tree, "operators in pool": [op.name for op in self.operators]}

    def _declare(self, name_of):
        """The pool in a graph; name_of(operator): its name there."""
        return {"initial_size": self._given["initial_size"],
                "add": [{"operators": [name_of(op)], **entry} for op, entry in self._entries]}


class GXFComponentResource(GXFResource):
    """Resources that wrap components of GXF do not exist in frag."""

    def __init__(self, fragment, *args, **kwargs):
        check_owner(fragment, "GXFComponentResource")
        unsupported("GXFComponentResource (%s)" % kwargs.get("gxf_typename", ""),
                    "write the resource as a class derived from Resource")
