# SPDX-License-Identifier: Apache-2.0
"""Programs that run applications by frag/run.h, and applications that an operator ends."""
import json
import os
import re

import cluster

EXAMPLES = os.path.join(cluster.TOP, "examples")
RUN_APP = os.path.join(cluster.BUILD, "lib", "frag", "extensions", "run_app")

MONITORED = """frag: 1
application: app
fragments:
  one:
    extensions: [liboperator_status_tracking.so]
    operators:
      tx: {type: ping_tx, conditions: [{type: count, count: 10}]}
      rx: {type: ping_rx}
      monitor:
        type: monitor
        parameters: {watch: [tx, rx]}
        conditions: [{type: periodic, recess_period: 5ms}]
    flows: [tx -> rx]
  two:
    operators:
      endless: {type: ping_tx, conditions: [{type: periodic, recess_period: 1ms}]}
      rx: {type: forward}
    flows: [endless -> rx]
"""


class Programs(cluster.ClusterTest):
    def run_app(self, *args):
        p = self.start(RUN_APP, *args)
        p.wait(60)
        return p

    def test_the_program_of_the_example(self):
        p = self.run_app(os.path.join(EXAMPLES, "run_api", "app.yaml"), "--count", "7")
        self.assertEqual(p.wait(), 0, p.stderr)
        summary = json.loads(p.stdout)
        self.assert_balanced(summary)
        self.assertEqual((summary["result"], summary["flows"][0]["delivered"]), ("done", 7))
        self.assertEqual(len(re.findall("Rx message value: ", p.stderr)), 7)

    def test_what_is_printed_when_it_cannot_run(self):
        app = self.write("app.yaml", "frag: 1\napplication: app\noperatorz: {}\n")
        p = self.run_app(app)
        self.assertEqual(p.wait(), 2)
        self.assertIn('app.yaml:3:1: unknown key "operatorz"', p.stderr)
        app = self.write("app.yaml", "frag: 1\napplication: app\noperators: {tx: {type: ping_txx}}\n")
        p = self.run_app(app)
        self.assertEqual(p.wait(), 1)
        self.assertIn('did you mean "ping_tx"?', p.stderr)

    def test_without_the_module(self):
        """libfrag alone says what is missing."""
        folder = self.path("lib")
        os.mkdir(folder)
        with open(os.path.join(cluster.BUILD, "lib", "libfrag.so.1"), "rb") as source:
            with open(os.path.join(folder, "libfrag.so.1"), "wb") as copy:
                copy.write(source.read())
        p = self.start(RUN_APP, os.path.join(EXAMPLES, "run_api", "app.yaml"),
                       env={"LD_PRELOAD": os.path.join(folder, "libfrag.so.1")})
        self.assertEqual(p.wait(60), 1)
        self.assertIn("the module run is not there", p.stderr)


class Monitors(cluster.ClusterTest):
    def test_in_one_host(self):
        p = self.start("fragctl", "run", "--output", "json", os.path.join(EXAMPLES, "operator_status_tracking", "app.yaml"))
        self.assertEqual(p.wait(60), 0, p.stderr)
        summary = self.summary(p)
        self.assert_balanced(summary)
        self.assertEqual(summary["result"], "done")
        for name in ("tx", "rx"):
            self.assertIn("monitor: %s is done after 10 ticks" % name, p.stderr)
        self.assert_nothing_left()

    def test_an_operator_ends_a_distributed_application(self):
        p = self.start("fragctl", "run", "--workers", "2", "--output", "json", self.write("app.yaml", MONITORED))
        self.assertEqual(p.wait(60), 0, p.stderr)
        summary = self.summary(p)
        self.assert_balanced(summary)
        self.assertEqual(summary["result"], "done")
        self.assertEqual([f["state"] for f in summary["fragments"]], ["done", "done"])
        self.assertEqual(len({f["worker"] for f in summary["fragments"]}), 2)
        self.assert_nothing_left()

    def test_a_name_that_is_not_there(self):
        p = self.start("fragctl", "run", "--set", "operator_status_tracking.monitor.watch=[rxx]",
                       os.path.join(EXAMPLES, "operator_status_tracking", "app.yaml"))
        self.assertEqual(p.wait(60), 2)
        self.assertIn('there is no operator "rxx" in this fragment', p.stderr)
