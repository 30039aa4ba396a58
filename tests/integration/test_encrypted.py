# SPDX-License-Identifier: Apache-2.0
"""Flows between hosts that are encrypted, by the graph or by driverd's flag."""
import json

import cluster

APP = """frag: 1
application: secrets
extensions: [libtruth.so]
fragments:
  one:
    operators: {tx: {type: truth_tx, parameters: {file: "%s", count: 200, size: 1000}}}
  two:
    operators: {rx: {type: truth_rx, parameters: {file: "%s"}}}
flows: [{from: one.tx, to: two.rx%s}]
"""


class Encrypted(cluster.ClusterTest):
    def graph(self, attributes):
        return self.write("app.yaml", APP % (self.path("sent"), self.path("received"), attributes))

    def run_app(self, attributes, *driver_args):
        """The flow of the summary, and what driverd printed."""
        driver = self.driver(self.graph(attributes), "--summary", self.path("summary.json"), *driver_args)
        for name in ("one", "two"):
            self.worker("--once", fragments=name)
        self.assertEqual(driver.wait(120), 0, driver.stderr)
        self.assertEqual(cluster.sequence(self.path("received")), list(range(1, 201)))
        with open(self.path("summary.json"), encoding="utf-8") as f:
            [flow] = json.load(f)["flows"]
        return flow, driver.stdout

    def test_by_the_graph(self):
        flow, table = self.run_app(", encrypt: on")
        self.assertEqual((flow["edge"], flow["encrypted"], flow["delivered"]), ("shm", True, 200))
        self.assertIn("shm, encrypted", table)

    def test_by_the_graph_over_ucx(self):
        flow, table = self.run_app(", encrypt: on, edge: ucx")
        self.assertEqual((flow["edge"], flow["encrypted"], flow["delivered"]), ("ucx", True, 200))
        self.assertIn("ucx tcp lo, encrypted", table)

    def test_by_the_flag(self):
        flow, table = self.run_app("", "--encrypt-data")
        self.assertTrue(flow["encrypted"])
        self.assertIn("shm, encrypted", table)

    def test_not_unless_somebody_asks(self):
        flow, table = self.run_app(", encrypt: off")
        self.assertFalse(flow["encrypted"])
        self.assertNotIn("encrypted", table)

    def test_in_one_process_it_means_nothing(self):
        run = self.start("fragctl", "run", "--output", "json", self.graph(", encrypt: on"))
        self.assertEqual(run.wait(60), 0, run.stderr)
        [flow] = json.loads(run.stdout)["flows"]
        self.assertEqual((flow["edge"], flow["encrypted"], flow["delivered"]), ("inproc", False, 200))

    def test_a_host_encrypts_even_what_it_sends_to_itself(self):
        run = self.start("fragctl", "run", "--output", "json", self.graph(", encrypt: on, edge: ucx"))
        self.assertEqual(run.wait(60), 0, run.stderr)
        [flow] = json.loads(run.stdout)["flows"]
        self.assertEqual((flow["edge"], flow["encrypted"], flow["delivered"]), ("ucx", True, 200))

    def test_a_key_that_travels_in_clear_is_warned_of(self):
        driver = self.driver(self.graph(", encrypt: on"), "--insecure", address="0.0.0.0:0")
        driver.wait_line(r"flows are encrypted, but control connections to 0\.0\.0\.0 are not")
