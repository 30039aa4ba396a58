# SPDX-License-Identifier: Apache-2.0
"""Deadlines of paths whose operators run in several processes."""
import cluster

APP = """
frag: 1
application: app
fragments:
  one: {operators: {tx: {type: ping_tx, conditions: [{type: count, count: 20}]}}}
  two: {operators: {rx: {type: ping_rx}}}
flows:
  - {from: one.tx, to: two.rx, edge: %s}
deadlines:
  - {path: [one.tx, two.rx], budget: %s, on_miss: %s}
"""


class Deadlines(cluster.ClusterTest):
    def run_app(self, edge, budget, on_miss, *how):
        run = self.start("fragctl", "run", "--output", "json", "-v", *how,
                         self.write("app.yaml", APP % (edge, budget, on_miss)))
        code = run.wait()
        summary = self.summary(run)
        self.assert_balanced(summary)
        rx = summary["fragments"][1]["operators"][0]
        return code, run.stderr, rx, self.flow(summary, "one.tx.out"), summary

    def test_a_path_through_processes(self):
        for edge in ("shm", "ucx"):
            code, log, rx, _, _ = self.run_app(edge, "1ns", "count", "--workers", "2")
            self.assertEqual((code, rx["path_misses"], rx["path_clocks"]), (0, 20, 0), log)
            self.assertRegex(log, r"one\.tx -> two\.rx: 20 of 20 messages took longer than 1 ns, at most .*; "
                                  r"slowest: (one\.tx|two\.rx), in \d+ of them")
            code, log, rx, flow, _ = self.run_app(edge, "1ns", "drop", "--workers", "2")
            self.assertEqual((code, rx["path_misses"], flow["dropped"]["deadline"]), (0, 20, 20), log)

    def test_a_path_through_processes_that_is_fast_enough(self):
        code, log, rx, flow, _ = self.run_app("auto", "1h", "stop", "--workers", "2")
        self.assertEqual((code, rx["path_misses"], flow["delivered"]), (0, 0, 20), log)
        self.assertIn("one.tx -> two.rx: none of 20 messages took longer than 3600.0 s", log)

    def test_a_path_through_processes_stops_the_application(self):
        code, log, _, _, summary = self.run_app("auto", "1ns", "stop", "--workers", "2")
        self.assertEqual((code, summary["failure"]["code"], summary["failure"]["operator"]),
                         (1, "deadline_missed", "two.rx"), log)
        self.assertRegex(summary["failure"]["sentence"],
                         r"missed a deadline: the path from one\.tx \(slowest: (one\.tx|two\.rx)\) took ")
