# SPDX-License-Identifier: Apache-2.0
"""Services of an application over several hosts, and what their failures look like."""
import os
import re
import signal

import cluster

EXAMPLES = os.path.join(cluster.TOP, "examples")
APP = """
frag: 1
application: app
arguments: {where: {default: nowhere}, deed: {default: fail}}
extensions: [libhost_service.so]
services: {hub: {type: hub, where: "${where}", deed: "${deed}"}}
fragments:
  f1: {operators: {tx: {type: ping_tx, conditions: [{type: count, count: 10}]}}}
  f2: {operators: {rx: {type: ping_rx}}}
flows: [f1.tx -> f2.rx]
"""


class Services(cluster.ClusterTest):
    def run_app(self, *args, flags=("--workers", "2")):
        run = self.start("fragctl", "run", *flags, "--output", "json", self.write("app.yaml", APP), "--", *args)
        run.code = run.wait(60)
        return run

    def calls(self, run):
        return re.findall(r"(?m)^\S+(?: and \d+ more)?: hub: (.*)$", run.stderr)

    def test_the_example_in_one_process(self):
        p = self.start("fragctl", "run", "--output", "json", os.path.join(EXAMPLES, "services", "app.yaml"))
        self.assertEqual(p.wait(60), 0, p.stderr)
        self.assertEqual(p.stderr.count("meeting: open at 127.0.0.1:4712"), 1)
        self.assertEqual(p.stderr.count("meeting: left 127.0.0.1:4712"), 1)
        for n in (1, 2, 3):
            self.assertRegex(p.stderr, r"north\.(anna|emil): visitor %d of this fragment" % n)
        self.assertIn("south.olga: visitor 1 of this fragment, meeting at 127.0.0.1:4712", p.stderr)
        self.assertLess(p.stderr.rindex("meeting: left"), p.stderr.index("meeting: closed"))
        self.assert_nothing_left()

    def test_the_example_on_two_workers(self):
        """Only the host of the first fragment opens, both know where, and it closes last."""
        p = self.start("fragctl", "run", "--workers", "2", "--output", "json",
                       os.path.join(EXAMPLES, "services", "app.yaml"))
        self.assertEqual(p.wait(60), 0, p.stderr)
        self.assertEqual(p.stderr.count("meeting: open at 127.0.0.1:4712"), 1)
        self.assertEqual(p.stderr.count("meeting: left 127.0.0.1:4712"), 2)
        self.assertEqual(p.stderr.count("meeting: closed"), 1)
        self.assertIn("south.olga: visitor 1 of this fragment, meeting at 127.0.0.1:4712", p.stderr)
        self.assertLess(p.stderr.rindex("meeting: left"), p.stderr.index("meeting: closed"))
        self.assert_nothing_left()

    def test_a_resource_by_name_and_by_position(self):
        p = self.start("fragctl", "run", "--output", "json",
                       os.path.join(EXAMPLES, "custom_resource", "app.yaml"))
        self.assertEqual(p.wait(60), 0, p.stderr)
        for line in ("show: -19.5, raw 1", "show: -19, raw 2", "show: -18.5, raw 3"):
            self.assertIn(line, p.stderr)

    def test_all_is_called_once_in_order(self):
        run = self.run_app()
        self.assertEqual(run.code, 0, run.stderr)
        calls = self.calls(run)
        self.assertEqual(calls[:3], ["driver_start", "worker_connect", "worker_connect"])
        self.assertEqual(calls[3:], ["worker_disconnect", "worker_disconnect", "driver_stop"])
        self.assert_nothing_left()

    def test_refusals(self):
        """The sentence reaches the user, and no operator has run."""
        run = self.run_app("--where", "driver_start")
        self.assertEqual(run.code, 1, run.stderr)
        self.assertIn("app.hub: driver_start was refused; open the port", self.summary(run)["reason"])
        self.assertEqual(self.calls(run), ["driver_start"])
        run = self.run_app("--where", "worker_connect")
        self.assertEqual(run.code, 1, run.stderr)
        self.assertIn("app.hub: worker_connect was refused; open the port", self.summary(run)["reason"])
        self.assertEqual(self.calls(run).count("worker_connect"), 2)
        self.assertNotIn("Rx message", run.stderr)
        self.assert_nothing_left()

    def test_failures_at_the_end_are_logged(self):
        for where in ("worker_disconnect", "driver_stop"):
            run = self.run_app("--where", where)
            self.assertEqual(run.code, 0, run.stderr)
            self.assertIn("hub: %s returned -111" % where, run.stderr)
        self.assert_nothing_left()

    def test_crashes_and_lost_threads(self):
        for where in ("driver_start", "worker_connect"):
            run = self.run_app("--where", where, "--deed", "crash")
            self.assertEqual(run.code, 1, run.stderr)
            self.assertRegex(self.summary(run)["reason"], r"SIGABRT|Aborted|signal 6")
            run = self.run_app("--where", where, "--deed", "leave_thread")
            self.assertEqual(run.code, 1, run.stderr)
            self.assertIn("app.hub: %s has ended its thread (pthread_exit)" % where, self.summary(run)["reason"])
        self.assert_nothing_left()

    def test_a_stop_ends_one_that_hangs(self):
        for where in ("driver_start", "worker_connect"):
            run = self.start("fragctl", "run", "--workers", "2", "--output", "json", self.write("app.yaml", APP),
                             "--", "--where", where, "--deed", "hang")
            run.wait_line("hub: " + where)
            run.signal(signal.SIGINT)
            run.code = run.wait(60)
            self.assertIn(run.code, (0, 1), run.stderr)
        self.assert_nothing_left()
