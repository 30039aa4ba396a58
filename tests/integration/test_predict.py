# SPDX-License-Identifier: Apache-2.0
"""Rates and budgets: what validate predicts, and the summary of a run that was otherwise."""
import json
import subprocess

import cluster
from test_nodes import IN_ANOTHER_TIME
from test_service import ServiceTest

APP = """
frag: 1
application: app
fragments:
  one:
    resources: {pool: {type: block_memory_pool, block_size: 4096, num_blocks: 8}}
    scheduler: {type: greedy}
    operators:
      cam: {type: ping_tensor_tx, rate: 30hz, budget: 2ms, parameters: {allocator: $pool}}
      fast: {type: ping_tensor_rx, budget: 5ms}
    flows: [cam -> fast]
  two:
    operators:
      slow: {type: ping_tensor_rx, budget: 50ms}
flows:
  - {from: one.cam, to: two.slow, policy: pop}
"""
RUN = """
frag: 1
application: app
operators:
  tx:
    type: ping_tx
    rate: %s
    conditions: [{type: periodic, recess_period: 20ms}, {type: count, count: 25}]
  rx: {type: ping_rx}
flows: [tx -> rx]
"""
ACROSS = """
frag: 1
application: across
extensions: [libslow.so]
fragments:
  one:
    operators:
      tx: {type: ping_tx, rate: 50hz, conditions: [{type: periodic, recess_period: 20ms}]}
  two:
    operators:
      slow: {type: slow_rx, budget: 5ms, parameters: {sleep_ms: 50}}
flows: [{from: one.tx.out, to: two.slow.in, capacity: 4, policy: pop}]
"""


class Predict(cluster.ClusterTest):
    def test_validate_shows_the_arithmetic(self):
        run = self.start("fragctl", "validate", self.write("app.yaml", APP))
        self.assertEqual(run.wait(), 0, run.stderr)
        for line in ("one.cam: 30 a second x 2.0 ms = 6 % of a thread",
                     "two.slow: 30 a second x 50.0 ms = 150 % of a thread; it will be 20 a second",
                     "one.cam.out -> one.fast.in: 30 a second x 7.0 ms until one is taken = 0.21: 1 waits, "
                     "and the queue holds 1",
                     "one.cam.out -> two.slow.in: 30 a second, and 20 are taken: the queue of 4 is full after 400 ms, "
                     "then messages are lost",
                     "one.cam.out -> two.slow.in, between hosts: 4 to be sent, 4 on the way and 4 here at most; "
                     "4 / 30 a second = 133 ms for the way there and the credit back, or messages are lost at the "
                     "sender; only a run shows how long that takes",
                     "one: 21 % of a thread in all, and there is 1",
                     "one.pool: 5 filled or waiting at cam.out + 1 in slow = 6 blocks in use, and there are 8",
                     "one.pool, between hosts: 5 at cam.out + 9 more of its flow to two.slow = 14 blocks at most for "
                     "flows that leave the host, however long their edges take"):
            self.assertIn("  " + line + "\n", run.stdout + "\n")
        self.assertIn(":14:7: two.slow: overload: 30 ticks a second are asked for, and a budget of 50.0 ms allows 20 "
                      "(30 x 50.0 ms = 150 % of a thread); lower the rate", run.stderr)
        self.assertIn("10 of 30 messages a second will be lost: the receiver takes 20", run.stderr)

    def test_for_programs(self):
        run = self.start("fragctl", "validate", "--output", "json", self.write("app.yaml", APP))
        self.assertEqual(run.wait(), 0, run.stderr)
        found = json.loads(run.stdout)
        self.assertIn("one.cam: 30 a second x 2.0 ms = 6 % of a thread", found["prediction"])
        places = [(w["line"], w["path"]) for w in found["warnings"] if "overload" in w["sentence"]]
        self.assertEqual(places, [(14, "fragments.two.operators")])
        run = self.start("fragctl", "validate", "--output", "json", self.write("plain.yaml", APP.replace(
            "rate: 30hz, ", "").replace(", budget: 2ms", "").replace("budget: 2ms, ", "").replace(
            ", budget: 5ms", "").replace(", budget: 50ms", "")))
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertNotIn("prediction", json.loads(run.stdout))

    def test_the_summary_shows_what_was_otherwise(self):
        for args in ((), ("--workers", "1")):
            run = self.start("fragctl", "run", *args, self.write("app.yaml", RUN % "10hz"))
            self.assertEqual(run.wait(), 0, run.stderr)
            self.assertIn("more than 20 % from what rates and budgets predict:\n", run.stdout)
            for op in ("tx", "rx"):
                self.assertRegex(run.stdout, r"  app\.%s: ticks predicted 10 a second, measured [45]\d" % op)

    def test_the_summary_is_silent_about_what_was_so(self):
        run = self.start("fragctl", "run", self.write("app.yaml", RUN % "50hz"))
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertNotIn("predict", run.stdout)
        run = self.start("fragctl", "run", "--output", "json", self.write("app.yaml", RUN % "50hz"))
        self.assertEqual(run.wait(), 0, run.stderr)
        for op in self.summary(run)["fragments"][0]["operators"]:
            self.assertEqual((op["predicted"]["rate_mhz"], op["predicted"]["differs"]), (50000, False))


class Explained(ServiceTest):
    def test_explain_compares_over_two_workers(self):
        """The second one has clocks of its own, and its operator cannot keep up."""
        has_clocks = subprocess.run([*IN_ANOTHER_TIME, "true"], capture_output=True).returncode == 0
        self.serve()
        for name, prefix in (("one", ()), ("two", IN_ANOTHER_TIME if has_clocks else ())):
            self.worker("--name", name, fragments=name, prefix=prefix)
        self.ok("start", self.write("app.yaml", ACROSS))

        def found():
            text, document = self.ok("explain", "across"), self.json("explain", "across")
            rows = {row["operator"]: row for row in document["promises"]}
            flows = document["flow_promises"]
            return (text, rows, flows[0]) if len(rows) == 2 and rows["two.slow"]["compute_p50_ns"] and flows else None
        text, rows, flow = self.wait_until("all of it is measured", found)
        self.assertRegex(text, r"rates and budgets promise:\n  one\.tx: 50 ticks a second, and it had [0-9.]+")
        self.assertRegex(text, r"  two\.slow: 50 ticks a second, and it had [0-9.]+, more than 20 % less; a tick in "
                         r"5\.0 ms, and half of them took [0-9.]+ ms, more than 20 % more\n")
        self.assertRegex(text, r"  one\.tx\.out -> two\.slow\.in: 80\.0 ms until a message is received and its credit "
                         r"is back, and half of them were received after [0-9.]+ [mun]?s")
        slow = rows["two.slow"]
        self.assertEqual((slow["promised_mhz"], slow["budget_ns"]), (50000, 5000000))
        self.assertLess(slow["measured_mhz"], 40000)
        self.assertGreaterEqual(slow["compute_p50_ns"], 40000000)
        self.assertEqual((flow["from"], flow["to"], flow["allowed_ns"]), ("one.tx.out", "two.slow.in", 80000000))
        self.assertEqual(flow["latency_error_ns"] > 0, has_clocks)
