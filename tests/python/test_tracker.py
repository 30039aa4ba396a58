# SPDX-License-Identifier: Apache-2.0
"""Data flow tracking, and how it goes on after the application has ended."""

import contextlib
import functools
import io
import os
import tempfile
import unittest

import frag
from frag import DataFlowMetric, Tracker
from frag.conditions import CountCondition

import operators
from test_application import App, chain


class Tracking(unittest.TestCase):
    def setUp(self):
        operators.Sink.got = []
        operators.Source.values = None

    def test_paths_and_metrics(self):
        def compose(app):
            tx = operators.Source(app, CountCondition(app, 20), name="tx")
            chain(tx, frag.NativeOperator(app, "forward"), operators.Sink(app, name="rx"))(app)

        app = App(compose)
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "flow.log")
            with Tracker(app, num_start_messages_to_skip=3, probes=["forward"]) as tracker:
                with self.assertRaisesRegex(frag.Error, "no application of this process"):
                    tracker.get_path_strings()
                tracker.enable_logging(log, 1000)
                app.run()
            with open(log) as file:
                entries = [line for line in file if "(tx," in line]
        self.assertEqual(len(entries), 20)
        self.assertCountEqual(tracker.get_path_strings(), ["tx,forward", "tx,forward,rx"])
        self.assertEqual((tracker.num_paths, tracker.get_num_paths()), (2, 2))
        path = "tx,forward,rx"
        # 10 are discarded at the end.
        self.assertEqual(tracker.get_metric(path, DataFlowMetric.NUM_DST_MESSAGES), 7)
        least, average, most = (
            tracker.get_metric(path, metric)
            for metric in (
                DataFlowMetric.MIN_E2E_LATENCY,
                DataFlowMetric.AVG_E2E_LATENCY,
                DataFlowMetric.MAX_E2E_LATENCY,
            )
        )
        self.assertTrue(0 < least <= average <= most, (least, average, most))
        self.assertIn(tracker.get_metric(path, DataFlowMetric.MAX_MESSAGE_ID), range(1, 8))
        self.assertEqual(tracker.get_metric(), {"tx->out": 20, "forward->out": 20})
        with self.assertRaisesRegex(KeyError, "no path"):
            tracker.get_metric("rx,tx", DataFlowMetric.NUM_DST_MESSAGES)
        with self.assertRaisesRegex(ValueError, "no metric of a path"):
            tracker.get_metric(path, DataFlowMetric.NUM_SRC_MESSAGES)
        with self.assertRaisesRegex(ValueError, "name the metric"):
            tracker.get_metric(path)
        with self.assertRaisesRegex(frag.Error, "too large"):
            tracker.set_discard_last_messages(10_001)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            tracker.print()
        self.assertIn("Number of messages: 7\n", out.getvalue())
        app.run()  # it is not tracked any more
        self.assertEqual(tracker.get_metric()["tx->out"], 20)

    def test_what_is_refused(self):
        app = App(lambda app: chain(operators.Source(app, CountCondition(app), name="tx"))(app))
        with Tracker(app, num_last_messages_to_discard=10_001):
            with self.assertRaisesRegex(frag.Error, "num_last_messages_to_discard"):
                app.run()
        with Tracker(app, filename="/nowhere/flow.log"):
            with self.assertRaisesRegex(frag.Error, "/nowhere/flow.log"):
                app.run()
        with Tracker(app) as tracker:
            app.run()
        self.assertEqual(tracker.get_path_strings(), ["tx"])
        for refuses in (tracker.set_skip_starting_messages, tracker.set_discard_last_messages,
                        functools.partial(tracker.enable_logging, "flow.log")):
            with self.assertRaisesRegex(ValueError, "-7 is out of range; give 0 to "):
                refuses(-7)
        self.assertFalse(os.path.exists("flow.log"))
        tracker.set_skip_latencies(-7)  # skips none
        with self.assertRaises(OverflowError):
            tracker.set_skip_latencies(2**63)


if __name__ == "__main__":
    unittest.main()
