# SPDX-License-Identifier: Apache-2.0
"""Schedulers, with Holoscan's names."""
from ._spec import Scheduler


class GreedyScheduler(Scheduler):
    """One thread, the same order each time."""

    def __init__(self, fragment=None, **params):
        super().__init__("greedy", **params)


class EventBasedScheduler(Scheduler):
    def __init__(self, fragment=None, **params):
        super().__init__("event_based", **params)


class MultiThreadScheduler(Scheduler):
    def __init__(self, fragment=None, **params):
        super().__init__("event_based", **params)
