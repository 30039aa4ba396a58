# SPDX-License-Identifier: Apache-2.0
"""on_failure: migrate. A host goes on on another worker when its own is lost, and never runs twice.

Ground truth is what the operators wrote, and which processes the kernel has.
"""
import os
import re
import select
import signal
import threading
import time

from test_service import ServiceTest

APP = """
frag: 1
application: chain
arguments:
  edge: {default: auto}
extensions: [libtruth.so]
fragments:
  source:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", pause: 1ms}}
  sink:
    on_failure: {policy: migrate, intensity: 5, period: 60s, backoff: 10ms, lease: %(lease)s}
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - {from: source.tx.out, to: sink.rx.in, edge: "${edge}"}
"""


class Death(threading.Thread):
    """When a process dies, and whether it ever did before another event."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.fd = os.pidfd_open(pid)
        self.at = None
        self.start()

    def run(self):
        select.select([self.fd], [], [])
        self.at = time.monotonic()
        os.close(self.fd)

    def wait(self):
        """When it died; it may still be about to."""
        self.join(10)
        return self.at


class Migrate(ServiceTest):
    def begin(self, lease, *args, spare=True, state=()):
        self.d = self.serve(*state)[0]
        self.w = {}
        self.add("home", "source")
        self.add("b", "sink")
        self.app = self.write("chain.yaml", APP % {"folder": self.folder, "lease": lease})
        self.ok("start", self.app, "--", *args)
        if spare:
            self.add("c", "sink")
        self.wait_received(20)

    def add(self, name, fragments):
        self.w[name] = self.worker("--name", name, "--fragments", fragments)
        self.wait_until(name, lambda: name in {w["name"] for w in self.live_workers()})

    def sink(self):
        return [h for h in self.application("chain")["hosts"] if h["fragments"] == "sink"][0]

    def wait_on(self, worker):
        self.wait_until("the sink on %s" % worker, lambda: (self.sink()["worker"], self.sink()["state"]) == (worker, "running"))
        self.wait_received(20)

    def spawned_at(self, worker):
        """When the newest sink of a worker was started."""
        pid = int(re.findall(r"runs sink \(fraghost (\d+)\)", self.w[worker].stderr)[-1])
        with open("/proc/%d/stat" % pid) as f:
            ticks = int(f.read().rpartition(")")[2].split()[19])
        return ticks / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.ok("stop", "chain")
        summary = self.json("status", "chain")
        self.assertEqual(summary["result"], "stopped", summary)
        self.assert_balanced(summary)
        received = self.numbers("received")
        self.assertEqual(received, sorted(set(received)), "in order, and nothing twice")
        return summary, self.flow(summary, "source.tx.out")

    def killed(self, edge):
        self.begin("0s", "--edge", edge)
        self.w["b"].kill()
        self.wait_on("c")
        events = map(self.document, self.ok("events", "-o", "json").splitlines())
        self.assertIn(("migrated", "chain"), [(e["kind"], e["application"]) for e in events])
        summary, flow = self.end()
        self.assertLessEqual(flow["lost"], 8, "the window, and the receiver's queue")
        if flow["lost"]:
            self.assertIn("worker b at", flow["lost_because"])
        sink = [f for f in summary["fragments"] if f["name"] == "sink"][0]
        self.assertEqual((sink["restarts"], sink["worker"]), (1, "c"))

    def test_a_killed_worker_over_shm(self):
        self.killed("shm")

    def test_a_killed_worker_over_ucx(self):
        self.killed("ucx")

    def test_a_killed_worker_under_a_lease(self):
        """Its hosts have died with it, but its driver cannot know: it waits for the end of the lease."""
        self.begin("4s")
        at = time.monotonic()
        self.w["b"].kill()
        self.wait_until("explained", lambda: "it may still run there, until its lease is over" in
                        self.ok("explain", "chain", "sink"))
        self.wait_on("c")
        self.assertGreater(self.spawned_at("c"), at + 4 - 0.5, "the last beat may be older than the kill")
        self.end()

    def frozen(self, lease, *names):
        """What is stopped for longer than the lease has died by the time that another one begins."""
        self.begin("%ds" % lease)
        old = self.sink()["pid"]
        death = Death(old)
        for pid in [self.w["b"].child.pid if name == "worker" else old for name in names]:
            os.kill(pid, signal.SIGSTOP)
        self.wait_on("c")
        self.assertIsNotNone(death.at, "two owners")
        self.assertLess(death.at, self.spawned_at("c"), "two owners")
        received = len(self.numbers("received"))
        os.kill(self.w["b"].child.pid, signal.SIGCONT)
        self.w["b"].wait_line("its lease of %d.0 s is over" % lease)
        self.wait_until("b again", lambda: "b" in {w["name"] for w in self.live_workers()})
        self.assertEqual(self.sink()["worker"], "c")
        self.wait_received(20)
        self.assertGreater(len(self.numbers("received")), received)
        self.end()

    def test_a_stopped_worker_whose_host_runs(self):
        self.frozen(2, "worker")

    def test_a_stopped_worker_and_host(self):
        self.frozen(4, "worker", "host")

    def test_the_driver_is_away_for_longer_than_the_lease(self):
        """The host ends; the next driver starts it again. A host without a lease runs on."""
        state = ("--state-dir", self.path("state"))
        self.begin("2s", spare=False, state=state)
        d, old = self.d, self.sink()["pid"]
        death = Death(old)
        port = int(self.address.rpartition(":")[2])
        d.kill()
        d.wait()
        at = time.monotonic()
        self.w["b"].wait_line(r"its lease of 2\.0 s is over")
        self.assertLess(death.wait() - at, 2.5)
        self.assertIsNone(self.w["home"].child.poll())
        self.serve(*state, port=port)
        self.wait_until("adopted", lambda: (self.application("chain") or {}).get("state") == "running")
        self.wait_on("b")
        self.assertTrue(self.application("chain")["adopted"])
        self.end()

    def test_a_planned_restart_of_the_driver_keeps_what_runs(self):
        """SIGTERM extends leases, so a host outlives its own for as long as the next driver may need."""
        state = ("--state-dir", self.path("state"))
        self.begin("1s", spare=False, state=state)
        d, old = self.d, self.sink()["pid"]
        port = int(self.address.rpartition(":")[2])
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        time.sleep(3)  # longer than the lease: nothing can be waited for that does not happen
        self.serve(*state, port=port)
        self.wait_until("adopted", lambda: (self.application("chain") or {}).get("state") == "running")
        self.assertEqual(self.sink()["pid"], old)
        self.wait_received(20)
        flow = self.end()[1]
        self.assertEqual((flow["lost"], flow["delivered"]), (0, flow["sent"]))

    def test_where_no_worker_fits_it_waits(self):
        self.begin("0s", spare=False)
        self.w["b"].kill()
        self.wait_until("explained", lambda: "no live worker names it" in self.ok("explain", "chain", "sink"))
        self.assertEqual(self.application("chain")["state"], "running")
        self.add("late", "sink")
        self.wait_on("late")
        self.end()

    def test_a_worker_that_is_told_to_end(self):
        """Its host has surely ended, so nothing is waited for."""
        self.begin("1h")
        self.w["b"].signal(signal.SIGTERM)
        self.wait_on("c")
        self.end()

    def test_a_host_that_fails_stays_where_it_is(self):
        self.begin("2s")
        os.kill(self.sink()["pid"], signal.SIGKILL)
        self.wait_until("a restart", lambda: "sink runs again on worker b" in self.d.stderr)
        self.wait_on("b")
        self.end()
