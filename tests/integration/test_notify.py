# SPDX-License-Identifier: Apache-2.0
"""What driverd and workerd report to a service manager: a socket of the test stands for systemd's."""
import signal
import socket
import time

import cluster

APP = """
frag: 1
application: watched
operators:
  tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 20ms}]}
  rx: {type: ping_rx}
flows: [tx -> rx]
"""
FAILING = """
frag: 1
application: failing
extensions: [libtruth.so]
operators:
  tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", fail: error, fail_at: 3}}
  rx: {type: ping_rx}
flows: [tx -> rx]
"""
# The daemons are to report twice in this time.
WATCHDOG_US = 200000


class Manager:
    """A service manager that starts one daemon."""

    def __init__(self, test, name):
        self.path = test.path(name)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(cluster.PATIENCE_S)
        test.addCleanup(self.socket.close)
        self.env = {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(WATCHDOG_US)}

    def wait(self, report):
        """Reads until this report; returns those before it."""
        before, end = [], time.monotonic() + cluster.PATIENCE_S
        while time.monotonic() < end:
            text = self.socket.recv(4096).decode()
            if text.startswith(report):
                return before
            before.append(text)
        raise AssertionError("no report %s, but %s" % (report, before[:10]))

    def drain(self):
        """Reads what has been sent; returns how many reports that were."""
        self.socket.setblocking(False)
        try:
            count = 0
            while True:
                self.socket.recv(4096)
                count += 1
        except BlockingIOError:
            return count
        finally:
            self.socket.settimeout(cluster.PATIENCE_S)


class Notify(cluster.ClusterTest):
    def launch(self):
        self.driver_manager = Manager(self, "driver")
        self.worker_manager = Manager(self, "worker")
        self.d = self.driver(self.write("app.yaml", APP), "--output", "json", env=self.driver_manager.env)
        self.w = self.worker(env=self.worker_manager.env)

    def test_ready_status_watchdog_and_stopping(self):
        self.launch()
        self.driver_manager.wait("READY=1")
        self.driver_manager.wait("STATUS=running ")
        self.worker_manager.wait("READY=1")
        self.worker_manager.wait("STATUS=attached to the driver at %s, runs 1 host" % self.address)
        for manager in (self.driver_manager, self.worker_manager):
            manager.wait("WATCHDOG=1")
            manager.wait("WATCHDOG=1")
        self.d.signal(signal.SIGTERM)
        self.assertEqual(self.d.wait(), 0)
        self.driver_manager.wait("STOPPING=1")
        self.worker_manager.wait("STATUS=waiting for the driver at ")
        self.w.signal(signal.SIGTERM)
        self.assertEqual(self.w.wait(), 0)
        self.worker_manager.wait("STOPPING=1")
        self.assert_nothing_left()

    def test_a_driver_that_is_a_service(self):
        """It is ready without an application, and reports how many it runs."""
        manager = Manager(self, "driver")
        d = self.start("driverd", "--address", "127.0.0.1:0", env=manager.env)
        manager.wait("READY=1")
        manager.wait("STATUS=waits for applications")
        self.address = d.wait_line(r"listening on (\S+:\d+)").group(1)
        w = self.worker()
        client = self.start("fragctl", "start", self.write("app.yaml", APP), "--address", self.address)
        self.assertEqual(client.wait(), 0, client.stderr)
        manager.wait("STATUS=runs 1 application")
        client = self.start("fragctl", "stop", "watched", "--address", self.address)
        self.assertEqual(client.wait(), 0, client.stderr)
        manager.wait("STATUS=waits for applications")
        self.start("fragctl", "start", self.write("failing.yaml", FAILING % {"folder": self.folder}), "--address",
                   self.address).wait()
        manager.wait("STATUS=waits for applications; failing has failed, and `fragctl list` says why")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0)
        manager.wait("STOPPING=1")
        w.signal(signal.SIGTERM)
        w.wait()

    def test_a_worker_is_ready_without_a_driver(self):
        manager = Manager(self, "worker")
        w = self.worker(address="127.0.0.1:%d" % self.free_port(), env=manager.env)
        manager.wait("READY=1")
        manager.wait("STATUS=waiting for the driver at ")
        w.signal(signal.SIGTERM)
        self.assertEqual(w.wait(), 0)

    def test_who_stands_still_reports_nothing(self):
        """The loop itself reports, and no other process or thread of the daemon does."""
        self.launch()
        for manager, process in ((self.worker_manager, self.w), (self.driver_manager, self.d)):
            manager.wait("WATCHDOG=1")
            process.signal(signal.SIGSTOP)
            self.wait_until("it to stand still", lambda pid=process.pid: self.state(pid) == "T")
            manager.drain()
            other = Manager(self, "clock%d" % process.pid)
            other.socket.settimeout(3 * WATCHDOG_US / 1e6)
            self.assertRaises(socket.timeout, other.socket.recv, 1)
            self.assertEqual(manager.drain(), 0)
            process.signal(signal.SIGCONT)
            manager.wait("WATCHDOG=1")

    @staticmethod
    def state(pid):
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0]

    def test_hosts_do_not_report_for_their_worker(self):
        self.launch()
        self.worker_manager.wait("STATUS=attached to the driver at %s, runs 1 host" % self.address)
        for pid in self.wait_hosts(1):
            with open("/proc/%d/environ" % pid, "rb") as f:
                self.assertNotIn(b"NOTIFY_SOCKET", f.read())
