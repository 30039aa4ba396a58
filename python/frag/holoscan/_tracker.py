# SPDX-License-Identifier: Apache-2.0
"""Data flow tracking: Tracker and DataFlowTracker."""
import frag

from ._enums import make

DataFlowMetric = make("DataFlowMetric", "MAX_MESSAGE_ID MIN_MESSAGE_ID MAX_E2E_LATENCY "
                      "AVG_E2E_LATENCY MIN_E2E_LATENCY NUM_SRC_MESSAGES NUM_DST_MESSAGES")


class DataFlowTracker:
    """Latencies along the paths of what runs."""

    def __init__(self):
        self._tracker = frag.Tracker(None)

    @classmethod
    def _of(cls, skip, discard, threshold, is_limited):
        self = cls()
        self._tracker = frag.Tracker(
            None, num_start_messages_to_skip=skip, num_last_messages_to_discard=discard,
            latency_threshold=threshold, is_limited_tracking=is_limited)
        return self

    def enable_logging(self, filename="logger.log", num_buffered_messages=100):
        self._tracker.enable_logging(filename, num_buffered_messages)

    def end_logging(self):
        self._tracker.end_logging()

    def get_num_paths(self):
        return self._tracker.num_paths

    def get_path_strings(self):
        return self._tracker.get_path_strings()

    def get_metric(self, pathstring=None, metric=DataFlowMetric.NUM_SRC_MESSAGES):
        """A metric of a path; without one: the messages of each root."""
        if isinstance(pathstring, DataFlowMetric):
            pathstring, metric = None, pathstring
        if pathstring is None:
            return self._tracker.get_metric(metric=None)
        return float(self._tracker.get_metric(pathstring, int(metric)) or 0)

    def set_skip_starting_messages(self, num):
        self._tracker.set_skip_starting_messages(num)

    def set_discard_last_messages(self, num):
        self._tracker.set_discard_last_messages(num)

    def set_skip_latencies(self, threshold):
        self._tracker.set_skip_latencies(threshold)

    def print(self):
        self._tracker.print()


class Tracker:
    """with Tracker(app) as tracker: app.run(); tracker.print()"""

    def __init__(self, app, *, filename=None, num_buffered_messages=100,
                 num_start_messages_to_skip=10, num_last_messages_to_discard=10,
                 latency_threshold=0, is_limited_tracking=False):
        self.app = app
        self._log = (filename, num_buffered_messages)
        self._settings = (num_start_messages_to_skip, num_last_messages_to_discard,
                          latency_threshold, is_limited_tracking)
        app.compose_graph()
        self.is_distributed_app = bool(app.fragment_graph.get_nodes())

    def __enter__(self):
        if self.is_distributed_app:
            self.trackers = self.app.track_distributed(*self._settings)
            result = self.trackers
        else:
            self.tracker = result = self.app.track(*self._settings)
            self.trackers = {"": result}
        if self._log[0] is not None:
            for tracker in self.trackers.values():
                tracker.enable_logging(*self._log)
        return result

    def __exit__(self, *unused):
        if self._log[0] is not None:
            for tracker in self.trackers.values():
                tracker.end_logging()
