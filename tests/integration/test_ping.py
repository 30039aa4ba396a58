# SPDX-License-Identifier: Apache-2.0
"""An application over two hosts that goes well: every message arrives, in order, once, and is
accounted for."""
import json
import os
import signal
import time

import cluster

APP = """
frag: 1
application: stream
arguments:
  count: {default: "100"}
  size: {default: "8"}
  pause: {default: "0"}
  rx_pause: {default: "0"}
  policy: {default: block}
  capacity: {default: "4"}
  edge: {default: auto}
extensions: [libtruth.so]
fragments:
  fragment1:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", count: "${count}", size: "${size}", pause: "${pause}"}}
  fragment2:
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received", pause: "${rx_pause}"}}
flows:
  - {from: fragment1.tx.out, to: fragment2.rx.in, policy: "${policy}", capacity: "${capacity}", edge: "${edge}"}
"""


class Streams(cluster.ClusterTest):
    edge = "auto"

    app_text = APP

    def run_stream(self, *app_args):
        driver = self.driver(self.app, "--output", "json", app_args=("--edge", self.edge, *app_args))
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        code = driver.wait(120)
        self.assertEqual(code, 0, driver.stderr)
        for w in workers:
            self.assertEqual(w.wait(), 0, w.stderr)
        summary = self.summary(driver)
        self.assert_balanced(summary)
        self.assert_nothing_left()
        return summary

    def sent_and_received(self):
        return cluster.sequence(self.path("sent")), cluster.sequence(self.path("received"))


