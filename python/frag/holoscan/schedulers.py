# SPDX-License-Identifier: Apache-2.0
"""holoscan.schedulers: greedy and event_based of frag with Holoscan's names."""
from . import _log
from ._args import Arg, ArgElementType, ArgType, type_of
from ._component import Clock, ComponentSpecBase, GXFScheduler

__all__ = ["EventBasedScheduler", "GreedyScheduler", "MultiThreadScheduler"]

_TYPES = {"worker_thread_number": "int64_t", "stop_on_deadlock": "bool",
          "max_duration_ms": "int64_t", "check_recession_period_ms": "double",
          "stop_on_deadlock_timeout": "int64_t", "network_connection_timeout": "int64_t",
          "strict_job_thread_pinning": "bool", "pin_cores": "std::vector<uint32_t>"}


def _value(name):
    """A property that has a value once the application runs."""
    def get(self):
        if not self._is_started:
            raise RuntimeError("%s of %s is set when the application runs" % (name, self.name))
        return self._given[name]
    return property(get)


class _Scheduler(GXFScheduler):
    _frag_type = None
    _is_started = False

    def _init_scheduler(self, fragment, name, clock, **values):
        self._init(fragment, name)
        self._given = values
        self._chosen_clock = clock
        self._spec = ComponentSpecBase(self.fragment)
        self._args = [Arg(key, value, type_of(_TYPES[key])) for key, value in values.items()
                      if value is not None and not (key == "max_duration_ms" and value < 0)]
        if clock is not None:
            self._args.append(Arg("clock", clock, ArgType(ArgElementType.RESOURCE)))

    def initialize(self):
        pass

    @property
    def max_duration_ms(self):
        return self._given["max_duration_ms"]

    stop_on_deadlock = _value("stop_on_deadlock")
    stop_on_deadlock_timeout = _value("stop_on_deadlock_timeout")
    network_connection_timeout = _value("network_connection_timeout")

    @property
    def clock(self):
        return self._clock

    def _start(self, default_clock):
        """The application begins."""
        self._is_started = True
        self._clock = Clock(self._chosen_clock or default_clock)

    def _declare(self):
        """The section of a graph."""
        given = self._given
        section = {"type": self._frag_type, "stop_on_deadlock": given["stop_on_deadlock"]}
        if given["stop_on_deadlock_timeout"] < 0:
            section["stop_on_deadlock"] = False
        elif given["stop_on_deadlock_timeout"] > 0:
            section["stop_on_deadlock_timeout_ms"] = given["stop_on_deadlock_timeout"]
        if given["max_duration_ms"] >= 0:
            section["max_duration_ms"] = max(1, given["max_duration_ms"])
        if given.get("check_recession_period_ms"):
            section["check_recession_period_ms"] = max(1, round(
                given["check_recession_period_ms"]))
        if given.get("worker_thread_number"):
            section["worker_thread_number"] = given["worker_thread_number"]
        if given.get("pin_cores"):
            section["pin_cores"] = list(given["pin_cores"])
            _log.info("the threads of %s are pinned to CPU cores: %s", self.name,
                      ",".join(map(str, given["pin_cores"])))
        return section


class EventBasedScheduler(_Scheduler):
    """Several threads; events have operators checked again."""
    _gxf_typename = "nvidia::gxf::EventBasedScheduler"
    _frag_type = "event_based"

    def __init__(self, fragment, *, clock=None, worker_thread_number=1, stop_on_deadlock=True,
                 max_duration_ms=-1, stop_on_deadlock_timeout=0, network_connection_timeout=5000,
                 pin_cores=None, name="event_based_scheduler"):
        self._init_scheduler(
            fragment, name, clock, worker_thread_number=worker_thread_number,
            stop_on_deadlock=stop_on_deadlock, max_duration_ms=max_duration_ms,
            stop_on_deadlock_timeout=stop_on_deadlock_timeout,
            network_connection_timeout=network_connection_timeout, pin_cores=pin_cores)

    worker_thread_number = _value("worker_thread_number")

    @property
    def pin_cores(self):
        return self._given["pin_cores"] or []


class GreedyScheduler(_Scheduler):
    """One thread, the same order each time."""
    _gxf_typename = "nvidia::gxf::GreedyScheduler"
    _frag_type = "greedy"

    def __init__(self, fragment, *, clock=None, stop_on_deadlock=True, max_duration_ms=-1,
                 check_recession_period_ms=0.0, stop_on_deadlock_timeout=0,
                 network_connection_timeout=5000, name="greedy_scheduler"):
        self._init_scheduler(
            fragment, name, clock, stop_on_deadlock=stop_on_deadlock,
            max_duration_ms=max_duration_ms, check_recession_period_ms=check_recession_period_ms,
            stop_on_deadlock_timeout=stop_on_deadlock_timeout,
            network_connection_timeout=network_connection_timeout)

    check_recession_period_ms = _value("check_recession_period_ms")


class MultiThreadScheduler(_Scheduler):
    """Several threads. In frag it is the event-based one."""
    _gxf_typename = "nvidia::gxf::MultiThreadScheduler"
    _frag_type = "event_based"

    def __init__(self, fragment, *, clock=None, worker_thread_number=1, stop_on_deadlock=True,
                 check_recession_period_ms=5.0, max_duration_ms=-1, stop_on_deadlock_timeout=0,
                 network_connection_timeout=5000, strict_job_thread_pinning=False,
                 name="multithread_scheduler"):
        self._init_scheduler(
            fragment, name, clock, worker_thread_number=worker_thread_number,
            stop_on_deadlock=stop_on_deadlock,
            check_recession_period_ms=check_recession_period_ms, max_duration_ms=max_duration_ms,
            stop_on_deadlock_timeout=stop_on_deadlock_timeout,
            network_connection_timeout=network_connection_timeout,
            strict_job_thread_pinning=strict_job_thread_pinning)

    worker_thread_number = _value("worker_thread_number")
    check_recession_period_ms = _value("check_recession_period_ms")
