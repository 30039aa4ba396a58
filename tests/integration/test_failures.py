# SPDX-License-Identifier: Apache-2.0
"""What fails, fails clearly: one sentence that names the cause, the exit code, a balanced ledger,
nothing left behind.

Ground truth is what the operators wrote. `lost` may exceed it by at most the window and never falls
short of it; a receiver that is killed between frag's count and its own line may be one message
behind.
"""
import contextlib
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import cluster
from busy import busy
import control

WINDOW = 4

APP = """
frag: 1
application: failing
arguments:
  tx_fail: {default: never}
  rx_fail: {default: never}
  watchdog: {default: 60s}
  edge: {default: auto}
extensions: [libtruth.so]
fragments:
  fragment1:
    watchdog: "${watchdog}"
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", pause: 1ms, fail: "${tx_fail}", fail_at: 50, mark: "%(folder)s/tx_stopped"}}
  fragment2:
    watchdog: "${watchdog}"
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received", fail: "${rx_fail}", fail_at: 50, mark: "%(folder)s/rx_stopped"}}
flows:
  - {from: fragment1.tx.out, to: fragment2.rx.in, edge: "${edge}"}
"""

# Shortened times of detection: death in half of what is used otherwise; less does not hold on a
# busy machine.
QUICK_MS = 1500