class Stream(Streams):
    def test_every_message_arrives_in_order(self):
        summary = self.run_stream("--count", "1000")
        sent, received = self.sent_and_received()
        self.assertEqual(sent, list(range(1, 1001)))
        self.assertEqual(received, sent)
        flow = self.flow(summary, "fragment1.tx.out")
        self.assertEqual((flow["sent"], flow["delivered"], flow["lost"], flow["in_flight"]), (1000, 1000, 0, 0))
        self.assertEqual(flow["edge"], "shm")
        self.assertEqual(flow["latency_ns"]["count"], 1000)
        self.assertEqual(summary["result"], "done")
        self.assertEqual({f["name"]: f["state"] for f in summary["fragments"]},
                         {"fragment1": "done", "fragment2": "done"})
        self.assertNotEqual(*(f["host_pid"] for f in summary["fragments"]))

    def test_what_endpoints_become_is_logged_at_debug(self):
        self.env["FRAG_LOG_LEVEL"] = "debug"
        driver = self.driver(self.app)
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        self.assertEqual(driver.wait(120), 0, driver.stderr)
        for w in workers:
            self.assertEqual(w.wait(), 0, w.stderr)
            self.assertRegex(w.stderr,
                             r"debug edge \S+: endpoint to host \d, epoch \d+, over shm: connecting -> ready\n")

    def test_one_output_here_and_elsewhere(self):
        here = '      rx: {type: truth_rx, parameters: {file: "%(folder)s/here"}}\n    flows: [tx.out -> rx.in]\n'
        self.write("app.yaml", APP.replace("  fragment2:\n", here + "  fragment2:\n") % {"folder": self.folder})
        summary = self.run_stream("--count", "300")
        for name in ("sent", "received", "here"):
            self.assertEqual(cluster.sequence(self.path(name)), list(range(1, 301)), name)
        self.assertEqual({f["to"]: (f["edge"], f["delivered"]) for f in summary["flows"]},
                         {"fragment1.rx.in": ("inproc", 300), "fragment2.rx.in": ("shm", 300)})

    def test_full_speed_64_kib(self):
        self.run_stream("--count", "10000", "--size", "65536")
        sent, received = self.sent_and_received()
        self.assertEqual(len(sent), 10000)
        self.assertEqual(received, sent)

    def test_large_tensor(self):
        # Beyond the window of 64 MiB also where all is slow, and where freeing more than that keeps
        # beats away for seconds.
        size = (256 << 20) // min(cluster.TIMES_SLOWER, 3)
        summary = self.run_stream("--count", "2", "--size", str(size))
        self.assertEqual(self.sent_and_received()[1], [1, 2])
        self.assertEqual(self.flow(summary, "fragment1.tx.out")["bytes"], 2 * size)

    def test_block_slows_the_sender_and_loses_nothing(self):
        summary = self.run_stream("--count", "60", "--rx_pause", "5ms")
        sent, received = self.sent_and_received()
        self.assertEqual(received, sent)
        self.assertEqual(sum(self.flow(summary, "fragment1.tx.out")["dropped"].values()), 0)

    def test_pop_drops_the_oldest_and_says_so(self):
        summary = self.run_stream("--count", "300", "--rx_pause", "10ms", "--policy", "pop", "--capacity", "2")
        sent, received = self.sent_and_received()
        flow = self.flow(summary, "fragment1.tx.out")
        self.assertEqual(len(sent), 300)
        self.assertEqual(flow["sent"], 300)
        self.assertEqual(flow["delivered"], len(received))
        self.assertEqual(flow["dropped"]["queue_full"], 300 - len(received))
        self.assertEqual(sum(flow["dropped"].values()), 300 - len(received))
        self.assertGreater(flow["dropped"]["queue_full"], 0)
        self.assertEqual(received, sorted(set(received)))
        self.assertEqual(received[-1], 300, "the newest must not be the one that is dropped")

    def test_min_size_holds_messages_back(self):
        """Ten must wait before the first is taken, so all but the last have waited for nine more."""
        text = APP.replace('pause: "${rx_pause}"}}', 'pause: "${rx_pause}"},\n'
                           "           conditions: [{type: message_available, min_size: 10}]}")
        self.write("app.yaml", text % {"folder": self.folder})
        summary = self.run_stream("--count", "30", "--pause", "20ms", "--capacity", "16")
        self.assertEqual(self.sent_and_received()[1], list(range(1, 31)))
        self.assertGreater(self.flow(summary, "fragment1.tx.out")["latency_ns"]["p50"], 9 * 20e6 * 0.8)

    def test_the_summary_agrees_with_what_was_seen(self):
        started = time.time()
        summary = self.run_stream("--count", "50", "--pause", "10ms")
        ended = time.time()
        pauses = 49 * 10e6
        self.assertTrue(started < summary["started_unix_ns"] / 1e9 < ended, summary["started_unix_ns"])
        self.assertTrue(pauses < summary["duration_ns"] < (ended - started) * 1e9, summary["duration_ns"])
        self.assertTrue(0 < summary["first_message_ns"] < summary["duration_ns"] - pauses, summary["first_message_ns"])
        self.assertLess(summary["shutdown_ns"], summary["duration_ns"] - pauses)
        self.assertEqual([(f["name"], [(o["name"], o["type"], o["ticks"]) for o in f["operators"]])
                          for f in summary["fragments"]],
                         [("fragment1", [("tx", "truth_tx", 50)]), ("fragment2", [("rx", "truth_rx", 50)])])
        flow = self.flow(summary, "fragment1.tx.out")
        self.assertEqual((flow["to"], flow["policy"], flow["capacity"]), ("fragment2.rx.in", "block", 4))
        self.assertEqual(set(flow["dropped"].values()), {0})
        self.assertEqual(flow["bytes"], 50 * 8)

    def test_any_starting_order(self):
        first = self.start("workerd", "--address", "127.0.0.1:%d" % self.free_port(), "--fragments", "fragment2",
                           "--once")
        first.wait_line("(?i)waiting")
        port = first.command[first.command.index("--address") + 1].split(":")[1]
        driver = self.driver(self.app, address="127.0.0.1:" + port)
        second = self.worker("--once", fragments="fragment1")
        self.assertEqual(driver.wait(), 0, driver.stderr)
        self.assertEqual(first.wait(), 0)
        self.assertEqual(second.wait(), 0)
        self.assertEqual(self.sent_and_received()[1], list(range(1, 101)))

    def test_worker_serves_one_application_after_the_other(self):
        workers = None
        port = self.free_port()
        for n in (5, 7):
            driver = self.driver(self.app, address="127.0.0.1:%d" % port, app_args=("--count", str(n)))
            workers = workers or [self.worker(fragments=f) for f in ("fragment1", "fragment2")]
            self.assertEqual(driver.wait(60), 0, driver.stderr)
        self.assertEqual(self.sent_and_received()[1], [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 7])
        self.wait_until("hosts gone", lambda: not self.hosts())
        for w in workers:
            w.signal(signal.SIGTERM)
            self.assertEqual(w.wait(), 0, w.stderr)
        self.assert_nothing_left()

    def test_sigterm_stops_in_order_and_loses_nothing(self):
        driver = self.driver(self.app, "--output", "json", app_args=("--count", "0", "--pause", "1ms"))
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        self.wait_until("messages", lambda: os.path.exists(self.path("received")) and
                        os.path.getsize(self.path("received")) > 800)
        driver.signal(signal.SIGTERM)
        self.assert_done(driver, workers)
        summary = self.summary(driver)
        self.assertEqual(summary["result"], "stopped")
        self.assert_balanced(summary)
        sent, received = self.sent_and_received()
        self.assertEqual(received, sent)
        self.assertEqual(self.flow(summary, "fragment1.tx.out")["delivered"], len(received))
        self.assert_nothing_left()

    def test_summary_file_holds_what_json_output_holds(self):
        driver = self.driver(self.app, "--output", "json", "--summary", self.path("summary.json"))
        for f in ("fragment1", "fragment2"):
            self.worker("--once", fragments=f)
        self.assertEqual(driver.wait(), 0, driver.stderr)
        with open(self.path("summary.json")) as f:
            self.assertEqual(json.load(f), self.summary(driver))

    def test_both_fragments_on_one_worker_share_a_host(self):
        driver = self.driver(self.app, "--output", "json")
        worker = self.worker("--once")
        self.assertEqual(driver.wait(), 0, driver.stderr)
        self.assertEqual(worker.wait(), 0)
        summary = self.summary(driver)
        self.assertEqual(self.flow(summary, "fragment1.tx.out")["edge"], "inproc")
        self.assertEqual(len({f["host_pid"] for f in summary["fragments"]}), 1)
        self.assertEqual(self.sent_and_received()[1], list(range(1, 101)))


