# SPDX-License-Identifier: Apache-2.0
"""The data ports of hosts: whoever does not have the application's key has no effect on it."""
import os
import socket
import struct
import traceback

import cluster

APP = """
frag: 1
application: stream
arguments:
  count: {default: "4000"}
  pause: {default: "20"}
extensions: [libtruth.so]
fragments:
  fragment1:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", count: "${count}", pause: "${pause}"}}
  fragment2:
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - {from: fragment1.tx.out, to: fragment2.rx.in, edge: ucx}
"""
NOBODY = 65534
# UCX's TCP transport begins with this number; what comes then makes UCX 1.13 abort.
ABORT = struct.pack("<Q", 0xcafebabe12345678) + b"\xff" * 16


def as_nobody(deed, *args):
    """Runs deed in a child, as another user where this one may become one; what it returned is
    true."""
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresuid(NOBODY, NOBODY, NOBODY)
            os._exit(0 if deed(*args) else 1)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def send_and_see_it_closed(port, data):
    """Whether the host closes the connection without a word."""
    with socket.socket() as s:
        s.settimeout(cluster.PATIENCE_S)
        s.connect((b"127.0.0.1", port))  # bytes: another user cannot read Python's codecs
        try:
            s.sendall(data)
            return s.recv(4096) == b""
        except ConnectionError:
            return True


class Strangers(cluster.ClusterTest):
    def start_stream(self):
        self.d = self.driver(self.write("app.yaml", APP % {"folder": self.folder}), "--output", "json")
        self.w = [self.worker(fragments=f) for f in ("fragment1", "fragment2")]
        self.wait_flowing(self.d, 100)

    def assert_unharmed(self):
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        summary = self.summary(self.d)
        self.assertEqual(summary["result"], "done")
        flow = self.flow(summary, "fragment1.tx.out")
        self.assertEqual((flow["sent"], flow["delivered"], flow["lost"]), (4000, 4000, 0))
        self.assert_nothing_left(keep=self.w)

    def test_bytes_that_make_ucx_abort_do_not_reach_it(self):
        self.start_stream()
        for host in self.wait_hosts(2):
            for port in cluster.data_ports(host):
                self.assertTrue(as_nobody(send_and_see_it_closed, port, ABORT))
        for worker in self.w:
            worker.wait_line(r"warn .*refused a connection to the data port from 127\.0\.0\.1: "
                             r"it did not prove that it has the application's key")
        self.assert_unharmed()


WEB = """
frag: 1
application: web
extensions: [libweb.so]
fragments:
  fragment1: {operators: {tx: {type: web_tx, parameters: {count: 2000}}}}
  fragment2: {operators: {rx: {type: web_rx}}}
flows:
  - {from: fragment1.tx.out, to: fragment2.rx.in, edge: ucx}
"""


class Operators(cluster.ClusterTest):
    def test_sockets_of_operators_are_untouched(self):
        """Each operator serves HTTP and fetches it, on the thread that drives UCX."""
        d = self.driver(self.write("web.yaml", WEB), "--output", "json")
        for fragment in ("fragment1", "fragment2"):
            self.worker(fragments=fragment)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.assertEqual(self.flow(self.summary(d), "fragment1.tx.out")["delivered"], 2000)