class Failing(cluster.ClusterTest):
    app_text = APP

    def setUp(self):
        super().setUp()
        self.env.update(FRAG_BEAT_MS="100", FRAG_DEAD_MS=cluster.dead_ms(QUICK_MS))

    key_flags = ()

    def launch(self, *app_args, driver_flags=()):
        driver_flags = (*self.key_flags, *driver_flags)
        self.d = self.driver(self.app, "--output", "json", *driver_flags, app_args=app_args)
        self.w1 = self.worker(*self.key_flags, fragments="fragment1")
        self.w2 = self.worker(*self.key_flags, fragments="fragment2")

    def launch_flowing(self, *app_args):
        self.launch(*app_args)
        self.wait_flowing(self.d, 20)

    def host_of(self, worker):
        """The fraghost that this workerd started."""
        for pid in self.hosts():
            with open("/proc/%d/stat" % pid) as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == worker.pid:
                    return pid
        raise AssertionError("no fraghost below %d in %r" % (worker.pid, self.ours()))

    def assert_failure(self, summary, code, scope, operator=None, worker=None):
        self.assertEqual(summary["failure"], {"code": code, "scope": scope, "sentence": summary["reason"],
                                              "operator": operator, "worker": worker})

    def name_of(self, worker):
        """As the driver calls it."""
        return re.search(r"attached to the driver at \S+ as (\S+)", worker.stderr).group(1)

    def assert_failed(self, sentence, code=1, keep=None):
        self.assertEqual(self.d.wait(), code, self.d.stderr)
        summary = self.summary(self.d)
        self.assertEqual(summary["result"], "failed")
        self.assertEqual(summary["exit_code"], code)
        self.assertRegex(summary["reason"], sentence)
        self.assertEqual(len([l for l in self.d.stderr.splitlines() if summary["reason"] in l]), 1,
                         "the sentence stands once on the driver's terminal:\n" + self.d.stderr)
        self.assert_balanced(summary)
        self.assert_nothing_left(keep=[self.w1, self.w2] if keep is None else keep)
        return summary

    def assert_lost_matches_truth(self, summary, slack=0):
        sent = cluster.sequence(self.path("sent"))
        received = cluster.sequence(self.path("received"))
        flow = self.flow(summary, "fragment1.tx.out")
        truth = len(sent) - len(received)
        gone = flow["lost"] + sum(flow["dropped"].values()) + flow["in_flight"]
        self.assertEqual(received, list(range(1, len(received) + 1)))
        self.assertGreaterEqual(gone + slack, truth, flow)
        self.assertLessEqual(flow["lost"], max(truth, 0) + WINDOW + slack, flow)
        self.assertLessEqual(flow.get("lost_at_least", flow["lost"]), max(truth, 0) + slack, flow)

    def test_receiver_crashes(self):
        self.launch("--rx_fail", "crash")
        summary = self.assert_failed(r"fragment2\.rx.*SIGSEGV")
        self.assert_failure(summary, "host_crashed", "host", "fragment2.rx", self.name_of(self.w2))
        self.assert_lost_matches_truth(summary, slack=1)

    def test_sender_crashes(self):
        self.launch("--tx_fail", "crash")
        summary = self.assert_failed(r"fragment1\.tx.*SIGSEGV")
        self.assert_lost_matches_truth(summary, slack=1)

    def test_what_lives_is_stopped(self):
        """A recorder ends its file in stop, whatever fails on other workers."""
        for side, how, lives in (("tx", "crash", "received"), ("rx", "exit", "sent"), ("tx", "error", "received")):
            with self.subTest(side=side, how=how):
                for name in ("sent", "received", "tx_stopped", "rx_stopped"):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(self.path(name))
                self.launch("--%s_fail" % side, how)
                self.assert_failed(r"fragment[12]\.%s" % side)
                with open(self.path(("rx" if side == "tx" else "tx") + "_stopped")) as f:
                    self.assertEqual(int(f.read()), len(cluster.sequence(self.path(lives))))
                self.assertEqual(os.path.exists(self.path(side + "_stopped")), how == "error")
                for worker in (self.w1, self.w2):
                    worker.kill()
                    worker.wait()

    def test_what_hangs_in_its_stop_after_a_failure_is_killed(self):
        self.launch("--tx_fail", "crash", "--rx_fail", "hang_stop")
        summary = self.assert_failed(r"fragment1\.tx.*SIGSEGV")
        self.assert_failure(summary, "host_crashed", "host", "fragment1.tx", self.name_of(self.w1))
        # It hangs in stop, or is slow to come there.
        self.assertRegex(self.d.stderr, "did not drain within|fragment2.rx has not returned from a callback within")

    def test_host_exits(self):
        self.launch("--rx_fail", "exit")
        summary = self.assert_failed(r"exited with status 3 in fragment2\.rx")
        self.assert_failure(summary, "host_exited", "host", "fragment2.rx", self.name_of(self.w2))

    def test_host_killed(self):
        self.launch_flowing()
        os.kill(self.host_of(self.w2), signal.SIGKILL)
        summary = self.assert_failed(r"signal 9 \(SIGKILL\)")
        self.assertEqual(summary["failure"]["code"], "host_killed")
        self.assert_lost_matches_truth(summary, slack=1)
        self.assertTrue(self.flow(summary, "fragment1.tx.out")["exact"])

    def test_operator_error_in_compute(self):
        self.launch("--tx_fail", "error")
        summary = self.assert_failed(r"fragment1\.tx: the test asked for an error at message 50")
        self.assert_failure(summary, "operator_failed", "operator", "fragment1.tx", self.name_of(self.w1))
        self.assert_lost_matches_truth(summary, slack=1)

    def test_hanging_compute(self):
        self.launch("--rx_fail", "hang", "--watchdog", "500ms")
        summary = self.assert_failed(r"fragment2\.rx.*watchdog")
        self.assert_failure(summary, "operator_hung", "operator", "fragment2.rx", self.name_of(self.w2))

    def lose_worker(self, kill):
        """Runs the application twice; kill takes a worker away, another one each time. Yields the
        summary's row of the flow, which agrees with what the operators wrote."""
        for victim, rest in (("w1", "w2"), ("w2", "w1")):
            with self.subTest(victim=victim):
                for f in ("sent", "received"):
                    if os.path.exists(self.path(f)):
                        os.unlink(self.path(f))
                self.launch_flowing()
                victim, rest = getattr(self, victim), getattr(self, rest)
                kill(victim)
                victim.wait()
                summary = self.assert_failed(r"worker.*(lost|gone|connection)", keep=[rest])
                self.assert_failure(summary, "worker_lost", "node", None, self.name_of(victim))
                self.assert_lost_matches_truth(summary, slack=1)
                yield self.flow(summary, "fragment1.tx.out")
                rest.kill()
                rest.wait()

    def test_worker_killed(self):
        """Only workerd, of all processes of its node: what its host counted is known."""
        for flow in self.lose_worker(lambda worker: worker.kill()):
            self.assertTrue(flow["exact"], flow)
            self.assertNotIn("lost_at_least", flow)
            self.assertAlmostEqual(flow["sent"], len(cluster.sequence(self.path("sent"))), delta=1)
            self.assertAlmostEqual(flow["delivered"], len(cluster.sequence(self.path("received"))), delta=1)

    def test_worker_killed_with_a_key(self):
        """Its connection is encrypted; its reporter needs one of its own."""
        with open(self.path("frag.key"), "w") as f:
            subprocess.run([os.path.join(cluster.BIN, "fragctl"), "key", "new"], stdout=f,
                           stderr=subprocess.DEVNULL, env=self.env, check=True)
        os.chmod(self.path("frag.key"), 0o600)
        self.key_flags = ("--key-file", "frag.key")
        self.test_worker_killed()

    def test_worker_killed_while_strangers_fill_the_driver(self):
        """Each stranger is silent, and takes the room of an older one."""
        crowd, is_over = [], threading.Event()

        def come():
            host, port = self.address.rsplit(":", 1)
            # The driver is full at once; then who has a HELLO to say has time for it, even where it
            # waits for a core.
            while not is_over.wait(0.02 * busy() if len(crowd) > 150 else 0):
                with contextlib.suppress(OSError):
                    crowd.append(socket.create_connection((host, int(port)), 1))
                    if len(crowd) > 200:
                        crowd.pop(0).close()

        def kill(worker):
            is_over.clear()
            thread = threading.Thread(target=come, daemon=True)
            thread.start()
            self.wait_until("a crowd", lambda: len(crowd) > 150)
            worker.kill()
            self.assertEqual(self.d.wait(), 1, self.d.stderr)
            is_over.set()
            thread.join()
            while crowd:
                crowd.pop().close()

        for flow in self.lose_worker(kill):
            self.assertTrue(flow["exact"], flow)

    def test_all_processes_of_a_node_killed(self):
        def kill(worker):
            reporter = self.reporter_of(worker)
            os.kill(reporter, signal.SIGKILL)
            self.wait_until("the end of the reporter", lambda: reporter not in self.ours(reporters=True))
            worker.kill()

        for flow in self.lose_worker(kill):
            self.assertFalse(flow["exact"], flow)
            self.assertIn("lost_at_least", flow)

    def test_host_stopped(self):
        self.launch_flowing()
        pid = self.host_of(self.w2)
        os.kill(pid, signal.SIGSTOP)
        summary = self.assert_failed(r"fragment2.*(silent|not been heard|not answer)")
        self.assertEqual(summary["failure"]["code"], "host_silent")

    def test_worker_stopped(self):
        self.launch_flowing()
        self.w2.signal(signal.SIGSTOP)
        self.assertEqual(self.d.wait(), 1, self.d.stderr)
        self.w2.signal(signal.SIGCONT)
        self.assert_failed(r"worker.*(silent|not been heard|not answer)")

    def test_worker_and_host_stopped(self):
        self.launch_flowing()
        host = self.host_of(self.w2)
        self.w2.signal(signal.SIGSTOP)
        os.kill(host, signal.SIGSTOP)
        self.assertEqual(self.d.wait(), 1, self.d.stderr)
        self.w2.signal(signal.SIGCONT)
        try:
            os.kill(host, signal.SIGCONT)
        except ProcessLookupError:
            pass
        self.assert_failed(r"worker.*(silent|not been heard|not answer)")

    def test_driver_stopped(self):
        self.launch_flowing()
        self.d.signal(signal.SIGSTOP)
        for worker in (self.w1, self.w2):
            worker.wait_line("lost the driver")
        self.d.signal(signal.SIGCONT)
        self.assert_failed(r"worker \S+ at .* was lost: driverd itself did not run for [0-9.]+ s")

    def test_all_frozen(self):
        """As a frozen container or a suspended machine: nobody has died. Each order is another one;
        FREEZES=n takes n of them."""
        draw = random.Random(os.environ.get("SEED", "5"))
        self.write("app.yaml", (APP % {"folder": self.folder}).replace("pause: 1ms", "pause: 300ms"))
        self.launch("--watchdog", "1s")
        dead_s = int(self.env["FRAG_DEAD_MS"]) / 1000
        received = self.path("received")
        self.wait_flowing(self.d, 3)
        for _ in range(int(os.environ.get("FREEZES", "2"))):
            pids = sorted(self.ours(reporters=True))
            self.assertEqual(len(pids), 7, self.ours(reporters=True))
            for pid in draw.sample(pids, 7):
                os.kill(pid, signal.SIGSTOP)
            time.sleep(dead_s + 1)
            before = os.path.getsize(received)
            for pid in draw.sample(pids, 7):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
                time.sleep(0.15)
            time.sleep(dead_s)  # whoever would be given up has been
            self.wait_until("messages, or an end", lambda: self.d.child.poll() is not None or
                            os.path.getsize(received) > before + 8)
            self.assertIsNone(self.d.child.poll(), self.d.stderr)
        self.d.signal(signal.SIGTERM)
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        summary = self.summary(self.d)
        self.assertEqual(summary["result"], "stopped")
        self.assertEqual(self.flow(summary, "fragment1.tx.out")["lost"], 0)
        self.assert_nothing_left(keep=[self.w1, self.w2])

    def test_driver_killed(self):
        self.launch_flowing()
        self.d.kill()
        self.wait_until("hosts gone", lambda: not self.hosts())
        self.w1.wait_line(r"(?i)driver")
        self.assertIsNone(self.w1.child.poll(), "workerd goes on waiting for its driver")
        self.assert_nothing_left(keep=[self.w1, self.w2])

    def test_driver_killed_and_worker_once(self):
        d = self.driver(self.app)
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        self.wait_hosts(2)
        d.kill()
        for w in workers:
            self.assertEqual(w.wait(), 3, w.stderr)
        self.assert_nothing_left()

    def test_library_missing(self):
        self.write("app.yaml", (APP % {"folder": self.folder}).replace("libtruth.so", "libnowhere.so"))
        self.launch()
        summary = self.assert_failed(r"library libnowhere\.so is not in", code=3)
        worker = summary["failure"]["worker"]
        self.assertIn(worker, [self.name_of(self.w1), self.name_of(self.w2)])
        self.assert_failure(summary, "library_missing", "node", None, worker)
        self.assertIn("worker %s could not prepare " % worker, self.d.stderr)
        sentence = summary["failure"]["sentence"]
        self.assertIn(" on %s; put it there" % socket.gethostname(), sentence)
        self.assertTrue(sentence.endswith(" (worker %s)" % worker), sentence)

    def test_symbol_missing(self):
        self.write("app.yaml", (APP % {"folder": self.folder}).replace("libtruth.so", "libempty.so"))
        subprocess.run(["gcc", "-shared", "-o", self.path("libempty.so"), "-x", "c", "/dev/null"], check=True)
        self.env["FRAG_LIBRARY_PATH"] += ":" + self.folder
        self.launch()
        self.assert_failed(r"libempty\.so.*frag_plugin_v1", code=3)

    def test_type_differs_on_the_other_side(self):
        text = re.sub(r"type: truth_(.x), .*}(?=}$)", r"type: pose_\1", APP, flags=re.M)
        self.write("app.yaml", text)
        self.d = self.driver(self.app, "--output", "json")
        self.w1 = self.worker(fragments="fragment1")
        other = os.path.join(cluster.TEST_PLUGINS, "other")
        self.w2 = self.worker("--library-path", other, fragments="fragment2", env={"FRAG_LIBRARY_PATH": other})
        self.assert_failed(r"pose", code=2)

    def test_units_that_differ_need_a_converter(self):
        app = """
frag: 1
application: failing
extensions: [libpixel_boxes.so]
fragments:
  fragment1:
    operators: {pixels: {type: pixel_boxes}%s}
%s
  fragment2:
    operators: {cut: {type: crop, parameters: {width: 16, height: 16}}}
flows: [fragment1.pixels -> fragment2.cut.source_video, fragment1.%s -> fragment2.cut.boxes]
"""
        self.write("app.yaml", app % ("", "", "pixels"))
        self.launch()
        self.assert_failed(
            r'fragment1.pixels.out -> fragment2.cut.boxes: the output sends boxes as "f32\[n\]\[4\], x0 y0 x1 y1 in pixels", '
            r'the input takes "f32\[n\]\[4\], x0 y0 x1 y1 from 0 to 1"; put an operator of type box_converter between',
            code=2)
        self.write("app.yaml", app % (", parts: {type: box_converter, parameters: {in_width: 64, in_height: 32}}",
                                      "    flows: [pixels -> parts]", "parts"))
        self.launch()
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        self.assert_balanced(self.summary(self.d))

    def test_type_without_codec(self):
        text = re.sub(r"type: truth_(.x), .*}(?=}$)", r"type: secret_\1", APP, flags=re.M)
        self.write("app.yaml", text)
        self.launch()
        self.assert_failed(r"secret.*codec|codec.*secret", code=2)

    def test_no_worker_within_start_timeout(self):
        d = self.driver(self.app, "--output", "json", "--start-timeout", "500ms")
        w = self.worker(fragments="fragment1")
        self.assertEqual(d.wait(), 4, d.stderr)
        summary = self.summary(d)
        self.assertRegex(summary["reason"], r"fragment2")
        self.assert_failure(summary, "start_timeout", "graph")
        self.assert_nothing_left(keep=[w])

    def test_port_in_use(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            d = self.start("driverd", "--address", "127.0.0.1:%d" % s.getsockname()[1], "--app", self.app,
                           "--output", "json", "--summary", self.path("summary.json"))
            self.assertEqual(d.wait(), 3)
            self.assertRegex(d.stderr, r"127\.0\.0\.1:%d.*in use" % s.getsockname()[1])
            self.assertNotIn("doctor", d.stderr, "is for people, and this one asked for JSON")
        summary = self.summary(d)
        self.assertRegex(summary["reason"], "in use")
        self.assert_failure(summary, "port_in_use", "driver")
        with open(self.path("summary.json")) as f:
            self.assertEqual(json.load(f), summary)

    def test_data_port_in_use(self):
        """Both workers return what the application failed with."""
        with socket.socket() as s:
            for port in range(21000, 21100):
                try:
                    s.bind(("127.0.0.1", port))
                    break
                except OSError:
                    pass
            s.listen()
            d = self.driver(self.app, "--output", "json", app_args=("--edge", "ucx"))
            workers = [self.worker("--once", "--worker-address", "127.0.0.1:%d" % port, fragments="fragment1"),
                       self.worker("--once", fragments="fragment2")]
            self.assertEqual(d.wait(), 3, d.stderr)
            self.assertEqual([w.wait() for w in workers], [3, 3])
        summary = self.summary(d)
        self.assertRegex(summary["reason"], r"data port range %d-%d" % (port, port))
        self.assert_failure(summary, "data_port_in_use", "node", None, summary["failure"]["worker"])

    def test_every_port_of_a_data_port_range_in_use(self):
        with contextlib.ExitStack() as stack:
            for first in range(21100, 21400, 2):
                try:
                    for port in (first, first + 1):
                        s = stack.enter_context(socket.socket())
                        s.bind(("127.0.0.1", port))
                        s.listen()
                    break
                except OSError:
                    pass
            d = self.driver(self.app, "--output", "json", app_args=("--edge", "ucx"))
            workers = [self.worker("--once", "--worker-address", "127.0.0.1:%d-%d" % (first, first + 1), fragments="fragment1"),
                       self.worker("--once", fragments="fragment2")]
            self.assertEqual(d.wait(), 3, d.stderr)
            self.assertEqual([w.wait() for w in workers], [3, 3])
        summary = self.summary(d)
        self.assertRegex(summary["reason"], r"data port range %d-%d" % (first, first + 1))
        self.assert_failure(summary, "data_port_in_use", "node", None, summary["failure"]["worker"])

    def test_hosts_share_a_data_port_range(self):
        d = self.driver(self.app, app_args=("--edge", "ucx"))
        for fragment in ("fragment1", "fragment2"):
            self.worker("--once", "--worker-address", "127.0.0.1:21500-21509", fragments=fragment)
        self.wait_flowing(d, 10)
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)

    def test_data_port_outside_of_the_range(self):
        for ports in ("80", "9000-10001", "32000-32768"):
            w = self.start("workerd", "--address", "127.0.0.1:1", "--once", "--worker-address", "127.0.0.1:" + ports)
            self.assertEqual(w.wait(), 2, w.stderr)
            self.assertIn("between 10000 and 32767", w.stderr)

    def test_once_ends_with_a_driver_that_gave_up(self):
        """This worker was not needed: another one was missing."""
        d = self.driver(self.app, "--start-timeout", "500ms")
        w = self.worker("--once", fragments="fragment1")
        self.assertEqual(d.wait(), 4, d.stderr)
        self.assertEqual(w.wait(), 4, w.stderr)
        self.assert_nothing_left()

    def test_address_of_another_machine(self):
        d = self.start("driverd", "--address", "192.0.2.1:0", "--insecure", "--app", self.app, "--output", "json")
        self.assertEqual(d.wait(), 3)
        self.assert_failure(self.summary(d), "address_unusable", "driver")

    def test_no_descriptors_left(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))
        # The leak checker of a sanitized build needs descriptors of its own, and hangs without any.
        env = dict(self.env, ASAN_OPTIONS=self.env.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
        r = subprocess.run([os.path.join(cluster.BUILD, "bin", "driverd"), "--address", "127.0.0.1:0", "--app", self.app,
                            "--output", "json"],
                           capture_output=True, text=True, env=env, preexec_fn=limit, timeout=60)
        self.assertEqual(r.returncode, 3, r.stderr)
        self.assert_failure(json.loads(r.stdout), "system_refused", "driver")

    def test_graph_error(self):
        self.write("app.yaml", (APP % {"folder": self.folder}).replace("pause: 1ms", "pause: [1]"))
        self.launch()
        summary = self.assert_failed(r"app\.yaml:\d+:\d+: fragment1\.tx", code=2)
        self.assert_failure(summary, "graph_invalid", "graph", None, self.name_of(self.w1))

    def test_graph_error_before_any_worker(self):
        """Nothing ran, yet whoever reads the summary learns why."""
        for text, code in (("frag: 1\napplication: [x]\n", "graph_invalid"), (None, "file_missing")):
            with self.subTest(code=code):
                if text is None:
                    os.unlink(self.app)
                else:
                    self.write("app.yaml", text)
                d = self.start("driverd", "--address", "127.0.0.1:0", "--app", self.app, "--output", "json")
                summary = self.summary_after(d, 2 if text else 3)
                self.assertEqual(summary["fragments"], [])
                self.assert_failure(summary, code, "graph")

    def summary_after(self, driver, exit_code):
        self.assertEqual(driver.wait(), exit_code, driver.stderr)
        summary = self.summary(driver)
        self.assertEqual(summary["exit_code"], exit_code)
        return summary


class Strangers(cluster.ClusterTest):
    """Whoever connects to the control port and does not speak the protocol disturbs nothing."""

    app_text = APP

    def connect(self):
        host, port = self.address.rsplit(":", 1)
        return socket.create_connection((host, int(port)), timeout=cluster.PATIENCE_S)

    def test_garbage_half_frames_and_dribble(self):
        d = self.driver(self.app, "--output", "json")
        strangers = []
        for data in (os.urandom(4096), struct.pack("<I", 0xffffffff) + b"x" * 100, struct.pack("<I", 1000) + b"half",
                     struct.pack("<I", 0), b"GET / HTTP/1.1\r\n\r\n"):
            s = self.connect()
            s.sendall(data)
            strangers.append(s)
        stop = threading.Event()

        def dribble():
            with self.connect() as s:
                try:
                    while not stop.wait(0.2):
                        s.sendall(b"\x10")
                except OSError:
                    pass

        t = threading.Thread(target=dribble)
        t.start()
        try:
            for f in ("fragment1", "fragment2"):
                self.worker("--once", fragments=f)
            self.wait_flowing(d, 100)
            # Two seconds without a HELLO are what a stranger gets: each connection is closed by
            # then.
            for s in strangers:
                s.settimeout(cluster.PATIENCE_S)
                try:
                    while s.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
                s.close()
            d.signal(signal.SIGTERM)
            self.assertEqual(d.wait(), 0, d.stderr)
        finally:
            stop.set()
            t.join()
        self.assertEqual(cluster.sequence(self.path("received")), cluster.sequence(self.path("sent")))
        self.assert_nothing_left()

    def test_many_strangers_do_not_keep_a_worker_out(self):
        d = self.driver(self.app)
        crowd = [self.connect() for _ in range(100)]
        for f in ("fragment1", "fragment2"):
            self.worker("--once", fragments=f)
        self.wait_flowing(d, 0)
        for s in crowd:
            s.close()
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)

    def test_a_worker_of_another_protocol_version_is_refused(self):
        d = self.driver(self.app)
        with self.connect() as s:
            s.sendall(control.hello(major=99))
            envelope = control.fields(control.read_frame(s))
            answer = control.fields(envelope[control.REFUSED][0])
        self.assertEqual(answer[1], [5])
        self.assertRegex(answer[2][0].decode(), r"99.*\b1\b|\b1\b.*99")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)

    def test_a_worker_that_is_refused_says_why_and_ends_with_5(self):
        with control.listener() as s:
            w = self.start("workerd", "--address", "127.0.0.1:%d" % s.getsockname()[1])
            peer, _ = s.accept()
            with peer:
                said = control.fields(control.fields(control.read_frame(peer))[control.HELLO][0])
                self.assertEqual(said[1], [1])
                peer.sendall(control.refused(5, "protocol 1.0 is not spoken here, only 2.0; install the same version"))
                self.assertEqual(w.wait(), 5, w.stderr)
        self.assertIn("protocol 1.0 is not spoken here, only 2.0", w.stderr)