class OverUcx(Streams):
    edge = "ucx"
    test_full_speed_64_kib = Stream.test_full_speed_64_kib
    test_large_tensor = Stream.test_large_tensor


class OneProcess(cluster.ClusterTest):
    def test_fragctl_run(self):
        app = self.write("app.yaml", APP % {"folder": self.folder})
        run = self.start("fragctl", "run", app, "--output", "json", "--", "--count", "1000")
        self.assertEqual(run.wait(), 0, run.stderr)
        summary = json.loads(run.stdout)
        self.assert_balanced(summary)
        self.assertEqual(cluster.sequence(self.path("received")), list(range(1, 1001)))
        self.assertEqual(self.flow(summary, "fragment1.tx.out")["edge"], "inproc")
        self.assert_nothing_left()

    def test_messages_that_nobody_can_take_at_rest_are_reported(self):
        app = self.write("rest.yaml", """
frag: 1
application: app
fragments:
  one:
    operators: {tx: {type: ping_tx, conditions: [{type: count, count: 3}]}}
  two:
    operators: {rx: {type: ping_rx, conditions: [{type: boolean, enable_tick: %s}]}}
flows: [one.tx -> two.rx]
""")
        with open(app, encoding="utf-8") as f:
            text = f.read()
        for args in ((), ("--workers", "2")):
            for takes, sentence in (("false", "ends at rest with 3 messages that no operator can take any more: two.rx.in (3)"),
                                    ("true", None)):
                run = self.start("fragctl", "run", self.write("app.yaml", text % takes), *args)
                self.assertEqual(run.wait(), 0, run.stderr)
                if sentence:
                    self.assertIn(sentence, run.stderr)
                else:
                    self.assertNotIn("at rest", run.stderr)

    def test_fragctl_run_workers(self):
        app = self.write("app.yaml", APP % {"folder": self.folder})
        run = self.start("fragctl", "run", "--workers", "2", app, "--output", "json", "--", "--count", "1000")
        self.assertEqual(run.wait(60), 0, run.stderr)
        summary = json.loads(run.stdout)
        self.assert_balanced(summary)
        self.assertEqual(cluster.sequence(self.path("received")), list(range(1, 1001)))
        self.assertEqual(self.flow(summary, "fragment1.tx.out")["edge"], "shm")
        self.assert_nothing_left()
