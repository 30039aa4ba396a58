# SPDX-License-Identifier: Apache-2.0
"""holoscan.conditions: conditions of frag with Holoscan's names."""
from . import _log
from ._component import GXFCondition
from ._args import Arg, ArgType, ArgElementType
from ._enums import make
from .resources import RMMAllocator

AsynchronousEventState = make("AsynchronousEventState",
                              "READY WAIT EVENT_WAITING EVENT_DONE EVENT_NEVER")
PeriodicConditionPolicy = make(
    "PeriodicConditionPolicy",
    "CATCH_UP_MISSED_TICKS MIN_TIME_BETWEEN_TICKS NO_CATCH_UP_MISSED_TICKS")

__all__ = ["AsynchronousCondition", "AsynchronousEventState", "BooleanCondition", "CountCondition",
           "CudaBufferAvailableCondition", "CudaEventCondition", "CudaStreamCondition",
           "DownstreamMessageAffordableCondition", "ExpiringMessageAvailableCondition",
           "MemoryAvailableCondition", "MessageAvailableCondition",
           "MultiMessageAvailableCondition", "MultiMessageAvailableTimeoutCondition",
           "PeriodicCondition", "PeriodicConditionPolicy"]


def _nanoseconds(period):
    if hasattr(period, "total_seconds"):
        return round(period.total_seconds() * 1e9)
    if isinstance(period, float):  # seconds
        return round(period * 1e9)
    if isinstance(period, bool) or not isinstance(period, int):
        raise TypeError("a period is an int of nanoseconds or a timedelta, not %r" % (period,))
    return period


class _Plain(GXFCondition):
    """One whose arguments are those of frag's condition."""

    def __init__(self, fragment, *args, **kwargs):
        raise TypeError("%s cannot be made" % type(self).__name__)

    def _declare(self):
        """The parameters of frag's condition."""
        return dict(self._given)


def _value(name):
    """A property that is one of the values that the condition was given."""
    def set_value(self, value):
        self._given[name] = value
    return property(lambda self: self._given.get(name), set_value)


def _tell(condition, event):
    """Tells frag's condition, while its operator runs."""
    if condition._live is None:
        return None
    try:
        return condition._live._call(event)
    except RuntimeError:  # the operator has ended
        return None


class AsynchronousCondition(_Plain):
    """Follows an event outside: set event_state from any thread."""
    _gxf_typename = "nvidia::gxf::AsynchronousSchedulingTerm"
    _frag_type = "asynchronous"
    _types = {}

    def __init__(self, fragment, name="async_condition"):
        self._init_built_in(fragment, name)
        self._state = AsynchronousEventState.READY

    @property
    def event_state(self):
        state = _tell(self, -3)
        return self._state if state is None else AsynchronousEventState(state)

    @event_state.setter
    def event_state(self, state):
        _tell(self, int(state))
        self._state = AsynchronousEventState(state)


class BooleanCondition(_Plain):
    """Ticks until disable_tick() ends the operator."""
    _gxf_typename = "nvidia::gxf::BooleanSchedulingTerm"
    _frag_type = "boolean"
    _types = {"enable_tick": "bool"}

    def __init__(self, fragment, enable_tick=True, name="boolean_condition"):
        self._init_built_in(fragment, name, enable_tick=enable_tick)

    def enable_tick(self):
        self._given["enable_tick"] = True
        _tell(self, -1)

    def disable_tick(self):
        self._given["enable_tick"] = False
        _tell(self, -2)

    def check_tick_enabled(self):
        return self._given["enable_tick"]


class CountCondition(_Plain):
    """So many ticks, then the operator ends."""
    _gxf_typename = "nvidia::gxf::CountSchedulingTerm"
    _frag_type = "count"
    _types = {"count": "int64_t"}

    def __init__(self, fragment, count=1, name="count_condition"):
        self._init_built_in(fragment, name, count=count)

    count = _value("count")


class CudaBufferAvailableCondition(_Plain):
    """Messages wait whose memory a GPU has written."""
    _gxf_typename = "nvidia::gxf::CudaBufferAvailableSchedulingTerm"
    _frag_type = "cuda_buffer"
    _types = {}

    def __init__(self, fragment, receiver=None, name="cuda_buffer_available_condition"):
        self._init_built_in(fragment, name, receiver=receiver)

    receiver = _value("receiver")


