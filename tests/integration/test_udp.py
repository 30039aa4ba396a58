# SPDX-License-Identifier: Apache-2.0
"""Packets through whole applications: the test sends them to udp_source and receives those of
udp_sink, which runs in another host."""
import signal
import socket
import struct

import cluster

APP = """
frag: 1
application: packets
fragments:
  in:
    operators:
      source: {type: udp_source, parameters: {sequence: true, max_payload_size: 4}}
  out:
    operators:
      sink: {type: udp_sink, parameters: {port: %d, sequence: true}}
flows:
  - in.source.output -> out.sink.input
"""
HEADER = struct.Struct(">QQ")


class Packets(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.receiver.close)
        self.receiver.bind(("127.0.0.1", 0))
        self.receiver.settimeout(cluster.PATIENCE_S)
        self.sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.sender.close)

    def run_daemons(self):
        app = self.write("app.yaml", APP % self.receiver.getsockname()[1])
        self.driver_ = self.driver(app, "--output", "json")
        self.workers = [self.worker("--once", fragments=f) for f in ("in", "out")]
        port = self.workers[0].wait_line(r"receives packets on 127\.0\.0\.1:(\d+)").group(1)
        self.sender.connect(("127.0.0.1", int(port)))

    def send(self, number, payload):
        self.sender.send(HEADER.pack(number, 1) + payload)

    def end(self):
        self.driver_.signal(signal.SIGTERM)
        self.assertEqual(self.driver_.wait(), 0, self.driver_.stderr)
        for w in self.workers:
            self.assertEqual(w.wait(), 0, w.stderr)
        summary = self.summary(self.driver_)
        self.assert_balanced(summary)
        self.assert_nothing_left()
        return summary

    def test_they_cross_two_hosts_and_each_is_accounted_for(self):
        self.run_daemons()
        numbers = [n for n in range(100) if n not in (40, 41)]
        numbers[10], numbers[11] = numbers[11], numbers[10]
        for n in numbers:
            self.send(n, b"%03d" % n)
        self.sender.send(b"garbage")
        self.send(100, b"too long")
        self.send(99, b"no")
        self.send(101, b"end")
        received = [self.receiver.recv(100) for _ in range(len(numbers) + 1)]
        self.assertEqual([p[16:] for p in received], [b"%03d" % n for n in numbers] + [b"end"])
        first = HEADER.unpack(received[0][:16])[0]
        self.assertEqual([HEADER.unpack(p[:16])[0] - first for p in received],
                         list(range(len(received))))
        self.end()
        log = self.workers[0].stderr
        self.assertRegex(log, r"received 99 packets of 297 bytes; dropped 0 .*, 1 longer .*, 1 without a header")
        self.assertRegex(log, r"3 are lost, 1 came late, 1 were repeated")
        self.assertRegex(self.workers[1].stderr, r"sent 99 packets; 0 were dropped")

    def test_a_source_without_packets_stops_on_request(self):
        self.run_daemons()
        summary = self.end()
        self.assertEqual(summary["result"], "stopped")
        self.assertEqual(self.flow(summary, "in.source.output")["sent"], 0)

    def test_a_port_in_use_fails_the_start_with_a_sentence(self):
        port = self.receiver.getsockname()[1]
        p = self.start("fragctl", "run", "-e", "udp_source port=%d ! ping_tensor_rx" % port)
        self.assertNotEqual(p.wait(), 0)
        self.assertRegex(p.stderr, r"cannot receive on 127\.0\.0\.1:%d: .*in use; give an address of this machine" % port)
