# SPDX-License-Identifier: Apache-2.0
"""Conditions, with Holoscan's names. Any other: Condition(fragment, TYPE, **parameters)."""
from ._component import Condition


class CountCondition(Condition):
    """So many ticks, then the operator ends."""

    def __init__(self, fragment, count=1, name="count"):
        super().__init__(fragment, "count", name, count=count)


class PeriodicCondition(Condition):
    """A tick in each period: nanoseconds, "10ms", "30hz", or a timedelta."""

    def __init__(self, fragment, recess_period, name="periodic", policy=None):
        if hasattr(recess_period, "total_seconds"):
            recess_period = round(recess_period.total_seconds() * 1e9)
        super().__init__(fragment, "periodic", name, recess_period=recess_period, policy=policy)


class BooleanCondition(Condition):
    """Ticks until disable_tick() ends the operator."""

    def __init__(self, fragment, enable_tick=True, name="boolean"):
        super().__init__(fragment, "boolean", name, enable_tick=enable_tick)

    def enable_tick(self):
        self._call(-1)

    def disable_tick(self):
        self._call(-2)


class AsynchronousEventState:
    READY, WAIT, EVENT_WAITING, EVENT_DONE, EVENT_NEVER = range(5)


class AsynchronousCondition(Condition):
    """Follows an event outside: set event_state from any thread."""

    def __init__(self, fragment, name="asynchronous"):
        super().__init__(fragment, "asynchronous", name)

    @property
    def event_state(self):
        return self._call(-3)

    @event_state.setter
    def event_state(self, state):
        self._call(state)


class LiveCondition(BooleanCondition, AsynchronousCondition):
    """A condition of one of frag's types that a graph made: Operator.condition(name)."""

    def __init__(self, operator, name):
        Condition.__init__(self, operator.fragment, "condition", name)
        self._operator = operator


class MessageAvailableCondition(Condition):
    def __init__(self, fragment, receiver=None, min_size=1, name="message_available"):
        super().__init__(fragment, "message_available", name, receiver=receiver, min_size=min_size)


class DownstreamMessageAffordableCondition(Condition):
    def __init__(self, fragment, transmitter=None, min_size=1, name="downstream_affordable"):
        super().__init__(fragment, "downstream_affordable", name, transmitter=transmitter,
                         min_size=min_size)
