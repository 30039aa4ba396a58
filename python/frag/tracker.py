# SPDX-License-Identifier: Apache-2.0
"""Data flow tracking of an application in this process, with Holoscan's names."""
from ._component import Resource
from ._failure import Error


class DataFlowMetric:
    """enum frag_track_metric"""
    (MAX_MESSAGE_ID, MIN_MESSAGE_ID, MAX_E2E_LATENCY, AVG_E2E_LATENCY, MIN_E2E_LATENCY,
     NUM_SRC_MESSAGES, NUM_DST_MESSAGES) = range(7)


class Tracker:
    """Measures how long messages take along each path of an application, in milliseconds:

        with frag.Tracker(app) as tracker:
            app.run()
        tracker.print()

    A path is its operators, "tx,mx,rx"; of several fragments "one.tx,two.rx".
    """

    def __init__(self, app, *, filename=None, num_buffered_messages=100,
                 num_start_messages_to_skip=10, num_last_messages_to_discard=10,
                 latency_threshold=0, is_limited_tracking=False, probes=()):
        self._app = app
        self._tracker = None
        self._log = (filename, num_buffered_messages)
        self._section = {"num_start_messages_to_skip": num_start_messages_to_skip,
                         "num_last_messages_to_discard": num_last_messages_to_discard,
                         "latency_threshold": latency_threshold,
                         "is_limited_tracking": is_limited_tracking, "print": False}
        if probes:
            self._section["probes"] = list(probes)

    def __enter__(self):
        self._app._tracker = self
        return self

    def __exit__(self, *unused):
        self._app._tracker = None
        if self._tracker is not None:
            self._tracker.flush()

    def _found(self, tracker):
        self._tracker = tracker
        if self._log[0] is not None:
            tracker.enable_logging(*self._log)

    @property
    def _now(self):
        if self._tracker is None:
            raise Error("no application of this process was tracked; hosts of workers print what "
                        "they track themselves (`tracking` in the graph)")
        return self._tracker

    def enable_logging(self, filename="logger.log", num_buffered_messages=100):
        """Writes every path of every message into a file."""
        self._log = (filename, num_buffered_messages)
        if self._tracker is not None:
            self._tracker.enable_logging(*self._log)

    def end_logging(self):
        """Writes what is still buffered."""
        self._now.flush()

    @property
    def num_paths(self):
        return len(self.get_path_strings())

    def get_num_paths(self):
        return self.num_paths

    def get_path_strings(self):
        return list(iter_until_none(self._now.path))

    def get_metric(self, path=None, metric=None):
        """A metric of a path, None while no message of it is counted; or, with
        DataFlowMetric.NUM_SRC_MESSAGES alone, {"operator->port": messages} of the roots."""
        if metric is None:
            if path not in (None, DataFlowMetric.NUM_SRC_MESSAGES):
                raise ValueError("name the metric of path %r" % (path,))
            return dict(iter_until_none(self._now.source))
        value = self._now.metric(path, metric)
        whole = (DataFlowMetric.MAX_MESSAGE_ID, DataFlowMetric.MIN_MESSAGE_ID,
                 DataFlowMetric.NUM_DST_MESSAGES)
        return int(value) if value is not None and metric in whole else value

    def set_skip_starting_messages(self, num):
        self._now.configure(0, num)

    def set_discard_last_messages(self, num):
        self._now.configure(1, num)

    def set_skip_latencies(self, threshold):
        """threshold: in ms"""
        self._now.configure(2, threshold)

    def print(self):
        print(self._now.describe(), end="", flush=True)


def iter_until_none(function):
    number = 0
    while (item := function(number)) is not None:
        yield item
        number += 1


class Probe(Resource):
    """Takes the tracker of its fragment, which is that of the application."""

    def __init__(self, fragment, tracker=None, name="frag-tracker"):
        self._tracker = tracker
        super().__init__(fragment, None, name)

    def _attach(self, handle):
        self._handle = handle

    def initialize(self):
        self._tracker._found(self._handle.tracker())
