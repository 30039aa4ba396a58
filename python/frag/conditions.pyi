# SPDX-License-Identifier: Apache-2.0
from datetime import timedelta

from . import Condition, Fragment

class CountCondition(Condition):
    def __init__(self, fragment: Fragment, count: int = ..., name: str = ...) -> None: ...

class PeriodicCondition(Condition):
    def __init__(
        self,
        fragment: Fragment,
        recess_period: int | str | timedelta,
        name: str = ...,
        policy: str | None = ...,
    ) -> None: ...

class BooleanCondition(Condition):
    def __init__(self, fragment: Fragment, enable_tick: bool = ..., name: str = ...) -> None: ...
    def enable_tick(self) -> None: ...
    def disable_tick(self) -> None: ...

class AsynchronousEventState:
    READY: int
    WAIT: int
    EVENT_WAITING: int
    EVENT_DONE: int
    EVENT_NEVER: int

class AsynchronousCondition(Condition):
    event_state: int
    def __init__(self, fragment: Fragment, name: str = ...) -> None: ...

class MessageAvailableCondition(Condition):
    def __init__(
        self, fragment: Fragment, receiver: str | None = ..., min_size: int = ..., name: str = ...
    ) -> None: ...

class DownstreamMessageAffordableCondition(Condition):
    def __init__(
        self,
        fragment: Fragment,
        transmitter: str | None = ...,
        min_size: int = ...,
        name: str = ...,
    ) -> None: ...
