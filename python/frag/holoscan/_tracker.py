# SPDX-License-Identifier: Apache-2.0
"""Data flow tracking: Tracker and DataFlowTracker."""
from ._enums import make

DataFlowMetric = make("DataFlowMetric", "MAX_MESSAGE_ID MIN_MESSAGE_ID MAX_E2E_LATENCY "
                      "AVG_E2E_LATENCY MIN_E2E_LATENCY NUM_SRC_MESSAGES NUM_DST_MESSAGES")


class DataFlowTracker:
    """Latencies along the paths of a fragment."""

    def __init__(self):
        self._fragment = None
        self._results = None

    @classmethod
    def _of(cls, fragment, skip, discard, threshold, is_limited):
        self = cls()
        self._fragment = fragment
        self._settings = (skip, discard, threshold, is_limited)
        return self

    def enable_logging(self, filename="logger.log", num_buffered_messages=100):
        self._filename = filename

    def end_logging(self):
        pass

    def print(self):
        pass


class Tracker:
    """with Tracker(app) as tracker: app.run(); tracker.print()"""

    def __init__(self, app, *, filename=None, num_buffered_messages=100,
                 num_start_messages_to_skip=10, num_last_messages_to_discard=10,
                 latency_threshold=0, is_limited_tracking=False):
        self.app = app
        self.filename = filename
        self.settings = dict(num_start_messages_to_skip=num_start_messages_to_skip,
                             num_last_messages_to_discard=num_last_messages_to_discard,
                             latency_threshold=latency_threshold,
                             is_limited_tracking=is_limited_tracking)
        self.buffered = num_buffered_messages
        app.compose_graph()
        self.is_distributed_app = bool(app.fragment_graph.get_nodes())

    def __enter__(self):
        if self.is_distributed_app:
            self.trackers = self.app.track_distributed(**self.settings)
            result = self.trackers
        else:
            result = self.app.track(**self.settings)
            self.trackers = {"": result}
        if self.filename is not None:
            for tracker in self.trackers.values():
                tracker.enable_logging(self.filename, self.buffered)
        return result

    def __exit__(self, *unused):
        if self.filename is not None:
            for tracker in self.trackers.values():
                tracker.end_logging()
