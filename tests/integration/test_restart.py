# SPDX-License-Identifier: Apache-2.0
"""on_failure: restart. A host that dies is started again, and its neighbours go on.

Ground truth is what the operators wrote: a sender writes after emit has returned, a receiver before
it does anything else, so each may be one message behind at a kill.
"""
import os
import re
import signal

import cluster

APP = """
frag: 1
application: again
arguments:
  count: {default: 0}
  edge: {default: auto}
  policy: {default: block}
  encrypt: {default: false}
  intensity: {default: 5}
  rx_fail: {default: never}
  tx: {default: truth_tx}
extensions: [libtruth.so]
fragments:
  source:
    %(source)s
    operators:
      tx: {type: "${tx}", parameters: {file: "%(folder)s/sent", pause: 1ms, count: "${count}"}}
  sink:
    %(sink)s
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received", fail: "${rx_fail}", fail_at: 20}}
flows:
  - {from: source.tx.out, to: sink.rx.in, edge: "${edge}", policy: "${policy}", encrypt: "${encrypt}"}
"""
RESTART = 'on_failure: {policy: restart, intensity: "${intensity}", period: 60s, backoff: 10ms}'
POLICIES = ("block", "pop", "reject", "latest")


class Restart(cluster.ClusterTest):
    def launch(self, *args, source="", sink="", workers=1):
        app = self.write("app.yaml", APP % {"folder": self.folder, "source": source, "sink": sink})
        self.d = self.driver(app, "--output", "json", app_args=args)
        self.w = [self.worker() for _ in range(workers)]

    def received(self):
        path = self.path("received")
        return cluster.sequence(path) if os.path.exists(path) else []

    def sent(self):
        path = self.path("sent")
        return cluster.sequence(path) if os.path.exists(path) else []

    def wait_received(self, more):
        """So many messages more than now."""
        goal = len(self.received()) + more
        self.wait_until("%d messages received" % goal,
                        lambda: self.d.child.poll() is not None or len(self.received()) >= goal)
        self.assertIsNone(self.d.child.poll(), "the driver has ended:\n" + self.d.stderr)

    def host_of(self, fragment):
        """The pid of the newest host of the fragment."""
        found = []
        for w in self.w:
            found += re.findall(r"runs %s \(fraghost (\d+)\)" % fragment, w.stderr)
        return int(found[-1])

    def kill_host(self, fragment, times, signum=signal.SIGKILL):
        os.kill(self.host_of(fragment), signum)
        self.wait_until("%s runs again" % fragment, lambda: len(
            re.findall("%s runs again on worker" % fragment, self.d.stderr)) == times or
            self.d.child.poll() is not None)
        self.assertIsNone(self.d.child.poll(), "the driver has ended:\n" + self.d.stderr)

    def stop(self):
        self.d.signal(signal.SIGINT)
        code = self.d.wait()
        summary = self.summary(self.d)
        self.assertEqual((code, summary["result"]), (0, "stopped"), self.d.stderr)
        self.assert_balanced(summary)
        self.assert_nothing_left(keep=self.w)
        return summary

    def fragment(self, summary, name):
        return [f for f in summary["fragments"] if f["name"] == name][0]

    def check_counts(self, summary, kills):
        """frag's counts are the truth, but for the number that a kill has kept from being written."""
        flow = self.flow(summary, "source.tx.out")
        sent, received = len(self.sent()), len(self.received())
        self.assertTrue(sent <= flow["sent"] <= sent + kills, (sent, flow))
        self.assertTrue(received <= flow["delivered"] <= received + kills, (received, flow))
        self.assertEqual(flow["in_flight"], 0)
        self.assertTrue(flow["exact"])
        return flow

    def kill_receiver(self, edge, policy, *args):
        self.launch("--edge", edge, "--policy", policy, *args, sink=RESTART)
        self.wait_received(20)
        for times in (1, 2):
            self.kill_host("sink", times)
            self.wait_received(20)
        summary = self.stop()
        flow = self.check_counts(summary, 2)
        sink = self.fragment(summary, "sink")
        self.assertEqual((sink["restarts"], sink["state"]), (2, "stopped"))
        self.assertEqual(self.fragment(summary, "source")["restarts"], 0)
        self.assertLessEqual(flow["lost"], 2 * 8, "the window, and the receiver's queue")
        if flow["lost"] > 0:
            self.assertIn("SIGKILL", flow["lost_because"])
        received = self.received()
        self.assertEqual(received, sorted(set(received)), "in order, and nothing twice")
        if policy == "block":
            self.assertEqual(sum(flow["dropped"].values()), flow["dropped"]["stopped"], flow)

    def kill_sender(self, edge, policy, *args):
        self.launch("--edge", edge, "--policy", policy, *args, source=RESTART)
        self.wait_received(20)
        for times in (1, 2):
            self.kill_host("source", times)
            self.wait_received(20)
        summary = self.stop()
        flow = self.check_counts(summary, 2)
        self.assertEqual(self.fragment(summary, "source")["restarts"], 2)
        self.assertLessEqual(flow["lost"], 2 * 8)
        self.assertGreaterEqual(self.sent().count(1), 3, "an operator starts anew")
        if policy == "block":
            self.assertEqual(self.received().count(1), self.sent().count(1), "from the first one")

    def test_receiver_over_shm(self):
        for policy in POLICIES:
            with self.subTest(policy):
                self.reset()
                self.kill_receiver("shm", policy)

    def test_receiver_over_ucx(self):
        for policy in POLICIES:
            with self.subTest(policy):
                self.reset()
                self.kill_receiver("ucx", policy)

    def test_sender_over_shm(self):
        for policy in POLICIES:
            with self.subTest(policy):
                self.reset()
                self.kill_sender("shm", policy)

    def test_sender_over_ucx(self):
        for policy in POLICIES:
            with self.subTest(policy):
                self.reset()
                self.kill_sender("ucx", policy)

    def test_a_host_that_hangs(self):
        """It is killed when its worker has not heard it for the time of death, and started again."""
        self.launch("--edge", "shm", "--policy", "block", sink=RESTART)
        self.wait_received(20)
        self.kill_host("sink", 1, signal.SIGSTOP)
        self.wait_received(20)
        summary = self.stop()
        self.assertEqual(self.fragment(summary, "sink")["restarts"], 1)
        received = self.received()
        self.assertEqual(received, sorted(set(received)), "in order, and nothing twice")

    def test_encrypted(self):
        for edge in ("shm", "ucx"):
            with self.subTest(edge):
                self.reset()
                self.kill_receiver(edge, "block", "--encrypt", "true")
            with self.subTest(edge):
                self.reset()
                self.kill_sender(edge, "block", "--encrypt", "true")

    def reset(self):
        """The part of a test before this one has left nothing."""
        for p in self.processes:
            if p.child.poll() is None:
                p.signal(signal.SIGTERM)
                p.wait()
        for name in ("sent", "received"):
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))

    def test_what_it_saved_is_restored(self):
        """It goes on where it was, but for a number that it sent and had not saved yet."""
        self.launch("--tx", "truth_saving_tx", source=RESTART)
        for times in (1, 2, 3):
            self.wait_received(20)
            self.kill_host("source", times)
        self.wait_received(20)
        summary = self.stop()
        self.assertEqual(self.fragment(summary, "source")["restarts"], 3)
        sent = self.sent()
        self.assertEqual(sent, sorted(sent))
        self.assertEqual(sorted(set(sent)), list(range(1, sent[-1] + 1)), "no number is left out")
        self.assertLessEqual(len(sent) - len(set(sent)), 3)

    def test_another_run_begins_anew(self):
        for _ in range(2):
            self.reset()
            self.launch("--tx", "truth_saving_tx", "--count", "5", source=RESTART)
            self.assertEqual(self.d.wait(), 0, self.d.stderr)
            self.assertEqual(self.sent(), [1, 2, 3, 4, 5])

    def test_both_at_once(self):
        self.launch(source=RESTART, sink=RESTART.replace("10ms", "20ms"))
        self.wait_received(20)
        os.kill(self.host_of("source"), signal.SIGKILL)
        self.kill_host("sink", 1)
        self.wait_until("source runs again", lambda: "source runs again" in self.d.stderr)
        self.wait_received(20)
        summary = self.stop()
        self.check_counts(summary, 2)

    def test_it_ends_by_itself(self):
        """What the source had sent before and after its receiver died is not waited for."""
        self.launch("--count", "5000", sink=RESTART)
        self.wait_received(20)
        self.kill_host("sink", 1)
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        summary = self.summary(self.d)
        self.assertEqual(summary["result"], "done")
        self.assert_balanced(summary)
        flow = self.check_counts(summary, 1)
        self.assertEqual((flow["sent"], len(self.sent())), (5000, 5000))
        self.assertEqual(self.received()[-1], 5000)

    def test_a_loop_of_crashes_ends(self):
        self.launch("--rx_fail", "crash", "--intensity", "2", sink=RESTART)
        self.assertEqual(self.d.wait(), 1, self.d.stderr)
        summary = self.summary(self.d)
        self.assertEqual(summary["result"], "failed")
        self.assertRegex(summary["reason"], r"sink on worker \S+ failed again after 2 restarts within "
                         r"60\.0 s, as many as its on_failure allows; the first time: .*sink\.rx.*SIGSEGV")
        self.assertEqual((summary["failure"]["code"], summary["failure"]["operator"]),
                         ("host_crashed", "sink.rx"))
        self.assertEqual(self.fragment(summary, "sink")["restarts"], 2)
        self.assert_balanced(summary)
        self.assert_nothing_left(keep=self.w)

    def test_an_operator_that_fails(self):
        """The host has not ended: it is killed, and started again."""
        self.launch("--rx_fail", "error", "--intensity", "1", sink=RESTART)
        self.assertNotEqual(self.d.wait(), 0, self.d.stderr)
        summary = self.summary(self.d)
        self.assertEqual(summary["failure"]["code"], "operator_failed")
        self.assertRegex(summary["reason"], r"the first time: sink\.rx: the test asked for an error")
        self.assertEqual(self.fragment(summary, "sink")["restarts"], 1)
        self.assert_balanced(summary)

    def test_a_stop_while_it_is_started_again(self):
        self.launch(sink=RESTART.replace("10ms", "50s"), workers=1)
        self.wait_received(20)
        self.kill_host("sink", 1)
        self.wait_received(20)
        os.kill(self.host_of("sink"), signal.SIGKILL)  # and now it waits for its backoff
        self.d.wait_line(r"sink is started again on worker \S+ \(2 of 5\)")
        summary = self.stop()
        self.check_counts(summary, 2)

    def test_without_it_the_application_fails(self):
        self.launch()
        self.wait_received(20)
        os.kill(self.host_of("source, sink"), signal.SIGKILL)
        self.assertEqual(self.d.wait(), 1)