class CudaEventCondition(_Plain):
    """Messages wait, and the event of one of their tensors has come."""
    _gxf_typename = "nvidia::gxf::CudaEventSchedulingTerm"
    _frag_type = "cuda_event"
    _types = {"event_name": "std::string"}

    def __init__(self, fragment, event_name="", receiver=None, name="cuda_event_condition"):
        self._init_built_in(fragment, name, event_name=event_name, receiver=receiver)

    receiver = _value("receiver")

    def _declare(self):
        return {k: v for k, v in self._given.items() if v != ""}


class CudaStreamCondition(_Plain):
    """Messages wait on whose streams nothing is left to do."""
    _gxf_typename = "nvidia::gxf::CudaStreamSchedulingTerm"
    _frag_type = "cuda_stream"
    _types = {"receiver": "std::string", "receivers": "std::vector<std::string>"}

    def __init__(self, fragment, receiver=None, receivers=None, check_all_messages=True,
                 name="noname_cuda_stream_condition"):
        self._init_built_in(fragment, name, receiver=receiver, receivers=receivers)
        self.check_all_messages = check_all_messages

    receiver = _value("receiver")
    receivers = _value("receivers")


class DownstreamMessageAffordableCondition(_Plain):
    """The receivers of an output have room."""
    _gxf_typename = "nvidia::gxf::DownstreamReceptiveSchedulingTerm"
    _frag_type = "downstream_affordable"
    _types = {"min_size": "uint64_t"}

    def __init__(self, fragment, min_size=1, transmitter=None,
                 name="downstream_affordable_condition"):
        self._init_built_in(fragment, name, min_size=min_size, transmitter=transmitter)

    min_size = _value("min_size")
    transmitter = _value("transmitter")


class ExpiringMessageAvailableCondition(_Plain):
    """A batch of messages waits, or one for long enough."""
    _gxf_typename = "nvidia::gxf::ExpiringMessageAvailableSchedulingTerm"
    _frag_type = "expiring_message_available"
    _types = {"receiver": "std::string"}

    def __init__(self, fragment, max_batch_size, max_delay_ns, clock=None, receiver=None,
                 name="expiring_message_available_condition"):
        self._init_built_in(fragment, name, receiver=receiver)
        self._args.insert(0, Arg("clock", clock, ArgType(ArgElementType.RESOURCE)))
        self._given.update(max_batch_size=max_batch_size,
                           max_delay_ns=_nanoseconds(max_delay_ns))

    max_batch_size = _value("max_batch_size")
    receiver = _value("receiver")

    def max_delay(self, duration):
        self._given["max_delay_ns"] = _nanoseconds(duration)

    def max_delay_ns(self):
        return self._given["max_delay_ns"]

    def _values(self):
        return {}


class MemoryAvailableCondition(_Plain):
    """An allocator has memory."""
    _gxf_typename = "nvidia::gxf::MemoryAvailableSchedulingTerm"
    _types = {"allocator": "std::shared_ptr<Resource>", "min_bytes": "uint64_t",
              "min_blocks": "uint64_t"}

    def __init__(self, fragment, allocator, min_bytes=None, min_blocks=None,
                 name="memory_available_condition"):
        if min_bytes is not None and min_blocks is not None:
            raise ValueError("Only one of `min_bytes` or `min_blocks` can be set.")
        if min_bytes is None and min_blocks is None:
            raise ValueError("Either `min_bytes` or `min_blocks` must be provided.")
        self._init_built_in(fragment, name, allocator=allocator, min_bytes=min_bytes,
                            min_blocks=min_blocks)

    allocator = _value("allocator")

    @property
    def _frag_type(self):
        return "boolean" if self._is_always else "memory_available"

    @property
    def _is_always(self):
        """Holoscan does not know how full such an allocator is, and programs rely on it."""
        return isinstance(self.allocator, RMMAllocator)

    def _declare(self):
        if not self._is_always:
            return super()._declare()
        _log.warning("'%s': it does not hold an operator back, as in Holoscan, since the RMM "
                     "allocator does not support this API", self.name)
        return {"enable_tick": True}


