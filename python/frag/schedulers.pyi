# SPDX-License-Identifier: Apache-2.0
from . import Fragment, Scheduler

class GreedyScheduler(Scheduler):
    def __init__(self, fragment: Fragment | None = ..., **params: object) -> None: ...

class EventBasedScheduler(Scheduler):
    def __init__(self, fragment: Fragment | None = ..., **params: object) -> None: ...

class MultiThreadScheduler(Scheduler):
    def __init__(self, fragment: Fragment | None = ..., **params: object) -> None: ...
