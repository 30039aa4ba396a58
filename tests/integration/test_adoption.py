# SPDX-License-Identifier: Apache-2.0
"""A driver that comes back adopts the applications that ran while it was away."""
import os
import random
import shutil
import signal
import time

from test_service import ENDLESS, ServiceTest

COUNTED = ENDLESS.replace("recess_period: 200hz}", "recess_period: 200hz}, {type: count, count: 300}")
RESTARTED = ENDLESS.replace("  fragment1:", "  fragment1:\n    on_failure: {policy: restart, intensity: 5, period: 1min}", 1)


class Adopted(ServiceTest):
    def setUp(self):
        super().setUp()
        self.state = self.path("state")
        self.own = ENDLESS.replace("  fragment2:", "  fragment2:\n    host: other")
        self.endless = self.write("endless.yaml", self.own)

    def keep(self, **more):
        return self.serve("--state-dir", self.state, **more)

    def restart_driver(self, **more):
        """The next driver, where the last one was."""
        return self.keep(port=int(self.address.rpartition(":")[2]), **more)[0]

    def end(self, *daemons):
        for daemon in daemons:
            daemon.kill()
            daemon.wait()

    def wait_runs(self, name, adopted=True):
        self.wait_until(name, lambda: (self.application(name) or {}).get("state") == "running")
        self.assertEqual(self.application(name)["adopted"], adopted)

    def pids(self, name):
        return [h["pid"] for h in self.application(name)["hosts"]]

    def gone(self, pid):
        self.wait_until("the end of %d" % pid, lambda: not os.path.exists("/proc/%d" % pid))

    def stopped(self, name):
        self.ok("stop", name)
        return self.json("status", name)

    def nothing_is_lost(self, summary):
        for flow in summary["flows"]:
            self.assertGreater(flow["sent"], 0)
            self.assertEqual((flow["lost"], flow["in_flight"], flow["delivered"]), (0, 0, flow["sent"]))
            self.assertTrue(flow["exact"])

    def events(self):
        return [(e["kind"], e["application"]) for e in map(self.document, self.ok("events", "-o", "json").splitlines())]

    def test_a_kill_loses_nothing(self):
        d, a, b = self.keep(workers=("a", "b"))
        self.ok("start", self.endless)
        self.ok("start", self.endless, "--name", "unwanted")
        self.ok("stop", "unwanted")
        self.wait_delivered("stream")
        pids, delivered = self.pids("stream"), self.application("stream")["delivered"]
        self.end(d)
        self.restart_driver()
        self.wait_runs("stream")
        self.assertEqual(self.application("stream")["run"], 1)
        self.assertEqual(self.pids("stream"), pids)
        self.wait_delivered("stream")
        self.assertGreater(self.application("stream")["delivered"], delivered)
        self.assertEqual([x["name"] for x in self.json("list")["applications"]], ["stream"])
        self.assertIn("adopted: it ran already when driverd started", self.ok("list"))
        self.assertRegex(self.ok("status", "stream"), r"stream: running \(adopted\) for ")
        self.assertIn(("adopted", "stream"), self.events())
        summary = self.stopped("stream")
        self.assertEqual(summary["result"], "stopped")
        self.nothing_is_lost(summary)
        for pid in pids:
            self.gone(pid)

    def test_a_planned_stop_loses_nothing(self):
        d, a = self.keep(workers=("a",))
        self.ok("start", self.endless)
        self.ok("start", self.endless, "--name", "other")
        pids = self.pids("stream") + self.pids("other")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.assertIn("leaves 2 applications running", d.stderr)
        self.restart_driver()
        for name in ("stream", "other"):
            self.wait_runs(name)
            self.wait_delivered(name)
        self.assertEqual(self.pids("stream") + self.pids("other"), pids)
        self.ok("stop", "--all")
        self.assertEqual(self.json("list")["applications"], [])
        for name in ("stream", "other"):
            self.nothing_is_lost(self.json("status", name))

    def test_a_driver_that_stood_still_loses_nothing(self):
        """Its workers have left it by then, and run on."""
        d, a, b = self.keep(workers=("a", "b"))
        self.ok("start", self.endless)
        pids = self.pids("stream")
        d.signal(signal.SIGSTOP)
        for worker in (a, b):
            worker.wait_line("lost the driver|waiting for the driver")
        d.signal(signal.SIGCONT)
        d.wait_line("begins again, and adopts what runs")
        self.wait_until("the driver", lambda: d.stderr.count("waits for applications") == 2)
        self.wait_until("workers", lambda: len(self.live_workers()) == 2)
        self.wait_runs("stream")
        self.wait_delivered("stream")
        self.assertEqual(self.pids("stream"), pids)
        summary = self.stopped("stream")
        self.nothing_is_lost(summary)
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)

    def test_a_driver_that_stands_still_in_pieces_loses_nothing(self):
        """As without a processor: a little time between pauses, each shorter than the time of death."""
        d, a, b = self.keep(workers=("a", "b"))
        self.ok("start", self.endless)
        pids, draw = self.pids("stream"), random.Random(int(os.environ.get("SEED", "4")))
        for _ in range(5):
            d.signal(signal.SIGSTOP)
            time.sleep(draw.uniform(1, 2.8))
            d.signal(signal.SIGCONT)
            time.sleep(draw.uniform(0.001, 0.02))
        self.wait_until("workers", lambda: len(self.json("workers")["workers"]) == 2)
        self.wait_delivered("stream")
        self.assertEqual(self.pids("stream"), pids, d.stderr)
        self.assertNotIn("failed", [kind for kind, _ in self.events()])
        self.nothing_is_lost(self.stopped("stream"))

    def test_a_stop_before_it_is_adopted_loses_nothing(self):
        d, a, b = self.keep(workers=("a", "b"))
        self.ok("start", self.endless)
        self.wait_delivered("stream")
        for worker in (a, b):
            worker.signal(signal.SIGSTOP)
        self.end(d)
        self.restart_driver()
        stop = self.start("fragctl", "stop", "stream")
        self.wait_until("the stop", lambda: ("stop", "stream") in self.events())
        for worker in (a, b):
            worker.signal(signal.SIGCONT)
        self.assertEqual(stop.wait(), 0, stop.stderr)
        summary = self.json("status", "stream")
        self.assertEqual(summary["result"], "stopped")
        self.nothing_is_lost(summary)

    def test_kills_in_a_row_lose_nothing(self):
        """Also before the next driver has adopted anything, and without the state of the last one."""
        d, a, b = self.keep(workers=("a", "b"))
        for name in ("stream", "other"):
            self.ok("start", self.endless, "--name", name)
        pids = self.pids("stream") + self.pids("other")
        for patience in ("adopted", "listening on", "adopted", "waits for applications", "joined"):
            self.end(d)
            if patience == "joined":
                shutil.rmtree(self.state)
            d = self.restart_driver()
            d.wait_line(patience)
        for name in ("stream", "other"):
            self.wait_runs(name)
            self.wait_delivered(name)
        self.assertEqual(self.pids("stream") + self.pids("other"), pids)
        self.ok("stop", "--all")
        for name in ("stream", "other"):
            self.nothing_is_lost(self.json("status", name))

    def test_from_the_reports_alone(self):
        d, a, b = self.keep(workers=("a", "b"))
        self.ok("start", self.endless, "--name", "first")
        self.ok("stop", "first")
        self.ok("start", self.endless)
        pids = self.pids("stream")
        self.end(d)
        shutil.rmtree(self.state)
        d = self.restart_driver()
        self.wait_runs("stream")
        self.assertEqual(self.pids("stream"), pids)
        self.assertEqual(self.application("stream")["run"], 2)
        # Numbers go on above those that were reported, and it is kept again.
        self.ok("start", self.endless, "--name", "next")
        self.assertEqual(self.application("next")["run"], 3)
        self.assertGreater(self.application("next")["epoch"], self.application("stream")["epoch"])
        self.end(d)
        self.restart_driver()
        self.wait_runs("stream")
        self.wait_runs("next")
        self.assertEqual(self.pids("stream"), pids)
        self.nothing_is_lost(self.stopped("stream"))

    def test_what_ended_meanwhile_is_accounted_for(self):
        d, a, b = self.keep(workers=("a", "b"))
        self.ok("start", self.write("counted.yaml", COUNTED), "--name", "counted")
        self.ok("start", self.endless, "--name", "killed")
        self.ok("start", self.endless)
        killed = self.pids("killed")
        self.end(d)
        os.kill(killed[0], signal.SIGKILL)
        self.gone(killed[0])
        self.restart_driver()
        self.wait_runs("stream")
        self.wait_until("both end", lambda: len(self.json("list")["ended"]) == 2)
        summary = self.json("status", "counted")
        self.assertEqual((summary["result"], summary["flows"][0]["delivered"]), ("done", 300))
        self.nothing_is_lost(summary)
        summary = self.failed("killed")
        self.assertEqual(summary["result"], "failed")
        # Its sentence names the operator, too, if it was in a tick.
        self.assertRegex(summary["failure"]["sentence"], "was killed( in .*, tick .*)?: signal 9")
        flow = summary["flows"][0]
        self.assertEqual(flow["sent"], flow["delivered"] + flow["lost"] + flow["in_flight"] + sum(flow["dropped"].values()))
        self.gone(killed[1])
        self.nothing_is_lost(self.stopped("stream"))

    def test_a_host_that_failed_meanwhile_is_started_again(self):
        d, a = self.keep(workers=("a",))
        self.ok("start", self.write("restarted.yaml", RESTARTED))
        sender, receiver = self.pids("stream")
        os.kill(sender, signal.SIGKILL)
        self.wait_until("another host", lambda: self.pids("stream")[0] != sender)
        self.wait_delivered("stream")
        sender = self.pids("stream")[0]
        self.end(d)
        os.kill(sender, signal.SIGKILL)
        self.gone(sender)
        self.restart_driver()
        self.wait_runs("stream")
        self.wait_until("another host", lambda: self.pids("stream")[0] != sender)
        self.assertEqual((self.application("stream")["run"], self.pids("stream")[1]), (1, receiver))
        self.wait_delivered("stream")
        summary = self.stopped("stream")
        self.assertEqual(summary["result"], "stopped")
        self.assertEqual(summary["fragments"][0]["restarts"], 2)
        flow = summary["flows"][0]
        self.assertEqual(flow["sent"], flow["delivered"] + flow["lost"] + flow["in_flight"] + sum(flow["dropped"].values()))

    def test_what_lost_a_worker_meanwhile_starts_anew(self):
        d, a, b = self.keep(workers=("a", "b"))
        self.ok("start", self.endless)
        workers = {h["worker"] for h in self.application("stream")["hosts"]}
        pids = self.pids("stream")
        self.end(d, b)
        self.restart_driver(workers=("b",))
        if workers == {"a"}:
            self.wait_runs("stream")
            return
        self.wait_runs("stream", adopted=False)
        self.assertEqual(self.application("stream")["run"], 2)
        for pid in pids:
            self.gone(pid)
        self.wait_delivered("stream")

    def test_another_driver_gets_nothing(self):
        """One that runs a single application does not keep those of a service."""
        d, a = self.keep(workers=("a",))
        self.ok("start", self.endless)
        pids = self.pids("stream")
        self.end(d)
        counted = self.write("counted.yaml", COUNTED)
        p = self.start("driverd", "--address", self.address, "--app", counted)
        self.assertEqual(p.wait(), 0, p.stderr)
        for pid in pids:
            self.gone(pid)