class MessageAvailableCondition(_Plain):
    """Messages wait at an input."""
    _gxf_typename = "nvidia::gxf::MessageAvailableSchedulingTerm"
    _frag_type = "message_available"
    _types = {"min_size": "uint64_t", "front_stage_max_size": "uint64_t"}

    def __init__(self, fragment, min_size=1, front_stage_max_size=1, receiver=None,
                 name="message_available_condition"):
        self._init_built_in(fragment, name, min_size=min_size,
                            front_stage_max_size=front_stage_max_size, receiver=receiver)

    front_stage_max_size = _value("front_stage_max_size")
    min_size = _value("min_size")
    receiver = _value("receiver")

    def _declare(self):
        # Holoscan counts what was received into the operator's stage, where frag has one queue.
        return {k: v for k, v in self._given.items() if k != "front_stage_max_size"}


SamplingMode = make("SamplingMode", "SUM_OF_ALL PER_RECEIVER")
_MODES = {"SumOfAll": 0, "PerReceiver": 1}


class _MultiMessage(_Plain):
    SamplingMode = SamplingMode
    _types = {}

    def _init_sampling(self, fragment, name, sampling_mode, **values):
        mode = SamplingMode(_MODES.get(sampling_mode, sampling_mode))
        self._init_built_in(fragment, name, sampling_mode=mode, **values)

    receivers = _value("receivers")

    def _declare(self):
        mode = "PerReceiver" if self._given["sampling_mode"] else "SumOfAll"
        return {**self._given, "sampling_mode": mode}


class MultiMessageAvailableCondition(_MultiMessage):
    """Messages wait at several inputs."""
    _gxf_typename = "nvidia::gxf::MultiMessageAvailableSchedulingTerm"
    _frag_type = "multi_message_available"

    def __init__(self, fragment, sampling_mode=SamplingMode.SUM_OF_ALL, min_sum=None,
                 min_sizes=None, name="multi_message_condition"):
        self._init_sampling(fragment, name, sampling_mode, min_sum=min_sum, min_sizes=min_sizes)

    sampling_mode = _value("sampling_mode")
    min_sum = _value("min_sum")

    @property
    def min_sizes(self):
        return self._given.setdefault("min_sizes", [])

    def add_min_size(self, value):
        self.min_sizes.append(value)


class MultiMessageAvailableTimeoutCondition(_MultiMessage):
    """The same, or a time has passed since the last tick."""
    _gxf_typename = "nvidia::gxf::MessageAvailableFrequencyThrottler"
    _frag_type = "multi_message_available_timeout"

    def __init__(self, fragment, execution_frequency, sampling_mode=SamplingMode.SUM_OF_ALL,
                 min_sum=None, min_sizes=None, name="multi_message_timeout_condition"):
        self._init_sampling(fragment, name, sampling_mode, min_sum=min_sum, min_sizes=min_sizes,
                            execution_frequency=execution_frequency)


_POLICIES = {"CatchUpMissedTicks": 0, "MinTimeBetweenTicks": 1, "NoCatchUpMissedTicks": 2}


class PeriodicCondition(_Plain):
    """A tick in each period."""
    _gxf_typename = "nvidia::gxf::PeriodicSchedulingTerm"
    _frag_type = "periodic"
    _types = {"policy": "CustomType"}

    def __init__(self, fragment, recess_period, name="periodic_condition",
                 policy=PeriodicConditionPolicy.CATCH_UP_MISSED_TICKS):
        policy = PeriodicConditionPolicy(_POLICIES.get(policy, policy))
        self._init_built_in(fragment, name, recess_period=_nanoseconds(recess_period),
                            policy=policy)
        self._last_run_ns = 0

    @property
    def policy(self):
        return self._given["policy"]

    def recess_period(self, period):
        self._given["recess_period"] = _nanoseconds(period)

    def recess_period_ns(self):
        return self._given["recess_period"]

    def last_run_timestamp(self):
        return self._last_run_ns

    def _values(self):
        return {}

    def _declare(self):
        return {"recess_period": "%dns" % self._given["recess_period"],
                "policy": self.policy.name.lower()}
